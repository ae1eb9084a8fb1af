//! `findings.json`: what a study says.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::record::RunRecord;
use super::summary::NOT_STEADY;
use crate::decision::Rule;

/// How far the study is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Everything asked for was measured.
    #[default]
    Complete,
    /// It was interrupted, or its budget ended; it can be resumed.
    Partial,
}

/// All findings of a study, the most important first. No times and no names of machines: the same plan
/// and the same runs give the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Format of the documents.
    pub format: u32,
    /// The study's name.
    pub study: String,
    /// How far it is.
    pub state: State,
    /// Runs that were measured.
    pub runs: u64,
    /// Runs that an exhaustive plan takes.
    pub runs_exhaustive: u64,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Remarks on the whole study: steps left out, disturbances, what was given up.
    pub notes: Vec<String>,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name within the study: `random-1`, `sequential-read`, `o-of-t8`.
    pub id: String,
    /// A few words.
    pub title: String,
    /// One or two plain sentences with their numbers.
    pub sentence: String,
    /// The step it belongs to.
    pub step: String,
    /// The decision object (method, section 10): `id`, `verdict`, `value`, `interval`, `flags`,
    /// `evidence`, `rule`, `parameters` and what its kind adds. `plumb explain` takes it.
    pub decision: Map<String, Value>,
    /// Runs that it rests on, by number.
    pub runs: Vec<u32>,
    /// The numbers behind it, where a table shows them.
    #[serde(default)]
    pub table: Option<Table>,
}

/// Rules of findings that say what the machine does, by figures that a run that was not steady may spoil.
const BY_FIGURES: [Rule; 4] = [Rule::Knee, Rule::Best, Rule::Files, Rule::Figure];

impl Finding {
    /// The same, with a word on those of its runs that were not steady: they count, and not in silence (5.1).
    pub(super) fn with_unsteady(mut self, runs: &[RunRecord]) -> Self {
        let rule = self.decision["rule"].as_str().and_then(Rule::of_keyword);
        if !rule.is_some_and(|rule| BY_FIGURES.contains(&rule)) {
            return self;
        }
        let own = runs.iter().filter(|run| self.runs.contains(&run.run) && run.usable().is_some());
        let is_unsteady =
            |run: &&RunRecord| run.usable().is_some_and(|summary| summary.has(NOT_STEADY));
        let unsteady: Vec<String> =
            own.clone().filter(is_unsteady).map(|run| run.run.to_string()).collect();
        let all = own.count();
        let told = match (unsteady.len(), all) {
            (0, _) => return self,
            (_, 1) => "Its run was not steady".to_owned(),
            (1, _) => format!("1 of its {all} runs was not steady"),
            (some, _) => format!("{some} of its {all} runs were not steady"),
        };
        self.sentence.push_str(&format!(" {told}."));
        if let Some(notes) = self.decision.get_mut("notes").and_then(Value::as_array_mut) {
            notes.push(format!("{told} (5.1): {}", unsteady.join(", ")).into());
        }
        self
    }
}

/// Numbers behind a finding.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Names of the columns, with units.
    pub columns: Vec<String>,
    /// A value or null per column.
    pub rows: Vec<Vec<Value>>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::decision::plain;
    use crate::study::{Setting, Summary};

    fn run(number: u32, is_steady: bool) -> RunRecord {
        let flags = if is_steady { Vec::new() } else { vec![NOT_STEADY.to_owned()] };
        let summary = Summary { io_count: 1000, iops: 1000.0, flags, ..Summary::default() };
        let record = json!({
            "run": number, "key": number.to_string(), "step": "sweep", "purpose": "measure", "repetition": 1,
            "setting": Setting::default(), "started_s": 0.0, "ended_s": 1.0, "ended": null,
            "outcome": "measured", "summary": summary, "result": null,
        });
        serde_json::from_value(record).expect("a record")
    }

    fn finding(rule: Rule, runs: &[u32]) -> Finding {
        Finding {
            id: "it".to_owned(),
            title: "It".to_owned(),
            sentence: "So it is.".to_owned(),
            step: "sweep".to_owned(),
            decision: plain(rule, "it", "best", "so"),
            runs: runs.to_vec(),
            table: None,
        }
    }

    /// 5.1: a run that was not steady is never silently used.
    #[test]
    fn runs_that_were_not_steady_are_told_where_they_count() {
        let runs = [run(1, true), run(2, false), run(3, true), run(4, false)];
        let told = |rule, of: &[u32]| finding(rule, of).with_unsteady(&runs);
        let some = told(Rule::Best, &[1, 2, 3, 4]);
        assert_eq!(some.sentence, "So it is. 2 of its 4 runs were not steady.");
        assert_eq!(some.decision["notes"], json!(["2 of its 4 runs were not steady (5.1): 2, 4"]));
        assert_eq!(told(Rule::Knee, &[1, 2]).sentence, "So it is. 1 of its 2 runs was not steady.");
        assert_eq!(told(Rule::Figure, &[4]).sentence, "So it is. Its run was not steady.");
        assert_eq!(told(Rule::Files, &[1, 3]), finding(Rule::Files, &[1, 3]));
        // What a run is like is another matter for rules that say just that.
        assert_eq!(told(Rule::Reading, &[2]), finding(Rule::Reading, &[2]));
    }
}
