//! Latency distributions (spec 7.4).

use std::io::{self, Write};

use crate::result::figures::Figures;
use crate::result::model::ThreadResult;
use crate::tally::LatencySet;

/// Rows and the share of values that are not above them.
const ROWS: [(&str, f64); 15] = [
    ("min", 0.0),
    ("25th", 0.25),
    ("50th", 0.50),
    ("75th", 0.75),
    ("90th", 0.90),
    ("95th", 0.95),
    ("99th", 0.99),
    ("3-nines", 0.999),
    ("4-nines", 0.9999),
    ("5-nines", 0.99999),
    ("6-nines", 0.999999),
    ("7-nines", 0.9999999),
    ("8-nines", 0.99999999),
    ("9-nines", 0.999999999),
    ("max", 1.0),
];

/// Writes a table per path, if there are several, and the total one, each with its title and the
/// empty line before it.
///
/// # Errors
/// What `out` reports.
pub fn write(threads: &[ThreadResult], out: &mut dyn Write) -> io::Result<()> {
    let targets = || threads.iter().flat_map(|thread| &thread.targets);
    let mut paths: Vec<&str> = Vec::new();
    for target in targets() {
        if !paths.contains(&target.path.as_str()) {
            paths.push(&target.path);
        }
    }
    if paths.len() > 1 {
        for path in paths {
            writeln!(out, "\nLatency distribution: {path}")?;
            write_figures(&Figures::of(targets().filter(|target| target.path == path)), out)?;
        }
    }
    writeln!(out, "\nTotal latency distribution:")?;
    write_figures(&Figures::of(targets()), out)
}

fn write_figures(figures: &Figures, out: &mut dyn Write) -> io::Result<()> {
    let none = LatencySet::default();
    let [read, write] = [&figures.read, &figures.write].map(|side| side.latency.as_ref());
    write_table(read.unwrap_or(&none), write.unwrap_or(&none), out)
}

/// Writes one table without its title.
///
/// # Errors
/// What `out` reports.
pub fn write_table(read: &LatencySet, write: &LatencySet, out: &mut dyn Write) -> io::Result<()> {
    let mut total = read.clone();
    total.merge(write);
    writeln!(out, "  %-ile |  Read (ms) | Write (ms) | Total (ms)\n{}", "-".repeat(46))?;
    for (name, p) in ROWS {
        let cell = |set: &LatencySet| match set.percentile_ms(p) {
            Some(ms) => format!("{ms:.3}"),
            None => "N/A".to_owned(),
        };
        let (read, write) = (cell(read), cell(write));
        let total = total.percentile_ms(p).unwrap_or(0.0);
        writeln!(out, "{name:>7} | {read:>10} | {write:>10} | {total:>10.3}")?;
    }
    Ok(())
}
