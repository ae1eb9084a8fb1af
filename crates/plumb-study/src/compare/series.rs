//! Runs given as series per interval: warm-ups cut, errors inside the run.

use super::estimate::{Design, Estimate, WELCH_FROM, independent, single};
use crate::precision;
use crate::stats::describe::{deviation, mean};
use crate::steadiness::Steadiness;
use crate::steady;

/// What a run's series comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRun {
    /// Mean of the steady part.
    pub mean: f64,
    /// Its standard error by variation inside the run.
    pub error: f64,
    /// Intervals left out at the beginning.
    pub dropped: usize,
    /// Whether it was steady (5.1).
    pub is_steady: bool,
    /// Whether its level changed inside the measurement; the later one was taken.
    pub two_phases: bool,
    /// Whether it was long enough for its autocorrelation.
    pub long_enough: bool,
}

impl SteadyRun {
    /// Reads a series of positive values; `None` for an empty one.
    #[must_use]
    pub fn of(series: &[f64], interval_s: f64) -> Option<Self> {
        let is_steady = Steadiness::of_series(series, interval_s).may_be_steady();
        Some(Self { is_steady, ..Self::whatever_its_steadiness(series, interval_s)? })
    }

    /// The same of I/Os per second, of which so few may fall in an interval that these differ by chance (5.1).
    #[must_use]
    pub fn of_iops(series: &[f64], interval_s: f64) -> Option<Self> {
        let is_steady = Steadiness::of_run(series, &[], interval_s).may_be_steady();
        Some(Self { is_steady, ..Self::whatever_its_steadiness(series, interval_s)? })
    }

    fn whatever_its_steadiness(series: &[f64], interval_s: f64) -> Option<Self> {
        let warm_up = steady::warm_up(series);
        let phases = steady::two_phases(&series[warm_up.drop..], interval_s);
        let dropped = warm_up.drop + phases.map_or(0, |phases| phases.at);
        let part = series.get(dropped..).filter(|part| !part.is_empty())?;
        let interval = precision::of_series(part);
        Some(Self {
            mean: mean(part),
            error: interval
                .map_or_else(|| deviation(part) / (part.len() as f64).sqrt(), |i| i.error),
            dropped,
            is_steady: true,
            two_phases: phases.is_some(),
            long_enough: interval.is_some_and(|interval| interval.is_long_enough()),
        })
    }

    fn relative_error(&self) -> f64 {
        self.error / self.mean
    }
}

/// Compares runs by the steady means of their series; `None` for values that are not positive.
#[must_use]
pub fn of_series(baseline: &[SteadyRun], candidate: &[SteadyRun]) -> Option<Estimate> {
    let means = |runs: &[SteadyRun]| -> Vec<f64> { runs.iter().map(|run| run.mean).collect() };
    let (a, b) = (means(baseline), means(candidate));
    // Root mean square of the runs' own relative errors.
    let within = |runs: &[SteadyRun]| {
        let squares: Vec<f64> = runs.iter().map(|run| run.relative_error().powi(2)).collect();
        mean(&squares).sqrt()
    };
    let (inside_a, inside_b) = (within(baseline), within(candidate));
    let least = (inside_a.powi(2) / a.len() as f64 + inside_b.powi(2) / b.len() as f64).sqrt();
    let mut estimate = match independent(&a, &b) {
        Some(estimate) if a.len().min(b.len()) < WELCH_FROM => {
            Estimate { design: Design::Inside, ..estimate.with_inside(least) }
        }
        Some(estimate) => estimate.at_least(least),
        None => single(&a, &b, inside_a, inside_b)?,
    };
    let runs = || baseline.iter().chain(candidate);
    let count = |is: fn(&SteadyRun) -> bool| runs().filter(|run| is(run)).count();
    for (number, what) in [
        (count(|run| !run.is_steady), "were not steady: they drift, or differ from round to round"),
        (count(|run| run.two_phases), "changed their level; the later level was taken"),
        (count(|run| !run.long_enough), "too short to tell their autocorrelation: run longer"),
    ] {
        if number > 0 {
            estimate.notes.push(format!("{number} of {} runs {what}", runs().count()));
        }
    }
    Some(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(level: f64, warm_up: usize) -> Vec<f64> {
        let wobble = |i: usize| ((i * 37 % 11) as f64 - 5.0) * 0.002;
        let value = |i: usize| level * (1.0 + wobble(i)) * if i < warm_up { 0.6 } else { 1.0 };
        (0..120).map(value).collect()
    }

    #[test]
    fn warm_ups_are_left_out() {
        let run = SteadyRun::of(&series(1000.0, 20), 1.0).expect("a series");
        assert_eq!((run.dropped, run.is_steady, run.two_phases), (20, true, false));
        assert!((run.mean - 1000.0).abs() < 2.0 && run.long_enough);
        assert_eq!(SteadyRun::of(&[], 1.0), None);
    }

    /// A disk of three or thirty I/Os per second differs by chance from round to round.
    #[test]
    fn series_of_few_ios_are_not_called_unsteady() {
        let few: Vec<f64> = (0..60).map(|s| if s / 10 % 2 == 0 { 2.2 } else { 2.8 }).collect();
        let is_steady = |run: Option<SteadyRun>| run.expect("a series").is_steady;
        assert!(!is_steady(SteadyRun::of(&few, 1.0)));
        assert!(is_steady(SteadyRun::of_iops(&few, 1.0)));
        // 220 and 280 in ten seconds each are within what chance does to so few.
        let some: Vec<f64> = few.iter().map(|rate| 10.0 * rate).collect();
        assert!(is_steady(SteadyRun::of_iops(&some, 1.0)));
        let many: Vec<f64> = few.iter().map(|rate| 1000.0 * rate).collect();
        assert!(!is_steady(SteadyRun::of_iops(&many, 1.0)));
        let falls: Vec<f64> = (0..60).map(|s| if s < 52 { 1e4 } else { 5e3 }).collect();
        assert!(!is_steady(SteadyRun::of_iops(&falls, 1.0)));
    }

    #[test]
    fn a_later_level_is_the_steady_one() {
        let mut falling = series(1000.0, 0);
        for value in &mut falling[80..] {
            *value *= 0.5;
        }
        let run = SteadyRun::of(&falling, 1.0).expect("a series");
        assert!(run.two_phases && (run.mean - 500.0).abs() < 2.0, "{run:?}");
        let other = SteadyRun::of(&series(500.0, 0), 1.0).expect("a series");
        let estimate = of_series(&[run, run], &[other, other]).expect("positive");
        assert!(estimate.difference.abs() < 0.01 && !estimate.notes.is_empty());
        // Two runs that agree to the last digit are not exact for that.
        assert!(estimate.error > 0.0);
    }
}
