//! What a space did, counted (section 12): bytes by where they were served, requests and their times.
//!
//! A request's bytes are put to one account each as its parts end, and come to its virtual disk's with the request's
//! answer: so the accounts add up to the totals at every look (CNT-1).

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::times::FineTimes;
use super::{Engine, RequestKind};
use crate::format::BLOCK_BYTES;

/// Where bytes of a request were served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// Read, and never written: zeros.
    Zeros,
    /// Read from the write-back cache.
    CacheRead,
    /// Written to the write-back cache.
    CacheWrite,
    /// Read from the first or second tier.
    TierRead(bool),
    /// Written to the first or second tier.
    TierWrite(bool),
}

/// How many there are.
const ACCOUNTS: usize = 7;

impl Account {
    const fn nth(self) -> usize {
        match self {
            Self::Zeros => 0,
            Self::CacheRead => 1,
            Self::CacheWrite => 2,
            Self::TierRead(false) => 3,
            Self::TierRead(true) => 4,
            Self::TierWrite(false) => 5,
            Self::TierWrite(true) => 6,
        }
    }
}

/// Bytes and pieces by account.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Served {
    bytes: [u32; ACCOUNTS],
    pieces: [u32; ACCOUNTS],
    /// Nanoseconds from when the piece's part began.
    times: [u64; ACCOUNTS],
    /// Written to the write-back cache because blocks of it were there already.
    overlapping: u32,
}

/// Kinds of requests that are compared with their like.
pub(super) const KINDS: usize = 6;

impl Served {
    /// Which kind of request this was, by the slowest place that served it: reads and writes of the Performance tier,
    /// the cache, the Capacity tier, in this order. `None`: no device was needed.
    #[inline]
    pub(super) fn kind(&self) -> Option<usize> {
        let slowest_first = [
            Account::TierWrite(true),
            Account::TierRead(true),
            Account::CacheWrite,
            Account::CacheRead,
            Account::TierWrite(false),
            Account::TierRead(false),
        ];
        let used = slowest_first.iter().position(|account| self.pieces[account.nth()] > 0);
        used.map(|nth| KINDS - 1 - nth)
    }

    #[inline]
    pub(super) fn add(&mut self, account: Account, bytes: u32, time: Nanos) {
        self.bytes[account.nth()] += bytes;
        self.pieces[account.nth()] += 1;
        self.times[account.nth()] += time.0;
    }

    #[inline]
    pub(super) fn add_overlapping(&mut self, bytes: u32) {
        self.overlapping += bytes;
    }
}

/// Requests of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestUse {
    /// That succeeded.
    pub count: u64,
    /// That failed.
    pub failed: u64,
    /// Bytes of those that succeeded.
    pub bytes: u64,
    /// Nanoseconds from submission to answer, of all.
    pub time_ns: u64,
    /// The longest.
    pub time_max_ns: u64,
}

/// What a virtual disk did since its pool was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VirtualDiskUse {
    /// Reads.
    pub reads: RequestUse,
    /// Writes.
    pub writes: RequestUse,
    /// Flushes.
    pub flushes: RequestUse,
    /// Discards and write-zeroes.
    pub zeroes: RequestUse,
    /// Blocks without a good copy that were met.
    pub unrecoverable: u64,
    /// Bytes written that began or ended inside a block.
    pub unaligned_bytes: u64,
    /// Bytes written to the write-back cache because blocks of it were there already.
    pub overlapping_bytes: u64,
    /// How often the write-back cache became full.
    pub times_full: u64,
    /// Blocks that the write-back cache let go of: copied home, and written over before that.
    pub evicted: [u64; 2],
    bytes: [u64; ACCOUNTS],
    pieces: [u64; ACCOUNTS],
    times: [u64; ACCOUNTS],
}

impl VirtualDiskUse {
    /// Bytes of an account.
    #[must_use]
    pub const fn bytes(&self, account: Account) -> u64 {
        self.bytes[account.nth()]
    }

    /// Pieces of requests of an account: a piece lies on one disk per copy.
    #[must_use]
    pub const fn pieces(&self, account: Account) -> u64 {
        self.pieces[account.nth()]
    }

    /// Nanoseconds that the pieces of an account took together, each from when its part of the request began.
    #[must_use]
    pub const fn time_ns(&self, account: Account) -> u64 {
        self.times[account.nth()]
    }

