//! A study's folder.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::{FORMAT, Findings, Journal, Resumptions, RunRecord, Study};

/// What can go wrong with a study's folder.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum StudyError {
    /// The system refuses.
    #[error("cannot {what} {}", path.display())]
    #[diagnostic(
        code(plumb::study::io),
        help("check permissions and room; XDG_STATE_HOME says where studies are kept")
    )]
    Io {
        /// `open`, `write to` and the like.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A document that is not what it should be.
    #[error("{}{} is damaged: {what}", path.display(), line.map(|l| format!(", line {l},")).unwrap_or_default())]
    #[diagnostic(
        code(plumb::study::damaged),
        help("restore it from a copy, or start a new study: the results in its folder stay")
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: Option<usize>,
        /// What the reader says.
        what: String,
    },
    /// A newer program wrote it.
    #[error("{} has format {found}; this program reads format {FORMAT}", path.display())]
    #[diagnostic(code(plumb::study::format), help("use the program that wrote it, or a newer one"))]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// There is already one of that name.
    #[error("the study `{id}` exists")]
    #[diagnostic(
        code(plumb::study::exists),
        help("resume it with --resume {id}, or give the new one another name with --id")
    )]
    Exists {
        /// Its name.
        id: String,
    },
    /// There is none of that name.
    #[error("there is no study `{id}` in {}", folder.display())]
    #[diagnostic(
        code(plumb::study::unknown),
        help("the folder lists the names of those that exist")
    )]
    Unknown {
        /// The name.
        id: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// It was killed before its plan was written.
    #[error(
        "the study `{id}` ended before its plan was written: nothing of it was measured, and nothing can go on"
    )]
    #[diagnostic(
        code(plumb::study::unplanned),
        help("begin it again: the same command with --id {id} instead of --resume; or remove {}", path.display())
    )]
    Unplanned {
        /// Its name.
        id: String,
        /// Its folder.
        path: PathBuf,
    },
    /// A name that is no folder name.
    #[error("`{id}` cannot be the name of a study")]
    #[diagnostic(
        code(plumb::study::name),
        help("use letters, digits, `-`, `_` and `.`, at most 100, and no dot at the beginning")
    )]
    Name {
        /// The name.
        id: String,
    },
    /// Another process is at it.
    #[error("the study `{id}` is being worked on by another process")]
    #[diagnostic(code(plumb::study::locked), help("wait for it, or end it"))]
    Locked {
        /// Its name.
        id: String,
    },
}

impl StudyError {
    pub(super) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }

    pub(super) fn document(path: &Path, line: Option<usize>, source: &serde_json::Error) -> Self {
        Self::Damaged { path: path.to_owned(), line, what: source.to_string() }
    }
}

/// Where studies are kept: `$XDG_STATE_HOME/plumb/studies`, by default below `~/.local/state`.
#[must_use]
pub fn studies_folder() -> PathBuf {
    let absolute = |path: &PathBuf| path.is_absolute();
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(absolute);
    let state = state.unwrap_or_else(|| {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(absolute);
        home.unwrap_or_else(std::env::temp_dir).join(".local/state")
    });
    state.join("plumb/studies")
}

