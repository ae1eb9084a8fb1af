//! Reads text reports (spec 7, 15.10): tabs or blanks, LF or CR LF.

use super::error::ImportError;
use super::model::{ImportedResult, ImportedSpan, PowerScheme};
use super::{read_own, read_profile, tables};

/// A line of a report and its number in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) text: &'a str,
}

impl Line<'_> {
    pub(super) fn error(self, what: impl Into<String>) -> ImportError {
        ImportError::Text { line: self.number, what: what.into() }
    }
}

const COMMAND_LINE: &str = "Command Line: ";
const SPAN: &str = "Results for timespan ";

/// Reads a file that holds one text report.
///
/// # Errors
/// There is none or more than one, it was cut short, or a number in it is none.
pub fn read_text(text: &str) -> Result<ImportedResult, ImportError> {
    let mut reports = read_texts(text)?;
    match (reports.pop(), reports.len()) {
        (Some(only), 0) => Ok(only),
        (_, others) => {
            Err(ImportError::NoResult(format!("{} reports where one was expected", others + 1)))
        }
    }
}

/// Reads the text reports that a file holds, one after the other as in a log.
///
/// # Errors
/// There is none, one was cut short, or a number is none.
pub fn read_texts(text: &str) -> Result<Vec<ImportedResult>, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<Line<'_>> = (1..)
        .zip(text.lines())
        .map(|(number, text)| Line { number, text: text.trim_end_matches('\r') })
        .collect();
    let mut starts: Vec<usize> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.text.starts_with(COMMAND_LINE) {
            starts.push(index);
        }
    }
    if starts.is_empty() {
        starts.push(0);
    }
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    starts.iter().zip(ends).map(|(start, end)| report(&lines[*start..end])).collect()
}

fn report(lines: &[Line<'_>]) -> Result<ImportedResult, ImportError> {
    let mut result = ImportedResult::default();
    let is_span = |line: &Line<'_>| line.text.starts_with(SPAN);
    let is_totals = |line: &Line<'_>| line.text == "Totals:";
    let Some(first_span) = lines.iter().position(is_span) else {
        let what = match lines.first().filter(|line| line.text.starts_with(COMMAND_LINE)) {
            Some(line) => {
                format!("the report of line {} ends before its first result", line.number)
            }
            None => "no line 'Results for timespan'".to_owned(),
        };
        return Err(ImportError::NoResult(what));
    };
    let (head, spans) = lines.split_at(first_span);
    let drops_zeros = head.iter().any(|line| line.text.starts_with("  timespan:"));
    self::head(head, drops_zeros, &mut result);
    let spans = &spans[..spans.iter().position(is_totals).unwrap_or(spans.len())];
    for span in spans.split_inclusive_before(is_span) {
        result.time_spans.push(time_span(span, drops_zeros)?);
    }
    read_own::read(lines, &mut result.time_spans)?;
    Ok(result)
}

/// Cuts a list before each item that starts a part.
trait CutBefore<T> {
    fn split_inclusive_before(&self, starts: impl Fn(&T) -> bool) -> Vec<&[T]>;
}

impl<T> CutBefore<T> for [T] {
    fn split_inclusive_before(&self, starts: impl Fn(&T) -> bool) -> Vec<&[T]> {
        let mut parts = Vec::new();
        let mut rest = self;
        while let Some(length) = rest.iter().skip(1).position(&starts) {
            let (part, others) = rest.split_at(length + 1);
            parts.push(part);
            rest = others;
        }
        parts.push(rest);
        parts
    }
}

/// Everything before the first result: command line, profile, system.
fn head(lines: &[Line<'_>], drops_zeros: bool, result: &mut ImportedResult) {
    let mut flags = 0;
    let mut input = Vec::new();
    let mut in_system = false;
    for line in lines {
        if let Some(command_line) = line.text.strip_prefix(COMMAND_LINE) {
            result.command_line = Some(command_line.to_owned());
        } else if let Some(rest) = line.text.strip_prefix("Experiment Flags: ") {
            let decimal = rest.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
            flags = decimal.and_then(|text| text.parse().ok()).unwrap_or(0);
        } else if line.text == "System information:" {
            in_system = true;
        } else if in_system {
            system(line.text.trim(), result);
        } else {
            input.push(*line);
        }
    }
    let mut profile = read_profile::read(&input, drops_zeros, &mut result.notes);
    if let Some(profile) = &mut profile {
        profile.experiment_flags = flags;
    }
    result.profile = profile;
}

fn system(line: &str, result: &mut ImportedResult) {
    let Some((key, value)) = line.split_once(':') else { return };
    let value = value.trim();
    match key.trim() {
        "computer name" => result.computer_name = Some(value.to_owned()),
        "processor name" => result.processor_name = Some(value.to_owned()),
        "start time" => result.run_time = Some(value.to_owned()),
        "active power scheme" if !value.is_empty() && value != "<unknown>" => {
            let (name, guid) = match value.strip_suffix(')').and_then(|v| v.rsplit_once(" (")) {
                Some(parts) => parts,
                None => (value, ""),
            };
            result.power_scheme =
                Some(PowerScheme { name: name.to_owned(), guid: guid.to_owned() });
        }
        _ => {}
    }
}

/// The results of one time span, from its title on.
fn time_span(lines: &[Line<'_>], drops_zeros: bool) -> Result<ImportedSpan, ImportError> {
    let mut span = ImportedSpan::default();
    let mut seconds = None;
    let mut tables = tables::IoTables::default();
    let mut index = 0;
    while let Some(line) = lines.get(index) {
        let rest = &lines[index..];
        let read = match line.text.trim_end() {
            text if text.starts_with("The test was interrupted before") => return Ok(span),
            text if let Some(value) = text.strip_prefix("actual test time:") => {
                seconds = Some(tables::seconds(*line, value)?);
                1
            }
            text if let Some(value) = text.strip_prefix("thread count:") => {
                span.thread_count = tables::count(*line, value)?;
                1
            }
            text if let Some(value) = text.strip_prefix("request count:") => {
                span.request_count = tables::count(*line, value)?;
                1
            }
            text if tables::is_cpu_header(text) => tables::cpus(rest, &mut span)?,
            "Total IO" => tables::io(rest, drops_zeros, &mut tables.total)?,
            "Read IO" => tables::io(rest, drops_zeros, &mut tables.read)?,
            "Write IO" => tables::io(rest, drops_zeros, &mut tables.write)?,
            "Total latency distribution:" => tables::latency(rest, &mut span.latency)?,
            text if let Some(path) = text.strip_prefix("Latency distribution: ") => {
                let mut latency = Vec::new();
                let read = tables::latency(rest, &mut latency)?;
                let path = path.to_owned();
                span.path_latency.push(super::model::PathLatency { path, latency });
                read
            }
            "Wait Statistics" => tables::waits(rest, &mut tables.waits)?,
            _ => 1,
        };
        index += read;
    }
    span.seconds = seconds.ok_or_else(|| lines[0].error("results without 'actual test time'"))?;
    tables.finish(lines[0], &mut span)?;
    Ok(span)
}
