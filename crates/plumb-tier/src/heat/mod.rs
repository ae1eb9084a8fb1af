//! The heat map (spec 9): how much host I/O each extent took, decayed, in bounded memory.
//!
//! Pages of 256 extents come into being at the first touch; over the limit the coldest go and are counted. One owner
//! keeps a map. Queues of other threads gather in a [`HeatDelta`] each, which the owner merges: nothing is
//! shared while they count.

mod bunches;
mod chances;
mod counter;
mod delta;
mod dispersion;
#[cfg(test)]
mod earlier_tests;
mod outcomes;
mod page;
mod pages;
mod sleepers;
mod snapshot;
mod streams;
#[cfg(test)]
mod tests;
mod trend;

use plumb_units::convert::{index, to_u64, to_usize};

pub(crate) use chances::{Chances, Lies};
pub use delta::{HeatDelta, HostIo, HostIoKind, Weigher};
pub(crate) use dispersion::MOST_BY_WINDOWS;
pub(crate) use outcomes::Later;
pub use page::ExtentHeat;
pub use snapshot::{HeatFileError, Restored, fuzz_heat};

use crate::random::Random;
use delta::Touch;
use dispersion::{Dispersion, Gathered, Witnesses};
use page::{Decay, Head, Page};
use pages::Pages;
use trend::Trend;

/// Extents per page.
pub(crate) const PAGE_EXTENTS: u32 = 256;
/// Hours after the end of the first window that had a load, with a plan made of it, until extents are taken to be where they should be.
const SETTLED_H: u64 = 42;
/// A load that begins before is taken to have begun with the map.
const EARLY_H: u64 = 48;
/// Hours after that end until what was chosen on the first two days has been followed for one.
const NEW_H: u64 = 72;
/// The same until what became of extents is known from more than the first marks, whatever the windows: with daily runs the plan five days after it knows of the
/// second ones.
const OUTCOMES_H: u64 = 100;
const WEEK_H: f32 = 168.0;
/// A load is more extents with so many I/Os of score, which pay for a move, than the tier's slots over that: with fewer no plan moves more than a
/// steady load's may.
const PAYS: f32 = 7.0;
const LOADED_SHARE: u64 = 100;
/// So many touches ahead of its turn an entry is asked for.
const AHEAD: usize = 24;
/// What the entries of a page take: 8 bytes for each extent.
const ENTRY_BYTES: u64 = 8 * 256;
/// What a page takes, with its place in the list.
const PAGE_BYTES: u64 = ENTRY_BYTES + to_u64(size_of::<Head>());
/// An entry's last epoch has 8 bits: pages are brought up to date before they are so old.
const SWEEP_EPOCHS: u64 = 128;
/// Of the pages, so many go when there is no room for one more.
const DROPPED_SHARE: usize = 64;

/// What a map is made for.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatSettings {
    /// Extents of the virtual disk.
    pub extents: u32,
    /// Most bytes that the map takes, its directory included; at least one page is kept. Of 4,096 extents is kept beside it what they won in
    /// the window before, in the last hours and since they were marked, in 164 KiB, and of as many that were cold what they
    /// won in the last hours, in 96 KiB.
    pub limit_bytes: u64,
    /// Hours after which a score is half.
    pub half_life_hours: f32,
    /// Which random numbers round the counters.
    pub seed: u64,
}

impl HeatSettings {
    /// 128 MiB and 24 hours (HEAT-3, HEAT-4).
    #[must_use]
    pub fn new(extents: u32) -> Self {
        Self { extents, limit_bytes: 128 << 20, half_life_hours: 24.0, seed: 1 }
    }
}

/// What was not kept since the window began (core: instead of folding).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Pages of 256 extents, the coldest at their time.
    pub pages: u64,
    /// Host I/Os of this window that they had counted.
    pub ios: u64,
    /// Host I/Os that a full delta could not take.
    pub missed: u64,
}

