//! Which run of a sweep comes next (method, section 4).

use std::collections::BTreeSet;

use super::Setting;
use super::axis::Axis;
use super::best::Noise;
use super::conditioning::{CONDITIONING, counted, settle_s};
use super::engine::{Next, Planner, key};
use super::options::{RunOrder, SweepPlan};
use super::perform::Order;
use super::random::Random;
use super::record::{Purpose, RunRecord};
use super::threads;
use crate::bracket::{self, Climb, Step};
use crate::knee::{self, Row, Spread};
use crate::stats::describe::{mean, squares};
use crate::stats::distribution::t_95;

/// The step of all runs of a sweep.
pub const SWEEP: &str = "sweep";

/// Seconds between two runs: the start of the program, its threads and files.
pub const GAP_S: f64 = 1.0;

/// Runs between two anchors.
pub(super) const ANCHOR_EVERY: usize = 10;
/// Runs of a search beside its climb, at most as far as simulated devices showed.
const SPLITS: u64 = 18;
/// A search of a range of this many settings or more …
const SHARED_FROM: usize = 24;
/// … takes at most this share of the runs of all settings.
const SHARE_MOST: f64 = 0.45;
/// Settings of a search that are repeated: plateau, recommendation, their neighbours, outliers.
const CONFIRMED: u64 = 7;
/// Of those at least so many of each curve, where runs are few: recommendation, plateau, and what lies beside one.
const CONFIRMED_LEAST: usize = 4;
/// A setting whose interval lies below the best one's by more than this is not repeated within a budget.
const RACE: f64 = 0.05;

/// A sweep at work.
#[derive(Debug)]
pub struct SweepPlanner {
    plan: SweepPlan,
    /// Everything, in order; empty where it is searched.
    sequence: Vec<(String, Order)>,
    /// What is searched: settings whose o is the lowest, or of those that differ in threads alone the first.
    groups: Vec<Setting>,
    /// Whether threads are searched, not o.
    by_threads: bool,
    /// First and last o of the search.
    range: (u64, u64),
}

impl SweepPlanner {
    /// Of a plan.
    #[must_use]
    pub fn new(plan: SweepPlan) -> Self {
        let os = || plan.settings.iter().map(|setting| setting.outstanding);
        let range = (os().min().unwrap_or(1).into(), os().max().unwrap_or(1).into());
        let lowest = u32::try_from(range.0).unwrap_or(1);
        let mut groups: Vec<Setting> = Vec::new();
        let mut sequence = Vec::new();
        let by_threads = plan.adaptive && !plan.axes.iter().any(Axis::is_outstanding);
        if by_threads {
            for setting in &plan.settings {
                if !groups.iter().any(|group| threads::same_but_split(group, setting)) {
                    groups.push(setting.clone());
                }
            }
        } else if plan.adaptive {
            groups = plan.settings.iter().filter(|s| s.outstanding == lowest).cloned().collect();
        } else {
            sequence = in_order(&plan).into_iter().map(|order| (key(&order), order)).collect();
        }
        Self { plan, sequence, groups, by_threads, range }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &SweepPlan {
        &self.plan
    }

    /// All runs in order, where they are known before the first.
    pub fn sequence(&self) -> impl Iterator<Item = &Order> {
        self.sequence.iter().map(|(_, order)| order)
    }

    /// The parameter that is searched, and what it is called.
    #[must_use]
    pub fn searched_parameter(&self) -> &'static str {
        if self.by_threads { "t" } else { "o" }
    }

    /// Settings of the plan that belong to the same search as this one.
    pub(super) fn searched_with(&self, first: &Setting) -> Vec<Setting> {
        let is_same = if self.by_threads { threads::same_but_split } else { same_but_o };
        self.plan.settings.iter().filter(|setting| is_same(setting, first)).cloned().collect()
    }

    /// Settings that are searched for the knee, each with its lowest o; or one of each search over threads.
    #[must_use]
    pub fn groups(&self) -> &[Setting] {
        &self.groups
    }

