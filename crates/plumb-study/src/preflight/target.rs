//! What is going to be measured, and what lies under it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use plumb_io::block_stack::{self, BlockDevice, BlockStack, DeviceNumber, Mounts};
use plumb_io::contents::{self, FindingKind};
use plumb_io::system_tree::SystemTree;
use plumb_load::plausibility;

use super::file_facts::FileFacts;

/// What is planned. Sizes in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Plan {
    /// Size of the test file; the size that the target has if nothing is said.
    pub file_bytes: Option<u64>,
    /// Bytes that files beside the test file will take, beyond what they have.
    pub beside_bytes: u64,
    /// Copies that the volume keeps of each datum.
    pub copies: Option<u64>,
    /// Bytes per I/O.
    pub block_bytes: Option<u64>,
    /// Seconds from now to the planned end.
    pub seconds: Option<u64>,
    /// Bytes of a cache of controller, array or device that is known.
    pub device_cache_bytes: Option<u64>,
}

/// A target with the layers under it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target {
    /// As it was named.
    pub path: PathBuf,
    /// The layers.
    pub stack: BlockStack,
    /// Bytes that a file has; `None` for one that does not exist yet, and for devices.
    pub size_bytes: Option<u64>,
    /// Bytes of it that are allocated: without its holes.
    pub allocated_bytes: Option<u64>,
    /// Share of it that was never written, 0…1: holes, and places that were only set aside. `None` where that is not
    /// known.
    pub never_written: Option<f64>,
    /// Bytes that the file system has free for us; `None` where that is not known.
    pub free_bytes: Option<u64>,
    /// Files that the file system has room for; `None` where it has no such limit, or that is not known.
    pub free_files: Option<u64>,
    /// How the file is kept, or will be.
    pub(super) facts: FileFacts,
    /// Of a device: who uses it now, in words.
    pub used_by: Vec<String>,
    /// Of a device: what it holds that Plumb did not put there, in words; `None` where that cannot be read.
    pub holds: Option<Vec<String>>,
    /// What is planned.
    pub plan: Plan,
}

impl Target {
    /// Looks at what lies under `path`, which need not exist if its folder does. In a faked tree the
    /// path is one inside it.
    ///
    /// # Errors
    /// Neither the path nor its folder can be opened.
    pub fn find(tree: &SystemTree, path: &Path, plan: Plan) -> io::Result<Self> {
        let target = Self { path: path.to_owned(), plan, ..Self::default() };
        if !tree.is_real() {
            let stack = faked(tree, path);
            let used_by = match stack.mount {
                None => used_by(tree, &stack),
                Some(_) => Vec::new(),
            };
            return Ok(Self { stack, used_by, holds: Some(Vec::new()), ..target });
        }
        // Looked at before it is opened: a pipe would wait for somebody at its other end, and of a device the number says
        // enough; opening it may not be allowed.
        let kind = std::fs::metadata(path).ok().map(|found| (found.file_type(), found.rdev()));
        if let Some((kind, number)) = kind
            && kind.is_block_device()
        {
            let stack = block_stack::of_device(tree, DeviceNumber::from_raw(number));
            let used_by = used_by(tree, &stack);
            return Ok(Self { stack, used_by, holds: holds(tree, path), ..target });
        }
        if kind.is_some_and(|(kind, _)| !kind.is_file()) {
            return Err(io::Error::other("it is neither a file nor a block device"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let (file, size_bytes, allocated_bytes) = match File::open(path) {
            Ok(file) => {
                let found = file.metadata()?;
                (file, Some(found.len()), Some(found.blocks().saturating_mul(512)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (File::open(folder.unwrap_or(Path::new(".")))?, None, None)
            }
            Err(error) => return Err(error),
        };
        let stack = block_stack::underlying(std::os::fd::AsFd::as_fd(&file), tree)?;
        let is_file = stack.mount.is_some();
        let space = rustix::fs::fstatvfs(&file).ok().filter(|_| is_file);
        let free_bytes = space.as_ref().map(|space| space.f_bavail.saturating_mul(space.f_frsize));
        let free_files = space.filter(|space| space.f_files > 0).map(|space| space.f_favail);
        let facts = FileFacts::of(&file, size_bytes.is_none());
        let never_written = size_bytes.and_then(|bytes| never_written(&file, bytes));
        let found = Self { stack, size_bytes, allocated_bytes, never_written, ..target };
        Ok(Self { free_bytes, free_files, facts, ..found })
    }

    /// Every device under the target once: those it is on, what they are made of, and their disks.
    pub(super) fn devices(&self, tree: &SystemTree) -> Vec<BlockDevice> {
        let mut all: Vec<BlockDevice> = Vec::new();
        for device in self.stack.devices.iter().chain(&self.stack.leaves) {
            let disk = BlockDevice::find(tree, device.disk);
            for found in std::iter::once(device.clone()).chain(disk) {
                if !all.contains(&found) {
                    all.push(found);
                }
            }
        }
        all
    }

    /// The disks at the bottom.
    pub(super) fn disks(&self, tree: &SystemTree) -> Vec<BlockDevice> {
        let mut disks: Vec<BlockDevice> = Vec::new();
        for leaf in &self.stack.leaves {
            if let Some(disk) = BlockDevice::find(tree, leaf.disk).filter(|d| !disks.contains(d)) {
                disks.push(disk);
            }
        }
        disks
    }

    /// Bytes of the test file as planned, or as it is.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        self.plan.file_bytes.or(self.size_bytes)
    }
}

/// Who uses a device.
fn used_by(tree: &SystemTree, stack: &BlockStack) -> Vec<String> {
    let numbers = stack.devices.iter().map(|device| device.number);
    let uses = numbers.flat_map(|number| contents::uses_of_device(tree, number));
    uses.map(|use_of| use_of.to_string()).collect()
}

/// What a device holds.
fn holds(tree: &SystemTree, path: &Path) -> Option<Vec<String>> {
    let file = File::open(path).ok()?;
    let found = contents::inspect(std::os::fd::AsFd::as_fd(&file), path, tree).findings;
    let data = found.iter().filter(|one| one.kind == FindingKind::Data);
    Some(data.map(ToString::to_string).collect())
}

/// Share of a file that was never written; what waits in the page cache was.
fn never_written(file: &File, bytes: u64) -> Option<f64> {
    let found = plausibility::allocation(std::os::fd::AsFd::as_fd(file), 0, bytes)?;
    (bytes > 0).then(|| (found.holes + found.unwritten) as f64 / bytes as f64)
}

/// The same of the file at `path`; `None` for what is no file, or cannot be looked at.
#[must_use]
pub fn never_written_share(path: &Path) -> Option<f64> {
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let file = File::open(path).ok()?;
    never_written(&file, found.len())
}

/// The layers of a path inside a faked tree: a node by its name, a file by the mount that holds it.
fn faked(tree: &SystemTree, path: &Path) -> BlockStack {
    if let Ok(node) = path.strip_prefix("/dev") {
        let name = node.to_string_lossy().replace('/', "!");
        let number: Option<DeviceNumber> =
            tree.text(format!("/sys/class/block/{name}/dev")).and_then(|text| text.parse().ok());
        return number.map(|number| block_stack::of_device(tree, number)).unwrap_or_default();
    }
    let mounts = Mounts::read(tree);
    let Some(mount) = mounts.holding(path) else { return BlockStack::default() };
    let stack = block_stack::of_device(tree, mount.device);
    BlockStack { mount: Some(mount.clone()), ..stack }
}
