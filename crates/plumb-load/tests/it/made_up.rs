//! Results that no machine produced: every number in them is known.

use jiff::Timestamp;
use plumb_io::topology::{Cache, CacheKind, Processor, Topology};
use plumb_io::verify::{Checked, Content, Identity, Kind, Mismatch, Pass, Unreadable, WriteStamp};
use plumb_io::{Errno, QueueFacts};
use plumb_load::pattern::bounds::Bounds;
use plumb_load::pattern::distribution::effective;
use plumb_load::profile::model::{
    AffinityTraversal, Distribution, DistributionKind, DistributionRange, EfficiencyOrder, IoRing,
    ProcessorOrder, RawProfile, Target, TimeSpan,
};
use plumb_load::result::model::{
    CpuUsage, DirectionResult, Failure, HostFacts, PhaseTimes, Plausibility, PlausibilityItem,
    RunResult, SpanResult, TargetResult, ThreadResult, Tool, TraceCounts, WaitStatistics,
};
use plumb_load::result::verify::{VerifiedTarget, VerifyResult};
use plumb_load::run_loop::intervals::IntervalPair;
use plumb_load::tally::interval_log::IntervalLogWriter;
use plumb_load::tally::span_series::{EndedInterval, SpanSeries};
use plumb_load::tally::{Histogram, IntervalCell, LatencySet};
use plumb_units::Nanos;

/// A path that needs every kind of escape.
pub(crate) const NASTY_PATH: &str = "/mnt/<&\"'>\t\u{1}]]>";

/// A seeded sequence: numbers that look like measurements and never change.
pub(crate) struct Sequence(pub(crate) u64);

