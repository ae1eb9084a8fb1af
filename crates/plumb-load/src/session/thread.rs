//! One load thread from its first breath to its counts.

use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use plumb_io::clock::Clock;
use plumb_io::{IoQueue, OpenQueueError, Opener, QueueFacts, QueueSpec, QueueUse, WriteSource};
use rustix::thread::CpuSet;

use super::one_by_one::OneByOne;
use super::target::{OpenTarget, TargetError, open_handle, priority};
use super::verify::SpanVerify;
use crate::assemble::{self, Shared};
use crate::pattern::TooSmall;
use crate::plan::ThreadPlan;
use crate::profile::model::TimeSpan;
use crate::result::model::Failure;
use crate::run_loop::intervals::IntervalRecorder;
use crate::run_loop::{
    Controls, Counts, Dispatch, Intervals, Latencies, Level, Live, LoopCounts, Open, Surroundings,
    TargetCounts, Witness, Witnessed, run_loop,
};
use crate::tally::processor_wait::WaitMeter;
use crate::tally::{Histogram, ProcessorWait};

/// What a thread brings home.
#[derive(Debug)]
pub(super) struct ThreadOutcome {
    pub(super) counts: LoopCounts,
    pub(super) targets: Vec<TargetCounts>,
    pub(super) facts: QueueFacts,
    /// Upper bounds of the stamps' errors, where I/Os are stamped: without a wake-up on top, and with one.
    pub(super) stamp_bounds: Option<(Histogram, Histogram)>,
    /// In their place, where each I/O was waited for by itself.
    pub(super) one_by_one: Option<OneByOne>,
    /// What the thread waited for a processor, where the kernel tells.
    pub(super) processor_wait: Option<ProcessorWait>,
    /// Every I/O, with `--truth`.
    pub(super) witness: Option<Witness>,
    /// A fatal error, in words.
    pub(super) failure: Option<Failure>,
}

/// Why a thread could not start.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(super) enum ThreadError {
    /// It cannot be bound.
    #[error("cannot bind thread {thread} to CPU {cpu} (group {group})")]
    #[diagnostic(
        code(plumb::load::bind),
        help("name CPUs that this process may use (-a), or pass -n to bind none")
    )]
    Bind {
        /// Which thread.
        thread: u32,
        /// CPU number within its group.
        cpu: u8,
        /// Block of 64 CPU numbers.
        group: u16,
        /// Why.
        source: std::io::Error,
    },
    /// Its I/O priority is refused.
    #[error("cannot set the I/O priority of thread {thread} (-I)")]
    #[diagnostic(code(plumb::load::priority), help("leave out -I"))]
    Priority {
        /// Which thread.
        thread: u32,
        /// Why.
        source: std::io::Error,
    },
    /// Its targets' priorities differ, and the engine knows only the thread's.
    #[error(
        "thread {thread} has targets of different I/O priorities, which {engine} cannot tell apart"
    )]
    #[diagnostic(
        code(plumb::load::mixed_priorities),
        help("give the targets of a thread one IOPriority, or use io_uring (--engine uring)")
    )]
    MixedPriorities {
        /// Which thread.
        thread: u32,
        /// The engine.
        engine: String,
    },
    /// The system has no room for it.
    #[error("cannot start a thread")]
    #[diagnostic(
        code(plumb::load::spawn),
        help(
            "use fewer threads (-t, -F), or raise the limits on processes and memory (ulimit -u, ulimit -v)"
        )
    )]
    Spawn {
        /// Why.
        source: std::io::Error,
    },
    /// A target.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Target(#[from] TargetError),
    /// A target with no room at the thread's start.
    #[error(transparent)]
    #[diagnostic(transparent)]
    TooSmall(#[from] TooSmall),
    /// The engine.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Queue(#[from] OpenQueueError),
}

/// Threads gather here until all are ready, or one has failed (D-16).
#[derive(Debug, Default)]
pub(super) struct StartGate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    ready: usize,
    failed: bool,
    open: bool,
}

