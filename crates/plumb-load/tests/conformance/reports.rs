//! The part of the set `results` that is about profiles and about reading reports back.

use std::ffi::OsString;
use std::io;

use plumb_load::convert::{self, ImportedSpan, ImportedTarget};
use plumb_load::profile::flags::{self, Parsed, Surroundings};
use plumb_load::profile::model::RawProfile;
use plumb_load::profile::{text, xml};
use plumb_units::Bytes;
use serde_json::Value;

use crate::report::{Set, folder};

/// Judges the kinds `profile_text` and `profile_xml` of `results/cases.json`, and the reports.
pub(crate) fn cases(set: &mut Set) {
    profiles(set);
    let index = std::fs::read_to_string(folder().join("results/reports/index.json"));
    let index: Value = serde_json::from_str(&index.expect("the index")).expect("JSON");
    for entry in index["reports"].as_array().expect("a list of reports") {
        let file = entry["file"].as_str().expect("a file name");
        set.case(file, judge_report(file, entry));
        if let Some(xml) = entry["xml"].as_str() {
            set.case(xml, judge_report(xml, entry));
        }
    }
}

/// Reads a report and finds the numbers that the index lists.
fn judge_report(file: &str, entry: &Value) -> Result<(), String> {
    let bytes = std::fs::read(folder().join("results/reports").join(file))
        .map_err(|error| format!("cannot be read: {error}"))?;
    let results = convert::read(&bytes).map_err(|error| error.to_string())?;
    let [result] = results.as_slice() else {
        return Err(format!("{} results", results.len()));
    };
    if !result.notes.is_empty() {
        return Err(format!("notes: {:?}", result.notes));
    }
    if result.profile.is_none() {
        return Err("no profile".to_owned());
    }
    let want = entry["timespans"].as_array().expect("a list of time spans");
    if result.time_spans.len() != want.len() {
        return Err(format!("{} time spans, expected {}", result.time_spans.len(), want.len()));
    }
    for (span, want) in result.time_spans.iter().zip(want) {
        let (got, want) = (found(span), wanted(span, want));
        if got != want {
            return Err(format!("{got:?}, expected {want:?}"));
        }
    }
    Ok(())
}

/// What a parser should recover of a time span.
#[derive(Debug, PartialEq)]
struct Numbers {
    seconds: String,
    rows: Vec<Row>,
    bytes: u128,
    ios: u128,
}

/// Thread, path, size, and bytes and I/Os read and written.
type Row = (u32, String, String, [u64; 4]);

fn found(span: &ImportedSpan) -> Numbers {
    let targets = span
        .threads
        .iter()
        .flat_map(|thread| thread.targets.iter().map(|target| (thread.id, target)));
    let row = |(thread, target): (u32, &ImportedTarget)| {
        let (read, write) = (target.read, target.write);
        let counts = [read.bytes, read.ios, write.bytes, write.ios];
        (thread, target.path.clone(), shown(target.file_size.bytes, target.file_size.exact), counts)
    };
    let (reads, writes) = (span.reads(), span.writes());
    Numbers {
        seconds: format!("{:.2}", span.seconds),
        rows: targets.map(row).collect(),
        bytes: reads.0 + writes.0,
        ios: reads.1 + writes.1,
    }
}

/// What the index lists; `span` only says which sizes its report shows exactly.
fn wanted(span: &ImportedSpan, want: &Value) -> Numbers {
    let mut exact = span
        .threads
        .iter()
        .flat_map(|thread| thread.targets.iter().map(|target| target.file_size.exact));
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    let row = |row: &Value| {
        let counts = ["read_bytes", "reads", "write_bytes", "writes"].map(|key| number(row, key));
        let path = row["path"].as_str().expect("a path").to_owned();
        let thread = u32::try_from(number(row, "thread")).expect("a thread number");
        let size = shown(number(row, "file_size"), exact.next().unwrap_or(true));
        (thread, path, size, counts)
    };
    let rows = want["threads"].as_array().expect("a list of threads").iter().map(row).collect();
    let total = |key: &str| want[key].as_u64().unwrap_or(0).into();
    Numbers {
        seconds: format!("{:.2}", want["seconds"].as_f64().expect("seconds")),
        rows,
        bytes: total("total_bytes"),
        ios: total("total_ios"),
    }
}

fn shown(bytes: u64, exact: bool) -> String {
    if exact { bytes.to_string() } else { Bytes(bytes).to_string() }
}

/// `-Rptext` and `-Rpxml` output.
fn profiles(set: &mut Set) {
    let file = std::fs::read_to_string(folder().join("results/cases.json")).expect("the cases");
    let file: Value = serde_json::from_str(&file).expect("cases in JSON");
    for case in file["cases"].as_array().expect("a list of cases") {
        let outcome = match case["kind"].as_str() {
            Some("profile_text") => profile_of(case).and_then(|profile| {
                let command_line = case["input"]["command_line"].as_str().expect("a command line");
                equal(&text::write(&profile, command_line), case)
            }),
            Some("profile_xml") => profile_of(case).and_then(|profile| {
                let written = xml::write(&profile, 0);
                equal(&written, case)?;
                xml::read(&written).map(|_| ()).map_err(|violation| violation.to_string())
            }),
            _ => continue,
        };
        set.case(case["id"].as_str().expect("an id"), outcome);
    }
}

/// The profile of a case's command line.
fn profile_of(case: &Value) -> Result<RawProfile, String> {
    let args = case["input"]["args"].as_array().expect("a list of arguments").iter();
    let args: Vec<OsString> = args.map(|arg| arg.as_str().expect("a string").into()).collect();
    match flags::parse(&args, &mut CaseFolder) {
        Ok(Parsed::Run(invocation)) => Ok((*invocation.profile).clone()),
        Ok(other) => Err(format!("no workload but {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Profiles are read from the folder of the cases; every event exists.
struct CaseFolder;

impl Surroundings for CaseFolder {
    fn create_event(&mut self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn signal_event(&mut self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn read_profile(&mut self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(folder().join(path))
    }

    fn uptime_millis(&mut self) -> u64 {
        0
    }
}

/// Compares with the text that a case expects, line by line.
fn equal(got: &str, case: &Value) -> Result<(), String> {
    let want = case["expect"]["text"].as_str().expect("a text");
    if got == want {
        return Ok(());
    }
    let mut pairs = got.split('\n').zip(want.split('\n')).enumerate();
    match pairs.find(|(_, (got, want))| got != want) {
        Some((index, (got, want))) => {
            Err(format!("line {}: {got:?}, expected {want:?}", index + 1))
        }
        None => Err(format!("{} bytes, expected {}", got.len(), want.len())),
    }
}
