//! One interface to latency statistics, two stores (spec 9): exact values for imports and
//! conformance, the run's histogram for everything else.

use std::collections::BTreeMap;

use plumb_units::convert;

use super::Histogram;

/// Latencies as DISKSPD keeps them: 32-bit floats of microseconds, equal values counted together.
#[derive(Debug, Clone, Default)]
pub struct ExactLatencies {
    /// Bits of the (non-negative) float, whose order is that of the values, and how often it was seen.
    counts: BTreeMap<u32, u64>,
    count: u64,
}

impl ExactLatencies {
    /// Counts one value in microseconds; negative values and NaN count as 0.
    pub fn record(&mut self, micros: f32) {
        let micros = if micros > 0.0 { micros } else { 0.0 };
        *self.counts.entry(micros.to_bits()).or_default() += 1;
        self.count += 1;
    }

    /// Values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Distinct values in microseconds, ascending, and how often each was seen.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = (f32, u64)> + '_ {
        self.counts.iter().map(|(bits, count)| (f32::from_bits(*bits), *count))
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        for (bits, count) in &other.counts {
            *self.counts.entry(*bits).or_default() += count;
        }
        self.count += other.count;
    }

    /// Σ v·count / n in ascending order.
    fn mean(&self) -> f64 {
        let sum: f64 = self.values().map(|(value, count)| f64::from(value) * count as f64).sum();
        sum / self.count as f64
    }

    fn variance(&self) -> f64 {
        let mean = self.mean();
        let squares = |(value, count): (f32, u64)| {
            let distance = f64::from(value) - mean;
            count as f64 * distance * distance
        };
        self.values().map(squares).sum::<f64>() / self.count as f64
    }

    /// The smallest value v such that count(values ≤ v) ≥ p·n, a product of doubles.
    fn percentile(&self, p: f64) -> Option<f32> {
        let wanted = p * self.count as f64;
        let mut seen = 0;
        for (value, count) in self.values() {
            seen += count;
            if seen as f64 >= wanted {
                return Some(value);
            }
        }
        self.values().next_back().map(|(value, _)| value)
    }
}

/// A set of latencies, exact or binned.
///
/// Every statistic is `None` for an empty set; DISKSPD shows such a set as 0.000 (spec 9).
#[derive(Debug, Clone)]
pub enum LatencySet {
    /// What a run recorded.
    Binned(Histogram),
    /// What was imported.
    Exact(ExactLatencies),
}

impl Default for LatencySet {
    /// Empty and exact: merging anything into it yields the other set's kind.
    fn default() -> Self {
        Self::Exact(ExactLatencies::default())
    }
}

