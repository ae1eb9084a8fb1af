//! Which of several settings is best, and which are as good (method, 2.7).

use crate::compare;
use crate::split::Pair;
use crate::stats::describe::{deviation, mean, squares};
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
    /// Threads per file and outstanding I/Os of each.
    pub pair: Pair,
    /// Files.
    pub files: u32,
    /// Bytes of all files together, where known.
    pub file_bytes: Option<u64>,
}

impl Candidate {
    fn load(&self) -> (u32, u64) {
        (self.files, self.pair.threads * self.pair.o)
    }
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
    /// The scatter of the same load, split between threads in other ways and run once each (2.7).
    Siblings,
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
            NoiseSource::Siblings => {
                format!("of the other settings, one run each ({freedom:.0} degrees of freedom)")
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
    /// Whether some of the set may be worse by 2 % or more, for all that the runs tell, its own and those of its neighbours
    /// where one load is split between threads.
    pub is_unclear: bool,
    /// What runs that came later would choose instead; what is chosen stays, as later steps rest on it.
    pub moved: Option<usize>,
    /// Whether some of the set were run once.
    pub is_single: bool,
    /// What to repeat before the choice is relied on: itself, and the strongest of those that can be compared with each other.
    pub repeat: Vec<usize>,
    /// Where single runs were judged by each other: those that stand outside the ones that tell how much runs differ.
    pub against: Vec<Standing>,
}

/// A single run against the spread of its siblings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Its place in the list.
    pub index: usize,
    /// Relative to the geometric mean of the others.
    pub off: f64,
    /// Half the 95 % prediction interval of ln X for one more run.
    pub reach: f64,
    /// t of its distance.
    pub t: f64,
    /// Two-sided p.
    pub p: f64,
}

impl Best {
    /// Runs that came later have been judged with the others. What was chosen stays, as the steps after it were run with that; where they say otherwise it
    /// is not certain.
    pub(crate) fn judged_by(&mut self, again: Option<Self>) {
        match again {
            Some(again) if again.chosen == self.chosen => *self = again,
            Some(again) => {
                let moved = Some(again.chosen);
                *self = Self { chosen: self.chosen, is_unclear: true, moved, ..again };
            }
            None => self.is_unclear = true,
        }
    }

