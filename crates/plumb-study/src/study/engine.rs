//! The loop that works a study off: ask what is due, perform it, write it down.

use super::journal::Journal;
use super::perform::{Due, Order, Perform, Performance, Performed};
use super::random::Random;
use super::record::{Outcome, Purpose, RunRecord};
use super::summary::summarise;
use super::{Resumption, Setting, StudyError, StudyFolder, reference};

/// What follows from the runs so far.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This run.
    Run(Box<Order>),
    /// Nothing more.
    Done,
    /// There would be more, but the time is up.
    TimeIsUp,
}

/// How many runs a study takes whose ranges are extended where a curve still rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// By what was found so far.
    pub planned: u64,
    /// If every range that is still open is extended as often as it may be.
    pub extended: u64,
    /// Runs of a range that is being run: before they are there, nothing changes what is planned.
    pub settled: u64,
}

/// Which runs a study needs: a pure function of the plan and the runs so far, so that a study goes on after an
/// interruption as it would have without.
pub trait Planner {
    /// What follows. `runs` holds finished ones only, never aborted ones.
    fn next(&self, runs: &[RunRecord]) -> Next;

    /// Seed of the study.
    fn seed(&self) -> u64;

    /// Whether a run may end as soon as it is steady and precise.
    fn early_end(&self, order: &Order) -> bool;

    /// Seconds to leave the device alone between a run and the next (method, 4.2).
    fn rest_s(&self, last: &Setting, next: &Order) -> f64;

    /// All that is still to come in its order, where that does not depend on what is found; `None` where it does.
    fn known(&self, runs: &[RunRecord]) -> Option<Vec<&Order>>;

    /// How many runs it takes in all, these among them, where what is found may add to them and nothing bounds it before; `None`
    /// where the plan says it.
    fn extent(&self, _runs: &[RunRecord]) -> Option<Extent> {
        None
    }

    /// The setting that shows, when a study goes on, whether the device is what it was (method, 4.3): one that was
    /// run before. `None` where none is worth its time.
    fn reference(&self, runs: &[RunRecord]) -> Option<Setting>;
}

/// What is not as it was when the study began, as whoever goes on with it found; told in the findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// When that was seen, RFC 3339 in UTC; `None` in virtual time.
    pub at: Option<String>,
    /// What differs, in words.
    pub what: Vec<String>,
}

/// What a study tells whoever watches it.
pub trait Watch {
    /// The reference setting is run before an interrupted study goes on.
    fn checks(&mut self, order: &Order);
    /// A run begins.
    fn begins(&mut self, run: u32, order: &Order);
    /// A run is over and written down.
    fn finished(&mut self, record: &RunRecord);
    /// Whether no further run is to be begun.
    fn stops(&mut self) -> bool;
}

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Every run that the plan asks for is there.
    Complete,
    /// The time that was given is up.
    TimeIsUp,
    /// It was stopped, and can be resumed.
    Stopped,
    /// Runs failed one after the other: the target cannot be measured.
    Failing,
}

/// Failed runs in a row after which the study gives up.
const FAILURES_MOST: usize = 3;

