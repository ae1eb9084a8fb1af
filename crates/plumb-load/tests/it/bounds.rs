//! The error bar against the truth: a simulated disk whose completions are known, behind submissions that
//! take time, as those of a kernel do.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use plumb_io::clock::{Clock, ManualClock, StampClock};
use plumb_io::sim::{DiskSpec, Service, SimOpener};
use plumb_io::{
    Done, Errno, IoQueue, LaneIndex, Op, Opener, QueueFacts, QueueSpec, QueueUse, Slot,
};
use plumb_load::assemble::{self, Shared};
use plumb_load::plan::{PlanOptions, ThreadPlan, plan};
use plumb_load::profile::model::{IoRing, RingBatch, Target, TimeSpan};
use plumb_load::run_loop::{Controls, Live, Surroundings, Witnessed, WitnessedIo, run_loop};
use plumb_units::Nanos;

use crate::runs::any_file;

/// What the loop itself may take between a look and its stamp: each reading of the clock takes a tick.
const TICK: Nanos = Nanos(50);
const SLACK: Nanos = Nanos(1000);

/// When the I/O of each offset was over.
type Ends = Rc<RefCell<BTreeMap<u64, Nanos>>>;

/// What I/Os take, each, in nanoseconds.
#[derive(Clone, Copy)]
struct Costs {
    /// To be put in line: content is made, a queue entry filled.
    prepare: u64,
    /// To be submitted.
    submit: u64,
    /// Of the disk.
    service: u64,
}

/// A queue that takes time before a disk that takes time.
struct Costly<Q> {
    inner: Q,
    clock: ManualClock,
    costs: Costs,
    in_line: Vec<Op>,
    ends: Ends,
    in_flight: Arc<AtomicU32>,
}

impl<Q: IoQueue> IoQueue for Costly<Q> {
    fn push(&mut self, op: Op) {
        self.clock.advance_to(self.clock.now() + Nanos(self.costs.prepare));
        self.in_line.push(op);
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        for op in std::mem::take(&mut self.in_line) {
            self.clock.advance_to(self.clock.now() + Nanos(self.costs.submit));
            self.inner.push(op);
            self.in_flight.fetch_add(1, Ordering::Relaxed);
            self.inner.submit_and_wait(0, Nanos::ZERO)?;
            let end = self.clock.now() + Nanos(self.costs.service);
            assert_eq!(self.ends.borrow_mut().insert(op.offset, end), None, "every offset once");
        }
        self.inner.submit_and_wait(wanted, timeout)
    }

    fn look(&mut self) -> u32 {
        self.inner.look()
    }

    fn pop(&mut self) -> Option<Done> {
        let done = self.inner.pop()?;
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        Some(done)
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.inner.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        self.inner.facts()
    }
}

/// What the loop sleeps between bursts, and what each of its sleeps takes.
const THINK_MS: u32 = 2;
const SLEEP: Nanos = Nanos(2_100_000);

/// Virtual time that each reading moves by a tick, and that ends the run. Between bursts, with nothing in
/// flight, the loop sleeps, which the kernel counts; how long it takes outside, on a machine however busy, is not felt.
#[derive(Clone)]
struct Ticking<'a> {
    inner: ManualClock,
    controls: &'a Controls,
    until: Nanos,
    thinks: bool,
    in_flight: Arc<AtomicU32>,
    slept: Arc<Mutex<u64>>,
}

/// How often this thread has gone to sleep.
fn sleeps_of_this_thread() -> u64 {
    StampClock::monotonic().sleeps().expect("the kernel counts them")
}

impl Clock for Ticking<'_> {
    fn now(&self) -> Nanos {
        let mut slept = Nanos::ZERO;
        if self.thinks {
            let count = sleeps_of_this_thread();
            let before = std::mem::replace(&mut *self.slept.lock().expect("one thread"), count);
            if count > before && self.in_flight.load(Ordering::Relaxed) == 0 {
                slept = SLEEP;
            }
        }
        let now = self.inner.now() + TICK + slept;
        self.inner.advance_to(now);
        if now >= self.until {
            self.controls.stop();
        }
        now
    }
}

struct OnDisk<'a> {
    span: &'a TimeSpan,
    plan: &'a ThreadPlan,
    clock: ManualClock,
    costs: Costs,
    until: Nanos,
}

