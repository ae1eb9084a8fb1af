//! The reading rules on the runs of a study, and on the whole of it (method, section 8).

use serde_json::{Value, json};

use super::behind::Behind;
use super::findings::{Finding, Table};
use super::record::{RunRecord, Summary};
use super::{Access, Setting};
use crate::decision::{self, Rule};
use crate::reading::{self, Facts, Latencies, Percentiles, Remark, Severity, Sync};
use crate::report::{self, RunView};

/// What the rules say of a run, as far as its result and its setting tell.
pub(super) fn of_run(result: &Value, setting: &Setting, summary: &Summary) -> Vec<Remark> {
    let view = RunView::of_object("", result).ok().and_then(|mut views| views.pop());
    let seen = view.as_ref().and_then(RunView::first).map(report::reading_facts);
    let mut facts = asked(setting, seen.unwrap_or_default());
    facts.iops = facts.iops.or(Some(summary.iops));
    facts.count = Some(summary.io_count);
    facts.measured_s = Some(summary.seconds);
    facts.write_share = summary.write_share;
    let span = &result["time_spans"][0];
    let plausibility = span["plausibility"].as_array().into_iter().flatten();
    facts.unwritten_share = plausibility
        .filter(|check| check["key"] == "unwritten_share")
        .filter_map(|check| check["value"].as_f64())
        .reduce(f64::max);
    if facts.latencies.total.rows.is_empty() {
        let rows = summary.percentiles.iter().map(|p| (p.percent, p.ms));
        facts.latencies.total.rows = rows.collect();
        facts.latencies.total.count = Some(summary.io_count);
    }
    reading::read(&facts)
}

/// Options that leave requests idle.
const PACED: [&str; 3] = ["throughput", "burst-size", "think-time"];

/// What was asked for is known better than a result says it.
fn asked(setting: &Setting, seen: Facts) -> Facts {
    let has = |letter: char| setting.cache.contains(letter);
    Facts {
        block_bytes: Some(setting.block_bytes as f64),
        outstanding: Some(setting.total_outstanding() as f64),
        closed_loop: setting.rate.is_none()
            && !PACED.iter().any(|o| setting.options.contains_key(*o)),
        warm_up_s: Some(setting.warm_up_s.into()),
        write_share_wanted: Some(setting.write_share()),
        incompressible: (setting.write_percent > 0).then_some(setting.write_source_bytes > 0),
        access: Some(match setting.access {
            Access::Random => reading::Access::Random,
            Access::Sequential if setting.threads > 1 => reading::Access::SequentialOverlapping,
            _ => reading::Access::SequentialApart,
        }),
        measures_latency: setting.latency,
        sync: Some(match (has('h') || has('u'), has('h') || has('w')) {
            (true, true) => Sync::Both,
            (true, false) => Sync::PageCache,
            (false, true) => Sync::WriteThrough,
            (false, false) => Sync::Buffered,
        }),
        ..seen
    }
}

/// What is known of a study as a whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Whole {
    /// The chosen setting, with its I/Os per second.
    pub(super) chosen: Option<(Setting, f64)>,
    /// A ceiling, in words.
    pub(super) ceiling: Option<String>,
    /// Mean latency at the lowest load in milliseconds.
    pub(super) lowest_latency_ms: Option<f64>,
    /// Share of throughput that measuring latencies costs.
    pub(super) latency_cost: Option<f64>,
    /// In what else than what was varied the settings differ.
    pub(super) differing: Vec<String>,
    /// Whether I/O goes by another node or host, in words.
    pub(super) remote: Option<String>,
    /// The devices.
    pub(super) behind: Behind,
    /// Median latency of writes with the chosen setting, in milliseconds.
    pub(super) write_p50_ms: Option<f64>,
}

/// Rules that need more than one run, or the machine: a ceiling, what no link carries, the cache of a device,
/// settings that differ, what a completed write means, a short warm-up of flash, bounds, one more hop, what
/// measuring latencies costs.
const OF_THE_WHOLE: [u32; 9] = [8, 11, 12, 13, 16, 17, 21, 22, 23];

