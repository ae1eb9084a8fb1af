//! A decision in words: its rule, what went in, and the sums.

use std::fmt::Write as _;

use serde_json::Value;

use crate::decision::Rule;

/// The document is no decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum ExplainError {
    /// It has no rule, or one that is not known.
    #[error("this is no decision: {what}")]
    #[diagnostic(
        code(plumb::explain::rule),
        help(
            "decisions are what `plumb knee`, `plumb compare` and `plumb history` print with --json, \
             an object per line"
        )
    )]
    NoDecision {
        /// What is missing.
        what: String,
    },
}

/// Explains a decision; an answer that is an error is told as such.
///
/// # Errors
/// The object is no decision.
pub fn explain(decision: &Value) -> Result<String, ExplainError> {
    let no_decision = |what: &str| ExplainError::NoDecision { what: what.to_owned() };
    let object = decision.as_object().ok_or_else(|| no_decision("it is no object"))?;
    let mut text = String::new();
    let mut add = |line: &str| {
        writeln!(text, "{line}").expect("a string takes it");
    };
    if let Some(error) = object.get("error") {
        add(&format!("{}: not judged", title(decision)));
        add(&format!("  {}", plain(&error["message"])));
        return Ok(text);
    }
    let word =
        object.get("rule").and_then(Value::as_str).ok_or_else(|| no_decision("no `rule`"))?;
    let rule = Rule::of_keyword(word)
        .ok_or_else(|| no_decision(&format!("`{word}` is no rule of this version")))?;
    add(&format!("{}: {}", title(decision), plain(&decision["verdict"])));
    add(&format!("  because {}", plain(&decision["reason"])));
    add("\nRule");
    for sentence in rule.sentences() {
        add(&format!("  - {sentence}"));
    }
    add("\nParameters");
    for (name, value) in decision["parameters"].as_object().into_iter().flatten() {
        if !value.is_null() {
            add(&format!("  {name} = {}", plain(value)));
        }
    }
    add("\nInputs and arithmetic");
    for setting in decision["settings"].as_array().into_iter().flatten() {
        add(&setting_line(setting));
    }
    // Of a curve its settings have said it.
    if decision["settings"].as_array().is_none_or(Vec::is_empty) {
        table_lines(&decision["table"]).iter().for_each(|line| add(line));
    }
    for row in decision["dropped"].as_array().into_iter().flatten() {
        add(&format!("  o{} left out: {}", plain(&row["o"]), plain(&row["reason"])));
    }
    let told = |item: &&Value| !item["value"].is_null();
    for item in decision["evidence"].as_array().into_iter().flatten().filter(told) {
        let sum = item["arithmetic"].as_str().map(|sum| format!("  [{sum}]")).unwrap_or_default();
        add(&format!("  {} = {}{sum}", plain(&item["name"]), plain(&item["value"])));
    }
    for change in decision["changes"].as_array().into_iter().flatten() {
        add(&format!(
            "  level changes at index {}: {} to {} = {} ({}), p = {}",
            plain(&change["index"]),
            plain(&change["before"]),
            plain(&change["after"]),
            percent(&change["step"]),
            plain(&change["verdict"]),
            plain(&change["p"]),
        ));
    }
    let notes = decision["notes"].as_array().filter(|notes| !notes.is_empty());
    if let Some(notes) = notes {
        add("\nRemarks");
        for note in notes {
            add(&format!("  - {}", plain(note)));
        }
    }
    Ok(text)
}

