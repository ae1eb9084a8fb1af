//! Optimizations of two virtual disks of a pool at once, in memory: each tells its own moves, and neither goes beyond its
//! limits.

use plumb_io::engine::MemoryQueue;
use plumb_tier::optimizer::{PlanLimits, TierName};
use plumb_tier::tier_report::{MoveFigures, MoveStop};
use plumb_tier::{Engine, MediaType, MoveOutcome, OptimizeSettings, Request, RequestKind, create};
use plumb_units::Nanos;

use crate::disks::{self, MIB};

const EXTENT: u64 = 64 << 10;
const BLOCK: u64 = 4096;

/// Two SSDs and two rotating disks with two virtual disks, each of 2 MiB and 6 MiB with two copies; the first has one block in
/// each extent, the second three. The last four extents of both, on the Capacity tier, are read often.
struct Space {
    engine: Engine<MemoryQueue>,
    now: Nanos,
}

impl Space {
    fn with_hot_ones() -> Self {
        let vdisks = ["a", "b"].map(|name| {
            let mut wanted = disks::vdisk(name, 2, 2 * MIB);
            wanted.tier_bytes = [2 * MIB, 6 * MIB];
            wanted
        });
        let mut pool = disks::pool(4, vdisks.into());
        for disk in &mut pool.disks[2..] {
            disk.media = MediaType::Hdd;
        }
        let mut queue = disks::queue(4);
        create(&mut queue, disks::plan(4), &pool, 1).expect("it fits");
        let engine = Engine::start(queue, disks::plan(4), 8, 65536, 2).expect("it starts");
        let extents = engine.size(0) / EXTENT;
        let mut space = Self { engine, now: Nanos::ZERO };
        for (vdisk, blocks) in [(0, 1), (1, 3)] {
            for extent in 0..extents {
                space.ask(
                    vdisk,
                    RequestKind::Write { fua: false },
                    extent * EXTENT,
                    blocks * BLOCK,
                );
            }
            for nth in 0..200 {
                space.ask(vdisk, RequestKind::Read, (extents - 1 - nth % 4) * EXTENT, BLOCK);
            }
        }
        space
    }

    fn poll(&mut self) {
        self.now = Nanos(self.now.0 + 100_000);
        self.engine.poll(self.now, Nanos(1_000_000));
    }

    fn ask(&mut self, vdisk: u32, kind: RequestKind, offset: u64, len: u64) {
        let len = u32::try_from(len).expect("short");
        self.engine.submit(0, Request { kind, vdisk, offset, len });
        loop {
            self.poll();
            if let Some((_, outcome)) = self.engine.pop() {
                assert_eq!(outcome, Ok(()), "{kind:?} at {offset}");
                return;
            }
        }
    }

    fn begin(&mut self, vdisk: u32, settings: &OptimizeSettings) {
        assert!(self.engine.optimize(vdisk, settings, 5_000.0));
    }

    fn ended(&mut self, vdisk: u32) -> MoveFigures {
        for _ in 0..100_000 {
            if let Some(done) = self.engine.take_optimization(vdisk) {
                return done.report.facts.moves;
            }
            self.poll();
        }
        panic!("it never ends: {:?}", self.engine.optimization_progress(vdisk));
    }
}

fn unthrottled() -> OptimizeSettings {
    OptimizeSettings { rate: None, ..OptimizeSettings::default() }
}

/// 10.7: what was moved is that run's own, whatever moves beside it.
#[test]
fn each_of_two_optimizations_tells_its_own_moves_and_bytes() {
    let mut space = Space::with_hot_ones();
    let few =
        OptimizeSettings { limits: PlanLimits { moved: 6, promoted: u64::MAX }, ..unthrottled() };
    space.begin(0, &unthrottled());
    space.begin(1, &few);
    // Somebody else's, of an extent that nobody plans to move.
    space.engine.move_extent(1, 20, TierName::Capacity);
    let moves = [space.ended(0), space.ended(1)];
    assert_eq!((moves[0].up, moves[0].down, moves[0].stop), (4, 4, MoveStop::Done));
    assert_eq!((moves[1].up, moves[1].down, moves[1].stop), (3, 3, MoveStop::Budget));
    assert_eq!(moves.map(|own| own.bytes), [8 * BLOCK, 6 * 3 * BLOCK]);
    while space.engine.moves_left() > 0 {
        space.poll();
    }
    let other = space.engine.pop_move().expect("it has ended");
    assert_eq!(other.outcome, MoveOutcome::Moved);
    let all = space.engine.move_counters();
    assert_eq!(all.bytes, moves[0].bytes + moves[1].bytes + 3 * BLOCK);
    // The next one of the same disk goes on, and its count begins at nothing.
    space.begin(1, &unthrottled());
    let next = space.ended(1);
    assert_eq!((next.up, next.bytes), (1, (next.up + next.down) * 3 * BLOCK));
}

/// 10.5: moves have one throttle. While two optimizations are under way it keeps to the limits of both, and to those of the
/// one that is left then.
#[test]
fn neither_of_two_optimizations_goes_beyond_its_limits() {
    let least = 64 << 10;
    let slow = OptimizeSettings { rate: Some(least), movers: 1, ..OptimizeSettings::default() };
    // The one that is slow comes first, or last.
    for first in [0, 1] {
        let mut space = Space::with_hot_ones();
        let both = [slow, unthrottled()];
        space.begin(first, &both[usize::try_from(first).expect("small")]);
        space.begin(1 - first, &both[usize::try_from(1 - first).expect("small")]);
        assert_eq!(space.engine.move_rate(), Some(least), "{first}");
        for _ in 0..200 {
            space.poll();
        }
        let under_way = space.engine.perf().into_iter().find(|one| one.name == "Moves Under Way");
        assert_eq!(under_way.map(|one| one.value), Some(1), "one at a time: {first}");
        assert!(space.engine.optimizing(0) && space.engine.optimizing(1));
        space.engine.interrupt_optimization(0);
        assert_eq!(space.ended(0).stop, MoveStop::Load);
        assert_eq!(space.engine.move_rate(), None, "what is left has no limit");
        let left = space.ended(1);
        assert_eq!((left.stop, left.up), (MoveStop::Done, 4));
        let limits = left.limits.expect("it had some");
        assert_eq!((limits.bytes_per_s, limits.movers), (None, 8));
    }
}
