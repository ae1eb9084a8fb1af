use serde_json::json;

use super::*;

#[track_caller]
fn verdict(sample: &Value) -> String {
    let decision = compare(sample).unwrap_or_else(|error| panic!("{sample}: {error}"));
    for key in
        ["verdict", "value", "effect", "interval", "ci", "flags", "evidence", "rule", "parameters"]
    {
        assert!(decision.contains_key(key), "{key}");
    }
    decision["verdict"].as_str().expect("a word").to_owned()
}

#[track_caller]
fn refused(sample: &Value, says: &str) {
    let error = compare(sample).expect_err("it is wrong").to_string();
    assert!(error.contains(says), "{error}");
}

#[test]
fn runs_are_compared() {
    let sample = json!({
        "id": "a", "metric": "iops", "higher_is_better": true,
        "baseline_runs": [58071.31, 55232.28, 56800, 57250, 56100],
        "candidate_runs": [60100, 59200, 60550, 58900, 61000],
    });
    assert_eq!(verdict(&sample), "better");
    let decision = compare(&sample).expect("a decision");
    assert!((decision["effect"].as_f64().expect("a number") - 0.0576).abs() < 5e-5);
    let lower = json!({
        "metric": "p99_ms", "higher_is_better": false,
        "baseline_runs": [1.0, 1.01, 0.99], "candidate_runs": [1.2, 1.21, 1.19],
    });
    assert_eq!(verdict(&lower), "worse");
    let single =
        json!({ "metric": "iops", "baseline_runs": [55232.28], "candidate_runs": 58071.31 });
    assert_eq!(verdict(&single), "better");
    assert_eq!(compare(&single).expect("a decision")["flags"], json!(["single_run"]));
}

#[test]
fn series_are_cut_and_compared() {
    let run = |level: f64| -> Vec<f64> {
        let value = |i: u32| level * (1.0 + 0.002 * (f64::from(i * 37 % 11) - 5.0));
        (0..100).map(|i| if i < 15 { level * 0.5 } else { value(i) }).collect()
    };
    let sample = json!({
        "higher_is_better": true, "metric": "iops", "interval_s": 1,
        "baseline_series": [run(1000.0), run(1005.0), run(995.0)],
        "candidate_series": [run(900.0), run(905.0), run(895.0)],
    });
    assert_eq!(verdict(&sample), "worse");
    let one = json!({ "metric": "iops", "baseline_series": run(1000.0), "candidate_series": run(1001.0) });
    assert_eq!(verdict(&one), "unclear");
}

#[test]
fn a_second_without_completions_is_a_reading_like_any_other() {
    let run = |level: f64, stall: u32| -> Vec<f64> {
        let value = |i: u32| level * (1.0 + 0.002 * (f64::from(i * 37 % 11) - 5.0));
        (0..100).map(|i| if i == stall { 0.0 } else { value(i) }).collect()
    };
    let sample = |level: f64| {
        json!({
            "metric": "iops", "interval_s": 1,
            "baseline_series": [run(1000.0, 30), run(1005.0, 200), run(995.0, 200)],
            "candidate_series": [run(level, 50), run(level * 1.005, 70), run(level * 0.995, 200)],
        })
    };
    assert_eq!(verdict(&sample(800.0)), "worse");
    assert_eq!(verdict(&sample(1300.0)), "better");
    refused(
        &json!({ "metric": "iops", "baseline_series": [[0, 0]], "candidate_series": [[1, 1]] }),
        "`baseline_series[0]` is \"0 in every interval\"",
    );
    refused(
        &json!({ "metric": "iops", "baseline_series": [[1, -1]], "candidate_series": [[1, 1]] }),
        "`baseline_series[0][1]` is -1, not a number from 0",
    );
}

