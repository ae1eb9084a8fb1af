//! Recovery of a full journal (JRN-3): what it asks of the disks, in virtual time, and of the processor.

use std::time::Duration;

use plumb_io::clock::{Clock, ManualClock};
use plumb_io::engine::MemoryQueue;
use plumb_io::sim::power::Image;
use plumb_io::stack::{DeviceModel, EmulatedQueue, SsdModel};
use plumb_io::{FileIndex, QueueSpec, RegionSpec};
use plumb_units::Nanos;
use plumb_units::convert::{to_u64, to_usize};

use super::faults;
use super::history::Shape;
use super::rebuilt::mirror;
use super::run::{new_pool, queue};
use super::tests::thread_time;
use super::unborne::Workload;
use crate::assembly::{How, Terms};
use crate::core::Halt;
use crate::format::frame::{self, FrameKind, HEADER, Link, Record};
use crate::format::{BLOCK_BYTES, Geometry, MediaType, checksum};
use crate::io::TIME_OUT;
use crate::mutation::{Mutation, set};
use crate::{Engine, NewDisk, NewPool, NewVirtualDisk, SlotPlan, StartError, create, recover};

const EXTENTS: u32 = 1024;
const MIB: u64 = 1 << 20;

/// A journal as a crash left it.
#[derive(Debug, Clone, Copy)]
struct Full {
    mib: u64,
    /// Bytes of each frame: small ones are of writers that wait for every write.
    frame: usize,
    copies: u8,
}

/// What recovery took.
#[derive(Debug, Clone, Copy)]
struct Took {
    records: u64,
    /// Processor time.
    processor: Duration,
    /// Time of the disks.
    disks: Nanos,
}

impl Took {
    fn all(&self) -> Duration {
        self.processor + Duration::from(self.disks)
    }
}

/// A disk of 200 MB/s that takes 120 µs to read 4 KiB and 266 µs to write them, eight at a time.
pub(super) fn disk() -> DeviceModel {
    let table = vec![(4096, Nanos(120_000), Nanos(265_700))];
    DeviceModel::Ssd(SsdModel::new(8, table, 200_000_000))
}

/// A pool that was just made on such disks in memory.
struct Made {
    queue: EmulatedQueue<MemoryQueue, ManualClock>,
    plan: SlotPlan,
    geometry: Geometry,
    seed: u32,
    clock: ManualClock,
    extents: u32,
    copies: u8,
}

impl Made {
    fn new((copies, extents): (u8, u32), journal_mib: u64) -> Self {
        let geometry = Geometry {
            config_bytes: MIB,
            journal_bytes: journal_mib * MIB,
            tree_bytes: 8 * MIB + u64::from(extents / 4) * 4 * BLOCK_BYTES,
            slab_bytes: 64 * MIB,
        };
        let disks = u32::from(copies);
        let bytes = geometry.slab(extents / 64 + 1) + MIB;
        let plan = SlotPlan {
            data_slots: 128,
            data_bytes: 128 << 10,
            control_bytes: 256 << 10,
            files: disks,
            time_out: TIME_OUT,
        };
        let regions = vec![RegionSpec { lanes: plan.lanes() }];
        let spec = QueueSpec { depth: plan.depth(), regions, ..QueueSpec::default() };
        let sizes = vec![bytes; usize::from(copies)];
        let memory = MemoryQueue::of_sizes(&spec, &sizes).expect("memory for the disks");
        let clock = ManualClock::default();
        let models = (0..disks).map(|_| disk()).collect();
        let mut queue = EmulatedQueue::new(memory, plan.depth(), models, clock.clone());
        let disk = |nth| NewDisk { media: MediaType::Ssd, bytes, name: format!("memory{nth}") };
        let pool = NewPool {
            name: "full".into(),
            extent_bytes: 1 << 20,
            geometry,
            disks: (0..disks).map(disk).collect(),
            vdisks: vec![NewVirtualDisk {
                name: "space".into(),
                copies,
                columns: 1,
                interleave: 256 << 10,
                tier_bytes: [u64::from(extents) * MIB, 0],
                cache_bytes: 0,
            }],
        };
        let config = create(&mut queue, plan, &pool, 3).expect("it fits");
        let seed = checksum::seed(config.pool);
        Self { queue, plan, geometry, seed, clock, extents, copies }
    }

