//! `--vary`: the values that a parameter takes.

use std::collections::BTreeMap;

use plumb_load::profile::flags::table::OPTIONS;
use plumb_units::parse_size;

use super::{Access, Setting};

/// A parameter that a sweep can vary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// `t`: threads per file.
    Threads,
    /// `o`: outstanding I/Os per thread.
    Outstanding,
    /// `b`: bytes per I/O.
    Block,
    /// `w`: percent of writes.
    Writes,
    /// `access`: random, sequential, interlocked, apart.
    Access,
    /// `F`: target files.
    Files,
    /// `rate`: I/Os per second in all, in an open loop.
    Rate,
    /// `cache`: what `-S` gets.
    Cache,
    /// `size`: bytes of each file.
    Size,
    /// Any other option of `plumb run`, by long name.
    Option(String),
}

impl Parameter {
    /// The parameter of a name.
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "t" | "threads" => Self::Threads,
            "o" | "outstanding" => Self::Outstanding,
            "b" | "block-size" => Self::Block,
            "w" | "write-percent" => Self::Writes,
            "access" => Self::Access,
            "F" | "files" => Self::Files,
            "rate" => Self::Rate,
            "cache" => Self::Cache,
            "size" => Self::Size,
            other if is_free_option(other) => Self::Option(other.to_owned()),
            _ => return None,
        })
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Threads => "t",
            Self::Outstanding => "o",
            Self::Block => "b",
            Self::Writes => "w",
            Self::Access => "access",
            Self::Files => "F",
            Self::Rate => "rate",
            Self::Cache => "cache",
            Self::Size => "size",
            Self::Option(name) => name,
        }
    }
}

/// Options that a study sets itself, or that are about the program and not the load.
const NOT_FREE: &[&str] = &[
    "random",
    "sequential",
    "interlocked",
    "thread-stride",
    "create",
    "pool-threads",
    "thread-outstanding",
    "duration",
    "warmup",
    "cooldown",
    "seed",
    "unbuffered",
    "cached",
    "no-local-cache",
    "write-through",
    "no-cache",
    "mmap",
    "disable-all-cache",
    "latency",
    "iops-interval",
    "result-format",
    "verbose",
    "verbose-stats",
    "progress",
    "profile",
    "profile-only",
    "signal-start",
    "signal-finish",
    "wait-start",
    "stop-event",
    "signal-event",
    "help",
    "version",
    "system-info",
    "json",
    "output",
    "profile-json",
    "error-format",
    "progress-style",
    "write-source",
];

fn is_free_option(name: &str) -> bool {
    OPTIONS.iter().any(|row| row.long == name) && !NOT_FREE.contains(&name)
}

/// One axis: a parameter with its values, or several that change together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// What changes; more than one change together.
    pub parameters: Vec<Parameter>,
    /// The words of each value, one per parameter.
    pub values: Vec<Vec<String>>,
}

/// An axis, or a value for all settings, that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("`{text}` does not say what to {verb}: {why}")]
#[diagnostic(code(plumb::sweep::axis))]
pub struct AxisError {
    text: String,
    verb: &'static str,
    why: String,
    #[help]
    help: &'static str,
}

/// What to write for an axis.
const VARY: (&str, &str) = (
    "vary",
    "write t=1,2,4 or o=1..32, o=8..64/8 in steps, o=1..64*2 doubling, t:o=1:8,2:4 for pairs; \
     t, o, b, w, F, access, cache, rate, size or a long option of plumb run",
);
/// What to write for a value of all settings.
const SET: (&str, &str) = (
    "set",
    "write b=8K, t=4 or size=64G; t, o, b, w, F, access, cache, rate, size or a long option of plumb run",
);

/// More values than this are a slip.
const VALUES_MOST: usize = 10_000;

impl Axis {
    /// Reads `t=1,2,4`, `o=1..32`, `o=8..64/8`, `o=1..64*2`, `t:o=1:8,2:4`.
    ///
    /// # Errors
    /// It names no parameter, has no value, or one that the parameter cannot have.
    pub fn parse(text: &str) -> Result<Self, AxisError> {
        Self::read(text, VARY)
    }

