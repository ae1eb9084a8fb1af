//! What writes leave that fail, where nobody else has what they were to write over, and what a disk lacks that failed and
//! stayed: nothing that cannot be read, and no copy less than is told.

use plumb_io::sim::power::{DiskFaults, Survivors};
use plumb_units::Nanos;

use super::faults::{
    MIRROR, SIMPLE, TIERED, done, fill, first_block, flush, health, images, rest, restart, shape,
    start, state, write,
};
use super::history::{CLIENTS, Shape, Step};
use super::oracle::Promise;
use super::run::{Run, queue, start_engine};
use crate::RequestKind;
use crate::format::DiskState;
use crate::mutation::{Mutation, set};
use crate::pool::HealthStatus;

/// What becomes of a write over old content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fails {
    /// The disk says at once that it failed, and did some of it.
    AtOnce,
    /// It is given up, and done long after that.
    Late,
}

/// Writes over old content of four blocks, which their only disk does not take; their extent would close; with `dies` the
/// engine dies and starts. What is read then.
fn read_after_overwrites_that_failed(
    fails: Fails,
    durable: bool,
    dies: bool,
) -> Result<(), String> {
    let mut run = start(SIMPLE);
    fill(&mut run);
    let disk = first_block(SIMPLE, &run)[0].0;
    let all: Vec<Step> = (0..4).map(write).chain(durable.then(flush)).collect();
    done(&mut run, &all)?;
    if durable {
        rest(&mut run, 1);
    }
    done(&mut run, &[write(4)])?;
    for block in 0..4 {
        let ios = run.engine.queue_mut().ios(disk);
        let faults = run.engine.queue_mut().faults_mut(disk);
        match fails {
            Fails::AtOnce => faults.write_errors = (ios..ios + 40).collect(),
            // What comes behind it fails at once, for it could land on that.
            Fails::Late if block > 0 => {}
            Fails::Late => (faults.hangs_from, faults.hangs_to) = (Some(ios), Some(ios + 1)),
        }
        done(&mut run, &[write(block)]).expect_err("its only copy did not take it");
    }
    if fails == Fails::Late {
        // Nobody decides what may still change.
        rest(&mut run, 16);
    }
    run.engine.queue_mut().repair(disk);
    rest(&mut run, 16);
    match dies {
        true => {
            let again = restart(&mut run, SIMPLE, &[]);
            run = again.map_err(|error| error.to_string())?;
        }
        false => run.sound = false,
    }
    run.read_all(Promise::Acknowledged, 0)?;
    run.read_all(Promise::Acknowledged, 1)?;
    done(&mut run, &[write(0), write(1), flush()])?;
    rest(&mut run, 16);
    let mut last = restart(&mut run, SIMPLE, &[]).map_err(|error| error.to_string())?;
    last.read_all(Promise::Acknowledged, 0)
}

fn overwrites_that_failed() -> Vec<String> {
    let mut wrong = Vec::new();
    for fails in [Fails::AtOnce, Fails::Late] {
        for (durable, dies) in [(false, false), (false, true), (true, false), (true, true)] {
            if let Err(what) = read_after_overwrites_that_failed(fails, durable, dies) {
                wrong.push(format!("{fails:?}, durable {durable}, dies {dies}: {what}"));
            }
        }
    }
    wrong
}

/// Each block is its old content, or the new one, or some sectors of either: not what nobody can read (CRC-3).
#[test]
fn an_overwrite_that_failed_leaves_nothing_that_cannot_be_read() {
    let wrong = overwrites_that_failed();
    assert!(wrong.is_empty(), "{wrong:#?}");
    set(Some(Mutation::FailedOverwriteClosed));
    let wrong = overwrites_that_failed();
    set(None);
    assert!(!wrong.is_empty(), "it is not noticed");
}

