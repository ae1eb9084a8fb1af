//! Buffers and completions of a queue that performs its I/O itself.

use plumb_sys::arena::Arena;
use plumb_sys::completions::{Completions, Finished};

use crate::engine::{arena, facts};
use crate::{Done, LaneIndex, Op, OpenQueueError, QueueFacts, QueueSpec, Slot};

/// What every performer outside the kernel needs: the slots' buffers, which of them are in flight, and the
/// completions that wait to be popped.
#[derive(Debug)]
pub struct SlotMemory {
    arena: Arena,
    done: Completions,
}

impl SlotMemory {
    /// Allocates the buffers that `spec` asks for.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn open(spec: &QueueSpec) -> Result<Self, OpenQueueError> {
        let arena = arena(spec)?;
        Ok(Self { done: Completions::new(arena.depth()), arena })
    }

    /// How many slots there are.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.arena.depth()
    }

    /// The bytes that an I/O takes or is to fill, before it begins.
    ///
    /// # Panics
    /// When its slot is in flight, or its memory is not the slot's or a source's.
    #[inline]
    #[must_use]
    pub fn bytes_of(&self, op: &Op) -> &[u8] {
        self.arena.bytes_of(&(*op).into())
    }

    /// Asserts that an I/O may begin as far as its memory goes.
    ///
    /// # Panics
    /// When its memory is not the slot's or a source's.
    #[inline]
    pub fn check(&self, op: &Op) {
        self.arena.check(&(*op).into());
    }

    /// The slot is in flight from now on.
    ///
    /// # Panics
    /// When it is already.
    #[inline]
    pub fn begin(&mut self, slot: Slot) {
        self.arena.begin(slot.0);
    }

    /// Puts `bytes` at the start of a buffer of a slot in flight, for whoever performs its I/O.
    ///
    /// # Panics
    /// When the lane does not cover the slot, or its buffer is shorter.
    #[inline]
    pub fn fill(&mut self, slot: Slot, lane: LaneIndex, bytes: &[u8]) {
        self.fill_from(slot, lane, 0, bytes);
    }

    /// The same from byte `from` of the buffer on.
    ///
    /// # Panics
    /// When the lane does not cover the slot, or its buffer is shorter.
    #[inline]
    pub fn fill_from(&mut self, slot: Slot, lane: LaneIndex, from: usize, bytes: &[u8]) {
        // In flight it is the performer's: idle for this copy only.
        self.arena.end(slot.0);
        let buffer = self.arena.buffer_mut(slot.0, lane.0);
        buffer[from..from + bytes.len()].copy_from_slice(bytes);
        self.arena.begin(slot.0);
    }

    /// Shows whoever performs an I/O in flight the bytes that it takes.
    ///
    /// # Panics
    /// When its memory is not the slot's or a source's.
    #[inline]
    pub fn with_taken<R>(&mut self, op: &Op, show: impl FnOnce(&[u8]) -> R) -> R {
        // As above.
        self.arena.end(op.slot.0);
        let shown = show(self.arena.bytes_of(&(*op).into()));
        self.arena.begin(op.slot.0);
        shown
    }

    /// The slot's I/O is over: `result` bytes were moved, or minus an errno.
    #[inline]
    pub fn finish(&mut self, slot: Slot, result: i32) {
        self.done.push(Finished { slot: slot.0, result });
    }

    /// Completions that were not popped.
    #[inline]
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.done.waiting()
    }

    /// As [`crate::IoQueue::look`].
    #[inline]
    pub fn look(&mut self) -> u32 {
        self.done.look()
    }

    /// As [`crate::IoQueue::pop`]: the slot is idle again.
    #[inline]
    pub fn pop(&mut self) -> Option<Done> {
        let done = self.done.pop()?;
        self.arena.end(done.slot);
        Some(done.into())
    }

    /// As [`crate::IoQueue::buffer_mut`].
    ///
    /// # Panics
    /// When the slot is in flight, or the lane does not cover it.
    #[inline]
    pub fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.arena.buffer_mut(slot.0, lane.0)
    }

    /// The facts that concern memory, of a queue that calls itself `engine`.
    #[must_use]
    pub fn facts(&self, engine: &str) -> QueueFacts {
        facts(engine, &self.arena)
    }
}
