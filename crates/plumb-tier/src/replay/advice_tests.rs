//! Advice to optimize more often is for loads that wander, not for those whose I/Os come in bunches (section 11).

use super::tests::Poisson;
use super::tierer::{Served, Tierer, TiererSettings};
use crate::heat::HostIoKind;
use crate::optimizer::{PlanLimits, TierName};
use crate::random::Random;
use crate::tier_report::{MoveFigures, WindowBytes};

const EXTENTS: u32 = 2000;
const TIER: u32 = 200;
const DAYS: u64 = 7;
const MORE: &str = "optimize more often";

#[derive(Debug, Clone, Copy)]
enum Law {
    Uniform,
    Zipf,
    /// A tenth takes 90 %.
    HotCold,
}

impl Law {
    fn weight(self, rank: u32) -> f64 {
        match self {
            Self::Uniform => 1.0,
            Self::Zipf => f64::from(rank + 1).powf(-0.99),
            Self::HotCold if rank < EXTENTS / 10 => 81.0,
            Self::HotCold => 1.0,
        }
    }
}

/// A load: I/Os per extent and day, what each takes by rank, percent of the extents whose I/Os come so many at once, and in a thousand of those that change place in an hour.
#[derive(Debug, Clone, Copy)]
struct Load {
    per_day: f64,
    law: Law,
    bunched: (u64, u64),
    wanders: u64,
}

/// What the report advises on each window from the second on, which the runs every so many hours end.
fn advised(load: Load, every: u64) -> Vec<String> {
    let mut tierer = Tierer::new(TiererSettings {
        extent_bytes: 1 << 20,
        performance_slots: TIER,
        capacity_slots: EXTENTS,
        half_life_hours: 24.0,
        bar: None,
    });
    tierer.make_room(EXTENTS - 1);
    let mut random = Random::new(3);
    let mut places: Vec<u32> = (0..EXTENTS).collect();
    shuffle(&mut places, &mut random);
    (0..EXTENTS).for_each(|extent| assert!(tierer.space.touch(extent).is_some()));
    let (percent, most) = load.bunched;
    let mut bunch = |_| if random.below(100) < percent { most } else { 1 };
    let bunches: Vec<u64> = (0..EXTENTS).map(&mut bunch).collect();
    let weights: Vec<f64> = (0..EXTENTS).map(|rank| load.law.weight(rank)).collect();
    let hourly = load.per_day * f64::from(EXTENTS) / 24.0 / weights.iter().sum::<f64>();
    let law = |(weight, bunch): (&f64, &u64)| Poisson::new(weight * hourly / *bunch as f64);
    let laws: Vec<Poisson> = weights.iter().zip(&bunches).map(law).collect();
    let (mut served, mut advised) = (Served::default(), Vec::new());
    for hour in 0..24 * DAYS {
        tierer.heat.advance(hour);
        for ((place, law), bunch) in places.iter().zip(&laws).zip(&bunches) {
            let count = bunch * law.draw(&mut random);
            tierer.heat.record_many(*place, HostIoKind::Read, count);
            match tierer.space.place(*place).expect("all are mapped").tier {
                TierName::Performance => served.performance += count,
                TierName::Capacity => served.capacity += count,
            }
        }
        // Who changes place does so with the next one that does.
        let mut changed: Vec<usize> =
            (0..places.len()).filter(|_| random.below(1000) < load.wanders).collect();
        shuffle(&mut changed, &mut random);
        changed.windows(2).for_each(|pair| places.swap(pair[0], pair[1]));
        if !(hour + 1).is_multiple_of(every) {
            continue;
        }
        tierer.heat.advance(hour + 1);
        let plan = tierer.plan(PlanLimits::none(), 1.0);
        let hours = ((hour + 1 - every) as f64, (hour + 1) as f64);
        let (moves, bytes) = (MoveFigures::default(), WindowBytes::default());
        let report = tierer.report(&plan, &served, moves, (hours, bytes));
        if hour >= every {
            advised.push(report.advice.suggestions.join("; "));
        }
        served = Served::default();
        tierer.begin_window(0, &plan);
        assert!(plan.moves.iter().all(|planned| tierer.make(planned)), "there is room");
        tierer.run_ended(&plan.moves);
    }
    advised
}

fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for nth in (1..all.len()).rev() {
        all.swap(
            nth,
            plumb_units::convert::to_usize(random.below(plumb_units::convert::to_u64(nth + 1))),
        );
    }
}

/// Whose I/Os come by chance look hot by hindsight, and the placement that would have served them serves no more next time.
#[test]
fn nobody_is_told_to_optimize_more_often_for_what_is_chance() {
    for (law, bunched) in [
        (Law::Uniform, (100, 1)),
        (Law::Uniform, (20, 16)),
        (Law::Uniform, (40, 64)),
        (Law::Uniform, (100, 64)),
        (Law::Zipf, (40, 64)),
    ] {
        for every in [6, 24] {
            let load = Load { per_day: 64.0, law, bunched, wanders: 0 };
            let found = advised(load, every);
            let more = found.iter().any(|said| said.contains(MORE));
            assert!(!more, "{load:?} every {every} h: {found:#?}");
        }
    }
}

/// Whose hot spots wander has them again sooner. That is said as soon as the plan can tell, on the third day; later on these extents go back and forth,
/// which is said instead.
#[test]
fn who_wanders_is_told_to_optimize_more_often() {
    for bunched in [(100, 1), (20, 16)] {
        let load = Load { per_day: 1200.0, law: Law::HotCold, bunched, wanders: 10 };
        let found = advised(load, 24);
        assert!(!found[0].contains(MORE) && found[1].contains(MORE), "{load:?}: {found:#?}");
    }
}

/// What the report on each day says, and what it served, where 160 of 2,000 extents are asked for at a time, from nine to five, five days each, so little that chance may be
/// the reason; the tier holds 140.
fn of_projects() -> Vec<(f64, String)> {
    let mut tierer = Tierer::new(TiererSettings {
        extent_bytes: 1 << 20,
        performance_slots: 140,
        capacity_slots: EXTENTS,
        half_life_hours: 24.0,
        bar: None,
    });
    tierer.make_room(EXTENTS - 1);
    (0..EXTENTS).for_each(|extent| assert!(tierer.space.touch(extent).is_some()));
    let (mut random, law) = (Random::new(4), Poisson::new(60.0 / 8.0));
    let mut told = Vec::new();
    for day in 0..20 {
        let first = u32::try_from(day / 5).expect("few") * 160 + 200;
        let mut served = Served::default();
        for hour in 24 * day..24 * (day + 1) {
            tierer.heat.advance(hour);
            for extent in (first..first + 160).filter(|_| (9..17).contains(&(hour % 24))) {
                let count = law.draw(&mut random);
                tierer.heat.record_many(extent, HostIoKind::Read, count);
                match tierer.space.place(extent).expect("all are mapped").tier {
                    TierName::Performance => served.performance += count,
                    TierName::Capacity => served.capacity += count,
                }
            }
        }
        tierer.heat.advance(24 * (day + 1));
        let plan = tierer.plan(PlanLimits::none(), 1.0);
        let hours = (24.0 * day as f64, 24.0 * (day + 1) as f64);
        let (moves, bytes) = (MoveFigures::default(), WindowBytes::default());
        let report = tierer.report(&plan, &served, moves, (hours, bytes));
        told.push((served.share().expect("I/Os"), report.advice.suggestions.join("; ")));
        tierer.begin_window(0, &plan);
        assert!(plan.moves.iter().all(|planned| tierer.make(planned)), "there is room");
        tierer.run_ended(&plan.moves);
    }
    told
}

/// The tier serves 89 % when those are on it that are asked for: what is told while they wait is that they do, and not that it is too small or gains are.
#[test]
fn nobody_is_told_to_grow_a_tier_for_what_only_waits() {
    let told = of_projects();
    told.iter().enumerate().for_each(|(day, (share, said))| println!("{day}: {share:.3} {said}"));
    let late: Vec<&String> =
        told.iter().skip(3).filter(|day| day.0 < 0.8).map(|day| &day.1).collect();
    let waits = late.iter().filter(|said| said.contains("wait: ")).count();
    assert!(waits > 0, "{late:#?}");
    for said in late {
        assert!(!said.contains("too few I/Os"), "{said}");
        assert!(!said.contains("wait: ") || !said.contains("grow"), "{said}");
    }
}
