//! What one thread counts for one target; everything is allocated before the start.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use plumb_io::Errno;
use plumb_units::Nanos;

use crate::result::model::{DirectionResult, FailedIos};
use crate::tally::{Histogram, LatencySet, OpenTally};

/// How much is measured per I/O; the loop is compiled once per level.
pub trait Level {
    /// Whether I/Os are stamped.
    const STAMPS: bool;
    /// Whether intervals are kept.
    const INTERVALS: bool;
    /// Whether I/Os start at times fixed in advance.
    const OPEN: bool = false;
    /// Whether every I/O is kept, to be held against what the device saw.
    const WITNESSED: bool = false;
    /// Whether each I/O is looked at by itself, even among others of the same latency.
    const ONE_BY_ONE: bool = Self::INTERVALS || Self::OPEN || Self::WITNESSED;
}

/// Counts only.
#[derive(Debug)]
pub struct Counts;
/// Counts and latencies (`-L`).
#[derive(Debug)]
pub struct Latencies;
/// Counts, latencies and intervals (`-D`).
#[derive(Debug)]
pub struct Intervals;

/// Latencies, and every I/O by itself (`--truth`).
#[derive(Debug)]
pub struct Witnessed;

/// What `L` counts in an open loop, where every I/O is stamped.
#[derive(Debug)]
pub struct Open<L>(PhantomData<L>);

impl Level for Counts {
    const STAMPS: bool = false;
    const INTERVALS: bool = false;
}
impl Level for Latencies {
    const STAMPS: bool = true;
    const INTERVALS: bool = false;
}
impl Level for Intervals {
    const STAMPS: bool = true;
    const INTERVALS: bool = true;
}

impl Level for Witnessed {
    const STAMPS: bool = true;
    const INTERVALS: bool = false;
    const WITNESSED: bool = true;
}

impl<L: Level> Level for Open<L> {
    const STAMPS: bool = true;
    const INTERVALS: bool = L::INTERVALS;
    const OPEN: bool = true;
}

/// How many different error numbers are told apart per target; further ones count as the last.
const ERRNOS_MAX: usize = 16;

/// Reads or writes.
#[derive(Debug)]
pub(super) struct DirectionTally<L> {
    bytes: u64,
    /// Where latencies are not measured.
    io_count: u64,
    /// Holds nothing where latencies are not measured.
    latency: Histogram,
    failed: FailedIos,
    level: PhantomData<L>,
}

impl<L: Level> DirectionTally<L> {
    fn new() -> Self {
        Self {
            bytes: 0,
            io_count: 0,
            latency: if L::STAMPS { Histogram::new() } else { Histogram::without_buckets() },
            failed: FailedIos::default(),
            level: PhantomData,
        }
    }

    /// Counts a completion.
    #[inline(always)]
    pub(super) fn record(&mut self, bytes: u32, latency: Nanos) {
        self.bytes += u64::from(bytes);
        // The histogram counts as well, and once is enough.
        if L::STAMPS {
            self.latency.record(latency.0);
        } else {
            self.io_count += 1;
        }
    }

    /// Counts `alike` completions of `bytes` together, each of which took `latency`.
    #[inline(always)]
    pub(super) fn record_alike(&mut self, bytes: u64, alike: u32, latency: Nanos) {
        self.bytes += bytes;
        if L::STAMPS {
            self.latency.record_alike(latency.0, alike);
        } else {
            self.io_count += u64::from(alike);
        }
    }

    /// Counts a failure of an I/O that asked for `bytes` and took `time`.
    #[cold]
    pub(super) fn fail(&mut self, bytes: u32, time: Nanos) {
        self.failed.merge(&FailedIos { count: 1, bytes: bytes.into(), latency_sum: time.0 });
    }

    fn into_result(self) -> DirectionResult {
        DirectionResult {
            bytes: self.bytes,
            io_count: if L::STAMPS { self.latency.count() } else { self.io_count },
            latency: L::STAMPS.then_some(LatencySet::Binned(self.latency)),
            failed: self.failed,
        }
    }
}

/// One target of one thread.
#[derive(Debug)]
pub(super) struct TargetTally<L> {
    pub(super) read: DirectionTally<L>,
    pub(super) write: DirectionTally<L>,
    pub(super) short_transfers: u64,
    errors: [(Errno, u64); ERRNOS_MAX],
}

impl<L: Level> TargetTally<L> {
    pub(super) fn new() -> Self {
        Self {
            read: DirectionTally::new(),
            write: DirectionTally::new(),
            short_transfers: 0,
            errors: [(Errno(0), 0); ERRNOS_MAX],
        }
    }

    /// Counts a failed I/O: it never becomes one of the I/Os (D-21).
    #[cold]
    pub(super) fn error(&mut self, errno: Errno) {
        let free = |(known, count): &(Errno, u64)| *count == 0 || *known == errno;
        let place = self.errors.iter().position(free).unwrap_or(ERRNOS_MAX - 1);
        let (known, count) = &mut self.errors[place];
        if *count == 0 {
            *known = errno;
        }
        *count += 1;
    }

    pub(super) fn into_counts(self, open: Option<OpenTally>) -> TargetCounts {
        TargetCounts {
            read: self.read.into_result(),
            write: self.write.into_result(),
            errors: self.errors.into_iter().filter(|(_, count)| *count > 0).collect(),
            short_transfers: self.short_transfers,
            open,
        }
    }
}

/// What one thread counted for one target.
#[derive(Debug)]
pub struct TargetCounts {
    /// Reads.
    pub read: DirectionResult,
    /// Writes.
    pub write: DirectionResult,
    /// Failed I/Os by error number.
    pub errors: BTreeMap<Errno, u64>,
    /// I/Os that moved fewer bytes than asked for.
    pub short_transfers: u64,
    /// In an open loop.
    pub open: Option<OpenTally>,
}