/// A decision in a few lines.
#[must_use]
pub fn summary(decision: &Value) -> String {
    let mut text = format!("{}: {}\n", title(decision), plain(&decision["verdict"]));
    let mut add = |name: &str, value: &Value| {
        let is_empty = value.as_array().is_some_and(Vec::is_empty);
        if !value.is_null() && !is_empty {
            writeln!(text, "  {name:<14}{}", plain(value)).expect("a string takes it");
        }
    };
    add("because", &decision["reason"]);
    for (name, key) in [
        ("plateau", "plateau_o"),
        ("recommended", "recommended_o"),
        ("same within", "indifferent_o"),
        ("flags", "flags"),
        ("outliers", "outlier_o"),
        ("named cap", "named_cap"),
        ("next range", "next_range_o"),
        ("repeat", "repeat_o"),
        ("change points", "change_points"),
        ("outliers", "outliers"),
    ] {
        add(name, &decision[key]);
    }
    let dropped = decision["dropped"].as_array().map_or(&[][..], Vec::as_slice);
    for row in dropped.iter().take(DROPPED_SHOWN) {
        let told = format!("o{}: {}", plain(&row["o"]), plain(&row["reason"]));
        add("left out", &told.into());
    }
    if dropped.len() > DROPPED_SHOWN {
        add("left out", &format!("{} rows in all", dropped.len()).into());
    }
    for note in decision["notes"].as_array().into_iter().flatten() {
        add("note", note);
    }
    text
}

/// Rows that were left out and are named one by one, at most.
const DROPPED_SHOWN: usize = 4;

/// What the decision is about.
fn title(decision: &Value) -> String {
    let mut title = match &decision["id"] {
        Value::Null => String::new(),
        id => plain(id),
    };
    for key in ["file", "metric"] {
        let word = decision[key].as_str().unwrap_or_default();
        if !title.contains(word) {
            title = format!("{title} {word}");
        }
    }
    title.trim().to_owned()
}

fn setting_line(setting: &Value) -> String {
    let is = |key: &str| setting[key].as_bool();
    let state = match (is("irreproducible"), is("excluded"), is("off_curve")) {
        (Some(true), Some(false), Some(true)) => {
            "  runs contradict each other, off the curve: excluded, to be repeated"
        }
        (Some(true), Some(false), _) => "  runs contradict each other: to be repeated",
        (Some(true), ..) => "  runs contradict each other: excluded",
        (.., Some(true)) => "  off the curve: excluded",
        _ => "",
    };
    let fitted = match &setting["fitted_iops"] {
        Value::Null => String::new(),
        fitted => format!(", fitted {:>12}", plain(fitted)),
    };
    format!(
        "  o{:<4} {:>12} I/Os per second{fitted}, {} ms{state}",
        plain(&setting["o"]),
        plain(&setting["iops"]),
        plain(&setting["latency_ms"]),
    )
}

/// The numbers behind a finding of a study, a line per row; what is the same in all rows is told before.
fn table_lines(table: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let columns = list(&table["columns"]);
    let rows: Vec<Vec<Value>> = list(&table["rows"]).iter().map(list).collect();
    let value = |row: &[Value], place: usize| row.get(place).cloned().unwrap_or_default();
    let same = |place: usize| rows.iter().all(|row| value(row, place) == value(&rows[0], place));
    let (shared, own): (Vec<usize>, Vec<usize>) =
        (0..columns.len()).partition(|place| rows.len() > 1 && same(*place));
    let mut lines = Vec::new();
    let shared: Vec<String> = shared
        .into_iter()
        .filter(|place| !value(&rows[0], *place).is_null())
        .map(|place| format!("{} = {}", plain(&columns[place]), plain(&value(&rows[0], place))))
        .collect();
    if !shared.is_empty() {
        lines.push(format!("  in each row: {}", shared.join(", ")));
    }
    let cell = |value: &Value| if value.is_null() { "–".to_owned() } else { plain(value) };
    let mut cells: Vec<Vec<String>> =
        vec![own.iter().map(|place| plain(&columns[*place])).collect()];
    cells
        .extend(rows.iter().map(|row| own.iter().map(|place| cell(&value(row, *place))).collect()));
    let width = |place: usize| cells.iter().map(|row| row[place].chars().count()).max();
    let widths: Vec<usize> = (0..own.len()).filter_map(width).collect();
    if !rows.is_empty() {
        for row in &cells {
            let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            lines
                .push(format!("  {}", padded.collect::<Vec<_>>().join("  ")).trim_end().to_owned());
        }
    }
    lines
}

