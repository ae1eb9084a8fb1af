//! Plot 3: time over latency, as many I/Os as dark.

use std::collections::{BTreeMap, BTreeSet};

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
    // A column per range of latencies: a line per cell would be most of the page.
    let ranges: BTreeSet<u64> =
        counts.iter().flat_map(|(_, column)| column.keys()).copied().collect();
    let range =
        |row: &u64| format!("{} to {} ms", cell(Some(edge(*row))), cell(Some(edge(row + 1))));
    let names = ["from_s".to_owned(), "to_s".to_owned()].into_iter();
    let columns = names.chain(ranges.iter().map(range)).collect();
    let mut data = Data { columns, rows: Vec::new() };
    for (x, column) in &counts {
        for (row, count) in column {
            let y = (edge(*row), edge(row + 1));
            let weight = (*count as f64).ln_1p() / (most as f64).ln_1p();
            cells.push(Cell { x: *x, y, weight });
        }
        let counted = |row: &u64| column.get(row).map_or_else(String::new, u64::to_string);
        let times = [x.0, x.1].map(|time| cell(Some(time))).into_iter();
        data.rows.push(times.chain(ranges.iter().map(counted)).collect());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::chart::svg;

    /// Sixty seconds of a busy device: four decades of latency with as many I/Os as chance has it.
    fn busy() -> SpanView {
        let mut chance = 1_u64;
        let intervals = (1..=60).map(|second| {
            let buckets = (0..160).map(|place| {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                let low = 20_000.0 * 10_f64.powf(f64::from(place) / 40.0);
                (low.floor(), 100.0, 1 + (chance >> 33) % (1 << (chance >> 60)))
            });
            let read = Buckets::new(buckets.collect());
            IntervalView { end_s: f64::from(second), read, ..IntervalView::default() }
        });
        SpanView { intervals: intervals.collect(), ..SpanView::default() }
    }

    /// A page shows up to four runs with two such plots each, and of 500 runs it has at most 3 MB.
    #[test]
    fn a_minute_takes_little_of_a_page() {
        let plots = plots(&busy(), "run");
        let plot = plots.first().expect("of the reads");
        let Layer::Cells { cells, .. } = &plot.chart.layers[0] else { panic!("{:?}", plot.chart) };
        assert!(cells.len() > 2_000, "{}", cells.len());
        let drawn = svg(&plot.chart, &plot.title).len();
        let told: usize = plot.data.rows.iter().flatten().map(|cell| cell.len() + 1).sum();
        assert!(drawn < 32 * cells.len() && told < 8 * cells.len(), "{drawn} {told}");
    }

    /// A line per time, and all I/Os are in it.
    #[test]
    fn the_data_has_every_io() {
        let span = busy();
        let plots = plots(&span, "run");
        let data = &plots[0].data;
        assert_eq!(data.rows.len(), 60);
        assert_eq!(data.columns[..2], ["from_s", "to_s"]);
        assert!(data.columns[2..].iter().all(|name| name.ends_with(" ms")), "{:?}", data.columns);
        for (row, interval) in data.rows.iter().zip(&span.intervals) {
            assert_eq!(row.len(), data.columns.len());
            let counts = row[2..].iter().filter(|cell| !cell.is_empty());
            let all: u64 = counts.map(|cell| cell.parse::<u64>().expect("a number")).sum();
            assert_eq!(all, interval.read.count());
        }
    }
}
