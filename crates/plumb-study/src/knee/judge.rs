//! The verdict on a curve.

use std::collections::BTreeSet;

use super::fit::Concave;
use super::rough::Doubt;
use super::{Knee, Options, Setting, TAU, cap, ceiling, marks};
use crate::stats::line::{spread, theil_sen};

/// Whether there is a knee in the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The plateau is in the range.
    Knee,
    /// Throughput still rises at the end: sweep further.
    Extend,
    /// It does not rise: the sweep began above the knee.
    Flat,
    /// The data cannot tell.
    Unclear,
}

impl Verdict {
    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Knee => "knee",
            Self::Extend => "extend",
            Self::Flat => "flat",
            Self::Unclear => "unclear",
        }
    }
}

/// What else a curve shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// Throughput stays the same while the load grows: a ceiling.
    Capped,
    /// Throughput falls again towards the end.
    Drop,
    /// Some settings lie off the curve or do not reproduce.
    Outlier,
}

impl Flag {
    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Capped => "capped",
            Self::Drop => "drop",
            Self::Outlier => "outlier",
        }
    }
}

/// Noise above which no figure of it says more: what lies so far apart is no curve with noise about it.
const NOISE_TOLD: f64 = 0.5;

pub(super) fn judge(knee: &mut Knee, concave: &Concave, doubt: &Doubt, options: &Options) {
    let settings = &knee.settings;
    let sigma = concave.sigma;
    let (elasticity, error) = end_elasticity(settings, concave.noise());
    let error = error * concave.caution();
    let last = settings.len() - 1;
    let fitted: Vec<f64> = settings.iter().map(|setting| concave.at(setting.u)).collect();
    let top = fitted.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let gain = top - fitted[0];
    let plateau = plateau(settings, concave);
    let ceiling = plateau.and_then(|plateau| ceiling::find(settings, concave, plateau));
    // The fit's own is as good where it is a neighbour.
    let apart = |first: &usize| plateau.is_some_and(|plateau| plateau.abs_diff(*first) > 1);
    let plateau = ceiling.map(|ceiling| ceiling.first).filter(apart).or(plateau);
    // What lies beyond the plateau rises by less than matters: it does not make a knee of a flat range.
    let gain_to_plateau = fitted[plateau.unwrap_or(last)] - fitted[0];

    let counted = settings.iter().filter(|setting| setting.counts()).count();
    let (verdict, reason) = if counted < super::FEWEST {
        let reason = format!(
            "{counted} of {} settings can be relied on, too few for a curve: repeat the others",
            settings.len()
        );
        (Verdict::Unclear, reason)
    } else if sigma > super::NOISE_MOST {
        let noise = match sigma > NOISE_TOLD {
            true => format!("more than {:.0} %", NOISE_TOLD * 100.0),
            false => format!("{:.1} %", sigma * 100.0),
        };
        (Verdict::Unclear, format!("noise of {noise} about the fit, above 8 %"))
    } else if sigma > 0.03 && sigma > gain / 4.0 {
        let reason = format!(
            "noise of {:.1} % hides a gain of {:.1} %",
            sigma * 100.0,
            gain.exp_m1() * 100.0
        );
        (Verdict::Unclear, reason)
    } else if plateau == Some(0) || gain_to_plateau < f64::max(2.0 * sigma, 0.02).max(TAU / 2.0) {
        match settings.iter().find(|setting| setting.exceeds(top + f64::max(2.0 * sigma, 0.03))) {
            None => (Verdict::Flat, flat(settings, gain, plateau)),
            Some(setting) => {
                let reason = format!(
                    "without o{} throughput would not rise, but each of its runs gave more, and they do not \
                     agree: repeat it",
                    setting.o
                );
                (Verdict::Unclear, reason)
            }
        }
    } else if elasticity > TAU && elasticity - error > 0.8 * TAU {
        let reason = format!(
            "still rising at o{}: 10 % more outstanding brings {:.1} % (elasticity {elasticity:.2} \
             ± {error:.2})",
            settings[last].o,
            (1.1_f64.powf(elasticity) - 1.0) * 100.0
        );
        (Verdict::Extend, reason)
    } else {
        match plateau {
            Some(plateau) if !too_near(settings, plateau) => {
                let reason = format!(
                    "beyond o{} more outstanding brings less than {TAU} of its share",
                    settings[plateau].o
                );
                (Verdict::Knee, reason)
            }
            found => {
                let at = settings[found.unwrap_or(last)].o;
                let reason = format!(
                    "the plateau would begin at o{at}, too near the end of the range, o{}, to be seen",
                    settings[last].o
                );
                (Verdict::Extend, reason)
            }
        }
    };

    let reason = match left_out(settings) {
        Some(left_out) if verdict != Verdict::Unclear => format!("{reason}; {left_out}"),
        _ => reason,
    };
    let mut flags = Vec::new();
    let chosen = plateau.unwrap_or(last);
    knee.cap = cap::look(settings, concave, chosen, ceiling);
    // A curve that is level near a declared limit needs less of an approach to be held by it, and a
    // sweep that began at the limit shows none.
    let named = cap::name_cap(knee.cap.level_iops, options.block_bytes, &options.caps)
        .filter(|_| knee.cap.is_level && matches!(verdict, Verdict::Knee | Verdict::Flat));
    let is_steep = knee.cap.is_steep || (named.is_some() && knee.cap.is_rather_steep());
    let is_capped = knee.cap.is_level && is_steep;
    if is_capped && (verdict == Verdict::Knee || (verdict == Verdict::Flat && named.is_some())) {
        flags.push(Flag::Capped);
        knee.named_cap = named;
    }
    // What falls may be the last two.
    let counting: Vec<usize> = (0..=last).filter(|index| settings[*index].counts()).collect();
    let mut base = vec![0.0; settings.len()];
    counting[..counting.len().saturating_sub(2)].iter().for_each(|index| base[*index] = 1.0);
    let rough = doubt.of_curve(settings, &base).filter(|_| !concave.has_fall()).unwrap_or(0.0);
    if verdict == Verdict::Knee
        && top - fitted[last]
            > (0.03_f64).max(3.0 * sigma).max(2.0 * rough).max(3.0 * doubt.elsewhere())
    {
        flags.push(Flag::Drop);
    }
    if settings.iter().any(Setting::is_outlier) {
        flags.push(Flag::Outlier);
    }
    let first_o = settings[0].o;
    let last_o = settings[last].o;
    knee.next_range = match verdict {
        Verdict::Extend => Some((last_o + 1, last_o * 2)),
        Verdict::Flat if first_o > 1 => Some(((first_o / 4).max(1), first_o - 1)),
        _ => None,
    };
    if verdict != Verdict::Unclear {
        let marks = marks::marks(settings, concave, chosen, knee.outstanding_per_o, options);
        knee.marks = Some(marks);
    }
    knee.repeat = repeats(settings, &fitted, chosen, sigma);
    if !concave.is_noise_known() {
        knee.notes.push(format!(
            "noise is not known: a curve comes near to {counted} settings with so few repetitions whatever their noise is; \
             an SD of {:.1} % between runs is taken: repeat settings to know it",
            concave.noise() * 100.0
        ));
    }
    knee.flags = flags;
    knee.verdict = verdict;
    knee.reason = reason;
    knee.end_elasticity = Some((elasticity, error));
}

