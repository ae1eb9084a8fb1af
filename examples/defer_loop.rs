//! The loop that reap lag is held against: a ring with DEFER_TASKRUN that submits batches and then waits for a batch, so that
//! completions are posted in that wait and are seen nowhere else.
//!
//! All the rest is the load generator's: the requests, the stamps, and the comparison with the device's own events (`--truth`),
//! I/O by I/O. `cargo xtask reap-lag` runs it by turns with `plumb run --truth`. It needs root and tracefs.
//!
//!     cargo run --release -p plumb-examples --bin defer_loop -- FILE DEPTH BATCH SECONDS
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;

use plumb_io::clock::StampClock;
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::system_tree::SystemTree;
use plumb_io::{
    Done, Errno, IoQueue, LaneIndex, Op, OpenQueueError, Opener, QueueFacts, QueueMode, QueueSpec,
    QueueUse, Slot,
};
use plumb_load::profile::check::Purpose;
use plumb_load::profile::model::{CacheMode, RawProfile, Target, TimeSpan};
use plumb_load::result::model::Tool;
use plumb_load::session::{
    self, Observer, Overwrite, SessionOptions, SessionOutcome, Snapshot, wake_up,
};
use plumb_load::tally::Histogram;
use plumb_load::witness::Truth;
use plumb_units::Nanos;

const USAGE: &str = "usage: defer_loop FILE DEPTH BATCH SECONDS";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [file, depth, batch, seconds] = words.as_slice() else { return Err(USAGE.into()) };
    let batch = batch.parse()?;
    let opener = Deferring { ladder: Ladder::new(Choice::Uring, LadderOptions::default()), batch };
    let shape = (depth.parse()?, batch, seconds.parse()?);
    let SessionOutcome { result, .. } = run(file, shape, &opener)?;
    let span = result.time_spans.first().ok_or("nothing was run")?;
    if let Some(failure) = span.failures.first() {
        return Err(failure.text.clone().into());
    }
    println!("{}", told(span.truth.as_ref().ok_or("the kernel's events could not be read")?)?);
    Ok(())
}

/// The figures of the comparison in the words of a result's `truth`.
fn told(truth: &Truth) -> Result<String, Box<dyn Error>> {
    let at = |of: &Histogram, percent: u64| {
        let rank = (of.count() * percent).div_ceil(100).max(1);
        of.value_at_rank(rank).ok_or("no I/O was found among the requests of the device")
    };
    let (kept, matched) = (truth.kept, truth.matched);
    let mut text = format!("{{\"kept\": {kept}, \"matched\": {matched}");
    for (name, of) in [
        ("device_ns", &truth.device),
        ("reported_ns", &truth.reported),
        ("reap_lag_ns", &truth.reap_lag),
    ] {
        text += &format!(", \"{name}\": {{\"p50\": {}, \"p99\": {}}}", at(of, 50)?, at(of, 99)?);
    }
    Ok(text + "}")
}

/// Most completions that a look may take (`-oc`).
const TAKEN_MAX: u32 = 16;

/// Random 4 KiB reads past the page cache.
fn profile(file: &str, depth: u32, seconds: u32) -> RawProfile {
    let target = Target {
        path: file.to_owned(),
        block_size: 4096,
        alignment: 4096,
        random_ratio: 100,
        request_count: depth,
        cache: CacheMode::NoOsCache,
        ..Target::default()
    };
    let span = TimeSpan {
        duration: seconds,
        warmup: 1,
        measure_latency: true,
        // All of a batch that is there at a look is taken.
        completion_depth: Some(depth.min(TAKEN_MAX)),
        targets: vec![target],
        ..TimeSpan::default()
    };
    RawProfile { time_spans: vec![span], ..RawProfile::default() }
}

/// Each I/O is held against what the device did.
fn run<O: Opener>(
    file: &str,
    (depth, batch, seconds): (u32, u32, u32),
    opener: &O,
) -> Result<SessionOutcome, Box<dyn Error>> {
    let raw = profile(file, depth, seconds);
    let (profile, _) = raw.check(Purpose::Run).map_err(|violations| format!("{violations:?}"))?;
    let (clock, why) = StampClock::new();
    if let Some(why) = why {
        return Err(format!("stamps do not compare with the kernel's: {why:?}").into());
    }
    let options = SessionOptions {
        command_line: "defer_loop".to_owned(),
        tool: Tool {
            name: "defer_loop".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            version_date: String::new(),
            epoch: None,
        },
        batch: Some(batch),
        open_loop: None,
        truth: Some(clock),
        wake_ups: wake_up::measure(wake_up::BEFORE).ok(),
        poll: false,
        verify: None,
        continue_on_error: false,
        overwrite: Overwrite::Named(Vec::new()),
        opens_no_target: false,
    };
    let tree = SystemTree::default();
    Ok(session::run(&profile, &options, opener, &clock, &tree, &mut Silent))
}

