//! The model of a tiered space: which extent has which slot, and where slots are on the disks.

use plumb_units::convert::{index, to_u64};

use crate::optimizer::{Placement, TierName};

/// The bit of a map entry that says Capacity.
const CAPACITY: u32 = 1 << 31;
const UNMAPPED: u32 = u32::MAX;

/// Slots of a tier.
#[derive(Debug)]
struct Slots {
    /// Slots that there are, those reserved for moves included.
    count: u32,
    /// Slots that data may use.
    usable: u32,
    used: u32,
    /// Never used so far from here on.
    next: u32,
    free: Vec<u32>,
}

impl Slots {
    /// The move reserve (MOD-2) comes on top.
    fn new(usable: u32) -> Self {
        let reserve = (usable / 1000).max(64);
        let count = usable.saturating_add(reserve).min(CAPACITY - 1);
        Self { count, usable, used: 0, next: 0, free: Vec::new() }
    }

    fn take(&mut self) -> Option<u32> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.next < self.count => {
                self.next += 1;
                self.next - 1
            }
            None => return None,
        };
        self.used += 1;
        Some(slot)
    }

    fn give(&mut self, slot: u32) {
        self.used -= 1;
        self.free.push(slot);
    }
}

/// A slot of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) tier: TierName,
    pub(super) slot: u32,
}

impl Place {
    fn of(entry: u32) -> Option<Self> {
        let tier = if entry & CAPACITY == 0 { TierName::Performance } else { TierName::Capacity };
        (entry != UNMAPPED).then_some(Self { tier, slot: entry & !CAPACITY })
    }

    fn entry(self) -> u32 {
        match self.tier {
            TierName::Performance => self.slot,
            TierName::Capacity => self.slot | CAPACITY,
        }
    }
}

/// The map of a virtual disk with two tiers.
#[derive(Debug)]
pub(super) struct SpaceModel {
    map: Vec<u32>,
    performance: Slots,
    capacity: Slots,
}

impl Placement for SpaceModel {
    fn extents(&self) -> u32 {
        u32::try_from(self.map.len()).unwrap_or(u32::MAX)
    }

    fn tier(&self, extent: u32) -> Option<TierName> {
        Place::of(self.map[index(extent)]).map(|place| place.tier)
    }
}

impl SpaceModel {
    pub(super) fn new(performance: u32, capacity: u32) -> Self {
        Self {
            map: Vec::new(),
            performance: Slots::new(performance),
            capacity: Slots::new(capacity),
        }
    }

    fn slots(&mut self, tier: TierName) -> &mut Slots {
        match tier {
            TierName::Performance => &mut self.performance,
            TierName::Capacity => &mut self.capacity,
        }
    }

    /// Slots of the Performance tier that data may use.
    pub(super) fn performance_usable(&self) -> u64 {
        u64::from(self.performance.usable)
    }

    /// Free slots of the Capacity tier.
    pub(super) fn capacity_free(&self) -> u64 {
        u64::from(self.capacity.usable.saturating_sub(self.capacity.used))
    }

    /// Where an extent is.
    pub(super) fn place(&self, extent: u32) -> Option<Place> {
        Place::of(self.map.get(index(extent)).copied().unwrap_or(UNMAPPED))
    }

    /// Where an extent is; a new one goes to the Performance tier, or where there is room (ALC-1). `None` when there
    /// is none.
    pub(super) fn touch(&mut self, extent: u32) -> Option<Place> {
        if self.map.len() <= index(extent) {
            self.map.resize(index(extent) + 1, UNMAPPED);
        }
        if let Some(place) = self.place(extent) {
            return Some(place);
        }
        let tier = [TierName::Performance, TierName::Capacity].into_iter().find(|tier| {
            let slots = self.slots(*tier);
            slots.used < slots.usable
        })?;
        let place = Place { tier, slot: self.slots(tier).take()? };
        self.map[index(extent)] = place.entry();
        Some(place)
    }

    /// A free slot for a move, of the reserve if need be.
    pub(super) fn reserve(&mut self, tier: TierName) -> Option<Place> {
        let slot = self.slots(tier).take()?;
        Some(Place { tier, slot })
    }

