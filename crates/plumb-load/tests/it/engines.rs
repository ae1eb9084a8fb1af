//! What must not depend on the engine: the I/Os, and how many of them are in flight.

use plumb_io::clock::{ManualClock, StampClock};
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::sim::{DiskSpec, RandomFaults, Service, SimOpener};
use plumb_io::stack::{Recorded, RecordingOpener};
use plumb_io::system_tree::SystemTree;
use plumb_io::{IoQueue, OpKind, Opener, QueueSpec, QueueUse};
use plumb_load::assemble::{self, Shared};
use plumb_load::plan::{PlanOptions, ThreadPlan, plan};
use plumb_load::profile::check::Purpose;
use plumb_load::profile::model::{
    CacheMode, IoRing, RawProfile, RingBatch, Target, Throughput, ThroughputUnit, TimeSpan,
};
use plumb_load::result::littles_law::{LittlesLaw, Verdict};
use plumb_load::result::model::{FailedIos, SpanResult, TargetResult, ThreadResult};
use plumb_load::run_loop::{Controls, Latencies, Live, Surroundings, TargetCounts, run_loop};
use plumb_load::session::{self, SessionEnd};
use plumb_load::tally::Histogram;
use plumb_units::Nanos;
use tempfile::TempDir;

use crate::runs::{is_skipped, options};
use crate::watcher::Watcher;

fn span(path: &str, requests: u32) -> TimeSpan {
    let target = Target {
        path: path.into(),
        block_size: 4096,
        alignment: 4096,
        random_ratio: 70,
        write_ratio: 30,
        request_count: requests,
        file_size: Some(8 << 20),
        ..Target::default()
    };
    TimeSpan {
        duration: 1,
        warmup: 0,
        rand_seed: 7,
        measure_latency: true,
        targets: vec![target],
        ..TimeSpan::default()
    }
}

/// What each queue of a run did.
fn record(span: TimeSpan, choice: Choice) -> Result<Vec<Vec<Recorded>>, String> {
    let raw = RawProfile { time_spans: vec![span], ..RawProfile::default() };
    let (profile, _) = raw.check(Purpose::Run).expect("a valid profile");
    let opener = RecordingOpener::new(Ladder::new(choice, LadderOptions::default()));
    let (clock, _) = StampClock::new();
    let mut watcher = Watcher::default();
    let tree = SystemTree::default();
    let options = options(choice);
    let outcome = session::run(&profile, &options, &opener, &clock, &tree, &mut watcher);
    if outcome.end == SessionEnd::Completed {
        Ok(opener.records())
    } else {
        Err(outcome.result.time_spans[0]
            .failures
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; "))
    }
}

/// A folder on the disk of the build directory, and a file in it.
fn target() -> (TempDir, String) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().join("f").to_str().expect("UTF-8").to_owned();
    (folder, path)
}

/// Prints that `test` is skipped where files beside `path` take no direct I/O: then runs past the page
/// cache fail for that reason, and everywhere else for none.
fn lacks_direct_io(test: &str, path: &str) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).expect("a flag of open(2)");
    let probe = format!("{path}.probe");
    let opened = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(flags)
        .open(&probe);
    if let Err(why) = &opened {
        println!("skipped {test}: no direct I/O to '{probe}': {why}");
    }
    opened.is_err()
}

/// How many I/Os are compared.
const OPS: usize = 1000;

/// Direction and offset of the first I/Os.
fn first_ops(record: &[Recorded]) -> Vec<(OpKind, u64)> {
    let pushes = record.iter().filter_map(|event| match event {
        Recorded::Push(op) => Some((op.kind, op.offset)),
        _ => None,
    });
    pushes.take(OPS).collect()
}

