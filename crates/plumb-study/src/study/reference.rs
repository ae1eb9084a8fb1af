//! Whether the reference setting came back as it was when a study goes on (method, 4.3).
//!
//! A single run may be slow for a reason of its own, and a device that drifts differs from what it was without any interruption. What runs of one
//! setting differ by, and how they drift, is what the study's own repetitions say.

use super::Setting;
use super::record::RunRecord;
use crate::stats::describe::{mean, median};
use crate::stats::distribution::t_two_sided;

/// SD of ln X between runs where nothing is known (6.2).
const ASSUMED: f64 = 0.015;
const ASSUMED_FREEDOM: f64 = 9.0;
/// A reference that lies further off than this spoils what is measured after it (4.2).
const SPOILS: f64 = 0.10;
/// Repetitions beyond the first of each setting that tell what runs differ by.
const KNOWN_FROM: usize = 4;
/// A difference that repetitions would give by chance more often than this is none.
const CHANCE: f64 = 0.001;
/// Distance in ln X within which a run of the setting before gave the same: what was seen before is no sign of another device.
const SEEN: f64 = 0.05;
/// Standard errors from which on a drift is one.
const SURE: f64 = 4.0;
/// Distance in ln X from several runs that differs whatever repetitions say: a change that is not the same for all settings looks like spread.
const FAR: f64 = 0.3;

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

/// A repetition: its time, whether it came after the interruption, and ln X; each from the mean of its setting.
#[derive(Debug, Clone, Copy)]
struct Repetition {
    time: f64,
    after: f64,
    ln: f64,
}

impl Spread {
    /// By least squares of ln X on the setting, time, and a step at the interruption: a device that came back as another is no spread.
    fn of(runs: &[RunRecord], after: u32) -> Self {
        let unknown =
            Self { deviation: ASSUMED, freedom: ASSUMED_FREEDOM, known: false, drift: (0.0, 0.0) };
        let (points, repeated) = repetitions(runs, after);
        let sum = |of: &dyn Fn(&Repetition) -> f64| points.iter().map(of).sum::<f64>();
        let (tt, ta, aa) =
            (sum(&|p| p.time * p.time), sum(&|p| p.time * p.after), sum(&|p| p.after * p.after));
        let (ty, ay) = (sum(&|p| p.time * p.ln), sum(&|p| p.after * p.ln));
        let is_on_both_sides = aa > 1e-9;
        // What of time the step does not tell.
        let own = if is_on_both_sides { tt - ta * ta / aa } else { tt };
        let has_time = own > 1e-9 * tt.max(1.0);
        let found = usize::from(is_on_both_sides) + usize::from(has_time);
        if repeated < KNOWN_FROM + found {
            return unknown;
        }
        let without_step = if is_on_both_sides { ty - ta * ay / aa } else { ty };
        let slope = if has_time { without_step / own } else { 0.0 };
        let step = if is_on_both_sides { (ay - slope * ta) / aa } else { 0.0 };
        let left = (repeated - found) as f64;
        let residual = sum(&|p| (p.ln - slope * p.time - step * p.after).powi(2));
        let deviation = (residual / left).sqrt();
        let error = if has_time { deviation / own.sqrt() } else { 0.0 };
        Self { deviation, freedom: left, known: true, drift: (slope, error) }
    }
}

/// The runs of settings that were run several times, and how many more there are than settings.
fn repetitions(runs: &[RunRecord], after: u32) -> (Vec<Repetition>, usize) {
    let mut settings: Vec<(&Setting, Vec<Repetition>)> = Vec::new();
    for run in runs {
        let Some(summary) = run.usable() else { continue };
        let point = Repetition {
            time: run.started_s,
            after: f64::from(u8::from(run.run > after)),
            ln: summary.iops.ln(),
        };
        match settings.iter_mut().find(|(setting, _)| **setting == run.setting) {
            Some((_, points)) => points.push(point),
            None => settings.push((&run.setting, vec![point])),
        }
    }
    let (mut points, mut repeated) = (Vec::new(), 0);
    for (_, own) in settings.iter().filter(|(_, own)| own.len() > 1) {
        let middle = |of: fn(&Repetition) -> f64| mean(&own.iter().map(of).collect::<Vec<_>>());
        let (time, after, ln) = (middle(|p| p.time), middle(|p| p.after), middle(|p| p.ln));
        points.extend(own.iter().map(|p| Repetition {
            time: p.time - time,
            after: p.after - after,
            ln: p.ln - ln,
        }));
        repeated += own.len() - 1;
    }
    (points, repeated)
}

/// How a run of the reference setting stands to those before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standing {
    /// Relative to what was expected of it, by how all runs drifted.
    pub(super) change: f64,
    /// Relative to the runs of its setting before, as they were.
    pub(super) plain: f64,
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
    let spread = Spread::of(runs, after);
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
    let is_far = own.len() > 1 && off.abs() > FAR;
    // What drifts for sure does not come back to what it was; a slow run or two make a drift that is none.
    let (slope, slope_error) = spread.drift;
    let is_drifting = slope.abs() > SURE * slope_error;
    let mut seen = own.iter().map(|(_, ln)| *ln).zip(&expected);
    let is_seen =
        seen.any(|(ln, moved)| (now - if is_drifting { *moved } else { ln }).abs() < SEEN);
    let differs = match spread.known {
        true => !is_seen && (is_far || t_two_sided(off / error, spread.freedom) < CHANCE),
        // 6.2's spread between two single runs.
        false => off.abs() > 2.0 * ASSUMED * std::f64::consts::SQRT_2,
    };
    let change = off.exp_m1();
    let plain = (now - median(&own.iter().map(|one| one.1).collect::<Vec<_>>())).exp_m1();
    // The reference, and what was measured of its setting later: each may be a slow run, and not most of them.
    let later = runs.iter().filter(|run| {
        run.run > after && run.setting == reference.setting && run.started_s > reference.started_s
    });
    let later = later.filter_map(|run| {
        let drifted = spread.drift.0 * (reference.started_s - run.started_s);
        Some(run.usable()?.iops.ln() + drifted)
    });
    let since: Vec<f64> = later.chain([now]).collect();
    let stays = (median(&since) - median(&expected)) * off.signum() > SPOILS.ln_1p();
    // One run before may itself have been a slow one.
    let spoils = differs && stays && spread.known && own.len() > 1 && change.abs() > SPOILS;
    Some(Standing { change, plain, differs, spoils, before: own.len() })
}
