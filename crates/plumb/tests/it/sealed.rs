//! Kernels and sandboxes that refuse io_uring, or more: what runs all the same, and what is said.
//!
//! A test calls itself as a child that denies itself system calls and becomes the program.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use plumb_sys::seccomp::{Denied, deny};
use rustix::io::Errno;

use crate::place::{Place, can, count, document, noise, words};
use crate::program::{Outcome, path};

/// Set in the child: what is denied, and the line to run.
const DENIED: &str = "PLUMB_TEST_SEALED_DENIED";
const LINE: &str = "PLUMB_TEST_SEALED_LINE";
/// The child's status when the kernel has no filters.
pub(crate) const NO_FILTERS: i32 = 77;

/// Runs a line without the calls that are denied; `None` where calls cannot be denied.
fn run(place: &Place, test: &str, denied: &str, line: &str) -> Option<Outcome> {
    let mut command = command(&format!("sealed::{test}"), denied, line);
    command.current_dir(place.folder());
    let status = command.output().expect("a child process").status.code().expect("it ends");
    if status == NO_FILTERS {
        println!("skipped {test}: this kernel has no seccomp filters");
        return None;
    }
    let text = |name| String::from_utf8(place.read(name)).expect("it prints UTF-8");
    Some(Outcome { status, stdout: text("stdout"), stderr: text("stderr") })
}

/// A child that runs a line of `plumb run` without the calls that are denied, and writes files `stdout` and `stderr` where it is started. The
/// test, by its whole name, calls [`become_the_program`] first of all. Its status is [`NO_FILTERS`] where calls cannot be denied.
pub(crate) fn command(test: &str, denied: &str, line: &str) -> Command {
    let itself = std::env::current_exe().expect("this test");
    let mut command = Command::new(itself);
    command.args(["--exact", test, "--nocapture"]).env(DENIED, denied).env(LINE, line);
    command.stdin(Stdio::null());
    command
}

/// In the child, becomes the program; does not return then.
pub(crate) fn become_the_program() {
    let Ok(denied) = std::env::var(DENIED) else { return };
    let denied: Vec<(Denied, Errno)> = denied
        .split_whitespace()
        .map(|word| match word {
            "ring" => (Denied::RingSetup, Errno::PERM),
            "old" => (Denied::RingSetup, Errno::NOSYS),
            "aio" => (Denied::AioSetup, Errno::NOSYS),
            "msync" => (Denied::Msync, Errno::IO),
            "fsync" => (Denied::Fsync, Errno::IO),
            "advice" => (Denied::Fadvise, Errno::INVAL),
            "priority" => (Denied::IoprioSet, Errno::PERM),
            "attributes" => (Denied::Fsetxattr, Errno::PERM),
            "register" => (Denied::RegisterBuffers, Errno::NOMEM),
            other => panic!("nothing is called {other}"),
        })
        .collect();
    if deny(&denied).is_err() {
        std::process::exit(NO_FILTERS);
    }
    let file = |name: &str| File::create(Path::new(name)).expect("a file for its output");
    let line = std::env::var(LINE).expect("a line");
    let error = Command::new(path())
        .args(["run", "--progress-style=none"])
        .args(line.split_whitespace())
        .stdout(file("stdout"))
        .stderr(file("stderr"))
        .exec();
    panic!("{error}");
}

fn place() -> Place {
    let place = Place::new();
    place.write("f.dat", noise(4 << 20));
    place
}

#[test]
fn without_io_uring_the_next_engine_runs_and_says_so() {
    become_the_program();
    let place = place();
    let test = "without_io_uring_the_next_engine_runs_and_says_so";
    for (denied, engine, reason) in [
        ("ring", "aio", "io_uring"),
        ("old", "aio", "this kernel has no io_uring"),
        ("ring aio", "threads", "io_uring"),
    ] {
        let line = "--json --output text=r.txt -b4K -r -o8 -t2 -L -g200i -d1 -W0 f.dat";
        let Some(outcome) = run(&place, test, denied, line) else { return };
        let result = document(&outcome.succeeds_quietly().stdout);
        assert_eq!(result["engine"], engine, "{denied}");
        let dropped = words(&result, "/time_spans/0/queues/0/dropped");
        let why = dropped.iter().find(|line| line.starts_with("uring: "));
        assert!(why.is_some_and(|line| line.contains(reason)), "{denied}: {dropped:?}");
        assert!(count(&result, "/total/io_count") > 100, "{denied}");
        let text = String::from_utf8(place.read("r.txt")).expect("text");
        assert!(text.contains(&format!("\tengine: {engine}")), "{text}");
        assert!(text.contains("uring: "), "{text}");
    }
    // One request at a time needs no engine of that kind.
    let Some(outcome) = run(&place, test, "ring aio", "--json -b4K -o1 -d1 -W0 f.dat") else {
        return;
    };
    assert_eq!(document(&outcome.succeeds_quietly().stdout)["engine"], "sync");
}

