//! Page-aligned memory straight from the kernel.

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

use plumb_units::convert::{to_u64, to_usize};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

/// Where a block of memory lies (spec 15.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BufferPlacement {
    /// Page-aligned, wherever the kernel puts it (`-bsn`).
    #[default]
    System,
    /// At a multiple of this many bytes (`-bsp`); a power of two.
    Separated(u64),
    /// Large pages (`-l`).
    LargePages,
}

/// Zeroed, page-aligned memory with one owner; returned to the kernel on drop.
#[derive(Debug)]
pub struct Block {
    /// First usable byte.
    base: NonNull<u8>,
    /// Usable bytes, as asked for.
    len: usize,
    /// First byte of the mapping that holds them.
    mapping: NonNull<c_void>,
    /// Bytes of that mapping.
    mapping_len: usize,
}

// SAFETY: a block owns its mapping; no thread-bound state is attached to it.
unsafe impl Send for Block {}
// SAFETY: through a shared block memory can only be read.
unsafe impl Sync for Block {}

impl Block {
    /// Maps `bytes` bytes (at least a page) as `placement` says. The pages are not there yet:
    /// [`Block::touch`] fetches them.
    ///
    /// # Errors
    /// What mmap or mprotect said, e.g. ENOMEM: no large pages are free, or the limit on address
    /// space is reached.
    ///
    /// # Panics
    /// When the alignment of a separated block is not a power of two of at least a page.
    pub fn new(bytes: u64, placement: BufferPlacement) -> Result<Self, Errno> {
        let page = to_u64(rustix::param::page_size());
        match placement {
            BufferPlacement::System => Self::anonymous(bytes, page, MapFlags::PRIVATE),
            BufferPlacement::LargePages => {
                let flags = MapFlags::PRIVATE | MapFlags::HUGETLB;
                Self::anonymous(bytes, large_page_size(), flags)
            }
            BufferPlacement::Separated(alignment) => Self::separated(bytes, alignment),
        }
    }

    /// A mapping of its own, rounded up to whole pages of `page` bytes.
    fn anonymous(bytes: u64, page: u64, flags: MapFlags) -> Result<Self, Errno> {
        let rounded = bytes.max(1).checked_next_multiple_of(page).ok_or(Errno::NOMEM)?;
        let mapping = map(rounded, ProtFlags::READ | ProtFlags::WRITE, flags)?;
        Ok(Self {
            base: mapping.cast(),
            len: to_usize(bytes),
            mapping,
            mapping_len: to_usize(rounded),
        })
    }

