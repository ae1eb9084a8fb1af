//! Operations of the devices for each that was asked for: as declared, and as seen (method, 1.5).

use serde_json::{Value, json};

use super::findings::{Finding, Table};
use super::record::{RunRecord, Summary};
use super::{Beside, Setting};
use crate::decision::{self, Rule};
use crate::identities::{amplification, amplification_differs, copies_of};
use crate::stats::describe::median;

/// A of a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Amplification {
    /// By the copies that were declared.
    declared: f64,
    /// Operations at the bottom of the stack for each that was asked for; the median of the setting's runs.
    operations: Option<f64>,
    /// The same in bytes.
    bytes: Option<f64>,
    /// w.
    write_share: f64,
}

impl Amplification {
    /// Of the runs of a setting.
    fn of(copies: f64, setting: &Setting, runs: &[&RunRecord]) -> Self {
        let write_share = setting.write_share();
        let seen = |of: fn(&Beside) -> Option<f64>| {
            let in_run = |run: &&RunRecord| {
                run.usable().and_then(|summary: &Summary| of(summary.beside.as_ref()?))
            };
            let values: Vec<f64> = runs.iter().filter_map(in_run).collect();
            (!values.is_empty()).then(|| median(&values))
        };
        Self {
            declared: amplification(write_share, copies),
            operations: seen(|beside| beside.amplification),
            bytes: seen(|beside| beside.bytes_amplification),
            write_share,
        }
    }

    /// What is to be said where both differ by more than 15 %. Bytes are believed first: devices split and merge
    /// operations, which makes no copy.
    fn remark(&self, operation: &str) -> Option<String> {
        let (seen, unit) = match (self.bytes, self.operations) {
            (Some(bytes), _) => (bytes, "bytes"),
            (None, Some(operations)) => (operations, "operations"),
            (None, None) => return None,
        };
        if !amplification_differs(self.declared, seen) {
            return None;
        }
        let why = match copies_of(seen, self.write_share) {
            _ if seen < self.declared => {
                "the copies are made where this machine does not see it, or --copies is too many"
                    .to_owned()
            }
            Some(copies) => {
                format!(
                    "--copies {copies:.0} would explain it, or other load, or a layer that writes more"
                )
            }
            None => "somebody else uses the devices, or a layer reads more than it is asked for"
                .to_owned(),
        };
        Some(format!(
            "For {operation} it is {seen:.2} {unit} and declared are {:.2}: {why}",
            self.declared
        ))
    }
}

/// The finding on these settings, each named, where the volume keeps `copies` of each datum; `None` where nobody saw
/// what the devices did.
pub(super) fn finding(
    subjects: &[(&str, &Setting)],
    copies: f64,
    runs: &[RunRecord],
) -> Option<Finding> {
    let mut lines = Vec::new();
    let (mut said, mut remarks, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let mut evidence: Vec<Value> = Vec::new();
    for (name, setting) in subjects {
        let own: Vec<&RunRecord> = runs.iter().filter(|run| run.setting == **setting).collect();
        let seen = Amplification::of(copies, setting, &own);
        let Some(most) = seen.bytes.or(seen.operations) else { continue };
        numbers.extend(own.iter().map(|run| run.run));
        said.push(format!("{most:.2} ({name})"));
        remarks.extend(seen.remark(name));
        lines.push(vec![
            json!(name),
            json!(seen.declared),
            json!(seen.operations),
            json!(seen.bytes),
            json!(own.len()),
        ]);
        for (unit, value) in [("operations", seen.operations), ("bytes", seen.bytes)] {
            evidence.push(json!({
                "name": format!("{unit} for {name}"),
                "value": value,
                "arithmetic": format!("{unit} of the devices at the bottom over those asked for; declared {:.3}", seen.declared),
            }));
        }
    }
    let value = lines.first()?[3].clone();
    let ending = match remarks.as_slice() {
        [] => ", as the declared copies say, within 15 %.".to_owned(),
        remarks => format!(". {}.", remarks.join(". ")),
    };
    let sentence = format!(
        "For each byte that is asked for the devices at the bottom of the stack move {}{ending}",
        said.join(", ")
    );
    let verdict = if remarks.is_empty() { "as-declared" } else { "differs" };
    let mut decision = decision::plain(Rule::Figure, "amplification", verdict, &sentence);
    decision.insert("value".to_owned(), value);
    decision.insert(
        "flags".to_owned(),
        if remarks.is_empty() { json!([]) } else { json!(["differs"]) },
    );
    decision.insert("evidence".to_owned(), evidence.into());
    decision.insert("parameters".to_owned(), json!({ "copies": copies, "limit": 0.15 }));
    decision.insert("notes".to_owned(), json!(remarks));
    let columns = ["of", "A declared", "A seen, operations", "A seen, bytes", "runs"];
    numbers.sort_unstable();
    numbers.dedup();
    Some(Finding {
        id: "amplification".to_owned(),
        title: "What the devices do for each I/O".to_owned(),
        sentence,
        step: "findings".to_owned(),
        decision,
        runs: numbers,
        table: Some(Table { columns: columns.map(str::to_owned).to_vec(), rows: lines }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(declared: f64, operations: Option<f64>, bytes: Option<f64>, w: f64, says: &[&str]) {
        let remark = Amplification { declared, operations, bytes, write_share: w }.remark("random");
        match says {
            [] => assert_eq!(remark, None),
            says => {
                let text = remark.expect("a remark");
                assert!(says.iter().all(|word| text.contains(word)), "{text}");
            }
        }
    }

    #[test]
    fn what_differs_by_more_than_15_percent_is_told() {
        check(1.3, Some(1.35), Some(1.31), 0.3, &[]);
        check(1.3, None, None, 0.3, &[]);
        // Split in two: no copy.
        check(1.0, Some(2.0), Some(1.0), 0.0, &[]);
        check(1.0, Some(1.3), Some(1.3), 0.3, &["1.30 bytes", "declared are 1.00", "--copies 2"]);
        check(1.0, Some(1.9), None, 0.3, &["1.90 operations", "--copies 4"]);
        check(1.3, Some(1.0), Some(1.0), 0.3, &["declared are 1.30", "does not see"]);
        check(1.0, Some(1.5), Some(1.5), 0.0, &["reads more"]);
        // 1.3 and 15 % more.
        check(1.3, None, Some(1.49), 0.3, &[]);
        check(1.3, None, Some(1.51), 0.3, &["1.51"]);
    }
}
