//! Simulated disks whose power can be cut: volatile caches, torn sectors, writes that are lost or land
//! in another order, disks that fail, hang or forget, and rot.
//!
//! A [`PowerQueue`] runs a storage engine on such disks under virtual time and, if asked, records a
//! [`Trace`]. [`Replay`] goes through the trace event by event; after each of them it can say what the
//! disks might hold if the power failed there, or if only the engine died.

mod image;
mod media;
mod queue;
#[cfg(test)]
mod tests;
mod trace;

pub use image::{Image, PAGE_BYTES, Payload};
pub use media::{Choice, CrashKind, Media, Survivors};
pub use queue::{DiskFaults, PowerQueue, PowerSpec};
pub use trace::{Event, Replay, Trace, WriteId};
