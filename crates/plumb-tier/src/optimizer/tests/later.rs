//! Properties of plans of the third day and later: windows over days have ended, chance has a ration, and what became of extents is known (10.2, 10.3).

use super::*;
use crate::heat::{Forecast, Lies};
use crate::optimizer::plan::{ANOTHER_LOAD, DEVIATIONS_LATER};

/// Extents that hold the tier beside those that may move: pinned there, so that a ration is of more than one.
const HELD: u32 = 500;

/// A case as [`random_case`] makes them, two days or more later, with a ration that is used up in part. The first so many extents may move.
fn later_case(random: &mut Random) -> (Case, u32) {
    let mut case = random_case(random);
    let free = case.disk.extents();
    let held = if random.one_in(4) { 0 } else { HELD };
    let mut heat = HeatMap::new(HeatSettings::new(free + held));
    case.disk.0.extend((0..held).map(|_| Some(TierName::Performance)));
    case.room.performance_slots += u64::from(held);
    if held > 0 {
        let (start, len) = (u64::from(free) * EXTENT, u64::from(held) * EXTENT);
        case.pins.set(start, len, TierName::Performance).expect("a range");
    }
    // The days are those of a load.
    let last = free + held - 1;
    (last.saturating_sub(8)..=last)
        .for_each(|extent| heat.record_many(extent, HostIoKind::Read, 9));
    let days = 2 + random.below(3);
    for day in 0..=days {
        heat.advance(24 * day);
        let tier = |extent| Some(case.disk.tier(extent)? == TierName::Performance);
        heat.begin_window_of(tier);
    }
    assert!(heat.is_settled());
    heat.advance(24 * days + random.below(24));
    let others = random.below(12);
    for extent in 0..free + held {
        let count = if extent < free { case.heat.extent(extent).ios() } else { others };
        heat.record_many(extent, HostIoKind::Read, count);
    }
    case.bar = Bar {
        break_even: random.below(20) as f32,
        hysteresis: 0.25,
        deviations: 0.5 + random.below(50) as f32 / 10.0,
        raised: 1.0 + random.below(2) as f32,
    };
    // Whether what looks sure is.
    case.history = case.history.with_gains();
    let used = u32::try_from(random.below(8)).expect("few");
    let before: Vec<Move> = (0..used).map(|nth| made(nth, TierName::Performance)).collect();
    case.history.spend(&before, &heat, case.room.performance_slots);
    case.heat = heat;
    (case, free)
}

/// What a plan goes by, and what is true of it in whatever case.
struct Known<'a> {
    case: &'a Case,
    forecast: Forecast<'a>,
}

impl<'a> Known<'a> {
    fn of(case: &'a Case) -> Self {
        let fast = |extent| case.disk.tier(extent) == Some(TierName::Performance);
        Self { case, forecast: case.heat.forecast(fast) }
    }

    fn score(&self, extent: u32) -> f32 {
        self.forecast.extent(extent).score
    }

    fn ios(&self, extent: u32) -> u64 {
        self.forecast.extent(extent).ios()
    }

    fn sure(&self, extent: u32, lies: Lies) -> Sure {
        let score = self.score(extent);
        Sure { score, dispersion: self.forecast.chances().of(extent, score, lies) }
    }

    fn clears(&self, (down, up): (u32, u32)) -> bool {
        let (hot, victim) = (self.sure(up, Lies::Slow), self.sure(down, Lies::Fast));
        hot.score > victim.score && hot.score - victim.score >= self.case.bar.over(hot, victim)
    }

    /// Whether chance is no reason for what a swap gains.
    fn is_sure(&self, (down, up): (u32, u32)) -> bool {
        let bar = &self.case.bar;
        let at_most = |extent, lies| {
            let dispersion = self.forecast.chances().at_most(extent, self.score(extent), lies);
            Sure { dispersion, ..self.sure(extent, lies) }
        };
        bar.is_beyond(at_most(up, Lies::Slow), at_most(down, Lies::Fast), 2.0)
    }

