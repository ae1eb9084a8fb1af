//! A result as the report sees it: of `plumb run --json`, of DISKSPD's XML or text, or a stored run.

mod buckets;
mod imported;
mod json;

pub use buckets::Buckets;
pub(crate) use imported::interval_latency;
#[cfg(test)]
pub(super) use json::workload as workload_of;
pub(crate) use json::{slowest_ms, spreads};

use plumb_load::convert;
use serde_json::Value;

use crate::knee::DeclaredCap;
use crate::record::{self, Record, RecordError};
use crate::steadiness::Steadiness;

/// One run.
#[derive(Debug, Clone, Default)]
pub struct RunView {
    /// As the user named it.
    pub name: String,
    /// When it was started, as the result says it.
    pub started_at: Option<String>,
    /// Its command line.
    pub command_line: Option<String>,
    /// How it was measured.
    pub epoch: Option<String>,
    /// Who performed the I/O.
    pub engine: Option<String>,
    /// The machine, as pairs of name and value.
    pub machine: Vec<(String, String)>,
    /// Its measured time spans.
    pub spans: Vec<SpanView>,
    /// The run as it is compared.
    pub record: Option<Record>,
    /// Limits that were declared.
    pub caps: Vec<DeclaredCap>,
}

/// One time span.
#[derive(Debug, Clone, Default)]
pub struct SpanView {
    /// Measured seconds.
    pub seconds: f64,
    /// What was asked for.
    pub workload: Workload,
    /// Reads and writes together.
    pub total: SideView,
    /// Reads.
    pub read: SideView,
    /// Writes.
    pub write: SideView,
    /// Seconds of an interval.
    pub interval_s: f64,
    /// The intervals.
    pub intervals: Vec<IntervalView>,
    /// The processors that were measured.
    pub cores: Vec<CoreView>,
    /// I/Os per second of each thread.
    pub threads: Vec<f64>,
    /// Microseconds of processor time of the whole machine per I/O.
    pub cpu_us_per_io: Option<f64>,
    /// (I/Os in flight that were configured, X·L/N − 1, the word of the check).
    pub law: (Option<f64>, Option<f64>, Option<String>),
    /// Mean number in flight as the run itself tells it: failed I/Os included, without what waited in an open loop.
    pub in_flight: Option<f64>,
    /// Bytes of all targets, where the result says them.
    pub target_bytes: Option<f64>,
    /// Whether each latency was measured.
    pub measures_latency: bool,
    /// Sentences of the plausibility checks that warn.
    pub warnings: Vec<String>,
    /// Why it failed, if it did.
    pub failures: Vec<String>,
    /// What was seen beside the run, per second: null where nothing was.
    pub counters: Value,
}

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Workload {
    /// Threads per file, of the first target.
    pub threads: Option<f64>,
    /// Outstanding I/Os per thread.
    pub outstanding: Option<f64>,
    /// Bytes per I/O.
    pub block_bytes: Option<f64>,
    /// Share of writes, 0…1.
    pub write_share: Option<f64>,
    /// Whether I/O goes to random places.
    pub random: Option<bool>,
    /// Whether sequential threads share their place (`-si`) or begin apart (`-T`).
    pub apart: Option<bool>,
    /// Number of targets.
    pub targets: usize,
    /// Whether targets differ in block size, mix, access or caches: the first says nothing of all.
    pub is_mixed: bool,
    /// Seconds of warm-up.
    pub warm_up_s: Option<f64>,
    /// Whether writes are of random data, to every target.
    pub incompressible: Option<bool>,
    /// The page cache is bypassed, writes go through the device's.
    pub sync: Option<(bool, bool)>,
    /// Whether a rate, a pause or an open loop limits any target.
    pub limited: bool,
}

/// Reads, writes or both.
#[derive(Debug, Clone, Default)]
pub struct SideView {
    /// I/Os.
    pub count: u64,
    /// I/Os per second.
    pub iops: f64,
    /// MiB per second.
    pub mib_per_s: f64,
    /// Mean latency in milliseconds.
    pub mean_ms: Option<f64>,
    /// Latencies by value; empty where they are not known one by one.
    pub buckets: Buckets,
    /// (percent, milliseconds) where only those are known.
    pub percentiles: Vec<(f64, f64)>,
}

