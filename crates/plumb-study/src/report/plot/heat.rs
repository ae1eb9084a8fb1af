//! Plot 3: time over latency, as many I/Os as dark.

use std::collections::BTreeMap;

use super::super::chart::{Axis, Cell, Chart, Layer};
use super::super::page::{cell, latency};
use super::super::run_view::{Buckets, IntervalView, SpanView};
use super::{Data, Plot};
use crate::percentile;

/// Columns at most.
const COLUMNS: usize = 90;
/// Rows per decade of latency.
const PER_DECADE: f64 = 12.0;

/// One side of an interval.
type Of = fn(&IntervalView) -> &Buckets;

/// A plot for reads and one for writes, where latencies were kept per interval.
pub(in super::super) fn plots(span: &SpanView, id: &str) -> Vec<Plot> {
    let sides: [(&str, Of); 2] =
        [("reads", |interval| &interval.read), ("writes", |interval| &interval.write)];
    sides.into_iter().filter_map(|(name, of)| plot(span, id, name, of)).collect()
}

fn plot(span: &SpanView, id: &str, name: &str, of: Of) -> Option<Plot> {
    if span.intervals.len() < 3 || span.intervals.iter().all(|interval| of(interval).is_empty()) {
        return None;
    }
    let joined = span.intervals.len().div_ceil(COLUMNS);
    let row = |ms: f64| plumb_units::convert::floor_u64((ms * 1e6).max(1.0).log10() * PER_DECADE);
    let edge = |row: u64| 10_f64.powf(row as f64 / PER_DECADE) / 1e6;
    let mut counts: Vec<((f64, f64), BTreeMap<u64, u64>)> = Vec::new();
    let mut from = 0.0;
    for chunk in span.intervals.chunks(joined) {
        let mut column: BTreeMap<u64, u64> = BTreeMap::new();
        for (ms, count) in chunk.iter().flat_map(|interval| of(interval).middles()) {
            *column.entry(row(ms)).or_default() += count;
        }
        let to = chunk.last().map_or(from, |last| last.end_s);
        counts.push(((from, to), column));
        from = to;
    }
    let most = counts.iter().flat_map(|(_, column)| column.values()).copied().max()?;
    let mut cells = Vec::new();
    let mut data = Data::new(&["from_s", "to_s", "latency_from_ms", "latency_to_ms", "count"]);
    for (x, column) in &counts {
        for (row, count) in column {
            let y = (edge(*row), edge(row + 1));
            let weight = (*count as f64).ln_1p() / (most as f64).ln_1p();
            cells.push(Cell { x: *x, y, weight });
            data.add([
                cell(Some(x.0)),
                cell(Some(x.1)),
                cell(Some(y.0)),
                cell(Some(y.1)),
                count.to_string(),
            ]);
        }
    }
    let all = span.intervals.iter().fold(Buckets::default(), |all, interval| all.and(of(interval)));
    let median = all.at_rank(all.count().div_ceil(2))?;
    let largest = all.at_rank(all.count())?;
    Some(Plot {
        id: format!("{id}-heat-{name}"),
        title: format!("Latency of {name} over time"),
        sentence: format!(
            "Half of the {name} took {} or less (mark {}), the slowest {}. The darker, the more I/Os (logarithmic).",
            latency(median),
            percentile::support(0.5, all.count()).mark.keyword(),
            latency(largest)
        ),
        chart: Chart {
            x: Axis::linear("seconds since the measurement began"),
            left: Axis::logarithmic("latency, ms"),
            right: None,
            layers: vec![Layer::Cells { name: format!("number of {name}"), cells }],
        },
        data,
    })
}
