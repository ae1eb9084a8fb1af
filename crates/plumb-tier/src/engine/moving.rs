//! One move of an extent, step by step (10.4).
//!
//! An extent is copied to a free slot while requests go on; what they write meanwhile is copied again, until nobody
//! writes to it or patience is at an end. Then writes to it are held for a moment: those under way end, the rest is
//! copied, the slot's disks are flushed, and one record says where the extent lies from now on. Until that record the old
//! place is in force and the new slot belongs to nobody, so nothing has to be written down when a move begins or is given
//! up. Checksums belong to the extent and not to its place, so they stay as they are.

use plumb_io::{Errno, FlushQueue};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::Engine;
use super::moved::MoveOutcome;
use super::moves::Wanted;
use super::part::{NONE, Part, PartKind, Step};
use crate::extents::{Copies, UNMAPPED, disks_of, is_second_tier};
use crate::format::Generation;
use crate::format::frame::Record;
use crate::io::Tag;
use crate::mutation::{Mutation, active};
use crate::optimizer::TierName;

/// How often an extent is gone through before its writes are held.
pub(super) const PASSES: u8 = 3;
/// So long writes are held at most (MOV-2); then the move is given up.
const HOLD_MAX: Nanos = Nanos(100_000_000);
/// The same where an extent moves up: 99 of 100 writes are to be held for 20 ms at most where rotating disks are read (section 25).
const HOLD_MAX_UP: Nanos = Nanos(18_000_000);

fn hold_max(own: &Moving) -> Nanos {
    match own.wanted.to {
        TierName::Performance => HOLD_MAX_UP,
        TierName::Capacity => HOLD_MAX,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Copying, while requests go on.
    Copy,
    /// The first flush, so that the one while writes are held is short.
    Flush,
    /// Waits for the writes that are under way; later ones wait for it.
    Hold,
    /// Copying what is left, nobody else writes.
    Last,
    LastFlush,
    /// The frame that says so must be durable.
    Commit(u64),
    /// Readers of the old place must end.
    Leave(u64),
}

/// Whether a move that is copied takes its last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chance {
    Now,
    /// What was written meanwhile is copied first, while requests go on.
    CopyFirst,
    /// When fewer requests write to it.
    Later,
}

/// What is copied now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) slots: [u32; 3],
    pub(super) source: Copies,
    /// Copies of the source that are no good.
    pub(super) tried: u8,
    pub(super) writing: bool,
}

#[derive(Debug)]
pub(super) struct Moving {
    pub(super) wanted: Wanted,
    pub(super) vdisk: usize,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) generation: Generation,
    /// Blocks to copy, or to copy again.
    pub(super) todo: Vec<bool>,
    pub(super) pass: u8,
    pub(super) cursor: u32,
    pub(super) phase: Phase,
    pub(super) run: Option<Run>,
    /// Device I/Os under way, and whether one of them failed.
    pub(super) left: u32,
    pub(super) failed: bool,
    pub(super) unflushed: bool,
    pub(super) part: u32,
    /// Since when writes to the extent wait; NEVER: they do not.
    pub(super) held_since: Nanos,
    /// Since when it could be held but for writes; NEVER until then.
    waits_since: Nanos,
    /// Patience is at an end: the next hold comes whoever writes.
    impatient: bool,
    /// It ends so as soon as nothing is under way.
    pub(super) spoiled: Option<MoveOutcome>,
}

impl Moving {
    /// Whether blocks are left to be copied.
    fn has_rest(&self) -> bool {
        self.todo.iter().any(|todo| *todo)
    }

