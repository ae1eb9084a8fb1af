//! Wait statistics (spec 10.2) and ring submissions (spec 15.10).

use std::io::{self, Write};

use plumb_units::Nanos;

use crate::result::model::{SpanResult, ThreadResult};

/// Writes the wait statistics (`-vs`) and the empty line before them.
///
/// # Errors
/// What `out` reports.
pub fn write(threads: &[ThreadResult], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\nWait Statistics\nthread | completion wait | throttle wait  -  sleep | lookaside | \
         0 - 7+ complete per lookaside\n{}",
        "-".repeat(95)
    )?;
    for thread in threads {
        let waits = &thread.waits;
        let counts = waits.lookaside_completion.map(|count| count.to_string()).join(" ");
        writeln!(
            out,
            "{:>6} | {:>15} | {:>13}  - {:>6} | {:>9} | {counts}",
            thread.id, waits.wait, waits.throttle_wait, waits.throttle_sleep, waits.lookaside
        )?;
    }
    Ok(())
}

/// Writes submissions per second and the empty line before them; nothing without `-u`.
///
/// # Errors
/// What `out` reports.
pub fn write_ring(span: &SpanResult, out: &mut dyn Write) -> io::Result<()> {
    if span.threads.iter().all(|thread| thread.submit_count.is_none()) {
        return Ok(());
    }
    let line = "-".repeat(38);
    writeln!(out, "\nIoRing Statistics\nthread |     submits     | submits per s\n{line}")?;
    let mut total = 0;
    for thread in &span.threads {
        let submits = thread.submit_count.unwrap_or(0);
        total += submits;
        let rate = per_second(submits, span.elapsed);
        writeln!(out, "{:>6} | {submits:>15} | {rate:>13.2}", thread.id)?;
    }
    writeln!(out, "{line}\ntotal:   {total:>15} | {:>13.2}", per_second(total, span.elapsed))
}

fn per_second(count: u64, elapsed: Nanos) -> f64 {
    if elapsed == Nanos::ZERO { 0.0 } else { count as f64 / elapsed.as_secs_f64() }
}
