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
}

impl NullQueue {
    /// Allocates the buffers; files are not looked at.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn open(spec: &QueueSpec) -> Result<Self, OpenQueueError> {
        let arena = buffers::arena(spec)?;
        Ok(Self { done: Completions::new(arena.depth()), arena, submitted: 0 })
    }
}

impl IoQueue for NullQueue {
    #[inline(always)]
    fn push(&mut self, op: Op) {
        self.arena.check(&op.into());
        self.arena.begin(op.slot.0);
        self.done.push(Finished { slot: op.slot.0, result: moved(op.len) });
    }

    #[inline(always)]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
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
