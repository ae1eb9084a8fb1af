//! Storage Tiers Optimization of a virtual disk that works: a plan from its heat, and the moves that the plan asks
//! for, while requests go on (10.2 to 10.7).

use std::time::Instant;

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64};
use serde_json::{Value, json};

use super::Engine;
use super::moved::{MoveDone, MoveOutcome};
use super::moves::Wanted;
use super::view::{Placed, Published, TierView};
use crate::extents::{Extents, UNMAPPED, is_second_tier};
use crate::format::Config;
use crate::io::measure_of;
use crate::optimizer::{
    Expected, Measured, Move, MoveHistory, MoveReason, PinStatus, PinTable, Placement, Plan,
    PlanLimits, TierName, Worth,
};
use crate::tier_report::{HeatGap, MoveFigures, MoveLimits, MoveStop, TierReport};

/// Working sets that are remembered.
const WORKING_SETS: usize = 7;
/// The share of the devices' time that a trickle takes.
const TRICKLE: f64 = 0.05;
/// In the window of one trickle little happens to an extent: windows are as long as it takes to see that a load has ended or begun.
pub(crate) const TRICKLE_WINDOW_H: u64 = 6;
/// Longest wait for devices at a time while optimizations end.
const END_GLANCE: Nanos = Nanos(5_000_000);

/// How an optimization is to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptimizeSettings {
    /// The most that it moves.
    pub limits: PlanLimits,
    /// How long it may take; then what is left waits for the next one.
    pub time: Nanos,
    /// Extents under way at a time: 1 to 8.
    pub movers: u32,
    /// Bytes per second, at most; fewer while requests suffer. `None`: no throttle at all.
    pub rate: Option<u64>,
    /// Low priority: slower while requests suffer. Otherwise, at normal priority (option H of 10.5), as fast as `rate` and `ios` allow.
    pub gives_way: bool,
    /// I/Os per second on devices, at most.
    pub ios: Option<u64>,
    /// Slots of the Performance tier that are to be free for new data (`fast_reserve`).
    pub reserve: u64,
    /// Times which the bar is raised.
    pub raised: f32,
    /// A window of the heat map that is not so many hours old goes on.
    pub window_hours: u64,
}

impl OptimizeSettings {
    /// A bounded trickle through the day (10.6): every 15 minutes what clears twice the bar, at so many bytes per second at most.
    #[must_use]
    pub fn continuous(rate: u64) -> Self {
        let (raised, time) = (2.0, Nanos::from_secs(900));
        Self { rate: Some(rate), raised, time, window_hours: TRICKLE_WINDOW_H, ..Self::default() }
    }

    /// What moves of two optimizations at once keep to: they have one throttle, and neither goes beyond its own limits.
    fn both(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self {
            movers: self.movers.min(other.movers),
            rate: least(self.rate, other.rate),
            gives_way: self.gives_way || other.gives_way,
            ios: least(self.ios, other.ios),
            ..self
        }
    }

    /// The same for reports, of a virtual disk with such extents and so many copies.
    fn told(&self, extent_bytes: u64, copies: u8) -> MoveLimits {
        let budget =
            |extents: u64, each: u64| (extents != u64::MAX).then(|| extents.saturating_mul(each));
        MoveLimits {
            seconds: self.time.as_secs_f64(),
            movers: self.movers,
            bytes_per_s: self.rate,
            ios_per_s: self.ios,
            gives_way: self.gives_way,
            moved_bytes: budget(self.limits.moved, extent_bytes),
            promoted_bytes: budget(
                self.limits.promoted,
                extent_bytes.saturating_mul(copies.into()),
            ),
            reserve_bytes: self.reserve.saturating_mul(extent_bytes),
        }
    }
}

impl Default for OptimizeSettings {
    /// 13,500 s, 8 movers, 1 GiB/s at most and throttled (10.5).
    fn default() -> Self {
        Self {
            limits: PlanLimits::none(),
            time: Nanos::from_secs(13_500),
            movers: 8,
            rate: Some(1 << 30),
            gives_way: true,
            ios: None,
            reserve: 0,
            raised: 1.0,
            window_hours: 0,
        }
    }
}

