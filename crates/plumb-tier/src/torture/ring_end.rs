//! A start whose first frame does not fit before the end of the journal's ring: the pad before it is no frame (JRN-1).

use plumb_io::sim::power::{CrashKind, Image, PowerQueue, Replay, Survivors};

use super::left_out::needs;
use super::run::queue_of;
use crate::assembly::{How, Terms};
use crate::format::frame::Record;
use crate::format::{Geometry, MediaType};
use crate::io::TIME_OUT;
use crate::mutation::Mutation;
use crate::{NewDisk, NewPool, NewVirtualDisk, SlotPlan, create, recover};

const PLAN: SlotPlan = SlotPlan {
    data_slots: 24,
    data_bytes: 16 << 10,
    control_bytes: 16 << 10,
    files: 2,
    time_out: TIME_OUT,
};
const GEOMETRY: Geometry = Geometry {
    config_bytes: 256 << 10,
    journal_bytes: 264 << 10,
    tree_bytes: 256 << 10,
    slab_bytes: 128 << 10,
};
/// Write-back caches: what a start says of all of them takes more than a block.
const CACHES: u32 = 90;

fn queue(images: Vec<Image>) -> PowerQueue {
    queue_of(PLAN, images, 1, true)
}

/// A solid-state disk and a rotating one, and many virtual disks with a cache each.
fn new_pool() -> Vec<Image> {
    let bytes = GEOMETRY.slab(2 * CACHES) + (1 << 20);
    let disk = |media| NewDisk { media, bytes, name: format!("{media:?}") };
    let vdisk = |nth| NewVirtualDisk {
        name: format!("space {nth}"),
        copies: 1,
        columns: 1,
        interleave: 16 << 10,
        tier_bytes: [64 << 10; 2],
        cache_bytes: 64 << 10,
    };
    let pool = NewPool {
        name: "torture".into(),
        extent_bytes: 64 << 10,
        geometry: GEOMETRY,
        disks: [MediaType::Ssd, MediaType::Hdd].into_iter().map(disk).collect(),
        vdisks: (0..CACHES).map(vdisk).collect(),
    };
    let mut made = queue(vec![Image::new(bytes); 2]);
    create(&mut made, PLAN, &pool, 1).expect("it fits");
    (0..2).map(|disk| made.view(disk)).collect()
}

fn how(seed: u64) -> How {
    How::new(seed, Terms::More)
}

/// The disks of a pool whose journal has a block left before its ring ends, and nothing else to tell.
fn before_the_end() -> Vec<Image> {
    let (mut core, _) = recover::start(queue(new_pool()), PLAN, how(1)).expect("it is new");
    while core.journal.link.position % GEOMETRY.ring_bytes() + 4096 < GEOMETRY.ring_bytes() {
        core.journal.append(Record::DiskBack { disk: 0 });
        core.sync().expect("there is room");
        if core.journal.is_crowded() {
            core.checkpoint(true).expect("there is room");
        }
    }
    (0..2).map(|disk| core.io.queue.view(disk)).collect()
}

/// The power fails at any moment of the next start: whether there is another one after it.
fn starts_after_a_start_that_was_cut() -> Result<(), String> {
    let (mut core, _) = recover::start(queue(before_the_end()), PLAN, how(2)).expect("it starts");
    assert!(core.journal.link.position > GEOMETRY.ring_bytes(), "the ring went round");
    let trace = core.io.queue.take_trace();
    let mut replay = Replay::new(&trace, 512);
    for point in 0..=trace.events.len() {
        replay.advance_to(point);
        for survivors in [Survivors::None, Survivors::All] {
            let (images, _) = replay.crash(CrashKind::Power, &[], survivors, 3);
            let next = recover::start(queue(images), PLAN, how(3));
            next.map_err(|error| {
                format!("{survivors:?} of {point} of {}: {error:?}", trace.events.len())
            })?;
        }
    }
    Ok(())
}

#[test]
fn a_start_at_the_end_of_the_ring_says_behind_the_pad_that_it_is_one() {
    needs(Mutation::PadIsFrame, starts_after_a_start_that_was_cut);
}
