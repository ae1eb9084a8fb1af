//! A Data Integrity Scan beside requests, in virtual time (RES-5, RES-8, DD-8).

use plumb_io::clock::{Clock, ManualClock};
use plumb_io::stack::{DeviceModel, EmulatedQueue, HddModel, SsdModel};
use plumb_io::{
    FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, QueueSpec, RegionSpec, Slot,
};
use plumb_tier::space::{SpaceFile, SpaceQueue};
use plumb_tier::{Engine, NewPool, create};
use plumb_units::Nanos;

use crate::disks::{self, MIB};

const DEPTH: u32 = 16;
const SIZE: u64 = 16 * MIB;

type Queue = SpaceQueue<EmulatedQueue<plumb_io::engine::MemoryQueue, ManualClock>, ManualClock>;

/// A mirror of two such disks with extents of 1 MiB, every block of it written.
fn space(model: &DeviceModel, clock: &ManualClock) -> Queue {
    let plan = disks::plan(2);
    let models = vec![model.clone(), model.clone()];
    let mut queue = EmulatedQueue::new(disks::queue(2), plan.depth(), models, clock.clone());
    let pool = disks::pool(2, vec![disks::vdisk("v", 2, SIZE)]);
    let pool = NewPool { extent_bytes: 1 << 20, ..pool };
    create(&mut queue, plan, &pool, 1).expect("it fits");
    let engine = Engine::start(queue, plan, DEPTH, 64 << 10, 2).expect("it starts");
    let file = SpaceFile { vdisk: 0, size: SIZE, writable: true, durable: false };
    let lanes = vec![LaneSpec { first_slot: 0, slots: DEPTH, bytes: 64 << 10 }];
    let spec =
        QueueSpec { depth: DEPTH, regions: vec![RegionSpec { lanes }], ..QueueSpec::default() };
    let mut queue = SpaceQueue::open(engine, vec![file], &spec, clock.clone()).expect("room");
    let mut next = 0;
    serve(&mut queue, (OpKind::Write, 64 << 10), |_| {
        next += 64 << 10;
        (next <= SIZE).then(|| next - (64 << 10))
    });
    // First writes are final, and nothing is left to be done behind them.
    rest(&mut queue, clock, Nanos::from_secs(3), |_| false);
    queue
}

/// Keeps requests outstanding as long as there is a next one; how many there were.
fn serve(
    queue: &mut Queue,
    (kind, len): (OpKind, u32),
    mut next: impl FnMut(&mut Queue) -> Option<u64>,
) -> u64 {
    let memory = Memory::Lane(LaneIndex(0));
    let mut free: Vec<u32> = (0..DEPTH).collect();
    let (mut outstanding, mut count) = (0, 0);
    loop {
        while let Some(slot) = free.pop() {
            let Some(offset) = next(queue) else {
                free.clear();
                break;
            };
            let (file, slot) = (FileIndex(0), Slot(slot));
            queue.push(Op { kind, file, slot, len, offset, memory });
            outstanding += 1;
        }
        if outstanding == 0 {
            return count;
        }
        queue.submit_and_wait(1, Nanos::NEVER).expect("taken");
        queue.look();
        while let Some(done) = queue.pop() {
            assert_eq!(done.outcome(), Ok(len));
            free.push(done.slot.0);
            outstanding -= 1;
            count += 1;
        }
    }
}

/// Lets time pass without requests, until something is so; how long.
fn rest(
    queue: &mut Queue,
    clock: &ManualClock,
    most: Nanos,
    mut until: impl FnMut(&mut Queue) -> bool,
) -> Nanos {
    let began = clock.now();
    while clock.now().since(began) < most && !until(queue) {
        // Nobody else lets this time pass while no I/O is under way.
        queue.submit_and_wait(0, Nanos::ZERO).expect("taken");
        clock.advance_to(Nanos(clock.now().0 + 50_000));
    }
    clock.now().since(began)
}

/// Random reads for so long, or as long as there is anything to scan: how many, and how many per second.
fn reads(queue: &mut Queue, clock: &ManualClock, time: Option<Nanos>) -> (u64, f64) {
    let began = clock.now();
    let mut nth = 0_u64;
    let count = serve(queue, (OpKind::Read, 4096), |queue| {
        nth += 1;
        let goes_on = match time {
            Some(time) => clock.now().since(began) < time,
            None => !queue.engine_mut().jobs().is_empty(),
        };
        goes_on.then(|| nth * 7919 % (SIZE / 4096) * 4096)
    });
    (count, count as f64 / clock.now().since(began).as_secs_f64())
}

fn check(model: &DeviceModel, least: f64) {
    let clock = ManualClock::default();
    let mut queue = space(model, &clock);
    let (_, alone) = reads(&mut queue, &clock, Some(Nanos::from_secs(2)));
    let verified = |queue: &mut Queue| queue.engine_mut().counters().blocks_verified;
    let before = verified(&mut queue);
    queue.engine_mut().scan();
    let began = clock.now();
    let (count, beside) = reads(&mut queue, &clock, None);
    let took = clock.now().since(began);
    let share = beside / alone;
    println!(
        "{alone:.0} reads/s alone, {beside:.0} beside a scan ({share:.2}), which took {took:?}"
    );
    assert!(share > least, "{alone:.0} reads/s alone, {beside:.0} beside a scan");
    // Every copy of every block, and what was read beside it.
    assert_eq!(verified(&mut queue) - before, 2 * SIZE / 4096 + count);
    // Without requests it takes as long as its reads.
    rest(&mut queue, &clock, Nanos::from_secs(1), |_| false);
    queue.engine_mut().scan();
    let idle = rest(&mut queue, &clock, Nanos::from_secs(60), |queue| {
        queue.engine_mut().jobs().is_empty()
    });
    println!("without requests it takes {idle:?}");
    assert!(idle < took, "{idle:?} without requests, {took:?} beside them");
    assert!(took < Nanos::from_secs(12), "{took:?}: it has to end");
}

#[test]
fn a_scan_leaves_requests_most_of_the_time_of_solid_state_disks() {
    check(&DeviceModel::Ssd(SsdModel::sas_ssd_200()), 0.6);
}

#[test]
fn a_scan_leaves_requests_their_share_of_the_time_of_rotating_disks() {
    check(&DeviceModel::Hdd(HddModel::sas_10k_300()), 0.35);
}
