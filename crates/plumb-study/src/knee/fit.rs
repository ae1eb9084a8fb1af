//! The concave fit: ln X on ln N, robust against single settings.

use super::Setting;
use super::fall::Fall;
use super::rough::Doubt;
use super::settings::Spread;
use crate::stats::describe::{MAD_TO_SD, absolute_deviation, median};
use crate::stats::distribution::{t_95, t_quantile};
use crate::stats::line::Line;
use crate::stats::nonnegative::{self, dot};

/// The fit as it is reported.
#[derive(Debug, Clone, PartialEq)]
pub struct ConcaveFit {
    /// Fitted ln X of each setting.
    pub ln_x: Vec<f64>,
    /// s₀, held fixed while weights are found.
    pub scale: f64,
    /// σ of ln X about the fit.
    pub sigma: f64,
    /// SD of ln X that is reckoned with: σ, or what is assumed where that is not known.
    pub noise: f64,
    /// Its degrees of freedom, from residuals and repetitions.
    pub freedom: f64,
    /// Whether residuals and repetitions tell the noise.
    pub is_noise_known: bool,
    /// (o, change of elasticity) of each corner.
    pub corners: Vec<(u64, f64)>,
    /// Elasticity behind the last setting.
    pub end_slope: f64,
}

/// `a + s·u + Σ d_j·min(u, u_j)`, d_j ≥ 0.
pub(super) struct Concave {
    intercept: f64,
    slope: f64,
    /// (u_j, d_j) with d_j > 0, ascending.
    corners: Vec<(f64, f64)>,
    fitted: Vec<f64>,
    corner_settings: Vec<u64>,
    /// What lies behind a step down.
    fall: Option<Fall>,
    pub(super) scale: f64,
    pub(super) sigma: f64,
    /// Degrees of freedom that residuals and repetitions leave for the noise.
    freedom: f64,
    /// SD that is assumed where that is too few.
    assumed: f64,
}

/// Rounds of weights.
const ROUNDS: usize = 8;
/// Residuals beyond this many scales get no weight.
const CUT_OFF: f64 = 5.0;
/// A setting is no outlier where chance alone, from as few residuals as there are, puts one so far off this often or more.
const BY_CHANCE: f64 = 0.001;
/// No setting this near the fit is an outlier, in ln X.
const OUTLIER_LEAST: f64 = 0.03;
/// Settings that are taken for outliers at most.
const OUTLIERS_MOST: usize = 32;
/// Corners that are looked for at most: the work grows with the square of their number.
const KNOTS_MOST: usize = 192;
/// The smallest scale, in ln X.
const SCALE_LEAST: f64 = 0.002;
/// How many times further off than by least squares those that stay in a robust fit may be.
const LOST: f64 = 2.0;
/// Degrees of freedom up to which the noise is not known: pieces of a curve come near to so few settings whatever it is
/// (docs/decisions/0227-noise-that-a-curve-hides.md).
const UNKNOWN_TO: f64 = 2.0;
/// Corners from which on the noise is known to be small although no setting is left to tell it: that so many settings bend a curve
/// downwards, every one of them, is not chance (docs/decisions/0320-curves-without-noise.md).
const CORNERS_KNOWN: usize = 10;
/// SD between runs that is assumed where nothing tells it (6.2).
pub(super) const NOISE_ASSUMED: f64 = 0.015;
/// The factor of an error that is known.
const NORMAL_95: f64 = 1.96;

