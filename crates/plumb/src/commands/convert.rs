//! `plumb convert`: a folder of XML results to one table, single results to JSON lines.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use plumb_load::convert::{self, ConvertError, ImportError};

use super::sources::read_bounded;
use crate::message::Printer;

/// Where the table goes when nothing is said.
const TABLE: &str = "result.tsv";

/// For clap.
pub(crate) fn command() -> Command {
    let inputs = Arg::new("input")
        .value_name("FOLDER|RESULT")
        .required(true)
        .num_args(1..)
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::AnyPath)
        .help("A folder of XML results, or results in files, text or XML");
    let output = Arg::new("output")
        .short('o')
        .long("output")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("Where to write [default: result.tsv for a folder, standard output for results]");
    Command::new("convert")
        .about("Turn results into a table, or into JSON")
        .long_about(
            "Turn results of DISKSPD or Plumb into something to go on with. A folder becomes one table \
             with a row per XML result, as Process-DiskSpd makes it, and a file of latency percentiles \
             beside each result. Results given as files, text or XML, become JSON lines: one object per \
             run, time span, processor, percentile, interval, and thread with target.",
        )
        .args([inputs, output])
        .after_help(
            "For example:\n  plumb convert results/\n  plumb convert results/ -o table.tsv\n  \
             plumb convert monday.xml tuesday.txt | jq 'select(.record == \"time_span\")'",
        )
}

/// Converts what was named.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let inputs: Vec<&PathBuf> = matches.get_many("input").expect("clap requires it").collect();
    let output = matches.get_one::<PathBuf>("output");
    match inputs.as_slice() {
        [folder] if folder.is_dir() => {
            let output = output.cloned().unwrap_or_else(|| TABLE.into());
            table(folder, &output)
        }
        files => lines(files, output.map(PathBuf::as_path)),
    }
}

/// A folder to one table.
fn table(folder: &Path, output: &Path) -> ExitCode {
    let printer = Printer::on_stderr();
    match convert::process_folder(folder, output) {
        Ok(report) => {
            for skipped in &report.skipped {
                printer.warning(&format!("skipped {skipped}"));
            }
            for warning in &report.warnings {
                printer.warning(warning);
            }
            let (rows, latencies) = (report.rows.len(), report.latency_files.len());
            super::print(&format!(
                "{}: {rows} results; {latencies} new files of latencies\n",
                output.display()
            ))
        }
        Err(error) => {
            printer.error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Results to JSON lines. One that cannot be read does not keep the others away.
fn lines(files: &[&PathBuf], output: Option<&Path>) -> ExitCode {
    let printer = Printer::on_stderr();
    let mut text = String::new();
    let mut status = 0;
    for file in files {
        match rows(file) {
            Ok(rows) => text.push_str(&rows),
            Err(error) => {
                printer.error(&error);
                status = 1;
            }
        }
    }
    let Some(output) = output else { return super::print_and_exit(&text, status) };
    match fs::write(output, text) {
        Ok(()) => status.into(),
        Err(source) => {
            printer.error(&ConvertError::Write { path: output.to_owned(), source });
            ExitCode::FAILURE
        }
    }
}

/// The rows of a file's results, a line each; every row says from which file it is.
fn rows(file: &Path) -> Result<String, ResultError> {
    let bytes =
        read_bounded(file).map_err(|source| ResultError::Read { path: file.to_owned(), source })?;
    let results = convert::read(&bytes)
        .map_err(|source| ResultError::Import { path: file.to_owned(), source })?;
    let mut lines = String::new();
    for mut row in results.iter().flat_map(convert::json_rows) {
        row["file"] = file.to_string_lossy().into();
        lines.push_str(&row.to_string());
        lines.push('\n');
    }
    Ok(lines)
}

/// Why a file gave no rows.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum ResultError {
    #[error("cannot read {}", path.display())]
    #[diagnostic(
        code(plumb::convert::read),
        help("name one folder of XML results, or results in files")
    )]
    Read { path: PathBuf, source: io::Error },
    #[error("{} cannot be converted", path.display())]
    #[diagnostic(
        code(plumb::convert::import),
        help("results are what DISKSPD or Plumb print, as text or, with -Rxml, as XML")
    )]
    Import { path: PathBuf, source: ImportError },
}