/// Which settings the verdict leaves out as they lie off the curve.
fn left_out(settings: &[Setting]) -> Option<String> {
    let off = settings.iter().filter(|setting| setting.off_curve);
    let off: Vec<String> = off.map(|setting| format!("o{}", setting.o)).collect();
    (!off.is_empty())
        .then(|| format!("left out, as off the curve: {}; to be repeated", off.join(", ")))
}

fn flat(settings: &[Setting], gain: f64, plateau: Option<usize>) -> String {
    let advice = if settings[0].o > 1 { "start with fewer" } else { "one is enough" };
    format!(
        "throughput gains {:.1} % over the range and no more from o{} on: {advice}",
        gain.exp_m1() * 100.0,
        settings[plateau.unwrap_or(0)].o
    )
}

/// (3.2, 3) Theil–Sen over what counts with o ≥ o_max/1.6, and its standard error.
///
/// Where settings are so sparse that four of them reach further down, the slope between the last and the
/// one next below o_max/1.45 must not be less (docs/decisions/0034-sparse-settings.md), nor that of those within o_max/1.6
/// (docs/decisions/0356-the-end-of-a-search.md).
fn end_elasticity(settings: &[Setting], sigma: f64) -> (f64, f64) {
    let inliers: Vec<&Setting> = settings.iter().filter(|setting| setting.counts()).collect();
    let Some(last) = inliers.last() else { return (f64::NAN, f64::NAN) };
    let o_max = last.o as f64;
    let least = if inliers.len() < 8 { 3 } else { 4 };
    let inside = inliers.iter().filter(|setting| setting.o as f64 >= o_max / 1.6).count();
    let tail = &inliers[inliers.len().saturating_sub(inside.max(least))..];
    let slope = |settings: &[&Setting]| {
        let points: Vec<(f64, f64)> =
            settings.iter().map(|setting| (setting.u, setting.ln_x)).collect();
        let us: Vec<f64> = points.iter().map(|(u, _)| *u).collect();
        (theil_sen(&points), sigma / spread(&us).sqrt())
    };
    let found = slope(tail);
    let near = (2..least).contains(&inside).then(|| slope(&inliers[inliers.len() - inside..]));
    let chord = inliers.iter().rev().find(|setting| setting.o as f64 <= o_max / 1.45).map(|from| {
        let run = last.u - from.u;
        ((last.ln_x - from.ln_x) / run, sigma * std::f64::consts::SQRT_2 / run)
    });
    let chord = chord.filter(|_| inside < least);
    let less = |a: (f64, f64), b: (f64, f64)| if b.0 < a.0 { b } else { a };
    chord.into_iter().chain(near).fold(found, less)
}

