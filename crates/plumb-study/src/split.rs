//! The same number of outstanding I/Os, split between threads in different ways (method, 2.7).

use crate::compare;
use crate::stats::describe::{deviation, mean};
use crate::stats::distribution::{t_95, t_two_sided};

/// Threads and outstanding I/Os per thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Threads per file.
    pub threads: u64,
    /// Outstanding I/Os per thread.
    pub o: u64,
}

/// All pairs with `F·t·o = N` within the limits, threads ascending.
#[must_use]
pub fn pairs(outstanding: u64, files: u64, threads_most: u64, o_most: u64) -> Vec<Pair> {
    if files == 0 || !outstanding.is_multiple_of(files) {
        return Vec::new();
    }
    let each = outstanding / files;
    (1..=each.min(threads_most))
        .filter(|threads| each.is_multiple_of(*threads))
        .map(|threads| Pair { threads, o: each / threads })
        .filter(|pair| pair.o <= o_most)
        .collect()
}

/// N itself, or where it has fewer than four pairs within the limits, the number within ±5 % that has
/// most; the nearest of several.
#[must_use]
pub fn divisible(outstanding: u64, files: u64, threads_most: u64, o_most: u64) -> u64 {
    let count = |n: u64| pairs(n, files, threads_most, o_most).len();
    if count(outstanding) >= 4 {
        return outstanding;
    }
    let reach = outstanding / 20;
    let range = outstanding.saturating_sub(reach).max(1)..=outstanding + reach;
    let key = |n: &u64| (count(*n), std::cmp::Reverse(n.abs_diff(outstanding)));
    range.max_by_key(key).unwrap_or(outstanding)
}

/// What a pair gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The pair.
    pub pair: Pair,
    /// I/Os per second of each run.
    pub iops: Vec<f64>,
    /// Size of the file that was used, where known.
    pub file_bytes: Option<u64>,
}

/// Which pair is best.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Fewest threads among the best set.
    pub chosen: Pair,
    /// Most throughput.
    pub best: Pair,
    /// Pairs that are not worse than the best.
    pub best_set: Vec<Pair>,
    /// Why the choice is not confirmed; empty where it is.
    pub unconfirmed: Vec<&'static str>,
    /// Pairs to repeat before it is relied on.
    pub repeat: Vec<Pair>,
    /// How the best and others stand against their reference, where each was run once.
    pub against: Vec<Standing>,
}

impl Choice {
    /// In one line: `best: t2 o60; unconfirmed (…); repeat t2 and t3 at equal size`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut text = format!("best: t{} o{}", self.chosen.threads, self.chosen.o);
        if self.unconfirmed.is_empty() {
            return text;
        }
        let threads: Vec<String> = self.repeat.iter().map(|p| format!("t{}", p.threads)).collect();
        text.push_str(&format!(
            "; unconfirmed ({}); repeat {}",
            self.unconfirmed.join("; "),
            threads.join(" and ")
        ));
        if self.unconfirmed.contains(&SIZE_DIFFERS) {
            text.push_str(" at equal size");
        }
        text
    }
}

/// A single run against the spread of its siblings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// The pair.
    pub pair: Pair,
    /// Relative to the geometric mean of the reference.
    pub off: f64,
    /// Half the 95 % prediction interval of ln X.
    pub reach: f64,
    /// t of its distance.
    pub t: f64,
    /// Two-sided p.
    pub p: f64,
}

const SIZE_DIFFERS: &str = "file size differs";
const SINGLE_RUNS: &str = "single runs";

/// Chooses among pairs; `None` without any, or with a rate that is not positive.
#[must_use]
pub fn choose(measured: &[Measured]) -> Option<Choice> {
    let positive = |m: &Measured| !m.iops.is_empty() && m.iops.iter().all(|x| *x > 0.0);
    if measured.is_empty() || !measured.iter().all(positive) {
        return None;
    }
    let best = measured.iter().max_by(|a, b| level(a).total_cmp(&level(b)))?;
    let single = measured.iter().all(|m| m.iops.len() == 1);
    let (best_set, against) = if single {
        by_prediction(measured, best)
    } else {
        (by_repetitions(measured, best), vec![])
    };
    let chosen = best_set.iter().min_by_key(|pair| pair.threads).copied().unwrap_or(best.pair);
    let mut unconfirmed = Vec::new();
    let usual = usual_size(measured);
    let of = |pair: Pair| measured.iter().find(|m| m.pair == pair);
    if of(chosen).is_some_and(|m| m.file_bytes != usual) {
        unconfirmed.push(SIZE_DIFFERS);
    }
    if measured.iter().any(|m| m.iops.len() == 1) {
        unconfirmed.push(SINGLE_RUNS);
    }
    let mut repeat = vec![chosen];
    // The strongest of those that can be compared with each other.
    let rival = measured
        .iter()
        .filter(|m| m.pair != chosen && m.file_bytes == usual)
        .max_by(|a, b| level(a).total_cmp(&level(b)));
    repeat.extend(rival.map(|m| m.pair));
    repeat.sort();
    Some(Choice { chosen, best: best.pair, best_set, unconfirmed, repeat, against })
}

fn level(measured: &Measured) -> f64 {
    mean(&measured.iops.iter().map(|x| x.ln()).collect::<Vec<_>>())
}

/// The file size that most pairs used.
fn usual_size(measured: &[Measured]) -> Option<u64> {
    let count = |size: Option<u64>| measured.iter().filter(|m| m.file_bytes == size).count();
    measured.iter().map(|m| m.file_bytes).max_by_key(|size| count(*size)).flatten()
}

