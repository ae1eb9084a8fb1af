//! The plan (10.2): pins, then free slots for the hottest, then the hottest below for the coldest above.
//!
//! Extents have equal size, so for any budget of moves this is the best there is; a property test compares it with
//! all placements of a small disk.

use std::collections::VecDeque;

use plumb_units::convert::to_u64;

use super::bar::SURELY;
use super::history::MoveHistory;
use super::pins::{Admitted, PinTable};
use super::select::{Key, Least};
use super::survey::{Survey, for_each_mapped};
use super::{Bar, Placement, Sure, TierName};
use crate::heat::{Forecast, HeatMap, Lies, MOST_BY_WINDOWS};

/// Slots of the tiers, those reserved for moves left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Slots of the Performance tier that data may use, used ones included.
    pub performance_slots: u64,
    /// Slots of the Capacity tier that are free.
    pub capacity_free: u64,
    /// Slots of the Performance tier that the plan leaves free for new data (`fast_reserve`, ALC-1).
    pub reserve: u64,
}

/// The most that a plan may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanLimits {
    /// Extents moved either way: the movement budget.
    pub moved: u64,
    /// Extents written to the Performance tier: the endurance budget.
    pub promoted: u64,
}

impl PlanLimits {
    /// None.
    #[must_use]
    pub fn none() -> Self {
        Self { moved: u64::MAX, promoted: u64::MAX }
    }
}

/// All that a plan depends on.
#[derive(Debug)]
pub struct PlanRequest<'a, P> {
    /// What is hot.
    pub heat: &'a HeatMap,
    /// Where everything is.
    pub placement: &'a P,
    /// What belongs where.
    pub pins: &'a PinTable,
    /// What moved lately.
    pub history: &'a MoveHistory,
    /// What is free.
    pub room: Room,
    /// What a move must gain.
    pub bar: Bar,
    /// How much may move.
    pub limits: PlanLimits,
}

/// Why an extent moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveReason {
    /// A pin says so, or makes room for one.
    Pin,
    /// The Performance tier should have free slots.
    Reserve,
    /// It is hot, or makes room for one that is.
    Heat,
}

/// One move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Move {
    /// Which extent.
    pub extent: u32,
    /// Its score, which is won by a promotion and lost by a demotion.
    pub score: f32,
    /// Where to.
    pub to: TierName,
    /// Why.
    pub reason: MoveReason,
}

/// What should move, in this order: whoever stops early has done the best part.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// A demotion that makes room comes right before what it makes room for.
    pub moves: Vec<Move>,
    /// Host I/Os of the window.
    pub ios: u64,
    /// Those on extents that are on the Performance tier now.
    pub ios_before: u64,
    /// Those on extents that will be.
    pub ios_after: u64,
    /// Whether a budget kept anything from being moved.
    pub budget_spent: bool,
    /// Whose swaps wait, because chance may be the reason of their gain and others have used up what such ones are given in a day.
    pub put_off: Vec<u32>,
    /// Host I/Os of the window that those swaps would gain.
    pub put_off_ios: u64,
    /// Who leaves and who moves up of the swaps that look sure, made or not.
    pub(super) sure: Vec<(u32, u32)>,
    /// What swaps that looked sure have gained of late of what they were to gain, 0 or more, where that is too little: then none is sure.
    pub little_gains: Option<f64>,
    /// Extents whose swaps are left out because they take turns with others.
    pub turns: u64,
    /// Host I/Os of the window on these.
    pub turns_ios: u64,
    /// Moves up and down that there would be without a budget.
    pub wanted: [u64; 2],
    /// Where a budget admits no move at all: the smallest that admits one.
    pub least: Option<PlanLimits>,
    /// Extents pinned to the Performance tier for which it has no room.
    pub pins_refused: u64,
    /// Extents that should leave the Performance tier while the Capacity tier has no room for them.
    pub stuck: u64,
    /// Slots that should be free of the Performance tier, and are kept by what is pinned to it.
    pub reserve_pinned: u64,
}