    /// The verdict as a word: `best`, or `unclear` where the set may hold worse ones.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        if self.is_unclear { "unclear" } else { "best" }
    }

    /// What the choice has against it, in one line: `best: t2 o60; unconfirmed (…); repeat t2 and t3 at equal size`. In
    /// `differing` the settings differ (R13).
    #[must_use]
    pub fn reservations(&self, candidates: &[Candidate], differing: &[String]) -> String {
        let is_split = is_split(candidates);
        let pair = |index: usize| candidates[index].pair;
        let label = |index: usize| candidates[index].label.clone();
        let best = match is_split {
            true => format!("best: t{} o{}", pair(self.chosen).threads, pair(self.chosen).o),
            false => format!("best: {}", label(self.chosen)),
        };
        let mut open: Vec<String> =
            differing.iter().map(|what| format!("{what} differs")).collect();
        if self.is_single {
            open.push("single runs".to_owned());
        }
        if open.is_empty() {
            return best;
        }
        let name = |index: &usize| match is_split {
            true => format!("t{}", pair(*index).threads),
            false => label(*index),
        };
        let repeat: Vec<String> = self.repeat.iter().map(name).collect();
        let equal =
            if differing.iter().any(|what| what == FILE_SIZE) { " at equal size" } else { "" };
        let (open, repeat) = (open.join("; "), repeat.join(" and "));
        format!("{best}; unconfirmed ({open}); repeat {repeat}{equal}")
    }

    /// How far single runs stand from those that tell how much runs differ; empty where repetitions told.
    #[must_use]
    pub fn standings(&self, candidates: &[Candidate]) -> String {
        let told = |standing: &Standing| {
            let (off, t, p) = (standing.off * 100.0, standing.t, standing.p);
            let threads = candidates[standing.index].pair.threads;
            format!("t{threads} stands {off:+.2} % off the others (t {t:.1}, p {p:.1e})")
        };
        let each: Vec<String> = self.against.iter().map(told).collect();
        if each.is_empty() {
            return String::new();
        }
        let reach = self.against[0].reach.exp_m1() * 100.0;
        format!("{}, of which one more run would lie within ±{reach:.2} %", each.join(" and "))
    }

    /// Which of the set to run again, where that may tell what its runs could not: the one that may be worst or the best,
    /// whichever was run less often, if less than `most` times. `None` where nothing is in doubt, or noise hides 2 % from two
    /// runs of each, too.
    pub(super) fn in_doubt(&self, candidates: &[Candidate], most: usize) -> Option<usize> {
        if !self.is_unclear || self.noise.reach(2, 2) >= -(-DELTA).ln_1p() {
            return None;
        }
        let lows = lows(candidates, &self.set, &self.standing);
        let others = self.set.iter().copied().zip(&lows).filter(|(index, _)| *index != self.best);
        // The end, where what lies between is bounded by it.
        let own = |index: usize| self.standing[index].0 - self.standing[index].1;
        let lower = |a: &(usize, &f64), b: &(usize, &f64)| {
            a.1.total_cmp(b.1).then(own(b.0).total_cmp(&own(a.0)))
        };
        let (worst, _) = others.min_by(lower)?;
        let several = lows.iter().filter(|low| low.exp_m1() <= -DELTA).count() > 1;
        let runs = |index: usize| candidates[index].iops.len();
        // Where several may be worse, it is rather the best that was lucky.
        let (first, other) = if several { (self.best, worst) } else { (worst, self.best) };
        let next = if runs(other) < runs(first) { other } else { first };
        (runs(next) < most).then_some(next)
    }

    /// What the runs could not tell, and how many would; empty where they told.
    #[must_use]
    pub fn doubt(&self, candidates: &[Candidate]) -> String {
        if !self.is_unclear {
            return String::new();
        }
        let deviation = self.noise.deviation;
        let widest = self.set.iter().map(|index| self.standing[*index].1).fold(0.0, f64::max);
        format!(
            "runs of one setting differ by {:.1} % (SD, {}), which cannot tell the {} in the best set apart to less \
             than {:.1} %; {} whether each is within {:.0} %",
            deviation * 100.0,
            self.noise.told(),
            self.set.len(),
            widest.exp_m1() * 100.0,
            match self.runs_that_tell(candidates) {
                Some(runs) => format!("if they go on as they are, {runs} runs of each would tell"),
                None =>
                    format!("as some lose about as much, {RUNS_MOST} runs of each would not tell"),
            },
            DELTA * 100.0
        )
    }

    /// Runs of each with which none of the set is in doubt, if all stand where they do now; `None` if that takes more than is reasonable.
    fn runs_that_tell(&self, candidates: &[Candidate]) -> Option<usize> {
        let had = |index: &usize| candidates[*index].iops.len();
        let fewest = self.set.iter().map(had).min()?;
        (fewest + 1..=RUNS_MOST).find(|runs| {
            // What is run again tells more of how much runs differ, too.
            let more: usize = self.set.iter().map(|index| runs.saturating_sub(had(index))).sum();
            let freedom = self.noise.freedom + more as f64;
            let noise = Noise { freedom, ..self.noise };
            let reach = noise.reach(*runs, *runs);
            let standing: Vec<(f64, f64)> =
                self.standing.iter().map(|(off, _)| (*off, reach)).collect();
            // One that is seen to lose by more leaves the set.
            let loses = |off: f64| off.exp_m1() <= -DELTA && -off > reach;
            let stays: Vec<usize> =
                self.set.iter().copied().filter(|index| !loses(standing[*index].0)).collect();
            let is_best = |index: usize| index == self.best;
            let lows = lows(candidates, &stays, &standing);
            stays.iter().zip(lows).all(|(index, low)| is_best(*index) || low.exp_m1() > -DELTA)
        })
    }
}

/// Runs of each beyond which none are advised.
const RUNS_MOST: usize = 100;
/// Distance that matters.
const DELTA: f64 = 0.02;
/// A loss that is seen is not taken for chance above this, significant or not: noise would be no reason to choose it.
pub(super) const LOSS_MOST: f64 = 0.05;

