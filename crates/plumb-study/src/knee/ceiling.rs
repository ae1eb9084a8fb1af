//! A ceiling that many settings show: where the two arms of the curve meet
//! (docs/decisions/0327-corners-by-both-arms.md).

use std::f64::consts::LN_2;

use super::Setting;
use super::fit::{Concave, orthonormal, without};
use crate::stats::line::{Line, spread};
use crate::stats::nonnegative::dot;

/// Settings in the octave below a corner, and from it on, at least.
const BELOW_LEAST: usize = 3;
const LEVEL_LEAST: usize = 4;
const WINDOW_LEAST: usize = 8;
/// Settings beyond a corner that are many.
const MANY: usize = 10;
/// Slope of a level (2.11).
const LEVEL: f64 = 0.03;
/// Elasticity of the way there (2.11).
const STEEP: f64 = 0.6;
/// Ratio of the last load to the corner's over which a level has to be seen (2.11).
const RANGE: f64 = 1.5;
/// How much more than the noise the two arms may leave.
const LEFT_MOST: f64 = 1.25;
/// Noise, for each root of a setting in sight, up to which a curve that bends gradually would show.
const NOISE_MOST: f64 = 0.008;
/// Errors that a figure may be off by.
const ERRORS: f64 = 2.0;
/// Places between two settings at which the arms may meet.
const PLACES: usize = 8;
/// Share of a gap by which the first setting of the level may lie before the corner.
const BEFORE: f64 = 0.25;

/// Where a steep arm meets a level.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ceiling {
    /// ln N of the corner, relative to the first setting.
    pub(super) corner: f64,
    /// Elasticity of the octave below it.
    pub(super) approach: f64,
    /// The first setting of the level.
    pub(super) first: usize,
}

/// Two arms that meet.
struct Arms {
    corner: f64,
    slope: f64,
    left: f64,
}

/// The ceiling that the settings show, if they are many about its corner and two arms say as much of them as the concave fit.
pub(super) fn find(settings: &[Setting], concave: &Concave, plateau: usize) -> Option<Ceiling> {
    let counted: Vec<(usize, f64)> = (0..settings.len())
        .filter(|index| settings[*index].counts())
        .map(|index| (index, settings[index].u))
        .collect();
    let end = counted.last()?.1;
    let window = in_sight(settings, plateau);
    let arms = meet(&window)?;
    let below = window.iter().filter(|(u, _)| *u < arms.corner).count();
    let level: Vec<(f64, f64)> =
        window.iter().copied().filter(|(u, _)| *u >= arms.corner - 1e-12).collect();
    if below < BELOW_LEAST || level.len() < LEVEL_LEAST || arms.slope < STEEP {
        return None;
    }
    let noise = concave.sigma;
    let error = noise / arms.slope * (1.0 / level.len() as f64 + 4.0 / below as f64).sqrt();
    let us: Vec<f64> = level.iter().map(|(u, _)| *u).collect();
    let slope_error = noise / spread(&us).sqrt();
    let is_even =
        Line::through(&level).slope.abs() <= f64::max(LEVEL, (ERRORS * slope_error).min(0.1));
    let is_long = end - arms.corner + ERRORS * error >= RANGE.ln();
    let is_told = noise <= NOISE_MOST * (window.len() as f64).sqrt();
    if !is_told || arms.left > LEFT_MOST * noise || !is_even || !is_long {
        return None;
    }
    let first = counted.windows(2).find_map(|pair| {
        let (gap, at) = (pair[1].1 - pair[0].1, pair[1].1);
        (at >= arms.corner - BEFORE * gap).then_some(pair[1].0)
    })?;
    Some(Ceiling { corner: arms.corner, approach: arms.slope, first })
}

/// What counts from an octave below the plateau on, which may be a few settings off: the window is the same for every corner
/// that is tried.
fn in_sight(settings: &[Setting], plateau: usize) -> Vec<(f64, f64)> {
    let start = settings[plateau].u - LN_2 - 1e-12;
    let inside = settings.iter().filter(|setting| setting.counts() && setting.u >= start);
    inside.map(|setting| (setting.u, setting.ln_x)).collect()
}

/// Whether many settings show that throughput rises or falls beyond the corner: the slope of the second of two arms whose
/// corner may be anywhere (docs/decisions/0343-levels-that-many-settings-tell-from-slopes.md).
pub(super) fn is_sloped(settings: &[Setting], concave: &Concave, plateau: usize) -> bool {
    let points = in_sight(settings, plateau);
    let ones = vec![1.0; points.len()];
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    let arms = |corner: f64| {
        let rise: Vec<f64> = points.iter().map(|(u, _)| u.min(corner)).collect();
        let beyond: Vec<f64> = points.iter().map(|(u, _)| (u - corner).max(0.0)).collect();
        let one = orthonormal(&[ones.clone(), rise]);
        let (column, target) = (without(beyond, &one), without(values.clone(), &one));
        let (size, along) = (dot(&column, &column), dot(&column, &target));
        let us: Vec<f64> =
            points.iter().map(|(u, _)| *u).filter(|u| *u >= corner - 1e-12).collect();
        (dot(&target, &target) - along * along / size, along / size, us)
    };
    let Some(inner) = points.get(1..points.len().saturating_sub(1)) else { return false };
    let corners = inner.windows(2).flat_map(|pair| {
        let gap = pair[1].0 - pair[0].0;
        (0..PLACES).map(move |place| pair[0].0 + gap * place as f64 / PLACES as f64)
    });
    let best = corners.map(arms).min_by(|a, b| a.0.total_cmp(&b.0));
    best.is_some_and(|(_, slope, us)| {
        let error = concave.sigma / spread(&us).sqrt();
        us.len() >= MANY && slope.abs() > f64::max(LEVEL, ERRORS * error)
    })
}

/// The place at which a rising and a level arm leave least of the points, and the SD that they leave.
fn meet(points: &[(f64, f64)]) -> Option<Arms> {
    if points.len() < WINDOW_LEAST {
        return None;
    }
    let freedom = points.len() as f64 - 3.0;
    let inner = &points[1..points.len() - 1];
    let corners = inner.windows(2).flat_map(|pair| {
        let gap = pair[1].0 - pair[0].0;
        (0..PLACES).map(move |place| pair[0].0 + gap * place as f64 / PLACES as f64)
    });
    let at = |corner: f64| {
        let rise: Vec<(f64, f64)> = points.iter().map(|(u, v)| (u.min(corner), *v)).collect();
        let line = Line::through(&rise);
        let squares: f64 = rise.iter().map(|(u, v)| (v - line.at(*u)).powi(2)).sum();
        Arms { corner, slope: line.slope, left: (squares / freedom).sqrt() }
    };
    corners.map(at).min_by(|a, b| a.left.total_cmp(&b.left))
}
