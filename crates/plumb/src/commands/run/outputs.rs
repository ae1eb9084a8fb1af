//! Files that get the result as well (`--output`): opened before the run, so that an hour's work is not
//! lost to a wrong path, and put in place whole, so that nobody reads half of one.

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

/// Open output files beside their final places.
pub(super) struct Outputs {
    files: Vec<(OutputFormat, PathBuf, NamedTempFile)>,
}

impl Outputs {
    /// Opens all of them.
    pub(super) fn open(options: &RunOptions) -> Result<Self, OutputError> {
        let mut files = Vec::new();
        for output in &options.outputs {
            let path = output.path.clone();
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            let opened = if path.is_dir() {
                Err(io::ErrorKind::IsADirectory.into())
            } else {
                tempfile::Builder::new().prefix(".plumb-result-").tempfile_in(folder)
            };
            match opened {
                Ok(file) => files.push((output.format, path, file)),
                Err(source) => return Err(OutputError { path, source }),
            }
        }
        Ok(Self { files })
    }

    /// Writes all of them and puts them in place.
    pub(super) fn write(self, result: &RunResult) -> io::Result<()> {
        for (format, path, file) in self.files {
            let mut out = BufWriter::new(file);
            super::execute::write(result, format, &mut out)?;
            out.flush()?;
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            make_readable(&file)?;
            file.persist(&path).map_err(|error| error.error)?;
        }
        Ok(())
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
