//! More cells of the failure matrix (section 18): damaged metadata, disks of another size, parts that went on alone,
//! writes that went astray. Each says what the data is, how the space judges itself, and what it told.

use plumb_io::sim::power::{Image, Survivors};

use super::faults::{
    MIRROR, SIMPLE, die, done, fill, first_block, flush, health, heard, images, reads_well, rest,
    restart, shape, start, write,
};
use super::history::Step;
use super::oracle::{Oracle, Promise};
use super::run::Run;
use crate::format::superblock::Superblock;
use crate::format::{DiskState, Geometry};
use crate::mutation::{Mutation, set};
use crate::pool::{Facts, HealthStatus, judge};
use crate::{Event, StartError};

const WELL: (HealthStatus, &str) = (HealthStatus::Healthy, "OK");

/// A filled pool's disks after a stop of the engine alone, spoilt by `spoil`, started again.
fn spoilt(of: (u32, u32, u8, u64), spoil: impl Fn(&mut Vec<Image>)) -> Result<Run, StartError> {
    let mut run = start(of);
    fill(&mut run);
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut images = images(&mut run, of.0);
    spoil(&mut images);
    Run::start(&shape(of), images, &[], oracle, 2)
}

fn spoil(image: &mut Image, from: u64, to: u64) {
    let pages: Vec<u64> =
        image.written().into_iter().filter(|page| (from..to).contains(page)).collect();
    for page in pages {
        image.write(page + 100, &[0xee; 300]);
    }
}

/// After `run` went on, and after another start, everything is there and nothing is damaged any more.
fn is_mended(mut run: Run, what: &str) {
    let told = heard(&mut run);
    assert!(told.contains(&"metadata-damaged"), "{what}: {told:?}");
    reads_well(&mut run);
    assert_eq!(health(&run), WELL, "{what}");
    done(&mut run, &[write(0), write(16), flush()]).expect("it goes on");
    rest(&mut run, 8);
    let mut again = restart(&mut run, MIRROR, &[]).expect("it starts again");
    reads_well(&mut again);
    // What the start in between wrote is whole.
    let told = heard(&mut again);
    assert!(!told.contains(&"metadata-damaged"), "{what}: {told:?}");
}

#[test]
fn a_torn_superblock_is_outvoted_by_its_copies() {
    let size = shape(MIRROR).disk_bytes();
    for torn in [[0, 2], [1, 3]] {
        let run = spoilt(MIRROR, |images| {
            for copy in torn {
                let at = Geometry::superblocks(size)[copy];
                images[0].write(at + 2048, &[0xee; 2048]);
            }
        });
        is_mended(run.expect("two copies are left"), "superblock");
    }
    // A lone newest copy is not believed (LAY-2).
    let run = spoilt(MIRROR, |images| {
        let at = Geometry::superblocks(size)[0];
        let mut bytes = vec![0; 4096];
        images[0].read(at, &mut bytes);
        let mut block = Superblock::decode(&bytes).expect("it is whole");
        block.version += 100;
        block.generation.number += 100;
        block.generation.id ^= 1;
        images[0].write(at, &block.encode());
    });
    is_mended(run.expect("it is outvoted"), "a lone copy");
}

#[test]
fn a_torn_configuration_is_read_from_another_disk() {
    let geometry = shape(MIRROR).geometry();
    let (from, to) = (geometry.config(0), geometry.journal());
    let run = spoilt(MIRROR, |images| spoil(&mut images[0], from, to));
    is_mended(run.expect("two others have it"), "configuration");
    let refused = spoilt(MIRROR, |images| {
        images.iter_mut().for_each(|image| spoil(image, from, to));
    });
    assert_eq!(refused.err(), Some(StartError::Metadata { what: "configuration" }));
}

