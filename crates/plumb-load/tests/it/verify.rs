//! Verified runs (`--verify`) on simulated disks, sound and faulty, through whole sessions.

use std::path::{Path, PathBuf};

use plumb_io::clock::ManualClock;
use plumb_io::engine::Choice;
use plumb_io::sim::{Content, DiskSpec, Fault, FaultKind, RandomFaults, Service, SimOpener};
use plumb_io::system_tree::SystemTree;
use plumb_io::verify::Kind;
use plumb_load::profile::check::Purpose;
use plumb_load::profile::model::{
    CacheMode, Distribution, DistributionKind, DistributionRange, IoRing, RawProfile, Target,
    ThreadTarget, TimeSpan, WriteContent,
};
use plumb_load::result::verify::VerifyResult;
use plumb_load::session::{
    self, Overwrite, SessionEnd, SessionOptions, SessionOutcome, VerifyOptions,
};
use plumb_units::Nanos;

use crate::documents::assert_strictly_valid;
use crate::golden::written;
use crate::runs::options;
use crate::watcher::Watcher;

/// A folder with two files of that size: sessions look at files, the simulated disk keeps their content.
struct Place {
    folder: tempfile::TempDir,
}

const SIZE: u64 = 1 << 20;

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a", "b"] {
            let file = std::fs::File::create(folder.path().join(name)).expect("a file");
            file.set_len(SIZE).expect("a sparse file");
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn target(&self, name: &str) -> Target {
        Target {
            path: self.path(name).to_str().expect("UTF-8").to_owned(),
            block_size: 4096,
            alignment: 4096,
            random_ratio: 100,
            write_ratio: 50,
            request_count: 8,
            ..Target::default()
        }
    }
}

fn disk(faults: Vec<Fault>) -> DiskSpec {
    DiskSpec {
        service: Service::Uniform(Nanos(20_000), Nanos(400_000)),
        parallelism: 4,
        content: Content::Kept,
        faults,
        ..DiskSpec::default()
    }
}

fn opener(disk: DiskSpec) -> (SimOpener, ManualClock) {
    let clock = ManualClock::default();
    (SimOpener::new(disk, clock.clone()), clock)
}

fn span(targets: Vec<Target>) -> TimeSpan {
    TimeSpan { duration: 1, warmup: 0, rand_seed: 3, targets, ..TimeSpan::default() }
}

/// A verified session.
fn run(
    spans: Vec<TimeSpan>,
    (opener, clock): &(SimOpener, ManualClock),
    state: Option<&Path>,
    continues: bool,
    watcher: &mut Watcher,
) -> SessionOutcome {
    let raw = RawProfile { time_spans: spans, ..RawProfile::default() };
    let (profile, _) = raw.check(Purpose::Run).expect("a valid profile");
    let verify = Some(VerifyOptions { state: state.map(Into::into) });
    let options = SessionOptions {
        verify,
        continue_on_error: continues,
        overwrite: Overwrite::Files(Vec::new()),
        ..options(Choice::Auto)
    };
    session::run(&profile, &options, opener, clock, &SystemTree::default(), watcher)
}

fn verify(outcome: &SessionOutcome) -> &VerifyResult {
    outcome.result.time_spans[0].verify.as_ref().expect("it was verified")
}

fn count(verify: &VerifyResult, kind: Kind) -> u64 {
    let place = Kind::ALL.iter().position(|other| *other == kind).expect("one of all");
    verify.targets.iter().map(|target| target.mismatches[place]).sum()
}

