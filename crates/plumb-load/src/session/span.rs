//! One time span, from its first file to its last count.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use plumb_io::block_trace::BlockTrace;
use plumb_io::clock::Clock;
use plumb_io::system_tree::SystemTree;
use plumb_io::topology::Topology;
use plumb_io::{Opener, WriteSource};
use plumb_units::{Nanos, convert};

use super::evidence;
use super::files::{failed, failure, is_made};
use super::guard::Guard;
use super::observe::Observer;
use super::phases::{ShortWatch, Watch};
use super::steering::{Steered, steer};
use super::target::OpenTarget;
use super::thread::{self, StartGate, ThreadError, ThreadOutcome, ThreadWork};
use super::verify::{SpanVerify, Verified};
use super::{SessionOptions, memory, truth};
use crate::affinity;
use crate::assemble::Shared;
use crate::pattern::{Bounds, distribution};
use crate::payload::{SourceError, check_source, fill_source};
use crate::plan::{PlanOptions, SpanPlan, ThreadPlan, plan, takes_from_source};
use crate::plausibility::Observed;
use crate::profile::model::{BufferSeparation, Profile, TimeSpan, WriteContent};
use crate::result::model::{Failure, PhaseTimes, SpanResult, TargetResult, ThreadResult};
use crate::result::stamp_error::StampError;
use crate::result::text::plausibility::is_one_at_a_time;
use crate::result::{open_loop, stamp_error};
use crate::rng::Rng;
use crate::run_loop::intervals::{IntervalCollector, collect_every_ms, exchange};
use crate::run_loop::{Controls, Dispatch, Live};
use crate::tally::ProcessorWait;
use crate::tally::interval_log::IntervalLogWriter;
use crate::tally::span_series::{SpanSeries, TargetSeries, ThreadSeries};
use crate::trace::TraceSession;
use crate::witness::{self, Requests};

/// What all time spans of a session share.
pub(super) struct Session<'a, O, C> {
    pub(super) profile: &'a Profile,
    pub(super) options: &'a SessionOptions,
    pub(super) opener: &'a O,
    pub(super) clock: &'a C,
    pub(super) tree: &'a SystemTree,
    pub(super) observer: &'a mut dyn Observer,
    /// Start of the run.
    pub(super) origin: Nanos,
    /// Names of the files that were made before the first time span.
    pub(super) made: Vec<String>,
    pub(super) guard: Guard,
    pub(super) topology: Topology,
    pub(super) memory_bytes: u64,
    /// Of the time span that was just run, with `--truth`.
    pub(super) requests: Option<Requests>,
    /// With `--verify`.
    pub(super) verified: Option<Verified>,
}

/// Why a time span did not start.
#[derive(Debug)]
pub(super) enum SpanFailure {
    /// The safety gate: nothing was touched.
    Refused(Failure),
    /// The user ended the run.
    Interrupted,
    /// Anything else.
    Failed(Failure),
}

/// Intervals by target, and by thread and its targets.
type Series = (Vec<TargetSeries>, Vec<Vec<ThreadSeries>>);

/// What came of a time span's threads.
struct Ran {
    outcomes: Vec<Ended>,
    observed: Option<Observed>,
    /// With `-D`.
    series: Option<Series>,
}

/// How a thread ended.
pub(super) type Ended = Result<ThreadOutcome, ThreadError>;

