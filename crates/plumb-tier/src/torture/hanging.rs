//! Disks that do not answer, or do not take metadata, while the engine stands still.

use plumb_io::sim::power::Survivors;
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::faults::shape;
use super::faults::{
    MIRROR, SIMPLE, die, done, fill, first_block, flush, health, heard, reads_well, rest, start,
    state, write,
};
use super::history::{CLIENT_BYTES, CLIENTS, Step};
use super::left_out::needs;
use super::run::{Run, new_pool, queue};
use crate::format::DiskState;
use crate::io::TIME_OUT;
use crate::mutation::Mutation;
use crate::pool::HealthStatus;
use crate::{Engine, Request, RequestKind, SlotPlan};

/// Sixteen blocks of an extent are written: a read of all of them and then one of each would hang seventeen times.
fn fill_more(run: &mut Run) {
    fill(run);
    let steps: Vec<Step> = (0..32).map(write).chain([flush()]).collect();
    done(run, &steps).expect("nothing is wrong yet");
}

fn hang(run: &mut Run, disk: u32) {
    let ios = run.engine.queue_mut().ios(disk);
    run.engine.queue_mut().faults_mut(disk).hangs_from = Some(ios);
}

/// Scans to the end; how long that took.
fn scan(run: &mut Run) -> Nanos {
    let began = run.engine.queue_mut().now();
    run.engine.scan();
    let mut turns = 0;
    while run.engine.is_scanning() {
        (0..8).for_each(|_| run.poll());
        run.engine.queue_mut().advance(Nanos::from_millis(10));
        turns += 1;
        assert!(turns < 100_000, "the scan never ends");
    }
    run.engine.queue_mut().now().since(began)
}

#[test]
fn a_scan_waits_once_for_a_disk_that_hangs_and_does_without_it() {
    let mut run = start(MIRROR);
    fill_more(&mut run);
    let disk = first_block(MIRROR, &run)[0].0;
    heard(&mut run);
    hang(&mut run, disk);
    let took = scan(&mut run);
    // Once for what was read, and once for the configuration that it is told.
    assert!(took < Nanos(3 * TIME_OUT.0), "{took:?}");
    let nth = usize::try_from(disk).expect("small");
    assert_eq!(state(&run, nth), DiskState::Missing);
    let told = heard(&mut run);
    assert!(told.contains(&"disk-timeout") && told.contains(&"disk-lost"), "{told:?}");
    assert!(!told.contains(&"bad-copy") && !told.contains(&"unrecoverable"), "{told:?}");
    assert_eq!(health(&run), (HealthStatus::Warning, "Degraded"));
    reads_well(&mut run);
}

/// Requests have as much time between two steps of a resync as a step takes, also where disks take theirs (RES-5).
#[test]
fn requests_have_their_turn_between_steps_that_take_long() {
    needs(Mutation::StandsOutOfTime, || {
        let mut run = start(MIRROR);
        fill_more(&mut run);
        let disk = first_block(MIRROR, &run)[0].0;
        die(&mut run, disk);
        let steps: Vec<Step> = (0..8).map(|nth| write(nth * 16 + 3)).chain([flush()]).collect();
        done(&mut run, &steps)?;
        for disk in 0..MIRROR.0 {
            run.engine.queue_mut().faults_mut(disk).slow_reads = Nanos::from_millis(5);
        }
        run.take(&[Step::Back { disk }])?;
        let mut served = 0;
        while state(&run, index(disk)) != DiskState::Online || run.engine.stale_places() > 0 {
            run.take(&[write(served % 8 * 16 + 5)])?;
            served += 1;
        }
        println!("{served} writes while an extent was brought up to date after the other");
        // A step takes 5 ms at least, as long as eighty writes.
        match served >= 300 {
            true => Ok(()),
            false => Err(format!("{served} writes")),
        }
    });
}

/// A read of many blocks that fails is tried block by block; whichever of these the disk then hangs at, it is waited for
/// once.
#[test]
fn a_disk_that_hangs_at_any_block_of_a_run_is_waited_for_once() {
    for more in 0..24 {
        let mut run = start(MIRROR);
        fill_more(&mut run);
        let (disk, offset) = first_block(MIRROR, &run)[0];
        let ios = run.engine.queue_mut().ios(disk);
        let faults = run.engine.queue_mut().faults_mut(disk);
        faults.unreadable = vec![(offset, offset + 512)];
        faults.hangs_from = Some(ios + more);
        let took = scan(&mut run);
        println!("after {more} I/Os: {took:?}");
        assert!(took < Nanos(3 * TIME_OUT.0 / 2), "after {more} I/Os: {took:?}");
        reads_well(&mut run);
    }
}

/// What hangs keeps its slots, and no more than its share: the others have theirs.
#[test]
fn a_disk_that_hangs_and_is_needed_costs_no_other_disk() {
    let mut run = start(SIMPLE);
    fill_more(&mut run);
    let disk = first_block(SIMPLE, &run)[0].0;
    hang(&mut run, disk);
    let first = scan(&mut run);
    let mut took = Nanos::ZERO;
    for _ in 0..4 {
        took = Nanos(took.0 + scan(&mut run).0);
    }
    assert!(first <= Nanos(12 * TIME_OUT.0), "{first:?}");
    assert!(took < TIME_OUT, "who owes answers is not waited for: {took:?}");
    let told = heard(&mut run);
    for nth in 0..2 {
        assert_eq!(state(&run, nth), DiskState::Online, "disk {nth} after {told:?}");
    }
    for word in ["disk-timeout", "disk-failing", "unrecoverable"] {
        assert!(told.contains(&word), "{told:?}");
    }
    assert_eq!(health(&run), (HealthStatus::Unhealthy, "No Redundancy"));
    run.engine.queue_mut().repair(disk);
    run.engine.queue_mut().drop_cache(disk, Survivors::All);
    rest(&mut run, 2);
    reads_well(&mut run);
}

