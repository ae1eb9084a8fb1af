//! Disks that hold the last copy of something and fail, hang or stay away: what they hold is neither lost nor
//! overwritten by what comes late.

use std::collections::BTreeSet;
use std::ops::Range;

use plumb_io::sim::power::{Image, Survivors};
use plumb_units::Nanos;

use super::faults::{
    MIRROR, SIMPLE, done, fill, first_block, flush, health, heard, images, reads_well, rest,
    restart, shape, start, state, write,
};
use super::history::{CLIENT_BYTES, CLIENTS, Shape, Step};
use super::left_out::needs;
use super::oracle::{Oracle, Promise};
use super::run::{Run, queue};
use crate::format::DiskState;
use crate::mutation::{Mutation, set};
use crate::pool::{Chronicle, Facts, Findings, HealthStatus, Registry, judge};
use crate::{Engine, Halt, RequestKind, StartError};

/// Of three disks with one copy of everything, two are more than half.
const SIMPLE3: (u32, u32, u8, u64) = (3, 0, 1, 0);

fn nth(disk: u32) -> usize {
    usize::try_from(disk).expect("small")
}

/// Both areas of a disk's configuration.
fn configuration(of: (u32, u32, u8, u64)) -> (u64, u64) {
    let geometry = shape(of).geometry();
    (geometry.config(0), geometry.config(0) + 2 * geometry.config_bytes)
}

/// A generation that it does not take costs such a disk its vote, and nothing of what it holds (RES-2).
#[test]
fn a_last_copys_disk_that_does_not_take_a_generation_keeps_its_data() {
    let mut run = start(SIMPLE3);
    fill(&mut run);
    let disk = first_block(SIMPLE3, &run)[0].0;
    run.engine.queue_mut().faults_mut(disk).unwritable = vec![configuration(SIMPLE3)];
    let other = u16::try_from((disk + 1) % 3).expect("small");
    run.engine.leave(other).expect("there is room");
    rest(&mut run, 1);
    assert_eq!(state(&run, nth(disk)), DiskState::Online, "{:?}", heard(&mut run));
    assert_eq!(run.engine.halted(), None);
    reads_well(&mut run);
    let mut again = restart(&mut run, SIMPLE3, &[]).expect("the others are enough");
    reads_well(&mut again);
}

/// Those that go on are at least half of a list that all others know (LAY-3), also where disks that are needed fail one
/// after the other.
#[test]
fn fewer_than_half_of_a_list_do_not_go_on() {
    let mut run = start(SIMPLE3);
    fill(&mut run);
    let end = shape(SIMPLE3).geometry().slab(0);
    let rows = &run.engine.config().vdisks[0].tiers[0].rows;
    let needed = [&rows[0], &rows[1]].map(|row| u32::from(row.slabs[0].0));
    assert_ne!(needed[0], needed[1]);
    for disk in needed {
        run.engine.queue_mut().faults_mut(disk).unwritable = vec![(0, end)];
    }
    run.engine.checkpoint();
    rest(&mut run, 1);
    let votes = run.engine.config().voters.clone();
    let told = heard(&mut run);
    assert_eq!(run.engine.halted(), Some(Halt::Voters), "{votes:?}, {told:?}");
    assert!(told.contains(&"halted") && health(&run).0 >= HealthStatus::Unhealthy, "{told:?}");
}

/// Two of three begin a start, and one of them does not take its generation: the one that is left is less than half of
/// the list that the other two know.
#[test]
fn a_start_that_loses_a_disk_on_its_way_is_not_finished_by_fewer_than_half() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let shape = shape(MIRROR);
    let mut made = queue(&shape, images(&mut run, MIRROR.0), 7, true);
    made.faults_mut(2).dead_from = Some(0);
    made.faults_mut(1).unwritable = vec![configuration(MIRROR)];
    let refused = Engine::start(&mut made, shape.plan(), CLIENTS + 1, CLIENT_BYTES, 9);
    let refused = refused.map(|engine| engine.config().voters.clone());
    assert_eq!(refused.err(), Some(StartError::Halted { source: Halt::Voters }));
}

