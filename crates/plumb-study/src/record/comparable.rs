//! What must not be compared, and what is said when it is all the same (method, 6.5).

use serde_json::Value;

use super::Record;
use crate::environment::{self, Level};

/// A difference in spite of which results are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// Another workload, engine or size of the target.
    Parameters,
    /// Another device, stack, file system or processor.
    Hardware,
    /// I/Os that failed.
    Errors,
}

/// Under what circumstances two results came about, the more they differ the later in this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Circumstances {
    /// The same parameters, and nothing of the machines that is known differs.
    Same,
    /// A result does not say what was run, or on what.
    Unknown,
    /// Of two studies: whatever else is the same, time has passed between them.
    Later,
    /// Something differs.
    Different,
}

/// Two results that must not be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum Incomparable {
    /// Different measuring methods.
    #[error("the results were measured in different ways: {a} and {b}")]
    #[diagnostic(
        code(plumb::compare::epoch),
        help("measure the baseline again with the tool of the candidate")
    )]
    Epoch {
        /// Of the baseline.
        a: String,
        /// Of the candidate.
        b: String,
    },
    /// Different workloads.
    #[error("the workloads differ: {}", differences.join("; "))]
    #[diagnostic(
        code(plumb::compare::parameters),
        help(
            "run both with the same parameters, or say --allow parameters to compare them anyway"
        )
    )]
    Parameters {
        /// What differs.
        differences: Vec<String>,
    },
    /// Different engines.
    #[error("the results were made by different engines: {a} and {b}")]
    #[diagnostic(
        code(plumb::compare::engine),
        help("run both with the same --engine, or say --allow parameters to compare them anyway")
    )]
    Engine {
        /// Of the baseline.
        a: String,
        /// Of the candidate.
        b: String,
    },
    /// I/O was handed in, looked at or timed in different ways (spec 15.14).
    #[error("the results were measured in different modes: {}", differences.join("; "))]
    #[diagnostic(
        code(plumb::compare::mode),
        help(
            "measure again with the same options (--batch, -u, -oc, -L, -D, --rate, --sqpoll, --poll, --truth), \
             or say --allow parameters to compare them anyway"
        )
    )]
    Mode {
        /// What differs.
        differences: Vec<String>,
    },
    /// Different hardware, layers or file systems.
    #[error("the results are of different machines: {}", differences.join("; "))]
    #[diagnostic(
        code(plumb::compare::hardware),
        help(
            "measure the baseline again on what there is now, or say --allow hardware if that change is \
             what you want to judge"
        )
    )]
    Hardware {
        /// What differs.
        differences: Vec<String>,
    },
    /// Figures that contradict each other (1.3).
    #[error("{of} contradicts itself: {what}")]
    #[diagnostic(
        code(plumb::compare::contradiction),
        help("it must not be judged by: measure it again")
    )]
    Contradiction {
        /// Which result.
        of: String,
        /// What of it.
        what: String,
    },
    /// Nothing but the tool was measured.
    #[error("{of} touched no target (engine null or nop): it measures the tool, and no storage")]
    #[diagnostic(
        code(plumb::compare::no_target),
        help("measure with an engine that reaches the target: leave out --engine")
    )]
    NoTarget {
        /// Which result.
        of: String,
    },
    /// I/Os failed.
    #[error("{of} has {errors} I/Os that failed, and no figure counts them")]
    #[diagnostic(
        code(plumb::compare::errors),
        help(
            "find out why they failed and measure it again, or say --allow errors to compare it anyway"
        )
    )]
    Errors {
        /// Which result.
        of: String,
        /// How many.
        errors: u64,
    },
    /// Different numbers of time spans.
    #[error("the results have different numbers of time spans: {a} and {b}")]
    #[diagnostic(code(plumb::compare::spans), help("compare results of the same profile"))]
    Spans {
        /// Of the first baseline.
        a: usize,
        /// Of the other.
        b: usize,
    },
}

