//! Checksums that are not in memory are read before a part begins, a leaf at a time, and others are dropped for them.

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32};

use super::part::{NONE, Step};
use super::{EIO, Engine};
use crate::core::Halt;
use crate::extents::Copies;
use crate::format::{BLOCK_BYTES, BLOCK_LEN};
use crate::io::Tag;
use crate::sums_cache::{Coming, leaves_of, take_from};

/// Extents whose checksums are read in one standstill.
const FETCHED_AT_ONCE: usize = 64;

impl<Q: FlushQueue> Engine<Q> {
    /// Whether a part waits for the checksums of its extent, or has ended as nobody can read them now.
    #[inline]
    pub(super) fn waits_for_sums(&mut self, part: u32) -> bool {
        self.core.extents.is_away(self.parts[index(part)].extent) && self.fetch_for(part)
    }

    #[cold]
    fn fetch_for(&mut self, part: u32) -> bool {
        let extent = self.parts[index(part)].extent;
        if self.parts[index(part)].no_sums {
            self.end_part(part, Some(EIO));
            return true;
        }
        let blocks = self.core.extents.blocks;
        let leaves = leaves_of(extent, blocks);
        let coming = &mut self.core.extents.coming;
        let known = coming.iter().position(|own| own.extent == extent);
        let nth = known.unwrap_or_else(|| {
            let sums = vec![0; index(blocks)];
            coming.push(Coming { extent, sums, leaf: *leaves.start() });
            coming.len() - 1
        });
        let from = coming[nth].leaf;
        let mut left = from..=*leaves.end();
        let is_there =
            |leaf: &u32| self.core.sums_page(*leaf).is_some() || self.core.trees.is_unknown(*leaf);
        let leaf = left.find(is_there);
        let leaf = leaf.unwrap_or(*leaves.end() + 1);
        self.core.extents.coming[nth].leaf = leaf;
        if leaf > *leaves.end() {
            let sums = self.core.extents.coming.swap_remove(nth).sums;
            self.core.take_sums(extent, sums);
            self.drop_sums();
            return false;
        }
        let Some((_, pointer)) = self.core.sums_page(leaf) else {
            return self.fetch_standing(part);
        };
        let geometry = self.core.members.geometry;
        let disks = self.core.members.each_metadata();
        let Some(disk) = disks.min_by_key(|disk| self.core.io.queued(*disk)) else {
            return self.fetch_standing(part);
        };
        if pointer.page >= geometry.tree_pages() {
            return self.fetch_standing(part);
        }
        let Some(slot) = self.core.io.take_data_slot() else {
            self.wait_for_slots(part, 1);
            return true;
        };
        let offset = geometry.tree() + u64::from(pointer.page) * BLOCK_BYTES;
        let own = &mut self.parts[index(part)];
        (own.step, own.left, own.ok, own.failed, own.cursor) = (Step::Sums, 1, 0, 0, leaf);
        own.slots[0] = slot;
        own.copies = Copies { at: [(disk, offset); 3], count: 1 };
        self.core.io.push_page(
            disk,
            (slot, offset, to_u32(BLOCK_LEN)),
            Tag::Part { part, copy: 0 },
        );
        true
    }

    /// A leaf was read, well or not.
    pub(super) fn sums_read(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let (extent, leaf, slot) = (own.extent, own.cursor, own.slots[0]);
        let coming = &self.core.extents.coming;
        let nth = coming.iter().position(|own| own.extent == extent && own.leaf == leaf);
        let mut good = own.ok != 0 && slot != NONE;
        if let Some(nth) = nth.filter(|_| good) {
            let bytes = self.core.io.data(slot)[..BLOCK_LEN].to_vec();
            let page = self.core.sums_page(leaf);
            good = page.is_some_and(|page| self.core.trees.verifies(page, &bytes));
            if good {
                let coming = &mut self.core.extents.coming[nth];
                take_from(leaf, &bytes, extent, &mut coming.sums);
                coming.leaf += 1;
            }
        }
        self.drop_slots(part);
        let own = &mut self.parts[index(part)];
        (own.step, own.cursor) = (Step::Begin, 0);
        if good {
            self.begin(part);
        } else {
            self.fetch_standing(part);
        }
    }

    /// Asks all copies, and waits for them, with nothing else under way.
    fn fetch_standing(&mut self, part: u32) -> bool {
        let extent = self.parts[index(part)].extent;
        self.want_sums(extent);
        self.parts[index(part)].step = Step::Begin;
        self.held.push_back(part);
        true
    }

    /// The checksums of an extent are to be here soon.
    pub(super) fn want_sums(&mut self, extent: u32) {
        if !self.to_fetch.contains(&extent) {
            self.to_fetch.push(extent);
        }
    }

    /// Reads what others asked for. Whoever cannot have it ends.
    pub(super) fn fetch_wanted(&mut self) -> Result<(), Halt> {
        self.steps += 1;
        let some: Vec<u32> =
            self.to_fetch.drain(..self.to_fetch.len().min(FETCHED_AT_ONCE)).collect();
        for extent in some {
            if self.core.fetch_sums(extent).is_ok() {
                continue;
            }
            for nth in 0..self.held.len() {
                let own = &mut self.parts[index(self.held[nth])];
                own.no_sums |= own.extent == extent && own.step == Step::Begin;
            }
        }
        Ok(())
    }

    /// Drops checksums where more are in memory than are to be.
    pub(super) fn drop_sums(&mut self) {
        if !self.core.extents.is_over() {
            return;
        }
        let (locks, moves) = (&self.locks, &self.moves);
        self.core.drop_sums(|extent| {
            let moves = || moves.under_way.iter().flatten().any(|own| own.wanted.extent == extent);
            locks.is_taken(extent) || moves()
        });
    }
}
