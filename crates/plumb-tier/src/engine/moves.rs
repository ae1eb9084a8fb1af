//! Moves of extents between the tiers, safe from any crash (10.4).
//!
//! An extent is copied to a free slot while requests go on; what they write meanwhile is copied again, until nobody
//! writes to it or patience is at an end. Then writes to it are held for a moment: those under way end, the rest is copied, the slot's disks are flushed, and one record
//! says where the extent lies from now on. Until that record the old place is in force and the new slot belongs to
//! nobody, so nothing has to be written down when a move begins or is given up. Checksums belong to the extent and not
//! to its place, so they stay as they are.

use std::collections::VecDeque;

use plumb_io::{Errno, FlushQueue};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32};

use super::Engine;
use super::moved::{MoveCounters, MoveDone, MoveOutcome};
use super::part::{NONE, Part, PartKind, Step};
use super::throttle::Throttle;
use super::times::Times;
use crate::extents::{Copies, UNMAPPED, disks_of, is_second_tier};
use crate::format::Generation;
use crate::format::frame::Record;
use crate::io::Tag;
use crate::mutation::{Mutation, active};
use crate::optimizer::TierName;

/// Moves under way at a time, at most.
pub(super) const MOVERS: u32 = 8;
/// How often an extent is gone through before its writes are held.
pub(super) const PASSES: u8 = 3;
/// So long writes are held at most (MOV-2); then the move is given up.
const HOLD_MAX: Nanos = Nanos(100_000_000);
/// So long a copied extent waits for a moment in which nothing of it is left to copy and nobody writes to it.
const PATIENCE: Nanos = Nanos(2_000_000_000);

#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) extent: u32,
    to: TierName,
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

    fn is_committed(&self) -> bool {
        matches!(self.phase, Phase::Commit(_) | Phase::Leave(_))
    }
}

/// Moves under way and those that wait.
#[derive(Debug)]
pub(super) struct Moves {
    line: VecDeque<Wanted>,
    under_way: Vec<Option<Box<Moving>>>,
    count: u32,
    movers: u32,
    free_parts: Vec<u32>,
    done: VecDeque<MoveDone>,
    /// Parts that want a slot while moves have some.
    pub(super) place_wait: VecDeque<u32>,
    /// Disks that failed to flush for a move.
    pub(super) flush_failed: Vec<u16>,
    pub(super) counters: MoveCounters,
    /// How long writes were held: of extents that went up, and of those that went down.
    holds: [Times; 2],
    patience: Nanos,
    pub(super) throttle: Throttle,
}

