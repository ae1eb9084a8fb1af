//! Files mapped into memory, reached by copies only.
//!
//! No reference into a mapping is ever made, for its bytes change when anyone writes to the file: they
//! are copied out and in. When the file shrinks below a mapped range, touching that range raises SIGBUS
//! and ends the process; there is no sound way to turn that signal into an error, so a mapped target
//! must not be truncated during a run.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};

use plumb_units::convert::{to_u64, to_usize};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

use crate::cache_lines::{self, LineFlush};

/// How bytes are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// Through the caches.
    Plain,
    /// Around them, where [`cache_lines::streaming`] says that this processor can.
    Streaming,
}

/// What a mapping may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapAccess {
    /// Only [`Mapping::copy_out`].
    Read,
    /// Both ways.
    ReadWrite,
    /// Both ways, and what the processor's caches gave back is durable (MAP_SYNC on DAX).
    Synchronous,
}

/// A shared mapping of a whole file.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: a mapping is an address range of the process; nothing is bound to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `file`.
    ///
    /// # Errors
    /// What mmap said: EINVAL for an empty file, EACCES when the descriptor does not allow the access,
    /// EOPNOTSUPP when the file cannot be mapped synchronously.
    pub fn new(file: impl AsFd, len: u64, access: MapAccess) -> Result<Self, Errno> {
        let writable = access != MapAccess::Read;
        let protection =
            if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let flags = match access {
            MapAccess::Read | MapAccess::ReadWrite => MapFlags::SHARED,
            MapAccess::Synchronous => MapFlags::SHARED_VALIDATE | MapFlags::SYNC,
        };
        let len = to_usize(len);
        // SAFETY: a new mapping at an address of the kernel's choice changes no memory in use.
        let base = unsafe { rustix::mm::mmap(null_mut(), len, protection, flags, file, 0) }?;
        let base = NonNull::new(base.cast()).expect("the kernel never maps page 0 unasked");
        Ok(Self { base, len, writable })
    }

    /// Copies from the file at `offset`; how many bytes there were before its end.
    pub fn copy_out(&self, offset: u64, buffer: &mut [u8], copying: Copying) -> usize {
        let len = self.within(offset, buffer.len());
        if len == 0 {
            return 0;
        }
        // SAFETY: offset + len <= the mapping's length, which is mapped.
        let source = unsafe { self.base.add(to_usize(offset)) };
        // SAFETY: both ranges are valid for len bytes and cannot overlap: the buffer is Rust's. If the
        // file changes meanwhile the copy holds some of either, which any bytes may.
        unsafe { copy(source.as_ptr(), buffer.as_mut_ptr(), len, copying) };
        len
    }

    /// Copies to the file at `offset`; how many bytes fitted before its end.
    ///
    /// # Errors
    /// EBADF when the mapping is for reading, as pwrite says of such a descriptor.
    pub fn copy_in(&self, offset: u64, bytes: &[u8], copying: Copying) -> Result<usize, Errno> {
        if !self.writable {
            return Err(Errno::BADF);
        }
        let len = self.within(offset, bytes.len());
        if len == 0 {
            return Ok(0);
        }
        // SAFETY: offset + len <= the mapping's length, which is mapped.
        let target = unsafe { self.base.add(to_usize(offset)) };
        // SAFETY: both ranges are valid for len bytes and cannot overlap: `bytes` is Rust's, the mapping
        // is not reachable by reference. If others write there meanwhile, some of either remains.
        unsafe { copy(bytes.as_ptr(), target.as_ptr(), len, copying) };
        Ok(len)
    }

    /// Writes the pages of the range to the file and waits (msync).
    ///
    /// # Errors
    /// What msync said, e.g. EIO.
    pub fn flush(&self, offset: u64, len: usize) -> Result<(), Errno> {
        let page = to_u64(rustix::param::page_size());
        let len = self.within(offset, len);
        if len == 0 {
            return Ok(());
        }
        let start = to_usize(offset - offset % page);
        // SAFETY: start <= offset < the mapping's length.
        let address = unsafe { self.base.add(start) }.as_ptr().cast::<c_void>();
        let len = to_usize(offset) - start + len;
        // SAFETY: the range lies in our mapping; msync changes no memory.
        unsafe { rustix::mm::msync(address, len, MsyncFlags::SYNC) }
    }

    /// Writes the range's lines back from the processor's caches; [`cache_lines::drain`] waits for it.
    pub fn write_back(&self, offset: u64, len: usize, flush: LineFlush) {
        let len = self.within(offset, len);
        if len > 0 {
            // SAFETY: offset + len <= the mapping's length.
            let start = unsafe { self.base.add(to_usize(offset)) };
            flush.write_back(start, len);
        }
    }

    /// How many of `len` bytes at `offset` are mapped.
    #[inline]
    fn within(&self, offset: u64, len: usize) -> usize {
        to_usize(to_u64(self.len).saturating_sub(offset)).min(len)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it was ever made.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
        assert_eq!(unmapped, Ok(()), "a mapping of our own is unmapped whole");
    }
}