/// What a disk was given and did not answer in time may land at any moment: nothing newer is written there before (RES-10).
#[test]
fn what_a_last_copys_disk_does_late_lands_on_nothing_newer() {
    let mut run = start(SIMPLE);
    fill(&mut run);
    rest(&mut run, 8);
    let disk = first_block(SIMPLE, &run)[0].0;
    let ios = run.engine.queue_mut().ios(disk);
    run.engine.queue_mut().faults_mut(disk).hangs_from = Some(ios);
    // The extent is closed: the first of these is its intent, if the journal is there.
    let mut late = Ok(());
    for _ in 0..2 {
        late = late.and_then(|()| done(&mut run, &[write(0)]));
    }
    late.expect_err("its only copy hangs");
    // One command is stuck, the others go on.
    run.engine.queue_mut().faults_mut(disk).hangs_from = None;
    heard(&mut run);
    let newer = done(&mut run, &[write(0)]);
    assert!(!heard(&mut run).contains(&"disk-failing"), "that was said, and nobody waits again");
    let read = Step::Request { client: 3, kind: RequestKind::Read, offset: 4 * 4096, len: 4096 };
    done(&mut run, &[read]).expect("what it has is read");
    run.engine.queue_mut().repair(disk);
    rest(&mut run, 1);
    if newer.is_ok() {
        reads_well(&mut run);
    }
    // It has answered everything: what is written now is there.
    done(&mut run, &[write(0)]).expect("it works again");
    reads_well(&mut run);
    let mut again = restart(&mut run, SIMPLE, &[]).expect("both are here");
    reads_well(&mut again);
}

/// One copy is away, and then the other one, which alone has what was written meanwhile: it misses nothing while it is away,
/// for nothing can be written there without it; nor is its place given to another disk (RES-2).
#[test]
fn the_last_copy_in_sync_is_not_stale_because_its_disk_is_away() {
    let of = (5, 0, 2, 0);
    for (attached, given_up) in [(false, false), (true, false), (true, true)] {
        let case = format!("attached {attached}, given up {given_up}");
        let mut run = start(of);
        fill(&mut run);
        let places = first_block(of, &run);
        let (first, other) = (places[0].0, places[1].0);
        done(&mut run, &[write(0), write(16)]).expect("nothing is wrong yet");
        let mut run = restart(&mut run, of, &[first]).expect("four of five");
        done(&mut run, &[write(0), write(5), flush()]).expect("the other copy takes it");
        let mut run = restart(&mut run, of, &[other]).expect("four of five");
        if attached {
            run.attach_returning();
        }
        if given_up {
            run.engine.retire_missing();
        }
        rest(&mut run, 6);
        done(&mut run, &[write(0)]).expect_err("the only copy in sync is away");
        let mut run = restart(&mut run, of, &[]).expect("all are here");
        run.attach_returning();
        rest(&mut run, 6);
        for disk in 0..5 {
            assert_eq!(state(&run, disk), DiskState::Online, "{case}");
        }
        assert_eq!(run.engine.stale_places(), 0, "{case}");
        run.read_all(Promise::Acknowledged, 0).unwrap_or_else(|wrong| panic!("{case}: {wrong}"));
        reads_well(&mut run);
    }
}

/// The test above sees it when the last copy is marked.
#[test]
fn a_last_copy_that_is_marked_is_lost() {
    set(Some(Mutation::LastCopyMarked));
    let of = (5, 0, 2, 0);
    let mut run = start(of);
    fill(&mut run);
    let places = first_block(of, &run);
    done(&mut run, &[write(0), write(16)]).expect("nothing is wrong yet");
    for place in places {
        run = restart(&mut run, of, &[place.0]).expect("four of five");
        // The second one fails: no copy that is in sync is here.
        let _ = done(&mut run, &[write(0), write(5)]);
    }
    let mut run = restart(&mut run, of, &[]).expect("all are here");
    run.attach_returning();
    rest(&mut run, 6);
    let stale = run.engine.stale_places();
    let read = run.read_all(Promise::Acknowledged, 0);
    set(None);
    assert!(stale > 0 && read.is_err(), "{stale} places stale, {read:?}");
}

