//! The run's latency store: a log-linear histogram of nanoseconds.

use std::ops::Range;

use plumb_sys::words::Words;
use plumb_units::convert;

/// Sub-buckets per power of two: a bucket is at most 1/128 of its values wide.
const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;
/// Groups of 128 buckets: one linear (0..128 ns), then one per further power of two up to 2^64.
const BUCKETS: u64 = SUB * (64 - SUB_BITS as u64 + 1);

/// Counts of latencies in nanoseconds, with a relative error of at most 1/128 (0.8 %) per value.
///
/// Values below 128 ns have a bucket each. Count, sum, sum of squares, minimum and maximum are exact.
/// Memory is fixed (58 KiB of address space, touched where values fall).
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Words,
    count: u64,
    sum: u128,
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// The largest relative error of a percentile read from it.
    pub const RELATIVE_ERROR: f64 = 1.0 / 128.0;

    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        Self { counts: Words::zeroed(convert::to_usize(BUCKETS)), ..Self::without_buckets() }
    }

    /// Takes no memory and counts nothing: for runs that do not measure latencies.
    ///
    /// Recording into it panics.
    pub(crate) fn without_buckets() -> Self {
        Self { counts: Words::none(), count: 0, sum: 0, sum_of_squares: 0, min: u64::MAX, max: 0 }
    }

    /// Counts one value.
    #[inline(always)]
    pub fn record(&mut self, nanos: u64) {
        self.record_alike(nanos, 1);
    }

    /// Counts one value `times` times, for the hot path.
    #[inline(always)]
    pub(crate) fn record_alike(&mut self, nanos: u64, times: u32) {
        let (value, many) = (u128::from(nanos), u128::from(times));
        self.counts[bucket_of(nanos)] += u64::from(times);
        self.count += u64::from(times);
        self.sum += value * many;
        self.sum_of_squares += value * value * many;
        // Extremes are rare: two branches that are not taken cost less than two conditional moves.
        if nanos < self.min {
            std::hint::cold_path();
            self.min = nanos;
        }
        if nanos > self.max {
            std::hint::cold_path();
            self.max = nanos;
        }
    }

    /// Counts one value `times` times; not for the hot path.
    pub fn record_many(&mut self, nanos: u64, times: u64) {
        if times == 0 {
            return;
        }
        let (value, many) = (u128::from(nanos), u128::from(times));
        self.counts[bucket_of(nanos)] += times;
        self.count += times;
        self.sum += value * many;
        self.sum_of_squares =
            self.sum_of_squares.saturating_add((value * value).saturating_mul(many));
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
    }

    /// Counts one value `times` times, cheaply: without the moments, which such a histogram has not.
    #[inline(always)]
    pub(crate) fn record_few(&mut self, nanos: u64, times: u32) {
        if times > 0 {
            self.counts[bucket_of(nanos)] += u64::from(times);
            self.count += u64::from(times);
            self.min = self.min.min(nanos);
            self.max = self.max.max(nanos);
        }
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let touched = other.touched();
        let both = self.counts[touched.clone()].iter_mut().zip(&other.counts[touched]);
        // A page that nothing is written to does not become resident.
        for (mine, theirs) in both.filter(|(_, theirs)| **theirs > 0) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything, keeps the memory. What no value fell into is not written to, be it between others: those pages
    /// never become resident.
    pub fn clear(&mut self) {
        let touched = self.touched();
        self.counts[touched].iter_mut().filter(|count| **count > 0).for_each(|count| *count = 0);
        self.count = 0;
        self.sum = 0;
        self.sum_of_squares = 0;
        self.min = u64::MAX;
        self.max = 0;
    }

    /// Where counts can be: between the buckets of the extremes.
    fn touched(&self) -> Range<usize> {
        if self.count == 0 { 0..0 } else { bucket_of(self.min)..bucket_of(self.max) + 1 }
    }

    /// Values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all values in nanoseconds, exact.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Sum of the squares of all values, exact.
    #[must_use]
    pub fn sum_of_squares(&self) -> u128 {
        self.sum_of_squares
    }

    /// Smallest value in nanoseconds, exact; `None` when empty.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Largest value in nanoseconds, exact; `None` when empty.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Non-empty buckets in ascending order: (lowest value, values in the bucket's range, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let touched = self.touched();
        let first = touched.start;
        let counts = self.counts[touched].iter().enumerate();
        counts.filter(|(_, count)| **count > 0).map(move |(index, count)| {
            let (low, width) = bucket_range(first + index);
            (low, width, *count)
        })
    }

    /// Rebuilds a histogram from what [`Histogram::buckets`] and the exact moments gave.
    ///
    /// `None` when a bucket's lowest value is not one of this histogram's, a count overflows, or the
    /// extremes are not in the first and the last bucket.
    #[must_use]
    pub fn from_parts(
        buckets: impl IntoIterator<Item = (u64, u64)>,
        (sum, sum_of_squares): (u128, u128),
        (min, max): (u64, u64),
    ) -> Option<Self> {
        let mut histogram = Self::new();
        let (mut first, mut last) = (usize::MAX, 0);
        for (low, count) in buckets {
            let index = bucket_of(low);
            if bucket_range(index).0 != low {
                return None;
            }
            let cell = &mut histogram.counts[index];
            *cell = cell.checked_add(count)?;
            histogram.count = histogram.count.checked_add(count)?;
            if count > 0 {
                (first, last) = (first.min(index), last.max(index));
            }
        }
        if histogram.count > 0 {
            if (bucket_of(min), bucket_of(max)) != (first, last) {
                return None;
            }
            (histogram.sum, histogram.sum_of_squares) = (sum, sum_of_squares);
            (histogram.min, histogram.max) = (min, max);
        }
        Some(histogram)
    }

    /// The smallest value v such that at least `rank` values are ≤ v, to the bucket's middle and
    /// inside [min, max]; `None` when fewer than `rank` values were counted. `rank` counts from 1.
    #[must_use]
    pub fn value_at_rank(&self, rank: u64) -> Option<u64> {
        if rank > self.count || self.count == 0 {
            return None;
        }
        let mut seen = 0;
        for (low, width, count) in self.buckets() {
            seen += count;
            if seen >= rank {
                return Some((low + width / 2).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }
}

/// Which bucket a value falls into: the value itself below 128, else 128 per power of two.
#[inline(always)]
fn bucket_of(nanos: u64) -> usize {
    // The first two stretches are of width 1: nothing is shifted below 256.
    let shift = (nanos | (2 * SUB - 1)).ilog2() - SUB_BITS;
    convert::to_usize((u64::from(shift) << SUB_BITS) + (nanos >> shift))
}

/// The lowest value of a bucket and how many values it holds.
fn bucket_range(index: usize) -> (u64, u64) {
    let index = convert::to_u64(index);
    if index < 2 * SUB {
        return (index, 1);
    }
    let shift = (index >> SUB_BITS) - 1;
    ((index - (shift << SUB_BITS)) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_the_whole_range_within_the_stated_error() {
        let mut next = 0_u64;
        for index in 0..convert::to_usize(BUCKETS) {
            let (low, width) = bucket_range(index);
            assert_eq!(low, next, "bucket {index} starts where the last one ended");
            let last = low + (width - 1);
            assert_eq!((bucket_of(low), bucket_of(last)), (index, index));
            assert!(width == 1 || width as f64 / low as f64 <= Histogram::RELATIVE_ERROR);
            if last == u64::MAX {
                assert_eq!(index + 1, convert::to_usize(BUCKETS));
                return;
            }
            next = last + 1;
        }
        panic!("the last bucket ends below 2^64");
    }

    #[test]
    fn a_cleared_histogram_is_a_new_one() {
        let mut histogram = Histogram::new();
        for values in [&[0, u64::MAX][..], &[127, 128, 40_000], &[7]] {
            values.iter().for_each(|value| histogram.record(*value));
            histogram.clear();
            assert_eq!(histogram.counts, Histogram::new().counts, "{values:?}");
            assert_eq!((histogram.count(), histogram.buckets().count()), (0, 0));
        }
        // Cheap counts end there too.
        histogram.record_few(90_000, 2);
        histogram.record_many(3, 4);
        histogram.clear();
        assert_eq!(histogram.counts, Histogram::new().counts);
    }

    #[test]
    fn parts_make_a_histogram_again_unless_they_contradict_each_other() {
        let mut histogram = Histogram::new();
        [90, 5_000, 5_001, 7_000_000].iter().for_each(|value| histogram.record(*value));
        let buckets: Vec<_> = histogram.buckets().map(|(low, _, count)| (low, count)).collect();
        let sums = (histogram.sum, histogram.sum_of_squares);
        let again =
            Histogram::from_parts(buckets.clone(), sums, (90, 7_000_000)).expect("the same");
        assert_eq!((&again.counts, again.count), (&histogram.counts, 4));
        for extremes in [(89, 7_000_000), (90, 8_000_000), (5_000, 7_000_000), (90, 5_001)] {
            assert!(
                Histogram::from_parts(buckets.clone(), sums, extremes).is_none(),
                "{extremes:?}"
            );
        }
        assert!(Histogram::from_parts([(5_001, 1)], (5_001, 0), (5_001, 5_001)).is_none());
    }

    #[test]
    fn merging_equals_recording_together() {
        let (mut a, mut b, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        let mut value = 1_u64;
        for step in 0..10_000_u64 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
            let nanos = value >> (12 + value % 50);
            if step % 3 == 0 {
                a.record(nanos);
            } else {
                b.record(nanos);
            }
            both.record(nanos);
        }
        a.merge(&b);
        assert_eq!(a.counts, both.counts);
        assert_eq!(
            (a.sum, a.sum_of_squares, a.min, a.max),
            (both.sum, both.sum_of_squares, both.min, both.max)
        );
    }
}
