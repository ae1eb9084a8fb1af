//! Reports of made-up runs, curves and studies.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::*;
use crate::study::{
    Device, FORMAT, Finding, Kind, Outcome, Percentile, Purpose, Setting, State, Summary,
};

/// A result of `plumb run --json` with latencies around `ms`, and an interval per second.
fn result(iops: f64, ms: f64, seconds: u64) -> Value {
    let count = iops * seconds as f64;
    let part = |share: f64| {
        let at = |factor: f64| (ms * factor * 1e6).round();
        let of = |portion: f64| plumb_units::convert::floor_u64((count * share * portion).round());
        json!({
            "io_count": of(1.0), "bytes": of(1.0) * 4096, "iops_per_s": iops * share,
            "bytes_per_s": iops * share * 4096.0,
            "latency_ns": { "mean": ms * 1e6, "buckets": [
                [at(0.7), 100, of(0.6)], [at(1.2), 100, of(0.39)], [at(5.0), 1000, of(0.01)],
            ]},
        })
    };
    let second = |number: u64| {
        let wobble = 1.0 + 0.01 * ((number * 7 % 5) as f64 - 2.0);
        let cell = json!({
            "iops_per_s": iops * wobble, "latency_ns": { "mean": ms * 1e6 / wobble,
            "buckets": [[(ms * 1e6).round(), 100, plumb_units::convert::floor_u64(iops * 0.5)]] },
        });
        json!({ "number": number, "end_ns": (number + 1) * 1_000_000_000,
                "total": cell, "read": cell, "write": cell })
    };
    json!({
        "schema_version": 1, "engine": "uring", "epoch": 1, "started_at": "2026-01-01T00:00:00Z",
        "command_line": "plumb run <b>", "interrupted": false, "host": { "kernel": "6.12" },
        "total": part(1.0),
        "profile": { "TimeSpans": [{ "Warmup": 5, "Targets": [{
            "Path": "f", "BlockSize": 4096, "RequestCount": 8, "ThreadsPerFile": 2, "WriteRatio": 30,
            "RandomRatio": 100, "DisableOSCache": true, "WriteThrough": true,
            "WriteBufferContent": { "Pattern": "random" },
        }]}]},
        "time_spans": [{
            "number": 1, "state": "measured", "elapsed_ns": seconds * 1_000_000_000,
            "mode": { "measures_latency": true }, "total": part(1.0), "read": part(0.7), "write": part(0.3),
            "littles_law": { "configured_outstanding": 16, "residual": -0.001, "verdict": "consistent" },
            "cpu": { "mean": { "usage_percent": 20.0 }, "processors": [
                { "group": 0, "cpu": 0, "user_percent": 10.0, "kernel_percent": 20.0, "idle_percent": 70.0 },
                { "group": 0, "cpu": 1, "user_percent": 5.0, "kernel_percent": 5.0, "idle_percent": 90.0 },
            ]},
            "threads": [
                { "targets": [{ "total": { "iops_per_s": iops * 0.5 } }] },
                { "targets": [{ "total": { "iops_per_s": iops * 0.5 } }] },
            ],
            "intervals": { "interval_ns": 1_000_000_000,
                           "series": (0..seconds).map(second).collect::<Vec<_>>() },
            "plausibility": [], "failures": [],
        }],
    })
}

fn run(name: &str, result: &Value) -> RunView {
    RunView::of_object(name, result).expect("a result").remove(0)
}

/// A page that keeps every promise; what it says.
#[track_caller]
fn check(sources: &Sources, says: &[&str]) -> String {
    let report = make(sources, "now");
    let page = html(&report);
    for part in says {
        assert!(page.contains(part), "`{part}` in\n{}", summary(&report));
    }
    // No link leads nowhere, and no two things have one name.
    let names: Vec<&str> = parts(&page, " id=\"").collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), distinct.len(), "{names:?}");
    for link in parts(&page, "href=\"#") {
        assert!(distinct.contains(link), "#{link} leads nowhere");
    }
    // Nothing is fetched.
    for word in [" src=", "<link", "url(", "@import", "href=\"http"] {
        assert!(!page.contains(word), "{word}");
    }
    for section in &report.sections {
        for block in &section.blocks {
            if let Block::Plot(plot) = block {
                assert!(!plot.sentence.is_empty() && !plot.data.rows.is_empty(), "{}", plot.id);
                let width = plot.data.columns.len();
                assert!(plot.data.rows.iter().all(|row| row.len() == width), "{}", plot.id);
                let drawn = format!("<figure id=\"{}\"", plot.id);
                assert!(page.contains(&drawn), "{}", plot.id);
            }
        }
    }
    page
}

