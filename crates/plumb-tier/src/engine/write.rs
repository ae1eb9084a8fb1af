//! Writing in place: map, intent, old content around the edges, all live copies, checksums.

use plumb_io::{FlushQueue, OpKind};
use plumb_units::convert::index;

use super::part::{NONE, PartKind, Step};
use super::perf::note_tier_time;
use super::{Account, EIO, Engine};
use crate::extents::{COMMITTING, PENDING, SEALED, TENTATIVE, UNMAPPED, UNSETTLED, is_second_tier};
use crate::format::checksum;
use crate::format::frame::Record;
use crate::io::Tag;
use crate::mutation::{Mutation, active};
use crate::unverified::before_first;

/// No space left: cannot be on fixed provisioning, and is answered all the same.
const ENOSPC: plumb_io::Errno = plumb_io::Errno(28);

impl<Q: FlushQueue> Engine<Q> {
    /// Begins, or begins again after a wait: every condition is looked at anew (6.1).
    pub(super) fn begin_write(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let overlaps = self.overlaps_lines(part);
        let unmapped = self.core.extents.place(own.extent) == UNMAPPED;
        if unmapped && !overlaps && !self.map(part) {
            return;
        }
        if overlaps || self.admits(part) {
            self.begin_logging(part);
        } else {
            self.begin_in_place(part);
        }
    }

    /// Writes a part home, when the extent is open and nothing else stands in the way.
    pub(super) fn begin_in_place(&mut self, part: u32) {
        let own = self.parts[index(part)];
        if self.waits_for_settling(part) || !self.is_open(part) || self.waits_for_commit(part) {
            return;
        }
        let (first, end) = own.blocks();
        self.locate_part(part, first);
        let copies = self.parts[index(part)].copies;
        let members = &self.core.members;
        let live = copies.iter().filter(|copy| members.is_online(copy.1)).count();
        let in_sync = copies.iter().any(|copy| members.in_sync(copy.1, own.extent));
        if !in_sync {
            self.forget_old(part);
            self.end_part(part, Some(EIO));
            return;
        }
        // A destage of several runs puts them together in a slot beside the one that it reads into.
        let needed = if own.kind == PartKind::Destage { live.max(2) } else { live };
        // It may hold one beyond these, and none where it lost one to a disk that hangs.
        let counted = if active(Mutation::SlotsMiscounted) { 3 } else { needed };
        let held = own.slots[..counted].iter().filter(|slot| **slot != NONE).count();
        if held + self.core.io.data_slots_free() < needed {
            // All or none: whoever waits holds nothing that another one waits for.
            self.forget_old(part);
            self.wait_for_slots(part, needed);
            return;
        }
        if own.slots[0] == NONE {
            (self.parts[index(part)].has_old, self.parts[index(part)].cursor) = (false, 0);
        }
        for nth in 0..needed {
            if self.parts[index(part)].slots[nth] == NONE {
                self.parts[index(part)].slots[nth] = self.core.io.take_data_slot().unwrap_or(NONE);
            }
        }
        if self.parts[index(part)].has_old {
            self.issue_write(part);
        } else if own.kind == PartKind::Destage {
            self.gather(part);
        } else if self.needs_old(part) {
            self.aim(part, first, end);
            self.read_copy(part, Step::OldRead);
        } else {
            self.issue_write(part);
        }
    }

    /// Gives the extent a slot; the record opens it (CRC-2 makes its old content unreachable). `false`
    /// when the part ended, or waits for a slot to become free.
    pub(super) fn map(&mut self, part: u32) -> bool {
        let extent = self.parts[index(part)].extent;
        let vdisk = self.core.vdisk(extent);
        if self.waits_for_closing(part) {
            return false;
        }
        let Some(place) = self.core.extents.allocate(vdisk) else {
            if !self.moves.is_still() {
                // A move has a slot more than its extent needs: it gives one back.
                self.moves.place_wait.push_back(part);
            } else if self.core.freeing.is_empty() {
                self.end_part(part, Some(ENOSPC));
            } else {
                let lsn = self.core.freeing.iter().map(|one| one.0).max().unwrap_or(0);
                self.core.journal.want(lsn);
                self.parts[index(part)].lsn = lsn;
                self.durable_wait.push_back(part);
            }
            return false;
        };
        self.core.extents.map(extent, place);
        let lsn = self.core.journal.append(Record::MapSet { extent, place });
        self.core.begins_up_to_date(extent);
        self.core.opened(extent);
        self.core.extents.get_mut(extent).open_lsn = 0;
        self.core.trees.touch_map(extent);
        self.core.trees.touch_sums(extent, self.core.extents.blocks);
        self.parts[index(part)].lsn = lsn;
        true
    }

