//! The reading rules on the runs of a study, and on the whole of it (method, section 8).

use serde_json::{Value, json};

use super::behind::Behind;
use super::findings::{Finding, Table};
use super::record::{RunRecord, Summary};
use super::{Access, Setting};
use crate::decision::{self, Rule};
use crate::reading::{self, Facts, Latencies, LatencyCost, Percentiles, Remark, Severity, Sync};
use crate::report::{self, RunView};

/// What the rules say of a run, as far as its result and its setting tell.
pub(super) fn of_run(result: &Value, setting: &Setting, summary: &Summary) -> Vec<Remark> {
    let view = RunView::of_object("", result).ok().and_then(|mut views| views.pop());
    let seen = view.as_ref().and_then(RunView::first).map(report::reading_facts);
    let mut facts = asked(setting, seen.unwrap_or_default());
    facts.iops = facts.iops.or(Some(summary.iops));
    facts.count = Some(summary.io_count);
    facts.measured_s = Some(summary.seconds);
    let asked_s = f64::from(setting.measured_s);
    // A run is shorter than it was to be where it was ended as soon as it said enough (5.2).
    facts.asked_s = Some(asked_s).filter(|asked| summary.seconds < asked - 1.0);
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

/// What is known of a study beyond its single runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Whole<'a> {
    /// The settings that were chosen, each with what several runs say of it.
    pub(super) chosen: Vec<Chosen<'a>>,
    /// A ceiling, in words.
    pub(super) ceiling: Option<String>,
    /// In what else than what was varied the settings differ.
    pub(super) differing: Vec<String>,
    /// Whether I/O goes by another node or host, in words.
    pub(super) remote: Option<String>,
    /// The devices.
    pub(super) behind: Behind,
}

/// A setting that somebody would quote, and its figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chosen<'a> {
    /// What it is called among the subjects.
    pub(super) name: &'a str,
    pub(super) setting: &'a Setting,
    /// I/Os per second.
    pub(super) iops: f64,
    /// Mean latency of its workload at the lowest load in milliseconds.
    pub(super) lowest_latency_ms: Option<f64>,
    /// Share of throughput that measuring latencies costs.
    pub(super) latency_cost: Option<LatencyCost>,
    /// Median latency of its writes in milliseconds.
    pub(super) write_p50_ms: Option<f64>,
}

/// Rules on all settings together, or on the machine: a ceiling, settings that differ, one more hop.
const OF_ALL: [u32; 3] = [8, 13, 22];

/// Rules on a chosen setting that need more than one run, or the machine: what no link carries, the cache of a device, what a
/// completed write means, a short warm-up of flash, bounds, what measuring latencies costs.
const OF_CHOSEN: [u32; 6] = [11, 12, 16, 17, 21, 23];

impl Whole<'_> {
    /// What is said of all settings together.
    fn of_all(&self) -> Vec<Remark> {
        let facts = Facts {
            ceiling: self.ceiling.clone(),
            differing: self.differing.clone(),
            remote: self.remote.clone(),
            ..Facts::default()
        };
        only(&OF_ALL, &facts)
    }

    /// What is said of a setting.
    fn of(&self, chosen: &Chosen) -> Vec<Remark> {
        let Chosen { setting, .. } = chosen;
        let facts = Facts {
            iops: Some(chosen.iops),
            block_bytes: Some(setting.block_bytes as f64),
            outstanding: Some(setting.total_outstanding() as f64),
            warm_up_s: Some(setting.warm_up_s.into()),
            write_share_wanted: Some(setting.write_share()),
            write_share: Some(setting.write_share()),
            latencies: Latencies {
                write: Percentiles {
                    rows: chosen.write_p50_ms.map(|ms| (50.0, ms)).into_iter().collect(),
                    ..Percentiles::default()
                },
                ..Latencies::default()
            },
            lowest_latency_ms: chosen.lowest_latency_ms,
            latency_cost: chosen.latency_cost,
            measures_latency: setting.latency,
            medium: self.behind.medium,
            link_bytes_per_s: self.behind.link_bytes_per_s,
            cache: self.behind.cache(setting),
            completion: self
                .behind
                .completion(setting.cache.contains('h') || setting.cache.contains('w')),
            ..Facts::default()
        };
        only(&OF_CHOSEN, &facts)
    }
}

fn only(rules: &[u32], facts: &Facts) -> Vec<Remark> {
    let mut remarks = reading::read(facts);
    remarks.retain(|remark| rules.contains(&remark.rule));
    remarks
}

/// A remark, with what it is said of: what is said of several is told once.
struct Said<'a> {
    of: Vec<&'a str>,
    runs: Vec<u32>,
    remark: Remark,
}

