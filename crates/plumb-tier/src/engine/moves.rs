//! Moves of extents between the tiers, safe from any crash (10.4).
//!
//! Here is who moves when: what is asked for, what waits, what is under way, what became of it. How one extent is moved is
//! in `moving.rs`.

use std::collections::VecDeque;

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32};

use super::Engine;
use super::moved::{MoveCounters, MoveDone, MoveOutcome};
use super::moving::Moving;
use super::share::Shares;
use super::throttle::Throttle;
use super::times::FineTimes;
use crate::mutation::{Mutation, active};
use crate::optimizer::{Move, MoveReason, TierName};

/// Moves under way at a time, at most.
pub(super) const MOVERS: u32 = 8;
/// So long a copied extent waits for a moment in which nothing of it is left to copy and nobody writes to it.
const PATIENCE: Nanos = Nanos(2_000_000_000);

#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) extent: u32,
    pub(super) to: TierName,
    /// Why an optimization wants it; `None`: somebody else does.
    pub(super) reason: Option<MoveReason>,
}

/// Moves under way and those that wait.
#[derive(Debug)]
pub(super) struct Moves {
    line: VecDeque<Wanted>,
    pub(super) under_way: Vec<Option<Box<Moving>>>,
    pub(super) count: u32,
    movers: u32,
    pub(super) free_parts: Vec<u32>,
    done: VecDeque<MoveDone>,
    /// Parts that want a slot while moves have some.
    pub(super) place_wait: VecDeque<u32>,
    /// Disks that failed to flush for a move.
    pub(super) flush_failed: Vec<u16>,
    pub(super) counters: MoveCounters,
    /// How long writes were held: of extents that went up, and of those that went down.
    holds: [FineTimes; 2],
    pub(super) patience: Nanos,
    pub(super) throttle: Throttle,
    /// How busy disks are without moves.
    pub(super) shares: Shares,
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
            holds: [FineTimes::with_room(), FineTimes::with_room()],
            patience: PATIENCE,
            throttle: Throttle::default(),
            shares: Shares::default(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.count == 0 && self.line.is_empty()
    }

    /// Whether one is under way, or waits next, of an extent of that kind.
    pub(super) fn is_moving(&self, is: impl Fn(u32) -> bool) -> bool {
        let under_way = self.under_way.iter().flatten().map(|own| own.wanted.extent);
        under_way.chain(self.line.front().map(|wanted| wanted.extent)).any(is)
    }

    /// Whether none is under way.
    pub(super) fn is_still(&self) -> bool {
        self.count == 0
    }

    /// Whether writes to an extent wait for a move.
    pub(super) fn are_holding(&self) -> bool {
        self.under_way.iter().flatten().any(|own| own.held_since != Nanos::NEVER)
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

    /// Those that have not begun.
    pub(super) fn waiting(&self) -> usize {
        self.line.len()
    }

    pub(super) fn note_hold(&mut self, to: TierName, time: Nanos) {
        self.holds[usize::from(to == TierName::Capacity)].note(time);
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// Asks for an extent of a virtual disk to be moved. [`Engine::pop_move`] tells what became of it.
    ///
    /// # Panics
    /// When there is no such virtual disk or extent.
    pub fn move_extent(&mut self, vdisk: u32, extent: u32, to: TierName) {
        self.want_move(vdisk, (extent, to), None);
    }

    /// The same for an optimization, which is told what became of it.
    pub(super) fn make_planned(&mut self, vdisk: u32, planned: &Move) {
        self.want_move(vdisk, (planned.extent, planned.to), Some(planned.reason));
    }

    fn want_move(&mut self, vdisk: u32, (extent, to): (u32, TierName), reason: Option<MoveReason>) {
        let own = &self.core.members.config.vdisks[index(vdisk)];
        assert!(extent < own.extents, "extent {extent} of {}", own.extents);
        let extent = own.first_extent + extent;
        self.moves.line.push_back(Wanted { extent, to, reason });
    }

    /// The next move that has ended.
    pub fn pop_move(&mut self) -> Option<MoveDone> {
        self.moves.done.pop_front()
    }

    /// Moves that wait or are under way.
    #[must_use]
    pub fn moves_left(&self) -> usize {
        self.moves.waiting() + index(self.moves.count)
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

    /// Moves take at most so many bytes per second from now on, 64 KiB at least, and fewer while requests take longer than
    /// without moves (10.5); `None`, as after the start: as many as they can.
    pub fn set_move_rate(&mut self, most: Option<u64>) {
        self.moves.throttle.limit(most);
    }

    /// Whether moves with a rate are slower while requests suffer from now on, as after the start.
    pub fn set_moves_give_way(&mut self, gives_way: bool) {
        self.moves.throttle.give_way(gives_way);
    }

    /// Moves make at most so many I/Os per second on devices from now on; `None`, as after the start: as many as they can.
    pub fn set_move_ios(&mut self, most: Option<u64>) {
        self.moves.throttle.limit_ios(most);
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

    pub(super) fn tell_move(&mut self, wanted: Wanted, outcome: MoveOutcome) {
        let vdisk = self.core.vdisk(wanted.extent);
        let first = self.core.members.config.vdisks[vdisk].first_extent;
        match (outcome, wanted.to) {
            (MoveOutcome::Moved, TierName::Performance) => {
                self.moves.counters.up += 1;
                self.tiering_mut(to_u32(vdisk)).brought += 1;
            }
            (MoveOutcome::Moved, TierName::Capacity) => {
                self.moves.counters.down += 1;
                self.tiering_mut(to_u32(vdisk)).brought -= 1;
            }
            (MoveOutcome::There | MoveOutcome::Unmapped | MoveOutcome::Needless, _) => {}
            _ => self.moves.counters.aborted += 1,
        }
        let (vdisk, extent, to) = (to_u32(vdisk), wanted.extent - first, wanted.to);
        let done = MoveDone { vdisk, extent, to, outcome };
        match wanted.reason {
            Some(reason) => self.note_move(done, reason),
            None => self.moves.done.push_back(done),
        }
    }

    /// Moves everything on that can go on.
    pub(super) fn pump_moves(&mut self) {
        self.judge_moves();
        if self.moves.is_idle() {
            return;
        }
        let stands = self.frozen || !self.trouble.is_empty();
        if stands && self.halted.is_none() {
            return;
        }
        self.end_runs();
        let waited = !self.moves.place_wait.is_empty();
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
        // Whoever waited for a slot looks for one before a move takes it.
        let woken = waited && self.moves.place_wait.is_empty();
        if !woken || active(Mutation::WaitersPassedOver) {
            self.begin_moves();
        }
        self.end_runs();
    }

    fn begin_moves(&mut self) {
        while self.moves.count < self.moves.movers && self.moves.place_wait.is_empty() {
            let Some(wanted) = self.moves.line.front().copied() else { return };
            let vdisk = self.core.vdisk(wanted.extent);
            let unflushable = self.core.flush_broken || self.core.unflushable[vdisk];
            let begun = match self.core.is_detached(vdisk) || unflushable {
                true => Err(Some(MoveOutcome::Degraded)),
                false if self.is_needless(vdisk, &wanted) => Err(Some(MoveOutcome::Needless)),
                false => self.begin_move(wanted),
            };
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
}
