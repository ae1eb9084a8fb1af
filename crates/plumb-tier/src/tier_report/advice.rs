//! What the figures of a report advise, in words.

use plumb_units::Bytes;
use plumb_units::convert::to_u64;

use super::{Reach, ReportFacts, needed, share_of};
use crate::optimizer::{Basis, PinId, PinTable, TierName};

/// Shares for which the smallest tier is named.
const SHARES: [u8; 4] = [80, 90, 95, 99];
/// The share that the advice aims at.
const AIM: u8 = 95;
/// A pin should serve so many percent of all I/Os per GiB.
const WORTH: f64 = 1.0;
/// A pin to the Capacity tier should keep no larger share of all I/Os there.
const HELD_DOWN: f64 = 0.05;

/// A pin to the Performance tier that serves little.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeakPin {
    /// Which.
    pub pin: PinId,
    /// Percent of all host I/Os per GiB pinned.
    pub percent_per_gib: f64,
}

/// Advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Percent of I/Os, and bytes of the smallest tier that serves them; empty without I/O.
    pub sizes: Vec<(u8, u64)>,
    /// Bytes of the working set.
    pub working_set_bytes: u64,
    /// Its change against the mean of up to 7 runs before, in percent.
    pub working_set_change: Option<f64>,
    /// Extents demoted again, as percent of those promoted in the last 3 runs.
    pub thrash_percent: f64,
    /// Pins that serve less than 1 % of I/O per GiB.
    pub weak_pins: Vec<WeakPin>,
    /// Sentences.
    pub suggestions: Vec<String>,
}

/// The advice of a window that leaves nothing to be wished for.
pub(super) const NOTHING: &str = "nothing to do";

impl Advice {
    /// `sorted` are the counts of all extents, falling; `by_pin` the I/Os on the extents that each pin decides about, `within_pin` those on the
    /// extents of its range that are pinned to the Performance tier by whichever pin; `None` of one without which all stays as it is.
    pub(super) fn of(
        facts: &ReportFacts,
        sorted: &[u64],
        working_set: u64,
        pins: &PinTable,
        (by_pin, within_pin): (&[u64], &[Option<u64>]),
    ) -> Self {
        let bytes = |extents: u64| extents.saturating_mul(facts.extent_bytes);
        let sizes: Vec<(u8, u64)> = match sorted.is_empty() {
            true => Vec::new(),
            false => SHARES.iter().map(|share| (*share, bytes(needed(sorted, *share)))).collect(),
        };
        let total: u64 = sorted.iter().sum();
        let weak = |(pin, ios): (&crate::optimizer::Pin, &Option<u64>)| {
            let gib = pin.len as f64 / (1_u64 << 30) as f64;
            let percent_per_gib = 100.0 * (*ios)? as f64 / total as f64 / gib;
            let is_weak = pin.tier == TierName::Performance && percent_per_gib < WORTH;
            // Of one that has moved nothing yet nothing is known.
            let is_weak = is_weak && !facts.pins_pending.contains(&pin.id);
            is_weak.then_some(WeakPin { pin: pin.id, percent_per_gib })
        };
        let weak_pins = match total {
            0 => Vec::new(),
            _ => pins.pins().iter().zip(within_pin).filter_map(weak).collect(),
        };
        let keeps_down = |(pin, ios): &(&crate::optimizer::Pin, &u64)| {
            let is_there = !facts.pins_pending.contains(&pin.id);
            pin.tier == TierName::Capacity && is_there && **ios as f64 > HELD_DOWN * total as f64
        };
        let held_down: Vec<(PinId, f64)> = pins
            .pins()
            .iter()
            .zip(by_pin)
            .filter(keeps_down)
            .map(|(pin, ios)| (pin.id, 100.0 * *ios as f64 / total as f64))
            .collect();
        let mut advice = Self {
            sizes,
            working_set_bytes: bytes(working_set),
            working_set_change: change(working_set, &facts.working_sets),
            thrash_percent: 100.0 * facts.thrash.share(),
            weak_pins,
            suggestions: Vec::new(),
        };
        advice.suggest(facts, sorted, (!pins.pins().is_empty(), &held_down));
        advice
    }

    fn suggest(
        &mut self,
        facts: &ReportFacts,
        sorted: &[u64],
        (is_pinned, held_down): (bool, &[(PinId, f64)]),
    ) {
        if sorted.is_empty() {
            self.suggestions.push(without_io(facts));
            self.suggestions.extend(pins_refused(facts));
            return;
        }
        if facts.thrash.guarded {
            self.suggestions.push(format!(
                "extents go back and forth ({:.0} % of the promoted): the bar is doubled until they rest",
                self.thrash_percent
            ));
        }
        if let Basis::Alike { performance, capacity } = facts.worth.basis {
            self.suggestions.push(format!(
                "see whether moves are of use: a random I/O takes {:.3} ms of a disk's time on the Capacity tier, {:.3} ms on the Performance tier",
                1e3 * capacity.as_secs_f64(),
                1e3 * performance.as_secs_f64()
            ));
        }
        self.suggestions.extend(pins_refused(facts));
        let current = facts.performance_slots.saturating_mul(facts.extent_bytes);
        let wanted = self.sizes.iter().find(|(share, _)| *share == AIM).map_or(0, |size| size.1);
        let fast = facts.answered_performance + facts.answered_cache;
        let all = facts.answered_by_devices();
        let measured = (all > 0).then(|| fast as f64 / all as f64);
        // What this size would serve is not known yet while much of what belongs there waits.
        let waits = facts.reach.zip(measured).is_some_and(|(reach, now)| reach.waits_for_more(now));
        if wanted > current && !waits {
            let more = Bytes(wanted - current);
            self.suggestions
                .push(format!("grow the Performance tier by {more}: it would serve {AIM} %"));
        }
        if let (Some(best), Some(measured)) = (share_of(sorted, facts.performance_slots), measured)
            && Reach::is_more(best, measured)
        {
            self.suggestions.extend(below_the_best(facts, measured, best, is_pinned));
        }
        self.suggestions.extend(waiting(facts));
        for weak in &self.weak_pins {
            self.suggestions.push(format!(
                "unpin {}: it serves {:.2} % of I/Os per GiB",
                weak.pin.0, weak.percent_per_gib
            ));
        }
        for (pin, percent) in held_down {
            self.suggestions.push(format!(
                "unpin {}: it keeps {percent:.1} % of I/Os on the Capacity tier",
                pin.0
            ));
        }
        if self.suggestions.is_empty() {
            self.suggestions.push(NOTHING.to_owned());
        }
    }
}

