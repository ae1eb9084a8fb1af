//! Which run of a curve over o comes next.

use std::ops::RangeInclusive;

use plumb_units::convert::to_u64;

use super::options::{CURVE_MOST, EXTENSIONS, REPETITIONS, Step};
use super::planner::{Ask, BaselinePlanner, NOISY, ORDERS_FROM, chosen, is_noisy, tries};
use crate::bracket::{self, Climb};
use crate::knee::{self, Knee};
use crate::study::Setting;
use crate::study::random::Random;
use crate::study::record::RunRecord;
use crate::study::sweep::{rows, same_but_o};

/// Runs that a curve without much noise leaves for threads instead of repeating what it rests on: they say more there.
const SPARED: usize = 2;

/// Runs that latencies of a few outstanding I/Os leave to a curve that still climbs when no others are left.
const LATENCIES_LENT: usize = 2;

/// Where the search for sequential I/O begins: a plateau at one outstanding I/O is rare.
const SEQUENTIAL_FROM: u64 = 2;

/// Outstanding I/Os of reads from which on the search for writes looks there first: a climb would take two steps more.
const MANY: u64 = 16;

/// Which runs a curve may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// Its own, and those that steps before it left.
    Own,
    /// All that curves did not need, to go on climbing.
    Rest,
}

impl BaselinePlanner {
    /// The knee over o of a step, which leaves so many runs in reserve.
    pub(super) fn curve(
        &self,
        step: Step,
        setting: &Setting,
        runs: &[RunRecord],
        (share, reserve): (Share, usize),
    ) -> Ask<Knee> {
        // What is repeated for threads must not move the load that they share.
        let is_own = |run: &&RunRecord| {
            same_but_o(&run.setting, setting) && run.step != Step::RandomTwo.keyword()
        };
        let rows = rows(runs.iter().filter(is_own));
        let options = self.options.knee_options(setting, runs);
        if self.options.is_exhaustive() {
            return self.whole_range(step, setting, runs, &rows);
        }
        let used = runs.iter().filter(|run| run.step == step.keyword()).count();
        let (most, left) = match (share, step) {
            (Share::Rest, _) => {
                // Where a curve ends says more than latencies of a few outstanding I/Os do.
                let still_climbs = self.options.has(Step::Latency)
                    && knee::find(&rows, &options).verdict == knee::Verdict::Extend;
                let lent = if still_climbs { LATENCIES_LENT } else { 0 };
                (usize::MAX, self.left_with(Step::Writes, runs, lent))
            }
            (Share::Own, Step::RandomOne) => (CURVE_MOST.0, self.left(step, runs)),
            (Share::Own, _) => (CURVE_MOST.1, self.left(step, runs)),
        };
        if used >= most || left <= reserve {
            return Ask::Have(knee::find(&rows, &options));
        }
        if let Some(like) = self.like_reads(step, setting, runs).filter(|_| rows.len() == 1) {
            return Ask::Run(like);
        }
        match self.search(step, setting, (&rows, &options)) {
            // One that failed is not tried again.
            bracket::Step::Measure(o) if tries(&with(setting, o), runs) > 0 => {
                Ask::Have(knee::find(&rows, &options))
            }
            bracket::Step::Measure(o) => Ask::Run(with(setting, o)),
            bracket::Step::Done(found) => {
                let spares = step == Step::RandomOne && !is_noisy(runs) && left <= SPARED;
                // What reads may still look for comes before what writes would only repeat.
                let waits = step == Step::Writes && self.is_open(Step::Reads, setting, runs);
                if spares || waits || share == Share::Rest {
                    return Ask::Have(*found);
                }
                let (list, wanted) = to_repeat(&found);
                let settings = list.into_iter().map(|o| with(setting, o));
                let open = settings.filter(|setting| tries(setting, runs) < wanted);
                match open.min_by_key(|setting| tries(setting, runs)) {
                    Some(setting) => Ask::Run(setting),
                    None => Ask::Have(*found),
                }
            }
        }
    }

    /// Whether sequential I/O of the other kind than such settings has no end yet that a run more may find.
    fn is_open(&self, step: Step, setting: &Setting, runs: &[RunRecord]) -> bool {
        let write_percent = if step == Step::Reads { 0 } else { 100 };
        let setting = Setting { write_percent, ..setting.clone() };
        if !self.options.has(step) {
            return false;
        }
        let own: Vec<RunRecord> =
            runs.iter().filter(|run| same_but_o(&run.setting, &setting)).cloned().collect();
        let (rows, options) = (rows(own.iter()), self.options.knee_options(&setting, runs));
        let next = match self.search(step, &setting, (&rows, &options)) {
            bracket::Step::Measure(o) => with(&setting, o),
            bracket::Step::Done(_) => return false,
        };
        let found = knee::find(&rows, &options);
        let may_find = found.verdict == knee::Verdict::Extend || bracket::coarse(&found).is_some();
        may_find && tries(&next, runs) == 0
    }

