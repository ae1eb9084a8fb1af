//! Stores that go around the processor's caches, and lines written back from them.

use std::ptr::NonNull;

/// Whether this processor has stores that go around its caches.
#[must_use]
pub const fn streaming() -> bool {
    cfg!(target_arch = "x86_64")
}

/// The instruction that writes a cache line back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineFlush {
    instruction: Instruction,
    line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instruction {
    /// Writes back and keeps the line.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// Writes back and drops the line.
    #[cfg(target_arch = "x86_64")]
    Clflushopt,
}

impl LineFlush {
    /// `None` where the processor has neither clwb nor clflushopt.
    #[must_use]
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{__cpuid, __cpuid_count, __get_cpuid_max};
            let leaf_max = __get_cpuid_max(0).0;
            if leaf_max < 7 {
                return None;
            }
            let features = __cpuid_count(7, 0).ebx;
            // Bits 8 to 15 of ebx: line size in units of 8 bytes.
            let line = usize::from(__cpuid(1).ebx.to_le_bytes()[1]) * 8;
            let instruction = match (features >> 24 & 1, features >> 23 & 1) {
                (1, _) => Instruction::Clwb,
                (0, 1) => Instruction::Clflushopt,
                _ => return None,
            };
            line.is_power_of_two().then_some(Self { instruction, line })
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Its name, for results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.instruction {
            #[cfg(target_arch = "x86_64")]
            Instruction::Clwb => "clwb",
            #[cfg(target_arch = "x86_64")]
            Instruction::Clflushopt => "clflushopt",
        }
    }

    /// Writes back every line of `len` mapped bytes from `start` on.
    pub(crate) fn write_back(self, start: NonNull<u8>, len: usize) {
        let skew = start.addr().get() & (self.line - 1);
        for offset in (0..skew + len).step_by(self.line) {
            let line = start.as_ptr().wrapping_sub(skew).wrapping_add(offset);
            self.write_back_line(line);
        }
    }

    #[inline]
    fn write_back_line(self, line: *mut u8) {
        match self.instruction {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the instruction exists (detect), and the line is mapped, for lines do not cross
            // pages; no byte changes.
            Instruction::Clwb => unsafe {
                core::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags));
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Instruction::Clflushopt => unsafe {
                core::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
            },
        }
    }
}

/// Waits until the lines written back, and the stores that went around the caches, have left.
pub fn drain() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: sfence is part of every x86-64 processor and touches no memory.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}

/// Copies around the caches and waits until the stores have left. Where the target is not aligned to a cache line its
/// ends go through the caches.
///
/// # Safety
/// Both ranges are valid for `len` bytes and do not overlap.
///
/// # Panics
/// Where [`streaming`] is false.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn stream(source: *const u8, target: *mut u8, len: usize) {
    let head = target.align_offset(LINE).min(len);
    let body = (len - head) / LINE * LINE;
    // SAFETY: head <= len.
    unsafe { std::ptr::copy_nonoverlapping(source, target, head) };
    let (from, to) = (source.wrapping_add(head), target.wrapping_add(head));
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: `body` bytes are left of both, `to` is aligned to a line, and the processor has the instructions.
        unsafe { stream_lines_avx(from, to, body) };
    } else {
        // SAFETY: as above; these every x86-64 processor has.
        unsafe { stream_lines(from, to, body) };
    }
    let done = head + body;
    let (from, to) = (source.wrapping_add(done), target.wrapping_add(done));
    // SAFETY: done <= len.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len - done) };
    drain();
}

/// Bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Copies whole lines, 32 bytes at a time.
///
/// # Safety
/// Both are valid for `len` bytes, a multiple of a line, and do not overlap; `target` is aligned to a line.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn stream_lines_avx(source: *const u8, target: *mut u8, len: usize) {
    use core::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_stream_si256};
    let mut offset = 0;
    while offset < len {
        let from = source.wrapping_add(offset).cast::<__m256i>();
        let to = target.wrapping_add(offset).cast::<__m256i>();
        // SAFETY: offset + 32 <= len; the load need not be aligned.
        let first = unsafe { _mm256_loadu_si256(from) };
        // SAFETY: offset + 64 <= len, a multiple of a line.
        let second = unsafe { _mm256_loadu_si256(from.wrapping_add(1)) };
        // SAFETY: offset + 32 <= len, and `to` is aligned to a line.
        unsafe { _mm256_stream_si256(to, first) };
        // SAFETY: offset + 64 <= len, and half a line behind a line is aligned to 32 bytes.
        unsafe { _mm256_stream_si256(to.wrapping_add(1), second) };
        offset += LINE;
    }
}

