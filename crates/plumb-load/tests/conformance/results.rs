//! The set `results`: numbers in, the exact text of a report out.

use plumb_load::pattern::bounds::Bounds;
use plumb_load::pattern::distribution::effective;
use plumb_load::profile::flags::{Parsed, parse};
use plumb_load::profile::model::{RawProfile, TimeSpan};
use plumb_load::result::model::{
    CpuUsage, DirectionResult, HostFacts, RunResult, SpanResult, TargetResult, ThreadResult, Tool,
    WaitStatistics,
};
use plumb_load::result::text::{cpu, distribution, io_table, latency, totals, waits};
use plumb_load::tally::span_series::{EndedInterval, SpanSeries};
use plumb_load::tally::{ExactLatencies, IntervalCell, IopsSeries, LatencySet};
use plumb_units::{Bytes, Nanos, convert};
use serde_json::Value;

use crate::nowhere::Nowhere;
use crate::report::{Set, folder};
use crate::reports;

#[test]
fn results() {
    let cases = std::fs::read_to_string(folder().join("results/cases.json")).expect("the set");
    let cases: Value = serde_json::from_str(&cases).expect("a set in JSON");
    let mut set = Set::new("results");
    for case in cases["cases"].as_array().expect("a list of cases") {
        let (input, expect) = (&case["input"], &case["expect"]);
        let outcome = match text(&case["kind"]) {
            "size" => same("text", &size(input), expect),
            "size_aligned" => same("text", &size_aligned(input), expect),
            "latency_table" => latency_table(input, expect),
            "iops_stddev" => iops_stddev(input, expect),
            "iops_stddev_merge" => iops_stddev_merge(input, expect),
            "section" => section(input, expect),
            "cpu_table" => same("text", &cpu_table(input), expect),
            "wait_statistics" => same("text", &wait_statistics(input), expect),
            "totals" => same("text", &totals_block(input), expect),
            "effective_text" => effective_text(input, expect),
            // Judged together with the reports, below.
            "profile_text" | "profile_xml" => continue,
            kind => Err(format!("nobody checks the kind {kind}")),
        };
        set.case(text(&case["id"]), outcome);
    }
    reports::cases(&mut set);
    set.finish();
}

/// Whether `got` is what the case expects under `key`; both are shown where they first differ.
fn same(key: &str, got: &str, expect: &Value) -> Result<(), String> {
    let want = text(&expect[key]);
    if got == want {
        return Ok(());
    }
    let pairs = got.split('\n').zip(want.split('\n')).enumerate();
    let differing = pairs.into_iter().find(|(_, (got, want))| got != want);
    Err(match differing {
        Some((line, (got, want))) => format!("{key}, line {line}: {got:?}, expected {want:?}"),
        None => format!("{key}: {} characters, expected {}", got.len(), want.len()),
    })
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}

fn small(value: &Value) -> u32 {
    u32::try_from(number(value)).expect("a small number")
}

fn float(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// Milliseconds since the measurement's start.
fn at(value: &Value) -> Nanos {
    Nanos(convert::floor_u64(float(value) * 1e6))
}

fn printed(print: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    print(&mut out).expect("a vector takes everything");
    String::from_utf8(out).expect("text")
}

fn size(input: &Value) -> String {
    Bytes(number(&input["bytes"])).to_string()
}

fn size_aligned(input: &Value) -> String {
    Bytes(number(&input["bytes"])).aligned(convert::to_usize(number(&input["width"])))
}

#[expect(clippy::cast_possible_truncation, reason = "latencies are held as 32-bit floats")]
fn micros(value: &Value) -> f32 {
    float(value) as f32
}

fn latencies<'a>(values: impl IntoIterator<Item = &'a Value>) -> LatencySet {
    let mut exact = ExactLatencies::default();
    values.into_iter().for_each(|value| exact.record(micros(value)));
    LatencySet::Exact(exact)
}

fn latency_table(input: &Value, expect: &Value) -> Result<(), String> {
    let [read, write] = ["read_us", "write_us"].map(|key| latencies(list(&input[key])));
    same("text", &printed(|out| latency::write_table(&read, &write, out)), expect)?;
    let mut total = read.clone();
    total.merge(&write);
    for (name, set) in [("Read", read), ("Write", write), ("Total", total)] {
        let want = &expect["stats"][name];
        let deviation = set.stddev_ms().map(|deviation| format!("{deviation:.3}"));
        let got = (
            set.count(),
            format!("{:.3}", set.mean_ms().unwrap_or(0.0)),
            deviation.as_deref(),
            set.distinct(),
        );
        let want = (
            number(&want["samples"]),
            text(&want["average_ms"]).to_owned(),
            want["stddev_ms"].as_str(),
            number(&want["distinct_values"]),
        );
        if got != want {
            return Err(format!("stats of {name}: {got:?}, expected {want:?}"));
        }
    }
    Ok(())
}

