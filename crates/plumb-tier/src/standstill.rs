//! What is done extent by extent while no request is under way: settling blocks after a crash, bringing
//! a returned disk up to date, scanning and healing.

use std::ops::Deref;
use std::rc::Rc;

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_u64};

use crate::core::{Core, Halt};
use crate::events::Event;
use crate::extents::{Copies, PENDING, SEALED, Sum, TENTATIVE, UNMAPPED, UNSETTLED, locate};
use crate::format::checksum::{self, UNVERIFIED};
use crate::format::frame::Record;
use crate::format::{BLOCK_BYTES, BLOCK_LEN};
use crate::io::Work;
use crate::mutation::{Mutation, active};
use crate::unverified::before_first;

/// The content of a block, within what one read gave.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    run: Rc<[u8]>,
    at: usize,
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.run[self.at..self.at + BLOCK_LEN]
    }
}

/// What is to be written of a block: disk, offset, content.
pub(crate) type BlockWrite = (u16, u64, Block);
/// A copy of a block: disk, offset, content; `None` when it cannot be read.
pub(crate) type CopyOf = (u16, u64, Option<Block>);

/// What the copies of one block hold: in-sync ones, in order.
pub(crate) struct Contents {
    pub(crate) copies: Vec<CopyOf>,
}

impl Contents {
    /// Copies that can be read, with their numbers.
    fn readable(&self) -> impl Iterator<Item = (usize, &Block)> {
        self.copies.iter().enumerate().filter_map(|(nth, copy)| Some((nth, copy.2.as_ref()?)))
    }

    /// The copy that most others are like, the first of those; `None` when none can be read.
    pub(crate) fn most_common(&self) -> Option<usize> {
        let votes = |bytes: &[u8]| self.readable().filter(|other| **other.1 == *bytes).count();
        let counted = self.readable().map(|(nth, bytes)| (votes(bytes), nth));
        let best = counted.fold(None, |best: Option<(usize, usize)>, one| match best {
            Some((count, _)) if count >= one.0 => best,
            _ => Some(one),
        });
        best.map(|(_, nth)| nth)
    }

    /// Whether every copy here holds what that one does.
    pub(crate) fn all_hold(&self, nth: usize) -> bool {
        let one = self.copies[nth].2.as_deref();
        one.is_some() && self.copies.iter().all(|copy| copy.2.as_deref() == one)
    }
}

/// What recovery takes a block for (CRC-3).
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// The content of that copy.
    Copy(usize),
    /// Unwritten.
    Zero,
    /// No copy can be read.
    None,
}

fn is_written(sum: &Sum) -> bool {
    sum.newest != 0
}

impl<Q: FlushQueue> Core<Q> {
    /// Where the copies of a byte of a mapped extent lie.
    #[inline]
    pub(crate) fn copies_at(&self, extent: u32, within: u32) -> Copies {
        self.members.as_it_lies(extent, self.copies_by_row(extent, within))
    }

    /// Where its row says that they lie.
    #[inline]
    fn copies_by_row(&self, extent: u32, within: u32) -> Copies {
        let config = &self.members.config;
        let vdisk = &config.vdisks[self.vdisk(extent)];
        let place = self.extents.place(extent);
        locate(vdisk, &self.members.geometry, config.extent_bytes, place, within)
    }

    /// Checksum of a block's content, by its identity.
    pub(crate) fn sum_of(&self, extent: u32, within: u32, bytes: &[u8]) -> u32 {
        let vdisk = self.vdisk(extent);
        let first = self.members.config.vdisks[vdisk].first_extent;
        let block = self.extents.block(extent - first, within);
        checksum::block(self.members.data_seeds[vdisk], block, bytes)
    }

    /// Longest run of bytes from `within` on that lies on one disk per copy.
    fn run(&self, extent: u32, within: u32) -> u32 {
        let config = &self.members.config;
        let interleave = config.vdisks[self.vdisk(extent)].interleave.min(config.extent_bytes);
        interleave - within % interleave
    }

