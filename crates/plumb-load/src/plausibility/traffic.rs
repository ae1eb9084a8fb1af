//! Bytes that devices saw against bytes that the run moved.

use std::iter::Sum;
use std::ops::Add;

use plumb_io::block_stack::{BlockDevice, DeviceNumber};

use super::{CheckedTarget, item, percent};
use crate::result::model::{Plausibility, PlausibilityItem};

/// Bytes of each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

impl Add for Traffic {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { read: self.read + other.read, written: self.written + other.written }
    }
}

impl Sum for Traffic {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// What a run asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Issued {
    /// Bytes of I/Os that were done.
    pub moved: Traffic,
    /// Bytes of I/Os that failed.
    pub failed: Traffic,
}

impl Sum for Issued {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, more| Self {
            moved: sum.moved + more.moved,
            failed: sum.failed + more.failed,
        })
    }
}

/// Targets on the same devices: devices count for all of them together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) devices: Vec<BlockDevice>,
    /// What those are made of in the end, where that is something else.
    pub(super) leaves: Vec<BlockDevice>,
    /// What the run asked of them.
    pub(super) issued: Issued,
    /// Whether all of it went past the page cache.
    pub(super) is_direct: bool,
}

/// Gathers targets whose devices overlap; those without any are left out.
pub(super) fn groups(targets: &[CheckedTarget<'_>], issued: &[Issued]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (target, issued) in targets.iter().zip(issued) {
        let devices = &target.stack.devices;
        if devices.is_empty() {
            continue;
        }
        let mut merged = Group {
            devices: devices.clone(),
            leaves: target.stack.leaves.clone(),
            issued: *issued,
            is_direct: target.is_direct,
        };
        let overlaps = |group: &Group| {
            let numbers: Vec<DeviceNumber> = group.devices.iter().map(|d| d.number).collect();
            devices.iter().any(|device| numbers.contains(&device.number))
        };
        let (joined, apart): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(overlaps);
        for group in joined {
            merged.issued = [merged.issued, group.issued].into_iter().sum();
            merged.is_direct &= group.is_direct;
            merged.devices.extend(group.devices);
            merged.leaves.extend(group.leaves);
        }
        groups = apart;
        for devices in [&mut merged.devices, &mut merged.leaves] {
            devices.sort_by_key(|device| device.number);
            devices.dedup();
        }
        groups.push(merged);
    }
    // A disk or a partition is its own leaf.
    let made_of_others = |group: &Group| group.leaves != group.devices;
    for group in groups.iter_mut().filter(|group| !made_of_others(group)) {
        group.leaves.clear();
    }
    groups
}

/// Up to here device and run agree: what was in flight at the ends of the measurement, and a little
/// metadata.
const AGREE: std::ops::RangeInclusive<f64> = 0.9..=1.25;

/// What devices saw of the bytes of one direction.
enum Seen {
    Fewer,
    AsMany,
    More,
}

/// Compares bytes: what failed may have failed on the device, which counts it, or on the way there, which
/// it does not, so that anything from `moved` to `moved + failed` agrees. The share is of all that was
/// asked for.
fn compare(seen: u64, moved: u64, failed: u64) -> (f64, Seen) {
    let share = seen as f64 / (moved + failed) as f64;
    let verdict = if (seen as f64 / moved as f64) < *AGREE.start() {
        Seen::Fewer
    } else if share > *AGREE.end() {
        Seen::More
    } else {
        Seen::AsMany
    };
    (share, verdict)
}

/// The bytes that a share is of.
fn bytes_of(done: &str, kind: &str, moved: u64, failed: u64) -> String {
    if failed == 0 {
        return format!("bytes {done}");
    }
    let lost = percent(failed as f64 / (moved + failed) as f64);
    format!("bytes that {kind} asked for, {lost} of which failed")
}

