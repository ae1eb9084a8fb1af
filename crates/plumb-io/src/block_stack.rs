//! The layers under a file: file system, block device, and what that is made of.
//!
//! Devices are told apart by number, never by path: a path may be a link, lie in another mount
//! namespace, or name another device by now.

mod device;
mod disk;
mod diskstats;
mod mounts;
#[cfg(test)]
mod tests;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType, StatxFlags};

use crate::system_tree::SystemTree;

pub use device::{BlockDevice, DeviceNumber};
pub use disk::{DiskFacts, WriteCache};
pub use diskstats::{DiskCounters, DiskStats};
pub(crate) use mounts::unescape;
pub use mounts::{Mount, Mounts, is_remote_kind};

/// What lies under an open file or block device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockStack {
    /// The mount that the file was opened through; `None` for a block device, and where the kernel
    /// does not tell.
    pub mount: Option<Mount>,
    /// The device itself, or those that the file system is on: one, or several with btrfs and
    /// bcachefs. Empty without any (NFS, tmpfs) or where they cannot be found (ZFS, FUSE).
    pub devices: Vec<BlockDevice>,
    /// What those are made of in the end, through dm, md and loop devices: disks and partitions.
    pub leaves: Vec<BlockDevice>,
}

/// Finds the layers under `descriptor`.
///
/// # Errors
/// What fstat said.
pub fn underlying(descriptor: BorrowedFd<'_>, tree: &SystemTree) -> rustix::io::Result<BlockStack> {
    let found = rustix::fs::fstat(descriptor)?;
    if FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice {
        return Ok(of_device(tree, DeviceNumber::from_raw(found.st_rdev)));
    }
    let mounts = Mounts::read(tree);
    let mount = mount_number(descriptor).and_then(|number| mounts.by_number(number)).cloned();
    let devices = devices_of(tree, DeviceNumber::from_raw(found.st_dev), mount.as_ref());
    let leaves = leaves(tree, &devices, &mounts);
    Ok(BlockStack { mount, devices, leaves })
}

/// Finds the layers of a block device.
#[must_use]
pub fn of_device(tree: &SystemTree, number: DeviceNumber) -> BlockStack {
    let devices: Vec<_> = BlockDevice::find(tree, number).into_iter().collect();
    let leaves = leaves(tree, &devices, &Mounts::read(tree));
    BlockStack { mount: None, devices, leaves }
}

/// The mount that a file was opened through; `None` where the kernel does not tell.
#[must_use]
pub fn mount_of(descriptor: BorrowedFd<'_>, tree: &SystemTree) -> Option<Mount> {
    let number = mount_number(descriptor)?;
    Mounts::read(tree).by_number(number).cloned()
}

/// The number of the mount that a file was opened through (Linux 5.8).
fn mount_number(descriptor: BorrowedFd<'_>) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH;
    let found = rustix::fs::statx(descriptor.as_fd(), "", flags, StatxFlags::MNT_ID).ok()?;
    let answered = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    answered.then_some(found.stx_mnt_id)
}

/// The devices of the file system of device number `number`, which is a made-up one (major 0) where
/// the file system is not on exactly one device.
fn devices_of(tree: &SystemTree, number: DeviceNumber, mount: Option<&Mount>) -> Vec<BlockDevice> {
    if number.major != 0 {
        return BlockDevice::find(tree, number).into_iter().collect();
    }
    let Some(mount) = mount else { return Vec::new() };
    match mount.kind.as_str() {
        "btrfs" => {
            let first = by_path(tree, Path::new(&mount.source));
            first.map_or_else(Vec::new, |first| btrfs_devices(tree, &first))
        }
        "bcachefs" => {
            mount.source.split(':').filter_map(|path| by_path(tree, Path::new(path))).collect()
        }
        // Writes go to the upper folder's file system.
        "overlay" => {
            let upper = mount.super_options.iter().find_map(|o| o.strip_prefix("upperdir="));
            let found =
                upper.filter(|_| tree.is_real()).and_then(|path| std::fs::metadata(path).ok());
            let number = found.map(|found| DeviceNumber::from_raw(found.dev()));
            number.and_then(|number| BlockDevice::find(tree, number)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// All devices of the mounted btrfs that `first` belongs to; only `first` if the kernel does not
/// list it.
fn btrfs_devices(tree: &SystemTree, first: &BlockDevice) -> Vec<BlockDevice> {
    let all = btrfs_file_systems(tree)
        .into_iter()
        .map(|(_, devices)| devices)
        .find(|devices| devices.contains(&first.number));
    let numbers = all.unwrap_or_else(|| vec![first.number]);
    numbers.into_iter().filter_map(|number| BlockDevice::find(tree, number)).collect()
}

/// Every mounted btrfs: its uuid and devices.
pub(crate) fn btrfs_file_systems(tree: &SystemTree) -> Vec<(String, Vec<DeviceNumber>)> {
    const FOLDER: &str = "/sys/fs/btrfs";
    tree.names(FOLDER)
        .into_iter()
        .filter_map(|uuid| {
            let uuid = uuid.into_string().ok()?;
            let devices = format!("{FOLDER}/{uuid}/devices");
            let numbers: Vec<_> = tree
                .names(&devices)
                .iter()
                .filter_map(|name| {
                    let name = name.to_str()?;
                    tree.text(format!("{devices}/{name}/dev"))?.parse().ok()
                })
                .collect();
            (!numbers.is_empty()).then_some((uuid, numbers))
        })
        .collect()
}

/// The block device that a path names: by its node on a real machine, by its name in a faked tree.
fn by_path(tree: &SystemTree, path: &Path) -> Option<BlockDevice> {
    let number = if tree.is_real() {
        let found = std::fs::metadata(path).ok()?;
        DeviceNumber::from_raw(found.rdev())
    } else {
        let name = path.file_name()?.to_str()?;
        tree.text(format!("/sys/class/block/{name}/dev"))?.parse().ok()?
    };
    BlockDevice::find(tree, number)
}

/// What devices are made of in the end, each once, in the order found.
fn leaves(tree: &SystemTree, devices: &[BlockDevice], mounts: &Mounts) -> Vec<BlockDevice> {
    let mut seen: Vec<DeviceNumber> = Vec::new();
    let mut leaves = Vec::new();
    let mut stack: Vec<BlockDevice> = devices.iter().rev().cloned().collect();
    while let Some(device) = stack.pop() {
        if seen.contains(&device.number) {
            continue;
        }
        seen.push(device.number);
        let parts = parts(tree, &device, mounts);
        if parts.is_empty() {
            leaves.push(device);
        } else {
            stack.extend(parts.into_iter().rev());
        }
    }
    leaves
}

/// One layer down: a loop device's backing file's devices, the slaves of dm and md; none of a disk.
/// A partition of such a device is made of what the device is made of.
fn parts(tree: &SystemTree, device: &BlockDevice, mounts: &Mounts) -> Vec<BlockDevice> {
    if let Some(path) = device.backing_file(tree) {
        let mount = mounts.holding(&path);
        let number = if tree.is_real() {
            std::fs::metadata(&path).ok().map(|found| DeviceNumber::from_raw(found.dev()))
        } else {
            mount.map(|mount| mount.device)
        };
        return number.map_or_else(Vec::new, |number| devices_of(tree, number, mount));
    }
    let slaves = device.slaves(tree);
    if slaves.is_empty() && device.is_partition() {
        let disk = BlockDevice::find(tree, device.disk);
        return disk.map_or_else(Vec::new, |disk| parts(tree, &disk, mounts));
    }
    slaves
}
