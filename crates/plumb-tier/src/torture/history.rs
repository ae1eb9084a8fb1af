//! Histories: pools, requests, faults and background work, made from a seed.

use super::unborne::Workload;
use super::wide;
use crate::format::{Geometry, MediaType};
use crate::random::Random;
use crate::{NewDisk, NewPool, NewVirtualDisk, RequestKind, SlotPlan, TIME_OUT};

/// Bytes of an extent in these pools.
pub(super) const EXTENT_BYTES: u32 = 64 << 10;
/// Clients: requests under way at a time.
pub(super) const CLIENTS: u32 = 6;
/// One more, which nobody waits for before the end.
pub(super) const PATIENT: u32 = CLIENTS;
/// Bytes of a client's buffer.
pub(super) const CLIENT_BYTES: u32 = 64 << 10;

/// One step of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A request; waits until its client is idle.
    Request { client: u32, kind: RequestKind, offset: u64, len: u32 },
    /// Lets the engine work.
    Poll,
    /// Time passes.
    Sleep { millis: u64 },
    /// A bit of a disk rots, unless another one is not well.
    Rot { disk: u32, seed: u64 },
    /// Something happens to a disk, unless one is not well already.
    Fault { disk: u32, fault: Fault },
    /// The disk that is not well comes back.
    Return,
    /// It is given up: what it held is rebuilt elsewhere.
    Retire,
    /// A disk that works is to be removed: it is emptied, and the space does without it.
    Leave { disk: u32 },
    /// A checkpoint.
    Checkpoint,
    /// A scan.
    Scan,
    /// Extents are to be moved: a bit each, 1 for the Performance tier, of those that `which` names.
    Move { which: u8, fast: u8 },
    /// Every virtual disk is optimized, by `movers` at a time, so many slots kept free, at a rate by its number.
    Optimize { reserve: u8, movers: u8, rate: u8, millis: u64 },
    /// Optimizations are called off; with `wait` nothing else is asked for until they have ended.
    CallOff { wait: bool },
    /// Somebody else reads a block that the write-back cache holds, and the disk takes that long.
    SlowRead { nth: u32, millis: u64 },
    /// A block that the cache holds is written over: that goes to its log.
    WriteOver { client: u32, nth: u32 },
    /// A disk works again, and comes back if it was away; where any may fail.
    Back { disk: u32 },
    /// The space is to do without a disk for now.
    Offline { disk: u32 },
    /// All that are missing are given up.
    GiveUp,
}

/// What happens to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Everything fails, after that many I/Os.
    Dies { after: u64 },
    /// Nothing is answered, after that many I/Os.
    Hangs { after: u64 },
    /// A write fails, or one in three ends short, if the I/O after that many is one.
    WriteError { after: u64 },
    /// So many flushes fail, after so many; after an even number the disk forgets some of what they were for.
    FlushError { after: u64, count: u64 },
    /// Everything fails, after that many I/Os and for so many.
    Flickers { after: u64, count: u64 },
    /// Nothing is answered, after that many I/Os and for so many.
    Stuck { after: u64, count: u64 },
    /// It takes no generation of the configuration.
    NoGeneration,
    /// It takes no metadata.
    NoMetadata,
    /// Sectors of it cannot be read until they are written.
    Unreadable { at: u64, len: u64 },
}

/// The shape of a pool and its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) disks: u32,
    /// Of these, rotating ones; 0 for a pool with one tier.
    pub(super) rotating: u32,
    pub(super) copies: u8,
    pub(super) columns: u8,
    /// Bytes of the write-back cache.
    pub(super) cache: u64,
    pub(super) seed: u64,
    pub(super) workload: Workload,
}

