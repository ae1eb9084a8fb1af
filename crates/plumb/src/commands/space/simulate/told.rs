//! What a replay found, as text and as JSON.

use plumb_tier::replay::{DeviceOutcome, Latency, Outcome, ReplayOutcome, RunRecord};
use plumb_tier::trace::{FittedShare, TraceSummary};
use plumb_tier::what_if::WhatIfPoint;
use plumb_units::Bytes;
use serde_json::{Value, json};

use super::Source;

/// What stands before everything that a generator made.
const SYNTHETIC: &str = "synthetic workload";

pub(super) fn as_text(source: &Source, found: &ReplayOutcome, with_reports: bool) -> String {
    let hours = found.duration.as_secs_f64() / 3600.0;
    let kind = if source.synthetic { SYNTHETIC } else { "trace" };
    let mut text = format!(
        "{kind} {}: {} I/Os in {hours:.1} hours on {} extents of 1MiB ({})\n",
        source.name,
        found.ios,
        found.extents,
        Bytes(found.extents << 20)
    );
    if let Some(parameters) = source.parameters.as_ref().filter(|found| **found != source.name) {
        text.push_str(&format!("parameters {parameters}\n"));
    }
    for FittedShare { percent, asked, reached } in &source.fitted {
        text.push_str(&format!(
            "the top {percent} % of the extents take {:.1} % of the I/O, asked for {:.1} %\n",
            100.0 * reached,
            100.0 * asked
        ));
    }
    if let Some(summary) = &source.summary {
        text.push_str(&remarks(summary));
    }
    text.push_str(
        "\n     tier  policy            fast %  cache %   mean ms    p99 ms  SSD written    by moves  HDD busy %  runs\n",
    );
    for outcome in &found.outcomes {
        text.push_str(&row(outcome));
    }
    text.push_str(
        "\nfast: served by the Performance tier or the write-back cache; cache: by the latter.\n",
    );
    let cached = found.outcomes.iter().any(|outcome| outcome.by_cache > 0);
    if cached && found.outcomes.iter().any(|outcome| outcome.devices.is_none()) {
        text.push_str(
            "clairvoyant and lru have no write-back cache, the other policies have: their shares are not of the same. \
             --write-cache 0 leaves it out for all.\n",
        );
    }
    let delayed =
        |outcome: &&Outcome| outcome.devices.as_ref().is_some_and(|devices| devices.delayed > 0);
    for outcome in found.outcomes.iter().filter(delayed) {
        let count = outcome.devices.as_ref().map_or(0, |devices| devices.delayed);
        text.push_str(&format!(
            "{} {}: {count} I/Os waited because the disks were slower than the trace.\n",
            Bytes(outcome.tier_bytes),
            outcome.policy.name()
        ));
    }
    text.push_str("\nWhat a cache would serve, the least recently used out first (SHARDS; a tier is no cache):\n");
    text.push_str("     size  of extents         of 4 KiB blocks\n");
    for (extents, blocks) in &found.what_if {
        let size = Bytes(extents.bytes).to_string();
        text.push_str(&format!("{size:>9}  {}  {}\n", point(extents), point(blocks)));
    }
    if with_reports {
        for outcome in &found.outcomes {
            let report = outcome.devices.as_ref().and_then(|devices| devices.report.as_ref());
            if let Some(report) = report {
                let title = format!("{} {}", Bytes(outcome.tier_bytes), outcome.policy.name());
                text.push_str(&format!(
                    "\n== {title}: last optimization ==\n\n{}",
                    report.to_text()
                ));
            }
        }
    }
    text
}

fn remarks(summary: &TraceSummary) -> String {
    let mut text = String::new();
    if summary.volumes.len() > 1 {
        text.push_str(&format!("{} volumes side by side\n", summary.volumes.len()));
    }
    if summary.spread > 0 {
        text.push_str(&format!(
            "times of the trace are whole seconds: {} I/Os are spread evenly over theirs, in the order of the file\n",
            summary.spread
        ));
    }
    if summary.out_of_order > 0 {
        text.push_str(&format!(
            "{} earlier than the one before: taken at its time\n",
            if summary.out_of_order == 1 {
                "1 I/O".to_owned()
            } else {
                format!("{} I/Os", summary.out_of_order)
            }
        ));
    }
    if summary.bad > 0 {
        text.push_str(&format!("{} bad lines left out, the first:\n", summary.bad));
        for fault in &summary.faults {
            text.push_str(&format!("  {fault}\n"));
        }
    }
    text
}

