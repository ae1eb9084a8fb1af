//! The model of the write-back cache beside the engine's: one sequence of writes through both (decisions 0072, 0177).
//!
//! The engine works in virtual time on devices of the same models, one request at a time. What a cache does while nothing is destaged is
//! the same in both, byte for byte. How fast it is emptied is not: the engine copies lines home, flushes, and lets its tail move when a
//! round is durable; it fills up slabs of its ring, and puts writes of several requests into one record. The model does none of these.

use plumb_io::clock::Clock;
use plumb_io::engine::SparseQueue;
use plumb_units::Nanos;
use plumb_units::convert::to_u32;

use super::course::{PIECE, piece};
use super::*;
use crate::engine::{Account, Request, RequestKind};
use crate::random::Random;
use crate::scenario::{Rig, Scenario};

const EXTENT: u64 = 1 << 20;
const BLOCK: u64 = 4096;
const TICK: Nanos = Nanos(1_000_000);

/// Bytes of writes, by what the cache did with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Fates {
    admitted: u64,
    bypassed: u64,
    /// Of those admitted: over live lines.
    overlapping: u64,
}

impl Fates {
    fn since(self, before: Self) -> Self {
        Self {
            admitted: self.admitted - before.admitted,
            bypassed: self.bypassed - before.bypassed,
            overlapping: self.overlapping - before.overlapping,
        }
    }
}

/// Both.
struct Pair {
    rig: Rig<SparseQueue>,
    replay: Replay,
    overlapping: u64,
    /// First extents that are certainly on the Capacity tier, and behind the last.
    slow: Range<u64>,
    cache_bytes: u64,
}

impl Pair {
    /// With a full Performance tier, and caches that are empty.
    fn new() -> Self {
        let sizes = Scenario::reference(64).sizes();
        let mut rig = Rig::sparse(&sizes).expect("room");
        let slots = rig.engine.performance_slots(0);
        let layout =
            Layout { hdd_bytes: sizes.hdd, write_cache_bytes: sizes.cache, ..Layout::default() };
        let replay = Replay::new(layout, &[slots * EXTENT], &[Policy::Never]).expect("a space");
        // The engine's makers write several at a time: which of these extents are the last to find room is not said.
        let slow = slots + 32..slots + 432;
        rig.fill((0, slow.end * EXTENT), false).expect("it works");
        rig.settle();
        let mut pair = Self { rig, replay, overlapping: 0, slow, cache_bytes: sizes.cache };
        for extent in 0..pair.slow.end {
            pair.feed(Nanos::ZERO, extent * EXTENT, BLOCK);
        }
        pair.rest();
        pair
    }

    fn feed(&mut self, at: Nanos, offset: u64, len: u64) {
        let io = HostIo { kind: HostIoKind::Write, offset, len };
        self.replay.feed(&TraceIo { at, volume: 0, io }).expect("room");
    }

    fn step(&mut self) {
        let now = self.rig.clock.now();
        self.rig.engine.poll(now, TICK);
        if self.rig.engine.in_flight() == 0 && self.rig.clock.now() == now {
            self.rig.clock.advance_to(Nanos(now.0 + TICK.0));
        }
    }

    /// Until both have emptied their caches.
    fn rest(&mut self) {
        let end = self.rig.now().0 + 60_000_000_000;
        while self.rig.now().0 < end {
            self.step();
        }
        let now = self.rig.now();
        let course = self.course();
        course.run_until(now);
        assert!(course.now == now && course.cache.used() == 0.0, "{}", course.cache.used());
        assert_eq!(self.rig.engine.cached_blocks(0), 0);
    }

    fn course(&mut self) -> &mut Course {
        self.replay.courses[0].as_mut().expect("it has devices")
    }

    /// Writes through both at the engine's time.
    fn write(&mut self, offset: u64, len: u64) {
        let now = self.rig.now();
        let course = self.course();
        course.run_until(now);
        // The extents of both have the same numbers.
        let (mut at, mut over) = (offset, 0);
        while at < offset + len {
            let part = piece(at, offset + len - at, PIECE);
            let blocks = at / BLOCK..(at + part).div_ceil(BLOCK);
            over += if course.cache.has_any(blocks) { part } else { 0 };
            at += part;
        }
        self.overlapping += over;
        self.feed(now, offset, len);
        let len = to_u32(usize::try_from(len).expect("little"));
        self.rig.engine.roomy_buffer(0, index(len));
        let kind = RequestKind::Write { fua: false };
        self.rig.engine.submit(0, Request { kind, vdisk: 0, offset, len });
        loop {
            self.step();
            if let Some((_, outcome)) = self.rig.engine.pop() {
                outcome.expect("it works");
                return;
            }
        }
    }

