//! What the first days' plans make of a load of which some extents get their I/Os all the time, and others many at once and then none for days: who is hot all
//! the time goes on to have a place (docs/decisions/0362-bunches-on-the-first-days.md).

use super::days::{self, Day, Ios, RUNS, When};
use super::tests::Poisson;
use crate::random::Random;

const EXTENTS: u32 = 5120;
const TIER: u32 = 512;
/// They are written first, so they lie on the Performance tier.
const STEADY: u32 = 400;

/// The others get their I/Os within an hour, so many at a time, as often in a day.
fn replay((per_day, at_once): (f64, f64), when: When, seed: u64) -> (Vec<Day>, f64) {
    let mut tierer = days::written(EXTENTS, TIER);
    let mut random = Random::new(seed);
    let slices = when.slices();
    let begins = Poisson::new(per_day / 24.0 / slices as f64);
    let part = Poisson::new(at_once / slices as f64);
    let single = Poisson::new(200.0 / 24.0 / slices as f64);
    let mut ends = vec![0; plumb_units::convert::index(EXTENTS)];
    // I/Os that the tier would serve if nothing moved, and all.
    let mut still = [0.0; 2];
    let law = |(_, now): (u64, u64), ios: &mut Ios<'_>| {
        for (extent, end) in (0..EXTENTS).zip(&mut ends) {
            if extent >= STEADY && begins.draw(&mut random) > 0 {
                *end = now + slices;
            }
            let count = match extent {
                0..STEADY => single.draw(&mut random),
                _ if *end > now => part.draw(&mut random),
                _ => 0,
            };
            ios.come(extent, count);
            still[0] += if extent < TIER { count as f64 } else { 0.0 };
            still[1] += count as f64;
        }
    };
    let days = days::replay(&mut tierer, (10, when), law);
    (days, still[0] / still[1])
}

fn check(load: (f64, f64), least: [f64; 3]) {
    for (when, least) in RUNS.into_iter().zip(least) {
        let (found, still) = replay(load, when, 1);
        let served = Day::of(&found[2..], TIER).0;
        let first: u64 = found[..2].iter().map(|day| day.up).sum();
        println!(
            "{load:?}, {when:?}: {served:.3} served, {still:.3} if nothing moves, {first} moved on the first days"
        );
        assert!(served >= least * still, "{load:?}, {when:?}: {served} served, {still} is there");
    }
}

/// As much of it as would be served if nothing moved, nearly; in continuous mode, whose plans see the first part of a bunch, two thirds.
#[test]
fn what_is_asked_for_all_the_time_keeps_its_place_beside_bunches() {
    check((0.1, 600.0), [0.95, 0.98, 0.5]);
    check((0.05, 2000.0), [0.98, 0.9, 0.5]);
}
