//! Making test files (spec 6.3): every byte is written, so nothing stale is ever read; incompressible
//! unless zeroes are asked for; several threads, past the page cache where the file system allows it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plumb_io::BufferPlacement;
use plumb_sys::memory::Block;
use plumb_units::{Bytes, convert};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::profile::model::{PrecreateFiles, RawProfile, WriteContent};
use crate::rng::Rng;

/// Bytes per write.
const CHUNK: u64 = 1 << 20;
/// Threads that write one file.
const WRITERS: u64 = 4;

/// What new files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Bytes that neither compress nor repeat.
    Random,
    /// Zeroes (`-Z`).
    Zero,
}

impl Fill {
    /// What a file of a target with this write content is filled with.
    #[must_use]
    pub fn of(content: &WriteContent) -> Self {
        if *content == WriteContent::Zero { Self::Zero } else { Self::Random }
    }
}

/// A test file that could not be made.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum CreateError {
    /// The file cannot be opened for writing.
    #[error("cannot create '{}'", path.display())]
    #[diagnostic(code(plumb::load::create))]
    Open {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// The file system is too full.
    #[error("no space for '{}': {} asked for, {} free", path.display(), Bytes(*size).in_words(), Bytes(*free).in_words())]
    #[diagnostic(
        code(plumb::load::create_no_space),
        help("choose a smaller -c<size> or another file system")
    )]
    NoSpace {
        /// Which file.
        path: PathBuf,
        /// Bytes asked for.
        size: u64,
        /// Bytes free.
        free: u64,
    },
    /// Writing failed.
    #[error("cannot write '{}' ({} of {} bytes done)", path.display(), done, size)]
    #[diagnostic(code(plumb::load::create_write), help("{remedy}"))]
    Write {
        /// Which file.
        path: PathBuf,
        /// Bytes asked for.
        size: u64,
        /// Bytes written.
        done: u64,
        /// Why.
        source: io::Error,
        /// What was done, and what to do.
        remedy: &'static str,
    },
    /// Told to stop.
    #[error("the creation of '{}' was interrupted", path.display())]
    #[diagnostic(code(plumb::load::create_interrupted), help("the half-made file was removed"))]
    Interrupted {
        /// Which file.
        path: PathBuf,
    },
}

/// How far a creation has come, and the word to stop it.
#[derive(Debug, Default)]
pub struct Creation {
    /// Bytes written.
    pub done: AtomicU64,
    /// Stop.
    pub stop: AtomicBool,
}

/// A file that was opened to be made.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: OwnedFd,
    /// Whether it was not there before.
    pub is_new: bool,
    folders: NewFolders,
}

impl Opened {
    /// Removes what was made for it, as far as nobody else uses it by now: the file, if it is new, and the
    /// directories above it.
    pub fn unmake(&self, path: &Path) {
        if self.is_new {
            remove_if_same(self.file.as_fd(), path);
        }
        self.folders.remove();
    }
}

/// Directories that were made, the deepest first.
#[derive(Debug, Default)]
struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    /// Makes `folder` and what is missing above it; on an error what was made is gone again.
    fn make(folder: &Path) -> io::Result<Self> {
        let is_missing =
            |folder: &&Path| !folder.as_os_str().is_empty() && folder.symlink_metadata().is_err();
        let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
        let mut made = Self::default();
        for folder in missing.into_iter().rev() {
            match std::fs::create_dir(folder) {
                Ok(()) => made.0.insert(0, folder.to_owned()),
                // `a/..` is there once `a` is; another process may have made it, too.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
                Err(error) => {
                    made.remove();
                    return Err(error);
                }
            }
        }
        // Names what is in the way where nothing is missing.
        std::fs::create_dir_all(folder).inspect_err(|_| made.remove())?;
        Ok(made)
    }

    /// Best effort: one that holds something by now stays, and the error that led here is the one to report.
    fn remove(&self) {
        for folder in &self.0 {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Opens `path` for creation: parent directories are made, an existing file is kept as it is.
///
/// # Errors
/// When a directory or the file cannot be made or opened; then no new directory stays.
pub fn open_for_creation(path: &Path) -> Result<Opened, CreateError> {
    let failed = |source: io::Error| {
        let remedy = match source.kind() {
            io::ErrorKind::PermissionDenied if path.exists() => {
                "you may not write to this file: choose another name".to_owned()
            }
            io::ErrorKind::PermissionDenied => {
                "choose a directory that you may write to".to_owned()
            }
            _ if path.as_os_str().is_empty() => "name a file".to_owned(),
            io::ErrorKind::AlreadyExists if path.is_symlink() => {
                "it is a symbolic link that leads nowhere: remove it, or make what it points to"
                    .to_owned()
            }
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                "a part of the path is a file: name a file in a directory".to_owned()
            }
            io::ErrorKind::IsADirectory => "name a file in that directory".to_owned(),
            io::ErrorKind::ReadOnlyFilesystem => {
                "choose a file system mounted read-write".to_owned()
            }
            _ => "check the path".to_owned(),
        };
        CreateError::Open { path: path.into(), source, remedy }
    };
    let folders = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => NewFolders::make(parent).map_err(failed)?,
        None => NewFolders::default(),
    };
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let opened = match rustix::fs::open(path, flags, mode) {
        Ok(file) => Ok((file, false)),
        Err(Errno::NOENT) => rustix::fs::open(path, flags | OFlags::CREATE | OFlags::EXCL, mode)
            .map(|file| (file, true)),
        Err(errno) => Err(errno),
    };
    match opened {
        Ok((file, is_new)) => Ok(Opened { file, is_new, folders }),
        Err(errno) => {
            folders.remove();
            Err(failed(errno.into()))
        }
    }
}

