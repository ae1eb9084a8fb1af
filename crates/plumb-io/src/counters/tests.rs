//! Counters of a made-up machine.

use std::time::Duration;

use super::*;
use crate::block_stack;
use crate::fake_tree::FakeTree;

/// A machine whose disk has a partition, with counters at a state.
fn machine(reads: u64, busy_ms: u64, ticks: u64, stalled_us: u64) -> FakeTree {
    let fake = FakeTree::new();
    fake.disk("8:0", "sda")
        .partition("8:1", "sda", "sda1")
        .file("/sys/class/hwmon/hwmon0/name", "nvme\n")
        .file("/sys/class/hwmon/hwmon0/temp1_input", "41500\n")
        .file("/sys/class/hwmon/hwmon0/temp1_label", "Composite\n")
        .file("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n");
    set(&fake, reads, busy_ms, ticks, stalled_us);
    fake
}

fn set(fake: &FakeTree, reads: u64, busy_ms: u64, ticks: u64, stalled_us: u64) {
    let sectors = reads * 8;
    let line = format!("{reads} 0 {sectors} 0 0 0 0 0 0 {busy_ms} {}", busy_ms * 4);
    fake.file("/proc/diskstats", format!("8 0 sda {line}\n8 1 sda1 {line}\n"))
        .file("/proc/stat", format!("cpu 1 1 1 1\ncpu0 {ticks} 0 0 {ticks} 0 0 0 0 0 0\nintr 5\n"))
        .file(
            "/proc/pressure/io",
            format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={stalled_us}\n"),
        )
        .file("/proc/meminfo", "MemTotal: 9 kB\nDirty: 64 kB\nWriteback: 4 kB\n");
}

fn watched(tree: &SystemTree) -> Watched {
    let number = "8:1".parse().expect("a number");
    Watched::under(tree, &[block_stack::of_device(tree, number)])
}

#[test]
fn two_looks_make_rates() {
    let fake = machine(1000, 500, 10, 0);
    let tree = fake.tree();
    let watched = watched(&tree);
    assert_eq!(watched.device_names().collect::<Vec<_>>(), ["sda1", "sda"]);
    // What others do to the disk is none of ours.
    assert_eq!(watched.bottom, [true, false]);
    let first = Look::take(&tree, &watched, Nanos(5_000_000_000));
    set(&fake, 3000, 1500, 40, 200_000);
    let second = Look::take(&tree, &watched, Nanos(7_000_000_000));
    let seen = second.since(&first, Nanos(5_000_000_000));
    assert_eq!(seen.end, Nanos(2_000_000_000));
    let disk = seen.devices[1].expect("the disk");
    assert_eq!((disk.reads, disk.read_bytes, disk.busy_percent), (1000.0, 4_096_000.0, 50.0));
    assert_eq!(disk.in_flight, 2.0);
    assert_eq!(seen.processors, [50.0]);
    assert_eq!((seen.pressure.io_some, seen.pressure.io_full), (Some(10.0), None));
    assert_eq!((seen.memory.dirty, seen.memory.available), (Some(65_536), None));
    assert_eq!((seen.temperatures, seen.throttle_events), (vec![Some(41.5)], Some(0)));
}

#[test]
fn what_is_not_there_is_unknown() {
    let fake = FakeTree::new();
    let tree = fake.tree();
    let watched = Watched::all_disks(&tree);
    let look = Look::take(&tree, &watched, Nanos(1));
    assert_eq!(look.since(&look, Nanos(1)), Second { ..Second::default() });
}

#[test]
fn a_recording_has_an_interval_per_look_and_states_its_cost() {
    let fake = machine(1, 1, 1, 1);
    let tree = fake.tree();
    let recorder = Recorder::start(&tree, watched(&tree), Duration::from_millis(20));
    let recorder = recorder.expect("a thread");
    std::thread::sleep(Duration::from_millis(130));
    let seen = recorder.stop();
    assert!(!seen.seconds.is_empty() && seen.cost > Nanos::ZERO, "{seen:?}");
    assert_eq!((seen.devices.len(), seen.sensors), (2, vec!["nvme Composite".to_owned()]));
    let ends: Vec<Nanos> = seen.seconds.iter().map(|second| second.end).collect();
    assert!(ends.is_sorted() && ends[0] >= Nanos(15_000_000), "{ends:?}");
}

#[test]
fn a_drive_that_slows_itself_down_in_a_recording_is_counted() {
    let fake = FakeTree::new();
    let log = |lightly: u8, heavily: u8| {
        let mut log = [0_u8; 512];
        (log[216], log[220]) = (lightly, heavily);
        String::from_utf8(log.to_vec()).expect("ASCII")
    };
    fake.disk("259:0", "nvme0n1").file("/dev/nvme0", log(5, 1)).file("/proc/diskstats", "");
    let tree = fake.tree();
    let number = "259:0".parse().expect("a number");
    let watched = Watched::under(&tree, &[block_stack::of_device(&tree, number)]);
    let recorder = Recorder::start(&tree, watched, Duration::from_millis(20)).expect("a thread");
    std::thread::sleep(Duration::from_millis(70));
    fake.file("/dev/nvme0", log(7, 2));
    let seen = recorder.stop();
    let events: Vec<Option<u64>> =
        seen.seconds.iter().map(|second| second.throttle_events).collect();
    let (last, others) = events.split_last().expect("a few intervals");
    assert_eq!(*last, Some(3), "{events:?}");
    assert!(!others.is_empty() && others.iter().all(Option::is_none), "{events:?}");
}