impl Concave {
    /// Fits the settings that count and marks those that lie off the curve.
    pub(super) fn through(settings: &mut [Setting], repetition_error: f64, doubt: &Doubt) -> Self {
        let base: Vec<f64> = settings
            .iter()
            .map(|setting| if setting.excluded { 0.0 } else { setting.runs.len() as f64 })
            .collect();
        let mut base = base;
        let lone = culprits(settings, &base, 1, doubt);
        let step = Fall::find(settings, &base);
        // One setting or one step, whichever explains more; two settings where neither does. A setting behind a step is
        // off because of it (docs/decisions/0265-settings-next-to-the-last.md).
        let explains = |lone: &[usize], left: f64| {
            step.is_none_or(|(fall, other)| left <= other && lone.iter().all(|i| *i < fall.at))
        };
        let (off, fall) = match (lone, step) {
            (Some((lone, left)), _) if explains(&lone, left) => (lone, None),
            (_, Some((fall, _))) => (Vec::new(), Some(fall)),
            _ => {
                (culprits(settings, &base, 2, doubt).map_or_else(Vec::new, |(pair, _)| pair), None)
            }
        };
        for index in off {
            base[index] = 0.0;
            settings[index].off_curve = true;
        }
        if let Some(fall) = fall {
            base[fall.at..].fill(0.0);
        }
        let first = Self::weighted(settings, &base);
        let mut scale = first.spread(settings, &base).max(SCALE_LEAST).max(repetition_error);
        // With few settings for its pieces a fit comes nearer to them than the truth does.
        let count = base.iter().filter(|weight| **weight > 0.0).count() as f64;
        let pieces = first.corners.len() as f64 + 2.0;
        let freedom = (count / (count - pieces).max(1.0)).sqrt().min(2.0);
        let limit = f64::max(CUT_OFF * scale * freedom, OUTLIER_LEAST);
        let most = (settings.len() / 4).min(OUTLIERS_MOST);
        let mut fit = Self::robust(settings, &base, scale);
        let mut taken = Vec::new();
        // One at a time, the worst first: a setting far off bends the curve away from its neighbours,
        // which lie on it again once that one is gone.
        for round in 0..=most {
            let residuals = fit.residuals(settings);
            let worst = (0..settings.len())
                .filter(|index| base[*index] > 0.0)
                .max_by(|a, b| residuals[*a].abs().total_cmp(&residuals[*b].abs()))
                .filter(|index| residuals[*index].abs() > limit && round < most);
            let Some(worst) = worst else { break };
            taken.push((worst, base[worst]));
            base[worst] = 0.0;
            settings[worst].off_curve = true;
            fit = Self::robust(settings, &base, scale);
        }
        // A scale from few residuals may be narrow by chance: what the rest scatters by has the last word
        // (docs/decisions/0171-noise-from-few-runs.md).
        let mut as_noise = Vec::new();
        fit = fit.or_plain(settings, &base);
        while let Some((place, reach)) = fit.nearest(settings, &base, &taken) {
            let (index, weight) = taken[place];
            let off = (settings[index].ln_x - fit.fitted[index]).abs();
            let rough = doubt.least(settings, &base, settings[index].runs.len());
            if off > reach.max(rough) {
                break;
            }
            if off > reach {
                as_noise.push(index);
            }
            taken.remove(place);
            base[index] = weight;
            settings[index].off_curve = false;
            fit = match as_noise.is_empty() {
                true => Self::robust(settings, &base, scale).or_plain(settings, &base),
                false => Self::weighted(settings, &base),
            };
        }
        // What is taken for noise counts in full. How far off it is can be told once all that stays is in the fit
        // (docs/decisions/0342-what-few-settings-tell-of-noise.md).
        let residuals = fit.residuals(settings);
        let most = as_noise.iter().map(|index| residuals[*index].abs()).fold(0.0, f64::max);
        scale = scale.max(most / CUT_OFF * 2.0);
        if let Some(fall) = fall {
            fit.fall = Some(fall.beside(&fit));
            fit.fitted = settings.iter().map(|setting| fit.at(setting.u)).collect();
        }
        fit.scale = scale;
        fit.assumed = doubt.others.map_or(0.0, |spread| spread.deviation).max(NOISE_ASSUMED);
        fit.sigma = fit.deviation(settings).max(scale);
        let counted = settings.iter().filter(|setting| setting.counts());
        let repeated: usize = counted.map(|setting| setting.runs.len() - 1).sum();
        fit.freedom = fit.left(settings).max(0.0) + repeated as f64;
        fit
    }