/// Works a study off: from its beginning, or from where it was interrupted.
///
/// # Errors
/// Something cannot be written down. All runs written before stay.
pub fn work(
    folder: &StudyFolder,
    journal: &mut Journal,
    planner: &dyn Planner,
    performer: &mut dyn Perform,
    watch: &mut dyn Watch,
    changed: &Changed,
) -> Result<End, StudyError> {
    if go_on(folder, journal.records(), planner, performer, watch, changed)? == Went::Stopped {
        return Ok(End::Stopped);
    }
    performer.resume_at(journal.records().last().map_or(0.0, |record| record.ended_s));
    // What failed before it goes on is tried again; what fails from here on is not, until it goes on once more.
    let tried_before = journal.records().len();
    loop {
        let finished = finished(journal.records(), tried_before);
        let failed = |record: &&RunRecord| matches!(record.outcome, Outcome::Failed(_));
        if finished.iter().rev().take_while(failed).count() >= FAILURES_MOST {
            return Ok(End::Failing);
        }
        let order = match planner.next(&finished) {
            Next::Run(order) => order,
            Next::Done => return Ok(End::Complete),
            Next::TimeIsUp => return Ok(End::TimeIsUp),
        };
        if watch.stops() {
            return Ok(End::Stopped);
        }
        let run = journal.records().last().map_or(1, |record| record.run + 1);
        watch.begins(run, &order);
        rest(planner, performer, journal.records().last(), &order);
        // Whoever ends a study while its device rests wants no run to begin.
        if watch.stops() {
            return Ok(End::Stopped);
        }
        let performed = perform(planner, performer, run, &order);
        if performed.outcome == Performance::Aborted {
            return Ok(End::Stopped);
        }
        let name = match &performed.outcome {
            Performance::Result(result) => Some(folder.write_result(run, result)?),
            Performance::Failed(_) | Performance::Aborted => None,
        };
        let record = record(run, *order, performed, name);
        journal.append(record)?;
        if let Some(record) = journal.records().last() {
            watch.finished(record);
        }
    }
}

/// The runs of a study without a disk: what it would do on a simulated device, from beginning to end.
#[must_use]
pub fn rehearse(planner: &dyn Planner, performer: &mut dyn Perform) -> Vec<RunRecord> {
    rehearse_from(planner, performer, &[])
}

/// The runs that follow those before, without a disk.
pub(super) fn rehearse_from(
    planner: &dyn Planner,
    performer: &mut dyn Perform,
    before: &[RunRecord],
) -> Vec<RunRecord> {
    let mut runs: Vec<RunRecord> = before.to_vec();
    while let Next::Run(order) = planner.next(&runs) {
        let run = plumb_units::convert::to_u32(runs.len()) + 1;
        rest(planner, performer, runs.last(), &order);
        let performed = perform(planner, performer, run, &order);
        if performed.outcome == Performance::Aborted {
            break;
        }
        runs.push(record(run, *order, performed, None));
    }
    runs.split_off(before.len())
}

fn perform(
    planner: &dyn Planner,
    performer: &mut dyn Perform,
    run: u32,
    order: &Order,
) -> Performed {
    let seed = Random::new(planner.seed(), run.into()).next() >> 32;
    performer.perform(Due { run, seed, order, early_end: planner.early_end(order) })
}

fn rest(
    planner: &dyn Planner,
    performer: &mut dyn Perform,
    last: Option<&RunRecord>,
    order: &Order,
) {
    let seconds = last.map_or(0.0, |last| planner.rest_s(&last.setting, order));
    if seconds > 0.0 {
        performer.rest(seconds);
    }
}

/// Whether a study may go on.
#[derive(PartialEq, Eq)]
enum Went {
    On,
    Stopped,
}

/// Numbers of reference runs on going on, beyond those of any study: their seeds and noise are their own.
const REFERENCES_FROM: u32 = 1_000_000;

/// Runs the reference setting before an interrupted study goes on, and writes down what it gave and what changed.
///
/// The run is neither in the journal nor on the study's clock: what follows is what would have followed.
fn go_on(
    folder: &StudyFolder,
    records: &[RunRecord],
    planner: &dyn Planner,
    performer: &mut dyn Perform,
    watch: &mut dyn Watch,
    changed: &Changed,
) -> Result<Went, StudyError> {
    let runs = finished(records, records.len());
    let Some(last) = records.last().filter(|_| matches!(planner.next(&runs), Next::Run(_))) else {
        return Ok(Went::On);
    };
    let mut resumptions = folder.resumptions()?;
    let mut made: Vec<RunRecord> = Vec::new();
    if let Some(setting) = planner.reference(&runs) {
        let count = plumb_units::convert::to_u32(resumptions.records().len());
        for nth in 0..REFERENCES_MOST {
            let number = count.saturating_mul(REFERENCES_MOST).saturating_add(nth);
            let order = Order {
                step: RESUMED.to_owned(),
                purpose: Purpose::Anchor,
                repetition: number + 1,
                setting: setting.clone(),
            };
            if watch.stops() {
                return Ok(Went::Stopped);
            }
            performer.resume_at(last.ended_s);
            watch.checks(&order);
            let run = REFERENCES_FROM.saturating_add(number);
            let performed = perform(planner, performer, run, &order);
            if performed.outcome == Performance::Aborted {
                return Ok(Went::Stopped);
            }
            made.push(record(run, order, performed, None));
            // A single run that is off may be off by itself: two more tell.
            let differs = reference::standing(&made[0], last.run, &runs).is_some_and(|s| s.differs);
            if !differs {
                break;
            }
        }
    }
    let references = plumb_units::convert::to_u32(made.len());
    resumptions.append(Resumption {
        after_run: last.run,
        at: changed.at.clone(),
        changes: changed.what.clone(),
        reference: middle(made),
        references,
    })?;
    Ok(Went::On)
}

