//! One time span: its mode, its figures, its threads.

use std::collections::BTreeMap;

use plumb_io::{Errno, QueueFacts};
use plumb_units::Nanos;
use serde::Serialize;
use serde_json::Value;

use super::counters;
use super::figures::{Buckets, Latency, Sides, errors_by_direction, targets};
use super::intervals::{Deviations, Intervals};
use super::open_loop::Open;
use super::verify::Verify;
use crate::profile::model::{
    EfficiencyOrder, GroupOrder, ProcessorOrder, RingBatch, Target, TimeSpan,
};
use crate::result::errno_name;
use crate::result::figures::Figures;
use crate::result::littles_law::LittlesLaw;
use crate::result::model::{
    CpuUsage, PhaseTimes, PlausibilityItem, SpanResult, TargetResult, ThreadResult, TraceCounts,
    WaitStatistics,
};
use crate::result::stamp_error::StampError;
use crate::result::text::cpu;
use crate::tally::{Histogram, LatencySet};
use crate::witness::Truth;

#[derive(Serialize)]
pub(super) struct Span<'a> {
    number: u32,
    state: &'static str,
    elapsed_ns: u64,
    phases: Phases,
    mode: Mode<'a>,
    queues: Vec<Queue<'a>>,
    #[serde(flatten)]
    sides: Sides,
    cpu: SpanCpu,
    littles_law: Law,
    targets: Vec<OfTarget<'a>>,
    threads: Vec<Thread<'a>>,
    intervals: Option<Intervals<'a>>,
    trace: Option<Trace<'a>>,
    plausibility: Vec<Item<'a>>,
    failures: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verify: Option<Verify<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_loop: Option<Open>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stamp_error: Option<ErrorBar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<Compared>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Value>,
}

impl<'a> Span<'a> {
    pub(super) fn of(number: u32, span: &'a SpanResult, asked: &'a TimeSpan) -> Self {
        let figures = span.figures();
        let errors = errors_by_direction(targets(span, asked));
        Self {
            number,
            state: span.state().keyword(),
            elapsed_ns: span.elapsed.0,
            phases: Phases::of(span.phases),
            mode: Mode::of(span, asked),
            queues: span.queues.iter().map(Queue::of).collect(),
            sides: Sides::new(&figures, span.elapsed, errors, Buckets::With),
            cpu: SpanCpu::of(span, figures.total().io_count),
            littles_law: Law::of(span, asked),
            targets: OfTarget::all(span, asked),
            threads: span.threads.iter().map(|thread| Thread::of(thread, span, asked)).collect(),
            intervals: Intervals::of(span),
            trace: span.trace.as_ref().map(Trace::of),
            plausibility: span.plausibility.iter().map(Item::of).collect(),
            failures: span.failures.iter().map(|failure| failure.text.as_str()).collect(),
            verify: span.verify.as_ref().map(Verify::of),
            open_loop: Open::of(
                span.open_loop,
                span.threads.iter().flat_map(|thread| &thread.targets),
                Buckets::With,
            ),
            stamp_error: span.stamp_error.as_ref().and_then(|error| ErrorBar::of(span, error)),
            truth: span.truth.as_ref().map(Compared::of),
            counters: span.counters.as_ref().map(counters::value),
        }
    }
}

/// Latencies beside the device's.
#[derive(Serialize)]
struct Compared {
    beyond_bound_p99_ns: Option<u64>,
    kept: u64,
    not_kept: u64,
    matched: u64,
    lost_events: u64,
    device_ns: Option<Latency>,
    reported_ns: Option<Latency>,
    front_ns: Option<Latency>,
    reap_lag_ns: Option<Latency>,
    median_ratio: Option<f64>,
    within_bound_share: Option<f64>,
    within_usual_share: Option<f64>,
}

impl Compared {
    fn of(truth: &Truth) -> Self {
        let set = |of: &Histogram| Latency::new(&LatencySet::Binned(of.clone()), Buckets::Without);
        Self {
            beyond_bound_p99_ns: truth.beyond_bound_p99().map(|time| time.0),
            kept: truth.kept,
            not_kept: truth.not_kept,
            matched: truth.matched,
            lost_events: truth.lost_events,
            device_ns: set(&truth.device),
            reported_ns: set(&truth.reported),
            front_ns: set(&truth.front),
            reap_lag_ns: set(&truth.reap_lag),
            median_ratio: truth.median_ratio(),
            within_bound_share: truth.within_bound_share(),
            within_usual_share: truth.within_usual_share(),
        }
    }
}

