//! A bounded pool of plain threads: asynchronous I/O where the kernel offers none.

use std::os::fd::OwnedFd;

use plumb_sys::arena::Arena;
use plumb_sys::pool::Pool;
use plumb_units::convert::index;
use plumb_units::{Nanos, convert};

use super::buffers;
use crate::queue::OpenFile;
use crate::{
    Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, Op, OpenQueueError, QueueFacts,
    QueueSpec, Slot,
};

/// I/O by `pread` and `pwrite` on other threads: one per slot, up to a bound.
#[derive(Debug)]
pub struct ThreadsQueue {
    pool: Pool,
    /// What is known of each file.
    files: Vec<OpenFile>,
    notes: Vec<String>,
}

impl ThreadsQueue {
    /// Starts the threads; `notes` say how the queue came to this engine.
    ///
    /// # Errors
    /// When memory or threads are refused.
    pub fn open(spec: QueueSpec, notes: Vec<String>) -> Result<Self, OpenQueueError> {
        Self::with(spec, notes, Pool::open)
    }

    /// Starts threads as they are needed, one per slot in the end: a file whose I/O never ends holds up no other one.
    ///
    /// # Errors
    /// When memory or a first thread is refused.
    pub fn growing(spec: QueueSpec) -> Result<Self, OpenQueueError> {
        Self::with(spec, Vec::new(), Pool::growing)
    }

    fn with(
        spec: QueueSpec,
        notes: Vec<String>,
        open: fn(Arena, Vec<OwnedFd>) -> std::io::Result<Pool>,
    ) -> Result<Self, OpenQueueError> {
        let arena = buffers::arena(&spec)?;
        let known = spec.files.iter().map(OpenFile::of).collect();
        let files = spec.files.into_iter().map(|file| file.descriptor).collect();
        let pool = open(arena, files).map_err(|error| OpenQueueError::Unavailable {
            engine: "threads".to_owned(),
            reason: format!("a thread cannot be started: {error}"),
            remedy: "raise the limit on processes (ulimit -u, cgroup pids.max), or have fewer \
                     requests outstanding (a load's -o and -t)"
                .to_owned(),
        })?;
        Ok(Self { pool, files: known, notes })
    }
}

impl IoQueue for ThreadsQueue {
    fn push(&mut self, op: Op) {
        self.pool.push(&op.into());
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.pool.submit_and_wait(wanted, timeout);
        Ok(())
    }

    fn look(&mut self) -> u32 {
        self.pool.look()
    }

    fn pop(&mut self) -> Option<Done> {
        self.pool.pop().map(Done::from)
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.pool.buffer_mut(slot.0, lane.0)
    }

    fn facts(&self) -> QueueFacts {
        let mut facts = buffers::facts("threads", self.pool.arena());
        facts.flags.push(format!("{}_threads", self.pool.threads()));
        facts.dropped.extend_from_slice(&self.notes);
        let (depth, threads) = (self.pool.arena().depth(), self.pool.threads());
        if convert::to_u64(threads) < depth.into() {
            facts
                .dropped
                .push(format!("{depth} outstanding I/Os: this engine has {threads} in flight"));
        }
        facts
    }
}

impl FlushQueue for ThreadsQueue {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        self.pool.push_flush(file.0, slot.0);
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        self.files.get(index(file.0)).map(|file| file.size)
    }

    fn leads_there(&self, file: FileIndex) -> bool {
        self.files.get(index(file.0)).is_none_or(OpenFile::is_there)
    }
}
