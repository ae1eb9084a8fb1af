//! A study: what it found, as it says itself, and plots of its runs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::StudyView;
use super::of_runs::explained;
use super::page::{Block, Data, Headline, Section, Table, Tone, cell, latency, rate};
use super::plot::curve;
use crate::knee::{self, DeclaredCap, Limit, Options, Policy, Row};
use crate::percentile::{self, Mark};
use crate::study::{Finding, Outcome, RunRecord, Setting, State};

/// Letters of a fact that are shown.
const FACT_MOST: usize = 100;

pub(super) fn facts(study: &StudyView) -> Vec<(String, String)> {
    let plan = &study.plan;
    let mut facts = vec![
        ("Study".to_owned(), format!("{}, {}", plan.id, plan.kind.keyword())),
        ("Target".to_owned(), plan.target.clone()),
        ("Planned".to_owned(), plan.created.clone()),
        ("Measured by".to_owned(), format!("{}, measurement epoch {}", plan.tool, plan.epoch)),
        (
            "Runs".to_owned(),
            format!(
                "{} of at most {}; an exhaustive plan takes {}",
                study.runs.len(),
                plan.runs_most,
                plan.runs_exhaustive
            ),
        ),
    ];
    for (name, value) in &plan.critical {
        // A whole simulated device is one of them.
        let shown: String = value.chars().take(FACT_MOST).collect();
        let cut = if shown.len() < value.len() { "…" } else { "" };
        facts.push((name.clone(), format!("{shown}{cut}")));
    }
    facts
}

/// Findings, then a section per finding, then the runs.
pub(super) fn found(study: &StudyView, id: &str) -> (Vec<Headline>, Vec<Section>) {
    let mut headlines = Vec::new();
    let mut sections = Vec::new();
    let found = study.findings.as_ref();
    if found.is_none_or(|findings| findings.state == State::Partial) {
        let text = "The study is not finished: it was interrupted or its budget ended. Resume it for the rest.";
        headlines.push(Headline::new(Tone::Open, text, "the runs", &format!("{id}-runs")));
    }
    for finding in found.into_iter().flat_map(|findings| &findings.findings) {
        let place = format!("{id}-{}", slug(&finding.id));
        let verdict = finding.decision.get("verdict").and_then(Value::as_str).unwrap_or_default();
        let tone = match verdict {
            "better" => Tone::Better,
            "worse" => Tone::Worse,
            "unclear" | "extend" | "flat" => Tone::Open,
            _ => Tone::Plain,
        };
        let mut evidence = vec![("evidence".to_owned(), place.clone())];
        if finding.decision.contains_key("rule") {
            evidence.push(("decision".to_owned(), format!("{place}-decision")));
        }
        let text = format!("{}: {}", finding.title, finding.sentence);
        headlines.push(Headline { tone, text, evidence });
        sections.push(section(study, finding, &place));
    }
    for note in found.into_iter().flat_map(|findings| &findings.notes) {
        let text = note.clone();
        headlines.push(Headline::new(Tone::Plain, text, "the runs", &format!("{id}-runs")));
    }
    sections.push(runs(study, id));
    (headlines, sections)
}

/// What may stand in a link.
fn slug(id: &str) -> String {
    id.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect()
}

fn section(study: &StudyView, finding: &Finding, place: &str) -> Section {
    let mut blocks = vec![Block::Paragraph(finding.sentence.clone())];
    let rests: Vec<&RunRecord> =
        study.runs.iter().filter(|run| finding.runs.contains(&run.run)).collect();
    blocks.extend(curves(&rests, place, finding));
    if let Some(table) = &finding.table {
        let data = Data {
            columns: table.columns.clone(),
            rows: table.rows.iter().map(|row| row.iter().map(shown).collect()).collect(),
        };
        let id = format!("{place}-table");
        blocks.push(Block::Table(Table { id, caption: finding.title.clone(), data }));
    }
    if !rests.is_empty() {
        let told: Vec<String> = rests.iter().map(|run| run.run.to_string()).collect();
        blocks.push(Block::Paragraph(format!("It rests on the runs {}.", told.join(", "))));
    }
    if finding.decision.contains_key("rule") {
        let decision = Value::Object(finding.decision.clone());
        blocks.push(explained(&format!("{place}-decision"), &finding.title, &decision));
    }
    Section { id: place.to_owned(), title: finding.title.clone(), blocks }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => cell(number.as_f64()),
        other => other.to_string(),
    }
}