/// A crash left the newest generation on one disk, and its record rots there: the others never served under it. Where
/// half of them or more have it, it may have been in force, and an older one is not taken instead.
#[test]
fn a_generation_that_nobody_has_whole_is_passed_over_by_a_majority_only() {
    let geometry = shape(MIRROR).geometry();
    let (from, to) = (geometry.config(0), geometry.journal());
    let mut run = start(MIRROR);
    fill(&mut run);
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let before = images(&mut run, 3);
    // A start makes a generation. It was cut short before any disk said that the epoch is served.
    let mut next = restart(&mut run, MIRROR, &[]).expect("it starts");
    let mut after = images(&mut next, 3);
    for (image, before) in after.iter_mut().zip(&before) {
        for place in Geometry::superblocks(shape(MIRROR).disk_bytes()) {
            let served = superblock(before, place).epoch_served;
            let block = Superblock { epoch_served: served, ..superblock(image, place) };
            image.write(place, &block.encode());
        }
    }
    let mixed = |newer: usize| {
        let mut disks = before.clone();
        for disk in 0..newer {
            disks[disk] = after[disk].clone();
            spoil(&mut disks[disk], from, to);
        }
        Run::start(&shape(MIRROR), disks, &[], oracle.clone(), 5)
    };
    // The others have its record, and do not name it.
    let mut disks = before.clone();
    disks[0] = after[0].clone();
    spoil(&mut disks[0], from, to);
    for disk in 1..3 {
        for page in after[disk].written().into_iter().filter(|page| (from..to).contains(page)) {
            let mut bytes = vec![0; 4096];
            after[disk].read(page, &mut bytes);
            disks[disk].write(page, &bytes);
        }
    }
    let mut run = Run::start(&shape(MIRROR), disks, &[], oracle.clone(), 5).expect("all go on");
    assert_eq!((state(&run, 0), health(&run)), (DiskState::Online, WELL));
    reads_well(&mut run);
    let mut run = mixed(1).expect("two of three go on");
    assert_eq!(state(&run, 0), DiskState::Missing);
    assert!(heard(&mut run).contains(&"metadata-damaged"));
    assert_eq!(health(&run).0, HealthStatus::Warning);
    reads_well(&mut run);
    let refused = mixed(2).err();
    assert_eq!(refused, Some(StartError::NoQuorum { present: 1, voters: 3 }));
}

fn superblock(image: &Image, place: u64) -> Superblock {
    let mut bytes = vec![0; 4096];
    image.read(place, &mut bytes);
    Superblock::decode(&bytes).expect("it is whole")
}

#[test]
fn a_torn_journal_is_read_from_another_copy() {
    let geometry = shape(MIRROR).geometry();
    let (from, to) = (geometry.journal(), geometry.tree());
    let run = spoilt(MIRROR, |images| spoil(&mut images[0], from, to));
    is_mended(run.expect("two others have it"), "journal");
    let refused = spoilt(MIRROR, |images| {
        images.iter_mut().for_each(|image| spoil(image, from, to));
    });
    assert_eq!(refused.err(), Some(StartError::Metadata { what: "checkpoint" }));
}

#[test]
fn torn_pages_of_map_and_checksums_are_read_from_another_copy() {
    let geometry = shape(MIRROR).geometry();
    let (from, to) = (geometry.tree(), geometry.slab(0));
    let closed = |spoilt: &dyn Fn(&mut Vec<Image>)| {
        let mut run = start(MIRROR);
        fill(&mut run);
        run.engine.checkpoint();
        rest(&mut run, 8);
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Acknowledged);
        let mut images = images(&mut run, 3);
        spoilt(&mut images);
        Run::start(&shape(MIRROR), images, &[], oracle, 2)
    };
    is_mended(closed(&|images| spoil(&mut images[0], from, to)).expect("others"), "tree");
    let refused = closed(&|images| images.iter_mut().for_each(|image| spoil(image, from, to)));
    assert!(matches!(refused.err(), Some(StartError::Tree { .. })));
}

