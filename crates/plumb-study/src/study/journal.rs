//! `journal.ndjson`: a line per finished run, each synced before the next run begins; and other lists of that kind.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Resumption, RunRecord, StudyError};

/// Finished runs.
pub type Journal = Lines<RunRecord>;

/// Each time that a study went on.
pub type Resumptions = Lines<Resumption>;

/// A file that only grows, a record per line.
#[derive(Debug)]
pub struct Lines<T> {
    path: PathBuf,
    file: File,
    records: Vec<T>,
}

impl<T: Serialize + DeserializeOwned> Lines<T> {
    /// Opens or begins it. What an interrupted write left at its end is cut off.
    ///
    /// # Errors
    /// It cannot be read or written, or a whole line is no record.
    pub fn open(path: &Path) -> Result<Self, StudyError> {
        let failed = |source| StudyError::io("open", path, source);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let (records, whole) = parse(path, &bytes)?;
        if whole < bytes.len() {
            file.set_len(whole as u64).and_then(|()| file.sync_data()).map_err(failed)?;
        }
        file.seek(SeekFrom::Start(whole as u64)).map_err(failed)?;
        // A journal that was just begun is in its folder for good.
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all()).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, records })
    }

    /// Reads it without changing anything; an unfinished last line is left out.
    ///
    /// # Errors
    /// It cannot be read, or a whole line is no record. A journal that does not exist is empty.
    pub fn read(path: &Path) -> Result<Vec<T>, StudyError> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(parse(path, &bytes)?.0),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(StudyError::io("read", path, source)),
        }
    }

    /// What is in it.
    #[must_use]
    pub fn records(&self) -> &[T] {
        &self.records
    }

    /// Appends a record; it is on stable storage when this returns.
    ///
    /// # Errors
    /// It cannot be written. Nothing is lost of what was there before.
    pub fn append(&mut self, record: T) -> Result<(), StudyError> {
        let failed = |source| StudyError::io("write to", &self.path, source);
        let mut line = serde_json::to_string(&record)
            .map_err(|source| StudyError::document(&self.path, None, &source))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(failed)?;
        self.file.sync_data().map_err(failed)?;
        self.records.push(record);
        Ok(())
    }
}

/// The records of whole lines, and how many bytes those are.
fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<(Vec<T>, usize), StudyError> {
    let mut records = Vec::new();
    let mut whole = 0;
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let is_last = lines.peek().is_none();
        match serde_json::from_slice(line) {
            Ok(record) if line.ends_with(b"\n") => records.push(record),
            // The process died while it wrote this.
            _ if is_last => break,
            Ok(_) => unreachable!("only the last line has no end"),
            Err(source) => return Err(StudyError::document(path, Some(index + 1), &source)),
        }
        whole += line.len();
    }
    Ok((records, whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Outcome, Purpose, Setting};

    fn record(run: u32) -> RunRecord {
        RunRecord {
            run,
            key: format!("k{run}"),
            step: "sweep".to_owned(),
            purpose: Purpose::Measure,
            repetition: 1,
            setting: Setting::default(),
            started_s: 0.1,
            ended_s: 0.30000000000000004,
            ended: None,
            outcome: Outcome::Measured,
            summary: None,
            result: None,
            command: Vec::new(),
            counters: None,
        }
    }

    #[test]
    fn whatever_is_torn_off_the_end_the_whole_lines_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.ndjson");
        let mut journal = Journal::open(&path).expect("a new one");
        for run in 1..=3 {
            journal.append(record(run)).expect("written");
        }
        let all = std::fs::read(&path).expect("there");
        let ends: Vec<usize> =
            (0..all.len()).filter(|at| all[*at] == b'\n').map(|at| at + 1).collect();
        for cut in 0..=all.len() {
            std::fs::write(&path, &all[..cut]).expect("written");
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(Journal::read(&path).expect("readable").len(), whole, "{cut}");
            let mut journal = Journal::open(&path).expect("readable");
            assert_eq!(journal.records().len(), whole, "{cut}");
            let next = u32::try_from(whole).expect("few") + 1;
            journal.append(record(next)).expect("written");
            assert_eq!(Journal::read(&path).expect("readable").last(), Some(&record(next)));
        }
    }

    #[test]
    fn a_bad_line_in_the_middle_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.ndjson");
        let good = serde_json::to_string(&record(1)).expect("JSON");
        std::fs::write(&path, format!("{good}\nrubbish\n{good}\n")).expect("written");
        let error = Journal::open(&path).expect_err("damaged").to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
