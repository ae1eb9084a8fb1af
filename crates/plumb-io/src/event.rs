//! Named events between processes (spec 3.6, 11.4): created if absent, un-signalled; once signalled,
//! signalled for good; gone when the last process that has one open closes it.
//!
//! An event is a file in a folder of the user, `/dev/shm/plumb-<uid>`:
//!
//! | what | how |
//! |---|---|
//! | being open | a shared `flock` on the file, which the kernel drops when a process dies |
//! | being signalled | the file is not empty |
//! | waiting | inotify on the file, polling where there is none |
//! | the last one closes | whoever gets the exclusive lock removes the file |
//! | left over by a crash | whoever gets the exclusive lock on opening: nobody has it open, so it is made anew |
//!
//! The folder depends on the user alone, not on `XDG_RUNTIME_DIR`: a service and a shell of the same
//! user must meet, and only one of them has that variable. Containers meet when they share /dev/shm.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, inotify};
use rustix::time::Timespec;

/// Why a named event cannot be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum EventError {
    /// The name cannot be one.
    #[error("\"{name}\" cannot be the name of an event: {why}")]
    #[diagnostic(code(plumb::event::name), help("use 1 to {NAME_MAX} bytes without `/`"))]
    Name {
        /// As given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The folder of the events cannot be made or used.
    #[error("cannot use {} for named events", folder.display())]
    #[diagnostic(
        code(plumb::event::folder),
        help("it must be a folder of this user that nobody else can write: remove what is there")
    )]
    Folder {
        /// Where.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such event.
    #[error("there is no event \"{name}\"")]
    #[diagnostic(
        code(plumb::event::not_found),
        help(
            "an event exists while a run that was given it (-ys, -yf, -yr, -yp) is there; start that first, as the same user"
        )
    )]
    NotFound {
        /// As given.
        name: String,
    },
    /// The system refused.
    #[error("cannot {doing} the event \"{name}\"")]
    #[diagnostic(code(plumb::event::system), help("its file is {}", path.display()))]
    System {
        /// As given.
        name: String,
        /// create, open, signal, read.
        doing: &'static str,
        /// The event's file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Longest name in bytes.
const NAME_MAX: usize = 200;

/// How long a wait may take to notice that it should stop.
const STOP_LATENCY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Where a user's events are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFolder(PathBuf);

impl EventFolder {
    /// This user's: `/dev/shm/plumb-<uid>`, or `/tmp/plumb-<uid>` where there is no /dev/shm.
    #[must_use]
    pub fn of_user() -> Self {
        let user = rustix::process::geteuid().as_raw();
        let shared = Path::new("/dev/shm");
        let parent = if shared.is_dir() { shared } else { Path::new("/tmp") };
        Self(parent.join(format!("plumb-{user}")))
    }

    /// A folder of one's own choice, which is made if need be.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Makes the folder if it does not exist; refuses one that others own or can write, where
    /// anybody could put a file or link of that name.
    fn make(&self) -> Result<(), EventError> {
        let failed = |source| EventError::Folder { folder: self.0.clone(), source };
        match std::fs::DirBuilder::new().mode(0o700).create(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
        let found = std::fs::symlink_metadata(&self.0).map_err(failed)?;
        let ours = found.uid() == rustix::process::geteuid().as_raw();
        if !found.is_dir() || !ours || found.mode() & 0o022 != 0 {
            return Err(failed(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it is no folder, belongs to another user, or others can write to it",
            )));
        }
        Ok(())
    }

    fn file(&self, name: &str) -> Result<PathBuf, EventError> {
        let why = match name {
            "" => "it is empty",
            _ if name.len() > NAME_MAX => "it is too long",
            _ if name.contains('/') => "it contains `/`",
            _ if name.contains('\0') => "it contains a zero byte",
            _ => return Ok(self.0.join(format!("{name}.event"))),
        };
        Err(EventError::Name { name: name.to_owned(), why })
    }
}

/// An open event. Dropping the last one there is, in any process, removes it.
#[derive(Debug)]
pub struct Event {
    name: String,
    path: PathBuf,
    file: File,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The event is signalled.
    Signalled,
    /// The caller wanted to stop first.
    Stopped,
}

impl Event {
    /// Opens the event, or creates it un-signalled if no process has it open.
    ///
    /// # Errors
    /// Bad names, a folder that cannot be trusted, and what the system refuses.
    pub fn create(folder: &EventFolder, name: &str) -> Result<Self, EventError> {
        let path = folder.file(name)?;
        folder.make()?;
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE;
            let event = Self::open_file(&path, name, flags)
                .map_err(|source| system(name, &path, "create", source))?;
            if event.is_alone()? {
                event.file.set_len(0).map_err(|source| event.error("create", source))?;
            }
            if event.join()? {
                return Ok(event);
            }
        }
    }

    /// Opens an event that some process has open.
    ///
    /// # Errors
    /// [`EventError::NotFound`] when there is none; bad names; what the system refuses.
    pub fn open(folder: &EventFolder, name: &str) -> Result<Self, EventError> {
        let path = folder.file(name)?;
        loop {
            let event = match Self::open_file(&path, name, OFlags::RDWR) {
                Ok(event) => event,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(EventError::NotFound { name: name.to_owned() });
                }
                Err(source) => return Err(system(name, &path, "open", source)),
            };
            // Left over by a crash: dropping it removes it.
            if event.is_alone()? {
                return Err(EventError::NotFound { name: name.to_owned() });
            }
            if event.join()? {
                return Ok(event);
            }
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Signals it, for good.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn signal(&self) -> Result<(), EventError> {
        self.file.write_all_at(b"1", 0).map_err(|source| self.error("signal", source))
    }

    /// Whether it is signalled.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn is_signalled(&self) -> Result<bool, EventError> {
        let length = self.file.metadata().map_err(|source| self.error("read", source))?.len();
        Ok(length > 0)
    }

    /// Waits until it is signalled or `stopped` says so, which is asked every 20 ms.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn wait(&self, mut stopped: impl FnMut() -> bool) -> Result<Wait, EventError> {
        // The watch comes before the look, so that no signal falls in between. Without one (a user
        // may have used up his watches) the poll below merely sleeps.
        let watch = self.watch();
        loop {
            if self.is_signalled()? {
                return Ok(Wait::Signalled);
            }
            if stopped() {
                return Ok(Wait::Stopped);
            }
            match &watch {
                Some(watch) => {
                    let mut descriptors = [PollFd::new(watch, PollFlags::IN)];
                    match poll(&mut descriptors, Some(&STOP_LATENCY)) {
                        Ok(0) | Err(rustix::io::Errno::INTR) => {}
                        // What was reported is read away; the file itself says what holds.
                        Ok(_) => drop(rustix::io::read(watch, &mut [0; 4096])),
                        Err(errno) => return Err(self.error("read", errno.into())),
                    }
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn watch(&self) -> Option<rustix::fd::OwnedFd> {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let watch = inotify::init(flags).ok()?;
        inotify::add_watch(&watch, &self.path, inotify::WatchFlags::MODIFY).ok()?;
        Some(watch)
    }

    fn open_file(path: &Path, name: &str, flags: OFlags) -> io::Result<Self> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(Self { name: name.to_owned(), path: path.to_owned(), file: file.into() })
    }

    /// Takes the exclusive lock if no other process has the event open.
    fn is_alone(&self) -> Result<bool, EventError> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(self.error("open", errno.into())),
        }
    }

    /// Takes the shared lock that means "open"; false when the file was removed before it was ours.
    ///
    /// Others hold the exclusive lock only while they create or remove the file, so this waits for
    /// moments at most.
    fn join(&self) -> Result<bool, EventError> {
        loop {
            match flock(&self.file, FlockOperation::LockShared) {
                Ok(()) => return Ok(self.is_in_place()),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(self.error("open", errno.into())),
            }
        }
    }

    /// Whether the path still leads to our file.
    fn is_in_place(&self) -> bool {
        let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
        let at_path = std::fs::symlink_metadata(&self.path).map(identity);
        let ours = self.file.metadata().map(identity);
        matches!((at_path, ours), (Ok(at_path), Ok(ours)) if at_path == ours)
    }

    fn error(&self, doing: &'static str, source: io::Error) -> EventError {
        system(&self.name, &self.path, doing, source)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // Alone means: under the exclusive lock, so nobody opens it between the look and the removal.
        if matches!(self.is_alone(), Ok(true)) && self.is_in_place() {
            // Left in place it would be made anew by the next one who creates it.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

fn system(name: &str, path: &Path, doing: &'static str, source: io::Error) -> EventError {
    EventError::System { name: name.to_owned(), doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
