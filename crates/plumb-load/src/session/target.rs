//! Opening targets and finding out how large they are (spec 6.4, 11.1, 11.3).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use plumb_io::block_stack::{self, BlockStack};
use plumb_io::system_tree::SystemTree;
use plumb_io::{DSYNC, IoPriority, MappingFlush, MappingSpec, TargetFile};
use rustix::fs::{Advice, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::alignment::check_alignment;
use super::create::reopen;
use crate::plan::Access;
use crate::profile::model::{CacheMode, FlushType, Target};

/// Size of a target that is not opened (`null`, `nop`) and has no `-c`.
pub const NO_TARGET_SIZE: u64 = 1 << 30;

/// A target of the time span, opened once for the checks; threads open it anew through this
/// descriptor, so nobody can slip another file under its path.
#[derive(Debug)]
pub struct OpenTarget {
    /// Where it is.
    pub path: PathBuf,
    /// The descriptor of the checks; `None` when the engine opens no target.
    pub descriptor: Option<OwnedFd>,
    /// Bytes.
    pub size: u64,
    /// Whether it is a block device.
    pub is_device: bool,
    /// What lies under it.
    pub stack: BlockStack,
    /// Whether it is the opener's own, and no file.
    pub is_own: bool,
}

/// A target that cannot be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum TargetError {
    /// It cannot be opened.
    #[error("cannot open '{}'", path.display())]
    #[diagnostic(code(plumb::load::open))]
    Open {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// It is something else than a file or block device.
    #[error("'{}' is a {kind}: a target is a regular file or a block device", path.display())]
    #[diagnostic(code(plumb::load::not_a_target))]
    Kind {
        /// Which one.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// It has no bytes.
    #[error("'{}' is empty (0 bytes)", path.display())]
    #[diagnostic(code(plumb::load::empty))]
    Empty {
        /// Which one.
        path: PathBuf,
        /// What to do.
        #[help]
        remedy: &'static str,
    },
    /// `#1` or `d:` without a mapping.
    #[error("'{form}' names a drive as Windows does; Linux has no such name for it")]
    #[diagnostic(
        code(plumb::load::drive),
        help(
            "use a path such as /dev/disk/by-id/…, or set {variable}=/dev/disk/by-id/… to give the \
             name a meaning (a file of that name is ./{form})"
        )
    )]
    Drive {
        /// As typed.
        form: String,
        /// The environment variable that would map it.
        variable: String,
    },
    /// O_DIRECT is refused.
    #[error("cannot open '{}' past the page cache (O_DIRECT)", path.display())]
    #[diagnostic(
        code(plumb::load::direct_unsupported),
        help(
            "use ext4, XFS, btrfs or a block device, or pass -Sb to measure the page cache on purpose"
        )
    )]
    DirectUnsupported {
        /// Which one.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Unbuffered I/O that the device cannot take.
    #[error(
        "{what} of {value} bytes on '{}' is not a multiple of its logical block of {granule} bytes, \
         which I/O past the page cache (-Su, -Sh) needs",
        path.display()
    )]
    #[diagnostic(
        code(plumb::load::unaligned),
        help("make {what} a multiple of {granule}, or pass -Sb to go through the page cache")
    )]
    Unaligned {
        /// Which one.
        path: PathBuf,
        /// `block size (-b)` and the like.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What it must be a multiple of.
        granule: u64,
    },
    /// `-fr`, `-fs`.
    #[error("the system does not take the hint {hint} for '{}'", path.display())]
    #[diagnostic(code(plumb::load::hint), help("leave out {hint}"))]
    Hint {
        /// Which one.
        path: PathBuf,
        /// The option.
        hint: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Mapping a device.
    #[error("'{}' is a block device: memory mapping (-Sm) is for files", path.display())]
    #[diagnostic(code(plumb::load::map_device), help("name a file, or leave out -Sm"))]
    MapDevice {
        /// Which one.
        path: PathBuf,
    },
    /// `--poll`.
    #[error("'{}' cannot be polled for completions (--poll): {why}", path.display())]
    #[diagnostic(code(plumb::load::poll))]
    Poll {
        /// Which one.
        path: PathBuf,
        /// What is missing.
        why: String,
        /// What to do.
        #[help]
        remedy: &'static str,
    },
    /// `-SY`.
    #[error("BypassIO does not exist on Linux, and '{}' asks for all of it (-SY)", path.display())]
    #[diagnostic(
        code(plumb::load::bypass_io),
        help("pass -Sy to run without it, with a mark in the result")
    )]
    BypassIo {
        /// Which one.
        path: PathBuf,
    },
    /// `-Sr` on a mount that caches here.
    #[error("'{}' is on {kind}, which caches on this machine (-Sr wants no local cache)", path.display())]
    #[diagnostic(code(plumb::load::local_cache))]
    LocalCache {
        /// Which one.
        path: PathBuf,
        /// Its file system.
        kind: String,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// `-Sr` on a file system of this machine.
    #[error("'{}' is on {filesystem}: -Sr disables the cache of remote file systems only", path.display())]
    #[diagnostic(
        code(plumb::load::not_remote),
        help("use -Su to go past the page cache, or name a file on NFS or SMB")
    )]
    NotRemote {
        /// Which one.
        path: PathBuf,
        /// Its file system.
        filesystem: String,
    },
}

