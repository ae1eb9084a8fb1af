//! Steps that chance seldom needs: each is left out in a case made for it, and what then is lost is seen.

use plumb_io::sim::power::{CrashKind, Event, Image, Replay, Survivors};

use super::faults::{
    MIRROR, SIMPLE, TIERED, done, fill, first_block, flush, images, rest, restart, shape, start,
    state, write,
};
use super::history::{CLIENTS, Shape, Step};
use super::oracle::{Oracle, Promise};
use super::run::{Run, queue};
use super::states::{Points, check_again};
use crate::format::{DiskState, Geometry};
use crate::mutation::{Mutation, set};
use crate::random::Random;
use crate::{Request, RequestKind};

/// Three disks are more than half of five without two.
pub(super) const FIVE: (u32, u32, u8, u64) = (5, 0, 2, 0);

/// Holds with all rules, and not without that one.
pub(super) fn needs(mutation: Mutation, case: impl Fn() -> Result<(), String>) {
    assert_eq!(case(), Ok(()), "with all rules");
    set(Some(mutation));
    let without = case();
    set(None);
    println!("{mutation:?}: {without:?}");
    assert!(without.is_err(), "{mutation:?} is not noticed");
}

fn ordinal(disk: u32) -> u16 {
    u16::try_from(disk).expect("a few")
}

fn is(disk: u32, run: &Run) -> DiskState {
    state(run, usize::from(ordinal(disk)))
}

/// What the power leaves of all disks when nothing that was not flushed is kept.
fn without_power(run: &mut Run, disks: u32) -> Vec<Image> {
    (0..disks).for_each(|disk| run.engine.queue_mut().drop_cache(disk, Survivors::None));
    images(run, disks)
}

pub(super) fn content(image: &Image, at: u64) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    image.read(at, &mut bytes);
    bytes
}

/// The rows behind those that histories use hold something as well.
fn fill_all(run: &mut Run) {
    for nth in 8..16 {
        let kind = RequestKind::Write { fua: true };
        let more = Request { kind, vdisk: 0, offset: nth * 65_536, len: 4096 };
        assert_eq!(run.ask(0, more), Ok(true));
    }
}

/// The first block as a client reads it.
fn first(run: &mut Run) -> Result<Vec<u8>, String> {
    let request = Request { kind: RequestKind::Read, vdisk: 0, offset: 0, len: 4096 };
    match run.ask(0, request)? {
        true => Ok(run.engine.buffer_mut(0)[..4096].to_vec()),
        false => Err("the first block cannot be read".to_owned()),
    }
}

/// All disks are back, and what they missed is copied as far as anybody knows of it.
fn all_back(run: &mut Run, disks: u32) {
    run.attach_returning();
    for disk in 0..disks {
        if is(disk, run) == DiskState::Missing {
            run.engine.attach(ordinal(disk));
        }
    }
    rest(run, 6);
}

/// The first block is read where it was not written at first.
fn read_without(run: &mut Run, disk: u32) -> Result<(), String> {
    run.engine.take_offline(ordinal(disk));
    rest(run, 1);
    if is(disk, run) == DiskState::Online {
        return Err(format!("disk {disk} is needed"));
    }
    run.read_all(Promise::Acknowledged, 0)
}

/// A copy of a block that lay still is healed; the power goes before it is durable. The next start has the intent, and
/// heals it again: nobody would look for it there.
#[test]
fn a_heal_that_was_cut_short_is_done_again() {
    needs(Mutation::HealUnopened, || {
        let mut run = start(MIRROR);
        fill(&mut run);
        rest(&mut run, 8);
        // The next round is a second away.
        done(&mut run, &[write(16), flush()])?;
        let (disk, at) = first_block(MIRROR, &run)[0];
        let good = content(&run.engine.queue_mut().view(disk), at);
        assert!(run.engine.queue_mut().rot(disk, at + 700, 3));
        let from = run.engine.queue_mut().events();
        for client in 0..CLIENTS {
            let request = Request { kind: RequestKind::Read, vdisk: 0, offset: 0, len: 4096 };
            assert_eq!(run.ask(client, request), Ok(true));
        }
        (0..8).for_each(|_| run.poll());
        assert_eq!(run.engine.counters().healed, 1);
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Durable);
        // When it was written, and before it was flushed.
        let trace = run.engine.queue_mut().take_trace();
        let heals = |event: &Event| matches!(event, Event::Write { disk: own, offset, .. } if (*own, *offset) == (disk, at));
        let nth = trace.events[from..].iter().position(heals).expect("it is healed");
        let mut replay = Replay::new(&trace, 512);
        replay.advance_to(from + nth + 1);
        let (left, _) = replay.crash(CrashKind::Power, &[], Survivors::None, 7);
        assert!(content(&left[disk as usize], at) != good, "it was not durable yet");
        let again = Run::start(&shape(MIRROR), left, &[], oracle, 7);
        let mut again = again.map_err(|error| error.to_string())?;
        let healed = content(&again.engine.queue_mut().view(disk), at) == good;
        if healed { Ok(()) } else { Err("the copy is bad still".to_owned()) }
    });
}