#[test]
fn a_sound_disk_passes_whatever_the_workload() {
    let place = Place::new();
    let ranges = vec![
        DistributionRange { io: 90, size: 10 * 1024 + 512 },
        DistributionRange { io: 10, size: 0 },
    ];
    let hot = Distribution { kind: DistributionKind::Absolute, ranges };
    let (a, b) = (place.target("a"), place.target("b"));
    let pool = |thread| vec![ThreadTarget { thread, weight: 3 }];
    let cases: Vec<(&str, TimeSpan)> = vec![
        ("random", span(vec![a.clone()])),
        ("writes only", span(vec![Target { write_ratio: 100, ..a.clone() }])),
        ("sequential", span(vec![Target { random_ratio: 0, threads_per_file: 2, ..a.clone() }])),
        (
            "stride",
            span(vec![Target {
                random_ratio: 0,
                alignment: 12_288,
                block_size: 8192,
                ..a.clone()
            }]),
        ),
        (
            "overlapping strides and offsets",
            span(vec![
                Target { alignment: 512, block_size: 16_384, threads_per_file: 3, ..a.clone() },
                Target { base_file_offset: 1536, block_size: 4608, alignment: 1536, ..a.clone() },
                Target { random_ratio: 40, ..b.clone() },
            ]),
        ),
        ("one at a time", span(vec![Target { request_count: 1, ..a.clone() }])),
        ("mixed", span(vec![Target { random_ratio: 30, ..a.clone() }])),
        ("a hot spot", span(vec![Target { distribution: Some(hot), ..a.clone() }])),
        (
            "interlocked",
            span(vec![Target {
                interlocked: true,
                random_ratio: 0,
                threads_per_file: 2,
                ..a.clone()
            }]),
        ),
        ("parallel", span(vec![Target { parallel_async: true, random_ratio: 0, ..a.clone() }])),
        (
            "a ring",
            TimeSpan { io_ring: Some(IoRing::default()), ..span(vec![a.clone(), b.clone()]) },
        ),
        ("routines", TimeSpan { completion_routines: true, ..span(vec![a.clone(), b.clone()]) }),
        (
            "a weighted pool",
            TimeSpan {
                thread_count: 2,
                request_count: 4,
                measure_latency: true,
                ..span(vec![a.clone(), Target { thread_targets: pool(1), ..b.clone() }])
            },
        ),
        (
            "intervals past the page cache",
            TimeSpan {
                calculate_iops_std_dev: true,
                ..span(vec![Target { cache: CacheMode::NoOsCache, ..a }])
            },
        ),
    ];
    for (name, span) in cases {
        for strewn in [0, 50] {
            let random_faults = RandomFaults { error_one_in: strewn, short_one_in: strewn };
            let disk = opener(DiskSpec { random_faults, ..disk(Vec::new()) });
            let mut watcher = Watcher::default();
            let outcome = run(vec![span.clone()], &disk, None, true, &mut watcher);
            let verify = verify(&outcome);
            assert_eq!(verify.first, [], "{name}, {strewn}");
            assert_eq!(verify.mismatches(), 0, "{name}, {strewn}");
            let after = verify.after.expect("something was written");
            assert!(after.complete && after.bytes > 0, "{name}, {strewn}: {after:?}");
            assert!(verify.targets.iter().all(|target| target.checked > 0), "{name}: {verify:?}");
            if strewn == 0 {
                assert_eq!(outcome.end, SessionEnd::Completed, "{name}");
                assert_eq!(after.bytes, after.of_bytes, "{name}");
                assert_eq!(verify.complaint(), None, "{name}");
            }
        }
    }
}

/// Fifty faults of a kind among the first I/Os of each thread.
fn many(kind: impl Fn(u64) -> FaultKind) -> Vec<Fault> {
    (0..50).map(|nth| Fault { at: 1000 + nth * 37, kind: kind(nth) }).collect()
}

