//! A study against an earlier one: setting by setting (method, 6), where they may be compared at all (6.5).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{RunRecord, Setting, Study};
use crate::compare::holm;
use crate::environment::{self, Level};
use crate::record::{self, Allowance, Circumstances, Figures, Incomparable};

/// Facts of a plan whose difference is another piece of hardware.
const HARDWARE: [&str; 3] = ["device number", "processor", "simulated device"];
/// Letters of a fact that are told.
const FACT_MOST: usize = 60;
/// Letters of them before the first that differs.
const FACT_BEFORE: usize = 20;

/// What a study says of an earlier one.
#[derive(Debug, Clone, PartialEq)]
pub struct Against {
    /// A decision per setting and metric; `setting` and `metric` say which, `baseline_runs_of` and `runs` which
    /// runs it rests on, `holds_over_all` whether it is more than one of so many may be by chance (6.3).
    pub decisions: Vec<Map<String, Value>>,
    /// Settings that both measured.
    pub settings: usize,
    /// Settings that only the earlier one measured, and only the later one.
    pub alone: (usize, usize),
    /// Whether anything changed at all, at 5 % over all decisions (6.3).
    pub something_changed: bool,
}

impl Against {
    /// How many decisions came out so.
    #[must_use]
    pub fn count(&self, verdict: &str) -> usize {
        self.decisions.iter().filter(|decision| decision["verdict"] == verdict).count()
    }

    /// How many came out so and hold over all of them together, at 5 % (6.3).
    #[must_use]
    pub fn count_holding(&self, verdict: &str) -> usize {
        let is_so = |decision: &&Map<String, Value>| {
            decision["verdict"] == verdict && decision["holds_over_all"] == true
        };
        self.decisions.iter().filter(is_so).count()
    }
}

/// Compares the runs of two studies: `a` is the baseline.
///
/// # Errors
/// They must not be compared: another measuring method, another machine, or no setting in common.
pub fn against(
    a: (&Study, &[RunRecord]),
    b: (&Study, &[RunRecord]),
    allowed: &[Allowance],
) -> Result<Against, Incomparable> {
    let remarks = comparable(a.0, b.0, allowed)?;
    let (before, after) = (settings(a.1), settings(b.1));
    let both: Vec<&Setting> =
        before.iter().copied().filter(|setting| after.contains(setting)).collect();
    if both.is_empty() {
        let differences = vec!["no setting was measured in both studies".to_owned()];
        return Err(Incomparable::Parameters { differences });
    }
    // What runs of one setting differ by is a property of the system, so all repetitions of both studies tell it; the two
    // are apart, for a change between them is none of it.
    let mut repeated: Vec<Vec<Figures>> = Vec::new();
    for (runs, settings) in [(a.1, &before), (b.1, &after)] {
        repeated.extend(settings.iter().map(|setting| figures(runs, setting).0));
    }
    repeated.retain(|runs| runs.len() > 1);
    let mut decisions = Vec::new();
    for setting in &both {
        let (x, of_x) = figures(a.1, setting);
        let (y, of_y) = figures(b.1, setting);
        let later = Circumstances::Later;
        let environment = b.0.environment.as_ref().unwrap_or(&Value::Null);
        for mut decision in record::of_span(&x, &y, &repeated, later, environment, &remarks) {
            let without = if setting.latency { "" } else { " without latencies" };
            let name = format!("{}{without}", setting.short());
            let metric = decision["metric"].as_str().unwrap_or_default();
            decision.insert("id".to_owned(), format!("{name}: {metric}").into());
            decision.insert("setting".to_owned(), name.into());
            decision.insert("baseline_runs_of".to_owned(), of_x.clone().into());
            decision.insert("runs".to_owned(), of_y.clone().into());
            decisions.push(decision);
        }
    }
    Ok(Against {
        something_changed: over_all(&mut decisions),
        settings: both.len(),
        alone: (before.len() - both.len(), after.len() - both.len()),
        decisions,
    })
}

