//! How many runs an exhaustive plan takes: as it is planned so far, and where its ranges are extended to their end (method, 2.6).

use std::ops::RangeInclusive;

use plumb_units::convert::to_u64;

use super::curve::with;
use super::options::{EXTENSIONS, REPETITIONS, Step};
use super::planner::{BaselinePlanner, Choices, apart, tries};
use crate::split;
use crate::study::conditioning::counted;
use crate::study::engine::Extent;
use crate::study::record::{Purpose, RunRecord};
use crate::study::sweep::{ANCHOR_EVERY, rows, same_but_o};
use crate::study::{Access, Setting};

/// Steps that run a range of o.
const CURVES: [Step; 3] = [Step::RandomOne, Step::Reads, Step::Writes];

impl BaselinePlanner {
    /// How many runs an exhaustive plan takes in all, these among them.
    pub(super) fn extent(&self, all: &[RunRecord]) -> Extent {
        let runs = &*counted(all);
        let choices = self.choices(runs);
        let has = |step| self.options.has(step);
        // What pre-tests run, and how often: none of it is run again by what comes after them.
        let pretests: Vec<(Setting, usize)> = match (has(Step::PretestOne), has(Step::PretestTwo)) {
            (_, true) => {
                let counts = self.file_counts().into_iter();
                counts.map(|files| (self.options.random(files), REPETITIONS)).collect()
            }
            (true, false) => vec![(self.options.random(1), 1)],
            _ => Vec::new(),
        };
        let missing =
            |(setting, wanted): &(Setting, usize)| wanted.saturating_sub(tries(setting, runs));
        let mut left = pretests.iter().map(missing).sum::<usize>();
        let is_new = |setting: &Setting| {
            tries(setting, runs) == 0 && pretests.iter().all(|(other, _)| other != setting)
        };
        let new = |list: &[Setting]| list.iter().filter(|setting| is_new(setting)).count();
        let pairs = self.pairs_left(&choices, is_new);
        if has(Step::RandomTwo) {
            left += pairs.0;
        }
        if has(Step::Latency) {
            let is_chosen = choices.random_curve.is_some() || !has(Step::RandomOne);
            let chosen = |setting: &&Setting| is_chosen || setting.threads == 1;
            let apart = apart(&choices.random, &self.options);
            let apart: Vec<Setting> = apart.iter().filter(chosen).cloned().collect();
            left += new(&apart) + usize::from(!is_chosen);
        }
        let (mut planned, mut extended, mut settled) = (left, left, 0);
        // One that is over has run all of its range.
        for step in CURVES.into_iter().filter(|step| has(*step) && !self.is_over(*step, &choices)) {
            let setting = self.template(step, &choices);
            let missing = |range: RangeInclusive<u64>| {
                new(&range.map(|o| with(&setting, o)).collect::<Vec<Setting>>())
            };
            let limit = self.options.o_most(step, &setting);
            let is_own = |run: &&RunRecord| {
                same_but_o(&run.setting, &setting) && run.step != Step::RandomTwo.keyword()
            };
            let own = runs.iter().filter(is_own);
            let options = self.options.knee_options(&setting, runs);
            let is_begun = own.clone().any(|run| run.step == step.keyword());
            let (from, last) = match is_begun {
                true => self.range(step, (&setting, limit), runs, (&rows(own), &options)).0,
                false => step.published_range(),
            };
            let missing_now = missing(from.min(limit)..=last.min(limit));
            planned += missing_now;
            if is_begun {
                settled = settled.max(missing_now);
            }
            extended += missing(1..=limit.min(step.published_range().1 << EXTENSIONS));
        }
        if has(Step::RandomTwo) {
            extended += pairs.1 - pairs.0;
        }
        let in_all = |left: usize| to_u64(all.len() + left + anchors_left(runs, left));
        Extent { planned: in_all(planned), extended: in_all(extended), settled: to_u64(settled) }
    }

    /// The settings of a step's curve, but for their o.
    fn template(&self, step: Step, choices: &Choices) -> Setting {
        match step {
            Step::Reads => self.options.sequential(choices.files, 0),
            Step::Writes => self.options.sequential(choices.files, 100),
            _ => self.options.random(choices.files),
        }
    }

    /// Whether the curve of a step has been run to its end.
    fn is_over(&self, step: Step, choices: &Choices) -> bool {
        match step {
            Step::Reads => choices.reads.is_some(),
            Step::Writes => choices.writes.is_some(),
            _ => choices.random_curve.is_some(),
        }
    }

    /// Pairs that random test 2 has still to run: as published until random test 1 has chosen N; and at most.
    fn pairs_left(&self, choices: &Choices, is_new: impl Fn(&Setting) -> bool) -> (usize, usize) {
        let is_known = choices.random_curve.is_some() || !self.options.has(Step::RandomOne);
        if !is_known {
            let published = usize::try_from(Step::RandomTwo.published_runs()).unwrap_or(0);
            let setting = self.options.random(choices.files);
            let most = self.options.o_most(Step::RandomOne, &setting);
            let count = |o: u64| self.pairs(&with(&setting, o), choices.files).len();
            let most = (1..=most).map(count).max().unwrap_or(0);
            // One of them is what random test 1 chose.
            return (published - 1, most.max(published) - 1);
        }
        if !choices.pairs.is_empty() {
            return (0, 0);
        }
        let pairs = self.pairs(&choices.random, choices.files);
        let left = pairs.iter().filter(|pair| is_new(pair)).count();
        (left, left)
    }

    /// (2.7) The ways to split the load of a setting between threads.
    pub(super) fn pairs(&self, random: &Setting, files: u32) -> Vec<Setting> {
        debug_assert_eq!(random.access, Access::Random);
        let files = u64::from(files);
        let threads_most = u64::from(self.options.threads_most);
        let o_most = self.options.outstanding_most.min(65_536);
        let wanted = random.total_outstanding();
        let n = split::divisible(wanted, files, threads_most, o_most);
        // Rounding up to a number with more divisors must not pass the limit.
        let n = if n > self.options.outstanding_most { wanted } else { n };
        let setting = |pair: &split::Pair| {
            let threads = u32::try_from(pair.threads).unwrap_or(u32::MAX);
            let outstanding = u32::try_from(pair.o).unwrap_or(u32::MAX);
            Setting { threads, outstanding, ..random.clone() }
        };
        split::pairs(n, files, threads_most, o_most).iter().map(setting).collect()
    }
}

/// Runs of the reference that come between and after so many others.
fn anchors_left(runs: &[RunRecord], left: usize) -> usize {
    let since = runs.iter().rev().take_while(|run| run.purpose != Purpose::Anchor).count();
    match runs.len() + left {
        few if few < ANCHOR_EVERY => 0,
        _ => (since + left).div_ceil(ANCHOR_EVERY),
    }
}
