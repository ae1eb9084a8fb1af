//! Groups of extents that take turns by the day (10.3): what was moved up last is not what is asked for next.

use super::tests::Poisson;
use super::tierer::{Tierer, TiererSettings};
use crate::heat::HostIoKind;
use crate::optimizer::{PlanLimits, TierName};
use crate::random::Random;

/// Extents of a group, and of the tier.
const GROUP: u32 = 100;
/// Others, that are asked for all the time, a little.
const OTHERS: u32 = 200;
/// I/Os of an extent on a day of its group, from nine to five.
const PER_DAY: f64 = 1000.0;

/// What the tier served of a day's I/Os on the groups, and how much of it was moved up at the end of the day, 0 to 1.
#[derive(Debug, Clone, Copy)]
struct Day {
    share: f64,
    moved: f64,
}

/// Runs at the end of each day; `group`: which one is asked for on a day.
fn replay(groups: u32, days: u64, group: impl Fn(u64) -> u32) -> Vec<Day> {
    let extents = groups * GROUP + OTHERS;
    let mut tierer = Tierer::new(TiererSettings {
        extent_bytes: 1 << 20,
        performance_slots: GROUP,
        capacity_slots: extents,
        half_life_hours: 24.0,
        bar: None,
    });
    tierer.make_room(extents - 1);
    // The first group is written first, so the tier holds it.
    (0..extents).for_each(|extent| assert!(tierer.space.touch(extent).is_some()));
    let mut random = Random::new(5);
    let (hourly, others) = (Poisson::new(PER_DAY / 8.0), Poisson::new(0.1));
    let day = |day: u64| {
        let first = group(day) * GROUP;
        let (mut served, mut all) = (0, 0);
        for hour in 24 * day..24 * (day + 1) {
            tierer.heat.advance(hour);
            for extent in groups * GROUP..extents {
                tierer.heat.record_many(extent, HostIoKind::Read, others.draw(&mut random));
            }
            for extent in (first..first + GROUP).filter(|_| (9..17).contains(&(hour % 24))) {
                let count = hourly.draw(&mut random);
                tierer.heat.record_many(extent, HostIoKind::Read, count);
                let place = tierer.space.place(extent).expect("all are mapped");
                served += if place.tier == TierName::Performance { count } else { 0 };
                all += count;
            }
        }
        tierer.heat.advance(24 * (day + 1));
        let plan = tierer.plan(PlanLimits::none(), 1.0);
        tierer.begin_window(0);
        assert!(plan.moves.iter().all(|planned| tierer.make(planned)), "there is room");
        tierer.run_ended(&plan.moves);
        let moved = plan.count(TierName::Performance) as f64 / f64::from(GROUP);
        Day { share: served as f64 / all as f64, moved }
    };
    (0..days).map(day).collect()
}

/// The means of these days.
fn mean(days: &[Day]) -> Day {
    let of = |figure: fn(&Day) -> f64| days.iter().map(figure).sum::<f64>() / days.len() as f64;
    Day { share: of(|day| day.share), moved: of(|day| day.moved) }
}

#[test]
fn groups_that_take_turns_are_served_as_much_as_without_moves() {
    for (groups, settled) in [(2, 8), (3, 12), (5, 15)] {
        let days = replay(groups, settled + 30, |day| {
            u32::try_from(day % u64::from(groups)).expect("few")
        });
        let later = &days[plumb_units::convert::to_usize(settled)..];
        let found = mean(later);
        let told: Vec<String> =
            days.iter().map(|day| format!("{:.2}/{:.2}", day.share, day.moved)).collect();
        println!("{groups}: {found:.3?} {}", told.join(" "));
        assert!(found.share >= 1.0 / f64::from(groups) - 0.02, "{groups}: {found:?} {days:?}");
        let most = later.iter().map(|day| day.moved).fold(0.0, f64::max);
        assert!(most < 0.05, "{groups}: {most} in a day, {days:?}");
    }
}

/// What stops taking turns is followed again, once that has been seen for some days.
#[test]
fn who_takes_turns_no_more_is_moved_up() {
    for group in [0, 1] {
        let days =
            replay(
                2,
                28,
                |day| if day < 20 { u32::try_from(day % 2).expect("few") } else { group },
            );
        let found = mean(&days[24..]);
        let told: Vec<String> =
            days.iter().map(|day| format!("{:.2}/{:.2}", day.share, day.moved)).collect();
        println!("{group}: {found:.3?} {}", told.join(" "));
        assert!(found.share > 0.98, "{group}: {found:?} {days:?}");
    }
}

/// Groups that have five days each are followed on the first, as they were before any took turns.
#[test]
fn who_goes_on_for_days_takes_no_turns() {
    let days = replay(4, 40, |day| u32::try_from(day / 5 % 4).expect("few"));
    let found = mean(&days[5..]);
    println!("{found:.3?}");
    assert!(found.share > 0.79, "{found:?} {days:?}");
}
