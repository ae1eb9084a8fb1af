//! What was seen beside a run, in the few figures that the attribution needs (method, 2.12).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Setting;
use crate::stats::describe::mean;

/// Means over the measurement. What the kernel does not tell is `None` or empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// How busy each processor was, 0…1.
    #[serde(default)]
    pub cores: Vec<f64>,
    /// Processor time of the generator for each of its threads, 0…1.
    pub workers: Option<f64>,
    /// Share of time with an I/O in flight at the device on top, 0…1.
    pub device_busy: Option<f64>,
    /// I/Os in flight there, on average.
    pub device_in_flight: Option<f64>,
    /// I/Os per second there.
    pub device_iops: Option<f64>,
    /// I/Os per second of each device below, where there are several.
    #[serde(default)]
    pub below_iops: Vec<f64>,
    /// Operations of the devices at the bottom for each that was asked for: A as it was seen (method, 1.5).
    pub amplification: Option<f64>,
    /// Bytes there for each byte that was asked for.
    pub bytes_amplification: Option<f64>,
    /// How often processors or drives were throttled.
    #[serde(default)]
    pub throttled: u64,
    /// What looking cost: milliseconds of processor time per second.
    pub cost_ms_per_s: Option<f64>,
}

/// Seconds of counters below which means say nothing.
pub(super) const SECONDS_LEAST: usize = 3;

impl Beside {
    /// Of a time span of a JSON result; `None` where no counters were recorded, or fewer than three seconds of
    /// them.
    #[must_use]
    pub fn of_span(span: &Value, setting: &Setting) -> Option<Self> {
        let counters = &span["counters"];
        let rows = counters["series"].as_array().filter(|rows| rows.len() >= SECONDS_LEAST)?;
        let mean_of = |pointer: &str| {
            let of_row = |row: &Value| row.pointer(pointer).and_then(Value::as_f64);
            let values: Vec<f64> = rows.iter().filter_map(of_row).collect();
            (!values.is_empty()).then(|| mean(&values))
        };
        let rate = |device: usize| {
            let of = |word: &str| mean_of(&format!("/devices/{device}/{word}_per_s"));
            Some(of("reads")? + of("writes")?)
        };
        let processors = counters["processors"].as_array().map_or(0, Vec::len);
        let cores = (0..processors)
            .filter_map(|core| mean_of(&format!("/processors_percent/{core}")))
            .map(|percent| percent / 100.0);
        let threads = f64::from(setting.files) * f64::from(setting.threads);
        let process = span["cpu"]["process_ns"].as_f64();
        let elapsed = span["elapsed_ns"].as_f64().filter(|nanos| *nanos > 0.0);
        let mut beside = Self {
            cores: cores.collect(),
            workers: process.zip(elapsed).map(|(process, elapsed)| process / elapsed / threads),
            throttled: rows.iter().filter_map(|row| row["throttle_events"].as_u64()).sum(),
            cost_ms_per_s: counters["cost_ns"].as_f64().map(|nanos| nanos / 1e6),
            ..Self::default()
        };
        // Behind a page cache a device does other I/O than the load.
        if setting.bypasses_page_cache() {
            beside.device_busy = mean_of("/devices/0/busy_percent").map(|percent| percent / 100.0);
            beside.device_in_flight = mean_of("/devices/0/in_flight");
            beside.device_iops = rate(0);
            let devices = counters["devices"].as_array().map_or(0, Vec::len);
            let below: Vec<f64> = (1..devices).filter_map(rate).collect();
            beside.below_iops = if below.len() > 1 { below } else { Vec::new() };
            let is_bottom = |device: &usize| counters["devices"][*device]["is_bottom"] == true;
            let bottom: Vec<usize> = (0..devices).filter(is_bottom).collect();
            // For each unit that was asked for; `None` where any of them is not counted.
            let seen = |words: [&str; 2], asked: &str| {
                let of = |device: &usize| {
                    let [reads, writes] =
                        words.map(|word| mean_of(&format!("/devices/{device}/{word}_per_s")));
                    Some(reads? + writes?)
                };
                let all = bottom.iter().map(of).sum::<Option<f64>>()?;
                let asked = span["total"][asked].as_f64().filter(|rate| *rate > 0.0)?;
                (!bottom.is_empty()).then(|| all / asked)
            };
            beside.amplification = seen(["reads", "writes"], "iops_per_s");
            beside.bytes_amplification = seen(["read_bytes", "written_bytes"], "bytes_per_s");
        }
        Some(beside)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn span(rows: usize) -> Value {
        let row = |second: usize| {
            json!({
                "devices": [
                    { "reads_per_s": 700.0, "writes_per_s": 300.0, "in_flight": 7.5, "busy_percent": 98.0 },
                    { "reads_per_s": 100.0 * second as f64, "writes_per_s": 0.0 },
                    { "reads_per_s": 500.0, "writes_per_s": 1.0 },
                ],
                "processors_percent": [50.0, 10.0 * second as f64],
                "throttle_events": 2,
            })
        };
        json!({
            "elapsed_ns": 2e9,
            "cpu": { "process_ns": 4e9 },
            "counters": {
                "cost_ns": 1.5e6, "devices": [{}, {}, {}], "processors": [0, 1],
                "series": (1..=rows).map(row).collect::<Vec<_>>(),
            },
        })
    }

    #[test]
    fn what_the_devices_below_do_for_each_that_is_asked_for() {
        let setting = Setting::default();
        let mut span = span(3);
        let seen = |span: &Value| {
            let seen = Beside::of_span(span, &setting).expect("counters");
            (seen.amplification, seen.bytes_amplification)
        };
        span["total"] = json!({ "iops_per_s": 500.0, "bytes_per_s": 1e6 });
        assert_eq!(seen(&span), (None, None), "no device is said to be at the bottom");
        for device in [1, 2] {
            span["counters"]["devices"][device]["is_bottom"] = true.into();
        }
        // 200 and 501 I/Os of 500; bytes of neither are known.
        assert_eq!(seen(&span), (Some(701.0 / 500.0), None));
        for second in 0..3 {
            for device in [1, 2] {
                let rates = &mut span["counters"]["series"][second]["devices"][device];
                rates["read_bytes_per_s"] = 1e6.into();
                rates["written_bytes_per_s"] = 3e5.into();
            }
        }
        assert_eq!(seen(&span).1, Some(2.6));
        span["total"]["iops_per_s"] = 0.0.into();
        assert_eq!(seen(&span).0, None);
    }

    #[test]
    fn counters_become_means() {
        let setting = Setting { threads: 4, ..Setting::default() };
        let seen = Beside::of_span(&span(3), &setting).expect("counters");
        assert_eq!(seen.cores, [0.5, 0.2]);
        assert_eq!((seen.workers, seen.throttled), (Some(0.5), 6));
        assert_eq!((seen.device_iops, seen.device_in_flight), (Some(1000.0), Some(7.5)));
        assert_eq!((seen.device_busy, seen.below_iops), (Some(0.98), vec![200.0, 501.0]));
        assert_eq!(seen.cost_ms_per_s, Some(1.5));
        // Two seconds say nothing; what lies behind a page cache says nothing about the load.
        assert_eq!(Beside::of_span(&span(2), &setting), None);
        let cached = Setting { cache: "b".to_owned(), ..setting };
        let seen = Beside::of_span(&span(3), &cached).expect("counters");
        assert_eq!((seen.device_busy, seen.device_iops), (None, None));
        assert_eq!(seen.cores.len(), 2);
    }
}
