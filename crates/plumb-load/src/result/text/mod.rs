//! The text report (spec 7, 10.2, 10.3, 15.10), in DISKSPD 2.2's layout with what 2.3 added (D-27).
//!
//! Everything that DISKSPD prints comes first, to the character; Plumb's own [`plausibility`] block
//! stands at the very end, where readers of DISKSPD's reports have stopped looking.

pub mod cpu;
pub mod distribution;
pub mod io_table;
pub mod latency;
pub mod open_loop;
pub mod plausibility;
pub mod processors;
pub mod spaces;
pub mod system;
pub mod totals;
pub mod trace;
pub mod verify;
pub mod waits;

use std::io::{self, Write};

use plumb_units::Bytes;

use super::model::{RunResult, SpanResult};
use crate::profile::model::{RawProfile, TimeSpan};
use crate::profile::text::write_with_separation;
use io_table::Columns;

/// Stands for the figures of a time span that was not measured (spec 7.4).
pub const INTERRUPTED: &str =
    "The test was interrupted before the measurements began. No results are displayed.";

/// 79 stars.
const STARS: &str =
    "*******************************************************************************";

/// Writes the whole report: what DISKSPD prints, then Plumb's own blocks.
///
/// # Errors
/// What `out` reports.
pub fn write(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    write_diskspd(result, out)?;
    open_loop::write(result, out)?;
    verify::write(result, out)?;
    spaces::write(result, out)?;
    plausibility::write(result, out)
}

/// Writes what DISKSPD prints and nothing else.
///
/// # Errors
/// What `out` reports.
pub fn write_diskspd(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    let separation = result.time_spans.iter().map(|span| span.effective_buffer_separation).max();
    let separation = separation.filter(|bytes| *bytes > 0).map(Bytes);
    let profile = write_with_separation(&result.profile, &result.command_line, separation);
    out.write_all(profile.as_bytes())?;
    system::write(&result.host, result.started_at, out)?;
    for (number, (span, asked)) in (1..).zip(spans(result)) {
        writeln!(out, "\nResults for timespan {number}:\n{STARS}")?;
        write_span(span, asked, &result.profile, out)?;
    }
    if result.profile.time_spans.len() > 1 {
        totals::write(result, out)?;
    }
    Ok(())
}

/// The time spans beside what was asked of them.
pub(super) fn spans(result: &RunResult) -> impl Iterator<Item = (&SpanResult, &TimeSpan)> {
    result.time_spans.iter().zip(&result.profile.time_spans)
}

/// What follows the stars: everything about one time span.
fn write_span(
    span: &SpanResult,
    asked: &TimeSpan,
    profile: &RawProfile,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !span.is_measured() {
        return writeln!(out, "{INTERRUPTED}");
    }
    writeln!(out, "\nactual test time:\t{:.2}s", span.elapsed.as_secs_f64())?;
    writeln!(out, "thread count:\t\t{}", span.threads.len())?;
    if asked.is_weighted_pool() {
        writeln!(out, "request count:\t\t{}", asked.request_count)?;
    }
    write_effective_affinity(span, asked, out)?;
    cpu::write(&span.cpus, out)?;
    distribution::write(&span.threads, out)?;
    let columns = Columns { latency: asked.measure_latency, iops: asked.calculate_iops_std_dev };
    io_table::write(span, columns, out)?;
    waits::write_ring(span, out)?;
    if asked.measure_latency {
        latency::write(&span.threads, out)?;
    }
    if let Some(trace) = &span.trace {
        trace::write(trace, out)?;
    }
    if profile.verbose_stats {
        waits::write(&span.threads, out)?;
    }
    Ok(())
}

/// Shown when an order of processors or a whole group was asked for (spec 15.10, D-27).
fn write_effective_affinity(
    span: &SpanResult,
    asked: &TimeSpan,
    out: &mut dyn Write,
) -> io::Result<()> {
    let whole_group = asked.affinity.iter().any(|entry| entry.processor.is_none());
    match &span.effective_affinity {
        Some(taken) if asked.affinity_traversal.is_some() || whole_group => {
            let (words, list) = processors::list(taken);
            writeln!(out, "effective affinity ({words}):\t{list}")
        }
        _ => Ok(()),
    }
}
