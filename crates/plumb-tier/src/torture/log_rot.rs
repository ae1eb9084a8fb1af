//! Rot in a write-back cache's log while the pool serves (RES-8, C8): healed from another copy, read from home where that has it, and
//! where nobody has it no burden for anybody else.

use super::faults::{TIERED, done, fill, flush, health, heard, rest, restart, start};
use super::history::Step;
use super::left_out::needs;
use super::live_rot::{flip, newest_record};
use super::oracle::Promise;
use super::run::Run;
use crate::mutation::Mutation;
use crate::pool::HealthStatus;
use crate::{Request, RequestKind};

/// One copy of everything, a log among it.
const ALONE: (u32, u32, u8, u64) = (2, 1, 1, 64 << 10);
/// A block on the rotating tier.
const BLOCK: u64 = 112;

fn write(block: u64) -> Step {
    super::faults::write(block)
}

fn read(run: &mut Run, block: u64) -> Option<Vec<u8>> {
    let request = Request { kind: RequestKind::Read, vdisk: 0, offset: block * 4096, len: 4096 };
    let read = run.ask(0, request).expect("it answers");
    read.then(|| run.engine.buffer_mut(0)[..4096].to_vec())
}

/// Spoils the data of the newest record on so many of the log's copies.
fn spoil(run: &mut Run, copies: usize) {
    let cache = run.engine.config().vdisks[0].cache.clone().expect("it has one");
    for copy in cache.copies.iter().take(copies) {
        let at = newest_record(run, copy.disk, copy.slabs[0]);
        flip(run, copy.disk.into(), at + 4096 + 17);
    }
}

/// What a start found in the log is copied home again, though it is there: rot of it costs nothing then.
#[test]
fn what_rots_in_a_log_is_read_from_home_where_it_is() {
    needs(Mutation::HomeUnasked, || {
        let mut run = start(ALONE);
        fill(&mut run);
        rest(&mut run, 12);
        done(&mut run, &[write(BLOCK), flush()])?;
        let good = read(&mut run, BLOCK).expect("nothing is wrong yet");
        let before = run.engine.counters().destaged;
        for _ in 0..4000 {
            if run.engine.counters().destaged > before {
                break;
            }
            run.engine.queue_mut().advance(plumb_units::Nanos::from_millis(5));
            run.poll();
        }
        assert!(run.engine.counters().destaged > before, "it is home");
        let mut run = restart(&mut run, ALONE, &[]).map_err(|error| error.to_string())?;
        run.let_any_fail((0..2).collect(), (0..2).collect());
        spoil(&mut run, 1);
        let found = read(&mut run, BLOCK).ok_or("it cannot be read")?;
        assert!(found == good, "another content");
        rest(&mut run, 12);
        assert_eq!(run.engine.counters().unrecoverable, 0);
        assert_eq!(health(&run), (HealthStatus::Healthy, "OK"));
        read(&mut run, BLOCK).filter(|found| *found == good).map(|_| ()).ok_or("lost".to_owned())
    });
}

/// What nobody has is told, is not what lay there before, and keeps nobody else's writes waiting; written anew it is good.
#[test]
fn what_is_lost_in_a_log_does_not_hold_it() {
    needs(Mutation::LineHeldByRot, || {
        let mut run = start(ALONE);
        fill(&mut run);
        done(&mut run, &[write(BLOCK), flush()])?;
        rest(&mut run, 12);
        run.let_any_fail((0..2).collect(), (0..2).collect());
        done(&mut run, &[write(BLOCK)])?;
        spoil(&mut run, 1);
        heard(&mut run);
        assert_eq!(read(&mut run, BLOCK), None);
        rest(&mut run, 12);
        let told = heard(&mut run);
        assert!(told.contains(&"bad-copy") && told.contains(&"unrecoverable"), "{told:?}");
        assert_eq!(read(&mut run, BLOCK), None, "an older content is not it");
        assert!(health(&run).0 >= HealthStatus::Unhealthy);
        if run.engine.unverified().is_empty() {
            return Err("its line is what it was".to_owned());
        }
        // As often as the log is large.
        let over = (0..120_u64).map(|nth| write(80 + nth % 3 * 4));
        done(&mut run, &over.collect::<Vec<Step>>())?;
        let mut again = restart(&mut run, ALONE, &[]).map_err(|error| error.to_string())?;
        again.let_any_fail((0..2).collect(), (0..2).collect());
        assert_eq!(read(&mut again, BLOCK), None, "nor is it after a start");
        done(&mut again, &[write(BLOCK), flush()])?;
        again.engine.scan();
        rest(&mut again, 12);
        assert_eq!((again.engine.lost_of(0), again.engine.unverified()), (vec![], vec![]));
        read(&mut again, BLOCK).map(|_| ()).ok_or("written anew it is good".to_owned())
    });
}