    /// Whether extents like these have gone on to be so different; `None` where nothing is known of it.
    fn lasts(&self, (down, up): (u32, u32)) -> Option<bool> {
        let (later, bar) = (self.forecast.later(), &self.case.bar);
        let hot = later.of(self.score(up), Lies::Slow)?;
        let victim = later.of(self.score(down), Lies::Fast)?;
        let pays = bar.break_even.max(bar.hysteresis * victim.score);
        let off = DEVIATIONS_LATER * (hot.variance + victim.variance).sqrt();
        Some(hot.score - victim.score >= pays + off)
    }

    /// The tiers after these moves: each extent moves once, from where it is.
    fn after(&self, moves: &[Move]) -> Vec<Option<TierName>> {
        let mut tiers = self.case.disk.0.clone();
        let mut seen = std::collections::BTreeSet::new();
        for made in moves {
            let tier = &mut tiers[plumb_units::convert::index(made.extent)];
            assert!(*tier == Some(made.to.other()) && seen.insert(made.extent), "{moves:?}");
            *tier = Some(made.to);
        }
        let is_fast = |tier: &&Option<TierName>| **tier == Some(TierName::Performance);
        let used = plumb_units::convert::to_u64(tiers.iter().filter(is_fast).count());
        assert!(used <= self.case.room.performance_slots, "{moves:?}");
        tiers
    }

    /// Who makes room for whom for its heat; every one of them clears the bar, and nobody leaves for nothing.
    fn swaps(&self, planned: &Plan) -> Vec<(u32, u32)> {
        let (mut down, mut pairs) = (None, Vec::new());
        for made in planned.moves.iter().filter(|made| made.reason == MoveReason::Heat) {
            match made.to {
                TierName::Capacity => assert_eq!(down.replace(made.extent), None),
                TierName::Performance => pairs.extend(down.take().map(|down| (down, made.extent))),
            }
        }
        assert_eq!(down, None, "{:?}", planned.moves);
        assert!(pairs.iter().all(|pair| self.clears(*pair)), "{pairs:?}");
        pairs
    }

    /// No more than the ration is swapped that chance may be the reason of, unless it is another load; what waits is less than that, and finds no ration.
    /// How many wait, and whether it was another load.
    fn check_ration(&self, planned: &Plan) -> (usize, bool) {
        let Case { history, heat, room, .. } = self.case;
        let left = history.ration().left(heat, room.performance_slots);
        let swaps = self.swaps(planned);
        let unsure: Vec<&(u32, u32)> = swaps.iter().filter(|pair| !self.is_sure(**pair)).collect();
        let count = plumb_units::convert::to_u64(unsure.len());
        let gain: u64 =
            unsure.iter().map(|pair| self.ios(pair.1).saturating_sub(self.ios(pair.0))).sum();
        let is_other = count > left;
        assert!(!is_other || gain >= planned.ios / ANOTHER_LOAD, "{count} of {left}: {gain}");
        let waits = !planned.put_off.is_empty();
        assert!(!waits || plumb_units::convert::to_u64(swaps.len()) >= left, "{planned:?}");
        // A window of a few hours tells no other load.
        let tells = self.case.heat.window_hours().is_some_and(|hours| hours >= 6);
        assert!(
            !waits || !tells || planned.put_off_ios < planned.ios / ANOTHER_LOAD,
            "{planned:?}"
        );
        (planned.put_off.len(), is_other)
    }