/// Copies whole lines, 16 bytes at a time.
///
/// # Safety
/// As of [`stream_lines_avx`].
#[cfg(target_arch = "x86_64")]
unsafe fn stream_lines(source: *const u8, target: *mut u8, len: usize) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    for offset in (0..len).step_by(size_of::<__m128i>()) {
        let from = source.wrapping_add(offset).cast::<__m128i>();
        // SAFETY: offset + 16 <= len; the load need not be aligned.
        let word = unsafe { _mm_loadu_si128(from) };
        // SAFETY: offset + 16 <= len, and the target is aligned to a line.
        unsafe { _mm_stream_si128(target.wrapping_add(offset).cast::<__m128i>(), word) };
    }
}

/// Copies `source` to `target` around the caches where the processor can: for memory that nobody reads soon. The
/// stores have left when it returns.
///
/// # Panics
/// When the lengths differ.
#[inline]
pub fn copy_around(target: &mut [u8], source: &[u8]) {
    assert_eq!(target.len(), source.len(), "a copy is as long as what is copied");
    if streaming() {
        // SAFETY: both are valid for that length, and an exclusive reference overlaps no other one.
        unsafe { stream(source.as_ptr(), target.as_mut_ptr(), target.len()) };
    } else {
        target.copy_from_slice(source);
    }
}

/// Bytes between two hints: the processor fetches the lines between them of its own accord.
#[cfg(target_arch = "x86_64")]
const HINT_EVERY: usize = 256;

/// Tells the processor that these bytes are read soon. Nothing but time depends on it.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        for line in bytes.iter().step_by(HINT_EVERY) {
            // SAFETY: a hint is valid for any address, and this one is a reference's.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(line).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Tells the processor that this value's first bytes are read or written soon. Nothing but time depends on it.
#[inline]
pub fn prefetch_value<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// As on x86-64, if there were such stores.
///
/// # Safety
/// None needed.
///
/// # Panics
/// Always: [`streaming`] is false.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn stream(_source: *const u8, _target: *mut u8, _len: usize) {
    panic!("streaming copies are asked for only where streaming() is true");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the place and the length: what was copied is there, and nothing beside it changed.
    #[test]
    fn copies_around_the_caches_are_whole() {
        let source: Vec<u8> = (0..9000_u32).map(|nth| nth.to_le_bytes()[0] | 1).collect();
        for start in [0, 1, 15, 16, 63, 64] {
            for len in [0, 1, 15, 16, 17, 63, 64, 65, 130, 512, 4096, 4111] {
                let mut target = vec![0; 9000];
                copy_around(&mut target[start..start + len], &source[start + 3..start + 3 + len]);
                prefetch(&target[start..start + len]);
                assert_eq!(target[start..start + len], source[start + 3..start + 3 + len]);
                let beside = target[..start].iter().chain(&target[start + len..]);
                assert!(beside.into_iter().all(|byte| *byte == 0), "{len} bytes to {start}");
            }
        }
    }

    /// By the narrow stores and by the wide ones, where the processor has them.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn either_width_copies_whole_lines() {
        #[repr(align(64))]
        struct Lines([u8; 256]);
        let source: Vec<u8> = (0..=255).collect();
        for len in [0, 64, 192, 256] {
            let mut narrow = Lines([7; 256]);
            // SAFETY: both have 256 bytes, and the target is aligned to a line.
            unsafe { stream_lines(source.as_ptr(), narrow.0.as_mut_ptr(), len) };
            drain();
            assert_eq!(narrow.0[..len], source[..len]);
            assert!(narrow.0[len..].iter().all(|byte| *byte == 7), "{len}");
            if std::arch::is_x86_feature_detected!("avx") {
                let mut wide = Lines([7; 256]);
                // SAFETY: as above, and the processor has the instructions.
                unsafe { stream_lines_avx(source.as_ptr(), wide.0.as_mut_ptr(), len) };
                drain();
                assert_eq!(wide.0, narrow.0);
            }
        }
    }
}
