//! Who does what: threads, their targets, requests, buffers and processors (spec 6.2).
//!
//! After the plan nothing is optional and nothing is parsed.

use plumb_io::{BufferPlacement, LaneSpec, QueueMode, RegionSpec};
use plumb_units::convert;

use crate::arrivals::{self, Stream};
use crate::pace::Pace;
use crate::profile::model::{CacheMode, Target, TimeSpan, WriteContent};
use crate::run_loop::Dispatch;

/// Submissions gathered per call when latencies are measured (D-32).
pub const BATCH_LATENCY: u32 = 8;
/// Submissions gathered per call when they are not (D-32).
pub const BATCH_PEAK: u32 = 32;
/// Where latencies are measured: the share of a thread's requests that one call takes when a burst of
/// completions has left so many idle, as a fraction (docs/decisions/0022).
const BURST_SHARE: (u32, u32) = (3, 4);
/// No burst takes more.
const BURST_MAX: u32 = 64;
/// A lane that is never used.
const NO_LANE: u32 = u32::MAX;

/// One time span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanPlan {
    /// In thread order.
    pub threads: Vec<ThreadPlan>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPlan {
    /// Its number.
    pub id: u32,
    /// (group, processor) it is bound to; `None`: not bound.
    pub processor: Option<(u16, u8)>,
    /// Its targets, in target order.
    pub targets: Vec<PlannedTarget>,
    /// What it opens: one handle for targets of equal path, cache mode, priority, access and flags.
    pub handles: Vec<Handle>,
    /// What arrives at it in an open loop: a stream for each target, a single one in a weighted pool.
    pub streams: Vec<Stream>,
    /// Its requests.
    pub requests: u32,
    /// Whether its requests pick a target anew for every I/O.
    pub weighted: bool,
    /// How it hands in I/O.
    pub dispatch: Dispatch,
    /// Where its buffers lie.
    pub placement: BufferPlacement,
}

/// One target of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTarget {
    /// Its place in the time span.
    pub index: usize,
    /// Index of the thread among those of the target.
    pub relative_thread: u32,
    /// Share in a weighted pool.
    pub weight: u32,
    /// First slot of its requests; 0 in a weighted pool.
    pub first_slot: u32,
    /// Its requests; all of the thread's in a weighted pool.
    pub requests: u32,
    /// Its handle.
    pub handle: usize,
    /// Lane of its read buffers.
    pub read_lane: u32,
    /// Lane of its write buffers.
    pub write_lane: u32,
    /// Threads that share a burst (spec 6.9).
    pub sharers: u32,
}

/// What makes two targets share a handle (spec 6.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    /// A target of the time span that is opened this way.
    pub target: usize,
    /// The key: path, and everything that goes into the open flags.
    key: (String, CacheMode, bool, bool, u32, (bool, bool, bool), Access),
}

/// Why a target is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Write ratio 0.
    Read,
    /// Write ratio 100.
    Write,
    /// Everything between, and mapped targets.
    Both,
}

impl Access {
    /// The access that `target` needs.
    #[must_use]
    pub fn of(target: &Target) -> Self {
        match target.write_ratio {
            _ if target.memory_mapped && target.write_ratio > 0 => Self::Both,
            0 => Self::Read,
            100.. => Self::Write,
            _ => Self::Both,
        }
    }

    /// Whether it writes.
    #[must_use]
    pub fn writes(self) -> bool {
        self != Self::Read
    }
}

/// What a plan needs beside the time span.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanOptions<'a> {
    /// Processors in the order in which threads take them (spec 15.5); empty with `-n`.
    pub processors: &'a [(u16, u8)],
    /// Effective alignment of buffers, 0 for none (spec 15.4).
    pub separation: u64,
    /// `--batch`.
    pub batch: Option<u32>,
    /// Whether I/Os start at times fixed in advance (`--rate`).
    pub open_loop: bool,
}

