//! What a write contains (spec 6.8).

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

use plumb_io::SourceIndex;

use crate::pattern::modulus::Modulus;
use crate::profile::model::{CacheMode, Target, TimeSpan, WriteContent};
use crate::rng::Rng;

/// How the content of one thread's writes to one target comes about.
#[derive(Debug, Clone, Copy)]
pub enum Payload {
    /// The request's buffer as it was filled at the start.
    Fixed,
    /// Fresh random content before every write (`-Zr`).
    Refilled,
    /// A place in a shared source (`-Z<size>`).
    Source {
        /// Which source.
        source: SourceIndex,
        /// Possible starts: size − block + 1.
        starts: Modulus,
        /// Starts are rounded down to a multiple of this many bytes.
        granule: u32,
    },
}

impl Payload {
    /// The payload of `target`; `source` is its shared source, if it has one of `size` bytes.
    #[must_use]
    pub fn new(span: &TimeSpan, target: &Target, source: Option<(SourceIndex, u64)>) -> Self {
        match source {
            Some((source, size)) => {
                let starts = size.saturating_sub(target.block_size.into()).saturating_add(1);
                let granule = if target.cache == CacheMode::NoOsCache { 512 } else { 1 };
                Self::Source { source, starts: Modulus::new(starts), granule }
            }
            None if span.random_write_data => Self::Refilled,
            None => Self::Fixed,
        }
    }
}

/// Fills one buffer of a target's allocation as it stands before the run: zeroes with `-Z`, else byte
/// `i` of the whole allocation is `i` mod 256. `position` is the buffer's first byte in it.
pub fn fill_fixed(content: &WriteContent, position: u64, buffer: &mut [u8]) {
    if *content == WriteContent::Zero {
        buffer.fill(0);
        return;
    }
    let mut next = position.to_le_bytes()[0];
    for byte in buffer {
        *byte = next;
        next = next.wrapping_add(1);
    }
}

/// A `-Z<size>,<file>` source that cannot be made.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SourceError {
    /// The file cannot be read.
    #[error("cannot read the write source '{}'", path.display())]
    #[diagnostic(
        code(plumb::load::write_source),
        help("name a readable, non-empty file behind -Z<size>,")
    )]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Memory was refused.
    #[error("cannot allocate the write source of {size} bytes (-Z<size>)")]
    #[diagnostic(code(plumb::load::write_source_size), help("choose a smaller -Z<size>"))]
    Memory {
        /// Bytes asked for.
        size: u64,
        /// Why.
        source: io::Error,
    },
    /// Told to stop.
    #[error("the filling of the write source was interrupted")]
    #[diagnostic(code(plumb::load::write_source_interrupted))]
    Interrupted,
}

/// Bytes that are filled between two questions whether to go on; whole lines of the generator.
const PORTION: usize = 16 << 20;

/// Fills the shared source of a target: from its file, repeated or cut, else with random bytes drawn
/// from `rng`, which is one generator seeded 0 for all targets of a time span in order.
///
/// # Errors
/// When the file cannot be read or is empty, and when `stop` says so.
pub fn fill_source(
    file: Option<&str>,
    rng: &mut Rng,
    source: &mut [u8],
    mut stop: impl FnMut() -> bool,
) -> Result<(), SourceError> {
    let Some(path) = file else {
        for portion in source.chunks_mut(PORTION) {
            if stop() {
                return Err(SourceError::Interrupted);
            }
            rng.fill(portion);
        }
        return Ok(());
    };
    let failed = |source| SourceError::Read { path: path.into(), source };
    let mut opened = open_source(path)?;
    let mut given = 0;
    while given < source.len() {
        if stop() {
            return Err(SourceError::Interrupted);
        }
        let end = source.len().min(given + PORTION);
        match opened.read(&mut source[given..end]) {
            Ok(0) => break,
            Ok(more) => given += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    if given == 0 {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    let mut filled = given;
    while filled < source.len() {
        let more = filled.min(source.len() - filled);
        source.copy_within(..more, filled);
        filled += more;
    }
    Ok(())
}

fn open_source(path: &str) -> Result<File, SourceError> {
    let failed = |source| SourceError::Read { path: path.into(), source };
    // Opening a pipe waits for its writer, perhaps for ever.
    if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        return Err(failed(io::Error::other("it is a pipe")));
    }
    File::open(path).map_err(failed)
}

/// Whether a source could be read that nothing is written from (`-w0`): one that could not is fatal all the
/// same (spec 6.8).
///
/// # Errors
/// When the file cannot be read or is empty.
pub fn check_source(path: &str) -> Result<(), SourceError> {
    let failed = |source| SourceError::Read { path: path.into(), source };
    let mut byte = [0];
    loop {
        match open_source(path)?.read(&mut byte) {
            Ok(0) => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_short_file_is_repeated_and_a_long_one_cut() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"abc").expect("written");
        let path = file.path().to_str().expect("UTF-8").to_owned();
        let source = |size| {
            let mut source = vec![0; size];
            fill_source(Some(&path), &mut Rng::new(0), &mut source, || false).expect("readable");
            source
        };
        assert_eq!(source(8), b"abcabcab");
        assert_eq!(source(2), b"ab");
        check_source(&path).expect("readable");
        let empty = tempfile::NamedTempFile::new().expect("a temporary file");
        for path in [empty.path().to_str().expect("UTF-8"), "/no/such/source", "/"] {
            let error = check_source(path).expect_err("nothing can be read from it");
            assert!(error.to_string().contains(path), "{error}");
        }
    }

    #[test]
    fn the_fixed_fill_counts_over_the_whole_allocation() {
        let mut buffer = [9; 3];
        fill_fixed(&WriteContent::Sequential, 255, &mut buffer);
        assert_eq!(buffer, [255, 0, 1]);
        fill_fixed(&WriteContent::Zero, 255, &mut buffer);
        assert_eq!(buffer, [0; 3]);
    }
}
