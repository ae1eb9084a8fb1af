//! The first so many of very many keys, without keeping them all.

use plumb_units::convert::{low_u32, to_usize};

/// A score and an extent as one number: it sorts by score, then by extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

impl Key {
    /// The coldest first; scores are not negative.
    pub(super) fn coldest(score: f32, extent: u32) -> Self {
        // Bits of floats that are not negative sort as the floats do.
        Self(u64::from(score.to_bits()) << 32 | u64::from(extent))
    }

    /// The hottest first.
    pub(super) fn hottest(score: f32, extent: u32) -> Self {
        Self(u64::from(!score.to_bits()) << 32 | u64::from(extent))
    }

    /// The score of a key that sorts the coldest first.
    pub(super) fn cold_score(self) -> f32 {
        f32::from_bits(low_u32(self.0 >> 32))
    }

    /// The score of a key that sorts the hottest first.
    pub(super) fn hot_score(self) -> f32 {
        f32::from_bits(!low_u32(self.0 >> 32))
    }

    pub(super) fn extent(self) -> u32 {
        low_u32(self.0)
    }
}

/// Keeps the least keys.
#[derive(Debug)]
pub(super) struct Least {
    keep: usize,
    keys: Vec<Key>,
}

impl Least {
    pub(super) fn new(keep: u64) -> Self {
        Self { keep: to_usize(keep), keys: Vec::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, key: Key) {
        if self.keep == 0 {
            return;
        }
        // Twice as many as wanted are gathered before half of them go: constant work for each.
        if self.keys.len() >= self.keep.saturating_mul(2).max(1024) {
            self.keys.select_nth_unstable(self.keep);
            self.keys.truncate(self.keep);
        }
        self.keys.push(key);
    }

    /// In order.
    pub(super) fn sorted(mut self) -> Vec<Key> {
        self.keys.sort_unstable();
        self.keys.truncate(self.keep);
        self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_least_of_many_are_those_of_a_sort() {
        let mut random = Random::new(4);
        for (count, keep) in [(0, 5), (10_000, 0), (10_000, 1), (10_000, 700), (10_000, 20_000)] {
            let keys: Vec<Key> = (0..count)
                .map(|extent| Key::coldest(random.below(50) as f32 / 16.0, extent))
                .collect();
            let mut least = Least::new(keep);
            keys.iter().for_each(|key| least.push(*key));
            let mut wanted = keys;
            wanted.sort();
            wanted.truncate(to_usize(keep));
            assert_eq!(least.sorted(), wanted, "{keep} of {count}");
        }
        assert!(Key::hottest(2.0, 9) < Key::hottest(1.0, 3));
        assert!(Key::hottest(2.0, 3) < Key::hottest(2.0, 9) && Key::coldest(0.0, 3).extent() == 3);
    }
}
