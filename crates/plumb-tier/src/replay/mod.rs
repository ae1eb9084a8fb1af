//! Traces replayed against tiered spaces in virtual time (BEY-3): the same heat map, planner and report as the engine's,
//! on models of disks, for several tier sizes and policies at once.
//!
//! The write-back cache follows the rules of 6.1 and 6.2; moves are read and written on the disks and not crash-safe.
//! Every extent is mapped at its first touch: to the Performance tier while that has room (ALC-1).

#[cfg(test)]
mod advice_tests;
mod bounds;
#[cfg(test)]
mod cache_tests;
#[cfg(test)]
mod change_tests;
mod course;
#[cfg(test)]
mod curve_tests;
#[cfg(test)]
mod days;
mod devices;
#[cfg(test)]
mod first_tests;
mod histogram;
mod runs;
mod space;
#[cfg(test)]
mod steady_tests;
#[cfg(test)]
mod tests;
mod tierer;
#[cfg(test)]
mod together_tests;
#[cfg(test)]
mod turns_tests;
mod write_cache;

use std::collections::HashMap;
use std::ops::Range;

use plumb_io::stack::{DeviceModel, HddModel, SsdModel};
use plumb_units::convert::{index, to_u64};
use plumb_units::{Bytes, Nanos};

pub use runs::RunRecord;

use crate::engine::streams::Streams;
use crate::heat::{HostIo, HostIoKind, Weigher, Weight};
use crate::optimizer::{MoveTimes, Thrash};
use crate::tier_report::TierReport;
use crate::trace::TraceIo;
use crate::what_if::{WhatIf, WhatIfPoint};
use bounds::{Clairvoyant, LruCache};
use course::Course;
use histogram::Histogram;
use space::Stripes;
use tierer::TiererSettings;

const HOUR: u64 = 3_600_000_000_000;

/// When extents move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// Never: an extent stays where it was first written.
    Never,
    /// Every so many hours, the first time after as many.
    Every {
        /// Hours between two optimizations.
        hours: f64,
    },
    /// A trickle every 15 minutes, at most 5 % of device time, with twice the bar (10.6).
    Continuous,
    /// A bound: every hour the best placement for that hour is there at once. No devices.
    Clairvoyant,
    /// A cache of whole extents instead, the least recently used out first. No devices.
    Lru,
}

impl Policy {
    /// Reads `never`, `daily`, `every:HOURS`, `continuous`, `clairvoyant` or `lru`.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        match text {
            "never" => Some(Self::Never),
            "daily" => Some(Self::Every { hours: 24.0 }),
            "continuous" => Some(Self::Continuous),
            "clairvoyant" => Some(Self::Clairvoyant),
            "lru" => Some(Self::Lru),
            _ => {
                let hours = text.strip_prefix("every:")?.parse::<f64>().ok()?;
                (0.01..=10_000.0).contains(&hours).then_some(Self::Every { hours })
            }
        }
    }

    /// As it is named.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Never => "never".to_owned(),
            Self::Every { hours: 24.0 } => "daily".to_owned(),
            Self::Every { hours } => format!("every:{hours}"),
            Self::Continuous => "continuous".to_owned(),
            Self::Clairvoyant => "clairvoyant".to_owned(),
            Self::Lru => "lru".to_owned(),
        }
    }
}

/// The space that a trace is replayed against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layout {
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Solid-state disks, `sas-ssd-200` each.
    pub ssds: u32,
    /// Rotating disks, `sas-10k-300` each, of `hdd_bytes`.
    pub hdds: u32,
    /// Bytes of a rotating disk.
    pub hdd_bytes: u64,
    /// Copies of everything: 1 to 3.
    pub copies: u32,
    /// Bytes put on one disk before going to the next.
    pub interleave: u64,
    /// Bytes of the write-back cache, at most a quarter of the Performance tier; 0 for none.
    pub write_cache_bytes: u64,
    /// Hours after which a score is half.
    pub half_life_hours: f32,
    /// Bytes per second that are moved at most.
    pub move_rate: u64,
    /// How long an optimization may begin moves.
    pub run_limit: Nanos,
}

impl Default for Layout {
    /// The reference scenario's (19.2), moves at 64 MiB/s.
    fn default() -> Self {
        Self {
            extent_bytes: 1 << 20,
            ssds: 4,
            hdds: 4,
            hdd_bytes: 300_000_000_000,
            copies: 1,
            interleave: 256 << 10,
            write_cache_bytes: 1 << 30,
            half_life_hours: 24.0,
            move_rate: 64 << 20,
            run_limit: Nanos::from_secs(13_500),
        }
    }
}

