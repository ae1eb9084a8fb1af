//! What is said while a run lasts, what is shown beside its result, and events between processes.

use plumb_load::convert::{read_text, read_xml};

use serde_json::Value;

use crate::place::{Place, can, count, noise};
use crate::program::Outcome;

fn place() -> Place {
    let place = Place::new();
    place.write("f.dat", noise(4 << 20));
    place
}

#[test]
fn verbose_lines_tell_the_steps_in_order() {
    let place = place();
    let line = "-v -c1M -b4K -r -o2 -t2 -d1 -W1 -C1 -g100i new.dat";
    let text = place.run(line).succeeds_quietly().stdout;
    let (said, report) = text.split_at(text.find("\nCommand Line: ").expect("a report"));
    let mut lines = said.lines();
    for want in [
        "Generating requests for timespan 1.",
        "Creating file 'new.dat' of size 1048576.",
        "creating thread 0",
        "thread 0 is relative thread 0 for new.dat",
        "thread 0: file 'new.dat' relative thread 0 (random seed: 0)",
        "thread 0: 100% random IO",
        "thread 0: waiting for a signal to start",
        "creating thread 1",
        "thread 1: received signal to start",
        "starting warm up for 1s...",
        "starting measurements for 1s...",
        "stopped measurements, total measured time 1.",
        "starting cool down for 1s...",
        "finished test...",
    ] {
        let line = lines.find(|line| {
            let (time, rest) = line.split_at(line.len().min(21));
            let time = time.replace(|c: char| c.is_ascii_digit(), "9");
            time == "9999-99-99T99:99:99: " && rest.starts_with(want)
        });
        assert!(line.is_some(), "{want}, in its place: {said}");
    }
    assert!(said.contains("get system perf info: queried for Group 0 ("), "{said}");
    assert!(report.contains("\tusing verbose mode\n"), "{report}");
    assert_eq!(read_text(&text).expect("a report").time_spans.len(), 1);
}

#[test]
fn a_dot_stands_for_so_many_completions() {
    let place = place();
    let line = "-P50 -b4K -r -o4 -t2 -g1000i -d1 -W0 f.dat";
    let text = place.run(line).succeeds_quietly().stdout;
    let (dots, _) = text.split_once('\n').expect("dots, then the report");
    assert!(dots.chars().all(|c| c == '.'), "{dots}");
    let report = read_text(&text).expect("a report");
    // Each thread counts for itself, with what comes in after the measurement.
    let threads = report.time_spans[0].threads.iter();
    let due: u64 = threads.map(|thread| thread.targets[0].read.ios / 50).sum();
    let shown = dots.len() as u64;
    assert!(due > 10 && (due..=due + 20).contains(&shown), "{shown} dots for {due}");
    // Without a number every 65536th.
    let text = place.run("-P -b4K -r -g100i -d1 -W0 f.dat").succeeds_quietly().stdout;
    assert!(text.starts_with("\nCommand Line: "), "{text}");
}

#[test]
fn wait_statistics_are_shown_when_asked_for() {
    let place = place();
    let text = place.run("-vs -b4K -r -o4 -t2 -g500i -L -d1 -W0 f.dat").succeeds_quietly().stdout;
    assert!(!text.contains("using verbose mode") && !text.contains("finished test"), "{text}");
    let (_, table) = text.split_once("\nWait Statistics\n").expect("the table");
    let rows: Vec<&str> = table.lines().skip(2).take(2).collect();
    for (thread, row) in rows.iter().enumerate() {
        let cells: Vec<&str> = row.split('|').collect();
        assert_eq!(cells[0].trim(), thread.to_string(), "{table}");
        assert_eq!(cells.len(), 5, "{row}");
        assert_eq!(cells[4].split_whitespace().count(), 8, "{row}");
        let numbers = row.replace(['|', '-'], " ");
        let sum: u64 =
            numbers.split_whitespace().skip(1).filter_map(|n| n.parse::<u64>().ok()).sum();
        assert!(sum > 0, "a thread under a limit waits: {row}");
    }
    let report = read_text(&text).expect("a report");
    assert!(report.time_spans[0].threads.iter().all(|thread| thread.waits.is_some()));
}

