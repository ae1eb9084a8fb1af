//! One thread's requests: which of them goes next, where it goes, and what became of it.

mod finish;
mod open;
mod witness;

use plumb_io::{Errno, FileIndex, IoQueue, LaneIndex, Memory, Op, OpKind, Slot};
use plumb_sys::fifo::SlotFifo;
use plumb_units::{Nanos, convert};

use super::controls::Live;
use super::intervals::IntervalRecorder;
use super::looks::Looks;
use super::tally::{Level, TargetCounts, TargetTally};
use crate::pace::Pace;
use crate::pattern::Cursor;
use crate::pattern::modulus::Modulus;
use crate::payload::Payload;
use crate::rng::Rng;
pub use open::Schedule;
pub use witness::{Witness, WitnessedIo};

/// How a request gets its target (spec 6.2).
#[derive(Debug)]
pub enum Pick {
    /// Each request belongs to one target; to the first where there is one.
    Bound,
    /// Weighted pool, equal weights: Rand32 mod n.
    Equal(Modulus),
    /// Weighted pool: Rand64 mod the sum, walked through the cumulative weights in target order.
    Weighted {
        /// Sum of the weights.
        total: Modulus,
        /// Cumulative weights.
        ends: Box<[u64]>,
    },
}

impl Pick {
    /// The pick of a weighted pool over `weights`.
    #[must_use]
    pub fn weighted(weights: &[u32]) -> Self {
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        match weights {
            [_] | [] => Self::Bound,
            [first, rest @ ..] if total == 0 || rest.iter().all(|weight| weight == first) => {
                Self::Equal(Modulus::new(convert::to_u64(weights.len())))
            }
            _ => {
                let mut end = 0;
                let ends = weights.iter().map(|weight| {
                    end += u64::from(*weight);
                    end
                });
                Self::Weighted { ends: ends.collect(), total: Modulus::new(total) }
            }
        }
    }
}

/// One target as a thread sees it.
#[derive(Debug)]
pub struct IssuerTarget {
    /// Where its I/O goes.
    pub cursor: Cursor,
    /// What its writes contain.
    pub payload: Payload,
    /// What holds it back.
    pub pace: Pace,
    /// Percent of writes.
    pub write_ratio: u32,
    /// Type of the last I/O; drawn at set-up (spec 6.7).
    pub last_is_write: bool,
    /// Its open file.
    pub file: FileIndex,
    /// Its read buffers.
    pub read_lane: LaneIndex,
    /// Its write buffers.
    pub write_lane: LaneIndex,
    /// First slot of its own requests; 0 in a weighted pool.
    pub first_slot: u32,
    /// Bytes per I/O.
    pub block: u32,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// An I/O, its slot taken from the idle ones.
    Op(Op),
    /// Every idle request is held back, at least for this long.
    Throttled(Nanos),
    /// No request is idle.
    Busy,
}

/// A thread's requests, generator and counts.
#[derive(Debug)]
pub struct Issuer<L> {
    rng: Rng,
    pick: Pick,
    targets: Box<[Counted<L>]>,
    slots: Box<[SlotState]>,
    idle: SlotFifo,
    paced: bool,
    /// Idle requests not yet tried since the last reaping (spec 6.10); without meters it stays at the
    /// maximum, for any may be tried at any time.
    left: u32,
    throttled: Nanos,
    outstanding: u32,
    /// I/Os that ended, failed ones included; what [`Live`] shows has them taken out.
    completions: u64,
    failures: u64,
    bytes: u64,
    latency_sum: u64,
    intervals: Option<IntervalRecorder>,
    failure: Option<IoFailure>,
    continue_on_error: bool,
    /// In an open loop.
    schedule: Option<Box<Schedule>>,
    pub(super) looks: Looks,
    /// With `--truth`.
    pub(super) witness: Option<Box<Witness>>,
}

/// A target beside what was counted for it: one place to look up per I/O.
#[derive(Debug)]
struct Counted<L> {
    target: IssuerTarget,
    tally: TargetTally<L>,
}

/// A request's I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SlotState {
    /// Submission stamp.
    start: Nanos,
    /// Place of its target among the thread's.
    target: u32,
    is_write: bool,
}

