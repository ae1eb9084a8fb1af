//! A page of the heat map: 256 extents, 8 bytes each (HEAT-1).

use plumb_units::convert::{floor_u64, index};

use super::PAGE_EXTENTS;
use super::counter::FloatingCounter;
use super::delta::{HostIoKind, Touch};
use crate::random::Random;

/// What is known about one extent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ExtentHeat {
    /// Reads since the window began.
    pub reads: u64,
    /// Writes since the window began.
    pub writes: u64,
    /// Decayed host I/Os; a large or sequential one counts less.
    pub score: f32,
}

impl ExtentHeat {
    /// Host I/Os since the window began.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.reads + self.writes
    }
}

/// One extent in memory and in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Entry {
    pub(super) reads: FloatingCounter,
    pub(super) writes: FloatingCounter,
    /// Sixteenths of an I/O.
    pub(super) score: FloatingCounter,
    /// Low bits of the epoch that the score is of.
    pub(super) epoch: u8,
    /// Reserved; 0.
    pub(super) flags: u8,
}

const _: () = assert!(size_of::<Entry>() == 8, "HEAT-1");

/// Factors of the decay, by epochs.
#[derive(Debug)]
pub(super) struct Decay {
    half_life: f32,
    /// Of 2^32; the first stands for 1.
    table: Vec<u32>,
    floats: Vec<f32>,
}

impl Decay {
    pub(super) fn new(half_life: f32) -> Self {
        let factor = |age: u16| (-f64::from(age) / f64::from(half_life)).exp2();
        let fixed =
            |age| u32::try_from(floor_u64(factor(age) * 4_294_967_296.0)).unwrap_or(u32::MAX);
        Self {
            half_life,
            table: (0..256).map(fixed).collect(),
            floats: (0..256).map(|age: u16| (-f32::from(age) / half_life).exp2()).collect(),
        }
    }

    #[inline]
    fn fixed(&self, age: u8) -> u32 {
        self.table[usize::from(age)]
    }

    #[inline]
    fn float(&self, age: u8) -> f32 {
        self.floats[usize::from(age)]
    }

    /// Of 2^32, for any age.
    fn long(&self, age: u64) -> u32 {
        match u8::try_from(age) {
            Ok(age) => self.fixed(age),
            Err(_) => {
                let factor = (-(age as f64) / f64::from(self.half_life)).exp2();
                u32::try_from(floor_u64(factor * 4_294_967_296.0)).unwrap_or(u32::MAX)
            }
        }
    }
}

/// 256 extents.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) slab: u32,
    /// Sum of the scores in sixteenths as of `since`: how warm the page is.
    sum: f32,
    since: u64,
    pub(super) entries: Box<[Entry; 256]>,
}

/// The low bits of an epoch.
fn low(epoch: u64) -> u8 {
    u8::try_from(epoch & 0xff).unwrap_or(0)
}

impl Page {
    pub(super) fn new(slab: u32, epoch: u64) -> Self {
        let fresh = Entry { epoch: low(epoch), ..Entry::default() };
        Self { slab, sum: 0.0, since: epoch, entries: Box::new([fresh; 256]) }
    }

    /// A page of a snapshot of `epoch`, its entries at most 255 epochs old.
    pub(super) fn restored(
        slab: u32,
        epoch: u64,
        entries: Box<[Entry; 256]>,
        decay: &Decay,
    ) -> Self {
        let mut page = Self { slab, sum: 0.0, since: epoch, entries };
        let now = low(epoch);
        page.sum = page.entries.iter().map(|entry| score(entry, decay, now)).sum();
        page
    }

    /// Counts; whether it is the extent's first I/O in this window.
    #[inline]
    pub(super) fn add(
        &mut self,
        decay: &Decay,
        epoch: u64,
        touch: Touch,
        count: u64,
        random: &mut Random,
    ) -> bool {
        let now = low(epoch);
        let entry = &mut self.entries[index(touch.extent() % PAGE_EXTENTS)];
        if entry.epoch != now {
            entry.score = entry.score.scaled(decay.fixed(now.wrapping_sub(entry.epoch)), random);
            entry.epoch = now;
        }
        if self.since != epoch {
            self.sum *= decay.float(u8::try_from(epoch - self.since).unwrap_or(u8::MAX));
            self.since = epoch;
        }
        let first = entry.reads.0 | entry.writes.0 == 0;
        let units = touch.units().saturating_mul(count);
        entry.score = entry.score.plus(units, random);
        self.sum += units as f32;
        match touch.kind() {
            HostIoKind::Read => entry.reads = entry.reads.plus(count, random),
            HostIoKind::Write => entry.writes = entry.writes.plus(count, random),
        }
        first
    }

    pub(super) fn extent(&self, decay: &Decay, epoch: u64, extent: u32) -> ExtentHeat {
        let entry = &self.entries[index(extent % PAGE_EXTENTS)];
        ExtentHeat {
            reads: entry.reads.value(),
            writes: entry.writes.value(),
            score: score(entry, decay, low(epoch)) / 16.0,
        }
    }

    /// Sum of scores now.
    pub(super) fn warmth(&self, decay: &Decay, epoch: u64) -> f32 {
        self.sum * decay.float(u8::try_from(epoch - self.since).unwrap_or(u8::MAX))
    }

    /// Brings all entries, which are at most 255 epochs older than `from`, to `to`.
    pub(super) fn age(&mut self, decay: &Decay, from: u64, to: u64, random: &mut Random) {
        let (now, then) = (low(from), low(to));
        let mut sum = 0.0;
        for entry in self.entries.iter_mut() {
            let age = u64::from(now.wrapping_sub(entry.epoch)) + (to - from);
            if age > 0 {
                entry.score = entry.score.scaled(decay.long(age), random);
            }
            entry.epoch = then;
            sum += entry.score.value() as f32;
        }
        (self.sum, self.since) = (sum, to);
    }

    /// Sets the counts to 0; whether nothing is left.
    pub(super) fn begin_window(&mut self) -> bool {
        let mut empty = true;
        for entry in self.entries.iter_mut() {
            entry.reads = FloatingCounter::default();
            entry.writes = FloatingCounter::default();
            empty &= entry.score.0 == 0;
        }
        empty
    }

    /// Extents with counts, and the sum of those.
    pub(super) fn window(&self) -> (u64, u64) {
        let count = |(extents, ios): (u64, u64), entry: &Entry| {
            let more = entry.reads.value() + entry.writes.value();
            (extents + u64::from(more > 0), ios + more)
        };
        self.entries.iter().fold((0, 0), count)
    }
}

/// Sixteenths as of the epoch whose low bits are `now`.
#[inline]
fn score(entry: &Entry, decay: &Decay, now: u8) -> f32 {
    entry.score.value() as f32 * decay.float(now.wrapping_sub(entry.epoch))
}

const _: () = assert!(PAGE_EXTENTS == 256, "entries of a page");
