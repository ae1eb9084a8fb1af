//! An engine that works asks for no memory.

use plumb_io::clock::StampClock;
use plumb_io::{
    FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, QueueSpec, RegionSpec, Slot,
};
use plumb_sys::allocations;
use plumb_tier::space::{SpaceFile, SpaceQueue};
use plumb_units::Nanos;

use crate::disks::{self, MIB};

const DEPTH: u32 = 16;

/// Allocations of the thread while so many I/Os were done.
fn allocations(queue: &mut dyn IoQueue, kind: OpKind, count: u64) -> u64 {
    let memory = Memory::Lane(LaneIndex(0));
    let before = allocations::count();
    let mut issued = 0_u64;
    while issued < count {
        for slot in 0..DEPTH {
            let offset = issued * 7919 % 512 * 4096;
            let (file, slot, len) = (FileIndex(0), Slot(slot), 4096);
            queue.push(Op { kind, file, slot, len, offset, memory });
            issued += 1;
        }
        let mut left = DEPTH;
        while left > 0 {
            queue.submit_and_wait(left, Nanos::from_secs(5)).expect("taken");
            queue.look();
            while let Some(done) = queue.pop() {
                assert_eq!(done.result, 4096);
                left -= 1;
            }
        }
    }
    allocations::count() - before
}

#[test]
fn a_space_that_works_allocates_nothing_per_io() {
    let engine = disks::started(2, vec![disks::vdisk("v", 2, 4 * MIB)], DEPTH);
    let lanes = vec![LaneSpec { first_slot: 0, slots: DEPTH, bytes: 4096 }];
    let regions = vec![RegionSpec { lanes }];
    let spec = QueueSpec { depth: DEPTH, regions, ..QueueSpec::default() };
    let file = SpaceFile { vdisk: 0, size: 512 * 4096, writable: true, durable: false };
    let mut queue =
        SpaceQueue::open(engine, vec![file], &spec, StampClock::monotonic()).expect("room");
    for _ in 0..3 {
        allocations(&mut queue, OpKind::Write, 2048);
        allocations(&mut queue, OpKind::Read, 2048);
    }
    // Rounds, one per second, allocate; I/Os do not.
    let reads = allocations(&mut queue, OpKind::Read, 20_000);
    assert!(reads < 50, "{reads} allocations by 20,000 reads");
    let writes = allocations(&mut queue, OpKind::Write, 20_000);
    assert!(writes < 200, "{writes} allocations by 20,000 writes");
}
