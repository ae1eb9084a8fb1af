//! The machine that a study was measured on: its preflight as a finding, and what changed on the way.

use plumb_io::block_stack;
use serde_json::{Value, json};

use super::findings::{Finding, Table};
use super::record::RunRecord;
use super::reference;
use super::resumption::Resumption;
use crate::decision::{self, Rule};

/// What the drift of all runs leads to is told where it is that far, in shares, from what there was.
const TOLD_APART: f64 = 0.01;

/// The verdicts of the preflight, as `environment.preflight` of the study's plan has them (2.1); `None` where the
/// plan says nothing of it.
pub(super) fn preflight(environment: Option<&Value>) -> Option<Finding> {
    let record = environment?.get("preflight")?;
    let verdict = record["verdict"].as_str().unwrap_or("unknown");
    let empty = Vec::new();
    let checks = record["checks"].as_array().unwrap_or(&empty);
    let of = |word: &str| -> Vec<&str> {
        let is_one = |check: &&Value| check["verdict"] == word;
        checks.iter().filter(is_one).filter_map(|check| check["id"].as_str()).collect()
    };
    let accepted: Vec<&str> =
        record["accepted"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let sentence = match record["absent"].as_str() {
        Some(why) => format!("The machine was not looked at: {why}."),
        None => {
            let mut parts = Vec::new();
            for (word, says) in [("block", "block"), ("warn", "warn"), ("unknown", "cannot see")] {
                let ids = of(word);
                if !ids.is_empty() {
                    parts.push(format!("{} {says} ({})", ids.len(), ids.join(", ")));
                }
            }
            let fine = of("ok").len() + of("note").len();
            let accepted = match accepted.as_slice() {
                [] => String::new(),
                ids => format!(" Accepted: {}.", ids.join(", ")),
            };
            let others =
                if parts.is_empty() { String::new() } else { format!("; {}", parts.join("; ")) };
            format!(
                "Of {} checks before the first run {fine} are fine{others}.{accepted}",
                checks.len()
            )
        }
    };
    let mut decision = decision::plain(Rule::Preflight, "preflight", verdict, &sentence);
    decision.insert("value".to_owned(), json!(of("block").len() + of("warn").len()));
    decision.insert("flags".to_owned(), json!([of("block"), of("warn")].concat()));
    decision.insert("parameters".to_owned(), json!({ "accepted": accepted }));
    let evidence: Vec<Value> = checks
        .iter()
        .filter(|check| check["verdict"] != "ok")
        .map(|check| json!({ "name": check["id"], "value": check["verdict"], "arithmetic": check["evidence"] }))
        .collect();
    decision.insert("evidence".to_owned(), evidence.into());
    let columns = ["check", "verdict", "evidence", "remedy"];
    let row = |check: &Value| {
        ["id", "verdict", "evidence", "remedy"].map(|key| check[key].clone()).to_vec()
    };
    Some(Finding {
        id: "preflight".to_owned(),
        title: "The machine before the first run".to_owned(),
        sentence,
        step: "preflight".to_owned(),
        decision,
        runs: Vec::new(),
        table: (!checks.is_empty()).then(|| Table {
            columns: columns.map(str::to_owned).to_vec(),
            rows: checks.iter().map(row).collect(),
        }),
    })
}

/// Whether I/O goes by another NUMA node or host, in the words of the check that saw it (R22); where there was no
/// preflight, by the file systems of the targets.
pub(crate) fn remote(environment: Option<&Value>) -> Option<String> {
    let environment = environment?;
    let hops: Vec<String> = match environment["preflight"]["checks"].as_array() {
        Some(checks) => {
            let of = |id: &str, verdict: &str| {
                let is_it = |check: &&Value| check["id"] == id && check["verdict"] == verdict;
                checks.iter().find(is_it)?["evidence"].as_str().map(str::to_owned)
            };
            // The data's being on another machine is worth a note, another node a warning.
            [of("numa", "warn"), of("health-fabric", "note"), of("health-fabric", "warn")]
                .into_iter()
                .flatten()
                .collect()
        }
        None => {
            let systems = environment["groups"]["fs"].as_array().into_iter().flatten();
            let kinds = systems.filter_map(|system| system["kind"].as_str());
            let mut kinds: Vec<String> = kinds
                .filter(|kind| block_stack::is_remote_kind(kind))
                .map(|kind| format!("the file system is {kind}, its data is on another machine"))
                .collect();
            kinds.sort_unstable();
            kinds.dedup();
            kinds
        }
    };
    (!hops.is_empty()).then(|| hops.join("; "))
}

/// What is to be said of interruptions: changes that were accepted or told, and a reference setting that came back
/// different. An interruption that changed nothing leaves no trace in the findings.
pub(super) fn resumptions(resumptions: &[Resumption], runs: &[RunRecord]) -> Vec<String> {
    let mut notes = Vec::new();
    for resumption in resumptions {
        let after = resumption.after_run;
        for change in &resumption.changes {
            notes.push(format!("after run {after} it went on although this changed: {change}"));
        }
        let Some(reference) = &resumption.reference else { continue };
        let Some(now) = reference.usable().map(|summary| summary.iops) else {
            notes.push(format!(
                "when it went on after run {after} the reference setting ({}) could not be measured",
                reference.setting.short()
            ));
            continue;
        };
        let found = reference::standing(reference, after, runs);
        let Some(found) = found.filter(|found| found.differs) else { continue };
        let word = match found.before {
            _ if found.spoils => {
                "; what was measured before and after is not one measurement: run it again"
            }
            1 => "; that is one run before, which may have been the one that was off",
            _ => "",
        };
        let of_several = match resumption.references {
            0 | 1 => String::new(),
            count => format!(", the middle of {count} runs"),
        };
        // Runs that drifted lead elsewhere than to what there was.
        let drifted = match (found.change - found.plain).abs() > TOLD_APART {
            true => {
                format!(", where the drift of all runs leads to {:.0}", now / (1.0 + found.change))
            }
            false => String::new(),
        };
        notes.push(format!(
            "when it went on after run {after} the reference setting ({}) gave {now:.0} I/Os per second{of_several}, {:+.1} % \
             against what it had{drifted}{word}",
            reference.setting.short(),
            found.plain * 100.0
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Outcome, Purpose, Setting, Summary};

    #[test]
    fn the_preflight_is_a_decision_with_its_evidence() {
        let environment = json!({ "preflight": {
            "verdict": "warn", "accepted": ["load-disk"],
            "checks": [
                { "id": "klog", "verdict": "unknown", "evidence": "no permission", "remedy": "be root" },
                { "id": "mem", "verdict": "ok", "evidence": "4 GiB", "remedy": null },
                { "id": "load-disk", "verdict": "block", "evidence": "40 % busy", "remedy": "stop it" },
                { "id": "numa", "verdict": "warn", "evidence": "node 1 from node 0", "remedy": "pin it" },
            ],
        } });
        let found = preflight(Some(&environment)).expect("a finding");
        assert_eq!(found.decision["verdict"], "warn");
        assert_eq!(found.decision["flags"], json!(["load-disk", "numa"]));
        assert_eq!(found.decision["evidence"].as_array().map(Vec::len), Some(3));
        assert_eq!(found.table.map(|table| table.rows.len()), Some(4));
        for part in [
            "4 checks",
            "1 are fine",
            "1 block (load-disk)",
            "cannot see (klog)",
            "Accepted: load-disk",
        ] {
            assert!(found.sentence.contains(part), "{part}: {}", found.sentence);
        }
        assert_eq!(remote(Some(&environment)).as_deref(), Some("node 1 from node 0"));
        let absent = json!({ "preflight": { "verdict": "unknown", "absent": "--skip preflight" } });
        let found = preflight(Some(&absent)).expect("a finding");
        assert_eq!(found.decision["verdict"], "unknown");
        assert!(found.sentence.contains("--skip preflight") && found.table.is_none());
        assert_eq!(preflight(None), None);
    }

    fn run(run: u32, iops: f64) -> RunRecord {
        RunRecord {
            run,
            key: String::new(),
            step: "sweep".to_owned(),
            purpose: Purpose::Measure,
            repetition: 1,
            setting: Setting::default(),
            started_s: 0.0,
            ended_s: 1.0,
            ended: None,
            outcome: Outcome::Measured,
            summary: Some(Summary { iops, ..Summary::default() }),
            result: None,
            command: Vec::new(),
            counters: None,
        }
    }

    #[test]
    fn only_a_device_that_came_back_different_is_told() {
        let runs = [run(1, 100.0), run(2, 100.0), run(3, 50.0)];
        let with = |iops: f64| Resumption {
            after_run: 2,
            at: None,
            changes: Vec::new(),
            reference: Some(run(0, iops)),
            references: 1,
        };
        assert!(resumptions(&[with(102.0)], &runs).is_empty());
        let told = resumptions(&[with(93.0), with(80.0)], &runs);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("-7.0 %") && !told[0].contains("run it again"), "{told:?}");
        // What runs differ by is not known of three runs.
        assert!(told[1].contains("-20.0 %") && !told[1].contains("run it again"), "{told:?}");
        let known: Vec<RunRecord> =
            (1..=6).map(|number| run(number, 99.0 + f64::from(number % 3))).collect();
        let told = resumptions(&[with(93.0), with(91.0), with(80.0)], &known);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("-20.4 %") && told[0].contains("run it again"), "{told:?}");
        // Two runs before, of which one was slow, are no reason; one run before never is.
        let slow = |number: u32| if number.is_multiple_of(3) { 75.0 } else { 100.0 };
        let with_slow: Vec<RunRecord> = (1..=12).map(|number| run(number, slow(number))).collect();
        assert!(resumptions(&[with(75.0), with(101.0)], &with_slow).is_empty());
        let after_one = Resumption { after_run: 1, ..with(80.0) };
        let told = resumptions(&[after_one], &known);
        assert!(told[0].contains("may have been the one"), "{told:?}");
        // What drifts is expected where it has drifted to.
        let at = |number: u32, iops: f64| RunRecord {
            started_s: f64::from(number) * 600.0,
            ..run(number, iops)
        };
        let drifting: Vec<RunRecord> =
            (1..=8).map(|number| at(number, 100.0 * 0.95_f64.powi(number.cast_signed()))).collect();
        let came_back =
            |iops: f64| Resumption { after_run: 4, reference: Some(at(8, iops)), ..with(1.0) };
        assert!(resumptions(&[came_back(66.3)], &drifting).is_empty());
        let told = resumptions(&[came_back(85.0)], &drifting);
        assert!(told[0].contains("run it again"), "{told:?}");
        let changed = Resumption {
            changes: vec!["kernel: a and b".to_owned()],
            reference: None,
            ..with(1.0)
        };
        assert!(resumptions(&[changed], &runs)[0].contains("kernel: a and b"));
    }
}
