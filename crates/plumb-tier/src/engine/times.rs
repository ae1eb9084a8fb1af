//! How long things took, by buckets that grow with the time: 64 to each doubling, or 1,024 where percentiles are told with three
//! digits.

use crate::log_buckets::{COARSE, FINE, bucket_of, count, range_of};

use plumb_units::Nanos;

/// A histogram of times. A doubling has its buckets from its first time on: most never come, and an engine has dozens of
/// histograms.
#[derive(Debug, Default)]
pub(super) struct Times<const BITS: u32 = COARSE> {
    doublings: Vec<Doubling>,
    count: u64,
}

/// Buckets next to each other, `1 << BITS` of them, or none while they are all 0.
#[derive(Debug, Clone, Default)]
struct Doubling {
    count: u64,
    buckets: Box<[u32]>,
}

/// One whose percentiles have three digits (section 12).
pub(super) type FineTimes = Times<FINE>;

impl<const BITS: u32> Times<BITS> {
    /// With room for all doublings.
    pub(super) fn with_room() -> Self {
        let doublings = (count(BITS) >> BITS) + 1;
        Self { doublings: vec![Doubling::default(); doublings], count: 0 }
    }

    #[inline]
    pub(super) fn note(&mut self, time: Nanos) {
        if self.doublings.is_empty() {
            *self = Self::with_room();
        }
        let nth = bucket_of::<BITS>(time.0);
        let doubling = &mut self.doublings[nth >> BITS];
        if doubling.buckets.is_empty() {
            doubling.buckets = Doubling::room::<BITS>();
        }
        let bucket = &mut doubling.buckets[nth & ((1 << BITS) - 1)];
        *bucket = bucket.saturating_add(1);
        doubling.count += 1;
        self.count += 1;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn clear(&mut self) {
        for doubling in self.doublings.iter_mut().filter(|doubling| doubling.count > 0) {
            doubling.buckets.fill(0);
            doubling.count = 0;
        }
        self.count = 0;
    }

    pub(super) fn add(&mut self, other: &Self) {
        if self.doublings.is_empty() && !other.doublings.is_empty() {
            *self = Self::with_room();
        }
        let both = self.doublings.iter_mut().zip(&other.doublings);
        for (own, more) in both.filter(|(_, more)| more.count > 0) {
            if own.buckets.is_empty() {
                own.buckets = Doubling::room::<BITS>();
            }
            for (own, more) in own.buckets.iter_mut().zip(&more.buckets) {
                *own = own.saturating_add(*more);
            }
            own.count += more.count;
        }
        self.count += other.count;
    }

    /// The time within which so many of a thousand ended: the least of its bucket; `None` of nothing.
    pub(super) fn per_mille(&self, share: u64) -> Option<u64> {
        let wanted = self.count.saturating_mul(share).div_ceil(1000).max(1);
        let mut seen = 0;
        let nth = self.doublings.iter().position(|doubling| {
            seen += doubling.count;
            seen >= wanted
        })?;
        seen -= self.doublings[nth].count;
        let reached = |count: &u32| {
            seen += u64::from(*count);
            seen >= wanted
        };
        let within = self.doublings[nth].buckets.iter().position(reached)?;
        Some(range_of::<BITS>((nth << BITS) + within).0)
    }

    /// The 99th percentile, of `enough` or more.
    pub(super) fn p99(&self, enough: u64) -> Option<u64> {
        self.per_mille(990).filter(|_| self.count >= enough)
    }
}

impl Doubling {
    /// The buckets of one.
    #[cold]
    fn room<const BITS: u32>() -> Box<[u32]> {
        vec![0; 1 << BITS].into_boxed_slice()
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
