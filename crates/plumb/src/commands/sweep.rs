//! `plumb sweep` and `plumb plan show`: settings that somebody chose, run in an order that misleads nobody.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use miette::Diagnostic;
use plumb_study::knee::Policy;
use plumb_study::study::{
    Conditioning, Device, Forecast, GAP_S, Kind, PlanError, RunOrder, RunRecord, SweepOptions,
    SweepPlan, SweepPlanner, Told, bytes_to_find, bytes_to_make, may_end_early, sweep_findings,
};
use plumb_study::sweep_time;
use plumb_units::words::number_of;
use serde_json::{Value, json};

use super::caps::{self, CapsFileError};
use super::study::arguments::{self, flag, many, word};
use super::study::{
    self, Around, DeviceError, Lack, OpenError, Planned, TargetError, duration, expected, machine,
};
use crate::message::Printer;

/// For clap.
pub(crate) fn command() -> Command {
    Command::new("sweep")
        .about("Measure many settings, and say which is best and where the knee is")
        .long_about(
            "Measure many settings, and say which is best and where the knee of each curve is. Every parameter of \
             the load can be varied, several at once. The runs are in a random order of repetitions, with a \
             reference setting between them that shows drift; each is written down when it is over, so that a \
             sweep that is interrupted at any point goes on with --resume. With --adaptive the queue depth is \
             searched in less than half of the runs.",
        )
        .arg(target().required_unless_present_any(["plan", "resume", "simulate"]))
        .args(plan_options())
        .args(arguments::of_every_study())
        .after_help(
            "Exit status: 0 if all is measured, 1 if it cannot be, 2 for a wrong command line, 5 if it is not \
             finished and can be resumed.\n\nFor example:\n  \
             plumb sweep f.dat --set size=64G --vary o=1..24 --vary t=4,8\n  \
             plumb sweep f.dat --set size=64G --set t=8 --vary o=1..64 --adaptive --budget 30m\n  \
             plumb sweep --plan night.toml --dry-run",
        )
}

/// `plumb plan`, for clap.
pub(crate) fn plan_command() -> Command {
    let show = Command::new("show")
        .about("Show what a sweep would run: settings in their order, runs, time")
        .arg(target().help(
            "File or device to measure, or a plan file, as with --plan: its name ends in .toml",
        ))
        .args(plan_options())
        .arg(super::answers::json_option().help("Print one JSON object"));
    Command::new("plan").about("Plans of sweeps").subcommand_required(true).subcommand(show)
}

fn target() -> Arg {
    Arg::new("target")
        .value_name("TARGET")
        .value_hint(ValueHint::AnyPath)
        .help("File or device to measure; a file is made if --set size=SIZE is given")
}

fn plan_options() -> Vec<Arg> {
    let mut list = vec![
        Arg::new("plan")
            .long("plan")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help("A TOML file with these options as keys; options on the command line go first"),
        many(
            "vary",
            "NAME=VALUES",
            "An axis: o=1..32, o=8..64/8, o=1..64*2, b=4K,64K, t:o=1:8,2:4; t, o, b, w, F, access, cache, rate, size or a long option of plumb run",
        ),
        many(
            "set",
            "NAME=VALUE",
            "One value for all settings [default: b=8K t=8 o=12 w=30 access=random cache=h]",
        ),
        arguments::seconds("cooldown", "After each measurement [default: 0]"),
        arguments::count("repetitions", "N", "Runs of each setting [default: 3]"),
        word(
            "order",
            "ORDER",
            "random (blocks of repetitions), as-given or sorted [default: random]",
        )
        .value_parser(["random", "as-given", "sorted"]),
        arguments::seed("Of the order and of random offsets [default: 1]"),
        flag("no-anchors", "Leave out the reference setting that shows drift"),
        flag(
            "adaptive",
            "Search the knee on o, or where o is not varied by itself the best threads, instead of running every value",
        ),
        flag(
            "full-length",
            "Measure the whole duration even if a run is steady and precise before",
        ),
        flag("no-latency", "Do not measure the latency of each I/O: it costs some throughput"),
        word("budget", "TIME", "End when this is used up: 2h, 45m, 300s"),
        word(
            "policy",
            "POLICY",
            "Which queue depth is recommended: throughput, balanced or latency [default: balanced]",
        )
        .value_parser(Policy::ALL.map(Policy::keyword)),
        Arg::new("latency-budget")
            .long("latency-budget")
            .value_name("MS")
            .value_parser(value_parser!(f64))
            .help("Largest mean latency that is acceptable"),
    ];
    list.extend(arguments::behind());
    list.extend(arguments::timing(
        "Before each measurement [default: 10]",
        "Of each measurement, at most [default: 60]",
    ));
    list
}

