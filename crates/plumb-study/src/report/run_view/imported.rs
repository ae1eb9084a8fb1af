//! Results of DISKSPD, and XML and text of Plumb.

use plumb_load::convert::{
    ByDirection, ImportedResult, ImportedSpan, Interval, IntervalLatency, LatencyBucket,
};
use plumb_load::profile::json::normalised;
use serde_json::Value;

use super::{Buckets, CoreView, IntervalView, RunView, SideView, SpanView, Workload};

const MIB: f64 = 1_048_576.0;

pub(super) fn view(name: &str, result: &ImportedResult) -> RunView {
    let profile = result.profile.as_ref().map(normalised);
    let asked = |index: usize| {
        profile.as_ref().map_or(Value::Null, |profile| profile["TimeSpans"][index].clone())
    };
    let machine = [("Host", &result.computer_name), ("Processor", &result.processor_name)];
    let spans = result.time_spans.iter().enumerate().filter(|(_, span)| !span.is_interrupted());
    RunView {
        name: name.to_owned(),
        started_at: result.run_time.clone(),
        command_line: result.command_line.clone(),
        epoch: None,
        engine: None,
        machine: machine
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
            .collect(),
        spans: spans.map(|(index, span)| of_span(span, &asked(index))).collect(),
        record: None,
        caps: Vec::new(),
    }
}

fn of_span(span: &ImportedSpan, asked: &Value) -> SpanView {
    let workload = super::json::workload(asked);
    let figures = &span.figures;
    let side = |(bytes, count): (u128, u128), mean_ms, of: fn(&LatencyBucket) -> Option<f64>| {
        let row = |row: &LatencyBucket| Some((row.percentile, of(row)?));
        SideView {
            count: u64::try_from(count).unwrap_or(u64::MAX),
            iops: count as f64 / span.seconds,
            mib_per_s: bytes as f64 / MIB / span.seconds,
            mean_ms,
            buckets: Buckets::default(),
            percentiles: span.latency.iter().filter_map(row).collect(),
        }
    };
    let (reads, writes) = (span.reads(), span.writes());
    let ByDirection { read, write, total } = figures;
    let all =
        side((reads.0 + writes.0, reads.1 + writes.1), total.latency_mean_ms, |row| row.total_ms);
    let outstanding = outstanding(span, &workload, asked);
    let residual =
        all.mean_ms.zip(outstanding).map(|(ms, n)| crate::identities::residual(all.iops, ms, n));
    let busy = span.cpu_average.map(|average| average.usage / 100.0 * span.cpus.len() as f64);
    SpanView {
        seconds: span.seconds,
        cpu_us_per_io: busy.filter(|_| all.iops > 0.0).map(|busy| busy * 1e6 / all.iops),
        read: side(reads, read.latency_mean_ms, |row| row.read_ms),
        write: side(writes, write.latency_mean_ms, |row| row.write_ms),
        interval_s: span.intervals.first().map_or(1.0, |first| first.end_ms as f64 / 1e3),
        intervals: span.intervals.iter().map(interval).collect(),
        cores: span
            .cpus
            .iter()
            .map(|cpu| CoreView {
                name: match cpu.group {
                    Some(0) | None => cpu.id.to_string(),
                    Some(group) => format!("{group}/{}", cpu.id),
                },
                user: cpu.percents.user,
                kernel: cpu.percents.kernel,
                idle: cpu.percents.idle,
            })
            .collect(),
        threads: span
            .threads
            .iter()
            .map(|thread| {
                let ios = |target: &plumb_load::convert::ImportedTarget| {
                    target.read.ios + target.write.ios
                };
                thread.targets.iter().map(ios).sum::<u64>() as f64 / span.seconds
            })
            .collect(),
        law: (outstanding, residual, None),
        in_flight: None,
        target_bytes: None,
        measures_latency: all.mean_ms.is_some(),
        total: all,
        workload,
        warnings: Vec::new(),
        failures: Vec::new(),
        counters: Value::Null,
    }
}

/// N of a closed loop without limits; `None` where the profile does not say.
fn outstanding(span: &ImportedSpan, workload: &Workload, asked: &Value) -> Option<f64> {
    let is_shared = asked["ThreadCount"].as_f64().is_some_and(|count| count > 0.0);
    if workload.limited || is_shared || span.request_count > 0 {
        return None;
    }
    let targets = asked["Targets"].as_array()?;
    let each = |target: &Value| {
        Some(target["ThreadsPerFile"].as_f64()? * target["RequestCount"].as_f64()?)
    };
    targets.iter().map(each).sum::<Option<f64>>().filter(|n| *n > 0.0)
}

/// Mean latency in milliseconds; `None` where it was not measured, or nothing completed.
pub(crate) fn interval_latency(interval: &Interval) -> Option<f64> {
    let part = |rate: f64, latency: Option<IntervalLatency>| {
        latency.map(|latency| (rate, rate * latency.mean_ms))
    };
    let parts =
        [part(interval.read_iops, interval.read), part(interval.write_iops, interval.write)];
    let known = || parts.iter().flatten();
    let rate: f64 = known().map(|(rate, _)| rate).sum();
    (rate > 0.0).then(|| known().map(|(_, sum)| sum).sum::<f64>() / rate)
}

fn interval(interval: &Interval) -> IntervalView {
    IntervalView {
        end_s: interval.end_ms as f64 / 1e3,
        iops: interval.total_iops,
        mean_ms: interval_latency(interval),
        ..IntervalView::default()
    }
}