/// In what settings may differ that makes them incomparable (R13).
pub(super) const FILE_SIZE: &str = "file size";

/// Whether all are the same load, split between threads in different ways.
fn is_split(candidates: &[Candidate]) -> bool {
    candidates.iter().all(|candidate| candidate.load() == candidates[0].load())
}

/// Chooses; `None` without a candidate that was run. `noise` is what runs of one setting differ by where the whole study
/// tells; otherwise the candidates' own repetitions do, or where one load is split in different ways and each was run once,
/// the others.
///
/// A candidate is worse than the best when it is so by 2 % and significantly, with Holm's correction.
#[must_use]
pub fn choose_best(candidates: &[Candidate], noise: Option<Noise>) -> Option<Best> {
    let logs: Vec<Vec<f64>> =
        candidates.iter().map(|c| c.iops.iter().map(|x| x.ln()).collect()).collect();
    let was_run = |index: &usize| !logs[*index].is_empty();
    let level = |index: usize| mean(&logs[index]);
    let higher = |a: &usize, b: &usize| level(*a).total_cmp(&level(*b));
    let run: Vec<usize> = (0..candidates.len()).filter(was_run).collect();
    let best = run.iter().copied().max_by(higher)?;
    let usual = usual_size(candidates, &run);
    let is_usual = |index: &usize| candidates[*index].file_bytes == usual;
    let siblings = match noise {
        None if is_split(candidates) && run.iter().all(|index| logs[*index].len() == 1) => {
            let reference = run.iter().copied().filter(|index| is_usual(index) && *index != best);
            Siblings::of(reference.map(|index| (index, level(index))).collect())
        }
        _ => None,
    };
    let noise = noise
        .or_else(|| Noise::pooled(&logs))
        .or(siblings.as_ref().map(|siblings| siblings.noise))
        .unwrap_or_else(|| Noise::assumed(&logs));
    let standing: Vec<(f64, f64)> = (0..candidates.len())
        .map(|index| match was_run(&index) {
            true if index == best => (0.0, 0.0),
            true => (level(index) - level(best), noise.reach(logs[index].len(), logs[best].len())),
            false => (f64::NEG_INFINITY, 0.0),
        })
        .collect();
    let (set, against) = match siblings {
        Some(siblings) => siblings.judge(best, &run, level),
        None => {
            let others: Vec<usize> = run.iter().copied().filter(|index| *index != best).collect();
            let error = |index: usize| noise.error(logs[index].len(), logs[best].len());
            let p = |index: &usize| t_two_sided(standing[*index].0 / error(*index), noise.freedom);
            let significant = compare::holm(&others.iter().map(p).collect::<Vec<_>>(), 0.05);
            let is_worse = |index: usize| standing[index].0.exp_m1() <= -DELTA;
            let all = others.iter().copied().zip(significant);
            let set = all.filter(|(index, significant)| !(*significant && is_worse(*index)));
            let mut set: Vec<usize> = set.map(|(index, _)| index).chain([best]).collect();
            set.sort_unstable();
            (set, Vec::new())
        }
    };
    let lows = lows(candidates, &set, &standing);
    let is_unclear = !lows.iter().all(|low| low.exp_m1() > -DELTA);
    let chosen = set
        .iter()
        .copied()
        .filter(|index| standing[*index].0.exp_m1() >= -LOSS_MOST)
        .min_by(|a, b| candidates[*a].cost.cmp(&candidates[*b].cost).then(higher(b, a)))
        .unwrap_or(best);
    let is_single = set.iter().any(|index| logs[*index].len() == 1);
    let rival =
        run.iter().copied().filter(|index| *index != chosen && is_usual(index)).max_by(higher);
    let mut repeat: Vec<usize> = rival.into_iter().chain([chosen]).collect();
    repeat.sort_unstable();
    Some(Best {
        best,
        chosen,
        set,
        standing,
        noise,
        is_unclear,
        moved: None,
        is_single,
        repeat,
        against,
    })
}

