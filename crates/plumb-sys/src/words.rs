//! Counters whose memory comes with the first count.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use plumb_units::convert::to_u64;

use crate::memory::{Block, BufferPlacement};

/// Words that are compared or copied at a time: those of a page.
const PAGE_WORDS: usize = 512;

/// Zeroed 64-bit words in pages of their own, which become resident where they are written.
///
/// An allocator hands out zeroed memory, too, but small pieces share pages with what was there before, and it
/// writes the zeros: tables of counters that are hardly used would be resident whole.
pub struct Words {
    /// First word; dangling when there are none.
    base: NonNull<u64>,
    len: usize,
    /// The memory; `None` when there are no words.
    _block: Option<Block>,
}

// SAFETY: the words are owned, and nothing in them is bound to a thread.
unsafe impl Send for Words {}
// SAFETY: through shared words memory can only be read.
unsafe impl Sync for Words {}

impl Words {
    /// None at all.
    #[must_use]
    pub const fn none() -> Self {
        Self { base: NonNull::dangling(), len: 0, _block: None }
    }

    /// `len` words, all zero.
    ///
    /// Ends the process like an allocation does when there is no memory.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        // Neighbours are one mapping to the kernel, and one count would fetch a large page of them.
        Self::advised(len, Block::stay_small)
    }

    /// The same in large pages where the kernel gives them: for tables that are wholly used and met at random. Each page
    /// of the kernel's that is met takes the memory of a large one.
    ///
    /// Ends the process like an allocation does when there is no memory.
    #[must_use]
    pub fn zeroed_large(len: usize) -> Self {
        Self::advised(len, Block::grow_large)
    }

    fn advised(len: usize, advise: fn(&Block)) -> Self {
        if len == 0 {
            return Self::none();
        }
        let layout = Layout::array::<u64>(len).expect("fewer bytes than there are addresses");
        let Ok(block) = Block::new(to_u64(layout.size()), BufferPlacement::System) else {
            handle_alloc_error(layout)
        };
        advise(&block);
        Self { base: block.base().cast(), len, _block: Some(block) }
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        // SAFETY: base..base + len lies in the block that self owns, is page-aligned and was zeroed by the
        // kernel; with no words the pointer is dangling, aligned and not read.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl DerefMut for Words {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as for `deref`, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

/// Pages without a count are not touched in the copy.
impl Clone for Words {
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed(self.len);
        for (mine, theirs) in copy.chunks_mut(PAGE_WORDS).zip(self.chunks(PAGE_WORDS)) {
            if theirs.iter().any(|word| *word != 0) {
                mine.copy_from_slice(theirs);
            }
        }
        copy
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Words {}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    /// Pages that are there, of those that hold `words`.
    fn resident(words: &Words) -> usize {
        let page = rustix::param::page_size();
        let first = words.as_ptr().addr() / page;
        let pages = (words.len() * size_of::<u64>()).div_ceil(page);
        let mut entries = vec![0; pages * size_of::<u64>()];
        let map = std::fs::File::open("/proc/self/pagemap").expect("procfs");
        map.read_exact_at(&mut entries, to_u64(first * size_of::<u64>()))
            .expect("an entry per page");
        // Bit 63: present (Documentation/admin-guide/mm/pagemap.rst).
        entries.chunks(size_of::<u64>()).filter(|entry| entry[7] & 0x80 != 0).count()
    }

    #[test]
    fn words_are_zero_and_keep_what_is_written() {
        let mut words = Words::zeroed(7424);
        assert_eq!((words.len(), words.iter().sum::<u64>()), (7424, 0));
        (words[0], words[7423]) = (1, 2);
        let copy = words.clone();
        words[0] = 5;
        assert_eq!((copy[0], copy[7423], copy.iter().sum::<u64>()), (1, 2, 3));
        assert!(copy != words && copy == copy.clone());
        let mut large = Words::zeroed_large(1 << 19);
        large[(1 << 19) - 1] = 4;
        assert_eq!((large[0], large.iter().sum::<u64>()), (0, 4));
        assert_eq!((Words::zeroed(0), Words::zeroed_large(0)), (Words::none(), Words::none()));
        assert!(Words::none().is_empty());
    }

    #[test]
    fn only_what_is_written_is_resident() {
        let mut many: Vec<Words> = (0..100).map(|_| Words::zeroed(7424)).collect();
        for words in &mut many {
            assert_eq!(resident(words), 0);
            words[100] = 1;
            assert_eq!(resident(words), 1);
            assert_eq!(resident(&words.clone()), 1, "a copy has no more");
        }
    }
}
