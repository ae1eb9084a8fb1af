//! A planned thread becomes requests, cursors, meters and counters, ready for the loop.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plumb_io::{FileIndex, IoQueue, LaneIndex, Slot, SourceIndex};
use plumb_units::convert;

use crate::arrivals::{Arrival, Arrivals, OpenLoop};
use crate::pace::Pace;
use crate::pattern::{Bounds, Cursor, TooSmall};
use crate::payload::{Payload, fill_fixed};
use crate::plan::{PlannedTarget, ThreadPlan, takes_from_source};
use crate::profile::model::{TimeSpan, WriteContent};
use crate::rng::Rng;
use crate::run_loop::intervals::IntervalRecorder;
use crate::run_loop::{Dispatch, Issuer, IssuerTarget, Level, Pick, Schedule, Witness};
use crate::tally::OpenTally;

/// What threads of a time span share or learn only at run time.
#[derive(Debug)]
pub struct Shared<'a> {
    /// The time span.
    pub span: &'a TimeSpan,
    /// Bytes of each target.
    pub sizes: &'a [u64],
    /// Position of each target's interlocked threads.
    pub interlocked: &'a [Arc<AtomicU64>],
    /// `-:`.
    pub experiment_flags: u32,
    /// D-21: count failed I/Os and go on.
    pub continue_on_error: bool,
    /// `--rate`: a thread's level is then [`Open`](crate::run_loop::Open).
    pub open_loop: Option<OpenLoop>,
    /// `--truth`: I/Os that each thread keeps; its level is then
    /// [`Witnessed`](crate::run_loop::Witnessed).
    pub witnessed: Option<usize>,
}

/// Sets a thread up; its generator's draws come in the order of spec 6.12.
///
/// # Errors
/// When one of its targets has no room for a block at the thread's start.
pub fn issuer<L: Level>(
    shared: &Shared<'_>,
    plan: &ThreadPlan,
    intervals: Option<IntervalRecorder>,
) -> Result<Issuer<L>, TooSmall> {
    let span = shared.span;
    let mut rng = Rng::for_thread(span.rand_seed, plan.id);
    let mut targets = Vec::with_capacity(plan.targets.len());
    let mut slot_target = Vec::with_capacity(convert::index(plan.requests));
    let mut sources = 0;
    for (place, planned) in plan.targets.iter().enumerate() {
        let target = &span.targets[planned.index];
        let bounds =
            Bounds::for_thread(target, shared.sizes[planned.index], planned.relative_thread)?;
        let interlocked = &shared.interlocked[planned.index];
        let relative = planned.relative_thread;
        let cursor = Cursor::new(target, bounds, relative, planned.requests, interlocked, &mut rng);
        let is_mixed_types = (1..100).contains(&target.write_ratio);
        let last_is_write = is_mixed_types && rng.percent() <= target.write_ratio;
        let source = match &target.write_content {
            WriteContent::Random { size, .. } if takes_from_source(target) => {
                sources += 1;
                Some((SourceIndex(sources - 1), *size))
            }
            _ => None,
        };
        let pace = match plan.dispatch {
            Dispatch::Routines { .. } => Pace::Closed,
            _ => Pace::new(target, planned.sharers, shared.experiment_flags),
        };
        targets.push(IssuerTarget {
            cursor,
            payload: Payload::new(span, target, source),
            pace,
            write_ratio: target.write_ratio,
            last_is_write,
            file: FileIndex(convert::to_u32(planned.handle)),
            read_lane: LaneIndex(planned.read_lane),
            write_lane: LaneIndex(planned.write_lane),
            first_slot: planned.first_slot,
            block: target.block_size,
        });
        if !plan.weighted {
            let own = std::iter::repeat_n(convert::to_u32(place), convert::index(planned.requests));
            slot_target.extend(own);
        }
    }
    let pick = if plan.weighted && plan.requests > 0 {
        slot_target = vec![0; convert::index(plan.requests)];
        let weights: Vec<u32> = plan.targets.iter().map(|target| target.weight).collect();
        Pick::weighted(&weights)
    } else {
        Pick::Bound
    };
    let go_on = shared.continue_on_error;
    let issuer = Issuer::new(rng, pick, targets, slot_target, intervals, go_on);
    Ok(match (shared.open_loop, shared.witnessed) {
        (Some(open), _) => issuer.with_schedule(schedule(open, span, plan)),
        (None, Some(room)) => issuer.with_witness(Witness::new(plan.requests, room)),
        (None, None) => issuer,
    })
}

/// The arrivals of a thread, and what is counted of them.
fn schedule(open: OpenLoop, span: &TimeSpan, plan: &ThreadPlan) -> Schedule {
    let requests = |place: usize| match plan.weighted {
        true => plan.requests,
        false => plan.targets[place].requests,
    };
    let arrivals = |stream| Arrivals::new(open, stream, span.rand_seed);
    let streams = plan.streams.iter().enumerate();
    let streams = streams.map(|(place, stream)| (arrivals(*stream), requests(place)));
    let weights: u64 = plan.targets.iter().map(|target| u64::from(target.weight)).sum();
    let rate = |(place, target): (usize, &PlannedTarget)| match plan.weighted {
        true => plan.streams[0].rate(open) * f64::from(target.weight) / weights.max(1) as f64,
        false => plan.streams[place].rate(open),
    };
    let tallies = plan.targets.iter().enumerate().map(rate);
    let burst = match open.arrival {
        Arrival::Burst { ios, .. } => f64::from(ios) / f64::from(open.rate.max(1)),
        _ => 0.0,
    };
    let tallies = tallies
        .map(|rate| OpenTally { burst: burst * rate, ..OpenTally::new(rate, span.duration) });
    Schedule::new(streams.collect(), plan.weighted, tallies.collect())
}

/// Fills the thread's own write buffers as spec 6.8 says; read buffers are touched, so that their
/// pages exist before the clock starts.
pub fn fill_buffers<Q: IoQueue>(queue: &mut Q, span: &TimeSpan, plan: &ThreadPlan) {
    for planned in &plan.targets {
        let target = &span.targets[planned.index];
        let block = u64::from(target.block_size);
        let halves = [(planned.read_lane, 0), (planned.write_lane, u64::from(planned.requests))];
        for (lane, first) in halves {
            if lane == u32::MAX {
                continue;
            }
            for request in 0..planned.requests {
                let position = (first + u64::from(request)) * block;
                let buffer = queue.buffer_mut(Slot(planned.first_slot + request), LaneIndex(lane));
                if target.write_ratio > 0 {
                    fill_fixed(&target.write_content, position, buffer);
                } else {
                    for page in buffer.chunks_mut(4096) {
                        page[0] = 0;
                    }
                }
            }
        }
    }
}
