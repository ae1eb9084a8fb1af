//! The report in a real browser, headless.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use plumb_study::study::{
    Device, FORMAT, Finding, Findings, Kind, Outcome, Purpose, RunRecord, Setting, State, Study,
    Summary,
};
use serde_json::{Map, Value};

use crate::program::{call, path};

/// Milliseconds until a report of 500 runs is ready.
const READY_MOST: f64 = 1000.0;

/// Calls chromium; what it printed.
fn chromium(folder: &Path, options: &[&str], page: &Path) -> String {
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .arg("--disable-dev-shm-usage")
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(options)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .env("HOME", folder)
        .output()
        .expect("chromium can be started");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn record(run: u32) -> RunRecord {
    let o = (run - 1) % 50 + 1;
    let iops = f64::min(f64::from(o) * 400.0, 8000.0) * (1.0 + 0.002 * f64::from(run % 7));
    let summary = Summary {
        io_count: 480_000,
        iops,
        mib_per_s: iops / 128.0,
        latency_ms: Some(f64::from(o) * 1e3 / iops),
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
}

/// A study of 500 runs in a folder.
fn study(folder: &Path) {
    let plan = Study {
        format: FORMAT,
        id: "sweep".into(),
        kind: Kind::Sweep,
        title: "A sweep of 500 runs".into(),
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
        critical: Default::default(),
        environment: None,
    };
    let mut decision = Map::new();
    decision.insert("rule".into(), "knee".into());
    let finding = |number: u32| Finding {
        id: format!("part {number}"),
        title: format!("Part {number}"),
        sentence: "More than o20 brings nothing.".into(),
        step: "sweep".into(),
        decision: decision.clone(),
        runs: (1..=500).collect(),
        table: None,
    };
    let findings = Findings {
        format: FORMAT,
        study: "sweep".into(),
        state: State::Complete,
        runs: 500,
        runs_exhaustive: 500,
        findings: (1..=10).map(finding).collect(),
        notes: Vec::new(),
    };
    fs::create_dir(folder).expect("a folder");
    let write = |name: &str, text: String| fs::write(folder.join(name), text).expect("a file");
    write("plan.json", serde_json::to_string(&plan).expect("JSON"));
    write("findings.json", serde_json::to_string(&findings).expect("JSON"));
    let line = |run| serde_json::to_string(&record(run)).expect("JSON") + "\n";
    write("journal.ndjson", (1..=500).map(line).collect());
}

#[test]
fn a_long_report_opens_at_once_in_a_browser() {
    if Command::new("chromium").arg("--version").output().is_err() {
        println!("skipped a_long_report_opens_at_once_in_a_browser: no chromium");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    study(&folder.join("sweep"));
    let page = folder.join("out.html");
    let words: [std::ffi::OsString; 4] =
        ["report".into(), folder.join("sweep").into(), "-o".into(), page.clone().into()];
    call(path(), &words).succeeds_quietly();
    assert!(fs::metadata(&page).expect("a page").len() < 3 << 20);

    // The machine may be busy: the best of three is what the page takes.
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let document = chromium(
            folder,
            &["--virtual-time-budget=2000", "--window-size=1440,4000", "--dump-dom"],
            &page,
        );
        assert!(document.contains("A sweep of 500 runs"), "{} bytes", document.len());
        assert!(document.contains("has-live") && document.contains("class=\"uplot"), "uPlot drew");
        let ready = document.split("data-ready=\"").nth(1).and_then(|rest| rest.split('"').next());
        best =
            best.min(ready.and_then(|text| text.parse().ok()).expect("the script came to its end"));
        if best <= READY_MOST {
            break;
        }
    }
    assert!(best <= READY_MOST, "{best} ms");

    let paper = folder.join("out.pdf");
    let print = format!("--print-to-pdf={}", paper.display());
    chromium(folder, &["--no-pdf-header-footer", &print], &page);
    let paper = fs::read(paper).expect("it is printed");
    assert!(paper.starts_with(b"%PDF") && paper.len() > 20_000, "{} bytes", paper.len());
}
