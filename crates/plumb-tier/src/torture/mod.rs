//! The crash checker: workloads with faults and background work on simulated disks, cut at any write,
//! and everything that was promised read back (T1, T2).
//!
//! A history is made from a seed and run once. At points strewn over its device events the disks are
//! taken as a crash might leave them: flushed writes kept, any subset of the rest, torn sectors, a disk
//! gone, a page rotten. Each state is started, read in full against an oracle that knows only the
//! requests, read again from other copies, written to, crashed once more, started and read. The same seed
//! and commit give the same histories and states.

#[cfg(test)]
mod added;
#[cfg(test)]
mod apart;
mod background;
mod beside;
#[cfg(test)]
mod cells;
#[cfg(test)]
mod clock;
mod combined;
#[cfg(test)]
mod confirmed;
#[cfg(test)]
mod damaged;
#[cfg(test)]
mod deferred;
#[cfg(test)]
mod double_faults;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod few_slots;
#[cfg(test)]
mod full_journal;
#[cfg(test)]
mod full_log;
#[cfg(test)]
mod grown;
#[cfg(test)]
mod half_done;
#[cfg(test)]
mod hanging;
mod history;
#[cfg(test)]
mod hung_slots;
mod kinds;
#[cfg(test)]
mod last_copies;
mod leaving;
#[cfg(test)]
mod left_out;
#[cfg(test)]
mod live_rot;
mod lives;
#[cfg(test)]
mod log_elsewhere;
#[cfg(test)]
mod log_rot;
mod lost_sectors;
#[cfg(test)]
mod many_caches;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod moved_unflushed;
#[cfg(test)]
mod offline;
mod older;
#[cfg(test)]
mod older_copies;
mod optimizing;
mod oracle;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod rebuilt;
#[cfg(test)]
mod ring_end;
mod rot_and_away;
#[cfg(test)]
mod rotten_end;
mod rotting;
mod run;
#[cfg(test)]
mod scanned;
#[cfg(test)]
mod short;
mod short_of_memory;
mod shrink;
mod sick;
mod situations;
#[cfg(test)]
mod spared;
#[cfg(test)]
mod spread;
#[cfg(test)]
mod stalled;
#[cfg(test)]
mod starts;
mod states;
#[cfg(test)]
mod subsets;
#[cfg(test)]
mod tests;
mod unborne;
#[cfg(test)]
mod undecided;
#[cfg(test)]
mod unread;
#[cfg(test)]
mod unverified;
#[cfg(test)]
mod vacated;
#[cfg(test)]
mod waiting;
mod wide;
mod witness;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub use combined::{COMBINATIONS, Combination, Combined};
use history::{Shape, Step};
use kinds::Kind;
use states::{Broken, Tally};
use unborne::Workload;

/// Steps of a history.
const STEPS: usize = 140;
/// Crash states of a history, at most.
const STATES: u64 = 48;
/// Of one in which more fails than a space bears: each of them goes through more lives.
const UNBORNE_STATES: u64 = 36;

/// What to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TortureOptions {
    /// Determines every history and state.
    pub seed: u64,
    /// Only the history of this seed, as a violation names it; the seed above does not matter then.
    pub history: Option<u64>,
    /// Stop after about that many states.
    pub states: Option<u64>,
    /// Stop after that long.
    pub time: Option<Duration>,
    /// Threads, each with histories of its own.
    pub threads: u32,
    /// How long a failing history is made shorter.
    pub shrinking: Duration,
    /// One history in eight is of those in which more fails than a space bears.
    pub beyond: bool,
}

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The seed of its history.
    pub history_seed: u64,
    /// What was seen.
    pub what: String,
    /// After how many device events the crash came; `None` when there was none.
    pub crash_at: Option<usize>,
    /// The pool.
    pub pool: String,
    /// The shortest history found that breaks a promise, a step a line.
    pub history: Vec<String>,
}

/// What was checked and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TortureReport {
    /// The seed that it was started with.
    pub seed: u64,
    /// The only history that was checked, if one was named.
    pub history: Option<u64>,
    /// Whether histories in which more fails than a space bears were among them.
    pub beyond: bool,
    /// Crash states that count: each different, recovered, read in full, written to, and recovered again.
    pub crash_states: u64,
    /// Of these, crashes while background work was under way: destage, checkpoint, resync, rebuild, scan.
    pub with_background: u64,
    /// Of these, crashes after a write-back cache had begun to be destaged.
    pub with_cache: u64,
    /// Of these, with extents moved between the tiers in the run.
    pub with_moves: u64,
    /// Of these, crashes in the middle of an optimization.
    pub with_optimization: u64,
    /// Of these, after a disk had failed, in runs with overwrites and flushes.
    pub demanding: u64,
    /// Of these, crashes after a retired disk had begun to be rebuilt.
    pub with_rebuild: u64,
    /// Of these, crashed a third time: after a disk had come back, or because nothing was written before.
    pub with_third_crash: u64,
    /// Of these, with a disk that was put back as it had been before.
    pub with_older_copy: u64,
    /// Of these, after a disk had failed.
    pub with_failed_disk: u64,
    /// Of these, of histories in which more may fail than the space bears.
    pub beyond_tolerance: u64,
    /// Of these, after several disks had failed, the one before the others were well again.
    pub with_several_failed: u64,
    /// Of these, after a disk had missed a generation of the configuration and gone on without its vote.
    pub with_missed_generation: u64,
    /// Of these, of pools so large that their trees have index pages, behind the first checkpoint.
    pub with_index_pages: u64,
    /// Of these, after bits of a disk had rotted while the pool served.
    pub with_live_rot: u64,
    /// Of these, with sectors that were being written when the power went and cannot be read.
    pub with_lost_sectors: u64,
    /// Of these, those of each combination that the specification's models left out.
    pub combined: Combined,
    /// Histories run.
    pub histories: u64,
    /// Whoever watched ended it before its time.
    pub interrupted: bool,
    /// Promises broken.
    pub violations: Vec<Violation>,
    /// Wall-clock time.
    pub elapsed: Duration,
    /// Processor time of the whole process meanwhile.
    pub processor_time: Duration,
}

