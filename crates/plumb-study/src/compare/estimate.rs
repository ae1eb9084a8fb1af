//! The difference of two sets of runs in ln x, with its interval.

use super::pooled::Between;
use crate::stats::describe::{deviation, mean, squares, variance};
use crate::stats::distribution::{t_95, t_two_sided};
use crate::stats::line::Line;
use crate::stats::ranks::{Shift, hodges_lehmann};

/// How runs were made and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// Independent runs: Welch.
    Independent,
    /// Independent runs, few of them: both sides share one standard deviation.
    Pooled,
    /// The same as series, whose variation inside each run is known beside.
    Inside,
    /// Runs of both arms in turn: a line over time is taken out.
    Interleaved,
    /// One run on a side: spread between runs is assumed, or taken from the other side.
    Single,
}

impl Design {
    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Independent => "independent runs (Welch on ln x)",
            Self::Pooled => "independent runs (one SD of ln x for both sides)",
            Self::Inside => "independent runs (SD of ln x between runs, and their error inside)",
            Self::Interleaved => "interleaved runs (ln x ~ arm + time)",
            Self::Single => "single run (spread between runs assumed)",
        }
    }
}

/// A difference candidate − baseline of means of ln x.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The design.
    pub design: Design,
    /// Runs of the baseline and of the candidate.
    pub runs: (usize, usize),
    /// The difference.
    pub difference: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub freedom: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Standard deviation of ln x between runs.
    pub run_deviation: f64,
    /// The shift by ranks, from six runs a side on.
    pub second_opinion: Option<Shift>,
    /// Change of ln x per run by time, where it was taken out.
    pub drift: Option<f64>,
    /// The shift of the same runs with no line over time, where the arms share too little of it for that line to be
    /// told from a difference (docs/decisions/0220-arms-that-share-no-time.md).
    pub without_time: Option<Shift>,
    /// Remarks.
    pub notes: Vec<String>,
}

impl Estimate {
    fn new(
        design: Design,
        runs: (usize, usize),
        difference: f64,
        error: f64,
        freedom: f64,
    ) -> Self {
        let reach = if error > 0.0 { t_95(freedom) * error } else { 0.0 };
        Self {
            design,
            runs,
            difference,
            error,
            freedom,
            low: difference - reach,
            high: difference + reach,
            run_deviation: 0.0,
            second_opinion: None,
            drift: None,
            without_time: None,
            notes: Vec::new(),
        }
    }

    /// Two-sided p-value of no difference.
    #[must_use]
    pub fn p(&self) -> f64 {
        if self.error > 0.0 {
            t_two_sided(self.difference / self.error, self.freedom)
        } else if self.difference == 0.0 {
            1.0
        } else {
            0.0
        }
    }
}

/// Between-run SD of ln x that is assumed when nothing is known, and what it is worth.
const BETWEEN_ASSUMED: f64 = 0.015;
const BETWEEN_FREEDOM: f64 = 9.0;
/// Runs of a side from which on its own spread is used for a single run of the other; of fewer than so many it may be small by chance,
/// and counts as what is assumed at least (docs/decisions/0296-two-runs-beside-one.md).
const SPREAD_FROM: usize = 2;
const SPREAD_ALONE_FROM: usize = 3;
/// Runs of a side below which both sides share one standard deviation
/// (docs/decisions/0032-few-runs-share-a-deviation.md).
pub(super) const WELCH_FROM: usize = 5;
/// How many times one side's variance is the other's for them to share none, and the runs of a side from which that tells something.
const UNLIKE: f64 = 9.0;
const UNLIKE_FROM: usize = 3;
/// Runs of a side from which on ranks are a second opinion.
const RANKS_FROM: usize = 6;

pub(super) fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values
        .iter()
        .map(|value| (value.is_finite() && *value > 0.0).then(|| value.ln()))
        .collect::<Option<Vec<f64>>>()
        .filter(|values| !values.is_empty())
}

impl Estimate {
    /// The same with an error of at least `error`: what runs vary inside themselves they also vary
    /// among each other.
    #[must_use]
    pub fn at_least(self, error: f64) -> Self {
        if error <= self.error {
            return self;
        }
        let reach = t_95(self.freedom) * error;
        let (low, high) = (self.difference - reach, self.difference + reach);
        Self { error, low, high, ..self }
    }
}

