//! A virtual disk's pins and figures as a file has them: one line of JSON, and its checksum.

use serde_json::{Value, json};

use super::Restored;
use crate::engine::{Kept, Served};
use crate::format::checksum::crc;
use crate::optimizer::{
    HostLine, LINES, LineTimes, Measured, MoveHistory, Pin, PinId, PinTable, TierMeasure, TierName,
};
use crate::tier_report::{HeatGap, Sample, WindowBytes};

/// Samples of how full the Performance tier was.
const SAMPLES: usize = 144;

/// How full the Performance tier was, the oldest first.
pub(super) fn samples(value: &Value) -> Vec<Sample> {
    let sample = |own: &Value| {
        // Older versions did not say what moves brought, and counted none.
        let brought = own[2].as_i64().unwrap_or(0);
        Some(Sample { at_s: own[0].as_u64()?, used: own[1].as_u64()?, brought })
    };
    let list = value["performance_used"].as_array().map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(sample).collect()
}

/// One more; of those within ten minutes the first stays, and the newest.
pub(super) fn note_sample(samples: &mut Vec<Sample>, new: Sample) {
    let count = samples.len();
    if count > 1 && new.at_s.saturating_sub(samples[count - 2].at_s) < 600 {
        samples.pop();
    }
    samples.push(new);
    let old = samples.len().saturating_sub(SAMPLES);
    samples.drain(..old);
}

/// The state, and on a line of its own the checksum of it.
pub(super) fn render(kept: &Kept, samples: &[Sample]) -> Vec<u8> {
    let sample = |own: &Sample| json!([own.at_s, own.used, own.brought]);
    let pin = |pin: &Pin| json!({ "id": pin.id.0, "start": pin.start, "bytes": pin.len, "tier": pin.tier.name() });
    let own = &kept.tiering;
    let served = &kept.served;
    let value = json!({
        "version": 1,
        "pins": own.pins.pins().iter().map(pin).collect::<Vec<Value>>(),
        "next_pin": own.pins.next_id().0,
        "window_start_s": own.window_start_s,
        "working_sets": own.working_sets,
        "heat_lost": match own.heat_gap {
            None => Value::Null,
            Some(HeatGap::All) => json!("all"),
            Some(HeatGap::Pages(pages)) => json!(pages),
        },
        "heat_uncounted_s": own.uncounted_s,
        "measured": {
            "performance": measured(&own.measured.performance),
            "capacity": measured(&own.measured.capacity),
            "hosts": [own.measured.hosts.busy_ns, own.measured.hosts.line_ns],
        },
        "performance_slots": kept.performance.1,
        "performance_used": samples.iter().map(sample).collect::<Vec<Value>>(),
        "performance_brought": own.brought,
        "served": {
            "performance": served.performance,
            "cache": served.cache,
            "capacity": served.capacity,
            "unmapped": served.unmapped,
            "bytes": served.bytes.fields(),
        },
    });
    with_sum(&value)
}

/// A state, and its checksum.
pub(super) fn with_sum(value: &Value) -> Vec<u8> {
    let text = format!("{value}\n");
    let sum = crc(0, text.as_bytes());
    format!("{text}{sum:08x}\n").into_bytes()
}

fn measured(of: &TierMeasure) -> Vec<u64> {
    let LineTimes { ios, ns } = of.lines;
    [of.ios, of.io_ns, of.moved_bytes, of.move_ns].into_iter().chain(ios).chain(ns).collect()
}

/// What the disks were measured to take; older versions measured nothing.
pub(super) fn measured_of(value: &Value) -> Measured {
    let tier = |name: &str| {
        let figure = |nth: usize| value["measured"][name][nth].as_u64().unwrap_or(0);
        let (ios, io_ns, moved_bytes, move_ns) = (figure(0), figure(1), figure(2), figure(3));
        // Older versions did not tell lines apart.
        let line = |first: usize| std::array::from_fn(|nth| figure(first + nth));
        let lines = LineTimes { ios: line(4), ns: line(4 + LINES) };
        TierMeasure { ios, io_ns, moved_bytes, move_ns, lines }
    };
    let host = |nth: usize| value["measured"]["hosts"][nth].as_u64().unwrap_or(0);
    let hosts = HostLine { busy_ns: host(0), line_ns: host(1) };
    Measured { performance: tier("performance"), capacity: tier("capacity"), hosts }
}

pub(super) fn parse(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    let end = text.find('\n')? + 1;
    let (body, sum) = text.split_at(end);
    let wanted = u32::from_str_radix(sum.trim_end(), 16).ok()?;
    (crc(0, body.as_bytes()) == wanted).then(|| serde_json::from_str(body).ok())?
}

