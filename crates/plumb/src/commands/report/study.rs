//! Studies as a report sees them.

use std::io;
use std::iter::once;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use plumb_study::knee::DeclaredCap;
use plumb_study::report::{self, Detail, RunView, Sources, StudyView};
use plumb_study::study::{RunRecord, StudyError, StudyFolder, studies_folder};

use crate::commands::version::VERSION;
use crate::message::{Printer, causes};

/// Who makes a report, and when.
pub(in crate::commands) fn made() -> String {
    format!("plumb {VERSION}, {}", Timestamp::now().strftime("%Y-%m-%d %H:%M UTC"))
}

/// Says which results of a study cannot be read.
pub(in crate::commands) fn tell_damage(folder: &StudyFolder, runs: &[RunRecord]) {
    for (run, error) in folder.damaged_results(runs) {
        let why: Vec<String> = once(error.to_string()).chain(causes(&error)).collect();
        Printer::on_stderr().warning(&format!(
            "the result of run {run} cannot be shown in detail: {}. The findings rest on the study's journal and are not changed by that",
            why.join(": ")
        ));
    }
}

/// A study with its findings, its runs, and those that are worth a look in detail; results that cannot be read are told.
pub(in crate::commands) fn view(folder: &StudyFolder) -> Result<StudyView, StudyError> {
    let (plan, findings, runs) = (folder.plan()?, folder.findings()?, folder.runs()?);
    tell_damage(folder, &runs);
    // The one key of a baseline's request, the other of a sweep's.
    let declared = ["caps", "cap"].map(|key| plan.request[key].as_array().cloned());
    let declared: Vec<DeclaredCap> = declared
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|cap| DeclaredCap::parse(cap.as_str()?).ok())
        .collect();
    let detail = |(run, finding, why): (&_, String, String)| {
        // A result that cannot be read keeps nothing else away.
        let run: &RunRecord = run;
        let result = folder.result(run).ok().flatten()?;
        let name = format!("Run {}: {}", run.run, run.setting.short());
        let view = RunView::of_object(&name, &result).ok()?.pop()?;
        let view = RunView { caps: declared.clone(), ..view };
        Some(Detail { run: run.run, finding, why, setting: run.setting.clone(), view })
    };
    let chosen = report::worth_a_look(findings.as_ref(), &runs);
    let details = chosen.into_iter().filter_map(detail).collect();
    Ok(StudyView { plan, findings, runs, details })
}

/// Writes the report of a study into its folder, in the place of an older one; where it is.
pub(in crate::commands) fn write(folder: &StudyFolder) -> io::Result<PathBuf> {
    let view = view(folder).map_err(io::Error::other)?;
    let report = report::make(&Sources { studies: vec![view], ..Sources::default() }, &made());
    let path = folder.path().join("report.html");
    plumb_store::write_file(&path, report::html(&report).as_bytes())?;
    Ok(path)
}

/// A study by its folder or its name; `None` if it is none.
pub(in crate::commands) fn find(name: &Path) -> Result<Option<StudyFolder>, StudyError> {
    if name.join("plan.json").is_file() {
        let whole = name.canonicalize().unwrap_or_else(|_| name.to_owned());
        let Some(id) = whole.file_name().and_then(|id| id.to_str()) else { return Ok(None) };
        return StudyFolder::view(whole.parent().unwrap_or(Path::new("/")), id).map(Some);
    }
    let Some(word) = name.to_str().filter(|word| !word.is_empty() && !word.contains('/')) else {
        return Ok(None);
    };
    // A folder that is none of a study is nothing that could be meant beside one.
    if name.exists() && !name.is_dir() {
        return Ok(None);
    }
    match StudyFolder::view(&studies_folder(), word) {
        Ok(folder) => Ok(Some(folder)),
        // Another kind of name: of a stored run, say.
        Err(StudyError::Unknown { .. } | StudyError::Name { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