/// How late completions may have been seen.
#[derive(Serialize)]
struct ErrorBar {
    p50_ns: u64,
    p99_ns: u64,
    p99_allowed_ns: u64,
    max_ns: u64,
    woken_share: f64,
    wake_up_ns: Option<u64>,
    wake_up_p99_8_ns: Option<u64>,
    wake_up_allowed_ns: Option<u64>,
    wake_up_max_ns: Option<u64>,
    processor_wait_ns: Option<u64>,
    processor_turns: Option<u64>,
    share_of_median: Option<f64>,
}

impl ErrorBar {
    fn of(span: &SpanResult, error: &StampError) -> Option<Self> {
        Some(Self {
            p50_ns: error.percentile(50)?.0,
            p99_ns: error.percentile(99)?.0,
            p99_allowed_ns: error.allowed_percentile(99)?.0,
            max_ns: error.max()?.0,
            woken_share: error.woken_share()?,
            wake_up_ns: error.wake_up.map(|time| time.median.0),
            wake_up_p99_8_ns: error.wake_up.map(|time| time.high.0),
            wake_up_allowed_ns: error.wake_up.map(|time| time.allowed().0),
            wake_up_max_ns: error.wake_up.map(|time| time.max.0),
            processor_wait_ns: error.wait.and_then(|wait| wait.mean()).map(|wait| wait.0),
            processor_turns: error.wait.map(|wait| wait.turns),
            share_of_median: error.share_of_median(span),
        })
    }
}

/// Since the start of the run.
#[derive(Serialize)]
struct Phases {
    warmup_start_ns: Option<u64>,
    measurement_start_ns: Option<u64>,
    cooldown_start_ns: Option<u64>,
    end_ns: Option<u64>,
}

impl Phases {
    fn of(phases: PhaseTimes) -> Self {
        let nanos = |at: Option<Nanos>| at.map(|at| at.0);
        Self {
            warmup_start_ns: nanos(phases.warmup),
            measurement_start_ns: nanos(phases.measurement),
            cooldown_start_ns: nanos(phases.cooldown),
            end_ns: nanos(phases.end),
        }
    }
}

/// The effective mode: only results that agree in it may be compared (spec 15.14).
#[derive(Serialize)]
struct Mode<'a> {
    profile: &'static str,
    submission: Option<&'a str>,
    batch: u32,
    burst: u32,
    ring: Option<Ring>,
    completion_depth: Option<u32>,
    buffer_separation_bytes: u64,
    processor_order: &'static str,
    group_order: &'static str,
    efficiency_order: &'static str,
    effective_affinity: Option<&'a [(u16, u8)]>,
    mixed_classes: bool,
    stamps_latency: bool,
    measures_latency: bool,
    measures_intervals: bool,
    bypass_io_missing: &'a [String],
}

#[derive(Serialize)]
struct Ring {
    batch_ios: Option<u32>,
    batch_percent: Option<u32>,
    registered_buffers: bool,
}

impl<'a> Mode<'a> {
    fn of(span: &'a SpanResult, asked: &TimeSpan) -> Self {
        let order = asked.effective_traversal();
        let ring = |ring: crate::profile::model::IoRing| Ring {
            batch_ios: match ring.batch {
                RingBatch::Ios(ios) => Some(ios),
                RingBatch::Percent(_) => None,
            },
            batch_percent: match ring.batch {
                RingBatch::Ios(_) => None,
                RingBatch::Percent(percent) => Some(percent),
            },
            registered_buffers: ring.registered_buffers,
        };
        Self {
            profile: asked.loop_profile(),
            submission: Some(span.submission.as_str()).filter(|words| !words.is_empty()),
            batch: span.batch,
            burst: span.burst,
            ring: asked.io_ring.map(ring),
            completion_depth: asked.binding_completion_depth(),
            buffer_separation_bytes: span.effective_buffer_separation,
            processor_order: match order.order {
                ProcessorOrder::Cpu => "cpu",
                ProcessorOrder::CoreAware => "core_aware",
            },
            group_order: match order.group {
                GroupOrder::Fill => "fill",
                GroupOrder::Span => "span",
            },
            efficiency_order: match order.efficiency {
                EfficiencyOrder::PFirst => "p_first",
                EfficiencyOrder::FillPFirst => "fill_p_first",
                EfficiencyOrder::EFirst => "e_first",
                EfficiencyOrder::FillEFirst => "fill_e_first",
                EfficiencyOrder::Unordered => "unordered",
            },
            effective_affinity: span.effective_affinity.as_deref(),
            mixed_classes: span.mixed_classes,
            stamps_latency: asked.stamps_latency(),
            measures_latency: asked.measure_latency,
            measures_intervals: asked.calculate_iops_std_dev,
            bypass_io_missing: &span.bypass_io_missing,
        }
    }
}

