//! What ties rates, sizes, latencies and outstanding I/Os together (method, section 1).

use plumb_load::result::littles_law::{self, Verdict};

/// Bytes of a MiB.
pub const MIB: f64 = 1_048_576.0;

/// (1.1) Throughput in MiB/s of `iops` I/Os per second of `block_bytes` each.
#[must_use]
pub fn mib_per_s(iops: f64, block_bytes: f64) -> f64 {
    iops * block_bytes / MIB
}

/// (1.2) Mean number in flight at `iops` and a mean latency in milliseconds.
#[must_use]
pub fn in_flight(iops: f64, latency_ms: f64) -> f64 {
    iops * latency_ms / 1e3
}

/// (1.4) Microseconds that a request spends in the tool between completion and next submission.
#[must_use]
pub fn turnaround_us(outstanding: f64, iops: f64, latency_ms: f64) -> f64 {
    outstanding / iops * 1e6 - latency_ms * 1e3
}

/// (1.5) Device operations per client operation for a write share 0…1 and copies of each datum.
#[must_use]
pub fn amplification(write_share: f64, copies: f64) -> f64 {
    (1.0 - write_share) + write_share * copies
}

/// (1.5) Whether an amplification that was seen is not the one that was declared: by more than 15 %.
#[must_use]
pub fn amplification_differs(declared: f64, seen: f64) -> bool {
    (seen / declared - 1.0).abs() > 0.15
}

/// (1.5) The copies that explain an amplification; `None` where nothing is written.
#[must_use]
pub fn copies_of(amplification: f64, write_share: f64) -> Option<f64> {
    (write_share > 0.0).then(|| (amplification - (1.0 - write_share)) / write_share)
}

/// (1.6), (1.7), (1.8) A quantity of the clients as each of `devices` sees it.
#[must_use]
pub fn per_device(quantity: f64, amplification: f64, devices: f64) -> f64 {
    quantity * amplification / devices
}

/// (1.9) Outstanding I/Os that give each of `devices` a depth of `depth`.
#[must_use]
pub fn outstanding_for_depth(depth: f64, devices: f64, amplification: f64) -> f64 {
    depth * devices / amplification
}

/// (1.11) The most that a closed loop can do: `N/L₀` until `X_max`.
#[must_use]
pub fn bound(outstanding: f64, latency_lowest_ms: f64, iops_max: f64) -> f64 {
    (outstanding * 1e3 / latency_lowest_ms).min(iops_max)
}

/// Count, mean and standard deviation of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// How many.
    pub count: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

impl Moments {
    /// (1.10) Both samples together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let count = self.count + other.count;
        let mean = (self.count * self.mean + other.count * other.mean) / count;
        let square = |part: Self| part.count * (part.deviation.powi(2) + part.mean.powi(2));
        let variance = (square(self) + square(other)) / count - mean.powi(2);
        Self { count, mean, deviation: variance.max(0.0).sqrt() }
    }
}

/// (1.10) Whether the achieved write share differs from the wanted one by more than chance, four
/// standard errors of `count` I/Os.
#[must_use]
pub fn write_share_differs(achieved: f64, wanted: f64, count: f64) -> bool {
    (achieved - wanted).abs() > 4.0 * (wanted * (1.0 - wanted) / count).sqrt()
}

/// (1.3) What Little's law says about a closed-loop result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// −1 % ≤ r ≤ 0.2 % + ε.
    Consistent,
    /// −5 % ≤ r < −1 %: that share of each cycle is spent in the tool.
    Turnaround,
    /// r < −5 %: the generator is the limit.
    GeneratorLimited,
    /// r < −5 %, and no more than what was in flight while nothing completed at the end of the window: it is in no latency.
    StoodStill,
    /// r > 0.2 % + ε: the figures contradict each other and must not be used.
    AccountingError,
}

/// (1.3) `r = X·L/N − 1`.
#[must_use]
pub fn residual(iops: f64, latency_ms: f64, outstanding: f64) -> f64 {
    in_flight(iops, latency_ms) / outstanding - 1.0
}

