//! What a space costs: processor time per 4 KiB random I/O on the owner's thread, on disks in memory that answer
//! at once, beside the same load on files and on those disks alone, and beside what nobody can do without: a
//! checksum and copies.
//!
//!     cargo run --release -p plumb-tier --example space_cost -- [MIB] [SECONDS] [TURNS] [LOAD]
//!
//! Each load has so many turns, one after the other; the ratios of a mirror to a file, which come last, are of pairs of turns, so that what
//! else the machine does meets both alike. With 0
//! seconds so many I/Os are done of each load, in thousands, as TURNS says: for tools that count instructions.
//! LOAD is a part of the names of the loads that are wanted, as in "2 copies": all without.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::time::{Duration, Instant};

use plumb_io::clock::StampClock;
use plumb_io::engine::{MemoryQueue, UringOptions, UringQueue};
use plumb_io::{
    FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, QueueSpec, RegionSpec, Slot,
    TargetFile,
};
use plumb_sys::crc32c;
use plumb_tier::space::{SpaceFile, SpaceQueue};
use plumb_tier::{
    Engine, Geometry, MediaType, NewDisk, NewPool, NewVirtualDisk, SlotPlan, TIME_OUT, create,
};
use plumb_units::Nanos;
use plumb_units::convert::index;
use rustix::time::{ClockId, clock_gettime};

const MIB: u64 = 1 << 20;
const DEPTH: u32 = 32;
const BLOCK: u32 = 4096;

/// How long a load lasts, or how many I/Os.
#[derive(Clone, Copy)]
enum Limit {
    Time(Duration),
    Count(u64),
}

fn main() {
    let only = std::env::args().skip(1).find(|word| word.parse::<u64>().is_err());
    let wanted = |what: &str| only.as_ref().is_none_or(|only| what.contains(only.as_str()));
    let mut arguments = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let (mib, seconds) = (arguments.next().unwrap_or(1024), arguments.next().unwrap_or(3));
    let turns = arguments.next().unwrap_or(3);
    let (limit, turns) = match seconds {
        0 => (Limit::Count(1000 * turns), 1),
        _ => (Limit::Time(Duration::from_secs(seconds)), turns),
    };
    println!("4 KiB random, {DEPTH} outstanding, {mib} MiB mapped, one thread");
    const KINDS: [OpKind; 2] = [OpKind::Read, OpKind::Write];
    for copies in [1, 2, 3] {
        let names = KINDS.map(|kind| (format!("space, {copies} copies, {kind:?}"), kind));
        if !names.iter().any(|(what, _)| wanted(what)) {
            continue;
        }
        let (mut space, all) = space(copies, mib, Of::Plain);
        for (what, kind) in names.iter().filter(|(what, _)| wanted(what)) {
            report(what, &mut space, &all, *kind, (limit, turns));
        }
    }
    for of in [Of::Durable, Of::Cached, Of::DurableCached] {
        let what = format!("space, 2 copies, {}", of.in_words());
        if wanted(&what) {
            let (mut space, all) = space(2, mib, of);
            report(&what, &mut space, &all, OpKind::Write, (limit, turns));
        }
    }
    for (copies, kind) in [(1, OpKind::Read), (1, OpKind::Write), (2, OpKind::Write)] {
        let what = format!("the disks alone, {copies} copies, {kind:?}");
        if wanted(&what) {
            disks_alone(&what, mib, (copies, kind), (limit, turns));
        }
    }
    for (what, place) in PLACES {
        let names = KINDS.map(|kind| (format!("file {what}, ring, {kind:?}"), kind));
        if !names.iter().any(|(what, _)| wanted(what)) {
            continue;
        }
        let Ok(folder) = tempfile::tempdir_in(place) else { continue };
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; usize::try_from(mib * MIB).expect("it fits")]).expect("room");
        let mut file = file(&path, mib);
        for (what, kind) in names.iter().filter(|(what, _)| wanted(what)) {
            report(what, &mut file, &Span::whole(mib), *kind, (limit, turns));
        }
    }
    for (what, place) in PLACES {
        let names =
            KINDS.map(|kind| (format!("ratio of 2 copies to a file {what}, {kind:?}"), kind));
        if !names.iter().any(|(what, _)| wanted(what)) {
            continue;
        }
        let Ok(folder) = tempfile::tempdir_in(place) else { continue };
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; usize::try_from(mib * MIB).expect("it fits")]).expect("room");
        let mut file = file(&path, mib);
        let (mut space, all) = space(2, mib, Of::Plain);
        for (what, kind) in names.iter().filter(|(what, _)| wanted(what)) {
            let mut pair = || {
                let own = once(&mut space, &all, *kind, limit).0;
                own / once(&mut file, &Span::whole(mib), *kind, limit).0
            };
            let mut ratios: Vec<f64> = (0..turns).map(|_| pair()).collect();
            ratios.sort_by(f64::total_cmp);
            let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
            println!("{what:52} {:.2} ({least:.2} to {most:.2})", ratios[ratios.len() / 2]);
        }
    }
    if wanted("floor") {
        floors(mib, (limit, turns));
    }
}

