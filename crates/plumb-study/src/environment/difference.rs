//! What differs between two environments, and what follows (method, 6.5).

use jiff::Timestamp;
use serde_json::Value;

/// What a difference means for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Worth a reminder.
    Remind,
    /// The comparison goes on and says so.
    Label,
    /// Another piece of hardware, stack or file system: compared only on purpose.
    Hardware,
    /// Another workload: compared only on purpose.
    Parameters,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What it means.
    pub level: Level,
    /// What differs, with both values.
    pub text: String,
}

/// Facts that matter: group, member (the whole group if empty), what a difference means, words for it.
const FACTS: &[(&str, &str, Level, &str)] = &[
    ("target", "", Level::Parameters, "size of the target"),
    ("device", "", Level::Hardware, "device"),
    ("stack", "", Level::Hardware, "layers under the target"),
    ("fs", "", Level::Hardware, "file system"),
    ("cpu", "model", Level::Hardware, "processor"),
    ("cpu", "processors", Level::Label, "number of processors"),
    ("cpu", "smt", Level::Label, "simultaneous multithreading"),
    ("kernel", "release", Level::Label, "kernel"),
    ("kernel", "command_line", Level::Label, "kernel command line"),
    ("kernel", "mitigations", Level::Label, "mitigations"),
    ("power", "microcode", Level::Label, "microcode"),
    ("power", "governor", Level::Label, "governor"),
    ("power", "clock", Level::Label, "clock source"),
    ("queue", "", Level::Label, "queue settings"),
    ("memory", "bytes", Level::Label, "memory"),
    ("virt", "", Level::Label, "virtualisation"),
    ("tool", "version", Level::Label, "version of the tool"),
];

/// Days after which a baseline should be measured again.
const AGE_DAYS_MAX: i64 = 180;
/// Points of used capacity after which it should be.
const USED_POINTS_MAX: f64 = 10.0;
/// Points of a device's endurance, likewise.
const WORN_POINTS_MAX: f64 = 10.0;

/// What differs between the environments of a baseline and of a candidate, in the order of importance.
/// What either does not know does not differ.
#[must_use]
pub fn differences(a: &Value, b: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    for (group, member, level, words) in FACTS {
        let fact = |environment: &Value| {
            let group = &environment["groups"][*group];
            if member.is_empty() { group.clone() } else { group[*member].clone() }
        };
        let (x, y) = (fact(a), fact(b));
        if let Some(place) = differ(&x, &y) {
            let text = format!("{words}: {place}");
            found.push(Difference { level: *level, text });
        }
    }
    found.extend(reminders(a, b).into_iter().map(|text| Difference { level: Level::Remind, text }));
    found.sort_by_key(|difference| std::cmp::Reverse(difference.level));
    found
}

/// The first place where both know something else, with both values.
fn differ(a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Object(x), Value::Object(y)) => x
            .iter()
            .find_map(|(key, x)| differ(x, y.get(key)?).map(|inner| format!("{key} {inner}"))),
        (Value::Array(x), Value::Array(y)) if x.len() != y.len() => {
            Some(format!("{} and {} of them", x.len(), y.len()))
        }
        (Value::Array(x), Value::Array(y)) => x.iter().zip(y).find_map(|(x, y)| differ(x, y)),
        _ if a == b => None,
        _ => Some(format!("{} and {}", plain(a), plain(b))),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn reminders(a: &Value, b: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let at = |environment: &Value| environment["recorded_at"].as_str()?.parse::<Timestamp>().ok();
    if let Some((x, y)) = at(a).zip(at(b)) {
        let days = y.duration_since(x).as_secs() / 86_400;
        if days > AGE_DAYS_MAX {
            found.push(format!("the baseline is {days} days older: measure it again"));
        }
    }
    let used = |environment: &Value| {
        let free = environment["volatile"]["free_bytes"][0].as_f64()?;
        let size: f64 = environment["groups"]["device"]
            .as_array()?
            .iter()
            .filter_map(|device| device["size_bytes"].as_f64())
            .sum();
        (size > 0.0).then(|| (1.0 - free / size) * 100.0)
    };
    if let Some((x, y)) = used(a).zip(used(b)).filter(|(x, y)| y - x >= USED_POINTS_MAX) {
        found
            .push(format!("{:.0} points more of the capacity are in use: measure it again", y - x));
    }
    let worn = |environment: &Value| environment["volatile"]["wear_percent"][0].as_f64();
    if let Some((x, y)) = worn(a).zip(worn(b)).filter(|(x, y)| y - x >= WORN_POINTS_MAX) {
        found.push(format!(
            "{:.0} points more of the device's endurance are used: measure it again",
            y - x
        ));
    }
    found
}
