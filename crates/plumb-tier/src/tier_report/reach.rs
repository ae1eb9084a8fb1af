//! What an optimization would make of a window, and what it leaves for later: advice is not to ask for more of what serves no more, nor for
//! what comes by itself.

use plumb_units::convert::{floor_u64, to_u64};

use crate::heat::HeatMap;
use crate::optimizer::{Bar, Plan};

/// Measured below what a placement would serve by so much of 1: that is worth a word.
const LATE: f64 = 0.05;

/// What an optimization now would do (10.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// Share of host I/Os under the placement that the plan makes with pins, bar and slots as they are, 0 to 1.
    pub planned: f64,
    /// The same with the swaps that wait for the ration.
    pub with_put_off: f64,
    /// The same if whatever would pay were certain, and not chance.
    pub probable: f64,
    /// The same with extents that are left out because they take turns.
    pub with_turns: f64,
    /// The same if no gain were too small for its move.
    pub without_bar: f64,
    /// Whether a budget ends the plan before all that is worth it has moved.
    pub budget_spent: bool,
    /// Whether the plan can tell a load that has changed from what chance makes of one that has not.
    pub tells_chance: bool,
}

impl Reach {
    /// Of a plan with that bar and whatever pins, history and slots there are, where such a share was measured. `again` plans with another bar,
    /// without budgets and, where it is told to, as if nothing had moved. `None` without I/O.
    pub(crate) fn of(
        (planned, bar): (&Plan, Bar),
        measured: f64,
        heat: &HeatMap,
        again: impl Fn(Bar, History) -> Plan,
    ) -> Option<Self> {
        let share = planned.expected_share()?;
        let with_put_off = planned.share_with(planned.put_off_ios)?;
        let with_turns = planned.share_with(planned.turns_ios)?;
        // What is known to serve more already is not asked for in other ways.
        let known = [share, with_put_off, with_turns];
        let is_told = known.iter().any(|share| Self::is_more(*share, measured));
        let probable = match is_told {
            true => share,
            // By the bar as it is when nobody raises it.
            false => {
                let pays = Bar { deviations: 0.0, raised: 1.0, ..bar };
                again(pays, History::Own).expected_share()?
            }
        };
        let is_told = is_told || Self::is_more(probable, measured);
        let without_bar =
            if is_told { share } else { again(Bar::none(), History::Empty).expected_share()? };
        Some(Self {
            planned: share,
            with_put_off,
            probable,
            with_turns,
            without_bar,
            budget_spent: planned.budget_spent,
            tells_chance: heat.tells_chance(),
        })
    }

    /// Whether a share is so much more than the measured one that it is worth a word.
    #[must_use]
    pub fn is_more(share: f64, measured: f64) -> bool {
        share > measured + LATE
    }

    /// Whether a placement that only waits serves so much more than the one that is planned, or than what was measured.
    pub(super) fn waits_for_more(&self, measured: f64) -> bool {
        Self::is_more(self.with_put_off.max(self.probable), measured.max(self.planned))
    }

    /// How often to optimize where a window of so many hours served so much less than the placement planned at its end: what a placement
    /// serves is taken to fall evenly from its moves on, so a window that is shorter by some factor loses less by that factor.
    /// Once more than now at least, and once an hour at most, for heat is counted by the hour.
    pub(super) fn times_a_day(hours: f64, lost: f64) -> u64 {
        let windows = 24.0 / hours.max(1.0);
        let wanted = (windows * lost / LATE).ceil().max(windows.floor() + 1.0);
        plumb_units::convert::floor_u64(wanted.clamp(2.0, 24.0))
    }
}

/// What a plan that is only asked for knows of moves before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    /// All.
    Own,
    /// Nothing.
    Empty,
}

/// Extents that would be swapped for their heat, and are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Those that wait for the ration, as their gain may be chance.
    pub put_off: u64,
    /// Host I/Os of the window that they would gain.
    pub put_off_ios: u64,
    /// Those that take turns with others.
    pub turns: u64,
    /// Host I/Os of the window on these.
    pub turns_ios: u64,
    /// What swaps that looked sure have gained of late of what they were to gain, in percent, where that is too little for any to be sure.
    pub gained_percent: Option<u64>,
}

impl Waits {
    /// Of a plan.
    #[must_use]
    pub fn of(planned: &Plan) -> Self {
        let Plan { put_off_ios, turns, turns_ios, .. } = *planned;
        let put_off = to_u64(planned.put_off.len());
        let gained_percent = planned.little_gains.map(|part| floor_u64((100.0 * part).round()));
        Self { put_off, put_off_ios, turns, turns_ios, gained_percent }
    }

    /// Why swaps wait: what they may be.
    #[must_use]
    pub fn why(&self) -> String {
        match self.gained_percent {
            None => "may be chance".to_owned(),
            Some(percent) => format!(
                "may not last (those of the last days gained {percent} % of what they looked like)"
            ),
        }
    }
}
