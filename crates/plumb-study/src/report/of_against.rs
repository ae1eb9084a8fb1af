//! A study beside an earlier one: what changed, setting by setting.

use serde_json::Value;

use super::StudyView;
use super::of_runs::explained;
use super::page::{Block, Data, Headline, Section, Table, Tone, cell};
use super::plot::forest;
use crate::study::{Against, against};

/// Decisions whose arithmetic is shown.
const EXPLAINED_MOST: usize = 12;
/// Rows of the plot.
const PLOTTED_MOST: usize = 40;

/// Findings and section of `later` against `earlier`.
pub(super) fn found(
    earlier: &StudyView,
    later: &StudyView,
    id: &str,
) -> (Vec<Headline>, Option<Section>) {
    let place = format!("{id}-against");
    let title = format!("Against {}", earlier.plan.id);
    let sides = ((&earlier.plan, earlier.runs.as_slice()), (&later.plan, later.runs.as_slice()));
    match against(sides.0, sides.1, &[]) {
        Err(error) => {
            let text = format!("{title}: not compared: {error}.");
            let evidence = ("the runs".to_owned(), format!("{id}-runs"));
            (vec![Headline { tone: Tone::Open, text, evidence: vec![evidence] }], None)
        }
        Ok(found) => {
            let section = section(&found, &place, &title);
            (headlines(&found, &place, &title), Some(section))
        }
    }
}

/// The worst first, then the best: what a reader must know.
fn ordered(found: &Against) -> Vec<&serde_json::Map<String, Value>> {
    let rank = |decision: &&serde_json::Map<String, Value>| {
        let verdict = match decision["verdict"].as_str() {
            Some("worse") => 0,
            Some("better") => 1,
            Some("unclear") => 2,
            _ => 3,
        };
        (verdict, decision["holds_over_all"] != true)
    };
    let mut all: Vec<_> = found.decisions.iter().collect();
    all.sort_by_key(rank);
    all
}

fn headlines(found: &Against, place: &str, title: &str) -> Vec<Headline> {
    let (better, worse) = (found.count("better"), found.count("worse"));
    let counts = format!(
        "{} settings were measured in both: {better} figures better, {worse} worse, {} the same, {} unclear",
        found.settings,
        found.count("same"),
        found.count("unclear")
    );
    let together = match found.something_changed {
        true => "something changed, at 5 % over all of them together",
        false => "over all of them together nothing changed that the data can tell",
    };
    let tone = match (found.count_holding("worse"), found.count_holding("better")) {
        (1.., _) => Tone::Worse,
        (0, 1..) => Tone::Better,
        _ => Tone::Plain,
    };
    let mut told =
        vec![Headline::new(tone, format!("{title}: {counts}; {together}."), "effects", place)];
    let is_rate = |decision: &&&serde_json::Map<String, Value>| {
        decision["metric"] == "iops"
            && ["worse", "better"].iter().any(|word| decision["verdict"] == *word)
    };
    for decision in ordered(found).iter().filter(is_rate).take(3) {
        let verdict = decision["verdict"].as_str().unwrap_or_default();
        let (tone, doubt) = match (decision["holds_over_all"] == true, verdict) {
            (false, _) => (Tone::Open, "; of so many figures it may be chance"),
            (_, "worse") => (Tone::Worse, ""),
            _ => (Tone::Better, ""),
        };
        let text = format!(
            "{}: {verdict}, {}{doubt}.",
            decision["id"].as_str().unwrap_or_default(),
            decision["reason"].as_str().unwrap_or_default()
        );
        told.push(Headline::new(tone, text, "effects", place));
    }
    told
}

fn section(found: &Against, place: &str, title: &str) -> Section {
    let all = ordered(found);
    let named: Vec<(String, Value)> = all
        .iter()
        .map(|decision| {
            let id = decision["id"].as_str().unwrap_or_default().to_owned();
            (id, Value::Object((*decision).clone()))
        })
        .collect();
    let mut blocks = vec![Block::Paragraph(format!(
        "Settings that only the earlier study measured: {}; only this one: {}. An effect is told by whole runs; a \
         setting with one run on a side is compared with an assumed spread and says so.",
        found.alone.0, found.alone.1
    ))];
    let shown: Vec<(String, &Value)> =
        named.iter().take(PLOTTED_MOST).map(|(name, decision)| (name.clone(), decision)).collect();
    blocks.extend(forest::plot(&shown, place).map(|plot| Block::Plot(Box::new(plot))));
    let mut data = Data::new(&[
        "setting and metric",
        "verdict",
        "holds over all",
        "effect %",
        "from %",
        "to %",
        "runs before",
        "runs now",
    ]);
    for (name, decision) in &named {
        let percent = |value: &Value| cell(value.as_f64().map(|share| share * 100.0));
        let count = |key: &str| decision[key].as_array().map_or(0, Vec::len).to_string();
        data.add([
            name.clone(),
            decision["verdict"].as_str().unwrap_or_default().to_owned(),
            if decision["holds_over_all"] == true { "yes" } else { "no" }.to_owned(),
            percent(&decision["effect"]),
            percent(&decision["ci"][0]),
            percent(&decision["ci"][1]),
            count("baseline_runs_of"),
            count("runs"),
        ]);
    }
    let caption = "Every figure that both studies measured; + is better".to_owned();
    blocks.push(Block::Table(Table { id: format!("{place}-table"), caption, data }));
    for (number, (name, decision)) in (1..).zip(named.iter().take(EXPLAINED_MOST)) {
        blocks.push(explained(&format!("{place}-decision-{number}"), name, decision));
    }
    Section { id: place.to_owned(), title: title.to_owned(), blocks }
}
