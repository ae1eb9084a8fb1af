//! Totals over several time spans (spec 7.5).

use std::io::{self, Write};

use plumb_units::Nanos;

use super::STARS;
use crate::result::figures::Figures;
use crate::result::model::{DirectionResult, RunResult};

/// Writes the block and the two empty lines before it; only measured time spans count.
///
/// # Errors
/// What `out` reports.
pub fn write(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    let mut elapsed = Nanos::ZERO;
    let mut sums = [DirectionResult::default(), DirectionResult::default()];
    for span in result.measured() {
        elapsed += span.elapsed;
        let Figures { read, write, .. } = span.figures();
        for (sum, side) in sums.iter_mut().zip([write, read]) {
            sum.bytes += side.bytes;
            sum.io_count += side.io_count;
        }
    }
    let [write, read] = sums;
    let mut total = write.clone();
    total.merge(&read);
    let line = "-".repeat(79);
    writeln!(out, "\n\nTotals:\n{STARS}\n")?;
    writeln!(out, "type   |       bytes     |     I/Os     |    MiB/s   |  I/O per s\n{line}")?;
    write_row("write  |", &write, elapsed, out)?;
    write_row("read   |", &read, elapsed, out)?;
    writeln!(out, "{line}")?;
    write_row("total  |", &total, elapsed, out)?;
    writeln!(out, "\ntotal test time:\t{:.2}s", elapsed.as_secs_f64())
}

fn write_row(
    title: &str,
    row: &DirectionResult,
    elapsed: Nanos,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (mib, iops) = (row.mib_per_s(elapsed), row.iops(elapsed));
    writeln!(out, "{title} {:>15} | {:>12} | {mib:>10.2} | {iops:>10.2}", row.bytes, row.io_count)
}
