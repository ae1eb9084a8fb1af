//! How long a simulated disk takes, and what it holds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plumb_units::Nanos;
use plumb_units::convert::{floor_u64, to_usize};

use super::faults::{Fault, RandomFaults};
use super::random::Random;

/// A simulated disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskSpec {
    /// Determines all that is random.
    pub seed: u64,
    /// How long one I/O takes once it is being served.
    pub service: Service,
    /// Now and then, everything stands.
    pub stalls: Option<Stalls>,
    /// How many I/Os are served at the same time, per queue.
    pub parallelism: u32,
    /// Whether it keeps what is written.
    pub content: Content,
    /// What goes wrong with certain I/Os.
    pub faults: Vec<Fault>,
    /// What goes wrong by chance.
    pub random_faults: RandomFaults,
}

impl Default for DiskSpec {
    fn default() -> Self {
        Self {
            seed: 0,
            service: Service::Constant(Nanos(100_000)),
            stalls: None,
            parallelism: 1,
            content: Content::Discarded,
            faults: Vec::new(),
            random_faults: RandomFaults::default(),
        }
    }
}

/// A distribution of service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Always the same.
    Constant(Nanos),
    /// Between the two, all equally likely.
    Uniform(Nanos, Nanos),
    /// Exponential with this mean, plus a part that every I/O takes.
    Exponential {
        /// The least that an I/O takes.
        base: Nanos,
        /// Mean of what comes on top.
        mean: Nanos,
    },
}

/// Pauses in which nothing is served, as when a disk collects its garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stalls {
    /// From the start of one to the start of the next; the first one starts after this.
    pub every: Nanos,
    /// How long each takes.
    pub length: Nanos,
}

/// Whether written bytes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Reads leave the buffer alone.
    Discarded,
    /// Reads return what was written, zeroes where nothing was. All of a file is held in memory.
    Kept,
}

/// Decides when I/Os finish.
#[derive(Debug)]
pub(super) struct Server {
    service: Service,
    stalls: Option<Stalls>,
    random: Random,
    /// When each of the parallel servers is idle again.
    idle_at: BinaryHeap<Reverse<Nanos>>,
}

impl Server {
    pub(super) fn new(spec: &DiskSpec, seed: u64) -> Self {
        let servers = spec.parallelism.max(1);
        Self {
            service: spec.service,
            stalls: spec.stalls,
            random: Random::new(seed),
            idle_at: (0..servers).map(|_| Reverse(Nanos::ZERO)).collect(),
        }
    }

    /// When an I/O that arrives at `now` finishes, `delay` included.
    pub(super) fn finish_at(&mut self, now: Nanos, delay: Nanos) -> Nanos {
        let time = self.service_time() + delay;
        let Reverse(idle_at) = self.idle_at.pop().expect("at least one server");
        let start = self.after_stall(idle_at.max(now));
        let end = self.through_stalls(start, time);
        self.idle_at.push(Reverse(end));
        end
    }

    fn service_time(&mut self) -> Nanos {
        match self.service {
            Service::Constant(time) => time,
            Service::Uniform(low, high) => {
                let steps = u128::from(high.since(low).0) + 1;
                let drawn = (u128::from(self.random.next()) * steps) >> 64;
                low + Nanos(u64::try_from(drawn).expect("below the range"))
            }
            Service::Exponential { base, mean } => {
                let times = -self.random.unit().ln();
                base + Nanos(floor_u64(mean.0 as f64 * times))
            }
        }
    }

    /// `time`, or the end of the pause that it falls into.
    fn after_stall(&self, time: Nanos) -> Nanos {
        let Some(Stalls { every, length }) = self.stalls else { return time };
        if every == Nanos::ZERO || time < every {
            return time;
        }
        let into = Nanos(time.0 % every.0);
        if into < length { time + (length - into) } else { time }
    }

