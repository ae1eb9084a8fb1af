//! How long things took, by buckets that grow with the time: 64 to each doubling.

use crate::log_buckets;

use plumb_units::Nanos;

/// A histogram of times.
#[derive(Debug, Default)]
pub(super) struct Times {
    buckets: Vec<u32>,
    count: u64,
}

impl Times {
    /// With all its memory, so that nothing is allocated later.
    pub(super) fn with_room() -> Self {
        Self { buckets: vec![0; log_buckets::COUNT], count: 0 }
    }

    #[inline]
    pub(super) fn note(&mut self, time: Nanos) {
        if self.buckets.is_empty() {
            *self = Self::with_room();
        }
        let bucket = &mut self.buckets[log_buckets::bucket(time.0)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn clear(&mut self) {
        self.buckets.fill(0);
        self.count = 0;
    }

    pub(super) fn add(&mut self, other: &Self) {
        if self.buckets.is_empty() && !other.buckets.is_empty() {
            *self = Self::with_room();
        }
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = own.saturating_add(*more);
        }
        self.count += other.count;
    }

    /// The time within which so many of a thousand ended: the least of its bucket; `None` of nothing.
    pub(super) fn per_mille(&self, share: u64) -> Option<u64> {
        let wanted = self.count.saturating_mul(share).div_ceil(1000).max(1);
        let mut seen = 0;
        let reached = |count: &u32| {
            seen += u64::from(*count);
            seen >= wanted
        };
        self.buckets.iter().position(reached).map(|bucket| log_buckets::range(bucket).0)
    }

    /// The 99th percentile, of `enough` or more.
    pub(super) fn p99(&self, enough: u64) -> Option<u64> {
        self.per_mille(990).filter(|_| self.count >= enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_a_sorted_list() {
        let mut times = Times::default();
        assert_eq!((times.per_mille(500), times.p99(1)), (None, None));
        (1..=1000).for_each(|time| times.note(Nanos(time * 1000)));
        for (share, wanted) in [(1, 1000_u64), (500, 500_000), (990, 990_000), (1000, 1_000_000)] {
            let found = times.per_mille(share).expect("some");
            assert!(found <= wanted && found * 64 >= wanted * 63, "{share}: {found}, {wanted}");
        }
        assert_eq!((times.p99(1000).is_some(), times.p99(1001)), (true, None));
    }
}
