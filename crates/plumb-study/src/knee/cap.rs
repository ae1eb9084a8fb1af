//! Ceilings (method, 2.11): throughput that stays the same while the load grows.

use super::Setting;
use super::ceiling::{self, Ceiling};
use super::fit::Concave;
use crate::identities::MIB;
use crate::stats::describe::{deviation, median};
use crate::stats::line::{Line, spread};

/// A limit that somebody declared.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredCap {
    /// What to call it.
    pub name: String,
    /// How much.
    pub limit: Limit,
}

impl DeclaredCap {
    /// Reads `1920iops`, `48MiB/s`, `50MB/s`, `1920`, which is I/Os per second, and any of them after a name: `VM limit=1920iops`.
    /// Without one its name is what was written, with the unit that was taken.
    ///
    /// # Errors
    /// It is no positive number, or has another unit; which.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, height) = match text.split_once('=') {
            Some((name, height)) if !name.trim().is_empty() => (name.trim(), height.trim()),
            Some(_) => return Err("nothing stands before the `=`".to_owned()),
            None => (text, text),
        };
        let end = height.find(char::is_alphabetic).unwrap_or(height.len());
        let (number, unit) = height.split_at(end);
        let number = number.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
        let number = number.ok_or_else(|| {
            "it must be a positive number, such as 1920iops or 48MiB/s".to_owned()
        })?;
        let unit = unit.trim();
        let limit = match unit.to_lowercase().as_str() {
            "" | "iops" | "io/s" => Limit::Iops(number),
            "mib/s" | "mibps" => Limit::MibPerS(number),
            "mb/s" | "mbps" => Limit::MibPerS(number * 1e6 / MIB),
            other => return Err(format!("`{other}` is no unit: iops or MiB/s")),
        };
        // A number alone does not say of what it is one.
        let is_bare = unit.is_empty() && name == text;
        let name = if is_bare { format!("{}iops", name.trim()) } else { name.to_owned() };
        Ok(Self { name, limit })
    }
}

/// A limit and its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// I/Os per second.
    Iops(f64),
    /// MiB per second.
    MibPerS(f64),
}

/// The limit that explains a ceiling.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedCap {
    /// Its name.
    pub name: String,
    /// Its height in I/Os per second.
    pub iops: f64,
    /// Measured over declared, minus 1.
    pub distance: f64,
}

/// Noise of ln X that a level may have, however quiet the rest is.
const LEVEL_NOISE: f64 = 0.01;
/// Elasticity before a corner from which on a level may scatter by the noise that is taken where it is not known: curves
/// that bend gradually do not rise as steeply (docs/decisions/0274-levels-of-few-settings.md).
const CORNER: f64 = 0.8;
/// How far a ceiling may lie from its declared height.
const NAMED_WITHIN: f64 = 0.05;

/// What was looked at for a ceiling.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CapEvidence {
    /// Median throughput from the plateau on, in I/Os per second.
    pub level_iops: f64,
    /// d ln X / d ln N from the plateau on, and its standard error.
    pub slope: f64,
    /// Its standard error.
    pub slope_error: f64,
    /// SD of ln X from the plateau on.
    pub deviation: f64,
    /// Largest over smallest load from the plateau on.
    pub range: f64,
    /// Elasticity over the octave below the corner; `None` where the corner is the first setting.
    pub approach: Option<f64>,
    /// Whether the flat part looks like a ceiling.
    pub is_level: bool,
    /// Whether the way there is steep.
    pub is_steep: bool,
}

impl CapEvidence {
    /// Whether the way there is steep enough beside a limit that was declared at this height.
    #[must_use]
    pub fn is_rather_steep(&self) -> bool {
        self.approach.is_none_or(|approach| approach >= 0.4)
    }
}

/// Looks for a ceiling from the setting `plateau` on; where settings are far apart and the corner lies a little beyond
/// that one, from the next on (docs/decisions/0137-ceilings-between-two-settings.md).
pub(super) fn look(
    settings: &[Setting],
    concave: &Concave,
    plateau: usize,
    ceiling: Option<Ceiling>,
) -> CapEvidence {
    let here = look_from(settings, concave, plateau);
    if ceiling::is_sloped(settings, concave, plateau) {
        return CapEvidence { is_level: false, ..here };
    }
    if let Some(ceiling) = ceiling {
        let last = settings.iter().rfind(|setting| setting.counts()).map_or(0.0, |s| s.u);
        return CapEvidence {
            range: (last - ceiling.corner).exp(),
            approach: here.approach.map(|approach| approach.max(ceiling.approach)),
            is_level: true,
            is_steep: true,
            ..here
        };
    }
    let next = (plateau + 1..settings.len()).find(|index| settings[*index].counts());
    let is_apart = |next: &usize| settings[*next].u - settings[plateau].u > APART;
    match next.filter(is_apart).filter(|_| !here.is_level) {
        Some(next) => Some(look_from(settings, concave, next)).filter(|e| e.is_level && e.is_steep),
        None => None,
    }
    .unwrap_or(here)
}

