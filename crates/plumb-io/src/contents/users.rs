//! Who uses a device or a file right now: mounts, swap, devices made of it, loop devices, locks,
//! programs that have it open for writing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::block_stack::{BlockDevice, DeviceNumber, Mounts, btrfs_file_systems, unescape};
use crate::mark;
use crate::siblings;
use crate::system_tree::SystemTree;

use super::{Finding, FindingKind};

/// All uses of a block device, of its partitions, and of what is made of them, through any depth.
pub(super) fn of_device(tree: &SystemTree, target: &BlockDevice) -> Vec<Finding> {
    let mut findings = Vec::new();
    let family = family(tree, target, &mut findings);
    let uses = [mounts, file_systems, swaps, loops, openers];
    findings.extend(uses.iter().flat_map(|uses| uses(tree, &family)));
    findings
}

/// Uses of a block device's storage under its other names: the file behind a loop device, and other devices that show what it
/// does.
pub(super) fn by_other_names(tree: &SystemTree, target: &BlockDevice) -> Vec<Finding> {
    let mut findings = Vec::new();
    for other in siblings::of(tree, target) {
        let name = other.title(tree);
        let uses = of_device(tree, &other).into_iter();
        findings.extend(uses.map(|used| {
            let what = format!("it is the same storage as {name}: {}", used.what);
            in_use(what, target.title(tree))
        }));
    }
    if let Some((path, found)) = file_behind(tree, target) {
        findings.extend(lasting_lock_holders(tree, &found).into_iter().map(|process| {
            let path = path.display();
            in_use(
                format!("the file behind it, {path}: {process} has locked it"),
                target.title(tree),
            )
        }));
    }
    findings
}

/// The file in which a device's bytes lie, through loop devices upon loop devices.
pub(crate) fn file_behind(tree: &SystemTree, target: &BlockDevice) -> Option<(PathBuf, Stat)> {
    if !tree.is_real() {
        return None;
    }
    let mut device = target.clone();
    loop {
        let path = BlockDevice::find(tree, device.disk)?.backing_file(tree)?;
        let found = rustix::fs::stat(&path).ok()?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::BlockDevice => {
                device = BlockDevice::find(tree, DeviceNumber::from_raw(found.st_rdev))?;
            }
            _ => return Some((path, found)),
        }
    }
}

fn in_use(what: String, place: String) -> Finding {
    Finding { kind: FindingKind::InUse, what, place }
}

/// The device and all that would change with it: partitions of a disk, whatever is made of them, and
/// so on. Devices made of others are findings by themselves. The disk of a partition counts too, for
/// whatever is on the whole disk is on the partition; its other partitions do not.
fn family(
    tree: &SystemTree,
    target: &BlockDevice,
    findings: &mut Vec<Finding>,
) -> BTreeMap<DeviceNumber, BlockDevice> {
    let mut family = BTreeMap::new();
    let mut stack = vec![target.clone()];
    if target.is_partition()
        && let Some(disk) = BlockDevice::find(tree, target.disk)
    {
        stack.extend(users(tree, &disk, findings));
        family.insert(disk.number, disk);
    }
    while let Some(device) = stack.pop() {
        if family.contains_key(&device.number) {
            continue;
        }
        stack.extend(device.partitions(tree));
        stack.extend(users(tree, &device, findings));
        family.insert(device.number, device);
    }
    family
}

/// The devices that are made of `device`, each a finding.
fn users(tree: &SystemTree, device: &BlockDevice, findings: &mut Vec<Finding>) -> Vec<BlockDevice> {
    let holders = device.holders(tree);
    for holder in &holders {
        let maker = holder.maker(tree).map_or_else(String::new, |maker| format!("{maker} device "));
        let what = format!("it is part of {maker}{}", holder.title(tree));
        findings.push(in_use(what, device.title(tree)));
    }
    holders
}

type Family = BTreeMap<DeviceNumber, BlockDevice>;

