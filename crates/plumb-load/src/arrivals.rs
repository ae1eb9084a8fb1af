//! When I/Os are meant to start in an open loop (`--rate`): fixed in advance, whatever the device does.
//!
//! A stream of arrivals is a pure function of the seed and of its place; it draws nothing from the
//! generator of spec 6.12, so offsets and directions are those of a closed loop.

use std::fmt;

use plumb_units::{Nanos, convert};

use crate::plan::ThreadPlan;
use crate::profile::model::TimeSpan;

const SECOND: u128 = 1_000_000_000;
const MILLI: u128 = 1_000_000;

/// An open loop: I/Os start at their time, not when others finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenLoop {
    /// I/Os per second over all threads and targets (`--rate`), at least 1.
    pub rate: u32,
    /// How they are spread over time.
    pub arrival: Arrival,
}

/// How arrivals are spread over time (`--arrival`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arrival {
    /// At equal distances.
    #[default]
    Uniform,
    /// At random: the distances are exponential and independent.
    Poisson,
    /// In bursts as far apart as the rate asks for.
    Burst {
        /// I/Os of a burst, over all threads and targets; at least 1.
        ios: u32,
        /// Milliseconds over which a burst is spread; 0 for all of it at once.
        millis: u32,
    },
}

/// As `--arrival` takes it.
impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Poisson => f.write_str("poisson"),
            Self::Burst { ios, millis } => write!(f, "burst:{ios}/{millis}"),
        }
    }
}

impl OpenLoop {
    /// Whether a burst is over when the next one begins.
    #[must_use]
    pub fn bursts_fit(&self) -> bool {
        match self.arrival {
            Arrival::Burst { ios, millis } => {
                u64::from(millis) * u64::from(self.rate) <= u64::from(ios) * 1000
            }
            Arrival::Uniform | Arrival::Poisson => true,
        }
    }
}

/// One of the streams that a time span's arrivals are dealt out to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// Its number, from 0 over all threads.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// Its share of all arrivals: this many …
    pub part: u64,
    /// … of so many.
    pub whole: u64,
}

impl Stream {
    /// Arrivals per second.
    #[must_use]
    pub fn rate(&self, open: OpenLoop) -> f64 {
        f64::from(open.rate) * self.part as f64 / self.whole.max(1) as f64
    }
}

/// Deals the arrivals out: each target gets a share by its weight, and the threads that work on it
/// split that evenly. Threads of a weighted pool get equal shares, for each of their I/Os draws its target.
pub(crate) fn deal(span: &TimeSpan, threads: &mut [ThreadPlan]) {
    let working = |threads: &[ThreadPlan], index: usize| {
        let works = |thread: &&ThreadPlan| thread.targets.iter().any(|own| own.index == index);
        convert::to_u64(threads.iter().filter(works).count())
    };
    let of_target: Vec<(u64, u64)> = span
        .targets
        .iter()
        .enumerate()
        .map(|(index, target)| (u64::from(target.weight), working(threads, index)))
        .collect();
    let used = || of_target.iter().filter(|(_, threads)| *threads > 0);
    let weights: u64 = used().map(|(weight, _)| weight).sum();
    let busy = threads.iter().filter(|thread| thread.requests > 0).count();
    let shares = |thread: &ThreadPlan| -> Vec<(u64, u64)> {
        if thread.weighted {
            let one = usize::from(thread.requests > 0);
            return vec![(1, convert::to_u64(busy)); one];
        }
        let share = |index: usize| match (of_target[index], weights) {
            ((_, threads), 0) => (1, convert::to_u64(used().count()) * threads),
            ((weight, threads), weights) => (weight, weights * threads),
        };
        thread.targets.iter().map(|own| share(own.index)).collect()
    };
    let all: Vec<Vec<(u64, u64)>> = threads.iter().map(shares).collect();
    let of = convert::to_u32(all.iter().map(Vec::len).sum());
    let mut number = 0;
    for (thread, shares) in threads.iter_mut().zip(all) {
        let stream = |(part, whole)| {
            number += 1;
            Stream { number: number - 1, of, part, whole }
        };
        thread.streams = shares.into_iter().map(stream).collect();
    }
}

/// The arrivals of one stream, in order.
#[derive(Debug, Clone)]
pub struct Arrivals {
    open: OpenLoop,
    stream: Stream,
    /// Arrivals given out.
    count: u64,
    random: SplitMix,
    /// Poisson: nanoseconds of the last arrival, unrounded, and the mean distance.
    last: f64,
    mean: f64,
}

impl Arrivals {
    /// The arrivals of `stream` under a seed (`-z`).
    #[must_use]
    pub fn new(open: OpenLoop, stream: Stream, seed: u32) -> Self {
        let mut random = SplitMix(u64::from(seed) << 32 | u64::from(stream.number));
        // Neighbouring seeds and streams start far apart.
        random = SplitMix(random.next() ^ random.next().rotate_left(32));
        let mean = 1e9 / stream.rate(open);
        Self { open, stream, count: 0, random, last: 0.0, mean }
    }

    /// When the next I/O is meant to start, after the start signal; [`Nanos::NEVER`] for a stream
    /// without a share.
    pub fn next_due(&mut self) -> Nanos {
        if self.stream.part == 0 {
            return Nanos::NEVER;
        }
        let due = match self.open.arrival {
            Arrival::Uniform => {
                let (position, unit) = self.position();
                position.saturating_mul(SECOND) / (unit * u128::from(self.open.rate))
            }
            Arrival::Poisson => {
                self.last -= self.mean * self.random.unit().ln();
                u128::from(convert::floor_u64(self.last))
            }
            Arrival::Burst { ios, millis } => {
                let (position, unit) = self.position();
                let ios = u128::from(ios.max(1));
                let (burst, place) = (position / unit / ios, position / unit % ios);
                (burst * ios).saturating_mul(SECOND) / u128::from(self.open.rate)
                    + place * u128::from(millis) * MILLI / ios
            }
        };
        self.count += 1;
        u64::try_from(due).map_or(Nanos::NEVER, Nanos)
    }

    /// Arrivals per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.stream.rate(self.open)
    }

    /// The next arrival's place among those of all streams, as a fraction: with equal shares the streams
    /// take turns.
    fn position(&self) -> (u128, u128) {
        let of = u128::from(self.stream.of.max(1));
        let turn = u128::from(self.count) * of + u128::from(self.stream.number);
        (turn.saturating_mul(self.stream.whole.into()), of * u128::from(self.stream.part))
    }
}

/// Steele's, Lea's and Flood's SplitMix64.
#[derive(Debug, Clone, Copy)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests;
