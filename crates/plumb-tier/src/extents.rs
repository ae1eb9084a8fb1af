//! The extent map and the checksums in memory; which slots are free; where a slot lies.

mod list;

use std::collections::VecDeque;

use plumb_units::convert::{index, to_u32, to_u64, to_usize};

use crate::format::{Config, Geometry, VirtualDisk};
pub(crate) use crate::sums::{COMMITTING, PENDING, SEALED, Sum, Sums, TENTATIVE, UNSETTLED};
use crate::sums_cache::Coming;
use list::ExtentList;
pub(crate) use list::TOGETHER;

/// The place of an extent that is not mapped.
pub(crate) const UNMAPPED: u32 = u32::MAX;
/// The bit of a place that says: second tier.
pub(crate) const SECOND_TIER: u32 = 1 << 31;

/// What is known of an extent.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    /// Whether in-place writes may be under way.
    pub(crate) open: bool,
    /// Whether the list of open extents names it.
    pub(crate) listed: bool,
    /// A request came to it since it was looked at whether its checksums stay in memory.
    pub(crate) used: bool,
    /// It stands in line for that.
    pub(crate) queued: bool,
    /// The frame that opened it must be durable before the first in-place write.
    pub(crate) open_lsn: u64,
    /// Writes that are under way or wait for their turn.
    pub(crate) writers: u32,
    /// Blocks that a round has yet to commit.
    pub(crate) pending: u32,
    /// The round that was sealed last when the last write ended.
    pub(crate) written_in: u64,
    /// While it has a place.
    pub(crate) sums: Sums,
}

impl Extent {
    /// One at rest.
    const fn new(sums: Sums) -> Self {
        Self {
            open: false,
            listed: false,
            used: false,
            queued: false,
            open_lsn: 0,
            writers: 0,
            pending: 0,
            written_in: 0,
            sums,
        }
    }

    /// Whether nothing is known of it but its place.
    fn is_at_rest(&self) -> bool {
        let marked = self.open || self.listed || self.used || self.queued;
        !marked
            && self.writers == 0
            && self.pending == 0
            && matches!(self.sums, Sums::None | Sums::Away)
    }
}

/// All extents of a pool and the slots of its tiers.
#[derive(Debug)]
pub(crate) struct Extents {
    pub(crate) list: ExtentList,
    /// Blocks per extent.
    pub(crate) blocks: u32,
    /// Whether checksums are left out: for whoever only asks where extents are.
    pub(crate) places_only: bool,
    /// Whether what the map says is being read, and checksums come later.
    pub(crate) loading: bool,
    /// Blocks whose checksums are to be in memory, at most.
    pub(crate) most: u64,
    /// Extents whose checksums are.
    pub(crate) resident: u64,
    /// Some are not: whose checksums come next for being dropped. Empty while all have room.
    pub(crate) line: VecDeque<u32>,
    /// There is such a line.
    pub(crate) is_short: bool,
    /// Those that are being read, leaf by leaf.
    pub(crate) coming: Vec<Coming>,
    /// By virtual disk, then tier.
    slots: Vec<Vec<Slots>>,
}

/// Which slots of a tier are taken.
#[derive(Debug, Default)]
struct Slots {
    taken: Vec<bool>,
    free: u32,
    /// Never given to host data (MOD-2).
    reserve: u32,
    hint: usize,
}

impl Slots {
    fn take(&mut self) -> Option<u32> {
        if self.free <= self.reserve {
            return None;
        }
        self.take_any()
    }

    /// A free one, be it of those that are kept for moves.
    fn take_any(&mut self) -> Option<u32> {
        let slot = (self.hint..self.taken.len()).find(|slot| !self.taken[*slot])?;
        self.taken[slot] = true;
        self.hint = slot + 1;
        self.free -= 1;
        Some(to_u32(slot))
    }

    fn free(&mut self, slot: u32) {
        let slot = index(slot);
        if let Some(taken) = self.taken.get_mut(slot).filter(|taken| **taken) {
            *taken = false;
            self.free += 1;
            self.hint = self.hint.min(slot);
        }
    }
}

