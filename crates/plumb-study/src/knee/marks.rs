//! The marks on a curve, and which of them is recommended.

use super::fit::Concave;
use super::smooth::Smooth;
use super::{Options, Setting, TAU, judge};

/// Which mark is recommended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// The plateau: all the throughput there is.
    Throughput,
    /// What gives 97 % of the throughput at balance or plateau, whichever is less.
    #[default]
    Balanced,
    /// Most throughput per latency.
    Latency,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::Balanced, Self::Latency];

    /// The word that documents and options use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Balanced => "balanced",
            Self::Latency => "latency",
        }
    }

    /// The policy of a word.
    #[must_use]
    pub fn of_keyword(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.keyword() == word)
    }
}

/// The marks of a curve, as o.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Marks {
    /// P: first setting beyond which more load brings less elasticity than τ.
    pub plateau: u64,
    /// K: where more costs as much latency as it brings throughput.
    pub balance: u64,
    /// Most throughput per latency.
    pub lean: u64,
    /// Largest setting within the latency budget; `None` without budget, or when none is.
    pub budget: Option<u64>,
    /// By policy and budget.
    pub recommended: u64,
    /// What the balanced policy keeps; `None` with another.
    pub kept: Option<Kept>,
    /// First and last setting with the plateau's throughput within noise.
    pub indifferent: (u64, u64),
    /// Where balance and recommendation would be if every o had been tested, by the fit alone: where a search has to
    /// look, and from where the balanced recommendation counts. By throughput where a search would have the plateau, twice; where
    /// nothing is searched the plateau and the recommendation.
    pub aims: (u64, u64),
}

/// The throughput that a balanced recommendation keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kept {
    /// Balance or plateau, whichever is less: among what was tested, or on the fit at every o where that was searched.
    pub from: u64,
    /// 97 % of the I/Os per second there, by the fit.
    pub iops: f64,
}

/// Balance is looked for up to this many times the plateau.
pub(crate) const WINDOW: f64 = 1.4;
/// How far below its maximum the difference may be at the balance.
pub(crate) const BALANCE_WITHIN: f64 = 0.02;
/// To what share of the lowest latency a range of latencies is normalised at least.
const LATENCY_RANGE_LEAST: f64 = 0.1;
/// Share of the throughput that the balanced recommendation keeps.
pub(crate) const KEPT: f64 = 0.97;

pub(super) fn marks(
    settings: &[Setting],
    concave: &Concave,
    plateau: usize,
    outstanding_per_o: f64,
    options: &Options,
) -> Marks {
    let balance = balance(settings, concave, plateau, outstanding_per_o);
    let lean = lean(settings);
    let aimed = (options.policy == Policy::Balanced).then(|| aims(settings, concave, plateau));
    let tested = &settings[balance.min(plateau)];
    // Which settings a search happens to test must not move the level that is to be kept.
    let (from, wanted) = aimed
        .filter(|_| options.searched)
        .map_or((tested.o, concave.at(tested.u) + KEPT.ln()), |aims| (aims.balance, aims.level));
    let chosen = match options.policy {
        Policy::Throughput => plateau,
        Policy::Latency => lean,
        Policy::Balanced => settings
            .iter()
            .position(|setting| setting.counts() && concave.at(setting.u) >= wanted)
            .unwrap_or(plateau),
    };
    let budget = options.budget_ms.and_then(|budget| {
        settings.iter().rposition(|setting| setting.counts() && setting.latency_ms <= budget)
    });
    let recommended = budget.map_or(chosen, |budget| budget.min(chosen));
    let reach = f64::max(0.01, 2.0 * concave.noise());
    let level = concave.at(settings[plateau].u);
    let alike = |setting: &&Setting| (concave.at(setting.u) - level).abs() <= reach;
    let is_sought = options.searched && options.policy == Policy::Throughput;
    let level = is_sought.then(|| Between::of(settings, concave).flattens(plateau)).flatten();
    let aims = match (aimed, level) {
        (Some(aims), _) => (aims.balance, aims.recommended),
        (None, Some(o)) => (o, o),
        (None, None) => (settings[plateau].o, settings[recommended].o),
    };
    let first = settings.iter().find(alike).map_or(settings[plateau].o, |setting| setting.o);
    let last = settings.iter().rev().find(alike).map_or(settings[plateau].o, |setting| setting.o);
    Marks {
        plateau: settings[plateau].o,
        balance: settings[balance].o,
        lean: settings[lean].o,
        budget: budget.map(|index| settings[index].o),
        recommended: settings[recommended].o,
        kept: aimed.is_some().then(|| Kept { from, iops: wanted.exp() }),
        indifferent: (first, last),
        aims,
    }
}

/// Settings that are looked at by the fit at most.
const GRID_MOST: u64 = 256;

/// Where balance and recommendation would be if every o had been tested.
#[derive(Debug, Clone, Copy)]
struct Aims {
    /// K, not beyond P.
    balance: u64,
    /// The smallest o that keeps its throughput.
    recommended: u64,
    /// ln X that is to be kept.
    level: f64,
}

