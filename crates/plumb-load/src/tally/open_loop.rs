//! What an open loop counts beside a closed one: service times, lag, and what was offered.

use plumb_units::{Nanos, convert};

use super::Histogram;

/// Slices of the measurement in which lags and responses are followed.
const SLICES: u64 = 50;

/// One target of one thread in an open loop, or several together.
#[derive(Debug, Clone, Default)]
pub struct OpenTally {
    /// I/Os per second that were asked for.
    pub rate: f64,
    /// I/Os of a burst that fall to it, 0 without bursts: so many may begin just before the end.
    pub burst: f64,
    /// I/Os that were meant to start during the measurement.
    pub offered: u64,
    /// Good I/Os of these that completed during the measurement.
    pub served: u64,
    /// I/Os of the measurement that had to wait because every request was taken.
    pub waited: u64,
    /// Reads from submission to completion.
    pub service_read: Histogram,
    /// Writes from submission to completion.
    pub service_write: Histogram,
    /// From intended start to submission.
    pub lag: Histogram,
    /// The lag as time went by.
    pub lag_trend: Trend,
    /// The response time, lag and service, as time went by.
    pub response_trend: Trend,
}

impl OpenTally {
    /// Nothing counted yet of `rate` I/Os per second over `measured` seconds.
    #[must_use]
    pub fn new(rate: f64, measured: u32) -> Self {
        let trend = Trend::new(measured);
        Self { rate, lag_trend: trend.clone(), response_trend: trend, ..Self::default() }
    }

    /// Counts a completion `at` after the measurement's start.
    pub fn record(&mut self, is_write: bool, service: Nanos, lag: Nanos, at: Nanos) {
        let side = if is_write { &mut self.service_write } else { &mut self.service_read };
        side.record(service.0);
        self.lag.record(lag.0);
        self.served += u64::from(at >= service + lag);
        self.lag_trend.record(at, lag);
        self.response_trend.record(at, service + lag);
    }

    /// The measurement ended so long after its start: before its time where the user ended it.
    pub fn ends(&mut self, after: Nanos) {
        self.lag_trend.ends(after);
        self.response_trend.ends(after);
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.rate += other.rate;
        self.burst += other.burst;
        self.offered += other.offered;
        self.served += other.served;
        self.waited += other.waited;
        self.service_read.merge(&other.service_read);
        self.service_write.merge(&other.service_write);
        self.lag.merge(&other.lag);
        self.lag_trend.merge(&other.lag_trend);
        self.response_trend.merge(&other.response_trend);
    }

    /// Service times of reads and writes.
    #[must_use]
    pub fn service(&self) -> Histogram {
        let mut all = self.service_read.clone();
        all.merge(&self.service_write);
        all
    }
}

/// Sum and count of some times by slice of the measurement.
#[derive(Debug, Clone, Default)]
pub struct Trend {
    slice: Nanos,
    cells: Vec<(u64, u64)>,
}

impl Trend {
    fn new(measured: u32) -> Self {
        let slice = Nanos(Nanos::from_secs(measured.into()).0 / SLICES);
        Self { slice, cells: vec![(0, 0); convert::to_usize(SLICES)] }
    }

    fn record(&mut self, at: Nanos, time: Nanos) {
        let number = (at.0 / self.slice.0.max(1)).min(SLICES - 1);
        if let Some((sum, count)) = self.cells.get_mut(convert::to_usize(number)) {
            *sum = sum.saturating_add(time.0);
            *count += 1;
        }
    }

    /// Slices that the measurement did not reach are none.
    fn ends(&mut self, after: Nanos) {
        let reached = after.0.div_ceil(self.slice.0.max(1));
        self.cells.truncate(convert::to_usize(reached.min(SLICES)));
    }

    fn merge(&mut self, other: &Self) {
        if self.cells.is_empty() {
            *self = other.clone();
            return;
        }
        for ((sum, count), (theirs, their_count)) in self.cells.iter_mut().zip(&other.cells) {
            *sum = sum.saturating_add(*theirs);
            *count += their_count;
        }
    }