impl StartGate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread is ready and waits for the signal.
    fn arrive(&self) {
        let mut state = self.lock();
        state.ready += 1;
        self.changed.notify_all();
        while !state.open {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A thread has failed.
    fn fail(&self) {
        self.lock().failed = true;
        self.changed.notify_all();
    }

    /// Waits a little; `Some(true)` once all of `threads` are ready, `Some(false)` once one failed.
    pub(super) fn poll(&self, threads: usize, patience: std::time::Duration) -> Option<bool> {
        let mut state = self.lock();
        if !state.failed && state.ready < threads {
            let waited = self.changed.wait_timeout(state, patience);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.failed { Some(false) } else { (state.ready == threads).then_some(true) }
    }

    /// The start signal.
    pub(super) fn open(&self) {
        self.lock().open = true;
        self.changed.notify_all();
    }
}

/// Everything a load thread works with.
#[derive(Debug)]
pub(super) struct ThreadWork<'a, C> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) plan: &'a ThreadPlan,
    pub(super) targets: &'a [OpenTarget],
    pub(super) sources: &'a [Option<Arc<WriteSource>>],
    pub(super) clock: &'a C,
    pub(super) controls: &'a Controls,
    pub(super) live: &'a Live,
    pub(super) gate: &'a StartGate,
    pub(super) intervals: Option<IntervalRecorder>,
    pub(super) verify: Option<&'a SpanVerify>,
}

impl<C: Clock> ThreadWork<'_, C> {
    /// Runs the thread to its end on the calling thread.
    ///
    /// # Errors
    /// When it could not start; the gate has been told.
    pub(super) fn run<O: Opener>(self, opener: &O) -> Result<ThreadOutcome, ThreadError> {
        let (gate, controls) = (self.gate, self.controls);
        let outcome = self.start(opener);
        if outcome.is_err() {
            controls.stop();
            gate.fail();
        }
        outcome
    }

    fn start<O: Opener>(self, opener: &O) -> Result<ThreadOutcome, ThreadError> {
        let span = self.shared.span;
        self.bind()?;
        self.prioritise()?;
        let spec = self.queue_spec()?;
        if spec.depth == 0 {
            // Nothing names this pool thread: it idles, so that the others count as planned.
            self.gate.arrive();
            let (counts, facts) = (LoopCounts::default(), QueueFacts::default());
            let targets = Vec::new();
            return Ok(ThreadOutcome {
                counts,
                targets,
                facts,
                stamp_bounds: None,
                one_by_one: None,
                processor_wait: None,
                witness: None,
                failure: None,
            });
        }
        let open = self.shared.open_loop.is_some();
        if open {
            // Arrivals are due to the microsecond. A refusal only makes them later, and the lag shows it.
            let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
        }
        match (span.calculate_iops_std_dev, span.measure_latency) {
            (true, _) if open => opener.open(spec, LevelUse::<C, Open<Intervals>>::new(self))?,
            (false, _) if open => opener.open(spec, LevelUse::<C, Open<Latencies>>::new(self))?,
            (false, _) if self.shared.witnessed.is_some() => {
                opener.open(spec, LevelUse::<C, Witnessed>::new(self))?
            }
            (true, _) => opener.open(spec, LevelUse::<C, Intervals>::new(self))?,
            (false, true) => opener.open(spec, LevelUse::<C, Latencies>::new(self))?,
            (false, false) => opener.open(spec, LevelUse::<C, Counts>::new(self))?,
        }
    }

    fn bind(&self) -> Result<(), ThreadError> {
        let thread = self.plan.id;
        if let Some((group, cpu)) = self.plan.processor {
            let mut set = CpuSet::new();
            let number = usize::from(group) * 64 + usize::from(cpu);
            let bound = if number < CpuSet::MAX_CPU {
                set.set(number);
                rustix::thread::sched_setaffinity(None, &set).map_err(std::io::Error::from)
            } else {
                Err(std::io::ErrorKind::Unsupported.into())
            };
            bound.map_err(|source| ThreadError::Bind { thread, cpu, group, source })?;
        }
        Ok(())
    }

    /// Gives the thread the priority of its targets; where they differ, each I/O carries its own.
    fn prioritise(&self) -> Result<(), ThreadError> {
        let mut wanted = self.priorities();
        let Some(first) = wanted.next() else { return Ok(()) };
        if let Some(priority) = first.filter(|_| wanted.all(|other| other == first)) {
            let thread = self.plan.id;
            plumb_sys::priority::set_thread_io_priority(priority)
                .map_err(|errno| ThreadError::Priority { thread, source: errno.into() })?;
        }
        Ok(())
    }

    fn priorities(&self) -> impl Iterator<Item = Option<plumb_io::IoPriority>> + '_ {
        let targets = self.plan.targets.iter().map(|planned| planned.index);
        targets.map(|index| priority(&self.shared.span.targets[index]))
    }

    fn has_mixed_priorities(&self) -> bool {
        let mut wanted = self.priorities();
        let first = wanted.next();
        wanted.any(|other| Some(other) != first)
    }

    fn queue_spec(&self) -> Result<QueueSpec, ThreadError> {
        let (span, plan) = (self.shared.span, self.plan);
        let mut files = Vec::with_capacity(plan.handles.len());
        for handle in &plan.handles {
            let opened = open_handle(&span.targets[handle.target], &self.targets[handle.target])?;
            files.extend(opened);
        }
        let sources = plan.sources(span).map(|target| {
            let source = self.sources[target].as_ref();
            Arc::clone(source.expect("made for every target that takes from one"))
        });
        Ok(QueueSpec {
            depth: plan.requests,
            files,
            regions: plan.regions(span),
            sources: sources.collect(),
            placement: plan.placement,
            mode: plan.mode(),
            register_buffers: span.io_ring.is_none_or(|ring| ring.registered_buffers),
            measures_latency: span.stamps_latency(),
        })
    }
}

