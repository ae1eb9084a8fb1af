//! Faults are planted and must be found, with kind and place; where none are, nothing may be found.

mod adversary;
mod planted;
mod restarts;

use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use plumb_units::Nanos;
use plumb_units::convert::index;

use super::*;
use crate::clock::ManualClock;
use crate::sim::{Content as Kept, DiskSpec, Service, SimOpener};
use crate::{
    Done, FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, Opener, QueueSpec, QueueUse,
    RegionSpec, Slot, TargetFile,
};

/// A seeded sequence. Steele, Lea, Flood: SplitMix64.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// What a load looks like.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) ops: u64,
    pub(super) depth: u32,
    pub(super) write_percent: u64,
    /// Blocks of the largest I/O.
    pub(super) blocks_max: u64,
    pub(super) seed: u64,
}

/// One I/O of `load` on one of the spaces.
pub(super) fn draw(dice: &mut Dice, spaces: &[Arc<Space>], load: &Load, slot: u32) -> Op {
    let file = dice.below(spaces.len().try_into().expect("few"));
    let space = &spaces[usize::try_from(file).expect("few")];
    let is_write = dice.below(100) < load.write_percent;
    // Reads need not know of blocks.
    let unit = if is_write { u64::from(space.block()) } else { u64::from(SECTOR) };
    let most = load.blocks_max * u64::from(space.block()) / unit;
    let len = (1 + dice.below(most)) * unit;
    let offset = dice.below((space.size() - len) / unit + 1) * unit;
    Op {
        kind: if is_write { OpKind::Write } else { OpKind::Read },
        file: FileIndex(u32::try_from(file).expect("few")),
        slot: Slot(slot),
        len: u32::try_from(len).expect("small"),
        offset,
        memory: Memory::Lane(LaneIndex(0)),
    }
}

/// Puts `load` through a queue; how many I/Os were good.
pub(super) fn put<Q: IoQueue + ?Sized>(
    queue: &mut VerifyQueue<'_, Q>,
    spaces: &[Arc<Space>],
    load: Load,
) -> u64 {
    let mut dice = Dice(load.seed);
    let (mut issued, mut outstanding, mut good) = (0, 0, 0);
    let mut idle: Vec<u32> = (0..load.depth).collect();
    while issued < load.ops || outstanding > 0 {
        while issued < load.ops
            && let Some(slot) = idle.pop()
        {
            queue.push(draw(&mut dice, spaces, &load, slot));
            (issued, outstanding) = (issued + 1, outstanding + 1);
            if dice.below(3) == 0 {
                break;
            }
        }
        let wanted = u32::from(idle.is_empty() || issued == load.ops);
        queue.submit_and_wait(wanted, Nanos::NEVER).expect("it takes all");
        queue.look();
        while let Some(Done { slot, result }) = queue.pop() {
            idle.push(slot.0);
            outstanding -= 1;
            good += u64::from(result > 0);
        }
    }
    good
}

/// Files of these sizes on simulated disks that keep what is written.
pub(super) fn opener(disk: DiskSpec) -> SimOpener {
    SimOpener::new(DiskSpec { content: Kept::Kept, ..disk }, ManualClock::default())
}

pub(super) fn quick() -> DiskSpec {
    DiskSpec {
        service: Service::Uniform(Nanos(1000), Nanos(100_000)),
        parallelism: 4,
        ..DiskSpec::default()
    }
}

/// Hands a queue over files of these sizes, with buffers of `bytes`, to `body`.
pub(super) fn with<R>(
    opener: &SimOpener,
    sizes: &[u64],
    (depth, bytes): (u32, u32),
    body: impl FnOnce(&mut dyn IoQueue) -> R,
) -> R {
    struct Body<F>(F);
    impl<R, F: FnOnce(&mut dyn IoQueue) -> R> QueueUse for Body<F> {
        type Output = R;
        fn with<Q: IoQueue>(self, mut queue: Q) -> R {
            (self.0)(&mut queue)
        }
    }
    let file = |(nth, size): (usize, &u64)| TargetFile {
        descriptor: File::options().read(true).write(true).open("/dev/null").expect("there").into(),
        path: format!("sim{nth}").into(),
        size: *size,
        priority: None,
        mapping: None,
    };
    let lane = LaneSpec { first_slot: 0, slots: depth, bytes };
    let spec = QueueSpec {
        depth,
        files: sizes.iter().enumerate().map(file).collect(),
        regions: vec![RegionSpec { lanes: vec![lane] }],
        ..QueueSpec::default()
    };
    opener.open(spec, Body(body)).expect("a simulated queue")
}

