//! Small pools in memory.

use plumb_io::engine::MemoryQueue;
use plumb_io::{QueueSpec, RegionSpec};
use plumb_tier::{
    Engine, Geometry, MediaType, NewDisk, NewPool, NewVirtualDisk, SlotPlan, TIME_OUT, create,
};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const DISK_BYTES: u64 = 24 * MIB;

pub(crate) fn plan(files: u32) -> SlotPlan {
    SlotPlan {
        data_slots: 48,
        data_bytes: 64 << 10,
        control_bytes: 64 << 10,
        files,
        time_out: TIME_OUT,
    }
}

pub(crate) fn queue(disks: u32) -> MemoryQueue {
    let plan = plan(disks);
    let regions = vec![RegionSpec { lanes: plan.lanes() }];
    let spec = QueueSpec { depth: plan.depth(), regions, ..QueueSpec::default() };
    MemoryQueue::of_sizes(&spec, &vec![DISK_BYTES; disks.try_into().expect("few")]).expect("room")
}

pub(crate) fn vdisk(name: &str, copies: u8, bytes: u64) -> NewVirtualDisk {
    NewVirtualDisk {
        name: name.to_owned(),
        copies,
        columns: 1,
        interleave: 64 << 10,
        tier_bytes: [bytes, 0],
        cache_bytes: 0,
    }
}

pub(crate) fn pool(disks: u32, vdisks: Vec<NewVirtualDisk>) -> NewPool {
    let disk =
        |nth| NewDisk { media: MediaType::Ssd, bytes: DISK_BYTES, name: format!("disk{nth}") };
    NewPool {
        name: "p".to_owned(),
        extent_bytes: 64 << 10,
        geometry: Geometry {
            config_bytes: 64 << 10,
            journal_bytes: MIB,
            tree_bytes: MIB,
            slab_bytes: MIB,
        },
        disks: (0..disks).map(disk).collect(),
        vdisks,
    }
}

/// A new pool in memory, started for that many clients.
pub(crate) fn started(
    disks: u32,
    vdisks: Vec<NewVirtualDisk>,
    clients: u32,
) -> Engine<MemoryQueue> {
    let mut queue = queue(disks);
    create(&mut queue, plan(disks), &pool(disks, vdisks), 1).expect("it fits");
    Engine::start(queue, plan(disks), clients, 4096, 2).expect("a new pool starts")
}