/// One of two copies: who reads it, or a scan, writes it anew from the other one, which may go then.
#[test]
fn a_copy_of_a_log_that_rots_is_healed() {
    for scans in [false, true] {
        for header in [false, true] {
            needs(Mutation::LogUnhealed, || healed_alone(scans, header));
        }
    }
}

fn healed_alone(scans: bool, header: bool) -> Result<(), String> {
    let mut run = start(TIERED);
    fill(&mut run);
    rest(&mut run, 12);
    run.let_any_fail((0..5).collect(), (0..5).collect());
    done(&mut run, &[write(BLOCK)])?;
    let good = read(&mut run, BLOCK).expect("nothing is wrong yet");
    let cache = run.engine.config().vdisks[0].cache.clone().expect("it has one");
    let (one, other) = (&cache.copies[0], &cache.copies[1]);
    let at = newest_record(&mut run, one.disk, one.slabs[0]);
    flip(&mut run, one.disk.into(), if header { at + 17 } else { at + 4096 + 17 });
    if scans || header {
        run.engine.scan();
        for _ in 0..4000 {
            run.engine.queue_mut().advance(plumb_units::Nanos(100_000));
            run.poll();
            if !run.engine.is_scanning() {
                break;
            }
        }
        assert!(!run.engine.is_scanning());
    } else {
        for client in [0, 1, 2, 0, 1, 2] {
            let kind = RequestKind::Read;
            done(&mut run, &[Step::Request { client, kind, offset: BLOCK * 4096, len: 4096 }])?;
        }
        (0..20).for_each(|_| run.poll());
    }
    if run.engine.counters().destaged > 0 && !header {
        println!("{} blocks went home meanwhile", run.engine.counters().destaged);
    }
    let told = heard(&mut run);
    let words =
        if header { ["metadata-damaged", "metadata-healed"] } else { ["bad-copy", "healed"] };
    if !words.iter().all(|word| told.contains(word)) {
        return Err(format!("{told:?}"));
    }
    // It is enough alone, after a crash as well.
    let alone = restart(&mut run, TIERED, &[other.disk.into()]);
    let mut alone = alone.map_err(|error| error.to_string())?;
    alone.read_all(Promise::Acknowledged, 0)?;
    assert!(read(&mut alone, BLOCK) == Some(good), "another content");
    Ok(())
}

/// The good copy is on a disk that is away: nothing is lost, and nothing is given up.
#[test]
fn what_a_log_has_on_a_disk_that_is_away_is_not_lost() {
    let mut run = start(TIERED);
    fill(&mut run);
    rest(&mut run, 12);
    run.let_any_fail((0..5).collect(), (0..5).collect());
    done(&mut run, &[write(BLOCK)]).expect("nothing is wrong yet");
    let good = read(&mut run, BLOCK).expect("nothing is wrong yet");
    let cache = run.engine.config().vdisks[0].cache.clone().expect("it has one");
    spoil(&mut run, 1);
    run.engine.take_offline(cache.copies[1].disk);
    rest(&mut run, 1);
    heard(&mut run);
    assert_eq!(read(&mut run, BLOCK), None, "no copy here has it");
    rest(&mut run, 4);
    let told = heard(&mut run);
    assert!(told.contains(&"unreadable") && !told.contains(&"unrecoverable"), "{told:?}");
    assert_eq!((run.engine.counters().unrecoverable, run.engine.unverified().len()), (0, 0));
    run.engine.attach(cache.copies[1].disk);
    rest(&mut run, 8);
    assert!(read(&mut run, BLOCK) == Some(good), "it is back");
    assert_eq!(health(&run), (HealthStatus::Healthy, "OK"));
}

/// A sector of the log that cannot be read may be readable later: it is not given up. Nor is what a copy has that counts as out of date.
#[test]
fn what_cannot_be_read_of_a_log_is_not_given_up() {
    needs(Mutation::UnreadGivenUp, || {
        let mut run = start(ALONE);
        fill(&mut run);
        rest(&mut run, 12);
        run.let_any_fail((0..2).collect(), (0..2).collect());
        done(&mut run, &[write(BLOCK)])?;
        let good = read(&mut run, BLOCK).expect("nothing is wrong yet");
        let cache = run.engine.config().vdisks[0].cache.clone().expect("it has one");
        let (disk, slab) = (cache.copies[0].disk, cache.copies[0].slabs[0]);
        let at = newest_record(&mut run, disk, slab) + 4096;
        run.engine.queue_mut().faults_mut(disk.into()).unreadable = vec![(at, at + 4096)];
        heard(&mut run);
        assert_eq!(read(&mut run, BLOCK), None);
        rest(&mut run, 4);
        assert!(heard(&mut run).contains(&"unrecoverable"));
        run.engine.queue_mut().faults_mut(disk.into()).unreadable.clear();
        rest(&mut run, 12);
        let found = read(&mut run, BLOCK);
        if found.as_ref() == Some(&good) { Ok(()) } else { Err("it is lost".to_owned()) }
    });
}
