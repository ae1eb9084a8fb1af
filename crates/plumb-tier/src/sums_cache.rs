//! Checksums that are in memory, where there is no room for those of all extents: they are fetched from their pages when they are
//! needed, and dropped when others are. What a journal or a round has yet to put into a page stays.

use std::ops::RangeInclusive;

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32, to_u64};

use crate::core::{Core, Halt};
use crate::extents::{ExtentSet, Extents, Sums};
use crate::format::checksum::UNVERIFIED;
use crate::format::page::{self, LEAF_ENTRIES, PageName, Pointer};
use crate::mutation::{Mutation, active};
use crate::tree::{SUMS, Sources, unknown_leaf};

/// Bytes of checksums in memory, unless whoever starts a pool has more to give (section 25).
pub(crate) const SUMS_BYTES: u64 = 256 << 20;
/// Bytes of them where so much memory is free when a pool starts.
pub(crate) fn sums_bytes(available: u64) -> u64 {
    (available / 4).max(SUMS_BYTES)
}

/// Extents that are looked at for one whose checksums can be dropped, at a time.
const LOOKED_AT: usize = 64;

/// Extents whose checksums are read at once while nothing else is under way.
const FETCHED_AT_ONCE: usize = 4096;

/// Checksums of an extent that are on their way.
#[derive(Debug)]
pub(crate) struct Coming {
    pub(crate) extent: u32,
    pub(crate) sums: Vec<u32>,
    /// The leaf that comes next.
    pub(crate) leaf: u32,
}

impl Extents {
    /// Whether the checksums of an extent are on the disks alone.
    #[inline]
    pub(crate) fn is_away(&self, extent: u32) -> bool {
        matches!(self.get(extent).sums, Sums::Away)
    }

    /// The checksums of an extent are in memory from now on.
    pub(crate) fn arrive(&mut self, extent: u32, sums: Sums) {
        let (is_short, own) = (self.is_short, self.get_mut(extent));
        let before = std::mem::replace(&mut own.sums, sums);
        own.used = true;
        // Whatever was read of them before is not what they are when they were here.
        self.coming.retain(|own| own.extent != extent);
        let own = self.get_mut(extent);
        let joins = is_short && !std::mem::replace(&mut own.queued, is_short);
        self.resident += u64::from(matches!(before, Sums::None | Sums::Away));
        if joins {
            self.line.push_back(extent);
        }
    }

    /// The map was read: whether the checksums of all that is mapped have room. Then they are to be read next.
    pub(crate) fn has_room_for_all(&mut self) -> bool {
        self.loading = false;
        let mapped = to_u64(self.list.mapped_count());
        if mapped.saturating_mul(self.blocks.into()) > self.most {
            self.is_short = true;
            return false;
        }
        for extent in self.list.numbers() {
            if self.is_away(extent) {
                self.arrive(extent, Sums::unwritten(index(self.blocks)));
            }
        }
        true
    }

    /// Whether all that a leaf of checksums holds is in memory.
    pub(crate) fn has_leaf(&self, leaf: usize) -> bool {
        let per = index(self.blocks);
        let (first, last) = (leaf * LEAF_ENTRIES / per, ((leaf + 1) * LEAF_ENTRIES - 1) / per);
        let mut own = (first..=last).map_while(|nth| self.list.get(nth));
        !self.is_short || own.all(|own| !matches!(own.sums, Sums::Away))
    }

    /// The same of any page.
    pub(crate) fn has_page(&self, page: &PageName) -> bool {
        usize::from(page.tree) != SUMS || page.level > 0 || self.has_leaf(index(page.number))
    }

    /// Whether more are in memory than are to be.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.resident.saturating_mul(self.blocks.into()) > self.most
    }

    /// Drops checksums of extents that no request came to for longest, of those that rest and that nobody `keeps`, until there are no more
    /// than are to be, or some were looked at in vain.
    pub(crate) fn drop_some(&mut self, keeps: impl Fn(u32) -> bool) {
        if !self.is_short {
            self.is_short = true;
            for extent in self.list.with_state() {
                let own = self.get_mut(extent);
                own.queued = !matches!(own.sums, Sums::None | Sums::Away);
                if own.queued {
                    self.line.push_back(extent);
                }
            }
        }
        // Each once: whoever just had its own fetched comes to use them.
        let most = self.line.len().min(LOOKED_AT);
        let mut vain = 0;
        while self.is_over() && vain < most {
            let Some(extent) = self.line.pop_front() else { return };
            let own = self.get_mut(extent);
            if matches!(own.sums, Sums::None | Sums::Away) {
                own.queued = false;
                continue;
            }
            let rests = matches!(own.sums, Sums::Settled(_)) && !own.open && own.writers == 0;
            if std::mem::take(&mut own.used) || !rests || keeps(extent) {
                vain += 1;
                self.line.push_back(extent);
                continue;
            }
            let own = self.get_mut(extent);
            (own.sums, own.queued) = (Sums::Away, false);
            self.resident -= 1;
            self.list.give_back(extent);
        }
    }
}

