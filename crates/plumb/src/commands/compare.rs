//! `plumb compare`: one set of runs against another.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use plumb_study::record::{self, Allowance, Record, RecordError};
use plumb_study::samples::{self, SampleError};
use plumb_study::study::{RunRecord, Study, StudyError, against};
use serde_json::{Map, Value};

use super::answers::{self, Answers, Place};
use super::{report, sources};

/// For clap.
pub(crate) fn command() -> Command {
    let side = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .value_name(value)
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::AnyPath)
            .conflicts_with("samples")
            .help(help)
    };
    let baseline = side(
        "baseline",
        "A",
        "The baseline: a result, a folder of repetitions, a stored run, or a study",
    )
    .required_unless_present("samples")
    .requires("candidate");
    let candidate = side(
        "candidate",
        "B",
        "The candidate: a result, a folder of repetitions, a stored run, or a study",
    );
    let samples = Arg::new("samples")
        .long("samples")
        .value_name("FILE")
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("Instead of results: a JSON object, or one per line; - for standard input");
    let allow = Arg::new("allow")
        .long("allow")
        .value_name("DIFFERENCE")
        .action(ArgAction::Append)
        .value_parser(["parameters", "hardware", "errors"])
        .conflicts_with("samples")
        .help("Compare results although workloads, or machines, differ, or I/Os failed; every answer says so");
    Command::new("compare")
        .about("Say whether one set of runs is better than another")
        .long_about(
            "Say whether one set of runs is better than another: `better`, `worse`, `same` when any \
             difference is too small to matter, `unclear` when the data cannot tell. Results are what \
             DISKSPD or Plumb print, as text, XML or JSON, or stored runs by id or label; results of \
             different workloads, machines or measuring methods are refused. Two studies, baselines or sweeps, \
             are compared setting by setting, each that both measured. An object of samples is {\"id\", \"metric\", \"higher_is_better\", …} \
             with \"baseline_runs\": […] and \"candidate_runs\": […], or \"baseline_series\": [[a value \
             per interval], …], \"candidate_series\" and \"interval_s\", or \"runs_in_order\": \
             [{\"order\", \"arm\", \"value\"}, …].",
        )
        .args([baseline, candidate, samples, allow])
        .args([answers::fail_on_option(), answers::json_option()])
        .after_help(
            "Exit status: 0 whatever the verdict is, 1 if something cannot be compared, whatever the \
             other verdicts are, 2 for a wrong command line, 4 with --fail-on worse if a verdict is that; of two studies, if one that holds over all \
             of their figures together is.\n\nFor example:\n  \
             plumb compare monday.xml tuesday.xml\n  plumb compare before/ after/ --fail-on worse\n  \
             plumb compare commissioning today\n  plumb compare --samples runs.ndjson --json",
        )
}

/// Judges what was named.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let mut answers = Answers::new(matches);
    if let Some(files) = matches.get_many::<PathBuf>("samples") {
        judge_samples(&mut answers, files, samples::compare);
        return answers.print();
    }
    let path = |name: &str| matches.get_one::<PathBuf>(name).expect("clap requires it");
    let words = matches.get_many::<String>("allow").into_iter().flatten();
    let allowed: Vec<Allowance> = words
        .map(|word| match word.as_str() {
            "hardware" => Allowance::Hardware,
            "errors" => Allowance::Errors,
            _ => Allowance::Parameters,
        })
        .collect();
    judge_results(&mut answers, path("baseline"), path("candidate"), &allowed);
    answers.print()
}

fn judge_results(answers: &mut Answers, baseline: &Path, candidate: &Path, allowed: &[Allowance]) {
    match (study(baseline), study(candidate)) {
        (Ok(None), Ok(None)) => {}
        (Ok(Some(a)), Ok(Some(b))) => {
            judge_studies(answers, (baseline, &a), (candidate, &b), allowed);
            return;
        }
        (Err(error), _) => return answers.refused(&Place::file(baseline), &error),
        (_, Err(error)) => return answers.refused(&Place::file(candidate), &error),
        (Ok(a), Ok(_)) => {
            let (study, other) =
                if a.is_some() { (baseline, candidate) } else { (candidate, baseline) };
            let (study, other) = (study.to_owned(), other.to_owned());
            return answers.refused(&Place::file(candidate), &ResultError::Mixed { study, other });
        }
    }
    let mut sides = Vec::new();
    for path in [baseline, candidate] {
        match records(path) {
            Ok(records) => sides.push(records),
            Err(error) => answers.refused(&Place::file(path), &error),
        }
    }
    let [a, b] = sides.as_slice() else { return };
    let place = Place::file(candidate);
    match record::compare(a, b, allowed) {
        Err(error) => answers.refused(&place, &error),
        Ok(decisions) => {
            for mut decision in decisions {
                let name = format!(
                    "compare:{}:{}:{}:{}",
                    baseline.display(),
                    candidate.display(),
                    decision["time_span"],
                    decision["metric"].as_str().unwrap_or_default()
                );
                decision.insert("baseline_file".to_owned(), baseline.display().to_string().into());
                answers.decided(&Place { id: Some(name.into()), ..place.clone() }, decision);
            }
        }
    }
}

