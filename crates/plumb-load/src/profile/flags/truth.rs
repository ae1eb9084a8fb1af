//! What `--truth` does to a workload, and what it does not go with.

use super::error::CommandLineError;
use super::line::Scan;
use super::table::Id;
use super::values::Fault;
use super::warnings::Warnings;
use crate::profile::error::ErrorClass;
use crate::profile::model::RawProfile;

/// Makes the time spans of `profile` ready, if it is asked for.
pub(super) fn apply(
    scan: &Scan<'_>,
    profile: &mut RawProfile,
    warnings: &mut Warnings,
) -> Result<(), CommandLineError> {
    let Some(given) = scan.options.iter().rev().find(|given| given.id == Id::Truth) else {
        return Ok(());
    };
    let refuse = |what: &str| {
        let help = "it needs a run of its own: leave one of them out";
        let fault = Fault::option(format!(" does not go with {what}"), help);
        Err(given.error(&fault.of(ErrorClass::LongOption)))
    };
    if scan.run.rate.is_some() {
        return refuse("an open loop (--rate)");
    }
    for span in &mut profile.time_spans {
        if span.calculate_iops_std_dev {
            return refuse("intervals (-D)");
        }
        if span.targets.iter().any(|target| target.memory_mapped) {
            return refuse("memory mapped targets (-Sm), whose I/O are no requests");
        }
        span.measure_latency = true;
    }
    if profile.profile_only || scan.run.profile_json {
        warnings.add(given.index, "--truth is no part of a profile: give it to the run");
    }
    Ok(())
}
