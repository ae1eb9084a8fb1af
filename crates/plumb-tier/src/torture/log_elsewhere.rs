//! A write-back cache's log on disks of which one has no journal: what flushes the journal does not flush that copy, so the log's own
//! rules alone keep what it has (WBC-1, WBC-2). Pools of four SSDs and more are such.

use super::faults::oracle;
use super::history::{Shape, steps};
use super::run::{Run, new_pool};
use super::states::{Tally, check};
use super::unborne::Workload;
use crate::mutation::{Mutation, set};

fn shape(seed: u64) -> Shape {
    let cache = [64, 100, 144][usize::try_from(seed % 3).unwrap_or(0)] << 10;
    Shape { disks: 6, rotating: 2, copies: 2, columns: 1, cache, seed, workload: Workload::Usual }
}

/// Histories that tell it.
const TOLD: [u64; 2] = [16, 27];

/// Whether a history keeps what it promises.
fn is_kept(seed: u64) -> bool {
    let shape = shape(seed);
    check(&shape, &steps(&shape, 140, seed), 48, seed, &mut Tally::default()).is_ok()
}

/// Of 700 such histories eight tell it: what a start makes equal on both copies of a log is flushed before it serves.
#[test]
fn what_is_copied_within_a_log_is_flushed() {
    let run = Run::start(&shape(1), new_pool(&shape(1)), &[], oracle(), 3).expect("it starts");
    let config = run.engine.config();
    let log = &config.vdisks[0].cache.as_ref().expect("it has one").copies;
    let without = log.iter().filter(|copy| !config.disks[usize::from(copy.disk)].metadata);
    assert_eq!(without.count(), 1);
    assert!((0..12).chain(TOLD).all(is_kept));
    set(Some(Mutation::LogRepairUnflushed));
    let noticed = TOLD.map(|seed| !is_kept(seed));
    set(None);
    assert_eq!(noticed, [true, true]);
}
