//! What a block device or a file's place on it can be asked: size, loop backing, extents, cached pages.

use std::ptr::null_mut;

use plumb_units::convert::{to_u64, to_usize};
use rustix::fd::{AsFd, AsRawFd};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Updater, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags};

/// Bytes of a block device (BLKGETSIZE64).
///
/// # Errors
/// ENOTTY when it is no block device.
pub fn block_device_bytes(device: impl AsFd) -> Result<u64, Errno> {
    const BLKGETSIZE64: Opcode = opcode::read::<usize>(0x12, 114);
    // SAFETY: the opcode writes one u64, as linux/fs.h says (declared as size_t, filled as u64).
    let request = unsafe { Getter::<BLKGETSIZE64, u64>::new() };
    // SAFETY: the request owns the eight bytes that the kernel writes.
    unsafe { ioctl(device, request) }
}

/// The file or block device behind a loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopBacking {
    /// `st_dev` of the file, or of the device's node.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// `st_rdev` of a block device; of a file its `st_dev`.
    pub block_device: u64,
}

/// The file behind a loop device (LOOP_GET_STATUS64).
///
/// # Errors
/// ENXIO when the loop device is not in use, ENOTTY when it is none.
pub fn loop_backing(device: impl AsFd) -> Result<LoopBacking, Errno> {
    const LOOP_GET_STATUS64: Opcode = 0x4C05;
    // SAFETY: the opcode writes one `struct loop_info64`.
    let request = unsafe { Getter::<LOOP_GET_STATUS64, LoopInfo64>::new() };
    // SAFETY: the request owns a whole `loop_info64`, of the size that a test checks.
    let info = unsafe { ioctl(device, request) }?;
    let LoopInfo64 { device, inode, rdevice, .. } = info;
    Ok(LoopBacking { device, inode, block_device: rdevice })
}

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// A run of a file's bytes on its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First byte in the file.
    pub start: u64,
    /// First byte on the device; `None` where the file system does not say, or not yet.
    pub physical: Option<u64>,
    /// Bytes.
    pub len: u64,
    /// Allocated, but never written: reads as zeros without a look at the device.
    pub is_unwritten: bool,
}

/// Calls `visit` with every extent of a file in order, until it says false (FIEMAP). What lies
/// between extents is a hole.
///
/// # Errors
/// EOPNOTSUPP or ENOTTY when the file system cannot tell.
pub fn extents(file: impl AsFd, mut visit: impl FnMut(Extent) -> bool) -> Result<(), Errno> {
    const FIEMAP: Opcode = opcode::read_write::<FiemapHeader>(b'f', 11);
    const LAST: u32 = 1;
    const UNWRITTEN: u32 = 0x800;
    /// Unknown, delayed, encoded, encrypted, not aligned, inline, in a tail.
    const NOT_PLACED: u32 = 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400;
    let mut start = 0;
    loop {
        let mut map = Fiemap {
            header: FiemapHeader {
                start,
                length: u64::MAX - start,
                flags: 0,
                mapped_extents: 0,
                extent_count: EXTENTS_AT_ONCE,
                reserved: 0,
            },
            extents: [FiemapExtent::default(); EXTENTS],
        };
        // SAFETY: the opcode reads and writes a header followed by `extent_count` extents.
        let request = unsafe { Updater::<FIEMAP, Fiemap>::new(&mut map) };
        // SAFETY: the request borrows a header and as many extents as the header says.
        unsafe { ioctl(file.as_fd(), request) }?;
        let mapped = plumb_units::convert::index(map.header.mapped_extents).min(EXTENTS);
        for extent in &map.extents[..mapped] {
            let found = Extent {
                start: extent.logical,
                physical: (extent.flags & NOT_PLACED == 0).then_some(extent.physical),
                len: extent.length,
                is_unwritten: extent.flags & UNWRITTEN != 0,
            };
            if !visit(found) || extent.flags & LAST != 0 {
                return Ok(());
            }
        }
        match map.extents[..mapped].last() {
            Some(last) if last.length > 0 => start = last.logical.saturating_add(last.length),
            _ => return Ok(()),
        }
    }
}

