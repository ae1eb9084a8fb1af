//! Heat, map and optimizer of one simulated space: what the engine will have, without its devices.

use plumb_units::convert::to_u64;

use super::space::{Place, SpaceModel};
use crate::heat::{HeatMap, HeatSettings, HostIoKind, Weight};
use crate::optimizer::{
    Bar, Move, MoveHistory, PinTable, Placement, Plan, PlanLimits, PlanRequest, Room, Thrash,
    TierName, Worth, plan,
};
use crate::tier_report::{
    History, MoveFigures, Reach, ReportFacts, TierReport, Waits, WindowBytes,
};

/// How extents are added to the heat map.
const GROWTH: u32 = 1 << 16;

/// What a space's optimizer is set to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TiererSettings {
    pub(super) extent_bytes: u64,
    pub(super) performance_slots: u32,
    pub(super) capacity_slots: u32,
    pub(super) half_life_hours: f32,
    /// Another than the reference devices' one.
    pub(super) bar: Option<Bar>,
}

/// What was counted since the last optimization.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Served {
    pub(super) performance: u64,
    pub(super) cache: u64,
    pub(super) capacity: u64,
}

impl Served {
    pub(super) fn total(&self) -> u64 {
        self.performance + self.cache + self.capacity
    }

    /// Share of the fast ones; `None` without I/O.
    pub(super) fn share(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| (self.performance + self.cache) as f64 / total as f64)
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            performance: self.performance - before.performance,
            cache: self.cache - before.cache,
            capacity: self.capacity - before.capacity,
        }
    }
}

/// A tiered space that counts, plans and remembers.
#[derive(Debug)]
pub(super) struct Tierer {
    settings: TiererSettings,
    pub(super) heat: HeatMap,
    pub(super) space: SpaceModel,
    pins: PinTable,
    history: MoveHistory,
    /// The window that the last run was planned by goes on.
    goes_on: bool,
    working_sets: Vec<u64>,
}

impl Tierer {
    pub(super) fn new(settings: TiererSettings) -> Self {
        let heat =
            HeatSettings { half_life_hours: settings.half_life_hours, ..HeatSettings::new(GROWTH) };
        Self {
            heat: HeatMap::new(heat),
            space: SpaceModel::new(settings.performance_slots, settings.capacity_slots),
            pins: PinTable::new(settings.extent_bytes),
            history: MoveHistory::new(),
            goes_on: false,
            working_sets: Vec::new(),
            settings,
        }
    }

    /// Counts I/Os on an extent and says where it is; `None` when there is no room for a new one.
    pub(super) fn touch(&mut self, extent: u32, kind: HostIoKind, weight: Weight) -> Option<Place> {
        self.make_room(extent);
        self.heat.record(extent, kind, weight);
        self.space.touch(extent)
    }

    pub(super) fn make_room(&mut self, extent: u32) {
        let known = self.heat.settings().extents;
        if extent >= known {
            let wanted = extent.max(known - 1).saturating_add(GROWTH);
            self.heat.grow(wanted);
        }
    }

    /// What should move, with a bar raised so many times.
    pub(super) fn plan(&self, limits: PlanLimits, raised: f32) -> Plan {
        self.plan_by(self.bar(raised), &self.history, limits)
    }

    fn bar(&self, raised: f32) -> Bar {
        let reference = || Bar::reference(&self.heat);
        self.settings.bar.unwrap_or_else(reference).times(raised * self.history.raised())
    }

    fn plan_by(&self, bar: Bar, history: &MoveHistory, limits: PlanLimits) -> Plan {
        plan(&PlanRequest {
            heat: &self.heat,
            placement: &self.space,
            pins: &self.pins,
            history,
            room: Room {
                performance_slots: self.space.performance_usable(),
                capacity_free: self.space.capacity_free(),
                reserve: 0,
            },
            bar,
            limits,
        })
    }

    /// Does a move at once; whether there was a slot for it.
    #[cfg(test)]
    pub(super) fn make(&mut self, planned: &Move) -> bool {
        let place = self.space.reserve(planned.to);
        if let Some(place) = place {
            self.space.switch(planned.extent, place);
        }
        place.is_some()
    }

    /// What the report on the window before a plan says.
    pub(super) fn report(
        &self,
        planned: &Plan,
        served: &Served,
        moves: MoveFigures,
        (hours, bytes): ((f64, f64), WindowBytes),
    ) -> TierReport {
        let facts = ReportFacts {
            name: "simulated".to_owned(),
            window_start_s: hours.0 * 3600.0,
            window_end_s: hours.1 * 3600.0,
            extent_bytes: self.settings.extent_bytes,
            performance_slots: self.space.performance_usable(),
            answered_performance: served.performance,
            answered_cache: served.cache,
            answered: served.total(),
            answered_zeros: 0,
            expected_share: planned.expected_share(),
            optimizes: true,
            pins_refused: planned.pins_refused,
            reach: self.reach(planned, served),
            waits: Waits::of(planned),
            moves,
            worth: Worth::reference(),
            thrash: self.history.thrash(),
            working_sets: self.working_sets.clone(),
            bytes: Some(bytes),
            heat_gap: None,
            uncounted_s: 0,
            pins_pending: Vec::new(),
            what_if: Vec::new(),
        };
        TierReport::new(&facts, &self.heat, &self.pins, |_| true)
    }

    fn reach(&self, planned: &Plan, served: &Served) -> Option<Reach> {
        let none = MoveHistory::new();
        Reach::of((planned, self.bar(1.0)), served.share()?, &self.heat, |bar, history| {
            let history = if history == History::Own { &self.history } else { &none };
            self.plan_by(bar, history, PlanLimits::none())
        })
    }

    /// A run begins, with these moves: the counts that it was planned by are over, unless they are of fewer than so many hours; whether they are.
    pub(super) fn begin_window(&mut self, least_hours: u64, planned: &Plan) -> bool {
        self.goes_on = self.heat.window_hours().is_some_and(|age| age < least_hours);
        self.history.planned(planned, &self.heat, !self.goes_on);
        if self.goes_on {
            return false;
        }
        self.working_sets.push(self.heat.working_set());
        if self.working_sets.len() > 7 {
            self.working_sets.remove(0);
        }
        // There are more extents in the map than in the space.
        let extents = self.space.extents();
        let tier = |extent| if extent < extents { self.space.tier(extent) } else { None };
        self.heat.begin_window_of(|extent| tier(extent).map(|tier| tier == TierName::Performance));
        true
    }

    /// A run has ended: its moves are remembered.
    pub(super) fn run_ended(&mut self, made: &[Move]) {
        self.history.spend(made, &self.heat, self.space.performance_usable());
        match self.goes_on {
            true => self.history.run_went_on(made),
            false => self.history.run_ended(made),
        }
    }

    pub(super) fn thrash(&self) -> Thrash {
        self.history.thrash()
    }
}

/// How many of the moves go to a tier.
pub(super) fn count(moves: &[Move], to: TierName) -> u64 {
    to_u64(moves.iter().filter(|made| made.to == to).count())
}
