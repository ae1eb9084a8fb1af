//! The JSON result of `plumb run`.

use serde_json::Value;

use super::super::plot::percentiles::{Which, spread};
use super::{Buckets, CoreView, IntervalView, RunView, SideView, SpanView, Workload};
use crate::percentile::TAIL;

const MIB: f64 = 1_048_576.0;

pub(super) fn view(name: &str, result: &Value) -> RunView {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let host = &result["host"];
    let facts = [
        ("Host", text(&host["computer_name"])),
        ("Processor", text(&host["processor_name"])),
        ("Kernel", text(&host["kernel"])),
        ("Processors", host["processor_count"].as_u64().map(|count| count.to_string())),
        (
            "Memory",
            host["memory_bytes"].as_f64().map(|bytes| format!("{:.1} GiB", bytes / MIB / 1024.0)),
        ),
        ("Governor", text(&host["power_scheme"])),
    ];
    let spans = result["time_spans"].as_array().into_iter().flatten();
    let asked = result["profile"]["TimeSpans"].as_array();
    RunView {
        name: name.to_owned(),
        started_at: text(&result["started_at"]),
        command_line: text(&result["command_line"]),
        epoch: result["epoch"].as_u64().map(|epoch| format!("Plumb, measurement epoch {epoch}")),
        engine: text(&result["engine"]),
        machine: known(facts),
        spans: spans
            .enumerate()
            .filter(|(_, span)| span["state"] == "measured")
            .map(|(index, span)| {
                let asked = asked.and_then(|asked| asked.get(index)).unwrap_or(&Value::Null);
                of_span(span, asked)
            })
            .collect(),
        record: None,
        caps: Vec::new(),
    }
}

/// Facts of a stored environment that the result itself does not have.
pub(super) fn environment(environment: &Value) -> Vec<(String, String)> {
    let groups = &environment["groups"];
    let text = |pointer: &str| groups.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let layers: Vec<&str> = groups["stack"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::trim)
        .collect();
    known([
        ("Device", text("/device/0/model")),
        ("Firmware", text("/device/0/firmware")),
        ("Layers", (!layers.is_empty()).then(|| layers.join(" on "))),
        ("File system", text("/fs/0/kind")),
        ("Scheduler", text("/queue/0/scheduler")),
    ])
}

fn known<const N: usize>(facts: [(&str, Option<String>); N]) -> Vec<(String, String)> {
    facts
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.filter(|v| v != "<unknown>")?)))
        .collect()
}

fn of_span(span: &Value, asked: &Value) -> SpanView {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let texts = |value: &Value| -> Vec<String> {
        list(value).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (mut total, read, write) =
        (side(&span["total"]), side(&span["read"]), side(&span["write"]));
    if total.buckets.is_empty() {
        total.buckets = read.buckets.and(&write.buckets);
    }
    let law = &span["littles_law"];
    let asked = workload(asked);
    let processors = list(&span["cpu"]["processors"]);
    let usage = span["cpu"]["mean"]["usage_percent"].as_f64();
    let warnings = list(&span["plausibility"])
        .iter()
        .filter(|item| item["verdict"] == "suspicious")
        .filter_map(|item| item["sentence"].as_str().map(str::to_owned))
        .collect();
    SpanView {
        seconds: span["elapsed_ns"].as_f64().unwrap_or_default() / 1e9,
        workload: Workload { limited: asked.limited || law["verdict"] == "limited", ..asked },
        cpu_us_per_io: usage
            .filter(|_| total.iops > 0.0)
            .map(|usage| usage / 100.0 * processors.len() as f64 * 1e6 / total.iops),
        total,
        read,
        write,
        interval_s: span["intervals"]["interval_ns"].as_f64().unwrap_or(1e9) / 1e9,
        intervals: list(&span["intervals"]["series"]).iter().map(interval).collect(),
        cores: processors.iter().map(core).collect(),
        threads: list(&span["threads"])
            .iter()
            .map(|thread| {
                let targets = thread["targets"].as_array().into_iter().flatten();
                targets.filter_map(|target| target["total"]["iops_per_s"].as_f64()).sum()
            })
            .collect(),
        law: (
            law["configured_outstanding"].as_f64(),
            law["residual"].as_f64(),
            law["verdict"].as_str().map(str::to_owned),
        ),
        in_flight: law["in_flight_mean"].as_f64(),
        target_bytes: list(&span["targets"])
            .iter()
            .map(|target| target["size_bytes"].as_f64())
            .sum::<Option<f64>>()
            .filter(|bytes| *bytes > 0.0),
        measures_latency: span["mode"]["measures_latency"].as_bool().unwrap_or(false),
        warnings,
        failures: texts(&span["failures"]),
        counters: span.get("counters").cloned().unwrap_or(Value::Null),
    }
}

/// Mean latency of the `count` slowest I/Os of a time span of a result in milliseconds; `None` where it has no buckets.
pub(crate) fn slowest_ms(span: &Value, count: u64) -> Option<f64> {
    let all = side(&span["total"]).buckets;
    let apart = || side(&span["read"]).buckets.and(&side(&span["write"]).buckets);
    (if all.is_empty() { apart() } else { all }).mean_of_largest(count)
}

/// Of each of these percentiles (percent, milliseconds) that is one of the tail: the intervals of a time span with an
/// I/O that took as long or longer, and all of them. Empty where latencies were not kept per interval.
pub(crate) fn spreads(span: &Value, percentiles: &[(f64, f64)]) -> Vec<(f64, (usize, usize))> {
    let series = span["intervals"]["series"].as_array();
    let intervals: Vec<IntervalView> = series.into_iter().flatten().map(interval).collect();
    let spread = |ms| spread(&intervals, Which::All, ms);
    let tail = percentiles.iter().filter(|(percent, _)| *percent >= TAIL);
    tail.filter_map(|(percent, ms)| Some((*percent, spread(*ms)?))).collect()
}

/// The names of percentiles in a result.
const PERCENTILES: [(&str, f64); 7] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99_9", 99.9),
    ("p99_99", 99.99),
    ("p99_999", 99.999),
];