#[test]
fn every_engine_issues_the_same_offsets_and_directions() {
    let (_folder, path) = target();
    let mut first: Option<Vec<(OpKind, u64)>> = None;
    for (choice, requests, mapped) in [
        (Choice::Null, 8, false),
        (Choice::Nop, 8, false),
        (Choice::NopFile, 8, false),
        (Choice::Sync, 1, false),
        (Choice::Sync, 1, true),
        (Choice::Threads, 8, false),
        (Choice::Aio, 8, false),
        (Choice::Uring, 8, false),
    ] {
        // A rate keeps the record small; the rest of the file decides nothing.
        let mut span = span(&path, requests);
        span.targets[0].throughput = Throughput { value: 3000, unit: ThroughputUnit::Iops };
        span.targets[0].memory_mapped = mapped;
        if choice.has_no_target() {
            span.targets[0].path = "none".into();
        }
        if is_skipped("every_engine_issues_the_same_offsets_and_directions", choice) {
            continue;
        }
        // A busy disk gets more time.
        let mut attempts = [1, 4, 16].into_iter().map(|duration| {
            let span = TimeSpan { duration, ..span.clone() };
            let record = record(span, choice).unwrap_or_else(|why| panic!("{choice}: {why}"));
            first_ops(&record[0])
        });
        let ops = attempts.find(|ops| ops.len() == OPS);
        let ops = ops.unwrap_or_else(|| panic!("{choice}: not even {OPS} I/Os in 16 s"));
        assert!(ops.iter().any(|(kind, _)| *kind == OpKind::Write));
        match &first {
            None => first = Some(ops),
            Some(first) => assert!(*first == ops, "{choice} issues other I/Os than null"),
        }
    }
    let (_, record) = simulate_on(&span("sim", 8), RandomFaults::default(), 8 << 20);
    assert!(first == Some(first_ops(&record)), "the simulated disk gets other I/Os than null");
}

/// I/Os in flight whenever the loop waits without limit.
fn depths(record: &[Recorded]) -> Vec<usize> {
    let (mut outstanding, mut depths) = (0, Vec::new());
    for event in record {
        match event {
            Recorded::Push(_) => outstanding += 1,
            Recorded::Pop(_) => outstanding -= 1,
            Recorded::Submit { wanted, timeout } => {
                if *wanted > 0 && *timeout == Nanos::NEVER {
                    depths.push(outstanding);
                }
            }
        }
    }
    depths
}

/// The same of a run, without the waits at its end; or why it failed. A busy disk gets more time.
fn depths_of(span: &TimeSpan, choice: Choice) -> Result<Vec<usize>, String> {
    for duration in [1, 4, 16] {
        let record = record(TimeSpan { duration, ..span.clone() }, choice)?;
        let mut depths = depths(&record[0]);
        // The last waits drain the queue.
        depths.truncate(depths.len().saturating_sub(40));
        if depths.len() > 50 {
            return Ok(depths);
        }
    }
    panic!("{choice}: not even 50 waits in 16 s");
}

/// What a loop waits for, by D-32 and spec 15.2: with latencies one completion and at most a sixteenth of
/// what is in flight, without a batch and at most a quarter, with `-u` what was told.
#[test]
fn a_loop_waits_for_as_many_as_it_should() {
    let wanted = |requests, latency, ring: Option<RingBatch>| {
        let mut span = TimeSpan { measure_latency: latency, ..span("sim", requests) };
        span.io_ring = ring.map(|batch| IoRing { batch, registered_buffers: false });
        let (_, record) = simulate_on(&span, RandomFaults::default(), 8 << 20);
        let waits = record.iter().filter_map(|event| match event {
            Recorded::Submit { wanted, timeout: Nanos::NEVER } if *wanted > 0 => Some(*wanted),
            _ => None,
        });
        // The last waits drain the queue one by one.
        let mut waits: Vec<u32> = waits.collect();
        waits.truncate(waits.len() - 40);
        waits.sort_unstable();
        waits.dedup();
        waits
    };
    assert_eq!(wanted(32, true, None), [2]);
    assert_eq!(wanted(16, true, None), [1]);
    assert_eq!(wanted(32, true, Some(RingBatch::Ios(8))), [8]);
    assert_eq!(wanted(32, true, Some(RingBatch::Ios(1))), [1]);
    assert_eq!(wanted(32, true, Some(RingBatch::Percent(50))), [16]);
}