impl Moves {
    /// With the parts from `first_part` on for their locks.
    pub(super) fn new(first_part: u32) -> Self {
        Self {
            line: VecDeque::new(),
            under_way: (0..MOVERS).map(|_| None).collect(),
            count: 0,
            movers: MOVERS,
            free_parts: (first_part..first_part + MOVERS).rev().collect(),
            done: VecDeque::new(),
            place_wait: VecDeque::new(),
            flush_failed: Vec::new(),
            counters: MoveCounters::default(),
            holds: [Times::with_room(), Times::with_room()],
            patience: PATIENCE,
            throttle: Throttle::default(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.count == 0 && self.line.is_empty()
    }

    /// Whether none is under way.
    pub(super) fn is_still(&self) -> bool {
        self.count == 0
    }

    pub(super) fn free_parts(&self) -> usize {
        self.free_parts.len()
    }

    /// The content of blocks has changed: who copied them copies them again.
    pub(super) fn changed(&mut self, extent: u32, (first, end): (u32, u32)) {
        if self.count == 0 {
            return;
        }
        for own in self.under_way.iter_mut().flatten().filter(|own| own.wanted.extent == extent) {
            own.todo[index(first)..index(end)].fill(true);
        }
    }

    pub(super) fn counters(&self) -> MoveCounters {
        self.counters
    }

    fn note_hold(&mut self, to: TierName, time: Nanos) {
        self.holds[usize::from(to == TierName::Capacity)].note(time);
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// Asks for an extent of a virtual disk to be moved. [`Engine::pop_move`] tells what became of it, unless an
    /// optimization of the virtual disk is under way: then it counts as one of that one's.
    ///
    /// # Panics
    /// When there is no such virtual disk or extent.
    pub fn move_extent(&mut self, vdisk: u32, extent: u32, to: TierName) {
        let own = &self.core.members.config.vdisks[index(vdisk)];
        assert!(extent < own.extents, "extent {extent} of {}", own.extents);
        let extent = own.first_extent + extent;
        self.moves.line.push_back(Wanted { extent, to });
    }

    /// The next move that has ended.
    pub fn pop_move(&mut self) -> Option<MoveDone> {
        self.moves.done.pop_front()
    }

    /// Moves that wait or are under way.
    #[must_use]
    pub fn moves_left(&self) -> usize {
        self.moves.line.len() + index(self.moves.count)
    }

    /// How many extents may be under way at a time: 1 to 8, and 8 unless set.
    pub fn set_movers(&mut self, movers: u32) {
        self.moves.movers = movers.clamp(1, MOVERS);
    }

    /// How long an extent that is copied waits for a moment in which nobody writes to it, before its writes are held all
    /// the same: 2 s unless set.
    pub fn set_move_patience(&mut self, patience: Nanos) {
        self.moves.patience = patience;
    }

    /// Moves take at most so many bytes per second from now on, and fewer while requests take longer than without
    /// moves (10.5); `None`, as after the start: as many as they can.
    pub fn set_move_rate(&mut self, most: Option<u64>) {
        self.moves.throttle.limit(most);
    }

    /// Bytes per second that moves may take now; `None`: no limit.
    #[must_use]
    pub fn move_rate(&self) -> Option<u64> {
        self.moves.throttle.rate()
    }

    /// Calls off all moves that are not committed yet.
    pub fn cancel_moves(&mut self) {
        self.cancel_moves_of(None);
    }

    /// Those of one virtual disk, or of all.
    pub(super) fn cancel_moves_of(&mut self, vdisk: Option<u32>) {
        let core = &self.core;
        let is = |extent: u32| vdisk.is_none_or(|vdisk| core.vdisk(extent) == index(vdisk));
        let mut cancelled = Vec::new();
        self.moves.line.retain(|wanted| {
            let cancels = is(wanted.extent);
            cancelled.extend(cancels.then_some(*wanted));
            !cancels
        });
        for own in self.moves.under_way.iter_mut().flatten().filter(|own| !own.is_committed()) {
            if is(own.wanted.extent) {
                own.spoiled = own.spoiled.or(Some(MoveOutcome::Cancelled));
            }
        }
        for wanted in cancelled {
            self.tell_move(wanted, MoveOutcome::Cancelled);
        }
    }

    /// What moves did since the start.
    #[must_use]
    pub fn move_counters(&self) -> MoveCounters {
        self.moves.counters
    }

    /// The time for which so many of a thousand moves to a tier held writes at most; `None` if there was none.
    #[must_use]
    pub fn hold_time(&self, to: TierName, per_mille: u64) -> Option<Nanos> {
        self.moves.holds[usize::from(to == TierName::Capacity)].per_mille(per_mille).map(Nanos)
    }

    fn tell_move(&mut self, wanted: Wanted, outcome: MoveOutcome) {
        let vdisk = self.core.vdisk(wanted.extent);
        let first = self.core.members.config.vdisks[vdisk].first_extent;
        match (outcome, wanted.to) {
            (MoveOutcome::Moved, TierName::Performance) => self.moves.counters.up += 1,
            (MoveOutcome::Moved, TierName::Capacity) => self.moves.counters.down += 1,
            (MoveOutcome::There | MoveOutcome::Unmapped, _) => {}
            _ => self.moves.counters.aborted += 1,
        }
        let (vdisk, extent, to) = (to_u32(vdisk), wanted.extent - first, wanted.to);
        if self.optimizing(vdisk) {
            self.note_move(vdisk, extent, to, outcome);
        } else {
            self.moves.done.push_back(MoveDone { vdisk, extent, to, outcome });
        }
    }

    /// Moves everything on that can go on.
    pub(super) fn pump_moves(&mut self) {
        self.moves.throttle.tick(self.now);
        if self.moves.is_idle() {
            return;
        }
        let stands = self.frozen || !self.trouble.is_empty();
        if stands && self.halted.is_none() {
            return;
        }
        self.end_runs();
        for nth in 0..MOVERS {
            let Some(mut own) = self.moves.under_way[index(nth)].take() else { continue };
            match self.advance_move(nth, &mut own) {
                None => self.moves.under_way[index(nth)] = Some(own),
                Some(outcome) => self.end_move(*own, outcome),
            }
        }
        if self.halted.is_some() {
            self.cancel_moves();
            self.end_runs();
            return;
        }
        self.begin_moves();
        self.end_runs();
    }

    fn begin_moves(&mut self) {
        while self.moves.count < self.moves.movers && self.moves.place_wait.is_empty() {
            let Some(wanted) = self.moves.line.front().copied() else { return };
            let begun = self.begin_move(wanted);
            if matches!(begun, Err(None)) {
                return;
            }
            self.moves.line.pop_front();
            match begun {
                Err(outcome) => self.tell_move(wanted, outcome.unwrap_or(MoveOutcome::NoRoom)),
                Ok(own) => {
                    let free = self.moves.under_way.iter().position(Option::is_none);
                    let nth = free.expect("fewer are under way than there are places");
                    self.moves.under_way[nth] = Some(Box::new(own));
                    self.moves.count += 1;
                }
            }
        }
    }

    /// Finds a slot for an extent; `Err(None)`: there may be one later.
    fn begin_move(&mut self, wanted: Wanted) -> Result<Moving, Option<MoveOutcome>> {
        let extent = wanted.extent;
        let vdisk = self.core.vdisk(extent);
        let from = self.core.extents.get(extent).place;
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
        // What a start could not read is left to the next one, where it is (MOV-3).
        if self.core.unsettled.iter().any(|one| one.0 == extent) {
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
        } else if self.core.extents.get(own.wanted.extent).place != own.from {
            own.spoiled = Some(MoveOutcome::Unmapped);
        } else if self.core.members.config.generation != own.generation {
            own.spoiled = Some(MoveOutcome::Interrupted);
        } else if own.part != NONE && self.now.since(own.held_since) > HOLD_MAX {
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
    fn advance_move(&mut self, nth: u32, own: &mut Moving) -> Option<MoveOutcome> {
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
    /// wait for them, and for what they wrote to be copied once more.
    fn chance(&self, own: &mut Moving) -> Chance {
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
            true if quiet => Chance::CopyFirst,
            rest if self.now.since(own.waits_since) >= self.moves.patience => {
                own.impatient = true;
                if rest { Chance::CopyFirst } else { Chance::Now }
            }
            _ => Chance::Later,
        }
    }

    /// From now on the extent lies at its new place; the record is on its way.
    fn commit_move(&mut self, own: &Moving) -> Phase {
        let (extent, place) = (own.wanted.extent, own.to);
        let lsn = self.core.journal.append(Record::Moved { extent, place });
        self.core.extents.get_mut(extent).place = place;
        self.core.members.forget(extent);
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
    fn end_move(&mut self, mut own: Moving, outcome: MoveOutcome) {
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