/// What is known of the window of a run, beside its means (1.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Its seconds.
    pub seconds: f64,
    /// Mean latency of the N slowest I/Os in milliseconds, N being the outstanding ones; `None` where latencies were not kept.
    pub slowest_ms: Option<f64>,
    /// Most seconds at its end in which nothing completed; 0 where something did in the last interval.
    pub still_s: f64,
}

impl Window {
    /// Where nothing but means is known: the shortest measurement that the method accepts, with nothing special at its ends.
    pub const UNKNOWN: Self = Self { seconds: 30.0, slowest_ms: None, still_s: 0.0 };

    /// Of a run with a rate for each of its intervals.
    #[must_use]
    pub fn of(seconds: f64, series: &[f64], slowest_ms: Option<f64>) -> Self {
        let still = series.iter().rev().take_while(|iops| **iops <= 0.0).count();
        // The last I/O may have completed at the beginning of the interval before.
        let intervals = if still == 0 { 0 } else { (still + 1).min(series.len()) };
        let still_s = seconds * intervals as f64 / series.len().max(1) as f64;
        Self { seconds, slowest_ms, still_s }
    }

    /// (1.3 a) What its ends may add to r, as the run itself takes it.
    fn ends(&self, mean_ms: f64) -> f64 {
        littles_law::window_ends(mean_ms, self.slowest_ms, self.seconds.max(1e-3) * 1e3)
    }
}

/// (1.3) What rate, latency and outstanding I/Os of a closed loop say of each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// `r = X·L/N − 1`.
    pub residual: f64,
    /// What it says.
    pub verdict: Consistency,
}

impl Law {
    /// Asks it, of runs and of rows of tables alike: X·L is `in_flight`, `half_unit_ms` half of the last printed place of a
    /// latency.
    #[must_use]
    pub fn of(
        in_flight: f64,
        outstanding: f64,
        latency_ms: f64,
        half_unit_ms: f64,
        window: Window,
    ) -> Self {
        let residual = in_flight / outstanding - 1.0;
        let epsilon = half_unit_ms / latency_ms + window.ends(latency_ms);
        let still = window.still_s / window.seconds.max(1e-3);
        let verdict = match consistency(residual, epsilon) {
            // All that was outstanding then was in flight, and none of it is in X or L.
            Consistency::GeneratorLimited
                if consistency(residual + still, epsilon) != Consistency::GeneratorLimited =>
            {
                Consistency::StoodStill
            }
            verdict => verdict,
        };
        Self { residual, verdict }
    }
}

