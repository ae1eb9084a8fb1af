//! A report for spreadsheets: its table, and its other figures.

use serde_json::Value;

use super::TierReport;

const HEAD: &str = "ios_percent,extents,bytes,unpinned_extents,unpinned_bytes\n";

/// The table of a report that was kept as JSON.
#[must_use]
pub fn csv_of(report: &Value) -> String {
    let mut out = HEAD.to_owned();
    let rows = report["table"].as_array().into_iter().flatten();
    for (nth, row) in rows.enumerate() {
        let unpinned = &report["table_unpinned"][nth];
        let figures = [
            &row["ios_percent"],
            &row["extents"],
            &row["bytes"],
            &unpinned["extents"],
            &unpinned["bytes"],
        ];
        let figures = figures.map(|figure| figure.as_u64().unwrap_or(0).to_string());
        out.push_str(&format!("{}\n", figures.join(",")));
    }
    out
}

/// All figures of a report but its tables, each in a line of its own: where it stands in the JSON, and its value. What is not
/// known is empty; lists are numbered from 0.
#[must_use]
pub fn figures_csv(report: &Value) -> String {
    /// They are many rows of several figures, or the whole as text.
    const LEFT_OUT: [&str; 3] = ["table", "table_unpinned", "text"];
    let mut out = String::from("figure,value\n");
    for (name, value) in report.as_object().into_iter().flatten() {
        if !LEFT_OUT.contains(&name.as_str()) {
            add(&mut out, name, value);
        }
    }
    out
}

fn add(out: &mut String, name: &str, value: &Value) {
    match value {
        Value::Object(parts) => {
            parts.iter().for_each(|(part, value)| add(out, &format!("{name}.{part}"), value));
        }
        Value::Array(parts) => {
            let parts = parts.iter().enumerate();
            parts.for_each(|(nth, value)| add(out, &format!("{name}.{nth}"), value));
        }
        Value::Null => out.push_str(&format!("{name},\n")),
        Value::String(text) => {
            out.push_str(&format!("{name},\"{}\"\n", text.replace('"', "\"\"")));
        }
        other => out.push_str(&format!("{name},{other}\n")),
    }
}

pub(super) fn render(report: &TierReport) -> String {
    let mut out = HEAD.to_owned();
    for (nth, row) in report.rows.iter().enumerate() {
        let unpinned = report.rows_unpinned.get(nth);
        let (extents, bytes) = unpinned.map_or((0, 0), |row| (row.extents, row.bytes));
        out.push_str(&format!("{},{},{},{extents},{bytes}\n", row.percent, row.extents, row.bytes));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_but_the_table_has_a_line() {
        let report = serde_json::json!({
            "vdisk": "a \"b\", c", "host_ios": 7, "expected_percent": null, "table": [{ "bytes": 1 }], "text": "x",
            "moves": { "up": 3, "limits": { "movers": 8 } }, "advice": { "suggestions": ["nothing to do"] },
        });
        let wanted = [
            "figure,value",
            "advice.suggestions.0,\"nothing to do\"",
            "expected_percent,",
            "host_ios,7",
            "moves.limits.movers,8",
            "moves.up,3",
            "vdisk,\"a \"\"b\"\", c\"",
        ];
        let told = figures_csv(&report);
        let mut lines: Vec<&str> = told.lines().collect();
        lines[1..].sort_unstable();
        assert_eq!(lines, wanted);
    }
}