const EXTENTS: usize = 128;
const EXTENTS_AT_ONCE: u32 = 128;

/// `struct fiemap` of linux/fiemap.h, without its extents.
#[repr(C)]
struct FiemapHeader {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    header: FiemapHeader,
    extents: [FiemapExtent; EXTENTS],
}

/// Bytes of a range that are in the page cache: cachestat(2), or mincore(2) before Linux 6.5.
///
/// # Errors
/// What the kernel said, e.g. EPERM: only who may write a file is told; EOPNOTSUPP for hugetlbfs.
pub fn cached_bytes(file: impl AsFd, offset: u64, len: u64) -> Result<u64, Errno> {
    match cachestat(&file, offset, len) {
        Ok(answer) => Ok(bytes_of(answer.cached)),
        Err(Errno::NOSYS) => mincore(&file, offset, len),
        Err(errno) => Err(errno),
    }
}

/// Bytes of a range that are in the page cache and not yet on the device: cachestat(2).
///
/// # Errors
/// ENOSYS before Linux 6.5; otherwise as [`cached_bytes`].
pub fn unflushed_bytes(file: impl AsFd, offset: u64, len: u64) -> Result<u64, Errno> {
    let answer = cachestat(&file, offset, len)?;
    Ok(bytes_of(answer.dirty.saturating_add(answer.writeback)))
}

fn bytes_of(pages: u64) -> u64 {
    pages.saturating_mul(to_u64(rustix::param::page_size()))
}

/// `struct cachestat_range` of linux/mman.h.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    len: u64,
}

/// `struct cachestat` of linux/mman.h.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

fn cachestat(file: &impl AsFd, offset: u64, len: u64) -> Result<Cachestat, Errno> {
    /// The same on every architecture.
    const SYS_CACHESTAT: libc::c_long = 451;
    let range = CachestatRange { offset, len };
    let mut answer = Cachestat::default();
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: the kernel reads `range`, writes `answer`, and both outlive the call.
    let code = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            descriptor,
            std::ptr::from_ref(&range),
            std::ptr::from_mut(&mut answer),
            0_u32,
        )
    };
    if code < 0 {
        return Err(last_errno());
    }
    Ok(answer)
}

/// Maps the range piece by piece and counts resident pages. `offset` is rounded down to a page.
fn mincore(file: &impl AsFd, offset: u64, len: u64) -> Result<u64, Errno> {
    const PIECE: u64 = 1 << 30;
    let page = to_u64(rustix::param::page_size());
    let end = offset.saturating_add(len);
    let mut at = offset / page * page;
    let mut resident = 0;
    while at < end {
        let bytes = to_usize((end - at).min(PIECE));
        let flags = MapFlags::SHARED;
        // SAFETY: a fresh mapping at an address of the kernel's choice; no page of it is touched.
        let base =
            unsafe { rustix::mm::mmap(null_mut(), bytes, ProtFlags::READ, flags, file, at) }?;
        let mut pages = vec![0_u8; bytes.div_ceil(rustix::param::page_size())];
        // SAFETY: the mapping holds `bytes` bytes and the vector one byte for each of its pages.
        let code = unsafe { libc::mincore(base, bytes, pages.as_mut_ptr()) };
        let outcome = if code < 0 { Err(last_errno()) } else { Ok(()) };
        // SAFETY: the mapping made above, of which nothing is borrowed.
        unsafe { rustix::mm::munmap(base, bytes) }?;
        outcome?;
        resident += to_u64(pages.iter().filter(|page| **page & 1 == 1).count()) * page;
        at = at.saturating_add(PIECE);
    }
    Ok(resident)
}

