//! `plumb quick`: the eight figures that desktop tools show.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use miette::Diagnostic;
use plumb_study::study::{
    Device, Forecast, GAP_S, Kind, QUICK_BYTES, RunRecord, SweepPlan, SweepPlanner, Told,
    bytes_to_find, bytes_to_make, quick_findings, quick_plan,
};
use serde_json::{Value, json};

use super::study::{
    self, Around, DeviceError, Lack, OpenError, Planned, TargetError, arguments, expected, from_to,
    machine,
};
use crate::message::Printer;

/// For clap.
pub(crate) fn command() -> Command {
    let target = arguments::target("Test file; it is made if it is not there")
        .value_name("FILE")
        .required_unless_present_any(["resume", "simulate"]);
    Command::new("quick")
        .about("The eight figures that desktop tools show, honestly labelled")
        .long_about(
            "The eight figures that desktop tools show: 1 MiB sequential with 8 and 1 outstanding, 4 KiB random \
             with 32 and 1, read and written, one thread, past the page cache, in decimal megabytes. Medians with \
             their range, not the best of several. It takes about three minutes and is no baseline.",
        )
        .args([
            target,
            arguments::size("Bytes of the test file [default: of the file that is there, else 1G]"),
            few("duration", "SECONDS", "Of each measurement [default: 5]"),
            few("repetitions", "N", "Runs of each of the eight [default: 3]"),
        ])
        .args(arguments::of_every_study())
        .after_help("For example:\n  plumb quick f.dat\n  plumb quick f.dat --size 4G --json")
}

fn few(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    arguments::count(name, value, help).value_parser(value_parser!(u32).range(1..1000))
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error, Diagnostic)]
enum QuickError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Target(#[from] TargetError),
}

/// `plumb quick`.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    match quick(matches) {
        Ok(code) => code,
        Err(error) => {
            Printer::on_stderr().error(&error);
            match error {
                QuickError::Open(error) => error.status().into(),
                QuickError::Target(TargetError::Room { .. }) => 1.into(),
                QuickError::Target(TargetError::Foreign(_)) => 3.into(),
                QuickError::Target(_) | QuickError::Device(_) => 2.into(),
            }
        }
    }
}

fn quick(matches: &ArgMatches) -> Result<ExitCode, QuickError> {
    if let Some(id) = matches.get_one::<String>("resume") {
        let named = matches.get_one::<PathBuf>("target");
        let mut opened = study::resume(
            matches,
            &Around::of(matches),
            id,
            Kind::Quick,
            named.map(PathBuf::as_path),
        )?;
        let keys = [("size", "size"), ("duration", "seconds"), ("repetitions", "repetitions")];
        let given = request(matches, Path::new(&opened.study.target));
        opened.refuse_contradictions(matches, keys, &given)?;
        let request = opened.study.request.clone();
        if matches.get_flag("dry-run") {
            let study = &opened.study;
            let bytes = quick_bytes(&request, Path::new(&study.target), &study.device);
            let forecast = forecast(&request, Path::new(&study.target), bytes);
            let done = opened.journal.records().len() as u64;
            return Ok(dry_run(matches, &forecast, bytes, done));
        }
        settle(&mut opened, &request)?;
        return Ok(work(matches, opened, &request));
    }
    let path = &arguments::target_or_device(matches);
    let device = match matches.get_one::<PathBuf>("simulate") {
        Some(file) => study::simulated(file)?,
        None => Device::Real,
    };
    study::refuse_unusable(path, &device)?;
    study::refuse_taken(&Around::of(matches))?;
    let request = request(matches, path);
    let destroy = Around::of(matches).destroy;
    study::refuse_foreign(path, &device, plan(&request).settings.iter(), &destroy)?;
    let bytes_to_make = quick_bytes(&request, path, &device);
    let lack = quick_lack(&request, path, &device);
    if matches.get_flag("dry-run") {
        if let Some(lack) = lack {
            Printer::on_stderr().warning(&format!("{}: {lack}", path.display()));
        }
        let forecast = forecast(&request, path, bytes_to_make);
        return Ok(dry_run(matches, &forecast, bytes_to_make, 0));
    }
    if let Some(lack) = lack {
        return Err(TargetError::Room { path: path.clone(), lack }.into());
    }
    let planner = SweepPlanner::new(plan(&request));
    let (runs, _) = planner.counts();
    let of_one = planner.plan().settings.iter().map(|setting| setting.seconds() + GAP_S);
    let longest_s = of_one.fold(0.0, f64::max);
    let mut opened = study::create(
        &Around::of(matches),
        Planned {
            kind: Kind::Quick,
            title: format!("eight figures of {}", path.display()),
            target: path.display().to_string(),
            device,
            devices: None,
            copies: 1,
            seed: 1,
            request: request.clone(),
            runs_most: runs,
            runs_exhaustive: runs,
            seconds_most: runs as f64 * longest_s,
            bytes_to_make,
        },
    )?;
    settle(&mut opened, &request)?;
    Ok(work(matches, opened, &request))
}