    /// Whether residuals and repetitions tell the noise.
    pub(super) fn is_noise_known(&self) -> bool {
        self.freedom > UNKNOWN_TO || self.corners.len() >= CORNERS_KNOWN
    }

    /// SD of ln X that is reckoned with.
    pub(super) fn noise(&self) -> f64 {
        if self.is_noise_known() { self.sigma } else { self.sigma.max(self.assumed) }
    }

    /// What an error is multiplied by: Student's factor over the normal one where the noise is not known.
    pub(super) fn caution(&self) -> f64 {
        if self.is_noise_known() { 1.0 } else { t_95(self.freedom.max(1.0)) / NORMAL_95 }
    }

    /// Which of these settings, left out of the fit, lies nearest to it, and how far off chance puts one of those that are in it
    /// ([`BY_CHANCE`]).
    fn nearest(
        &self,
        settings: &[Setting],
        base: &[f64],
        taken: &[(usize, f64)],
    ) -> Option<(usize, f64)> {
        let residuals = self.residuals(settings);
        let off = |place: &usize| residuals[taken[*place].0].abs();
        let place = (0..taken.len()).min_by(|a, b| off(a).total_cmp(&off(b)))?;
        let inside: Vec<f64> = counted(base).into_iter().map(|index| residuals[index]).collect();
        let freedom = (inside.len() as f64 - self.corners.len() as f64 - 2.0).max(1.0);
        let reach = t_quantile(1.0 - BY_CHANCE / 2.0, freedom);
        Some((place, reach * (dot(&inside, &inside) / freedom).sqrt()))
    }

    /// What the fit leaves of the settings that count; `None` where its pieces take all of them.
    pub(super) fn left_over(&self, settings: &[Setting]) -> Option<Spread> {
        let freedom = self.left(settings);
        (freedom > 0.0).then(|| Spread { deviation: self.deviation(settings), freedom })
    }

    /// A robust SD of the residuals.
    fn spread(&self, settings: &[Setting], base: &[f64]) -> f64 {
        let residuals = self.residuals(settings);
        let counted: Vec<f64> =
            residuals.iter().zip(base).filter(|(_, w)| **w > 0.0).map(|(r, _)| *r).collect();
        MAD_TO_SD * absolute_deviation(&counted, median(&counted))
    }

    /// Eight rounds of bisquare weights about a scale that stays.
    fn robust(settings: &[Setting], base: &[f64], scale: f64) -> Self {
        let mut fit = Self::weighted(settings, base);
        for _ in 0..ROUNDS {
            let weights: Vec<f64> = fit
                .residuals(settings)
                .iter()
                .zip(base)
                .map(|(residual, base)| base * bisquare(residual / (CUT_OFF * scale)))
                .collect();
            // Where every setting is far off there is no curve to be found: the residuals say so.
            if weights.iter().filter(|weight| **weight > 0.0).count() < super::FEWEST {
                return fit;
            }
            fit = Self::weighted(settings, &weights);
        }
        fit
    }

    /// This robust fit of the settings with weight, or that of least squares where this one has lost them: a scale that is far
    /// too small leaves the rest of the weights to a few settings, and the fit goes anywhere between and beyond them.
    fn or_plain(self, settings: &[Setting], base: &[f64]) -> Self {
        let plain = Self::weighted(settings, base);
        let squares = |fit: &Self| -> f64 {
            let residuals = fit.residuals(settings);
            counted(base).into_iter().map(|index| residuals[index].powi(2)).sum()
        };
        if squares(&self) > LOST.powi(2) * squares(&plain) { plain } else { self }
    }

