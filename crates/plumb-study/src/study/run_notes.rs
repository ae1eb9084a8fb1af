//! What is said of single runs of a sweep.

use super::record::{Outcome, RunRecord};
use super::sweep_findings::{rates, tested};
use crate::outliers;
use crate::stats::describe::{mean, median};

/// (5.5) Runs unlike their siblings: flagged, never dropped.
fn unlike(runs: &[RunRecord]) -> Vec<String> {
    let mut notes = Vec::new();
    for setting in tested(runs) {
        let (iops, numbers) = rates(&setting, runs);
        let logs: Vec<f64> = iops.iter().map(|iops| iops.ln()).collect();
        for place in outliers::flagged(&logs) {
            notes.push(format!(
                "run {} ({}): {:+.1} % off the median of its {} repetitions, more than these differ by; it counts, repeat it",
                numbers[place],
                setting.short(),
                (logs[place] - median(&logs)).exp_m1() * 100.0,
                logs.len()
            ));
        }
        if logs.len() > 2 && outliers::first_is_slow(&logs) {
            notes.push(format!(
                "run {} ({}): the first of its repetitions is the slowest by more than the others differ: a longer \
                 warm-up may be needed",
                numbers[0],
                setting.short()
            ));
        }
    }
    notes
}

/// What went wrong with single runs.
pub(super) fn notes(runs: &[RunRecord]) -> Vec<String> {
    let mut notes = Vec::new();
    for run in runs {
        let what = match (&run.outcome, &run.summary) {
            (Outcome::Failed(why), _) => format!("failed: {why}"),
            (_, Some(summary)) if summary.errors > 0 => {
                format!("{} I/Os failed: its figures are in no finding", summary.errors)
            }
            (_, Some(summary)) => {
                let told = ["not-steady", "two-phase", "inconsistent", "generator-limited"];
                let flags: Vec<&str> =
                    summary.flags.iter().map(String::as_str).filter(|f| told.contains(f)).collect();
                if flags.is_empty() {
                    continue;
                }
                flags.join(", ")
            }
            _ => continue,
        };
        notes.push(format!("{} ({}): {what}", run.name(), run.setting.short()));
    }
    notes.extend(unlike(runs));
    let short = |run: &&RunRecord| {
        run.usable().is_some_and(|summary| summary.flags.iter().any(|flag| flag == "too-short"))
    };
    let count = runs.iter().filter(short).count();
    if count > 0 {
        let lengths: Vec<f64> = runs.iter().filter_map(|run| Some(run.usable()?.seconds)).collect();
        notes.push(format!(
            "{} shorter than 60 s ({:.0} s on average): tails of latency and slow changes of the device are not seen",
            if count == 1 { "1 run was".to_owned() } else { format!("{count} runs were") },
            mean(&lengths)
        ));
    }
    notes
}
