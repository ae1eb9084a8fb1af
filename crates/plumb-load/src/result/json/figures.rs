//! What was counted on some threads and targets.

use plumb_units::Nanos;
use serde::{Serialize, Serializer};

use crate::profile::model::{Target, TimeSpan};
use crate::result::figures::Figures;
use crate::result::model::{DirectionResult, SpanResult, TargetResult};
use crate::tally::LatencySet;

/// A number that is written without a fraction if it has none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number(pub(super) f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Below 2^53 a float without a fraction is that integer.
        if self.0.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&self.0) {
            serializer.serialize_u64(plumb_units::convert::floor_u64(self.0))
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// Reads, writes or both.
#[derive(Debug, Serialize)]
pub(super) struct Counted {
    io_count: u64,
    bytes: u64,
    iops_per_s: f64,
    bytes_per_s: f64,
    errors: Option<u64>,
    short_transfers: Option<u64>,
    latency_ns: Option<Latency>,
}

/// Whether latencies come with their buckets: sums of what stands nearby do not need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Buckets {
    With,
    Without,
}

impl Counted {
    fn new(side: &DirectionResult, elapsed: Nanos, buckets: Buckets) -> Self {
        Self {
            io_count: side.io_count,
            bytes: side.bytes,
            iops_per_s: side.iops(elapsed),
            bytes_per_s: side.bytes_per_s(elapsed),
            errors: None,
            short_transfers: None,
            latency_ns: side.latency.as_ref().and_then(|set| Latency::new(set, buckets)),
        }
    }
}

/// Reads, writes and both together.
#[derive(Debug, Serialize)]
pub(super) struct Sides {
    total: Counted,
    read: Counted,
    write: Counted,
}

impl Sides {
    /// `errors` are those of reads and of writes, where they can be told apart.
    pub(super) fn new(
        figures: &Figures,
        elapsed: Nanos,
        errors: Option<(u64, u64)>,
        total_buckets: Buckets,
    ) -> Self {
        let side = |side: &DirectionResult, errors, buckets| Counted {
            errors,
            ..Counted::new(side, elapsed, buckets)
        };
        let total = side(&figures.total(), Some(figures.error_count()), total_buckets);
        Self {
            total: Counted { short_transfers: Some(figures.short_transfers), ..total },
            read: side(&figures.read, errors.map(|(read, _)| read), Buckets::With),
            write: side(&figures.write, errors.map(|(_, write)| write), Buckets::With),
        }
    }
}

/// Failed reads and failed writes. Results of other programs count them together by error number: known there
/// where targets only read, only write, or had no error.
pub(super) fn errors_by_direction<'a>(
    targets: impl IntoIterator<Item = (&'a TargetResult, Option<&'a Target>)>,
) -> Option<(u64, u64)> {
    let (mut read, mut write) = (0, 0);
    for (target, asked) in targets {
        let errors: u64 = target.errors.values().sum();
        match asked.map(|asked| asked.write_ratio) {
            _ if errors == target.read.failed.count + target.write.failed.count => {
                read += target.read.failed.count;
                write += target.write.failed.count;
            }
            Some(0) => read += errors,
            Some(100) => write += errors,
            _ => return None,
        }
    }
    Some((read, write))
}

/// The targets of a span's threads beside what was asked of them.
pub(super) fn targets<'a>(
    span: &'a SpanResult,
    asked: &'a TimeSpan,
) -> impl Iterator<Item = (&'a TargetResult, Option<&'a Target>)> {
    let all = span.threads.iter().flat_map(|thread| &thread.targets);
    all.map(|target| (target, asked.targets.get(plumb_units::convert::index(target.index))))
}

/// Statistics of a set that is not empty, in nanoseconds.
#[derive(Debug, Serialize)]
pub(super) struct Latency {
    count: u64,
    min: Option<Number>,
    mean: Option<Number>,
    stddev: Option<Number>,
    p50: Option<Number>,
    p90: Option<Number>,
    p95: Option<Number>,
    p99: Option<Number>,
    p99_9: Option<Number>,
    p99_99: Option<Number>,
    p99_999: Option<Number>,
    max: Option<Number>,
    sum: Option<String>,
    sum_of_squares: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buckets: Option<Vec<(Number, u64, u64)>>,
}

impl Latency {
    pub(super) fn new(set: &LatencySet, buckets: Buckets) -> Option<Self> {
        if set.is_empty() {
            return None;
        }
        let nanos = |micros: Option<f64>| micros.map(|micros| Number(micros * 1e3));
        // Whole nanoseconds again: the way through microseconds leaves a trace in the last digit.
        let bucketed = |p: f64| set.percentile_us(p).map(|micros| Number((micros * 1e3).round()));
        let at = |p: f64| match set {
            LatencySet::Binned(_) => bucketed(p),
            LatencySet::Exact(_) => nanos(set.percentile_us(p)),
        };
        let (sum, sum_of_squares) = match set {
            LatencySet::Binned(histogram) => {
                (Some(histogram.sum().to_string()), Some(histogram.sum_of_squares().to_string()))
            }
            LatencySet::Exact(_) => (None, None),
        };
        Some(Self {
            count: set.count(),
            min: at(0.0),
            mean: nanos(set.mean_us()),
            stddev: nanos(set.stddev_us()),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            p99_999: at(0.99999),
            max: at(1.0),
            sum,
            sum_of_squares,
            buckets: (buckets == Buckets::With).then(|| bucket_list(set)),
        })
    }
}

/// (lowest value, values in the bucket, count); exact values are buckets of no width.
fn bucket_list(set: &LatencySet) -> Vec<(Number, u64, u64)> {
    match set {
        LatencySet::Binned(histogram) => histogram
            .buckets()
            .map(|(low, width, count)| (Number(low as f64), width, count))
            .collect(),
        LatencySet::Exact(exact) => exact
            .values()
            .map(|(micros, count)| (Number(f64::from(micros) * 1e3), 0, count))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use plumb_io::Errno;

    use super::*;

    #[test]
    fn errors_are_told_apart_where_targets_go_one_way() {
        let with = |errors| TargetResult {
            errors: [(Errno(5), errors)].into(),
            ..TargetResult::default()
        };
        let asked = |write_ratio| Target { write_ratio, ..Target::default() };
        let [reads, writes, mixed] = [0, 100, 30].map(asked);
        let [none, three] = [0, 3].map(with);
        let mut told_apart = with(3);
        (told_apart.read.failed.count, told_apart.write.failed.count) = (2, 1);
        for (targets, want) in [
            (vec![(&none, Some(&mixed)), (&three, Some(&reads))], Some((3, 0))),
            (vec![(&three, Some(&writes)), (&three, Some(&reads))], Some((3, 3))),
            (vec![(&three, Some(&mixed))], None),
            (vec![(&three, None)], None),
            (vec![(&told_apart, Some(&mixed)), (&three, Some(&writes))], Some((2, 4))),
            (vec![], Some((0, 0))),
        ] {
            assert_eq!(errors_by_direction(targets), want);
        }
    }

    #[test]
    fn whole_numbers_have_no_fraction() {
        let text = |value| serde_json::to_string(&Number(value)).expect("a number");
        assert_eq!(text(1_048_576.0), "1048576");
        assert_eq!(text(0.5), "0.5");
        assert_eq!(text(1e300), "1e+300");
        assert_eq!(text(f64::NAN), "null");
    }
}