impl Plan {
    /// Moves to that tier that are worth it, within a budget or not: what is requested of an optimization.
    #[must_use]
    pub fn count(&self, to: TierName) -> u64 {
        match to {
            TierName::Performance => self.wanted[0],
            TierName::Capacity => self.wanted[1],
        }
    }

    /// Those of them that the budgets admit.
    #[must_use]
    pub fn within_budget(&self, to: TierName) -> u64 {
        to_u64(self.moves.iter().filter(|planned| planned.to == to).count())
    }

    /// What it has is what is wanted.
    fn with_wanted(self) -> Self {
        let wanted = [TierName::Performance, TierName::Capacity].map(|to| self.within_budget(to));
        let least = self.least.filter(|_| self.moves.is_empty());
        Self { wanted, least, ..self }
    }

    /// Expected share of host I/Os on the Performance tier, 0 to 1, with such a window again; `None` without I/O.
    #[must_use]
    pub fn expected_share(&self) -> Option<f64> {
        self.share_with(0)
    }

    /// The same with so many host I/Os more.
    pub(crate) fn share_with(&self, more: u64) -> Option<f64> {
        (self.ios > 0).then(|| self.ios_after.saturating_add(more) as f64 / self.ios as f64)
    }
}

/// So many of the coldest may step aside because what they have had may be chance.
const STEP_ASIDE: u64 = 1024;

/// What is known to last is swapped at once where bunches are no reason for it: half as many deviations of them as a swap has to gain.
const BUNCHES: f32 = 0.5;

/// So many standard deviations are what became of extents like a pair known too little.
pub(super) const DEVIATIONS_LATER: f32 = 2.5;

/// Plans. Depends on nothing but the request, and changes nothing.
#[must_use]
pub fn plan<P: Placement>(request: &PlanRequest<'_, P>) -> Plan {
    let zones = request.pins.zones();
    let slots = request.room.performance_slots;
    let extents = request.placement.extents();
    let tier = |extent| if extent < extents { request.placement.tier(extent) } else { None };
    let fast = |extent| tier(extent) == Some(TierName::Performance);
    let forecast = request.heat.forecast(fast);
    let admitted = Admitted::of(request.pins, &zones, request.placement, slots);
    let mut survey = Survey::new(request, &admitted);
    for_each_mapped(request, (&forecast, &zones), |found| survey.look(request, &admitted, &found));
    let over = (survey.used + request.room.reserve).saturating_sub(slots);
    let hottest = survey.upwards(&admitted);
    let incoming = to_u64(survey.pinned_up.len()) + to_u64(hottest.len());
    let wanted = incoming + over + request.history.recent_moves();
    let most = (wanted + STEP_ASIDE).min(survey.used);
    let (mut coldest, mut partly) = (Least::new(most), Least::new(most));
    if wanted > 0 {
        for_each_mapped(request, (&forecast, &zones), |found| {
            let key = Key::coldest(found.score(), found.extent);
            match found.tier {
                TierName::Performance if found.is_partly(&admitted) => partly.push(key),
                TierName::Performance if !found.is_pinned(request, &admitted) => coldest.push(key),
                _ => {}
            }
        });
    }
    let (coldest, partly) = (coldest.sorted(), partly.sorted());
    // A full Capacity tier takes a pinned extent for one that may leave it, however cold that is. Where a pin has room in
    // part only, each one that leaves the tier makes room for some of it.
    let short = to_u64(survey.pinned_down.len()).saturating_sub(request.room.capacity_free);
    let short = if admitted.partly.is_some() { 0 } else { short };
    let mut movable = Least::new(short);
    if short > 0 {
        for_each_mapped(request, (&forecast, &zones), |found| {
            if found.tier == TierName::Capacity && !found.is_pinned(request, &admitted) {
                movable.push(Key::hottest(found.score(), found.extent));
            }
        });
    }
    let movable = movable.sorted();
    let within = |limits: PlanLimits, hottest: Vec<Key>, coldest: Vec<Key>| {
        let mut course = Course::new((request, &forecast), &survey, admitted.refused, limits);
        (course.hottest, course.coldest) = (hottest.into(), coldest.into());
        course.partly = partly.iter().copied().collect();
        course.movable = movable.iter().copied().collect();
        course.pins(&survey.pinned_up, &survey.pinned_down);
        course.make_reserve();
        if admitted.partly.is_some() {
            // Its extents are hotter or colder among themselves; nobody else has a place.
            course.coldest = std::mem::take(&mut course.partly);
        }
        course.fill();
        course.swap();
        course.wait();
        course.plan
    };
    let none = PlanLimits::none();
    if request.limits == none {
        return within(none, hottest, coldest).with_wanted();
    }
    let mut planned = within(request.limits, hottest.clone(), coldest.clone()).with_wanted();
    if planned.budget_spent {
        // The extents were looked at once; only the moves are counted once more.
        planned.wanted = within(none, hottest, coldest).with_wanted().wanted;
    }
    planned
}

