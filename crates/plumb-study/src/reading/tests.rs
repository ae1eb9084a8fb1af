use super::latency::largest_jump;
use super::*;

const D0_THREADS: &str = include_str!("../../tests/data/pretest-1-threads.csv");
const D0_CPU: &str = include_str!("../../tests/data/pretest-1-cpu.csv");
const D0_PERCENTILES: &str = include_str!("../../tests/data/pretest-1-percentiles.csv");
const D2_THREADS: &str = include_str!("../../tests/data/seed-002-threads.csv");
const D2_CPU: &str = include_str!("../../tests/data/seed-002-cpu.csv");
const D2_PERCENTILES: &str = include_str!("../../tests/data/seed-002-percentiles.csv");

fn cells(csv: &str) -> Vec<Vec<&str>> {
    csv.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}

fn threads(csv: &str) -> Vec<Thread> {
    let rows = cells(csv);
    let of_thread = rows.iter().filter(|row| row[0] == "total" && row[1] != "total");
    of_thread.map(|row| Thread { iops: number(row[5]) }).collect()
}

fn cores(csv: &str) -> Vec<Cpu> {
    let rows = cells(csv);
    let of_core = rows.iter().filter(|row| row[0] != "avg");
    of_core.map(|row| Cpu { usage: number(row[1]), idle: number(row[4]) }).collect()
}

fn percentiles(csv: &str, column: usize, count: u64) -> Percentiles {
    let percent = |name: &str| match name {
        "min" => 0.0,
        "max" => 100.0,
        name => match name.strip_suffix("-nines") {
            Some(digits) => 100.0 - 10_f64.powi(2 - digits.parse::<i32>().expect("digits")),
            None => number(name.trim_end_matches("th")),
        },
    };
    let rows = cells(csv).iter().map(|row| (percent(row[0]), number(row[column]))).collect();
    Percentiles { rows, count: Some(count), few: None }
}

fn pretest_1() -> Facts {
    Facts {
        iops: Some(58_071.31),
        block_bytes: Some(8192.0),
        count: Some(34_843_094),
        outstanding: Some(96.0),
        closed_loop: true,
        measured_s: Some(600.0),
        warm_up_s: Some(300.0),
        latencies: Latencies {
            mean_ms: Some(1.652),
            half_unit_ms: 0.0005,
            slowest_ms: None,
            read: percentiles(D0_PERCENTILES, 1, 24_380_692),
            write: percentiles(D0_PERCENTILES, 2, 10_462_402),
            total: percentiles(D0_PERCENTILES, 3, 34_843_094),
        },
        threads: threads(D0_THREADS),
        cores: cores(D0_CPU),
        write_share_wanted: Some(0.3),
        write_share: Some(0.30027),
        incompressible: Some(true),
        measures_latency: true,
        sync: Some(Sync::Both),
        ..Facts::default()
    }
}

/// What a rule says; `None` when it is silent.
fn said(facts: &Facts, rule: u32) -> Option<(Severity, String)> {
    let remarks: Vec<Remark> = read(facts).into_iter().filter(|r| r.rule == rule).collect();
    let texts: Vec<&str> = remarks.iter().map(|remark| remark.text.as_str()).collect();
    remarks.first().map(|remark| (remark.severity, texts.join("\n")))
}

#[track_caller]
fn says(facts: &Facts, rule: u32, severity: Severity, parts: &[&str]) {
    let (found, text) = said(facts, rule).unwrap_or_else(|| panic!("R{rule} is silent"));
    assert_eq!(found, severity, "R{rule}: {text}");
    for part in parts {
        assert!(text.contains(part), "R{rule}: {text} lacks {part}");
    }
}

#[track_caller]
fn silent(facts: &Facts, rule: u32) {
    assert_eq!(said(facts, rule), None, "R{rule}");
}

use Severity::{Info, Warn};

