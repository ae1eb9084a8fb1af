//! Plots of a finding: its curve with what is known beside it, and its settings side by side.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::StudyView;
use super::page::Block;
use super::plot::beside::{Before, Beside, Depth};
use super::plot::choice::{self, Between, Tested};
use super::plot::curve;
use crate::knee::{self, DeclaredCap, Limit, Options, Policy, Row, Spread};
use crate::percentile::{self, Mark};
use crate::stats::describe::median;
use crate::study::{Finding, RunRecord, Setting};

/// The percentile that stands beside the mean.
const SLOW: f64 = 99.0;

/// Curves of a study that are drawn in every form; of more only the first is.
const CURVES_MOST: usize = 32;

/// Whether a study has so many curves that one form of each has to do: a page of 128 in three forms has 3.4 MB.
pub(super) fn is_of_many_curves(study: &StudyView) -> bool {
    let findings = study.findings.iter().flat_map(|findings| &findings.findings);
    let is_curve =
        |finding: &&Finding| finding.decision.get("rule").is_some_and(|rule| rule == "knee");
    findings.filter(is_curve).count() > CURVES_MOST
}

/// The curve of runs that differ in nothing but their outstanding I/Os; of `many` in its first form only.
pub(super) fn curves(
    runs: &[&RunRecord],
    earlier: Option<&StudyView>,
    place: &str,
    finding: &Finding,
    many: bool,
) -> Vec<Block> {
    let parameters = finding.decision.get("parameters").unwrap_or(&Value::Null);
    let policy = parameters["policy"].as_str().and_then(Policy::of_keyword).unwrap_or_default();
    let budget_ms = parameters["budget_ms"].as_f64();
    let mut by_rest: BTreeMap<String, Vec<&RunRecord>> = BTreeMap::new();
    for run in runs {
        let rest = Setting { outstanding: 0, ..run.setting.clone() };
        by_rest.entry(format!("{rest:?}")).or_default().push(run);
    }
    let mut blocks = Vec::new();
    for (number, (rest, group)) in (1..).zip(&by_rest) {
        let rows: Vec<Row> = group.iter().filter_map(|run| run.row()).collect();
        let distinct: BTreeSet<u64> = rows.iter().map(|row| row.o).collect();
        if distinct.len() < 4 {
            continue;
        }
        let setting = &group[0].setting;
        let options = Options {
            threads: Some(setting.threads.into()),
            files: Some(setting.files.into()),
            block_bytes: Some(setting.block_bytes as f64),
            policy,
            // Findings of earlier programs do not say it, and all were judged as a search is.
            searched: parameters["searched"].as_bool().unwrap_or(true),
            budget_ms,
            caps: caps(parameters),
            noise: noise_elsewhere(parameters),
        };
        let found = knee::find(&rows, &options);
        let beside = Beside {
            depths: distinct.iter().map(|o| depth(*o, group)).collect(),
            earlier: earlier.and_then(|earlier| before(earlier, rest)),
        };
        let id = format!("{place}-{number}");
        let mut plots = curve::plots(&found, &id, &finding.title, budget_ms, &beside);
        if many && plots.len() > 1 {
            plots.truncate(1);
            plots[0]
                .sentence
                .push_str(" Of so many curves it is the only plot; what it costs is in its data.");
        }
        blocks.extend(plots.into_iter().map(|plot| Block::Plot(Box::new(plot))));
    }
    blocks
}

/// What the runs of a queue depth say beside throughput.
fn depth(o: u64, runs: &[&RunRecord]) -> Depth {
    let of_depth = runs.iter().filter(|run| u64::from(run.setting.outstanding) == o);
    let summaries: Vec<_> = of_depth.filter_map(|run| run.usable()).collect();
    let near = summaries.iter().map(|summary| summary.percentile(SLOW));
    let spread = percentile::weakest(near.clone().map(|found| found?.spread));
    let slow: Vec<f64> = near.filter_map(|found| Some(found?.ms)).collect();
    let fewest = summaries.iter().map(|summary| summary.io_count).min().unwrap_or(0);
    let mark = percentile::support(SLOW / 100.0, fewest).mark;
    let cost: Vec<f64> = summaries.iter().filter_map(|summary| summary.cpu_us_per_io).collect();
    Depth {
        o,
        p99: percentile::over_runs(&slow).filter(|_| mark != Mark::None).map(|over| (over, mark)),
        episodes: percentile::episodes_told(SLOW, spread),
        cpu_us: (!cost.is_empty()).then(|| median(&cost)),
    }
}

