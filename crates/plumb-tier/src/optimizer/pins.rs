//! Pins by range (spec 13): which extents belong on which tier whatever their heat.

use std::collections::BTreeMap;

use plumb_units::convert::to_u64;

use super::{Placement, Room, TierName};

/// A pin's number; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PinId(pub u64);

/// A range of a virtual disk that belongs on a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Its number.
    pub id: PinId,
    /// First byte.
    pub start: u64,
    /// Bytes; above 0.
    pub len: u64,
    /// Where it belongs.
    pub tier: TierName,
}

impl Pin {
    /// First and last extent that it touches (PIN-3).
    fn extents(&self, extent_bytes: u64) -> Option<(u32, u32)> {
        let last = self.start.checked_add(self.len)?.checked_sub(1)?;
        let first = u32::try_from(self.start / extent_bytes).ok()?;
        (self.len > 0).then_some((first, u32::try_from(last / extent_bytes).ok()?))
    }
}

/// The pins of a virtual disk, in the order of their creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinTable {
    extent_bytes: u64,
    pins: Vec<Pin>,
    next: u64,
}

/// A run of extents that one pin decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// Place in the list of pins.
    pub(crate) pin: usize,
}

/// Where a pinned range is (13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementStatus {
    /// Not known.
    Unknown,
    /// All of it is where it belongs, or not mapped.
    CompletelyOnTier,
    /// Some of it.
    PartiallyOnTier,
    /// None of it.
    NotOnTier,
}

impl PlacementStatus {
    /// The number by which other tools know it.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::CompletelyOnTier => 1,
            Self::PartiallyOnTier => 2,
            Self::NotOnTier => 3,
        }
    }

    /// As it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::CompletelyOnTier => "Completely on tier",
            Self::PartiallyOnTier => "Partially on tier",
            Self::NotOnTier => "Not on tier",
        }
    }
}

/// What becomes of a pin (13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinState {
    /// Not known.
    Unknown,
    /// It is as wanted, or a later pin decides.
    Ok,
    /// The tier has no room for all of it.
    InsufficientCapacity,
    /// An optimization is moving it.
    InProcess,
    /// The next optimization will move it.
    Pending,
}

impl PinState {
    /// The number by which other tools know it.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Ok => 1,
            Self::InsufficientCapacity => 2,
            Self::InProcess => 3,
            Self::Pending => 4,
        }
    }

    /// As it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Ok => "OK",
            Self::InsufficientCapacity => "Insufficient Capacity",
            Self::InProcess => "In Process",
            Self::Pending => "Pending",
        }
    }
}

/// How a pin stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinStatus {
    /// Which.
    pub pin: PinId,
    /// Where its bytes are.
    pub placement: PlacementStatus,
    /// What becomes of it.
    pub state: PinState,
    /// Bytes of the range.
    pub bytes: u64,
    /// Bytes of the range on the desired tier or not mapped.
    pub bytes_on_tier: u64,
    /// Bytes of all extents that it touches: pinned with it (PIN-3).
    pub bytes_pinned: u64,
    /// Later pins with another tier that decide about some of it (PIN-5).
    pub overridden_by: Vec<PinId>,
    /// Bytes of the range that those decide about.
    pub bytes_overridden: u64,
}

impl PinTable {
    /// No pins, for extents of `extent_bytes`.
    ///
    /// # Panics
    /// When that is 0.
    #[must_use]
    pub fn new(extent_bytes: u64) -> Self {
        assert!(extent_bytes > 0, "an extent has bytes");
        Self { extent_bytes, pins: Vec::new(), next: 1 }
    }

    /// The pins of another table, `next` the number of the next one; `None` if they are no table's.
    #[must_use]
    pub fn restored(extent_bytes: u64, pins: Vec<Pin>, next: PinId) -> Option<Self> {
        let rises = pins.windows(2).all(|two| two[0].id < two[1].id);
        let below = pins.iter().all(|pin| pin.id < next && pin.id.0 > 0);
        let ranges = pins.iter().all(|pin| pin.extents(extent_bytes).is_some());
        (extent_bytes > 0 && next.0 > 0 && rises && below && ranges).then_some(Self {
            extent_bytes,
            pins,
            next: next.0,
        })
    }

    /// The number that the next pin gets.
    #[must_use]
    pub fn next_id(&self) -> PinId {
        PinId(self.next)
    }

    /// Pins a range; its number. `None` when the range is empty or ends beyond what extents can number. A range that is pinned to
    /// that tier keeps its pin and its place in the order, unless a later pin with another tier decides about some of it.
    pub fn set(&mut self, start: u64, len: u64, tier: TierName) -> Option<PinId> {
        let pin = Pin { id: PinId(self.next), start, len, tier };
        let (first, last) = pin.extents(self.extent_bytes)?;
        let same = |old: &&Pin| (old.start, old.len, old.tier) == (start, len, tier);
        if let Some(old) = self.pins.iter().find(same) {
            let beside = |zone: &Zone| zone.last < first || zone.first > last;
            let agrees = |zone: &Zone| beside(zone) || self.pins[zone.pin].tier == tier;
            if self.zones().iter().all(agrees) {
                return Some(old.id);
            }
        }
        self.next += 1;
        self.pins.push(pin);
        Some(PinId(self.next - 1))
    }

