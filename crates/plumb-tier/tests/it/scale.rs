//! A plan for 100 TiB and its heat map, within the time and memory that they may take (T13, section 25); and what it takes to count an
//! I/O (HEAT-5).

use std::fs;
use std::process::Command;

use plumb_tier::heat::{HeatDelta, HeatMap, HeatSettings, HostIo, HostIoKind};
use plumb_tier::optimizer::{
    Bar, MoveHistory, PinTable, Placement, PlanLimits, PlanRequest, Room, TierName, plan,
};
use plumb_tier::what_if::WhatIf;
use rustix::time::{ClockId, clock_gettime};

const EXTENTS: u32 = 100 << 20;
/// Set in the process that measures: what others of this test binary take is none of the plan's.
const ALONE: &str = "PLUMB_TEST_SCALE";

#[test]
fn a_plan_for_100_tib_is_made_within_its_time_and_memory() {
    if std::env::var_os(ALONE).is_some() {
        return measure();
    }
    let mut own = Command::new(std::env::current_exe().expect("this program"));
    let name = "scale::a_plan_for_100_tib_is_made_within_its_time_and_memory";
    own.args(["--exact", name, "--nocapture"]).env(ALONE, "1");
    let said = own.output().expect("it starts");
    let text = String::from_utf8_lossy(&said.stdout);
    println!("{text}");
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    assert!(text.contains("MiB for the plan"), "it was measured: {text}");
}

/// A tenth of all extents is on the Performance tier.
struct Model;

impl Placement for Model {
    fn extents(&self) -> u32 {
        EXTENTS
    }

    fn tier(&self, extent: u32) -> Option<TierName> {
        let fast = extent.wrapping_mul(0x9e37_79b1) >> 8 < (1 << 24) / 10;
        Some(if fast { TierName::Performance } else { TierName::Capacity })
    }
}

/// MiB of this process, by the kernel's name for it.
fn memory(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kib.expect("the kernel tells it") / 1024.0
}

/// Seconds of this thread: others on the machine make them no more.
fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn measure() {
    let before = memory("VmRSS:");
    let mut heat = HeatMap::new(HeatSettings::new(EXTENTS));
    // As many slabs as the map has room for, scattered, each of whose extents has another count.
    let slabs = EXTENTS / 256;
    let mut state = 7_u64;
    for nth in 0..62_000_u32 {
        let slab = u64::from(nth) * u64::from(slabs) / 62_000;
        let first = u32::try_from(slab * 256).expect("within the disk");
        for extent in first..first + 256 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            heat.record_many(extent, HostIoKind::Read, 1 + (state >> 33) % 4000);
        }
    }
    let map = memory("VmRSS:") - before;
    println!("{map:.1} MiB for the heat map of {} pages", heat.pages());
    assert!(heat.pages() == 62_000 && heat.dropped().pages == 0, "all have room");
    assert!(map <= 129.0, "{map} MiB, of which up to one is the test's");
    let (pins, history) = (PinTable::new(1 << 20), MoveHistory::new());
    let fast = (0..EXTENTS).filter(|extent| Model.tier(*extent) == Some(TierName::Performance));
    let performance_slots = u64::try_from(fast.count()).expect("few");
    let (used, began) = (memory("VmRSS:"), thread_seconds());
    let planned = plan(&PlanRequest {
        heat: &heat,
        placement: &Model,
        pins: &pins,
        history: &history,
        room: Room { performance_slots, capacity_free: 1 << 20, reserve: 0 },
        bar: Bar::reference(&heat),
        // A TiB in a night; the example `tier_scale` has one without a budget.
        limits: PlanLimits { moved: 1 << 20, promoted: u64::MAX },
    });
    let (seconds, more) = (thread_seconds() - began, memory("VmHWM:") - used);
    println!("{} moves in {seconds:.2} s, {more:.0} MiB for the plan", planned.moves.len());
    assert_eq!((planned.moves.len(), planned.budget_spent), (1 << 20, true));
    // The goal is for optimized builds, which take some two seconds; one that is not takes five times as long beside other tests.
    let most = if cfg!(debug_assertions) { 60.0 } else { 10.0 };
    assert!(seconds <= most, "{seconds} s");
    assert!(more <= 1024.0, "{more} MiB");
}

/// A host I/O is counted within 50 ns of processor time, the sketch of HEAT-8 included (HEAT-5): 4 KiB anywhere in 1 TiB, as the
/// engine does it. The quickest of some rounds: what else the machine does makes others slower.
#[test]
fn a_host_io_is_counted_within_its_time() {
    const IOS: u64 = 200_000;
    let mut heat = HeatMap::new(HeatSettings::new(1 << 20));
    let (mut delta, mut what_if) = (HeatDelta::new(1 << 20, 4096), WhatIf::new(1 << 20));
    let mut fresh = Vec::with_capacity(256);
    let mut state = 7_u64;
    let mut round = || {
        let began = thread_seconds();
        for _ in 0..IOS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (state >> 24) << 12 & ((1 << 40) - 1);
            let io = HostIo { offset, len: 4096, kind: HostIoKind::Read };
            delta.record(io);
            if delta.is_due() {
                heat.merge(&mut delta);
            }
            fresh.push(io);
            if fresh.len() == fresh.capacity() {
                what_if.record_all(&fresh);
                fresh.clear();
            }
        }
        (thread_seconds() - began) * 1e9 / IOS as f64
    };
    let rounds: Vec<f64> = (0..7).map(|_| round()).collect();
    let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    println!("{least:.1} ns of processor time for each, the least of {rounds:.1?}");
    assert_eq!(heat.ios() / IOS, 6, "they are counted, but for those of the last list");
    assert!(what_if.by_extents(1 << 40).is_some(), "and the sketch follows them");
    // The goal is for optimized builds; one that is not takes some twelve times as long.
    let most = if cfg!(debug_assertions) { 1500.0 } else { 50.0 };
    assert!(least <= most, "{least} ns");
}
