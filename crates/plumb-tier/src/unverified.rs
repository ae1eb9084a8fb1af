//! Blocks whose checksums are lost on all copies (LAY-7): what lies there cannot be judged. An unknown entry may hide an
//! unwritten block whose place still holds a former owner's data, so reads fail until an operator accepts what the copies
//! hold, or the blocks are written.

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32, to_u64};

use crate::core::{Core, Halt};
use crate::events::Event;
use crate::extents::{Sum, TENTATIVE};
use crate::format::checksum::UNVERIFIED;
use crate::format::frame::Record;
use crate::mutation::{Mutation, active};
use crate::standstill::BlockWrite;

/// What the journal says of a block whose first write did not come about: unwritten, or as unknown as it was.
pub(crate) fn before_first(block: u64, newest: u32) -> Record {
    match newest {
        UNVERIFIED => Record::CrcCommit { block, crc: UNVERIFIED },
        _ => Record::Zero { block, count: 1 },
    }
}

/// Blocks whose checksums are lost, that lie behind each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnverifiedRun {
    /// Virtual disk, in the configuration's order.
    pub vdisk: u32,
    /// First byte on the virtual disk.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

impl<Q: FlushQueue> Core<Q> {
    /// Blocks of an extent whose checksums are lost, ascending.
    fn unverified_in(&self, extent: u32) -> Vec<u32> {
        let sums = (0_u32..).zip(self.extents.get(extent).sums.iter());
        sums.filter(|(_, sum)| sum.is_unverified()).map(|one| one.0).collect()
    }

    /// Says of which blocks the checksums are lost, once a start is through.
    pub(crate) fn tell_unverified(&mut self) {
        let extents: Vec<u32> = self.unverified.iter().collect();
        for extent in extents {
            match to_u32(self.unverified_in(extent).len()) {
                0 if !self.may_become_unverified(extent) => self.unverified.remove(extent),
                0 => {}
                blocks => self.io.events.note(Event::Unverified { extent, blocks }),
            }
        }
    }

    /// Whether the first write over such a block has yet to be known as durable: it may be one again.
    fn may_become_unverified(&self, extent: u32) -> bool {
        let may = |sum: Sum| sum.flags & TENTATIVE != 0 && sum.committed == UNVERIFIED;
        self.extents.get(extent).sums.iter().any(may)
    }

    /// All blocks whose checksums are lost, by virtual disk and place on it.
    pub(crate) fn unverified_runs(&self) -> Vec<UnverifiedRun> {
        let bytes = u64::from(self.members.config.extent_bytes);
        let mut runs: Vec<UnverifiedRun> = Vec::new();
        for extent in self.unverified.iter() {
            let vdisk = self.vdisk(extent);
            let first = self.members.config.vdisks[vdisk].first_extent;
            for within in self.unverified_in(extent) {
                let offset = u64::from(extent - first) * bytes + u64::from(within) * 4096;
                let vdisk = to_u32(vdisk);
                match runs.last_mut() {
                    Some(run) if run.vdisk == vdisk && run.offset + run.len == offset => {
                        run.len += 4096;
                    }
                    _ => runs.push(UnverifiedRun { vdisk, offset, len: 4096 }),
                }
            }
        }
        runs
    }

    /// Compares the copies of an extent's blocks whose checksums are lost, and counts them: all, and those whose copies
    /// differ or cannot be read. With `accept` each is what most of its copies hold from now on, durably, and its copies
    /// are made equal; one that no copy gives stays as it is.
    pub(crate) fn compare_unverified(&mut self, extent: u32, accept: bool) -> Result<(), Halt> {
        self.need_sums(extent)?;
        if !self.unverified.has(extent) {
            return Ok(());
        }
        let mut writes: Vec<BlockWrite> = Vec::new();
        let mut taken: Vec<(u32, u32)> = Vec::new();
        for (within, contents) in self.read_extent(extent)? {
            if !self.extents.get(extent).sums.at(index(within)).is_unverified() {
                continue;
            }
            self.counters.unverified += 1;
            let best = contents.most_common();
            let agree = best.is_some_and(|nth| contents.all_hold(nth));
            self.counters.unverified_differ += u64::from(!agree);
            let Some(bytes) =
                best.and_then(|nth| contents.copies[nth].2.clone()).filter(|_| accept)
            else {
                continue;
            };
            taken.push((within, self.sum_of(extent, within, &bytes)));
            for (disk, offset, content) in &contents.copies {
                if content.as_ref().is_none_or(|content| **content != *bytes) {
                    writes.push((*disk, *offset, bytes.clone()));
                }
            }
        }
        if !taken.is_empty() {
            self.accept(extent, &taken, &writes)?;
        }
        let blocks = to_u32(self.unverified_in(extent).len());
        if blocks > 0 {
            self.io.events.note(Event::Unverified { extent, blocks });
        }
        Ok(())
    }

    /// Makes copies equal first, and durable; then their checksums stand. A copy that took nothing is out of date.
    fn accept(
        &mut self,
        extent: u32,
        taken: &[(u32, u32)],
        writes: &[BlockWrite],
    ) -> Result<(), Halt> {
        if !active(Mutation::AcceptedUnopened) {
            self.open_durably(extent)?;
        }
        let kept = self.write_all(writes)?;
        let mut places: Vec<(u16, u32)> = kept.iter().map(|disk| (*disk, extent)).collect();
        places.dedup();
        self.mark_unequal(&places);
        let rounds = self.rounds;
        self.extents.get_mut(extent).written_in = rounds;
        // What a cache shows must not decide what is durable.
        let mut disks = self.disks_of(extent);
        disks.retain(|disk| self.members.is_online(*disk));
        if !active(Mutation::AcceptedUnflushed) && !self.flush_some(&disks)? {
            return Ok(());
        }
        for &(within, crc) in taken {
            let block = self.extents.block(extent, within);
            let sum = self.extents.get_mut(extent).sums.at_mut(index(within));
            (sum.newest, sum.committed) = (crc, crc);
            self.journal.append(Record::CrcCommit { block, crc });
            self.trees.touch_sum(block);
        }
        self.counters.accepted += to_u64(taken.len());
        self.io.events.note(Event::Accepted { extent, blocks: to_u32(taken.len()) });
        self.sync()?;
        // What could not be copied for their sake can be.
        self.members.try_stuck();
        if self.unverified_in(extent).is_empty() && !self.may_become_unverified(extent) {
            self.unverified.remove(extent);
        }
        Ok(())
    }
}