/// Blocks of several extents are neither, and all are read at the same time.
fn read_at_once_after_overwrites_that_failed() -> Result<(), String> {
    let mut run = start(SIMPLE);
    fill(&mut run);
    let all: Vec<Step> =
        (0..8).flat_map(|nth| (0..4).map(move |at| write(nth * 16 + at))).collect();
    done(&mut run, &all)?;
    let disk = first_block(SIMPLE, &run)[0].0;
    for nth in 0..32 {
        let ios = run.engine.queue_mut().ios(disk);
        run.engine.queue_mut().faults_mut(disk).write_errors = (ios..ios + 40).collect();
        // Some lie on the other disk, which takes them.
        let _ = done(&mut run, &[write(nth / 4 * 16 + nth % 4)]);
    }
    run.engine.queue_mut().repair(disk);
    let read = |client: u32| Step::Request {
        client,
        kind: RequestKind::Read,
        offset: u64::from(client) * 65_536,
        len: 16_384,
    };
    done(&mut run, &(0..CLIENTS).map(read).collect::<Vec<Step>>())
}

/// Each waits for its own.
#[test]
fn several_extents_are_settled_at_a_time() {
    read_at_once_after_overwrites_that_failed().expect("all can be read");
    set(Some(Mutation::SettledOnce));
    let wrong = read_at_once_after_overwrites_that_failed();
    set(None);
    assert!(wrong.is_err(), "it is not noticed");
}

/// A read takes one block from the cache, and waits until the others, which a write left half done, are settled.
fn read_beside_the_cache_after_an_overwrite_that_failed() -> Result<(), String> {
    let of = (3, 1, 1, 144 << 10);
    let mut run = start(of);
    fill(&mut run);
    // Behind those they are of a sequential stream, and go past the cache (6.1 rule 6).
    let long = |block: u64| Step::Request {
        client: 0,
        kind: RequestKind::Write { fua: false },
        offset: block * 4096,
        len: 7 * 4096,
    };
    let over = long(113);
    done(&mut run, &[long(121), over, flush()])?;
    let ios = run.engine.queue_mut().ios(2);
    run.engine.queue_mut().faults_mut(2).write_errors = (ios..ios + 40).collect();
    done(&mut run, &[over]).expect_err("its only copy did not take it");
    run.engine.queue_mut().repair(2);
    run.sound = false;
    assert!(run.engine.cached_blocks(0) > 0, "some are in the cache");
    let kind = RequestKind::Read;
    done(&mut run, &[Step::Request { client: 3, kind, offset: 112 * 4096, len: 8 * 4096 }])
}

/// What is read again is counted once (CNT-1).
#[test]
fn a_read_that_begins_anew_is_counted_once() {
    read_beside_the_cache_after_an_overwrite_that_failed().expect("it can be read");
    set(Some(Mutation::CountedTwice));
    let wrong = read_beside_the_cache_after_an_overwrite_that_failed();
    set(None);
    assert!(wrong.is_err_and(|wrong| wrong.contains("CNT-1")), "it is not noticed");
}

/// Copies of a block differ after a crash, and a disk that is needed does not take what the other one has. Later the other
/// one is to go.
fn read_after_a_start_that_cannot_make_equal() -> Result<(), String> {
    let mut run = start(MIRROR);
    fill(&mut run);
    let mut places = first_block(MIRROR, &run);
    let next: Vec<u32> = run.engine.config().vdisks[0].tiers[0].rows[1]
        .slabs
        .iter()
        .map(|slab| u32::from(slab.0))
        .collect();
    // The second one has the next row with the third disk: without that it is needed.
    places.sort_by_key(|place| next.contains(&place.0));
    let [(one, _), (other, at)] = [places[0], places[1]];
    let third = (0..3).find(|disk| *disk != one && *disk != other).unwrap_or(0);
    assert!(next.contains(&other) && next.contains(&third));
    run.engine.take_offline(u16::try_from(third).expect("small"));
    rest(&mut run, 1);
    done(&mut run, &[write(0)])?;
    done(&mut run, &[flush()])?;
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut left = images(&mut run, MIRROR.0);
    left[usize::try_from(other).expect("small")].write(at, &[0x5a; 4096]);
    let shape: Shape = shape(MIRROR);
    let mut made = queue(&shape, left, 7, true);
    made.faults_mut(other).unwritable = vec![(at, at + 4096)];
    let mut run = Run::start_on(&shape, made, oracle, 8).map_err(|error| error.to_string())?;
    run.let_any_fail((0..3).collect(), (0..3).collect());
    run.engine.attach(u16::try_from(third).expect("small"));
    rest(&mut run, 2);
    run.engine.take_offline(u16::try_from(one).expect("small"));
    rest(&mut run, 2);
    run.read_all(Promise::Acknowledged, 0)?;
    run.engine.queue_mut().repair(other);
    run.engine.attach(u16::try_from(one).expect("small"));
    let mut again = restart(&mut run, MIRROR, &[]).map_err(|error| error.to_string())?;
    again.attach_returning();
    rest(&mut again, 4);
    assert_eq!(again.engine.stale_places(), 0);
    again.read_all(Promise::Acknowledged, 1)
}

