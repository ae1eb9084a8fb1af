//! Runs unlike their siblings (method, 5.5): flagged, never dropped.

use crate::stats::describe::{absolute_deviation, median};

/// Fewest repetitions that can be judged.
const FEWEST: usize = 5;
/// Modified z above which a run is flagged [Iglewicz & Hoaglin 1993].
const FLAGGED: f64 = 3.5;

/// Modified z of each value: 0.6745·|x − median|/MAD; infinite where most values are the same and this
/// one is not.
#[must_use]
pub fn modified_z(values: &[f64]) -> Vec<f64> {
    let centre = median(values);
    let spread = absolute_deviation(values, centre);
    let score = |value: &f64| match (value - centre).abs() {
        0.0 => 0.0,
        distance => 0.6745 * distance / spread,
    };
    values.iter().map(score).collect()
}

/// Places of the runs that are flagged; none with fewer than five. The values are logarithms.
#[must_use]
pub fn flagged(ln_values: &[f64]) -> Vec<usize> {
    if ln_values.len() < FEWEST {
        return Vec::new();
    }
    let scores = modified_z(ln_values);
    (0..scores.len()).filter(|index| scores[*index] > FLAGGED).collect()
}

/// Whether the first run is the slowest by more than the others differ: a warm-up was too short.
#[must_use]
pub fn first_is_slow(ln_values: &[f64]) -> bool {
    let Some((first, others)) = ln_values.split_first() else { return false };
    let low = others.iter().copied().fold(f64::INFINITY, f64::min);
    let high = others.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    others.len() >= 2 && low - first > (high - low).max(0.01)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_five_is_flagged() {
        let values = [100.0_f64, 101.0, 99.5, 100.5, 80.0].map(f64::ln);
        assert_eq!(flagged(&values), [4]);
        assert!(flagged(&values[1..]).is_empty(), "four are too few");
        assert!(flagged(&[1.0; 6]).is_empty());
        assert_eq!(flagged(&[1.0, 1.0, 1.0, 1.0, 1.1]), [4]);
    }

    #[test]
    fn a_slow_first_run_hints_at_the_warm_up() {
        let ln = |values: [f64; 4]| values.map(f64::ln);
        assert!(first_is_slow(&ln([90.0, 100.0, 101.0, 100.0])));
        assert!(!first_is_slow(&ln([99.5, 100.0, 101.0, 100.0])));
        assert!(!first_is_slow(&[1.0]));
    }
}
