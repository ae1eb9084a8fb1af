//! One line as wide as the terminal.

use plumb_load::session::Snapshot;
use plumb_units::Nanos;
use plumb_units::convert::{floor_u64, to_usize};

use super::line::{clock, latency, number};
use super::{fraction, has_rates, mib_per_s, title};

/// Narrowest and widest bar, in columns between its ends.
const BAR: (usize, usize) = (10, 40);

/// The snapshot in at most `width - 1` columns: the last one stays free, or some terminals wrap.
///
/// When it is too narrow, what matters least goes first: latency, MiB/s, IOPS, the time left, the bar.
pub(super) fn bar(snapshot: &Snapshot, width: usize) -> String {
    let room = width.saturating_sub(1);
    let head = head(snapshot);
    let mut figures = figures(snapshot);
    let mut tail = figures.join("  ");
    while !figures.is_empty() && columns(&head) + columns(&tail) + 4 + BAR.0 > room {
        figures.pop();
        tail = figures.join("  ");
    }
    let mut line = head;
    let free = room.saturating_sub(columns(&line) + columns(&tail) + 4);
    if let Some(fraction) = fraction(snapshot).filter(|_| free >= BAR.0) {
        line.push(' ');
        line.push_str(&scale(fraction, free.min(BAR.1)));
    }
    if !tail.is_empty() {
        line.push(' ');
        line.push_str(&tail);
    }
    line.chars().take(room).collect()
}

/// `measuring 2/3  47%`
fn head(snapshot: &Snapshot) -> String {
    let mut head = title(snapshot.phase).to_owned();
    let (time_span, time_spans) = snapshot.time_span;
    if time_spans > 1 {
        head.push_str(&format!(" {time_span}/{time_spans}"));
    }
    if let Some(fraction) = fraction(snapshot) {
        head.push_str(&format!(" {:>3}%", floor_u64(fraction * 100.0)));
    }
    head
}

/// The most important first.
fn figures(snapshot: &Snapshot) -> Vec<String> {
    let mut figures = Vec::new();
    if snapshot.errors > 0 {
        figures.push(format!("{} failed", snapshot.errors));
    }
    if snapshot.left > Nanos::ZERO {
        figures.push(format!("{} left", clock(snapshot.left)));
    }
    if has_rates(snapshot) {
        figures.push(format!("{} IOPS", number(snapshot.iops)));
        figures.push(format!("{:.1} MiB/s", mib_per_s(snapshot)));
        figures.extend(snapshot.latency.map(latency));
    }
    figures
}

/// `[####......]`, `inside` columns between the brackets.
fn scale(fraction: f64, inside: usize) -> String {
    let inside_f64 = f64::from(u32::try_from(inside).unwrap_or(u32::MAX));
    let done = to_usize(floor_u64(fraction * inside_f64)).min(inside);
    format!("[{}{}]", "#".repeat(done), ".".repeat(inside - done))
}

fn columns(text: &str) -> usize {
    text.chars().count()
}
