//! `plumb sweep` and `plumb plan` on simulated devices and a small file.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::instants::{MS_PER_RUN, kill_in_the_first_moments_loses_nothing, kills_change_nothing};
use crate::program::{Outcome, outcome, path};

/// A state folder and a device of its own.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn with(device: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("device.toml"), device).expect("written");
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with that line; `DEVICE` in it is the description of the device.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(path());
        let device = OsString::from(self.path("device.toml"));
        let words = line.split_whitespace().map(|word| match word {
            "DEVICE" => device.clone(),
            word => word.into(),
        });
        command
            .args(words)
            .env("XDG_STATE_HOME", self.folder.path())
            .current_dir(self.folder.path());
        command
    }

    /// Calls the program; `DEVICE` in the line is the description of the device.
    pub(crate) fn call(&self, line: &str) -> Outcome {
        outcome(&mut self.command(line))
    }

    pub(crate) fn start(&self, line: &str) -> Child {
        let mut command = self.command(line);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the program can be started")
    }

    pub(crate) fn study(&self, id: &str) -> PathBuf {
        self.path("plumb/studies").join(id)
    }

    /// The lines of a study's journal.
    #[track_caller]
    pub(crate) fn journal(&self, id: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.study(id).join("journal.ndjson")).expect("a journal");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[track_caller]
    pub(crate) fn findings(&self, id: &str) -> Value {
        let bytes = fs::read(self.study(id).join("findings.json")).expect("findings");
        serde_json::from_slice(&bytes).expect("JSON")
    }
}

/// The finding of that name.
#[track_caller]
pub(crate) fn finding<'a>(findings: &'a Value, id: &str) -> &'a Value {
    let all = findings["findings"].as_array().expect("a list");
    let has = |finding: &&Value| finding["id"] == id;
    all.iter().find(has).unwrap_or_else(|| panic!("no {id} in {all:?}"))
}

const DEVICE: &str = "seed = 5\nmax-iops = 40000\nlatency-us = 400\nnoise = 0.004\n";

#[test]
fn the_rules_of_reading_see_a_sweep_as_a_whole() {
    let bench = Bench::with("max-iops = 20000\nlatency-us = 500\nnoise = 0.002\n");
    bench.call("sweep f --simulate DEVICE --vary o=1..24 --id ruled").ends_with(0);
    let findings = bench.findings("ruled");
    let evidence =
        finding(&findings, "reading")["decision"]["evidence"].as_array().expect("remarks");
    let said: Vec<&str> = evidence.iter().filter_map(|item| item["name"].as_str()).collect();
    // A ceiling, and what the chosen setting costs in latency against one I/O at a time.
    for rule in ["R8 of the whole", "R21 of the best setting"] {
        assert!(said.contains(&rule), "{rule}: {said:?}");
    }
}

#[test]
fn a_sweep_finds_best_and_knee() {
    let bench = Bench::with(DEVICE);
    let line = "sweep f --simulate DEVICE --set w=0 --vary t=2,4 --vary o=1..12 --repetitions 2 --id s --json";
    let found = bench.call(line).ends_with(0);
    let findings: Value = serde_json::from_str(&found.stdout).expect("JSON");
    assert_eq!(findings, bench.findings("s"));
    assert_eq!(findings["state"], "complete");
    // 48 runs and an anchor before each ten and at the end.
    assert_eq!(findings["runs"], 54);
    assert_eq!(finding(&findings, "drift")["decision"]["verdict"], "stable");
    let knee = finding(&findings, "knee-t4-b8K-r-w0");
    assert_eq!(knee["decision"]["verdict"], "knee", "{}", knee["sentence"]);
    // The corner of the service curve is at 40 000·0.4 ms = 16 outstanding, o = 4 of four threads.
    let plateau = knee["decision"]["plateau_o"].as_u64().expect("a plateau");
    assert!((5..=8).contains(&plateau), "{plateau}");
    assert_eq!(knee["runs"].as_array().map(Vec::len), Some(30));
    let lines = fs::read_to_string(bench.study("s").join("journal.ndjson")).expect("a journal");
    assert_eq!(lines.lines().count(), 54);
    // What is left is known of a plan in its order, and nothing is after its last run.
    let tells_left = |run: &str| {
        let line = found.stderr.lines().find(|line| line.starts_with(run));
        line.unwrap_or_else(|| panic!("no {run}: {}", found.stderr)).contains(" left")
    };
    assert!(tells_left("run 53 of at most 54") && !tells_left("run 54 of at most 54"));
    // Its decisions can be explained.
    let file = bench.path("decision.json");
    fs::write(&file, knee["decision"].to_string()).expect("written");
    let explained = bench.call(&format!("explain {}", file.display())).succeeds_quietly();
    assert!(explained.stdout.contains("concave"), "{}", explained.stdout);
    fs::write(&file, finding(&findings, "best")["decision"].to_string()).expect("written");
    bench.call(&format!("explain {}", file.display())).succeeds_quietly();
}