    /// The same of `b=8K`, a value for all settings: an axis with one value, or more where several are given.
    ///
    /// # Errors
    /// As [`Axis::parse`].
    pub(super) fn parse_value(text: &str) -> Result<Self, AxisError> {
        Self::read(text, SET)
    }

    fn read(text: &str, (verb, help): (&'static str, &'static str)) -> Result<Self, AxisError> {
        let wrong = |why: String| AxisError { text: text.to_owned(), verb, why, help };
        let (names, list) = text.split_once('=').ok_or_else(|| wrong("no `=` in it".into()))?;
        let parameters: Vec<Parameter> = names
            .split(':')
            .map(|name| {
                let name = name.trim();
                Parameter::of_name(name)
                    .ok_or_else(|| wrong(format!("no parameter is called `{name}`")))
            })
            .collect::<Result<_, _>>()?;
        for (index, parameter) in parameters.iter().enumerate() {
            if parameters[..index].contains(parameter) {
                return Err(wrong(format!("`{}` twice", parameter.name())));
            }
        }
        let mut values: Vec<Vec<String>> = Vec::new();
        for item in list.split(',').map(str::trim) {
            if parameters.len() > 1 {
                let words: Vec<String> = item.split(':').map(|w| w.trim().to_owned()).collect();
                if words.len() != parameters.len() {
                    return Err(wrong(format!("`{item}` has {} values", words.len())));
                }
                values.push(words);
            } else {
                values.extend(range(item).map_err(wrong)?.into_iter().map(|word| vec![word]));
            }
        }
        if values.len() > VALUES_MOST {
            return Err(wrong(format!("more than {VALUES_MOST} values")));
        }
        let axis = Self { parameters, values };
        // By what they mean: 4K and 4096 are the same runs.
        let mut seen: BTreeMap<String, &[String]> = BTreeMap::new();
        for (index, value) in axis.values.iter().enumerate() {
            let mut setting = Setting::default();
            axis.apply(index, &mut setting).map_err(wrong)?;
            let word = value.join(":");
            match seen.insert(format!("{setting:?}"), value) {
                None => {}
                Some(before) if before == value => return Err(wrong(format!("`{word}` twice"))),
                Some(before) => {
                    return Err(wrong(format!("`{word}` is `{}` again", before.join(":"))));
                }
            }
        }
        Ok(axis)
    }

    /// Puts value `index` into a setting.
    ///
    /// # Errors
    /// The parameter cannot have that value; why.
    pub(crate) fn apply(&self, index: usize, setting: &mut Setting) -> Result<(), String> {
        for (parameter, word) in self.parameters.iter().zip(&self.values[index]) {
            set(parameter, word, setting)?;
        }
        Ok(())
    }

    /// Whether o alone changes.
    #[must_use]
    pub fn is_outstanding(&self) -> bool {
        self.parameters == [Parameter::Outstanding]
    }

    /// Whether threads change, alone or together with o.
    #[must_use]
    pub fn is_threads(&self) -> bool {
        let is_split = |of: &Parameter| matches!(of, Parameter::Threads | Parameter::Outstanding);
        self.parameters.contains(&Parameter::Threads) && self.parameters.iter().all(is_split)
    }
}

