//! The part of the set `results` that is about profiles and about reading reports back.

use std::collections::BTreeMap;

use plumb_load::profile::model::RawProfile;
use plumb_load::profile::{text, xml};
use serde_json::Value;

use crate::report::{Set, folder};

/// Judges the kinds `profile_text` and `profile_xml` of `results/cases.json`, and the reports.
pub fn cases(set: &mut Set) {
    profiles(set);
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