/// The lowest that each of a set may be relative to the best, in ln X. Throughput of one load over threads is taken to rise, be
/// flat and fall: what lies between two numbers of threads gives no less than the lesser of both.
fn lows(candidates: &[Candidate], set: &[usize], standing: &[(f64, f64)]) -> Vec<f64> {
    let own = |index: &usize| standing[*index].0 - standing[*index].1;
    let threads = |index: &usize| candidates[*index].pair.threads;
    let mut each: Vec<u64> = set.iter().map(threads).collect();
    each.sort_unstable();
    each.dedup();
    // Settings that differ by more than threads bound each other in no way.
    if !is_split(candidates) || each.len() < set.len() {
        return set.iter().map(own).collect();
    }
    let highest = |is_there: &dyn Fn(&usize) -> bool| {
        set.iter().filter(|index| is_there(index)).map(own).fold(f64::NEG_INFINITY, f64::max)
    };
    let low = |index: &usize| {
        let fewer = highest(&|other| threads(other) < threads(index));
        let more = highest(&|other| threads(other) > threads(index));
        own(index).max(fewer.min(more))
    };
    set.iter().map(low).collect()
}

/// The file size that most of those that were run used.
fn usual_size(candidates: &[Candidate], run: &[usize]) -> Option<u64> {
    let size = |index: &usize| candidates[*index].file_bytes;
    let count = |of: Option<u64>| run.iter().filter(|index| size(index) == of).count();
    run.iter().map(size).max_by_key(|size| count(*size)).flatten()
}

/// Fewest single runs that tell by how much runs differ.
const SIBLINGS_LEAST: usize = 3;

/// One run each: those of the usual file size, without the best, say how much runs differ.
struct Siblings {
    reference: Vec<usize>,
    /// Mean of their ln X.
    centre: f64,
    noise: Noise,
}

impl Siblings {
    /// Of places and ln X; `None` with too few.
    fn of(reference: Vec<(usize, f64)>) -> Option<Self> {
        let (reference, logs): (Vec<usize>, Vec<f64>) = reference.into_iter().unzip();
        if logs.len() < SIBLINGS_LEAST {
            return None;
        }
        let noise = Noise {
            deviation: deviation(&logs),
            freedom: logs.len() as f64 - 1.0,
            source: NoiseSource::Siblings,
        };
        Some(Self { reference, centre: mean(&logs), noise })
    }

    /// The best set, and how those outside the reference stand: one outside the prediction interval for one more run
    /// stands apart, with Holm's correction.
    fn judge(
        &self,
        best: usize,
        run: &[usize],
        level: impl Fn(usize) -> f64,
    ) -> (Vec<usize>, Vec<Standing>) {
        let error = self.noise.error(1, self.reference.len());
        let reach = self.noise.reach(1, self.reference.len());
        let standing = |index: usize| {
            let off = level(index) - self.centre;
            let t = off / error;
            let p = t_two_sided(t, self.noise.freedom);
            Standing { index, off: off.exp_m1(), reach, t, p }
        };
        let outside = run.iter().copied().filter(|index| !self.reference.contains(index));
        let against: Vec<Standing> = outside.map(standing).collect();
        let p: Vec<f64> = against.iter().map(|standing| standing.p).collect();
        let apart = compare::holm(&p, 0.05);
        let stands = against.iter().zip(apart).any(|(of, apart)| apart && of.index == best);
        let low = self.centre - reach;
        let set = match stands {
            true => vec![best],
            false => run.iter().copied().filter(|index| level(*index) >= low).collect(),
        };
        (set, against)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_load(cost: u64, outstanding: u64) -> Candidate {
        Candidate {
            label: String::new(),
            iops: Vec::new(),
            cost,
            pair: Pair { threads: cost, o: outstanding / cost },
            files: 1,
            file_bytes: None,
        }
    }

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
                // Not the same load: nothing says that their scatter is noise.
                ..of_load(*cost, *cost * *cost)
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
            |cost, iops: &[f64]| Candidate { iops: iops.to_vec(), ..of_load(cost, cost * cost) };
        let noise = Noise { deviation: 0.08, freedom: 8.0, source: NoiseSource::Repetitions };
        // 15 % apart, which runs that differ by 8 % are now and then; but no reason to take the lower.
        let pairs = [candidate(1, &[85.0]), candidate(2, &[97.0]), candidate(4, &[100.0])];
        let found = choose_best(&pairs, Some(noise)).expect("candidates");
        assert_eq!((found.set.len(), found.chosen, found.verdict()), (3, 1, "unclear"));
        let doubt = found.doubt(&pairs);
        assert!(doubt.contains("8.0 %") && doubt.contains("cannot tell the 3"), "{doubt}");
        // t of 8 degrees of freedom, not 1.96 or that of 30.
        assert!((found.standing[0].1 - 2.306 * 0.08 * 2.0_f64.sqrt()).abs() < 1e-4, "{found:?}");
        // The same ones of a quiet device: one stands apart, and nothing is in doubt.
        let quiet = Noise { deviation: 0.003, ..noise };
        let found = choose_best(&pairs, Some(quiet)).expect("candidates");
        assert_eq!((found.set.len(), found.chosen, found.verdict()), (1, 2, "best"));
        assert_eq!(found.doubt(&pairs), "");
        // One setting that was repeated once is little: what is assumed, or what it showed if that is more.
        let noise = Noise::assumed(&[vec![0.0, 0.1], vec![0.0]]);
        assert!((noise.deviation - 0.1 / 2.0_f64.sqrt()).abs() < 1e-9, "{noise:?}");
        assert_eq!(Noise::pooled(&[vec![0.0, 0.1], vec![0.0]]), None);
        assert_eq!(Noise::assumed(&[vec![0.0, 0.001]]).deviation, 0.015);
    }

