//! Several runs: a table of them, what they say of each other, and a curve where they are one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::of_curve;
use super::of_run;
use super::page::{Block, Data, Headline, Section, Table, Tone, latency, rate};
use super::plot::{forest, history};
use super::run_view::{RunView, SpanView};
use crate::explain;
use crate::findings::Layout;
use crate::knee::{self, Options, Row, RunLaw};
use crate::record::{self, Record};

/// Metrics that are told as findings; the others stand in the plot.
const TOLD: [&str; 2] = ["iops", "avg_lat_ms"];

/// Findings and sections over all runs.
pub(super) fn over_all(views: &[RunView]) -> (Vec<Headline>, Vec<Section>) {
    let mut findings = Vec::new();
    let mut sections = Vec::new();
    let mut blocks = vec![Block::Table(table(views))];
    let named: Vec<(String, f64)> = views
        .iter()
        .filter_map(|view| Some((view.name.clone(), view.first()?.total.iops)))
        .collect();
    let groups = alike(views);
    let mut is_history = false;
    if groups.len() == 1
        && let Some(plot) = history::plot(&named, "runs")
    {
        findings.push(Headline::new(Tone::Plain, plot.sentence.clone(), "history", &plot.id));
        blocks.push(Block::Plot(Box::new(plot)));
        is_history = true;
    }
    sections.push(Section { id: "runs".into(), title: "The runs".into(), blocks });
    if let Some((found, section)) = curve(views) {
        findings.extend(found);
        sections.push(section);
    } else if !is_history {
        let (found, section) = comparison(views, &groups);
        findings.extend(found);
        sections.extend(section);
    }
    (findings, sections)
}

/// Whether two runs may be compared.
pub(super) fn are_alike(a: &RunView, b: &RunView) -> bool {
    a.record.as_ref().zip(b.record.as_ref()).is_some_and(|(a, b)| {
        record::compare(std::slice::from_ref(a), std::slice::from_ref(b), &[]).is_ok()
    })
}

/// Findings and sections of runs against the first of them.
pub(super) fn against(views: &[RunView]) -> (Vec<Headline>, Vec<Section>) {
    let (found, section) = comparison(views, &alike(views));
    let mut blocks = vec![Block::Table(table(views))];
    blocks.extend(section.into_iter().flat_map(|section| section.blocks));
    let (id, title) = ("against".to_owned(), format!("Against {}", views[0].name));
    (found, vec![Section { id, title, blocks }])
}

fn table(views: &[RunView]) -> Table {
    let mut data = Data::new(&["run", "workload", "I/Os per s", "MiB/s", "mean", "started"]);
    for view in views {
        let Some(span) = view.first() else { continue };
        data.add([
            view.name.clone(),
            span.title(),
            rate(span.total.iops),
            format!("{:.1}", span.total.mib_per_s),
            span.total.mean_ms.map_or_else(|| "–".to_owned(), latency),
            view.started_at.clone().unwrap_or_default(),
        ]);
    }
    Table { id: "runs-table".into(), caption: "The runs of this report".into(), data }
}