/// Runs of the reference setting on going on at most.
const REFERENCES_MOST: u32 = 3;

/// The run in the middle by throughput; one that gave none is the lowest.
fn middle(mut runs: Vec<RunRecord>) -> Option<RunRecord> {
    let rate = |run: &RunRecord| run.usable().map_or(0.0, |summary| summary.iops);
    runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    (!runs.is_empty()).then(|| runs.swap_remove(runs.len() / 2))
}

/// The step of reference runs on going on.
const RESUMED: &str = "resumed";

/// Runs that count: those that the user ended are run again, and so are those that failed among the first
/// `tried_before`.
fn finished(records: &[RunRecord], tried_before: usize) -> Vec<RunRecord> {
    let counts = |(at, record): &(usize, &RunRecord)| match record.outcome {
        Outcome::Measured => true,
        Outcome::Aborted => false,
        Outcome::Failed(_) => *at >= tried_before,
    };
    records.iter().enumerate().filter(counts).map(|(_, record)| record.clone()).collect()
}

/// The runs that findings are made of: without those that failed and were tried again after that, and those that the
/// user ended. Which are missing: failed, and never measured since.
#[must_use]
pub fn counted_runs(records: &[RunRecord]) -> (Vec<RunRecord>, Vec<RunRecord>) {
    let failed = |record: &RunRecord| matches!(record.outcome, Outcome::Failed(_));
    let is_tried_again = |(at, record): (usize, &RunRecord)| {
        let later = &records[at + 1..];
        later.iter().any(|other| other.key == record.key && other.outcome != Outcome::Aborted)
    };
    let kept = records.iter().enumerate().filter(|(at, record)| match record.outcome {
        Outcome::Measured => true,
        Outcome::Aborted => false,
        Outcome::Failed(_) => !is_tried_again((*at, record)),
    });
    let kept: Vec<RunRecord> = kept.map(|(_, record)| record.clone()).collect();
    let missing = kept.iter().filter(|record| failed(record)).cloned().collect();
    (kept, missing)
}

fn record(run: u32, order: Order, performed: Performed, result: Option<String>) -> RunRecord {
    let (outcome, summary) = match performed.outcome {
        Performance::Result(result) => match summarise(&result, &order.setting) {
            Ok(summary) => (Outcome::Measured, Some(summary)),
            Err(why) => (Outcome::Failed(why), None),
        },
        Performance::Failed(why) => (Outcome::Failed(why), None),
        Performance::Aborted => (Outcome::Aborted, None),
    };
    RunRecord {
        run,
        key: key(&order),
        step: order.step,
        purpose: order.purpose,
        repetition: order.repetition,
        setting: order.setting,
        started_s: performed.started_s,
        ended_s: performed.ended_s,
        ended: performed.ended,
        outcome,
        summary,
        result,
        command: performed.command,
        counters: performed.counters,
    }
}

/// 64 bits of FNV-1a of what makes the run: step, purpose, repetition and setting.
pub(super) fn key(order: &Order) -> String {
    let text =
        format!("{}|{:?}|{}|{:?}", order.step, order.purpose, order.repetition, order.setting);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
