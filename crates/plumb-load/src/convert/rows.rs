//! Results as flat rows of JSON, for whatever reads JSON lines.

use serde_json::{Map, Value, json};

use super::model::{
    ByDirection, Figures, ImportedResult, ImportedSpan, ImportedTarget, Interval, IoCount,
    LatencyBucket,
};
use crate::profile::json::normalised;

/// One object per row; `record` says what it is about: `run` (first, once), `time_span`, `cpu`,
/// `percentile`, `interval`, `thread_target`. Time spans are numbered from 1. Units are part of the
/// names; what was not measured is null.
#[must_use]
pub fn json_rows(result: &ImportedResult) -> Vec<Value> {
    let mut rows = vec![run(result)];
    for (number, span) in (1_u32..).zip(&result.time_spans) {
        let mut row = |record: &str, mut fields: Map<String, Value>| {
            fields.insert("record".to_owned(), record.into());
            fields.insert("time_span".to_owned(), number.into());
            rows.push(Value::Object(fields));
        };
        row("time_span", time_span(span));
        for cpu in &span.cpus {
            row(
                "cpu",
                object(json!({
                    "socket": cpu.socket, "node": cpu.node, "group": cpu.group, "core": cpu.core,
                    "class": cpu.class, "cpu": cpu.id, "usage_percent": cpu.percents.usage,
                    "user_percent": cpu.percents.user, "kernel_percent": cpu.percents.kernel,
                    "idle_percent": cpu.percents.idle,
                })),
            );
        }
        for bucket in &span.latency {
            row("percentile", percentile(bucket, None));
        }
        for each in &span.path_latency {
            for bucket in &each.latency {
                row("percentile", percentile(bucket, Some(&each.path)));
            }
        }
        for each in &span.intervals {
            row("interval", interval(each));
        }
        for thread in &span.threads {
            for target in &thread.targets {
                row("thread_target", thread_target(thread.id, target, span.seconds));
            }
        }
    }
    rows
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("an object was written, not {other}"),
    }
}

fn run(result: &ImportedResult) -> Value {
    json!({
        "record": "run",
        "tool": result.tool.as_ref().map(|tool| json!({
            "name": tool.name, "version": tool.version, "version_date": tool.version_date,
            "epoch": tool.epoch,
        })),
        "command_line": result.command_line,
        "computer_name": result.computer_name,
        "processor_name": result.processor_name,
        "run_time": result.run_time,
        "power_scheme": result.power_scheme.as_ref().map(|scheme| &scheme.name),
        "profile": result.profile.as_ref().map(normalised),
        "notes": result.notes,
    })
}

fn time_span(span: &ImportedSpan) -> Map<String, Value> {
    let saturated = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
    let count = |(bytes, ios)| IoCount { bytes: saturated(bytes), ios: saturated(ios) };
    let mut row = object(json!({
        "seconds": span.seconds,
        "interrupted": span.is_interrupted(),
        "thread_count": span.thread_count,
        "request_count": span.request_count,
        "cpu_usage_percent": span.cpu_average.map(|average| average.usage),
        "cpu_user_percent": span.cpu_average.map(|average| average.user),
        "cpu_kernel_percent": span.cpu_average.map(|average| average.kernel),
        "effective_buffer_separation_bytes": span.effective_buffer_separation,
    }));
    counts(&mut row, count(span.reads()), count(span.writes()), span.seconds);
    figures(&mut row, &span.figures);
    row
}

fn thread_target(thread: u32, target: &ImportedTarget, seconds: f64) -> Map<String, Value> {
    let mut row = object(json!({
        "thread": thread,
        "path": target.path,
        "file_size_bytes": target.file_size.bytes,
        "file_size_is_exact": target.file_size.exact,
    }));
    counts(&mut row, target.read, target.write, seconds);
    figures(&mut row, &target.figures);
    row
}

fn counts(row: &mut Map<String, Value>, read: IoCount, write: IoCount, seconds: f64) {
    let total = IoCount {
        bytes: read.bytes.saturating_add(write.bytes),
        ios: read.ios.saturating_add(write.ios),
    };
    for (name, count) in [("read", read), ("write", write), ("total", total)] {
        let rate = |value: u64| (seconds > 0.0).then(|| value as f64 / seconds);
        row.insert(format!("{name}_bytes"), count.bytes.into());
        row.insert(format!("{name}_ios"), count.ios.into());
        row.insert(format!("{name}_iops"), rate(count.ios).into());
        row.insert(format!("{name}_bytes_per_second"), rate(count.bytes).into());
    }
}

fn figures(row: &mut Map<String, Value>, figures: &ByDirection<Figures>) {
    for (name, figures) in
        [("read", figures.read), ("write", figures.write), ("total", figures.total)]
    {
        row.insert(format!("{name}_latency_mean_ms"), figures.latency_mean_ms.into());
        row.insert(format!("{name}_latency_std_dev_ms"), figures.latency_std_dev_ms.into());
        row.insert(format!("{name}_iops_std_dev"), figures.iops_std_dev.into());
    }
}

fn percentile(bucket: &LatencyBucket, path: Option<&str>) -> Map<String, Value> {
    object(json!({
        "path": path,
        "percentile": bucket.percentile,
        "read_latency_ms": bucket.read_ms,
        "write_latency_ms": bucket.write_ms,
        "total_latency_ms": bucket.total_ms,
    }))
}

fn interval(interval: &Interval) -> Map<String, Value> {
    object(json!({
        "end_ms": interval.end_ms,
        "read_iops": interval.read_iops,
        "write_iops": interval.write_iops,
        "total_iops": interval.total_iops,
        "read_latency_mean_ms": interval.read.map(|latency| latency.mean_ms),
        "read_latency_max_ms": interval.read.map(|latency| latency.max_ms),
        "write_latency_mean_ms": interval.write.map(|latency| latency.mean_ms),
        "write_latency_max_ms": interval.write.map(|latency| latency.max_ms),
    }))
}
