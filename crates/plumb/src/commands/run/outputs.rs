//! Files that get the result as well (`--output`): opened before the run, so that an hour's work is not
//! lost to a wrong path, and put in place whole, so that nobody reads half of one.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use plumb_load::profile::flags::{OutputFormat, RunOptions};
use plumb_load::result::model::RunResult;
use tempfile::NamedTempFile;

/// An output file that cannot be made.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot write a result to '{}'", path.display())]
#[diagnostic(code(plumb::run::output), help("name a file in a directory that you may write to"))]
pub(super) struct OutputError {
    path: PathBuf,
    source: io::Error,
}

/// Open output files.
pub(super) struct Outputs {
    /// Format, name as given, place.
    files: Vec<(OutputFormat, PathBuf, Place)>,
}

/// Where a result is written.
enum Place {
    /// Beside its final place, which it takes when it is whole.
    Beside(PathBuf, NamedTempFile),
    /// A pipe, a terminal or a device takes it as it comes: a file must never take its place.
    Directly(File),
}

impl Place {
    fn open(path: &Path) -> io::Result<Self> {
        // What a link leads to is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => {
                OpenOptions::new().write(true).open(&path).map(Self::Directly)
            }
            _ => {
                let folder = match path.parent() {
                    Some(folder) if !folder.as_os_str().is_empty() => folder,
                    _ => Path::new("."),
                };
                let file = tempfile::Builder::new().prefix(".plumb-result-").tempfile_in(folder)?;
                Ok(Self::Beside(path, file))
            }
        }
    }

    fn write(self, format: OutputFormat, result: &RunResult) -> io::Result<()> {
        match self {
            Self::Directly(file) => {
                let mut out = BufWriter::new(file);
                super::execute::write(result, format, &mut out)?;
                out.flush()
            }
            Self::Beside(path, file) => {
                let mut out = BufWriter::new(file);
                super::execute::write(result, format, &mut out)?;
                let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.as_file().sync_all()?;
                make_readable(&file)?;
                file.persist(&path).map_err(|error| error.error)?;
                Ok(())
            }
        }
    }
}

impl Outputs {
    /// Opens all of them.
    pub(super) fn open(options: &RunOptions) -> Result<Self, OutputError> {
        let mut files = Vec::new();
        for output in &options.outputs {
            let place = Place::open(&output.path)
                .map_err(|source| OutputError { path: output.path.clone(), source })?;
            files.push((output.format, output.path.clone(), place));
        }
        Ok(Self { files })
    }

    /// Writes all of them and puts them in place. One that fails does not keep the others away; the
    /// first failure is told, with the file's name.
    pub(super) fn write(self, result: &RunResult) -> io::Result<()> {
        let mut outcome = Ok(());
        for (format, name, place) in self.files {
            let written = place.write(format, result);
            outcome = outcome.and(written.map_err(|error| {
                io::Error::new(error.kind(), format!("'{}': {error}", name.display()))
            }));
        }
        outcome
    }
}

/// Temporary files are private; a result is an ordinary file, as far as the umask allows.
fn make_readable(file: &NamedTempFile) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(umask);
    let mode = 0o666 & !umask.as_raw_mode();
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))
}
