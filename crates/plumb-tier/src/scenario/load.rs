//! The load: so many requests outstanding, at random places or one after the other, and what came of them.

use plumb_io::{Errno, FlushQueue};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_u64, to_usize};

use super::ScenarioError;
use super::rig::{OUTSTANDING, Rig, tag};
use crate::engine::{Account, Request, RequestKind, VirtualDiskUse};
use crate::format::BLOCK_BYTES;
use crate::log_buckets;
use crate::random::Random;

const BLOCK_LEN: u32 = 4096;
/// Requests outstanding, and bytes of each, while a file is made.
const MAKERS: u32 = 16;
const MADE: u32 = 256 << 10;
/// Events that the error of an I/O tells, at most.
const EVENTS: usize = 8;

/// Random I/O of 4 KiB on a range of the virtual disk: `-r -b4K -t16 -o20`, 320 outstanding in all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Where the range begins, in bytes.
    pub start: u64,
    /// How long it is.
    pub bytes: u64,
    /// Share of writes, 0 to 100 (`-w`).
    pub writes_percent: u64,
    /// Whether each is durable with its checksum when it is acknowledged (FUA).
    pub durable: bool,
    /// Requests outstanding, 320 at most.
    pub outstanding: u32,
    /// So long it goes before anything counts (`-W`).
    pub warm_up: Nanos,
    /// So long it counts (`-d`).
    pub duration: Nanos,
    /// Its I/Os are counted by intervals of that length, too.
    pub interval: Nanos,
    /// Of the places, and of what is read and written.
    pub seed: u64,
}

/// What came of a load in the time that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadOutcome {
    /// I/Os that ended.
    pub ios: u64,
    /// How long that took.
    pub seconds: f64,
    /// I/Os per second of each interval.
    pub series: Vec<f64>,
    /// Mean time of an I/O.
    pub mean_ns: f64,
    /// Time within which 99 % of them ended.
    pub p99_ns: u64,
    /// What the virtual disk did: the difference of its counters.
    pub used: Difference,
    /// Bytes that the write-back cache took, from the first request of the warm-up to the last answer.
    pub cache_taken: u64,
}

/// Bytes by where they were served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Difference {
    /// By the Performance tier.
    pub performance: u64,
    /// By the Capacity tier.
    pub capacity: u64,
    /// By the write-back cache.
    pub cache: u64,
    /// By nobody: zeros of what was never written.
    pub zeros: u64,
}

impl Difference {
    fn of(used: &VirtualDiskUse) -> Self {
        let both =
            |second| used.bytes(Account::TierRead(second)) + used.bytes(Account::TierWrite(second));
        Self {
            performance: both(false),
            capacity: both(true),
            cache: used.bytes(Account::CacheRead) + used.bytes(Account::CacheWrite),
            zeros: used.bytes(Account::Zeros),
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            performance: self.performance - before.performance,
            capacity: self.capacity - before.capacity,
            cache: self.cache - before.cache,
            zeros: self.zeros - before.zeros,
        }
    }

    /// Share of one of its members in all, 0 to 1; 0 without any.
    #[must_use]
    pub fn share(&self, part: u64) -> f64 {
        let all = self.performance + self.capacity + self.cache + self.zeros;
        part as f64 / all.max(1) as f64
    }
}

impl LoadOutcome {
    /// I/Os per second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.ios as f64 / self.seconds
    }

    /// Those of the intervals from `share` of the time on.
    #[must_use]
    pub fn iops_from(&self, share: f64) -> f64 {
        let first = plumb_units::convert::floor_u64(share * self.series.len() as f64);
        let rest = self.series.get(to_usize(first)..).unwrap_or_default();
        rest.iter().sum::<f64>() / rest.len().max(1) as f64
    }
}

/// A load that goes on.
#[derive(Debug)]
pub(super) struct Loader {
    load: Load,
    random: Random,
    idle: Vec<u32>,
    /// By client: when it began, and its block.
    begun: Vec<(Nanos, u64)>,
    busy: Vec<bool>,
    began: Nanos,
    cache_before: u64,
    counted: [Option<(Nanos, Difference)>; 2],
    ios: u64,
    time_ns: u128,
    buckets: Vec<u64>,
    series: Vec<u64>,
}

impl Loader {
    pub(super) fn new<Q: FlushQueue>(load: Load, rig: &Rig<Q>) -> Self {
        let now = rig.now();
        let blocks = to_usize(load.bytes / BLOCK_BYTES);
        Self {
            random: Random::new(load.seed),
            idle: (0..load.outstanding.min(OUTSTANDING)).rev().collect(),
            begun: vec![(Nanos::ZERO, 0); index(OUTSTANDING)],
            busy: vec![false; blocks],
            began: now,
            cache_before: Difference::of(&rig.engine.use_of(0)).cache,
            counted: [None; 2],
            ios: 0,
            time_ns: 0,
            buckets: vec![0; log_buckets::COUNT],
            series: Vec::new(),
            load,
        }
    }