/// Copies `len` bytes.
///
/// # Safety
/// Both ranges are valid for `len` bytes and do not overlap.
#[inline]
unsafe fn copy(source: *const u8, target: *mut u8, len: usize, copying: Copying) {
    match copying {
        Copying::Plain => {
            // SAFETY: as this function's caller promises.
            unsafe { std::ptr::copy_nonoverlapping(source, target, len) }
        }
        Copying::Streaming => {
            // SAFETY: as this function's caller promises.
            unsafe { cache_lines::stream(source, target, len) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::io::pread;

    use super::*;

    fn file(len: u64) -> OwnedFd {
        let file = memfd_create("mapped", MemfdFlags::CLOEXEC).expect("a file in memory");
        ftruncate(&file, len).expect("room");
        file
    }

    #[test]
    fn copies_reach_the_file_either_way() {
        for copying in [Copying::Plain, Copying::Streaming] {
            if copying == Copying::Streaming && !cache_lines::streaming() {
                println!("skipped copies_reach_the_file_either_way: no streaming stores here");
                continue;
            }
            // Odd starts and lengths: the streaming copy has a head and a tail.
            for (offset, len) in [(0, 4096), (1, 4095), (5000, 1), (4093, 77), (7, 15), (16, 16)] {
                let file = file(8192);
                let mapping = Mapping::new(&file, 8192, MapAccess::ReadWrite).expect("a mapping");
                let bytes: Vec<u8> =
                    (0..len).map(|n| u8::try_from(n % 251 + 1).unwrap_or(0)).collect();
                assert_eq!(mapping.copy_in(offset, &bytes, copying), Ok(len));
                let mut seen = vec![0; len + 1];
                assert_eq!(pread(&file, &mut seen, offset), Ok(len + 1));
                assert_eq!(
                    (&seen[..len], seen[len]),
                    (&bytes[..], 0),
                    "{copying:?} {offset} {len}"
                );
                let mut back = vec![0; len + 2];
                assert_eq!(mapping.copy_out(offset, &mut back[1..=len], copying), len);
                assert_eq!((&back[1..=len], back[0], back[len + 1]), (&bytes[..], 0, 0));
            }
        }
    }

    #[test]
    fn nothing_is_copied_beyond_the_end() {
        let file = file(5000);
        let mapping = Mapping::new(&file, 5000, MapAccess::ReadWrite).expect("a mapping");
        let mut buffer = [1; 4096];
        assert_eq!(mapping.copy_out(4096, &mut buffer, Copying::Plain), 904);
        assert_eq!((buffer[903], buffer[904]), (0, 1));
        assert_eq!(mapping.copy_in(4096, &buffer, Copying::Plain), Ok(904));
        for offset in [5000, 5001, u64::MAX] {
            assert_eq!(mapping.copy_out(offset, &mut buffer, Copying::Plain), 0);
            assert_eq!(mapping.copy_in(offset, &buffer, Copying::Plain), Ok(0));
            assert_eq!(mapping.flush(offset, 4096), Ok(()));
        }
        assert_eq!(mapping.flush(4097, 4096), Ok(()));
    }

    #[test]
    fn a_mapping_for_reading_refuses_writes() {
        let file = file(4096);
        let mapping = Mapping::new(&file, 4096, MapAccess::Read).expect("a mapping");
        assert_eq!(mapping.copy_in(0, &[1], Copying::Plain), Err(Errno::BADF));
    }

    #[test]
    fn an_ordinary_file_has_no_synchronous_mapping() {
        let refused = Mapping::new(file(4096), 4096, MapAccess::Synchronous).map(|_| ());
        assert_eq!(refused, Err(Errno::OPNOTSUPP));
    }

    #[test]
    fn lines_are_written_back() {
        let Some(flush) = LineFlush::detect() else {
            println!("skipped lines_are_written_back: no such instruction here");
            return;
        };
        let file = file(8192);
        let mapping = Mapping::new(&file, 8192, MapAccess::ReadWrite).expect("a mapping");
        assert_eq!(mapping.copy_in(100, &[3; 1000], Copying::Plain), Ok(1000));
        mapping.write_back(100, 1000, flush);
        mapping.write_back(8191, 1000, flush);
        cache_lines::drain();
        let mut seen = [0; 1000];
        assert_eq!(pread(&file, &mut seen, 100), Ok(1000));
        assert_eq!(seen, [3; 1000]);
    }
}