/// What is left of a group's bytes below its devices: caches, holes and copies lie between them and the disks.
/// Nothing for a direction that moved nothing.
pub(super) fn items_below(group: &Group, seen: Traffic) -> Vec<PlausibilityItem> {
    let (names, above) = (names(&group.leaves), names(&group.devices));
    let Issued { moved, failed } = group.issued;
    let directions = [
        ("disk_read_ratio", seen.read, moved.read, failed.read, ("read", "reads")),
        ("disk_write_ratio", seen.written, moved.written, failed.written, ("written", "writes")),
    ];
    let asked = directions.into_iter().filter(|(_, _, moved, ..)| *moved > 0);
    let item = |(key, seen, moved, failed, (done, kind)): (_, u64, u64, u64, (&str, &str))| {
        let (share, compared) = compare(seen, moved, failed);
        let (verdict, rest) = match compared {
            Seen::Fewer => (
                Plausibility::Suspicious,
                ": holes, a cache or compression between the two took the rest, so these are not the \
                 disks' figures",
            ),
            // Copies are no wonder there.
            Seen::More | Seen::AsMany => (Plausibility::Ok, ""),
        };
        let (bytes, share_said) = (bytes_of(done, kind, moved, failed), percent(share));
        let sentence = format!("{names}, below {above}, saw {share_said} of the {bytes}{rest}.");
        item(key, None, Some(share), verdict, sentence)
    };
    asked.map(item).collect()
}

fn names(devices: &[BlockDevice]) -> String {
    let names: Vec<String> = devices.iter().map(|device| format!("/dev/{}", device.name)).collect();
    names.join(", ")
}

/// What a group's devices saw of what it moved, by direction; nothing for a direction that moved nothing.
pub(super) fn items(group: &Group, seen: Traffic) -> Vec<PlausibilityItem> {
    let names = names(&group.devices);
    let Issued { moved, failed } = group.issued;
    let mut items = Vec::new();
    if moved.read > 0 {
        let (share, compared) = compare(seen.read, moved.read, failed.read);
        let (verdict, rest) = match compared {
            Seen::Fewer if group.is_direct => (
                Plausibility::Suspicious,
                " although they went past the page cache: holes, compression or a cache of the file \
                 system served the rest",
            ),
            Seen::Fewer => (
                Plausibility::Suspicious,
                ": the page cache served the rest, so these are figures of memory",
            ),
            Seen::More => (
                Plausibility::Suspicious,
                ": read-ahead, blocks larger than the I/Os, or other programs take the rest",
            ),
            Seen::AsMany => (Plausibility::Ok, ""),
        };
        let bytes = bytes_of("read", "reads", moved.read, failed.read);
        let sentence = format!("{names} saw {} of the {bytes}{rest}.", percent(share));
        items.push(item("device_read_ratio", None, Some(share), verdict, sentence));
    }
    if moved.written > 0 {
        let (share, compared) = compare(seen.written, moved.written, failed.written);
        let (verdict, rest) = match compared {
            Seen::Fewer if group.is_direct => (
                Plausibility::Suspicious,
                " although they went past the page cache: compression, deduplication or a log of \
                 the file system holds the rest",
            ),
            Seen::Fewer => (
                Plausibility::Suspicious,
                ": the rest is still in memory, so these are figures of memory",
            ),
            Seen::More => (
                Plausibility::Suspicious,
                ": metadata and copies of the file system, earlier writes, or other programs make up \
                 the rest",
            ),
            Seen::AsMany => (Plausibility::Ok, ""),
        };
        let bytes = bytes_of("written", "writes", moved.written, failed.written);
        let sentence = format!("{names} saw {} of the {bytes}{rest}.", percent(share));
        items.push(item("device_write_ratio", None, Some(share), verdict, sentence));
    }
    items
}

/// Targets on no device that could be asked.
pub(super) fn without_device(targets: &[CheckedTarget<'_>]) -> Vec<PlausibilityItem> {
    let mut items: Vec<PlausibilityItem> = Vec::new();
    for target in targets.iter().filter(|target| target.stack.devices.is_empty()) {
        let kind = target.stack.mount.as_ref().map_or("a file system", |mount| mount.kind.as_str());
        // Memory is spoken of before the run.
        if super::target::is_memory(kind) {
            continue;
        }
        let sentence = format!(
            "'{}' lies on {kind}, which shows no block device here: what reached storage is not known.",
            target.path
        );
        let unknown =
            item("device_read_ratio", Some(target.path), None, Plausibility::Unknown, sentence);
        if !items.contains(&unknown) {
            items.push(unknown);
        }
    }
    items
}
