//! The open loop (`--rate`): on a simulated disk, where every figure is known, and on a real file.

use plumb_io::clock::{Clock, ManualClock};
use plumb_io::engine::Choice;
use plumb_io::sim::{DiskSpec, Service, SimOpener, Stalls};
use plumb_io::stack::{Recorded, RecordingOpener};
use plumb_io::system_tree::SystemTree;
use plumb_io::{IoQueue, OpKind, Opener, QueueSpec, QueueUse};
use plumb_load::arrivals::{Arrival, OpenLoop};
use plumb_load::assemble::{self, Shared};
use plumb_load::plan::{PlanOptions, ThreadPlan, plan};
use plumb_load::profile::check::Purpose;
use plumb_load::profile::model::{RawProfile, Target, TimeSpan};
use plumb_load::result::model::TargetResult;
use plumb_load::result::open_loop::{OpenFigures, OpenVerdict};
use plumb_load::result::{json, text, xml};
use plumb_load::run_loop::{
    Controls, Latencies, Level, Live, Open, Surroundings, TargetCounts, run_loop,
};
use plumb_load::session::{self, SessionEnd, SessionOptions};
use plumb_load::tally::LatencySet;
use plumb_units::Nanos;
use serde_json::Value;

use crate::golden::written;
use crate::runs::{any_file, options};
use crate::watcher::Watcher;

const MILLI: f64 = 1e-3;

fn target(path: &str, request_count: u32) -> Target {
    Target {
        path: path.into(),
        block_size: 4096,
        alignment: 4096,
        random_ratio: 70,
        write_ratio: 30,
        request_count,
        ..Target::default()
    }
}

fn span(duration: u32, targets: Vec<Target>) -> TimeSpan {
    TimeSpan { duration, rand_seed: 7, measure_latency: true, targets, ..TimeSpan::default() }
}

/// A disk that serves one I/O at a time in 0.1 ms, and stands still from 6 s to 7 s.
fn stalling() -> DiskSpec {
    let stalls = Stalls { every: Nanos::from_secs(6), length: Nanos::from_secs(1) };
    DiskSpec { stalls: Some(stalls), ..quick() }
}

fn quick() -> DiskSpec {
    DiskSpec { service: Service::Constant(Nanos(100_000)), parallelism: 1, ..DiskSpec::default() }
}

struct OnDisk<'a> {
    span: &'a TimeSpan,
    plan: &'a ThreadPlan,
    open: Option<OpenLoop>,
    clock: ManualClock,
    ends: Ends,
}

/// When a run ends, and how often its loop sees the time move.
#[derive(Clone, Copy)]
struct Ends {
    at: Nanos,
    tick: Nanos,
}

/// Virtual time that ends the run.
#[derive(Clone)]
struct StopAt<'a> {
    inner: ManualClock,
    controls: &'a Controls,
    ends: Ends,
}

impl Clock for StopAt<'_> {
    fn now(&self) -> Nanos {
        let (now, Ends { at, tick }) = (self.inner.now(), self.ends);
        if now >= at {
            self.controls.end_measurement(at);
            self.controls.stop();
        }
        Nanos(now.0 / tick.0 * tick.0)
    }
}

impl OnDisk<'_> {
    fn run<L: Level, Q: IoQueue>(self, mut queue: Q) -> Vec<TargetCounts> {
        let interlocked = vec![Default::default(); self.span.targets.len()];
        let shared = Shared {
            span: self.span,
            sizes: &vec![1 << 30; self.span.targets.len()],
            interlocked: &interlocked,
            experiment_flags: 0,
            continue_on_error: false,
            open_loop: self.open,
            witnessed: None,
        };
        let mut issuer = assemble::issuer::<L>(&shared, self.plan, None).expect("room for a block");
        let (controls, live) = (Controls::default(), Live::default());
        controls.start(Nanos::ZERO);
        controls.measure(Nanos::ZERO);
        let clock = StopAt { inner: self.clock, controls: &controls, ends: self.ends };
        let dispatch = self.plan.dispatch;
        let around = Surroundings { clock: &clock, controls: &controls, live: &live, dispatch };
        run_loop(&mut queue, &mut issuer, &around).expect("a simulated disk takes everything");
        issuer.into_counts()
    }
}

impl QueueUse for OnDisk<'_> {
    type Output = Vec<TargetCounts>;

    fn with<Q: IoQueue>(self, queue: Q) -> Vec<TargetCounts> {
        match self.open {
            Some(_) => self.run::<Open<Latencies>, Q>(queue),
            None => self.run::<Latencies, Q>(queue),
        }
    }
}

