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

/// Targets on the same devices: devices count for all of them together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) devices: Vec<BlockDevice>,
    /// What the run moved.
    pub(super) moved: Traffic,
    /// Whether all of it went past the page cache.
    pub(super) is_direct: bool,
}

/// Gathers targets whose devices overlap; those without any are left out.
pub(super) fn groups(targets: &[CheckedTarget<'_>], moved: &[Traffic]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (target, moved) in targets.iter().zip(moved) {
        let devices = &target.stack.devices;
        if devices.is_empty() {
            continue;
        }
        let mut merged =
            Group { devices: devices.clone(), moved: *moved, is_direct: target.is_direct };
        let overlaps = |group: &Group| {
            let numbers: Vec<DeviceNumber> = group.devices.iter().map(|d| d.number).collect();
            devices.iter().any(|device| numbers.contains(&device.number))
        };
        let (joined, apart): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(overlaps);
        for group in joined {
            merged.moved = merged.moved + group.moved;
            merged.is_direct &= group.is_direct;
            for device in group.devices {
                if !merged.devices.contains(&device) {
                    merged.devices.push(device);
                }
            }
        }
        groups = apart;
        merged.devices.sort_by_key(|device| device.number);
        groups.push(merged);
    }
    groups
}

/// Up to here device and run agree: what was in flight at the ends of the measurement, and a little
/// metadata.
const AGREE: std::ops::RangeInclusive<f64> = 0.9..=1.25;

/// What a group's devices saw of what it moved, by direction; nothing for a direction without I/O.
pub(super) fn items(group: &Group, seen: Traffic) -> Vec<PlausibilityItem> {
    let names: Vec<String> =
        group.devices.iter().map(|device| format!("/dev/{}", device.name)).collect();
    let names = names.join(", ");
    let mut items = Vec::new();
    if group.moved.read > 0 {
        let share = seen.read as f64 / group.moved.read as f64;
        let (verdict, rest) = if share < *AGREE.start() && group.is_direct {
            (
                Plausibility::Suspicious,
                " although they went past the page cache: holes, compression or a cache of the file \
                 system served the rest",
            )
        } else if share < *AGREE.start() {
            (
                Plausibility::Suspicious,
                ": the page cache served the rest, so these are figures of memory",
            )
        } else if share > *AGREE.end() {
            (
                Plausibility::Suspicious,
                ": read-ahead, blocks larger than the I/Os, or other programs take the rest",
            )
        } else {
            (Plausibility::Ok, "")
        };
        let sentence = format!("{names} saw {} of the bytes read{rest}.", percent(share));
        items.push(item("device_read_ratio", None, Some(share), verdict, sentence));
    }
    if group.moved.written > 0 {
        let share = seen.written as f64 / group.moved.written as f64;
        let (verdict, rest) = if share < *AGREE.start() && group.is_direct {
            (
                Plausibility::Suspicious,
                " although they went past the page cache: compression, deduplication or a log of \
                 the file system holds the rest",
            )
        } else if share < *AGREE.start() {
            (
                Plausibility::Suspicious,
                ": the rest is still in memory, so these are figures of memory",
            )
        } else if share > *AGREE.end() {
            (
                Plausibility::Suspicious,
                ": metadata and copies of the file system, earlier writes, or other programs make up \
                 the rest",
            )
        } else {
            (Plausibility::Ok, "")
        };
        let sentence = format!("{names} saw {} of the bytes written{rest}.", percent(share));
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
