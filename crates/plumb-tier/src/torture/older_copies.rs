//! Disks that are put back as they had been before (LAY-8, section 18): whatever such a disk kept of the past, no part of
//! it is taken for the present.

use plumb_io::sim::power::{CrashKind, Image, Replay, Survivors};
use plumb_units::Nanos;

use super::faults::{
    MIRROR, SIMPLE, TIERED, die, done, fill, first_block, flush, health, heard, images, reads_well,
    rest, restart, shape, start, state, write,
};
use super::history::Step;
use super::left_out::needs;
use super::oracle::Promise;
use super::run::{Run, queue};
use crate::format::DiskState;
use crate::mutation::{Mutation, set};
use crate::pool::HealthStatus;
use crate::{Engine, RequestKind, StartError};

const MIRROR3: (u32, u32, u8, u64) = (5, 0, 3, 0);
const TWO: (u32, u32, u8, u64) = (2, 0, 2, 0);
/// Of three disks with one copy of everything, two are more than half.
const SIMPLE3: (u32, u32, u8, u64) = (SIMPLE.0 + 1, SIMPLE.1, SIMPLE.2, SIMPLE.3);

/// How a life of the engine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// All that was acknowledged is durable, and the pool knows.
    Clean,
    /// The engine is killed with writes under way that nobody flushed.
    Killed,
}

/// A pool that was written, all of it written again in a second life, and one disk put back as it was after the first.
fn put_back(of: (u32, u32, u8, u64), disk: usize, end: End) -> Result<Run, StartError> {
    let mut run = start(of);
    fill(&mut run);
    let old = images(&mut run, of.0)[disk].clone();
    let run = restart(&mut run, of, &[]).expect("all disks are here");
    again_with(run, of, (disk, old), end)
}

/// Writes everything again, ends, and starts with one disk as it was.
fn again_with(
    mut run: Run,
    of: (u32, u32, u8, u64),
    (disk, old): (usize, Image),
    end: End,
) -> Result<Run, StartError> {
    fill(&mut run);
    let others = |nth: u64| Step::Request {
        client: 2,
        kind: RequestKind::Write { fua: false },
        offset: (nth * 16 + 3) * 4096,
        len: 8192,
    };
    let steps: Vec<Step> = (0..8).flat_map(|nth| [write(nth * 16), others(nth)]).collect();
    done(&mut run, &steps).expect("nothing is wrong yet");
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut left = match end {
        End::Killed => images(&mut run, of.0),
        End::Clean => {
            let mut queue = run.engine.shut_down().expect("it comes to rest");
            (0..of.0).map(|nth| queue.view(nth)).collect()
        }
    };
    left[disk] = old;
    Run::start(&shape(of), left, &[], oracle, 3)
}

/// Nothing of the disk was believed, and then it is up to date. Whether it had a place of anything.
fn is_brought_up_to_date(mut run: Run, disk: usize, case: &str) -> bool {
    let told = heard(&mut run);
    assert!(told.contains(&"disk-outdated"), "{case}: {told:?}");
    assert_eq!(state(&run, disk), DiskState::Missing, "{case}");
    assert_eq!(health(&run).0, HealthStatus::Warning, "{case}");
    reads_well(&mut run);
    run.attach_returning();
    reads_well(&mut run);
    rest(&mut run, 4);
    let told = heard(&mut run);
    let had_places = run.engine.counters().resynced > 0;
    assert!(told.contains(&"disk-back"), "{case}: {told:?}");
    assert_eq!(told.contains(&"disk-up-to-date"), had_places, "{case}: {told:?}");
    assert_eq!((state(&run, disk), run.engine.stale_places()), (DiskState::Online, 0), "{case}");
    assert_eq!(run.engine.counters().mismatches, 0, "{case}: no block of it was read before");
    assert_eq!(health(&run), (HealthStatus::Healthy, "OK"), "{case}");
    reads_well(&mut run);
    had_places
}

#[test]
fn an_older_copy_of_a_mirrors_disk_is_brought_up_to_date_as_a_whole() {
    let mut with_places = 0;
    for of in [MIRROR, MIRROR3, TIERED] {
        for end in [End::Clean, End::Killed] {
            for disk in 0..usize::try_from(of.0).expect("small") {
                let case = format!("{of:?}, disk {disk}, {end:?}");
                let run = put_back(of, disk, end).unwrap_or_else(|error| panic!("{case}: {error}"));
                with_places += u32::from(is_brought_up_to_date(run, disk, &case));
            }
        }
    }
    assert!(with_places >= 18, "{with_places} of 22");
}