/// What stands between a word and the next quotation mark, everywhere.
fn parts<'a>(page: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    page.split(word).skip(1).filter_map(|rest| rest.split('"').next())
}

#[test]
fn a_run_is_told_with_its_marks() {
    let runs = vec![run("monday.json", &result(10_000.0, 1.6, 60))];
    let page = check(
        &Sources { runs, ..Sources::default() },
        &[
            "10\u{202f}000 I/Os per second, 39.1 MiB/s, 1.60 ms each on average with 16 outstanding",
            "Throughput was steady from the start",
            "4 KiB random, 30 % writes, t2 o8",
            "(mark good)",
            "Latency of reads over time",
            "Processors",
            "Threads",
            "plumb run &lt;b&gt;",
            "<span class=\"name\">99th percentile</span> <strong>",
        ],
    );
    assert!(!page.contains("plumb run <b>"));
}

#[test]
fn an_open_loop_is_not_taken_for_an_idle_closed_one() {
    let mut open = result(50.0, 20.0, 60);
    open["time_spans"][0]["littles_law"] = json!({
        "configured_outstanding": 16, "in_flight_mean": 0.2, "residual": null, "verdict": "limited",
    });
    let runs = vec![run("open", &open)];
    let page = check(&Sources { runs, ..Sources::default() }, &["with at most 16 outstanding"]);
    assert!(!page.contains("X·L") && !page.contains("generator"), "R7");
}

#[test]
fn what_was_seen_beside_the_run_is_plotted_and_names_the_bottleneck() {
    let mut seen = result(10_000.0, 1.6, 10);
    let second = |end: u64| {
        json!({
            "end_ns": end * 1_000_000_000, "processors_percent": [20.0, 40.0 + end as f64],
            "devices": [{ "read_bytes_per_s": 8e6, "reads_per_s": 7000.0, "writes_per_s": 3000.0, "in_flight": 15.9, "busy_percent": 99.5 }],
            "pressure": { "io_some_percent": 12.5 }, "memory": { "dirty_bytes": 1 << 20, "writeback_bytes": 0 },
            "temperatures_c": [41.5], "throttle_events": 0,
        })
    };
    seen["time_spans"][0]["counters"] = json!({
        "cost_ns": 300_000, "devices": [{ "name": "sda" }], "processors": [0, 1], "temperatures": ["nvme"],
        "series": (1..=10).map(second).collect::<Vec<_>>(),
    });
    let runs = vec![run("a", &seen)];
    check(
        &Sources { runs, ..Sources::default() },
        &[
            "What holds it down: the device is saturated.",
            "At most 7000.0 I/Os per second (sda reads)",
            "At most 12.5 % (io some)",
            "At most 42 °C (nvme)",
            "Recording costs 0.30 ms of processor time per second",
            "Throughput, latency and processors over time",
            "All processors together were 33 % busy; the busiest one in any second 50 %.",
            "What the devices moved",
            "class=\"strip t6\"",
        ],
    );
}

#[test]
fn no_percentile_is_told_without_its_mark() {
    // 200 I/Os: enough for a 95th percentile, not for a 99.9th.
    let runs = vec![run("short", &result(50.0, 20.0, 4))];
    let page =
        check(&Sources { runs, ..Sources::default() }, &["none: too few I/Os", "weak: rests on"]);
    let cells: Vec<usize> =
        page.match_indices("<td class=\"n\">99.9</td>").map(|(place, _)| place).collect();
    assert!(!cells.is_empty());
    for place in cells {
        let row: String = page[place..].chars().take(90).collect();
        assert!(row.contains("<td class=\"n\">–</td>"), "{row}");
    }
    let tiny = vec![run("tiny", &result(1.0, 20.0, 3))];
    check(&Sources { runs: tiny, ..Sources::default() }, &["1.0 I/Os per second"]);
}