/// What waits is no chance where it is this part of all host I/Os of the window.
pub(super) const ANOTHER_LOAD: u64 = 20;
/// Hours that a window has at least of which that tells: in a shorter one a few bunches are all that there was.
const ANOTHER_LOAD_H: u64 = 6;

/// The plan as it grows.
struct Course<'a> {
    heat: &'a Forecast<'a>,
    history: &'a MoveHistory,
    bar: Bar,
    room: Room,
    left: PlanLimits,
    /// Swaps that chance may be the reason of, as many as may be made; `None` where there is no bound of them.
    ration: Option<u64>,
    is_settled: bool,
    /// What became of extents may decide alone.
    knows_outcomes: bool,
    /// The window is long enough to tell another load.
    tells_load: bool,
    /// Those of which the ration has none left, hottest first.
    waiting: Vec<Key>,
    used: u64,
    hottest: VecDeque<Key>,
    coldest: VecDeque<Key>,
    /// The coldest of the pin that has room in part.
    partly: VecDeque<Key>,
    /// Those that may leave the Capacity tier for pinned ones, hottest first.
    movable: VecDeque<Key>,
    /// Should leave and has nowhere to go.
    stuck: VecDeque<u32>,
    plan: Plan,
}

impl<'a> Course<'a> {
    fn new<P>(
        (request, heat): (&PlanRequest<'a, P>, &'a Forecast<'a>),
        survey: &Survey,
        pins_refused: u64,
        limits: PlanLimits,
    ) -> Self {
        let plan = Plan {
            moves: Vec::new(),
            ios: survey.ios,
            ios_before: survey.ios_performance,
            ios_after: survey.ios_performance,
            budget_spent: false,
            put_off: Vec::new(),
            put_off_ios: 0,
            sure: Vec::new(),
            little_gains: request.history.little_gains(request.heat),
            turns: 0,
            turns_ios: 0,
            wanted: [0; 2],
            least: None,
            pins_refused,
            stuck: 0,
            reserve_pinned: 0,
        };
        // On the first two days extents are put where they belong; who asks for no certainty does not want any.
        let is_settled = request.heat.is_settled();
        let is_rationed = request.bar.deviations > 0.0 && is_settled;
        let slots = request.room.performance_slots;
        let ration = is_rationed.then(|| request.history.ration().left(request.heat, slots));
        Self {
            heat,
            history: request.history,
            bar: request.bar,
            room: request.room,
            left: limits,
            ration,
            is_settled,
            // Whoever asks for no certainty goes by what they had.
            knows_outcomes: request.bar.deviations > 0.0 && request.heat.knows_outcomes(),
            tells_load: request.heat.window_hours().is_none_or(|hours| hours >= ANOTHER_LOAD_H),
            waiting: Vec::new(),
            used: survey.used,
            hottest: [].into(),
            coldest: [].into(),
            partly: [].into(),
            movable: [].into(),
            stuck: [].into(),
            plan,
        }
    }

    /// Whether so many moves, a promotion among them, are within the budgets.
    fn affords(&mut self, moves: u64, promotions: u64) -> bool {
        let can = self.left.moved >= moves && self.left.promoted >= promotions;
        self.plan.budget_spent |= !can;
        if !can && self.plan.least.is_none_or(|least| moves < least.moved) {
            self.plan.least = Some(PlanLimits { moved: moves, promoted: promotions });
        }
        can
    }

    fn promote(&mut self, extent: u32, reason: MoveReason) {
        self.left.promoted -= 1;
        self.used += 1;
        self.room.capacity_free = self.room.capacity_free.saturating_add(1);
        let ios = self.moved(extent, TierName::Performance, reason);
        self.plan.ios_after = self.plan.ios_after.saturating_add(ios);
    }

    fn demote(&mut self, extent: u32, reason: MoveReason) {
        self.used -= 1;
        // Within a swap the move reserve stands in until the promotion frees a slot.
        self.room.capacity_free = self.room.capacity_free.saturating_sub(1);
        let ios = self.moved(extent, TierName::Capacity, reason);
        self.plan.ios_after = self.plan.ios_after.saturating_sub(ios);
    }

    fn moved(&mut self, extent: u32, to: TierName, reason: MoveReason) -> u64 {
        self.left.moved -= 1;
        let heat = self.heat.extent(extent);
        self.plan.moves.push(Move { extent, score: heat.score, to, reason });
        heat.ios()
    }

    fn swap_pair(&mut self, (down, up): (u32, u32), (why_down, why_up): (MoveReason, MoveReason)) {
        let free = self.room.capacity_free;
        self.demote(down, why_down);
        self.promote(up, why_up);
        self.room.capacity_free = free;
    }

    /// Pinned extents first (10.2 step 1).
    fn pins(&mut self, up: &[(u32, u32)], down: &[u32]) {
        let mut down = down.iter().copied();
        for (_, extent) in up {
            if self.used < self.room.performance_slots {
                if !self.affords(1, 1) {
                    break;
                }
                self.promote(*extent, MoveReason::Pin);
                continue;
            }
            if !self.affords(2, 1) {
                break;
            }
            let mut coldest = || self.coldest.pop_front().or_else(|| self.partly.pop_front());
            let victim = down.next().or_else(|| coldest().map(Key::extent));
            // Only extents with room are asked for, so somebody can make it.
            let Some(victim) = victim else { break };
            self.swap_pair((victim, *extent), (MoveReason::Pin, MoveReason::Pin));
        }
        for extent in down {
            if self.room.capacity_free > 0 {
                if self.affords(1, 0) {
                    self.demote(extent, MoveReason::Pin);
                }
                continue;
            }
            let Some(other) = self.movable.front().map(|key| key.extent()) else {
                self.stuck.push_back(extent);
                continue;
            };
            if self.affords(2, 1) {
                self.movable.pop_front();
                // It is the first of those worth a move, too, if there are any.
                self.hottest.pop_front_if(|key| key.extent() == other);
                self.swap_pair((extent, other), (MoveReason::Pin, MoveReason::Pin));
            }
        }
        self.plan.stuck = to_u64(self.stuck.len());
    }

    /// The coldest leave until as many slots are free as should be.
    fn make_reserve(&mut self) {
        while self.used + self.room.reserve > self.room.performance_slots {
            let over = self.used + self.room.reserve - self.room.performance_slots;
            let movable = to_u64(self.coldest.len());
            if self.room.capacity_free == 0 || movable == 0 {
                self.plan.stuck += over.min(movable);
                self.plan.reserve_pinned = over.saturating_sub(movable);
                return;
            }
            let Some(victim) = self.coldest.front().copied() else { return };
            if !self.affords(1, 0) {
                return;
            }
            self.coldest.pop_front();
            self.demote(victim.extent(), MoveReason::Reserve);
        }
    }

    /// Twice the bar for what moved in the last 2 runs.
    fn recent(&self, extent: u32) -> f32 {
        if self.history.is_recent(extent) { 2.0 } else { 1.0 }
    }

    /// The hottest take the free slots (step 3).
    fn fill(&mut self) {
        while self.used + self.room.reserve < self.room.performance_slots {
            let Some(hot) = self.hottest.front().copied() else { return };
            let bar = self.bar.times(self.recent(hot.extent())).for_free();
            if hot.hot_score() < bar {
                // Those behind are colder, but they may not have moved lately.
                self.hottest.pop_front();
                continue;
            }
            if !self.affords(1, 1) {
                return;
            }
            self.hottest.pop_front();
            self.promote(hot.extent(), MoveReason::Heat);
        }
    }

    /// The hottest below for the coldest above while that gains enough (step 4).
    fn swap(&mut self) {
        while let Some(hot) = self.hottest.front().copied() {
            let (victim, score) = match (self.stuck.front(), self.coldest.front()) {
                // Somebody who should leave anyway: nothing is lost.
                (Some(extent), _) => (*extent, 0.0),
                (None, Some(key)) => (key.extent(), key.cold_score()),
                (None, None) => return,
            };
            let stuck = !self.stuck.is_empty();
            let pair = self.judge(hot, (victim, score), stuck);
            let is_sure = pair == Pair::Swaps;
            let waits = !(is_sure && (stuck || self.plan.little_gains.is_none()));
            match pair {
                Pair::Swaps | Pair::MayBeChance if !waits || self.ration != Some(0) => {}
                Pair::Swaps | Pair::MayBeChance => {
                    // The victim is left for who is surer, however much colder.
                    self.waiting.extend(self.hottest.pop_front());
                    continue;
                }
                Pair::HotStays => {
                    self.hottest.pop_front();
                    continue;
                }
                Pair::TakesTurns => {
                    self.hottest.pop_front();
                    self.plan.turns += 1;
                    self.plan.turns_ios += self.heat.extent(hot.extent()).ios();
                    continue;
                }
                Pair::VictimStays => {
                    self.coldest.pop_front();
                    continue;
                }
                Pair::NoneDoes => return,
            }
            // On the first two days none has to be sure.
            if (is_sure || self.ration.is_none()) && !stuck {
                self.plan.sure.push((victim, hot.extent()));
            }
            if !self.affords(2, 1) {
                return;
            }
            self.hottest.pop_front();
            self.ration = self.ration.map(|left| left.saturating_sub(1));
            let reason = if stuck { MoveReason::Pin } else { MoveReason::Heat };
            if stuck {
                self.stuck.pop_front();
                self.plan.stuck -= 1;
            } else {
                self.coldest.pop_front();
            }
            self.swap_pair((victim, hot.extent()), (reason, MoveReason::Heat));
        }
    }

    /// What the ration leaves waits, unless all of it together is too much of what hosts ask for to be left to chance: another load.
    fn wait(&mut self) {
        // All of what waits, and what of it is more than chance by what is known of bunches.
        let (mut pairs, mut gain) = (Vec::new(), 0_u64);
        let (mut load, mut of_load) = (Vec::new(), 0_u64);
        let mut coldest = std::mem::take(&mut self.coldest);
        'waiting: for hot in std::mem::take(&mut self.waiting) {
            while let Some(cold) = coldest.front().copied() {
                let judged = self.judge(hot, (cold.extent(), cold.cold_score()), false);
                match judged {
                    Pair::Swaps | Pair::MayBeChance => {
                        coldest.pop_front();
                        let ios = |key: Key| self.heat.extent(key.extent()).ios();
                        let gains = ios(hot).saturating_sub(ios(cold));
                        let pair = (cold.extent(), hot.extent());
                        let beyond =
                            self.is_beyond_chance(hot, (cold.extent(), cold.cold_score()), 1.0);
                        if beyond || judged == Pair::Swaps {
                            self.plan.sure.push(pair);
                        }
                        if beyond {
                            of_load = of_load.saturating_add(gains);
                            load.push(pair);
                        } else {
                            gain = gain.saturating_add(gains);
                            pairs.push(pair);
                        }
                        continue 'waiting;
                    }
                    Pair::VictimStays => {
                        coldest.pop_front();
                    }
                    Pair::HotStays | Pair::TakesTurns => continue 'waiting,
                    Pair::NoneDoes => break 'waiting,
                }
            }
        }
        let is_load = of_load >= self.plan.ios / ANOTHER_LOAD
            && self.tells_load
            && self.plan.little_gains.is_none();
        if !is_load {
            pairs.append(&mut load);
            gain = gain.saturating_add(of_load);
        }
        self.plan.put_off.extend(pairs.iter().map(|pair| pair.1));
        self.plan.put_off_ios = gain;
        for pair in load {
            if !self.affords(2, 1) {
                return;
            }
            self.swap_pair(pair, (MoveReason::Heat, MoveReason::Heat));
        }
    }

