//! Plot 8: comparisons, with their intervals and what would matter.

use serde_json::Value;

use super::super::chart::{Axis, Chart, Layer};
use super::super::page::cell;
use super::{Data, Plot};

/// The plot of decisions on comparisons; `None` without any. `names` has a name per decision.
pub(in super::super) fn plot(decisions: &[(String, &Value)], id: &str) -> Option<Plot> {
    let mut rows = Vec::new();
    let mut names = Vec::new();
    let mut data = Data::new(&[
        "comparison",
        "effect_percent",
        "low_percent",
        "high_percent",
        "delta_percent",
        "verdict",
    ]);
    let mut counts = [("better", 0), ("worse", 0), ("same", 0), ("unclear", 0)];
    let mut delta_most: f64 = 0.0;
    let all = decisions.len();
    for (index, (name, decision)) in decisions.iter().enumerate() {
        let percent = |value: &Value| value.as_f64().map(|value| value * 100.0);
        let verdict = decision["verdict"].as_str().unwrap_or_default();
        let (effect, low, high) = (
            percent(&decision["effect"]),
            percent(&decision["ci"][0]),
            percent(&decision["ci"][1]),
        );
        let delta = percent(&decision["parameters"]["delta"]);
        data.add([
            name.clone(),
            cell(effect),
            cell(low),
            cell(high),
            cell(delta),
            verdict.to_owned(),
        ]);
        if let Some((_, count)) = counts.iter_mut().find(|(word, _)| *word == verdict) {
            *count += 1;
        }
        delta_most = delta_most.max(delta.unwrap_or(0.0));
        let row = (all - index) as f64;
        names.push((row, name.clone()));
        if let (Some(effect), Some(low), Some(high)) = (effect, low, high) {
            let tone = match verdict {
                "better" => 3,
                "worse" => 4,
                "same" => 1,
                _ => 6,
            };
            rows.push((row, low, effect, high, tone));
        }
    }
    if rows.is_empty() {
        return None;
    }
    let told: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    Some(Plot {
        id: format!("{id}-forest"),
        title: "Effects with their 95 % intervals".into(),
        sentence: format!(
            "{}. To the right is better; differences within the shaded band do not matter.",
            told.join(", ")
        ),
        chart: Chart {
            x: Axis::linear("effect, %: to the right is better"),
            left: Axis::named("", names),
            right: None,
            layers: vec![
                Layer::Range { name: String::new(), x: (-delta_most, delta_most) },
                Layer::Mark { name: "no change".into(), x: 0.0 },
                Layer::Lying { rows },
            ],
        },
        data,
    })
}