#[test]
fn runs_are_compared_or_make_a_curve() {
    let [a, b] =
        [10_000.0, 12_000.0].map(|iops| run(&format!("r{iops}"), &result(iops, 16e3 / iops, 60)));
    check(
        &Sources { runs: vec![a.clone(), b], ..Sources::default() },
        &["iops: r12000 against r10000: better", "Effects with their 95 % intervals", "Why: iops"],
    );

    let mut other = result(10_000.0, 1.6, 60);
    other["profile"]["TimeSpans"][0]["Targets"][0]["BlockSize"] = 8192.into();
    let runs = vec![a, run("other", &other)];
    check(
        &Sources { runs, ..Sources::default() },
        &["r10000 and other are not compared: the workloads differ"],
    );

    let curve = [1, 2, 4, 8, 16, 32].map(|o: u32| {
        let iops = (f64::from(o) * 2000.0).min(9000.0 + f64::from(o));
        let mut result = result(iops, f64::from(o) * 2.0 / iops * 1e3, 10);
        result["profile"]["TimeSpans"][0]["Targets"][0]["RequestCount"] = o.into();
        result["time_spans"][0]["littles_law"]["configured_outstanding"] = (2 * o).into();
        run(&format!("o{o}"), &result)
    });
    check(
        &Sources { runs: curve.into(), ..Sources::default() },
        &["Queue depth: More outstanding I/Os stop paying at o", "latency over throughput"],
    );

    let many = (0..14_i32).map(|n| {
        let iops = if n < 8 { 10_000.0 } else { 9_000.0 } + f64::from(n % 3) * 20.0;
        run(&format!("n{n}"), &result(iops, 1.6, 5))
    });
    check(
        &Sources { runs: many.collect(), ..Sources::default() },
        &["The level changes: -10.0 % from n8 on", "2 more runs are in the table only"],
    );
}

#[test]
fn a_curve_is_judged() {
    let text = include_str!("../../tests/data/sequential-reads.csv");
    let table = crate::table::read(text, None).expect("a table");
    let curve = Curve {
        name: "reads & more".into(),
        rows: table.rows,
        block_bytes: table.block_bytes,
        caps: Vec::new(),
    };
    let curves = vec![curve.clone(), curve];
    check(
        &Sources { curves, ..Sources::default() },
        &["stop paying at o31", "reads &amp; more", "end_elasticity", "same throughput"],
    );
}

#[test]
fn whatever_is_in_a_result_makes_a_page() {
    let mut odd = result(1e9, 1e-6, 3);
    odd["engine"] = "</script><script>alert(1)</script>".into();
    odd["time_spans"][0]["intervals"]["series"] = json!([{}, { "end_ns": null }, {}, {}]);
    odd["time_spans"][0]["threads"] = json!([{}, {}]);
    odd["time_spans"][0]["counters"] = json!({ "devices": [{}], "series": [{}, {}, {}, {}] });
    let runs = vec![run("</script>", &odd)];
    let page = check(&Sources { runs, ..Sources::default() }, &["&lt;/script&gt;"]);
    assert!(!page.contains("<script>alert"));
    check(&Sources::default(), &["Nothing could be found"]);
}