fn series(input: &Value, completions: &Value) -> IopsSeries {
    let mut series = IopsSeries::new(small(&input["bucket_ms"]), small(&input["duration_s"]));
    for completion in list(completions) {
        series.record(at(completion), 0, Nanos(1));
    }
    series
}

/// Whether the counts of the valid intervals are as expected.
fn same_counts(series: &IopsSeries, expect: &Value) -> Result<(), String> {
    let got: Vec<u64> = series.valid_cells().iter().map(|cell| cell.count).collect();
    let want: Vec<u64> = list(&expect["bucket_counts"]).iter().map(number).collect();
    if got == want { Ok(()) } else { Err(format!("counts {got:?}, expected {want:?}")) }
}

fn iops_stddev(input: &Value, expect: &Value) -> Result<(), String> {
    let series = series(input, &input["completion_ms"]);
    same_counts(&series, expect)?;
    same("stddev_text", &format!("{:>10.2}", series.iops_stddev()), expect)?;
    same("stddev_xml", &format!("{:.3}", series.iops_stddev()), expect)
}

fn iops_stddev_merge(input: &Value, expect: &Value) -> Result<(), String> {
    let each: Vec<IopsSeries> =
        list(&input["threads"]).iter().map(|thread| series(input, thread)).collect();
    for (one, want) in each.iter().zip(list(&expect["each"])) {
        let got = format!("{:>10.2}", one.iops_stddev());
        if got != text(want) {
            return Err(format!("one thread: {got:?}, expected {want}"));
        }
    }
    // The order of merging makes no difference.
    for each in [each.clone(), each.into_iter().rev().collect()] {
        let merged = each.into_iter().reduce(|mut sum, one| {
            sum.merge(&one);
            sum
        });
        let merged = merged.expect("a thread at least");
        same_counts(&merged, expect)?;
        same("stddev_text", &format!("{:>10.2}", merged.iops_stddev()), expect)?;
    }
    Ok(())
}

/// Pairs of completion in ms and latency in µs.
fn direction(block: u64, completions: &Value) -> DirectionResult {
    let pairs = list(completions);
    let io_count = convert::to_u64(pairs.len());
    DirectionResult {
        bytes: io_count * block,
        io_count,
        latency: Some(latencies(pairs.iter().map(|pair| &pair[1]))),
        ..DirectionResult::default()
    }
}

/// What each thread counted by interval, for one target.
fn span_series(input: &Value) -> SpanSeries {
    let (bucket_ms, duration_s) = (small(&input["bucket_ms"]), small(&input["duration_s"]));
    let threads = list(&input["threads"]);
    let mut series = SpanSeries::new(bucket_ms, duration_s, &vec![vec![0]; threads.len()])
        .expect("a scratch file");
    for (number, thread) in threads.iter().enumerate() {
        let mut ended = std::collections::BTreeMap::new();
        for (key, is_write) in
            [("read_completions_ms_us", false), ("write_completions_ms_us", true)]
        {
            for pair in list(&thread[key]) {
                let interval = at(&pair[0]).0 / (u64::from(bucket_ms) * 1_000_000);
                let [read, write] =
                    ended.entry(interval).or_insert([IntervalCell::EMPTY, IntervalCell::EMPTY]);
                let nanos = convert::floor_u64(float(&pair[1]) * 1e3);
                let cell = if is_write { write } else { read };
                cell.record(self::number(&thread["block"]), Nanos(nanos));
            }
        }
        for (interval, [read, write]) in ended {
            series.add(number, &EndedInterval { number: interval, place: 0, read, write });
        }
    }
    series
}

fn section(input: &Value, expect: &Value) -> Result<(), String> {
    let target = |thread: &Value| {
        let block = number(&thread["block"]);
        TargetResult {
            path: text(&thread["path"]).to_owned(),
            file_size: number(&thread["file_size"]),
            read: direction(block, &thread["read_completions_ms_us"]),
            write: direction(block, &thread["write_completions_ms_us"]),
            ..TargetResult::default()
        }
    };
    let (series, of_threads) = span_series(input).finish();
    let threads = (0..).zip(list(&input["threads"])).zip(of_threads);
    let threads = threads.map(|((id, thread), mut series)| ThreadResult {
        id,
        targets: vec![TargetResult { series: series.pop(), ..target(thread) }],
        ..ThreadResult::default()
    });
    let span = SpanResult {
        elapsed: Nanos(convert::floor_u64(float(&input["seconds"]) * 1e9)),
        threads: threads.collect(),
        series,
        ..SpanResult::default()
    };
    let columns = io_table::Columns {
        latency: input["measure_latency"] == true,
        iops: input["iops_stddev"] == true,
    };
    for (key, side) in [
        ("total", io_table::Side::Total),
        ("read", io_table::Side::Read),
        ("write", io_table::Side::Write),
    ] {
        same(key, &printed(|out| io_table::write_table(&span, side, columns, out)), expect)?;
    }
    Ok(())
}