/// The curve of runs that differ in nothing but their outstanding I/Os.
fn curves(runs: &[&RunRecord], place: &str, finding: &Finding) -> Vec<Block> {
    let parameters = finding.decision.get("parameters").unwrap_or(&Value::Null);
    let policy = parameters["policy"].as_str().and_then(Policy::of_keyword).unwrap_or_default();
    let budget_ms = parameters["budget_ms"].as_f64();
    let mut by_rest: BTreeMap<String, Vec<&RunRecord>> = BTreeMap::new();
    for run in runs {
        let rest = Setting { outstanding: 0, ..run.setting.clone() };
        by_rest.entry(format!("{rest:?}")).or_default().push(run);
    }
    let mut blocks = Vec::new();
    for (number, group) in (1..).zip(by_rest.values()) {
        let rows: Vec<Row> = group
            .iter()
            .filter_map(|run| {
                let summary = run.usable()?;
                Some(Row {
                    o: run.setting.outstanding.into(),
                    iops: summary.iops,
                    latency_ms: summary.latency_ms,
                    latency_half_unit_ms: 0.0,
                })
            })
            .collect();
        let distinct: std::collections::BTreeSet<u64> = rows.iter().map(|row| row.o).collect();
        if distinct.len() < 4 {
            continue;
        }
        let setting = &group[0].setting;
        let options = Options {
            threads: Some(setting.threads.into()),
            files: Some(setting.files.into()),
            block_bytes: Some(setting.block_bytes as f64),
            policy,
            budget_ms,
            caps: caps(parameters),
        };
        let found = knee::find(&rows, &options);
        let id = format!("{place}-{number}");
        let plots = curve::plots(&found, &id, &finding.title, budget_ms);
        blocks.extend(plots.into_iter().map(|plot| Block::Plot(Box::new(plot))));
    }
    blocks
}

/// The limits that the decision was told of.
fn caps(parameters: &Value) -> Vec<DeclaredCap> {
    let cap = |cap: &Value| {
        let limit = match (cap["iops"].as_f64(), cap["mib_per_s"].as_f64()) {
            (Some(iops), _) => Limit::Iops(iops),
            (None, mib) => Limit::MibPerS(mib?),
        };
        Some(DeclaredCap { name: cap["name"].as_str()?.to_owned(), limit })
    };
    parameters["caps"].as_array().into_iter().flatten().filter_map(cap).collect()
}

/// A row per run.
fn runs(study: &StudyView, id: &str) -> Section {
    let mut data = Data::new(&[
        "run",
        "step",
        "setting",
        "I/Os per s",
        "± %",
        "mean",
        "99th",
        "mark",
        "CPU µs per I/O",
        "remarks",
    ]);
    for run in &study.runs {
        let summary = run.summary.as_ref();
        let p99 = summary.and_then(|summary| {
            let found = summary.percentiles.iter().find(|p| (p.percent - 99.0).abs() < 1e-9)?;
            let mark = percentile::support(0.99, summary.io_count).mark;
            Some((
                if mark == Mark::None { "–".to_owned() } else { latency(found.ms) },
                mark.keyword(),
            ))
        });
        let mut remarks: Vec<String> =
            summary.map(|summary| summary.flags.clone()).unwrap_or_default();
        match &run.outcome {
            Outcome::Measured => {}
            Outcome::Aborted => remarks.push("aborted".to_owned()),
            Outcome::Failed(why) => remarks.push(format!("failed: {why}")),
        }
        data.add([
            run.run.to_string(),
            run.step.clone(),
            setting(&run.setting),
            summary.map_or_else(|| "–".to_owned(), |summary| rate(summary.iops)),
            summary
                .and_then(|s| s.half_width)
                .map_or_else(String::new, |half| format!("{:.2}", half * 100.0)),
            summary.and_then(|summary| summary.latency_ms).map_or_else(String::new, latency),
            p99.as_ref().map_or_else(String::new, |(value, _)| value.clone()),
            p99.map_or_else(String::new, |(_, mark)| mark.to_owned()),
            cell(summary.and_then(|summary| summary.cpu_us_per_io)),
            remarks.join(", "),
        ]);
    }
    let caption = "Every run; ± is the 95 % interval within the run".to_owned();
    Section {
        id: format!("{id}-runs"),
        title: "The runs".into(),
        blocks: vec![Block::Table(Table { id: format!("{id}-runs-table"), caption, data })],
    }
}

fn setting(setting: &Setting) -> String {
    let files = if setting.files == 1 { String::new() } else { format!("F{} ", setting.files) };
    let size = match setting.block_bytes {
        bytes if bytes % 1024 == 0 => format!("{}K", bytes / 1024),
        bytes => bytes.to_string(),
    };
    let rate = setting.rate.map_or_else(String::new, |rate| format!(" rate {rate}"));
    format!(
        "{files}t{} o{} b{size} w{} {}{rate}",
        setting.threads,
        setting.outstanding,
        setting.write_percent,
        setting.access.keyword()
    )
}
