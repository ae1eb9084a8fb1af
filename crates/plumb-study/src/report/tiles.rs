//! The few figures that most readers came for, in large.

use serde_json::Value;

use super::StudyView;
use super::page::{Tile, latency, rate};
use super::plot::percentiles::{self, Which};
use super::run_view::RunView;
use crate::percentile::Mark;
use crate::study::Finding;

/// The figures of a study: a row of its table each (method, 2.9), and the latency without load.
pub(super) fn of_study(study: &StudyView, id: &str) -> Vec<Tile> {
    let found = study.findings.iter().flat_map(|findings| &findings.findings);
    let mut tiles = Vec::new();
    for finding in found {
        match finding.id.as_str() {
            "findings" => tiles.extend(rows(finding, &format!("{id}-findings"))),
            "latency-alone" => {
                let alone = finding.decision.get("value").and_then(Value::as_f64);
                let sure = Sure {
                    is_open: verdict(finding) == "unclear",
                    runs: if has_flag(finding, "single_run") { Some(1.0) } else { None },
                    half_width: None,
                };
                let is_lowest = if sure.is_open { "" } else { ", without any queue" };
                tiles.extend(alone.map(|ms| Tile {
                    name: "One I/O alone".to_owned(),
                    value: latency(ms),
                    note: format!("{}on average{is_lowest}", sure.told()),
                    link: format!("{id}-latency-alone"),
                }));
            }
            best if best == "best" || best.starts_with("best-") => {
                let name = finding.decision.get("value").and_then(Value::as_str);
                tiles.extend(name.map(|name| Tile {
                    name: finding.title.replace("best setting", "setting to use"),
                    value: name.to_owned(),
                    note: format!(
                        "{}the cheapest of those that are as good as the best",
                        of_choice(finding, name).told()
                    ),
                    link: format!("{id}-{best}"),
                }));
            }
            _ => {}
        }
    }
    tiles
}

/// How far a figure can be relied on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sure {
    /// Whether its finding says that it is not certain yet.
    is_open: bool,
    /// Runs that it rests on, where known.
    runs: Option<f64>,
    /// Half its 95 % interval in percent: within the run if it is one.
    half_width: Option<f64>,
}

impl Sure {
    /// In words before others: `not certain yet, one run, ± 0.4 % within it; `.
    fn told(&self) -> String {
        let is_single = self.runs == Some(1.0);
        let mut words = Vec::new();
        if self.is_open {
            words.push("not certain yet".to_owned());
        }
        match self.runs {
            Some(_) if is_single => words.push("one run".to_owned()),
            Some(runs) => words.push(format!("{runs:.0} runs")),
            None => {}
        }
        let within = if is_single { " within it" } else { "" };
        match self.half_width {
            // No interval of a rate: the runs say no more than its order.
            Some(half) if half > 100.0 => words.push("more than ± 100 %".to_owned()),
            Some(half) => words.push(format!("± {half:.1} %{within}")),
            None => {}
        }
        if words.is_empty() { String::new() } else { format!("{}; ", words.join(", ")) }
    }
}

fn verdict(finding: &Finding) -> &str {
    finding.decision.get("verdict").and_then(Value::as_str).unwrap_or_default()
}

fn has_flag(finding: &Finding, flag: &str) -> bool {
    let flags = finding.decision.get("flags").and_then(Value::as_array);
    flags.is_some_and(|flags| flags.iter().any(|other| other == flag))
}

/// How far the choice of a sweep can be relied on: what is said of it, and the row of what was chosen.
fn of_choice(finding: &Finding, chosen: &str) -> Sure {
    let row = finding.table.as_ref().and_then(|table| {
        let at = |name: &str| table.columns.iter().position(|column| column.starts_with(name));
        let (setting, runs, half) = (at("setting")?, at("runs"), at("ci95"));
        let row = table.rows.iter().find(|row| row.get(setting).is_some_and(|is| is == chosen))?;
        let number = |place: Option<usize>| row.get(place?).and_then(Value::as_f64);
        Some((number(runs), number(half)))
    });
    let (runs, half_width) = row.unwrap_or_default();
    Sure { is_open: verdict(finding) == "unclear", runs, half_width }
}

/// Verdicts of a curve that do not vouch for a figure.
const OPEN: [&str; 3] = ["unclear", "extend", "never-plateaued"];

/// The rows of the findings table.
fn rows(finding: &Finding, link: &str) -> Vec<Tile> {
    let Some(table) = &finding.table else { return Vec::new() };
    let place = |name: &str| table.columns.iter().position(|column| column.starts_with(name));
    let (setting, iops) = (place("setting"), place("iops"));
    let (mib, ms) = (place("mib_per_s"), place("avg_lat"));
    let (highest, with) = (place("highest iops"), place("highest with"));
    let (half, runs, judged) = (place("ci95 ["), place("runs"), place("verdict"));
    let tile = |row: &Vec<Value>| {
        let number = |place: Option<usize>| row.get(place?).and_then(Value::as_f64);
        let operation = row.first()?.as_str()?;
        let judged = judged.and_then(|place| row.get(place)?.as_str()).unwrap_or_default();
        let sure = Sure {
            is_open: OPEN.contains(&judged)
                || has_flag(finding, &format!("not_certain_{operation}")),
            runs: number(runs),
            half_width: number(half),
        };
        let (name, value) = match operation {
            "random" => ("Small random I/O".to_owned(), format!("{} I/Os/s", rate(number(iops)?))),
            other => (format!("Sequential {other}s"), format!("{} MiB/s", rate(number(mib)?))),
        };
        let at = setting.and_then(|place| row.get(place)?.as_str()).unwrap_or_default();
        let each = number(ms).map_or_else(String::new, |ms| format!("{} each, ", latency(ms)));
        let most = number(highest).zip(with.and_then(|place| row.get(place)?.as_str()));
        let most = most.map_or_else(String::new, |(iops, with)| {
            format!(", the chosen setting; the highest: {} I/Os/s with {with}", rate(iops))
        });
        let note = format!("{}{each}with {at}{most}", sure.told());
        Some(Tile { name, value, note, link: link.to_owned() })
    };
    table.rows.iter().filter_map(tile).collect()
}

