//! The rules of a time span; those of its targets follow them.

use std::collections::BTreeMap;

use super::{Findings, Purpose, target};
use crate::profile::error::ErrorClass;
use crate::profile::model::{BypassIo, RingBatch, Target, TimeSpan};

/// Requests that a thread may have outstanding on a target, or in a pool (D-25).
pub(super) const REQUESTS_MAX: u32 = 65536;

/// Checks one time span; `place` names it at the start of every message.
pub(super) fn check(span: &TimeSpan, place: &str, purpose: Purpose, findings: &mut Findings) {
    completion_depth(span, place, findings);
    affinity(span, place, findings);
    ring(span, place, findings);
    if span.request_count > REQUESTS_MAX {
        findings.violation(
            ErrorClass::RequestCount,
            format!("{place}{} outstanding I/Os per thread (-O)", span.request_count),
            format!("at most {REQUESTS_MAX} are possible"),
        );
    }
    if span.calculate_iops_std_dev && span.io_bucket_duration == 0 {
        findings.violation(
            ErrorClass::BadNumber,
            format!("{place}I/Os cannot be counted in intervals of 0 ms (-D)"),
            "let IoBucketDuration be 1 or more, or leave it out for 1000",
        );
    }
    if span.targets.is_empty() {
        findings.violation(
            ErrorClass::NoTarget,
            format!("{place}there is no target"),
            "name at least one file or device",
        );
    }
    targets(span, place, purpose, findings);
    bypass_io_by_path(span, place, findings);
}

/// Every target, or the first one for all when they differ in nothing but the path.
fn targets(span: &TimeSpan, place: &str, purpose: Purpose, findings: &mut Findings) {
    let names = names(span);
    match span.targets.as_slice() {
        [] => {}
        [only] => target::check(span, only, &format!("{place}{}", names[0]), place, findings),
        [first, others @ ..] if others.iter().all(|other| differs_in_path_only(first, other)) => {
            target::check(span, first, &format!("{place}every target"), place, findings);
        }
        all => {
            for (each, name) in all.iter().zip(&names) {
                let name = format!("{place}{name}");
                target::check(span, each, &name, &format!("{name}: "), findings);
            }
        }
    }
    if purpose == Purpose::Run {
        for (each, name) in span.targets.iter().zip(&names) {
            target::no_template(each, &format!("{place}{name}"), findings);
        }
    }
}

fn differs_in_path_only(one: &Target, other: &Target) -> bool {
    Target { path: one.path.clone(), ..other.clone() } == *one
}

/// Targets by their paths, with their places in the list where a path is there more than once.
fn names(span: &TimeSpan) -> Vec<String> {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for target in &span.targets {
        *seen.entry(&target.path).or_default() += 1;
    }
    let name = |(index, target): (usize, &Target)| match seen[target.path.as_str()] {
        1 => format!("target '{}'", target.path),
        _ => format!("target {} '{}'", index + 1, target.path),
    };
    span.targets.iter().enumerate().map(name).collect()
}

fn completion_depth(span: &TimeSpan, place: &str, findings: &mut Findings) {
    let Some(depth) = span.completion_depth else { return };
    if !(1..=16).contains(&depth) {
        findings.violation(
            ErrorClass::CompletionDepth,
            format!("{place}completion depth {depth} (-oc)"),
            "between 1 and 16 completions can be taken per visit",
        );
    }
    if span.completion_routines {
        findings.violation(
            ErrorClass::CompletionDepth,
            format!("{place}completion depth {depth} (-oc) with completion routines (-x)"),
            "leave one of them out: completion routines take one completion at a time",
        );
    }
    if !span.targets.is_empty() && span.targets.iter().all(|target| target.memory_mapped) {
        findings.violation(
            ErrorClass::CompletionDepth,
            format!("{place}completion depth {depth} (-oc), but every target is mapped (-Sm)"),
            "leave -oc out: I/O through a mapping completes at once",
        );
    }
    if span.io_ring.is_some() {
        findings.warning(format!("{place}-oc has no effect with -u"));
    }
}

fn affinity(span: &TimeSpan, place: &str, findings: &mut Findings) {
    if !span.disable_affinity {
        return;
    }
    let given = match (span.affinity.is_empty(), span.affinity_traversal.is_some()) {
        (false, _) => "a list of processors (-a)",
        (true, true) => "an order of processors (-ac, -as, -ap, ...)",
        (true, false) => return,
    };
    findings.violation(
        ErrorClass::AffinityConflict,
        format!("{place}affinity is disabled (-n), but {given} is given"),
        "leave one of them out",
    );
}

fn ring(span: &TimeSpan, place: &str, findings: &mut Findings) {
    let Some(ring) = span.io_ring else { return };
    let (batch, unit, limit) = match ring.batch {
        RingBatch::Ios(count) => (count, "I/Os", 65536),
        RingBatch::Percent(percent) => (percent, "percent", 100),
    };
    if batch == 0 || batch > limit {
        findings.violation(
            ErrorClass::IoRing,
            format!("{place}ring batch of {batch} {unit} (-u)"),
            format!("between 1 and {limit} {unit} are possible"),
        );
    }
    if span.completion_routines {
        findings.violation(
            ErrorClass::IoRing,
            format!("{place}ring submission (-u) with completion routines (-x)"),
            "leave one of them out",
        );
    }
}

/// Targets of one path must agree on BypassIO: the path is opened once for all of them.
fn bypass_io_by_path(span: &TimeSpan, place: &str, findings: &mut Findings) {
    let mut modes: BTreeMap<&str, (Option<BypassIo>, bool)> = BTreeMap::new();
    for target in &span.targets {
        let (first, differ) = modes.entry(&target.path).or_insert((target.bypass_io, false));
        *differ |= *first != target.bypass_io;
    }
    for (path, _) in modes.iter().filter(|(_, (_, differ))| *differ) {
        findings.violation(
            ErrorClass::BypassIo,
            format!("{place}targets of path '{path}' differ in BypassIO"),
            "give all of them the same <BypassIO>, or none",
        );
    }
}
