//! A curve: its decision in words, its plots, its sums.

use serde_json::Value;

use super::of_runs::explained;
use super::page::{Block, Data, Headline, Section, Table, Tone, cell};
use super::plot::beside::Beside;
use super::plot::curve;
use crate::decision;
use crate::findings::Layout;
use crate::knee::{Flag, Knee, Options, Verdict};

/// The finding and the section of a curve.
pub(super) fn found(
    knee: &Knee,
    options: &Options,
    layout: &Layout,
    id: &str,
    title: &str,
) -> (Vec<Headline>, Section) {
    let tone = if knee.verdict == Verdict::Knee { Tone::Plain } else { Tone::Open };
    let place = format!("{id}-curve");
    let mut findings = vec![Headline {
        tone,
        text: format!("{title}: {}", curve::sentence(knee)),
        evidence: vec![
            ("curve".to_owned(), place.clone()),
            ("decision".to_owned(), format!("{id}-decision")),
        ],
    }];
    for (words, counts) in
        [("left out, to be repeated", false), ("runs contradict each other, to be repeated", true)]
    {
        let those = knee.settings.iter().filter(|s| s.is_outlier() && s.counts() == counts);
        let told: Vec<String> = those.map(|setting| format!("o{}", setting.o)).collect();
        if !told.is_empty() {
            let text = format!("{title}: {words}: {}.", told.join(", "));
            findings.push(Headline::new(Tone::Warn, text, "curve", &place));
        }
    }
    if knee.flags.contains(&Flag::Drop) {
        let text = format!("{title}: throughput falls again beyond its best.");
        findings.push(Headline::new(Tone::Warn, text, "curve", &place));
    }
    let mut blocks: Vec<Block> =
        curve::plots(knee, id, title, options.budget_ms, &Beside::default())
            .into_iter()
            .map(|plot| Block::Plot(Box::new(plot)))
            .collect();
    let mut decision = decision::of_knee(knee, options, layout);
    decision.insert("id".to_owned(), id.into());
    if let Some(finding) = decision.get("finding") {
        blocks.push(Block::Table(per_device(finding, id)));
    }
    if !knee.notes.is_empty() {
        blocks.push(Block::List(knee.notes.clone()));
    }
    let decision = Value::Object(decision);
    blocks.push(explained(&format!("{id}-decision"), title, &decision));
    (findings, Section { id: id.to_owned(), title: title.to_owned(), blocks })
}

/// What the recommended setting means for each device (method, 2.9).
fn per_device(finding: &Value, id: &str) -> Table {
    let mut data = Data::new(&["at the recommendation", "value"]);
    for (key, words) in [
        ("outstanding", "outstanding I/Os, N"),
        ("iops", "I/Os per second"),
        ("mib_per_s", "MiB/s"),
        ("latency_ms", "mean latency, ms"),
        ("amplification", "device operations per client operation, A"),
        ("depth_per_device", "outstanding per device, N·A/S"),
        ("iops_per_device", "I/Os per second and device, X·A/S"),
        ("mib_per_s_per_device", "MiB/s per device, B·A/S"),
        ("client_mib_per_s_per_device", "MiB/s per device as clients see it"),
    ] {
        if let Some(value) = finding[key].as_f64() {
            data.add([words.to_owned(), cell(Some(value))]);
        }
    }
    Table { id: format!("{id}-finding"), caption: "The recommended setting".into(), data }
}
