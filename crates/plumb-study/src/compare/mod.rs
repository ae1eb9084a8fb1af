//! One set of runs against another (method, section 6).

mod between;
mod detectable;
mod estimate;
mod floor;
mod holm;
mod metric;
mod pooled;
mod series;

pub use detectable::detectable;
pub use estimate::{Design, Estimate, independent, interleaved, single, single_among};
pub use floor::Floor;
pub use holm::{Headline, holm};
pub use metric::Metric;
pub use pooled::Between;
pub use series::{SteadyRun, of_series};

use plumb_units::convert::to_u64;

use crate::repetitions;
use crate::stats::distribution::t_95;

/// The verdict on a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The interval excludes no change, and the effect is relevant.
    Better,
    /// The same in the other direction.
    Worse,
    /// Any effect is smaller than what is relevant.
    Same,
    /// The data cannot tell.
    Unclear,
}

/// How far an effect may be off for the arithmetic alone.
const ROUNDING: f64 = 1e-9;

impl Verdict {
    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unclear => "unclear",
        }
    }

    /// (6.2) The rule: an interval [low, high] about `effect`, + being better, and the smallest effect
    /// that is relevant.
    #[must_use]
    pub fn of(effect: f64, low: f64, high: f64, delta: f64) -> Self {
        // An effect of just δ is one in whatever unit the values are.
        let relevant = delta * (1.0 - ROUNDING);
        if low > 0.0 && effect >= relevant {
            Self::Better
        } else if high < 0.0 && effect <= -relevant {
            Self::Worse
        } else if -delta < low && high < delta {
            Self::Same
        } else {
            Self::Unclear
        }
    }
}

/// What a comparison says.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The verdict.
    pub verdict: Verdict,
    /// Relative effect, + is better.
    pub effect: f64,
    /// Its 95 % interval.
    pub interval: (f64, f64),
    /// Two-sided p-value of no change.
    pub p: f64,
    /// The smallest relevant effect.
    pub delta: f64,
    /// How the effect was estimated, in logarithms of the values.
    pub estimate: Estimate,
    /// The error that it has at least.
    pub floor: Floor,
    /// Repetitions per side that would tell, for `unclear`.
    pub needed: Option<u64>,
    /// Remarks.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Says of one run of each that they may be no more than a look at how far runs differ; without anything that tells
    /// how well each is known, that is all they are (6.2).
    pub(crate) fn as_a_pair(&mut self, metric: &Metric, is_all: bool) {
        if !matches!(self.verdict, Verdict::Better | Verdict::Worse) {
            return;
        }
        if is_all {
            self.verdict = Verdict::Unclear;
            self.needed = Some(repetitions::needed(self.estimate.run_deviation, metric.delta));
        }
        self.notes.push(format!(
            "one run of each: take {:.1} % for what runs of this system differ by until both were repeated",
            self.effect.abs() * 100.0
        ));
    }
}

/// Compares two sets of runs: two or more on each side, or a single run.
#[must_use]
pub fn of_runs(baseline: &[f64], candidate: &[f64]) -> Option<Estimate> {
    independent(baseline, candidate).or_else(|| single(baseline, candidate, 0.0, 0.0))
}

/// The same where repetitions of other settings tell what runs differ by: a single run is judged by them, where there are
/// any.
#[must_use]
pub fn of_runs_among(
    baseline: &[f64],
    candidate: &[f64],
    among: Option<&Between>,
) -> Option<Estimate> {
    independent(baseline, candidate)
        .or_else(|| single_among(baseline, candidate, among?))
        .or_else(|| single(baseline, candidate, 0.0, 0.0))
}

/// Judges an estimate of the difference in ln x.
#[must_use]
pub fn judge(estimate: Estimate, metric: &Metric) -> Comparison {
    let turn = |ln: f64| if metric.higher_is_better { ln.exp_m1() } else { -ln.exp_m1() };
    let turned = |low: f64, high: f64| {
        let (a, b) = (turn(low), turn(high));
        (a.min(b), a.max(b))
    };
    let floor = Floor::of(metric, estimate.runs);
    let estimate = estimate.no_better_than(floor);
    let effect = turn(estimate.difference);
    let interval = turned(estimate.low, estimate.high);
    let mut verdict = Verdict::of(effect, interval.0, interval.1, metric.delta);
    let mut notes = estimate.notes.clone();
    let opinions = [
        (estimate.second_opinion, "by ranks", "by means", "the two disagree"),
        (estimate.without_time, "with no line over time", "with one", "run the arms in turn"),
    ];
    for (shift, by, against, so) in opinions {
        let Some(shift) = shift else { continue };
        let (low, high) = turned(shift.low, shift.high);
        let other = Verdict::of(turn(shift.estimate), low, high, metric.delta);
        if other != verdict {
            notes.push(format!(
                "{by} it is {} ({:+.2} %, {:+.2} to {:+.2} %), {against} {}: {so}",
                other.keyword(),
                turn(shift.estimate) * 100.0,
                low * 100.0,
                high * 100.0,
                verdict.keyword()
            ));
            verdict = Verdict::Unclear;
        }
    }
    let is_unclear = verdict == Verdict::Unclear;
    let needed = is_unclear.then(|| needed(&estimate, metric.delta)).flatten();
    let p = estimate.p();
    Comparison { verdict, effect, interval, p, delta: metric.delta, estimate, floor, needed, notes }
}

/// Runs per side beyond which none are advised.
const RUNS_MOST: u64 = 1000;

