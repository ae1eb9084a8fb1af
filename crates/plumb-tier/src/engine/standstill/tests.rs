//! The engine stands still and goes on.

use plumb_io::clock::{Clock, ManualClock};
use plumb_io::engine::MemoryQueue;
use plumb_io::stack::{DeviceModel, EmulatedQueue, SsdModel};
use plumb_io::{Errno, QueueSpec, RegionSpec};

use super::*;
use crate::create::{NewDisk, NewPool, NewVirtualDisk};
use crate::engine::{Request, RequestKind};
use crate::format::frame::Record;
use crate::format::{Geometry, MediaType};
use crate::io::{SlotPlan, TIME_OUT, measure_of};
use crate::mutation;

const MIB: u64 = 1 << 20;
const PLAN: SlotPlan = SlotPlan {
    data_slots: 8,
    data_bytes: 65536,
    control_bytes: 65536,
    files: 1,
    time_out: TIME_OUT,
};

fn memory() -> MemoryQueue {
    let regions = vec![RegionSpec { lanes: PLAN.lanes() }];
    let spec = QueueSpec { depth: PLAN.depth(), regions, ..QueueSpec::default() };
    MemoryQueue::of_sizes(&spec, &[16 * MIB]).expect("room")
}

/// An engine with a disk and a virtual disk, and two clients.
fn engine<Q: FlushQueue>(mut queue: Q) -> Engine<Q> {
    let vdisk = NewVirtualDisk {
        name: "v".to_owned(),
        copies: 1,
        columns: 1,
        interleave: 65536,
        tier_bytes: [MIB, 0],
        cache_bytes: 0,
    };
    let pool = NewPool {
        name: "p".to_owned(),
        extent_bytes: 65536,
        geometry: Geometry {
            config_bytes: 65536,
            journal_bytes: MIB,
            tree_bytes: MIB,
            slab_bytes: MIB,
        },
        disks: vec![NewDisk { media: MediaType::Ssd, bytes: 16 * MIB, name: "disk".to_owned() }],
        vdisks: vec![vdisk],
    };
    crate::create(&mut queue, PLAN, &pool, 1).expect("it fits");
    Engine::start(queue, PLAN, 2, 4096, 2).expect("a new pool starts")
}

/// A turn that brings nothing about is one too many, but no reason to turn for ever.
#[test]
fn an_engine_that_stands_still_halts_and_answers() {
    let mut engine = engine(memory());
    mutation::set(Some(Mutation::StandsForEver));
    let kind = RequestKind::Write { fua: false };
    let mut now = (1..200).map(Nanos);
    let mut answer = |engine: &mut Engine<MemoryQueue>| {
        engine.submit(0, Request { kind, vdisk: 0, offset: 0, len: 4096 });
        now.find_map(|now| {
            engine.poll(now, Nanos::ZERO);
            engine.pop()
        })
    };
    // What was under way ends as it would have.
    assert_eq!(answer(&mut engine), Some((0, Ok(()))));
    engine.poll(Nanos(300), Nanos::ZERO);
    assert_eq!(engine.halted(), Some(Halt::NoProgress));
    assert_eq!(answer(&mut engine), Some((0, Err(Errno(5)))));
    mutation::set(None);
}

/// Two random reads, the second one handed in while the engine lets the first one end, perhaps to stand still then.
/// How many of them the disk is said to have served, in which time; and how long the engine stood.
fn read_twice(stands: bool) -> ((u64, u64), Nanos) {
    const READ: Nanos = Nanos(100_000);
    let clock = ManualClock::default();
    // A checkpoint writes and flushes, which takes its time.
    let times = vec![(4096, READ, Nanos(2_000_000))];
    let model = DeviceModel::Ssd(SsdModel::new(1, times, u64::MAX));
    let queue = EmulatedQueue::new(memory(), PLAN.depth(), vec![model], clock.clone());
    let mut engine = engine(queue);
    let poll = |engine: &mut Engine<_>, timeout| engine.poll(clock.now(), timeout);
    let ask = |engine: &mut Engine<_>, (client, kind, block): (u32, RequestKind, u64)| {
        engine.submit(client, Request { kind, vdisk: 0, offset: block * 4096, len: 4096 });
    };
    let answered = |engine: &mut Engine<_>| loop {
        if let Some((_, outcome)) = engine.pop() {
            return assert_eq!(outcome, Ok(()));
        }
        engine.poll(clock.now(), Nanos::from_secs(1));
    };
    for block in [0, 7] {
        ask(&mut engine, (0, RequestKind::Write { fua: true }, block));
        answered(&mut engine);
    }
    let measured = |engine: &Engine<_>| {
        let times = measure_of([engine.core.io.busy(0)].into_iter());
        (times.ios, times.io_ns)
    };
    let before = measured(&engine);
    ask(&mut engine, (0, RequestKind::Read, 0));
    poll(&mut engine, Nanos::ZERO);
    if stands {
        engine.checkpoint();
        poll(&mut engine, Nanos::ZERO);
        assert!(engine.frozen, "it waits for the read");
    }
    ask(&mut engine, (1, RequestKind::Read, 7));
    let began = clock.now();
    answered(&mut engine);
    answered(&mut engine);
    let (took, after) = (clock.now().since(began), measured(&engine));
    assert_eq!(engine.counters().checkpoints, u64::from(stands) + 1);
    ((after.0 - before.0, after.1 - before.1), Nanos(took.0 - 2 * READ.0))
}

/// What a disk does while the engine stands is no time of the I/Os beside it (10.3).
#[test]
fn a_standstill_leaves_a_disks_own_time_as_it_was() {
    let (without, stood) = read_twice(false);
    assert_eq!((without, stood), ((2, 200_000), Nanos::ZERO));
    let (with, stood) = read_twice(true);
    assert!(stood >= Nanos(5_000_000), "{stood:?}");
    assert_eq!(with, without);
}

/// No engine opens an extent that has no place; bytes on a disk may say so (LAY-9).
#[test]
fn an_open_record_of_an_extent_without_a_place_is_survived() {
    let mut memory = memory();
    let mut engine = engine(&mut memory);
    engine.core.journal.append(Record::Open { extent: 3 });
    assert_eq!(engine.core.sync(), Ok(()));
    drop(engine);
    let mut again = Engine::start(&mut memory, PLAN, 2, 4096, 2).expect("it starts");
    let kind = RequestKind::Write { fua: true };
    again.submit(0, Request { kind, vdisk: 0, offset: 3 * 65536, len: 4096 });
    let answer = (1..200).map(Nanos).find_map(|now| {
        again.poll(now, Nanos::ZERO);
        again.pop()
    });
    assert_eq!(answer, Some((0, Ok(()))));
}
