//! What load threads share with whoever steers them: a few words, read once per batch.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plumb_units::Nanos;

/// The steering wheel of one time span.
#[derive(Debug)]
pub struct Controls {
    accounting: AtomicBool,
    stop: AtomicBool,
    start: AtomicU64,
    /// `u64::MAX` before it.
    measurement_start: AtomicU64,
    /// `u64::MAX` before it.
    measurement_end: AtomicU64,
}

impl Default for Controls {
    fn default() -> Self {
        Self {
            accounting: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            start: AtomicU64::new(0),
            measurement_start: AtomicU64::new(u64::MAX),
            measurement_end: AtomicU64::new(u64::MAX),
        }
    }
}

impl Controls {
    /// The start signal: meters count from here.
    pub fn start(&self, now: Nanos) {
        self.start.store(now.0, Ordering::Release);
    }

    /// When the start signal was given.
    #[must_use]
    pub fn started_at(&self) -> Nanos {
        Nanos(self.start.load(Ordering::Acquire))
    }

    /// Switches accounting on; intervals count from `now`.
    pub fn measure(&self, now: Nanos) {
        self.measurement_start.store(now.0, Ordering::Release);
        self.accounting.store(true, Ordering::Release);
    }

    /// Switches accounting off. The first time counts as the end.
    pub fn end_measurement(&self, now: Nanos) {
        self.measurement_end.fetch_min(now.0, Ordering::Release);
        self.accounting.store(false, Ordering::Release);
    }

    /// Tells the threads to stop issuing.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether threads should stop.
    #[inline(always)]
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// When the measurement began and ended, once it has.
    #[must_use]
    pub fn measured(&self) -> Option<(Nanos, Nanos)> {
        let start = self.measurement_start.load(Ordering::Acquire);
        let end = self.measurement_end.load(Ordering::Acquire);
        (start < end && end < u64::MAX).then_some((Nanos(start), Nanos(end)))
    }

    /// Whether `time`, which is not in the future, lies in the measurement.
    #[must_use]
    pub fn measures(&self, time: Nanos) -> bool {
        self.measurement_start.load(Ordering::Acquire) <= time.0
            && time.0 < self.measurement_end.load(Ordering::Acquire)
    }

    /// When the measurement began, while it lasts.
    #[inline(always)]
    #[must_use]
    pub fn measuring_since(&self) -> Option<Nanos> {
        self.accounting
            .load(Ordering::Acquire)
            .then(|| Nanos(self.measurement_start.load(Ordering::Relaxed)))
    }
}

/// What one thread shows of itself while it runs. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Live {
    completions: AtomicU64,
    bytes: AtomicU64,
    latency_sum: AtomicU64,
    short_transfers: AtomicU64,
    last_short: AtomicU64,
    errors: AtomicU64,
}

/// A reading of [`Live`]: totals since the start signal, warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveReading {
    /// I/Os completed.
    pub completions: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Sum of latencies in nanoseconds, 0 when they are not measured.
    pub latency_sum: u64,
    /// I/Os that moved fewer bytes than asked for.
    pub short_transfers: u64,
    /// (bytes moved, bytes asked for) of the last of them.
    pub last_short: (u32, u32),
    /// I/Os that failed.
    pub errors: u64,
}

impl Live {
    /// Shows new totals. One writer: the thread itself.
    #[inline(always)]
    pub(super) fn publish(&self, completions: u64, bytes: u64, latency_sum: u64) {
        self.completions.store(completions, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.latency_sum.store(latency_sum, Ordering::Relaxed);
    }

    #[cold]
    pub(super) fn short_transfer(&self, moved: u32, wanted: u32) {
        self.last_short.store(u64::from(moved) << 32 | u64::from(wanted), Ordering::Relaxed);
        self.short_transfers.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    pub(super) fn error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// What it shows now.
    #[must_use]
    pub fn read(&self) -> LiveReading {
        let last_short = self.last_short.load(Ordering::Relaxed);
        LiveReading {
            completions: self.completions.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            latency_sum: self.latency_sum.load(Ordering::Relaxed),
            short_transfers: self.short_transfers.load(Ordering::Relaxed),
            last_short: (
                plumb_units::convert::low_u32(last_short >> 32),
                plumb_units::convert::low_u32(last_short),
            ),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }
}
