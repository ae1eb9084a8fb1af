//! What is measured: a simulated device from a file, and facts of a real one that must not change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use plumb_io::contents::{self, ContentsError};
use plumb_io::system_tree::SystemTree;
use plumb_study::study::{Device, Setting, SimulatedDevice, must_be_made, targets};
use plumb_units::Bytes;

/// A simulated device that cannot be read.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(in crate::commands) enum DeviceError {
    /// No file.
    #[error("cannot read the simulated device {}", path.display())]
    #[diagnostic(code(plumb::simulate::read), help("name a TOML file that exists"))]
    Read { path: PathBuf, source: io::Error },
    /// No device.
    #[error("{} describes no simulated device: {what}", path.display())]
    #[diagnostic(
        code(plumb::simulate::device),
        help("its keys are in the guide to sweeps, such as max-iops = 60000")
    )]
    Wrong { path: PathBuf, what: String },
}

/// A target that no run could use.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(in crate::commands) enum TargetError {
    /// Such as a folder or a terminal.
    #[error("{} is {found}: a target is a file or a block device", path.display())]
    #[diagnostic(
        code(plumb::study::target_kind),
        help("name a file, a device, or a file to be made in a folder that exists")
    )]
    Kind { path: PathBuf, found: &'static str },
    /// No file, and no folder to make it in.
    #[error("there is no folder {} to make {} in", folder.display(), path.display())]
    #[diagnostic(
        code(plumb::study::target_folder),
        help(
            "make it (mkdir -p {}), or name a file, a device, or a file to be made in a folder that exists",
            folder.display()
        )
    )]
    Folder { path: PathBuf, folder: PathBuf },
    /// Files that do not fit.
    #[error("{}: {lack}", path.display())]
    #[diagnostic(
        code(plumb::study::target_room),
        help(
            "say a smaller size, remove files, or name one on another file system: `df -h` says where there is room"
        )
    )]
    Room { path: PathBuf, lack: Lack },
    /// One that may not be looked at.
    #[error("cannot look at {}", path.display())]
    #[diagnostic(
        code(plumb::study::target),
        help("name a file, a device, or a file to be made in a folder that exists")
    )]
    Look { path: PathBuf, source: io::Error },
    /// Nothing that could be filled as a whole.
    #[error("--conditioning pts-device writes a whole block device, and {what}")]
    #[diagnostic(
        code(plumb::study::no_device),
        help("name a block device such as /dev/nvme0n1, or say --conditioning pts-file")
    )]
    NoDevice { what: String },
    /// A device that is to be written over from end to end.
    #[error("--conditioning pts-device writes all of {} twice: what it holds is lost", path.display())]
    #[diagnostic(
        code(plumb::study::whole_device),
        help("say --destroy {} as well if that may be", path.display())
    )]
    WholeDevice { path: PathBuf },
    /// Runs would write over what Plumb did not make.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Foreign(#[from] Box<ContentsError>),
}

/// Refuses to begin runs that would each be refused: what some of them write to, or would make anew in another size, holds what
/// Plumb did not put there, and is not named in `destroy`. What cannot be opened is left to the runs.
pub(in crate::commands) fn refuse_foreign<'a>(
    target: &Path,
    device: &Device,
    settings: impl Iterator<Item = &'a Setting>,
    destroy: &[PathBuf],
) -> Result<(), TargetError> {
    if *device != Device::Real {
        return Ok(());
    }
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    for setting in settings {
        for path in targets(target, setting) {
            let Ok(file) = fs::File::open(&path) else { continue };
            let made_anew = setting.file_bytes.is_some_and(|bytes| must_be_made(&path, bytes));
            let writes = setting.write_percent > 0 || made_anew;
            if !writes || !seen.insert(path.clone()) {
                continue;
            }
            if !destroy.iter().any(|named| contents::is_same(file.as_fd(), named)) {
                let found = contents::inspect(file.as_fd(), &path, &SystemTree::default());
                found.check().map_err(Box::new)?;
            }
        }
    }
    Ok(())
}

/// Bytes of a device that is to be filled from end to end: that must be said of it by name, whatever it holds.
pub(in crate::commands) fn device_to_fill(
    path: &Path,
    device: &Device,
    destroy: &[PathBuf],
) -> Result<u64, TargetError> {
    if *device != Device::Real {
        return Err(TargetError::NoDevice { what: "a simulated one has no state".to_owned() });
    }
    let look = |source| TargetError::Look { path: path.to_owned(), source };
    let mut file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(TargetError::NoDevice { what: format!("there is no {}", path.display()) });
        }
        opened => opened.map_err(look)?,
    };
    if !file.metadata().map_err(look)?.file_type().is_block_device() {
        return Err(TargetError::NoDevice { what: format!("{} is none", path.display()) });
    }
    if !destroy.iter().any(|named| contents::is_same(file.as_fd(), named)) {
        return Err(TargetError::WholeDevice { path: path.to_owned() });
    }
    file.seek(io::SeekFrom::End(0)).map_err(look)
}

