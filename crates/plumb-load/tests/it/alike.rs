//! I/Os that are accounted together where their latencies are alike, against the same I/Os taken one by one.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plumb_io::clock::{Clock, ManualClock};
use plumb_io::{Done, Errno, IoQueue, LaneIndex, Op, QueueFacts, Slot};
use plumb_load::assemble::{self, Shared};
use plumb_load::plan::{PlanOptions, plan};
use plumb_load::profile::model::{Target, TimeSpan};
use plumb_load::rng::Rng;
use plumb_load::run_loop::{
    Controls, Latencies, Level, Live, Surroundings, TargetCounts, Witnessed, run_loop,
};
use plumb_units::Nanos;

/// I/Os of a run.
const IOS: u64 = 4000;

/// Completes I/Os in its own order: some at once and in the order they came, some late, short or failed.
struct Unsteady<'a> {
    clock: &'a ManualClock,
    controls: &'a Controls,
    random: Rng,
    pushed: u64,
    in_flight: Vec<Done>,
    there: Vec<Done>,
    seen: usize,
    buffer: Vec<u8>,
}

impl Unsteady<'_> {
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.random.next32()).expect("64 bits") % end.max(1)
    }
}

impl IoQueue for Unsteady<'_> {
    fn push(&mut self, op: Op) {
        let len = i32::try_from(op.len).expect("small");
        let result = match self.below(40) {
            0 => -5,
            1 => len / 2,
            _ => len,
        };
        self.in_flight.push(Done { slot: op.slot, result });
        self.pushed += 1;
        if self.pushed >= IOS {
            self.controls.stop();
        }
    }

    fn submit_and_wait(&mut self, wanted: u32, _timeout: Nanos) -> Result<(), Errno> {
        self.clock.advance_to(self.clock.now() + Nanos(self.random.next64() % 5000));
        let wanted = usize::try_from(wanted).expect("64 bits").min(self.in_flight.len());
        let more = self.below(self.in_flight.len() + 1).max(wanted);
        for _ in 0..more.saturating_sub(self.there.len()) {
            let place = if self.below(3) == 0 { self.below(self.in_flight.len()) } else { 0 };
            self.there.push(self.in_flight.remove(place));
        }
        Ok(())
    }

    fn look(&mut self) -> u32 {
        self.seen = self.there.len();
        u32::try_from(self.seen).expect("few")
    }

    fn pop(&mut self) -> Option<Done> {
        self.seen = self.seen.checked_sub(1)?;
        Some(self.there.remove(0))
    }

    fn buffer_mut(&mut self, _slot: Slot, _lane: LaneIndex) -> &mut [u8] {
        &mut self.buffer
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts::default()
    }
}

/// What a run at level `L` counts: in words, and the I/Os that ended one way or another.
fn counted<L: Level>(seed: u64, witnessed: Option<usize>) -> (Vec<String>, u64) {
    let target = |path: &str, write_ratio| Target {
        path: path.into(),
        block_size: 8192,
        alignment: 4096,
        random_ratio: 100,
        request_count: 24,
        write_ratio,
        ..Target::default()
    };
    let span = TimeSpan {
        targets: vec![target("read", 0), target("mixed", 40)],
        thread_count: 1,
        measure_latency: true,
        ..TimeSpan::default()
    };
    let plan = plan(&span, PlanOptions::default());
    let thread = &plan.threads[0];
    let interlocked: Vec<_> = span.targets.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
    let shared = Shared {
        span: &span,
        sizes: &[1 << 30; 2],
        interlocked: &interlocked,
        experiment_flags: 0,
        continue_on_error: true,
        open_loop: None,
        witnessed,
    };
    let mut issuer = assemble::issuer::<L>(&shared, thread, None).expect("room for a block");
    let (clock, controls, live) = (ManualClock::default(), Controls::default(), Live::default());
    controls.measure(Nanos::ZERO);
    let around =
        Surroundings { clock: &clock, controls: &controls, live: &live, dispatch: thread.dispatch };
    let mut queue = Unsteady {
        clock: &clock,
        controls: &controls,
        random: Rng::new(seed),
        pushed: 0,
        in_flight: Vec::new(),
        there: Vec::new(),
        seen: 0,
        buffer: vec![0; 8192],
    };
    let loops = run_loop(&mut queue, &mut issuer, &around).expect("nothing is refused");
    let words = |counts: &TargetCounts| format!("{counts:?}");
    let mut told = vec![
        format!("{:?} {loops:?}", live.read()),
        format!("{:?}", issuer.looks().bounds()),
        format!("{} in flight, {} idle", issuer.outstanding(), issuer.idle()),
    ];
    let counts = issuer.into_counts();
    let all = |counts: &TargetCounts| {
        let failed: u64 = counts.errors.values().sum();
        counts.read.io_count + counts.write.io_count + failed
    };
    told.extend(counts.iter().map(words));
    (told, counts.iter().map(all).sum())
}

#[test]
fn what_is_accounted_together_is_what_is_accounted_one_by_one() {
    for seed in 1..=8 {
        let (together, ios) = counted::<Latencies>(seed, None);
        let (one_by_one, _) = counted::<Witnessed>(seed, Some(0));
        assert!(ios >= IOS, "every I/O is counted: {ios}");
        for (together, one_by_one) in together.iter().zip(&one_by_one) {
            let level = |words: &str| words.replace("Witnessed", "").replace("Latencies", "");
            assert_eq!(level(together), level(one_by_one), "seed {seed}");
        }
    }
}
