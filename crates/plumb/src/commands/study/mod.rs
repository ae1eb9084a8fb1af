//! What the commands that have many runs performed share: the study's folder, its device, its progress.

pub(super) mod arguments;
mod device;
pub(super) mod machine;
mod told;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ArgMatches;
use clap::parser::ValueSource;
use jiff::Timestamp;
use plumb_study::preflight;
use plumb_study::study::{
    self, Changed, ChildRuns, Device, End, FORMAT, Findings, Forecast, Journal, Kind, Perform,
    Planner, RunRecord, SimulatedDevice, Simulation, State, Study, StudyError, StudyFolder, Told,
};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

pub(super) use device::{
    DeviceError, Lack, SIZE, TargetError, critical, device_to_fill, file_bytes, refuse_foreign,
    refuse_unusable, simulated,
};
use told::Teller;
pub(super) use told::{duration, expected, extension, from_to, text};

use super::version;
use crate::message::Printer;

/// Exit status when a study is not finished and can be resumed.
pub(super) const PARTIAL: u8 = 5;

/// A study that is begun, or gone on with.
pub(super) struct Opened {
    pub(super) folder: StudyFolder,
    pub(super) journal: Journal,
    pub(super) study: Study,
    /// What is not as it was when it began.
    changed: Changed,
}

/// What is said of a study and not of its runs, on the command line or in a plan file.
#[derive(Debug, Clone, Default)]
pub(super) struct Around {
    pub(super) id: Option<String>,
    pub(super) simulate: Option<PathBuf>,
    pub(super) destroy: Vec<PathBuf>,
}

impl Around {
    /// As typed.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        Self {
            id: matches.get_one("id").cloned(),
            simulate: matches.get_one("simulate").cloned(),
            destroy: matches.get_many("destroy").into_iter().flatten().cloned().collect(),
        }
    }
}

/// Why a study cannot be worked on.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(super) enum OpenError {
    /// Its folder.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Study(#[from] StudyError),
    /// Another kind.
    #[error("the study `{id}` is a {found}, not a {wanted}")]
    #[diagnostic(code(plumb::study::kind), help("resume it with plumb {found} --resume {id}"))]
    Kind { id: String, found: &'static str, wanted: &'static str },
    /// The machine or target changed.
    #[error("the study `{id}` cannot go on, for this changed since it began: {what}")]
    #[diagnostic(
        code(plumb::study::changed),
        help("its runs would not be comparable; start a new study, or say --accept-changes")
    )]
    Changed { id: String, what: String },
    /// Its epoch.
    #[error("the study `{id}` was measured with epoch {was}; this program has epoch {is}")]
    #[diagnostic(
        code(plumb::study::epoch),
        help("results of different measuring methods are never mixed: start a new study")
    )]
    Epoch { id: String, was: u32, is: u32 },
    /// An option that says something else than the plan that is there.
    #[error("--{option} says {is}, and the study `{id}` was begun with {was}")]
    #[diagnostic(
        code(plumb::study::contradiction),
        help("leave the option away to go on with the study as it is, or start a new one")
    )]
    Contradicts { id: String, option: String, was: String, is: String },
    /// The folder cannot be made absolute.
    #[error("cannot find out where {} is", path.display())]
    #[diagnostic(code(plumb::study::target), help("name a file in a folder that exists"))]
    Target { path: PathBuf, source: std::io::Error },
}

impl OpenError {
    /// What contradicts the plan is a wrong command line, everything else an error.
    pub(super) fn status(&self) -> u8 {
        match self {
            Self::Contradicts { .. } => 2,
            _ => 1,
        }
    }
}

impl Opened {
    /// Whether it was begun, and died before [`Self::settle`]: nothing was run.
    pub(super) fn is_unsettled(&self) -> bool {
        self.study.estimate_range_s.is_none() && self.journal.records().is_empty()
    }

    /// Writes down what was found out before the first run, and takes seconds: how long the study takes, and what the
    /// preflight said, or why there was none.
    pub(super) fn settle(
        &mut self,
        forecast: Forecast,
        preflight: Value,
    ) -> Result<(), StudyError> {
        self.study.estimate_s = forecast.likely_s;
        self.study.estimate_range_s = Some(forecast.seconds);
        if let Some(environment) = &mut self.study.environment {
            environment["preflight"] = preflight;
        }
        self.folder.rewrite_plan(&self.study)
    }