/// On a curve through the fit at every o up to 1.4·P. P is where that has it where that is between tested settings: the window
/// must not depend on which of them happen to be tested, nor what lies between them on the straight lines that the fit has there
/// (docs/decisions/0321-curves-bend-between-settings.md).
fn aims(settings: &[Setting], concave: &Concave, plateau: usize) -> Aims {
    let curve = Between::of(settings, concave);
    let (first, last) = curve.ends();
    let ln_rate = |o: u64| curve.ln_rate(o);
    let between = curve.flattens(plateau);
    let between = between.filter(|o| settings.iter().all(|setting| setting.o != *o));
    let plateau = between.unwrap_or_else(|| {
        judge::crossing(settings, concave).map_or(settings[plateau].o, |u| {
            plumb_units::convert::floor_u64((first as f64 * u.exp()).round()).clamp(first, last)
        })
    });
    let end = plumb_units::convert::floor_u64(WINDOW * plateau as f64).clamp(first, last);
    let step = ((end - first) / GRID_MOST).max(1);
    let grid: Vec<u64> = (first..=end).step_by(usize::try_from(step).unwrap_or(1)).collect();
    let rate: Vec<f64> = grid.iter().map(|o| ln_rate(*o).exp()).collect();
    let latency: Vec<f64> = grid.iter().zip(&rate).map(|(o, rate)| *o as f64 / rate).collect();
    let balance = balanced(&rate, &latency, concave.noise()).map_or(plateau, |place| grid[place]);
    let balance = balance.min(plateau);
    let level = ln_rate(balance) + KEPT.ln();
    let recommended = grid.iter().copied().find(|o| ln_rate(*o) >= level).unwrap_or(balance);
    Aims { balance, recommended, level }
}

/// The curve between its settings.
struct Between<'a> {
    settings: &'a [Setting],
    concave: &'a Concave,
    smooth: Option<Smooth>,
}

impl<'a> Between<'a> {
    fn of(settings: &'a [Setting], concave: &'a Concave) -> Self {
        Self { settings, concave, smooth: Smooth::through(settings, concave) }
    }

    /// The first o and the last.
    fn ends(&self) -> (u64, u64) {
        (self.settings[0].o, self.settings[self.settings.len() - 1].o)
    }

    fn ln_rate(&self, o: u64) -> f64 {
        let u = (o as f64 / self.ends().0 as f64).ln();
        self.smooth.as_ref().map_or_else(|| self.concave.at(u), |smooth| smooth.at(u))
    }

    /// Where it has the plateau, up to the setting beyond that of the fit; `None` behind a step down.
    fn flattens(&self, plateau: usize) -> Option<u64> {
        let (first, last) = self.ends();
        let end = self.settings.get(plateau + 1).map_or(last, |setting| setting.o);
        let found = || flattens(first, end, |o| self.ln_rate(o));
        self.smooth.is_some().then(found).flatten()
    }
}

/// The first o from which on 1 more brings less elasticity than τ; where o is large so many more as change it by a little.
fn flattens(first: u64, last: u64, ln_rate: impl Fn(u64) -> f64) -> Option<u64> {
    let mut o = first;
    while o < last {
        let next = o + (o / GRID_MOST).max(1);
        if ln_rate(next) - ln_rate(o) < TAU * (next as f64 / o as f64).ln() {
            return Some(o);
        }
        o = next;
    }
    None
}

/// K: the largest o whose difference of normalised throughput and latency is within 0.02 of its
/// maximum, on the fit up to 1.4·P.
fn balance(settings: &[Setting], concave: &Concave, plateau: usize, per_o: f64) -> usize {
    let limit = WINDOW * settings[plateau].o as f64;
    let inside: Vec<usize> =
        (0..settings.len()).filter(|index| settings[*index].o as f64 <= limit).collect();
    let rate = |index: usize| concave.at(settings[index].u).exp();
    let latency = |index: usize| per_o * settings[index].o as f64 / rate(index);
    let (rates, latencies): (Vec<f64>, Vec<f64>) =
        inside.iter().map(|index| (rate(*index), latency(*index))).unzip();
    balanced(&rates, &latencies, concave.noise()).map_or(plateau, |place| inside[place])
}

/// The last place at which normalised throughput less normalised latency is near its maximum. Where latency hardly rises, a
/// range of its own would make rounding and noise as much as all of the throughput: it is normalised to a tenth of the lowest
/// at least, and to twice the noise.
fn balanced(rates: &[f64], latencies: &[f64], noise: f64) -> Option<usize> {
    let normalised = |values: &[f64], least: f64| -> Vec<f64> {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let range = if high > low { high - low } else { 1.0 };
        let range = range.max(least * low);
        values.iter().map(|value| (value - low) / range).collect()
    };
    let latency = normalised(latencies, LATENCY_RANGE_LEAST.max(2.0 * noise));
    let difference: Vec<f64> =
        normalised(rates, 0.0).iter().zip(latency).map(|(x, l)| x - l).collect();
    let best = difference.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    difference.iter().rposition(|value| *value >= best - BALANCE_WITHIN)
}

/// argmax X/L of what counts [Kleinrock 1979].
fn lean(settings: &[Setting]) -> usize {
    let power = |setting: &Setting| setting.iops() / setting.latency_ms;
    (0..settings.len())
        .filter(|index| settings[*index].counts())
        .max_by(|a, b| power(&settings[*a]).total_cmp(&power(&settings[*b])))
        .unwrap_or(0)
}