/// Whether `size` bytes fit where the file is, with what it holds now given up for them. Nothing is
/// changed: to take the space and see would take it from everybody else for a moment.
///
/// # Errors
/// When they do not.
pub fn check_space(file: BorrowedFd<'_>, path: &Path, size: u64) -> Result<(), CreateError> {
    let Ok(system) = rustix::fs::fstatvfs(file) else { return Ok(()) };
    if system.f_blocks == 0 {
        // Some file systems do not say.
        return Ok(());
    }
    let held = rustix::fs::fstat(file).map_or(0, |found| found.st_blocks.cast_unsigned() * 512);
    let free = (system.f_bavail * system.f_frsize).saturating_add(held);
    if size > free { Err(CreateError::NoSpace { path: path.into(), size, free }) } else { Ok(()) }
}

/// Empties the file, gives it `size` bytes and writes every one of them. Once it is empty, the file is
/// removed on any error, so that no half-made one stays.
///
/// # Errors
/// No space, a failed write, or [`Creation::stop`].
pub fn create(
    file: BorrowedFd<'_>,
    path: &Path,
    size: u64,
    fill: Fill,
    creation: &Creation,
) -> Result<(), CreateError> {
    rustix::fs::ftruncate(file, 0).map_err(|errno| CreateError::Open {
        path: path.into(),
        source: errno.into(),
        remedy: "nothing was changed; choose another file".to_owned(),
    })?;
    let outcome = fill_file(file, path, size, fill, creation);
    if outcome.is_err() {
        remove_if_same(file, path);
    }
    outcome
}

fn fill_file(
    file: BorrowedFd<'_>,
    path: &Path,
    size: u64,
    fill: Fill,
    creation: &Creation,
) -> Result<(), CreateError> {
    let write_error = |errno: Errno| match errno {
        Errno::NOSPC | Errno::DQUOT => {
            let free = rustix::fs::fstatvfs(file).map_or(0, |fs| fs.f_bavail * fs.f_frsize);
            CreateError::NoSpace { path: path.into(), size, free }
        }
        _ => CreateError::Write {
            path: path.into(),
            size,
            done: creation.done.load(Ordering::Relaxed),
            source: errno.into(),
            remedy: match errno {
                Errno::FBIG => {
                    "the half-made file was removed; choose a smaller -c<size>, or raise the limit on the \
                     size of files (ulimit -f, or the file system's own)"
                }
                _ => "the half-made file was removed",
            },
        },
    };
    // Space is taken up front: a file that does not fit is known before the first byte is written.
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, size) {
        Ok(()) => {}
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            rustix::fs::ftruncate(file, size).map_err(write_error)?;
        }
        Err(errno) => return Err(write_error(errno)),
    }
    let direct = reopen(file, OFlags::WRONLY | OFlags::DIRECT);
    let next = AtomicU64::new(0);
    let seed = content_seed();
    let failures: Vec<Errno> = std::thread::scope(|scope| {
        let writers = WRITERS.min(size.div_ceil(CHUNK)).max(1);
        let threads: Vec<_> = (0..writers)
            .map(|_| {
                scope.spawn(|| {
                    write_chunks(file, direct.as_ref().ok(), size, fill, seed, &next, creation)
                })
            })
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().expect("writers do not panic").err())
            .collect()
    });
    if let Some(errno) = failures.first() {
        return Err(write_error(*errno));
    }
    if creation.stop.load(Ordering::Relaxed) {
        return Err(CreateError::Interrupted { path: path.into() });
    }
    // What is still dirty would be written back during the measurement.
    rustix::fs::fsync(file).map_err(write_error)
}