/// Where files are that a space is held against.
const PLACES: [(&str, &str); 2] = [("in the page cache", "."), ("in memory (tmpfs)", "/dev/shm")];

/// What is left of an I/O when all but its bytes is gone.
fn floors(mib: u64, (limit, turns): (Limit, u64)) {
    let mut disk = vec![1_u8; usize::try_from(mib * MIB).expect("it fits")];
    let mut buffer = vec![2_u8; 4096];
    let blocks = mib * MIB / u64::from(BLOCK);
    type Floor = fn(&mut [u8], &mut [u8], usize);
    let floors: [(&str, Floor); 4] = [
        ("checksum of 4 KiB (CRC-32C)", |_, buffer, _| {
            std::hint::black_box(crc32c::checksum(std::hint::black_box(buffer)));
        }),
        ("copy of 4 KiB that are in the cache", |disk, buffer, _| {
            std::hint::black_box(&mut disk[..4096]).copy_from_slice(std::hint::black_box(buffer));
        }),
        ("copy of 4 KiB out of all that is mapped", |disk, buffer, at| {
            std::hint::black_box(buffer).copy_from_slice(&disk[at..at + 4096]);
        }),
        ("copy of 4 KiB to anywhere in it", |disk, buffer, at| {
            disk[at..at + 4096].copy_from_slice(std::hint::black_box(buffer));
        }),
    ];
    for (what, floor) in floors {
        let mut costs = Vec::new();
        for _ in 0..turns {
            let mut random = random(blocks);
            let (began, used) = (Instant::now(), cpu());
            let mut count = 0_u64;
            let over = |count: u64| match limit {
                Limit::Time(time) => {
                    count.is_multiple_of(4096) && count > 0 && began.elapsed() >= time
                }
                Limit::Count(limit) => count >= limit,
            };
            while !over(count) {
                let at = usize::try_from(random() * u64::from(BLOCK)).expect("it fits");
                floor(&mut disk, &mut buffer, at);
                count += 1;
            }
            costs.push((cpu() - used).as_secs_f64() / count as f64 * 1e6);
        }
        tell(what, &mut costs, None);
    }
}

fn lanes() -> Vec<RegionSpec> {
    vec![RegionSpec { lanes: vec![LaneSpec { first_slot: 0, slots: DEPTH, bytes: BLOCK }] }]
}

/// What the writes to a space are.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Plain,
    /// Each is durable before it is acknowledged.
    Durable,
    /// They go to the log of a write-back cache, and home from there.
    Cached,
    DurableCached,
}

impl Of {
    fn in_words(self) -> &'static str {
        match self {
            Self::Plain => "Write",
            Self::Durable => "FUA Write",
            Self::Cached => "cached Write",
            Self::DurableCached => "cached FUA Write",
        }
    }

    fn is_cached(self) -> bool {
        matches!(self, Self::Cached | Self::DurableCached)
    }
}

/// Where the I/Os of a load go: blocks, on these files.
#[derive(Clone)]
struct Span {
    first: u64,
    blocks: u64,
    files: Range<u32>,
}