    /// Reads all in-sync copies of all written blocks of an extent. A disk that does not answer is waited for once;
    /// if it can be spared it is expelled then, and its copies are none of those that are returned.
    pub(crate) fn read_extent(&mut self, extent: u32) -> Result<Vec<(u32, Contents)>, Halt> {
        self.need_sums(extent)?;
        let mut found = Vec::new();
        let mut silent = Vec::new();
        let mut within = 0;
        while within < self.members.config.extent_bytes {
            let len = self.run(extent, within);
            let first = index(within / 4096);
            let written: Vec<usize> = (first..first + index(len / 4096))
                .filter(|block| {
                    self.extents.get(extent).sums.get(*block).is_some_and(|sum| is_written(&sum))
                })
                .collect();
            if let (Some(&from), Some(&to)) = (written.first(), written.last()) {
                self.read_run(extent, (from, to), &written, &mut found, &mut silent);
            }
            within += len;
        }
        if !silent.is_empty() {
            self.lose_spare(silent)?;
            for (_, contents) in &mut found {
                contents.copies.retain(|copy| self.members.is_online(copy.0));
            }
        }
        Ok(found)
    }

    fn read_run(
        &mut self,
        extent: u32,
        (from, to): (usize, usize),
        written: &[usize],
        found: &mut Vec<(u32, Contents)>,
        silent: &mut Vec<u16>,
    ) {
        let len = (to - from + 1) * BLOCK_LEN;
        let copies = self.copies_at(extent, to_u32(from * BLOCK_LEN));
        let mut runs = Vec::new();
        for (_, disk, offset) in copies.iter().filter(|copy| self.members.in_sync(copy.1, extent)) {
            let mut bytes = vec![0; len];
            let mut good = vec![false; to - from + 1];
            if !silent.contains(&disk) && self.io.read(disk, offset, &mut bytes) {
                good.fill(true);
            } else {
                // Block by block: only what cannot be read is lost. One that hangs is not asked again.
                let mut blocks = bytes.chunks_mut(BLOCK_LEN).enumerate();
                loop {
                    if self.io.was_silent(disk) && !silent.contains(&disk) {
                        silent.push(disk);
                    }
                    let Some((nth, block)) = blocks.next().filter(|_| !silent.contains(&disk))
                    else {
                        break;
                    };
                    good[nth] = self.io.read(disk, offset + to_u64(nth) * BLOCK_BYTES, block);
                }
            }
            runs.push((disk, offset, Rc::from(bytes), good));
        }
        for &block in written {
            let nth = block - from;
            let copy = |(disk, offset, run, good): &(u16, u64, Rc<[u8]>, Vec<bool>)| {
                let at = nth * BLOCK_LEN;
                let content = good[nth].then(|| Block { run: Rc::clone(run), at });
                (*disk, offset + to_u64(at), content)
            };
            found.push((to_u32(block), Contents { copies: runs.iter().map(copy).collect() }));
        }
    }

    /// CRC-3 for one block.
    fn choose(&mut self, extent: u32, within: u32, contents: &Contents) -> Choice {
        let sum = self.extents.get(extent).sums.at(index(within));
        let mut readable = contents.readable();
        let verified = readable.find(|(_, bytes)| self.sum_of(extent, within, bytes) == sum.newest);
        if let Some((nth, _)) = verified {
            return Choice::Copy(nth);
        }
        let Some(best) = contents.most_common() else { return Choice::None };
        if sum.flags & TENTATIVE != 0 && !active(Mutation::TentativeTrusted) {
            return Choice::Zero;
        }
        self.counters.interrupted += 1;
        self.io.events.note(Event::Interrupted { extent });
        Choice::Copy(best)
    }

    /// Decides for every block of an open extent what it is after a crash, and makes its copies equal
    /// (CRC-3, CRC-4). The disks were flushed before: what they show stays.
    ///
    /// At `until` it leaves off; how many it came to.
    pub(crate) fn settle(&mut self, extents: &[u32], until: Nanos) -> Result<usize, Halt> {
        self.settle_those(extents, until, |_| true)
    }

