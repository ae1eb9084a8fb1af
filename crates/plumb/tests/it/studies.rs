//! `plumb knee`, `compare`, `history` and `explain` on data that the user brings.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::{Outcome, call, path, plumb, repository};

fn table(name: &str) -> String {
    let folder = repository().join("crates/plumb-study/tests/data");
    folder.join(format!("{name}.csv")).display().to_string()
}

/// The objects on standard output.
#[track_caller]
fn objects(outcome: &Outcome) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).expect("an object per line");
    outcome.stdout.lines().map(parse).collect()
}

fn samples(folder: &Path, name: &str, lines: &[Value]) -> PathBuf {
    let path = folder.join(name);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text).expect("a file");
    path
}

#[test]
fn published_tables_give_the_published_choices() {
    let line = format!(
        "knee --policy throughput --json --csv {} --csv {} --csv {}",
        table("random-test-1"),
        table("sequential-reads"),
        table("sequential-writes")
    );
    let outcome = plumb(&line).succeeds_quietly();
    let answers = objects(&outcome);
    let verdicts: Vec<&Value> = answers.iter().map(|answer| &answer["verdict"]).collect();
    assert_eq!(verdicts, ["extend", "knee", "knee"]);
    let chosen: Vec<&Value> = answers.iter().map(|answer| &answer["recommended_o"]).collect();
    assert_eq!(chosen, [&Value::Null, &json!(31), &json!(15)]);
    for (answer, name) in
        answers.iter().zip(["random-test-1", "sequential-reads", "sequential-writes"])
    {
        assert_eq!(answer["file"], table(name));
        for key in [
            "id",
            "value",
            "interval",
            "flags",
            "evidence",
            "rule",
            "parameters",
            "outlier_o",
            "named_cap",
        ] {
            assert!(answer.get(key).is_some(), "{key}");
        }
    }
}

#[test]
fn a_declared_cap_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("capped.csv");
    let rows: String = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
        .map(|o: f64| {
            let iops = (o * 500.0).min(1953.3);
            format!("{o},{iops:.2},{:.3}\n", o * 2.0 / iops * 1e3)
        })
        .concat();
    fs::write(&file, format!("o,iops,avg_lat_ms\n{rows}")).expect("a table");
    let line =
        format!("knee --threads 2 --cap 1920iops --cap 5000 --json --csv {}", file.display());
    let answer = &objects(&plumb(&line).succeeds_quietly())[0];
    assert_eq!((&answer["verdict"], &answer["plateau_o"]), (&json!("knee"), &json!(4)));
    assert_eq!((&answer["flags"], &answer["named_cap"]), (&json!(["capped"]), &json!("1920iops")));

    let line = format!("knee --cap 8MiB/s --csv {}", file.display());
    let outcome = plumb(&line).ends_with(1);
    assert!(outcome.stderr.contains("--block-bytes"), "{}", outcome.stderr);
    let outcome = plumb(&format!("{line} --block-bytes 4096")).succeeds_quietly();
    assert!(outcome.stdout.contains("8MiB/s"), "{}", outcome.stdout);
}

#[test]
fn tables_that_cannot_be_used_do_not_keep_others_away() {
    let line = format!("knee --json --csv no-such-file --csv {}", table("sequential-reads"));
    let outcome = plumb(&line).ends_with(1);
    let answers = objects(&outcome);
    assert!(answers[0]["error"]["message"].as_str().expect("text").contains("no-such-file"));
    assert_eq!(
        (&answers[0]["file"], &answers[1]["plateau_o"]),
        (&json!("no-such-file"), &json!(31))
    );
    let line = format!("knee --csv {}", repository().join("LICENSE").display());
    let outcome = plumb(&line).ends_with(1);
    assert!(outcome.stderr.contains("no column `o`"), "{}", outcome.stderr);
    plumb("knee").ends_with(2);
    plumb("knee --csv x --policy best").ends_with(2);
    plumb("knee --csv x --cap 5furlongs").ends_with(2);
    plumb("knee --csv x --write-share 30").ends_with(2);
}

#[test]
fn samples_are_answered_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = [100.0, 101.0, 99.0, 100.5];
    let lines = [
        json!({ "id": "up", "metric": "iops", "higher_is_better": true,
                "baseline_runs": base, "candidate_runs": base.map(|x| x * 1.1) }),
        json!({ "id": 2, "metric": "p99_ms", "higher_is_better": false,
                "baseline_runs": base, "candidate_runs": base.map(|x| x * 1.3) }),
        json!({ "id": "bad", "metric": "iops", "baseline_runs": [1, "x"], "candidate_runs": [1] }),
        json!({ "metric": "iops", "baseline_runs": base, "candidate_runs": base }),
    ];
    let file = samples(folder.path(), "runs.ndjson", &lines);
    let line = format!("compare --samples {} --json", file.display());
    let outcome = plumb(&line).ends_with(1);
    let answers = objects(&outcome);
    let verdicts: Vec<&Value> = answers.iter().map(|answer| &answer["verdict"]).collect();
    assert_eq!(verdicts, [&json!("better"), &json!("worse"), &Value::Null, &json!("same")]);
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    let named = format!("compare:{}:4", file.display());
    assert_eq!(ids, [&json!("up"), &json!(2), &json!("bad"), &json!(named)]);
    assert_eq!(answers[2]["line"], 3);
    assert!(answers[1]["effect"].as_f64().is_some_and(|effect| effect < -0.2));
    assert!(answers[0]["ci"][0].as_f64() < answers[0]["effect"].as_f64());
}

