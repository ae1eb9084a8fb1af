//! Whether the reference setting came back as it was when a study goes on (method, 4.3).
//!
//! A single run may be slow for a reason of its own, and a device that drifts differs from what it was without any interruption. What runs of one
//! setting differ by, and how they drift, is what the study's own repetitions say.

use super::Setting;
use super::record::RunRecord;
use crate::stats::describe::{mean, median};
use crate::stats::distribution::{t_95, t_two_sided};

/// SD of ln X between runs where nothing is known (6.2).
const ASSUMED: f64 = 0.015;
/// A reference that lies further off than this spoils what is measured after it (4.2).
const SPOILS: f64 = 0.10;
/// Repetitions beyond the first of each setting that tell what runs differ by.
const KNOWN_FROM: usize = 4;
/// A difference that repetitions would give by chance more often than this is none.
const CHANCE: f64 = 0.001;

/// What runs of one setting differ by, and how that changes with time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    /// SD of ln X between runs.
    deviation: f64,
    freedom: f64,
    /// Whether repetitions told it.
    known: bool,
    /// Change of ln X per second and its standard error; 0 and 0 where there is none to be seen.
    drift: (f64, f64),
}

impl Spread {
    fn of(runs: &[RunRecord]) -> Self {
        let mut settings: Vec<(&Setting, Vec<(f64, f64)>)> = Vec::new();
        for run in runs {
            let Some(summary) = run.usable().filter(|summary| summary.iops > 0.0) else { continue };
            let point = (run.started_s, summary.iops.ln());
            match settings.iter_mut().find(|(setting, _)| **setting == run.setting) {
                Some((_, points)) => points.push(point),
                None => settings.push((&run.setting, vec![point])),
            }
        }
        // Each repetition from the middle of its setting, in time and ln X.
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut freedom = 0;
        for (_, own) in settings.iter().filter(|(_, own)| own.len() > 1) {
            let (times, logs): (Vec<f64>, Vec<f64>) = own.iter().copied().unzip();
            let middle = (mean(&times), mean(&logs));
            points.extend(own.iter().map(|(time, ln)| (time - middle.0, ln - middle.1)));
            freedom += own.len() - 1;
        }
        if freedom < KNOWN_FROM {
            let drift = (0.0, 0.0);
            return Self { deviation: ASSUMED, freedom: 9.0, known: false, drift };
        }
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
        let (xx, xy) = (sum(&|(x, _)| x * x), sum(&|(x, y)| x * y));
        let slope = if xx > 0.0 { xy / xx } else { 0.0 };
        let about_line = sum(&|(x, y)| (y - slope * x).powi(2));
        let left = freedom as f64 - 1.0;
        let error = (about_line / left / xx.max(f64::MIN_POSITIVE)).sqrt();
        if slope.abs() > t_95(left) * error {
            let deviation = (about_line / left).sqrt();
            return Self { deviation, freedom: left, known: true, drift: (slope, error) };
        }
        let deviation = (sum(&|(_, y)| y * y) / freedom as f64).sqrt();
        Self { deviation, freedom: freedom as f64, known: true, drift: (0.0, 0.0) }
    }
}

/// How a run of the reference setting stands to those before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standing {
    /// Relative to what was expected of it.
    pub(super) change: f64,
    /// Whether it differs by more than runs of one setting do.
    pub(super) differs: bool,
    /// Whether what was measured before and after is not one measurement.
    pub(super) spoils: bool,
    /// Usable runs of the setting before.
    pub(super) before: usize,
}

/// How `reference` stands to the runs of its setting up to number `after`, by what all `runs` differ by; `None` where it
/// failed, or nothing of its setting was measured before.
pub(super) fn standing(reference: &RunRecord, after: u32, runs: &[RunRecord]) -> Option<Standing> {
    let now = reference.usable()?.iops.ln();
    let own = runs.iter().filter(|run| run.run <= after && run.setting == reference.setting);
    let spread = Spread::of(runs);
    let own: Vec<(f64, f64)> =
        own.filter_map(|run| Some((run.started_s, run.usable()?.iops.ln()))).collect();
    let expected: Vec<f64> =
        own.iter().map(|(time, ln)| ln + spread.drift.0 * (reference.started_s - time)).collect();
    if expected.is_empty() {
        return None;
    }
    let times: Vec<f64> = own.iter().map(|(time, _)| *time).collect();
    let since = reference.started_s - mean(&times);
    // What is assumed is the least: that of a quiet device, from a few repetitions, is too small by chance now and then.
    let deviation = spread.deviation.max(ASSUMED);
    let count = expected.len() as f64;
    let error = (deviation.powi(2) * (1.0 + 1.0 / count) + (since * spread.drift.1).powi(2)).sqrt();
    let off = now - median(&expected);
    let differs = match spread.known {
        true => t_two_sided(off / error, spread.freedom) < CHANCE,
        // 6.2's spread between two single runs.
        false => off.abs() > 2.0 * ASSUMED * std::f64::consts::SQRT_2,
    };
    let change = off.exp_m1();
    // One run before may itself have been a slow one.
    let spoils = differs && spread.known && own.len() > 1 && change.abs() > SPOILS;
    Some(Standing { change, differs, spoils, before: own.len() })
}