    /// Removes a pin; whether there was one.
    pub fn clear(&mut self, id: PinId) -> bool {
        let before = self.pins.len();
        self.pins.retain(|pin| pin.id != id);
        self.pins.len() < before
    }

    /// The pins, the oldest first.
    #[must_use]
    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    /// The first and last extent that each touches, the oldest first.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u32, u32)> {
        self.pins.iter().map(|pin| pin.extents(self.extent_bytes).unwrap_or((u32::MAX, 0)))
    }

    /// Which pin decides about which extents: of several with different tiers the latest (PIN-5), of those with one tier the first,
    /// whose place in the order it is that counts (10.2). In the order of extents, disjoint.
    pub(crate) fn zones(&self) -> Vec<Zone> {
        let mut zones: BTreeMap<u32, Zone> = BTreeMap::new();
        for (nth, pin) in self.pins.iter().enumerate() {
            let Some((first, last)) = pin.extents(self.extent_bytes) else { continue };
            let under: Vec<Zone> = zones
                .range(..=last)
                .rev()
                .map(|(_, zone)| *zone)
                .take_while(|zone| zone.last >= first)
                .collect();
            // What lies under the new one is cut, unless it asks for the same.
            let mut next = Some(first);
            let mut painted = Vec::new();
            for zone in under.into_iter().rev() {
                if self.pins[zone.pin].tier == pin.tier {
                    let free = next.filter(|next| *next < zone.first);
                    painted.extend(free.map(|next| (next, zone.first - 1)));
                    next = zone.last.checked_add(1);
                    continue;
                }
                zones.remove(&zone.first);
                if zone.first < first {
                    zones.insert(zone.first, Zone { last: first - 1, ..zone });
                }
                if zone.last > last {
                    zones.insert(last + 1, Zone { first: last + 1, ..zone });
                }
            }
            painted.extend(next.filter(|next| *next <= last).map(|next| (next, last)));
            for (first, last) in painted {
                zones.insert(first, Zone { first, last, pin: nth });
            }
        }
        zones.into_values().collect()
    }

    /// Bytes of a pin's range within an extent.
    fn bytes_within(&self, pin: &Pin, extent: u32) -> u64 {
        let start = u64::from(extent) * self.extent_bytes;
        let end = (start + self.extent_bytes).min(pin.start.saturating_add(pin.len));
        end.saturating_sub(start.max(pin.start))
    }

    /// How every pin stands in that room; `moving` while an optimization runs.
    pub fn statuses<P: Placement>(
        &self,
        placement: &P,
        room: Room,
        moving: bool,
    ) -> Vec<PinStatus> {
        let zones = self.zones();
        let admitted = Admitted::of(self, &zones, placement, room.performance_slots);
        let down = Admitted::down(self, &zones, placement, (room.capacity_free, &admitted));
        let status = |pin: &Pin| {
            let (first, last) = pin.extents(self.extent_bytes).unwrap_or((0, 0));
            let (mut off_tier, mut short, mut waits) = (0, false, false);
            let (mut overridden_by, mut bytes_overridden) = (Vec::new(), 0);
            for zone in zones.iter().filter(|zone| zone.last >= first && zone.first <= last) {
                let other = &self.pins[zone.pin];
                if other.tier == pin.tier {
                    continue;
                }
                let bytes = |extent: u32| u64::from(extent).saturating_mul(self.extent_bytes);
                let end = bytes(zone.last).saturating_add(self.extent_bytes);
                bytes_overridden +=
                    end.min(pin.start.saturating_add(pin.len)) - bytes(zone.first).max(pin.start);
                if !overridden_by.contains(&other.id) {
                    overridden_by.push(other.id);
                }
            }
            for extent in (first..=last).take_while(|extent| *extent < placement.extents()) {
                let Some(tier) = placement.tier(extent) else { continue };
                // Be it that an earlier pin with this tier decides.
                let own = zone_at(&zones, extent)
                    .is_some_and(|zone| self.pins[zone.pin].tier == pin.tier);
                let is_there = tier == pin.tier;
                let fits = match pin.tier {
                    TierName::Capacity => is_there || down.has(extent),
                    // Who is there may have to leave for an earlier pin.
                    TierName::Performance => admitted.has(extent),
                };
                if !is_there {
                    off_tier += self.bytes_within(pin, extent);
                }
                short |= own && !fits;
                waits |= own && fits && !is_there;
            }
            let on_tier = pin.len - off_tier;
            overridden_by.sort_unstable();
            PinStatus {
                pin: pin.id,
                placement: match on_tier {
                    all if all == pin.len && bytes_overridden == 0 => {
                        PlacementStatus::CompletelyOnTier
                    }
                    0 => PlacementStatus::NotOnTier,
                    _ => PlacementStatus::PartiallyOnTier,
                },
                state: match (short, waits, moving) {
                    (true, ..) => PinState::InsufficientCapacity,
                    (_, true, true) => PinState::InProcess,
                    (_, true, false) => PinState::Pending,
                    _ => PinState::Ok,
                },
                bytes: pin.len,
                bytes_on_tier: on_tier,
                bytes_pinned: (u64::from(last - first) + 1) * self.extent_bytes,
                overridden_by,
                bytes_overridden,
            }
        };
        self.pins.iter().map(status).collect()
    }
}

