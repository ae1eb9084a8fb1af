//! One block device as sysfs shows it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::system_tree::SystemTree;

/// A device number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl DeviceNumber {
    /// From `st_dev` or `st_rdev`.
    #[must_use]
    pub fn from_raw(raw: u64) -> Self {
        Self { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// Not a device number such as `8:1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseDeviceNumberError;

impl FromStr for DeviceNumber {
    type Err = ParseDeviceNumberError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.trim().split_once(':').ok_or(ParseDeviceNumberError)?;
        let number = |text: &str| text.parse().map_err(|_| ParseDeviceNumberError);
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

/// A block device: a disk, a partition, or something made of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its number.
    pub number: DeviceNumber,
    /// The kernel's name, e.g. `nvme0n1p2`, `dm-0`.
    pub name: String,
    /// The disk of a partition, else itself.
    pub disk: DeviceNumber,
}

impl BlockDevice {
    /// The device of that number, if sysfs knows it.
    #[must_use]
    pub fn find(tree: &SystemTree, number: DeviceNumber) -> Option<Self> {
        let folder = folder(number);
        let target = std::fs::canonicalize(tree.path(&folder)).ok()?;
        // sysfs writes `cciss!c0d0` where the name is `cciss/c0d0`.
        let name = target.file_name()?.to_str()?.replace('!', "/");
        let disk = if tree.path(format!("{folder}/partition")).exists() {
            tree.text(format!("{folder}/../dev"))?.parse().ok()?
        } else {
            number
        };
        Some(Self { number, name, disk })
    }

    /// Whether it is a part of a disk.
    #[must_use]
    pub fn is_partition(&self) -> bool {
        self.disk != self.number
    }

    /// Its node as udev and devtmpfs name it.
    #[must_use]
    pub fn node(&self) -> PathBuf {
        PathBuf::from("/dev").join(&self.name)
    }

    /// The longer name that users know, e.g. `dm-0 (vg-data)`, if there is one.
    #[must_use]
    pub fn title(&self, tree: &SystemTree) -> String {
        match tree.text(format!("{}/dm/name", folder(self.number))) {
            Some(name) => format!("/dev/{} ({name})", self.name),
            None => format!("/dev/{}", self.name),
        }
    }

    /// What made it out of others, e.g. `LVM`, `CRYPT`, `mpath`, `md raid1`; `None` for a disk.
    #[must_use]
    pub fn maker(&self, tree: &SystemTree) -> Option<String> {
        let folder = folder(self.number);
        if let Some(level) = tree.text(format!("{folder}/md/level")) {
            return Some(format!("md {level}").trim_end().to_owned());
        }
        let uuid = tree.text(format!("{folder}/dm/uuid"))?;
        let maker = uuid.split('-').next().filter(|maker| !maker.is_empty());
        Some(maker.unwrap_or("device mapper").to_owned())
    }

    /// Its partitions.
    #[must_use]
    pub fn partitions(&self, tree: &SystemTree) -> Vec<Self> {
        let folder = folder(self.number);
        self.listed(tree, &folder, |name| tree.path(format!("{folder}/{name}/partition")).exists())
    }

    /// The devices that are made of it: dm, md, bcache.
    #[must_use]
    pub fn holders(&self, tree: &SystemTree) -> Vec<Self> {
        self.listed(tree, &format!("{}/holders", folder(self.number)), |_| true)
    }

    /// The devices that it is made of.
    #[must_use]
    pub fn slaves(&self, tree: &SystemTree) -> Vec<Self> {
        self.listed(tree, &format!("{}/slaves", folder(self.number)), |_| true)
    }

    /// The file behind a loop device in use, as it was named when it was attached.
    #[must_use]
    pub fn backing_file(&self, tree: &SystemTree) -> Option<PathBuf> {
        tree.text(format!("{}/loop/backing_file", folder(self.number)))
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    }

    /// A stable name for command lines: its link in `/dev/disk/by-id`, else its node.
    ///
    /// Names made of vendor, model and serial number win over world-wide numbers, which nobody can
    /// compare with the label on a drive.
    #[must_use]
    pub fn stable_path(&self, tree: &SystemTree) -> PathBuf {
        const FOLDER: &str = "/dev/disk/by-id";
        let node = self.node();
        let mut links: Vec<String> = tree
            .names(FOLDER)
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .filter(|name| {
                let link = std::fs::read_link(tree.path(FOLDER).join(name));
                link.is_ok_and(|target| target.file_name() == node.file_name())
            })
            .collect();
        let is_number = |name: &str| {
            [
                "wwn-",
                "nvme-eui.",
                "nvme-uuid.",
                "nvme-nvme.",
                "scsi-3",
                "scsi-2",
                "dm-uuid-",
                "md-uuid-",
            ]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        };
        links.sort_by_key(|name| (is_number(name), name.len()));
        links.first().map_or(node, |name| PathBuf::from(FOLDER).join(name))
    }

    /// The devices among the names in a folder, each of which holds a `dev` file.
    fn listed(&self, tree: &SystemTree, path: &str, wanted: impl Fn(&str) -> bool) -> Vec<Self> {
        tree.names(path)
            .iter()
            .filter_map(|name| name.to_str())
            .filter(|name| wanted(name))
            .filter_map(|name| tree.text(format!("{path}/{name}/dev"))?.parse().ok())
            .filter_map(|number| Self::find(tree, number))
            .collect()
    }
}

/// Where sysfs keeps a device: a link to its real folder.
pub(super) fn folder(number: DeviceNumber) -> String {
    format!("/sys/dev/block/{number}")
}
