//! `plumb runs`: runs that are kept.

mod export;
mod studies;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use jiff::Timestamp;
use plumb_store::{Entry, NewRun, Origin, Store, StoreError, StoredRun, Summary};
use plumb_study::record::{self, Overview, RecordError};
use plumb_study::study::StudyError;
use serde_json::{Value, json};
use studies::Meant;

use super::answers;
use super::sources::{self, SourceError};
use crate::message::Printer;

/// For clap.
pub(crate) fn command() -> Command {
    let run = || {
        Arg::new("run")
            .value_name("RUN")
            .required(true)
            .help("An id or its beginning, a label (its newest run), or latest; ~1 at its end: the one before. Or a study by its name")
    };
    let several = || run().num_args(1..).action(ArgAction::Append);
    let label = |help: &'static str| Arg::new("label").long("label").value_name("LABEL").help(help);
    let files = Arg::new("file")
        .value_name("FILE")
        .required(true)
        .num_args(1..)
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("Results of DISKSPD or Plumb: text, XML or JSON");
    Command::new("runs")
        .about("List, show, export and repeat the runs and studies that are kept")
        .long_about(
            "List, show, export and repeat the runs that are kept. `plumb run --store` keeps a run, with the \
             environment before and after it; `plumb runs import` keeps results that are there already. They \
             lie below the state directory (XDG_STATE_HOME), a document each. Baselines, sweeps and quick \
             figures are kept by themselves, a folder each; they are in the same list, and are shown, exported \
             and removed by their names.",
        )
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("list")
                .about("List them, oldest first: of a run its figures, of a study its kind, runs and state")
                .args([label("Only runs with this label"), answers::json_option()]),
        )
        .subcommand(
            Command::new("show")
                .about("Show one: what was run, where, and its figures; of a study its findings")
                .args([run(), answers::json_option()]),
        )
        .subcommand(Command::new("rm").about("Remove runs and studies for good").arg(several()))
        .subcommand(export::command(several()))
        .subcommand(
            Command::new("import")
                .about("Keep results that are there already")
                .args([files, label("Keep them under this label")]),
        )
        .subcommand(
            Command::new("rerun")
                .about("Run it again, with the same arguments in the same folder, and keep that too")
                .arg(run()),
        )
        .after_help(
            "For example:\n  plumb run --store=nightly -b4K -r -d60 -L data.dat\n  plumb runs list\n  \
             plumb compare nightly~1 nightly\n  plumb runs export latest --dir out --parquet",
        )
}

/// Does what was asked for.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let (name, matches) = matches.subcommand().expect("clap requires it");
    let store = match sources::open() {
        Ok(store) => store,
        Err(error) => return failed(&error),
    };
    for path in store.damaged() {
        let words = format!("{} is damaged and left out", path.display());
        Printer::on_stderr().warning(&words);
    }
    let outcome = match name {
        "list" => list(&store, matches),
        "show" => show(&store, matches),
        "rm" => remove(&store, matches),
        "export" => export::run(&store, matches),
        "import" => import(&store, matches),
        "rerun" => rerun(&store, matches),
        other => unreachable!("clap let {other} pass"),
    };
    outcome.unwrap_or_else(|error| failed(&error))
}

fn failed(error: &dyn miette::Diagnostic) -> ExitCode {
    Printer::on_stderr().error(error);
    ExitCode::FAILURE
}

/// Runs and studies as they were named, each once, before anything is done to any.
fn named(store: &Store, matches: &ArgMatches) -> Result<Vec<Meant>, RunsError> {
    let mut all: Vec<Meant> = Vec::new();
    for name in matches.get_many::<String>("run").into_iter().flatten() {
        let meant = studies::resolve(store, name)?;
        if !all.contains(&meant) {
            all.push(meant);
        }
    }
    Ok(all)
}

/// The run that was named; a study is refused.
fn one_run(store: &Store, matches: &ArgMatches) -> Result<StoredRun, RunsError> {
    let name = matches.get_one::<String>("run").expect("clap requires it");
    match studies::resolve(store, name)? {
        Meant::Run(id) => Ok(store.read(&id)?),
        Meant::Study(id) => Err(RunsError::IsStudy { id }),
    }
}

