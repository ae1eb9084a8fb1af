//! Rules about rates: R1, R3, R7, R8, R15, R18, R21.

use super::{Facts, Remark, Spread, info, warn};
use crate::identities::{self, Consistency, Law};
use crate::stats::describe::mean;

/// R1: what is total and what is per thread.
pub(super) fn totals(facts: &Facts) -> Vec<Remark> {
    let Some(iops) = facts.iops else { return Vec::new() };
    let mut text = format!("In all {iops:.0} I/Os per second");
    if let Some(block) = facts.block_bytes {
        text.push_str(&format!(", {:.2} MiB/s", identities::mib_per_s(iops, block)));
    }
    if let Some(latency) = facts.latencies.mean_ms {
        text.push_str(&format!(", {latency:.3} ms on average"));
    }
    let count = facts.threads.len();
    if count > 1 {
        let share = iops / count as f64;
        text.push_str(&format!(
            ". The {count} threads share this, about {share:.0} each; the latency is that of every I/O"
        ));
    }
    text.push('.');
    info(1, text)
}

/// R3: threads that do not get the same.
pub(super) fn uneven_threads(facts: &Facts) -> Vec<Remark> {
    let rates: Vec<f64> = facts.threads.iter().map(|thread| thread.iops).collect();
    match Spread::of(&rates) {
        Some(spread) if spread.range > 0.10 || spread.variation > 0.03 => warn(
            3,
            format!(
                "The threads differ by {:.1} % (SD {:.1} %): they may contend for the file, sit on \
                 different NUMA nodes, or be scheduled unevenly. Look at their affinities.",
                spread.range * 100.0,
                spread.variation * 100.0
            ),
        ),
        _ => Vec::new(),
    }
}

/// R7: Little's law.
pub(super) fn littles_law(facts: &Facts) -> Vec<Remark> {
    let Some(Law { residual, verdict }) = facts.law() else { return Vec::new() };
    let known = facts.iops.zip(facts.latencies.mean_ms).zip(facts.outstanding);
    let Some(((iops, latency), outstanding)) = known else { return Vec::new() };
    let percent = residual * 100.0;
    if !facts.closed_loop {
        return match verdict == Consistency::AccountingError {
            true => warn(
                7,
                format!(
                    "X·L is {percent:+.2} % off the {outstanding:.0} I/Os that are allowed: more in flight \
                 than there may be. Do not use this result."
                ),
            ),
            false => Vec::new(),
        };
    }
    match verdict {
        Consistency::Consistent => {
            info(7, format!("Rate, latency and outstanding I/Os agree (r = {percent:+.2} %)."))
        }
        Consistency::Turnaround => info(
            7,
            format!(
                "Rate, latency and outstanding I/Os agree (r = {percent:+.2} %): {:.1} µs of each cycle are \
             spent in the tool.",
                identities::turnaround_us(outstanding, iops, latency)
            ),
        ),
        Consistency::GeneratorLimited => warn(
            7,
            format!(
                "X·L is {percent:+.2} % off {outstanding:.0}: requests were often idle, so the generator is \
             the limit. Use more threads or larger blocks."
            ),
        ),
        Consistency::StoodStill => warn(
            7,
            format!(
                "X·L is {percent:+.2} % off {outstanding:.0}: nothing completed at the end of the run, so the device \
             stood still, and what was in flight then is in no latency. Look at its counters and the kernel's log."
            ),
        ),
        Consistency::AccountingError => warn(
            7,
            format!(
                "X·L is {percent:+.2} % off {outstanding:.0}: the figures contradict each other. Do not use \
             this result."
            ),
        ),
    }
}

/// R8: a ceiling.
pub(super) fn ceiling(facts: &Facts) -> Vec<Remark> {
    facts.ceiling.iter().flat_map(|what| warn(8, format!(
        "Throughput is held at a ceiling: {what}. Raising the queue depth only adds waiting."
    ))).collect()
}

/// R15: a rate that falls off towards the end.
pub(super) fn exhausted(facts: &Facts) -> Vec<Remark> {
    let fifth = facts.series.len() / 5;
    if fifth == 0 || facts.write_share.or(facts.write_share_wanted).unwrap_or(0.0) <= 0.0 {
        return Vec::new();
    }
    let first = mean(&facts.series[..fifth]);
    let last = mean(&facts.series[facts.series.len() - fifth..]);
    if first <= 0.0 || last >= 0.8 * first {
        return Vec::new();
    }
    warn(
        15,
        format!(
            "The last fifth of the run did {:.0} % of what the first did ({last:.0} against {first:.0} I/Os \
         per second): a write cache, an SLC cache or a fast tier is full. Run longer and quote the later \
         level.",
            last / first * 100.0
        ),
    )
}

/// R18: a rate that is not calm.
pub(super) fn unstable(facts: &Facts) -> Vec<Remark> {
    match Spread::of(&facts.series) {
        Some(spread) if spread.variation > 0.10 => warn(
            18,
            format!(
                "The rate varies by {:.0} % from interval to interval: look at its course over time before \
             quoting a mean.",
                spread.variation * 100.0
            ),
        ),
        _ => Vec::new(),
    }
}

/// R21: what a closed loop can do at most.
pub(super) fn bounds(facts: &Facts) -> Vec<Remark> {
    let Some((iops, lowest)) = facts.iops.zip(facts.lowest_latency_ms) else { return Vec::new() };
    info(
        21,
        format!(
            "At the lowest load an I/O takes {lowest:.3} ms: fewer than {:.1} outstanding I/Os cannot give \
         {iops:.0} I/Os per second.",
            identities::in_flight(iops, lowest)
        ),
    )
}