    fn counts_from(&self) -> Nanos {
        self.began + self.load.warm_up
    }

    fn ends(&self) -> Nanos {
        self.counts_from() + self.load.duration
    }

    /// Hands in requests of all idle clients.
    fn issue<Q: FlushQueue>(&mut self, rig: &mut Rig<Q>) {
        let now = rig.now();
        while let Some(client) = self.idle.pop() {
            // Two writes of one block at once would make what it holds depend on who is first.
            let nth = loop {
                let nth = to_usize(self.random.below(to_u64(self.busy.len())));
                if !self.busy[nth] {
                    break nth;
                }
            };
            self.busy[nth] = true;
            let block = self.load.start / BLOCK_BYTES + to_u64(nth);
            self.begun[index(client)] = (now, block);
            let kind = match self.random.below(100) < self.load.writes_percent {
                true => {
                    let tag = rig.versions.next_tag(block);
                    rig.engine.buffer_mut(client)[..8].copy_from_slice(&tag.to_le_bytes());
                    RequestKind::Write { fua: self.load.durable }
                }
                false => RequestKind::Read,
            };
            let request = Request { kind, vdisk: 0, offset: block * BLOCK_BYTES, len: BLOCK_LEN };
            rig.engine.submit(client, request);
        }
    }

    /// Takes what has ended; `false` once the load is over.
    fn collect<Q: FlushQueue>(&mut self, rig: &mut Rig<Q>) -> Result<bool, ScenarioError> {
        let now = rig.now();
        let (from, to) = (self.counts_from(), self.ends());
        let used = |rig: &Rig<Q>| Some((now, Difference::of(&rig.engine.use_of(0))));
        if now >= from && self.counted[0].is_none() {
            self.counted[0] = used(rig);
        }
        if now >= to && self.counted[1].is_none() {
            self.counted[1] = used(rig);
        }
        while let Some((client, outcome)) = rig.engine.pop() {
            let (begun, block) = self.begun[index(client)];
            outcome.map_err(|errno| rig.failed(block, errno))?;
            self.busy[to_usize(block - self.load.start / BLOCK_BYTES)] = false;
            self.idle.push(client);
            if self.counted[0].is_some() && now < to {
                let time = now.since(begun).0;
                self.ios += 1;
                self.time_ns += u128::from(time);
                self.buckets[log_buckets::bucket(time)] += 1;
                let nth = to_usize(now.since(from).0 / self.load.interval.0.max(1));
                if nth >= self.series.len() {
                    self.series.resize(nth + 1, 0);
                }
                self.series[nth] += 1;
            }
        }
        Ok(now < to)
    }

    fn outcome<Q: FlushQueue>(mut self, rig: &Rig<Q>) -> LoadOutcome {
        // The last interval may be cut short.
        self.series.truncate(to_usize(self.load.duration.0 / self.load.interval.0.max(1)));
        let [from, to] = self.counted;
        let ((from, before), (to, after)) = from.zip(to).unwrap_or_default();
        let seconds = to.since(from).as_secs_f64();
        let wanted = self.ios.saturating_mul(99).div_ceil(100);
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen >= wanted
        };
        let bucket = self.buckets.iter().position(reached).unwrap_or(0);
        let interval_s = self.load.interval.as_secs_f64();
        LoadOutcome {
            ios: self.ios,
            seconds,
            series: self.series.iter().map(|count| *count as f64 / interval_s).collect(),
            mean_ns: self.time_ns as f64 / self.ios.max(1) as f64,
            p99_ns: log_buckets::range(bucket).0,
            used: after.since(&before),
            cache_taken: Difference::of(&rig.engine.use_of(0)).cache - self.cache_before,
        }
    }
}

impl<Q: FlushQueue> Rig<Q> {
    /// Loads the space for as long as the load says.
    ///
    /// # Errors
    /// When an I/O fails.
    pub fn run(&mut self, load: &Load) -> Result<LoadOutcome, ScenarioError> {
        let mut loader = Loader::new(*load, self);
        let mut goes_on = true;
        while goes_on {
            loader.issue(self);
            self.step();
            goes_on = loader.collect(self)?;
        }
        self.drain(&mut loader)?;
        Ok(loader.outcome(self))
    }

