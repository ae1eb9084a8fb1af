//! The what-if curve beside caches of each size that are simulated exactly (BEY-1, section 25).

use std::collections::HashMap;

use plumb_units::Nanos;
use plumb_units::convert::to_u64;

use super::bounds::LruCache;
use super::{Layout, Policy, Replay};
use crate::heat::{HostIo, HostIoKind};
use crate::random::Random;
use crate::trace::{TraceIo, WorkloadSpec, Zipf};
use crate::what_if::WhatIf;

/// Workloads of more extents than are followed.
const WORKLOADS: [&str; 10] = [
    "uniform:extents=30000,rate=5,hours=12",
    "zipf:extents=40000,rate=5,hours=12,theta=0.7",
    "zipf:extents=40000,rate=5,hours=12,theta=0.99",
    "zipf:extents=30000,rate=5,hours=12,theta=1.2,change=1",
    "hotcold:extents=30000,rate=5,hours=12,space=20,io=80",
    "moving:extents=30000,rate=5,hours=12,drift=500",
    "diurnal:extents=30000,rate=10,hours=24",
    "vms:extents=32000,rate=5,hours=12,disks=8",
    "oltp:extents=30000,rate=5,hours=12",
    "hotcold:extents=100000,rate=10,hours=24",
];

/// Sizes of caches, in thousandths of the data.
const SIZES: [u64; 11] = [2, 5, 10, 20, 50, 100, 200, 350, 500, 700, 900];

#[test]
fn what_if_curves_are_near_exact_simulations() {
    curves_are_near(20);
}

/// The same of blocks of 4 KiB, which are many more: a smaller part of them is followed (BEY-1, section 25).
#[test]
fn what_if_curves_of_blocks_are_near_exact_simulations() {
    curves_are_near(12);
}

/// How a curve of units of 2^`shift` bytes is off after these references, in the mean and at most.
fn off(what: &str, keys: &[u32], shift: u32) -> (f64, f64) {
    let mut what_if = WhatIf::new(1 << 20);
    for key in keys {
        let offset = u64::from(*key) << shift;
        what_if.record(HostIo { kind: HostIoKind::Read, offset, len: 4096 });
    }
    off_by(what, &what_if, keys, shift)
}

fn off_by(what: &str, what_if: &WhatIf, keys: &[u32], shift: u32) -> (f64, f64) {
    let known = to_u64(keys.iter().collect::<std::collections::HashSet<_>>().len());
    assert!(known > 10_000, "{what}: a sample is taken of {known}");
    let (mut worst, mut total) = (0.0_f64, 0.0);
    for per_mille in SIZES {
        let size = known * per_mille / 1000;
        let mut cache = LruCache::new(size);
        keys.iter().for_each(|key| cache.refer(*key));
        let exact = cache.served as f64 / keys.len() as f64;
        let found = match shift {
            20 => what_if.by_extents(size << 20),
            _ => what_if.by_blocks(size << 12),
        };
        let found = found.expect("references");
        println!(
            "  {per_mille} thousandths: {:.4} (± {:.4}), {exact:.4} exactly",
            found.share, found.error
        );
        let is_told = (found.share - exact).abs() <= 3.0 * found.error + 0.005;
        assert!(is_told, "{what}: {found:?}, {exact} exactly");
        worst = worst.max((found.share - exact).abs());
        total += (found.share - exact).abs();
    }
    let mean = total / SIZES.len() as f64;
    println!("{what}: mean error {mean:.4}, largest {worst:.4}");
    (mean, worst)
}

