//! Pools whose metadata is damaged and has checksums that fit all the same: whatever starts serves within its disks, or
//! is refused. No bytes make the engine panic, ask for memory without bound, or leave a disk's range (LAY-9).

use plumb_io::sim::power::Image;
use plumb_units::convert::{index, to_usize};

use super::faults::{TIERED, done, fill, flush, images, shape, start, write};
use super::history::{CLIENT_BYTES, CLIENTS};
use super::run::queue;
use crate::format::superblock::Superblock;
use crate::format::{BLOCK_LEN, Config, Geometry, checksum, config};
use crate::random::Random;
use crate::{Engine, Request, RequestKind};

/// What is damaged.
#[derive(Debug, Clone, Copy)]
enum What {
    Superblock,
    Configuration,
    Checkpoint,
    Journal,
    Log,
    Tree,
}

const ALL: [What; 6] =
    [What::Superblock, What::Configuration, What::Checkpoint, What::Journal, What::Log, What::Tree];

fn below(random: &mut Random, bound: usize) -> usize {
    to_usize(random.below(u64::try_from(bound.max(1)).expect("it fits")))
}

/// Changes a few bytes of `bytes[from..to]`, mostly to what fields hold at their limits.
fn mutate(random: &mut Random, bytes: &mut [u8], (from, to): (usize, usize)) {
    for _ in 0..=random.below(3) {
        let at = from + below(random, to - from);
        match random.below(5) {
            0 => bytes[at] = 0xff,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = 0,
            3 => bytes[at] = bytes[at].wrapping_add(1),
            _ => {
                let end = to.min(at + 4);
                bytes[at..end].fill(0xff);
            }
        }
    }
}

fn page(image: &Image, at: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_LEN];
    image.read(at, &mut bytes);
    bytes
}

