//! Plot 4: latencies by percentile, each with its mark (method, 5.4).

use super::super::chart::{Axis, Chart, Dot, Layer, Side};
use super::super::page::{cell, latency};
use super::super::run_view::{Buckets, IntervalView, SideView, SpanView};
use super::{Data, Plot};
use crate::percentile::{self, EPISODES_FEW, Mark, Support, TAIL, with_episodes};

/// What is shown, in percent.
const SHOWN: [f64; 8] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999];

/// A percentile with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Row {
    pub(in super::super) percent: f64,
    pub(in super::super) ms: f64,
    pub(in super::super) interval: Option<(f64, f64)>,
    pub(in super::super) support: Support,
    /// Intervals of the measurement with an I/O that took as long or longer, and all of them; `None` where
    /// latencies were not kept per interval, or the percentile is below the tail.
    pub(in super::super) spread: Option<(usize, usize)>,
}

/// Which I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Which {
    Reads,
    Writes,
    All,
}

impl Which {
    fn side(self, span: &SpanView) -> &SideView {
        match self {
            Self::Reads => &span.read,
            Self::Writes => &span.write,
            Self::All => &span.total,
        }
    }

    fn buckets(self, interval: &IntervalView) -> Vec<&Buckets> {
        match self {
            Self::Reads => vec![&interval.read],
            Self::Writes => vec![&interval.write],
            Self::All => vec![&interval.read, &interval.write],
        }
    }
}

/// How close two buckets' middles are that hold the same value.
const SAME: f64 = 0.008;

impl Row {
    /// The value as it may be printed: `–` without an upper end, a lower bound in brackets where weak.
    pub(in super::super) fn printed(&self) -> String {
        match (self.support.mark, self.interval) {
            (Mark::None, _) => "–".to_owned(),
            (Mark::Weak, interval) => {
                let low = interval.map_or(self.ms, |(low, _)| low);
                format!("({}, ≥ {})", latency(self.ms), latency(low))
            }
            _ => latency(self.ms),
        }
    }

    /// Its mark, and what it rests on.
    pub(in super::super) fn mark(&self) -> String {
        let mark = match self.support.mark {
            Mark::Good => "good".to_owned(),
            Mark::None => return "none: too few I/Os".to_owned(),
            mark => format!("{}: rests on {:.0} I/Os", mark.keyword(), self.support.above),
        };
        with_episodes(&mark, self.percent, self.spread)
    }

    /// Intervals that hold an I/O as slow, of all, where either are few: one stall delays everything in flight
    /// (method, 5.4).
    pub(in super::super) fn few_intervals(&self) -> Option<(usize, usize)> {
        self.spread.filter(|(with, _)| *with < EPISODES_FEW)
    }
}

/// How many intervals have an I/O of `ms` or longer.
pub(in super::super) fn spread(
    intervals: &[IntervalView],
    which: Which,
    ms: f64,
) -> Option<(usize, usize)> {
    let has_any = |interval: &&IntervalView| {
        which.buckets(interval).iter().any(|buckets| !buckets.is_empty())
    };
    let all = intervals.iter().filter(has_any).count();
    let is_slow = |interval: &&IntervalView| {
        let mut middles = which.buckets(interval).into_iter().flat_map(Buckets::middles);
        middles.any(|(middle, count)| count > 0 && middle >= ms * (1.0 - SAME))
    };
    let with = intervals.iter().filter(is_slow).count();
    // Some interval has them, or the intervals do not hold all I/Os.
    (with > 0).then_some((with, all))
}

/// The rows of some I/Os of a time span; empty without latencies.
pub(in super::super) fn rows(span: &SpanView, which: Which) -> Vec<Row> {
    let side = which.side(span);
    let count = if side.buckets.is_empty() { side.count } else { side.buckets.count() };
    let row = |percent: f64| {
        let support = percentile::support(percent / 100.0, count);
        let stated = side.percentiles.iter().find(|(p, _)| (p - percent).abs() < 1e-6);
        let ms = side.buckets.at_rank(support.rank).or(stated.map(|(_, ms)| *ms))?;
        let bounds = support
            .interval
            .and_then(|(low, high)| side.buckets.at_rank(low).zip(side.buckets.at_rank(high)));
        let spread = if percent < TAIL { None } else { spread(&span.intervals, which, ms) };
        Some(Row { percent, ms, interval: bounds, support, spread })
    };
    SHOWN.into_iter().filter_map(row).collect()
}

/// `99.9` as `99.9th`.
pub(in super::super) fn ordinal(percent: f64) -> String {
    format!("{percent}th percentile")
}