/// The path behind a target's name: `#<n>` and `<letter>:` need a mapping from the environment
/// (`PLUMB_DRIVE_<n>`, `PLUMB_DRIVE_<LETTER>`; spec 11.3).
///
/// # Errors
/// When there is none.
pub fn resolve(name: &str) -> Result<PathBuf, TargetError> {
    let drive = match (name.strip_prefix('#'), name.as_bytes()) {
        (Some(number), _) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            number
        }
        (_, [letter, b':']) if letter.is_ascii_alphabetic() => &name[..1],
        _ => return Ok(name.into()),
    };
    let variable = format!("PLUMB_DRIVE_{}", drive.to_ascii_uppercase());
    match std::env::var_os(&variable) {
        Some(path) if !path.is_empty() => Ok(path.into()),
        _ => Err(TargetError::Drive { form: name.into(), variable }),
    }
}

/// Opens an existing file or block device just to see what it is.
///
/// # Errors
/// What the kernel says; EINVAL for anything else than files and block devices.
pub(super) fn open_to_look(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CLOEXEC | OFlags::NONBLOCK;
    let kind = FileType::from_raw_mode(rustix::fs::stat(path)?.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::BlockDevice) {
        return Err(Errno::INVAL);
    }
    rustix::fs::open(path, flags | OFlags::RDONLY, Mode::empty())
        .or_else(|_| rustix::fs::open(path, flags | OFlags::WRONLY, Mode::empty()))
}

/// Opens a target for the checks; it must exist.
///
/// # Errors
/// When it cannot be opened, is no file or block device, or is empty.
pub fn open(target: &Target, path: &Path, tree: &SystemTree) -> Result<OpenTarget, TargetError> {
    let flags = OFlags::CLOEXEC | OFlags::NONBLOCK;
    let access = match Access::of(target) {
        Access::Read => OFlags::RDONLY,
        Access::Write | Access::Both => OFlags::RDWR,
    };
    let descriptor = match rustix::fs::open(path, flags | access, Mode::empty()) {
        Err(Errno::ACCESS) if Access::of(target) == Access::Write => {
            rustix::fs::open(path, flags | OFlags::WRONLY, Mode::empty())
        }
        other => other,
    };
    let descriptor = match descriptor {
        Ok(descriptor) => descriptor,
        Err(Errno::ISDIR) => {
            let remedy = format!("name a file in it, e.g. {}/testfile.dat", path.display());
            return Err(TargetError::Kind { path: path.into(), kind: "directory", remedy });
        }
        Err(errno) => return Err(open_error(path, errno)),
    };
    let status = rustix::fs::fstat(&descriptor).map_err(|errno| open_error(path, errno))?;
    let kind = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => None,
        FileType::BlockDevice => {
            let end = rustix::fs::SeekFrom::End(0);
            let size =
                rustix::fs::seek(&descriptor, end).map_err(|errno| open_error(path, errno))?;
            return finish(path, descriptor, size, true, tree);
        }
        FileType::Directory => Some("directory"),
        FileType::CharacterDevice => Some("character device"),
        FileType::Fifo => Some("named pipe"),
        FileType::Socket => Some("socket"),
        _ => Some("file of an unknown kind"),
    };
    if let Some(kind) = kind {
        let remedy = if kind == "directory" {
            format!("name a file in it, e.g. {}/testfile.dat", path.display())
        } else {
            "name a regular file or a block device".to_owned()
        };
        return Err(TargetError::Kind { path: path.into(), kind, remedy });
    }
    finish(path, descriptor, u64::try_from(status.st_size).unwrap_or(0), false, tree)
}

