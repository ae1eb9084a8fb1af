//! The body of `plumb_io::conformance` on every queue.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::os::fd::OwnedFd;

use plumb_io::clock::{ManualClock, StampClock};
use plumb_io::conformance::{FileWish, Subject, TargetKind, check};
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::sim::{Content, DiskSpec, Service, SimOpener};
use plumb_io::{
    BufferPlacement, MappingFlush, MappingSpec, OpenQueueError, QueueMode, QueueSpec, TargetFile,
};
use plumb_units::Nanos;

use crate::drive::{self, spec};
use crate::files::{self, How};

/// One kernel engine and the way it is used.
struct Case {
    name: &'static str,
    choice: Choice,
    engine: &'static str,
    mode: QueueMode,
    register_buffers: bool,
    measures_latency: bool,
    placement: BufferPlacement,
    submit_thread: bool,
}

/// The rest of a case: asynchronous, plain buffers, latencies measured.
const CASE: Case = Case {
    name: "",
    choice: Choice::Auto,
    engine: "",
    mode: QueueMode::Asynchronous,
    register_buffers: false,
    measures_latency: true,
    placement: BufferPlacement::System,
    submit_thread: false,
};

fn run(case: &Case, file: &dyn Fn(u32, FileWish) -> TargetFile) {
    let mut options = LadderOptions::default();
    options.uring.submit_thread = case.submit_thread;
    let target = if case.choice.has_no_target() { TargetKind::None } else { TargetKind::Data };
    check(&Subject {
        name: case.name,
        opener: &Ladder::new(case.choice, options),
        clock: &StampClock::monotonic(),
        file,
        engine: case.engine,
        target,
        mode: case.mode,
        placement: case.placement,
        register_buffers: case.register_buffers,
        measures_latency: case.measures_latency,
    });
}

/// Buffered files, then direct ones where the disk takes them; nothing where the kernel refuses the
/// engine.
fn run_on_files(case: &Case) {
    if let Some(why) = obstacle(case) {
        println!("skipped {}: {why}", case.name);
        return;
    }
    run(case, &|_, wish| files::file(wish, How::Buffered));
    match files::direct_io() {
        Ok(()) => run(case, &|_, wish| files::file(wish, How::Direct)),
        Err(why) => println!("skipped {} with direct I/O: {why}", case.name),
    }
}

/// Why the engine that is to be seen cannot be had here, buffers included.
fn obstacle(case: &Case) -> Option<OpenQueueError> {
    let engine = case.engine.split('+').next().and_then(Choice::from_name)?;
    let spec = spec(33, case.mode, vec![]);
    let (placement, register_buffers) = (case.placement, case.register_buffers);
    drive::obstacle(engine, QueueSpec { placement, register_buffers, ..spec })
}

#[test]
fn null() {
    run_on_files(&Case { name: "null", choice: Choice::Null, engine: "null", ..CASE });
}

#[test]
fn nop() {
    let case = Case { name: "nop", choice: Choice::Nop, engine: "nop", ..CASE };
    run_on_files(&case);
}

#[test]
fn nop_file() {
    let case = Case { name: "nop_file", choice: Choice::NopFile, engine: "nop-file", ..CASE };
    run_on_files(&case);
}

#[test]
fn uring_plain() {
    let case = Case { name: "uring_plain", choice: Choice::Uring, engine: "uring", ..CASE };
    run_on_files(&case);
}

#[test]
fn uring_fixed() {
    run_on_files(&Case {
        name: "uring_fixed",
        choice: Choice::Auto,
        engine: "uring",
        register_buffers: true,
        placement: BufferPlacement::Separated(16 << 20),
        ..CASE
    });
}

#[test]
fn uring_ring_deferred() {
    run_on_files(&Case {
        name: "uring_ring_deferred",
        engine: "uring",
        mode: QueueMode::Ring,
        register_buffers: true,
        measures_latency: false,
        ..CASE
    });
}

#[test]
fn uring_submit_thread() {
    let name = "uring_submit_thread";
    let register_buffers = true;
    run_on_files(&Case { name, engine: "uring", submit_thread: true, register_buffers, ..CASE });
}