/// Runs per side that 5.3 asks for; where there are as many already, those that tell if all goes on as it is. `None` where the effect is about what matters, and no
/// number would.
fn needed(estimate: &Estimate, delta: f64) -> Option<u64> {
    let had = to_u64(estimate.runs.0.min(estimate.runs.1));
    let by_rule = repetitions::needed(estimate.run_deviation, delta);
    if by_rule > had {
        return Some(by_rule);
    }
    let (effect, delta) = (estimate.difference.abs(), delta.ln_1p());
    (had + 1..=RUNS_MOST).find(|runs| {
        let freedom = 2.0 * (*runs as f64 - 1.0);
        let reach = t_95(freedom) * estimate.run_deviation * (2.0 / *runs as f64).sqrt();
        if effect >= delta { effect > reach } else { effect + reach < delta }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 5] = [58071.31, 55232.28, 56800.0, 57250.0, 56100.0];
    const B: [f64; 5] = [60100.0, 59200.0, 60550.0, 58900.0, 61000.0];

    fn iops() -> Metric {
        Metric::named("iops", true)
    }

    #[track_caller]
    fn near(found: f64, wanted: f64, tolerance: f64) {
        assert!((found - wanted).abs() <= tolerance, "{found} is not {wanted}");
    }

    #[test]
    fn the_worked_comparison_is_better() {
        let found = judge(independent(&A, &B).expect("positive"), &iops());
        near(found.effect * 100.0, 5.76, 0.005);
        near(found.interval.0 * 100.0, 3.12, 0.005);
        near(found.interval.1 * 100.0, 8.46, 0.005);
        near(found.estimate.freedom, 7.5, 0.05);
        assert_eq!((found.verdict, found.needed), (Verdict::Better, None));
        let back = judge(independent(&B, &A).expect("positive"), &iops());
        assert_eq!(back.verdict, Verdict::Worse);
        let lower = judge(independent(&A, &B).expect("positive"), &Metric::named("p99_ms", false));
        assert_eq!(lower.verdict, Verdict::Worse);
        assert!(lower.interval.0 < lower.effect && lower.effect < lower.interval.1);
    }

    #[test]
    fn one_pair_of_the_same_test_is_better_by_little() {
        let found = judge(single(&[55232.28], &[58071.31], 0.0, 0.0).expect("positive"), &iops());
        near(found.effect * 100.0, 5.14, 0.005);
        let half = (found.estimate.high - found.estimate.low) / 2.0;
        near(half * 100.0, 4.8, 0.005);
        assert_eq!(found.verdict, Verdict::Better);
        assert!(found.notes.iter().any(|note| note.contains("single run")));
    }

    #[test]
    fn the_rule() {
        for (effect, low, high, verdict) in [
            (0.03, 0.01, 0.05, Verdict::Better),
            (0.015, 0.01, 0.021, Verdict::Unclear),
            (0.015, 0.01, 0.019, Verdict::Same),
            (-0.03, -0.05, -0.01, Verdict::Worse),
            (0.0, -0.019, 0.019, Verdict::Same),
            (0.03, -0.01, 0.07, Verdict::Unclear),
        ] {
            assert_eq!(Verdict::of(effect, low, high, 0.02), verdict, "{effect}");
        }
    }

    #[test]
    fn a_drift_is_taken_out_of_interleaved_runs() {
        // 1 % slower with every run; the candidate is 5 % faster.
        let runs: Vec<(f64, bool, f64)> = (0..10_u32)
            .map(|order| {
                let candidate = order % 2 == 1;
                let wobble = f64::from(order * 7 % 5) * 0.0005;
                let ln = -0.01 * f64::from(order) + if candidate { 0.05 } else { 0.0 } + wobble;
                (f64::from(order), candidate, 1000.0 * ln.exp())
            })
            .collect();
        let found = judge(interleaved(&runs).expect("both arms"), &iops());
        near(found.effect, 0.05_f64.exp_m1(), 0.002);
        assert_eq!(found.verdict, Verdict::Better);
        assert_eq!(found.estimate.freedom, 7.0);
    }

    #[test]
    fn arms_that_share_no_time_are_judged_with_and_without_a_line() {
        let judged = |values: [f64; 10]| {
            let runs: Vec<(f64, bool, f64)> =
                (0..10_u32).zip(values).map(|(n, value)| (f64::from(n), n >= 5, value)).collect();
            judge(interleaved(&runs).expect("both arms"), &iops())
        };
        // Ten per cent more, and nothing else.
        let found = judged([100.0, 100.2, 99.9, 100.1, 99.8, 110.0, 109.9, 110.2, 110.1, 109.8]);
        assert_eq!(found.verdict, Verdict::Better, "{:?}", found.notes);
        // 2 % more with every run: by a line over time 6 % less, without one 4 % more.
        let rises = [100.0, 102.0, 104.1, 106.1, 108.2, 104.0, 106.1, 108.2, 110.4, 112.6];
        let found = judged(rises);
        assert!(found.interval.1 < -0.02, "{found:?}");
        assert_eq!(found.verdict, Verdict::Unclear);
        assert!(found.notes.iter().any(|note| note.contains("run the arms in turn")));
    }

    #[test]
    fn six_or_more_are_also_compared_by_ranks() {
        let base = [100.0, 100.5, 99.5, 100.2, 99.8, 100.1];
        let mut other = base.map(|value| value * 1.03);
        let found = judge(independent(&base, &other).expect("positive"), &iops());
        assert_eq!(found.verdict, Verdict::Better);
        assert!(found.estimate.second_opinion.is_some());
        other[5] = 60.0;
        let found = judge(independent(&base, &other).expect("positive"), &iops());
        assert_eq!(found.verdict, Verdict::Unclear);
        assert!(found.needed.is_some_and(|needed| needed > 6));
    }
}
