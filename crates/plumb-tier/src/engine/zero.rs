//! Discard and write-zeroes of whole blocks: their checksum entries become 0.

use plumb_io::FlushQueue;
use plumb_units::convert::index;

use super::Engine;
use super::part::Step;
use crate::extents::{PENDING, SEALED, UNMAPPED};
use crate::format::frame::Record;
use crate::mutation::{Mutation, active};

impl<Q: FlushQueue> Engine<Q> {
    pub(super) fn begin_zero(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let whole = first == 0 && end == self.core.extents.blocks;
        // An extent with live lines is never unmapped (WBC-8).
        let unmaps = whole && active(Mutation::LinesUnmapped);
        if self.overlaps_lines(part) && !unmaps {
            self.begin_logging(part);
            return;
        }
        if self.core.extents.place(own.extent) == UNMAPPED {
            self.end_part(part, None);
            return;
        }
        if self.waits_for_settling(part) {
            return;
        }
        let lsn =
            if whole { self.unmap(own.extent) } else { self.zero_home(own.extent, first, end) };
        let own = &mut self.parts[index(part)];
        own.lsn = lsn;
        own.step = Step::Appended;
        self.advance(part);
    }

    /// Blocks of a mapped extent become unwritten; the frame that says so.
    pub(super) fn zero_home(&mut self, extent: u32, first: u32, end: u32) -> u64 {
        if self.core.extents.place(extent) == UNMAPPED {
            return 0;
        }
        let own = self.core.extents.get_mut(extent);
        for block in first..end {
            let flags = own.sums.at(index(block)).flags;
            own.pending -= u32::from(flags & (PENDING | SEALED) != 0);
            own.sums.set(index(block), 0);
        }
        self.moves.changed(extent, (first, end));
        let block = self.core.extents.block(extent, first);
        for block in first..end {
            self.core.trees.touch_sum(self.core.extents.block(extent, block));
        }
        self.core.journal.append(Record::Zero { block, count: end - first })
    }

    /// ALC-4: nobody else touches the extent, for the whole of it is locked. Its slot is free when the
    /// record is durable.
    fn unmap(&mut self, extent: u32) -> u64 {
        let vdisk = self.core.vdisk(extent);
        let place = self.core.extents.place(extent);
        let lsn = self.core.vacate(extent, Record::MapFree { extent });
        self.core.extents.unmap(extent);
        self.core.trees.touch_map(extent);
        self.core.trees.touch_sums(extent, self.core.extents.blocks);
        self.core.freeing.push((lsn, vdisk, place));
        if active(Mutation::SlotReusedEarly) {
            self.core.release_slots();
        }
        lsn
    }
}
