//! Overlapping I/O (T8): every history of every block is one that some order of its operations explains.
//!
//! A block is a register whose writes all differ, so a history can be judged exactly (Gibbons and Korach, "Testing
//! shared memories", 1997): the operations of one value span a zone; zones in which everything could happen at
//! one instant do not lie within those of other values, and the others do not overlap.
//!
//! Disks answer in an order of the seed's and time passes by the question, so a seed is one schedule of the engine, the
//! same each time (T7). `PLUMB_SCHEDULES` asks for more than the suite's few, `PLUMB_SCHEDULES_FROM` for others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_io::clock::Clock;
use plumb_io::sim::power::{Image, PowerQueue, PowerSpec};
use plumb_io::{
    FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, QueueSpec, RegionSpec, Slot,
};
use plumb_tier::optimizer::TierName;
use plumb_tier::space::{SpaceFile, SpaceQueue};
use plumb_tier::{Engine, MediaType, MoveOutcome, NewPool, create};
use plumb_units::Nanos;

use crate::disks::{self, DISK_BYTES, MIB};

const DEPTH: u32 = 12;
/// Few, so that they are fought for.
const BLOCKS: u64 = 6;
const LONGEST: u32 = 3;
/// They lie on both sides of the first extent's end.
const FIRST: u64 = 13;

/// Time that passes by 20 µs each time that somebody asks for it.
#[derive(Debug, Clone, Default)]
struct Ticking(Arc<AtomicU64>);

impl Clock for Ticking {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(20_000, Ordering::Relaxed))
    }
}

/// A virtual disk, and what happens beneath its requests.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Copies(u8),
    /// Three copies, and a disk dies.
    Dying(u32),
    /// Two columns of two copies.
    Columns,
    /// Two copies on two tiers, whose extents move all the time.
    Moves,
    /// A write-back cache before the Capacity tier.
    Cache,
    /// A write-back cache, and moves.
    CacheAndMoves,
}

impl Shape {
    fn nth(nth: u64) -> Self {
        match nth % 7 {
            0 => Self::Copies(1),
            1 => Self::Copies(2),
            2 => Self::Dying(u32::try_from(nth % 3).expect("few")),
            3 => Self::Columns,
            4 => Self::Moves,
            5 => Self::Cache,
            _ => Self::CacheAndMoves,
        }
    }

    /// Where extents are to move to by turns.
    fn turn(self, turn: u32) -> Option<TierName> {
        match self {
            Self::Moves | Self::CacheAndMoves if turn.is_multiple_of(2) => {
                Some(TierName::Performance)
            }
            // Where the cache is before them.
            Self::Moves | Self::CacheAndMoves | Self::Cache => Some(TierName::Capacity),
            _ => None,
        }
    }

    fn pool(self) -> NewPool {
        let mut vdisk = disks::vdisk("v", 2, MIB);
        let disks = match self {
            Self::Copies(copies) => {
                vdisk.copies = copies;
                3
            }
            Self::Dying(_) => {
                vdisk.copies = 3;
                3
            }
            Self::Columns => {
                vdisk.columns = 2;
                vdisk.interleave = 16 << 10;
                4
            }
            Self::Moves | Self::Cache | Self::CacheAndMoves => {
                vdisk.tier_bytes = [MIB, 2 * MIB];
                4
            }
        };
        if matches!(self, Self::Cache | Self::CacheAndMoves) {
            vdisk.cache_bytes = MIB;
        }
        let tiered = vdisk.tier_bytes[1] > 0;
        let mut pool = disks::pool(disks, vec![vdisk]);
        if tiered {
            pool.disks[2..].iter_mut().for_each(|disk| disk.media = MediaType::Hdd);
        }
        pool
    }
}

/// What one operation did to one block, and between which moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Event {
    write: bool,
    /// 0: what the block held at first.
    value: u64,
    began: u64,
    ended: u64,
}

