//! What users bring: objects with runs, series or histories, each judged to a decision.

mod strict;

use serde_json::{Map, Value};

use crate::compare::{self, Metric, SteadyRun};
use crate::decision::{self, Subject};
use crate::history::STEP_LEAST;
use strict::Strict;
pub use strict::Twice;

/// Why an object cannot be judged.
#[derive(Debug, Clone, PartialEq, thiserror::Error, miette::Diagnostic)]
pub enum SampleError {
    /// Not even an object.
    #[error("{found} is no object")]
    #[diagnostic(
        code(plumb::samples::object),
        help("write one JSON object, or one per line: {{\"id\": …, \"metric\": …, …}}")
    )]
    NoObject {
        /// What it is.
        found: String,
    },
    /// No JSON.
    #[error("this is no JSON: {what}")]
    #[diagnostic(
        code(plumb::samples::json),
        help("write one JSON object for the whole file, or one on each line")
    )]
    NoJson {
        /// What the reader says.
        what: String,
    },
    /// A key that is needed is missing.
    #[error("there is no `{key}`")]
    #[diagnostic(code(plumb::samples::key))]
    Missing {
        /// Its name.
        key: String,
        /// What it would be.
        #[help]
        remedy: String,
    },
    /// A key with the wrong kind of value.
    #[error("`{key}` is {found}, not {wanted}")]
    #[diagnostic(
        code(plumb::samples::value),
        help("values are positive numbers: I/Os per second, milliseconds, shares")
    )]
    Wrong {
        /// Its name, with the place inside it.
        key: String,
        /// What it is.
        found: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// A key that an object has twice.
    #[error("`{}` is there twice, as {} and as {}", twice.key, shortened(&twice.values.0), shortened(&twice.values.1))]
    #[diagnostic(code(plumb::samples::twice), help("leave one of the two out"))]
    Twice {
        /// Which.
        twice: Box<Twice>,
        /// The `id` of the object, as far as it has one.
        id: Option<Value>,
    },
    /// Two runs at one place in time.
    #[error("`runs_in_order[{first}]` and `runs_in_order[{second}]` both have the order {order}")]
    #[diagnostic(
        code(plumb::samples::order),
        help(
            "no two runs ran at once: number them 1, 2, 3, … in the order in which they ran, or leave `order` out of all of them where the list is in that order"
        )
    )]
    SameOrder {
        /// Index of the first.
        first: usize,
        /// Index of the second.
        second: usize,
        /// What both have.
        order: f64,
    },
    /// Too little to say anything.
    #[error("{what}")]
    #[diagnostic(code(plumb::samples::few))]
    TooFew {
        /// Of what.
        what: String,
        /// How many it would take.
        #[help]
        remedy: &'static str,
    },
}

impl SampleError {
    /// The `id` of the object, where it is known of one that could not be read.
    #[must_use]
    pub fn id(&self) -> Option<&Value> {
        match self {
            Self::Twice { id, .. } => id.as_ref(),
            _ => None,
        }
    }
}

/// Too few for a comparison.
fn few_runs(what: String) -> SampleError {
    let remedy = "give at least one run of each side, or four interleaved ones of both arms";
    SampleError::TooFew { what, remedy }
}

fn missing(key: &str, remedy: &str) -> SampleError {
    SampleError::Missing { key: key.to_owned(), remedy: remedy.to_owned() }
}

fn wrong(key: String, found: &Value, wanted: &'static str) -> SampleError {
    SampleError::Wrong { key, found: shortened(found), wanted }
}

/// A value that fits into a line.
fn shortened(found: &Value) -> String {
    let mut found = found.to_string();
    if let Some((end, _)) = found.char_indices().nth(40) {
        found.truncate(end);
        found.push('…');
    }
    found
}

