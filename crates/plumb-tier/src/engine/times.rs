//! How long things took, by buckets that grow with the time: 64 to each doubling, or 1,024 where percentiles are told with three
//! digits.

use crate::log_buckets::{COARSE, FINE, bucket_of, count, range_of};

use plumb_units::Nanos;

/// A histogram of times.
#[derive(Debug, Default)]
pub(super) struct Times<const BITS: u32 = COARSE> {
    buckets: Vec<u32>,
    /// Of each doubling.
    groups: Vec<u64>,
    count: u64,
}

/// One whose percentiles have three digits (section 12).
pub(super) type FineTimes = Times<FINE>;

impl<const BITS: u32> Times<BITS> {
    /// With all its memory, so that nothing is allocated later.
    pub(super) fn with_room() -> Self {
        let buckets = count(BITS);
        Self { buckets: vec![0; buckets], groups: vec![0; (buckets >> BITS) + 1], count: 0 }
    }

    #[inline]
    pub(super) fn note(&mut self, time: Nanos) {
        if self.buckets.is_empty() {
            *self = Self::with_room();
        }
        let nth = bucket_of::<BITS>(time.0);
        self.buckets[nth] = self.buckets[nth].saturating_add(1);
        self.groups[nth >> BITS] += 1;
        self.count += 1;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn clear(&mut self) {
        self.buckets.fill(0);
        self.groups.fill(0);
        self.count = 0;
    }

    pub(super) fn add(&mut self, other: &Self) {
        if self.buckets.is_empty() && !other.buckets.is_empty() {
            *self = Self::with_room();
        }
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = own.saturating_add(*more);
        }
        self.groups.iter_mut().zip(&other.groups).for_each(|(own, more)| *own += more);
        self.count += other.count;
    }

    /// The time within which so many of a thousand ended: the least of its bucket; `None` of nothing.
    pub(super) fn per_mille(&self, share: u64) -> Option<u64> {
        let wanted = self.count.saturating_mul(share).div_ceil(1000).max(1);
        let mut seen = 0;
        let group = self.groups.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        seen -= self.groups[group];
        let first = group << BITS;
        let reached = |count: &u32| {
            seen += u64::from(*count);
            seen >= wanted
        };
        let within = self.buckets[first..].iter().position(reached)?;
        Some(range_of::<BITS>(first + within).0)
    }

    /// The 99th percentile, of `enough` or more.
    pub(super) fn p99(&self, enough: u64) -> Option<u64> {
        self.per_mille(990).filter(|_| self.count >= enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_those_of_a_sorted_list<const BITS: u32>() {
        let mut times = Times::<BITS>::default();
        assert_eq!((times.per_mille(500), times.p99(1)), (None, None));
        (1..=1000).for_each(|time| times.note(Nanos(time * 1000)));
        for (share, wanted) in [(1, 1000_u64), (500, 500_000), (990, 990_000), (1000, 1_000_000)] {
            let found = times.per_mille(share).expect("some");
            assert!(
                found <= wanted && (wanted - found) << BITS <= wanted,
                "{share}: {found}, {wanted}"
            );
        }
        assert_eq!((times.p99(1000).is_some(), times.p99(1001)), (true, None));
        let mut both = Times::<BITS>::default();
        both.add(&times);
        both.add(&times);
        assert_eq!((both.count(), both.per_mille(500)), (2000, times.per_mille(500)));
        both.clear();
        assert_eq!((both.count(), both.per_mille(500)), (0, None));
    }

    #[test]
    fn percentiles_are_those_of_a_sorted_list() {
        are_those_of_a_sorted_list::<COARSE>();
        are_those_of_a_sorted_list::<FINE>();
    }
}
