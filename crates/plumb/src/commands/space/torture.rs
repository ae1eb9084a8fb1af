//! `plumb space torture`: the crash checker.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plumb_tier::torture::{
    COMBINATIONS, Combination, TortureOptions, TortureReport, Violation, torture,
};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};

/// How long a failing history is made shorter.
const SHRINKING: Duration = Duration::from_secs(60);
/// How often a run whose output is no terminal says how far it is.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// For clap.
pub(super) fn command() -> Command {
    let seed = Arg::new("seed")
        .long("seed")
        .value_name("S")
        .default_value("1")
        .value_parser(value_parser!(u64))
        .help("Which histories and states: the same seed checks the same ones");
    let history = Arg::new("history")
        .long("history")
        .value_name("S")
        .value_parser(value_parser!(u64))
        .conflicts_with_all(["seed", "states", "minutes", "threads"])
        .help("Check just one history again, by the seed that a violation names, with --beyond if it was found with that");
    let minutes = Arg::new("minutes")
        .long("minutes")
        .value_name("M")
        .value_parser(value_parser!(u64).range(1..=100_000))
        .help("Stop after that long [default: 1, unless --states is given]");
    let states = Arg::new("states")
        .long("states")
        .value_name("N")
        .value_parser(value_parser!(u64).range(1..))
        .help("Stop after about that many crash states");
    let threads = Arg::new("threads")
        .long("threads")
        .value_name("T")
        .value_parser(value_parser!(u32).range(1..=1024))
        .help("How many histories to check at a time [default: one per processor]");
    let beyond = Arg::new("beyond").long("beyond").action(ArgAction::SetTrue).help(
        "One history in eight lets more fail than a space bears: several disks, in any order",
    );
    let json = Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print the result as one JSON object");
    Command::new("torture")
        .about("Cut the power of a simulated space at any write and check that nothing is lost")
        .long_about(
            "Run the storage engine on simulated disks with volatile caches, let disks fail, hang and \
             return, cut the power at any write, tear sectors, lose disks, spoil pages, and check after \
             each that everything acknowledged is there. Nothing on this machine is touched. Ends with \
             status 1 and the shortest history that it can find when a promise was broken. Ctrl-C ends it \
             earlier, with what was checked so far and status 5.",
        )
        .args([seed, history, minutes, states, threads, beyond, json])
        .after_help(
            "For example:\n  plumb space torture --seed 7 --minutes 10\n  \
             plumb space torture --states 100000 --json\n  \
             plumb space torture --history 9353574233103318609 --beyond",
        )
}

/// Does what the options say.
pub(super) fn run(matches: &ArgMatches) -> ExitCode {
    let states = matches.get_one::<u64>("states").copied();
    let minutes = matches.get_one::<u64>("minutes").copied();
    let history = matches.get_one::<u64>("history").copied();
    let minutes = minutes.or_else(|| (states.is_none() && history.is_none()).then_some(1));
    let processors =
        || std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    let options = TortureOptions {
        seed: *matches.get_one("seed").expect("it has a default"),
        history,
        states,
        time: minutes.map(|minutes| Duration::from_secs(60 * minutes)),
        threads: match history {
            Some(_) => 1,
            None => matches.get_one::<u32>("threads").copied().unwrap_or_else(processors),
        },
        shrinking: SHRINKING,
        beyond: matches.get_flag("beyond"),
    };
    // A panic of the engine is a violation that the report names; its message would only repeat it.
    std::panic::set_hook(Box::new(|_| {}));
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    let shown = std::io::stderr().is_terminal();
    let told = Mutex::new(Instant::now());
    let report = torture(&options, &|report| {
        // Whoever keeps a log of a long run wants to see that it goes on.
        let every = if shown { Duration::from_millis(200) } else { LOG_EVERY };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.elapsed() >= every {
            *told = Instant::now();
            if shown {
                eprint!("\r{}\x1b[K", so_far(report));
            } else {
                eprintln!("{}", so_far(report));
            }
        }
        !stop.load(Ordering::Relaxed)
    });
    let _ = std::panic::take_hook();
    if shown {
        eprintln!();
    }
    let status = match (report.violations.is_empty(), report.interrupted) {
        (false, _) => 1,
        (true, true) => 5,
        (true, false) => 0,
    };
    let text = if matches.get_flag("json") { as_json(&report) } else { as_text(&report) };
    super::super::print_and_exit(&text, status)
}

