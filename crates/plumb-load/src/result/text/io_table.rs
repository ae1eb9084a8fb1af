//! The tables `Total IO`, `Read IO` and `Write IO` (spec 7.4).

use std::io::{self, Write};

use plumb_units::{Bytes, Nanos};

use crate::result::model::{DirectionResult, SpanResult, TargetResult};
use crate::tally::LatencySet;
use crate::tally::span_series::ThreadSeries;

/// Columns that depend on what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// `AvgLat` and `LatStdDev` (`-L`).
    pub latency: bool,
    /// `IopsStdDev` (`-D`).
    pub iops: bool,
}

/// Which I/Os a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Reads and writes.
    Total,
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl Side {
    /// The word of headings.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Total => "Total",
            Self::Read => "Read",
            Self::Write => "Write",
        }
    }

    fn of(self, target: &TargetResult) -> DirectionResult {
        match self {
            Self::Total => target.total(),
            Self::Read => target.read.clone(),
            Self::Write => target.write.clone(),
        }
    }

    /// Deviation of the I/Os per second of one row; 0 without intervals.
    fn deviation_of_row(self, series: Option<&ThreadSeries>) -> f64 {
        series.map_or(0.0, |series| match self {
            Self::Total => series.total.iops_stddev(),
            Self::Read => series.read.iops_stddev(),
            Self::Write => series.write.iops_stddev(),
        })
    }

    /// Deviation of the I/Os per second of all rows; 0 without intervals.
    fn deviation(self, span: &SpanResult) -> f64 {
        span.intervals().map_or(0.0, |(mut read, write)| match self {
            Self::Total => {
                read.merge(&write);
                read.iops_stddev()
            }
            Self::Read => read.iops_stddev(),
            Self::Write => write.iops_stddev(),
        })
    }
}

/// Writes the three tables, each with its title and the empty line before it.
///
/// # Errors
/// What `out` reports.
pub fn write(span: &SpanResult, columns: Columns, out: &mut dyn Write) -> io::Result<()> {
    for side in [Side::Total, Side::Read, Side::Write] {
        writeln!(out, "\n{} IO", side.title())?;
        write_table(span, side, columns, out)?;
    }
    Ok(())
}

/// Writes one table without its title.
///
/// # Errors
/// What `out` reports.
pub fn write_table(
    span: &SpanResult,
    side: Side,
    columns: Columns,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s ")?;
    let mut dashes = 66 + 12;
    for (there, header, width) in [
        (columns.latency, "|  AvgLat  ", 11),
        (columns.iops, "| IopsStdDev ", 13),
        (columns.latency, "| LatStdDev ", 12),
    ] {
        if there {
            write!(out, "{header}")?;
            dashes += width;
        }
    }
    let line = "-".repeat(dashes);
    writeln!(out, "|  file\n{line}")?;
    let mut sum = DirectionResult::default();
    for thread in &span.threads {
        for target in &thread.targets {
            let row = side.of(target);
            write!(out, "{:>6} | ", thread.id)?;
            let deviation = columns.iops.then(|| side.deviation_of_row(target.series.as_ref()));
            write_figures(&row, span.elapsed, (columns.latency, deviation), out)?;
            writeln!(out, " | {} ({})", target.path, Bytes(target.file_size))?;
            sum.merge(&row);
        }
    }
    write!(out, "{line}\ntotal:   ")?;
    let deviation = columns.iops.then(|| side.deviation(span));
    write_figures(&sum, span.elapsed, (columns.latency, deviation), out)?;
    writeln!(out)
}

fn write_figures(
    row: &DirectionResult,
    elapsed: Nanos,
    (with_latency, deviation): (bool, Option<f64>),
    out: &mut dyn Write,
) -> io::Result<()> {
    let (mib, iops) = (row.mib_per_s(elapsed), row.iops(elapsed));
    write!(out, "{:>15} | {:>12} | {mib:>10.2} | {iops:>10.2}", row.bytes, row.io_count)?;
    let latency = row.latency.as_ref();
    if with_latency {
        let mean = latency.and_then(LatencySet::mean_ms).unwrap_or(0.0);
        write!(out, " | {mean:>8.3}")?;
    }
    if let Some(deviation) = deviation {
        write!(out, " | {deviation:>10.2}")?;
    }
    if with_latency {
        match latency.and_then(LatencySet::stddev_ms) {
            Some(deviation) => write!(out, " |  {deviation:>8.3}")?,
            None => write!(out, " |       N/A")?,
        }
    }
    Ok(())
}
