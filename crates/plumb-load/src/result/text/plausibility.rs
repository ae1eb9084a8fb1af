//! Plumb's own block at the end of the report: what was really in force, and what speaks for or
//! against the figures.

use std::collections::BTreeMap;
use std::io::{self, Write};

use plumb_io::{Errno, QueueFacts};

use super::spans;
use crate::profile::model::{RingBatch, TimeSpan};
use crate::result::errno_name;
use crate::result::figures::{Figures, SpanState};
use crate::result::model::{Plausibility, RunResult, SpanResult};

/// Writes the block and the empty line before it.
///
/// # Errors
/// What `out` reports.
pub fn write(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nPlausibility\n------------")?;
    let several = result.time_spans.len() > 1;
    for (number, (span, asked)) in (1..).zip(spans(result)) {
        if several {
            writeln!(out, "\n\ttimespan: {number:>3}")?;
        }
        write_span(span, asked, out)?;
    }
    Ok(())
}

fn write_span(span: &SpanResult, asked: &TimeSpan, out: &mut dyn Write) -> io::Result<()> {
    match span.state() {
        SpanState::NotRun => line(Plausibility::Unknown, "not run", out)?,
        SpanState::Interrupted => {
            line(Plausibility::Unknown, "stopped before the measurement began", out)?;
        }
        SpanState::Failed | SpanState::Measured => {}
    }
    for failure in &span.failures {
        line(Plausibility::Suspicious, &failure.text, out)?;
    }
    // First what was made of the queue's depth: it changes what the device sees.
    if !span.submission.is_empty() {
        writeln!(out, "\tsubmission: {}", submission(span, asked))?;
    }
    for queue in &span.queues {
        write_queue(queue, out)?;
    }
    for path in &span.bypass_io_missing {
        let sentence = format!("BypassIO not available for '{path}', ran without");
        line(Plausibility::Suspicious, &sentence, out)?;
    }
    write_errors(span, out)?;
    for item in &span.plausibility {
        line(item.verdict, &item.sentence, out)?;
    }
    Ok(())
}

/// A line with its verdict mark.
fn line(verdict: Plausibility, sentence: &str, out: &mut dyn Write) -> io::Result<()> {
    let mark = match verdict {
        Plausibility::Ok => "[ok]",
        Plausibility::Unknown => "[??]",
        Plausibility::Suspicious => "[!!]",
    };
    // Sentences from outside may have several lines; each stays under its mark.
    writeln!(out, "\t{mark} {}", sentence.replace('\n', "\n\t     "))
}

fn write_queue(queue: &QueueFacts, out: &mut dyn Write) -> io::Result<()> {
    let flags = match queue.flags.is_empty() {
        true => String::new(),
        false => format!(" ({})", queue.flags.join(", ")),
    };
    writeln!(out, "\tengine: {}{flags}", queue.engine)?;
    for dropped in &queue.dropped {
        writeln!(out, "\tnot in force: {dropped}")?;
    }
    if queue.no_target {
        let sentence = "this engine touches no target: the figures are those of the tool alone";
        line(Plausibility::Suspicious, sentence, out)?;
    }
    Ok(())
}

/// Whether the engine never has more than one I/O of a thread in flight.
pub(crate) fn is_one_at_a_time(span: &SpanResult) -> bool {
    !span.queues.is_empty()
        && span.queues.iter().all(|queue| queue.engine.split('+').next() == Some("sync"))
}

/// How submissions were gathered (D-32), in words.
fn submission(span: &SpanResult, asked: &TimeSpan) -> String {
    let shared = match (span.batch, span.burst) {
        (1, ..=1) => "a system call for each I/O".to_owned(),
        (batch, burst) if burst > batch => {
            format!("batches of up to {batch}, after a burst of completions of up to {burst}")
        }
        (batch, _) => format!("batches of up to {batch}"),
    };
    let profile = asked.loop_profile();
    if is_one_at_a_time(span) {
        return format!("one I/O at a time; profile {profile}");
    }
    match span.submission.as_str() {
        "latency" | "peak" => format!("{shared}; profile {profile}"),
        "routines" => {
            format!(
                "{shared}; profile {profile}; each completion issues the next I/O of its request"
            )
        }
        "synchronous" => format!("one I/O at a time; profile {profile}"),
        "ring" => {
            let share = match asked.io_ring.unwrap_or_default().batch {
                RingBatch::Ios(_) => String::new(),
                RingBatch::Percent(percent) => format!(" ({percent}%)"),
            };
            let batch = span.batch;
            format!(
                "ring, a batch of {batch}{share} is gathered before the next submission; profile {profile}"
            )
        }
        other => format!("{shared}; {other}"),
    }
}

fn write_errors(span: &SpanResult, out: &mut dyn Write) -> io::Result<()> {
    for (path, figures) in by_target(span) {
        let failed = figures.error_count();
        if failed > 0 {
            let each = |(errno, count): (&Errno, &u64)| {
                format!("{count} {} ({})", errno_name::of(*errno), errno.text())
            };
            let list = figures.errors.iter().map(each).collect::<Vec<String>>().join(", ");
            let ios = if failed == 1 { "I/O" } else { "I/Os" };
            let sentence = format!("'{path}': {failed} {ios} failed: {list}");
            line(Plausibility::Suspicious, &sentence, out)?;
        }
        if figures.short_transfers > 0 {
            let ios = if figures.short_transfers == 1 { "I/O" } else { "I/Os" };
            let sentence = format!(
                "'{path}': {} {ios} moved fewer bytes than asked for",
                figures.short_transfers
            );
            line(Plausibility::Suspicious, &sentence, out)?;
        }
    }
    Ok(())
}

/// Path and sums of each target over all threads, in target order.
pub(in crate::result) fn by_target(span: &SpanResult) -> Vec<(&str, Figures)> {
    let mut places: BTreeMap<u32, Vec<&crate::result::model::TargetResult>> = BTreeMap::new();
    for target in span.threads.iter().flat_map(|thread| &thread.targets) {
        places.entry(target.index).or_default().push(target);
    }
    let figures = |results: Vec<&'_ crate::result::model::TargetResult>| Figures::of(results);
    places.into_values().map(|results| (results[0].path.as_str(), figures(results))).collect()
}
