//! The owner of an engine sleeps while its devices work, and is woken by requests that arrive meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use plumb_io::engine::MemoryQueue;
use plumb_io::{
    Bell, Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind,
    QueueFacts, QueueSpec, RegionSpec, Slot,
};
use plumb_tier::space::{SpaceFile, SpaceServer};
use plumb_tier::{Engine, create};
use plumb_units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::disks::{self, MIB};

/// What a test sees of a [`Stuck`] queue, and tells it.
#[derive(Debug, Default)]
struct Told {
    /// Flushes are not answered.
    stuck: AtomicBool,
    /// How often somebody waited.
    waits: AtomicU32,
}

/// Disks in memory whose flushes can hang, with a bell.
#[derive(Debug)]
struct Stuck {
    inner: MemoryQueue,
    bell: Bell,
    told: Arc<Told>,
    held: Vec<(FileIndex, Slot)>,
}

impl IoQueue for Stuck {
    fn push(&mut self, op: Op) {
        self.inner.push(op);
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        if !self.told.stuck.load(Ordering::SeqCst) {
            for (file, slot) in self.held.drain(..) {
                self.inner.push_flush(file, slot);
            }
        }
        self.inner.submit_and_wait(0, Nanos::ZERO)?;
        if self.inner.look() >= wanted {
            return Ok(());
        }
        self.told.waits.fetch_add(1, Ordering::SeqCst);
        let time = Duration::from(timeout.min(Nanos::from_secs(10)));
        let time =
            Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        let mut rung = [PollFd::new(&self.bell, PollFlags::IN)];
        if poll(&mut rung, Some(&time)) == Ok(1) {
            rustix::io::read(&self.bell, &mut [0; 8]).expect("it was rung");
        }
        Ok(())
    }

    fn look(&mut self) -> u32 {
        self.inner.look()
    }

    fn pop(&mut self) -> Option<Done> {
        self.inner.pop()
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.inner.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        self.inner.facts()
    }
}

impl FlushQueue for Stuck {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        if self.told.stuck.load(Ordering::SeqCst) {
            self.held.push((file, slot));
        } else {
            self.inner.push_flush(file, slot);
        }
    }

    fn bell(&self) -> Option<Bell> {
        Some(self.bell.clone())
    }
}

const TURNS: usize = 12;

#[test]
fn requests_wake_an_owner_that_waits_for_its_disks() {
    let told = Arc::new(Told::default());
    let its = Arc::clone(&told);
    let server = SpaceServer::spawn(move || {
        let mut queue = disks::queue(2);
        let plan = disks::plan(2);
        let pool = disks::pool(2, vec![disks::vdisk("v", 2, 4 * MIB)]);
        create(&mut queue, plan, &pool, 1).expect("it fits");
        let bell = Bell::new().expect("a descriptor");
        let queue = Stuck { inner: queue, bell, told: its, held: Vec::new() };
        Engine::start(queue, plan, 8, 4096, 2)
    });
    let server = server.expect("a new pool starts");
    let lanes = vec![LaneSpec { first_slot: 0, slots: 4, bytes: 4096 }];
    let spec = || {
        let regions = vec![RegionSpec { lanes: lanes.clone() }];
        QueueSpec { depth: 4, regions, ..QueueSpec::default() }
    };
    let file = |durable| SpaceFile { vdisk: 0, size: 4 * MIB, writable: true, durable };
    let mut durable = server.client(vec![file(true)], &spec()).expect("memory");
    let mut plain = server.client(vec![file(false)], &spec()).expect("memory");
    let op = |kind, slot| {
        let memory = Memory::Lane(LaneIndex(0));
        Op { kind, file: FileIndex(0), slot: Slot(slot), len: 4096, offset: 0, memory }
    };
    // What an engine does after its start is over by then: it would wait for the flushes as well.
    for _ in 0..4 {
        plain.push(op(OpKind::Read, 1));
        plain.submit_and_wait(1, Nanos::from_secs(20)).expect("taken");
        assert_eq!((plain.look(), plain.pop().map(|done| done.result)), (1, Some(4096)));
        std::thread::sleep(Duration::from_millis(15));
    }
    // A write that must be durable waits for flushes that nobody answers: the owner waits for its disks.
    told.stuck.store(true, Ordering::SeqCst);
    durable.push(op(OpKind::Write, 0));
    durable.submit_and_wait(1, Nanos::from_millis(50)).expect("taken");
    assert_eq!(durable.look(), 0, "no flush was answered");
    let before = told.waits.load(Ordering::SeqCst);
    let began = Instant::now();
    let mut took = Vec::new();
    for turn in 0..TURNS {
        // At all places of the owner's own period.
        std::thread::sleep(Duration::from_micros(3_700 * u64::try_from(turn % 4).expect("small")));
        let asked = Instant::now();
        plain.push(op(OpKind::Read, 1));
        plain.submit_and_wait(1, Nanos::from_secs(20)).expect("taken");
        assert_eq!((plain.look(), plain.pop().map(|done| done.result)), (1, Some(4096)));
        took.push(asked.elapsed());
    }
    let waits = told.waits.load(Ordering::SeqCst) - before;
    took.sort_unstable();
    // It sleeps for 10 ms at a time: without a bell a request would wait for 5 of them on the average.
    assert!(took[2] < Duration::from_millis(2), "{took:?}");
    let periods = u32::try_from(began.elapsed().as_millis() / 10).expect("short");
    let most = 6 * u32::try_from(TURNS).expect("small") + 2 * periods + 8;
    assert!(waits < most, "{waits} waits in {:?}: it does not sleep", began.elapsed());
    told.stuck.store(false, Ordering::SeqCst);
    durable.submit_and_wait(1, Nanos::from_secs(20)).expect("taken");
    assert_eq!((durable.look(), durable.pop().map(|done| done.result)), (1, Some(4096)));
    drop((durable, plain));
    assert_eq!(server.stop().expect("it ends").halt, None);
}
