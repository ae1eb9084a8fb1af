//! `plumb baseline`: the whole workflow, from the preflight to the findings.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{ArgMatches, Command, value_parser};
use miette::Diagnostic;
use plumb_io::system_tree::SystemTree;
use plumb_study::preflight::{self, Plan, Verdict};
use plumb_study::study::{
    BaselineOptions, BaselinePlanner, Conditioning, Device, Forecast, GAP_S, Kind, Next, Part,
    Planner, Preset, RunRecord, Setting, Step, StudyFolder, Told, baseline_findings, bytes_beside,
    bytes_to_make, studies_folder,
};
use serde_json::{Value, json};

use super::caps::{self, CapsFileError};
use super::study::arguments::{self, count, flag, many, word};
use super::study::{
    self, Around, DeviceError, OpenError, Planned, TargetError, duration, expected, from_to,
    machine,
};
use crate::message::Printer;

/// Exit status when a check blocks.
const BLOCKED: u8 = 3;
/// The step that no run belongs to.
const PREFLIGHT: &str = "preflight";

/// For clap.
pub(crate) fn command() -> Command {
    let target = arguments::target("File or device to measure; a file is made if it is not there")
        .required_unless_present_any(["resume", "simulate"]);
    let steps: Vec<&str> = std::iter::once(PREFLIGHT).chain(Step::ALL.map(Step::keyword)).collect();
    let skip = many("skip", "STEP", "Leave this step out; several may be given")
        .value_parser(clap::builder::PossibleValuesParser::new(steps));
    let most = word("max-outstanding", "N", "Most outstanding I/Os in all [default: 4096]")
        .value_parser(value_parser!(u64).range(1..));
    Command::new("baseline")
        .about("Measure what a target can do: the whole workflow, in at most 40 runs")
        .long_about(
            "Measure what a target can do, in at most 40 runs where the published procedure takes 97: a look at the \
             machine, one run explained, the number of files, the queue depth and the threads for small random I/O, \
             the queue depth for sequential reads and writes, throughput without latencies and latencies without \
             load; then what the answers rest on, again. It says \"not yet\" where the data cannot tell. Every run \
             is written down when it is over: after an interruption --resume goes on.",
        )
        .args([
            target,
            arguments::size("Bytes of all test files together [default: of the file that is there, else 64G; with --quick 1G]"),
            flag("quick", "About ten minutes: 2 s of warm-up and 8 s of measurement per run, which sees no slow change of the device, no rare latency, and smaller differences less surely").conflicts_with("d0-timing"),
            flag("d0-timing", "As published: 300 s of warm-up, 600 s of measurement, every setting of the ranges; about a day"),
            flag("full-length", "Measure the whole duration even if a run is steady and precise before, as --quick and --d0-timing do"),
            flag("exhaustive", "Every setting of the published ranges instead of a search"),
            flag("oltp", "Small random I/O only: the profile oltp (plumb profile show oltp)").conflicts_with("olap"),
            flag("olap", "Large sequential I/O only: the profile olap (plumb profile show olap)"),
            skip,
            arguments::accept(),
            arguments::device_cache(),
            count("threads", "N", "Threads to begin with [default: 8, as in the profile oltp]"),
            most,
            arguments::seed("Of random offsets [default: 1]"),
        ])
        .args(arguments::behind())
        .args(arguments::timing(
            "Before each measurement [default: 10; with --quick 2]",
            "Of each measurement, at most [default: 60; with --quick 8]",
        ))
        .args(arguments::of_every_study())
        .after_help(
            "Exit status: 0 if all is measured, 1 if it cannot be, 2 for a wrong command line, 3 if a check of the \
             preflight blocks, 5 if it is not finished and can be resumed.\n\nFor example:\n  \
             plumb baseline f.dat --size 64G --ssds 8 --copies 2\n  plumb baseline f.dat --quick\n  \
             plumb baseline --resume baseline-20260131-200000",
        )
}

/// Why there is no baseline.
#[derive(Debug, thiserror::Error, Diagnostic)]
enum BaselineError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Caps(#[from] CapsFileError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Target(#[from] TargetError),
    #[error("cannot look at {}", path.display())]
    #[diagnostic(
        code(plumb::baseline::target),
        help("name a file, a device, or a file to be made in a folder that exists")
    )]
    Look { path: PathBuf, source: std::io::Error },
    #[error("the preflight blocks: {}", ids.join(", "))]
    #[diagnostic(
        code(plumb::baseline::preflight),
        help("plumb check says what to do; --accept ID lets one pass, --skip preflight all")
    )]
    Blocked { ids: Vec<String> },
    #[error("a device has no file that could be filled: --conditioning pts-file is for files")]
    #[diagnostic(
        code(plumb::baseline::conditioning),
        help("name a file, or leave --conditioning away")
    )]
    NoFile,
    #[error("the plan of the study cannot be read: {what}")]
    #[diagnostic(code(plumb::baseline::request), help("start a new study"))]
    Request { what: String },
}

