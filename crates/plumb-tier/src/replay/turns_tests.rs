//! Groups of extents that take turns by the day (10.3): what was moved up last is not what is asked for next.

use super::days::{self, Ios, When};
use super::tests::Poisson;
use super::tierer::{Tierer, TiererSettings};
use crate::random::Random;

/// Extents of a group, and of the tier.
const GROUP: u32 = 100;
/// Others, that are asked for all the time, a little.
const OTHERS: u32 = 200;
/// I/Os of an extent on a day of its group, from nine to five.
const PER_DAY: f64 = 1000.0;

/// What the tier served of a day's I/Os on the groups, how much of it was moved up at the end of the day, 0 to 1, and how many extents were left out then because
/// they take turns.
#[derive(Debug, Clone, Copy)]
struct Day {
    share: f64,
    moved: f64,
    turns: u64,
}

/// Runs at the end of each day; `group`: which one is asked for on a day.
fn replay(groups: u32, count: u64, group: impl Fn(u64) -> u32) -> Vec<Day> {
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
    let law = |(hour, _): (u64, u64), ios: &mut Ios<'_>| {
        let first = group(hour / 24) * GROUP;
        for extent in groups * GROUP..extents {
            ios.beside(extent, others.draw(&mut random));
        }
        for extent in (first..first + GROUP).filter(|_| (9..17).contains(&(hour % 24))) {
            ios.come(extent, hourly.draw(&mut random));
        }
    };
    let day = |day: days::Day| {
        let (share, moved) = days::Day::of(&[day], GROUP);
        Day { share, moved: moved / 100.0, turns: day.turns }
    };
    days::replay(&mut tierer, (count, When::Every(24)), law).into_iter().map(day).collect()
}

/// The mean share of these days, and the most that was moved on one.
fn served(days: &[Day]) -> (f64, f64) {
    let sum: f64 = days.iter().map(|day| day.share).sum();
    (sum / days.len() as f64, days.iter().map(|day| day.moved).fold(0.0, f64::max))
}

fn told(days: &[Day]) -> String {
    let day = |day: &Day| format!("{:.2}/{:.2}/{}", day.share, day.moved, day.turns);
    days.iter().map(day).collect::<Vec<String>>().join(" ")
}

#[test]
fn groups_that_take_turns_are_served_as_much_as_without_moves() {
    for (groups, found_by) in [(2, 8), (3, 12), (5, 15)] {
        let group = |day: u64| u32::try_from(day % u64::from(groups)).expect("few");
        let days = replay(groups, found_by + 30, group);
        println!("{groups}: {}", told(&days));
        let (share, most) = served(&days[plumb_units::convert::to_usize(found_by)..]);
        let never = 1.0 / f64::from(groups);
        assert!(share >= never - 0.02 && most < 0.05, "{groups}: {share} {most} {}", told(&days));
    }
}

/// Who stops taking turns is swapped like others again, once that has been seen for some days.
#[test]
fn who_takes_turns_no_more_is_like_others() {
    for last in [0, 1] {
        let group = |day| if day < 20 { u32::try_from(day % 2).expect("few") } else { last };
        let days = replay(2, 30, group);
        println!("{last}: {}", told(&days));
        assert!(days[12..20].iter().any(|day| day.turns > 0), "{last}: {}", told(&days));
        assert!(days[23..].iter().all(|day| day.turns == 0), "{last}: {}", told(&days));
        assert!(served(&days[26..]).0 > 0.98, "{last}: {}", told(&days));
    }
}
