//! The eight figures that desktop tools show, honestly labelled.

use serde_json::json;

use super::axis::Axis;
use super::document::FORMAT;
use super::findings::{Finding, Findings, State, Table};
use super::options::{RunOrder, SweepPlan};
use super::record::RunRecord;
use super::run_notes::notes;
use super::sweep_findings::Told;
use super::{Access, Conditioning, Setting};
use crate::decision::{self, Rule};
use crate::knee::Policy;
use crate::stats::describe::median;

/// Bytes of the test file where nothing is said: 1 GiB.
pub const QUICK_BYTES: u64 = 1 << 30;

/// What the tools call each pattern, its block, outstanding I/Os and access.
const PATTERNS: [(&str, u64, u32, Access); 4] = [
    ("SEQ1M Q8T1", 1 << 20, 8, Access::Sequential),
    ("SEQ1M Q1T1", 1 << 20, 1, Access::Sequential),
    ("RND4K Q32T1", 4096, 32, Access::Random),
    ("RND4K Q1T1", 4096, 1, Access::Random),
];

/// The eight settings, reads before writes, each run `repetitions` times for `seconds`.
#[must_use]
pub fn quick_plan(file_bytes: Option<u64>, seconds: u32, repetitions: u32) -> SweepPlan {
    let setting =
        |write_percent: u32, (_, block_bytes, outstanding, access): &(&str, u64, u32, Access)| {
            Setting {
                file_bytes,
                threads: 1,
                outstanding: *outstanding,
                block_bytes: *block_bytes,
                write_percent,
                access: *access,
                // As those tools: past the page cache, not past the device's own.
                cache: "u".to_owned(),
                warm_up_s: 1,
                measured_s: seconds.max(1),
                ..Setting::default()
            }
        };
    let settings: Vec<Setting> = [0, 100]
        .into_iter()
        .flat_map(|percent| PATTERNS.iter().map(move |pattern| setting(percent, pattern)))
        .collect();
    SweepPlan {
        base: settings[0].clone(),
        axes: Vec::<Axis>::new(),
        settings,
        repetitions: repetitions.max(1),
        order: RunOrder::AsGiven,
        gap_s: 0,
        conditioning: Conditioning::None,
        device_bytes: None,
        seed: 1,
        anchors: false,
        adaptive: false,
        early_end: false,
        budget_s: None,
        policy: Policy::default(),
        latency_budget_ms: None,
        devices: None,
        copies: 1,
        caps: Vec::new(),
    }
}

/// The eight figures: medians, in decimal megabytes as those tools print them.
#[must_use]
pub fn quick_findings(plan: &SweepPlan, runs: &[RunRecord], told: Told) -> Findings {
    let mut rows = Vec::new();
    let mut figures = serde_json::Map::new();
    let mut said = Vec::new();
    for (index, (name, ..)) in PATTERNS.iter().enumerate() {
        let mut row = vec![json!(name)];
        let mut of_both = Vec::new();
        for (word, place) in [("read", index), ("write", index + PATTERNS.len())] {
            let setting = &plan.settings[place];
            let own: Vec<_> = runs
                .iter()
                .filter(|run| run.setting == *setting)
                .filter_map(RunRecord::usable)
                .collect();
            if own.is_empty() {
                row.extend([json!(null), json!(null), json!(null), json!(null)]);
                continue;
            }
            let iops = median(&own.iter().map(|s| s.iops).collect::<Vec<_>>());
            let megabytes = iops * setting.block_bytes as f64 / 1e6;
            let rates = || own.iter().map(|s| s.iops * setting.block_bytes as f64 / 1e6);
            let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
            let latencies: Vec<f64> = own.iter().filter_map(|s| s.latency_ms).collect();
            let latency = (!latencies.is_empty()).then(|| median(&latencies));
            row.extend([json!(megabytes), json!([low, high]), json!(iops), json!(latency)]);
            figures.insert(format!("{name} {word}"), json!(megabytes));
            let range = match own.len() {
                1 => String::new(),
                _ => format!(" ({low:.1} to {high:.1})"),
            };
            of_both.push(format!("{word} {megabytes:.1}{range}"));
        }
        if !of_both.is_empty() {
            said.push(format!("{name}: {} MB/s", of_both.join(", ")));
        }
        rows.push(row);
    }
    let sentence = format!("{}.", said.join("; "));
    let mut decision = decision::plain(Rule::Figure, "quick", "measured", &sentence);
    decision.insert("value".to_owned(), figures.into());
    let columns = [
        "pattern",
        "read [MB/s]",
        "read range [MB/s]",
        "read [1/s]",
        "read avg_lat [ms]",
        "write [MB/s]",
        "write range [MB/s]",
        "write [1/s]",
        "write avg_lat [ms]",
    ];
    let finding = Finding {
        id: "quick".to_owned(),
        title: "Eight figures".to_owned(),
        sentence,
        step: "quick".to_owned(),
        decision,
        runs: runs.iter().map(|run| run.run).collect(),
        table: Some(Table { columns: columns.map(str::to_owned).to_vec(), rows }),
    };
    let mut remarks = vec![
        "MB are 10^6 bytes, as desktop tools print them; everything else of Plumb counts MiB".to_owned(),
        "each figure is the median of its runs with their range; desktop tools show the best one".to_owned(),
        "a completed write may be in a volatile cache of the device (-Su): plumb baseline measures past it"
            .to_owned(),
        "runs of seconds on a small file see caches as much as the device: this is no baseline".to_owned(),
    ];
    remarks.extend(notes(runs));
    remarks.extend(told.notes(runs));
    if told.state == State::Partial {
        remarks.push("not finished: some figures are missing".to_owned());
    }
    Findings {
        format: FORMAT,
        study: told.study.to_owned(),
        state: told.state,
        runs: runs.len() as u64,
        runs_exhaustive: told.runs_exhaustive,
        findings: vec![finding.with_unsteady(runs)],
        notes: remarks,
    }
}