/// One line of a log.
fn so_far(report: &TortureReport) -> String {
    let seconds = report.elapsed.as_secs_f64();
    let share = |part: u64| 100 * part / report.crash_states.max(1);
    format!(
        "{} crash states after {seconds:.0} s, {:.0}/s: background work {} %, overwrites, flushes and a failed \
         disk {} %, cache {} %, moves {} %, in an optimization {} %, rebuild {} %, third crash {} %, older copy of a disk {} %, \
         several disks {} %, missed generation {} %, index pages {} %, rot while it serves {} %; {} violations",
        report.crash_states,
        report.crash_states as f64 / seconds.max(0.001),
        share(report.with_background),
        share(report.demanding),
        share(report.with_cache),
        share(report.with_moves),
        share(report.with_optimization),
        share(report.with_rebuild),
        share(report.with_third_crash),
        share(report.with_older_copy),
        share(report.with_several_failed),
        share(report.with_missed_generation),
        share(report.with_index_pages),
        share(report.with_live_rot),
        report.violations.len(),
    )
}

/// The command that checks the history of a violation again.
fn again(report: &TortureReport, violation: &Violation) -> String {
    let beyond = if report.beyond { " --beyond" } else { "" };
    format!("plumb space torture --history {}{beyond}", violation.history_seed)
}

fn as_json(report: &TortureReport) -> String {
    let violations: Vec<_> = report
        .violations
        .iter()
        .map(|violation| {
            json!({
                "history_seed": violation.history_seed,
                "again": again(report, violation),
                "what": violation.what,
                "crash_at": violation.crash_at,
                "pool": violation.pool,
                "history": violation.history,
            })
        })
        .collect();
    let combinations: serde_json::Map<_, _> = COMBINATIONS
        .iter()
        .map(|own| (own.name().to_owned(), report.combined.states(*own).into()))
        .collect();
    let value = json!({
        "seed": report.history.is_none().then_some(report.seed),
        "history": report.history,
        "beyond": report.beyond,
        "crash_states": report.crash_states,
        "with_background": report.with_background,
        "demanding": report.demanding,
        "with_rebuild": report.with_rebuild,
        "with_cache": report.with_cache,
        "with_moves": report.with_moves,
        "with_optimization": report.with_optimization,
        "with_failed_disk": report.with_failed_disk,
        "with_third_crash": report.with_third_crash,
        "with_older_copy": report.with_older_copy,
        "beyond_tolerance": report.beyond_tolerance,
        "with_several_failed": report.with_several_failed,
        "with_missed_generation": report.with_missed_generation,
        "with_index_pages": report.with_index_pages,
        "with_live_rot": report.with_live_rot,
        "combinations": combinations,
        "histories": report.histories,
        "elapsed_s": report.elapsed.as_secs_f64(),
        "processor_time_s": report.processor_time.as_secs_f64(),
        "interrupted": report.interrupted,
        "violations": report.violations.len(),
        "violation_details": violations,
    });
    format!("{value:#}\n")
}

/// A line for each combination that the specification's models left out.
fn combinations(report: &TortureReport) -> String {
    let line = |own: &Combination| {
        let name = own.name().replace('_', " ");
        format!("  {name}: {}\n", report.combined.states(*own))
    };
    COMBINATIONS.iter().map(line).collect()
}

