//! Runs that are kept: `plumb run --store`, `plumb runs`, and comparing them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::{self, Outcome, outcome};

/// A user with a state directory, and a file to work on.
struct User {
    folder: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("data"), vec![7; 1 << 20]).expect("a file");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn plumb(&self, line: &str) -> Outcome {
        let mut command = Command::new(program::path());
        command
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"));
        outcome(&mut command)
    }

    /// A short run that is kept; its id.
    fn keep(&self, options: &str) -> String {
        let line = format!("run --engine=sync -b4K -r -d1 -W0 -L -D200 {options} data");
        let told = self.plumb(&line).ends_with(0).stderr;
        let id = told.lines().find_map(|line| line.strip_prefix("note: stored as "));
        id.unwrap_or_else(|| panic!("an id in {told}")).to_owned()
    }

    fn runs(&self) -> Vec<Value> {
        let text = self.plumb("runs list --json").succeeds_quietly().stdout;
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn a_run_is_kept_shown_exported_repeated_and_removed() {
    let user = User::new();
    assert_eq!(user.plumb("runs list").succeeds_quietly().stdout, "");
    let id = user.keep("--store=nightly -z3");
    let list = user.plumb("runs list").succeeds_quietly().stdout;
    assert!(list.contains(&id) && list.contains("nightly") && list.contains("data"), "{list}");

    let shown = user.plumb("runs show nightly").succeeds_quietly().stdout;
    assert!(shown.contains("plumb run --engine=sync") && shown.contains("kernel"), "{shown}");
    let whole = user.plumb(&format!("runs show {} --json", &id[..id.len() - 1]));
    let whole: Value = serde_json::from_str(&whole.succeeds_quietly().stdout).expect("a document");
    let groups = &whole["environment"]["groups"];
    assert_eq!(groups["target"][0]["size_bytes"], 1 << 20);
    assert_eq!(whole["environment"]["stamps"], whole["environment_after"]["stamps"]);
    // The whole preflight stands beside it, and where the file lies.
    let checks = whole["environment"]["preflight"]["checks"].as_array().expect("verdicts");
    assert!(checks.len() >= 30, "{}", checks.len());
    assert!(
        checks.iter().all(|check| check["verdict"].is_string() && check["evidence"].is_string())
    );
    let placed = &whole["environment"]["volatile"]["placement"][0];
    assert_eq!(placed["allocated_bytes"], 1 << 20, "{placed}");

    let made = user.plumb("runs export latest --dir out --csv --parquet").succeeds_quietly().stdout;
    assert_eq!(made.lines().count(), 3, "{made}");
    let result = json(&user.path("out").join(format!("{id}.json")));
    assert_eq!(result, whole["result"]);
    let csv = fs::read_to_string(user.path("out").join(format!("{id}.csv"))).expect("a table");
    assert!(csv.starts_with("time_span,end_s,read_iops") && csv.lines().count() >= 4, "{csv}");
    let parquet = fs::read(user.path("out").join(format!("{id}.parquet"))).expect("a table");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let again = user.plumb("runs export latest --dir out").ends_with(1);
    assert!(again.stderr.contains("is there already"), "{}", again.stderr);

    user.plumb("runs rerun nightly").ends_with(0);
    let runs = user.runs();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run["label"] == "nightly"), "{runs:?}");

    user.plumb(&format!("runs rm {id} latest")).succeeds_quietly();
    assert!(user.runs().is_empty());
    let gone = user.plumb(&format!("runs show {id}")).ends_with(1);
    assert!(gone.stderr.contains("no stored run") && gone.stderr.contains("plumb runs list"));
}

#[test]
fn stored_runs_are_compared_unless_they_must_not_be() {
    let user = User::new();
    user.keep("--store=a");
    user.keep("--store=b");
    let answers = user.plumb("compare a b --json").succeeds_quietly().stdout;
    let first: Value = serde_json::from_str(answers.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&first["metric"], &first["baseline_file"]), (&"iops".into(), &"a".into()));

    // A file of another size is another workload, another engine another way to measure.
    fs::write(user.path("data"), vec![7; 2 << 20]).expect("a file");
    user.keep("--store=larger");
    let refused = user.plumb("compare a larger").ends_with(1).stderr;
    assert!(refused.contains("the workloads differ: size of the target"), "{refused}");
    user.plumb("compare a larger --allow parameters").ends_with(0);
    let refused = user.plumb("compare a nobody").ends_with(1).stderr;
    assert!(
        refused.contains("cannot read nobody") && refused.contains("plumb runs list"),
        "{refused}"
    );

    // What the store says of the device is believed.
    let export = user.plumb("runs show a --json").succeeds_quietly().stdout;
    let mut other: Value = serde_json::from_str(&export).expect("a document");
    other["environment"]["groups"]["cpu"]["model"] = "Another".into();
    fs::write(user.path("other.json"), other.to_string()).expect("a file");
    let refused = user.plumb("compare a other.json").ends_with(1).stderr;
    assert!(refused.contains("processor") && refused.contains("--allow hardware"), "{refused}");
    let allowed = user.plumb("compare a other.json --allow hardware --json").succeeds_quietly();
    assert!(allowed.stdout.contains("hardware change: processor"), "{}", allowed.stdout);
}

#[test]
fn results_of_others_are_imported() {
    let user = User::new();
    let reports =
        program::repository().join("crates/plumb-load/tests/data/conformance/results/reports");
    let xml = reports.join("random-read-latency.xml").canonicalize().expect("a result");
    let line = format!("runs import --label=old {}", xml.display());
    let told = user.plumb(&line).succeeds_quietly().stdout;
    let id = told.split(' ').next().expect("an id").to_owned();
    assert!(user.runs()[0]["summary"]["iops"].as_f64().is_some_and(|iops| iops > 0.0));
    user.plumb("compare old old").succeeds_quietly();
    user.plumb("runs export old --dir out").succeeds_quietly();
    let exported = fs::read(user.path("out").join(format!("{id}.xml"))).expect("a file");
    assert_eq!(exported, fs::read(&xml).expect("a file"));
    let refused = user.plumb("runs rerun old").ends_with(1).stderr;
    assert!(refused.contains("was imported"), "{refused}");
    let license = program::repository().join("LICENSE").canonicalize().expect("a file");
    user.plumb(&format!("runs import {}", license.display())).ends_with(1);
    assert_eq!(user.runs().len(), 1);
}

#[test]
fn a_store_that_cannot_be_used_is_told_before_the_run() {
    let user = User::new();
    fs::write(user.path("state"), "a file where a folder should be").expect("a file");
    let told = user.plumb("run --store --engine=sync -d60 data").ends_with(1).stderr;
    assert!(told.contains("state") && told.contains("XDG_STATE_HOME"), "{told}");
}