/// What is left when the engine dies, or the power goes with what was not flushed.
pub(super) fn cut(
    run: &mut Run,
    disks: u32,
    power: Option<Survivors>,
) -> (Vec<Image>, Oracle, Promise) {
    let promise = if power.is_some() { Promise::Durable } else { Promise::Acknowledged };
    for disk in (0..disks).filter(|_| power.is_some()) {
        run.engine.queue_mut().drop_cache(disk, power.unwrap_or(Survivors::None));
    }
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(promise);
    (images(run, disks), oracle, promise)
}

/// A first write that was acknowledged; a start in which the disk of its only copy fails a flush; writes over it; a start
/// with a disk that is well. What is wrong then, if anything.
fn written_over_where_a_start_cannot_flush(
    flushes: Range<u64>,
    flushed: bool,
    power: Option<Survivors>,
) -> Result<bool, String> {
    let of = SIMPLE3;
    let shape = shape(of);
    let mut run = start(of);
    done(&mut run, &[write(16)])?;
    rest(&mut run, 8);
    done(&mut run, &[write(0)])?;
    let disk = first_block(of, &run)[0].0;
    let (left, oracle, _) = cut(&mut run, of.0, None);
    let mut made = queue(&shape, left.clone(), 7, true);
    made.faults_mut(disk).flush_errors = flushes.collect();
    let Ok(mut run) = Run::start_on(&shape, made, oracle, 8) else { return Ok(false) };
    run.let_any_fail((0..of.0).collect(), (0..of.0).collect());
    run.read_what_is_there(Promise::Acknowledged, 0)?;
    let overwrite = match flushed {
        true => vec![write(0), write(1), flush()],
        false => vec![write(0), write(1)],
    };
    done(&mut run, &overwrite)?;
    let (left, oracle, promise) = cut(&mut run, of.0, power);
    let mut again = Run::start(&shape, left, &[], oracle, 9).map_err(|error| error.to_string())?;
    again.sound = false;
    again.attach_returning();
    rest(&mut again, 2);
    again.read_all(promise, 0)?;
    done(&mut again, &[write(0), write(1), flush()])?;
    again.read_all(Promise::Acknowledged, 1)?;
    let (left, oracle, _) = cut(&mut again, of.0, Some(Survivors::None));
    let last = Run::start(&shape, left, &[], oracle, 10).map_err(|error| error.to_string());
    last?.read_all(Promise::Durable, 0).map(|()| true)
}

/// All flushes of a start that may fail, alone or with all that follow, and all that may be left afterwards.
fn starts_that_cannot_flush() -> (u32, Vec<String>) {
    let (mut started, mut wrong) = (0, Vec::new());
    for nth in 0..16 {
        for end in [nth + 1, 4096] {
            for flushed in [false, true] {
                let some = [Survivors::None, Survivors::Some, Survivors::Few].map(Some);
                for power in std::iter::once(None).chain(some) {
                    match written_over_where_a_start_cannot_flush(nth..end, flushed, power) {
                        Ok(starts) => started += u32::from(starts),
                        Err(what) => wrong
                            .push(format!("{nth}..{end}, flushed {flushed}, {power:?}: {what}")),
                    }
                }
            }
        }
    }
    (started, wrong)
}

/// What a start cannot make durable is tentative still, and not written over (CRC-2, C10): written over it would be taken
/// for unwritten by the next start.
#[test]
fn what_a_start_could_not_confirm_is_not_written_over() {
    let (started, wrong) = starts_that_cannot_flush();
    println!("{started} cases");
    assert!(wrong.is_empty(), "{} of {started}: {wrong:#?}", wrong.len());
    assert!(started > 200);
}

/// The test above sees it.
#[test]
fn what_is_written_over_unconfirmed_is_lost() {
    set(Some(Mutation::UnconfirmedOverwritten));
    let (_, wrong) = starts_that_cannot_flush();
    set(None);
    assert!(wrong.iter().any(|wrong| wrong.contains("is zero")), "{wrong:#?}");
}

