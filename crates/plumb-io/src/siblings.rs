//! Block devices that are the same storage under other names: loop devices of which one shows what the other does, and paths to
//! one disk. What is written to one of them appears in the other, and the kernel keeps nobody from that.
//!
//! Each device is followed down to where its bytes lie: from a partition to its disk, from a loop device to its file or device.
//! Two that end in the same place, in ranges that overlap, are siblings.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use crate::block_stack::{BlockDevice, DeviceNumber};
use crate::system_tree::SystemTree;

/// Loop devices upon loop devices are followed so far.
const DEPTH: u32 = 16;
/// sysfs counts sizes and starts in these.
const SECTOR: u64 = 512;

/// Where a device's bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    base: Base,
    bytes: Range<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    /// A file behind a loop device: `st_dev` and inode.
    File(u64, u64),
    /// One that cannot be asked, by the name that it was attached by.
    Named(PathBuf),
    /// A disk, by its world-wide name and its size.
    Disk(String, u64),
    /// A device that has no such name.
    Device(DeviceNumber),
}

impl Place {
    fn overlaps(&self, other: &Self) -> bool {
        let common = |a: &Range<u64>, b: &Range<u64>| a.start < b.end && b.start < a.end;
        self.base == other.base && common(&self.bytes, &other.bytes)
    }

    fn holds(&self, other: &Self) -> bool {
        self.bytes.start <= other.bytes.start && other.bytes.end <= self.bytes.end
    }
}

/// The other names of the storage that `device` shows, or of a part of it. Where a whole disk is one and `device` is a part of
/// it, the partitions there that overlap.
#[must_use]
pub fn of(tree: &SystemTree, device: &BlockDevice) -> Vec<BlockDevice> {
    let own = place(tree, device);
    let mut found = Vec::new();
    for other in wholes(tree).filter(|other| other.number != device.disk) {
        let all = place(tree, &other);
        if !all.overlaps(&own) {
            continue;
        }
        let parts = other.partitions(tree).into_iter();
        let parts: Vec<_> = parts.filter(|part| place(tree, part).overlaps(&own)).collect();
        if own.holds(&all) || parts.is_empty() {
            found.push(other);
        } else {
            found.extend(parts);
        }
    }
    found
}

/// Whether two devices have bytes in common.
#[must_use]
pub fn overlap(tree: &SystemTree, one: &BlockDevice, other: &BlockDevice) -> bool {
    place(tree, one).overlaps(&place(tree, other))
}

/// All block devices that are no partitions, in the order of their names.
fn wholes(tree: &SystemTree) -> impl Iterator<Item = BlockDevice> {
    const FOLDER: &str = "/sys/class/block";
    tree.names(FOLDER).into_iter().filter_map(move |name| {
        let name = name.to_str()?;
        let number = tree.text(format!("{FOLDER}/{name}/dev"))?.parse().ok()?;
        BlockDevice::find(tree, number).filter(|device| !device.is_partition())
    })
}

fn place(tree: &SystemTree, device: &BlockDevice) -> Place {
    let size = |device: &BlockDevice| sectors(tree, device, "size").saturating_mul(SECTOR);
    let len = size(device);
    let mut start = 0_u64;
    let mut at = device.clone();
    let ends = |base, start: u64| Place { base, bytes: start..start.saturating_add(len) };
    for _ in 0..DEPTH {
        let below = if at.is_partition() {
            start = start.saturating_add(sectors(tree, &at, "start").saturating_mul(SECTOR));
            BlockDevice::find(tree, at.disk)
        } else if let Some(path) = at.backing_file(tree) {
            start = start.saturating_add(sectors(tree, &at, "loop/offset"));
            match backing(tree, &at, &path) {
                Base::Device(number) => BlockDevice::find(tree, number),
                file => return ends(file, start),
            }
        } else {
            None
        };
        match below {
            Some(below) => at = below,
            None => break,
        }
    }
    let name = world_wide_name(tree, &at);
    let base = name.map_or(Base::Device(at.number), |name| Base::Disk(name, size(&at)));
    ends(base, start)
}

fn sectors(tree: &SystemTree, device: &BlockDevice, name: &str) -> u64 {
    tree.number(format!("{}/{name}", folder(device))).unwrap_or(0)
}

fn folder(device: &BlockDevice) -> String {
    format!("/sys/dev/block/{}", device.number)
}

