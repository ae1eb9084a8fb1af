//! Latencies: mean and quantiles.

use crate::log_buckets::{COUNT, bucket, range};

/// Counts of values.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self { counts: vec![0; COUNT], total: 0, sum: 0 }
    }

    pub(super) fn add(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.total += 1;
        self.sum += u128::from(value);
    }

    /// `None` without values.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// The value that at least `share` of all are at most, up to 1.6 % too high; `None` without values.
    pub(super) fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = (share * self.total as f64).ceil().max(1.0);
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen as f64 >= wanted
        };
        let (first, width) = range(self.counts.iter().position(reached)?);
        Some(first + width - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn quantiles_are_those_of_a_sort() {
        let mut random = Random::new(9);
        let mut histogram = Histogram::new();
        assert_eq!((histogram.mean(), histogram.quantile(0.5)), (None, None));
        let mut values: Vec<u64> = (0..10_000)
            .map(|_| {
                let bits = random.below(40);
                random.below(1 << bits)
            })
            .collect();
        values.iter().for_each(|value| histogram.add(*value));
        values.sort_unstable();
        for (share, nth) in [(0.5, 4999), (0.99, 9899), (1.0, 9999), (0.0, 0)] {
            let (found, exact) = (histogram.quantile(share).expect("values"), values[nth]);
            assert!(
                found >= exact && found as f64 <= exact as f64 * 1.016 + 1.0,
                "{found} {exact}"
            );
        }
        let mean = values.iter().sum::<u64>() as f64 / 10_000.0;
        assert!((histogram.mean().expect("values") / mean - 1.0).abs() < 1e-9);
    }
}
