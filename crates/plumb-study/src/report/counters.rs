//! What was seen beside a run, per second.

use super::chart::{Axis, Chart, Layer, Side};
use super::of_run;
use super::page::{Data, Plot, cell};
use super::run_view::SpanView;
use serde_json::Value;

use crate::attribution::{self, Attribution};
use crate::identities::Consistency;

/// A series of counters: name, unit, a value per second.
struct Series {
    name: String,
    values: Vec<f64>,
}

/// What holds throughput down, by what was seen beside the run (method, 2.12); `None` where nothing was, and
/// where the page cache lies between the load and the device. `cap` is the limit that holds the run.
pub(super) fn attribution(span: &SpanView, cap: Option<String>) -> Option<Attribution> {
    let rows = span.counters["series"].as_array().filter(|rows| rows.len() >= 3)?;
    let is_direct = span.workload.sync.is_some_and(|(bypasses_cache, _)| bypasses_cache);
    let mean_of = |key: &str| {
        let values: Vec<f64> =
            rows.iter().filter_map(|row| row["devices"][0][key].as_f64()).collect();
        (!values.is_empty()).then(|| finite_mean(&values))
    };
    let throttled: u64 = rows.iter().filter_map(|row| row["throttle_events"].as_u64()).sum();
    let disturbances = match throttled {
        0 => Vec::new(),
        times => vec![format!("processors or drives were throttled {times} times")],
    };
    // The device on top does what the load does: A is 1 there.
    let seen = attribution::Seen {
        disturbances,
        cap,
        // Where the device stood still it says nothing of the generator.
        residual: span.law.1.filter(|_| {
            let law = of_run::facts(span).law();
            !span.workload.limited && law.is_none_or(|law| law.verdict != Consistency::StoodStill)
        }),
        cores: span.cores.iter().map(|core| (core.user + core.kernel) / 100.0).collect(),
        device_busy: mean_of("busy_percent").map(|percent| percent / 100.0),
        device_in_flight: mean_of("in_flight"),
        expected_in_flight: span.outstanding().filter(|_| !span.workload.limited),
        ..attribution::Seen::default()
    };
    is_direct.then(|| attribution::attribute(&seen))
}

/// Plots of devices, pressure, memory and temperatures; none where nothing was recorded.
pub(super) fn plots(span: &SpanView, id: &str) -> Vec<Plot> {
    let empty = Vec::new();
    let rows = span.counters["series"].as_array().unwrap_or(&empty);
    if rows.len() < 3 {
        return Vec::new();
    }
    let at: Vec<f64> =
        rows.iter().map(|row| row["end_ns"].as_f64().unwrap_or(f64::NAN) / 1e9).collect();
    let of = |pointer: &str, factor: f64| -> Vec<f64> {
        let value =
            |row: &Value| row.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN) * factor;
        rows.iter().map(value).collect()
    };
    let devices = span.counters["devices"].as_array().unwrap_or(&empty);
    let mut rates = Vec::new();
    let mut busy = Vec::new();
    for (index, device) in devices.iter().enumerate() {
        let name = device["name"].as_str().unwrap_or("?");
        for (word, key) in [("reads", "reads_per_s"), ("writes", "writes_per_s")] {
            let values = of(&format!("/devices/{index}/{key}"), 1.0);
            rates.push(Series { name: format!("{name} {word}"), values });
        }
        let values = of(&format!("/devices/{index}/busy_percent"), 1.0);
        busy.push(Series { name: name.to_owned(), values });
    }
    let pressure = ["cpu_some", "io_some", "io_full", "memory_some"].map(|key| Series {
        name: key.replace('_', " "),
        values: of(&format!("/pressure/{key}_percent"), 1.0),
    });
    let memory = ["dirty", "writeback"].map(|key| Series {
        name: key.to_owned(),
        values: of(&format!("/memory/{key}_bytes"), 1.0 / 1_048_576.0),
    });
    let sensors = span.counters["temperatures"].as_array().unwrap_or(&empty);
    let heat: Vec<Series> = sensors
        .iter()
        .enumerate()
        .map(|(index, sensor)| Series {
            name: sensor.as_str().unwrap_or("sensor").to_owned(),
            values: of(&format!("/temperatures_c/{index}"), 1.0),
        })
        .collect();
    [
        plot(&at, rates, id, "devices", "Devices under the target", "I/Os per second", 1),
        plot(&at, busy, id, "busy", "Devices: time with an I/O in flight", "%", 1),
        plot(
            &at,
            pressure.into(),
            id,
            "pressure",
            "Pressure: share of time that something waited",
            "%",
            1,
        ),
        plot(&at, memory.into(), id, "memory", "Dirty memory", "MiB", 1),
        plot(&at, heat, id, "heat", "Temperatures", "°C", 0),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the recording itself costs, in a sentence; `None` where nothing was recorded.
pub(super) fn cost(span: &SpanView) -> Option<String> {
    let nanos = span.counters["cost_ns"].as_f64()?;
    Some(format!("Recording costs {:.2} ms of processor time per second.", nanos / 1e6))
}

fn plot(
    at: &[f64],
    series: Vec<Series>,
    id: &str,
    word: &str,
    title: &str,
    unit: &str,
    places: usize,
) -> Option<Plot> {
    let mut series: Vec<Series> = series
        .into_iter()
        .filter(|series| series.values.iter().any(|value| value.is_finite()))
        .collect();
    // What moves most is what is shown; there are six tones.
    series.sort_by(|a, b| largest(&b.values).total_cmp(&largest(&a.values)));
    series.truncate(6);
    let highest = series.first()?;
    let sentence = format!(
        "At most {:.places$} {unit} ({}), {:.places$} {unit} on average.",
        largest(&highest.values),
        highest.name,
        finite_mean(&highest.values)
    );
    let mut names = vec!["end_s"];
    names.extend(series.iter().map(|series| series.name.as_str()));
    let mut data = Data::new(&names);
    for (row, second) in at.iter().enumerate() {
        let cells = series.iter().map(|series| cell(Some(series.values[row])));
        data.rows.push(std::iter::once(cell(Some(*second))).chain(cells).collect());
    }
    let layers = (1_u8..)
        .zip(&series)
        .map(|(tone, series)| Layer::Line {
            name: series.name.clone(),
            side: Side::Left,
            tone,
            points: at.iter().copied().zip(series.values.iter().copied()).collect(),
        })
        .collect();
    Some(Plot {
        id: format!("{id}-{word}"),
        title: title.to_owned(),
        sentence,
        chart: Chart {
            x: Axis::linear("seconds since the measurement began"),
            left: Axis::from_zero(unit),
            right: None,
            layers,
        },
        data,
    })
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max)
}

fn finite_mean(values: &[f64]) -> f64 {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    if finite.is_empty() { 0.0 } else { crate::stats::describe::mean(&finite) }
}