/// A failed I/O, for the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoFailure {
    /// Which request.
    pub slot: Slot,
    /// Place of its target among the thread's.
    pub target: u32,
    /// What it did.
    pub is_write: bool,
    /// What the performer said.
    pub errno: Errno,
}

impl<L: Level> Issuer<L> {
    /// Everything idle. `slot_target` names each slot's target (0 in a
    /// weighted pool).
    #[must_use]
    pub fn new(
        rng: Rng,
        pick: Pick,
        targets: Vec<IssuerTarget>,
        slot_target: Vec<u32>,
        intervals: Option<IntervalRecorder>,
        continue_on_error: bool,
    ) -> Self {
        let slots = convert::to_u32(slot_target.len());
        let idle = |target| SlotState { start: Nanos::ZERO, target, is_write: false };
        let counted = |target| Counted { target, tally: TargetTally::new() };
        let paced = targets.iter().any(|target| target.pace.holds_back());
        Self {
            rng,
            pick,
            paced,
            targets: targets.into_iter().map(counted).collect(),
            slots: slot_target.into_iter().map(idle).collect(),
            idle: SlotFifo::full(slots),
            left: if paced { slots } else { u32::MAX },
            throttled: Nanos::NEVER,
            outstanding: 0,
            completions: 0,
            failures: 0,
            bytes: 0,
            latency_sum: 0,
            intervals,
            failure: None,
            continue_on_error,
            schedule: None,
            looks: Looks::new(L::STAMPS),
            witness: None,
        }
    }

    /// Requests of the thread.
    #[must_use]
    pub fn requests(&self) -> u32 {
        convert::to_u32(self.slots.len())
    }

    /// I/Os in flight or queued.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// I/Os that ended, failed ones included.
    #[must_use]
    pub fn completions(&self) -> u64 {
        self.completions
    }

    /// Requests that are idle.
    #[must_use]
    pub fn idle(&self) -> u32 {
        self.idle.len()
    }

