//! Completes everything at once and touches no target: what is left is the issuer's own cost.

use plumb_sys::arena::Arena;
use plumb_sys::completions::{Completions, Finished, moved};
use plumb_units::Nanos;

use super::buffers;
use crate::{Done, Errno, IoQueue, LaneIndex, Op, OpenQueueError, QueueFacts, QueueSpec, Slot};

/// A queue without a target. I/Os complete when they are submitted, in full.
#[derive(Debug)]
pub struct NullQueue {
    arena: Arena,
    done: Completions,
    /// Up to here completions may be seen.
    submitted: u32,
    /// Of all offsets: a device would need them, so that they have to be computed here, too.
    offsets: u64,
}

impl NullQueue {
    /// Allocates the buffers; files are not looked at.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn open(spec: &QueueSpec) -> Result<Self, OpenQueueError> {
        let arena = buffers::arena(spec)?;
        let done = Completions::new(arena.depth());
        Ok(Self { done, arena, submitted: 0, offsets: 0 })
    }
}

impl IoQueue for NullQueue {
    #[inline(always)]
    fn push(&mut self, op: Op) {
        self.arena.check(&op.into());
        self.arena.begin(op.slot.0);
        self.offsets ^= op.offset;
        self.done.push(Finished { slot: op.slot.0, result: moved(op.len) });
    }

    #[inline(always)]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        std::hint::black_box(self.offsets);
        self.submitted = self.done.mark();
        if wanted > self.done.waiting() {
            super::sleep(timeout);
        }
        Ok(())
    }

    #[inline(always)]
    fn look(&mut self) -> u32 {
        self.done.look_up_to(self.submitted)
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Done> {
        let done = self.done.pop()?;
        self.arena.end(done.slot);
        Some(done.into())
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.arena.buffer_mut(slot.0, lane.0)
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts { no_target: true, ..buffers::facts("null", &self.arena) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileIndex, LaneSpec, Memory, OpKind, RegionSpec};

    #[test]
    fn offsets_are_asked_for() {
        let lanes = vec![LaneSpec { first_slot: 0, slots: 2, bytes: 4096 }];
        let regions = vec![RegionSpec { lanes }];
        let spec = QueueSpec { depth: 2, regions, ..QueueSpec::default() };
        let mut queue = NullQueue::open(&spec).expect("memory");
        for (slot, offset) in [(0, 0x5000), (1, 0x3000)] {
            let (kind, memory) = (OpKind::Read, Memory::Lane(LaneIndex(0)));
            let slot = Slot(slot);
            queue.push(Op { kind, file: FileIndex(0), slot, len: 4096, offset, memory });
        }
        assert_eq!(queue.offsets, 0x6000);
    }
}
