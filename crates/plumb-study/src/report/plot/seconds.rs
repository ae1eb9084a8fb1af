//! Plot 2: throughput, latency and processors per interval.

use serde_json::Value;

use super::super::chart::{Axis, Chart, Layer, Side};
use super::super::page::{cell, rate};
use super::super::run_view::{IntervalView, SpanView};
use super::{Data, Plot};
use crate::precision;
use crate::stats::describe::{deviation, mean};
use crate::steadiness::{Gate, Quantity, Steadiness, Verdict};

/// Points that a plot shows at most; more are averaged.
const POINTS_MOST: usize = 400;

/// The plot; `None` with fewer than three intervals.
pub(in super::super) fn plot(span: &SpanView, id: &str) -> Option<Plot> {
    if span.intervals.len() < 3 {
        return None;
    }
    let joined = span.intervals.len().div_ceil(POINTS_MOST);
    let means = |of: &dyn Fn(&IntervalView) -> f64| -> Vec<(f64, f64)> {
        span.intervals
            .chunks(joined)
            .map(|chunk| {
                let values: Vec<f64> =
                    chunk.iter().map(of).filter(|value| value.is_finite()).collect();
                let value = if values.is_empty() { f64::NAN } else { mean(&values) };
                (chunk.last().map_or(0.0, |last| last.end_s), value)
            })
            .collect()
    };
    let mut layers = Vec::new();
    let Steadiness { warm_up, phases, .. } = span.steadiness();
    let cut_s = warm_up.drop as f64 * span.interval_s;
    if warm_up.drop > 0 {
        layers.push(Layer::Range { name: "not steady yet".into(), x: (0.0, cut_s) });
    }
    if let Some(phases) = phases {
        let at = cut_s + phases.at as f64 * span.interval_s;
        layers.push(Layer::Mark { name: "level changes".into(), x: at });
    }
    layers.push(Layer::Line {
        name: "I/Os per second".into(),
        side: Side::Left,
        tone: 1,
        points: means(&|interval| interval.iops),
    });
    let has_latency = span.intervals.iter().any(|interval| interval.mean_ms.is_some());
    if has_latency {
        layers.push(Layer::Line {
            name: "mean latency, ms".into(),
            side: Side::Right,
            tone: 2,
            points: means(&|interval| interval.mean_ms.unwrap_or(f64::NAN)),
        });
    }
    let busy = processors(span);
    if !busy.is_empty() {
        layers.insert(
            0,
            Layer::Strip {
                name: "processors busy, %: the strip is 100".into(),
                tone: 6,
                full: 100.0,
                points: busy.iter().map(|(end_s, mean, _)| (*end_s, *mean)).collect(),
            },
        );
    }
    for (at, times) in throttled(span) {
        let name = format!("throttled {times} times");
        layers.push(Layer::Mark { name, x: at });
    }
    let chart = Chart {
        x: Axis::linear("seconds since the measurement began"),
        left: Axis::from_zero("I/Os per second"),
        right: has_latency.then(|| Axis::from_zero("mean latency, ms")),
        layers,
    };
    let mut sentence = sentence(span);
    if joined > 1 {
        sentence.push_str(&format!(" Each point is the mean of {joined} intervals."));
    }
    if let Some((mean, most)) = level(&busy) {
        sentence.push_str(&format!(
            " All processors together were {mean:.0} % busy; the busiest one in any second {most:.0} %."
        ));
    }
    let columns = ["end_s", "iops", "mean_lat_ms", "cpu_percent", "busiest_cpu_percent"];
    let mut data = Data::new(&columns);
    for interval in &span.intervals {
        let beside = busy
            .iter()
            .min_by(|a, b| (a.0 - interval.end_s).abs().total_cmp(&(b.0 - interval.end_s).abs()));
        let beside = beside.filter(|row| (row.0 - interval.end_s).abs() <= 0.75);
        data.add([
            cell(Some(interval.end_s)),
            cell(Some(interval.iops)),
            cell(interval.mean_ms),
            cell(beside.map(|row| row.1)),
            cell(beside.map(|row| row.2)),
        ]);
    }
    let id = format!("{id}-seconds");
    let title = match busy.is_empty() {
        true => "Throughput and latency over time",
        false => "Throughput, latency and processors over time",
    };
    Some(Plot { id, title: title.into(), sentence, chart, data })
}