fn list(store: &Store, matches: &ArgMatches) -> Result<ExitCode, RunsError> {
    let label = matches.get_one::<String>("label").map(String::as_str);
    let entries = store.list(label)?;
    // Studies have no labels.
    let studies = if label.is_some() { Vec::new() } else { studies::catalogued(store)? };
    if matches.get_flag("json") {
        let runs = entries.iter().map(|entry| (entry.stored_at.as_str(), object(entry)));
        let mut all: Vec<(&str, Value)> = runs.collect();
        all.extend(studies.iter().map(|entry| (entry.created.as_str(), studies::object(entry))));
        all.sort_by_key(|(at, _)| *at);
        let lines: String = all.iter().map(|(_, object)| format!("{object}\n")).collect();
        return Ok(super::print(&lines));
    }
    let mut lines: Vec<(&str, String)> =
        studies.iter().map(|entry| (entry.created.as_str(), row(studies::cells(entry)))).collect();
    for entry in &entries {
        let summary = &entry.summary;
        let figure = |value: Option<f64>, places: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.places$}"))
        };
        let line = row([
            entry.id.clone(),
            entry.label.clone().unwrap_or_else(|| "-".to_owned()),
            figure(summary.iops, 1),
            figure(summary.mib_per_s, 2),
            figure(summary.latency_ms, 3),
            summary.target.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
        lines.push((&entry.stored_at, line));
    }
    lines.sort();
    let heading = ["id", "label", "I/Os per s", "MiB/s", "mean ms", "target"];
    let heading = if lines.is_empty() { String::new() } else { row(heading.map(str::to_owned)) };
    let text: String =
        std::iter::once(heading).chain(lines.into_iter().map(|(_, line)| line)).collect();
    Ok(super::print(&text))
}

fn row(cells: [String; 6]) -> String {
    let [id, label, iops, rate, latency, target] = cells.map(|cell| printable(&cell));
    format!("{id:<26} {label:<15} {iops:>12} {rate:>10} {latency:>9}  {target}\n")
}

/// A text of somebody else's on one line: what would end the line or steer the terminal is escaped.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown
}

fn object(entry: &Entry) -> Value {
    json!({
        "id": entry.id,
        "stored_at": entry.stored_at,
        "origin": entry.origin,
        "label": entry.label,
        "summary": entry.summary,
    })
}

fn show(store: &Store, matches: &ArgMatches) -> Result<ExitCode, RunsError> {
    let name = matches.get_one::<String>("run").expect("clap requires it");
    let run = match studies::resolve(store, name)? {
        Meant::Run(id) => store.read(&id)?,
        Meant::Study(id) => {
            return Ok(super::print(&studies::shown(&id, matches.get_flag("json"))?));
        }
    };
    if matches.get_flag("json") {
        let text = serde_json::to_string(&run).expect("a run is JSON");
        return Ok(super::print(&format!("{text}\n")));
    }
    Ok(super::print(&shown(&run)))
}

fn shown(run: &StoredRun) -> String {
    let mut text = format!("{}\n", run.id);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("  {name:<13}{}\n", printable(&value)));
        }
    };
    let summary = &run.summary;
    add("label", run.label.clone());
    add("stored", Some(run.stored_at.clone()));
    add("came by", Some(run.origin.keyword().to_owned()));
    add("started", summary.started_at.clone());
    add("command", summary.command_line.clone());
    add("folder", run.working_folder.clone());
    add("measured by", summary.epoch.clone());
    add("I/Os per s", summary.iops.map(|value| format!("{value:.2}")));
    add("MiB/s", summary.mib_per_s.map(|value| format!("{value:.2}")));
    add("mean ms", summary.latency_ms.map(|value| format!("{value:.3}")));
    add("ended", summary.interrupted.then(|| "early, by the user".to_owned()));
    let groups = &run.environment["groups"];
    let fact = |pointer: &str| groups.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    add("kernel", fact("/kernel/release"));
    add("processor", fact("/cpu/model"));
    add("device", fact("/device/0/model"));
    add("file system", fact("/fs/0/kind"));
    text
}

