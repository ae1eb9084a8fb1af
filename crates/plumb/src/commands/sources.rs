//! Results as they are named on a command line: files, or runs of the store.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plumb_store::{NoPlace, Store, StoreError, state_folder};

/// The bytes of a result: a file, or the document of a stored run.
pub(super) fn bytes(name: &Path) -> Result<Vec<u8>, SourceError> {
    match fs::read(name) {
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
