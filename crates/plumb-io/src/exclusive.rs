//! Opening a disk so that nobody else can: the barrier behind which a storage engine may write.
//!
//! A block device is opened O_EXCL, a file is locked (`flock`); claim and lock belong to the *open file
//! description* that carries the I/O, not to the process. The kernel keeps that description for as long as a
//! request on it is under way, whatever became of the process. So a disk that could be opened here has no
//! write of a dead engine still to come.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::TargetFile;
use crate::block_stack::{BlockDevice, DeviceNumber};
use crate::contents::{self, FindingKind};
use crate::system_tree::SystemTree;

/// How often to look whether a disk that nobody holds any more is free.
const RETRY: Duration = Duration::from_millis(20);

/// A disk that is ours alone.
#[derive(Debug)]
pub struct ExclusiveDisk {
    /// The descriptor that holds the claim: all I/O goes through it.
    pub descriptor: OwnedFd,
    /// As it was named.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// Whether it is a block device.
    pub is_device: bool,
    /// Whether I/O goes past the page cache.
    pub direct: bool,
    /// Bytes of the smallest I/O.
    pub logical_sector: u32,
    /// Bytes of the smallest I/O that is not read-modify-write on the medium.
    pub physical_sector: u32,
    /// Whether it has moving parts, as far as the kernel knows.
    pub rotational: Option<bool>,
}

impl ExclusiveDisk {
    /// For a queue.
    #[must_use]
    pub fn into_target(self) -> TargetFile {
        TargetFile {
            descriptor: self.descriptor,
            path: self.path,
            size: self.size,
            priority: None,
            mapping: None,
        }
    }
}

/// Why a disk cannot be had.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ExclusiveError {
    /// The kernel refuses.
    #[error("cannot open disk {}", path.display())]
    #[diagnostic(code(plumb::io::disk_open))]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// Neither file nor block device.
    #[error("{} is neither a regular file nor a block device", path.display())]
    #[diagnostic(code(plumb::io::disk_kind), help("name a disk, a partition or a file"))]
    Kind {
        /// Which.
        path: PathBuf,
    },
    /// Somebody has it.
    #[error("disk {} is in use: {owner}", path.display())]
    #[diagnostic(
        code(plumb::io::disk_in_use),
        help(
            "only one program at a time works with a disk: end that one first, or name another disk"
        )
    )]
    InUse {
        /// Which.
        path: PathBuf,
        /// By whom, in words.
        owner: String,
    },
    /// A program that is gone has left I/O behind which the device has yet to answer.
    #[error(
        "disk {} still performs I/O of a program that has ended ({waited:?} waited)",
        path.display()
    )]
    #[diagnostic(
        code(plumb::io::disk_dying),
        help(
            "it is free when the device has answered: try again, and see the kernel's log if it never does"
        )
    )]
    Busy {
        /// Which.
        path: PathBuf,
        /// How long.
        waited: Duration,
    },
}

/// Opens a disk for this program alone. Waits up to `patience` for I/O of programs that have ended.
///
/// # Errors
/// When it is in use, cannot be opened, or is no disk.
pub fn open(
    path: &Path,
    patience: Duration,
    tree: &SystemTree,
) -> Result<ExclusiveDisk, ExclusiveError> {
    let began = Instant::now();
    loop {
        match try_open(path)? {
            Some(disk) => {
                // Those that O_EXCL and locks do not keep away.
                let others = users(disk.descriptor.as_fd(), path, tree, true)
                    .or_else(|| users_behind(&disk, tree));
                if let Some(owner) = others {
                    return Err(ExclusiveError::InUse { path: path.into(), owner });
                }
                return Ok(disk);
            }
            None => {
                let looker = rustix::fs::open(
                    path,
                    OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK,
                    Mode::empty(),
                );
                let owner = looker.ok().and_then(|fd| users(fd.as_fd(), path, tree, false));
                if let Some(owner) = owner {
                    return Err(ExclusiveError::InUse { path: path.into(), owner });
                }
                let waited = began.elapsed();
                if waited >= patience {
                    return Err(ExclusiveError::Busy { path: path.into(), waited });
                }
                std::thread::sleep(RETRY);
            }
        }
    }
}

/// Who uses it, in words; processes that are ending do not count. `locked`: the lock that this process holds
/// is its own.
fn users(
    descriptor: BorrowedFd<'_>,
    path: &Path,
    tree: &SystemTree,
    locked: bool,
) -> Option<String> {
    let found = contents::uses(descriptor, path, tree);
    let alive: Vec<String> = found
        .into_iter()
        .filter(|finding| finding.kind == FindingKind::InUse)
        .map(|finding| finding.what)
        .filter(|what| !is_ending(what, tree))
        .collect();
    if !alive.is_empty() {
        return Some(alive.join("; "));
    }
    let ours = !locked && holds_itself(descriptor);
    ours.then(|| "this program has it open already".to_owned())
}

/// Who has locked the file behind a loop device: what is written to one appears in the other.
fn users_behind(disk: &ExclusiveDisk, tree: &SystemTree) -> Option<String> {
    let found = rustix::fs::fstat(&disk.descriptor).ok().filter(|_| disk.is_device)?;
    let device = BlockDevice::find(tree, DeviceNumber::from_raw(found.st_rdev))?;
    let whole = BlockDevice::find(tree, device.disk)?;
    let path = whole.backing_file(tree)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(&path, flags, Mode::empty()).ok()?;
    let status = rustix::fs::fstat(&file).ok()?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return None;
    }
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => {
            let owner = users(file.as_fd(), &path, tree, true);
            let owner = owner.unwrap_or_else(|| "another program has locked it".to_owned());
            Some(format!("the file behind it, {}: {owner}", path.display()))
        }
        _ => None,
    }
}