    /// Runs at most, and those of the exhaustive plan: beside a search with its anchors, otherwise without.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let each = self.plan.settings.len() as u64;
        if !self.plan.adaptive {
            return (self.sequence.len() as u64, self.runs_exhaustive());
        }
        // A climb by doublings; the gaps on both sides of plateau and recommendation, each a doubling that is split until
        // 8 % are left, and the aims of the fit; repetitions of what the answer rests on.
        let span = self.range.1 as f64 / self.range.0 as f64;
        let climb = plumb_units::convert::floor_u64(span.log2().ceil()) + 1;
        let confirm = CONFIRMED * u64::from(self.plan.repetitions - 1);
        let range = self.range.1 - self.range.0 + 1;
        let searched = (climb + SPLITS).min(range);
        let each_one = match self.by_threads {
            true => {
                threads::runs_most(each / self.groups.len().max(1) as u64, self.plan.repetitions)
            }
            false => searched + confirm,
        };
        let most = each_one * self.groups.len() as u64;
        // The first anchor is a step of the climb.
        let anchors = if self.plan.anchors { most / ANCHOR_EVERY as u64 + 1 } else { 0 };
        let share = self.runs_most().map_or(u64::MAX, |most| most as u64);
        ((most + anchors).min(share), self.runs_exhaustive())
    }

    /// Runs of the same plan without a search, anchors included.
    #[must_use]
    pub fn runs_exhaustive(&self) -> u64 {
        let all = self.plan.settings.len() as u64 * u64::from(self.plan.repetitions);
        match self.plan.anchors && all >= ANCHOR_EVERY as u64 {
            true => all + all.div_ceil(ANCHOR_EVERY as u64) + 1,
            false => all,
        }
    }

    /// Runs that a search may take, anchors included (4.4); `None` where the range is small.
    fn runs_most(&self) -> Option<usize> {
        let each = self.plan.settings.len() / self.groups.len().max(1);
        let most = self.runs_exhaustive() as f64 * SHARE_MOST;
        (each >= SHARED_FROM)
            .then(|| plumb_units::convert::to_usize(plumb_units::convert::floor_u64(most)))
    }

    /// A search with its reference setting: at the start, after every ten runs, and at the end of one that is
    /// longer.
    fn searched(&self, runs: &[RunRecord]) -> Option<Order> {
        let is_anchor = |run: &RunRecord| run.purpose == Purpose::Anchor;
        let anchors = runs.iter().filter(|run| is_anchor(run)).count();
        let since = runs.iter().rev().take_while(|run| !is_anchor(run)).count();
        let ends_with_one = |count: usize| self.plan.anchors && count > ANCHOR_EVERY + 1;
        // One more run, with the anchor that comes before it and that at the end.
        let before = usize::from(self.plan.anchors && since >= ANCHOR_EVERY);
        let count = runs.len() + before + 1;
        let needed = count + usize::from(ends_with_one(count));
        let room = self.runs_most().map(|most| (most + 1).saturating_sub(needed));
        let due = match room {
            Some(0) => None,
            _ if self.by_threads => threads::search(&self.plan, &self.groups, runs, room),
            _ => self.search(runs, room),
        };
        let is_due = match &due {
            Some(_) => anchors == 0 || since >= ANCHOR_EVERY,
            None => since > 0 && ends_with_one(runs.len()),
        };
        if !self.plan.anchors || !is_due {
            return due;
        }
        let repetition = plumb_units::convert::to_u32(anchors) + 1;
        if self.by_threads {
            let order = threads::first(&self.plan, self.groups.first()?)?;
            return Some(Order { purpose: Purpose::Anchor, repetition, ..order });
        }
        // On the way of the climb, so that the first one costs nothing.
        let (first, last) = self.range;
        let steps = (last as f64 / first as f64).log2() / 2.0;
        let o = first << plumb_units::convert::floor_u64(steps.ceil()).min(32);
        Some(Order { purpose: Purpose::Anchor, repetition, ..self.order(0, o.min(last), 1) })
    }

    /// The setting that is measured first.
    fn first(&self) -> Option<&Setting> {
        self.sequence.first().map(|(_, order)| &order.setting).or(self.groups.first())
    }

    /// What is to be done before anything is measured.
    fn conditioning(&self, all: &[RunRecord]) -> Option<Order> {
        self.plan.conditioning.next(self.first()?, self.plan.device_bytes, all)
    }

    /// What was done before, for the remarks.
    #[must_use]
    pub fn conditioning_note(&self, runs: &[RunRecord]) -> Option<String> {
        Some(self.plan.conditioning.note(self.first()?, self.plan.device_bytes, runs))
    }

    /// The next run of the search, of which `room` are left: the group with fewest runs first, then repetitions, for which
    /// some are kept.
    fn search(&self, runs: &[RunRecord], room: Option<usize>) -> Option<Order> {
        let kept = CONFIRMED_LEAST * (self.repetitions() - 1) * self.groups.len();
        let is_over = room.is_some_and(|room| room <= kept);
        let mut open: Vec<(usize, usize, u64)> = Vec::new();
        let mut repeats: Vec<(usize, u64, usize, u64)> = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            let own: Vec<&RunRecord> =
                runs.iter().filter(|run| same_but_o(&run.setting, group)).collect();
            let rows = rows(own.iter().copied());
            let options = self.plan.knee_options(group, runs);
            // A setting that fails is not tried again and again.
            let failed = |o: u64| {
                own.iter()
                    .any(|run| u64::from(run.setting.outstanding) == o && run.usable().is_none())
            };
            match bracket::next(&rows, self.range.0, self.range.1, &options, Climb::Twice) {
                Step::Measure(o) if failed(o) => {}
                Step::Measure(o) if !is_over => open.push((own.len(), index, o)),
                step => {
                    let found = match step {
                        Step::Done(found) => *found,
                        Step::Measure(_) => knee::find(&rows, &options),
                    };
                    for o in to_confirm(&found) {
                        let count = rows.iter().filter(|row| row.o == o).count();
                        let is_sure = !found.settings.iter().any(|s| s.o == o && s.irreproducible);
                        let wanted = match self.repetitions() {
                            // What contradicts itself is run up to five times (3.3).
                            repetitions if is_sure || repetitions == 1 => repetitions,
                            repetitions => repetitions.max(knee::IRREPRODUCIBLE_RUNS),
                        };
                        if count < wanted && !failed(o) {
                            let mut random = Random::new(self.plan.seed, o * 1000 + count as u64);
                            repeats.push((count, random.next(), index, o));
                        }
                    }
                }
            }
        }
        if let Some((_, index, o)) = open.into_iter().min() {
            return Some(self.order(index, o, 1));
        }
        let (count, _, index, o) = repeats.into_iter().min()?;
        Some(self.order(index, o, count + 1))
    }

    fn repetitions(&self) -> usize {
        usize::try_from(self.plan.repetitions).expect("a few")
    }

    fn order(&self, group: usize, o: u64, repetition: usize) -> Order {
        let mut setting = self.groups[group].clone();
        setting.outstanding = u32::try_from(o).expect("o is in the range of the axis");
        let repetition = u32::try_from(repetition).expect("a few");
        let purpose = if repetition > 1 { Purpose::Repeat } else { Purpose::Measure };
        Order { step: SWEEP.to_owned(), purpose, repetition, setting }
    }

    /// Within a budget: each setting once, the coarse steps of all curves first, then repetitions where they change a
    /// decision, the least known settings first (4.5); an anchor after every ten runs, and at the end.
    fn most_wanted<'a>(&self, due: Vec<&'a Order>, runs: &[RunRecord]) -> Option<&'a Order> {
        let out = self.out_of_the_race(runs);
        let (anchors, open): (Vec<&Order>, Vec<&Order>) =
            due.into_iter().partition(|order| order.purpose == Purpose::Anchor);
        let open = open.into_iter().filter(|order| !out.contains(&order.setting));
        let once = open.clone().find(|order| order.purpose == Purpose::Measure);
        let wanted = match once {
            // What was asked for in an order of its own stays in it.
            _ if self.plan.order != RunOrder::Random => open.clone().next(),
            None => {
                let decides = self.deciding(runs);
                let count =
                    |order: &Order| runs.iter().filter(|run| run.setting == order.setting).count();
                open.min_by_key(|order| (!decides.contains(&order.setting), count(order)))
            }
            once => once,
        };
        let is_anchor = |run: &RunRecord| run.purpose == Purpose::Anchor;
        let since = runs.iter().rev().take_while(|run| !is_anchor(run)).count();
        let is_due = match wanted {
            Some(_) => since >= ANCHOR_EVERY || !runs.iter().any(is_anchor),
            None => since > 0,
        };
        anchors.first().copied().filter(|_| is_due).or(wanted)
    }

    /// Settings that an answer rests on: those with the throughput of their curve's plateau, within noise, and what is
    /// recommended. Where there is no such answer every setting counts.
    fn deciding(&self, runs: &[RunRecord]) -> Vec<Setting> {
        let mut list = Vec::new();
        let mut left: Vec<&Setting> = self.plan.settings.iter().collect();
        while let Some(first) = left.first().copied() {
            let (own, others): (Vec<&Setting>, Vec<&Setting>) =
                left.into_iter().partition(|setting| same_but_o(setting, first));
            left = others;
            let rows = rows(runs.iter().filter(|run| same_but_o(&run.setting, first)));
            let marks = knee::find(&rows, &self.plan.knee_options(first, runs)).marks;
            let counts = |setting: &&Setting| {
                let o = u64::from(setting.outstanding);
                marks.is_none_or(|marks| {
                    (marks.indifferent.0..=marks.indifferent.1).contains(&o)
                        || o == marks.recommended
                })
            };
            list.extend(own.into_iter().filter(counts).cloned());
        }
        list
    }

    /// Settings that need no further repetition: far below the best (4.5).
    fn out_of_the_race(&self, runs: &[RunRecord]) -> Vec<Setting> {
        let mut all: Vec<(Setting, Vec<f64>)> = Vec::new();
        for run in runs.iter().filter(|run| run.purpose != Purpose::Anchor) {
            let Some(summary) = run.usable() else { continue };
            match all.iter_mut().find(|(setting, _)| *setting == run.setting) {
                Some((_, values)) => values.push(summary.iops.ln()),
                None => all.push((run.setting.clone(), vec![summary.iops.ln()])),
            }
        }
        let freedom: usize = all.iter().map(|(_, values)| values.len() - 1).sum();
        if freedom < 2 {
            return Vec::new();
        }
        let pooled: f64 = all.iter().map(|(_, values)| squares(values)).sum();
        let deviation = (pooled / freedom as f64).sqrt();
        let reach = |count: usize| t_95(freedom as f64) * deviation / (count as f64).sqrt();
        let best = all
            .iter()
            .map(|(_, values)| mean(values) - reach(values.len()))
            .fold(f64::NEG_INFINITY, f64::max);
        all.into_iter()
            .filter(|(_, values)| values.len() >= 2)
            .filter(|(_, values)| mean(values) + reach(values.len()) < best + (-RACE).ln_1p())
            .map(|(setting, _)| setting)
            .collect()
    }
}

