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
    ("root", |_| is_root()),
    ("uring", |_| has_io_uring()),
    ("direct", |repository| has_direct_io(repository)),
    ("loop", |_| has_loop_devices()),
    ("hugepages", |_| has_huge_pages()),
    ("cpus", |_| std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() >= 2)),
    ("tracefs", |_| fs::read_dir("/sys/kernel/tracing/events").is_ok()),
    ("ext4", |_| command::find("mkfs.ext4").is_some()),
    ("xfs", |_| command::find("mkfs.xfs").is_some()),
    ("btrfs", |_| command::find("mkfs.btrfs").is_some()),
    ("sfdisk", |_| command::find("sfdisk").is_some()),
    ("xmllint", |_| command::find("xmllint").is_some()),
    ("valgrind", |_| command::find("valgrind").is_some()),
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
    let filtered = status_field("Seccomp").is_some_and(|mode| mode != "0");
    allowed && !filtered && kernel_version() >= Some((5, 15))
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
    is_root()
        && Path::new("/dev/loop-control").exists()
        && command::find("losetup").is_some_and(|losetup| {
            let mut command = Command::new(losetup);
            command.arg("-f").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        })
}

/// Whether huge pages are there, or may be asked for.
fn has_huge_pages() -> bool {
    let folder = Path::new("/sys/kernel/mm/hugepages/hugepages-2048kB");
    let free = fs::read_to_string(folder.join("free_hugepages")).unwrap_or_default();
    free.trim().parse().is_ok_and(|pages: u64| pages > 0)
        || OpenOptions::new().write(true).open(folder.join("nr_hugepages")).is_ok()
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
    }
}
