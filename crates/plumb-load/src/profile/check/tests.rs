use super::super::distribution::with_tail;
use super::super::model::{
    AffinityEntry, AffinityTraversal, BypassIo, CacheMode, Distribution, DistributionKind,
    DistributionRange, FlushType, IoRing, RingBatch, Target, ThreadTarget, Throughput, TimeSpan,
    WriteContent,
};
use super::*;

/// Checks one time span with one target, both changed by `change`; `want` are the classes of the
/// violations, or the warnings.
fn check(change: impl FnOnce(&mut TimeSpan, &mut Target), want: Result<&[&str], &[ErrorClass]>) {
    let mut target = Target { path: "disk.dat".to_owned(), ..Target::default() };
    let mut span = TimeSpan::default();
    change(&mut span, &mut target);
    span.targets.push(target);
    check_profile(RawProfile { time_spans: vec![span], ..RawProfile::default() }, want);
}

fn check_profile(profile: RawProfile, want: Result<&[&str], &[ErrorClass]>) {
    match (profile.check(Purpose::Run), want) {
        (Ok((_, warnings)), Ok(want)) => assert_eq!(warnings, want),
        (Err(violations), Err(want)) => {
            let got: Vec<_> = violations.iter().map(|violation| violation.class).collect();
            assert_eq!(got, want, "{violations:#?}");
            for violation in &violations {
                assert!(!violation.help.is_empty(), "{violation}");
            }
        }
        (got, want) => panic!("got {got:?}, expected {want:?}"),
    }
}

fn pool(span: &mut TimeSpan) {
    (span.thread_count, span.request_count) = (4, 8);
}

fn distribution(kind: DistributionKind, ranges: &[(u32, u64)]) -> Option<Distribution> {
    let ranges = ranges.iter().map(|&(io, size)| DistributionRange { io, size }).collect();
    Some(Distribution { kind, ranges: with_tail(kind, ranges) })
}

#[test]
fn the_default_profile_is_fine() {
    check(|_, _| (), Ok(&[]));
}

#[test]
fn rule_1_needs_a_time_span_and_each_needs_a_target() {
    check_profile(RawProfile::default(), Err(&[ErrorClass::NoTimespan]));
    let profile = RawProfile { time_spans: vec![TimeSpan::default()], ..RawProfile::default() };
    check_profile(profile, Err(&[ErrorClass::NoTarget]));
}

#[test]
fn rule_2_disabled_affinity_excludes_lists_and_orders() {
    let want = Err([ErrorClass::AffinityConflict].as_slice());
    let entry = AffinityEntry { group: 0, processor: Some(1) };
    check(|span, _| (span.disable_affinity, span.affinity) = (true, vec![entry]), want);
    check(
        |span, _| {
            span.disable_affinity = true;
            span.affinity_traversal = Some(AffinityTraversal::default());
        },
        want,
    );
    check(|span, _| span.disable_affinity = true, Ok(&[]));
}

#[test]
fn rules_3_to_5_threads_limits_and_bursts() {
    check(
        |span, target| (span.thread_count, target.threads_per_file) = (4, 2),
        Err(&[ErrorClass::ThreadConflict]),
    );
    check(
        |span, target| {
            span.completion_routines = true;
            target.throughput = Throughput { value: 1, ..Throughput::default() };
        },
        Err(&[ErrorClass::ThroughputConflict]),
    );
    check(|_, target| target.burst_size = 1, Err(&[ErrorClass::BurstConflict]));
    check(|_, target| target.think_time = 1, Err(&[ErrorClass::BurstConflict]));
    check(|_, target| (target.burst_size, target.think_time) = (1, 1), Ok(&[]));
}

#[test]
fn rules_6_and_7_requests_of_a_pool_belong_to_no_target() {
    let rated = Throughput { value: 1, ..Throughput::default() };
    let of_thread = |thread| vec![ThreadTarget { thread, weight: 0 }];
    check(
        |span, target| {
            pool(span);
            target.throughput = rated;
            (target.burst_size, target.think_time) = (1, 1);
            target.parallel_async = true;
            target.weight = 0;
            target.thread_targets = of_thread(4);
        },
        Err(&[
            ErrorClass::PoolConflict,
            ErrorClass::PoolConflict,
            ErrorClass::PoolConflict,
            ErrorClass::Weight,
            ErrorClass::ThreadTarget,
        ]),
    );
    // Without requests of its own the pool limits and paces as usual, and weights mean nothing.
    check(
        |span, target| {
            span.thread_count = 1;
            target.throughput = rated;
            target.weight = 0;
        },
        Ok(&[]),
    );
    check(
        |span, target| {
            span.thread_count = 4;
            target.random_ratio = 100;
            target.thread_targets = of_thread(0);
        },
        Err(&[ErrorClass::ThreadTarget]),
    );
}

