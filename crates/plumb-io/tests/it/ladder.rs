//! Which engine a queue gets when the kernel refuses better ones. Each case runs in a child process that
//! denies itself the system calls in question.

use std::process::Command;

use plumb_io::conformance::FileWish;
use plumb_io::engine::Choice;
use plumb_io::{OpenQueueError, QueueFacts, QueueMode};
use plumb_sys::seccomp::{Denied, deny};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::drive::{is_skipped, keep_busy, ladder, spec, with};
use crate::files::{self, How};

/// Set in the child to the number of its case.
const CHILD: &str = "PLUMB_TEST_LADDER_CASE";
/// Set in the child that may lock little memory.
const UNPRIVILEGED: &str = "PLUMB_TEST_LADDER_UNPRIVILEGED";
/// Printed by a child whose case held.
const HELD: &str = "the case held";

const DEPTH: u32 = 32;

/// What is denied, how a queue is opened, and what comes of it.
struct Case {
    /// Engines without which the case can tell nothing.
    needs: &'static [Choice],
    denied: &'static [(Denied, Errno)],
    choice: Choice,
    mode: QueueMode,
    outcome: Outcome,
}

enum Outcome {
    /// This engine, whose dropped list mentions each of these.
    Engine(&'static str, &'static [&'static str]),
    /// An error whose text and remedy mention these.
    Fails(&'static str, &'static str),
}

use Outcome::{Engine, Fails};
use QueueMode::{Asynchronous, Ring, Synchronous};

const CASES: &[Case] = &[
    Case {
        needs: &[Choice::Aio],
        denied: &[(Denied::RingSetup, Errno::PERM)],
        choice: Choice::Auto,
        mode: Asynchronous,
        outcome: Engine("aio", &["uring: io_uring", "buffered, so io_submit waits"]),
    },
    Case {
        needs: &[Choice::Aio],
        denied: &[(Denied::RingSetup, Errno::NOSYS)],
        choice: Choice::Auto,
        mode: Asynchronous,
        outcome: Engine("aio", &["uring: this kernel has no io_uring"]),
    },
    Case {
        needs: &[Choice::Uring, Choice::Aio],
        denied: &[(Denied::RingEnter, Errno::PERM)],
        choice: Choice::Auto,
        mode: Asynchronous,
        outcome: Engine("aio", &["a ring takes no submissions"]),
    },
    Case {
        needs: &[],
        denied: &[(Denied::RingSetup, Errno::PERM), (Denied::AioSetup, Errno::NOSYS)],
        choice: Choice::Auto,
        mode: Asynchronous,
        outcome: Engine("threads", &["uring: ", "aio: this kernel has no AIO"]),
    },
    Case {
        needs: &[],
        denied: &[(Denied::RingSetup, Errno::PERM), (Denied::AioSetup, Errno::AGAIN)],
        choice: Choice::Auto,
        mode: Asynchronous,
        outcome: Engine("threads", &["fs.aio-max-nr = "]),
    },
    Case {
        needs: &[],
        denied: &[(Denied::RingSetup, Errno::PERM)],
        choice: Choice::Uring,
        mode: Asynchronous,
        outcome: Fails("the uring engine cannot be used here: io_uring", "--engine auto"),
    },
    Case {
        needs: &[],
        denied: &[(Denied::RingSetup, Errno::NOSYS)],
        choice: Choice::Auto,
        mode: Ring,
        outcome: Fails("this kernel has no io_uring", "leave out -u"),
    },
    Case {
        needs: &[],
        denied: &[(Denied::RingSetup, Errno::NOSYS)],
        choice: Choice::Nop,
        mode: Asynchronous,
        outcome: Fails("the nop engine", "seccomp"),
    },
    Case {
        needs: &[],
        denied: &[(Denied::AioSetup, Errno::PERM)],
        choice: Choice::Aio,
        mode: Asynchronous,
        outcome: Fails("the aio engine cannot be used here: io_setup is forbidden", "threads"),
    },
    Case {
        needs: &[],
        denied: &[],
        choice: Choice::Aio,
        mode: Ring,
        outcome: Fails("ring submission (-u) is io_uring's", "leave out -u"),
    },
    Case {
        needs: &[],
        denied: &[(Denied::RingSetup, Errno::NOSYS), (Denied::AioSetup, Errno::NOSYS)],
        choice: Choice::Auto,
        mode: Synchronous,
        outcome: Engine("sync", &[]),
    },
    Case {
        needs: &[Choice::Uring],
        denied: &[(Denied::RegisterBuffers, Errno::NOMEM)],
        choice: Choice::Auto,
        mode: Asynchronous,
        outcome: Engine("uring", &["fixed_buffers: ", "RLIMIT_MEMLOCK"]),
    },
    Case {
        needs: &[Choice::Uring],
        denied: &[(Denied::RegisterBuffers, Errno::NOMEM)],
        choice: Choice::Auto,
        mode: Ring,
        outcome: Fails("RLIMIT_MEMLOCK", "-un"),
    },
    Case {
        needs: &[Choice::Uring],
        denied: &[(Denied::Register, Errno::INVAL)],
        choice: Choice::Auto,
        mode: Asynchronous,
        outcome: Engine("uring", &["fixed_files: ", "registered_ring: ", "fixed_buffers: "]),
    },
];

#[test]
fn the_ladder_takes_the_best_rung_that_holds() {
    if let Ok(number) = std::env::var(CHILD) {
        return climb(&CASES[number.parse::<usize>().expect("a number")]);
    }
    for (number, case) in CASES.iter().enumerate() {
        let name = "the_ladder_takes_the_best_rung_that_holds";
        if case.needs.iter().any(|engine| is_skipped(name, *engine, Asynchronous)) {
            continue;
        }
        hold_in_child(&format!("ladder::{name}"), CHILD, &number.to_string());
    }
}

/// Runs the test of that name in a child process, where the variable is set.
fn hold_in_child(name: &str, variable: &str, value: &str) {
    let itself = std::env::current_exe().expect("this test");
    let mut child = Command::new(itself);
    child.args(["--exact", name, "--nocapture"]).env(variable, value);
    let child = child.output().expect("a child process");
    let text = String::from_utf8_lossy(&child.stdout);
    if let Some(line) = text.lines().find(|line| line.starts_with("skipped ")) {
        println!("{line}");
    } else {
        let held = child.status.success() && text.contains(HELD);
        assert!(held, "{variable}={value}: {child:?}");
    }
}

/// The kernel's own refusal, not a filter's in its name.
#[test]
fn a_low_limit_on_locked_memory_is_named() {
    if std::env::var(UNPRIVILEGED).is_err() {
        let name = "ladder::a_low_limit_on_locked_memory_is_named";
        return hold_in_child(name, UNPRIVILEGED, "1");
    }
    if let Err(errno) = give_up_locking(64 << 10) {
        println!("skipped a_low_limit_on_locked_memory_is_named: {errno}");
        return;
    }
    if let Err(error) = with(&ladder(Choice::Uring), spec(1, Asynchronous, vec![]), |_| ()) {
        println!("skipped a_low_limit_on_locked_memory_is_named: {error}");
        return;
    }
    for (mode, outcome) in [
        (Asynchronous, Engine("uring", &["RLIMIT_MEMLOCK, 65536 bytes"])),
        (Ring, Fails("cannot get 262144 bytes of I/O buffers: the limit on locked memory", "-un")),
    ] {
        climb(&Case { needs: &[], denied: &[], choice: Choice::Auto, mode, outcome });
    }
}

/// A ring of one request is to be had, and not one of so many: its entries alone are 128 KiB.
#[test]
fn a_ring_that_is_too_large_gives_way_to_the_next_engine() {
    const WHY: &str = "RLIMIT_MEMLOCK, 65536 bytes) is too low to make a ring for 2048 requests";
    let test = "a_ring_that_is_too_large_gives_way_to_the_next_engine";
    let (many, limit) = (2048, 64 << 10);
    if std::env::var(UNPRIVILEGED).is_err() {
        return hold_in_child(&format!("ladder::{test}"), UNPRIVILEGED, "1");
    }
    if let Err(errno) = give_up_locking(limit) {
        println!("skipped {test}: {errno}");
        return;
    }
    for choice in [Choice::Uring, Choice::Aio] {
        if let Err(error) = with(&ladder(choice), spec(1, Asynchronous, vec![]), |_| ()) {
            println!("skipped {test}: {error}");
            return;
        }
    }
    for (choice, mode, outcome) in [
        (Choice::Auto, Asynchronous, Engine("aio", &[WHY])),
        (
            Choice::Uring,
            Asynchronous,
            Fails(WHY, "ulimit -l, LimitMEMLOCK=), use fewer requests (-o)"),
        ),
        (Choice::Auto, Ring, Fails(WHY, "leave out -u")),
    ] {
        climb_with(many, &Case { needs: &[], denied: &[], choice, mode, outcome });
    }
}

/// May lock no more than so many bytes, in all threads that this one starts.
fn give_up_locking(bytes: u64) -> Result<(), Errno> {
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::Memlock, limit)?;
    let mut sets = capabilities(None)?;
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        set.remove(CapabilitySet::IPC_LOCK);
    }
    set_capabilities(None, sets)
}

