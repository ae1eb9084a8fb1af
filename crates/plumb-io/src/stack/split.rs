//! Mapped files by copies, all others by an inner queue.

use plumb_sys::arena::Arena;
use plumb_sys::completions::{Completions, Finished};
use plumb_units::Nanos;
use plumb_units::convert::index;

use crate::engine::{MappedFile, MappedFiles, arena_error};
use crate::{
    Done, Errno, IoQueue, LaneIndex, Memory, Op, OpKind, OpenQueueError, QueueFacts, QueueSpec,
    Slot,
};

/// A thread may mix mapped and other targets and still wait in one place. I/Os on mapped files are
/// complete when they are pushed; the inner queue owns the buffers and the other files.
#[derive(Debug)]
pub struct SplitQueue<Q> {
    inner: Q,
    mapped: MappedFiles,
    done: Completions,
    /// Which slots are in flight, on either side, and the write sources.
    slots: Arena,
    all_mapped: bool,
}

/// What a split queue keeps of a specification before the inner queue takes it.
#[derive(Debug)]
pub struct Split {
    mapped: MappedFiles,
    slots: Arena,
    all_mapped: bool,
}

impl Split {
    /// Maps the files of `spec` that ask for it.
    ///
    /// # Errors
    /// When one cannot be mapped, or the memory for separated sources is refused.
    pub fn new(spec: &QueueSpec) -> Result<Self, OpenQueueError> {
        let slots = Arena::new(spec.depth, &[], &spec.sources, spec.placement);
        Ok(Self {
            mapped: MappedFiles::open(&spec.files)?,
            slots: slots.map_err(arena_error)?,
            all_mapped: spec.files.iter().all(|file| file.mapping.is_some()),
        })
    }

    /// Whether no file is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mapped.is_empty()
    }

    /// Puts itself around `inner`, which was opened from the same specification.
    pub fn around<Q: IoQueue>(self, inner: Q) -> SplitQueue<Q> {
        let Self { mapped, slots, all_mapped } = self;
        SplitQueue { inner, mapped, done: Completions::new(slots.depth()), slots, all_mapped }
    }
}

impl<Q: IoQueue> IoQueue for SplitQueue<Q> {
    #[inline]
    fn push(&mut self, op: Op) {
        if let Some(file) = self.mapped.get(op.file) {
            let result = copy(file, &mut self.inner, &self.slots, op);
            self.slots.begin(op.slot.0);
            self.done.push(Finished { slot: op.slot.0, result });
        } else {
            self.slots.assert_idle(op.slot.0);
            self.inner.push(op);
            self.slots.begin(op.slot.0);
        }
    }

    #[inline]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        match wanted.saturating_sub(self.done.waiting()) {
            0 => self.inner.submit_and_wait(0, Nanos::ZERO),
            wanted => self.inner.submit_and_wait(wanted, timeout),
        }
    }

    #[inline]
    fn look(&mut self) -> u32 {
        self.done.look() + self.inner.look()
    }

    #[inline]
    fn pop(&mut self) -> Option<Done> {
        let done = self.done.pop().map(Done::from).or_else(|| self.inner.pop())?;
        self.slots.end(done.slot.0);
        Some(done)
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.slots.assert_idle(slot.0);
        self.inner.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        let mut facts = self.inner.facts();
        if self.mapped.is_empty() {
            return facts;
        }
        if self.all_mapped {
            facts.engine = "mmap".to_owned();
            facts.in_push = true;
            facts.flags.clear();
        } else {
            facts.engine.push_str("+mmap");
        }
        facts.flags.extend(self.mapped.flags());
        facts
    }
}

/// Performs an I/O on a mapped file.
fn copy(file: &MappedFile, buffers: &mut impl IoQueue, slots: &Arena, op: Op) -> i32 {
    slots.assert_idle(op.slot.0);
    match (op.kind, op.memory) {
        (kind, Memory::Lane(lane)) => {
            let buffer = buffers.buffer_mut(op.slot, lane);
            assert!(index(op.len) <= buffer.len(), "{op:?} is longer than its buffer");
            let bytes = &mut buffer[..index(op.len)];
            match kind {
                OpKind::Read => file.read(op.offset, bytes),
                OpKind::Write => file.write(op.offset, bytes),
            }
        }
        // A read to a source panics there.
        (_, Memory::Source { .. }) => file.write(op.offset, slots.bytes_of(&op.into())),
    }
}
