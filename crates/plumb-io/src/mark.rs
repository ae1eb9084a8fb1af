//! The mark of files that Plumb made: what it left there may be written over without a question.
//!
//! The mark says how large the file was and when it was changed last when Plumb let go of it. A file
//! that was changed since is no longer what Plumb made, and its mark counts for nothing.
//!
//! | where | what |
//! |---|---|
//! | attribute `user.plumb.made` | `1 size=<bytes> changed=<seconds>.<nanoseconds>` |
//! | the same while runs write it | `1 writer=<boot id>/<process>/<start time>`, and `,` and the next one |
//! | the same until it is whole for the first time | `1 maker=<boot id>/<process>/<start time>` |
//! | file systems without attributes | the same and ` file=<device>:<inode>` in `.<name>.plumb-made` beside it |
//!
//! A lost mark is no danger: the file is then treated as somebody else's. So nothing is synced for
//! it, but for file systems of other machines, whose servers set the time of the last change.
//!
//! Several runs may write to one file at once: each enters itself, the last one to end says how the file
//! was left. They take turns at the mark by a lock on the file (`flock`).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{FlockOperation, XattrFlags};
use rustix::io::Errno;

use crate::block_stack;
use crate::system_tree::SystemTree;

const ATTRIBUTE: &str = "user.plumb.made";
/// Raised when the text changes; a mark of another version is not understood.
const VERSION: &str = "1";
/// No mark is longer.
const LENGTH_MAX: usize = 2048;
/// No more runs at once are entered; a text of that many is shorter than [`LENGTH_MAX`].
const WRITERS_MAX: usize = 24;
/// How long to wait for another run at the mark: it takes far less.
pub(crate) const TURN: Duration = Duration::from_millis(500);

/// Why a file cannot be marked.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot mark {} as made by Plumb", path.display())]
#[diagnostic(
    code(plumb::mark),
    help(
        "the file is good for this run, but the next one that writes to it will refuse to: \
         remove it then, or add --destroy"
    )
)]
pub struct MarkError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// What a file's mark says about it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It has none.
    Unmarked,
    /// It is as Plumb left it.
    Intact,
    /// A run of Plumb that is still there writes to it.
    BeingWritten {
        /// Its number.
        process: u32,
    },
    /// Somebody changed it since; says what differs.
    Changed(String),
    /// Plumb began to make it and did not come to its end: it never held anything but what Plumb put there.
    HalfMade,
    /// A run of Plumb wrote to it and did not end properly, or runs on another machine.
    Unfinished,
    /// There is a mark that this version does not understand.
    Unreadable,
}

impl Standing {
    /// Whether the file holds nothing but what Plumb put there.
    #[must_use]
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Intact | Self::BeingWritten { .. } | Self::HalfMade)
    }
}

/// Says that this process writes to the file from now on: to be called when Plumb has created it, and
/// before the first write to one that is [`Standing::Intact`].
///
/// # Errors
/// When neither attribute nor file beside it can be written.
pub fn begin(file: BorrowedFd<'_>, path: &Path, tree: &SystemTree) -> Result<(), MarkError> {
    enter(file, path, tree, Writer::this_process(tree)).map_err(|source| failed(path, source))
}

fn enter(file: BorrowedFd<'_>, path: &Path, tree: &SystemTree, writer: Writer) -> io::Result<()> {
    let _turn = Turn::take(file);
    let mut writers = others(file, path, tree, &writer)?;
    writers.truncate(WRITERS_MAX - 1);
    writers.push(writer);
    store(file, path, &Mark::Writing(writers))
}

/// Runs that write to the file and live, this one left out.
fn others(
    file: BorrowedFd<'_>,
    path: &Path,
    tree: &SystemTree,
    own: &Writer,
) -> io::Result<Vec<Writer>> {
    let writers = match load(file, path)? {
        Some(Ok(Mark::Writing(writers))) => writers,
        Some(Ok(Mark::Making(maker))) => vec![maker],
        _ => Vec::new(),
    };
    Ok(writers.into_iter().filter(|writer| writer != own && writer.is_alive(tree)).collect())
}

/// Says that this process makes the file: to be called before its first byte. One that stays half-made
/// may be made anew without a question.
///
/// # Errors
/// When neither attribute nor file beside it can be written.
pub fn begin_making(file: BorrowedFd<'_>, path: &Path, tree: &SystemTree) -> Result<(), MarkError> {
    let maker = Writer::this_process(tree);
    store(file, path, &Mark::Making(maker)).map_err(|source| failed(path, source))
}