fn side(side: &Value) -> SideView {
    let stated =
        |(key, percent): &(&str, f64)| Some((*percent, side["latency_ns"][*key].as_f64()? / 1e6));
    SideView {
        count: side["io_count"].as_u64().unwrap_or_default(),
        iops: side["iops_per_s"].as_f64().unwrap_or_default(),
        mib_per_s: side["bytes_per_s"].as_f64().unwrap_or_default() / MIB,
        mean_ms: side["latency_ns"]["mean"].as_f64().map(|nanos| nanos / 1e6),
        buckets: buckets(&side["latency_ns"]),
        percentiles: PERCENTILES.iter().filter_map(stated).collect(),
    }
}

fn buckets(latency: &Value) -> Buckets {
    let list = latency["buckets"].as_array().into_iter().flatten();
    Buckets::new(
        list.filter_map(|bucket| {
            Some((bucket[0].as_f64()?, bucket[1].as_f64()?, bucket[2].as_u64()?))
        })
        .collect(),
    )
}

fn interval(interval: &Value) -> IntervalView {
    IntervalView {
        end_s: interval["end_ns"].as_f64().unwrap_or_default() / 1e9,
        iops: interval["total"]["iops_per_s"].as_f64().unwrap_or_default(),
        mean_ms: interval["total"]["latency_ns"]["mean"].as_f64().map(|nanos| nanos / 1e6),
        read: buckets(&interval["read"]["latency_ns"]),
        write: buckets(&interval["write"]["latency_ns"]),
    }
}

fn core(processor: &Value) -> CoreView {
    let percent = |key: &str| processor[key].as_f64().unwrap_or_default();
    let number = &processor["cpu"];
    CoreView {
        name: match processor["group"].as_u64() {
            Some(0) | None => number.to_string(),
            Some(group) => format!("{group}/{number}"),
        },
        user: percent("user_percent"),
        kernel: percent("kernel_percent"),
        idle: percent("idle_percent"),
    }
}

/// The first target of a time span of the normalised profile; what limits or compresses any of them counts.
pub(in crate::report) fn workload(span: &Value) -> Workload {
    let targets = span["Targets"].as_array().map_or(&[][..], Vec::as_slice);
    let first = targets.first().unwrap_or(&Value::Null);
    let number = |key: &str| first[key].as_f64();
    let is_random = number("RandomRatio").map(|percent| percent >= 50.0);
    let flag = |key: &str| first[key].as_bool();
    let alike = ["BlockSize", "WriteRatio", "RandomRatio", "DisableOSCache", "WriteThrough"];
    let is_positive = |value: &Value| value.as_f64().is_some_and(|number| number > 0.0);
    let patterns: Vec<&str> = targets
        .iter()
        .filter(|target| is_positive(&target["WriteRatio"]))
        .filter_map(|target| target["WriteBufferContent"]["Pattern"].as_str())
        .collect();
    Workload {
        threads: number("ThreadsPerFile"),
        outstanding: number("RequestCount"),
        block_bytes: number("BlockSize"),
        write_share: number("WriteRatio").map(|percent| percent / 100.0),
        random: is_random,
        apart: flag("InterlockedSequential")
            .zip(number("ThreadStride"))
            .map(|(interlocked, stride)| interlocked || stride > 0.0),
        targets: targets.len(),
        is_mixed: alike.iter().any(|key| targets.iter().any(|target| target[key] != first[key])),
        warm_up_s: span["Warmup"].as_f64(),
        incompressible: (!patterns.is_empty())
            .then(|| patterns.iter().all(|pattern| *pattern == "random")),
        sync: flag("DisableOSCache").zip(flag("WriteThrough")),
        limited: targets.iter().any(|target| {
            is_positive(&target["ThinkTime"]) || is_positive(&target["Throughput"]["Value"])
        }),
    }
}