    /// As many runs of each as are said to tell do, and not one fewer, where all stand as they did.
    #[test]
    fn the_runs_that_are_advised_tell() {
        // Off by so much, in ln X, with an SD of 1 %.
        let runs = |off: f64, count: usize| -> Vec<f64> {
            let spread = 0.01 * ((count as f64 - 1.0) / count as f64).sqrt();
            let half = count / 2 * 2;
            let spread = spread * (count as f64 / half as f64).sqrt();
            let sign = |nth: usize| match nth {
                nth if nth >= half => 0.0,
                nth if nth % 2 == 0 => 1.0,
                _ => -1.0,
            };
            (0..count).map(|nth| (off + spread * sign(nth)).exp()).collect()
        };
        // Those beyond 2.5 % are out with three runs, and not run again.
        let all = |offs: &[f64], count: usize| -> Vec<Candidate> {
            let each = (1..).zip(offs).map(|(cost, off)| Candidate {
                iops: runs(*off, if *off < -0.025 { 3 } else { count }),
                ..of_load(cost, cost * cost)
            });
            each.collect()
        };
        for offs in [&[0.0, -0.01][..], &[0.0, -0.005, -0.012, -0.001], &[0.0, -0.027, -0.004]] {
            let few = all(offs, 3);
            let found = choose_best(&few, None).expect("candidates");
            assert_eq!(found.verdict(), "unclear", "{offs:?}");
            let needed = found.runs_that_tell(&few).expect("a number");
            assert!(needed > 3 && found.doubt(&few).contains(&format!("{needed} runs of each")));
            let verdict = |count| choose_best(&all(offs, count), None).expect("some").verdict();
            assert_eq!(
                (verdict(needed), verdict(needed - 1)),
                ("best", "unclear"),
                "{offs:?}: {needed}"
            );
        }
        // Where one loses just what matters, none does.
        let edge = all(&[0.0, -0.0201], 10);
        let found = choose_best(&edge, None).expect("candidates");
        assert!(
            found.doubt(&edge).contains("100 runs of each would not tell"),
            "{}",
            found.doubt(&edge)
        );
    }

    /// One run of each, threads and rate.
    fn splits(runs: &[(u64, f64)], file_bytes: impl Fn(u64) -> Option<u64>) -> Vec<Candidate> {
        let candidate = |(threads, iops): &(u64, f64)| Candidate {
            iops: vec![*iops],
            file_bytes: file_bytes(*threads),
            ..of_load(*threads, 120)
        };
        runs.iter().map(candidate).collect()
    }

