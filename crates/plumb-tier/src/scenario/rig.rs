//! A pool on emulated devices in virtual time, and who drives its engine.

use plumb_io::clock::{Clock, ManualClock};
use plumb_io::engine::SparseQueue;
use plumb_io::stack::{DeviceModel, EmulatedQueue, HddModel, SsdModel};
use plumb_io::{FlushQueue, OpenQueueError, QueueSpec, RegionSpec};
use plumb_units::Nanos;
use plumb_units::convert::{to_u32, to_usize};

use super::{ScenarioError, Sizes};
use crate::format::{BLOCK_BYTES, Geometry, MediaType};
use crate::{Engine, NewDisk, NewPool, NewVirtualDisk, SlotPlan, TIME_OUT, create};

/// Disks of each kind, and columns of the virtual disk, at most.
pub(super) const DISKS: u8 = 4;
/// Bytes of an extent, at every scale.
pub(super) const EXTENT: u64 = 1 << 20;
/// Outstanding requests of the load: 16 threads with 20 each.
pub(super) const OUTSTANDING: u32 = 320;
/// Longest wait for devices at a time: what goes by the clock is looked after in between.
const TICK: Nanos = Nanos(1_000_000);

/// The queue of a rig: devices that take their time around files in memory.
pub type Emulated<Q> = EmulatedQueue<Q, ManualClock>;

/// An engine on emulated devices, and the clock that they go by.
#[derive(Debug)]
pub struct Rig<Q> {
    /// The engine: the one that pools of real disks have.
    pub engine: Engine<Emulated<Q>>,
    /// Its time, and that of its devices.
    pub clock: ManualClock,
    /// Of the tag that was written last, by block from the first one on that may be loaded.
    pub(super) versions: Versions,
}

/// What was written last to each block of some range, to be compared with what is read.
#[derive(Debug, Default)]
pub(super) struct Versions {
    pub(super) first: u64,
    pub(super) list: Vec<u32>,
}

impl Versions {
    fn of(&mut self, block: u64) -> Option<&mut u32> {
        let nth = block.checked_sub(self.first)?;
        self.list.get_mut(to_usize(nth))
    }

    /// The tag of the next write to a block.
    pub(super) fn next_tag(&mut self, block: u64) -> u64 {
        let version = self.of(block).map_or(1, |version| {
            *version += 1;
            *version
        });
        tag(block, version)
    }
}

/// Which block, and its how manieth content: never 0, and never all ones.
pub(super) fn tag(block: u64, version: u32) -> u64 {
    (block + 1) << 26 | u64::from(version & ((1 << 26) - 1))
}

fn plan(disks: u8) -> SlotPlan {
    let files = u32::from(2 * disks);
    SlotPlan {
        data_slots: 384,
        data_bytes: 128 << 10,
        control_bytes: 256 << 10,
        files,
        time_out: TIME_OUT,
    }
}

/// Slots and buffers that the queue beneath needs.
#[must_use]
pub fn queue_spec() -> QueueSpec {
    spec(&plan(DISKS))
}

fn spec(plan: &SlotPlan) -> QueueSpec {
    let regions = vec![RegionSpec { lanes: plan.lanes() }];
    QueueSpec { depth: plan.depth(), regions, ..QueueSpec::default() }
}

impl Rig<SparseQueue> {
    /// A new pool of these sizes whose disks keep of each block what is in it.
    ///
    /// # Errors
    /// When memory is refused, or the sizes allow no pool.
    pub fn sparse(sizes: &Sizes) -> Result<Self, ScenarioError> {
        Self::new(sizes, SparseQueue::of_sizes)
    }
}