/// Says of each decision whether it holds over all of them (Holm at 5 %); returns whether any does.
fn over_all(decisions: &mut [Map<String, Value>]) -> bool {
    let p: Vec<f64> = decisions.iter().map(|d| d["p"].as_f64().unwrap_or(1.0)).collect();
    let holding = holm(&p, 0.05);
    let count = decisions.len();
    for (decision, holds) in decisions.iter_mut().zip(&holding) {
        decision.insert("holds_over_all".to_owned(), (*holds).into());
        let is_change = ["better", "worse"].iter().any(|word| decision["verdict"] == *word);
        let notes = decision.get_mut("notes").and_then(Value::as_array_mut);
        if let Some(notes) = notes.filter(|_| is_change && !holds) {
            notes.push(
                format!("one of {count} figures may look so by chance: over all of them together it does not hold")
                    .into(),
            );
        }
    }
    holding.contains(&true)
}

/// What is to be said with every decision, or why there is none.
fn comparable(a: &Study, b: &Study, allowed: &[Allowance]) -> Result<Vec<String>, Incomparable> {
    if a.epoch != b.epoch {
        let name = |study: &Study| format!("Plumb, measurement epoch {}", study.epoch);
        return Err(Incomparable::Epoch { a: name(a), b: name(b) });
    }
    let (mut hardware, mut parameters, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
    for (name, was) in &a.critical {
        let Some(is) = b.critical.get(name).filter(|is| *is != was) else { continue };
        let text = format!("{name}: {}", told_apart(was, is));
        match HARDWARE.contains(&name.as_str()) {
            true => hardware.push(text),
            false => remarks.push(format!("environment differs: {text}")),
        }
    }
    if std::mem::discriminant(&a.device) != std::mem::discriminant(&b.device) {
        hardware.push("one of them is simulated".to_owned());
    }
    let none = Value::Null;
    let known = |study: &Study| study.environment.clone().unwrap_or_else(|| none.clone());
    for found in environment::differences(&known(a), &known(b)) {
        match found.level {
            Level::Hardware => hardware.push(found.text),
            // The size of the files is a part of each setting.
            Level::Parameters if found.text.starts_with("size of the target") => {}
            Level::Parameters => parameters.push(found.text),
            Level::Label => {
                record::add_once(&mut remarks, format!("environment differs: {}", found.text));
            }
            Level::Remind => record::add_once(&mut remarks, found.text),
        }
    }
    if !parameters.is_empty() {
        if !allowed.contains(&Allowance::Parameters) {
            return Err(Incomparable::Parameters { differences: parameters });
        }
        remarks.push(format!("different workloads: {}", parameters.join("; ")));
    }
    if !hardware.is_empty() {
        if !allowed.contains(&Allowance::Hardware) {
            return Err(Incomparable::Hardware { differences: hardware });
        }
        remarks.push(format!("hardware change: {}", hardware.join("; ")));
    }
    Ok(remarks)
}

/// Two facts that differ, so that one sees where: of objects the members that are not the same, of long texts the part
/// around the first letter that is not.
fn told_apart(was: &str, is: &str) -> String {
    let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok();
    if let Some((was, is)) = object(was).zip(object(is)) {
        let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        let value = |of: &Map<String, Value>, name: &str| {
            of.get(name).map_or_else(|| "none".to_owned(), ToString::to_string)
        };
        let differing = names.into_iter().filter(|name| was.get(*name) != is.get(*name));
        let each: Vec<String> = differing
            .map(|name| format!("{name} {}", windows(&value(&was, name), &value(&is, name))))
            .collect();
        return each.join(", ");
    }
    windows(was, is)
}

/// Two texts, cut to where they differ first.
fn windows(was: &str, is: &str) -> String {
    let same = was.chars().zip(is.chars()).take_while(|(x, y)| x == y).count();
    let fits = |text: &str| text.chars().count() <= FACT_MOST;
    let skipped = if fits(was) && fits(is) { 0 } else { same.saturating_sub(FACT_BEFORE) };
    let cut = |text: &str| {
        let shown: String = text.chars().skip(skipped).take(FACT_MOST).collect();
        let before = if skipped > 0 { "…" } else { "" };
        let is_all = text.chars().count() <= skipped + FACT_MOST;
        format!("{before}{shown}{}", if is_all { "" } else { "…" })
    };
    format!("{} and {}", cut(was), cut(is))
}

/// Every setting with a usable run, in the order of its first one.
fn settings(runs: &[RunRecord]) -> Vec<&Setting> {
    let mut found: Vec<&Setting> = Vec::new();
    for run in runs.iter().filter(|run| run.usable().is_some()) {
        if !found.contains(&&run.setting) {
            found.push(&run.setting);
        }
    }
    found
}

/// The figures of a setting's usable runs, and their numbers.
fn figures(runs: &[RunRecord], setting: &Setting) -> (Vec<Figures>, Vec<u32>) {
    let of = |run: &RunRecord| {
        let summary = run.usable().filter(|_| run.setting == *setting)?;
        let figures = Figures {
            count: summary.io_count,
            iops: summary.iops,
            interval_s: 1.0,
            latency_ms: summary.latency_ms,
            percentiles: summary.percentiles.iter().map(|p| (p.percent, p.ms)).collect(),
            spreads: summary
                .percentiles
                .iter()
                .filter_map(|p| Some((p.percent, p.spread?)))
                .collect(),
            cpu_us_per_io: summary.cpu_us_per_io,
            ..Figures::default()
        };
        Some((figures, run.run))
    };
    runs.iter().filter_map(of).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::random::Random;
    use crate::study::{Device, Kind, Summary};

    fn plan(id: &str) -> Study {
        let text = format!(
            r#"{{"format":1,"id":"{id}","kind":"baseline","title":"t","created":"2026-01-01T00:00:00Z",
               "tool":"plumb","epoch":1,"target":"/f","device":"real","devices":null,"copies":1,"seed":1,
               "request":null,"runs_most":9,"runs_exhaustive":97,"estimate_s":1.0,
               "critical":{{"target":"/f","processor":"A"}}}}"#
        );
        let plan: Study = serde_json::from_str(&text).expect("a plan");
        assert_eq!((plan.kind, &plan.device), (Kind::Baseline, &Device::Real));
        plan
    }

    fn run(number: u32, o: u32, iops: f64) -> RunRecord {
        let summary = Summary {
            io_count: 600_000,
            iops,
            latency_ms: Some(f64::from(o) * 8e3 / iops),
            seconds: 60.0,
            steady: true,
            ..Summary::default()
        };
        let record = serde_json::json!({
            "run": number, "key": number.to_string(), "step": "random-1", "purpose": "measure", "repetition": 1,
            "setting": Setting { outstanding: o, ..Setting::default() }, "started_s": 0.0, "ended_s": 1.0,
            "ended": null, "outcome": "measured", "summary": summary, "result": null,
        });
        serde_json::from_value(record).expect("a record")
    }

    /// Three runs of o4 at these rates, one of an o of its own.
    fn runs(rates: [f64; 3], other: u32) -> Vec<RunRecord> {
        let mut runs: Vec<RunRecord> =
            (1..).zip(rates).map(|(number, iops)| run(number, 4, iops)).collect();
        runs.push(run(4, other, 9000.0));
        runs
    }

    #[test]
    fn settings_that_both_measured_are_judged() {
        let (a, b) = (plan("a"), plan("b"));
        let before = runs([1000.0, 1004.0, 997.0], 1);
        let after = runs([900.0, 903.0, 899.0], 2);
        let found = against((&a, &before), (&b, &after), &[]).expect("comparable");
        assert_eq!((found.settings, found.alone), (1, (1, 1)));
        assert_eq!((found.count("worse"), found.count("better")), (2, 0));
        assert_eq!((found.count_holding("worse"), found.count_holding("better")), (2, 0));
        assert!(found.something_changed);
        assert_eq!(found.decisions[0]["id"], "t8 o4 b8K r w30: iops");
        assert_eq!(found.decisions[0]["runs"], serde_json::json!([1, 2, 3]));
        assert!(!found.decisions[0]["notes"].to_string().contains("tier"));
        // The published drop, with a cache over the target.
        let mut full = plan("c");
        full.environment = Some(serde_json::json!({ "preflight": { "checks": [
            { "id": "tier", "verdict": "warn", "evidence": "f is bcache" },
        ] } }));
        let after = runs([13.5, 13.6, 13.4], 2);
        let found = against((&a, &before), (&full, &after), &[]).expect("comparable");
        let notes = found.decisions[0]["notes"].to_string();
        assert!(notes.contains("98.7 % fewer I/Os per second: where the file is off"), "{notes}");
        let same = against((&a, &before), (&b, &before), &[]).expect("comparable");
        assert!(!same.something_changed && same.count("worse") + same.count("better") == 0);
    }

    /// Runs of o 1…8 once each, and o4 five times in all; each that far off 1000 I/Os per second, in per cent.
    fn once_each(singles: [f64; 8], reference: [f64; 4]) -> Vec<RunRecord> {
        let outstanding = (1..=8).chain([4; 4]);
        let off = singles.into_iter().chain(reference);
        let each = (1..).zip(outstanding).zip(off);
        each.map(|((number, o), off)| run(number, o, 1000.0 * (1.0 + off / 100.0))).collect()
    }

    #[test]
    fn single_runs_differ_by_what_repetitions_of_other_settings_do() {
        let (a, b) = (plan("a"), plan("b"));
        let judged = |before: &[RunRecord], after: &[RunRecord]| {
            against((&a, before), (&b, after), &[]).expect("comparable")
        };
        // 5 % between runs, and nothing changed.
        let before = once_each([4.0, -6.0, 3.0, 1.0, -5.0, 7.0, -2.0, 6.0], [-6.0, 5.0, -3.0, 6.0]);
        let after = once_each([-5.0, 5.0, -4.0, 2.0, 6.0, -4.0, 5.0, -7.0], [5.0, -4.0, 7.0, -5.0]);
        let found = judged(&before, &after);
        assert_eq!((found.count("better"), found.count("worse")), (0, 0), "{:?}", found.decisions);
        let notes = found.decisions[0]["notes"].to_string();
        assert!(notes.contains("all repeated settings, 5.22 % (8 degrees"), "{notes}");
        // 1 % between runs, and 15 % less.
        let tenth = |off: [f64; 8]| off.map(|off| off / 5.0);
        let quiet = [-1.2, 1.0, -0.6, 1.2];
        let before = once_each(tenth([4.0, -6.0, 3.0, 1.0, -5.0, 7.0, -2.0, 6.0]), quiet);
        let slower = |off: f64| (1.0 + off / 100.0) * 85.0 - 100.0;
        let after = once_each(
            tenth([-5.0, 5.0, -4.0, 2.0, 6.0, -4.0, 5.0, -7.0]).map(slower),
            quiet.map(slower),
        );
        let found = judged(&before, &after);
        assert_eq!((found.count("worse"), found.settings), (16, 8), "{:?}", found.decisions);
        // One repetition in all: Student's factor, 12.7, would hide the change.
        let few = |runs: &[RunRecord]| runs[..9].to_vec();
        let found = judged(&few(&before), &few(&after)[..8]);
        assert_eq!(found.count("worse"), 16, "{:?}", found.decisions);
        // None at all: 1.5 % is assumed.
        let found = judged(&before[..8], &after[..8]);
        assert!(found.decisions[0]["notes"].to_string().contains("1.5 % is assumed"));
    }

    /// Runs of 24 settings, three each, 2 % between runs (SD).
    fn noisy(random: &mut Random) -> Vec<RunRecord> {
        (0..72)
            .map(|number| run(number, 1 + number % 24, 1000.0 * (0.02 * random.normal()).exp()))
            .collect()
    }

    #[test]
    fn of_studies_without_a_change_one_in_twenty_is_called_worse_at_most() {
        let (a, b) = (plan("a"), plan("b"));
        let mut random = Random::new(20_261_126, 1);
        let (mut by_rows, mut held) = (0, 0);
        for _ in 0..200 {
            let (before, after) = (noisy(&mut random), noisy(&mut random));
            let found = against((&a, &before), (&b, &after), &[]).expect("comparable");
            by_rows += u32::from(found.count("worse") > 0);
            held += u32::from(found.count_holding("worse") > 0);
            let told = found.decisions.iter().filter(|decision| decision["verdict"] == "worse");
            for decision in told {
                let holds = decision["holds_over_all"] == true;
                let doubts = decision["notes"].to_string().contains("by chance");
                assert_eq!(doubts, !holds, "{decision:?}");
            }
        }
        assert!(by_rows > 50 && held <= 10, "{by_rows} by single rows, {held} over all, of 200");
        // One setting of 24 that lost three tenths is found among them.
        let mut found = 0;
        for _ in 0..50 {
            let (before, mut after) = (noisy(&mut random), noisy(&mut random));
            for run in after.iter_mut().filter(|run| run.setting.outstanding == 7) {
                let summary = run.summary.as_mut().expect("measured");
                summary.iops *= 0.7;
                summary.latency_ms = summary.latency_ms.map(|ms| ms / 0.7);
            }
            let judged = against((&a, &before), (&b, &after), &[]).expect("comparable");
            found += u32::from(judged.count_holding("worse") > 0);
        }
        println!("{by_rows} by single rows, {held} over all, of 200; {found} of 50 changes");
        assert!(found >= 45, "{found} of 50");
    }

    #[test]
    fn facts_that_differ_are_told_apart_however_long_they_are() {
        let long = "a processor with a name that goes on and on and on and on, and says last ";
        let told = told_apart(&format!("{long}A"), &format!("{long}B"));
        assert!(told.starts_with('…') && told.contains("says last A and …"), "{told}");
        assert!(told.ends_with("says last B"), "{told}");
        assert_eq!(told_apart("A", "B"), "A and B");
        let device = |seed: u32, stalls: bool| {
            let mut device =
                serde_json::json!({ "curve": { "max": 40_000.0, "l0": 0.4 }, "seed": seed });
            if stalls {
                device["stall_every_s"] = 5.into();
            }
            device.to_string()
        };
        assert_eq!(told_apart(&device(1, false), &device(2, false)), "seed 1 and 2");
        let told = told_apart(&device(1, false), &device(1, true));
        assert_eq!(told, "stall_every_s none and 5");
        let longer = told_apart(&format!("{long}A"), &format!("{long}A and more"));
        assert!(longer.ends_with("A and more"), "{longer}");
    }

    #[test]
    fn what_must_not_be_compared_is_refused() {
        let (a, mut b) = (plan("a"), plan("b"));
        let measured = runs([1000.0, 1004.0, 997.0], 1);
        let with = |b: &Study, runs: &[RunRecord], allowed: &[Allowance]| {
            against((&a, &measured), (b, runs), allowed)
        };
        b.critical.insert("processor".into(), "B".into());
        let refused = with(&b, &measured, &[]).expect_err("another processor");
        assert!(matches!(refused, Incomparable::Hardware { .. }), "{refused}");
        let told = with(&b, &measured, &[Allowance::Hardware]).expect("allowed");
        assert!(told.decisions[0]["notes"].to_string().contains("hardware change: processor: A"));
        b = plan("b");
        b.critical.insert("target".into(), "/g".into());
        let told = with(&b, &measured, &[]).expect("comparable");
        assert!(told.decisions[0]["notes"].to_string().contains("environment differs: target"));
        b.epoch = 2;
        assert!(matches!(with(&b, &measured, &[]), Err(Incomparable::Epoch { .. })));
        let nothing = with(&plan("b"), &[run(1, 99, 5.0)], &[]).expect_err("nothing in common");
        assert!(nothing.to_string().contains("no setting was measured in both"), "{nothing}");
    }
}
