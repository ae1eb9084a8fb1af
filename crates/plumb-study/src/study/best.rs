//! Which of several settings is best, and which are as good (method, 2.7).

use crate::compare;
use crate::repetitions;
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

/// SD of ln X between runs of the same setting, and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// The SD.
    pub deviation: f64,
    /// Degrees of freedom that it was estimated with.
    pub freedom: f64,
    /// Where it comes from.
    pub source: NoiseSource,
}

/// Where an SD between runs comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseSource {
    /// Runs of the same settings, pooled.
    Repetitions,
    /// The scatter of settings about their curve.
    Curve,
    /// Nothing that was measured (6.2).
    Assumed,
}

/// SD of ln X between runs where nothing is known, and what it is worth (6.2).
const ASSUMED: (f64, f64) = (0.015, 9.0);
/// Degrees of freedom from which on repetitions are relied on alone: with one, t is 12.7.
const FREEDOM_LEAST: usize = 2;

impl Noise {
    /// Pooled over the repetitions of settings: a list of ln X for each of them; `None` with too few.
    #[must_use]
    pub fn pooled(logs: &[Vec<f64>]) -> Option<Self> {
        let (freedom, squares) = pool(logs);
        (freedom >= FREEDOM_LEAST).then(|| Self {
            deviation: (squares / freedom as f64).sqrt(),
            freedom: freedom as f64,
            source: NoiseSource::Repetitions,
        })
    }

    /// Where too few were repeated: what is assumed, or what a single repetition showed if that is more.
    fn assumed(logs: &[Vec<f64>]) -> Self {
        let (freedom, squares) = pool(logs);
        let seen = if freedom > 0 { (squares / freedom as f64).sqrt() } else { 0.0 };
        Self { deviation: seen.max(ASSUMED.0), freedom: ASSUMED.1, source: NoiseSource::Assumed }
    }

    /// Half the 95 % interval of the difference of two means of so many runs.
    #[must_use]
    pub fn reach(&self, runs: usize, others: usize) -> f64 {
        t_95(self.freedom) * self.error(runs, others)
    }

    fn error(&self, runs: usize, others: usize) -> f64 {
        let each = 1.0 / runs.max(1) as f64 + 1.0 / others.max(1) as f64;
        (self.deviation * each.sqrt()).max(1e-9)
    }

    /// In words: `of 12 repetitions, pooled`.
    #[must_use]
    pub fn told(&self) -> String {
        let freedom = self.freedom;
        match self.source {
            NoiseSource::Repetitions => {
                format!("of repetitions, pooled ({freedom:.0} degrees of freedom)")
            }
            NoiseSource::Curve => {
                format!("of the settings about their curve ({freedom:.0} degrees of freedom)")
            }
            NoiseSource::Assumed => "assumed: too few repetitions".to_owned(),
        }
    }
}

/// Degrees of freedom and squares of repetitions.
fn pool(logs: &[Vec<f64>]) -> (usize, f64) {
    let repeated = || logs.iter().filter(|logs| logs.len() > 1);
    (repeated().map(|logs| logs.len() - 1).sum(), repeated().map(|logs| squares(logs)).sum())
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
    /// What they were judged by.
    pub noise: Noise,
    /// Whether some of the set may be worse by 2 % or more, for all that the runs tell.
    pub is_unclear: bool,
}

impl Best {
    /// The verdict as a word: `best`, or `unclear` where the set may hold worse ones.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        if self.is_unclear { "unclear" } else { "best" }
    }

    /// What the runs could not tell, and how many would; empty where they told.
    #[must_use]
    pub fn doubt(&self) -> String {
        if !self.is_unclear {
            return String::new();
        }
        let deviation = self.noise.deviation;
        let widest = self.set.iter().map(|index| self.standing[*index].1).fold(0.0, f64::max);
        format!(
            "runs of one setting differ by {:.1} % (SD, {}), which cannot tell the {} in the best set apart to less \
             than {:.1} %; {} runs of each would tell {:.0} %",
            deviation * 100.0,
            self.noise.told(),
            self.set.len(),
            widest.exp_m1() * 100.0,
            repetitions::needed(deviation, DELTA),
            DELTA * 100.0
        )
    }
}

/// Distance that matters.
const DELTA: f64 = 0.02;
/// A loss that is seen is not taken for chance above this, significant or not: noise would be no reason to choose it.
pub(super) const LOSS_MOST: f64 = 0.05;

