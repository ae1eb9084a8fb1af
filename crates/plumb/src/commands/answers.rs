//! Decisions as they are printed: an object per line for programs, or text.

use std::error::Error;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use clap::{Arg, ArgAction, ArgMatches};
use miette::Diagnostic;
use plumb_study::explain;
use plumb_study::samples::Spot;
use serde_json::{Map, Value, json};

use crate::message::Printer;

/// Exit status when something is worse and the user wants to fail on that.
const WORSE: u8 = 4;

/// `--json`.
pub(super) fn json_option() -> Arg {
    Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print one JSON object per line, in the order of the input")
}

/// `--fail-on worse`.
pub(super) fn fail_on_option() -> Arg {
    Arg::new("fail-on")
        .long("fail-on")
        .value_name("VERDICT")
        .value_parser(["worse"])
        .help("End with status 4 if any verdict is this")
}

/// What was decided, in the order of the input.
pub(super) struct Answers {
    json: bool,
    fail_on_worse: bool,
    out: String,
    failed: bool,
    worse: bool,
}

impl Answers {
    /// As the options want them.
    pub(super) fn new(matches: &ArgMatches) -> Self {
        let fail_on = matches.try_get_one::<String>("fail-on").ok().flatten();
        Self {
            json: matches.get_flag("json"),
            fail_on_worse: fail_on.is_some(),
            out: String::new(),
            failed: false,
            worse: false,
        }
    }

    /// Adds a decision on what stands in `file`; `id` is the input's own.
    pub(super) fn decided(&mut self, place: &Place, mut decision: Map<String, Value>) {
        // One of many counts only where it holds over all of them.
        let holds = decision.get("holds_over_all").is_none_or(|holds| *holds == true);
        self.worse |= holds && decision.get("verdict").is_some_and(|verdict| verdict == "worse");
        let rule = decision["rule"].as_str().unwrap_or_default().to_owned();
        decision.insert("id".to_owned(), place.id_or(&rule));
        decision.insert("file".to_owned(), place.file.clone().into());
        let decision = Value::Object(decision);
        if self.json {
            self.line(&decision);
        } else {
            self.out.push_str(&explain::summary(&decision));
        }
    }

    /// Whether they are for programs: then all of them are printed.
    pub(super) fn are_json(&self) -> bool {
        self.json
    }

    /// Adds a line for people.
    pub(super) fn tell(&mut self, line: &str) {
        if !self.json {
            self.out.push_str(line);
            self.out.push('\n');
        }
    }

    /// Adds what could not be judged, in its place.
    pub(super) fn refused(&mut self, place: &Place, error: &dyn Diagnostic) {
        self.failed = true;
        if self.json {
            let mut message = error.to_string();
            let mut cause: Option<&dyn Error> = error.source();
            while let Some(deeper) = cause {
                message.push_str(&format!(": {deeper}"));
                cause = deeper.source();
            }
            let help = error.help().map(|help| help.to_string());
            let mut object = json!({
                "error": { "message": message, "help": help },
                "file": place.file,
            });
            match place.spot {
                Some(Spot::Line(line)) => object["line"] = line.into(),
                Some(Spot::Item(item)) => object["item"] = item.into(),
                None => {}
            }
            if let Some(id) = &place.id {
                object["id"] = id.clone();
            }
            self.line(&object);
        } else {
            Printer::on_stderr().error(&Refused { place: place.shown(), source: error });
        }
    }

    /// Prints them; 1 if any input was bad, 4 if something is worse and that matters.
    pub(super) fn print(self) -> ExitCode {
        let status = match (self.failed, self.worse && self.fail_on_worse) {
            (true, _) => 1,
            (_, true) => WORSE,
            _ => 0,
        };
        super::print_and_exit(&self.out, status)
    }

    fn line(&mut self, value: &Value) {
        self.out.push_str(&value.to_string());
        self.out.push('\n');
    }
}

/// Where an input stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// As named on the command line.
    pub(super) file: String,
    /// Where in it, where that matters.
    pub(super) spot: Option<Spot>,
    /// The input's own.
    pub(super) id: Option<Value>,
}

impl Place {
    /// A whole file.
    pub(super) fn file(path: &Path) -> Self {
        Self { file: path.display().to_string(), ..Self::default() }
    }

    fn id_or(&self, rule: &str) -> Value {
        self.id.clone().unwrap_or_else(|| match self.spot {
            Some(Spot::Line(at) | Spot::Item(at)) => format!("{rule}:{}:{at}", self.file).into(),
            None => format!("{rule}:{}", self.file).into(),
        })
    }

    fn shown(&self) -> String {
        match self.spot {
            Some(Spot::Line(line)) => format!("{}, line {line}", self.file),
            Some(Spot::Item(item)) => format!("{}, item {item} of its list", self.file),
            None => self.file.clone(),
        }
    }
}

/// The text of a file, or of standard input for `-`.
pub(super) fn read(path: &Path) -> Result<String, ReadError> {
    let failed = |source| ReadError { path: path.to_owned(), source };
    if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(failed)?;
        return Ok(text);
    }
    fs::read_to_string(path).map_err(failed)
}

/// A file that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("cannot read {}", path.display())]
#[diagnostic(
    code(plumb::answers::read),
    help("name a text file that exists, or - for standard input")
)]
pub(super) struct ReadError {
    path: PathBuf,
    source: io::Error,
}

/// An input that was not judged, with its place.
#[derive(Debug)]
struct Refused<'a> {
    place: String,
    source: &'a dyn Diagnostic,
}

impl std::fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.source)
    }
}

impl Error for Refused<'_> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

impl Diagnostic for Refused<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.source.code()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.source.help()
    }
}
