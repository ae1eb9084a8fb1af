//! A report as text of a fixed layout.

use plumb_units::Bytes;

use super::{HeatGap, MoveLimits, PinnedFigures, TierReport, percent};
use crate::what_if::WhatIfPoint;

/// Width of the names.
const NAME: usize = 57;

pub(super) fn render(report: &TierReport) -> String {
    let facts = &report.facts;
    let mut out = String::from("Storage Tier Optimization Report\n\n");
    line(&mut out, "Virtual disk", &facts.name);
    line(&mut out, "Window start", &clock(facts.window_start_s));
    line(&mut out, "Window end", &clock(facts.window_end_s));
    line(&mut out, "Host I/Os", &facts.answered.to_string());
    if facts.answered_zeros > 0 {
        let zeros = facts.answered_zeros.to_string();
        line(&mut out, "  of what was never written, which no tier serves", &zeros);
    }
    if let Some(bytes) = &facts.bytes {
        let all = Bytes(bytes.read + bytes.written);
        let each = format!("{all} ({} read, {} written)", Bytes(bytes.read), Bytes(bytes.written));
        line(&mut out, "Host I/O Bytes", &each);
    }
    out.push('\n');
    if report.rows.is_empty() {
        out.push_str(&format!("{}\n\n", super::advice::empty(facts)));
    } else {
        out.push_str("% I/Os Serviced from Perf Tier  Perf Tier Size Required\n");
        for row in &report.rows {
            out.push_str(&format!("{:>30}  {:>23}\n", row.percent, Bytes(row.bytes).to_string()));
        }
        out.push('\n');
    }
    if !facts.what_if.is_empty() {
        out.push_str(&curve(&facts.what_if));
    }
    let size = Bytes(report.performance_bytes()).to_string();
    line(&mut out, "Current Size of the Performance Tier", &size);
    let serviced = "Percent of Total I/Os Serviced from the Performance Tier";
    line(&mut out, serviced, &share(report.serviced_percent()));
    let half = report.half_width_points();
    let half = half.map_or_else(|| "-".to_owned(), |points| format!("\u{b1} {points:.1} points"));
    line(&mut out, "  of which 95 of a hundred such windows are within", &half);
    line(
        &mut out,
        "  by the write-back cache",
        &share(percent(facts.answered_cache, facts.answered_by_devices())),
    );
    let expected = facts.expected_share.map(|share| 100.0 * share);
    line(&mut out, "  expected with the placement just made", &share(expected));
    if let Some(bytes) = &facts.bytes {
        for (name, value) in [
            ("Read from the Write-Back Cache", bytes.cache_read),
            ("Written to the Write-Back Cache", bytes.cache_written),
            ("Written to the Capacity Tier Past the Write-Back Cache", bytes.bypassed),
        ] {
            line(&mut out, name, &Bytes(value).to_string());
        }
        line(&mut out, "Times the Write-Back Cache Became Full", &bytes.times_full.to_string());
    }
    pinned(&mut out, report, "Performance", &report.pinned_performance);
    pinned(&mut out, report, "Capacity", &report.pinned_capacity);
    out.push('\n');
    let moves = &facts.moves;
    let up = format!("{} of {}", moves.up, moves.up_requested);
    let down = format!("{} of {}", moves.down, moves.down_requested);
    line(&mut out, "Extents Moved Up", &up);
    line(&mut out, "Extents Moved Down", &down);
    let took = seconds(moves.seconds);
    let moved = format!("{} in {took} s ({})", Bytes(moves.bytes), moves.stop.name());
    line(&mut out, "Moved", &moved);
    let waits = &facts.waits;
    for (name, extents, ios) in [
        ("Swaps That Wait, as Their Gain May Be Chance", waits.put_off, waits.put_off_ios),
        ("Swaps Left Out, as These Extents Take Turns", waits.turns, waits.turns_ios),
    ] {
        if extents > 0 {
            let size = Bytes(extents.saturating_mul(facts.extent_bytes));
            line(&mut out, name, &format!("{size}, {} of I/Os", share(percent(ios, report.ios))));
        }
    }
    if let Some(percent) = waits.gained_percent.filter(|_| waits.put_off > 0) {
        let gained = format!("{percent} % of what they looked like");
        line(&mut out, "Gained by Sure Swaps of the Last Days", &gained);
    }
    if let Some(kept) = &moves.limits {
        line(&mut out, "Limits of the Optimization", &limits(kept));
    }
    let worth = format!("{:.1} I/Os ({})", facts.worth.break_even(), facts.worth.basis.name());
    line(&mut out, "Least Gain That Is Worth a Move", &worth);
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
    match facts.heat_gap {
        None => {}
        Some(HeatGap::All) => line(&mut out, "Heat", "counted anew: what was kept was damaged"),
        Some(HeatGap::Pages(pages)) => {
            let lost = format!("{pages} pages of 256 extents lost: what was kept was damaged");
            line(&mut out, "Heat", &lost);
        }
    }
    if facts.uncounted_s > 0 {
        let time = crate::events::minutes(facts.uncounted_s);
        let told =
            format!("up to {time} of the window not counted: a program ended without a word");
        line(&mut out, "Heat", &told);
    }
    for suggestion in &report.advice.suggestions {
        line(&mut out, "Advice", suggestion);
    }
    out
}

