//! A disk that does everything a sound disk may do: overlapping writes arrive in any order and mixed by
//! sector, reads see sectors half written, I/Os end in any order, fail after a part, or fall short.

use std::cell::Cell;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_usize};

use super::super::*;
use super::{Dice, Load, check_all, nothing_found, put};
use crate::{Done, Errno, IoQueue, LaneIndex, Op, OpKind, QueueFacts, Slot};

const HALF: u64 = 256;

#[derive(Default)]
struct Medium {
    bytes: Vec<u8>,
    /// Sectors of which a write has moved the first half: other writes wait, reads do not.
    half_written: HashSet<(u64, usize)>,
}

struct Running {
    op: Op,
    /// Sectors to move, each in two steps.
    left: Vec<u64>,
    /// The sector whose second half is missing.
    half: Option<u64>,
    result: i32,
}

struct Adversary {
    media: Vec<Arc<Mutex<Medium>>>,
    buffers: Vec<Vec<u8>>,
    running: Vec<Running>,
    done: Vec<Done>,
    dice: Dice,
    faults: bool,
}

impl Adversary {
    fn new(
        media: &[Arc<Mutex<Medium>>],
        (depth, bytes): (u32, u32),
        seed: u64,
        faults: bool,
    ) -> Self {
        Self {
            media: media.to_vec(),
            buffers: vec![vec![0; index(bytes)]; index(depth)],
            running: Vec::new(),
            done: Vec::new(),
            dice: Dice(seed),
            faults,
        }
    }

    /// Moves half a sector of one I/O, or ends it.
    fn step(&mut self) {
        let nth = to_usize(self.dice.below(self.running.len().try_into().expect("few")));
        let running = &mut self.running[nth];
        let op = running.op;
        let mut medium = self.media[index(op.file.0)].lock().expect("no thread panics");
        let medium = &mut *medium;
        let write = op.kind == OpKind::Write;
        let sector = match running.half {
            Some(sector) => sector,
            None if running.left.is_empty() => {
                let Running { op, result, .. } = self.running.swap_remove(nth);
                self.done.push(Done { slot: op.slot, result });
                return;
            }
            None => {
                let pick = self.dice.below(running.left.len().try_into().expect("few"));
                let sector = running.left[to_usize(pick)];
                let key = (sector, index(op.file.0));
                if write && !medium.half_written.insert(key) {
                    return;
                }
                running.left.swap_remove(to_usize(pick));
                sector
            }
        };
        let second = running.half.is_some();
        let at = to_usize(sector * 512 + if second { HALF } else { 0 });
        let in_buffer = at - to_usize(op.offset);
        let buffer = &mut self.buffers[index(op.slot.0)][in_buffer..in_buffer + to_usize(HALF)];
        let bytes = &mut medium.bytes[at..at + to_usize(HALF)];
        match op.kind {
            OpKind::Write => bytes.copy_from_slice(buffer),
            OpKind::Read => buffer.copy_from_slice(bytes),
        }
        running.half = (!second).then_some(sector);
        if write && second {
            medium.half_written.remove(&(sector, index(op.file.0)));
        }
    }
}

impl IoQueue for Adversary {
    fn push(&mut self, op: Op) {
        let sectors = u64::from(op.len / SECTOR);
        let first = op.offset / 512;
        let (mut result, mut moved) = (i32::try_from(op.len).expect("small"), op.len);
        if self.faults && self.dice.below(20) == 0 {
            // A part of it happens.
            moved = to_u32(to_usize(self.dice.below(sectors + 1))) * SECTOR;
            result =
                if self.dice.below(2) == 0 { -5 } else { i32::try_from(moved).expect("small") };
        }
        let mut left: Vec<u64> = (first..first + u64::from(moved / SECTOR)).collect();
        if result < 0 {
            left.retain(|_| self.dice.below(2) == 0);
        }
        self.running.push(Running { op, left, half: None, result });
    }

    fn submit_and_wait(&mut self, wanted: u32, _timeout: Nanos) -> Result<(), Errno> {
        let mut steps = self.dice.below(40);
        while !self.running.is_empty() && (steps > 0 || self.done.len() < index(wanted)) {
            self.step();
            steps = steps.saturating_sub(1);
        }
        Ok(())
    }