/// Refuses what must not be compared; what is to be said with every decision is added to `remarks`. Returns how far
/// the circumstances are the same.
pub(super) fn comparable(
    a: &Record,
    b: &Record,
    allowed: &[Allowance],
    remarks: &mut Vec<String>,
) -> Result<Circumstances, Incomparable> {
    let mut circumstances = Circumstances::Same;
    match (&a.epoch, &b.epoch) {
        (Some(a), Some(b)) if a != b => {
            return Err(Incomparable::Epoch { a: a.clone(), b: b.clone() });
        }
        (Some(_), Some(_)) => {}
        _ => add_once(
            remarks,
            "a result does not say by which measurement epoch it was made".to_owned(),
        ),
    }
    let may = |allowance| allowed.contains(&allowance);
    if let (Some(x), Some(y)) = (&a.engine, &b.engine)
        && x != y
    {
        if !may(Allowance::Parameters) {
            return Err(Incomparable::Engine { a: x.clone(), b: y.clone() });
        }
        add_once(remarks, format!("different engines: {x} and {y}"));
        circumstances = Circumstances::Different;
    }
    let found = environment::differences(&a.environment, &b.environment);
    let at = |level| -> Vec<String> {
        found.iter().filter(|f| f.level == level).map(|f| f.text.clone()).collect()
    };
    let mut differences = Vec::new();
    let are_sized = knows_sizes(&a.environment) && knows_sizes(&b.environment);
    if let (Some(a), Some(b)) = (&a.profile, &b.profile) {
        differ("", a, b, are_sized, &mut differences);
    } else {
        add_once(remarks, "a result does not say what was run".to_owned());
        circumstances = circumstances.max(Circumstances::Unknown);
    }
    if a.environment.is_null() || b.environment.is_null() {
        circumstances = circumstances.max(Circumstances::Unknown);
    }
    if found.iter().any(|found| found.level != Level::Remind) {
        circumstances = Circumstances::Different;
    }
    differences.extend(at(Level::Parameters));
    if !differences.is_empty() {
        if !may(Allowance::Parameters) {
            return Err(Incomparable::Parameters { differences });
        }
        add_once(remarks, format!("different workloads: {}", differences.join("; ")));
        circumstances = Circumstances::Different;
    }
    let mut modes: Vec<String> =
        a.modes.iter().zip(&b.modes).flat_map(|(a, b)| a.differences(b)).collect();
    modes.dedup();
    if !modes.is_empty() {
        if !may(Allowance::Parameters) {
            return Err(Incomparable::Mode { differences: modes });
        }
        add_once(remarks, format!("different modes: {}", modes.join("; ")));
        circumstances = Circumstances::Different;
    }
    let is_told = |record: &Record| record.modes.iter().any(|mode| !mode.is_unknown());
    if !is_told(a) || !is_told(b) {
        let remark = "a result does not say in which mode it was measured (batch, looks, arrivals)";
        add_once(remarks, remark.to_owned());
    }
    let hardware = at(Level::Hardware);
    if !hardware.is_empty() {
        if !may(Allowance::Hardware) {
            return Err(Incomparable::Hardware { differences: hardware });
        }
        add_once(remarks, format!("hardware change: {}", hardware.join("; ")));
    }
    for label in at(Level::Label) {
        add_once(remarks, format!("environment differs: {label}"));
    }
    for reminder in at(Level::Remind) {
        add_once(remarks, reminder);
    }
    if a.spans.len() != b.spans.len() {
        return Err(Incomparable::Spans { a: a.spans.len(), b: b.spans.len() });
    }
    Ok(circumstances)
}

pub(crate) fn add_once(remarks: &mut Vec<String>, remark: String) {
    if !remarks.contains(&remark) {
        remarks.push(remark);
    }
}

/// Keys that do not make another workload: how it is told, and what is to vary between repetitions.
const FREE_KEYS: &[&str] = &[
    "ETW",
    "Path",
    "ProfileOnly",
    "Progress",
    "RandSeed",
    "ResultFormat",
    "Synchronization",
    "Verbose",
    "VerboseStats",
];

/// Whether an environment says how large each target was: then it matters no more whether a file was asked for with a size
/// or taken as it was.
fn knows_sizes(environment: &Value) -> bool {
    let targets = environment["groups"]["target"].as_array();
    targets.is_some_and(|all| !all.is_empty() && all.iter().all(|of| of["size_bytes"].is_u64()))
}

/// A value in words.
fn told(value: &Value) -> String {
    if value.is_null() { "not given".to_owned() } else { value.to_string() }
}

/// What differs between two profiles; of files whose sizes are known otherwise (`are_sized`) it may be given once alone.
fn differ(place: &str, a: &Value, b: &Value, are_sized: bool, found: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys.into_iter().filter(|key| !FREE_KEYS.contains(&key.as_str())) {
                let inside = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
                let null = Value::Null;
                let [a, b] = [a, b].map(|side| side.get(key).unwrap_or(&null));
                differ(&inside, a, b, are_sized, found);
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            for (index, (x, y)) in x.iter().zip(y).enumerate() {
                differ(&format!("{place}[{index}]"), x, y, are_sized, found);
            }
        }
        _ if a == b => {}
        // Text reports round sizes.
        (Value::Number(x), Value::Number(y))
            if place.ends_with("FileSize")
                && (x.as_f64().unwrap_or(0.0) / y.as_f64().unwrap_or(1.0) - 1.0).abs() < 0.005 => {}
        (Value::Number(_), Value::Null) | (Value::Null, Value::Number(_))
            if place.ends_with("FileSize") =>
        {
            if !are_sized {
                found.push(format!(
                    "{place} is {} and {}: a file as it was may have any size; run both with the same -c, or both without",
                    told(a),
                    told(b)
                ));
            }
        }
        _ => found.push(format!("{place} is {} and {}", told(a), told(b))),
    }
}