fn cpu_table(input: &Value) -> String {
    let usage = |(cpu, percents): (&Value, &Value)| CpuUsage {
        socket: small(&cpu["socket"]),
        node: small(&cpu["node"]),
        group: u16::try_from(number(&cpu["group"])).expect("a group"),
        core: small(&cpu["core"]),
        class: u8::try_from(number(&cpu["class"])).expect("a class"),
        cpu: u8::try_from(number(&cpu["cpu"])).expect("a number within the group"),
        user: float(&percents[0]),
        kernel: float(&percents[1]),
        idle: float(&percents[2]),
    };
    let rows = list(&input["cpus"]).iter().zip(list(&input["user_kernel_idle"]));
    let cpus: Vec<CpuUsage> = rows.map(usage).collect();
    printed(|out| cpu::write(&cpus, out))
}

fn wait_statistics(input: &Value) -> String {
    let thread = |(id, waits): (u32, &Value)| {
        let mut lookaside_completion = [0; 8];
        for (count, value) in lookaside_completion.iter_mut().zip(list(&waits["completions"])) {
            *count = number(value);
        }
        let waits = WaitStatistics {
            wait: number(&waits["wait"]),
            throttle_wait: number(&waits["throttle_wait"]),
            throttle_sleep: number(&waits["throttle_sleep"]),
            lookaside: number(&waits["lookaside"]),
            lookaside_completion,
            ..WaitStatistics::default()
        };
        ThreadResult { id, waits, ..ThreadResult::default() }
    };
    let threads: Vec<ThreadResult> = (0..).zip(list(&input["threads"])).map(thread).collect();
    printed(|out| waits::write(&threads, out))
}

fn effective_text(input: &Value, expect: &Value) -> Result<(), String> {
    let args: Vec<_> = list(&input["args"]).iter().map(|arg| text(arg).into()).collect();
    let profile = match parse(&args, &mut Nowhere) {
        Ok(Parsed::Run(invocation)) => invocation.profile,
        other => return Err(format!("the command line is no workload: {other:?}")),
    };
    let target = &profile.time_spans[0].targets[0];
    let asked = target.distribution.as_ref().ok_or("no distribution")?;
    let bounds = Bounds::new(target, number(&input["target_size"])).ok_or("no room for a block")?;
    let result = TargetResult {
        path: target.path.clone(),
        effective: Some(effective(asked, &bounds)),
        ..TargetResult::default()
    };
    let thread =
        |id| ThreadResult { id: small(id), targets: vec![result.clone()], ..<_>::default() };
    let threads: Vec<ThreadResult> = list(&input["threads"]).iter().map(thread).collect();
    same("text", &printed(|out| distribution::write(&threads, out)), expect)
}

fn totals_block(input: &Value) -> String {
    let side = |span: &Value, bytes: &str, count: &str| DirectionResult {
        bytes: number(&span[bytes]),
        io_count: number(&span[count]),
        ..DirectionResult::default()
    };
    let span = |span: &Value| {
        let target = TargetResult {
            read: side(span, "read_bytes", "reads"),
            write: side(span, "write_bytes", "writes"),
            ..TargetResult::default()
        };
        SpanResult {
            elapsed: Nanos(convert::floor_u64(float(&span["seconds"]) * 1e9)),
            threads: vec![ThreadResult { targets: vec![target], ..ThreadResult::default() }],
            ..SpanResult::default()
        }
    };
    let time_spans: Vec<SpanResult> = list(&input["timespans"]).iter().map(span).collect();
    let profile =
        RawProfile { time_spans: vec![TimeSpan::default(); time_spans.len()], ..<_>::default() };
    let result = RunResult {
        command_line: String::new(),
        profile,
        host: HostFacts {
            computer_name: String::new(),
            processor_name: String::new(),
            power_scheme: String::new(),
            page_size: 4096,
            kernel: String::new(),
            memory_bytes: 0,
            topology: plumb_io::topology::Topology::default(),
        },
        started_at: jiff::Timestamp::UNIX_EPOCH,
        time_spans,
        tool: Tool {
            name: "plumb".to_owned(),
            version: String::new(),
            version_date: String::new(),
            epoch: None,
        },
        interrupted: false,
        spaces: Vec::new(),
    };
    printed(|out| totals::write(&result, out))
}