#[test]
fn ids_of_any_kind_come_back_as_they_are_and_lists_are_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let ids =
        [json!(7), json!(1.5), json!(true), json!(["a", 2]), json!({ "run": [1] }), json!("")];
    let sample = |id: &Value| {
        json!({ "id": id, "metric": "iops", "baseline_runs": [100, 101], "candidate_runs": [100, 101],
                "values": [100, 101, 100] })
    };
    let lines: Vec<Value> = ids.iter().map(sample).collect();
    let told = |line: &str, status: i32| -> Vec<Value> {
        let answers = objects(&plumb(&format!("{line} --json")).ends_with(status));
        answers.into_iter().map(|answer| answer["id"].clone()).collect()
    };
    let ndjson = samples(folder.path(), "ids.ndjson", &lines);
    let list = samples(folder.path(), "ids.json", &[Value::Array(lines)]);
    for file in [&ndjson, &list] {
        for command in ["compare", "history"] {
            assert_eq!(told(&format!("{command} --samples {}", file.display()), 0), ids);
        }
    }
    // An object that cannot be judged has its id, too, and one that is none its place.
    let broken = json!([{ "id": [1], "metric": "iops" }, 5, { "id": 2, "values": [9, "x"], "metric": "iops" }]);
    let file = samples(folder.path(), "broken.json", &[broken]);
    let line = format!("history --samples {}", file.display());
    assert_eq!(told(&line, 1), [json!([1]), Value::Null, json!(2)]);
    let answers = objects(&plumb(&format!("{line} --json")).ends_with(1));
    let message = |index: usize| answers[index]["error"]["message"].as_str().expect("words");
    assert_eq!((message(1), &answers[1]["item"]), ("a number is no object", &json!(2)));
    assert_eq!(message(2), "`values[1]` is \"x\", not a positive number");
    let said = plumb(&line).ends_with(1).stderr;
    assert!(said.contains("broken.json, item 2 of its list: a number is no object"), "{said}");
}

#[test]
fn a_row_that_was_not_measured_is_left_out_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("curve.csv");
    let rows: String = (1..=16_u32)
        .map(|o| match o {
            5 => "5,NA,NA\n".to_owned(),
            9 => "9,-,\n".to_owned(),
            _ => format!("{o},{},{:.3}\n", 1000 * o.min(8), f64::from(o.max(8)) / 8.0),
        })
        .collect();
    fs::write(&file, format!("o,iops,avg_lat_ms\n{rows}")).expect("a table");
    let line = format!("knee --threads 1 --csv {}", file.display());
    let answer = &objects(&plumb(&format!("{line} --json")).succeeds_quietly())[0];
    assert_eq!((&answer["verdict"], &answer["plateau_o"]), (&json!("knee"), &json!(8)));
    let left_out: Vec<&Value> =
        answer["dropped"].as_array().expect("rows").iter().map(|row| &row["o"]).collect();
    assert_eq!(left_out, [&json!(5), &json!(9)]);
    let said = plumb(&line).succeeds_quietly().stdout;
    assert!(said.contains("o5: there is no rate"), "{said}");
    // What is no number and no such word is named, with its line, column and what to do.
    fs::write(&file, format!("o,iops,avg_lat_ms\n{rows}17,fast,1\n")).expect("a table");
    let answer = &objects(&plumb(&format!("{line} --json")).ends_with(1))[0];
    let message = answer["error"]["message"].as_str().expect("words");
    assert!(
        message.starts_with("line 18: `iops` is `fast`, which is no positive number"),
        "{message}"
    );
    assert!(answer["error"]["help"].as_str().is_some_and(|help| help.contains("NA or -")));
}

