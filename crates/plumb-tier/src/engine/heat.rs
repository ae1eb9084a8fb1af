//! The heat maps of a running engine: every host I/O is counted where requests come in (section 9).
//!
//! The engine's thread owns a map and a list of touches per virtual disk. A request adds to the list, which is merged
//! when it is nearly full, or after 100 ms (HEAT-5). Beside it a sketch follows a sample of the blocks and extents, for
//! the what-if curve of the window (HEAT-8, BEY-1).

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64};

use super::optimize::MapPlacement;
use super::part::{Part, PartKind};
use super::perf::Account;
use super::{Engine, Request, RequestKind};
use crate::events::Event;
use crate::extents::{UNMAPPED, is_second_tier};
use crate::format::Config;
use crate::heat::{HeatDelta, HeatFileError, HeatMap, HeatSettings, HostIo, HostIoKind};
use crate::mutation::{Mutation, active};
use crate::optimizer::{Placement, TierName};
use crate::tier_report::{HeatGap, WindowBytes};
use crate::what_if::WhatIf;

/// Touches that are kept until the next merge.
const TOUCHES: usize = 4096;
/// Host I/Os that are kept until the sketch follows them.
const FRESH: usize = 256;
/// How long they are kept at most.
const MERGE_EVERY: Nanos = Nanos(100_000_000);
const HOUR: u64 = 3_600_000_000_000;
/// What all maps of a pool may take together (HEAT-4).
const LIMIT_BYTES: u64 = 128 << 20;

/// Which requests were answered from where since the window of the heat map began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// By the Performance tier.
    pub performance: u64,
    /// By the write-back cache.
    pub cache: u64,
    /// By the Capacity tier.
    pub capacity: u64,
    /// By nobody: what was never written is zero.
    pub unmapped: u64,
    /// What they read and wrote.
    pub bytes: WindowBytes,
}

impl Served {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.performance + self.cache + self.capacity + self.unmapped
    }
}

/// The maps, by virtual disk, and the clock that they age by.
#[derive(Debug)]
pub(super) struct Heats {
    meters: Vec<Meter>,
    merged: Nanos,
    /// The hour at the engine's time 0.
    first_hour: u64,
}

#[derive(Debug)]
struct Meter {
    map: HeatMap,
    delta: HeatDelta,
    what_if: WhatIf,
    /// Of this window, and not in the sketch yet.
    fresh: Vec<HostIo>,
    served: Served,
    /// What all that was counted since the start has over this window.
    before: WindowBytes,
}

impl Meter {
    fn follow(&mut self) {
        self.what_if.record_all(&self.fresh);
        self.fresh.clear();
    }
}

impl Heats {
    /// The map of a virtual disk.
    pub(super) fn of(&self, vdisk: usize) -> &HeatMap {
        &self.meters[vdisk].map
    }

    pub(super) fn new(config: &Config) -> Self {
        let live = config.vdisks.iter().filter(|vdisk| !vdisk.is_removed()).count();
        let limit_bytes = LIMIT_BYTES / to_u64(live.max(1));
        let meter = |vdisk: &crate::format::VirtualDisk| {
            let [seed, ..] = vdisk.id.to_le_bytes();
            let extents = if vdisk.is_removed() { 0 } else { vdisk.extents };
            let settings =
                HeatSettings { limit_bytes, seed: seed.into(), ..HeatSettings::new(extents) };
            Meter {
                map: HeatMap::new(settings),
                delta: HeatDelta::new(config.extent_bytes.into(), TOUCHES),
                what_if: WhatIf::new(config.extent_bytes.into()),
                fresh: Vec::with_capacity(FRESH),
                served: Served::default(),
                before: WindowBytes::default(),
            }
        };
        Self {
            meters: config.vdisks.iter().map(meter).collect(),
            merged: Nanos::ZERO,
            first_hour: 0,
        }
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// Says which hour it is, counted from any beginning that never changes. Without it, or when that is before the hour of a
    /// restored map (clocks jump), hours count from the start of the engine, or go on where that map was saved.
    pub fn set_hour(&mut self, hour: u64) {
        let first = hour.saturating_sub(self.now.0 / HOUR);
        let least = if active(Mutation::HourSetBack) { 0 } else { self.heats.first_hour };
        self.heats.first_hour = first.max(least);
        self.tend_heat(true);
    }

    /// How much host I/O the extents of a virtual disk took, up to now.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn heat(&mut self, vdisk: u32) -> &HeatMap {
        self.tend_heat(true);
        &self.heats.meters[index(vdisk)].map
    }

