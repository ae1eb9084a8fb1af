//! Load threads ask for no memory while the clock runs: counted on every engine, with everything on
//! that keeps state.
#![forbid(unsafe_code)]

use std::sync::Mutex;

use plumb_io::clock::StampClock;
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::system_tree::SystemTree;
use plumb_io::{
    Done, Errno, IoQueue, LaneIndex, Op, OpenQueueError, Opener, QueueFacts, QueueSpec, QueueUse,
    Slot,
};
use plumb_load::profile::check::Purpose;
use plumb_load::profile::model::{
    Distribution, DistributionKind, DistributionRange, RawProfile, Target, TimeSpan,
};
use plumb_load::result::model::Tool;
use plumb_load::session::{self, Observer, Overwrite, SessionEnd, SessionOptions, Snapshot};
use plumb_sys::allocations::{CountingAllocator, count};
use plumb_units::Nanos;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What one load thread did.
#[derive(Debug, Clone, Copy)]
struct Seen {
    pushes: u64,
    allocations: u64,
}

struct Counted<'a, Q> {
    inner: Q,
    pushes: u64,
    first: u64,
    last: u64,
    seen: &'a Mutex<Vec<Seen>>,
}

impl<Q: IoQueue> IoQueue for Counted<'_, Q> {
    fn push(&mut self, op: Op) {
        if self.pushes == 0 {
            self.first = count();
        }
        self.pushes += 1;
        self.inner.push(op);
        self.last = count();
    }
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.inner.submit_and_wait(wanted, timeout)
    }
    fn look(&mut self) -> u32 {
        let seen = self.inner.look();
        self.last = count();
        seen
    }
    fn pop(&mut self) -> Option<Done> {
        let done = self.inner.pop();
        self.last = count();
        done
    }
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.inner.buffer_mut(slot, lane)
    }
    fn facts(&self) -> QueueFacts {
        self.inner.facts()
    }
}

impl<Q> Drop for Counted<'_, Q> {
    fn drop(&mut self) {
        let seen = Seen { pushes: self.pushes, allocations: self.last - self.first };
        self.seen.lock().expect("not poisoned").push(seen);
    }
}

struct CountingOpener {
    inner: Ladder,
    seen: Mutex<Vec<Seen>>,
}

impl Opener for CountingOpener {
    fn open<U: QueueUse>(&self, spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError> {
        self.inner.open(spec, CountingUse { user, seen: &self.seen })
    }
}

struct CountingUse<'a, U> {
    user: U,
    seen: &'a Mutex<Vec<Seen>>,
}

impl<U: QueueUse> QueueUse for CountingUse<'_, U> {
    type Output = U::Output;
    fn with<Q: IoQueue>(self, inner: Q) -> U::Output {
        self.user.with(Counted { inner, pushes: 0, first: 0, last: 0, seen: self.seen })
    }
}

struct Quiet;

impl Observer for Quiet {
    fn verbose(&mut self, _line: &str) {}
    fn warning(&mut self, _text: &str) {}
    fn progress(&mut self, _snapshot: &Snapshot) {}
    fn dots(&mut self, _count: u64) {}
    fn interrupted(&mut self) -> bool {
        false
    }
}

/// A slow machine gets more time to make enough I/Os.
fn check(choice: Choice, requests: u32, mapped: bool) {
    for duration in [2, 8, 30] {
        let seen = run(choice, requests, mapped, duration);
        let pushes: u64 = seen.iter().map(|seen| seen.pushes).sum();
        println!("allocations {choice} mapped={mapped}: {pushes} I/Os, {} threads", seen.len());
        assert_eq!(seen.len(), 2, "{choice}: two load threads");
        assert!(seen.iter().all(|seen| seen.allocations == 0), "{choice}: {seen:?}");
        if pushes >= 100_000 {
            return;
        }
    }
    panic!("{choice}: not even 100,000 I/Os in 30 s: too few to say anything");
}

/// Everything on that keeps state: latencies, intervals that change often, fresh random content, a
/// distribution, several targets with reads and writes.
fn run(choice: Choice, requests: u32, mapped: bool, duration: u32) -> Vec<Seen> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let ranges = [(90, 10), (10, 90)].map(|(io, size)| DistributionRange { io, size });
    let target = Target {
        block_size: 4096,
        alignment: 4096,
        random_ratio: 100,
        request_count: requests,
        write_ratio: 30,
        file_size: Some(4 << 20),
        memory_mapped: mapped,
        distribution: Some(Distribution {
            kind: DistributionKind::Percent,
            ranges: ranges.to_vec(),
        }),
        ..Target::default()
    };
    let mixed = Target { random_ratio: 60, distribution: None, ..target.clone() };
    let targets = vec![Target { path: path("a"), ..target }, Target { path: path("b"), ..mixed }];
    let span = TimeSpan {
        duration,
        warmup: 0,
        thread_count: if requests == 1 { 0 } else { 2 },
        measure_latency: true,
        calculate_iops_std_dev: true,
        io_bucket_duration: 20,
        random_write_data: true,
        targets,
        ..TimeSpan::default()
    };
    let raw = RawProfile { time_spans: vec![span], ..RawProfile::default() };
    let (profile, _) = raw.check(Purpose::Run).expect("a valid profile");
    let options = SessionOptions {
        command_line: "plumb run".into(),
        tool: Tool {
            name: "plumb".into(),
            version: "0".into(),
            version_date: "2026/1/1".into(),
            epoch: Some(1),
        },
        batch: None,
        open_loop: None,
        truth: None,
        wake_ups: None,
        poll: false,
        verify: None,
        continue_on_error: false,
        overwrite: Overwrite::Named(Vec::new()),
        opens_no_target: choice == Choice::Null,
    };
    let opener = CountingOpener {
        inner: Ladder::new(choice, LadderOptions::default()),
        seen: Mutex::default(),
    };
    let (clock, _) = StampClock::new();
    let tree = SystemTree::default();
    let outcome = session::run(&profile, &options, &opener, &clock, &tree, &mut Quiet);
    let failures = &outcome.result.time_spans[0].failures;
    assert_eq!(outcome.end, SessionEnd::Completed, "{choice}: {failures:?}");
    opener.seen.into_inner().expect("not poisoned")
}

/// Prints that the test is skipped on that engine where it cannot be had.
fn is_skipped(choice: Choice) -> bool {
    struct Nothing;
    impl QueueUse for Nothing {
        type Output = ();
        fn with<Q: IoQueue>(self, _queue: Q) {}
    }
    let spec = QueueSpec { depth: 1, ..QueueSpec::default() };
    let opened = Ladder::new(choice, LadderOptions::default()).open(spec, Nothing);
    if let Err(why) = &opened {
        println!("skipped no_engine_makes_a_load_thread_allocate on {choice}: {why}");
    }
    opened.is_err()
}

#[test]
fn no_engine_makes_a_load_thread_allocate() {
    check(Choice::Null, 16, false);
    check(Choice::Sync, 1, true);
    check(Choice::Sync, 1, false);
    check(Choice::Threads, 16, false);
    for choice in [Choice::Uring, Choice::Aio] {
        if !is_skipped(choice) {
            check(choice, 16, false);
        }
    }
}
