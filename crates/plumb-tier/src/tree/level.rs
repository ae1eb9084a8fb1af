//! Pointers to the pages of a level of a tree. Where none was ever set there is no memory: a virtual disk of 100 TiB may have
//! 26 million leaves of checksums, and data in a few.

use crate::format::page::Pointer;

/// By the number of the page.
#[derive(Debug, Default)]
pub(super) struct Level(Vec<u64>);

impl Level {
    /// So many that point to no page.
    pub(super) fn new(len: usize) -> Self {
        Self(vec![0; len])
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// # Panics
    /// When there are not as many pages.
    pub(super) fn at(&self, nth: usize) -> Pointer {
        pointer(self.0[nth])
    }

    pub(super) fn get(&self, nth: usize) -> Option<Pointer> {
        self.0.get(nth).copied().map(pointer)
    }

    /// Sets one, if there is one; what it was.
    pub(super) fn set(&mut self, nth: usize, to: Pointer) -> Pointer {
        let word = u64::from(to.crc) << 32 | u64::from(to.page);
        self.0.get_mut(nth).map(|own| pointer(std::mem::replace(own, word))).unwrap_or_default()
    }

    /// Those that point to a page, from a number on, and their numbers.
    pub(super) fn set_from(&self, first: usize) -> impl Iterator<Item = (usize, Pointer)> {
        let all = self.0.iter().enumerate().skip(first);
        all.map(|(nth, word)| (nth, pointer(*word))).filter(|own| own.1.page != 0)
    }

    /// Takes over those of a level with as many pages, or fewer.
    pub(super) fn take_over(&mut self, other: &Self) {
        for (nth, own) in other.set_from(0) {
            self.set(nth, own);
        }
    }
}

fn pointer(word: u64) -> Pointer {
    let low = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0);
    Pointer { page: low(word), crc: low(word >> 32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_what_they_were_set_to() {
        let (first, last) =
            (Pointer { page: 1, crc: u32::MAX }, Pointer { page: u32::MAX, crc: 0 });
        let mut level = Level::new(3);
        assert_eq!((level.set(0, first), level.set(2, last)), Default::default());
        assert_eq!(level.set(9, last), Pointer::default(), "there is none");
        assert_eq!([0, 1, 2].map(|nth| level.at(nth)), [first, Pointer::default(), last]);
        assert_eq!((level.get(2), level.get(3), level.len()), (Some(last), None, 3));
        assert_eq!(level.set_from(1).collect::<Vec<_>>(), [(2, last)]);
        let mut larger = Level::new(5);
        larger.take_over(&level);
        assert_eq!(larger.set_from(0).collect::<Vec<_>>(), [(0, first), (2, last)]);
        assert_eq!(level.set(0, last), first);
    }
}