#[test]
fn each_fault_is_found_and_ends_the_run() {
    let place = Place::new();
    for (name, want, faults) in [
        ("lost", Kind::Stale, many(|_| FaultKind::Lost)),
        ("cut in a sector", Kind::Torn, many(|_| FaultKind::Cut(700))),
        ("cut between sectors", Kind::Torn, many(|_| FaultKind::Cut(1024))),
        ("astray", Kind::Misplaced, many(|nth| FaultKind::Astray(nth * 4096))),
        ("garbled", Kind::Foreign, many(|_| FaultKind::Garbled)),
    ] {
        let span = |duration| TimeSpan {
            duration,
            ..span(vec![Target { threads_per_file: 2, ..place.target("a") }])
        };
        let disk_of = || opener(disk(faults.clone()));
        let mut watcher = Watcher::default();
        // A long run: it must end by itself.
        let outcome = run(vec![span(3600)], &disk_of(), None, false, &mut watcher);
        assert_eq!(outcome.end, SessionEnd::Failed, "{name}");
        let found = verify(&outcome);
        assert!(found.is_bad(), "{name}");
        let failures = &outcome.result.time_spans[0].failures;
        assert_eq!(failures[0].class, "mismatch", "{name}");
        for word in ["verification found ", "; first '", "expected ", "--on-error continue"] {
            assert!(failures[0].text.contains(word), "{name}: {}", failures[0].text);
        }
        // Or goes on, and says so in the end.
        let outcome = run(vec![span(1)], &disk_of(), None, true, &mut watcher);
        assert_eq!(outcome.end, SessionEnd::Mismatched, "{name}");
        assert!(count(verify(&outcome), want) > 5, "{name}: {:?}", verify(&outcome));
        let listed = verify(&outcome).first.iter().filter(|found| found.kind == want);
        assert!(listed.count() > 0, "{name}");
        let document = written(plumb_load::result::json::write, &outcome.result);
        let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
        assert_strictly_valid(&document);
        let key = want.keyword();
        let counted = &document["time_spans"][0]["verify"]["targets"][0]["mismatches"][key];
        assert_eq!(counted.as_u64(), Some(count(verify(&outcome), want)), "{name}");
    }
}

#[test]
fn a_later_run_expects_what_an_earlier_one_wrote() {
    let place = Place::new();
    let state = place.path("state");
    let (sound, blank) = (opener(disk(Vec::new())), opener(disk(Vec::new())));
    let targets = vec![place.target("a"), place.target("b")];
    let mut watcher = Watcher::default();
    let wrote = run(vec![span(targets.clone())], &sound, Some(&state), false, &mut watcher);
    assert_eq!(wrote.end, SessionEnd::Completed, "{:?}", wrote.result.time_spans[0].failures);
    assert!(verify(&wrote).before.is_none() && !verify(&wrote).follows_a_cut);
    // Nothing but reads, or none at all.
    let reads = targets.iter().map(|target| Target { write_ratio: 0, ..target.clone() });
    let reads: Vec<Target> = reads.collect();
    let looked = run(vec![span(reads.clone())], &sound, Some(&state), false, &mut watcher);
    assert_eq!(looked.end, SessionEnd::Completed);
    let (before, wrote) = (verify(&looked).before.expect("a check"), verify(&wrote));
    assert_eq!(Some(before.bytes), wrote.after.map(|after| after.bytes));
    assert!(verify(&looked).after.is_none(), "nothing was written");
    assert_eq!(verify(&looked).history, wrote.history);
    // The disk is swapped for a blank one.
    let gone = run(vec![span(reads.clone())], &blank, Some(&state), false, &mut watcher);
    assert_eq!(gone.end, SessionEnd::Failed);
    assert!(count(verify(&gone), Kind::Foreign) > 100, "{:?}", verify(&gone));
    assert!(gone.result.time_spans[0].threads.is_empty(), "no load was put on it");
    let goes_on = run(vec![span(reads)], &blank, Some(&state), true, &mut watcher);
    assert_eq!(goes_on.end, SessionEnd::Mismatched);
    assert_eq!(goes_on.result.time_spans[0].threads.len(), 2);
    // And the other way round: a and b change places.
    let swapped = |target: &Target, name: &str| Target {
        path: place.path(name).to_str().expect("UTF-8").to_owned(),
        write_ratio: 0,
        ..target.clone()
    };
    let temporary = place.path("t");
    for (from, to) in [("a", "t"), ("b", "a"), ("t", "b")] {
        std::fs::rename(place.path(from), place.path(to)).expect("renamed");
    }
    assert!(!temporary.exists());
    let again =
        run(vec![span(vec![swapped(&targets[0], "a")])], &sound, Some(&state), false, &mut watcher);
    // The simulated disk goes by names: all is in place.
    assert_eq!(again.end, SessionEnd::Completed);
}