#[test]
fn killed_at_fifty_instants_the_findings_are_the_same() {
    let bench =
        Bench::with(&format!("{DEVICE}drift-per-hour = 0.1\nreal-ms-per-run = {MS_PER_RUN}\n"));
    let plan =
        "sweep f --simulate DEVICE --vary o=1,2,4,8,16 --vary w=0,50 --repetitions 2 --duration 40";
    let told = kills_change_nothing(&bench, plan);
    println!("{told:?}");
    assert!(told.under_way == 50 && told.between >= 15 && told.twice >= 5, "{told:?}");
    // Nearly each run was one of them the last before it died.
    assert!(told.runs >= 20 && told.places * 10 >= told.runs * 8, "{told:?}");
    assert!(told.with_reference >= 30, "{told:?}");
}

#[test]
fn a_search_that_is_killed_in_its_first_moments_goes_on() {
    let bench = Bench::with(DEVICE);
    let plan = "sweep --simulate DEVICE --vary o=1..64 --adaptive --duration 40";
    kill_in_the_first_moments_loses_nothing(&bench, plan);
}

#[test]
fn a_simulated_device_needs_no_target() {
    let bench = Bench::with(DEVICE);
    let vary = "--simulate DEVICE --vary o=1,2 --repetitions 1 --id";
    bench.call(&format!("sweep {vary} alone")).ends_with(0);
    bench.call(&format!("sweep f {vary} named")).ends_with(0);
    let told = |id: &str| bench.findings(id)["findings"].to_string();
    assert_eq!(told("alone"), told("named"));
    let target = |id: &str| -> Value {
        let plan = fs::read(bench.study(id).join("plan.json")).expect("a plan");
        serde_json::from_slice::<Value>(&plan).expect("JSON")["target"].clone()
    };
    assert_eq!(target("alone"), bench.path("device.toml").display().to_string());
    assert_eq!(target("named"), "f");
    bench.call("sweep --resume alone").ends_with(0);
    let plan = "simulate = \"device.toml\"\nvary = [\"o=1,2\"]\nrepetitions = 1\n";
    fs::write(bench.path("night.toml"), plan).expect("written");
    bench.call("sweep --plan night.toml --id night").ends_with(0);
    assert_eq!((told("night"), target("night")), (told("alone"), json!("device.toml")));
    bench.call("quick --simulate DEVICE --size 1G --dry-run").ends_with(0);
    bench.call("baseline --simulate DEVICE --dry-run").ends_with(0);
    // Without either there is nothing to measure.
    for line in ["sweep --vary o=1,2", "quick", "baseline"] {
        bench.call(line).ends_with(2);
    }
}

#[test]
fn files_that_do_not_fit_are_refused_before_the_start() {
    let bench = Bench::with("");
    for line in ["sweep f --set size=100T --vary o=1,2 --id big", "quick f --size 100T --id big"] {
        let told = bench.call(line).ends_with(1).stderr;
        for part in ["f: 100TiB are to be written", " free: ", "too few", "smaller size", "df -h"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!bench.path("f").exists() && !bench.study("big").exists(), "{line}");
        // Whoever only asks is told.
        let dry = bench.call(&format!("{line} --dry-run")).ends_with(0);
        assert!((dry.stdout + &dry.stderr).contains("100TiB are to be written"), "{line}");
    }
    // The largest of several sizes has to fit.
    let line = "sweep f --vary size=1M,100T --vary o=1,2";
    let object = bench.call(&format!("{line} --dry-run --json")).succeeds_quietly().stdout;
    let object: Value = serde_json::from_str(&object).expect("JSON");
    let missing = object["bytes_missing"].as_u64().expect("bytes");
    assert!(missing > 1 << 40 && missing <= 100 << 40, "{missing}");
    bench.call(line).ends_with(1);
    let line = "sweep f --set size=1M --vary o=1,2 --dry-run --json";
    let object = bench.call(line).succeeds_quietly().stdout;
    assert!(object.contains("\"bytes_missing\":0"), "{object}");
    // A simulated device has no files.
    bench.call("sweep f --simulate DEVICE --set size=100T --vary o=1,2 --id s").ends_with(0);
}

