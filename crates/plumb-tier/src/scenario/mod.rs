//! The reference scenario (19.2): a space while it is empty, when its Performance tier is full, and after an optimization,
//! on emulated devices in virtual time.
//!
//! The engine, its heat map and its optimizer are those of pools on real disks; only the disks are models, whose files
//! keep eight bytes of each block ([`plumb_io::engine::SparseQueue`]). So a run is the same every time, takes as long as
//! its I/Os take to compute, and fits in memory at full scale.

mod acceptance;
#[cfg(test)]
mod bar_tests;
mod load;
mod rig;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod warning_tests;

use plumb_io::{Errno, FlushQueue, OpenQueueError};
use plumb_units::Nanos;

pub use acceptance::{Bound, acceptance};
pub use load::{Difference, Load, LoadOutcome};
pub use rig::{Emulated, Rig, queue_spec};

use crate::create::CreateError;
use crate::engine::{Optimization, OptimizeSettings};
use crate::format::Geometry;
use crate::optimizer::{PinStatus, TierName};
use crate::recover::StartError;
use rig::{DISKS, EXTENT};

const GIB: u64 = 1 << 30;
/// Bytes of an SSD and of a rotating disk. SSDs of 200 GiB have room for a tier of 740 GiB and what belongs to it.
const SSD: u64 = 200 * GIB;
const HDD: u64 = 300 * GIB;
/// Bytes of the tiers and of the write-back cache.
const TIER: u64 = 740 * GIB;
const CAPACITY: u64 = 1060 * GIB;
const CACHE: u64 = GIB;
/// Bytes of a file that is loaded, and of the two others that fill the Performance tier.
const FILE: u64 = 100 * GIB;
const OTHERS: [u64; 2] = [745 * GIB, 500 * GIB];
/// Seconds of the load, of its warm-up, and of one of the intervals by which it is told.
const DURATION: u64 = 300;
const WARM_UP: u64 = 5;
const INTERVAL: u64 = 5;
/// How many times as long as it is measured the load of the used space goes on until night comes. In 300 seconds
/// rotating disks serve some five I/Os per extent of the file, fewer than a move costs; a file that is hot is used all
/// day.
const DAY: u64 = 6;

/// Why a scenario did not come to its end.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ScenarioError {
    /// No memory for buffers.
    #[error("there is no memory for the buffers of the emulated disks")]
    #[diagnostic(code(plumb::scenario::memory), help("choose a larger scale: 1:256 takes less"))]
    Memory(#[from] OpenQueueError),
    /// The sizes allow no pool.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Create(#[from] CreateError),
    /// The pool does not start.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Start(#[from] StartError),
    /// An I/O failed.
    #[error(
        "an I/O near block {block} of the emulated space failed with error {} after {virtual_s:.1} s of virtual time{}",
        errno.0, listed(events)
    )]
    #[diagnostic(
        code(plumb::scenario::io),
        help("this is a defect of the engine: please report it with what you see here")
    )]
    Io {
        /// Which 4 KiB block.
        block: u64,
        /// How.
        errno: Errno,
        /// When.
        virtual_s: f64,
        /// What the engine said of itself and its disks before, newest last.
        events: Vec<String>,
    },
    /// A block holds something else than what was written last.
    #[error("block {block} of the emulated space does not hold what was written to it last")]
    #[diagnostic(
        code(plumb::scenario::content),
        help("this is a defect of the engine: please report it")
    )]
    Content {
        /// Which 4 KiB block.
        block: u64,
    },
}

fn listed(events: &[String]) -> String {
    if events.is_empty() { String::new() } else { format!(": {}", events.join("; ")) }
}