/// Judges a comparison: an object with `baseline_runs` and `candidate_runs`, `baseline_series` and
/// `candidate_series`, or `runs_in_order`.
///
/// # Errors
/// The object has not this shape, or too little in it.
pub fn compare(sample: &Value) -> Result<Map<String, Value>, SampleError> {
    let sample = object(sample)?;
    let metric = metric(sample)?;
    let (estimate, mut subject) = if let Some(runs) = present(sample, "runs_in_order") {
        in_order(runs, sample)?
    } else if present(sample, "baseline_series").is_some()
        || present(sample, "candidate_series").is_some()
    {
        by_series(sample)?
    } else {
        by_runs(sample)?
    };
    subject.remarks.extend(ignored(sample));
    let found = compare::judge(estimate, &metric);
    Ok(decision::of_comparison(&found, &metric, &subject))
}

/// What is said of keys that are there beside the ones that were judged.
fn ignored(sample: &Map<String, Value>) -> Option<String> {
    const FORMS: [&[&str]; 3] = [
        &["runs_in_order"],
        &["baseline_series", "candidate_series"],
        &["baseline_runs", "candidate_runs"],
    ];
    let is_there = |form: &&[&str]| form.iter().any(|key| present(sample, key).is_some());
    let mut forms = FORMS.iter().copied().filter(|form| is_there(form));
    let judged = forms.next()?;
    let others: Vec<String> = forms.flatten().map(|key| format!("`{key}`")).collect();
    (!others.is_empty()).then(|| {
        format!(
            "{} are there too and were not looked at: `{}` was judged",
            others.join(" and "),
            judged.join("` and `")
        )
    })
}

/// Judges a history: an object with `values`, oldest first.
///
/// # Errors
/// The object has not this shape, or fewer than two values.
pub fn history(sample: &Value) -> Result<Map<String, Value>, SampleError> {
    let sample = object(sample)?;
    let metric = metric(sample)?;
    let values = present(sample, "values").ok_or_else(|| {
        missing("values", "give the results in order of time: {\"values\": [101.2, 100.9, …]}")
    })?;
    let values = numbers(values, "values")?;
    // Where the sample names a δ, no smaller step is a change, and each larger one may be; otherwise the method's 2 %.
    let step_least = match present(sample, "delta") {
        Some(_) => metric.delta,
        None => STEP_LEAST,
    };
    decision::of_history(&values, &metric, step_least).ok_or_else(|| SampleError::TooFew {
        what: format!("`values` has {} of them: a history needs two or more", values.len()),
        remedy: "give the results of at least two runs in order of time; from eight on levels are told apart",
    })
}

fn object(sample: &Value) -> Result<&Map<String, Value>, SampleError> {
    sample.as_object().ok_or_else(|| {
        let kind = match sample {
            Value::Array(_) => "a list",
            Value::String(_) => "a string",
            Value::Number(_) => "a number",
            _ => "this",
        };
        SampleError::NoObject { found: kind.to_owned() }
    })
}

/// A key that is there and not null.
fn present<'a>(sample: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    sample.get(key).filter(|value| !value.is_null())
}

/// Name, direction and δ.
fn metric(sample: &Map<String, Value>) -> Result<Metric, SampleError> {
    let name = match present(sample, "metric") {
        None => "",
        Some(Value::String(name)) => name,
        Some(other) => return Err(wrong("metric".to_owned(), other, "a name")),
    };
    let higher_is_better = match present(sample, "higher_is_better") {
        Some(Value::Bool(higher)) => *higher,
        Some(other) => {
            return Err(wrong("higher_is_better".to_owned(), other, "true or false"));
        }
        None => direction(name).ok_or_else(|| {
            missing("higher_is_better", "say true for a throughput, false for a latency")
        })?,
    };
    let mut metric = Metric::named(name, higher_is_better);
    if let Some(delta) = present(sample, "delta") {
        metric.delta = delta
            .as_f64()
            .filter(|delta| *delta > 0.0 && *delta < 1.0)
            .ok_or_else(|| wrong("delta".to_owned(), delta, "a share between 0 and 1"))?;
    }
    Ok(metric)
}

/// Whether more is better, where the name says it.
fn direction(name: &str) -> Option<bool> {
    let name = name.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["iops", "mib", "mb_per_s", "throughput", "bandwidth"]) {
        Some(true)
    } else if has(&["lat", "_ms", "_us", "_ns", "p50", "p9", "cpu", "nines"]) {
        Some(false)
    } else {
        None
    }
}