/// Heat of all extents of a virtual disk.
#[derive(Debug)]
pub struct HeatMap {
    settings: HeatSettings,
    decay: Decay,
    /// One more than the page's place, by slab; 0 for none.
    directory: Vec<u32>,
    pages: Pages,
    /// Hours since some beginning; never goes back.
    epoch: u64,
    /// When the window began, if one has: before that there is nothing to compare with.
    window: Option<u64>,
    /// When the first one that had a load ended, if that is known: that of a map which a program before this one saved is long ago.
    first_window: Option<u64>,
    /// The hour in which the first I/O came, once that has ended.
    began: Option<u64>,
    /// What some extents won in the window before.
    witnesses: Witnesses,
    /// When all pages were last brought up to date.
    swept: u64,
    working_set: u64,
    ios: u64,
    dropped: Dropped,
    random: Random,
}

impl HeatMap {
    /// An empty map.
    ///
    /// # Panics
    /// Without a positive half-life.
    #[must_use]
    pub fn new(settings: HeatSettings) -> Self {
        assert!(settings.half_life_hours > 0.0, "a half-life is a time");
        Self {
            decay: Decay::new(settings.half_life_hours),
            directory: vec![0; index(settings.extents.div_ceil(PAGE_EXTENTS))],
            pages: Pages::new(),
            epoch: 0,
            window: None,
            first_window: None,
            began: None,
            witnesses: Witnesses::default(),
            swept: 0,
            working_set: 0,
            ios: 0,
            dropped: Dropped::default(),
            random: Random::new(settings.seed),
            settings,
        }
    }

    /// What it was made for.
    #[must_use]
    pub fn settings(&self) -> &HeatSettings {
        &self.settings
    }

    /// Counts one host I/O on `extent`.
    ///
    /// # Panics
    /// When there is no such extent.
    #[inline]
    pub fn record(&mut self, extent: u32, kind: HostIoKind, weight: Weight) {
        self.add(Touch::new(extent, kind, weight), 1);
    }

    /// Counts `count` random host I/Os on `extent` at once.
    ///
    /// # Panics
    /// When there is no such extent.
    pub fn record_many(&mut self, extent: u32, kind: HostIoKind, count: u64) {
        if count > 0 {
            self.add(Touch::new(extent, kind, Weight::Random), count);
        }
    }

    /// Takes what a queue has gathered and empties it.
    ///
    /// # Panics
    /// When it names an extent that there is not.
    pub fn merge(&mut self, delta: &mut HeatDelta) {
        // Entries of a large map lie in no cache: they are asked for ahead of their turn.
        let ahead = delta.touches.iter().skip(AHEAD).map(Some).chain(std::iter::repeat(None));
        delta.touches.iter().take(AHEAD).for_each(|touch| self.expect(*touch));
        for (touch, next) in delta.touches.iter().zip(ahead) {
            next.iter().for_each(|next| self.expect(**next));
            self.add(*touch, 1);
        }
        delta.touches.clear();
        let missed = std::mem::take(&mut delta.missed);
        self.dropped.missed = self.dropped.missed.saturating_add(missed);
    }

    /// The entry of an extent will be counted in soon.
    #[inline]
    fn expect(&self, touch: Touch) {
        let nth = self.directory.get(index(touch.extent() / PAGE_EXTENTS)).copied().unwrap_or(0);
        if let Some(nth) = nth.checked_sub(1) {
            self.pages.expect(index(nth), touch.extent());
        }
    }

    #[inline]
    fn add(&mut self, touch: Touch, count: u64) {
        let extent = touch.extent();
        assert!(extent < self.settings.extents, "extent {extent} of {}", self.settings.extents);
        let slab = extent / PAGE_EXTENTS;
        let nth = match self.directory[index(slab)] {
            0 => self.page_for(slab),
            nth => index(nth - 1),
        };
        let mut page = self.pages.get_mut(nth);
        let first = page.add(&self.decay, self.epoch, touch, count, &mut self.random);
        self.working_set += u64::from(first);
        self.ios = self.ios.saturating_add(count);
    }

