//! Studies among the runs that are kept: in the catalogue, shown, removed and exported.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plumb_store::parquet::{self, Column};
use plumb_store::{Store, StoreError, StudyEntry};
use plumb_study::percentile;
use plumb_study::study::{
    Findings, RunRecord, State, StudyError, StudyFolder, studies, studies_folder,
};
use plumb_units::words::number_of;
use serde_json::{Value, json};

use super::super::report;
use super::{RunsError, export};

/// Files of a study whose change makes its entry anew.
const DOCUMENTS: [&str; 3] = ["plan.json", "journal.ndjson", "findings.json"];

/// What a name of the command line stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// A run, by its id.
    Run(String),
    /// A study, by its name.
    Study(String),
}

/// The run or study that is meant. A study is named by its name or the beginning of it.
pub(super) fn resolve(store: &Store, name: &str) -> Result<Meant, RunsError> {
    let all = studies(&studies_folder()).map_err(RunsError::Study)?;
    let exact = all.iter().find(|id| *id == name);
    match (store.resolve(name), exact) {
        (Ok(run), Some(id)) => {
            let ids = vec![run, id.clone()];
            Err(RunsError::Store(StoreError::Ambiguous { name: name.to_owned(), ids }))
        }
        (Ok(run), None) => Ok(Meant::Run(run)),
        (Err(StoreError::Unknown { .. }), Some(id)) => Ok(Meant::Study(id.clone())),
        (Err(unknown @ StoreError::Unknown { .. }), None) => {
            let begins = |id: &&String| !name.is_empty() && id.starts_with(name);
            let ids: Vec<String> = all.iter().filter(begins).cloned().collect();
            match ids.len() {
                0 => Err(unknown.into()),
                1 => Ok(Meant::Study(ids[0].clone())),
                _ => Err(StoreError::Ambiguous { name: name.to_owned(), ids }.into()),
            }
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// The studies of the catalogue, after it was brought up to date with their folders; oldest first.
pub(super) fn catalogued(store: &Store) -> Result<Vec<StudyEntry>, RunsError> {
    let folder = studies_folder();
    let there = studies(&folder).map_err(RunsError::Study)?;
    let known = store.studies()?;
    for id in &there {
        let stamp = stamp(&folder.join(id));
        if known.iter().any(|entry| entry.id == *id && entry.stamp == stamp) {
            continue;
        }
        let summary = summary(&folder, id);
        let created = summary["created"].as_str().unwrap_or_default().to_owned();
        store.enter_study(&StudyEntry { id: id.clone(), stamp, created, summary })?;
    }
    for gone in known.iter().filter(|entry| !there.contains(&entry.id)) {
        store.forget_study(&gone.id)?;
    }
    Ok(store.studies()?)
}

/// Another one when the study went on.
fn stamp(folder: &Path) -> String {
    let one = |name: &&str| {
        fs::metadata(folder.join(name)).map_or_else(
            |_| "-".to_owned(),
            |found| format!("{}.{:09}+{}", found.mtime(), found.mtime_nsec(), found.len()),
        )
    };
    DOCUMENTS.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// What a list shows of a study; of a damaged one, why.
fn summary(folder: &Path, id: &str) -> Value {
    let read = || -> Result<Value, StudyError> {
        let folder = StudyFolder::view(folder, id)?;
        let (plan, findings, runs) = (folder.plan()?, folder.findings()?, folder.runs()?);
        Ok(json!({
            "kind": plan.kind.keyword(),
            "title": plan.title,
            "created": plan.created,
            "target": plan.target,
            "tool": plan.tool,
            "epoch": plan.epoch,
            "state": state(findings.as_ref()),
            "runs": runs.len(),
            "runs_most": plan.runs_most,
            "says": findings.as_ref().and_then(|f| f.findings.first()).map(|f| &f.sentence),
        }))
    };
    read().unwrap_or_else(|error| json!({ "kind": "study", "damaged": error.to_string() }))
}

fn state(findings: Option<&Findings>) -> &'static str {
    match findings.map(|findings| findings.state) {
        Some(State::Complete) => "complete",
        Some(State::Partial) | None => "partial",
    }
}

/// A line of a list, as its six cells.
pub(super) fn cells(entry: &StudyEntry) -> [String; 6] {
    let text = |key: &str| entry.summary[key].as_str().unwrap_or("-").to_owned();
    let state =
        if entry.summary["damaged"].is_string() { "damaged".to_owned() } else { text("state") };
    let runs = entry.summary["runs"].as_u64().map_or("-".to_owned(), |runs| number_of(runs, "run"));
    [entry.id.clone(), text("kind"), runs, state, "-".to_owned(), text("target")]
}

/// An entry for programs.
pub(super) fn object(entry: &StudyEntry) -> Value {
    json!({
        "id": entry.id,
        "stored_at": entry.created,
        "origin": "study",
        "label": null,
        "study": entry.summary,
    })
}

fn open(id: &str) -> Result<StudyFolder, RunsError> {
    StudyFolder::view(&studies_folder(), id).map_err(RunsError::Study)
}

/// A study: what it is, and what it found.
pub(super) fn shown(id: &str, as_json: bool) -> Result<String, RunsError> {
    let folder = open(id)?;
    let documents = || Ok((folder.plan()?, folder.findings()?, folder.runs()?));
    let (plan, findings, runs) = documents().map_err(RunsError::Study)?;
    report::study::tell_damage(&folder, &runs);
    if as_json {
        let object = json!({ "plan": plan, "findings": findings, "runs": runs });
        return Ok(format!("{object}\n"));
    }
    let mut text = format!("{id}\n");
    let mut add = |name: &str, value: &str| {
        writeln!(text, "  {name:<13}{value}").expect("a string takes it");
    };
    add("study", &format!("{}: {}", plan.kind.keyword(), plan.title));
    add("planned", &plan.created);
    add("target", &plan.target);
    add("measured by", &format!("{}, measurement epoch {}", plan.tool, plan.epoch));
    add("state", state(findings.as_ref()));
    add("runs", &format!("{} of {}", runs.len(), plan.runs_in_words()));
    add("folder", &folder.path().display().to_string());
    let report = folder.path().join("report.html");
    if report.exists() {
        add("report", &report.display().to_string());
    }
    for finding in findings.iter().flat_map(|findings| &findings.findings) {
        writeln!(text, "\n{}\n  {}", finding.title, finding.sentence).expect("a string takes it");
    }
    Ok(text)
}

/// Removes a study for good.
pub(super) fn remove(store: &Store, id: &str) -> Result<(), RunsError> {
    StudyFolder::remove(&studies_folder(), id).map_err(RunsError::Study)?;
    Ok(store.forget_study(id)?)
}

/// Tables that an export adds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables {
    pub(super) csv: bool,
    pub(super) parquet: bool,
}

/// Copies the documents of a study into a folder of its name, and its runs as tables; what was written.
pub(super) fn export(id: &str, into: &Path, tables: Tables) -> Result<Vec<PathBuf>, RunsError> {
    let folder = open(id)?;
    let runs = folder.runs().map_err(RunsError::Study)?;
    report::study::tell_damage(&folder, &runs);
    let target = into.join(id);
    if target.exists() {
        return Err(RunsError::Exists { path: target });
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| RunsError::Write { path, source }
    };
    fs::create_dir_all(target.join("runs")).map_err(failed(&target))?;
    let names = DOCUMENTS.iter().map(|name| (*name).to_owned());
    let names = names.chain(["report.html".to_owned()]);
    for name in names.chain(runs.iter().filter_map(|run| run.result.clone())) {
        let from = folder.path().join(&name);
        if from.exists() {
            let content = fs::read(&from).map_err(failed(&from))?;
            export::place(&target.join(&name), &content)?;
        }
    }
    let mut written = vec![target];
    if tables.csv {
        let path = into.join(format!("{id}.csv"));
        export::place(&path, csv(&runs).as_bytes())?;
        written.push(path);
    }
    if tables.parquet && !runs.is_empty() {
        let path = into.join(format!("{id}.parquet"));
        let columns = columns(&runs).into_iter();
        let columns: Vec<Column> =
            columns.map(|(name, values)| Column { name: name.to_owned(), values }).collect();
        export::place(&path, &parquet::file(&columns))?;
        written.push(path);
    }
    Ok(written)
}

/// Figures of each run, a column each.
fn columns(runs: &[RunRecord]) -> Vec<(&'static str, Vec<Option<f64>>)> {
    type Of = fn(&RunRecord) -> Option<f64>;
    let of: [(&'static str, Of); 14] = [
        ("run", |run| Some(run.run.into())),
        ("files", |run| Some(run.setting.files.into())),
        ("threads", |run| Some(run.setting.threads.into())),
        ("outstanding", |run| Some(run.setting.outstanding.into())),
        ("block_bytes", |run| Some(run.setting.block_bytes as f64)),
        ("write_percent", |run| Some(run.setting.write_percent.into())),
        ("seconds", |run| Some(run.summary.as_ref()?.seconds)),
        ("iops", |run| Some(run.summary.as_ref()?.iops)),
        ("half_width", |run| run.summary.as_ref()?.half_width),
        ("mib_per_s", |run| Some(run.summary.as_ref()?.mib_per_s)),
        ("avg_lat_ms", |run| run.summary.as_ref()?.latency_ms),
        ("p99_ms", |run| Some(run.summary.as_ref()?.percentile(99.0)?.ms)),
        ("p99_9_ms", |run| Some(run.summary.as_ref()?.percentile(99.9)?.ms)),
        ("cpu_us_per_io", |run| run.summary.as_ref()?.cpu_us_per_io),
    ];
    let values = |(name, of): &(&'static str, Of)| (*name, runs.iter().map(of).collect());
    of.iter().map(values).collect()
}

/// The mark of a percentile of a run, with what is to be said of its episodes; empty without one.
fn mark(run: &RunRecord, percent: f64) -> String {
    let Some(summary) = run.summary.as_ref() else { return String::new() };
    let Some(found) = summary.percentile(percent) else { return String::new() };
    let support = percentile::support(percent / 100.0, summary.io_count);
    percentile::with_episodes(support.mark.keyword(), percent, found.spread)
}

/// The same as text, with the step and the setting of each run before the figures, and the marks of percentiles behind
/// them.
fn csv(runs: &[RunRecord]) -> String {
    let columns = columns(runs);
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut text = format!("step,setting,{},p99_mark,p99_9_mark\n", names.join(","));
    for (row, run) in runs.iter().enumerate() {
        let cells = columns.iter().map(|(_, values)| values[row]);
        let cells: Vec<String> =
            cells.map(|value| value.map_or_else(String::new, |value| value.to_string())).collect();
        let marks = [mark(run, 99.0), mark(run, 99.9)].join(",");
        writeln!(text, "{},{},{},{marks}", run.step, run.setting.short(), cells.join(","))
            .expect("a string takes it");
    }
    text
}
