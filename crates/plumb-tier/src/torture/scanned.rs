//! What a scan finds of damaged metadata, and what it makes of it (RES-8).

use plumb_io::sim::power::{CrashKind, Image, Replay, Survivors};
use plumb_units::Nanos;

use super::faults::{
    MIRROR, SIMPLE, done, fill, flush, heard, images, reads_well, rest, restart, shape, start,
    write,
};
use super::left_out::content;
use super::oracle::Promise;
use super::run::{Run, queue};
use crate::format::Geometry;
use crate::format::superblock::Superblock;
use crate::tree::{MAP, SUMS};
use crate::{Counters, Engine, StartError};

const ROT: [u8; 4096] = [0x5a; 4096];
/// All disks of it keep map and journal.
const DISKS: u32 = MIRROR.0;

/// A pool at rest, everything in its trees.
fn at_rest(of: (u32, u32, u8, u64)) -> Run {
    let mut run = start(of);
    fill(&mut run);
    run.engine.checkpoint();
    rest(&mut run, 8);
    heard(&mut run);
    run
}

/// Where pages of a tree lie, those of earlier checkpoints among them.
fn pages_of(run: &mut Run, disk: u32, tree: usize) -> Vec<u64> {
    let geometry = run.shape.geometry();
    let image = run.engine.queue_mut().view(disk);
    let is_one = |at: &u64| {
        (geometry.tree()..geometry.slab(0)).contains(at)
            && usize::from(content(&image, *at)[4]) == tree
    };
    image.written().into_iter().filter(is_one).collect()
}

/// Where a disk's configuration in force begins.
fn record(image: &Image) -> u64 {
    let places = Geometry::superblocks(shape(MIRROR).disk_bytes());
    let block = Superblock::decode(&content(image, places[0])).expect("it is whole");
    shape(MIRROR).geometry().config(block.area)
}

/// What is hit: where, on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Tree(usize),
    Superblock(usize),
    Record,
    Checkpoint,
}

const ALL: [What; 8] = [
    What::Tree(MAP),
    What::Tree(SUMS),
    What::Superblock(0),
    What::Superblock(1),
    What::Superblock(2),
    What::Superblock(3),
    What::Record,
    What::Checkpoint,
];

fn spoil(run: &mut Run, disk: u32, what: What) {
    let image = run.engine.queue_mut().view(disk);
    let geometry = shape(MIRROR).geometry();
    let places = match what {
        What::Tree(tree) => pages_of(run, disk, tree),
        What::Superblock(copy) => {
            vec![Geometry::superblocks(shape(MIRROR).disk_bytes())[copy]]
        }
        What::Record => vec![record(&image)],
        What::Checkpoint => vec![geometry.journal(), geometry.journal() + 4096],
    };
    assert!(!places.is_empty(), "{what:?}");
    places.iter().for_each(|at| run.engine.queue_mut().tamper(disk, *at, &ROT));
}

fn scan_to_its_end(run: &mut Run) {
    run.engine.scan();
    for _ in 0..10_000 {
        if run.engine.is_scanning() {
            run.engine.queue_mut().advance(Nanos::from_millis(1));
            run.poll();
        }
    }
    assert!(!run.engine.is_scanning());
}

/// Scans; what it counted.
fn scan(run: &mut Run) -> Counters {
    let before = run.engine.counters();
    scan_to_its_end(run);
    let now = run.engine.counters();
    assert!(now.metadata_verified > before.metadata_verified);
    Counters {
        metadata_verified: now.metadata_verified - before.metadata_verified,
        metadata_damaged: now.metadata_damaged - before.metadata_damaged,
        metadata_unhealed: now.metadata_unhealed - before.metadata_unhealed,
        ..now
    }
}

/// Damaged and not healed.
fn found(counters: &Counters) -> (u64, u64) {
    (counters.metadata_damaged, counters.metadata_unhealed)
}

/// How often a start that has only that disk is told of damage.
fn starts_alone(images: Vec<Image>, disk: u32) -> Result<usize, String> {
    let shape = shape(MIRROR);
    let mut made = queue(&shape, images, 7, false);
    for other in (0..DISKS).filter(|other| *other != disk) {
        made.faults_mut(other).dead_from = Some(0);
    }
    let mut engine = Engine::start_unchanging(made, shape.plan(), (1, 4096), 9)
        .map_err(|error| error.to_string())?;
    let told = std::iter::from_fn(|| engine.next_event()).map(|event| event.name());
    Ok(told.filter(|name| ["metadata-damaged", "unverified"].contains(name)).count())
}

