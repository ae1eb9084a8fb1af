//! Decisions of the workflow that need no more than the common keys.

use serde_json::{Map, Value, json};

use super::{Rule, number, object};

/// A decision with the common keys; those not given are empty, and can be replaced.
#[must_use]
pub fn plain(rule: Rule, id: &str, verdict: &str, reason: &str) -> Map<String, Value> {
    object(json!({
        "id": id,
        "rule": rule.keyword(),
        "verdict": verdict,
        "reason": reason,
        "value": null,
        "interval": null,
        "flags": [],
        "evidence": [],
        "parameters": {},
        "notes": [],
    }))
}

/// A choice among settings.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceMade {
    /// Name of the decision.
    pub id: String,
    /// `best`, or `unclear` where the set may hold worse ones.
    pub verdict: &'static str,
    /// What was chosen.
    pub value: String,
    /// What has most throughput.
    pub best: String,
    /// Those that are not worse.
    pub set: Vec<String>,
    /// What puts them into the set.
    pub how: &'static str,
    /// Why, with numbers.
    pub reason: String,
    /// Such as `single_runs`.
    pub flags: Vec<&'static str>,
    /// SD of ln X between runs, the degrees of freedom that it was estimated with, and where it comes from.
    pub deviation: (f64, f64, String),
}

/// What puts a setting into the best set of many (2.7).
pub const HOLM: &str =
    "settings that are not worse by 2 % and significantly, with Holm's correction";

/// The decision on a choice.
#[must_use]
pub fn of_choice(choice: &ChoiceMade) -> Map<String, Value> {
    let mut decision = plain(Rule::Best, &choice.id, choice.verdict, &choice.reason);
    decision.insert("value".to_owned(), choice.value.clone().into());
    decision.insert("best".to_owned(), choice.best.clone().into());
    decision.insert("best_set".to_owned(), json!(choice.set));
    decision.insert("flags".to_owned(), json!(choice.flags));
    decision.insert("parameters".to_owned(), json!({ "delta": 0.02, "confidence": 0.95 }));
    let evidence = json!([
        { "name": "deviation_between_runs", "value": number(choice.deviation.0),
          "freedom": number(choice.deviation.1),
          "arithmetic": format!("SD of ln X, {}", choice.deviation.2) },
        { "name": "best_set", "value": choice.set.len(),
          "arithmetic": choice.how },
    ]);
    decision.insert("evidence".to_owned(), evidence);
    decision
}
