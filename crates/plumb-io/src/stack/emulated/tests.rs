use std::cell::Cell;

use super::*;
use crate::engine::MemoryQueue;
use crate::{LaneSpec, Memory, QueueSpec, RegionSpec};

/// I/Os per second of a model with `depth` accesses always under way, and the whole course as a number.
fn run(
    mut model: DeviceModel,
    depth: u32,
    count: u32,
    mut next: impl FnMut(u32) -> (AccessKind, u64, u32),
) -> (f64, u64) {
    let mut course = 0_u64;
    let mut issued = 0;
    let mut now = Nanos::ZERO;
    let mut submit = |model: &mut DeviceModel, now: Nanos, slot: u32| {
        let (kind, offset, len) = next(issued);
        issued += 1;
        model.submit(now, Access { slot, kind, offset, len });
    };
    for slot in 0..depth {
        submit(&mut model, now, slot);
    }
    for _ in 0..count {
        now = model.next_end().expect("something is under way");
        let slot = model.finish(now).expect("it is over");
        course = course.rotate_left(7) ^ now.0 ^ u64::from(slot);
        submit(&mut model, now, slot);
    }
    (f64::from(count) / now.as_secs_f64(), course)
}

fn random(below: u64) -> impl FnMut(u32) -> (AccessKind, u64, u32) {
    let mut state = 1_u64;
    move |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (AccessKind::Write, (state >> 11) % (below / 4096) * 4096, 4096)
    }
}

fn check(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = (found / expected - 1.0).abs();
    assert!(off <= tolerance, "{what}: {found:.0} instead of {expected:.0}");
}

#[test]
fn the_solid_state_disk_is_as_fast_as_its_profile() {
    let model = || DeviceModel::Ssd(SsdModel::sas_ssd_200());
    let all = 200_000_000_000;
    check("writes, full queue", run(model(), 32, 20_000, random(all)).0, 30_107.0, 0.001);
    check("writes, queue of 8", run(model(), 8, 20_000, random(all)).0, 30_107.0, 0.001);
    check("writes, one by one", run(model(), 1, 5_000, random(all)).0, 1e9 / 265_700.0, 0.001);
    let read = |nth: u32| (AccessKind::Read, u64::from(nth) * 4096, 4096);
    check("reads, full queue", run(model(), 32, 20_000, read).0, 8e9 / 120_000.0, 0.001);
    let large = |nth: u32| (AccessKind::Read, u64::from(nth) << 20, 1 << 20);
    check("MiB, full queue", run(model(), 8, 500, large).0, 500e6 / f64::from(1 << 20), 0.01);
}

#[test]
fn the_rotating_disk_is_as_fast_as_its_profile() {
    let model = || DeviceModel::Hdd(HddModel::sas_10k_300());
    let all = 300_000_000_000;
    check("full stroke, one by one", run(model(), 1, 20_000, random(all)).0, 147.0, 0.01);
    // 25 of 300 GB.
    check("8.3 %, queue of 6", run(model(), 6, 20_000, random(all / 12)).0, 412.0, 0.02);
    let deep = run(model(), 64, 20_000, random(all / 12)).0;
    check("8.3 %, it chooses among 6", deep, 412.0, 0.02);
    let sequential = |nth: u32| (AccessKind::Read, u64::from(nth) << 20, 1 << 20);
    check(
        "outer MiB in a row",
        run(model(), 2, 500, sequential).0,
        150e6 / f64::from(1 << 20),
        0.01,
    );
}

/// Bytes of a stream with four writes always outstanding, in 30 s, and how often a write elsewhere had its turn.
fn stream(mut elsewhere: Option<u64>) -> (f64, u32) {
    const PIECE: u32 = 128 << 10;
    let mut model = HddModel::sas_10k_300();
    let (mut next, mut now, mut turns) = (150_000_000_000, Nanos::ZERO, 0);
    let start = next;
    let mut go_on = |model: &mut HddModel, now| {
        let access = Access { slot: 1, kind: AccessKind::Write, offset: next, len: PIECE };
        model.submit(now, access);
        next += u64::from(PIECE);
    };
    (0..4).for_each(|_| go_on(&mut model, now));
    while now < Nanos::from_secs(30) {
        if let Some(offset) = elsewhere.take() {
            model.submit(now, Access { slot: 0, kind: AccessKind::Write, offset, len: 4096 });
        }
        now = model.next_end().expect("something is under way");
        if model.finish(now) == Some(0) {
            turns += 1;
            elsewhere = Some(200_000_000_000 + u64::from(turns % 89) * 1_000_003_000);
        } else {
            go_on(&mut model, now);
        }
    }
    ((next - start) as f64, turns)
}

