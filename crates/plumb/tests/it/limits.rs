//! Limits that somebody declared: on the command line, in a file, and in the file of the user's own.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{self, Outcome, outcome};

const CURVE: &str = "o,iops,avg_lat_ms\n1,600,1.667\n2,1150,1.739\n4,1940,2.062\n8,1952,4.098\n16,1951,8.201\n32,1953.3,16.38\n";
const LIMITS: &str = "[[cap]]\nname = \"VM limit\"\niops = 1920\n\n[[cap]]\nname = \"disk\"\niops = 5000\ncount = 4\n";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn plumb(&self, words: &[&str]) -> Outcome {
        let mut command = Command::new(program::path());
        command
            .args(words)
            .current_dir(self.0.path())
            .env("XDG_CONFIG_HOME", self.0.path().join("config"))
            .env("XDG_STATE_HOME", self.0.path().join("state"));
        outcome(&mut command)
    }

    fn named(&self, words: &[&str]) -> Value {
        let words = [&["knee", "--csv", "curve.csv", "--json"], words].concat();
        let found: Value =
            serde_json::from_str(&self.plumb(&words).succeeds_quietly().stdout).expect("JSON");
        found["named_cap"].clone()
    }
}

#[test]
fn a_ceiling_has_the_name_that_it_was_declared_with() {
    let place = Place::new();
    place.write("curve.csv", CURVE);
    assert_eq!(place.named(&[]), Value::Null);
    assert_eq!(place.named(&["--cap", "1920iops"]), "1920iops");
    assert_eq!(place.named(&["--cap", "VM limit=1920iops"]), "VM limit");
    place.write("limits.toml", LIMITS);
    assert_eq!(place.named(&["--caps", "limits.toml"]), "VM limit");
    // The user's own file, where no other is named.
    place.write("config/plumb/caps.toml", &LIMITS.replace("VM limit", "the rented machine"));
    assert_eq!(place.named(&[]), "the rented machine");
    assert_eq!(place.named(&["--caps", "limits.toml"]), "VM limit");
}

#[test]
fn files_that_hold_no_limits_are_refused() {
    let place = Place::new();
    place.write("curve.csv", CURVE);
    place.write("wrong.toml", "[[cap]]\nname = \"a\"\n");
    for (words, says) in [
        (&["knee", "--csv", "curve.csv", "--caps", "none.toml"][..], "none.toml"),
        (&["knee", "--csv", "curve.csv", "--caps", "wrong.toml"], "`a` says no rate"),
        (&["sweep", "f", "--vary", "o=1,2", "--caps", "wrong.toml", "--dry-run"], "says no rate"),
        (&["baseline", "f", "--caps", "wrong.toml", "--dry-run"], "says no rate"),
    ] {
        let refused = place.plumb(words).ends_with(2);
        assert!(refused.stderr.contains(says), "{words:?}: {}", refused.stderr);
    }
}

#[test]
fn a_single_run_is_held_against_the_declared_limits() {
    let place = Place::new();
    place.write("data", &"7".repeat(1 << 20));
    let line = "run --engine=sync -b4K -r -d2 -W0 -L -D250 -Su --output json=run.json data";
    place.plumb(&line.split(' ').collect::<Vec<_>>()).ends_with(0);
    let path = place.0.path().join("run.json");
    let mut result: Value =
        serde_json::from_slice(&fs::read(&path).expect("a result")).expect("JSON");
    // The published run: 1953.30 I/Os per second, as even as they were.
    let span = &mut result["time_spans"][0];
    span["total"]["iops_per_s"] = json!(1953.30);
    for (at, cell) in
        span["intervals"]["series"].as_array_mut().expect("intervals").iter_mut().enumerate()
    {
        cell["total"]["iops_per_s"] = json!(1953.30 + if at % 2 == 0 { 17.0 } else { -17.0 });
    }
    fs::write(&path, result.to_string()).expect("written");
    place.write("limits.toml", LIMITS);
    let page = |words: &[&str]| {
        place.plumb(&[&["report", "run.json", "-o", "-"], words].concat()).succeeds_quietly().stdout
    };
    assert!(!page(&[]).contains("R8: "), "no limit was declared");
    for words in [&["--caps", "limits.toml"][..], &["--cap", "VM limit=1920iops"]] {
        let page = page(words);
        assert!(page.contains("R8: Throughput is held at a ceiling: VM limit, 1920"), "{words:?}");
    }
    assert!(!page(&["--cap", "disk=5000iops"]).contains("R8: "), "none is near");
}

#[test]
fn a_study_keeps_the_limits_that_it_began_with() {
    let place = Place::new();
    place.write("device.toml", "cap-iops = 1930.0\nnoise = 0.001\nlatency-cost = 0.0\n");
    place.write("config/plumb/caps.toml", LIMITS);
    let line =
        "sweep f --simulate device.toml --set t=1 --vary o=1..8 --repetitions 1 --id s --json";
    let found = place.plumb(&line.split(' ').collect::<Vec<_>>()).ends_with(0);
    assert!(found.stdout.contains("\"named_cap\":\"VM limit\""), "{}", found.stdout);
    // They are part of its plan: what became of the file is no matter, another one contradicts.
    fs::remove_file(place.0.path().join("config/plumb/caps.toml")).expect("it was there");
    let again = place.plumb(&["sweep", "--resume", "s", "--json"]).ends_with(0);
    assert_eq!(again.stdout, found.stdout);
    place.write("other.toml", &LIMITS.replace("1920", "2000"));
    let refused = place.plumb(&["sweep", "--resume", "s", "--caps", "other.toml"]).ends_with(2);
    assert!(refused.stderr.contains("was begun with"), "{}", refused.stderr);
}