impl<Q: FlushQueue> Rig<Q> {
    /// A new pool of these sizes on the files of that queue.
    ///
    /// # Errors
    /// When memory is refused, or the sizes allow no pool.
    pub fn new(
        sizes: &Sizes,
        files: impl FnOnce(&QueueSpec, &[u64]) -> Result<Q, OpenQueueError>,
    ) -> Result<Self, ScenarioError> {
        Self::of_models(sizes, files, |disk| match disk.media {
            MediaType::Hdd => DeviceModel::Hdd(HddModel::new(disk.bytes, 6, 6.0, (150e6, 90e6))),
            _ => DeviceModel::Ssd(SsdModel::sas_ssd_200()),
        })
    }

    /// The same with disks of other models.
    ///
    /// # Errors
    /// When memory is refused, or the sizes allow no pool.
    pub(super) fn of_models(
        sizes: &Sizes,
        files: impl FnOnce(&QueueSpec, &[u64]) -> Result<Q, OpenQueueError>,
        model: impl Fn(&NewDisk) -> DeviceModel,
    ) -> Result<Self, ScenarioError> {
        let plan = plan(sizes.disks);
        let spec = spec(&plan);
        let kinds = [(MediaType::Ssd, sizes.ssd), (MediaType::Hdd, sizes.hdd)];
        let disks: Vec<NewDisk> = kinds
            .into_iter()
            .flat_map(|(media, bytes)| {
                (0..sizes.disks).map(move |nth| NewDisk {
                    media,
                    bytes,
                    name: format!("{media:?}{nth}"),
                })
            })
            .collect();
        let models = disks.iter().map(model).collect();
        let bytes: Vec<u64> = disks.iter().map(|disk| disk.bytes).collect();
        let clock = ManualClock::default();
        let inner = files(&spec, &bytes)?;
        let mut queue = EmulatedQueue::new(inner, plan.depth(), models, clock.clone());
        let vdisk = NewVirtualDisk {
            name: "demo".to_owned(),
            copies: 1,
            columns: sizes.disks,
            interleave: 256 << 10,
            tier_bytes: [sizes.tier, sizes.capacity],
            cache_bytes: sizes.cache,
        };
        let pool = NewPool {
            name: "emulated".to_owned(),
            extent_bytes: to_u32(to_usize(EXTENT)),
            geometry: sizes.geometry,
            disks,
            vdisks: vec![vdisk],
        };
        create(&mut queue, plan, &pool, 1)?;
        let clients = OUTSTANDING;
        let block = to_u32(to_usize(BLOCK_BYTES));
        // Its machine has memory for all checksums.
        let engine = Engine::start_with(queue, plan, (clients, block), (2, u64::MAX))?;
        Ok(Self { engine, clock, versions: Versions::default() })
    }

    /// Now, in virtual time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Lets the engine work until something has ended or a tick is over.
    pub(super) fn step(&mut self) {
        let now = self.clock.now();
        self.engine.poll(now, TICK);
        if self.engine.in_flight() == 0 && self.clock.now() == now {
            // Only time can bring anything about.
            self.clock.advance_to(Nanos(now.0 + TICK.0));
        }
    }

    /// Lets the engine rest until its write-back cache is empty and all is durable, for a minute at most.
    pub fn settle(&mut self) {
        let end = Nanos(self.clock.now().0 + 60_000_000_000);
        let rests = Nanos(self.clock.now().0 + 3_000_000_000);
        while self.clock.now() < rests || self.engine.cached_blocks(0) > 0 && self.clock.now() < end
        {
            self.step();
        }
    }
}

impl Sizes {
    /// Sizes of the areas of each disk.
    pub(super) fn geometry(scale: u64, capacity: u64) -> Geometry {
        let standard = Geometry::standard((256 << 20) / scale, capacity);
        let rounded = |bytes: u64| (bytes / scale).next_multiple_of(64 << 10);
        Geometry {
            config_bytes: rounded(standard.config_bytes).max(256 << 10),
            journal_bytes: rounded(standard.journal_bytes).max(8 << 20),
            slab_bytes: standard.slab_bytes.max(EXTENT),
            ..standard
        }
    }
}