/// The figures of a run of one time span.
pub(super) fn of_run(run: &RunView, id: &str) -> Vec<Tile> {
    let [span] = run.spans.as_slice() else { return Vec::new() };
    let tile = |name: &str, value: String, note: String, link: &str| Tile {
        name: name.to_owned(),
        value,
        note,
        link: format!("{id}-{link}"),
    };
    let outstanding = span.outstanding_words();
    let mut tiles = vec![
        tile("I/Os per second", rate(span.total.iops), span.title(), "figures"),
        tile("MiB/s", rate(span.total.mib_per_s), format!("over {:.0} s", span.seconds), "figures"),
    ];
    if let Some(ms) = span.total.mean_ms {
        tiles.push(tile("Mean latency", latency(ms), outstanding, "figures"));
    }
    let slow = percentiles::rows(span, Which::All);
    let slow = slow.iter().find(|row| (row.percent - 99.0).abs() < 1e-9);
    if let Some(slow) = slow.filter(|row| row.support.mark != Mark::None)
        && percentiles::plot(span, id, None).is_some()
    {
        let note = format!("mark {}", slow.mark());
        tiles.push(tile("99th percentile", slow.printed(), note, "percentiles"));
    }
    tiles
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::study::Table;

    /// Notes of the tiles of a table of answers.
    fn notes(flags: &Value, lines: Vec<Vec<Value>>) -> Vec<String> {
        let columns = ["operation", "setting", "iops [1/s]", "mib_per_s", "avg_lat [ms]"];
        let columns = columns.into_iter().chain(["ci95 [%]", "runs", "verdict", "ci95 covers"]);
        let mut decision = serde_json::Map::new();
        decision.insert("flags".into(), flags.clone());
        let finding = Finding {
            id: "findings".into(),
            title: "Findings".into(),
            sentence: String::new(),
            step: "findings".into(),
            decision,
            runs: Vec::new(),
            table: Some(Table { columns: columns.map(str::to_owned).collect(), rows: lines }),
        };
        rows(&finding, "link").into_iter().map(|tile| tile.note).collect()
    }

    #[test]
    fn figures_in_large_carry_their_doubt() {
        let line = |operation: &str, half: Value, runs: u32, verdict: &str| {
            vec![
                json!(operation),
                json!("t2 o16"),
                json!(27092.0),
                json!(211.0),
                json!(2.0),
                half,
                json!(runs),
                json!(verdict),
                json!("between its runs"),
            ]
        };
        let lines = vec![
            line("random", json!(1026.0), 2, "knee"),
            line("read", json!(0.42), 1, "knee"),
            line("write", json!(2.0), 3, "never-plateaued"),
            line("other", Value::Null, 3, "knee"),
        ];
        let told = notes(&json!(["not_certain_random", "single_run_read"]), lines);
        let wanted = [
            "not certain yet, 2 runs, more than ± 100 %; ",
            "one run, ± 0.4 % within it; ",
            "not certain yet, 3 runs, ± 2.0 %; ",
            "3 runs; ",
        ];
        for (told, wanted) in told.iter().zip(wanted) {
            assert_eq!(*told, format!("{wanted}2.00 ms each, with t2 o16"));
        }
        assert_eq!(told.len(), 4);
    }

    #[test]
    fn a_chosen_setting_in_large_has_its_own_row_s_doubt() {
        let decision = json!({ "value": "o2", "verdict": "unclear", "flags": ["single_runs"] });
        let columns = ["setting", "runs", "iops [1/s]", "ci95 [%]"];
        let finding = Finding {
            id: "best".into(),
            title: "The best setting".into(),
            sentence: String::new(),
            step: "sweep".into(),
            decision: decision.as_object().expect("an object").clone(),
            runs: Vec::new(),
            table: Some(Table {
                columns: columns.map(str::to_owned).to_vec(),
                rows: vec![
                    vec![json!("o1"), json!(5), json!(1.0), json!(3.0)],
                    vec![json!("o2"), json!(1), json!(2.0), Value::Null],
                ],
            }),
        };
        assert_eq!(of_choice(&finding, "o2").told(), "not certain yet, one run; ");
        assert_eq!(of_choice(&finding, "o1").told(), "not certain yet, 5 runs, ± 3.0 %; ");
        assert_eq!(of_choice(&finding, "o3").told(), "not certain yet; ");
        assert_eq!(Sure::default().told(), "");
    }
}
