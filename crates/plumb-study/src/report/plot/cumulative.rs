//! Plot 4, second form: the share of I/Os that took at most so long.

use super::super::chart::{Axis, Chart, Layer, Side};
use super::super::page::{cell, latency};
use super::super::run_view::{Buckets, SpanView};
use super::{Data, Plot};
use crate::percentile::{self, Mark};

/// Points of a line: more would not be told apart.
const POINTS_MOST: usize = 240;

/// The plot; `None` where latencies are not known one by one.
pub(in super::super) fn plot(
    span: &SpanView,
    id: &str,
    earlier: Option<(&str, &SpanView)>,
) -> Option<Plot> {
    let mut lines: Vec<(String, u8, &Buckets)> = vec![
        ("reads".to_owned(), 1, &span.read.buckets),
        ("writes".to_owned(), 2, &span.write.buckets),
    ];
    if let Some((name, before)) = earlier {
        lines.push((format!("reads of {name}"), 6, &before.read.buckets));
        lines.push((format!("writes of {name}"), 5, &before.write.buckets));
    }
    lines.retain(|(_, _, buckets)| buckets.count() > 0);
    let mut data = Data::new(&["side", "latency_ms", "share_percent"]);
    let mut layers = Vec::new();
    for (name, tone, buckets) in &lines {
        let points = shares(buckets);
        for (ms, percent) in &points {
            data.add([name.clone(), cell(Some(*ms)), cell(Some(*percent))]);
        }
        layers.push(Layer::Line { name: name.clone(), side: Side::Left, tone: *tone, points });
    }
    let told = lines.first().map(|(name, _, buckets)| {
        let at = |share: f64| {
            let rank = (buckets.count() as f64 * share).ceil();
            buckets.at_rank(plumb_units::convert::floor_u64(rank).max(1)).unwrap_or_default()
        };
        // The weaker of both ends.
        let mark = percentile::support(0.75, buckets.count()).mark;
        match mark {
            Mark::None => format!("Too few {name} to say what the middle half of them took."),
            mark => format!(
                "The middle half of the {name} took {} to {} (mark {}).",
                latency(at(0.25)),
                latency(at(0.75)),
                mark.keyword()
            ),
        }
    })?;
    Some(Plot {
        id: format!("{id}-cumulative"),
        title: "Share of I/Os by latency".into(),
        sentence: told,
        chart: Chart {
            x: Axis::logarithmic("latency, ms"),
            left: Axis::from_zero("I/Os that took at most so long, %"),
            right: None,
            layers,
        },
        data,
    })
}

/// (milliseconds, percent at most so long) at the middle of each bucket, thinned evenly in percent.
fn shares(buckets: &Buckets) -> Vec<(f64, f64)> {
    let all = buckets.count() as f64;
    let step = 100.0 / POINTS_MOST as f64;
    let mut below = 0;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut last = f64::NEG_INFINITY;
    let count = buckets.middles().count();
    for (index, (ms, number)) in buckets.middles().enumerate() {
        below += number;
        let percent = below as f64 / all * 100.0;
        if percent - last >= step || index + 1 == count {
            points.push((ms, percent));
            last = percent;
        }
    }
    points
}
