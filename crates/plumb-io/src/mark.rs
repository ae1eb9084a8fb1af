//! The mark of files that Plumb made: what it left there may be written over without a question.
//!
//! The mark says how large the file was and when it was changed last when Plumb let go of it. A file
//! that was changed since is no longer what Plumb made, and its mark counts for nothing.
//!
//! | where | what |
//! |---|---|
//! | attribute `user.plumb.made` | `1 size=<bytes> changed=<seconds>.<nanoseconds>` |
//! | the same while a run writes it | `1 writer=<boot id>/<process>/<start time>` |
//! | the same until it is whole for the first time | `1 maker=<boot id>/<process>/<start time>` |
//! | file systems without attributes | the same and ` file=<device>:<inode>` in `.<name>.plumb-made` beside it |
//!
//! A lost mark is no danger: the file is then treated as somebody else's. So nothing is synced for
//! it, but for file systems of other machines, whose servers set the time of the last change.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::block_stack;
use crate::system_tree::SystemTree;

const ATTRIBUTE: &str = "user.plumb.made";
/// Raised when the text changes; a mark of another version is not understood.
const VERSION: &str = "1";
/// No mark is longer.
const LENGTH_MAX: usize = 512;

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

/// Says that this process writes to the file from now on: to be called when Plumb has created it, and
/// before the first write to one that is [`Standing::Intact`].
///
/// # Errors
/// When neither attribute nor file beside it can be written.
pub fn begin(file: BorrowedFd<'_>, path: &Path, tree: &SystemTree) -> Result<(), MarkError> {
    let writer = Writer::this_process(tree);
    store(file, path, &Mark::Writing(writer)).map_err(|source| failed(path, source))
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
/// Does nothing while another live process that wrote to it along with this one will do it.
///
/// # Errors
/// When the mark cannot be written, or a remote file system cannot be synced.
pub fn seal(file: BorrowedFd<'_>, path: &Path, tree: &SystemTree) -> Result<(), MarkError> {
    let seal = || -> io::Result<()> {
        if let Some(Ok(Mark::Writing(writer))) = load(file, path)?
            && writer != Writer::this_process(tree)
            && writer.is_alive(tree)
        {
            return Ok(());
        }
        if block_stack::mount_of(file, tree).is_some_and(|mount| mount.is_remote()) {
            rustix::fs::fsync(file)?;
        }
        store(file, path, &Mark::Made(State::of(file)?))
    };
    seal().map_err(|source| failed(path, source))
}

/// Compares the file with its mark.
///
/// # Errors
/// What reading the mark or fstat said.
pub fn verify(file: BorrowedFd<'_>, path: &Path, tree: &SystemTree) -> io::Result<Standing> {
    Ok(match load(file, path)? {
        None => Standing::Unmarked,
        Some(Err(NotUnderstood)) => Standing::Unreadable,
        Some(Ok(Mark::Writing(writer) | Mark::Making(writer))) if writer.is_alive(tree) => {
            Standing::BeingWritten { process: writer.process }
        }
        Some(Ok(Mark::Making(_))) => Standing::HalfMade,
        Some(Ok(Mark::Writing(_))) => Standing::Unfinished,
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
    Writing(Writer),
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
        Some(Self { boot, process, started })
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
            Self::Writing(Writer { boot, process, started }) => {
                format!("{VERSION} writer={boot}/{process}/{started}")
            }
            Self::Making(Writer { boot, process, started }) => {
                format!("{VERSION} maker={boot}/{process}/{started}")
            }
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(VERSION)?.strip_prefix(' ')?;
        if let Some(writer) = rest.strip_prefix("writer=") {
            return Writer::parse(writer).map(Self::Writing);
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
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    struct Fixture {
        folder: tempfile::TempDir,
        tree: SystemTree,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            Self { folder, tree: SystemTree::default() }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("target")
        }

        fn create(&self) -> File {
            let file = File::create(self.path()).expect("a file");
            file.set_len(8192).expect("a length");
            file
        }

        fn standing(&self) -> Standing {
            let file = File::open(self.path()).expect("the file");
            verify(file.as_fd(), &self.path(), &self.tree).expect("readable")
        }
    }

    fn check_life(fixture: &Fixture) {
        let path = fixture.path();
        let file = fixture.create();
        assert_eq!(fixture.standing(), Standing::Unmarked);

        begin(file.as_fd(), &path, &fixture.tree).expect("marked");
        let process = std::process::id();
        assert_eq!(fixture.standing(), Standing::BeingWritten { process });
        file.write_all_at(b"plumb", 0).expect("written");
        seal(file.as_fd(), &path, &fixture.tree).expect("sealed");
        assert_eq!(fixture.standing(), Standing::Intact);

        // The same length, other bytes, another time.
        let before = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
        file.write_all_at(b"other", 0).expect("written");
        file.set_modified(before + std::time::Duration::from_nanos(1)).expect("a time");
        assert!(matches!(fixture.standing(), Standing::Changed(why) if why.contains("written to")));

        seal(file.as_fd(), &path, &fixture.tree).expect("sealed");
        assert_eq!(fixture.standing(), Standing::Intact);
        let before = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
        file.set_len(4096).expect("a length");
        file.set_modified(before).expect("a time");
        assert!(matches!(fixture.standing(), Standing::Changed(why) if why.contains("8192 bytes")));

        remove(file.as_fd(), &path).expect("removed");
        remove(file.as_fd(), &path).expect("removed");
        assert_eq!(fixture.standing(), Standing::Unmarked);
    }

    #[test]
    fn a_mark_lives_and_dies_with_what_plumb_left() {
        check_life(&Fixture::new());
    }

    /// Mounts that undo themselves.
    struct Mounted(PathBuf);

    impl Drop for Mounted {
        fn drop(&mut self) {
            drop(std::process::Command::new("umount").arg(&self.0).status());
        }
    }

    #[test]
    fn without_attributes_the_mark_lies_beside() {
        let fixture = Fixture::new();
        // ramfs has no user attributes.
        let mounted = std::process::Command::new("mount")
            .args(["-t", "ramfs", "ramfs"])
            .arg(fixture.folder.path())
            .stderr(std::process::Stdio::null())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            println!("skipped without_attributes_the_mark_lies_beside: mounting needs root");
            return;
        }
        let _mounted = Mounted(fixture.folder.path().to_owned());
        check_life(&fixture);

        // Another file under the same name is not the one that was marked.
        let file = fixture.create();
        seal(file.as_fd(), &fixture.path(), &fixture.tree).expect("sealed");
        assert!(beside(&fixture.path()).exists());
        assert_eq!(fixture.standing(), Standing::Intact);
        let keep = fixture.folder.path().join("keep");
        fs::rename(fixture.path(), keep).expect("renamed");
        fixture.create();
        assert_eq!(fixture.standing(), Standing::Unmarked);
    }

    /// Stores a text as the mark.
    fn store_text(fixture: &Fixture, text: &str) {
        let file = File::open(fixture.path()).expect("the file");
        let stored = rustix::fs::fsetxattr(&file, ATTRIBUTE, text.as_bytes(), XattrFlags::empty());
        if stored == Err(Errno::OPNOTSUPP) {
            let about = identity(file.as_fd()).expect("its identity");
            fs::write(beside(&fixture.path()), format!("{text} {about}\n")).expect("a mark beside");
        } else {
            stored.expect("a mark");
        }
    }

    #[test]
    fn a_writer_that_is_gone_leaves_it_unfinished() {
        let fixture = Fixture::new();
        let file = fixture.create();
        let gone = Writer { started: 1, ..Writer::this_process(&fixture.tree) };
        for mark in [
            Mark::Writing(gone),
            Mark::Writing(Writer { boot: "x".into(), ..Writer::this_process(&fixture.tree) }),
        ] {
            store_text(&fixture, &mark.text());
            assert_eq!(fixture.standing(), Standing::Unfinished);
        }
        // A later run that was told to destroy it makes it good again.
        seal(file.as_fd(), &fixture.path(), &fixture.tree).expect("sealed");
        assert_eq!(fixture.standing(), Standing::Intact);
    }

    #[test]
    fn what_was_never_whole_says_so_once_its_maker_is_gone() {
        let fixture = Fixture::new();
        let file = fixture.create();
        begin_making(file.as_fd(), &fixture.path(), &fixture.tree).expect("marked");
        let process = std::process::id();
        assert_eq!(fixture.standing(), Standing::BeingWritten { process });
        let gone = Writer { started: 1, ..Writer::this_process(&fixture.tree) };
        store_text(&fixture, &Mark::Making(gone).text());
        assert_eq!(fixture.standing(), Standing::HalfMade);
    }

    #[test]
    fn the_last_of_two_writers_seals() {
        let fixture = Fixture::new();
        let file = fixture.create();
        let process = std::os::unix::process::parent_id();
        let started = started(&fixture.tree, &process.to_string()).expect("our parent is alive");
        let other = Writer { process, started, boot: boot(&fixture.tree) };
        store_text(&fixture, &Mark::Writing(other).text());
        seal(file.as_fd(), &fixture.path(), &fixture.tree).expect("left alone");
        assert_eq!(fixture.standing(), Standing::BeingWritten { process });
    }

    #[test]
    fn what_is_no_mark_is_not_understood() {
        let fixture = Fixture::new();
        fixture.create();
        let long = "1".repeat(LENGTH_MAX + 1);
        for text in ["", "2 size=1 changed=1.0", "1 size=x changed=1.0", "1 writer=a/b/c", &long] {
            store_text(&fixture, text);
            assert_eq!(fixture.standing(), Standing::Unreadable, "{text:?}");
        }
    }

    #[test]
    fn marks_round_trip() {
        let writer = Writer { boot: "8e-1".into(), process: 7, started: 99 };
        let state = |changed| Mark::Made(State { size: u64::MAX, changed });
        for mark in [Mark::Writing(writer), state((1_700_000_000, 5)), state((-1, 999_999_999))] {
            assert_eq!(Mark::parse(&mark.text()).as_ref(), Some(&mark), "{}", mark.text());
        }
    }
}
