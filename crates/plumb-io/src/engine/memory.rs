//! Files that lie in memory and answer at once: what is left is the cost of whoever issues the I/O.

use plumb_sys::cache_lines::{copy_around, prefetch};
use plumb_sys::memory::{Block, BufferPlacement};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64};
use rustix::fs::OFlags;

use plumb_sys::arena::ArenaError;

use crate::{
    Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, Memory, Op, OpKind, OpenQueueError,
    QueueFacts, QueueSpec, Slot, SlotMemory,
};

const EIO: i32 = 5;
const EBADF: i32 = 9;

#[derive(Debug)]
struct MemoryFile {
    content: Block,
    writable: bool,
    /// Every I/O fails.
    failing: bool,
}

impl MemoryFile {
    fn new(size: u64, writable: bool) -> Result<Self, OpenQueueError> {
        let refused = |errno| {
            super::buffers::arena_error(ArenaError { bytes: size, errno, large_pages: false })
        };
        let content = Block::new(size, BufferPlacement::System).map_err(refused)?;
        Ok(Self { content, writable, failing: false })
    }
}

/// A queue to files in memory, zeroed at first. It keeps every promise of a queue to real files, so data
/// can be verified; an I/O completes while it is submitted.
///
/// It takes no more processor time than it must, as a device takes none: what is written goes around the caches, and
/// what is to be read is on its way into them from the push on.
#[derive(Debug)]
pub struct MemoryQueue {
    memory: SlotMemory,
    files: Vec<MemoryFile>,
    /// Pushed and not submitted: I/Os, and flushes, of which there is no I/O.
    pushed: Vec<Pushed>,
}

#[derive(Debug, Clone, Copy)]
enum Pushed {
    Io(Op),
    Flush(FileIndex, Slot),
}

impl MemoryQueue {
    /// Allocates buffers, and a file of the size and with the rights of each file of `spec`, whose own content
    /// is not looked at.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn open(spec: &QueueSpec) -> Result<Self, OpenQueueError> {
        let files = spec.files.iter().map(|file| {
            let flags = rustix::fs::fcntl_getfl(&file.descriptor).unwrap_or(OFlags::RDWR);
            MemoryFile::new(file.size, flags.intersects(OFlags::RDWR | OFlags::WRONLY))
        });
        Self::with(spec, files.collect::<Result<_, _>>()?)
    }

    /// The same with writable files of these sizes in bytes, whatever files `spec` has.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn of_sizes(spec: &QueueSpec, sizes: &[u64]) -> Result<Self, OpenQueueError> {
        let files = sizes.iter().map(|size| MemoryFile::new(*size, true));
        Self::with(spec, files.collect::<Result<_, _>>()?)
    }

    fn with(spec: &QueueSpec, files: Vec<MemoryFile>) -> Result<Self, OpenQueueError> {
        let memory = SlotMemory::open(spec)?;
        let pushed = Vec::with_capacity(index(memory.depth()));
        Ok(Self { memory, files, pushed })
    }

    /// The files lie in large pages, as far as the kernel has any: for files that are filled, of which a page that
    /// is touched takes the memory of a large one.
    pub fn use_large_pages(&self) {
        self.files.iter().for_each(|file| file.content.grow_large());
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
        self.files[index(file.0)].content.bytes_mut()
    }

    /// The part of the file that an I/O reaches; none at and behind its end.
    #[inline]
    fn range(file: &MemoryFile, op: &Op) -> std::ops::Range<usize> {
        let len = file.content.bytes().len();
        let start = usize::try_from(op.offset).unwrap_or(usize::MAX).min(len);
        start..start.saturating_add(index(op.len)).min(len)
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
                self.memory.fill(op.slot, lane, &file.content.bytes()[range]);
            }
            (OpKind::Read | OpKind::Write, _) => {
                if !file.writable {
                    return -EBADF;
                }
                let len = range.len();
                let target = &mut file.content.bytes_mut()[range];
                self.memory.with_taken(op, |bytes| copy_around(target, &bytes[..len]));
            }
        }
        moved
    }

    /// Performs all that was pushed, in order.
    #[inline]
    fn submit(&mut self) {
        let mut pushed = std::mem::take(&mut self.pushed);
        for one in pushed.drain(..) {
            let (slot, result) = match one {
                Pushed::Io(op) => (op.slot, self.perform(&op)),
                Pushed::Flush(file, slot) => {
                    (slot, if self.files[index(file.0)].failing { -EIO } else { 0 })
                }
            };
            self.memory.finish(slot, result);
        }
        self.pushed = pushed;
    }
}

impl IoQueue for MemoryQueue {
    #[inline]
    fn push(&mut self, op: Op) {
        self.memory.check(&op);
        // Whatever is refused is refused before its slot is in flight.
        let file = &self.files[index(op.file.0)];
        if op.kind == OpKind::Read {
            prefetch(&file.content.bytes()[Self::range(file, &op)]);
        }
        self.memory.begin(op.slot);
        self.pushed.push(Pushed::Io(op));
    }

    #[inline]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.submit();
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
        assert!(index(file.0) < self.files.len(), "file {} does not exist", file.0);
        self.memory.begin(slot);
        self.pushed.push(Pushed::Flush(file, slot));
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        self.files.get(index(file.0)).map(|file| to_u64(file.content.bytes().len()))
    }
}
