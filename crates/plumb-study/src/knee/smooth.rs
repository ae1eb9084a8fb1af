//! What a curve does between settings that lie far apart.

use super::Setting;
use super::fit::Concave;

/// A curve through the fitted values that bends between the settings instead of at them: cubic pieces which have at each setting
/// the slope of the parabola through it and its neighbours. Where every o was tested it is the fit.
#[derive(Debug)]
pub(super) struct Smooth {
    /// (u, ln X).
    points: Vec<(f64, f64)>,
    slopes: Vec<f64>,
}

impl Smooth {
    /// Through what counts; `None` behind a step down, which no curve bends into, and with fewer than three settings.
    pub(super) fn through(settings: &[Setting], concave: &Concave) -> Option<Self> {
        let counted = settings.iter().filter(|setting| setting.counts());
        let points: Vec<(f64, f64)> =
            counted.map(|setting| (setting.u, concave.at(setting.u))).collect();
        if concave.has_fall() || points.len() < super::FEWEST {
            return None;
        }
        let rise = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
        let chords: Vec<f64> = points.windows(2).map(rise).collect();
        let run = |place: usize| points[place + 1].0 - points[place].0;
        let inner = (1..chords.len()).map(|place| {
            let (before, after) = (run(place - 1), run(place));
            (chords[place - 1] * after + chords[place] * before) / (before + after)
        });
        let mut slopes = vec![0.0];
        slopes.extend(inner);
        let (first, last) = (chords[0], chords[chords.len() - 1]);
        // The ends bend as much again; no throughput rises by more than its load does.
        slopes[0] = (2.0 * first - slopes[1]).min(first.max(1.0));
        slopes.push(2.0 * last - slopes[slopes.len() - 1]);
        Some(Self { points, slopes })
    }

    /// ln X.
    pub(super) fn at(&self, u: f64) -> f64 {
        let above = self.points.partition_point(|(other, _)| *other < u);
        let place = above.clamp(1, self.points.len() - 1) - 1;
        let ((start, low), (end, high)) = (self.points[place], self.points[place + 1]);
        let run = end - start;
        let t = (u - start) / run;
        let (square, cube) = (t * t, t * t * t);
        (2.0 * cube - 3.0 * square + 1.0) * low
            + (cube - 2.0 * square + t) * run * self.slopes[place]
            + (3.0 * square - 2.0 * cube) * high
            + (cube - square) * run * self.slopes[place + 1]
    }
}