#[test]
fn a_jump_is_quoted_with_the_marks_of_its_percentiles() {
    let facts = |count, few| {
        let rows = vec![(50.0, 1.0), (99.0, 1.5), (99.9, 9.0), (99.99, 45.0)];
        let read = Percentiles { rows, count, few };
        Facts { latencies: Latencies { read, ..Latencies::default() }, ..Facts::default() }
    };
    says(&facts(Some(2_000_000), None), 2, Info, &["1.500 ms (good)", "9.000 ms (good)", "×6.00"]);
    says(&facts(Some(20_000), None), 2, Info, &["to 9.000 ms (fair: rests on 20.0 I/Os)"]);
    says(&facts(Some(4_000), None), 2, Info, &["to [9.000 ms] (weak: rests on 4.0 I/Os)"]);
    // 3 nines of 400 I/Os are no value that may be quoted, and what is left does not jump.
    silent(&facts(Some(400), None), 2);
    says(&facts(None, None), 2, Info, &["9.000 ms (of how many I/Os is not known)"]);
    let few = FewIntervals { percent: 99.9, with: 4, all: 600 };
    says(
        &facts(Some(2_000_000), Some(few)),
        2,
        Info,
        &["1.500 ms (good)", "9.000 ms (good, few episodes: 4)"],
    );
}

#[test]
fn nothing_known_nothing_said() {
    assert!(read(&Facts::default()).is_empty());
}

/// R10: of 299 I/Os 3 to 6 nines are all the slowest one. Of ten million they are rows of their own.
#[test]
fn the_slowest_of_few_ios_is_no_stall() {
    let mut facts = Facts::default();
    let rows = [50.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 100.0];
    let of = |count| Percentiles {
        rows: rows
            .iter()
            .map(|percent| (*percent, if *percent < 99.5 { 1.0 } else { 9.0 }))
            .collect(),
        count: Some(count),
        few: None,
    };
    facts.latencies.read = of(299);
    silent(&facts, 10);
    facts.latencies.read = of(10_000_000);
    says(&facts, 10, Info, &["The 4 highest read percentiles are the same", "one stall"]);
}

#[test]
fn the_published_pretest_is_read() {
    let facts = pretest_1();
    says(
        &facts,
        1,
        Info,
        &["58071 I/Os per second", "453.68 MiB/s", "1.652 ms", "8 threads", "7259 each"],
    );
    says(
        &facts,
        2,
        Info,
        &["read", "write latency jumps between 95th and 99th: ×4.37", "×5.40", " ms (good) to "],
    );
    silent(&facts, 3);
    says(&facts, 4, Info, &["CPU 1 is 38.38 % busy", "12.54 %"]);
    silent(&facts, 5);
    silent(&facts, 6);
    says(&facts, 7, Info, &["r = -0.07 %"]);
    says(&facts, 9, Info, &["6 nines on 34.8 I/Os (fair)", "7 nines on 3.5 I/Os (none)"]);
    says(&facts, 10, Info, &["The 3 highest total percentiles are the same", "one stall"]);
    for quiet in [11, 12, 13, 14, 16, 17, 19, 20] {
        silent(&facts, quiet);
    }
    says(&facts, 24, Info, &["-Sh"]);
    let spread = Spread::of(&threads(D0_THREADS).iter().map(|t| t.iops).collect::<Vec<_>>());
    assert!(spread.is_some_and(|spread| (spread.range - 0.016).abs() < 0.0005));
    // The sentence of the command's 15 outstanding would be another one.
    says(&Facts { outstanding: Some(120.0), ..facts }, 7, Warn, &["-20.06 %", "generator"]);
}