/// The zone that an extent is in.
pub(crate) fn zone_at(zones: &[Zone], extent: u32) -> Option<&Zone> {
    let after = zones.partition_point(|zone| zone.first <= extent);
    zones[..after].last().filter(|zone| extent <= zone.last)
}

/// Which extents pinned to the Performance tier have room there: pins in the order of their creation until the tier is full
/// (10.2). Of the one that has room in part heat decides which.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    /// First and last extent of what has room wholly, sorted.
    ranges: Vec<(u32, u32)>,
    /// The pin that has room in part, by its place in the list of pins, and for how many extents.
    pub(super) partly: Option<(usize, u64)>,
    /// Mapped extents that are in.
    pub(super) count: u64,
    /// Mapped extents that have no room.
    pub(super) refused: u64,
}

impl Admitted {
    pub(super) fn of<P: Placement>(
        table: &PinTable,
        zones: &[Zone],
        placement: &P,
        usable: u64,
    ) -> Self {
        let mut admitted = Self::default();
        let extents = placement.extents();
        let mut order: Vec<&Zone> = zones
            .iter()
            .filter(|zone| table.pins[zone.pin].tier == TierName::Performance)
            .collect();
        order.sort_by_key(|zone| (zone.pin, zone.first));
        for of_pin in order.chunk_by(|a, b| a.pin == b.pin) {
            let mapped = |zone: &Zone| {
                let own = (zone.first..=zone.last).take_while(|extent| *extent < extents);
                to_u64(own.filter(|extent| placement.tier(*extent).is_some()).count())
            };
            let wanted: u64 = of_pin.iter().map(|zone| mapped(zone)).sum();
            let room = usable - admitted.count;
            if wanted <= room {
                admitted.ranges.extend(of_pin.iter().map(|zone| (zone.first, zone.last)));
            } else if room > 0 {
                admitted.partly = Some((of_pin[0].pin, room));
            }
            admitted.count += wanted.min(room);
            admitted.refused += wanted.saturating_sub(room);
        }
        admitted.ranges.sort_unstable();
        admitted
    }

    /// Which extents pinned to the Capacity tier and not there have room: free slots, and those of extents that may leave it.
    fn down<P: Placement>(
        table: &PinTable,
        zones: &[Zone],
        placement: &P,
        (free, up): (u64, &Self),
    ) -> Self {
        let extents = placement.extents();
        let is_down = |zone: &&Zone| table.pins[zone.pin].tier == TierName::Capacity;
        let waits = |extent: &u32| placement.tier(*extent) == Some(TierName::Performance);
        let of = |zone: &Zone| (zone.first..=zone.last).take_while(move |own| *own < extents);
        let wanted = zones.iter().filter(is_down).flat_map(of).filter(waits).count();
        let mut usable = free;
        if to_u64(wanted) > free {
            let stays = |extent: u32| match zone_at(zones, extent) {
                Some(zone) if table.pins[zone.pin].tier == TierName::Capacity => true,
                Some(_) => up.has(extent),
                None => false,
            };
            let leaves = |extent: &u32| {
                placement.tier(*extent) == Some(TierName::Capacity) && !stays(*extent)
            };
            usable += to_u64((0..extents).filter(leaves).count());
        }
        let mut order: Vec<&Zone> = zones.iter().filter(is_down).collect();
        order.sort_by_key(|zone| (zone.pin, zone.first));
        let mut admitted = Self::default();
        for extent in order.into_iter().flat_map(of).filter(waits) {
            if admitted.count == usable {
                admitted.refused += 1;
                continue;
            }
            admitted.count += 1;
            match admitted.ranges.last_mut().filter(|last| last.1.checked_add(1) == Some(extent)) {
                Some(last) => last.1 = extent,
                None => admitted.ranges.push((extent, extent)),
            }
        }
        admitted.ranges.sort_unstable();
        admitted
    }

    /// Whether an extent has room for certain.
    pub(super) fn has(&self, extent: u32) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= extent);
        self.ranges[..after].last().is_some_and(|range| extent <= range.1)
    }
}
