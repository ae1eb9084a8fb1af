//! What becomes of completions: each is counted for its target, its direction and its latency.

use plumb_io::{Done, Errno, IoQueue, Slot};
use plumb_units::{Nanos, convert};

use super::super::controls::{Controls, Live};
use super::super::looks::Bound;
use super::super::tally::Level;
use super::{GROUPS, Group, IoFailure, Issuer, WitnessedIo};

impl<L: Level> Issuer<L> {
    /// Accounts the next `found` completions of `queue`, seen at `seen`, and puts their requests at the tail of the
    /// idle ones. `bound` tells how late they may have been seen, the rest as in [`Issuer::finish`].
    ///
    /// I/Os that were submitted together and are seen together have the same latency: they are one entry of the histogram, as
    /// many times, whatever completes between them. Where each I/O is kept by itself they are taken one by one.
    #[inline(always)]
    pub(in crate::run_loop) fn finish_seen<Q: IoQueue>(
        &mut self,
        queue: &mut Q,
        found: u32,
        (seen, bound): (Nanos, Bound),
        since: Option<Nanos>,
        around: (&Controls, &Live),
    ) {
        let (mut taken, mut touched) = (0, 0_u32);
        while taken < found {
            let Some(done) = queue.pop() else { break };
            let slot = self.slots[convert::index(done.slot.0)];
            if L::WITNESSED
                && let Some(witness) = &mut self.witness
            {
                witness.is_late_by(bound.of_nth(taken));
            }
            self.idle.push(done.slot.0);
            taken += 1;
            if L::ONE_BY_ONE {
                self.finish(done, seen, since, around);
                continue;
            }
            let place = convert::index(slot.kind) % GROUPS;
            touched |= 1 << place;
            let group = &mut self.groups[place];
            if group.slot == slot && group.result == done.result {
                group.count += 1;
                continue;
            }
            // Of an earlier look, or more submissions in flight than there are groups.
            if group.count > 0 {
                let full = *group;
                group.count = 0;
                self.finish_alike(full, seen, since.is_some());
            }
            let block = self.targets[convert::index(slot.target)].target.block;
            if done.outcome() == Ok(block) {
                self.groups[place] = Group { slot, result: done.result, count: 1 };
            } else {
                self.finish(done, seen, since, around);
            }
        }
        while touched > 0 {
            let group = &mut self.groups[convert::index(touched.trailing_zeros()) % GROUPS];
            touched &= touched - 1;
            let full = *group;
            group.count = 0;
            if full.count > 0 {
                self.finish_alike(full, seen, since.is_some());
            }
        }
        self.outstanding -= taken;
        self.completions += u64::from(taken);
    }

    /// Accounts whole I/Os of one target and direction that were submitted together.
    #[inline(always)]
    fn finish_alike(&mut self, Group { slot, result, count }: Group, seen: Nanos, counts: bool) {
        let latency = if L::STAMPS { seen.since(slot.start) } else { Nanos::ZERO };
        let bytes = u64::from(result.unsigned_abs()) * u64::from(count);
        self.bytes += bytes;
        if L::STAMPS {
            let sum = latency.0.wrapping_mul(u64::from(count));
            self.latency_sum = self.latency_sum.wrapping_add(sum);
        }
        if counts {
            let tally = &mut self.targets[convert::index(slot.target)].tally;
            let direction = if slot.is_write() { &mut tally.write } else { &mut tally.read };
            direction.record_alike(bytes, count, latency);
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
            let at = if L::INTERVALS { seen.since(since) } else { Nanos::ZERO };
            let tally = &mut counted.tally;
            let direction = if slot.is_write() { &mut tally.write } else { &mut tally.read };
            direction.record(bytes, latency, at);
            if L::INTERVALS
                && let Some(intervals) = &mut self.intervals
            {
                intervals.record(at, latency, slot.is_write());
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
                        is_write: slot.is_write(),
                        bound: Nanos::ZERO,
                        woken: false,
                    },
                );
            }
            if L::OPEN {
                let at = seen.since(since);
                self.served((slot.target, slot.is_write()), latency - lag, lag, at);
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
        let state = self.slots[convert::index(slot.0)];
        let (start, target, is_write) = (state.start, state.target, state.is_write());
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
