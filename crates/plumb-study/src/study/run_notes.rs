//! What is said of single runs of a study, in few remarks however many runs there are.

use plumb_units::convert::floor_u64;
use plumb_units::words::number_of;

use super::best::Noise;
use super::record::{Outcome, RunRecord};
use super::summary::{GENERATOR_LIMITED, INCONSISTENT, NOT_STEADY, STOOD_STILL};
use super::sweep_findings::{rates, tested};
use crate::outliers;
use crate::repetitions;
use crate::stats::describe::{mean, median, squares};
use crate::stats::distribution::t_95;

/// Runs that a remark names; of more it says how many.
const NAMED_MOST: usize = 8;

/// Runs by their names, each with what is added to it: `run 7 (t8 o12 …)`, or `runs 7 (t8 o12 …), 9 (t8 o4 …) and 12 more`.
fn named(runs: &[(u32, String)]) -> String {
    let each = |(run, about): &(u32, String)| format!("{run} ({about})");
    let shown: Vec<String> = runs.iter().take(NAMED_MOST).map(each).collect();
    let (word, left) = (if runs.len() == 1 { "run" } else { "runs" }, runs.len() - shown.len());
    let more = if left > 0 { format!(" and {left} more") } else { String::new() };
    format!("{word} {}{more}", shown.join(", "))
}