    /// The same, without what was counted since it was merged last.
    pub(super) fn heat_as_it_is(&self, vdisk: u32) -> &HeatMap {
        &self.heats.meters[index(vdisk)].map
    }

    /// The same of the what-if curve.
    pub(super) fn what_if_as_it_is(&self, vdisk: u32) -> &WhatIf {
        &self.heats.meters[index(vdisk)].what_if
    }

    /// Where the requests of this window were answered from.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn served(&self, vdisk: u32) -> Served {
        let meter = &self.heats.meters[index(vdisk)];
        Served { bytes: self.counted_bytes(vdisk).less(meter.before), ..meter.served }
    }

    /// What was read and written since the start.
    fn counted_bytes(&self, vdisk: u32) -> WindowBytes {
        let own = self.use_of(vdisk);
        WindowBytes {
            read: own.reads.bytes,
            written: own.writes.bytes,
            cache_read: own.bytes(Account::CacheRead),
            cache_written: own.bytes(Account::CacheWrite),
            bypassed: own.bytes(Account::TierWrite(true)),
            times_full: own.times_full,
        }
    }

    /// Begins a new window of the heat map of a virtual disk: its counts are 0, its scores stay.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn begin_heat_window(&mut self, vdisk: u32) {
        self.tend_heat(true);
        let counted = self.counted_bytes(vdisk);
        let meter = &mut self.heats.meters[index(vdisk)];
        meter.before = counted;
        let placement = MapPlacement::of(&self.core.members.config, &self.core.extents, vdisk);
        let tier = |extent| placement.tier(extent);
        meter.map.begin_window_of(|extent| tier(extent).map(|tier| tier == TierName::Performance));
        meter.what_if.clear();
        meter.served = Served::default();
    }

    /// The heat map of a virtual disk as bytes, for [`Engine::restore_heat`] of a later start (HEAT-6).
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn save_heat(&mut self, vdisk: u32) -> Vec<u8> {
        self.tend_heat(true);
        let id = self.core.members.config.vdisks[index(vdisk)].id;
        self.heats.meters[index(vdisk)].map.save(id)
    }

    /// Goes on with a saved heat map, and with what was served in its window, in place of what was counted since the
    /// start; how many of its pages were lost.
    ///
    /// # Errors
    /// When the bytes are none of this virtual disk: it goes on with what it has.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn restore_heat(
        &mut self,
        vdisk: u32,
        bytes: &[u8],
        served: Served,
    ) -> Result<u64, HeatFileError> {
        self.tend_heat(true);
        let id = self.core.members.config.vdisks[index(vdisk)].id;
        let counted = self.counted_bytes(vdisk);
        let meter = &mut self.heats.meters[index(vdisk)];
        let restored = HeatMap::restore(bytes, id, meter.map.settings().clone())?;
        meter.map = restored.map;
        meter.served = served;
        meter.before = counted.less(served.bytes);
        // Never back: an engine whose hours begin at 0 goes on in the hour of the snapshot.
        let epoch = self.heats.meters[index(vdisk)].map.epoch();
        let first = epoch.saturating_sub(self.now.0 / HOUR);
        self.heats.first_hour = self.heats.first_hour.max(first);
        self.tend_heat(true);
        Ok(restored.pages_lost)
    }

    /// What was kept of a heat map is lost, as it was found at `now_s` of the clock that reports are by: it is said by an
    /// event and in the report of this window, which begins here if all of it is lost.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn note_lost_heat(&mut self, vdisk: u32, gap: HeatGap, now_s: f64) {
        let own = self.tiering_mut(vdisk);
        own.heat_gap = Some(gap);
        let pages = match gap {
            HeatGap::All => {
                (own.window_start_s, own.uncounted_s) = (now_s, 0);
                None
            }
            HeatGap::Pages(pages) => Some(pages),
        };
        let vdisk = u16::try_from(vdisk).unwrap_or(u16::MAX);
        self.core.io.events.note(Event::HeatLost { vdisk, pages });
    }

    /// What a cache of any size would have served of the requests of this window (BEY-1).
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn what_if(&mut self, vdisk: u32) -> &WhatIf {
        self.tend_heat(true);
        &self.heats.meters[index(vdisk)].what_if
    }

    /// The what-if curve of a virtual disk as bytes, for [`Engine::restore_what_if`] of a later start.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn save_what_if(&mut self, vdisk: u32) -> Vec<u8> {
        let id = self.core.members.config.vdisks[index(vdisk)].id;
        self.what_if(vdisk).save(id)
    }

    /// Goes on with a saved curve in place of what was followed since the start; `false` when the bytes are damaged or
    /// of another virtual disk: it goes on with what it has.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn restore_what_if(&mut self, vdisk: u32, bytes: &[u8]) -> bool {
        self.tend_heat(true);
        let config = &self.core.members.config;
        let (id, extent_bytes) = (config.vdisks[index(vdisk)].id, config.extent_bytes);
        let restored = WhatIf::restore(bytes, id, extent_bytes.into());
        let known = restored.is_some();
        let own = &mut self.heats.meters[index(vdisk)].what_if;
        restored.into_iter().for_each(|restored| *own = restored);
        known
    }

    /// A request came in.
    #[inline]
    pub(super) fn note_heat(&mut self, request: &Request) {
        let kind = match request.kind {
            RequestKind::Read => HostIoKind::Read,
            RequestKind::Write { .. } | RequestKind::WriteZeroes => HostIoKind::Write,
            RequestKind::Discard | RequestKind::Flush => return,
        };
        let meter = &mut self.heats.meters[index(request.vdisk)];
        let io = HostIo { kind, offset: request.offset, len: request.len.into() };
        meter.delta.record(io);
        meter.fresh.push(io);
        if meter.fresh.len() == FRESH {
            meter.follow();
        }
        if meter.delta.is_due() {
            meter.map.merge(&mut meter.delta);
        }
    }

    /// The first part of a request has ended: who answered is who answered it.
    #[inline]
    pub(super) fn note_served(&mut self, part: &Part) {
        let counts = matches!(part.kind, PartKind::Read | PartKind::Write | PartKind::WriteZeros);
        if !counts || part.buffer > 0 {
            return;
        }
        let vdisk = self.core.vdisk(part.extent);
        let place = self.core.extents.place(part.extent);
        let served = &mut self.heats.meters[vdisk].served;
        let count = match place {
            _ if part.cached => &mut served.cache,
            UNMAPPED => &mut served.unmapped,
            place if is_second_tier(place) => &mut served.capacity,
            _ => &mut served.performance,
        };
        *count += 1;
    }

    /// Merges what was counted, if it is time, and lets the maps age.
    pub(super) fn tend_heat(&mut self, at_once: bool) {
        if !at_once && self.now.since(self.heats.merged) < MERGE_EVERY {
            return;
        }
        self.heats.merged = self.now;
        let hour = self.heats.first_hour.saturating_add(self.now.0 / HOUR);
        for meter in &mut self.heats.meters {
            meter.map.merge(&mut meter.delta);
            meter.map.advance(hour);
            meter.follow();
        }
    }
}