/// (1.3) The verdict on r; `epsilon` is what rounding and the ends of the window may add.
#[must_use]
pub fn consistency(residual: f64, epsilon: f64) -> Consistency {
    match Verdict::of_residual(residual, Verdict::TOLERANCE + epsilon) {
        Verdict::AccountingError => Consistency::AccountingError,
        Verdict::GeneratorLimited => Consistency::GeneratorLimited,
        Verdict::ToolTurnaround => Consistency::Turnaround,
        _ => Consistency::Consistent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f64, wanted: f64, tolerance: f64) {
        assert!((found - wanted).abs() <= tolerance, "{found} is not {wanted}");
    }

    #[test]
    fn rates_and_sizes() {
        near(mib_per_s(55_232.28, 8192.0), 431.50, 0.005);
        near(mib_per_s(2899.93, 524_288.0), 1449.965, 1e-9);
        near(mib_per_s(135_759.0, 4096.0), 530.31, 0.005);
        near(135_759.0 * 4096.0 / 1e6, 556.07, 0.005);
        near(in_flight(1000.0, 1.0), 1.0, 0.0);
    }

    #[test]
    fn turnaround_per_request() {
        near(turnaround_us(8.0, 14_411.29, 0.553), 2.1, 0.05);
        near(turnaround_us(96.0, 55_232.28, 1.737), 1.1, 0.05);
    }

    #[test]
    fn residuals_as_published() {
        for (iops, latency, outstanding, percent) in [
            (14_411.29, 0.553, 8.0, -0.38),
            (24_383.58, 0.655, 16.0, -0.18),
            (55_232.28, 1.737, 96.0, -0.064),
            (58_071.31, 1.652, 96.0, -0.069),
            (1953.30, 32.763, 64.0, -0.006),
            (20_581.94, 3.106, 64.0, -0.11),
        ] {
            let residual = residual(iops, latency, outstanding);
            near(residual * 100.0, percent, 0.006);
            assert_eq!(consistency(residual, 0.0), Consistency::Consistent);
        }
        // The 15 outstanding of the command do not agree with the sample.
        near(residual(58_071.31, 1.652, 120.0) * 100.0, -20.0, 0.1);
    }

    #[test]
    fn verdicts_follow_the_residual() {
        for (residual, verdict) in [
            (0.0021, Consistency::Consistent),
            (0.0031, Consistency::AccountingError),
            (-0.01, Consistency::Consistent),
            (-0.011, Consistency::Turnaround),
            (-0.051, Consistency::GeneratorLimited),
        ] {
            assert_eq!(consistency(residual, 0.001), verdict, "{residual}");
        }
    }

    #[test]
    fn a_device_that_stood_still_is_no_slow_generator() {
        // Eight outstanding for 10 s, 1 ms each, of which nothing completed in the last `still` seconds.
        let law = |in_flight: f64, still: usize| {
            let series: Vec<f64> =
                (0..10).map(|second| if second < 10 - still { 8000.0 } else { 0.0 }).collect();
            Law::of(in_flight, 8.0, 1.0, 0.0, Window::of(10.0, &series, None)).verdict
        };
        assert_eq!(law(5.6, 3), Consistency::StoodStill);
        // It stood still since somewhere in the second before.
        assert_eq!(law(5.0, 3), Consistency::StoodStill);
        assert_eq!(law(4.2, 3), Consistency::GeneratorLimited);
        assert_eq!(law(5.6, 0), Consistency::GeneratorLimited);
        assert_eq!(law(7.99, 0), Consistency::Consistent);
        assert_eq!(law(8.8, 3), Consistency::AccountingError);
        assert_eq!(Window::of(10.0, &[], None).still_s, 0.0);
        assert_eq!(Window::of(10.0, &[0.0, 0.0], None).still_s, 10.0);
    }

    #[test]
    fn devices_see_each_copy() {
        near(amplification(0.3, 2.0), 1.3, 1e-12);
        near(amplification(0.0, 2.0), 1.0, 0.0);
        near(amplification(1.0, 2.0), 2.0, 0.0);
        near(copies_of(1.3, 0.3).expect("writes"), 2.0, 1e-9);
        assert_eq!(copies_of(1.0, 0.0), None);
        for (seen, differs) in
            [(1.3, false), (1.49, false), (1.5, true), (1.11, false), (1.1, true)]
        {
            assert_eq!(amplification_differs(1.3, seen), differs, "{seen}");
        }
        for (outstanding, depth) in [(96.0, 15.6), (120.0, 19.5), (128.0, 20.8)] {
            near(per_device(outstanding, 1.3, 8.0), depth, 1e-9);
        }
        near(per_device(55_232.28, 1.3, 8.0), 8975.0, 0.5);
        near(outstanding_for_depth(16.0, 8.0, 1.3), 98.5, 0.05);
        near(bound(96.0, 0.553, 1e9).min(1e9) / 1e3, 173.6, 0.1);
        near(in_flight(55_232.28, 0.553), 30.5, 0.05);
    }

    #[test]
    fn totals_from_parts() {
        let reads = Moments { count: 24_380_692.0, mean: 1.628, deviation: 1.727 };
        let writes = Moments { count: 10_462_402.0, mean: 1.707, deviation: 4.694 };
        let total = reads.and(writes);
        assert_eq!(total.count, 34_843_094.0);
        near(total.mean, 1.652, 0.0005);
        near(total.deviation, 2.950, 0.0005);
        let share = writes.count / total.count;
        near(share, 0.30027, 5e-6);
        assert!(!write_share_differs(share, 0.3, total.count));
        assert!(write_share_differs(0.31, 0.3, total.count));
    }
}
