//! How many runs, and how long each (method, 5.3).

use plumb_units::convert;

/// Shortest and longest measurement in seconds.
const LENGTH_S: (f64, f64) = (30.0, 600.0);
/// z of a two-sided 5 % test plus z of 90 % power.
const Z_SUM: f64 = 3.24;
/// Fewest repetitions.
const FEWEST: u64 = 3;

/// Best length of one run in seconds [Kalibera & Jones 2013]: `sqrt(W·S_w/σ_b²)`, as long as a run may be.
///
/// `warm_up_s` is what each run costs beside its measurement, `within` the variance of a mean times its
/// length in seconds, `between` the standard deviation between runs.
#[must_use]
pub fn best_length_s(warm_up_s: f64, within: f64, between: f64) -> f64 {
    (warm_up_s * within / between.powi(2)).sqrt().clamp(LENGTH_S.0, LENGTH_S.1)
}

/// Repetitions per side that find a difference of `delta` in nine of ten cases, at 5 %.
#[must_use]
pub fn needed(between: f64, delta: f64) -> u64 {
    let wanted = (2.0 * (Z_SUM * between / delta).powi(2)).ceil();
    convert::floor_u64(wanted).max(FEWEST)
}

/// The difference that so many repetitions per side find in nine of ten cases.
#[must_use]
pub fn detectable(between: f64, repetitions: u64) -> f64 {
    detectable_by(between * (2.0 / repetitions as f64).sqrt())
}

/// The difference that is found in nine of ten cases with this standard error.
#[must_use]
pub fn detectable_by(error: f64) -> f64 {
    Z_SUM * error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_beat_one_long_one() {
        // SD of a 600 s mean 0.2 %.
        let within = 0.002_f64.powi(2) * 600.0;
        assert!((within - 0.0024).abs() < 1e-12);
        assert!((best_length_s(300.0, within, 0.01) - 85.0).abs() < 0.5);
        assert_eq!(best_length_s(1.0, within, 0.01), 30.0);
        assert_eq!(best_length_s(1e9, within, 0.01), 600.0);
    }

    #[test]
    fn repetitions_as_worked() {
        assert_eq!(needed(0.01, 0.02), 6);
        assert_eq!(needed(0.035, 0.05), 11);
        assert_eq!(needed(0.035, 0.02), 65);
        assert_eq!(needed(0.001, 0.05), 3);
        assert!(detectable(0.01, 6) <= 0.02 && detectable(0.01, 5) > 0.02);
    }
}