#[test]
fn a_larger_disk_is_accepted_as_it_was() {
    let size = shape(MIRROR).disk_bytes();
    let run = spoilt(MIRROR, |images| {
        let mut larger = Image::new(size + (8 << 20));
        for page in images[1].written() {
            let mut bytes = vec![0; 4096];
            images[1].read(page, &mut bytes);
            larger.write(page, &bytes);
        }
        images[1] = larger;
    });
    let mut run = run.expect("it is accepted");
    reads_well(&mut run);
    assert_eq!(run.engine.config().disks[1].device_bytes, size, "growth is only on command");
    assert_eq!((health(&run), heard(&mut run).is_empty()), (WELL, true));
}

/// LAY-5: a newer version had a disk while it was away.
#[test]
fn a_disk_with_features_that_are_not_known_is_not_taken_back() {
    let mut run = start(MIRROR);
    fill(&mut run);
    run.engine.take_offline(2);
    rest(&mut run, 1);
    done(&mut run, &[write(0), write(16), flush()]).expect("two go on");
    for (incompat, ro_compat, is_back) in [(0, 4, false), (4, 0, false), (0, 0, true)] {
        let image = run.engine.queue_mut().view(2);
        for place in Geometry::superblocks(shape(MIRROR).disk_bytes()) {
            let block = Superblock { incompat, ro_compat, ..superblock(&image, place) };
            run.engine.queue_mut().tamper(2, place, &block.encode());
        }
        run.engine.attach(2);
        rest(&mut run, 2);
        assert_eq!(state(&run, 2) == DiskState::Online, is_back, "{incompat} {ro_compat}");
    }
    reads_well(&mut run);
}

#[test]
fn parts_that_went_on_alone_are_never_merged() {
    let two = (2, 0, 2, 0);
    let mut run = start(two);
    fill(&mut run);
    let common = images(&mut run, 2);
    let oracle = run.witness.oracle.clone();
    let alone = |absent: u32| {
        let mut oracle = oracle.clone();
        oracle.crash(Promise::Acknowledged);
        // By force: half of the voters are not enough.
        set(Some(Mutation::HalfStarts));
        let started =
            Run::start(&shape(two), common.clone(), &[absent], oracle, 7 + u64::from(absent));
        set(None);
        let mut run = started.expect("by force");
        done(&mut run, &[write(u64::from(absent) * 16), flush()]).expect("it goes on alone");
        assert_eq!(health(&run), (HealthStatus::Warning, "Degraded"));
        images(&mut run, 2)
    };
    let (one, other) = (alone(1), alone(0));
    let both = vec![one[0].clone(), other[1].clone()];
    let refused = Run::start(&shape(two), both, &[], oracle, 9).err().expect("it is refused");
    assert!(matches!(refused, StartError::Split { .. }), "{refused:?}");
}

/// One of three disks was lost; of the others only one was told of it when they died. The other one and the one that was lost
/// start, and die when the lost one alone was told of that. The first two go on, and then all are here.
fn start_with_what_nobody_served() -> Result<(), String> {
    let mut run = start(MIRROR);
    fill(&mut run);
    let before = images(&mut run, 3);
    run.engine.take_offline(2);
    rest(&mut run, 1);
    let told = images(&mut run, 3);
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let begin = |left: Vec<Image>, absent: &[u32], oracle: &Oracle, seed: u64| {
        let run = Run::start(&shape(MIRROR), left, absent, oracle.clone(), seed);
        run.map_err(|error| error.to_string())
    };
    let mut others = begin(before.clone(), &[0], &oracle, 3)?;
    let left = images(&mut others, 3);
    let went_on = vec![told[0].clone(), before[1].clone(), before[2].clone()];
    let mut run = begin(went_on, &[2], &oracle, 4)?;
    done(&mut run, &[write(0), write(16), flush()])?;
    let both = images(&mut run, 3);
    let all = vec![both[0].clone(), both[1].clone(), left[2].clone()];
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut run = begin(all, &[], &oracle, 5)?;
    run.sound = false;
    run.read_all(Promise::Acknowledged, 0)?;
    run.attach_returning();
    rest(&mut run, 3);
    let back = (state(&run, 2), run.engine.stale_places());
    if back != (DiskState::Online, 0) {
        return Err(format!("it does not come back: {back:?}"));
    }
    // It has all of it.
    run.engine.take_offline(0);
    rest(&mut run, 1);
    run.read_all(Promise::Acknowledged, 1)
}