impl Layout {
    fn stripes(&self) -> (Stripes, Stripes) {
        let copies = index(self.copies);
        let of = |first, disks: u32| Stripes {
            first,
            columns: index(disks) / copies,
            copies,
            extent_bytes: self.extent_bytes,
            interleave: self.interleave,
        };
        (of(0, self.ssds), of(index(self.ssds), self.hdds))
    }

    fn models(&self) -> Vec<DeviceModel> {
        let ssds = (0..self.ssds).map(|_| DeviceModel::Ssd(SsdModel::sas_ssd_200()));
        let hdd = HddModel::new(self.hdd_bytes, 6, 6.0, (150e6, 90e6));
        ssds.chain((0..self.hdds).map(|_| DeviceModel::Hdd(hdd.clone()))).collect()
    }

    fn fast_disks(&self) -> Range<usize> {
        0..index(self.ssds)
    }

    fn slow_disks(&self) -> Range<usize> {
        index(self.ssds)..index(self.ssds + self.hdds)
    }

    /// Slots of the Capacity tier.
    fn capacity_slots(&self) -> u32 {
        let columns = u64::from(self.hdds / self.copies);
        let slots =
            (self.hdd_bytes / self.interleave * columns) / (self.extent_bytes / self.interleave);
        u32::try_from(slots).unwrap_or(u32::MAX).min((1 << 30) - 1)
    }

    fn tierer(&self, performance_slots: u32) -> TiererSettings {
        TiererSettings {
            extent_bytes: self.extent_bytes,
            performance_slots,
            capacity_slots: self.capacity_slots(),
            half_life_hours: self.half_life_hours,
            bar: None,
        }
    }

    /// Seconds of device time that one move takes.
    fn move_seconds(&self) -> f64 {
        let times = MoveTimes::reference();
        (times.move_capacity + times.move_performance).as_secs_f64()
    }

    fn full(&self, mapped: u64) -> ReplayError {
        ReplayError::Full {
            touched: mapped.saturating_add(1).saturating_mul(self.extent_bytes),
            remedy: format!(
                "give the Capacity tier more or larger disks (now {} of {}), or replay one volume of the trace",
                self.hdds,
                Bytes(self.hdd_bytes)
            ),
        }
    }

    /// Whether disks, copies and sizes go together.
    fn check(&self, sizes: &[u64]) -> Result<(), ReplayError> {
        let refuse = |what: String, remedy: &str| {
            Err(ReplayError::Layout { what, remedy: remedy.to_owned() })
        };
        if !(1..=3).contains(&self.copies) {
            return refuse(format!("{} copies", self.copies), "1, 2 or 3 copies can be kept");
        }
        if self.ssds < self.copies || self.hdds < self.copies {
            let what = format!("{} and {} disks for {} copies", self.ssds, self.hdds, self.copies);
            return refuse(what, "each tier needs a disk for each copy");
        }
        if self.hdd_bytes < self.extent_bytes {
            let what = format!("disks of {}", Bytes(self.hdd_bytes));
            return refuse(what, "a disk of the Capacity tier has room for an extent at least");
        }
        let whole = self.interleave > 0 && self.extent_bytes.is_multiple_of(self.interleave);
        if !whole || !self.extent_bytes.is_multiple_of(4096) || self.move_rate == 0 {
            return refuse(
                "an interleave that no extent is a multiple of, or no move rate".to_owned(),
                "use the defaults",
            );
        }
        let cannot =
            |bytes: &&u64| **bytes < self.extent_bytes || **bytes / self.extent_bytes >= 1 << 30;
        if let Some(bytes) = sizes.iter().find(cannot) {
            return refuse(
                format!("a Performance tier of {}", Bytes(*bytes)),
                "name sizes from 1M to 1024T",
            );
        }
        Ok(())
    }
}

/// Why a trace cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum ReplayError {
    /// The trace touches more than there is room for.
    #[error("the trace touches {} and more, for which both tiers have no room", Bytes(*touched))]
    #[diagnostic(code(plumb::replay::full))]
    Full {
        /// Bytes of extents.
        touched: u64,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// The space cannot be.
    #[error("there is no such space: {what}")]
    #[diagnostic(code(plumb::replay::layout))]
    Layout {
        /// What is wrong.
        what: String,
        /// What to do.
        #[help]
        remedy: String,
    },
}

/// The part of a host I/O that is on one extent.
#[derive(Debug, Clone, Copy)]
struct HostPart {
    extent: u32,
    offset: u64,
    len: u64,
    /// Bytes of the whole host I/O.
    request_len: u64,
    kind: HostIoKind,
    weight: Weight,
    /// Of a sequential stream of writes, by the engine's rule.
    sequential: bool,
}

/// Latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Mean, in nanoseconds.
    pub mean_ns: f64,
    /// 99 % are at most this, up to 1.6 % too high.
    pub p99_ns: u64,
}