/// Rot in one copy of anything: a scan says so, and writes it anew; the next one finds nothing, and whoever has only that
/// disk finds it whole.
#[test]
fn rot_in_a_copy_of_metadata_is_found_and_written_anew_by_a_scan() {
    for what in ALL {
        for disk in 0..DISKS {
            let case = format!("{what:?} on disk {disk}");
            let mut run = at_rest(MIRROR);
            assert_eq!(found(&scan(&mut run)), (0, 0), "{case}");
            assert_eq!(starts_alone(images(&mut run, DISKS), disk), Ok(0), "{case}");
            spoil(&mut run, disk, what);
            let alone = starts_alone(images(&mut run, DISKS), disk);
            assert_ne!(alone, Ok(0), "{case}: it is not noticed");
            heard(&mut run);
            let counters = scan(&mut run);
            assert!(counters.metadata_damaged > 0, "{case}: {counters:?}");
            assert_eq!(counters.metadata_unhealed, 0, "{case}");
            let told = heard(&mut run);
            assert!(
                ["metadata-damaged", "metadata-healed", "scanned"]
                    .iter()
                    .all(|word| told.contains(word)),
                "{case}: {told:?}"
            );
            assert!(!told.contains(&"metadata-lost"), "{case}: {told:?}");
            assert_eq!(found(&scan(&mut run)), (0, 0), "{case}");
            assert_eq!(starts_alone(images(&mut run, DISKS), disk), Ok(0), "{case}");
            reads_well(&mut run);
            let mut again = restart(&mut run, MIRROR, &[]).expect("it starts");
            assert_eq!(again.engine.counters().metadata_damaged, 0, "{case}");
            reads_well(&mut again);
        }
    }
}

/// Frames of the journal that rotted in one copy are not needed behind a scan: the other copies may rot as well.
#[test]
fn frames_of_the_journal_that_have_rotted_are_behind_a_scan() {
    let mut run = at_rest(MIRROR);
    let blocks: Vec<_> = (0..8).map(|nth| write(nth * 16 + 1)).chain([flush()]).collect();
    done(&mut run, &blocks).expect("nothing is wrong yet");
    let geometry = shape(MIRROR).geometry();
    let ring = geometry.ring(0)..geometry.tree();
    let frames = |run: &mut Run, disk: u32| -> Vec<(u64, Vec<u8>)> {
        let image = run.engine.queue_mut().view(disk);
        let there = image.written().into_iter().filter(|at| ring.contains(at));
        there.map(|at| (at, content(&image, at))).collect()
    };
    let before: Vec<_> = (0..DISKS).map(|disk| frames(&mut run, disk)).collect();
    assert!(before.iter().all(|frames| !frames.is_empty()));
    before[0].iter().for_each(|(at, _)| run.engine.queue_mut().tamper(0, *at, &ROT));
    scan(&mut run);
    // What was written there since is as it is.
    for (disk, old) in (0..).zip(&before) {
        let now = frames(&mut run, disk);
        let same = old.iter().filter(|frame| now.contains(frame));
        same.for_each(|(at, _)| run.engine.queue_mut().tamper(disk, *at, &ROT));
    }
    reads_well(&mut restart(&mut run, MIRROR, &[]).expect("it starts"));
}

/// A disk comes back and gets map and checksums anew: those that the others have whole.
#[test]
fn rot_is_not_copied_to_a_disk_that_gets_the_map() {
    for tree in [MAP, SUMS] {
        for rotten in [0, 1] {
            let mut run = at_rest(MIRROR);
            run.engine.take_offline(2);
            rest(&mut run, 1);
            run.engine.checkpoint();
            rest(&mut run, 1);
            spoil(&mut run, rotten, What::Tree(tree));
            heard(&mut run);
            run.engine.attach(2);
            rest(&mut run, 1);
            let config = run.engine.config();
            assert!(config.voters.contains(&2) && config.disks[2].metadata);
            assert_eq!(starts_alone(images(&mut run, DISKS), 2), Ok(0), "{tree} on {rotten}");
            // What a scan finds then is mended.
            scan(&mut run);
            assert_eq!(found(&scan(&mut run)), (0, 0));
            reads_well(&mut run);
        }
    }
}