/// (5.5) Runs unlike their siblings: flagged, never dropped.
fn unlike(runs: &[RunRecord]) -> Option<String> {
    let mut found = Vec::new();
    for setting in tested(runs) {
        let (iops, numbers) = rates(&setting, runs);
        let logs: Vec<f64> = iops.iter().map(|iops| iops.ln()).collect();
        for place in outliers::flagged(&logs) {
            let off = (logs[place] - median(&logs)).exp_m1();
            let about = format!("{}: {:+.1} % of {}", setting.short(), off * 100.0, logs.len());
            found.push((off.abs(), (numbers[place], about)));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let found: Vec<(u32, String)> = found.into_iter().map(|(_, run)| run).collect();
    let lies = match found.len() {
        0 => return None,
        1 => {
            "lies off the median of its repetitions by more than these differ by: it counts, repeat it"
        }
        _ => {
            "lie off the median of their repetitions by more than these differ by: they count, repeat them"
        }
    };
    Some(format!("{} {lies}", named(&found)))
}

/// What first repetitions are slower by at least that is told, in ln X.
const FIRST_LEAST: f64 = 0.01;

/// (5.5) First runs that are slower than those which repeat them: one hint for all settings. By itself, one setting in six
/// has its first of three so far off by chance.
fn first_is_slow(runs: &[RunRecord]) -> Option<String> {
    let mut found = Vec::new();
    let (mut count, mut lag, mut per_run, mut squared, mut freedom) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for setting in tested(runs) {
        let (iops, numbers) = rates(&setting, runs);
        let logs: Vec<f64> = iops.iter().map(|iops| iops.ln()).collect();
        let Some((first, others)) = logs.split_first().filter(|(_, others)| others.len() > 1)
        else {
            continue;
        };
        let behind = mean(others) - first;
        count += 1.0;
        lag += behind;
        per_run += 1.0 + 1.0 / others.len() as f64;
        squared += squares(others);
        freedom += others.len() as f64 - 1.0;
        if outliers::first_is_slow(&logs) {
            let about = format!("{}: {:.1} %", setting.short(), -(-behind).exp_m1() * 100.0);
            found.push((behind, (numbers[0], about)));
        }
    }
    if found.is_empty() {
        return None;
    }
    let lag = lag / count;
    let reach = t_95(freedom) * (squared / freedom * per_run).sqrt() / count;
    if lag < FIRST_LEAST || lag < reach {
        return None;
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named = named(&found.into_iter().map(|(_, run)| run).collect::<Vec<_>>());
    Some(format!(
        "the first of a setting's repetitions is slower than those after it, by {:.1} % on average (± {:.1} %, {}), most of all \
         {named}: a longer warm-up may be needed",
        -(-lag).exp_m1() * 100.0,
        reach * 100.0,
        number_of(floor_u64(count), "setting"),
    ))
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

/// What is said of a flag; `None` where it is told elsewhere.
fn of_flag(flag: &str) -> Option<&str> {
    match flag {
        NOT_STEADY | "two-phase" | INCONSISTENT | GENERATOR_LIMITED => Some(flag),
        STOOD_STILL => Some(
            "nothing completed at its end: the device stood still, and what was in flight then is in no latency",
        ),
        _ => None,
    }
}

/// What went wrong with single runs.
pub(super) fn notes(runs: &[RunRecord]) -> Vec<String> {
    // What is said of several runs is said once.
    let mut said: Vec<(String, Vec<(u32, String)>)> = Vec::new();
    for run in runs {
        let what = match (&run.outcome, &run.summary) {
            (Outcome::Failed(why), _) => format!("failed: {why}"),
            (_, Some(summary)) if summary.errors > 0 => {
                format!("{} I/Os failed: its figures are in no finding", summary.errors)
            }
            (Outcome::Measured, Some(summary)) if summary.iops <= 0.0 => {
                "no I/O completed while it was measured: its figures are in no finding".to_owned()
            }
            (_, Some(summary)) => {
                let flags: Vec<&str> =
                    summary.flags.iter().filter_map(|flag| of_flag(flag)).collect();
                if flags.is_empty() {
                    continue;
                }
                flags.join(", ")
            }
            _ => continue,
        };
        let own = (run.run, run.setting.short());
        match said.iter_mut().find(|(other, _)| *other == what) {
            Some((_, others)) => others.push(own),
            None => said.push((what, vec![own])),
        }
    }
    let all = runs.len();
    let told = |(what, of): &(String, Vec<(u32, String)>)| match of.len() {
        1 => format!("{}: {what}", named(of)),
        count => format!("{count} of {all} runs: {what}: {}", named(of)),
    };
    let mut notes: Vec<String> = said.iter().map(told).collect();
    notes.extend(unlike(runs));
    notes.extend(first_is_slow(runs));
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
    use serde_json::json;

    use super::*;
    use crate::study::random::Random;
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

    /// A device that stood still for a whole run gave no figure, and none that is nothing (5.5).
    #[test]
    fn a_run_in_which_nothing_completed_is_in_no_finding() {
        let mut runs = runs(0.001, 0.001);
        let summary = runs[4].summary.as_mut().expect("it was measured");
        (summary.iops, summary.io_count) = (0.0, 0);
        assert_eq!(runs[4].usable(), None);
        assert!(runs[3].usable().is_some());
        let told = notes(&runs);
        assert!(told.iter().any(|note| note.contains("no I/O completed")), "{told:?}");
    }

    /// Three repetitions of each of 180 settings in blocks, 1 % between runs (SD); those of the first block are slower by so
    /// much, and one run in `flagged` has a flag.
    fn big(first_slower: f64, flagged: u32) -> Vec<RunRecord> {
        let mut random = Random::new(3, 1);
        let of = |number: u32| {
            let slower = if number < 180 { first_slower } else { 0.0 };
            let iops = 1000.0 * (0.01 * random.normal() - slower).exp();
            let flags: Vec<&str> =
                if number.is_multiple_of(flagged) { vec!["not-steady"] } else { Vec::new() };
            let summary = json!({
                "io_count": 100_000, "iops": iops, "mib_per_s": 1.0, "latency_ms": 1.0, "percentiles": [],
                "seconds": 60.0, "cut_s": 0.0, "steady": true, "two_phase": false, "errors": 0, "flags": flags,
            });
            let setting = Setting { outstanding: number % 180 + 1, ..Setting::default() };
            let record = json!({
                "run": number + 1, "key": number.to_string(), "step": "sweep", "purpose": "measure",
                "repetition": number / 180 + 1, "setting": setting, "started_s": 0.0, "ended_s": 1.0, "ended": null,
                "outcome": "measured", "summary": summary, "result": null,
            });
            serde_json::from_value(record).expect("a record")
        };
        (0..540).map(of).collect()
    }

    #[test]
    fn many_runs_have_few_remarks() {
        // By single settings 180/6 first runs are slow by chance.
        let alone = big(0.0, 3);
        let by_chance = tested(&alone).into_iter().filter(|setting| {
            let logs: Vec<f64> = rates(setting, &alone).0.iter().map(|iops| iops.ln()).collect();
            outliers::first_is_slow(&logs)
        });
        assert!(by_chance.count() > 10);
        let told = notes(&alone);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("180 of 540 runs: not-steady: runs 1 (t8 o1 "), "{told:?}");
        assert!(told[0].ends_with(" and 172 more") && told[0].len() < 300, "{told:?}");
        // One that is alone is named as such.
        let told = notes(&big(0.0, 540));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("run 1 (t8 o1 ") && told[0].ends_with("): not-steady"));
        // A warm-up that is too short shows in all first runs, and is told once.
        let told = notes(&big(0.035, 540));
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[1].contains("slower than those after it, by 3.")
                && told[1].contains("180 settings")
        );
        assert!(told[1].ends_with("a longer warm-up may be needed") && told[1].len() < 500);
        // What is certain over so many and of no size is not told.
        assert_eq!(notes(&big(0.005, 540)).len(), 1);
    }

    #[test]
    fn runs_off_their_siblings_are_told_together() {
        let mut runs = big(0.0, 541);
        runs.truncate(10);
        for run in &mut runs {
            run.setting.outstanding = run.run % 2 + 1;
            let summary = run.summary.as_mut().expect("measured");
            summary.flags.clear();
            // 1000, 1001 … and two at 800 and 1100.
            let off = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -200.0, 100.0, 8.0];
            summary.iops = 1000.0 + off[usize::try_from(run.run - 1).expect("small")];
        }
        let told = unlike(&runs).expect("two of them");
        assert!(told.starts_with("runs 8 (t8 o1 ") && told.contains(", 9 (t8 o2 "), "{told}");
        assert!(told.contains(": -20.") && told.contains("they count"), "{told}");
        runs[8].summary.as_mut().expect("measured").iops = 1004.0;
        let told = unlike(&runs).expect("one of them");
        assert!(told.starts_with("run 8 (") && told.ends_with("it counts, repeat it"), "{told}");
        runs[7].summary.as_mut().expect("measured").iops = 1005.0;
        assert_eq!(unlike(&runs), None);
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