impl<'a> Said<'a> {
    fn add(all: &mut Vec<Self>, of: &'a str, remark: &Remark, run: Option<u32>) {
        let place = all.iter().position(|said| said.remark == *remark).unwrap_or_else(|| {
            all.push(Self { of: Vec::new(), runs: Vec::new(), remark: remark.clone() });
            all.len() - 1
        });
        all[place].of.push(of);
        all[place].runs.extend(run);
    }

    fn warns(&self) -> bool {
        self.remark.severity == Severity::Warn
    }

    /// `the first run, sequential reads and sequential writes`.
    fn of(&self) -> String {
        match self.of.as_slice() {
            [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
            all => all.concat(),
        }
    }

    /// `1`, or `1, 7, 20`.
    fn runs(&self) -> Value {
        match self.runs.as_slice() {
            [] => Value::Null,
            [run] => json!(run),
            runs => runs.iter().map(u32::to_string).collect::<Vec<_>>().join(", ").into(),
        }
    }
}

/// The finding: what the rules say of the runs of these settings, each named, of what was chosen, and of the whole; by
/// rule.
pub(super) fn finding(
    subjects: &[(&str, &Setting)],
    runs: &[RunRecord],
    whole: &Whole,
) -> Option<Finding> {
    let mut rows: Vec<Said> = Vec::new();
    let mut read: Vec<u32> = Vec::new();
    for (name, setting) in subjects {
        // One run of each, the last: what repeats it says the same.
        let own = runs.iter().rfind(|run| run.setting == **setting && run.usable().is_some());
        let Some((run, summary)) = own.and_then(|run| Some((run, run.usable()?))) else { continue };
        if read.contains(&run.run) {
            continue;
        }
        read.push(run.run);
        for remark in &summary.remarks {
            Said::add(&mut rows, name, remark, Some(run.run));
        }
    }
    for chosen in &whole.chosen {
        for remark in whole.of(chosen) {
            Said::add(&mut rows, chosen.name, &remark, None);
        }
    }
    for remark in whole.of_all() {
        Said::add(&mut rows, "the whole", &remark, None);
    }
    if rows.is_empty() {
        return None;
    }
    rows.sort_by_key(|said| said.remark.rule);
    let mut flags: Vec<String> = rows
        .iter()
        .filter(|said| said.warns())
        .map(|said| format!("R{}", said.remark.rule))
        .collect();
    flags.dedup();
    let all: usize = rows.iter().map(|said| said.of.len()).sum();
    let warning = rows.iter().filter(|said| said.warns());
    let count: usize = warning.map(|said| said.of.len()).sum();
    let sentence = match count {
        0 => format!("Of the reading rules, {all} say something and none warns."),
        1 => format!("Of the reading rules, one remark of {all} warns ({}).", flags[0]),
        count => {
            format!("Of {all} remarks of the reading rules {count} warn: {}.", flags.join(", "))
        }
    };
    let verdict = if count > 0 { Severity::Warn } else { Severity::Info };
    let mut decision = decision::plain(Rule::Reading, "reading", verdict.keyword(), &sentence);
    decision.insert("value".to_owned(), json!(count));
    decision.insert("flags".to_owned(), json!(flags));
    let evidence: Vec<Value> = rows
        .iter()
        .map(|said| {
            json!({
                "name": format!("R{} of {}", said.remark.rule, said.of()),
                "value": said.remark.severity.keyword(),
                "arithmetic": said.remark.text,
                "runs": said.runs,
            })
        })
        .collect();
    decision.insert("evidence".to_owned(), evidence.into());
    let columns = ["of", "rule", "severity", "says", "runs"];
    let line = |said: &Said| {
        let rule = format!("R{}", said.remark.rule);
        let remark = &said.remark;
        vec![json!(said.of()), json!(rule), json!(remark.severity), json!(remark.text), said.runs()]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_several_is_said_once() {
        let short = |seconds: u32| Remark {
            rule: 17,
            severity: Severity::Warn,
            text: format!("The run is short: {seconds} s."),
        };
        let mut all = Vec::new();
        for (of, remark, run) in [
            ("the first run", short(8), Some(1)),
            ("sequential reads", short(9), Some(4)),
            ("small random I/O", short(8), Some(2)),
            ("sequential writes", short(8), Some(7)),
            ("the whole", short(7), None),
        ] {
            Said::add(&mut all, of, &remark, run);
        }
        let told: Vec<(String, Value)> = all.iter().map(|said| (said.of(), said.runs())).collect();
        let expected = [
            ("the first run, small random I/O and sequential writes", json!("1, 2, 7")),
            ("sequential reads", json!(4)),
            ("the whole", Value::Null),
        ];
        assert_eq!(told, expected.map(|(of, runs)| (of.to_owned(), runs)));
    }
}
