//! The checksums of an extent's blocks in memory: 4 bytes each while nothing is under way, 12 from the first write on until
//! the extent is closed.

use plumb_sys::cache_lines::prefetch_value;

use crate::format::checksum::UNVERIFIED;

/// Checksums of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Of the newest completed write; 0 unwritten.
    pub(crate) newest: u32,
    /// Committed: its data is durable. What the tree holds.
    pub(crate) committed: u32,
    /// [`PENDING`], [`SEALED`], [`TENTATIVE`], [`COMMITTING`], [`UNSETTLED`].
    pub(crate) flags: u8,
}

impl Sum {
    /// Whether a write to the block is its first, as far as anybody knows: what lay there before is never taken for it.
    #[inline]
    pub(crate) fn is_first(self) -> bool {
        self.newest == 0 || self.is_unverified()
    }

    /// Whether its checksum is lost (LAY-7).
    #[inline]
    pub(crate) fn is_unverified(self) -> bool {
        self.newest == UNVERIFIED
    }

    /// Of a block that nothing is under way of.
    #[inline]
    pub(crate) fn settled(crc: u32) -> Self {
        Self { newest: crc, committed: crc, flags: 0 }
    }

    fn is_settled(self) -> bool {
        self == Self::settled(self.committed)
    }
}

/// Newest differs from committed, or may: a round has yet to commit it.
pub(crate) const PENDING: u8 = 1;
/// The running round commits it.
pub(crate) const SEALED: u8 = 2;
/// Its first write is not known to be durable (CRC-2).
pub(crate) const TENTATIVE: u8 = 4;
/// The record that commits it is written, and not yet known to be durable.
pub(crate) const COMMITTING: u8 = 8;
/// A start could not decide what it is, or not make that durable (CRC-3, CRC-4), or a write over it failed everywhere: it is
/// what the journal says, until it is decided or written anew. Its extent stays open.
pub(crate) const UNSETTLED: u8 = 16;

/// Checksums of all blocks of an extent.
#[derive(Debug, Clone, Default)]
pub(crate) enum Sums {
    /// The extent has no place.
    #[default]
    None,
    /// Nothing is under way of any block.
    Settled(Box<[u32]>),
    /// It may be.
    Open(Box<[Sum]>),
    /// They are on the disks alone, for want of memory ([`crate::sums_cache`]): whoever needs them has them fetched first.
    Away,
}

impl Sums {
    /// Of an extent that was just mapped.
    pub(crate) fn unwritten(blocks: usize) -> Self {
        Self::Settled(vec![0; blocks].into())
    }

    /// Of a block; `None` where there is none.
    #[inline]
    pub(crate) fn get(&self, nth: usize) -> Option<Sum> {
        match self {
            Self::None => None,
            Self::Away => away(),
            Self::Settled(all) => all.get(nth).copied().map(Sum::settled),
            Self::Open(all) => all.get(nth).copied(),
        }
    }

    /// Of a block.
    ///
    /// # Panics
    /// When the extent has no place, or not that block.
    #[inline]
    pub(crate) fn at(&self, nth: usize) -> Sum {
        match self {
            Self::None => panic!("the extent has no place"),
            Self::Away => away(),
            Self::Settled(all) => Sum::settled(all[nth]),
            Self::Open(all) => all[nth],
        }
    }

    /// Of each block in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Sum> + '_ {
        (0..).map_while(|nth| self.get(nth))
    }

    /// Of a block, to change; something is under way from now on. `None` where there is none.
    #[inline]
    pub(crate) fn get_mut(&mut self, nth: usize) -> Option<&mut Sum> {
        self.open().get_mut(nth)
    }

    /// Of a block, to change; something is under way from now on.
    ///
    /// # Panics
    /// When the extent has no place, or not that block.
    #[inline]
    pub(crate) fn at_mut(&mut self, nth: usize) -> &mut Sum {
        &mut self.open()[nth]
    }

    /// Of all blocks, to change; something is under way from now on.
    #[inline]
    pub(crate) fn open(&mut self) -> &mut [Sum] {
        if !matches!(self, Self::Open(_)) {
            self.widen();
        }
        match self {
            Self::Open(all) => all,
            Self::Away => away(),
            _ => &mut [],
        }
    }

    #[cold]
    fn widen(&mut self) {
        if let Self::Settled(all) = self {
            *self = Self::Open(all.iter().copied().map(Sum::settled).collect());
        }
    }

    /// Sets what a block is: nothing is under way of it.
    pub(crate) fn set(&mut self, nth: usize, crc: u32) {
        match self {
            Self::Settled(all) if nth < all.len() => all[nth] = crc,
            Self::Open(all) if nth < all.len() => all[nth] = Sum::settled(crc),
            Self::Away => away(),
            _ => {}
        }
    }

    /// Of each block in order, if something may be under way of any.
    pub(crate) fn under_way(&self) -> &[Sum] {
        match self {
            Self::Open(all) => all,
            _ => &[],
        }
    }

    /// Nothing is under way of any block any more, if that is so.
    pub(crate) fn close(&mut self) {
        if let Self::Open(all) = self
            && all.iter().all(|sum| sum.is_settled())
        {
            *self = Self::Settled(all.iter().map(|sum| sum.committed).collect());
        }
    }

    /// They are in the processor's caches soon.
    #[inline]
    pub(crate) fn prefetch(&self, nth: usize) {
        match self {
            Self::None | Self::Away => {}
            Self::Settled(all) => all.get(nth).into_iter().for_each(prefetch_value),
            Self::Open(all) => all.get(nth).into_iter().for_each(prefetch_value),
        }
    }
}

/// Nobody may take what is not here for unwritten.
#[cold]
fn away() -> ! {
    panic!("checksums are needed that were not fetched")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_settled_takes_four_bytes_and_says_the_same() {
        let mut sums = Sums::unwritten(3);
        sums.set(1, 7);
        sums.set(3, 9);
        let all: Vec<Sum> = sums.iter().collect();
        assert_eq!(all, [Sum::default(), Sum::settled(7), Sum::default()]);
        sums.at_mut(2).flags = PENDING;
        assert_eq!(sums.at(1), Sum::settled(7));
        sums.close();
        assert!(matches!(sums, Sums::Open(_)), "something is under way");
        sums.at_mut(2).newest = 5;
        sums.set(2, 5);
        sums.close();
        assert!(matches!(sums, Sums::Settled(_)));
        assert_eq!((sums.at(2), sums.get(3)), (Sum::settled(5), None));
        assert_eq!((Sums::None.get(0), Sums::None.iter().count()), (None, 0));
        assert!(Sums::None.get_mut(0).is_none());
    }
}
