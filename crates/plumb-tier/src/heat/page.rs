//! A page of the heat map: 256 extents, 8 bytes each (HEAT-1).

use plumb_units::convert::{floor_u64, index};

use super::PAGE_EXTENTS;
use super::chances::Chances;
use super::counter::FloatingCounter;
use super::delta::{HostIoKind, Touch};
use super::dispersion::Gathered;
use super::trend::{Trend, of_remembered, remembered};
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

/// One extent, in memory one word of 64 bits:
///
/// ```text
/// | before 8 | epoch 8 | score 16 | writes 16 | reads 16 |
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Entry {
    pub(super) reads: FloatingCounter,
    pub(super) writes: FloatingCounter,
    /// Sixteenths of an I/O.
    pub(super) score: FloatingCounter,
    /// Low bits of the epoch that the score is of.
    pub(super) epoch: u8,
    /// The upper bits of the score that the window began with, rounded: its exponent and 3 bits of its significand.
    pub(super) before: u8,
}

const _: () = assert!(size_of::<Entry>() == 8, "HEAT-1");

impl Entry {
    #[inline]
    fn of(word: u64) -> Self {
        let [r, s, w, x, c, d, epoch, before] = word.to_le_bytes();
        let counter = |bytes| FloatingCounter(u16::from_le_bytes(bytes));
        Self {
            reads: counter([r, s]),
            writes: counter([w, x]),
            score: counter([c, d]),
            epoch,
            before,
        }
    }

    #[inline]
    fn word(self) -> u64 {
        let counters = u64::from(self.reads.0)
            | u64::from(self.writes.0) << 16
            | u64::from(self.score.0) << 32;
        counters | u64::from(self.epoch) << 48 | u64::from(self.before) << 56
    }
}

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

/// What is known of a page beside its entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) slab: u32,
    /// Sum of the scores in sixteenths as of `since`: how warm the page is.
    sum: f32,
    since: u64,
}

/// The low bits of an epoch.
fn low(epoch: u64) -> u8 {
    u8::try_from(epoch & 0xff).unwrap_or(0)
}

/// 256 extents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page<'a> {
    pub(super) head: &'a Head,
    /// An [`Entry`] each.
    pub(super) words: &'a [u64],
}

/// The same, to be counted in.
#[derive(Debug)]
pub(super) struct PageMut<'a> {
    pub(super) head: &'a mut Head,
    pub(super) words: &'a mut [u64],
}

impl Head {
    pub(super) fn new(slab: u32, epoch: u64) -> Self {
        Self { slab, sum: 0.0, since: epoch }
    }

    /// Whether one of its extents has been asked for in that epoch, or it was brought up to date then.
    pub(super) fn is_of(&self, epoch: u64) -> bool {
        self.since == epoch
    }

    /// Sum of scores now.
    pub(super) fn warmth(&self, decay: &Decay, epoch: u64) -> f32 {
        self.sum * decay.float(u8::try_from(epoch - self.since).unwrap_or(u8::MAX))
    }
}

impl<'a> Page<'a> {
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> + use<'a> {
        self.words.iter().map(|word| Entry::of(*word))
    }

    pub(super) fn extent(&self, decay: &Decay, epoch: u64, extent: u32) -> ExtentHeat {
        let entry = Entry::of(self.words[index(extent % PAGE_EXTENTS)]);
        ExtentHeat {
            reads: entry.reads.value(),
            writes: entry.writes.value(),
            score: score(entry, decay, low(epoch)) / 16.0,
        }
    }

    /// The same, with the score that is to be expected.
    pub(super) fn expected(
        &self,
        decay: &Decay,
        (epoch, trend): (u64, Option<(Trend, &Chances)>),
        extent: u32,
    ) -> ExtentHeat {
        let entry = Entry::of(self.words[index(extent % PAGE_EXTENTS)]);
        let found = self.extent(decay, epoch, extent);
        let Some((trend, chances)) = trend else { return found };
        let chance = || chances.of_changed(extent);
        ExtentHeat { score: trend.expected(entry, 16.0 * found.score, chance) / 16.0, ..found }
    }

    /// Whether an extent's load looks as if it had ended or begun, if chance is that of single I/Os.
    pub(super) fn looks_changed(
        &self,
        decay: &Decay,
        (epoch, trend): (u64, Trend),
        extent: u32,
    ) -> bool {
        let entry = Entry::of(self.words[index(extent % PAGE_EXTENTS)]);
        let found = score(entry, decay, low(epoch));
        trend.expected(entry, found, || 1.0) != found
    }

    /// Its entries, and their scores in sixteenths.
    pub(super) fn scores(
        self,
        decay: &'a Decay,
        epoch: u64,
    ) -> impl Iterator<Item = (Entry, f32)> + use<'a> {
        let now = low(epoch);
        self.entries().map(move |entry| (entry, score(entry, decay, now)))
    }

    /// Extents with counts, and the sum of those.
    pub(super) fn window(&self) -> (u64, u64) {
        let count = |(extents, ios): (u64, u64), entry: Entry| {
            let more = entry.reads.value() + entry.writes.value();
            (extents + u64::from(more > 0), ios + more)
        };
        self.entries().fold((0, 0), count)
    }
}

