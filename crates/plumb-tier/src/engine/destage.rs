//! Destage: copying lines of a write-back cache home (WBC-2, WBC-3, WBC-5).
//!
//! A destage is a part like a client's: it holds the range lock from its read to the end of its write
//! (RES-9), opens its extent, writes all live copies, and a round makes it durable. The map cannot change
//! under it.

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_usize};

use super::Engine;
use super::cache::Cache;
use super::part::{Part, PartKind, Step};
use crate::extents::{Copies, UNMAPPED, locate};
use crate::format::{Config, VirtualDisk};
use crate::log::LineState;
use crate::mutation::{Mutation, active};

/// Destages under way at a time for each disk that they write to, at most: as many as a rotating disk sorts well (WBC-3).
const PER_DISK: u32 = 8;
/// Blocks of the queue that are looked at for one whose disks take another destage.
const LOOKED_AT: usize = 64;
/// A batch is one in so many of the ring's oldest bytes: all that rests, or little, so that the tail moves soon (WBC-2).
const BATCH_AT_REST: u64 = 8;
const BATCH: u64 = 64;
/// The tail moves when one in so many of the ring's blocks is at home, at the latest.
const ROUND: u64 = 32;
/// Without client requests for so long, all is destaged.
const REST: Nanos = Nanos(1_000_000_000);
/// After an error the next try.
const RETRY: Nanos = Nanos(1_000_000_000);