    /// Writes with as many outstanding as reads need, where those are many and it was not tried.
    fn like_reads(&self, step: Step, setting: &Setting, runs: &[RunRecord]) -> Option<Setting> {
        let reads = Setting { write_percent: 0, ..setting.clone() };
        let own = runs.iter().filter(|run| same_but_o(&run.setting, &reads));
        let curve = (step == Step::Writes)
            .then(|| knee::find(&rows(own), &self.options.knee_options(&reads, runs)))?;
        let o = u64::from(chosen(&curve)?).min(self.options.o_most(step, setting));
        let setting = with(setting, o);
        (o >= MANY && tries(&setting, runs) == 0).then_some(setting)
    }

    /// What a search that has these rows does next.
    fn search(
        &self,
        step: Step,
        setting: &Setting,
        (rows, options): (&[knee::Row], &knee::Options),
    ) -> bracket::Step {
        let limit = self.options.o_most(step, setting);
        let (from, climb) = match step {
            // Pre-test 2 has run one of its settings.
            Step::RandomOne => (1, Climb::Leaping),
            _ => (SEQUENTIAL_FROM.min(limit), Climb::Striding),
        };
        match bracket::next(rows, from, limit, options, climb) {
            bracket::Step::Done(found) if found.verdict == knee::Verdict::Flat && from > 1 => {
                bracket::next(rows, 1, limit, options, climb)
            }
            next => next,
        }
    }

    /// Whether a search that has these rows would go on if there were runs for it.
    pub(super) fn goes_on(&self, step: Step, setting: &Setting, runs: &[RunRecord]) -> bool {
        let options = self.options.knee_options(setting, runs);
        let own = runs.iter().filter(|run| same_but_o(&run.setting, setting));
        let is_search = !self.options.is_exhaustive();
        let next = || self.search(step, setting, (&rows(own), &options));
        is_search && matches!(next(), bracket::Step::Measure(_))
    }

    /// The same of every setting of a range, which is extended where the curve still rises (2.6).
    fn whole_range(
        &self,
        step: Step,
        setting: &Setting,
        runs: &[RunRecord],
        rows: &[knee::Row],
    ) -> Ask<Knee> {
        let options = self.options.knee_options(setting, runs);
        let limit = self.options.o_most(step, setting);
        match self.range(step, (setting, limit), runs, (rows, &options)) {
            (_, Some(ask)) => ask,
            (_, None) => Ask::Have(knee::find(rows, &options)),
        }
    }

    /// The first and the last o of that range as far as it goes by these rows, and what comes next.
    pub(super) fn range(
        &self,
        step: Step,
        (setting, limit): (&Setting, u64),
        runs: &[RunRecord],
        (rows, options): (&[knee::Row], &knee::Options),
    ) -> ((u64, u64), Option<Ask<Knee>>) {
        let missing = |range: RangeInclusive<u64>| {
            // In a random order as published; beyond that upwards, as each run may be the last that is needed.
            let (mut range, beyond): (Vec<u64>, Vec<u64>) =
                range.partition(|o| *o <= step.published_range().1);
            let place = Step::ALL.iter().position(|other| *other == step).map_or(0, to_u64);
            Random::new(self.options.seed, ORDERS_FROM * (place + 1)).shuffle(&mut range);
            let mut range = range.into_iter().chain(beyond).map(|o| with(setting, o));
            range.find(|setting| tries(setting, runs) == 0)
        };
        let (first, mut last) = step.published_range();
        let mut from = first;
        for extension in 0..=EXTENSIONS {
            if let Some(setting) = missing(from.min(limit)..=last.min(limit)) {
                return ((from, last), Some(Ask::Run(setting)));
            }
            // An extension that was begun is run to its end (2.6): balance is looked for beyond the plateau.
            if extension < EXTENSIONS && rows.iter().any(|row| row.o > last) {
                last *= 2;
                continue;
            }
            let found = knee::find(rows, options);
            match found.verdict {
                knee::Verdict::Extend if extension < EXTENSIONS && last < limit => last *= 2,
                // The range began above the knee, or too near it to see: all that lies below.
                knee::Verdict::Flat if from > 1 => from = 1,
                knee::Verdict::Knee if from > 1 && begins_late(&found, from) => from = 1,
                _ => return ((from, last), Some(Ask::Have(found))),
            }
        }
        ((from, last), None)
    }
}

pub(super) fn with(setting: &Setting, o: u64) -> Setting {
    let outstanding = u32::try_from(o).unwrap_or(u32::MAX);
    Setting { outstanding, ..setting.clone() }
}

/// Whether the plateau is as near to the beginning of a range as it must not be to its end (3.2, 5).
fn begins_late(curve: &Knee, from: u64) -> bool {
    curve.marks.is_some_and(|marks| marks.plateau as f64 <= 1.25 * from as f64)
}

/// What a curve's recommendation rests on (3.2, 8): itself and the tested settings on both sides of it; and how often
/// they are to be run.
fn to_repeat(curve: &Knee) -> (Vec<u64>, usize) {
    let Some(marks) = curve.marks else { return (Vec::new(), 0) };
    let os: Vec<u64> = curve.settings.iter().map(|setting| setting.o).collect();
    let Some(at) = os.iter().position(|o| *o == marks.recommended) else { return (Vec::new(), 0) };
    let mut list = vec![os[at]];
    list.extend(at.checked_sub(1).map(|before| os[before]));
    list.extend(os.get(at + 1));
    let is_noisy = curve.fit.as_ref().is_some_and(|fit| fit.sigma > NOISY);
    (list, if is_noisy { REPETITIONS } else { 2 })
}