impl LatencySet {
    /// Values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::Binned(histogram) => histogram.count(),
            Self::Exact(exact) => exact.count(),
        }
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Distinct values: exact ones, or buckets in use.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        match self {
            Self::Binned(histogram) => convert::to_u64(histogram.buckets().count()),
            Self::Exact(exact) => convert::to_u64(exact.counts.len()),
        }
    }

    /// Smallest value in microseconds, exact in both stores.
    #[must_use]
    pub fn min_us(&self) -> Option<f64> {
        self.percentile_us(0.0)
    }

    /// Largest value in microseconds, exact in both stores.
    #[must_use]
    pub fn max_us(&self) -> Option<f64> {
        self.percentile_us(1.0)
    }

    /// Mean in microseconds, exact in both stores.
    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        if self.is_empty() {
            return None;
        }
        Some(match self {
            Self::Binned(histogram) => histogram.sum() as f64 / histogram.count() as f64 / 1e3,
            Self::Exact(exact) => exact.mean(),
        })
    }

    /// Standard deviation of the population in microseconds, exact in both stores.
    #[must_use]
    pub fn stddev_us(&self) -> Option<f64> {
        if self.is_empty() {
            return None;
        }
        Some(match self {
            Self::Binned(histogram) => binned_variance(histogram).sqrt() / 1e3,
            Self::Exact(exact) => exact.variance().sqrt(),
        })
    }

    /// The smallest value v, in microseconds, such that count(values ≤ v) ≥ p·n, for p in 0..=1.
    ///
    /// Binned: the middle of that value's bucket, the exact ends for the first and last rank.
    #[must_use]
    pub fn percentile_us(&self, p: f64) -> Option<f64> {
        match self {
            Self::Binned(histogram) => binned_percentile(histogram, p).map(|ns| ns as f64 / 1e3),
            Self::Exact(exact) => exact.percentile(p).map(f64::from),
        }
    }

    /// Mean of the `count` largest values in microseconds, of all where there are fewer; `None` without any.
    ///
    /// Binned: each value as the middle of its bucket, inside the exact ends.
    #[must_use]
    pub fn mean_of_largest_us(&self, count: u64) -> Option<f64> {
        let wanted = count.min(self.count());
        let mut passed_over = self.count() - wanted;
        let mut sum = 0.0;
        let mut take = |value: f64, held: u64| {
            let passed = passed_over.min(held);
            passed_over -= passed;
            sum += value * (held - passed) as f64;
        };
        match self {
            Self::Binned(histogram) => {
                let ends = (histogram.min().unwrap_or(0), histogram.max().unwrap_or(0));
                for (low, width, held) in histogram.buckets() {
                    take((low + width / 2).clamp(ends.0, ends.1) as f64 / 1e3, held);
                }
            }
            Self::Exact(exact) => {
                exact.values().for_each(|(value, held)| take(f64::from(value), held));
            }
        }
        (wanted > 0).then(|| sum / wanted as f64)
    }

    /// [`LatencySet::percentile_us`] as it is shown: exact values are divided in 32 bits (spec 9).
    #[must_use]
    pub fn percentile_ms(&self, p: f64) -> Option<f64> {
        match self {
            Self::Binned(histogram) => binned_percentile(histogram, p).map(|ns| ns as f64 / 1e6),
            Self::Exact(exact) => exact.percentile(p).map(|micros| f64::from(micros / 1000.0)),
        }
    }

    /// [`LatencySet::mean_us`] as it is shown.
    #[must_use]
    pub fn mean_ms(&self) -> Option<f64> {
        self.mean_us().map(|micros| micros / 1000.0)
    }

    /// [`LatencySet::stddev_us`] as it is shown.
    #[must_use]
    pub fn stddev_ms(&self) -> Option<f64> {
        self.stddev_us().map(|micros| micros / 1000.0)
    }

    /// Adds what `other` counted. Of an exact and a binned set the result is binned: bins can be made
    /// of values, values cannot be made of bins. An empty set takes the other's kind.
    pub fn merge(&mut self, other: &Self) {
        match (&mut *self, other) {
            (_, other) if other.is_empty() => {}
            (mine, other) if mine.is_empty() => *mine = other.clone(),
            (Self::Binned(mine), Self::Binned(theirs)) => mine.merge(theirs),
            (Self::Exact(mine), Self::Exact(theirs)) => mine.merge(theirs),
            (Self::Binned(mine), Self::Exact(theirs)) => mine.merge(&binned(theirs)),
            (Self::Exact(mine), Self::Binned(theirs)) => {
                let mut both = binned(mine);
                both.merge(theirs);
                *self = Self::Binned(both);
            }
        }
    }
}

/// Exact values put into bins, each rounded to a nanosecond.
fn binned(exact: &ExactLatencies) -> Histogram {
    let mut histogram = Histogram::new();
    for (micros, count) in exact.values() {
        histogram.record_many(convert::floor_u64(f64::from(micros) * 1e3 + 0.5), count);
    }
    histogram
}

/// In nanoseconds². Integers as long as they fit: the difference of two large squares is small.
fn binned_variance(histogram: &Histogram) -> f64 {
    let count = u128::from(histogram.count());
    let scaled = histogram.sum_of_squares().checked_mul(count);
    match (scaled, histogram.sum().checked_mul(histogram.sum())) {
        (Some(squares), Some(square)) => {
            squares.saturating_sub(square) as f64 / (count as f64 * count as f64)
        }
        _ => {
            let mean = histogram.sum() as f64 / count as f64;
            (histogram.sum_of_squares() as f64 / count as f64 - mean * mean).max(0.0)
        }
    }
}

