//! What speaks for or against the figures of one time span: gathered around the run, not in it.

use std::os::fd::AsFd;

use plumb_io::clock::Clock;
use plumb_io::system_tree::SystemTree;
use plumb_units::Nanos;

use super::target::OpenTarget;
use crate::pattern::Bounds;
use crate::plan::Access;
use crate::plausibility::{CheckedTarget, Issued, Observed, Traffic, before_run, per_io_item};
use crate::profile::model::{CacheMode, TimeSpan};
use crate::result::littles_law::{LittlesLaw, Verdict};
use crate::result::model::{Plausibility, PlausibilityItem, SpanResult};
use crate::result::text::plausibility::is_one_at_a_time;
use crate::tally::Histogram;

/// The targets that are really there, beside their places in the time span.
pub(super) fn checked<'a>(
    span: &'a TimeSpan,
    targets: &'a [OpenTarget],
) -> (Vec<usize>, Vec<CheckedTarget<'a>>) {
    let checked =
        span.targets.iter().zip(targets).enumerate().filter_map(|(index, (asked, open))| {
            let descriptor = open.descriptor.as_ref()?.as_fd();
            let bounds = Bounds::new(asked, open.size);
            let start = asked.base_file_offset.min(open.size);
            let checked = CheckedTarget {
                path: &asked.path,
                descriptor,
                size: open.size,
                start,
                end: bounds.map_or(open.size, |bounds| bounds.base + bounds.rel),
                stack: &open.stack,
                is_read: asked.write_ratio < 100,
                is_written: Access::of(asked).writes(),
                is_direct: asked.cache == CacheMode::NoOsCache && !asked.memory_mapped,
            };
            Some((index, checked))
        });
    checked.unzip()
}

/// What can be said before the first I/O.
pub(super) fn before(
    span: &TimeSpan,
    targets: &[OpenTarget],
    memory_bytes: u64,
    tree: &SystemTree,
) -> Vec<PlausibilityItem> {
    let mut items = before_run(&checked(span, targets).1, memory_bytes, tree);
    let durable = span.targets.iter().filter(|target| {
        target.write_through && !target.memory_mapped && Access::of(target).writes()
    });
    items.extend(durable.map(|target| PlausibilityItem {
        key: "write_through",
        target: Some(target.path.clone()),
        value: None,
        verdict: Plausibility::Ok,
        sentence: format!(
            "'{}' is open with O_DSYNC: a write completes when its data are durable.",
            target.path
        ),
    }));
    items
}

/// What can be said once the figures are there.
pub(super) fn after(
    result: &SpanResult,
    span: &TimeSpan,
    targets: &[OpenTarget],
    observed: &Observed,
) -> Vec<PlausibilityItem> {
    let (places, checked) = checked(span, targets);
    let issued: Vec<Issued> = places
        .iter()
        .map(|place| {
            let threads = result.threads.iter().flat_map(|thread| &thread.targets);
            let own = threads.filter(|target| plumb_units::convert::index(target.index) == *place);
            own.map(|target| Issued {
                moved: Traffic { read: target.read.bytes, written: target.write.bytes },
                failed: Traffic {
                    read: target.read.failed.bytes,
                    written: target.write.failed.bytes,
                },
            })
            .sum()
        })
        .collect();
    let polls = result.queues.iter().any(|queue| queue.flags.iter().any(|flag| flag == "iopoll"));
    let mut items = observed.items(&checked, &issued, polls);
    let counted = result.threads.iter().flat_map(|thread| &thread.targets);
    let ios = counted.map(|target| target.read.io_count + target.write.io_count).sum();
    items.extend(per_io_item(observed.process.process, ios));
    items.extend(littles_law(&LittlesLaw::of(result, span), is_one_at_a_time(result)));
    if span.stamps_latency() {
        items.push(PlausibilityItem {
            key: "histogram_relative_error",
            target: None,
            value: Some(Histogram::RELATIVE_ERROR),
            verdict: Plausibility::Ok,
            sentence:
                "Latency percentiles are within 0.8 % of the exact values; means, deviations, \
                       minima and maxima are exact."
                    .to_owned(),
        });
    }
    items
}

/// The mark of a measurement that the user ended early.
pub(super) fn interrupted(elapsed: Nanos, asked_seconds: u32) -> PlausibilityItem {
    PlausibilityItem {
        key: "interrupted",
        target: None,
        value: Some(elapsed.as_secs_f64()),
        verdict: Plausibility::Suspicious,
        sentence: format!(
            "The run was interrupted: the figures cover {:.2} s of the {asked_seconds} s asked for.",
            elapsed.as_secs_f64()
        ),
    }
}

/// Latencies that are in another interval than theirs; none when all are where they belong.
pub(super) fn strays(count: u64, interval_ms: u32) -> Option<PlausibilityItem> {
    (count > 0).then(|| PlausibilityItem {
        key: "stray_interval_latencies",
        target: None,
        value: Some(count as f64),
        verdict: Plausibility::Suspicious,
        sentence: format!(
            "{count} latencies are in an interval before theirs: intervals of {interval_ms} ms were too short \
             for this machine and load. Use longer ones (-D), or fewer threads"
        ),
    })
}

