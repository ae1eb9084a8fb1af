//! Lines of their own: for logs, and for programs.

use std::time::Duration;

use plumb_load::session::{Phase, Snapshot};
use plumb_units::Nanos;
use plumb_units::convert::floor_u64;
use serde_json::json;

use super::{fraction, has_rates, key, mib_per_s, title};

/// `time span 2/3: measuring 20 s of 60 s: 48211 IOPS, 376.6 MiB/s, 331 µs mean`
pub(super) fn plain(snapshot: &Snapshot) -> String {
    let (time_span, time_spans) = snapshot.time_span;
    let seconds = |time: Nanos| Duration::from(time).as_secs();
    let mut line = format!("time span {time_span}/{time_spans}: {}", title(snapshot.phase));
    match (snapshot.phase, seconds(snapshot.total)) {
        (Phase::Creating { .. } | Phase::Verifying { .. }, _) => {
            let percent = fraction(snapshot).map(|fraction| floor_u64(fraction * 100.0));
            line.push_str(&percent.map_or(String::new(), |percent| format!(" {percent}%")));
        }
        (_, 0) => {}
        (_, total) => line.push_str(&format!(" {} s of {total} s", seconds(snapshot.elapsed))),
    }
    if has_rates(snapshot) && seconds(snapshot.elapsed) > 0 {
        let (iops, mib) = (number(snapshot.iops), mib_per_s(snapshot));
        line.push_str(&format!(": {iops} IOPS, {mib:.1} MiB/s"));
        if let Some(mean) = snapshot.latency {
            line.push_str(&format!(", {} mean", latency(mean)));
        }
    }
    if snapshot.errors > 0 {
        line.push_str(&format!(", {} failed", snapshot.errors));
    }
    line
}

/// One object, units in the names; what is not known is null.
pub(super) fn json(snapshot: &Snapshot) -> String {
    let known = |value: f64| has_rates(snapshot).then_some(value);
    json!({
        "time_span": snapshot.time_span.0,
        "time_spans": snapshot.time_span.1,
        "phase": key(snapshot.phase),
        "phase_elapsed_s": snapshot.elapsed.as_secs_f64(),
        "phase_total_s": snapshot.total.as_secs_f64(),
        "phase_fraction": fraction(snapshot),
        "left_s": snapshot.left.as_secs_f64(),
        "iops": known(snapshot.iops),
        "mib_per_s": known(mib_per_s(snapshot)),
        "latency_mean_us": snapshot.latency.map(Nanos::as_micros_f64),
        "errors": snapshot.errors,
    })
    .to_string()
}

/// A rate without decimals where they say nothing.
pub(super) fn number(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Three digits and a unit: `331 µs`, `1.25 ms`.
pub(super) fn latency(mean: Nanos) -> String {
    let micros = mean.as_micros_f64();
    match micros {
        ..1000.0 => format!("{micros:.0} µs"),
        ..10_000.0 => format!("{:.2} ms", micros / 1e3),
        ..1e6 => format!("{:.0} ms", micros / 1e3),
        _ => format!("{:.1} s", micros / 1e6),
    }
}

/// `0:07`, `12:34`, `1:02:03`; a begun second counts.
pub(super) fn clock(time: Nanos) -> String {
    let seconds = time.0.div_ceil(1_000_000_000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}
