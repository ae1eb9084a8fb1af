//! The failure matrix of section 18, cell by cell, on simulated disks: the fault, the data after it, and what
//! the space says of itself.

use plumb_io::sim::power::{Image, Survivors};
use plumb_units::Nanos;

use super::history::{Shape, Step, sectors};
use super::oracle::{Oracle, Promise};
use super::run::{Run, new_pool, queue};
use super::unborne::Workload;
use crate::format::DiskState;
use crate::mutation::{Mutation, set};
use crate::optimizer::TierName;
use crate::pool::{Facts, HealthStatus, judge};
use crate::{Halt, MoveOutcome, RequestKind, StartError};

pub(super) const MIRROR: (u32, u32, u8, u64) = (3, 0, 2, 0);
pub(super) const SIMPLE: (u32, u32, u8, u64) = (2, 0, 1, 0);
pub(super) const TIERED: (u32, u32, u8, u64) = (5, 2, 2, 64 << 10);
pub(super) const FOUR: (u32, u32, u8, u64) = (4, 2, 2, 0);

pub(super) fn shape((disks, rotating, copies, cache): (u32, u32, u8, u64)) -> Shape {
    Shape { disks, rotating, copies, columns: 1, cache, seed: 5, workload: Workload::Usual }
}

pub(super) fn oracle() -> Oracle {
    Oracle::new(plumb_units::convert::index(sectors()))
}

pub(super) fn start(of: (u32, u32, u8, u64)) -> Run {
    let shape = shape(of);
    let mut run =
        Run::start(&shape, new_pool(&shape), &[], oracle(), 1).expect("a new pool starts");
    run.sound = false;
    run
}

/// Starts again on what the disks show, as after a stop of the engine alone.
pub(super) fn restart(
    run: &mut Run,
    of: (u32, u32, u8, u64),
    absent: &[u32],
) -> Result<Run, StartError> {
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut again = Run::start(&shape(of), images(run, of.0), absent, oracle, 2)?;
    again.sound = false;
    Ok(again)
}

pub(super) fn images(run: &mut Run, disks: u32) -> Vec<Image> {
    (0..disks).map(|disk| run.engine.queue_mut().view(disk)).collect()
}

pub(super) fn write(block: u64) -> Step {
    let kind = RequestKind::Write { fua: false };
    Step::Request { client: 0, kind, offset: block * 4096, len: 4096 }
}

pub(super) fn flush() -> Step {
    Step::Request { client: 1, kind: RequestKind::Flush, offset: 0, len: 0 }
}

pub(super) fn done(run: &mut Run, steps: &[Step]) -> Result<(), String> {
    run.take(steps).and_then(|()| run.settle())
}

/// Writes every extent in use, durably.
pub(super) fn fill(run: &mut Run) {
    let steps: Vec<Step> = (0..8).map(|nth| write(nth * 16)).chain([flush()]).collect();
    done(run, &steps).expect("nothing is wrong yet");
}

pub(super) fn reads_well(run: &mut Run) {
    run.read_all(Promise::Acknowledged, 0).expect("all is there");
    run.read_all(Promise::Acknowledged, 1).expect("from any copy");
}

pub(super) fn rest(run: &mut Run, seconds: u64) {
    for _ in 0..seconds * 4 {
        run.engine.queue_mut().advance(Nanos::from_millis(250));
        (0..8).for_each(|_| run.poll());
    }
}

pub(super) fn state(run: &Run, disk: usize) -> DiskState {
    run.engine.config().disks[disk].state
}

pub(super) fn die(run: &mut Run, disk: u32) {
    run.engine.queue_mut().faults_mut(disk).dead_from = Some(0);
}

/// What was told since the last time, in single words.
pub(super) fn heard(run: &mut Run) -> Vec<&'static str> {
    std::iter::from_fn(|| run.engine.next_event()).map(|event| event.name()).collect()
}

/// The worst of it, and what the virtual disk is said to be.
pub(super) fn health(run: &Run) -> (HealthStatus, &'static str) {
    let health = judge(&Facts::running(&run.engine));
    (health.worst(), health.vdisks[0].operational)
}