#[test]
fn rules_8_to_11_random_and_sequential() {
    check(
        |_, target| {
            target.random_ratio = 1;
            target.thread_stride = 65536;
            target.interlocked = true;
            target.parallel_async = true;
        },
        Err(&[ErrorClass::SeqRandConflict; 3]),
    );
    check(
        |_, target| target.distribution = distribution(DistributionKind::Percent, &[(90, 10)]),
        Err(&[ErrorClass::Distribution]),
    );
    check(
        |_, target| {
            (target.interlocked, target.threads_per_file) = (true, 2);
            (target.thread_stride, target.parallel_async) = (65536, true);
        },
        Err(&[ErrorClass::SeqConflict; 2]),
    );
    check(|_, target| target.thread_stride = 65536, Err(&[ErrorClass::ThreadStride]));
    check(
        |span, target| (span.thread_count, target.thread_stride) = (1, 65536),
        Err(&[ErrorClass::ThreadStride]),
    );
    check(|span, target| (span.thread_count, target.thread_stride) = (2, 65536), Ok(&[]));
}

#[test]
fn rule_12_distributions() {
    use DistributionKind::{Absolute, Percent};
    for (kind, ranges, violations) in [
        (Percent, [(95, 5), (4, 10)].as_slice(), 0),
        (Percent, &[(100, 100)], 0),
        (Percent, &[(60, 10), (60, 10)], 2),
        (Percent, &[(60, 60), (60, 50)], 2),
        (Percent, &[(10, 50), (10, 50)], 1),
        (Percent, &[(10, 50), (10, 60)], 2),
        (Percent, &[(50, 10), (50, 10)], 1),
        (Absolute, &[(10, 65536), (90, 0)], 0),
        (Absolute, &[(10, 65535)], 1),
        (Absolute, &[(10, 0), (90, 65536)], 1),
        // The tail that is added comes after the open end.
        (Absolute, &[(10, 0)], 1),
        (Absolute, &[(101, 65536)], 1),
    ] {
        let want = vec![ErrorClass::Distribution; violations];
        check(
            |_, target| {
                target.random_ratio = 100;
                target.distribution = distribution(kind, ranges);
            },
            if want.is_empty() { Ok(&[]) } else { Err(&want) },
        );
    }
}

#[test]
fn rules_13_to_17_memory_and_offsets() {
    let source = |size| WriteContent::Random { size, file: None };
    check(|_, target| target.write_content = source(65536), Ok(&[]));
    check(|_, target| target.write_content = source(65535), Err(&[ErrorClass::WriteBuffer]));
    check(
        |span, target| {
            target.memory_mapped = true;
            target.cache = CacheMode::NoOsCache;
            span.completion_routines = true;
        },
        Err(&[ErrorClass::MmapConflict; 2]),
    );
    check(|_, target| target.flush = Some(FlushType::ViewOfFile), Err(&[ErrorClass::MmapConflict]));
    check(
        |_, target| (target.base_file_offset, target.max_file_size) = (10, 10),
        Err(&[ErrorClass::MaxOffset]),
    );
    check(|_, target| (target.base_file_offset, target.max_file_size) = (10, 11), Ok(&[]));
}

#[test]
fn rule_16_a_template_can_be_printed_but_not_run() {
    check(|_, target| target.path = "*1".to_owned(), Err(&[ErrorClass::TemplateTarget]));
    let targets = vec![Target { path: "*1".to_owned(), ..Target::default() }];
    let time_spans = vec![TimeSpan { targets, ..TimeSpan::default() }];
    let profile = RawProfile { time_spans, ..RawProfile::default() };
    assert!(profile.check(Purpose::Print).is_ok());
}