/// One interval.
#[derive(Debug, Clone, Default)]
pub struct IntervalView {
    /// Its end, in seconds since the measurement began.
    pub end_s: f64,
    /// I/Os per second.
    pub iops: f64,
    /// Mean latency in milliseconds.
    pub mean_ms: Option<f64>,
    /// Latencies of the reads.
    pub read: Buckets,
    /// Latencies of the writes.
    pub write: Buckets,
}

/// A processor, in percent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CoreView {
    /// Group and number.
    pub name: String,
    /// Busy in user mode.
    pub user: f64,
    /// Busy in the kernel.
    pub kernel: f64,
    /// Idle.
    pub idle: f64,
}

impl RunView {
    /// Reads a result; a file may hold several.
    ///
    /// # Errors
    /// It is none, or nothing was measured.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Vec<Self>, RecordError> {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        if first == Some(&b'{') {
            let value: Value = serde_json::from_slice(bytes)
                .map_err(|source| RecordError::Json { what: source.to_string() })?;
            return Self::of_object(name, &value);
        }
        let results = convert::read(bytes).map_err(|source| RecordError::Import { source })?;
        let records = record::read(bytes)?;
        let mut views: Vec<Self> =
            results.iter().map(|result| imported::view(name, result)).collect();
        for (view, record) in views.iter_mut().zip(records) {
            view.epoch.clone_from(&record.epoch);
            view.record = Some(record);
        }
        Ok(views)
    }

    /// Reads the object of a result or of a stored run.
    ///
    /// # Errors
    /// It is none, or nothing was measured.
    pub fn of_object(name: &str, value: &Value) -> Result<Vec<Self>, RecordError> {
        let is_stored = value.get("store_version").is_some();
        let result = if is_stored { &value["result"] } else { value };
        if let Value::String(text) = result {
            return Self::read(name, text.as_bytes());
        }
        let mut records = record::of_object(value)?;
        let mut view = json::view(name, result);
        if is_stored {
            view.machine.extend(json::environment(&value["environment"]));
        }
        view.record = Some(records.remove(0));
        Ok(vec![view])
    }

    /// The figures over all time spans: the only one, or the first.
    #[must_use]
    pub fn first(&self) -> Option<&SpanView> {
        self.spans.first()
    }
}

impl SpanView {
    /// The means of the intervals' rates.
    #[must_use]
    pub fn series(&self) -> Vec<f64> {
        self.intervals.iter().map(|interval| interval.iops).collect()
    }

    /// Whether it was steady (5.1).
    #[must_use]
    pub fn steadiness(&self) -> Steadiness {
        let latencies = self.intervals.iter().map(|it| it.mean_ms.unwrap_or(f64::NAN));
        Steadiness::of_run(&self.series(), &latencies.collect::<Vec<_>>(), self.interval_s)
    }

    /// N: all outstanding I/Os, where that is known.
    #[must_use]
    pub fn outstanding(&self) -> Option<f64> {
        self.law.0
    }

    /// The same in words: `with 16 outstanding`, where a rate or a limit decides `with at most 16 outstanding`; empty where
    /// it is not known.
    #[must_use]
    pub fn outstanding_words(&self) -> String {
        let most = if self.workload.limited { "at most " } else { "" };
        self.outstanding().map_or_else(String::new, |n| format!("with {most}{n:.0} outstanding"))
    }

    /// What was asked for, in words: `8 KiB random, 30 % writes, t8 o12`.
    #[must_use]
    pub fn title(&self) -> String {
        let workload = &self.workload;
        let mut words = Vec::new();
        if let Some(bytes) = workload.block_bytes {
            words.push(match bytes / 1024.0 {
                kib if kib >= 1.0 => format!("{kib} KiB"),
                _ => format!("{bytes} B"),
            });
        }
        if let Some(is_random) = workload.random {
            words.push(if is_random { "random" } else { "sequential" }.to_owned());
        }
        let mut title = words.join(" ");
        if let Some(share) = workload.write_share {
            let part = match share * 100.0 {
                0.0 => "reads".to_owned(),
                100.0 => "writes".to_owned(),
                percent => format!("{percent:.0} % writes"),
            };
            title = format!("{title}, {part}");
        }
        if let Some((threads, outstanding)) = workload.threads.zip(workload.outstanding) {
            title = format!("{title}, t{threads} o{outstanding}");
        }
        if workload.targets > 1 {
            title = format!("{title}; first of {} targets", workload.targets);
        }
        title.trim_start_matches(", ").to_owned()
    }
}