    /// Whether an extent waits to be opened until others are closed, which the next round does (section 4).
    fn waits_for_closing(&mut self, part: u32) -> bool {
        if self.core.flush_broken || self.halted.is_some() || !self.core.opens_too_many() {
            return false;
        }
        self.forget_old(part);
        self.round.wanted = true;
        self.tentative_wait.push_back(part);
        true
    }

    /// Whether in-place writes may begin; else the intent is on its way, and the part waits.
    fn is_open(&mut self, part: u32) -> bool {
        let extent = self.parts[index(part)].extent;
        if !self.core.extents.get(extent).open {
            if self.waits_for_closing(part) {
                return false;
            }
            let lsn = self.core.journal.append(Record::Open { extent });
            self.core.opened(extent);
            self.core.extents.get_mut(extent).open_lsn = lsn;
        }
        let lsn = self.core.extents.get(extent).open_lsn;
        if lsn <= self.core.journal.durable || active(Mutation::NoIntent) {
            return true;
        }
        self.core.journal.want(lsn);
        self.parts[index(part)].lsn = lsn;
        self.durable_wait.push_back(part);
        false
    }

    /// CRC-2: a block whose first write may not be durable is not overwritten.
    fn waits_for_commit(&mut self, part: u32) -> bool {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let sums = &self.core.extents.get(own.extent).sums;
        let has =
            |flags: u8| (first..end).any(|block| sums.at(index(block)).flags & flags == flags);
        let (waits, unsettled) = (has(TENTATIVE), has(TENTATIVE | UNSETTLED));
        if !waits || active(Mutation::OverwriteTentative) {
            return false;
        }
        self.forget_old(part);
        if unsettled && self.waits_to_settle(part) {
            return true;
        }
        if self.core.flush_broken || unsettled || self.core.is_unflushable(own.extent) {
            self.end_part(part, Some(EIO));
            return true;
        }
        self.round.wanted = true;
        self.tentative_wait.push_back(part);
        true
    }

    pub(super) fn old_read_done(&mut self, part: u32) {
        if self.verify(part) {
            if self.parts[index(part)].kind == PartKind::Destage {
                self.gathered(part);
            } else {
                self.run_done(part);
                self.parts[index(part)].has_old = true;
            }
        }
        self.begin_again(part);
    }

    /// Puts the blocks together in the first slot, checksums them, and writes them to all live copies.
    fn issue_write(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let len = (end - first) * 4096;
        let seed = self.core.members.data_seeds[self.core.vdisk(own.extent)];
        let skew = index(own.skew());
        {
            let buffer = &mut self.core.io.data(own.slots[0])[..index(len)];
            if !own.has_old && !own.covers(first) {
                buffer.fill(0);
            }
            let target = &mut buffer[skew..skew + index(own.len)];
            if own.kind == PartKind::WriteZeros {
                target.fill(0);
            } else if own.kind == PartKind::Write {
                self.memory.read(own.client, own.buffer, target);
            }
        }
        let base = index(part) * self.part_blocks;
        for block in first..end {
            let number = self.block_of_vdisk(own.extent, block);
            let from = index(block - first) * 4096;
            let crc =
                checksum::block(seed, number, &self.core.io.data(own.slots[0])[from..from + 4096]);
            self.sums[base + index(block - first)] = crc;
            if self.core.extents.get(own.extent).sums.at(index(block)).is_first() {
                let block = self.core.extents.block(own.extent, block);
                self.parts[index(part)].lsn =
                    self.core.journal.append(Record::CrcFirst { block, crc });
            }
        }
        self.push_copies(part, len);
    }

