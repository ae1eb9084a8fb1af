//! What a target already holds: asked before the first write, so that nothing is lost that nobody
//! said may be.
//!
//! Everything is asked through the very descriptor that will be written to. A path may lead to
//! something else a moment later.
//!
//! | target | may be written to without a question when |
//! |---|---|
//! | regular file | it is empty, or Plumb made it and nobody changed it since (see [`crate::mark`]); nothing uses it and it has one name |
//! | block device | nothing uses it, and its first and last MiB hold nothing but zeros |
//! | anything else | never |
//!
//! A block device carries no mark: a mark on it would lie where a workload writes, and one kept
//! elsewhere would outlive what somebody else puts on the device.

mod ends;
mod partition_table;
mod signature;
#[cfg(test)]
mod tests;
mod users;

use std::fmt;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Advice, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::block_stack::{BlockDevice, DeviceNumber};
use crate::mark::{self, Standing};
use crate::system_tree::SystemTree;

/// What was found out about a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// As the user named it.
    pub path: PathBuf,
    /// What to name it by when it is to be destroyed: `/dev/disk/by-id/…` of a device.
    pub stable_path: PathBuf,
    /// Whether it may be written to.
    pub verdict: Verdict,
    /// All that speaks against it; empty unless it is [`Verdict::Refused`].
    pub findings: Vec<Finding>,
}

/// Whether a target may be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// There is nothing to lose.
    Empty,
    /// Plumb made what it holds.
    Ours,
    /// Only if the user says that all of it may be lost.
    Refused,
}

/// Of a file that Plumb made.
const UNFINISHED: &str = "a run of Plumb that wrote to it did not end properly, so whether it was changed since cannot \
    be told";

/// Something that speaks against writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// What was found, as a clause about the place.
    pub what: String,
    /// Where.
    pub place: String,
}

/// Kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// Somebody uses it right now.
    InUse,
    /// It holds something.
    Data,
    /// It could not be found out.
    Unknown,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Why a target is not written to.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("not writing to {}, which {}{}", .0.path.display(), .0.heading(), .0.list())]
#[diagnostic(
    code(plumb::contents),
    help(
        "nothing was written. Take another target (-c<size> creates a file), or, if all of this may \
         be lost for good, add: --destroy {}",
        quoted(&.0.stable_path)
    )
)]
pub struct ContentsError(pub Contents);

impl Contents {
    /// Whether it may be written to without the user's word.
    ///
    /// # Errors
    /// With all findings when it may not.
    pub fn check(self) -> Result<Self, ContentsError> {
        if self.verdict == Verdict::Refused { Err(ContentsError(self)) } else { Ok(self) }
    }

    /// Whether nothing speaks against writing but that a run of Plumb which wrote to it was killed.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !self.findings.is_empty() && self.findings.iter().all(|finding| finding.what == UNFINISHED)
    }

    fn heading(&self) -> &'static str {
        match self.findings.iter().map(|finding| finding.kind).min() {
            Some(FindingKind::InUse) => "is in use",
            Some(FindingKind::Unknown) => "may hold something",
            _ if self.is_unfinished() => "may have been changed",
            Some(FindingKind::Data) | None => "holds what Plumb did not make",
        }
    }

    fn list(&self) -> String {
        self.findings.iter().map(|finding| format!("\n  - {finding}")).collect()
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Finds out what the open file or device holds. Reads at most 2 MiB of it and writes nothing.
///
/// `path` serves for messages, and for marks on file systems without attributes. What cannot be found
/// out counts against the target.
#[must_use]
pub fn inspect(descriptor: BorrowedFd<'_>, path: &Path, tree: &SystemTree) -> Contents {
    let mut stable_path = path.to_owned();
    let outcome = match rustix::fs::fstat(descriptor) {
        Err(errno) => Err(vec![unknown(path, &format!("it cannot be looked at: {errno}"))]),
        Ok(found) => match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => inspect_file(descriptor, path, &found, tree),
            FileType::BlockDevice => {
                let number = DeviceNumber::from_raw(found.st_rdev);
                if let Some(device) = BlockDevice::find(tree, number) {
                    stable_path = device.stable_path(tree);
                }
                inspect_device(descriptor, path, number, tree)
            }
            other => Err(vec![unknown(path, &format!("it is neither file nor disk: {other:?}"))]),
        },
    };
    let (verdict, findings) = match outcome {
        Ok(verdict) => (verdict, Vec::new()),
        Err(findings) => (Verdict::Refused, findings),
    };
    Contents { path: path.to_owned(), stable_path, verdict, findings }
}

