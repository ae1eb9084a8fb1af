//! The rules of one target of a time span, in the order of the spec.

use super::Findings;
use super::span::REQUESTS_MAX;
use crate::profile::error::ErrorClass;
use crate::profile::model::{
    CacheMode, Distribution, DistributionKind, Target, TimeSpan, WriteContent,
};

/// Checks one target. `name` starts every message, `note` every warning.
pub(super) fn check(
    span: &TimeSpan,
    target: &Target,
    name: &str,
    note: &str,
    findings: &mut Findings,
) {
    numbers(span, target, name, findings);
    threads(span, target, name, findings);
    pool(span, target, name, findings);
    if target.random_ratio > 0 {
        random(target, name, findings);
    } else {
        sequential(span, target, name, findings);
    }
    if let Some(distribution) = &target.distribution {
        ranges(distribution, target.block_size, name, findings);
    }
    memory(span, target, name, findings);
    if target.max_file_size > 0 && target.max_file_size <= target.base_file_offset {
        findings.violation(
            ErrorClass::MaxOffset,
            format!(
                "{name}: the maximum offset {} is not above the base offset {}",
                target.max_file_size, target.base_file_offset
            ),
            "let -f be larger than -B, or leave it out for no limit",
        );
    }
    warnings(span, target, note, findings);
}

/// Rule 16: what a run needs a path for.
pub(super) fn no_template(target: &Target, name: &str, findings: &mut Findings) {
    if target.is_template() {
        findings.violation(
            ErrorClass::TemplateTarget,
            format!("{name} is a template that no target of the command line fills in"),
            "name the targets after the options, or only print the profile with -Rp; \
             a file of such a name is given as ./*name",
        );
    }
}

/// Whether more than one thread works on the target.
fn has_several_threads(span: &TimeSpan, target: &Target) -> bool {
    span.thread_count > 1 || target.threads_per_file > 1
}

/// Values that no I/O can be made with.
fn numbers(span: &TimeSpan, target: &Target, name: &str, findings: &mut Findings) {
    if target.block_size == 0 {
        findings.violation(
            ErrorClass::BlockSize,
            format!("{name}: the block size is 0"),
            "let -b be 1 or more",
        );
    }
    if target.alignment == 0 {
        findings.violation(
            ErrorClass::Alignment,
            format!("{name}: the alignment is 0"),
            "leave it out for the block size",
        );
    }
    for (class, what, value) in [
        (ErrorClass::RandomRatio, "random I/O (-rs)", target.random_ratio),
        (ErrorClass::WriteRatio, "writes (-w)", target.write_ratio),
    ] {
        if value > 100 {
            let help = "a percentage is at most 100";
            findings.violation(class, format!("{name}: {value} percent {what}"), help);
        }
    }
    if !(1..=3).contains(&target.io_priority) {
        findings.violation(
            ErrorClass::Priority,
            format!("{name}: I/O priority {} (-I)", target.io_priority),
            "1 is very low, 2 low, 3 normal",
        );
    }
    if target.request_count > REQUESTS_MAX {
        findings.violation(
            ErrorClass::RequestCount,
            format!("{name}: {} outstanding I/Os per thread (-o)", target.request_count),
            format!("at most {REQUESTS_MAX} are possible"),
        );
    }
    if target.request_count == 0 && !span.is_weighted_pool() {
        findings.violation(
            ErrorClass::RequestCount,
            format!("{name}: 0 outstanding I/Os per thread (-o)"),
            "let RequestCount be 1 or more",
        );
    }
    if target.threads_per_file == 0 && span.thread_count == 0 {
        findings.violation(
            ErrorClass::BadNumber,
            format!("{name}: 0 threads (-t)"),
            "let ThreadsPerFile be 1 or more",
        );
    }
}