/// Sizes of a pool on emulated devices, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// SSDs, rotating disks, and columns of the virtual disk: four of each in the reference.
    pub disks: u8,
    /// Of each SSD.
    pub ssd: u64,
    /// Of each rotating disk.
    pub hdd: u64,
    /// Of the Performance tier.
    pub tier: u64,
    /// Of the Capacity tier.
    pub capacity: u64,
    /// Of the write-back cache; 0 for none.
    pub cache: u64,
    /// Of the areas of each disk.
    pub geometry: Geometry,
}

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// Sizes and durations are one in so many of the reference's: 1 to 4096.
    pub scale: u64,
    /// Whether the virtual disk has its write-back cache.
    pub cache: bool,
    /// Whether files are written from end to end; else the first block of each extent is, as when a file is only
    /// allocated. The file that is loaded is always written.
    pub whole: bool,
    /// Whether every write waits until its checksum is durable, too. Without that an acknowledged write is on the medium
    /// all the same, for the emulated disks have no volatile caches; which checksum it has is found out after a crash.
    pub durable: bool,
    /// Of the places that are loaded.
    pub seed: u64,
}

/// One of the three cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// A file on an empty space.
    Empty,
    /// A file on a space whose Performance tier is full.
    Used,
    /// The same file after an optimization.
    Optimized,
}

impl Case {
    /// As it is known to programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Used => "used",
            Self::Optimized => "optimized",
        }
    }
}

