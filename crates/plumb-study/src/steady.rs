//! When a run has warmed up and whether it stays so (method, 5.1).

use crate::stats::describe::{deviation, mean, squares};
use crate::stats::line::Line;
use crate::{history, precision};

/// Intervals per batch of MSER-5.
const BATCH: usize = 5;

/// Where a series becomes steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUp {
    /// Intervals to leave out.
    pub drop: usize,
    /// Whether the best cut is at the half of the series: it has not settled, go on.
    pub settled: bool,
}

/// Values of MSER-5 for leaving out d = 0 … n/2 of the batch means: Σ(Z−Z̄)²/(n−d)² of the rest
/// [White 1997; Spratt 1998].
#[must_use]
pub fn mser(batches: &[f64]) -> Vec<f64> {
    let count = batches.len();
    (0..=count / 2)
        .filter(|d| *d < count)
        .map(|d| {
            let rest = &batches[d..];
            let centre = mean(rest);
            let squares: f64 = rest.iter().map(|z| (z - centre).powi(2)).sum();
            squares / (rest.len() as f64).powi(2)
        })
        .collect()
}

/// The warm-up of a series by MSER-5. A series of fewer than four batches is left as it is.
#[must_use]
pub fn warm_up(series: &[f64]) -> WarmUp {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    if batches.len() < 4 {
        return WarmUp { drop: 0, settled: true };
    }
    let values = mser(&batches);
    let best = (0..values.len())
        .min_by(|a, b| values[*a].total_cmp(&values[*b]))
        .expect("d = 0 is always there");
    WarmUp { drop: best * BATCH, settled: best < batches.len() / 2 }
}

/// The warm-up of a run that is to be cut off: that of MSER-5 where what it leaves out differs from the rest by more than
/// chance, and by enough to matter. Of a series without a warm-up MSER takes what makes the rest look calmest, which is no
/// reason to believe it; of one that drifts ever so slowly it takes the half.
#[must_use]
pub fn cut(series: &[f64]) -> WarmUp {
    let found = warm_up(series);
    if found.drop == 0 {
        return found;
    }
    let (before, rest) = series.split_at(found.drop);
    let first = &before[..BATCH.min(before.len())];
    let level = mean(rest);
    // Standard errors of the rest's mean, and of that of so many of its values; where it is too short to tell how these resemble each other, as if they did not.
    let alone = || deviation(rest) / (rest.len() as f64).sqrt();
    let error = precision::of_series(rest).map_or_else(alone, |interval| interval.error);
    let is_off = |part: &[f64]| {
        let share = rest.len() as f64 / part.len() as f64;
        let chance = error * (share + 1.0).sqrt();
        (mean(part) - level).abs() > (CUT_DEVIATIONS * chance).max(CUT_LEAST * level.abs())
    };
    if is_off(before) || is_off(first) { found } else { WarmUp { drop: 0, settled: true } }
}

/// Standard errors beyond which a beginning is another level.
const CUT_DEVIATIONS: f64 = 3.0;
/// What a beginning differs by at least that is left out, relative: kept, it moves the mean by half of it at the most, a
/// quarter of what a mean is measured to (5.2).
const CUT_LEAST: f64 = 0.005;

/// The warm-up of a run: the larger of those of its throughput and its latency.
#[must_use]
pub fn warm_up_of_run(iops: &[f64], latency: &[f64]) -> WarmUp {
    let (x, l) = (cut(iops), cut(latency));
    WarmUp { drop: x.drop.max(l.drop), settled: x.settled && l.settled }
}

/// How strict the window gate is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Level {
    /// Excursion 20 %, slope 10 %: as the SNIA test specification.
    Pts,
    /// 10 % and 5 %.
    #[default]
    Standard,
    /// 4 % and 2 %.
    Strict,
}

impl Level {
    /// Largest excursion and largest drift over the window, relative to the mean.
    #[must_use]
    pub fn limits(self) -> (f64, f64) {
        match self {
            Self::Pts => (0.20, 0.10),
            Self::Standard => (0.10, 0.05),
            Self::Strict => (0.04, 0.02),
        }
    }
}

/// What the last rounds look like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Mean of the rounds.
    pub mean: f64,
    /// (max − min)/mean.
    pub excursion: f64,
    /// Drift over the window by the line of least squares, relative to the mean.
    pub drift: f64,
}

/// Rounds of the window.
pub const ROUNDS: usize = 5;