/// Whether a finding speaks of a process that was killed and waits for its last I/O.
fn is_ending(what: &str, tree: &SystemTree) -> bool {
    // A lock outlives the process that took it until the last I/O on its file has ended.
    if what == contents::UNKNOWN_LOCK {
        return true;
    }
    let Some(rest) = what.strip_prefix("process ") else { return false };
    let Some(process) = rest.split(' ').next() else { return false };
    let status = tree.text(format!("/proc/{process}/status")).unwrap_or_default();
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let state = value("State:").unwrap_or("X");
    let killed = |key| {
        let mask = value(key).and_then(|mask| u64::from_str_radix(mask, 16).ok());
        mask.is_some_and(|mask| mask >> 8 & 1 == 1)
    };
    state.starts_with(['Z', 'X']) || killed("SigPnd:") || killed("ShdPnd:") || {
        // A process that is on its way out has no memory left to speak of.
        value("VmSize:").is_none() && value("Kthread:") != Some("1")
    }
}

/// Whether this process itself has it open for writing elsewhere.
fn holds_itself(descriptor: BorrowedFd<'_>) -> bool {
    let Ok(ours) = rustix::fs::fstat(descriptor) else { return false };
    let identity = |found: &rustix::fs::Stat| (found.st_dev, found.st_ino, found.st_rdev);
    let Ok(folder) = std::fs::read_dir("/proc/self/fd") else { return false };
    folder.filter_map(Result::ok).any(|entry| {
        let Ok(other) = rustix::fs::stat(entry.path()) else { return false };
        let name = entry.file_name();
        let info = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(name));
        let info = info.unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let writes = flags.is_some_and(|flags| flags.trim().ends_with(['1', '2', '5', '6']));
        identity(&other) == identity(&ours) && writes
    })
}

/// One attempt; `None` when somebody else has it.
fn try_open(path: &Path) -> Result<Option<ExclusiveDisk>, ExclusiveError> {
    let refused = |errno: Errno| ExclusiveError::Open {
        path: path.into(),
        source: errno.into(),
        remedy: remedy(errno).to_owned(),
    };
    let found = rustix::fs::stat(path).map_err(refused)?;
    let is_device = match FileType::from_raw_mode(found.st_mode) {
        FileType::BlockDevice => true,
        FileType::RegularFile => false,
        _ => return Err(ExclusiveError::Kind { path: path.into() }),
    };
    let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    if is_device {
        flags |= OFlags::EXCL;
    }
    let opened = match rustix::fs::open(path, flags | OFlags::DIRECT, Mode::empty()) {
        Err(Errno::INVAL) => rustix::fs::open(path, flags, Mode::empty()).map(|fd| (fd, false)),
        other => other.map(|fd| (fd, true)),
    };
    let (descriptor, direct) = match opened {
        Err(Errno::BUSY) if is_device => return Ok(None),
        other => other.map_err(refused)?,
    };
    if !is_device {
        match rustix::fs::flock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            other => other.map_err(refused)?,
        }
    }
    // The path may lead elsewhere by now; what is open counts.
    let found = rustix::fs::fstat(&descriptor).map_err(refused)?;
    let size = match is_device {
        true => plumb_sys::device::block_device_bytes(&descriptor).map_err(refused)?,
        false => u64::try_from(found.st_size).unwrap_or(0),
    };
    let (logical_sector, physical_sector, rotational) = match is_device {
        true => sectors(&descriptor, DeviceNumber::from_raw(found.st_rdev)),
        false => (512, 4096, None),
    };
    Ok(Some(ExclusiveDisk {
        descriptor,
        path: path.into(),
        size,
        is_device,
        direct,
        logical_sector,
        physical_sector,
        rotational,
    }))
}

fn sectors(device: &OwnedFd, number: DeviceNumber) -> (u32, u32, Option<bool>) {
    let tree = SystemTree::default();
    let logical = rustix::fs::ioctl_blksszget(device).unwrap_or(512);
    let physical = rustix::fs::ioctl_blkpbszget(device).unwrap_or(logical);
    let disk = BlockDevice::find(&tree, number).map(|device| device.disk);
    let text = disk.and_then(|disk| {
        tree.number(format!("/sys/dev/block/{}:{}/queue/rotational", disk.major, disk.minor))
    });
    (logical, physical, text.map(|value| value == 1))
}

/// Bytes of the smallest I/O that a crash leaves old or new, as far as is known of what is open: a block device's
/// physical sector, and 512 of a file, for nobody knows what is below its file system.
#[must_use]
pub fn atomic_sector(file: impl AsFd) -> u32 {
    let is_device =
        |found: &rustix::fs::Stat| FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
    let device = rustix::fs::fstat(&file).is_ok_and(|found| is_device(&found));
    if device { rustix::fs::ioctl_blkpbszget(&file).unwrap_or(512).max(512) } else { 512 }
}

fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT => "check the path; is the disk connected?",
        Errno::ACCESS | Errno::PERM => "run as a user who may open it (root for block devices)",
        Errno::ROFS => "its file system is mounted read-only",
        Errno::TXTBSY => "it is a program that is running, or an active swap file",
        _ => "check the path",
    }
}

/// Offset of the first byte of a file that was ever written; `None` when all of it is a hole.
///
/// # Errors
/// When the file system cannot tell.
pub fn first_data(file: impl AsFd) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(0)) {
        Ok(first) => Ok(Some(first)),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}
