//! Two things that go wrong at a time: what both copies still have between them stays readable.

use super::faults::{
    MIRROR, TIERED, done, fill, first_block, flush, images, moved, reads_well, rest, shape, start,
    state, write,
};
use super::history::Step;
use super::left_out::needs;
use super::live_rot::{flip, newest_record};
use super::oracle::{Oracle, Promise};
use super::run::{Run, queue};
use crate::format::DiskState;
use crate::mutation::{Mutation, set};
use crate::optimizer::TierName;
use crate::{MoveOutcome, Request, RequestKind};
use plumb_io::sim::power::Image;

/// Blocks of the extent.
const BLOCKS: u64 = 16;

fn try_read(run: &mut Run, block: u64) -> Option<Vec<u8>> {
    let request = Request { kind: RequestKind::Read, vdisk: 0, offset: block * 4096, len: 4096 };
    let read = run.ask(0, request).expect("it answers");
    read.then(|| run.engine.buffer_mut(0)[..4096].to_vec())
}

fn unread(run: &mut Run) -> Vec<u64> {
    (0..BLOCKS).filter(|block| try_read(run, *block).is_none()).collect()
}

/// What a crash leaves of a mirror whose first extent was written and is open; where that extent's copies lie.
fn open_extent() -> (Vec<Image>, Oracle, [(u32, u64); 2]) {
    let mut run = start(MIRROR);
    fill(&mut run);
    let all: Vec<Step> = (0..BLOCKS).map(write).chain([flush()]).collect();
    done(&mut run, &all).expect("nothing is wrong yet");
    let places = first_block(MIRROR, &run);
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    (images(&mut run, MIRROR.0), oracle, [places[0], places[1]])
}

/// All disks work, and are back.
fn mended(run: &mut Run) {
    for disk in 0..MIRROR.0 {
        run.engine.queue_mut().repair(disk);
        let ordinal = u16::try_from(disk).expect("a few");
        if state(run, usize::from(ordinal)) == DiskState::Missing {
            run.engine.attach(ordinal);
        }
    }
    run.attach_returning();
    rest(run, 16);
}

/// A start on such a pool, one sector of the second copy bad, and the first copy as `first` makes it.
fn start_again(first: impl Fn(&mut plumb_io::sim::power::DiskFaults, u64)) -> Option<Run> {
    let (left, oracle, [(a, at_a), (b, at_b)]) = open_extent();
    let shape = shape(MIRROR);
    let mut made = queue(&shape, left, 7, true);
    made.faults_mut(b).unwritable = vec![(at_b, at_b + 4096)];
    made.faults_mut(b).unreadable = vec![(at_b, at_b + 4096)];
    first(made.faults_mut(a), at_a);
    let mut run = Run::start_on(&shape, made, oracle, 8).ok()?;
    run.let_any_fail((0..MIRROR.0).collect(), (0..MIRROR.0).collect());
    Some(run)
}

/// One bad sector on each disk, of different blocks: which cannot be read then, and when the disks are well again.
fn bad_sectors() -> (Vec<u64>, Vec<u64>) {
    let run = start_again(|faults, at| {
        faults.unwritable = vec![(at + 4096, at + 8192)];
        faults.unreadable = vec![(at + 4096, at + 8192)];
    });
    let mut run = run.expect("it starts");
    let first = unread(&mut run);
    mended(&mut run);
    (first, unread(&mut run))
}

#[test]
fn of_copies_that_cannot_be_made_equal_each_block_is_read_where_it_is() {
    let (first, later) = bad_sectors();
    assert!(first.len() <= 1 && later.is_empty(), "{first:?} {later:?}");
    set(Some(Mutation::LastEqualMarked));
    let (first, later) = bad_sectors();
    set(None);
    assert!(first.len() + later.len() > 1, "{first:?} {later:?}");
}

/// The other disk goes after so many I/Os of the start; both come back as they were. Which blocks cannot be read then.
fn pulled(after: u64) -> Vec<u64> {
    let run = start_again(|faults, at| {
        faults.unreadable = vec![(at + 4096, at + 8192)];
        faults.dead_from = Some(after);
    });
    let Some(mut run) = run else { return Vec::new() };
    mended(&mut run);
    unread(&mut run)
}

#[test]
fn a_disk_that_goes_while_copies_are_made_equal_brings_back_what_it_has() {
    let bad = || -> Vec<(u64, usize)> {
        let found = (0..120).map(|after| (after, pulled(after).len()));
        found.filter(|(_, unread)| *unread > 0).collect()
    };
    assert_eq!(bad(), []);
    set(Some(Mutation::LastEqualMarked));
    let without = bad();
    set(None);
    assert!(!without.is_empty());
}

