//! Copying an extent that moves, run by run: from a copy that verifies to all copies of the new place.

use plumb_io::{FlushQueue, OpKind};
use plumb_units::convert::{index, to_u64};

use super::Engine;
use super::moved::MoveOutcome;
use super::moving::{Moving, PASSES, Phase, Run};
use super::part::NONE;
use crate::extents::{Copies, locate};
use crate::format::checksum;
use crate::io::Tag;
use crate::mutation::{Mutation, active};

impl<Q: FlushQueue> Engine<Q> {
    /// Copies the next blocks; `true` when there are none left in this phase.
    pub(super) fn copy_on(&mut self, nth: u32, own: &mut Moving) -> bool {
        if let Some(run) = own.run.take() {
            if !run.writing {
                if self.judge_run(own, run) {
                    self.write_run(nth, own, run);
                } else {
                    self.read_again(nth, own, run);
                }
                return false;
            }
            if own.failed {
                own.spoiled = Some(MoveOutcome::Interrupted);
                return false;
            }
            let bytes = u64::from(run.end - run.first) * 4096;
            self.moves.counters.bytes += bytes;
            if own.wanted.reason.is_some() {
                self.optimizer.note_bytes(own.vdisk, bytes);
            }
        }
        loop {
            let Some((first, end)) = self.next_run(own) else {
                let again = own.phase == Phase::Copy && own.pass + 1 < PASSES;
                if again && own.todo.iter().any(|todo| *todo) {
                    (own.pass, own.cursor) = (own.pass + 1, 0);
                    continue;
                }
                return true;
            };
            let bytes = to_u64(index(end - first)) * 4096;
            if own.phase == Phase::Copy && !self.moves.throttle.affords(bytes, self.now) {
                return false;
            }
            let config = &self.core.members.config;
            let copies = config.vdisks[own.vdisk].copies;
            // Requests are served first; a hold is not kept waiting.
            let spare = if own.phase == Phase::Copy { 4 } else { 0 };
            if self.core.io.data_slots_free() < usize::from(copies) + spare {
                return false;
            }
            let mut slots = [NONE; 3];
            for slot in slots.iter_mut().take(usize::from(copies)) {
                *slot = self.core.io.take_data_slot().unwrap_or(NONE);
            }
            if own.phase == Phase::Copy {
                self.moves.throttle.spend(bytes, 1 + u64::from(copies), self.now);
            }
            // First, so that a write that ends while they are read is seen.
            own.todo[index(first)..index(end)].fill(false);
            own.cursor = end;
            let source = self.place_of(own.vdisk, own.from, first);
            // What has yet to leave a disk that is emptied lies there still.
            let source = self.core.members.as_it_lies(own.wanted.extent, source);
            let run = Run { first, end, slots, source, tried: 0, writing: false };
            self.read_again(nth, own, run);
            return false;
        }
    }

    fn place_of(&self, vdisk: usize, place: u32, block: u32) -> Copies {
        let members = &self.core.members;
        let config = &members.config;
        let own = &config.vdisks[vdisk];
        locate(own, &members.geometry, config.extent_bytes, place, block * 4096)
    }

    /// Written blocks that are to be copied, from the cursor on, as many as one I/O takes.
    fn next_run(&self, own: &mut Moving) -> Option<(u32, u32)> {
        let config = &self.core.members.config;
        let piece = config.vdisks[own.vdisk].interleave.min(config.extent_bytes);
        let step = self.core.io.plan().data_bytes.min(piece) / 4096;
        let sums = &self.core.extents.get(own.wanted.extent).sums;
        let written = |block: u32| sums.get(index(block)).is_some_and(|sum| sum.newest != 0);
        let blocks = self.core.extents.blocks;
        let first = (own.cursor..blocks).find(|block| {
            // What is unwritten reads as zero wherever it lies (MOV-1).
            own.todo[index(*block)] &= written(*block);
            own.todo[index(*block)]
        })?;
        let most = (first - first % step + step).min(blocks);
        let goes_on = |block: &u32| own.todo[index(*block)] && written(*block);
        let end = (first + 1..most).take_while(goes_on).last().map_or(first + 1, |last| last + 1);
        Some((first, end))
    }