/// A file that is not there yet, or whose content will be made anew: what is known from its folder.
pub(super) fn to_be_made(path: &Path, tree: &SystemTree) -> OpenTarget {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let flags = OFlags::CLOEXEC | OFlags::RDONLY | OFlags::DIRECTORY;
    let descriptor = rustix::fs::open(folder, flags, Mode::empty()).ok();
    let stack = descriptor.as_ref().map(|folder| block_stack::underlying(folder.as_fd(), tree));
    let stack = stack.and_then(Result::ok).unwrap_or_default();
    OpenTarget { path: path.into(), descriptor, size: 0, is_device: false, stack, is_own: false }
}

/// What to do about a target without bytes: not every file system has files that can be given some.
fn remedy_for_empty(descriptor: &OwnedFd) -> &'static str {
    const TMPFS: i128 = 0x0102_1994;
    let system = rustix::fs::fstatfs(descriptor);
    // What the kernel makes up while it is read (/proc, /sys) takes no room; a tmpfs may have no limit.
    let is_made_up =
        |system: &rustix::fs::StatFs| system.f_blocks == 0 && i128::from(system.f_type) != TMPFS;
    if system.is_ok_and(|system| is_made_up(&system)) {
        "the kernel makes up what is read from it, and nothing of that is on storage: name a file of a \
         file system on disks, or a block device"
    } else {
        "create it with -c<size>, e.g. -c1G"
    }
}

fn finish(
    path: &Path,
    descriptor: OwnedFd,
    size: u64,
    is_device: bool,
    tree: &SystemTree,
) -> Result<OpenTarget, TargetError> {
    if size == 0 {
        return Err(TargetError::Empty {
            path: path.into(),
            remedy: if is_device {
                "nothing is behind it now: attach it (losetup), or name a device that has a medium"
            } else {
                remedy_for_empty(&descriptor)
            },
        });
    }
    let stack = block_stack::underlying(descriptor.as_fd(), tree).unwrap_or_default();
    Ok(OpenTarget {
        path: path.into(),
        descriptor: Some(descriptor),
        size,
        is_device,
        stack,
        is_own: false,
    })
}

fn open_error(path: &Path, errno: Errno) -> TargetError {
    let remedy = match errno {
        Errno::NOENT => "create it with -c<size>, e.g. -c1G, or check the path".to_owned(),
        Errno::ACCESS => "run as a user who may open it (root for block devices)".to_owned(),
        Errno::PERM => {
            "not even root may: an immutable file, a container's rules for devices, or a kernel that keeps \
             disks in use closed"
                .to_owned()
        }
        Errno::ROFS => "its file system is mounted read-only: use -w0".to_owned(),
        Errno::BUSY => "it is in use by someone else (mounted, or opened exclusively)".to_owned(),
        Errno::MFILE => {
            "raise the limit (ulimit -n), or use fewer threads and targets: each thread opens its own"
                .to_owned()
        }
        Errno::TXTBSY => "it is a program that is running, or an active swap file".to_owned(),
        _ => "check the path".to_owned(),
    };
    TargetError::Open { path: path.into(), source: errno.into(), remedy }
}

/// Checks what a file that is about to be made must allow: direct I/O at all, and these lengths.
///
/// # Errors
/// When it cannot be opened past the page cache, or when a length or an offset is no multiple of the logical block.
pub fn check_direct(target: &Target, file: BorrowedFd<'_>, path: &Path) -> Result<(), TargetError> {
    if target.cache == CacheMode::NoOsCache
        && let Err(errno @ Errno::INVAL) = reopen(file, OFlags::RDONLY | OFlags::DIRECT)
    {
        return Err(TargetError::DirectUnsupported { path: path.into(), source: errno.into() });
    }
    check_alignment(target, file, path, false)
}