/// Rules 3 to 5.
fn threads(span: &TimeSpan, target: &Target, name: &str, findings: &mut Findings) {
    if span.thread_count > 0 && target.threads_per_file > 1 {
        findings.violation(
            ErrorClass::ThreadConflict,
            format!(
                "{name}: {} threads of its own (-t) beside a pool of {} (-F)",
                target.threads_per_file, span.thread_count
            ),
            "leave one of them out",
        );
    }
    if target.throughput.value > 0 && span.completion_routines {
        findings.violation(
            ErrorClass::ThroughputConflict,
            format!("{name}: a throughput limit (-g) with completion routines (-x)"),
            "leave one of them out",
        );
    }
    if (target.burst_size == 0) != (target.think_time == 0) {
        let (given, missing) = match target.burst_size {
            0 => (format!("a pause of {} ms (-j)", target.think_time), "a burst size (-i)"),
            burst => (format!("bursts of {burst} I/Os (-i)"), "a pause between them (-j)"),
        };
        findings.violation(
            ErrorClass::BurstConflict,
            format!("{name}: {given} without {missing}"),
            "give both -i and -j, or none",
        );
    }
}

/// Rules 6 and 7.
fn pool(span: &TimeSpan, target: &Target, name: &str, findings: &mut Findings) {
    if !span.is_weighted_pool() {
        if !target.thread_targets.is_empty() {
            findings.violation(
                ErrorClass::ThreadTarget,
                format!("{name}: threads are named, but there is no pool with requests of its own"),
                "set ThreadCount and RequestCount of the time span, or remove <ThreadTargets>",
            );
        }
        return;
    }
    for (broken, what) in [
        (target.throughput.value > 0, "a throughput limit (-g)"),
        (target.think_time > 0, "a pause between bursts (-j)"),
        (target.parallel_async, "parallel async I/O (-p)"),
    ] {
        if broken {
            findings.violation(
                ErrorClass::PoolConflict,
                format!(
                    "{name}: {what} with {} outstanding I/Os per pool thread (-O)",
                    span.request_count
                ),
                "leave one of them out: requests of such a pool belong to no target",
            );
        }
    }
    if target.weight == 0 {
        findings.violation(
            ErrorClass::Weight,
            format!("{name}: its weight in the thread pool is 0"),
            "let Weight be 1 or more, or remove the target",
        );
    }
    for thread_target in &target.thread_targets {
        if thread_target.thread >= span.thread_count {
            findings.violation(
                ErrorClass::ThreadTarget,
                format!(
                    "{name}: thread {} is named, but the pool has {}",
                    thread_target.thread, span.thread_count
                ),
                format!("threads are numbered 0 to {}", span.thread_count - 1),
            );
        }
    }
}

/// Rule 8.
fn random(target: &Target, name: &str, findings: &mut Findings) {
    for (broken, what) in [
        (target.thread_stride > 0, "a stride between threads (-T)"),
        (target.interlocked, "interlocked sequential I/O (-si)"),
        (target.parallel_async, "parallel async I/O (-p)"),
    ] {
        if broken {
            findings.violation(
                ErrorClass::SeqRandConflict,
                format!("{name}: {what} with random I/O (-r, -rs)"),
                "leave one of them out",
            );
        }
    }
}

/// Rules 9 to 11.
fn sequential(span: &TimeSpan, target: &Target, name: &str, findings: &mut Findings) {
    if target.distribution.is_some() {
        findings.violation(
            ErrorClass::Distribution,
            format!("{name}: a distribution (-rd) with sequential I/O"),
            "add -r or -rs, or leave -rd out",
        );
    }
    if target.interlocked {
        for (broken, what) in [
            (target.thread_stride > 0, "a stride between threads (-T)"),
            (target.parallel_async, "parallel async I/O (-p)"),
        ] {
            if broken {
                findings.violation(
                    ErrorClass::SeqConflict,
                    format!("{name}: {what} with interlocked sequential I/O (-si)"),
                    "leave one of them out",
                );
            }
        }
    } else if target.thread_stride > 0 && !has_several_threads(span, target) {
        findings.violation(
            ErrorClass::ThreadStride,
            format!(
                "{name}: a stride of {} bytes between threads (-T), but there is a single thread",
                target.thread_stride
            ),
            "give more threads with -t or -F, or leave -T out; -s sets the stride of one thread",
        );
    }
}

