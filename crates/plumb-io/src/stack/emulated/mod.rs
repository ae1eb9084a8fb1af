//! Devices that take their time: a queue whose files answer when a model of a disk says so.
//!
//! What is read and written is real, by the queue within; only when it is seen to be done is the model's. By a
//! clock that is set by hand, time passes as fast as the model can be computed, and a run with the same
//! requests is the same every time.

mod hdd;
mod ssd;

use std::collections::VecDeque;

use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32};

pub use hdd::HddModel;
pub use ssd::{SsdCache, SsdModel, SsdStalls};

use crate::clock::{Clock, ManualClock, StampClock};
use crate::{Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, Op, OpKind, QueueFacts, Slot};

/// A sleep may be late by that much; the rest is spent looking at the clock.
const LATE: Nanos = Nanos(80_000);
/// The queue within is waited for that long at a time.
const WAIT_MAX: Nanos = Nanos(1_000_000);

/// A clock whose owner can wait for a time.
pub trait Passing: Clock {
    /// Returns once it is `time` or later.
    fn pass_until(&self, time: Nanos);
}

impl Passing for ManualClock {
    fn pass_until(&self, time: Nanos) {
        self.advance_to(time);
    }
}

impl Passing for StampClock {
    fn pass_until(&self, time: Nanos) {
        loop {
            let left = time.since(self.now());
            if left == Nanos::ZERO {
                return;
            }
            if left > LATE {
                std::thread::sleep((left - LATE).into());
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// What a device is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Whose it is: given back when it is over.
    pub slot: u32,
    /// What.
    pub kind: AccessKind,
    /// Bytes from the start of the device.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// Kinds of accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// Device to memory.
    Read,
    /// Memory to device.
    Write,
    /// Volatile cache to medium.
    Flush,
}

/// A model of a device, with what it has under way.
#[derive(Debug, Clone)]
pub enum DeviceModel {
    /// Solid state.
    Ssd(SsdModel),
    /// Rotating.
    Hdd(HddModel),
}

impl DeviceModel {
    /// Hands in an access at a time that never goes back.
    pub fn submit(&mut self, now: Nanos, access: Access) {
        match self {
            Self::Ssd(model) => model.submit(now, access),
            Self::Hdd(model) => model.submit(now, access),
        }
    }

    /// When the next access ends; `None` when nothing is under way.
    pub fn next_end(&mut self) -> Option<Nanos> {
        match self {
            Self::Ssd(model) => model.next_end(),
            Self::Hdd(model) => model.next_end(),
        }
    }

    /// Slot of the next access that has ended by `now`.
    pub fn finish(&mut self, now: Nanos) -> Option<u32> {
        match self {
            Self::Ssd(model) => model.finish(now),
            Self::Hdd(model) => model.finish(now),
        }
    }
}

/// How far a slot's I/O is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// Neither the queue within nor the model is done.
    Both,
    /// The queue within is done: its result.
    Model(i32),
    /// The model is done.
    Inner,
    /// Over, and not popped.
    Ended,
}

/// A queue around a queue whose file `n` behaves like device `n`.
#[derive(Debug)]
pub struct EmulatedQueue<Q, C> {
    inner: Q,
    devices: Vec<DeviceModel>,
    clock: C,
    /// Accesses that the devices have not seen yet.
    line: Vec<(u32, Access)>,
    states: Vec<State>,
    ended: VecDeque<Done>,
    counted: usize,
    in_flight: u32,
    /// Of these, those whose model is done and the queue within is not.
    late: u32,
}

impl<Q: IoQueue, C: Passing> EmulatedQueue<Q, C> {
    /// A queue of `depth` slots, as `inner` has, with a device for each of its files. A look at `inner` must see what it
    /// has finished, as one of a queue that measures latencies does: nobody asks for it otherwise.
    pub fn new(inner: Q, depth: u32, devices: Vec<DeviceModel>, clock: C) -> Self {
        Self {
            inner,
            devices,
            clock,
            line: Vec::with_capacity(index(depth)),
            states: vec![State::Idle; index(depth)],
            ended: VecDeque::with_capacity(index(depth)),
            counted: 0,
            in_flight: 0,
            late: 0,
        }
    }

    /// The queue within.
    pub fn inner_mut(&mut self) -> &mut Q {
        &mut self.inner
    }

    fn begin(&mut self, file: u32, access: Access) {
        self.states[index(access.slot)] = State::Both;
        self.in_flight += 1;
        self.line.push((file, access));
    }

    fn assert_idle(&self, slot: Slot) {
        let state = self.states.get(index(slot.0));
        assert!(state == Some(&State::Idle), "slot {} is in flight or does not exist", slot.0);
    }

    fn end(&mut self, slot: u32, result: i32) {
        self.states[index(slot)] = State::Ended;
        self.in_flight -= 1;
        self.ended.push_back(Done { slot: Slot(slot), result });
    }

    /// Takes what the queue within has finished, and what the devices have by now.
    fn collect(&mut self) {
        self.inner.look();
        while let Some(done) = self.inner.pop() {
            let slot = done.slot.0;
            match self.states[index(slot)] {
                State::Inner => {
                    self.late -= 1;
                    self.end(slot, done.result);
                }
                _ => self.states[index(slot)] = State::Model(done.result),
            }
        }
        let now = self.clock.now();
        for nth in 0..self.devices.len() {
            while let Some(slot) = self.devices[nth].finish(now) {
                match self.states[index(slot)] {
                    State::Model(result) => self.end(slot, result),
                    _ => {
                        self.late += 1;
                        self.states[index(slot)] = State::Inner;
                    }
                }
            }
        }
    }
}

impl<Q: IoQueue, C: Passing> IoQueue for EmulatedQueue<Q, C> {
    fn push(&mut self, op: Op) {
        self.assert_idle(op.slot);
        assert!(index(op.file.0) < self.devices.len(), "file {} does not exist", op.file.0);
        self.inner.push(op);
        let kind = match op.kind {
            OpKind::Read => AccessKind::Read,
            OpKind::Write => AccessKind::Write,
        };
        let access = Access { slot: op.slot.0, kind, offset: op.offset, len: op.len };
        self.begin(op.file.0, access);
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.inner.submit_and_wait(0, Nanos::ZERO)?;
        let start = self.clock.now();
        for (file, access) in self.line.drain(..) {
            self.devices[index(file)].submit(start, access);
        }
        self.collect();
        let wanted = match timeout {
            Nanos::NEVER => wanted.min(to_u32(self.ended.len()) + self.in_flight),
            _ => wanted,
        };
        let end = Nanos(start.0.saturating_add(timeout.0));
        while to_u32(self.ended.len()) < wanted {
            let now = self.clock.now();
            if now >= end {
                break;
            }
            let due = self.devices.iter_mut().filter_map(DeviceModel::next_end).min();
            let until = due.unwrap_or(end).min(end);
            if self.late == 0 {
                self.clock.pass_until(until);
            } else {
                // Whichever comes first, the end of another model or what the queue within is late with. Close to the
                // former it is only asked.
                let left = until.since(now).min(WAIT_MAX);
                let wanted = u32::from(left > LATE);
                self.inner.submit_and_wait(wanted, Nanos(left.0.saturating_sub(LATE.0)))?;
            }
            self.collect();
        }
        Ok(())
    }

    fn look(&mut self) -> u32 {
        self.collect();
        self.counted = self.ended.len();
        to_u32(self.counted)
    }

    fn pop(&mut self) -> Option<Done> {
        self.counted = self.counted.checked_sub(1)?;
        let done = self.ended.pop_front()?;
        self.states[index(done.slot.0)] = State::Idle;
        Some(done)
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.assert_idle(slot);
        self.inner.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        let facts = self.inner.facts();
        QueueFacts { engine: format!("emulated+{}", facts.engine), ..facts }
    }
}

impl<Q: FlushQueue, C: Passing> FlushQueue for EmulatedQueue<Q, C> {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        self.assert_idle(slot);
        self.inner.push_flush(file, slot);
        let kind = AccessKind::Flush;
        self.begin(file.0, Access { slot: slot.0, kind, offset: 0, len: 0 });
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        self.inner.file_bytes(file)
    }

    fn leads_there(&self, file: FileIndex) -> bool {
        self.inner.leads_there(file)
    }

    fn time(&self) -> Nanos {
        self.clock.now()
    }
}

#[cfg(test)]
mod tests;