/// Runs the first thread of `span`; its targets, and what it pushed, as (file, kind, offset).
fn simulate(
    span: &TimeSpan,
    open: Option<OpenLoop>,
    disk: DiskSpec,
) -> (Vec<TargetResult>, Vec<(u32, OpKind, u64)>) {
    let ends = Ends { at: Nanos::from_secs(span.duration.into()), tick: Nanos(1) };
    simulate_until(ends, span, open, disk)
}

fn simulate_until(
    ends: Ends,
    span: &TimeSpan,
    open: Option<OpenLoop>,
    disk: DiskSpec,
) -> (Vec<TargetResult>, Vec<(u32, OpKind, u64)>) {
    let plans = plan(span, PlanOptions::default()).threads;
    let plan = &plans[0];
    let clock = ManualClock::default();
    let spec = QueueSpec {
        depth: plan.requests,
        files: plan.handles.iter().map(|_| any_file()).collect(),
        regions: plan.regions(span),
        mode: plan.mode(),
        ..QueueSpec::default()
    };
    let opener = RecordingOpener::new(SimOpener::new(disk, clock.clone()));
    let counts =
        opener.open(spec, OnDisk { span, plan, open, clock, ends }).expect("a simulated queue");
    let result =
        |(counts, planned): (TargetCounts, &plumb_load::plan::PlannedTarget)| TargetResult {
            read: counts.read,
            write: counts.write,
            open: counts.open,
            index: u32::try_from(planned.index).expect("small"),
            ..TargetResult::default()
        };
    let records = opener.records();
    let pushed = records[0].iter().filter_map(|event| match event {
        Recorded::Push(op) => Some((op.file.0, op.kind, op.offset)),
        _ => None,
    });
    let pushed = pushed.collect();
    (counts.into_iter().zip(&plan.targets).map(result).collect(), pushed)
}

fn uniform(rate: u32) -> OpenLoop {
    OpenLoop { rate, arrival: Arrival::Uniform }
}

fn seconds(set: &LatencySet, p: f64) -> f64 {
    set.percentile_ms(p).expect("I/Os were measured") * MILLI
}

/// Within 2 %.
fn is_about(value: f64, want: f64) -> bool {
    (value / want - 1.0).abs() <= 0.02
}

#[test]
fn a_stall_of_a_second_is_in_the_response_times_and_not_in_a_closed_loops() {
    let (closed, _) = simulate(&span(10, vec![target("sim", 1)]), None, stalling());
    let latencies = closed[0].total().latency.expect("latencies");
    assert!((89_000..=90_001).contains(&latencies.count()), "{}", latencies.count());
    for p in [0.5, 0.99, 0.999, 0.9999] {
        assert!(is_about(seconds(&latencies, p), 0.1 * MILLI), "closed loop, {p}");
    }
    for requests in [1024, 1] {
        let span = span(10, vec![target("sim", requests)]);
        let (targets, _) = simulate(&span, Some(uniform(1000)), stalling());
        let open = OpenFigures::of(&targets).expect("an open loop");
        let (p95, p99) = (seconds(&open.response, 0.95), seconds(&open.response, 0.99));
        assert!(is_about(p99, 0.91), "{requests}: p99 {p99}");
        assert!(is_about(p95, 0.55), "{requests}: p95 {p95}");
        assert!(is_about(seconds(&open.response, 0.5), 0.1 * MILLI));
        assert_eq!(open.tally.offered, 10_000);
        assert!((9_999..=10_000).contains(&open.completed), "{}", open.completed);
        assert_eq!(open.verdict, OpenVerdict::Sustained, "the disk caught up");
        let (service, lag) = (seconds(&open.service(), 0.99), seconds(&open.lag(), 0.99));
        if requests == 1 {
            // One at a time: the wait is before the submission, and all but one waited for the request.
            assert!(is_about(service, 0.1 * MILLI) && is_about(lag, 0.91), "{service} {lag}");
            assert!((1100..=1112).contains(&open.tally.waited), "{}", open.tally.waited);
        } else {
            // Requests enough: everything was submitted in time and waited in the disk.
            assert!(is_about(service, 0.91) && lag == 0.0, "{service} {lag}");
            assert_eq!(open.tally.waited, 0);
        }
    }
}