    /// The error of an I/O that failed, with what the engine said.
    fn failed(&mut self, block: u64, errno: Errno) -> ScenarioError {
        let mut events = Vec::new();
        while let Some(event) = self.engine.next_event() {
            events.push(event.tell(self.engine.config()));
        }
        events.drain(..events.len().saturating_sub(EVENTS));
        ScenarioError::Io { block, errno, virtual_s: self.now().as_secs_f64(), events }
    }

    /// Waits for what is outstanding.
    fn drain(&mut self, loader: &mut Loader) -> Result<(), ScenarioError> {
        while loader.idle.len() < index(loader.load.outstanding.min(OUTSTANDING)) {
            self.step();
            loader.collect(self)?;
        }
        Ok(())
    }

    /// Makes a file: writes a range from its start to its end, in requests of 256 KiB, or of each extent its first
    /// block only. Both give every extent of it a place.
    ///
    /// # Errors
    /// When a write fails.
    pub fn fill(&mut self, (start, bytes): (u64, u64), whole: bool) -> Result<(), ScenarioError> {
        let (len, step) = if whole { (MADE, u64::from(MADE)) } else { (BLOCK_LEN, 1 << 20) };
        let mut next = start;
        let mut idle: Vec<u32> = (0..MAKERS).collect();
        while next < start + bytes || idle.len() < index(MAKERS) {
            while let Some(client) = idle.pop_if(|_| next < start + bytes) {
                let buffer = self.engine.roomy_buffer(client, index(len));
                for (nth, block) in (0..).zip(buffer[..index(len)].chunks_mut(index(BLOCK_LEN))) {
                    let number = next / BLOCK_BYTES + nth;
                    block[..8].copy_from_slice(&self.versions.next_tag(number).to_le_bytes());
                }
                let kind = RequestKind::Write { fua: false };
                self.engine.submit(client, Request { kind, vdisk: 0, offset: next, len });
                next += step;
            }
            self.step();
            while let Some((client, outcome)) = self.engine.pop() {
                let block = next / BLOCK_BYTES;
                outcome.map_err(|errno| self.failed(block, errno))?;
                // What is written next begins with the client's first block.
                let buffer = self.engine.roomy_buffer(client, index(len));
                for block in buffer.chunks_mut(index(BLOCK_LEN)) {
                    block[..8].fill(0);
                }
                idle.push(client);
            }
        }
        Ok(())
    }

    /// From now on it is known what each block of the range was given last, so that [`Rig::verify`] can tell.
    pub fn remember(&mut self, (start, bytes): (u64, u64)) {
        self.versions.first = start / BLOCK_BYTES;
        self.versions.list = vec![0; to_usize(bytes / BLOCK_BYTES)];
    }

    /// Reads each `step`-th block that is remembered and compares it with what was written last; how many were read.
    ///
    /// # Errors
    /// When one holds anything else.
    pub fn verify(&mut self, step: u64) -> Result<u64, ScenarioError> {
        let (first, count) = (self.versions.first, to_u64(self.versions.list.len()));
        let mut read = 0;
        for nth in (0..count).step_by(to_usize(step.max(1))) {
            let block = first + nth;
            let (kind, len) = (RequestKind::Read, to_u32(to_usize(BLOCK_BYTES)));
            self.engine.submit(0, Request { kind, vdisk: 0, offset: block * BLOCK_BYTES, len });
            let outcome = loop {
                self.step();
                if let Some((_, outcome)) = self.engine.pop() {
                    break outcome;
                }
            };
            let wanted = match self.versions.list[to_usize(nth)] {
                0 => 0,
                version => tag(block, version),
            };
            let found = &self.engine.buffer_mut(0)[..8];
            if outcome.is_err() || found != wanted.to_le_bytes() {
                return Err(ScenarioError::Content { block });
            }
            read += 1;
        }
        self.engine.buffer_mut(0).fill(0);
        Ok(read)
    }

    /// Loads the space for as long as `goes_on` says, which is asked after the warm-up; what the load came to meanwhile.
    ///
    /// # Errors
    /// When an I/O fails.
    pub fn run_while(
        &mut self,
        load: &Load,
        mut goes_on: impl FnMut(&mut crate::Engine<super::rig::Emulated<Q>>) -> bool,
    ) -> Result<LoadOutcome, ScenarioError> {
        let endless = Load { duration: Nanos(u64::MAX / 128), ..*load };
        let mut loader = Loader::new(endless, self);
        loop {
            loader.issue(self);
            self.step();
            loader.collect(self)?;
            if loader.counted[0].is_some() && !goes_on(&mut self.engine) {
                break;
            }
        }
        loader.counted[1] = Some((self.now(), Difference::of(&self.engine.use_of(0))));
        loader.load.duration = self.now().since(loader.counts_from());
        self.drain(&mut loader)?;
        Ok(loader.outcome(self))
    }
}
