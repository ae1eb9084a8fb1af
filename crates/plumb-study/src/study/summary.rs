//! The figures of a run, from its whole result.

use serde_json::Value;

use super::record::{Percentile, Summary};
use super::{Beside, Setting, remarks};
use crate::identities::{self, Consistency, Law, Window};
use crate::record::{self, Figures};
use crate::steadiness::{self, Steadiness};
use crate::{precision, report};

/// The flag of a run that was not steady (5.1).
pub(super) const NOT_STEADY: &str = "not-steady";
/// The flag of a run whose rate, latency and outstanding I/Os contradict each other (1.3).
pub(super) const INCONSISTENT: &str = "inconsistent";
/// That of one in which the generator was the limit.
pub(super) const GENERATOR_LIMITED: &str = "generator-limited";
/// That of one at whose end nothing completed.
pub(super) const STOOD_STILL: &str = "stood-still";

/// Seconds of measurement below which the flag `too-short` is set (R17).
const SHORT_S: f64 = 60.0;

/// What a result says of a run of this setting; why it says nothing, otherwise.
///
/// Where the beginning of the measurement was not steady (5.1 a), or its level shifted (5.1 c), rate and
/// latency are those of what follows.
///
/// # Errors
/// It holds no time span that was measured.
pub fn summarise(result: &Value, setting: &Setting) -> Result<Summary, String> {
    let records = record::of_object(result).map_err(|error| error.to_string())?;
    let figures = records
        .first()
        .and_then(|record| record.spans.first())
        .ok_or_else(|| "no time span was measured".to_owned())?;
    let span = result["time_spans"]
        .as_array()
        .and_then(|spans| spans.iter().find(|span| span["state"] == "measured"))
        .unwrap_or(&Value::Null);
    let mut summary = of_figures(figures, span, setting);
    summary.beside = Beside::of_span(span, setting);
    summary.remarks = remarks::of_run(result, setting, &summary);
    Ok(summary)
}

/// The part of a run's series that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyPart {
    /// Intervals that were cut off at its beginning: not steady yet (5.1 a), or of an earlier level (5.1 c).
    pub cut: usize,
    /// Whether it was steady.
    pub steadiness: Steadiness,
    /// Mean of what counts; NaN for an empty series.
    pub mean: f64,
    /// Mean latency of what counts, in the unit of its series; `None` where there is none.
    pub latency: Option<f64>,
    /// Half the 95 % interval of the mean, relative, within the run only; `None` for fewer than twenty intervals.
    pub half_width: Option<f64>,
    /// What it rests on.
    pub interval: Option<precision::MeanInterval>,
}

/// How much wider the interval of a run is that ended because it was narrow: who stops there stops a little too often
/// where chance made it so (docs/decisions/0094-early-ends-are-paid-for.md).
const EARLY_WIDER: f64 = 1.1;

impl SteadyPart {
    /// Of I/Os per second and, where it was measured, mean latency per interval; `ended_early` if the run was ended as soon as it said enough.
    #[must_use]
    pub fn of(iops: &[f64], latency: &[f64], interval_s: f64, ended_early: bool) -> Self {
        let steadiness = Steadiness::of_run(iops, latency, interval_s);
        let cut = steadiness.cut();
        let rest = &iops[cut..];
        let interval = precision::of_series(rest);
        let wider = if ended_early { EARLY_WIDER } else { 1.0 };
        Self {
            cut,
            steadiness,
            mean: if rest.is_empty() { f64::NAN } else { crate::stats::describe::mean(rest) },
            latency: steadiness::latency(rest, latency.get(cut..).unwrap_or(&[])),
            half_width: interval.map(|interval| interval.cautious() * wider),
            interval,
        }
    }

    /// Whether the series is long enough for its correlation: the interval can be relied on (5.2).
    #[must_use]
    pub fn is_long_enough(&self) -> bool {
        self.steadiness.warm_up.settled
            && self.interval.is_some_and(|interval| interval.is_long_enough())
    }
}