    #[test]
    fn single_runs_of_one_load_are_judged_by_each_other() {
        let calm = [(2, 100.0), (3, 100.3), (4, 99.8), (5, 100.1), (6, 99.9)];
        let found = choose_best(&splits(&calm, |_| None), None).expect("candidates");
        assert_eq!((found.noise.source, found.set.len()), (NoiseSource::Siblings, 5));
        assert_eq!((found.best, found.chosen, found.verdict()), (1, 0, "best"));
        // One far above the others, then far below them.
        let high = [(2, 100.0), (3, 110.0), (4, 99.8), (5, 100.1), (6, 99.9)];
        let found = choose_best(&splits(&high, |_| None), None).expect("candidates");
        assert_eq!((found.set.as_slice(), found.chosen), ([1].as_slice(), 1));
        let [only] = found.against.as_slice() else { panic!("{found:?}") };
        assert!(only.index == 1 && (only.off - 0.10).abs() < 0.001 && only.p < 1e-3, "{only:?}");
        // What the study knows of its noise is more than what siblings say.
        let noise = Noise { deviation: 0.1, freedom: 9.0, source: NoiseSource::Repetitions };
        let found = choose_best(&splits(&high, |_| None), Some(noise)).expect("candidates");
        assert_eq!((found.noise, found.set.len(), found.verdict()), (noise, 5, "unclear"));
        assert_eq!(found.standings(&splits(&high, |_| None)), "");
        // Two tell nothing of how much runs differ.
        let few = choose_best(&splits(&high[..3], |_| None), None).expect("candidates");
        assert_eq!(few.noise.source, NoiseSource::Assumed);
    }

    #[test]
    fn a_pair_between_two_others_is_no_worse_than_both_and_ends_are_run_again() {
        let noise =
            |deviation| Some(Noise { deviation, freedom: 8.0, source: NoiseSource::Repetitions });
        let judged = |candidates: &[Candidate], deviation: f64| {
            let found = choose_best(candidates, noise(deviation)).expect("candidates");
            (found.verdict(), found.in_doubt(candidates, 3))
        };
        // By itself the second may be 2.06 % worse, by its neighbours 1 %.
        let between = splits(&[(1, 99.99), (2, 98.9), (4, 100.0)], |_| None);
        assert_eq!(judged(&between, 0.003), ("best", None));
        let mut apart = between;
        apart[1].pair.o *= 2;
        assert_eq!(judged(&apart, 0.003), ("unclear", Some(1)), "not the same load");
        // Nothing is beyond the first.
        let mut end = splits(&[(1, 98.9), (2, 99.99), (4, 100.0)], |_| None);
        assert_eq!(judged(&end, 0.003), ("unclear", Some(0)));
        end[0].iops.push(98.7);
        assert_eq!(judged(&end, 0.003), ("unclear", Some(2)), "the best was run less often");
        end[0].iops[1] = 100.0;
        assert_eq!(judged(&end, 0.003), ("best", None));
        // Two runs of each would not tell either.
        assert_eq!(judged(&end, 0.02), ("unclear", None));
        // Both ends may be worse: that is as well the luck of the best.
        let ends = splits(&[(1, 98.9), (2, 100.0), (4, 98.9)], |_| None);
        assert_eq!(judged(&ends, 0.003), ("unclear", Some(1)));
        let often = |of: &Candidate| Candidate { iops: vec![of.iops[0]; 3], ..of.clone() };
        let often: Vec<Candidate> = ends.iter().map(often).collect();
        assert_eq!(judged(&often, 0.005), ("unclear", None), "as often as it may be");
    }

    #[test]
    fn a_file_of_another_size_tells_nothing_of_noise() {
        let runs = [(1, 80.0), (2, 110.0), (3, 100.0), (4, 100.2), (5, 99.9), (6, 100.1)];
        let candidates = splits(&runs, |threads| Some(if threads < 3 { 4 } else { 64 }));
        let found = choose_best(&candidates, None).expect("candidates");
        assert_eq!(found.set, [1]);
        let outside: Vec<usize> = found.against.iter().map(|standing| standing.index).collect();
        assert_eq!(outside, [0, 1]);
        assert_eq!(
            found.reservations(&candidates, &[FILE_SIZE.to_owned()]),
            "best: t2 o60; unconfirmed (file size differs; single runs); repeat t2 and t4 at equal size"
        );
    }
}