#[test]
fn who_insists_on_io_uring_is_told_what_is_in_the_way() {
    become_the_program();
    let place = place();
    let test = "who_insists_on_io_uring_is_told_what_is_in_the_way";
    for (denied, line, says) in [
        (
            "ring",
            "-u -o4",
            &["the uring engine cannot be used here", "io_uring", "leave out -u"][..],
        ),
        ("old", "-u -o4", &["this kernel has no io_uring", "leave out -u"]),
        ("ring", "-un -o1", &["io_uring", "leave out -u"]),
        ("ring", "--engine=uring -o4", &["the uring engine cannot be used here", "--engine auto"]),
        ("old", "--engine=uring -o4", &["this kernel has no io_uring", "--engine auto"]),
        ("old", "--engine=nop -o4", &["the nop engine cannot be used here", "no io_uring"]),
        ("aio", "--engine=aio -o4", &["the aio engine cannot be used here", "no AIO"]),
        ("register", "-u -o4", &["RLIMIT_MEMLOCK", "-un"]),
    ] {
        let line = format!("{line} -b4K -d1 -W0 f.dat");
        if denied == "register" && !can(test, "-u") {
            continue;
        }
        let Some(outcome) = run(&place, test, denied, &line) else { return };
        let outcome = outcome.ends_with(1);
        for word in says {
            assert!(outcome.stderr.contains(word), "{denied}, {line}: {word}: {}", outcome.stderr);
        }
        assert!(outcome.stderr.contains("\nhelp: "), "{}", outcome.stderr);
        assert!(outcome.stderr.ends_with("\nError generating I/O requests\n"));
        assert!(outcome.stdout.contains("interrupted before the measurements"));
    }
    // Nor is a file made for it.
    let before = place.names();
    for (denied, line) in
        [("ring", "-u -o4"), ("old", "--engine=uring -o4"), ("aio", "--engine=aio -o4")]
    {
        let Some(outcome) = run(&place, test, denied, &format!("{line} -c1M -d1 -W0 new.dat"))
        else {
            return;
        };
        outcome.ends_with(1);
        assert_eq!(place.names(), before, "{denied}, {line}");
    }
}

#[test]
fn a_small_limit_on_locked_memory_costs_registration_alone() {
    become_the_program();
    let place = place();
    let test = "a_small_limit_on_locked_memory_costs_registration_alone";
    if !can(test, "-u") {
        return;
    }
    for (line, is_fixed) in [("-o8", false), ("-un -o8", false)] {
        let line = format!("--json -b4K -r -d1 -W0 {line} f.dat");
        let Some(outcome) = run(&place, test, "register", &line) else { return };
        let result = document(&outcome.succeeds_quietly().stdout);
        assert_eq!(result["engine"], "uring", "{line}");
        let flags = words(&result, "/time_spans/0/queues/0/flags");
        assert_eq!(flags.contains(&"fixed_buffers"), is_fixed, "{line}: {flags:?}");
    }
}

#[test]
fn what_was_asked_for_is_asked_of_the_kernel() {
    become_the_program();
    let place = place();
    let test = "what_was_asked_for_is_asked_of_the_kernel";
    for (denied, line, says) in [
        ("msync", "-w100 -Sm -Nv --destroy f.dat", &["error during write", "f.dat"][..]),
        ("fsync", "-c1M", &["cannot write 'f.dat'", "half-made file was removed"]),
        ("advice", "-fr", &["f.dat", "-fr"]),
        ("advice", "-fs", &["f.dat", "-fs"]),
        ("priority", "-I1", &["priority", "-I"]),
    ] {
        let outcome = if line == "-c1M" {
            run(&place, test, denied, "-c1M -b4K -d1 -W0 --destroy f.dat f.dat")
        } else {
            run(&place, test, denied, &format!("{line} -b4K -d1 -W0 f.dat"))
        };
        let Some(outcome) = outcome else { return };
        let stderr = outcome.ends_with(1).stderr;
        for word in says {
            assert!(stderr.contains(word), "{denied}, {line}: {word}: {stderr}");
        }
        place.write("f.dat", noise(4 << 20));
    }
}

#[test]
fn where_no_attribute_can_be_set_the_mark_lies_beside() {
    become_the_program();
    let place = Place::new();
    let test = "where_no_attribute_can_be_set_the_mark_lies_beside";
    for line in ["-c1M -w50 -b4K -d0 -W0 new.dat", "-w50 -b4K -d0 -W0 new.dat"] {
        let Some(outcome) = run(&place, test, "attributes", line) else { return };
        outcome.succeeds_quietly();
        assert!(place.path(".new.dat.plumb-made").exists(), "{:?}", place.names());
    }
}