/// Something of the opener's own under a name: it has no file, no blocks below, and is as fixed as a device.
///
/// # Errors
/// When it is to be mapped, or is not accessed in whole sectors.
pub fn own(target: &Target, size: u64) -> Result<OpenTarget, TargetError> {
    let path = PathBuf::from(&target.path);
    if target.memory_mapped {
        return Err(TargetError::MapDevice { path });
    }
    let figures = [
        ("block size (-b)", u64::from(target.block_size)),
        ("alignment or stride (-r, -s)", target.alignment),
        ("base offset (-B)", target.base_file_offset),
        ("thread stride (-T)", target.thread_stride),
    ];
    for (what, value) in figures {
        if !value.is_multiple_of(OWN_SECTOR) {
            return Err(TargetError::Unaligned { path, what, value, granule: OWN_SECTOR });
        }
    }
    let (is_device, stack) = (true, BlockStack::default());
    Ok(OpenTarget { path, descriptor: None, size, is_device, stack, is_own: true })
}

/// Bytes that accesses to what is the opener's own are multiples of.
const OWN_SECTOR: u64 = 512;

/// The handle of a thread to what is the opener's own: a descriptor that carries the flags, and the name.
fn own_handle(target: &Target, open: &OpenTarget) -> Result<TargetFile, TargetError> {
    let mut flags = match Access::of(target) {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
        Access::Both => OFlags::RDWR,
    };
    if target.write_through {
        flags |= DSYNC;
    }
    let null = Path::new("/dev/null");
    let descriptor = rustix::fs::open(null, flags | OFlags::CLOEXEC, Mode::empty());
    let descriptor = descriptor.map_err(|errno| open_error(null, errno))?;
    let (path, size) = (open.path.clone(), open.size);
    Ok(TargetFile { descriptor, path, size, priority: None, mapping: None })
}

/// Opens the handle of a thread: the very file that was checked, with the flags of the target.
///
/// # Errors
/// When the kernel refuses the flags.
pub fn open_handle(target: &Target, open: &OpenTarget) -> Result<Option<TargetFile>, TargetError> {
    if open.is_own {
        return own_handle(target, open).map(Some);
    }
    let Some(descriptor) = &open.descriptor else { return Ok(None) };
    if target.memory_mapped && open.is_device {
        return Err(TargetError::MapDevice { path: open.path.clone() });
    }
    let access = Access::of(target);
    let mut flags = match access {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
        Access::Both => OFlags::RDWR,
    };
    let direct = target.cache == CacheMode::NoOsCache;
    if direct {
        flags |= OFlags::DIRECT;
    }
    if target.write_through && !target.memory_mapped {
        flags |= DSYNC;
    }
    let handle = match reopen(descriptor.as_fd(), flags) {
        Ok(handle) => handle,
        Err(errno @ Errno::INVAL) if direct => {
            let path = open.path.clone();
            return Err(TargetError::DirectUnsupported { path, source: errno.into() });
        }
        // Without /proc the path is opened again and must still name the same file.
        Err(Errno::NOENT | Errno::NOTDIR) => open_same(&open.path, descriptor, flags)?,
        Err(errno) => return Err(open_error(&open.path, errno)),
    };
    if access != Access::Write {
        leave_access_time(&handle);
    }
    advise(target, &handle, &open.path)?;
    let mapping = target.memory_mapped.then(|| MappingSpec {
        writable: access.writes(),
        write_through: target.write_through,
        flush: match target.flush {
            None => MappingFlush::None,
            Some(FlushType::ViewOfFile) => MappingFlush::ViewOfFile,
            Some(FlushType::NonVolatileMemory) => MappingFlush::NonVolatileMemory,
            Some(FlushType::NonVolatileMemoryNoDrain) => MappingFlush::NonVolatileMemoryNoDrain,
        },
    });
    Ok(Some(TargetFile {
        descriptor: handle,
        path: open.path.clone(),
        size: open.size,
        priority: priority(target),
        mapping,
    }))
}

/// Keeps reads from being noted in the file: that is work, and now and then a write, that nobody asked for
/// (docs/decisions/0026). Only a file's owner may have it so; for others nothing changes.
fn leave_access_time(handle: &OwnedFd) {
    if let Ok(flags) = rustix::fs::fcntl_getfl(handle) {
        let _ = rustix::fs::fcntl_setfl(handle, flags | OFlags::NOATIME);
    }
}

