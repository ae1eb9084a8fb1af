//! The set `profiles`: XML profiles, what they mean or what is wrong with them.

use plumb_load::profile::check::Purpose;
use plumb_load::profile::error::Violation;
use plumb_load::profile::model::RawProfile;
use plumb_load::profile::{json, template, xml};
use serde_json::Value;

use crate::report::{Set, folder};

#[test]
fn profiles() {
    let folder = folder().join("profiles");
    let index = std::fs::read_to_string(folder.join("index.json")).expect("the set's index");
    let index: Value = serde_json::from_str(&index).expect("an index in JSON");
    let mut set = Set::new("profiles");
    for case in index["profiles"].as_array().expect("a list of profiles") {
        let file = case["file"].as_str().expect("a file name");
        let bytes = std::fs::read(folder.join(file)).expect("the profile of a case");
        set.case(file, judge(case, &bytes));
    }
    set.finish();
}

/// Reads, fills in and checks the profile as for a run.
fn judge(case: &Value, bytes: &[u8]) -> Result<(), String> {
    let targets: Vec<String> = strings(&case["targets"]);
    let outcome = load(bytes, &targets);
    if case["valid"] == false {
        let want = case["error_class"].as_str().unwrap_or_default();
        return match outcome {
            Ok(_) => Err(format!("accepted, expected {want}")),
            Err(violations) => {
                let got: Vec<_> = violations.iter().map(|each| each.class.keyword()).collect();
                let first = violations.first().map(ToString::to_string).unwrap_or_default();
                let fits = got.first() == Some(&want);
                if fits { Ok(()) } else { Err(format!("{got:?} ({first}), expected {want}")) }
            }
        };
    }
    let (profile, warnings) = outcome.map_err(|violations| format!("{violations:?}"))?;
    let got = json::normalised(&profile);
    if got != case["profile"] {
        return Err(differences("", &got, &case["profile"]).join("; "));
    }
    let want = strings(&case["warnings"]);
    let fits = warnings.len() == want.len()
        && warnings.iter().zip(&want).all(|(got, want)| got.ends_with(want.as_str()));
    if fits { Ok(()) } else { Err(format!("warnings {warnings:?}, expected {want:?}")) }
}

fn load(bytes: &[u8], targets: &[String]) -> Result<(RawProfile, Vec<String>), Vec<Violation>> {
    let text = xml::decode(bytes).map_err(|violation| vec![violation])?;
    let mut profile = xml::read(&text).map_err(|violation| vec![violation])?;
    template::substitute(&mut profile, targets).map_err(|violation| vec![violation])?;
    let (profile, warnings) = profile.check(Purpose::Run)?;
    Ok(((*profile).clone(), warnings))
}

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|each| each.as_str().expect("a string").to_owned()).collect()
}

/// Where two values differ.
fn differences(place: &str, got: &Value, want: &Value) -> Vec<String> {
    match (got, want) {
        (Value::Object(got_map), Value::Object(want_map)) => {
            let keys = got_map.keys().chain(want_map.keys().filter(|k| !got_map.contains_key(*k)));
            keys.flat_map(|key| differences(&format!("{place}/{key}"), &got[key], &want[key]))
                .collect()
        }
        (Value::Array(got), Value::Array(want)) if got.len() == want.len() => {
            let pairs = got.iter().zip(want).enumerate();
            pairs
                .flat_map(|(i, (got, want))| differences(&format!("{place}/{i}"), got, want))
                .collect()
        }
        _ if got == want => Vec::new(),
        _ => vec![format!("{place}: {got}, expected {want}")],
    }
}