impl Span {
    fn whole(mib: u64) -> Self {
        Self { first: 0, blocks: mib * MIB / u64::from(BLOCK), files: 0..1 }
    }
}

/// A new mirrored virtual disk, every block of it written; and what is asked of it: behind a write-back cache, what lies on
/// the second tier.
fn space(copies: u8, mib: u64, of: Of) -> (SpaceQueue<MemoryQueue, StampClock>, Span) {
    let cached = of.is_cached();
    let disks = u32::from(copies) * if cached { 2 } else { 1 };
    let plan = SlotPlan {
        data_slots: 128,
        data_bytes: 128 << 10,
        control_bytes: 256 << 10,
        files: disks,
        time_out: TIME_OUT,
    };
    let geometry = Geometry {
        config_bytes: MIB,
        journal_bytes: 64 * MIB,
        tree_bytes: 16 * MIB,
        slab_bytes: 16 * MIB,
    };
    // A cache takes an eighth, and the first tier is half as large as the second.
    let cache = if cached { mib / 8 } else { 0 };
    let slabs = (mib + cache) / 16 + 16;
    let bytes = geometry.slab(0) + slabs * geometry.envelope_bytes() + 2 * MIB;
    let regions = vec![RegionSpec { lanes: plan.lanes() }];
    let spec = QueueSpec { depth: plan.depth(), regions, ..QueueSpec::default() };
    let sizes = vec![bytes; index(disks)];
    let mut queue = MemoryQueue::of_sizes(&spec, &sizes).expect("memory for the disks");
    queue.use_large_pages();
    let disk = |nth: u32| NewDisk {
        media: if nth < copies.into() { MediaType::Ssd } else { MediaType::Hdd },
        bytes,
        name: format!("memory{nth}"),
    };
    let vdisk = NewVirtualDisk {
        name: "v".to_owned(),
        copies,
        columns: 1,
        interleave: 256 << 10,
        tier_bytes: if cached { [mib / 2 * MIB, mib * MIB] } else { [mib * MIB, 0] },
        cache_bytes: cache * MIB,
    };
    let pool = NewPool {
        name: "p".to_owned(),
        extent_bytes: 1 << 20,
        geometry,
        disks: (0..disks).map(disk).collect(),
        vdisks: vec![vdisk],
    };
    create(&mut queue, plan, &pool, 1).expect("it fits");
    let engine = Engine::start(queue, plan, DEPTH, BLOCK, 2).expect("a new pool starts");
    let size = engine.size(0);
    let size = if cached { size } else { size.min(mib * MIB) };
    // What is written first need not be durable.
    let file = |durable| SpaceFile { vdisk: 0, size, writable: true, durable };
    let files = vec![file(false), file(true)];
    let spec = QueueSpec { depth: DEPTH, regions: lanes(), ..QueueSpec::default() };
    let clock = StampClock::new().0;
    let mut queue = SpaceQueue::open(engine, files, &spec, clock).expect("memory");
    let blocks = size / u64::from(BLOCK);
    let mut next = 0;
    drive(&mut queue, (OpKind::Write, 0..1), || {
        next += 1;
        (next <= blocks).then(|| next - 1)
    });
    // The second that makes first writes final.
    std::thread::sleep(Duration::from_millis(1100));
    for _ in 0..20 {
        queue.submit_and_wait(0, Nanos::ZERO).expect("taken");
    }
    let asked = if cached { blocks / 2 } else { blocks };
    let file = u32::from(matches!(of, Of::Durable | Of::DurableCached));
    (queue, Span { first: blocks - asked, blocks: asked, files: file..file + 1 })
}

fn file(path: &std::path::Path, mib: u64) -> UringQueue {
    let opened = std::fs::File::options().read(true).write(true).open(path).expect("just made");
    let (descriptor, size) = (opened.into(), mib * MIB);
    let file = TargetFile { descriptor, path: path.into(), size, priority: None, mapping: None };
    let spec =
        QueueSpec { depth: DEPTH, files: vec![file], regions: lanes(), ..QueueSpec::default() };
    UringQueue::open(spec, UringOptions::default()).expect("a ring")
}