/// One run each: the pairs of the usual file size, without the best, say how much runs differ. A pair
/// outside the prediction interval for one more run stands apart, with Holm's correction.
fn by_prediction(measured: &[Measured], best: &Measured) -> (Vec<Pair>, Vec<Standing>) {
    let usual = usual_size(measured);
    let is_reference = |m: &&Measured| m.file_bytes == usual && m.pair != best.pair;
    let reference: Vec<f64> = measured.iter().filter(is_reference).map(level).collect();
    if reference.len() < 3 {
        return (measured.iter().map(|m| m.pair).collect(), Vec::new());
    }
    let count = reference.len() as f64;
    let (centre, spread) = (mean(&reference), deviation(&reference));
    let error = spread * (1.0 + 1.0 / count).sqrt();
    let reach = t_95(count - 1.0) * error;
    let standing = |m: &Measured| {
        let t = (level(m) - centre) / error;
        let off = (level(m) - centre).exp_m1();
        Standing { pair: m.pair, off, reach, t, p: t_two_sided(t, count - 1.0) }
    };
    let against: Vec<Standing> =
        measured.iter().filter(|m| !is_reference(m)).map(standing).collect();
    let p: Vec<f64> = against.iter().map(|standing| standing.p).collect();
    let apart = compare::holm(&p, 0.05);
    let best_stands = against.iter().zip(&apart).any(|(s, apart)| s.pair == best.pair && *apart);
    let set = if best_stands {
        vec![best.pair]
    } else {
        let low = centre - reach;
        measured.iter().filter(|m| level(m) >= low).map(|m| m.pair).collect()
    };
    (set, against)
}

/// Repetitions: those that are not worse than the best by 6.2, with Holm's correction.
fn by_repetitions(measured: &[Measured], best: &Measured) -> Vec<Pair> {
    let metric = compare::Metric::named("iops", true);
    let others: Vec<&Measured> = measured.iter().filter(|m| m.pair != best.pair).collect();
    let found: Vec<compare::Comparison> = others
        .iter()
        .filter_map(|m| compare::of_runs(&best.iops, &m.iops))
        .map(|estimate| compare::judge(estimate, &metric))
        .collect();
    let p: Vec<f64> = found.iter().map(|comparison| comparison.p).collect();
    let significant = compare::holm(&p, 0.05);
    let mut set: Vec<Pair> = others
        .iter()
        .zip(found.iter().zip(significant))
        .filter(|(_, (found, significant))| {
            !(found.verdict == compare::Verdict::Worse && *significant)
        })
        .map(|(m, _)| m.pair)
        .collect();
    set.push(best.pair);
    set.sort();
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table_4() -> Vec<Measured> {
        include_str!("../tests/data/table-4-random-test-2.csv")
            .lines()
            .skip(1)
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                let threads: u64 = cells[0].parse().expect("t");
                let pair = Pair { threads, o: cells[1].parse().expect("o") };
                // As the published commands have it.
                let file_bytes = Some(if threads < 3 { 4 << 30 } else { 64 << 30 });
                Measured { pair, iops: vec![cells[2].parse().expect("iops")], file_bytes }
            })
            .collect()
    }

    #[test]
    fn the_published_split_is_best_but_unconfirmed() {
        let choice = choose(&table_4()).expect("twelve pairs");
        assert_eq!(
            choice.sentence(),
            "best: t2 o60; unconfirmed (file size differs; single runs); repeat t2 and t3 at equal size"
        );
        assert_eq!(choice.best_set, [Pair { threads: 2, o: 60 }]);
        let [first, second] = choice.against.as_slice() else { panic!("{choice:?}") };
        assert!((first.off - 0.0157).abs() < 5e-5 && (first.p - 0.060).abs() < 0.001, "{first:?}");
        assert!((second.off - 0.106).abs() < 5e-4 && (second.t - 13.9).abs() < 0.05, "{second:?}");
        assert!((first.reach.exp_m1() - 0.0165).abs() < 1e-4 && second.p < 3e-7, "{first:?}");
    }

    #[test]
    fn pairs_of_120() {
        assert_eq!(pairs(120, 1, 120, 120).len(), 16);
        let run: Vec<u64> = pairs(120, 1, 24, 120).iter().map(|pair| pair.threads).collect();
        assert_eq!(run, [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 24]);
        assert_eq!(pairs(120, 2, 4, 20), [Pair { threads: 3, o: 20 }, Pair { threads: 4, o: 15 }]);
        assert!(pairs(5, 2, 8, 8).is_empty());
        assert_eq!(divisible(120, 1, 24, 120), 120);
        assert_eq!(divisible(127, 1, 64, 128), 126);
        assert_eq!(divisible(3, 1, 64, 128), 3);
    }

    #[test]
    fn repetitions_leave_those_that_are_not_worse() {
        let measured = |threads, iops: [f64; 4]| Measured {
            pair: Pair { threads, o: 120 / threads },
            iops: iops.to_vec(),
            file_bytes: None,
        };
        let runs = [
            measured(2, [99.0, 100.0, 101.0, 100.5]),
            measured(4, [101.0, 100.0, 99.5, 101.5]),
            measured(8, [80.0, 81.0, 79.0, 80.5]),
        ];
        let choice = choose(&runs).expect("three pairs");
        assert_eq!((choice.best.threads, choice.chosen.threads), (4, 2));
        assert_eq!(choice.best_set.len(), 2);
        assert_eq!(choice.sentence(), "best: t2 o60");
        assert_eq!(choose(&[]), None);
    }
}