/// A disk that is needed fails a write, and stays; the extent closes, and the engine dies. What it missed is copied then,
/// for the journal says so.
#[test]
fn what_a_disk_that_stayed_missed_is_known_to_the_next_start() {
    needs(Mutation::FailedCopyUnrecorded, || {
        let mut run = start(MIRROR);
        fill(&mut run);
        let [(a, _), (b, at)] = [0, 1].map(|nth| first_block(MIRROR, &run)[nth]);
        let (a, b, at) = needed_one(&run, (a, b), at);
        let third = (0..3).find(|disk| ![a, b].contains(disk)).expect("three disks");
        run.let_any_fail((0..3).collect(), (0..3).collect());
        run.engine.take_offline(ordinal(third));
        rest(&mut run, 1);
        // Of another row this one has all there is.
        let all: Vec<Step> = (0..8).map(|nth| write(nth * 16 + 1)).chain([flush()]).collect();
        done(&mut run, &all)?;
        run.engine.queue_mut().faults_mut(b).unwritable = vec![(at, at + 4096)];
        done(&mut run, &[write(0)])?;
        assert_eq!(is(b, &run), DiskState::Online, "it is needed");
        rest(&mut run, 12);
        let mut again = restart(&mut run, MIRROR, &[]).map_err(|error| error.to_string())?;
        all_back(&mut again, 3);
        read_without(&mut again, a)
    });
}

/// Of two disks the one that shares the next row with the third: without that it is needed.
fn needed_one(run: &Run, (a, b): (u32, u32), at: u64) -> (u32, u32, u64) {
    let next = &run.engine.config().vdisks[0].tiers[0].rows[1].slabs;
    match next.iter().any(|slab| u32::from(slab.0) == b) {
        true => (a, b, at),
        false => (b, a, first_block(MIRROR, run)[0].1),
    }
}

/// A start finds a block that neither copy has whole, and cannot read either; later both can be read. What a reader is told
/// then stays, also when the power goes, and the disk that it was read from.
#[test]
fn what_was_decided_late_and_read_is_on_all_copies() {
    needs(Mutation::LateSettleUnflushed, || {
        let mut run = start(MIRROR);
        fill(&mut run);
        let places = first_block(MIRROR, &run);
        for (nth, (disk, at)) in (1..).zip(&places) {
            run.engine.queue_mut().tamper(*disk, *at, &[nth; 4096]);
        }
        let oracle = run.witness.oracle.clone();
        let mut made = queue(&shape(MIRROR), images(&mut run, 3), 7, true);
        for (disk, at) in &places {
            made.faults_mut(*disk).unreadable = vec![(*at, at + 4096)];
        }
        let between = Run::start_on(&shape(MIRROR), made, oracle.clone(), 8);
        let mut between = between.map_err(|error| error.to_string())?;
        between.sound = false;
        (0..3).for_each(|disk| between.engine.queue_mut().repair(disk));
        let told = first(&mut between)?;
        assert!(told == [1; 4096] || told == [2; 4096]);
        let (from, _) = places[usize::from(told[0]) - 1];
        let left = without_power(&mut between, 3);
        let again = Run::start(&shape(MIRROR), left, &[from], oracle, 9);
        let mut again = again.map_err(|error| error.to_string())?;
        match first(&mut again)? == told {
            true => Ok(()),
            false => Err("it is another content now".to_owned()),
        }
    });
}

