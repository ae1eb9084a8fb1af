//! The bar of pools on disks of different models (10.3, DD-2): what is measured is what the models do.

use plumb_io::engine::SparseQueue;
use plumb_io::stack::{DeviceModel, HddModel, SsdModel};
use plumb_units::Nanos;

use super::{Load, Rig, Scenario};
use crate::OptimizeSettings;
use crate::format::MediaType;
use crate::heat::Lies;
use crate::optimizer::{Basis, MoveTimes, Placement, TierName};

/// What a pool's load and plan came to.
#[derive(Debug)]
struct Found {
    break_even: f32,
    /// After the optimization.
    after: f32,
}

/// A used pool at 1:1024 without a write-back cache, whose Capacity tier is of these disks. What was measured of the disks is
/// compared with what the host saw: rates, which know nothing of busy times.
fn pool_of(hdd: impl Fn(u64) -> DeviceModel) -> (Rig<SparseQueue>, [f64; 2]) {
    let scenario = Scenario { whole: false, cache: false, ..Scenario::reference(1024) };
    let mut rig =
        Rig::of_models(&scenario.sizes(), SparseQueue::of_sizes, |disk| match disk.media {
            MediaType::Hdd => hdd(disk.bytes),
            _ => DeviceModel::Ssd(SsdModel::sas_ssd_200()),
        })
        .expect("room");
    let [first, .., file] = scenario.files();
    scenario.make(&mut rig, first, true, &mut |_| {}).expect("it works");
    let load =
        |file| Load { duration: Nanos::from_secs(3), writes_percent: 50, ..scenario.load(file) };
    let fast = rig.run(&load(first)).expect("it works");
    scenario.used(&mut rig, &mut |_| {}).expect("it works");
    let slow = rig.run(&load(file)).expect("it works");
    rig.settle();
    (rig, [fast.iops(), slow.iops()])
}

/// Four disks to each tier, no copies: a disk is busy with an I/O for so long.
fn each(iops: f64) -> f64 {
    4e9 / iops
}

fn rotating(revolution_ms: f64, rates: (f64, f64)) -> Found {
    let (mut rig, iops) =
        pool_of(|bytes| DeviceModel::Hdd(HddModel::new(bytes, 6, revolution_ms, rates)));
    let worth = rig.engine.worth(0);
    println!("{revolution_ms} ms: {iops:?} I/Os per second, {worth:?}");
    assert_eq!(worth.basis, Basis::MeasuredIos, "nothing has moved yet");
    let times = worth.times;
    for (what, measured, iops) in
        [("an SSD", times.io_performance, iops[0]), ("a rotating disk", times.io_capacity, iops[1])]
    {
        let off = measured.0 as f64 / each(iops);
        assert!((0.9..1.1).contains(&off), "{what}: {off} times what the rate says");
    }
    let moves = MoveTimes::reference();
    let move_ns = (moves.move_capacity + moves.move_performance).0 as f64;
    let wanted = move_ns / (each(iops[1]) - each(iops[0]));
    let break_even = worth.break_even();
    assert!((f64::from(break_even) / wanted - 1.0).abs() < 0.1, "{break_even}, not {wanted}");
    // The plan goes by it, and says so.
    let planned = rig.engine.plan_optimization(0, &OptimizeSettings::default());
    let up = planned.count(TierName::Performance);
    let heat = rig.engine.heat(0);
    // Of those below; nothing above is as hot, and there is no free room.
    let hot = heat.touched().filter(|(_, heat)| heat.score >= break_even).count();
    assert!(up > 0 && up <= plumb_units::convert::to_u64(hot), "{up} of {hot}");
    let mut up_there = planned.moves.iter().filter(|made| made.to == TierName::Performance);
    assert!(up_there.all(|made| made.score >= break_even), "{planned:?}");
    let report = rig.engine.tier_report(0, 0.0);
    let told = report.to_json();
    assert_eq!(told["moves"]["break_even_ios"], break_even);
    assert!(report.to_text().contains(&format!("{break_even:.1} I/Os (measured devices, moves")));
    // Then moves are measured, too.
    assert!(rig.engine.optimize(0, &OptimizeSettings::default(), 0.0));
    while rig.engine.optimizing(0) {
        rig.step();
    }
    let worth = rig.engine.worth(0);
    println!("after {up} extents: {worth:?}, {:?}", rig.engine.measured(0));
    assert_eq!(worth.basis, Basis::Measured);
    // Eight pieces of 128 KiB, of which two at a time lie beside each other: at least the transfer, at most that and eight times the
    // longest way.
    let transfer = |rate: f64| 1e9 * f64::from(1 << 20) / rate;
    let most = transfer(rates.1) + 8.0 * (7.3 + revolution_ms) * 1e6;
    let moved = worth.times.move_capacity.0 as f64;
    assert!((transfer(rates.0)..most).contains(&moved), "{moved}, at most {most}");
    // 500 MB/s, and eight units that each take their time.
    let moved = worth.times.move_performance.0 as f64;
    assert!((1e6..8e6).contains(&moved), "{moved}");
    Found { break_even, after: worth.break_even() }
}

