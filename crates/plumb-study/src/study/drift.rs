//! Whether the device changed while it was measured, by its reference setting (method, 4.2).

use super::record::{Purpose, RunRecord};
use crate::stats::describe::mean;
use crate::stats::distribution::t_95;
use crate::stats::line::{Line, spread};

/// What the anchors say.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// Anchors.
    pub count: usize,
    /// Change of ln X from the first to the last of them, by a straight line.
    pub total: f64,
    /// Half the width of its 95 % interval: by the scatter of the anchors about the line or, where they are too few
    /// to tell it, by what is assumed between runs.
    pub half_width: f64,
    /// Change of ln X per second.
    per_second: f64,
    /// Second in the middle of the anchors.
    centre_s: f64,
}

/// SD of ln X between runs where nothing is known (6.2).
const ASSUMED: f64 = 0.015;
/// Of the normal distribution.
const NORMAL_95: f64 = 1.96;
/// Drift that is told.
const TOLD: f64 = 0.02;
/// Drift that spoils a sweep.
const SPOILS: f64 = 0.10;

impl Drift {
    /// Of the anchors among these runs; `None` with fewer than three.
    #[must_use]
    pub fn of(runs: &[RunRecord]) -> Option<Self> {
        let points: Vec<(f64, f64)> = runs
            .iter()
            .filter(|run| run.purpose == Purpose::Anchor)
            .filter_map(|run| Some((run.started_s, run.usable()?.iops.ln())))
            .collect();
        if points.len() < 3 {
            return None;
        }
        let times: Vec<f64> = points.iter().map(|point| point.0).collect();
        let centre_s = mean(&times);
        let spread = spread(&times);
        if spread <= 0.0 {
            return None;
        }
        // From their middle, so that nothing is lost where a study lasts long.
        let centred: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x - centre_s, *y)).collect();
        let line = Line::through(&centred);
        let length = points[points.len() - 1].0 - points[0].0;
        Some(Self {
            count: points.len(),
            total: line.slope * length,
            half_width: (t_95(points.len() as f64 - 2.0) * line.slope_error * length)
                .min(NORMAL_95 * ASSUMED / spread.sqrt() * length),
            per_second: line.slope,
            centre_s,
        })
    }

    /// Whether it is more than 2 % and more than chance.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.total.abs() > TOLD && self.total.abs() > self.half_width
    }

    /// Whether it may be more than 2 %, but chance as well.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.total.abs() > TOLD && !self.is_real()
    }

    /// Whether it is so much that the sweep is not to be relied on.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.is_real() && self.total.abs() > SPOILS
    }

    /// The rate of a run at `started_s` without the drift, where there is one.
    #[must_use]
    pub fn corrected(&self, iops: f64, started_s: f64) -> f64 {
        if self.is_real() {
            iops * (-self.per_second * (started_s - self.centre_s)).exp()
        } else {
            iops
        }
    }
}
