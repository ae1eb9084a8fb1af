//! The words an issuer and a performer share.

use plumb_sys::arena::{Place, Transfer};
use plumb_sys::completions::Finished;

use crate::Errno;

/// One of the queue's request slots: `0..depth`. At most one I/O is in flight per slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// A file of the queue, by its place in [`crate::QueueSpec::files`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileIndex(pub u32);

/// A lane of buffers: one buffer per slot it covers (see [`crate::LaneSpec`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneIndex(pub u32);

/// A shared write source, by its place in [`crate::QueueSpec::sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceIndex(pub u32);

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// File to memory.
    Read,
    /// Memory to file.
    Write,
}

/// Where the bytes of an I/O lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// The slot's own buffer in a lane; the I/O starts at its first byte.
    Lane(LaneIndex),
    /// A place in a shared write source, in bytes from its start. Writes only.
    Source {
        /// Which source.
        source: SourceIndex,
        /// Bytes from its start.
        offset: u64,
    },
}

/// One I/O, ready to be performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Read or write.
    pub kind: OpKind,
    /// On which file.
    pub file: FileIndex,
    /// Which request it belongs to.
    pub slot: Slot,
    /// Bytes to move.
    pub len: u32,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// From or to where.
    pub memory: Memory,
}

impl From<Op> for Transfer {
    #[inline(always)]
    fn from(op: Op) -> Self {
        Self {
            write: op.kind == OpKind::Write,
            file: op.file.0,
            slot: op.slot.0,
            len: op.len,
            offset: op.offset,
            memory: match op.memory {
                Memory::Lane(lane) => Place::Lane(lane.0),
                Memory::Source { source, offset } => Place::Source { source: source.0, offset },
            },
        }
    }
}

/// A finished I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The slot that is idle again.
    pub slot: Slot,
    /// Bytes moved, or minus an errno: the kernel's own convention.
    pub result: i32,
}

impl From<Finished> for Done {
    #[inline(always)]
    fn from(finished: Finished) -> Self {
        Self { slot: Slot(finished.slot), result: finished.result }
    }
}

impl Done {
    /// Bytes moved, or why none were.
    ///
    /// # Errors
    /// The errno that the performer reported.
    #[inline(always)]
    pub fn outcome(self) -> Result<u32, Errno> {
        u32::try_from(self.result).map_err(|_| Errno(self.result.saturating_neg()))
    }
}