/// Plans a time span that passed its checks.
#[must_use]
pub fn plan(span: &TimeSpan, options: PlanOptions<'_>) -> SpanPlan {
    let mut threads = Vec::new();
    if span.thread_count > 0 {
        for id in 0..span.thread_count {
            let targets = span.targets.iter().enumerate().filter_map(|(index, target)| {
                let own = target.thread_targets.iter().find(|own| own.thread == id);
                if own.is_none() && !target.thread_targets.is_empty() {
                    return None;
                }
                let weight = own.map_or(0, |own| own.weight);
                let weight = if weight == 0 { target.weight } else { weight };
                Some((index, id, weight))
            });
            threads.push(thread(span, id, targets.collect(), options));
        }
    } else {
        let mut id = 0;
        for (index, target) in span.targets.iter().enumerate() {
            for relative in 0..target.threads_per_file {
                threads.push(thread(span, id, vec![(index, relative, target.weight)], options));
                id += 1;
            }
        }
    }
    arrivals::deal(span, &mut threads);
    SpanPlan { threads }
}

/// Plans one thread over (place of the target, relative thread, weight).
fn thread(
    span: &TimeSpan,
    id: u32,
    chosen: Vec<(usize, u32, u32)>,
    options: PlanOptions<'_>,
) -> ThreadPlan {
    let weighted = span.is_weighted_pool();
    let mut handles: Vec<Handle> = Vec::new();
    let mut targets = Vec::with_capacity(chosen.len());
    let (mut slots, mut lanes) = (0, 0);
    for (index, relative_thread, weight) in chosen {
        let target = &span.targets[index];
        let requests = if weighted { span.request_count } else { target.request_count };
        let key = handle_key(target);
        let handle = handles.iter().position(|handle| handle.key == key).unwrap_or_else(|| {
            handles.push(Handle { target: index, key });
            handles.len() - 1
        });
        let mut lane = |wanted: bool| {
            let lane = if wanted { lanes } else { NO_LANE };
            lanes += u32::from(wanted);
            lane
        };
        let (reads, writes) = needs(target);
        targets.push(PlannedTarget {
            index,
            relative_thread,
            weight,
            first_slot: if weighted { 0 } else { slots },
            requests,
            handle,
            read_lane: lane(reads),
            write_lane: lane(writes),
            sharers: sharers(span, target),
        });
        if !weighted {
            slots += requests;
        }
    }
    let requests = match (weighted, targets.is_empty()) {
        (_, true) => 0,
        (true, _) => span.request_count,
        (false, _) => slots,
    };
    let own = || targets.iter().map(|planned| &span.targets[planned.index]);
    let dispatch = dispatch(span, requests, own(), options);
    let placement = if own().any(|target| target.use_large_pages) {
        BufferPlacement::LargePages
    } else if options.separation > 0 {
        BufferPlacement::Separated(options.separation)
    } else {
        BufferPlacement::System
    };
    let processor = match options.processors {
        [] => None,
        list => Some(list[convert::index(id) % list.len()]),
    };
    let streams = Vec::new();
    ThreadPlan { id, processor, targets, handles, streams, requests, weighted, dispatch, placement }
}

/// Whether a target needs read buffers and write buffers of its own.
fn needs(target: &Target) -> (bool, bool) {
    (target.write_ratio < 100, target.write_ratio > 0 && !takes_from_source(target))
}

/// Whether writes to a target take their content from a shared source.
#[must_use]
pub fn takes_from_source(target: &Target) -> bool {
    target.write_ratio > 0 && matches!(target.write_content, WriteContent::Random { .. })
}

/// Threads that share the bursts of a target (spec 6.9).
fn sharers(span: &TimeSpan, target: &Target) -> u32 {
    match target.thread_targets.len() {
        0 if span.thread_count > 0 => span.thread_count,
        0 => target.threads_per_file,
        threads => convert::to_u32(threads),
    }
}

fn handle_key(target: &Target) -> (String, CacheMode, bool, bool, u32, (bool, bool, bool), Access) {
    let hints = (target.sequential_scan, target.random_access, target.temporary_file);
    (
        target.path.clone(),
        target.cache,
        target.write_through,
        target.memory_mapped,
        target.io_priority,
        hints,
        Access::of(target),
    )
}

