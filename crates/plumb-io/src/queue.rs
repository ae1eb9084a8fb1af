//! The trait at which issuers and performers meet, and what a performer needs to be opened.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

pub use plumb_sys::arena::{LaneSpec, RegionSpec, WriteSource};
pub use plumb_sys::memory::BufferPlacement;
pub use plumb_sys::priority::IoPriority;
use plumb_units::Nanos;

use crate::contents::Identity;
use crate::{Done, Errno, LaneIndex, Op, Slot};

/// Where one thread hands in I/O and waits; owner of the slots' buffers and of the open files.
///
/// A thread waits in one place: its queue serves all its files. Every implementation passes
/// `plumb_io::conformance`.
pub trait IoQueue {
    /// Puts `op` in line; the kernel need not see it yet.
    ///
    /// # Panics
    /// When its slot has an I/O in flight, its memory does not lie in the slot's buffer or a write
    /// source, or its file does not exist.
    fn push(&mut self, op: Op);

    /// Submits what is in line and waits until `wanted` completions are there to be seen (0: does not
    /// wait) or `timeout` has passed. A time-out is not an error.
    ///
    /// `wanted` is at most the depth. With a timeout it waits for it even when fewer are in flight than wanted: so an issuer sleeps.
    /// With [`Nanos::NEVER`] it waits for no more than are in flight. A signal may end the wait early.
    ///
    /// # Errors
    /// When the submission itself failed; a failed I/O is a [`Done`].
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno>;

    /// How many completions are there now: one load where the performer allows it, no system call.
    /// `pop` yields just these; what is not popped is counted again by the next look.
    fn look(&mut self) -> u32;

    /// The next completion that the last look counted.
    fn pop(&mut self) -> Option<Done>;

    /// The bytes of a slot that has no I/O in flight.
    ///
    /// # Panics
    /// When one is in flight, or the lane does not cover the slot.
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8];

    /// What is really in force, for the result.
    fn facts(&self) -> QueueFacts;
}

/// What is really in force behind a queue; shown in every result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueFacts {
    /// `uring`, `aio`, `threads`, `sync`, `mmap`, `null`, `nop`, `nop-file`, `sim`; joined by `+` for a stack.
    pub engine: String,
    /// Flags in force, by their kernel names in lower case (`single_issuer`, `fixed_buffers`, …).
    pub flags: Vec<String>,
    /// What was asked for and refused, with the reason.
    pub dropped: Vec<String>,
    /// Whether each I/O is over when its `push` returns (`sync`, `mmap`): never more than one is in flight.
    pub in_push: bool,
    /// Whether no target is touched (`null`, `nop`, `nop-file`): such a result is never a baseline.
    pub no_target: bool,
    /// Alignment of the buffers in bytes, 0 for wherever the allocator put them (spec 15.4).
    pub buffer_separation: u64,
}

/// Everything a queue is made of, decided before the clock starts.
#[derive(Debug, Default)]
pub struct QueueSpec {
    /// Slots: `0..depth`.
    pub depth: u32,
    /// Open files, in the order of [`crate::FileIndex`].
    pub files: Vec<TargetFile>,
    /// Memory to allocate; lanes are numbered through all regions in order.
    pub regions: Vec<RegionSpec>,
    /// Shared write sources, in the order of [`crate::SourceIndex`].
    pub sources: Vec<Arc<WriteSource>>,
    /// Where the buffers lie.
    pub placement: BufferPlacement,
    /// How the queue will be used.
    pub mode: QueueMode,
    /// Register buffers with the kernel where the engine can.
    pub register_buffers: bool,
    /// Whether latencies are measured: selects the ring's profile.
    pub measures_latency: bool,
}

/// An open target.
#[derive(Debug)]
pub struct TargetFile {
    /// The descriptor, opened with the flags the target asks for.
    pub descriptor: OwnedFd,
    /// For messages.
    pub path: PathBuf,
    /// Length in bytes when it was opened.
    pub size: u64,
    /// Priority of its I/O, beside that of the thread; honoured by io_uring only.
    pub priority: Option<IoPriority>,
    /// `Some`: the file is to be mapped and its I/O are copies (spec 6.11).
    pub mapping: Option<MappingSpec>,
}

