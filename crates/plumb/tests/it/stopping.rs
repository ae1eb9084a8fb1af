//! Ctrl-C while a study is under way, in the middle of a run and between two of them (method, 4.3): it ends soon, keeps what was
//! measured, says how to go on, and goes on without repeating a run.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};

use crate::baselines::is_one_that_was_not_interrupted;
use crate::program::Outcome;
use crate::sweeps::Bench;

/// Who is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// The program and the run that it started, as by a terminal.
    All,
    /// The program alone, as by whoever knows its number.
    Program,
}

/// A study that was told to end.
struct Stopped {
    /// Its journal when it had ended.
    journal: String,
    /// How long it took.
    after: Duration,
    /// What it said.
    outcome: Outcome,
}

/// Starts a study named `s`, and tells it to end so long after its run `runs` was written down.
#[track_caller]
fn stop(
    bench: &Bench,
    line: &str,
    runs: usize,
    pause: Duration,
    told: Told,
    by: Signal,
) -> Stopped {
    let said = bench.path("said.txt");
    let mut command = bench.command(&format!("{line} --id s"));
    let stderr = fs::File::create(&said).expect("a file");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).process_group(0);
    let mut child = command.spawn().expect("the program can be started");
    let journal = bench.study("s").join("journal.ndjson");
    let text = || fs::read_to_string(&journal).unwrap_or_default();
    let began = Instant::now();
    while text().lines().count() < runs {
        let is_over = child.try_wait().expect("a child of ours").is_some();
        let is_late = began.elapsed() > Duration::from_secs(240);
        assert!(!is_over && !is_late, "{}", fs::read_to_string(&said).expect("text"));
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(pause);
    let told_at = Instant::now();
    let pid = Pid::from_child(&child);
    match told {
        Told::All => kill_process_group(pid, by),
        Told::Program => kill_process(pid, by),
    }
    .expect("it still runs");
    let status = child.wait().expect("it ends").code().expect("it ends by itself");
    let stderr = fs::read_to_string(&said).expect("text");
    let outcome = Outcome { status, stdout: String::new(), stderr };
    Stopped { journal: text(), after: told_at.elapsed(), outcome }
}

/// What a study that was told to end has left, and what comes of it when it goes on.
#[track_caller]
fn goes_on(bench: &Bench, kind: &str, runs: usize, stopped: Stopped) {
    let Stopped { journal: before, after, outcome: told } = stopped;
    let told = told.ends_with(5);
    assert!(after < Duration::from_secs(20), "{after:?}");
    let says = format!("stopped; what was measured is kept, and plumb {kind} --resume s goes on");
    assert!(told.stderr.contains(&says), "{}", told.stderr);
    // The run that was ended is none: neither measured nor failed.
    assert_eq!(before.lines().count(), runs, "{before}");
    let partial = bench.findings("s");
    assert_eq!((&partial["state"], &partial["runs"]), (&json!("partial"), &json!(runs)));
    assert!(bench.study("s").join("report.html").exists());
    bench.call(&format!("{kind} --resume s")).ends_with(0);
    let journal = fs::read_to_string(bench.study("s").join("journal.ndjson")).expect("a journal");
    assert!(journal.starts_with(&before), "what was measured is as it was");
    let all = bench.journal("s");
    let keys: BTreeSet<String> = all.iter().map(|run| run["key"].to_string()).collect();
    assert_eq!(keys.len(), all.len(), "a run was repeated");
    assert!(all.iter().all(|run| run["outcome"] == "measured"), "{journal}");
    let whole = bench.findings("s");
    assert_eq!((&whole["state"], &whole["runs"]), (&json!("complete"), &json!(all.len())));
}

/// The settings that were run, in order.
fn settings(bench: &Bench) -> Vec<Value> {
    bench.journal("s").iter().map(|run| run["setting"]["outstanding"].clone()).collect()
}

const SWEEP: &str = "sweep f.dat --set size=4M --set w=100 --vary o=1,2,4 --repetitions 1 \
                     --order sorted --warmup 0 --full-length";

#[test]
fn a_sweep_that_is_stopped_in_the_middle_of_a_run_goes_on() {
    for (told, by) in
        [(Told::All, Signal::INT), (Told::Program, Signal::INT), (Told::All, Signal::TERM)]
    {
        let bench = Bench::with("");
        let pause = Duration::from_millis(1500);
        let stopped = stop(&bench, &format!("{SWEEP} --duration 6"), 1, pause, told, by);
        goes_on(&bench, "sweep", 1, stopped);
        assert_eq!(settings(&bench), [1, 2, 4], "{told:?}");
    }
}

#[test]
fn a_sweep_that_is_stopped_between_two_runs_begins_none() {
    for told in [Told::All, Told::Program] {
        let bench = Bench::with("");
        let line = format!("{SWEEP} --duration 1 --gap 40");
        // The next run would begin after forty seconds, and it would write.
        let pause = Duration::from_millis(500);
        let stopped = stop(&bench, &line, 1, pause, told, Signal::INT);
        let written = fs::metadata(bench.path("f.dat")).and_then(|file| file.modified());
        let kept = fs::metadata(bench.study("s").join("journal.ndjson"));
        let kept = kept.and_then(|file| file.modified()).expect("a journal");
        assert!(written.expect("a file") <= kept, "{told:?}: a run was begun");
        assert_eq!(stopped.journal.lines().count(), 1);
        let told = stopped.outcome.ends_with(5);
        assert!(told.stderr.contains("plumb sweep --resume s goes on"), "{}", told.stderr);
        assert!(stopped.after < Duration::from_secs(20), "{:?}", stopped.after);
    }
}

#[test]
fn a_baseline_that_is_stopped_goes_on_as_if_it_had_not_been() {
    let bench = Bench::with("");
    let line = "baseline f.dat --size 4M --quick --oltp --skip preflight --skip random-2 --skip confirm \
                --warmup 0 --duration 1 --full-length";
    let stopped = stop(&bench, line, 11, Duration::from_millis(400), Told::All, Signal::INT);
    let runs = stopped.journal.lines().count();
    // The pause may be longer than what was left of a run.
    assert!((11..=12).contains(&runs), "{runs}");
    goes_on(&bench, "baseline", runs, stopped);
    is_one_that_was_not_interrupted(&bench, "s");
}

/// The processes that a process started.
fn children(of: u32) -> Vec<i32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

#[test]
fn a_run_that_somebody_else_ended_is_not_taken_for_a_measurement() {
    let bench = Bench::with("");
    let mut child = bench.start(&format!("{SWEEP} --duration 4 --id s"));
    let began = Instant::now();
    let run = loop {
        assert!(began.elapsed() < Duration::from_secs(60), "no run began");
        std::thread::sleep(Duration::from_millis(20));
        if let [run] = children(child.id())[..] {
            break Pid::from_raw(run).expect("a process");
        }
    };
    // Once it measures.
    std::thread::sleep(Duration::from_millis(2000));
    kill_process(run, Signal::INT).expect("it still runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
    let outcomes: Vec<String> =
        bench.journal("s").iter().map(|run| run["outcome"].to_string()).collect();
    assert!(outcomes[0].contains("somebody else ended it"), "{outcomes:?}");
    assert_eq!(outcomes[1..], ["\"measured\"", "\"measured\""]);
    bench.call("sweep --resume s").ends_with(0);
    assert_eq!(bench.findings("s")["runs"], 3);
}