/// The options as typed.
fn typed(matches: &ArgMatches) -> Result<SweepOptions, SweepError> {
    let many = |name: &str| -> Vec<String> {
        matches.get_many(name).into_iter().flatten().cloned().collect()
    };
    let count = |name: &str| matches.get_one::<u32>(name).copied();
    let word = |name: &str| matches.get_one::<String>(name).cloned();
    let flag = |name: &str| matches.get_flag(name).then_some(true);
    Ok(SweepOptions {
        target: word("target"),
        vary: many("vary"),
        set: many("set"),
        warmup: count("warmup"),
        duration: count("duration"),
        cooldown: count("cooldown"),
        gap: count("gap"),
        conditioning: arguments::conditioning(matches),
        repetitions: count("repetitions"),
        order: word("order").and_then(|word| RunOrder::of_keyword(&word)),
        seed: matches.get_one("seed").copied(),
        anchors: flag("no-anchors").map(|none| !none),
        adaptive: flag("adaptive"),
        full_length: flag("full-length"),
        no_latency: flag("no-latency"),
        budget: word("budget"),
        policy: word("policy"),
        latency_budget_ms: matches.get_one("latency-budget").copied(),
        ssds: count("ssds"),
        copies: count("copies"),
        cap: [many("cap"), caps::named_words(matches)?].concat(),
        ..SweepOptions::default()
    })
}

/// Bytes of the smallest sector of any device: direct I/O takes no parts of one.
const SECTOR: u64 = 512;

/// Refuses settings of which no run could be started on a real target, as far as one is named.
fn refuse_impossible(
    plan: &SweepPlan,
    target: Option<&str>,
    device: &Device,
) -> Result<(), SweepError> {
    if !matches!(device, Device::Real) {
        return Ok(());
    }
    let missing = target.filter(|target| !Path::new(target).try_exists().unwrap_or(true));
    for setting in &plan.settings {
        if let Some(path) = missing.filter(|_| setting.file_bytes.is_none()) {
            let (path, setting) = (path.to_owned(), setting.short());
            return Err(SweepError::NoFile { path, setting });
        }
        let bytes = setting.block_bytes;
        if setting.bypasses_page_cache() && !bytes.is_multiple_of(SECTOR) {
            return Err(SweepError::Unaligned { setting: setting.short(), bytes });
        }
    }
    Ok(())
}

/// Why there is no sweep.
#[derive(Debug, thiserror::Error, Diagnostic)]
enum SweepError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Caps(#[from] CapsFileError),
    #[error("cannot read the plan {}", path.display())]
    #[diagnostic(code(plumb::plan::read), help("name a TOML file that exists"))]
    Read { path: PathBuf, source: std::io::Error },
    #[error("no target is named")]
    #[diagnostic(
        code(plumb::plan::target),
        help("name one, or say `target` or `simulate` in the plan file")
    )]
    NoTarget,
    #[error("nothing is varied, and {path} is named as the target, not as the plan")]
    #[diagnostic(code(plumb::plan::place), help("write --plan {path}"))]
    PlanAsTarget { path: String },
    #[error("`{id}` in the plan file is no name of a study")]
    #[diagnostic(code(plumb::plan::id))]
    Name {
        id: String,
        #[help]
        help: String,
    },
    #[error("{path} does not exist, and {setting} says no size to make it with")]
    #[diagnostic(
        code(plumb::plan::no_file),
        help("say --set size=64G, or name a file that exists")
    )]
    NoFile { path: String, setting: String },
    #[error(
        "{setting}: past the page cache no I/O of {bytes} bytes is possible, only multiples of 512"
    )]
    #[diagnostic(
        code(plumb::plan::unaligned),
        help("leave that block size away, or say --set cache=b")
    )]
    Unaligned { setting: String, bytes: u64 },
    #[error("the plan of the study cannot be read: {what}")]
    #[diagnostic(code(plumb::plan::request), help("start a new study"))]
    Request { what: String },
}

impl SweepError {
    /// A wrong command line or plan is 2.
    fn status(&self) -> u8 {
        match self {
            Self::Target(TargetError::Room { .. }) => 1,
            Self::Target(TargetError::Foreign(_) | TargetError::WholeDevice { .. }) => 3,
            Self::Plan(_)
            | Self::Caps(_)
            | Self::Read { .. }
            | Self::NoTarget
            | Self::NoFile { .. }
            | Self::Unaligned { .. }
            | Self::Name { .. }
            | Self::PlanAsTarget { .. }
            | Self::Target(_)
            | Self::Device(_) => 2,
            Self::Open(error) => error.status(),
            Self::Request { .. } => 1,
        }
    }
}