/// A value as one reads it: numbers with five significant digits, long lists cut.
fn plain(value: &Value) -> String {
    const SHOWN: usize = 12;
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64().filter(|_| !number.is_u64()) {
            Some(float) => significant(float),
            None => number.to_string(),
        },
        Value::Array(items) => {
            let mut shown: Vec<String> = items.iter().take(SHOWN).map(plain).collect();
            if items.len() > SHOWN {
                shown.push(format!("… {} in all", items.len()));
            }
            format!("[{}]", shown.join(", "))
        }
        Value::Null => "unknown".to_owned(),
        other => other.to_string(),
    }
}

fn percent(value: &Value) -> String {
    value.as_f64().map_or_else(|| "unknown".to_owned(), |share| format!("{:+.2} %", share * 100.0))
}

fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 1e-4 => format!("{value:.2e}"),
        size if size < 1.0 => format!("{value:.5}"),
        size if size < 1000.0 => format!("{value:.3}"),
        _ => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::samples;

    #[test]
    fn a_comparison_is_explained_with_its_sums() {
        let sample = json!({
            "metric": "iops", "baseline_runs": [100.0, 101.0, 99.0], "candidate_runs": [110.0, 111.0, 109.0],
        });
        let mut decision = samples::compare(&sample).expect("a decision");
        decision.insert("id".into(), "nightly".into());
        let text = explain(&Value::Object(decision)).expect("a decision");
        for part in
            ["nightly iops: better", "Rule\n  - The effect is", "delta = 0.02", "± t(0.975) ×"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn the_numbers_behind_a_finding_are_what_went_in() {
        let table = json!({
            "columns": ["setting", "block [B]", "iops [1/s]", "remedy"],
            "rows": [["t1", 4096, 1000.25, null], ["t12", 4096, null, "repeat it"]],
        });
        let decision = json!({ "id": "best", "rule": "best", "verdict": "best", "reason": "so", "table": table });
        let text = explain(&decision).expect("a decision");
        let inputs = "Inputs and arithmetic\n  in each row: block [B] = 4096\n  setting  iops [1/s]  remedy\n  \
                      t1       1000.2      –\n  t12      –           repeat it\n";
        assert!(text.contains(inputs), "{text}");
        // One row has nothing in common with others.
        let one = json!({ "columns": ["a", "b"], "rows": [[1, 2]] });
        assert_eq!(table_lines(&one), ["  a  b", "  1  2"]);
        assert!(table_lines(&json!({ "columns": ["a"], "rows": [] })).is_empty());
    }

    #[test]
    fn rows_that_were_left_out_are_named() {
        let text = "o,iops,avg_lat_ms\n1,100,10\n2,180,90\n4,200,20\n8,200,40\n16,201,80\n";
        let rows = crate::table::read(text, None).expect("a table").rows;
        let options = crate::knee::Options { threads: Some(1.0), ..Default::default() };
        let found = crate::knee::find(&rows, &options);
        let layout = crate::findings::Layout::default();
        let decision = crate::decision::of_knee(&found, &options, &layout);
        let told = summary(&Value::Object(decision));
        assert!(told.contains("left out      o2: X·L is +710"), "{told}");
    }

    #[test]
    fn only_decisions_are_explained() {
        assert!(explain(&json!([1])).is_err());
        assert!(explain(&json!({ "verdict": "knee" })).is_err());
        assert!(explain(&json!({ "rule": "guess" })).is_err());
        let error = explain(&json!({ "error": { "message": "no number" }, "file": "f" }));
        assert!(error.is_ok_and(|text| text.contains("no number")));
    }
}