impl<O: Opener, C: Clock> Session<'_, O, C> {
    /// Runs time span `number` (from 0).
    pub(super) fn run_span(&mut self, number: usize) -> Result<SpanResult, SpanFailure> {
        let span = &self.profile.time_spans[number];
        let place = (number + 1, self.profile.time_spans.len());
        self.observer.verbose(&format!("Generating requests for timespan {}.", number + 1));
        // All that can be refused without a file comes before the first one is made.
        let order = self.processors(span)?;
        let separation = self.separation(span);
        let options = PlanOptions {
            processors: &order,
            separation,
            batch: self.options.batch,
            open_loop: self.options.open_loop.is_some(),
        };
        let SpanPlan { threads: plans } = plan(span, options);
        if self.options.batch.is_some() && !plans.iter().any(|plan| plan.dispatch.gathers()) {
            self.observer.warning(
                "--batch has no effect here: -u has a batch of its own, and a single outstanding I/O or a \
                 mapping has nothing to gather",
            );
        }
        check_room(span, &plans)?;
        if !self.options.opens_no_target {
            memory::check(span, &plans, self.tree).map_err(failed)?;
        }
        let sources = sources(span, self.observer)?;
        let trace = self.open_trace()?;
        let targets = self.open_targets(span, place)?;
        for plan in &plans {
            for line in thread::verbose_lines(span, plan) {
                self.observer.verbose(&line);
            }
        }
        let sizes: Vec<u64> = targets.iter().map(|target| target.size).collect();
        let interlocked: Vec<_> = sizes.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
        let shared = Shared {
            span,
            sizes: &sizes,
            interlocked: &interlocked,
            experiment_flags: self.profile.experiment_flags,
            continue_on_error: self.options.continue_on_error,
            open_loop: self.options.open_loop,
            witnessed: self.options.truth.map(|_| truth::KEPT_MAX / plans.len().max(1)),
        };
        let placements = self.placements(span, &targets)?;
        let block_trace = self.block_trace()?;
        let mut result = SpanResult {
            plausibility: evidence::before(span, &targets, self.memory_bytes, self.tree),
            open_loop: self.options.open_loop,
            ..SpanResult::default()
        };
        let verify = self.verify_before(span, &targets, place)?;
        if let Some(verify) = &verify {
            result.failures.extend(verify.failure());
            if !result.failures.is_empty() || verify.is_cut_short() {
                return Ok(SpanResult { verify: Some(verify.result()), ..result });
            }
        }
        let Ran { outcomes, observed, series } = self.run_threads(
            &shared,
            (&plans, verify.as_ref()),
            &targets,
            &sources,
            (place, (trace, block_trace)),
            &mut result,
        )?;
        // Before anything is read back: the machine is as it was a moment ago.
        let before = self.options.wake_ups.clone().filter(|_| span.stamps_latency());
        let waits = outcomes.iter().flatten().filter_map(|outcome| outcome.processor_wait);
        let slept = waits.reduce(ProcessorWait::with).and_then(|wait| wait.mean_sleep());
        let wake_up = before.map(|before| before.with_those_behind(span.duration, slept));
        if let Some(verify) = verify {
            result.verify = Some(self.verify_after(span, &targets, &verify, place)?);
            // After the last check: the sentence counts what the table counts.
            result.failures.extend(verify.failure());
        }
        let mut outcomes = outcomes;
        result.truth = self.requests.take().map(|requests| {
            truth::compare(
                &mut outcomes,
                &plans,
                &placements,
                &requests,
                wake_up.unwrap_or_default(),
            )
        });
        collect(&mut result, &shared, &plans, (outcomes, series));
        if let Some(error) = &mut result.stamp_error {
            error.wake_up = wake_up;
        }
        let one_at_a_time = is_one_at_a_time(&result);
        if self.options.batch.is_some()
            && plans.iter().any(|plan| plan.dispatch.gathers())
            && one_at_a_time
        {
            self.observer.warning(
                "--batch has no effect here: the engine sync performs each I/O in a system call of its own",
            );
        }
        let (submission, dispatch) = thread::submission(span, &plans, one_at_a_time);
        result.submission = submission;
        (result.batch, result.burst) = (dispatch.batch(), dispatch.burst());
        if let Some(observed) = observed {
            result.plausibility.extend(evidence::after(&result, span, &targets, &observed));
            result.plausibility.extend(evidence::clock(self.clock, span, self.tree));
            result.plausibility.extend(stamp_error::evidence(&result));
            result.plausibility.extend(stamp_error::sleeping(&result));
            result.plausibility.extend(stamp_error::allowance(&result));
            result.plausibility.extend(stamp_error::waiting(&result));
            result.plausibility.extend(result.truth.iter().flat_map(witness::evidence));
            if self.options.truth.is_some() && result.truth.is_none() {
                result.plausibility.push(truth::missing());
            }
            result.plausibility.extend(open_loop::evidence(&result));
            result.process_cpu = observed.process.process;
            result.io_wq_cpu = observed.process.io_wq;
            result.cpus = observed.cpus;
        }
        let bypassing = span.targets.iter().filter(|target| target.bypass_io.is_some());
        result.bypass_io_missing = bypassing.map(|target| target.path.clone()).collect();
        if !span.disable_affinity {
            let effective = affinity::effective(&order, span.total_threads());
            result.mixed_classes = affinity::mixes_classes(&self.topology, effective);
            if result.mixed_classes {
                self.observer.warning(
                    "the threads of this time span run on fast and on slow processors: their rates and \
                     latencies differ by processor. -a lists choose one kind, -aup ignores the difference",
                );
            }
            result.effective_affinity = Some(effective.to_vec());
        }
        Ok(result)
    }

    /// The counters of `-e`, open and not yet counting.
    fn open_trace(&self) -> Result<Option<TraceSession>, SpanFailure> {
        let open = |etw| TraceSession::open(etw, &self.topology, self.tree).map_err(failed);
        self.profile.etw.as_ref().map(open).transpose()
    }

    /// Whether the processors that the profile names are there: known before anything is made or opened.
    pub(super) fn check_processors(&self) -> Result<(), SpanFailure> {
        for span in self.profile.time_spans.iter().filter(|span| !span.disable_affinity) {
            affinity::order(&self.topology, &span.affinity, span.effective_traversal())
                .map_err(|error| SpanFailure::Refused(failure(&error)))?;
        }
        Ok(())
    }

    /// Whether there is room for as many threads and intervals: known before anything is made or opened.
    pub(super) fn check_counts(&self) -> Result<(), SpanFailure> {
        let spans = &self.profile.time_spans;
        for span in spans {
            memory::check_threads(span.total_threads(), self.tree).map_err(failed)?;
        }
        memory::check_intervals(spans, self.tree).map_err(failed)
    }

    /// The processors in the order in which threads take them; none with `-n`.
    fn processors(&self, span: &TimeSpan) -> Result<Vec<affinity::Place>, SpanFailure> {
        if span.disable_affinity {
            return Ok(Vec::new());
        }
        affinity::order(&self.topology, &span.affinity, span.effective_traversal()).map_err(failed)
    }

    /// The alignment that keeps threads' buffers apart, 0 for none.
    fn separation(&self, span: &TimeSpan) -> u64 {
        let line = self.topology.caches.iter().map(|cache| u64::from(cache.line)).max();
        match span.effective_buffer_separation() {
            BufferSeparation::SystemDefault => 0,
            BufferSeparation::PdeCacheLine => affinity::separation_alignment(
                convert::to_u64(rustix::param::page_size()),
                line.unwrap_or(0),
            ),
        }
    }

    /// Starts the threads, steers them through the phases and waits for them.
    fn run_threads(
        &mut self,
        shared: &Shared<'_>,
        (plans, verify): (&[ThreadPlan], Option<&SpanVerify>),
        targets: &[OpenTarget],
        sources: &[Option<Arc<WriteSource>>],
        (place, (trace, block_trace)): ((usize, usize), (Option<TraceSession>, Option<BlockTrace>)),
        result: &mut SpanResult,
    ) -> Result<Ran, SpanFailure> {
        let span = shared.span;
        let controls = Controls::default();
        let gate = StartGate::default();
        let lives: Vec<Live> = plans.iter().map(|_| Live::default()).collect();
        let mut collectors: Vec<IntervalCollector> = Vec::new();
        let mut recorders: Vec<_> = plans
            .iter()
            .map(|plan| {
                span.calculate_iops_std_dev.then(|| {
                    let (recorder, collector) =
                        exchange(span.io_bucket_duration, plans.len(), plan.targets.len());
                    collectors.push(collector);
                    recorder
                })
            })
            .collect();
        let intervals =
            span.calculate_iops_std_dev.then(|| scratch(IntervalLogWriter::new())).transpose()?;
        let series = span.calculate_iops_std_dev.then(|| scratch(span_series(span, plans)));
        let series = series.transpose()?;
        let (opener, clock) = (self.opener, self.clock);
        let left_behind = self.time_after(place.0);
        let mut watch = Watch {
            clock,
            observer: &mut *self.observer,
            controls: &controls,
            lives: &lives,
            collectors: &mut collectors,
            series,
            intervals,
            interval_trouble: None,
            collect_every: match span.calculate_iops_std_dev {
                true => {
                    Duration::from_millis(collect_every_ms(span.io_bucket_duration, plans.len()))
                }
                false => Duration::MAX,
            },
            strays: 0,
            stamps: span.stamps_latency(),
            progress: self.profile.progress,
            time_span: place,
            left_behind,
            dots: 0,
            last_report: clock.now(),
            last_reading: Default::default(),
            shorts: vec![ShortWatch::default(); lives.len()],
        };
        let origin = self.origin;
        let (tree, topology) = (self.tree, &self.topology);
        let (outcomes, steered) = std::thread::scope(|scope| {
            let threads: Vec<_> = plans
                .iter()
                .zip(&lives)
                .zip(&mut recorders)
                .map(|((plan, live), recorder)| {
                    let work = ThreadWork {
                        shared,
                        plan,
                        targets,
                        sources,
                        clock,
                        controls: &controls,
                        live,
                        gate: &gate,
                        intervals: recorder.take(),
                        verify,
                    };
                    let named = std::thread::Builder::new().name(format!("plumb-{}", plan.id));
                    named.spawn_scoped(scope, move || work.run(opener))
                })
                .collect();
            let spawned = threads.iter().all(Result::is_ok);
            if !spawned {
                controls.stop();
            }
            let mut steered = Steered::default();
            if spawned && watch.wait_until_ready(&gate, plans.len()) {
                steered =
                    steer(&mut watch, span, &gate, (tree, topology), (origin, trace, block_trace));
            }
            controls.end_measurement(clock.now());
            controls.stop();
            gate.open();
            let outcomes: Vec<_> = threads
                .into_iter()
                .map(|thread| match thread {
                    Ok(thread) => thread.join().expect("load threads do not panic"),
                    Err(source) => Err(ThreadError::Spawn { source }),
                })
                .collect();
            (outcomes, steered)
        });
        let now = clock.now();
        watch.look_around(now);
        watch.count_shorts();
        let series = watch.series.take().map(SpanSeries::finish);
        result.plausibility.extend(evidence::strays(watch.strays, span.io_bucket_duration));
        let mut trouble = watch.interval_trouble.take();
        if let Some(log) = watch.intervals.take() {
            match log.finish() {
                Ok(log) => result.interval_latencies = log,
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        if let Some(error) = trouble {
            let item = evidence::lost_intervals(&error);
            watch.observer.warning(&item.sentence);
            result.plausibility.push(item);
        }
        result.phases = PhaseTimes { end: Some(now.since(origin)), ..steered.phases };
        result.elapsed = steered.elapsed;
        if steered.interrupted {
            result.plausibility.insert(0, evidence::interrupted(steered.elapsed, span.duration));
        }
        result.trace = steered.trace;
        self.requests = steered.requests;
        watch.observer.verbose("finished test...");
        Ok(Ran { outcomes, observed: steered.observed, series })
    }

    /// What is still to come behind time span `number` (from 1), its own phases included.
    fn time_after(&self, number: usize) -> Nanos {
        let seconds = self.profile.time_spans[number - 1..].iter().map(|span| {
            u64::from(span.warmup) + u64::from(span.duration) + u64::from(span.cooldown)
        });
        Nanos::from_secs(seconds.sum())
    }
}

/// Whether files that are to be made have room for every thread that starts in them.
fn check_room(span: &TimeSpan, plans: &[ThreadPlan]) -> Result<(), SpanFailure> {
    for planned in plans.iter().flat_map(|plan| &plan.targets) {
        let target = &span.targets[planned.index];
        let Some(size) = target.file_size.filter(|size| *size > 0) else { continue };
        if is_made(target) {
            Bounds::for_thread(target, size, planned.relative_thread).map_err(failed)?;
        }
    }
    Ok(())
}

/// The shared write sources by target: one generator seeded 0 for all of them in order (spec 6.8).
fn sources(
    span: &TimeSpan,
    observer: &mut dyn Observer,
) -> Result<Vec<Option<Arc<WriteSource>>>, SpanFailure> {
    let mut rng = Rng::new(0);
    let mut sources = Vec::with_capacity(span.targets.len());
    for target in &span.targets {
        let WriteContent::Random { size, file } = &target.write_content else {
            sources.push(None);
            continue;
        };
        if !takes_from_source(target) {
            if let Some(file) = file {
                check_source(file).map_err(failed)?;
            }
            sources.push(None);
            continue;
        }
        let mut filled = Ok(());
        let source = WriteSource::new(*size, |bytes| {
            filled = fill_source(file.as_deref(), &mut rng, bytes, || observer.interrupted());
        });
        let source = source
            .map_err(|errno| failed(SourceError::Memory { size: *size, source: errno.into() }))?;
        filled.map_err(|error| match error {
            SourceError::Interrupted => SpanFailure::Interrupted,
            error => failed(error),
        })?;
        sources.push(Some(Arc::new(source)));
    }
    Ok(sources)
}

/// Files what the threads brought home.
fn collect(
    result: &mut SpanResult,
    shared: &Shared<'_>,
    plans: &[ThreadPlan],
    (outcomes, series): (Vec<Ended>, Option<Series>),
) {
    let mut queues = Vec::new();
    let (targets, threads) = series.unwrap_or_default();
    // None where there is no -D.
    let mut of_threads = threads.into_iter();
    for (plan, outcome) in plans.iter().zip(outcomes) {
        let mut series = of_threads.next().into_iter().flatten();
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                let failure = failure(&error);
                if !result.failures.contains(&failure) {
                    result.failures.push(failure);
                }
                continue;
            }
        };
        result.failures.extend(outcome.failure);
        if let Some((gaps, woken)) = outcome.stamp_bounds {
            let error = result.stamp_error.get_or_insert_with(StampError::default);
            error.gaps.merge(&gaps);
            error.woken.merge(&woken);
        }
        if let Some(told) = outcome.one_by_one {
            let error = result.stamp_error.get_or_insert_with(StampError::default);
            error.in_call.merge(&told.in_call);
            error.slept.merge(&told.slept);
        }
        if let Some((error, wait)) = result.stamp_error.as_mut().zip(outcome.processor_wait) {
            error.wait = Some(error.wait.unwrap_or_default().with(wait));
        }
        if !outcome.facts.engine.is_empty() && !queues.contains(&outcome.facts) {
            queues.push(outcome.facts);
        }
        let targets = plan.targets.iter().zip(outcome.targets).map(|(planned, counts)| {
            let target = &shared.span.targets[planned.index];
            let size = shared.sizes[planned.index];
            let bounds = Bounds::new(target, size);
            let wanted = target.distribution.as_ref().zip(bounds);
            TargetResult {
                path: target.path.clone(),
                file_size: size,
                index: convert::to_u32(planned.index),
                read: counts.read,
                write: counts.write,
                effective: wanted.map(|(wanted, bounds)| distribution::effective(wanted, &bounds)),
                errors: counts.errors,
                short_transfers: counts.short_transfers,
                open: counts.open,
                series: series.next(),
            }
        });
        let is_ring = matches!(plan.dispatch, Dispatch::Ring { .. });
        result.threads.push(ThreadResult {
            id: plan.id,
            submit_count: is_ring.then_some(outcome.counts.submits),
            waits: outcome.counts.waits,
            targets: targets.collect(),
        });
    }
    let is_told = |index| {
        result.threads.iter().flat_map(|thread| &thread.targets).any(|told| told.index == index)
    };
    result.series = targets.into_iter().filter(|target| is_told(target.index)).collect();
    let separations = queues.iter().map(|facts| facts.buffer_separation);
    result.effective_buffer_separation = separations.min().unwrap_or(0);
    result.queues = queues;
}

/// What collects the intervals of all threads.
fn span_series(span: &TimeSpan, plans: &[ThreadPlan]) -> std::io::Result<SpanSeries> {
    let indices = |plan: &ThreadPlan| {
        plan.targets.iter().map(|planned| convert::to_u32(planned.index)).collect()
    };
    let threads: Vec<Vec<u32>> = plans.iter().map(indices).collect();
    SpanSeries::new(span.io_bucket_duration, span.duration, &threads)
}

/// The file that takes what happened in intervals that have ended (`-D`).
pub(super) fn scratch<T>(made: std::io::Result<T>) -> Result<T, SpanFailure> {
    made.map_err(|error| {
        let text = format!(
            "no scratch file for -D in {}: {error}\nhelp: set TMPDIR to a folder that you may write to",
            std::env::temp_dir().display()
        );
        SpanFailure::Failed(Failure::new("scratch", text))
    })
}