impl PageMut<'_> {
    /// All cold.
    pub(super) fn clear(&mut self, epoch: u64) {
        self.words.fill(Entry { epoch: low(epoch), ..Entry::default() }.word());
    }

    /// The entries of a snapshot of `epoch`, at most 255 epochs old.
    pub(super) fn restore(&mut self, epoch: u64, entries: &[Entry; 256], decay: &Decay) {
        let now = low(epoch);
        self.head.sum = entries.iter().map(|entry| score(*entry, decay, now)).sum();
        self.words.iter_mut().zip(entries).for_each(|(word, entry)| *word = entry.word());
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
        let word = &mut self.words[index(touch.extent() % PAGE_EXTENTS)];
        let mut entry = Entry::of(*word);
        if entry.epoch != now {
            entry.score = entry.score.scaled(decay.fixed(now.wrapping_sub(entry.epoch)), random);
            entry.epoch = now;
        }
        if self.head.since != epoch {
            let age = u8::try_from(epoch - self.head.since).unwrap_or(u8::MAX);
            self.head.sum *= decay.float(age);
            self.head.since = epoch;
        }
        let first = entry.reads.0 | entry.writes.0 == 0;
        let units = touch.units().saturating_mul(count);
        entry.score = entry.score.plus(units, random);
        self.head.sum += units as f32;
        match touch.kind() {
            HostIoKind::Read => entry.reads = entry.reads.plus(count, random),
            HostIoKind::Write => entry.writes = entry.writes.plus(count, random),
        }
        *word = entry.word();
        first
    }

    /// Brings all entries, which are at most 255 epochs older than `from`, to `to`.
    pub(super) fn age(&mut self, decay: &Decay, from: u64, to: u64, random: &mut Random) {
        let (now, then) = (low(from), low(to));
        let mut sum = 0.0;
        for word in self.words.iter_mut() {
            let mut entry = Entry::of(*word);
            let age = u64::from(now.wrapping_sub(entry.epoch)) + (to - from);
            if age > 0 {
                entry.score = entry.score.scaled(decay.long(age), random);
            }
            entry.epoch = then;
            sum += entry.score.value() as f32;
            *word = entry.word();
        }
        (self.head.sum, self.head.since) = (sum, to);
    }

    /// Sets the counts to 0 and remembers the scores, those that the window showed to be others first set to what is to be
    /// expected; whether nothing is left.
    pub(super) fn begin_window(
        &mut self,
        decay: &Decay,
        (epoch, trend): (u64, Option<(Trend, &Chances)>),
        random: &mut Random,
        gathered: &mut Gathered,
    ) -> bool {
        let (mut empty, mut sum) = (true, 0.0);
        let now = low(epoch);
        let first = self.head.slab * PAGE_EXTENTS;
        for (extent, word) in (first..).zip(self.words.iter_mut()) {
            let mut entry = Entry::of(*word);
            let found = score(entry, decay, now);
            let expected = trend.map_or(found, |(trend, chances)| {
                let chance = || chances.of_changed(extent);
                trend.expected(entry, found, chance)
            });
            gathered.note(extent, (of_remembered(entry), found, expected));
            if expected != found {
                entry.score = FloatingCounter::of(floor_u64(expected.into()), random);
                entry.epoch = now;
            }
            entry.reads = FloatingCounter::default();
            entry.writes = FloatingCounter::default();
            entry.before = remembered(expected);
            empty &= entry.score.0 == 0;
            sum += expected;
            *word = entry.word();
        }
        (self.head.sum, self.head.since) = (sum, epoch);
        empty
    }
}

/// Sixteenths as of the epoch whose low bits are `now`.
#[inline]
fn score(entry: Entry, decay: &Decay, now: u8) -> f32 {
    entry.score.value() as f32 * decay.float(now.wrapping_sub(entry.epoch))
}

const _: () = assert!(PAGE_EXTENTS == 256, "entries of a page");