#[test]
fn what_nobody_served_is_no_part_that_went_on() {
    start_with_what_nobody_served().expect("all disks are here");
    set(Some(Mutation::UnservedIsSplit));
    let wrong = start_with_what_nobody_served();
    set(None);
    assert!(wrong.is_err(), "it is not noticed");
}

#[test]
fn a_part_that_only_waited_is_resynced() {
    let mut run = start(MIRROR);
    fill(&mut run);
    die(&mut run, 2);
    done(&mut run, &[write(0), write(16), flush()]).expect("two go on");
    assert_eq!(heard(&mut run), ["disk-lost"]);
    assert_eq!(health(&run).0, HealthStatus::Warning);
    // The two start again and again; the third one comes back with what it had.
    let mut again = restart(&mut run, MIRROR, &[2]).expect("two of three");
    done(&mut again, &[write(32), flush()]).expect("they go on");
    let mut again = restart(&mut again, MIRROR, &[]).expect("all are here");
    again.attach_returning();
    rest(&mut again, 3);
    let told = heard(&mut again);
    assert!(told.contains(&"disk-back") && told.contains(&"disk-up-to-date"), "{told:?}");
    assert_eq!((state(&again, 2), health(&again)), (DiskState::Online, WELL));
    reads_well(&mut again);
}

fn state(run: &Run, disk: usize) -> DiskState {
    run.engine.config().disks[disk].state
}

#[test]
fn misdirected_and_lost_writes_are_told_from_good_ones_and_healed() {
    for astray in [true, false] {
        let mut run = start(MIRROR);
        fill(&mut run);
        let (disk, offset) = first_block(MIRROR, &run)[0];
        let mut before = vec![0; 4096];
        run.engine.queue_mut().view(disk).read(offset, &mut before);
        done(&mut run, &[write(0), flush()]).expect("written");
        rest(&mut run, 8);
        heard(&mut run);
        if astray {
            // Another block's content, whole and with a checksum of its own.
            let mut other = vec![0; 4096];
            run.engine.queue_mut().view(disk).read(offset + 16 * 4096, &mut other);
            run.engine.queue_mut().tamper(disk, offset, &other);
        } else {
            run.engine.queue_mut().tamper(disk, offset, &before);
        }
        run.engine.scan();
        rest(&mut run, 2);
        let told = heard(&mut run);
        for word in ["bad-copy", "healed", "scanned"] {
            assert!(told.contains(&word), "{astray}: {told:?}");
        }
        assert_eq!((run.engine.counters().healed, health(&run)), (1, WELL));
        reads_well(&mut run);
    }
}

#[test]
fn a_torn_data_write_is_settled_and_its_copies_are_equal() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let places = first_block(MIRROR, &run);
    let view = |run: &mut Run, place: (u32, u64)| {
        let mut bytes = vec![0; 4096];
        run.engine.queue_mut().view(place.0).read(place.1, &mut bytes);
        bytes
    };
    let old = view(&mut run, places[0]);
    done(&mut run, &[write(0)]).expect("acknowledged, not durable");
    let new = view(&mut run, places[0]);
    assert_ne!(old, new);
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Durable);
    let mut images = images(&mut run, 3);
    // The power went while it was written: each copy has other sectors of it.
    for ((disk, offset), sectors) in places.iter().zip([3, 5]) {
        let image = &mut images[usize::try_from(*disk).expect("small")];
        image.write(*offset, &new[..sectors * 512]);
        image.write(*offset + 512 * sectors as u64, &old[sectors * 512..]);
    }
    let mut again = Run::start(&shape(MIRROR), images, &[], oracle, 3).expect("it starts");
    assert!(heard(&mut again).contains(&"interrupted-write"));
    assert_eq!(again.engine.counters().interrupted, 1);
    again.read_all(Promise::Durable, 0).expect("each sector old or new");
    again.read_all(Promise::Durable, 1).expect("the same from any copy");
    assert_eq!(view(&mut again, places[0]), view(&mut again, places[1]), "made equal");
    assert_eq!(health(&again), WELL);
}

