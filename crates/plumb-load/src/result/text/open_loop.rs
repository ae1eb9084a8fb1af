//! Plumb's own block about an open loop (`--rate`): response and service times side by side.

use std::io::{self, Write};

use super::spans;
use crate::result::model::{RunResult, SpanResult, TargetResult};
use crate::result::open_loop::{OpenFigures, OpenVerdict};
use crate::tally::LatencySet;

const ROWS: [(&str, f64); 8] = [
    ("50th", 0.50),
    ("90th", 0.90),
    ("95th", 0.95),
    ("99th", 0.99),
    ("3-nines", 0.999),
    ("4-nines", 0.9999),
    ("5-nines", 0.99999),
    ("max", 1.0),
];

/// Writes the block and the empty line before it; nothing when every loop was closed.
///
/// # Errors
/// What `out` reports.
pub fn write(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    let is_open = |span: &SpanResult| span.is_measured() && span.open_loop.is_some();
    let several = result.time_spans.len() > 1;
    for (number, (span, _)) in (1..).zip(spans(result)).filter(|(_, (span, _))| is_open(span)) {
        writeln!(out, "\nOpen loop\n---------")?;
        if several {
            writeln!(out, "\ttimespan: {number:>3}")?;
        }
        write_span(span, out)?;
    }
    Ok(())
}

fn write_span(span: &SpanResult, out: &mut dyn Write) -> io::Result<()> {
    let targets = || span.threads.iter().flat_map(|thread| &thread.targets);
    let (Some(open), Some(total)) =
        (span.open_loop, OpenFigures::of(targets().collect::<Vec<_>>()))
    else {
        return Ok(());
    };
    let seconds = span.elapsed.as_secs_f64();
    writeln!(
        out,
        "\trate: {} I/Os per second, {} arrivals: {}",
        open.rate,
        open.arrival,
        total.verdict.keyword()
    )?;
    writeln!(
        out,
        "\tmeant to start: {}, completed: {} ({:.2} per second), waited for a request: {}",
        total.tally.offered,
        total.completed,
        total.completed as f64 / seconds,
        total.tally.waited
    )?;
    writeln!(out, "\tLatencies above are response times: they count from the intended start.\n")?;
    let (service, lag) = (total.service(), total.lag());
    writeln!(out, "  %-ile | Response (ms) | Service (ms) |   Lag (ms)\n{}", "-".repeat(52))?;
    let bound = bound(total.verdict);
    let row = |name: &str, value: &dyn Fn(&LatencySet) -> Option<f64>, out: &mut dyn Write| {
        let cell = |set| value(set).map_or("N/A".to_owned(), |ms| format!("{ms:.3}"));
        let response = format!("{bound}{}", cell(&total.response));
        writeln!(out, "{name:>7} | {response:>13} | {:>12} | {:>10}", cell(&service), cell(&lag))
    };
    row("mean", &LatencySet::mean_ms, out)?;
    for (name, p) in ROWS {
        row(name, &|set| set.percentile_ms(p), out)?;
    }
    let line = "-".repeat(105);
    writeln!(
        out,
        "\nthread |  asked I/O/s |   done I/O/s | resp. 50th | resp. 99th | serv. 50th | serv. 99th | lag 99th | target\n{line}"
    )?;
    let mut seen: Vec<u32> = Vec::new();
    for thread in &span.threads {
        for target in &thread.targets {
            if !seen.contains(&target.index) {
                seen.push(target.index);
            }
            write_row(&thread.id.to_string(), &[target], seconds, out)?;
        }
        if thread.targets.len() > 1 {
            let all: Vec<&TargetResult> = thread.targets.iter().collect();
            write_row(&format!("{}:", thread.id), &all, seconds, out)?;
        }
    }
    writeln!(out, "{line}")?;
    for index in seen {
        let all: Vec<&TargetResult> = targets().filter(|target| target.index == index).collect();
        write_row("total:", &all, seconds, out)?;
    }
    Ok(())
}

/// `≥` in ASCII before response times that would have been larger in a longer run.
fn bound(verdict: OpenVerdict) -> &'static str {
    if verdict == OpenVerdict::Saturated { ">= " } else { "" }
}

fn write_row(
    name: &str,
    targets: &[&TargetResult],
    seconds: f64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(figures) = OpenFigures::of(targets.iter().copied()) else { return Ok(()) };
    let ms = |set: &LatencySet, p| set.percentile_ms(p).unwrap_or(0.0);
    let (service, lag) = (figures.service(), figures.lag());
    let bound = bound(figures.verdict);
    let response = |p| format!("{bound}{:.3}", ms(&figures.response, p));
    let path = match targets {
        [first, rest @ ..] if rest.iter().all(|target| target.index == first.index) => &first.path,
        _ => "all",
    };
    writeln!(
        out,
        "{name:>6} | {:>12.2} | {:>12.2} | {:>10} | {:>10} | {:>10.3} | {:>10.3} | {:>8.3} | {path} ({})",
        figures.tally.rate,
        figures.completed as f64 / seconds,
        response(0.5),
        response(0.99),
        ms(&service, 0.5),
        ms(&service, 0.99),
        ms(&lag, 0.99),
        figures.verdict.keyword()
    )
}
