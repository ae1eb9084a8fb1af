//! What becomes of completions: each is counted for its target, its direction and its latency.

use plumb_io::{Done, Errno, IoQueue, Slot};
use plumb_units::{Nanos, convert};

use super::super::controls::{Controls, Live};
use super::super::looks::Bound;
use super::super::tally::Level;
use super::{IoFailure, Issuer, SlotState, WitnessedIo};

impl<L: Level> Issuer<L> {
    /// Accounts the next `found` completions of `queue`, seen at `seen`, and puts their requests at the tail of the
    /// idle ones. `bound` tells how late they may have been seen, the rest as in [`Issuer::finish`].
    ///
    /// I/Os that were submitted together and are seen together have the same latency: those that follow each other
    /// are one entry of the histogram, as many times. Where each I/O is kept by itself they are taken one by one.
    #[inline(always)]
    pub(in crate::run_loop) fn finish_seen<Q: IoQueue>(
        &mut self,
        queue: &mut Q,
        found: u32,
        (seen, bound): (Nanos, Bound),
        since: Option<Nanos>,
        around: (&Controls, &Live),
    ) {
        let mut left = found;
        let mut next = queue.pop();
        while let Some(done) = next {
            let slot = self.slots[convert::index(done.slot.0)];
            if L::WITNESSED
                && let Some(witness) = &mut self.witness
            {
                witness.is_late_by(bound.of_nth(found - left));
            }
            self.idle.push(done.slot.0);
            left -= 1;
            let block = self.targets[convert::index(slot.target)].target.block;
            if L::ONE_BY_ONE || done.outcome() != Ok(block) {
                self.finish(done, seen, since, around);
                next = if left > 0 { queue.pop() } else { None };
                continue;
            }
            let mut alike = 1;
            next = loop {
                if left == 0 {
                    break None;
                }
                let Some(other) = queue.pop() else { break None };
                if other.result != done.result || self.slots[convert::index(other.slot.0)] != slot {
                    break Some(other);
                }
                self.idle.push(other.slot.0);
                left -= 1;
                alike += 1;
            };
            self.finish_alike(slot, (block, alike), seen, since.is_some());
        }
        self.outstanding -= found - left;
        self.completions += u64::from(found - left);
    }

    /// Accounts `alike` whole I/Os of `block` bytes of one target that were submitted together.
    #[inline(always)]
    fn finish_alike(
        &mut self,
        slot: SlotState,
        (block, alike): (u32, u32),
        seen: Nanos,
        counts: bool,
    ) {
        let latency = if L::STAMPS { seen.since(slot.start) } else { Nanos::ZERO };
        let bytes = u64::from(block) * u64::from(alike);
        self.bytes += bytes;
        if L::STAMPS {
            let sum = latency.0.wrapping_mul(u64::from(alike));
            self.latency_sum = self.latency_sum.wrapping_add(sum);
        }
        if counts {
            let tally = &mut self.targets[convert::index(slot.target)].tally;
            let direction = if slot.is_write { &mut tally.write } else { &mut tally.read };
            direction.record_alike(bytes, alike, latency);
        }
    }

    /// Accounts a completion seen at `seen`; `since` is when the measurement began, while it lasts. The
    /// request stays taken (see [`Issuer::release`]).
    #[inline(always)]
    pub fn finish(
        &mut self,
        done: Done,
        seen: Nanos,
        since: Option<Nanos>,
        around: (&Controls, &Live),
    ) {
        let lag = if L::OPEN { self.depart(done.slot, seen, around.0) } else { Nanos::ZERO };
        let slot = self.slots[convert::index(done.slot.0)];
        let counted = &mut self.targets[convert::index(slot.target)];
        let bytes = match done.outcome() {
            Ok(bytes) => bytes,
            Err(errno) => return self.failed((done.slot, errno), seen, since.is_some(), around),
        };
        // In an open loop the intended start counts: the response time.
        let latency = if L::STAMPS { seen.since(slot.start) + lag } else { Nanos::ZERO };
        self.bytes += u64::from(bytes);
        if L::STAMPS {
            self.latency_sum = self.latency_sum.wrapping_add(latency.0);
        }
        if bytes != counted.target.block {
            // With the I/Os and the bytes, to the end of the measurement.
            counted.tally.short_transfers += u64::from(since.is_some());
            around.1.short_transfer(bytes, counted.target.block);
        }
        if let Some(since) = since {
            let tally = &mut counted.tally;
            let direction = if slot.is_write { &mut tally.write } else { &mut tally.read };
            direction.record(bytes, latency);
            if L::INTERVALS
                && let Some(intervals) = &mut self.intervals
            {
                let at = seen.since(since);
                intervals.record(at, (slot.target, bytes), latency, slot.is_write);
            }
            if L::WITNESSED
                && let Some(witness) = &mut self.witness
            {
                witness.sees(
                    done.slot,
                    WitnessedIo {
                        start: slot.start,
                        seen,
                        offset: 0,
                        len: counted.target.block,
                        target: slot.target,
                        is_write: slot.is_write,
                        bound: Nanos::ZERO,
                        woken: false,
                    },
                );
            }
            if L::OPEN {
                let at = seen.since(since);
                self.served((slot.target, slot.is_write), latency - lag, lag, at);
            }
        }
    }

    /// A failed I/O is counted as such; the first one ends the run unless the user wants to go on.
    #[cold]
    #[inline(never)]
    fn failed(
        &mut self,
        (slot, errno): (Slot, Errno),
        seen: Nanos,
        counts: bool,
        (controls, live): (&Controls, &Live),
    ) {
        let SlotState { target, is_write, start, .. } = self.slots[convert::index(slot.0)];
        let counted = &mut self.targets[convert::index(target)];
        if counts {
            let time = if L::STAMPS { seen.since(start) } else { Nanos::ZERO };
            let tally = &mut counted.tally;
            let direction = if is_write { &mut tally.write } else { &mut tally.read };
            direction.fail(counted.target.block, time);
        }
        counted.tally.error(errno);
        live.error();
        self.failures += 1;
        if !self.continue_on_error && self.failure.is_none() {
            self.failure = Some(IoFailure { slot, target, is_write, errno });
            controls.stop();
        }
    }
}
