//! `plumb baseline` and `plumb quick`.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_study::study::{
    BaselineOptions, BaselinePlanner, Next, Planner as _, RunRecord, Study, Told, baseline_findings,
};
use serde_json::{Value, json};

use crate::instants::{MS_PER_RUN, kill_in_the_first_moments_loses_nothing, kills_change_nothing};
use crate::rights::Tmpfs;
use crate::sweeps::{Bench, finding};

const DEVICE: &str = "seed = 3\nmax-iops = 50000\nlatency-us = 500\nreal-ms-per-run = 2\n";

#[test]
fn a_baseline_is_found_in_forty_runs_and_explained() {
    let bench = Bench::with(DEVICE);
    let line = "baseline f --simulate DEVICE --size 64G --ssds 8 --copies 2 --id b --json";
    let found = bench.call(line).ends_with(0);
    let findings: Value = serde_json::from_str(&found.stdout).expect("JSON");
    assert_eq!(findings, bench.findings("b"));
    assert!(findings["runs"].as_u64().expect("a count") <= 40, "{}", findings["runs"]);
    assert_eq!(findings["runs_exhaustive"], 97);
    let table = &finding(&findings, "findings")["table"]["rows"];
    let names: Vec<&Value> = table.as_array().expect("rows").iter().map(|row| &row[0]).collect();
    assert_eq!(names, ["random", "read", "write"]);
    let preflight = finding(&findings, "preflight");
    assert_eq!(preflight["decision"]["verdict"], "unknown");
    assert!(preflight["sentence"].as_str().expect("words").contains("simulated"), "{preflight}");
    assert_eq!(finding(&findings, "bottleneck-random-1")["decision"]["verdict"], "device");
    for each in findings["findings"].as_array().expect("a list") {
        for key in ["id", "verdict", "value", "interval", "flags", "evidence", "rule", "parameters"]
        {
            assert!(each["decision"].get(key).is_some(), "{key} of {}", each["id"]);
        }
        let file = bench.path("decision.json");
        fs::write(&file, each["decision"].to_string()).expect("written");
        let explained = bench.call(&format!("explain {}", file.display())).succeeds_quietly();
        assert!(explained.stdout.contains("Rule"), "{}", explained.stdout);
    }
    // No percentile without what it rests on.
    let alone = &finding(&findings, "latency-alone")["table"];
    let columns: Vec<&str> =
        alone["columns"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    let marked =
        ["p50 [ms]", "p50 rests on", "p99 [ms]", "p99 rests on", "p99.9 [ms]", "p99.9 rests on"];
    assert_eq!(columns[3..], marked);
    // A simulated device keeps no latencies per interval: how many episodes a tail rests on is not known.
    let tail = "good; episodes not told: latencies were not kept per interval";
    assert_eq!((&alone["rows"][0][4], &alone["rows"][0][6]), (&json!("good"), &json!(tail)));
    let said = finding(&findings, "latency-alone")["sentence"].to_string();
    assert!(said.contains(&format!(" ms ({tail}): what the device needs")), "{said}");
    let file = bench.study("b").join("findings.json");
    let line = format!("explain {} --id reading", file.display());
    let explained = bench.call(&line).succeeds_quietly();
    assert!(explained.stdout.contains("R1 of the first run = info"), "{}", explained.stdout);
    // By the name of the study, and by its folder.
    for name in ["b".to_owned(), bench.study("b").display().to_string()] {
        let named = bench.call(&format!("explain {name} --id reading")).succeeds_quietly();
        assert_eq!(named.stdout, explained.stdout, "{name}");
    }
    fs::remove_file(&file).expect("removed");
    let refused = bench.call("explain b").ends_with(1);
    assert!(refused.stderr.contains("the study b has no findings yet"), "{}", refused.stderr);
    fs::write(&file, findings.to_string()).expect("written");
    let report = fs::read_to_string(bench.study("b").join("report.html")).expect("a report");
    assert!(report.starts_with("<!doctype html>") && report.contains("Sequential writes"));
    for part in [
        "The run that the workflow explains",
        "The answer to: ",
        "99th percentile, ms",
        "processor time per I/O",
        "settings side by side",
        "What limits small random I/O",
        "The machine before the first run",
        "Latency by percentile",
    ] {
        assert!(report.contains(part), "{part}");
    }
    let again = bench.call("baseline --resume b").ends_with(0);
    assert!(again.stdout.contains("Sequential reads"), "{}", again.stdout);
    let wrong = bench.call("sweep --resume b").ends_with(1);
    assert!(wrong.stderr.contains("is a baseline"), "{}", wrong.stderr);
}

#[test]
fn a_baseline_killed_at_fifty_instants_goes_on_with_the_same_findings() {
    // A noisy device that drifts: findings that depended on the interruption would differ.
    let device = format!("{DEVICE}noise = 0.01\ndrift-per-hour = 0.1\n");
    let bench = Bench::with(&device.replace("per-run = 2", &format!("per-run = {MS_PER_RUN}")));
    let told = kills_change_nothing(&bench, "baseline f --simulate DEVICE --size 1G --quick");
    println!("{told:?}");
    assert!(told.under_way == 50 && told.between >= 15 && told.twice >= 5, "{told:?}");
    assert!(told.places * 10 >= told.runs.min(50) * 6, "{told:?}");
}

#[test]
fn one_that_is_killed_in_its_first_moments_goes_on() {
    let bench = Bench::with(DEVICE);
    kill_in_the_first_moments_loses_nothing(&bench, "baseline --simulate DEVICE --quick");
}

#[test]
fn a_preflight_that_blocks_ends_it_before_any_run() {
    let bench = Bench::with(DEVICE);
    let blocked = bench.call("baseline f.dat --size 100T --id b").ends_with(3);
    assert!(blocked.stderr.contains("capacity"), "{}", blocked.stderr);
    assert!(!bench.study("b").exists() && !bench.path("f.dat").exists());
    // Room for the file and not for its parts beside it, which a later step writes: it says so before, too.
    if let Some(_mount) = Tmpfs::mount(&bench.path("small"), 4 << 30) {
        let parts = "baseline small/f.dat --size 2G --quick --id b";
        let blocked = bench.call(parts).ends_with(3);
        let says = "2.0 GiB and 4.0 GiB more in files beside it";
        assert!(blocked.stderr.contains(says), "{}", blocked.stderr);
        assert!(blocked.stderr.contains("blocks: capacity"), "{}", blocked.stderr);
        assert!(!bench.study("b").exists() && !bench.path("small/f.dat").exists());
    }
}

/// What Plumb did not make is not written to: that is said before the first run, as by a sweep, and by a dry run too.
#[test]
fn a_baseline_of_a_foreign_file_does_not_begin() {
    let bench = Bench::with(DEVICE);
    let content = vec![3; 1 << 20];
    fs::write(bench.path("own.dat"), &content).expect("written");
    let skip = |steps: &[&str]| steps.iter().map(|step| format!(" --skip {step}")).collect();
    let mixed = ["pretest-1", "pretest-2", "random-1", "random-2", "latency"];
    let reads: String = skip(&[&mixed[..], &["sequential-write"]].concat());
    let sequential: String = skip(&mixed);
    for (line, refused) in [
        ("baseline own.dat --quick --id a", true),
        ("baseline own.dat --quick --id a --dry-run --skip preflight", true),
        ("quick own.dat --size 1M --id a", true),
        ("quick own.dat --size 1M --id a --dry-run", true),
        ("baseline own.dat --quick --dry-run --skip preflight --destroy own.dat", false),
        (&format!("baseline own.dat --quick --dry-run --skip preflight{sequential}"), true),
        (&format!("baseline own.dat --quick --dry-run --skip preflight{reads}"), false),
    ] {
        let outcome = bench.call(line).ends_with(if refused { 3 } else { 0 });
        let told = outcome.stderr.contains("holds what Plumb did not make")
            && outcome.stderr.contains("--destroy");
        assert_eq!(told, refused, "{line}: {}", outcome.stderr);
    }
    assert_eq!(fs::read(bench.path("own.dat")).expect("a file"), content);
    assert!(
        !bench.study("a").exists() && !bench.path("own.dat.1of2").exists(),
        "nothing was begun"
    );
}

#[test]
fn a_dry_run_says_what_would_be_refused() {
    let bench = Bench::with(DEVICE);
    for option in ["--dry-run", "--dry-run --json"] {
        let blocked = bench.call(&format!("baseline f.dat --size 100T {option}")).ends_with(3);
        let says = ["capacity (block)", "short by", "the preflight blocks: ", "help: plumb check"];
        for words in says {
            assert!(blocked.stderr.contains(words), "{words}: {}", blocked.stderr);
        }
        // What it would take is told all the same: whoever frees space wants to know.
        if option.ends_with("json") {
            let told: Value = serde_json::from_str(&blocked.stdout).expect("JSON");
            assert_eq!(told["preflight"]["verdict"], "block", "{told}");
            assert_eq!(
                (&told["runs_most"], &told["bytes_to_write"]),
                (&json!(40), &json!(3_u64 * (100 << 40)))
            );
        } else {
            assert!(blocked.stdout.contains("at most 40 runs"), "{}", blocked.stdout);
        }
    }
    // What is left out or accepted refuses nothing; nor does what has no machine.
    let accept: String =
        plumb_study::preflight::ids().map(|id| format!(" --accept {id}")).collect();
    for option in ["--skip preflight", "--simulate DEVICE", &accept] {
        let line = format!("baseline f.dat --size 100T --dry-run --json {option}");
        let told: Value =
            serde_json::from_str(&bench.call(&line).ends_with(0).stdout).expect("JSON");
        let verdict = told["preflight"]["verdict"].as_str().expect("a word");
        let is_looked_at = option == accept;
        assert_eq!(verdict == "unknown", !is_looked_at, "{option}: {told}");
        assert_ne!(verdict, "block", "{told}");
        let checks = told["preflight"]["checks"].as_array().expect("a list").len();
        assert_eq!(checks, if is_looked_at { 32 } else { 0 });
    }
    assert!(!bench.path("f.dat").exists() && !bench.path("plumb").exists());
}

#[test]
fn a_target_that_no_run_could_use_is_refused_before_anything_is_said_of_it() {
    let bench = Bench::with(DEVICE);
    let commands = [
        ("baseline", "--quick", &["--dry-run --json", "--skip preflight --id b"][..]),
        ("sweep", "--set size=1M --vary o=1,2 --duration 1", &[]),
        ("quick", "--size 1M --duration 1", &["--dry-run --json"]),
    ];
    let targets = [
        (
            "none/f.dat",
            &["no folder none to make none/f.dat in", "help: make it (mkdir -p none)"][..],
        ),
        ("/dev/null", &["a character device: a target is a file", "help: name a file, a device"]),
        (".", &["a folder: a target is a file", "help: name a file, a device"]),
    ];
    for (command, plan, more) in commands {
        for option in ["--id b", "--dry-run"].iter().chain(more) {
            for (target, why) in targets {
                let refused =
                    bench.call(&format!("{command} {target} {plan} {option}")).ends_with(2);
                for words in why {
                    assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
                }
                assert_eq!(refused.stdout, "");
            }
        }
        // A simulated device needs no file, also where its study goes on; one that cannot be read is a wrong command line.
        let id = format!("simulated-{command}");
        let line = format!("{command} none/f.dat {plan} --simulate");
        bench.call(&format!("{line} DEVICE --dry-run")).succeeds_quietly();
        bench.call(&format!("{line} DEVICE --id {id}")).ends_with(0);
        bench.call(&format!("{command} --resume {id}")).ends_with(0);
        let refused = bench.call(&format!("{line} nowhere.toml")).ends_with(2);
        assert!(refused.stderr.contains("cannot read the simulated device"), "{}", refused.stderr);
        fs::write(bench.path("bad.toml"), "max-iops = \"many\"").expect("written");
        let refused = bench.call(&format!("{line} bad.toml")).ends_with(2);
        assert!(refused.stderr.contains("describes no simulated device"), "{}", refused.stderr);
    }
    assert!(!bench.study("b").exists() && !bench.path("none").exists());
}

#[test]
fn what_a_baseline_takes_is_told_before() {
    let bench = Bench::with(DEVICE);
    let told = |line: &str| -> Value {
        let shown = bench.call(line).succeeds_quietly();
        serde_json::from_str(&shown.stdout).expect("JSON")
    };
    let usual = told("baseline f --simulate DEVICE --dry-run --json");
    assert_eq!((&usual["runs_most"], &usual["runs_exhaustive"]), (&json!(40), &json!(97)));
    let quick = told("baseline f --simulate DEVICE --quick --dry-run --json");
    assert!(quick["estimate_s"].as_f64().expect("seconds") <= 600.0);
    let published = told("baseline f --simulate DEVICE --d0-timing --dry-run --json");
    assert!(published["estimate_s"].as_f64().expect("seconds") >= 24.25 * 3600.0);
    // As many as its start says.
    let most = &published["runs_most"];
    let shown = bench.call("baseline f --simulate DEVICE --d0-timing --dry-run").succeeds_quietly();
    assert!(shown.stdout.starts_with(&format!("{most} runs, ")), "{}", shown.stdout);
    let begins = bench.call("baseline f --simulate DEVICE --d0-timing --id d").ends_with(0).stderr;
    let first = begins.lines().next().unwrap_or_default();
    assert!(first.contains(&format!("in virtual time: {most} runs, ")), "{first}");
    // What is told later is more than was told before.
    for line in begins.lines().filter(|line| line.starts_with("what was found asks for more: ")) {
        let counts: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        assert!(counts[0] > counts[1] && Some(counts[1]) >= most.as_u64(), "{line}");
    }
}

/// A plan that extends its ranges says how far at most, and anew how many runs there are when it does.
#[test]
fn what_extensions_add_is_told_before_and_when_it_is_known() {
    let bench = Bench::with("latency-us = 5000\nmax-mib-per-s = 3000\nnoise = 0.001\n");
    let line = "baseline f --simulate DEVICE --olap --exhaustive --id e";
    let shown = bench.call(&format!("{line} --dry-run")).succeeds_quietly().stdout;
    let said =
        "; a range at whose end throughput still rises is extended, up to 1197 runs in all, ";
    assert!(shown.contains(said), "{shown}");
    let told = bench.call(line).ends_with(0).stderr;
    let first = told.lines().next().unwrap_or_default();
    let begins = "baseline `e` of a simulated device, in virtual time: 64 runs, ";
    assert!(first.starts_with(begins) && first.contains(&format!(" as planned{said}")), "{first}");
    let count = bench.journal("e").len();
    let of = |line: &str| -> Option<(usize, usize)> {
        let (run, rest) = line.strip_prefix("run ")?.split_once(" of ")?;
        Some((run.parse().ok()?, rest.split(':').next()?.parse().ok()?))
    };
    let runs: Vec<(usize, usize)> = told.lines().filter_map(of).collect();
    assert_eq!(runs.len(), count, "{told}");
    assert!(runs.iter().all(|(run, all)| run <= all && (all == run) == (*run == count)), "{told}");
    let mut totals: Vec<usize> = runs.iter().map(|(_, all)| *all).collect();
    totals.dedup();
    let more: Vec<&str> = told.lines().filter(|line| line.contains("asks for more: ")).collect();
    assert_eq!(more.len() + 1, totals.len(), "{totals:?} {more:?}");
    assert!(totals.len() > 1 && totals[0] == 64 && totals.last() == Some(&count), "{totals:?}");
    let shown = bench.call("runs show e").succeeds_quietly().stdout;
    let said = format!("{count} of 64 as planned before a range is extended");
    assert!(shown.contains(&said), "{shown}");
}

/// What a baseline did is what it would have done without an interruption, had its runs given the same: each run is the one that
/// follows from those before it, and what was found is what those runs say.
#[track_caller]
pub(crate) fn is_one_that_was_not_interrupted(bench: &Bench, id: &str) {
    let plan = fs::read(bench.study(id).join("plan.json")).expect("a plan");
    let study: Study = serde_json::from_slice(&plan).expect("a study");
    let options: BaselineOptions = serde_json::from_value(study.request.clone()).expect("options");
    let planner = BaselinePlanner::new(options.clone());
    let record = |run| serde_json::from_value(run).expect("a run");
    let runs: Vec<RunRecord> = bench.journal(id).into_iter().map(record).collect();
    for (done, run) in runs.iter().enumerate() {
        let Next::Run(order) = planner.next(&runs[..done]) else {
            panic!("run {} was not asked for", run.run)
        };
        assert_eq!(
            (&order.step, order.purpose, order.repetition, &order.setting),
            (&run.step, run.purpose, run.repetition, &run.setting),
            "run {}",
            run.run
        );
    }
    assert_eq!(planner.next(&runs), Next::Done);
    let told = Told {
        study: id,
        runs_exhaustive: study.runs_exhaustive,
        environment: study.environment.as_ref(),
        ..Told::default()
    };
    let findings = bench.findings(id);
    for wanted in baseline_findings(&options, &runs, told).findings {
        let found = &finding(&findings, &wanted.id)["decision"];
        for key in ["verdict", "value", "flags"] {
            assert_eq!(found[key], wanted.decision[key], "{key} of {}", wanted.id);
        }
    }
}

#[test]
fn a_quick_baseline_of_a_real_file_that_is_killed_in_the_middle_repeats_no_run() {
    let bench = Bench::with(DEVICE);
    // As a user has it, but for the seconds of each run.
    let line = "baseline f.dat --size 16M --quick --warmup 0 --duration 1 --id b";
    // Whatever else the machine does now.
    let accept: String = ["load-psi", "load-disk", "tasks-running", "health-md", "tasks-timers"]
        .map(|id| format!(" --accept {id}"))
        .concat();
    let mut child = bench.start(&format!("{line}{accept}"));
    let journal = bench.study("b").join("journal.ndjson");
    let began = Instant::now();
    let lines = || fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
    while lines() < 15 && began.elapsed() < Duration::from_secs(240) {
        std::thread::sleep(Duration::from_millis(50));
    }
    // In the middle of the next run.
    std::thread::sleep(Duration::from_millis(600));
    child.kill().expect("a child of ours");
    child.wait().expect("it ends");
    let before = fs::read_to_string(&journal).expect("a journal");
    assert!(before.lines().count() >= 15, "{before}");
    assert!(!bench.study("b").join("findings.json").exists(), "it was in the middle");
    // The machine is looked at again: somebody uses a processor now.
    let over = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let found = bench.call(&format!("baseline --resume b --json{accept}"));
        over.store(true, Ordering::Relaxed);
        found
    });
    assert_eq!(found.status, 0, "{}", found.stderr);
    assert!(found.stderr.contains("load-cpu"), "{}", found.stderr);
    let findings: Value = serde_json::from_str(&found.stdout).expect("JSON");
    assert_eq!(findings["state"], "complete");
    let runs = bench.journal("b");
    let count = runs.len();
    assert!((25..=40).contains(&count) && findings["runs"] == json!(count), "{count} runs");
    // No run is there twice, by its number, its key or its result; those from before are as they were.
    for name in ["run", "key"] {
        let of: std::collections::BTreeSet<String> =
            runs.iter().map(|run| run[name].to_string()).collect();
        assert_eq!(of.len(), count, "a run was repeated: {name}");
    }
    let text = fs::read_to_string(&journal).expect("a journal");
    assert!(text.starts_with(&before));
    is_one_that_was_not_interrupted(&bench, "b");
    // Nothing is left to do, and what was found stays.
    let again = bench.call(&format!("baseline --resume b --json{accept}")).ends_with(0);
    let again: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!(again["findings"], findings["findings"]);
    assert_eq!(fs::read_to_string(&journal).expect("a journal"), text);
    assert!(finding(&findings, "latency-alone")["decision"]["value"].as_f64().expect("ms") > 0.0);
    // The run that was killed was done again: nobody is told of it, neither in the study nor afterwards. Where it was killed while it marked the file, the same run has the
    // study's word for that file, and no other has.
    let redone = before.lines().count() + 1;
    for run in runs.iter().filter(|run| run["run"] != json!(redone)) {
        assert!(!run["command"].to_string().contains("--destroy"), "{redone}: {run}");
    }
    let report = fs::read_to_string(bench.study("b").join("report.html")).expect("a report");
    assert!(!report.contains("did not end properly"));
    bench.call("run -b8K -r -w50 -d1 -W0 f.dat").ends_with(0);
    // The first run is the profile that it is named after, but for its times.
    let words: Vec<&str> =
        runs[0]["command"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
    for word in ["-b8K", "-r", "-w30", "-t8", "-o12", "-Z1M", "-Sh", "-L"] {
        assert!(words.contains(&word), "{word}: {words:?}");
    }
    // The machine was looked at, and what was seen is a decision.
    let preflight = finding(&findings, "preflight");
    assert!(preflight["table"]["rows"].as_array().expect("checks").len() >= 30);
    assert_eq!(preflight["decision"]["parameters"]["accepted"].as_array().map(Vec::len), Some(5));
    assert!(finding(&findings, "reading")["decision"]["flags"].to_string().contains("R17"));
}

#[test]
fn eight_figures() {
    let bench = Bench::with(DEVICE);
    let found = bench.call("quick f --simulate DEVICE --id q --json").ends_with(0);
    let findings: Value = serde_json::from_str(&found.stdout).expect("JSON");
    assert_eq!(findings["runs"], 24);
    let values = &finding(&findings, "quick")["decision"]["value"];
    assert_eq!(values.as_object().map(serde_json::Map::len), Some(8));
    // 32 outstanding and 25 alone at the corner: near the most, less what latencies cost.
    let random = values["RND4K Q32T1 read"].as_f64().expect("MB/s");
    assert!((0.9..1.0).contains(&(random / (50_000.0 * 4096.0 / 1e6 * 0.97 * 0.92))), "{random}");
    assert!(findings["notes"].to_string().contains("10^6"));
    // The help says what the usual settings take.
    let took = bench.call("quick g --simulate DEVICE --dry-run").ends_with(0).stdout;
    let help = bench.call("quick --help").ends_with(0).stdout;
    let help: String = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        took.contains("24 runs, 3 min") && help.contains("about three minutes"),
        "{took}{help}"
    );
}