/// A disk is away, an extent is written, and closes; with `checkpoint` the journal begins anew in between. The engine dies,
/// the disk comes back, and the other copy goes.
fn written_while_a_disk_was_away(checkpoint: bool) -> Result<(), String> {
    let mut run = start(FIVE);
    fill(&mut run);
    let [(a, _), (b, _)] = [0, 1].map(|nth| first_block(FIVE, &run)[nth]);
    rest(&mut run, 8);
    run.let_any_fail((0..5).collect(), (0..5).collect());
    run.engine.take_offline(ordinal(b));
    rest(&mut run, 1);
    if checkpoint {
        run.engine.checkpoint();
        rest(&mut run, 1);
    }
    let before = run.engine.counters().checkpoints;
    done(&mut run, &[write(0), flush()])?;
    rest(&mut run, 8);
    assert_eq!(run.engine.counters().checkpoints, before);
    let mut again = restart(&mut run, FIVE, &[]).map_err(|error| error.to_string())?;
    all_back(&mut again, 5);
    read_without(&mut again, a)
}

#[test]
fn what_is_opened_while_a_disk_is_away_is_stale_there_when_it_is_replayed() {
    needs(Mutation::ReplayedOpenUnmarked, || written_while_a_disk_was_away(false));
}

#[test]
fn a_checkpoint_says_which_disks_are_away() {
    needs(Mutation::CheckpointForgetsLost, || written_while_a_disk_was_away(true));
}

/// A first write that the power took; its place cannot be read by the next start, and can by the one after it. What lay
/// there before is somebody else's.
#[test]
fn a_first_write_that_is_not_settled_is_so_behind_a_checkpoint() {
    needs(Mutation::CheckpointForgetsFirst, || {
        let mut run = start(SIMPLE);
        fill(&mut run);
        let (disk, at) = first_block(SIMPLE, &run)[0];
        done(&mut run, &[write(1)])?;
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Durable);
        run.engine.queue_mut().tamper(disk, at + 4096, &[0x5a; 4096]);
        let mut made = queue(&shape(SIMPLE), images(&mut run, 2), 7, true);
        made.faults_mut(disk).unreadable = vec![(at + 4096, at + 8192)];
        let between = Run::start_on(&shape(SIMPLE), made, oracle.clone(), 8);
        let mut between = between.map_err(|error| error.to_string())?;
        between.engine.checkpoint();
        rest(&mut between, 1);
        let left = images(&mut between, 2);
        let again = Run::start(&shape(SIMPLE), left, &[], oracle, 9);
        let mut again = again.map_err(|error| error.to_string())?;
        again.sound = false;
        again.read_all(Promise::Durable, 0)
    });
}

/// A disk comes back with a copy of the log: what it lacked is durable before any generation calls it current.
#[test]
fn a_copy_of_the_log_is_durable_before_it_is_called_current() {
    needs(Mutation::LogReturnUnflushed, || {
        let mut run = start(TIERED);
        fill(&mut run);
        let cache = run.engine.config().vdisks[0].cache.clone().expect("it has one");
        let copy = &cache.copies[0];
        let geometry = shape(TIERED).geometry();
        let log = geometry.slab(copy.slabs[0])..geometry.slab(copy.slabs[0]) + geometry.slab_bytes;
        run.let_any_fail((0..5).collect(), (0..5).collect());
        run.engine.take_offline(copy.disk);
        rest(&mut run, 1);
        done(&mut run, &[write(112), write(96), write(80)])?;
        let from = run.engine.queue_mut().events();
        run.engine.attach(copy.disk);
        (0..16).for_each(|_| run.poll());
        assert_eq!(is(copy.disk.into(), &run), DiskState::Online);
        let trace = run.engine.queue_mut().take_trace();
        let configuration = geometry.config(0)..geometry.config(0) + 2 * geometry.config_bytes;
        let superblocks = Geometry::superblocks(shape(TIERED).disk_bytes());
        let own = u32::from(copy.disk);
        let (mut copied, mut uncovered) = (false, false);
        for event in &trace.events[from..] {
            match event {
                Event::Write { disk, offset, .. } if *disk == own && log.contains(offset) => {
                    (copied, uncovered) = (true, true);
                }
                Event::Flush { disk, .. } if *disk == own => uncovered = false,
                Event::Write { disk, offset, .. } if *disk != own && uncovered => {
                    let names = configuration.contains(offset) || superblocks.contains(offset);
                    if names {
                        return Err("a generation is written while the copy is not".to_owned());
                    }
                }
                _ => {}
            }
        }
        assert!(copied, "there is something in the log");
        Ok(())
    });
}