/// Completions taken by visit, at most: between two calls, with nothing pushed in between.
fn most_taken(record: &[Recorded]) -> usize {
    let (mut most, mut taken) = (0, 0);
    for event in record {
        taken = if matches!(event, Recorded::Pop(_)) { taken + 1 } else { 0 };
        most = most.max(taken);
    }
    most
}

/// `-oc`: the disk ends 32 at a time.
#[test]
fn a_visit_takes_no_more_completions_than_it_may() {
    let most = |completion_depth| {
        let span = TimeSpan { completion_depth, ..span("sim", 32) };
        let (_, record) = simulate_on(&span, RandomFaults::default(), 8 << 20);
        // The last visits drain the queue.
        most_taken(&record[..record.len() - 100])
    };
    assert_eq!(most(Some(1)), 1);
    assert_eq!(most(Some(3)), 3);
    assert_eq!(most(None), 16);
}

#[test]
fn a_run_at_depth_32_waits_only_with_32_in_flight() {
    let test = "a_run_at_depth_32_waits_only_with_32_in_flight";
    let (_folder, path) = target();
    if lacks_direct_io(test, &path) {
        return;
    }
    for (measure_latency, completion_routines, ring) in
        [(true, false, false), (false, false, false), (true, true, false), (true, false, true)]
    {
        for choice in [Choice::Uring, Choice::Aio, Choice::Threads] {
            if ring && choice != Choice::Uring || is_skipped(test, choice) {
                continue;
            }
            let mut span = TimeSpan { measure_latency, completion_routines, ..span(&path, 32) };
            // What the page cache serves is done before the queue is full.
            span.targets[0].cache = CacheMode::NoOsCache;
            span.io_ring = ring.then(Default::default);
            let depths = depths_of(&span, choice)
                .unwrap_or_else(|why| panic!("{choice} {measure_latency} {ring}: {why}"));
            let full = depths.iter().filter(|depth| **depth == 32).count();
            assert_eq!(
                full,
                depths.len(),
                "{choice} {measure_latency} {ring}: {:?}",
                &depths[..50]
            );
        }
    }
}

/// I/Os of each target of a span that ran for real.
fn ios_by_target(span: &TimeSpan, choice: Choice) -> (SpanResult, Vec<u64>) {
    let outcome = crate::runs::run(span.clone(), choice, &mut Watcher::default());
    let measured = outcome.result.time_spans[0].clone();
    assert_eq!(outcome.end, SessionEnd::Completed, "{:?}", measured.failures);
    let mut ios = vec![0; span.targets.len()];
    for target in measured.threads.iter().flat_map(|thread| &thread.targets) {
        let place = span.targets.iter().position(|each| each.path == target.path);
        ios[place.expect("a target of the span")] += target.read.io_count + target.write.io_count;
    }
    (measured, ios)
}

/// A mapped target's I/Os are over when they are pushed, and seen at every look.
#[test]
fn a_mapped_target_starves_no_other_on_its_thread() {
    let (_folder, path) = target();
    let mut span = span(&path, 4);
    span.thread_count = 1;
    let mut mapped = span.targets[0].clone();
    mapped.path = format!("{path}.mapped");
    mapped.memory_mapped = true;
    span.targets.push(mapped);
    for choice in [Choice::Uring, Choice::Threads] {
        if is_skipped("a_mapped_target_starves_no_other_on_its_thread", choice) {
            continue;
        }
        let (_, ios) = ios_by_target(&span, choice);
        assert!(ios.iter().all(|ios| *ios > 500), "{choice}: {ios:?}");
    }
}

