//! Rot in the metadata of the disks that are here, and a disk away that has it whole: what only that one has is there when it is
//! back, whatever was started without it.

use plumb_io::sim::power::Image;
use plumb_units::convert::{index, to_usize};

use super::faults::{
    FOUR, MIRROR, done, fill, flush, heard, images, rest, restart, shape, start, write,
};
use super::left_out::{content, needs};
use super::live_rot::{frames_of, map_page, write_each};
use super::oracle::{Oracle, Promise};
use super::run::{Run, queue, start_engine};
use super::unverified::{block, reads, spoil_sums};
use crate::format::Geometry;
use crate::format::page::Checkpoint;
use crate::mutation::{Mutation, set};
use crate::{RequestKind, StartError};

type Of = (u32, u32, u8, u64);

/// What is spoilt on a disk, and what a start says that finds no copy of it.
struct Spoilt {
    spoil: fn(&mut Image, &Geometry),
    refused: fn(&StartError) -> bool,
}

fn flip(image: &mut Image, at: u64) {
    let page = at / 4096 * 4096;
    let mut bytes = content(image, page);
    bytes[to_usize(at - page)] ^= 4;
    image.write(page, &bytes);
}

/// The root of the map's tree: it is its only page there.
fn map(image: &mut Image, geometry: &Geometry) {
    let at = map_page(image, geometry);
    flip(image, at + 100);
}

/// A frame with others behind it.
fn frame(image: &mut Image, geometry: &Geometry) {
    let all = frames_of(image, geometry);
    flip(image, all[all.len() - 5] + 49);
}

/// Both copies of the checkpoint.
fn checkpoint(image: &mut Image, geometry: &Geometry) {
    [0, 4096].into_iter().for_each(|slot| flip(image, geometry.journal() + slot + 30));
}

const ALL: [Spoilt; 3] = [
    Spoilt { spoil: map, refused: |why| matches!(why, StartError::Tree { tree: 0, .. }) },
    Spoilt { spoil: frame, refused: |why| *why == StartError::RottenJournal },
    Spoilt {
        spoil: checkpoint,
        refused: |why| *why == StartError::Metadata { what: "checkpoint" },
    },
];

/// A pool with writes behind its last checkpoint.
fn written(of: Of) -> Run {
    let mut run = start(of);
    fill(&mut run);
    run.engine.checkpoint();
    rest(&mut run, 8);
    write_each(&mut run, (0..8).map(|nth| nth * 16 + 7)).expect("all is well");
    run
}

/// Disks that have metadata, and one of them that is to be the only one with all of it whole.
fn disks(run: &Run) -> (Vec<u32>, u32) {
    let has = (0_u32..).zip(&run.engine.config().disks).filter(|own| own.1.metadata);
    let mut all: Vec<u32> = has.map(|own| own.0).collect();
    let good = all.pop().expect("some");
    (all, good)
}

/// What a crash leaves, spoilt on all disks but one, and which that is.
fn spoilt(run: &mut Run, of: Of, spoil: fn(&mut Image, &Geometry)) -> (Vec<Image>, u32, Oracle) {
    let (others, good) = disks(run);
    let mut left = images(run, of.0);
    for disk in others {
        spoil(&mut left[index(disk)], &shape(of).geometry());
    }
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    (left, good, oracle)
}

/// A start without that disk is refused, so often; the next one has it, and the one after that does without.
fn away_for_some_starts(of: Of, spoilt_is: &Spoilt, times: u64) -> Result<(), String> {
    let (mut left, good, oracle) = spoilt(&mut written(of), of, spoilt_is.spoil);
    let shape = shape(of);
    for time in 0..times {
        let mut made = queue(&shape, left, 7 + time, true);
        made.faults_mut(good).dead_from = Some(0);
        let refused = start_engine(&shape, &mut made, 8 + time).map(|_| ()).err();
        if !refused.as_ref().is_some_and(spoilt_is.refused) {
            return Err(format!("{of:?}, start {time} without: {refused:?}"));
        }
        made.repair(good);
        left = (0..of.0).map(|disk| made.view(disk)).collect();
    }
    let again = Run::start(&shape, left, &[], oracle, 9);
    let mut again = again.map_err(|why| format!("{of:?}, it is back: {why}"))?;
    again.sound = false;
    again.read_all(Promise::Acknowledged, 0)?;
    done(&mut again, &[write(3), flush()])?;
    let without = restart(&mut again, of, &[good]);
    let mut without = without.map_err(|why| format!("{of:?}, the others got nothing: {why}"))?;
    without.read_all(Promise::Acknowledged, 0)
}

