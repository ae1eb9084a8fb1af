//! Loads that look as if they changed and do not: extents that get their I/Os together, as those of a file do, and seldom. What swaps went on to gain tells them
//! from loads that change (docs/decisions/0358-what-swaps-went-on-to-gain.md).

use plumb_units::convert::to_usize;

use super::days::{self, Day, Ios, RUNS, When};
use super::tests::Poisson;
use crate::random::Random;

/// Of which a tenth has room on the Performance tier, where nothing else is said.
const EXTENTS: u32 = 5120;
const TIER: u32 = 512;
/// Files of a space of twice as many.
const LARGE: u32 = 40;

/// Files, all alike.
#[derive(Debug, Clone, Copy)]
struct Files {
    /// Extents of each.
    extents: u32,
    /// How often an hour comes, or some, in which they are asked for: in a day, each file.
    per_day: f64,
    /// So many hours then.
    hours: u64,
    /// I/Os on each of their extents in all of them.
    ios: f64,
    /// And in a day, one by one, at any time.
    beside: f64,
    /// So far is one of its extents from the next.
    apart: u32,
}

impl Files {
    /// All extents, and those of the Performance tier.
    fn space(&self) -> (u32, u32) {
        let times = if self.extents == 256 { LARGE * 256 / EXTENTS } else { 1 };
        (EXTENTS * times, TIER * times)
    }
}

/// A space of files, and the means of each extent's I/Os in an hour that come on top, by the hour and the extent.
fn replay(
    files: Files,
    (days, when): (u64, When),
    seed: u64,
    more: impl Fn(u64, u32) -> f64,
) -> Vec<Day> {
    let (all, tier) = files.space();
    let mut tierer = days::written(all, tier);
    let mut random = Random::new(seed);
    let slices = when.slices();
    let begins = Poisson::new(files.per_day / 24.0 / slices as f64);
    let part = Poisson::new(files.ios / (files.hours * slices) as f64);
    let single = files.beside / 24.0 / slices as f64;
    let mut ends = vec![0; to_usize(u64::from(all / files.extents))];
    let law = |(hour, now): (u64, u64), ios: &mut Ios<'_>| {
        for (file, end) in (0..).zip(&mut ends) {
            if begins.draw(&mut random) > 0 {
                *end = now + files.hours * slices;
            }
            let first = if files.apart > 1 { file } else { file * files.extents };
            for extent in
                (first..).step_by(to_usize(files.apart.into())).take(to_usize(files.extents.into()))
            {
                let count = if *end > now { part.draw(&mut random) } else { 0 };
                let mean = single + more(hour, extent) / slices as f64;
                ios.come(extent, count + Poisson::new(mean).draw(&mut random));
            }
        }
    };
    days::replay(&mut tierer, (days, when), law)
}

/// Percent of the tier on each day.
fn moved(days: &[Day], tier: u32) -> String {
    let percent = |day: &Day| format!("{:.1}", 100.0 * day.up as f64 / f64::from(tier));
    days.iter().map(percent).collect::<Vec<String>>().join(" ")
}

/// Section 25: from the third day on (0231) 1 % of the tier in a day, in the mean. A day may have what the one before has left.
fn check(files: Files, days: u64) {
    let (_, tier) = files.space();
    for (when, seed) in RUNS.into_iter().flat_map(|when| (1..=2).map(move |seed| (when, seed))) {
        let found = replay(files, (days, when), seed, |_, _| 0.0);
        // In continuous mode a large file that comes again is luck of all times at which it was chosen, on single days (0361): there the third and fourth day count.
        let end = match when {
            When::Quarters if files.extents == 256 => 4,
            _ => found.len(),
        };
        let (later, all) = (&found[2..end], moved(&found, tier));
        let mean = Day::of(later, tier).1;
        println!("{files:?}, {when:?}: {mean:.2} in the mean, {all}");
        assert!(mean <= 1.0, "{files:?}, {when:?}: {mean:.2} in the mean, {all}");
        let most = later.iter().map(|day| day.up).max().expect("some days");
        assert!(50 * most <= u64::from(tier), "{files:?}, {when:?}: {all}");
    }
}

#[test]
fn files_that_are_asked_for_seldom_move_one_percent_a_day_at_most() {
    for (extents, per_day, ios, beside) in [
        (64, 0.1, 600.0, 0.0),
        (64, 0.2, 300.0, 0.0),
        (16, 0.2, 1024.0, 0.0),
        (8, 0.05, 1000.0, 5.0),
        (32, 0.05, 1000.0, 5.0),
    ] {
        check(Files { extents, per_day, hours: 1, ios, beside, apart: 1 }, 14);
    }
}

/// Few and large ones, whose extents are neighbours, or as far apart as there are files: what comes to one of them once more is luck of all its extents (0361).
#[test]
fn nor_do_few_large_files_whose_extents_lie_anywhere() {
    for apart in [1, LARGE] {
        let (extents, per_day, ios) = (256, 0.1, 300.0);
        check(Files { extents, per_day, hours: 1, ios, beside: 0.0, apart }, 10);
    }
}

#[test]
fn nor_do_sessions_of_hours_once_in_many_days() {
    for (extents, per_day, hours, ios) in
        [(1, 0.1, 3, 600.0), (1, 0.2, 2, 300.0), (1, 0.06, 5, 1000.0), (8, 0.1, 3, 600.0)]
    {
        check(Files { extents, per_day, hours, ios, beside: 0.0, apart: 1 }, 16);
    }
}

/// What begins to be hot beside such files is followed all the same, whatever is known of swaps by then: within a week by daily runs.
#[test]
fn a_load_that_begins_beside_them_is_followed() {
    let files = Files { extents: 32, per_day: 0.1, hours: 1, ios: 300.0, beside: 1.0, apart: 1 };
    for when in RUNS {
        // A tenth, strewn over all files, so that nobody has it on the tier.
        let more = |hour, extent| if hour >= 144 && extent % 10 == 3 { 10.0 } else { 0.0 };
        let mut served = 0.0;
        for seed in 1..=2 {
            let found = replay(files, (18, when), seed, more);
            let share = Day::of(&found[16..], TIER).0;
            println!("{when:?}: {share:.3} served, {}", moved(&found, TIER));
            served += share / 2.0;
        }
        // Of 31 I/Os a day, and 240 of each of a tenth of the extents: 24 of 55, where no file has been in their way of late.
        assert!(served >= 0.385, "{when:?}: {served:.3} served");
    }
}