    /// Whether any meter is in use.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.paced
    }

    /// Whether an idle request has not been tried since the last reaping.
    #[inline(always)]
    #[must_use]
    pub fn may_try(&self) -> bool {
        self.left > 0
    }

    /// The first fatal I/O error.
    #[must_use]
    pub fn failure(&self) -> Option<IoFailure> {
        self.failure
    }

    /// The next idle request's I/O. `start` is its stamp, `elapsed` the time since the start signal
    /// (looked at only when a meter is in use). `PACED` is [`Issuer::is_paced`]: the loops are compiled
    /// with and without, for even a branch that is never taken costs registers.
    #[inline(always)]
    pub fn next_op<Q: IoQueue, const PACED: bool>(
        &mut self,
        queue: &mut Q,
        start: Nanos,
        elapsed: Nanos,
    ) -> Next {
        if L::OPEN {
            return self.next_arrival(queue, start, elapsed);
        }
        if PACED {
            return self.next_paced(queue, start, elapsed);
        }
        let Some(slot) = self.idle.pop().map(Slot) else { return Next::Busy };
        let target = self.target_of(slot);
        Next::Op(self.op_for(queue, slot, target, start))
    }

    /// The same where a meter may hold requests back: each idle one is tried once (spec 6.10).
    #[inline]
    fn next_paced<Q: IoQueue>(&mut self, queue: &mut Q, start: Nanos, elapsed: Nanos) -> Next {
        while self.left > 0 {
            let Some(slot) = self.idle.pop().map(Slot) else { return Next::Busy };
            self.left -= 1;
            let target = self.target_of(slot);
            let pace = &mut self.targets[convert::index(target)].target.pace;
            let wait = pace.wait(elapsed);
            if wait == Nanos::ZERO {
                pace.issued(elapsed);
                return Next::Op(self.op_for(queue, slot, target, start));
            }
            self.throttled = self.throttled.min(wait);
            self.idle.push(slot.0);
        }
        if self.idle.is_empty() { Next::Busy } else { Next::Throttled(self.throttled) }
    }

    /// The next I/O of one given idle request (completion routines, synchronous threads); `None` when
    /// its target is held back, for the time given.
    #[inline(always)]
    pub fn op_of_slot<Q: IoQueue>(
        &mut self,
        queue: &mut Q,
        slot: Slot,
        start: Nanos,
        elapsed: Nanos,
    ) -> Result<Op, Nanos> {
        if L::OPEN {
            return self.arrival_of_slot(queue, slot, start, elapsed);
        }
        let target = self.target_of(slot);
        if self.paced {
            let pace = &mut self.targets[convert::index(target)].target.pace;
            let wait = pace.wait(elapsed);
            if wait > Nanos::ZERO {
                return Err(wait);
            }
            pace.issued(elapsed);
        }
        Ok(self.op_for(queue, slot, target, start))
    }

    #[inline(always)]
    fn target_of(&mut self, slot: Slot) -> u32 {
        match &self.pick {
            Pick::Bound => self.slots[convert::index(slot.0)].target,
            Pick::Equal(count) => convert::low_u32(count.of(self.rng.next32().into())),
            Pick::Weighted { total, ends } => {
                let draw = total.of(self.rng.next64());
                let hit = ends.iter().position(|end| draw < *end);
                convert::to_u32(hit.expect("the draw is below the last end"))
            }
        }
    }

    /// Offset, type, content, in the draw order of spec 6.12.
    #[inline(always)]
    fn op_for<Q: IoQueue>(
        &mut self,
        queue: &mut Q,
        slot: Slot,
        target_index: u32,
        start: Nanos,
    ) -> Op {
        let target = &mut self.targets[convert::index(target_index)].target;
        let request = convert::index(slot.0.wrapping_sub(target.first_slot));
        let place = target.cursor.next(&mut self.rng, request);
        let is_write = match target.write_ratio {
            0 => false,
            100.. => true,
            _ if place.continues => target.last_is_write,
            ratio => self.rng.percent() <= ratio,
        };
        target.last_is_write = is_write;
        let memory = match (is_write, target.payload) {
            (false, _) => Memory::Lane(target.read_lane),
            (true, Payload::Fixed) => Memory::Lane(target.write_lane),
            (true, Payload::Refilled) => {
                self.rng.fill_fast(queue.buffer_mut(slot, target.write_lane));
                Memory::Lane(target.write_lane)
            }
            (true, Payload::Source { source, starts, granule }) => {
                let start = starts.of(self.rng.next32().into());
                Memory::Source { source, offset: start - start % u64::from(granule) }
            }
        };
        self.slots[convert::index(slot.0)] = SlotState { start, target: target_index, is_write };
        if L::WITNESSED
            && let Some(witness) = &mut self.witness
        {
            witness.issues(slot, place.offset);
        }
        self.outstanding += 1;
        Op {
            kind: if is_write { OpKind::Write } else { OpKind::Read },
            file: target.file,
            slot,
            len: target.block,
            offset: place.offset,
            memory,
        }
    }

    /// Takes note that `count` I/Os have been finished.
    #[inline(always)]
    pub fn completed(&mut self, count: u32) {
        self.outstanding -= count;
        self.completions += u64::from(count);
    }

    /// Puts a finished request at the tail of the idle ones.
    #[inline(always)]
    pub fn release(&mut self, slot: Slot) {
        self.idle.push(slot.0);
    }

    /// After a reaping or a wait: every idle request may be tried again.
    #[inline(always)]
    pub fn rearm(&mut self, live: &Live) {
        if self.paced {
            self.left = self.idle.len();
            self.throttled = Nanos::NEVER;
        }
        live.publish(self.completions - self.failures, self.bytes, self.latency_sum);
    }

    /// Keeps every I/O of the measurement, as far as there is room.
    #[must_use]
    pub fn with_witness(self, witness: Witness) -> Self {
        assert!(L::WITNESSED, "witnesses need a level that calls them");
        Self { witness: Some(Box::new(witness)), ..self }
    }

    /// Takes what was kept.
    pub fn take_witness(&mut self) -> Option<Witness> {
        self.witness.take().map(|witness| *witness)
    }

    /// How late completions may have been seen.
    #[must_use]
    pub fn looks(&self) -> &Looks {
        &self.looks
    }

    /// What was counted, target by target.
    #[must_use]
    pub fn into_counts(mut self) -> Vec<TargetCounts> {
        if let Some(intervals) = &mut self.intervals {
            intervals.finish();
        }
        let open = self.schedule.map(|schedule| schedule.into_tallies().into_vec());
        let mut open = open.into_iter().flatten();
        self.targets.into_iter().map(|counted| counted.tally.into_counts(open.next())).collect()
    }
}