    pub(super) fn weighted(settings: &[Setting], weights: &[f64]) -> Self {
        let roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
        let column = |value: &dyn Fn(f64) -> f64| -> Vec<f64> {
            settings.iter().zip(&roots).map(|(setting, root)| value(setting.u) * root).collect()
        };
        let free = orthonormal(&[column(&|_| 1.0), column(&|u| u)]);
        // Corners stand where something was measured, but for the ends.
        let last = settings.len() - 1;
        let knots = thinned((1..last).filter(|index| weights[*index] > 0.0).collect(), settings);
        let hinges: Vec<Vec<f64>> = knots
            .iter()
            .map(|knot| {
                let corner = settings[*knot].u;
                without(column(&|u| u.min(corner)), &free)
            })
            .collect();
        let target: Vec<f64> =
            settings.iter().zip(&roots).map(|(setting, root)| setting.ln_x * root).collect();
        let found = nonnegative::solve(&hinges, &without(target, &free));
        let bent: Vec<(usize, f64)> = knots
            .iter()
            .zip(found)
            .filter(|(_, change)| *change > 1e-12)
            .map(|(knot, change)| (*knot, change))
            .collect();
        let corners: Vec<(f64, f64)> =
            bent.iter().map(|(knot, change)| (settings[*knot].u, *change)).collect();
        let corner_settings = bent.iter().map(|(knot, _)| settings[*knot].o).collect();
        let bend = |u: f64| corners.iter().map(|(corner, d)| d * u.min(*corner)).sum::<f64>();
        let straight: Vec<(f64, f64)> =
            settings.iter().map(|s| (s.u, s.ln_x - bend(s.u))).collect();
        let (intercept, slope) = Line::weighted(&straight, weights);
        let fitted = settings.iter().map(|s| intercept + slope * s.u + bend(s.u)).collect();
        Self {
            intercept,
            slope,
            corners,
            fitted,
            corner_settings,
            fall: None,
            scale: 0.0,
            sigma: 0.0,
            freedom: 0.0,
            assumed: NOISE_ASSUMED,
        }
    }

    /// Fitted ln X.
    pub(super) fn at(&self, u: f64) -> f64 {
        if let Some(behind) = self.fall.and_then(|fall| fall.at_or_before(u)) {
            return behind;
        }
        self.intercept
            + self.slope * u
            + self.corners.iter().map(|(corner, d)| d * u.min(*corner)).sum::<f64>()
    }

    /// Elasticity just behind `u`.
    pub(super) fn slope_after(&self, u: f64) -> f64 {
        if let Some(behind) = self.fall.and_then(|fall| fall.slope_after(u)) {
            return behind;
        }
        self.slope
            + self.corners.iter().filter(|(c, _)| *c > u + 1e-12).map(|(_, d)| d).sum::<f64>()
    }

    /// Elasticity just before `u`; that of the first piece at the first setting.
    pub(super) fn slope_before(&self, u: f64) -> f64 {
        self.slope_after(u - 2e-12)
    }

    /// Where a curve that bends gradually about its corner at `u` crosses `slope`: between the middles of the
    /// pieces on both sides, in a straight line. `None` where the piece before is steep or the slope changes much,
    /// a real corner, and where the curve rises little from its beginning.
    pub(super) fn gradual_crossing(&self, u: f64, last: f64, slope: f64) -> Option<f64> {
        let after = self.slope_after(u);
        let change = self.corners.iter().find(|(c, _)| (c - u).abs() <= 1e-12)?.1;
        let before = after + change;
        let rises = self.slope_after(0.0) >= 3.0 * slope;
        if !(slope..=2.0 * slope).contains(&before) || after >= slope || change > slope || !rises {
            return None;
        }
        let corners = || self.corners.iter().map(|(corner, _)| *corner);
        let start = corners().filter(|c| *c < u - 1e-12).fold(0.0, f64::max);
        let end = corners().filter(|c| *c > u + 1e-12).fold(last, f64::min);
        let (low, high) = ((start + u) / 2.0, (u + end) / 2.0);
        Some(low + (before - slope) / (before - after) * (high - low))
    }