/// The checksum of bytes `from..to` goes to `at`.
fn seal(bytes: &mut [u8], seed: u32, (from, to): (usize, usize), at: usize) {
    let crc = checksum::crc(seed, &bytes[from..to]);
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// The same on all disks, or on one.
fn put(images: &mut [Image], one: Option<usize>, at: u64, bytes: &[u8]) {
    let which = images.iter_mut().enumerate().filter(|(nth, _)| one.is_none_or(|one| one == *nth));
    which.for_each(|(_, image)| image.write(at, bytes));
}

fn spoil(random: &mut Random, images: &mut [Image], known: &Config, what: What) {
    let geometry = shape(TIERED).geometry();
    let seed = checksum::seed(known.pool);
    // On one disk it is outvoted, on all it is believed.
    let one = random.one_in(3).then(|| below(random, images.len()));
    match what {
        What::Superblock => {
            for nth in (0..images.len()).filter(|nth| one.is_none_or(|one| one == *nth)) {
                let places = Geometry::superblocks(shape(TIERED).disk_bytes());
                let mut bytes = page(&images[nth], places[0]);
                // Not what says whose it is.
                mutate(random, &mut bytes, (40, 200));
                seal(&mut bytes, seed, (0, BLOCK_LEN - 4), BLOCK_LEN - 4);
                places.iter().for_each(|place| images[nth].write(*place, &bytes));
            }
        }
        What::Configuration => {
            let mut record = known.encode();
            let len = record.len();
            mutate(random, &mut record, (29, len));
            let pages = config::pages(known.pool, &record);
            for image in images.iter_mut() {
                let places = Geometry::superblocks(shape(TIERED).disk_bytes());
                let block = Superblock::decode(&page(image, places[0]));
                let mut block = block.expect("it is whole");
                let area = usize::from(block.area);
                block.records[area].digest = checksum::digest(&record);
                image.write(geometry.config(block.area), &pages);
                let bytes = block.encode();
                places.iter().for_each(|place| image.write(*place, &bytes));
            }
        }
        What::Checkpoint => {
            for at in [geometry.journal(), geometry.journal() + 4096] {
                let mut bytes = page(&images[0], at);
                mutate(random, &mut bytes, (24, 80));
                seal(&mut bytes, seed, (0, BLOCK_LEN - 4), BLOCK_LEN - 4);
                put(images, one, at, &bytes);
            }
        }
        What::Journal => {
            // Any frame of the ring: mostly behind its header, where records are.
            let frames: Vec<u64> = images[0].written().into_iter().collect();
            let (from, to) = (geometry.journal() + 8192, geometry.tree());
            let is_frame =
                |at: &u64| (from..to).contains(at) && page(&images[0], *at).starts_with(b"PLJF");
            let frames: Vec<u64> = frames.into_iter().filter(is_frame).collect();
            for _ in 0..4 {
                let at = frames[below(random, frames.len())];
                let mut bytes = page(&images[0], at);
                let len =
                    bytes[12..16].first_chunk::<4>().map_or(0, |len| u32::from_le_bytes(*len));
                let end = (48 + index(len)).min(BLOCK_LEN);
                let from = if random.one_in(4) { 8 } else { 48.min(end - 1) };
                mutate(random, &mut bytes, (from, end));
                let len =
                    bytes[12..16].first_chunk::<4>().map_or(0, |len| u32::from_le_bytes(*len));
                let end = index(len).saturating_add(48).min(BLOCK_LEN);
                seal(&mut bytes, seed, (8, end), 4);
                put(images, one, at, &bytes);
            }
        }
        What::Log => {
            let vdisk = &known.vdisks[0];
            let data = checksum::data_seed(known.pool, vdisk.id);
            // What is durable may be hit, and then nothing starts, or only what came after it.
            let first = random.below(16);
            for copy in &vdisk.cache.as_ref().expect("it has one").copies {
                for at in (first..16).map(|nth| geometry.slab(copy.slabs[0]) + nth * 4096) {
                    let mut bytes = page(&images[usize::from(copy.disk)], at);
                    if bytes.starts_with(b"PLWL") {
                        mutate(random, &mut bytes, (8, 80));
                        seal(&mut bytes, data, (8, BLOCK_LEN), 4);
                        put(images, Some(usize::from(copy.disk)), at, &bytes);
                    }
                }
            }
        }
        What::Tree => {
            // Pointers carry checksums: a page is spoilt with its pointer in the checkpoint, where that is the root.
            for at in [geometry.journal(), geometry.journal() + 4096] {
                let mut bytes = page(&images[0], at);
                for root in [56, 68] {
                    let number = bytes[root + 4..root + 8].first_chunk::<4>();
                    let number = number.map_or(0, |number| u32::from_le_bytes(*number));
                    let place = geometry.tree() + u64::from(number) * 4096;
                    if number == 0 || place >= geometry.slab(0) {
                        continue;
                    }
                    let mut leaf = page(&images[0], place);
                    mutate(random, &mut leaf, (16, 16 + 256));
                    seal(&mut leaf, seed, (4, BLOCK_LEN), 0);
                    bytes[root + 8..root + 12].copy_from_slice(&leaf[..4]);
                    put(images, None, place, &leaf);
                }
                seal(&mut bytes, seed, (0, BLOCK_LEN - 4), BLOCK_LEN - 4);
                put(images, None, at, &bytes);
            }
        }
    }
}

/// Starts what there is and uses it: requests may fail, and nothing else may.
fn drive(images: Vec<Image>, seed: u64, what: What) -> bool {
    let shape = shape(TIERED);
    let mut made = queue(&shape, images, seed, false);
    let started = Engine::start(&mut made, shape.plan(), CLIENTS + 1, CLIENT_BYTES, seed);
    let Ok(mut engine) = started else {
        assert_eq!(made.beyond(), 0, "{what:?} {seed}: refused, and wrote outside");
        return false;
    };
    let vdisks = u32::try_from(engine.config().vdisks.len()).expect("few");
    engine.scan();
    engine.checkpoint();
    let mut requests = Vec::new();
    for vdisk in 0..vdisks {
        let size = engine.size(vdisk).min(8 * (64 << 10));
        for offset in (0..size).step_by(64 << 10) {
            requests.push(Request { kind: RequestKind::Read, vdisk, offset, len: 4096 });
            let kind = RequestKind::Write { fua: offset % 3 == 0 };
            requests.push(Request { kind, vdisk, offset: offset + 4096, len: 4096 });
            requests.push(Request { kind: RequestKind::Discard, vdisk, offset, len: 4096 });
        }
    }
    for request in requests {
        engine.submit(0, request);
        let answered = (0..20_000).any(|_| {
            let now = engine.queue_mut().now();
            engine.poll(now, plumb_units::Nanos(60_000));
            engine.pop().is_some()
        });
        assert!(answered, "{what:?} {seed}: {request:?} is never answered, {:?}", engine.halted());
    }
    assert_eq!(engine.queue_mut().beyond(), 0, "{what:?} {seed}: wrote outside of a disk");
    true
}

/// Cases of a seed, and seeds; `PLUMB_DAMAGE_SEED` and `PLUMB_DAMAGE_SEEDS` are others, and more.
const CASES: u64 = 120;
const SEEDS: u64 = 6;

#[test]
fn damage_that_checksums_do_not_show_is_survived() {
    let mut run = start(TIERED);
    fill(&mut run);
    done(&mut run, &[write(112), write(96), write(80), flush()]).expect("some of it in the cache");
    done(&mut run, &[write(64), write(48), write(32)]).expect("and some of it not durable");
    let whole = images(&mut run, TIERED.0);
    let known = run.engine.config().clone();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (from, seeds) = (number("PLUMB_DAMAGE_SEED"), number("PLUMB_DAMAGE_SEEDS"));
    let from = from.unwrap_or(11);
    let (mut started, mut refused) = ([0; 6], [0; 6]);
    for seed in from..from + seeds.unwrap_or(SEEDS) {
        let mut random = Random::new(seed);
        for nth in 0..CASES {
            let kind = to_usize(nth) % ALL.len();
            let mut spoilt = whole.clone();
            spoil(&mut random, &mut spoilt, &known, ALL[kind]);
            let ok = drive(spoilt, 1000 * seed + nth, ALL[kind]);
            started[kind] += u32::from(ok);
            refused[kind] += u32::from(!ok);
        }
    }
    println!("started {started:?}, refused {refused:?} of {ALL:?}");
    // It is believed often enough to say something, and never for lack of a checksum alone.
    assert!(started.iter().all(|count| *count > 0), "{started:?} {refused:?}");
    assert!(refused[0] > 0 && refused[1] > 0, "{refused:?}");
}
