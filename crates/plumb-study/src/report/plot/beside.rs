//! What is known of each queue depth beside throughput and mean latency, and plot 6's second form.

use super::super::chart::{Axis, Chart, Dot, Layer, Side};
use super::super::page::{cell, latency};
use super::{Data, Plot};
use crate::percentile::{Mark, OverRuns};

/// What is known of a queue depth.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Depth {
    /// Outstanding I/Os per thread.
    pub(in super::super) o: u64,
    /// The 99th percentile over its runs in milliseconds, and the least of their marks.
    pub(in super::super) p99: Option<(OverRuns, Mark)>,
    /// What is to be said of its episodes (5.4).
    pub(in super::super) episodes: Option<String>,
    /// Microseconds of processor time of the whole machine per I/O.
    pub(in super::super) cpu_us: Option<f64>,
}

/// A point of an earlier curve: o, I/Os per second, mean latency in milliseconds.
pub(in super::super) type Before = (u64, f64, f64);

/// What a curve is drawn with beside its own rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in super::super) struct Beside {
    /// Each queue depth of which more is known, ascending.
    pub(in super::super) depths: Vec<Depth>,
    /// The same curve of an earlier study, with its name.
    pub(in super::super) earlier: Option<(String, Vec<Before>)>,
}

impl Beside {
    /// The 99th percentile of a queue depth as it may be told: with its mark, and not at all without an upper end.
    pub(in super::super) fn p99(&self, o: u64) -> Option<(OverRuns, Mark)> {
        let depth = self.depths.iter().find(|depth| depth.o == o)?;
        depth.p99.filter(|(_, mark)| *mark != Mark::None)
    }

    /// The mark of the 99th percentile of a queue depth, with what is to be said of its episodes; empty without one.
    pub(in super::super) fn p99_mark(&self, o: u64) -> String {
        let Some((_, mark)) = self.p99(o) else { return String::new() };
        let depth = self.depths.iter().find(|depth| depth.o == o);
        match depth.and_then(|depth| depth.episodes.as_ref()) {
            Some(episodes) => format!("{}; {episodes}", mark.keyword()),
            None => mark.keyword().to_owned(),
        }
    }

    /// What was measured of a queue depth in processor time.
    pub(in super::super) fn cpu_us(&self, o: u64) -> Option<f64> {
        self.depths.iter().find(|depth| depth.o == o)?.cpu_us
    }

    /// Dots of the 99th percentiles; hollow where the mark is weak.
    pub(in super::super) fn dots(&self) -> Vec<Dot> {
        let dot = |depth: &Depth| {
            let (over, mark) = self.p99(depth.o)?;
            Some(Dot {
                x: depth.o as f64,
                y: over.median,
                bar: (over.high > over.low).then_some((over.low, over.high)),
                hollow: mark == Mark::Weak,
                name: format!(
                    "o{}: 99th percentile {} (mark {})",
                    depth.o,
                    latency(over.median),
                    self.p99_mark(depth.o)
                ),
            })
        };
        self.depths.iter().filter_map(dot).collect()
    }
}

/// The axis of queue depths: by factors where it is wide, for a search climbs by doublings.
pub(in super::super) fn across(first: u64, last: u64) -> Axis {
    let label = "outstanding I/Os per thread, o";
    match last >= first.saturating_mul(WIDE) {
        true => Axis::logarithmic(label),
        false => Axis::linear(label),
    }
}

/// A range over so many times its beginning is wide.
const WIDE: u64 = 32;

/// Processor time per I/O over queue depth; `None` with fewer than two depths that have it.
pub(in super::super) fn plot(beside: &Beside, id: &str, title: &str) -> Option<Plot> {
    let known: Vec<(u64, f64)> =
        beside.depths.iter().filter_map(|depth| Some((depth.o, depth.cpu_us?))).collect();
    let ((first, at_first), (last, at_last)) = (*known.first()?, *known.last()?);
    if first == last {
        return None;
    }
    let mut data = Data::new(&["o", "cpu_us_per_io"]);
    for (o, micros) in &known {
        data.add([o.to_string(), cell(Some(*micros))]);
    }
    let points: Vec<(f64, f64)> = known.iter().map(|(o, micros)| (*o as f64, *micros)).collect();
    Some(Plot {
        id: format!("{id}-cost"),
        title: format!("{title}: processor time per I/O"),
        sentence: format!(
            "An I/O costs {at_first:.1} µs of processor time of the whole machine at o{first} and {at_last:.1} µs at o{last}."
        ),
        chart: Chart {
            x: across(first, last),
            left: Axis::from_zero("µs of processor time per I/O"),
            right: None,
            layers: vec![
                Layer::Line {
                    name: "µs per I/O".into(),
                    side: Side::Left,
                    tone: 1,
                    points: points.clone(),
                },
                Layer::Dots {
                    name: "settings".into(),
                    side: Side::Left,
                    tone: 1,
                    dots: points
                        .into_iter()
                        .map(|(x, y)| Dot {
                            x,
                            y,
                            name: format!("o{x}: {y:.1} µs"),
                            ..Dot::default()
                        })
                        .collect(),
                },
            ],
        },
        data,
    })
}