#[test]
fn the_second_published_sample_is_read() {
    let mut cores = cores(D2_CPU);
    // The printed table has 32 rows, 24 of them of no processor.
    cores.resize(32, Cpu::default());
    let facts = Facts {
        threads: threads(D2_THREADS),
        cores,
        latencies: Latencies {
            read: percentiles(D2_PERCENTILES, 1, 2_222_856),
            total: percentiles(D2_PERCENTILES, 3, 2_469_840),
            ..Latencies::default()
        },
        ..Facts::default()
    };
    silent(&facts, 3);
    says(&facts, 6, Info, &["24 of 32", "over the 8", "9.98 %", "2.49 %"]);
    says(
        &facts,
        2,
        Info,
        &["read latency jumps between 99th and 3 nines: ×8.03, from 4.818 ms (good) to 38.694"],
    );
    says(&facts, 10, Info, &["6 highest total percentiles"]);
    says(&facts, 9, Info, &["5 nines on 24.7 I/Os (fair)", "6 nines on 2.5 I/Os (none)"]);
    let jump = largest_jump(&facts.latencies.read).expect("a table");
    assert!((jump.2 - 8.03).abs() < 0.005);
}

#[test]
fn rates_and_their_course() {
    let mut facts = Facts {
        iops: Some(55_232.0),
        lowest_latency_ms: Some(0.553),
        ceiling: Some("VM limit 1920".into()),
        write_share: Some(1.0),
        series: [vec![1000.0; 40], vec![300.0; 20]].concat(),
        threads: vec![Thread { iops: 100.0 }, Thread { iops: 112.0 }],
        ..Facts::default()
    };
    says(&facts, 3, Warn, &["11.3 %"]);
    says(&facts, 8, Warn, &["VM limit 1920"]);
    says(&facts, 15, Warn, &["30 %"]);
    says(&facts, 18, Warn, &["varies by"]);
    says(&facts, 21, Info, &["30.5 outstanding"]);
    facts.series = vec![1953.3, 1953.3 + 17.7, 1953.3 - 17.7, 1953.3, 1960.0];
    silent(&facts, 15);
    silent(&facts, 18);
}

#[test]
fn contradictions_are_told() {
    let facts = Facts {
        iops: Some(1000.0),
        outstanding: Some(10.0),
        latencies: Latencies { mean_ms: Some(10.5), ..Latencies::default() },
        ..Facts::default()
    };
    says(&facts, 7, Warn, &["+5.00 %", "Do not use"]);
    let closed = Facts { closed_loop: true, ..facts.clone() };
    says(&closed, 7, Warn, &["contradict"]);
    let mean_ms = Some(9.8);
    let latencies = Latencies { mean_ms, ..Latencies::default() };
    says(&Facts { latencies: latencies.clone(), ..closed }, 7, Info, &["200.0 µs"]);
    silent(&Facts { latencies, ..facts.clone() }, 7);
    // An open loop that is behind: its latencies are response times, which begin before the submission.
    let behind = Latencies { mean_ms: Some(900.0), ..facts.latencies.clone() };
    let open = Facts { latencies: behind, in_flight: Some(9.0), ..facts };
    silent(&open, 7);
    let more = Facts { in_flight: Some(11.0), ..open };
    says(&more, 7, Warn, &["+10.00 %", "more in flight than there may be"]);
}