fn number(value: &Value, key: &dyn Fn() -> String) -> Result<f64, SampleError> {
    value
        .as_f64()
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| wrong(key(), value, "a positive number"))
}

/// A series: an interval in which nothing completed is a 0 like any other, a run without any completion is none.
fn series_of(value: &Value, key: &str) -> Result<Vec<f64>, SampleError> {
    let list = value.as_array().ok_or_else(|| wrong(key.to_owned(), value, "a list of numbers"))?;
    let of = |(index, value): (usize, &Value)| {
        let number = value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| wrong(format!("{key}[{index}]"), value, "a number from 0"))
    };
    let series: Vec<f64> = list.iter().enumerate().map(of).collect::<Result<_, _>>()?;
    if !series.is_empty() && series.iter().all(|value| *value == 0.0) {
        let nothing = Value::from("0 in every interval");
        return Err(wrong(key.to_owned(), &nothing, "a series in which something completed"));
    }
    Ok(series)
}

fn numbers(value: &Value, key: &str) -> Result<Vec<f64>, SampleError> {
    let list = value.as_array().ok_or_else(|| wrong(key.to_owned(), value, "a list of numbers"))?;
    list.iter()
        .enumerate()
        .map(|(index, value)| number(value, &|| format!("{key}[{index}]")))
        .collect()
}

type Estimated = (compare::Estimate, Subject);

fn by_runs(sample: &Map<String, Value>) -> Result<Estimated, SampleError> {
    let runs = |key: &str| {
        let remedy = "give runs (\"baseline_runs\": […], \"candidate_runs\": […]), series \
                      (\"baseline_series\" …) or \"runs_in_order\"";
        let list = present(sample, key).ok_or_else(|| missing(key, remedy))?;
        // A single run may be given as a number.
        match list {
            Value::Number(_) => Ok(vec![number(list, &|| key.to_owned())?]),
            list => numbers(list, key),
        }
    };
    let (baseline, candidate) = (runs("baseline_runs")?, runs("candidate_runs")?);
    let estimate = compare::of_runs(&baseline, &candidate).ok_or_else(|| {
        let (baseline, candidate) = (baseline.len(), candidate.len());
        few_runs(format!("{baseline} baseline runs and {candidate} candidate runs"))
    })?;
    Ok((estimate, Subject { baseline, candidate, remarks: Vec::new() }))
}

fn by_series(sample: &Map<String, Value>) -> Result<Estimated, SampleError> {
    let interval_s = match present(sample, "interval_s") {
        None => 1.0,
        Some(value) => number(value, &|| "interval_s".to_owned())?,
    };
    let is_iops = sample["metric"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("iops"));
    let read = if is_iops { SteadyRun::of_iops } else { SteadyRun::of };
    let mut remarks = Vec::new();
    if present(sample, "interval_s").is_none() {
        remarks.push("no `interval_s` is given: a value per second is taken".to_owned());
    }
    let mut side = |key: &str| -> Result<Vec<SteadyRun>, SampleError> {
        let remedy = "give a list of runs, each a list with a value per interval";
        let list = present(sample, key).ok_or_else(|| missing(key, remedy))?;
        let runs = list.as_array().ok_or_else(|| wrong(key.to_owned(), list, "a list of runs"))?;
        let series: Vec<Vec<f64>> = if runs.first().is_some_and(Value::is_number) {
            vec![series_of(list, key)?]
        } else {
            let place = |index: usize| format!("{key}[{index}]");
            runs.iter()
                .enumerate()
                .map(|(i, run)| series_of(run, &place(i)))
                .collect::<Result<_, _>>()?
        };
        let steady: Option<Vec<SteadyRun>> =
            series.iter().map(|run| read(run, interval_s)).collect();
        let steady = steady
            .filter(|runs| !runs.is_empty())
            .ok_or_else(|| few_runs(format!("`{key}` has a run without intervals")))?;
        let dropped: Vec<String> = steady.iter().map(|run| run.dropped.to_string()).collect();
        remarks.push(format!("{key}: intervals left out as warm-up: {}", dropped.join(", ")));
        Ok(steady)
    };
    let (baseline, candidate) = (side("baseline_series")?, side("candidate_series")?);
    let estimate = compare::of_series(&baseline, &candidate)
        .ok_or_else(|| few_runs("the series have no runs to compare".to_owned()))?;
    let means = |runs: &[SteadyRun]| runs.iter().map(|run| run.mean).collect();
    let subject = Subject { baseline: means(&baseline), candidate: means(&candidate), remarks };
    Ok((estimate, subject))
}

