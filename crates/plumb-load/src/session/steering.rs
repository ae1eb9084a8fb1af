//! The steering thread: lets the load threads go, and takes a time span through its phases.

use std::time::Duration;

use plumb_io::block_trace::BlockTrace;
use plumb_io::clock::Clock;
use plumb_io::system_tree::SystemTree;
use plumb_io::topology::Topology;
use plumb_units::Nanos;

use super::files::describe;
use super::observe::Phase;
use super::phases::{PhaseEnd, Watch};
use super::thread::StartGate;
use crate::plausibility::{Baseline, Observed};
use crate::profile::model::TimeSpan;
use crate::result::model::{PhaseTimes, TraceCounts};
use crate::trace::TraceSession;
use crate::witness::Requests;

/// What the steering thread saw.
#[derive(Debug, Default)]
pub(super) struct Steered {
    pub(super) phases: PhaseTimes,
    pub(super) elapsed: Nanos,
    pub(super) observed: Option<Observed>,
    /// Whether the user ended the measurement.
    pub(super) interrupted: bool,
    pub(super) trace: Option<TraceCounts>,
    /// What the block devices did, with `--truth`.
    pub(super) requests: Option<Requests>,
}

impl<C: Clock> Watch<'_, C> {
    /// Whether every thread is ready (D-16); false: one failed, or the user ended the run.
    pub(super) fn wait_until_ready(&mut self, gate: &StartGate, threads: usize) -> bool {
        loop {
            if let Some(ready) = gate.poll(threads, Duration::from_millis(20)) {
                return ready;
            }
            if self.observer.interrupted() {
                // Threads that are still opening and filling see the stop as soon as they are ready.
                return false;
            }
        }
    }
}

/// Steps 3 to 6 of spec 6.1.
pub(super) fn steer<C: Clock>(
    watch: &mut Watch<'_, C>,
    span: &TimeSpan,
    gate: &StartGate,
    (tree, topology): (&SystemTree, &Topology),
    (origin, trace, block_trace): (Nanos, Option<TraceSession>, Option<BlockTrace>),
) -> Steered {
    let mut steered = Steered::default();
    while !watch.observer.may_start() {
        if watch.observer.interrupted() {
            return steered;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let seconds = |seconds: u32| Nanos::from_secs(seconds.into());
    watch.controls.start(watch.clock.now());
    gate.open();
    steered.phases.warmup = Some(watch.clock.now().since(origin));
    for thread in 0..watch.lives.len() {
        watch.observer.verbose(&format!("thread {thread}: received signal to start"));
    }
    if span.warmup > 0 {
        watch.observer.verbose(&format!("starting warm up for {}s...", span.warmup));
        if watch.phase(Phase::WarmUp, seconds(span.warmup)) != PhaseEnd::Elapsed {
            return steered;
        }
    }
    watch.observer.verbose(&format!("starting measurements for {}s...", span.duration));
    if let Some(Err(error)) = trace.as_ref().map(TraceSession::start) {
        watch.observer.warning(&describe(&error));
    }
    if let Some(Err(error)) = block_trace.as_ref().map(BlockTrace::start) {
        watch.observer.warning(&describe(&error));
    }
    for group in topology.processors.chunk_by(|one, next| one.group == next.group) {
        let (number, count) = (group[0].group, group.len());
        watch
            .observer
            .verbose(&format!("get system perf info: queried for Group {number} ({count} CPUs)"));
    }
    watch.observer.measurement_started();
    let baseline = Baseline::read(tree);
    let began = watch.clock.now();
    watch.controls.measure(began);
    let end = watch.phase(Phase::Measuring, seconds(span.duration));
    steered.interrupted = end == PhaseEnd::Interrupted;
    let ended = watch.clock.now();
    watch.controls.end_measurement(ended);
    steered.elapsed = ended.since(began);
    steered.observed = Some(baseline.elapse(tree, topology, steered.elapsed));
    steered.phases.measurement = Some(began.since(origin));
    steered.phases.cooldown = Some(ended.since(origin));
    match block_trace.map(BlockTrace::stop) {
        Some(Ok(requests)) => steered.requests = Some(Requests::new(requests)),
        Some(Err(error)) => watch.observer.warning(&describe(&error)),
        None => {}
    }
    watch.observer.measurement_finished();
    match trace.map(TraceSession::stop) {
        Some(Ok(counts)) => steered.trace = Some(counts),
        Some(Err(error)) => watch.observer.warning(&describe(&error)),
        None => {}
    }
    watch.observer.verbose(&format!(
        "stopped measurements, total measured time {:.2}s...",
        steered.elapsed.as_secs_f64()
    ));
    if end == PhaseEnd::Elapsed && span.cooldown > 0 {
        watch.observer.verbose(&format!("starting cool down for {}s...", span.cooldown));
        watch.phase(Phase::CoolDown, seconds(span.cooldown));
    }
    steered
}