#[derive(Serialize)]
struct Queue<'a> {
    engine: &'a str,
    flags: &'a [String],
    dropped: &'a [String],
    touches_target: bool,
    buffer_separation_bytes: u64,
}

impl<'a> Queue<'a> {
    fn of(facts: &'a QueueFacts) -> Self {
        Self {
            engine: &facts.engine,
            flags: &facts.flags,
            dropped: &facts.dropped,
            touches_target: !facts.no_target,
            buffer_separation_bytes: facts.buffer_separation,
        }
    }
}

/// CPU time of the whole process over the measurement.
#[derive(Serialize)]
pub(super) struct CpuTime {
    process_ns: u64,
    io_wq_ns: u64,
    process_ns_per_io: Option<f64>,
}

impl CpuTime {
    pub(super) fn new(process: Nanos, io_wq: Nanos, io_count: u64) -> Self {
        Self {
            process_ns: process.0,
            io_wq_ns: io_wq.0,
            process_ns_per_io: (io_count > 0).then(|| process.0 as f64 / io_count as f64),
        }
    }
}

#[derive(Serialize)]
struct SpanCpu {
    #[serde(flatten)]
    time: CpuTime,
    mean: Option<Percents>,
    processors: Vec<Usage>,
}

#[derive(Serialize)]
struct Percents {
    usage_percent: f64,
    user_percent: f64,
    kernel_percent: f64,
    idle_percent: f64,
}

#[derive(Serialize)]
struct Usage {
    group: u16,
    cpu: u8,
    socket: u32,
    node: u32,
    core: u32,
    class: u8,
    #[serde(flatten)]
    percents: Percents,
}

impl Percents {
    fn new([usage_percent, user_percent, kernel_percent, idle_percent]: [f64; 4]) -> Self {
        Self { usage_percent, user_percent, kernel_percent, idle_percent }
    }
}

impl SpanCpu {
    fn of(span: &SpanResult, io_count: u64) -> Self {
        let usage = |usage: &CpuUsage| Usage {
            group: usage.group,
            cpu: usage.cpu,
            socket: usage.socket,
            node: usage.node,
            core: usage.core,
            class: usage.class,
            percents: Percents::new(cpu::percents(usage)),
        };
        Self {
            time: CpuTime::new(span.process_cpu, span.io_wq_cpu, io_count),
            mean: (!span.cpus.is_empty()).then(|| Percents::new(cpu::mean(&span.cpus))),
            processors: span.cpus.iter().map(usage).collect(),
        }
    }
}

/// Little's law as a check (see `littles_law`).
#[derive(Serialize)]
pub(super) struct Law {
    configured_outstanding: Option<u64>,
    in_flight_mean: Option<f64>,
    residual: Option<f64>,
    tolerance: Option<f64>,
    verdict: &'static str,
}

impl Law {
    pub(super) fn of(span: &SpanResult, asked: &TimeSpan) -> Self {
        let law = LittlesLaw::of(span, asked);
        Self {
            configured_outstanding: law.configured,
            in_flight_mean: law.in_flight_mean,
            residual: law.residual,
            tolerance: Some(law.tolerance),
            verdict: law.verdict.keyword(),
        }
    }

    pub(super) fn absent(verdict: &'static str) -> Self {
        Self {
            configured_outstanding: None,
            in_flight_mean: None,
            residual: None,
            tolerance: None,
            verdict,
        }
    }
}

/// A target over all threads.
#[derive(Serialize)]
struct OfTarget<'a> {
    index: u32,
    path: &'a str,
    size_bytes: u64,
    #[serde(flatten)]
    sides: Sides,
    errors_by_name: BTreeMap<String, u64>,
    iops_stddev_per_s: Option<Deviations>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_loop: Option<Open>,
}

impl<'a> OfTarget<'a> {
    fn all(span: &'a SpanResult, asked: &'a TimeSpan) -> Vec<Self> {
        let mut places: BTreeMap<u32, Vec<(&TargetResult, Option<&Target>)>> = BTreeMap::new();
        for (target, asked) in targets(span, asked) {
            places.entry(target.index).or_default().push((target, asked));
        }
        places
            .into_values()
            .map(|of_target| {
                let first = of_target[0].0;
                let figures = Figures::of(of_target.iter().map(|(target, _)| *target));
                let results = of_target.iter().map(|(target, _)| *target);
                let open_loop = Open::of(span.open_loop, results, Buckets::Without);
                let errors = errors_by_direction(of_target);
                let series = span.series.iter().find(|series| series.index == first.index);
                Self {
                    index: first.index,
                    path: &first.path,
                    size_bytes: first.file_size,
                    errors_by_name: by_name(&figures.errors),
                    iops_stddev_per_s: series.map(Deviations::of_target),
                    sides: Sides::new(&figures, span.elapsed, errors, Buckets::Without),
                    open_loop,
                }
            })
            .collect()
    }
}