/// Checks until states or time are used up, or a promise is broken; a history that is named is checked once, in full. `watch`
/// is told what was checked so far, after each history, and says whether to go on.
pub fn torture(
    options: &TortureOptions,
    watch: &(dyn Fn(&TortureReport) -> bool + Sync),
) -> TortureReport {
    let (start, used) = (Instant::now(), processor_time());
    let (next, states, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let TortureOptions { seed, history, beyond, .. } = *options;
    let report = TortureReport { seed, history, beyond, ..TortureReport::default() };
    let report = Mutex::new(report);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let mut tally = Tally::default();
            if history.is_some() && nth > 0 {
                break;
            }
            let check = if beyond { one_history } else { usual_history };
            let seed = history.unwrap_or_else(|| kinds::seed(history_seed(seed, nth), nth));
            let found = check(seed, options.shrinking, &mut tally);
            let total = states.fetch_add(tally.states, Ordering::Relaxed) + tally.states;
            let mut report = report.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            report.histories += 1;
            report.crash_states += tally.states;
            report.with_background += tally.background;
            report.demanding += tally.demanding;
            report.with_rebuild += tally.rebuilt;
            report.with_cache += tally.cached;
            report.with_third_crash += tally.thrice;
            report.with_older_copy += tally.outdated;
            report.with_moves += tally.moved;
            report.with_optimization += tally.optimized;
            report.with_failed_disk += tally.failed_disk;
            report.beyond_tolerance += tally.unborne;
            report.with_several_failed += tally.several;
            report.with_missed_generation += tally.voteless;
            report.with_index_pages += tally.indexed;
            report.with_live_rot += tally.rotten;
            report.with_lost_sectors += tally.lost_sectors;
            report.combined.add(&tally.combined);
            let broken = found.is_some();
            report.violations.extend(found);
            report.elapsed = start.elapsed();
            let enough = history.is_some()
                || options.states.is_some_and(|wanted| total >= wanted)
                || options.time.is_some_and(|time| start.elapsed() >= time)
                || broken;
            let ended = !watch(&report);
            report.interrupted |= ended && !enough;
            drop(report);
            if enough || ended {
                stop.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.threads.max(1) {
            scope.spawn(work);
        }
        work();
    });
    let mut report = report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    report.elapsed = start.elapsed();
    report.processor_time = processor_time().saturating_sub(used);
    report
}

/// What the process has used so far.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The seed of the n-th history.
fn history_seed(seed: u64, nth: u64) -> u64 {
    let mixed = (seed ^ 0x7065_7274).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(nth);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Checks the history of a seed.
fn one_history(seed: u64, shrinking: Duration, tally: &mut Tally) -> Option<Violation> {
    match unborne::workload(seed) {
        _ if kinds::of(seed).is_some() => usual_history(seed, shrinking, tally),
        Workload::Usual => usual_history(seed, shrinking, tally),
        workload => {
            let (shape, history) = unborne::of(workload, STEPS, seed);
            checked((&shape, &history), (seed, UNBORNE_STATES), shrinking, tally)
        }
    }
}

/// The same, whatever other workload the seed stands for: one disk fails at a time; or it is of a kind of its own.
fn usual_history(seed: u64, shrinking: Duration, tally: &mut Tally) -> Option<Violation> {
    let (shape, history, states) = usual(seed, STEPS);
    checked((&shape, &history), (seed, states), shrinking, tally)
}

/// The pool and the history of a seed, of so many steps and some, and how many of its states are checked.
fn usual(seed: u64, steps: usize) -> (Shape, Vec<Step>, u64) {
    let plain = |shape: Shape| {
        let history = situations::with(&shape, leaving::of(&shape, steps, seed), seed);
        (shape, history, STATES)
    };
    let (shape, history, states) = match kinds::of(seed) {
        None => plain(Shape::new(seed)),
        Some(Kind::Wide) => plain(wide::shape(seed)),
        Some(Kind::Short) => plain(short_of_memory::shape(seed)),
        Some(Kind::Rotting) => {
            let (shape, history, states) = plain(rotting::shape(seed));
            let history = rotting::with(&shape, history, seed);
            (shape, history, states)
        }
        Some(Kind::Beside) => {
            let (shape, history) = beside::of(steps, seed);
            (shape, history, UNBORNE_STATES)
        }
    };
    let history = optimizing::with(&shape, history, seed);
    (shape, history, states)
}

fn checked(
    (shape, history): (&Shape, &[Step]),
    (seed, states): (u64, u64),
    shrinking: Duration,
    tally: &mut Tally,
) -> Option<Violation> {
    let broken = states::check(shape, history, states, seed, tally).err()?;
    Some(explain(shape, history, seed, (broken, shrinking)))
}

fn explain(shape: &Shape, history: &[Step], seed: u64, found: (Broken, Duration)) -> Violation {
    let (shortest, broken) = shrink::shrink(shape, history, seed, STATES, found.0, found.1);
    Violation {
        history_seed: seed,
        what: broken.wrong,
        crash_at: broken.crash.map(|(point, _)| point),
        pool: format!(
            "{} disks, {} of them rotating, {} copies, {} columns, cache of {} bytes, {}",
            shape.disks,
            shape.rotating,
            shape.copies,
            shape.columns,
            shape.cache,
            shape.workload.in_words()
        ),
        history: shortest.iter().map(|step| format!("{step:?}")).collect(),
    }
}
