//! Performers that reach the kernel, and the ladder that picks one.

mod buffers;
mod completions;
mod ladder;
mod null;
mod sync;

pub use ladder::{Choice, Ladder, LadderOptions, UringOptions};
pub use null::NullQueue;
pub use sync::SyncQueue;

/// Passes a time in which nothing can complete; at once without a limit, for it would never end.
#[cold]
fn sleep(timeout: plumb_units::Nanos) {
    if timeout != plumb_units::Nanos::NEVER {
        std::thread::sleep(timeout.into());
    }
}
