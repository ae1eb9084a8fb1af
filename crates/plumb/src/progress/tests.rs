use plumb_units::Nanos;

use super::*;

fn measuring() -> Snapshot {
    Snapshot {
        time_span: (1, 1),
        phase: Phase::Measuring,
        elapsed: Nanos::from_secs(5),
        total: Nanos::from_secs(20),
        left: Nanos::from_millis(17_200),
        iops: 48_211.4,
        bytes_per_s: 376.65 * 1_048_576.0,
        latency: Some(Nanos(331_000)),
        errors: 0,
    }
}

fn check_bar(snapshot: &Snapshot, width: usize, want: &str) {
    let line = bar(snapshot, width);
    assert_eq!(line, want);
    assert!(line.chars().count() < width.max(1), "{line} is as wide as {width}");
}

#[test]
fn a_bar_drops_what_matters_least_when_it_is_narrow() {
    let snapshot = measuring();
    check_bar(
        &snapshot,
        100,
        "measuring  25% [#########..............................] \
         0:18 left  48211 IOPS  376.6 MiB/s  331 µs",
    );
    check_bar(
        &snapshot,
        70,
        "measuring  25% [####.............] 0:18 left  48211 IOPS  376.6 MiB/s",
    );
    check_bar(&snapshot, 40, "measuring  25% [###.........] 0:18 left");
    check_bar(&snapshot, 20, "measuring  25%");
    check_bar(&snapshot, 5, "meas");
    for width in [0, 1] {
        assert_eq!(bar(&snapshot, width), "");
    }
}

#[test]
fn a_bar_is_no_wider_than_it_is_useful() {
    let line = bar(&measuring(), 300);
    assert_eq!(line.matches(['#', '.']).count() - "376.6".matches('.').count(), 40);
}

#[test]
fn a_bar_tells_the_time_span_and_the_creation_of_files() {
    let creating = Snapshot {
        time_span: (2, 3),
        phase: Phase::Creating { done: 1 << 29, total: 1 << 30 },
        left: Nanos::ZERO,
        ..measuring()
    };
    check_bar(&creating, 50, "creating files 2/3  50% [###########...........]");
    let preparing = Snapshot { phase: Phase::Preparing, total: Nanos::ZERO, ..creating };
    check_bar(&preparing, 50, "preparing 2/3");
}

#[test]
fn failed_ios_come_before_everything_else() {
    let failing = Snapshot { errors: 3, ..measuring() };
    check_bar(&failing, 40, "measuring  25% [###..........] 3 failed");
}

#[test]
fn a_fraction_never_leaves_the_bar() {
    let late = Snapshot { elapsed: Nanos::from_secs(25), left: Nanos::ZERO, ..measuring() };
    check_bar(&late, 30, "measuring 100% [###########]");
}

#[test]
fn times_and_latencies_are_short() {
    for (micros, want) in
        [(7, "7 µs"), (999, "999 µs"), (1250, "1.25 ms"), (12_500, "12 ms"), (3_210_000, "3.2 s")]
    {
        assert_eq!(line::latency(Nanos(micros * 1000)), want);
    }
    for (millis, want) in [(0, "0:00"), (1, "0:01"), (754_000, "12:34"), (3_723_000, "1:02:03")] {
        assert_eq!(line::clock(Nanos::from_millis(millis)), want);
    }
}

#[test]
fn plain_lines_come_with_a_phase_and_then_every_ten_seconds() {
    let mut out = Vec::new();
    let mut progress = Progress::new(Style::Plain, &mut out, || 80);
    for seconds in 0..=21 {
        progress.show(&Snapshot { elapsed: Nanos::from_secs(seconds), ..measuring() });
    }
    progress.show(&Snapshot { phase: Phase::CoolDown, elapsed: Nanos::ZERO, ..measuring() });
    drop(progress);
    assert_eq!(
        String::from_utf8(out).expect("text"),
        "time span 1/1: measuring 0 s of 20 s\n\
         time span 1/1: measuring 10 s of 20 s: 48211 IOPS, 376.6 MiB/s, 331 µs mean\n\
         time span 1/1: measuring 20 s of 20 s: 48211 IOPS, 376.6 MiB/s, 331 µs mean\n\
         time span 1/1: cool-down 0 s of 20 s\n"
    );
}

#[test]
fn json_lines_are_objects_with_units_in_their_names() {
    let mut out = Vec::new();
    let mut progress = Progress::new(Style::Json, &mut out, || 80);
    progress.show(&measuring());
    progress.show(&Snapshot { phase: Phase::Preparing, ..measuring() });
    drop(progress);
    let out = String::from_utf8(out).expect("text");
    let lines: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(lines[0]["phase"], "measuring");
    assert_eq!(lines[0]["iops"], 48_211.4);
    assert_eq!(lines[0]["latency_mean_us"], 331.0);
    assert_eq!(lines[0]["phase_fraction"], 0.25);
    assert_eq!(lines[1]["iops"], serde_json::Value::Null);
}

#[test]
fn a_bar_is_drawn_over_itself_and_taken_away() {
    let mut out = Vec::new();
    let mut progress = Progress::new(Style::Bar, &mut out, || 20);
    progress.show(&measuring());
    progress.show(&measuring());
    progress.clear();
    progress.clear();
    drop(progress);
    let line = "\rmeasuring  25%\x1b[K";
    assert_eq!(String::from_utf8(out).expect("text"), format!("{line}{line}\r\x1b[K"));
}

#[test]
fn silence_is_silent() {
    let mut out = Vec::new();
    let mut progress = Progress::new(Style::Silent, &mut out, || 80);
    progress.show(&measuring());
    progress.clear();
    drop(progress);
    assert!(out.is_empty());
}

#[test]
fn the_automatic_style_fits_where_it_is_shown() {
    let style = |is_terminal, set: &[(&str, &str)]| {
        Style::automatic(is_terminal, |name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    };
    assert_eq!(style(true, &[("TERM", "xterm")]), Style::Bar);
    assert_eq!(style(true, &[("TERM", "dumb")]), Style::Plain);
    assert_eq!(style(true, &[]), Style::Plain);
    assert_eq!(style(true, &[("TERM", "xterm"), ("CI", "true")]), Style::Silent);
    assert_eq!(style(false, &[("TERM", "xterm")]), Style::Silent);
}