/// (end in seconds, mean and busiest processor in percent) of each second that was looked at.
fn processors(span: &SpanView) -> Vec<(f64, f64, f64)> {
    let rows = span.counters["series"].as_array().map_or(&[][..], Vec::as_slice);
    let row = |row: &Value| {
        let shares = row["processors_percent"].as_array()?;
        let shares: Vec<f64> = shares.iter().filter_map(Value::as_f64).collect();
        let most = shares.iter().copied().reduce(f64::max)?;
        Some((row["end_ns"].as_f64()? / 1e9, mean(&shares), most))
    };
    rows.iter().filter_map(row).collect()
}

/// Mean over time of all, and the most of any.
fn level(busy: &[(f64, f64, f64)]) -> Option<(f64, f64)> {
    let most = busy.iter().map(|row| row.2).reduce(f64::max)?;
    Some((mean(&busy.iter().map(|row| row.1).collect::<Vec<_>>()), most))
}

/// Seconds in which processors or drives were throttled, and how often.
fn throttled(span: &SpanView) -> Vec<(f64, u64)> {
    let rows = span.counters["series"].as_array().map_or(&[][..], Vec::as_slice);
    let row = |row: &Value| {
        let times = row["throttle_events"].as_u64().filter(|times| *times > 0)?;
        Some((row["end_ns"].as_f64()? / 1e9, times))
    };
    // A long one would be all marks.
    rows.iter().filter_map(row).take(8).collect()
}

/// Whether it was steady, and how precisely its mean is known.
pub(in super::super) fn sentence(span: &SpanView) -> String {
    let series = span.series();
    let found = span.steadiness();
    let rest = &series[found.cut()..];
    let seconds = |intervals: usize| intervals as f64 * span.interval_s;
    let varies = match mean(rest) {
        level if level > 0.0 => {
            format!(
                "single intervals of throughput vary by {:.1} %",
                deviation(rest) / level * 100.0
            )
        }
        _ => "nothing completed".to_owned(),
    };
    let precise = precision::of_series(rest).map_or_else(String::new, |interval| {
        format!(
            "; the mean is known to ±{:.2} % (95 %, within this run only)",
            interval.relative() * 100.0
        )
    });
    if let Some(phases) = found.phases {
        return format!(
            "The level changes from {} to {} I/Os per second after {:.0} s: a cache, a tier or a limit. The later level is the one that lasts{}.",
            rate(phases.before),
            rate(phases.after),
            seconds(found.cut()),
            match found.verdict {
                Verdict::Varies(gate) => format!(
                    ", but {} is not steady there: {}",
                    name(gate.of).to_lowercase(),
                    differs(&gate)
                ),
                _ => String::new(),
            }
        );
    }
    match (found.verdict, found.warm_up.drop) {
        (Verdict::Unsettled(of), _) => format!(
            "{} never became steady: the run was too short, or something else was at work.",
            name(of)
        ),
        (Verdict::Varies(gate), _) => format!(
            "{} was not steady: {}, and {varies}. Its mean says little of a longer run.",
            name(gate.of),
            differs(&gate)
        ),
        (Verdict::TooShort, _) => format!(
            "The run was too short to tell whether it was steady: that takes five intervals of 200 I/Os each; {varies}."
        ),
        (Verdict::Steady(_), 0) => {
            format!("Throughput was steady from the start; {varies}{precise}.")
        }
        (Verdict::Steady(_), drop) => {
            format!("Throughput was steady after {:.0} s; {varies}{precise}.", seconds(drop))
        }
    }
}

fn name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Throughput => "Throughput",
        Quantity::Latency => "Latency",
    }
}

/// What the window gate found, and what it allows.
fn differs(gate: &Gate) -> String {
    let (excursion, drift) = gate.limits();
    let what = format!("five rounds of {} s", decimals(gate.round_s));
    let percent = |part: f64| part * 100.0;
    match gate.window.excursion > excursion {
        true => format!(
            "{what} differ by {:.0} % of their mean, and steady is at most {:.0} %",
            percent(gate.window.excursion),
            percent(excursion)
        ),
        false => format!(
            "{what} drift by {:.1} %, and steady is at most {:.0} %",
            percent(gate.window.drift),
            percent(drift)
        ),
    }
}

/// As few as it needs, and one at most.
fn decimals(seconds: f64) -> String {
    let rounded = format!("{seconds:.1}");
    rounded.strip_suffix(".0").unwrap_or(&rounded).to_owned()
}