/// Whether a place is in the second tier.
#[inline]
#[must_use]
pub(crate) fn is_second_tier(place: u32) -> bool {
    place != UNMAPPED && place & SECOND_TIER != 0
}

/// Slots of one tier of a virtual disk.
#[must_use]
pub(crate) fn slots_of_tier(
    vdisk: &VirtualDisk,
    rows: usize,
    geometry: &Geometry,
    extent: u32,
) -> u32 {
    let row = geometry.slab_bytes * u64::from(vdisk.columns) / u64::from(extent);
    u32::try_from(row.saturating_mul(to_u64(rows))).unwrap_or(u32::MAX / 4)
}

/// Slots of a tier that stay free so that extents can always change places (MOD-2): fewer in pools that
/// would have nothing else, none where there is one tier only.
#[must_use]
pub(crate) fn move_reserve(slots: u32, tiers: usize) -> u32 {
    if tiers < 2 { 0 } else { (slots / 1000).max(64).min(slots / 8) }
}

impl Extents {
    /// All unmapped, all free.
    pub(crate) fn new(config: &Config, geometry: &Geometry) -> Self {
        let slots = |vdisk: &VirtualDisk| {
            let tier = |rows| {
                let count = slots_of_tier(vdisk, rows, geometry, config.extent_bytes);
                let reserve = move_reserve(count, vdisk.tiers.len());
                Slots { taken: vec![false; index(count)], free: count, reserve, hint: 0 }
            };
            vdisk.tiers.iter().map(|rows| tier(rows.rows.len())).collect()
        };
        Self {
            list: ExtentList::new(index(config.extents())),
            blocks: config.extent_blocks(),
            places_only: false,
            loading: false,
            most: u64::MAX,
            resident: 0,
            line: VecDeque::new(),
            is_short: false,
            coming: Vec::new(),
            slots: config.vdisks.iter().map(slots).collect(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, extent: u32) -> &Extent {
        &self.list[index(extent)]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, extent: u32) -> &mut Extent {
        &mut self.list[index(extent)]
    }

    /// Tier and slot of an extent, or [`UNMAPPED`].
    #[inline]
    pub(crate) fn place(&self, extent: u32) -> u32 {
        self.list.place(extent)
    }

    /// Takes a free slot, of the fast tier if there is one.
    pub(crate) fn allocate(&mut self, vdisk: usize) -> Option<u32> {
        let tiers = &mut self.slots[vdisk];
        let second = |slot| slot | SECOND_TIER;
        tiers[0].take().or_else(|| tiers.get_mut(1).and_then(Slots::take).map(second))
    }

    /// Takes a free slot of a tier for an extent that moves there, be it the last one.
    pub(crate) fn take_for_move(&mut self, vdisk: usize, second: bool) -> Option<u32> {
        let slots = self.slots[vdisk].get_mut(usize::from(second))?;
        slots.take_any().map(|slot| if second { slot | SECOND_TIER } else { slot })
    }

    /// Slots of a tier that host data may use, used ones included, and how many of them are free.
    pub(crate) fn room(&self, vdisk: usize, tier: usize) -> (u64, u64) {
        let slots = self.slots.get(vdisk).and_then(|tiers| tiers.get(tier));
        slots.map_or((0, 0), |slots| {
            let usable = to_u64(slots.taken.len()).saturating_sub(slots.reserve.into());
            (usable, u64::from(slots.free.saturating_sub(slots.reserve)))
        })
    }

    /// Gives a slot back.
    pub(crate) fn release(&mut self, vdisk: usize, place: u32) {
        let tier = usize::from(place & SECOND_TIER != 0);
        if let Some(slots) = self.slots[vdisk].get_mut(tier) {
            slots.free(place & !SECOND_TIER);
        }
    }

    /// Whether the place is one that the virtual disk has.
    pub(crate) fn exists(&self, vdisk: usize, place: u32) -> bool {
        let tier = usize::from(place & SECOND_TIER != 0);
        let slots = self.slots.get(vdisk).and_then(|tiers| tiers.get(tier));
        slots.is_some_and(|slots| index(place & !SECOND_TIER) < slots.taken.len())
    }

    /// Takes that very slot; `false` if somebody has it.
    pub(crate) fn claim(&mut self, vdisk: usize, place: u32) -> bool {
        let tier = usize::from(place & SECOND_TIER != 0);
        let slots = &mut self.slots[vdisk][tier];
        let slot = index(place & !SECOND_TIER);
        let was = std::mem::replace(&mut slots.taken[slot], true);
        slots.free -= u32::from(!was);
        !was
    }

    /// Gives an extent a place, all its blocks unwritten.
    pub(crate) fn map(&mut self, extent: u32, place: u32) {
        let blocks = if self.places_only { 0 } else { index(self.blocks) };
        let loading = self.loading && !self.places_only;
        self.list.set_place(extent, place);
        if let Some(own) = self.list.state_mut(index(extent)) {
            own.pending = 0;
            if loading {
                own.sums = Sums::Away;
            }
        }
        if !loading {
            self.arrive(extent, Sums::unwritten(blocks));
        }
    }

    /// Takes its place away.
    pub(crate) fn unmap(&mut self, extent: u32) {
        self.list.set_place(extent, UNMAPPED);
        self.coming.retain(|own| own.extent != extent);
        let Some(own) = self.list.state_mut(index(extent)) else { return };
        (own.open, own.used, own.pending) = (false, false, 0);
        let before = std::mem::take(&mut own.sums);
        self.resident -= u64::from(!matches!(before, Sums::None | Sums::Away));
        self.list.give_back(extent);
    }

    /// Extent and block in it of a block of the pool.
    pub(crate) fn split(&self, block: u64) -> Option<(u32, usize)> {
        let extent = block / u64::from(self.blocks);
        let within = to_usize(block % u64::from(self.blocks));
        let extent = u32::try_from(extent).ok()?;
        (index(extent) < self.list.len()).then_some((extent, within))
    }

    /// A block of the pool.
    pub(crate) fn block(&self, extent: u32, within: u32) -> u64 {
        u64::from(extent) * u64::from(self.blocks) + u64::from(within)
    }
}

/// Where the copies of a part of an extent lie: disk and byte offset, `copies` of them. The part must
/// not cross a boundary of the interleave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copies {
    pub(crate) at: [(u16, u64); 3],
    pub(crate) count: u8,
}

impl Copies {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u8, u16, u64)> + use<> {
        let at = self.at;
        (0..self.count).map(move |copy| (copy, at[usize::from(copy)].0, at[usize::from(copy)].1))
    }
}