/// Takes chunks in turn and writes them until none is left.
fn write_chunks(
    buffered: BorrowedFd<'_>,
    direct: Option<&OwnedFd>,
    size: u64,
    fill: Fill,
    seed: u64,
    next: &AtomicU64,
    creation: &Creation,
) -> Result<(), Errno> {
    let mut block = Block::new(CHUNK, BufferPlacement::System)?;
    loop {
        let chunk = next.fetch_add(1, Ordering::Relaxed);
        let Some(offset) = chunk.checked_mul(CHUNK).filter(|offset| *offset < size) else {
            return Ok(());
        };
        if creation.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let length = CHUNK.min(size - offset);
        let bytes = &mut block.bytes_mut()[..convert::to_usize(length)];
        if fill == Fill::Random {
            Rng::new(seed.wrapping_add(chunk.wrapping_mul(0x9e37_79b9_7f4a_7c15))).fill_fast(bytes);
        }
        write_all(buffered, direct, bytes, offset).inspect_err(|_| {
            creation.stop.store(true, Ordering::Relaxed);
        })?;
        creation.done.fetch_add(length, Ordering::Relaxed);
    }
}

/// Writes past the page cache where the file system takes it, else through it.
fn write_all(
    buffered: BorrowedFd<'_>,
    direct: Option<&OwnedFd>,
    mut bytes: &[u8],
    mut offset: u64,
) -> Result<(), Errno> {
    let mut target = match direct {
        Some(direct) if bytes.len().is_multiple_of(4096) => direct.as_fd(),
        _ => buffered,
    };
    while !bytes.is_empty() {
        match rustix::io::pwrite(target, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += convert::to_u64(written);
                if !written.is_multiple_of(4096) {
                    target = buffered;
                }
            }
            Err(Errno::INTR) => {}
            Err(Errno::INVAL) if target.as_raw_fd() != buffered.as_raw_fd() => target = buffered,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Opens the very file behind a descriptor anew, whatever its path names by now.
///
/// # Errors
/// What `open` says; `ENOENT` without /proc.
pub fn reopen(file: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(link, flags | OFlags::CLOEXEC, Mode::empty())
}

/// Removes `path` if it still names the file behind the descriptor.
fn remove_if_same(file: BorrowedFd<'_>, path: &Path) {
    let (Ok(open), Ok(named)) = (rustix::fs::fstat(file), rustix::fs::lstat(path)) else { return };
    if (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino) {
        // Best effort: the error that led here is the one to report.
        let _ = std::fs::remove_file(path);
    }
}

/// Different for every file, so that equal files are not equal to a deduplicating store.
fn content_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let [_, _, _, _, _, _, _, _, low @ ..] = now.map_or(0, |now| now.as_nanos()).to_be_bytes();
    u64::from_be_bytes(low) ^ (u64::from(std::process::id()) << 32)
}

/// Files to make before the first time span, with their sizes and content (spec 6.3): once per
/// distinct path, in order of first appearance.
#[must_use]
pub fn precreate_list(profile: &RawProfile) -> Vec<(String, u64, Fill)> {
    let Some(policy) = profile.precreate else { return Vec::new() };
    let mut paths: Vec<(&str, Vec<(u64, Fill)>)> = Vec::new();
    for target in profile.time_spans.iter().flat_map(|span| &span.targets) {
        let seen = (target.file_size.unwrap_or(0), Fill::of(&target.write_content));
        match paths.iter_mut().find(|(path, _)| *path == target.path) {
            Some((_, sizes)) => sizes.push(seen),
            None => paths.push((&target.path, vec![seen])),
        }
    }
    let chosen = paths.into_iter().filter_map(|(path, seen)| {
        let fill = seen[0].1;
        let max = seen.iter().map(|(size, _)| *size).max().unwrap_or(0);
        let agree = seen.iter().all(|(_, other)| *other == fill);
        let fits = match policy {
            PrecreateFiles::UseMaxSize => true,
            PrecreateFiles::OnlyConstantSizes => seen.iter().all(|(size, _)| *size == max),
            PrecreateFiles::OnlyConstantOrZeroSizes => {
                seen.iter().all(|(size, _)| *size == max || *size == 0)
            }
        };
        (agree && fits && max > 0).then(|| (path.to_owned(), max, fill))
    });
    chosen.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::model::{Target, TimeSpan};

    fn check(policy: PrecreateFiles, sizes: &[Option<u64>], want: Option<u64>) {
        let spans = sizes.iter().map(|size| TimeSpan {
            targets: vec![Target { path: "f".into(), file_size: *size, ..Target::default() }],
            ..TimeSpan::default()
        });
        let profile = RawProfile {
            precreate: Some(policy),
            time_spans: spans.collect(),
            ..RawProfile::default()
        };
        let got = precreate_list(&profile);
        assert_eq!(got.first().map(|(_, size, _)| *size), want, "{policy:?} {sizes:?}");
    }

    #[test]
    fn files_are_made_once_under_each_policy() {
        use PrecreateFiles::{OnlyConstantOrZeroSizes, OnlyConstantSizes, UseMaxSize};
        check(UseMaxSize, &[Some(10), Some(30), None], Some(30));
        check(OnlyConstantSizes, &[Some(30), Some(30)], Some(30));
        check(OnlyConstantSizes, &[Some(30), None], None);
        check(OnlyConstantOrZeroSizes, &[Some(30), Some(0), None], Some(30));
        check(OnlyConstantOrZeroSizes, &[Some(30), Some(20)], None);
        check(UseMaxSize, &[None, Some(0)], None);
    }

    #[test]
    fn a_new_file_is_full_of_bytes_that_do_not_repeat() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/er/file.dat");
        let Opened { file, is_new: new, .. } = open_for_creation(&path).expect("made");
        let size = 3 * CHUNK + 4099;
        let creation = Creation::default();
        create(file.as_fd(), &path, size, Fill::Random, &creation).expect("written");
        let bytes = std::fs::read(&path).expect("readable");
        assert!(new);
        assert_eq!(convert::to_u64(bytes.len()), size);
        assert_eq!(creation.done.load(Ordering::Relaxed), size);
        let mut pages: Vec<&[u8]> = bytes.chunks(512).collect();
        let count = pages.len();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), count, "512-byte pieces repeat");
        assert!(pages.iter().all(|page| page.iter().any(|byte| *byte != 0)));
    }

    #[test]
    fn a_stopped_creation_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let Opened { file, .. } = open_for_creation(&path).expect("made");
        let creation = Creation::default();
        creation.stop.store(true, Ordering::Relaxed);
        let outcome = create(file.as_fd(), &path, CHUNK, Fill::Zero, &creation);
        assert!(matches!(outcome, Err(CreateError::Interrupted { .. })), "{outcome:?}");
        assert!(!path.exists());
    }

    #[test]
    fn what_does_not_fit_is_known_before_anything_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, [7; 5000]).expect("a file");
        let Opened { file, is_new, .. } = open_for_creation(&path).expect("opened");
        assert!(!is_new);
        let system = rustix::fs::fstatvfs(&file).expect("a file system");
        let before = system.f_bavail * system.f_frsize;
        match check_space(file.as_fd(), &path, 1 << 50) {
            // Others write here, too: near is near enough.
            Err(CreateError::NoSpace { size, free, .. }) => {
                assert_eq!(size, 1 << 50);
                assert!(free > before / 2 && free / 2 < before, "{free} of {before}");
            }
            other => panic!("{other:?}"),
        }
        check_space(file.as_fd(), &path, 4096).expect("room for a page");
        assert_eq!(std::fs::read(&path).expect("still there"), [7; 5000]);
    }

    #[test]
    fn a_file_that_cannot_fit_is_refused_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let Opened { file, .. } = open_for_creation(&path).expect("made");
        let outcome = create(file.as_fd(), &path, 1 << 50, Fill::Random, &Creation::default());
        let told = matches!(outcome, Err(CreateError::NoSpace { .. } | CreateError::Write { .. }));
        assert!(told, "{outcome:?}");
        assert!(!path.exists());
    }

    #[test]
    fn folders_that_were_made_for_nothing_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = || {
            let entries = std::fs::read_dir(folder.path()).expect("a folder").flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        std::fs::create_dir(folder.path().join("kept")).expect("a folder");
        for name in ["a/b/c/f", "kept/b/f", "f", "a/../b/./f"] {
            let path = folder.path().join(name);
            let opened = open_for_creation(&path).expect("made");
            assert!(opened.is_new && path.exists());
            opened.unmake(&path);
            assert_eq!(names(), ["kept"], "{name}");
        }
        // What others put there meanwhile stays.
        let path = folder.path().join("a/b/f");
        let opened = open_for_creation(&path).expect("made");
        std::fs::write(folder.path().join("a/other"), "").expect("a file");
        opened.unmake(&path);
        assert!(folder.path().join("a/other").exists() && !folder.path().join("a/b").exists());
        // A name that cannot be.
        let path = folder.path().join("c/d").join("x".repeat(300));
        open_for_creation(&path).expect_err("too long a name");
        open_for_creation(&path.join("f")).expect_err("too long a name of a folder");
        assert_eq!(names(), ["a", "kept"]);
        // A file that was there is none of ours.
        let path = folder.path().join("kept/f");
        std::fs::write(&path, "7").expect("a file");
        open_for_creation(&path).expect("opened").unmake(&path);
        assert_eq!(std::fs::read(&path).expect("still there"), b"7");
    }
}
