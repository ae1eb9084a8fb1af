//! Opening a disk so that nobody else can: the barrier behind which a storage engine may write.
//!
//! A block device is opened O_EXCL, a file is locked (`flock`); claim and lock belong to the *open file
//! description* that carries the I/O, not to the process. The kernel keeps that description for as long as a
//! request on it is under way, whatever became of the process. So a disk that could be opened here has no
//! write of a dead engine still to come.
//!
//! The same storage may be there under other names ([`siblings`]): those are claimed as well, and kept for as long as the disk
//! is. Who opens one of them finds it claimed; and who had it open before, or has I/O there still to come, has its claim. Each
//! opener takes his own name first and the others then, so of two at a time at least one sees the other.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::TargetFile;
use crate::block_stack::{BlockDevice, DeviceNumber};
use crate::contents::{self, Finding, FindingKind};
use crate::system_tree::SystemTree;
use crate::{descriptors, siblings};

/// How often to look whether a disk that nobody holds any more is free.
const RETRY: Duration = Duration::from_millis(20);
/// Descriptors that it takes at a time to look who else uses a disk.
const LOOKS: usize = 4;

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
    /// Claims on the other names of the same storage.
    pub other_names: OtherNames,
}

impl ExclusiveDisk {
    /// For a queue; and what is to be kept for as long as that has the disk.
    pub fn into_target(self) -> (TargetFile, OtherNames) {
        let target = TargetFile {
            descriptor: self.descriptor,
            path: self.path,
            size: self.size,
            priority: None,
            mapping: None,
        };
        (target, self.other_names)
    }
}

/// Claims on the other names of storage that is ours alone. While they are kept, nobody else opens it by one of those.
#[derive(Debug, Default)]
#[must_use = "whoever drops it lets others have the disk under another name"]
pub struct OtherNames(Vec<OwnedFd>);

impl OtherNames {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps those as well.
    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
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
    /// The same storage has another name, and nobody can tell whether that is in use.
    #[error(
        "disk {} is the same storage as {}, which cannot be opened: nobody can tell whether that is in use",
        path.display(),
        other.display()
    )]
    #[diagnostic(code(plumb::io::disk_other_name))]
    OtherName {
        /// Which.
        path: PathBuf,
        /// Its other name.
        other: PathBuf,
        /// Why.
        source: io::Error,
        /// What to do.
        #[help]
        remedy: String,
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
        let owner = match try_open(path)? {
            Some(mut disk) => {
                // Without descriptors nobody would be seen who uses it.
                descriptors::probe(LOOKS).map_err(|errno| refused(path, errno))?;
                // Those that O_EXCL and locks do not keep away.
                let others = users(disk.descriptor.as_fd(), path, tree, true)
                    .or_else(|| users_behind(&disk, tree));
                if let Some(owner) = others {
                    return Err(ExclusiveError::InUse { path: path.into(), owner });
                }
                if let Some(names) = claim_names(&disk, tree)? {
                    disk.other_names = names;
                    return Ok(disk);
                }
                users_by_name(disk.descriptor.as_fd(), tree)
            }
            None => {
                let looker = rustix::fs::open(
                    path,
                    OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK,
                    Mode::empty(),
                );
                let looker = match looker {
                    Err(errno) if descriptors::is_shortage(&errno.into()) => {
                        return Err(refused(path, errno));
                    }
                    other => other.ok(),
                };
                looker.and_then(|fd| {
                    users(fd.as_fd(), path, tree, false).or_else(|| users_by_name(fd.as_fd(), tree))
                })
            }
        };
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

/// Claims the other names of a block device's storage; `None` when somebody has one of them.
fn claim_names(
    disk: &ExclusiveDisk,
    tree: &SystemTree,
) -> Result<Option<OtherNames>, ExclusiveError> {
    let Some(device) = device_of(disk.descriptor.as_fd(), tree) else {
        return Ok(Some(OtherNames::default()));
    };
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut names = Vec::new();
    for sibling in siblings::of(tree, &device) {
        let other = sibling.node();
        match rustix::fs::open(&other, flags, Mode::empty()) {
            Ok(name) => names.push(name),
            Err(Errno::BUSY) if is_claimed_beside(tree, &device, &sibling) => {}
            Err(Errno::BUSY) => return Ok(None),
            // A path that leads nowhere now: nobody has it open.
            Err(Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM | Errno::IO) => {}
            Err(errno) if descriptors::is_shortage(&errno.into()) => {
                return Err(refused(&other, errno));
            }
            Err(errno) => {
                let remedy = match errno {
                    Errno::NOENT => format!(
                        "let this program have {} as well, or take that off",
                        other.display()
                    ),
                    other => remedy(other).to_owned(),
                };
                let (path, source) = (disk.path.clone(), errno.into());
                return Err(ExclusiveError::OtherName { path, other, source, remedy });
            }
        }
    }
    Ok(Some(OtherNames(names)))
}

/// Whether another name of a device's storage is claimed by somebody who has another part of what that shows, and is not used
/// itself: he lets nobody have it, and it would claim the device.
fn is_claimed_beside(tree: &SystemTree, device: &BlockDevice, name: &BlockDevice) -> bool {
    let is_used = |one: &BlockDevice| {
        alive(contents::uses_of_device(tree, one.number), tree).is_some()
            || holds(|found| is_device(found, one.number))
    };
    let is_beside = |part: &&BlockDevice| !siblings::overlap(tree, part, device);
    !is_used(name) && siblings::of(tree, name).iter().filter(is_beside).any(is_used)
}

/// The block device that is open, if it is one.
fn device_of(descriptor: BorrowedFd<'_>, tree: &SystemTree) -> Option<BlockDevice> {
    let found = rustix::fs::fstat(descriptor).ok()?;
    let is_device = FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
    is_device.then(|| BlockDevice::find(tree, DeviceNumber::from_raw(found.st_rdev)))?
}

fn is_device(found: &rustix::fs::Stat, number: DeviceNumber) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice
        && DeviceNumber::from_raw(found.st_rdev) == number
}