#[test]
fn without_the_rule_an_older_copy_is_noticed() {
    set(Some(Mutation::OldCopyTaken));
    let mut run = put_back(MIRROR, 0, End::Killed).expect("it is taken for current");
    let read = run
        .read_all(Promise::Acknowledged, 0)
        .and_then(|()| run.read_all(Promise::Acknowledged, 1));
    let (told, mismatches) = (heard(&mut run), run.engine.counters().mismatches);
    set(None);
    assert!(!told.contains(&"disk-outdated"), "{told:?}");
    assert!(read.is_err() || mismatches > 0, "old blocks were read: {read:?}, {mismatches}");
}

/// A disk that the pool went on without has marks for what it missed since; an older copy of it lacks more.
#[test]
fn an_older_copy_of_a_missing_disk_is_not_brought_up_to_date_by_its_marks() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let old = images(&mut run, MIRROR.0)[2].clone();
    let mut run = restart(&mut run, MIRROR, &[]).expect("all disks are here");
    fill(&mut run);
    die(&mut run, 2);
    done(&mut run, &[write(0), flush()]).expect("two go on");
    assert_eq!(state(&run, 2), DiskState::Missing);
    let mut run = again_with(run, MIRROR, (2, old), End::Killed).expect("two of three");
    run.attach_returning();
    rest(&mut run, 4);
    assert_eq!((state(&run, 2), run.engine.stale_places()), (DiskState::Online, 0));
    reads_well(&mut run);
    assert_eq!(run.engine.counters().mismatches, 0, "no block of it was read before");
}

/// A pool that was written, a copy made of one disk while it served, all of it written again in the same life, after
/// which so many marks are made, and once more; then the copy is put back.
fn put_back_of_one_life(
    of: (u32, u32, u8, u64),
    disk: usize,
    (marks, end): (u32, End),
) -> Result<Run, StartError> {
    let mut run = start(of);
    let ever = Nanos(u64::MAX);
    run.engine.set_marking(ever);
    fill(&mut run);
    let old = images(&mut run, of.0)[disk].clone();
    for _ in 0..marks {
        fill(&mut run);
        run.engine.set_marking(Nanos::ZERO);
        // Nothing is due before another frame is written.
        done(&mut run, &[write(5), flush()]).expect("nothing is wrong yet");
        run.engine.set_marking(ever);
    }
    again_with(run, of, (disk, old), end)
}

/// A copy that was made while the pool served, in the same epoch: told after a clean end, and after the second mark.
#[test]
fn an_older_copy_that_was_made_while_the_pool_served_is_brought_up_to_date_as_a_whole() {
    let mut with_places = 0;
    for of in [MIRROR, MIRROR3, TIERED] {
        for end in [(0, End::Clean), (2, End::Killed), (3, End::Killed)] {
            for disk in 0..usize::try_from(of.0).expect("small") {
                let case = format!("{of:?}, disk {disk}, {end:?}");
                let run = put_back_of_one_life(of, disk, end)
                    .unwrap_or_else(|error| panic!("{case}: {error}"));
                with_places += u32::from(is_brought_up_to_date(run, disk, &case));
            }
        }
    }
    assert!(with_places >= 27, "{with_places} of 33");
}

/// The same of a disk that the pool went on without meanwhile: its marks tell of less than it lacks.
#[test]
fn an_older_copy_of_a_missing_disk_of_the_same_life_is_not_brought_up_to_date_by_its_marks() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let old = images(&mut run, MIRROR.0)[2].clone();
    run.engine.set_marking(Nanos::ZERO);
    for nth in 1..4 {
        let steps = (0..8).map(|extent| write(extent * 16 + nth)).chain([flush()]);
        done(&mut run, &steps.collect::<Vec<Step>>()).expect("nothing is wrong yet");
    }
    // Closed: the loss of the disk marks none of them.
    rest(&mut run, 10);
    die(&mut run, 2);
    done(&mut run, &[write(0), flush()]).expect("two go on");
    assert_eq!(state(&run, 2), DiskState::Missing);
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut left = images(&mut run, MIRROR.0);
    left[2] = old;
    let mut run = Run::start(&shape(MIRROR), left, &[], oracle, 3).expect("two of three");
    run.attach_returning();
    rest(&mut run, 4);
    assert_eq!((state(&run, 2), run.engine.stale_places()), (DiskState::Online, 0));
    reads_well(&mut run);
    run.engine.scan();
    rest(&mut run, 4);
    assert!(
        run.engine.counters().resynced > 2,
        "more than what was open: {:?}",
        run.engine.counters()
    );
    assert_eq!(run.engine.counters().mismatches, 0, "no block of it was read before");
}