/// A first write that its only disk did not take; its extent closes, and the engine dies. What is read then.
fn read_after_a_first_write_that_failed() -> Result<(), String> {
    let mut run = start(SIMPLE);
    fill(&mut run);
    let disk = first_block(SIMPLE, &run)[0].0;
    done(&mut run, &[write(2)])?;
    let ios = run.engine.queue_mut().ios(disk);
    run.engine.queue_mut().faults_mut(disk).write_errors = (ios..ios + 4).collect();
    done(&mut run, &[write(1)]).expect_err("its only copy did not take it");
    run.engine.queue_mut().repair(disk);
    rest(&mut run, 16);
    let mut again = restart(&mut run, SIMPLE, &[]).map_err(|error| error.to_string())?;
    again.read_all(Promise::Acknowledged, 0)
}

/// It is unwritten, or written: not what nobody can read.
#[test]
fn a_first_write_that_failed_leaves_nothing_that_cannot_be_read() {
    read_after_a_first_write_that_failed().expect("all can be read");
    set(Some(Mutation::FailedFirstKept));
    let wrong = read_after_a_first_write_that_failed();
    set(None);
    assert!(wrong.is_err(), "it is not noticed");
}

/// A disk that was away at one start is what it was.
#[test]
fn a_disk_that_was_away_at_a_start_brings_back_what_only_it_holds() {
    for disk in 0..3 {
        let mut run = start(SIMPLE3);
        fill(&mut run);
        let mut away = restart(&mut run, SIMPLE3, &[disk]).expect("two of three");
        rest(&mut away, 1);
        let mut again = restart(&mut away, SIMPLE3, &[]).expect("all are here");
        again.attach_returning();
        rest(&mut again, 4);
        again.read_all(Promise::Durable, 0).unwrap_or_else(|wrong| panic!("disk {disk}: {wrong}"));
    }
}

/// A disk that holds the only copy of the first block failed a write to it, and works again: the run, the disk, its ordinal.
pub(super) fn failed_once() -> (Run, u32, u16) {
    let mut run = start(SIMPLE);
    fill(&mut run);
    let disk = first_block(SIMPLE, &run)[0].0;
    let own = u16::try_from(disk).expect("small");
    let ios = run.engine.queue_mut().ios(disk);
    run.engine.queue_mut().faults_mut(disk).write_errors = (ios..ios + 4).collect();
    done(&mut run, &[write(0)]).expect_err("its only copy did not take it");
    run.engine.queue_mut().repair(disk);
    (run, disk, own)
}

/// A last copy's disk that failed votes again without another start, once it has worked for a minute: else whoever is left with that disk alone would go by
/// the journal that it had when it failed.
#[test]
fn a_last_copys_disk_that_works_again_votes_after_a_while() {
    let (mut run, disk, own) = failed_once();
    rest(&mut run, 40);
    assert!(!run.engine.config().voters.contains(&own), "it is on probation");
    assert_eq!(health(&run).0, HealthStatus::Warning, "one copy of the journal is told");
    rest(&mut run, 40);
    let config = run.engine.config();
    assert!(config.voters.contains(&own) && config.disks[nth(disk)].metadata);
    // It is one to be replaced all the same, until an operator says otherwise.
    let says = |run: &Run| judge(&Facts::running(&run.engine)).disks[nth(disk)].operational;
    assert_eq!((health(&run).0, says(&run)), (HealthStatus::Warning, "IO Error"));
    run.engine.clear_failures(own);
    assert_eq!((health(&run).0, says(&run)), (HealthStatus::Healthy, "OK"));
    let mut again = restart(&mut run, SIMPLE, &[]).expect("both are here");
    reads_well(&mut again);
}

