//! The Storage Tier Optimization Report (spec 11): which share of I/O a Performance tier of which size serves.

mod advice;
mod csv;
mod diff;
mod filling;
mod json;
mod reach;
#[cfg(test)]
mod tests;
mod text;
#[cfg(test)]
mod waiting_tests;
mod warning;

use plumb_units::Bytes;
use plumb_units::convert::{to_u64, to_usize};

pub use advice::{Advice, WeakPin};
pub use csv::{csv_of, figures_csv};
pub use diff::{ReportChange, diff};
pub use filling::{Filling, Sample};
pub(crate) use json::in_present_names;
pub(crate) use reach::History;
pub use reach::{Reach, Waits};
pub use warning::Warning;

use crate::engine::MoveOutcome;
use crate::heat::HeatMap;
use crate::optimizer::{PinId, PinTable, Thrash, TierName, Worth};
use crate::what_if::{WhatIf, WhatIfPoint};

/// What was requested of an optimization and done.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MoveFigures {
    /// Extents that are worth a move up, within a budget or not.
    pub up_requested: u64,
    /// Extents that it moved up.
    pub up: u64,
    /// Extents that are to move down, for those or by themselves.
    pub down_requested: u64,
    /// Extents that it moved down.
    pub down: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Seconds of moving.
    pub seconds: f64,
    /// Why it ended.
    pub stop: MoveStop,
    /// What it was to keep to; `None` where nothing limits it, or nobody knows.
    pub limits: Option<MoveLimits>,
}

/// What an optimization was to keep to (10.1, 10.5).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoveLimits {
    /// Seconds that it may take.
    pub seconds: f64,
    /// Extents under way at a time.
    pub movers: u32,
    /// Bytes moved per second; `None`: no limit.
    pub bytes_per_s: Option<u64>,
    /// I/Os on devices per second; `None`: no limit.
    pub ios_per_s: Option<u64>,
    /// Low priority: slower while requests suffer.
    pub gives_way: bool,
    /// Bytes moved in all; `None`: no budget.
    pub moved_bytes: Option<u64>,
    /// Bytes written to the Performance tier, those of all copies; `None`: no budget.
    pub promoted_bytes: Option<u64>,
    /// Bytes of the Performance tier that it keeps free.
    pub reserve_bytes: u64,
}

impl MoveLimits {
    /// `low` or `normal` (option H of 10.5).
    #[must_use]
    pub fn priority(&self) -> &'static str {
        if self.gives_way { "low" } else { "normal" }
    }
}

/// Why an optimization ended (10.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MoveStop {
    /// All was moved.
    #[default]
    Done,
    /// Its time was over.
    Time,
    /// A budget was spent.
    Budget,
    /// Somebody called it off, or what is observed ended before it.
    Cancelled,
    /// A load wanted the pool that a command optimized.
    Load,
    /// The program that made it ended without a word.
    Interrupted,
    /// The space stopped, or nothing of the virtual disk is taken for durable any more.
    Error,
}

impl MoveStop {
    /// As it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Time => "time",
            Self::Budget => "budget",
            Self::Cancelled => "cancelled",
            Self::Load => "interrupted by a load",
            Self::Interrupted => "interrupted",
            Self::Error => "error",
        }
    }
}

/// Bytes of a window's host I/O, and what the write-back cache had of them (REP-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowBytes {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Bytes read that the cache served.
    pub cache_read: u64,
    /// Bytes written that the cache took.
    pub cache_written: u64,
    /// Bytes written to the Capacity tier past the cache.
    pub bypassed: u64,
    /// How often the cache became full: a write that it would have taken found no room.
    pub times_full: u64,
}

impl WindowBytes {
    /// What this has over `other`, field by field. Differences may be negative for a while: counts begin anew with each
    /// start, windows do not.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        let (mut fields, others) = (self.fields(), other.fields());
        for (field, other) in fields.iter_mut().zip(others) {
            *field = field.wrapping_sub(other);
        }
        Self::of_fields(fields)
    }

    /// Its fields, in their order.
    #[must_use]
    pub const fn fields(self) -> [u64; 6] {
        let Self { read, written, cache_read, cache_written, bypassed, times_full } = self;
        [read, written, cache_read, cache_written, bypassed, times_full]
    }

    /// One of these fields.
    #[must_use]
    pub const fn of_fields(fields: [u64; 6]) -> Self {
        let [read, written, cache_read, cache_written, bypassed, times_full] = fields;
        Self { read, written, cache_read, cache_written, bypassed, times_full }
    }
}

/// What a window does not know, because what was kept of the heat map was damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeatGap {
    /// Everything before the start of the pool that found it so.
    All,
    /// So many pages of 256 extents.
    Pages(u64),
}