/// Options of the plan file and of the command line.
fn options(matches: &ArgMatches) -> Result<SweepOptions, SweepError> {
    let typed = typed(matches)?;
    let Some(path) = matches.get_one::<PathBuf>("plan") else {
        let is_plan = |path: &&String| typed.vary.is_empty() && is_plan_file(path);
        return match typed.target.as_ref().filter(is_plan) {
            Some(path) => Err(SweepError::PlanAsTarget { path: path.clone() }),
            None => Ok(typed),
        };
    };
    over_file(typed, path)
}

fn is_plan_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// Options over those of a plan file.
fn over_file(typed: SweepOptions, path: &Path) -> Result<SweepOptions, SweepError> {
    let text = fs::read_to_string(path)
        .map_err(|source| SweepError::Read { path: path.to_owned(), source })?;
    let mut file = SweepOptions::of_toml(&text)?;
    if let Some(path) = file.caps.take() {
        file.cap.extend(caps::words_of(path)?);
    }
    if let Some(id) = &file.id {
        arguments::study_name(id).map_err(|help| SweepError::Name { id: id.clone(), help })?;
    }
    Ok(typed.over(file))
}

/// What is said of the study itself: on the command line or, where nothing of it is, in the plan file.
fn around(matches: &ArgMatches, options: &SweepOptions) -> Around {
    let typed = Around::of(matches);
    Around {
        id: typed.id.or(options.id.clone()),
        simulate: typed.simulate.or(options.simulate.clone()),
        destroy: match typed.destroy.is_empty() {
            true => options.destroy.clone(),
            false => typed.destroy,
        },
    }
}

/// `plumb sweep`.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    match sweep(matches) {
        Ok(code) => code,
        Err(error) => {
            Printer::on_stderr().error(&error);
            error.status().into()
        }
    }
}

fn sweep(matches: &ArgMatches) -> Result<ExitCode, SweepError> {
    let opened;
    let around_it;
    let mut options = match matches.get_one::<String>("resume") {
        Some(id) => {
            let given = options(matches)?;
            around_it = around(matches, &given);
            let target = given.target.as_deref().map(Path::new);
            let found = study::resume(matches, &around_it, id, Kind::Sweep, target)?;
            let kept: SweepOptions = serde_json::from_value(found.study.request.clone())
                .map_err(|error| SweepError::Request { what: error.to_string() })?;
            refuse_contradictions(&found, &given)?;
            opened = Some(found);
            // Only how long it may still take can be said anew.
            SweepOptions { budget: typed(matches)?.budget.or(kept.budget.clone()), ..kept }
        }
        None => {
            opened = None;
            let mut options = options(matches)?;
            around_it = around(matches, &options);
            if options.cap.is_empty() {
                options.cap = caps::words(matches)?;
            }
            // A simulated device needs no target: it goes by the name of its file.
            let device = || around_it.simulate.as_ref().map(|path| path.display().to_string());
            options.target = options.target.or_else(device);
            options
        }
    };
    let mut plan = options.plan()?;
    let target = options.target.clone().ok_or(SweepError::NoTarget)?;
    let device = match (&opened, &around_it.simulate) {
        (Some(opened), _) => opened.study.device.clone(),
        (None, Some(path)) => study::simulated(path)?,
        (None, None) => Device::Real,
    };
    // A dry run refuses what the run itself would.
    study::refuse_unusable(Path::new(&target), &device)?;
    if opened.is_none() && plan.conditioning == Conditioning::PtsDevice {
        let bytes = study::device_to_fill(Path::new(&target), &device, &around_it.destroy)?;
        (options.device_bytes, plan.device_bytes) = (Some(bytes), Some(bytes));
    }
    let planner = SweepPlanner::new(plan.clone());
    if opened.is_none() {
        refuse_impossible(&plan, Some(&target), &device)?;
        let (path, settings) = (Path::new(&target), plan.settings.iter());
        study::refuse_foreign(path, &device, settings, &around_it.destroy)?;
        study::refuse_taken(&around_it)?;
    }
    if matches.get_flag("dry-run") {
        let estimate = Estimate::of(&planner, Path::new(&target), &device);
        let text = match matches.get_flag("json") {
            true => format!("{}\n", estimate.object()),
            false => estimate.text(),
        };
        return Ok(super::print(&text));
    }
    let mut opened = match opened {
        Some(opened) => opened,
        None => create(&around_it, &options, &planner, target, device)?,
    };
    // What it takes is rehearsed when the study is safe: that takes seconds, in which it may be killed.
    if opened.is_unsettled() {
        let study = &opened.study;
        let estimate = Estimate::of(&planner, Path::new(&study.target), &study.device);
        let preflight = machine::not_looked("plumb sweep looks at no machine; plumb check does");
        opened.settle(estimate.forecast, preflight).map_err(OpenError::from)?;
    }
    let conclude = |runs: &[RunRecord], told: Told| sweep_findings(&plan, runs, told);
    Ok(study::work(matches, &around_it, opened, &planner, &conclude))
}

