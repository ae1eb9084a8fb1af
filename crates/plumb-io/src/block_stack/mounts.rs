//! What is mounted where, from /proc/self/mountinfo.

use std::path::{Path, PathBuf};

use crate::system_tree::SystemTree;

use super::device::DeviceNumber;

/// All mounts of this process' namespace, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mounts(Vec<Mount>);

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number for it.
    pub number: u64,
    /// `st_dev` of its files (of btrfs: of its top subvolume).
    pub device: DeviceNumber,
    /// Where it is.
    pub point: PathBuf,
    /// File system type, e.g. `ext4`, `nfs4`, `fuse.sshfs`.
    pub kind: String,
    /// What is mounted, e.g. `/dev/sda1`, `server:/export`.
    pub source: String,
    /// Options of the mount.
    pub options: Vec<String>,
    /// Options of the file system.
    pub super_options: Vec<String>,
}

/// File systems whose data lies on another machine.
const REMOTE: [&str; 16] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "ceph",
    "9p",
    "afs",
    "lustre",
    "gpfs",
    "beegfs",
    "orangefs",
    "glusterfs",
    "virtiofs",
    "gfarm",
    "coda",
];

impl Mount {
    /// Whether its data lies on another machine (`-Sr`); of FUSE file systems only those that say so.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        is_remote_kind(&self.kind)
    }

    /// Whether an option holds, of the mount or of the file system.
    #[must_use]
    pub fn has_option(&self, option: &str) -> bool {
        self.options.iter().chain(&self.super_options).any(|given| given == option)
    }
}

/// Whether data of file systems of this type lies on another machine; of FUSE file systems only those that say so.
#[must_use]
pub fn is_remote_kind(kind: &str) -> bool {
    let kind = kind.strip_prefix("fuse.").unwrap_or(kind);
    REMOTE.contains(&kind) || ["sshfs", "rclone", "s3fs"].contains(&kind)
}

impl Mounts {
    /// Reads the mounts of this process' namespace.
    #[must_use]
    pub fn read(tree: &SystemTree) -> Self {
        let text = tree.text("/proc/self/mountinfo").unwrap_or_default();
        Self(text.lines().filter_map(parse_line).collect())
    }

    /// The mount of that number (`stx_mnt_id`).
    #[must_use]
    pub fn by_number(&self, number: u64) -> Option<&Mount> {
        self.0.iter().find(|mount| mount.number == number)
    }

    /// Mounts of a device's file system.
    pub fn of_device(&self, device: DeviceNumber) -> impl Iterator<Item = &Mount> {
        self.0.iter().filter(move |mount| mount.device == device)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter()
    }

    /// The mount that a path (absolute, without links) lies in: the longest mount point above it, and
    /// of several on one point the last, which hides the others.
    #[must_use]
    pub fn holding(&self, path: &Path) -> Option<&Mount> {
        let above = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        above.max_by_key(|mount| mount.point.components().count())
    }
}

/// `number parent major:minor root point options fields* - kind source super-options`, see proc(5).
fn parse_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let mut right = right.split(' ');
    let list = |text: &str| text.split(',').map(unescape).collect();
    Some(Mount {
        number: left.first()?.parse().ok()?,
        device: left.get(2)?.parse().ok()?,
        point: PathBuf::from(unescape(left.get(4)?)),
        options: list(left.get(5)?),
        kind: right.next()?.to_owned(),
        source: unescape(right.next()?),
        super_options: list(right.next().unwrap_or_default()),
    })
}

/// Undoes the kernel's `\040` for blanks and the like.
pub(crate) fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let octal = bytes.get(at + 1..at + 4).filter(|_| byte == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        plain.push(octal.unwrap_or(byte));
        at += if octal.is_some() { 4 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}