/// The disk of a last copy fails a write of a block that is copied already, and the block is read.
fn settled_while_it_moves() -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let of = (5, 2, 1, 0);
    let mut run = start(of);
    fill(&mut run);
    let disk = first_block(of, &run)[0].0;
    let fail_once = |run: &mut Run| {
        let ios = run.engine.queue_mut().ios(disk);
        run.engine.queue_mut().faults_mut(disk).write_errors = (ios..ios + 40).collect();
        let _ = done(run, &[write(0)]);
        run.engine.queue_mut().repair(disk);
    };
    // It loses its vote, so that no generation stands in the way of the next failure.
    fail_once(&mut run);
    rest(&mut run, 2);
    let all: Vec<Step> = (0..BLOCKS).map(write).chain([flush()]).collect();
    done(&mut run, &all).expect("it works again");
    run.engine.set_move_rate(Some(65_536));
    run.engine.move_extent(0, 0, TierName::Capacity);
    for _ in 0..4000 {
        run.poll();
        if run.engine.move_counters().bytes >= 16_384 {
            break;
        }
        run.engine.queue_mut().advance(plumb_units::Nanos::from_millis(1));
    }
    done(&mut run, &[write(1)]).expect("it works");
    fail_once(&mut run);
    assert!(run.engine.moves_left() > 0, "it moves still");
    let between = try_read(&mut run, 0);
    for _ in 0..400 {
        if run.engine.moves_left() == 0 {
            break;
        }
        run.engine.queue_mut().advance(plumb_units::Nanos::from_millis(50));
        run.poll();
    }
    assert_eq!(run.engine.moves_left(), 0);
    rest(&mut run, 8);
    (between, try_read(&mut run, 0))
}

#[test]
fn what_is_decided_of_a_block_while_its_extent_moves_moves_with_it() {
    let (between, behind) = settled_while_it_moves();
    assert!(between.is_some() && between == behind, "{:?}", behind.is_some());
    set(Some(Mutation::MoveForgetsSettled));
    let (between, behind) = settled_while_it_moves();
    set(None);
    assert!(between != behind);
}

/// Of two neighbours one has rotted on each disk: whoever reads both gets each from where it is good.
#[test]
fn neighbours_that_rot_on_one_disk_each_are_read_together() {
    needs(Mutation::RunsUndivided, || {
        let mut run = start(MIRROR);
        fill(&mut run);
        done(&mut run, &[write(1), flush()])?;
        let both = Request { kind: RequestKind::Read, vdisk: 0, offset: 0, len: 8192 };
        let read = |run: &mut Run| {
            let read = run.ask(0, both).expect("it answers");
            read.then(|| run.engine.buffer_mut(0)[..8192].to_vec())
        };
        let good = read(&mut run).expect("nothing is wrong yet");
        let places = first_block(MIRROR, &run);
        flip(&mut run, places[0].0, places[0].1 + 700);
        flip(&mut run, places[1].0, places[1].1 + 4096 + 700);
        let found = read(&mut run).ok_or("it is taken for lost")?;
        assert!(found == good, "another content");
        assert_eq!(run.engine.counters().unrecoverable, 0);
        rest(&mut run, 2);
        assert!(run.engine.counters().healed >= 2);
        reads_well(&mut run);
        Ok(())
    });
}

/// The same in a record of a write-back cache's log, which goes home afterwards.
#[test]
fn neighbours_that_rot_in_one_copy_of_a_log_each_go_home() {
    needs(Mutation::RunsUndivided, || {
        let mut run = start(TIERED);
        fill(&mut run);
        rest(&mut run, 12);
        let both = |kind| Step::Request { client: 0, kind, offset: 112 * 4096, len: 8192 };
        done(&mut run, &[both(RequestKind::Write { fua: true })])?;
        let cache = run.engine.config().vdisks[0].cache.clone().expect("it has one");
        for (copy, block) in cache.copies.iter().zip([1, 2]) {
            let at = newest_record(&mut run, copy.disk, copy.slabs[0]);
            flip(&mut run, copy.disk.into(), at + block * 4096 + 17);
        }
        let both = Request { kind: RequestKind::Read, vdisk: 0, offset: 112 * 4096, len: 8192 };
        if !run.ask(0, both).expect("it answers") {
            return Err("it is taken for lost".to_owned());
        }
        rest(&mut run, 12);
        assert_eq!(run.engine.counters().unrecoverable, 0);
        reads_well(&mut run);
        Ok(())
    });
}

/// The same in an extent that moves: where reads fail, and rotten, which is copied again in any case.
#[test]
fn neighbours_that_are_bad_on_one_disk_each_move() {
    assert_eq!(moved_with_bad_neighbours(false), Ok(()));
    needs(Mutation::RunsUndivided, || moved_with_bad_neighbours(true));
}

fn moved_with_bad_neighbours(fails: bool) -> Result<(), String> {
    let mut run = start(TIERED);
    fill(&mut run);
    let all: Vec<Step> = (0..BLOCKS).map(write).chain([flush()]).collect();
    done(&mut run, &all)?;
    rest(&mut run, 2);
    for ((disk, at), block) in first_block(TIERED, &run).into_iter().zip([4, 5]) {
        let at = at + block * 4096;
        match fails {
            true => run.engine.queue_mut().faults_mut(disk).unreadable = vec![(at, at + 4096)],
            false => flip(&mut run, disk, at + 700),
        }
    }
    match moved(&mut run, 0, TierName::Capacity) {
        MoveOutcome::Moved => reads_well(&mut run),
        other => return Err(format!("{other:?}")),
    }
    assert_eq!(run.engine.counters().unrecoverable, 0);
    Ok(())
}
