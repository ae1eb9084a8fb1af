//! `plumb monitor`: counters without a load.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use jiff::Timestamp;
use plumb_io::counters::{Look, Second, Watched};
use plumb_io::system_tree::SystemTree;
use plumb_load::result::json::counters;
use plumb_study::preflight::{Plan, Target};
use plumb_study::study::Device;
use plumb_units::Nanos;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::{answers, study};
use crate::message::Printer;

/// Exit status for a target that cannot be watched.
const WRONG: u8 = 2;
const INTERVAL: Duration = Duration::from_secs(1);
/// How soon an interruption is noticed.
const NAP: Duration = Duration::from_millis(100);

/// For clap.
pub(crate) fn command() -> Command {
    let targets = Arg::new("target")
        .value_name("TARGET")
        .num_args(0..)
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::AnyPath)
        .help("Files or devices: what lies under them is watched [default: every disk]");
    let length = Arg::new("for").long("for").value_name("TIME").value_parser(seconds).help(
        "How long: seconds, or with s, m or h, such as 90, 10m, 1h [default: until interrupted]",
    );
    let output = Arg::new("output")
        .short('o')
        .long("output")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("Record into a file as well, an object per second");
    let root = Arg::new("system-root")
        .long("system-root")
        .value_name("FOLDER")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::DirPath)
        .help("Where /sys and /proc are looked for");
    Command::new("monitor")
        .about("Show and record what devices, processors and memory do, without a load")
        .long_about(
            "Show and record what devices, processors and memory do, once per second and without a load: the \
             counters that stand beside every run in its JSON result. Nothing is changed.",
        )
        .args([targets, length, output, root, answers::json_option()])
        .after_help(
            "For example:\n  plumb monitor --for 1h -o evening.ndjson\n  plumb monitor data.dat --json",
        )
}