/// The content stays, and is read, although the disk that has it takes no metadata.
#[test]
fn a_checkpoint_that_the_disk_of_a_last_copy_does_not_take_goes_on_without_it() {
    for flush_too in [false, true] {
        let mut run = start(SIMPLE);
        fill(&mut run);
        let disk = first_block(SIMPLE, &run)[0].0;
        let end = super::faults::shape(SIMPLE).geometry().slab(0);
        run.engine.queue_mut().faults_mut(disk).unwritable = vec![(0, end)];
        if flush_too {
            run.engine.queue_mut().faults_mut(disk).flush_errors = (0..4096).collect();
        }
        run.engine.checkpoint();
        rest(&mut run, 2);
        let nth = usize::try_from(disk).expect("small");
        assert_eq!((state(&run, nth), run.engine.halted()), (DiskState::Online, None));
        reads_well(&mut run);
        let told = heard(&mut run);
        assert_eq!(told.contains(&"flush-failed"), flush_too, "{told:?}");
        assert_ne!(told.contains(&"disk-failing"), flush_too, "{told:?}");
        assert_eq!(health(&run), (HealthStatus::Warning, "OK"), "{told:?}");
        let written = done(&mut run, &[write(0), flush()]);
        assert_eq!(written.is_err(), flush_too, "{written:?}");
    }
}

/// C10: whichever flush it was that failed on a last copy, the journal's or the data's, what was written before it may
/// be gone.
#[test]
fn a_failed_flush_on_a_last_copy_fails_every_later_one_whatever_it_was_for() {
    for more in 0..4 {
        let mut run = start(SIMPLE);
        fill(&mut run);
        let disk = first_block(SIMPLE, &run)[0].0;
        assert!(run.engine.config().disks[usize::try_from(disk).expect("small")].metadata);
        let flushes = run.engine.queue_mut().flushes(disk);
        run.engine.queue_mut().faults_mut(disk).flush_errors = vec![flushes + more];
        // A write to a new extent, and rounds: flushes of the journal and of the data in turn.
        let _ = done(&mut run, &[write(64), flush(), write(1), flush()]);
        rest(&mut run, 3);
        assert!(run.engine.queue_mut().flushes(disk) > flushes + more, "flush {more} came");
        done(&mut run, &[flush()]).expect_err("a flush failed where the only copy is");
        let told = heard(&mut run);
        assert!(told.contains(&"flush-failed"), "{more}: {told:?}");
        assert_eq!(health(&run), (HealthStatus::Warning, "OK"), "{more}: {told:?}");
    }
}

/// The same of a flush behind a generation or a superblock: the disk forgets what it was given, and does not fail again.
#[test]
fn a_flush_that_fails_while_a_generation_is_written_is_remembered() {
    needs(Mutation::FlushForgotten, || {
        for more in 0..3 {
            let mut run = start(SIMPLE);
            fill(&mut run);
            let disk = first_block(SIMPLE, &run)[0].0;
            done(&mut run, &[write(1), write(2)])?;
            let flushes = run.engine.queue_mut().flushes(disk);
            run.engine.queue_mut().faults_mut(disk).flush_errors = vec![flushes + more];
            // It stays, which is news to nobody: a generation all the same.
            run.engine.stay(u16::try_from(disk).expect("small"));
            (0..4).for_each(|_| run.poll());
            if run.engine.queue_mut().flushes(disk) <= flushes + more {
                return Err(format!("flush {more} never came"));
            }
            if done(&mut run, &[flush()]).is_ok() {
                return Err(format!("flush {more} is forgotten"));
            }
            let told = heard(&mut run);
            if !told.contains(&"flush-failed") {
                return Err(format!("{more}: {told:?}"));
            }
        }
        Ok(())
    });
}

/// How long a disk that hangs is waited for is what the plan says: a write to a mirror, from its submission to the disk's loss.
#[test]
fn a_disk_that_hangs_is_missing_after_the_time_out_that_was_set() {
    let took = |seconds: u64| {
        let shape = shape(MIRROR);
        let made = queue(&shape, new_pool(&shape), 1, false);
        let plan = SlotPlan { time_out: Nanos::from_secs(seconds), ..shape.plan() };
        let mut engine = Engine::start(made, plan, CLIENTS, CLIENT_BYTES, 1).expect("it starts");
        let disk = engine.config().vdisks[0].tiers[0].rows[0].slabs[0].0;
        engine.queue_mut().faults_mut(disk.into()).hangs_from = Some(0);
        let began = engine.queue_mut().now();
        let kind = RequestKind::Write { fua: false };
        engine.submit(0, Request { kind, vdisk: 0, offset: 0, len: 4096 });
        for _ in 0..2000 {
            let now = engine.queue_mut().now();
            engine.poll(now, Nanos(60_000));
            engine.queue_mut().advance(Nanos::from_millis(50));
            if engine.config().disks[usize::from(disk)].state != DiskState::Online {
                return engine.queue_mut().now().since(began).as_secs_f64();
            }
        }
        panic!("it is never missed");
    };
    for seconds in [2, 30] {
        let took = took(seconds);
        println!("set to {seconds} s: {took} s");
        // It is looked at once a second, and the disk is asked for what the others are told.
        let most = 2.0 * seconds as f64 + 3.0;
        assert!(took >= seconds as f64 && took < most, "set to {seconds} s: {took} s");
    }
}