fn in_order(runs: &Value, sample: &Map<String, Value>) -> Result<Estimated, SampleError> {
    let list =
        runs.as_array().ok_or_else(|| wrong("runs_in_order".to_owned(), runs, "a list of runs"))?;
    let mut read: Vec<(f64, String, f64)> = Vec::new();
    let has_order = |run: &Value| run.get("order").is_some_and(|order| !order.is_null());
    let are_numbered = list.iter().any(has_order);
    for (index, run) in list.iter().enumerate() {
        let place = |key: &str| format!("runs_in_order[{index}].{key}");
        let run = run
            .as_object()
            .ok_or_else(|| wrong(format!("runs_in_order[{index}]"), run, "an object"))?;
        let needed = |key: &str| {
            present(run, key)
                .ok_or_else(|| missing(&place(key), "each run has an order, an arm and a value"))
        };
        let order = match present(run, "order") {
            None if are_numbered => {
                let remedy = "give an order to each run, or to none where the list is in order";
                return Err(missing(&place("order"), remedy));
            }
            None => index as f64,
            Some(order) => {
                order.as_f64().ok_or_else(|| wrong(place("order"), order, "a number"))?
            }
        };
        let arm = match needed("arm")? {
            Value::String(arm) => arm.clone(),
            other => other.to_string(),
        };
        read.push((order, arm, number(needed("value")?, &|| place("value"))?));
    }
    refuse_same_order(&read)?;
    read.sort_by(|a, b| a.0.total_cmp(&b.0));
    let baseline = baseline_arm(&read, sample)?;
    let runs: Vec<(f64, bool, f64)> =
        read.iter().map(|(order, arm, value)| (*order, *arm != baseline, *value)).collect();
    let values = |candidate: bool| -> Vec<f64> {
        runs.iter().filter(|run| run.1 == candidate).map(|run| run.2).collect()
    };
    let subject = Subject {
        baseline: values(false),
        candidate: values(true),
        remarks: vec![format!("baseline is the arm `{baseline}`")],
    };
    let estimate = compare::interleaved(&runs)
        // Too few for a line over time.
        .or_else(|| compare::of_runs(&subject.baseline, &subject.candidate))
        .ok_or_else(|| few_runs(format!("`runs_in_order` has {} runs", runs.len())))?;
    Ok((estimate, subject))
}

/// Two runs with one order would be in that of the list, which nobody said.
fn refuse_same_order(runs: &[(f64, String, f64)]) -> Result<(), SampleError> {
    let mut places: Vec<(f64, usize)> = runs.iter().map(|run| run.0).zip(0..).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    for pair in places.windows(2) {
        if let [(order, first), (other, second)] = *pair
            && order == other
        {
            return Err(SampleError::SameOrder { first, second, order });
        }
    }
    Ok(())
}

/// Names that a baseline goes by, the first that occurs.
const BASELINE_NAMES: &[&str] =
    &["baseline", "base", "before", "old", "control", "reference", "a", "0", "false"];
/// Names that a candidate goes by: the other arm is the baseline.
const CANDIDATE_NAMES: &[&str] =
    &["candidate", "cand", "after", "new", "treatment", "test", "b", "1", "true"];