#[test]
fn slow_disks_and_fast_ones_have_different_bars() {
    let slow = rotating(11.1, (90e6, 60e6));
    let fast = rotating(3.0, (300e6, 240e6));
    println!("{slow:?} {fast:?}");
    assert!(slow.break_even * 1.3 < fast.break_even, "{slow:?} {fast:?}");
    assert!(slow.after > 0.0 && fast.after > 0.0);
}

/// Where the Capacity tier is as quick as the Performance tier no move pays, by what is measured: whether that is so or the load
/// was odd is not known, so the reference goes on to be the bar, and the report asks to look.
#[test]
fn tiers_that_are_alike_are_told_and_have_the_bar_of_the_reference() {
    let (mut rig, _) = pool_of(|_| DeviceModel::Ssd(SsdModel::sas_ssd_200()));
    let worth = rig.engine.worth(0);
    assert!(matches!(worth.basis, Basis::Alike { .. }), "{worth:?}");
    assert_eq!(worth.times, MoveTimes::reference());
    let text = rig.engine.tier_report(0, 0.0).to_text();
    assert!(text.contains("(reference devices)") && text.contains("see whether moves"), "{text}");
}

/// 10.6: a trickle takes at most 5 % of the devices' time, before its moves were ever measured and after.
#[test]
fn a_trickle_takes_a_twentieth_of_the_disks_time() {
    let (mut rig, _) =
        pool_of(|bytes| DeviceModel::Hdd(HddModel::new(bytes, 6, 6.0, (150e6, 90e6))));
    for (round, wanted) in [("unmeasured", 0.01..0.055), ("measured", 0.03..0.055)] {
        let settings = rig.engine.continuous_settings(0);
        // What clears twice the bar there is little of: how fast is the question here, not how much.
        let settings = OptimizeSettings { raised: 1.0, ..settings };
        let (began, before) = (rig.now(), rig.engine.measured(0));
        assert!(rig.engine.optimize(0, &settings, 0.0));
        while rig.engine.optimizing(0) {
            rig.step();
        }
        let done = rig.engine.take_optimization(0).expect("it has ended").report.facts.moves;
        assert!(done.up >= 30, "{round}: {done:?}");
        let time = 4e9 * rig.now().since(began).as_secs_f64();
        let after = rig.engine.measured(0);
        let spent = [
            after.performance.move_ns - before.performance.move_ns,
            after.capacity.move_ns - before.capacity.move_ns,
        ]
        .map(|spent| spent as f64 / time);
        println!("{round}: {:?} B/s, {done:?}, {spent:.4?} of the time", settings.rate);
        let most = spent[0].max(spent[1]);
        assert!(wanted.contains(&most), "{round}: {most} of the disks' time, not {wanted:?}");
        // What went up is cold from now on, and others are hot.
        rig.engine.set_hour(1000);
        let file = Scenario::reference(1024).files()[2];
        let load = Load { duration: Nanos::from_secs(8), ..Scenario::reference(1024).load(file) };
        let load = Load { bytes: load.bytes.min(100 << 20), writes_percent: 50, ..load };
        rig.run(&load).expect("it works");
        rig.settle();
    }
}

/// What is measured is the same in every run of the same load, and survives the engine.
#[test]
fn what_is_measured_is_kept() {
    let measure = || {
        let (mut rig, _) =
            pool_of(|bytes| DeviceModel::Hdd(HddModel::new(bytes, 6, 6.0, (150e6, 90e6))));
        let kept = rig.engine.kept(0).tiering.measured;
        assert_eq!(kept, rig.engine.measured(0));
        kept
    };
    assert_eq!(measure(), measure());
}

/// What became of extents is told by the tier on which each lay when it was marked, as a window began (decision 0338).
#[test]
fn a_window_marks_each_extent_as_it_lies() {
    let (mut rig, _) =
        pool_of(|bytes| DeviceModel::Hdd(HddModel::new(bytes, 6, 6.0, (150e6, 90e6))));
    rig.engine.begin_heat_window(0);
    let marks = rig.engine.heat(0).marks();
    let placement = rig.engine.placement(0);
    let mut seen = [0; 2];
    for (extent, marked) in marks {
        let lies = placement.tier(extent).map(|tier| Lies::on(tier == TierName::Performance));
        assert_eq!(marked, lies, "extent {extent}");
        seen[usize::from(marked == Some(Lies::Fast))] += 1;
    }
    assert!(seen.iter().all(|count| *count >= 20), "{seen:?} on either tier");
}