/// In nanoseconds.
fn binned_percentile(histogram: &Histogram, p: f64) -> Option<u64> {
    // The smallest whole number of values that is not below the product of doubles.
    let rank = convert::floor_u64((p * histogram.count() as f64).ceil()).max(1);
    match rank {
        1 => histogram.min(),
        rank if rank >= histogram.count() => histogram.max(),
        rank => histogram.value_at_rank(rank),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (count, distinct, min, 25th, median, 99.9th, max, mean, deviation) in ms as text.
    fn check(values: &[f32], want: &str) {
        let mut set = LatencySet::default();
        for value in values {
            let mut one = ExactLatencies::default();
            one.record(*value);
            set.merge(&LatencySet::Exact(one));
        }
        assert_eq!(describe(&set), want);
    }

    fn describe(set: &LatencySet) -> String {
        let cell = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.3}"));
        let percentiles = [0.0, 0.25, 0.5, 0.999, 1.0].map(|p| cell(set.percentile_ms(p)));
        let moments = format!("{} {}", cell(set.mean_ms()), cell(set.stddev_ms()));
        format!("{} {} {} {moments}", set.count(), set.distinct(), percentiles.join(" "))
    }

    fn histogram(nanos: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        nanos.iter().for_each(|nanos| histogram.record(*nanos));
        histogram
    }

    #[test]
    fn exact_values_follow_the_published_rules() {
        check(&[1000.0, 2000.0, 3000.0], "3 3 1.000 1.000 2.000 3.000 3.000 2.000 0.816");
        check(&[250.5, 250.5, 1000.1], "3 2 0.250 0.250 0.250 1.000 1.000 0.500 0.353");
        check(&[], "0 0 - - - - - - -");
        check(&[-1.0, f32::NAN], "2 1 0.000 0.000 0.000 0.000 0.000 0.000 0.000");
    }

    #[test]
    fn the_rank_of_a_percentile_is_a_product_of_doubles() {
        // 0.07 · 100 is 7.000000000000001 in doubles, so the eighth value is the 7th percentile.
        let mut exact = ExactLatencies::default();
        let mut bins = Histogram::new();
        for value in 1..=100_u16 {
            exact.record(value.into());
            bins.record(u64::from(value) * 1000);
        }
        let (exact, bins) = (LatencySet::Exact(exact), LatencySet::Binned(bins));
        assert_eq!(exact.percentile_us(0.07), Some(8.0));
        assert_eq!(exact.percentile_us(0.06), Some(6.0));
        let near = bins.percentile_us(0.07).expect("not empty");
        assert!((near - 8.0).abs() <= 8.0 * Histogram::RELATIVE_ERROR, "{near}");
    }

    #[test]
    fn bins_keep_ends_and_moments_exact() {
        let set = LatencySet::Binned(histogram(&[1_000_001, 2_000_000, 3_000_003]));
        assert_eq!((set.min_us(), set.max_us()), (Some(1000.001), Some(3000.003)));
        assert_eq!(set.mean_us(), Some(6_000_004.0 / 3.0 / 1e3));
        let deviation = set.stddev_us().expect("not empty");
        assert!((deviation - 816.497_396).abs() < 1e-3, "{deviation}");
    }

    #[test]
    fn the_deviation_of_equal_large_values_is_zero() {
        let set = LatencySet::Binned(histogram(&[9_999_999_999; 1000]));
        assert_eq!(set.stddev_us(), Some(0.0));
        // Squares beyond 128 bits once scaled: still a number, still not negative.
        let set = LatencySet::Binned(histogram(&[1 << 62; 4]));
        assert!(set.stddev_us().is_some_and(|deviation| deviation >= 0.0));
    }

    #[test]
    fn merging_mixed_stores_bins_the_exact_one() {
        let mut exact = ExactLatencies::default();
        exact.record(1.5);
        for (mut mine, theirs) in [
            (LatencySet::Exact(exact.clone()), LatencySet::Binned(histogram(&[2000]))),
            (LatencySet::Binned(histogram(&[2000])), LatencySet::Exact(exact)),
        ] {
            mine.merge(&theirs);
            assert!(matches!(mine, LatencySet::Binned(_)));
            assert_eq!((mine.count(), mine.mean_us()), (2, Some(1.75)));
        }
    }
}