    /// Whether the times grow: the line through the slices' means rises beyond its own uncertainty, the typical
    /// slice of the last fifth is above twice that of the first and above it by `least` at least, and the
    /// rise is still there at the end: in the last slice with I/Os, which lies in the last fifth. Lags of neighbours
    /// are alike, so a single hiccup near the end makes a line rise; a queue that builds up stays.
    #[must_use]
    pub fn rises(&self, least: Nanos) -> bool {
        let points: Vec<(f64, f64, f64)> = (0_u32..)
            .zip(&self.cells)
            .filter(|(_, (_, count))| *count > 0)
            .map(|(place, (sum, count))| (f64::from(place), *sum as f64, *count as f64))
            .collect();
        if points.len() < 5 {
            return false;
        }
        let fifth = points.len() / 5;
        let mean = |(_, sum, count): &(f64, f64, f64)| sum / count;
        let typical = |points: &[(f64, f64, f64)]| {
            let mut means: Vec<f64> = points.iter().map(mean).collect();
            means.sort_by(f64::total_cmp);
            means[(means.len() - 1) / 2]
        };
        let (first, last) = (typical(&points[..fifth]), typical(&points[points.len() - fifth..]));
        let grown = last > 2.0 * first && last - first > least.0 as f64;
        let most = points.iter().map(mean).fold(0.0, f64::max);
        let late = (self.cells.len() * 4 / 5) as f64;
        let stays = points.last().is_some_and(|end| mean(end) >= most / 2.0 && end.0 >= late);
        grown
            && stays
            && slope_is_positive(points.iter().map(|(place, sum, count)| (*place, sum / count)))
    }
}

/// Whether the 95 % interval of the least-squares slope lies above 0.
fn slope_is_positive(points: impl Iterator<Item = (f64, f64)> + Clone) -> bool {
    let n = points.clone().count() as f64;
    let (mean_x, mean_y) = (
        points.clone().map(|(x, _)| x).sum::<f64>() / n,
        points.clone().map(|(_, y)| y).sum::<f64>() / n,
    );
    let xx: f64 = points.clone().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = points.clone().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>()
        / xx.max(f64::EPSILON);
    let off: f64 = points.map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum();
    // Student's t for 3 degrees of freedom is 3.18, for 48 it is 2.01.
    let t = 2.0 + 3.6 / (n - 2.0);
    slope > t * (off / (n - 2.0) / xx.max(f64::EPSILON)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend(lag: impl Fn(u64) -> u64) -> Trend {
        let mut trend = Trend::new(10);
        for milli in 0..10_000 {
            trend.record(Nanos::from_millis(milli), Nanos(lag(milli)));
        }
        trend
    }

    #[test]
    fn a_queue_that_builds_up_rises_and_noise_does_not() {
        let least = Nanos(100_000);
        assert!(trend(|milli| milli * 1000).rises(least), "1 ms a second");
        assert!(trend(|milli| if milli < 8000 { 0 } else { milli * 1000 }).rises(least));
        for (name, flat) in [
            ("constant", trend(|_| 5_000_000)),
            ("noise", trend(|milli| milli * 7919 % 1000 * 1000)),
            ("below what a wake-up costs", trend(|milli| milli * 5)),
            ("a stall in the middle", trend(|m| if m / 1000 == 5 { 900_000_000 } else { 0 })),
            ("a hiccup near the end", trend(|m| if m / 200 == 48 { 9_000_000 } else { 50_000 })),
            ("a queue that drained", trend(|m| if m > 7000 && m < 9600 { m * 1000 } else { 0 })),
            ("falling", trend(|milli| (10_000 - milli) * 1000)),
        ] {
            assert!(!flat.rises(least), "{name}");
        }
        assert!(!Trend::default().rises(least), "nothing was measured");
        let mut burst = Trend::new(10);
        for milli in 0..1500 {
            burst.record(Nanos::from_millis(milli), Nanos(milli * 1_000_000));
        }
        assert!(!burst.rises(least), "a burst that was over long before the end");
    }

    #[test]
    fn only_what_was_meant_for_the_measurement_is_served() {
        let mut tally = OpenTally::new(1000.0, 10);
        let (service, lag) = (Nanos(1_000_000), Nanos(500_000));
        tally.record(false, service, lag, Nanos(1_499_999));
        assert_eq!(tally.served, 0, "it was meant to start before");
        tally.record(false, service, lag, Nanos(1_500_000));
        assert_eq!(tally.served, 1);
        let mut both = tally.clone();
        both.merge(&tally);
        assert_eq!((both.served, both.lag.count()), (2, 4));
    }
}