/// What is found out before the first run, when the study is safe.
fn settle(opened: &mut study::Opened, request: &Value) -> Result<(), QuickError> {
    if opened.is_unsettled() {
        let target = Path::new(&opened.study.target);
        let bytes = quick_bytes(request, target, &opened.study.device);
        let found = forecast(request, target, bytes);
        let why = "plumb quick looks at no machine; plumb check does";
        opened.settle(found, machine::not_looked(why)).map_err(OpenError::from)?;
    }
    Ok(())
}

/// What is asked for, as the plan of the study keeps it.
fn request(matches: &ArgMatches, path: &Path) -> Value {
    let count = |name: &str, usual: u32| matches.get_one(name).copied().unwrap_or(usual);
    json!({
        "size": size(matches, path),
        "seconds": count("duration", 5),
        "repetitions": count("repetitions", 3),
    })
}

/// Runs, and the seconds that they and the file take.
fn forecast(request: &Value, path: &Path, bytes: u64) -> Forecast {
    let writing = machine::writing(path, bytes);
    let creation_s = writing.seconds(bytes);
    Forecast::of_sweep(&SweepPlanner::new(plan(request)), writing.bytes_per_s)
        .after((creation_s, creation_s, creation_s))
}

/// Says how many runs there would be, `done` of which are there already.
fn dry_run(matches: &ArgMatches, forecast: &Forecast, bytes: u64, done: u64) -> ExitCode {
    let (_, runs) = forecast.runs;
    let text = match matches.get_flag("json") {
        true => {
            let object = json!({
                "runs_most": runs, "runs_done": done, "estimate_s": forecast.likely_s,
                "bytes_to_write": bytes,
            });
            format!("{object}\n")
        }
        false if done > 0 => {
            let (low, high) = forecast.seconds;
            format!("{runs} runs, {done} of them are there, {}\n", from_to(low, high))
        }
        false => format!("{}\n", expected(forecast)),
    };
    super::print(&text)
}

/// Bytes of the file; none for what is no file.
fn size(matches: &ArgMatches, path: &Path) -> Option<u64> {
    match (matches.get_one::<u64>("size").copied(), std::fs::metadata(path)) {
        (_, Ok(found)) if !found.is_file() => None,
        (Some(size), _) => Some(size),
        (None, Ok(found)) if found.len() > 0 => Some(found.len()),
        _ => Some(QUICK_BYTES),
    }
}

/// Bytes of the file where it is made.
fn quick_bytes(request: &Value, path: &Path, device: &Device) -> u64 {
    match device {
        Device::Real => bytes_to_make(path, plan(request).settings.iter()),
        Device::Simulated(_) => 0,
    }
}

/// Room that is missing for the file.
fn quick_lack(request: &Value, path: &Path, device: &Device) -> Option<Lack> {
    match device {
        Device::Real => Lack::of(path, bytes_to_find(path, plan(request).settings.iter())),
        Device::Simulated(_) => None,
    }
}

fn plan(request: &Value) -> SweepPlan {
    let number = |key: &str| {
        let value = request[key].as_u64().and_then(|value| u32::try_from(value).ok());
        value.unwrap_or(1)
    };
    quick_plan(request["size"].as_u64(), number("seconds"), number("repetitions"))
}

fn work(matches: &ArgMatches, opened: study::Opened, request: &Value) -> ExitCode {
    let plan = plan(request);
    let planner = SweepPlanner::new(plan.clone());
    let conclude = |runs: &[RunRecord], told: Told| quick_findings(&plan, runs, told);
    study::work(matches, &Around::of(matches), opened, &planner, &conclude)
}