#[test]
fn a_study_that_was_killed_before_its_plan_is_told_and_begun_again() {
    let bench = Bench::with(DEVICE);
    fs::create_dir_all(bench.study("early").join("runs")).expect("made");
    fs::write(bench.study("early").join("lock"), "").expect("written");
    for line in ["sweep --resume early", "report early -o x.html"] {
        let told = bench.call(line).ends_with(1).stderr;
        for part in ["the study `early` ended before its plan was written", "--id early"] {
            assert!(told.contains(part), "{line}: {part}: {told}");
        }
    }
    let line = "sweep f --simulate DEVICE --vary o=1,2 --id early";
    bench.call(&format!("{line} --dry-run")).ends_with(0);
    bench.call(line).ends_with(0);
    assert_eq!(bench.findings("early")["state"], "complete");
}

#[test]
fn a_big_sweep_has_few_remarks() {
    // 1 % in an hour and nothing else: MSER takes half of every run.
    let bench = Bench::with("max-iops = 60000\ndrift-per-hour = 0.01\nnoise = 0.01\nripple = 0\n");
    let line = "sweep f --simulate DEVICE --vary o=1..41 --vary t=1,2,4 --full-length --id big";
    bench.call(line).ends_with(0);
    let findings = bench.findings("big");
    assert!(findings["runs"].as_u64() > Some(400), "{}", findings["runs"]);
    let notes = findings["notes"].as_array().expect("a list");
    let length: usize = notes.iter().map(|note| note.to_string().len()).sum();
    assert!(notes.len() <= 5 && length < 2000, "{notes:?}");
    assert!(!findings["notes"].to_string().contains("not-steady"), "{notes:?}");
}

#[test]
fn an_adaptive_sweep_takes_less_than_half_of_the_runs() {
    let bench = Bench::with(DEVICE);
    let line = "sweep f --simulate DEVICE --set w=0 --set t=1 --vary o=1..48 --policy throughput";
    bench.call(&format!("{line} --repetitions 1 --id all")).ends_with(0);
    bench.call(&format!("{line} --repetitions 1 --adaptive --id some")).ends_with(0);
    let (all, some) = (bench.findings("all"), bench.findings("some"));
    let runs = |findings: &Value| findings["runs"].as_u64().expect("a count");
    // 48 settings and six times the reference.
    assert!(runs(&some) * 100 <= 45 * 54, "{} runs", runs(&some));
    let rate = |findings: &Value| {
        let knee = finding(findings, "knee-t1-b8K-r-w0");
        knee["decision"]["finding"]["iops"].as_f64().expect("a rate")
    };
    assert!((rate(&some) / rate(&all) - 1.0).abs() < 0.03, "{} {}", rate(&some), rate(&all));
    assert!(some["notes"].to_string().contains("instead of 54 exhaustive"), "{}", some["notes"]);
    // A longer search has the reference at its start, after every ten runs, and at its end.
    let longer = "sweep f --simulate DEVICE --set w=0 --vary t=1,2,4 --vary o=1..32 --repetitions 2 --adaptive";
    bench.call(&format!("{longer} --id longer")).ends_with(0);
    let drift = bench.findings("longer");
    assert_eq!(finding(&drift, "drift")["decision"]["verdict"], "stable");
    let journal = bench.journal("longer");
    let is_anchor: Vec<bool> = journal.iter().map(|run| run["purpose"] == "anchor").collect();
    assert!(is_anchor[0] && is_anchor[is_anchor.len() - 1], "{is_anchor:?}");
    let longest = is_anchor.split(|anchor| *anchor).map(<[bool]>::len).max();
    assert_eq!(longest, Some(10), "{is_anchor:?}");
}

