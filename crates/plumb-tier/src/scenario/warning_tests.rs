//! What the early warning says that a Capacity tier will give, and what it then gives.

use plumb_io::engine::SparseQueue;
use plumb_units::Nanos;

use super::{Load, Rig, Scenario};
use crate::optimizer::{Asked, ExpectedIops, IopsBasis};

/// A full Performance tier, and a file on rotating disks that nobody has loaded yet.
fn full() -> (Scenario, Rig<SparseQueue>) {
    let scenario = Scenario { whole: true, cache: false, ..Scenario::reference(1024) };
    let mut rig = Rig::sparse(&scenario.sizes()).expect("room");
    for file in scenario.files() {
        scenario.make(&mut rig, file, true, &mut |_| {}).expect("it works");
    }
    (scenario, rig)
}

fn load(scenario: &Scenario, file: usize, outstanding: u32, seconds: u64) -> Load {
    let file = scenario.files()[file];
    let warm_up = Nanos::from_secs(0);
    let duration = Nanos::from_secs(seconds);
    Load { outstanding, warm_up, duration, ..scenario.load(file) }
}

/// What would be said now; the disks of the rig's only virtual disk.
fn expected(rig: &Rig<SparseQueue>) -> ExpectedIops {
    let vdisk = &rig.engine.config().vdisks[0];
    let asked = Asked { disks: vdisk.capacity_disks(), copies: vdisk.copies, least: 0.0 };
    let measured = rig.engine.measured(0);
    ExpectedIops::of(&measured.capacity.lines, &measured.hosts, asked)
}

/// Random writes at that depth on rotating disks, and how far off it was what had been said before them.
fn then(what: &str, (scenario, rig): (&Scenario, &mut Rig<SparseQueue>), outstanding: u32) {
    let said = expected(rig);
    let found = rig.run(&Load { seed: 7, ..load(scenario, 3, outstanding, 10) }).expect("it works");
    rig.settle();
    let off = said.iops as f64 / found.iops();
    println!("{what}, {outstanding} outstanding: {said:?}, then {:.0}: {off:.3}", found.iops());
    assert!((0.8..1.25).contains(&off), "{what}, {outstanding}: {off}, {said:?}");
}

/// As hosts asked these disks, whatever that was.
#[test]
fn what_disks_will_give_is_known_by_what_they_gave_at_that_depth() {
    // Until what was under way before, while files were made, counts for nothing.
    for (outstanding, seconds) in [(1, 60), (32, 30), (320, 12)] {
        let (scenario, mut rig) = full();
        let before = Load { writes_percent: 50, ..load(&scenario, 3, outstanding, seconds) };
        rig.run(&before).expect("it works");
        rig.settle();
        assert_eq!(expected(&rig).basis, IopsBasis::Measured);
        then("asked so before", (&scenario, &mut rig), outstanding);
    }
}

/// Hosts have few or many under way on the Performance tier, and disks of the Capacity tier were asked otherwise before.
#[test]
fn what_disks_will_give_is_known_by_how_much_hosts_have_under_way() {
    for (before, outstanding, seconds) in [(32, 1, 60), (1, 32, 12), (1, 320, 8)] {
        let (scenario, mut rig) = full();
        let asked = Load { writes_percent: 50, ..load(&scenario, 3, before, 30) };
        rig.run(&asked).expect("it works");
        rig.run(&load(&scenario, 0, outstanding, seconds)).expect("it works");
        rig.settle();
        then(&format!("asked {before} at a time"), (&scenario, &mut rig), outstanding);
    }
}
