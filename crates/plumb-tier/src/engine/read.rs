//! Reading (section 7).

use plumb_io::{FlushQueue, OpKind};
use plumb_units::convert::index;

use super::part::{NONE, Part, PartKind, Step};
use super::perf::note_tier_time;
use super::{Account, EIO, Engine};
use crate::events::Event;
use crate::extents::{Sum, UNSETTLED, is_second_tier};
use crate::format::checksum::UNVERIFIED;
use crate::format::{BLOCK_BYTES, MediaType};
use crate::io::Tag;
use crate::mutation::{Mutation, active};

/// Where a run of blocks is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Nowhere: they are unwritten.
    Zeros,
    /// The extent's place.
    Home,
    /// The log: record, position of the first block.
    Log { lsn: u64, position: u64 },
}

impl<Q: FlushQueue> Engine<Q> {
    /// Reads run by run: each from the log or from home, the log first.
    pub(super) fn begin_read(&mut self, part: u32) {
        loop {
            let own = self.parts[index(part)];
            let (first, end) = own.blocks();
            let from = own.cursor.max(first);
            if from == end {
                self.drop_slots(part);
                self.end_part(part, None);
                return;
            }
            let (to, source) = self.run_of(&own, from, end);
            if source == Source::Zeros {
                self.hand_over(part, (from, to), None);
                self.parts[index(part)].run_end = to;
                self.run_done(part);
                continue;
            }
            if source == Source::Home && self.waits_for_settling(part) {
                return;
            }
            if self.parts[index(part)].slots[0] == NONE {
                let Some(slot) = self.core.io.take_data_slot() else {
                    self.wait_for_slots(part, 1);
                    return;
                };
                self.parts[index(part)].slots[0] = slot;
            }
            self.aim(part, from, end);
            self.read_copy(part, Step::Reading);
            return;
        }
    }

    /// The run that a part reads next: where no copy gave one as a whole a single block, and from home what no copy of the log has.
    fn run_of(&self, own: &Part, from: u32, end: u32) -> (u32, Source) {
        match own.one_by_one {
            _ if own.at_home == from => (from + 1, Source::Home),
            true => self.run_at(own.extent, from, from + 1),
            false => self.run_at(own.extent, from, end),
        }
    }

    /// The longest run of blocks from `from` on that one I/O can read.
    fn run_at(&self, extent: u32, from: u32, end: u32) -> (u32, Source) {
        let log = self.log_of(extent).filter(|log| log.lines() > 0);
        let log = log.filter(|_| !active(Mutation::LinesIgnored));
        let home = |to: u32| {
            let sums = &self.core.extents.get(extent).sums;
            let written = |block: u32| sums.get(index(block)).is_some_and(|sum| sum.newest != 0);
            let source = if (from..to).any(written) { Source::Home } else { Source::Zeros };
            (to, source)
        };
        let Some(log) = log else { return home(end) };
        let base = self.block_of_vdisk(extent, 0);
        let line = |block: u32| log.line(base + u64::from(block));
        let stop = |differs: &dyn Fn(u32) -> bool| {
            (from + 1..end).find(|block| differs(*block)).unwrap_or(end)
        };
        match line(from).copied() {
            None => home(stop(&|block| line(block).is_some())),
            Some(own) if own.crc == 0 => {
                (stop(&|block| line(block).is_none_or(|line| line.crc != 0)), Source::Zeros)
            }
            Some(own) => {
                let next = |block: u32| own.position + u64::from(block - from) * BLOCK_BYTES;
                let follows = |block: u32| {
                    line(block).is_some_and(|line| {
                        line.crc != 0 && line.lsn == own.lsn && line.position == next(block)
                    })
                };
                let source = Source::Log { lsn: own.lsn, position: own.position };
                (stop(&|block| !follows(block)), source)
            }
        }
    }