    /// Fills so many twentieths of the ring with frames: all extents are mapped, and checksums committed; how many commits there are.
    fn fill(&mut self, frame_bytes: usize, twentieths: u64) -> u64 {
        let ring = self.geometry.ring_bytes();
        let mut link = Link { lsn: 1, position: 0, chain: 0, epoch: 1 };
        let mut records = 0_u64;
        let mut out = vec![0; frame_bytes.max(64 << 10)];
        while link.position < ring / 20 * twentieths {
            let first = link.lsn == 1;
            let kind = if first { FrameKind::EpochStart } else { FrameKind::Records };
            let mut body = Vec::new();
            for extent in (0..self.extents).filter(|_| first) {
                Record::MapSet { extent, place: extent }.encode(&mut body);
                Record::Close { extent }.encode(&mut body);
            }
            while HEADER + body.len() + Record::LEN_MAX < frame_bytes {
                // Commits of checksums are what fills a journal.
                let block = records * 7919 % (u64::from(self.extents) * 256);
                Record::CrcCommit { block, crc: 1 + u32::try_from(records % 1000).unwrap_or(0) }
                    .encode(&mut body);
                records += 1;
            }
            let span = frame::span(body.len());
            let chain = frame::encode(&mut out, self.seed, kind, (&link, 0), &body, span);
            let (at, len) = (to_usize(self.geometry.ring(link.position)), to_usize(span));
            for nth in 0..u32::from(self.copies) {
                let disk = self.queue.inner_mut().bytes_mut(FileIndex(nth));
                disk[at..at + len].copy_from_slice(&out[..len]);
            }
            link = Link { lsn: link.lsn + 1, position: link.position + span, chain, epoch: 1 };
        }
        assert!(to_u64(out.len()) < ring / 20, "the last one does not wrap");
        records
    }
}

fn recover(full: Full) -> Took {
    let mut made = Made::new((full.copies, EXTENTS), full.mib);
    let records = made.fill(full.frame, 19);
    let (began, before) = (thread_time(), made.clock.now());
    let engine = Engine::start(made.queue, made.plan, 1, 4096, 7).expect("it starts");
    let processor = thread_time().saturating_sub(began);
    let took = Took { records, processor, disks: made.clock.now().since(before) };
    assert!(engine.counters().checkpoints >= 1);
    took
}

/// Time of the disks that a start takes whose journal has a commit in every leaf of checksums, with memory for so many blocks' checksums.
fn leaves_of_a_start(sums_most: u64) -> Nanos {
    const MANY: u32 = 4096;
    let mut made = Made::new((2, MANY), 16);
    made.fill(64 << 10, 1);
    let how = |sums_most| How { sums_most, ..How::new(1, Terms::More) };
    let first = recover::start(made.queue, made.plan, how(u64::MAX));
    let (mut core, _) = first.expect("it starts");
    // A leaf has the checksums of four extents, and here those of all are written.
    for leaf in 0..u64::from(MANY / 4) {
        core.journal.append(Record::CrcCommit { block: leaf * 1024 + leaf % 1024, crc: 7 });
    }
    core.sync().expect("there is room");
    let before = made.clock.now();
    let again = recover::start(core.io.queue, made.plan, how(sums_most));
    let (mut core, _) = again.expect("it starts again");
    let took = made.clock.now().since(before);
    for leaf in [0, 5, 1023] {
        let (extent, block) = core.extents.split(leaf * 1024 + leaf).expect("it is there");
        core.fetch_sums(extent).expect("it is read");
        assert_eq!(core.extents.get(extent).sums.at(block).committed, 7);
    }
    took
}

/// Where checksums have no room in memory, those that the journal goes on from are read many at a time and from all disks.
#[test]
fn a_start_with_little_memory_takes_little_longer() {
    // Room for half of them.
    let (all, few) = (leaves_of_a_start(u64::MAX), leaves_of_a_start(2048 * 256));
    println!(
        "{:.3} s with memory for all, {:.3} s with little",
        all.as_secs_f64(),
        few.as_secs_f64()
    );
    assert!(few.0 < 2 * all.0, "{all:?} {few:?}");
}

/// In 5 s, on disks of 200 MB/s. `PLUMB_JOURNAL_MIB` makes it larger; 256 are what pools of real disks have.
#[test]
fn a_full_journal_is_recovered_in_time() {
    let named = std::env::var("PLUMB_JOURNAL_MIB").ok().and_then(|text| text.parse::<u64>().ok());
    let mib = named.unwrap_or(16);
    for (copies, frame) in [(1, 256 << 10), (2, 64 << 10), (3, 4096)] {
        let took = recover(Full { mib, frame, copies });
        println!(
            "{mib} MiB of journal in frames of {} KiB, {copies} copies, {} records: {:.3} s of disks, {:.3} s of processor",
            frame >> 10,
            took.records,
            took.disks.as_secs_f64(),
            took.processor.as_secs_f64(),
        );
        assert!(took.all() <= Duration::from_secs(5), "{took:?} for {mib} MiB");
        // The disks' share of a short one is that of the 5 s; processors of tests are slower than those of users.
        assert!(took.disks.0 <= 5_000_000_000 * mib / 256, "{took:?} for {mib} MiB");
    }
}