    /// What that set of the extents that may move wins over the tier as it is, if each of its swaps clears the bar; free places go to the hottest.
    fn gain(&self, (before, set): (u32, u32), free: usize) -> Option<f32> {
        let chosen = |bits: u32| (0..32).filter(move |extent| bits >> extent & 1 == 1);
        let mut up: Vec<u32> = chosen(set & !before).collect();
        let mut down: Vec<u32> = chosen(before & !set).collect();
        up.sort_by(|one, other| self.score(*other).total_cmp(&self.score(*one)));
        down.sort_by(|one, other| self.score(*one).total_cmp(&self.score(*other)));
        let filled = up.len().checked_sub(down.len()).filter(|filled| *filled <= free)?;
        let least = self.case.bar.for_free();
        let pays = up[..filled].iter().all(|extent| self.score(*extent) >= least);
        let swapped = down.iter().copied().zip(up[filled..].iter().copied());
        let sum = |all: &[u32]| all.iter().map(|extent| self.score(*extent)).sum::<f32>();
        (pays && swapped.into_iter().all(|pair| self.clears(pair))).then(|| sum(&up) - sum(&down))
    }
}

/// The objective of 10.1 on later days: what waits is all that is missed.
#[test]
fn no_placement_is_better_by_more_than_what_is_put_off() {
    let mut random = Random::new(51);
    let (mut waited, mut others) = (0, 0);
    for _ in 0..2000 {
        let (case, count) = later_case(&mut random);
        let (known, planned) = (Known::of(&case), case.plan());
        let (waits, is_other) = known.check_ration(&planned);
        (waited, others) = (waited + u32::from(waits > 0), others + u32::from(is_other));
        let bits_of =
            |tiers: &[Option<TierName>]| bits(&tiers[..plumb_units::convert::index(count)]);
        let before = bits_of(&case.disk.0);
        let mapped = (0..count).filter(|extent| case.disk.tier(*extent).is_some());
        let mapped: u32 = mapped.map(|extent| 1 << extent).sum();
        let used = case.disk.0.iter().filter(|tier| **tier == Some(TierName::Performance)).count();
        let free = plumb_units::convert::to_usize(case.room.performance_slots) - used;
        let reached = bits_of(&known.after(&planned.moves));
        // The coldest that are left step aside for who waits.
        let mut with_put_off = reached;
        for up in &planned.put_off {
            let left = (0..count).filter(|extent| with_put_off >> extent & 1 == 1);
            let coldest =
                left.min_by(|one, other| known.score(*one).total_cmp(&known.score(*other)));
            let down = coldest.expect("somebody steps aside");
            assert!(known.clears((down, *up)), "{:?} {planned:?}", case.disk.0);
            with_put_off = with_put_off & !(1 << down) | 1 << up;
        }
        let gain = known.gain((before, with_put_off), free);
        let best = (0..1_u32 << count)
            .filter(|set| set & !mapped == 0)
            .filter_map(|set| known.gain((before, set), free))
            .fold(0.0, f32::max);
        assert_eq!(gain, Some(best), "{:?} {planned:?} {:?}", case.disk.0, case.bar);
    }
    assert!(waited > 50 && others > 30, "{waited} cases with some that wait, {others} other loads");
}

#[test]
fn budgets_and_pins_hold_on_later_days() {
    let mut random = Random::new(52);
    let (mut moved, mut waited) = (0, 0);
    for _ in 0..4000 {
        let (mut case, count) = later_case(&mut random);
        case.room.capacity_free = 12;
        let (pinned, start) = (1 + random.below(3), random.below(u64::from(count)));
        let tier = if random.one_in(2) { TierName::Performance } else { TierName::Capacity };
        case.pins.set(start * EXTENT, pinned.min(u64::from(count) - start) * EXTENT, tier);
        let whole = case.plan();
        if random.one_in(2) {
            case.limits = PlanLimits { moved: random.below(6), promoted: random.below(4) };
        }
        let (known, planned) = (Known::of(&case), case.plan());
        let (up, down) =
            [TierName::Performance, TierName::Capacity].map(|to| planned.within_budget(to)).into();
        assert!(up <= case.limits.promoted && up + down <= case.limits.moved, "{planned:?}");
        assert_eq!(planned.wanted, whole.wanted, "whatever a budget leaves of it");
        waited += known.check_ration(&whole).0;
        moved += planned.moves.len();
        let tiers = known.after(&whole.moves);
        if whole.pins_refused > 0 {
            continue;
        }
        let zones = case.pins.zones();
        for (extent, found) in (0..).zip(&tiers) {
            let zone = pins::zone_at(&zones, extent);
            let wanted = zone.map(|zone| case.pins.pins()[zone.pin].tier);
            assert!(found.is_none() || wanted.is_none() || *found == wanted, "{extent}: {whole:?}");
        }
    }
    assert!(moved > 2000 && waited > 100, "{moved} moves, {waited} that wait");
}