/// One value, or the values of a range.
fn range(item: &str) -> Result<Vec<String>, String> {
    let Some((first, rest)) = item.split_once("..") else {
        return match item.is_empty() {
            true => Err("a value is missing".to_owned()),
            false => Ok(vec![item.to_owned()]),
        };
    };
    let number = |word: &str| {
        word.parse::<u64>().map_err(|_| format!("`{word}` in `{item}` is no whole number"))
    };
    let (last, factor, step) = if let Some((last, factor)) = rest.split_once('*') {
        (last, number(factor)?, 0)
    } else if let Some((last, step)) = rest.split_once('/') {
        (last, 1, number(step)?)
    } else {
        (rest, 1, 1)
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last || (factor < 2 && step == 0) || (factor > 1 && first == 0) {
        return Err(format!("`{item}` is no rising range"));
    }
    let mut values = Vec::new();
    let mut value = first;
    while value <= last && values.len() <= VALUES_MOST {
        values.push(value.to_string());
        let next = value.checked_mul(factor).and_then(|v| v.checked_add(step));
        let Some(next) = next else { break };
        value = next;
    }
    Ok(values)
}

fn set(parameter: &Parameter, word: &str, setting: &mut Setting) -> Result<(), String> {
    let name = parameter.name();
    let count = |least: u32, most: u32| match word.parse::<u32>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("{name} is {least} to {most}, not `{word}`")),
    };
    let size = || match parse_size(word, 1) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(format!("{name} is a size such as 64K, not `{word}`")),
    };
    match parameter {
        Parameter::Threads => setting.threads = count(1, 4096)?,
        Parameter::Outstanding => setting.outstanding = count(1, 65_536)?,
        Parameter::Writes => setting.write_percent = count(0, 100)?,
        Parameter::Files => setting.files = count(1, 1024)?,
        Parameter::Rate => setting.rate = Some(u64::from(count(1, u32::MAX)?)),
        Parameter::Block => setting.block_bytes = size()?,
        Parameter::Size => setting.file_bytes = Some(size()?),
        Parameter::Access => {
            setting.access = Access::of_keyword(word).ok_or_else(|| {
                format!("access is random, sequential, interlocked or apart, not `{word}`")
            })?;
        }
        Parameter::Cache => {
            let is_fine = !word.is_empty() && word.chars().all(|c| "bhrmuw".contains(c));
            if !is_fine {
                return Err(format!("cache is letters of -S such as h, u, b, w, not `{word}`"));
            }
            setting.cache = word.to_owned();
        }
        Parameter::Option(option) => {
            setting.options.insert(option.clone(), word.to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> String {
        let axis = Axis::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        axis.values.iter().map(|value| value.join(":")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lists_ranges_and_pairs() {
        assert_eq!(values("t=1,2,4"), "1 2 4");
        assert_eq!(values("o=1..5"), "1 2 3 4 5");
        assert_eq!(values("o=8..20/4"), "8 12 16 20");
        assert_eq!(values("o=1..40*2,50"), "1 2 4 8 16 32 50");
        assert_eq!(values("b=4K,64K"), "4K 64K");
        assert_eq!(values("t:o=1:8,2:4"), "1:8 2:4");
        assert_eq!(values("access=r,si,apart"), "r si apart");
        assert_eq!(values("engine=uring,aio"), "uring aio");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (text, says) in [
            ("t", "no `=`"),
            ("t=", "missing"),
            ("t=1,,2", "missing"),
            ("x=1", "called `x`"),
            ("t=0", "1 to 4096"),
            ("w=101", "0 to 100"),
            ("o=5..1", "rising"),
            ("o=0..8*2", "rising"),
            ("o=1..8*1", "rising"),
            ("o=1..x", "whole number"),
            ("b=large", "size"),
            ("cache=z", "letters"),
            ("access=zigzag", "random"),
            ("t:o=1", "has 1 values"),
            ("t:t=1:1", "twice"),
            ("t=1,1", "twice"),
            ("o=1..99999999999", "values"),
            ("duration=5", "called `duration`"),
        ] {
            let error = Axis::parse(text).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn values_enter_the_setting() {
        let mut setting = Setting::default();
        for text in ["F:size=2:32G", "w=0", "rate=500", "cache=u", "engine=aio", "b=64K"] {
            Axis::parse(text).expect("fine").apply(0, &mut setting).expect("fine");
        }
        assert_eq!((setting.files, setting.file_bytes), (2, Some(32 << 30)));
        assert_eq!(setting.short(), "F2 t8 o12 b64K r w0 rate500 engine=aio");
    }
}
