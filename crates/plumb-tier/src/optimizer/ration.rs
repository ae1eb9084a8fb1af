//! What swaps that chance may be the reason of are given: nearly a hundredth of the Performance tier in 24 hours (section 25).

use plumb_units::convert::to_u64;

use super::{Move, MoveReason, TierName};
use crate::format::bytes::{Reader, Writer};
use crate::heat::HeatMap;

/// Millionths of an extent.
const EXTENT: u64 = 1_000_000;
/// What swaps use up beyond it, those that are sure, is borrowed of the next day, and of no more.
const DAYS: u64 = 2;
/// Hours in which all of it comes back.
const HOURS: u64 = 24;

/// What of it is used up: it comes back with time, by the hours of the heat map, whatever the mode is and however often a program starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ration {
    /// Millionths of an extent.
    spent: u64,
    /// In that hour.
    hour: u64,
}

/// What it is of, and of that what it is: a hundredth, less what may be left of the day before.
const PARTS: u64 = 10_000;
const SHARE: u64 = 95;

/// The ration of a tier, or one extent.
fn whole(slots: u64) -> u64 {
    (slots.saturating_mul(EXTENT) / PARTS * SHARE).max(EXTENT)
}

impl Ration {
    /// What is used up in an hour of a tier with so many slots. An hour before the one that is known is of another clock, which tells nothing.
    fn spent_by(self, hour: u64, slots: u64) -> u64 {
        let whole = whole(slots);
        let hours =
            hour.checked_sub(self.hour).map_or(DAYS * HOURS, |hours| hours.min(DAYS * HOURS));
        let back = u128::from(whole) * u128::from(hours) / u128::from(HOURS);
        self.spent.min(DAYS * whole).saturating_sub(u64::try_from(back).unwrap_or(u64::MAX))
    }

    /// Extents that may be swapped.
    #[must_use]
    pub fn left(self, heat: &HeatMap, slots: u64) -> u64 {
        whole(slots).saturating_sub(self.spent_by(heat.epoch(), slots)) / EXTENT
    }

    /// A run has made these moves. Those of the first two days, which put extents where they belong, leave nothing of it.
    pub(super) fn spend(&mut self, made: &[Move], heat: &HeatMap, slots: u64) {
        let is_up =
            |made: &&Move| made.to == TierName::Performance && made.reason == MoveReason::Heat;
        let up = to_u64(made.iter().filter(is_up).count());
        let spent = self.spent_by(heat.epoch(), slots).saturating_add(up.saturating_mul(EXTENT));
        self.spent = if heat.is_settled() { spent.min(DAYS * whole(slots)) } else { whole(slots) };
        self.hour = heat.epoch();
    }