/// Tier and row of a place.
pub(crate) fn row_of(
    vdisk: &VirtualDisk,
    geometry: &Geometry,
    extent_bytes: u32,
    place: u32,
) -> (usize, usize) {
    let per_row = geometry.slab_bytes * u64::from(vdisk.columns) / u64::from(extent_bytes);
    let slot = u64::from(place & !SECOND_TIER);
    (usize::from(place & SECOND_TIER != 0), to_usize(slot / per_row))
}

/// Finds the copies of the byte `within` an extent that lies at `place`.
pub(crate) fn locate(
    vdisk: &VirtualDisk,
    geometry: &Geometry,
    extent_bytes: u32,
    place: u32,
    within: u32,
) -> Copies {
    let tier = &vdisk.tiers[usize::from(place & SECOND_TIER != 0)];
    let slot = u64::from(place & !SECOND_TIER);
    let columns = u64::from(vdisk.columns);
    let per_row = geometry.slab_bytes * columns / u64::from(extent_bytes);
    let row = &tier.rows[to_usize(slot / per_row)];
    let offset = slot % per_row * u64::from(extent_bytes) + u64::from(within);
    let interleave = u64::from(vdisk.interleave);
    let stripe = offset / (interleave * columns);
    let column = to_usize(offset / interleave % columns);
    let on_disk = stripe * interleave + offset % interleave;
    let mut at = [(0, 0); 3];
    let copies = usize::from(vdisk.copies);
    for (copy, place) in at.iter_mut().enumerate().take(copies) {
        let (disk, slab) = row.slabs[column * copies + copy];
        *place = (disk, geometry.slab(slab) + on_disk);
    }
    Copies { at, count: vdisk.copies }
}