    /// A new page; the coldest go if there is no room for it.
    #[cold]
    fn page_for(&mut self, slab: u32) -> usize {
        // By steps, not by doubling: the bound is the bound.
        let step = match self.pages.len() == self.pages.capacity() {
            true => (self.pages.len() / 16).max(64),
            false => 0,
        };
        let heads = self.pages.capacity().max(self.pages.len() + step);
        let wanted = self.bytes_of(self.pages.len() + 1, heads);
        if wanted > self.settings.limit_bytes && self.pages.len() > 0 {
            self.drop_coldest();
        } else {
            self.pages.reserve_heads(step);
        }
        let nth = self.pages.len();
        self.pages.reserve(self.pages_most().max(nth + 1));
        self.pages.push(slab, self.epoch);
        self.directory[index(slab)] = u32::try_from(nth + 1).expect("fewer pages than extents");
        nth
    }

    /// Pages that there can be: one for each slab, or what the limit has room for.
    fn pages_most(&self) -> usize {
        self.directory.len().min(to_usize(self.settings.limit_bytes / PAGE_BYTES))
    }

    fn drop_coldest(&mut self) {
        let heads = self.pages.heads().iter();
        let mut order: Vec<(f32, u32)> =
            heads.map(|head| (head.warmth(&self.decay, self.epoch), head.slab)).collect();
        let count = (order.len() / DROPPED_SHARE).max(1);
        let coldest = |one: &(f32, u32), other: &(f32, u32)| {
            one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
        };
        order.select_nth_unstable_by(count - 1, coldest);
        for (_, slab) in &order[..count] {
            let nth = index(self.directory[index(*slab)] - 1);
            let (extents, ios) = self.pages.get(nth).window();
            self.remove(*slab);
            self.working_set -= extents;
            self.dropped.pages = self.dropped.pages.saturating_add(1);
            self.dropped.ios = self.dropped.ios.saturating_add(ios);
        }
    }

    fn remove(&mut self, slab: u32) {
        let nth = index(self.directory[index(slab)] - 1);
        self.directory[index(slab)] = 0;
        if let Some(moved) = self.pages.swap_remove(nth) {
            self.directory[index(moved)] = u32::try_from(nth + 1).expect("as before");
        }
    }

    /// It is hour `epoch` now, from a beginning that never changes. An earlier one than before changes nothing
    /// (clocks jump).
    pub fn advance(&mut self, epoch: u64) {
        if epoch > self.epoch {
            let mut witnesses = std::mem::take(&mut self.witnesses);
            if self.began.is_none() && self.pages.len() > 0 {
                self.began = Some(self.epoch);
            }
            if self.first_window.is_none() {
                witnesses.wake(self.asked_for(), self.epoch > 0);
            }
            let (later, half_life) = (epoch - self.epoch, self.settings.half_life_hours);
            witnesses.end_hour(later, half_life, |extent| 16.0 * self.extent(extent).score);
            self.witnesses = witnesses;
        }
        if epoch.saturating_sub(self.swept) >= SWEEP_EPOCHS {
            let (decay, from, random) = (&self.decay, self.epoch, &mut self.random);
            self.pages.for_each(|mut page| page.age(decay, from, epoch, random));
            self.swept = epoch;
        }
        self.epoch = self.epoch.max(epoch);
    }

    /// Extents with a score of which some that are near to them were asked for in this hour.
    fn asked_for(&self) -> impl Iterator<Item = u32> {
        let pages = self.pages.iter().filter(|page| page.head.is_of(self.epoch));
        pages.flat_map(|page| {
            let entries = (page.head.slab * PAGE_EXTENTS..).zip(page.entries());
            entries.filter(|(_, entry)| entry.score.0 > 0).map(|(extent, _)| extent)
        })
    }

    /// The hour that it is.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How this window compares with the time before; `None` while that cannot be told. It looks at all of the map.
    fn trend(&self) -> Option<Trend> {
        let hours = self.epoch.checked_sub(self.window?)?;
        let entries = self.pages.iter().flat_map(|page| page.scores(&self.decay, self.epoch));
        Trend::over(hours, self.settings.half_life_hours, entries)
    }

