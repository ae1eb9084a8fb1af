//! Whether a target can show what it is used to show: its medium, its holes, its size, and whether
//! direct I/O to it is direct.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use plumb_io::block_stack::{BlockStack, DiskFacts};
use plumb_sys::memory::{Block, BufferPlacement};
use plumb_units::{Bytes, convert};
use rustix::fs::{Advice, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::{item, percent};
use crate::result::model::{Plausibility, PlausibilityItem};

/// File systems that are memory.
pub(super) fn is_memory(kind: &str) -> bool {
    ["tmpfs", "ramfs", "hugetlbfs", "devtmpfs"].contains(&kind)
}

/// Devices that are memory or nothing at all.
fn is_memory_device(name: &str) -> bool {
    ["zram", "ram", "pmem", "nullb"].iter().any(|prefix| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// Says so when the target is no storage.
pub(super) fn medium_item(path: &str, stack: &BlockStack) -> Option<PlausibilityItem> {
    let kind = stack.mount.as_ref().map(|mount| mount.kind.as_str()).filter(|kind| is_memory(kind));
    let device = stack.leaves.iter().map(|leaf| leaf.name.as_str()).find(|n| is_memory_device(n));
    let medium = kind.or(device)?;
    let sentence = format!("'{path}' lies on {medium}, which is memory and no storage device.");
    Some(item("medium", Some(path), None, Plausibility::Suspicious, sentence))
}

/// How much of a range of a file was never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Bytes of the range.
    pub bytes: u64,
    /// Bytes of it that have no place on the device.
    pub holes: u64,
    /// Bytes of it that have a place and were never written.
    pub unwritten: u64,
}

/// A file in more pieces is not looked at to the end.
const EXTENTS_MAX: u32 = 1_000_000;

/// Looks at the range from `start` to `end` of a file; `None` for a device, and where neither extents
/// nor holes can be asked for.
#[must_use]
pub fn allocation(file: BorrowedFd<'_>, start: u64, end: u64) -> Option<Allocation> {
    let found = rustix::fs::fstat(file).ok()?;
    if rustix::fs::FileType::from_raw_mode(found.st_mode) != rustix::fs::FileType::RegularFile {
        return None;
    }
    let bytes = end.saturating_sub(start);
    let (mut mapped, mut unwritten, mut visited) = (0, 0, 0);
    let walked = plumb_sys::device::extents(file, |extent| {
        let extent_end = extent.start.saturating_add(extent.len).min(end);
        let inside = extent_end.saturating_sub(extent.start.max(start));
        mapped += inside;
        unwritten += if extent.is_unwritten { inside } else { 0 };
        visited += 1;
        visited < EXTENTS_MAX && extent.start < end
    });
    match walked {
        Ok(()) if visited == EXTENTS_MAX => None,
        Ok(()) => {
            let in_holes = bytes.saturating_sub(mapped);
            // What waits in the page cache is data, although its place is not written yet. Kernels
            // that cannot say how much waits tell holes and data apart with the page cache in view.
            let unwritten = match plumb_sys::device::unflushed_bytes(file, start, bytes) {
                Ok(unflushed) => unwritten.saturating_sub(unflushed),
                Err(_) if unwritten > 0 => {
                    holes(file, start, end).map_or(unwritten, |all| all.saturating_sub(in_holes))
                }
                Err(_) => 0,
            };
            Some(Allocation { bytes, holes: in_holes, unwritten })
        }
        Err(_) => holes(file, start, end).map(|holes| Allocation { bytes, holes, unwritten: 0 }),
    }
}

/// Bytes in holes, asked with SEEK_DATA and SEEK_HOLE on a descriptor of our own: seeking moves the
/// position that all users of a descriptor share.
fn holes(file: BorrowedFd<'_>, start: u64, end: u64) -> Option<u64> {
    let own = reopen(file, OFlags::empty()).ok()?;
    let (mut at, mut data_bytes, mut pieces) = (start, 0, 0);
    while at < end && pieces < EXTENTS_MAX {
        let data = match rustix::fs::seek(&own, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => break,
            data => data.ok()?.min(end),
        };
        at = rustix::fs::seek(&own, SeekFrom::Hole(data)).ok()?.min(end).max(data);
        data_bytes += at - data;
        pieces += 1;
        if at == data {
            break;
        }
    }
    (pieces < EXTENTS_MAX).then(|| end.saturating_sub(start).saturating_sub(data_bytes))
}

/// What was never written is read without a look at the device, and written with an allocation.
pub(super) fn allocation_item(
    path: &str,
    allocation: Allocation,
    is_read: bool,
) -> PlausibilityItem {
    const MUCH: f64 = 0.01;
    let never = allocation.holes + allocation.unwritten;
    let share = if allocation.bytes == 0 { 0.0 } else { never as f64 / allocation.bytes as f64 };
    let (verdict, rest) = match (share > MUCH, is_read) {
        (false, _) => (Plausibility::Ok, ""),
        (true, true) => (
            Plausibility::Suspicious,
            ": reading there gives zeros without a look at the device; let -c<size> create the file",
        ),
        (true, false) => (
            Plausibility::Suspicious,
            ": the first write to each place allocates it, which later writes do not pay for",
        ),
    };
    let sentence = format!("{} of '{path}' was never written{rest}.", percent(share));
    item("unwritten_share", Some(path), Some(share), verdict, sentence)
}

/// A target that fits into memory is in memory soon.
pub(super) fn memory_item(path: &str, used: u64, memory: u64) -> PlausibilityItem {
    if memory == 0 {
        let sentence = "How much memory this machine has is not known.".to_owned();
        return item("memory_ratio", Some(path), None, Plausibility::Unknown, sentence);
    }
    let ratio = used as f64 / memory as f64;
    let fits = ratio < 1.0;
    let sentence = if fits {
        format!(
            "The part of '{path}' in use ({}) fits into memory ({}), whose page cache will hold it; \
             -Su goes past it.",
            Bytes(used).in_words(),
            Bytes(memory).in_words()
        )
    } else {
        format!("The part of '{path}' in use is {ratio:.1} times as large as memory.")
    };
    let verdict = if fits { Plausibility::Suspicious } else { Plausibility::Ok };
    item("memory_ratio", Some(path), Some(ratio), verdict, sentence)
}

/// What became of a direct read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectProbe {
    /// It left nothing in the page cache.
    Direct,
    /// What it read was in the page cache afterwards.
    Cached,
    /// It could not be found out.
    Unknown(String),
}

/// Reads up to three pieces of an open file or device with O_DIRECT, after they were dropped from the
/// page cache, and looks whether they are in it then.
///
/// Some file systems take O_DIRECT and then go through the page cache (data journalling, encryption,
/// compression, old ZFS). One piece that stays out of it is proof; that others read the same pages
/// at the same moment is not, which is why all pieces must be in it to say otherwise.
#[must_use]
pub fn probe_direct(target: BorrowedFd<'_>, size: u64) -> DirectProbe {
    match probe(target, size) {
        Ok(probe) => probe,
        Err(errno) => DirectProbe::Unknown(format!("a direct read failed with {errno}")),
    }
}

/// Large enough for the logical blocks of any device.
const PIECE: u64 = 64 << 10;

/// The page cache drops the units in which it was filled, and these only whole.
const FOLIO_MAX: u64 = 2 << 20;

fn probe(target: BorrowedFd<'_>, size: u64) -> Result<DirectProbe, Errno> {
    let page = convert::to_u64(rustix::param::page_size());
    let piece = if size >= PIECE { PIECE } else { page };
    if size < piece {
        return Ok(DirectProbe::Unknown("the target is smaller than a page".to_owned()));
    }
    let direct = reopen(target, OFlags::DIRECT)?;
    let cached = reopen(target, OFlags::empty())?;
    let mut buffer = Block::new(piece, BufferPlacement::System)?;
    let mut kept = 0;
    let mut undroppable = 0;
    let last = (size - piece) / piece * piece;
    let mut places = vec![0, last / 2 / piece * piece, last];
    places.dedup();
    let count = places.len();
    for offset in places {
        // Only a hint: whether it was followed is asked next.
        let around = offset / FOLIO_MAX * FOLIO_MAX;
        let _ = rustix::fs::fadvise(&cached, around, NonZeroU64::new(FOLIO_MAX), Advice::DontNeed);
        if plumb_sys::device::cached_bytes(&cached, offset, piece)? > 0 {
            undroppable += 1;
            continue;
        }
        rustix::io::pread(&direct, buffer.bytes_mut(), offset)?;
        if plumb_sys::device::cached_bytes(&cached, offset, piece)? == 0 {
            return Ok(DirectProbe::Direct);
        }
        kept += 1;
    }
    let is_cached = kept == count || (undroppable == count && is_in_memory(target));
    Ok(if is_cached {
        DirectProbe::Cached
    } else {
        DirectProbe::Unknown(
            "it is in the page cache for another reason: other programs use it, or it is not yet \
             written back"
                .to_owned(),
        )
    })
}

/// Whether the file system has no other place than the page cache.
fn is_in_memory(target: BorrowedFd<'_>) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    rustix::fs::fstatfs(target).is_ok_and(|found| [TMPFS, RAMFS].contains(&found.f_type))
}

/// Opens for reading what is open already, in whatever mode, and wherever its path leads by now.
fn reopen(target: BorrowedFd<'_>, more: OFlags) -> Result<OwnedFd, Errno> {
    let link = format!("/proc/self/fd/{}", target.as_fd().as_raw_fd());
    rustix::fs::open(link, OFlags::RDONLY | OFlags::CLOEXEC | more, Mode::empty())
}

pub(super) fn direct_item(path: &str, probe: &DirectProbe) -> PlausibilityItem {
    let (value, verdict, sentence) = match probe {
        DirectProbe::Direct => {
            (Some(1.0), Plausibility::Ok, format!("'{path}' is read past the page cache."))
        }
        DirectProbe::Cached => (
            Some(0.0),
            Plausibility::Suspicious,
            format!(
                "'{path}' takes direct I/O but goes through the page cache, so these are figures of \
                 memory."
            ),
        ),
        DirectProbe::Unknown(why) => (
            None,
            Plausibility::Unknown,
            format!("Whether '{path}' is read past the page cache is not known: {why}."),
        ),
    };
    item("direct_io", Some(path), value, verdict, sentence)
}

/// Direct I/O to a loop device ends there unless the device was told otherwise.
pub(super) fn loop_item(path: &str, device: &str, facts: &DiskFacts) -> Option<PlausibilityItem> {
    let is_direct = facts.loop_is_direct?;
    let (verdict, sentence) = if is_direct {
        (Plausibility::Ok, format!("/dev/{device} passes direct I/O on to the file behind it."))
    } else {
        (
            Plausibility::Suspicious,
            format!(
                "Direct I/O to '{path}' ends at /dev/{device}: the file behind it goes through the \
                 page cache (losetup --direct-io=on changes that)."
            ),
        )
    };
    let value = if is_direct { 1.0 } else { 0.0 };
    Some(item("loop_direct_io", Some(path), Some(value), verdict, sentence))
}