fn remove(store: &Store, matches: &ArgMatches) -> Result<ExitCode, RunsError> {
    for meant in named(store, matches)? {
        match meant {
            Meant::Run(id) => store.remove(&id)?,
            Meant::Study(id) => studies::remove(store, &id)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn import(store: &Store, matches: &ArgMatches) -> Result<ExitCode, RunsError> {
    let label = matches.get_one::<String>("label");
    let mut text = String::new();
    for path in matches.get_many::<PathBuf>("file").into_iter().flatten() {
        let id = store.add(imported(path, label.cloned())?)?;
        text.push_str(&format!("{id} {}\n", path.display()));
    }
    Ok(super::print(&text))
}

/// A result file as a run to keep.
fn imported(path: &Path, label: Option<String>) -> Result<NewRun, RunsError> {
    let read = |source| RunsError::Source(SourceError::Read { path: path.to_owned(), source });
    let bytes = super::sources::read_bounded(path).map_err(read)?;
    let no_result = |source| RunsError::NoResult { path: path.to_owned(), source };
    let records = record::read(&bytes).map_err(no_result)?;
    let first = records.first().expect("a result has a record");
    let mut summary = summary(&first.overview);
    summary.epoch.clone_from(&first.epoch);
    // A stored run that somebody hands over keeps its environment.
    let object: Option<Value> = serde_json::from_slice(&bytes).ok();
    let stored = object.as_ref().filter(|object| object.get("store_version").is_some());
    let environment = stored.map_or((Value::Null, Value::Null), |stored| {
        (stored["environment"].clone(), stored["environment_after"].clone())
    });
    let result = match (stored, &object) {
        (Some(stored), _) => stored["result"].clone(),
        (None, Some(object)) => object.clone(),
        (None, None) => String::from_utf8_lossy(&bytes).into_owned().into(),
    };
    Ok(NewRun {
        origin: Origin::Import,
        label,
        summary,
        arguments: None,
        working_folder: None,
        environment,
        result,
    })
}

/// What a list shows of a result; how it was measured is added by who knows it.
pub(super) fn summary(overview: &Overview) -> Summary {
    Summary {
        started_at: overview.started_at.clone().or_else(|| Some(Timestamp::now().to_string())),
        command_line: overview.command_line.clone(),
        target: overview.target.clone(),
        epoch: None,
        iops: overview.iops,
        mib_per_s: overview.mib_per_s,
        latency_ms: overview.latency_ms,
        interrupted: overview.interrupted,
    }
}

fn rerun(store: &Store, matches: &ArgMatches) -> Result<ExitCode, RunsError> {
    let run = one_run(store, matches)?;
    let Some(mut arguments) = run.arguments else {
        return Err(RunsError::NoArguments { id: run.id });
    };
    if let Some(folder) = run.working_folder {
        let enter =
            |source| RunsError::Source(SourceError::Read { path: folder.clone().into(), source });
        std::env::set_current_dir(&folder).map_err(enter)?;
    }
    if !arguments.iter().any(|word| word.starts_with("--store")) {
        arguments.insert(0, "--store".to_owned());
    }
    let arguments: Vec<std::ffi::OsString> = arguments.into_iter().map(Into::into).collect();
    Ok(super::run::run("plumb run", &arguments))
}

/// Why a command fails.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum RunsError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Source(SourceError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Study(StudyError),
    #[error("{id} is a study, not a run")]
    #[diagnostic(
        code(plumb::runs::study),
        help(
            "its runs are repeated by measuring it again; `plumb runs show {id}` says what it asked"
        )
    )]
    IsStudy { id: String },
    #[error("{} is no result", path.display())]
    #[diagnostic(
        code(plumb::runs::no_result),
        help("results are what DISKSPD or Plumb print: text, XML (-Rxml) or JSON (--json)")
    )]
    NoResult { path: PathBuf, source: RecordError },
    #[error("the run {id} was imported: its arguments are not known")]
    #[diagnostic(code(plumb::runs::no_arguments), help("`plumb runs show {id}` has what is known"))]
    NoArguments { id: String },
    #[error("{} is there already", path.display())]
    #[diagnostic(code(plumb::runs::exists), help("name another folder: --dir FOLDER"))]
    Exists { path: PathBuf },
    #[error("cannot write {}", path.display())]
    #[diagnostic(
        code(plumb::runs::write),
        help("name a folder that you may write to, with room for it")
    )]
    Write { path: PathBuf, source: std::io::Error },
}
