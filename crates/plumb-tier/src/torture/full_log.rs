//! Recovery of a full write-back cache (section 25): what it asks of the disks, in virtual time, and that nothing of it is lost.

use plumb_io::clock::{Clock, ManualClock};
use plumb_io::engine::SparseQueue;
use plumb_io::stack::{DeviceModel, EmulatedQueue, HddModel};
use plumb_io::{IoQueue, QueueSpec, RegionSpec};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64};

use super::full_journal;
use crate::assembly::{How, Terms};
use crate::format::{BLOCK_BYTES, BLOCK_LEN, Geometry, MediaType};
use crate::io::TIME_OUT;
use crate::log_ahead::FAR_FROM;
use crate::{Engine, NewDisk, NewPool, NewVirtualDisk, Request, RequestKind, SlotPlan, create};

type Queue = EmulatedQueue<SparseQueue, ManualClock>;

const MIB: u64 = 1 << 20;
const DISKS: u32 = 4;
const PLAN: SlotPlan = SlotPlan {
    data_slots: 128,
    data_bytes: 128 << 10,
    control_bytes: 256 << 10,
    files: DISKS,
    time_out: TIME_OUT,
};

/// A space with a log of so many MiB on two SSDs of 200 MB/s, before two rotating disks.
struct Space {
    engine: Engine<Queue>,
    clock: ManualClock,
    /// Blocks of the tier on rotating disks, from the first one on.
    slow: std::ops::Range<u64>,
    /// How often each of these was written.
    versions: Vec<u64>,
}

fn start(queue: Queue, far_from: u64, clients: u32) -> Engine<Queue> {
    let how = How { log_far_from: far_from, ..How::new(7, Terms::More) };
    Engine::start_settling(queue, PLAN, (clients, 4096), how).expect("it starts")
}

impl Space {
    fn new(mib: u64, clients: u32) -> Self {
        let capacity = 16 * mib * MIB;
        let geometry = Geometry { slab_bytes: 16 * MIB, ..Geometry::standard(16 * MIB, capacity) };
        let bytes = geometry.slab(0) + 8 * mib * MIB;
        let disk = |nth| {
            let media = if nth < 2 { MediaType::Ssd } else { MediaType::Hdd };
            NewDisk { media, bytes, name: format!("memory{nth}") }
        };
        let tiers = [4 * mib * MIB, 2 * mib * MIB];
        let pool = NewPool {
            name: "full".into(),
            extent_bytes: 1 << 20,
            geometry,
            disks: (0..DISKS).map(disk).collect(),
            vdisks: vec![NewVirtualDisk {
                name: "space".into(),
                copies: 2,
                columns: 1,
                interleave: 256 << 10,
                tier_bytes: tiers,
                cache_bytes: mib * MIB,
            }],
        };
        let regions = vec![RegionSpec { lanes: PLAN.lanes() }];
        let spec = QueueSpec { depth: PLAN.depth(), regions, ..QueueSpec::default() };
        let sizes = vec![bytes; index(DISKS)];
        let files = SparseQueue::of_sizes(&spec, &sizes).expect("memory for the disks");
        let clock = ManualClock::default();
        let model = |nth| match nth {
            0 | 1 => full_journal::disk(),
            _ => DeviceModel::Hdd(HddModel::new(bytes, 6, 6.0, (150e6, 90e6))),
        };
        let models = (0..DISKS).map(model).collect();
        let mut queue = EmulatedQueue::new(files, PLAN.depth(), models, clock.clone());
        create(&mut queue, PLAN, &pool, 3).expect("it fits");
        let engine = start(queue, FAR_FROM, clients);
        let mut space = Self { engine, clock, slow: 0..0, versions: Vec::new() };
        // Each extent has its place: the last ones theirs on rotating disks.
        let size = space.engine.size(0);
        space.write((0..size / MIB).map(|extent| extent * (MIB / BLOCK_BYTES)), clients);
        space.slow = space.engine.mapped_bytes(0)[0] / BLOCK_BYTES..size / BLOCK_BYTES;
        let blocks = usize::try_from(space.slow.end - space.slow.start).expect("few");
        space.versions = (0..blocks).map(|nth| u64::from(nth % 256 == 0)).collect();
        space
    }

    /// What is in a block that was written so often.
    fn content(block: u64, version: u64) -> [u8; 8] {
        ((block + 1) << 26 | version).to_le_bytes()
    }

    fn step(&mut self) {
        let now = self.clock.now();
        self.engine.poll(now, Nanos(1_000_000));
        if self.engine.in_flight() == 0 && self.clock.now() == now {
            self.clock.advance_to(Nanos(now.0 + 1_000_000));
        }
    }

