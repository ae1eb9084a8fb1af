//! Swaps by how much chance makes of the two extents concerned.

use super::*;
use crate::heat::{HeatMap, HeatSettings, HostIoKind, Lies};
use crate::random::Random;

const EXTENTS: u32 = 400;
/// On the Performance tier: the first so many.
const TIER: u32 = 100;

struct Disk;

impl Placement for Disk {
    fn extents(&self) -> u32 {
        EXTENTS
    }

    fn tier(&self, extent: u32) -> Option<TierName> {
        Some(if extent < TIER { TierName::Performance } else { TierName::Capacity })
    }
}

/// Whether an extent gets its 64 I/Os a day 64 at a time.
fn is_bunched(extent: u32) -> bool {
    extent.is_multiple_of(4)
}

/// Six days in which most extents get 64 I/Os a day; the last twenty of the tier get two, and the last twenty below get 240, one by one.
fn heat() -> HeatMap {
    let mut map = HeatMap::new(HeatSettings::new(EXTENTS));
    let mut random = Random::new(8);
    for hour in 0..144 {
        if hour > 0 && hour % 24 == 0 {
            map.begin_window();
        }
        map.advance(hour);
        for extent in 0..EXTENTS {
            let mut some = |chances: u64, odds: u64| -> u64 {
                (0..chances).map(|_| u64::from(random.one_in(odds))).sum()
            };
            let count = match extent {
                80..100 => some(1, 12),
                380.. => some(30, 3),
                // Of two in hours that follow each other hours see nothing.
                extent if is_bunched(extent) => 64 * some(1 - hour % 2, 12),
                _ => some(8, 3),
            };
            map.record_many(extent, HostIoKind::Read, count);
        }
    }
    map.advance(144);
    map
}

/// Between the hottest below and the coldest above lie those that have had bunches of late and none: they step aside, and stay where they are.
#[test]
fn who_varies_by_chance_stands_in_nobodys_way() {
    let heat = heat();
    let bar = Bar::reference(&heat);
    let plan = plan(&PlanRequest {
        heat: &heat,
        placement: &Disk,
        pins: &PinTable::new(1 << 20),
        history: &MoveHistory::new(),
        room: Room { performance_slots: TIER.into(), capacity_free: 100, reserve: 0 },
        bar,
        limits: PlanLimits::none(),
    });
    let forecast = heat.forecast(|extent| extent < TIER);
    let sure = |moved: &Move, lies| {
        let dispersion = forecast.chances().of(moved.extent, moved.score, lies);
        Sure { score: moved.score, dispersion }
    };
    let mut up: Vec<u32> = Vec::new();
    for pair in plan.moves.chunks(2) {
        let [down, hot] = pair else { panic!("the tier is full: {pair:?}") };
        let gain = hot.score - down.score;
        let both = [sure(hot, Lies::Slow), sure(down, Lies::Fast)];
        let least = bar.over(both[0], both[1]);
        assert!(gain >= least, "{pair:?}, {both:?}: {gain}, not {least}");
        assert!(hot.extent >= 380, "{pair:?}, {both:?}");
        up.push(hot.extent);
    }
    // What is no surer than that waits for its turn.
    up.extend(&plan.put_off);
    up.sort_unstable();
    assert_eq!(up, (380..EXTENTS).collect::<Vec<_>>());
    // By what all have in common somebody moves who had a bunch.
    let coldest = (0..TIER).map(|extent| heat.extent(extent).score).fold(f32::MAX, f32::min);
    let bunched = (TIER..380).filter(|extent| is_bunched(*extent));
    let hottest = bunched.map(|extent| heat.extent(extent).score).fold(0.0, f32::max);
    let alike = |score| Sure { score, dispersion: heat.dispersion() };
    assert!(hottest - coldest > bar.over(alike(hottest), alike(coldest)));
}
