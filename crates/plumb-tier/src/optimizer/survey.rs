//! What a plan sees of the extents: one pass over all of them.

use plumb_units::convert::to_usize;

use super::pins::{Admitted, Zone};
use super::plan::PlanRequest;
use super::select::{Key, Least};
use super::{Placement, TierName};
use crate::heat::{ExtentHeat, Forecast, PAGE_EXTENTS};

/// A mapped extent as the passes see it.
pub(super) struct Found<'a> {
    pub(super) extent: u32,
    pub(super) tier: TierName,
    heat: ExtentHeat,
    zone: Option<&'a Zone>,
}

impl Found<'_> {
    pub(super) fn score(&self) -> f32 {
        self.heat.score
    }

    /// Whether a pin in force decides about it.
    pub(super) fn is_pinned<P>(&self, request: &PlanRequest<'_, P>, admitted: &Admitted) -> bool {
        self.zone.is_some_and(|zone| match request.pins.pins()[zone.pin].tier {
            TierName::Capacity => true,
            TierName::Performance => self.is_partly(admitted) || admitted.has(self.extent),
        })
    }

    /// Whether it is of the pin that has room for some of its extents.
    pub(super) fn is_partly(&self, admitted: &Admitted) -> bool {
        let pin = admitted.partly.map(|(pin, _)| pin);
        pin.is_some() && self.zone.map(|zone| zone.pin) == pin
    }
}

/// Calls for each mapped extent, in order.
pub(super) fn for_each_mapped<'a, P: Placement>(
    request: &PlanRequest<'_, P>,
    (forecast, zones): (&Forecast<'_>, &'a [Zone]),
    mut look: impl FnMut(Found<'a>),
) {
    let mut zones = zones.iter().peekable();
    let extents = request.placement.extents();
    for slab in 0..extents.div_ceil(PAGE_EXTENTS) {
        let first = slab * PAGE_EXTENTS;
        let page = forecast.slab(first);
        for extent in first..=(first + (PAGE_EXTENTS - 1)).min(extents - 1) {
            let Some(tier) = request.placement.tier(extent) else { continue };
            while zones.next_if(|zone| zone.last < extent).is_some() {}
            let zone = zones.peek().copied().filter(|zone| zone.first <= extent);
            let heat = page.as_ref().map(|page| page.extent(extent)).unwrap_or_default();
            look(Found { extent, tier, heat, zone });
        }
    }
}

/// What the first pass finds.
pub(super) struct Survey {
    pub(super) used: u64,
    pub(super) ios: u64,
    pub(super) ios_performance: u64,
    /// Pinned to the Performance tier, and not there: pin and extent.
    pub(super) pinned_up: Vec<(u32, u32)>,
    pub(super) pinned_down: Vec<u32>,
    /// Not on the Performance tier and worth a move to a free slot.
    pub(super) hot: Least,
    /// Of the pin that has room in part: the hottest that are not on the tier, and how many are.
    partly_up: Least,
    partly_fast: u64,
}

impl Survey {
    pub(super) fn new<P>(request: &PlanRequest<'_, P>, admitted: &Admitted) -> Self {
        let recent = request.history.recent_moves();
        // Budgets or not: what is wanted is told, too.
        let most = request.room.performance_slots;
        Self {
            used: 0,
            ios: 0,
            ios_performance: 0,
            pinned_up: Vec::new(),
            pinned_down: Vec::new(),
            // One more than may go up, to see whether a budget ends the plan.
            hot: Least::new(most.saturating_add(recent).saturating_add(1)),
            partly_up: Least::new(admitted.partly.map_or(0, |(_, room)| room)),
            partly_fast: 0,
        }
    }

    /// What belongs on the tier whatever its heat, in order, then what is worth a move there, the hottest first.
    pub(super) fn upwards(&mut self, admitted: &Admitted) -> Vec<Key> {
        self.pinned_up.sort_unstable();
        let mut hottest = std::mem::replace(&mut self.hot, Least::new(0)).sorted();
        if let Some((pin, room)) = admitted.partly {
            let pin = u32::try_from(pin).unwrap_or(u32::MAX);
            let mut fill = std::mem::replace(&mut self.partly_up, Least::new(0)).sorted();
            fill.truncate(to_usize(room.saturating_sub(self.partly_fast)));
            // The same order, and none but its extents are worth a move: they begin alike.
            hottest.drain(..fill.len().min(hottest.len()));
            self.pinned_up.extend(fill.into_iter().map(|key| (pin, key.extent())));
        }
        hottest
    }

    #[inline]
    pub(super) fn look<P>(
        &mut self,
        request: &PlanRequest<'_, P>,
        admitted: &Admitted,
        found: &Found<'_>,
    ) {
        let ios = found.heat.ios();
        self.ios = self.ios.saturating_add(ios);
        if found.tier == TierName::Performance {
            self.used += 1;
            self.ios_performance = self.ios_performance.saturating_add(ios);
        }
        let is_partly = found.is_partly(admitted);
        if is_partly {
            match found.tier {
                TierName::Performance => self.partly_fast += 1,
                TierName::Capacity => {
                    self.partly_up.push(Key::hottest(found.score(), found.extent));
                }
            }
        }
        let pin = found.zone.filter(|_| !is_partly && found.is_pinned(request, admitted));
        match (pin, found.tier) {
            (Some(zone), tier) if request.pins.pins()[zone.pin].tier != tier => match tier {
                TierName::Capacity => {
                    let pin = u32::try_from(zone.pin).unwrap_or(u32::MAX);
                    self.pinned_up.push((pin, found.extent));
                }
                TierName::Performance => self.pinned_down.push(found.extent),
            },
            // Where a pin has no room for all of it, nobody else has.
            (None, TierName::Capacity) if is_partly || admitted.partly.is_none() => {
                let score = found.score();
                if score > 0.0 && score >= request.bar.for_free() {
                    self.hot.push(Key::hottest(score, found.extent));
                }
            }
            _ => {}
        }
    }
}