impl Shape {
    /// A shape for a seed.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (disks, rotating, copies, columns) = match random.below(20) {
            0 => (2, 0, 1, 1),
            1 => (2, 0, 1, 2),
            2 => (2, 0, 2, 1),
            3 | 4 => (3, 0, 2, 1),
            5 => (4, 0, 2, 2),
            6 => (3, 0, 3, 1),
            7 => (5, 0, 3, 1),
            8 => (2, 1, 1, 1),
            9 => (4, 2, 1, 2),
            10..=13 => (4, 2, 2, 1),
            14 | 15 => (5, 2, 2, 1),
            16 => (5, 3, 2, 1),
            17 => (8, 4, 2, 2),
            _ => (6, 3, 3, 1),
        };
        // Small, so that its tail moves and its ring goes round; now and then of more than one slab.
        let cache = match random.below(8) {
            _ if rotating == 0 => 0,
            0 => 0,
            1..=4 => 64 << 10,
            5 => 100 << 10,
            6 => 144 << 10,
            _ => 288 << 10,
        };
        Self { disks, rotating, copies, columns, cache, seed, workload: Workload::Usual }
    }

    /// Whether a disk may be lost without data being lost, and without an operator's word.
    pub(super) fn tolerates_loss(&self) -> bool {
        self.copies > 1
    }

    pub(super) fn plan(&self) -> SlotPlan {
        SlotPlan {
            data_slots: 24,
            data_bytes: 16 << 10,
            control_bytes: 16 << 10,
            files: self.disks,
            time_out: TIME_OUT,
        }
    }

    pub(super) fn geometry(&self) -> Geometry {
        Geometry {
            config_bytes: 32 << 10,
            journal_bytes: 264 << 10,
            tree_bytes: if self.is_wide() { wide::TREE_BYTES } else { 96 << 10 },
            slab_bytes: (256 << 10) / u64::from(self.columns),
        }
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        let slabs = if self.is_wide() { wide::SLABS } else { 5 };
        self.geometry().slab(slabs * u32::from(self.columns)) + (1 << 20)
    }

    pub(super) fn pool(&self) -> NewPool {
        let disk = |nth| NewDisk {
            media: if nth < self.disks - self.rotating { MediaType::Ssd } else { MediaType::Hdd },
            bytes: self.disk_bytes(),
            name: format!("disk {nth}"),
        };
        // With two tiers half of the extents that are used lie on each.
        let bytes = if self.is_wide() { wide::BYTES } else { 1 << 20 };
        let fast = if self.rotating > 0 { 256 << 10 } else { bytes };
        let tier_bytes = [fast, bytes - fast];
        NewPool {
            name: "torture".into(),
            extent_bytes: EXTENT_BYTES,
            geometry: self.geometry(),
            disks: (0..self.disks).map(disk).collect(),
            vdisks: std::iter::once(NewVirtualDisk {
                name: "space".into(),
                copies: self.copies,
                columns: self.columns,
                interleave: 16 << 10,
                tier_bytes,
                cache_bytes: self.cache,
            })
            .chain(self.second())
            .collect(),
        }
    }
}

/// Extents that requests go to.
pub(super) const EXTENTS: u64 = 8;

/// Sectors that requests go to.
pub(super) fn sectors() -> u32 {
    u32::try_from(EXTENTS * u64::from(EXTENT_BYTES) / 512).unwrap_or(0)
}

/// A history of that many steps.
pub(super) fn steps(shape: &Shape, count: usize, seed: u64) -> Vec<Step> {
    let mut random = Random::new(seed ^ 0x5eed);
    // Of their own, so that histories without moves stay what they are.
    let mut moves = Moving::new(shape, seed);
    let mut out = Vec::with_capacity(count);
    // In some histories all goes to a few blocks, in some everywhere.
    let hot = [6, 24, 128][usize::try_from(random.below(3)).unwrap_or(0)];
    // In some histories extents come and go, and with them their slots.
    let churn = random.one_in(4);
    let mut faulty = shape.tolerates_loss() && random.below(12) > 0;
    // The first one comes early: most crashes are to come after it.
    let first = usize::try_from(4 + random.below(24)).unwrap_or(4);
    let mut out_of_order = false;
    while out.len() < count {
        if faulty && !out_of_order && out.len() == first {
            out_of_order = true;
            faulty = random.one_in(2);
            out.push(fault(&mut random, shape));
            continue;
        }
        let step = match random.below(100) {
            0..=69 => request(&mut random, hot, churn),
            70..=79 => Step::Poll,
            80..=84 => Step::Sleep { millis: 1 + 366 * random.below(4) },
            85..=88 => Step::Checkpoint,
            89..=90 => Step::Scan,
            91..=94 if faulty && !out_of_order => {
                faulty = random.one_in(2);
                out_of_order = true;
                fault(&mut random, shape)
            }
            91..=94 if out_of_order => Step::Retire,
            95..=98 if out_of_order => {
                out_of_order = false;
                Step::Return
            }
            _ => Step::Poll,
        };
        out.push(shape.within_one(moves.or(step)));
    }
    out
}

