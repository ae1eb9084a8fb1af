//! What the engine does while no I/O is under way: it lets the devices finish, begins nothing new, acts,
//! and goes on. Each standstill is one bounded step.

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32};

use super::part::Step;
use super::scanning::{Accept, Stage};
use super::{ChangeError, Engine, Halt};
use crate::events::Event;
use crate::extents::ExtentSet;
use crate::format::DiskState;
use crate::format::config::Generation;
use crate::format::frame::Record;
use crate::journal::Room;
use crate::mutation::{Mutation, active};
use crate::tier_report::MoveStop;

/// Background work that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// Bring a disk back.
    Attach(u16),
    /// Give a missing disk up.
    Retire(u16),
    /// Empty a disk that works, then remove it; or, with `false`, leave it what it has.
    Leave(u16, bool),
    /// Give journal and tree the next copy that they lack.
    Spread,
    /// Write a checkpoint.
    Checkpoint,
    /// Verify everything, from there on.
    Scan(Stage, Accept),
}

/// Disks that vote are marked anew that often, if anything was written meanwhile.
pub(super) const MARK_EVERY: Nanos = Nanos(600_000_000_000);
/// What could not get a copy of journal and tree is tried again after that.
const SPREAD_AGAIN: Nanos = Nanos(60_000_000_000);
/// Between two steps of a resync, at least.
const RESYNC_PAUSE: Nanos = Nanos(1_000_000);
/// At most: what hung must not make the next step wait as long.
const RESYNC_PAUSE_MAX: Nanos = Nanos(100_000_000);
/// After a step of a scan requests have so many times as long as it took: nothing that is lost waits for it.
const SCAN_SHARE: u64 = 3;
/// Or so long for each byte, less what it took: 10 MB/s of each disk (RES-5); on slow disks as long as it took.
const SCAN_NS_PER_BYTE: u64 = 100;
/// What could not be settled is tried again by who reads it after so long.
const TRY_AGAIN: Nanos = Nanos(10_000_000_000);
/// A disk that failed and is needed takes part in journal, map and votes again after so long without another failure.
const PROBATION: Nanos = Nanos(60_000_000_000);
/// Without a request for so long nobody is disturbed.
const IDLE: Nanos = Nanos(100_000_000);
/// Turns in which nothing goes on, at most: far more than there are parts to look at.
const TURNS_MAX: u32 = 1 << 16;
/// Open extents that a start left, per step.
const SETTLED_AT_ONCE: usize = 8;
/// Extents per step.
const RESYNC_EXTENTS: usize = 2;

impl<Q: FlushQueue> Engine<Q> {
    /// Brings back a disk that the configuration calls missing; its stale places are then brought up to
    /// date in the background.
    pub fn attach(&mut self, disk: u16) {
        self.returning.retain(|other| *other != disk);
        // Asked for twice, it would come back once more after it was lost, or taken offline, in between.
        if !self.jobs.contains(&Job::Attach(disk)) {
            self.jobs.push_back(Job::Attach(disk));
        }
    }

    /// Why a disk that is missing cannot take part again before the next start; `None` if it may.
    pub(crate) fn cannot_return(&self, disk: u16) -> Option<String> {
        let own = self.core.members.config.disks.get(usize::from(disk))?;
        if self.core.members.is_online(disk) {
            return None;
        }
        let why = match self.core.io.file(disk).is_some() {
            false => "was not here when the pool was started",
            true if self.core.io.leads_there(disk) => return None,
            true => "was replaced or removed while the pool had it open",
        };
        Some(format!(
            "disk {} {why}: end what has the pool, and its next start takes back what is there",
            own.name
        ))
    }

    /// Gives a missing disk up: what it held is rebuilt on spare slabs of others, in the background. Disks that
    /// stay away are given up by themselves after a time: [`Engine::set_retirement`].
    pub fn retire(&mut self, disk: u16) {
        self.jobs.push_back(Job::Retire(disk));
    }

    /// Does without a disk for now, as if it had failed; it comes back by [`Engine::attach`], and not by one that was asked for
    /// before. One that holds the last copy of something stays, and an event says so.
    pub fn take_offline(&mut self, disk: u16) {
        if !active(Mutation::OfflineOverruled) {
            self.jobs.retain(|job| *job != Job::Attach(disk));
        }
        if !self.core.members.is_online(disk) {
            return;
        }
        if self.core.can_spare(disk) {
            self.trouble.push(disk);
        } else {
            self.core.io.events.note(Event::DiskNeeded(disk));
        }
    }

