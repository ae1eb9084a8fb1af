//! One look at counters; two of them make rates.

use std::collections::BTreeMap;

use plumb_units::Nanos;

use super::{DeviceRates, Memory, Pressure, Second, Watched};
use crate::block_stack::DeviceNumber;
use crate::system_tree::SystemTree;

/// The unit of /proc/diskstats, whatever the device's block size.
const SECTOR: f64 = 512.0;

/// Counters at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    at: Nanos,
    disks: Vec<Option<Disk>>,
    /// (number, busy ticks, all ticks).
    processors: Vec<(u32, u64, u64)>,
    /// Microseconds waited: cpu some, io some, io full, memory some, memory full.
    stalls: [Option<u64>; 5],
    memory: Memory,
    temperatures: Vec<Option<f64>>,
    throttles: Option<u64>,
}

/// A line of /proc/diskstats.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Disk {
    reads: u64,
    read_sectors: u64,
    writes: u64,
    written_sectors: u64,
    busy_ms: u64,
    weighted_ms: u64,
}

impl Look {
    /// Looks; `at` is the time since any beginning.
    #[must_use]
    pub fn take(tree: &SystemTree, watched: &Watched, at: Nanos) -> Self {
        let text = |path: &str| tree.text(path).unwrap_or_default();
        let stats: BTreeMap<DeviceNumber, Disk> =
            text("/proc/diskstats").lines().filter_map(disk).collect();
        let stall = |path: &str, kind: &str| stall(&text(path), kind);
        let memory = text("/proc/meminfo");
        let bytes = |key: &str| {
            let line = memory.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
        };
        let degrees = |(_, file): &(String, String)| {
            let thousandths: f64 = tree.text(file)?.parse().ok()?;
            Some(thousandths / 1e3)
        };
        let counts = watched.throttles.iter().filter_map(|file| tree.number(file));
        Self {
            at,
            disks: watched
                .devices
                .iter()
                .map(|device| stats.get(&device.number).copied())
                .collect(),
            processors: text("/proc/stat").lines().filter_map(processor).collect(),
            stalls: [
                stall("/proc/pressure/cpu", "some"),
                stall("/proc/pressure/io", "some"),
                stall("/proc/pressure/io", "full"),
                stall("/proc/pressure/memory", "some"),
                stall("/proc/pressure/memory", "full"),
            ],
            memory: Memory {
                available: bytes("MemAvailable"),
                dirty: bytes("Dirty"),
                writeback: bytes("Writeback"),
            },
            temperatures: watched.sensors.iter().map(degrees).collect(),
            throttles: (!watched.throttles.is_empty()).then(|| counts.sum()),
        }
    }

    /// When it was taken.
    pub(super) fn at(&self) -> Nanos {
        self.at
    }

    /// Numbers of the processors.
    pub(super) fn processors(&self) -> Vec<u32> {
        self.processors.iter().map(|(number, ..)| *number).collect()
    }

    /// What happened since an earlier look; the end is counted from `start`.
    #[must_use]
    pub fn since(&self, earlier: &Self, start: Nanos) -> Second {
        let seconds = Nanos(self.at.0.saturating_sub(earlier.at.0)).as_secs_f64().max(1e-9);
        let [cpu_some, io_some, io_full, memory_some, memory_full] = std::array::from_fn(|kind| {
            let (now, then) = (self.stalls[kind]?, earlier.stalls[kind]?);
            Some(per_second(now, then, seconds) / 1e4)
        });
        Second {
            end: Nanos(self.at.0.saturating_sub(start.0)),
            devices: self
                .disks
                .iter()
                .zip(&earlier.disks)
                .map(|(now, then)| Some(rates(&(*now)?, &(*then)?, seconds)))
                .collect(),
            processors: self
                .processors
                .iter()
                .map(|(number, busy, all)| {
                    let then = earlier.processors.iter().find(|(other, ..)| other == number);
                    let (_, busy_then, all_then) = then.copied().unwrap_or((*number, *busy, *all));
                    let ticks = all.saturating_sub(all_then);
                    let share = busy.saturating_sub(busy_then) as f64 / (ticks as f64).max(1.0);
                    (share * 100.0).min(100.0)
                })
                .collect(),
            pressure: Pressure { cpu_some, io_some, io_full, memory_some, memory_full },
            memory: self.memory,
            temperatures: self.temperatures.clone(),
            throttle_events: self
                .throttles
                .zip(earlier.throttles)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

fn per_second(now: u64, then: u64, seconds: f64) -> f64 {
    now.saturating_sub(then) as f64 / seconds
}

fn rates(now: &Disk, then: &Disk, seconds: f64) -> DeviceRates {
    let rate = |of: fn(&Disk) -> u64| per_second(of(now), of(then), seconds);
    DeviceRates {
        reads: rate(|disk| disk.reads),
        writes: rate(|disk| disk.writes),
        read_bytes: rate(|disk| disk.read_sectors) * SECTOR,
        written_bytes: rate(|disk| disk.written_sectors) * SECTOR,
        in_flight: rate(|disk| disk.weighted_ms) / 1e3,
        busy_percent: (rate(|disk| disk.busy_ms) / 10.0).min(100.0),
    }
}

/// `major minor name reads merged sectors ms writes merged sectors ms in-flight busy-ms weighted-ms …`
fn disk(line: &str) -> Option<(DeviceNumber, Disk)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |place: usize| words.get(place)?.parse::<u64>().ok();
    let device =
        DeviceNumber { major: words.first()?.parse().ok()?, minor: words.get(1)?.parse().ok()? };
    let disk = Disk {
        reads: number(3)?,
        read_sectors: number(5)?,
        writes: number(7)?,
        written_sectors: number(9)?,
        busy_ms: number(12)?,
        weighted_ms: number(13)?,
    };
    Some((device, disk))
}

/// `cpu0 user nice system idle iowait irq softirq steal …`; not the line of all together.
fn processor(line: &str) -> Option<(u32, u64, u64)> {
    let mut words = line.split_whitespace();
    let number = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).take(8).collect();
    let at = |place: usize| ticks.get(place).copied().unwrap_or(0);
    let all: u64 = ticks.iter().sum();
    Some((number, all.saturating_sub(at(3) + at(4)), all))
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`
fn stall(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(kind))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}
