//! The tiered storage space: pools, virtual disks, mirrors, checksums, a journal; and the checker that
//! cuts its power at any write and proves that nothing acknowledged is lost.
//!
//! An engine issues all its I/O through one [`plumb_io::FlushQueue`] and is itself driven by polling: the
//! same code runs on the kernel's rings and on simulated disks.
#![forbid(unsafe_code)]

mod apart;
mod assembly;
mod attach;
mod chain;
mod copy_log;
mod copy_metadata;
mod core;
mod create;
mod deferred;
mod engine;
mod events;
mod extents;
mod forecast;
mod format;
mod half;
pub mod heat;
mod io;
mod journal;
mod leave;
mod log;
mod log_ahead;
mod log_buckets;
mod log_scan;
mod logs;
mod marks;
mod members;
mod metadata;
mod metadata_disks;
#[cfg(test)]
mod model;
pub mod mutation;
pub mod optimizer;
pub mod pool;
#[cfg(test)]
mod properties;
mod random;
mod rebuild;
mod recover;
pub mod replay;
mod room;
pub mod scenario;
pub mod space;
mod spared;
mod standstill;
mod sums;
mod sums_cache;
pub mod tier_report;
pub mod torture;
pub mod trace;
mod tree;
mod unread;
mod unverified;
mod vacated;
mod waits;
pub mod what_if;

pub use crate::core::{Counters, Halt};
pub use create::{CreateError, NewDisk, NewPool, NewVirtualDisk, create};
pub use engine::{
    Account, ChangeError, Counter, DiskUse, Engine, JobKind, JobState, KeepWith, Kept,
    MoveCounters, MoveDone, MoveOutcome, Optimization, OptimizeSettings, Placed, Published,
    Request, RequestKind, RequestUse, Served, TierView, Tiering, VirtualDiskUse, identities,
};
pub use events::{Event, Severity};
pub use format::{
    BLOCK_BYTES, CacheConfig, CacheCopy, Config, DiskConfig, DiskState, Generation, Geometry,
    MediaType, Moving, Row, Tier, VirtualDisk, fuzz_format,
};
pub use io::{SlotPlan, TIME_OUT};
pub use recover::StartError;
pub use unread::Unreadable;
pub use unverified::UnverifiedRun;
pub use waits::Wait;
