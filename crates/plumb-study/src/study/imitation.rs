//! A device that does what was seen: on it the rest of a study is rehearsed.

use super::perform::{Due, Perform, Performed};
use super::record::RunRecord;
use super::simulated::{SimulatedDevice, Simulation};
use super::sweep::GAP_S;
use super::{Access, Setting};
use crate::stats::describe::{mean, median, squares};

/// I/O that has a curve of its own: whether it is random, its block, its share of writes.
type Class = (bool, u64, u32);

fn class(setting: &Setting) -> Class {
    (setting.access == Access::Random, setting.block_bytes, setting.write_percent)
}

/// Where a curve bends, how sharply, and how high it gets.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    /// Outstanding I/Os at the corner.
    corner: f64,
    sharpness: f64,
    ln_top: f64,
}

/// Of a curve that nobody has seen yet.
const UNSEEN: Shape = Shape { corner: 12.0, sharpness: 4.0, ln_top: 9.0 };
/// SD of ln X between runs where nothing was repeated.
const UNREPEATED: f64 = 0.005;
/// Corners that are tried: powers of the square root of 2, from an eighth to 4096.
const CORNERS: std::ops::RangeInclusive<i32> = -6..=24;
/// Settings that tell where a curve bends.
const BENDS_BY: usize = 3;

impl Shape {
    /// The nearest to these outstanding I/Os, each with its ln X.
    fn of(points: &[(f64, f64)]) -> Self {
        let mut loads: Vec<f64> = points.iter().map(|(n, _)| *n).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        if loads.len() < BENDS_BY {
            let rates: Vec<f64> = points.iter().map(|(_, ln_x)| *ln_x).collect();
            return Self { ln_top: mean(&rates), ..UNSEEN };
        }
        let mut best = (f64::INFINITY, UNSEEN);
        for sharpness in [2.0_f64, 4.0, 8.0] {
            for half in CORNERS {
                let corner = (f64::from(half) * 0.5).exp2();
                let below = |n: f64| -(corner / n).powf(sharpness).ln_1p() / sharpness;
                let left: Vec<f64> = points.iter().map(|(n, ln_x)| ln_x - below(*n)).collect();
                let off = squares(&left);
                if off < best.0 {
                    best = (off, Self { corner, sharpness, ln_top: mean(&left) });
                }
            }
        }
        best.1
    }
}

/// What was seen, and how long runs take.
#[derive(Debug)]
pub(super) struct Imitation {
    shapes: Vec<(Class, Shape)>,
    noise: f64,
    /// What a run takes of what it may take.
    share: f64,
    now_s: f64,
}

impl Imitation {
    /// Of runs, each of which takes that share of what it may take.
    pub(super) fn of(runs: &[RunRecord], share: f64) -> Self {
        let mut points: Vec<(Class, Vec<(f64, f64)>)> = Vec::new();
        let mut alike: Vec<(&Setting, Vec<f64>)> = Vec::new();
        for run in runs {
            let Some(summary) = run.usable() else { continue };
            let (setting, ln_x) = (&run.setting, summary.iops.ln());
            let point = (setting.total_outstanding() as f64, ln_x);
            match points.iter_mut().find(|(of, _)| *of == class(setting)) {
                Some((_, list)) => list.push(point),
                None => points.push((class(setting), vec![point])),
            }
            match alike.iter_mut().find(|(other, _)| *other == setting) {
                Some((_, list)) => list.push(ln_x),
                None => alike.push((setting, vec![ln_x])),
            }
        }
        let freedom: usize = alike.iter().map(|(_, values)| values.len() - 1).sum();
        let pooled: f64 = alike.iter().map(|(_, values)| squares(values)).sum();
        Self {
            shapes: points.iter().map(|(of, points)| (*of, Shape::of(points))).collect(),
            noise: if freedom > 1 { (pooled / freedom as f64).sqrt() } else { UNREPEATED },
            share,
            now_s: runs.last().map_or(0.0, |run| run.ended_s),
        }
    }

    /// The curve of that setting, or of what resembles it.
    fn shape(&self, setting: &Setting) -> Shape {
        let wanted = class(setting);
        let same = self.shapes.iter().find(|(of, _)| *of == wanted);
        let near = || self.shapes.iter().rfind(|(of, _)| of.0 == wanted.0);
        same.or_else(near).map_or(UNSEEN, |(_, shape)| *shape)
    }
}

impl Perform for Imitation {
    fn resume_at(&mut self, seconds: f64) {
        self.now_s = seconds;
    }

    fn rest(&mut self, seconds: f64) {
        self.now_s += seconds;
    }

    fn perform(&mut self, due: Due) -> Performed {
        let setting = &due.order.setting;
        let shape = self.shape(setting);
        let device = SimulatedDevice {
            max_iops: shape.ln_top.exp(),
            latency_us: shape.corner / shape.ln_top.exp() * 1e6,
            sharpness: shape.sharpness,
            max_mib_per_s: 1e9,
            write_cost: 1.0,
            latency_cost: 0.0,
            noise: self.noise,
            ..SimulatedDevice::default()
        };
        let performed = Simulation::new(device).perform(Due { early_end: false, ..due });
        let started_s = self.now_s;
        self.now_s += (setting.seconds() + GAP_S) * self.share;
        Performed { started_s, ended_s: self.now_s, ..performed }
    }
}

/// What of these runs' longest times they took, each; the first one may have made the file.
pub(super) fn share(runs: &[RunRecord]) -> f64 {
    let paced = if runs.len() > 1 { &runs[1..] } else { runs };
    let share = |run: &RunRecord| (run.ended_s - run.started_s) / (run.setting.seconds() + GAP_S);
    median(&paced.iter().map(share).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_found_again() {
        let (corner, sharpness, top) = (32.0_f64, 4.0_f64, 50_000.0_f64);
        let at =
            |n: f64| (n, (top * (1.0 + (corner / n).powf(sharpness)).powf(-1.0 / sharpness)).ln());
        let points: Vec<(f64, f64)> = [1.0, 4.0, 16.0, 32.0, 64.0, 128.0].map(at).to_vec();
        let shape = Shape::of(&points);
        assert_eq!((shape.corner, shape.sharpness), (corner, sharpness));
        assert!((shape.ln_top.exp() / top - 1.0).abs() < 1e-6, "{shape:?}");
    }
}
