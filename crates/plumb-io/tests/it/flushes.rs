//! A flush of a queue is one of the disk: everything that is promised of power cuts stands on it.

use std::path::Path;
use std::time::Duration;

use plumb_io::engine::{SyncQueue, ThreadsQueue, UringOptions, UringQueue, probe_ring};
use plumb_io::exclusive;
use plumb_io::system_tree::SystemTree;
use plumb_io::{FileIndex, FlushQueue, LaneSpec, QueueSpec, RegionSpec, Slot};
use plumb_units::Nanos;

use crate::drive::BLOCK;
use crate::exclusive::Part;

/// Flushes that a block device has performed so far (`Documentation/block/stat.rst`: field 16).
fn flushes(device: &str) -> u64 {
    let name = device.rsplit('/').next().expect("a name");
    let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).expect("it is there");
    text.split_whitespace().nth(15).expect("since Linux 5.5").parse().expect("a number")
}

fn spec(device: &str) -> QueueSpec {
    let path = Path::new(device);
    let disk = exclusive::open(path, Duration::from_secs(5), &SystemTree::default());
    let lane = LaneSpec { first_slot: 0, slots: 2, bytes: BLOCK };
    let regions = vec![RegionSpec { lanes: vec![lane] }];
    let files = vec![disk.expect("nobody has it").into_target().0];
    QueueSpec { depth: 2, files, regions, ..QueueSpec::default() }
}

/// Each of three flushes is over when the disk has performed it.
fn check<Q: FlushQueue>(name: &str, device: &str, mut queue: Q) {
    for _ in 0..3 {
        let before = flushes(device);
        queue.push_flush(FileIndex(0), Slot(1));
        queue.submit_and_wait(1, Nanos::NEVER).expect("taken");
        queue.look();
        let done = queue.pop().expect("it is over");
        assert_eq!((done.slot, done.result), (Slot(1), 0), "{name}");
        assert_eq!(flushes(device), before + 1, "{name}: the disk was not asked");
    }
}

#[test]
fn a_flush_reaches_the_disk() {
    let name = "a_flush_reaches_the_disk";
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().join("disk.img");
    std::fs::write(&path, vec![0; 1 << 20]).expect("room");
    let Some(part) = Part::attach(&path, 0, 1 << 20) else {
        println!("skipped {name}: no loop devices");
        return;
    };
    let device = part.0.as_str();
    check("sync", device, SyncQueue::open(spec(device)).expect("it opens"));
    check("threads", device, ThreadsQueue::open(spec(device), Vec::new()).expect("it opens"));
    if let Err(why) = probe_ring() {
        println!("skipped {name}: of rings, {why}");
        return;
    }
    let ring = UringQueue::open(spec(device), UringOptions::default()).expect("a ring");
    check("ring", device, ring);
}