    /// Reads a run from a copy that was not tried; without one the move ends, and nothing is made of it.
    fn read_again(&mut self, nth: u32, own: &mut Moving, mut run: Run) {
        let extent = own.wanted.extent;
        let able = |copy: &(u8, u16, u64)| {
            run.tried >> copy.0 & 1 == 0 && self.core.members.in_sync(copy.1, extent)
        };
        let found = run.source.iter().find(able).filter(|_| run.slots[0] != NONE);
        let Some((copy, disk, offset)) = found else {
            if run.tried != 0 && run.end - run.first > 1 && !active(Mutation::RunsUndivided) {
                // What is bad of one copy may be another block than what is bad of another one: the first alone, and then the rest.
                own.todo[index(run.first)..index(run.end)].fill(true);
                own.todo[index(run.first)] = false;
                own.cursor = run.first + 1;
                (run.end, run.tried) = (run.first + 1, 0);
                self.read_again(nth, own, run);
                return;
            }
            self.drop_run(run);
            own.spoiled = Some(MoveOutcome::Unreadable);
            return;
        };
        run.tried |= 1 << copy;
        run.writing = false;
        (own.left, own.failed) = (1, false);
        let place = (run.slots[0], offset, (run.end - run.first) * 4096);
        self.core.io.push_part(OpKind::Read, disk, place, Tag::Move { nth, disk });
        own.run = Some(run);
    }

    /// Whether what was read may be written. While requests go on, a block that does not verify may be one that is
    /// being written: it is copied again. When nobody writes, it is bad on that copy.
    fn judge_run(&mut self, own: &mut Moving, run: Run) -> bool {
        if own.failed {
            return false;
        }
        let extent = own.wanted.extent;
        let seed = self.core.members.data_seeds[own.vdisk];
        let mut bad = false;
        for block in run.first..run.end {
            let wanted = self.core.extents.get(extent).sums.get(index(block));
            let wanted = wanted.map_or(0, |sum| sum.newest);
            if wanted == 0 {
                continue;
            }
            let from = index(block - run.first) * 4096;
            let number = self.block_of_vdisk(extent, block);
            let bytes = &self.core.io.data(run.slots[0])[from..from + 4096];
            self.core.counters.blocks_verified += 1;
            if checksum::block(seed, number, bytes) != wanted && !active(Mutation::MoveUnverified) {
                own.todo[index(block)] = true;
                bad = true;
            }
        }
        let held = own.phase == Phase::Last;
        if bad && held {
            self.core.counters.mismatches += 1;
            if run.source.count > 1 && !self.heal.contains(&extent) && self.heal.len() < 64 {
                self.heal.push(extent);
            }
        }
        !(bad && held)
    }

    /// Writes a run to all copies of the new place.
    fn write_run(&mut self, nth: u32, own: &mut Moving, mut run: Run) {
        let target = self.place_of(own.vdisk, own.to, run.first);
        let len = (run.end - run.first) * 4096;
        for slot in &run.slots[1..usize::from(target.count)] {
            self.core.io.copy_data(run.slots[0], *slot, index(len));
        }
        if own.phase == Phase::Last {
            own.todo[index(run.first)..index(run.end)].fill(false);
        }
        run.writing = true;
        (own.left, own.failed) = (target.count.into(), false);
        own.unflushed = true;
        for ((_, disk, offset), slot) in target.iter().zip(run.slots) {
            self.core.io.push_part(
                OpKind::Write,
                disk,
                (slot, offset, len),
                Tag::Move { nth, disk },
            );
        }
        own.run = Some(run);
    }

    pub(super) fn drop_run(&mut self, run: Run) {
        for slot in run.slots.into_iter().filter(|slot| *slot != NONE) {
            self.core.io.give_data_slot(slot);
            self.slot_freed();
        }
    }
}