/// The same load on the disks without a space: what is left of a space's cost is its own. An I/O is one on each of
/// `copies` disks, wherever.
fn disks_alone(what: &str, mib: u64, (copies, kind): (u32, OpKind), (limit, turns): (Limit, u64)) {
    let spec = QueueSpec { depth: DEPTH, regions: lanes(), ..QueueSpec::default() };
    let sizes = vec![mib * MIB; index(copies)];
    let mut queue = MemoryQueue::of_sizes(&spec, &sizes).expect("memory for the disks");
    queue.use_large_pages();
    for disk in 0..copies {
        queue.bytes_mut(FileIndex(disk)).fill(1);
    }
    let span = Span { files: 0..copies, ..Span::whole(mib) };
    report(what, &mut queue, &span, kind, (limit, turns));
}

/// Keeps the queue full with the blocks that `next` gives, on one file after the other; how many I/Os there were.
fn drive(
    queue: &mut dyn IoQueue,
    (kind, files): (OpKind, Range<u32>),
    mut next: impl FnMut() -> Option<u64>,
) -> u64 {
    let memory = Memory::Lane(LaneIndex(0));
    let mut file = files.start;
    let mut issue = |queue: &mut dyn IoQueue, slot: Slot| {
        let Some(block) = next() else { return false };
        let offset = block * u64::from(BLOCK);
        queue.push(Op { kind, file: FileIndex(file), slot, len: BLOCK, offset, memory });
        file = if file + 1 == files.end { files.start } else { file + 1 };
        true
    };
    let mut outstanding = 0;
    for slot in 0..DEPTH {
        outstanding += u32::from(issue(queue, Slot(slot)));
    }
    let mut count = 0;
    while outstanding > 0 {
        queue.submit_and_wait(1, Nanos::from_secs(1)).expect("taken");
        queue.look();
        while let Some(done) = queue.pop() {
            assert_eq!(done.outcome(), Ok(BLOCK));
            count += 1;
            outstanding -= 1;
            outstanding += u32::from(issue(queue, done.slot));
        }
    }
    count
}

/// Blocks at random, the same ones each time.
fn random(blocks: u64) -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % blocks
    }
}

/// Processor time of the whole process: what the kernel does in its name for the files included.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn report(
    what: &str,
    queue: &mut dyn IoQueue,
    span: &Span,
    kind: OpKind,
    (limit, turns): (Limit, u64),
) {
    let (mut costs, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        let (cost, rate) = once(queue, span, kind, limit);
        costs.push(cost);
        rates.push(rate);
    }
    tell(what, &mut costs, Some(&mut rates));
}

/// A turn of a load: processor time for each I/O in microseconds, and I/Os per second.
fn once(queue: &mut dyn IoQueue, span: &Span, kind: OpKind, limit: Limit) -> (f64, f64) {
    let mut random = random(span.blocks);
    let (began, used) = (Instant::now(), cpu());
    let mut nth = 0_u64;
    let count = drive(queue, (kind, span.files.clone()), || {
        nth += 1;
        let over = match limit {
            // Looking at the clock costs as much as some of the work: not each time.
            Limit::Time(time) => nth.is_multiple_of(256) && began.elapsed() >= time,
            Limit::Count(limit) => nth > limit,
        };
        if over {
            nth -= 1;
        }
        (!over).then(|| span.first + random())
    });
    let count = count as f64 / span.files.len() as f64;
    ((cpu() - used).as_secs_f64() / count * 1e6, count / began.elapsed().as_secs_f64())
}

/// Median, least and most.
fn tell(what: &str, costs: &mut [f64], rates: Option<&mut Vec<f64>>) {
    costs.sort_by(f64::total_cmp);
    let (median, least, most) = (costs[costs.len() / 2], costs[0], costs[costs.len() - 1]);
    let rate = rates.map_or_else(String::new, |rates| {
        rates.sort_by(f64::total_cmp);
        format!("{:9.0} IOPS", rates[rates.len() / 2])
    });
    println!("{what:45} {median:6.3} us CPU ({least:.3} to {most:.3}) {rate}");
}