/// Runs of one workload, in order of first appearance: places in `views`.
fn alike(views: &[RunView]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, view) in views.iter().enumerate() {
        let fits = groups.iter().position(|group| are_alike(&views[group[0]], view));
        match fits {
            Some(place) => groups[place].push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// A curve, where the runs differ in nothing but their outstanding I/Os.
fn curve(views: &[RunView]) -> Option<(Vec<Headline>, Section)> {
    let mut rows = Vec::new();
    let mut settings: BTreeMap<u64, usize> = BTreeMap::new();
    let first = views.first()?.first()?.workload.clone();
    for view in views {
        let [span] = view.spans.as_slice() else { return None };
        let mut like = span.workload.clone();
        like.outstanding = first.outstanding;
        if like != first {
            return None;
        }
        let o = plumb_units::convert::floor_u64(span.workload.outstanding?);
        *settings.entry(o).or_default() += 1;
        rows.push(Row {
            o,
            iops: span.total.iops,
            latency_ms: span.total.mean_ms,
            latency_half_unit_ms: 0.0,
            law: Some(law(span)),
        });
    }
    if settings.len() < 4 {
        return None;
    }
    let options = Options {
        threads: first.threads,
        block_bytes: first.block_bytes,
        caps: views[0].caps.clone(),
        ..Options::default()
    };
    let layout = Layout { write_share: first.write_share, ..Layout::default() };
    let knee = knee::find(&rows, &options);
    Some(of_curve::found(&knee, &options, &layout, "curve", "Queue depth"))
}

/// What a run says of its rate, latency and outstanding I/Os, as it is told of it alone.
fn law(span: &SpanView) -> RunLaw {
    let facts = of_run::facts(span);
    facts.law().filter(|_| facts.closed_loop).map_or(RunLaw::NotAsked, RunLaw::Asked)
}

/// What each workload that was run more than once, or on both sides, says.
fn comparison(views: &[RunView], groups: &[Vec<usize>]) -> (Vec<Headline>, Option<Section>) {
    let records = |group: &[usize]| -> Vec<Record> {
        group.iter().filter_map(|index| views[*index].record.clone()).collect()
    };
    let mut findings = Vec::new();
    let mut blocks = Vec::new();
    let mut decisions: Vec<(String, Value)> = Vec::new();
    for group in groups.iter().filter(|group| group.len() > 1) {
        let all = records(group);
        let (a, b) = all.split_at(1);
        let (from, to) = (&views[group[0]].name, &views[group[1]].name);
        let more =
            if group.len() > 2 { format!(" and {} more", group.len() - 2) } else { String::new() };
        // With several runs the first is the baseline of the others.
        let Ok(found) = record::compare(a, b, &[]) else { continue };
        for mut decision in found {
            let metric = decision["metric"].as_str().unwrap_or_default().to_owned();
            let name = format!("{metric}: {to}{more} against {from}");
            decision.insert("id".into(), name.clone().into());
            if TOLD.contains(&metric.as_str()) {
                findings.push(headline(&name, &decision));
            }
            decisions.push((name, Value::Object(decision)));
        }
    }
    if let Some(reason) = refused(views, groups) {
        findings.push(Headline::new(Tone::Open, reason, "the runs", "runs-table"));
    }
    let shown: Vec<(String, &Value)> =
        decisions.iter().map(|(name, decision)| (name.clone(), decision)).collect();
    if let Some(plot) = forest::plot(&shown, "compare") {
        blocks.push(Block::Plot(Box::new(plot)));
    }
    for (number, (name, decision)) in (1..).zip(&decisions) {
        blocks.push(explained(&format!("decision-{number}"), name, decision));
    }
    let section = (!blocks.is_empty()).then(|| Section {
        id: "compare".into(),
        title: "What the runs say of each other".into(),
        blocks,
    });
    (findings, section)
}

/// A decision as `plumb explain` tells it, folded away.
pub(super) fn explained(id: &str, name: &str, decision: &Value) -> Block {
    let text = explain::explain(decision).unwrap_or_else(|error| error.to_string());
    Block::Folded { id: id.to_owned(), heading: format!("Why: {name}"), text }
}

fn headline(name: &str, decision: &serde_json::Map<String, Value>) -> Headline {
    let verdict = decision["verdict"].as_str().unwrap_or_default();
    let tone = match verdict {
        "better" => Tone::Better,
        "worse" => Tone::Worse,
        "same" => Tone::Plain,
        _ => Tone::Open,
    };
    let reason = decision["reason"].as_str().unwrap_or_default();
    Headline::new(tone, format!("{name}: {verdict}, {reason}."), "effects", "compare-forest")
}

/// Why runs of different workloads are not compared.
fn refused(views: &[RunView], groups: &[Vec<usize>]) -> Option<String> {
    let [first, second, ..] = groups else { return None };
    let (a, b) = (&views[first[0]], &views[second[0]]);
    let error = record::compare(
        std::slice::from_ref(a.record.as_ref()?),
        std::slice::from_ref(b.record.as_ref()?),
        &[],
    )
    .err()?;
    let words: String = error.to_string().chars().take(240).collect();
    Some(format!("{} and {} are not compared: {words}.", a.name, b.name))
}