/// The names of all studies in a folder, ascending; none where there is no folder.
///
/// # Errors
/// The folder cannot be read.
pub fn studies(folder: &Path) -> Result<Vec<String>, StudyError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(StudyError::io("read", folder, source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| StudyError::io("read", folder, source))?;
        if entry.path().join("plan.json").exists()
            && let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The folder of one study.
#[derive(Debug)]
pub struct StudyFolder {
    path: PathBuf,
    /// Held while this process works on it.
    lock: Option<File>,
}

impl StudyFolder {
    /// Makes the folder with its plan in it; the study is locked. Until the plan is durable the folder has a name that is no
    /// study's: whoever is killed before that leaves no study, and after it one that can go on.
    ///
    /// # Errors
    /// A study of that name exists, the name is none, or the folder cannot be written.
    pub fn create(studies: &Path, study: &Study) -> Result<Self, StudyError> {
        check_name(&study.id)?;
        let path = studies.join(&study.id);
        // One that an older program left without a plan is taken as it is.
        let beside = match path.exists() {
            true => path.clone(),
            false => studies.join(format!(".new-{}", study.id)),
        };
        let failed = |source| StudyError::io("make", &path, source);
        fs::create_dir_all(beside.join("runs")).map_err(failed)?;
        let mut folder = Self { path: beside.clone(), lock: None };
        folder.lock(&study.id)?;
        // Another process may have made it since.
        if path.join("plan.json").exists() {
            return Err(StudyError::Exists { id: study.id.clone() });
        }
        folder.write("plan.json", study)?;
        if beside != path {
            fs::rename(&beside, &path).map_err(failed)?;
        }
        sync_folder(studies).map_err(failed)?;
        Ok(Self { path, ..folder })
    }

    /// Writes the plan anew, before the first run.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn rewrite_plan(&self, study: &Study) -> Result<(), StudyError> {
        self.write("plan.json", study)
    }

    /// An existing study, to work on it.
    ///
    /// # Errors
    /// There is none of that name, it has no plan, or another process works on it.
    pub fn open(studies: &Path, id: &str) -> Result<Self, StudyError> {
        let mut folder = Self::view(studies, id)?;
        folder.lock(id)?;
        Ok(folder)
    }

    /// An existing study, to read it.
    ///
    /// # Errors
    /// There is none of that name, or it has no plan.
    pub fn view(studies: &Path, id: &str) -> Result<Self, StudyError> {
        check_name(id)?;
        let mut folder = Self { path: studies.join(id), lock: None };
        if folder.plan_path().exists() {
            return Ok(folder);
        }
        let id = id.to_owned();
        // The lock is the first file of a study, the plan the second.
        if !folder.path.join("lock").exists() {
            return Err(StudyError::Unknown { id, folder: studies.to_owned() });
        }
        match folder.lock(&id) {
            Err(locked @ StudyError::Locked { .. }) => Err(locked),
            _ => Err(StudyError::Unplanned { id, path: folder.path }),
        }
    }

    /// Removes an existing study for good: no name of it is left when its files go.
    ///
    /// # Errors
    /// There is none of that name, another process works on it, or it cannot be removed.
    pub fn remove(studies: &Path, id: &str) -> Result<(), StudyError> {
        let folder = Self::open(studies, id)?;
        let failed = |source| StudyError::io("remove", &folder.path, source);
        let aside = studies.join(format!(".removed-{id}"));
        if aside.exists() {
            // Of a removal that was interrupted.
            fs::remove_dir_all(&aside).map_err(failed)?;
        }
        fs::rename(&folder.path, &aside).map_err(failed)?;
        sync_folder(studies).map_err(failed)?;
        fs::remove_dir_all(&aside).map_err(failed)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its plan.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or of a newer format.
    pub fn plan(&self) -> Result<Study, StudyError> {
        self.document("plan.json")
    }

    /// Its findings; `None` before there are any.
    ///
    /// # Errors
    /// They cannot be read, are damaged, or of a newer format.
    pub fn findings(&self) -> Result<Option<Findings>, StudyError> {
        if !self.path.join("findings.json").exists() {
            return Ok(None);
        }
        self.document("findings.json").map(Some)
    }

    /// Its journal, to be continued.
    ///
    /// # Errors
    /// It cannot be read, written, or is damaged.
    pub fn journal(&self) -> Result<Journal, StudyError> {
        Journal::open(&self.path.join("journal.ndjson"))
    }

    /// Its finished runs, without changing anything.
    ///
    /// # Errors
    /// The journal cannot be read, or is damaged.
    pub fn runs(&self) -> Result<Vec<RunRecord>, StudyError> {
        Journal::read(&self.path.join("journal.ndjson"))
    }

    /// Each time that it went on, to be continued.
    ///
    /// # Errors
    /// It cannot be read, written, or is damaged.
    pub fn resumptions(&self) -> Result<Resumptions, StudyError> {
        Resumptions::open(&self.path.join("resumptions.ndjson"))
    }

    /// The whole result of a run; `None` where it has none.
    ///
    /// # Errors
    /// It cannot be read or is damaged.
    pub fn result(&self, record: &RunRecord) -> Result<Option<Value>, StudyError> {
        record.result.as_ref().map(|name| read(&self.path.join(name))).transpose()
    }

    /// Results of finished runs that are gone or damaged, by the number of the run. What a study found rests on its journal, and
    /// does not need them. Of those beyond 64 MiB in all only both ends are looked at: the middle is read by whoever needs it.
    #[must_use]
    pub fn damaged_results(&self, runs: &[RunRecord]) -> Vec<(u32, StudyError)> {
        let mut read_so_far = 0;
        let damage = |run: &RunRecord| {
            let path = self.path.join(run.result.as_ref()?);
            let bytes = fs::metadata(&path).map_or(0, |found| found.len());
            read_so_far += bytes;
            if read_so_far > READ_WHOLE && has_both_ends(&path, bytes).unwrap_or(false) {
                return None;
            }
            read::<IgnoredAny>(&path).err().map(|error| (run.run, error))
        };
        runs.iter().filter_map(damage).collect()
    }

    /// Writes the whole result of a run and returns its name in the folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_result(&self, run: u32, result: &Value) -> Result<String, StudyError> {
        let name = format!("runs/{run:04}.json");
        self.write(&name, result)?;
        Ok(name)
    }

    /// Writes the findings in the place of older ones.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_findings(&self, findings: &Findings) -> Result<(), StudyError> {
        self.write("findings.json", findings)
    }

    /// Writes the environment record after the last run.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_environment_after(&self, environment: &Value) -> Result<(), StudyError> {
        self.write("environment-after.json", environment)
    }

    fn plan_path(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    fn lock(&mut self, id: &str) -> Result<(), StudyError> {
        let path = self.path.join("lock");
        let failed = |source| StudyError::io("lock", &path, source);
        let file =
            File::options().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                self.lock = Some(file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(StudyError::Locked { id: id.to_owned() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    fn document<T: DeserializeOwned>(&self, name: &str) -> Result<T, StudyError> {
        let path = self.path.join(name);
        let value: Value = read(&path)?;
        let format = value["format"].as_u64().unwrap_or_default();
        if format > u64::from(FORMAT) {
            let found = u32::try_from(format).unwrap_or(u32::MAX);
            return Err(StudyError::Format { path, found });
        }
        serde_json::from_value(value).map_err(|source| StudyError::document(&path, None, &source))
    }

    /// Under a temporary name, synced, renamed.
    fn write<T: Serialize>(&self, name: &str, document: &T) -> Result<(), StudyError> {
        let path = self.path.join(name);
        let mut text = serde_json::to_string_pretty(document)
            .map_err(|source| StudyError::document(&path, None, &source))?;
        text.push('\n');
        let beside = path.with_extension("json.new");
        let put = || {
            let mut file = File::create(&beside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            path.parent().map_or(Ok(()), sync_folder)
        };
        put().map_err(|source| StudyError::io("write", &path, source))
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Bytes of results that are read only to see whether they are whole.
const READ_WHOLE: u64 = 64 << 20;

/// Whether a document of that many bytes begins and ends as an object does.
fn has_both_ends(path: &Path, bytes: u64) -> io::Result<bool> {
    const END: u64 = 64;
    let mut file = File::open(path)?;
    let mut first = [0];
    file.read_exact(&mut first)?;
    file.seek(SeekFrom::Start(bytes.saturating_sub(END)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    Ok(first == *b"{" && end.trim_ascii_end().ends_with(b"}"))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, StudyError> {
    let bytes = fs::read(path).map_err(|source| StudyError::io("read", path, source))?;
    serde_json::from_slice(&bytes).map_err(|source| StudyError::document(path, None, &source))
}

/// Whether a study can have this name: that of a folder, and of nothing outside the folder of studies.
///
/// # Errors
/// It cannot.
pub fn check_name(id: &str) -> Result<(), StudyError> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !id.is_empty() && id.len() <= 100 && id.chars().all(is_fine) && !id.starts_with('.') {
        true => Ok(()),
        false => Err(StudyError::Name { id: id.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::study::{Device, Kind, State};

    fn study(id: &str) -> Study {
        Study {
            format: FORMAT,
            id: id.to_owned(),
            kind: Kind::Sweep,
            title: "a sweep".to_owned(),
            created: "2026-01-01T00:00:00Z".to_owned(),
            tool: "plumb".to_owned(),
            epoch: 1,
            target: "/data/f".to_owned(),
            device: Device::Simulated(json!({ "noise": 0.01 })),
            devices: Some(8),
            copies: 2,
            seed: 7,
            request: json!({}),
            runs_most: 4,
            runs_exhaustive: 9,
            estimate_s: 0.1 + 0.2,
            estimate_range_s: None,
            critical: [("tool epoch".to_owned(), "1".to_owned())].into(),
            environment: None,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = StudyFolder::create(place.path(), &study("a.1")).expect("made");
        assert_eq!(folder.plan().expect("a plan"), study("a.1"));
        assert_eq!(folder.findings().expect("none yet"), None);
        let findings = Findings {
            format: FORMAT,
            study: "a.1".to_owned(),
            state: State::Partial,
            runs: 0,
            runs_exhaustive: 9,
            findings: Vec::new(),
            notes: vec!["nothing yet".to_owned()],
        };
        folder.write_findings(&findings).expect("written");
        assert_eq!(folder.findings().expect("there"), Some(findings));
        let name = folder.write_result(3, &json!({ "x": 1 })).expect("written");
        assert_eq!(name, "runs/0003.json");
        assert_eq!(studies(place.path()).expect("a list"), ["a.1"]);
        assert!(studies(&place.path().join("none")).expect("a list").is_empty());
    }

    #[test]
    fn one_that_was_killed_before_its_plan_was_written_is_told_and_begun_again() {
        let place = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(place.path().join("a/runs")).expect("made");
        let refused = |opened: Result<StudyFolder, StudyError>| opened.expect_err("refused");
        // A folder that no study has locked is none.
        let unknown = refused(StudyFolder::open(place.path(), "a"));
        assert!(matches!(unknown, StudyError::Unknown { .. }), "{unknown}");
        let lock = File::create(place.path().join("a/lock")).expect("made");
        lock.lock().expect("locked");
        let locked = refused(StudyFolder::open(place.path(), "a"));
        assert!(matches!(locked, StudyError::Locked { .. }), "{locked}");
        drop(lock);
        let unplanned = refused(StudyFolder::open(place.path(), "a"));
        assert!(matches!(unplanned, StudyError::Unplanned { .. }), "{unplanned}");
        let told = miette::Diagnostic::help(&unplanned).expect("a remedy").to_string();
        assert!(told.contains("--id a") && told.contains(place.path().to_str().expect("UTF-8")));
        assert!(StudyFolder::create(place.path(), &study("a")).is_ok());
        assert!(StudyFolder::open(place.path(), "a").is_ok());
    }

    #[test]
    fn whoever_is_killed_while_a_study_is_made_leaves_none() {
        // What lies there at each moment of a kill: the folder, the lock, half a plan, a plan.
        for files in [&[][..], &["lock"], &["lock", "plan.json.new"], &["lock", "plan.json"]] {
            let place = tempfile::tempdir().expect("a folder");
            let beside = place.path().join(".new-a");
            fs::create_dir_all(beside.join("runs")).expect("made");
            for name in files {
                fs::write(beside.join(name), "{").expect("written");
            }
            let unknown = StudyFolder::open(place.path(), "a").expect_err("there is none");
            assert!(matches!(unknown, StudyError::Unknown { .. }), "{unknown}");
            assert!(studies(place.path()).expect("a list").is_empty());
            let folder = StudyFolder::create(place.path(), &study("a")).expect("made");
            let locked = StudyFolder::open(place.path(), "a").expect_err("locked");
            assert!(matches!(locked, StudyError::Locked { .. }), "{locked}");
            drop(folder);
            let plan = StudyFolder::open(place.path(), "a").expect("opened").plan();
            assert_eq!(plan.expect("a plan"), study("a"));
            assert!(!beside.exists());
        }
        // While another process makes it.
        let place = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(place.path().join(".new-a")).expect("made");
        let lock = File::create(place.path().join(".new-a/lock")).expect("made");
        lock.lock().expect("locked");
        let locked = StudyFolder::create(place.path(), &study("a")).expect_err("locked");
        assert!(matches!(locked, StudyError::Locked { .. }), "{locked}");
    }

    #[test]
    fn one_process_at_a_time_and_no_second_of_a_name() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = StudyFolder::create(place.path(), &study("a")).expect("made");
        let refused = |result: Result<StudyFolder, StudyError>| result.expect_err("refused");
        let locked = refused(StudyFolder::open(place.path(), "a"));
        assert!(matches!(locked, StudyError::Locked { .. }), "{locked}");
        assert!(StudyFolder::view(place.path(), "a").is_ok());
        drop(folder);
        let exists = refused(StudyFolder::create(place.path(), &study("a")));
        assert!(matches!(exists, StudyError::Exists { .. }), "{exists}");
        assert!(StudyFolder::open(place.path(), "a").is_ok());
        let open = StudyFolder::open(place.path(), "a").expect("opened");
        assert!(matches!(StudyFolder::remove(place.path(), "a"), Err(StudyError::Locked { .. })));
        drop(open);
        StudyFolder::remove(place.path(), "a").expect("removed");
        assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 0);
        for name in ["", "../a", "a/b", ".hidden", "ä"] {
            let error = refused(StudyFolder::open(place.path(), name));
            assert!(matches!(error, StudyError::Name { .. }), "{name}: {error}");
        }
        let unknown = refused(StudyFolder::view(place.path(), "b"));
        assert!(matches!(unknown, StudyError::Unknown { .. }), "{unknown}");
    }

    #[test]
    fn a_newer_format_and_damage_are_told_apart() {
        let place = tempfile::tempdir().expect("a folder");
        let mut newer = study("n");
        newer.format = FORMAT + 1;
        let folder = StudyFolder::create(place.path(), &newer).expect("made");
        assert!(matches!(folder.plan(), Err(StudyError::Format { .. })));
        fs::write(folder.plan_path(), "{").expect("written");
        assert!(matches!(folder.plan(), Err(StudyError::Damaged { .. })));
    }
}