/// Who uses the storage of a block device under another name, in words.
fn users_by_name(descriptor: BorrowedFd<'_>, tree: &SystemTree) -> Option<String> {
    let device = device_of(descriptor, tree)?;
    siblings::of(tree, &device).into_iter().find_map(|other| {
        let name = other.title(tree);
        let alive = alive(contents::uses_of_device(tree, other.number), tree);
        let found = alive.map(|alive| format!("it is the same storage as {name}: {alive}"));
        let ours = || holds(|found| is_device(found, other.number));
        found.or_else(|| ours().then(|| format!("this program has it open already, as {name}")))
    })
}

/// Who uses it, in words; processes that are ending do not count. `locked`: the lock that this process holds
/// is its own.
fn users(
    descriptor: BorrowedFd<'_>,
    path: &Path,
    tree: &SystemTree,
    locked: bool,
) -> Option<String> {
    let alive = alive(contents::uses(descriptor, path, tree), tree);
    if alive.is_some() {
        return alive;
    }
    let ours = !locked && holds_itself(descriptor);
    ours.then(|| "this program has it open already".to_owned())
}

/// Those of the findings that speak of a use by somebody who is not ending.
fn alive(found: Vec<Finding>, tree: &SystemTree) -> Option<String> {
    let alive: Vec<String> = found
        .into_iter()
        .filter(|finding| finding.kind == FindingKind::InUse)
        .map(|finding| finding.what)
        .filter(|what| !is_ending(what, tree))
        .collect();
    (!alive.is_empty()).then(|| alive.join("; "))
}

/// Who has locked the file behind a loop device: what is written to one appears in the other.
fn users_behind(disk: &ExclusiveDisk, tree: &SystemTree) -> Option<String> {
    let device = device_of(disk.descriptor.as_fd(), tree)?;
    let (path, _) = contents::file_behind(tree, &device)?;
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
    holds(|other| identity(other) == identity(&ours))
}

/// Whether this process has something of that kind open for writing.
fn holds(is_it: impl Fn(&rustix::fs::Stat) -> bool) -> bool {
    let Ok(folder) = std::fs::read_dir("/proc/self/fd") else { return false };
    folder.filter_map(Result::ok).any(|entry| {
        let Ok(other) = rustix::fs::stat(entry.path()) else { return false };
        let name = entry.file_name();
        let info = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(name));
        let info = info.unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let writes = flags.is_some_and(|flags| flags.trim().ends_with(['1', '2', '5', '6']));
        is_it(&other) && writes
    })
}

fn refused(path: &Path, errno: Errno) -> ExclusiveError {
    let source = io::Error::from(errno);
    let remedy = match descriptors::is_shortage(&source) {
        true => descriptors::remedy(&source),
        false => remedy(errno).to_owned(),
    };
    ExclusiveError::Open { path: path.into(), source, remedy }
}

/// One attempt; `None` when somebody else has it.
fn try_open(path: &Path) -> Result<Option<ExclusiveDisk>, ExclusiveError> {
    let refused = |errno: Errno| refused(path, errno);
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
    if is_device {
        // Only the opening was not to wait: Linux 5.12 to 6.4 refuse each I/O that would on devices which cannot tell, as those of dm-crypt.
        let flags = rustix::fs::fcntl_getfl(&descriptor).map_err(refused)?;
        rustix::fs::fcntl_setfl(&descriptor, flags - OFlags::NONBLOCK).map_err(refused)?;
    }
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
        other_names: OtherNames::default(),
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

/// Whether what is open cannot be written whoever asks: a block device that is set read-only, a file that is immutable or in a file
/// system that is mounted read-only.
#[must_use]
pub fn is_read_only(file: impl AsFd, path: &Path, tree: &SystemTree) -> bool {
    match rustix::fs::fstat(&file) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice => {
            let (major, minor) =
                (rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev));
            tree.number(format!("sys/dev/block/{major}:{minor}/ro")) == Some(1)
        }
        Ok(_) => {
            let asked = rustix::fs::access(path, rustix::fs::Access::WRITE_OK);
            matches!(asked, Err(Errno::ROFS | Errno::PERM))
        }
        Err(_) => false,
    }
}

fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT => "check the path; is the disk connected?",
        Errno::ACCESS | Errno::PERM => "run as a user who may open it (root for block devices)",
        Errno::ROFS => "its file system is mounted read-only, or it is a device that is set so",
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