    /// Finds where the part's blocks from `from` on lie, as many as one I/O can read. A run of the log holds
    /// its record, and what it must be is kept: the tail may pass it while it is read.
    pub(super) fn aim(&mut self, part: u32, from: u32, end: u32) {
        let own = self.parts[index(part)];
        let (to, source) = self.run_of(&own, from, end);
        let lsn = if let Source::Log { lsn, .. } = source { lsn } else { 0 };
        if own.source != lsn {
            self.release_source(part);
            self.parts[index(part)].tried = 0;
        }
        let state = &mut self.parts[index(part)];
        (state.cursor, state.run_end, state.reads_into) = (from, to, 0);
        let Source::Log { lsn, position } = source else {
            self.locate_part(part, from);
            return;
        };
        let vdisk = self.core.vdisk(own.extent);
        let base = self.block_of_vdisk(own.extent, 0);
        let (first, _) = own.blocks();
        let sums = index(part) * self.part_blocks;
        let members = &self.core.members;
        let (Some(log), Some(cache)) =
            (&mut self.core.logs[vdisk], &members.config.vdisks[vdisk].cache)
        else {
            return;
        };
        for block in from..to {
            let crc = log.line(base + u64::from(block)).map_or(0, |line| line.crc);
            self.sums[sums + index(block - first)] = crc;
        }
        self.parts[index(part)].copies = log.locate(cache, &members.geometry, position);
        if own.source != lsn {
            log.pin(lsn);
            self.parts[index(part)].source = lsn;
            self.parts[index(part)].cached = true;
        }
    }

    /// The run that was read is done with.
    pub(super) fn run_done(&mut self, part: u32) {
        self.release_source(part);
        let own = &mut self.parts[index(part)];
        own.cursor = own.run_end;
        own.tried = 0;
    }

    pub(super) fn release_source(&mut self, part: u32) {
        let own = &mut self.parts[index(part)];
        let lsn = std::mem::replace(&mut own.source, 0);
        if lsn != 0 {
            let vdisk = self.core.vdisk(self.parts[index(part)].extent);
            if let Some(log) = &mut self.core.logs[vdisk] {
                log.unpin(lsn);
            }
        }
    }

    /// Gives back what a part read of the old content: it begins from the start.
    pub(super) fn forget_old(&mut self, part: u32) {
        self.drop_slots(part);
        self.release_source(part);
        let own = &mut self.parts[index(part)];
        (own.has_old, own.cursor, own.tried, own.at_home) = (false, 0, 0, NONE);
    }

    /// Finds where the part's blocks from `first` on have their home.
    pub(super) fn locate_part(&mut self, part: u32, first: u32) {
        let extent = self.parts[index(part)].extent;
        self.parts[index(part)].copies = self.core.copies_at(extent, first * 4096);
    }

    /// Reads the run that a part aims at into a slot of it, from a copy that was not tried.
    pub(super) fn read_copy(&mut self, part: u32, step: Step) {
        let own = self.parts[index(part)];
        let (from, to) = (own.cursor, own.run_end);
        let turn = own.client.wrapping_add(from) % 3;
        let vdisk = self.core.vdisk(own.extent);
        let readable = |disk: u16| match own.source {
            0 => self.core.members.in_sync(disk, own.extent),
            _ => self.core.members.log_readable(vdisk, disk),
        };
        let able = |copy: &(u8, u16, u64)| own.tried >> copy.0 & 1 == 0 && readable(copy.1);
        // The disk with less to do; of rotating ones that whose head is there; else in turn.
        let disks = &self.core.members.config.disks;
        let by_turn = |copy: &(u8, u16, u64)| {
            let turn = (u32::from(copy.0) + turn) % u32::from(own.copies.count);
            let turns = disks[usize::from(copy.1)].media == MediaType::Hdd;
            let follows = turns && self.core.io.goes_on(copy.1, copy.2);
            (self.core.io.queued(copy.1), !follows, turn)
        };
        let Some((copy, disk, offset)) = own.copies.iter().filter(able).min_by_key(by_turn) else {
            let sums = &self.core.extents.get(own.extent).sums;
            let unsettled = |block: u32| sums.at(index(block)).flags & UNSETTLED != 0;
            if own.source == 0 && (from..to).any(unsettled) && self.waits_to_settle(part) {
                return;
            }
            let asked = own.tried != 0 || own.source != 0;
            if asked && to - from > 1 && !active(Mutation::RunsUndivided) {
                // What is bad of one copy may be another block than what is bad of another one.
                let own = &mut self.parts[index(part)];
                (own.one_by_one, own.tried) = (true, 0);
                self.begin_again(part);
                return;
            }
            if own.source != 0 && self.reads_from_home(part) {
                return;
            }
            match own.source {
                0 if self.is_doubted(part) => {}
                0 => self.core.note_unread(own.extent, from, to - from),
                // Whoever looks at the record says what is lost.
                lsn => self.look_at(vdisk, lsn),
            }
            self.drop_slots(part);
            self.end_part(part, Some(EIO));
            return;
        };
        let own = &mut self.parts[index(part)];
        own.step = step;
        own.left = 1;
        own.ok = 0;
        own.failed = 0;
        let (slot, len) = (own.slots[usize::from(own.reads_into)], (to - from) * 4096);
        let tag = Tag::Part { part, copy };
        self.core.io.push_part(OpKind::Read, disk, (slot, offset, len), tag);
    }