    /// What extents like a pair went on to gain over each other, and whether that is what a move has to gain by a bar raised so many times, and so many deviations of
    /// how far it is known; `None` where it is not.
    fn later(&self, hot: f32, victim: f32, (raised, deviations): (f32, f32)) -> Option<Later> {
        let later = self.heat.later();
        let (hot, victim) = later.of(hot, Lies::Slow).zip(later.of(victim, Lies::Fast))?;
        let pays = self.bar.break_even.max(self.bar.hysteresis * victim.score);
        let off = deviations * (hot.variance + victim.variance).sqrt();
        let gain = hot.score - victim.score;
        let are_alike = hot.is_of_its_like() && victim.is_of_its_like();
        Some(Later { gain, pays: gain >= pays * raised + off, are_alike })
    }

    /// Whether extents like a pair went on to be as different as a move has to gain, as far as that is known.
    fn lasts(&self, hot: f32, victim: f32) -> bool {
        // On the first two days little is known of it, and what looks hotter mostly is: what is to be expected is enough.
        let deviations = if self.is_settled { DEVIATIONS_LATER } else { 0.0 };
        // Whoever asks for no certainty goes by what they had.
        self.bar.deviations == 0.0
            || self.later(hot, victim, (1.0, deviations)).is_none_or(|later| later.pays)
    }

