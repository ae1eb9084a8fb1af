//! Reads Plumb's own blocks at the end of a text report: in which mode its time spans were measured (spec 15.14).

use super::error::ImportError;
use super::model::{ImportedSpan, ImportedSubmission};
use super::read_text::Line;

/// Which block a line is in.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    OpenLoop,
    Plausibility,
}

/// Adds what the blocks of `lines`, a whole report, say of each of `spans` that was measured; nothing where there are none.
///
/// # Errors
/// A number is none.
pub(super) fn read(lines: &[Line<'_>], spans: &mut [ImportedSpan]) -> Result<(), ImportError> {
    let mut block = None;
    let mut number: usize = 1;
    let mut open: Vec<Option<(f64, String)>> = vec![None; spans.len()];
    for pair in lines.windows(2) {
        let [title, line] = pair else { continue };
        if !title.text.is_empty() && line.text.len() == title.text.len() && is_rule(line.text) {
            block = match title.text {
                "Open loop" => Some(Block::OpenLoop),
                "Plausibility" => Some(Block::Plausibility),
                _ => None,
            };
            number = 1;
            continue;
        }
        let (Some(block), Some(text)) = (block, line.text.strip_prefix('\t')) else { continue };
        if let Some(told) = text.strip_prefix("timespan:") {
            number = parsed(*line, told.trim())?;
            continue;
        }
        let Some(index) = number.checked_sub(1) else { continue };
        let measured = |span: &&mut ImportedSpan| !span.is_interrupted();
        let Some(span) = spans.get_mut(index).filter(measured) else { continue };
        match block {
            Block::OpenLoop => {
                if let Some(arrivals) = arrivals(*line, text)? {
                    open[index] = Some(arrivals);
                }
            }
            Block::Plausibility => {
                if let Some(words) = text.strip_prefix("submission: ") {
                    span.submission = Some(submission(*line, words)?);
                } else if let Some(words) = text.strip_prefix("engine: ")
                    && let Some(own) = &mut span.submission
                {
                    own.queues.push(queue(words));
                }
            }
        }
    }
    for (span, open) in spans.iter_mut().zip(open) {
        if let Some(own) = &mut span.submission {
            own.open_loop = open;
        }
    }
    Ok(())
}

fn is_rule(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'-')
}

fn parsed<T: std::str::FromStr>(line: Line<'_>, text: &str) -> Result<T, ImportError> {
    let shown: String = text.chars().take(40).collect();
    text.parse().map_err(|_| line.error(format!("'{shown}' is no number")))
}

/// `rate: 500 I/Os per second, poisson arrivals: sustained`.
fn arrivals(line: Line<'_>, text: &str) -> Result<Option<(f64, String)>, ImportError> {
    let Some(told) = text.strip_prefix("rate: ") else { return Ok(None) };
    let Some((rate, rest)) = told.split_once(" I/Os per second, ") else { return Ok(None) };
    let arrival = rest.split(" arrivals").next().unwrap_or_default();
    Ok(Some((parsed(line, rate)?, arrival.to_owned())))
}

/// What [`crate::result::text::plausibility`] writes behind `submission: `. Of I/Os that went one at a time nothing is
/// known but the profile.
fn submission(line: Line<'_>, words: &str) -> Result<ImportedSubmission, ImportError> {
    let mut parts = words.split("; ");
    let gathered = parts.next().unwrap_or_default();
    let mut own = ImportedSubmission::default();
    for part in parts {
        if let Some(profile) = part.strip_prefix("profile ") {
            own.profile = profile.to_owned();
        } else if part.starts_with("each completion issues the next I/O") {
            own.gathering = "routines".to_owned();
        }
    }
    let number = |text: &str| {
        let digits = text.split(|letter: char| !letter.is_ascii_digit()).next();
        parsed::<u64>(line, digits.unwrap_or_default()).map(Some)
    };
    if let Some(batch) = gathered.strip_prefix("ring, a batch of ") {
        own.gathering = "ring".to_owned();
        own.batch = number(batch)?;
        own.burst = own.batch;
    } else if let Some(batch) = gathered.strip_prefix("batches of up to ") {
        own.batch = number(batch)?;
        own.burst = match gathered.split_once(" after a burst of completions of up to ") {
            Some((_, burst)) => number(burst)?,
            None => own.batch,
        };
    } else if gathered == "a system call for each I/O" {
        (own.batch, own.burst) = (Some(1), Some(1));
    }
    if own.gathering.is_empty() && own.batch.is_some() {
        own.gathering.clone_from(&own.profile);
    }
    Ok(own)
}

/// `uring (defer_taskrun, fixed_files)`.
fn queue(words: &str) -> (String, Vec<String>) {
    match words.strip_suffix(')').and_then(|words| words.split_once(" (")) {
        Some((engine, flags)) => {
            (engine.to_owned(), flags.split(", ").map(str::to_owned).collect())
        }
        None => (words.to_owned(), Vec::new()),
    }
}
