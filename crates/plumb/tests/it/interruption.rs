//! Ctrl-C and SIGTERM, in every phase of a run (spec 6.14).

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use plumb_load::convert::{read_text, read_xml};
use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Ended, Place, count, noise};

const TOLD: &str = "\n*** Interrupted by Ctrl-C. Stopping I/O Request Generator. ***\n";

/// A place with a file to read.
fn place() -> Place {
    let place = Place::new();
    place.write("f.dat", noise(4 << 20));
    place
}

/// Interrupts a run in a phase; it must end soon, and well.
#[track_caller]
fn interrupt(place: &Place, line: &str, phase: &str, signal: Signal) -> Ended {
    let run = place.start(line).phase(phase);
    let since = Instant::now();
    run.signal(signal);
    let ended = run.end().with(0);
    assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
    for word in ["error: ", "Error"] {
        assert!(!ended.stderr.contains(word), "{}", ended.stderr);
    }
    ended
}

#[test]
fn in_the_warm_up_there_is_nothing_to_show() {
    let text = interrupt(&place(), "-b4K -W30 -d30 -L f.dat", "warmup", Signal::INT).stdout;
    assert!(text.starts_with(TOLD), "{text}");
    assert!(text.contains(
        "\nThe test was interrupted before the measurements began. No results are displayed.\n"
    ));
    let result = read_text(&text).expect("a report");
    assert!(result.time_spans[0].is_interrupted());
}

#[test]
fn in_the_measurement_what_was_measured_is_shown() {
    for signal in [Signal::INT, Signal::TERM] {
        let ended = interrupt(&place(), "-b4K -W0 -d30 -L f.dat", "measuring", signal);
        assert!(ended.stdout.starts_with(TOLD), "{}", ended.stdout);
        assert!(!ended.stderr.contains("Interrupted"), "{}", ended.stderr);
        let result = read_text(&ended.stdout).expect("a report");
        let [span] = &result.time_spans[..] else { panic!("one time span") };
        assert!((0.1..8.0).contains(&span.seconds), "{} s", span.seconds);
        let (bytes, ios) = span.reads();
        assert!(ios > 0 && bytes == ios * 4096);
        assert!(ended.stdout.contains("[!!] The run was interrupted"), "{}", ended.stdout);
    }
}

#[test]
fn a_terminal_that_goes_away_ends_the_run_as_ctrl_c_does() {
    let ended = interrupt(&place(), "-b4K -W0 -d30 -L f.dat", "measuring", Signal::HUP);
    let result = read_text(&ended.stdout).expect("a report");
    assert!(result.time_spans[0].reads().1 > 0);
}

#[test]
fn a_creation_that_was_killed_can_be_made_anew() {
    let place = Place::new();
    let run = place.start("-c1G -w50 -d0 -W0 big.dat").phase("creating");
    run.signal(Signal::KILL);
    let status = run.end().status;
    assert_eq!(status.signal(), Some(9), "{status}");
    assert!(place.path("big.dat").exists(), "nobody was left to remove it");
    place.run("-c4M -w50 -d0 -W0 big.dat").succeeds_quietly();
    assert_eq!(std::fs::metadata(place.path("big.dat")).expect("the file").len(), 4 << 20);
}

#[test]
fn the_filling_of_a_write_source_can_be_interrupted() {
    let place = place();
    let run = place.start("-Z3G -w100 -d30 -W0 --destroy f.dat f.dat");
    std::thread::sleep(Duration::from_millis(300));
    let since = Instant::now();
    run.signal(Signal::INT);
    run.end().with(0);
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
}

#[test]
fn in_the_cool_down_the_whole_measurement_is_shown() {
    let ended = interrupt(&place(), "-b4K -W0 -d1 -C30 f.dat", "cooldown", Signal::INT);
    let result = read_text(&ended.stdout).expect("a report");
    assert!((0.99..8.0).contains(&result.time_spans[0].seconds));
}

