//! Profiles run for real, on every engine that this machine has.

use plumb_io::clock::StampClock;
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::system_tree::SystemTree;
use plumb_io::{IoQueue, Opener, QueueSpec, QueueUse, TargetFile};
use plumb_load::profile::check::Purpose;
use plumb_load::profile::model::{RawProfile, Target, TimeSpan};
use plumb_load::result::model::Tool;
use plumb_load::session::{
    self, Overwrite, SessionEnd, SessionOptions, SessionOutcome, VerifyOptions, wake_up,
};

use crate::watcher::Watcher;

pub(crate) fn run(span: TimeSpan, choice: Choice, watcher: &mut Watcher) -> SessionOutcome {
    run_by(StampClock::new().0, span, choice, watcher)
}

/// The same with stamps of that clock.
fn run_by(
    clock: StampClock,
    span: TimeSpan,
    choice: Choice,
    watcher: &mut Watcher,
) -> SessionOutcome {
    let raw = RawProfile { time_spans: vec![span], ..RawProfile::default() };
    let (profile, _) = raw.check(Purpose::Run).expect("a valid profile");
    let options = options(choice);
    let ladder = Ladder::new(choice, LadderOptions::default());
    session::run(&profile, &options, &ladder, &clock, &SystemTree::default(), watcher)
}

pub(crate) fn options(choice: Choice) -> SessionOptions {
    SessionOptions {
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
        opens_no_target: choice.has_no_target(),
    }
}

/// Prints that `test` is skipped on that engine where it cannot be had.
pub(crate) fn is_skipped(test: &str, choice: Choice) -> bool {
    struct Nothing;
    impl QueueUse for Nothing {
        type Output = ();
        fn with<Q: IoQueue>(self, _queue: Q) {}
    }
    let spec = QueueSpec { depth: 1, ..QueueSpec::default() };
    let opened = Ladder::new(choice, LadderOptions::default()).open(spec, Nothing);
    if let Err(why) = &opened {
        println!("skipped {test} on {choice}: {why}");
    }
    opened.is_err()
}

/// An open file for queues that look at none.
pub(crate) fn any_file() -> TargetFile {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null");
    let descriptor = null.expect("every system has it").into();
    TargetFile { descriptor, path: "sim".into(), size: 1 << 30, priority: None, mapping: None }
}

#[test]
fn what_truth_lacks_is_said_before_a_file_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new.dat").display().to_string();
    let target = Target { path, file_size: Some(1 << 20), ..Target::default() };
    let span = TimeSpan {
        duration: 1,
        warmup: 0,
        measure_latency: true,
        targets: vec![target],
        ..TimeSpan::default()
    };
    let raw = RawProfile { time_spans: vec![span], ..RawProfile::default() };
    let (profile, _) = raw.check(Purpose::Run).expect("a valid profile");
    // The kernel's events have no stamps that compare with this clock's.
    let clock = StampClock::monotonic();
    let options = SessionOptions { truth: Some(clock), ..options(Choice::Sync) };
    let ladder = Ladder::new(Choice::Sync, LadderOptions::default());
    let tree = SystemTree::default();
    let outcome = session::run(&profile, &options, &ladder, &clock, &tree, &mut Watcher::default());
    assert!(matches!(outcome.end, SessionEnd::Failed), "{:?}", outcome.end);
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("it is there").count(),
        0,
        "a file was made"
    );
}

#[test]
fn stamps_of_the_systems_clock_are_told() {
    let target = Target { path: "none".into(), request_count: 32, ..Target::default() };
    let (counter, why) = StampClock::new();
    for (measure_latency, clock, told) in [
        (true, StampClock::monotonic(), true),
        (false, StampClock::monotonic(), false),
        (true, counter, why.is_some()),
    ] {
        let targets = vec![target.clone()];
        let span =
            TimeSpan { duration: 1, warmup: 0, measure_latency, targets, ..TimeSpan::default() };
        let outcome = run_by(clock, span, Choice::Null, &mut Watcher::default());
        let measured = &outcome.result.time_spans[0];
        let item = |key| measured.plausibility.iter().find(|item| item.key == key);
        let reading = item("fallback_clock_reading_ns");
        assert_eq!(reading.is_some(), told, "{clock} {measure_latency}");
        if let Some(nanos) = reading.and_then(|item| item.value) {
            assert!((1.0..1e6).contains(&nanos), "{nanos} ns a reading");
        }
        // Only the counter can drift off the kernel's raw clock.
        assert_eq!(item("clock_drift").is_some(), clock == counter && why.is_none(), "{clock}");
        let all = measured.threads.iter().flat_map(|thread| &thread.targets);
        assert!(all.map(|target| target.read.io_count).sum::<u64>() > 1000, "{clock}");
    }
}