/// How a window is called that has no I/O, or none that is known of.
pub(super) fn empty(facts: &ReportFacts) -> &'static str {
    if facts.uncounted_s == 0 { "no I/O in window" } else { "no I/O counted in window" }
}

/// What is to be said of a window without I/O (DD-1).
pub(super) fn without_io(facts: &ReportFacts) -> String {
    let (empty, moves) = (empty(facts), &facts.moves);
    match moves.up + moves.down {
        0 if moves.up_requested + moves.down_requested > 0 => empty.to_owned(),
        0 => format!("{empty}; no moves"),
        moved => format!(
            "{empty}; {moved} extents moved for pins, room to be kept free or heat of the time before"
        ),
    }
}

/// What to do about pins for which there is no room (10.2 step 1).
fn pins_refused(facts: &ReportFacts) -> Option<String> {
    let bytes = Bytes(facts.pins_refused.saturating_mul(facts.extent_bytes));
    (facts.pins_refused > 0).then(|| {
        format!(
            "grow the Performance tier by {bytes} or unpin as much: it has no room for what is pinned to it"
        )
    })
}

/// What would be swapped, and is not.
fn waiting(facts: &ReportFacts) -> impl Iterator<Item = String> {
    let bytes = |extents: u64| Bytes(extents.saturating_mul(facts.extent_bytes));
    let waits = &facts.waits;
    let put_off = (waits.put_off > 0).then(|| {
        format!(
            "wait: swaps of {} {}, and 1 % of the Performance tier a day is for such ones; those that last are made",
            bytes(waits.put_off),
            waits.why()
        )
    });
    let turns = (waits.turns > 0).then(|| {
        format!(
            "{} stay where they are until they are asked for on the day after, too: they looked hottest before, and were not",
            bytes(waits.turns)
        )
    });
    put_off.into_iter().chain(turns)
}

/// Why less was served than the best placement would serve, and what helps, if anything is known that does.
fn below_the_best(
    facts: &ReportFacts,
    measured: f64,
    best: f64,
    is_pinned: bool,
) -> Option<String> {
    let reach = facts.reach?;
    let were = format!("{:.1} % were served", 100.0 * measured);
    let best = format!("the best placement of this size serves {:.1} %", 100.0 * best);
    if Reach::is_more(reach.planned, measured) {
        // While extents go back and forth, which is told already, more runs are not what they need.
        let planned = 100.0 * reach.planned;
        let hours = (facts.window_end_s - facts.window_start_s) / 3600.0;
        // Before the first optimization, and in a window that is shorter than the hours that heat is counted by, nothing is known of how
        // often one is needed. Nor while the plan takes for heat what one day of chance makes: what serves more by hindsight serves no more next time.
        if facts.working_sets.is_empty() || hours < 1.0 {
            return (!facts.optimizes).then(|| {
                format!(
                    "optimize: {were}, the placement planned at the end of the window serves {planned:.1} %"
                )
            });
        }
        if !reach.tells_chance {
            return None;
        }
        let often = Reach::times_a_day(hours, reach.planned - measured);
        return (!facts.thrash.guarded).then(|| {
            format!(
                "optimize more often, {often} times a day: {were}, the placement planned at the end of the window serves {planned:.1} %"
            )
        });
    }
    Some(if reach.budget_spent {
        format!("raise the budget of moves: {were}, {best}")
    } else if Reach::is_more(reach.with_put_off.max(reach.probable), measured) {
        format!(
            "wait: {were}, {best}, but what its extents gain may be chance so far; what lasts is moved"
        )
    } else if Reach::is_more(reach.with_turns, measured) {
        format!(
            "optimizing at another time of the day may help: {were}, {best}, but its extents take turns"
        )
    } else if Reach::is_more(reach.without_bar, measured) {
        format!(
            "optimizing more often would not help: {were}, {best}, but its extents gain too few I/Os to be worth their moves"
        )
    } else if is_pinned {
        format!("pins stand in the way: {were}, {best} without them")
    } else {
        format!(
            "optimizing more often would not help: {were}, {best}, but heat of the time before keeps other extents up"
        )
    })
}

/// In percent of the mean before; `None` without runs before.
fn change(now: u64, before: &[u64]) -> Option<f64> {
    let last = &before[before.len().saturating_sub(7)..];
    let sum: u64 = last.iter().sum();
    let mean = sum as f64 / to_u64(last.len()) as f64;
    (sum > 0).then(|| 100.0 * (now as f64 / mean - 1.0))
}
