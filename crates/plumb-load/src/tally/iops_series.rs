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
    /// Nothing completed.
    pub const EMPTY: Self =
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
        let capacity = Self::capacity(interval_ms, duration_s);
        Self {
            interval: Nanos::from_millis(interval_ms.max(1).into()),
            cells: vec![IntervalCell::EMPTY; convert::to_usize(capacity)].into_boxed_slice(),
            last: None,
        }
    }

    /// Intervals of a measurement.
    #[must_use]
    pub fn capacity(interval_ms: u32, duration_s: u32) -> u64 {
        (u64::from(duration_s) * 1000).div_ceil(u64::from(interval_ms.max(1)))
    }

    /// Bytes of memory that a series of them takes.
    #[must_use]
    pub fn bytes(interval_ms: u32, duration_s: u32) -> u64 {
        let cell = convert::to_u64(size_of::<IntervalCell>());
        Self::capacity(interval_ms, duration_s).saturating_mul(cell)
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

/// Statistics (spec 9).
impl IntervalCell {
    /// Adds what `other` counted; the minimum of an empty cell says nothing (D-12).
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Smallest latency in milliseconds; 0 when empty.
    #[must_use]
    pub fn min_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.min as f64 / 1e6 }
    }

    /// Largest latency in milliseconds; 0 when empty.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        self.max as f64 / 1e6
    }

    /// Mean latency in milliseconds; 0 when empty.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 / 1e6 }
    }

    /// Deviation of the latencies in milliseconds: sqrt((Σx² − (Σx)²/n)/n); 0 when empty.
    #[must_use]
    pub fn stddev_ms(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let (count, sum) = (self.count as f64, self.sum as f64);
        // Rounding may leave a little less than nothing of equal values.
        ((self.sum_of_squares - sum * sum / count) / count).max(0.0).sqrt() / 1e6
    }
}

/// Statistics (spec 9).
impl IopsSeries {
    /// min(capacity, 1 + interval of the last completion): empty intervals in between count, those
    /// after the last completion do not exist.
    #[must_use]
    pub fn valid_intervals(&self) -> u64 {
        let seen = self.last.map_or(0, |last| last.saturating_add(1));
        seen.min(convert::to_u64(self.cells.len()))
    }

    /// The valid cells.
    #[must_use]
    pub fn valid_cells(&self) -> &[IntervalCell] {
        &self.cells[..convert::to_usize(self.valid_intervals())]
    }

    /// Adds what `other` counted, interval by interval; the larger capacity and the later last
    /// completion hold.
    ///
    /// # Panics
    /// When the intervals differ in length: such series have nothing in common.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.interval, other.interval, "intervals of merged series are equally long");
        if other.cells.len() > self.cells.len() {
            let mut cells = std::mem::take(&mut self.cells).into_vec();
            cells.resize(other.cells.len(), IntervalCell::EMPTY);
            self.cells = cells.into_boxed_slice();
        }
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            mine.merge(theirs);
        }
        self.last = self.last.max(other.last);
    }

    /// Deviation of the I/Os per second over the valid intervals; 0 without any.
    #[must_use]
    pub fn iops_stddev(&self) -> f64 {
        let cells = self.valid_cells();
        if cells.is_empty() {
            return 0.0;
        }
        let intervals = convert::to_u64(cells.len()) as f64;
        let mean = cells.iter().map(|cell| cell.count as f64).sum::<f64>() / intervals;
        let squares = cells.iter().map(|cell| (cell.count as f64 - mean).powi(2)).sum::<f64>();
        (squares / intervals).sqrt() / self.interval.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completions at these milliseconds, each taking as many nanoseconds as it is late.
    fn series(interval_ms: u32, duration_s: u32, at_ms: &[u64]) -> IopsSeries {
        let mut series = IopsSeries::new(interval_ms, duration_s);
        for at in at_ms {
            series.record(Nanos::from_millis(*at), 4096, Nanos(*at));
        }
        series
    }

    fn counts(series: &IopsSeries) -> Vec<u64> {
        series.valid_cells().iter().map(|cell| cell.count).collect()
    }

    #[test]
    fn only_intervals_up_to_the_last_completion_are_valid() {
        let cases: [(&[u64], &[u64], f64); 5] = [
            (&[], &[], 0.0),
            (&[0, 1000, 1100, 2000], &[1, 2], 0.5),
            (&[500, 2500], &[1, 0, 1], 0.471_404_520_791_031_7),
            (&[9999], &[0, 0, 0], 0.0),
            (&[0, 1, 2], &[3], 0.0),
        ];
        for (at, want, deviation) in cases {
            let capacity = if at == cases[1].0 { 2 } else { 3 };
            let series = series(1000, capacity, at);
            assert_eq!(counts(&series), want, "{at:?}");
            assert_eq!(series.iops_stddev(), deviation, "{at:?}");
        }
    }

    #[test]
    fn merging_keeps_the_larger_capacity_and_the_later_end() {
        let short = series(100, 1, &[5, 10, 205, 307]);
        let long = series(100, 2, &[5, 105, 110, 1950]);
        for (mut mine, theirs) in [(short.clone(), &long), (long.clone(), &short)] {
            mine.merge(theirs);
            let want = [&[3, 2, 1, 1][..], &[0; 15], &[1]].concat();
            assert_eq!(counts(&mine), want);
        }
    }

    #[test]
    fn minima_of_merged_intervals_ignore_empty_ones() {
        let mut mine = series(1000, 2, &[1500]);
        mine.merge(&series(1000, 2, &[500]));
        let minima: Vec<f64> = mine.cells().iter().map(IntervalCell::min_ms).collect();
        assert_eq!(minima, [500.0 / 1e6, 1500.0 / 1e6]);
        assert_eq!(IntervalCell::EMPTY.min_ms(), 0.0);
    }

    #[test]
    fn latencies_of_an_interval_have_moments() {
        let mut series = IopsSeries::new(1000, 1);
        for millis in [1, 2, 3] {
            series.record(Nanos(0), 0, Nanos::from_millis(millis));
        }
        let cell = series.cells()[0];
        assert_eq!((cell.min_ms(), cell.max_ms(), cell.mean_ms()), (1.0, 3.0, 2.0));
        assert!((cell.stddev_ms() - 0.816_496_580_927_726).abs() < 1e-9, "{}", cell.stddev_ms());
    }
}