/// Without a scan the next start would be refused, or know no checksums: what is in memory is written anew.
#[test]
fn pages_that_no_disk_has_whole_are_written_anew_from_memory() {
    for (tree, refused) in [(MAP, true), (SUMS, false)] {
        for scanned in [false, true] {
            let mut run = at_rest(MIRROR);
            done(&mut run, &[write(3), flush()]).expect("written");
            for disk in 0..DISKS {
                spoil(&mut run, disk, What::Tree(tree));
            }
            if scanned {
                let counters = scan(&mut run);
                assert_eq!(counters.metadata_unhealed, 0);
                assert!(counters.metadata_damaged >= u64::from(DISKS));
                assert!(heard(&mut run).contains(&"metadata-lost"));
                assert_eq!(found(&scan(&mut run)), (0, 0));
                reads_well(&mut run);
            }
            match restart(&mut run, MIRROR, &[]) {
                Err(error) => {
                    assert_eq!((refused, scanned), (true, false));
                    assert!(matches!(error, StartError::Tree { .. }), "{error}");
                }
                Ok(mut again) => {
                    assert!(scanned || !refused);
                    assert_eq!(again.engine.unverified().is_empty(), scanned);
                    if scanned {
                        reads_well(&mut again);
                    }
                }
            }
        }
    }
}

/// Nobody knows what a disk may say of itself where no copy says it: that is told, and left as it is.
#[test]
fn a_superblock_that_is_lost_on_its_disk_is_told_and_not_made_up() {
    let mut run = at_rest(MIRROR);
    (0..4).for_each(|copy| spoil(&mut run, 1, What::Superblock(copy)));
    for _ in 0..2 {
        let counters = scan(&mut run);
        assert_eq!(found(&counters), (4, 4));
    }
    assert!(heard(&mut run).contains(&"metadata-damaged"));
    assert_eq!(run.engine.halted(), None);
    reads_well(&mut run);
    // One copy is enough to know it.
    let mut run = at_rest(MIRROR);
    [0, 2, 3].iter().for_each(|copy| spoil(&mut run, 1, What::Superblock(*copy)));
    assert_eq!(found(&scan(&mut run)), (3, 0));
    assert_eq!(found(&scan(&mut run)), (0, 0));
    assert_eq!(starts_alone(images(&mut run, DISKS), 1), Ok(0));
}

/// Where the last copy of something could not be flushed there are no checkpoints: it is told, and the next start has it from
/// the other disk.
#[test]
fn what_no_checkpoint_can_write_anew_is_told() {
    let mut run = at_rest(SIMPLE);
    let disk = super::faults::first_block(SIMPLE, &run)[0].0;
    run.engine.queue_mut().faults_mut(disk).flush_errors = (0..4096).collect();
    done(&mut run, &[write(0), flush()]).expect_err("the last copy was not flushed");
    run.engine.queue_mut().repair(disk);
    heard(&mut run);
    let keeps: Vec<u32> =
        (0..SIMPLE.0).filter(|disk| run.engine.config().disks[*disk as usize].metadata).collect();
    let at = pages_of(&mut run, keeps[0], MAP);
    at.iter().for_each(|at| run.engine.queue_mut().tamper(keeps[0], *at, &ROT));
    let counters = scan(&mut run);
    assert!(counters.metadata_damaged > 0);
    assert_eq!(counters.metadata_damaged, counters.metadata_unhealed);
    assert!(!heard(&mut run).contains(&"metadata-healed"));
    assert_eq!(run.engine.halted(), None);
}

/// The power goes at any moment while a scan writes metadata anew: two copies of a superblock and a whole map are left.
#[test]
fn the_power_may_go_while_metadata_is_written_anew() {
    for what in ALL {
        let mut run = at_rest(MIRROR);
        spoil(&mut run, 1, what);
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Acknowledged);
        let shape = shape(MIRROR);
        let from = run.engine.queue_mut().events();
        scan_to_its_end(&mut run);
        let to = run.engine.queue_mut().events();
        assert!(to > from, "{what:?}");
        let trace = run.engine.queue_mut().take_trace();
        let mut replay = Replay::new(&trace, 512);
        for point in from..=to {
            replay.advance_to(point);
            for survivors in [Survivors::None, Survivors::Some, Survivors::All] {
                let left = replay.crash(CrashKind::Power, &[], survivors, 1).0;
                if matches!(what, What::Superblock(_)) {
                    let alone = starts_alone(left.clone(), 1);
                    assert!(alone.is_ok(), "{what:?}, {point} of {from} to {to}: {alone:?}");
                }
                let again = Run::start(&shape, left, &[], oracle.clone(), 9);
                let mut again = again.unwrap_or_else(|error| panic!("{what:?}, {point}: {error}"));
                again.sound = false;
                let read = again.read_all(Promise::Acknowledged, 0);
                read.unwrap_or_else(|wrong| panic!("{what:?}, {point}: {wrong}"));
            }
        }
    }
}
