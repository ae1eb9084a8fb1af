//! Plain calls: `pread` and `pwrite`, one at a time.

use std::os::fd::AsFd;

use plumb_sys::arena::Arena;
use plumb_sys::completions::{Completions, Finished};
use plumb_units::Nanos;
use plumb_units::convert::index;
use rustix::io::{pread, pwrite, retry_on_intr};

use super::buffers;
use crate::contents::is_same;
use crate::{
    Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, Memory, Op, OpKind, OpenQueueError,
    QueueFacts, QueueMode, QueueSpec, Slot, TargetFile,
};

/// Performs each I/O while it is pushed, so that only its own time lies between push and completion.
#[derive(Debug)]
pub struct SyncQueue {
    arena: Arena,
    files: Vec<TargetFile>,
    done: Completions,
    /// Whether more were to be in flight than ever are.
    one_at_a_time: bool,
}

impl SyncQueue {
    /// Allocates the buffers and takes the files.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn open(spec: QueueSpec) -> Result<Self, OpenQueueError> {
        let arena = buffers::arena(&spec)?;
        let one_at_a_time = spec.depth > 1 && spec.mode == QueueMode::Asynchronous;
        let done = Completions::new(arena.depth());
        Ok(Self { done, arena, files: spec.files, one_at_a_time })
    }

    fn perform(&mut self, op: Op) -> Result<usize, rustix::io::Errno> {
        let file = &self.files[index(op.file.0)].descriptor;
        match (op.kind, op.memory) {
            (OpKind::Read, Memory::Lane(lane)) => {
                let buffer = self.arena.buffer_mut(op.slot.0, lane.0);
                assert!(index(op.len) <= buffer.len(), "{op:?} is longer than its buffer");
                let buffer = &mut buffer[..index(op.len)];
                retry_on_intr(|| pread(file, &mut *buffer, op.offset))
            }
            (OpKind::Read | OpKind::Write, _) => {
                let bytes = self.arena.bytes_of(&op.into());
                retry_on_intr(|| pwrite(file, bytes, op.offset))
            }
        }
    }
}

impl IoQueue for SyncQueue {
    #[inline]
    fn push(&mut self, op: Op) {
        let result = match self.perform(op) {
            Ok(moved) => i32::try_from(moved).expect("the kernel moves less than 2 GiB per call"),
            Err(errno) => -errno.raw_os_error(),
        };
        self.arena.begin(op.slot.0);
        self.done.push(Finished { slot: op.slot.0, result });
    }

    #[inline]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        if wanted > self.done.waiting() {
            super::sleep(timeout);
        }
        Ok(())
    }

    #[inline]
    fn look(&mut self) -> u32 {
        self.done.look()
    }

    #[inline]
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
        let mut facts = buffers::facts("sync", &self.arena);
        facts.in_push = true;
        if self.one_at_a_time {
            let depth = self.arena.depth();
            facts.dropped.push(format!("{depth} outstanding I/Os: this engine has one in flight"));
        }
        facts
    }
}

impl FlushQueue for SyncQueue {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        let descriptor = &self.files[index(file.0)].descriptor;
        let outcome = retry_on_intr(|| rustix::fs::fdatasync(descriptor));
        let result = outcome.err().map_or(0, |errno| -errno.raw_os_error());
        self.arena.begin(slot.0);
        self.done.push(Finished { slot: slot.0, result });
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        self.files.get(index(file.0)).map(|file| file.size)
    }

    fn leads_there(&self, file: FileIndex) -> bool {
        self.files
            .get(index(file.0))
            .is_none_or(|file| is_same(file.descriptor.as_fd(), &file.path))
    }
}
