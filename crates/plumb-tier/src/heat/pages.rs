//! The pages of a map, one after the other in one piece of memory: the entry of an extent is found without a look at
//! anything else of its page, and a large map lies in large pages of the processor's.

use plumb_sys::cache_lines::prefetch_value;
use plumb_sys::words::Words;
use plumb_units::convert::{index, to_u64};

use super::PAGE_EXTENTS;
use super::page::{Head, Page, PageMut};

/// Words of a page.
const WORDS: usize = 256;
/// From so many words on, 4 MiB, large pages are asked for.
const LARGE: usize = 1 << 19;
/// Bytes of one: so much more than what is used may be resident.
const LARGE_BYTES: usize = 2 << 20;

/// All pages that there are.
#[derive(Debug)]
pub(super) struct Pages {
    heads: Vec<Head>,
    /// Room for the most that there may be; it becomes resident where pages come into being.
    words: Words,
}

impl Pages {
    pub(super) fn new() -> Self {
        Self { heads: Vec::new(), words: Words::none() }
    }

    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Heads that there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.heads.capacity()
    }

    /// Bytes that the entries of so many pages take at most, where there is room for `most`.
    pub(super) fn resident_most(pages: usize, most: usize) -> u64 {
        let (used, room) = (8 * WORDS * pages, 8 * WORDS * most);
        to_u64(match 8 * LARGE <= room && pages > 0 {
            true => room.min(used + LARGE_BYTES),
            false => used,
        })
    }

    pub(super) fn reserve_heads(&mut self, more: usize) {
        self.heads.reserve_exact(more);
    }

    /// Makes room for the entries of so many pages.
    pub(super) fn reserve(&mut self, pages: usize) {
        let wanted = pages * WORDS;
        if self.words.len() >= wanted {
            return;
        }
        let mut words = match wanted >= LARGE {
            true => Words::zeroed_large(wanted),
            false => Words::zeroed(wanted),
        };
        let used = self.len() * WORDS;
        words[..used].copy_from_slice(&self.words[..used]);
        self.words = words;
    }

    /// One more, all cold.
    ///
    /// # Panics
    /// Without room for it.
    pub(super) fn push(&mut self, slab: u32, epoch: u64) {
        self.heads.push(Head::new(slab, epoch));
        self.get_mut(self.len() - 1).clear(epoch);
    }

    /// Takes one out, and puts the last one in its place; whose slab that is.
    pub(super) fn swap_remove(&mut self, nth: usize) -> Option<u32> {
        self.heads.swap_remove(nth);
        let last = self.len();
        let moved = self.heads.get(nth)?.slab;
        self.words.copy_within(last * WORDS..(last + 1) * WORDS, nth * WORDS);
        Some(moved)
    }

    #[cfg(test)]
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn heads(&self) -> &[Head] {
        &self.heads
    }

    #[inline]
    pub(super) fn get(&self, nth: usize) -> Page<'_> {
        Page { head: &self.heads[nth], words: &self.words[nth * WORDS..(nth + 1) * WORDS] }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, nth: usize) -> PageMut<'_> {
        let words = &mut self.words[nth * WORDS..(nth + 1) * WORDS];
        PageMut { head: &mut self.heads[nth], words }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Page<'_>> {
        (0..self.len()).map(|nth| self.get(nth))
    }

    /// Calls for each page.
    pub(super) fn for_each(&mut self, mut each: impl FnMut(PageMut<'_>)) {
        for (head, words) in self.heads.iter_mut().zip(self.words.chunks_exact_mut(WORDS)) {
            each(PageMut { head, words });
        }
    }

    /// The entry of an extent in a page will be counted in soon.
    #[inline]
    pub(super) fn expect(&self, nth: usize, extent: u32) {
        if let Some(word) = self.words.get(nth * WORDS + index(extent % PAGE_EXTENTS)) {
            prefetch_value(word);
        }
        if let Some(head) = self.heads.get(nth) {
            prefetch_value(head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_their_entries_when_others_go_and_the_room_grows() {
        let mut pages = Pages::new();
        pages.reserve(3);
        for slab in 0..3_u32 {
            pages.push(slab, 7);
            pages.get_mut(index(slab)).words[5] = u64::from(slab) + 100;
        }
        pages.reserve(LARGE / WORDS + 1);
        assert_eq!(pages.swap_remove(0), Some(2));
        assert_eq!(pages.swap_remove(1), None);
        assert_eq!((pages.len(), pages.get(0).words[5], pages.get(0).head.slab), (1, 102, 2));
        // Where one was before there is nothing of it.
        pages.push(9, 0);
        assert!(pages.get(1).words.iter().all(|word| *word == 0));
    }
}