/// `plumb baseline`.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    match baseline(matches) {
        Ok(code) => code,
        Err(error) => {
            Printer::on_stderr().error(&error);
            match error {
                BaselineError::Blocked { .. }
                | BaselineError::Target(
                    TargetError::WholeDevice { .. } | TargetError::Foreign(_),
                ) => BLOCKED.into(),
                BaselineError::Device(_)
                | BaselineError::Target(_)
                | BaselineError::Caps(_)
                | BaselineError::NoFile => 2.into(),
                BaselineError::Open(error) => error.status().into(),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn baseline(matches: &ArgMatches) -> Result<ExitCode, BaselineError> {
    if let Some(id) = matches.get_one::<String>("resume") {
        let named = matches.get_one::<PathBuf>("target");
        let mut opened = study::resume(
            matches,
            &Around::of(matches),
            id,
            Kind::Baseline,
            named.map(PathBuf::as_path),
        )?;
        let request = |error: serde_json::Error| BaselineError::Request { what: error.to_string() };
        let kept: BaselineOptions =
            serde_json::from_value(opened.study.request.clone()).map_err(request)?;
        let target = PathBuf::from(&opened.study.target);
        let given = options(matches, &target, &opened.study.device)?;
        opened.refuse_contradictions(
            matches,
            OPTION_KEYS,
            &serde_json::to_value(given).map_err(request)?,
        )?;
        let device = &opened.study.device;
        let next = BaselinePlanner::new(kept.clone()).next(opened.journal.records());
        // The machine may not be as it was when the study began.
        let looked = match next {
            Next::Done => Looked::not("there is nothing left to be run"),
            _ => {
                let looks = || look(matches, &target, &kept, device);
                look_until_faded(looks, thread::sleep)?
            }
        };
        looked.tell();
        if matches.get_flag("dry-run") {
            let done = opened.journal.records().len() as u64;
            return dry_run(matches, &kept, &target, device, done, looked);
        }
        let preflight = looked.refuse_blocked()?;
        if opened.is_unsettled() {
            let (forecast, _) = estimate(&kept, &target, device, machine::writing);
            opened.settle(forecast, preflight).map_err(OpenError::from)?;
        }
        return Ok(work(matches, opened, kept));
    }
    let path = &arguments::target_or_device(matches);
    let device = match matches.get_one::<PathBuf>("simulate") {
        Some(file) => study::simulated(file)?,
        None => Device::Real,
    };
    study::refuse_unusable(path, &device)?;
    let mut options = options(matches, path, &device)?;
    if options.caps.is_empty() {
        options.caps = caps::words(matches)?;
    }
    if options.size.is_none() && options.conditioning == Conditioning::PtsFile {
        return Err(BaselineError::NoFile);
    }
    if options.conditioning == Conditioning::PtsDevice {
        let destroy = Around::of(matches).destroy;
        options.device_bytes = Some(study::device_to_fill(path, &device, &destroy)?);
    }
    study::refuse_taken(&Around::of(matches))?;
    let destroy = Around::of(matches).destroy;
    study::refuse_foreign(path, &device, written(&options).iter(), &destroy)?;
    if matches.get_flag("dry-run") {
        let looked = look(matches, path, &options, &device)?;
        looked.tell();
        return dry_run(matches, &options, path, &device, 0, looked);
    }
    // The preflight and a rehearsal take seconds, in which it may be killed: the study is safe before.
    let mut opened = create(matches, path, &options, device)?;
    match look_and_settle(matches, path, &options, &mut opened) {
        Ok(()) => Ok(work(matches, opened, options)),
        Err(error) => {
            // What may not begin leaves nothing.
            let id = opened.study.id.clone();
            drop(opened);
            if let Err(left) = StudyFolder::remove(&studies_folder(), &id) {
                Printer::on_stderr().warning(&format!("the study `{id}` is left: {left}"));
            }
            Err(error)
        }
    }
}

/// Begins one.
fn create(
    matches: &ArgMatches,
    path: &Path,
    options: &BaselineOptions,
    device: Device,
) -> Result<study::Opened, BaselineError> {
    let runs_most = options.runs_most();
    let bytes_to_make = match device {
        Device::Real => bytes_to_make(path, settings(options).iter()),
        Device::Simulated(_) => 0,
    };
    let each_s = options.random(1).seconds() + GAP_S + f64::from(options.gap_s);
    let planned = Planned {
        kind: Kind::Baseline,
        title: format!("what {} can do", path.display()),
        target: path.display().to_string(),
        device,
        devices: options.devices,
        copies: options.copies,
        seed: options.seed,
        request: serde_json::to_value(options)
            .map_err(|error| BaselineError::Request { what: error.to_string() })?,
        runs_most,
        runs_exhaustive: options.published_runs(),
        seconds_most: runs_most as f64 * each_s,
        bytes_to_make,
    };
    Ok(study::create(&Around::of(matches), planned)?)
}

/// The preflight of a study that was begun, and what is to be expected of it.
fn look_and_settle(
    matches: &ArgMatches,
    path: &Path,
    options: &BaselineOptions,
    opened: &mut study::Opened,
) -> Result<(), BaselineError> {
    let looked = look(matches, path, options, &opened.study.device)?;
    looked.tell();
    let preflight = looked.refuse_blocked()?;
    let (forecast, _) = estimate(options, path, &opened.study.device, machine::writing);
    Ok(opened.settle(forecast, preflight).map_err(OpenError::from)?)
}

/// Says how many runs there would be, `done` of which are there already, and refuses what the preflight would.
fn dry_run(
    matches: &ArgMatches,
    options: &BaselineOptions,
    path: &Path,
    device: &Device,
    done: u64,
    looked: Looked,
) -> Result<ExitCode, BaselineError> {
    // A probe writes: not where nothing may be measured.
    let probe = |path: &Path, bytes| match looked.blocks.is_empty() {
        true => machine::writing(path, bytes),
        false => machine::Writing::ASSUMED,
    };
    let (forecast, writing) = estimate(options, path, device, probe);
    let exhaustive = options.published_runs();
    // As its start tells it: of an exhaustive plan what is planned before a range is extended.
    let most = options.runs_most();
    let planner = BaselinePlanner::new(options.clone());
    let extent = Planner::extent(&planner, &[]);
    let there = if done > 0 { format!(", {done} of them are there") } else { String::new() };
    let extension = extent.map_or(String::new(), |extent| study::extension(extent, &planner, &[]));
    let text = match matches.get_flag("json") {
        true => format!(
            "{}\n",
            json!({
                "runs_most": most, "runs_exhaustive": exhaustive, "runs_done": done,
                "runs_extended": extent.map(|extent| extent.extended),
                "runs_least": forecast.runs.0.min(most), "estimate_s": forecast.likely_s,
                "estimate_least_s": forecast.seconds.0, "estimate_most_s": forecast.seconds.1,
                "size": options.size,
                "bytes_to_write": writing.0, "creation_s": writing.1.seconds(writing.0),
                "write_rate_is_measured": writing.1.is_measured,
                "preflight": looked.verdicts,
            })
        ),
        false => format!(
            "{}; the published plan takes {exhaustive} runs of 15 min each, {}\n\
             files to be written first: {:.1} GiB, {} of it ({})\n",
            if options.is_exhaustive() {
                let (low, high) = forecast.seconds;
                format!("{most} runs{there}, {} as planned{extension}", from_to(low, high))
            } else {
                format!("at most {most} runs{there}; to be expected: {}", expected(&forecast))
            },
            duration(exhaustive as f64 * 900.0),
            writing.0 as f64 / f64::from(1 << 30),
            duration(writing.1.seconds(writing.0)),
            writing.1.words()
        ),
    };
    let code = super::print(&text);
    looked.refuse_blocked()?;
    Ok(code)
}

/// Options with the keys that they have in the plan of a study.
const OPTION_KEYS: [(&str, &str); 20] = [
    ("size", "size"),
    ("quick", "preset"),
    ("d0-timing", "preset"),
    ("exhaustive", "exhaustive"),
    ("full-length", "full_length"),
    ("oltp", "part"),
    ("olap", "part"),
    ("skip", "skip"),
    ("device-cache", "device_cache"),
    ("threads", "threads"),
    ("max-outstanding", "outstanding_most"),
    ("seed", "seed"),
    ("ssds", "devices"),
    ("copies", "copies"),
    ("cap", "caps"),
    ("caps", "caps"),
    ("warmup", "warm_up_s"),
    ("duration", "measured_s"),
    ("gap", "gap_s"),
    ("conditioning", "conditioning"),
];

fn work(matches: &ArgMatches, opened: study::Opened, options: BaselineOptions) -> ExitCode {
    let planner = BaselinePlanner::new(options);
    let conclude =
        |runs: &[RunRecord], told: Told| baseline_findings(planner.options(), runs, told);
    study::work(matches, &Around::of(matches), opened, &planner, &conclude)
}

fn options(
    matches: &ArgMatches,
    path: &Path,
    device: &Device,
) -> Result<BaselineOptions, CapsFileError> {
    let count = |name: &str| matches.get_one::<u32>(name).copied();
    let preset = match (matches.get_flag("quick"), matches.get_flag("d0-timing")) {
        (true, _) => Preset::Quick,
        (_, true) => Preset::Published,
        _ => Preset::Standard,
    };
    let part = match (matches.get_flag("oltp"), matches.get_flag("olap")) {
        (true, _) => Part::Oltp,
        (_, true) => Part::Olap,
        _ => Part::All,
    };
    let found = std::fs::metadata(path).ok().filter(|_| *device == Device::Real);
    let usual = match preset {
        Preset::Quick => 1 << 30,
        _ => 64 << 30,
    };
    let size = match (matches.get_one::<u64>("size").copied(), found) {
        // What is no file has the size that it has.
        (_, Some(found)) if !found.is_file() => None,
        (Some(size), _) => Some(size),
        (None, Some(found)) if found.len() > 0 => Some(found.len()),
        _ => Some(usual),
    };
    let processors = thread::available_parallelism().map_or(16, usize::from);
    let threads_most = match device {
        Device::Real => u32::try_from(processors * 4).unwrap_or(64),
        Device::Simulated(_) => 64,
    };
    let caps = matches.get_many::<String>("cap").into_iter().flatten().cloned();
    Ok(BaselineOptions {
        size,
        preset,
        part,
        exhaustive: matches.get_flag("exhaustive"),
        skip: matches.get_many::<String>("skip").into_iter().flatten().cloned().collect(),
        devices: count("ssds"),
        copies: count("copies").unwrap_or(1),
        threads: count("threads").unwrap_or(8),
        threads_most,
        outstanding_most: matches.get_one("max-outstanding").copied().unwrap_or(4096),
        seed: matches.get_one("seed").copied().unwrap_or(1),
        caps: caps.chain(caps::named_words(matches)?).collect(),
        warm_up_s: count("warmup"),
        measured_s: count("duration"),
        full_length: matches.get_flag("full-length"),
        gap_s: count("gap").unwrap_or(0),
        conditioning: arguments::conditioning(matches).unwrap_or_default(),
        device_bytes: None,
        device_cache: matches.get_one("device-cache").copied(),
    })
}

/// The settings that need files of their own.
fn settings(options: &BaselineOptions) -> Vec<Setting> {
    let counts = if options.has(Step::PretestTwo) { vec![1, 2, 4] } else { vec![1] };
    counts.into_iter().map(|files| options.random(files)).collect()
}

/// The same, with what is written to each at most by the steps that are not left out, for files that are there.
fn written(options: &BaselineOptions) -> Vec<Setting> {
    let mixed =
        [Step::PretestOne, Step::PretestTwo, Step::RandomOne, Step::RandomTwo, Step::Latency];
    let mut settings = settings(options);
    for setting in &mut settings {
        if options.has(Step::Writes) {
            setting.write_percent = 100;
        } else if !mixed.iter().any(|step| options.has(*step)) {
            setting.write_percent = 0;
        }
    }
    settings
}

/// All runs with the files that are made for them; how many bytes those are, and how fast they are written.
fn estimate(
    options: &BaselineOptions,
    path: &Path,
    device: &Device,
    writing: impl Fn(&Path, u64) -> machine::Writing,
) -> (Forecast, (u64, machine::Writing)) {
    let settings = settings(options);
    let bytes = match device {
        Device::Real => bytes_to_make(path, settings.iter()),
        Device::Simulated(_) => 0,
    };
    let writing = writing(path, bytes);
    let creation_s = writing.seconds(bytes);
    let forecast = Forecast::of_baseline(options, writing.bytes_per_s);
    (forecast.after((creation_s, creation_s, creation_s)), (bytes, writing))
}

/// What the preflight saw.
struct Looked {
    /// All verdicts, or why there are none.
    verdicts: Value,
    /// The checks that block.
    blocks: Vec<String>,
    /// What is not fine.
    warnings: Vec<String>,
}

impl Looked {
    fn not(why: &str) -> Self {
        Self { verdicts: machine::not_looked(why), blocks: Vec::new(), warnings: Vec::new() }
    }

    fn tell(&self) {
        let printer = Printer::on_stderr();
        self.warnings.iter().for_each(|warning| printer.warning(warning));
    }

    fn refuse_blocked(self) -> Result<Value, BaselineError> {
        match self.blocks {
            ids if ids.is_empty() => Ok(self.verdicts),
            ids => Err(BaselineError::Blocked { ids }),
        }
    }
}

/// Checks that an interrupted study brings about itself: the kernel's averages tell of its last run for a while.
const FADING: [&str; 2] = ["load-psi", "load-disk"];
/// Looks at most for that to fade, and the time between two: an average over ten seconds of 100 % is below 5 % after 30.
const FADING_LOOKS: u32 = 16;
const FADING_PAUSE: Duration = Duration::from_secs(2);

/// The preflight of a study that goes on, which may have been interrupted just now.
fn look_until_faded<E>(
    mut look: impl FnMut() -> Result<Looked, E>,
    mut wait: impl FnMut(Duration),
) -> Result<Looked, E> {
    let mut looked = look()?;
    let fades = |looked: &Looked| {
        let is_fading = |id: &String| FADING.contains(&id.as_str());
        !looked.blocks.is_empty() && looked.blocks.iter().all(is_fading)
    };
    for number in 1..FADING_LOOKS {
        if !fades(&looked) {
            break;
        }
        if number == 1 {
            Printer::on_stderr().warning(&format!(
                "{} may still tell of the run that was interrupted: looking again for a while",
                looked.blocks.join(" and ")
            ));
        }
        wait(FADING_PAUSE);
        looked = look()?;
    }
    Ok(looked)
}

/// The preflight.
fn look(
    matches: &ArgMatches,
    path: &Path,
    options: &BaselineOptions,
    device: &Device,
) -> Result<Looked, BaselineError> {
    if matches!(device, Device::Simulated(_)) {
        return Ok(Looked::not("a simulated device has no machine"));
    }
    if options.skip.iter().any(|step| step == PREFLIGHT) {
        return Ok(Looked::not("--skip preflight was given"));
    }
    // What a probe writes would be seen as the load of somebody else.
    let (forecast, _) = estimate(options, path, device, |_, _| machine::Writing::ASSUMED);
    let settings = settings(options);
    let plan = Plan {
        file_bytes: options.size,
        beside_bytes: bytes_beside(path, settings.iter()),
        copies: Some(options.copies.into()),
        block_bytes: Some(8192),
        seconds: Some(plumb_units::convert::floor_u64(forecast.seconds.1)),
        device_cache_bytes: options.device_cache,
    };
    let checks = machine::look_for_a_second(&SystemTree::default(), path, plan)
        .map_err(|source| BaselineError::Look { path: path.to_owned(), source })?;
    let accepted = arguments::accepted(matches);
    let warnings = checks
        .iter()
        .filter(|check| check.verdict >= Verdict::Warn)
        .map(|check| format!("{} ({}): {}", check.id, check.verdict.keyword(), check.evidence));
    let blocks = |check: &&preflight::Check| {
        check.verdict == Verdict::Block && !accepted.iter().any(|id| id == check.id)
    };
    Ok(Looked {
        verdicts: machine::verdicts(&checks, &accepted),
        blocks: checks.iter().filter(blocks).map(|check| check.id.to_owned()).collect(),
        warnings: warnings.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks one after the other, each with the checks that block; the number of looks, and those that block at the end.
    fn looks(blocks: &[&[&str]]) -> (u32, Vec<String>) {
        let times = |number: usize| u32::try_from(number).expect("few");
        let mut waited = Duration::ZERO;
        let mut number = 0_usize;
        let look = || -> Result<Looked, ()> {
            let blocks = blocks[number.min(blocks.len() - 1)];
            number += 1;
            let blocks = blocks.iter().map(|id| (*id).to_owned()).collect();
            Ok(Looked { blocks, ..Looked::not("a test") })
        };
        let found = look_until_faded(look, |pause| waited += pause).expect("looks");
        assert_eq!(waited, FADING_PAUSE * (times(number) - 1));
        (times(number), found.blocks)
    }

    #[test]
    fn what_the_interrupted_run_did_fades() {
        assert_eq!(looks(&[&[]]), (1, vec![]));
        assert_eq!(looks(&[&["load-psi"], &["load-psi", "load-disk"], &[]]), (3, vec![]));
        // Others are at work, or something else is wrong.
        assert_eq!(looks(&[&["load-psi"]]), (FADING_LOOKS, vec!["load-psi".to_owned()]));
        assert_eq!(looks(&[&["capacity"]]), (1, vec!["capacity".to_owned()]));
        let both = looks(&[&["load-psi", "health-md"]]);
        assert_eq!(both, (1, vec!["load-psi".to_owned(), "health-md".to_owned()]));
    }
}
