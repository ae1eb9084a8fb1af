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
                tiles.extend(alone.map(|ms| Tile {
                    name: "One I/O alone".to_owned(),
                    value: latency(ms),
                    note: "on average, without any queue".to_owned(),
                    link: format!("{id}-latency-alone"),
                }));
            }
            best if best == "best" || best.starts_with("best-") => {
                let name = finding.decision.get("value").and_then(Value::as_str);
                tiles.extend(name.map(|name| Tile {
                    name: finding.title.replace("best setting", "setting to use"),
                    value: name.to_owned(),
                    note: "the cheapest of those that are as good as the best".to_owned(),
                    link: format!("{id}-{best}"),
                }));
            }
            _ => {}
        }
    }
    tiles
}

/// The rows of the findings table.
fn rows(finding: &Finding, link: &str) -> Vec<Tile> {
    let Some(table) = &finding.table else { return Vec::new() };
    let place = |name: &str| table.columns.iter().position(|column| column.starts_with(name));
    let (setting, iops) = (place("setting"), place("iops"));
    let (mib, ms) = (place("mib_per_s"), place("avg_lat"));
    let (highest, with) = (place("highest iops"), place("highest with"));
    let tile = |row: &Vec<Value>| {
        let number = |place: Option<usize>| row.get(place?).and_then(Value::as_f64);
        let operation = row.first()?.as_str()?;
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
        Some(Tile { name, value, note: format!("{each}with {at}{most}"), link: link.to_owned() })
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