    /// What a start could not settle, or a write that failed left, once its disks can be read: before it is read, written in
    /// part, or copied (RES-3). It stays as it is while a disk of it cannot be flushed, or may still do a write that was
    /// given up.
    pub(crate) fn settle_late(&mut self, extent: u32) -> Result<(), Halt> {
        if !self.is_unsettled(extent) {
            return Ok(());
        }
        let mut disks = self.disks_of(extent);
        disks.retain(|disk| self.members.is_online(*disk));
        if disks.iter().any(|disk| self.io.owes_write(*disk)) {
            return Ok(());
        }
        if self.flush_some(&disks)? {
            let equalised = self.counters.equalised;
            self.settle_those(&[extent], Nanos::NEVER, |sum| sum.flags & UNSETTLED != 0)?;
            if self.counters.equalised > equalised {
                // What is read from now on is on all of its copies, whatever becomes of one of them.
                disks.retain(|disk| self.members.is_online(*disk));
                if !active(Mutation::LateSettleUnflushed) {
                    self.flush_some(&disks)?;
                }
            }
            let rounds = self.rounds;
            self.extents.get_mut(extent).written_in = rounds;
        }
        self.forget_settled();
        // A loss must be durable before anything else is acknowledged.
        if self.journal.has_batch() { self.sync() } else { Ok(()) }
    }

    /// Whether blocks of an extent are not settled.
    pub(crate) fn is_unsettled(&self, extent: u32) -> bool {
        let unsettled = |sum: Sum| sum.flags & UNSETTLED != 0;
        self.unsettled.iter().any(|one| one.0 == extent)
            && self.extents.get(extent).sums.iter().any(unsettled)
    }

    /// Blocks that were settled, or written anew, are so for good: places that could not be copied for their sake can be.
    pub(crate) fn forget_settled(&mut self) {
        let extents = &self.extents;
        let before = self.unsettled.len();
        self.unsettled.retain(|(extent, within)| {
            let sum = extents.get(*extent).sums.get(index(*within));
            sum.is_some_and(|sum| sum.flags & UNSETTLED != 0)
        });
        if self.unsettled.len() < before {
            self.members.try_stuck();
        }
    }

    /// What a block is has to be decided: until it is, its extent stays open.
    pub(crate) fn note_unsettled(&mut self, extent: u32, within: u32) {
        let sum = self.extents.get_mut(extent).sums.at_mut(index(within));
        if sum.flags & UNSETTLED == 0 {
            sum.flags |= UNSETTLED;
            self.unsettled.push((extent, within));
        }
    }

    /// A block is what that says, durably: no round has to commit it.
    fn set_sum(&mut self, extent: u32, within: u32, sum: Sum) {
        let own = self.extents.get_mut(extent);
        let old = std::mem::replace(own.sums.at_mut(index(within)), sum);
        own.pending -= u32::from(old.flags & (PENDING | SEALED) != 0);
    }

    fn settle_those(
        &mut self,
        extents: &[u32],
        until: Nanos,
        which: fn(&Sum) -> bool,
    ) -> Result<usize, Halt> {
        let mut tentative: Vec<(u32, u32)> = Vec::new();
        let mut unequal: Vec<(u16, u32)> = Vec::new();
        let mut count = 0;
        for some in extents.chunks(8) {
            if until != Nanos::NEVER && self.io.queue.time() >= until {
                break;
            }
            count += some.len();
            let mut writes: Vec<BlockWrite> = Vec::new();
            let mut places: Vec<(u16, u32)> = Vec::new();
            for &extent in some {
                for (within, contents) in self.read_extent(extent)? {
                    if !which(&self.extents.get(extent).sums.at(index(within))) {
                        continue;
                    }
                    let before = writes.len();
                    if self.settle_block(extent, within, contents, &mut writes) {
                        tentative.push((extent, within));
                    }
                    places.extend(writes[before..].iter().map(|write| (write.0, extent)));
                }
            }
            if self.journal.has_batch() {
                self.sync()?;
            }
            self.counters.equalised += to_u64(writes.len());
            if !active(Mutation::NoEqualise) {
                let kept = self.write_all(&writes)?;
                places.retain(|place| kept.contains(&place.0));
                self.mark_unequal(&places);
                unequal.extend(places);
            }
        }
        self.confirm(&tentative, &unequal)?;
        Ok(count)
    }

