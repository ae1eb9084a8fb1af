//! A combination by name: of what a crash left a bit of metadata rots on all disks but one, and that one is away for one start, or two.
//! Whatever those starts make of it, when the disk is back all is there that was promised: it is not left out for what only it has.
//!
//! All is drawn apart, so that states are what they are without.

use std::ops::Range;

use plumb_io::sim::power::{Image, PAGE_BYTES};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64, to_usize};

use super::history::Shape;
use super::oracle::{Oracle, Promise};
use super::rotting;
use super::run::{Run, Wrong, queue, start_engine};
use crate::StartError;
use crate::random::Random;

/// Bits that are drawn until one is of metadata.
const TRIES: u32 = 16;
/// Turns that an engine has which went on without the disk.
const TURNS: usize = 12;

/// In one of eight states of those in which all is well; whether it was so.
pub(super) fn check(
    shape: &Shape,
    images: &[Image],
    oracle: &Oracle,
    (promise, seed): (Promise, u64),
) -> Result<bool, Wrong> {
    let mut random = Random::new(seed ^ 0x4a_a3a7);
    if !(shape.disks > 2 && shape.tolerates_loss() && random.one_in(8)) {
        return Ok(false);
    }
    let Some(away) = holder(shape, images, &mut random) else { return Ok(false) };
    let (data, end) = (shape.geometry().slab(0), shape.disk_bytes() - (1 << 20));
    let of_metadata = |random: &mut Random| {
        let bit = rotting::draw(shape, &images[index(away)], oracle, random)?;
        let is_data = (data..end).contains(&bit.offset);
        let mut here = images.to_vec();
        let own = here.swap_remove(index(away));
        (!is_data && is_told(shape, (&own, &here), bit.offset)).then_some(bit)
    };
    let Some(bit) = (0..TRIES).find_map(|_| of_metadata(&mut random)) else {
        return Ok(false);
    };
    let page = |image: &Image| {
        let mut bytes = vec![0; to_usize(PAGE_BYTES)];
        image.read(bit.offset / PAGE_BYTES * PAGE_BYTES, &mut bytes);
        bytes
    };
    let whole = page(&images[index(away)]);
    let told = format!("byte {} rotten on all disks but {away}, which is away", bit.offset);
    let mut left = images.to_vec();
    for disk in (0..shape.disks).filter(|disk| *disk != away) {
        // Others may have something newer there.
        if page(&left[index(disk)]) == whole {
            left[index(disk)].flip(bit.offset, bit.bit);
        }
    }
    let mut unverified = false;
    for _ in 0..1 + random.below(2) {
        let mut made = queue(shape, left, random.next(), true);
        made.faults_mut(away).dead_from = Some(0);
        match start_engine(shape, &mut made, random.next()) {
            Ok(mut engine) => {
                for _ in 0..random.below(to_u64(TURNS)) {
                    let now = engine.queue_mut().now();
                    engine.poll(now, Nanos(60_000));
                }
                // What was settled without their checksums stays without.
                unverified |= !engine.unverified().is_empty();
            }
            Err(StartError::NoQuorum { .. }) => return Ok(false),
            Err(
                StartError::Tree { .. }
                | StartError::Metadata { .. }
                | StartError::RottenJournal
                | StartError::UnreadEnd
                | StartError::NoRoom,
            ) => {}
            Err(error) => return Err(format!("{told}: {error:?}")),
        }
        made.repair(away);
        left = (0..shape.disks).map(|disk| made.view(disk)).collect();
    }
    let mut oracle = oracle.clone();
    oracle.crash(promise);
    let again = Run::start(shape, left, &[], oracle, random.next());
    let mut run = again.map_err(|error| format!("{told}, and back: {error:?}"))?;
    run.sound = false;
    run.attach_returning();
    (0..TURNS).for_each(|_| run.poll());
    run.settle().map_err(|wrong| format!("{told}, and back: {wrong}"))?;
    if !unverified {
        run.read_all(promise, 0).map_err(|wrong| format!("{told}, and back: {wrong}"))?;
    }
    Ok(true)
}

/// Whether a place is no part of the journal, or of a frame of which a later one on a disk that is here says that it was durable: of
/// others nobody can tell rot from what the power cut short.
fn is_told(shape: &Shape, (own, here): (&Image, &[Image]), at: u64) -> bool {
    let geometry = shape.geometry();
    let ring = geometry.ring(0)..geometry.ring(0) + geometry.ring_bytes();
    if !ring.contains(&at) {
        return true;
    }
    let lsn = frames(own, &ring).filter(|frame| frame.1.contains(&at)).map(|frame| frame.0).max();
    let proven = here.iter().flat_map(|image| frames(image, &ring)).filter_map(|frame| frame.2);
    lsn.is_none_or(|lsn| proven.max() >= Some(lsn))
}

/// Frames in a ring: LSN, bytes on the disk, and up to which frame they say that all were durable.
fn frames(
    image: &Image,
    ring: &Range<u64>,
) -> impl Iterator<Item = (u64, Range<u64>, Option<u64>)> {
    let number = |page: &[u8], from: usize, len: usize| {
        page[from..from + len].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    };
    ring.clone().step_by(to_usize(PAGE_BYTES)).filter_map(move |from| {
        let mut page = vec![0; to_usize(PAGE_BYTES)];
        image.read(from, &mut page);
        let (lsn, said) = (number(&page, 16, 8), number(&page, 37, 3));
        let proven = (said > 0).then(|| lsn.saturating_sub(said));
        page.starts_with(b"PLJF").then(|| (lsn, from..from + number(&page, 40, 8), proven))
    })
}

/// A disk that has journal and map.
fn holder(shape: &Shape, images: &[Image], random: &mut Random) -> Option<u32> {
    let mut made = queue(shape, images.to_vec(), random.next(), false);
    // What does not start at all is told elsewhere.
    let engine = start_engine(shape, &mut made, random.next()).ok()?;
    let has = (0..).zip(&engine.config().disks).filter(|own| own.1.metadata);
    let all: Vec<u32> = has.map(|own| own.0).collect();
    all.get(to_usize(random.below(to_u64(all.len().max(1))))).copied()
}