/// The thread's work on a queue of some type, at one level of measurement.
struct LevelUse<'a, C, L> {
    work: ThreadWork<'a, C>,
    level: std::marker::PhantomData<L>,
}

impl<'a, C, L> LevelUse<'a, C, L> {
    fn new(work: ThreadWork<'a, C>) -> Self {
        Self { work, level: std::marker::PhantomData }
    }
}

impl<C: Clock, L: Level> QueueUse for LevelUse<'_, C, L> {
    type Output = Result<ThreadOutcome, ThreadError>;

    fn with<Q: IoQueue>(self, mut queue: Q) -> Self::Output {
        let Some(verify) = self.work.verify else { return self.run(queue) };
        let controls = self.work.controls;
        let on_mismatch = || {
            if verify.stops() {
                controls.stop();
            }
        };
        // Of any type behind a pointer: one more loop per level, not one per level and engine.
        let queue: &mut dyn IoQueue = &mut queue;
        let queue = verify.queue(queue, self.work.shared.span, self.work.plan, &on_mismatch);
        self.run(queue)
    }
}

impl<C: Clock, L: Level> LevelUse<'_, C, L> {
    fn run<Q: IoQueue>(self, mut queue: Q) -> Result<ThreadOutcome, ThreadError> {
        let work = self.work;
        let (span, plan) = (work.shared.span, work.plan);
        assemble::fill_buffers(&mut queue, span, plan);
        let facts = queue.facts();
        if work.has_mixed_priorities() && !facts.no_target && !facts.engine.starts_with("uring") {
            return Err(ThreadError::MixedPriorities { thread: plan.id, engine: facts.engine });
        }
        // Whatever is around it, a verifying queue or one with mapped targets beside it: each I/O is over when it is pushed.
        let is_plain = facts.engine.split('+').next() == Some("sync");
        let mut issuer = assemble::issuer::<L>(work.shared, plan, work.intervals)?;
        work.gate.arrive();
        let around = Surroundings {
            clock: work.clock,
            controls: work.controls,
            live: work.live,
            dispatch: if is_plain { Dispatch::Synchronous } else { plan.dispatch },
        };
        let meter = WaitMeter::start();
        let slept_before = work.clock.sleeps();
        let outcome = run_loop(&mut queue, &mut issuer, &around);
        let slept = work.clock.sleeps().zip(slept_before).map(|(now, before)| now - before);
        let processor_wait = meter.and_then(|meter| meter.stop());
        let failure = match (&outcome, issuer.failure()) {
            (_, Some(failed)) => {
                let target = &span.targets[plan.targets[failed.target as usize].index].path;
                let kind = if failed.is_write { "write" } else { "read" };
                let (slot, errno) = (failed.slot.0, failed.errno);
                let text = format!(
                    "t[{slot}] error during {kind} error code: {}) {} on '{target}' (thread {})\n\
                     help: --on-error continue counts I/Os that fail and goes on",
                    errno.0,
                    errno.text(),
                    plan.id
                );
                Some(Failure::new("io", text))
            }
            (Err(errno), None) => {
                work.controls.stop();
                let text = format!("thread {}: the submission of I/O failed: {errno}", plan.id);
                Some(Failure::new("submission", text))
            }
            (Ok(_), None) => None,
        };
        let looks = issuer.looks();
        let by_itself = L::STAMPS && (is_plain || plan.dispatch == Dispatch::Synchronous);
        let stamp_bounds =
            (L::STAMPS && !by_itself).then(|| (looks.gaps().clone(), looks.woken().clone()));
        let ios = issuer.completions();
        let witness = issuer.take_witness();
        let targets = issuer.into_counts();
        // Pauses of a meter are sleeps, too, and of no I/O.
        let paused = outcome.as_ref().map_or(0, |counts| counts.waits.throttle_sleep);
        let slept = slept.map(|slept| slept.saturating_sub(paused));
        let one_by_one = by_itself.then(|| OneByOne::of(&targets, ios, slept));
        Ok(ThreadOutcome {
            counts: outcome.unwrap_or_default(),
            targets,
            facts,
            stamp_bounds,
            one_by_one,
            processor_wait,
            witness,
            failure,
        })
    }
}

