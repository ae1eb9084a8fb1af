//! What a step of a rebuild takes: nothing is served meanwhile (RES-5).

use std::time::Duration;

use plumb_io::sim::power::Image;

use super::faults::{MIRROR, shape};
use super::history::EXTENT_BYTES;
use super::run::queue;
use super::tests::thread_time;
use crate::assembly::{How, Terms};
use crate::format::{Geometry, MediaType};
use crate::{NewDisk, NewPool, NewVirtualDisk, create, recover};

const MIB: u64 = 1 << 20;
/// Extents of a slab.
const SLAB: u32 = 16;

/// A pool with a mirror of so many extents on disks of that size.
pub(super) fn mirror(disks: u32, (geometry, bytes): (Geometry, u64), extents: u32) -> NewPool {
    let disk = |nth| NewDisk { media: MediaType::Ssd, bytes, name: format!("disk {nth}") };
    NewPool {
        name: "large".into(),
        extent_bytes: EXTENT_BYTES,
        geometry,
        disks: (0..disks).map(disk).collect(),
        vdisks: vec![NewVirtualDisk {
            name: "space".into(),
            copies: 2,
            columns: 1,
            interleave: 16 << 10,
            tier_bytes: [u64::from(extents) * u64::from(EXTENT_BYTES), 0],
            cache_bytes: 0,
        }],
    }
}

/// Processor time of the quickest of some steps, with a disk given up that has a share of so many extents.
fn step(extents: u32) -> Duration {
    let shape = super::history::Shape { disks: 4, ..shape(MIRROR) };
    let slab_bytes = u64::from(SLAB * EXTENT_BYTES);
    let tree_bytes = 32 * MIB;
    let geometry =
        Geometry { config_bytes: 4 * MIB, journal_bytes: 32 * MIB, tree_bytes, slab_bytes };
    let bytes = geometry.slab(extents / SLAB) + MIB;
    let pool = mirror(shape.disks, (geometry, bytes), extents);
    let images = (0..shape.disks).map(|_| Image::new(bytes)).collect();
    let mut made = queue(&shape, images, 1, false);
    create(&mut made, shape.plan(), &pool, 3).expect("it fits");
    let started = recover::start(made, shape.plan(), How::new(1, Terms::More));
    let (mut core, _) = started.expect("it is new");
    (0..extents).for_each(|extent| core.extents.map(extent, extent));
    core.lose(vec![2]).expect("three are left");
    core.retire(2).expect("it is given up");
    let mut took = Vec::new();
    for _ in 0..4 {
        let began = thread_time();
        assert!(core.rebuild().expect("three are left"), "a place is moved");
        took.push(thread_time().saturating_sub(began));
    }
    took.into_iter().min().expect("four")
}

/// Four times as many extents take four times as long: it was sixteen times, and nine seconds of 100,000.
#[test]
fn a_step_of_a_rebuild_takes_time_in_proportion_to_what_there_is() {
    let (few, many) = (step(20_000), step(80_000));
    println!("20,000 extents: {few:?}, 80,000: {many:?}");
    assert!(many < 9 * few, "{few:?} {many:?}");
}