fn look_from(settings: &[Setting], concave: &Concave, plateau: usize) -> CapEvidence {
    let flat: Vec<&Setting> = settings[plateau..].iter().filter(|s| s.counts()).collect();
    let points: Vec<(f64, f64)> = flat.iter().map(|setting| (setting.u, setting.ln_x)).collect();
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    let line = Line::through(&points);
    let range = match (flat.first(), flat.last()) {
        (Some(first), Some(last)) => last.o as f64 / first.o as f64,
        _ => 1.0,
    };
    let approach = approach(settings, concave, plateau);
    let deviation = deviation(&values);
    let slope_error = if points.len() > 1 {
        concave.sigma.max(LEVEL_NOISE)
            / spread(&points.iter().map(|p| p.0).collect::<Vec<_>>()).sqrt()
    } else {
        f64::INFINITY
    };
    let is_within = |noise: f64| deviation <= f64::max(LEVEL_NOISE, 2.0 * noise);
    let is_corner = approach.is_some_and(|approach| approach >= CORNER);
    // The spread of two values is their slope once more.
    let is_even =
        points.len() == 2 || is_within(concave.sigma) || is_corner && is_within(concave.noise());
    CapEvidence {
        level_iops: median(&values).exp(),
        slope: line.slope,
        slope_error,
        deviation,
        range,
        approach,
        is_level: points.len() >= 2
            && line.slope.abs() <= f64::max(0.03, (2.0 * slope_error).min(0.1))
            && is_even
            && range >= 1.5 - 1e-9,
        is_steep: plateau <= 1 || approach.is_some_and(|approach| approach >= 0.6),
    }
}

/// Distance in ln N beyond which a corner may lie well between two settings.
const APART: f64 = 0.14;
/// Change of the elasticity from one octave to the next below which a curve rises in a straight line.
const STRAIGHT: f64 = 0.12;

/// Elasticity over the octave below the corner; `None` where the plateau is the first setting.
///
/// The corner lies between the plateau and the setting before it: where those are far apart, part of the octave below
/// the plateau is flat already. It is taken to be where the piece before would reach the plateau's level, if the curve
/// comes there in a straight line: one that bends all the way has no corner.
fn approach(settings: &[Setting], concave: &Concave, plateau: usize) -> Option<f64> {
    use std::f64::consts::LN_2;
    let level = concave.at(settings[plateau].u);
    let over_octave = |corner: f64| {
        let below = (corner - LN_2).max(0.0);
        (corner > below).then(|| (level - concave.at(below)) / (corner - below))
    };
    let end = settings[plateau].u;
    let before = settings[plateau.checked_sub(1)?].u;
    let slope = concave.slope_before(before).max(f64::EPSILON);
    let corner = (before + (level - concave.at(before)) / slope).clamp(before, end);
    let chord = |from: f64, to: f64| (concave.at(to) - concave.at(from)) / (to - from);
    let (once, twice) = ((before - LN_2).max(0.0), (before - 2.0 * LN_2).max(0.0));
    let is_straight =
        once <= twice || before <= once || chord(twice, once) - chord(once, before) <= STRAIGHT;
    let is_apart = end - before > APART && is_straight;
    over_octave(end).into_iter().chain(over_octave(corner).filter(|_| is_apart)).reduce(f64::max)
}

/// (2.11) The declared limit nearest to a measured ceiling, if within 5 %.
#[must_use]
pub fn name_cap(
    level_iops: f64,
    block_bytes: Option<f64>,
    caps: &[DeclaredCap],
) -> Option<NamedCap> {
    caps.iter()
        .filter_map(|cap| {
            let iops = match cap.limit {
                Limit::Iops(iops) => iops,
                Limit::MibPerS(mib) => mib * MIB / block_bytes?,
            };
            let distance = level_iops / iops - 1.0;
            Some(NamedCap { name: cap.name.clone(), iops, distance })
        })
        .filter(|cap| (level_iops / cap.iops).ln().abs() <= NAMED_WITHIN)
        .min_by(|a, b| score(level_iops, a).total_cmp(&score(level_iops, b)))
}

fn score(level_iops: f64, cap: &NamedCap) -> f64 {
    (level_iops / cap.iops).ln().abs()
}
