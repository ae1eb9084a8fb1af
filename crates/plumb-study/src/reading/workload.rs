//! Rules about what was asked for: R12, R13, R14, R17, R19, R20, R23, R24.

use super::{Access, Facts, LatencyCost, Medium, Remark, Sync, info, warn};
use crate::identities::{MIB, write_share_differs};

/// R12: a file that fits into a cache.
pub(super) fn file_size(facts: &Facts) -> Vec<Remark> {
    let cache = facts.cache;
    let Some(file) = cache.file_bytes else { return Vec::new() };
    if let Some(free) = cache.page_cache_bytes.filter(|free| file <= *free) {
        return warn(
            12,
            format!(
                "The file ({:.0} MiB) fits into the page cache ({:.0} MiB free): use a larger one, or bypass \
             the cache (-Su).",
                file / MIB,
                free / MIB
            ),
        );
    }
    let Some(known) = cache.device_cache_bytes.filter(|known| *known > 0.0) else {
        return Vec::new();
    };
    let ratio = file / known;
    let is_multiple = (ratio - ratio.round()).abs() < 1e-9 && ratio >= 1.0;
    if ratio > 2.0 && !is_multiple {
        return Vec::new();
    }
    warn(
        12,
        format!(
            "The file is {ratio:.2} times the cache of {:.0} MiB: it should be more than twice that, and no \
         multiple of it.",
            known / MIB
        ),
    )
}

/// R13: settings that differ in more than what is varied.
pub(super) fn differing_settings(facts: &Facts) -> Vec<Remark> {
    if facts.differing.is_empty() {
        return Vec::new();
    }
    warn(
        13,
        format!(
            "The settings differ in {}: they are not comparable. Repeat them with the same.",
            facts.differing.join(" and ")
        ),
    )
}

/// R14: data that a device may compress, or that is not there.
pub(super) fn compressible(facts: &Facts) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if facts.incompressible == Some(false) {
        remarks.extend(warn(
            14,
            "Writes are of a pattern that compresses: devices that compress or deduplicate look too fast. \
             Add -Z1M."
                .to_owned(),
        ));
    }
    if let Some(share) = facts.unwritten_share.filter(|share| *share > 0.0) {
        remarks.extend(warn(14, format!(
            "{:.1} % of the file was never written: reads of it do not reach the device. Write the file \
             first.",
            share * 100.0
        )));
    }
    remarks
}

/// R17: too short.
pub(super) fn too_short(facts: &Facts) -> Vec<Remark> {
    let mut short = Vec::new();
    if let Some(seconds) = facts.asked_s.or(facts.measured_s).filter(|seconds| *seconds < 60.0) {
        short.push(format!("{seconds:.0} s measured, 60 s are the least"));
    }
    let writes = facts.write_share.or(facts.write_share_wanted).unwrap_or(0.0) > 0.0;
    if let Some(seconds) = facts.warm_up_s.filter(|seconds| *seconds < 5.0)
        && writes
        && facts.medium == Some(Medium::Flash)
    {
        short.push(format!("{seconds:.0} s of warm-up, 5 s are the least for writes to flash"));
    }
    if short.is_empty() {
        return Vec::new();
    }
    warn(17, format!("The run is short: {}.", short.join("; ")))
}

/// R19: a mix that came out differently.
pub(super) fn write_share(facts: &Facts) -> Vec<Remark> {
    let known = facts.write_share.zip(facts.write_share_wanted).zip(facts.count);
    match known {
        Some(((achieved, wanted), count))
            if write_share_differs(achieved, wanted, count as f64) =>
        {
            warn(
                19,
                format!(
                    "{:.3} % of the I/Os were writes, not {:.3} %, by more than chance.",
                    achieved * 100.0,
                    wanted * 100.0
                ),
            )
        }
        _ => Vec::new(),
    }
}

/// R20: sequential threads that follow each other.
pub(super) fn overlapping_threads(facts: &Facts) -> Vec<Remark> {
    if facts.access != Some(Access::SequentialOverlapping) || facts.threads.len() < 2 {
        return Vec::new();
    }
    warn(
        20,
        "All threads go through the same blocks: later ones find them in a cache. Use -si, or -T for a \
         place of its own for each."
            .to_owned(),
    )
}

/// R23: a maximum that was measured with latencies on.
pub(super) fn cost_of_latency(facts: &Facts) -> Vec<Remark> {
    if !facts.measures_latency {
        return Vec::new();
    }
    match facts.latency_cost {
        Some(LatencyCost::Told(cost)) if cost > 0.10 => warn(
            23,
            format!(
                "Measuring latencies costs {:.1} % of the rate: latencies at this load include tool time, and \
             the rate is no maximum.",
                cost * 100.0
            ),
        ),
        Some(LatencyCost::Told(cost)) => info(
            23,
            format!(
                "Measuring latencies costs {:.1} % of the rate: a maximum is to be measured without -L.",
                cost * 100.0
            ),
        ),
        Some(LatencyCost::Open(cost)) => info(
            23,
            format!(
                "What measuring latencies costs cannot be told: {:.1} % came out, and runs differ by as much.",
                cost * 100.0
            ),
        ),
        None => Vec::new(),
    }
}

/// R24: what was bypassed.
pub(super) fn synchronisation(facts: &Facts) -> Vec<Remark> {
    let text = match facts.sync {
        None => return Vec::new(),
        Some(Sync::Buffered) => "No cache was bypassed: the page cache serves what it can.",
        Some(Sync::PageCache) => {
            "The page cache was bypassed (-Su); caches of the device were in use."
        }
        Some(Sync::WriteThrough) => {
            "Writes went through the device's cache (-Sw); the page cache was in use."
        }
        Some(Sync::Both) => {
            "The page cache was bypassed and writes went through the device's cache (-Sh)."
        }
    };
    info(24, text.to_owned())
}
