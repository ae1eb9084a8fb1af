//! How late completions are seen, beside a ring with DEFER_TASKRUN whose loop waits for batches: both by the device's own
//! events, by turns on one file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::options::Options;
use super::spread::{Ratio, Spread};
use super::target::{Kind, Target};

/// What is compared.
const DEPTH: u32 = 32;
const BATCH: u32 = 8;
/// Microseconds of our own reap lag, at most.
const GOAL_US: f64 = 25.0;
/// Ours over the other loop's, at most.
const GOAL_RATIO: f64 = 0.5;

pub(super) const USAGE: &str = "\
usage: cargo xtask reap-lag [options], as root

  --repeats N       runs of each loop by turns, at least 7 (default: 7)
  --seconds N       length of a run, behind a second of warm-up (default: 2)
  --plumb FILE      a binary of ours to measure instead of this tree's release build
  --folder DIR      where the file is put: on ext4 (default: target/xtask/bench)
";

/// One run, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lag {
    lag_p50: f64,
    lag_p99: f64,
    device_p50: f64,
    reported_p50: f64,
}

/// Measures and prints.
///
/// # Errors
/// What was not understood, or what there is no measuring without.
pub(crate) fn run(repository: &Path, words: &[&str]) -> Result<(), String> {
    if matches!(words, ["--help"] | ["-h"]) {
        print!("{USAGE}");
        return Ok(());
    }
    let options = Options::parse(words)?;
    let folder = options.folder.clone().unwrap_or_else(|| repository.join("target/xtask/bench"));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (plumb, other) = programs(repository, options.plumb.as_deref())?;
    let target = Target::set_up(Kind::Ext4, &folder)?;
    let mut lags: [Vec<Lag>; 2] = [Vec::new(), Vec::new()];
    println!("- date: {}", super::date());
    println!("- commit: {}", super::commit(repository));
    println!("- processor: {}", super::processor());
    println!("- load average at the start: {}\n", super::load());
    println!("| loop | seen late, p50 µs | p99 | device p50 µs | reported p50 µs |");
    println!("|---|---:|---:|---:|---:|");
    for round in 0..options.repeats {
        // ABBA: neither always runs behind the other.
        for turn in 0..2 {
            let which = (round + turn) % 2;
            let lag = match which {
                0 => lag(&mut own(&plumb, &target.path, options.seconds)),
                _ => lag(&mut deferring(&other, &target.path, options.seconds)),
            }?;
            println!("{}", row(NAMES[which], lag));
            lags[which].push(lag);
        }
    }
    println!("\n{}", verdict(&lags)?);
    println!("load average at the end: {}", super::load());
    Ok(())
}

const NAMES: [&str; 2] = ["plumb", "DEFER_TASKRUN + batch"];

fn row(name: &str, lag: Lag) -> String {
    let Lag { lag_p50, lag_p99, device_p50, reported_p50 } = lag;
    format!("| {name} | {lag_p50:.1} | {lag_p99:.1} | {device_p50:.1} | {reported_p50:.1} |")
}

/// Medians, their ratio with its interval, and what the goals say of them.
fn verdict(lags: &[Vec<Lag>; 2]) -> Result<String, String> {
    let of = |which: usize| -> Vec<f64> { lags[which].iter().map(|lag| lag.lag_p50).collect() };
    let (ours, theirs) = (of(0), of(1));
    let (own, other) = (Spread::of(&ours), Spread::of(&theirs));
    let (own, other) = own.zip(other).ok_or("nothing was measured")?;
    let ratio = Ratio::of(&ours, &theirs).ok_or("runs are missing")?;
    let shown = |spread: Spread| {
        format!("{:.1} µs ({:.1} to {:.1})", spread.median, spread.min, spread.max)
    };
    let met = if own.median <= GOAL_US { "met" } else { "MISSED" };
    Ok(format!(
        "reap lag p50: {} (goal: ≤ {GOAL_US} µs, {met}); {}: {}; ratio {ratio}, goal ≤ {GOAL_RATIO}: {}",
        shown(own),
        NAMES[1],
        shown(other),
        ratio.verdict(GOAL_RATIO)
    ))
}