/// Plain calls are waited for one by one, verified or not, and so is a single request: of the page cache's they are over without
/// a sleep, and none was seen later than it took.
#[test]
fn what_is_waited_for_by_itself_is_late_by_no_more_than_it_took() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    for (choice, request_count, verified) in [
        (Choice::Sync, 8, false),
        (Choice::Sync, 8, true),
        (Choice::Sync, 1, false),
        (Choice::Null, 1, false),
    ] {
        let target = Target {
            path: folder.path().join("f.dat").display().to_string(),
            file_size: Some(1 << 20),
            write_ratio: 50,
            request_count,
            ..Target::default()
        };
        let span = TimeSpan {
            duration: 1,
            warmup: 0,
            measure_latency: true,
            targets: vec![target],
            ..TimeSpan::default()
        };
        let raw = RawProfile { time_spans: vec![span], ..RawProfile::default() };
        let (profile, _) = raw.check(Purpose::Run).expect("a valid profile");
        let verify = verified.then(VerifyOptions::default);
        let wake_ups = wake_up::measure(wake_up::BEFORE).ok();
        let options = SessionOptions { verify, wake_ups, ..options(choice) };
        let ladder = Ladder::new(choice, LadderOptions::default());
        let (clock, _) = StampClock::new();
        let tree = SystemTree::default();
        let mut watcher = Watcher::default();
        let outcome = session::run(&profile, &options, &ladder, &clock, &tree, &mut watcher);
        let measured = &outcome.result.time_spans[0];
        assert_eq!(outcome.end, SessionEnd::Completed, "{:?}", measured.failures);
        let error = measured.stamp_error.as_ref().expect("latencies");
        let (share, woken) = (error.share_of_median(measured), error.woken_share());
        let told = format!("{choice:?} {request_count} {verified}: {share:?} {woken:?}");
        assert!(share.is_some_and(|share| share <= 1.05), "{told}");
        assert!(woken.is_some_and(|woken| woken < 0.5), "{told}");
        assert!(error.in_call.count() > 10, "{told}");
    }
}

#[test]
fn a_null_run_counts_and_times() {
    let target =
        Target { path: "none".into(), random_ratio: 100, request_count: 32, ..Target::default() };
    let span = TimeSpan {
        duration: 1,
        warmup: 1,
        measure_latency: true,
        calculate_iops_std_dev: true,
        io_bucket_duration: 100,
        targets: vec![Target { write_ratio: 30, ..target.clone() }, target],
        ..TimeSpan::default()
    };
    let mut watcher = Watcher::default();
    let outcome = run(span, Choice::Null, &mut watcher);
    assert_eq!(outcome.end, SessionEnd::Completed);
    let span = &outcome.result.time_spans[0];
    assert!((0.99..5.0).contains(&span.elapsed.as_secs_f64()), "{:?}", span.elapsed);
    assert_eq!(span.threads.len(), 2);
    let mixed = &span.threads[0].targets[0];
    let share = mixed.write.io_count as f64 / (mixed.read.io_count + mixed.write.io_count) as f64;
    assert!((0.29..0.31).contains(&share), "{share} of the I/Os were writes");
    let counted: u64 = span
        .interval_latencies
        .iter()
        .map(|interval| interval.expect("readable"))
        .map(|interval| interval.read.count() + interval.write.count())
        .sum();
    let total: u64 = span
        .threads
        .iter()
        .flat_map(|thread| &thread.targets)
        .map(|target| target.read.io_count + target.write.io_count)
        .sum();
    assert_eq!(counted, total, "every I/O is in one interval histogram");
    assert!(watcher.snapshots.len() > 5);
}