/// The summary table of the sequential tests (31 and 15 outstanding), by the command.
#[test]
fn the_summary_of_the_sequential_tests_is_rebuilt() {
    for (name, share, depth, latency, own) in [
        ("sequential-reads", 0, 31.0, 10.689, [181.245, 3.875]),
        ("sequential-writes", 1, 15.0, 20.698, [90.583, 3.75]),
    ] {
        let line = format!(
            "knee --policy throughput --threads 1 --ssds 8 --copies 2 --write-share {share} --json --csv {}",
            table(name)
        );
        let found = objects(&plumb(&line).succeeds_quietly())[0]["finding"].clone();
        let number = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{key}: {found}"));
        assert_eq!((number("outstanding"), number("latency_ms")), (depth, latency), "{found}");
        assert!((number("mib_per_s_per_device") - own[0]).abs() < 0.001, "{found}");
        assert!((number("depth_per_device") - own[1]).abs() < 1e-9, "{found}");
    }
}

#[test]
fn a_verdict_is_no_failure_unless_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let worse = json!({ "metric": "iops", "baseline_runs": [100, 101, 99], "candidate_runs": [80, 81, 79] });
    let file = samples(folder.path(), "worse.json", &[worse]);
    let line = format!("compare --samples {}", file.display());
    plumb(&line).ends_with(0);
    plumb(&format!("{line} --fail-on worse")).ends_with(4);
    plumb(&format!("{line} --fail-on unclear")).ends_with(2);
    plumb("compare").ends_with(2);
    plumb("compare only-one").ends_with(2);

    let values: Vec<f64> = (0..20).map(|i| if i < 11 { 100.0 } else { 90.0 }).collect();
    let history = json!({ "id": "h", "values": values, "higher_is_better": true });
    let file = samples(folder.path(), "history.json", &[history]);
    let line = format!("history --samples {} --json", file.display());
    let answer = &objects(&plumb(&line).succeeds_quietly())[0];
    assert_eq!((&answer["change_points"], &answer["id"]), (&json!([11]), &json!("h")));
    plumb(&format!("{line} --fail-on worse")).ends_with(4);
}

#[test]
fn results_are_compared_metric_by_metric() {
    let reports = repository().join("crates/plumb-load/tests/data/conformance/results/reports");
    let result = |name: &str| reports.join(name).display().to_string();
    let same = result("random-read-latency.xml");
    let answers = objects(&plumb(&format!("compare {same} {same} --json")).succeeds_quietly());
    assert_eq!(answers[0]["metric"], "iops");
    assert!(answers.len() >= 3, "{answers:#?}");
    for answer in &answers {
        assert_eq!((&answer["effect"], &answer["flags"]), (&json!(0.0), &json!(["single_run"])));
    }
    let outcome = plumb(&format!("compare {same} {}", repository().join("LICENSE").display()));
    assert!(outcome.ends_with(1).stderr.contains("LICENSE is no result"));
    let folder = tempfile::tempdir().expect("a folder");
    for number in 1..=3 {
        fs::copy(&same, folder.path().join(format!("{number}.xml"))).expect("a copy");
    }
    let folder = folder.path().display();
    let answers = objects(&plumb(&format!("compare {folder} {folder} --json")).succeeds_quietly());
    assert_eq!((&answers[0]["verdict"], &answers[0]["flags"]), (&json!("same"), &json!([])));
}

#[test]
fn every_decision_can_be_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = format!("knee --json --csv {}", table("sequential-reads"));
    let decision = plumb(&line).succeeds_quietly().stdout;
    let file = folder.path().join("decision.json");
    fs::write(&file, decision).expect("a file");
    let words = ["explain".into(), file.clone().into_os_string()];
    let text = call(path(), &words).succeeds_quietly().stdout;
    for part in ["Rule", "tau = 0.125", "o31", "end_elasticity", "Remarks"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // What is recommended follows from the figures that are printed.
    let told = |name: &str| {
        let start = format!("  {name} = ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("{name}\n{text}"))
    };
    let number = |line: &str| line.split([' ', ':']).next().and_then(|word| word.parse().ok());
    let fitted = |o: f64| -> Option<f64> {
        let start = format!("  o{o} ");
        let line = text.lines().find(|line| line.starts_with(&start))?;
        line.split("fitted").nth(1)?.split(',').next()?.trim().parse().ok()
    };
    let [plateau, balance, kept, recommended] =
        ["plateau_o", "balance_o", "kept_iops", "recommended_o"]
            .map(|name| number(told(name)).unwrap_or_else(|| panic!("{}", told(name))));
    assert_eq!((plateau, balance), (31.0, 24.0));
    let from = fitted(f64::min(plateau, balance)).expect("it is tested");
    assert!((kept / from - 0.97).abs() < 1e-4, "{kept} of {from}");
    let before = fitted(recommended - 1.0).expect("every o is tested");
    assert!(before < kept && fitted(recommended).expect("it is tested") >= kept, "{text}");
    let line = format!("explain {} --id nobody", file.display());
    let outcome = plumb(&line).ends_with(1);
    assert!(outcome.stderr.contains("`nobody`"), "{}", outcome.stderr);
    let outcome = plumb(&format!("explain {}", repository().join("LICENSE").display()));
    outcome.ends_with(1);
}
