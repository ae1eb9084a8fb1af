//! Results as they are named on a command line: files, or runs of the store.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use plumb_store::{NoPlace, Store, StoreError, state_folder};

/// More than any result has: an hour of millisecond intervals takes less.
const RESULT_MAX: u64 = 1 << 30;

/// The bytes of a file that is to be a result; a device or a test file named by mistake is not read into memory
/// whole.
pub(super) fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let too_long = || io::Error::other("it is above 1 GiB, which no result is");
    let kind = file.metadata()?;
    let device = kind.file_type().is_block_device() || kind.file_type().is_char_device();
    // The terminal and /dev/stdin are character devices at times.
    let is_tty = rustix::termios::isatty(&file);
    if kind.len() > RESULT_MAX {
        return Err(too_long());
    }
    if device && !is_tty {
        return Err(io::Error::other("it is a device, and no result"));
    }
    let mut bytes = Vec::new();
    let read = file.take(RESULT_MAX + 1).read_to_end(&mut bytes)?;
    if plumb_units::convert::to_u64(read) > RESULT_MAX {
        return Err(too_long());
    }
    Ok(bytes)
}

/// The bytes of a result: a file, or the document of a stored run.
pub(super) fn bytes(name: &Path) -> Result<Vec<u8>, SourceError> {
    match read_bounded(name) {
        Ok(bytes) => Ok(bytes),
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            let failed = |source| SourceError::Read { path: name.to_owned(), source };
            let (Some(word), Ok(store)) = (name.to_str(), open()) else {
                return Err(failed(source));
            };
            // What looks like a path was meant as one.
            match store.resolve(word) {
                Err(StoreError::Unknown { .. }) => Err(failed(source)),
                found => {
                    let run = found.and_then(|id| store.read(&id)).map_err(SourceError::Store)?;
                    Ok(serde_json::to_vec(&run).expect("a run is JSON"))
                }
            }
        }
        Err(source) => Err(SourceError::Read { path: name.to_owned(), source }),
    }
}

/// The user's store.
pub(super) fn open() -> Result<Store, SourceError> {
    let folder = state_folder().map_err(SourceError::Place)?;
    Store::open(&folder).map_err(SourceError::Store)
}

/// Why a result cannot be had.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(super) enum SourceError {
    #[error("cannot read {}", path.display())]
    #[diagnostic(
        code(plumb::source::read),
        help("name a result, a folder of results, or a stored run (`plumb runs list`)")
    )]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Place(NoPlace),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Store(StoreError),
}
