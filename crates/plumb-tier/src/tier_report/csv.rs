//! The table of a report for spreadsheets.

use super::TierReport;

pub(super) fn render(report: &TierReport) -> String {
    let mut out = String::from("ios_percent,extents,bytes,unpinned_extents,unpinned_bytes\n");
    for (nth, row) in report.rows.iter().enumerate() {
        let unpinned = report.rows_unpinned.get(nth);
        let (extents, bytes) = unpinned.map_or((0, 0), |row| (row.extents, row.bytes));
        out.push_str(&format!("{},{},{},{extents},{bytes}\n", row.percent, row.extents, row.bytes));
    }
    out
}
