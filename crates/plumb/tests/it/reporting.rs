//! `plumb report` of results, tables, stored runs and studies.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{self, Outcome, outcome, repository};

fn plumb(folder: &tempfile::TempDir, line: &str) -> Outcome {
    let mut command = Command::new(program::path());
    command
        .args(line.split_whitespace())
        .current_dir(folder.path())
        .env("XDG_STATE_HOME", folder.path().join("state"));
    outcome(&mut command)
}

#[test]
fn a_report_is_one_file_and_its_findings_are_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("data"), vec![7; 1 << 20]).expect("a file");
    let line = "run --engine=sync -b4K -r -d1 -W0 -L -D100 --output json=run.json --store=x data";
    plumb(&folder, line).ends_with(0);
    let told = plumb(&folder, "report run.json -o run.html").succeeds_quietly().stdout;
    assert!(told.contains("I/Os per second") && told.ends_with("\nrun.html\n"), "{told}");
    let page = fs::read_to_string(folder.path().join("run.html")).expect("a page");
    for part in
        ["<!doctype html>", "4 KiB random, reads, t1 o2", "Latency by percentile", "new uPlot"]
    {
        assert!(page.contains(part), "{part}");
    }
    // It may be made again, but nothing else is replaced.
    let told = plumb(&folder, "report x run.json -o run.html").succeeds_quietly().stdout;
    assert!(told.contains("run.json against x"), "{told}");
    let refused = plumb(&folder, "report x -o data").ends_with(1).stderr;
    assert!(refused.contains("is there and is no report"), "{refused}");

    let tables = repository().join("crates/plumb-study/tests/data").canonicalize().expect("data");
    let line = format!("report {} -o -", tables.join("sequential-reads.csv").display());
    let page = plumb(&folder, &line).succeeds_quietly().stdout;
    assert!(page.contains("sequential-reads.csv: More outstanding I/Os stop paying at o31"));
    let refused = plumb(&folder, "report nothing").ends_with(1).stderr;
    assert!(refused.contains("cannot read nothing"), "{refused}");
    plumb(&folder, "report").ends_with(2);
}

/// Rules of reading that one run can make fire (method, section 8): R1 to R7, R9 to R11, R14, R15, R17 to R20, R24. The
/// others need a study: `the_rules_of_reading_see_the_runs_and_the_whole` and its neighbours in plumb-study.
#[test]
fn a_small_file_through_the_page_cache_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "run --engine=sync -b4K -r -d2 -W0 -L -c1M --output json=run.json data";
    plumb(&folder, line).ends_with(0);
    let page = plumb(&folder, "report run.json -o -").succeeds_quietly().stdout;
    assert!(page.contains("R12: The file (1 MiB) fits into the page cache"), "no R12");
    plumb(&folder, &line.replace("-L", "-L -Su").replace("run.json", "direct.json")).ends_with(0);
    let page = plumb(&folder, "report direct.json -o -").succeeds_quietly().stdout;
    assert!(!page.contains("R12: "), "R12 although the page cache is bypassed");
}

#[test]
fn rules_of_reading_that_a_run_can_break_are_told_by_its_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "run --engine=sync -b64K -s -t2 -o1 -w30 -d1 -W0 -L -D100 -Sh -c1M --output json=run.json data";
    plumb(&folder, line).ends_with(0);
    let text = fs::read_to_string(folder.path().join("run.json")).expect("a result");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let report = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut changed = document.clone();
        change(&mut changed["time_spans"][0]);
        fs::write(folder.path().join(name), changed.to_string()).expect("written");
        plumb(&folder, &format!("report {name} -o -")).succeeds_quietly().stdout
    };
    #[track_caller]
    fn says(page: &str, rule: &str, part: &str) {
        let start = format!("{rule}: ");
        let told = page.match_indices(&start).any(|(at, _)| {
            let end = page[at..].find('<').map_or(page.len(), |end| at + end);
            page[at..end].contains(part)
        });
        assert!(told, "{rule} does not say {part}");
    }
    let set_buckets = |span: &mut Value, buckets: &Value| {
        for side in ["total", "read", "write"] {
            span[side]["latency_ns"]["buckets"] = buckets.clone();
        }
    };
    let page = report("a.json", &|span| {
        // 1 ms for most, one stall of 50 ms.
        set_buckets(span, &json!([[1_000_000, 8192, 3000], [50_000_000, 524_288, 20]]));
        span["threads"][0]["targets"][0]["total"]["iops_per_s"] = json!(100.0);
        span["threads"][1]["targets"][0]["total"]["iops_per_s"] = json!(200.0);
        let core = |usage: f64, idle: f64| {
            json!({ "group": 0, "cpu": 0, "usage_percent": usage, "user_percent": usage, "kernel_percent": 0.0,
                    "idle_percent": idle })
        };
        span["cpu"]["processors"] =
            json!([core(90.0, 10.0), core(12.0, 88.0), core(12.0, 88.0), core(0.0, 0.0)]);
        span["total"]["io_count"] = json!(4000);
        span["write"]["io_count"] = json!(2000);
        let interval = |number: u64| {
            let rate = if number < 8 { 1000.0 } else { 400.0 };
            json!({ "number": number, "start_ns": number * 100_000_000, "end_ns": (number + 1) * 100_000_000,
                    "total": { "io_count": 100, "bytes": 0, "iops_per_s": rate, "bytes_per_s": 0.0 } })
        };
        span["intervals"]["series"] = (0..10).map(interval).collect();
    });
    for (rule, part) in [
        ("R1", "In all"),
        ("R2", "jumps between 99th and 3 nines: ×50"),
        ("R3", "differ by 66.7 %"),
        ("R4", "CPU 0 is 90.00 % busy, the median 12"),
        ("R5", "busiest CPU is 90 %"),
        ("R6", "1 of 4 CPUs were not measured"),
        ("R7", "r = "),
        ("R9", "percentiles rest on few"),
        ("R10", "one stall"),
        ("R14", "compresses"),
        ("R15", "40 % of what the first did"),
        ("R17", "The run is short"),
        ("R18", "from interval to interval"),
        ("R19", "50.000 % of the I/Os were writes, not 30.000 %"),
        ("R20", "-si, or -T"),
        ("R24", "The page cache was bypassed and writes went through"),
    ] {
        says(&page, rule, part);
    }
    let page = report("b.json", &|span| set_buckets(span, &json!([[2000, 16, 3000]])));
    says(&page, "R11", "they come from memory");
    // With a place of its own for each thread R20 has nothing to say.
    let mut apart = document.clone();
    apart["profile"]["TimeSpans"][0]["Targets"][0]["ThreadStride"] = json!(65536);
    fs::write(folder.path().join("c.json"), apart.to_string()).expect("written");
    let page = plumb(&folder, "report c.json -o -").succeeds_quietly().stdout;
    assert!(page.contains("R24: ") && !page.contains("R20: "));
}
