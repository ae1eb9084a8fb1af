//! Files that get the result as well (`--output`): opened before the run, so that an hour's work is not
//! lost to a wrong path, and put in place whole, so that nobody reads half of one.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plumb_load::profile::flags::{Invocation, OutputFormat};
use plumb_load::profile::model::WriteContent;
use plumb_load::result::model::RunResult;
use plumb_load::session::target::resolve;
use tempfile::NamedTempFile;

/// An output file that cannot be made.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(super) enum OutputError {
    /// The system refuses.
    #[error("cannot write a result to '{}'", path.display())]
    #[diagnostic(
        code(plumb::run::output),
        help("name a file in a directory that you may write to, with room for it")
    )]
    Refused {
        /// As given.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The result would replace what the run works with.
    #[error("the result would take the place of '{}', {what} of this run", path.display())]
    #[diagnostic(code(plumb::run::output_is_input), help("name another file for --output"))]
    IsInput {
        /// As given.
        path: PathBuf,
        /// `a target` and the like.
        what: &'static str,
    },
    /// What the run remembers would be what it works with.
    #[error("the state file '{}' (--verify-state) is {what} of this run", path.display())]
    #[diagnostic(
        code(plumb::run::state_is_input),
        help("name another file for --verify-state, a new one to begin anew")
    )]
    StateIsInput {
        /// As given.
        path: PathBuf,
        /// `a target` and the like.
        what: &'static str,
    },
    /// Two results would go to one file.
    #[error("'{}' and '{}' are one file, which holds one result", path.display(), other.display())]
    #[diagnostic(code(plumb::run::output_twice), help("name a file of its own for every format"))]
    Twice {
        /// As given.
        path: PathBuf,
        /// The one before it, as given.
        other: PathBuf,
    },
}

impl OutputError {
    /// The exit status: a wrong command line, or a failed run.
    pub(super) fn status(&self) -> u8 {
        match self {
            Self::IsInput { .. } | Self::StateIsInput { .. } | Self::Twice { .. } => 3,
            Self::Refused { .. } => 1,
        }
    }
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
                let beside = tempfile::Builder::new().prefix(".plumb-result-").tempfile_in(folder);
                Ok(Self::Beside(path, beside.map_err(without_path)?))
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
                give_rights(&file, &path)?;
                file.persist(&path).map_err(|error| error.error)?;
                Ok(())
            }
        }
    }
}

impl Outputs {
    /// Opens all of them, unless one is what the run works with, or two are one file. The state file of a
    /// verified run is what it works with, and must be nothing else of that.
    pub(super) fn open(invocation: &Invocation) -> Result<Self, OutputError> {
        let outputs = &invocation.options.outputs;
        let state = invocation.options.verify_state.as_deref();
        if let Some((state, what)) = state.and_then(|state| state_as_input(state, invocation)) {
            return Err(OutputError::StateIsInput { path: state.to_owned(), what });
        }
        for (number, output) in outputs.iter().enumerate() {
            let path = &output.path;
            let state = state.map(|state| (state.to_owned(), "the state file (--verify-state)"));
            let used = inputs(invocation).chain(state).find(|(input, _)| is_same(path, input));
            if let Some((_, what)) = used {
                return Err(OutputError::IsInput { path: path.clone(), what });
            }
            // A pipe, a terminal or a device takes one result after the other.
            let is_stream = path.metadata().is_ok_and(|found| !found.is_file());
            let earlier = outputs[..number].iter().find(|other| is_same(path, &other.path));
            if let Some(other) = earlier.filter(|_| !is_stream) {
                let (path, other) = (path.clone(), other.path.clone());
                return Err(OutputError::Twice { path, other });
            }
        }
        let mut files = Vec::new();
        for output in outputs {
            let path = output.path.clone();
            let place = Place::open(&path)
                .map_err(|source| OutputError::Refused { path: path.clone(), source })?;
            files.push((output.format, path, place));
        }
        Ok(Self { files })
    }