    fn look(&mut self) -> u32 {
        to_u32(self.done.len())
    }

    fn pop(&mut self) -> Option<Done> {
        self.done.pop()
    }

    fn buffer_mut(&mut self, slot: Slot, _lane: LaneIndex) -> &mut [u8] {
        &mut self.buffers[index(slot.0)]
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts::default()
    }
}

/// Threads hammer small targets; the I/Os of all of them.
fn hammer(threads: u64, ops: u64, blocks: u64, faults: bool, seed: u64) {
    let block = 2048;
    let media: Vec<Arc<Mutex<Medium>>> = (0..2)
        .map(|_| {
            let bytes = vec![0; to_usize(blocks * block)];
            Arc::new(Mutex::new(Medium { bytes, ..Medium::default() }))
        })
        .collect();
    let verification = Verification::new();
    let space =
        |name: &str| verification.space(Path::new(name), (blocks * block, blocks * block), 2048);
    let spaces: Vec<_> = ["a", "b"].map(|name| space(name).expect("in memory")).into();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (media, verification, spaces) = (&media, &verification, &spaces);
            scope.spawn(move || {
                let seed = seed * 100 + thread;
                let size = (8, 4 * 2048);
                let mut disk = Adversary::new(media, size, seed, faults);
                let found = Cell::new(false);
                let on_mismatch = || found.set(true);
                let mut queue = VerifyQueue::new(
                    &mut disk,
                    verification,
                    spaces.clone(),
                    size,
                    Pass::Load,
                    &on_mismatch,
                );
                let load = Load { ops, depth: 8, write_percent: 50, blocks_max: 4, seed };
                put(&mut queue, spaces, load);
                assert!(!found.get(), "{:#?}", verification.findings().first());
            });
        }
    });
    let mut disk = Adversary::new(&media, (DEPTH, BUFFER), seed, false);
    let checked = check_all(&verification, &mut disk, &spaces, Pass::After);
    assert_eq!((checked.bytes, checked.unreadable_bytes), (checked.of_bytes, 0));
    assert!(checked.bytes > 0);
    nothing_found(&verification);
}

#[test]
fn what_a_sound_disk_may_do_is_no_mismatch() {
    // 120,000 I/Os, most of which overlap others.
    hammer(1, 20_000, 8, false, 1);
    hammer(1, 20_000, 40, true, 2);
    hammer(4, 10_000, 16, false, 3);
    hammer(4, 10_000, 16, true, 4);
}

#[test]
fn an_old_block_is_found_in_the_midst_of_it() {
    // The same load, but the disk goes back in time once: some of it must be seen.
    let block = 2048_u64;
    let media =
        vec![Arc::new(Mutex::new(Medium { bytes: vec![0; 16 * 2048], ..Medium::default() }))];
    let verification = Verification::new();
    let space =
        verification.space(Path::new("a"), (16 * block, 16 * block), 2048).expect("in memory");
    let spaces = [space];
    let load = |seed| Load { ops: 300, depth: 8, write_percent: 70, blocks_max: 4, seed };
    let run = |seed| {
        let mut disk = Adversary::new(&media, (8, 4 * 2048), seed, false);
        let on_mismatch = || {};
        let spaces = spaces.to_vec();
        let mut queue = VerifyQueue::new(
            &mut disk,
            &verification,
            spaces.clone(),
            (8, 4 * 2048),
            Pass::Load,
            &on_mismatch,
        );
        put(&mut queue, &spaces, load(seed));
    };
    run(1);
    let before = media[0].lock().expect("no thread panics").bytes.clone();
    run(2);
    nothing_found(&verification);
    media[0].lock().expect("no thread panics").bytes = before;
    let mut disk = Adversary::new(&media, (DEPTH, BUFFER), 3, false);
    check_all(&verification, &mut disk, &spaces, Pass::After);
    assert!(spaces[0].mismatches(Kind::Stale) > 8, "{}", spaces[0].mismatches(Kind::Stale));
}