    pub(super) fn save(self, out: &mut Writer) {
        out.u64(self.spent);
        out.u64(self.hour);
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { spent: from.u64()?, hour: from.u64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::{HeatSettings, HostIoKind};
    use crate::optimizer::{
        Bar, MoveHistory, PinTable, Placement, Plan, PlanLimits, PlanRequest, Room, plan,
    };

    fn up(count: u32) -> Vec<Move> {
        let to = TierName::Performance;
        let of = |extent| Move { extent, score: 9.0, to, reason: MoveReason::Heat };
        (0..count).map(of).collect()
    }

    /// A map whose first window had a load and ended long ago.
    fn settled() -> HeatMap {
        let mut heat = HeatMap::new(HeatSettings::new(100));
        heat.record_many(7, HostIoKind::Read, 9);
        heat.begin_window();
        heat.advance(48);
        heat
    }

    #[test]
    fn a_ration_comes_back_with_time() {
        let mut heat = settled();
        let mut history = MoveHistory::new();
        assert_eq!(history.ration().left(&heat, 2000), 19);
        history.spend(&up(4), &heat, 2000);
        assert_eq!(history.ration().left(&heat, 2000), 15);
        // More than there was is borrowed, of one more day. What pins move, and what leaves the tier, takes nothing of it.
        history.spend(&up(400), &heat, 2000);
        assert_eq!(history.ration().left(&heat, 2000), 0);
        heat.advance(72);
        assert_eq!(history.ration().left(&heat, 2000), 0);
        heat.advance(78);
        assert_eq!(history.ration().left(&heat, 2000), 4);
        let pinned = up(9).into_iter().map(|made| Move { reason: MoveReason::Pin, ..made });
        let down = up(9).into_iter().map(|made| Move { to: TierName::Capacity, ..made });
        history.spend(&pinned.chain(down).collect::<Vec<Move>>(), &heat, 2000);
        assert_eq!(history.ration().left(&heat, 2000), 4);
        // The half that was left then counts.
        heat.advance(84);
        assert_eq!(history.ration().left(&heat, 2000), 9);
        heat.advance(96);
        assert_eq!(history.ration().left(&heat, 2000), 19);
        heat.advance(500);
        assert_eq!(history.ration().left(&heat, 2000), 19, "no more than all of it");
        assert_eq!(history.ration().left(&heat, 7), 1, "an extent at least");
    }

    /// Runs every six hours have a fourth each.
    #[test]
    fn the_first_days_leave_nothing_of_a_ration_and_restarts_leave_it() {
        let mut heat = HeatMap::new(HeatSettings::new(100));
        heat.begin_window();
        let mut history = MoveHistory::new();
        history.spend(&up(1), &heat, 2000);
        assert_eq!(history.ration().left(&heat, 2000), 0);
        heat.advance(12);
        let restored = MoveHistory::restore(&history.save()).expect("what was saved");
        assert_eq!(restored.ration().left(&heat, 2000), 9);
        assert_eq!(restored, history);
        // A map that was lost begins with another hour.
        let mut later = MoveHistory::new();
        later.spend(&up(10), &settled(), 2000);
        assert_eq!(later.ration().left(&heat, 2000), 19);
    }

    /// The first 1,000 of 2,000 extents lie on the Performance tier, which is full.
    struct Disk;

    impl Placement for Disk {
        fn extents(&self) -> u32 {
            2000
        }

        fn tier(&self, extent: u32) -> Option<TierName> {
            Some(if extent < 1000 { TierName::Performance } else { TierName::Capacity })
        }
    }

    /// Of thirty extents above that are cold, and of those below: three have 60 I/Os, twenty have 18, which chance makes of none with six deviations.
    /// The others above have so many each.
    fn planned_beside(others: u64, hours: u64, history: &MoveHistory, limits: PlanLimits) -> Plan {
        let mut heat = HeatMap::new(HeatSettings::new(2000));
        heat.record_many(29, HostIoKind::Read, 9);
        heat.begin_window();
        heat.advance(hours);
        (30..1000).for_each(|extent| heat.record_many(extent, HostIoKind::Read, others));
        (1500..1503).for_each(|extent| heat.record_many(extent, HostIoKind::Read, 60));
        (1600..1620).for_each(|extent| heat.record_many(extent, HostIoKind::Read, 18));
        plan(&PlanRequest {
            heat: &heat,
            placement: &Disk,
            pins: &PinTable::new(1 << 20),
            history,
            room: Room { performance_slots: 1000, capacity_free: 100, reserve: 0 },
            bar: Bar::reference(&heat),
            limits,
        })
    }

    /// Section 25: moves of a steady load write 1 % of the tier in a day.
    #[test]
    fn what_chance_may_be_the_reason_of_waits_when_the_ration_is_used_up() {
        let none = PlanLimits::none();
        let told = |hours, history: &MoveHistory, limits| {
            let plan = planned_beside(100, hours, history, limits);
            (plan.within_budget(TierName::Performance), plan.put_off.len(), plan.budget_spent)
        };
        let mut history = MoveHistory::new().with_gains();
        assert_eq!(told(24, &history, none), (23, 0, false), "the second day's plan places");
        assert_eq!(told(48, &history, none), (9, 14, false), "nine of 1,000");
        history.spend(&up(10), &settled(), 1000);
        assert_eq!(told(48, &history, none), (3, 20, false), "what is sure never waits");
        assert_eq!(told(72, &history, none), (9, 14, false));
        // Where nothing is known to have gained nothing is sure.
        let mut knows_nothing = MoveHistory::new();
        knows_nothing.spend(&up(10), &settled(), 1000);
        assert_eq!(told(48, &knows_nothing, none), (0, 23, false));
        // What waits takes nothing of a budget.
        let two = PlanLimits { promoted: 2, ..none };
        assert_eq!(told(48, &history, two).0, 2);
    }

    /// Where it is much of what hosts ask for it is another load, and does not wait; a budget holds for it.
    #[test]
    fn another_load_does_not_wait() {
        let mut history = MoveHistory::new().with_gains();
        history.spend(&up(10), &settled(), 1000);
        let told = |others, limits| {
            let plan = planned_beside(others, 48, &history, limits);
            (plan.within_budget(TierName::Performance), plan.put_off.len(), plan.budget_spent)
        };
        let none = PlanLimits::none();
        // 360 of 7,330 I/Os are less than a twentieth; of 6,360 they are more.
        assert_eq!(told(7, none), (3, 20, false));
        assert_eq!(told(6, none), (23, 0, false));
        assert_eq!(told(6, PlanLimits { promoted: 10, ..none }).0, 10);
    }
}