fn as_text(report: &TortureReport) -> String {
    let early = if report.interrupted { "ended early, by a signal\n" } else { "" };
    let which = match report.history {
        Some(seed) => format!("seed of the history: {seed}\n"),
        None => format!("seed:                {}\n", report.seed),
    };
    let mut text = format!(
        "{early}{which}crash states:        {}\n  background work:   {}\n  cache destaged:    {}\n  extents moved:     {}\n  in an optimization: {}\n  disk rebuilt:      {}\n  \
         overwrites, flushes, a failed disk: {}\n  after disk loss:   {}\n  crashed thrice:    {}\n  older copy of a disk: {}\n  \
         more failures than it bears: {}\n  several disks failed: {}\n  missed a generation: {}\n  \
         trees with index pages: {}\n  rot while it served: {}\n{}\
         histories:           {}\ntime:                {:.1} s\nprocessor time:      {:.1} s\nviolations:          {}\n",
        report.crash_states,
        report.with_background,
        report.with_cache,
        report.with_moves,
        report.with_optimization,
        report.with_rebuild,
        report.demanding,
        report.with_failed_disk,
        report.with_third_crash,
        report.with_older_copy,
        report.beyond_tolerance,
        report.with_several_failed,
        report.with_missed_generation,
        report.with_index_pages,
        report.with_live_rot,
        combinations(report),
        report.histories,
        report.elapsed.as_secs_f64(),
        report.processor_time.as_secs_f64(),
        report.violations.len(),
    );
    for violation in &report.violations {
        text.push_str(&format!(
            "\n{}\npool: {}; seed of the history: {}; crash after device event {:?}\nagain: {}\n",
            violation.what,
            violation.pool,
            violation.history_seed,
            violation.crash_at,
            again(report, violation)
        ));
        for step in &violation.history {
            text.push_str(&format!("  {step}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_finds_nothing_and_says_so() {
        let options = TortureOptions {
            seed: 3,
            history: None,
            states: Some(40),
            time: None,
            threads: 1,
            shrinking: Duration::ZERO,
            beyond: false,
        };
        let report = torture(&options, &|_| true);
        let read: serde_json::Value = serde_json::from_str(&as_json(&report)).expect("it is JSON");
        assert_eq!(read["violations"], 0);
        assert_eq!(read["seed"], 3);
        assert!(read["crash_states"].as_u64().is_some_and(|states| states >= 40), "{read}");
        assert!(as_text(&report).contains("violations:          0\n"));
        let line = so_far(&report);
        assert!(
            line.contains(" crash states after ") && line.ends_with("; 0 violations"),
            "{line}"
        );
    }

    #[test]
    fn a_run_that_is_ended_by_hand_keeps_what_it_checked() {
        let options = TortureOptions {
            seed: 3,
            history: None,
            states: None,
            time: None,
            threads: 1,
            shrinking: Duration::ZERO,
            beyond: false,
        };
        let report = torture(&options, &|report| report.crash_states < 40);
        assert!(report.interrupted && report.crash_states >= 40, "{report:?}");
        assert!(as_json(&report).contains("\"interrupted\": true"));
        assert!(as_text(&report).starts_with("ended early"));
    }

    /// Whoever reads of a violation can check just that history again.
    #[test]
    fn a_violation_says_how_its_history_is_checked_again() {
        let violation = Violation {
            history_seed: 9_353_574_233_103_318_609,
            what: "lost".to_owned(),
            crash_at: Some(4),
            pool: "two disks".to_owned(),
            history: vec!["Flush".to_owned()],
        };
        for (beyond, command) in [
            (false, "plumb space torture --history 9353574233103318609"),
            (true, "plumb space torture --history 9353574233103318609 --beyond"),
        ] {
            let violations = vec![violation.clone()];
            let report = TortureReport { beyond, violations, ..TortureReport::default() };
            let text = as_text(&report);
            assert!(text.contains(&format!("\nagain: {command}\n")), "{text}");
            let read: serde_json::Value =
                serde_json::from_str(&as_json(&report)).expect("it is JSON");
            assert_eq!(read["violation_details"][0]["again"], command);
            assert_eq!(&read["seed"], 0);
        }
    }
}