/// Independent runs, two or more on each side: Welch's interval on ln x, or one deviation for both where they are few
/// and alike, and ranks as a second opinion. `None` for fewer, and for values that are not positive.
#[must_use]
pub fn independent(baseline: &[f64], candidate: &[f64]) -> Option<Estimate> {
    let (a, b) = (logarithms(baseline)?, logarithms(candidate)?);
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let (design, (error, freedom)) = known(&a, &b);
    let runs = (a.len(), b.len());
    let mut estimate = Estimate::new(design, runs, mean(&b) - mean(&a), error, freedom);
    estimate.run_deviation = pooled(&a, &b).sqrt();
    estimate.second_opinion = ranks(&a, &b);
    Some(estimate)
}

/// The second opinion on logarithms, from six runs a side on.
pub(super) fn ranks(a: &[f64], b: &[f64]) -> Option<Shift> {
    if a.len().min(b.len()) < RANKS_FROM {
        return None;
    }
    hodges_lehmann(a, b)
}

/// Variance between runs of both sides.
pub(super) fn pooled(a: &[f64], b: &[f64]) -> f64 {
    (squares(a) + squares(b)) / (a.len() as f64 + b.len() as f64 - 2.0)
}

/// How the difference of these logarithms is known, its standard error and the degrees of freedom of that; two or more on each side.
pub(super) fn known(a: &[f64], b: &[f64]) -> (Design, (f64, f64)) {
    let (m, n) = (a.len() as f64, b.len() as f64);
    let few = a.len().min(b.len());
    let (own, shared) = (
        welch(variance(a) / m, m, variance(b) / n, n),
        ((pooled(a, b) * (1.0 / m + 1.0 / n)).sqrt(), m + n - 2.0),
    );
    match few < WELCH_FROM && !(are_unlike(a, b) && is_wider(own, shared)) {
        true => (Design::Pooled, shared),
        false => (Design::Independent, own),
    }
}

/// Whether one deviation must not be taken for both without a look at Welch's: numbers of runs differ, so that the error of the fewer could be taken
/// from the more, or spreads do (docs/decisions/0226-the-side-with-fewer-runs.md).
fn are_unlike(a: &[f64], b: &[f64]) -> bool {
    let (of_a, of_b) = (variance(a), variance(b));
    let differ = of_a.max(of_b) > UNLIKE * of_a.min(of_b);
    a.len() != b.len() || (a.len() >= UNLIKE_FROM && differ)
}

/// Whether the first error and freedom make the wider interval.
fn is_wider(a: (f64, f64), b: (f64, f64)) -> bool {
    t_95(a.1) * a.0 > t_95(b.1) * b.0
}

/// Standard error and degrees of freedom of a difference of two means with these squared errors
/// [Welch 1947].
fn welch(a: f64, m: f64, b: f64, n: f64) -> (f64, f64) {
    let both = a + b;
    let freedom = both.powi(2) / (a.powi(2) / (m - 1.0) + b.powi(2) / (n - 1.0));
    (both.sqrt(), if freedom.is_finite() { freedom } else { m + n - 2.0 })
}

/// One run on a side or both. `within` are the relative standard errors of single runs' own means, 0
/// where they are not known. `None` for values that are not positive.
#[must_use]
pub fn single(
    baseline: &[f64],
    candidate: &[f64],
    within_baseline: f64,
    within_candidate: f64,
) -> Option<Estimate> {
    let (a, b) = (logarithms(baseline)?, logarithms(candidate)?);
    let (m, n) = (a.len() as f64, b.len() as f64);
    let known = [&a, &b].into_iter().find(|side| side.len() >= SPREAD_FROM);
    let (between, freedom) = match known {
        Some(side) => {
            let least = if side.len() < SPREAD_ALONE_FROM { BETWEEN_ASSUMED } else { 0.0 };
            (deviation(side).max(least), side.len() as f64 - 1.0)
        }
        None => (BETWEEN_ASSUMED, BETWEEN_FREEDOM),
    };
    // A side with repetitions has its variation inside runs in them already.
    let inside = [(within_baseline, m), (within_candidate, n)]
        .into_iter()
        .filter(|(_, runs)| *runs < SPREAD_ALONE_FROM as f64)
        .map(|(within, runs)| within.powi(2) / runs)
        .sum::<f64>();
    let error = (between.powi(2) * (1.0 / m + 1.0 / n) + inside).sqrt();
    let runs = (a.len(), b.len());
    let mut estimate = Estimate::new(Design::Single, runs, mean(&b) - mean(&a), error, freedom);
    estimate.run_deviation = between;
    estimate.notes.push(match known {
        Some(side) => format!(
            "single run: its spread is taken to be that of the other side's {} runs, {:.2} %",
            side.len(),
            between * 100.0
        ),
        None => format!(
            "single run: a spread between runs of {:.1} % is assumed; repeat both to know it",
            between * 100.0
        ),
    });
    Some(estimate)
}

