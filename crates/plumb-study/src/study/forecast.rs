//! How many runs a study takes and how long, before the first of them and on the way (method, 4.1 and 4.5).
//!
//! A search depends on what it finds: before the first run it is rehearsed in virtual time on imagined devices of many kinds,
//! of which the shortest and the longest rehearsal are the range; later it is rehearsed from where it is, on what was seen.

use super::baseline::{BaselineOptions, BaselinePlanner};
use super::conditioning::{CONDITIONING, Conditioning};
use super::engine::{Planner, rehearse, rehearse_from};
use super::imitation::{self, Imitation};
use super::options::SweepPlan;
use super::perform::{Due, Order, Perform};
use super::record::RunRecord;
use super::setting::Setting;
use super::simulated::{SimulatedDevice, Simulation};
use super::sweep::{ANCHOR_EVERY, GAP_S, SweepPlanner};
use crate::stats::describe::{mean, median};

/// What is to be expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Runs: the fewest and the most that are likely.
    pub runs: (u64, u64),
    /// Seconds, from and to.
    pub seconds: (f64, f64),
    /// Seconds, one figure.
    pub likely_s: f64,
}

impl Forecast {
    /// Of a baseline whose files are written with so many bytes per second.
    #[must_use]
    pub fn of_baseline(options: &BaselineOptions, bytes_per_s: f64) -> Self {
        let first = options.random(1);
        let conditioning = options.conditioning;
        let options =
            BaselineOptions { conditioning: unconditioned(conditioning), ..options.clone() };
        // Every setting of a range is many runs, and of one that is extended again and again some hundreds.
        let ends = |device: &&SimulatedDevice| !options.is_exhaustive() || device.noise < 0.005;
        let devices = imagined();
        let planner = BaselinePlanner::new(options.clone());
        let all: Vec<Rehearsal> =
            devices.iter().filter(ends).map(|device| rehearsed(&planner, device)).collect();
        Self::of(&all, !options.is_exhaustive()).after(conditioning.forecast_s(
            &first,
            options.device_bytes,
            bytes_per_s,
        ))
    }

    /// Of a sweep whose files are written with so many bytes per second.
    #[must_use]
    pub fn of_sweep(planner: &SweepPlanner, bytes_per_s: f64) -> Self {
        let plan = planner.plan();
        let all: Vec<Rehearsal> = match plan.adaptive {
            true => imagined().iter().map(|device| searched(plan, device)).collect(),
            false => imagined().iter().map(|device| in_sequence(planner, device)).collect(),
        };
        let Some(longest) = plan.settings.iter().map(Setting::seconds).reduce(f64::max) else {
            return Self::of(&all, plan.adaptive);
        };
        let found = match plan.settings.first() {
            Some(first) => Self::of(&all, plan.adaptive).after(plan.conditioning.forecast_s(
                first,
                plan.device_bytes,
                bytes_per_s,
            )),
            None => Self::of(&all, plan.adaptive),
        };
        found.within(plan, longest + GAP_S)
    }

    /// Of rehearsals, in which a search found its end, or all was known before. Where runs end early or the next one depends on
    /// what was found, no few devices are the extremes. No run takes longer than it may.
    fn of(all: &[Rehearsal], is_search: bool) -> Self {
        let runs = || all.iter().map(|one| one.runs);
        let (fewest, most) = (runs().min().unwrap_or(0), runs().max().unwrap_or(0));
        let seconds: Vec<f64> = all.iter().map(|one| one.seconds).collect();
        let longest = |of: fn(&Rehearsal) -> f64| all.iter().map(of).fold(0.0, f64::max);
        let (took, full) = (longest(|one| one.seconds), longest(|one| one.full_s));
        let ends_early = all.iter().any(|one| one.seconds < 0.999 * one.full_s);
        let beyond = if is_search || ends_early || fewest < most { BEYOND } else { 0.0 };
        let high = took * (1.0 + beyond);
        // As many runs in other steps: a search takes a little longer or shorter.
        let search = if is_search { 1.02 } else { 1.0 };
        let least = if is_search { fewest as f64 * (1.0 - beyond) } else { fewest as f64 };
        Self {
            runs: (plumb_units::convert::floor_u64(least.ceil()), most),
            seconds: (
                seconds.iter().copied().fold(f64::INFINITY, f64::min) * (1.0 - beyond),
                // More runs than in any rehearsal may come, where their number is open.
                if fewest < most { high } else { high.min(full * search).max(took) },
            ),
            likely_s: median(&seconds),
        }
    }

