//! Loads with few I/Os for each extent, whose hot extents begin or change when a space has been optimized for days: they are followed,
//! though a day's I/Os of an extent tell little of it (docs/decisions/0344-what-is-known-to-last.md).

use plumb_units::convert::index;

use super::days::{self, Day, Ios, When};
use super::tests::Poisson;
use super::tierer::{Tierer, TiererSettings};
use crate::heat::HostIoKind;
use crate::random::Random;

const EXTENTS: u32 = 2000;
const TIER: u32 = 200;

/// Days of a space that has been written in order, and what a law makes of an hour: the mean of an extent's I/Os in it. Share that the tier serves from a
/// day on, and the extents moved up since then, in percent of the tier per day.
fn replay(
    (extents, tier): (u32, u32),
    (from, days): (u64, u64),
    when: When,
    mut law: impl FnMut(u64, u32, &mut Random) -> f64,
) -> (f64, f64) {
    let mut tierer = Tierer::new(TiererSettings {
        extent_bytes: 1 << 20,
        performance_slots: tier,
        capacity_slots: extents,
        half_life_hours: 24.0,
        bar: None,
    });
    tierer.make_room(extents - 1);
    for extent in 0..extents {
        tierer.heat.record_many(extent, HostIoKind::Write, 1);
        assert!(tierer.space.touch(extent).is_some());
    }
    let mut random = Random::new(3);
    let part = 1.0 / when.slices() as f64;
    let law = |(hour, _): (u64, u64), ios: &mut Ios<'_>| {
        for extent in 0..extents {
            let mean = law(hour, extent, &mut random);
            ios.come(extent, Poisson::new(part * mean).draw(&mut random));
        }
    };
    let found = days::replay(&mut tierer, (days, when), law);
    Day::of(&found[plumb_units::convert::to_usize(from)..], tier)
}

/// A tenth of the extents has 27 I/Os a day each, the others a third of one: strewn, for what was written first is on the tier.
fn hot_or_cold(extent: u32, turn: u32) -> f64 {
    if extent % 10 == 9 - turn { 27.0 / 24.0 } else { 0.33 / 24.0 }
}

fn check(what: &str, when: When, (share, moved): (f64, f64), least: f64) {
    println!("{what}, {when:?}: {share:.3} served, {moved:.1} % of the tier moved per day");
    assert!(share >= least, "{what}, {when:?}: {share:.3} served, to be {least}");
}

const DAILY: When = When::Every(24);
const SIX_HOURS: When = When::Every(6);

/// The space is optimized all along: the days in which there was no load are not those in which extents are put where they belong.
#[test]
fn a_load_that_begins_on_the_fifth_day_is_placed_on_the_sixth() {
    for when in [DAILY, SIX_HOURS, When::Quarters] {
        let law = |hour, extent, _: &mut Random| match hour {
            0..96 => 0.0,
            _ => hot_or_cold(extent, 0),
        };
        check("from day 5 on", when, replay((EXTENTS, TIER), (5, 8), when, law), 0.87);
    }
}

/// Nobody below was ever as hot as those that are now, so what became of the others tells nothing of them.
#[test]
fn hot_extents_that_change_place_on_the_seventh_day_are_followed_by_the_tenth() {
    for when in [DAILY, SIX_HOURS, When::Quarters] {
        let law = |hour, extent, _: &mut Random| hot_or_cold(extent, u32::from(hour >= 144));
        check("others from day 7 on", when, replay((EXTENTS, TIER), (9, 10), when, law), 0.8);
    }
}

/// Section 25, of what changes nothing: all extents are alike, and each gets a thousand I/Os within an hour twice a day. A plan every fifteen minutes sees one
/// such bunch at a time, more than ten deviations of what chance was found to be; from the sixth day on it is known that they do not last.
#[test]
fn bunches_of_a_thousand_are_known_for_what_they_are() {
    for when in [DAILY, When::Quarters] {
        let law = |_, _, random: &mut Random| if random.below(12) == 0 { 1024.0 } else { 0.0 };
        let (share, moved) = replay((EXTENTS, TIER), (6, 9), when, law);
        println!("bunches of a thousand, {when:?}: {share:.3} served, {moved:.2} % moved per day");
        assert!(moved <= 1.0, "{when:?}: {moved} % of the tier per day");
    }
}

/// Extents of a project, and of how many of 100 there are I/Os at a time, for so many days each.
const PROJECT: u32 = 20;
const ACTIVE: u32 = 8;
const LASTS: u64 = 5;

/// Whether there are I/Os on an extent's project on that day.
fn is_active(extent: u32, day: u64) -> bool {
    (0..ACTIVE).any(|nth| {
        let turn = (day + u64::from(nth) % LASTS) / LASTS;
        let project = (turn * u64::from(ACTIVE) + u64::from(nth)) * 37 % 100;
        u64::from(extent / PROJECT) == project
    })
}

/// From nine to five: some 60 I/Os for each extent of a project on a day, half as many on some and half more on others, one on each of the rest. Hours and days
/// differ too far for a day to tell anything, but who is asked for today was the last times, too, on the day after tomorrow.
#[test]
fn projects_of_some_days_are_followed() {
    for (when, least) in [(DAILY, 0.58), (SIX_HOURS, 0.6), (When::Quarters, 0.65)] {
        let (mut today, mut factors) = (u64::MAX, vec![0.0; index(EXTENTS)]);
        let law = |hour: u64, extent: u32, random: &mut Random| {
            if today != hour / 24 {
                today = hour / 24;
                let factor = |_: &f64| 0.5 + random.below(1 << 20) as f64 / f64::from(1 << 20);
                factors = factors.iter().map(factor).collect();
            }
            let is_on = (9..17).contains(&(hour % 24)) && is_active(extent, hour / 24);
            let project = if is_on { 60.0 / 8.0 * factors[index(extent)] } else { 0.0 };
            project + 1.0 / 24.0
        };
        check("projects", when, replay((EXTENTS, TIER), (8, 20), when, law), least);
    }
}

/// A tenth that takes nine tenths of the I/Os, 97 a day for each extent, and moves on by two extents in an hour: each is hot for 100 hours.
#[test]
fn a_hot_spot_that_moves_on_is_followed() {
    for (when, least) in [(DAILY, 0.45), (SIX_HOURS, 0.58), (When::Quarters, 0.58)] {
        let law = |hour: u64, extent: u32, _: &mut Random| {
            let from = u32::try_from(2 * hour % u64::from(EXTENTS)).expect("an extent");
            let is_hot = (extent + EXTENTS - from) % EXTENTS < TIER;
            if is_hot { 97.0 / 24.0 } else { 1.2 / 24.0 }
        };
        check("a hot spot that moves", when, replay((EXTENTS, TIER), (9, 14), when, law), least);
    }
}
