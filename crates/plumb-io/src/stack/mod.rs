//! Wrappers: a queue around a queue.

mod recording;
mod split;

pub use recording::{Recorded, RecordingOpener, RecordingQueue};
pub use split::{Split, SplitQueue};