/// Leaves of the checksums' tree that an extent has its own in.
pub(crate) fn leaves_of(extent: u32, blocks: u32) -> RangeInclusive<u32> {
    let first = u64::from(extent) * u64::from(blocks);
    let leaf = |block: u64| u32::try_from(block / to_u64(LEAF_ENTRIES)).unwrap_or(u32::MAX);
    leaf(first)..=leaf(first + u64::from(blocks) - 1)
}

/// Takes an extent's own checksums from a leaf.
pub(crate) fn take_from(leaf: u32, bytes: &[u8], extent: u32, sums: &mut [u32]) {
    let first = to_u64(index(extent)) * to_u64(sums.len());
    let of_leaf = u64::from(leaf) * to_u64(LEAF_ENTRIES);
    for nth in 0..LEAF_ENTRIES {
        let within =
            (of_leaf + to_u64(nth)).checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(sum) = within.and_then(|within| sums.get_mut(within)) {
            *sum = page::entry(bytes, nth);
        }
    }
}

impl<Q: FlushQueue> Core<Q> {
    /// Drops checksums for others, but for extents that somebody `keeps`, those that a checkpoint has yet to write, and those
    /// that are lost.
    pub(crate) fn drop_sums(&mut self, keeps: impl Fn(u32) -> bool) {
        let Self { extents, trees, unverified, deferred, .. } = self;
        let blocks = extents.blocks;
        extents.drop_some(|extent| {
            let unwritten = leaves_of(extent, blocks).any(|leaf| trees.is_dirty_sums(leaf));
            unwritten && !active(Mutation::UnwrittenSumsDropped)
                || unverified.has(extent)
                || deferred.has(extent)
                || keeps(extent)
        });
    }

    /// The page of a leaf of checksums; `None` when none of its blocks was ever written.
    pub(crate) fn sums_page(&self, leaf: u32) -> Option<(PageName, Pointer)> {
        self.trees.sums_page(leaf)
    }

    /// The checksums of an extent are read, if they are not here. Nothing else is under way.
    ///
    /// # Errors
    /// A page that a disk may hold which cannot be read at all now.
    pub(crate) fn fetch_sums(&mut self, extent: u32) -> Result<(), PageName> {
        if !self.extents.is_away(extent) {
            return Ok(());
        }
        let geometry = self.members.geometry;
        let sources = Sources::of(&self.io, &self.members);
        let mut sums = vec![0; index(self.extents.blocks)];
        for leaf in leaves_of(extent, self.extents.blocks) {
            let Some(page) = self.sums_page(leaf) else {
                if self.trees.is_unknown(leaf) {
                    take_from(leaf, &unknown_leaf(), extent, &mut sums);
                }
                continue;
            };
            match self.trees.find_page(&mut self.io, &geometry, &sources, page) {
                Ok(bytes) => take_from(leaf, &bytes, extent, &mut sums),
                Err(missing) if missing.may_be_there => return Err(missing.name),
                Err(_) => {
                    self.trees.note_lost(leaf);
                    take_from(leaf, &unknown_leaf(), extent, &mut sums);
                }
            }
        }
        self.take_sums(extent, sums);
        Ok(())
    }

    /// The checksums of many extents are read, in order and many at a time, if they are not here. Those of which a leaf could not be read
    /// so are left for [`fetch_sums`](Self::fetch_sums).
    pub(crate) fn fetch_ahead(&mut self, named: &ExtentSet) {
        let (blocks, geometry) = (self.extents.blocks, self.members.geometry);
        let disks = Sources::of(&self.io, &self.members).members;
        let away: Vec<u32> = named.iter().filter(|extent| self.extents.is_away(*extent)).collect();
        for some in away.chunks(FETCHED_AT_ONCE) {
            let mut leaves: Vec<u32> =
                some.iter().flat_map(|extent| leaves_of(*extent, blocks)).collect();
            leaves.dedup();
            let pages: Vec<_> = leaves.iter().filter_map(|leaf| self.sums_page(*leaf)).collect();
            let read = self.trees.read_leaves(&mut self.io, (&geometry, &disks), &pages);
            for &extent in some {
                let mut sums = vec![0; index(blocks)];
                let is_known = leaves_of(extent, blocks).all(|leaf| match read.get(&leaf) {
                    Some(bytes) => {
                        take_from(leaf, bytes, extent, &mut sums);
                        true
                    }
                    None => self.sums_page(leaf).is_none() && !self.trees.is_unknown(leaf),
                });
                if is_known {
                    self.take_sums(extent, sums);
                }
            }
        }
    }

    /// As [`fetch_sums`](Self::fetch_sums), where nothing goes on without.
    pub(crate) fn need_sums(&mut self, extent: u32) -> Result<(), Halt> {
        self.fetch_sums(extent).map_err(|_| Halt::Voters)
    }

    /// The checksums of an extent are here.
    pub(crate) fn take_sums(&mut self, extent: u32, sums: Vec<u32>) {
        let lost = to_u32(sums.iter().filter(|sum| **sum == UNVERIFIED).count());
        self.extents.arrive(extent, Sums::Settled(sums.into()));
        if lost > 0 {
            self.unverified.insert(extent);
            self.io.events.note(crate::events::Event::Unverified { extent, blocks: lost });
        }
    }
}