/// What the report needs beside heat and pins.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportFacts {
    /// Name of the virtual disk.
    pub name: String,
    /// When the window began, in seconds of the clock that the report is by.
    pub window_start_s: f64,
    /// When it ended.
    pub window_end_s: f64,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Slots of the Performance tier that data may use.
    pub performance_slots: u64,
    /// Host I/Os that the Performance tier answered.
    pub answered_performance: u64,
    /// Host I/Os that the write-back cache answered.
    pub answered_cache: u64,
    /// All host I/Os that were answered.
    pub answered: u64,
    /// Those of them that no device answered: what was never written is zero. No tier of any size serves more or less of them.
    pub answered_zeros: u64,
    /// Expected share under the placement just made.
    pub expected_share: Option<f64>,
    /// Whether an optimization was planned by the window; otherwise the window goes on.
    pub optimizes: bool,
    /// Extents pinned to the Performance tier for which it has no room.
    pub pins_refused: u64,
    /// Pins whose extents are to be moved yet: they have had no effect so far.
    pub pins_pending: Vec<PinId>,
    /// What an optimization at the end of the window makes of it; `None` without I/O.
    pub reach: Option<Reach>,
    /// What such an optimization leaves out of what it would swap.
    pub waits: Waits,
    /// What makes a move worth it.
    pub worth: Worth,
    /// What was moved.
    pub moves: MoveFigures,
    /// What went back and forth.
    pub thrash: Thrash,
    /// Extents of the working sets of the runs before, the newest last.
    pub working_sets: Vec<u64>,
    /// Bytes of host I/O and of the write-back cache; `None` where nobody counted them.
    pub bytes: Option<WindowBytes>,
    /// What heat was lost in the window.
    pub heat_gap: Option<HeatGap>,
    /// Seconds of the window whose host I/O was not counted, at most: programs that counted it ended without a word.
    pub uncounted_s: u64,
    /// What caches of some sizes would have served of the window, by extents and by blocks of 4 KiB (BEY-1); empty where
    /// nobody followed it.
    pub what_if: Vec<(WhatIfPoint, WhatIfPoint)>,
}

impl ReportFacts {
    /// Host I/Os that a device had to answer.
    #[must_use]
    pub fn answered_by_devices(&self) -> u64 {
        self.answered.saturating_sub(self.answered_zeros)
    }

    /// The curve at the sizes that a report shows: from an eighth to four times the Performance tier.
    #[must_use]
    pub fn curve(what_if: &WhatIf, performance_bytes: u64) -> Vec<(WhatIfPoint, WhatIfPoint)> {
        let sizes = (0..6).map(|shift| (performance_bytes << 2) >> (5 - shift));
        let point = |size: u64| Some((what_if.by_extents(size)?, what_if.by_blocks(size)?));
        sizes.filter(|size| *size > 0).filter_map(point).collect()
    }
}

/// A row of the table: so large must the tier be to serve so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRow {
    /// Percent of host I/Os.
    pub percent: u8,
    /// Extents, the hottest.
    pub extents: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What is pinned to a tier.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PinnedFigures {
    /// Bytes of the pinned ranges.
    pub bytes: u64,
    /// Host I/Os on pinned extents.
    pub ios: u64,
}

/// A report.
#[derive(Debug, Clone, PartialEq)]
pub struct TierReport {
    /// What it was made of.
    pub facts: ReportFacts,
    /// Host I/Os on extents whose counts were kept; the table is about these.
    pub ios: u64,
    /// 100, 95, ... 5 percent; empty without I/O (REP-1).
    pub rows: Vec<SizeRow>,
    /// The same for extents without a pin.
    pub rows_unpinned: Vec<SizeRow>,
    /// Pinned to the Performance tier.
    pub pinned_performance: PinnedFigures,
    /// Pinned to the Capacity tier.
    pub pinned_capacity: PinnedFigures,
    /// Extents that took I/O.
    pub working_set: u64,
    /// Host I/Os whose extents are not known any more: their pages were dropped, or a queue had no room.
    pub ios_lost: u64,
    /// How many times as much as single I/Os those of the load vary.
    pub dispersion: f32,
    /// What to do.
    pub advice: Advice,
}