/// That copy is no copy: the other disk is needed (CRC-4).
#[test]
fn a_copy_that_a_start_could_not_make_equal_is_not_taken_for_one() {
    read_after_a_start_that_cannot_make_equal().expect("the other copy is kept");
    set(Some(Mutation::UnequalTrusted));
    let wrong = read_after_a_start_that_cannot_make_equal();
    set(None);
    assert!(wrong.is_err(), "it is not noticed");
}

/// A disk with a copy of the log takes no metadata while it is needed: it loses that copy, and keeps its data. Two starts
/// later the disk of the log's other copy is away.
fn log_after_its_disk_lost_its_vote() -> Result<(), String> {
    let mut run = start(TIERED);
    fill(&mut run);
    let config = run.engine.config();
    let logs: Vec<u16> = config.vdisks[0]
        .cache
        .iter()
        .flat_map(|cache| cache.copies.iter().map(|copy| copy.disk))
        .collect();
    let rows = &config.vdisks[0].tiers[0].rows;
    // One that shares a row with a disk that has no copy of the log.
    let pair = rows.iter().find_map(|row| {
        let [one, two] = [row.slabs[0].0, row.slabs[1].0];
        match (logs.contains(&one), logs.contains(&two)) {
            (true, false) => Some((one, two)),
            (false, true) => Some((two, one)),
            _ => None,
        }
    });
    let (own, partner) = pair.expect("three solid-state disks");
    let other = *logs.iter().find(|disk| **disk != own).expect("two copies");
    run.let_any_fail((0..5).collect(), (0..5).collect());
    run.engine.take_offline(partner);
    rest(&mut run, 1);
    let end = shape(TIERED).geometry().slab(0);
    run.engine.queue_mut().faults_mut(own.into()).unwritable = vec![(0, end)];
    run.engine.checkpoint();
    rest(&mut run, 1);
    assert_eq!(state(&run, own.into()), DiskState::Online, "it is needed");
    run.engine.queue_mut().repair(own.into());
    run.engine.attach(partner);
    rest(&mut run, 4);
    assert_eq!(run.engine.stale_places(), 0);
    assert_eq!(health(&run), (HealthStatus::Warning, "Degraded"), "a copy of the log is behind");
    // The log is used: what lies where is to be the newest.
    let kind = RequestKind::Write { fua: false };
    let some = (0..6).map(|nth| {
        let offset = (7 * 16 + nth) * 4096;
        Step::Request { client: 0, kind, offset, len: 4096 }
    });
    done(&mut run, &some.chain([flush()]).collect::<Vec<Step>>())?;
    let mut run = restart(&mut run, TIERED, &[]).map_err(|error| error.to_string())?;
    rest(&mut run, 2);
    let lacks = health(&run) != (HealthStatus::Healthy, "OK");
    let again = restart(&mut run, TIERED, &[other.into()]);
    let mut again = again.map_err(|error| error.to_string())?;
    again.read_all(Promise::Acknowledged, 0)?;
    again.read_all(Promise::Acknowledged, 1)?;
    if lacks { Err("it is told to lack a copy still".to_owned()) } else { Ok(()) }
}

