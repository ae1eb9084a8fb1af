//! Crashes within starts: a start decides what an earlier crash left open, and must not need, for what it decided, a
//! disk that is lost before the next one.

use plumb_io::sim::power::{CrashKind, Image, Replay, Survivors};
use plumb_units::convert::{index, to_u64, to_usize};

use super::history::{CLIENTS, Shape, Step, sectors, steps};
use super::oracle::{Oracle, Promise};
use super::run::{Run, Wrong, new_pool};
use super::unborne::Workload;
use super::witness::Witness;
use crate::RequestKind;
use crate::format::frame::{self, Link};
use crate::format::page::Checkpoint;
use crate::format::{Geometry, checksum};
use crate::mutation::{Mutation, set};
use crate::random::Random;

/// Crashes of each start.
const CRASHES: u64 = 12;

/// A short history whose first writes are on some of their disks when the power fails; what it leaves, and what was
/// promised.
fn first_crash(shape: &Shape, seed: u64) -> (Vec<Image>, Witness) {
    let mut random = Random::new(seed ^ 0x57a7);
    let oracle = Oracle::new(index(sectors()));
    let mut run = Run::start(shape, new_pool(shape), &[], oracle.clone(), seed).expect("it is new");
    // Nothing fails on its way.
    let mut history = steps(&Shape { copies: 1, ..shape.clone() }, 6, seed);
    history.extend((0..6).map(|_| first_write(&mut random)));
    history.push(Step::Poll);
    run.take(&history).expect("nothing is wrong yet");
    let trace = run.engine.queue_mut().take_trace();
    let from = trace.events.len() / 2;
    let point = from + to_usize(random.below(to_u64(trace.events.len() - from) + 1));
    let mut replay = Replay::new(&trace, 512);
    replay.advance_to(point);
    let mut witness = Witness::new(oracle);
    run.log
        .iter()
        .filter(|(position, _)| *position <= point)
        .for_each(|(_, seen)| witness.see(seen));
    let survivors = if random.one_in(2) { Survivors::Few } else { Survivors::Some };
    let (images, _) = replay.crash(CrashKind::Power, &[], survivors, random.next());
    witness.oracle.crash(Promise::Durable);
    (images, witness)
}

fn first_write(random: &mut Random) -> Step {
    let kind = RequestKind::Write { fua: random.one_in(3) };
    let offset = random.below(u64::from(sectors()) / 8) * 4096;
    let client = u32::try_from(random.below(u64::from(CLIENTS))).unwrap_or(0);
    Step::Request { client, kind, offset, len: 4096 }
}

fn shape(seed: u64) -> Shape {
    let (disks, rotating, cache) =
        if seed.is_multiple_of(3) { (4, 2, 64 << 10) } else { (3, 0, 0) };
    let workload = Workload::Usual;
    Shape { disks, rotating, copies: 2, columns: 1, cache, seed, workload }
}

/// Crashes a start again and again, and reads what the next one makes of it without one of the disks. How often.
fn crash_a_start(seed: u64) -> Result<u64, Wrong> {
    let shape = shape(seed);
    let (images, witness) = first_crash(&shape, seed);
    let mut random = Random::new(seed ^ 0xc4a5);
    let oracle = witness.oracle;
    let mut run = Run::start(&shape, images, &[], oracle.clone(), random.next())
        .map_err(|error| format!("does not start after the first crash: {error:?}"))?;
    let trace = run.engine.queue_mut().take_trace();
    let mut points: Vec<usize> =
        (0..CRASHES).map(|_| to_usize(random.below(to_u64(run.recovery) + 1))).collect();
    points.sort_unstable();
    let mut replay = Replay::new(&trace, 512);
    for point in points {
        replay.advance_to(point);
        let survivors = match random.below(4) {
            0 => Survivors::Some,
            1 => Survivors::Few,
            _ => Survivors::None,
        };
        let (images, _) = replay.crash(CrashKind::Power, &[], survivors, random.next());
        let mut oracle = oracle.clone();
        oracle.crash(Promise::Durable);
        let away = u32::try_from(random.below(shape.disks.into())).unwrap_or(0);
        let in_words = |wrong| format!("{point} events later, without disk {away}: {wrong}");
        let mut next = Run::start(&shape, images, &[away], oracle, random.next())
            .map_err(|error| in_words(format!("does not start: {error:?}")))?;
        next.sound = false;
        next.read_all(Promise::Durable, 0).map_err(in_words)?;
        next.read_all(Promise::Durable, 1).map_err(in_words)?;
    }
    Ok(CRASHES)
}

