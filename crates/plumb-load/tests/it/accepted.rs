//! A profile as it comes, planned and issued on a queue that completes everything at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plumb_io::clock::{Clock, ManualClock};
use plumb_io::{Done, Errno, IoQueue, LaneIndex, Op, QueueFacts, Slot};
use plumb_load::assemble::{self, Shared};
use plumb_load::plan::{PlanOptions, ThreadPlan, plan};
use plumb_load::profile::check::Purpose;
use plumb_load::profile::model::{Throughput, TimeSpan};
use plumb_load::profile::{json, template, text, xml};
use plumb_load::run_loop::{Controls, Latencies, Live, Surroundings, run_loop};
use plumb_units::Nanos;

/// Bytes of every target; it is no multiple of anything.
const TARGET_SIZE: u64 = (64 << 20) + 12_345;
/// I/Os of a thread.
const IOS: u64 = 200;
/// More would take memory and say nothing.
const THREADS_MAX: u64 = 16;
const REQUESTS_MAX: u32 = 256;

/// Runs what is accepted of `bytes`; returns how many I/Os that were.
pub(crate) fn run(bytes: &[u8]) -> u64 {
    let Ok(mut raw) = xml::decode(bytes).and_then(|text| xml::read(&text)) else { return 0 };
    let blank = raw.clone();
    // As many targets as it has places for.
    let filled = (0..4).any(|targets| {
        raw = blank.clone();
        let names: Vec<String> = (0..targets).map(|target| format!("target{target}")).collect();
        template::substitute(&mut raw, &names).is_ok()
    });
    let Some(Ok((profile, _))) = filled.then(|| raw.check(Purpose::Run)) else { return 0 };
    assert!(json::normalised(&profile).is_object());
    assert!(text::write(&profile, "plumb run").contains("Input parameters"));
    let mut ios = 0;
    for span in &profile.time_spans {
        // A loop that paces itself sleeps in earnest, and nobody moves the clock meanwhile.
        let mut span = span.clone();
        for target in &mut span.targets {
            target.throughput = Throughput::default();
            (target.think_time, target.burst_size) = (0, 0);
        }
        if span.total_threads() > THREADS_MAX {
            continue;
        }
        for thread in &plan(&span, PlanOptions::default()).threads {
            if (1..=REQUESTS_MAX).contains(&thread.requests) {
                ios += issue(&span, thread);
            }
        }
    }
    ios
}

/// Issues the first I/Os of a thread and holds each against its target.
fn issue(span: &TimeSpan, thread: &ThreadPlan) -> u64 {
    let interlocked: Vec<_> = span.targets.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
    let shared = Shared {
        span,
        sizes: &vec![TARGET_SIZE; span.targets.len()],
        interlocked: &interlocked,
        experiment_flags: 0,
        continue_on_error: false,
        open_loop: None,
        witnessed: None,
    };
    // A target may be too small for the thread's part of it: that is said, and nothing runs.
    let Ok(mut issuer) = assemble::issuer::<Latencies>(&shared, thread, None) else { return 0 };
    let (clock, controls, live) = (ManualClock::default(), Controls::default(), Live::default());
    controls.measure(Nanos::ZERO);
    let around =
        Surroundings { clock: &clock, controls: &controls, live: &live, dispatch: thread.dispatch };
    let mut queue = AtOnce {
        clock: &clock,
        controls: &controls,
        pushed: 0,
        waits: 0,
        under_way: vec![false; usize::try_from(thread.requests).expect("few")],
        in_line: VecDeque::new(),
        seen: 0,
        buffer: Vec::new(),
    };
    run_loop(&mut queue, &mut issuer, &around).expect("nothing fails here");
    assert!(queue.under_way.iter().all(|under_way| !under_way), "the loop drains its queue");
    queue.pushed
}

/// Completes every I/O at once, a microsecond later.
struct AtOnce<'a> {
    clock: &'a ManualClock,
    controls: &'a Controls,
    pushed: u64,
    waits: u64,
    under_way: Vec<bool>,
    in_line: VecDeque<Done>,
    seen: u32,
    buffer: Vec<u8>,
}

impl IoQueue for AtOnce<'_> {
    fn push(&mut self, op: Op) {
        let slot = &mut self.under_way[usize::try_from(op.slot.0).expect("small")];
        assert!(!*slot, "a slot has one I/O at a time");
        *slot = true;
        assert!(op.len > 0 && op.offset + u64::from(op.len) <= TARGET_SIZE, "{op:?} is outside");
        self.in_line
            .push_back(Done { slot: op.slot, result: i32::try_from(op.len).unwrap_or(i32::MAX) });
        self.pushed += 1;
        if self.pushed >= IOS {
            self.controls.stop();
        }
    }

    fn submit_and_wait(&mut self, _wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        // A loop that paces itself waits for time, another one for completions.
        let pause =
            if self.in_line.is_empty() { timeout.min(Nanos(1_000_000)) } else { Nanos(1000) };
        self.clock.advance_to(Nanos(self.clock.now().0 + pause.0.max(1000)));
        self.waits += 1;
        if self.waits > 100 * IOS {
            self.controls.stop();
        }
        Ok(())
    }

    fn look(&mut self) -> u32 {
        self.seen = u32::try_from(self.in_line.len()).expect("few");
        self.seen
    }

    fn pop(&mut self) -> Option<Done> {
        self.seen = self.seen.checked_sub(1)?;
        let done = self.in_line.pop_front()?;
        self.under_way[usize::try_from(done.slot.0).expect("small")] = false;
        Some(done)
    }

    fn buffer_mut(&mut self, _slot: Slot, _lane: LaneIndex) -> &mut [u8] {
        self.buffer.resize(1 << 20, 0);
        &mut self.buffer
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts { engine: "at once".into(), ..QueueFacts::default() }
    }
}
