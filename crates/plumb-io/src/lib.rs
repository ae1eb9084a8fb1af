//! The seam between whoever issues I/O and whoever performs it: the [`IoQueue`] trait, its words, and
//! its performers.
//!
//! Issuers (a workload, a front end) and performers (a kernel engine, the simulator, a virtual disk)
//! never see each other, so any of them can be swapped, stacked or simulated.
#![forbid(unsafe_code)]

mod bell;
pub mod block_stack;
pub mod block_trace;
pub mod clock;
pub mod conformance;
pub mod contents;
pub mod counters;
pub mod descriptors;
pub mod engine;
mod errno;
pub mod event;
pub mod exclusive;
#[cfg(test)]
mod fake_tree;
mod flush;
pub mod io_wq;
pub mod mark;
pub mod memory;
pub mod nvme_log;
mod op;
mod queue;
pub mod siblings;
pub mod sim;
mod slot_memory;
pub mod stack;
pub mod system_tree;
pub mod topology;
pub mod verify;

pub use bell::Bell;
pub use errno::Errno;
pub use flush::FlushQueue;
pub use op::{Done, FileIndex, LaneIndex, Memory, Op, OpKind, Slot, SourceIndex};
pub use plumb_sys::open_flags::DSYNC;
pub use queue::{
    BufferPlacement, IoPriority, IoQueue, LaneSpec, MappingFlush, MappingSpec, OpenQueueError,
    Opener, QueueFacts, QueueMode, QueueSpec, QueueUse, RegionSpec, TargetFile, WriteSource,
};
pub use slot_memory::SlotMemory;