/// What is to be said of the clock of the stamps.
pub(super) fn clock<C: Clock>(
    clock: &C,
    span: &TimeSpan,
    tree: &SystemTree,
) -> Option<PlausibilityItem> {
    if let Some(share) = clock.drift() {
        return Some(clock_drift(share));
    }
    if !clock.is_fallback() || !span.stamps_latency() {
        return None;
    }
    const READINGS: u32 = 1000;
    let begin = clock.now();
    let end = (0..READINGS).fold(begin, |_, _| clock.now());
    let reading = Nanos(end.since(begin).0 / u64::from(READINGS));
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Some(fallback_clock(reading, tree.text(source).as_deref().unwrap_or("unknown")))
}

/// Stamps of the system's clock: read without a system call they cost twice as much as the counter, with one a
/// hundred times.
fn fallback_clock(reading: Nanos, source: &str) -> PlausibilityItem {
    let is_slow = reading >= Nanos(200);
    let rest = if is_slow {
        ". Each reading enters the kernel, and its time is in every latency and rate: boot with clocksource=tsc, if the \
         machine's is sound"
    } else {
        ""
    };
    PlausibilityItem {
        key: "fallback_clock_reading_ns",
        target: None,
        value: Some(reading.0 as f64),
        verdict: if is_slow { Plausibility::Suspicious } else { Plausibility::Ok },
        sentence: format!(
            "Stamps are of CLOCK_MONOTONIC, {} ns a reading, and not of the time stamp counter: the kernel's clock source \
             is {source}{rest}.",
            reading.0
        ),
    }
}

/// The clock of the stamps against the kernel's: 50 ppm are 0.05 ms in a second, nothing in a latency.
fn clock_drift(share: f64) -> PlausibilityItem {
    let is_off = share.abs() > 1e-4;
    let rest = if is_off {
        ": the processor's time stamp counter changed its rate, so latencies are off by that share"
    } else {
        ""
    };
    PlausibilityItem {
        key: "clock_drift",
        target: None,
        value: Some(share),
        verdict: if is_off { Plausibility::Suspicious } else { Plausibility::Ok },
        sentence: format!(
            "The clock of the stamps ran {:+.1} ppm off the kernel's raw clock{rest}.",
            share * 1e6
        ),
    }
}

/// The scratch file of the intervals took no more.
pub(super) fn lost_intervals(error: &std::io::Error) -> PlausibilityItem {
    PlausibilityItem {
        key: "lost_interval_latencies",
        target: None,
        value: None,
        verdict: Plausibility::Suspicious,
        sentence: format!(
            "Latencies by interval (-D) were lost: the scratch file in {} cannot be written: {error}. Make \
             room there, or set TMPDIR; IOPS and bytes by interval are whole.",
            std::env::temp_dir().display()
        ),
    }
}

/// Little's law as a sentence; none where it says nothing.
fn littles_law(law: &LittlesLaw, one_at_a_time: bool) -> Option<PlausibilityItem> {
    let (verdict, says) = match law.verdict {
        Verdict::Consistent => (Plausibility::Ok, "rate, latency and outstanding I/Os agree"),
        Verdict::ToolTurnaround => (
            Plausibility::Ok,
            "rate, latency and outstanding I/Os agree but for the time that requests spend in the tool",
        ),
        Verdict::GeneratorLimited if one_at_a_time => (
            Plausibility::Suspicious,
            "the engine has one I/O of a thread in flight, whatever -o says. Use more threads, or another \
             engine (--engine auto)",
        ),
        Verdict::GeneratorLimited => (
            Plausibility::Suspicious,
            "requests were often idle: the generator, not the target, is the limit. Use more threads \
             with fewer outstanding I/Os each, or larger blocks; a larger --batch takes less time for each I/O, \
             but completions are seen later",
        ),
        Verdict::AccountingError => (
            Plausibility::Suspicious,
            "more I/Os were in flight than the profile allows: these figures contradict themselves \
             and must not be used",
        ),
        Verdict::Limited | Verdict::NotMeasured | Verdict::NotApplicable => return None,
    };
    let in_flight = law.in_flight_mean?;
    let failed = match law.failed {
        0 => String::new(),
        1 => " with the one that failed".to_owned(),
        failed => format!(" with the {failed} that failed"),
    };
    let sentence = match (law.residual, law.configured) {
        (Some(residual), Some(configured)) => format!(
            "Little's law: {in_flight:.2} I/Os in flight on average{failed} of {configured} outstanding \
             (residual {:+.1} %): {says}",
            residual * 100.0
        ),
        _ => format!("Little's law: {in_flight:.2} I/Os in flight on average{failed}: {says}"),
    };
    Some(PlausibilityItem {
        key: "littles_law_residual",
        target: None,
        value: law.residual,
        verdict,
        sentence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_drifts_or_takes_long_is_not_called_right() {
        for (item, verdict, says) in [
            (clock_drift(5e-5), Plausibility::Ok, "+50.0 ppm off"),
            (clock_drift(2e-4), Plausibility::Suspicious, "changed its rate"),
            (clock_drift(-2e-4), Plausibility::Suspicious, "-200.0 ppm off"),
            (fallback_clock(Nanos(31), "kvm-clock"), Plausibility::Ok, "source is kvm-clock."),
            (fallback_clock(Nanos(1200), "hpet"), Plausibility::Suspicious, "enters the kernel"),
        ] {
            assert_eq!(item.verdict, verdict, "{}", item.sentence);
            assert!(item.sentence.contains(says), "{}", item.sentence);
        }
    }
}
