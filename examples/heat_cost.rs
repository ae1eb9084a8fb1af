//! What the heat map takes of a host I/O: random 4 KiB anywhere in 1 TiB, counted as the storage engine does it, in a queue's list that is
//! merged into the map when it is nearly full, with the sketch of the what-if curve beside it or without (HEAT-5, HEAT-8).
//!
//! `cargo xtask instructions` runs it under callgrind, for two numbers of I/Os; the difference is free of the start-up. Without a number
//! it tells what an I/O takes in processor time, in rounds: what else the machine does makes some slower.
//!
//!     cargo run --release -p plumb-examples --bin heat_cost -- [IOS] map|curve
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;

use plumb_tier::heat::{HeatDelta, HeatMap, HeatSettings, HostIo, HostIoKind};
use plumb_tier::what_if::WhatIf;
use plumb_units::convert::low_u32;
use rustix::time::{ClockId, clock_gettime};

const EXTENT_BYTES: u64 = 1 << 20;
/// 1 TiB.
const EXTENTS: u32 = 1 << 20;
/// Touches of a queue's list, and host I/Os until the sketch follows them, as of the engine.
const TOUCHES: usize = 4096;
const FRESH: usize = 256;
/// Of the measurement in time.
const ROUNDS: u32 = 21;
const ROUND_IOS: u64 = 2_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (ios, what) = match *words.as_slice() {
        [what] => (None, what),
        [ios, what] => (Some(ios.parse()?), what),
        _ => return Err("usage: heat_cost [IOS] map|curve".into()),
    };
    let curve = match what {
        "map" => false,
        "curve" => true,
        _ => return Err(format!("`{what}`: use `map` or `curve`").into()),
    };
    let mut disk = Disk::new(curve);
    match ios {
        Some(ios) => println!("{} I/Os", disk.count(ios)),
        None => {
            let mut each: Vec<f64> = (0..ROUNDS).map(|_| disk.round()).collect();
            each.sort_by(f64::total_cmp);
            let middle = each[each.len() / 2];
            println!(
                "{:.1} ns of processor time each ({middle:.1} in the median of {ROUNDS} rounds)",
                each[0]
            );
        }
    }
    Ok(())
}

/// A virtual disk's heat, and where the next I/O goes.
struct Disk {
    heat: HeatMap,
    delta: HeatDelta,
    what_if: Option<WhatIf>,
    fresh: Vec<HostIo>,
    state: u64,
}

impl Disk {
    fn new(curve: bool) -> Self {
        let mut heat = HeatMap::new(HeatSettings::new(EXTENTS));
        // Pages come once.
        for extent in (0..EXTENTS).step_by(256) {
            heat.record_many(extent, HostIoKind::Read, 1);
        }
        Self {
            heat,
            delta: HeatDelta::new(EXTENT_BYTES, TOUCHES),
            what_if: curve.then(|| WhatIf::new(EXTENT_BYTES)),
            fresh: Vec::with_capacity(FRESH),
            state: 7,
        }
    }

    /// Counts so many I/Os; how many the map knows of.
    fn count(&mut self, ios: u64) -> u64 {
        let before = self.heat.ios();
        for _ in 0..ios {
            // Two multiplications are all that choosing a block takes.
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let block = u64::from(low_u32(self.state >> 32)) % (u64::from(EXTENTS) << 8);
            let kind = if self.state & 1 << 20 == 0 { HostIoKind::Read } else { HostIoKind::Write };
            self.count_one(HostIo { kind, offset: block << 12, len: 4096 });
        }
        self.heat.merge(&mut self.delta);
        self.heat.ios() - before
    }

    #[inline]
    fn count_one(&mut self, io: HostIo) {
        self.delta.record(io);
        if self.delta.is_due() {
            self.heat.merge(&mut self.delta);
        }
        let Some(what_if) = &mut self.what_if else { return };
        self.fresh.push(io);
        if self.fresh.len() == FRESH {
            what_if.record_all(&self.fresh);
            self.fresh.clear();
        }
    }

    /// Nanoseconds of processor time for each I/O of a round.
    fn round(&mut self) -> f64 {
        let began = processor_seconds();
        let counted = self.count(ROUND_IOS);
        (processor_seconds() - began) * 1e9 / counted as f64
    }
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_io_is_counted_and_the_curve_follows_them() {
        let mut disk = Disk::new(true);
        assert_eq!((disk.count(10_000), disk.count(1)), (10_000, 1));
        let curve = disk.what_if.as_ref().and_then(|curve| curve.by_extents(1 << 40));
        assert!(curve.is_some());
        let bare = Disk::new(false).count(5000);
        assert_eq!(bare, 5000);
        // Both ways, all over the disk.
        let (mut reads, mut writes) = (0, 0);
        for (_, heat) in disk.heat.touched() {
            (reads, writes) = (reads + heat.reads, writes + heat.writes);
        }
        assert!(
            reads > 4000 && writes > 4000 && disk.heat.working_set() > 9000,
            "{reads} {writes}"
        );
    }
}