    /// Address space without access for `bytes` plus one alignment, of which the aligned part is then
    /// made usable: the alignment costs addresses, no memory (spec 15.13).
    fn separated(bytes: u64, alignment: u64) -> Result<Self, Errno> {
        let page = to_u64(rustix::param::page_size());
        assert!(
            alignment.is_power_of_two() && alignment >= page,
            "a separation of {alignment} bytes is not a power of two of at least a page"
        );
        let usable = bytes.max(1).checked_next_multiple_of(page).ok_or(Errno::NOMEM)?;
        let reserved = usable.checked_add(alignment).ok_or(Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let mapping = map(reserved, ProtFlags::empty(), flags)?;
        let skip = mapping.cast::<u8>().as_ptr().align_offset(to_usize(alignment));
        assert!(to_u64(skip) < alignment, "the mapping is page-aligned and so is the skip");
        // SAFETY: skip < alignment and the mapping holds alignment + usable bytes.
        let base = unsafe { mapping.cast::<u8>().add(skip) };
        let block = Self { base, len: to_usize(bytes), mapping, mapping_len: to_usize(reserved) };
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: base..base + usable lies within the mapping that `block` owns, and nobody has a
        // reference into it yet.
        unsafe { rustix::mm::mprotect(base.as_ptr().cast(), to_usize(usable), access) }?;
        Ok(block)
    }

    /// Fetches every page, from the calling thread, so that none is fetched while it is timed.
    pub fn touch(&mut self) {
        let page = rustix::param::page_size();
        for byte in self.bytes_mut().iter_mut().step_by(page) {
            // SAFETY: a valid, exclusive reference; volatile, so that storing what is there stays.
            unsafe { std::ptr::from_mut(byte).write_volatile(0) };
        }
    }

    /// Keeps the kernel from giving it large pages of its own accord; one that never does refuses, which is as
    /// well.
    pub(crate) fn stay_small(&self) {
        let (mapping, advice) = (self.mapping.as_ptr(), Advice::LinuxNoHugepage);
        // SAFETY: the mapping is owned by self, and the advice changes nothing that it holds.
        let _ = unsafe { rustix::mm::madvise(mapping, self.mapping_len, advice) };
    }

    /// Asks the kernel for large pages of its own accord, which it may refuse: every page that is touched then takes
    /// the memory of a large one.
    pub fn grow_large(&self) {
        let (mapping, advice) = (self.mapping.as_ptr(), Advice::LinuxHugepage);
        // SAFETY: as above.
        let _ = unsafe { rustix::mm::madvise(mapping, self.mapping_len, advice) };
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: base..base + len is readable, initialised (zeroed by the kernel) and owned by self.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    /// Its bytes, to be written.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: base..base + len is writable, initialised and owned by self, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Its first byte. What is done through it is between the caller and the kernel.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned by self and nobody refers to it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.mapping.as_ptr(), self.mapping_len) };
        assert_eq!(unmapped, Ok(()), "a mapping of our own is unmapped whole");
    }
}

fn map(bytes: u64, access: ProtFlags, flags: MapFlags) -> Result<NonNull<c_void>, Errno> {
    // SAFETY: a new mapping at an address of the kernel's choice changes no memory in use.
    let mapping =
        unsafe { rustix::mm::mmap_anonymous(null_mut(), to_usize(bytes), access, flags) }?;
    Ok(NonNull::new(mapping).expect("the kernel never maps page 0 unasked"))
}

/// Bytes of a large page as MAP_HUGETLB takes by default: `Hugepagesize` of /proc/meminfo, else 2 MiB.
#[must_use]
pub fn large_page_size() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:"));
    let kilobytes =
        line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.and_then(|kib| kib.checked_mul(1024)).filter(|&size| size > 0).unwrap_or(2 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separated_block_starts_at_a_multiple_of_its_alignment() {
        for alignment in [4096, 16 << 20, 512 << 20, 4 << 30] {
            let mut block =
                Block::new(10_000, BufferPlacement::Separated(alignment)).expect("address space");
            assert!(to_u64(block.base().addr().get()).is_multiple_of(alignment), "{alignment}");
            block.touch();
            block.bytes_mut().fill(7);
            assert_eq!(block.bytes(), vec![7; 10_000]);
        }
    }

    #[test]
    fn a_refused_reservation_is_an_error() {
        let refused = Block::new(1 << 60, BufferPlacement::Separated(4096));
        assert_eq!(refused.map(|_| ()), Err(Errno::NOMEM));
        assert_eq!(Block::new(u64::MAX, BufferPlacement::System).map(|_| ()), Err(Errno::NOMEM));
    }

    #[test]
    fn large_pages_are_zeroed_and_whole() {
        match Block::new(5000, BufferPlacement::LargePages) {
            Ok(mut block) => {
                block.touch();
                assert_eq!(block.bytes(), vec![0; 5000]);
                assert!(to_u64(block.base().addr().get()).is_multiple_of(large_page_size()));
            }
            Err(errno) => println!("skipped large_pages_are_zeroed_and_whole: {errno}"),
        }
    }

    #[test]
    fn an_empty_block_is_empty() {
        let mut block = Block::new(0, BufferPlacement::System).expect("a page");
        block.touch();
        assert_eq!(block.bytes(), b"");
    }
}
