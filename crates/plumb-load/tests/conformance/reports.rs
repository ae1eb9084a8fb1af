//! The part of the set `results` that is about profiles and about reading reports back.

use std::collections::BTreeMap;

use plumb_load::convert::{self, ImportedSpan, ImportedTarget};
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
    let cases = file["cases"].as_array().expect("a list of cases");
    let mut by_args: BTreeMap<String, RawProfile> = BTreeMap::new();
    for case in cases.iter().filter(|case| case["kind"] == "profile_xml") {
        let want = case["expect"]["text"].as_str().expect("a document");
        let outcome = xml::read(want).map_err(|violation| violation.to_string());
        set.case(
            id(case),
            outcome.and_then(|profile| {
                let got = xml::write(&profile, 0);
                by_args.insert(case["input"]["args"].to_string(), profile);
                equal(&got, want)
            }),
        );
    }
    for case in cases.iter().filter(|case| case["kind"] == "profile_text") {
        let want = case["expect"]["text"].as_str().expect("a report");
        let command_line = case["input"]["command_line"].as_str().expect("a command line");
        let profile = by_args.get(&case["input"]["args"].to_string());
        set.case(
            id(case),
            profile
                .ok_or("no such profile".to_owned())
                .and_then(|profile| equal(&text::write(profile, command_line), want)),
        );
    }
}

fn id(case: &Value) -> &str {
    case["id"].as_str().expect("an id")
}

/// Compares texts line by line.
fn equal(got: &str, want: &str) -> Result<(), String> {
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

#[test]
fn reports() {
    let mut set = Set::new("reports");
    cases(&mut set);
    set.finish();
}