fn of_figures(figures: &Figures, span: &Value, setting: &Setting) -> Summary {
    let seconds = span["elapsed_ns"].as_f64().unwrap_or_default() / 1e9;
    let mut flags = Vec::new();
    let measured = figures.series.len() as f64 * figures.interval_s;
    let ended_early = measured < f64::from(setting.measured_s) - figures.interval_s;
    let (series, latencies) = (&figures.series, &figures.latency_series);
    let part = SteadyPart::of(series, latencies, figures.interval_s, ended_early);
    let SteadyPart { cut, steadiness, .. } = part;
    let two_phase = steadiness.phases.is_some();
    let iops = if cut > 0 { part.mean } else { figures.iops };
    let outstanding = setting.total_outstanding() as f64;
    let slowest = report::slowest_ms(span, setting.total_outstanding());
    let window = Window::of(seconds, &figures.series, slowest);
    let law = figures
        .latency_ms
        .filter(|_| setting.rate.is_none())
        .map(|ms| Law::of(identities::in_flight(figures.iops, ms), outstanding, ms, 0.0, window));
    let may_be_steady = steadiness.may_be_steady();
    let steady = may_be_steady && !figures.series.is_empty();
    if !may_be_steady && !figures.series.is_empty() {
        flags.push(NOT_STEADY);
    }
    if two_phase {
        flags.push("two-phase");
    }
    // One that was ended as soon as it said enough is as long as it had to be.
    let asked = if ended_early { f64::from(setting.measured_s) } else { seconds };
    if asked < SHORT_S {
        flags.push("too-short");
    }
    match law.map(|law| law.verdict) {
        Some(Consistency::AccountingError) => flags.push(INCONSISTENT),
        Some(Consistency::GeneratorLimited) => flags.push(GENERATOR_LIMITED),
        Some(Consistency::StoodStill) => flags.push(STOOD_STILL),
        _ => {}
    }
    let count = |side: &str| span[side]["io_count"].as_f64();
    let write_share = count("write").zip(count("total")).map(|(w, all)| w / all.max(1.0));
    Summary {
        io_count: figures.count,
        iops,
        mib_per_s: identities::mib_per_s(iops, setting.block_bytes as f64),
        half_width: part.half_width,
        latency_ms: match part.latency.filter(|_| cut > 0) {
            Some(ms) => Some(ms),
            // What is in flight is the same in the part that was cut: L = N/X in both.
            None => figures.latency_ms.map(|ms| ms * figures.iops / iops),
        },
        percentiles: figures
            .percentiles
            .iter()
            .map(|(percent, ms)| {
                let near = figures.spreads.iter().find(|(other, _)| (other - percent).abs() < 1e-6);
                Percentile { percent: *percent, ms: *ms, spread: near.map(|(_, spread)| *spread) }
            })
            .collect(),
        write_p50_ms: span["write"]["latency_ns"]["p50"].as_f64().map(|nanos| nanos / 1e6),
        seconds,
        cut_s: cut as f64 * figures.interval_s,
        steady,
        two_phase,
        effective: part.interval.map(|interval| interval.effective),
        residual: law.map(|law| law.residual),
        write_share,
        cpu_percent: span["cpu"]["mean"]["usage_percent"].as_f64(),
        cpu_us_per_io: figures.cpu_us_per_io,
        errors: span["total"]["errors"].as_u64().unwrap_or_default(),
        flags: flags.into_iter().map(str::to_owned).collect(),
        remarks: Vec::new(),
        beside: None,
        counted_s: span["counters"]["series"].as_array().map_or(0, |rows| rows.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Flags of a run of two seconds at N = 2: latencies of a millisecond, and `slow` I/Os of so many more in the second
    /// that it began in. `rate` is what the law would give without them, so many times.
    fn flags(slow: u64, slow_ms: f64, rate: f64) -> Vec<String> {
        let fast = (4000.0 * rate).round();
        let fast_count = plumb_units::convert::floor_u64(fast);
        let count = fast_count + slow;
        let mean = (fast + slow as f64 * slow_ms) / count as f64;
        let part = json!({
            "io_count": count, "bytes": count * 4096, "iops_per_s": count as f64 / 2.0,
            "bytes_per_s": count as f64 * 2048.0,
            "latency_ns": { "mean": mean * 1e6, "buckets": [
                [1_000_000, 1, fast_count], [slow_ms * 1e6, 1, slow],
            ]},
        });
        let result = json!({
            "schema_version": 1, "engine": "uring", "epoch": 1,
            "time_spans": [{
                "number": 1, "state": "measured", "elapsed_ns": 2_000_000_000_u64,
                "mode": { "measures_latency": true }, "total": part, "read": part,
            }],
        });
        let setting = Setting { threads: 1, outstanding: 2, measured_s: 2, ..Setting::default() };
        summarise(&result, &setting).expect("figures").flags
    }

    /// Flags of a run of ten seconds at N = 8, a millisecond each, in whose last `still` seconds nothing completed.
    fn flags_of_still(still: u64, share: f64) -> Vec<String> {
        let rate = |second: u64| if second < 10 - still { 8000.0 * share } else { 0.0 };
        let cells = (0..10).map(|second| json!({ "total": { "iops_per_s": rate(second) } }));
        let iops = (0..10).map(rate).sum::<f64>() / 10.0;
        let part = json!({
            "io_count": plumb_units::convert::floor_u64(iops * 10.0), "bytes": 4096, "iops_per_s": iops,
            "bytes_per_s": iops * 4096.0, "latency_ns": { "mean": 1e6, "buckets": [] },
        });
        let result = json!({
            "schema_version": 1, "engine": "uring", "epoch": 1,
            "time_spans": [{
                "number": 1, "state": "measured", "elapsed_ns": 10_000_000_000_u64,
                "mode": { "measures_latency": true }, "total": part, "read": part,
                "intervals": { "interval_ns": 1_000_000_000, "series": cells.collect::<Vec<_>>() },
            }],
        });
        let setting = Setting { threads: 1, outstanding: 8, measured_s: 10, ..Setting::default() };
        let flags = summarise(&result, &setting).expect("figures").flags;
        let of_law = [INCONSISTENT, GENERATOR_LIMITED, STOOD_STILL];
        flags.into_iter().filter(|flag| of_law.contains(&flag.as_str())).collect()
    }

    #[test]
    fn a_device_that_stood_still_is_not_taken_for_a_slow_generator() {
        assert_eq!(flags_of_still(0, 0.99), [""; 0]);
        assert_eq!(flags_of_still(3, 1.0), [STOOD_STILL]);
        assert_eq!(flags_of_still(0, 0.7), [GENERATOR_LIMITED]);
        assert_eq!(flags_of_still(1, 0.7), [GENERATOR_LIMITED]);
    }

    #[test]
    fn a_stall_at_the_edge_of_the_window_is_no_accounting_error() {
        let is_thrown_out = |flags: &[String]| flags.iter().any(|flag| flag == "inconsistent");
        // One I/O of 253 ms began before the window: X·L is 6 % above N.
        for (slow, slow_ms, rate, wanted) in [
            (0, 0.0, 1.0, false),
            (1, 253.0, 1.0, false),
            (2, 253.0, 1.0, false),
            // More than the ends can explain, and too much without any stall.
            (1, 253.0, 1.2, true),
            (0, 0.0, 1.05, true),
            (1, 9.0, 1.05, true),
        ] {
            let found = flags(slow, slow_ms, rate);
            assert_eq!(is_thrown_out(&found), wanted, "{slow} of {slow_ms} ms, {rate}: {found:?}");
        }
    }
}