    /// Why a disk cannot go offline: what only it has would be gone with it. `None` when it can, or is not here.
    pub(crate) fn needs(&self, disk: u16) -> Option<&'static str> {
        let members = &self.core.members;
        if !members.is_online(disk) {
            return None;
        }
        if !self.core.can_spare(disk) {
            return Some("holds the last copy of something");
        }
        let alone = members.metadata().iter().all(|other| *other == disk);
        alone.then_some("is the only one here that has journal and map")
    }

    /// Gives all missing disks up.
    pub fn retire_missing(&mut self) {
        for (disk, own) in (0_u16..).zip(&self.core.members.config.disks) {
            if own.state == DiskState::Missing {
                self.jobs.push_back(Job::Retire(disk));
            }
        }
    }

    /// A disk is to be removed: what it holds is moved to others, in the background, and then the pool does
    /// without it. One that is missing is given up at once.
    ///
    /// # Errors
    /// When the others have no room for what it holds, or nobody else has it.
    pub fn leave(&mut self, disk: u16) -> Result<(), ChangeError> {
        self.core.may_leave(disk)?;
        self.jobs.push_back(Job::Leave(disk, true));
        Ok(())
    }

    /// Whether a disk that is not here may be given up.
    ///
    /// # Errors
    /// When nobody else has what it holds.
    pub fn can_spare(&self, disk: u16) -> Result<(), ChangeError> {
        self.core.is_spared(disk)
    }

    /// By an operator's word it is told no more that a disk failed before.
    pub fn clear_failures(&mut self, disk: u16) {
        let own = &mut self.core.io.uses[usize::from(disk)];
        (own.stayed, own.erred) = (0, 0);
        self.core.io.events.note(Event::DiskCleared(disk));
    }

    /// Whether disks were removed from the pool.
    #[must_use]
    pub fn has_removed(&self) -> bool {
        let config = &self.core.members.config;
        let all = u16::try_from(config.disks.len()).unwrap_or(u16::MAX);
        (0..all).any(|disk| config.is_gone(disk))
    }

    /// Something that is to be told of this pool.
    pub fn tell(&mut self, event: Event) {
        self.core.io.events.note(event);
    }

    /// A disk that was to be removed stays, with what it still has.
    pub fn stay(&mut self, disk: u16) {
        self.jobs.push_back(Job::Leave(disk, false));
    }

    /// Whether there is anything left to do that was asked for, or that the pool needs: a scan, places that are
    /// not up to date and can be brought there, disks that are to be emptied or rebuilt.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.is_quiet()
            || self.rebuilding
            || self.stale_disk().is_some()
            || !self.core.deferred.is_empty()
    }

    /// Extents on disks that take part that no copy here can bring up to date.
    #[must_use]
    pub fn stuck_places(&self) -> u32 {
        let members = &self.core.members;
        let stuck = |disk: u16| members.stuck[usize::from(disk)].len();
        members.online().into_iter().map(stuck).sum()
    }

    /// Disks that are missing for so long are given up; `None`: never. Five minutes unless set (RES-4).
    pub fn set_retirement(&mut self, after: Option<Nanos>) {
        self.retire_after = after;
    }

    /// Notes since when disks are missing, and gives up those that were for too long.
    pub(super) fn note_missing(&mut self) {
        self.end_probation();
        self.look_at_metadata();
        // What a late write kept from being settled, and so from being copied, can be now.
        let owed = self.core.io.owes_writes();
        if std::mem::replace(&mut self.owed, owed) && !owed {
            self.core.members.try_stuck();
            self.in_vain.clear();
        }
        let disks = &self.core.members.config.disks;
        self.missing_since.resize(disks.len(), None);
        for (since, disk) in self.missing_since.iter_mut().zip(disks) {
            *since = (disk.state == DiskState::Missing).then(|| since.unwrap_or(self.now));
        }
        let Some(after) = self.retire_after else { return };
        let late = |since: &Option<Nanos>| since.is_some_and(|at| self.now.since(at) >= after);
        let mut late = (0_u16..).zip(&self.missing_since).filter(|(_, since)| late(since));
        if let Some((disk, _)) = late.next()
            && !self.jobs.contains(&Job::Retire(disk))
        {
            self.retire(disk);
        }
    }

    /// Journal and tree get a copy that they lack at once: a disk more that fails before a lost one is given up, or comes back, must
    /// not take the last one. Tried once a minute in each generation, and with all else that is rebuilt.
    fn look_at_metadata(&mut self) {
        let generation = self.core.members.config.generation;
        let tried =
            |(of, at): (Generation, Nanos)| of == generation && self.now.since(at) < SPREAD_AGAIN;
        if self.unchanging || self.ending || self.spread.is_some_and(tried) {
            return;
        }
        self.spread = Some((generation, self.now));
        if self.core.members.metadata_step(&[]).is_some() && !self.jobs.contains(&Job::Spread) {
            self.jobs.push_back(Job::Spread);
        }
    }

    /// A disk that holds the last copy of something and failed once has its vote, journal and map back after a while: without
    /// these the pool would have one copy of them until it starts again.
    fn end_probation(&mut self) {
        let declined = self.core.members.declined.len();
        if declined == 0 || self.unchanging {
            self.probation = None;
            return;
        }
        let (since, count) = *self.probation.get_or_insert((self.now, declined));
        if count != declined {
            self.probation = Some((self.now, declined));
        } else if self.now.since(since) >= PROBATION {
            self.core.members.declined.clear();
            self.probation = None;
            self.rebuilding = true;
        }
    }

    /// Writes a checkpoint soon.
    pub fn checkpoint(&mut self) {
        self.jobs.push_back(Job::Checkpoint);
    }

    pub(super) fn stale_disk(&self) -> Option<u16> {
        if self.unchanging {
            return None;
        }
        // Asked at every turn: it gathers nothing.
        let members = &self.core.members;
        let sets = members.stale.iter().zip(&members.stuck);
        let mut disks = (0_u16..).zip(members.online.iter().zip(sets));
        let waits = |(_, (online, (stale, stuck))): &(u16, (&bool, (&ExtentSet, &ExtentSet)))| {
            **online && stale.len() > stuck.len()
        };
        disks.find(waits).map(|one| one.0)
    }

    fn resync_due(&self) -> bool {
        self.has_paused() && self.stale_disk().is_some()
    }

    fn settles_deferred(&self) -> bool {
        !self.core.deferred.is_empty() && !self.ending
    }

    fn is_busy(&self) -> bool {
        self.now.since(self.last_request) < IDLE
    }

    /// Requests have had as much time since the last step as it took, if there are any (RES-5).
    fn has_paused(&self) -> bool {
        let pause = if self.is_busy() { self.resync_pause } else { RESYNC_PAUSE };
        self.now.since(self.last_resync) >= pause
    }

    /// A disk may come back once it has answered all that was given up: a late write must not land on
    /// newer data (RES-10). A scan goes on once requests had their turn, if there are any (RES-5).
    fn is_due(&self, job: Job) -> bool {
        match job {
            Job::Attach(disk) => !self.core.io.owes(disk),
            Job::Scan(..) => !self.is_busy() || self.now.since(self.last_scan) >= self.scan_pause,
            _ => true,
        }
    }

    fn wants_standstill(&self) -> bool {
        !self.trouble.is_empty()
            || self.jobs.iter().any(|job| self.is_due(*job))
            || !self.heal.is_empty()
            || !self.heal_logs.is_empty()
            || !self.to_settle.is_empty()
            || !self.to_fetch.is_empty()
            || self.crowded
            || self.wants_checkpoint()
            || self.mark_due()
            || self.resync_due()
            || self.settles_deferred() && self.has_paused()
            || self.rebuilding && self.has_paused()
            || active(Mutation::StandsForEver)
    }

    /// How often disks that vote are marked, so that an older copy of one is told from it (LAY-8): every ten minutes
    /// unless set.
    pub fn set_marking(&mut self, every: Nanos) {
        self.mark_every = every;
    }

    fn mark_due(&self) -> bool {
        self.now.since(self.last_mark) >= self.mark_every
            && self.core.journal.link.lsn != self.marked
            && !self.unchanging
    }

    /// Once a last copy could not be flushed there are no checkpoints any more: the ring is used to its end.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        self.core.journal.is_crowded() && !self.core.flush_broken
    }

    /// Writes that a move holds do not wait for a checkpoint, too: no hold begins while one is due, and those that have begun end
    /// first, as long as the ring has room.
    fn wants_checkpoint(&self) -> bool {
        self.is_checkpoint_due() && !self.moves.are_holding()
    }

    /// What grows whenever something goes on.
    pub(super) fn progress(&self) -> u64 {
        self.steps + self.core.io.begun()
    }

    /// So many turns without anything that goes on are a defect: the engine halts instead of turning for ever.
    pub(super) fn note_turn(&mut self, turns: &mut u32, before: &mut u64) {
        *turns += 1;
        if *turns >= TURNS_MAX {
            let progress = self.progress();
            if progress == *before && self.halted.is_none() {
                self.halted = Some(Halt::NoProgress);
            }
            (*turns, *before) = (0, progress);
        }
    }

    /// Takes one step of what needs a standstill, once everything has drained. `true` when parts may
    /// have become ready.
    pub(super) fn stand_still(&mut self) -> bool {
        if self.halted.is_some() {
            return self.fail_all();
        }
        if !self.frozen && !self.wants_standstill() {
            return false;
        }
        self.frozen = true;
        if self.core.io.in_flight() > 0 {
            return false;
        }
        if !self.ready.is_empty() || !self.fresh.is_empty() {
            return true;
        }
        let (began, resynced) = (self.core.io.queue.time(), self.last_resync);
        let (lost, failed) = (self.core.counters.disks_lost, !self.trouble.is_empty());
        self.scanned = false;
        let outcome = if self.trouble.is_empty() { self.work() } else { self.handle_trouble() };
        let outcome = outcome.and_then(|()| self.core.leave_unflushed());
        // One that fails and stays keeps nobody waiting any longer than he would.
        self.expelled |=
            self.core.counters.disks_lost > lost || failed && active(Mutation::RoomRenewed);
        // It may have waited out a disk: what begins behind it begins now, not when this poll began.
        let took = self.core.io.queue.time().since(began);
        if !active(Mutation::StandsOutOfTime) {
            self.now = Nanos(self.now.0.saturating_add(took.0));
            // Nothing is under way: this time is no disk's own (10.3). What was waited for in this poll came before it.
            self.seen = Nanos(self.seen.0.saturating_add(took.0)).max(self.now);
            self.core.io.set_time(self.seen);
            self.stood(took);
            // Requests have their turn between two steps, however long each takes.
            if self.last_resync != resynced {
                self.last_resync = self.now;
                self.resync_pause = took.clamp(RESYNC_PAUSE, RESYNC_PAUSE_MAX);
            }
            if self.scanned {
                self.last_scan = self.now;
                let share = Nanos(took.0.saturating_mul(SCAN_SHARE));
                let most = u64::from(self.core.members.config.extent_bytes) * SCAN_NS_PER_BYTE;
                self.scan_pause = share.min(Nanos(most.saturating_sub(took.0).max(took.0)));
            }
        }
        self.frozen = false;
        self.drop_sums();
        self.judge_unflushed();
        if let Err(halt) = outcome {
            self.core.io.events.note(Event::Halted(halt));
            self.halted = Some(halt);
        }
        self.core.journal.frame = None;
        self.core.journal.flush = None;
        self.ready.extend(self.held.drain(..));
        true
    }

    /// Expels the disks that failed, or if they hold the last copy of something says what failed with
    /// them. Everything said is durable before any part goes on (RES-2).
    fn handle_trouble(&mut self) -> Result<(), Halt> {
        let mut failed = std::mem::take(&mut self.trouble);
        failed.sort_unstable();
        failed.dedup();
        for disk in failed {
            if !self.core.members.is_online(disk) {
                continue;
            }
            // Whoever had it flush: a round, a move, or the journal.
            let asked = [&self.round.failed, &self.moves.flush_failed, &self.core.io.unflushed];
            let unflushed = asked.iter().any(|failed| failed.contains(&disk));
            if self.core.can_spare(disk) {
                self.core.lose(vec![disk])?;
            } else if unflushed && self.core.lose_for_others(vec![disk])?.is_empty() {
                continue;
            } else if self.core.members.is_named(disk) {
                self.core.drop_metadata(disk)?;
            } else {
                self.core.note_failing(disk);
            }
        }
        self.close_logs();
        for nth in 0..self.held.len() {
            let own = self.parts[index(self.held[nth])];
            if own.step != Step::Writing {
                continue;
            }
            let members = &self.core.members;
            let held = |copy: &(u8, u16, u64)| {
                own.ok >> copy.0 & 1 == 1 && members.in_sync(copy.1, own.extent)
            };
            if !own.copies.iter().any(|copy| held(&copy)) {
                continue;
            }
            for (copy, disk, _) in own.copies.iter() {
                if own.failed >> copy & 1 == 1 && self.core.members.is_online(disk) {
                    self.core.members.stale[usize::from(disk)].insert(own.extent);
                    if !active(Mutation::FailedCopyUnrecorded) {
                        let extent = own.extent;
                        self.core.journal.append(Record::StaleSet { disk, extent });
                    }
                }
            }
        }
        self.core.io.unflushed.append(&mut self.moves.flush_failed);
        self.core.io.unflushed.append(&mut self.round.failed);
        self.core.sync()
    }

    /// A disk that holds the last copy of something could not be flushed: nothing is taken for durable any more
    /// (C10).
    pub(super) fn judge_unflushed(&mut self) {
        let still = |disk: u16| self.core.members.is_online(disk);
        let needed = self.core.io.unflushed.iter().any(|disk| still(*disk));
        self.core.io.unflushed.clear();
        for vdisk in 0..to_u32(self.core.unflushable.len()) {
            if self.core.unflushable[index(vdisk)] && !self.moves.is_idle() {
                self.stop_run(vdisk, MoveStop::Error);
                self.cancel_moves_of(Some(vdisk));
            }
        }
        if needed && !active(Mutation::MovesOutliveFlush) {
            // What a move had copied to that disk may be gone, whatever its own flush says later.
            (0..to_u32(self.core.unflushable.len())).for_each(|vdisk| {
                self.stop_run(vdisk, MoveStop::Error);
            });
            self.cancel_moves_of(None);
        }
        if needed && !self.core.flush_broken {
            self.core.flush_broken = true;
            self.core.io.events.note(Event::FlushFailed);
            self.fail_rounds();
        }
    }

    /// The most urgent piece of background work.
    fn work(&mut self) -> Result<(), Halt> {
        if self.crowded || self.wants_checkpoint() {
            return self.checkpoint_now();
        }
        if !self.to_fetch.is_empty() {
            return self.fetch_wanted();
        }
        let deferred: Vec<u32> = self
            .to_settle
            .iter()
            .copied()
            .filter(|own| self.core.deferred.has(*own))
            .take(SETTLED_AT_ONCE)
            .collect();
        if !deferred.is_empty() {
            self.steps += 1;
            self.to_settle.retain(|own| !deferred.contains(own));
            return self.core.settle_deferred(&deferred);
        }
        if let Some(extent) = self.to_settle.pop() {
            self.steps += 1;
            return self.settle_late(extent);
        }
        if let Some(extent) = self.heal.pop() {
            self.steps += 1;
            return self.core.scan(extent);
        }
        if let Some((vdisk, lsn)) = self.heal_logs.pop() {
            self.steps += 1;
            return self.core.heal_record(vdisk, lsn);
        }
        if self.mark_due() {
            self.steps += 1;
            (self.last_mark, self.marked) = (self.now, self.core.journal.link.lsn);
            return self.core.mark_on();
        }
        let due = self.jobs.iter().position(|job| self.is_due(*job));
        if let Some(job) = due.and_then(|nth| self.jobs.remove(nth)) {
            self.steps += 1;
            return match job {
                Job::Attach(disk) => {
                    self.rebuilding = true;
                    self.in_vain.clear();
                    if !self.core.flush_broken && self.core.copies_much_to(disk) {
                        self.checkpoint_now()?;
                    }
                    self.core.attach(disk)
                }
                Job::Retire(disk) => {
                    self.rebuilding = true;
                    self.core.retire(disk)
                }
                Job::Leave(disk, leaves) => {
                    self.rebuilding = true;
                    self.core.leave(disk, leaves)
                }
                Job::Spread if self.core.flush_broken => Ok(()),
                Job::Spread => {
                    if self.core.has_long_journal() {
                        self.checkpoint_now()?;
                    }
                    self.core.spread_metadata().map(|_| ())
                }
                Job::Checkpoint => self.checkpoint_now(),
                Job::Scan(stage, accept) => self.scan_step(stage, accept),
            };
        }
        self.last_resync = self.now;
        if self.settles_deferred() {
            self.steps += 1;
            let some = self.core.deferred.next(if self.is_busy() { 1 } else { SETTLED_AT_ONCE });
            return self.core.settle_deferred(&some);
        }
        match self.stale_disk() {
            Some(disk) => {
                let extents = if self.is_busy() { 1 } else { RESYNC_EXTENTS };
                for extent in self.core.members.due(disk, extents) {
                    self.settle_late(extent)?;
                }
                self.core.resync(disk, extents).map(|_| ())
            }
            // One row after the other: the next when the one before is in sync.
            None if self.rebuilding => {
                self.rebuilding = self.core.rebuild()?;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Not where a last copy could not be flushed: what its cache lost is not decided by what it shows (C10).
    pub(super) fn settle_late(&mut self, extent: u32) -> Result<(), Halt> {
        if self.core.deferred.has(extent) {
            self.core.settle_deferred(&[extent])?;
        }
        if self.core.flush_broken || self.core.is_unflushable(extent) {
            return Ok(());
        }
        let before = self.core.unsettled.len();
        let of_extent = self.core.unsettled.iter().filter(|one| one.0 == extent);
        let blocks: Vec<u32> = of_extent.map(|one| one.1).collect();
        let outcome = self.core.settle_late(extent);
        if !active(Mutation::MoveForgetsSettled) {
            // What they hold may be another content than the one that was copied.
            blocks.iter().for_each(|block| self.moves.changed(extent, (*block, block + 1)));
        }
        outcome?;
        if self.core.is_unsettled(extent) {
            self.in_vain.insert(extent, self.now);
        } else {
            self.in_vain.remove(&extent);
        }
        if self.core.unsettled.len() < before && !active(Mutation::SettledOnce) {
            // Who read it before that knows nothing of its copies.
            for part in self.held.clone() {
                let own = self.parts[index(part)];
                if own.extent == extent && own.step == Step::Begin {
                    self.forget_old(part);
                }
            }
        }
        Ok(())
    }

    /// Whether blocks of an extent could not be settled, and nothing says that they can be now: whoever reads them is told at
    /// once. They are tried again when a disk comes back, when a scan passes, and after a while.
    pub(super) fn is_in_vain(&self, extent: u32) -> bool {
        let tried = self.in_vain.get(&extent);
        tried.is_some_and(|at| self.now.since(*at) < TRY_AGAIN) && !active(Mutation::TriedEachTime)
    }

    pub(super) fn checkpoint_now(&mut self) -> Result<(), Halt> {
        if self.core.flush_broken || !self.core.checkpoint(false)? {
            self.core.flush_broken = true;
            self.core.io.events.note(Event::FlushFailed);
            self.fail_rounds();
            let full = self.core.journal.room(false) == Room::Full;
            self.crowded = false;
            return if full { Err(Halt::MetadataFull) } else { Ok(()) };
        }
        self.crowded = false;
        // It flushed and committed everything, the running round's share included.
        self.end_round();
        Ok(())
    }

    /// Nothing goes on: whoever waits is told.
    fn fail_all(&mut self) -> bool {
        self.trouble.clear();
        self.jobs.clear();
        self.heal.clear();
        self.heal_logs.clear();
        self.to_settle.clear();
        self.to_fetch.clear();
        self.frozen = false;
        self.fail_rounds();
        for line in [
            &mut self.held,
            &mut self.durable_wait,
            &mut self.appended_wait,
            &mut self.slot_wait,
            &mut self.moves.place_wait,
        ] {
            self.ready.extend(line.drain(..));
        }
        self.fail_lines();
        debug_assert!(to_u32(self.parts.len()) > 0);
        !self.ready.is_empty()
    }
}

#[cfg(test)]
mod tests;
