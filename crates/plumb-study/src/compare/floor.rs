//! How well a mean of runs can be known at best (docs/decisions/0225-no-mean-is-exact.md).
//!
//! Runs that agree to the last digit are not exact for that: percentiles come from the buckets of a histogram (5.4), and two or three values may agree
//! by chance.

use super::{Estimate, Metric};

/// Width of a histogram's bucket, relative: 2^7 of them to each factor of two (5.4).
const BUCKET: f64 = 1.0 / 128.0;
/// SD of ln x between runs below which none is believed: the scale that a curve is never fitted more closely than (3.2, 2).
const DEVIATION_LEAST: f64 = 0.002;

/// The least standard error of a difference of means of ln x, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// Standard error of the difference, ln x.
    pub error: f64,
    /// What it rests on.
    pub reason: &'static str,
}

impl Floor {
    /// Of a metric and of so many runs of each side.
    ///
    /// A value out of a bucket lies anywhere in it, which is an SD of width/√12. Runs whose values share a bucket are off alike, so repetitions do not
    /// lessen it. What else differs between runs they do.
    #[must_use]
    pub(super) fn of(metric: &Metric, runs: (usize, usize)) -> Self {
        if metric.is_percentile() {
            let arm = BUCKET / 12_f64.sqrt();
            let reason =
                "percentiles are buckets of a histogram, up to 0.78 % wide: 0.23 % for each side's";
            return Self { error: arm * std::f64::consts::SQRT_2, reason };
        }
        let runs = 1.0 / runs.0 as f64 + 1.0 / runs.1 as f64;
        let reason = "runs are taken to differ by an SD of 0.2 % at least";
        Self { error: DEVIATION_LEAST * runs.sqrt(), reason }
    }
}

impl Estimate {
    /// The same with the error that the metric has at least, which is said where it counts.
    pub(super) fn no_better_than(self, floor: Floor) -> Self {
        if self.error >= floor.error {
            return self;
        }
        let mut wider = self.at_least(floor.error);
        wider.notes.push(format!(
            "the runs agree more closely than they can be known; a standard error of {:.2} % is taken: {}",
            floor.error * 100.0,
            floor.reason
        ));
        wider
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Comparison, Headline, Verdict, independent, interleaved, judge, single};
    use super::*;

    fn judged(name: &str, a: &[f64], b: &[f64]) -> Comparison {
        judge(independent(a, b).expect("positive"), &Metric::named(name, false))
    }

    #[test]
    fn runs_that_agree_to_the_last_digit_are_not_exact() {
        // The last place of a sum.
        let cpu = judged("cpu_us_per_io", &[0.5; 2], &[0.500_000_000_000_000_1; 2]);
        assert!(cpu.effect != 0.0 && cpu.p > 0.99, "{cpu:?}");
        // Neighbouring buckets.
        let next = judged("p99_ms", &[0.448; 3], &[0.4512; 3]);
        assert!(next.p > 0.05 && next.interval.0 < 0.0 && next.interval.1 > 0.0, "{next:?}");
        assert_eq!(next.verdict, Verdict::Same);
        assert!(next.notes.iter().any(|note| note.contains("buckets of a histogram")));
        assert!(!Headline::of(&[cpu, next]).something_changed);
        // Eight buckets are a change, known to one of them.
        let far = judged("p99_ms", &[0.448; 3], &[0.4736; 3]);
        assert_eq!(far.verdict, Verdict::Worse);
        assert!(far.interval.1 - far.interval.0 > 0.015, "{far:?}");
        // Runs in order, and single ones beside runs that agree.
        let order: Vec<(f64, bool, f64)> = (0..6_u32)
            .map(|n| (f64::from(n), n % 2 == 1, if n % 2 == 1 { 1001.0 } else { 1000.0 }))
            .collect();
        let iops = Metric::named("iops", true);
        for estimate in [interleaved(&order), single(&[1000.0; 4], &[1001.0], 0.0, 0.0)] {
            let found = judge(estimate.expect("positive"), &iops);
            assert!(found.p > 0.2 && found.verdict == Verdict::Same, "{found:?}");
        }
    }

    #[test]
    fn runs_that_differ_have_their_own_error() {
        let estimate =
            independent(&[100.0, 101.0, 102.0], &[110.0, 111.0, 112.0]).expect("positive");
        let found = judge(estimate.clone(), &Metric::named("p99_ms", false));
        assert_eq!(found.estimate, estimate);
        assert_eq!(Floor::of(&Metric::named("avg_lat_ms", false), (2, 2)).error, 0.002);
    }
}