    /// The same with what comes before the first run: at least, likely and at most so many seconds.
    #[must_use]
    pub fn after(self, (least, likely, most): (f64, f64, f64)) -> Self {
        Self {
            seconds: (self.seconds.0 + least, self.seconds.1 + most),
            likely_s: self.likely_s + likely,
            ..self
        }
    }

    /// Within a budget: not longer than that, and no run is begun that would not fit; settings far below the best are not run a
    /// third time.
    fn within(self, plan: &SweepPlan, longest_s: f64) -> Self {
        let Some(budget) = plan.budget_s else { return self };
        let fit = |seconds: f64| (budget / seconds).min(1.0);
        let all = plan.settings.len() as u64 * u64::from(plan.repetitions);
        let raced = plan.settings.len() as u64 * u64::from(plan.repetitions.saturating_sub(2));
        let least = if plan.adaptive { 1.0 } else { (all - raced) as f64 / all.max(1) as f64 };
        let share = |runs: u64, share: f64| plumb_units::convert::floor_u64(runs as f64 * share);
        Self {
            runs: (
                share(self.runs.0, least.min(fit(self.seconds.1))),
                share(self.runs.1, fit(self.seconds.0)),
            ),
            seconds: (
                (self.seconds.0 * least).min((budget - longest_s).max(0.0)),
                self.seconds.1.min(budget),
            ),
            likely_s: self.likely_s.min(budget),
        }
    }
}

/// What is said of conditioning by rounds is said beside the rehearsal: how long a file is written is no matter of an imagined
/// device.
fn unconditioned(level: Conditioning) -> Conditioning {
    match level {
        Conditioning::PtsFile | Conditioning::PtsDevice => Conditioning::None,
        level => level,
    }
}

/// How far a device may lie beyond the imagined ones.
const BEYOND: f64 = 0.15;

/// Devices of many kinds: where their corners lie, how sharp they are, how calm.
fn imagined() -> Vec<SimulatedDevice> {
    let usual = SimulatedDevice::default;
    let of = |max_iops, latency_us, max_mib_per_s, sharpness| SimulatedDevice {
        max_iops,
        latency_us,
        max_mib_per_s,
        sharpness,
        ..usual()
    };
    vec![
        // A rotating disk.
        SimulatedDevice {
            sequential_cost: 0.2,
            noise: 0.01,
            ripple: 0.05,
            ..of(250.0, 6000.0, 200.0, 3.0)
        },
        // One that is full with the first I/O, and one that never is.
        SimulatedDevice { noise: 0.001, ripple: 0.005, ..of(2000.0, 100.0, 120.0, 5.0) },
        SimulatedDevice { noise: 0.006, ripple: 0.02, ..of(900_000.0, 5000.0, 7000.0, 3.0) },
        // Solid state: calm and restless, sharp and soft, near and far.
        of(70_000.0, 450.0, 1800.0, 4.0),
        SimulatedDevice { noise: 0.02, ripple: 0.08, ..of(70_000.0, 450.0, 1800.0, 2.0) },
        SimulatedDevice { noise: 0.015, ripple: 0.03, ..of(120_000.0, 70.0, 1200.0, 6.0) },
        SimulatedDevice { noise: 0.02, ripple: 0.03, ..of(40_000.0, 900.0, 3000.0, 6.0) },
        of(700_000.0, 90.0, 6000.0, 5.0),
    ]
}

/// A study on one imagined device.
#[derive(Debug, Clone, Copy)]
struct Rehearsal {
    runs: u64,
    seconds: f64,
    /// The seconds if no run had ended early.
    full_s: f64,
}

