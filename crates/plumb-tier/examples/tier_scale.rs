//! What heat, what-if curve and plan cost: processor time per host I/O, and time and memory of a plan for a virtual disk of 100 TiB
//! whose heat map is full.
//!
//!     cargo run --release -p plumb-tier --example tier_scale
#![forbid(unsafe_code)]

use std::fs;
use std::time::Instant;

use plumb_tier::heat::{HeatDelta, HeatMap, HeatSettings, HostIo, HostIoKind};
use plumb_tier::optimizer::{
    Bar, MoveHistory, PinTable, Placement, PlanLimits, PlanRequest, Room, TierName, plan,
};
use plumb_tier::what_if::WhatIf;
use rustix::time::{ClockId, clock_gettime};

/// Extents of 100 TiB.
const EXTENTS: u32 = 100 << 20;
/// Of the extents, one in so many is on the Performance tier.
const FAST: u32 = 10;

fn main() {
    record(1 << 20, "1 TiB");
    record(16 << 20, "16 TiB");
    follow(1 << 20, "1 TiB");
    // All of these are followed.
    follow(4096, "4 GiB");
    let mut heat = full_map();
    println!(
        "heat map of 100 TiB: {} pages, {:.1} MiB, {} of {} extents touched",
        heat.pages(),
        heat.bytes() as f64 / (1 << 20) as f64,
        heat.working_set(),
        EXTENTS
    );
    for moved in [1 << 20, u64::MAX] {
        make_plan(&heat, moved);
    }
    // A day later, when the window is compared with what was before, and another day, when two windows are compared.
    for day in 1..=2 {
        let started = Instant::now();
        heat.begin_window();
        println!("a window begins in {:.2} s", started.elapsed().as_secs_f64());
        heat.advance(24 * day);
        count(&mut heat);
        make_plan(&heat, u64::MAX);
    }
    println!("scores vary {:.2} times as much as I/Os one by one would", heat.dispersion());
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Random 4 KiB I/Os counted by a queue and merged by the owner.
fn record(extents: u32, what: &str) {
    const COUNT: u64 = 20_000_000;
    let mut heat = HeatMap::new(HeatSettings::new(extents));
    let mut delta = HeatDelta::new(1 << 20, 8192);
    let (mut state, mut sum) = (1, 0);
    let bytes = u64::from(extents) << 20;
    let started = processor_seconds();
    for _ in 0..COUNT {
        sum ^= next(&mut state) % bytes;
    }
    let overhead = processor_seconds() - started;
    // The map is touched before the clock starts: pages come once.
    for extent in (0..extents).step_by(256) {
        heat.record_many(extent, HostIoKind::Read, 1);
    }
    let started = processor_seconds();
    for nth in 0..COUNT {
        let kind = if nth % 3 == 0 { HostIoKind::Write } else { HostIoKind::Read };
        delta.record(HostIo { kind, offset: (next(&mut state) % bytes) & !4095, len: 4096 });
        if delta.is_due() {
            heat.merge(&mut delta);
        }
    }
    heat.merge(&mut delta);
    let spent = processor_seconds() - started - overhead;
    println!(
        "{what}: {:.1} ns per host I/O, merging included ({})",
        spent * 1e9 / COUNT as f64,
        sum & 1
    );
}

/// The same I/Os for the what-if curve, which is drawn beside the map.
fn follow(extents: u32, what: &str) {
    const COUNT: u64 = 5_000_000;
    let mut what_if = WhatIf::new(1 << 20);
    let (mut state, bytes) = (3, u64::from(extents) << 20);
    let mut random = |what_if: &mut WhatIf| {
        for _ in 0..COUNT {
            let offset = (next(&mut state) % bytes) & !4095;
            what_if.record(HostIo { kind: HostIoKind::Read, offset, len: 4096 });
        }
    };
    // Until the sample has found its rate.
    random(&mut what_if);
    let started = processor_seconds();
    random(&mut what_if);
    let spent = processor_seconds() - started;
    println!("{what}: {:.1} ns per host I/O for the what-if curve", spent * 1e9 / COUNT as f64);
}

/// As many extents touched as the limit allows, scattered over all of the disk.
fn full_map() -> HeatMap {
    let mut heat = HeatMap::new(HeatSettings::new(EXTENTS));
    count(&mut heat);
    heat
}

fn count(heat: &mut HeatMap) {
    let mut state = 2;
    let slabs = EXTENTS / 256;
    // 62,000 slabs, below the limit: none is dropped.
    for nth in 0..62_000_u32 {
        let slab = u64::from(nth) * u64::from(slabs) / 62_000;
        let first = u32::try_from(slab * 256).expect("within the disk");
        for extent in first..first + 256 {
            heat.record_many(extent, HostIoKind::Read, 1 + next(&mut state) % 4000);
        }
    }
}

struct Model;

impl Placement for Model {
    fn extents(&self) -> u32 {
        EXTENTS
    }

    fn tier(&self, extent: u32) -> Option<TierName> {
        let fast = extent.wrapping_mul(0x9e37_79b1) >> 8 < (1 << 24) / FAST;
        Some(if fast { TierName::Performance } else { TierName::Capacity })
    }
}

fn make_plan(heat: &HeatMap, moved: u64) {
    let used = (0..EXTENTS).filter(|extent| Model.tier(*extent) == Some(TierName::Performance));
    let used = u64::try_from(used.count()).expect("few");
    let before = memory("VmRSS:");
    let started = Instant::now();
    let planned = plan(&PlanRequest {
        heat,
        placement: &Model,
        pins: &PinTable::new(1 << 20),
        history: &MoveHistory::new(),
        room: Room { performance_slots: used, capacity_free: 1 << 20, reserve: 0 },
        bar: Bar::reference(heat),
        limits: PlanLimits { moved, promoted: u64::MAX },
    });
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "plan with a budget of {moved} moves: {} moves in {seconds:.2} s, at most {:.0} MiB more memory",
        planned.moves.len(),
        (memory("VmHWM:") - before) / 1024.0
    );
}

/// KiB of this process, by the kernel's name for it.
fn memory(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN)
}
