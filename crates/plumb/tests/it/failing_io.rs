//! I/O that fails or falls short: counted apart, by error and target, never as I/O (spec 6.15, D-21).

use std::fs::OpenOptions;

use serde_json::Value;

use crate::place::{Place, can, count, document, noise};
use crate::rights::{Loop, Tmpfs};

/// A file of 16 MiB in a file system that has room for 2 MiB of it: later writes fail.
fn full(place: &Place) -> Option<Tmpfs> {
    let mount = Tmpfs::mount(&place.path("small"), 2 << 20)?;
    let file = OpenOptions::new().create_new(true).write(true).open(place.path("small/f.dat"));
    file.and_then(|file| file.set_len(16 << 20)).expect("a sparse file");
    Some(mount)
}

const LINE: &str = "-b4K -r -o4 -t2 -d1 -W0 --destroy=small/f.dat";

#[test]
fn failed_ios_are_counted_by_error_and_target() {
    let place = Place::new();
    let Some(_mount) = full(&place) else {
        println!("skipped failed_ios_are_counted_by_error_and_target: only root mounts");
        return;
    };
    place.run("-c4M -d0 -W0 good.dat").succeeds_quietly();
    Place::each(&["uring", "aio", "threads", "sync"], |engine| {
        let line = format!("--json --engine={engine} --on-error continue -w50 -L {LINE}");
        if !can("failed_ios_are_counted_by_error_and_target", &line) {
            return;
        }
        let outcome = place.run(&format!("{line} small/f.dat good.dat"));
        let result = document(&outcome.ends_with(0).stdout);
        let [bad, good] = [0, 1].map(|target| &result["time_spans"][0]["targets"][target]);
        let errors = count(bad, "/total/errors");
        assert!(errors > 10, "{engine}: {errors} errors");
        assert_eq!(bad["errors_by_name"], serde_json::json!({ "ENOSPC": errors }), "{engine}");
        assert_eq!((count(good, "/total/errors"), &good["errors_by_name"]), (0, &no_errors()));
        assert_eq!(count(&result, "/total/errors"), errors, "{engine}");
        // What failed is no I/O, moved no bytes and has no latency.
        for target in [bad, good] {
            let ios = count(target, "/total/io_count");
            assert_eq!(count(target, "/total/bytes"), ios * 4096, "{engine}");
            assert_eq!(count(target, "/total/latency_ns/count"), ios, "{engine}");
        }
        // Half of the I/Os were writes to a file that takes no more of them.
        let (reads, writes) = (count(bad, "/read/io_count"), count(bad, "/write/io_count"));
        assert!(writes + errors > reads / 2, "{engine}: {reads} {writes} {errors}");
        let sound = document(&place.run("--json -b4K -d0 -W0 good.dat").stdout);
        assert_eq!(count(&sound, "/total/errors"), 0);
    });
}

fn no_errors() -> Value {
    serde_json::json!({})
}