/// What is written down of it beside the list of pools stays over starts, and the disk's vote, until an operator clears it.
#[test]
fn a_last_copys_disk_that_failed_once_is_told_after_the_program_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = Registry::at(folder.path());
    let (mut run, disk, own) = failed_once();
    let id = run.engine.config().disks[nth(disk)].id;
    let told = || Findings::of(&registry, "p").failures_of(id);
    Chronicle::begin(&registry, "p").end(&mut run.engine);
    assert_eq!(told(), 1);
    rest(&mut run, 80);
    assert!(run.engine.config().voters.contains(&own));
    let mut again = restart(&mut run, SIMPLE, &[]).expect("both are here");
    rest(&mut again, 2);
    let mut chronicle = Chronicle::begin(&registry, "p");
    chronicle.watch(&mut again.engine);
    assert_eq!((told(), again.engine.disk_use(own).stayed), (1, 0));
    again.engine.clear_failures(own);
    chronicle.end(&mut again.engine);
    assert_eq!(told(), 0);
}

/// A disk that counts for a start has what a start needs.
#[test]
fn a_vote_comes_with_journal_and_map() {
    needs(Mutation::VoteFirst, || {
        let (mut run, disk, own) = failed_once();
        rest(&mut run, 2);
        let mut again = restart(&mut run, SIMPLE, &[]).map_err(|error| error.to_string())?;
        for _ in 0..400 {
            again.engine.queue_mut().advance(Nanos::from_millis(1));
            again.poll();
            let config = again.engine.config();
            if config.voters.contains(&own) {
                let has = config.disks[nth(disk)].metadata;
                return if has { Ok(()) } else { Err("a vote without a journal".to_owned()) };
            }
        }
        Err("it never votes".to_owned())
    });
}

/// One write that failed costs a last copy's disk its vote for this life of the pool, not for good: else the journal
/// would be on one disk of two from then on, and nobody the wiser.
#[test]
fn a_last_copys_disk_votes_again_after_the_next_start() {
    let (mut run, disk, own) = failed_once();
    rest(&mut run, 2);
    assert!(!run.engine.config().voters.contains(&own), "it failed");
    for metadata_fails in [true, false] {
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Acknowledged);
        let left = images(&mut run, SIMPLE.0);
        run = Run::start(&shape(SIMPLE), left, &[], oracle, 4).expect("both are here");
        run.sound = false;
        if metadata_fails {
            run.engine.queue_mut().faults_mut(disk).unwritable = vec![configuration(SIMPLE)];
        }
        rest(&mut run, 2);
        reads_well(&mut run);
        let config = run.engine.config();
        assert_eq!(run.engine.halted(), None);
        assert_eq!(config.voters.contains(&own), !metadata_fails, "{:?}", config.voters);
        assert_eq!(config.disks[nth(disk)].metadata, !metadata_fails);
        assert_eq!(config.disks[nth(disk)].state, DiskState::Online);
    }
    // Each of the two has all that a start needs.
    let mut again = restart(&mut run, SIMPLE, &[]).expect("both are here");
    reads_well(&mut again);
}

/// The same of what was acknowledged, and what it did not flush, when the engine died: it is settled by the first start
/// that finds the disk among the others.
#[test]
fn what_a_disk_that_was_away_had_not_flushed_is_settled_when_it_is_back() {
    for disk in 0..3 {
        let mut run = start(SIMPLE3);
        fill(&mut run);
        let steps: Vec<Step> =
            (0..8).flat_map(|nth| [write(nth * 16), write(nth * 16 + 7)]).collect();
        done(&mut run, &steps).expect("nothing is wrong yet");
        let mut away = restart(&mut run, SIMPLE3, &[disk]).expect("two of three");
        rest(&mut away, 1);
        let mut again = restart(&mut away, SIMPLE3, &[]).expect("all are here");
        again.attach_returning();
        rest(&mut again, 4);
        let mut settled = restart(&mut again, SIMPLE3, &[]).expect("all are here");
        settled.sound = false;
        let read = settled.read_all(Promise::Acknowledged, 0);
        read.unwrap_or_else(|wrong| panic!("disk {disk}: {wrong}"));
    }
}