/// Its copy is made again by the next start, and until then it is told.
#[test]
fn the_log_copy_of_a_disk_that_lost_its_vote_is_made_again() {
    log_after_its_disk_lost_its_vote().expect("any one disk may be away");
    for mutation in [Mutation::LogCopyForgotten, Mutation::LogCurrentUnpublished] {
        set(Some(mutation));
        let wrong = log_after_its_disk_lost_its_vote();
        set(None);
        assert!(wrong.is_err(), "{mutation:?} is not noticed");
    }
}

/// A hundred reads of a first write that no start can settle, for its only copy cannot be read: flushes that they took, and
/// whether it is read when the sector can be again.
fn reads_of_what_cannot_be_settled() -> (u64, bool) {
    let mut run = start(SIMPLE);
    fill(&mut run);
    let (disk, at) = first_block(SIMPLE, &run)[0];
    done(&mut run, &[write(0), write(1)]).expect("nothing is wrong yet");
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let shape = shape(SIMPLE);
    let mut made = queue(&shape, images(&mut run, SIMPLE.0), 7, true);
    made.faults_mut(disk).unreadable = vec![(at, at + 4096)];
    let mut run = Run::start_on(&shape, made, oracle, 8).expect("it starts");
    run.let_any_fail((0..2).collect(), (0..2).collect());
    rest(&mut run, 2);
    let before = run.engine.queue_mut().flushes(disk);
    let read = crate::Request { kind: RequestKind::Read, vdisk: 0, offset: 0, len: 4096 };
    for _ in 0..100 {
        assert_eq!(run.ask(0, read), Ok(false), "it cannot be read");
    }
    let flushes = run.engine.queue_mut().flushes(disk) - before;
    run.engine.queue_mut().repair(disk);
    rest(&mut run, 12);
    (flushes, run.read_all(Promise::Acknowledged, 0).is_ok())
}

#[test]
fn a_block_that_cannot_be_settled_is_not_tried_at_each_read() {
    let (flushes, read) = reads_of_what_cannot_be_settled();
    assert!(flushes <= 4, "{flushes} flushes of 100 reads");
    assert!(read, "and is tried again later");
    set(Some(Mutation::TriedEachTime));
    let (flushes, _) = reads_of_what_cannot_be_settled();
    set(None);
    assert!(flushes >= 100, "{flushes}");
}

/// Section 4: writes to many extents keep few of them open, and all end; the most that were open at a time.
fn most_open_at_a_time() -> u32 {
    let mut run = start(TIERED);
    run.engine.set_open_limit(3);
    let mut most = 0;
    for nth in 0..160_u64 {
        let client = u32::try_from(nth % 4).expect("small");
        let kind = RequestKind::Write { fua: nth % 7 == 0 };
        let offset = (nth * 5 % 8) * 65_536 + nth % 16 * 4096;
        done(&mut run, &[]).expect("nothing is wrong");
        for client in [client, (client + 1) % 4] {
            let at = (offset + u64::from(client) * 65_536) % (8 * 65_536);
            run.take(&[Step::Request { client, kind, offset: at, len: 4096 }]).expect("taken");
        }
        run.settle().expect("all of them end");
        most = most.max(run.engine.open_extents());
    }
    run.read_all(Promise::Acknowledged, 0).expect("all is there");
    let mut again = restart(&mut run, TIERED, &[]).expect("it starts");
    again.read_all(Promise::Acknowledged, 0).expect("all is there");
    most
}

#[test]
fn few_extents_are_open_at_a_time() {
    let most = most_open_at_a_time();
    assert!((2..=3).contains(&most), "{most} at a time");
    set(Some(Mutation::OpenWithoutLimit));
    let most = most_open_at_a_time();
    set(None);
    assert!(most > 3, "{most}");
}

