//! Discard and write-zeroes of whole blocks: their checksum entries become 0.

use plumb_io::FlushQueue;
use plumb_units::convert::index;

use super::Engine;
use super::part::Step;
use crate::extents::{PENDING, SEALED, Sum, UNMAPPED};
use crate::format::frame::Record;
use crate::mutation::{Mutation, active};

impl<Q: FlushQueue> Engine<Q> {
    pub(super) fn begin_zero(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        if self.core.extents.get(own.extent).place == UNMAPPED {
            self.end_part(part, None);
            return;
        }
        let lsn = if first == 0 && end == self.core.extents.blocks {
            self.unmap(own.extent)
        } else {
            let extent = self.core.extents.get_mut(own.extent);
            for sum in &mut extent.sums[index(first)..index(end)] {
                extent.pending -= u32::from(sum.flags & (PENDING | SEALED) != 0);
                *sum = Sum::default();
            }
            let block = self.core.extents.block(own.extent, first);
            (first..end).for_each(|block| {
                let block = self.core.extents.block(own.extent, block);
                self.core.trees.touch_sum(block);
            });
            self.core.journal.append(Record::Zero { block, count: end - first })
        };
        let own = &mut self.parts[index(part)];
        own.lsn = lsn;
        own.step = Step::Appended;
        self.advance(part);
    }

    /// ALC-4: nobody else touches the extent, for the whole of it is locked. Its slot is free when the
    /// record is durable.
    fn unmap(&mut self, extent: u32) -> u64 {
        let vdisk = self.core.vdisk(extent);
        let place = self.core.extents.get(extent).place;
        self.core.extents.unmap(extent);
        self.core.members.stale.iter_mut().for_each(|stale| stale.remove(extent));
        self.core.trees.touch_map(extent);
        self.core.trees.touch_sums(extent, self.core.extents.blocks);
        let lsn = self.core.journal.append(Record::MapFree { extent });
        self.core.freeing.push((lsn, vdisk, place));
        if active(Mutation::SlotReusedEarly) {
            self.core.release_slots();
        }
        lsn
    }
}
