//! Wrappers: a queue around a queue.

mod emulated;
mod recording;
mod split;

pub use emulated::{
    Access, AccessKind, DeviceModel, EmulatedQueue, HddModel, Passing, SsdCache, SsdModel,
    SsdStalls,
};
pub use recording::{Recorded, RecordingOpener, RecordingQueue};
pub use split::{Split, SplitQueue};