/// Both disks of a log are away; the one that comes back first takes more, and is away when the other one is back.
fn read_from_the_log_that_came_back_last() -> Result<(), String> {
    let mut run = start(TIERED);
    fill(&mut run);
    done(&mut run, &[write(112), write(96), flush()])?;
    let cache = run.engine.config().vdisks[0].cache.clone().ok_or("no cache")?;
    let disks: Vec<u32> = cache.copies.iter().map(|copy| copy.disk.into()).collect();
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut made = queue(&shape(TIERED), images(&mut run, TIERED.0), 3, true);
    for &disk in &disks {
        // The start has read what they say of themselves by then.
        made.faults_mut(disk).dead_from = Some(6);
    }
    let run = Run::start_on(&shape(TIERED), made, oracle, 3);
    let mut run = run.map_err(|error| error.to_string())?;
    run.let_any_fail(disks.iter().copied().collect(), (0..TIERED.0).collect());
    let back = |run: &mut Run, disk: u32| {
        run.engine.queue_mut().repair(disk);
        run.engine.attach(u16::try_from(disk).unwrap_or(u16::MAX));
        (0..64).for_each(|_| run.poll());
    };
    back(&mut run, disks[0]);
    let told: Vec<_> = std::iter::from_fn(|| run.engine.next_event()).collect();
    assert!(told.iter().any(|event| event.name() == "cache-back"), "{told:?}");
    done(&mut run, &[write(112), write(97), flush()])?;
    back(&mut run, disks[1]);
    let online = |disk: &u32| run.engine.config().disks[*disk as usize].state == DiskState::Online;
    assert!(disks.iter().all(online));
    run.sound = false;
    let again = restart(&mut run, TIERED, &disks[..1]);
    let mut again = again.map_err(|error| error.to_string())?;
    again.read_all(Promise::Acknowledged, 0)
}

#[test]
fn a_log_that_went_on_without_a_copy_does_not_take_it_for_whole() {
    read_from_the_log_that_came_back_last().expect("all is there");
    set(Some(Mutation::ReturnedLogShared));
    let found = read_from_the_log_that_came_back_last();
    set(None);
    assert!(found.is_err(), "it is not noticed");
}

/// Whether a disk is known again whose superblock an engine could not flush, and then, once that was killed, another engine, when
/// the power went.
fn is_known_when_two_engines_could_not_flush_it(nth: u64) -> bool {
    let of = shape(MIRROR);
    let mut run = start(MIRROR);
    fill(&mut run);
    let steps: Vec<Step> = (0..nth % 24).map(write).chain([flush()]).collect();
    done(&mut run, &steps).expect("nothing is wrong yet");
    for disk in 0..of.disks {
        run.engine.queue_mut().faults_mut(disk).refused_flushes = (0..100_000).collect();
    }
    // Superblocks are written, to mark the disks.
    run.engine.set_marking(Nanos(1));
    (0..40).for_each(|_| run.poll());
    let mut queue = run.engine.into_queue();
    let refused = start_engine(&of, &mut queue, nth);
    assert!(refused.is_err(), "no disk can be flushed");
    drop(refused);
    // What is left of one is drawn anew each time.
    (0..nth / 24).for_each(|_| queue.drop_cache(0, Survivors::All));
    queue.drop_cache(1, Survivors::Some);
    (0..of.disks).for_each(|disk| *queue.faults_mut(disk) = DiskFaults::default());
    // The others go on without it, and confirm nothing of it any more (LAY-1).
    *queue.faults_mut(1) = DiskFaults { dead_from: Some(0), ..DiskFaults::default() };
    for _ in 0..2 {
        drop(start_engine(&of, &mut queue, nth).expect("the others have all there is"));
    }
    *queue.faults_mut(1) = DiskFaults::default();
    let engine = start_engine(&of, queue, nth).expect("all are here");
    engine.config().disks[1].state == DiskState::Online || engine.returning().contains(&1)
}

/// What a killed engine could not flush reads back from the disk's cache; the next one leaves what lies below it alone (LAY-2).
#[test]
fn what_a_killed_engine_could_not_flush_is_not_relied_upon_by_the_next() {
    let lost =
        || (0..200).filter(|nth| !is_known_when_two_engines_could_not_flush_it(*nth)).count();
    assert_eq!(lost(), 0);
    set(Some(Mutation::UnflushedPairKept));
    let broken = lost();
    set(None);
    assert!(broken > 0, "that the newer pair is kept is not noticed");
}