/// Whether some order of the events explains them; what is wrong if none does.
fn judge(history: &[Event]) -> Result<(), String> {
    let mut values: Vec<u64> = history.iter().map(|event| event.value).collect();
    values.sort_unstable();
    values.dedup();
    let mut zones = Vec::new();
    for value in values {
        let of = || history.iter().filter(|event| event.value == value);
        // The first value was there before everything.
        let write = of().find(|event| event.write).copied();
        let written = write.map(|write| write.began).or((value == 0).then_some(0));
        let Some(written) = written else { return Err(format!("{value} was never written")) };
        if let Some(early) = of().find(|event| event.ended < written) {
            return Err(format!("{early:?} came before its write"));
        }
        let first_end = of().map(|event| event.ended).min().unwrap_or(0);
        let first_end = if value == 0 { 0 } else { first_end };
        let last_begin = of().map(|event| event.began).max().unwrap_or(0);
        zones.push((value, first_end, last_begin));
    }
    for one in &zones {
        for other in zones.iter().filter(|other| other.0 != one.0) {
            let forward = |zone: &(u64, u64, u64)| zone.1 < zone.2;
            if forward(one) && forward(other) && one.1 < other.2 && other.1 < one.2 {
                return Err(format!("{one:?} and {other:?} overlap"));
            }
            if forward(one) && !forward(other) && one.1 < other.2 && other.1 < one.2 {
                return Err(format!("{other:?} lies within {one:?}"));
            }
        }
    }
    Ok(())
}

/// What was asked: kind, first block, blocks, value, moment.
type Issued = (OpKind, u64, u32, u64, u64);

struct Recorder {
    state: u64,
    moment: u64,
    next_value: u64,
    under_way: Vec<Option<Issued>>,
    histories: Vec<Vec<Event>>,
}

impl Recorder {
    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % bound
    }

    fn issue(&mut self, queue: &mut dyn IoQueue, slot: u32) {
        let count = u32::try_from(self.below(u64::from(LONGEST))).expect("few") + 1;
        let first = self.below(BLOCKS - u64::from(count) + 1);
        let kind = if self.below(2) == 0 { OpKind::Read } else { OpKind::Write };
        let value = self.next_value;
        self.next_value += 1;
        if kind == OpKind::Write {
            let buffer = queue.buffer_mut(Slot(slot), LaneIndex(0));
            for word in buffer.chunks_exact_mut(8) {
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
        self.moment += 1;
        self.under_way[slot as usize] = Some((kind, first, count, value, self.moment));
        let (file, memory) = (FileIndex(0), Memory::Lane(LaneIndex(0)));
        let (len, offset) = (count * 4096, (FIRST + first) * 4096);
        queue.push(Op { kind, file, slot: Slot(slot), len, offset, memory });
    }

    fn end(&mut self, queue: &mut dyn IoQueue, slot: Slot, result: i32) {
        let issued = self.under_way[slot.0 as usize].take();
        let (kind, first, count, written, began) = issued.expect("it was issued");
        assert_eq!(result, (count * 4096).cast_signed(), "mirrors serve on");
        self.moment += 1;
        let buffer = queue.buffer_mut(slot, LaneIndex(0));
        for (block, bytes) in (first..first + u64::from(count)).zip(buffer.chunks_exact(4096)) {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[..8]);
            assert!(bytes.chunks_exact(8).all(|other| other == word), "block {block} is torn");
            let write = kind == OpKind::Write;
            let value = if write { written } else { u64::from_le_bytes(word) };
            let event = Event { write, value, began, ended: self.moment };
            self.histories[usize::try_from(block).expect("few")].push(event);
        }
    }
}

/// What happened beneath the requests of one schedule, or of many.
#[derive(Debug, Default)]
struct Beneath {
    moved: u64,
    destaged: u64,
}