#[test]
fn aio() {
    run_on_files(&Case { name: "aio", choice: Choice::Aio, engine: "aio", ..CASE });
}

#[test]
fn threads() {
    run_on_files(&Case { name: "threads", choice: Choice::Threads, engine: "threads", ..CASE });
}

#[test]
fn sync() {
    let mode = QueueMode::Synchronous;
    run_on_files(&Case { name: "sync", engine: "sync", mode, ..CASE });
}

#[test]
fn mmap() {
    let mode = QueueMode::Synchronous;
    let case = Case { name: "mmap", engine: "mmap", mode, ..CASE };
    for (write_through, flush) in
        [(false, MappingFlush::None), (true, MappingFlush::None), (false, MappingFlush::ViewOfFile)]
    {
        let how = How::Mapped(MappingSpec { writable: true, write_through, flush });
        run(&case, &|_, wish| files::file(wish, how));
    }
}

#[test]
fn split() {
    let mapped = MappingSpec { writable: true, write_through: false, flush: MappingFlush::None };
    for (choice, name, engine, mode, mapped_files) in [
        (Choice::Auto, "split_uring", "uring+mmap", QueueMode::Asynchronous, 0..3),
        (Choice::Aio, "split_aio", "aio+mmap", QueueMode::Asynchronous, 1..2),
        (Choice::Threads, "split_threads", "threads+mmap", QueueMode::Asynchronous, 0..1),
        (Choice::Auto, "split_sync", "sync+mmap", QueueMode::Synchronous, 2..3),
    ] {
        let case = Case {
            name,
            choice,
            engine,
            mode,
            register_buffers: true,
            placement: BufferPlacement::Separated(1 << 20),
            ..CASE
        };
        if let Some(why) = obstacle(&case) {
            println!("skipped {name}: {why}");
            continue;
        }
        for mapped_file in mapped_files {
            run(&case, &|nth, wish| {
                let how = if nth == mapped_file { How::Mapped(mapped) } else { How::Buffered };
                files::file(wish, how)
            });
        }
    }
}

/// A descriptor that a simulated disk asks only whether it may be written to.
fn stand_in(wish: FileWish) -> OwnedFd {
    let null = OpenOptions::new().read(true).write(wish.writable).open("/dev/null");
    null.expect("it is everywhere").into()
}

#[test]
fn sim() {
    for (parallelism, service) in [
        (1, Service::Constant(Nanos(10_000))),
        (4, Service::Exponential { base: Nanos(100), mean: Nanos(50_000) }),
    ] {
        let disk = DiskSpec { service, parallelism, content: Content::Kept, ..DiskSpec::default() };
        let clock = ManualClock::default();
        let files = Cell::new(0);
        check(&Subject {
            name: "sim",
            opener: &SimOpener::new(disk, clock.clone()),
            clock: &clock,
            file: &|_, wish| {
                files.set(files.get() + 1);
                let path = format!("file{}", files.get()).into();
                let descriptor = stand_in(wish);
                TargetFile { descriptor, path, size: wish.size, priority: None, mapping: None }
            },
            engine: "sim",
            target: TargetKind::Data,
            mode: CASE.mode,
            placement: CASE.placement,
            register_buffers: false,
            measures_latency: true,
        });
    }
}

/// Opens queues to files in memory.
struct InMemory;

impl plumb_io::Opener for InMemory {
    fn open<U: plumb_io::QueueUse>(
        &self,
        spec: QueueSpec,
        user: U,
    ) -> Result<U::Output, OpenQueueError> {
        Ok(user.with(plumb_io::engine::MemoryQueue::open(&spec)?))
    }
}

#[test]
fn memory() {
    check(&Subject {
        name: "memory",
        opener: &InMemory,
        clock: &StampClock::monotonic(),
        file: &|_, wish| {
            let (descriptor, path) = (stand_in(wish), "in memory".into());
            TargetFile { descriptor, path, size: wish.size, priority: None, mapping: None }
        },
        engine: "memory",
        target: TargetKind::Data,
        mode: CASE.mode,
        placement: CASE.placement,
        register_buffers: false,
        measures_latency: true,
    });
}