pub(crate) use users::file_behind;

/// What is found where a lock is held and no process says that it holds it.
pub(crate) const UNKNOWN_LOCK: &str = "another program has locked it";

/// Who uses the open file or device right now, other than through a name: mounts, devices made of it, swap,
/// loop devices, locks, and for devices programs that have them open for writing.
#[must_use]
pub fn uses(descriptor: BorrowedFd<'_>, path: &Path, tree: &SystemTree) -> Vec<Finding> {
    let Ok(found) = rustix::fs::fstat(descriptor) else { return Vec::new() };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => users::of_file(tree, path, &found),
        FileType::BlockDevice => {
            let device = BlockDevice::find(tree, DeviceNumber::from_raw(found.st_rdev));
            device.map_or_else(Vec::new, |device| users::of_device(tree, &device))
        }
        _ => Vec::new(),
    }
}

/// The same of a block device that need not be open, by its number.
#[must_use]
pub fn uses_of_device(tree: &SystemTree, number: DeviceNumber) -> Vec<Finding> {
    let device = BlockDevice::find(tree, number);
    device.map_or_else(Vec::new, |device| users::of_device(tree, &device))
}

/// Whether `other` names the very file or device that is open, by whatever path: what the user's
/// `--destroy` is compared with.
#[must_use]
pub fn is_same(descriptor: BorrowedFd<'_>, other: &Path) -> bool {
    let ours = Identity::of(descriptor);
    ours.is_some_and(|ours| ours.is_at(other))
}

/// What is open, by which it is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Of a device none: it is the same one by any name.
    file_system: Option<u64>,
    number: u64,
}

impl Identity {
    /// Of what is open, if that can be asked.
    #[must_use]
    pub fn of(descriptor: BorrowedFd<'_>) -> Option<Self> {
        rustix::fs::fstat(descriptor).ok().map(Self::from)
    }

    /// Whether it is what a path leads to.
    #[must_use]
    pub fn is_at(self, path: &Path) -> bool {
        rustix::fs::stat(path).is_ok_and(|found| Self::from(found) == self)
    }
}

impl From<Stat> for Identity {
    fn from(found: Stat) -> Self {
        match FileType::from_raw_mode(found.st_mode) {
            FileType::BlockDevice => Self { file_system: None, number: found.st_rdev },
            _ => Self { file_system: Some(found.st_dev), number: found.st_ino },
        }
    }
}