fn last_errno() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    code.map_or(Errno::IO, Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn kernel_layouts_have_their_size() {
        assert_eq!(size_of::<LoopInfo64>(), 232);
        assert_eq!(size_of::<FiemapHeader>(), 32);
        assert_eq!(size_of::<FiemapExtent>(), 56);
        assert_eq!(size_of::<Fiemap>(), 32 + 56 * EXTENTS);
        assert_eq!(size_of::<CachestatRange>(), 16);
        assert_eq!(size_of::<Cachestat>(), 40);
        assert_eq!(plumb_units::convert::index(EXTENTS_AT_ONCE), EXTENTS);
    }

    #[test]
    fn a_file_is_neither_a_block_device_nor_a_loop_device() {
        let file = tempfile::tempfile().expect("a file");
        assert_eq!(block_device_bytes(&file), Err(Errno::NOTTY));
        assert_eq!(loop_backing(&file), Err(Errno::NOTTY));
    }

    #[test]
    fn written_pages_are_cached() {
        let mut file = tempfile::tempfile().expect("a file");
        let page = rustix::param::page_size();
        let pages = to_u64(page) * 8;
        file.write_all(&vec![7; page * 8]).expect("written");
        assert_eq!(cached_bytes(&file, 0, pages), Ok(pages));
        assert_eq!(mincore(&file, 0, pages), Ok(pages));
        // In memory nothing is ever flushed; elsewhere it is when it was synced.
        file.sync_all().expect("synced");
        let unflushed = unflushed_bytes(&file, 0, pages);
        assert!([Ok(0), Ok(pages), Err(Errno::NOSYS)].contains(&unflushed), "{unflushed:?}");
        assert_eq!(mincore(&file, to_u64(page), to_u64(page) * 3), Ok(to_u64(page) * 3));
        assert_eq!(cached_bytes(&file, pages * 4, pages), Ok(0));
    }

    /// A file without a name beside the sources: where people build, there are extents.
    fn file_with_extents() -> File {
        tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file")
    }

    /// Extents as `start+len` with `u` for unwritten, in units of 64 KiB.
    fn layout(file: &File) -> Result<String, Errno> {
        let mut text = Vec::new();
        extents(file, |extent| {
            let unit = 65536;
            let unwritten = if extent.is_unwritten { "u" } else { "" };
            text.push(format!("{}+{}{unwritten}", extent.start / unit, extent.len / unit));
            true
        })?;
        Ok(text.join(" "))
    }

    #[test]
    fn holes_and_unwritten_extents_are_seen() {
        let file = file_with_extents();
        file.set_len(16 * 65536).expect("a length");
        match layout(&file) {
            Err(errno) => {
                println!("skipped holes_and_unwritten_extents_are_seen: FIEMAP says {errno}");
                return;
            }
            Ok(text) => assert_eq!(text, ""),
        }
        file.write_all_at(&[1; 65536], 4 * 65536).expect("written");
        file.sync_all().expect("synced");
        assert_eq!(layout(&file).as_deref(), Ok("4+1"));
        let flags = rustix::fs::FallocateFlags::empty();
        match rustix::fs::fallocate(&file, flags, 8 * 65536, 2 * 65536) {
            Ok(()) => assert!(layout(&file).is_ok_and(|text| text.starts_with("4+1 8+"))),
            Err(errno) => {
                println!("skipped holes_and_unwritten_extents_are_seen: fallocate says {errno}");
            }
        }
    }

    #[test]
    fn more_extents_than_one_request_takes_are_seen() {
        let file = file_with_extents();
        let count = to_u64(EXTENTS) * 2 + 3;
        for place in 0..count {
            file.write_all_at(&[1; 4096], place * 131_072).expect("written");
        }
        file.sync_all().expect("synced");
        let mut seen = 0_u64;
        let mut last = None;
        let walked = extents(&file, |extent| {
            seen += 1;
            last = Some(extent.start);
            true
        });
        match walked {
            Err(errno) => println!(
                "skipped more_extents_than_one_request_takes_are_seen: FIEMAP says {errno}"
            ),
            Ok(()) => assert_eq!((seen, last), (count, Some((count - 1) * 131_072))),
        }
    }
}