#[test]
fn a_failed_io_ends_the_run_unless_asked_otherwise() {
    let place = Place::new();
    let Some(_mount) = full(&place) else {
        println!("skipped a_failed_io_ends_the_run_unless_asked_otherwise: only root mounts");
        return;
    };
    // A long run: it must end by itself.
    let line = format!("-w100 {LINE} -d60 --output json=r.json small/f.dat");
    let outcome = place.run(&line).ends_with(1);
    for word in [
        "error during write error code: 28)",
        "No space left on device",
        "'small/f.dat'",
        "\nhelp: --on-error continue",
        "\nError generating I/O requests\n",
    ] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    assert!(outcome.stdout.contains("interrupted before the measurements"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("ENOSPC"), "{}", outcome.stdout);
    let result: Value = serde_json::from_slice(&place.read("r.json")).expect("a document");
    assert_eq!(result["time_spans"][0]["state"], "failed");
    // Failed figures are no part of the totals.
    assert_eq!(count(&result, "/total/io_count"), 0);
    assert!(count(&result, "/time_spans/0/targets/0/total/errors") > 0);
}

#[test]
fn what_a_device_cannot_do_is_an_error_of_that_device() {
    let name = "what_a_device_cannot_do_is_an_error_of_that_device";
    let place = Place::new();
    let Some(_mount) = full(&place) else {
        println!("skipped {name}: only root mounts");
        return;
    };
    let Some(device) = Loop::attach(&place.path("small/f.dat")) else {
        println!("skipped {name}: no loop device");
        return;
    };
    if !can(name, "-Su") {
        return;
    }
    let at = device.path();
    let line = "--json --on-error=continue -b4K -r -o4 -t2 -d1 -W0 -Su";
    // Reads of what was never written are fine.
    let result = document(&place.run(&format!("{line} {at}")).ends_with(0).stdout);
    assert_eq!(count(&result, "/total/errors"), 0);
    assert!(count(&result, "/total/io_count") > 0);
    // Writes find no room below.
    let line = format!("{line} -w100 --destroy={at} {at}");
    let result = document(&place.run(&line).ends_with(0).stdout);
    let errors = result["time_spans"][0]["targets"][0]["errors_by_name"].as_object();
    let names: Vec<&String> = errors.expect("errors").keys().collect();
    assert!(names.iter().all(|name| ["EIO", "ENOSPC"].contains(&name.as_str())), "{names:?}");
    let errors = count(&result, "/total/errors");
    assert!(errors > 0, "{result:#}");
    let target = &result["time_spans"][0]["targets"][0]["total"];
    assert_eq!(count(target, "/bytes"), count(target, "/io_count") * 4096);
}

#[test]
fn reads_beyond_an_end_that_moved_are_short_and_told() {
    let place = Place::new();
    Place::each(&["-o4", "-o1", "-o4 -Sb --engine=threads", "-o4 --engine=aio"], |options| {
        if !can("reads_beyond_an_end_that_moved_are_short_and_told", options) {
            return;
        }
        let name = format!("{}.dat", options.replace([' ', '=', '-'], "_"));
        place.write(&name, noise(1 << 20));
        let line = format!("--json -b4K -r -g2000i {options} -d60 -W0 {name}");
        let run = place.start(&line).phase("measuring");
        let file = OpenOptions::new().write(true).open(place.path(&name)).expect("the file");
        file.set_len(8192).expect("a shorter file");
        let ended = run.until("transferred 0 bytes instead of 4096 bytes").interrupt().with(0);
        let result = ended.json();
        let (ios, bytes) = (count(&result, "/total/io_count"), count(&result, "/total/bytes"));
        let short = count(&result, "/total/short_transfers");
        assert!(short > 0 && short <= ios, "{options}: {short} of {ios}");
        // A block was there whole or not at all, and all three are counted over the same time.
        assert_eq!(bytes / 4096, ios - short, "{options}");
        assert_eq!(count(&result, "/total/errors"), 0, "{options}");
        // Thousands of them are no thousands of lines.
        let lines = ended.stderr.matches("transferred 0 bytes").count();
        assert!(lines < 10, "{options}: {lines} lines");
    });
}

#[test]
fn a_mapped_target_that_shrinks_ends_the_run_with_a_reason() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    let run = place.start("--json -b4K -r -Sm -o4 -d60 -W0 f.dat").phase("measuring");
    let file = OpenOptions::new().write(true).open(place.path("f.dat")).expect("the file");
    file.set_len(0).expect("a shorter file");
    let ended = run.end();
    assert!(!ended.status.success(), "{ended:?}");
    for word in ["memory mapped", "-Sm", "help: "] {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
    assert_eq!(ended.stdout, "", "no half of a document");
}

#[test]
fn a_full_disk_for_results_is_told_and_leaves_nothing() {
    let place = Place::new();
    let Some(_mount) = Tmpfs::mount(&place.path("tiny"), 8192) else {
        println!("skipped a_full_disk_for_results_is_told_and_leaves_nothing: only root mounts");
        return;
    };
    place.write("f.dat", noise(1 << 20));
    let line = "--output xml=tiny/r.xml --output json=r.json -L -b4K -d1 -W0 f.dat";
    let outcome = place.run(line).ends_with(1);
    assert!(outcome.stdout.contains("Total IO"), "the result is shown all the same");
    for word in ["'tiny/r.xml'", "No space left on device"] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    let left = std::fs::read_dir(place.path("tiny")).expect("the folder").count();
    assert_eq!(left, 0, "not a half of it");
    assert!(
        count(&document(&String::from_utf8_lossy(&place.read("r.json"))), "/total/io_count") > 0
    );
}
