//! What a virtual disk's plans, reports and pins are told from: of an engine that runs, or of what one has handed out
//! for programs that only read.

use plumb_units::convert::index;

use super::{OptimizeSettings, Served, Tiering};
use crate::heat::HeatMap;
use crate::optimizer::{
    Bar, Measured, MoveHistory, PinId, PinState, PinStatus, PinTable, Placement, Plan, PlanRequest,
    Room, TierName, Worth, plan,
};
use crate::tier_report::{History, MoveFigures, Reach, ReportFacts, TierReport, Waits};
use crate::what_if::WhatIf;

/// All that plans and reports go by. Nothing in it changes while it is looked at.
#[derive(Debug)]
pub struct TierView<'a, P> {
    /// `POOL/VDISK`.
    pub name: String,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Host I/O by extent.
    pub heat: &'a HeatMap,
    /// What a cache of any size would have served.
    pub what_if: &'a WhatIf,
    /// Who served it.
    pub served: Served,
    /// Pins, and what moved lately.
    pub tiering: &'a Tiering,
    /// What its disks were measured to take.
    pub measured: Measured,
    /// Where every extent is.
    pub placement: P,
    /// Extents of the Performance tier that data may use.
    pub performance_slots: u64,
    /// Extents of the Capacity tier that are free.
    pub capacity_free: u64,
    /// Whether an optimization is under way.
    pub optimizing: bool,
}

impl<P: Placement> TierView<'_, P> {
    fn room(&self, reserve: u64) -> Room {
        let (performance_slots, capacity_free) = (self.performance_slots, self.capacity_free);
        Room { performance_slots, capacity_free, reserve }
    }

    /// What an optimization would do now.
    #[must_use]
    pub fn plan(&self, settings: &OptimizeSettings) -> Plan {
        self.plan_by(settings, (self.bar(settings), &self.tiering.history))
    }

    fn bar(&self, settings: &OptimizeSettings) -> Bar {
        let raised = settings.raised * self.tiering.history.raised();
        Bar { raised, ..Bar::of(&self.worth(), self.heat) }
    }

    /// What makes a move worth it.
    #[must_use]
    pub fn worth(&self) -> Worth {
        self.measured.worth(self.extent_bytes)
    }

    fn plan_by(&self, settings: &OptimizeSettings, (bar, history): (Bar, &MoveHistory)) -> Plan {
        plan(&PlanRequest {
            heat: self.heat,
            placement: &self.placement,
            pins: &self.tiering.pins,
            history,
            room: self.room(settings.reserve),
            bar,
            limits: settings.limits,
        })
    }

    /// What a plan would make of what was served, and what stands in its way if that is no more.
    #[must_use]
    fn reach(&self, planned: &Plan) -> Option<Reach> {
        let all = self.served.total() - self.served.unmapped;
        let fast = self.served.performance + self.served.cache;
        let measured = (all > 0).then(|| fast as f64 / all as f64)?;
        let (settings, none) = (OptimizeSettings::default(), MoveHistory::new());
        Reach::of((planned, self.bar(&settings)), measured, self.heat, |bar, history| {
            let history = if history == History::Own { &self.tiering.history } else { &none };
            self.plan_by(&settings, (bar, history))
        })
    }

    /// The report on the present window, at `now_s` of the clock that the report is by.
    #[must_use]
    pub fn report(&self, now_s: f64) -> TierReport {
        let planned = self.plan(&OptimizeSettings::default());
        self.report_on(now_s, &planned, false)
    }

    /// The same, by what was planned; `optimizes`: an optimization makes it so.
    pub(super) fn report_on(&self, now_s: f64, planned: &Plan, optimizes: bool) -> TierReport {
        let performance_bytes = self.performance_slots.saturating_mul(self.extent_bytes);
        let facts = ReportFacts {
            name: self.name.clone(),
            window_start_s: self.tiering.window_start_s,
            window_end_s: now_s,
            extent_bytes: self.extent_bytes,
            performance_slots: self.performance_slots,
            answered_performance: self.served.performance,
            answered_cache: self.served.cache,
            answered: self.served.total(),
            answered_zeros: self.served.unmapped,
            expected_share: planned.expected_share().filter(|_| optimizes),
            optimizes,
            pins_refused: planned.pins_refused,
            pins_pending: self.pins_pending(),
            reach: self.reach(planned),
            waits: Waits::of(planned),
            moves: MoveFigures::default(),
            worth: self.worth(),
            thrash: self.tiering.history.thrash(),
            working_sets: self.tiering.working_sets.clone(),
            bytes: Some(self.served.bytes),
            heat_gap: self.tiering.heat_gap,
            uncounted_s: self.tiering.uncounted_s,
            what_if: ReportFacts::curve(self.what_if, performance_bytes),
        };
        let is_mapped = |extent| self.placement.tier(extent).is_some();
        TierReport::new(&facts, self.heat, &self.tiering.pins, is_mapped)
    }

    fn pins_pending(&self) -> Vec<PinId> {
        if self.tiering.pins.pins().is_empty() {
            return Vec::new();
        }
        let waits = |state| matches!(state, PinState::Pending | PinState::InProcess);
        let all = self.pin_statuses().into_iter();
        all.filter(|status| waits(status.state)).map(|status| status.pin).collect()
    }

    /// How the pins stand.
    #[must_use]
    pub fn pin_statuses(&self) -> Vec<PinStatus> {
        self.tiering.pins.statuses(&self.placement, self.room(0), self.optimizing)
    }

    /// How a range, offset and length in bytes, stands as if it were pinned to a tier; `None` of an empty one.
    #[must_use]
    pub fn range_status(&self, (start, len): (u64, u64), tier: TierName) -> Option<PinStatus> {
        let mut pins = PinTable::new(self.extent_bytes);
        pins.set(start, len, tier)?;
        pins.statuses(&self.placement, self.room(0), self.optimizing).into_iter().next()
    }

    /// Extents in use on the Performance tier, and on the Capacity tier.
    #[must_use]
    pub fn mapped(&self) -> [u64; 2] {
        let mut counts = [0; 2];
        for extent in 0..self.placement.extents() {
            match self.placement.tier(extent) {
                Some(TierName::Performance) => counts[0] += 1,
                Some(TierName::Capacity) => counts[1] += 1,
                None => {}
            }
        }
        counts
    }
}

