//! `plumb explain`: why a decision is what it is.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use plumb_study::study::StudyError;
use plumb_study::{explain, samples};
use serde_json::Value;

use super::answers::{self, ReadError};
use super::report;
use crate::message::Printer;

/// For clap.
pub(crate) fn command() -> Command {
    let decision = Arg::new("decision")
        .value_name("DECISION")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("A file of decisions, as `plumb knee`, `compare` and `history` print them with --json, a study's findings.json, or a study by its name; - for standard input");
    let id =
        Arg::new("id").long("id").value_name("ID").help("Explain only the decision with this id");
    Command::new("explain")
        .about("Explain a decision: its rule, what went in, and the arithmetic")
        .args([decision, id])
        .after_help(
            "For example:\n  plumb knee --csv reads.csv --json | plumb explain -\n  \
             plumb explain decisions.ndjson --id nightly\n  plumb explain commissioning --id random-1",
        )
}

/// Explains each decision of a file.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let path = matches.get_one::<PathBuf>("decision").expect("clap requires it");
    let wanted = matches.get_one::<String>("id");
    let printer = Printer::on_stderr();
    let text = match text(path) {
        Ok(text) => text,
        Err(error) => {
            printer.error(&error);
            return ExitCode::FAILURE;
        }
    };
    let mut out = String::new();
    let mut failed = false;
    let mut seen = 0_usize;
    for object in samples::split(&text).into_iter().flat_map(|(_, object)| decisions(object)) {
        let is_wanted = |object: &Value| {
            let id = &object["id"];
            // An id may be a number.
            let shown = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
            wanted.is_none_or(|wanted| *wanted == shown)
        };
        match object {
            Err(error) => {
                printer.error(&error);
                failed = true;
            }
            Ok(object) if !is_wanted(&object) => {}
            Ok(object) => {
                seen += 1;
                match explain::explain(&object) {
                    Ok(explained) => {
                        let gap = if out.is_empty() { "" } else { "\n" };
                        out.push_str(&format!("{gap}{explained}"));
                    }
                    Err(error) => {
                        printer.error(&error);
                        failed = true;
                    }
                }
            }
        }
    }
    if let Some(id) = wanted.filter(|_| seen == 0) {
        printer.error(&NoSuchId { id: id.clone(), path: path.clone() });
        failed = true;
    }
    super::print_and_exit(&out, u8::from(failed))
}

/// What is to be explained: the findings of a study that is named, or whose folder is; otherwise what stands in a file.
fn text(name: &Path) -> Result<String, InputError> {
    let folder = match name == Path::new("-") {
        true => None,
        false => report::study::find(name)?,
    };
    let is_missing = name != Path::new("-") && !name.exists();
    let Some(folder) = folder else {
        return match is_missing || name.is_dir() {
            true => Err(InputError::Nothing { name: name.to_owned() }),
            false => Ok(answers::read(name)?),
        };
    };
    let findings = folder.findings()?;
    let findings = findings.ok_or_else(|| InputError::NoFindings { name: name.to_owned() })?;
    Ok(serde_json::to_string(&findings).expect("findings are JSON"))
}

/// The decisions of a study's findings; any other object is taken as one decision.
fn decisions<E>(object: Result<Value, E>) -> Vec<Result<Value, E>> {
    match object {
        Ok(object) if object["findings"].is_array() => {
            let all = object["findings"].as_array().into_iter().flatten();
            let with_table = |finding: &Value| {
                let mut decision = finding["decision"].clone();
                if let Some(decision) = decision.as_object_mut() {
                    // What went in, where the decision does not have it itself.
                    decision.entry("table").or_insert_with(|| finding["table"].clone());
                }
                Ok(decision)
            };
            all.map(with_table).collect()
        }
        other => vec![other],
    }
}

/// Why there is nothing to explain.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum InputError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Study(#[from] StudyError),
    #[error("no file of decisions and no study is called {}", name.display())]
    #[diagnostic(
        code(plumb::explain::nothing),
        help(
            "name a file as --json prints it, a study by its whole name (plumb runs list shows them), its folder, or - for standard input"
        )
    )]
    Nothing { name: PathBuf },
    #[error("the study {} has no findings yet", name.display())]
    #[diagnostic(
        code(plumb::explain::no_findings),
        help("go on with it: plumb baseline or sweep --resume")
    )]
    NoFindings { name: PathBuf },
}

/// No decision has the id that was asked for.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("no decision in {} has the id `{id}`", path.display())]
#[diagnostic(code(plumb::explain::no_such_id), help("leave --id away to see them all"))]
struct NoSuchId {
    id: String,
    path: PathBuf,
}