/// Lines of `-v` about a thread's set-up (spec 10.1).
pub(super) fn verbose_lines(span: &TimeSpan, plan: &ThreadPlan) -> Vec<String> {
    let id = plan.id;
    let mut lines = vec![format!("creating thread {id}")];
    for planned in &plan.targets {
        let (relative, path) = (planned.relative_thread, &span.targets[planned.index].path);
        lines.push(format!("thread {id} is relative thread {relative} for {path}"));
    }
    if let Some((group, cpu)) = plan.processor {
        lines.push(format!("thread {id}: affinitizing to Group {group} / CPU {cpu}"));
    }
    for planned in &plan.targets {
        let target = &span.targets[planned.index];
        lines.push(format!(
            "thread {id}: file '{}' relative thread {} (random seed: {})",
            target.path,
            planned.relative_thread,
            span.rand_seed.wrapping_add(id)
        ));
        lines.push(match target.random_ratio {
            0 if target.interlocked => format!("thread {id}: interlocked sequential IO"),
            0 => format!("thread {id}: sequential IO"),
            percent => format!("thread {id}: {percent}% random IO"),
        });
    }
    lines.push(format!("thread {id}: waiting for a signal to start"));
    lines
}

/// The word for how a span hands in its I/O, and how; the thread that gathers most speaks for all. An engine that performs one I/O
/// at a time decides that for all of them.
pub(super) fn submission(
    span: &TimeSpan,
    plans: &[ThreadPlan],
    one_at_a_time: bool,
) -> (String, Dispatch) {
    let dispatch = plans.iter().map(|plan| plan.dispatch).max_by_key(|dispatch| dispatch.burst());
    let dispatch = dispatch.filter(|_| !one_at_a_time).unwrap_or(Dispatch::Synchronous);
    (dispatch.name(span.stamps_latency()).to_owned(), dispatch)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_gate_opens_when_every_thread_is_ready_and_not_before() {
        let gate = StartGate::default();
        let (passed, soon) = (std::sync::atomic::AtomicU32::new(0), Duration::from_millis(20));
        let count = || passed.load(std::sync::atomic::Ordering::SeqCst);
        std::thread::scope(|scope| {
            let arrive = || {
                gate.arrive();
                passed.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            };
            scope.spawn(arrive);
            scope.spawn(arrive);
            while gate.lock().ready < 2 {
                std::thread::yield_now();
            }
            assert_eq!(gate.poll(3, soon), None, "two of three are ready");
            scope.spawn(arrive);
            assert_eq!(gate.poll(3, Duration::from_secs(30)), Some(true));
            assert_eq!(count(), 0, "nobody goes before the signal");
            gate.open();
        });
        assert_eq!(count(), 3);
        gate.fail();
        assert_eq!(gate.poll(3, soon), Some(false));
    }
}