#[test]
fn intervals_hold_every_io_once() {
    let place = place();
    Place::each(&[(10, 95), (100, 10), (250, 4)], |&(milliseconds, least)| {
        let line = format!("-D{milliseconds} -b4K -r -o4 -t2 -g500i -d1 -W0 f.dat");
        let result = place.json(&line);
        let series = result["time_spans"][0]["intervals"]["series"].as_array().expect("a series");
        assert!((least..=least + 12).contains(&series.len()), "{} intervals", series.len());
        let counted: u64 = series.iter().map(|one| count(one, "/total/io_count")).sum();
        // What comes in behind the last interval is in none (spec 9): 1000 a second.
        let late = (count(&result, "/elapsed_ns") - 1_000_000_000) / 1_000_000 + 16;
        let ios = count(&result, "/total/io_count");
        assert!((ios - late..=ios).contains(&counted), "-D{milliseconds}: {counted} of {ios}");

        let xml = place.run(&format!("-Rxml {line}")).succeeds_quietly().stdout;
        let result = read_xml(&xml).expect("a result");
        let span = &result.time_spans[0];
        let per_second = 1000.0 / f64::from(milliseconds);
        let counted: f64 = span.intervals.iter().map(|one| one.total_iops / per_second).sum();
        let ios = span.reads().1 as f64;
        let late = (span.seconds - 1.0).max(0.0) * 1000.0 + 16.0;
        let rounding = 0.02 * ios + 1.0;
        assert!(
            (ios - late - rounding..=ios + rounding).contains(&counted),
            "{counted} of {ios} in {} s",
            span.seconds
        );
        assert!(span.figures.total.iops_std_dev.is_some());
    });
}

#[test]
fn latencies_of_short_intervals_are_in_their_intervals_or_known_to_be_elsewhere() {
    let place = place();
    let result = place.json("-D2 -L -b4K -r -o4 -g2000i -d1 -W0 f.dat");
    let series = result["time_spans"][0]["intervals"]["series"].as_array().expect("a series");
    let mut apart = 0;
    for one in series {
        let latencies = one.pointer("/total/latency_ns/count").and_then(Value::as_u64).unwrap_or(0);
        apart += latencies.abs_diff(count(one, "/total/io_count"));
    }
    let items = result["time_spans"][0]["plausibility"].as_array().expect("a list");
    let said = items.iter().find(|item| item["key"] == "stray_interval_latencies");
    let strays = said.map_or(0.0, |item| item["value"].as_f64().expect("a count"));
    // A stray is missing in one interval and too many in another.
    assert!(apart as f64 <= 2.0 * strays, "{apart} are apart, {strays} were told: {said:?}");
}

#[test]
fn time_of_kernel_workers_is_in_the_result_where_they_work() {
    let place = Place::new();
    if !can("time_of_kernel_workers_is_in_the_result_where_they_work", "--engine=uring") {
        return;
    }
    // Buffered writes that are to be durable cannot start without blocking: workers do them.
    let result = place.json("--engine=uring -Sbw -c4M -b4K -r -w100 -o8 -d1 -W0 new.dat");
    let items = result["time_spans"][0]["plausibility"].as_array().expect("a list");
    let item = items.iter().find(|item| item["key"] == "io_wq_cpu_share").expect("always there");
    let share = item["value"].as_f64().expect("a share");
    let (workers, all) = (count(&result, "/cpu/io_wq_ns"), count(&result, "/cpu/process_ns"));
    assert!(share > 0.0 && workers > 0, "{share}, {workers} of {all} ns");
    assert!((workers as f64 / all as f64 - share).abs() < 0.01, "{share}, {workers} of {all} ns");
}

/// Runs a line in a mount namespace of its own, where tracefs is mounted; `None` without root.
fn traced(place: &Place, line: &str) -> Option<Outcome> {
    let program = crate::program::path().display();
    let script = format!(
        "[ -d /sys/kernel/tracing/events/block ] || mount -t tracefs nodev /sys/kernel/tracing || exit 99; \
         exec {program} run --progress-style=none {line}"
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).current_dir(place.folder());
    let outcome = crate::program::outcome(&mut command);
    (outcome.status != 99 && !outcome.stderr.starts_with("unshare: ")).then_some(outcome)
}