#[test]
fn a_plan_file_has_the_names_of_the_flags() {
    let bench = Bench::with(DEVICE);
    let plan = "target = \"f\"\nvary = [\"o=1,2,4,8\"]\nset = [\"t=1\", \"w=0\"]\nrepetitions = 3\n\
                no-anchors = true\nlatency-budget = 0.4\ncaps = \"limits.toml\"\nsimulate = \"device.toml\"\n\
                id = \"night\"\ndestroy = [\"f\"]\n";
    fs::write(bench.path("plan.toml"), plan).expect("written");
    fs::write(bench.path("limits.toml"), "[[cap]]\nname = \"VM limit\"\niops = 1920\n")
        .expect("written");
    bench.call("sweep --plan plan.toml").ends_with(0);
    assert_eq!(bench.journal("night").len(), 12, "no anchors");
    let text = fs::read_to_string(bench.study("night").join("plan.json")).expect("a plan");
    let request = serde_json::from_str::<Value>(&text).expect("JSON")["request"].clone();
    assert_eq!(request["latency-budget-ms"], 0.4);
    assert_eq!(request["anchors"], false);
    assert!(request["cap"][0].as_str().expect("a limit").contains("1920"), "{request}");
    // It goes on as the same study, and flags go first.
    bench.call("sweep --resume night --plan plan.toml").ends_with(0);
    bench.call("sweep --plan plan.toml --id day").ends_with(0);
    assert_eq!(bench.journal("day").len(), 12);
}

#[test]
fn a_target_is_conditioned_before_it_is_measured() {
    let bench = Bench::with(DEVICE);
    let line = "sweep f --simulate DEVICE --set size=8G --set w=100 --vary o=1,2,4 --repetitions 1 \
                --conditioning pts-file --id s --json";
    bench.call(line).ends_with(0);
    let journal = bench.journal("s");
    let of = |step: &str| journal.iter().filter(|run| run["step"] == step).count();
    // At 2000 MiB/s less the cost of writes, twice 8 GiB take one run of 60 s; five rounds make a window.
    assert!(of("conditioning") >= 6, "{}", of("conditioning"));
    assert_eq!(of("sweep"), 3);
    let findings = bench.findings("s");
    assert_eq!(findings["runs"], 3);
    let notes = findings["notes"].to_string();
    assert!(notes.contains("written 2.0 times") && notes.contains(": steady"), "{notes}");
    let refused = bench.call("sweep f --vary o=1,2 --conditioning pts-file --dry-run").ends_with(2);
    assert!(refused.stderr.contains("size=64G"), "{}", refused.stderr);
    let published = bench
        .call("plan show f --vary o=1,2,4 --set size=1G --conditioning d0 --json")
        .succeeds_quietly();
    let object: Value = serde_json::from_str(&published.stdout).expect("JSON");
    let runs = object["runs_most"].as_f64().expect("a count");
    assert_eq!(object["runs_s"], runs * 361.0);
}

#[test]
fn a_budget_ends_a_sweep_and_a_larger_one_goes_on() {
    let bench = Bench::with(DEVICE);
    let line = "sweep f --simulate DEVICE --vary o=1..12 --repetitions 1 --full-length --id s";
    let partial = bench.call(&format!("{line} --budget 5m")).ends_with(5);
    assert!(partial.stderr.contains("--resume s"), "{}", partial.stderr);
    let findings = bench.findings("s");
    assert_eq!((&findings["state"], &findings["runs"]), (&json!("partial"), &json!(4)));
    bench.call("sweep --resume s --budget 2h").ends_with(0);
    assert_eq!(bench.findings("s")["state"], "complete");
}