fn seed(nth: u64) -> u64 {
    super::history_seed(0x57a7, nth)
}

/// Frames that a disk alone leads to from a checkpoint on.
fn frames_of(image: &Image, geometry: &Geometry, pool_seed: u32, from: &Link) -> usize {
    let (mut link, mut count) = (*from, 0);
    loop {
        let left = geometry.ring_bytes() - link.position % geometry.ring_bytes();
        let mut bytes = vec![0; to_usize(left.min(32 << 10))];
        image.read(geometry.ring(link.position), &mut bytes);
        let Some(found) = frame::decode(&bytes, pool_seed, &link, geometry.ring_bytes()) else {
            return count;
        };
        let lsn = link.lsn + u64::from(found.kind != frame::FrameKind::Pad);
        let position = link.position + found.span;
        link = Link { lsn, position, chain: found.crc, epoch: found.epoch };
        count += 1;
    }
}

/// How many frames each copy of the journal alone leads to after a start, from the checkpoint before it.
fn journals_after_a_start(seed: u64) -> Vec<usize> {
    let shape = Shape { disks: 3, rotating: 0, cache: 0, ..shape(seed) };
    let (images, witness) = first_crash(&shape, seed);
    let geometry = shape.geometry();
    let mut run = Run::start(&shape, images.clone(), &[], witness.oracle, seed).expect("it starts");
    let config = run.engine.config().clone();
    let pages = images.iter().flat_map(|image| {
        [0, 4096].map(|slot| {
            let mut bytes = vec![0; 4096];
            image.read(geometry.journal() + slot, &mut bytes);
            Checkpoint::decode(config.pool, &bytes)
        })
    });
    let newest = pages.flatten().max_by_key(|page| page.sequence).expect("there is one");
    let metadata = (0_u32..).zip(&config.disks).filter(|(_, disk)| disk.metadata);
    let pool_seed = checksum::seed(config.pool);
    metadata
        .map(|(disk, _)| {
            let image = run.engine.queue_mut().view(disk);
            frames_of(&image, &geometry, pool_seed, &newest.link)
        })
        .collect()
}

/// T1's combination by name: the power fails within a start, and a disk is lost beside it.
#[test]
fn a_start_that_is_cut_short_needs_no_disk_that_is_lost() {
    let named = std::env::var("PLUMB_STARTS").ok().and_then(|text| text.parse().ok());
    let mut states = 0;
    for nth in 0..named.unwrap_or(40) {
        match crash_a_start(seed(nth)) {
            Ok(count) => states += count,
            Err(wrong) => panic!("history {nth}: {wrong}"),
        }
    }
    println!("{states} states");
    assert!(states >= 480);
}

/// The first history that notices a rule's absence; `PLUMB_MUTATION` names another one to look for.
#[test]
fn first_writes_confirmed_before_they_are_on_all_copies_are_noticed() {
    let named = std::env::var("PLUMB_MUTATION").ok();
    let named = |mutation: &Mutation| named.as_deref() == Some(&format!("{mutation:?}"));
    let wanted = Mutation::ALL.iter().copied().find(named);
    let mutation = wanted.unwrap_or(Mutation::ConfirmBeforeFlush);
    set(Some(mutation));
    let caught = (0..400).find_map(|nth| Some((nth, crash_a_start(seed(nth)).err()?)));
    set(None);
    println!("{mutation:?}: {caught:?}");
    assert!(caught.is_some(), "{mutation:?} is not noticed");
}

/// Any copy of the journal may be the one that is left.
#[test]
fn each_copy_of_the_journal_leads_on_alone_after_a_start() {
    let differ = |nth: u64| {
        let frames = journals_after_a_start(seed(nth));
        assert!(frames.len() > 1 && frames.iter().all(|count| *count > 1), "{frames:?}");
        frames.iter().any(|count| *count != frames[0])
    };
    assert_eq!((0..20).find(|nth| differ(*nth)), None);
    set(Some(Mutation::JournalCopiesDiffer));
    let frames = (0..60).map(|nth| journals_after_a_start(seed(nth)));
    let caught = frames.into_iter().find(|frames| frames.iter().any(|count| *count != frames[0]));
    set(None);
    println!("JournalCopiesDiffer: {caught:?}");
    assert!(caught.is_some(), "it is not noticed");
}
