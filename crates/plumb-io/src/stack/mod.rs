//! Wrappers: a queue around a queue.

mod emulated;
mod overlay;
mod recording;
mod split;

pub use emulated::{
    Access, AccessKind, DeviceModel, EmulatedQueue, HddModel, Passing, SsdCache, SsdModel,
    SsdStalls,
};
pub use overlay::OverlayQueue;
pub use recording::{Recorded, RecordingOpener, RecordingQueue};
pub use split::{Split, SplitQueue};