/// Where an I/O is over when it is pushed, none waits behind the others of its thread with its clock running.
#[test]
fn completion_routines_of_plain_calls_have_one_in_flight() {
    let (_folder, path) = target();
    let span = TimeSpan { completion_routines: true, ..span(&path, 8) };
    let (measured, ios) = ios_by_target(&span, Choice::Sync);
    let law = LittlesLaw::of(&measured, &span);
    let in_flight = law.in_flight_mean.expect("latencies were measured");
    assert!(ios[0] > 1000 && in_flight < 1.1, "{ios:?}, {law:?}");
}

/// A run loop on a simulated disk: constant service time, as many at once as the depth.
struct OnDisk<'a> {
    span: &'a TimeSpan,
    plan: &'a ThreadPlan,
    clock: ManualClock,
    /// Bytes.
    size: u64,
    until: Nanos,
}

impl QueueUse for OnDisk<'_> {
    type Output = (u64, u64, Histogram, Vec<TargetCounts>);

    fn with<Q: IoQueue>(self, mut queue: Q) -> Self::Output {
        let shared = Shared {
            span: self.span,
            sizes: &[self.size],
            interlocked: &[Default::default()],
            experiment_flags: 0,
            continue_on_error: true,
            open_loop: None,
            witnessed: None,
        };
        let mut issuer =
            assemble::issuer::<Latencies>(&shared, self.plan, None).expect("room for a block");
        let (controls, live) = (Controls::default(), Live::default());
        controls.measure(Nanos::ZERO);
        let clock = StopAt { inner: self.clock, controls: &controls, at: self.until };
        let around = Surroundings {
            clock: &clock,
            controls: &controls,
            live: &live,
            dispatch: self.plan.dispatch,
        };
        run_loop(&mut queue, &mut issuer, &around).expect("a simulated disk takes everything");
        let reading = live.read();
        let bounds = issuer.looks().bounds();
        (reading.completions, reading.latency_sum, bounds, issuer.into_counts())
    }
}

/// Virtual time that ends the run.
#[derive(Clone)]
struct StopAt<'a> {
    inner: ManualClock,
    controls: &'a Controls,
    at: Nanos,
}

impl plumb_io::clock::Clock for StopAt<'_> {
    fn now(&self) -> Nanos {
        let now = self.inner.now();
        if now >= self.at {
            self.controls.stop();
        }
        now
    }
}

/// A second of `span` on a disk of `size` bytes that does 32 I/Os at once, each in 100 µs; and what its
/// queue did.
fn simulate_on<'a>(
    span: &'a TimeSpan,
    faults: RandomFaults,
    size: u64,
) -> (<OnDisk<'a> as QueueUse>::Output, Vec<Recorded>) {
    let plans = plan(span, PlanOptions::default()).threads;
    let clock = ManualClock::default();
    let disk = DiskSpec {
        service: Service::Constant(Nanos(100_000)),
        parallelism: 32,
        random_faults: faults,
        ..DiskSpec::default()
    };
    let spec = QueueSpec {
        depth: 32,
        files: vec![crate::runs::any_file()],
        regions: plans[0].regions(span),
        ..QueueSpec::default()
    };
    let until = Nanos::from_secs(1);
    let user = OnDisk { span, plan: &plans[0], clock: clock.clone(), size, until };
    let opener = RecordingOpener::new(SimOpener::new(disk, clock));
    let output = opener.open(spec, user).expect("a simulated queue");
    (output, opener.records().remove(0))
}

fn simulate(span: &TimeSpan, faults: RandomFaults) -> <OnDisk<'_> as QueueUse>::Output {
    simulate_on(span, faults, 1 << 30).0
}

