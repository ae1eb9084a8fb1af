//! Reading (section 7).

use plumb_io::{FlushQueue, OpKind};
use plumb_units::convert::index;

use super::part::{NONE, PartKind, Step};
use super::{EIO, Engine};
use crate::extents::{UNMAPPED, locate};
use crate::io::Tag;
use crate::mutation::{Mutation, active};

impl<Q: FlushQueue> Engine<Q> {
    pub(super) fn begin_read(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let extent = self.core.extents.get(own.extent);
        let (first, end) = own.blocks();
        let mapped = extent.place != UNMAPPED;
        let written = |block: u32| extent.sums[index(block)].newest != 0;
        if !mapped || !(first..end).any(written) {
            self.hand_over(part, None);
            self.end_part(part, None);
            return;
        }
        self.locate_part(part);
        if self.parts[index(part)].slots[0] == NONE {
            let Some(slot) = self.core.io.take_data_slot() else {
                self.slot_wait.push_back(part);
                return;
            };
            self.parts[index(part)].slots[0] = slot;
        }
        self.read_copy(part, Step::Reading);
    }

    /// Finds where the part's blocks lie.
    pub(super) fn locate_part(&mut self, part: u32) {
        let own = &mut self.parts[index(part)];
        let core = &self.core;
        let config = &core.members.config;
        let vdisk = &config.vdisks[core.vdisk(own.extent)];
        let place = core.extents.get(own.extent).place;
        let within = own.start / 4096 * 4096;
        own.copies = locate(vdisk, &core.members.geometry, config.extent_bytes, place, within);
    }

    /// Reads the whole blocks of a part into its first slot, from a copy that was not tried.
    pub(super) fn read_copy(&mut self, part: u32, step: Step) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let turn = own.client.wrapping_add(first) % 3;
        let able = |copy: &(u8, u16, u64)| {
            own.tried >> copy.0 & 1 == 0 && self.core.members.in_sync(copy.1, own.extent)
        };
        let by_turn =
            |copy: &(u8, u16, u64)| (u32::from(copy.0) + turn) % u32::from(own.copies.count);
        let Some((copy, disk, offset)) = own.copies.iter().filter(able).min_by_key(by_turn) else {
            self.core.counters.unrecoverable += 1;
            self.drop_slots(part);
            self.end_part(part, Some(EIO));
            return;
        };
        let own = &mut self.parts[index(part)];
        own.step = step;
        own.left = 1;
        own.ok = 0;
        own.failed = 0;
        let (slot, len) = (own.slots[0], (end - first) * 4096);
        let tag = Tag::Part { part, copy };
        self.core.io.push_part(OpKind::Read, disk, (slot, offset, len), tag);
    }

    /// Which copy was just read, and whether what it gave verifies: all written blocks, or with `edges`
    /// only those that the part covers in part.
    pub(super) fn verify(&mut self, part: u32, edges: bool) -> bool {
        let own = self.parts[index(part)];
        let copy = own.ok | own.failed;
        self.parts[index(part)].tried |= copy;
        let mut good = own.ok != 0;
        let (first, end) = own.blocks();
        for block in first..end {
            let newest = self.core.extents.get(own.extent).sums[index(block)].newest;
            if !good
                || newest == 0
                || (edges && own.covers(block))
                || active(Mutation::ReadUnverified)
            {
                continue;
            }
            let from = index(block - first) * 4096;
            let seed = self.core.members.data_seeds[self.core.vdisk(own.extent)];
            let number = self.block_of_vdisk(own.extent, block);
            let bytes = &self.core.io.data(own.slots[0])[from..from + 4096];
            good = crate::format::checksum::block(seed, number, bytes) == newest;
            self.core.counters.blocks_verified += 1;
        }
        if !good {
            self.core.counters.mismatches += 1;
            if own.copies.count > 1 && !self.heal.contains(&own.extent) && self.heal.len() < 64 {
                self.heal.push(own.extent);
            }
        }
        good
    }

    /// Block of its virtual disk.
    pub(super) fn block_of_vdisk(&self, extent: u32, within: u32) -> u64 {
        let vdisk = self.core.vdisk(extent);
        let first = self.core.members.config.vdisks[vdisk].first_extent;
        self.core.extents.block(extent - first, within)
    }

    pub(super) fn read_done(&mut self, part: u32) {
        if self.verify(part, false) {
            let slot = self.parts[index(part)].slots[0];
            self.hand_over(part, Some(slot));
            self.drop_slots(part);
            self.end_part(part, None);
        } else {
            self.begin_again(part);
        }
    }

    /// Begins from the start, with all that it knows about its copies.
    pub(super) fn begin_again(&mut self, part: u32) {
        self.parts[index(part)].step = Step::Begin;
        self.ready.push_back(part);
    }

    /// Copies what was read to the client; zeros for blocks that were never written.
    fn hand_over(&mut self, part: u32, slot: Option<u32>) {
        let own = self.parts[index(part)];
        debug_assert!(own.kind == PartKind::Read);
        let extent = self.core.extents.get(own.extent);
        let (first, end) = own.blocks();
        let (from, to) = (own.start, own.start + own.len);
        let target = &mut self.clients[index(own.client)].buffer[index(own.buffer)..];
        let whole =
            slot.is_some() && (first..end).all(|block| extent.sums[index(block)].newest != 0);
        if let (Some(slot), true) = (slot, whole) {
            let skew = index(own.skew());
            let bytes = &self.core.io.data(slot)[skew..skew + index(own.len)];
            target[..bytes.len()].copy_from_slice(bytes);
            return;
        }
        for block in first..end {
            let (low, high) = ((block * 4096).max(from), ((block + 1) * 4096).min(to));
            let range = index(low - from)..index(high - from);
            let written = extent.sums.get(index(block)).is_some_and(|sum| sum.newest != 0);
            match slot.filter(|_| written) {
                Some(slot) => {
                    let base = first * 4096;
                    let bytes = &self.core.io.data(slot)[index(low - base)..index(high - base)];
                    target[range].copy_from_slice(bytes);
                }
                None => target[range].fill(0),
            }
        }
    }
}