    /// Disks that are needed did not take what would have made copies equal there: what they have is neither. Where others have
    /// all of it, that of theirs is out of date; where nobody has, each block is still read from whoever has that.
    pub(crate) fn mark_unequal(&mut self, places: &[(u16, u32)]) {
        for &(disk, extent) in places {
            let spared =
                self.is_elsewhere(disk, extent, places) || active(Mutation::LastEqualMarked);
            let stale = &mut self.members.stale[usize::from(disk)];
            if spared && !stale.has(extent) && !active(Mutation::UnequalTrusted) {
                stale.insert(extent);
                self.journal.append(Record::StaleSet { disk, extent });
            }
        }
    }

    /// Whether all that a disk has of an extent is in sync on others that are not among these places.
    fn is_elsewhere(&self, disk: u16, extent: u32, but: &[(u16, u32)]) -> bool {
        let has = |other: u16| {
            other != disk && self.members.in_sync(other, extent) && !but.contains(&(other, extent))
        };
        let mut within = 0;
        while within < self.members.config.extent_bytes {
            let copies = self.copies_at(extent, within);
            let here = copies.iter().any(|copy| copy.1 == disk);
            if here && !copies.iter().any(|copy| has(copy.1)) {
                return false;
            }
            within += self.run(extent, within);
        }
        true
    }

    /// Commits blocks that were tentative and matched on a copy: only now, for only now do all live copies
    /// hold them durably. Committed earlier, the loss of the copy that matched would turn what a former
    /// owner left on another one into an interrupted write. So those stay tentative of which a disk has a place that is up to date and
    /// is away by now, or did not take them: it may have the last copy, and then it is all that is left to decide by.
    fn confirm(&mut self, tentative: &[(u32, u32)], unequal: &[(u16, u32)]) -> Result<(), Halt> {
        if tentative.is_empty() {
            return Ok(());
        }
        if !active(Mutation::ConfirmBeforeFlush) && !self.flush_data()? {
            // The last copy of something cannot be flushed: they stay tentative, and nothing is written over them (CRC-2).
            for &(extent, within) in tentative {
                self.note_unsettled(extent, within);
                if active(Mutation::UnconfirmedOverwritten) {
                    self.extents.get_mut(extent).sums.at_mut(index(within)).flags = 0;
                }
            }
            return Ok(());
        }
        for &(extent, within) in tentative {
            let lacks = |disk: u16| {
                !self.members.stale[usize::from(disk)].has(extent)
                    && (!self.members.is_online(disk) || unequal.contains(&(disk, extent)))
            };
            let copies = self.copies_at(extent, within * 4096);
            if copies.iter().any(|copy| lacks(copy.1)) && !active(Mutation::ConfirmedUnheld) {
                self.note_unsettled(extent, within);
                continue;
            }
            let block = self.extents.block(extent, within);
            let crc = self.extents.get(extent).sums.at(index(within)).newest;
            self.set_sum(extent, within, Sum::settled(crc));
            self.journal.append(Record::CrcCommit { block, crc });
            self.trees.touch_sum(block);
        }
        Ok(())
    }