fn row(outcome: &Outcome) -> String {
    let share = |count: u64| 100.0 * count as f64 / (outcome.ios.max(1)) as f64;
    let mut text = format!(
        "{:>9}  {:<16} {:>7.2}  {:>7.2}",
        Bytes(outcome.tier_bytes).to_string(),
        outcome.policy.name(),
        100.0 * outcome.share,
        share(outcome.by_cache)
    );
    if let Some(devices) = &outcome.devices {
        let milliseconds = |ns: f64| format!("{:.3}", ns / 1e6);
        let mean = devices.latency.map_or_else(String::new, |all| milliseconds(all.mean_ns));
        let p99 = devices.latency.map_or_else(String::new, |all| milliseconds(all.p99_ns as f64));
        text.push_str(&format!(
            "  {mean:>8}  {p99:>8}  {:>11}  {:>10}  {:>10.1}  {:>4}",
            Bytes(devices.ssd_written).to_string(),
            Bytes(devices.ssd_written_by_moves).to_string(),
            100.0 * devices.hdd_busy_share,
            devices.runs.len()
        ));
    }
    text.push('\n');
    text
}

fn point(point: &WhatIfPoint) -> String {
    format!("{:>6.2} % +- {:<5.2}", 100.0 * point.share, 100.0 * point.error)
}

pub(super) fn as_json(source: &Source, found: &ReplayOutcome) -> Value {
    let curve =
        |point: &WhatIfPoint| json!({ "hit_share": point.share, "standard_error": point.error });
    let what_if: Vec<Value> = found
        .what_if
        .iter()
        .map(|(extents, blocks)| {
            json!({ "bytes": extents.bytes, "by_extents": curve(extents), "by_blocks": curve(blocks) })
        })
        .collect();
    json!({
        "source": source.name,
        "synthetic": source.synthetic,
        "parameters": source.parameters,
        "fitted_shares": source.fitted.iter().map(fitted).collect::<Vec<_>>(),
        "trace": source.summary.as_ref().map(summary),
        "ios": found.ios,
        "extents": found.extents,
        "duration_s": found.duration.as_secs_f64(),
        "outcomes": found.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        "what_if_lru": what_if,
    })
}

fn fitted(share: &FittedShare) -> Value {
    json!({
        "top_percent": share.percent,
        "asked_percent": 100.0 * share.asked,
        "reached_percent": 100.0 * share.reached,
    })
}

fn summary(summary: &TraceSummary) -> Value {
    json!({
        "lines": summary.lines,
        "bad_lines": summary.bad,
        "first_faults": summary.faults,
        "out_of_order": summary.out_of_order,
        "spread_over_seconds": summary.spread,
        "volumes": summary.volumes,
    })
}

fn outcome(outcome: &Outcome) -> Value {
    json!({
        "tier_bytes": outcome.tier_bytes,
        "policy": outcome.policy.name(),
        "ios": outcome.ios,
        "ios_by_performance_tier": outcome.by_performance,
        "ios_by_write_cache": outcome.by_cache,
        "hit_share": outcome.share,
        "devices": outcome.devices.as_ref().map(devices),
    })
}

fn devices(devices: &DeviceOutcome) -> Value {
    let latency = |latency: &Option<Latency>| {
        latency.map(|latency| json!({ "mean_ns": latency.mean_ns, "p99_ns": latency.p99_ns }))
    };
    json!({
        "latency": latency(&devices.latency),
        "latency_read": latency(&devices.reads),
        "latency_write": latency(&devices.writes),
        "ssd_written_bytes": devices.ssd_written,
        "ssd_written_by_moves_bytes": devices.ssd_written_by_moves,
        "ssd_written_by_write_cache_bytes": devices.ssd_written_by_cache,
        "hdd_written_bytes": devices.hdd_written,
        "write_cache_bypass_bytes": devices.bypassed,
        "hdd_busy_s": devices.hdd_busy_s,
        "hdd_busy_share": devices.hdd_busy_share,
        "delayed_ios": devices.delayed,
        "runs": devices.runs.iter().map(run).collect::<Vec<_>>(),
        "thrash_share": devices.thrash.share(),
        "report": devices.report.as_ref().map(plumb_tier::tier_report::TierReport::to_json),
    })
}

fn run(run: &RunRecord) -> Value {
    json!({
        "at_s": run.at_s,
        "up_requested": run.moves.up_requested,
        "up": run.moves.up,
        "down_requested": run.moves.down_requested,
        "down": run.moves.down,
        "bytes": run.moves.bytes,
        "seconds": run.moves.seconds,
        "stop": run.moves.stop.name(),
        "predicted_share": run.predicted_share,
        "measured_share": run.measured_share,
    })
}