/// Parts for destages: so many for each disk of the Capacity tiers behind write-back caches, and slots for two copies of
/// what they carry in no more than half of all slots.
pub(super) fn parts(config: &Config, data_slots: u32) -> u32 {
    let cached = || config.vdisks.iter().filter(|own| own.cache.is_some());
    let disks = cached().map(VirtualDisk::capacity_disks).max().unwrap_or(0);
    let slots = cached().map(|own| u32::from(own.copies).max(2)).max().unwrap_or(2);
    match disks {
        0 if cached().next().is_none() => 0,
        disks => {
            let wanted = PER_DISK.saturating_mul(to_u32(to_usize(disks.max(1))));
            wanted.min((data_slots / 2 / slots).max(PER_DISK))
        }
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// Starts destages, as many as the log's filling asks for, and the rounds that let its tail move.
    pub(super) fn destage(&mut self, vdisk: usize) {
        if self.core.flush_broken || self.core.unflushable[vdisk] || self.unchanging || self.ending
        {
            return;
        }
        let limit = self.destage_limit(vdisk);
        let mut refilled = false;
        while self.caches[vdisk].as_ref().is_some_and(|cache| cache.destaging < limit) {
            let Some(cache) = &mut self.caches[vdisk] else { return };
            if cache.queue.is_empty() {
                if std::mem::replace(&mut refilled, true) {
                    break;
                }
                self.refill(vdisk);
                continue;
            }
            if !self.spawn_destage(vdisk) {
                break;
            }
        }
        self.want_round(vdisk);
    }

    fn destage_limit(&self, vdisk: usize) -> u32 {
        let (Some(cache), Some(log)) = (&self.caches[vdisk], &self.core.logs[vdisk]) else {
            return 0;
        };
        if log.lines() == 0 || self.now < cache.retry {
            return 0;
        }
        let copies = self.core.members.config.vdisks[vdisk].copies;
        let degraded = self.core.members.log_copies(vdisk).count() < usize::from(copies);
        let rests = self.now.since(self.last_request) >= REST;
        match log.fill() {
            _ if degraded || rests || !cache.room_wait.is_empty() => self.destages_most,
            8.. => self.destages_most,
            4.. => self.destages_most / 4,
            _ => 0,
        }
    }

    /// The copies of a block's home; none while it has no home.
    fn home(&self, vdisk: usize, block: u64) -> Copies {
        let config = &self.core.members.config;
        let own = &config.vdisks[vdisk];
        let per = u64::from(self.core.extents.blocks);
        let extent = own.first_extent + to_u32(to_usize(block / per));
        let within = to_u32(to_usize(block % per)) * 4096;
        match self.core.extents.place(extent) {
            UNMAPPED => Copies { at: [(0, 0); 3], count: 0 },
            place => locate(own, &self.core.members.geometry, config.extent_bytes, place, within),
        }
    }

    /// Whether each disk of these copies takes another destage.
    fn takes_destage(&self, copies: &Copies) -> bool {
        let busy = |disk: u16| {
            let on = |own: &&(u32, Copies)| own.1.iter().any(|copy| copy.1 == disk);
            to_u32(self.destages.iter().filter(on).count())
        };
        copies.iter().all(|copy| busy(copy.1) < PER_DISK)
    }

    /// The oldest lines, in the order of their homes.
    fn refill(&mut self, vdisk: usize) {
        let (Some(cache), Some(log)) = (&mut self.caches[vdisk], &self.core.logs[vdisk]) else {
            return;
        };
        let rests = self.now.since(self.last_request) >= REST;
        cache.oldest.clear();
        log.oldest(&mut cache.oldest, log.ring_bytes / if rests { BATCH_AT_REST } else { BATCH });
        let extents = &self.core.extents;
        let first = self.core.members.config.vdisks[vdisk].first_extent;
        let place = |block: u64| {
            let extent = first + to_u32(to_usize(block / u64::from(extents.blocks)));
            (extents.place(extent), block)
        };
        cache.order.clear();
        cache.order.extend(cache.queue.drain(..).chain(cache.oldest.drain(..)).map(place));
        cache.order.sort_unstable();
        cache.queue.extend(cache.order.iter().map(|(_, block)| *block));
    }

    /// The next block of the queue to copy home, and where that is: one whose disks take another destage. `None` when
    /// there is none now; the queue may be empty then.
    fn next_home(&mut self, vdisk: usize) -> Option<(usize, Copies)> {
        let mut nth = 0;
        while nth < LOOKED_AT {
            let block = *self.caches[vdisk].as_ref()?.queue.get(nth)?;
            let line = self.core.logs[vdisk].as_ref()?.line(block);
            if line.is_none_or(|line| line.state != LineState::Dirty) {
                // It may have been written over since.
                self.caches[vdisk].as_mut()?.queue.remove(nth);
                continue;
            }
            let copies = self.home(vdisk, block);
            if self.takes_destage(&copies) {
                return Some((nth, copies));
            }
            nth += 1;
        }
        None
    }

    /// Destages under way by the disks that they write to.
    #[cfg(test)]
    pub(crate) fn destages_by_disk(&self) -> Vec<u32> {
        let mut found = vec![0; self.core.members.config.disks.len()];
        for (_, copies) in &self.destages {
            copies.iter().for_each(|copy| found[usize::from(copy.1)] += 1);
        }
        found
    }

    /// Begins to copy the next blocks of the queue home; `false` when nothing can begin now.
    fn spawn_destage(&mut self, vdisk: usize) -> bool {
        let Some((nth, copies)) = self.next_home(vdisk) else {
            return self.caches[vdisk].as_ref().is_some_and(|cache| cache.queue.is_empty());
        };
        let Some(part) = self.free_background.pop() else { return false };
        let config = &self.core.members.config;
        let step = self.core.io.plan().data_bytes.min(config.vdisks[vdisk].interleave) / 4096;
        let first_extent = config.vdisks[vdisk].first_extent;
        let per = u64::from(self.core.extents.blocks);
        let (Some(cache), Some(log)) = (&mut self.caches[vdisk], &mut self.core.logs[vdisk]) else {
            return false;
        };
        let block = cache.queue[nth];
        let zeros = log.line(block).is_some_and(|line| line.crc == 0);
        let start = to_u32(to_usize(block % per));
        let room = (step - start % step).min(to_u32(to_usize(per)) - start);
        let mut count = 0;
        while count < room && cache.queue.get(nth) == Some(&(block + u64::from(count))) {
            let line = log.line(block + u64::from(count));
            let same = |line: &&crate::log::Line| {
                line.state == LineState::Dirty && (line.crc == 0) == zeros
            };
            if line.filter(same).is_none() {
                break;
            }
            log.set_state(block + u64::from(count), LineState::Destaging);
            cache.queue.remove(nth);
            count += 1;
        }
        self.destages.push((part, copies));
        cache.destaging += 1;
        let extent = first_extent + to_u32(to_usize(block / per));
        self.parts[index(part)] = Part {
            client: super::part::NONE,
            kind: if zeros { PartKind::DestageZero } else { PartKind::Destage },
            extent,
            start: start * 4096,
            len: count * 4096,
            step: Step::Lock,
            queued: true,
            ..Part::default()
        };
        self.locks.enter(part, &mut self.parts);
        self.core.extents.get_mut(extent).writers += 1;
        self.ready.push_back(part);
        true
    }

    /// Begins, or begins again after a wait.
    pub(super) fn begin_destage(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let base = self.block_of_vdisk(own.extent, 0);
        let vdisk = self.core.vdisk(own.extent);
        let zeros = own.kind == PartKind::DestageZero;
        let Some(log) = &mut self.core.logs[vdisk] else { return };
        let blocks = || base + u64::from(first)..base + u64::from(end);
        let to_do = |block: u64| {
            let line = log.line(block);
            line.is_some_and(|l| l.state == LineState::Destaging && (l.crc == 0) == zeros)
        };
        if !blocks().all(to_do) {
            // A client was first: what is left of the lines waits for the next turn.
            for block in blocks() {
                if log.line(block).is_some_and(|line| line.state == LineState::Destaging) {
                    log.set_state(block, LineState::Dirty);
                }
            }
            self.drop_slots(part);
            self.end_part(part, None);
            return;
        }
        if self.waits_for_settling(part) {
            return;
        }
        if zeros {
            let lsn = self.zero_home(own.extent, first, end);
            let own = &mut self.parts[index(part)];
            own.lsn = lsn;
            own.step = Step::Appended;
            self.advance(part);
            return;
        }
        if self.core.extents.place(own.extent) == UNMAPPED && !self.map(part) {
            return;
        }
        self.begin_in_place(part);
    }

    /// Reads the next run of a destage, behind what was read before.
    pub(super) fn gather(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let from = own.cursor.max(first);
        self.aim(part, from, end);
        self.parts[index(part)].reads_into = u8::from(from > first);
        self.read_copy(part, Step::OldRead);
    }

    /// A run of a destage was read.
    pub(super) fn gathered(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let from = own.cursor.max(first);
        if own.reads_into == 1 {
            let place = (index(from - first) * 4096, index(own.run_end - from) * 4096);
            self.core.io.copy_data_to(own.slots[1], own.slots[0], place);
        }
        self.run_done(part);
        self.parts[index(part)].has_old = own.run_end == end;
    }

    /// A destage has ended.
    pub(super) fn destage_ended(&mut self, part: u32, good: bool) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let base = self.block_of_vdisk(own.extent, 0);
        let vdisk = self.core.vdisk(own.extent);
        let now = self.now;
        let (Some(cache), Some(log)) = (&mut self.caches[vdisk], &mut self.core.logs[vdisk]) else {
            return;
        };
        cache.destaging -= 1;
        self.destages.retain(|own| own.0 != part);
        if !good {
            cache.retry = now + RETRY;
        }
        for block in base + u64::from(first)..base + u64::from(end) {
            if log.line(block).is_none_or(|line| line.state != LineState::Destaging) {
                continue;
            }
            if good {
                self.core.counters.destaged += 1;
                log.set_home(block);
                if active(Mutation::HomeUnflushed) {
                    log.set_state(block, LineState::Clean);
                }
            } else {
                log.set_state(block, LineState::Dirty);
            }
        }
    }

    /// A full log needs rounds: they clean its lines and let its tail move.
    fn want_round(&mut self, vdisk: usize) {
        let (Some(cache), Some(log)) = (&self.caches[vdisk], &self.core.logs[vdisk]) else {
            return;
        };
        let (home, passable) = log.wants_round();
        let waits = |cache: &Cache| !cache.room_wait.is_empty();
        let many = home >= to_usize((log.ring_bytes / 4096 / ROUND).max(1))
            || passable && cache.destaging == 0;
        let hurry = waits(cache) && (home > 0 || passable);
        if hurry || log.fill() >= 8 && (many || home > 0 && cache.destaging == 0) {
            self.round.wanted = true;
        }
    }
}
