//! The table of a report for spreadsheets.

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

pub(super) fn render(report: &TierReport) -> String {
    let mut out = HEAD.to_owned();
    for (nth, row) in report.rows.iter().enumerate() {
        let unpinned = report.rows_unpinned.get(nth);
        let (extents, bytes) = unpinned.map_or((0, 0), |row| (row.extents, row.bytes));
        out.push_str(&format!("{},{},{},{extents},{bytes}\n", row.percent, row.extents, row.bytes));
    }
    out
}
