//! The difference that a comparison finds in nine of ten cases (method, 5.3).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Comparison;
use super::estimate::{Design, known, pooled, ranks};
use crate::repetitions;
use crate::stats::describe::mean;
use crate::stats::distribution::t_95;
use crate::stats::ranks::Shift;
use crate::study::random::Random;

/// Comparisons that are drawn, and the runs of a side from which on they are as a normal law has them.
const DRAWS: usize = 4000;
const MANY: usize = 12;
/// Seed of what is drawn.
const SEED: u64 = 53;

/// What a comparison finds of runs that do not differ and have a standard deviation of 1.
#[derive(Debug, Clone, Copy)]
struct Draw {
    /// The difference, and half of its interval.
    off: f64,
    reach: f64,
    /// The same by ranks, with the lower end of its interval, where they have a say.
    ranks: Option<Shift>,
    /// How far runs of another such comparison seem to differ: so much may what they showed be off.
    seen: f64,
}

type Draws = Arc<Vec<Draw>>;

/// Relative: the difference of which nine of ten are told as better or worse by such runs, for the effect is seen to be no less than δ and its interval leaves 0
/// out (6.2). How far runs differ is known by what these showed, as far as so few tell, and by no smaller an error than is taken for them. `None` of single runs.
#[must_use]
pub fn detectable(found: &Comparison) -> Option<f64> {
    let estimate = &found.estimate;
    let (baseline, candidate) = estimate.runs;
    if estimate.design == Design::Single || baseline.min(candidate) < 2 {
        return None;
    }
    let each = (1.0 / baseline as f64 + 1.0 / candidate as f64).sqrt();
    // Of runs in turns the line over time takes its share, and series know of themselves.
    let error = estimate.error.max(found.floor.error);
    let delta = found.delta.ln_1p();
    let is_drawn = matches!(estimate.design, Design::Independent | Design::Pooled);
    let difference = match is_drawn && baseline.max(candidate) < MANY {
        true => {
            let least = found.floor.error / each;
            of_draws(&draws(baseline, candidate), (estimate.run_deviation, least), delta)
        }
        false => repetitions::detectable(error, estimate.freedom, delta),
    };
    Some(difference.exp_m1())
}

/// What nine of ten need beyond what chance took from them, or added, where runs seemed to differ by so much, and differ by so much at least.
fn of_draws(draws: &Draws, (deviation, least): (f64, f64), delta: f64) -> f64 {
    let need = |draw: &Draw| {
        let deviation = (deviation / draw.seen).max(least);
        let by_means = (deviation * draw.reach).max(delta) - deviation * draw.off;
        let by_ranks =
            |ranks: Shift| (delta - deviation * ranks.estimate).max(-deviation * ranks.low);
        draw.ranks.map_or(by_means, |ranks| by_means.max(by_ranks(ranks)))
    };
    let mut needed: Vec<f64> = draws.iter().map(need).collect();
    let rank = needed.len() * 9 / 10;
    *needed.select_nth_unstable_by(rank, f64::total_cmp).1
}

/// The same for the same numbers of runs, drawn once.
fn draws(baseline: usize, candidate: usize) -> Draws {
    static DRAWN: Mutex<BTreeMap<(usize, usize), Draws>> = Mutex::new(BTreeMap::new());
    // What is in it is whole at any time.
    let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
    let draw = || {
        let mut random = Random::new(SEED, 0);
        let mut side = |runs: usize| -> Vec<f64> { (0..runs).map(|_| random.normal()).collect() };
        let mut one = || {
            let (a, b) = (side(baseline), side(candidate));
            let (_, (error, freedom)) = known(&a, &b);
            let ranks = ranks(&a, &b);
            let seen = pooled(&side(baseline), &side(candidate)).sqrt();
            Draw { off: mean(&b) - mean(&a), reach: t_95(freedom) * error, ranks, seen }
        };
        Arc::new((0..DRAWS).map(|_| one()).collect())
    };
    Arc::clone(drawn.entry((baseline, candidate)).or_insert_with(draw))
}