/// Refuses what is there and is neither a file nor a block device, and a file that is not there and has no folder to be made in;
/// of a simulated device the target is a name only.
pub(in crate::commands) fn refuse_unusable(
    path: &Path,
    device: &Device,
) -> Result<(), TargetError> {
    if *device != Device::Real {
        return Ok(());
    }
    match fs::metadata(path) {
        Ok(found) => refuse_kind(path, found.file_type()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => refuse_no_folder(path),
        Err(source) => Err(TargetError::Look { path: path.to_owned(), source }),
    }
}

fn refuse_kind(path: &Path, kind: fs::FileType) -> Result<(), TargetError> {
    let found = match kind {
        kind if kind.is_file() || kind.is_block_device() => return Ok(()),
        kind if kind.is_dir() => "a folder",
        kind if kind.is_char_device() => "a character device",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "something else",
    };
    Err(TargetError::Kind { path: path.to_owned(), found })
}

fn refuse_no_folder(path: &Path) -> Result<(), TargetError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    match fs::metadata(folder) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(TargetError::Folder { path: path.to_owned(), folder: folder.to_owned() })
        }
        Err(source) => Err(TargetError::Look { path: path.to_owned(), source }),
    }
}

/// Room that a file system has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) struct Lack {
    /// Bytes that are to be made.
    needed: u64,
    /// Bytes that are free for us.
    free: u64,
    /// Where they would be.
    folder: PathBuf,
}

impl Lack {
    /// What is missing where `needed` bytes are to be made for `target`; `None` where they fit, or nobody knows.
    pub(in crate::commands) fn of(target: &Path, needed: u64) -> Option<Self> {
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let space = rustix::fs::statvfs(folder).ok()?;
        // What is kept back is root's.
        let blocks = match rustix::process::geteuid().is_root() {
            true => space.f_bfree,
            false => space.f_bavail,
        };
        let free = blocks.saturating_mul(space.f_frsize);
        (needed > free).then(|| Self { needed, free, folder: folder.to_owned() })
    }

    /// Bytes that are missing.
    pub(in crate::commands) fn bytes(&self) -> u64 {
        self.needed - self.free
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} are to be written for it, and the file system of {} has {} free: {} too few",
            Bytes(self.needed).in_words(),
            self.folder.display(),
            Bytes(self.free).in_words(),
            Bytes(self.bytes()).in_words()
        )
    }
}

/// Reads the description of a simulated device.
pub(in crate::commands) fn simulated(path: &Path) -> Result<Device, DeviceError> {
    let text = fs::read_to_string(path)
        .map_err(|source| DeviceError::Read { path: path.to_owned(), source })?;
    let device = SimulatedDevice::of_toml(&text)
        .map_err(|what| DeviceError::Wrong { path: path.to_owned(), what })?;
    Ok(Device::Simulated(
        serde_json::to_value(device).expect("a device is numbers with string keys"),
    ))
}

/// Facts that must be the same in all parts of a study.
pub(in crate::commands) fn critical(target: &Path, device: &Device) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    facts.insert("target".to_owned(), target.display().to_string());
    if let Device::Simulated(device) = device {
        facts.insert("simulated device".to_owned(), device.to_string());
        return facts;
    }
    let folder = target.parent().unwrap_or(Path::new("/"));
    let found = fs::metadata(target).or_else(|_| fs::metadata(folder));
    if let Ok(found) = found {
        let device = if found.rdev() == 0 { found.dev() } else { found.rdev() };
        facts.insert("device number".to_owned(), device.to_string());
    }
    if let Ok(text) = fs::read_to_string("/proc/cpuinfo") {
        let model = text.lines().find_map(|line| line.strip_prefix("model name"));
        let model = model.unwrap_or_default().trim_start_matches([' ', '\t', ':']);
        facts.insert("processor".to_owned(), model.to_owned());
    }
    facts
}

/// What [`critical`] calls the size of a target that is measured as it is.
pub(in crate::commands) const SIZE: &str = "bytes of the target";

/// The size of a target that is a file; `None` of anything else, and where there is none.
pub(in crate::commands) fn file_bytes(target: &Path) -> Option<String> {
    let found = fs::metadata(target).ok().filter(fs::Metadata::is_file)?;
    Some(found.len().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told_with_what_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("f");
        assert_eq!(Lack::of(&target, 0), None);
        let lack = Lack::of(&target, 100 << 40).expect("nobody has that");
        assert_eq!(lack.bytes(), (100 << 40) - lack.free);
        let text = lack.to_string();
        assert!(
            text.starts_with("100TiB are to be written for it") && text.contains(" free: "),
            "{text}"
        );
        assert!(text.contains(&folder.path().display().to_string()), "{text}");
        // All that is free fits, or may: files of others come and go.
        assert_eq!(Lack::of(&target, lack.free / 2), None);
        assert_eq!(Lack::of(Path::new("/none/at/all/f"), u64::MAX), None);
    }
}