/// What is behind a loop device that was attached to `path`. The device itself knows it better: a name may lead elsewhere by now.
fn backing(tree: &SystemTree, device: &BlockDevice, path: &Path) -> Base {
    if !tree.is_real() {
        let name = path.strip_prefix("/dev").ok().and_then(Path::to_str);
        let number = name.and_then(|name| tree.text(format!("/sys/class/block/{name}/dev")));
        let number = number.and_then(|number| number.parse().ok());
        return number.map_or_else(|| Base::Named(path.into()), Base::Device);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::fs::open(device.node(), flags, Mode::empty());
    let told = opened.and_then(plumb_sys::device::loop_backing);
    if let Ok(told) = told {
        let number = DeviceNumber::from_raw(told.block_device);
        let is_device = number.major != 0 && told.block_device != told.device;
        return match is_device {
            true => Base::Device(number),
            false => Base::File(told.device, told.inode),
        };
    }
    match rustix::fs::stat(path) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice => {
            Base::Device(DeviceNumber::from_raw(found.st_rdev))
        }
        Ok(found) => Base::File(found.st_dev, found.st_ino),
        Err(_) => Base::Named(path.into()),
    }
}

/// The name that no other disk in the world has.
fn world_wide_name(tree: &SystemTree, device: &BlockDevice) -> Option<String> {
    let names = ["wwid", "device/wwid"];
    let mut names = names.iter().filter_map(|name| tree.text(format!("{}/{name}", folder(device))));
    names.find(|name| is_telling(name))
}