/// Begins one.
fn create(
    around: &Around,
    options: &SweepOptions,
    planner: &SweepPlanner,
    target: String,
    device: Device,
) -> Result<study::Opened, SweepError> {
    let plan = planner.plan();
    let files = Files::of(plan, Path::new(&target), &device);
    if let Some(lack) = files.lack {
        return Err(TargetError::Room { path: target.into(), lack }.into());
    }
    let (most, exhaustive) = planner.counts();
    let planned = Planned {
        kind: Kind::Sweep,
        title: format!("{} over {}", target, options.vary.join(", ")),
        target,
        device,
        devices: plan.devices,
        copies: plan.copies,
        seed: plan.seed,
        request: serde_json::to_value(options)
            .map_err(|error| SweepError::Request { what: error.to_string() })?,
        runs_most: most,
        runs_exhaustive: exhaustive,
        seconds_most: runs_s(planner),
        bytes_to_make: files.bytes,
    };
    Ok(study::create(around, planned)?)
}

/// Refuses what the command line or a plan file says otherwise than the study that goes on. Its target was looked at,
/// and how long it may still take can be said anew.
fn refuse_contradictions(opened: &study::Opened, given: &SweepOptions) -> Result<(), SweepError> {
    let request = |options: &SweepOptions| {
        serde_json::to_value(options)
            .map_err(|error| SweepError::Request { what: error.to_string() })
    };
    let said = SweepOptions { target: None, budget: None, ..given.clone() };
    let nothing = request(&SweepOptions::default())?;
    let said = request(&said)?;
    let said = said.as_object().into_iter().flatten();
    for (key, is) in said.filter(|(key, is)| **is != nothing[key.as_str()]) {
        let option = match key.as_str() {
            "anchors" => "no-anchors",
            "latency-budget-ms" => "latency-budget",
            key => key,
        };
        opened.refuse_contradiction(option, key, is)?;
    }
    Ok(())
}

/// `plumb plan show`.
pub(crate) fn show(matches: &ArgMatches) -> ExitCode {
    let shown = || -> Result<String, SweepError> {
        let named = matches.get_one::<String>("target").filter(|name| is_plan_file(name));
        let options = match named.filter(|_| !matches.contains_id("plan")) {
            Some(file) => {
                over_file(SweepOptions { target: None, ..typed(matches)? }, Path::new(file))?
            }
            None => options(matches)?,
        };
        let planner = SweepPlanner::new(options.plan()?);
        let device = match &options.simulate {
            Some(path) => study::simulated(path)?,
            None => Device::Real,
        };
        // A plan is one for any target until one is named.
        let target = options.target.as_deref();
        if let Some(target) = target {
            study::refuse_unusable(Path::new(target), &device)?;
        }
        refuse_impossible(planner.plan(), target, &device)?;
        let target = Path::new(target.unwrap_or_default());
        let estimate = Estimate::of(&planner, target, &device);
        let settings: Vec<String> = match planner.plan().adaptive {
            true => {
                let what = planner.searched_parameter();
                let each = planner.groups().iter();
                each.map(|group| format!("{}, {what} searched", group.short())).collect()
            }
            false => planner
                .sequence()
                .map(|order| {
                    let word = format!("{:?}", order.purpose).to_lowercase();
                    format!("{} ({word} {})", order.setting.short(), order.repetition)
                })
                .collect(),
        };
        if matches.get_flag("json") {
            let mut object = estimate.object();
            object["runs_in_order"] = json!(settings);
            return Ok(format!("{object}\n"));
        }
        let lines: String =
            (1..).zip(&settings).map(|(n, line)| format!("{n:>6}  {line}\n")).collect();
        Ok(format!("{lines}{}", estimate.text()))
    };
    match shown() {
        Ok(text) => super::print(&text),
        Err(error) => {
            Printer::on_stderr().error(&error);
            error.status().into()
        }
    }
}