/// A journal that is 16 times as long takes 16 times as long, and not 256 times: what a small one shows in the suite
/// says something about a large one.
#[test]
fn recovery_takes_time_in_proportion_to_the_journal() {
    let of = |mib| recover(Full { mib, frame: 4096, copies: 2 });
    let (short, long) = (of(4), of(64));
    assert!(long.records > 15 * short.records, "{short:?} {long:?}");
    assert!(long.disks.0 < 20 * short.disks.0, "{short:?} {long:?}");
    // Processor time of a machine that does other things as well.
    assert!(long.processor < 48 * short.processor, "{short:?} {long:?}");
}

/// Fills the ring as the loss of disks may, while no checkpoint can be written; whether the next start has room.
fn start_after_the_ring_was_filled() -> Result<(), StartError> {
    let shape = Shape {
        disks: 3,
        rotating: 0,
        copies: 2,
        columns: 1,
        cache: 0,
        seed: 1,
        workload: Workload::Usual,
    };
    let more = |seed| How::new(seed, Terms::More);
    let started = recover::start(queue(&shape, new_pool(&shape), 1, false), shape.plan(), more(1));
    let (mut core, _) = started.expect("it is new");
    let mut filled = 0;
    let full = loop {
        core.journal.append(Record::DiskBack { disk: 0 });
        match core.sync() {
            Ok(()) => filled += 1,
            Err(halt) => break halt,
        }
    };
    assert_eq!(full, Halt::MetadataFull);
    assert!(filled > 20, "{filled}");
    let images = (0..shape.disks).map(|disk| core.io.queue.view(disk)).collect();
    recover::start(queue(&shape, images, 2, false), shape.plan(), more(2)).map(|_| ())
}

/// Whatever filled the ring, a start has room to put away what is in it.
#[test]
fn a_full_ring_leaves_room_for_the_next_start() {
    assert_eq!(start_after_the_ring_was_filled(), Ok(()));
    set(Some(Mutation::LastRoomUsed));
    let refused = start_after_the_ring_was_filled();
    set(None);
    assert_eq!(refused, Err(StartError::Halted { source: Halt::MetadataFull }));
}

/// Extents that a disk which is away lacks: by themselves their marks are longer than the ring.
const LACKING: u32 = 25_000;

/// Writes a checkpoint with all these marks, and starts again; how many the next start finds.
fn marks_behind_a_checkpoint() -> Result<u32, Halt> {
    let shape = faults::shape(faults::MIRROR);
    let geometry = Geometry { tree_bytes: 8 * MIB, slab_bytes: 64 * MIB, ..shape.geometry() };
    let bytes = geometry.slab(20) + MIB;
    let pool = mirror(shape.disks, (geometry, bytes), LACKING);
    let images = (0..shape.disks).map(|_| Image::new(bytes)).collect();
    let mut made = queue(&shape, images, 1, false);
    create(&mut made, shape.plan(), &pool, 3).expect("it fits");
    let started = recover::start(made, shape.plan(), How::new(1, Terms::More));
    let (mut core, _) = started.expect("it is new");
    // One of each word is not lacking.
    for extent in (0..LACKING).filter(|extent| extent % 64 != 5) {
        core.members.stale[2].insert(extent);
    }
    let marked = core.members.stale[2].clone();
    assert!(core.checkpoint(true)?);
    let images = (0..shape.disks).map(|disk| core.io.queue.view(disk)).collect();
    let again = queue(&shape, images, 2, false);
    let (core, _) = recover::start(again, shape.plan(), How::new(2, Terms::More)).expect("a start");
    assert!(core.members.stale[2].iter().eq(marked.iter()));
    Ok(core.members.stale[2].len())
}

/// A disk that is away for long may lack most of a large pool.
#[test]
fn what_a_disk_lacks_does_not_fill_the_ring() {
    assert_eq!(marks_behind_a_checkpoint(), Ok(LACKING - LACKING.div_ceil(64)));
    set(Some(Mutation::MarksOneByOne));
    let halted = marks_behind_a_checkpoint();
    set(None);
    assert_eq!(halted, Err(Halt::MetadataFull));
}