/// What a virtual disk's optimizations go by, beside its heat.
#[derive(Debug, Clone)]
pub struct Tiering {
    /// What belongs where.
    pub pins: PinTable,
    /// What moved lately.
    pub history: MoveHistory,
    /// When the window of the heat map began, in seconds of the clock that is told.
    pub window_start_s: f64,
    /// Extents of the working sets of the last runs, the newest last.
    pub working_sets: Vec<u64>,
    /// Heat of this window that was lost.
    pub heat_gap: Option<HeatGap>,
    /// Seconds of this window whose host I/O was not counted, at most: programs that counted it ended without a word.
    pub uncounted_s: u64,
    /// What its disks were measured to take, up to this start of its pool.
    pub measured: Measured,
    /// Extents that moves brought to the Performance tier, less those that they took from it, since that is counted.
    pub brought: i64,
}

/// The result record of an optimization (10.7), and the report on the window that it was planned by.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimization {
    /// With what was requested and moved, and why it ended.
    pub report: TierReport,
    /// Seconds of planning.
    pub planning_s: f64,
    /// Share of host I/Os on the Performance tier before, by the window; `None` without I/O.
    pub share_before: Option<f64>,
    /// The share that the whole plan would have served. What the moves that were made serve is in the report.
    pub share_planned: Option<f64>,
    /// Moves that could not be made, and why.
    pub refused: Vec<(MoveOutcome, u64)>,
}

/// A run.
#[derive(Debug)]
struct Run {
    told: Optimization,
    made: Vec<Move>,
    expected: Expected,
    left: u64,
    /// Places of the Performance tier that were made for extents which then could not be moved.
    spare: u64,
    began: Nanos,
    settings: OptimizeSettings,
    /// The window that it was planned by goes on.
    goes_on: bool,
    /// Bytes that its moves wrote to new places, copies counted once; also of moves that were given up.
    bytes: u64,
    stop: MoveStop,
    /// Writes of the pool before it began.
    writes: u64,
}

impl Run {
    /// What it has come to, if it ends now for that reason; `writes` are those of the pool up to now.
    fn result(&self, (now, writes): (Nanos, u64), stop: MoveStop) -> Optimization {
        let up = self.made.iter().filter(|made| made.to == TierName::Performance).count();
        let mut told = self.told.clone();
        let moves = MoveFigures {
            up: to_u64(up),
            down: to_u64(self.made.len() - up),
            bytes: self.bytes,
            seconds: now.since(self.began).as_secs_f64(),
            stop,
            ..told.report.facts.moves
        };
        told.report.moves_ended(moves, self.expected.share());
        told.report.note_refused(&told.refused, writes > self.writes);
        told
    }
}

/// Counts one that could not be moved.
fn refused_more(refused: &mut Vec<(MoveOutcome, u64)>, why: MoveOutcome) {
    match refused.iter_mut().find(|one| one.0 == why) {
        Some(one) => one.1 += 1,
        None => refused.push((why, 1)),
    }
}

/// What is known for the optimizer of each virtual disk.
#[derive(Debug)]
pub(super) struct Optimizer {
    own: Vec<(Tiering, Option<Run>, Option<Optimization>)>,
}

impl Optimizer {
    pub(super) fn new(config: &Config) -> Self {
        let tiering = || Tiering {
            pins: PinTable::new(config.extent_bytes.into()),
            history: MoveHistory::new(),
            window_start_s: 0.0,
            working_sets: Vec::new(),
            heat_gap: None,
            uncounted_s: 0,
            measured: Measured::default(),
            brought: 0,
        };
        Self { own: config.vdisks.iter().map(|_| (tiering(), None, None)).collect() }
    }

