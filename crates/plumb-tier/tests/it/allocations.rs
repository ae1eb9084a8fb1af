//! An engine that works asks for no memory.

use plumb_io::clock::StampClock;
use plumb_io::engine::MemoryQueue;
use plumb_io::{
    FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, QueueSpec, RegionSpec, Slot,
};
use plumb_sys::allocations;
use plumb_tier::space::{SpaceFile, SpaceQueue};
use plumb_tier::{
    Engine, Geometry, MediaType, NewDisk, NewPool, NewVirtualDisk, Request, RequestKind, SlotPlan,
    TIME_OUT, create,
};
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

/// A tiered mirror with a write-back cache, every block of it written.
fn tiered() -> (Engine<MemoryQueue>, Nanos) {
    let plan = SlotPlan {
        data_slots: 48,
        data_bytes: 64 << 10,
        control_bytes: 64 << 10,
        files: 4,
        time_out: TIME_OUT,
    };
    let regions = vec![RegionSpec { lanes: plan.lanes() }];
    let spec = QueueSpec { depth: plan.depth(), regions, ..QueueSpec::default() };
    let bytes = 96 * MIB;
    let mut queue = MemoryQueue::of_sizes(&spec, &[bytes; 4]).expect("room");
    let disk = |nth: u32| NewDisk {
        media: if nth < 2 { MediaType::Ssd } else { MediaType::Hdd },
        bytes,
        name: format!("disk{nth}"),
    };
    let pool = NewPool {
        name: "p".to_owned(),
        extent_bytes: 64 << 10,
        geometry: Geometry {
            config_bytes: 64 << 10,
            journal_bytes: 16 * MIB,
            tree_bytes: MIB,
            slab_bytes: MIB,
        },
        disks: (0..4).map(disk).collect(),
        vdisks: vec![NewVirtualDisk {
            tier_bytes: [8 * MIB, 32 * MIB],
            cache_bytes: 16 * MIB,
            ..disks::vdisk("v", 2, 0)
        }],
    };
    create(&mut queue, plan, &pool, 1).expect("it fits");
    let engine = Engine::start(queue, plan, DEPTH, 4096, 2).expect("a new pool starts");
    let blocks = engine.size(0) / 4096;
    let mut started = (engine, Nanos::ZERO);
    let write = RequestKind::Write { fua: false };
    // The fast tier is given away first: its extents are those written first.
    for block in 0..blocks {
        requests(&mut started, 1, (write, block, 1), 1);
    }
    for _ in 0..3 {
        requests(&mut started, 1, (RequestKind::Flush, 0, 1), 1);
    }
    started
}

/// Allocations of the thread while so many requests were done, `depth` at a time, strewn over `span` blocks from `first`
/// on. The time is virtual: a request takes as long as it does on a fast disk.
fn requests(
    (engine, now): &mut (Engine<MemoryQueue>, Nanos),
    depth: u32,
    (kind, first, span): (RequestKind, u64, u64),
    count: u64,
) -> u64 {
    let before = allocations::count();
    let (mut issued, mut ended) = (0, 0);
    let mut idle: u64 = (1 << depth) - 1;
    while ended < count {
        while idle != 0 && issued < count {
            let client = idle.trailing_zeros();
            idle &= idle - 1;
            let len = if kind == RequestKind::Flush { 0 } else { 4096 };
            let offset = (first + issued * 7919 % span) * 4096;
            engine.submit(client, Request { kind, vdisk: 0, offset, len });
            issued += 1;
        }
        *now = Nanos(now.0 + 20_000);
        engine.poll(*now, Nanos::ZERO);
        while let Some((client, outcome)) = engine.pop() {
            assert_eq!(outcome, Ok(()));
            idle |= 1 << client;
            ended += 1;
        }
    }
    allocations::count() - before
}

/// FUA writes each have a round of flushes and journal frames, or share one; writes to the cache have records of its log,
/// and destages behind them.
#[test]
fn durable_and_cached_writes_allocate_nothing_per_io() {
    const IOS: u64 = 20_000;
    let mut started = tiered();
    let blocks = started.0.size(0) / 4096;
    // More than the log holds: some of it goes home past it. And less: all of it goes to the log.
    let (fast, slow, held) = ((0, 512), (blocks - 4096, 4096), (blocks - 256, 256));
    let (plain, durable) = (RequestKind::Write { fua: false }, RequestKind::Write { fua: true });
    for (what, kind, (first, span)) in [
        ("reads", RequestKind::Read, fast),
        ("plain writes", plain, fast),
        ("FUA writes", durable, fast),
        ("writes to a full cache", plain, slow),
        ("FUA writes to a full cache", durable, slow),
        ("writes over what the cache holds", plain, held),
        ("FUA writes over what the cache holds", durable, held),
        ("reads from the cache", RequestKind::Read, held),
    ] {
        for depth in [1, DEPTH] {
            requests(&mut started, depth, (kind, first, span), IOS);
            let before = started.0.counters();
            let made = requests(&mut started, depth, (kind, first, span), IOS);
            let after = started.0.counters();
            let records = after.cache_records - before.cache_records;
            println!(
                "{what}, {depth} at a time: {made} allocations by {IOS}, {} checkpoints, {records} records of the log, {} blocks destaged",
                after.checkpoints - before.checkpoints,
                after.destaged - before.destaged
            );
            if (first, span) == held && kind != RequestKind::Read {
                assert!(4 * records * u64::from(depth) >= IOS, "{what}: {records} records");
            }
            // A checkpoint stands still and makes lists of what it writes; lists grow once in a while.
            let most = IOS / 100 + 64 * (after.checkpoints - before.checkpoints);
            assert!(made < most, "{made} allocations by {IOS} {what}, {depth} at a time");
        }
    }
}