impl TierReport {
    /// Of the window that the heat map is in, and of the extents that have a place now: reads of what was never written need
    /// none (REP-2). Depends on nothing else.
    #[must_use]
    pub fn new(
        facts: &ReportFacts,
        heat: &HeatMap,
        pins: &PinTable,
        is_mapped: impl Fn(u32) -> bool,
    ) -> Self {
        let (mut all, mut unpinned) = (Vec::new(), Vec::new());
        let mut pinned = [PinnedFigures::default(); 2];
        let mut by_pin = vec![0_u64; pins.pins().len()];
        // Extents pinned to the Performance tier, each with the I/Os up to it.
        let mut pinned_up: Vec<(u32, u64)> = Vec::new();
        let zones = pins.zones();
        for pin in pins.pins() {
            pinned[place(pin.tier)].bytes += pin.len;
        }
        let mut working_set = 0;
        for (extent, seen) in heat.touched() {
            let ios = seen.ios();
            if ios == 0 || !is_mapped(extent) {
                continue;
            }
            working_set += 1;
            all.push(ios);
            match crate::optimizer::zone_at(&zones, extent) {
                None => unpinned.push(ios),
                Some(zone) => {
                    by_pin[zone.pin] += ios;
                    let figures = &mut pinned[place(pins.pins()[zone.pin].tier)];
                    figures.ios += ios;
                    if pins.pins()[zone.pin].tier == TierName::Performance {
                        pinned_up.push((extent, figures.ios));
                    }
                }
            }
        }
        let rows = rows_of(&mut all, facts.extent_bytes);
        let rows_unpinned = rows_of(&mut unpinned, facts.extent_bytes);
        let dropped = heat.dropped();
        let ios = all.iter().sum();
        let before = |extent: u32| {
            let place = pinned_up.partition_point(|one| one.0 < extent);
            place.checked_sub(1).map_or(0, |last| pinned_up[last].1)
        };
        let mut decides = vec![false; pins.pins().len()];
        zones.iter().for_each(|zone| decides[zone.pin] = true);
        let within = |((first, last), decides): ((u32, u32), bool)| {
            decides.then(|| before(last.saturating_add(1)).saturating_sub(before(first)))
        };
        let within_pin: Vec<Option<u64>> = pins.ranges().zip(decides).map(within).collect();
        let advice = Advice::of(facts, &all, working_set, pins, (&by_pin, &within_pin));
        Self {
            facts: facts.clone(),
            ios,
            rows,
            rows_unpinned,
            pinned_performance: pinned[place(TierName::Performance)],
            pinned_capacity: pinned[place(TierName::Capacity)],
            working_set,
            ios_lost: dropped.ios.saturating_add(dropped.missed),
            dispersion: heat.dispersion(),
            advice,
        }
    }

    /// Takes what became of the moves that were planned by the window, and the share that is expected now.
    pub(crate) fn moves_ended(&mut self, moves: MoveFigures, expected_share: Option<f64>) {
        (self.facts.moves, self.facts.expected_share) = (moves, expected_share);
        if self.rows.is_empty() {
            // What was said before they moved; what else there is to say stays.
            self.advice.suggestions[0] = advice::without_io(&self.facts);
        }
        self.note_moves_left();
    }

    /// By how many points the share that was served may differ by chance from what such a load has served of it: the half of an
    /// interval that holds it in 95 of a hundred, with I/Os that come in bunches counted as fewer. `None` without I/O, and where heat
    /// of the window was lost as a whole, or a part of the window was not counted: that is no sample of it.
    #[must_use]
    pub fn half_width_points(&self) -> Option<f64> {
        /// Deviations of a normal law that hold 95 of a hundred.
        const DEVIATIONS: f64 = 1.96;
        let share = self.serviced_percent()? / 100.0;
        let ios = self.facts.answered_by_devices() as f64 / f64::from(self.dispersion);
        let facts = &self.facts;
        let of_a_whole = facts.heat_gap != Some(HeatGap::All) && facts.uncounted_s == 0;
        of_a_whole.then(|| 100.0 * DEVIATIONS * (share * (1.0 - share) / ios).sqrt())
    }

    /// Says what is left, and what to do about it, when the moves ended before they were all made.
    fn note_moves_left(&mut self) {
        let moves = &self.facts.moves;
        let requested = moves.up_requested + moves.down_requested;
        let left = requested.saturating_sub(moves.up + moves.down);
        let least = self.least_budget();
        let remedy = match moves.stop {
            MoveStop::Done => return,
            MoveStop::Time => "allow more time, or let the next optimization go on",
            MoveStop::Budget if moves.up + moves.down == 0 => &least,
            MoveStop::Budget => "raise the budget of moves, or let the next optimization go on",
            MoveStop::Cancelled | MoveStop::Load | MoveStop::Interrupted => {
                "the next optimization goes on"
            }
            MoveStop::Error => "see the events of the pool; the next optimization goes on",
        };
        if left > 0 {
            let why = moves.stop.name();
            let suggestions = &mut self.advice.suggestions;
            suggestions.retain(|suggestion| suggestion != advice::NOTHING);
            suggestions
                .push(format!("{left} of {requested} extents were not moved ({why}): {remedy}"));
        }
    }

