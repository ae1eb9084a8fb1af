//! What happened in each interval (`-D`): fixed counters, allocated before the start (spec 9).

use plumb_units::{Nanos, convert};

/// One direction of one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalCell {
    /// Completions.
    pub count: u64,
    /// Bytes moved by them.
    pub bytes: u64,
    /// Sum of their latencies in nanoseconds.
    pub sum: u64,
    /// Sum of the squares of their latencies in nanoseconds².
    pub sum_of_squares: f64,
    /// Smallest latency in nanoseconds; `u64::MAX` when empty.
    pub min: u64,
    /// Largest latency in nanoseconds.
    pub max: u64,
}

impl IntervalCell {
    const EMPTY: Self =
        Self { count: 0, bytes: 0, sum: 0, sum_of_squares: 0.0, min: u64::MAX, max: 0 };
}

/// Completions by interval for one thread, target and direction.
#[derive(Debug, Clone)]
pub struct IopsSeries {
    interval: Nanos,
    cells: Box<[IntervalCell]>,
    /// Number of the interval of the last completion seen, stored or not.
    last: Option<u64>,
}

impl IopsSeries {
    /// Room for ceil(`duration_s` · 1000 / `interval_ms`) intervals; `interval_ms` is at least 1.
    #[must_use]
    pub fn new(interval_ms: u32, duration_s: u32) -> Self {
        let capacity = (u64::from(duration_s) * 1000).div_ceil(u64::from(interval_ms.max(1)));
        Self {
            interval: Nanos::from_millis(interval_ms.max(1).into()),
            cells: vec![IntervalCell::EMPTY; convert::to_usize(capacity)].into_boxed_slice(),
            last: None,
        }
    }

    /// Length of an interval.
    #[must_use]
    pub fn interval(&self) -> Nanos {
        self.interval
    }

    /// All cells, valid or not.
    #[must_use]
    pub fn cells(&self) -> &[IntervalCell] {
        &self.cells
    }

    /// The interval of the last completion recorded, stored or not.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// Counts a completion `at` after the measurement's start.
    #[inline(always)]
    pub fn record(&mut self, at: Nanos, bytes: u64, latency: Nanos) {
        let number = at.0 / self.interval.0;
        self.last = self.last.max(Some(number));
        if let Some(cell) = self.cells.get_mut(convert::to_usize(number)) {
            cell.count += 1;
            cell.bytes += bytes;
            cell.sum += latency.0;
            cell.sum_of_squares += latency.0 as f64 * latency.0 as f64;
            cell.min = cell.min.min(latency.0);
            cell.max = cell.max.max(latency.0);
        }
    }
}
