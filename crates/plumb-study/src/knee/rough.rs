//! What noise a curve of few settings may have that its concave fit does not show
//! (docs/decisions/0319-few-settings-may-be-rough.md).

use super::Setting;
use super::fit::{Concave, NOISE_ASSUMED, orthonormal, without};
use super::settings::{self, Spread};
use crate::stats::distribution::t_quantile;
use crate::stats::nonnegative::dot;

/// Degrees of freedom from which on a curve's own repetitions tell its noise.
const KNOWN_FROM: f64 = 4.0;
/// Settings up to which a curve bends with its noise.
const FEW: usize = 12;
/// Runs' SDs that a setting lies off, at least, to be taken for an outlier: by the curve's roughness.
const OFF: f64 = 3.0;
/// How often chance puts a setting as far off as is asked, at least and at most this many SDs.
const BY_CHANCE: f64 = 0.005;
const OFF_MOST: f64 = 4.0;
/// Sharpness of the bends that are tried; the last is a corner.
const SHARPNESS: [f64; 3] = [2.0, 4.0, 50.0];
/// Places between two settings at which a bend is tried.
const PLACES: usize = 4;
/// Values that a bend takes.
const PIECES: f64 = 4.0;

/// What runs of a curve differ by, as far as it can be told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Doubt {
    /// Whether the curve's own repetitions tell it.
    pub(super) is_known: bool,
    /// What runs of other curves of the same study differ by.
    pub(super) others: Option<Spread>,
}

impl Doubt {
    /// Of these settings, beside what other curves say.
    pub(super) fn of(settings: &[Setting], others: Option<Spread>) -> Self {
        let own = settings::spread_of_runs(settings);
        Self { is_known: own.is_some_and(|own| own.freedom >= KNOWN_FROM), others }
    }

    /// How far off, in ln X, a setting of so many runs has to lie from the settings with weight, which it is none of.
    pub(super) fn least(&self, settings: &[Setting], base: &[f64], runs: usize) -> f64 {
        if self.is_known || base.iter().filter(|weight| **weight > 0.0).count() > FEW {
            return 0.0;
        }
        let by_runs = self.others.map_or(0.0, |spread| {
            let off = t_quantile(1.0 - BY_CHANCE / 2.0, spread.freedom).min(OFF_MOST);
            off * spread.deviation / (runs.max(1) as f64).sqrt()
        });
        f64::max(by_runs, OFF * self.of_curve(settings, base).unwrap_or(0.0))
    }

    /// What other curves' runs differ by, where this one's repetitions do not tell it.
    pub(super) fn elsewhere(&self) -> f64 {
        self.others.filter(|_| !self.is_known).map_or(0.0, |spread| spread.deviation)
    }

    /// SD about a curve of one bend, where the settings are few and their repetitions do not tell it.
    pub(super) fn of_curve(&self, settings: &[Setting], base: &[f64]) -> Option<f64> {
        if self.is_known {
            return None;
        }
        let points: Vec<(f64, f64)> = settings
            .iter()
            .zip(base)
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(setting, _)| (setting.u, setting.ln_x))
            .collect();
        (5..=FEW).contains(&points.len()).then(|| about_a_bend(&points))
    }
}

/// Degrees of freedom that what is assumed counts for beside what is known.
pub(crate) const ASSUMED_FOR: f64 = 4.0;

/// What runs of a curve differ by where few of its settings were repeated: what a curve leaves of the settings whose runs agree and
/// what runs of other curves of the study differ by, beside what is assumed
/// (docs/decisions/0342-what-few-settings-tell-of-noise.md).
pub(super) fn of_few(settings: &[Setting], others: Option<Spread>) -> Spread {
    let mut agreeing = settings.to_vec();
    agreeing.iter_mut().for_each(|setting| setting.excluded = setting.scatters());
    let doubt = Doubt::of(&agreeing, others);
    let is_curve = agreeing.iter().filter(|setting| setting.counts()).count() >= super::FEWEST;
    let left = is_curve
        .then(|| Concave::through(&mut agreeing, 0.0, &doubt))
        .and_then(|fit| fit.left_over(&agreeing));
    let assumed = Spread { deviation: NOISE_ASSUMED, freedom: ASSUMED_FOR };
    left.into_iter().chain(others).fold(assumed, Spread::with)
}

/// SD of values about the best curve of two straight arms and one bend between them, downwards.
fn about_a_bend(points: &[(f64, f64)]) -> f64 {
    let ones = vec![1.0; points.len()];
    let us: Vec<f64> = points.iter().map(|(u, _)| *u).collect();
    let line = orthonormal(&[ones, us.clone()]);
    let target = without(points.iter().map(|(_, value)| *value).collect(), &line);
    let straight = dot(&target, &target);
    let bent = |corner: f64, sharpness: f64| {
        let bend = |u: &f64| -((sharpness * (u - corner)).exp() + 1.0).ln() / sharpness;
        let column = without(us.iter().map(bend).collect(), &line);
        let (size, along) = (dot(&column, &column), dot(&column, &target));
        if size > 1e-12 && along > 0.0 { straight - along * along / size } else { straight }
    };
    let corners = us.windows(2).flat_map(|pair| {
        (0..PLACES).map(move |place| pair[0] + (pair[1] - pair[0]) * place as f64 / PLACES as f64)
    });
    let least = corners
        .flat_map(|corner| SHARPNESS.map(|sharpness| bent(corner, sharpness)))
        .fold(straight, f64::min)
        .max(0.0);
    (least / (points.len() as f64 - PIECES).max(1.0)).sqrt()
}
