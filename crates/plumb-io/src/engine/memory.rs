//! Files that lie in memory and answer at once: what is left is the cost of whoever issues the I/O.

use plumb_units::Nanos;
use plumb_units::convert::{index, to_usize};
use rustix::fs::OFlags;

use crate::{
    Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, Memory, Op, OpKind, OpenQueueError,
    QueueFacts, QueueSpec, Slot, SlotMemory,
};

const EIO: i32 = 5;
const EBADF: i32 = 9;

#[derive(Debug)]
struct MemoryFile {
    bytes: Vec<u8>,
    writable: bool,
    /// Every I/O fails.
    failing: bool,
}

/// A queue to files in memory, zeroed at first. It keeps every promise of a queue to real files, so data
/// can be verified; an I/O completes while it is pushed.
#[derive(Debug)]
pub struct MemoryQueue {
    memory: SlotMemory,
    files: Vec<MemoryFile>,
}

impl MemoryQueue {
    /// Allocates buffers, and a file of the size and with the rights of each file of `spec`, whose own content
    /// is not looked at.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn open(spec: &QueueSpec) -> Result<Self, OpenQueueError> {
        let memory = SlotMemory::open(spec)?;
        let files = spec.files.iter().map(|file| {
            let flags = rustix::fs::fcntl_getfl(&file.descriptor).unwrap_or(OFlags::RDWR);
            MemoryFile {
                bytes: vec![0; to_usize(file.size)],
                writable: flags.intersects(OFlags::RDWR | OFlags::WRONLY),
                failing: false,
            }
        });
        Ok(Self { memory, files: files.collect() })
    }

    /// The same with writable files of these sizes in bytes, whatever files `spec` has.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn of_sizes(spec: &QueueSpec, sizes: &[u64]) -> Result<Self, OpenQueueError> {
        let memory = SlotMemory::open(spec)?;
        let file = |size: &u64| MemoryFile {
            bytes: vec![0; to_usize(*size)],
            writable: true,
            failing: false,
        };
        Ok(Self { memory, files: sizes.iter().map(file).collect() })
    }

    /// From now on every I/O on the file fails with EIO, or none does.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn set_failing(&mut self, file: FileIndex, failing: bool) {
        self.files[index(file.0)].failing = failing;
    }

    /// What the file holds.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn bytes_mut(&mut self, file: FileIndex) -> &mut [u8] {
        &mut self.files[index(file.0)].bytes
    }

    /// The part of the file that an I/O reaches; none at and behind its end.
    #[inline]
    fn range(file: &MemoryFile, op: &Op) -> std::ops::Range<usize> {
        let start = usize::try_from(op.offset).unwrap_or(usize::MAX).min(file.bytes.len());
        start..start.saturating_add(index(op.len)).min(file.bytes.len())
    }

    #[inline]
    fn perform(&mut self, op: &Op) -> i32 {
        let file = &mut self.files[index(op.file.0)];
        if file.failing {
            return -EIO;
        }
        let range = Self::range(file, op);
        let moved = i32::try_from(range.len()).unwrap_or(i32::MAX);
        match (op.kind, op.memory) {
            (OpKind::Read, Memory::Lane(lane)) => {
                let target = self.memory.buffer_mut(op.slot, lane);
                target[..range.len()].copy_from_slice(&file.bytes[range]);
            }
            (OpKind::Read | OpKind::Write, _) => {
                if !file.writable {
                    return -EBADF;
                }
                let len = range.len();
                file.bytes[range].copy_from_slice(&self.memory.bytes_of(op)[..len]);
            }
        }
        moved
    }
}

impl IoQueue for MemoryQueue {
    #[inline]
    fn push(&mut self, op: Op) {
        self.memory.check(&op);
        let result = self.perform(&op);
        self.memory.begin(op.slot);
        self.memory.finish(op.slot, result);
    }

    #[inline]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        if wanted > self.memory.waiting() {
            super::sleep(timeout);
        }
        Ok(())
    }

    #[inline]
    fn look(&mut self) -> u32 {
        self.memory.look()
    }

    #[inline]
    fn pop(&mut self) -> Option<Done> {
        self.memory.pop()
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.memory.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        self.memory.facts("memory")
    }
}

impl FlushQueue for MemoryQueue {
    #[inline]
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        let result = if self.files[index(file.0)].failing { -EIO } else { 0 };
        self.memory.begin(slot);
        self.memory.finish(slot, result);
    }
}