/// Keeps a block device from being mounted, or used as swap or part of something larger, while it is
/// written to. Other programs can still open it.
#[derive(Debug)]
pub struct Claim(#[expect(dead_code, reason = "the descriptor is the claim")] OwnedFd);

impl Claim {
    /// Claims the block device that is open. To be taken once per device and held during the run.
    ///
    /// # Errors
    /// EBUSY when somebody uses it.
    pub fn take(device: BorrowedFd<'_>) -> Result<Self, Errno> {
        reopen(device, OFlags::EXCL).map(Self)
    }
}

/// Opens for reading what is open already, whatever its path leads to now: through the page cache,
/// and also when the descriptor is for writing only.
fn reopen(descriptor: BorrowedFd<'_>, more: OFlags) -> Result<OwnedFd, Errno> {
    let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | more;
    rustix::fs::open(link, flags, Mode::empty())
}

fn unknown(path: &Path, what: &str) -> Finding {
    let place = path.display().to_string();
    Finding { kind: FindingKind::Unknown, what: what.to_owned(), place }
}

fn inspect_file(
    descriptor: BorrowedFd<'_>,
    path: &Path,
    found: &Stat,
    tree: &SystemTree,
) -> Result<Verdict, Vec<Finding>> {
    let mut findings = users::of_file(tree, path, found);
    let data =
        |what: String| Finding { kind: FindingKind::Data, what, place: path.display().to_string() };
    if found.st_nlink > 1 {
        let names = found.st_nlink;
        findings.push(data(format!("it has {names} names (hard links)")));
    }
    let verdict = if found.st_size == 0 {
        Verdict::Empty
    } else {
        let size = found.st_size;
        match mark::verify(descriptor, path, tree) {
            Ok(Standing::Intact | Standing::BeingWritten { .. } | Standing::HalfMade) => {}
            Ok(Standing::Unmarked) => {
                let held = reopen(descriptor, OFlags::empty()).ok().and_then(|file| {
                    marks_at_head(&File::from(file), size.unsigned_abs()).ok()?.into_iter().next()
                });
                findings.push(data(match held {
                    Some((_, what)) => format!("{what}, {size} bytes"),
                    None => format!("{size} bytes that Plumb did not write"),
                }));
            }
            Ok(Standing::Changed(how)) => {
                findings.push(data(format!("Plumb made it, but it was changed since: {how}")));
            }
            Ok(Standing::Unfinished) => findings.push(data(UNFINISHED.to_owned())),
            Ok(Standing::Unreadable) => findings
                .push(data("its mark (user.plumb.made) is of another version of Plumb".to_owned())),
            Err(error) => {
                findings.push(unknown(path, &format!("its mark cannot be read: {error}")));
            }
        }
        Verdict::Ours
    };
    if findings.is_empty() { Ok(verdict) } else { Err(findings) }
}

fn inspect_device(
    descriptor: BorrowedFd<'_>,
    path: &Path,
    number: DeviceNumber,
    tree: &SystemTree,
) -> Result<Verdict, Vec<Finding>> {
    let mut findings = match BlockDevice::find(tree, number) {
        Some(device) => {
            let mut findings = users::of_device(tree, &device);
            findings.extend(users::by_other_names(tree, &device));
            findings
        }
        None => vec![unknown(path, &format!("sysfs does not know device {number}"))],
    };
    // The kernel's own word, which knows mounts of other namespaces and users that sysfs hides.
    match Claim::take(descriptor) {
        Ok(_) => {}
        Err(Errno::BUSY) if findings.is_empty() => findings.push(Finding {
            kind: FindingKind::InUse,
            what: "the kernel or a program has claimed it, perhaps for a mount in a container"
                .to_owned(),
            place: path.display().to_string(),
        }),
        Err(Errno::BUSY) => {}
        Err(errno) => findings.push(unknown(path, &format!("it cannot be claimed: {errno}"))),
    }
    match read_device(descriptor) {
        Ok(held) => findings.extend(held.into_iter().map(|(offset, what)| Finding {
            kind: FindingKind::Data,
            what,
            place: format!("{}, byte {offset}", path.display()),
        })),
        Err(error) => findings.push(unknown(path, &format!("it cannot be read: {error}"))),
    }
    if findings.is_empty() { Ok(Verdict::Empty) } else { Err(findings) }
}

/// Marks of file systems, partition tables and the like in the first MiB of a file or device of `size` bytes: where,
/// and what. Data of an unknown kind is none.
///
/// # Errors
/// When it cannot be read.
pub fn marks_at_head(file: &File, size: u64) -> io::Result<Vec<(u64, String)>> {
    let found = signature::everything(&ends::Ends::read(file, size)?);
    let at_head = found.into_iter().filter(|found| found.offset < ends::END);
    Ok(at_head.map(|found| (found.offset, found.what)).collect())
}

/// Reads any bytes as a device and asserts what always holds.
///
/// # Panics
/// When it does not.
#[doc(hidden)]
pub fn fuzz_device(bytes: &[u8]) {
    let ends = ends::Ends::of(bytes);
    for found in signature::everything(&ends) {
        assert!(found.offset < ends.size(), "{found:?} lies behind the end");
        let first = ends.first_byte().expect("something was found, so not all is zero");
        assert!(first < ends.size(), "{found:?} was found where nothing is");
    }
}

/// What the ends of a device hold, with its place; nothing when they are all zeros.
fn read_device(descriptor: BorrowedFd<'_>) -> io::Result<Vec<(u64, String)>> {
    let device = File::from(reopen(descriptor, OFlags::empty())?);
    let size = plumb_sys::device::block_device_bytes(&device)?;
    let ends = ends::Ends::read(&device, size)?;
    // What we looked at would otherwise stay in the page cache, for a run to find it there. Only a
    // hint: a failure changes nothing that was found.
    for start in [0, size.saturating_sub(ends::END)] {
        let _ = rustix::fs::fadvise(&device, start, NonZeroU64::new(ends::END), Advice::DontNeed);
    }
    let found = signature::everything(&ends);
    if !found.is_empty() {
        return Ok(found.into_iter().map(|found| (found.offset, found.what)).collect());
    }
    let data =
        "data of a kind that Plumb does not know (an earlier run of Plumb may have left it: a \
                device carries no mark)"
            .to_owned();
    Ok(ends.first_byte().map(|offset| (offset, data)).into_iter().collect())
}