impl Window {
    /// The last five rounds; `None` if there are fewer.
    #[must_use]
    pub fn of(rounds: &[f64]) -> Option<Self> {
        let last = rounds.get(rounds.len().checked_sub(ROUNDS)?..)?;
        let centre = mean(last);
        let low = last.iter().copied().fold(f64::INFINITY, f64::min);
        let high = last.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let points: Vec<(f64, f64)> = (0_u32..).map(f64::from).zip(last.iter().copied()).collect();
        let across = ROUNDS as f64 - 1.0;
        let drift = Line::through(&points).slope.abs() * across / centre;
        Some(Self { mean: centre, excursion: (high - low) / centre, drift })
    }

    /// Whether it is steady.
    #[must_use]
    pub fn is_steady(&self, level: Level) -> bool {
        let (excursion, drift) = level.limits();
        self.excursion <= excursion && self.drift <= drift
    }
}

/// A change of level inside a measurement: a cache or tier is full, or something throttles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoPhases {
    /// First interval of the later level.
    pub at: usize,
    /// Mean before.
    pub before: f64,
    /// Mean from there on: the steady one.
    pub after: f64,
}

/// Smallest step that makes two phases.
const PHASE_STEP: f64 = 0.05;
/// How far apart the levels are, in standard deviations inside them: slow waves are no phases.
const PHASE_DEVIATIONS: f64 = 3.0;
/// How far the later level is from everything before it, in standard deviations inside both.
const WHOLE_DEVIATIONS: f64 = 2.0;
/// Shortest phase in seconds.
const PHASE_S: f64 = 10.0;

/// What an interval without a completion counts as, relative to the mean.
const STALLED: f64 = 0.01;
/// Long series are looked at in bins, this many.
const BINS: usize = 400;