impl Sequence {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // Steele, Lea, Flood: SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Four processors on two cores of one socket.
fn host() -> HostFacts {
    let processor = |number: u8| Processor {
        group: 0,
        number,
        core: u32::from(number / 2),
        node: 0,
        socket: 0,
        class: 0,
        allowed: number != 3,
    };
    let cache = |level, kind, size, cpus: &[u32]| Cache {
        level,
        kind,
        size,
        line: 64,
        ways: 8,
        cpus: cpus.to_vec(),
    };
    HostFacts {
        computer_name: "host1".to_owned(),
        processor_name: "Made Up CPU @ 2.00GHz".to_owned(),
        power_scheme: "performance".to_owned(),
        page_size: 4096,
        kernel: "6.12.0".to_owned(),
        memory_bytes: 17_179_869_184,
        topology: Topology {
            processors: (0..4).map(processor).collect(),
            caches: vec![
                cache(1, CacheKind::Data, 49_152, &[0, 1]),
                cache(1, CacheKind::Data, 49_152, &[2, 3]),
                cache(1, CacheKind::Instruction, 32_768, &[0, 1]),
                cache(1, CacheKind::Instruction, 32_768, &[2, 3]),
                Cache { ways: 0, ..cache(3, CacheKind::Unified, 33_554_432, &[0, 1, 2, 3]) },
            ],
        },
    }
}

fn cpus() -> Vec<CpuUsage> {
    let usage = |cpu: u8, user: f64, kernel: f64| CpuUsage {
        socket: 0,
        node: 0,
        group: 0,
        core: u32::from(cpu / 2),
        class: 0,
        cpu,
        user,
        kernel,
        idle: 100.0 - user - kernel,
    };
    vec![usage(0, 11.71, 13.44), usage(1, 11.84, 6.98), usage(2, 16.39, 24.88), usage(3, 0.0, 0.0)]
}

fn result(command_line: &str, time_spans: Vec<(TimeSpan, SpanResult)>) -> RunResult {
    let (asked, time_spans) = time_spans.into_iter().unzip();
    RunResult {
        command_line: command_line.to_owned(),
        profile: RawProfile { time_spans: asked, ..RawProfile::default() },
        host: host(),
        started_at: "2025-03-04T09:08:07Z".parse::<Timestamp>().expect("a time"),
        time_spans,
        tool: Tool {
            name: "plumb".to_owned(),
            version: "0.1.0".to_owned(),
            version_date: "2025/3/1".to_owned(),
            epoch: Some(1),
        },
        interrupted: false,
        spaces: Vec::new(),
    }
}

fn phases(warmup_s: u64, measured: Nanos) -> PhaseTimes {
    let measurement = Nanos::from_secs(warmup_s) + Nanos(1_234_567);
    let cooldown = measurement + measured;
    PhaseTimes {
        warmup: Some(Nanos(1_000_000)),
        measurement: Some(measurement),
        cooldown: Some(cooldown),
        end: Some(cooldown + Nanos(2_000_000)),
    }
}

fn uring() -> QueueFacts {
    QueueFacts {
        in_push: false,
        engine: "uring".to_owned(),
        flags: vec!["single_issuer".to_owned(), "coop_taskrun".to_owned()],
        dropped: vec!["sqpoll: not asked for".to_owned()],
        no_target: false,
        buffer_separation: 16 << 20,
    }
}

/// `count` I/Os of `block` bytes spread over `elapsed`, some 300 µs each, a few much more.
fn direction(
    sequence: &mut Sequence,
    (count, block): (u64, u64),
    elapsed: Nanos,
    mut seen: impl FnMut(Nanos, u64),
) -> DirectionResult {
    let mut histogram = Histogram::new();
    for number in 0..count {
        let at = Nanos(elapsed.0 / count * number + sequence.below(1000));
        let slow = if sequence.below(100) == 0 { 4_000_000 } else { 0 };
        let latency = 200_000 + sequence.below(200_000) + slow;
        histogram.record(latency);
        seen(at, latency);
    }
    DirectionResult {
        bytes: count * block,
        io_count: count,
        latency: Some(LatencySet::Binned(histogram)),
        ..DirectionResult::default()
    }
}

fn mixed_targets() -> TimeSpan {
    let range = |io, size| DistributionRange { io, size };
    let ranges = vec![range(90, 10), range(0, 10), range(10, 80)];
    let first = Target {
        path: NASTY_PATH.to_owned(),
        block_size: 4096,
        alignment: 4096,
        random_ratio: 100,
        write_ratio: 30,
        request_count: 2,
        distribution: Some(Distribution { kind: DistributionKind::Percent, ranges }),
        ..Target::default()
    };
    let second = Target { path: "b.dat".to_owned(), request_count: 2, ..Target::default() };
    TimeSpan {
        duration: 2,
        warmup: 1,
        measure_latency: true,
        calculate_iops_std_dev: true,
        io_bucket_duration: 500,
        targets: vec![first, second],
        ..TimeSpan::default()
    }
}

/// Two targets, latencies, intervals, wait statistics.
pub(crate) fn two_targets() -> RunResult {
    let asked = mixed_targets();
    let elapsed = Nanos(1_999_900_000);
    let mut sequence = Sequence(1);
    let mut pairs: Vec<IntervalPair> = Vec::new();
    let nothing = |place| {
        move |number| EndedInterval {
            number,
            place,
            read: IntervalCell::EMPTY,
            write: IntervalCell::EMPTY,
        }
    };
    let mut cells: [Vec<EndedInterval>; 2] =
        [(0..4).map(nothing(0)).collect(), (0..4).map(nothing(0)).collect()];
    let mut note = |thread: usize, (at, latency): (Nanos, u64), block, is_write: bool| {
        let number = at.0 / 500_000_000;
        let ended = &mut cells[thread][plumb_units::convert::to_usize(number)];
        let cell = if is_write { &mut ended.write } else { &mut ended.read };
        cell.record(block, Nanos(latency));
        if pairs.iter().all(|pair| pair.number != number) {
            pairs.push(IntervalPair { number, ..IntervalPair::default() });
        }
        let pair = pairs.iter_mut().find(|pair| pair.number == number).expect("just added");
        if is_write { pair.write.record(latency) } else { pair.read.record(latency) }
    };
    let size = 1 << 30;
    let bounds = Bounds::new(&asked.targets[0], size).expect("room");
    let distribution = asked.targets[0].distribution.as_ref().expect("one");
    let mut first = TargetResult {
        path: NASTY_PATH.to_owned(),
        file_size: size,
        index: 0,
        read: direction(&mut sequence, (9_000, 4096), elapsed, |at, ns| {
            note(0, (at, ns), 4096, false);
        }),
        write: direction(&mut sequence, (3_900, 4096), elapsed, |at, ns| {
            note(0, (at, ns), 4096, true);
        }),
        effective: Some(effective(distribution, &bounds)),
        ..TargetResult::default()
    };
    let mut second = TargetResult {
        path: "b.dat".to_owned(),
        file_size: 123_456_789,
        index: 1,
        read: direction(&mut sequence, (13_000, 65536), elapsed, |at, ns| {
            note(1, (at, ns), 65536, false);
        }),
        write: direction(&mut sequence, (0, 65536), elapsed, |_, _| ()),
        ..TargetResult::default()
    };
    let mut series = SpanSeries::new(500, 2, &[vec![0], vec![1]]).expect("a scratch file");
    for (thread, cells) in cells.iter().enumerate() {
        cells.iter().for_each(|ended| series.add(thread, ended));
    }
    let (series, mut of_threads) = series.finish();
    (second.series, first.series) = (of_threads[1].pop(), of_threads[0].pop());
    let waits = |wait| WaitStatistics {
        wait,
        lookaside: 540,
        wait_completion: [0, wait, 0, 0, 0, 0, 0, 0],
        lookaside_completion: [300, 200, 40, 0, 0, 0, 0, 0],
        ..WaitStatistics::default()
    };
    let thread = |id, wait, target| ThreadResult {
        id,
        waits: waits(wait),
        targets: vec![target],
        ..ThreadResult::default()
    };
    let mut log = IntervalLogWriter::new().expect("a scratch file");
    pairs.sort_by_key(|pair| pair.number);
    pairs.iter().for_each(|pair| log.add(pair).expect("written"));
    let span = SpanResult {
        elapsed,
        phases: phases(1, elapsed),
        cpus: cpus(),
        threads: vec![thread(0, 3100, first), thread(1, 311, second)],
        effective_affinity: Some(vec![(0, 0), (0, 1)]),
        effective_buffer_separation: 16 << 20,
        queues: vec![uring()],
        batch: 8,
        burst: 20,
        submission: "latency".to_owned(),
        process_cpu: Nanos(1_234_000_000),
        io_wq_cpu: Nanos(12_000_000),
        series,
        interval_latencies: log.finish().expect("flushed"),
        plausibility: vec![
            PlausibilityItem {
                key: "littles_law",
                target: None,
                value: Some(-0.002_5),
                verdict: Plausibility::Ok,
                sentence: "IOPS times mean latency is 0.25 % below the outstanding I/Os."
                    .to_owned(),
            },
            PlausibilityItem {
                key: "device_bytes_ratio",
                target: Some("b.dat".to_owned()),
                value: Some(0.125),
                verdict: Plausibility::Suspicious,
                sentence: "The device moved an eighth of the bytes read: \
                           a cache above it answered."
                    .to_owned(),
            },
            PlausibilityItem {
                key: "steal",
                target: None,
                value: None,
                verdict: Plausibility::Unknown,
                sentence: "No steal time is visible from here.".to_owned(),
            },
        ],
        ..SpanResult::default()
    };
    let mut result = result("plumb run -Xmixed.xml -vs", vec![(asked, span)]);
    result.profile.verbose_stats = true;
    result
}

/// A weighted pool, then a ring with failed I/Os on one of two targets; events were counted.
pub(crate) fn two_spans() -> RunResult {
    let plain = |bytes, io_count| DirectionResult { bytes, io_count, ..<_>::default() };
    let asked_target = |path: &str, write_ratio| Target {
        path: path.to_owned(),
        write_ratio,
        ..Target::default()
    };
    let target = |index, path: &str, read, write| TargetResult {
        path: path.to_owned(),
        file_size: 268_435_456,
        index,
        read,
        write,
        ..TargetResult::default()
    };
    let asked_pool = TimeSpan {
        duration: 3,
        warmup: 0,
        thread_count: 2,
        request_count: 4,
        disable_affinity: true,
        targets: vec![asked_target("f1", 100), asked_target("f2", 0)],
        ..TimeSpan::default()
    };
    let pool_thread = |id: u32| ThreadResult {
        id,
        targets: vec![
            target(0, "f1", plain(0, 0), plain(40_960_000, 625 + u64::from(id))),
            target(1, "f2", plain(109_182_976, 1666), plain(0, 0)),
        ],
        ..ThreadResult::default()
    };
    let elapsed = Nanos::from_secs(3);
    let pool = SpanResult {
        elapsed,
        phases: phases(0, elapsed),
        cpus: cpus(),
        threads: vec![pool_thread(0), pool_thread(1)],
        queues: vec![uring()],
        batch: 32,
        burst: 32,
        submission: "peak".to_owned(),
        process_cpu: Nanos(900_000_000),
        trace: Some(TraceCounts {
            classes: vec![
                (
                    "Disk I/O".to_owned(),
                    vec![("Read".to_owned(), 3332), ("Write".to_owned(), 1251)],
                ),
                ("Memory Hard Faults".to_owned(), vec![("Hard page fault".to_owned(), 7)]),
            ],
            lost: 0,
        }),
        ..SpanResult::default()
    };
    let order = AffinityTraversal {
        order: ProcessorOrder::CoreAware,
        efficiency: EfficiencyOrder::EFirst,
        ..AffinityTraversal::default()
    };
    let asked_ring = TimeSpan {
        duration: 2,
        warmup: 1,
        io_ring: Some(IoRing::default()),
        affinity_traversal: Some(order),
        targets: vec![asked_target("f1", 30), asked_target("f2", 0)],
        ..TimeSpan::default()
    };
    let mut failing = target(0, "f1", plain(65_536_000, 1000), plain(32_768_000, 501));
    failing.errors = [(Errno(5), 12), (Errno(28), 1)].into();
    failing.short_transfers = 1;
    let mut reading = target(1, "f2", plain(655_360, 10), plain(0, 0));
    reading.errors = [(Errno(5), 1)].into();
    let ring_thread = |id, submits, target| ThreadResult {
        id,
        submit_count: Some(submits),
        targets: vec![target],
        ..ThreadResult::default()
    };
    let elapsed = Nanos(2_000_400_000);
    let ring = SpanResult {
        elapsed,
        phases: phases(1, elapsed),
        cpus: cpus(),
        threads: vec![ring_thread(0, 750, failing), ring_thread(1, 5, reading)],
        effective_affinity: Some(vec![(0, 0), (0, 2)]),
        mixed_classes: true,
        queues: vec![uring(), QueueFacts { engine: "sync".to_owned(), ..QueueFacts::default() }],
        batch: 1,
        burst: 1,
        submission: "ring".to_owned(),
        bypass_io_missing: vec!["f2".to_owned()],
        process_cpu: Nanos(100_000_000),
        ..SpanResult::default()
    };
    result("plumb run -Xtwo.xml", vec![(asked_pool, pool), (asked_ring, ring)])
}

/// Stopped in the warm-up of the first of two time spans.
pub(crate) fn interrupted() -> RunResult {
    let asked = TimeSpan { targets: vec![Target::default()], ..TimeSpan::default() };
    let span = SpanResult {
        phases: PhaseTimes { warmup: Some(Nanos(5)), end: Some(Nanos(9)), ..<_>::default() },
        threads: vec![ThreadResult::default()],
        queues: vec![uring()],
        batch: 32,
        burst: 32,
        submission: "peak".to_owned(),
        ..SpanResult::default()
    };
    let spans = vec![(asked.clone(), span), (asked, SpanResult::default())];
    RunResult { interrupted: true, ..result("plumb run -X i.xml", spans) }
}

/// Verified: an earlier run was cut off, and not all is as it was acknowledged.
pub(crate) fn verified() -> RunResult {
    let write = WriteStamp { generation: 3, write: 0x1000_0000_0007, block: 8192, len: 4096 };
    let place = Identity { history: 0xfeed, target: 1, offset: 12_288 };
    let mismatch = |offset, kind, pass, expected, found| Mismatch {
        target: 0,
        path: NASTY_PATH.to_owned(),
        offset,
        kind,
        pass,
        expected,
        found,
    };
    let bad = Unreadable { offset: 65_536, errno: Some(Errno(5)) };
    let verify = VerifyResult {
        history: 0xfeed,
        state: Some("run.state".to_owned()),
        follows_a_cut: true,
        targets: vec![
            VerifiedTarget {
                path: NASTY_PATH.to_owned(),
                block: 4096,
                written: 1 << 30,
                checked: 3 << 30,
                mismatches: [2, 1, 1, 1],
                ..VerifiedTarget::default()
            },
            VerifiedTarget { path: "b".to_owned(), number: 1, block: 512, ..<_>::default() },
        ],
        before: Some(Checked { bytes: 8192, of_bytes: 8192, complete: true, ..<_>::default() }),
        after: Some(Checked {
            bytes: 4096,
            of_bytes: 1 << 20,
            complete: false,
            unreadable_bytes: 4096,
            unreadable: Some(bad),
        }),
        first: vec![
            mismatch(8192, Kind::Stale, Pass::Before, 4, Content::Here(write)),
            mismatch(512, Kind::Misplaced, Pass::Load, 0, Content::Elsewhere(place, write)),
            mismatch(4608, Kind::Torn, Pass::Load, 1, Content::Damaged(write)),
            mismatch(0, Kind::Foreign, Pass::After, 1, Content::OtherHistory(0xbeef)),
            mismatch(1024, Kind::Foreign, Pass::After, 1, Content::Unknown),
        ],
        state_failed: true,
    };
    let mut result = failed();
    result.command_line = "plumb run --verify=crc32c gone".to_owned();
    result.time_spans[0].failures.clear();
    result.time_spans[0].verify = Some(verify);
    result
}

/// Ended by a fatal error in the middle of the measurement.
pub(crate) fn failed() -> RunResult {
    let target = Target { path: "gone".to_owned(), ..Target::default() };
    let asked = TimeSpan { targets: vec![target], ..TimeSpan::default() };
    let half = DirectionResult { bytes: 65_536, io_count: 1, ..DirectionResult::default() };
    let target = TargetResult {
        path: "gone".to_owned(),
        file_size: 1 << 20,
        read: half,
        errors: [(Errno(5), 1)].into(),
        ..TargetResult::default()
    };
    let span = SpanResult {
        elapsed: Nanos::from_secs(1),
        phases: phases(5, Nanos::from_secs(1)),
        threads: vec![ThreadResult { targets: vec![target], ..ThreadResult::default() }],
        queues: vec![uring()],
        batch: 32,
        burst: 32,
        submission: "peak".to_owned(),
        failures: vec![Failure::new("io", "cannot read 'gone': EIO\ntry another disk")],
        ..SpanResult::default()
    };
    result("plumb run gone", vec![(asked, span)])
}
