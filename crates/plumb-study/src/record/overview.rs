//! What a list of results shows of each.

use plumb_load::convert::{ImportedResult, ImportedSpan};
use serde_json::Value;

/// A result in a line; what it does not say is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overview {
    /// When the run was started, as the result says it.
    pub started_at: Option<String>,
    /// Its command line, program name included.
    pub command_line: Option<String>,
    /// The first target.
    pub target: Option<String>,
    /// I/Os per second over all measured time spans.
    pub iops: Option<f64>,
    /// MiB per second.
    pub mib_per_s: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_ms: Option<f64>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

const MIB: f64 = 1_048_576.0;

impl Overview {
    /// Of the JSON result of `plumb run`.
    #[must_use]
    pub fn of_json(result: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let total = &result["total"];
        Self {
            started_at: text(&result["started_at"]),
            command_line: text(&result["command_line"]),
            target: text(&result["profile"]["TimeSpans"][0]["Targets"][0]["Path"]),
            iops: total["iops_per_s"].as_f64(),
            mib_per_s: total["bytes_per_s"].as_f64().map(|bytes| bytes / MIB),
            latency_ms: total["latency_ns"]["mean"].as_f64().map(|nanos| nanos / 1e6),
            interrupted: result["interrupted"].as_bool().unwrap_or(false),
        }
    }

    /// Of a report or an XML result.
    #[must_use]
    pub fn of_import(result: &ImportedResult) -> Self {
        let seconds: f64 = result.time_spans.iter().map(|span| span.seconds).sum();
        let (mut bytes, mut count) = (0.0, 0.0);
        for span in &result.time_spans {
            let ((read_bytes, reads), (write_bytes, writes)) = (span.reads(), span.writes());
            bytes += (read_bytes + write_bytes) as f64;
            count += (reads + writes) as f64;
        }
        let rate = |amount: f64| (seconds > 0.0).then(|| amount / seconds);
        let only = match result.time_spans.as_slice() {
            [only] => Some(only),
            _ => None,
        };
        let spans = result.profile.as_ref().map(|profile| &profile.time_spans);
        let mut targets = spans.into_iter().flatten().flat_map(|span| &span.targets);
        Self {
            started_at: result.run_time.clone(),
            command_line: result.command_line.clone(),
            target: targets.next().map(|target| target.path.clone()),
            iops: rate(count),
            mib_per_s: rate(bytes / MIB),
            latency_ms: only.and_then(|span| span.figures.total.latency_mean_ms),
            interrupted: result.time_spans.iter().any(ImportedSpan::is_interrupted),
        }
    }
}