/// A disk of a simple space is lost: each extent that lay on it is told and fails, each other one is read and written, and the disk is
/// told as well once it failed a write.
fn without_a_disk_of_a_simple_space(lost: usize) {
    let mut run = start(SIMPLE);
    fill(&mut run);
    rest(&mut run, 8);
    // Histories use eight extents; rows hold four each, and lie on both disks in turn.
    let rows = run.engine.config().vdisks[0].tiers[0].rows.clone();
    let disk_of =
        |extent: u32| usize::from(rows[plumb_units::convert::index(extent / 4)].slabs[0].0);
    let (gone, kept): (Vec<u32>, Vec<u32>) = (0..8).partition(|extent| disk_of(*extent) == lost);
    assert_eq!((gone.len(), kept.len()), (4, 4), "on both disks");
    assert_eq!(health(&run), WELL);
    heard(&mut run);
    die(&mut run, u32::try_from(lost).expect("small"));
    let read = |extent: u32| {
        let kind = crate::RequestKind::Read;
        Step::Request { client: 2, kind, offset: u64::from(extent) * 65_536, len: 4096 }
    };
    for extent in &kept {
        done(&mut run, &[read(*extent)]).expect("the other disk serves what it has");
    }
    assert!(!heard(&mut run).contains(&"unrecoverable"), "nothing is missed yet");
    for extent in &gone {
        let refused = done(&mut run, &[read(*extent)]).expect_err("it is gone");
        assert!(refused.contains("failed"), "{refused}");
    }
    let told: Vec<Event> = std::iter::from_fn(|| run.engine.next_event()).collect();
    let listed = told.iter().filter_map(|event| match event {
        Event::Unrecoverable { extent, .. } | Event::Unreadable { extent, .. } => Some(*extent),
        _ => None,
    });
    let listed: std::collections::BTreeSet<u32> = listed.collect();
    assert!(listed.iter().eq(&gone), "{listed:?}: {told:?}");
    let ill = (HealthStatus::Unhealthy, "No Redundancy");
    assert_eq!(health(&run), ill, "{told:?}");
    for extent in &kept {
        let both = [write(u64::from(*extent) * 16), read(*extent)];
        done(&mut run, &both).expect("and takes what is new");
    }
    for extent in &gone {
        done(&mut run, &[write(u64::from(*extent) * 16)]).expect_err("there is no other copy");
    }
    done(&mut run, &[flush()]).expect_err("nobody can say that all is durable (6.3)");
    for extent in &kept {
        done(&mut run, &[read(*extent)]).expect("the rest stays online");
    }
    assert_eq!((run.engine.halted(), health(&run)), (None, ill));
    let told = heard(&mut run);
    assert!(told.contains(&"disk-failing") && told.contains(&"flush-failed"), "{told:?}");
    let judged = judge(&Facts::running(&run.engine));
    let states =
        [&judged.disks[lost], &judged.disks[1 - lost], &judged.pool].map(|one| one.operational);
    assert_eq!(states, ["IO Error", "OK", "Degraded"]);
    assert_eq!(judged.pool.status, HealthStatus::Unhealthy);
    run.engine.queue_mut().drop_cache(u32::try_from(lost).expect("small"), Survivors::All);
}

#[test]
fn a_lost_disk_of_a_simple_space_takes_what_lay_on_it_and_no_more() {
    (0..2).for_each(without_a_disk_of_a_simple_space);
}