/// A disk of which a fifth is on the Performance tier, after four days of sessions at random times, with a plan at the end of each. All are alike, or some are hot for good.
fn sessions(seed: u64, alike: bool) -> Case {
    const EXTENTS: u32 = 1500;
    let mut random = Random::new(seed);
    let mut case = Case::new("-", u64::from(EXTENTS / 5));
    let fast = |extent: u32| extent.is_multiple_of(5);
    let tier = |extent| if fast(extent) { TierName::Performance } else { TierName::Capacity };
    case.disk = Disk((0..EXTENTS).map(|extent| Some(tier(extent))).collect());
    let mut heat = HeatMap::new(HeatSettings::new(EXTENTS));
    let mut until = vec![0; plumb_units::convert::index(EXTENTS)];
    for hour in 0..24 * 4 {
        heat.advance(hour);
        if hour > 0 && hour % 24 == 0 {
            heat.begin_window_of(|extent| Some(fast(extent)));
        }
        for (extent, until) in (0..EXTENTS).zip(&mut until) {
            if !alike && extent % 97 == 3 || random.one_in(24) {
                *until = hour + 4;
            }
            let count = if hour < *until { 20 + random.below(8) } else { 0 };
            heat.record_many(extent, HostIoKind::Read, count);
        }
    }
    heat.advance(24 * 4);
    case.bar = Bar::reference(&heat);
    let used: Vec<Move> = (0..u32::try_from(random.below(4)).expect("few"))
        .map(|nth| made(nth, TierName::Performance))
        .collect();
    case.history.spend(&used, &heat, case.room.performance_slots);
    case.heat = heat;
    case
}

/// What became of extents that looked so is asked for by every swap, and keeps some from being made (0338).
#[test]
fn what_is_swapped_is_what_lasts() {
    let (mut swapped, mut told, mut kept) = (0, 0, 0);
    for seed in 60..68 {
        let mut case = sessions(seed, seed % 2 == 0);
        case.history = case.history.with_gains();
        let (known, planned) = (Known::of(&case), case.plan());
        known.check_ration(&planned);
        let tiers = known.after(&planned.moves);
        let swaps = known.swaps(&planned);
        for pair in &swaps {
            assert_ne!(known.lasts(*pair), Some(false), "{pair:?} of {seed}");
            told += usize::from(known.lasts(*pair) == Some(true));
        }
        swapped += swaps.len();
        // Of those that stay below some clear the bar.
        let fast = |extent: &u32| {
            tiers[plumb_units::convert::index(*extent)] == Some(TierName::Performance)
        };
        let all = 0..case.disk.extents();
        let coldest = all
            .clone()
            .filter(fast)
            .min_by(|one, other| known.score(*one).total_cmp(&known.score(*other)));
        let coldest = coldest.expect("the tier holds some");
        let below = all.filter(|extent| !fast(extent) && !planned.put_off.contains(extent));
        kept += below
            .filter(|up| known.clears((coldest, *up)) && known.lasts((coldest, *up)) == Some(false))
            .count();
    }
    println!("{swapped} swapped, {told} that are known to last, {kept} that do not");
    // Of what is unlike any nothing is known (0344).
    assert!(told > 20 && kept > 20, "{swapped} swapped, {told} known to last, {kept} that do not");
}
