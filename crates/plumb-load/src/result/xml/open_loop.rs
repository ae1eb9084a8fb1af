//! Plumb's own element `OpenLoop`: response and service times side by side.

use std::io;

use super::element::Elements;
use super::fixed;
use crate::result::model::{SpanResult, TargetResult};
use crate::result::open_loop::OpenFigures;
use crate::tally::LatencySet;

const PERCENTILES: [(&str, f64); 8] = [
    ("50", 0.50),
    ("90", 0.90),
    ("95", 0.95),
    ("99", 0.99),
    ("99.9", 0.999),
    ("99.99", 0.9999),
    ("99.999", 0.99999),
    ("100", 1.0),
];

/// Nothing for a closed loop.
pub(super) fn write(span: &SpanResult, out: &mut Elements<'_>) -> io::Result<()> {
    let Some(open) = span.open_loop else { return Ok(()) };
    let all: Vec<&TargetResult> = span.threads.iter().flat_map(|thread| &thread.targets).collect();
    out.open("OpenLoop", &[("Rate", &open.rate), ("Arrival", &open.arrival)])?;
    write_figures("Total", &[], &all, out)?;
    let mut indices: Vec<u32> = all.iter().map(|target| target.index).collect();
    indices.sort_unstable();
    indices.dedup();
    for index in indices {
        let of_target: Vec<&TargetResult> =
            all.iter().copied().filter(|target| target.index == index).collect();
        write_figures("Target", &[("Path", &of_target[0].path)], &of_target, out)?;
    }
    for thread in &span.threads {
        let of_thread: Vec<&TargetResult> = thread.targets.iter().collect();
        write_figures("Thread", &[("Id", &thread.id)], &of_thread, out)?;
        for target in thread.targets.iter().filter(|_| thread.targets.len() > 1) {
            let place: [(&str, &dyn std::fmt::Display); 2] =
                [("Id", &thread.id), ("Path", &target.path)];
            write_figures("ThreadTarget", &place, &[target], out)?;
        }
    }
    out.close("OpenLoop")
}

fn write_figures(
    name: &str,
    place: &[(&str, &dyn std::fmt::Display)],
    targets: &[&TargetResult],
    out: &mut Elements<'_>,
) -> io::Result<()> {
    let Some(figures) = OpenFigures::of(targets.iter().copied()) else { return Ok(()) };
    let verdict = figures.verdict.keyword();
    let rate = format!("{:.2}", figures.tally.rate);
    let mut attributes = place.to_vec();
    attributes.push(("Rate", &rate));
    attributes.push(("Verdict", &verdict));
    attributes.push(("Offered", &figures.tally.offered));
    attributes.push(("Completed", &figures.completed));
    attributes.push(("WaitedForRequest", &figures.tally.waited));
    out.open(name, &attributes)?;
    for (name, set) in
        [("Response", &figures.response), ("Service", &figures.service()), ("Lag", &figures.lag())]
    {
        write_set(name, set, out)?;
    }
    out.close(name)
}

/// Mean and percentiles of some latencies; nothing of none.
pub(super) fn write_set(name: &str, set: &LatencySet, out: &mut Elements<'_>) -> io::Result<()> {
    let Some(mean) = set.mean_ms() else { return Ok(()) };
    out.open(name, &[("AverageMilliseconds", &fixed(mean))])?;
    for (percentile, p) in PERCENTILES {
        if let Some(ms) = set.percentile_ms(p) {
            let milliseconds = fixed(ms);
            out.empty("Bucket", &[("Percentile", &percentile), ("Milliseconds", &milliseconds)])?;
        }
    }
    out.close(name)
}