    /// Decides for one block and adds what has to be written to `writes`. `true` for one that stays
    /// tentative until that is durable.
    fn settle_block(
        &mut self,
        extent: u32,
        within: u32,
        contents: Contents,
        writes: &mut Vec<BlockWrite>,
    ) -> bool {
        let sum = self.extents.get(extent).sums.at(index(within));
        if sum.is_unverified() {
            return false;
        }
        let choice = self.choose(extent, within, &contents);
        let block = self.extents.block(extent, within);
        let chosen = match choice {
            Choice::None => {
                self.note_unread(extent, within, 1);
                self.note_unsettled(extent, within);
                return false;
            }
            Choice::Zero => {
                // Its first write is not there, and what was there before is what it was.
                let unknown = sum.committed == UNVERIFIED && !active(Mutation::UnverifiedZeroed);
                let before = if unknown { UNVERIFIED } else { 0 };
                self.set_sum(extent, within, Sum { newest: before, committed: before, flags: 0 });
                self.journal.append(before_first(block, before));
                self.trees.touch_sum(block);
                return false;
            }
            Choice::Copy(nth) => contents.copies[nth].2.clone(),
        };
        let Some(chosen) = chosen else { return false };
        let crc = self.sum_of(extent, within, &chosen);
        let early = active(Mutation::ConfirmBeforeFlush) || active(Mutation::TentativeTrusted);
        let stays = sum.flags & TENTATIVE != 0 && !early;
        if !stays {
            if sum.newest != crc || sum.committed != crc || early {
                self.journal.append(Record::CrcCommit { block, crc });
                self.trees.touch_sum(block);
            }
            self.set_sum(extent, within, Sum::settled(crc));
        }
        for (disk, offset, content) in contents.copies {
            if content.is_none_or(|content| *content != *chosen) {
                writes.push((disk, offset, chosen.clone()));
            }
        }
        stays
    }

    /// Writes and waits; disks that fail are expelled, but for those that hold the last copy of something: these are
    /// returned, and what was to be written there was not.
    pub(crate) fn write_all(&mut self, writes: &[BlockWrite]) -> Result<Vec<u16>, Halt> {
        let mut online: Vec<&BlockWrite> =
            writes.iter().filter(|write| self.members.is_online(write.0)).collect();
        // Blocks that lie behind each other go together.
        online.sort_unstable_by_key(|write| (write.0, write.1));
        let follows = |before: &&BlockWrite, after: &&BlockWrite| {
            before.0 == after.0 && before.1 + BLOCK_BYTES == after.1
        };
        let runs: Vec<(u16, u64, Vec<u8>)> = online
            .chunk_by(follows)
            .map(|run| {
                let bytes = run.iter().flat_map(|write| write.2.iter().copied());
                (run[0].0, run[0].1, bytes.collect())
            })
            .collect();
        let work = runs
            .iter()
            .map(|(disk, offset, bytes)| Work::Write { disk: *disk, offset: *offset, bytes })
            .collect();
        let failed = self.io.wait_for(work);
        self.lose_spare(failed)
    }

    /// An open extent of which nothing was written yet is up to date on a disk that comes back, whoever else is away. What had the
    /// last copy until then misses what is written from now on.
    fn mark_no_longer_last(&mut self, extent: u32) {
        if !self.extents.get(extent).open || active(Mutation::LastHolderUnmarked) {
            return;
        }
        let has = |core: &Self, disk: usize| core.members.stale[disk].has(extent);
        let before: Vec<bool> = (0..self.lost.len()).map(|disk| has(self, disk)).collect();
        self.mark_missing(extent);
        for (nth, had) in before.into_iter().enumerate() {
            if !had && has(self, nth) {
                let disk = u16::try_from(nth).unwrap_or(u16::MAX);
                self.journal.append(Record::StaleSet { disk, extent });
            }
        }
    }