    /// A move of an optimization of that virtual disk has written so many bytes.
    pub(super) fn note_bytes(&mut self, vdisk: usize, bytes: u64) {
        if let Some(run) = self.own.get_mut(vdisk).and_then(|own| own.1.as_mut()) {
            run.bytes += bytes;
        }
    }

    /// What moves keep to while these optimizations are under way; `None` without any.
    fn limits(&self) -> Option<OptimizeSettings> {
        let runs = self.own.iter().filter_map(|own| own.1.as_ref());
        runs.map(|run| run.settings).reduce(OptimizeSettings::both)
    }
}

/// The engine's map as the planner sees it.
pub(crate) struct MapPlacement<'a> {
    extents: &'a Extents,
    first: u32,
    count: u32,
}

impl<'a> MapPlacement<'a> {
    /// That of a virtual disk.
    pub(super) fn of(config: &Config, extents: &'a Extents, vdisk: u32) -> Self {
        let own = &config.vdisks[index(vdisk)];
        Self { extents, first: own.first_extent, count: own.extents }
    }
}

impl Placement for MapPlacement<'_> {
    fn extents(&self) -> u32 {
        self.count
    }

    fn tier(&self, extent: u32) -> Option<TierName> {
        match self.extents.place(self.first + extent) {
            UNMAPPED => None,
            place if is_second_tier(place) => Some(TierName::Capacity),
            _ => Some(TierName::Performance),
        }
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// What the optimizations of a virtual disk go by.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn tiering(&self, vdisk: u32) -> &Tiering {
        &self.optimizer.own[index(vdisk)].0
    }

    /// The same, to pin and to restore.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn tiering_mut(&mut self, vdisk: u32) -> &mut Tiering {
        &mut self.optimizer.own[index(vdisk)].0
    }

    /// The map as the planner sees it.
    pub(crate) fn placement(&self, vdisk: u32) -> MapPlacement<'_> {
        MapPlacement::of(&self.core.members.config, &self.core.extents, vdisk)
    }

    /// How a trickle through the day is to be made on a virtual disk: its moves take 5 % of the time of either tier's disks at most.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn continuous_settings(&self, vdisk: u32) -> OptimizeSettings {
        let rate = [0, 1].map(|tier| self.rate_of_share(vdisk, tier, TRICKLE));
        OptimizeSettings::continuous(rate[0].min(rate[1]))
    }

    /// What the disks of a virtual disk's tiers were measured to take, in this start of its pool or an earlier one.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn measured(&self, vdisk: u32) -> Measured {
        let tiers = &self.core.members.config.vdisks[index(vdisk)].tiers;
        let of = |tier: usize| {
            let slabs = tiers.get(tier).into_iter().flat_map(|tier| &tier.rows);
            let disks = slabs.flat_map(|row| &row.slabs).map(|(disk, _)| *disk);
            let disks: std::collections::BTreeSet<u16> = disks.collect();
            measure_of(disks.iter().map(|disk| self.core.io.busy(*disk)))
        };
        let hosts = self.core.io.host_line();
        let now = Measured { performance: of(0), capacity: of(1), hosts };
        now.or(&self.tiering(vdisk).measured)
    }

    /// What makes a move of a virtual disk's extents worth it, and how that is known.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn worth(&self, vdisk: u32) -> Worth {
        self.measured(vdisk).worth(self.core.members.config.extent_bytes.into())
    }

    /// All that its plans and reports are told from.
    pub(super) fn view(&self, vdisk: u32) -> TierView<'_, MapPlacement<'_>> {
        let config = &self.core.members.config;
        TierView {
            name: format!("{}/{}", config.name, config.vdisks[index(vdisk)].name),
            extent_bytes: config.extent_bytes.into(),
            heat: self.heat_as_it_is(vdisk),
            what_if: self.what_if_as_it_is(vdisk),
            served: self.served(vdisk),
            tiering: self.tiering(vdisk),
            measured: self.measured(vdisk),
            placement: self.placement(vdisk),
            performance_slots: self.core.extents.room(index(vdisk), 0).0,
            capacity_free: self.core.extents.room(index(vdisk), 1).1,
            optimizing: self.optimizing(vdisk),
        }
    }

    /// How the pins of a virtual disk stand.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn pin_statuses(&self, vdisk: u32) -> Vec<PinStatus> {
        self.view(vdisk).pin_statuses()
    }

    /// How a range of a virtual disk, offset and length in bytes, stands as if it were pinned to a tier.
    ///
    /// # Panics
    /// When there is no such virtual disk, or the range is empty.
    #[must_use]
    pub fn range_status(&self, vdisk: u32, range: (u64, u64), tier: TierName) -> PinStatus {
        self.view(vdisk).range_status(range, tier).expect("a range that is not empty")
    }

    /// What an optimization would do now. Nothing moves.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn plan_optimization(&mut self, vdisk: u32, settings: &OptimizeSettings) -> Plan {
        self.heat(vdisk);
        self.view(vdisk).plan(settings)
    }

    /// Extents of its Performance tier that data may use.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn performance_slots(&self, vdisk: u32) -> u64 {
        self.core.extents.room(index(vdisk), 0).0
    }

    /// The report on the present window, at `now_s` of the clock that the report is by.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn tier_report(&mut self, vdisk: u32, now_s: f64) -> TierReport {
        self.heat(vdisk);
        self.view(vdisk).report(now_s)
    }

    /// What is told beside heat and pins to whoever only reads.
    pub(super) fn published(&self, vdisk: u32) -> Published {
        let view = self.view(vdisk);
        Published {
            placed: Placed::of(&view.placement),
            performance_slots: view.performance_slots,
            capacity_free: view.capacity_free,
            optimizing: view.optimizing,
        }
    }

    /// Begins an optimization at `now_s` of the clock that reports are by; `false` when one is under way. The window
    /// of the heat map ends with it, and a new one begins, unless the settings let it go on.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn optimize(&mut self, vdisk: u32, settings: &OptimizeSettings, now_s: f64) -> bool {
        if self.optimizing(vdisk) {
            return false;
        }
        let began = Instant::now();
        let planned = self.plan_optimization(vdisk, settings);
        let planning_s = began.elapsed().as_secs_f64();
        let view = self.view(vdisk);
        let mut report = view.report_on(now_s, &planned, true);
        report.facts.moves.up_requested = planned.count(TierName::Performance);
        // Those that have nowhere to go are wanted there, too.
        report.facts.moves.down_requested = planned.count(TierName::Capacity) + planned.stuck;
        let copies = self.core.members.config.vdisks[index(vdisk)].copies;
        let told = settings.told(self.core.members.config.extent_bytes.into(), copies);
        report.facts.moves.limits = Some(told);
        report.note_reserve_pinned(planned.reserve_pinned);
        let expected = Expected::new(&planned, self.heat_as_it_is(vdisk));
        let working_set = report.working_set;
        let goes_on =
            self.heat(vdisk).window_hours().is_some_and(|age| age < settings.window_hours);
        let heat = self.heats.of(index(vdisk));
        self.optimizer.own[index(vdisk)].0.history.planned(&planned, heat, !goes_on);
        if !goes_on {
            self.begin_heat_window(vdisk);
        }
        let share_before =
            (planned.ios > 0).then(|| planned.ios_before as f64 / planned.ios as f64);
        let stop = if planned.budget_spent { MoveStop::Budget } else { MoveStop::Done };
        let run = Run {
            told: Optimization {
                report,
                planning_s,
                share_before,
                share_planned: planned.expected_share(),
                refused: (planned.stuck > 0)
                    .then_some((MoveOutcome::NoRoomBelow, planned.stuck))
                    .into_iter()
                    .collect(),
            },
            made: Vec::new(),
            expected,
            left: to_u64(planned.moves.len()),
            spare: 0,
            began: self.now,
            settings: *settings,
            goes_on,
            bytes: 0,
            stop,
            writes: self.writes(),
        };
        let (own, current, _) = &mut self.optimizer.own[index(vdisk)];
        if !goes_on {
            own.window_start_s = now_s;
            (own.heat_gap, own.uncounted_s) = (None, 0);
            own.working_sets.push(working_set);
            let old = own.working_sets.len().saturating_sub(WORKING_SETS);
            own.working_sets.drain(..old);
        }
        *current = Some(run);
        self.keep_to_limits();
        for planned in &planned.moves {
            self.make_planned(vdisk, planned);
        }
        self.end_runs();
        true
    }

    /// Has moves keep to the limits of all optimizations that are under way, if there is one.
    fn keep_to_limits(&mut self) {
        let Some(all) = self.optimizer.limits() else { return };
        self.set_movers(all.movers);
        self.set_move_rate(all.rate);
        self.set_moves_give_way(all.gives_way);
        self.set_move_ios(all.ios);
    }

    /// Whether an optimization of the virtual disk is under way.
    #[must_use]
    pub fn optimizing(&self, vdisk: u32) -> bool {
        self.optimizer.own.get(index(vdisk)).is_some_and(|own| own.1.is_some())
    }

    /// Extents that an optimization under way has moved, and those that it has yet to move.
    #[must_use]
    pub fn optimization_progress(&self, vdisk: u32) -> Option<(u64, u64)> {
        let run = self.optimizer.own.get(index(vdisk))?.1.as_ref()?;
        Some((to_u64(run.made.len()), run.left))
    }

    /// What would be told of an optimization under way if its program ended now; `None` without one.
    #[must_use]
    pub fn optimization_so_far(&self, vdisk: u32) -> Option<Optimization> {
        let run = self.optimizer.own.get(index(vdisk))?.1.as_ref()?;
        Some(run.result((self.now, self.writes()), MoveStop::Interrupted))
    }

    /// Ends the optimization: what is moved stays where it is now, and the next one goes on.
    pub fn cancel_optimization(&mut self, vdisk: u32) {
        self.stop_run(vdisk, MoveStop::Cancelled);
    }

    /// The same, for a load that wants the pool.
    pub fn interrupt_optimization(&mut self, vdisk: u32) {
        self.stop_run(vdisk, MoveStop::Load);
    }

    /// Ends all optimizations, as an end of the engine would, but with a result: `now` is asked for the time while the
    /// moves under way end.
    pub fn end_optimizations(&mut self, now: impl Fn() -> Nanos) {
        let all: Vec<u32> = (0..).take(self.optimizer.own.len()).collect();
        all.iter().for_each(|vdisk| self.cancel_optimization(*vdisk));
        while self.halted.is_none() && all.iter().any(|vdisk| self.optimizing(*vdisk)) {
            self.poll(now(), END_GLANCE);
        }
    }

    /// The result of the optimization that ended last, once.
    pub fn take_optimization(&mut self, vdisk: u32) -> Option<Optimization> {
        self.optimizer.own.get_mut(index(vdisk))?.2.take()
    }

    /// Ends the optimization of a virtual disk, if there is one, with that reason.
    pub(super) fn stop_run(&mut self, vdisk: u32, stop: MoveStop) {
        let run = self.optimizer.own.get_mut(index(vdisk)).and_then(|own| own.1.as_mut());
        if let Some(run) = run {
            run.stop = stop;
            self.call_off(vdisk);
        }
        self.end_runs();
    }

    /// Calls off the moves of a virtual disk. Those that wait in line never began: none of them counts as given up.
    fn call_off(&mut self, vdisk: u32) {
        let aborted = self.moves.counters.aborted;
        self.cancel_moves_of(Some(vdisk));
        self.moves.counters.aborted = aborted;
    }

    /// Writes of all virtual disks that were asked for since the start.
    fn writes(&self) -> u64 {
        self.uses.iter().map(|own| own.writes.count + own.zeroes.count).sum()
    }

    /// A move of an optimization has ended.
    pub(super) fn note_move(&mut self, done: MoveDone, reason: MoveReason) {
        let MoveDone { vdisk, extent, to, outcome } = done;
        let Some(run) = &mut self.optimizer.own[index(vdisk)].1 else { return };
        run.left = run.left.saturating_sub(1);
        let refused = &mut run.told.refused;
        match outcome {
            MoveOutcome::Moved => {
                run.expected.moved(extent, to);
                run.made.push(Move { extent, score: 0.0, to, reason });
            }
            // Whoever called them off without a word of why.
            MoveOutcome::Cancelled if matches!(run.stop, MoveStop::Done | MoveStop::Budget) => {
                run.stop = MoveStop::Cancelled;
            }
            MoveOutcome::Cancelled => {}
            // Its place was made before, and is the next one's now.
            MoveOutcome::Busy | MoveOutcome::Unreadable | MoveOutcome::Unmapped
                if to == TierName::Performance =>
            {
                run.spare += 1;
                refused_more(refused, outcome);
            }
            other => refused_more(refused, other),
        }
    }

    /// Whether an extent is to leave for one that is hotter, while there is a place already which another left unused: a demotion alone
    /// costs time and wear, and frees space that nobody asks for (DD-1).
    pub(super) fn is_needless(&mut self, vdisk: usize, wanted: &Wanted) -> bool {
        let is_for_room =
            wanted.to == TierName::Capacity && wanted.reason == Some(MoveReason::Heat);
        let free = self.core.extents.room(vdisk, 0).1;
        let Some(run) = self.optimizer.own.get_mut(vdisk).and_then(|own| own.1.as_mut()) else {
            return false;
        };
        let needless = is_for_room && run.spare > 0 && free > run.settings.reserve;
        run.spare -= u64::from(needless);
        needless
    }

    /// Ends the runs whose moves have ended, or whose time is over.
    pub(super) fn end_runs(&mut self) {
        let writes = self.writes();
        for vdisk in 0..self.optimizer.own.len() {
            let Some(run) = &mut self.optimizer.own[vdisk].1 else { continue };
            let time = run.settings.time;
            let late = self.now.since(run.began) >= time && run.stop != MoveStop::Time;
            if self.halted.is_some() {
                run.stop = MoveStop::Error;
            } else if run.left > 0
                && late
                && !matches!(run.stop, MoveStop::Cancelled | MoveStop::Load)
            {
                run.stop = MoveStop::Time;
                let vdisk = u32::try_from(vdisk).unwrap_or(u32::MAX);
                self.call_off(vdisk);
            }
            let (own, run, last) = &mut self.optimizer.own[vdisk];
            let ended = |run: &mut Run| run.left == 0 || self.halted.is_some();
            let Some(run) = run.take_if(ended) else { continue };
            let limits = run.settings;
            let heat = self.heats.of(vdisk);
            own.history.spend(&run.made, heat, self.core.extents.room(vdisk, 0).0);
            match run.goes_on {
                true => own.history.run_went_on(&run.made),
                false => own.history.run_ended(&run.made),
            }
            *last = Some(run.result((self.now, writes), run.stop));
            // What is left of the others' moves keeps to theirs alone.
            if self.optimizer.limits().is_some_and(|left| left.both(limits) != left) {
                self.keep_to_limits();
            }
        }
    }
}

impl Optimization {
    /// The record for programs: the report, and what is known of the run beside it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut value = self.report.to_json();
        let refused = |one: &(MoveOutcome, u64)| json!({ "why": one.0.name(), "extents": one.1 });
        value["optimization"] = json!({
            "planning_s": self.planning_s,
            "moving_s": self.report.facts.moves.seconds,
            "stop": self.report.facts.moves.stop.name(),
            "share_before_percent": self.share_before.map(|share| 100.0 * share),
            "share_planned_percent": self.share_planned.map(|share| 100.0 * share),
            "share_expected_percent": self.report.facts.expected_share.map(|share| 100.0 * share),
            "refused": self.refused.iter().map(refused).collect::<Vec<Value>>(),
        });
        value
    }
}