fn mounts(tree: &SystemTree, family: &Family) -> Vec<Finding> {
    let mounts = Mounts::read(tree);
    mounts
        .iter()
        .filter_map(|mount| {
            let device = family.get(&mount.device)?;
            let what = format!("it is mounted on {} ({})", mount.point.display(), mount.kind);
            Some(in_use(what, device.title(tree)))
        })
        .collect()
}

/// File systems on several devices, whose mounts show a made-up device number.
fn file_systems(tree: &SystemTree, family: &Family) -> Vec<Finding> {
    const BCACHEFS: &str = "/sys/fs/bcachefs";
    let mut used: Vec<(DeviceNumber, String)> = Vec::new();
    for (uuid, devices) in btrfs_file_systems(tree) {
        used.extend(devices.into_iter().map(|device| (device, format!("btrfs {uuid}"))));
    }
    for uuid in tree.names(BCACHEFS) {
        let Some(uuid) = uuid.to_str() else { continue };
        for member in tree.names(format!("{BCACHEFS}/{uuid}")) {
            let Some(member) = member.to_str().filter(|name| name.starts_with("dev-")) else {
                continue;
            };
            let number = tree.text(format!("{BCACHEFS}/{uuid}/{member}/block/dev"));
            let number = number.and_then(|text| text.parse().ok());
            used.extend(number.map(|number| (number, format!("bcachefs {uuid}"))));
        }
    }
    used.into_iter()
        .filter_map(|(number, name)| {
            let device = family.get(&number)?;
            Some(in_use(
                format!("it is part of the mounted file system {name}"),
                device.title(tree),
            ))
        })
        .collect()
}

/// Paths of active swap space, as named when it was switched on.
fn swap_paths(tree: &SystemTree) -> Vec<PathBuf> {
    let text = tree.text("/proc/swaps").unwrap_or_default();
    let first_words = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    first_words.map(|path| PathBuf::from(unescape(path))).collect()
}

fn swaps(tree: &SystemTree, family: &Family) -> Vec<Finding> {
    swap_paths(tree)
        .iter()
        .filter_map(|path| {
            let device = family.values().find(|device| is_node_of(tree, path, device))?;
            Some(in_use("it is active swap space".to_owned(), device.title(tree)))
        })
        .collect()
}

/// Whether a path names the device: by number on a real machine, by name in a faked tree.
fn is_node_of(tree: &SystemTree, path: &Path, device: &BlockDevice) -> bool {
    if !tree.is_real() {
        return path == device.node();
    }
    let found = rustix::fs::stat(path);
    found.is_ok_and(|found| {
        rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::BlockDevice
            && DeviceNumber::from_raw(found.st_rdev) == device.number
    })
}

/// A loop device in use, and what is behind it.
struct Loop {
    name: String,
    path: PathBuf,
    /// (`st_dev`, inode, `st_rdev`), if the loop device may be asked.
    backing: Option<plumb_sys::device::LoopBacking>,
}

fn loops_in_use(tree: &SystemTree) -> Vec<Loop> {
    tree.names("/sys/class/block")
        .into_iter()
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.starts_with("loop"))
        .filter_map(|name| {
            let path = tree.text(format!("/sys/class/block/{name}/loop/backing_file"))?;
            let node = Path::new("/dev").join(&name);
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let device = tree.is_real().then(|| rustix::fs::open(&node, flags, Mode::empty()));
            let backing = device
                .and_then(Result::ok)
                .and_then(|device| plumb_sys::device::loop_backing(device).ok());
            Some(Loop { name, path: PathBuf::from(path), backing })
        })
        .collect()
}

fn loops(tree: &SystemTree, family: &Family) -> Vec<Finding> {
    loops_in_use(tree)
        .iter()
        .filter_map(|used| {
            let device = family.values().find(|device| match used.backing {
                Some(backing) => DeviceNumber::from_raw(backing.block_device) == device.number,
                None => is_node_of(tree, &used.path, device),
            })?;
            let what = format!("it is behind the loop device /dev/{}", used.name);
            Some(in_use(what, device.title(tree)))
        })
        .collect()
}

