//! A study: what it found, as it says itself, and plots of its runs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::of_runs::explained;
use super::page::{Block, Data, Headline, Section, Table, Tone, cell, latency, rate};
use super::{Detail, StudyView, of_against, of_run, study_plots};
use crate::percentile::{self, Mark};
use crate::study::{Finding, Outcome, RunRecord, Setting, SimulatedDevice, State};

/// Facts that say nothing to a reader, or are told already.
const UNTOLD: [&str; 2] = ["target", "device number"];
/// The fact that is a whole simulated device.
const SIMULATED: &str = "simulated device";
/// Letters of a fact that are shown.
const FACT_MOST: usize = 200;

pub(super) fn facts(study: &StudyView) -> Vec<(String, String)> {
    let plan = &study.plan;
    let mut facts = vec![
        ("Study".to_owned(), format!("{}, {}", plan.id, plan.kind.keyword())),
        ("Target".to_owned(), plan.target.clone()),
        ("Planned".to_owned(), to_the_second(&plan.created)),
        ("Measured by".to_owned(), format!("{}, measurement epoch {}", plan.tool, plan.epoch)),
        (
            "Runs".to_owned(),
            format!(
                "{} of {}; an exhaustive plan takes {}",
                study.runs.len(),
                plan.runs_in_words(),
                plan.runs_exhaustive
            ),
        ),
    ];
    for (name, value) in plan.critical.iter().filter(|(name, _)| !UNTOLD.contains(&name.as_str())) {
        let simulated = simulated(name, value);
        let value = simulated.as_ref().unwrap_or(value);
        let shown: String = value.chars().take(FACT_MOST).collect();
        let cut = if shown.len() < value.len() { "…" } else { "" };
        facts.push((sentence(name), format!("{shown}{cut}")));
    }
    facts
}

/// A simulated device in the words of its file: what is not as usual.
fn simulated(name: &str, value: &str) -> Option<String> {
    let given: BTreeMap<String, Value> =
        serde_json::from_str(value).ok().filter(|_| name == SIMULATED)?;
    let usual = serde_json::to_value(SimulatedDevice::default()).ok()?;
    let told: Vec<String> = given
        .iter()
        .filter(|(key, is)| usual[key.as_str()] != **is)
        .map(|(key, is)| format!("{key} = {}", shown(is)))
        .collect();
    Some(if told.is_empty() { "the usual one".to_owned() } else { told.join(", ") })
}

/// `2026-01-31T20:00:00.123456789Z` as people write it; what is no such time stays.
fn to_the_second(time: &str) -> String {
    match time.trim_end_matches('Z').split_once('T') {
        Some((day, clock)) if time.ends_with('Z') => {
            let clock = clock.split('.').next().unwrap_or(clock);
            format!("{day} {clock} UTC")
        }
        _ => time.to_owned(),
    }
}

/// A column of findings in words; documents keep the names that tables for programs have.
fn heading(column: &str) -> String {
    [
        ("mib_per_s", "MiB/s"),
        ("iops [1/s]", "I/Os per s"),
        ("fitted [1/s]", "fitted I/Os per s"),
        ("avg_lat [ms]", "mean latency, ms"),
    ]
    .iter()
    .fold(column.to_owned(), |text, (name, words)| text.replace(name, words))
}

/// Findings, then a section per finding, then single runs, then all of them. `earlier` is an earlier study of the
/// same question.
pub(super) fn found(
    study: &StudyView,
    earlier: Option<&StudyView>,
    id: &str,
) -> (Vec<Headline>, Vec<Section>) {
    let mut headlines = Vec::new();
    let mut sections = Vec::new();
    let found = study.findings.as_ref();
    if found.is_none_or(|findings| findings.state == State::Partial) {
        let text = "The study is not finished: it was interrupted or its budget ended. Resume it for the rest.";
        headlines.push(Headline::new(Tone::Open, text, "the runs", &format!("{id}-runs")));
    }
    if let Some(earlier) = earlier {
        let (told, section) = of_against::found(earlier, study, id);
        headlines.extend(told);
        sections.extend(section);
    }
    for finding in found.into_iter().flat_map(|findings| &findings.findings) {
        let place = format!("{id}-{}", slug(&finding.id));
        headlines.push(headline(study, finding, id, &place));
        headlines.extend(bottleneck(finding, &place));
        sections.push(section(study, earlier, finding, &place));
    }
    for note in found.into_iter().flat_map(|findings| &findings.notes) {
        let text = note.clone();
        headlines.push(Headline::new(Tone::Plain, text, "the runs", &format!("{id}-runs")));
    }
    for detail in &study.details {
        let same = |other: &&Detail| other.setting == detail.setting;
        let before = earlier.and_then(|earlier| earlier.details.iter().find(same));
        let view = before.map(|before| &before.view);
        let mut shown = of_run::sections(&detail.view, &detail_id(id, detail.run), view);
        if let Some(first) = shown.first_mut() {
            first.blocks.insert(0, Block::Paragraph(format!("{}.", detail.why)));
        }
        sections.extend(shown);
    }
    sections.push(runs(study, id));
    (headlines, sections)
}