    /// The extent is there now, its former slot is free.
    pub(super) fn switch(&mut self, extent: u32, to: Place) {
        if let Some(from) = self.place(extent) {
            self.slots(from.tier).give(from.slot);
        }
        self.map[index(extent)] = to.entry();
    }

    /// Extents that are mapped.
    pub(super) fn mapped(&self) -> u64 {
        u64::from(self.performance.used) + u64::from(self.capacity.used)
    }
}

/// Where the slots of a tier are: columns, interleave, copies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stripes {
    /// First disk.
    pub(super) first: usize,
    pub(super) columns: usize,
    pub(super) copies: usize,
    pub(super) extent_bytes: u64,
    pub(super) interleave: u64,
}

/// Bytes on one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) column: usize,
    pub(super) offset: u64,
    pub(super) len: u32,
}

impl Stripes {
    /// The pieces of `len` bytes at `offset` of a slot.
    pub(super) fn pieces(&self, slot: u32, offset: u64, len: u64) -> impl Iterator<Item = Piece> {
        let Self { columns, extent_bytes, interleave, .. } = *self;
        let (mut at, end) = (
            u64::from(slot) * extent_bytes + offset,
            u64::from(slot) * extent_bytes + offset + len,
        );
        std::iter::from_fn(move || {
            let left = end.checked_sub(at).filter(|left| *left > 0)?;
            let (stripe, within) = (at / interleave, at % interleave);
            let len = left.min(interleave - within);
            at += len;
            let columns = to_u64(columns);
            Some(Piece {
                column: plumb_units::convert::to_usize(stripe % columns),
                offset: stripe / columns * interleave + within,
                len: u32::try_from(len).unwrap_or(u32::MAX),
            })
        })
    }

    /// The disks that hold a column.
    pub(super) fn disks(&self, column: usize) -> impl Iterator<Item = usize> + use<> {
        let Self { first, columns, copies, .. } = *self;
        (0..copies).map(move |copy| first + copy * columns + column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_extents_fill_the_performance_tier_first_and_moves_have_their_reserve() {
        let mut space = SpaceModel::new(2, 3);
        let tiers: Vec<_> =
            (0..6).map(|extent| space.touch(extent * 2).map(|place| place.tier)).collect();
        let (fast, slow) = (Some(TierName::Performance), Some(TierName::Capacity));
        assert_eq!(tiers, [fast, fast, slow, slow, slow, None]);
        assert_eq!((space.tier(2), space.tier(3), space.mapped()), (fast, None, 5));
        let to = space.reserve(TierName::Performance).expect("the reserve");
        space.switch(4, to);
        assert_eq!((space.tier(4), space.capacity_free(), space.mapped()), (fast, 1, 5));
        // The freed slot is used again.
        assert_eq!(space.touch(20), Some(Place { tier: TierName::Capacity, slot: 0 }));
    }

    #[test]
    fn every_byte_of_a_tier_has_a_place_of_its_own() {
        let stripes = Stripes {
            first: 4,
            columns: 3,
            copies: 2,
            extent_bytes: 1 << 20,
            interleave: 256 << 10,
        };
        let mut seen = std::collections::BTreeMap::new();
        for slot in 0..30 {
            let mut bytes = 0;
            for piece in stripes.pieces(slot, 0, 1 << 20) {
                bytes += piece.len;
                assert_eq!(seen.insert((piece.column, piece.offset), piece.len), None);
            }
            assert_eq!(bytes, 1 << 20);
        }
        for ((column, offset), len) in &seen {
            let next = seen.range((*column, offset + 1)..).next();
            assert!(next.is_none_or(|(next, _)| next.0 != *column || next.1 == offset + u64::from(*len)));
        }
        let pieces: Vec<Piece> = stripes.pieces(1, (256 << 10) - 4096, 8192).collect();
        let (column, offset) = (1, (512 << 10) - 4096);
        assert_eq!(pieces[0], Piece { column, offset, len: 4096 });
        assert_eq!(pieces[1], Piece { column: 2, offset: 256 << 10, len: 4096 });
        assert_eq!(stripes.disks(2).collect::<Vec<_>>(), [6, 9]);
    }
}