/// A start that is refused leaves nobody out (LAY-3): what only the disk has that was away is there when it is back.
#[test]
fn what_only_a_disk_has_that_is_away_refuses_starts_until_it_is_back() {
    for of in [MIRROR, FOUR] {
        for spoilt in &ALL {
            assert_eq!(away_for_some_starts(of, spoilt, 3), Ok(()));
        }
        for spoilt in &ALL[1..] {
            needs(Mutation::LeftOutUnasked, || away_for_some_starts(of, spoilt, 1));
        }
        // A page of the map would be had from it all the same.
        set(Some(Mutation::OthersUnasked));
        let without = away_for_some_starts(of, &ALL[0], 3);
        set(None);
        assert_eq!(without, Ok(()));
    }
}

/// The pool had gone on without it, and rot comes to light at the next start: a page that did not change since is what the map
/// means, wherever it is.
#[test]
fn a_page_that_only_a_disk_has_that_was_left_out_is_read_from_it() {
    needs(Mutation::OthersUnasked, || {
        let mut run = written(MIRROR);
        let (others, good) = disks(&run);
        run.let_any_fail((0..3).collect(), (0..3).collect());
        run.engine.take_offline(u16::try_from(good).expect("a few"));
        rest(&mut run, 1);
        write_each(&mut run, (0..8).map(|nth| nth * 16 + 9))?;
        let mut left = images(&mut run, MIRROR.0);
        for disk in others {
            map(&mut left[index(disk)], &shape(MIRROR).geometry());
        }
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Acknowledged);
        let again = Run::start(&shape(MIRROR), left, &[], oracle, 9);
        let mut again = again.map_err(|why| why.to_string())?;
        again.sound = false;
        if !heard(&mut again).contains(&"metadata-damaged") {
            return Err("nobody is told".to_owned());
        }
        again.read_all(Promise::Acknowledged, 0)?;
        // The others have it now.
        let mut without = restart(&mut again, MIRROR, &[good]).map_err(|why| why.to_string())?;
        without.read_all(Promise::Acknowledged, 0)
    });
}

/// What happens while the only disk is away that has the checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    Starts,
    Scan,
}

fn sums_come_back(of: Of, meanwhile: Meanwhile) -> Result<(), String> {
    let sums = |image: &mut Image, _: &Geometry| {
        assert!(spoil_sums(image, &shape(MIRROR), Some(0)) > 0);
    };
    let mut run = start(of);
    fill(&mut run);
    run.engine.checkpoint();
    rest(&mut run, 8);
    let (left, good, oracle) = spoilt(&mut run, of, sums);
    let mut again =
        Run::start(&shape(of), left, &[good], oracle, 9).map_err(|why| why.to_string())?;
    again.sound = false;
    again.let_any_fail((0..of.0).collect(), (0..of.0).collect());
    rest(&mut again, 4);
    if again.engine.unverified().is_empty() || reads(&mut again, 1) {
        return Err("the checksums are here".to_owned());
    }
    match meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::Starts => {
            for _ in 0..3 {
                let next = restart(&mut again, of, &[good]);
                again = next.map_err(|why| why.to_string())?;
                rest(&mut again, 4);
            }
        }
        Meanwhile::Scan => {
            again.engine.scan();
            rest(&mut again, 40);
        }
    }
    let mut back = restart(&mut again, of, &[]).map_err(|why| why.to_string())?;
    back.attach_returning();
    rest(&mut back, 8);
    if !back.engine.unverified().is_empty() {
        return Err(format!("{of:?}, {meanwhile:?}: still unverified"));
    }
    back.read_all(Promise::Acknowledged, 0)?;
    // The others have them now.
    let mut without = restart(&mut back, of, &[good]).map_err(|why| why.to_string())?;
    without.read_all(Promise::Acknowledged, 0)
}