impl Planner for SweepPlanner {
    fn next(&self, all: &[RunRecord]) -> Next {
        let runs = &*counted(all);
        let conditioning = self.conditioning(all);
        let next = if conditioning.is_some() {
            conditioning
        } else if self.plan.adaptive {
            self.searched(runs)
        } else {
            let done: BTreeSet<&str> = runs.iter().map(|run| run.key.as_str()).collect();
            let due = self.sequence.iter().filter(|(key, _)| !done.contains(key.as_str()));
            let mut due = due.map(|(_, order)| order);
            match self.plan.budget_s {
                Some(_) => self.most_wanted(due.collect(), runs).cloned(),
                None => due.next().cloned(),
            }
        };
        let Some(order) = next else { return Next::Done };
        let spent = all.last().map_or(0.0, |run| run.ended_s);
        let needed = order.setting.seconds() + GAP_S;
        match self.plan.budget_s {
            Some(budget) if spent + needed > budget => Next::TimeIsUp,
            _ => Next::Run(Box::new(order)),
        }
    }

    fn seed(&self) -> u64 {
        self.plan.seed
    }

    fn early_end(&self, order: &Order) -> bool {
        self.plan.early_end && order.step != CONDITIONING
    }

    fn rest_s(&self, last: &Setting, next: &Order) -> f64 {
        settle_s(last, &next.setting).max(self.plan.gap_s.into())
    }