/// Says that the file is now as Plumb made it: to be called when nothing of this process writes to it
/// any more, mappings included.
///
/// While other live processes write to it, only this one is struck out: the last of them will say it.
///
/// # Errors
/// When the mark cannot be written, or a remote file system cannot be synced.
pub fn seal(file: BorrowedFd<'_>, path: &Path, tree: &SystemTree) -> Result<(), MarkError> {
    leave(file, path, tree, &Writer::this_process(tree)).map_err(|source| failed(path, source))
}

fn leave(file: BorrowedFd<'_>, path: &Path, tree: &SystemTree, writer: &Writer) -> io::Result<()> {
    let _turn = Turn::take(file);
    let others = others(file, path, tree, writer)?;
    if !others.is_empty() {
        return store(file, path, &Mark::Writing(others));
    }
    if block_stack::mount_of(file, tree).is_some_and(|mount| mount.is_remote()) {
        rustix::fs::fsync(file)?;
    }
    store(file, path, &Mark::Made(State::of(file)?))
}

/// This process's turn at the mark, until it is dropped.
struct Turn<'a>(Option<BorrowedFd<'a>>);

impl<'a> Turn<'a> {
    /// Waits a little for its turn, then goes without: a mark that is wrong costs a question, waiting for
    /// whoever else has locked the file could cost for ever.
    fn take(file: BorrowedFd<'a>) -> Self {
        let deadline = Instant::now() + TURN;
        loop {
            match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Self(Some(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(_) => return Self(None),
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            // Closing the file gives it back at the latest.
            let _ = rustix::fs::flock(file, FlockOperation::Unlock);
        }
    }
}

/// Compares the file with its mark.
///
/// # Errors
/// What reading the mark or fstat said.
pub fn verify(file: BorrowedFd<'_>, path: &Path, tree: &SystemTree) -> io::Result<Standing> {
    Ok(match load(file, path)? {
        None => Standing::Unmarked,
        Some(Err(NotUnderstood)) => Standing::Unreadable,
        Some(Ok(Mark::Making(maker))) if maker.is_alive(tree) => {
            Standing::BeingWritten { process: maker.process }
        }
        Some(Ok(Mark::Making(_))) => Standing::HalfMade,
        Some(Ok(Mark::Writing(writers))) => {
            let alive = writers.iter().find(|writer| writer.is_alive(tree));
            alive.map_or(Standing::Unfinished, |writer| Standing::BeingWritten {
                process: writer.process,
            })
        }
        Some(Ok(Mark::Made(left))) => {
            let now = State::of(file)?;
            if now.size != left.size {
                let (left, now) = (left.size, now.size);
                Standing::Changed(format!("it was {left} bytes large and is {now} now"))
            } else if now.changed != left.changed {
                let (left, now) = (left.seconds(), now.seconds());
                Standing::Changed(format!("it was written to at {now} s, but left at {left} s"))
            } else {
                Standing::Intact
            }
        }
    })
}

/// Takes the mark away.
///
/// # Errors
/// What the system said; no mark is no error.
pub fn remove(file: BorrowedFd<'_>, path: &Path) -> Result<(), MarkError> {
    match rustix::fs::fremovexattr(file, ATTRIBUTE) {
        Ok(()) | Err(Errno::NODATA) => {}
        Err(errno) if has_no_attributes(errno) => {}
        Err(errno) => return Err(failed(path, errno.into())),
    }
    match fs::remove_file(beside(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path, source: io::Error) -> MarkError {
    MarkError { path: path.to_owned(), source }
}

/// What a mark says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    Made(State),
    Writing(Vec<Writer>),
    Making(Writer),
}

/// Size and time of the last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    size: u64,
    /// Seconds and nanoseconds since 1970.
    changed: (i64, u64),
}

impl State {
    fn of(file: BorrowedFd<'_>) -> io::Result<Self> {
        let found = rustix::fs::fstat(file)?;
        let size = u64::try_from(found.st_size).unwrap_or(0);
        Ok(Self { size, changed: (found.st_mtime, found.st_mtime_nsec) })
    }

    fn seconds(&self) -> String {
        format!("{}.{:09}", self.changed.0, self.changed.1)
    }
}

/// A process, told apart from earlier ones of the same number and from those of other machines.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Writer {
    boot: String,
    process: u32,
    started: u64,
}

impl Writer {
    fn this_process(tree: &SystemTree) -> Self {
        let process = std::process::id();
        let started = started(tree, "self").unwrap_or(0);
        Self { boot: boot(tree), process, started }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let boot = parts.next()?.to_owned();
        let (process, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(Self { boot, process, started })
    }

    fn text(&self) -> String {
        let Self { boot, process, started } = self;
        format!("{boot}/{process}/{started}")
    }

    fn is_alive(&self, tree: &SystemTree) -> bool {
        self.boot == boot(tree) && started(tree, &self.process.to_string()) == Some(self.started)
    }
}

fn boot(tree: &SystemTree) -> String {
    tree.text("/proc/sys/kernel/random/boot_id").unwrap_or_else(|| "unknown".to_owned())
}

/// When a process started, in ticks since boot: field 22 of its stat, 20 after the name.
fn started(tree: &SystemTree, process: &str) -> Option<u64> {
    let stat = tree.text(format!("/proc/{process}/stat"))?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

impl Mark {
    fn text(&self) -> String {
        match self {
            Self::Made(state) => {
                format!("{VERSION} size={} changed={}", state.size, state.seconds())
            }
            Self::Writing(writers) => {
                let writers: Vec<String> = writers.iter().map(Writer::text).collect();
                format!("{VERSION} writer={}", writers.join(","))
            }
            Self::Making(maker) => format!("{VERSION} maker={}", maker.text()),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(VERSION)?.strip_prefix(' ')?;
        if let Some(writers) = rest.strip_prefix("writer=") {
            let writers: Option<Vec<_>> = writers.split(',').map(Writer::parse).collect();
            return writers.map(Self::Writing);
        }
        if let Some(maker) = rest.strip_prefix("maker=") {
            return Writer::parse(maker).map(Self::Making);
        }
        let (size, changed) = rest.strip_prefix("size=")?.split_once(" changed=")?;
        let (seconds, nanos) = changed.split_once('.')?;
        let changed = (seconds.parse().ok()?, nanos.parse().ok()?);
        Some(Self::Made(State { size: size.parse().ok()?, changed }))
    }
}

/// A mark that is there but makes no sense to this version.
struct NotUnderstood;

fn store(file: BorrowedFd<'_>, path: &Path, mark: &Mark) -> io::Result<()> {
    let text = mark.text();
    match rustix::fs::fsetxattr(file, ATTRIBUTE, text.as_bytes(), XattrFlags::empty()) {
        Err(errno) if has_no_attributes(errno) => {}
        outcome => return Ok(outcome?),
    }
    // Written whole and then renamed, so that a mark is never half there.
    let beside = beside(path);
    let new = beside.with_extension("plumb-new");
    fs::write(&new, format!("{text} {}\n", identity(file)?))?;
    fs::rename(&new, &beside)
}

fn load(file: BorrowedFd<'_>, path: &Path) -> io::Result<Option<Result<Mark, NotUnderstood>>> {
    let mut bytes = [0; LENGTH_MAX];
    let length = match rustix::fs::fgetxattr(file, ATTRIBUTE, &mut bytes) {
        Ok(length) => length,
        Err(Errno::NODATA) => return load_beside(file, path),
        Err(errno) if has_no_attributes(errno) => return load_beside(file, path),
        Err(Errno::RANGE) => return Ok(Some(Err(NotUnderstood))),
        Err(errno) => return Err(errno.into()),
    };
    let mark = std::str::from_utf8(&bytes[..length]).ok().and_then(Mark::parse);
    Ok(Some(mark.ok_or(NotUnderstood)))
}

/// Whether the answer means that a mark has to lie beside the file: no attributes here, or a container that
/// lets nobody set them.
fn has_no_attributes(errno: Errno) -> bool {
    matches!(errno, Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM)
}

/// The mark beside the file, if it is about this very file.
fn load_beside(
    file: BorrowedFd<'_>,
    path: &Path,
) -> io::Result<Option<Result<Mark, NotUnderstood>>> {
    let text = match fs::read_to_string(beside(path)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some((text, about)) = text.trim_end().rsplit_once(' ') else {
        return Ok(Some(Err(NotUnderstood)));
    };
    if about != identity(file)? {
        return Ok(None);
    }
    Ok(Some(Mark::parse(text).ok_or(NotUnderstood)))
}

/// `.<name>.plumb-made` in the same folder.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".plumb-made");
    path.with_file_name(name)
}

fn identity(file: BorrowedFd<'_>) -> io::Result<String> {
    let found = rustix::fs::fstat(file.as_fd())?;
    Ok(format!("file={}:{}", found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests;
