//! How well a mean is known when neighbouring values resemble each other (method, 5.2).

use crate::stats::describe::{deviation, mean, neighbour_correlation, variance};
use crate::stats::distribution::t_95;

/// A mean of one run and its 95 % interval, which covers variation inside the run only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// The mean.
    pub mean: f64,
    /// Standard error, corrected for correlation.
    pub error: f64,
    /// Half the width of the 95 % interval.
    pub half_width: f64,
    /// Batches that the error rests on.
    pub batches: usize,
    /// Standard deviation of the batch means.
    pub batch_deviation: f64,
    /// What correlation between batches was allowed for.
    pub correlation: f64,
    /// How many independent values the series is worth: s²/SE².
    pub effective: f64,
    /// The same by the correlation of neighbours: what a series is worth that only remembers its last
    /// value. Less noisy where batches are few.
    pub effective_by_neighbours: f64,
}

/// Effective sizes below this are too short for their autocorrelation.
pub const EFFECTIVE_LEAST: f64 = 15.0;

impl MeanInterval {
    /// Whether the run was long enough for its autocorrelation.
    #[must_use]
    pub fn is_long_enough(&self) -> bool {
        self.effective.min(self.effective_by_neighbours) >= EFFECTIVE_LEAST
    }

    /// Half width relative to the mean, by the batches or by the correlation of neighbours, whichever is larger.
    ///
    /// Whoever stops a measurement when its interval is narrow stops where the few batches happen to agree: the second
    /// look is at all values, so it is no matter of luck.
    #[must_use]
    pub fn cautious(&self) -> f64 {
        let by_neighbours = self.error * (self.effective / self.effective_by_neighbours).sqrt();
        let other = t_95(self.effective_by_neighbours.max(2.0) - 1.0) * by_neighbours;
        if other.is_finite() {
            self.half_width.max(other) / self.mean.abs()
        } else {
            self.relative()
        }
    }

    /// Half width relative to the mean.
    #[must_use]
    pub fn relative(&self) -> f64 {
        self.half_width / self.mean.abs()
    }
}

/// Batches to begin with.
const BATCHES: usize = 20;
/// No more correlation than this is allowed for.
const CORRELATION_MOST: f64 = 0.8;

/// The mean of a steady series: 20 equal batches, 10 where neighbours correlate, and a correction for
/// what correlation remains [Law & Kelton; N-Skart, simplified]. Values that fill no batch are left
/// out at the beginning. `None` for fewer than 20 values.
#[must_use]
pub fn of_series(series: &[f64]) -> Option<MeanInterval> {
    let size = series.len() / BATCHES;
    if size == 0 {
        return None;
    }
    let used = &series[series.len() - size * BATCHES..];
    let batches: Vec<f64> = used.chunks(size).map(mean).collect();
    let mut interval = of_batches(&batches)?;
    interval.effective = effective(variance(used), interval.error, used.len());
    interval.effective_by_neighbours = by_neighbours(used);
    Some(interval)
}

/// The same from batch means; `effective` is then in batches. `None` for fewer than two.
#[must_use]
pub fn of_batches(batches: &[f64]) -> Option<MeanInterval> {
    if batches.len() < 2 {
        return None;
    }
    let joined: Vec<f64> = batches.chunks_exact(2).map(mean).collect();
    let join = batches.len() >= BATCHES && neighbour_correlation(batches) > 0.0;
    let batches = if join { &joined } else { batches };
    let count = batches.len() as f64;
    let correlation = (neighbour_correlation(batches) + 1.0 / count).clamp(0.0, CORRELATION_MOST);
    let batch_deviation = deviation(batches);
    let error = batch_deviation / count.sqrt() * ((1.0 + correlation) / (1.0 - correlation)).sqrt();
    Some(MeanInterval {
        mean: mean(batches),
        error,
        half_width: t_95(count - 1.0) * error,
        batches: batches.len(),
        batch_deviation,
        correlation,
        effective: effective(variance(batches), error, batches.len()),
        effective_by_neighbours: by_neighbours(batches),
    })
}

fn effective(variance: f64, error: f64, count: usize) -> f64 {
    if error > 0.0 { variance / error.powi(2) } else { count as f64 }
}

/// n·(1−φ)/(1+φ), φ freed of its bias in short series [Kendall 1954].
fn by_neighbours(series: &[f64]) -> f64 {
    let count = series.len() as f64;
    let found = neighbour_correlation(series);
    let correlation = (found + (1.0 + 3.0 * found) / count).clamp(0.0, 0.999);
    count * (1.0 - correlation) / (1.0 + correlation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_batches_give_150_9() {
        let batches = [
            57800.0, 58210.0, 58040.0, 57650.0, 58330.0, 58120.0, 57910.0, 58260.0, 57990.0,
            58100.0,
        ];
        let interval = of_batches(&batches).expect("ten batches");
        assert_eq!((interval.mean, interval.correlation), (58041.0, 0.0));
        assert!((interval.half_width - 150.9).abs() < 0.05, "{interval:?}");
        assert!((interval.relative() - 0.0026).abs() < 5e-5);
    }

    #[test]
    fn short_and_constant_series() {
        assert!(of_series(&[1.0; 19]).is_none());
        let constant = of_series(&[5.0; 45]).expect("45 values");
        assert_eq!((constant.mean, constant.half_width, constant.effective), (5.0, 0.0, 40.0));
        assert!(constant.is_long_enough());
    }

    #[test]
    fn a_slow_wave_is_too_short() {
        let wave: Vec<f64> = (0..60).map(|i| 100.0 + (f64::from(i) / 12.0).sin()).collect();
        let interval = of_series(&wave).expect("60 values");
        assert!(!interval.is_long_enough(), "{interval:?}");
    }
}