    /// Whether it is known that extents like a pair went on to differ by no less than they looked: then neither chance nor a session is the reason. What looks hot for
    /// such a reason wins less later on, in the mean; what has begun to be hot wins more, for its score is not all there yet.
    fn is_known_to_last(&self, hot: f32, victim: f32, times: f32) -> bool {
        self.knows_outcomes
            && self
                .later(hot, victim, (self.bar.raised * times, DEVIATIONS_LATER))
                .is_some_and(|later| later.are_alike && later.pays && later.gain >= hot - victim)
    }

    /// Both with the most that is known to speak for chance; where that are bunches, what the hot one has had counts, and not what is to be expected of it for that.
    fn with_bunches(&self, hot: Key, (victim, score): (u32, f32)) -> (Sure, Sure, bool) {
        let chances = self.heat.chances();
        let of =
            |extent, score, lies| Sure { score, dispersion: chances.at_most(extent, score, lies) };
        let mut up = of(hot.extent(), hot.hot_score(), Lies::Slow);
        let down = of(victim, score, Lies::Fast);
        let are_bunches = up.dispersion.max(down.dispersion) > MOST_BY_WINDOWS;
        if are_bunches {
            up.score = up.score.min(self.heat.had(hot.extent()));
        }
        (up, down, are_bunches)
    }