/// Chooses; `None` without a candidate that was run. `noise` is what runs of one setting differ by where the whole study
/// tells; otherwise the candidates' own repetitions do.
///
/// A candidate is worse than the best when it is so by 2 % and significantly, with Holm's correction.
#[must_use]
pub fn choose_best(candidates: &[Candidate], noise: Option<Noise>) -> Option<Best> {
    let logs: Vec<Vec<f64>> =
        candidates.iter().map(|c| c.iops.iter().map(|x| x.ln()).collect()).collect();
    let was_run = |index: &usize| !logs[*index].is_empty();
    let level = |index: usize| mean(&logs[index]);
    let run: Vec<usize> = (0..candidates.len()).filter(was_run).collect();
    let best = run.iter().copied().max_by(|a, b| level(*a).total_cmp(&level(*b)))?;
    let noise = noise.or_else(|| Noise::pooled(&logs)).unwrap_or_else(|| Noise::assumed(&logs));
    let standing: Vec<(f64, f64)> = (0..candidates.len())
        .map(|index| match was_run(&index) {
            true if index == best => (0.0, 0.0),
            true => (level(index) - level(best), noise.reach(logs[index].len(), logs[best].len())),
            false => (f64::NEG_INFINITY, 0.0),
        })
        .collect();
    let others: Vec<usize> = run.iter().copied().filter(|index| *index != best).collect();
    let t = |index: usize| standing[index].0 / noise.error(logs[index].len(), logs[best].len());
    let p: Vec<f64> = others.iter().map(|index| t_two_sided(t(*index), noise.freedom)).collect();
    let significant = compare::holm(&p, 0.05);
    let mut set: Vec<usize> = others
        .iter()
        .zip(significant)
        .filter(|(index, significant)| !(*significant && standing[**index].0.exp_m1() <= -DELTA))
        .map(|(index, _)| *index)
        .collect();
    set.push(best);
    set.sort_unstable();
    let is_same = |index: &usize| {
        let (off, reach) = standing[*index];
        (off - reach).exp_m1() > -DELTA
    };
    let is_unclear = !set.iter().all(is_same);
    let chosen = set
        .iter()
        .copied()
        .filter(|index| standing[*index].0.exp_m1() >= -LOSS_MOST)
        .min_by(|a, b| {
            let cost = candidates[*a].cost.cmp(&candidates[*b].cost);
            cost.then(level(*b).total_cmp(&level(*a)))
        })
        .unwrap_or(best);
    Some(Best { best, chosen, set, standing, noise, is_unclear })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(runs: &[(u64, &[f64])], deviation: Option<f64>, chosen: u64, set: usize) {
        let noise = deviation.map(|deviation| Noise {
            deviation,
            freedom: 12.0,
            source: NoiseSource::Repetitions,
        });
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

    #[test]
    fn what_runs_differ_by_is_what_was_measured() {
        let candidate =
            |cost, iops: &[f64]| Candidate { label: String::new(), iops: iops.to_vec(), cost };
        let noise = Noise { deviation: 0.08, freedom: 8.0, source: NoiseSource::Repetitions };
        // 15 % apart, which runs that differ by 8 % are now and then; but no reason to take the lower.
        let pairs = [candidate(1, &[85.0]), candidate(2, &[97.0]), candidate(4, &[100.0])];
        let found = choose_best(&pairs, Some(noise)).expect("candidates");
        assert_eq!((found.set.len(), found.chosen, found.verdict()), (3, 1, "unclear"));
        let doubt = found.doubt();
        assert!(doubt.contains("8.0 %") && doubt.contains("cannot tell the 3"), "{doubt}");
        // t of 8 degrees of freedom, not 1.96 or that of 30.
        assert!((found.standing[0].1 - 2.306 * 0.08 * 2.0_f64.sqrt()).abs() < 1e-4, "{found:?}");
        // The same ones of a quiet device: one stands apart, and nothing is in doubt.
        let quiet = Noise { deviation: 0.003, ..noise };
        let found = choose_best(&pairs, Some(quiet)).expect("candidates");
        assert_eq!((found.set.len(), found.chosen, found.verdict()), (1, 2, "best"));
        assert_eq!(found.doubt(), "");
        // One setting that was repeated once is little: what is assumed, or what it showed if that is more.
        let noise = Noise::assumed(&[vec![0.0, 0.1], vec![0.0]]);
        assert!((noise.deviation - 0.1 / 2.0_f64.sqrt()).abs() < 1e-9, "{noise:?}");
        assert_eq!(Noise::pooled(&[vec![0.0, 0.1], vec![0.0]]), None);
        assert_eq!(Noise::assumed(&[vec![0.0, 0.001]]).deviation, 0.015);
    }
}
