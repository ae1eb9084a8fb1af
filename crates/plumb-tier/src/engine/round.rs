//! Rounds: flush the devices, commit the checksums of what they hold, flush the journal (6.3).

use std::collections::VecDeque;

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64};

use super::{EIO, Engine, RequestKind};
use crate::extents::{COMMITTING, PENDING, SEALED, TENTATIVE};
use crate::format::config::MediaType;
use crate::format::frame::Record;
use crate::mutation::{Mutation, active};

/// Without a FLUSH checksums are committed that often (JRN-4).
const PERIOD: Nanos = Nanos(1_000_000_000);
/// So many uncommitted blocks start a round of their own, or fewer where the journal is small.
const PENDING_MAX: usize = 1 << 18;
/// An extent is closed after so long without a write, unless set (section 4). With FUA writes rounds follow each other within a
/// millisecond: counted by rounds alone, the next write would find its extent closed, and wait until it is open again.
pub(super) const CLOSE_AFTER: Nanos = Nanos(5_000_000_000);

/// Writes through wait for others for at most so many times what the last round took.
const WAIT_ROUNDS: u64 = 4;
/// And as if none had taken longer: one may have waited for a disk that hangs.
const TOOK_MOST: Nanos = Nanos(250_000_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    /// Devices are being flushed.
    Devices,
    /// The records up to that frame must be durable.
    Journal(u64),
}

/// The round that runs, and who waits for it and the next.
#[derive(Debug, Default)]
pub(super) struct Round {
    phase: Phase,
    left: u32,
    /// Disks whose flush failed.
    pub(super) failed: Vec<u16>,
    /// Somebody needs a round.
    pub(super) wanted: bool,
    waiters: Vec<u32>,
    next: Vec<u32>,
    /// Since when the first of these waits; whether one of them flushes. And how long the last round took.
    next_since: Nanos,
    next_flushes: bool,
    /// Writes through that are under way, and do not wait for a round yet.
    pub(super) through: u32,
    took: Nanos,
    /// When the round was begun, as the devices were seen last.
    since: Nanos,
    sealed: Vec<(u32, u32, u32)>,
    last: Nanos,
    /// When some rounds began, a second apart, and which, oldest first.
    began: VecDeque<(Nanos, u64)>,
    /// How long an extent has no write before it is closed.
    pub(super) close_after: Nanos,
}

impl Round {
    pub(super) fn new() -> Self {
        Self { began: VecDeque::with_capacity(8), close_after: CLOSE_AFTER, ..Self::default() }
    }

    /// Round `nth` begins: up to which round the last write must have come where an extent may be closed.
    fn close_before(&mut self, now: Nanos, nth: u64) -> u64 {
        if self.began.back().is_none_or(|last| now.since(last.0) >= PERIOD) {
            self.began.push_back((now, nth));
        }
        let is_old = |one: &(Nanos, u64)| now.since(one.0) >= self.close_after;
        while self.began.get(1).is_some_and(is_old) {
            self.began.pop_front();
        }
        if self.close_after == Nanos::ZERO {
            return u64::MAX;
        }
        self.began.front().filter(|one| is_old(one)).map_or(0, |one| one.1)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle && !self.wanted && self.next.is_empty()
    }

    /// Blocks for which devices are being flushed.
    pub(super) fn flushing_blocks(&self) -> u64 {
        if self.phase == Phase::Devices { to_u64(self.sealed.len()) } else { 0 }
    }

    /// Blocks that the devices hold, and whose checksums are not durable yet.
    pub(super) fn flushed_blocks(&self) -> u64 {
        if matches!(self.phase, Phase::Journal(_)) { to_u64(self.sealed.len()) } else { 0 }
    }