    /// Whether what the hottest gains over a victim is no chance by all that is known of bunches, those of extents that were cold before among it: so many times as
    /// many deviations as a swap has to gain.
    fn is_beyond_chance(&self, hot: Key, victim: (u32, f32), times: f32) -> bool {
        let (up, down, _) = self.with_bunches(hot, victim);
        self.bar.is_beyond(up, down, times)
    }

    /// On the first two days, when none has to be sure: whether a bunch may be all that an extent has had, in the place of one that gets its I/Os one by one, or fewer
    /// together. If it came once a week it would be no more than that one has.
    fn may_be_one_bunch(&self, hot: Key, (victim, score): (u32, f32)) -> bool {
        let had = self.heat.had(hot.extent());
        let is_asked = !self.is_settled && self.bar.deviations > 0.0;
        if !is_asked || self.heat.as_it_goes_on(score) < self.heat.once_a_week(had) {
            return false;
        }
        let chances = self.heat.chances();
        let of = |extent, score, lies| chances.by_hours(extent, score, lies);
        let up = of(hot.extent(), hot.hot_score(), Lies::Slow);
        let dispersion = (up / of(victim, score, Lies::Fast)).max(1.0);
        let most = if dispersion > MOST_BY_WINDOWS { had } else { f32::MAX };
        let up = Sure { score: hot.hot_score().min(most), dispersion };
        !self.bar.is_beyond(up, Sure { score, dispersion: 1.0 }, 1.0)
    }