    /// Whether every byte that was read or written was put to one account (CNT-1).
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let of = |accounts: &[Account]| accounts.iter().map(|one| self.bytes(*one)).sum::<u64>();
        let (first, second) = (Account::TierRead(false), Account::TierRead(true));
        let read = of(&[Account::Zeros, Account::CacheRead, first, second]);
        let (first, second) = (Account::TierWrite(false), Account::TierWrite(true));
        read == self.reads.bytes && of(&[Account::CacheWrite, first, second]) == self.writes.bytes
    }

    #[inline]
    pub(super) fn note(
        &mut self,
        kind: RequestKind,
        (offset, bytes, time): (u64, u32, Nanos),
        good: bool,
        served: &Served,
    ) {
        let own = match kind {
            RequestKind::Read => &mut self.reads,
            RequestKind::Write { .. } => &mut self.writes,
            RequestKind::Flush => &mut self.flushes,
            RequestKind::Discard | RequestKind::WriteZeroes => &mut self.zeroes,
        };
        own.time_ns += time.0;
        own.time_max_ns = own.time_max_ns.max(time.0);
        if !good {
            own.failed += 1;
            return;
        }
        own.count += 1;
        own.bytes += u64::from(bytes);
        if matches!(kind, RequestKind::Read | RequestKind::Write { .. }) {
            for nth in 0..ACCOUNTS {
                self.bytes[nth] += u64::from(served.bytes[nth]);
                self.pieces[nth] += u64::from(served.pieces[nth]);
                self.times[nth] += served.times[nth];
            }
        }
        if matches!(kind, RequestKind::Write { .. }) {
            self.overlapping_bytes += u64::from(served.overlapping);
            let end = offset + u64::from(bytes);
            if !offset.is_multiple_of(BLOCK_BYTES) || !end.is_multiple_of(BLOCK_BYTES) {
                self.unaligned_bytes += u64::from(bytes);
            }
        }
    }
}

/// What a disk was asked since its pool was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Reads of data.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Writes of data.
    pub writes: u64,
    /// Bytes of them.
    pub write_bytes: u64,
    /// Writes of records of write-back caches.
    pub log_writes: u64,
    /// Bytes of them.
    pub log_write_bytes: u64,
    /// Reads of metadata: superblocks, journal, trees, logs at a start.
    pub metadata_reads: u64,
    /// Bytes of them.
    pub metadata_read_bytes: u64,
    /// Writes of metadata.
    pub metadata_writes: u64,
    /// Bytes of them.
    pub metadata_write_bytes: u64,
    /// Reads of any kind that were handed to the disk.
    pub all_reads: u64,
    /// Bytes of them.
    pub all_read_bytes: u64,
    /// Writes of any kind.
    pub all_writes: u64,
    /// Bytes of them.
    pub all_write_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// I/Os that failed or were not answered in time, metadata included.
    pub failed: u64,
    /// Blocks of it that were rewritten from another copy.
    pub healed: u64,
    /// How often it failed, and stayed because it holds the last copy of something.
    pub stayed: u64,
    /// How often it was done without for a write or flush that it had answered with an error.
    pub erred: u64,
}

/// How long the requests of a virtual disk took, by kind.
#[derive(Debug)]
pub(super) struct RequestTimes {
    pub(super) reads: FineTimes,
    pub(super) writes: FineTimes,
    pub(super) flushes: FineTimes,
}

impl RequestTimes {
    pub(super) fn new() -> Self {
        let times = FineTimes::with_room;
        Self { reads: times(), writes: times(), flushes: times() }
    }

    #[inline]
    pub(super) fn note(&mut self, kind: RequestKind, time: Nanos) {
        match kind {
            RequestKind::Read => self.reads.note(time),
            RequestKind::Write { .. } => self.writes.note(time),
            RequestKind::Flush => self.flushes.note(time),
            RequestKind::Discard | RequestKind::WriteZeroes => {}
        }
    }
}

/// How long the pieces of requests took at a tier, each from when its part of the request began.
#[derive(Debug)]
pub(super) struct TierTimes {
    pub(super) reads: FineTimes,
    pub(super) writes: FineTimes,
}

impl TierTimes {
    /// Of both tiers of a virtual disk, with all their memory.
    pub(super) fn both() -> [Self; 2] {
        [(); 2].map(|()| Self { reads: FineTimes::with_room(), writes: FineTimes::with_room() })
    }
}

/// A piece of a request of a virtual disk was served at one of its tiers, or elsewhere.
#[inline]
pub(super) fn note_tier_time(tiers: &mut [TierTimes; 2], account: Account, time: Nanos) {
    match account {
        Account::TierRead(second) => tiers[usize::from(second)].reads.note(time),
        Account::TierWrite(second) => tiers[usize::from(second)].writes.note(time),
        Account::Zeros | Account::CacheRead | Account::CacheWrite => {}
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// What a virtual disk did.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn use_of(&self, vdisk: u32) -> VirtualDiskUse {
        let mut own = self.uses[index(vdisk)];
        own.unrecoverable = self.core.lost_blocks[index(vdisk)];
        if let Some(log) = &self.core.logs[index(vdisk)] {
            own.evicted = log.evicted;
        }
        if let Some(cache) = &self.caches[index(vdisk)] {
            own.times_full = cache.times_full;
        }
        own
    }

    /// What a disk was asked.
    ///
    /// # Panics
    /// When there is no such disk.
    #[must_use]
    pub fn disk_use(&self, disk: u16) -> DiskUse {
        self.core.io.uses[usize::from(disk)]
    }
}