/// Checksums that nobody has who is here are lost only if no disk that is away has them (LAY-7).
#[test]
fn checksums_that_only_a_disk_has_that_is_away_come_back_with_it() {
    use Meanwhile::{Nothing, Scan, Starts};
    for of in [MIRROR, FOUR] {
        for meanwhile in [Nothing, Starts, Scan] {
            needs(Mutation::LostSumsDropped, || sums_come_back(of, meanwhile));
        }
    }
}

/// A write among those gives its block a checksum, and the others none that may be wrong.
#[test]
fn a_write_among_lost_checksums_is_kept_when_their_disk_is_back() {
    let mut run = start(MIRROR);
    fill(&mut run);
    run.engine.checkpoint();
    rest(&mut run, 8);
    let sums = |image: &mut Image, _: &Geometry| {
        spoil_sums(image, &shape(MIRROR), Some(0));
    };
    let (left, good, oracle) = spoilt(&mut run, MIRROR, sums);
    let mut again = Run::start(&shape(MIRROR), left, &[good], oracle, 9).expect("it starts");
    again.sound = false;
    again.let_any_fail((0..3).collect(), (0..3).collect());
    done(&mut again, &[write(1), flush()]).expect("a block is written");
    again.engine.checkpoint();
    rest(&mut again, 8);
    let mut back = restart(&mut again, MIRROR, &[]).expect("all are here");
    back.attach_returning();
    rest(&mut back, 8);
    let kind = RequestKind::Read;
    assert_eq!(back.ask_history(0, block(kind, 1)), Ok(true), "as it was written");
    assert!(!reads(&mut back, 2), "its page was written anew without it");
}

/// The newer checkpoint of two, which a start goes on from.
fn newer_checkpoint(image: &mut Image, geometry: &Geometry, pool: u128) {
    let slots = [0, 4096].map(|slot| geometry.journal() + slot);
    let sequence =
        |at: &u64| Checkpoint::decode(pool, &content(image, *at)).map_or(0, |page| page.sequence);
    let newer = slots.into_iter().max_by_key(sequence).expect("two");
    flip(image, newer + 30);
}

/// Frames after two checkpoints until the ring ends, of which the newer one rots on all disks but one, and that one is away for a
/// start: how many such starts there were that found no room.
fn no_room_behind_the_checkpoint_before(of: Of) -> Result<u32, String> {
    let shape = shape(of);
    let mut run = written(of);
    run.engine.checkpoint();
    rest(&mut run, 8);
    let (others, good) = disks(&run);
    let pool = run.engine.config().pool;
    let mut refused = 0;
    for nth in 0..60 {
        write_each(&mut run, [nth % 8 * 16 + 7].into_iter())?;
        let mut left = images(&mut run, of.0);
        for &disk in &others {
            newer_checkpoint(&mut left[index(disk)], &shape.geometry(), pool);
        }
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Acknowledged);
        let mut made = queue(&shape, left, 7, true);
        made.faults_mut(good).dead_from = Some(0);
        match start_engine(&shape, &mut made, 8).map(|_| ()) {
            Ok(())
            | Err(
                StartError::RottenJournal | StartError::Metadata { .. } | StartError::UnreadEnd,
            ) => {}
            Err(StartError::NoRoom) => refused += 1,
            Err(other) => return Err(format!("{nth} writes: {other:?}")),
        }
        made.repair(good);
        let left = (0..of.0).map(|disk| made.view(disk)).collect();
        let again = Run::start(&shape, left, &[], oracle, 9);
        let mut again = again.map_err(|why| format!("{nth} writes, it is back: {why}"))?;
        again.sound = false;
        again.read_all(Promise::Acknowledged, 0)?;
    }
    Ok(refused)
}

/// A start that would halt for want of room leaves nobody out: the disk that is away may have a newer checkpoint.
#[test]
fn a_start_without_room_leaves_nobody_out() {
    let case = |of| match no_room_behind_the_checkpoint_before(of)? {
        0 => Err("there was always room".to_owned()),
        some => {
            println!("{of:?}: {some} starts found no room");
            Ok(())
        }
    };
    for of in [MIRROR, FOUR] {
        needs(Mutation::LeftOutUnasked, || case(of));
    }
    // What is tried is what is done: extents that were open are put away as they are before they are settled.
    needs(Mutation::CrowdedSettled, || case(FOUR));
}