impl Whole {
    fn remarks(&self) -> Vec<Remark> {
        let chosen = self.chosen.as_ref();
        let facts = Facts {
            iops: chosen.map(|(_, iops)| *iops),
            outstanding: chosen.map(|(setting, _)| setting.total_outstanding() as f64),
            latencies: Latencies {
                write: Percentiles {
                    rows: self.write_p50_ms.map(|ms| (50.0, ms)).into_iter().collect(),
                    ..Percentiles::default()
                },
                ..Latencies::default()
            },
            ceiling: self.ceiling.clone(),
            lowest_latency_ms: self.lowest_latency_ms,
            latency_cost: self.latency_cost,
            measures_latency: chosen.is_some_and(|(setting, _)| setting.latency),
            differing: self.differing.clone(),
            remote: self.remote.clone(),
            medium: self.behind.medium,
            link_bytes_per_s: self.behind.link_bytes_per_s,
            ..Facts::default()
        };
        let facts = match chosen {
            Some((setting, _)) => Facts {
                block_bytes: Some(setting.block_bytes as f64),
                warm_up_s: Some(setting.warm_up_s.into()),
                write_share_wanted: Some(setting.write_share()),
                write_share: Some(setting.write_share()),
                cache: self.behind.cache(setting),
                completion: self.behind.completion(setting),
                ..facts
            },
            None => facts,
        };
        let mut remarks = reading::read(&facts);
        remarks.retain(|remark| OF_THE_WHOLE.contains(&remark.rule));
        remarks
    }
}

/// The finding: what the rules say of the runs of these settings, each named, and of the whole.
pub(super) fn finding(
    subjects: &[(&str, &Setting)],
    runs: &[RunRecord],
    whole: &Whole,
) -> Option<Finding> {
    let mut rows: Vec<(String, Remark, Option<u32>)> = Vec::new();
    let mut read: Vec<u32> = Vec::new();
    for (name, setting) in subjects {
        // One run of each, the last: what repeats it says the same.
        let own = runs.iter().rfind(|run| run.setting == **setting && run.usable().is_some());
        let Some((run, summary)) = own.and_then(|run| Some((run, run.usable()?))) else { continue };
        if read.contains(&run.run) {
            continue;
        }
        read.push(run.run);
        let said = summary.remarks.iter();
        rows.extend(said.map(|remark| ((*name).to_owned(), remark.clone(), Some(run.run))));
    }
    rows.extend(whole.remarks().into_iter().map(|r| ("the whole".to_owned(), r, None)));
    if rows.is_empty() {
        return None;
    }
    let warns = |(_, remark, _): &&(String, Remark, Option<u32>)| remark.severity == Severity::Warn;
    let mut flags: Vec<u32> = rows.iter().filter(warns).map(|(_, remark, _)| remark.rule).collect();
    flags.sort_unstable();
    flags.dedup();
    let flags: Vec<String> = flags.iter().map(|rule| format!("R{rule}")).collect();
    let count = rows.iter().filter(warns).count();
    let sentence = match count {
        0 => format!("Of the reading rules, {} say something and none warns.", rows.len()),
        1 => format!("Of the reading rules, one remark of {} warns ({}).", rows.len(), flags[0]),
        count => {
            format!(
                "Of {} remarks of the reading rules {count} warn: {}.",
                rows.len(),
                flags.join(", ")
            )
        }
    };
    let verdict = if count > 0 { Severity::Warn } else { Severity::Info };
    let mut decision = decision::plain(Rule::Reading, "reading", verdict.keyword(), &sentence);
    decision.insert("value".to_owned(), json!(count));
    decision.insert("flags".to_owned(), json!(flags));
    let evidence: Vec<Value> = rows
        .iter()
        .map(|(of, remark, run)| {
            json!({
                "name": format!("R{} of {of}", remark.rule),
                "value": remark.severity.keyword(),
                "arithmetic": remark.text,
                "run": run,
            })
        })
        .collect();
    decision.insert("evidence".to_owned(), evidence.into());
    let columns = ["of", "rule", "severity", "says", "run"];
    let line = |(of, remark, run): &(String, Remark, Option<u32>)| {
        let rule = format!("R{}", remark.rule);
        vec![json!(of), json!(rule), json!(remark.severity), json!(remark.text), json!(run)]
    };
    Some(Finding {
        id: "reading".to_owned(),
        title: "How to read the results".to_owned(),
        sentence,
        step: "findings".to_owned(),
        decision,
        runs: read,
        table: Some(Table {
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.iter().map(line).collect(),
        }),
    })
}