impl Latency {
    fn of(histogram: &Histogram) -> Option<Self> {
        Some(Self { mean_ns: histogram.mean()?, p99_ns: histogram.quantile(0.99)? })
    }
}

/// What the disks did for one tier size and policy.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceOutcome {
    /// Of all host I/Os, from when the trace has them.
    pub latency: Option<Latency>,
    /// Of reads.
    pub reads: Option<Latency>,
    /// Of writes.
    pub writes: Option<Latency>,
    /// Bytes written to the solid-state disks, all copies.
    pub ssd_written: u64,
    /// Of these by moves.
    pub ssd_written_by_moves: u64,
    /// Of these by the write-back cache.
    pub ssd_written_by_cache: u64,
    /// Bytes written to the rotating disks.
    pub hdd_written: u64,
    /// Bytes of writes that went past the cache to the Capacity tier.
    pub bypassed: u64,
    /// Seconds in which rotating disks were busy, added up.
    pub hdd_busy_s: f64,
    /// The same as a share of their time, 0 to 1.
    pub hdd_busy_share: f64,
    /// Host I/Os that waited for those before: the space was slower than the trace.
    pub delayed: u64,
    /// The optimizations.
    pub runs: Vec<RunRecord>,
    /// What went back and forth.
    pub thrash: Thrash,
    /// The report of the last optimization.
    pub report: Option<TierReport>,
}

/// What came of one tier size and policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Bytes of the Performance tier that data may use.
    pub tier_bytes: u64,
    /// When extents moved.
    pub policy: Policy,
    /// Host I/Os, counted on each extent that they touch.
    pub ios: u64,
    /// Those that the Performance tier served.
    pub by_performance: u64,
    /// Those that the write-back cache served.
    pub by_cache: u64,
    /// Share of both, 0 to 1.
    pub share: f64,
    /// `None` for bounds.
    pub devices: Option<DeviceOutcome>,
}

/// Everything that a replay found.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayOutcome {
    /// Host I/Os of the trace.
    pub ios: u64,
    /// Extents that they touched.
    pub extents: u64,
    /// Virtual time of the trace.
    pub duration: Nanos,
    /// For each size, each policy.
    pub outcomes: Vec<Outcome>,
    /// What caches of these sizes would serve: whole extents, and blocks of 4 KiB.
    pub what_if: Vec<(WhatIfPoint, WhatIfPoint)>,
}

/// A replay under way.
#[derive(Debug)]
pub struct Replay {
    layout: Layout,
    sizes: Vec<u64>,
    policies: Vec<Policy>,
    /// In the order of sizes, then policies; `None` for bounds.
    courses: Vec<Option<Course>>,
    clairvoyant: Option<Clairvoyant>,
    caches: Vec<LruCache>,
    what_if: WhatIf,
    extents: HashMap<(u32, u64), u32>,
    weigher: Weigher,
    streams: Streams,
    parts: Vec<HostPart>,
    hour: u64,
    ios: u64,
    touches: u64,
    last: Nanos,
}

impl Replay {
    /// For every one of `sizes` (bytes of the Performance tier) with every one of `policies`.
    ///
    /// # Errors
    /// When there can be no such space.
    pub fn new(layout: Layout, sizes: &[u64], policies: &[Policy]) -> Result<Self, ReplayError> {
        layout.check(sizes)?;
        let slots = |bytes: u64| u32::try_from(bytes / layout.extent_bytes).unwrap_or(1 << 30);
        let mut courses = Vec::new();
        for size in sizes {
            for policy in policies {
                let is_bound = matches!(policy, Policy::Clairvoyant | Policy::Lru);
                courses.push((!is_bound).then(|| Course::new(layout, slots(*size), *policy)));
            }
        }
        let extents: Vec<u64> = sizes.iter().map(|size| size / layout.extent_bytes).collect();
        let caches = match policies.contains(&Policy::Lru) {
            true => extents.iter().map(|size| LruCache::new(*size)).collect(),
            false => Vec::new(),
        };
        let clairvoyant =
            policies.contains(&Policy::Clairvoyant).then(|| Clairvoyant::new(extents));
        Ok(Self {
            sizes: sizes.to_vec(),
            policies: policies.to_vec(),
            courses,
            clairvoyant,
            caches,
            what_if: WhatIf::offline(layout.extent_bytes),
            extents: HashMap::new(),
            weigher: Weigher::default(),
            streams: Streams::default(),
            parts: Vec::new(),
            hour: 0,
            ios: 0,
            touches: 0,
            last: Nanos::ZERO,
            layout,
        })
    }