/// Rule 12.
fn ranges(distribution: &Distribution, block_size: u32, name: &str, findings: &mut Findings) {
    let io: u64 = distribution.ranges.iter().map(|range| u64::from(range.io)).sum();
    let mut violation = |message: String, help: &str| {
        findings.violation(ErrorClass::Distribution, format!("{name}: {message}"), help);
    };
    if distribution.kind == DistributionKind::Absolute {
        for (index, range) in distribution.ranges.iter().enumerate() {
            let is_last = index + 1 == distribution.ranges.len();
            if range.size == 0 && !is_last {
                violation(
                    format!("range {} of the distribution (-rd) has no length", index + 1),
                    "only the last range may have length 0: it reaches to the end of the target",
                );
            } else if range.size > 0 && range.size < u64::from(block_size) {
                violation(
                    format!(
                        "range {} of the distribution (-rd) has {} bytes, less than a block of \
                         {block_size}",
                        index + 1,
                        range.size
                    ),
                    "let every range hold at least one block",
                );
            }
        }
    }
    if io > 100 {
        violation(
            format!("the I/O of the distribution (-rd) adds up to {io} percent"),
            "let it add up to 100 or less; what is left goes to the rest of the target",
        );
    }
    if distribution.kind == DistributionKind::Absolute {
        return;
    }
    let covered = distribution.ranges.iter().fold(0_u64, |sum, r| sum.saturating_add(r.size));
    let tail_is_empty = distribution.ranges.last().is_some_and(|tail| tail.size == 0);
    if covered > 100 {
        violation(
            format!("the ranges of the distribution (-rd) cover {covered} percent of the target"),
            "let them cover 100 percent",
        );
    }
    if tail_is_empty {
        violation(
            "the ranges of the distribution (-rd) cover the target before all I/O is given out"
                .into(),
            "let the I/O add up to 100 percent, or cover less of the target",
        );
    } else if covered < 100 {
        violation(
            format!(
                "the ranges of the distribution (-rd) cover only {covered} percent of the target"
            ),
            "let them cover 100 percent, or leave some I/O over for the rest of the target",
        );
    }
}

/// Rules 13 to 15, and those on the ring and on BypassIO that go with them.
fn memory(span: &TimeSpan, target: &Target, name: &str, findings: &mut Findings) {
    let unbuffered = target.cache == CacheMode::NoOsCache;
    let mut violation = |class, message: String, help: &str| {
        findings.violation(class, format!("{name}: {message}"), help);
    };
    if let WriteContent::Random { size, .. } = target.write_content
        && size < u64::from(target.block_size)
    {
        violation(
            ErrorClass::WriteBuffer,
            format!(
                "the write source of {size} bytes (-Z) is smaller than a block of {}",
                target.block_size
            ),
            "let -Z be at least the block size",
        );
    }
    if target.memory_mapped {
        for (broken, what) in [
            (span.completion_routines, "completion routines (-x)"),
            (span.io_ring.is_some(), "ring submission (-u)"),
            (unbuffered, "disabled software caching (-Su, -Sh)"),
        ] {
            if broken {
                violation(
                    ErrorClass::MmapConflict,
                    format!("memory mapped I/O (-Sm) with {what}"),
                    "leave one of them out",
                );
            }
        }
    }
    if target.bypass_io.is_some() {
        for (broken, what, help) in [
            (!unbuffered, "without disabled software caching", "add -Su or -Sh"),
            (target.write_ratio > 0, "with writes (-w)", "leave one of them out"),
            (target.memory_mapped, "with memory mapped I/O (-Sm)", "leave one of them out"),
        ] {
            if broken {
                violation(ErrorClass::BypassIo, format!("BypassIO (-Sy, -SY) {what}"), help);
            }
        }
    }
    if target.flush.is_some() && !target.memory_mapped {
        violation(
            ErrorClass::MmapConflict,
            "a flush mode (-N) without memory mapped I/O".into(),
            "add -Sm, or leave -N out",
        );
    }
}

fn warnings(span: &TimeSpan, target: &Target, note: &str, findings: &mut Findings) {
    let several = has_several_threads(span, target);
    if target.parallel_async && target.request_count == 1 {
        findings.warning(format!("{note}-p has no effect with -o1"));
    }
    if target.random_ratio > 0 {
        return;
    }
    if target.interlocked && !several {
        findings.warning(format!("{note}-si is ignored with a single thread"));
    }
    if !target.interlocked && several && target.thread_stride == 0 {
        findings
            .warning(format!("{note}several threads without -T or -si: pattern is not sequential"));
    }
}
