//! Queues that can make a file durable.

use plumb_units::Nanos;

use crate::clock::{Clock, StampClock};
use crate::{Bell, Done, Errno, FileIndex, IoQueue, LaneIndex, Op, QueueFacts, Slot};

/// A queue that a storage engine can build upon: beside reads and writes it flushes.
pub trait FlushQueue: IoQueue {
    /// Puts a flush of `file` in line. Once it has completed without error, every write to the file
    /// that had completed before this call is on stable media. Its [`crate::Done`] moves no bytes.
    ///
    /// # Panics
    /// When the slot has an I/O in flight, or the file does not exist.
    fn push_flush(&mut self, file: FileIndex, slot: Slot);

    /// What ends a wait in this queue from another thread; `None` where whoever waits has to look by itself.
    fn bell(&self) -> Option<Bell> {
        None
    }

    /// Bytes of `file`; `None` where this queue does not know.
    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        let _ = file;
        None
    }

    /// Whether what `file` was opened by still leads to it: it may have been removed, or something else put in its place. True where
    /// this queue does not know.
    fn leads_there(&self, file: FileIndex) -> bool {
        let _ = file;
        true
    }

    /// The time that [`IoQueue::submit_and_wait`]'s waits go by. A wait may end before its time and without a
    /// completion, by a signal or a bell: only this says whether the time is over. Its zero means nothing.
    fn time(&self) -> Nanos {
        StampClock::monotonic().now()
    }
}

/// A queue that is lent is a queue.
impl<Q: IoQueue + ?Sized> IoQueue for &mut Q {
    fn push(&mut self, op: Op) {
        (**self).push(op);
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        (**self).submit_and_wait(wanted, timeout)
    }

    fn look(&mut self) -> u32 {
        (**self).look()
    }

    fn pop(&mut self) -> Option<Done> {
        (**self).pop()
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        (**self).buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        (**self).facts()
    }
}

impl<Q: FlushQueue + ?Sized> FlushQueue for &mut Q {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        (**self).push_flush(file, slot);
    }

    fn bell(&self) -> Option<Bell> {
        (**self).bell()
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        (**self).file_bytes(file)
    }

    fn leads_there(&self, file: FileIndex) -> bool {
        (**self).leads_there(file)
    }

    fn time(&self) -> Nanos {
        (**self).time()
    }
}