/// A disk beyond those that vote is told of no generation, however many there were.
#[test]
fn a_disk_that_does_not_vote_is_known_after_any_number_of_starts() {
    let of = (17, 0, 2, 0);
    let mut run = start(of);
    assert_eq!(run.engine.config().voters.len(), 16);
    fill(&mut run);
    let first = run.engine.config().generation.number;
    for nth in 0..70 {
        run = restart(&mut run, of, &[]).unwrap_or_else(|error| panic!("start {nth}: {error}"));
    }
    assert!(run.engine.config().generation.number >= first + 70);
    assert_eq!((state(&run, 16), run.engine.returning()), (DiskState::Online, &[] as &[u16]));
    reads_well(&mut run);
}

/// Sixteen disks vote and no more, whoever comes back (LAY-3); journal and tree lie on those.
#[test]
fn a_disk_beyond_those_that_vote_comes_back_as_such() {
    let of = (18, 0, 2, 0);
    let mut run = start(of);
    fill(&mut run);
    let votes = |run: &Run, of: &[u16]| {
        let config = run.engine.config();
        assert!(config.voters.len() <= 16, "{:?}", config.voters);
        assert!(config.voters.iter().all(|voter| !of.contains(voter)), "{:?}", config.voters);
        let keeps = |disk: &u16| config.disks[usize::from(*disk)].metadata;
        let keep: Vec<u16> = (0..18).filter(keeps).collect();
        assert!(
            keep.len() == 3 && keep.iter().all(|disk| config.voters.contains(disk)),
            "{keep:?}"
        );
        assert!(config.disks.iter().all(|disk| disk.state == DiskState::Online));
    };
    let away_and_back = |run: &mut Run, disk: u16| {
        run.engine.take_offline(disk);
        rest(run, 1);
        assert_eq!(state(run, disk.into()), DiskState::Missing);
        run.engine.attach(disk);
        rest(run, 2);
    };
    away_and_back(&mut run, 16);
    votes(&run, &[16, 17]);
    reads_well(&mut run);
    // One takes the place of another that votes and keeps metadata; that one then comes back without a vote.
    run.engine.take_offline(0);
    rest(&mut run, 1);
    assert_eq!(state(&run, 0), DiskState::Missing);
    away_and_back(&mut run, 17);
    run.engine.attach(0);
    rest(&mut run, 2);
    votes(&run, &[0, 16]);
    reads_well(&mut run);
    // A disk without a vote is known for what it is at the next start, and when it was away at one.
    for absent in [vec![], vec![0], vec![]] {
        let mut next = restart(&mut run, of, &absent).expect("enough of them");
        next.attach_returning();
        rest(&mut next, 2);
        reads_well(&mut next);
        run = next;
    }
    votes(&run, &[0, 16]);
}

/// Disks are known by what they say of themselves, not by the order in which they are named.
#[test]
fn a_disk_that_hangs_at_the_start_is_not_taken_for_another_one() {
    for hung in 0..3_u32 {
        let mut run = start(MIRROR);
        fill(&mut run);
        let mut named = images(&mut run, MIRROR.0);
        named.rotate_left(1);
        let shape: Shape = shape(MIRROR);
        let mut made = queue(&shape, named, 7, true);
        made.faults_mut(hung).hangs_from = Some(0);
        let engine = Engine::start(made, shape.plan(), CLIENTS + 1, CLIENT_BYTES, 9);
        let mut engine = engine.unwrap_or_else(|error| panic!("file {hung}: {error}"));
        let missing: Vec<u16> = (0_u16..)
            .zip(&engine.config().disks)
            .filter(|(_, disk)| disk.state != DiskState::Online)
            .map(|(disk, _)| disk)
            .collect();
        assert_eq!(missing, [u16::try_from((hung + 1) % 3).expect("small")], "file {hung}");
        let told: Vec<_> = std::iter::from_fn(|| engine.next_event()).collect();
        assert!(told.iter().any(|event| event.name() == "disk-lost"), "{told:?}");
        let health = crate::pool::judge(&crate::pool::Facts::running(&engine));
        assert_eq!(health.worst(), crate::pool::HealthStatus::Warning, "file {hung}");
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Acknowledged);
        let mut run = Run::go_on_with(&shape, engine, oracle);
        run.sound = false;
        run.read_all(Promise::Acknowledged, 0).expect("two disks have all of it");
    }
}