    /// How many times as much as that of I/Os that come one by one the variance of scores is, 1 or more: what the last two windows and the last
    /// hours tell.
    /// It looks at all of the map.
    #[must_use]
    pub fn dispersion(&self) -> f32 {
        self.varies().believed()
    }

    /// The same of each extent, by what was found of all; `is_fast`: whether one lies on the Performance tier.
    fn chances(
        &self,
        (found, trend): (&Dispersion, Option<Trend>),
        is_fast: impl Fn(u32) -> bool,
    ) -> Chances {
        let look = |extent: u32| {
            let nth = self.directory.get(index(extent / PAGE_EXTENTS)).copied().unwrap_or(0);
            let Some(nth) = nth.checked_sub(1) else { return (0.0, false) };
            let page = self.pages.get(index(nth));
            let has_changed = |trend| page.looks_changed(&self.decay, (self.epoch, trend), extent);
            let heat = page.extent(&self.decay, self.epoch, extent);
            (16.0 * heat.score, trend.is_some_and(has_changed))
        };
        let told = self.witnesses.told(found, look);
        let with_sleepers = self.witnesses.told_with_sleepers(found, look);
        Chances::new(found, (&told, &with_sleepers), is_fast)
    }

    fn varies(&self) -> Dispersion {
        let hours = self.window_hours().unwrap_or(0);
        let scores = self.pages.iter().flat_map(|page| {
            let first = page.head.slab * PAGE_EXTENTS;
            (first..).zip(page.scores(&self.decay, self.epoch).map(|(_, score)| score))
        });
        self.witnesses.dispersion(hours, self.settings.half_life_hours, scores)
    }

