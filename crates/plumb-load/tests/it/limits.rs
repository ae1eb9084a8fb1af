//! Numbers that no machine has room for: refused before a plan, a file or a counter is made.

use std::fs;

use plumb_io::clock::StampClock;
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::system_tree::SystemTree;
use plumb_load::profile::check::Purpose;
use plumb_load::profile::model::{RawProfile, Target, TimeSpan};
use plumb_load::session::{self, SessionEnd, SessionOutcome};
use tempfile::TempDir;

use crate::runs::options;
use crate::watcher::Watcher;

/// A machine with 64 MiB of memory to be had, and 65,530 mappings in a process.
fn small_machine() -> (TempDir, SystemTree) {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(root.path().join("proc/sys/vm")).expect("folders");
    let file = |path: &str, text: &str| fs::write(root.path().join(path), text).expect("a file");
    file("proc/meminfo", "MemAvailable:      65536 kB\n");
    file("proc/sys/vm/max_map_count", "65530\n");
    let tree = SystemTree::new(root.path());
    (root, tree)
}

/// The message with which these time spans fail on that machine, and whether they made their file.
fn failure(choice: Choice, change: impl Fn(&mut TimeSpan)) -> (String, bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.dat");
    let target = Target {
        path: path.to_str().expect("UTF-8").to_owned(),
        file_size: Some(1 << 20),
        ..Target::default()
    };
    let mut span = TimeSpan {
        duration: 1,
        warmup: 0,
        disable_affinity: true,
        targets: vec![target],
        ..TimeSpan::default()
    };
    change(&mut span);
    let raw = RawProfile { time_spans: vec![span], ..RawProfile::default() };
    let (profile, _) = raw.check(Purpose::Run).expect("a valid profile");
    let (_root, tree) = small_machine();
    let ladder = Ladder::new(choice, LadderOptions::default());
    let (clock, _) = StampClock::new();
    let SessionOutcome { result, end } =
        session::run(&profile, &options(choice), &ladder, &clock, &tree, &mut Watcher::default());
    assert_eq!(end, SessionEnd::Failed);
    let failure = &result.time_spans[0].failures[0];
    (format!("{}: {}", failure.class, failure.text), path.exists())
}

#[test]
fn intervals_beyond_memory_are_refused_before_files_are_made() {
    for (choice, seconds, milliseconds) in
        [(Choice::Sync, 1000, 1), (Choice::Null, 1000, 1), (Choice::Sync, u32::MAX, 1000)]
    {
        let (text, made) = failure(choice, |span| {
            span.calculate_iops_std_dev = true;
            (span.duration, span.io_bucket_duration) = (seconds, milliseconds);
        });
        let intervals = u64::from(seconds) * 1000 / u64::from(milliseconds);
        let count = format!("{intervals} intervals of {milliseconds} ms in {seconds} s");
        for words in ["intervals: ", &count, "64MiB of memory", "a larger -D", "a shorter -d"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!made, "{choice} made its file before it was refused");
    }
}

#[test]
fn threads_beyond_mappings_are_refused_before_they_are_planned() {
    for choice in [Choice::Sync, Choice::Null] {
        // The plans alone would take a terabyte.
        let (text, made) = failure(choice, |span| span.targets[0].threads_per_file = 1 << 31);
        for words in ["threads: ", "2147483648 threads", "65530", "vm.max_map_count", "-t"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!made, "{choice} made its file before it was refused");
        let (text, _) = failure(choice, |span| span.thread_count = u32::MAX);
        assert!(text.contains("4294967295 threads"), "{text}");
    }
}
