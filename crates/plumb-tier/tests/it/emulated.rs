//! A pool on disks that take their time, in virtual time.

use plumb_io::clock::{Clock, ManualClock};
use plumb_io::engine::MemoryQueue;
use plumb_io::stack::{DeviceModel, EmulatedQueue, HddModel, SsdModel};
use plumb_io::{
    FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, QueueSpec, RegionSpec, Slot,
};
use plumb_tier::space::{SpaceFile, SpaceQueue};
use plumb_tier::{Engine, create};
use plumb_units::Nanos;

use crate::disks::{self, MIB};

const DEPTH: u32 = 32;
const BLOCKS: u64 = 1024;

type Emulated = SpaceQueue<EmulatedQueue<MemoryQueue, ManualClock>, ManualClock>;

fn space(copies: u8, models: Vec<DeviceModel>, clock: &ManualClock) -> Emulated {
    let count = u32::try_from(models.len()).expect("few");
    let plan = disks::plan(count);
    let inner = disks::queue(count);
    let mut queue = EmulatedQueue::new(inner, plan.depth(), models, clock.clone());
    let pool = disks::pool(count, vec![disks::vdisk("v", copies, 4 * MIB)]);
    create(&mut queue, plan, &pool, 1).expect("it fits");
    let engine = Engine::start(queue, plan, DEPTH, 4096, 2).expect("it starts");
    let file = SpaceFile { vdisk: 0, size: BLOCKS * 4096, writable: true, durable: false };
    let lanes = vec![LaneSpec { first_slot: 0, slots: DEPTH, bytes: 4096 }];
    let regions = vec![RegionSpec { lanes }];
    let spec = QueueSpec { depth: DEPTH, regions, ..QueueSpec::default() };
    SpaceQueue::open(engine, vec![file], &spec, clock.clone()).expect("room")
}

/// I/Os per second of virtual time.
fn rate(queue: &mut Emulated, clock: &ManualClock, kind: OpKind, count: u64) -> f64 {
    let memory = Memory::Lane(LaneIndex(0));
    let began = clock.now();
    let mut issued = 0_u64;
    let mut issue = |queue: &mut Emulated, slot: u32| {
        let offset = issued * 7919 % BLOCKS * 4096;
        issued += 1;
        let (file, slot, len) = (FileIndex(0), Slot(slot), 4096);
        queue.push(Op { kind, file, slot, len, offset, memory });
    };
    (0..DEPTH).for_each(|slot| issue(queue, slot));
    let (mut ended, mut outstanding) = (0, u64::from(DEPTH));
    while outstanding > 0 {
        queue.submit_and_wait(1, Nanos::NEVER).expect("taken");
        queue.look();
        while let Some(done) = queue.pop() {
            assert_eq!(done.result, 4096);
            ended += 1;
            outstanding -= 1;
            if ended + outstanding < count {
                issue(queue, done.slot.0);
                outstanding += 1;
            }
        }
    }
    count as f64 / clock.now().since(began).as_secs_f64()
}

fn check(what: &str, found: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&found), "{what}: {found:.0} per second");
}

#[test]
fn a_mirror_is_as_fast_as_its_disks() {
    let clock = ManualClock::default();
    let ssd = || DeviceModel::Ssd(SsdModel::sas_ssd_200());
    let mut queue = space(2, vec![ssd(), ssd()], &clock);
    rate(&mut queue, &clock, OpKind::Write, 2 * BLOCKS);
    // Every write goes to both disks, every read to one of them, whose turn it is by its place.
    check("writes", rate(&mut queue, &clock, OpKind::Write, 20_000), 26_000.0, 30_500.0);
    check("reads", rate(&mut queue, &clock, OpKind::Read, 20_000), 66_000.0, 134_000.0);
}

#[test]
fn the_same_load_takes_the_same_virtual_time() {
    let course = || {
        let clock = ManualClock::default();
        let hdd = || DeviceModel::Hdd(HddModel::sas_10k_300());
        let mut queue = space(2, vec![hdd(), hdd(), hdd()], &clock);
        rate(&mut queue, &clock, OpKind::Write, 1500);
        rate(&mut queue, &clock, OpKind::Read, 1500);
        clock.now()
    };
    assert_eq!(course(), course());
}

/// A copy on a disk with a longer queue is not asked while the other disk has less to do (section 7).
#[test]
fn reads_go_to_the_copy_with_the_shorter_queue() {
    let clock = ManualClock::default();
    let fast = DeviceModel::Ssd(SsdModel::sas_ssd_200());
    // 833 per second: taken in turn it would hold the other one down to that.
    let times = vec![(4096, Nanos(1_200_000), Nanos(1_200_000))];
    let slow = DeviceModel::Ssd(SsdModel::new(1, times, 500_000_000));
    let mut queue = space(2, vec![fast, slow], &clock);
    rate(&mut queue, &clock, OpKind::Write, 2 * BLOCKS);
    check("reads", rate(&mut queue, &clock, OpKind::Read, 20_000), 60_000.0, 68_000.0);
}