/// Where every extent of a virtual disk was at one moment, two bits for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    extents: u32,
    packed: Vec<u8>,
}

impl Placed {
    /// Of that map.
    #[must_use]
    pub fn of<P: Placement>(placement: &P) -> Self {
        let extents = placement.extents();
        let mut packed = vec![0_u8; index(extents.div_ceil(4))];
        for extent in 0..extents {
            let code = match placement.tier(extent) {
                None => 0,
                Some(TierName::Performance) => 1,
                Some(TierName::Capacity) => 2,
            };
            packed[index(extent / 4)] |= code << (extent % 4 * 2);
        }
        Self { extents, packed }
    }

    /// As bytes, which only make sense together with the number of extents.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.packed
    }

    /// From such bytes; `None` if they are of another number.
    pub(crate) fn from_bytes(extents: u32, packed: &[u8]) -> Option<Self> {
        let fits = packed.len() == index(extents.div_ceil(4));
        fits.then(|| Self { extents, packed: packed.to_vec() })
    }
}

impl Placement for Placed {
    fn extents(&self) -> u32 {
        self.extents
    }

    fn tier(&self, extent: u32) -> Option<TierName> {
        match self.packed[index(extent / 4)] >> (extent % 4 * 2) & 3 {
            1 => Some(TierName::Performance),
            2 => Some(TierName::Capacity),
            _ => None,
        }
    }
}

/// What is told beside heat and pins to whoever only reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Where every extent is.
    pub placed: Placed,
    /// Extents of the Performance tier that data may use.
    pub performance_slots: u64,
    /// Extents of the Capacity tier that are free.
    pub capacity_free: u64,
    /// Whether an optimization is under way.
    pub optimizing: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Mixed(u32);

    impl Placement for Mixed {
        fn extents(&self) -> u32 {
            self.0
        }

        fn tier(&self, extent: u32) -> Option<TierName> {
            [None, Some(TierName::Performance), Some(TierName::Capacity)][index(extent * 7 % 5 % 3)]
        }
    }

    #[test]
    fn a_packed_map_is_the_map() {
        for extents in [0, 1, 4, 5, 1023] {
            let placed = Placed::of(&Mixed(extents));
            let same = |extent| placed.tier(extent) == Mixed(extents).tier(extent);
            assert!((0..extents).all(same), "{extents}");
            assert_eq!(Placed::from_bytes(extents, placed.bytes()), Some(placed.clone()));
            assert_eq!(Placed::from_bytes(extents + 4, placed.bytes()), None);
        }
    }
}