    /// Writes these blocks, so many at a time.
    fn write(&mut self, blocks: impl Iterator<Item = u64>, clients: u32) {
        let mut blocks = blocks.peekable();
        let mut free: Vec<u32> = (0..clients).collect();
        while blocks.peek().is_some() || free.len() < index(clients) {
            while let (Some(&client), Some(&block)) = (free.last(), blocks.peek()) {
                let mut version = 1;
                if self.slow.contains(&block) {
                    let nth = usize::try_from(block - self.slow.start).expect("few");
                    self.versions[nth] += 1;
                    version = self.versions[nth];
                }
                let content = Self::content(block, version);
                let buffer = &mut self.engine.buffer_mut(client)[..BLOCK_LEN];
                buffer.chunks_exact_mut(8).for_each(|some| some.copy_from_slice(&content));
                let kind = RequestKind::Write { fua: false };
                let offset = block * BLOCK_BYTES;
                self.engine.submit(client, Request { kind, vdisk: 0, offset, len: 4096 });
                free.pop();
                blocks.next();
            }
            self.step();
            while let Some((client, outcome)) = self.engine.pop() {
                assert_eq!(outcome, Ok(()));
                free.push(client);
            }
        }
    }

    /// What was written last is what is read.
    fn reads_well(&mut self, clients: u32) {
        let mut due: Vec<u64> = self.slow.clone().collect();
        let mut read: Vec<Option<u64>> = vec![None; index(clients)];
        let mut left = due.len();
        while left > 0 {
            for client in 0..clients {
                if read[index(client)].is_none()
                    && let Some(block) = due.pop()
                {
                    let offset = block * BLOCK_BYTES;
                    let kind = RequestKind::Read;
                    self.engine.submit(client, Request { kind, vdisk: 0, offset, len: 4096 });
                    read[index(client)] = Some(block);
                }
            }
            self.step();
            while let Some((client, outcome)) = self.engine.pop() {
                let block = read[index(client)].take().expect("it asked");
                assert_eq!(outcome, Ok(()), "block {block}");
                let nth = usize::try_from(block - self.slow.start).expect("few");
                let wanted = match self.versions[nth] {
                    0 => [0; 8],
                    version => Self::content(block, version),
                };
                assert_eq!(self.engine.buffer_mut(client)[..8], wanted, "block {block}");
                left -= 1;
            }
        }
    }

    /// The engine dies, and another one starts: what the disks took for that.
    fn again(self, far_from: u64, clients: u32) -> (Self, Nanos) {
        let mut left = self.engine.in_flight();
        let mut queue = self.engine.into_queue();
        // What was handed to the disks reaches them.
        while left > 0 {
            queue.submit_and_wait(1, Nanos(1_000_000_000)).expect("emulated");
            queue.look();
            while queue.pop().is_some() {
                left -= 1;
            }
        }
        let before = self.clock.now();
        let engine = start(queue, far_from, clients);
        let took = self.clock.now().since(before);
        (Self { engine, ..self }, took)
    }
}

/// In 5 s for 1 GiB. `PLUMB_LOG_MIB` makes it larger; 1,024 are what the goal is about.
#[test]
fn a_full_log_is_recovered_in_time() {
    let named = std::env::var("PLUMB_LOG_MIB").ok().and_then(|text| text.parse::<u64>().ok());
    let mib = named.unwrap_or(256);
    for clients in [1, 8, 32] {
        let mut space = Space::new(mib, clients);
        let empty;
        (space, empty) = space.again(FAR_FROM, clients);
        let room = mib * MIB / BLOCK_BYTES;
        // Headers take their part of it.
        let count = room * u64::from(clients) / u64::from(clients + 1) / 20 * 19;
        let (first, blocks) = (space.slow.start, space.slow.end - space.slow.start);
        space.write((0..count).map(|nth| first + nth * 7919 % blocks), clients);
        let cached = to_u64(space.engine.cached_blocks(0));
        let (near, far);
        (space, near) = space.again(u64::MAX, clients);
        (space, far) = space.again(FAR_FROM, clients);
        println!(
            "{mib} MiB of a log, {clients} writes at a time, {cached} of {room} blocks: {:.3} s of disks, as a short one {:.3} s, nothing {:.3} s",
            far.as_secs_f64(),
            near.as_secs_f64(),
            empty.as_secs_f64(),
        );
        assert!(cached > room / 4, "{cached} of {room}");
        assert!(far < Nanos(5_000_000_000), "{far:?} for {mib} MiB");
        // What one of the disks takes to read all of it.
        let once = mib * MIB * 1000 / 200;
        assert!(far.0 + once * 3 / 10 < near.0, "{far:?} and {near:?}: from one copy");
        space.reads_well(clients);
    }
}