#[test]
fn latencies_that_no_device_has() {
    // (5.4) No percentile without its mark, and none that says nothing.
    let fast = |count| {
        let table = |ms| Percentiles { rows: vec![(50.0, ms)], count, few: None };
        let latencies = Latencies { read: table(0.003), write: table(0.09), ..<_>::default() };
        Facts { latencies, ..Facts::default() }
    };
    let on_disk = |count| Facts { medium: Some(Medium::Disk), ..fast(count) };
    for (count, told) in [
        (None, ["3.0 µs (of how many I/Os is not known)", "90 µs (of how many I/Os is not known)"]),
        (Some(200), ["3.0 µs (good)", "90 µs (good)"]),
        (Some(8), ["[3.0 µs] (weak: rests on 4.0 I/Os)", "[90 µs] (weak: rests on 4.0 I/Os)"]),
    ] {
        says(&fast(count), 11, Warn, &[told[0]]);
        silent(&fast(count), 16);
        says(&on_disk(count), 16, Warn, &[told[1]]);
    }
    silent(&on_disk(Some(3)), 11);
    silent(&on_disk(Some(3)), 16);
    let link = Facts {
        iops: Some(200_000.0),
        block_bytes: Some(4096.0),
        link_bytes_per_s: Some(600e6),
        completion: Some(Completion::Volatile),
        write_share: Some(0.1),
        ..Facts::default()
    };
    says(&link, 11, Warn, &["819 MB/s", "600 MB/s"]);
    says(&link, 16, Warn, &["loss of power"]);
    let few = Some(FewIntervals { percent: 99.99, with: 4, all: 120 });
    let table = Percentiles { count: Some(2_469_840), few, ..Percentiles::default() };
    let latencies = Latencies { total: table, ..Latencies::default() };
    says(
        &Facts { latencies, ..Facts::default() },
        9,
        Warn,
        &["from 4 nines on", "in 4 of 120 intervals"],
    );
}

#[test]
fn what_was_asked_for() {
    let cache = |file: f64, page, device| Facts {
        cache: Cache { file_bytes: Some(file), page_cache_bytes: page, device_cache_bytes: device },
        ..Facts::default()
    };
    says(&cache(1e9, Some(2e9), None), 12, Warn, &["page cache"]);
    says(&cache(1.5e9, None, Some(1e9)), 12, Warn, &["1.50 times"]);
    says(&cache(4e9, None, Some(1e9)), 12, Warn, &["4.00 times", "no multiple"]);
    silent(&cache(4.4e9, Some(1e9), Some(1e9)), 12);
    let facts = Facts {
        differing: vec!["file size (4 GiB and 64 GiB)".into()],
        incompressible: Some(false),
        unwritten_share: Some(0.25),
        measured_s: Some(30.0),
        warm_up_s: Some(3.0),
        medium: Some(Medium::Flash),
        count: Some(1_000_000),
        write_share_wanted: Some(0.3),
        write_share: Some(0.31),
        access: Some(Access::SequentialOverlapping),
        threads: vec![Thread { iops: 1.0 }; 2],
        remote: Some("by the coordinator node".into()),
        latency_cost: Some(LatencyCost::Told(1.0 - 56.1 / 59.5)),
        measures_latency: true,
        sync: Some(Sync::Buffered),
        ..Facts::default()
    };
    says(&facts, 13, Warn, &["4 GiB and 64 GiB"]);
    says(&facts, 14, Warn, &["-Z1M", "25.0 %"]);
    says(&facts, 17, Warn, &["30 s measured", "3 s of warm-up"]);
    let early = |asked| Facts { asked_s: Some(asked), warm_up_s: Some(10.0), ..facts.clone() };
    silent(&early(60.0), 17);
    says(&early(45.0), 17, Warn, &["45 s measured"]);
    says(&facts, 19, Warn, &["31.000 %"]);
    says(&facts, 20, Warn, &["-si"]);
    says(&facts, 22, Info, &["coordinator"]);
    says(&facts, 23, Info, &["5.7 %"]);
    let costing = |cost| Facts { latency_cost: Some(cost), ..facts.clone() };
    says(&costing(LatencyCost::Told(0.2)), 23, Warn, &["no maximum"]);
    says(&costing(LatencyCost::Open(0.2)), 23, Info, &["cannot be told"]);
    says(&facts, 24, Info, &["No cache was bypassed"]);
    for (sync, part) in [(Sync::PageCache, "-Su"), (Sync::WriteThrough, "-Sw")] {
        says(&Facts { sync: Some(sync), ..facts.clone() }, 24, Info, &[part]);
    }
    let busy = vec![Cpu { usage: 90.0, idle: 10.0 }, Cpu { usage: 20.0, idle: 80.0 }];
    says(&Facts { cores: busy, ..Facts::default() }, 5, Warn, &["90 %"]);
}
