//! What the rules look at.

use crate::identities::{Law, Window, in_flight};

/// A result as the rules see it. Nothing is taken for granted: what is not known is `None` or empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// I/Os per second, all threads.
    pub iops: Option<f64>,
    /// Bytes per I/O.
    pub block_bytes: Option<f64>,
    /// I/Os measured.
    pub count: Option<u64>,
    /// N.
    pub outstanding: Option<f64>,
    /// Mean number in flight where the run tells it; else it is X·L.
    pub in_flight: Option<f64>,
    /// Whether N is kept up: no rate limit, think time or open loop.
    pub closed_loop: bool,
    /// Measured seconds.
    pub measured_s: Option<f64>,
    /// Seconds that were to be measured, where the run was ended as soon as it was steady and precise.
    pub asked_s: Option<f64>,
    /// Seconds of warm-up.
    pub warm_up_s: Option<f64>,
    /// Latencies of reads, writes and both.
    pub latencies: Latencies,
    /// Each thread.
    pub threads: Vec<Thread>,
    /// I/Os per second of each interval.
    pub series: Vec<f64>,
    /// Each core.
    pub cores: Vec<Cpu>,
    /// A ceiling that was found, in words.
    pub ceiling: Option<String>,
    /// Sizes of the file and of caches.
    pub cache: Cache,
    /// What the target is made of.
    pub medium: Option<Medium>,
    /// Bytes per second that the link to the device carries.
    pub link_bytes_per_s: Option<f64>,
    /// What differs between settings that are compared, in words.
    pub differing: Vec<String>,
    /// Whether writes are of random data; `None` without writes.
    pub incompressible: Option<bool>,
    /// Bytes of the file that were never written, of all.
    pub unwritten_share: Option<f64>,
    /// Write share that was asked for, 0…1.
    pub write_share_wanted: Option<f64>,
    /// Write share that came about.
    pub write_share: Option<f64>,
    /// Where each thread's I/O goes.
    pub access: Option<Access>,
    /// Mean latency at the lowest load in milliseconds, for the bounds.
    pub lowest_latency_ms: Option<f64>,
    /// Whether the I/O goes by another node or host.
    pub remote: Option<String>,
    /// Share of throughput that measuring latencies costs, where both were measured.
    pub latency_cost: Option<LatencyCost>,
    /// Whether the run measured latencies.
    pub measures_latency: bool,
    /// How I/O was synchronised.
    pub sync: Option<Sync>,
    /// What a completed write means.
    pub completion: Option<Completion>,
}

impl Facts {
    /// (1.3) What rate, latency and outstanding I/Os say of each other; `None` where one of them is not known.
    #[must_use]
    pub fn law(&self) -> Option<Law> {
        let (iops, latency, outstanding) = (self.iops?, self.latencies.mean_ms?, self.outstanding?);
        let in_flight = self.in_flight.unwrap_or_else(|| in_flight(iops, latency));
        let window = self.measured_s.map_or(Window::UNKNOWN, |seconds| {
            Window::of(seconds, &self.series, self.latencies.slowest_ms)
        });
        Some(Law::of(in_flight, outstanding, latency, self.latencies.half_unit_ms, window))
    }
}

/// Latencies of a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latencies {
    /// Mean of both in milliseconds.
    pub mean_ms: Option<f64>,
    /// Half a unit of its last printed place; 0 where it is exact.
    pub half_unit_ms: f64,
    /// Mean of as many of the slowest as I/Os are outstanding, in milliseconds, where the latencies were kept.
    pub slowest_ms: Option<f64>,
    /// Reads.
    pub read: Percentiles,
    /// Writes.
    pub write: Percentiles,
    /// Both.
    pub total: Percentiles,
}

/// A tail that rests on few intervals: on few episodes, however many I/Os it is of (5.4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FewIntervals {
    /// From this percentile on.
    pub percent: f64,
    /// Intervals that hold an I/O as slow …
    pub with: usize,
    /// … of this many.
    pub all: usize,
}

/// A table of percentiles.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Percentiles {
    /// (percent, milliseconds), ascending; 100 is the maximum.
    pub rows: Vec<(f64, f64)>,
    /// How many I/Os it is made of.
    pub count: Option<u64>,
    /// The lowest percentile of the tail whose I/Os are of few intervals, where there are intervals.
    pub few: Option<FewIntervals>,
}

impl Percentiles {
    /// The value of a percentile.
    #[must_use]
    pub fn at(&self, percent: f64) -> Option<f64> {
        self.rows.iter().find(|(p, _)| (p - percent).abs() < 1e-9).map(|(_, ms)| *ms)
    }
}

/// One thread.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Thread {
    /// I/Os per second.
    pub iops: f64,
}

/// One core, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cpu {
    /// Busy.
    pub usage: f64,
    /// Idle.
    pub idle: f64,
}

/// How far values lie apart.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spread {
    /// (max − min)/mean.
    pub range: f64,
    /// SD/mean.
    pub variation: f64,
}

impl Spread {
    /// Of some values; `None` for fewer than two, or a mean of 0.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = crate::stats::describe::mean(values);
        if values.len() < 2 || mean <= 0.0 {
            return None;
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let variation = crate::stats::describe::deviation(values) / mean;
        Some(Self { range: (high - low) / mean, variation })
    }
}

/// Sizes of the file and of what may serve it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cache {
    /// Bytes of the file.
    pub file_bytes: Option<f64>,
    /// Bytes that the page cache may take; known where I/O is buffered.
    pub page_cache_bytes: Option<f64>,
    /// Bytes of a known cache of controller, array or device.
    pub device_cache_bytes: Option<f64>,
}

/// What a target is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Rotating.
    Disk,
    /// Flash.
    Flash,
}

/// Where I/O goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Random.
    Random,
    /// Sequential, each thread from the same place on.
    SequentialOverlapping,
    /// Sequential, threads apart or interlocked.
    SequentialApart,
}

/// Which caches were bypassed (`-S…`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// None: buffered.
    Buffered,
    /// The page cache (`-Su`).
    PageCache,
    /// Device caches, by write-through (`-Sw`).
    WriteThrough,
    /// Both (`-Sh`).
    Both,
}

/// What a completed write means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// It survives a loss of power.
    Durable,
    /// It may be in a cache that does not.
    Volatile,
}

/// Share of throughput that measuring latencies costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LatencyCost {
    /// The whole interval is above 0.
    Told(f64),
    /// It came out as this, which runs may differ by as well.
    Open(f64),
}
