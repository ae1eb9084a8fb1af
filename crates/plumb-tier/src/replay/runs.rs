//! Optimizations of a simulated space: what is to be moved when, and what became of it (10.7).

use plumb_units::Nanos;
use plumb_units::convert::floor_u64;

use super::Layout;
use super::course::MoveQueue;
use super::tierer::count;
use crate::heat::HeatMap;
use crate::optimizer::{Expected, Move, Plan, TierName};
use crate::tier_report::{MoveFigures, MoveStop};

/// What an optimization was asked and did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunRecord {
    /// When it began, in seconds of the trace.
    pub at_s: f64,
    /// Extents and bytes.
    pub moves: MoveFigures,
    /// Share of host I/Os that the Performance tier would serve with such a window again, 0 to 1.
    pub predicted_share: Option<f64>,
    /// Share that it and the cache then served until the next run.
    pub measured_share: Option<f64>,
}

/// One under way.
#[derive(Debug)]
pub(super) struct Run {
    began: Nanos,
    deadline: Nanos,
    /// The time that a move has to itself, by the rate.
    pace: Nanos,
    next_at: Nanos,
    queue: MoveQueue,
    requested: [u64; 2],
    made: Vec<Move>,
    under_way: u32,
    /// No slot is free until one that is under way has ended.
    blocked: bool,
    budget_spent: bool,
    stop: MoveStop,
    last_made: Nanos,
    predicted: Option<f64>,
    expected: Expected,
}

impl Run {
    pub(super) fn new(plan: &Plan, heat: &HeatMap, now: Nanos, layout: &Layout) -> Self {
        let pace = layout.extent_bytes as f64 / layout.move_rate as f64;
        Self {
            began: now,
            deadline: now + layout.run_limit,
            pace: Nanos(floor_u64(pace * 1e9)),
            next_at: now,
            queue: plan.moves.iter().copied().collect(),
            requested: [plan.count(TierName::Performance), plan.count(TierName::Capacity)],
            made: Vec::new(),
            under_way: 0,
            blocked: false,
            budget_spent: plan.budget_spent,
            stop: MoveStop::Done,
            last_made: now,
            predicted: plan.expected_share(),
            expected: Expected::new(plan, heat),
        }
    }

    /// When the next move may begin.
    pub(super) fn timer(&self) -> Option<Nanos> {
        let waits = !self.queue.is_empty() && !self.blocked;
        waits.then_some(self.next_at).filter(|_| self.under_way < super::course::MOVERS)
    }

    /// The next move, if one may begin now.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Move> {
        if now >= self.deadline && !self.queue.is_empty() {
            self.stop(MoveStop::Time);
        }
        let may = now >= self.next_at && self.under_way < super::course::MOVERS && !self.blocked;
        if may { self.queue.pop_front() } else { None }
    }

    /// There is no slot for it yet; without others under way there never will be.
    pub(super) fn put_back(&mut self, planned: Move) {
        if self.under_way > 0 {
            self.queue.push_front(planned);
            self.blocked = true;
        }
    }

    pub(super) fn begun(&mut self, now: Nanos) {
        self.under_way += 1;
        self.next_at = self.next_at.max(now) + self.pace;
    }

    pub(super) fn made(&mut self, planned: Move, now: Nanos) {
        self.under_way -= 1;
        self.blocked = false;
        self.expected.moved(planned.extent, planned.to);
        self.made.push(planned);
        self.last_made = now;
    }

    /// No further move begins.
    pub(super) fn stop(&mut self, stop: MoveStop) {
        if !self.queue.is_empty() {
            self.queue.clear();
            self.stop = stop;
        }
    }

    pub(super) fn under_way(&self) -> u32 {
        self.under_way
    }

    pub(super) fn is_over(&self) -> bool {
        self.queue.is_empty() && self.under_way == 0
    }

    pub(super) fn all_made(&self) -> &[Move] {
        &self.made
    }

    /// Share of the I/Os before on the Performance tier, by the moves that were made.
    pub(super) fn expected_share(&self) -> Option<f64> {
        self.expected.share()
    }

    pub(super) fn figures(&self, extent_bytes: u64) -> MoveFigures {
        let (up, down) =
            (count(&self.made, TierName::Performance), count(&self.made, TierName::Capacity));
        let is_short = self.stop == MoveStop::Done && self.budget_spent;
        MoveFigures {
            up_requested: self.requested[0],
            up,
            down_requested: self.requested[1],
            down,
            bytes: (up + down) * extent_bytes,
            seconds: self.last_made.since(self.began).as_secs_f64(),
            stop: if is_short { MoveStop::Budget } else { self.stop },
            limits: None,
        }
    }

    pub(super) fn record(&self, moves: MoveFigures) -> RunRecord {
        RunRecord {
            at_s: self.began.as_secs_f64(),
            moves,
            predicted_share: self.predicted,
            measured_share: None,
        }
    }
}