#[test]
fn later_time_spans_expect_what_earlier_ones_wrote() {
    let place = Place::new();
    let sound = opener(disk(Vec::new()));
    let writes = span(vec![Target { write_ratio: 100, ..place.target("a") }]);
    let other = span(vec![Target { block_size: 1024, alignment: 512, ..place.target("a") }]);
    let reads = span(vec![Target { write_ratio: 0, ..place.target("a") }]);
    let mut watcher = Watcher::default();
    let outcome = run(vec![writes, other, reads], &sound, None, false, &mut watcher);
    assert_eq!(outcome.end, SessionEnd::Completed, "{:?}", outcome.result.time_spans[0].failures);
    let spans = outcome.result.time_spans.iter();
    let spans: Vec<&VerifyResult> = spans.filter_map(|span| span.verify.as_ref()).collect();
    assert_eq!(spans.iter().map(|span| span.targets[0].block).collect::<Vec<_>>(), [512; 3]);
    let [first, second, third] = spans[..] else { panic!("three time spans") };
    assert!(first.targets[0].written > 0 && second.targets[0].written > 0);
    assert_eq!((third.targets[0].written, third.after), (0, None));
    assert!(third.targets[0].checked > 0);
}

#[test]
fn what_cannot_be_verified_is_refused_by_the_session_too() {
    let place = Place::new();
    let sound = opener(disk(Vec::new()));
    let good = place.target("a");
    for (word, target) in [
        ("-Sm", Target { memory_mapped: true, ..good.clone() }),
        ("-Z", Target { write_content: WriteContent::Zero, ..good.clone() }),
        ("512", Target { block_size: 1000, alignment: 1000, ..good.clone() }),
    ] {
        let mut watcher = Watcher::default();
        let outcome = run(vec![span(vec![target])], &sound, None, false, &mut watcher);
        assert_eq!(outcome.end, SessionEnd::Failed, "{word}");
        let text = &outcome.result.time_spans[0].failures[0].text;
        assert!(text.contains("cannot be verified") && text.contains(word), "{text}");
    }
    // What the state file knows is not made anew.
    let state = place.path("state");
    let mut watcher = Watcher::default();
    let first = run(vec![span(vec![good.clone()])], &sound, Some(&state), false, &mut watcher);
    assert_eq!(first.end, SessionEnd::Completed);
    let made = span(vec![Target { file_size: Some(SIZE), ..good }]);
    let outcome = run(vec![made], &sound, Some(&state), false, &mut watcher);
    assert_eq!(outcome.end, SessionEnd::Failed);
    let text = &outcome.result.time_spans[0].failures[0].text;
    assert!(text.contains("(-c)") && text.contains("--verify-state"), "{text}");
}

#[test]
fn an_interrupted_run_says_what_was_not_read_back() {
    let place = Place::new();
    let sound = opener(disk(Vec::new()));
    let mut watcher = Watcher::default();
    watcher.interrupt_after = Some(5);
    let target = Target { write_ratio: 100, ..place.target("a") };
    let span = TimeSpan { duration: 3600, ..span(vec![target]) };
    let outcome = run(vec![span], &sound, None, false, &mut watcher);
    assert_eq!(outcome.end, SessionEnd::Completed);
    let after = verify(&outcome).after.expect("it was begun");
    assert!(!after.complete && after.bytes < after.of_bytes, "{after:?}");
    let warned = watcher.warnings.iter().any(|text| text.contains("verification was ended early"));
    assert!(warned, "{:?}", watcher.warnings);
}
