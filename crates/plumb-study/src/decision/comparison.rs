//! The decision on a comparison.

use serde_json::{Map, Value, json};

use super::{Rule, evidence, number, object};
use crate::compare::{self, Comparison, Design, Metric, Verdict};
use crate::repetitions;

/// What was compared, as it was given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Subject {
    /// Values of the baseline's runs.
    pub baseline: Vec<f64>,
    /// Values of the candidate's runs.
    pub candidate: Vec<f64>,
    /// What else the values are known by, for evidence.
    pub remarks: Vec<String>,
}

/// The decision on a comparison.
#[must_use]
pub fn of_comparison(found: &Comparison, metric: &Metric, subject: &Subject) -> Map<String, Value> {
    let estimate = &found.estimate;
    let mut flags = Vec::new();
    if estimate.design == Design::Single {
        flags.push("single_run");
    }
    if estimate.notes.iter().any(|note| note.contains("not steady")) {
        flags.push("not_steady");
    }
    if estimate.notes.iter().any(|note| note.contains("later level")) {
        flags.push("two_phase");
    }
    let mut notes = subject.remarks.clone();
    notes.extend(found.notes.iter().cloned());
    let by_rule = repetitions::needed(estimate.run_deviation, found.delta);
    match found.needed {
        Some(needed) if needed == by_rule => notes.push(format!(
            "to tell a difference of {:.1} % from none take {needed} runs per side",
            found.delta * 100.0
        )),
        Some(needed) => notes.push(format!(
            "if they go on as they are, {needed} runs per side tell whether it is {:.1} % or more",
            found.delta * 100.0
        )),
        None if found.verdict == Verdict::Unclear => notes.push(format!(
            "it is about the {:.1} % that matter: more runs alone would hardly tell",
            found.delta * 100.0
        )),
        None => {}
    }
    let says_no_change = matches!(found.verdict, Verdict::Same | Verdict::Unclear);
    if let Some(least) = compare::detectable(found).filter(|_| says_no_change) {
        notes.push(format!(
            "with these runs a difference of {:.2} % is found in nine of ten cases",
            least * 100.0
        ));
    }
    object(json!({
        "rule": Rule::Compare.keyword(),
        "metric": metric.name,
        "verdict": found.verdict.keyword(),
        "reason": reason(found),
        "value": found.effect,
        "effect": found.effect,
        "interval": [number(found.interval.0), number(found.interval.1)],
        "ci": [number(found.interval.0), number(found.interval.1)],
        "p": found.p,
        "flags": flags,
        "needed_runs": found.needed,
        "notes": notes,
        "parameters": {
            "higher_is_better": metric.higher_is_better,
            "delta": found.delta,
            "confidence": 0.95,
            "design": estimate.design.keyword(),
            "error_least_ln": found.floor.error,
            "error_least_because": found.floor.reason,
        },
        "evidence": all_evidence(found, subject),
    }))
}

fn reason(found: &Comparison) -> String {
    let (low, high) = found.interval;
    format!(
        "{:+.2} % ({:+.2} to {:+.2} %), relevant from {:.0} % on",
        found.effect * 100.0,
        low * 100.0,
        high * 100.0,
        found.delta * 100.0
    )
}

fn all_evidence(found: &Comparison, subject: &Subject) -> Vec<Value> {
    let estimate = &found.estimate;
    let mut list = Vec::new();
    for (name, values) in [("baseline", &subject.baseline), ("candidate", &subject.candidate)] {
        list.push(evidence(name, values.clone(), "value of each run"));
    }
    list.push(evidence(
        "difference_ln",
        estimate.difference,
        format!(
            "mean ln of {} candidate runs − mean ln of {} baseline runs",
            estimate.runs.1, estimate.runs.0
        ),
    ));
    list.push(evidence("error_ln", number(estimate.error), "standard error of the difference"));
    list.push(evidence(
        "freedom",
        number(estimate.freedom),
        format!(
            "interval: {:.5} ± t(0.975) × {:.5} = {:.5} to {:.5}, then exp − 1",
            estimate.difference, estimate.error, estimate.low, estimate.high
        ),
    ));
    list.push(evidence(
        "run_deviation_ln",
        number(estimate.run_deviation),
        "SD of ln x between runs",
    ));
    if let Some(least) = compare::detectable(found) {
        list.push(evidence(
            "detectable",
            number(least),
            "difference that so many runs a side find in nine of ten cases, relative",
        ));
    }
    if let Some(drift) = estimate.drift {
        list.push(evidence("drift_ln_per_run", number(drift), "taken out as a line over time"));
    }
    if let Some(shift) = estimate.without_time {
        let sum = format!("with no line over time; interval {:.5} to {:.5}", shift.low, shift.high);
        list.push(evidence("shift_without_time_ln", shift.estimate, sum));
    }
    if let Some(shift) = estimate.second_opinion {
        let sum =
            format!("Hodges–Lehmann; Mann–Whitney interval {:.5} to {:.5}", shift.low, shift.high);
        list.push(evidence("shift_by_ranks_ln", shift.estimate, sum));
    }
    list
}