    /// The map as a planner sees it; `is_fast`: whether an extent lies on the Performance tier.
    pub(crate) fn forecast(&self, is_fast: impl Fn(u32) -> bool) -> Forecast<'_> {
        let (found, trend) = (self.varies(), self.trend());
        let chances = self.chances((&found, trend), is_fast);
        Forecast { map: self, trend, chances, later: self.witnesses.later() }
    }

    /// Hours that the window has lasted; `None` before the first one.
    #[must_use]
    pub fn window_hours(&self) -> Option<u64> {
        self.epoch.checked_sub(self.window?)
    }

    /// Whether what is hot has been on the Performance tier for some time, as far as that has room: the first window that had a load ended long
    /// enough ago that a second day's plan has been made, too, whichever minute it was begun in. Before that, extents lie where
    /// there was room when they were first written.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_loaded_since(SETTLED_H)
    }

    /// Whether what became of extents is known of some that were marked when scores were those of days: the first marks, of scores of some hours or of
    /// one day, do not count for this.
    #[must_use]
    pub(crate) fn knows_outcomes(&self) -> bool {
        self.is_loaded_since(OUTCOMES_H)
    }

    /// Whether the first window that had a load ended so lately that nothing of what was chosen since has been seen for a day by now.
    #[must_use]
    pub(crate) fn is_new(&self) -> bool {
        !self.is_loaded_since(NEW_H)
    }

    fn is_loaded_since(&self, hours: u64) -> bool {
        self.first_window.is_some_and(|first| self.epoch.saturating_sub(first) >= hours)
    }

    /// Whether it can tell by now a load that wanders from I/Os that come in bunches: windows before this one have been compared, and plans are by as
    /// many deviations as they are to be.
    #[must_use]
    pub fn tells_chance(&self) -> bool {
        self.is_settled() && self.witnesses.know(self.settings.half_life_hours)
    }

    /// Begins a new window: the counts are 0, the scores stay but where the window showed that a load had ended or begun.
    /// Pages without score are given back.
    pub fn begin_window(&mut self) {
        self.begin_window_of(|_| None);
    }

    /// The same; `is_fast`: whether an extent lies on the Performance tier, if it is mapped. Of extents that look alike and lie alike is seen what
    /// becomes of them.
    pub fn begin_window_of(&mut self, is_fast: impl Fn(u32) -> Option<bool>) {
        if self.first_window.is_none() && self.is_loaded(&is_fast) {
            // One that comes on a map's first two days counts from the map's beginning: few files may be asked for in a day.
            let hours = self.window_hours().filter(|_| self.epoch <= EARLY_H);
            self.first_window = Some(hours.unwrap_or(self.epoch));
        }
        let (hours, half_life) = (self.window_hours(), self.settings.half_life_hours);
        let (trend, dispersion) = (self.trend(), self.varies());
        let chances = self.chances((&dispersion, trend), |_| false);
        let before = std::mem::take(&mut self.witnesses);
        let trend = trend.map(|trend| (trend, &chances));
        let mut gathered =
            Gathered::new(before, hours, (half_life, dispersion), self.settings.extents);
        let (random, mut empty) = (&mut self.random, Vec::new());
        self.pages.for_each(|mut page| {
            if page.begin_window(&self.decay, (self.epoch, trend), random, &mut gathered) {
                empty.push(page.head.slab);
            }
        });
        self.witnesses = gathered.witnesses(is_fast);
        for slab in empty {
            self.remove(slab);
        }
        (self.working_set, self.ios, self.dropped) = (0, 0, Dropped::default());
        self.window = Some(self.epoch);
    }

    /// Whether there is a load to place by: more extents with I/Os enough to pay for a move than a hundredth of those on the Performance tier. A space that lies
    /// idle, or is filled in large requests, has none yet.
    fn is_loaded(&self, is_fast: impl Fn(u32) -> Option<bool>) -> bool {
        let hot = to_u64(self.touched().filter(|(_, heat)| heat.score >= PAYS).count());
        let fast = (0..self.settings.extents).filter(|extent| is_fast(*extent) == Some(true));
        hot > 0 && hot > to_u64(fast.count()) / LOADED_SHARE
    }

    /// The extents that are followed, and where those lay that are marked.
    #[cfg(test)]
    pub(crate) fn marks(&self) -> Vec<(u32, Option<Lies>)> {
        self.witnesses.marks().collect()
    }

    /// Makes room for a virtual disk that has grown to `extents`.
    ///
    /// # Panics
    /// When it would shrink.
    pub fn grow(&mut self, extents: u32) {
        assert!(extents >= self.settings.extents, "a map does not shrink");
        self.settings.extents = extents;
        self.directory.resize(index(extents.div_ceil(PAGE_EXTENTS)), 0);
    }

    /// Extents that took host I/O in this window and are still counted: the working set.
    #[must_use]
    pub fn working_set(&self) -> u64 {
        self.working_set
    }

    /// Host I/Os counted in this window, those of dropped pages included.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.ios
    }

    /// What was not kept in this window.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Pages that there are.
    #[must_use]
    pub fn pages(&self) -> u64 {
        to_u64(self.pages.len())
    }

    /// Bytes that it takes at most: its directory, its pages, and the room for their list.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes_of(self.pages.len(), self.pages.capacity())
    }

    /// With so many pages, and room for so many in their list.
    fn bytes_of(&self, pages: usize, heads: usize) -> u64 {
        let most = self.pages_most().max(pages);
        4 * to_u64(self.directory.len())
            + to_u64(heads * size_of::<Head>())
            + Pages::resident_most(pages, most)
    }

    /// What is known about an extent; nothing is none.
    #[must_use]
    pub fn extent(&self, extent: u32) -> ExtentHeat {
        let nth = self.directory.get(index(extent / PAGE_EXTENTS)).copied().unwrap_or(0);
        match nth {
            0 => ExtentHeat::default(),
            nth => self.pages.get(index(nth - 1)).extent(&self.decay, self.epoch, extent),
        }
    }

    /// Every extent with score or counts, in the order of their numbers.
    pub fn touched(&self) -> impl Iterator<Item = (u32, ExtentHeat)> {
        let slabs = self.directory.iter().filter(|nth| **nth > 0);
        slabs.flat_map(move |nth| {
            let page = self.pages.get(index(nth - 1));
            let first = page.head.slab * PAGE_EXTENTS;
            (first..=first + (PAGE_EXTENTS - 1))
                .take_while(|extent| *extent < self.settings.extents)
                .map(move |extent| (extent, page.extent(&self.decay, self.epoch, extent)))
                .filter(|(_, heat)| *heat != ExtentHeat::default())
        })
    }
}