/// Whether these events were told since the last time, and how the space is said to be.
fn tells(run: &mut Run, words: &[&str], expected: (HealthStatus, &str)) {
    let told = heard(run);
    assert!(words.iter().all(|word| told.contains(word)), "{words:?} in {told:?}");
    assert_eq!(health(run), expected, "{told:?}");
}

fn said_of_disk(run: &Run, nth: usize) -> &'static str {
    judge(&Facts::running(&run.engine)).disks[nth].operational
}

/// Where copies of the first extent's first block lie.
pub(super) fn first_block(of: (u32, u32, u8, u64), run: &Run) -> Vec<(u32, u64)> {
    let row = &run.engine.config().vdisks[0].tiers[0].rows[0];
    let place = |slab: &(u16, u32)| (u32::from(slab.0), shape(of).geometry().slab(slab.1));
    row.slabs.iter().map(place).collect()
}

#[test]
fn read_error_on_one_copy_is_served_by_the_other_and_rewritten() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let (disk, offset) = first_block(MIRROR, &run)[0];
    run.engine.queue_mut().faults_mut(disk).unreadable = vec![(offset, offset + 4096)];
    reads_well(&mut run);
    reads_well(&mut run);
    rest(&mut run, 2);
    assert!(run.engine.counters().mismatches > 0 && run.engine.counters().healed > 0);
    let healed = run.engine.queue_mut().faults_mut(disk).unreadable.is_empty();
    assert!(healed, "the bad copy was written anew");
    assert_eq!(state(&run, 0), DiskState::Online);
    tells(&mut run, &["bad-copy", "healed"], (HealthStatus::Healthy, "OK"));
}

#[test]
fn write_error_on_one_copy_expels_the_disk_and_is_acknowledged() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let (disk, _) = first_block(MIRROR, &run)[1];
    let ios = run.engine.queue_mut().ios(disk);
    run.engine.queue_mut().faults_mut(disk).write_errors = (ios..ios + 50).collect();
    done(&mut run, &[write(0), flush()]).expect("the other copy took it");
    let nth = usize::try_from(disk).expect("small");
    assert_eq!((state(&run, nth), run.engine.counters().disks_lost), (DiskState::Missing, 1));
    reads_well(&mut run);
    tells(&mut run, &["disk-error", "disk-lost"], (HealthStatus::Warning, "Degraded"));
    assert_eq!(said_of_disk(&run, nth), "IO Error");
    let mut again = restart(&mut run, MIRROR, &[]).expect("two of three start");
    assert_eq!(again.engine.returning().len(), 1);
    reads_well(&mut again);
}

#[test]
fn write_error_on_the_last_copy_fails_the_request_only() {
    let mut run = start(SIMPLE);
    fill(&mut run);
    let disk = first_block(SIMPLE, &run)[0].0;
    let ios = run.engine.queue_mut().ios(disk);
    run.engine.queue_mut().faults_mut(disk).write_errors = vec![ios, ios + 1, ios + 2];
    let failed = done(&mut run, &[write(0)]).expect_err("its only copy did not take it");
    assert!(failed.contains("Errno(5)"), "{failed}");
    run.engine.queue_mut().repair(disk);
    assert_eq!(run.engine.halted(), None);
    done(&mut run, &[write(16)]).expect("other blocks are written as before");
    reads_well(&mut run);
    tells(&mut run, &["disk-failing"], (HealthStatus::Warning, "OK"));
}

#[test]
fn a_disk_that_hangs_is_missing_after_its_time_and_waits_for_its_answers() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let (disk, _) = first_block(MIRROR, &run)[1];
    let ios = run.engine.queue_mut().ios(disk);
    run.engine.queue_mut().faults_mut(disk).hangs_from = Some(ios);
    done(&mut run, &[write(0)]).expect("acknowledged without it");
    let nth = usize::try_from(disk).expect("small");
    assert_eq!(state(&run, nth), DiskState::Missing);
    tells(&mut run, &["disk-timeout", "disk-lost"], (HealthStatus::Warning, "Degraded"));
    assert_eq!(said_of_disk(&run, nth), "Lost Communication", "nobody knows what it did");
    let ordinal = u16::try_from(disk).expect("small");
    run.engine.attach(ordinal);
    rest(&mut run, 2);
    assert_eq!(state(&run, nth), DiskState::Missing, "it owes an answer (RES-10)");
    run.engine.queue_mut().drop_cache(disk, Survivors::None);
    rest(&mut run, 4);
    assert_eq!((state(&run, nth), run.engine.stale_places()), (DiskState::Online, 0));
    reads_well(&mut run);
    tells(&mut run, &["disk-back", "disk-up-to-date"], (HealthStatus::Healthy, "OK"));
}