/// Other programs that have a device of the family open for writing. Not all can be seen without
/// root; readers are no concern (monitoring and udev are such).
fn openers(tree: &SystemTree, family: &Family) -> Vec<Finding> {
    let ourselves = std::process::id().to_string();
    let mut findings = Vec::new();
    for process in tree.names("/proc") {
        let Some(process) = process.to_str().filter(|name| name.parse::<u32>().is_ok()) else {
            continue;
        };
        if process == ourselves {
            continue;
        }
        let folder = format!("/proc/{process}/fd");
        for descriptor in tree.names(&folder) {
            let Some(descriptor) = descriptor.to_str() else { continue };
            // Looked at by name first: asking a descriptor itself may hang with a dead server.
            let Ok(path) = std::fs::read_link(tree.path(format!("{folder}/{descriptor}"))) else {
                continue;
            };
            if !path.starts_with("/dev") || !is_writer(tree, process, descriptor) {
                continue;
            }
            if let Some(device) = family.values().find(|device| is_node_of(tree, &path, device)) {
                let name = tree.text(format!("/proc/{process}/comm")).unwrap_or_default();
                let what = format!("process {process} ({name}) has it open for writing");
                findings.push(in_use(what, device.title(tree)));
            }
        }
    }
    findings.dedup();
    findings
}

/// Whether a descriptor was opened for writing: the lowest two bits of the flags, in octal.
fn is_writer(tree: &SystemTree, process: &str, descriptor: &str) -> bool {
    let info = tree.text(format!("/proc/{process}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.is_some_and(|flags| flags.trim().ends_with(['1', '2', '5', '6']))
}

/// Uses of a regular file.
pub(super) fn of_file(tree: &SystemTree, path: &Path, found: &Stat) -> Vec<Finding> {
    let place = path.display().to_string();
    let is_it = |other: &Path| {
        let other = rustix::fs::stat(other);
        other.is_ok_and(|other| (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino))
    };
    let mut findings = Vec::new();
    for used in loops_in_use(tree) {
        let is_behind = match used.backing {
            Some(backing) => (backing.device, backing.inode) == (found.st_dev, found.st_ino),
            None => is_it(&used.path),
        };
        if is_behind {
            let what = format!("it is behind the loop device /dev/{}", used.name);
            findings.push(in_use(what, place.clone()));
        }
    }
    if swap_paths(tree).iter().any(|swap| is_it(swap)) {
        findings.push(in_use("it is active swap space".to_owned(), place.clone()));
    }
    for process in lasting_lock_holders(tree, found) {
        findings.push(in_use(format!("{process} has locked it"), place.clone()));
    }
    findings
}

/// Who holds a lock on a file and does not let go of it: another run that is about to write there locks the file for as
/// long as it takes to read and write the file's mark.
fn lasting_lock_holders(tree: &SystemTree, found: &Stat) -> Vec<String> {
    let deadline = Instant::now() + mark::TURN;
    loop {
        let holders = lock_holders(tree, found);
        if holders.is_empty() || Instant::now() >= deadline {
            return holders;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Who holds a lock on a file, from /proc/locks:
/// `1: POSIX  ADVISORY  WRITE 708 08:01:4789 0 EOF`, device in hexadecimal, -1 for locks that belong
/// to an open file and not to a process.
fn lock_holders(tree: &SystemTree, found: &Stat) -> Vec<String> {
    let number = DeviceNumber::from_raw(found.st_dev);
    let wanted = format!("{:02x}:{:02x}:{}", number.major, number.minor, found.st_ino);
    let ourselves = std::process::id().to_string();
    let text = tree.text("/proc/locks").unwrap_or_default();
    let mut holders: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let place = words.iter().position(|word| *word == wanted)?;
            let process = *words.get(place.checked_sub(1)?)?;
            if process == ourselves || words.get(1) == Some(&"->") {
                return None;
            }
            Some(match tree.text(format!("/proc/{process}/comm")) {
                Some(name) => format!("process {process} ({name})"),
                None => "another program".to_owned(),
            })
        })
        .collect();
    holders.sort();
    holders.dedup();
    holders
}