    pub(super) fn flushed(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// The client's request is done when the next round is: the running one has begun its flushes, and
    /// covers nothing that ended since.
    pub(super) fn join_round(&mut self, client: u32) {
        let vdisk = self.clients[index(client)].request.vdisk;
        if self.flush_fails(vdisk) || self.is_detached(vdisk) || self.halted.is_some() {
            self.clients[index(client)].error = Some(EIO);
            self.answer(client);
        } else {
            if self.round.next.is_empty() {
                (self.round.next_since, self.round.next_flushes) = (self.seen, false);
            }
            self.round.next_flushes |=
                self.clients[index(client)].request.kind == RequestKind::Flush;
            self.round.next.push(client);
        }
    }

    /// While somebody waits for a frame, or extents move, a frame does not stand behind more requests than keep its disks busy.
    pub(super) fn pace_requests(&mut self) {
        let on = !self.round.waiters.is_empty()
            || !self.round.next.is_empty()
            || !self.log_flush.is_idle()
            || !self.moves.is_idle();
        let disks = &self.core.members.config.disks;
        let short = |disk: u16| {
            disks
                .get(usize::from(disk))
                .is_some_and(|own| own.metadata || own.media == MediaType::Ssd)
        };
        self.core.io.pace(on, short);
    }

    /// While frames are due, a disk is given no more than so many requests at a time, whatever it takes to keep it busy: lines are where few
    /// requests are then, too. `u32::MAX`, as after the start: as many as keep it busy.
    pub fn give_disks_at_most(&mut self, most: u32) {
        self.core.io.give_at_most(most);
    }

    /// Whether requests stand in line in front of their disks.
    #[cfg(test)]
    pub(crate) fn has_lines(&self) -> bool {
        self.core.io.has_lines()
    }

    /// Whether a round had better wait for more writes through: disks have requests in line, so the time that a frame takes of them is lost.
    /// Not if it has as many as are still under way, nor for longer than some rounds, and nobody who flushes waits for others.
    fn waits_for_more(&self) -> bool {
        self.core.io.has_lines()
            && !self.round.next_flushes
            && self.round.next.len() < index(self.round.through)
            && self.seen.since(self.round.next_since).0
                < WAIT_ROUNDS * self.round.took.min(TOOK_MOST).0
    }

    /// Whether a last copy of something of a virtual disk could not be flushed: no FLUSH of it succeeds any more (6.3).
    pub(super) fn flush_fails(&self, vdisk: u32) -> bool {
        self.core.flush_broken || self.is_unflushable(vdisk)
    }

    /// Whether nothing of a virtual disk is taken for durable any more, for others do without a disk that it needs (C10).
    pub(crate) fn is_unflushable(&self, vdisk: u32) -> bool {
        self.core.unflushable.get(index(vdisk)) == Some(&true)
    }

    /// Takes the round a step on, or begins the next one: at once when one has ended and somebody waits, so that its flushes and
    /// its frame stand in the disks' lines before what the clients that were answered ask next. Whether it did.
    pub(super) fn pump_round(&mut self) -> bool {
        let before = self.round.phase;
        match before {
            _ if self.frozen || self.halted.is_some() => {}
            Phase::Idle => {
                let idle = self.core.pending.is_empty()
                    && self.core.open_list.is_empty()
                    && !self.core.logs_want_round();
                let due = !idle && self.now.since(self.round.last) >= PERIOD;
                let most = PENDING_MAX.min(self.core.journal.commits_max());
                let full = self.core.pending.len() >= most;
                let waited = !self.round.next.is_empty() && !self.waits_for_more();
                let wanted = self.round.wanted || waited || full;
                if (wanted || due) && !self.core.flush_broken {
                    self.begin_round();
                }
            }
            Phase::Devices => {
                if self.round.left == 0 && self.trouble.is_empty() {
                    self.commit_sealed();
                }
            }
            Phase::Journal(lsn) => {
                if lsn <= self.core.journal.durable {
                    self.core.end_logs();
                    self.end_round();
                }
            }
        }
        self.round.phase != before
    }

    fn begin_round(&mut self) {
        self.round.last = self.now;
        self.round.since = self.seen;
        self.round.wanted = false;
        self.round.phase = Phase::Devices;
        self.round.left = 0;
        self.round.failed.clear();
        std::mem::swap(&mut self.round.waiters, &mut self.round.next);
        self.core.rounds += 1;
        self.core.close_before = self.round.close_before(self.now, self.core.rounds);
        self.core.seal_logs();
        self.round.sealed.clear();
        for (extent, block) in self.core.pending.drain(..) {
            let sums = &mut self.core.extents.list[index(extent)].sums;
            if let Some(sum) = sums.get_mut(index(block)).filter(|sum| sum.flags & PENDING != 0) {
                sum.flags = (sum.flags & !PENDING) | SEALED;
                self.round.sealed.push((extent, block, sum.newest));
            }
        }
        for (nth, disk) in self.core.members.each_online().enumerate() {
            if active(Mutation::CommitBeforeFlush) || (nth == 1 && active(Mutation::FlushOneDisk)) {
                continue;
            }
            if self.core.io.push_round_flush(disk) {
                self.round.left += 1;
            } else {
                // Its last flush hangs.
                self.round.failed.push(disk);
                self.trouble.push(disk);
            }
        }
    }

    /// The devices hold what was sealed: its checksums are committed, those of blocks that were zeroed
    /// since excepted.
    fn commit_sealed(&mut self) {
        if self.core.flush_broken {
            self.end_round();
            return;
        }
        for &(extent, block, crc) in &self.round.sealed {
            if self.core.is_unflushable(extent) {
                continue;
            }
            let own = &mut self.core.extents.list[index(extent)];
            let Some(sum) = own.sums.get_mut(index(block)).filter(|sum| sum.flags & SEALED != 0)
            else {
                continue;
            };
            sum.flags = (sum.flags & !SEALED) | COMMITTING;
            sum.committed = crc;
            own.pending -= u32::from(sum.flags & PENDING == 0);
            let block = self.core.extents.block(extent, block);
            self.core.journal.append(Record::CrcCommit { block, crc });
            self.core.trees.touch_sum(block);
        }
        self.core.commit_logs();
        if active(Mutation::LogRoundEarly) {
            self.core.end_logs();
        }
        let lsn = self.core.journal.last_lsn();
        self.core.journal.want(lsn);
        self.round.phase = Phase::Journal(lsn);
    }

    /// Everything that the round covers is durable, unless a last copy could not be flushed: what its frame has not committed
    /// durably then stays tentative (CRC-2).
    pub(super) fn end_round(&mut self) {
        let durable = self.core.journal.durable;
        let is_committed = match self.round.phase {
            Phase::Idle => return,
            Phase::Devices => false,
            Phase::Journal(lsn) => lsn <= durable,
        };
        self.round.phase = Phase::Idle;
        self.round.took = self.seen.since(self.round.since);
        for (extent, block, _) in self.round.sealed.drain(..) {
            let sums = &mut self.core.extents.list[index(extent)].sums;
            if let Some(sum) = sums.get_mut(index(block)).filter(|sum| sum.flags & COMMITTING != 0)
            {
                sum.flags &= if is_committed { !(COMMITTING | TENTATIVE) } else { !COMMITTING };
            }
        }
        if !self.core.flush_broken {
            self.core.close_idle(false);
        }
        // Nobody joins a round by being answered; the list is used again.
        let mut waiters = std::mem::take(&mut self.round.waiters);
        for client in waiters.drain(..) {
            let vdisk = self.clients[index(client)].request.vdisk;
            if self.flush_fails(vdisk) || self.halted.is_some() {
                self.clients[index(client)].error = Some(EIO);
            }
            self.answer(client);
        }
        self.round.waiters = waiters;
        self.ready.extend(self.tentative_wait.drain(..));
    }

    /// Answers all who wait for a round: there will be none.
    pub(super) fn fail_rounds(&mut self) {
        self.end_round();
        for client in std::mem::take(&mut self.round.next) {
            self.clients[index(client)].error = Some(EIO);
            self.answer(client);
        }
        self.round.wanted = false;
        self.fail_log_flush();
        self.ready.extend(self.tentative_wait.drain(..));
    }
}