/// Which of two arms is the baseline: by name, else the one that ran first.
fn baseline_arm(
    runs: &[(f64, String, f64)],
    sample: &Map<String, Value>,
) -> Result<String, SampleError> {
    let mut arms: Vec<&str> = Vec::new();
    for (_, arm, _) in runs {
        if !arms.contains(&arm.as_str()) {
            arms.push(arm);
        }
    }
    let [first, second] = arms.as_slice() else {
        let (count, names) = (arms.len(), arms.join(", "));
        return Err(few_runs(format!("`runs_in_order` has {count} arms ({names}), not two")));
    };
    if let Some(Value::String(named)) = present(sample, "baseline_arm") {
        if arms.contains(&named.as_str()) {
            return Ok(named.clone());
        }
        let value = Value::String(named.clone());
        return Err(wrong("baseline_arm".to_owned(), &value, "one of the arms"));
    }
    let rank = |arm: &str| {
        let name = arm.to_lowercase();
        BASELINE_NAMES.iter().position(|known| *known == name).map(|place| (0, place)).or_else(
            || {
                let is_other = CANDIDATE_NAMES.contains(&name.as_str());
                is_other.then_some((2, 0))
            },
        )
    };
    let (a, b) = (rank(first).unwrap_or((1, 0)), rank(second).unwrap_or((1, 1)));
    Ok((if b < a { second } else { first }).to_string())
}

/// Where in a text an object stands, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// On this line.
    Line(usize),
    /// In a list, as this one of its items.
    Item(usize),
}

/// What the reader of JSON says, without the line that it counts from the wrong place.
fn reader_says(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("{what}, column {}", error.column())
}

/// An object of which no key has two values.
fn unambiguous(Strict { value, twice }: Strict) -> Result<Value, SampleError> {
    match twice {
        None => Ok(value),
        Some(twice) => {
            let id = value.get("id").filter(|id| !id.is_null() && twice.key != "id").cloned();
            Err(SampleError::Twice { twice: Box::new(twice), id })
        }
    }
}

/// The objects of a text: one document, a list of them, or one per line; each with its place.
pub fn split(text: &str) -> Vec<(Spot, Result<Value, SampleError>)> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        let error = SampleError::TooFew {
            what: "there is no object in it".to_owned(),
            remedy: "write one JSON object, or one on each line",
        };
        return vec![(Spot::Line(1), Err(error))];
    }
    // A list of objects is as clear as a line for each; what in it is none is told in its place.
    if let Ok(items) = serde_json::from_str::<Vec<Strict>>(text)
        && items.iter().any(|item| item.value.is_object())
    {
        return (1..).map(Spot::Item).zip(items.into_iter().map(unambiguous)).collect();
    }
    match serde_json::from_str::<Strict>(text) {
        Ok(object) => vec![(Spot::Line(1), unambiguous(object))],
        Err(whole) => {
            let is_line = |line: &str| serde_json::from_str::<Value>(line).is_ok();
            let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
            if lines.clone().count() < 2 || !lines.any(|(_, line)| is_line(line)) {
                let error = SampleError::NoJson { what: reader_says(&whole) };
                return vec![(Spot::Line(whole.line()), Err(error))];
            }
            (1..)
                .zip(text.lines())
                .filter(|(_, line)| !line.trim().is_empty())
                .map(|(number, line)| {
                    let value = serde_json::from_str(line)
                        .map_err(|source| SampleError::NoJson { what: reader_says(&source) });
                    (Spot::Line(number), value.and_then(unambiguous))
                })
                .collect()
        }
    }
}

/// Judges any bytes as samples and asserts what always holds.
///
/// # Panics
/// When it does not.
#[doc(hidden)]
pub fn fuzz_samples(bytes: &[u8]) {
    const VERDICTS: [&str; 4] = ["better", "worse", "same", "unclear"];
    let text = String::from_utf8_lossy(bytes);
    for (_, object) in split(&text) {
        let Ok(object) = object else { continue };
        for decision in [compare(&object), history(&object)] {
            let decision = match decision {
                Ok(decision) => decision,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    continue;
                }
            };
            let verdict = decision["verdict"].as_str().expect("a word").to_owned();
            assert!(VERDICTS.contains(&verdict.as_str()), "{verdict}");
            let explained = crate::explain::explain(&Value::Object(decision));
            assert!(explained.is_ok_and(|text| text.contains(&verdict)));
        }
    }
}

#[cfg(test)]
mod tests;
