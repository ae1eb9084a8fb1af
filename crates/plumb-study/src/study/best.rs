//! Which of several settings is best, and which are as good (method, 2.7).

use crate::compare;
use crate::stats::describe::{mean, squares};
use crate::stats::distribution::{t_95, t_two_sided};

/// A setting with its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// In a few letters.
    pub label: String,
    /// I/Os per second of each run; all positive.
    pub iops: Vec<f64>,
    /// What it costs: of equally good ones the least is chosen.
    pub cost: u64,
}

/// The outcome, as places in the list of candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// Most throughput.
    pub best: usize,
    /// The cheapest of those that are as good.
    pub chosen: usize,
    /// Those that are not worse than the best, ascending.
    pub set: Vec<usize>,
    /// Relative distance of each from the best, and half its 95 % interval, in ln X.
    pub standing: Vec<(f64, f64)>,
    /// SD of ln X between runs that was taken.
    pub deviation: f64,
    /// Whether that SD was seen in repetitions, and not assumed.
    pub is_measured: bool,
}

/// SD of ln X between runs where nothing is known (6.2).
const ASSUMED: f64 = 0.015;
/// Repetitions that give a spread of their own.
const FREEDOM_LEAST: usize = 3;
/// Distance that matters.
const DELTA: f64 = 0.02;

/// Chooses; `None` without a candidate that was run. `noise` is the SD of ln X between runs where another part
/// of the study showed it: it is used where too few runs were repeated.
///
/// A candidate is worse than the best when it is so by 2 % and significantly, with Holm's correction.
#[must_use]
pub fn choose_best(candidates: &[Candidate], noise: Option<f64>) -> Option<Best> {
    let logs: Vec<Vec<f64>> =
        candidates.iter().map(|c| c.iops.iter().map(|x| x.ln()).collect()).collect();
    let was_run = |index: &usize| !logs[*index].is_empty();
    let level = |index: usize| mean(&logs[index]);
    let run: Vec<usize> = (0..candidates.len()).filter(was_run).collect();
    let best = run.iter().copied().max_by(|a, b| level(*a).total_cmp(&level(*b)))?;
    let freedom: usize = run.iter().map(|index| logs[*index].len() - 1).sum();
    let pooled: f64 = run.iter().map(|index| squares(&logs[*index])).sum();
    let is_measured = freedom >= FREEDOM_LEAST;
    let (deviation, freedom) = if is_measured {
        ((pooled / freedom as f64).sqrt(), freedom as f64)
    } else {
        // What is known from elsewhere is known well.
        (noise.unwrap_or(ASSUMED), 30.0)
    };
    let error = |index: usize| {
        let each = 1.0 / logs[index].len() as f64 + 1.0 / logs[best].len() as f64;
        (deviation * each.sqrt()).max(1e-9)
    };
    let standing: Vec<(f64, f64)> = (0..candidates.len())
        .map(|index| match was_run(&index) {
            true if index == best => (0.0, 0.0),
            true => (level(index) - level(best), t_95(freedom) * error(index)),
            false => (f64::NEG_INFINITY, 0.0),
        })
        .collect();
    let others: Vec<usize> = run.iter().copied().filter(|index| *index != best).collect();
    let p: Vec<f64> = others
        .iter()
        .map(|index| t_two_sided(standing[*index].0 / error(*index), freedom))
        .collect();
    let significant = compare::holm(&p, 0.05);
    let mut set: Vec<usize> = others
        .iter()
        .zip(significant)
        .filter(|(index, significant)| !(*significant && standing[**index].0.exp_m1() <= -DELTA))
        .map(|(index, _)| *index)
        .collect();
    set.push(best);
    set.sort_unstable();
    let chosen = set
        .iter()
        .copied()
        .min_by(|a, b| {
            let cost = candidates[*a].cost.cmp(&candidates[*b].cost);
            cost.then(level(*b).total_cmp(&level(*a)))
        })
        .unwrap_or(best);
    Some(Best { best, chosen, set, standing, deviation, is_measured })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(runs: &[(u64, &[f64])], noise: Option<f64>, chosen: u64, set: usize) {
        let candidates: Vec<Candidate> = runs
            .iter()
            .map(|(cost, iops)| Candidate {
                label: cost.to_string(),
                iops: iops.to_vec(),
                cost: *cost,
            })
            .collect();
        let found = choose_best(&candidates, noise).expect("candidates");
        assert_eq!((candidates[found.chosen].cost, found.set.len()), (chosen, set), "{found:?}");
    }

    #[test]
    fn the_cheapest_of_those_as_good() {
        let (low, high, higher) =
            ([99.0, 100.0, 101.0], [120.0, 121.0, 119.0], [121.0, 120.0, 122.0]);
        check(&[(1, &low), (2, &high), (4, &higher)], None, 2, 2);
        check(&[(1, &low)], None, 1, 1);
        // Single runs: what is known of the noise decides.
        check(&[(1, &[97.0]), (2, &[100.0])], Some(0.002), 2, 1);
        check(&[(1, &[97.0]), (2, &[100.0])], Some(0.02), 1, 2);
        check(&[(1, &[99.0]), (2, &[100.0])], Some(0.0001), 1, 2);
        check(&[(1, &[]), (2, &[100.0])], None, 2, 1);
        assert_eq!(choose_best(&[], None), None);
    }
}
