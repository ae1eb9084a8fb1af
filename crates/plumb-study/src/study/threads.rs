//! A sweep that searches how many threads are best, where o is not varied by itself: alone, or with the load split between
//! them (method, 2.7 and 4.4).

use super::Setting;
use super::options::SweepPlan;
use super::perform::Order;
use super::random::Random;
use super::record::{Purpose, RunRecord};
use super::sweep::SWEEP;
use super::sweep_findings::rates;
use crate::split::{self, Pair};
use crate::stats::describe::mean;

/// What gives less than the highest by this much gives less, relative.
const LOSS: f64 = 0.02;
/// What is repeated of each search: the choice, its measured neighbours, and the highest.
const CONFIRMED: usize = 4;

/// Whether two settings differ in nothing but threads and o.
pub(super) fn same_but_split(a: &Setting, b: &Setting) -> bool {
    let with = |setting: &Setting| Setting { threads: 1, outstanding: 1, ..setting.clone() };
    with(a) == with(b)
}

/// Runs of one search at most: down by halves, up by doublings, and the gaps on both sides.
pub(super) fn runs_most(settings: u64, repetitions: u32) -> u64 {
    let doublings = u64::from(u64::BITS - settings.leading_zeros());
    let confirmed = CONFIRMED as u64 * u64::from(repetitions.saturating_sub(1));
    (3 * doublings + 1).min(settings) + confirmed
}

/// Settings of a search, threads ascending.
fn settings<'a>(plan: &'a SweepPlan, group: &Setting) -> Vec<&'a Setting> {
    let mut all: Vec<&Setting> =
        plan.settings.iter().filter(|setting| same_but_split(setting, group)).collect();
    all.sort_by_key(|setting| (setting.threads, setting.outstanding));
    all
}

/// Where a search begins: in the middle, by factors.
fn start(all: &[&Setting]) -> usize {
    let ln = |setting: &Setting| f64::from(setting.threads).ln();
    let Some((first, last)) = all.first().zip(all.last()) else { return 0 };
    let middle = (ln(first) + ln(last)) / 2.0;
    let off = |index: &usize| (ln(all[*index]) - middle).abs();
    (0..all.len()).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(0)
}

fn order(setting: &Setting, repetition: usize) -> Order {
    Order {
        step: SWEEP.to_owned(),
        purpose: if repetition > 1 { Purpose::Repeat } else { Purpose::Measure },
        repetition: plumb_units::convert::to_u32(repetition),
        setting: setting.clone(),
    }
}

/// The first run of a search.
pub(super) fn first(plan: &SweepPlan, group: &Setting) -> Option<Order> {
    let all = settings(plan, group);
    all.get(start(&all)).map(|setting| order(setting, 1))
}

/// The next run of searches, of which `room` are left: the one with fewest runs first, then repetitions, for which some are
/// kept.
pub(super) fn search(
    plan: &SweepPlan,
    groups: &[Setting],
    runs: &[RunRecord],
    room: Option<usize>,
) -> Option<Order> {
    let repetitions = plumb_units::convert::to_usize(plan.repetitions.into());
    let kept = CONFIRMED * repetitions.saturating_sub(1) * groups.len();
    let is_over = room.is_some_and(|room| room <= kept);
    let tries = |setting: &Setting| runs.iter().filter(|run| run.setting == *setting).count();
    let mut open: Vec<(usize, Order)> = Vec::new();
    let mut repeats: Vec<(usize, u64, Order)> = Vec::new();
    for group in groups {
        let all = settings(plan, group);
        let measured: Vec<Option<f64>> = all
            .iter()
            .map(|setting| match rates(setting, runs).0 {
                // One that failed is not tried again.
                found if found.is_empty() => (tries(setting) > 0).then_some(0.0),
                found => Some(mean(&found)),
            })
            .collect();
        let pair = |setting: &&Setting| Pair {
            threads: setting.threads.into(),
            o: setting.outstanding.into(),
        };
        let pairs: Vec<Pair> = all.iter().map(pair).collect();
        match split::next_pair(&pairs, &measured, start(&all), LOSS) {
            Some(next) if !is_over => {
                let done = measured.iter().flatten().count();
                open.push((done, order(all[next], 1)));
            }
            _ => {
                for index in to_confirm(&measured) {
                    let count = tries(all[index]);
                    let failed = measured[index] == Some(0.0);
                    if count < repetitions && !failed {
                        let salt = (index * 1000 + count) as u64;
                        let turn = Random::new(plan.seed, salt).next();
                        repeats.push((count, turn, order(all[index], count + 1)));
                    }
                }
            }
        }
    }
    let next = open.into_iter().min_by_key(|(done, _)| *done).map(|(_, order)| order);
    next.or_else(|| {
        let least = repeats.into_iter().min_by_key(|(count, turn, _)| (*count, *turn));
        least.map(|(_, _, order)| order)
    })
}

/// Places that a choice rests on.
fn to_confirm(measured: &[Option<f64>]) -> Vec<usize> {
    let known: Vec<(usize, f64)> =
        measured.iter().enumerate().filter_map(|(index, rate)| Some((index, (*rate)?))).collect();
    let Some((best, top)) = known.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Vec::new();
    };
    let gives_all = |(_, rate): &(usize, f64)| *rate >= top * (1.0 - LOSS);
    let chosen = known.iter().position(gives_all).unwrap_or(0);
    let beside = known[chosen.saturating_sub(1)..(chosen + 2).min(known.len())].iter();
    let mut list: Vec<usize> = beside.map(|(index, _)| *index).chain([best]).collect();
    list.sort_unstable();
    list.dedup();
    list
}