    /// Of the engine, and of the model.
    fn found(&mut self) -> [Fates; 2] {
        let used = self.rig.engine.use_of(0);
        let engine = Fates {
            admitted: used.bytes(Account::CacheWrite),
            bypassed: used.bytes(Account::TierWrite(true)),
            overlapping: used.overlapping_bytes,
        };
        let overlapping = self.overlapping;
        let tally = &self.course().tally.bytes;
        let model = Fates { admitted: tally.cache_written, bypassed: tally.bypassed, overlapping };
        [engine, model]
    }
}

/// Writes of all kinds while the caches have room and nothing is destaged: each has the same fate in both.
#[test]
fn the_model_admits_what_the_engine_admits() {
    let mut pair = Pair::new();
    let mut random = Random::new(11);
    let all = pair.found();
    let mut kinds = [0_u32; 4];
    for _ in 0..6 {
        // Below a quarter of the ring, so that none is emptied; then rest, so that both are.
        let mut room = pair.cache_bytes / 5;
        let mut last = pair.slow.start * EXTENT;
        let mut stream = (pair.slow.start + 300 + random.below(50)) * EXTENT;
        while room > 400 << 10 {
            let len = [512, 1024, 4096, 4096, 8192, 12_288, 65_536, 262_144, 262_656, 307_200];
            let len = len[index(to_u32(usize::try_from(random.below(10)).expect("few")))];
            let slow = pair.slow.start + random.below(200);
            let (offset, len) = match random.below(8) {
                // In the Performance tier; whole blocks, and parts of them.
                0 => (random.below(1000) * EXTENT + random.below(1400) * 512, len),
                // Over what was written a moment ago.
                1 | 2 => (last, len.min(8192)),
                // Over the end of an extent.
                3 => ((slow + 1) * EXTENT - 512 * (1 + random.below(len / 512)), len),
                // A stream.
                4 => {
                    stream += 65_536;
                    (stream - 65_536, 65_536)
                }
                _ => (slow * EXTENT + random.below(1400) * 512, len),
            };
            let before = pair.found();
            pair.write(offset, len);
            let after = pair.found();
            let [engine, model] = [0, 1].map(|nth| after[nth].since(before[nth]));
            assert_eq!(engine, model, "{len} bytes at {offset}");
            kinds[0] += u32::from(model.admitted > 0);
            kinds[1] += u32::from(model.bypassed > 0);
            kinds[2] += u32::from(model.overlapping > 0);
            kinds[3] += u32::from(model.admitted + model.bypassed == 0);
            room = room.saturating_sub(model.admitted + 3 * BLOCK);
            last = offset / BLOCK * BLOCK;
        }
        pair.rest();
    }
    println!("{:?}, {kinds:?}", pair.found().map(|found| found.since(all[0])));
    assert!(kinds.iter().all(|count| *count >= 20), "{kinds:?}");
}

/// A flood of more than the caches hold: how much finds room goes by how fast lines go home, which the model does in its own way. It
/// takes as much as the engine within a quarter, and neither ever writes past a live line.
#[test]
fn a_flood_finds_as_much_room_in_the_model() {
    let mut pair = Pair::new();
    let mut random = Random::new(12);
    let before = pair.found();
    let mut written = 0;
    while written < 4 * pair.cache_bytes {
        let len =
            [4096, 8192, 65_536][index(to_u32(usize::try_from(random.below(3)).expect("few")))];
        let extent = pair.slow.start + random.below(300);
        pair.write(extent * EXTENT + random.below(240) * BLOCK, len);
        written += len;
    }
    let after = pair.found();
    let [engine, model] = [0, 1].map(|nth| after[nth].since(before[nth]));
    println!("{written} bytes: engine {engine:?}, model {model:?}");
    assert_eq!(engine.admitted + engine.bypassed, written);
    assert_eq!(model.admitted + model.bypassed, written);
    let near = |one: u64, other: u64| one.abs_diff(other) <= one.max(other) / 4;
    assert!(near(engine.admitted, model.admitted), "{engine:?} {model:?}");
    // Both are empty again, and take the next.
    pair.rest();
    let before = pair.found();
    pair.write(pair.slow.start * EXTENT, 65_536);
    let after = pair.found();
    let taken = Fates { admitted: 65_536, ..Fates::default() };
    assert_eq!([0, 1].map(|nth| after[nth].since(before[nth])), [taken; 2]);
}
