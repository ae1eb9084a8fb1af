//! Plumb's own elements: what was in force, and what speaks for or against the figures.

use std::fmt::Display;
use std::io;

use super::element::Elements;
use crate::profile::model::TimeSpan;
use crate::result::errno_name;
use crate::result::model::{PlausibilityItem, SpanResult};
use crate::result::text::plausibility::by_target;

pub(super) fn write(span: &SpanResult, asked: &TimeSpan, out: &mut Elements<'_>) -> io::Result<()> {
    out.open("Plausibility", &[("State", &span.state().keyword())])?;
    for failure in &span.failures {
        out.text("Failure", failure)?;
    }
    write_engines(span, asked, out)?;
    for (path, figures) in by_target(span) {
        for (errno, count) in &figures.errors {
            let name = errno_name::of(*errno);
            out.empty("FailedIo", &[("Path", &path), ("Errno", &name), ("Count", count)])?;
        }
        if figures.short_transfers > 0 {
            let count = figures.short_transfers;
            out.empty("ShortTransfers", &[("Path", &path), ("Count", &count)])?;
        }
    }
    for item in &span.plausibility {
        write_item(item, out)?;
    }
    out.close("Plausibility")
}

fn write_engines(span: &SpanResult, asked: &TimeSpan, out: &mut Elements<'_>) -> io::Result<()> {
    for queue in &span.queues {
        out.open(
            "Engine",
            &[
                ("Name", &queue.engine),
                ("TouchesTarget", &!queue.no_target),
                ("BufferSeparation", &queue.buffer_separation),
            ],
        )?;
        for flag in &queue.flags {
            out.text("Flag", flag)?;
        }
        for dropped in &queue.dropped {
            out.text("NotInForce", dropped)?;
        }
        out.close("Engine")?;
    }
    if !span.submission.is_empty() {
        out.empty(
            "Submission",
            &[
                ("Profile", &asked.loop_profile()),
                ("Gathering", &span.submission),
                ("Batch", &span.batch),
                ("Burst", &span.burst),
            ],
        )?;
    }
    for path in &span.bypass_io_missing {
        out.empty("BypassIoMissing", &[("Path", path)])?;
    }
    if span.is_measured() {
        out.empty(
            "ProcessCpu",
            &[("Nanoseconds", &span.process_cpu.0), ("IoWqNanoseconds", &span.io_wq_cpu.0)],
        )?;
    }
    if let Some(error) = &span.stamp_error
        && let (Some(median), Some(high)) = (error.percentile(50), error.percentile(99))
    {
        let mut attributes: Vec<(&str, &dyn Display)> =
            vec![("P50Nanoseconds", &median.0), ("P99Nanoseconds", &high.0)];
        let allowed = error.allowed_percentile(99);
        if let Some(allowed) = &allowed {
            attributes.push(("P99AllowedNanoseconds", &allowed.0));
        }
        if let Some(time) = &error.wake_up {
            attributes.push(("WakeUpNanoseconds", &time.median.0));
            attributes.push(("WakeUpHighNanoseconds", &time.high.0));
            attributes.push(("WakeUpMaxNanoseconds", &time.max.0));
        }
        let mean = error.wait.and_then(|wait| wait.mean());
        if let Some(mean) = &mean {
            attributes.push(("ProcessorWaitNanoseconds", &mean.0));
        }
        out.empty("StampError", &attributes)?;
    }
    Ok(())
}

fn write_item(item: &PlausibilityItem, out: &mut Elements<'_>) -> io::Result<()> {
    let verdict = item.verdict.keyword();
    let mut attributes: Vec<(&str, &dyn Display)> = vec![("Key", &item.key), ("Verdict", &verdict)];
    if let Some(target) = &item.target {
        attributes.push(("Target", target));
    }
    if let Some(value) = &item.value {
        attributes.push(("Value", value));
    }
    out.full("Item", &attributes, &item.sentence)
}