/// One run on a side or both, where repetitions of other settings tell what runs differ by. `None` for values that
/// are not positive.
#[must_use]
pub fn single_among(baseline: &[f64], candidate: &[f64], among: &Between) -> Option<Estimate> {
    let (a, b) = (logarithms(baseline)?, logarithms(candidate)?);
    let (m, n) = (a.len() as f64, b.len() as f64);
    let error = among.deviation * (1.0 / m + 1.0 / n).sqrt();
    let (runs, difference) = ((a.len(), b.len()), mean(&b) - mean(&a));
    let mut estimate = Estimate::new(Design::Single, runs, difference, error, among.freedom);
    estimate.run_deviation = among.deviation;
    estimate.notes.push(format!(
        "single run: its spread is taken to be that of all repeated settings, {:.2} % ({:.0} degrees of freedom)",
        among.deviation * 100.0,
        among.freedom
    ));
    // Repetitions differ by what runs vary inside themselves, too: nothing is known apart from them.
    Some(estimate.with_inside(0.0))
}

/// Runs of both arms in turn, (order, is candidate, value): ln x ~ arm + linear time. `None` without
/// at least one run of each arm and four in all, and for values that are not positive.
#[must_use]
pub fn interleaved(runs: &[(f64, bool, f64)]) -> Option<Estimate> {
    let values: Vec<f64> = runs.iter().map(|(.., value)| *value).collect();
    let y = logarithms(&values)?;
    let arm: Vec<f64> = runs.iter().map(|run| f64::from(u8::from(run.1))).collect();
    let time: Vec<f64> = runs.iter().map(|run| run.0).collect();
    let candidates = runs.iter().filter(|run| run.1).count();
    if runs.len() < 4 || candidates == 0 || candidates == runs.len() {
        return None;
    }
    // Frisch–Waugh: what time explains is taken out of both, the rest is one slope.
    let rest = |values: &[f64]| -> Vec<f64> {
        let points: Vec<(f64, f64)> = time.iter().copied().zip(values.iter().copied()).collect();
        let line = Line::through(&points);
        points.iter().map(|(t, value)| value - line.at(*t)).collect()
    };
    let (arm_rest, y_rest) = (rest(&arm), rest(&y));
    let spread: f64 = arm_rest.iter().map(|a| a * a).sum();
    if spread < 1e-9 {
        return None;
    }
    let effect = arm_rest.iter().zip(&y_rest).map(|(a, y)| a * y).sum::<f64>() / spread;
    let residual: f64 = arm_rest.iter().zip(&y_rest).map(|(a, y)| (y - effect * a).powi(2)).sum();
    let freedom = runs.len() as f64 - 3.0;
    let sigma = (residual / freedom).sqrt();
    let sides = (runs.len() - candidates, candidates);
    let mut estimate =
        Estimate::new(Design::Interleaved, sides, effect, sigma / spread.sqrt(), freedom);
    let without_arm: Vec<(f64, f64)> =
        time.iter().zip(y.iter().zip(&arm)).map(|(t, (y, a))| (*t, y - effect * a)).collect();
    estimate.drift = Some(Line::through(&without_arm).slope);
    estimate.run_deviation = sigma;
    let arm_squares = squares(&arm);
    if spread < 0.5 * arm_squares {
        estimate.notes.push(
            "the arms were hardly interleaved: time and arm cannot be told apart well".to_owned(),
        );
        let arm = |candidate: bool| -> Vec<f64> {
            runs.iter().filter(|run| run.1 == candidate).map(|run| run.2).collect()
        };
        let plain = independent(&arm(false), &arm(true));
        estimate.without_time =
            plain.map(|of| Shift { estimate: of.difference, low: of.low, high: of.high });
    }
    Some(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_is_named_that_was_used() {
        let design = |a: &[f64], b: &[f64]| independent(a, b).expect("positive").design;
        let calm = [100.0, 100.1, 99.9, 100.0, 100.1];
        let noisy = [97.0, 103.0, 100.0, 98.0, 102.0];
        assert_eq!(design(&calm, &noisy), Design::Independent);
        // Alike in number and in spread, or too few to tell.
        assert_eq!(design(&calm[..3], &[101.0, 101.2, 100.9]), Design::Pooled);
        assert_eq!(design(&calm[..2], &noisy[..2]), Design::Pooled);
        // Unlike in spread, or the noisier side has fewer runs.
        assert_eq!(design(&calm[..3], &noisy[..3]), Design::Independent);
        assert_eq!(design(&noisy[..2], &calm), Design::Independent);
        // The calmer side has fewer: what both share is wider.
        assert_eq!(design(&calm[..2], &noisy), Design::Pooled);
        assert!(independent(&noisy[..2], &calm).expect("positive").freedom < 1.1);
    }
}