    /// Refuses options on the command line that say something else than the plan of the study: its runs would not
    /// belong together. `options` are names of arguments, each with the key that it has in `given` and in the plan.
    pub(super) fn refuse_contradictions<'a>(
        &self,
        matches: &ArgMatches,
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
        given: &Value,
    ) -> Result<(), OpenError> {
        let is_given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
        for (option, key) in options.into_iter().filter(|(option, _)| is_given(option)) {
            self.refuse_contradiction(option, key, &given[key])?;
        }
        Ok(())
    }

    /// Refuses one option that says something else than the plan of the study.
    pub(super) fn refuse_contradiction(
        &self,
        option: &str,
        key: &str,
        is: &Value,
    ) -> Result<(), OpenError> {
        let was = &self.study.request[key];
        if was == is { Ok(()) } else { Err(self.contradicts(option, &plain(was), &plain(is))) }
    }

    fn contradicts(&self, option: &str, was: &str, is: &str) -> OpenError {
        OpenError::Contradicts {
            id: self.study.id.clone(),
            option: option.to_owned(),
            was: was.to_owned(),
            is: is.to_owned(),
        }
    }

    /// What every study has: its target, its name, its device.
    fn refuse_other_study(&self, around: &Around, target: Option<&Path>) -> Result<(), OpenError> {
        let study = &self.study;
        if let Some(id) = around.id.as_ref().filter(|id| **id != study.id) {
            return Err(self.contradicts("id", &study.id, id));
        }
        if let Some(file) = &around.simulate
            && simulated(file).ok().as_ref() != Some(&study.device)
        {
            let was = match study.device {
                Device::Real => "no simulated device",
                Device::Simulated(_) => "another simulated device",
            };
            return Err(self.contradicts("simulate", was, &file.display().to_string()));
        }
        let Some(target) = target else { return Ok(()) };
        let is_same = Path::new(&study.target) == target
            || std::path::absolute(target).is_ok_and(|path| path == Path::new(&study.target));
        match is_same {
            true => Ok(()),
            false => Err(OpenError::Contradicts {
                id: study.id.clone(),
                option: "resume".to_owned(),
                was: format!("the target {}", study.target),
                is: format!("to go on with {}", target.display()),
            }),
        }
    }
}

/// A value of a plan as people write it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "nothing of it".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// What a new study is made of.
pub(super) struct Planned {
    pub(super) kind: Kind,
    pub(super) title: String,
    pub(super) target: String,
    pub(super) device: Device,
    pub(super) devices: Option<u32>,
    pub(super) copies: u32,
    pub(super) seed: u64,
    pub(super) request: Value,
    pub(super) runs_most: u64,
    pub(super) runs_exhaustive: u64,
    /// Seconds that its runs take at most: what is to be expected is found out when it is safe, [`Opened::settle`].
    pub(super) seconds_most: f64,
    /// Bytes of files that are made first; 0 where what is there is measured as it is.
    pub(super) bytes_to_make: u64,
}