/// The priority that a target asks for; `None`: what everybody has (spec 11.2).
pub(super) fn priority(target: &Target) -> Option<IoPriority> {
    match target.io_priority {
        1 => Some(IoPriority::Idle),
        2 => Some(IoPriority::BestEffort(7)),
        _ => None,
    }
}

fn open_same(path: &Path, checked: &OwnedFd, flags: OFlags) -> Result<OwnedFd, TargetError> {
    let failed = |errno| open_error(path, errno);
    let handle = rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
    let (ours, theirs) =
        (rustix::fs::fstat(checked).map_err(failed)?, rustix::fs::fstat(&handle).map_err(failed)?);
    if (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino) {
        Ok(handle)
    } else {
        Err(failed(Errno::STALE))
    }
}

/// The option and its hint (spec 11.1).
fn advice(target: &Target) -> Option<(&'static str, Advice)> {
    match (target.random_access, target.sequential_scan) {
        (true, _) => Some(("-fr", Advice::Random)),
        (false, true) => Some(("-fs", Advice::Sequential)),
        (false, false) => None,
    }
}

/// `-fr`, `-fs`.
fn advise(target: &Target, handle: &OwnedFd, path: &Path) -> Result<(), TargetError> {
    let Some((hint, advice)) = advice(target) else { return Ok(()) };
    rustix::fs::fadvise(handle, 0, None, advice).map_err(|errno| TargetError::Hint {
        path: path.into(),
        hint,
        source: errno.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_and_hints_are_those_of_the_table() {
        let of = |io_priority| priority(&Target { io_priority, ..Target::default() });
        assert_eq!(of(1), Some(IoPriority::Idle));
        assert_eq!(of(2), Some(IoPriority::BestEffort(7)));
        assert_eq!(of(3), None);
        let of = |random_access, sequential_scan| {
            let target = Target { random_access, sequential_scan, ..Target::default() };
            advice(&target).map(|(option, advice)| (option, advice as u32))
        };
        let number = |advice: Advice| advice as u32;
        assert_eq!(of(true, false), Some(("-fr", number(Advice::Random))));
        assert_eq!(of(false, true), Some(("-fs", number(Advice::Sequential))));
        assert_ne!(number(Advice::Random), number(Advice::Sequential));
        assert_eq!(of(false, false), None);
    }

    #[test]
    fn drives_of_windows_need_a_mapping() {
        for form in ["#1", "d:", "Z:"] {
            assert!(matches!(resolve(form), Err(TargetError::Drive { .. })), "{form}");
        }
        for path in ["./d:", "#", "#1a", "dd:", "d:x", "/dev/sda"] {
            assert_eq!(resolve(path).expect("a path"), Path::new(path));
        }
    }

    #[test]
    fn threads_open_what_was_checked_whatever_its_path_leads_to_now() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, [1; 4096]).expect("written");
        for write_ratio in [0, 50, 100] {
            let target = Target { write_ratio, ..Target::default() };
            let checked = open(&target, &path, &SystemTree::default()).expect("opened");
            let other = folder.path().join("other");
            std::fs::write(&other, [2; 4096]).expect("written");
            let old = folder.path().join(format!("old{write_ratio}"));
            std::fs::rename(&path, &old).expect("moved away");
            std::fs::rename(&other, &path).expect("another under its name");
            let handle = open_handle(&target, &checked).expect("opened").expect("a file");
            let number =
                |found: rustix::io::Result<rustix::fs::Stat>| found.expect("it is there").st_ino;
            let opened = number(rustix::fs::fstat(&handle.descriptor));
            assert_eq!(opened, number(rustix::fs::stat(&old)), "{write_ratio} % writes");
            assert_ne!(opened, number(rustix::fs::stat(&path)), "{write_ratio} % writes");
        }
    }

    #[test]
    fn what_is_no_target_is_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = Target::default();
        let says = |path: &Path| {
            open(&read, path, &SystemTree::default()).expect_err("no target").to_string()
        };
        assert!(says(folder.path()).contains("is a directory"));
        assert!(says(Path::new("/dev/null")).contains("character device"));
        assert!(says(&folder.path().join("none")).contains("cannot open"));
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "").expect("written");
        assert!(says(&empty).contains("empty"));
    }
}