#[test]
fn a_failed_flush_expels_the_disk_and_on_a_last_copy_fails_every_flush() {
    let mut run = start(MIRROR);
    fill(&mut run);
    run.engine.queue_mut().faults_mut(0).flush_errors = (0..4096).collect();
    done(&mut run, &[write(0), flush()]).expect("goes on with the rest");
    assert_eq!(state(&run, 0), DiskState::Missing);
    reads_well(&mut run);
    tells(&mut run, &["disk-error", "disk-lost"], (HealthStatus::Warning, "Degraded"));
    // Of a simple space one disk keeps metadata and another the data.
    let mut run = start(SIMPLE);
    fill(&mut run);
    let disk = first_block(SIMPLE, &run)[0].0;
    run.engine.queue_mut().faults_mut(disk).flush_errors = (0..4096).collect();
    done(&mut run, &[write(0), flush()]).expect_err("the last copy was not flushed");
    run.engine.queue_mut().repair(disk);
    done(&mut run, &[flush()]).expect_err("and stays failed (C10)");
    tells(&mut run, &["disk-failing", "flush-failed"], (HealthStatus::Warning, "OK"));
    let mut again = restart(&mut run, SIMPLE, &[]).expect("a start examines the open extents");
    done(&mut again, &[write(0), flush()]).expect("all is well again");
}

#[test]
fn exactly_half_of_the_voters_lost_goes_on_and_more_suspends() {
    let four = (4, 0, 2, 0);
    let mut run = start((2, 0, 2, 0));
    fill(&mut run);
    die(&mut run, 1);
    done(&mut run, &[write(0), flush()]).expect("half goes on");
    assert_eq!(run.engine.halted(), None);
    tells(&mut run, &["disk-lost"], (HealthStatus::Warning, "Degraded"));
    reads_well(&mut run);
    // The one that is left is all that votes from then on.
    let mut again = restart(&mut run, (2, 0, 2, 0), &[1]).expect("it starts alone");
    reads_well(&mut again);
    done(&mut again, &[write(16), flush()]).expect("and goes on");
    reads_well(&mut again);
    let mut run = start(four);
    fill(&mut run);
    [1, 2, 3].into_iter().for_each(|disk| die(&mut run, disk));
    done(&mut run, &[write(0), write(16), write(32), flush()]).expect_err("three of four are gone");
    assert_eq!(run.engine.halted(), Some(Halt::Voters));
    assert!(heard(&mut run).contains(&"halted"));
    assert!(health(&run).0 >= HealthStatus::Unhealthy);
}

#[test]
fn no_quorum_at_start_writes_nothing() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let before = images(&mut run, 3);
    let shape = shape(MIRROR);
    let mut made = queue(&shape, before.clone(), 3, true);
    [0, 1].into_iter().for_each(|disk| made.faults_mut(disk).dead_from = Some(0));
    let refused = crate::Engine::start(&mut made, shape.plan(), 1, 4096, 1).err();
    assert_eq!(refused, Some(StartError::NoQuorum { present: 1, voters: 3 }));
    assert_eq!(made.take_trace().events.len(), 0, "nothing was written or flushed");
    let mut again = restart(&mut run, MIRROR, &[]).expect("with all of them it starts");
    reads_well(&mut again);
    tells(&mut again, &[], (HealthStatus::Healthy, "OK"));
}