/// Where too few are left without it, nobody decides unasked.
#[test]
fn of_two_disks_an_older_copy_of_one_is_named_and_refused() {
    for end in [End::Clean, End::Killed] {
        let refused = put_back(TWO, 1, end).err().expect("one of two is not more than half");
        assert_eq!(refused, StartError::Outdated { ordinal: 1, present: 1, voters: 2 }, "{end:?}");
        let words = refused.to_string();
        assert!(words.contains("disk 1") && words.contains("older copy"), "{words}");
    }
}

/// What has no other copy is refused, and never what it was before.
#[test]
fn what_only_an_older_copy_holds_is_not_read() {
    let mut all = 0;
    for disk in 0..3 {
        let mut run = put_back(SIMPLE3, disk, End::Killed).expect("two of three");
        // Whose only copy is old is to be refused.
        run.sound = false;
        assert!(heard(&mut run).contains(&"disk-outdated"));
        run.attach_returning();
        rest(&mut run, 2);
        // By what the first block of each extent lies on, it is all there or refused.
        let mut refused = 0;
        for extent in 0..8 {
            let kind = RequestKind::Read;
            let read = Step::Request { client: 0, kind, offset: extent * 65_536, len: 4096 };
            match done(&mut run, &[read]) {
                Ok(()) => {}
                Err(wrong) if wrong.contains("Errno(5)") => refused += 1,
                Err(wrong) => panic!("disk {disk}, extent {extent}: {wrong}"),
            }
        }
        let first = first_block(SIMPLE3, &run)[0].0;
        assert!(refused > 0 || first != u32::try_from(disk).expect("small"), "disk {disk}");
        all += refused;
    }
    assert!(all == 8, "each extent lies on one disk: {all} refused");
}

/// A copy of a disk that an operator started elsewhere is a part of its own, however far the pool has gone on since: what
/// was written there is not written over before somebody names the loser, by a start without it (LAY-3).
#[test]
fn a_copy_that_went_on_alone_is_no_older_copy() {
    let absent = |queue: &mut plumb_io::sim::power::PowerQueue, disks: &[u32]| {
        disks.iter().for_each(|disk| queue.faults_mut(*disk).dead_from = Some(0));
    };
    let shape = shape(MIRROR);
    let mut run = start(MIRROR);
    fill(&mut run);
    let mut made = queue(&shape, images(&mut run, 3), 4, true);
    absent(&mut made, &[0, 2]);
    let elsewhere = Engine::start_by_word(made, shape.plan(), (1, 4096), 4).expect("by word");
    let fork = elsewhere.shut_down().expect("a clean end").view(1);
    for _ in 0..4 {
        run = restart(&mut run, MIRROR, &[]).expect("all disks are here");
        fill(&mut run);
    }
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut left = images(&mut run, 3);
    left[1] = fork;
    let mut made = queue(&shape, left.clone(), 5, true);
    let refused = Engine::start(&mut made, shape.plan(), 1, 4096, 5).err();
    assert_eq!(refused, Some(StartError::Split { ordinal: 1 }));
    assert_eq!(made.take_trace().events.len(), 0, "nothing was written or flushed");
    let mut run = Run::start(&shape, left, &[1], oracle, 6).expect("two of three");
    reads_well(&mut run);
    let mut run = restart(&mut run, MIRROR, &[]).expect("it lost");
    run.attach_returning();
    rest(&mut run, 4);
    assert_eq!((state(&run, 1), run.engine.stale_places()), (DiskState::Online, 0));
    reads_well(&mut run);
    assert_eq!(run.engine.counters().mismatches, 0, "no block of it was read before");
}