/// A study by its folder or name, with its runs.
fn study(name: &Path) -> Result<Option<(Study, Vec<RunRecord>)>, StudyError> {
    let Some(folder) = report::study::find(name)? else { return Ok(None) };
    Ok(Some((folder.plan()?, folder.runs()?)))
}

/// A study as it was named, with its runs.
type Named<'a> = (&'a Path, &'a (Study, Vec<RunRecord>));

/// Each setting that both measured.
fn judge_studies(answers: &mut Answers, a: Named, b: Named, allowed: &[Allowance]) {
    let place = Place::file(b.0);
    match against((&a.1.0, &a.1.1), (&b.1.0, &b.1.1), allowed) {
        Err(error) => answers.refused(&place, &error),
        Ok(found) => {
            let count = |word: &str| found.count(word);
            let together = match found.something_changed {
                true => format!(
                    "something changed over all of them together: {} better and {} worse hold",
                    found.count_holding("better"),
                    found.count_holding("worse")
                ),
                false => "nothing changed for sure over all of them together".to_owned(),
            };
            answers.tell(&format!(
                "{} against {}: {} settings were measured in both; {} figures better, {} worse, {} the same, {} \
                 unclear; {together}",
                b.0.display(),
                a.0.display(),
                found.settings,
                count("better"),
                count("worse"),
                count("same"),
                count("unclear")
            ));
            for mut decision in found.decisions {
                // People are told what changed; programs get everything.
                let is_told = ["better", "worse"].iter().any(|word| decision["verdict"] == *word);
                if !is_told && !answers.are_json() {
                    continue;
                }
                let id = decision["id"].as_str().unwrap_or_default();
                let name = format!("compare:{}:{}:{id}", a.0.display(), b.0.display());
                decision.insert("baseline_file".to_owned(), a.0.display().to_string().into());
                answers.decided(&Place { id: Some(name.into()), ..place.clone() }, decision);
            }
        }
    }
}

/// The results of a file, or of all files of a folder in the order of their names.
fn records(path: &Path) -> Result<Vec<Record>, ResultError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| ResultError::Read { path, source }
    };
    if !path.is_dir() {
        return one(path);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed(path))? {
        let file = entry.map_err(failed(path))?.path();
        if file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(ResultError::Empty { path: path.to_owned() });
    }
    let mut all = Vec::new();
    for file in files {
        all.extend(one(&file)?);
    }
    Ok(all)
}

fn one(path: &Path) -> Result<Vec<Record>, ResultError> {
    let bytes = sources::bytes(path).map_err(ResultError::Source)?;
    record::read(&bytes).map_err(|source| ResultError::Record { path: path.to_owned(), source })
}

/// Why a side has no results.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum ResultError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Source(sources::SourceError),
    #[error("cannot read {}", path.display())]
    #[diagnostic(
        code(plumb::compare::read),
        help("name a result, or a folder of results that are repetitions of one run")
    )]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is no result", path.display())]
    #[diagnostic(
        code(plumb::compare::result),
        help("results are what DISKSPD or Plumb print: text, XML (-Rxml) or JSON (--json)")
    )]
    Record { path: PathBuf, source: RecordError },
    #[error("{} is a study and {} is none", study.display(), other.display())]
    #[diagnostic(
        code(plumb::compare::mixed),
        help(
            "compare two studies, or two results; a study's single results are in its folder, below runs/"
        )
    )]
    Mixed { study: PathBuf, other: PathBuf },
    #[error("the folder {} is empty", path.display())]
    #[diagnostic(code(plumb::compare::empty), help("name a folder that holds results"))]
    Empty { path: PathBuf },
}

/// Judges every object of some files.
pub(super) fn judge_samples<'a>(
    answers: &mut Answers,
    files: impl Iterator<Item = &'a PathBuf>,
    judge: fn(&Value) -> Result<Map<String, Value>, SampleError>,
) {
    for path in files {
        let text = match answers::read(path) {
            Ok(text) => text,
            Err(error) => {
                answers.refused(&Place::file(path), &error);
                continue;
            }
        };
        let objects = samples::split(&text);
        let is_alone = objects.len() == 1;
        for (spot, object) in objects {
            let mut place = Place::file(path);
            place.spot = (!is_alone).then_some(spot);
            let object = match object {
                Ok(object) => object,
                Err(error) => {
                    place.id = error.id().cloned();
                    answers.refused(&place, &error);
                    continue;
                }
            };
            place.id = object.get("id").filter(|id| !id.is_null()).cloned();
            match judge(&object) {
                Ok(decision) => answers.decided(&place, decision),
                Err(error) => answers.refused(&place, &error),
            }
        }
    }
}
