//! A report as text of a fixed layout.

use plumb_units::Bytes;

use super::{PinnedFigures, TierReport, percent};

/// Width of the names.
const NAME: usize = 57;

pub(super) fn render(report: &TierReport) -> String {
    let facts = &report.facts;
    let mut out = String::from("Storage Tier Optimization Report\n\n");
    line(&mut out, "Virtual disk", &facts.name);
    line(&mut out, "Window start", &clock(facts.window_start_s));
    line(&mut out, "Window end", &clock(facts.window_end_s));
    line(&mut out, "Host I/Os", &facts.answered.to_string());
    out.push('\n');
    if report.rows.is_empty() {
        out.push_str("no I/O in window\n\n");
    } else {
        out.push_str("% I/Os Serviced from Perf Tier  Perf Tier Size Required\n");
        for row in &report.rows {
            out.push_str(&format!("{:>30}  {:>23}\n", row.percent, Bytes(row.bytes).to_string()));
        }
        out.push('\n');
    }
    let size = Bytes(report.performance_bytes()).to_string();
    line(&mut out, "Current Size of the Performance Tier", &size);
    let serviced = "Percent of Total I/Os Serviced from the Performance Tier";
    line(&mut out, serviced, &share(report.serviced_percent()));
    line(
        &mut out,
        "  by the write-back cache",
        &share(percent(facts.answered_cache, facts.answered)),
    );
    let expected = facts.expected_share.map(|share| 100.0 * share);
    line(&mut out, "  expected with the placement just made", &share(expected));
    pinned(&mut out, report, "Performance", &report.pinned_performance);
    pinned(&mut out, report, "Capacity", &report.pinned_capacity);
    out.push('\n');
    let moves = &facts.moves;
    let up = format!("{} of {}", moves.up, moves.up_requested);
    let down = format!("{} of {}", moves.down, moves.down_requested);
    line(&mut out, "Extents Moved Up", &up);
    line(&mut out, "Extents Moved Down", &down);
    let moved = format!("{} in {:.0} s ({})", Bytes(moves.bytes), moves.seconds, moves.stop.name());
    line(&mut out, "Moved", &moved);
    out.push('\n');
    for (share, bytes) in &report.advice.sizes {
        line(
            &mut out,
            &format!("Smallest Performance Tier for {share} %"),
            &Bytes(*bytes).to_string(),
        );
    }
    let change = match report.advice.working_set_change {
        Some(change) => format!(" ({change:+.0} % against the last runs)"),
        None => String::new(),
    };
    let set = format!("{}{change}", Bytes(report.advice.working_set_bytes));
    line(&mut out, "Working Set", &set);
    let thrash = format!("{:.1} %", report.advice.thrash_percent);
    line(&mut out, "Promoted and Demoted Again within 3 Runs", &thrash);
    line(&mut out, "I/Os not Counted by Extent", &report.ios_lost.to_string());
    for suggestion in &report.advice.suggestions {
        line(&mut out, "Advice", suggestion);
    }
    out
}

fn line(out: &mut String, name: &str, value: &str) {
    out.push_str(&format!("{:<NAME$}  {value}\n", format!("{name}:")));
}

fn pinned(out: &mut String, report: &TierReport, tier: &str, figures: &PinnedFigures) {
    let name = format!("Size of Files Pinned to the {tier} Tier");
    line(out, &name, &Bytes(figures.bytes).to_string());
    line(out, "  Percent of Total I/Os", &share(percent(figures.ios, report.ios)));
}

fn share(percent: Option<f64>) -> String {
    percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1} %"))
}

/// Days and time of the clock that starts at 0.
fn clock(seconds: f64) -> String {
    let minutes = plumb_units::convert::floor_u64(seconds / 60.0);
    let (days, rest) = (minutes / 1440, minutes % 1440);
    format!("day {} {:02}:{:02}", days + 1, rest / 60, rest % 60)
}