/// What happens, as it happens.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A file is made, of so many bytes.
    Fills(u64),
    /// A case begins.
    Begins(Case),
    /// A case has ended.
    Ended(Case, &'a LoadOutcome),
    /// The load goes on until the night, so many times as long as it was measured.
    GoesOn(u64),
    /// The optimization begins: it is to move so many extents up and down.
    Optimizes(u64, u64),
    /// It has ended.
    Optimized(&'a Optimization),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioOutcome {
    /// In the order of [`Case`].
    pub cases: [LoadOutcome; 3],
    /// The optimization between the second and the third.
    pub optimization: Optimization,
    /// Bytes that the write-back cache took from the beginning of the second case until the night.
    pub cache_taken: u64,
    /// Where the file is after it.
    pub placement: PinStatus,
    /// Blocks of the file that were read back at the end and held what was written last.
    pub verified: u64,
    /// Virtual time that it all took.
    pub virtual_s: f64,
}

impl Scenario {
    /// The reference at one in `scale` of its size.
    #[must_use]
    pub fn reference(scale: u64) -> Self {
        Self { scale: scale.clamp(1, 4096), cache: true, whole: true, durable: false, seed: 1 }
    }

    /// One in so many of a number of bytes, in whole extents.
    #[must_use]
    pub fn bytes(&self, full: u64) -> u64 {
        (full / self.scale / EXTENT).max(1) * EXTENT
    }

    /// Sizes of its pool.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let scaled = |bytes: u64| bytes / self.scale / EXTENT * EXTENT;
        // A disk's areas for metadata do not become smaller than they can be.
        let room = if self.scale > 64 { 32 << 20 } else { 0 };
        let (ssd, hdd) = (scaled(SSD) + room, scaled(HDD) + room);
        Sizes {
            disks: DISKS,
            ssd,
            hdd,
            tier: scaled(TIER),
            capacity: scaled(CAPACITY),
            cache: if self.cache { scaled(CACHE).max(EXTENT) } else { 0 },
            geometry: Sizes::geometry(self.scale, 4 * (ssd + hdd)),
        }
    }

    /// Offset and length of the file of the first case, the two others, and that of the second and third case.
    #[must_use]
    pub fn files(&self) -> [(u64, u64); 4] {
        let mut next = 0;
        [FILE, OTHERS[0], OTHERS[1], FILE].map(|bytes| {
            let bytes = self.bytes(bytes);
            next += bytes;
            (next - bytes, bytes)
        })
    }

    /// The load on a file.
    #[must_use]
    pub fn load(&self, (start, bytes): (u64, u64)) -> Load {
        let scaled = |seconds: u64| Nanos(Nanos::from_secs(seconds).0 / self.scale);
        Load {
            start,
            bytes,
            writes_percent: 100,
            durable: self.durable,
            outstanding: rig::OUTSTANDING,
            warm_up: scaled(WARM_UP),
            duration: scaled(DURATION),
            interval: scaled(INTERVAL),
            seed: self.seed,
        }
    }

    /// Runs all three cases on a new pool of [`Scenario::sizes`].
    ///
    /// # Errors
    /// When memory is refused, an I/O fails, or a block does not hold what was written to it.
    pub fn run<Q: FlushQueue>(
        &self,
        rig: &mut Rig<Q>,
        mut tell: impl FnMut(&Progress<'_>),
    ) -> Result<ScenarioOutcome, ScenarioError> {
        let [first, .., file] = self.files();
        self.make(rig, first, true, &mut tell)?;
        let empty = self.measure(rig, (Case::Empty, first), &mut tell)?;
        let used = self.used(rig, &mut tell)?;
        tell(&Progress::GoesOn(DAY));
        let measured = self.load(file);
        let day = rig.run(&Load {
            warm_up: Nanos::ZERO,
            duration: Nanos(measured.duration.0 * DAY),
            seed: self.seed + 1,
            ..measured
        })?;
        rig.settle();
        let optimization = self.optimize(rig, &mut tell);
        let placement = rig.engine.range_status(0, file, TierName::Performance);
        let optimized = self.measure(rig, (Case::Optimized, file), &mut tell)?;
        let verified = rig.verify((file.1 >> 12) / 20_000)?;
        let cache_taken = used.cache_taken + day.cache_taken;
        Ok(ScenarioOutcome {
            cache_taken,
            cases: [empty, used, optimized],
            optimization,
            placement,
            verified,
            virtual_s: rig.now().as_secs_f64(),
        })
    }

    /// The second case alone, after the files that fill the Performance tier; without a write-back cache it tells what
    /// the rotating disks are able to.
    ///
    /// # Errors
    /// When an I/O fails.
    pub fn used<Q: FlushQueue>(
        &self,
        rig: &mut Rig<Q>,
        tell: &mut impl FnMut(&Progress<'_>),
    ) -> Result<LoadOutcome, ScenarioError> {
        let [_, one, other, file] = self.files();
        self.make(rig, one, self.whole, tell)?;
        self.make(rig, other, self.whole, tell)?;
        rig.remember(file);
        self.make(rig, file, true, tell)?;
        self.measure(rig, (Case::Used, file), tell)
    }

    fn make<Q: FlushQueue>(
        &self,
        rig: &mut Rig<Q>,
        file: (u64, u64),
        whole: bool,
        tell: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), ScenarioError> {
        tell(&Progress::Fills(file.1));
        rig.fill(file, whole)?;
        rig.settle();
        Ok(())
    }

    fn measure<Q: FlushQueue>(
        &self,
        rig: &mut Rig<Q>,
        (case, file): (Case, (u64, u64)),
        tell: &mut impl FnMut(&Progress<'_>),
    ) -> Result<LoadOutcome, ScenarioError> {
        tell(&Progress::Begins(case));
        let outcome = rig.run(&self.load(file))?;
        tell(&Progress::Ended(case, &outcome));
        Ok(outcome)
    }

    fn optimize<Q: FlushQueue>(
        &self,
        rig: &mut Rig<Q>,
        tell: &mut impl FnMut(&Progress<'_>),
    ) -> Optimization {
        let settings = OptimizeSettings::default();
        let planned = rig.engine.plan_optimization(0, &settings);
        let (up, down) = (planned.count(TierName::Performance), planned.count(TierName::Capacity));
        tell(&Progress::Optimizes(up, down));
        let now_s = rig.now().as_secs_f64();
        rig.engine.optimize(0, &settings, now_s);
        let done = loop {
            rig.step();
            if let Some(done) = rig.engine.take_optimization(0) {
                break done;
            }
        };
        tell(&Progress::Optimized(&done));
        done
    }
}
