//! What a space did, counted (section 12): bytes by where they were served, requests and their times.
//!
//! A request's bytes are put to one account each as its parts end, and come to its virtual disk's with the request's
//! answer: so the accounts add up to the totals at every look (CNT-1).

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64};

use super::{Engine, RequestKind};
use crate::extents::UNMAPPED;
use crate::format::{BLOCK_BYTES, DiskState, MediaType};

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
}

impl Served {
    #[inline]
    pub(super) fn add(&mut self, account: Account, bytes: u32) {
        self.bytes[account.nth()] += bytes;
        self.pieces[account.nth()] += 1;
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
    bytes: [u64; ACCOUNTS],
    pieces: [u64; ACCOUNTS],
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
        (bytes, time): (u32, Nanos),
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
    /// I/Os that failed or were not answered in time, metadata included.
    pub failed: u64,
    /// Blocks of it that were rewritten from another copy.
    pub healed: u64,
}

/// A counter of an instance of something, as `plumb space perf` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// What it counts things of.
    pub set: &'static str,
    /// Of which one.
    pub instance: String,
    /// Its name.
    pub name: &'static str,
    /// What one of it is: `n`, `B`, `ns`, `%`.
    pub unit: &'static str,
    /// Since the pool was started, or now.
    pub value: u64,
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

    /// All counters.
    #[must_use]
    pub fn perf(&self) -> Vec<Counter> {
        let mut out = Vec::new();
        let config = self.config();
        for (nth, vdisk) in (0_u32..).zip(&config.vdisks).filter(|(_, vdisk)| !vdisk.is_removed()) {
            self.perf_of_vdisk(nth, &vdisk.name, &mut out);
            for (tier, own) in vdisk.tiers.iter().enumerate() {
                let kind = if own.media == MediaType::Ssd { "ssd" } else { "hdd" };
                let instance = format!("{}:{kind}", vdisk.name);
                perf_of_tier(&self.uses[index(nth)], tier > 0, &instance, &mut out);
            }
            self.perf_of_cache(nth, &vdisk.name, &mut out);
        }
        self.perf_of_disks(&mut out);
        self.perf_of_pool(&mut out);
        out
    }

    fn perf_of_vdisk(&self, nth: u32, name: &str, out: &mut Vec<Counter>) {
        let own = &self.uses[index(nth)];
        let mut put = put("Virtual Disk", name, out);
        for (kind, own) in [
            (["Reads", "Read Bytes", "Avg. sec/Read", "Max. sec/Read", "Failed Reads"], own.reads),
            (
                ["Writes", "Write Bytes", "Avg. sec/Write", "Max. sec/Write", "Failed Writes"],
                own.writes,
            ),
            (
                ["Flushes", "Flush Bytes", "Avg. sec/Flush", "Max. sec/Flush", "Failed Flushes"],
                own.flushes,
            ),
            (
                ["Zeroes", "Zeroed Bytes", "Avg. sec/Zero", "Max. sec/Zero", "Failed Zeroes"],
                own.zeroes,
            ),
        ] {
            let all = (own.count + own.failed).max(1);
            put(kind[0], "n", own.count);
            put(kind[1], "B", own.bytes);
            put(kind[2], "ns", own.time_ns / all);
            put(kind[3], "ns", own.time_max_ns);
            put(kind[4], "n", own.failed);
        }
        put("Transfers", "n", own.reads.count + own.writes.count);
        put("Zero Read Bytes", "B", own.bytes(Account::Zeros));
        let mapped = self.mapped_bytes(nth);
        put("Active Bytes", "B", mapped[0] + mapped[1]);
    }

