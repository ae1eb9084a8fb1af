//! A virtual disk of 100 TiB on sparse disks in memory (T13): what making it, a plan, a report and a start of it take, in time
//! and in memory.
//!
//!     cargo run --release -p plumb-tier --example space_scale [GIB]
//!
//! So many GiB of it are mapped, 512 unless said: in pieces of 1 GiB that lie all over it. Every block of a mapped extent takes
//! 12 bytes for its checksums, which is what bounds the number.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::time::Instant;

use plumb_tier::optimizer::TierName;
use plumb_tier::scenario::{Load, Rig, Sizes};
use plumb_tier::{Engine, Geometry, OptimizeSettings, SlotPlan};
use plumb_units::Nanos;

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

fn main() -> Result<(), Box<dyn Error>> {
    let mapped: u64 = std::env::args().nth(1).map_or(Ok(512), |text| text.parse())?;
    let (tier, capacity) = (10 * TIB, 90 * TIB);
    let sizes = Sizes {
        ssd: 3 * TIB,
        hdd: 24 * TIB,
        tier,
        capacity,
        cache: GIB,
        geometry: Geometry::standard(256 << 20, tier + capacity),
    };
    let mut clock = Clock::new();
    let mut rig = Rig::sparse(&sizes)?;
    let bytes = rig.engine.size(0);
    println!("virtual disk of {:.2} TiB", bytes as f64 / TIB as f64);
    clock.tell("made and started");
    for nth in 0..mapped {
        let start = nth * (bytes / GIB / mapped) * GIB;
        rig.fill((start, GIB), false)?;
    }
    // What lies on rotating disks becomes hot.
    let last = (mapped - 1) * (bytes / GIB / mapped) * GIB;
    let load = Load {
        start: last,
        bytes: GIB,
        writes_percent: 0,
        durable: false,
        outstanding: 64,
        warm_up: Nanos::ZERO,
        duration: Nanos::from_secs(30),
        interval: Nanos::from_secs(1),
        seed: 1,
    };
    rig.run(&load)?;
    rig.settle();
    clock.tell(&format!("{mapped} GiB mapped"));
    let planned = rig.engine.plan_optimization(0, &OptimizeSettings::default());
    let up = planned.count(TierName::Performance);
    clock.tell(&format!("plan: {up} extents up of {}", planned.moves.len()));
    let report = rig.engine.tier_report(0, rig.now().as_secs_f64());
    clock.tell(&format!("report: a working set of {} extents", report.working_set));
    let heat = rig.engine.heat(0);
    println!("heat map: {} pages, {:.1} MiB", heat.pages(), heat.bytes() as f64 / (1 << 20) as f64);
    let tiers = rig.engine.mapped_bytes(0);
    let Rig { engine, .. } = rig;
    let queue = engine.shut_down().map_err(|halt| format!("{halt:?}"))?;
    clock.tell("ended");
    let plan =
        SlotPlan { data_slots: 384, data_bytes: 128 << 10, control_bytes: 256 << 10, files: 8 };
    let engine = Engine::start(queue, plan, 320, 4096, 2)?;
    clock.tell("started again");
    if engine.mapped_bytes(0) != tiers {
        return Err("the map is another one".into());
    }
    Ok(())
}

/// Tells what each step took.
struct Clock {
    began: Instant,
    before: f64,
}

impl Clock {
    fn new() -> Self {
        Self { began: Instant::now(), before: memory("VmRSS:") }
    }

    fn tell(&mut self, what: &str) {
        let (seconds, now) = (self.began.elapsed().as_secs_f64(), memory("VmRSS:"));
        println!(
            "{what}: {seconds:.2} s, {:+.0} MiB, at most {:.0} MiB more than that; {now:.0} MiB in all",
            now - self.before,
            memory("VmHWM:") - now,
        );
        // The highest is that of the next step alone from here on; where that may not be set it is that of all.
        let _ = fs::write("/proc/self/clear_refs", "5");
        (self.began, self.before) = (Instant::now(), now);
    }
}

/// MiB of this process, by the kernel's name for it.
fn memory(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib: Option<f64> = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}
