//! What happened in each interval (`-D`), streamed: latencies are read back one interval at a time.

use plumb_units::{Nanos, convert};
use serde::ser::{Error, SerializeSeq};
use serde::{Serialize, Serializer};

use super::figures::{Buckets, Latency};
use crate::result::model::{IntervalLatency, SpanResult};
use crate::tally::span_series::{TargetSeries, ThreadSeries};
use crate::tally::{Histogram, IntervalCell, IopsMoments, IopsSeries, LatencySet};

/// Deviations of I/Os per second over the valid intervals.
#[derive(Debug, Serialize)]
pub(super) struct Deviations {
    total: Option<f64>,
    read: Option<f64>,
    write: Option<f64>,
}

impl Deviations {
    fn new([total, read, write]: [IopsMoments; 3]) -> Self {
        let of =
            |moments: IopsMoments| (moments.valid_intervals() > 0).then(|| moments.iops_stddev());
        Self { total: of(total), read: of(read), write: of(write) }
    }

    fn of_series(read: &IopsSeries, write: &IopsSeries) -> Self {
        let mut total = read.clone();
        total.merge(write);
        Self::new([&total, read, write].map(IopsSeries::moments))
    }

    /// Of all threads.
    pub(super) fn of_target(target: &TargetSeries) -> Self {
        Self::of_series(&target.read, &target.write)
    }

    /// Of one thread and target.
    pub(super) fn of_thread(series: &ThreadSeries) -> Self {
        Self::new([series.total, series.read, series.write])
    }
}

/// All intervals of a span.
#[derive(Serialize)]
pub(super) struct Intervals<'a> {
    interval_ns: u64,
    iops_stddev_per_s: Option<Deviations>,
    series: Series<'a>,
}

impl<'a> Intervals<'a> {
    /// `None` where no series was kept.
    pub(super) fn of(span: &'a SpanResult) -> Option<Self> {
        let (read, write) = span.intervals()?;
        let interval = read.interval();
        Some(Self {
            interval_ns: interval.0,
            iops_stddev_per_s: Some(Deviations::of_series(&read, &write)),
            series: Series {
                span,
                interval,
                count: read.valid_intervals().max(write.valid_intervals()),
                read,
                write,
            },
        })
    }
}

struct Series<'a> {
    span: &'a SpanResult,
    interval: Nanos,
    count: u64,
    read: IopsSeries,
    write: IopsSeries,
}

#[derive(Serialize)]
struct Interval {
    number: u64,
    start_ns: u64,
    end_ns: u64,
    total: Cell,
    read: Cell,
    write: Cell,
}

#[derive(Serialize)]
struct Cell {
    io_count: u64,
    bytes: u64,
    iops_per_s: f64,
    bytes_per_s: f64,
    latency_ns: Option<Latency>,
}

impl Cell {
    /// `covered` is how much of the interval was measured.
    fn new(cell: &IntervalCell, covered: Nanos, latency_ns: Option<Latency>) -> Self {
        let seconds = covered.as_secs_f64();
        Self {
            io_count: cell.count,
            bytes: cell.bytes,
            iops_per_s: cell.count as f64 / seconds,
            bytes_per_s: cell.bytes as f64 / seconds,
            latency_ns,
        }
    }
}

impl Series<'_> {
    fn interval(&self, number: u64, latencies: Option<IntervalLatency>) -> Interval {
        let cell = |series: &IopsSeries| {
            series.cells().get(convert::to_usize(number)).copied().unwrap_or(IntervalCell::EMPTY)
        };
        let (read, write) = (cell(&self.read), cell(&self.write));
        let mut total = read;
        total.merge(&write);
        let latencies = latencies.map(|latencies| {
            let [read, write] = [latencies.read, latencies.write].map(LatencySet::Binned);
            let mut total = LatencySet::Binned(Histogram::new());
            total.merge(&read);
            total.merge(&write);
            [
                Latency::new(&total, Buckets::Without),
                Latency::new(&read, Buckets::With),
                Latency::new(&write, Buckets::With),
            ]
        });
        let [total_ns, read_ns, write_ns] = latencies.unwrap_or_default();
        let start_ns = number.saturating_mul(self.interval.0);
        // The end of the measurement cuts the last one off.
        let covered = match self.span.elapsed.0.checked_sub(start_ns) {
            Some(left) if left > 0 => Nanos(left.min(self.interval.0)),
            _ => self.interval,
        };
        Interval {
            number,
            start_ns,
            end_ns: start_ns.saturating_add(covered.0),
            total: Cell::new(&total, covered, total_ns),
            read: Cell::new(&read, covered, read_ns),
            write: Cell::new(&write, covered, write_ns),
        }
    }
}

impl Serialize for Series<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut series = serializer.serialize_seq(Some(convert::to_usize(self.count)))?;
        let mut latencies = self.span.interval_latencies.iter();
        let mut next = latencies.next().transpose().map_err(S::Error::custom)?;
        for number in 0..self.count {
            let here = next.take_if(|interval| interval.number == number);
            if here.is_some() {
                next = latencies.next().transpose().map_err(S::Error::custom)?;
            }
            series.serialize_element(&self.interval(number, here))?;
        }
        series.end()
    }
}
