//! What is read: from nothing at all to a file on a disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{command, machine};

/// Kinds of targets, cheapest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No system call either.
    Null,
    /// The ring's empty operation.
    Nop,
    /// The same with a file and a buffer that the kernel looks up.
    NopFile,
    /// A file in the page cache.
    Cached,
    /// A loop device, past the page cache.
    Loop,
    /// A file on ext4, past the page cache.
    Ext4,
}

impl Kind {
    /// Every kind.
    pub(super) const ALL: [Self; 6] =
        [Self::Null, Self::Nop, Self::NopFile, Self::Cached, Self::Loop, Self::Ext4];

    /// The word for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Nop => "nop",
            Self::NopFile => "nop-file",
            Self::Cached => "cached",
            Self::Loop => "loop",
            Self::Ext4 => "ext4",
        }
    }

    /// The kind of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether nothing is read.
    pub(super) fn is_nop(self) -> bool {
        matches!(self, Self::Nop | Self::NopFile)
    }

    /// Whether the page cache is passed by.
    pub(super) fn is_direct(self) -> bool {
        matches!(self, Self::Loop | Self::Ext4)
    }
}

/// Size of the files: small enough to stay in memory, large enough to leave the processor's caches.
const BYTES: u64 = 16 << 20;

/// A target that is there; taken away when dropped.
pub(super) struct Target {
    pub(super) kind: Kind,
    /// What tools are given.
    pub(super) path: PathBuf,
    file: PathBuf,
    losetup: Option<PathBuf>,
}

impl Target {
    /// Sets one up in `folder`.
    ///
    /// # Errors
    /// What the machine lacks for it.
    pub(super) fn set_up(kind: Kind, folder: &Path) -> Result<Self, String> {
        let system = machine::file_system(folder).unwrap_or_default();
        let shown = folder.display();
        match kind {
            Kind::Cached if matches!(system.as_str(), "tmpfs" | "ramfs") => {
                let why = "where reads are never done at once";
                return Err(format!("{shown} is on {system}, {why}: --folder on a disk"));
            }
            Kind::Ext4 if system != "ext4" => {
                return Err(format!("{shown} is on {system}: --folder on ext4"));
            }
            _ => {}
        }
        let file = folder.join(format!("{}.dat", kind.name()));
        fill(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut target = Self { kind, path: file.clone(), file, losetup: None };
        if kind == Kind::Loop {
            let losetup = command::find("losetup").ok_or("losetup is not installed")?;
            let output = Command::new(&losetup)
                .args(["-f", "--show"])
                .arg(&target.file)
                .output()
                .map_err(|error| format!("losetup: {error}"))?;
            if !output.status.success() {
                let errors = String::from_utf8_lossy(&output.stderr);
                return Err(format!("losetup: {}", errors.trim()));
            }
            target.path = String::from_utf8_lossy(&output.stdout).trim().into();
            target.losetup = Some(losetup);
        }
        Ok(target)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(losetup) = &self.losetup {
            match Command::new(losetup).arg("-d").arg(&self.path).status() {
                Ok(status) if status.success() => {}
                Ok(status) => eprintln!("{} is still there: {status}", self.path.display()),
                Err(error) => eprintln!("{} is still there: {error}", self.path.display()),
            }
        }
        if let Err(error) = fs::remove_file(&self.file) {
            eprintln!("{}: {error}", self.file.display());
        }
    }
}

/// Random bytes, on the disk and in the page cache.
fn fill(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    io::copy(&mut File::open("/dev/urandom")?.take(BYTES), &mut file)?;
    file.sync_all()?;
    io::copy(&mut File::open(path)?, &mut io::sink())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_there_until_it_is_dropped() {
        let folder = crate::repository().join("target/xtask/bench-test");
        fs::create_dir_all(&folder).expect("a folder under target");
        let target = Target::set_up(Kind::Nop, &folder).expect("a file can be written");
        let path = target.path.clone();
        assert_eq!(fs::metadata(&path).expect("it is there").len(), BYTES);
        drop(target);
        assert!(!path.exists());
        assert_eq!(Kind::named("loop"), Some(Kind::Loop));
        assert_eq!(Kind::named("disk"), None);
    }
}