    /// Whether throughput falls by a step.
    pub(super) fn has_fall(&self) -> bool {
        self.fall.is_some()
    }

    fn residuals(&self, settings: &[Setting]) -> Vec<f64> {
        settings.iter().zip(&self.fitted).map(|(setting, fitted)| setting.ln_x - fitted).collect()
    }

    /// Residual SD of what counts, corrected for the fitted pieces.
    fn deviation(&self, settings: &[Setting]) -> f64 {
        let inliers: Vec<f64> = self
            .residuals(settings)
            .into_iter()
            .zip(settings)
            .filter(|(_, setting)| setting.counts())
            .map(|(residual, _)| residual)
            .collect();
        (dot(&inliers, &inliers) / self.left(settings).max(1.0)).sqrt()
    }

    /// Settings that count beyond those that the fitted pieces take.
    fn left(&self, settings: &[Setting]) -> f64 {
        let behind = if self.fall.is_some() { 2.0 } else { 0.0 };
        let pieces = self.corners.len() as f64 + 2.0 + behind;
        settings.iter().filter(|setting| setting.counts()).count() as f64 - pieces
    }

    pub(super) fn into_fit(self) -> ConcaveFit {
        let changes = self.corners.iter().map(|(_, change)| *change);
        let (noise, is_noise_known) = (self.noise(), self.is_noise_known());
        ConcaveFit {
            corners: self.corner_settings.iter().copied().zip(changes).collect(),
            end_slope: self.slope_after(f64::INFINITY),
            ln_x: self.fitted,
            scale: self.scale,
            sigma: self.sigma,
            noise,
            freedom: self.freedom,
            is_noise_known,
        }
    }
}

/// Root mean square of the residuals, in ln X, from which on a fit is bad enough to look for a culprit.
const BAD_FIT: f64 = 0.02;
/// How many times better the fit is without the culprit.
const CULPRIT: f64 = 4.0;

/// No throughput rises by more than its load does, but for noise.
const STEEPEST: f64 = 1.1;

/// What a pair may leave: of noise alone two settings can be taken out so that the rest looks like a curve.
const PAIR_LEFT: f64 = 0.025;

/// Indices of the settings with weight.
pub(super) fn counted(base: &[f64]) -> Vec<usize> {
    (0..base.len()).filter(|index| base[*index] > 0.0).collect()
}