/// A study of a range of queue depths, ten times each.
fn study(runs: u32) -> StudyView {
    let record = |run: u32| {
        let o = (run - 1) % 50 + 1;
        let iops = f64::min(f64::from(o) * 400.0, 8000.0) * (1.0 + 0.002 * f64::from(run % 7));
        let summary = Summary {
            io_count: 480_000,
            iops,
            mib_per_s: iops / 128.0,
            half_width: Some(0.004),
            latency_ms: Some(f64::from(o) * 1e3 / iops),
            percentiles: vec![Percentile { percent: 99.0, ms: 5.0, spread: Some((8, 8)) }],
            seconds: 60.0,
            steady: true,
            ..Summary::default()
        };
        RunRecord {
            run,
            key: format!("{run:016x}"),
            step: "sweep".into(),
            purpose: Purpose::Measure,
            repetition: (run - 1) / 50 + 1,
            setting: Setting { threads: 1, outstanding: o, ..Setting::default() },
            started_s: 0.0,
            ended_s: 60.0,
            ended: None,
            outcome: Outcome::Measured,
            summary: Some(summary),
            result: None,
            command: Vec::new(),
            counters: None,
        }
    };
    let runs: Vec<RunRecord> = (1..=runs).map(record).collect();
    let mut decision = Map::new();
    decision.insert("rule".into(), "knee".into());
    decision.insert("verdict".into(), "knee".into());
    let finding = Finding {
        id: "o of t1".into(),
        title: "Queue depth".into(),
        sentence: "More than o20 brings nothing.".into(),
        step: "sweep".into(),
        decision,
        runs: runs.iter().map(|run| run.run).collect(),
        table: None,
    };
    StudyView {
        plan: Study {
            format: FORMAT,
            id: "s".into(),
            kind: Kind::Sweep,
            title: "A sweep".into(),
            created: "2026-01-01T00:00:00Z".into(),
            tool: "plumb".into(),
            epoch: 1,
            target: "f".into(),
            device: Device::Real,
            devices: None,
            copies: 1,
            seed: 1,
            request: Value::Null,
            runs_most: 500,
            runs_exhaustive: 500,
            estimate_s: 1.0,
            estimate_range_s: None,
            critical: [("kernel".to_owned(), "6.12".to_owned())].into(),
            environment: None,
        },
        findings: Some(Findings {
            format: FORMAT,
            study: "s".into(),
            state: State::Partial,
            runs: 500,
            runs_exhaustive: 500,
            findings: vec![finding],
            notes: vec!["The anchor drifted.".into()],
        }),
        runs,
        details: Vec::new(),
    }
}

/// A finding that chooses among the settings of a study.
fn choice(study: &StudyView) -> Finding {
    let decision = json!({
        "id": "random-2", "rule": "best", "verdict": "best", "reason": "because", "value": "t1 o3",
        "best_set": ["t1 o3", "t1 o4"], "checks": [{ "id": "mem", "verdict": "warn", "evidence": ["swap", 2] }],
        "bottleneck": { "rule": 5, "sentence": "the device is saturated", "evidence": ["busy 99 %"] },
        "evidence": [{ "name": "deviation_between_runs", "value": 0.01 }],
    });
    Finding {
        id: "random-2".into(),
        title: "Threads".into(),
        sentence: "Use t1 o3.".into(),
        step: "random-2".into(),
        decision: decision.as_object().expect("an object").clone(),
        runs: study.runs.iter().map(|run| run.run).filter(|run| *run <= 4).collect(),
        table: None,
    }
}

#[test]
fn a_study_is_told_with_its_runs_and_what_holds_it_down() {
    let mut study = study(60);
    let finding = choice(&study);
    let findings = study.findings.as_mut().expect("some");
    findings.findings[0].decision.insert("recommended_o".into(), 20.into());
    findings.findings.push(finding);
    for run in &mut study.runs {
        let summary = run.summary.as_mut().expect("measured");
        summary.cpu_us_per_io = Some(5.0 + f64::from(run.run));
        // Of the last queue depth only few I/Os are known.
        if run.setting.outstanding == 50 {
            summary.io_count = 20;
        }
        run.result = Some("a file".into());
    }
    let chosen = worth_a_look(study.findings.as_ref(), &study.runs);
    let numbers: Vec<u32> = chosen.iter().map(|(run, ..)| run.run).collect();
    assert_eq!(numbers, [20, 3]);
    let (run, finding, why) = chosen[1].clone();
    let view = self::run("Run 3", &result(1200.0, 2.5, 20));
    study.details = vec![Detail { run: run.run, finding, why, setting: run.setting.clone(), view }];
    let sources = Sources { studies: vec![study.clone()], ..Sources::default() };
    let page = check(
        &sources,
        &[
            "Threads: what holds it down: the device is saturated.",
            "Threads: settings side by side",
            "t1 o3 is the cheapest of these",
            "<a href=\"#study-1-run-3\">run 3</a>",
            "The answer to: Threads.",
            "Latency of reads over time",
            "busy 99 %",
            "<td>swap; 2</td>",
            "It rests on the runs 1–60.",
            "99 of 100 I/Os took 5.00 ms or less (o20, mark good; episodes not told: 8 intervals)",
            "processor time per I/O",
        ],
    );
    // A 99th percentile of 20 I/Os is none.
    let row = page.lines().find(|line| line.starts_with("50,50,1,")).expect("the row of o50");
    let cells: Vec<&str> = row.split(',').collect();
    assert_eq!((cells[8], cells[9]), ("", ""), "{row}");
    let row = page.lines().find(|line| line.starts_with("20,20,1,")).expect("the row of o20");
    assert!(row.contains(",5,good; episodes not told: 8 intervals,"), "{row}");
}