#[test]
fn arrivals_start_in_time_whatever_their_distribution() {
    let span = span(4, vec![target("sim", 64)]);
    for (arrival, most) in [
        (Arrival::Uniform, 0.1),
        (Arrival::Poisson, 3.0),
        // The last of 20 that come at once waits for 19 others.
        (Arrival::Burst { ios: 20, millis: 0 }, 2.0),
    ] {
        let (targets, _) = simulate(&span, Some(OpenLoop { rate: 500, arrival }), quick());
        let open = OpenFigures::of(&targets).expect("an open loop");
        assert_eq!(
            seconds(&open.lag(), 1.0),
            0.0,
            "{arrival}: virtual time stands between arrivals"
        );
        let longest = seconds(&open.response, 1.0);
        assert!(longest <= most * 1.001 * MILLI, "{arrival}: {longest}");
        assert_eq!(open.verdict, OpenVerdict::Sustained, "{arrival}");
        let within = if arrival == Arrival::Poisson { 180 } else { 0 };
        assert!(open.tally.offered.abs_diff(2000) <= within, "{arrival}: {}", open.tally.offered);
    }
}

#[test]
fn a_disk_that_is_too_slow_is_saturated() {
    for (rate, want) in [(9_000, OpenVerdict::Sustained), (12_000, OpenVerdict::Saturated)] {
        for requests in [1, 32] {
            let span = span(5, vec![target("sim", requests)]);
            let (targets, _) = simulate(&span, Some(uniform(rate)), quick());
            let open = OpenFigures::of(&targets).expect("an open loop");
            assert_eq!(open.verdict, want, "{rate} {requests}");
            assert_eq!(open.tally.offered, u64::from(rate) * 5, "those left behind included");
            let waited = open.tally.waited > open.tally.offered / 2;
            assert_eq!(waited, want == OpenVerdict::Saturated, "{}", open.tally.waited);
        }
    }
}

/// Half a percent too fast is more than the disk takes, and less than what may be missing at the end.
#[test]
fn a_rate_that_is_too_high_is_told_in_a_run_that_the_user_ends_as_well() {
    for (rate, want) in [(9_900, OpenVerdict::Sustained), (10_050, OpenVerdict::Saturated)] {
        for seconds in [4, 8] {
            let ends = Ends { at: Nanos::from_secs(seconds), tick: Nanos(1) };
            let span = span(8, vec![target("sim", 32)]);
            let (targets, _) = simulate_until(ends, &span, Some(uniform(rate)), quick());
            let open = OpenFigures::of(&targets).expect("an open loop");
            assert_eq!(open.verdict, want, "{rate} a second for {seconds} s of 8");
            let offered = u64::from(rate) * seconds;
            assert!(open.tally.served * 100 > offered * 99, "{} of {offered}", open.tally.served);
        }
    }
}

#[test]
fn arrivals_that_no_look_saw_are_offered_and_waited_for_nothing() {
    // The last look before the end at 1.08 s is at 1.05 s: 15 arrivals are left, and requests are idle.
    let ends = Ends { at: Nanos(1_080_000_000), tick: Nanos(50_000_000) };
    let span = span(2, vec![target("sim", 64)]);
    let (targets, pushed) = simulate_until(ends, &span, Some(uniform(500)), quick());
    let open = OpenFigures::of(&targets).expect("an open loop");
    let left = 540 - u64::try_from(pushed.len()).expect("few");
    assert!((10..=20).contains(&left), "{left} left behind");
    assert_eq!((open.tally.offered, open.tally.waited), (540, 0));
}

#[test]
fn offsets_and_directions_are_those_of_the_closed_loop() {
    let one = span(1, vec![target("sim", 4)]);
    let sequential = span(1, vec![Target { random_ratio: 0, write_ratio: 0, ..target("sim", 4) }]);
    let weighted = TimeSpan {
        thread_count: 1,
        request_count: 4,
        ..span(1, vec![target("a", 4), Target { weight: 3, ..target("b", 4) }])
    };
    for span in [one, sequential, weighted] {
        let (_, closed) = simulate(&span, None, quick());
        for arrival in [Arrival::Uniform, Arrival::Poisson, Arrival::Burst { ios: 10, millis: 1 }] {
            let open = Some(OpenLoop { rate: 3000, arrival });
            let (_, pushed) = simulate(&span, open, quick());
            assert!(pushed.len() > 2500, "{arrival}: {}", pushed.len());
            assert!(pushed[..] == closed[..pushed.len()], "{arrival}");
            let (_, again) = simulate(&span, open, quick());
            assert!(pushed == again, "{arrival}: the seed decides");
        }
    }
}