/// How much an I/O adds to the score (HEAT-2). In the counts each is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// At most 64 KiB, on its own: 1.
    Random,
    /// Above 64 KiB: 1/4.
    Large,
    /// At most 64 KiB, of a sequential stream: 1/16.
    Sequential,
}

impl Weight {
    /// Sixteenths.
    pub(crate) fn units(self) -> u64 {
        match self {
            Self::Random => 16,
            Self::Large => 4,
            Self::Sequential => 1,
        }
    }
}

/// What is known of the extents of a map, with scores as they are to be expected: where the window shows that a load has ended
/// or begun, by the window alone.
#[derive(Debug)]
pub(crate) struct Forecast<'a> {
    map: &'a HeatMap,
    trend: Option<Trend>,
    chances: Chances,
    later: Later,
}

impl Forecast<'_> {
    /// How many times as much as single I/Os the score of an extent varies by chance.
    pub(crate) fn chances(&self) -> &Chances {
        &self.chances
    }

    /// What became of extents like one.
    pub(crate) fn later(&self) -> &Later {
        &self.later
    }

    /// The score that an extent has, whatever is to be expected of it.
    pub(crate) fn had(&self, extent: u32) -> f32 {
        self.map.extent(extent).score
    }

    /// What a score comes to if the I/Os that it is of go on as they came since the map's first.
    pub(crate) fn as_it_goes_on(&self, score: f32) -> f32 {
        let hours = self.map.began.map_or(0, |began| self.map.epoch.saturating_sub(began)).max(1);
        score / (1.0 - (-(hours as f32) / self.map.settings.half_life_hours).exp2())
    }

    /// What a score comes to, in the mean, if all that it is of comes once a week.
    pub(crate) fn once_a_week(&self, score: f32) -> f32 {
        score * self.map.settings.half_life_hours / std::f32::consts::LN_2 / WEEK_H
    }

    /// The heat of an extent.
    pub(crate) fn extent(&self, extent: u32) -> ExtentHeat {
        self.slab(extent).map_or_else(ExtentHeat::default, |slab| slab.extent(extent))
    }

    /// Heat of the 256 extents of which this is one; `None` when all are cold.
    pub(crate) fn slab(&self, extent: u32) -> Option<SlabHeat<'_>> {
        let slab = index(extent / PAGE_EXTENTS);
        let nth = self.map.directory.get(slab).copied().unwrap_or(0).checked_sub(1)?;
        Some(SlabHeat { forecast: self, page: self.map.pages.get(index(nth)) })
    }
}

/// A page as the planner walks it.
pub(crate) struct SlabHeat<'a> {
    forecast: &'a Forecast<'a>,
    page: Page<'a>,
}

impl SlabHeat<'_> {
    pub(crate) fn extent(&self, extent: u32) -> ExtentHeat {
        let Forecast { map, trend, chances, .. } = self.forecast;
        let trend = trend.map(|trend| (trend, chances));
        self.page.expected(&map.decay, (map.epoch, trend), extent)
    }
}

/// How many extents of `extent_bytes` a virtual disk of `bytes` has.
#[must_use]
pub fn extents_of(bytes: u64, extent_bytes: u64) -> Option<u32> {
    u32::try_from(bytes.div_ceil(extent_bytes.max(1))).ok().filter(|extents| *extents < u32::MAX)
}

const _: () = assert!(to_usize(PAGE_BYTES) < 2200, "a page is little more than its entries");