/// Files that are made for a sweep.
struct Files {
    /// Their bytes.
    bytes: u64,
    /// Room that is missing for them.
    lack: Option<Lack>,
}

impl Files {
    fn of(plan: &SweepPlan, target: &Path, device: &Device) -> Self {
        let settings = || plan.settings.iter();
        match device {
            Device::Real => Self {
                bytes: bytes_to_make(target, settings()),
                lack: Lack::of(target, bytes_to_find(target, settings())),
            },
            Device::Simulated(_) => Self { bytes: 0, lack: None },
        }
    }
}

/// Seconds of all runs of a sweep, each as long as it may be.
fn runs_s(planner: &SweepPlanner) -> f64 {
    let plan = planner.plan();
    let each = sweep_time::RunTime {
        warm_up_s: plan.base.warm_up_s.into(),
        measured_s: plan.base.measured_s.into(),
        cool_down_s: plan.base.cool_down_s.into(),
        gap_s: GAP_S + f64::from(plan.gap_s),
    };
    sweep_time::sweep_s(planner.counts().0, each, 0.0)
}

/// How many runs, and how long (4.1).
struct Estimate {
    runs: u64,
    exhaustive: u64,
    /// Runs of the settings alone, repetitions included.
    of_settings: u64,
    settings: usize,
    /// Seconds of all runs, each as long as it may be.
    runs_s: f64,
    /// What is to be expected, files included.
    forecast: Forecast,
    /// Bytes that have to be written first, and the seconds that takes.
    bytes: u64,
    creation_s: f64,
    writing: machine::Writing,
    /// Room that is missing for them.
    lack: Option<Lack>,
    budget_s: Option<f64>,
    is_searched: bool,
    /// Whether runs are long enough to end before their time, and may.
    ends_early: bool,
}

impl Estimate {
    fn of(planner: &SweepPlanner, target: &Path, device: &Device) -> Self {
        let plan = planner.plan();
        let (runs, exhaustive) = planner.counts();
        let Files { bytes, lack } = Files::of(plan, target, device);
        let writing = machine::writing(target, bytes);
        let creation_s = writing.seconds(bytes);
        let forecast = Forecast::of_sweep(planner, writing.bytes_per_s);
        Self {
            runs,
            exhaustive,
            of_settings: plan.settings.len() as u64 * u64::from(plan.repetitions),
            settings: plan.settings.len(),
            runs_s: runs_s(planner),
            bytes,
            creation_s,
            forecast: forecast.after((creation_s, creation_s, creation_s)),
            writing,
            lack,
            budget_s: plan.budget_s,
            is_searched: plan.adaptive,
            ends_early: plan.early_end && may_end_early(plan.base.measured_s),
        }
    }

    fn object(&self) -> Value {
        json!({
            "settings": self.settings,
            "runs_most": self.runs,
            "runs_exhaustive": self.exhaustive,
            "runs_s": self.runs_s,
            "bytes_to_write": self.bytes,
            "creation_s": self.creation_s,
            "bytes_missing": self.lack.as_ref().map_or(0, Lack::bytes),
            "write_rate_is_measured": self.writing.is_measured,
            "runs_least": self.forecast.runs.0,
            "estimate_s": self.forecast.likely_s,
            "estimate_least_s": self.forecast.seconds.0,
            "estimate_most_s": self.forecast.seconds.1,
            "budget_s": self.budget_s,
        })
    }

    fn text(&self) -> String {
        let (without, others) = match self.is_searched {
            true => ("search", self.exhaustive),
            false => ("reference", self.of_settings),
        };
        let mut text = format!(
            "{} settings; at most {} (without the {without}: {others}): {}\n\
             to be expected: {}\n",
            self.settings,
            number_of(self.runs, "run"),
            duration(self.runs_s),
            expected(&self.forecast)
        );
        if self.bytes > 0 {
            text.push_str(&format!(
                "files to be written first: {:.1} GiB, {} ({})\n",
                self.bytes as f64 / f64::from(1 << 30),
                duration(self.creation_s),
                self.writing.words()
            ));
        }
        if let Some(lack) = &self.lack {
            text.push_str(&format!("too large for this file system: {lack}\n"));
        }
        if let Some(budget) = self.budget_s {
            text.push_str(&format!("budget: {}\n", duration(budget)));
        }
        if self.ends_early {
            text.push_str("runs end earlier where they are steady and precise after 30 s\n");
        }
        text
    }
}
