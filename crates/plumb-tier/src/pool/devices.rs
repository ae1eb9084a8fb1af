//! The queue to a pool's real disks: a ring, or plain calls where the kernel has none.

use plumb_io::engine::{SyncQueue, UringOptions, UringQueue, probe_ring};
use plumb_io::{
    Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, Op, OpenQueueError, QueueFacts,
    QueueSpec, RegionSpec, Slot, TargetFile,
};
use plumb_units::Nanos;

use crate::io::SlotPlan;

/// All disks of a pool on one queue of the calling thread.
#[expect(clippy::large_enum_variant, reason = "there is one per pool")]
#[derive(Debug)]
pub enum DeviceQueue {
    /// `io_uring`.
    Ring(UringQueue),
    /// One call at a time.
    Calls(SyncQueue),
}

impl DeviceQueue {
    /// Opens the best queue that this kernel has, with `plan`'s slots and buffers.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn open(plan: &SlotPlan, files: Vec<TargetFile>) -> Result<Self, OpenQueueError> {
        let spec = spec(plan, files);
        match probe_ring() {
            Ok(()) => Ok(Self::Ring(UringQueue::open(spec, UringOptions::default())?)),
            Err(_) => Ok(Self::Calls(SyncQueue::open(spec)?)),
        }
    }

    /// One call at a time, whatever the kernel has.
    ///
    /// # Errors
    /// When memory is refused.
    pub(super) fn calls(plan: &SlotPlan, files: Vec<TargetFile>) -> Result<Self, OpenQueueError> {
        Ok(Self::Calls(SyncQueue::open(spec(plan, files))?))
    }
}

fn spec(plan: &SlotPlan, files: Vec<TargetFile>) -> QueueSpec {
    let regions = vec![RegionSpec { lanes: plan.lanes() }];
    QueueSpec { depth: plan.depth(), files, regions, ..QueueSpec::default() }
}

macro_rules! either {
    ($self:ident, $queue:ident => $call:expr) => {
        match $self {
            Self::Ring($queue) => $call,
            Self::Calls($queue) => $call,
        }
    };
}

impl IoQueue for DeviceQueue {
    #[inline]
    fn push(&mut self, op: Op) {
        either!(self, queue => queue.push(op));
    }

    #[inline]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        either!(self, queue => queue.submit_and_wait(wanted, timeout))
    }

    #[inline]
    fn look(&mut self) -> u32 {
        either!(self, queue => queue.look())
    }

    #[inline]
    fn pop(&mut self) -> Option<Done> {
        either!(self, queue => queue.pop())
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        either!(self, queue => queue.buffer_mut(slot, lane))
    }

    fn facts(&self) -> QueueFacts {
        either!(self, queue => queue.facts())
    }
}

impl FlushQueue for DeviceQueue {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        either!(self, queue => queue.push_flush(file, slot));
    }
}
