//! A load of some days, hour by hour, with a plan at the end of each day, of some hours or of each quarter of an hour: what tests of loads have in common.

use super::tierer::{Tierer, TiererSettings};
use crate::heat::HostIoKind;
use crate::optimizer::{PlanLimits, TierName};

/// When plans are made.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    Every(u64),
    Quarters,
}

/// Every six hours, daily, and a trickle.
pub(super) const RUNS: [When; 3] = [When::Every(6), When::Every(24), When::Quarters];

impl When {
    /// Parts of an hour that I/Os come in.
    pub(super) fn slices(self) -> u64 {
        match self {
            Self::Every(_) => 1,
            Self::Quarters => 4,
        }
    }

    /// Of a run when that part of an hour has ended: times that the bar is raised, and hours that a window lasts at least.
    fn run(self, hour: u64) -> Option<(f32, u64)> {
        match self {
            Self::Every(hours) => (hour + 1).is_multiple_of(hours).then_some((1.0, 0)),
            Self::Quarters => Some((2.0, crate::engine::TRICKLE_WINDOW_H)),
        }
    }
}

/// What came of a day.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Day {
    /// I/Os that the tier served, and all that count.
    pub(super) served: u64,
    pub(super) all: u64,
    /// Extents moved up.
    pub(super) up: u64,
    /// Extents left out by the last run because they take turns.
    pub(super) turns: u64,
}

impl Day {
    /// Share that the tier served of some days, and the extents moved up in them, in percent of a tier of so many per day.
    pub(super) fn of(days: &[Self], tier: u32) -> (f64, f64) {
        let sum = |of: fn(&Self) -> u64| days.iter().map(of).sum::<u64>() as f64;
        let moved = 100.0 * sum(|day| day.up) / days.len() as f64 / f64::from(tier);
        (sum(|day| day.served) / sum(|day| day.all), moved)
    }
}

/// A space of so many extents, all of them written in the order of their numbers, the first of which lie on a Performance tier with room for so many.
pub(super) fn written(extents: u32, tier: u32) -> Tierer {
    let mut tierer = Tierer::new(TiererSettings {
        extent_bytes: 1 << 20,
        performance_slots: tier,
        capacity_slots: extents,
        half_life_hours: 24.0,
        bar: None,
    });
    tierer.make_room(extents - 1);
    (0..extents).for_each(|extent| assert!(tierer.space.touch(extent).is_some()));
    tierer
}

/// Counts the I/Os of a part of an hour.
pub(super) struct Ios<'a> {
    tierer: &'a mut Tierer,
    day: &'a mut Day,
}

impl Ios<'_> {
    /// So many come to an extent.
    pub(super) fn come(&mut self, extent: u32, count: u64) {
        self.beside(extent, count);
        let place = self.tierer.space.place(extent).expect("all are mapped");
        self.day.all += count;
        self.day.served += if place.tier == TierName::Performance { count } else { 0 };
    }

    /// The same, of a load whose share is not asked for.
    pub(super) fn beside(&mut self, extent: u32, count: u64) {
        self.tierer.heat.record_many(extent, HostIoKind::Read, count);
    }
}

/// Some days of a load; `law` makes the I/Os of a part of an hour, which is the so-manieth since the beginning.
pub(super) fn replay(
    tierer: &mut Tierer,
    (days, when): (u64, When),
    mut law: impl FnMut((u64, u64), &mut Ios<'_>),
) -> Vec<Day> {
    let slices = when.slices();
    let one = |nth: u64| {
        let mut day = Day::default();
        for hour in 24 * nth..24 * (nth + 1) {
            for slice in 1..=slices {
                tierer.heat.advance(hour);
                law((hour, hour * slices + slice), &mut Ios { tierer, day: &mut day });
                tierer.heat.advance(hour + slice / slices);
                let Some((raised, least)) = when.run(hour) else { continue };
                let plan = tierer.plan(PlanLimits::none(), raised);
                tierer.begin_window(least, &plan);
                assert!(plan.moves.iter().all(|planned| tierer.make(planned)), "there is room");
                tierer.run_ended(&plan.moves);
                day.up += plan.count(TierName::Performance);
                day.turns = plan.turns;
            }
        }
        day
    };
    (0..days).map(one).collect()
}