    /// Brings the places of some extents on a disk up to date, takes back their marks, and says how many. What
    /// lies elsewhere until it is copied here lies here then. An extent that no copy here can help stays as it is.
    pub(crate) fn resync(&mut self, disk: u16, count: usize) -> Result<usize, Halt> {
        let nth = usize::from(disk);
        let mut stale = self.members.due(disk, count);
        let mut left = Vec::new();
        for &extent in &stale {
            if self.extents.place(extent) == UNMAPPED {
                continue;
            }
            match self.copies_for(disk, extent)? {
                Some(writes) if !active(Mutation::ReturnUnsynced) => {
                    let kept = self.write_all(&writes)?;
                    if kept.contains(&disk) && !active(Mutation::FailedCopyTrusted) {
                        left.push(extent);
                    }
                }
                Some(_) => {}
                None => left.push(extent),
            }
        }
        stale.retain(|extent| !left.contains(extent));
        if !stale.is_empty() && !self.flush_some(&[disk])? {
            left.append(&mut stale);
        }
        left.into_iter().for_each(|extent| self.members.stuck[nth].insert(extent));
        if stale.is_empty() || !self.members.is_online(disk) {
            // A loss must be durable before anything else is acknowledged.
            if self.journal.has_batch() {
                self.sync()?;
            }
            return Ok(0);
        }
        for &extent in &stale {
            self.counters.resynced_bytes += self.share_on(disk, extent);
            self.counters.moved += u64::from(self.members.kept[nth].has(extent));
            self.members.settle_place(disk, extent);
            self.journal.append(Record::StaleClear { disk, extent });
            self.mark_no_longer_last(extent);
        }
        self.counters.resynced += to_u64(stale.len());
        if self.is_up_to_date(disk) {
            self.io.events.note(Event::DiskUpToDate(disk));
        }
        self.sync()?;
        Ok(stale.len())
    }

    /// What has to be written to bring an extent's place on a disk up to date; `None` when a block of it has no
    /// copy here that could, or lies where it was and does not verify there.
    fn copies_for(&mut self, disk: u16, extent: u32) -> Result<Option<Vec<BlockWrite>>, Halt> {
        let arrives = self.members.kept[usize::from(disk)].has(extent);
        let mut writes = Vec::new();
        for (within, contents) in self.read_extent(extent)? {
            let sum = self.extents.get(extent).sums.at(index(within));
            let by_row = self.copies_by_row(extent, within * 4096);
            let lies = self.copies_at(extent, within * 4096);
            let on_it = |copies: Copies| copies.iter().find(|copy| copy.1 == disk);
            let target = if arrives { on_it(by_row) } else { on_it(lies) };
            let Some((_, _, offset)) = target else { continue };
            if active(Mutation::MoveUncopied) && arrives {
                continue;
            }
            // Nobody has it here, or who has it cannot be read now: left out, it would be taken for copied.
            let nobody = contents.copies.is_empty();
            let unread = contents.copies.iter().any(|copy| copy.2.is_none());
            let good = contents.readable().find(|(_, bytes)| {
                // What nobody can judge is copied as it is.
                sum.is_unverified() || self.sum_of(extent, within, bytes) == sum.newest
            });
            let from = match good {
                Some((nth, _)) => Some(nth),
                None if nobody || unread || arrives || sum.flags & UNSETTLED != 0 => {
                    return Ok(None);
                }
                None => {
                    self.note_lost(extent, 1);
                    self.left_of(extent, within, &contents)
                        .filter(|_| !active(Mutation::LostLeftOut))
                }
            };
            let bytes = from.and_then(|nth| contents.copies[nth].2.clone());
            writes.extend(bytes.map(|bytes| (disk, offset, bytes)));
        }
        Ok(Some(writes))
    }

    /// What a block that verifies nowhere is copied from: a place that was left out would hold what a former owner left
    /// there, which the next start took for an interrupted write if nobody else is there (CRC-3). What a device forgot
    /// with its cache is what was committed last.
    fn left_of(&self, extent: u32, within: u32, contents: &Contents) -> Option<usize> {
        let committed = self.extents.get(extent).sums.at(index(within)).committed;
        let mut readable = contents.readable();
        let is_committed = |bytes: &Block| self.sum_of(extent, within, bytes) == committed;
        let found = readable.find(|(_, bytes)| is_committed(bytes)).map(|(nth, _)| nth);
        found.or_else(|| contents.most_common())
    }

    /// What was healed is durable before anybody writes over it: rot that comes back when the power goes, under a write that is torn on all
    /// copies, would be no worse than the others' content (CRC-3).
    fn flush_healed(&mut self, writes: &[BlockWrite]) -> Result<(), Halt> {
        if active(Mutation::HealUnflushed) {
            return Ok(());
        }
        let mut disks: Vec<u16> = writes.iter().map(|write| write.0).collect();
        disks.sort_unstable();
        disks.dedup();
        self.flush_some(&disks).map(|_| ())
    }