fn by_name(errors: &BTreeMap<Errno, u64>) -> BTreeMap<String, u64> {
    errors.iter().map(|(errno, count)| (errno_name::of(*errno), *count)).collect()
}

#[derive(Serialize)]
struct Thread<'a> {
    id: u32,
    submits: Option<u64>,
    waits: Waits,
    targets: Vec<ThreadTarget<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_loop: Option<Open>,
}

#[derive(Serialize)]
struct Waits {
    completion_waits: u64,
    throttle_waits: u64,
    throttle_sleeps: u64,
    lookasides: u64,
    completions_per_wait: [u64; 8],
    completions_per_lookaside: [u64; 8],
}

#[derive(Serialize)]
struct ThreadTarget<'a> {
    #[serde(flatten)]
    target: OfTarget<'a>,
    effective_distribution: Option<Distribution>,
}

#[derive(Serialize)]
struct Distribution {
    io_total: u32,
    ranges: Vec<Range>,
}

#[derive(Serialize)]
struct Range {
    io_base: u32,
    io: u32,
    offset_bytes: u64,
    length_bytes: u64,
}

impl<'a> Thread<'a> {
    fn of(thread: &'a ThreadResult, span: &SpanResult, asked: &TimeSpan) -> Self {
        let target = |target: &'a TargetResult| ThreadTarget::of(target, span, asked);
        Self {
            id: thread.id,
            submits: thread.submit_count,
            waits: Waits::of(&thread.waits),
            targets: thread.targets.iter().map(target).collect(),
            open_loop: Open::of(span.open_loop, &thread.targets, Buckets::Without),
        }
    }
}

impl Waits {
    fn of(waits: &WaitStatistics) -> Self {
        Self {
            completion_waits: waits.wait,
            throttle_waits: waits.throttle_wait,
            throttle_sleeps: waits.throttle_sleep,
            lookasides: waits.lookaside,
            completions_per_wait: waits.wait_completion,
            completions_per_lookaside: waits.lookaside_completion,
        }
    }
}

impl<'a> ThreadTarget<'a> {
    fn of(target: &'a TargetResult, span: &SpanResult, asked: &TimeSpan) -> Self {
        let figures = Figures::of([target]);
        let asked = asked.targets.get(plumb_units::convert::index(target.index));
        let errors = errors_by_direction([(target, asked)]);
        Self {
            target: OfTarget {
                index: target.index,
                path: &target.path,
                size_bytes: target.file_size,
                errors_by_name: by_name(&figures.errors),
                iops_stddev_per_s: target.series.as_ref().map(Deviations::of_thread),
                sides: Sides::new(&figures, span.elapsed, errors, Buckets::Without),
                open_loop: Open::of(span.open_loop, [target], Buckets::Without),
            },
            effective_distribution: target.effective.as_ref().map(Distribution::of),
        }
    }
}

impl Distribution {
    fn of(effective: &crate::pattern::EffectiveDistribution) -> Self {
        let range = |range: &crate::pattern::EffectiveRange| Range {
            io_base: range.io_base,
            io: range.io,
            offset_bytes: range.offset,
            length_bytes: range.length,
        };
        Self { io_total: effective.io_total, ranges: effective.ranges.iter().map(range).collect() }
    }
}

#[derive(Serialize)]
struct Trace<'a> {
    classes: Vec<TraceClass<'a>>,
    lost: u64,
}

#[derive(Serialize)]
struct TraceClass<'a> {
    class: &'a str,
    counters: Vec<TraceCounter<'a>>,
}

#[derive(Serialize)]
struct TraceCounter<'a> {
    counter: &'a str,
    count: u64,
}

impl<'a> Trace<'a> {
    fn of(trace: &'a TraceCounts) -> Self {
        let counter = |(counter, count): &'a (String, u64)| TraceCounter { counter, count: *count };
        let class = |(class, counters): &'a (String, Vec<(String, u64)>)| TraceClass {
            class,
            counters: counters.iter().map(counter).collect(),
        };
        Self { classes: trace.classes.iter().map(class).collect(), lost: trace.lost }
    }
}

#[derive(Serialize)]
struct Item<'a> {
    key: &'a str,
    target: Option<&'a str>,
    value: Option<f64>,
    verdict: &'static str,
    sentence: &'a str,
}

impl<'a> Item<'a> {
    fn of(item: &'a PlausibilityItem) -> Self {
        Self {
            key: item.key,
            target: item.target.as_deref(),
            value: item.value,
            verdict: item.verdict.keyword(),
            sentence: &item.sentence,
        }
    }
}