/// What is remembered of an open target whose descriptor the kernel or other threads have.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    /// Length in bytes when it was opened.
    pub(crate) size: u64,
    path: PathBuf,
    identity: Option<Identity>,
}

impl OpenFile {
    pub(crate) fn of(file: &TargetFile) -> Self {
        let identity = Identity::of(file.descriptor.as_fd());
        Self { size: file.size, path: file.path.clone(), identity }
    }

    /// Whether its path still leads to it.
    pub(crate) fn is_there(&self) -> bool {
        self.identity.is_none_or(|own| own.is_at(&self.path))
    }
}

/// How a mapped target is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappingSpec {
    /// Map for writing too.
    pub writable: bool,
    /// Non-temporal copies, no flush (`-Smw`).
    pub write_through: bool,
    /// What follows each write.
    pub flush: MappingFlush,
}

/// What follows a write to a mapping (spec 6.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MappingFlush {
    /// Nothing.
    #[default]
    None,
    /// `msync` of the page-rounded range (`-Nv`).
    ViewOfFile,
    /// CPU cache lines of the range, then a fence (`-Nn`). Needs a MAP_SYNC mapping.
    NonVolatileMemory,
    /// The same without the fence (`-Ni`).
    NonVolatileMemoryNoDrain,
}

/// How a thread will use its queue (spec 6.2, 15.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueMode {
    /// One I/O at a time, or mapped targets only: plain calls.
    Synchronous,
    /// Many I/Os in flight.
    #[default]
    Asynchronous,
    /// `-u`: io_uring or nothing.
    Ring,
}

/// Why a queue could not be opened.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum OpenQueueError {
    /// The engine cannot run here.
    #[error("the {engine} engine cannot be used here: {reason}")]
    #[diagnostic(code(plumb::io::engine_unavailable))]
    Unavailable {
        /// Its name.
        engine: String,
        /// Why, in words.
        reason: String,
        /// What to type instead.
        #[help]
        remedy: String,
    },
    /// Memory was refused.
    #[error("cannot get {bytes} bytes of I/O buffers: {reason}")]
    #[diagnostic(code(plumb::io::buffers))]
    Memory {
        /// How much was asked for.
        bytes: u64,
        /// Why it failed.
        reason: String,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// A target cannot be served by this engine.
    #[error("cannot use {}: {reason}", path.display())]
    #[diagnostic(code(plumb::io::target))]
    Target {
        /// Which one.
        path: PathBuf,
        /// Why.
        reason: String,
        /// What to do.
        #[help]
        remedy: String,
    },
}

/// Opens queues for an issuer that must not know which engine it gets.
pub trait Opener: Sync {
    /// Opens a queue as `spec` says and hands it to `user`, on the calling thread.
    ///
    /// # Errors
    /// When no queue could be opened; `user` was not called then.
    fn open<U: QueueUse>(&self, spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError>;

    /// Whether a queue could be had that is used in the given way, found out without any file: for those who
    /// are about to make one. `mapped_only`: every target is memory mapped.
    ///
    /// # Errors
    /// Those of [`Opener::open`], as far as they do not depend on files or memory.
    fn check(&self, _mode: QueueMode, _mapped_only: bool) -> Result<(), OpenQueueError> {
        Ok(())
    }

    /// Bytes of a target that is no file but something of the opener's own, such as a virtual disk; `None` if
    /// it is a file. In a [`TargetFile`] it stands by its name, and the descriptor only tells its flags.
    fn own_target(&self, _name: &str) -> Option<u64> {
        None
    }
}

/// What an issuer does with a queue: a function that is generic over the queue's type.
pub trait QueueUse {
    /// What comes back.
    type Output;

    /// Uses the queue.
    fn with<Q: IoQueue>(self, queue: Q) -> Self::Output;
}
