//! How many runs, and how long each (method, 5.3).

use plumb_units::convert;

use crate::stats::distribution::{normal_two_sided, t_95};

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

/// Repetitions per side that tell a difference of `delta` from none in nine of ten cases, at 5 %, where its deviation is known well.
#[must_use]
pub fn needed(between: f64, delta: f64) -> u64 {
    let wanted = (2.0 * (Z_SUM * between / delta).powi(2)).ceil();
    convert::floor_u64(wanted).max(FEWEST)
}

/// How often a difference is found.
const POWER: f64 = 0.9;
/// Degrees of freedom beyond which a deviation is known, and in how many parts its values are taken.
const KNOWN: f64 = 1000.0;
const PARTS: u32 = 400;

/// The difference that is found in nine of ten cases: its interval leaves 0 out, and it is seen to be no less than `delta`, which is what a verdict asks for (6.2).
/// `error` is the standard error of what is seen, known with `freedom` degrees of freedom; all of logarithms.
#[must_use]
pub fn detectable(error: f64, freedom: f64, delta: f64) -> f64 {
    if error <= 0.0 {
        return delta;
    }
    let (mut low, mut high) = (0.0, delta + 100.0 * error);
    while found(high, error, freedom, delta) < POWER {
        high *= 2.0;
    }
    while high - low > 1e-6 * high {
        let middle = f64::midpoint(low, high);
        match found(middle, error, freedom, delta) < POWER {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// How often a difference is found: the mean over what the error may have looked like of how often what is seen is more than both.
fn found(difference: f64, error: f64, freedom: f64, delta: f64) -> f64 {
    let t = t_95(freedom);
    let seen_beyond = |bound: f64| {
        let z = (difference - bound) / error;
        let beyond = normal_two_sided(z.abs()) / 2.0;
        if z > 0.0 { 1.0 - beyond } else { beyond }
    };
    if freedom > KNOWN {
        return seen_beyond(delta.max(t * error));
    }
    // s over σ by its density: that of a chi over the root of its freedom, up to a factor.
    let most = 1.0 + 6.0 / freedom.sqrt();
    let (mut sum, mut weights) = (0.0, 0.0);
    for nth in 0..PARTS {
        let s = most * (f64::from(nth) + 0.5) / f64::from(PARTS);
        let weight = ((freedom - 1.0) * s.ln() + freedom * (1.0 - s * s) / 2.0).exp();
        sum += weight * seen_beyond(delta.max(t * s * error));
        weights += weight;
    }
    sum / weights
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
    }

    #[test]
    fn many_runs_leave_the_quantiles() {
        assert_eq!(detectable(0.0, 4.0, 0.02), 0.02);
        // With many runs, of a difference that is relevant however small: the two quantiles.
        assert!((detectable(0.01, 1e6, 0.0) / 0.01 - Z_SUM).abs() < 0.01);
    }
}
