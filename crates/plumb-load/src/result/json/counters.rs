//! What was seen beside a run, as JSON.

use plumb_io::counters::{Counters, DeviceRates, Second};
use serde_json::{Value, json};

/// The member `counters` of a time span (docs/reference/json-result.md).
#[must_use]
pub fn value(counters: &Counters) -> Value {
    json!({
        "cost_ns": counters.cost.0,
        "devices": counters.devices.iter().zip(&counters.bottom).map(|(name, is_bottom)| json!({ "name": name, "is_bottom": is_bottom })).collect::<Vec<_>>(),
        "processors": counters.processors,
        "temperatures": counters.sensors,
        "series": counters.seconds.iter().map(second).collect::<Vec<_>>(),
    })
}

/// An element of its series.
#[must_use]
pub fn second(second: &Second) -> Value {
    let (pressure, memory) = (&second.pressure, &second.memory);
    json!({
        "end_ns": second.end.0,
        "devices": second.devices.iter().map(|rates| rates.as_ref().map(device)).collect::<Vec<_>>(),
        "processors_percent": second.processors.iter().map(|share| tenths(*share)).collect::<Vec<_>>(),
        "pressure": {
            "cpu_some_percent": pressure.cpu_some,
            "io_some_percent": pressure.io_some,
            "io_full_percent": pressure.io_full,
            "memory_some_percent": pressure.memory_some,
            "memory_full_percent": pressure.memory_full,
        },
        "memory": {
            "available_bytes": memory.available,
            "dirty_bytes": memory.dirty,
            "writeback_bytes": memory.writeback,
        },
        "temperatures_c": second.temperatures,
        "throttle_events": second.throttle_events,
    })
}

fn device(rates: &DeviceRates) -> Value {
    json!({
        "reads_per_s": rates.reads,
        "writes_per_s": rates.writes,
        "read_bytes_per_s": rates.read_bytes,
        "written_bytes_per_s": rates.written_bytes,
        "in_flight": rates.in_flight,
        "busy_percent": rates.busy_percent,
    })
}

/// Ticks are hundredths of a second: more digits would say nothing.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
