//! Virtual disks as files of an [`plumb_io::IoQueue`].
//!
//! An engine has one thread, which owns every extent of its pool. On that thread [`SpaceQueue`] hands requests
//! in directly. From other threads a [`SpaceClient`] sends them over a bounded ring to the owner, a
//! [`SpaceServer`], with the buffer they need: nothing is shared, and nothing is copied on the way.

mod client;
mod direct;
mod server;

pub use client::SpaceClient;
pub use direct::SpaceQueue;
pub use server::{ServerEnd, SpaceServer, Watch};

use plumb_io::{DSYNC, Op, OpKind, TargetFile};
use rustix::fs::OFlags;

use crate::engine::{Request, RequestKind};

const EBADF: i32 = 9;
const EIO: i32 = 5;

/// A virtual disk as a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceFile {
    /// Which, in the configuration's order.
    pub vdisk: u32,
    /// Bytes of it that can be reached.
    pub size: u64,
    /// Whether it may be written to.
    pub writable: bool,
    /// Whether every write is durable when it is acknowledged (FUA).
    pub durable: bool,
}

/// What an I/O comes to: a request, or an answer at once.
enum Asked {
    Request(Request),
    Answer(i32),
}

impl SpaceFile {
    /// Virtual disk `vdisk` of `size` bytes, with the rights and the end of a queue's file.
    #[must_use]
    pub fn of(file: &TargetFile, vdisk: u32, size: u64) -> Self {
        let flags = rustix::fs::fcntl_getfl(&file.descriptor).unwrap_or(OFlags::RDONLY);
        let writable = flags.intersects(OFlags::RDWR | OFlags::WRONLY);
        let durable = flags.contains(DSYNC);
        Self { vdisk, size: size.min(file.size), writable, durable }
    }

    /// As for a file: shorter at its end, nothing behind it, no writes without the right.
    fn ask(&self, op: &Op) -> Asked {
        if op.kind == OpKind::Write && !self.writable {
            return Asked::Answer(-EBADF);
        }
        let left = self.size.saturating_sub(op.offset);
        let len = op.len.min(u32::try_from(left).unwrap_or(u32::MAX));
        if len == 0 {
            return Asked::Answer(0);
        }
        let kind = match op.kind {
            OpKind::Read => RequestKind::Read,
            OpKind::Write => RequestKind::Write { fua: self.durable },
        };
        Asked::Request(Request { kind, vdisk: self.vdisk, offset: op.offset, len })
    }
}
