//! The measured phase allocates nothing.

use plumb_io::clock::ManualClock;
use plumb_io::conformance::FileWish;
use plumb_io::engine::Choice;
use plumb_io::sim::{DiskSpec, SimOpener};
use plumb_io::{MappingFlush, MappingSpec, Opener, QueueMode};
use plumb_sys::allocations::count;

use crate::drive::{is_skipped, keep_busy, ladder, spec, with};
use crate::files::{self, How};

const DEPTH: u32 = 32;
const WISH: FileWish = FileWish { size: 64 << 10, writable: true };

/// 100,000 I/Os without an allocation on this thread.
fn check(name: &str, opener: &impl Opener, mode: QueueMode, how: How) {
    let spec = spec(DEPTH, mode, vec![files::file(WISH, how)]);
    let opened = with(opener, spec, |queue| {
        // What is made at first use, such as a thread's lock, is not the measured phase.
        keep_busy(queue, DEPTH, 1000);
        let before = count();
        keep_busy(queue, DEPTH, 100_000);
        assert_eq!(count() - before, 0, "allocations on {name}");
    });
    opened.unwrap_or_else(|error| panic!("{name}: {error:?}"));
}

#[test]
fn no_engine_allocates_while_it_works() {
    use QueueMode::{Asynchronous, Ring, Synchronous};
    let mapping = MappingSpec { writable: true, write_through: false, flush: MappingFlush::None };
    for (name, choice, mode, how) in [
        ("null", Choice::Null, Asynchronous, How::Buffered),
        ("nop", Choice::Nop, Asynchronous, How::Buffered),
        ("nop-file", Choice::NopFile, Asynchronous, How::Buffered),
        ("uring", Choice::Uring, Asynchronous, How::Buffered),
        ("ring", Choice::Uring, Ring, How::Buffered),
        ("aio", Choice::Aio, Asynchronous, How::Buffered),
        ("threads", Choice::Threads, Asynchronous, How::Buffered),
        ("sync", Choice::Sync, Synchronous, How::Buffered),
        ("mmap", Choice::Sync, Synchronous, How::Mapped(mapping)),
    ] {
        if !is_skipped("no_engine_allocates_while_it_works", choice, mode) {
            check(name, &ladder(choice), mode, how);
        }
    }
}

#[test]
fn the_simulator_allocates_nothing_while_it_works() {
    let opener = SimOpener::new(DiskSpec::default(), ManualClock::default());
    check("sim", &opener, QueueMode::Asynchronous, How::Buffered);
}

#[test]
fn the_counter_counts() {
    let before = count();
    drop(std::hint::black_box(Box::new(7)));
    assert!(count() > before, "without it the tests above could not fail");
}