    /// No copy of the log has the block that a part reads: whether its home should have the same, which is read then.
    fn reads_from_home(&mut self, part: u32) -> bool {
        let own = self.parts[index(part)];
        let (first, _) = own.blocks();
        let crc = self.sums[index(part) * self.part_blocks + index(own.cursor - first)];
        if !self.core.home_has(own.extent, own.cursor, crc) || active(Mutation::HomeUnasked) {
            return false;
        }
        self.parts[index(part)].at_home = own.cursor;
        self.begin_again(part);
        true
    }

    /// A record of a log has a copy that does not verify: all of its copies are looked at.
    fn look_at(&mut self, vdisk: usize, lsn: u64) {
        if !self.heal_logs.contains(&(vdisk, lsn)) && self.heal_logs.len() < 64 {
            self.heal_logs.push((vdisk, lsn));
        }
    }

    /// What a start left for later is settled before anything of it is read, or written in place; the part begins anew then.
    pub(super) fn waits_for_settling(&mut self, part: u32) -> bool {
        let extent = self.parts[index(part)].extent;
        if !self.core.deferred.has(extent) || active(Mutation::DeferredRead) {
            return false;
        }
        self.parts[index(part)].step = Step::Begin;
        self.forget_old(part);
        if !self.to_settle.contains(&extent) {
            self.to_settle.push(extent);
        }
        self.held.push_back(part);
        true
    }

    /// What a start could not settle, or a write that failed left, is settled once for whoever meets it (RES-3), and the part
    /// begins anew then; not where a last copy could not be flushed (C10), and not in vain: without a copy here, or while
    /// its disk may still do a write that was given up. `false` when nobody can, or that was done already.
    pub(super) fn waits_to_settle(&mut self, part: u32) -> bool {
        let own = self.parts[index(part)];
        let copies = self.core.copies_at(own.extent, own.blocks().0 * 4096);
        let here = |disk: u16| self.core.members.in_sync(disk, own.extent);
        let vain = !copies.iter().any(|copy| here(copy.1))
            || copies.iter().any(|copy| here(copy.1) && self.core.io.owes_write(copy.1));
        let extent = own.extent;
        let vain = vain || self.is_in_vain(extent);
        // A standstill is one step: the engine may have done something else in it.
        let waits = self.to_settle.contains(&extent) && !active(Mutation::SettledOnce);
        let own = &mut self.parts[index(part)];
        let was = std::mem::replace(&mut own.settled, true) && !waits;
        let unflushable = self.core.flush_broken || self.core.is_unflushable(extent);
        if vain || was || unflushable || self.unchanging {
            return false;
        }
        own.step = Step::Begin;
        self.forget_old(part);
        if !waits {
            self.to_settle.push(extent);
        }
        self.held.push_back(part);
        true
    }

    /// Which copy was just read, and whether what it gave verifies.
    pub(super) fn verify(&mut self, part: u32) -> bool {
        let own = self.parts[index(part)];
        let copy = own.ok | own.failed;
        self.parts[index(part)].tried |= copy;
        let mut good = own.ok != 0;
        let (first, _) = own.blocks();
        let slot = own.slots[usize::from(own.reads_into)];
        for block in own.cursor..own.run_end {
            let wanted = match own.source {
                0 => self.core.extents.get(own.extent).sums.at(index(block)).newest,
                _ => self.sums[index(part) * self.part_blocks + index(block - first)],
            };
            let doubted = wanted == UNVERIFIED && active(Mutation::UnverifiedRead);
            if !good || wanted == 0 || doubted || active(Mutation::ReadUnverified) {
                continue;
            }
            let from = index(block - own.cursor) * 4096;
            let seed = self.core.members.data_seeds[self.core.vdisk(own.extent)];
            let number = self.block_of_vdisk(own.extent, block);
            let bytes = &self.core.io.data(slot)[from..from + 4096];
            good = crate::format::checksum::block(seed, number, bytes) == wanted;
            self.core.counters.blocks_verified += 1;
        }
        if !good && !self.is_doubted(part) {
            self.core.counters.mismatches += 1;
            let disk = own.copies.at[index(copy.trailing_zeros().min(2))].0;
            self.core.io.events.note(Event::BadCopy { disk, extent: own.extent });
            let heals = own.source == 0 && own.copies.count > 1;
            if heals && !self.heal.contains(&own.extent) && self.heal.len() < 64 {
                self.heal.push(own.extent);
            }
            if own.source != 0 {
                let vdisk = self.core.vdisk(own.extent);
                self.look_at(vdisk, own.source);
            }
        }
        good
    }