#[test]
fn documents_stay_alone_on_standard_output() {
    let place = place();
    let ended = interrupt(&place, "-Rxml -b4K -W0 -d30 -L f.dat", "measuring", Signal::INT);
    assert!(ended.stdout.starts_with("<Results>\n") && ended.stdout.ends_with("\n</Results>"));
    assert!(ended.stderr.contains(TOLD), "{}", ended.stderr);
    let result = read_xml(&ended.stdout).expect("a result");
    assert!(result.time_spans[0].reads().1 > 0);

    let line = "--output xml=r.xml --json -b4K -W0 -d30 f.dat";
    let ended = interrupt(&place, line, "measuring", Signal::TERM);
    assert!(ended.stderr.contains(TOLD), "{}", ended.stderr);
    let result = ended.json();
    assert_eq!(result["interrupted"], true);
    assert!(count(&result, "/total/io_count") > 0);
    let xml = String::from_utf8(place.read("r.xml")).expect("text");
    assert!(xml.ends_with("\n</Results>"), "{xml}");
    assert_eq!(place.names(), ["f.dat", "r.xml"]);

    let ended = interrupt(&place, "-Rxml -b4K -W30 -d30 f.dat", "warmup", Signal::INT);
    let result = read_xml(&ended.stdout).expect("a result");
    assert!(result.time_spans[0].is_interrupted());
}

#[test]
fn a_half_made_file_does_not_stay() {
    let place = Place::new();
    let ended = interrupt(&place, "-c2G -b4K -W0 -d30 big.dat", "creating", Signal::INT);
    assert!(ended.stdout.starts_with(TOLD), "{}", ended.stdout);
    let result = read_text(&ended.stdout).expect("a report");
    assert!(result.time_spans[0].is_interrupted());
    assert_eq!(place.names(), [""; 0]);

    let line = "--json -c2G -b4K -W0 -d30 --output text=r.txt big.dat";
    let ended = interrupt(&place, line, "creating", Signal::TERM);
    assert!(ended.stderr.contains(TOLD), "{}", ended.stderr);
    assert_eq!(ended.json()["interrupted"], true);
    assert_eq!(place.names(), ["r.txt"]);
}

#[test]
fn later_time_spans_make_and_touch_nothing() {
    let place = place();
    place.write(
        "two.xml",
        "<Profile><TimeSpans>
           <TimeSpan><Duration>30</Duration><Warmup>0</Warmup><Targets>
             <Target><Path>f.dat</Path><BlockSize>4096</BlockSize></Target>
           </Targets></TimeSpan>
           <TimeSpan><Duration>30</Duration><Warmup>0</Warmup><Targets>
             <Target><Path>later.dat</Path><FileSize>1048576</FileSize></Target>
           </Targets></TimeSpan>
         </TimeSpans></Profile>",
    );
    let ended = interrupt(&place, "--json -Xtwo.xml", "measuring", Signal::INT);
    assert_eq!(place.names(), ["f.dat", "two.xml"]);
    let result = ended.json();
    assert_eq!(result["time_spans"].as_array().map(Vec::len), Some(2));
    assert!(count(&result, "/time_spans/0/total/io_count") > 0);
    assert_eq!(count(&result, "/time_spans/1/elapsed_ns"), 0);
    assert_eq!(result["interrupted"], true);
}

#[test]
fn a_run_that_waits_for_its_start_can_be_ended() {
    let place = place();
    let line = format!("-v -yrplumb-test-never-{} -b4K -W0 -d30 f.dat", std::process::id());
    let run = place.start(&format!("-Rxml {line}")).until("waiting for a signal to start");
    let ended = run.interrupt().with(0);
    assert!(read_xml(&ended.stdout).expect("a result").time_spans[0].is_interrupted());
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    // With more of a result than a pipe holds, and nobody who reads it.
    let place = place();
    let mut command = place.command("-Rxml -D1 -L -b4K -W0 -d30 --progress-style=json f.dat");
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut until = |word: &str| {
        let found = lines.any(|line| line.expect("text").contains(word));
        assert!(found, "{word}");
    };
    let signal = |child| kill_process(Pid::from_child(child), Signal::INT).expect("it runs");
    until("\"phase\":\"measuring\"");
    signal(&child);
    until("Interrupted by Ctrl-C");
    signal(&child);
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status}");
}