    pub(super) fn is_committed(&self) -> bool {
        matches!(self.phase, Phase::Commit(_) | Phase::Leave(_))
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// Finds a slot for an extent; `Err(None)`: there may be one later.
    pub(super) fn begin_move(&mut self, wanted: Wanted) -> Result<Moving, Option<MoveOutcome>> {
        let extent = wanted.extent;
        let vdisk = self.core.vdisk(extent);
        let from = self.core.extents.place(extent);
        let second = wanted.to == TierName::Capacity;
        if self.core.members.config.vdisks[vdisk].tiers.len() < 2 {
            return Err(Some(MoveOutcome::OneTier));
        }
        if from == UNMAPPED {
            return Err(Some(MoveOutcome::Unmapped));
        }
        if self.moves.under_way.iter().flatten().any(|own| own.wanted.extent == extent) {
            return Err(None);
        }
        if is_second_tier(from) == second {
            return Err(Some(MoveOutcome::There));
        }
        if self.core.extents.is_away(extent) {
            self.want_sums(extent);
            return Err(None);
        }
        if self.core.deferred.has(extent) {
            if !self.to_settle.contains(&extent) {
                self.to_settle.push(extent);
            }
            return Err(None);
        }
        // What a start could not read is left to the next one, where it is (MOV-3).
        if self.core.is_unsettled(extent) {
            return Err(Some(MoveOutcome::Unreadable));
        }
        let Some(to) = self.core.extents.take_for_move(vdisk, second) else {
            let later = self.moves.count > 0 || !self.core.freeing.is_empty();
            if later {
                let lsn = self.core.freeing.iter().map(|one| one.0).max().unwrap_or(0);
                self.core.journal.want(lsn);
            }
            return Err((!later).then_some(MoveOutcome::NoRoom));
        };
        let healthy = |disk: u16| self.core.members.in_sync(disk, extent);
        if !self.disks_of_place(vdisk, to).into_iter().all(healthy) {
            self.core.extents.release(vdisk, to);
            return Err(Some(MoveOutcome::Degraded));
        }
        Ok(Moving {
            wanted,
            vdisk,
            from,
            to,
            generation: self.core.members.config.generation,
            todo: vec![true; index(self.core.extents.blocks)],
            pass: 0,
            cursor: 0,
            phase: Phase::Copy,
            run: None,
            left: 0,
            failed: false,
            unflushed: false,
            part: NONE,
            held_since: Nanos::NEVER,
            waits_since: Nanos::NEVER,
            impatient: false,
            spoiled: None,
        })
    }

    fn disks_of_place(&self, vdisk: usize, place: u32) -> Vec<u16> {
        let config = &self.core.members.config;
        let own = &config.vdisks[vdisk];
        disks_of(own, &self.core.members.geometry, config.extent_bytes, place)
    }

    /// Looks whether a move can still be made; if not, nobody waits for it any longer.
    fn guard_move(&mut self, own: &mut Moving) {
        if self.halted.is_some() {
            own.spoiled = Some(MoveOutcome::Interrupted);
        } else if own.is_committed() {
            return;
        } else if self.core.extents.place(own.wanted.extent) != own.from {
            own.spoiled = Some(MoveOutcome::Unmapped);
        } else if self.core.members.config.generation != own.generation {
            own.spoiled = Some(MoveOutcome::Interrupted);
        } else if own.part != NONE && self.now.since(own.held_since) > hold_max(own) {
            own.spoiled = own.spoiled.or(Some(MoveOutcome::Busy));
        }
        if own.spoiled.is_some() {
            self.let_go(own);
        }
    }

    /// Writes to the extent go on.
    fn let_go(&mut self, own: &mut Moving) {
        let since = std::mem::replace(&mut own.held_since, Nanos::NEVER);
        if since != Nanos::NEVER {
            self.moves.note_hold(own.wanted.to, self.now.since(since));
        }
        let part = std::mem::replace(&mut own.part, NONE);
        if part != NONE {
            self.locks.leave(part, &mut self.parts, &mut self.ready);
            self.parts[index(part)].step = Step::Free;
            self.moves.free_parts.push(part);
        }
    }

    /// Stands in the line for the whole of the extent.
    fn stand_in_line(&mut self, own: &mut Moving, kind: PartKind) {
        let part = self.moves.free_parts.pop().expect("a part for each move");
        self.parts[index(part)] = Part {
            client: NONE,
            kind,
            extent: own.wanted.extent,
            len: self.core.extents.blocks * 4096,
            step: Step::Lock,
            queued: true,
            ..Part::default()
        };
        self.locks.enter(part, &mut self.parts);
        self.ready.push_back(part);
        own.part = part;
    }

    /// Takes a move as far as it goes; what became of it when it has ended.
    pub(super) fn advance_move(&mut self, nth: u32, own: &mut Moving) -> Option<MoveOutcome> {
        self.guard_move(own);
        if own.left > 0 {
            return None;
        }
        if let Some(outcome) = own.spoiled {
            return Some(outcome);
        }
        loop {
            match own.phase {
                Phase::Copy | Phase::Last => {
                    if !self.copy_on(nth, own) {
                        return own.spoiled.filter(|_| own.left == 0);
                    }
                    own.phase = match own.phase {
                        Phase::Copy => Phase::Flush,
                        _ if own.unflushed => Phase::LastFlush,
                        _ => self.commit_move(own),
                    };
                }
                Phase::Flush | Phase::LastFlush if own.unflushed => {
                    self.flush_move(nth, own);
                    if own.left > 0 {
                        return None;
                    }
                    if own.unflushed || own.spoiled.is_some() {
                        // For want of slots: soon. Without its disk: never.
                        return own.spoiled;
                    }
                }
                Phase::Flush => match self.chance(own) {
                    Chance::Later => return None,
                    Chance::CopyFirst => (own.phase, own.cursor) = (Phase::Copy, 0),
                    Chance::Now => {
                        own.held_since = self.now;
                        self.stand_in_line(own, PartKind::Move);
                        own.phase = Phase::Hold;
                        return None;
                    }
                },
                Phase::Hold if self.parts[index(own.part)].step != Step::Held => return None,
                Phase::Hold => {
                    (own.phase, own.cursor) = (Phase::Last, 0);
                }
                Phase::LastFlush => own.phase = self.commit_move(own),
                Phase::Commit(lsn) if lsn > self.core.journal.durable => return None,
                Phase::Commit(lsn) => {
                    self.let_go(own);
                    self.stand_in_line(own, PartKind::Leave);
                    own.phase = Phase::Leave(lsn);
                    return None;
                }
                Phase::Leave(_) if self.parts[index(own.part)].step != Step::Held => return None,
                Phase::Leave(lsn) => {
                    self.core.freeing.push((lsn, own.vdisk, own.from));
                    self.core.release_slots();
                    return Some(MoveOutcome::Moved);
                }
            }
        }
    }

    /// Whether writes to an extent that is copied and flushed are held now. While requests write to it, each hold would
    /// wait for them, and for what they wrote to be copied once more. None begins while a checkpoint is due, which stops all I/O.
    fn chance(&self, own: &mut Moving) -> Chance {
        if self.is_checkpoint_due() {
            return Chance::Later;
        }
        if self.moves.patience == Nanos::ZERO {
            return Chance::Now;
        }
        if own.waits_since == Nanos::NEVER {
            own.waits_since = self.now;
        }
        let quiet = self.core.extents.get(own.wanted.extent).writers == 0;
        match own.has_rest() {
            _ if own.impatient => Chance::Now,
            false if quiet => Chance::Now,
            // Before the next: what does not verify is left to copy however often it is tried, until the last time.
            rest if self.now.since(own.waits_since) >= self.moves.patience
                && !(quiet && active(Mutation::QuietMovesOn)) =>
            {
                own.impatient = true;
                if rest { Chance::CopyFirst } else { Chance::Now }
            }
            true if quiet => Chance::CopyFirst,
            _ => Chance::Later,
        }
    }

    /// From now on the extent lies at its new place; the record is on its way.
    fn commit_move(&mut self, own: &Moving) -> Phase {
        let (extent, place) = (own.wanted.extent, own.to);
        let lsn = self.core.vacate(extent, Record::Moved { extent, place });
        self.core.extents.list.set_place(extent, place);
        self.core.trees.touch_map(extent);
        self.core.journal.want(lsn);
        if active(Mutation::MovedSlotReusedEarly) {
            self.core.extents.release(own.vdisk, own.from);
        }
        Phase::Commit(lsn)
    }

    /// Flushes the disks of the new place, if there are slots for that.
    fn flush_move(&mut self, nth: u32, own: &mut Moving) {
        if active(Mutation::MoveUnflushed) {
            own.unflushed = false;
            return;
        }
        let disks = self.disks_of_place(own.vdisk, own.to);
        if self.core.io.data_slots_free() < disks.len() {
            return;
        }
        own.unflushed = false;
        for disk in disks {
            let Some(slot) = self.core.io.take_data_slot() else { continue };
            if self.core.io.push_slot_flush(disk, slot, Tag::MoveFlush { nth, disk }) {
                own.left += 1;
            } else {
                self.core.io.give_data_slot(slot);
                own.spoiled = Some(MoveOutcome::Interrupted);
            }
        }
    }

    /// A device I/O of a move has ended.
    pub(super) fn move_io_done(
        &mut self,
        nth: u32,
        (disk, flush): (u16, bool),
        slot: u32,
        outcome: Result<u32, Errno>,
    ) {
        let failed = outcome.is_err();
        let Some(own) = &mut self.moves.under_way[index(nth)] else { return };
        own.left -= 1;
        own.failed |= failed;
        let reading = !flush && own.run.is_some_and(|run| !run.writing);
        if reading {
            if self.core.io.is_abandoned(slot)
                && let Some(run) = &mut own.run
            {
                run.slots.iter_mut().filter(|own| **own == slot).for_each(|own| *own = NONE);
            }
            return;
        }
        if let Some(run) = &mut own.run {
            run.slots.iter_mut().filter(|own| **own == slot).for_each(|own| *own = NONE);
        }
        self.core.io.give_data_slot(slot);
        self.slot_freed();
        if failed {
            // A flush that failed is never made good by the next one (C10).
            own_spoiled(&mut self.moves.under_way[index(nth)]);
            self.trouble.push(disk);
            if flush {
                self.moves.flush_failed.push(disk);
            }
        }
    }

    /// A move has ended, and nothing of it is under way.
    pub(super) fn end_move(&mut self, mut own: Moving, outcome: MoveOutcome) {
        self.let_go(&mut own);
        if let Some(run) = own.run.take() {
            self.drop_run(run);
        }
        if !own.is_committed() {
            self.core.extents.release(own.vdisk, own.to);
        }
        self.moves.count -= 1;
        self.ready.extend(self.moves.place_wait.drain(..));
        self.tell_move(own.wanted, outcome);
    }
}

fn own_spoiled(own: &mut Option<Box<Moving>>) {
    if let Some(own) = own.as_mut().filter(|own| !own.is_committed()) {
        own.spoiled = Some(MoveOutcome::Interrupted);
    }
}
