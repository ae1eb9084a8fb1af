//! What `--rate` does to a workload, and what it does not go with.

use super::error::CommandLineError;
use super::line::{Given, Scan};
use super::table::Id;
use super::values::Fault;
use super::warnings::Warnings;
use crate::arrivals::Arrival;
use crate::profile::error::ErrorClass;
use crate::profile::model::{RawProfile, TimeSpan};

/// Outstanding I/Os of a run that does not say how many: at least so many …
const REQUESTS: u64 = 1024;
/// … and those that arrive in this time, four times the 10 ms that a loaded disk may take (method, 5.6),
/// as many as a ring takes in at most …
const ARRIVALS_MS: u64 = 40;
const REQUESTS_MAX: u64 = 32_768;
/// … unless their buffers would be larger than this.
const BUFFERS: u64 = 256 << 20;

/// Makes the time spans of `profile` ready for an open loop, if one is asked for. `said`: of a profile's file, which of its
/// targets say their `RequestCount`.
pub(super) fn apply(
    scan: &Scan<'_>,
    said: Option<&[Vec<bool>]>,
    profile: &mut RawProfile,
    warnings: &mut Warnings,
) -> Result<(), CommandLineError> {
    let last = |id| scan.options.iter().rev().find(|given| given.id == id);
    let (rate, arrival) = (last(Id::Rate), last(Id::Arrival));
    let Some(open) = scan.run.open_loop() else {
        let help = "add --rate and the I/Os per second, as in --rate=1000, or leave --arrival out";
        let Some(given) = arrival else { return Ok(()) };
        return Err(given.error(&Fault::option(" needs --rate", help)));
    };
    let rate = rate.expect("the options come from the line");
    if let Some(arrival) = arrival.filter(|_| !open.bursts_fit()) {
        let what = format!(
            ": at {} I/Os per second the next burst begins before this one is over",
            open.rate
        );
        let help = "spread the burst over fewer milliseconds, or give it more I/Os";
        return Err(arrival.error(&Fault::value(what, help)));
    }
    for span in &profile.time_spans {
        conflicts(rate, span)?;
        if let (Some(given), Arrival::Burst { ios, .. }) = (arrival, open.arrival)
            && u64::from(ios) > u64::from(open.rate) * u64::from(span.duration)
            && span.duration > 0
        {
            let what = format!(
                ": at {} I/Os per second a burst of {ios} lasts for more than the {} s of the measurement",
                open.rate, span.duration
            );
            let help = "make the burst smaller or the measurement longer: a burst stands for the time to the next";
            return Err(given.error(&Fault::value(what, help)));
        }
    }
    let on_the_line = scan
        .options
        .iter()
        .any(|given| matches!(given.id, Id::Outstanding | Id::ThreadOutstanding));
    for (index, span) in profile.time_spans.iter_mut().enumerate() {
        span.measure_latency = true;
        if on_the_line || span.request_count > 0 {
            continue;
        }
        let streams = match span.thread_count {
            0 => span.total_threads(),
            threads => u64::from(threads) * plumb_units::convert::to_u64(span.targets.len()),
        };
        let said = said.and_then(|said| said.get(index));
        for (index, target) in span.targets.iter_mut().enumerate() {
            let says = said.and_then(|said| said.get(index)).copied().unwrap_or(false);
            if says || target.memory_mapped {
                continue;
            }
            let room = BUFFERS / u64::from(target.block_size.max(1));
            let arrivals = u64::from(open.rate) * ARRIVALS_MS / 1000;
            let wanted = arrivals.clamp(REQUESTS, REQUESTS_MAX);
            let requests = wanted.min(room).div_ceil(streams.max(1)).max(2);
            target.request_count = u32::try_from(requests).unwrap_or(target.request_count);
        }
    }
    if profile.profile_only || scan.run.profile_json {
        warnings.add(rate.index, "--rate is no part of a profile: give it to the run");
    }
    Ok(())
}

/// What else decides when an I/O starts.
fn conflicts(rate: &Given<'_>, span: &TimeSpan) -> Result<(), CommandLineError> {
    let any =
        |broken: &dyn Fn(&crate::profile::model::Target) -> bool| span.targets.iter().any(broken);
    let refuse = |class, what| {
        let fault = Fault::option(format!(" does not go with {what}"), "leave one of them out");
        Err(rate.error(&fault.of(class)))
    };
    if any(&|target| target.throughput.value > 0) {
        return refuse(ErrorClass::ThroughputConflict, "a throughput limit (-g)");
    }
    if any(&|target| target.burst_size > 0) {
        return refuse(ErrorClass::BurstConflict, "bursts (-i)");
    }
    if any(&|target| target.think_time > 0) {
        return refuse(ErrorClass::BurstConflict, "a pause between bursts (-j)");
    }
    if span.completion_routines {
        return refuse(ErrorClass::ThroughputConflict, "completion routines (-x)");
    }
    Ok(())
}
