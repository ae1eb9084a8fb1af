//! Curves that fall by a step: a concave fit cannot follow one, and takes what lies on one side of it for outliers
//! (docs/decisions/0097-steps-down.md).

use super::Setting;
use super::fit::{Concave, counted};
use crate::stats::describe::median;
use crate::stats::line::Line;

/// What lies behind a step down.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fall {
    /// Index of the first setting behind it.
    pub(super) at: usize,
    /// u there, and of the last setting that counts before it.
    pub(super) u: f64,
    before: f64,
    line: Line,
    /// ln X of the fit before it, at that setting.
    edge: f64,
}

/// Settings before a step, and behind it, at least.
const BEFORE_LEAST: usize = 5;
const BEHIND_LEAST: usize = 2;
/// Settings behind it from which on they have a slope of their own.
const SLOPE_FROM: usize = 4;
/// The smallest step, in ln X.
const STEP_LEAST: f64 = 0.05;
/// Root mean square of the residuals from which on a step is looked for, and how many times better the fit is with one.
const BAD_FIT: f64 = 0.01;
const BETTER: f64 = 2.5;
/// What may be left: of noise alone a part can be split off so that the rest looks like a curve.
const LEFT_MOST: f64 = 0.03;
/// Places that are tried.
const TRIED: usize = 4;

impl Fall {
    /// The step without which a bad fit of the settings with weight is a good one, and the root mean square of what is
    /// left of the residuals.
    pub(super) fn find(settings: &[Setting], base: &[f64]) -> Option<(Self, f64)> {
        let places = counted(base);
        if places.len() < BEFORE_LEAST + BEHIND_LEAST {
            return None;
        }
        let whole = Concave::weighted(settings, base);
        let squares = |rest: &dyn Fn(usize) -> f64| -> f64 {
            let all: f64 = places.iter().map(|index| rest(*index).powi(2)).sum();
            (all / places.len() as f64).sqrt()
        };
        let bad = squares(&|index| settings[index].ln_x - whole.at(settings[index].u));
        if bad < BAD_FIT {
            return None;
        }
        let value = |place: usize| settings[places[place]].ln_x;
        let drop = |place: &usize| {
            let near = |from: usize, to: usize| -> Vec<f64> { (from..to).map(value).collect() };
            median(&near(place - 2, *place)) - median(&near(*place, place + 2))
        };
        let mut tried: Vec<usize> =
            (BEFORE_LEAST..=places.len() - BEHIND_LEAST).filter(|p| drop(p) > 0.04).collect();
        tried.sort_by(|a, b| drop(b).total_cmp(&drop(a)));
        let found = tried.into_iter().take(TRIED).map(|place| {
            let at = places[place];
            let mut head = base.to_vec();
            head[at..].fill(0.0);
            let fit = Concave::weighted(settings, &head);
            let fall = Self::behind(settings, &places[place - 1..], &fit);
            let rest = |index: usize| {
                let setting = &settings[index];
                setting.ln_x - if index < at { fit.at(setting.u) } else { fall.at(setting.u) }
            };
            let step = fall.edge - fall.line.at(0.0);
            (squares(&rest), step, fall)
        });
        found
            .filter(|(left, step, _)| {
                left * BETTER < bad && *left < LEFT_MOST && *step > f64::max(5.0 * left, STEP_LEAST)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(left, _, fall)| (fall, left))
    }

    /// Behind the first of these places.
    fn behind(settings: &[Setting], places: &[usize], head: &Concave) -> Self {
        let (before, at) = (places[0], places[1]);
        let u = settings[at].u;
        let points: Vec<(f64, f64)> =
            places[1..].iter().map(|i| (settings[*i].u - u, settings[*i].ln_x)).collect();
        let mut line = Line::through(&points);
        if points.len() < SLOPE_FROM {
            let level =
                crate::stats::describe::mean(&points.iter().map(|p| p.1).collect::<Vec<_>>());
            line = Line { intercept: level, slope: 0.0, ..line };
        }
        let before = settings[before].u;
        Self { at, u, before, line, edge: head.at(before) }
    }

    /// The same step beside another fit of what lies before it.
    pub(super) fn beside(self, head: &Concave) -> Self {
        Self { edge: head.at(self.before), ..self }
    }

    /// Fitted ln X; between the last setting before and the first behind a straight line. `None` before.
    pub(super) fn at_or_before(self, u: f64) -> Option<f64> {
        if u >= self.u - 1e-12 {
            Some(self.at(u))
        } else if u > self.before + 1e-12 {
            Some(self.edge + self.chord() * (u - self.before))
        } else {
            None
        }
    }

    fn at(self, u: f64) -> f64 {
        self.line.at(u - self.u)
    }

    fn chord(self) -> f64 {
        (self.line.at(0.0) - self.edge) / (self.u - self.before)
    }

    /// Elasticity just behind `u`; `None` before the step.
    pub(super) fn slope_after(self, u: f64) -> Option<f64> {
        if u >= self.u - 1e-12 {
            Some(self.line.slope)
        } else if u >= self.before - 1e-12 {
            Some(self.chord())
        } else {
            None
        }
    }
}
