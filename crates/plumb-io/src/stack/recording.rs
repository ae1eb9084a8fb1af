//! Remembers what was pushed, for tests.

use std::sync::{Arc, Mutex, PoisonError};

use plumb_units::Nanos;

use crate::{
    Done, Errno, IoQueue, LaneIndex, Op, OpenQueueError, Opener, QueueFacts, QueueSpec, QueueUse,
    Slot,
};

/// What one queue did, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// An I/O was pushed.
    Push(Op),
    /// What was in line was submitted, and how many completions were wanted until when.
    Submit {
        /// Completions wanted.
        wanted: u32,
        /// Limit of the wait.
        timeout: Nanos,
    },
    /// A completion was popped.
    Pop(Done),
}

/// A queue that writes down all it is asked, beside an inner one that does it.
#[derive(Debug)]
pub struct RecordingQueue<Q> {
    inner: Q,
    record: Arc<Mutex<Vec<Recorded>>>,
}

impl<Q> RecordingQueue<Q> {
    /// Appends to `record`.
    pub fn new(inner: Q, record: Arc<Mutex<Vec<Recorded>>>) -> Self {
        Self { inner, record }
    }

    fn note(&self, what: Recorded) {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

impl<Q: IoQueue> IoQueue for RecordingQueue<Q> {
    fn push(&mut self, op: Op) {
        self.note(Recorded::Push(op));
        self.inner.push(op);
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.note(Recorded::Submit { wanted, timeout });
        self.inner.submit_and_wait(wanted, timeout)
    }

    fn look(&mut self) -> u32 {
        self.inner.look()
    }

    fn pop(&mut self) -> Option<Done> {
        let done = self.inner.pop()?;
        self.note(Recorded::Pop(done));
        Some(done)
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.inner.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        let mut facts = self.inner.facts();
        facts.engine.push_str("+recording");
        facts
    }
}

/// Opens recording queues around another opener's; one record per queue, in order of opening.
#[derive(Debug)]
pub struct RecordingOpener<O> {
    inner: O,
    records: Mutex<Vec<Arc<Mutex<Vec<Recorded>>>>>,
}

impl<O> RecordingOpener<O> {
    /// Around `inner`.
    pub fn new(inner: O) -> Self {
        Self { inner, records: Mutex::default() }
    }

    /// What each queue did so far.
    #[must_use]
    pub fn records(&self) -> Vec<Vec<Recorded>> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = |record: &Arc<Mutex<Vec<Recorded>>>| {
            record.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        records.iter().map(copy).collect()
    }
}

impl<O: Opener> Opener for RecordingOpener<O> {
    fn open<U: QueueUse>(&self, spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError> {
        let record = Arc::default();
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&record));
        self.inner.open(spec, RecordingUse { user, record })
    }
}

struct RecordingUse<U> {
    user: U,
    record: Arc<Mutex<Vec<Recorded>>>,
}

impl<U: QueueUse> QueueUse for RecordingUse<U> {
    type Output = U::Output;

    fn with<Q: IoQueue>(self, queue: Q) -> U::Output {
        self.user.with(RecordingQueue::new(queue, self.record))
    }
}
