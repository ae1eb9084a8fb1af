//! Performers that reach the kernel, and the ladder that picks one.

mod aio;
mod buffers;
mod ladder;
mod memory;
mod mmap;
mod nop;
mod null;
mod sparse;
mod sync;
mod threads;
mod uring;

pub use aio::AioQueue;
pub(crate) use buffers::{arena, arena_error, facts};
pub use ladder::{Choice, Ladder, LadderOptions};
pub use memory::MemoryQueue;
pub use mmap::{MappedFile, MappedFiles};
pub use nop::NopQueue;
pub use null::NullQueue;
pub use sparse::SparseQueue;
pub use sync::SyncQueue;
pub use threads::ThreadsQueue;
pub use uring::{UringOptions, UringQueue, probe as probe_ring, try_poll};

/// Passes a time in which nothing can complete; at once without a limit, for it would never end.
#[cold]
fn sleep(timeout: plumb_units::Nanos) {
    if timeout != plumb_units::Nanos::NEVER {
        std::thread::sleep(timeout.into());
    }
}