    fn known(&self, all: &[RunRecord]) -> Option<Vec<&Order>> {
        let searches = self.plan.adaptive || self.plan.budget_s.is_some();
        if searches || self.conditioning(all).is_some() {
            return None;
        }
        let done: BTreeSet<&str> = all.iter().map(|run| run.key.as_str()).collect();
        let due = self.sequence.iter().filter(|(key, _)| !done.contains(key.as_str()));
        Some(due.map(|(_, order)| order).collect())
    }

    fn reference(&self, runs: &[RunRecord]) -> Option<Setting> {
        let usable = |run: &&RunRecord| run.usable().is_some();
        let anchor = runs.iter().rfind(|run| run.purpose == Purpose::Anchor && usable(run));
        let run = anchor.or_else(|| runs.iter().find(usable)).filter(|_| self.plan.anchors)?;
        Some(run.setting.clone())
    }
}

/// What a curve's answer rests on: the plateau, its tested neighbours, and what lies off the curve (3.2, 8).
fn to_confirm(found: &knee::Knee) -> Vec<u64> {
    let mut list = found.outliers();
    if let Some(marks) = found.marks {
        let tested: Vec<u64> = found.settings.iter().map(|setting| setting.o).collect();
        if let Some(at) = tested.iter().position(|o| *o == marks.plateau) {
            let from = at.saturating_sub(1);
            list.extend(&tested[from..(at + 2).min(tested.len())]);
        }
        list.push(marks.recommended);
    }
    list.sort_unstable();
    list.dedup();
    list
}