/// The plot, with an earlier run of the same workload under it where there is one; `None` without latencies.
pub(in super::super) fn plot(
    span: &SpanView,
    id: &str,
    earlier: Option<(&str, &SpanView)>,
) -> Option<Plot> {
    let sides = [("reads", 1, Which::Reads), ("writes", 2, Which::Writes)];
    let mut layers = Vec::new();
    let mut data = Data::new(&[
        "side",
        "percentile",
        "latency_ms",
        "low_ms",
        "high_ms",
        "mark",
        "rests_on",
        "intervals_with",
        "intervals",
    ]);
    let nines = |row: &Row| 1.0 / (1.0 - row.percent / 100.0);
    for (name, tone, which) in sides {
        let rows = rows(span, which);
        let solid: Vec<&Row> = rows.iter().filter(|row| row.support.mark != Mark::None).collect();
        if solid.is_empty() {
            continue;
        }
        let band: Vec<(f64, f64, f64)> = solid
            .iter()
            .filter_map(|row| row.interval.map(|(low, high)| (nines(row), low, high)))
            .collect();
        if band.len() > 1 {
            layers.push(Layer::Between {
                name: format!("95 % interval, {name}"),
                tone,
                points: band,
            });
        }
        layers.push(Layer::Line {
            name: name.to_owned(),
            side: Side::Left,
            tone,
            points: solid.iter().map(|row| (nines(row), row.ms)).collect(),
        });
        let dots = solid.iter().map(|row| Dot {
            x: nines(row),
            y: row.ms,
            bar: row.interval,
            hollow: row.support.mark == Mark::Weak,
            name: format!("{name}, {}: {} ({})", ordinal(row.percent), row.printed(), row.mark()),
        });
        layers.push(Layer::Dots {
            name: format!("{name}; hollow: weak"),
            side: Side::Left,
            tone,
            dots: dots.collect(),
        });
        rows.iter().for_each(|row| add(&mut data, name, row));
    }
    for (name, tone, which) in [("reads", 6, Which::Reads), ("writes", 5, Which::Writes)] {
        let Some((of, before)) = earlier.filter(|_| !layers.is_empty()) else { break };
        let rows = rows(before, which);
        let solid: Vec<&Row> = rows.iter().filter(|row| row.support.mark != Mark::None).collect();
        if solid.is_empty() {
            continue;
        }
        let name = format!("{name} of {of}");
        layers.push(Layer::Line {
            name: name.clone(),
            side: Side::Left,
            tone,
            points: solid.iter().map(|row| (nines(row), row.ms)).collect(),
        });
        rows.iter().for_each(|row| add(&mut data, &name, row));
    }
    if layers.is_empty() {
        return None;
    }
    let mut axis = Axis::logarithmic("percentile");
    let told = data.rows.iter().filter(|row| !row[2].is_empty());
    let last = told.filter_map(|row| row[1].parse().ok()).fold(0.0, f64::max);
    let shown = SHOWN.iter().filter(|percent| **percent <= last + 1e-9);
    axis.names = shown.map(|p| (1.0 / (1.0 - p / 100.0), format!("{p}"))).collect();
    Some(Plot {
        id: format!("{id}-percentiles"),
        title: "Latency by percentile".into(),
        sentence: sentence(span, earlier),
        chart: Chart { x: axis, left: Axis::logarithmic("latency, ms"), right: None, layers },
        data,
    })
}

fn add(data: &mut Data, name: &str, row: &Row) {
    let is_told = row.support.mark != Mark::None;
    data.add([
        name.to_owned(),
        cell(Some(row.percent)),
        cell(Some(row.ms).filter(|_| is_told)),
        cell(row.interval.map(|(low, _)| low)),
        cell(row.interval.map(|(_, high)| high)),
        row.support.mark.keyword().to_owned(),
        cell(Some(row.support.above)),
        row.spread.map_or_else(String::new, |(with, _)| with.to_string()),
        row.spread.map_or_else(String::new, |(_, all)| all.to_string()),
    ]);
}

fn sentence(span: &SpanView, earlier: Option<(&str, &SpanView)>) -> String {
    let rows = rows(span, Which::All);
    let before = earlier.and_then(|(name, before)| {
        let rows = self::rows(before, Which::All);
        let row = rows.into_iter().find(|row| (row.percent - 99.0).abs() < 1e-9)?;
        (row.support.mark != Mark::None).then(|| {
            format!(" In {name} these 99 took {} or less (mark {}).", row.printed(), row.mark())
        })
    });
    let before = before.unwrap_or_default();
    let told = |percent: f64| {
        let row = rows.iter().find(|row| (row.percent - percent).abs() < 1e-9)?;
        (row.support.mark != Mark::None).then(|| (row.printed(), row.mark()))
    };
    let last = rows.iter().rfind(|row| row.support.mark != Mark::None);
    match (told(50.0), told(99.0), last) {
        (Some((median, own)), Some((p99, mark)), Some(last)) => format!(
            "Half of the I/Os took {median} or less (mark {own}), 99 of 100 {p99} (mark {mark}).{before} The data say something up to the {}.",
            ordinal(last.percent)
        ),
        _ => "Too few I/Os for percentiles that could be relied on.".to_owned(),
    }
}
