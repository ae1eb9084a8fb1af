//! A verified load on a space whose disks fail and return.

use plumb_io::FileIndex;
use plumb_io::clock::StampClock;
use plumb_io::{IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, QueueSpec, RegionSpec, Slot};
use plumb_tier::space::{SpaceFile, SpaceQueue};
use plumb_units::Nanos;

use crate::disks::{self, MIB};

const DEPTH: u32 = 16;
const BLOCKS: u64 = 512;

/// What each block holds, and a load that writes and checks it.
struct Load {
    stamps: Vec<u64>,
    under_way: Vec<Option<(u64, u64, OpKind)>>,
    state: u64,
    checked: u64,
}

impl Load {
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn issue(&mut self, queue: &mut dyn IoQueue, slot: u32) {
        let block = loop {
            let block = self.random() % BLOCKS;
            let busy = self.under_way.iter().flatten().any(|other| other.0 == block);
            if !busy {
                break block;
            }
        };
        let kind = if self.random().is_multiple_of(2) { OpKind::Read } else { OpKind::Write };
        let stamp = self.random();
        let memory = Memory::Lane(LaneIndex(0));
        if kind == OpKind::Write {
            for word in queue.buffer_mut(Slot(slot), LaneIndex(0)).chunks_exact_mut(8) {
                word.copy_from_slice(&stamp.to_le_bytes());
            }
        }
        self.under_way[slot as usize] = Some((block, stamp, kind));
        let (file, slot, len) = (FileIndex(0), Slot(slot), 4096);
        queue.push(Op { kind, file, slot, len, offset: block * 4096, memory });
    }

    fn end(&mut self, queue: &mut dyn IoQueue, slot: Slot, result: i32) {
        let (block, stamp, kind) = self.under_way[slot.0 as usize].take().expect("it was issued");
        assert_eq!(result, 4096, "block {block}");
        let expected = &mut self.stamps[usize::try_from(block).expect("few")];
        if kind == OpKind::Write {
            *expected = stamp;
            return;
        }
        self.checked += 1;
        let bytes = queue.buffer_mut(slot, LaneIndex(0));
        let same = bytes.chunks_exact(8).all(|word| word == expected.to_le_bytes());
        assert!(same, "block {block} holds something else");
    }

    /// Keeps the queue full for so many I/Os, then drains it.
    fn run(&mut self, queue: &mut dyn IoQueue, count: u64) {
        let mut left = count;
        for slot in 0..DEPTH {
            self.issue(queue, slot);
        }
        let mut outstanding = DEPTH;
        while outstanding > 0 {
            queue.submit_and_wait(1, Nanos::from_secs(5)).expect("taken");
            assert!(queue.look() > 0, "nothing ends any more");
            while let Some(done) = queue.pop() {
                self.end(queue, done.slot, done.result);
                outstanding -= 1;
                if left > 0 {
                    left -= 1;
                    self.issue(queue, done.slot.0);
                    outstanding += 1;
                }
            }
        }
    }
}

fn check(copies: u8, columns: u8, failing: &[u32]) {
    let disk_count = 5;
    let mut wanted = disks::vdisk("v", copies, 4 * MIB);
    wanted.columns = columns;
    let engine = disks::started(disk_count, vec![wanted], DEPTH);
    let lanes = vec![LaneSpec { first_slot: 0, slots: DEPTH, bytes: 4096 }];
    let regions = vec![RegionSpec { lanes }];
    let spec = QueueSpec { depth: DEPTH, regions, ..QueueSpec::default() };
    let file = SpaceFile { vdisk: 0, size: BLOCKS * 4096, writable: true, durable: false };
    let mut queue =
        SpaceQueue::open(engine, vec![file], &spec, StampClock::monotonic()).expect("room");
    let mut load = Load {
        stamps: vec![0; 512],
        under_way: vec![None; 16],
        state: 0x1234_5678_9abc_def1,
        checked: 0,
    };
    load.run(&mut queue, 3000);
    for &disk in failing {
        queue.engine_mut().queue_mut().set_failing(FileIndex(disk), true);
        load.run(&mut queue, 3000);
        let lost = queue.engine_mut().counters().disks_lost;
        assert!(lost > 0, "the engine noticed");
        queue.engine_mut().queue_mut().set_failing(FileIndex(disk), false);
        let ordinal = u16::try_from(disk).expect("few");
        queue.engine_mut().attach(ordinal);
        // While it is brought up to date, and after.
        load.run(&mut queue, 6000);
        let began = std::time::Instant::now();
        while queue.engine_mut().stale_places() > 0 {
            assert!(began.elapsed().as_secs() < 20, "it is never up to date");
            load.run(&mut queue, 100);
        }
    }
    assert!(load.checked > 1000);
    assert_eq!(queue.engine_mut().counters().unrecoverable, 0);
    // And what is on the disks is what was in force.
    let end = queue.into_engine().shut_down().expect("a clean end");
    let engine = plumb_tier::Engine::start(end, disks::plan(disk_count), DEPTH, 4096, 3);
    let engine = engine.expect("it starts");
    let mut queue =
        SpaceQueue::open(engine, vec![file], &spec, StampClock::monotonic()).expect("room");
    load.run(&mut queue, 3000);
}

#[test]
fn mirrors_lose_nothing_when_disks_fail_and_return() {
    check(2, 1, &[0, 1, 3]);
    check(2, 2, &[1, 2]);
    check(3, 1, &[0, 2]);
}

#[test]
fn a_simple_space_holds_what_it_was_given() {
    check(1, 1, &[]);
    check(1, 3, &[]);
}