    /// The least that helps where a budget admitted no move: the next optimization would do nothing either.
    fn least_budget(&self) -> String {
        let extent = self.facts.extent_bytes;
        let moved = self.facts.moves.limits.and_then(|limits| limits.moved_bytes);
        // Nothing moved, so the first extent that is to go up found no free place.
        match moved.filter(|moved| *moved < 2 * extent) {
            Some(_) => format!(
                "raise the budget of moves to {} at least: one extent goes down for one that goes up",
                Bytes(2 * extent)
            ),
            None => format!(
                "raise the budget of what is written to the Performance tier to {} for each copy at least",
                Bytes(extent)
            ),
        }
    }

    /// Says that room which was to be kept free is not, because pins keep it.
    pub(crate) fn note_reserve_pinned(&mut self, slots: u64) {
        if slots > 0 {
            let suggestions = &mut self.advice.suggestions;
            suggestions.retain(|suggestion| suggestion != advice::NOTHING);
            let bytes = Bytes(slots.saturating_mul(self.facts.extent_bytes));
            suggestions.push(format!(
                "unpin {bytes} or keep less free: what is pinned to the Performance tier takes room that was to be kept free"
            ));
        }
    }

    /// Says which extents an optimization that ended by itself could not move, and what helps.
    /// `wrote`: somebody wrote to the pool meanwhile.
    pub(crate) fn note_refused(&mut self, refused: &[(MoveOutcome, u64)], wrote: bool) {
        let suggestions = &mut self.advice.suggestions;
        let is_trouble = |why| {
            !matches!(why, MoveOutcome::Needless | MoveOutcome::There | MoveOutcome::Unmapped)
        };
        let told = refused.iter().filter(|(why, _)| is_trouble(*why));
        for (why, count) in told {
            suggestions.retain(|suggestion| suggestion != advice::NOTHING);
            let remedy = match why {
                MoveOutcome::Busy if !wrote => {
                    "nobody wrote meanwhile: the disks took too long to copy the rest and to flush; the next optimization tries again"
                }
                MoveOutcome::Busy => {
                    "optimize while fewer requests are under way; the next optimization tries again"
                }
                MoveOutcome::NoRoomBelow => {
                    "make room there, or grow the Capacity tier; until then their places stay in use"
                }
                _ => "the next optimization tries again",
            };
            suggestions.push(format!("{count} extents were not moved ({}): {remedy}", why.name()));
        }
    }

    /// Bytes of the Performance tier that data may use.
    #[must_use]
    pub fn performance_bytes(&self) -> u64 {
        self.facts.performance_slots.saturating_mul(self.facts.extent_bytes)
    }

    /// Percent of host I/Os that the Performance tier or the cache answered; `None` without I/O.
    #[must_use]
    pub fn serviced_percent(&self) -> Option<f64> {
        let fast = self.facts.answered_performance + self.facts.answered_cache;
        percent(fast, self.facts.answered_by_devices())
    }

    /// As text of a fixed layout.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::render(self)
    }

    /// The table as CSV, for spreadsheets.
    #[must_use]
    pub fn to_csv(&self) -> String {
        csv::render(self)
    }

    /// All of it for programs; units are in the names.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        json::render(self)
    }
}

fn place(tier: TierName) -> usize {
    match tier {
        TierName::Performance => 0,
        TierName::Capacity => 1,
    }
}

/// `None` of nothing.
fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// The 20 rows; sorts the counts, the highest first.
fn rows_of(counts: &mut [u64], extent_bytes: u64) -> Vec<SizeRow> {
    counts.sort_unstable_by(|one, other| other.cmp(one));
    if counts.is_empty() {
        return Vec::new();
    }
    let steps = (1..=20_u8).rev().map(|step| step * 5);
    steps
        .map(|percent| {
            let extents = needed(counts, percent);
            SizeRow { percent, extents, bytes: extents.saturating_mul(extent_bytes) }
        })
        .collect()
}

/// The least n with c_1 + ... + c_n >= percent / 100 x C; `sorted` falls.
fn needed(sorted: &[u64], percent: u8) -> u64 {
    let total: u128 = sorted.iter().map(|count| u128::from(*count)).sum();
    let wanted = u128::from(percent) * total;
    let mut sum = 0;
    let short = |count: &&u64| {
        let is_short = sum * 100 < wanted;
        sum += u128::from(**count);
        is_short
    };
    to_u64(sorted.iter().take_while(short).count())
}

/// What the hottest so many extents serve, of 1; `sorted` falls.
fn share_of(sorted: &[u64], extents: u64) -> Option<f64> {
    let total: u64 = sorted.iter().sum();
    let most = sorted.len().min(to_usize(extents));
    let served: u64 = sorted[..most].iter().sum();
    (total > 0).then(|| served as f64 / total as f64)
}