/// Whether two settings differ in nothing but o.
pub(super) fn same_but_o(a: &Setting, b: &Setting) -> bool {
    let with = |setting: &Setting| Setting { outstanding: 1, ..setting.clone() };
    with(a) == with(b)
}

/// What runs of a setting differ by elsewhere in a study than on the curve of this one (docs/decisions/0319-few-settings-may-be-rough.md).
pub(super) fn noise_elsewhere(setting: &Setting, runs: &[RunRecord]) -> Option<Spread> {
    let mut groups: Vec<(&Setting, Vec<f64>)> = Vec::new();
    for run in runs.iter().filter(|run| !same_but_o(&run.setting, setting)) {
        let Some(summary) = run.usable() else { continue };
        match groups.iter_mut().find(|(group, _)| **group == run.setting) {
            Some((_, logs)) => logs.push(summary.iops.ln()),
            None => groups.push((&run.setting, vec![summary.iops.ln()])),
        }
    }
    let logs: Vec<Vec<f64>> = groups.into_iter().map(|(_, logs)| logs).collect();
    let Noise { deviation, freedom, .. } = Noise::pooled(&logs)?;
    Some(Spread { deviation, freedom })
}

/// Rows of a curve.
pub(super) fn rows<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> Vec<Row> {
    runs.filter_map(RunRecord::row).collect()
}

/// Of each setting how fine a look at its curve it belongs to: 0 for doublings of o and the last, 1 for what lies in the
/// middle between those, and so on (4.5).
fn fineness(settings: &[Setting]) -> Vec<u32> {
    let mut found = vec![0; settings.len()];
    let mut left: Vec<usize> = (0..settings.len()).collect();
    while let Some(first) = left.first().copied() {
        let (mut own, others): (Vec<usize>, Vec<usize>) =
            left.into_iter().partition(|index| same_but_o(&settings[*index], &settings[first]));
        left = others;
        own.sort_by_key(|index| settings[*index].outstanding);
        let mut due = 0;
        let mut chosen: Vec<usize> = Vec::new();
        for (place, index) in own.iter().enumerate() {
            let o = u64::from(settings[*index].outstanding);
            if o >= due || place + 1 == own.len() {
                due = 2 * o;
                chosen.push(place);
            }
        }
        for level in 1.. {
            let middles: Vec<usize> = chosen
                .windows(2)
                .filter(|pair| pair[1] - pair[0] > 1)
                .map(|pair| usize::midpoint(pair[0], pair[1]))
                .collect();
            if middles.is_empty() {
                break;
            }
            for place in &middles {
                found[own[*place]] = level;
            }
            chosen.extend(middles);
            chosen.sort_unstable();
        }
    }
    found
}

/// Blocks with their anchors (4.2).
fn in_order(plan: &SweepPlan) -> Vec<Order> {
    let mut list = Vec::new();
    let fineness = plan.budget_s.map(|_| fineness(&plan.settings));
    for repetition in 1..=plan.repetitions {
        let mut block: Vec<usize> = (0..plan.settings.len()).collect();
        match plan.order {
            RunOrder::AsGiven => {}
            RunOrder::Sorted => {
                block.sort_by_key(|index| plan.settings[*index].total_outstanding());
            }
            RunOrder::Random => {
                Random::new(plan.seed, repetition.into()).shuffle(&mut block);
                // Where the time may not be enough the coarse look comes first.
                if let Some(fineness) = &fineness {
                    block.sort_by_key(|index| fineness[*index]);
                }
            }
        }
        let purpose = if repetition > 1 { Purpose::Repeat } else { Purpose::Measure };
        list.extend(block.into_iter().map(|index| Order {
            step: SWEEP.to_owned(),
            purpose,
            repetition,
            setting: plan.settings[index].clone(),
        }));
    }
    // Fewer runs have no time to drift.
    if !plan.anchors || list.len() < ANCHOR_EVERY {
        return list;
    }
    let reference = plan.settings[plan.settings.len() / 2].clone();
    let mut with_anchors = Vec::new();
    let mut anchors = 0;
    let mut anchor = || {
        anchors += 1;
        Order {
            step: SWEEP.to_owned(),
            purpose: Purpose::Anchor,
            repetition: anchors,
            setting: reference.clone(),
        }
    };
    for (index, order) in list.into_iter().enumerate() {
        if index % ANCHOR_EVERY == 0 {
            with_anchors.push(anchor());
        }
        with_anchors.push(order);
    }
    with_anchors.push(anchor());
    with_anchors
}