#[test]
fn what_was_not_looked_at_is_told() {
    let sample = json!({
        "metric": "iops", "baseline_runs": [1, 2], "candidate_runs": [1, 2],
        "baseline_series": [[1, 1, 1]], "candidate_series": [[1, 1, 1]],
    });
    let notes = compare(&sample).expect("a decision")["notes"].to_string();
    assert!(notes.contains("`baseline_runs` and `candidate_runs` are there too"), "{notes}");
    assert!(notes.contains("no `interval_s` is given"), "{notes}");
}

#[test]
fn interleaved_runs_are_freed_of_drift() {
    for (names, wanted) in
        [(["A", "B"], "better"), (["new", "old"], "worse"), (["x", "y"], "better")]
    {
        let runs: Vec<Value> = (0..12_u32)
            .map(|order| {
                let second = order % 4 == 1 || order % 4 == 2;
                let ln = 0.01 * f64::from(order) + if second { 0.06 } else { 0.0 };
                let wobble = f64::from(order * 5 % 7) * 0.001;
                let arm = names[usize::from(second)];
                json!({ "order": order, "arm": arm, "value": 100.0 * (ln + wobble).exp() })
            })
            .rev()
            .collect();
        let sample = json!({ "higher_is_better": true, "runs_in_order": runs });
        assert_eq!(verdict(&sample), wanted, "{names:?}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    refused(&json!([1]), "a list is no object");
    refused(&json!({ "baseline_runs": [1] }), "`higher_is_better`");
    refused(&json!({ "metric": "iops", "baseline_runs": [1] }), "`candidate_runs`");
    refused(
        &json!({ "metric": "iops", "baseline_runs": [1, 0], "candidate_runs": [1] }),
        "`baseline_runs[1]` is 0",
    );
    refused(
        &json!({ "metric": "iops", "baseline_runs": [], "candidate_runs": [1] }),
        "0 baseline runs",
    );
    refused(
        &json!({ "metric": "iops", "baseline_series": [[1]], "candidate_series": [[]] }),
        "without intervals",
    );
    refused(
        &json!({ "metric": "iops", "runs_in_order": [{ "arm": "a", "value": 1 }] }),
        "1 arms (a)",
    );
    refused(
        &json!({ "metric": "iops", "runs_in_order": [{ "arm": "a" }] }),
        "runs_in_order[0].value",
    );
    refused(&json!({ "metric": "iops", "higher_is_better": "yes" }), "true or false");
    refused(&json!({ "metric": "iops", "delta": 3 }), "`delta` is 3");
}

#[test]
fn histories() {
    let values: Vec<f64> = (0..20_u32)
        .map(|i| if i < 12 { 100.0 } else { 90.0 } + f64::from(i * 7 % 5) * 0.1)
        .collect();
    let decision = history(&json!({ "values": values, "higher_is_better": false })).expect("long");
    assert_eq!(decision["change_points"], json!([12]));
    assert_eq!(decision["verdict"], "better");
    // A step of 10 % is none where 15 % was asked for, and what was asked for is what was done.
    let with = |delta: Value| {
        let sample = json!({ "values": values, "metric": "p99_ms", "delta": delta });
        let found = history(&sample).expect("long");
        (found["change_points"].clone(), found["parameters"]["step_least"].clone())
    };
    assert_eq!(with(Value::Null), (json!([12]), json!(0.02)));
    assert_eq!(with(json!(0.15)), (json!([]), json!(0.15)));
    let short =
        history(&json!({ "values": [100, 101, 100, 80], "metric": "iops" })).expect("short");
    assert_eq!((&short["change_points"], &short["verdict"]), (&json!([]), &json!("worse")));
    assert!(history(&json!({ "values": [1], "metric": "iops" })).is_err());
    assert!(history(&json!({ "metric": "iops" })).is_err());
}

#[test]
fn texts_hold_one_object_or_one_per_line() {
    let count = |text: &str| {
        let parts = split(text);
        (parts.len(), parts.iter().filter(|(_, part)| part.is_err()).count())
    };
    assert_eq!(count("{\"a\":\n1}\n"), (1, 0));
    assert_eq!(count("{\"a\":1}\n\n{\"a\":2}\n"), (2, 0));
    assert_eq!(count("{\"a\":1}\nnonsense\n{\"a\":2}"), (3, 1));
    assert_eq!(count("[{\"a\":1},{}]"), (2, 0));
    assert_eq!(count("{\"a\":"), (1, 1));
    assert_eq!(count("  \n"), (1, 1));
    assert_eq!(split("{}\n!")[1].0, Spot::Line(2));
    // Something else among the objects of a list does not keep them away.
    let mixed = split("[{\"a\":1},\n7,\n{\"a\":2}]");
    let spots: Vec<Spot> = mixed.iter().map(|(spot, _)| *spot).collect();
    assert_eq!(spots, [1, 2, 3].map(Spot::Item));
    refused(mixed[1].1.as_ref().expect("a value"), "a number is no object");
    for (text, says) in
        [("[]", "a list is no object"), ("[1,2]", "a list is no object"), ("7", "a number")]
    {
        let parts = split(text);
        assert_eq!(parts.len(), 1, "{text}");
        refused(parts[0].1.as_ref().expect("a value"), says);
    }
    let told = split("{}\nnot json")[1].1.as_ref().expect_err("it is none").to_string();
    assert_eq!(told, "this is no JSON: expected ident, column 2");
}

/// Runs that agree to the last digit find no smaller a difference than their error allows that is taken.
#[test]
fn what_equal_runs_find_is_no_less_than_what_is_taken_for_them() {
    let runs = [1000.0; 3];
    let equal = json!({ "metric": "iops", "baseline_runs": runs, "candidate_runs": runs });
    let decision = Value::Object(compare(&equal).expect("a decision"));
    let notes = decision["notes"].to_string();
    assert!(notes.contains("a standard error of 0.16 % is taken"), "{notes}");
    // δ of 2 %, and as far beyond it as one in ten is off by that error.
    assert!(notes.contains("a difference of 2.21 % is found in nine of ten cases"), "{notes}");
}

#[test]
fn what_has_two_meanings_is_refused() {
    let run = |order: Value, arm: &str| json!({ "order": order, "arm": arm, "value": 100.0 });
    let of = |runs: Vec<Value>| json!({ "metric": "iops", "runs_in_order": runs });
    let runs = |order: Value| {
        of(vec![run(json!(1), "a"), run(json!(2), "b"), run(json!(3), "a"), run(order, "b")])
    };
    assert!(compare(&runs(json!(4))).is_ok() && compare(&runs(json!(2.5))).is_ok());
    let says = "`runs_in_order[1]` and `runs_in_order[3]` both have the order 2";
    refused(&runs(json!(2)), says);
    refused(&runs(json!(2.0)), says);
    refused(&runs(Value::Null), "there is no `runs_in_order[3].order`");
    let unnumbered = || ["a", "b", "a", "b"].map(|arm| run(Value::Null, arm)).to_vec();
    assert!(compare(&of(unnumbered())).is_ok());

    let twice = "{\"id\": \"x\", \"metric\": \"iops\", \"values\": [1, 2], \"values\": [3]}";
    let sound = "{\"id\": \"y\", \"metric\": \"iops\", \"values\": [1, 2]}";
    let forms = [
        (twice.to_owned(), Spot::Line(1)),
        (format!("{sound}\n{twice}\n"), Spot::Line(2)),
        (format!("[{sound},\n {twice}]"), Spot::Item(2)),
    ];
    for (text, place) in forms {
        let found = split(&text);
        let refused: Vec<_> = found.iter().filter(|(_, object)| object.is_err()).collect();
        let [(spot, Err(error))] = refused.as_slice() else { panic!("{text}: {found:?}") };
        assert_eq!(*spot, place, "{text}");
        assert_eq!(error.to_string(), "`values` is there twice, as [1,2] and as [3]");
        assert_eq!(error.id(), Some(&json!("x")));
    }
    // Which of two names is its own nobody knows.
    let (_, object) = split("{\"id\": 1, \"id\": 2}").remove(0);
    assert_eq!(object.expect_err("two names").id(), None);
}