#[test]
fn disks_of_two_pools_and_two_of_one_disk_are_refused() {
    let mut run = start(MIRROR);
    let mine = images(&mut run, 3);
    let refused = |images: Vec<Image>| {
        Run::start(&shape(MIRROR), images, &[], oracle(), 4).err().expect("refused")
    };
    let other = Shape { seed: 6, ..shape(MIRROR) };
    let foreign = vec![mine[0].clone(), mine[1].clone(), new_pool(&other)[2].clone()];
    assert_eq!(refused(foreign), StartError::Foreign);
    let twice = vec![mine[0].clone(), mine[1].clone(), mine[1].clone()];
    assert_eq!(refused(twice), StartError::Duplicate { ordinal: 1 });
    let mut again = restart(&mut run, MIRROR, &[]).expect("its own disks start");
    reads_well(&mut again);
    tells(&mut again, &[], (HealthStatus::Healthy, "OK"));
}

/// What the space says of a disk, of the virtual disk, and of the pool.
fn said(run: &Run, disk: usize) -> [(HealthStatus, &'static str); 3] {
    let found = judge(&Facts::running(&run.engine));
    [&found.disks[disk], &found.vdisks[0], &found.pool].map(|one| (one.status, one.operational))
}

/// A solid-state disk of a mirror is lost. What lay on it has one copy less, be it a part of the Performance tier or a copy of the
/// write cache's log, so the virtual disk is Degraded; and the pool is, for its disk. Whether a copy of the log lay on it.
fn without_a_solid_state_disk(disk: u32) -> Result<bool, String> {
    let lines = |run: &Run| run.engine.cached_blocks(0);
    let mut run = start(TIERED);
    fill(&mut run);
    done(&mut run, &[write(112), write(96), write(80)])?;
    assert!(lines(&run) >= 3, "{} lines", lines(&run));
    let own = &run.engine.config().vdisks[0];
    let logs = own.cache.iter().flat_map(|cache| &cache.copies);
    let has_log = logs.map(|copy| u32::from(copy.disk)).any(|other| other == disk);
    heard(&mut run);
    die(&mut run, disk);
    // To both tiers, so that it is missed whatever it has.
    done(&mut run, &[write(0), write(112), flush()])?;
    let nth = usize::try_from(disk).expect("a few");
    assert_eq!(state(&run, nth), DiskState::Missing);
    assert!(lines(&run) > 0, "the other copies of the log have something");
    let expected = ["Lost Communication", "Degraded", "Degraded"];
    let expected = expected.map(|word| (HealthStatus::Warning, word));
    let is_said = |run: &Run, when: &str| match said(run, nth) {
        found if found == expected => Ok(()),
        found => Err(format!("disk {disk}, {when}: {found:?}")),
    };
    is_said(&run, "lost")?;
    rest(&mut run, 6);
    assert_eq!(lines(&run), 0, "destage hurried");
    reads_well(&mut run);
    // What is written now has one copy less as well.
    is_said(&run, "and the cache is empty")?;
    tells(&mut run, &["disk-lost"], (HealthStatus::Warning, "Degraded"));
    let mut again = restart(&mut run, TIERED, &[disk]).expect("starts without it");
    reads_well(&mut again);
    is_said(&again, "and started again")?;
    run.engine.queue_mut().repair(disk);
    run.engine.attach(u16::try_from(disk).expect("a few"));
    rest(&mut run, 4);
    tells(&mut run, &["disk-back", "disk-up-to-date"], (HealthStatus::Healthy, "OK"));
    reads_well(&mut run);
    Ok(has_log)
}

#[test]
fn a_lost_solid_state_disk_leaves_the_cache_on_the_other_copy_and_empties_it() {
    super::left_out::needs(Mutation::LostLogUntold, || {
        let of = 0..TIERED.0 - TIERED.1;
        let had: Vec<bool> = of.map(without_a_solid_state_disk).collect::<Result<_, _>>()?;
        assert_eq!(had.iter().filter(|had| **had).count(), 2, "copies of the log");
        Ok(())
    });
}

/// Writes over cached blocks until the log is full, while a disk that they go home to hangs after some more I/Os, and
/// a scan comes in between.
fn fill_the_log_beside_a_hanging_disk(more: u64) -> (Run, u16, Result<(), String>) {
    let mut run = start(TIERED);
    fill(&mut run);
    done(&mut run, &[80, 84, 88].map(write)).expect("nothing is wrong yet");
    let disk = run.engine.config().vdisks[0].tiers[1].rows[0].slabs[0].0;
    let ios = run.engine.queue_mut().ios(disk.into());
    run.engine.queue_mut().faults_mut(disk.into()).hangs_from = Some(ios + more);
    let over = |nth: u32| Step::WriteOver { client: nth % 6, nth };
    let steps = (0..30).map(over).chain([Step::Scan]).chain((30..120).map(over));
    let written = done(&mut run, &steps.collect::<Vec<Step>>());
    (run, disk, written)
}

/// The room that writes over cached blocks wait for is waited for longer than the disk that keeps it (WBC-4), whether
/// it hangs at what they wait for or at what the engine stands still for.
#[test]
fn a_full_cache_goes_on_without_a_disk_that_hangs() {
    for more in 0..24 {
        let (mut run, disk, written) = fill_the_log_beside_a_hanging_disk(more);
        written.expect("no write fails for it");
        assert_eq!(state(&run, disk.into()), DiskState::Missing, "after {more} I/Os");
        tells(&mut run, &["disk-timeout", "disk-lost"], (HealthStatus::Warning, "Degraded"));
        reads_well(&mut run);
    }
}

/// The test above sees it when writes give up as soon as the disk is given up.
#[test]
fn without_time_anew_a_full_cache_fails_writes() {
    set(Some(Mutation::RoomGivenUpEarly));
    let wrong = (0..24).filter_map(|more| fill_the_log_beside_a_hanging_disk(more).2.err());
    let wrong: Vec<String> = wrong.collect();
    set(None);
    assert!(wrong.len() >= 2, "they fail: {}", wrong.len());
    assert!(wrong.iter().all(|wrong| wrong.contains("Write")), "{wrong:?}");
}

/// Writes over cached blocks until the log is full, before a rotating disk that holds the only copy of their homes and takes
/// nothing any more.
fn fill_the_log_before_a_failing_disk() -> (Run, String) {
    let mut run = start(TIERED);
    fill(&mut run);
    done(&mut run, &[80, 84, 88].map(write)).expect("nothing is wrong yet");
    let slabs = &run.engine.config().vdisks[0].tiers[1].rows[0].slabs;
    let (lost, left) = (slabs[0].0, slabs[1].0);
    die(&mut run, lost.into());
    done(&mut run, &[write(80)]).expect("the other one has all of it");
    let data = run.engine.geometry().slab(0);
    run.engine.queue_mut().faults_mut(left.into()).unwritable = vec![(data, u64::MAX)];
    let over = |nth: u32| Step::WriteOver { client: nth % 6, nth };
    let wrong = done(&mut run, &(0..120).map(over).collect::<Vec<Step>>());
    (run, wrong.expect_err("there is no room for all of them"))
}

/// Who waits for room is told that there is none (WBC-4), though the disk that cannot make it fails again with each attempt and
/// stays, for what only it holds.
#[test]
fn a_full_cache_before_the_last_disk_of_its_home_which_fails_fails_writes() {
    let (run, wrong) = fill_the_log_before_a_failing_disk();
    assert!(wrong.contains("Write") && !wrong.contains("never"), "{wrong}");
    assert_eq!(run.engine.halted(), None);
    set(Some(Mutation::RoomRenewed));
    let wrong = fill_the_log_before_a_failing_disk().1;
    set(None);
    assert!(wrong.contains("is never answered"), "{wrong}");
}

#[test]
fn a_lost_rotating_disk_is_borne_and_brought_up_to_date() {
    let mut run = start(TIERED);
    fill(&mut run);
    die(&mut run, 4);
    done(&mut run, &[write(112), write(96), flush()]).expect("the cache takes it");
    rest(&mut run, 4);
    assert_eq!(state(&run, 4), DiskState::Missing);
    tells(&mut run, &["disk-lost"], (HealthStatus::Warning, "Degraded"));
    run.engine.queue_mut().drop_cache(4, Survivors::Some);
    run.engine.attach(4);
    rest(&mut run, 4);
    assert_eq!((state(&run, 4), run.engine.stale_places()), (DiskState::Online, 0));
    reads_well(&mut run);
    tells(&mut run, &["disk-back", "disk-up-to-date"], (HealthStatus::Healthy, "OK"));
}

#[test]
fn a_disk_that_stays_away_is_given_up_and_another_may_then_be_lost() {
    let of = (5, 0, 2, 0);
    let mut run = start(of);
    fill(&mut run);
    run.engine.set_retirement(Some(Nanos::from_secs(3)));
    die(&mut run, 0);
    done(&mut run, &[write(0), write(16), flush()]).expect("goes on");
    for block in 0..40 {
        // Rebuilding goes on with writes.
        done(&mut run, &[write(block % 8 * 16)]).expect("writes go on");
        rest(&mut run, 1);
    }
    assert_eq!(state(&run, 0), DiskState::Retired);
    assert!(!run.engine.config().holds_retired() && run.engine.stale_places() == 0);
    assert!(run.engine.counters().rebuilt > 0);
    // The virtual disk is whole again; the pool lacks a disk.
    let all = ["disk-lost", "disk-retired", "slab-moves", "disk-up-to-date"];
    tells(&mut run, &all, (HealthStatus::Warning, "OK"));
    die(&mut run, 1);
    done(&mut run, &[write(0), flush()]).expect("another one may be lost");
    reads_well(&mut run);
    let mut again = restart(&mut run, of, &[1]).expect("three of four voters");
    reads_well(&mut again);
    again.attach_returning();
    rest(&mut again, 3);
    assert_eq!(state(&again, 0), DiskState::Online, "it is a member again");
    reads_well(&mut again);
}

/// A disk is given up: whether all that it held is rebuilt on others is told as it then is.
fn gives_up(of: (u32, u32, u8, u64), disk: u32) -> Result<bool, String> {
    let mut run = start(of);
    fill(&mut run);
    rest(&mut run, 4);
    heard(&mut run);
    die(&mut run, disk);
    done(&mut run, &(0..8).map(|nth| write(nth * 16)).chain([flush()]).collect::<Vec<Step>>())?;
    rest(&mut run, 2);
    let nth = u16::try_from(disk).expect("a few");
    assert_eq!(state(&run, nth.into()), DiskState::Missing, "{of:?} {disk}");
    run.engine.retire(nth);
    rest(&mut run, 30);
    assert_eq!(state(&run, nth.into()), DiskState::Retired);
    let events: Vec<crate::Event> = std::iter::from_fn(|| run.engine.next_event()).collect();
    let is_retired = |event: &&crate::Event| event.name() == "disk-retired";
    let event = events.iter().find(is_retired).expect("it is told");
    let told = event.tell(run.engine.config());
    let rebuilt = !run.engine.config().holds_retired();
    let words = if rebuilt { "is rebuilt on others" } else { "plumb pool add-disk" };
    reads_well(&mut run);
    match told.contains(words) && told.contains("rebuilt") == rebuilt {
        true => Ok(rebuilt),
        false => Err(format!("{of:?}, {disk}, rebuilt {rebuilt}: {told}")),
    }
}

#[test]
fn a_disk_is_told_as_rebuilt_on_others_where_they_have_room_for_it() {
    super::left_out::needs(Mutation::NoRoomUntold, || {
        let two = (2, 0, 2, 0);
        let five = (5, 0, 2, 0);
        let three = (3, 0, 3, 0);
        let all = [two, MIRROR, three, five, FOUR, TIERED];
        let each = all.iter().flat_map(|of| (0..of.0).map(move |disk| (*of, disk)));
        let found: Vec<bool> =
            each.map(|(of, disk)| gives_up(of, disk)).collect::<Result<_, _>>()?;
        println!("{found:?}");
        assert!(found.contains(&true) && found.contains(&false), "{found:?}");
        Ok(())
    });
}

#[test]
fn a_durable_record_that_no_log_copy_has_detaches_its_virtual_disk() {
    let mut run = start(TIERED);
    fill(&mut run);
    done(&mut run, &[write(112), write(96), flush()]).expect("durable in the cache");
    assert!(run.engine.cached_blocks(0) > 0);
    let cache = run.engine.config().vdisks[0].cache.clone().expect("it has one");
    for copy in &cache.copies {
        let slab = shape(TIERED).geometry().slab(copy.slabs[0]);
        // The ring holds a few records: all their headers.
        for nth in 0..16 {
            let disk = copy.disk.into();
            run.engine.queue_mut().tamper(disk, slab + nth * 4096, &[0xee; 4096]);
        }
    }
    let mut run = restart(&mut run, TIERED, &[]).expect("others may lie beside it");
    assert!(heard(&mut run).contains(&"cache-away"));
    assert_eq!(health(&run), (HealthStatus::Unknown, "Detached (Incomplete)"));
    for block in [0, 96, 112] {
        let kind = RequestKind::Read;
        let read = crate::Request { kind, vdisk: 0, offset: block * 4096, len: 4096 };
        assert_eq!(run.ask(0, read), Ok(false), "nothing old is told");
    }
}

#[test]
fn rot_in_data_is_healed_and_without_a_copy_an_error() {
    for (of, heals) in [(MIRROR, true), (SIMPLE, false)] {
        let mut run = start(of);
        fill(&mut run);
        rest(&mut run, 8);
        let (disk, offset) = first_block(of, &run)[0];
        run.engine.queue_mut().tamper(disk, offset + 512, &[0xee; 512]);
        let first = run.read_all(Promise::Acknowledged, 0);
        let second = run.read_all(Promise::Acknowledged, 1);
        assert_eq!(first.is_ok() && second.is_ok(), heals, "{first:?} {second:?}");
        rest(&mut run, 2);
        let counters = run.engine.counters();
        assert_eq!(counters.healed > 0, heals, "{counters:?}");
        assert_eq!(counters.unrecoverable > 0, !heals, "{counters:?}");
        match heals {
            true => tells(&mut run, &["bad-copy", "healed"], (HealthStatus::Healthy, "OK")),
            false => {
                let ill = (HealthStatus::Unhealthy, "No Redundancy");
                tells(&mut run, &["bad-copy", "unrecoverable"], ill);
            }
        }
        let lost = if heals { vec![] } else { vec![(0, 65_536)] };
        assert_eq!(run.engine.lost_of(0), lost);
        // Written anew, and a scan has seen it.
        done(&mut run, &[write(0), flush()]).expect("it takes it");
        run.engine.scan();
        rest(&mut run, 4);
        assert_eq!(run.engine.lost_of(0), []);
    }
}

/// Section 8: what lay on a disk that was given up lies elsewhere, and so does what holds nothing, of which nobody has a copy.
#[test]
fn places_that_hold_nothing_move_from_a_disk_that_is_given_up() {
    let of = (4, 0, 1, 0);
    let mut run = start(of);
    let rows = |run: &Run| {
        let tiers = run.engine.config().vdisks[0].tiers.clone();
        let slabs = tiers.into_iter().flat_map(|tier| tier.rows).flat_map(|row| row.slabs);
        slabs.map(|slab| slab.0).collect::<Vec<u16>>()
    };
    let disk = rows(&run)[0];
    die(&mut run, disk.into());
    rest(&mut run, 2);
    done(&mut run, &[flush()]).expect("nobody needs it");
    rest(&mut run, 2);
    assert_eq!(state(&run, disk.into()), DiskState::Missing);
    run.engine.retire_missing();
    rest(&mut run, 20);
    assert!(!rows(&run).contains(&disk), "{:?}", rows(&run));
    assert_eq!(health(&run).1, "OK");
    fill(&mut run);
    reads_well(&mut run);
}

/// Moves an extent; what became of it.
pub(super) fn moved(run: &mut Run, extent: u32, to: TierName) -> MoveOutcome {
    run.engine.move_extent(0, extent, to);
    for _ in 0..20_000 {
        run.poll();
        if let Some(done) = run.engine.pop_move() {
            assert_eq!(done.extent, extent);
            return done.outcome;
        }
    }
    panic!("the move of {extent} never ends");
}

/// Spoils the first block of extent 4, the first one on the rotating tier, on so many of its copies.
fn spoil(run: &mut Run, of: (u32, u32, u8, u64), copies: usize) {
    let row = run.engine.config().vdisks[0].tiers[1].rows[0].slabs.clone();
    for (disk, slab) in row.into_iter().take(copies) {
        let at = shape(of).geometry().slab(slab);
        run.engine.queue_mut().tamper(disk.into(), at, &[0x5a; 4096]);
    }
}

#[test]
fn what_does_not_verify_is_healed_before_it_moves_or_stays_where_it_is() {
    let of = (2, 1, 1, 0);
    let with_room = || {
        let mut run = start(of);
        fill(&mut run);
        assert_eq!(moved(&mut run, 0, TierName::Capacity), MoveOutcome::Moved);
        run
    };
    let mut run = with_room();
    spoil(&mut run, of, 1);
    assert_eq!(moved(&mut run, 4, TierName::Performance), MoveOutcome::Unreadable);
    assert_eq!(moved(&mut run, 5, TierName::Performance), MoveOutcome::Moved);
    // What somebody would see if it were not looked at.
    let mut run = with_room();
    spoil(&mut run, of, 1);
    crate::mutation::set(Some(crate::mutation::Mutation::MoveUnverified));
    let copied = moved(&mut run, 4, TierName::Performance);
    crate::mutation::set(None);
    assert_eq!(copied, MoveOutcome::Moved, "corruption was copied");

    let of = (5, 2, 2, 0);
    let case = |patience: Nanos| {
        let mut run = start(of);
        run.engine.set_move_patience(patience);
        fill(&mut run);
        assert_eq!(moved(&mut run, 0, TierName::Capacity), MoveOutcome::Moved);
        spoil(&mut run, of, 1);
        assert_eq!(moved(&mut run, 4, TierName::Performance), MoveOutcome::Moved, "{patience:?}");
        reads_well(&mut run);
    };
    case(Nanos::ZERO);
    // Nobody writes to it: a move that would rather wait for a moment without writes ends all the same.
    case(Nanos::from_millis(100));
    crate::mutation::set(Some(crate::mutation::Mutation::QuietMovesOn));
    let went = std::panic::catch_unwind(|| case(Nanos::from_millis(100)));
    crate::mutation::set(None);
    assert!(went.is_err(), "it ends without the rule");
}

/// A checkpoint waits out a disk that hangs; the requests behind it begin when it is over, and no other disk is late.
#[test]
fn a_disk_that_hangs_within_a_checkpoint_takes_no_other_one_with_it() {
    let mut run = start(TIERED);
    fill(&mut run);
    for client in 0..4_u32 {
        run.engine.checkpoint();
        let kind = RequestKind::Write { fua: false };
        let request = Step::Request { client, kind, offset: u64::from(client) * 4096, len: 4096 };
        let ios = run.engine.queue_mut().ios(1);
        run.engine.queue_mut().faults_mut(1).hangs_from.get_or_insert(ios);
        // Time enough for a look at what is late, right behind the checkpoint.
        let rest = Step::Sleep { millis: 1100 };
        done(&mut run, &[request, rest, write(64), write(96)]).expect("four disks go on");
    }
    assert_eq!(run.engine.halted(), None);
    let missing = (0..5).filter(|disk| state(&run, *disk) != DiskState::Online);
    assert_eq!(missing.collect::<Vec<_>>(), [1]);
    tells(&mut run, &["disk-timeout", "disk-lost"], (HealthStatus::Warning, "Degraded"));
    reads_well(&mut run);
}

/// Whoever asks whether anything is left to do hears of a disk that is about to go.
#[test]
fn a_disk_that_is_to_be_done_without_is_work_until_it_is() {
    let mut run = start(MIRROR);
    fill(&mut run);
    rest(&mut run, 2);
    assert!(run.engine.is_quiet() && !run.engine.has_work());
    run.engine.take_offline(2);
    assert!(!run.engine.is_quiet() && run.engine.has_work());
    rest(&mut run, 1);
    assert_eq!(state(&run, 2), DiskState::Missing);
    assert!(run.engine.is_quiet());
}
