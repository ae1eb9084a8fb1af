//! Sums over threads and targets: what tables and documents show besides single rows.

use std::collections::BTreeMap;

use plumb_io::Errno;
use plumb_units::Nanos;

use super::model::{DirectionResult, Plausibility, RunResult, SpanResult, TargetResult};
use crate::tally::{IopsSeries, LatencySet};

/// Below this a measurement counts as none (spec 7.4: 0.1 µs).
const SHORTEST_MEASUREMENT: Nanos = Nanos(100);

/// What became of a time span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanState {
    /// There are figures.
    Measured,
    /// Stopped before the measurement began.
    Interrupted,
    /// Ended by an error; its figures are not shown (spec 6.1).
    Failed,
    /// Its turn never came.
    NotRun,
}

impl SpanState {
    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::NotRun => "not_run",
        }
    }
}

impl Plausibility {
    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Suspicious => "suspicious",
        }
    }
}

impl SpanResult {
    /// What became of it.
    #[must_use]
    pub fn state(&self) -> SpanState {
        if !self.failures.is_empty() {
            SpanState::Failed
        } else if self.elapsed >= SHORTEST_MEASUREMENT {
            SpanState::Measured
        } else if self.threads.is_empty() && self.phases == Default::default() {
            SpanState::NotRun
        } else {
            SpanState::Interrupted
        }
    }

    /// Whether its figures are shown.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.state() == SpanState::Measured
    }

    /// Everything its threads did.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures::of(self.threads.iter().flat_map(|thread| &thread.targets))
    }

    /// Reads and writes of all targets by interval; `None` without intervals (`-D`).
    #[must_use]
    pub fn intervals(&self) -> Option<(IopsSeries, IopsSeries)> {
        let (first, rest) = self.series.split_first()?;
        let (mut read, mut write) = (first.read.clone(), first.write.clone());
        for target in rest {
            read.merge(&target.read);
            write.merge(&target.write);
        }
        Some((read, write))
    }
}

impl RunResult {
    /// The time spans whose figures are shown.
    pub fn measured(&self) -> impl Iterator<Item = &SpanResult> + Clone {
        self.time_spans.iter().filter(|span| span.is_measured())
    }
}

impl DirectionResult {
    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.io_count += other.io_count;
        merge_option(&mut self.latency, other.latency.as_ref(), LatencySet::merge);
        self.failed.merge(&other.failed);
    }

    /// I/Os per second.
    #[must_use]
    pub fn iops(&self, elapsed: Nanos) -> f64 {
        per_second(self.io_count as f64, elapsed)
    }

    /// Bytes per second.
    #[must_use]
    pub fn bytes_per_s(&self, elapsed: Nanos) -> f64 {
        per_second(self.bytes as f64, elapsed)
    }

    /// MiB per second.
    #[must_use]
    pub fn mib_per_s(&self, elapsed: Nanos) -> f64 {
        per_second(self.bytes as f64 / 1_048_576.0, elapsed)
    }
}

fn merge_option<T: Clone>(mine: &mut Option<T>, theirs: Option<&T>, merge: impl Fn(&mut T, &T)) {
    match (mine.as_mut(), theirs) {
        (Some(mine), Some(theirs)) => merge(mine, theirs),
        (None, Some(theirs)) => *mine = Some(theirs.clone()),
        (_, None) => {}
    }
}

/// 0 over no time at all (D-31).
fn per_second(amount: f64, elapsed: Nanos) -> f64 {
    if elapsed == Nanos::ZERO { 0.0 } else { amount / elapsed.as_secs_f64() }
}

impl TargetResult {
    /// Reads and writes together.
    #[must_use]
    pub fn total(&self) -> DirectionResult {
        sum(&self.read, &self.write)
    }
}

fn sum(read: &DirectionResult, write: &DirectionResult) -> DirectionResult {
    let mut total = read.clone();
    total.merge(write);
    total
}

/// Several threads and targets together.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Reads.
    pub read: DirectionResult,
    /// Writes.
    pub write: DirectionResult,
    /// Failed I/Os by error number.
    pub errors: BTreeMap<Errno, u64>,
    /// I/Os that moved fewer bytes than asked for.
    pub short_transfers: u64,
}

impl Figures {
    /// The sum of `targets`.
    #[must_use]
    pub fn of<'a>(targets: impl IntoIterator<Item = &'a TargetResult>) -> Self {
        let mut figures = Self::default();
        for target in targets {
            figures.read.merge(&target.read);
            figures.write.merge(&target.write);
            for (errno, count) in &target.errors {
                *figures.errors.entry(*errno).or_default() += count;
            }
            figures.short_transfers += target.short_transfers;
        }
        figures
    }

    /// Adds what another time span counted.
    pub fn merge_counts(&mut self, other: &Self) {
        for (mine, theirs) in [(&mut self.read, &other.read), (&mut self.write, &other.write)] {
            mine.merge(theirs);
        }
        for (errno, count) in &other.errors {
            *self.errors.entry(*errno).or_default() += count;
        }
        self.short_transfers += other.short_transfers;
    }

    /// Reads and writes together.
    #[must_use]
    pub fn total(&self) -> DirectionResult {
        sum(&self.read, &self.write)
    }

    /// Failed I/Os.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::model::{Failure, PhaseTimes, ThreadResult};

    #[test]
    fn a_span_is_measured_from_a_tenth_of_a_microsecond_on() {
        let begun = PhaseTimes { warmup: Some(Nanos(0)), ..PhaseTimes::default() };
        for (elapsed, phases, failures, want) in [
            (100, begun, 0, SpanState::Measured),
            (99, begun, 0, SpanState::Interrupted),
            (0, PhaseTimes::default(), 0, SpanState::NotRun),
            (100, begun, 1, SpanState::Failed),
        ] {
            let span = SpanResult {
                elapsed: Nanos(elapsed),
                phases,
                failures: vec![Failure::new("io", "it failed"); failures],
                ..SpanResult::default()
            };
            assert_eq!(span.state(), want);
        }
    }

    #[test]
    fn figures_add_up_and_rates_over_no_time_are_zero() {
        let target = |errno, bytes| TargetResult {
            read: DirectionResult { bytes, io_count: 1, ..DirectionResult::default() },
            write: DirectionResult { bytes: 1, io_count: 2, ..DirectionResult::default() },
            errors: [(Errno(errno), 3)].into(),
            short_transfers: 4,
            ..TargetResult::default()
        };
        let thread = ThreadResult { targets: vec![target(5, 10), target(5, 20)], ..<_>::default() };
        let other = ThreadResult { targets: vec![target(28, 30)], ..ThreadResult::default() };
        let span = SpanResult { threads: vec![thread, other], ..SpanResult::default() };
        let figures = span.figures();
        let total = figures.total();
        assert_eq!((figures.read.bytes, total.bytes, total.io_count), (60, 63, 9));
        assert_eq!(figures.errors, [(Errno(5), 6), (Errno(28), 3)].into());
        assert_eq!((figures.error_count(), figures.short_transfers), (9, 12));
        assert_eq!(total.iops(Nanos::from_secs(2)), 4.5);
        assert_eq!((total.iops(Nanos::ZERO), total.mib_per_s(Nanos::ZERO)), (0.0, 0.0));
    }
}
