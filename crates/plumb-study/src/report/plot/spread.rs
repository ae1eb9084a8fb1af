//! Plot 10: how far threads lie apart.

use super::super::chart::{Axis, Chart, Dot, Layer, Side};
use super::super::page::{cell, rate};
use super::super::run_view::SpanView;
use super::{Data, Plot};
use crate::reading::Spread;
use crate::stats::describe::mean;

/// The plot; `None` with fewer than two threads.
pub(in super::super) fn plot(span: &SpanView, id: &str) -> Option<Plot> {
    let spread = Spread::of(&span.threads)?;
    let mut data = Data::new(&["thread", "iops"]);
    for (thread, iops) in span.threads.iter().enumerate() {
        data.add([thread.to_string(), cell(Some(*iops))]);
    }
    let low = span.threads.iter().copied().fold(f64::INFINITY, f64::min);
    let high = span.threads.iter().copied().fold(0.0, f64::max);
    let even = if spread.range > 0.10 || spread.variation > 0.03 {
        "uneven: they contend, or run on processors that differ"
    } else {
        "even"
    };
    // Threads are counted: there is none between two of them.
    let names = match span.threads.len() {
        count @ ..=32 => (0..count).map(|thread| (thread as f64, thread.to_string())).collect(),
        _ => Vec::new(),
    };
    let dots = span.threads.iter().enumerate().map(|(thread, iops)| Dot {
        x: thread as f64,
        y: *iops,
        name: format!("thread {thread}: {} I/Os per second", rate(*iops)),
        ..Dot::default()
    });
    Some(Plot {
        id: format!("{id}-threads"),
        title: "Threads".into(),
        sentence: format!(
            "Threads made {} to {} I/Os per second, {:.1} % apart: {even}.",
            rate(low),
            rate(high),
            spread.range * 100.0
        ),
        chart: Chart {
            x: Axis::named("thread", names),
            left: Axis::from_zero("I/Os per second"),
            right: None,
            layers: vec![
                Layer::Dots {
                    name: "threads".into(),
                    side: Side::Left,
                    tone: 1,
                    dots: dots.collect(),
                },
                Layer::Level { name: "mean".into(), y: mean(&span.threads) },
            ],
        },
        data,
    })
}