impl QueueUse for OnDisk<'_> {
    type Output = (Vec<WitnessedIo>, BTreeMap<u64, Nanos>);

    fn with<Q: IoQueue>(self, inner: Q) -> Self::Output {
        let shared = Shared {
            span: self.span,
            sizes: &[1 << 34],
            interlocked: &[Default::default()],
            experiment_flags: 0,
            continue_on_error: false,
            open_loop: None,
            witnessed: Some(1 << 16),
        };
        let mut issuer =
            assemble::issuer::<Witnessed>(&shared, self.plan, None).expect("room for a block");
        let ends = Ends::default();
        let in_flight = Arc::new(AtomicU32::new(0));
        let mut queue = Costly {
            inner,
            clock: self.clock.clone(),
            costs: self.costs,
            in_line: Vec::new(),
            ends: Rc::clone(&ends),
            in_flight: Arc::clone(&in_flight),
        };
        let (controls, live) = (Controls::default(), Live::default());
        controls.start(Nanos::ZERO);
        controls.measure(Nanos::ZERO);
        let slept = Arc::new(Mutex::new(sleeps_of_this_thread()));
        let (inner, until) = (self.clock, self.until);
        let thinks = self.span.targets[0].think_time > 0;
        let clock = Ticking { inner, controls: &controls, until, thinks, in_flight, slept };
        let around = Surroundings {
            clock: &clock,
            controls: &controls,
            live: &live,
            dispatch: self.plan.dispatch,
        };
        run_loop(&mut queue, &mut issuer, &around).expect("a simulated disk takes everything");
        let (ios, missed) = issuer.take_witness().expect("asked for").into_ios();
        assert_eq!(missed, 0);
        drop(queue);
        (ios, Rc::into_inner(ends).expect("the queue is gone").into_inner())
    }
}

/// Sequential reads, so that every offset comes once.
fn span() -> TimeSpan {
    let target = Target {
        path: "sim".into(),
        block_size: 4096,
        alignment: 4096,
        request_count: 32,
        ..Target::default()
    };
    TimeSpan { duration: 1, measure_latency: true, targets: vec![target], ..TimeSpan::default() }
}

fn edited(edit: impl FnOnce(&mut TimeSpan)) -> TimeSpan {
    let mut span = span();
    edit(&mut span);
    span
}

#[test]
fn no_completion_is_seen_later_than_its_bound() {
    let ring = IoRing { batch: RingBatch::Ios(8), registered_buffers: true };
    let bursts = |span: &mut TimeSpan| {
        (span.targets[0].burst_size, span.targets[0].think_time) = (60, THINK_MS);
    };
    let spans = [
        ("gathered", span()),
        ("one taken per visit", edited(|span| span.completion_depth = Some(1))),
        ("three taken per visit", edited(|span| span.completion_depth = Some(3))),
        ("in bursts", edited(bursts)),
        (
            "in bursts, one taken per visit",
            edited(|span| {
                bursts(span);
                span.completion_depth = Some(1);
            }),
        ),
        ("a ring as told", edited(|span| span.io_ring = Some(ring))),
        (
            "a ring as told, in bursts",
            edited(|span| {
                bursts(span);
                span.io_ring = Some(ring);
            }),
        ),
        ("routines", edited(|span| span.completion_routines = true)),
        ("one by one", edited(|span| span.targets[0].request_count = 1)),
    ];
    // A disk, one as quick as the submission, memory, and a disk beside content that takes long to make.
    let costs = |prepare, submit, service| Costs { prepare, submit, service };
    for costs in [
        costs(0, 1_000, 100_000),
        costs(0, 10_000, 15_000),
        costs(0, 13_000, 0),
        costs(5_000, 1_000, 20_000),
    ] {
        for (name, span) in &spans {
            let options = PlanOptions::default();
            let plans = plan(span, options).threads;
            let clock = ManualClock::default();
            let disk = DiskSpec {
                service: Service::Constant(Nanos(costs.service)),
                parallelism: 64,
                ..DiskSpec::default()
            };
            let spec = QueueSpec {
                depth: 32,
                files: vec![any_file()],
                regions: plans[0].regions(span),
                mode: plans[0].mode(),
                ..QueueSpec::default()
            };
            let until = Nanos(30_000_000);
            let on_disk = OnDisk { span, plan: &plans[0], clock: clock.clone(), costs, until };
            let (ios, ends) =
                SimOpener::new(disk, clock).open(spec, on_disk).expect("a simulated queue");
            let Costs { prepare, submit, service } = costs;
            check(&format!("{name}, {prepare} + {submit} + {service}"), &ios, &ends);
        }
    }
}

fn check(name: &str, ios: &[WitnessedIo], ends: &BTreeMap<u64, Nanos>) {
    assert!(ios.len() > 250, "{name}: {} I/Os", ios.len());
    let (mut bounds, mut latencies, mut too_late) = (Vec::new(), Vec::new(), Vec::new());
    for io in ios {
        let late = io.seen.since(ends[&io.offset]);
        if late > io.bound + SLACK {
            too_late.push((io.offset / 4096, late.0, io.bound.0));
        }
        bounds.push(io.bound.0);
        latencies.push(io.seen.since(io.start).0);
    }
    assert!(
        too_late.len() * 100 <= ios.len(),
        "{name}: {} of {}: (nth, late by, bound) {:?}",
        too_late.len(),
        ios.len(),
        &too_late[..too_late.len().min(8)]
    );
    bounds.sort_unstable();
    latencies.sort_unstable();
    // A bar that is much longer than what it stands beside says nothing. (It counts from a look, which may
    // be before the I/O's start.)
    let (bound, latency) = (bounds[bounds.len() / 2], latencies[latencies.len() / 2]);
    assert!(bound <= 2 * latency + SLACK.0, "{name}: a bar of {bound} beside {latency}");
}