    /// The end of `work` that begins at `start` and rests in every pause.
    fn through_stalls(&self, start: Nanos, work: Nanos) -> Nanos {
        let Some(Stalls { every, length }) = self.stalls else { return start + work };
        if every == Nanos::ZERO || length >= every {
            return start + work;
        }
        let mut now = start;
        let mut left = work;
        loop {
            let until_pause = Nanos(every.0 - now.0 % every.0);
            if left < until_pause {
                return now + left;
            }
            left = left - until_pause;
            now = now + until_pause + length;
        }
    }
}

/// What the files of a simulated disk hold, by path, shared by all its queues.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    contents: Arc<Mutex<HashMap<PathBuf, SharedBytes>>>,
}

/// The bytes of one file.
pub(super) type SharedBytes = Arc<Mutex<Vec<u8>>>;

impl Files {
    /// The file of that path, `size` bytes long at least; new bytes are zeroes.
    pub(super) fn open(&self, path: &Path, size: u64) -> SharedBytes {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let file = contents.entry(path.to_owned()).or_default();
        let mut bytes = file.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() < to_usize(size) {
            bytes.resize(to_usize(size), 0);
        }
        drop(bytes);
        Arc::clone(file)
    }
}

/// How many of `len` bytes at `offset` a file of `size` bytes has.
pub(super) fn within(size: u64, offset: u64, len: u32) -> u32 {
    let left = size.saturating_sub(offset).min(u64::from(u32::MAX));
    plumb_units::convert::low_u32(left).min(len)
}

/// Copies out of a file; the range has been cut to its end.
pub(super) fn read(file: &SharedBytes, offset: u64, buffer: &mut [u8]) {
    if !buffer.is_empty() {
        let bytes = file.lock().unwrap_or_else(PoisonError::into_inner);
        let start = to_usize(offset);
        buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
    }
}

/// Copies into a file; the range has been cut to its end.
pub(super) fn write(file: &SharedBytes, offset: u64, from: &[u8]) {
    if !from.is_empty() {
        let mut bytes = file.lock().unwrap_or_else(PoisonError::into_inner);
        let start = to_usize(offset);
        bytes[start..start + from.len()].copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(service: Service, stalls: Option<Stalls>, parallelism: u32) -> Server {
        Server::new(&DiskSpec { service, stalls, parallelism, ..DiskSpec::default() }, 7)
    }

    #[test]
    fn parallel_servers_work_side_by_side() {
        let mut two = server(Service::Constant(Nanos(10)), None, 2);
        let ends: Vec<_> = (0..5).map(|_| two.finish_at(Nanos(100), Nanos(0)).0).collect();
        assert_eq!(ends, [110, 110, 120, 120, 130]);
        assert_eq!(two.finish_at(Nanos(1000), Nanos(5)).0, 1015);
    }

    #[test]
    fn nothing_is_served_in_a_stall() {
        // Pauses at 100..130, 200..230, …
        let stalls = Some(Stalls { every: Nanos(100), length: Nanos(30) });
        for (now, work, end) in [
            (0, 99, 99),
            (0, 100, 130),
            (95, 10, 135),
            (100, 10, 140),
            (129, 1, 131),
            (130, 70, 230),
            (0, 250, 340),
        ] {
            let mut disk = server(Service::Constant(Nanos(work)), stalls, 1);
            assert_eq!(disk.finish_at(Nanos(now), Nanos(0)).0, end, "{now} {work}");
        }
    }

    #[test]
    fn distributions_have_their_means() {
        let exponential = Service::Exponential { base: Nanos(1000), mean: Nanos(9000) };
        for (service, least) in
            [(exponential, 1000), (Service::Uniform(Nanos(5000), Nanos(15_000)), 5000)]
        {
            let mut disk = server(service, None, 1);
            let times: Vec<_> = (0..20_000).map(|_| disk.service_time().0).collect();
            let mean = times.iter().sum::<u64>() / 20_000;
            assert!((9_800..10_200).contains(&mean), "{service:?}: {mean}");
            assert!(times.iter().all(|&time| time >= least));
        }
    }
}