/// A whole one.
fn rehearsed(planner: &dyn Planner, device: &SimulatedDevice) -> Rehearsal {
    let runs = rehearse(planner, &mut Simulation::new(device.clone()));
    let seconds = runs.last().map_or(0.0, |run| run.ended_s);
    let saved = |run: &RunRecord| run.setting.seconds() + GAP_S - (run.ended_s - run.started_s);
    let saved: f64 = runs.iter().map(|run| saved(run).max(0.0)).sum();
    Rehearsal { runs: runs.len() as u64, seconds, full_s: seconds + saved }
}

/// A search, by that of its first curve.
fn searched(plan: &SweepPlan, device: &SimulatedDevice) -> Rehearsal {
    let planner = SweepPlanner::new(plan.clone());
    let groups = planner.groups().len().max(1);
    let Some(first) = plan.settings.first() else {
        return Rehearsal { runs: 0, seconds: 0.0, full_s: 0.0 };
    };
    let one = SweepPlan {
        settings: planner.searched_with(first),
        anchors: plan.anchors && groups == 1,
        conditioning: unconditioned(plan.conditioning),
        budget_s: None,
        ..plan.clone()
    };
    let one = rehearsed(&SweepPlanner::new(one), device);
    let mut all = one.runs * groups as u64;
    if plan.anchors && groups > 1 {
        all += all / ANCHOR_EVERY as u64 + 1;
    }
    let times = all as f64 / one.runs.max(1) as f64;
    Rehearsal { runs: all, seconds: one.seconds * times, full_s: one.full_s * times }
}

/// Runs that are looked at for how long all of a sweep take.
const LOOKED_AT: usize = 12;

/// A sweep whose runs are known: by how long some of them take.
fn in_sequence(planner: &SweepPlanner, device: &SimulatedDevice) -> Rehearsal {
    let orders: Vec<&Order> = planner.sequence().collect();
    let mut simulation = Simulation::new(device.clone());
    let step = orders.len().div_ceil(LOOKED_AT).max(1);
    let took = |(run, order): (u32, &&Order)| {
        let early_end = planner.early_end(order);
        let performed = simulation.perform(Due { run, seed: 0, order, early_end });
        (performed.ended_s - performed.started_s) / (order.setting.seconds() + GAP_S)
    };
    let shares: Vec<f64> = (1..).zip(orders.iter().step_by(step)).map(took).collect();
    let takes = |share| in_order_s(planner, None, &orders, share);
    Rehearsal { runs: orders.len() as u64, seconds: takes(mean(&shares)), full_s: takes(1.0) }
}

/// Seconds of runs one after the other, each of which takes that share of what it may take, and of the rests between them.
fn in_order_s(
    planner: &dyn Planner,
    last: Option<&RunRecord>,
    orders: &[&Order],
    share: f64,
) -> f64 {
    let mut before = last.map(|run| &run.setting);
    let mut seconds = 0.0;
    for order in orders {
        seconds += before.map_or(0.0, |before| planner.rest_s(before, order));
        seconds += (order.setting.seconds() + GAP_S) * share;
        before = Some(&order.setting);
    }
    seconds
}

/// Seconds that are left after these runs; `None` where nothing is known yet. A search is rehearsed for it.
#[must_use]
pub fn left_s(planner: &dyn Planner, runs: &[RunRecord]) -> Option<f64> {
    let last = runs.last()?;
    left_in_order_s(planner, runs).or_else(|| {
        let mut imitation = Imitation::of(runs, share(runs));
        let more = rehearse_from(planner, &mut imitation, runs);
        Some(more.last().map_or(0.0, |run| run.ended_s - last.ended_s))
    })
}

/// The same where all runs that are left are known, which takes no rehearsal; `None` where they are not.
#[must_use]
pub fn left_in_order_s(planner: &dyn Planner, runs: &[RunRecord]) -> Option<f64> {
    let last = runs.last()?;
    let orders = planner.known(runs)?;
    Some(in_order_s(planner, Some(last), &orders, share(runs)))
}

/// How long runs took of what they may.
fn share(runs: &[RunRecord]) -> f64 {
    let measured: Vec<RunRecord> =
        runs.iter().filter(|run| run.step != CONDITIONING).cloned().collect();
    if measured.is_empty() { 1.0 } else { imitation::share(&measured) }
}