/// The same curve of an earlier study: medians per queue depth.
fn before(earlier: &StudyView, rest: &str) -> Option<(String, Vec<Before>)> {
    let mut depths: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for run in &earlier.runs {
        let own = Setting { outstanding: 0, ..run.setting.clone() };
        let Some(summary) = run.usable().filter(|_| format!("{own:?}") == rest) else { continue };
        let (rates, latencies) = depths.entry(run.setting.outstanding).or_default();
        rates.push(summary.iops);
        latencies.extend(summary.latency_ms);
    }
    let point = |(o, (rates, latencies)): (&u32, &(Vec<f64>, Vec<f64>))| {
        let ms = if latencies.is_empty() { f64::NAN } else { median(latencies) };
        ((*o).into(), median(rates), ms)
    };
    let points: Vec<Before> = depths.iter().map(point).collect();
    (points.len() > 1).then(|| (earlier.plan.id.clone(), points))
}

/// The settings of a choice side by side (method, plot 7).
pub(super) fn choice(runs: &[&RunRecord], place: &str, finding: &Finding) -> Option<Block> {
    let set: Vec<&str> =
        finding.decision.get("best_set")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let chosen = finding.decision.get("value").and_then(Value::as_str).unwrap_or_default();
    let mut tested: Vec<(&Setting, Tested)> = Vec::new();
    for run in runs {
        let Some(summary) = run.usable() else { continue };
        match tested.iter_mut().find(|(setting, _)| **setting == run.setting) {
            Some((_, tested)) => tested.iops.push(summary.iops),
            None => {
                let label = label(&run.setting, &set, chosen);
                let (is_best, is_chosen) = (set.contains(&label.as_str()), label == chosen);
                let iops = vec![summary.iops];
                tested.push((&run.setting, Tested { label, iops, is_best, is_chosen }));
            }
        }
    }
    tested.sort_by_key(|(setting, _)| {
        (
            setting.block_bytes,
            setting.write_percent,
            setting.files,
            setting.threads,
            setting.outstanding,
        )
    });
    let evidence = finding.decision.get("evidence").and_then(Value::as_array);
    let between = evidence.into_iter().flatten().find_map(|item| {
        let deviation = item["value"].as_f64().filter(|_| item["name"] == "deviation_between_runs");
        Some(Between {
            deviation: deviation?,
            // Findings of earlier programs do not say it.
            freedom: item["freedom"].as_f64(),
            told: item["arithmetic"].as_str().unwrap_or_default().to_owned(),
        })
    });
    let tested: Vec<Tested> = tested.into_iter().map(|(_, tested)| tested).collect();
    let plot = choice::plot(&tested, between.as_ref(), place, &finding.title)?;
    Some(Block::Plot(Box::new(plot)))
}

/// What the decision calls a setting: in short, by threads and queue depth, or by files.
fn label(setting: &Setting, set: &[&str], chosen: &str) -> String {
    let names = [
        setting.short(),
        format!("t{} o{}", setting.threads, setting.outstanding),
        setting.files.to_string(),
    ];
    // What is in no best set is called as those that are: by the form that the chosen one has.
    let form = |name: &str| match name {
        name if name.starts_with('t') && name.matches(' ').count() == 1 => 1,
        name if name.bytes().all(|byte| byte.is_ascii_digit()) => 2,
        _ => 0,
    };
    let of = set.first().copied().unwrap_or(chosen);
    names[form(of)].clone()
}

/// What runs differed by elsewhere in the study, as the decision was told.
fn noise_elsewhere(parameters: &Value) -> Option<Spread> {
    let noise = &parameters["noise_elsewhere"];
    Some(Spread { deviation: noise["sd"].as_f64()?, freedom: noise["freedom"].as_f64()? })
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