    /// The next I/O of the trace.
    ///
    /// # Errors
    /// When the space has no room for what it touches.
    pub fn feed(&mut self, trace_io: &TraceIo) -> Result<(), ReplayError> {
        self.ios += 1;
        self.last = trace_io.at;
        if trace_io.at.0 / HOUR > self.hour {
            self.hour = trace_io.at.0 / HOUR;
            self.clairvoyant.iter_mut().for_each(Clairvoyant::end_hour);
        }
        self.split(trace_io);
        for part in &self.parts {
            self.touches += 1;
            let offset = u64::from(part.extent) * self.layout.extent_bytes + part.offset;
            self.what_if.record(HostIo { kind: part.kind, offset, len: part.len });
            self.clairvoyant.iter_mut().for_each(|seer| seer.count(part.extent, 1));
            self.caches.iter_mut().for_each(|cache| cache.refer(part.extent));
        }
        let mut courses = self.courses.iter_mut().flatten();
        courses.try_for_each(|course| course.feed(trace_io.at, &self.parts))
    }

    /// The parts of an I/O; new extents get the next number.
    fn split(&mut self, trace_io: &TraceIo) {
        let TraceIo { volume, io: HostIo { kind, offset, len }, .. } = *trace_io;
        // Streams of different volumes are told apart by far-off addresses.
        let address = (u64::from(volume) << 44).wrapping_add(offset);
        let weight = self.weigher.weigh(address, len);
        let sequential = kind == HostIoKind::Write && self.streams.note(address.min(1 << 62), len);
        self.parts.clear();
        let (mut at, end) = (offset, offset.saturating_add(len));
        while at < end {
            let nth = at / self.layout.extent_bytes;
            let within = at % self.layout.extent_bytes;
            let part = (end - at).min(self.layout.extent_bytes - within);
            let next = u32::try_from(self.extents.len()).unwrap_or(u32::MAX);
            let extent = *self.extents.entry((volume, nth)).or_insert(next);
            self.parts.push(HostPart {
                extent,
                offset: within,
                len: part,
                request_len: len,
                kind,
                weight,
                sequential,
            });
            at += part;
        }
    }

    /// The trace is over.
    #[must_use]
    pub fn end(mut self) -> ReplayOutcome {
        self.clairvoyant.iter_mut().for_each(Clairvoyant::end_hour);
        self.courses.iter_mut().flatten().for_each(Course::end);
        let mut outcomes = Vec::new();
        for (nth, course) in self.courses.iter().enumerate() {
            let (size, policy) =
                (nth / self.policies.len(), self.policies[nth % self.policies.len()]);
            outcomes.push(match course {
                Some(course) => self.observed(self.sizes[size], policy, course),
                None => self.bound(size, policy),
            });
        }
        let curve =
            |size: &u64| Some((self.what_if.by_extents(*size)?, self.what_if.by_blocks(*size)?));
        ReplayOutcome {
            ios: self.ios,
            extents: to_u64(self.extents.len()),
            duration: self.last,
            what_if: self.sizes.iter().filter_map(curve).collect(),
            outcomes,
        }
    }

    fn bound(&self, size: usize, policy: Policy) -> Outcome {
        let served = match (policy, &self.clairvoyant) {
            (Policy::Clairvoyant, Some(seer)) => seer.served[size],
            _ => self.caches.get(size).map_or(0, |cache| cache.served),
        };
        Outcome {
            tier_bytes: self.sizes[size],
            policy,
            ios: self.touches,
            by_performance: served,
            by_cache: 0,
            share: share(served, self.touches),
            devices: None,
        }
    }

    fn observed(&self, tier_bytes: u64, policy: Policy, course: &Course) -> Outcome {
        let (tally, now) = (&course.tally, course.now);
        let served = tally.served;
        let (fast, slow) = (self.layout.fast_disks(), self.layout.slow_disks());
        let busy = course.devices.busy(slow.clone(), now).as_secs_f64();
        let time = now.as_secs_f64() * slow.len() as f64;
        Outcome {
            tier_bytes,
            policy,
            ios: served.total(),
            by_performance: served.performance,
            by_cache: served.cache,
            share: served.share().unwrap_or(0.0),
            devices: Some(DeviceOutcome {
                latency: Latency::of(&tally.all),
                reads: Latency::of(&tally.reads),
                writes: Latency::of(&tally.writes),
                ssd_written: course.devices.written(fast),
                ssd_written_by_moves: tally.moves_written,
                ssd_written_by_cache: tally.cache_written,
                hdd_written: course.devices.written(slow),
                bypassed: tally.bypassed,
                hdd_busy_s: busy,
                hdd_busy_share: if time > 0.0 { busy / time } else { 0.0 },
                delayed: tally.delayed,
                runs: course.records.clone(),
                thrash: course.tierer.thrash(),
                report: course.report.clone(),
            }),
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