/// How a thread of `requests` hands in its I/O (spec 6.2, 15.2, 15.3, D-32).
fn dispatch<'a>(
    span: &TimeSpan,
    requests: u32,
    targets: impl Iterator<Item = &'a Target> + Clone,
    PlanOptions { batch, open_loop, .. }: PlanOptions<'_>,
) -> Dispatch {
    let mapped = targets.clone().map(|target| target.memory_mapped);
    // Where the time holds requests back, most are idle without a burst of completions.
    let mut paces = targets.map(|target| Pace::new(target, 1, 0));
    let holds_back = open_loop || paces.any(|pace| pace.holds_back());
    let gathered = batch.unwrap_or(if span.stamps_latency() { BATCH_LATENCY } else { BATCH_PEAK });
    let no_target_is_mapped = mapped.clone().all(|mapped| !mapped);
    let all_are_mapped = mapped.clone().count() > 0 && mapped.into_iter().all(|mapped| mapped);
    if let Some(ring) = span.io_ring {
        Dispatch::Ring { batch: ring.batch.for_requests(requests) }
    } else if requests <= 1 || all_are_mapped {
        Dispatch::Synchronous
    } else if span.completion_routines && no_target_is_mapped {
        Dispatch::Routines { batch: gathered }
    } else {
        // `-oc` is obeyed when given; its default binds only where latencies are measured.
        let completions = match span.completion_depth {
            Some(depth) => depth.min(requests),
            None if span.stamps_latency() => span.effective_completion_depth().min(requests),
            None => requests,
        };
        let burst = match batch {
            Some(batch) => batch,
            None if !span.stamps_latency() || holds_back => gathered,
            None => {
                let share = requests.min(2 * BURST_MAX) * BURST_SHARE.0 / BURST_SHARE.1;
                share.clamp(gathered, BURST_MAX)
            }
        };
        Dispatch::Asynchronous { batch: gathered, burst, completions }
    }
}

impl ThreadPlan {
    /// How its queue will be used.
    #[must_use]
    pub fn mode(&self) -> QueueMode {
        match self.dispatch {
            Dispatch::Synchronous => QueueMode::Synchronous,
            Dispatch::Asynchronous { .. } | Dispatch::Routines { .. } => QueueMode::Asynchronous,
            Dispatch::Ring { .. } => QueueMode::Ring,
        }
    }

    /// The targets of the time span whose shared write sources its queue needs, in the order of its
    /// source indices.
    pub fn sources<'a>(&'a self, span: &'a TimeSpan) -> impl Iterator<Item = usize> + 'a {
        let indices = self.targets.iter().map(|planned| planned.index);
        indices.filter(|index| takes_from_source(&span.targets[*index]))
    }

