//! The run loop on the queue that performs nothing: what an I/O costs in code of ours alone.
//!
//! `cargo xtask instructions` runs it under callgrind, for two numbers of entries; the difference is free
//! of the start-up. It has one thread and looks at no clock to stop: the same call counts the same.
//!
//! With `nop` it runs on empty operations of a ring instead, with `nop-file` on those for which the kernel looks up a file and a
//! buffer, and says what an I/O takes of the processor.
//!
//! With `permuted` the I/Os complete as on a device: not while they are submitted, but when the loop waits, and in an
//! order that a seed has shuffled, so that those of several submissions are mixed. `w30` makes 30 of 100 I/Os writes.
//!
//!     cargo run --release -p plumb-examples --bin null_loop -- ENTRIES DEPTH counts|latencies [BATCH] [nop|nop-file|permuted] [wPERCENT]
#![forbid(unsafe_code)]

mod shuffled;

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plumb_io::clock::{Clock, StampClock};
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::{
    Done, Errno, IoQueue, LaneIndex, Op, Opener, QueueFacts, QueueSpec, QueueUse, Slot,
};
use plumb_load::assemble::{Shared, issuer};
use plumb_load::plan::{PlanOptions, ThreadPlan, plan};
use plumb_load::profile::model::{Target, TimeSpan};
use plumb_load::run_loop::{Controls, Counts, Latencies, Level, Live, Surroundings, run_loop};
use plumb_units::Nanos;
use rustix::time::{ClockId, clock_gettime};

use shuffled::ShuffledQueue;

/// The target that nobody opens.
const TARGET_BYTES: u64 = 1 << 30;

const USAGE: &str =
    "usage: null_loop ENTRIES DEPTH counts|latencies [BATCH] [nop|nop-file|permuted] [wPERCENT]";

/// What the loop runs on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Queue {
    /// Completes in order and at once.
    Null,
    /// A ring's empty operations.
    Ring(Choice),
    /// Completes shuffled when the loop waits.
    Shuffled,
}

/// What one run is of.
#[derive(Debug, Clone, Copy)]
struct Asked {
    /// Into the queue, before the end.
    entries: u64,
    depth: u32,
    measure_latency: bool,
    /// The loop's own where there is none.
    batch: Option<u32>,
    queue: Queue,
    /// Percent of writes.
    write_ratio: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [entries, depth, level, rest @ ..] = words.as_slice() else {
        return Err(USAGE.into());
    };
    let measure_latency = match *level {
        "counts" => false,
        "latencies" => true,
        _ => return Err(format!("`{level}`: use `counts` or `latencies`").into()),
    };
    let mut asked = Asked {
        entries: entries.parse()?,
        depth: depth.parse()?,
        measure_latency,
        batch: None,
        queue: Queue::Null,
        write_ratio: 0,
    };
    for word in rest {
        match *word {
            "nop" => asked.queue = Queue::Ring(Choice::Nop),
            "nop-file" => asked.queue = Queue::Ring(Choice::NopFile),
            "permuted" => asked.queue = Queue::Shuffled,
            _ => match word.strip_prefix('w') {
                Some(percent) => asked.write_ratio = percent.parse()?,
                None => asked.batch = Some(word.parse().map_err(|_| USAGE)?),
            },
        }
    }
    let before = processor_time();
    let ios = drive(asked)?;
    println!("{ios} I/Os");
    if let Queue::Ring(_) = asked.queue {
        // Beside millions of I/Os nothing of it is start-up.
        println!("{:.1} ns of the processor for each", (processor_time() - before) / ios as f64);
    }
    Ok(())
}

/// Of this process so far, in nanoseconds, user's and kernel's.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Random 4 KiB I/Os until the loop has entered its queue often enough; how many that were.
fn drive(asked: Asked) -> Result<u64, Box<dyn Error>> {
    let Asked { entries, depth, measure_latency, batch, queue, write_ratio } = asked;
    let target = Target {
        path: "nothing".into(),
        block_size: 4096,
        alignment: 4096,
        random_ratio: 100,
        write_ratio,
        request_count: depth,
        ..Target::default()
    };
    let span = TimeSpan { measure_latency, targets: vec![target], ..TimeSpan::default() };
    let planned = plan(&span, PlanOptions { batch, ..PlanOptions::default() });
    let plan = &planned.threads[0];
    let spec = QueueSpec {
        depth: plan.requests,
        regions: plan.regions(&span),
        measures_latency: measure_latency,
        ..QueueSpec::default()
    };
    let user = Drive { span: &span, plan, entries };
    let ladder = |choice| Ladder::new(choice, LadderOptions::default());
    match queue {
        Queue::Null => ladder(Choice::Null).open(spec, user)?,
        Queue::Ring(choice) => ladder(choice).open(spec, user)?,
        Queue::Shuffled => user.with(ShuffledQueue::open(&spec)?),
    }
}

