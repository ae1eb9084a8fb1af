//! `plumb report`: one HTML file from runs, curves and studies.

pub(super) mod study;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use plumb_study::knee::DeclaredCap;
use plumb_study::record::RecordError;
use plumb_study::report::{self, Curve, Earlier, RunView, Sources};
use plumb_study::study::StudyError;
use plumb_study::table::{self, TableError};

use super::caps::{self, CapsFileError};
use super::sources::{self, SourceError};
use super::study::arguments;
use crate::message::Printer;

/// For clap.
pub(crate) fn command() -> Command {
    let what = Arg::new("source")
        .value_name("RUN")
        .required(true)
        .num_args(1..)
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::AnyPath)
        .help(
            "A result, a folder of results, a table (o,iops,avg_lat_ms), a stored run, or a study",
        );
    let output = Arg::new("output")
        .short('o')
        .long("output")
        .value_name("FILE")
        .default_value("report.html")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("Where to write; - for standard output");
    let against = Arg::new("against")
        .long("against")
        .value_name("BASELINE")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::AnyPath)
        .help("An earlier study or run: drawn under the others, and compared with them");
    Command::new("report")
        .about("Make one HTML file of runs, curves and studies: findings, plots, data")
        .long_about(
            "Make one HTML file of runs, curves and studies: findings first in plain words, then plots, each \
             with a sentence and its data, and the arithmetic of every decision. The file needs no network. \
             One run is shown in detail; several are compared, or make a curve where they differ in nothing \
             but their outstanding I/Os; a study says what it found. The findings are printed too.",
        )
        .args([what, output, against, arguments::cap(), caps::option()])
        .after_help(
            "For example:\n  plumb run -b4K -r -d60 -L -D --output json=run.json data.dat\n  \
             plumb report run.json -o run.html\n  plumb report nightly~1 nightly -o change.html\n  \
             plumb report reads.csv -o knee.html\n  plumb report today --against commissioning -o today.html",
        )
}

/// Makes the report.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    match make(matches) {
        Ok(status) => status,
        Err(error) => {
            Printer::on_stderr().error(&error);
            ExitCode::FAILURE
        }
    }
}

fn make(matches: &ArgMatches) -> Result<ExitCode, ReportError> {
    let output = matches.get_one::<PathBuf>("output").expect("it has a default");
    let is_printed = output == Path::new("-");
    if !is_printed {
        may_be_replaced(output)?;
    }
    let mut sources = Sources::default();
    for name in matches.get_many::<PathBuf>("source").expect("clap requires it") {
        add(&mut sources, name)?;
    }
    let declared = matches.get_many::<String>("cap").into_iter().flatten();
    let declared = declared.filter_map(|cap| DeclaredCap::parse(cap).ok());
    let declared: Vec<DeclaredCap> = declared.chain(caps::all(matches)?).collect();
    sources.runs.iter_mut().for_each(|run| run.caps.clone_from(&declared));
    sources.curves.iter_mut().for_each(|curve| curve.caps.clone_from(&declared));
    sources.earlier =
        matches.get_one::<PathBuf>("against").map(|name| earlier(name)).transpose()?;
    let report = report::make(&sources, &study::made());
    let page = report::html(&report);
    if is_printed {
        return Ok(super::print(&page));
    }
    plumb_store::write_file(output, page.as_bytes())
        .map_err(|source| ReportError::Write { path: output.clone(), source })?;
    Ok(super::print(&format!("{}\n{}\n", report::summary(&report), output.display())))
}

/// How every report begins.
const REPORT_BEGINS: &[u8; 15] = b"<!doctype html>";

/// A report may take the place of a report, and of nothing else.
fn may_be_replaced(output: &Path) -> Result<(), ReportError> {
    // No more than its beginning: it may be anything, of any size, or a device without an end.
    let begins = || -> io::Result<bool> {
        if !fs::metadata(output)?.is_file() {
            return Ok(false);
        }
        let mut start = [0; REPORT_BEGINS.len()];
        let is_read = match fs::File::open(output)?.read_exact(&mut start) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            read => read.map(|()| true)?,
        };
        Ok(is_read && start == *REPORT_BEGINS)
    };
    match begins() {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(false) => Err(ReportError::NoReport { path: output.to_owned() }),
        Err(source) => Err(ReportError::Write { path: output.to_owned(), source }),
    }
}

fn add(sources: &mut Sources, name: &Path) -> Result<(), ReportError> {
    if let Some(folder) = study::find(name)? {
        sources.studies.push(study::view(&folder)?);
        return Ok(());
    }
    if !name.is_dir() {
        return one(sources, name);
    }
    let failed = |source| SourceError::Read { path: name.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(name).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    files.iter().try_for_each(|file| one(sources, file))
}

/// What the others are drawn over.
fn earlier(name: &Path) -> Result<Earlier, ReportError> {
    let mut found = Sources::default();
    add(&mut found, name)?;
    match (found.studies.pop(), found.runs.pop()) {
        (Some(study), _) => Ok(Earlier::Study(Box::new(study))),
        (None, Some(run)) if found.runs.is_empty() => Ok(Earlier::Run(Box::new(run))),
        _ => Err(ReportError::NoBaseline { path: name.to_owned() }),
    }
}

fn one(sources: &mut Sources, name: &Path) -> Result<(), ReportError> {
    let bytes = sources::bytes(name)?;
    // A label or an id has no folder; of a path the last part says enough.
    let shown = name
        .file_name()
        .map_or_else(|| name.display().to_string(), |part| part.to_string_lossy().into_owned());
    if name.extension().is_some_and(|extension| extension == "csv") {
        let text = String::from_utf8_lossy(&bytes);
        let table = table::read(&text, None)
            .map_err(|source| ReportError::Table { path: name.to_owned(), source })?;
        sources.curves.push(Curve {
            name: shown,
            rows: table.rows,
            block_bytes: table.block_bytes,
            caps: Vec::new(),
        });
        return Ok(());
    }
    let views = RunView::read(&shown, &bytes)
        .map_err(|source| ReportError::Record { path: name.to_owned(), source })?;
    sources.runs.extend(views);
    Ok(())
}

/// Why there is no report.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum ReportError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Study(#[from] StudyError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Caps(#[from] CapsFileError),
    #[error("{} is no result", path.display())]
    #[diagnostic(
        code(plumb::report::result),
        help(
            "results are what DISKSPD or Plumb print: text, XML (-Rxml) or JSON (--json); tables end in .csv"
        )
    )]
    Record { path: PathBuf, source: RecordError },
    #[error("{} is no table of a curve", path.display())]
    #[diagnostic(
        code(plumb::report::table),
        help("its first line names the columns: o,iops,avg_lat_ms")
    )]
    Table { path: PathBuf, source: TableError },
    #[error("{} is neither a study nor one run", path.display())]
    #[diagnostic(
        code(plumb::report::against),
        help(
            "--against takes one study or one result; `plumb runs list` has the names of what is kept"
        )
    )]
    NoBaseline { path: PathBuf },
    #[error("{} is there and is no report", path.display())]
    #[diagnostic(code(plumb::report::replaces), help("name another file: -o FILE"))]
    NoReport { path: PathBuf },
    #[error("cannot write {}", path.display())]
    #[diagnostic(
        code(plumb::report::write),
        help("name a file in a folder that you may write to, with room for it")
    )]
    Write { path: PathBuf, source: io::Error },
}