/// Runs a case, in the child.
fn climb(case: &Case) {
    climb_with(DEPTH, case);
}

/// The same with so many requests.
fn climb_with(depth: u32, case: &Case) {
    if let Err(errno) = deny(case.denied) {
        println!("skipped the_ladder_takes_the_best_rung_that_holds: no seccomp filters: {errno}");
        return;
    }
    let wish = FileWish { size: 64 << 10, writable: true };
    let mut spec = spec(depth, case.mode, vec![files::file(wish, How::Buffered)]);
    spec.register_buffers = true;
    let used = with(&ladder(case.choice), spec, |queue| {
        keep_busy(queue, DEPTH, 100);
        queue.facts()
    });
    match (&case.outcome, used) {
        (Engine(engine, mentions), Ok(facts)) => assert_facts(&facts, engine, mentions),
        (Fails(text, remedy), Err(error)) => assert_error(&error, text, remedy),
        (_, used) => panic!("{used:?}"),
    }
    println!("{HELD}");
}

fn assert_facts(facts: &QueueFacts, engine: &str, mentions: &[&str]) {
    assert_eq!(facts.engine, engine, "{facts:?}");
    for mention in mentions {
        assert!(facts.dropped.iter().any(|line| line.contains(mention)), "{mention}: {facts:?}");
    }
}

fn assert_error(error: &OpenQueueError, text: &str, remedy: &str) {
    assert!(error.to_string().contains(text), "{error}");
    let (OpenQueueError::Unavailable { remedy: given, .. }
    | OpenQueueError::Memory { remedy: given, .. }
    | OpenQueueError::Target { remedy: given, .. }) = error;
    assert!(given.contains(remedy), "{given}");
}