    fn push_copies(&mut self, part: u32, len: u32) {
        let own = self.parts[index(part)];
        let mut nth = 0;
        let mut slots = [NONE; 3];
        for (copy, disk, _) in own.copies.iter() {
            if !self.core.members.is_online(disk) {
                continue;
            }
            slots[usize::from(copy)] = own.slots[nth];
            nth += 1;
        }
        for slot in own.slots[nth..].iter().filter(|slot| **slot != NONE) {
            // Fewer copies are live than when the slots were taken.
            self.core.io.give_data_slot(*slot);
        }
        let whole = own.kind == PartKind::Write && own.len == len;
        for slot in &own.slots[1..nth.max(1)] {
            if whole {
                let target = &mut self.core.io.data(*slot)[..index(len)];
                self.memory.read(own.client, own.buffer, target);
            } else {
                self.core.io.copy_data(own.slots[0], *slot, index(len));
            }
        }
        let state = &mut self.parts[index(part)];
        state.slots = slots;
        state.step = Step::Writing;
        state.left = u8::try_from(nth).unwrap_or(0);
        state.ok = 0;
        state.failed = 0;
        state.tried = 0;
        for (copy, disk, offset) in own.copies.iter() {
            let slot = slots[usize::from(copy)];
            if slot != NONE && active(Mutation::AckFirstCopy) && self.parts[index(part)].left > 1 {
                let own = &mut self.parts[index(part)];
                own.left -= 1;
                own.slots[usize::from(copy)] = NONE;
                self.core.io.push_part(OpKind::Write, disk, (slot, offset, len), Tag::Abandoned);
            } else if slot != NONE {
                let tag = Tag::Part { part, copy };
                self.core.io.push_part(OpKind::Write, disk, (slot, offset, len), tag);
            }
        }
    }

    /// All live copies have answered (RES-2), and disks that failed are out.
    pub(super) fn write_done(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let held = |copy: &(u8, u16, u64)| {
            own.ok >> copy.0 & 1 == 1 && self.core.members.in_sync(copy.1, own.extent)
        };
        if !own.copies.iter().any(|copy| held(&copy)) {
            self.take_back(part);
            self.end_part(part, Some(EIO));
            return;
        }
        self.note_written(part);
        if !own.is_background() {
            let account = Account::TierWrite(is_second_tier(self.core.extents.place(own.extent)));
            let time = self.seen.since(own.begun);
            let vdisk = self.core.vdisk(own.extent);
            note_tier_time(&mut self.tier_times[vdisk], account, time);
            let client = &mut self.clients[index(own.client)];
            client.served.add(account, own.len, time);
            client.home = true;
        }
        self.parts[index(part)].step = Step::Appended;
        if active(Mutation::AckBeforeCrcFirst) {
            self.end_part(part, None);
        } else {
            self.advance(part);
        }
    }

    /// What no copy took. Of first writes the journal says so before their extent can close, or a start would take them for
    /// written and have nobody settle them (CRC-2). What lay there before may be neither the old content nor the new one:
    /// it is decided as after a crash, and its extent stays open until then (CRC-3).
    fn take_back(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        for within in first..end {
            let Some(sum) = self.core.extents.get(own.extent).sums.get(index(within)) else {
                continue;
            };
            let first = sum.is_first();
            if !first && !active(Mutation::FailedOverwriteClosed) {
                self.core.note_unsettled(own.extent, within);
                self.in_vain.remove(&own.extent);
            }
            if first && !active(Mutation::FailedFirstKept) {
                let block = self.core.extents.block(own.extent, within);
                self.core.journal.append(before_first(block, sum.newest));
            }
        }
    }

    /// The new checksums are those of the newest completed write from now on.
    fn note_written(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let base = index(part) * self.part_blocks;
        let forgotten = match own.kind.destages() {
            true => active(Mutation::MoveForgetsDestage),
            false => active(Mutation::MoveForgetsWrite),
        };
        if !forgotten {
            self.moves.changed(own.extent, (first, end));
        }
        let rounds = self.core.rounds;
        let extent = self.core.extents.get_mut(own.extent);
        extent.written_in = rounds;
        let sums = extent.sums.open();
        for block in first..end {
            let sum = &mut sums[index(block)];
            if sum.is_first() {
                sum.flags = (sum.flags | TENTATIVE) & !COMMITTING;
            }
            sum.newest = self.sums[base + index(block - first)];
            sum.flags &= !UNSETTLED;
            if sum.flags & PENDING == 0 {
                extent.pending += u32::from(sum.flags & SEALED == 0);
                sum.flags |= PENDING;
                self.core.pending.push((own.extent, block));
            }
        }
    }
}