    /// Whether bunches may be all that a pair differs by.
    fn may_be_bunches(&self, hot: Key, victim: (u32, f32)) -> bool {
        let (up, down, are_bunches) = self.with_bunches(hot, victim);
        are_bunches && !self.bar.is_beyond(up, down, BUNCHES)
    }

    /// Whether the hottest is worth the place of a victim; one who has to leave takes nothing from anybody.
    fn judge(&self, hot: Key, (victim, score): (u32, f32), must_leave: bool) -> Pair {
        let chances = self.heat.chances();
        let of = |extent, score, lies| Sure { score, dispersion: chances.of(extent, score, lies) };
        let hot_sure = of(hot.extent(), hot.hot_score(), Lies::Slow);
        let victim_sure = of(victim, score, Lies::Fast);
        let surest = |of: Sure| Sure { dispersion: chances.least(), ..of };
        let gain = hot.hot_score() - score;
        let clears = |times: f32, hot: Sure, victim: Sure| {
            let bar = self.bar.times(times);
            gain >= if must_leave { bar.for_free() } else { bar.over(hot, victim) }
        };
        if gain > 0.0 && !must_leave && self.knows_outcomes {
            let times = self.recent(hot.extent()).max(self.recent(victim));
            // What pays is asked for all the same (10.3).
            let pays = Bar { deviations: 0.0, ..self.bar }.times(times);
            if gain >= pays.over(hot_sure, victim_sure)
                && self.is_known_to_last(hot.hot_score(), score, times)
            {
                return match self.may_be_bunches(hot, (victim, score)) {
                    true => Pair::MayBeChance,
                    false => Pair::Swaps,
                };
            }
            if gain >= self.bar.for_free() && !clears(1.0, surest(hot_sure), surest(victim_sure)) {
                // Of those behind it may be known.
                return Pair::HotStays;
            }
        }
        // If that is too little whatever chance makes of them, no pair behind gains enough.
        if gain <= 0.0 || !clears(1.0, surest(hot_sure), surest(victim_sure)) {
            return Pair::NoneDoes;
        }
        if !clears(1.0, hot_sure, victim_sure) {
            // Who varies so far that the other would do with one that varies less.
            let would = [
                clears(1.0, surest(hot_sure), victim_sure),
                clears(1.0, hot_sure, surest(victim_sure)),
            ];
            return match would {
                [true, false] => Pair::HotStays,
                [false, true] => Pair::VictimStays,
                _ if hot_sure.dispersion >= victim_sure.dispersion => Pair::HotStays,
                _ => Pair::VictimStays,
            };
        }
        if !must_leave && !self.lasts(hot.hot_score(), score) {
            return Pair::HotStays;
        }
        if !must_leave && self.may_be_one_bunch(hot, (victim, score)) {
            return Pair::HotStays;
        }
        if !clears(self.recent(hot.extent()), hot_sure, victim_sure) {
            return Pair::HotStays;
        }
        if !must_leave && !clears(self.recent(victim), hot_sure, victim_sure) {
            return Pair::VictimStays;
        }
        if !must_leave && self.bar.deviations > 0.0 && self.history.takes_turns(hot.extent()) {
            return Pair::TakesTurns;
        }
        match must_leave || self.is_beyond_chance(hot, (victim, score), SURELY) {
            true => Pair::Swaps,
            false => Pair::MayBeChance,
        }
    }
}

/// What extents like a pair went on to gain over each other.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Later {
    gain: f32,
    /// It is as much as a move has to gain, as far as that is known.
    pays: bool,
    /// Those that tell it had about as much.
    are_alike: bool,
}

/// What becomes of the hottest below and the coldest above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pair {
    Swaps,
    /// The same, as one of the few a day of which that is not as sure.
    MayBeChance,
    HotStays,
    /// The hot one as well, for it was as hot before and was not asked for on the day after.
    TakesTurns,
    VictimStays,
    /// Nor does any behind them gain enough.
    NoneDoes,
}