#[test]
fn a_plan_that_is_named_as_the_target_is_told_apart() {
    let bench = Bench::with(DEVICE);
    fs::write(bench.path("night.toml"), "vary = [\"o=1,2\"]\nset = [\"size=1G\"]\n")
        .expect("written");
    let refused = bench.call("sweep night.toml --dry-run").ends_with(2);
    assert!(refused.stderr.contains("--plan night.toml"), "{}", refused.stderr);
    // What is shown is a plan, however it is named.
    let shown = bench.call("plan show f --plan night.toml").succeeds_quietly().stdout;
    assert!(shown.contains("t8 o2"), "{shown}");
    // What files take to write is measured each time.
    let settings = |shown: &str| {
        let lines = shown.lines().filter(|line| line.contains(" o"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let again = bench.call("plan show night.toml").succeeds_quietly().stdout;
    assert_eq!(settings(&again), settings(&shown), "{again}");
    assert!(settings(&shown).len() >= 6, "{shown}");
    let other = bench.call("plan show night.toml --vary o=3,4").succeeds_quietly().stdout;
    assert!(other.contains("t8 o4") && !other.contains("t8 o2"), "{other}");
    let refused = bench.call("plan show none.toml").ends_with(2);
    assert!(refused.stderr.contains("cannot read the plan none.toml"), "{}", refused.stderr);
    let refused = bench.call("plan show f --vary o=1..1000000").ends_with(2);
    assert!(refused.stderr.contains("more than 10000 values"), "{}", refused.stderr);
}

#[test]
fn what_would_be_run_is_told_before() {
    let bench = Bench::with(DEVICE);
    let plan = "vary = [\"w=0,10\", \"access=r,si\", \"b=8K,16K,32K,64K\", \"o=1,2,4,8\", \"t=1,2,4,8\"]\n\
                warmup = 5\nduration = 120\nrepetitions = 1\norder = \"as-given\"\nanchors = false\n";
    fs::write(bench.path("plan.toml"), plan).expect("written");
    let shown = bench.call("plan show --plan plan.toml --json").succeeds_quietly();
    let object: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    // What the reference adds to 32 settings, each run twice, is told apart.
    let told = "sweep --simulate DEVICE --vary o=1..32 --repetitions 2 --dry-run";
    let told = bench.call(told).succeeds_quietly().stdout;
    assert!(told.contains("at most 72 runs (without the reference: 64)"), "{told}");
    // The published loops, with a second between runs.
    assert_eq!((&object["settings"], &object["runs_most"]), (&json!(256), &json!(256)));
    assert_eq!(object["runs_s"], 256.0 * 126.0);
    assert_eq!(object["runs_in_order"][1], "t2 o1 b8K r w0 (measure 1)");
    // Flags go before the file, and both together make the plan.
    let line = "sweep f --plan plan.toml --vary w=0 --set size=1G --dry-run --json";
    let shown = bench.call(line).succeeds_quietly();
    let object: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(
        (&object["settings"], &object["bytes_to_write"]),
        (&json!(128), &json!(1_u64 << 30))
    );
    assert!(!bench.path("plumb").exists(), "a dry run leaves nothing");
    for (line, says) in [
        ("sweep f --vary o=0", "1 to 65536"),
        ("sweep f --plan none.toml", "none.toml"),
        ("sweep f --vary t=1,2 --set access=s", "same blocks"),
        ("plan show f", "nothing is varied"),
    ] {
        let refused = bench.call(line).ends_with(2);
        assert!(refused.stderr.contains(says), "{line}: {}", refused.stderr);
    }
}

#[test]
fn what_no_run_could_do_is_refused_before_and_when_it_is_shown() {
    let bench = Bench::with(DEVICE);
    bench.call("sweep f --simulate DEVICE --vary o=1,2 --repetitions 1 --id taken").ends_with(0);
    let refused = [
        ("f --vary o=1,2", 2, "f does not exist, and t8 o1"),
        ("f --vary b=512,513 --set size=1M", 2, "no I/O of 513 bytes"),
        ("none/f --vary o=1,2 --set size=1M", 2, "no folder none"),
        ("/dev/null --vary o=1,2", 2, "a character device"),
        ("f --vary o=1,2 --set size=1M --conditioning nothing", 2, "--conditioning"),
        ("f --vary o=1,2 --set size=1M --id taken", 1, "--resume taken"),
    ];
    for (line, status, says) in refused {
        let run = bench.call(&format!("sweep {line}")).ends_with(status);
        assert!(run.stderr.contains(says), "{line}: {}", run.stderr);
        for other in ["sweep --dry-run", "sweep --dry-run --json", "plan show"] {
            // Plans have no names.
            if other == "plan show" && status == 1 {
                continue;
            }
            let told = bench.call(&format!("{other} {line}")).ends_with(status);
            let same = (told.stdout.as_str(), told.stderr.replace("plan show", "sweep"));
            assert_eq!(same, ("", run.stderr.clone()), "{other} {line}");
        }
    }
    for command in ["baseline", "quick"] {
        let line = format!("{command} f --size 1M --id taken --dry-run");
        let told = bench.call(&line).ends_with(1);
        assert!(told.stderr.contains("--resume taken"), "{line}: {}", told.stderr);
    }
    // A simulated device takes any; so does a plan that names no target yet.
    fs::write(bench.path("p.toml"), "vary = [\"o=1,2\"]\n").expect("written");
    bench.call("plan show p.toml").succeeds_quietly();
    bench.call("plan show f --plan p.toml").ends_with(2);
    fs::write(bench.path("p.toml"), "vary = [\"o=1,2\"]\nsimulate = \"device.toml\"\n")
        .expect("written");
    bench.call("plan show f --plan p.toml").succeeds_quietly();
}

/// What is measured as it is must be what it was: a target that is larger or smaller is another one (method, 4.3).
#[test]
fn a_study_does_not_go_on_with_a_target_of_another_size() {
    let bench = Bench::with(DEVICE);
    let target = bench.path("t.dat");
    fs::write(&target, vec![1; 8 << 20]).expect("written");
    let line = "--vary o=1,2 --set t=1 --set w=0 --repetitions 1 --warmup 0 --duration 1 --id size";
    bench.call(&format!("sweep t.dat {line}")).ends_with(0);
    bench.call("sweep --resume size").ends_with(0);
    fs::File::options()
        .write(true)
        .open(&target)
        .expect("there")
        .set_len(4 << 20)
        .expect("shorter");
    let changed = bench.call("sweep --resume size").ends_with(1);
    assert!(
        changed.stderr.contains("bytes of the target: `8388608` and `4194304`"),
        "{}",
        changed.stderr
    );
    bench.call("sweep --resume size --accept-changes").ends_with(0);
}

#[test]
fn a_study_goes_on_only_with_what_it_began_with() {
    let bench = Bench::with(DEVICE);
    bench.call("sweep f --simulate DEVICE --vary o=1,2,3 --repetitions 1 --id s").ends_with(0);
    let again = bench.call("sweep f --simulate DEVICE --vary o=1,2,3 --id s").ends_with(1);
    assert!(again.stderr.contains("--resume s"), "{}", again.stderr);
    let unknown = bench.call("sweep --resume other").ends_with(1);
    assert!(unknown.stderr.contains("no study `other`"), "{}", unknown.stderr);
    // A finished one only tells its findings again.
    let before = bench.findings("s");
    bench.call("sweep --resume s").ends_with(0);
    assert_eq!(bench.findings("s"), before);
    let plan = bench.study("s").join("plan.json");
    let text = fs::read_to_string(&plan).expect("a plan");
    fs::write(&plan, text.replace("\"max-iops\": 40000.0", "\"max-iops\": 50000.0"))
        .expect("written");
    let changed = bench.call("sweep --resume s").ends_with(1);
    assert!(changed.stderr.contains("--accept-changes"), "{}", changed.stderr);
    bench.call("sweep --resume s --accept-changes").ends_with(0);
}

#[test]
fn a_machine_that_changed_is_refused_or_told() {
    let bench = Bench::with(DEVICE);
    let line = "sweep f.dat --set size=1M --set t=1 --set cache=b --vary o=1,2 --repetitions 1 --warmup 0 \
                --duration 1 --id s";
    bench.call(&format!("{line} --budget 3s")).ends_with(5);
    let plan = bench.study("s").join("plan.json");
    let text = fs::read_to_string(&plan).expect("a plan");
    let began: Value = serde_json::from_str(&text).expect("JSON");
    let groups = &began["environment"]["groups"];
    assert!(groups["cpu"].is_object() && groups["kernel"]["release"].is_string(), "{groups}");
    let changed = |group: &str, member: &str, value: &str| {
        let mut plan_then = began.clone();
        plan_then["environment"]["groups"][group][member] = value.into();
        fs::write(&plan, plan_then.to_string()).expect("written");
    };
    changed("cpu", "model", "Another");
    let refused = bench.call("sweep --resume s --budget 1h").ends_with(1);
    assert!(refused.stderr.contains("processor: Another and"), "{}", refused.stderr);
    assert_eq!(bench.journal("s").len(), 1);
    changed("kernel", "release", "5.0");
    let told = bench.call("sweep --resume s --budget 1h").ends_with(0);
    assert!(told.stderr.contains("kernel: 5.0 and"), "{}", told.stderr);
    let notes = bench.findings("s")["notes"].to_string();
    assert!(
        notes.contains("after run 1 it went on although this changed: kernel: 5.0 and"),
        "{notes}"
    );
    let after = fs::read(bench.study("s").join("environment-after.json")).expect("a record");
    let after: Value = serde_json::from_slice(&after).expect("JSON");
    assert_eq!(after["groups"]["cpu"], began["environment"]["groups"]["cpu"]);
}

#[test]
fn settings_are_told_apart_by_whatever_differs() {
    let bench = Bench::with(DEVICE);
    let line = "sweep f --simulate DEVICE --vary size=64M,128M --vary cache=h,b --set o=4 --repetitions 1 --id s \
                --order as-given";
    bench.call(line).ends_with(0);
    let findings = bench.findings("s");
    let best = finding(&findings, "best");
    let rows = best["table"]["rows"].as_array().expect("rows");
    let names: std::collections::BTreeSet<&str> =
        rows.iter().map(|row| row[0].as_str().expect("a name")).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.contains("t8 o4 b8K r w30 size128M Sb"), "{names:?}");
    let said = finding(&findings, "reading")["decision"]["evidence"].to_string();
    assert!(said.contains("R13") && said.contains("file size and cache mode"), "{said}");
    assert!(
        findings["notes"].to_string().contains("in one order (as given)"),
        "{}",
        findings["notes"]
    );
}

#[test]
fn a_run_unlike_its_siblings_is_flagged_and_counts() {
    let bench = Bench::with("noise = 0.003\nslow-run-every = 8\nslow-run = 0.2\n");
    let line =
        "sweep f --simulate DEVICE --vary o=2,4 --repetitions 5 --no-anchors --set size=1G --id s";
    bench.call(line).ends_with(0);
    let findings = bench.findings("s");
    let notes = findings["notes"].to_string();
    assert!(notes.contains("run 8 (") && notes.contains("% of 5)"), "{notes}");
    let best = finding(&findings, "best");
    let runs = best["table"]["rows"].as_array().expect("rows").iter().map(|row| row[7].clone());
    assert!(runs.into_iter().all(|count| count == 5), "{best}");
}

#[test]
fn a_device_that_drifts_is_never_said_to_have_stayed_the_same() {
    for (drift, words) in [(0.0, ["stable", "stable"]), (-0.3, ["drift", "disturbed"])] {
        for seed in 1..4 {
            let bench = Bench::with(&format!(
                "seed = {seed}\nnoise = 0.003\nsharpness = 20\ndrift-per-hour = {drift:?}\n"
            ));
            let line = "sweep f --simulate DEVICE --set w=0 --set t=1 --vary o=200,220,240,260,280,300 \
                        --full-length --id s";
            bench.call(line).ends_with(0);
            let findings = bench.findings("s");
            let found = finding(&findings, "drift");
            let verdict = found["decision"]["verdict"].as_str().expect("a word");
            assert!(words.contains(&verdict), "seed {seed}, {drift}: {found}");
        }
    }
}

#[test]
fn a_search_takes_no_more_runs_than_it_said() {
    for device in [
        "",
        "latency-us = 2000\nmax-mib-per-s = 1500\nsharpness = 5\n",
        "noise = 0.012\nripple = 0.05\n",
    ] {
        let bench = Bench::with(device);
        for repetitions in [1, 3] {
            let line = format!(
                "sweep f --simulate DEVICE --vary o=1..64 --set t=1 --adaptive --repetitions {repetitions} --id s{repetitions}"
            );
            let said = bench.call(&format!("{line} --dry-run --json")).succeeds_quietly();
            let said: Value = serde_json::from_str(&said.stdout).expect("JSON");
            bench.call(&line).ends_with(0);
            let ran = bench.journal(&format!("s{repetitions}")).len() as u64;
            let most = said["runs_most"].as_u64().expect("a count");
            assert!(ran <= most, "{device}: {ran} runs, at most {most} were said");
        }
    }
}

#[test]
fn a_real_file_is_made_measured_and_its_runs_can_be_repeated() {
    let bench = Bench::with(DEVICE);
    let line = "sweep f.dat --set size=1M --set t=1 --set cache=b --vary o=1,2,3 --repetitions 1 --warmup 0 \
                --duration 1 --id s --json";
    let found = bench.call(line);
    assert_eq!(found.status, 0, "{}", found.stderr);
    assert_eq!(fs::metadata(bench.path("f.dat")).expect("a file").len(), 1 << 20);
    let journal = fs::read_to_string(bench.study("s").join("journal.ndjson")).expect("a journal");
    let records: Vec<Value> =
        journal.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(records.len(), 3);
    for record in &records {
        assert_eq!(record["outcome"], "measured");
        assert!(record["summary"]["iops"].as_f64().expect("a rate") > 0.0);
        let result = record["result"].as_str().expect("a name");
        let result = fs::read(bench.study("s").join(result)).expect("a result");
        let result: Value = serde_json::from_slice(&result).expect("JSON");
        assert_eq!(result["time_spans"][0]["state"], "measured");
    }
    let words = records[1]["command"].as_array().expect("a command");
    let words: Vec<&str> = words[1..].iter().filter_map(Value::as_str).collect();
    let mut command = Command::new(path());
    assert_eq!(outcome(command.args(&words)).status, 0);
    assert!(Path::new(words[words.len() - 1]).is_absolute());
}

/// What Plumb did not make is not written to: that is said once and before the first run, and by a dry run too.
#[test]
fn a_sweep_that_writes_to_a_foreign_file_does_not_begin() {
    let bench = Bench::with(DEVICE);
    let content = vec![3; 1 << 20];
    fs::write(bench.path("own.dat"), &content).expect("written");
    let line =
        "sweep own.dat --set t=1 --set b=4K --set cache=b --repetitions 1 --warmup 0 --duration 1";
    for (more, refused) in [
        ("--vary w=0,100 --set o=1 --id a", true),
        ("--vary w=0,100 --set o=1 --id a --dry-run", true),
        ("--set size=2M --set w=0 --vary o=1,2 --id a", true),
        ("--vary w=0,100 --set o=1 --id b --dry-run --destroy own.dat", false),
        ("--set w=0 --vary o=1 --id c", false),
    ] {
        let outcome = bench.call(&format!("{line} {more}")).ends_with(if refused { 3 } else { 0 });
        let told = outcome.stderr.contains("holds what Plumb did not make")
            && outcome.stderr.contains("--destroy");
        assert_eq!(told, refused, "{more}: {}", outcome.stderr);
    }
    assert_eq!(fs::read(bench.path("own.dat")).expect("a file"), content);
    assert!(!bench.study("a").exists(), "nothing was begun");
    bench.call(&format!("{line} --set w=100 --vary o=1 --id d --destroy own.dat")).ends_with(0);
    assert_ne!(fs::read(bench.path("own.dat")).expect("a file"), content);
}

/// Results that are gone or damaged are told by number wherever the study is shown; what it found rests on its journal.
#[test]
fn damaged_results_of_a_study_are_told() {
    let bench = Bench::with(DEVICE);
    let line = "sweep f.dat --set size=1M --set t=1 --set cache=b --vary o=1,2,3 --repetitions 1 --warmup 0 \
                --duration 1 --id s";
    bench.call(line).ends_with(0);
    let before = bench.findings("s");
    let whole = bench.call("report s -o whole.html").ends_with(0);
    assert!(!whole.stderr.contains("cannot be shown in detail"), "{}", whole.stderr);
    let result = |run: usize| {
        let name = bench.journal("s")[run - 1]["result"].as_str().expect("a name").to_owned();
        bench.study("s").join(name)
    };
    fs::write(result(1), "{\"format\"").expect("written");
    fs::remove_file(result(3)).expect("removed");
    for line in
        ["report s -o again.html", "sweep --resume s", "runs show s", "runs export s --dir out"]
    {
        let told = bench.call(line).ends_with(0).stderr;
        for run in [1, 3] {
            let words = format!("the result of run {run} cannot be shown in detail");
            assert_eq!(told.matches(&words).count(), 1, "{line}: {told}");
        }
        assert!(!told.contains("run 2 cannot"), "{told}");
    }
    assert_eq!(bench.findings("s"), before);
}