    /// The files that lie beside their places until they are whole.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().filter_map(|(_, _, place)| match place {
            Place::Beside(_, file) => Some(file.path()),
            Place::Directly(_) => None,
        })
    }

    /// Writes all of them and puts them in place. One that fails does not keep the others away; the
    /// first failure is told.
    pub(super) fn write(self, result: &RunResult) -> Result<(), OutputError> {
        let mut outcome = Ok(());
        for (format, path, place) in self.files {
            let written = place.write(format, result);
            outcome = outcome.and(written.map_err(|source| OutputError::Refused { path, source }));
        }
        outcome
    }
}

/// What the run reads or writes, with a word for it.
fn inputs(invocation: &Invocation) -> impl Iterator<Item = (PathBuf, &'static str)> {
    let profile = invocation.profile_path.iter().map(|path| (path.clone(), "the profile (-X)"));
    let targets = invocation.profile.time_spans.iter().flat_map(|span| &span.targets);
    let named = targets.flat_map(|target| {
        // A name that leads nowhere is reported when it is opened.
        let path = resolve(&target.path).unwrap_or_default();
        let source = match &target.write_content {
            WriteContent::Random { file: Some(file), .. } => Some((file.into(), "a write source")),
            _ => None,
        };
        std::iter::once((path, "a target")).chain(source)
    });
    profile.chain(named)
}

/// The state file, with a word for what else it would be in the run.
fn state_as_input<'a>(
    state: &'a Path,
    invocation: &Invocation,
) -> Option<(&'a Path, &'static str)> {
    let used = inputs(invocation).find(|(input, _)| is_same(state, input)).map(|(_, what)| what);
    let used = used.or_else(|| is_stdout(state).then_some("standard output"));
    used.map(|what| (state, what))
}

/// Whether a path leads to the file that standard output goes to.
fn is_stdout(path: &Path) -> bool {
    let Ok(stdout) = rustix::fs::fstat(io::stdout()) else { return false };
    path.metadata()
        .is_ok_and(|it| it.is_file() && (it.dev(), it.ino()) == (stdout.st_dev, stdout.st_ino))
}

/// Where a file that is not there yet would be made: the last of a chain of links that lead nowhere.
fn made_at(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many as the kernel follows.
    for _ in 0..40 {
        let Ok(next) = path.read_link() else { break };
        path = path.parent().map(|folder| folder.join(&next)).unwrap_or(next);
    }
    path
}

/// Whether two paths lead to one file; where there is none yet, whether they name one.
fn is_same(a: &Path, b: &Path) -> bool {
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        (Err(_), Err(_)) => {
            let place = |path: &Path| {
                let path = made_at(path);
                let folder = std::path::absolute(&path).ok()?.parent()?.to_owned();
                Some((folder.canonicalize().unwrap_or(folder), path.file_name()?.to_owned()))
            };
            place(a).is_some_and(|named| Some(named) == place(b))
        }
        _ => false,
    }
}

/// The error alone: the name of the file beside the output says nothing to the user.
fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason.to_owned()),
        None => error,
    }
}

/// Temporary files are private. A result has the rights and, if we may give it away, the owner of the file
/// whose place it takes; a new one is an ordinary file, as far as the umask allows.
fn give_rights(file: &NamedTempFile, place: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = match place.metadata() {
        Ok(earlier) => {
            let own = file.as_file().metadata()?;
            if (own.uid(), own.gid()) != (earlier.uid(), earlier.gid()) {
                // Who may not do so keeps it, as a new file would be.
                let _ = std::os::unix::fs::fchown(
                    file.as_file(),
                    Some(earlier.uid()),
                    Some(earlier.gid()),
                );
            }
            earlier.mode() & 0o777
        }
        Err(_) => {
            let umask = rustix::process::umask(rustix::fs::Mode::empty());
            rustix::process::umask(umask);
            0o666 & !umask.as_raw_mode()
        }
    };
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))
}
