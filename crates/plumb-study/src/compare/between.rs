//! How far runs lie apart where few of them tell (docs/decisions/0143-runs-apart-and-inside.md).
//!
//! The squared error of a difference of sides is what runs vary inside themselves, which their series tell well, and what they vary among each other,
//! of which two or three runs a side tell little. It is never less than the first, so Student's factor, which allows for an error that is too small
//! by chance, is too large where the first is most of it.

use super::Estimate;
use crate::stats::distribution::{normal_two_sided, t_95};

/// SD of ln x between runs below which any is as likely, and from which on any order of magnitude is.
const ALIKE_BELOW: f64 = 0.003;
/// SD between runs that is hardly exceeded: four times as much is a hundred times less likely.
const HARDLY_ABOVE: f64 = 0.1;
/// What is looked at: 0, and from 0.03 % up in steps of a quarter, to more than 100 %.
const LEAST: f64 = 0.0003;
const STEP: f64 = 1.25;
const STEPS: i32 = 38;
/// Degrees of freedom that are as good as infinitely many.
const MANY: f64 = 1e4;

impl Estimate {
    /// The same where `inside` is the error of the difference if runs vary only inside themselves: the interval that holds 95 % of what the spread
    /// of the runs leaves possible.
    #[must_use]
    pub(super) fn with_inside(self, inside: f64) -> Self {
        let (m, n) = (self.runs.0 as f64, self.runs.1 as f64);
        let possible = possible(self.error, self.freedom, inside, 1.0 / m + 1.0 / n);
        let outside = |reach: f64| {
            possible
                .iter()
                .map(|(share, error)| share * normal_two_sided(reach / error))
                .sum::<f64>()
        };
        let most = possible.iter().map(|(_, error)| *error).fold(0.0, f64::max);
        if self.error.max(inside) <= 0.0 {
            return self;
        }
        let reach = falls_to(0.05, (0.0, 4.0 * most), outside);
        // The error and the freedom of which that is the reach, for whoever asks how likely a difference is by chance.
        let freedom = falls_to(reach / self.error.max(inside), (1.0, MANY), t_95);
        let error = reach / t_95(freedom);
        let (low, high) = (self.difference - reach, self.difference + reach);
        Self { error, freedom, low, high, ..self }
    }
}

/// Errors of the difference that are possible and the share of each, by a spread with so many degrees of freedom.
fn possible(spread: f64, freedom: f64, inside: f64, per_side: f64) -> Vec<(f64, f64)> {
    let between = |step: i32| if step < 0 { 0.0 } else { LEAST * STEP.powi(step) };
    let each: Vec<(f64, f64)> = (-1..STEPS)
        .map(|step| {
            let (deviation, width) =
                (between(step), (between(step + 1) - between(step - 1)).max(0.0) / 2.0);
            let variance = inside.powi(2) + deviation.powi(2) * per_side;
            let prior =
                width / (deviation + ALIKE_BELOW) / (1.0 + (deviation / HARDLY_ABOVE).powi(4));
            let ratio = spread.powi(2) / variance;
            // Of a variance by its estimate, but for a factor that all have.
            let ln_likely = -freedom / 2.0 * (variance.ln() + ratio);
            (prior.ln() + ln_likely, variance.sqrt())
        })
        .filter(|(ln_share, error)| ln_share.is_finite() && *error > 0.0)
        .collect();
    let largest = each.iter().map(|(ln_share, _)| *ln_share).fold(f64::NEG_INFINITY, f64::max);
    let shares: Vec<f64> = each.iter().map(|(ln_share, _)| (ln_share - largest).exp()).collect();
    let all: f64 = shares.iter().sum();
    shares.iter().zip(&each).map(|(share, (_, error))| (share / all, *error)).collect()
}

/// Where a function that falls between these places is at a value.
fn falls_to(value: f64, (mut low, mut high): (f64, f64), function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if function(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::super::independent;

    fn reach(apart: f64, inside: f64) -> (f64, f64) {
        let side = |level: f64| [level * (1.0 - apart), level * (1.0 + apart)];
        let estimate = independent(&side(100.0), &side(110.0)).expect("positive");
        let student = estimate.high - estimate.difference;
        let found = estimate.with_inside(inside);
        assert!((found.high + found.low - 2.0 * found.difference).abs() < 1e-9);
        assert!((found.p() < 0.05) == (found.low > 0.0), "{found:?}");
        ((found.high - found.difference) / student, (found.high - found.difference) / inside)
    }

    #[test]
    fn what_is_known_inside_needs_no_students_factor() {
        // Runs that lie apart by as much as each varies inside itself: 2.3 of that, not 4.3.
        let (_, by_inside) = reach(0.014, 0.02);
        assert!((2.0..3.2).contains(&by_inside), "{by_inside}");
        // Runs that agree by chance are no better known than inside.
        let (_, by_inside) = reach(0.0001, 0.02);
        assert!((1.96..3.2).contains(&by_inside), "{by_inside}");
        // Where runs lie apart and are calm inside, Student's factor is nearly all there is.
        let (by_student, _) = reach(0.005, 0.0001);
        assert!((0.7..1.1).contains(&by_student), "{by_student}");
        // Runs without any noise.
        let (by_student, _) = reach(0.000_001, 1e-9);
        assert!(by_student > 1.0, "{by_student}");
    }
}