/// I/Os that fail hold their places as long as others: with them the queue was full all the time.
#[test]
fn failed_ios_are_timed_and_counted_by_direction() {
    let mut span = span("sim", 32);
    span.targets[0].cache = CacheMode::NoOsCache;
    let faults = RandomFaults { error_one_in: 2, short_one_in: 0 };
    let (.., mut counts) = simulate(&span, faults);
    let TargetCounts { read, write, errors, .. } = counts.remove(0);
    let all: u64 = errors.values().sum();
    let failed = [read.failed, write.failed];
    assert_eq!(failed.iter().map(|failed| failed.count).sum::<u64>(), all);
    for FailedIos { count, bytes, latency_sum } in failed {
        assert_eq!(bytes, count * 4096);
        let mean = latency_sum as f64 / count as f64;
        assert!((99_000.0..=110_000.0).contains(&mean), "{mean} ns from submission to failure");
    }
    // 30 % of the I/Os were writes, and half of either kind failed.
    let (reads, writes) = (read.failed.count as f64, write.failed.count as f64);
    assert!((0.28..0.32).contains(&(writes / (reads + writes))), "{reads} {writes}");
    let target = TargetResult { read, write, errors, ..TargetResult::default() };
    let thread = ThreadResult { targets: vec![target], ..ThreadResult::default() };
    let elapsed = Nanos::from_secs(1);
    let result = SpanResult { threads: vec![thread], elapsed, ..SpanResult::default() };
    let law = LittlesLaw::of(&result, &span);
    let in_flight = law.in_flight_mean.expect("latencies were measured");
    assert!((31.0..32.1).contains(&in_flight), "{law:?}");
    assert_eq!(law.failed, all);
}

#[test]
fn a_simulated_disk_gets_its_depth_and_gives_its_rate() {
    let mut span = span("sim", 32);
    span.targets[0].cache = CacheMode::NoOsCache;
    let (completions, latency_sum, bounds, _) = simulate(&span, RandomFaults::default());
    // 32 at once, 100 µs each: 320,000 per second; in flight by Little's law: 32.
    assert!((310_000..=320_100).contains(&completions), "{completions} in a second");
    let in_flight = latency_sum as f64 / 1e9;
    assert!((31.0..33.0).contains(&in_flight), "{in_flight} in flight");
    // Every completion has its error bar; but for the first of two that a sleep waited for it is the
    // wake-up, and nothing is later than the disk's service time.
    assert_eq!(bounds.count(), completions);
    assert_eq!(bounds.value_at_rank(completions / 2), Some(0));
    assert!(bounds.max() <= Some(100_000), "{:?}", bounds.max());
}

#[test]
fn a_real_run_obeys_littles_law() {
    let (_folder, path) = target();
    if lacks_direct_io("a_real_run_obeys_littles_law", &path) {
        return;
    }
    let mut span = TimeSpan { warmup: 1, ..span(&path, 32) };
    span.targets[0].cache = CacheMode::NoOsCache;
    (span.targets[0].block_size, span.targets[0].alignment) = (16384, 16384);
    // Other tests share the processors with this one: the best of some runs shows what the loop can do.
    // Unoptimised code spends more of each cycle in the tool than the 5 % of a consistent result, and with 4 KiB on a quick
    // disk more than 8; a loop that does not fill its queue, or makes half of a burst wait for the other half, loses more.
    let mut residuals = Vec::new();
    while residuals.len() < 5 && !residuals.iter().any(|residual| *residual > -0.08) {
        let outcome = crate::runs::run(span.clone(), Choice::Auto, &mut Watcher::default());
        let measured = &outcome.result.time_spans[0];
        assert_eq!(outcome.end, SessionEnd::Completed, "{:?}", measured.failures);
        let law = LittlesLaw::of(measured, &span);
        assert_ne!(law.verdict, Verdict::AccountingError, "{law:?}");
        residuals.push(law.residual.expect("latencies were measured"));
    }
    assert!(residuals.iter().any(|residual| *residual > -0.08), "{residuals:?}");
}