#[test]
fn completion_depth_ring_and_bypass_io() {
    for depth in [0, 17] {
        check(|span, _| span.completion_depth = Some(depth), Err(&[ErrorClass::CompletionDepth]));
    }
    check(
        |span, target| {
            (span.completion_depth, span.completion_routines) = (Some(4), true);
            target.memory_mapped = true;
        },
        Err(&[ErrorClass::CompletionDepth, ErrorClass::CompletionDepth, ErrorClass::MmapConflict]),
    );
    check(
        |span, _| (span.completion_depth, span.io_ring) = (Some(4), Some(IoRing::default())),
        Ok(&["-oc has no effect with -u"]),
    );
    for (batch, fine) in [
        (RingBatch::Ios(0), false),
        (RingBatch::Ios(65536), true),
        (RingBatch::Ios(65537), false),
        (RingBatch::Percent(0), false),
        (RingBatch::Percent(100), true),
        (RingBatch::Percent(101), false),
    ] {
        check(
            |span, _| span.io_ring = Some(IoRing { batch, ..IoRing::default() }),
            if fine { Ok(&[]) } else { Err(&[ErrorClass::IoRing]) },
        );
    }
    check(
        |span, target| {
            (span.io_ring, span.completion_routines) = (Some(IoRing::default()), true);
            target.memory_mapped = true;
        },
        Err(&[ErrorClass::IoRing, ErrorClass::MmapConflict, ErrorClass::MmapConflict]),
    );
    check(
        |_, target| {
            (target.bypass_io, target.memory_mapped) = (Some(BypassIo::Full), true);
            target.write_ratio = 1;
        },
        Err(&[ErrorClass::BypassIo; 3]),
    );
}

#[test]
fn at_most_65536_requests_everywhere() {
    check(|span, _| span.request_count = 65536, Ok(&[]));
    check(|span, _| span.request_count = 65537, Err(&[ErrorClass::RequestCount]));
    check(|_, target| target.request_count = 65537, Err(&[ErrorClass::RequestCount]));
}

#[test]
fn a_run_needs_threads_requests_blocks_and_intervals() {
    check(|_, target| target.request_count = 0, Err(&[ErrorClass::RequestCount]));
    check(|_, target| target.threads_per_file = 0, Err(&[ErrorClass::BadNumber]));
    check(
        |span, target| {
            pool(span);
            (target.random_ratio, target.request_count, target.threads_per_file) = (100, 0, 0);
        },
        Ok(&[]),
    );
    check(|_, target| target.block_size = 0, Err(&[ErrorClass::BlockSize]));
    check(|_, target| target.io_priority = 4, Err(&[ErrorClass::Priority]));
    check(
        |span, _| (span.calculate_iops_std_dev, span.io_bucket_duration) = (true, 0),
        Err(&[ErrorClass::BadNumber]),
    );
}

#[test]
fn warnings_say_what_has_no_effect() {
    check(
        |_, target| target.threads_per_file = 2,
        Ok(&["several threads without -T or -si: pattern is not sequential"]),
    );
    check(|_, target| target.interlocked = true, Ok(&["-si is ignored with a single thread"]));
    check(
        |_, target| (target.parallel_async, target.request_count) = (true, 1),
        Ok(&["-p has no effect with -o1"]),
    );
    check(|_, target| (target.random_ratio, target.threads_per_file) = (100, 2), Ok(&[]));
}

#[test]
fn targets_that_are_alike_are_reported_once() {
    let target =
        |path: &str, burst_size| Target { path: path.to_owned(), burst_size, ..Target::default() };
    let messages = |targets| {
        let time_spans = vec![TimeSpan { targets, ..TimeSpan::default() }];
        let profile = RawProfile { time_spans, ..RawProfile::default() };
        let violations = profile.check(Purpose::Run).expect_err("bursts without pauses");
        violations.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let what = "bursts of 7 I/Os (-i) without a pause between them (-j)";
    assert_eq!(messages(vec![target("a", 7), target("b", 7)]), [format!("every target: {what}")]);
    assert_eq!(messages(vec![target("a", 0), target("b", 7)]), [format!("target 'b': {what}")]);
    assert_eq!(messages(vec![target("a", 0), target("a", 7)]), [format!("target 2 'a': {what}")]);
}

#[test]
fn bypass_io_is_one_per_path_and_time_span() {
    let target = |bypass_io| Target {
        path: "a".to_owned(),
        bypass_io,
        cache: CacheMode::NoOsCache,
        ..Target::default()
    };
    let span = |modes: &[Option<BypassIo>]| TimeSpan {
        targets: modes.iter().copied().map(target).collect(),
        ..TimeSpan::default()
    };
    let profile = |time_spans| RawProfile { time_spans, ..RawProfile::default() };
    let (none, partial, full) = (None, Some(BypassIo::Partial), Some(BypassIo::Full));
    check_profile(profile(vec![span(&[partial]), span(&[full, full])]), Ok(&[]));
    let want = Err([ErrorClass::BypassIo].as_slice());
    check_profile(profile(vec![span(&[partial, full, none])]), want);
}