/// Ours as users have it, and the example, as optimized.
fn programs(repository: &Path, plumb: Option<&str>) -> Result<(PathBuf, PathBuf), String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(repository).args(["build", "--locked", "--release"]);
    cargo.args(["--package", "plumb-examples", "--bin", "defer_loop"]);
    match crate::command::run(&mut cargo) {
        Ok(outcome) if outcome.ok => {}
        Ok(_) => return Err("the example does not build".to_owned()),
        Err(error) => return Err(format!("cargo: {error}")),
    }
    let built = crate::target(repository);
    let own = match plumb {
        Some(plumb) => super::tool::locate(Some(plumb), "plumb")?,
        None => super::build(repository, &built)?,
    };
    Ok((own, built.join("release/defer_loop")))
}

fn own(program: &Path, file: &Path, seconds: u32) -> Command {
    let mut command = Command::new(program);
    command.args(["run", "-b4K", "-r", "-t1", "-Su", "-L", "-W1", "--truth", "--json"]);
    command.args([format!("-o{DEPTH}"), format!("-d{seconds}")]);
    command.args(["--batch".to_owned(), BATCH.to_string()]);
    command.arg(file);
    command
}

fn deferring(program: &Path, file: &Path, seconds: u32) -> Command {
    let mut command = Command::new(program);
    command.arg(file).args([DEPTH.to_string(), BATCH.to_string(), seconds.to_string()]);
    command
}

/// Runs it and reads what it says of the truth.
fn lag(command: &mut Command) -> Result<Lag, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot be run: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, errors.trim()));
    }
    parse(&String::from_utf8_lossy(&output.stdout)).ok_or("its output has no truth".to_owned())
}

fn parse(json: &str) -> Option<Lag> {
    let figure = |object: &str, key: &str| {
        let (_, rest) = json.split_once(&format!("\"{object}\""))?;
        let (inside, _) = rest.split_once('}')?;
        super::tool::number(inside, key).map(|nanos| nanos / 1000.0)
    };
    Some(Lag {
        lag_p50: figure("reap_lag_ns", "p50")?,
        lag_p99: figure("reap_lag_ns", "p99")?,
        device_p50: figure("device_ns", "p50")?,
        reported_p50: figure("reported_ns", "p50")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_both_programs_are_read() {
        let ours = "{ \"truth\": {\n \"device_ns\": {\n \"count\": 9,\n \"p50\": 90000,\n \"p99\": 1.0\n },\n \"reported_ns\": \
                    {\"p50\": 110000.5, \"p99\": 2},\n \"reap_lag_ns\": {\"p50\": 14800, \"p99\": 60000} } }";
        let lag = Lag { lag_p50: 14.8, lag_p99: 60.0, device_p50: 90.0, reported_p50: 110.0005 };
        assert_eq!(parse(ours), Some(lag));
        assert_eq!(parse("{ \"truth\": null }"), None);
    }

    #[test]
    fn half_of_the_other_loop_is_the_goal() {
        let lags = |p50s: [f64; 3]| -> Vec<Lag> {
            let of = |p50| Lag { lag_p50: p50, lag_p99: 0.0, device_p50: 0.0, reported_p50: 0.0 };
            p50s.map(of).to_vec()
        };
        for (ours, theirs, says) in [
            ([14.0, 15.0, 16.0], [40.0, 41.0, 42.0], [", met)", "goal ≤ 0.5: met"]),
            ([26.0, 26.0, 27.0], [40.0, 41.0, 42.0], [", MISSED)", "goal ≤ 0.5: MISSED"]),
            ([19.0, 20.0, 30.0], [40.0, 41.0, 42.0], [", met)", "goal ≤ 0.5: undecided"]),
            ([19.0, 50.0, 20.0], [40.0, 41.0, 42.0], [", met)", "hidden by the spread"]),
        ] {
            let text = verdict(&[lags(ours), lags(theirs)]).expect("runs");
            assert!(says.iter().all(|says| text.contains(says)), "{text}");
        }
        assert!(verdict(&[Vec::new(), Vec::new()]).is_err());
    }
}
