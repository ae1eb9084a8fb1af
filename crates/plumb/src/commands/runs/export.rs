//! `plumb runs export`: results as files, and their series as tables.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use plumb_store::parquet::{self, Column};
use plumb_store::{Store, StoredRun};
use plumb_study::series_table;
use serde_json::Value;

use super::RunsError;
use super::studies::{self, Meant, Tables};
use crate::message::Printer;

pub(super) fn command(runs: Arg) -> Command {
    let dir = Arg::new("dir")
        .long("dir")
        .value_name("FOLDER")
        .default_value(".")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::DirPath)
        .help("Where to write; the folder is made if it is not there");
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("export")
        .about("Write results to files, as the runs printed them")
        .args([
            runs,
            dir,
            flag("csv", "Also write the series of each, per interval, as CSV; of a study its runs"),
            flag("parquet", "Also write its figures as Parquet; names and marks of percentiles stay in the CSV"),
        ])
        .after_help(
            "Files are named by id: ID.json (.xml or .txt for imports), ID.csv and ID.parquet. A file that is \
             there is not replaced. Of a study the folder ID is written: plan, journal, findings, report, and the \
             result of each run.",
        )
}

pub(super) fn run(store: &Store, matches: &ArgMatches) -> Result<ExitCode, RunsError> {
    let folder = matches.get_one::<PathBuf>("dir").expect("it has a default");
    let failed = |source| RunsError::Write { path: folder.clone(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut text = String::new();
    for meant in super::named(store, matches)? {
        let id = match meant {
            Meant::Run(id) => id,
            Meant::Study(id) => {
                let tables =
                    Tables { csv: matches.get_flag("csv"), parquet: matches.get_flag("parquet") };
                for path in studies::export(&id, folder, tables)? {
                    text.push_str(&format!("{}\n", path.display()));
                }
                continue;
            }
        };
        let run = store.read(&id)?;
        let mut write = |extension: &str, content: &[u8]| {
            let path = folder.join(format!("{id}.{extension}"));
            place(&path, content)?;
            text.push_str(&format!("{}\n", path.display()));
            Ok::<(), RunsError>(())
        };
        write(extension(&run), &run.result_bytes())?;
        let table = series_table::of_result(&run.result);
        let wants_table = matches.get_flag("csv") || matches.get_flag("parquet");
        if wants_table && table.is_empty() {
            let words = format!("{id} has no intervals, so no table of them: measure with -D");
            Printer::on_stderr().warning(&words);
            continue;
        }
        if matches.get_flag("csv") {
            write("csv", series_table::csv(&table).as_bytes())?;
        }
        if matches.get_flag("parquet") {
            let columns: Vec<Column> =
                table.into_iter().map(|(name, values)| Column { name, values }).collect();
            write("parquet", &parquet::file(&columns))?;
        }
    }
    Ok(crate::commands::print(&text))
}

pub(super) fn place(path: &Path, content: &[u8]) -> Result<(), RunsError> {
    if path.exists() {
        return Err(RunsError::Exists { path: path.to_owned() });
    }
    plumb_store::write_file(path, content)
        .map_err(|source| RunsError::Write { path: path.to_owned(), source })
}

fn extension(run: &StoredRun) -> &'static str {
    match &run.result {
        Value::String(text) if text.trim_start().starts_with('<') => "xml",
        Value::String(_) => "txt",
        _ => "json",
    }
}