#[test]
fn latencies_are_held_against_the_devices() {
    let test = "latencies_are_held_against_the_devices";
    let place = Place::new();
    let line = "--json --truth -c8M -b4K -r -Su -o8 -d1 -W0 new.dat";
    if !can(test, "-Su") {
        return;
    }
    let Some(outcome) = traced(&place, line) else {
        println!("skipped {test}: mounting tracefs needs root");
        return;
    };
    if outcome.stderr.contains("the file system of") || outcome.stderr.contains("block devices;") {
        println!("skipped {test}: {}", outcome.stderr.trim());
        return;
    }
    let result = crate::place::document(&outcome.ends_with(0).stdout);
    let truth = &result["time_spans"][0]["truth"];
    let count = |name: &str| truth[name].as_u64().expect("a count");
    assert!(
        count("kept") > 100 && count("kept") <= super::place::count(&result, "/total/io_count")
    );
    if count("lost_events") == 0 {
        assert!(count("matched") * 100 >= count("kept") * 95, "{truth:#}");
    }
    // The parts make up the whole: the device's share cannot be longer than what is reported.
    let p50 = |name: &str| truth[name]["p50"].as_f64().expect("a latency");
    assert!(p50("device_ns") > 0.0 && p50("device_ns") <= p50("reported_ns"), "{truth:#}");
    let parts: f64 = ["front_ns", "device_ns", "reap_lag_ns"]
        .iter()
        .map(|part| truth[*part]["mean"].as_f64().expect("a mean"))
        .sum();
    let whole = truth["reported_ns"]["mean"].as_f64().expect("a mean");
    assert!((parts / whole - 1.0).abs() < 0.01, "{parts} of {whole}");
    assert!(truth["within_bound_share"].as_f64().expect("a share") > 0.5, "{truth:#}");

    // One at a time: each I/O is a sleep, and as late as a wake-up makes it. What waits for a processor here, with other
    // tests beside it, is later.
    let line = "--json --truth -c8M -b4K -r -Su -o1 -d1 -W0 new.dat";
    let outcome = traced(&place, line).expect("it was traced before");
    let result = crate::place::document(&outcome.ends_with(0).stdout);
    let share = &result["time_spans"][0]["truth"]["within_bound_share"];
    assert!(share.as_f64().is_some_and(|share| share > 0.5), "{share}");
}

#[test]
fn without_tracepoints_truth_says_what_is_missing() {
    let place = place();
    let line = "--truth -b4K -r -o8 -d1 -W0";
    let outcome = place.run(&format!("{line} -D f.dat")).ends_with(3);
    assert!(
        outcome.stderr.contains("--truth does not go with intervals (-D)"),
        "{}",
        outcome.stderr
    );
    let outcome = place.run(&format!("{line} --engine=null f.dat")).ends_with(1);
    assert!(outcome.stderr.contains("opens no target"), "{}", outcome.stderr);
    let memory = tempfile::tempdir_in("/dev/shm");
    let memory = memory.expect("/dev/shm is there");
    std::fs::write(memory.path().join("f.dat"), noise(1 << 20)).expect("a file");
    let path = memory.path().join("f.dat");
    let outcome = place.run(&format!("{line} {}", path.display())).ends_with(1);
    assert!(outcome.stderr.contains("0 block devices") && outcome.stderr.contains("\nhelp: "));
}

/// The run that waits, and what comes of it while another process signals.
#[test]
fn processes_agree_by_events() {
    let place = place();
    let id = std::process::id();
    let name = |what: &str| format!("plumb-test-{what}-{id}");
    let [go, started, finished, stop] = ["go", "started", "finished", "stop"].map(name);
    let first = place
        .start(&format!(
            "--json -v -yr{go} -ys{started} -yf{finished} -yp{stop} -b4K -g100i -W0 -d60 f.dat"
        ))
        .until("waiting for a signal to start");
    // Another run waits for the first one's measurement.
    let second = place
        .start(&format!("--json -v -yr{started} -b4K -g100i -W0 -d1 f.dat"))
        .until("waiting for a signal to start");
    let signal = |event: &str| {
        let Outcome { stdout, .. } = place.run(&format!("-ye{event}")).ends_with(1);
        assert_eq!(stdout, format!("Succesfully set event: '{event}'\nNow exiting...\n"));
    };
    // Its measurement may not start before it is told.
    signal(&go);
    let first = first.phase("measuring");
    let second = second.end().with(0).json();
    assert!(count(&second, "/total/io_count") > 0);
    assert_eq!(second["interrupted"], false);

    // A third one starts when the first has finished, which is when it is told to stop.
    let third = place
        .start(&format!("--json -v -yr{finished} -b4K -g100i -W0 -d1 f.dat"))
        .until("waiting for a signal to start");
    signal(&stop);
    let first = first.end().with(0).json();
    assert!(count(&first, "/total/io_count") > 0);
    assert_eq!(first["interrupted"], true);
    assert!(count(&first, "/elapsed_ns") < 60_000_000_000);
    third.end().with(0);

    let outcome = place.run(&format!("-ye{stop}")).ends_with(1);
    assert!(outcome.stderr.contains(&stop), "gone with its last user: {}", outcome.stderr);
}

#[test]
fn progress_is_told_as_asked_and_never_on_standard_output() {
    let place = place();
    let styles = [("json", "{\""), ("plain", "time span 1/1: "), ("auto", "time span 1/1: ")];
    Place::each(&styles, |(style, first)| {
        let command = format!("run --progress-style={style} --json -b4K -g100i -d1 -W0 f.dat");
        let mut command = place.program(crate::program::path(), &command);
        let outcome = crate::program::outcome(&mut command).ends_with(0);
        assert!(outcome.stderr.starts_with(first), "{style}: {}", outcome.stderr);
        crate::place::document(&outcome.stdout);
    });
}