fn check(seed: u64, shape: Shape, beneath: &mut Beneath) {
    let wanted = shape.pool();
    let disks = u32::try_from(wanted.disks.len()).expect("few");
    let plan = disks::plan(disks);
    let spec = PowerSpec {
        seed,
        depth: plan.depth(),
        lanes: plan.lanes(),
        sector: 512,
        service: (Nanos(2_000), Nanos(90_000)),
        record: false,
    };
    let images = wanted.disks.iter().map(|_| Image::new(DISK_BYTES)).collect();
    let mut queue = PowerQueue::new(&spec, images);
    create(&mut queue, plan, &wanted, seed).expect("it fits");
    let engine = Engine::start(queue, plan, DEPTH, LONGEST * 4096, seed).expect("it starts");
    let lanes = vec![LaneSpec { first_slot: 0, slots: DEPTH, bytes: LONGEST * 4096 }];
    let regions = vec![RegionSpec { lanes }];
    let spec = QueueSpec { depth: DEPTH, regions, ..QueueSpec::default() };
    let file = SpaceFile { vdisk: 0, size: engine.size(0), writable: true, durable: false };
    let mut queue = SpaceQueue::open(engine, vec![file], &spec, Ticking::default()).expect("room");
    let mut recorder = Recorder {
        state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        moment: 0,
        next_value: 1,
        under_way: vec![None; 12],
        histories: vec![Vec::new(); 6],
    };
    let mut left = 600_u32;
    (0..DEPTH).for_each(|slot| recorder.issue(&mut queue, slot));
    let mut outstanding = DEPTH;
    while outstanding > 0 {
        if let (Shape::Dying(disk), 300) = (shape, left) {
            let faults = queue.engine_mut().queue_mut().faults_mut(disk);
            faults.dead_from = Some(0);
        }
        if let Some(to) = shape.turn(left / 20) {
            let engine = queue.engine_mut();
            if left.is_multiple_of(20) && engine.moves_left() == 0 {
                (0..2).for_each(|extent| engine.move_extent(0, extent, to));
            }
            while let Some(done) = engine.pop_move() {
                beneath.moved += u64::from(done.outcome == MoveOutcome::Moved);
            }
        }
        queue.submit_and_wait(1, Nanos::from_secs(5)).expect("taken");
        queue.look();
        // One at a time: so that each is seen at a moment of its own.
        if let Some(done) = queue.pop() {
            recorder.end(&mut queue, done.slot, done.result);
            outstanding -= 1;
            if left > 0 {
                left -= 1;
                recorder.issue(&mut queue, done.slot.0);
                outstanding += 1;
            }
        }
    }
    beneath.destaged += queue.engine_mut().use_of(0).evicted[0];
    for (block, history) in recorder.histories.iter().enumerate() {
        assert_eq!(judge(history), Ok(()), "seed {seed}, {shape:?}, block {block}");
    }
}

#[test]
fn histories_of_overlapping_io_are_linearizable() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("PLUMB_SCHEDULES_FROM").unwrap_or(1);
    let mut beneath = Beneath::default();
    for seed in first..first + number("PLUMB_SCHEDULES").unwrap_or(140) {
        check(seed, Shape::nth(seed), &mut beneath);
    }
    assert!(beneath.moved > 100 && beneath.destaged > 100, "{beneath:?}");
    println!("{beneath:?}");
}

#[test]
fn histories_that_no_order_explains_are_noticed() {
    let event = |write, value, began, ended| Event { write, value, began, ended };
    let (w, r) = (true, false);
    assert_eq!(judge(&[event(w, 1, 1, 4), event(r, 1, 2, 3), event(r, 0, 1, 2)]), Ok(()));
    assert_eq!(judge(&[event(w, 1, 1, 2), event(w, 2, 1, 3), event(r, 1, 4, 5)]), Ok(()));
    // A stale read; a value that flips; one that comes from nowhere, or before it was written.
    assert!(judge(&[event(w, 1, 1, 2), event(r, 0, 3, 4)]).is_err());
    let flips = [event(w, 1, 1, 9), event(w, 2, 1, 9), event(r, 1, 2, 3), event(r, 2, 4, 5)];
    assert_eq!(judge(&flips), Ok(()));
    assert!(judge(&[&flips[..], &[event(r, 1, 6, 7)]].concat()).is_err());
    assert!(judge(&[event(r, 7, 1, 2)]).is_err());
    assert!(judge(&[event(r, 1, 1, 2), event(w, 1, 3, 4)]).is_err());
}
