//! What performs one run, and when a run may end early.

use serde_json::Value;

use super::{Purpose, Setting};
use crate::precision;
use crate::steadiness::{Steadiness, Verdict};

/// A run that is due.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The step of the workflow.
    pub step: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Of this setting in this step, from 1.
    pub repetition: u32,
    /// What to run.
    pub setting: Setting,
}

/// An order with its number and seed.
#[derive(Debug, Clone, Copy)]
pub struct Due<'a> {
    /// Number of the run in the study, from 1.
    pub run: u32,
    /// Seed of random offsets: another one for each run.
    pub seed: u64,
    /// What to run.
    pub order: &'a Order,
    /// Whether it may end as soon as it is steady and precise.
    pub early_end: bool,
}

/// A run that was performed.
#[derive(Debug, Clone, PartialEq)]
pub struct Performed {
    /// Seconds since the study began.
    pub started_s: f64,
    /// The same at its end.
    pub ended_s: f64,
    /// Wall-clock time of its end, RFC 3339 in UTC; `None` in virtual time.
    pub ended: Option<String>,
    /// What came of it.
    pub outcome: Performance,
    /// The command that does the same by hand; empty on a simulated device.
    pub command: Vec<String>,
    /// What was seen beside the run.
    pub counters: Option<Value>,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Performance {
    /// The whole result, as `plumb run --json` prints it; boxed, it is large.
    Result(Box<Value>),
    /// It failed; why.
    Failed(String),
    /// The user ended it.
    Aborted,
}

/// Performs runs: a child process on a real target, or a simulated device in virtual time.
pub trait Perform {
    /// Goes on `seconds` after the study began: where an interrupted one stopped.
    fn resume_at(&mut self, seconds: f64);

    /// Leaves the device alone for some seconds, or until the user wants an end.
    fn rest(&mut self, seconds: f64);

    /// Performs one run, and blocks until it is over.
    fn perform(&mut self, due: Due) -> Performed;
}

/// Seconds that are measured at least before a run may end early (method, 5.2).
const EARLIEST_S: usize = 30;
/// Independent values that a run is worth at least before it may end early: half as many again as 5.2 asks of a run that
/// takes its whole time, since whoever looks often ends where chance made the interval narrow
/// (docs/decisions/0094-early-ends-are-paid-for.md).
const EFFECTIVE_LEAST: f64 = 1.5 * precision::EFFECTIVE_LEAST;
/// Standard errors of the correlation of neighbours that are added to it before it is believed to be that small.
const CORRELATION_ERRORS: f64 = 1.0;
/// Half widths of the intervals of throughput and latency that suffice.
const PRECISE: (f64, f64) = (0.01, 0.02);

/// Whether a measurement of so many seconds is long enough to end before its time.
#[must_use]
pub fn may_end_early(measured_s: u32) -> bool {
    plumb_units::convert::to_usize(u64::from(measured_s)) > EARLIEST_S
}

/// Whether a measurement with these values per second says enough: steady (5.1) and precise (5.2). A latency is NaN where nothing completed; there are none where
/// none was measured.
#[must_use]
pub fn says_enough(iops: &[f64], latency: &[f64]) -> bool {
    if iops.len() < EARLIEST_S {
        return false;
    }
    let found = Steadiness::of_run(iops, latency, 1.0);
    let (iops, latency) = (&iops[found.cut()..], latency.get(found.cut()..).unwrap_or(&[]));
    let precise = |series: &[f64], wanted: f64| {
        precision::of_series(series).is_some_and(|interval| {
            interval.cautious() <= wanted
                && interval.effective.min(surely_worth(&interval, series.len())) >= EFFECTIVE_LEAST
        })
    };
    matches!(found.verdict, Verdict::Steady(_))
        && iops.len() >= EARLIEST_S
        && precise(iops, PRECISE.0)
        && (latency.is_empty() || precise(latency, PRECISE.1))
}

/// How many independent values a series is worth if its neighbours resemble each other by a standard error more than was
/// seen [Bartlett 1946].
fn surely_worth(interval: &precision::MeanInterval, count: usize) -> f64 {
    let (count, seen) = (count as f64, interval.effective_by_neighbours);
    let correlation = (count - seen) / (count + seen);
    let error = ((1.0 - correlation.powi(2)) / count).sqrt();
    let most = (correlation + CORRELATION_ERRORS * error).min(0.999);
    count * (1.0 - most) / (1.0 + most)
}