/// Where the engine would be left alone, extents move in some histories.
struct Moving {
    random: Random,
    any: bool,
}

impl Moving {
    fn new(shape: &Shape, seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x6d6f_7665);
        let any = shape.rotating > 0 && random.one_in(2);
        Self { random, any }
    }

    fn or(&mut self, step: Step) -> Step {
        if !self.any || step != Step::Poll || self.random.one_in(3) {
            return step;
        }
        let mut byte = || u8::try_from(self.random.below(256)).unwrap_or(0);
        Step::Move { which: byte() & byte(), fast: byte() }
    }
}

/// Whether requests write over what others wrote, and some are made durable.
pub(super) fn is_demanding(history: &[Step]) -> bool {
    let writes: Vec<(u64, u64)> = history
        .iter()
        .filter_map(|step| match step {
            Step::Request { kind: RequestKind::Write { .. }, offset, len, .. } => {
                Some((*offset, offset + u64::from(*len)))
            }
            _ => None,
        })
        .collect();
    let over = |nth: usize| {
        let (from, to) = writes[nth];
        writes[..nth].iter().any(|other| other.0 < to && from < other.1)
    };
    let flush = |step: &Step| matches!(step, Step::Request { kind: RequestKind::Flush, .. });
    history.iter().any(flush) && (0..writes.len()).any(over)
}

fn fault(random: &mut Random, shape: &Shape) -> Step {
    let after = random.below(12);
    let fault = match random.below(5) {
        0 | 1 => Fault::Dies { after },
        2 => Fault::WriteError { after },
        3 => Fault::FlushError {
            after: after / 3,
            count: if after.is_multiple_of(3) { 4096 } else { 1 },
        },
        _ => Fault::Hangs { after },
    };
    Step::Fault { disk: u32::try_from(random.below(u64::from(shape.disks))).unwrap_or(0), fault }
}

fn request(random: &mut Random, hot: u64, churn: bool) -> Step {
    let client = u32::try_from(random.below(u64::from(CLIENTS))).unwrap_or(0);
    let blocks = u64::from(EXTENT_BYTES) / 4096;
    let total = EXTENTS * blocks;
    let block = if random.one_in(4) { random.below(total) } else { random.below(hot) * 5 % total };
    let at = block * 4096;
    let kind = random.below(40);
    let (kind, offset, len) = match kind {
        0..=4 => (RequestKind::Flush, 0, 0),
        5..=10 => (RequestKind::Read, at, 4096 * (1 + random.below(8))),
        11 => (RequestKind::Discard, at, 4096 * (1 + random.below(6))),
        12 => (RequestKind::WriteZeroes, at + 512 * random.below(8), 512 * (1 + random.below(30))),
        13 | 21..=26 if churn || kind == 13 => {
            // A whole extent: its slot becomes free, and somebody else's.
            (
                RequestKind::Discard,
                at / u64::from(EXTENT_BYTES) * u64::from(EXTENT_BYTES),
                EXTENT_BYTES.into(),
            )
        }
        14..=18 => (
            RequestKind::Write { fua: random.one_in(3) },
            at + 512 * random.below(8),
            512 * (1 + random.below(12)),
        ),
        19..=20 => {
            (RequestKind::Write { fua: random.one_in(3) }, at, 4096 * (1 + random.below(12)))
        }
        _ => (RequestKind::Write { fua: random.one_in(4) }, at, 4096 * (1 + random.below(2))),
    };
    let end = total * 4096;
    let len = if kind == RequestKind::Flush { 0 } else { len.min(end - offset) };
    Step::Request { client, kind, offset, len: u32::try_from(len).unwrap_or(0) }
}