/// Where a curve without a corner falls below τ, tested there or not.
pub(super) fn crossing(settings: &[Setting], concave: &Concave) -> Option<f64> {
    let last = settings.len() - 1;
    let falls =
        |index: &usize| settings[*index].counts() && concave.slope_after(settings[*index].u) < TAU;
    let first = (0..last).find(falls)?;
    concave.gradual_crossing(settings[first].u, settings[last].u, TAU)
}

/// (3.2, 4) P, snapped to what its neighbours measured; `None` when the fit never flattens.
fn plateau(settings: &[Setting], concave: &Concave) -> Option<usize> {
    let last = settings.len() - 1;
    let first = (0..last)
        .find(|index| settings[*index].counts() && concave.slope_after(settings[*index].u) < TAU)?;
    // Without a corner single settings say little: the pieces of the fit do (docs/decisions/0040-gradual-bends.md).
    if let Some(u) = crossing(settings, concave) {
        let apart = |index: &usize| (settings[*index].u - u).abs();
        let counted = (0..last).filter(|index| settings[*index].counts());
        return counted.min_by(|a, b| apart(a).total_cmp(&apart(b)));
    }
    let holds = |index: usize| {
        let here = &settings[index];
        settings[index + 1..]
            .iter()
            .filter(|later| later.counts())
            .all(|later| later.ln_x - here.ln_x <= TAU * (later.u - here.u))
    };
    let candidates = first.saturating_sub(1)..=(first + 1).min(last);
    let snapped = candidates.into_iter().find(|index| settings[*index].counts() && holds(*index));
    Some(snapped.unwrap_or(first))
}

/// (3.2, 5) Whether too little was measured beyond the plateau.
fn too_near(settings: &[Setting], plateau: usize) -> bool {
    let beyond = settings[plateau + 1..].iter().filter(|setting| setting.counts()).count();
    let o_max = settings[settings.len() - 1].o as f64;
    beyond == 0 || (o_max < 1.25 * settings[plateau].o as f64 && beyond < 4)
}

/// (3.2, 8) The plateau, its neighbours, what lies off the curve, and what lies far from it.
fn repeats(settings: &[Setting], fitted: &[f64], plateau: usize, sigma: f64) -> Vec<u64> {
    let near = plateau.saturating_sub(1)..=plateau + 1;
    let mut wanted = BTreeSet::new();
    for (index, setting) in settings.iter().enumerate() {
        let is_far = (setting.ln_x - fitted[index]).abs() > 2.0 * sigma;
        if setting.is_outlier() || (setting.runs.len() < 3 && (near.contains(&index) || is_far)) {
            wanted.insert(setting.o);
        }
    }
    wanted.into_iter().collect()
}