/// One that is older than every generation that the pool can name is an older copy like any other.
#[test]
fn a_copy_from_before_all_that_is_remembered_is_brought_up_to_date_as_a_whole() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let old = images(&mut run, MIRROR.0)[1].clone();
    for nth in 0..70 {
        run = restart(&mut run, MIRROR, &[]).unwrap_or_else(|error| panic!("start {nth}: {error}"));
    }
    let run = again_with(run, MIRROR, (1, old), End::Killed).expect("two of three");
    assert!(is_brought_up_to_date(run, 1, "seventy starts ago"));
}

/// All disks as they were at one time are the pool as it was then.
#[test]
fn a_pool_that_is_put_back_as_a_whole_starts() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let mut before = run.witness.oracle.clone();
    before.crash(Promise::Acknowledged);
    let old = images(&mut run, MIRROR.0);
    let mut run = restart(&mut run, MIRROR, &[]).expect("all disks are here");
    fill(&mut run);
    drop(run);
    let mut run = Run::start(&shape(MIRROR), old, &[], before, 3).expect("it is a pool");
    reads_well(&mut run);
    assert!(!heard(&mut run).contains(&"disk-outdated"));
}

/// Starts that are cut short leave disks at different epochs, and none of them is an older copy.
#[test]
fn starts_that_are_cut_short_make_no_disk_an_older_copy() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let mut left = images(&mut run, MIRROR.0);
    let mut expected = run.witness.oracle.clone();
    expected.crash(Promise::Acknowledged);
    // Disk 2 is never reached: each start is cut short before it writes there.
    for seed in 0..5 {
        let kept = left[2].clone();
        let mut cut = Run::start(&shape(MIRROR), left.clone(), &[], expected.clone(), 10 + seed)
            .expect("all disks are here");
        let trace = cut.engine.queue_mut().take_trace();
        let mut replay = Replay::new(&trace, 512);
        // While the epoch is raised: before anything but superblocks is written.
        replay.advance_to(2 + plumb_units::convert::to_usize(seed));
        left = replay.crash(CrashKind::Power, &[], Survivors::All, seed).0;
        left[2] = kept;
    }
    let mut run = Run::start(&shape(MIRROR), left, &[], expected, 30).expect("all disks are here");
    assert_eq!(run.engine.returning(), &[] as &[u16]);
    reads_well(&mut run);
}

/// An older copy is brought up to date as a whole. What lay nowhere then, and is mapped when another disk is away, has its only
/// current copy on that disk; a start after it reads that one.
fn mapped_behind(disk: usize, away: u32) -> Result<(), String> {
    let first = |nth: u64| (0..4).map(move |extent| write(extent * 16 + nth)).chain([flush()]);
    let mut run = start(MIRROR);
    done(&mut run, &first(0).collect::<Vec<_>>())?;
    let old = images(&mut run, MIRROR.0)[disk].clone();
    let mut run = restart(&mut run, MIRROR, &[]).expect("all disks are here");
    done(&mut run, &first(1).collect::<Vec<_>>())?;
    let mut expected = run.witness.oracle.clone();
    expected.crash(Promise::Acknowledged);
    let mut left = images(&mut run, MIRROR.0);
    left[disk] = old;
    let mut run = Run::start(&shape(MIRROR), left, &[], expected, 3).expect("two of three");
    run.sound = false;
    run.attach_returning();
    rest(&mut run, 4);
    assert_eq!((state(&run, disk), run.engine.stale_places()), (DiskState::Online, 0));
    die(&mut run, away);
    let later: Vec<Step> = (4..8).map(|extent| write(extent * 16)).chain([flush()]).collect();
    done(&mut run, &later)?;
    assert_eq!(state(&run, usize::try_from(away).expect("small")), DiskState::Missing);
    for absent in [vec![away], vec![]] {
        let mut again = restart(&mut run, MIRROR, &absent).map_err(|error| error.to_string())?;
        again.read_all(Promise::Acknowledged, 0)?;
        again.attach_returning();
        rest(&mut again, 4);
        again.read_all(Promise::Acknowledged, 1)?;
    }
    Ok(())
}

#[test]
fn what_is_mapped_behind_the_return_of_an_older_copy_is_up_to_date_there() {
    needs(Mutation::UnmappedStayStale, || {
        let pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
        pairs.into_iter().try_for_each(|(disk, away)| {
            mapped_behind(disk, away).map_err(|wrong| format!("{disk}, {away} away: {wrong}"))
        })
    });
}