/// Compares curves of units of 2^`shift` bytes with caches of such units.
fn curves_are_near(shift: u32) {
    let mut means = Vec::new();
    for text in WORKLOADS {
        let mut numbers = HashMap::new();
        let mut number = |of: &TraceIo| {
            let next = u32::try_from(numbers.len()).expect("few");
            *numbers.entry((of.volume, of.io.offset >> shift)).or_insert(next)
        };
        let spec = WorkloadSpec::parse(text).expect("a workload");
        let keys: Vec<u32> = spec.generate().map(|io| number(&io)).collect();
        let (mean, worst) = off(text, &keys, shift);
        assert!(worst <= 0.05, "{text}: {worst}");
        means.push(mean);
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    assert!(mean <= 0.01, "{mean}");
}

/// Streams refer to one extent many times in a row, and a few very hot extents are much of any minute: a sample has all of these
/// references or none, and what it says of a minute is chance.
#[test]
fn what_if_curves_of_streams_and_of_very_hot_data_are_near_exact_simulations() {
    let mut loads: Vec<String> = (1..=8)
        .map(|seed| format!("vms:extents=60000,rate=10,hours=12,disks=3,seed={seed}"))
        .collect();
    loads.extend(
        (1..=4).map(|seed| {
            format!("hotcold:extents=60000,rate=10,hours=6,space=0.01,io=90,seed={seed}")
        }),
    );
    let mut means = Vec::new();
    for text in &loads {
        let mut numbers = HashMap::new();
        let mut number = |of: &TraceIo| {
            let next = u32::try_from(numbers.len()).expect("few");
            *numbers.entry((of.volume, of.io.offset >> 20)).or_insert(next)
        };
        let spec = WorkloadSpec::parse(text).expect("a workload");
        let keys: Vec<u32> = spec.generate().map(|io| number(&io)).collect();
        let (mean, worst) = off(text, &keys, 20);
        assert!(worst <= 0.05, "{text}: {worst}");
        means.push(mean);
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    assert!(mean <= 0.01, "{mean}");
}

/// Two loads take turns, one of few keys that are hot, one of many: what bursts of all keys see of them is chance.
#[test]
fn what_if_curves_follow_loads_that_take_turns() {
    let mut means = Vec::new();
    for (turn, shift) in [(2_000, 20), (8_000, 20), (20_000, 20), (60_000, 20), (8_000, 12)] {
        let mut random = Random::new(turn);
        let keys: Vec<u32> = (0..480_000_u64)
            .map(|nth| {
                let hot = nth / turn % 2 == 0;
                let key = if hot { random.below(800) } else { 1_000 + random.below(30_000) };
                u32::try_from(key).expect("small")
            })
            .collect();
        let (mean, worst) = off(&format!("turns of {turn}"), &keys, shift);
        assert!(worst <= 0.05, "turns of {turn}: {worst}");
        means.push(mean);
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    assert!(mean <= 0.01, "{mean}");
}

/// Tables that are read in order, block by block of requests as long as they are; and the end of a run that is another load.
#[test]
fn what_if_curves_follow_long_requests_and_late_changes() {
    let spec = WorkloadSpec::parse("olap:extents=1000,rate=2,hours=1").expect("a workload");
    let (mut what_if, mut keys) = (WhatIf::new(1 << 20), Vec::new());
    for TraceIo { io, .. } in spec.generate() {
        what_if.record(io);
        let blocks = io.offset >> 12..(io.offset + io.len).div_ceil(4096);
        keys.extend(blocks.map(|block| u32::try_from(block).expect("small")));
    }
    let (mean, worst) = off_by("olap, blocks", &what_if, &keys, 12);
    assert!(worst <= 0.05 && mean <= 0.02, "{mean}, {worst}");
    let mut random = Random::new(5);
    let mut draw = |nth: u32| match nth {
        0..270_000 => nth % 45_000,
        _ => u32::try_from(random.below(900)).expect("small"),
    };
    let keys: Vec<u32> = (0..300_000).map(&mut draw).collect();
    let (mean, worst) = off("a late change", &keys, 12);
    assert!(worst <= 0.05 && mean <= 0.02, "{mean}, {worst}");
}

/// Turns of a hot spot and of everything, in references, and the extents of a hot spot.
const HOT_SPOTS: [((u64, u64), u64); 6] = [
    ((3_000, 9_000), 50),
    ((5_000, 10_000), 30),
    ((10_000, 20_000), 40),
    ((1_000, 2_000), 30),
    ((300, 900), 20),
    ((20_000, 60_000), 100),
];

/// References of a load with a hot spot that is elsewhere after each turn.
fn jumping(zipf: &Zipf, (hot, rest): (u64, u64), keys: u64, seed: u64) -> Vec<u32> {
    let (mut random, mut spot) = (Random::new(seed), 0);
    let mut draw = |at: u64| {
        let nth = at % (hot + rest);
        if nth == 0 {
            spot = 100_000 + random.below(500) * 256;
        }
        match nth < hot {
            true => u32::try_from(spot + random.below(keys)).expect("small"),
            false => zipf.draw(&mut random),
        }
    };
    (0..600_000).map(&mut draw).collect()
}

/// A small hot spot that jumps: each few thousand I/Os other extents, and between these turns, or among them, extents all over the disk.
/// Bursts of all keys see some of the turns and not others, and may all be alike by chance. BEY-1, section 25.
#[test]
fn what_if_curves_follow_hot_spots_that_jump() {
    let zipf = Zipf::new(100_000, 0.7);
    let mut means = Vec::new();
    for (nth, (turns, keys)) in HOT_SPOTS.into_iter().flat_map(|load| [(1, load), (2, load)]) {
        let load = jumping(&zipf, turns, keys, nth);
        let what = format!("{keys} hot extents, turns of {turns:?}, seed {nth}");
        let (mean, worst) = off(&what, &load, 20);
        assert!(worst <= 0.05, "{what}: {worst}");
        assert!(mean <= 0.015, "{what}: {mean}");
        means.push(mean);
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    assert!(mean <= 0.01, "{mean}");
}

/// BEY-3: the simulator follows every extent of such a load, and its curve is what its exact caches serve.
#[test]
fn what_if_curves_of_a_simulation_are_its_caches() {
    let load = jumping(&Zipf::new(100_000, 0.7), (3_000, 9_000), 50, 1);
    let sizes =
        [200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 70_000].map(|size| size << 20);
    let layout = Layout { write_cache_bytes: 0, hdd_bytes: 1 << 42, ..Layout::default() };
    let mut replay = Replay::new(layout, &sizes, &[Policy::Lru]).expect("a space");
    for (nth, key) in (0..).zip(&load) {
        let io = HostIo { kind: HostIoKind::Read, offset: u64::from(*key) << 20, len: 4096 };
        let read = TraceIo { at: Nanos(nth * 50_000_000), volume: 0, io };
        replay.feed(&read).expect("room");
    }
    let found = replay.end();
    assert!(found.extents > 60_000, "{}", found.extents);
    for (exact, (extents, blocks)) in found.outcomes.iter().zip(&found.what_if) {
        let off = (extents.share - exact.share).abs();
        assert!(off <= extents.error + 0.0005 && extents.error <= 0.005, "{extents:?}: {exact:?}");
        // Each extent has one block that is read.
        assert!(blocks.bytes == extents.bytes && blocks.share >= extents.share, "{blocks:?}");
    }
}