/// The one or two settings without which a bad fit is a good one, and the root mean square of what is left of the
/// residuals. Where settings are few, a setting far off drags the curve with it, and no residual tells it from its
/// neighbours. At an end it is the only one and above the others: below them a curve may bend as it likes.
fn culprits(
    settings: &[Setting],
    base: &[f64],
    many: usize,
    doubt: &Doubt,
) -> Option<(Vec<usize>, f64)> {
    let counted = counted(base);
    // Two of them need more others to stand off.
    if !(if many == 1 { 5..=24 } else { 9..=24 }).contains(&counted.len()) {
        return None;
    }
    let error = |base: &[f64]| {
        let residuals = Concave::weighted(settings, base).residuals(settings);
        let squares: f64 = counted
            .iter()
            .map(|i| f64::from(u8::from(base[*i] > 0.0)) * residuals[*i].powi(2))
            .sum();
        ((squares / counted.len() as f64).sqrt(), residuals)
    };
    let (all, _) = error(base);
    if all < BAD_FIT {
        return None;
    }
    let without = |left_out: Vec<usize>| {
        let mut rest = base.to_vec();
        for index in &left_out {
            rest[*index] = 0.0;
        }
        let (left, residuals) = error(&rest);
        let is_end = |index: usize| index == counted[0] || index == counted[counted.len() - 1];
        let off = left_out.iter().map(|index| match residuals[*index] {
            off if is_end(*index) => off,
            off => off.abs(),
        });
        let nearest = off.fold(f64::INFINITY, f64::min);
        (left_out, left, nearest)
    };
    let inner = &counted[1..counted.len() - 1];
    let sets: Vec<Vec<usize>> = match many {
        1 => counted.iter().map(|index| vec![*index]).collect(),
        _ => {
            let pairs = |a: usize| inner.iter().filter(move |b| **b > a).map(move |b| vec![a, *b]);
            inner.iter().flat_map(|a| pairs(*a)).collect()
        }
    };
    let is_culprit = |(off, left, nearest): &(Vec<usize>, f64, f64)| {
        let is_good = left * CULPRIT < all && (many == 1 || *left < PAIR_LEFT);
        is_good && *nearest > f64::max(CUT_OFF * left, OUTLIER_LEAST) && {
            let mut rest = base.to_vec();
            off.iter().for_each(|index| rest[*index] = 0.0);
            let runs = off.iter().map(|index| settings[*index].runs.len()).min().unwrap_or(1);
            *nearest > doubt.least(settings, &rest, runs)
        }
    };
    let best = sets.into_iter().map(without).min_by(|a, b| a.1.total_cmp(&b.1));
    let (left_out, left, _) = best.filter(is_culprit)?;
    // Beside an end a setting below the others makes the end stand above what then is a bend that curves hardly have: a
    // fall to the last setting that is left, or a rise by more than the load from the first one.
    let fit = || {
        let mut rest = base.to_vec();
        rest[left_out[0]] = 0.0;
        Concave::weighted(settings, &rest)
    };
    let beside = match left_out[..] {
        [index] if index == counted[0] => {
            Some(inner[0]).filter(|i| fit().slope_after(settings[*i].u) > STEEPEST)
        }
        [index] if index == counted[counted.len() - 1] => inner.last().copied().filter(|i| {
            let fit = fit();
            let top = inner.iter().map(|i| fit.fitted[*i]).fold(f64::NEG_INFINITY, f64::max);
            top - fit.fitted[*i] > OUTLIER_LEAST
        }),
        _ => None,
    };
    let other = beside.map(|index| without(vec![index])).filter(is_culprit);
    Some(other.map_or((left_out, left), |(beside, left, _)| (beside, left)))
}

/// Of more places than [`KNOTS_MOST`] so many, as evenly as they can be in ln N.
fn thinned(places: Vec<usize>, settings: &[Setting]) -> Vec<usize> {
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return places };
    if places.len() <= KNOTS_MOST {
        return places;
    }
    let (start, end) = (settings[*first].u, settings[*last].u);
    let step = (end - start) / (KNOTS_MOST - 1) as f64;
    let mut due = start;
    let mut kept = Vec::with_capacity(KNOTS_MOST);
    for place in places {
        let u = settings[place].u;
        if u >= due - 1e-12 {
            kept.push(place);
            due = u + step;
        }
    }
    kept
}

/// Tukey's weight: 1 in the middle, 0 from 1 on.
fn bisquare(distance: f64) -> f64 {
    if distance.abs() < 1.0 { (1.0 - distance.powi(2)).powi(2) } else { 0.0 }
}

/// Gram–Schmidt, twice for accuracy.
pub(super) fn orthonormal(columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for column in columns {
        let rest = without(column.clone(), &basis);
        let norm = dot(&rest, &rest).sqrt();
        if norm > 1e-12 {
            basis.push(rest.iter().map(|value| value / norm).collect());
        }
    }
    basis
}

/// The part of a column that no basis vector explains.
pub(super) fn without(mut column: Vec<f64>, basis: &[Vec<f64>]) -> Vec<f64> {
    for _ in 0..2 {
        for vector in basis {
            let share = dot(&column, vector);
            for (value, direction) in column.iter_mut().zip(vector) {
                *value -= share * direction;
            }
        }
    }
    column
}
