//! What happened in each interval (`-D`): counters of intervals, and the little of them that deviations need
//! (spec 9).

use plumb_units::{Nanos, convert};

/// One direction of one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalCell {
    /// Completions.
    pub count: u64,
    /// Bytes moved by them.
    pub bytes: u64,
    /// Sum of their latencies in nanoseconds.
    pub sum: u64,
    /// Sum of the squares of their latencies in nanoseconds², exact.
    pub sum_of_squares: u128,
    /// Smallest latency in nanoseconds; `u64::MAX` when empty.
    pub min: u64,
    /// Largest latency in nanoseconds.
    pub max: u64,
}

impl IntervalCell {
    /// Nothing completed.
    pub const EMPTY: Self =
        Self { count: 0, bytes: 0, sum: 0, sum_of_squares: 0, min: u64::MAX, max: 0 };
}

/// Completions by interval of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub fn record(&mut self, at: Nanos, bytes: u64, latency: Nanos) {
        let number = at.0 / self.interval.0;
        self.last = self.last.max(Some(number));
        if let Some(cell) = self.cells.get_mut(convert::to_usize(number)) {
            cell.record(bytes, latency);
        }
    }

    /// Adds what was counted in interval `number`; of one without room, that it was.
    pub fn add(&mut self, number: u64, counted: &IntervalCell) {
        if counted.count == 0 {
            return;
        }
        self.last = self.last.max(Some(number));
        if let Some(cell) = self.cells.get_mut(convert::to_usize(number)) {
            cell.merge(counted);
        }
    }
}

/// Statistics (spec 9).
impl IntervalCell {
    /// Counts a completion of `bytes` bytes.
    #[inline(always)]
    pub fn record(&mut self, bytes: u64, latency: Nanos) {
        self.count += 1;
        self.bytes += bytes;
        self.sum += latency.0;
        self.sum_of_squares += u128::from(latency.0) * u128::from(latency.0);
        self.min = self.min.min(latency.0);
        self.max = self.max.max(latency.0);
    }

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
        ((self.sum_of_squares as f64 - sum * sum / count) / count).max(0.0).sqrt() / 1e6
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
        self.moments().iops_stddev()
    }

    /// What deviations need of it.
    #[must_use]
    pub fn moments(&self) -> IopsMoments {
        let capacity = convert::to_u64(self.cells.len());
        let mut moments =
            IopsMoments { last: self.last, ..IopsMoments::new(self.interval, capacity) };
        self.cells.iter().for_each(|cell| moments.count(cell.count));
        moments
    }
}

/// How many I/Os completed per interval, as far as deviations need it: whole sums, so that the order in which
/// intervals come makes no difference, and no memory that grows with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IopsMoments {
    interval: Nanos,
    /// Intervals of the measurement.
    capacity: u64,
    /// As of [`IopsSeries::last`].
    last: Option<u64>,
    /// I/Os of all intervals.
    sum: u64,
    /// Sum of the squares of the I/Os of each interval.
    squares: u128,
}

impl IopsMoments {
    /// Of no completion, in a measurement of `capacity` intervals.
    #[must_use]
    pub fn new(interval: Nanos, capacity: u64) -> Self {
        Self { interval, capacity, last: None, sum: 0, squares: 0 }
    }

    /// Adds all of interval `number`, which is told once: `count` I/Os.
    pub fn add(&mut self, number: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.last = self.last.max(Some(number));
        if number < self.capacity {
            self.count(count);
        }
    }

    fn count(&mut self, count: u64) {
        self.sum += count;
        self.squares += u128::from(count) * u128::from(count);
    }

    /// As [`IopsSeries::valid_intervals`].
    #[must_use]
    pub fn valid_intervals(&self) -> u64 {
        self.last.map_or(0, |last| last.saturating_add(1)).min(self.capacity)
    }

    /// Deviation of the I/Os per second over the valid intervals: sqrt(n·Σc² − (Σc)²) ÷ n of the n intervals' I/Os c,
    /// divided by their length; 0 without any.
    #[must_use]
    pub fn iops_stddev(&self) -> f64 {
        let intervals = self.valid_intervals();
        if intervals == 0 {
            return 0.0;
        }
        // Exact, and of no negative sum: Cauchy and Schwarz.
        let sum = u128::from(self.sum);
        let spread = (u128::from(intervals) * self.squares).saturating_sub(sum * sum);
        let intervals = intervals as f64;
        (spread as f64 / (intervals * intervals)).sqrt() / self.interval.as_secs_f64()
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