/// Writes over what a full log holds: somebody waits for each bit of room in it. The power goes at any moment.
#[test]
fn room_in_a_full_log_is_given_away_when_the_journal_has_its_tail() {
    let shape: Shape = shape(TIERED);
    let mut history: Vec<Step> = (0..8).map(|nth| write(nth * 16)).chain([flush()]).collect();
    history.extend([80, 84, 88, 96, 100, 104, 112, 116].map(write));
    history.extend((0..60).map(|nth| Step::WriteOver { client: nth % CLIENTS, nth }));
    let draws: Vec<Random> = (0..6).map(|nth| Random::new(0x100 + nth)).collect();
    needs(Mutation::LogRoundEarly, || {
        let found = check_again(&shape, &history, 3, (&Points::FromEnd(40..=110), &draws));
        found.map_err(|broken| format!("{:?}: {}", broken.crash, broken.wrong))
    });
}

/// What a crash leaves while a disk comes back, after so many of the events of that.
fn while_it_comes_back(disk: u32) -> (Oracle, Vec<Vec<Image>>) {
    let mut run = start(FIVE);
    fill(&mut run);
    fill_all(&mut run);
    rest(&mut run, 8);
    run.let_any_fail((0..5).collect(), (0..5).collect());
    run.engine.take_offline(ordinal(disk));
    rest(&mut run, 1);
    let from = run.engine.queue_mut().events();
    run.engine.attach(ordinal(disk));
    (0..64).for_each(|_| {
        if is(disk, &run) != DiskState::Online {
            run.poll();
        }
    });
    let to = run.engine.queue_mut().events();
    let trace = run.engine.queue_mut().take_trace();
    let mut replay = Replay::new(&trace, 512);
    let left = (from..=to).map(|point| {
        replay.advance_to(point);
        replay.crash(CrashKind::Engine, &[], Survivors::All, 1).0
    });
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    (oracle, left.collect())
}

/// The engine dies while a disk comes back: its generation calls it here, the journal does not. The next start cannot
/// flush the last copy of something, and so makes no checkpoint; another disk goes, the engine dies, and all are back.
#[test]
fn a_start_writes_down_that_a_disk_is_here() {
    let rows = start(FIVE).engine.config().vdisks[0].tiers[0].rows.clone();
    let pairs: Vec<[u32; 2]> =
        rows.iter().map(|row| [0, 1].map(|nth| u32::from(row.slabs[nth].0))).collect();
    let [one, back] = pairs[0];
    let apart = |pair: &&[u32; 2]| !pair.contains(&one) && !pair.contains(&back);
    let [needed, away] = *pairs.iter().find(apart).expect("five disks");
    let (oracle, left) = while_it_comes_back(back);
    needs(Mutation::DiskBackUnrecorded, || {
        let mut count = 0;
        // Those flushes are of what it settles, and of its checkpoint.
        for (nth, images_then) in left.iter().enumerate().step_by(2) {
            for flushes in 7..10 {
                let shape = shape(FIVE);
                let mut made = queue(&shape, images_then.clone(), 7, true);
                made.faults_mut(away).dead_from = Some(0);
                made.faults_mut(needed).flush_errors = (flushes..4096).collect();
                let Ok(mut run) = Run::start_on(&shape, made, oracle.clone(), 8) else { continue };
                run.let_any_fail((0..5).collect(), (0..5).collect());
                if run.engine.counters().checkpoints > 0 || is(back, &run) != DiskState::Online {
                    continue;
                }
                done(&mut run, &[write(0)])?;
                run.engine.take_offline(ordinal(one));
                rest(&mut run, 1);
                count += u32::from(is(one, &run) == DiskState::Missing);
                done(&mut run, &[write(0), write(1)])?;
                let mut again = restart(&mut run, FIVE, &[]).map_err(|error| error.to_string())?;
                all_back(&mut again, 5);
                let read = again.read_all(Promise::Acknowledged, 0);
                read.map_err(|wrong| format!("{nth}, {flushes}: {wrong}"))?;
            }
        }
        assert!(count > 20, "{count} cases");
        Ok(())
    });
}