/// The last change of level of more than 5 % with at least 10 s on both sides; `None` if there is none.
#[must_use]
pub fn two_phases(series: &[f64], interval_s: f64) -> Option<TwoPhases> {
    let width = series.len().div_ceil(BINS).max(1);
    let binned: Vec<f64> = series.chunks_exact(width).map(mean).collect();
    // A stall has no logarithm: far below the rest is enough to make it an outlier.
    let floor = mean(&binned) * STALLED;
    if binned.is_empty() || floor <= 0.0 {
        return None;
    }
    let lifted: Vec<f64> = binned.iter().map(|value| value.max(floor)).collect();
    let points = history::phases(&lifted)?;
    let mut bounds = vec![0];
    bounds.extend(points.iter().map(|point| point.index * width));
    bounds.push(series.len());
    bounds.windows(3).rev().find_map(|bound| {
        let (start, at, end) = (bound[0], bound[1], bound[2]);
        let (before, after) = (mean(&series[start..at]), mean(&series[at..end]));
        let lasts = (end - at).min(at - start) as f64 * interval_s >= PHASE_S;
        let inside = squares(&series[start..at]) + squares(&series[at..end]);
        let deviation = (inside / (end - start) as f64).sqrt();
        // Seconds that resemble each other wander: what stands off its neighbour must stand off all before it.
        let (earlier, later) = (&series[..at], &series[at..]);
        let whole = ((squares(earlier) + squares(later)) / series.len() as f64).sqrt();
        let steps = (after / before - 1.0).abs() > PHASE_STEP
            && (after - before).abs() > PHASE_DEVIATIONS * deviation
            && (after - mean(earlier)).abs() > WHOLE_DEVIATIONS * whole;
        (lasts && steps).then_some(TwoPhases { at, before, after })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_warm_up_drops_three_batches() {
        let batches = [50.0, 80.0, 95.0, 100.0, 101.0, 99.0, 100.0, 100.0, 101.0, 99.0];
        let values = mser(&batches);
        for (value, wanted) in values.iter().zip([23.665, 4.439, 0.4043, 0.0816, 0.1111]) {
            assert!((value / wanted - 1.0).abs() < 0.001, "{value} is not {wanted}");
        }
        let series: Vec<f64> = batches.iter().flat_map(|batch| [*batch; 5]).collect();
        assert_eq!(warm_up(&series), WarmUp { drop: 15, settled: true });
    }

    #[test]
    fn a_series_that_only_rises_is_not_steady() {
        let rising: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(!warm_up(&rising).settled);
        assert_eq!(warm_up(&[1.0, 9.0, 1.0]), WarmUp { drop: 0, settled: true });
    }

    #[test]
    fn what_is_too_small_to_matter_is_not_cut() {
        // 1 % in an hour, and nothing else: certain, and of no size.
        let slow: Vec<f64> = (0..60).map(|s| 1e4 * (1.0 + f64::from(s) * 0.01 / 3600.0)).collect();
        assert!(!warm_up(&slow).settled);
        assert_eq!(cut(&slow), WarmUp { drop: 0, settled: true });
        // Fewer seconds than an error can be told from.
        assert_eq!(cut(&slow[..30]), WarmUp { drop: 0, settled: true });
        // 4 % in the minute.
        let fast: Vec<f64> = (0..60).map(|s| 1e4 * (1.0 + f64::from(s) * 0.04 / 60.0)).collect();
        assert!(!cut(&fast).settled && !cut(&fast[..30]).settled);
        // A beginning that is half a per cent off, more or less.
        let begins = |off: f64| -> Vec<f64> {
            (0..60_u32)
                .map(|s| if s < 10 { 1e4 * (1.0 - off) } else { 1e4 } + f64::from(s * 37 % 11))
                .collect()
        };
        assert_eq!(cut(&begins(0.004)).drop, 0);
        assert!(cut(&begins(0.006)).drop >= 10);
    }

    #[test]
    fn the_first_half_minute_of_the_tier_test_is_cut() {
        let first = (115_870.0 * 300.0 - 120_000.0 * 270.0) / 30.0;
        assert_eq!(first, 78_700.0);
        let wobble = |second: u32| 400.0 * f64::from(second * 37 % 11) - 2000.0;
        let series: Vec<f64> = (0..300)
            .map(|second| if second < 30 { first } else { 120_000.0 } + wobble(second))
            .collect();
        let latency: Vec<f64> = series.iter().map(|x| 320.0 / x).collect();
        assert_eq!(warm_up_of_run(&series, &latency), WarmUp { drop: 30, settled: true });
    }

    #[test]
    fn the_worked_window_is_steady_but_not_strictly() {
        let window = Window::of(&[7.0, 100.0, 104.0, 98.0, 101.0, 103.0]).expect("five rounds");
        assert!((window.mean - 101.2).abs() < 1e-9);
        assert!((window.excursion - 0.059).abs() < 0.0005);
        assert!((window.drift - 0.012).abs() < 0.0005);
        assert!(window.is_steady(Level::Pts) && window.is_steady(Level::Standard));
        assert!(!window.is_steady(Level::Strict));
        assert_eq!(Window::of(&[1.0; 4]), None);
    }

    #[test]
    fn a_full_cache_makes_two_phases() {
        let wobble = |second: u32| f64::from(second * 37 % 11) - 5.0;
        let level = |second: u32| if second < 40 { 1000.0 } else { 600.0 };
        let series: Vec<f64> = (0..60).map(|second| level(second) + wobble(second)).collect();
        let phases = two_phases(&series, 1.0).expect("two phases");
        assert_eq!(phases.at, 40);
        assert!((phases.after - 600.0).abs() < 2.0 && (phases.before - 1000.0).abs() < 2.0);
        assert_eq!(two_phases(&series[..40], 1.0), None);
        // Six seconds at the new level are not a phase yet.
        assert_eq!(two_phases(&series[..46], 1.0), None);
        // Two steps down are still two steps.
        let third = |second: u32| if second < 60 { level(second) } else { 300.0 };
        let falling: Vec<f64> = (0..90).map(|second| third(second) + wobble(second)).collect();
        assert_eq!(two_phases(&falling, 1.0).map(|phases| phases.at), Some(60));
    }

    #[test]
    fn a_series_that_wanders_has_no_phases() {
        // Each value keeps 0.8 of the one before; a fixed sequence that looks random.
        let mut state = 12_345_u64;
        let mut value = 0.0;
        let mut found = 0;
        for _ in 0..50 {
            let series: Vec<f64> = (0..300)
                .map(|_| {
                    let mut sum = 0.0;
                    for _ in 0..12 {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        sum += (state >> 40) as f64 / f64::from(1 << 24);
                    }
                    value = 0.8 * value + 0.6 * (sum - 6.0);
                    1000.0 + 50.0 * value
                })
                .collect();
            found += u32::from(two_phases(&series, 1.0).is_some());
        }
        assert!(found <= 5, "{found} of 50");
    }
}