fn detail_id(id: &str, run: u32) -> String {
    format!("{id}-run-{run}")
}

/// A finding in its own words, with links to its evidence.
fn headline(study: &StudyView, finding: &Finding, id: &str, place: &str) -> Headline {
    let mut evidence = vec![("evidence".to_owned(), place.to_owned())];
    if finding.decision.contains_key("rule") {
        evidence.push(("decision".to_owned(), format!("{place}-decision")));
    }
    for detail in study.details.iter().filter(|detail| detail.finding == finding.id) {
        evidence.push((format!("run {}", detail.run), detail_id(id, detail.run)));
    }
    let text = match finding.id.as_str() {
        ANSWERS => sentence(&finding.sentence),
        _ => format!("{}: {}", finding.title, finding.sentence),
    };
    Headline { tone: tone(finding), text, evidence }
}

/// The finding that has the figures of each operation.
const ANSWERS: &str = "findings";

/// What a section of a finding is called: the whole page has findings.
fn title(finding: &Finding) -> &str {
    if finding.id == ANSWERS { "The answers" } else { &finding.title }
}

/// With a capital at its beginning.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn tone(finding: &Finding) -> Tone {
    let verdict = finding.decision.get("verdict").and_then(Value::as_str).unwrap_or_default();
    match verdict {
        "better" => Tone::Better,
        "worse" => Tone::Worse,
        "unclear" | "extend" | "flat" | "unknown" | "never-plateaued" | "unconfirmed"
        | "not-determined" => Tone::Open,
        "measured" if is_doubted(finding) => Tone::Open,
        "warn" | "block" | "disturbed" | "drift" | "differs" | "costly" | "not-steady"
        | "two-phase" | "saturated" => Tone::Warn,
        _ => Tone::Plain,
    }
}

/// Whether some figure of it is not certain yet.
fn is_doubted(finding: &Finding) -> bool {
    let flags = finding.decision.get("flags").and_then(Value::as_array);
    let is_so = |flag: &Value| flag.as_str().is_some_and(|flag| flag.starts_with("not_certain_"));
    flags.is_some_and(|flags| flags.iter().any(is_so))
}

/// What holds throughput down, where the decision says it (method, 2.12).
fn bottleneck(finding: &Finding, place: &str) -> Option<Headline> {
    let sentence = finding.decision.get("bottleneck")?["sentence"].as_str()?;
    let text = format!("{}: what holds it down: {sentence}.", finding.title);
    Some(Headline::new(Tone::Plain, text, "evidence", &format!("{place}-bottleneck")))
}

/// What may stand in a link.
fn slug(id: &str) -> String {
    id.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect()
}

fn section(
    study: &StudyView,
    earlier: Option<&StudyView>,
    finding: &Finding,
    place: &str,
) -> Section {
    let mut blocks = vec![Block::Paragraph(sentence(&finding.sentence))];
    let rests: Vec<&RunRecord> =
        study.runs.iter().filter(|run| finding.runs.contains(&run.run)).collect();
    // Others rest on runs of a curve too: it is drawn where it is judged.
    if finding.decision.get("rule").is_some_and(|rule| rule == "knee") {
        let many = study_plots::is_of_many_curves(study);
        blocks.extend(study_plots::curves(&rests, earlier, place, finding, many));
    }
    blocks.extend(study_plots::choice(&rests, place, finding));
    if let Some(table) = &finding.table {
        let data = Data {
            columns: table.columns.iter().map(|column| heading(column)).collect(),
            rows: table
                .rows
                .iter()
                .map(|row| row.iter().zip(&table.columns).map(shown_in).collect())
                .collect(),
        };
        let id = format!("{place}-table");
        let (caption, data) = (title(finding).to_owned(), known(&data));
        blocks.push(Block::Table(Table { id, caption, data }));
    }
    blocks.extend(lists(finding, place).into_iter().map(Block::Table));
    if let Some(bottleneck) = finding.decision.get("bottleneck") {
        let lines = bottleneck["evidence"].as_array().into_iter().flatten().map(shown);
        let sentence = bottleneck["sentence"].as_str().unwrap_or("not determined");
        blocks.push(Block::Folded {
            id: format!("{place}-bottleneck"),
            heading: format!("What holds it down: {sentence}"),
            text: lines.collect::<Vec<_>>().join("\n"),
        });
    }
    if !rests.is_empty() {
        let numbers: Vec<u32> = rests.iter().map(|run| run.run).collect();
        blocks.push(Block::Paragraph(format!("It rests on the runs {}.", ranges(&numbers))));
    }
    if finding.decision.contains_key("rule") {
        let decision = Value::Object(finding.decision.clone());
        blocks.push(explained(&format!("{place}-decision"), title(finding), &decision));
    }
    Section { id: place.to_owned(), title: title(finding).to_owned(), blocks }
}