/// A stream in front of the head keeps nobody waiting for as long as it goes on: of a command that is not answered for
/// 30 s the engine thinks that the disk hangs.
#[test]
fn a_stream_lets_others_have_their_turn() {
    let (alone, none) = stream(None);
    let (shared, turns) = stream(Some(200_000_000_000));
    assert_eq!(none, 0);
    assert!((150..230).contains(&turns), "{turns} turns in 30 s");
    check("bytes of the stream", shared, alone, 0.08);
}

#[test]
fn a_course_is_the_same_every_time() {
    for model in
        [DeviceModel::Ssd(SsdModel::sas_ssd_200()), DeviceModel::Hdd(HddModel::sas_10k_300())]
    {
        let once = run(model.clone(), 6, 2_000, random(1 << 36));
        assert_eq!(once, run(model, 6, 2_000, random(1 << 36)));
    }
}

#[test]
fn a_cache_takes_writes_until_it_is_full_and_a_flush_waits_for_them() {
    let cache = SsdCache { bytes: 64 << 10, write: Nanos(10_000) };
    let mut model = DeviceModel::Ssd(SsdModel::sas_ssd_200().with_cache(cache));
    let write = |slot| Access { slot, kind: AccessKind::Write, offset: 0, len: 4096 };
    let ends = |model: &mut DeviceModel| {
        let mut ends = Vec::new();
        while let Some(end) = model.next_end() {
            ends.push((model.finish(end).expect("it is over"), end.0));
        }
        ends
    };
    for slot in 0..40 {
        model.submit(Nanos::ZERO, write(slot));
    }
    model.submit(Nanos::ZERO, Access { slot: 99, kind: AccessKind::Flush, offset: 0, len: 0 });
    let ends = ends(&mut model);
    let fast = ends.iter().filter(|(_, end)| *end < 265_700).count();
    assert_eq!(fast, 16, "64 KiB fit: {ends:?}");
    // 40 writes on 8 units: five times the time of one.
    assert_eq!(ends.last(), Some(&(99, 5 * 265_700)), "the flush is last");
}

#[test]
fn garbage_is_collected_now_and_then() {
    let stalls = SsdStalls { every: 1 << 20, stall: Nanos(50_000_000) };
    let model = DeviceModel::Ssd(SsdModel::sas_ssd_200().with_stalls(stalls));
    let (rate, _) = run(model, 32, 25_600, random(1 << 36));
    // 256 writes take 8.5 ms, and then 50.
    check("writes with stalls", rate, 256.0 / (256.0 / 30_107.0 + 0.05), 0.03);
}

#[test]
fn a_queue_ends_when_its_device_does() {
    let lane = LaneSpec { first_slot: 0, slots: 4, bytes: 4096 };
    let regions = vec![RegionSpec { lanes: vec![lane] }];
    let spec = QueueSpec { depth: 4, regions, ..QueueSpec::default() };
    let inner = MemoryQueue::of_sizes(&spec, &[1 << 20, 1 << 20]).expect("room");
    let clock = ManualClock::default();
    let devices =
        vec![DeviceModel::Ssd(SsdModel::sas_ssd_200()), DeviceModel::Hdd(HddModel::sas_10k_300())];
    let mut queue = EmulatedQueue::new(inner, 4, devices, clock.clone());
    let memory = Memory::Lane(LaneIndex(0));
    let op = |slot, kind, file| Op {
        kind,
        file: FileIndex(file),
        slot: Slot(slot),
        len: 4096,
        // Behind the first track of the rotating one.
        offset: if file == 0 { 8192 } else { (1 << 20) - 8192 },
        memory,
    };
    queue.buffer_mut(Slot(0), LaneIndex(0)).fill(7);
    queue.push(op(0, OpKind::Write, 0));
    queue.push(op(1, OpKind::Read, 1));
    queue.submit_and_wait(1, Nanos::NEVER).expect("taken");
    assert_eq!(clock.now(), Nanos(265_700));
    assert_eq!(queue.look(), 1);
    assert_eq!(queue.pop(), Some(Done { slot: Slot(0), result: 4096 }));
    queue.submit_and_wait(1, Nanos(1000)).expect("a time-out is no error");
    assert_eq!((queue.look(), clock.now()), (0, Nanos(266_700)));
    queue.push(op(2, OpKind::Read, 0));
    queue.push_flush(FileIndex(0), Slot(3));
    queue.submit_and_wait(3, Nanos::NEVER).expect("taken");
    let slots = Cell::new(0);
    queue.look();
    while let Some(done) = queue.pop() {
        slots.set(slots.get() + done.slot.0);
        if done.slot == Slot(2) {
            assert!(queue.buffer_mut(Slot(2), LaneIndex(0)).iter().all(|byte| *byte == 7));
        }
    }
    assert_eq!(slots.get(), 6);
    assert!(clock.now() < Nanos(20_000_000), "a turn and a seek: {:?}", clock.now());
}