    /// Whether a block of the run that a part aims at has lost its checksum: no copy is to blame that it does not verify
    /// (LAY-7).
    fn is_doubted(&self, part: u32) -> bool {
        let own = self.parts[index(part)];
        let sums = &self.core.extents.get(own.extent).sums;
        let doubted = |block: u32| sums.get(index(block)).is_some_and(Sum::is_unverified);
        own.source == 0 && (own.cursor..own.run_end).any(doubted)
    }

    /// Block of its virtual disk.
    pub(super) fn block_of_vdisk(&self, extent: u32, within: u32) -> u64 {
        let vdisk = self.core.vdisk(extent);
        let first = self.core.members.config.vdisks[vdisk].first_extent;
        self.core.extents.block(extent - first, within)
    }

    pub(super) fn read_done(&mut self, part: u32) {
        if self.verify(part) {
            let own = self.parts[index(part)];
            self.hand_over(part, (own.cursor, own.run_end), Some(own.slots[0]));
            self.run_done(part);
            self.parts[index(part)].step = Step::Begin;
            if self.parts[index(part)].cursor == own.blocks().1 {
                self.drop_slots(part);
                self.end_part(part, None);
                return;
            }
        }
        self.begin_again(part);
    }

    /// Begins from the start, with all that it knows about its copies.
    pub(super) fn begin_again(&mut self, part: u32) {
        self.parts[index(part)].step = Step::Begin;
        self.ready.push_back(part);
    }

    /// Copies a run that was read to the client; zeros for blocks that were never written.
    fn hand_over(&mut self, part: u32, (first, end): (u32, u32), slot: Option<u32>) {
        let own = self.parts[index(part)];
        debug_assert!(own.kind == PartKind::Read);
        let extent = self.core.extents.get(own.extent);
        let (from, to) = (own.start.max(first * 4096), (own.start + own.len).min(end * 4096));
        let account = match slot {
            None => Account::Zeros,
            Some(_) if own.source != 0 => Account::CacheRead,
            Some(_) => Account::TierRead(is_second_tier(self.core.extents.place(own.extent))),
        };
        let uncounted = to.saturating_sub(from.max(own.counted * 4096));
        if uncounted > 0 || active(Mutation::CountedTwice) {
            let bytes = if active(Mutation::CountedTwice) { to - from } else { uncounted };
            let time = self.seen.since(own.begun);
            let vdisk = self.core.vdisk(own.extent);
            note_tier_time(&mut self.tier_times[vdisk], account, time);
            self.clients[index(own.client)].served.add(account, bytes, time);
            self.parts[index(part)].counted = end;
        }
        let written = |block: u32| {
            own.source != 0 || extent.sums.get(index(block)).is_some_and(|sum| sum.newest != 0)
        };
        let whole = slot.is_some() && (first..end).all(written);
        // Block by block where some were never written.
        let step = if whole { end - first } else { 1 };
        for block in (first..end).step_by(index(step)) {
            let (low, high) = ((block * 4096).max(from), ((block + step) * 4096).min(to));
            let at = own.buffer + (low - own.start);
            match slot.filter(|_| written(block)) {
                Some(slot) => {
                    let skew = index(low - first * 4096);
                    let bytes = &self.core.io.data(slot)[skew..][..index(high - low)];
                    self.memory.fill(own.client, at, bytes);
                }
                None => self.memory.zero(own.client, at, high - low),
            }
        }
    }
}