/// Whether a name tells one disk from all others. Cheap bridges and emulated disks have names without a number, or with one
/// that all of their kind have.
fn is_telling(name: &str) -> bool {
    let Some((kind, rest)) = name.split_once('.') else { return false };
    let varied = |digits: &str| {
        let mut digits = digits.chars().filter(char::is_ascii_hexdigit);
        let first = digits.next();
        first.is_some_and(|first| digits.any(|other| other != first))
    };
    match kind {
        // The first digit of an NAA is its format.
        "naa" => rest.len() >= 16 && varied(rest.get(1..).unwrap_or_default()),
        "eui" | "uuid" => rest.len() >= 16 && varied(rest),
        // Vendor, serial number, model, namespace; the number is text, in hexadecimal.
        "nvme" => rest.split('-').nth(1).is_some_and(|serial| {
            let is_blank = |pair: &[u8]| matches!(pair, b"00" | b"20" | b"30");
            !serial.is_empty() && !serial.as_bytes().chunks(2).all(is_blank)
        }),
        // Vendor, model, serial number.
        "t10" => {
            let words: Vec<&str> = rest.split_whitespace().collect();
            let has_number =
                |word: &&&str| word.chars().any(|letter| ('1'..='9').contains(&letter));
            words.len() >= 3 && words.last().filter(has_number).is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    /// The siblings of a device, by name.
    fn check(fake: &FakeTree, device: &str, siblings: &[&str]) {
        let tree = fake.tree();
        let number = tree.text(format!("/sys/class/block/{device}/dev")).expect("made before");
        let number = number.parse().expect("a number");
        let device = BlockDevice::find(&tree, number).expect("made before");
        let found = of(&tree, &device);
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert!(found.iter().all(|one| overlap(&tree, one, &device)), "{}", device.name);
        assert_eq!(names, siblings, "{}", device.name);
    }

    fn set(fake: &FakeTree, path: &str, values: &[(&str, &str)]) {
        for (name, value) in values {
            fake.file(&format!("/sys/devices/block/{path}/{name}"), format!("{value}\n"));
        }
    }

    fn attached(fake: &FakeTree, nth: u32, file: &str, (offset, sectors): (u64, u64)) {
        let name = format!("loop{nth}");
        fake.disk(&format!("7:{nth}"), &name);
        let (offset, sectors) = (offset.to_string(), sectors.to_string());
        set(fake, &name, &[("loop/backing_file", file), ("loop/offset", &offset)]);
        set(fake, &name, &[("size", &sectors)]);
    }

    #[test]
    fn loop_devices_are_siblings_where_their_ranges_overlap() {
        let fake = FakeTree::new();
        attached(&fake, 0, "/srv/a.img", (0, 2048));
        attached(&fake, 1, "/srv/a.img", (0, 2048));
        attached(&fake, 2, "/srv/a.img", (1 << 20, 2048));
        attached(&fake, 3, "/srv/a.img", ((1 << 20) - 512, 2));
        attached(&fake, 4, "/srv/b.img", (0, 2048));
        fake.disk("7:5", "loop5");
        set(&fake, "loop5", &[("size", "0")]);
        check(&fake, "loop0", &["loop1", "loop3"]);
        check(&fake, "loop1", &["loop0", "loop3"]);
        check(&fake, "loop2", &["loop3"]);
        check(&fake, "loop3", &["loop0", "loop1", "loop2"]);
        check(&fake, "loop4", &[]);
        check(&fake, "loop5", &[]);
        // A loop device upon one, and partitions of one.
        attached(&fake, 6, "/dev/loop4", (512, 1024));
        check(&fake, "loop6", &["loop4"]);
        check(&fake, "loop4", &["loop6"]);
        fake.partition("259:0", "loop4", "loop4p1").partition("259:1", "loop4", "loop4p2");
        set(&fake, "loop4/loop4p1", &[("start", "1"), ("size", "1024")]);
        set(&fake, "loop4/loop4p2", &[("start", "1025"), ("size", "1023")]);
        check(&fake, "loop6", &["loop4p1"]);
        check(&fake, "loop4p1", &["loop6"]);
        check(&fake, "loop4p2", &[]);
    }

    #[test]
    fn disks_of_one_world_wide_name_are_siblings() {
        let fake = FakeTree::new();
        let name = "naa.5000c500a1b2c3d4";
        for (number, disk, file, wwid, size) in [
            ("8:0", "sda", "device/wwid", name, "4096"),
            ("8:16", "sdb", "device/wwid", name, "4096"),
            ("8:32", "sdc", "device/wwid", name, "8192"),
            ("8:48", "sdd", "device/wwid", "naa.5000c500a1b2c3d5", "4096"),
            ("259:0", "nvme0n1", "wwid", "eui.0025385b71b00e4f", "4096"),
            ("259:1", "nvme1n1", "wwid", "eui.0025385b71b00e4f", "4096"),
        ] {
            fake.disk(number, disk);
            set(&fake, disk, &[(file, wwid), ("size", size)]);
        }
        check(&fake, "sda", &["sdb"]);
        check(&fake, "sdc", &[]);
        check(&fake, "sdd", &[]);
        check(&fake, "nvme1n1", &["nvme0n1"]);
        for (number, disk, part, start) in [
            ("8:1", "sda", "sda1", "8"),
            ("8:2", "sda", "sda2", "1032"),
            ("8:17", "sdb", "sdb1", "8"),
            ("8:18", "sdb", "sdb2", "1032"),
        ] {
            fake.partition(number, disk, part);
            set(&fake, &format!("{disk}/{part}"), &[("start", start), ("size", "1024")]);
        }
        check(&fake, "sda1", &["sdb1"]);
        check(&fake, "sda2", &["sdb2"]);
        check(&fake, "sda", &["sdb"]);
    }

    #[test]
    fn names_that_many_disks_have_tell_nothing() {
        for (name, telling) in [
            ("naa.5000c500a1b2c3d4", true),
            ("naa.60014055b6a1b2c3d4e5f60718293a4b", true),
            ("eui.0025385b71b00e4f", true),
            ("uuid.7d3a3c8e-2c35-4f70-9f6d-3f3c8d8a0b11", true),
            ("nvme.144d-533357464e58304b-53414d53554e47-00000001", true),
            ("t10.ATA     Samsung SSD 860 EVO 1TB      S3Z8NB0K123456", true),
            ("", false),
            ("0", false),
            ("naa.", false),
            ("naa.5000000000000000", false),
            ("naa.0000000000000000", false),
            ("eui.0000000000000000", false),
            ("eui.ffffffffffffffff", false),
            ("uuid.00000000-0000-0000-0000-000000000000", false),
            ("nvme.1b36-20202020-51454d55-00000001", false),
            ("nvme.1b36--51454d55-00000001", false),
            ("t10.ATA     QEMU HARDDISK", false),
            ("t10.USB     Mass Storage 000000", false),
            ("Generic-SD", false),
        ] {
            assert_eq!(is_telling(name), telling, "{name}");
        }
    }
}