#[test]
fn an_earlier_study_is_drawn_under_this_one_and_compared() {
    let earlier = study(100);
    let mut now = study(100);
    now.plan.id = "now".into();
    for run in &mut now.runs {
        let summary = run.summary.as_mut().expect("measured");
        summary.iops *= 0.8;
        summary.latency_ms = summary.latency_ms.map(|ms| ms / 0.8);
    }
    let earlier = Some(Earlier::Study(Box::new(earlier)));
    check(
        &Sources { studies: vec![now.clone()], earlier: earlier.clone(), ..Sources::default() },
        &[
            "Against s: 50 settings were measured in both: 0 figures better, ",
            "something changed, at 5 % over all of them together",
            "I/Os per second of s",
            "now 6",
            "(-20.0 %)",
            "t1 o1 b8K r w30: iops: worse",
        ],
    );
    now.plan.epoch = 2;
    check(
        &Sources { studies: vec![now], earlier, ..Sources::default() },
        &["Against s: not compared: the results were measured in different ways"],
    );
}

#[test]
fn an_earlier_run_is_drawn_under_this_one() {
    let earlier = run("before", &result(10_000.0, 1.6, 60));
    let now = run("after", &result(8000.0, 2.0, 60));
    let earlier = Some(Earlier::Run(Box::new(earlier)));
    check(
        &Sources { runs: vec![now], earlier, ..Sources::default() },
        &[
            "iops: after against before: worse",
            "reads of before",
            "In before these 99 took",
            "Effects with their 95 % intervals",
            "Share of I/Os by latency",
        ],
    );
}

#[test]
fn a_tail_of_few_stalls_says_so() {
    let mut stalled = result(10_000.0, 1.6, 60);
    let slow = json!([200_000_000_u64, 1000, 700]);
    let buckets = |span: &mut Value| {
        span["latency_ns"]["buckets"].as_array_mut().expect("buckets").push(slow.clone());
    };
    buckets(&mut stalled["time_spans"][0]["read"]);
    for second in [7, 31] {
        buckets(&mut stalled["time_spans"][0]["intervals"]["series"][second]["read"]);
    }
    let runs = vec![run("stalled", &stalled)];
    let page = check(
        &Sources { runs, ..Sources::default() },
        &["good; few episodes: in 2 of 60 intervals"],
    );
    assert!(page.contains("reads,99.9,200,"), "the percentile is that of the stalls");
    let calm = vec![run("calm", &result(10_000.0, 1.6, 60))];
    let page = check(&Sources { runs: calm, ..Sources::default() }, &["mark good"]);
    assert!(!page.contains("few episodes"));
    // Eight seconds cannot hold ten episodes that would be told apart.
    let mut short = result(10_000.0, 1.6, 8);
    buckets(&mut short["time_spans"][0]["read"]);
    buckets(&mut short["time_spans"][0]["intervals"]["series"][3]["read"]);
    let short = vec![run("short", &short)];
    let page = check(
        &Sources { runs: short, ..Sources::default() },
        &["good; episodes not told: 8 intervals"],
    );
    assert!(!page.contains("few episodes"));
}

#[test]
fn a_study_of_five_hundred_runs_is_small_and_quick() {
    let studies = vec![study(500)];
    let begun = Instant::now();
    let page = check(
        &Sources { studies, ..Sources::default() },
        &[
            "Queue depth: More than o20 brings nothing.",
            "The study is not finished",
            "The anchor drifted.",
            "throughput and latency per queue depth",
            "440 more rows",
        ],
    );
    let taken = begun.elapsed();
    assert!(taken < Duration::from_secs(3), "{taken:?}");
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
}