#[test]
fn targets_of_one_thread_share_by_weight() {
    let targets = || vec![target("a", 32), Target { weight: 3, ..target("b", 32) }];
    let bound = TimeSpan { thread_count: 1, ..span(4, targets()) };
    let weighted = TimeSpan { thread_count: 1, request_count: 64, ..span(4, targets()) };
    for (span, within) in [(bound, 1), (weighted, 250)] {
        let (targets, _) = simulate(&span, Some(uniform(2000)), quick());
        for (target, want) in targets.iter().zip([2000_u64, 6000]) {
            let open = OpenFigures::of([target]).expect("an open loop");
            assert_eq!(open.tally.rate * 4.0, want as f64);
            assert!(open.tally.offered.abs_diff(want) <= within, "{}", open.tally.offered);
            assert_eq!(open.verdict, OpenVerdict::Sustained);
        }
        assert_eq!(
            targets.iter().map(|t| t.open.as_ref().map_or(0, |o| o.offered)).sum::<u64>(),
            8000
        );
    }
}

#[test]
fn a_real_run_is_reported_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let of_file = |name, weight, threads_per_file| Target {
        file_size: Some(4 << 20),
        weight,
        threads_per_file,
        ..target(&path(name), 64)
    };
    let span = TimeSpan {
        warmup: 1,
        calculate_iops_std_dev: true,
        io_bucket_duration: 100,
        ..span(2, vec![of_file("a", 1, 1), of_file("b", 3, 2)])
    };
    let raw = RawProfile { time_spans: vec![span], ..RawProfile::default() };
    let (profile, _) = raw.check(Purpose::Run).expect("a valid profile");
    let ladder =
        plumb_io::engine::Ladder::new(Choice::Auto, plumb_io::engine::LadderOptions::default());
    let (clock, _) = plumb_io::clock::StampClock::new();
    let open_loop = Some(OpenLoop { rate: 800, arrival: Arrival::Poisson });
    let options = SessionOptions { open_loop, ..options(Choice::Auto) };
    let mut watcher = Watcher::default();
    let tree = SystemTree::default();
    let outcome = session::run(&profile, &options, &ladder, &clock, &tree, &mut watcher);
    assert_eq!(outcome.end, SessionEnd::Completed, "{:?}", outcome.result.time_spans[0].failures);
    let result = &outcome.result.time_spans[0];
    let all = || result.threads.iter().flat_map(|thread| &thread.targets);
    let total = OpenFigures::of(all().collect::<Vec<_>>()).expect("an open loop");
    // Five standard deviations of a Poisson count.
    let is_poisson = |count: u64, rate: f64| {
        let mean = rate * result.elapsed.as_secs_f64();
        (count as f64 - mean).abs() < 5.0 * mean.sqrt()
    };
    assert!(is_poisson(total.tally.offered, 800.0), "{}", total.tally.offered);
    // How many of them a busy machine completes in time is not ours to say.
    assert!(total.completed * 4 > total.tally.offered, "{}", total.completed);
    let of_b = OpenFigures::of(all().filter(|target| target.index == 1).collect::<Vec<_>>());
    let of_b = of_b.expect("an open loop").tally;
    assert!((of_b.rate - 600.0).abs() < 1e-9);
    assert!(is_poisson(of_b.offered, 600.0), "{}", of_b.offered);
    assert_eq!(total.tally.lag.count(), total.completed);
    assert_eq!(total.tally.service().count(), total.completed);
    assert!(total.response.mean_us() >= total.service().mean_us());
    assert!(result.plausibility.iter().any(|item| item.key == "open_loop"));
    let document = written(json::write, &outcome.result);
    let value: Value = serde_json::from_str(&document).expect("JSON");
    crate::documents::assert_strictly_valid(&value);
    let json = &value["time_spans"][0]["open_loop"];
    assert_eq!((json["rate_per_s"].as_f64(), &json["arrival"]), (Some(800.0), &"poisson".into()));
    assert_eq!(json["response_ns"]["p99"], value["total"]["latency_ns"]["p99"]);
    let rate = |place: &Value| place["open_loop"]["rate_per_s"].as_f64();
    assert_eq!(rate(&value["time_spans"][0]["targets"][1]), Some(600.0));
    assert_eq!(rate(&value["time_spans"][0]["threads"][2]), Some(300.0));
    let text = written(text::write, &outcome.result);
    assert!(
        text.contains("\nOpen loop\n---------\n\trate: 800 I/Os per second, poisson arrivals: ")
    );
    let xml = written(xml::write, &outcome.result);
    let xml = roxmltree::Document::parse(&xml).expect("well-formed");
    let open = xml.descendants().find(|node| node.has_tag_name("OpenLoop")).expect("the element");
    assert_eq!(open.attribute("Rate"), Some("800"));
    assert_eq!(open.children().filter(|node| node.has_tag_name("Thread")).count(), 3);
}