/// What an optimization was to keep to; what did not limit it is left out.
fn limits(of: &MoveLimits) -> String {
    let plural = if of.movers == 1 { "" } else { "s" };
    let mut out = format!("{} s, {} mover{plural}", seconds(of.seconds), of.movers);
    if let Some(rate) = of.bytes_per_s {
        out.push_str(&format!(", {}/s", Bytes(rate)));
    }
    if let Some(ios) = of.ios_per_s {
        out.push_str(&format!(", {ios} I/Os per second"));
    }
    out.push_str(&format!(", {} priority", of.priority()));
    if let Some(moved) = of.moved_bytes {
        out.push_str(&format!(", {} moved", Bytes(moved)));
    }
    if let Some(promoted) = of.promoted_bytes {
        out.push_str(&format!(", {} written to the Performance tier", Bytes(promoted)));
    }
    if of.reserve_bytes > 0 {
        out.push_str(&format!(", {} to be kept free", Bytes(of.reserve_bytes)));
    }
    out
}

/// The what-if curve, with the standard error of each share.
fn curve(points: &[(WhatIfPoint, WhatIfPoint)]) -> String {
    let mut out = String::from("Size of a Cache  Would Serve by Extents  by Blocks of 4 KiB\n");
    let share = |point: &WhatIfPoint| {
        format!("{:.1} % (\u{b1} {:.1})", 100.0 * point.share, 100.0 * point.error)
    };
    for (extents, blocks) in points {
        let size = Bytes(extents.bytes).to_string();
        out.push_str(&format!("{size:>15}  {:>22}  {:>18}\n", share(extents), share(blocks)));
    }
    out.push('\n');
    out
}

/// Seconds, with three digits where they are few.
fn seconds(value: f64) -> String {
    let digits = match value {
        _ if value == 0.0 || value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
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

/// Days and time of a clock that starts at 0; from a year on it is that of the world, from 1970.
fn clock(seconds: f64) -> String {
    let minutes = plumb_units::convert::floor_u64(seconds / 60.0);
    let (days, rest) = (minutes / 1440, minutes % 1440);
    if days > 365 {
        let (year, month, day) = civil(days);
        return format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 60, rest % 60);
    }
    format!("day {} {:02}:{:02}", days + 1, rest / 60, rest % 60)
}

/// Year, month and day so many days after 1970-01-01: years begin in March here, so that leap days come last.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_the_world_are_told_as_dates() {
        let found = [90_060.0, 951_782_400.0, 1_795_309_260.0, 4_107_542_399.0].map(clock);
        let wanted =
            ["day 2 01:01", "2000-02-29 00:00 UTC", "2026-11-22 01:01 UTC", "2100-02-28 23:59 UTC"];
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_took_a_part_of_a_second_did_not_take_none() {
        let told = [0.0, 0.38, 4.4, 9.996, 13.0, 99.96, 13_500.4].map(seconds);
        assert_eq!(told, ["0", "0.38", "4.40", "10.0", "13.0", "100", "13500"]);
    }
}