/// Reads any bytes as a virtual disk's pins and figures.
pub(crate) fn fuzz(bytes: &[u8]) {
    let Some(value) = parse(bytes) else { return };
    if let Some(found) = restored(&value, 1 << 20) {
        found
            .pins
            .pins()
            .iter()
            .for_each(|pin| assert!(pin.start.checked_add(pin.len).is_some(), "{pin:?}"));
    }
    assert!(samples(&value).len() <= bytes.len());
}

pub(super) fn restored(value: &Value, extent_bytes: u64) -> Option<Restored> {
    if value["version"] != 1 {
        return None;
    }
    let pin = |pin: &Value| {
        let tier = match pin["tier"].as_str()? {
            "Performance" => TierName::Performance,
            "Capacity" => TierName::Capacity,
            _ => return None,
        };
        let (start, len) = (pin["start"].as_u64()?, pin["bytes"].as_u64()?);
        Some(Pin { id: PinId(pin["id"].as_u64()?), start, len, tier })
    };
    let pins: Vec<Pin> = value["pins"].as_array()?.iter().map(pin).collect::<Option<_>>()?;
    let pins = PinTable::restored(extent_bytes, pins, PinId(value["next_pin"].as_u64()?))?;
    let sets: Vec<u64> =
        value["working_sets"].as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
    let served = |name: &str| value["served"][name].as_u64();
    // Those of older versions were not counted.
    let bytes = std::array::from_fn(|nth| value["served"]["bytes"][nth].as_u64().unwrap_or(0));
    Some(Restored {
        heat: None,
        what_if: None,
        pins,
        history: MoveHistory::new(),
        window_start_s: value["window_start_s"].as_f64()?,
        working_sets: sets.into_iter().take(64).collect(),
        heat_gap: match &value["heat_lost"] {
            Value::String(_) => Some(HeatGap::All),
            other => other.as_u64().map(HeatGap::Pages),
        },
        // Older versions did not say.
        uncounted_s: value["heat_uncounted_s"].as_u64().unwrap_or(0),
        measured: measured_of(value),
        brought: value["performance_brought"].as_i64().unwrap_or(0),
        last: samples(value).last().copied(),
        served: Served {
            performance: served("performance")?,
            cache: served("cache")?,
            capacity: served("capacity")?,
            unmapped: served("unmapped")?,
            bytes: WindowBytes::of_fields(bytes),
        },
    })
}

/// A virtual disk's pins and figures as they are kept.
#[cfg(test)]
pub(crate) fn sample() -> Vec<u8> {
    let mut pins = PinTable::new(1 << 20);
    pins.set(0, 1 << 20, TierName::Performance);
    pins.set(5 << 20, 7, TierName::Capacity);
    let history = MoveHistory::new();
    let (window_start_s, working_sets) = (1.5, vec![3, 4]);
    let heat_gap = Some(HeatGap::Pages(2));
    let measured = sample_measured();
    let tiering = crate::engine::Tiering {
        pins,
        history,
        window_start_s,
        working_sets,
        heat_gap,
        uncounted_s: 61,
        measured,
        brought: -5,
    };
    let bytes = WindowBytes::of_fields([5, 6, 7, 8, 9, 10]);
    let served = Served { performance: 1, cache: 2, capacity: 3, unmapped: 4, bytes };
    let (heat, what_if, performance) = (Vec::new(), Vec::new(), (30, 40));
    let (published, is_last) = (None, true);
    let kept = Kept { vdisk: 7, heat, what_if, served, performance, tiering, published, is_last };
    render(&kept, &[Sample { at_s: 600, used: 30, brought: 2 }])
}

#[cfg(test)]
pub(super) fn sample_measured() -> Measured {
    let tier = |ios: u64, each: u64, moved_bytes: u64, move_ns: u64, lines: LineTimes| {
        TierMeasure { ios, io_ns: ios * each, moved_bytes, move_ns, lines }
    };
    let lines = LineTimes { ios: [1, 2, 3, 4, 5, 6], ns: [7, 8, 9, 10, 11, 12] };
    Measured {
        performance: tier(2000, 40_000, 3, 4, LineTimes::default()),
        capacity: tier(5000, 4_000_000, 7, 8, lines),
        hosts: HostLine { busy_ns: 13, line_ns: 14 },
    }
}

/// Whether a text whose checksum fits would be taken.
#[cfg(test)]
pub(crate) fn reads(body: &str) -> bool {
    serde_json::from_str(body).is_ok_and(|value| restored(&value, 1 << 20).is_some())
}