/// Without columns in which nothing is known.
fn known(data: &Data) -> Data {
    let is_known = |place: usize| {
        data.rows
            .iter()
            .any(|row| row.get(place).is_some_and(|cell| !cell.is_empty() && cell != "–"))
    };
    let kept: Vec<usize> = (0..data.columns.len()).filter(|place| is_known(*place)).collect();
    let of = |row: &Vec<String>| -> Vec<String> {
        kept.iter().filter_map(|place| row.get(*place).cloned()).collect()
    };
    Data { columns: of(&data.columns), rows: data.rows.iter().map(of).collect() }
}

/// Columns that stand first.
const LEADING: [&str; 5] = ["id", "name", "check", "rule", "verdict"];

/// Members of a decision that are told elsewhere.
const TOLD: [&str; 4] = ["evidence", "settings", "dropped", "changes"];

/// Lists of objects that a decision holds beside its evidence: checks, remarks and the like, each as a table.
fn lists(finding: &Finding, place: &str) -> Vec<Table> {
    let mut tables = Vec::new();
    for (name, list) in finding.decision.iter().filter(|(name, _)| !TOLD.contains(&name.as_str())) {
        let rows: Vec<_> =
            list.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
        let mut columns: Vec<String> = Vec::new();
        for (key, value) in rows.iter().flat_map(|row| row.iter()) {
            if !value.is_object() && !columns.contains(key) {
                columns.push(key.clone());
            }
        }
        if columns.is_empty() {
            continue;
        }
        // What it is about, and how it came out, before what was seen.
        let rank = |name: &String| {
            let place = LEADING.iter().position(|leading| leading == name);
            place.unwrap_or(LEADING.len())
        };
        columns.sort_by_key(rank);
        let row = |row: &&serde_json::Map<String, Value>| {
            columns.iter().map(|key| row.get(key).map_or_else(String::new, cell_of)).collect()
        };
        let rows = rows.iter().map(row).collect();
        tables.push(Table {
            id: format!("{place}-{}", slug(name)),
            caption: name.replace('_', " "),
            data: Data {
                columns: columns.iter().map(|name| name.replace('_', " ")).collect(),
                rows,
            },
        });
    }
    tables
}

fn cell_of(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join("; "),
        Value::Null => String::new(),
        other => shown(other),
    }
}

/// `1, 2, 3, 7` as `1–3, 7`; the numbers ascend.
fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => parts.push((*number, *number)),
        }
    }
    let told = parts.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    });
    told.collect::<Vec<_>>().join(", ")
}

/// A cell under its column: nobody wants six digits of a percentage.
fn shown_in((value, column): (&Value, &String)) -> String {
    match value.as_f64() {
        Some(percent) if column.ends_with("[%]") && percent.fract() != 0.0 => {
            format!("{percent:.1}")
        }
        _ => shown(value),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => cell(number.as_f64()),
        other => other.to_string(),
    }
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
            let found = summary.percentile(99.0)?;
            let mark = percentile::support(0.99, summary.io_count).mark;
            Some((
                if mark == Mark::None { "–".to_owned() } else { latency(found.ms) },
                percentile::with_episodes(mark.keyword(), 99.0, found.spread),
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
            p99.map_or_else(String::new, |(_, mark)| mark),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runs_are_told_as_ranges() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1–3, 7, 9, 10");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn a_simulated_device_is_told_by_what_it_differs_in() {
        let device = SimulatedDevice { max_iops: 123.0, noise: 0.25, ..SimulatedDevice::default() };
        let text = serde_json::to_string(&device).expect("JSON");
        assert_eq!(simulated(SIMULATED, &text).as_deref(), Some("max-iops = 123, noise = 0.25"));
        assert_eq!(simulated("processor", &text), None);
        assert_eq!(simulated(SIMULATED, "an old one"), None);
    }

    #[test]
    fn percentages_have_one_decimal() {
        let cell = |value: Value, column: &str| shown_in((&value, &column.to_owned()));
        assert_eq!(cell(json!(8.311_85), "ci95 [%]"), "8.3");
        assert_eq!(cell(json!(30), "write [%]"), "30");
        assert_eq!(cell(json!(10.689), "avg_lat [ms]"), "10.689");
        assert_eq!(cell(Value::Null, "ci95 [%]"), "–");
    }
}