    /// The memory of its queue: per target a read half and a write half (spec 6.8), as far as they
    /// are used.
    #[must_use]
    pub fn regions(&self, span: &TimeSpan) -> Vec<RegionSpec> {
        let regions = self.targets.iter().map(|planned| {
            let lane = LaneSpec {
                first_slot: planned.first_slot,
                slots: planned.requests,
                bytes: span.targets[planned.index].block_size,
            };
            let (reads, writes) = needs(&span.targets[planned.index]);
            RegionSpec { lanes: vec![lane; usize::from(reads) + usize::from(writes)] }
        });
        regions.filter(|region| !region.lanes.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::model::{IoRing, RingBatch, ThreadTarget, Throughput};

    fn options(processors: &[(u16, u8)]) -> PlanOptions<'_> {
        PlanOptions { processors, ..PlanOptions::default() }
    }

    fn target(path: &str) -> Target {
        Target { path: path.into(), ..Target::default() }
    }

    #[test]
    fn threads_are_numbered_in_target_order() {
        let targets = vec![
            Target { threads_per_file: 2, ..target("a") },
            Target { threads_per_file: 1, ..target("b") },
        ];
        let span = TimeSpan { targets, ..TimeSpan::default() };
        let plan = plan(&span, options(&[(0, 3), (0, 1)]));
        let seen = plan.threads.iter().map(|thread| {
            let target = &thread.targets[0];
            (thread.id, thread.processor, target.index, target.relative_thread)
        });
        let seen = seen.collect::<Vec<_>>();
        assert_eq!(
            seen,
            [(0, Some((0, 3)), 0, 0), (1, Some((0, 1)), 0, 1), (2, Some((0, 3)), 1, 0)]
        );
    }

    #[test]
    fn a_pool_thread_works_on_the_targets_that_name_it() {
        let only_one = vec![ThreadTarget { thread: 1, weight: 7 }];
        let targets = vec![target("a"), Target { thread_targets: only_one, ..target("b") }];
        let span = TimeSpan { thread_count: 2, request_count: 4, targets, ..TimeSpan::default() };
        let plan = plan(&span, options(&[]));
        let of = |thread: usize| -> Vec<(usize, u32)> {
            let targets = plan.threads[thread].targets.iter();
            targets.map(|target| (target.index, target.weight)).collect()
        };
        assert_eq!((of(0), of(1)), (vec![(0, 1)], vec![(0, 1), (1, 7)]));
        assert!(plan.threads.iter().all(|thread| thread.requests == 4 && thread.weighted));
    }

    #[test]
    fn a_burst_may_take_more_than_the_cap_unless_a_cap_is_given() {
        let caps = |requests, latency, batch| {
            let targets = vec![Target { request_count: requests, ..target("a") }];
            let span = TimeSpan { targets, measure_latency: latency, ..TimeSpan::default() };
            let plan = plan(&span, PlanOptions { batch, ..options(&[]) });
            let dispatch = plan.threads[0].dispatch;
            (dispatch.batch(), dispatch.burst())
        };
        assert_eq!(caps(4, true, None), (8, 8));
        assert_eq!(caps(16, true, None), (8, 12));
        assert_eq!(caps(32, true, None), (8, 24));
        assert_eq!(caps(64, true, None), (8, 48));
        assert_eq!(caps(u32::MAX / 64, true, None), (8, 64));
        assert_eq!(caps(32, false, None), (32, 32));
        assert_eq!(caps(32, true, Some(8)), (8, 8));
        assert_eq!(caps(32, true, Some(1)), (1, 1));
    }

    /// `-oc` binds wherever it is given; its default only where latencies are measured (D-32).
    #[test]
    fn a_completion_depth_binds_where_it_is_given_and_by_default_with_latencies() {
        let completions = |requests, latency, completion_depth| {
            let targets = vec![Target { request_count: requests, ..target("a") }];
            let measure_latency = latency;
            let span =
                TimeSpan { targets, measure_latency, completion_depth, ..TimeSpan::default() };
            match plan(&span, options(&[])).threads[0].dispatch {
                Dispatch::Asynchronous { completions, .. } => completions,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(completions(32, true, None), 16);
        assert_eq!(completions(32, false, None), 32);
        assert_eq!(completions(8, true, None), 8);
        for latency in [true, false] {
            assert_eq!(completions(32, latency, Some(3)), 3);
            assert_eq!(completions(32, latency, Some(16)), 16);
            assert_eq!(completions(2, latency, Some(3)), 2);
        }
    }

    #[test]
    fn what_holds_requests_back_keeps_the_strict_cap() {
        let caps = |target: Target, open_loop| {
            let other = Target { request_count: 16, ..self::target("b") };
            let targets = vec![Target { request_count: 16, ..target }, other];
            let span =
                TimeSpan { targets, thread_count: 1, measure_latency: true, ..TimeSpan::default() };
            let plan = plan(&span, PlanOptions { open_loop, ..options(&[]) });
            let dispatch = plan.threads[0].dispatch;
            (dispatch.batch(), dispatch.burst())
        };
        assert_eq!(caps(target("a"), false), (8, 24));
        assert_eq!(caps(target("a"), true), (8, 8));
        let limited = Throughput { value: 100, ..Throughput::default() };
        assert_eq!(caps(Target { throughput: limited, ..target("a") }, false), (8, 8));
        assert_eq!(caps(Target { burst_size: 4, think_time: 1, ..target("a") }, false), (8, 8));
    }

    #[test]
    fn one_request_is_synchronous_unless_a_ring_is_asked_for() {
        let one = vec![Target { request_count: 1, ..target("a") }];
        let mut span = TimeSpan { targets: one, ..TimeSpan::default() };
        assert_eq!(plan(&span, options(&[])).threads[0].dispatch, Dispatch::Synchronous);
        let ring = IoRing { batch: RingBatch::Ios(8), registered_buffers: true };
        span.io_ring = Some(ring);
        assert_eq!(plan(&span, options(&[])).threads[0].dispatch, Dispatch::Ring { batch: 1 });
    }

    #[test]
    fn equal_targets_share_a_handle_and_keep_their_requests() {
        let targets = vec![target("a"), Target { write_ratio: 10, ..target("a") }, target("a")];
        let span = TimeSpan { thread_count: 1, targets, ..TimeSpan::default() };
        let thread = &plan(&span, options(&[])).threads[0];
        let handles: Vec<_> = thread.targets.iter().map(|target| target.handle).collect();
        let slots: Vec<_> = thread.targets.iter().map(|target| target.first_slot).collect();
        assert_eq!((handles, slots, thread.requests), (vec![0, 1, 0], vec![0, 2, 4], 6));
    }
}