    /// What is written in place needs an intent first: disks that are away miss it (RES-4).
    pub(crate) fn open_durably(&mut self, extent: u32) -> Result<(), Halt> {
        if self.extents.get(extent).open {
            return Ok(());
        }
        self.journal.append(Record::Open { extent });
        self.opened(extent);
        self.extents.get_mut(extent).open_lsn = self.journal.last_lsn();
        self.sync()
    }

    /// Reads every copy of every written block of an extent, verifies it, and rewrites bad ones from a
    /// good one. A block without a good copy here is left alone and counted: as lost, or as one that a disk has which is
    /// away.
    pub(crate) fn scan(&mut self, extent: u32) -> Result<(), Halt> {
        if self.extents.place(extent) == UNMAPPED {
            return Ok(());
        }
        let mut writes = Vec::new();
        let (mut lost, mut away) = (0, 0_u64);
        let disks_lost = self.counters.disks_lost;
        for (within, contents) in self.read_extent(extent)? {
            let sum = self.extents.get(extent).sums.at(index(within));
            if sum.is_unverified() {
                continue;
            }
            let newest = sum.newest;
            let good = |copy: &CopyOf| {
                copy.2.as_ref().is_some_and(|bytes| self.sum_of(extent, within, bytes) == newest)
            };
            let verdicts: Vec<bool> = contents.copies.iter().map(good).collect();
            self.counters.blocks_verified += to_u64(verdicts.len());
            let bad = verdicts.iter().filter(|good| !**good).count();
            self.counters.mismatches += to_u64(bad);
            let Some(source) = verdicts.iter().position(|good| *good) else {
                // What is good of it may be on a disk that is not here: that is found out when it is back.
                match self.is_away(extent, within) {
                    true => away += 1,
                    false => {
                        lost += 1;
                        for (disk, ..) in &contents.copies {
                            self.io.events.note(Event::BadCopy { disk: *disk, extent });
                        }
                    }
                }
                continue;
            };
            let Some(bytes) = contents.copies[source].2.clone() else { continue };
            for (nth, _) in verdicts.iter().enumerate().filter(|(_, good)| !**good) {
                let (disk, offset, _) = &contents.copies[nth];
                self.io.events.note(Event::BadCopy { disk: *disk, extent });
                writes.push((*disk, *offset, bytes.clone()));
            }
        }
        if lost > 0 {
            self.note_lost(extent, lost);
        }
        if away > 0 {
            self.counters.away += away;
            self.unread.insert(extent);
        }
        if writes.is_empty() {
            // A loss must be durable before anything else is acknowledged.
            return if self.counters.disks_lost > disks_lost { self.sync() } else { Ok(()) };
        }
        if !active(Mutation::HealUnopened) {
            self.open_durably(extent)?;
        }
        let kept = self.write_all(&writes)?;
        writes.retain(|write| self.members.is_online(write.0) && !kept.contains(&write.0));
        self.counters.healed += to_u64(writes.len());
        for (disk, _, _) in &writes {
            self.io.uses[usize::from(*disk)].healed += 1;
        }
        if !writes.is_empty() {
            self.io.events.note(Event::Healed { extent, blocks: to_u32(writes.len()) });
            self.flush_healed(&writes)?;
        }
        let rounds = self.rounds;
        let own = self.extents.get_mut(extent);
        own.written_in = rounds;
        // Healed copies are durable after the next round, which a pending block brings about.
        let mut written = (0_u32..).zip(own.sums.open()).filter(|(_, sum)| !sum.is_first());
        let idle = |sum: &Sum| sum.flags & (PENDING | UNSETTLED) == 0;
        if let Some((within, sum)) = written.next().filter(|(_, sum)| idle(sum)) {
            // One that a round has sealed is counted already.
            own.pending += u32::from(sum.flags & SEALED == 0);
            sum.flags |= PENDING;
            self.pending.push((extent, within));
        }
        if self.journal.has_batch() { self.sync() } else { Ok(()) }
    }
}