/// Reads all of `space` back; mismatches are in the verification.
pub(super) fn check_all(
    verification: &Verification,
    queue: &mut dyn IoQueue,
    spaces: &[Arc<Space>],
    pass: Pass,
) -> Checked {
    let mut queue =
        VerifyQueue::new(queue, verification, spaces.to_vec(), (DEPTH, BUFFER), pass, &|| {});
    let mut checked = Checked { complete: true, ..Checked::default() };
    for (nth, space) in (0..).zip(spaces) {
        let one = check(&mut queue, FileIndex(nth), space, &mut |_, _| true);
        checked.add(one.expect("a simulated queue takes all"));
    }
    checked
}

pub(super) fn nothing_found(verification: &Verification) {
    let found: Vec<String> =
        verification.findings().first().iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// A write or read of `len` bytes in slot 0, waited for.
pub(super) fn one<Q: IoQueue + ?Sized>(
    queue: &mut VerifyQueue<'_, Q>,
    kind: OpKind,
    offset: u64,
    len: u32,
) -> i32 {
    let (file, slot, memory) = (FileIndex(0), Slot(0), Memory::Lane(LaneIndex(0)));
    queue.push(Op { kind, file, slot, len, offset, memory });
    queue.submit_and_wait(1, Nanos::NEVER).expect("it takes all");
    queue.look();
    queue.pop().expect("it was waited for").result
}

#[test]
fn overlapping_ios_of_a_sound_disk_are_no_mismatch() {
    let sizes = [96 << 10, 1 << 20, (1 << 20) + 1536];
    let opener = opener(quick());
    let verification = Verification::new();
    let blocks = [512, 4096, 12_288];
    let spaces: Vec<_> = (0..3)
        .map(|nth| {
            let path = format!("sim{nth}");
            verification
                .space(Path::new(&path), (sizes[nth], sizes[nth]), blocks[nth])
                .expect("in memory")
        })
        .collect();
    // Two generations of threads, four at a time, each with a queue of its own.
    for round in 0..2 {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (opener, verification, spaces) = (&opener, &verification, &spaces);
                scope.spawn(move || {
                    with(opener, &sizes, (16, 16 * 12_288), |queue| {
                        let found = Cell::new(0);
                        let on_mismatch = || found.set(found.get() + 1);
                        let depth = (16, 16 * 12_288);
                        let mut queue = VerifyQueue::new(
                            queue,
                            verification,
                            spaces.clone(),
                            depth,
                            Pass::Load,
                            &on_mismatch,
                        );
                        let load = Load {
                            ops: 5_000,
                            depth: 16,
                            write_percent: 20 * thread + 20,
                            blocks_max: 16,
                            seed: round * 4 + thread,
                        };
                        assert_eq!(put(&mut queue, spaces, load), 5_000);
                        assert_eq!(found.get(), 0);
                    });
                });
            }
        });
    }
    with(&opener, &sizes, (DEPTH, BUFFER), |queue| {
        let checked = check_all(&verification, queue, &spaces, Pass::After);
        assert!(checked.complete && checked.bytes == checked.of_bytes, "{checked:?}");
        assert_eq!(checked.unreadable_bytes, 0);
        let written: u64 = spaces.iter().map(|s| s.written_blocks() * u64::from(s.block())).sum();
        assert_eq!(checked.bytes, written);
        assert!(written > 1 << 20, "{written}");
    });
    nothing_found(&verification);
    assert!(spaces.iter().all(|space| space.checked() > 0 && space.acknowledged() > 0));
}

#[test]
fn memory_is_what_it_is_said_to_be() {
    // 8 bytes per block and a lock per 1024 of them.
    let of_tebibyte = Space::memory(1 << 40, 4096);
    let blocks = 1_u64 << 28;
    assert!(of_tebibyte >= 8 * blocks && of_tebibyte <= 8 * blocks + blocks / 8, "{of_tebibyte}");
    assert_eq!(index(SECTOR), 512);
}