/// Without the state that a checkpoint left in the journal nothing is known: no start pretends otherwise.
#[test]
fn a_journal_without_the_state_of_its_checkpoint_is_refused() {
    let of = super::faults::TIERED;
    let mut run = start(of);
    fill(&mut run);
    done(&mut run, &[write(112), write(96), write(80), flush()]).expect("some of it in the cache");
    run.engine.checkpoint();
    rest(&mut run, 1);
    let geometry = shape(of).geometry();
    let pool = run.engine.config().pool;
    let mut images = images(&mut run, of.0);
    let page = |image: &plumb_io::sim::power::Image, at: u64| {
        let mut bytes = vec![0; 4096];
        image.read(at, &mut bytes);
        bytes
    };
    for image in &mut images {
        let pages = [0, 4096].map(|at| page(image, geometry.journal() + at));
        let newest = pages
            .iter()
            .filter_map(|bytes| crate::format::page::Checkpoint::decode(pool, bytes))
            .max_by_key(|page| page.sequence);
        let Some(newest) = newest else { continue };
        image.write(geometry.ring(newest.link.position), &[0x5a; 4096]);
    }
    let mut expected = run.witness.oracle.clone();
    expected.crash(Promise::Acknowledged);
    let refused = Run::start(&shape(of), images, &[], expected, 5).map(|mut run| {
        run.sound = false;
        let read = run.read_all(Promise::Durable, 0);
        format!("it starts, and reads {read:?}")
    });
    assert_eq!(refused.map(|_| ()).err(), Some(StartError::Metadata { what: "journal" }));
}

/// Both disks of a row are away when extents are mapped there. One comes back and takes what is written; the other one is given
/// up, and its place goes to a third disk. Then the engine dies.
fn read_after_a_row_changed() -> Result<(), String> {
    let of = (4, 0, 2, 0);
    let mut run = start(of);
    run.let_any_fail(BTreeSet::new(), (0..of.0).collect());
    let row = |run: &Run| -> Vec<u32> {
        let row = &run.engine.config().vdisks[0].tiers[0].rows[0];
        row.slabs.iter().map(|slab| slab.0.into()).collect()
    };
    let [gone, back] = row(&run)[..] else { return Err("it has two copies".to_owned()) };
    for disk in [gone, back] {
        run.take(&[Step::Offline { disk }])?;
        rest(&mut run, 1);
    }
    // Nobody takes it.
    done(&mut run, &[write(0)])?;
    assert!([gone, back].iter().all(|disk| state(&run, nth(*disk)) == DiskState::Missing));
    run.take(&[Step::Back { disk: back }])?;
    rest(&mut run, 1);
    done(&mut run, &[write(0), write(17), flush()])?;
    run.engine.retire_missing();
    for _ in 0..400 {
        if row(&run).contains(&gone) {
            run.poll();
        }
    }
    // Before anything is copied there.
    assert!(run.engine.stale_places() > 0);
    assert!(!row(&run).contains(&gone) && row(&run).contains(&back), "{:?}", row(&run));
    let mut again = restart(&mut run, of, &[]).map_err(|error| error.to_string())?;
    again.read_all(Promise::Acknowledged, 0)?;
    rest(&mut again, 2);
    assert_eq!(again.engine.stale_places(), 0);
    again.read_all(Promise::Acknowledged, 1)
}

/// The copy that took them is not taken for out of date.
#[test]
fn a_row_that_changed_keeps_the_copy_that_is_up_to_date() {
    read_after_a_row_changed().expect("it is read from the one that came back");
    set(Some(Mutation::MarksImplied));
    let wrong = read_after_a_row_changed();
    set(None);
    println!("{wrong:?}");
    assert!(wrong.is_err(), "it is not noticed");
}
