//! Runs that are kept: `plumb run --store`, `plumb runs`, and comparing them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::{self, Outcome, outcome};
use crate::sweeps::Bench;

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

/// 15.14: XML and text results of Plumb's own say how I/Os were handed in, those of DISKSPD do not.
#[test]
fn xml_and_text_results_of_different_modes_are_not_compared() {
    let user = User::new();
    let ran = |more: &str, format: &str, name: &str| {
        let format = if format == "json" { "--json".to_owned() } else { format!("-R{format}") };
        let line = format!("run -b4K -r -o8 -d1 -W0 -L {more} {format} data");
        fs::write(user.path(name), user.plumb(&line).ends_with(0).stdout).expect("a file");
    };
    for (more, name) in [("", "closed"), ("--rate 500", "open"), ("--batch 1", "single")] {
        ran(more, "xml", name);
        ran(more, "text", &format!("{name}-text"));
    }
    for (other, why) in [("open", "arrivals is a closed loop and uniform"), ("single", "batch is")]
    {
        for (a, b) in [
            ("closed".to_owned(), other.to_owned()),
            ("closed-text".to_owned(), format!("{other}-text")),
            ("closed".to_owned(), format!("{other}-text")),
        ] {
            let refused = user.plumb(&format!("compare {a} {b}")).ends_with(1).stderr;
            assert!(refused.contains("different modes") && refused.contains(why), "{refused}");
            user.plumb(&format!("compare {a} {b} --allow parameters")).ends_with(0);
        }
    }
    // Another engine, tracing aside: whatever format says so.
    for format in ["xml", "text", "json"] {
        ran("--engine=threads", format, &format!("threads-{format}"));
        let refused = user.plumb(&format!("compare closed threads-{format}")).ends_with(1).stderr;
        assert!(refused.contains("different engines"), "{format}: {refused}");
    }
    for other in ["closed", "closed-text"] {
        let same = user.plumb(&format!("compare closed {other}")).ends_with(0);
        let said = same.stdout + &same.stderr;
        assert!(!said.contains("does not say in which mode"), "{said}");
    }
    // As DISKSPD ends.
    let text = fs::read_to_string(user.path("closed-text")).expect("a file");
    let (foreign, _) = text.split_once("\nPlausibility\n").expect("Plumb's own block");
    fs::write(user.path("foreign"), foreign).expect("a file");
    let told = user.plumb("compare closed foreign").ends_with(0);
    let told = told.stdout + &told.stderr;
    assert!(told.contains("does not say in which mode"), "{told}");
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
    // Results of other ways to hand I/O in are not compared, whatever the workload.
    let mut gathered = other.clone();
    gathered["result"]["time_spans"][0]["mode"]["batch"] = 77.into();
    fs::write(user.path("gathered.json"), gathered.to_string()).expect("a file");
    let refused = user.plumb("compare a gathered.json").ends_with(1).stderr;
    assert!(
        refused.contains("different modes: batch is ") && refused.contains("--batch"),
        "{refused}"
    );
    user.plumb("compare a gathered.json --allow parameters").ends_with(0);
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

    // A label ends no line and steers no terminal; in JSON it is what it was.
    let label = "a\nb\u{1b}[2J\u{9b}c";
    let mut import = Command::new(program::path());
    import.args(["runs", "import", "--label", label]).arg(&xml);
    let told = outcome(import.env("XDG_STATE_HOME", user.path("state"))).succeeds_quietly().stdout;
    let id = told.split(' ').next().expect("an id");
    let list = user.plumb("runs list").succeeds_quietly().stdout;
    assert_eq!(list.lines().count(), 3, "{list}");
    let shown = user.plumb(&format!("runs show {id}")).succeeds_quietly().stdout;
    for text in [&list, &shown] {
        assert!(text.contains(r"a\nb\u{1b}[2J\u{9b}c"), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{9b}'), "{text}");
    }
    assert!(user.runs().iter().any(|run| run["label"] == label), "{:?}", user.runs());
}

#[test]
fn a_store_that_cannot_be_used_is_told_before_the_run() {
    let user = User::new();
    fs::write(user.path("state"), "a file where a folder should be").expect("a file");
    let told = user.plumb("run --store --engine=sync -d60 data").ends_with(1).stderr;
    assert!(told.contains("state") && told.contains("XDG_STATE_HOME"), "{told}");
}

#[test]
fn a_table_of_intervals_that_are_not_there_is_no_silence() {
    let user = User::new();
    user.plumb("run --engine=sync -b4K -r -d1 -W0 --store data").ends_with(0);
    let told = user.plumb("runs export latest --dir out --parquet").ends_with(0);
    assert_eq!(told.stdout.lines().count(), 1, "{}", told.stdout);
    assert!(told.stderr.contains("measure with -D"), "{}", told.stderr);
}

#[test]
fn studies_are_in_the_list_and_shown_exported_and_removed() {
    let bench = Bench::with("seed = 5\nmax-iops = 40000\nlatency-us = 400\n");
    let sweep = |id: &str| {
        bench.call(&format!("sweep f --simulate DEVICE --vary o=1,2,4,8 --id {id}")).ends_with(0);
    };
    let list = || -> Vec<Value> {
        let text = bench.call("runs list --json").succeeds_quietly().stdout;
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
    };
    sweep("night");
    let [entry] = &list()[..] else { panic!("one study") };
    assert_eq!((&entry["id"], &entry["origin"]), (&"night".into(), &"study".into()));
    let study = &entry["study"];
    assert_eq!((&study["kind"], &study["state"]), (&"sweep".into(), &"complete".into()));
    let runs = study["runs"].as_u64().expect("a count");
    let told = bench.call("runs list").succeeds_quietly().stdout;
    assert!(told.contains(&format!("{runs} runs")) && told.contains("complete"), "{told}");

    let shown = bench.call("runs show nig").succeeds_quietly().stdout;
    assert!(shown.contains("The best setting") && shown.contains("report.html"), "{shown}");
    let whole = bench.call("runs show night --json").succeeds_quietly().stdout;
    let whole: Value = serde_json::from_str(&whole).expect("an object");
    assert_eq!(whole["findings"], bench.findings("night"));

    let made = bench.call("runs export night --dir out --csv --parquet").succeeds_quietly().stdout;
    assert_eq!(made.lines().count(), 3, "{made}");
    let result = json(&bench.path("out/night/runs/0001.json"));
    assert_eq!(result["simulated"], true);
    assert!(bench.path("out/night/report.html").exists());
    let csv = fs::read_to_string(bench.path("out/night.csv")).expect("a table");
    assert!(csv.starts_with("step,setting,run,files,threads"), "{csv}");
    assert_eq!(csv.lines().count() as u64, runs + 1, "{csv}");
    assert!(
        csv.lines().next().is_some_and(|names| names.ends_with(",p99_mark,p99_9_mark")),
        "{csv}"
    );
    assert!(csv.lines().skip(1).all(|run| run.contains(",good; episodes not told: ")), "{csv}");
    let parquet = fs::read(bench.path("out/night.parquet")).expect("a table");
    assert!(parquet.starts_with(b"PAR1"));
    bench.call("runs export night --dir out").ends_with(1);
    let refused = bench.call("runs rerun night").ends_with(1).stderr;
    assert!(refused.contains("night is a study"), "{refused}");

    // What was gone on with is entered anew; a lost catalogue is made anew; a name must be clear.
    let findings = bench.study("night").join("findings.json");
    let partial = fs::read_to_string(&findings).expect("findings").replace("complete", "partial");
    fs::write(&findings, partial).expect("written");
    assert_eq!(list()[0]["study"]["state"], "partial");
    sweep("noon");
    for name in ["catalogue.sqlite", "catalogue.sqlite-wal", "catalogue.sqlite-shm"] {
        let _ = fs::remove_file(bench.path("plumb").join(name));
    }
    assert_eq!(list().len(), 2);
    let unclear = bench.call("runs rm n").ends_with(1).stderr;
    assert!(unclear.contains("may be night, noon"), "{unclear}");

    bench.call("runs rm night").succeeds_quietly();
    assert!(!bench.study("night").exists());
    let left: Vec<Value> = list().iter().map(|entry| entry["id"].clone()).collect();
    assert_eq!(left, ["noon"]);
    bench.call("runs show night").ends_with(1);
    // A folder that somebody removes by hand is forgotten.
    fs::remove_dir_all(bench.study("noon")).expect("removed");
    assert!(list().is_empty());
}

#[test]
fn two_studies_are_compared_setting_by_setting() {
    let bench = Bench::with("seed = 5\nmax-iops = 40000\nlatency-us = 400\n");
    let line = "sweep f --simulate DEVICE --vary o=1,2,4,8,16 --repetitions 3";
    bench.call(&format!("{line} --id before")).ends_with(0);
    fs::write(bench.path("device.toml"), "seed = 9\nmax-iops = 30000\nlatency-us = 400\n")
        .expect("written");
    bench.call(&format!("{line} --id after")).ends_with(0);
    let refused = bench.call("compare before after").ends_with(1).stderr;
    assert!(
        refused.contains("simulated device") && refused.contains("--allow hardware"),
        "{refused}"
    );
    let told =
        bench.call("compare before after --allow hardware --fail-on worse").ends_with(4).stdout;
    assert!(told.starts_with("after against before: 5 settings were measured in both"), "{told}");
    assert!(told.contains("o16") && told.contains(": worse") && !told.contains(": same"), "{told}");
    let all = bench.call("compare before after --allow hardware --json").ends_with(0).stdout;
    let lines: Vec<Value> =
        all.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert!(lines.len() >= 15 && lines.iter().all(|line| line["rule"] == "compare"), "{all}");
    let same = bench.call("compare before before").succeeds_quietly().stdout;
    assert!(same.contains("0 figures better, 0 worse"), "{same}");
    fs::write(bench.path("run.json"), "{}").expect("written");
    let mixed = bench.call("compare before run.json").ends_with(1).stderr;
    assert!(mixed.contains("before is a study and run.json is none"), "{mixed}");

    let page = bench.path("change.html");
    let line = format!("report after --against before -o {}", page.display());
    let told = bench.call(&line).succeeds_quietly().stdout;
    assert!(told.contains("Against before: not compared: "), "{told}");
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("I/Os per second of before"), "the curves are drawn under these");
    let refused = bench.call("report after --against device.toml").ends_with(1).stderr;
    assert!(refused.contains("device.toml"), "{refused}");
}
