//! Long options: `--name`, `--name=value`, `--name value` (spec 3.10, D-24).

use super::error::{CommandLineError, Place, visible};
use super::line::Given;
use super::table::{Id, OPTIONS, OptionRow, Shape, Value};
use super::values::Fault;
use crate::profile::error::ErrorClass;

/// A long option of a wrong shape.
pub(super) struct Misshapen {
    pub(super) error: Box<CommandLineError>,
    /// How many tokens after its own belong to it.
    pub(super) swallowed: usize,
}

/// The option that token `index`, with a sign of `sign` bytes, is.
pub(super) fn read(line: &[String], index: usize, sign: usize) -> Result<Given<'_>, Misshapen> {
    let token = &line[index];
    let rest = &token[sign..];
    let (name, joined) = match rest.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (rest, None),
    };
    let Some(row) = OptionRow::by_long_name(name) else {
        let place = Place { token: index, span: sign..sign + name.len(), option: index };
        let error = Box::new(unknown(name).at(&place, line));
        return Err(Misshapen { error, swallowed: 0 });
    };
    let (value, value_at) = match (joined, row.value) {
        (Some(value), _) => (value, Some((index, token.len() - value.len()))),
        (None, Value::Required(_)) => match line.get(index + 1) {
            Some(value) => (value.as_str(), Some((index + 1, 0))),
            None => ("", None),
        },
        (None, _) => ("", None),
    };
    let swallowed = value_at.map_or(0, |(token, _)| token - index);
    let given = Given::new(line, index, (row.id, format!("--{name}")), value, value_at);
    if let Err(fault) = check(row, &given, joined, value_at.is_some()) {
        return Err(Misshapen { error: Box::new(given.error(&fault)), swallowed });
    }
    Ok(match (row.shape, value) {
        (Shape::Fixed(value), _) => given.reworded(value),
        (Shape::Words(_), "partial") if row.id == Id::Cache => given.reworded("y"),
        (Shape::Words(_), _) if row.id == Id::Cache => given.reworded("Y"),
        _ => given,
    })
}

/// Whether the option has a value if it needs one, and one that selects no other option.
fn check(
    row: &OptionRow,
    given: &Given<'_>,
    joined: Option<&str>,
    has_value: bool,
) -> Result<(), Fault> {
    let class = ErrorClass::LongOption;
    let needs = match row.value {
        Value::None if has_value => {
            let help = format!("leave ={} out", visible(given.value));
            return Err(Fault::value(" takes no value", help).of(class));
        }
        Value::None => return Ok(()),
        Value::Required(value) => {
            if !has_value {
                let help = format!("write {{}}{value}, or {value} as the next token");
                return Err(Fault::option(" needs a value", help).of(class));
            }
            value
        }
        Value::Optional(value) => value,
    };
    if has_value && given.value.is_empty() {
        let help = match row.value {
            Value::Optional(_) => format!("write {{}}{needs}, or leave the = out as well"),
            _ => format!("write {{}}{needs}"),
        };
        return Err(Fault::value(": the value is empty", help).of(class));
    }
    if joined.is_none() && !has_value {
        return Ok(());
    }
    shape(row, given.value, needs)
}

/// Whether a value may be one of this long name.
fn shape(row: &OptionRow, value: &str, needs: &str) -> Result<(), Fault> {
    let first = value.chars().next().unwrap_or_default();
    let (fits, must) = match row.shape {
        Shape::Any | Shape::Fixed(_) => return Ok(()),
        Shape::Digit => (first.is_ascii_digit(), ", which starts with a digit".to_owned()),
        Shape::NotDigit => {
            (!first.is_ascii_digit(), ", which does not start with a digit".to_owned())
        }
        Shape::Not(letters) => {
            (!letters.contains(first), format!(", which does not start with {first}"))
        }
        Shape::Affinity => (
            first.is_ascii_digit() || (first == 'g' && value.len() > 1),
            ", which starts with a digit, or with g and a group".to_owned(),
        ),
        Shape::Words(words) => (words.contains(&value), String::new()),
    };
    if fits {
        return Ok(());
    }
    let what = format!(": '{}' is no value of it{must}", visible(value));
    let help = match row.shape {
        Shape::Words(words) => format!("write {{}} and one of {}", words.join(", ")),
        _ => other_option(row, value).unwrap_or_else(|| format!("write {{}}{needs}")),
    };
    Err(Fault::value(what, help).of(row.class))
}

/// The option that the short form would have selected with this value.
fn other_option(row: &OptionRow, value: &str) -> Option<String> {
    let short = row.short.split(',').next().filter(|short| short.len() == 2)?;
    let token = format!("{short}{value}");
    let line = [token];
    let given = super::short::read(&line, 0, 1);
    let exact = OPTIONS.iter().find(|other| other.short == line[0]);
    let other = exact.or_else(|| given.id.row()).filter(|other| other.id != row.id)?;
    Some(format!("{} is an option of its own: {}", visible(&line[0]), other.long_form()))
}

fn unknown(name: &str) -> CommandLineError {
    let message = format!("unknown option --{}", visible(name));
    let help = match suggestion(name) {
        Some(name) => format!("did you mean --{name}?"),
        None => "--help lists all options".to_owned(),
    };
    CommandLineError::new(ErrorClass::UnknownOption, message, help)
}

/// Names that other tools use for the same thing.
const ELSEWHERE: [(&str, &str); 12] = [
    ("bs", "block-size"),
    ("buffered", "cached"),
    ("direct", "unbuffered"),
    ("file-size", "create"),
    ("filesize", "create"),
    ("iodepth", "outstanding"),
    ("numjobs", "threads"),
    ("queue-depth", "outstanding"),
    ("rate-iops", "throughput"),
    ("ramp-time", "warmup"),
    ("runtime", "duration"),
    ("size", "create"),
];

/// The long name that was probably meant.
fn suggestion(name: &str) -> Option<&'static str> {
    let plain = name.to_lowercase().replace('_', "-");
    let names = || OPTIONS.iter().map(|row| row.long);
    if let Some(same) = names().find(|known| *known == plain) {
        return Some(same);
    }
    if let Some((_, known)) = ELSEWHERE.iter().find(|(other, _)| *other == plain) {
        return Some(known);
    }
    // Far longer names than ours are no misspelling of one.
    let letters: Vec<char> = plain.chars().take(40).collect();
    if letters.len() >= 3
        && let Some(longer) = names().find(|known| known.starts_with(&plain))
    {
        return Some(longer);
    }
    let distances = names().map(|known| (distance(&letters, known), known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= letters.len() / 3).then_some(nearest)
}

/// Insertions, removals and replacements that make one of the other.
fn distance(from: &[char], to: &str) -> usize {
    let mut row: Vec<usize> = (0..=from.len()).collect();
    for (line, other) in to.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, letter) in from.iter().enumerate() {
            let replaced = diagonal + usize::from(*letter != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[from.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_recognised() {
        for (name, want) in [
            ("block", Some("block-size")),
            ("block_size", Some("block-size")),
            ("Threads", Some("threads")),
            ("lateny", Some("latency")),
            ("duratoin", Some("duration")),
            ("iodepth", Some("outstanding")),
            ("writepercent", Some("write-percent")),
            ("frobnicate", None),
            ("", None),
            ("x", None),
            ("-help", Some("help")),
        ] {
            assert_eq!(suggestion(name), want, "{name}");
        }
    }

    #[test]
    fn distance_counts_edits() {
        let count = |from: &str, to| distance(&from.chars().collect::<Vec<_>>(), to);
        assert_eq!(count("kitten", "sitting"), 3);
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", "abc"), 0);
    }
}