/// Every disk that holds a part of an extent at `place`.
pub(crate) fn disks_of(
    vdisk: &VirtualDisk,
    geometry: &Geometry,
    extent_bytes: u32,
    place: u32,
) -> Vec<u16> {
    let step = vdisk.interleave.min(extent_bytes);
    let mut disks: Vec<u16> = (0..extent_bytes / step)
        .flat_map(|nth| {
            locate(vdisk, geometry, extent_bytes, place, nth * step)
                .iter()
                .map(|copy| copy.1)
                .collect::<Vec<_>>()
        })
        .collect();
    disks.sort_unstable();
    disks.dedup();
    disks
}

/// Bytes of an extent at `place` that lie on one disk, with all copies there.
pub(crate) fn share_of(
    vdisk: &VirtualDisk,
    geometry: &Geometry,
    extent_bytes: u32,
    (place, disk): (u32, u16),
) -> u64 {
    let stripe = u64::from(vdisk.interleave) * u64::from(vdisk.columns);
    if u64::from(extent_bytes).is_multiple_of(stripe) {
        // Every column has as much of it.
        let (tier, row) = row_of(vdisk, geometry, extent_bytes, place);
        let slabs = vdisk.tiers[tier].rows[row].slabs.iter();
        let own = plumb_units::convert::to_u64(slabs.filter(|slab| slab.0 == disk).count());
        return own * u64::from(extent_bytes / u32::from(vdisk.columns));
    }
    let step = vdisk.interleave.min(extent_bytes);
    let on_disk = |nth: u32| {
        let copies = locate(vdisk, geometry, extent_bytes, place, nth * step);
        plumb_units::convert::to_u64(copies.iter().filter(|copy| copy.1 == disk).count())
    };
    (0..extent_bytes / step).map(on_disk).sum::<u64>() * u64::from(step)
}

/// A set of extents.
#[derive(Debug, Default, Clone)]
pub(crate) struct ExtentSet {
    bits: Vec<u64>,
    count: u32,
}

impl ExtentSet {
    #[inline]
    pub(crate) fn has(&self, extent: u32) -> bool {
        self.count > 0
            && self.bits.get(index(extent / 64)).is_some_and(|bits| bits >> (extent % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, extent: u32) {
        let word = index(extent / 64);
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.count += u32::from(self.bits[word] >> (extent % 64) & 1 == 0);
        self.bits[word] |= 1 << (extent % 64);
    }

    pub(crate) fn remove(&mut self, extent: u32) {
        if self.has(extent) {
            self.bits[index(extent / 64)] &= !(1 << (extent % 64));
            self.count -= 1;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bits.clear();
        self.count = 0;
    }

    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// Ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words().flat_map(|(word, bits)| of_word(word, bits))
    }

    /// Numbers of the words of 64 that are not empty, and their bits; ascending.
    pub(crate) fn words(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        (0..).zip(&self.bits).filter(|(_, bits)| **bits != 0).map(|(word, bits)| (word, *bits))
    }

    pub(crate) fn word(&self, word: u32) -> u64 {
        self.bits.get(index(word)).copied().unwrap_or(0)
    }
}

/// The extents of a word's bits, ascending; none beyond the last that there can be.
pub(crate) fn of_word(word: u32, bits: u64) -> impl Iterator<Item = u32> {
    let first = word.checked_mul(64).filter(|first| *first <= u32::MAX - 63);
    let bit = move |bit: u32| first.filter(|_| bits >> bit & 1 == 1).map(|first| first + bit);
    (0..64).filter_map(bit)
}
