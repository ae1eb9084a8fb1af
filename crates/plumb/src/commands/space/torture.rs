//! `plumb space torture`: the crash checker.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plumb_tier::torture::{TortureOptions, TortureReport, torture};
use serde_json::json;

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
             status 1 and the shortest history that it can find when a promise was broken.",
        )
        .args([seed, minutes, states, threads, json])
        .after_help(
            "For example:\n  plumb space torture --seed 7 --minutes 10\n  \
             plumb space torture --states 100000 --json",
        )
}

/// Does what the options say.
pub(super) fn run(matches: &ArgMatches) -> ExitCode {
    let states = matches.get_one::<u64>("states").copied();
    let minutes = matches.get_one::<u64>("minutes").copied();
    let minutes = minutes.or_else(|| states.is_none().then_some(1));
    let processors =
        || std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    let options = TortureOptions {
        seed: *matches.get_one("seed").expect("it has a default"),
        states,
        time: minutes.map(|minutes| Duration::from_secs(60 * minutes)),
        threads: matches.get_one::<u32>("threads").copied().unwrap_or_else(processors),
        shrinking: SHRINKING,
    };
    // A panic of the engine is a violation that the report names; its message would only repeat it.
    std::panic::set_hook(Box::new(|_| {}));
    let shown = std::io::stderr().is_terminal();
    let (began, told) = (Instant::now(), Mutex::new(Instant::now()));
    let report = torture(&options, &|states| {
        if shown {
            eprint!("\r{states} crash states");
            return;
        }
        // Whoever keeps a log of a long run wants to see that it goes on.
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.elapsed() >= LOG_EVERY {
            *told = Instant::now();
            eprintln!("{states} crash states after {} s", began.elapsed().as_secs());
        }
    });
    let _ = std::panic::take_hook();
    if shown {
        eprintln!();
    }
    let status = u8::from(!report.violations.is_empty());
    let text = if matches.get_flag("json") { as_json(&report) } else { as_text(&report) };
    super::super::print_and_exit(&text, status)
}

fn as_json(report: &TortureReport) -> String {
    let violations: Vec<_> = report
        .violations
        .iter()
        .map(|violation| {
            json!({
                "history_seed": violation.history_seed,
                "what": violation.what,
                "crash_at": violation.crash_at,
                "pool": violation.pool,
                "history": violation.history,
            })
        })
        .collect();
    let value = json!({
        "seed": report.seed,
        "crash_states": report.crash_states,
        "with_background": report.with_background,
        "demanding": report.demanding,
        "with_rebuild": report.with_rebuild,
        "with_cache": report.with_cache,
        "with_moves": report.with_moves,
        "with_failed_disk": report.with_failed_disk,
        "with_third_crash": report.with_third_crash,
        "histories": report.histories,
        "elapsed_s": report.elapsed.as_secs_f64(),
        "processor_time_s": report.processor_time.as_secs_f64(),
        "violations": report.violations.len(),
        "violation_details": violations,
    });
    format!("{value:#}\n")
}

fn as_text(report: &TortureReport) -> String {
    let mut text = format!(
        "seed:                {}\ncrash states:        {}\n  background work:   {}\n  cache destaged:    {}\n  extents moved:     {}\n  disk rebuilt:      {}\n  \
         overwrites, flushes, a failed disk: {}\n  after disk loss:   {}\n  crashed thrice:    {}\n\
         histories:           {}\ntime:                {:.1} s\nprocessor time:      {:.1} s\nviolations:          {}\n",
        report.seed,
        report.crash_states,
        report.with_background,
        report.with_cache,
        report.with_moves,
        report.with_rebuild,
        report.demanding,
        report.with_failed_disk,
        report.with_third_crash,
        report.histories,
        report.elapsed.as_secs_f64(),
        report.processor_time.as_secs_f64(),
        report.violations.len(),
    );
    for violation in &report.violations {
        text.push_str(&format!(
            "\n{}\npool: {}; seed of the history: {}; crash after device event {:?}\n",
            violation.what, violation.pool, violation.history_seed, violation.crash_at
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
            states: Some(40),
            time: None,
            threads: 1,
            shrinking: Duration::ZERO,
        };
        let report = torture(&options, &|_| {});
        let read: serde_json::Value = serde_json::from_str(&as_json(&report)).expect("it is JSON");
        assert_eq!(read["violations"], 0);
        assert_eq!(read["seed"], 3);
        assert!(read["crash_states"].as_u64().is_some_and(|states| states >= 40), "{read}");
        assert!(as_text(&report).contains("violations:          0\n"));
    }
}