/// Watches.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    match watch(matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            Printer::on_stderr().error(&error);
            match error {
                MonitorError::Kind(_) | MonitorError::Nothing { .. } => ExitCode::from(WRONG),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn watch(matches: &ArgMatches) -> Result<(), MonitorError> {
    let tree = matches.get_one::<PathBuf>("system-root").map(SystemTree::new).unwrap_or_default();
    let watched = watched(&tree, matches)?;
    let path = matches.get_one::<PathBuf>("output");
    let refused = |source| MonitorError::Write { path: path.cloned().unwrap_or_default(), source };
    let mut file = match path {
        Some(path) => Some(std::fs::File::create_new(path).map_err(refused)?),
        None => None,
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Without it an interruption ends the process at once: every line is written already.
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    let is_json = matches.get_flag("json");
    let names: Vec<String> = watched.device_names().map(str::to_owned).collect();
    let most = matches.get_one::<u64>("for").copied().unwrap_or(u64::MAX);
    let begun = Instant::now();
    let since = || Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let mut before = Look::take(&tree, &watched, since());
    let mut due = INTERVAL;
    let mut taken = 0;
    while taken < most && wait(begun, due, &stop) {
        due += INTERVAL;
        taken += 1;
        let now = Look::take(&tree, &watched, since());
        let second = now.since(&before, Nanos::ZERO);
        before = now;
        let object = object(&names, &second);
        let line = if is_json { format!("{object}\n") } else { line(&names, &second) };
        let mut out = io::stdout().lock();
        match out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
            // Who reads it has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            other => other.map_err(|source| MonitorError::Print { source })?,
        }
        if let Some(file) = &mut file {
            file.write_all(format!("{object}\n").as_bytes()).map_err(refused)?;
        }
    }
    if let Some(file) = &file {
        file.sync_all().map_err(refused)?;
    }
    Ok(())
}

fn watched(tree: &SystemTree, matches: &ArgMatches) -> Result<Watched, MonitorError> {
    let mut stacks = Vec::new();
    for path in matches.get_many::<PathBuf>("target").into_iter().flatten() {
        if tree.is_real() {
            refuse_absent(path)?;
        }
        let target = Target::find(tree, path, Plan::default())
            .map_err(|source| MonitorError::Target { path: path.clone(), source })?;
        stacks.push(target.stack);
    }
    if stacks.is_empty() {
        return Ok(Watched::all_disks(tree));
    }
    let watched = Watched::under(tree, &stacks);
    if watched.device_names().next().is_none() {
        let note = "no disk is known under what was named: only processors and memory are watched";
        Printer::on_stderr().note(note);
    }
    Ok(watched)
}

/// Refuses what is not there, too: its folder's device is not what was asked for.
fn refuse_absent(path: &Path) -> Result<(), MonitorError> {
    study::refuse_unusable(path, &Device::Real)?;
    match path.exists() {
        true => Ok(()),
        false => Err(MonitorError::Nothing { path: path.to_owned() }),
    }
}

/// Sleeps until `due`; false when it is to end.
fn wait(begun: Instant, due: Duration, stop: &AtomicBool) -> bool {
    loop {
        let left = due.saturating_sub(begun.elapsed());
        if stop.load(Ordering::Relaxed) || left.is_zero() {
            return !stop.load(Ordering::Relaxed);
        }
        thread::sleep(left.min(NAP));
    }
}

/// An element of `counters.series` of a JSON result, with names and the time.
fn object(names: &[String], second: &Second) -> Value {
    let mut object = counters::second(second);
    object["at"] = Timestamp::now().to_string().into();
    let rates = object["devices"].as_array_mut().into_iter().flatten();
    for (rates, name) in rates.zip(names).filter(|(rates, _)| !rates.is_null()) {
        rates["name"] = json!(name);
    }
    object
}

fn line(names: &[String], second: &Second) -> String {
    let processors = &second.processors;
    let mean = processors.iter().sum::<f64>() / (processors.len() as f64).max(1.0);
    let busiest = processors.iter().copied().fold(0.0, f64::max);
    let told = |value: Option<f64>, unit: &str| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}{unit}"))
    };
    let mib = |bytes: f64| bytes / 1_048_576.0;
    let hottest = second.temperatures.iter().copied().flatten().reduce(f64::max);
    let mut text = format!(
        "{:>6.0} s  cpu {mean:.0} % (busiest {busiest:.0} %)  waiting for I/O {}  dirty {}  hottest {}\n",
        second.end.as_secs_f64(),
        told(second.pressure.io_some, " %"),
        told(second.memory.dirty.map(|bytes| mib(bytes as f64)), " MiB"),
        told(hottest, " °C"),
    );
    for (name, rates) in names.iter().zip(&second.devices) {
        // An idle device needs no line.
        let Some(rates) = rates.filter(|rates| rates.reads + rates.writes > 0.0) else { continue };
        text.push_str(&format!(
            "          {name:<14}{:>9.0} reads/s {:>8.1} MiB/s {:>9.0} writes/s {:>8.1} MiB/s  in flight {:>6.1}  busy {:>3.0} %\n",
            rates.reads,
            mib(rates.read_bytes),
            rates.writes,
            mib(rates.written_bytes),
            rates.in_flight,
            rates.busy_percent,
        ));
    }
    text
}

/// `90`, `90s`, `10m`, `1h` in seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || "it must be a whole number of 1 or more with s, m or h, such as 10m".to_owned();
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(factor).filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

/// Why nothing is watched.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum MonitorError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Kind(#[from] study::TargetError),
    #[error("there is no {} to watch", path.display())]
    #[diagnostic(code(plumb::monitor::nothing), help("name a file or a device that exists"))]
    Nothing { path: PathBuf },
    #[error("cannot look at {}", path.display())]
    #[diagnostic(code(plumb::monitor::target), help("name a file or a device that exists"))]
    Target { path: PathBuf, source: io::Error },
    #[error("cannot record into {}", path.display())]
    #[diagnostic(
        code(plumb::monitor::write),
        help("name a file that does not exist yet, in a folder that you may write to")
    )]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write to standard output")]
    #[diagnostic(code(plumb::monitor::print), help("check what it is redirected to"))]
    Print { source: io::Error },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, want) in
            [("90", Some(90)), ("2s", Some(2)), ("10m", Some(600)), ("1h", Some(3600))]
        {
            assert_eq!(seconds(text).ok(), want, "{text}");
        }
        for text in ["", "0", "m", "1d", "-1", "1.5h", "99999999999999999999h"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