    fn perf_of_cache(&self, nth: u32, name: &str, out: &mut Vec<Counter>) {
        let vdisk = &self.config().vdisks[index(nth)];
        let (Some(cache), Some(log)) = (&vdisk.cache, &self.core.logs[index(nth)]) else { return };
        let own = &self.uses[index(nth)];
        let (cached, bypassed) =
            (own.bytes(Account::CacheWrite), own.bytes(Account::TierWrite(true)));
        let percent = |part: u64| (part * 100).checked_div(cached + bypassed).unwrap_or(0);
        let mut put = put("Write Cache", name, out);
        put("Cache Size", "B", cache.bytes);
        put("Cache Used Bytes", "B", log.used());
        put("Cache Data Bytes", "B", to_u64(log.lines()) * BLOCK_BYTES);
        put("Write Cache Bytes", "B", cached);
        put("Write Cache %", "%", if cached + bypassed > 0 { 100 - percent(bypassed) } else { 0 });
        put("Write Bypass Bytes", "B", bypassed);
        put("Write Bypass %", "%", percent(bypassed));
        put("Read Cache Bytes", "B", own.bytes(Account::CacheRead));
    }

    fn perf_of_disks(&self, out: &mut Vec<Counter>) {
        let members = &self.core.members;
        for (nth, disk) in members.config.disks.iter().enumerate() {
            if members.gone[nth] {
                continue;
            }
            let own = &self.core.io.uses[nth];
            let mut put = put("Physical Disk", &disk.name, out);
            put("Reads", "n", own.reads);
            put("Read Bytes", "B", own.read_bytes);
            put("Writes", "n", own.writes);
            put("Write Bytes", "B", own.write_bytes);
            put("Failed", "n", own.failed);
            put("Healed Blocks", "n", own.healed);
            put("Online", "n", u64::from(disk.state == DiskState::Online));
            put("Stale Extents", "n", members.stale[nth].len().into());
        }
    }

    fn perf_of_pool(&self, out: &mut Vec<Counter>) {
        let counters = self.counters();
        let name = self.config().name.clone();
        let mut write = put("Pool", &name, out);
        write("Checkpoints", "n", counters.checkpoints);
        write("Disks Lost", "n", counters.disks_lost);
        write("Extents Resynced", "n", counters.resynced);
        write("Extents Given Away", "n", counters.rebuilt + counters.moved);
        write("Cache Records", "n", counters.cache_records);
        write("Cache Blocks", "n", counters.cache_blocks);
        write("Blocks Destaged", "n", counters.destaged);
        let mapped = self.core.extents.list.iter().filter(|own| own.place != UNMAPPED).count();
        write("Extents Mapped", "n", to_u64(mapped));
        let open = self.core.extents.list.iter().filter(|own| own.open).count();
        drop(write);
        let mut write = put("Dirty Regions", &name, out);
        write("Dirty Count", "n", to_u64(open));
        write("Dirty Bytes", "B", to_u64(open) * u64::from(self.config().extent_bytes));
        drop(write);
        let mut write = put("Integrity", &name, out);
        write("Blocks Verified", "n", counters.blocks_verified);
        write("Mismatches", "n", counters.mismatches);
        write("Healed", "n", counters.healed);
        write("Unrecoverable", "n", counters.unrecoverable);
        write("Interrupted Writes", "n", counters.interrupted);
    }
}

fn put<'a>(
    set: &'static str,
    instance: &'a str,
    out: &'a mut Vec<Counter>,
) -> impl FnMut(&'static str, &'static str, u64) + 'a {
    move |name, unit, value| {
        out.push(Counter { set, instance: instance.to_owned(), name, unit, value });
    }
}

fn perf_of_tier(own: &VirtualDiskUse, second: bool, instance: &str, out: &mut Vec<Counter>) {
    let (reads, writes) = (Account::TierRead(second), Account::TierWrite(second));
    let mut put = put("Tier", instance, out);
    put("Tier Reads", "n", own.pieces(reads));
    put("Tier Writes", "n", own.pieces(writes));
    put("Tier Transfers", "n", own.pieces(reads) + own.pieces(writes));
    put("Tier Read Bytes", "B", own.bytes(reads));
    put("Tier Write Bytes", "B", own.bytes(writes));
    put("Tier Transfer Bytes", "B", own.bytes(reads) + own.bytes(writes));
}