/// Refuses a name that a study has already, as beginning one of that name would; nothing is made.
pub(super) fn refuse_taken(around: &Around) -> Result<(), OpenError> {
    let Some(id) = around.id.as_deref() else { return Ok(()) };
    match StudyFolder::open(&study::studies_folder(), id) {
        Ok(_) => Err(StudyError::Exists { id: id.to_owned() }.into()),
        Err(StudyError::Unknown { .. } | StudyError::Unplanned { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Begins a study.
pub(super) fn create(around: &Around, planned: Planned) -> Result<Opened, OpenError> {
    let studies = study::studies_folder();
    let target = match &planned.device {
        Device::Real => std::path::absolute(&planned.target)
            .map_err(|source| OpenError::Target { path: planned.target.clone().into(), source })?,
        Device::Simulated(_) => PathBuf::from(&planned.target),
    };
    if planned.device == Device::Real && planned.bytes_to_make == 0 {
        warn_of_unwritten(&target);
    }
    let mut critical = critical(&target, &planned.device);
    if planned.device == Device::Real && planned.bytes_to_make == 0 {
        critical.extend(file_bytes(&target).map(|bytes| (SIZE.to_owned(), bytes)));
    }
    let now = Timestamp::now();
    let environment = machine::environment(&target, &planned.device);
    let given = around.id.clone();
    let base = format!("{}-{}", planned.kind.keyword(), now.strftime("%Y%m%d-%H%M%S"));
    let mut id = given.clone().unwrap_or_else(|| base.clone());
    let mut study = Study {
        format: FORMAT,
        id: String::new(),
        kind: planned.kind,
        title: planned.title,
        created: now.to_string(),
        tool: format!("plumb {}", version::VERSION),
        epoch: version::EPOCH,
        critical,
        target: target.display().to_string(),
        device: planned.device,
        devices: planned.devices,
        copies: planned.copies,
        seed: planned.seed,
        request: planned.request,
        runs_most: planned.runs_most,
        runs_exhaustive: planned.runs_exhaustive,
        estimate_s: planned.seconds_most,
        estimate_range_s: None,
        environment: Some(environment),
    };
    for number in 2.. {
        study.id.clone_from(&id);
        match StudyFolder::create(&studies, &study) {
            // Two in the same second; a name that was given is the user's own.
            Err(StudyError::Exists { .. } | StudyError::Locked { .. }) if given.is_none() => {
                id = format!("{base}-{number}");
            }
            Err(error) => return Err(error.into()),
            Ok(folder) => {
                let journal = folder.journal()?;
                return Ok(Opened { folder, journal, study, changed: Changed::default() });
            }
        }
    }
    unreachable!("names do not run out")
}

/// What was never written is read without a look at the device (method, 2.3).
fn warn_of_unwritten(target: &Path) {
    let share = preflight::never_written_share(target);
    if let Some(share) = share.filter(|share| *share > preflight::UNWRITTEN_MUCH) {
        Printer::on_stderr().warning(&format!(
            "{:.1} % of {} was never written, and reads there never reach the device: remove it, so that it is made \
             in full, or write all of it first",
            share * 100.0,
            target.display()
        ));
    }
}

/// Opens a study to go on with it. A `target` that is named is that of the study.
pub(super) fn resume(
    matches: &ArgMatches,
    around: &Around,
    id: &str,
    kind: Kind,
    named: Option<&Path>,
) -> Result<Opened, OpenError> {
    let folder = StudyFolder::open(&study::studies_folder(), id)?;
    let study = folder.plan()?;
    let id = id.to_owned();
    if study.kind != kind {
        let (found, wanted) = (study.kind.keyword(), kind.keyword());
        return Err(OpenError::Kind { id, found, wanted });
    }
    if study.epoch != version::EPOCH {
        return Err(OpenError::Epoch { id, was: study.epoch, is: version::EPOCH });
    }
    let target = Path::new(&study.target);
    let mut now = critical(target, &study.device);
    now.extend(file_bytes(target).map(|bytes| (SIZE.to_owned(), bytes)));
    let mut forbids: Vec<String> = study
        .critical
        .iter()
        .filter_map(|(what, was)| {
            let is = now.get(what).cloned().unwrap_or_default();
            (is != *was).then(|| format!("{what}: `{was}` and `{is}`"))
        })
        .collect();
    let mut what = Vec::new();
    if let Some(was) = &study.environment {
        let (more, told) = machine::changes(was, &machine::environment(target, &study.device));
        forbids.extend(more);
        what = told;
    }
    if let Some(first) = forbids.first().filter(|_| !matches.get_flag("accept-changes")) {
        return Err(OpenError::Changed { id, what: first.clone() });
    }
    for told in forbids.iter().chain(&what) {
        Printer::on_stderr().warning(&format!("this is not as it was: {told}"));
    }
    what.splice(0..0, forbids);
    let at = (study.device == Device::Real).then(|| Timestamp::now().to_string());
    let journal = folder.journal()?;
    let opened = Opened { folder, journal, study, changed: Changed { at, what } };
    opened.refuse_other_study(around, named)?;
    Ok(opened)
}

/// Works a study off, writes what `conclude` makes of its runs, and prints that.
pub(super) fn work(
    matches: &ArgMatches,
    around: &Around,
    opened: Opened,
    planner: &dyn Planner,
    conclude: &dyn Fn(&[RunRecord], Told) -> Findings,
) -> ExitCode {
    let printer = Printer::on_stderr();
    match worked(matches, around, opened, planner, conclude, printer) {
        Ok(code) => code,
        Err(error) => {
            printer.error(&error);
            ExitCode::FAILURE
        }
    }
}

fn worked(
    matches: &ArgMatches,
    around: &Around,
    opened: Opened,
    planner: &dyn Planner,
    conclude: &dyn Fn(&[RunRecord], Told) -> Findings,
    printer: Printer,
) -> Result<ExitCode, StudyError> {
    let Opened { folder, mut journal, study, changed } = opened;
    let stop = stop_flag(printer);
    let stops = || stop.load(Ordering::Relaxed);
    let now = || Timestamp::now().to_string();
    let mut performer: Box<dyn Perform> = match &study.device {
        Device::Simulated(device) => {
            let device: SimulatedDevice =
                serde_json::from_value(device.clone()).map_err(|source| StudyError::Damaged {
                    path: folder.path().join("plan.json"),
                    line: None,
                    what: source.to_string(),
                })?;
            Box::new(Simulation::new(device))
        }
        Device::Real => {
            let destroy = around.destroy.clone();
            let program = std::env::current_exe().unwrap_or_else(|_| "plumb".into());
            let runs = ChildRuns::new(program, (&study.target).into(), destroy, &stops, &now);
            Box::new(if changed.at.is_some() { runs.going_on() } else { runs })
        }
    };
    let said = Cell::new(false);
    let mut teller = Teller::new(&study, planner, journal.records(), &stops, &said);
    teller.starts(folder.path());
    let end =
        study::work(&folder, &mut journal, planner, performer.as_mut(), &mut teller, &changed)?;
    // A run that failed measured nothing: it is tried again when the study goes on.
    let (runs, missing) = study::counted_runs(journal.records());
    let is_whole = end == End::Complete && missing.is_empty();
    let state = if is_whole { State::Complete } else { State::Partial };
    let changed = afterwards(&folder, &study, end)?;
    let findings = conclude(
        &runs,
        Told {
            study: &study.id,
            state,
            runs_exhaustive: study.runs_exhaustive,
            environment: study.environment.as_ref(),
            resumptions: folder.resumptions()?.records(),
            changed: &changed,
        },
    );
    folder.write_findings(&findings)?;
    let report = super::report::study::write(&folder);
    if let Err(source) = &report {
        printer.warning(&format!("the report cannot be written: {source}"));
    }
    let printed = match matches.get_flag("json") {
        true => format!(
            "{}\n",
            serde_json::to_string(&findings).expect("findings have string keys only")
        ),
        false => {
            let place = report.map(|path| format!("\nReport: {}\n", path.display()));
            text(&findings, &study) + &place.unwrap_or_default()
        }
    };
    let none_measured = runs.len() == missing.len();
    let status = match end {
        End::Complete if is_whole => 0,
        End::Complete if none_measured => 1,
        End::Complete => PARTIAL,
        End::Failing => 1,
        End::TimeIsUp | End::Stopped => PARTIAL,
    };
    let word = study.kind.keyword();
    match end {
        End::Complete if is_whole => {}
        End::Complete => {
            for run in &missing {
                printer.warning(&format!(
                    "{}: {}: {}",
                    run.name(),
                    run.setting.short(),
                    told::why(run)
                ));
            }
            printer.warning(&format!(
                "{} of {} runs failed; plumb {word} --resume {} tries them again",
                missing.len(),
                runs.len(),
                study.id
            ));
        }
        End::TimeIsUp => printer.warning(&format!(
            "the budget is used up; plumb {word} --resume {} goes on with a new one",
            study.id
        )),
        End::Stopped => printer.warning(&format!(
            "stopped; what was measured is kept, and plumb {word} --resume {} goes on",
            study.id
        )),
        End::Failing => printer.warning(&format!(
            "three runs failed one after the other: {}; plumb {word} --resume {} tries them again",
            journal.records().last().map_or(String::new(), told::why),
            study.id
        )),
    }
    Ok(super::print_and_exit(&printed, status))
}

/// Records the environment after the last run (method, 2.2), and says what changed since before the first.
fn afterwards(folder: &StudyFolder, study: &Study, end: End) -> Result<Vec<String>, StudyError> {
    let Some(before) = study.environment.as_ref().filter(|_| study.device == Device::Real) else {
        return Ok(Vec::new());
    };
    if end != End::Complete {
        return Ok(Vec::new());
    }
    let after = machine::environment(Path::new(&study.target), &study.device);
    folder.write_environment_after(&after)?;
    let (hardware, others) = machine::changes(before, &after);
    Ok([hardware, others].concat())
}

/// Ctrl-C, SIGTERM and a terminal that goes away set it; the second one ends the program.
fn stop_flag(printer: Printer) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let second = flag::register_conditional_default(signal, Arc::clone(&stop));
        if let Err(error) = second.and(flag::register(signal, Arc::clone(&stop))) {
            printer.warning(&format!("signal {signal} will end the study at once: {error}"));
        }
    }
    stop
}