struct Drive<'a> {
    span: &'a TimeSpan,
    plan: &'a ThreadPlan,
    entries: u64,
}

impl QueueUse for Drive<'_> {
    type Output = Result<u64, Box<dyn Error>>;

    fn with<Q: IoQueue>(self, queue: Q) -> Self::Output {
        if self.span.measure_latency {
            self.run::<Q, Latencies>(queue)
        } else {
            self.run::<Q, Counts>(queue)
        }
    }
}

impl Drive<'_> {
    fn run<Q: IoQueue, L: Level>(&self, queue: Q) -> Result<u64, Box<dyn Error>> {
        let interlocked = [Arc::new(AtomicU64::new(0))];
        let shared = Shared {
            span: self.span,
            sizes: &[TARGET_BYTES],
            interlocked: &interlocked,
            experiment_flags: 0,
            continue_on_error: false,
            open_loop: None,
            witnessed: None,
        };
        let mut issuer = issuer::<L>(&shared, self.plan, None)?;
        let (clock, _) = StampClock::new();
        let controls = Controls::default();
        let live = Live::default();
        controls.start(clock.now());
        controls.measure(clock.now());
        let around = Surroundings {
            clock: &clock,
            controls: &controls,
            live: &live,
            dispatch: self.plan.dispatch,
        };
        let mut queue = Ending { queue, controls: &controls, left: self.entries };
        run_loop(&mut queue, &mut issuer, &around)?;
        let completed = live.read().completions;
        let counts = issuer.into_counts();
        let (reads, writes): (Vec<u64>, Vec<u64>) =
            counts.iter().map(|of| (of.read.io_count, of.write.io_count)).unzip();
        let (read, written) = (reads.iter().sum::<u64>(), writes.iter().sum::<u64>());
        if read + written != completed || (written > 0) != (self.span.targets[0].write_ratio > 0) {
            return Err(format!("{read} reads and {written} writes of {completed} I/Os").into());
        }
        Ok(completed)
    }
}

/// Stops the run at an entry. Costs a count per entry, which is a batch of I/Os.
struct Ending<'a, Q> {
    queue: Q,
    controls: &'a Controls,
    left: u64,
}

impl<Q: IoQueue> IoQueue for Ending<'_, Q> {
    #[inline(always)]
    fn push(&mut self, op: Op) {
        self.queue.push(op);
    }

    #[inline(always)]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.controls.stop();
        }
        self.queue.submit_and_wait(wanted, timeout)
    }

    #[inline(always)]
    fn look(&mut self) -> u32 {
        self.queue.look()
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Done> {
        self.queue.pop()
    }

    #[inline(always)]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.queue.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        self.queue.facts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_call_counts_the_same() {
        let plain = Asked {
            entries: 0,
            depth: 32,
            measure_latency: true,
            batch: None,
            queue: Queue::Null,
            write_ratio: 0,
        };
        for asked in [
            Asked { measure_latency: false, ..plain },
            Asked { depth: 1, ..plain },
            Asked { depth: 128, ..plain },
            Asked { batch: Some(8), ..plain },
            Asked { batch: Some(8), queue: Queue::Shuffled, ..plain },
            Asked { depth: 1, queue: Queue::Shuffled, ..plain },
            Asked { batch: Some(8), queue: Queue::Shuffled, write_ratio: 30, ..plain },
        ] {
            let ios = |entries| drive(Asked { entries, ..asked }).expect("nothing can fail");
            assert_eq!(ios(1000), ios(1000), "{asked:?}");
            assert!(ios(1000) >= 1000, "{asked:?}");
            assert!(ios(2000) > ios(1000), "{asked:?}");
        }
    }
}
