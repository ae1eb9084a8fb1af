//! Which runs of a study are worth being shown with everything.

use serde_json::Value;

use super::RunView;
use crate::study::{Finding, Findings, RunRecord, Setting};

/// A run of a study, shown with its series, percentiles and counters.
#[derive(Debug, Clone)]
pub struct Detail {
    /// Its number.
    pub run: u32,
    /// The finding that it stands for.
    pub finding: String,
    /// Why it is shown, without a full stop.
    pub why: String,
    /// What was run.
    pub setting: Setting,
    /// What came back.
    pub view: RunView,
}

/// Runs that are shown at most: each may take some hundred KiB of the page.
const SHOWN_MOST: usize = 4;
/// The step whose run is explained (method, 2.4).
const EXPLAINED: &str = "pretest-1";

/// (run, finding, why) of the runs that are worth a look: the one that the workflow explains, then the one at
/// each answer, then, where there is no answer, the last one. None that left no whole result.
#[must_use]
pub fn worth_a_look<'a>(
    findings: Option<&Findings>,
    runs: &'a [RunRecord],
) -> Vec<(&'a RunRecord, String, String)> {
    let usable: Vec<&RunRecord> =
        runs.iter().filter(|run| run.usable().is_some() && run.result.is_some()).collect();
    let mut found: Vec<(&RunRecord, String, String)> = Vec::new();
    let mut add = |run: Option<&'a RunRecord>, finding: &str, why: String| {
        let Some(run) = run else { return };
        if found.len() < SHOWN_MOST && !found.iter().any(|(other, ..)| other.run == run.run) {
            found.push((run, finding.to_owned(), why));
        }
    };
    let explained = usable.iter().copied().find(|run| run.step == EXPLAINED);
    add(explained, EXPLAINED, "The run that the workflow explains".to_owned());
    for finding in findings.into_iter().flat_map(|findings| &findings.findings) {
        let mut own = usable.iter().copied().filter(|run| finding.runs.contains(&run.run));
        let is_answer = answer(finding);
        let run = own.rfind(|run| is_answer(&run.setting));
        add(run, &finding.id, format!("The answer to: {}", finding.title));
    }
    if found.is_empty()
        && let Some(last) = usable.last()
    {
        let why = "The last run that was measured".to_owned();
        found.push((last, String::new(), why));
    }
    found
}

/// Whether a setting is what a finding recommends.
fn answer(finding: &Finding) -> impl Fn(&Setting) -> bool {
    let o = finding.decision.get("recommended_o").and_then(Value::as_u64);
    let chosen = finding.decision.get("best_set").and(finding.decision.get("value"));
    let chosen = chosen.and_then(Value::as_str).map(str::to_owned);
    move |setting| {
        let by_label = chosen.as_ref().is_some_and(|chosen| {
            *chosen == setting.short()
                || *chosen == format!("t{} o{}", setting.threads, setting.outstanding)
        });
        by_label || o.is_some_and(|o| u64::from(setting.outstanding) == o)
    }
}