/// Opens rings as a run without latencies has them, which wait for a batch.
struct Deferring {
    ladder: Ladder,
    batch: u32,
}

impl Opener for Deferring {
    fn open<U: QueueUse>(&self, spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError> {
        // The kernel does not say that completions wait to be posted: no look asks for them.
        let spec = QueueSpec { measures_latency: false, ..spec };
        self.ladder.open(spec, Batched { user, batch: self.batch })
    }

    fn check(&self, mode: QueueMode, mapped_only: bool) -> Result<(), OpenQueueError> {
        self.ladder.check(mode, mapped_only)
    }
}

struct Batched<U> {
    user: U,
    batch: u32,
}

impl<U: QueueUse> QueueUse for Batched<U> {
    type Output = U::Output;

    fn with<Q: IoQueue>(self, queue: Q) -> Self::Output {
        self.user.with(BatchedQueue { queue, batch: self.batch })
    }
}

/// Waits for a batch wherever the loop waits.
struct BatchedQueue<Q> {
    queue: Q,
    batch: u32,
}

impl<Q: IoQueue> IoQueue for BatchedQueue<Q> {
    #[inline(always)]
    fn push(&mut self, op: Op) {
        self.queue.push(op);
    }

    #[inline(always)]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        // The ring waits for no more than are outstanding.
        let wanted = if wanted > 0 { wanted.max(self.batch) } else { 0 };
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

/// Says warnings, and nothing else.
struct Silent;

impl Observer for Silent {
    fn verbose(&mut self, _line: &str) {}

    fn warning(&mut self, text: &str) {
        eprintln!("{text}");
    }

    fn progress(&mut self, _snapshot: &Snapshot) {}

    fn dots(&mut self, _count: u64) {}

    fn interrupted(&mut self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that only remembers what was waited for.
    #[derive(Default)]
    struct Waits(Vec<u32>);

    impl IoQueue for Waits {
        fn push(&mut self, _op: Op) {}
        fn submit_and_wait(&mut self, wanted: u32, _timeout: Nanos) -> Result<(), Errno> {
            self.0.push(wanted);
            Ok(())
        }
        fn look(&mut self) -> u32 {
            0
        }
        fn pop(&mut self) -> Option<Done> {
            None
        }
        fn buffer_mut(&mut self, _slot: Slot, _lane: LaneIndex) -> &mut [u8] {
            &mut []
        }
        fn facts(&self) -> QueueFacts {
            QueueFacts::default()
        }
    }

    #[test]
    fn what_it_runs_can_be_run() {
        for depth in [1, 16, 32, 128] {
            let checked = profile("file.dat", depth, 2).check(Purpose::Run);
            assert!(checked.is_ok(), "depth {depth}: {:?}", checked.err());
        }
    }

    #[test]
    fn only_waits_are_for_a_batch() {
        let mut queue = BatchedQueue { queue: Waits::default(), batch: 8 };
        for wanted in [0, 1, 2, 9] {
            queue.submit_and_wait(wanted, Nanos::NEVER).expect("it cannot fail");
        }
        assert_eq!(queue.queue.0, [0, 8, 8, 9]);
    }

    #[test]
    fn figures_have_the_names_that_results_have() {
        let mut truth = Truth { kept: 4, matched: 3, ..Truth::default() };
        assert!(told(&truth).is_err());
        for of in [&mut truth.device, &mut truth.reported, &mut truth.reap_lag] {
            of.record_many(100, 3);
        }
        let want = "{\"kept\": 4, \"matched\": 3, \"device_ns\": {\"p50\": 100, \"p99\": 100}, \"reported_ns\": \
                    {\"p50\": 100, \"p99\": 100}, \"reap_lag_ns\": {\"p50\": 100, \"p99\": 100}}";
        assert_eq!(told(&truth).expect("figures"), want);
    }
}
