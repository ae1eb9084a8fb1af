//! What is said of single runs of a sweep.

use super::best::Noise;
use super::record::{Outcome, RunRecord};
use super::sweep_findings::{rates, tested};
use crate::outliers;
use crate::repetitions;
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

/// (5.3) How long a run had better be, where repetitions tell what runs differ by, their series what each is known to, and
/// it is twice or half of what was measured.
fn better_length(runs: &[RunRecord]) -> Option<String> {
    let logs = |setting| rates(setting, runs).0.iter().map(|iops| iops.ln()).collect();
    let noise = Noise::pooled(&tested(runs).iter().map(logs).collect::<Vec<Vec<f64>>>())?;
    // Half an interval is two standard errors.
    let each = |run: &RunRecord| {
        let summary = run.usable()?;
        Some((run.setting.warm_up_s, summary.seconds, (summary.half_width? / 2.0).powi(2)))
    };
    let known: Vec<(u32, f64, f64)> = runs.iter().filter_map(each).collect();
    if known.is_empty() {
        return None;
    }
    let mean_of =
        |of: &dyn Fn(&(u32, f64, f64)) -> f64| mean(&known.iter().map(of).collect::<Vec<f64>>());
    let (inside, seconds) = (mean_of(&|run| run.2), mean_of(&|run| run.1));
    let between = (noise.deviation.powi(2) - inside).max(0.0).sqrt();
    if between <= 0.0 || inside <= 0.0 {
        return None;
    }
    let warm_up = mean_of(&|run| f64::from(run.0));
    let best = repetitions::best_length_s(warm_up, mean_of(&|run| run.2 * run.1), between);
    let what = match best {
        best if best <= seconds / 2.0 => "more runs and shorter ones",
        best if best >= seconds * 2.0 => "longer runs and fewer",
        _ => return None,
    };
    Some(format!(
        "runs of one setting differ by {:.2} % (SD, {}), and the mean of one of {seconds:.0} s is known to {:.2} %: {what}, of \
         about {best:.0} s, would tell more in the same time",
        noise.deviation * 100.0,
        noise.told(),
        inside.sqrt() * 100.0
    ))
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
    notes.extend(better_length(runs));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Setting, Summary};

    /// Three repetitions of each of four settings, `between` apart, each known to `half`.
    fn runs(between: f64, half: f64) -> Vec<RunRecord> {
        let of = |number: u32| {
            let off = f64::from(number % 3) - 1.0;
            let summary = Summary {
                io_count: 100_000,
                iops: 1000.0 * (1.0 + between * off),
                seconds: 60.0,
                half_width: Some(half),
                steady: true,
                ..Summary::default()
            };
            let setting = Setting { outstanding: number / 3 + 1, ..Setting::default() };
            let record = serde_json::json!({
                "run": number, "key": number.to_string(), "step": "sweep", "purpose": "measure", "repetition": 1,
                "setting": setting, "started_s": 0.0, "ended_s": 1.0, "ended": null, "outcome": "measured",
                "summary": summary, "result": null,
            });
            serde_json::from_value(record).expect("a record")
        };
        (0..12).map(of).collect()
    }

    #[test]
    fn more_and_shorter_runs_are_advised_where_runs_lie_apart() {
        let said = better_length(&runs(0.02, 0.002)).expect("apart");
        assert!(
            said.contains("SD, of repetitions") && said.contains("more runs and shorter"),
            "{said}"
        );
        // sqrt(10 s · (0.1 %)² · 60 s) / 2 % is below what a run may be.
        assert!(said.contains("about 30 s"), "{said}");
        assert!(
            better_length(&runs(0.02, 0.041)).is_none(),
            "what is seen is what runs vary inside"
        );
        let said = better_length(&runs(0.011, 0.0219)).expect("noisy inside");
        assert!(said.contains("longer runs and fewer"), "{said}");
        assert!(better_length(&runs(0.02, 0.03)[..2]).is_none(), "nothing was repeated");
    }
}
