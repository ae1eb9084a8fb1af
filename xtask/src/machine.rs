//! What this machine has: decides which tests may say that they were skipped.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command;

/// Whether the machine has something; takes the root of the repository.
type Probe = fn(&Path) -> bool;

/// Every capability that a skip list can be about (`xtask/skips/without-NAME.txt`), and how it is found.
const CAPABILITIES: &[(&str, Probe)] = &[
    ("root", |_| has_privileges()),
    ("uring", |_| has_io_uring()),
    ("aio", |_| Path::new("/proc/sys/fs/aio-max-nr").exists() && !is_filtered()),
    ("direct", has_direct_io),
    ("extents", |repository| file_system(repository).is_some_and(|name| is_disk(&name))),
    ("swapfile", |_| file_system(&std::env::temp_dir()).is_some_and(|name| is_simple_disk(&name))),
    ("loop", |_| has_loop_devices()),
    ("hugepages", |_| has_huge_pages()),
    ("x86", |_| cfg!(target_arch = "x86_64")),
    ("tsc", |_| has_tsc()),
    ("ext4", |_| command::find("mkfs.ext4").is_some()),
    ("xfs", |_| command::find("mkfs.xfs").is_some()),
    ("btrfs", |_| command::find("mkfs.btrfs").is_some()),
    ("valgrind", |_| command::find("valgrind").is_some()),
    ("chromium", |_| command::find("chromium").is_some()),
];

/// What this machine has and what it lacks.
pub(crate) struct Machine {
    has: Vec<&'static str>,
    lacks: Vec<&'static str>,
}

impl Machine {
    /// Looks at the machine; `repository` is where the tests' files lie.
    pub(crate) fn detect(repository: &Path) -> Self {
        let (has, lacks): (Vec<_>, Vec<_>) =
            CAPABILITIES.iter().partition(|(_, present)| present(repository));
        let names =
            |list: Vec<&(&'static str, _)>| list.into_iter().map(|(name, _)| *name).collect();
        Self { has: names(has), lacks: names(lacks) }
    }

    /// Names of what is missing.
    pub(crate) fn lacks(&self) -> &[&'static str] {
        &self.lacks
    }

    /// Whether a capability of that name exists at all.
    pub(crate) fn knows(name: &str) -> bool {
        CAPABILITIES.iter().any(|(known, _)| *known == name)
    }

    /// A machine that lacks just that.
    #[cfg(test)]
    pub(crate) fn lacking(lacks: &[&'static str]) -> Self {
        Self { has: Vec::new(), lacks: lacks.to_vec() }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |list: &[&str]| {
            if list.is_empty() { "nothing".to_owned() } else { list.join(", ") }
        };
        write!(f, "machine: has {}; lacks {}", or_none(&self.has), or_none(&self.lacks))
    }
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    status_field("Uid").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"))
}

/// The value of a line of /proc/self/status.
fn status_field(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(|value| value.trim().to_owned())
}

/// Whether io_uring may be used: kernel 5.15 or later, not switched off, and no system call filter, of
/// which the usual ones (containers) refuse it.
fn has_io_uring() -> bool {
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let allowed = match disabled.trim() {
        "" | "0" => true,
        "1" => is_root(),
        _ => false,
    };
    allowed && !is_filtered() && kernel_version() >= Some((5, 15))
}

/// Whether a system call filter is in force.
fn is_filtered() -> bool {
    status_field("Seccomp").is_some_and(|mode| mode != "0")
}

/// Whether this is a root that may do what root may: in containers it often may not.
fn has_privileges() -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    let mask = status_field("CapEff").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    is_root() && mask.is_some_and(|mask| mask & SYS_ADMIN != 0)
}

/// Whether the kernel itself keeps time by the time stamp counter.
fn has_tsc() -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fs::read_to_string(path).is_ok_and(|source| source.trim() == "tsc")
}

/// The kind of file system that a folder lies on.
pub(crate) fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    // Device, mount point, kind, …; of mounts on one another the last is the one to be seen.
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let around = mounts.filter(|(point, _)| folder.starts_with(point));
    around.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_owned())
}

fn is_simple_disk(kind: &str) -> bool {
    matches!(kind, "ext2" | "ext3" | "ext4" | "xfs")
}

fn is_disk(kind: &str) -> bool {
    is_simple_disk(kind) || matches!(kind, "btrfs" | "f2fs")
}

fn kernel_version() -> Option<(u32, u32)> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Whether the file system of the repository takes O_DIRECT.
pub(crate) fn has_direct_io(repository: &Path) -> bool {
    // The flag differs by architecture; arm and its 64-bit form swap it with O_DIRECTORY.
    let direct =
        if cfg!(any(target_arch = "aarch64", target_arch = "arm")) { 0o200_000 } else { 0o40_000 };
    let folder = repository.join("target/xtask");
    let file = folder.join(format!("direct-{}", std::process::id()));
    let probe = || -> io::Result<()> {
        fs::create_dir_all(&folder)?;
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(direct)
            .open(&file)?;
        Ok(())
    };
    let outcome = probe();
    // Nothing is lost when it was not created.
    let _ = fs::remove_file(&file);
    outcome.is_ok()
}

fn has_loop_devices() -> bool {
    has_privileges()
        && Path::new("/dev/loop-control").exists()
        && command::find("losetup").is_some_and(|losetup| {
            let mut command = Command::new(losetup);
            command.arg("-f").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        })
}

/// Whether huge pages have been set aside.
fn has_huge_pages() -> bool {
    fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
        .is_ok_and(|free| free.trim().parse().is_ok_and(|pages: u64| pages > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_is_either_there_or_not() {
        let machine = Machine::detect(&crate::repository());
        assert_eq!(machine.has.len() + machine.lacks.len(), CAPABILITIES.len());
        assert!(machine.has.iter().all(|name| !machine.lacks.contains(name)));
        assert!(kernel_version() > Some((3, 0)));
        assert_eq!(file_system(Path::new("/proc")).as_deref(), Some("proc"));
    }
}
