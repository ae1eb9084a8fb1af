//! Two virtual disks in one pool: a mirror, and one without copies beside it. What the one loses costs the other nothing.

use plumb_io::Errno;
use plumb_io::sim::power::{Image, PowerQueue, Survivors};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_usize};

use super::faults::{fill, oracle, shape};
use super::history::{EXTENT_BYTES, Shape};
use super::left_out::needs;
use super::oracle::Promise;
use super::run::{Run, queue};
use crate::format::DiskState;
use crate::mutation::{Mutation, set};
use crate::pool::{Facts, HealthStatus, judge};
use crate::{Engine, NewVirtualDisk, Request, RequestKind, StartError, create};

const MIRROR: u32 = 0;
const SCRATCH: u32 = 1;
const FUA: RequestKind = RequestKind::Write { fua: true };
const PLAIN: RequestKind = RequestKind::Write { fua: false };
/// Blocks of each that are written.
const BLOCKS: [u64; 2] = [128, 96];

/// A pool with both, and what was written to each.
struct Pair {
    shape: Shape,
    engine: Engine<PowerQueue>,
    /// By virtual disk and block: what was written last, and which of these writes are durable.
    written: [Vec<u8>; 2],
}

fn start_on(shape: &Shape, made: PowerQueue, seed: u64) -> Result<Engine<PowerQueue>, StartError> {
    let mut engine = Engine::start(made, shape.plan(), 2, EXTENT_BYTES, seed)?;
    engine.set_close_after(Nanos::ZERO);
    Ok(engine)
}

impl Pair {
    /// The mirror has a cache; the other one has one of that many bytes.
    fn new(cache: u64) -> Self {
        Self::of(shape((5, 2, 2, 64 << 10)), cache)
    }

    fn of(shape: Shape, cache: u64) -> Self {
        let mut pool = shape.pool();
        pool.vdisks.push(NewVirtualDisk {
            name: "scratch".into(),
            copies: 1,
            columns: 1,
            interleave: 16 << 10,
            tier_bytes: [256 << 10, 256 << 10],
            cache_bytes: cache,
        });
        let images = vec![Image::new(shape.disk_bytes()); 5];
        let mut made = queue(&shape, images, 1, false);
        create(&mut made, shape.plan(), &pool, 1).expect("it fits");
        let images = (0..5).map(|disk| made.view(disk)).collect();
        let engine = start_on(&shape, queue(&shape, images, 2, false), 3).expect("it starts");
        let written = BLOCKS.map(|blocks| vec![0; to_usize(blocks)]);
        Self { shape, engine, written }
    }

    /// Starts again on what the disks show; those that are `absent` answer nothing.
    fn restart(mut self, absent: &[u32]) -> Result<Self, StartError> {
        let images = (0..5).map(|disk| self.engine.queue_mut().view(disk)).collect();
        let mut made = queue(&self.shape, images, 4, false);
        for &disk in absent {
            made.faults_mut(disk).dead_from = Some(0);
        }
        let engine = start_on(&self.shape, made, 5)?;
        Ok(Self { engine, ..self })
    }

    fn ask(&mut self, kind: RequestKind, vdisk: u32, block: u64) -> Result<(), Errno> {
        let len = if kind == RequestKind::Flush { 0 } else { 4096 };
        self.engine.submit(0, Request { kind, vdisk, offset: block * 4096, len });
        for turn in 0..20_000 {
            let now = self.engine.queue_mut().now();
            self.engine.poll(now, Nanos(60_000));
            if let Some((_, outcome)) = self.engine.pop() {
                return outcome;
            }
            if turn % 64 == 63 {
                self.engine.queue_mut().advance(Nanos::from_secs(2));
            }
        }
        panic!("{kind:?} of {vdisk} is never answered, halted {:?}", self.engine.halted())
    }

    fn write(&mut self, kind: RequestKind, vdisk: u32, block: u64, value: u8) -> Result<(), Errno> {
        self.engine.buffer_mut(0)[..4096].fill(value);
        let outcome = self.ask(kind, vdisk, block);
        if outcome.is_ok() {
            self.written[index(vdisk)][to_usize(block)] = value;
        }
        outcome
    }

    fn fill(&mut self, vdisk: u32, value: u8) {
        for block in 0..BLOCKS[index(vdisk)] {
            let value = value.wrapping_add(u8::try_from(block % 50).expect("small"));
            self.write(PLAIN, vdisk, block, value).expect("nothing is wrong yet");
        }
        self.ask(RequestKind::Flush, vdisk, 0).expect("nor now");
    }

    fn value(&mut self, vdisk: u32, block: u64) -> Option<u8> {
        self.ask(RequestKind::Read, vdisk, block).ok()?;
        let bytes = &self.engine.buffer_mut(0)[..4096];
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a whole block of one write");
        Some(bytes[0])
    }

    /// Blocks that fail, and blocks that hold something else than what was written last.
    fn read_all(&mut self, vdisk: u32) -> (usize, usize) {
        let (mut failed, mut wrong) = (0, 0);
        for block in 0..BLOCKS[index(vdisk)] {
            let wanted = self.written[index(vdisk)][to_usize(block)];
            match self.value(vdisk, block) {
                None => failed += 1,
                Some(found) => wrong += usize::from(found != wanted),
            }
        }
        (failed, wrong)
    }

    /// The disk of the log of the one without copies, or else of its first slab.
    fn needed(&self) -> u16 {
        let own = &self.engine.config().vdisks[index(SCRATCH)];
        let log = own.cache.as_ref().map(|cache| cache.copies[0].disk);
        log.unwrap_or(own.tiers[0].rows[0].slabs[0].0)
    }

    /// Lets the engine work until a disk stands so.
    fn until(&mut self, disk: u16, state: DiskState) {
        for _ in 0..2000 {
            if self.state(disk) != state {
                let now = self.engine.queue_mut().now();
                self.engine.poll(now, Nanos(60_000));
            }
        }
        assert_eq!(self.state(disk), state, "{:?}", self.heard());
    }

    /// Lets the engine work until every place holds what it should.
    fn until_up_to_date(&mut self) {
        for _ in 0..4000 {
            if self.engine.stale_places() > 0 {
                self.engine.queue_mut().advance(Nanos(1_000_000));
                let now = self.engine.queue_mut().now();
                self.engine.poll(now, Nanos(60_000));
            }
        }
        assert_eq!(self.engine.stale_places(), 0, "{:?}", self.heard());
    }

    /// The disks of the mirror's first row, and their slabs.
    fn mirror_slabs(&self) -> [(u16, u32); 2] {
        let slabs = &self.engine.config().vdisks[index(MIRROR)].tiers[0].rows[0].slabs;
        slabs[..].try_into().expect("it has two copies")
    }

    fn state(&self, disk: u16) -> DiskState {
        self.engine.config().disks[usize::from(disk)].state
    }

    fn health(&self, vdisk: u32) -> (HealthStatus, &'static str) {
        let own = judge(&Facts::running(&self.engine)).vdisks[index(vdisk)].clone();
        (own.status, own.operational)
    }

    fn heard(&mut self) -> Vec<&'static str> {
        std::iter::from_fn(|| self.engine.next_event()).map(|event| event.name()).collect()
    }

    /// The mirror does all that it should: what was flushed is there, and it takes writes, writes through and FLUSH.
    fn mirror_serves(&mut self) {
        assert_eq!(self.read_all(MIRROR), (0, 0));
        for block in [3, 70, 127] {
            self.write(PLAIN, MIRROR, block, 201).expect("a write of the mirror");
            self.write(FUA, MIRROR, block - 1, 202).expect("a write through of the mirror");
        }
        self.ask(RequestKind::Flush, MIRROR, 0).expect("a FLUSH of the mirror");
        assert_eq!(self.read_all(MIRROR), (0, 0));
    }

    fn let_work(&mut self, seconds: u64) {
        for _ in 0..seconds * 4 {
            self.engine.queue_mut().advance(Nanos::from_millis(250));
            for _ in 0..8 {
                let now = self.engine.queue_mut().now();
                self.engine.poll(now, Nanos(60_000));
            }
        }
    }
}

/// A pool whose one virtual disk has newer data in its log than at home, durably; the disk of the log.
fn with_a_log_in_use() -> (Pair, u16) {
    let mut pair = Pair::new(64 << 10);
    pair.fill(MIRROR, 1);
    pair.fill(SCRATCH, 60);
    // Destaged, and then a newer one, which is in the log alone.
    pair.let_work(6);
    assert_eq!(pair.engine.cached_blocks(SCRATCH), 0, "all is at home");
    pair.write(PLAIN, SCRATCH, 80, 250).expect("to the log");
    pair.ask(RequestKind::Flush, SCRATCH, 0).expect("durable there");
    assert_eq!(pair.engine.cached_blocks(SCRATCH), 1, "it lies on the Capacity tier");
    let log = pair.needed();
    (pair, log)
}

/// Section 18: the rest stays online. What the log holds is newer than what lies at home, so nothing of its virtual disk is
/// told before it is back; then all of it is there.
#[test]
fn a_lost_log_takes_its_virtual_disk_alone_until_it_is_back() {
    let (pair, log) = with_a_log_in_use();
    let mut pair = pair.restart(&[log.into()]).expect("the mirror has all it needs");
    assert!(pair.heard().contains(&"cache-away"));
    pair.mirror_serves();
    for kind in [RequestKind::Read, PLAIN, FUA, RequestKind::Discard, RequestKind::Flush] {
        assert_eq!(pair.ask(kind, SCRATCH, 80), Err(Errno(5)), "{kind:?}");
    }
    assert_eq!(pair.read_all(SCRATCH), (96, 0), "nothing old is told");
    assert_eq!(pair.health(SCRATCH), (HealthStatus::Unknown, "Detached (Incomplete)"));
    pair.engine.move_extent(SCRATCH, 5, crate::optimizer::TierName::Performance);
    pair.engine.scan();
    pair.engine.checkpoint();
    pair.let_work(3);
    pair.mirror_serves();
    // Twice, so that a checkpoint and an epoch lie between; and it takes part again while the pool serves.
    let mut pair = pair.restart(&[log.into()]).expect("as before");
    pair.mirror_serves();
    let mut pair = pair.restart(&[]).expect("all are here");
    assert_eq!(pair.read_all(SCRATCH), (96, 0), "it does not take part yet");
    pair.engine.attach(log);
    pair.let_work(3);
    let heard = pair.heard();
    assert!(heard.contains(&"cache-back"), "{heard:?}");
    assert_eq!(pair.read_all(SCRATCH), (0, 0), "all that was acknowledged");
    assert_eq!(pair.health(SCRATCH).0, HealthStatus::Healthy);
    pair.write(FUA, SCRATCH, 65, 251).expect("it serves");
    pair.fill(SCRATCH, 100);
    let mut pair = pair.restart(&[]).expect("all are here");
    assert_eq!(pair.read_all(SCRATCH), (0, 0));
    pair.mirror_serves();
}

/// The rule is what keeps old data from being told.
#[test]
fn a_lost_log_that_is_taken_for_empty_tells_old_data() {
    let (pair, log) = with_a_log_in_use();
    set(Some(Mutation::LostLogTakenAsEmpty));
    let mut pair = pair.restart(&[log.into()]).expect("it starts");
    let (_, wrong) = pair.read_all(SCRATCH);
    set(None);
    assert_eq!(wrong, 1, "a block is old");
}

/// A disk with a lost log that is given up, whose slabs another disk could take, keeps it; and an empty one is never made in
/// its place.
#[test]
fn a_lost_log_is_never_made_anew_as_an_empty_one() {
    let (pair, log) = with_a_log_in_use();
    let mut pair = pair.restart(&[log.into()]).expect("it starts");
    pair.engine.retire_missing();
    pair.let_work(8);
    assert_eq!(pair.state(log), DiskState::Retired);
    assert_eq!(pair.needed(), log, "the log stays where it is");
    assert_eq!(pair.read_all(SCRATCH), (96, 0));
    let mut pair = pair.restart(&[log.into()]).expect("again");
    pair.let_work(2);
    assert_eq!(pair.read_all(SCRATCH), (96, 0));
    pair.mirror_serves();
    let mut pair = pair.restart(&[]).expect("with it");
    pair.engine.attach(log);
    pair.let_work(8);
    assert_eq!(pair.read_all(SCRATCH), (0, 0));
}

/// A start makes the copies of the mirror's log equal, and one of their disks, which has the only copy of the other log as well, does
/// not flush that: the mirror goes on without it. The other log was not read yet; it is away, and whole when its disk is back.
#[test]
fn a_log_that_a_start_has_not_read_is_not_closed() {
    let failing_flush = |nth: u64| {
        let (mut pair, log) = with_a_log_in_use();
        let cache = pair.engine.config().vdisks[index(MIRROR)].cache.clone().expect("it has one");
        let disks: Vec<u16> = cache.copies.iter().map(|copy| copy.disk).collect();
        let other = *disks.iter().find(|disk| **disk != log).expect("there are two");
        assert!(disks.contains(&log), "{disks:?} {log}");
        let before = pair.engine.queue_mut().view(other.into());
        let older = pair.written[index(MIRROR)][5];
        pair.write(PLAIN, MIRROR, 5, 77).expect("to both copies of its log");
        let mut images: Vec<Image> =
            (0..5).map(|disk| pair.engine.queue_mut().view(disk)).collect();
        images[usize::from(other)] = before;
        let mut made = queue(&pair.shape, images, 9, false);
        made.faults_mut(log.into()).flush_errors = vec![nth];
        let engine = start_on(&pair.shape, made, 9).map_err(|error| error.to_string())?;
        let mut pair = Pair { engine, ..pair };
        // It was not durable, and may have been forgotten.
        let held = pair.value(MIRROR, 5).expect("it can be read");
        assert!([older, 77].contains(&held), "{held}");
        pair.written[index(MIRROR)][5] = held;
        if pair.state(log) != DiskState::Missing {
            return Ok(false);
        }
        pair.mirror_serves();
        let mut pair = pair.restart(&[]).map_err(|error| error.to_string())?;
        pair.engine.attach(log);
        pair.let_work(4);
        match pair.read_all(SCRATCH) {
            (0, 0) => Ok(true),
            found => Err(format!("flush {nth}: {found:?}")),
        }
    };
    needs(Mutation::LogClosedUnread, || {
        let lost: Result<Vec<bool>, String> = (0..10).map(failing_flush).collect();
        assert!(lost?.contains(&true), "no flush was one that matters");
        Ok(())
    });
}

/// What an older copy of the disk has of the log is of its past: it is not read (LAY-8).
#[test]
fn an_older_copy_of_a_disk_with_the_only_log_is_not_read() {
    let (mut pair, log) = with_a_log_in_use();
    let before = pair.engine.queue_mut().view(log.into());
    let mut pair = pair.restart(&[]).expect("all are here");
    for block in 80..84 {
        pair.write(FUA, SCRATCH, block, 253).expect("to the log");
    }
    pair.let_work(1);
    let shape = pair.shape.clone();
    let mut images: Vec<Image> = (0..5).map(|disk| pair.engine.queue_mut().view(disk)).collect();
    images[usize::from(log)] = before;
    let made = queue(&shape, images, 9, false);
    let engine = start_on(&shape, made, 9).expect("the others are more than half");
    let mut pair = Pair { engine, ..pair };
    assert!(pair.heard().contains(&"disk-outdated"));
    pair.engine.attach(log);
    pair.let_work(4);
    assert_eq!(pair.state(log), DiskState::Online);
    assert_eq!(pair.read_all(SCRATCH).1, 0, "nothing old is told");
    pair.mirror_serves();
    let mut pair = pair.restart(&[]).expect("nor later");
    assert_eq!(pair.read_all(SCRATCH), (96, 0));
}

/// An operator's word: what only the log had is lost, what lies at home is served, and a log that comes back is nobody's.
#[test]
fn a_cache_that_is_given_up_leaves_what_lies_at_home() {
    let (mut pair, log) = with_a_log_in_use();
    let refused = pair.engine.give_up_cache("scratch");
    assert!(refused.is_err(), "its log is here");
    pair = with_a_log_in_use().0.restart(&[log.into()]).expect("it starts");
    let shape = pair.shape.clone();
    let queue = pair.engine.give_up_cache("scratch").expect("its log is lost");
    let engine = start_on(&shape, queue, 8).expect("it starts");
    let mut pair = Pair { shape, engine, written: pair.written };
    assert_eq!(pair.health(SCRATCH).1, "OK");
    let (failed, wrong) = pair.read_all(SCRATCH);
    assert_eq!((failed, wrong), (0, 1), "a block is what it was before");
    pair.fill(SCRATCH, 140);
    pair.mirror_serves();
    let mut pair = pair.restart(&[]).expect("all are here");
    pair.engine.attach(log);
    pair.let_work(4);
    assert_eq!(pair.read_all(SCRATCH), (0, 0));
    let mut pair = pair.restart(&[]).expect("all take part");
    assert_eq!(pair.read_all(SCRATCH), (0, 0), "the old log is not read");
    pair.mirror_serves();
}

/// While a pool serves: a disk that only one virtual disk needs fails. FLUSH of that one fails and stays failed (6.3, C10),
/// the other one goes on; what was durable before is there when the disk is back.
fn dies_while_it_serves(cache: u64) {
    let mut pair = Pair::new(cache);
    pair.fill(MIRROR, 1);
    pair.fill(SCRATCH, 60);
    let disk = pair.needed();
    let durable = pair.written.clone();
    pair.engine.queue_mut().faults_mut(disk.into()).dead_from = Some(0);
    let mut newer = vec![Vec::new(); to_usize(BLOCKS[1])];
    for block in (0..BLOCKS[1]).step_by(3) {
        newer[to_usize(block)].push(240);
        let _ = pair.write(PLAIN, SCRATCH, block, 240);
    }
    assert_eq!(pair.ask(RequestKind::Flush, SCRATCH, 0), Err(Errno(5)));
    pair.mirror_serves();
    assert_eq!(pair.state(disk), DiskState::Missing, "the others do without it");
    assert!(pair.heard().contains(&"flush-failed"));
    assert_eq!(pair.ask(RequestKind::Flush, SCRATCH, 0), Err(Errno(5)), "and stays failed");
    pair.engine.checkpoint();
    pair.let_work(12);
    pair.mirror_serves();
    pair.engine.queue_mut().faults_mut(disk.into()).dead_from = None;
    pair.engine.attach(disk);
    pair.let_work(3);
    assert_eq!(pair.ask(RequestKind::Flush, SCRATCH, 0), Err(Errno(5)), "until a start");
    assert_eq!(pair.write(FUA, SCRATCH, 0, 241), Err(Errno(5)));
    newer[0].push(241);
    pair.mirror_serves();
    let without = disk.into();
    let mut pair = pair.restart(&[without]).expect("without it");
    pair.mirror_serves();
    let mut pair = pair.restart(&[]).expect("with it");
    pair.engine.attach(disk);
    pair.let_work(4);
    pair.mirror_serves();
    for block in 0..BLOCKS[1] {
        let nth = to_usize(block);
        pair.ask(RequestKind::Read, SCRATCH, block).expect("it is all there");
        // A sector holds one write or another (C2).
        for sector in pair.engine.buffer_mut(0)[..4096].chunks(512) {
            let may = sector[0] == durable[1][nth] || newer[nth].contains(&sector[0]);
            let whole = sector.iter().all(|byte| *byte == sector[0]);
            assert!(may && whole, "block {block}: {} is none of its writes", sector[0]);
        }
    }
    pair.ask(RequestKind::Flush, SCRATCH, 0).expect("it serves again");
}

#[test]
fn a_disk_that_dies_with_the_only_log_costs_the_others_nothing() {
    dies_while_it_serves(64 << 10);
}

#[test]
fn a_disk_that_dies_with_the_only_copy_costs_the_others_nothing() {
    dies_while_it_serves(0);
}

/// The same where nothing was written to the others yet: what is written next is to become durable.
#[test]
fn a_disk_that_dies_with_the_only_copy_costs_an_empty_mirror_nothing() {
    for cache in [0, 64 << 10] {
        let mut pair = Pair::new(cache);
        let disk = pair.needed();
        pair.fill(SCRATCH, 60);
        pair.engine.queue_mut().faults_mut(disk.into()).dead_from = Some(0);
        let _ = pair.write(PLAIN, SCRATCH, 0, 240);
        assert_eq!(pair.ask(RequestKind::Flush, SCRATCH, 0), Err(Errno(5)));
        pair.mirror_serves();
        assert_eq!(pair.state(disk), DiskState::Missing, "the mirror does without it");
    }
}

/// Without the rule all wait for one.
#[test]
fn a_last_copy_that_holds_all_fails_the_flush_of_the_mirror_beside_it() {
    let mut pair = Pair::new(0);
    pair.fill(MIRROR, 1);
    pair.fill(SCRATCH, 60);
    let disk = pair.needed();
    set(Some(Mutation::LastCopyHoldsAll));
    pair.engine.queue_mut().faults_mut(disk.into()).dead_from = Some(0);
    let _ = pair.write(PLAIN, SCRATCH, 0, 240);
    let outcome = pair.ask(RequestKind::Flush, MIRROR, 0);
    let outcome = outcome.and_then(|()| pair.ask(RequestKind::Flush, MIRROR, 0));
    set(None);
    assert_eq!(outcome, Err(Errno(5)));
}

/// Of two disks of the mirror one is away when an extent is mapped there, and the other one does not take its first write. Then that
/// one is away for the sake of the other virtual disk, and the first one comes back: there is nothing to copy, and it takes alone
/// what is written from now on.
#[test]
fn who_had_the_last_copy_misses_what_another_takes_once_it_is_in_sync() {
    needs(Mutation::LastHolderUnmarked, || {
        let mut pair = Pair::of(shape((5, 2, 2, 0)), 0);
        let [(back, _), (last, slab)] = pair.mirror_slabs();
        pair.engine.take_offline(back);
        pair.until(back, DiskState::Missing);
        let at = pair.shape.geometry().slab(slab);
        pair.engine.queue_mut().faults_mut(last.into()).unwritable = vec![(at, at + 65_536)];
        assert!(pair.write(PLAIN, MIRROR, 0, 1).is_err(), "nobody takes it");
        assert_eq!(pair.state(last), DiskState::Online, "it is needed");
        pair.engine.queue_mut().faults_mut(last.into()).flush_errors = (0..4096).collect();
        pair.engine.checkpoint();
        pair.until(last, DiskState::Missing);
        pair.engine.attach(back);
        pair.until(back, DiskState::Online);
        let stale = |pair: &Pair, disk: u16| pair.engine.stale_by_disk()[usize::from(disk)];
        for _ in 0..2000 {
            if stale(&pair, back) > 0 {
                let now = pair.engine.queue_mut().now();
                pair.engine.poll(now, Nanos(60_000));
            }
        }
        assert_eq!(stale(&pair, back), 0, "there is nothing that it could lack");
        pair.write(PLAIN, MIRROR, 0, 2).expect("it takes it alone");
        pair.engine.queue_mut().repair(last.into());
        pair.engine.attach(last);
        pair.until(last, DiskState::Online);
        // What it missed is copied: it has the only copy then.
        pair.until_up_to_date();
        pair.engine.take_offline(back);
        pair.until(back, DiskState::Missing);
        match pair.value(MIRROR, 0) {
            Some(2) => Ok(()),
            other => Err(format!("{other:?} where 2 was written")),
        }
    });
}

/// Of two disks of the mirror one is away while a block is written, durably, and then written over. The other one's FLUSH
/// fails, and it forgets with its cache what was not durable; the first one comes back meanwhile. What it is brought up to date
/// with is all that there is, also of the block that is not what was written to it last: the next start has it alone.
#[test]
fn a_block_that_a_disk_forgot_is_copied_as_it_was_before() {
    needs(Mutation::LostLeftOut, || {
        let mut pair = Pair::of(shape((5, 2, 2, 0)), 0);
        let [(back, slab), (last, _)] = pair.mirror_slabs();
        pair.engine.take_offline(back);
        pair.until(back, DiskState::Missing);
        // A former owner's.
        let at = pair.shape.geometry().slab(slab);
        pair.engine.queue_mut().tamper(back.into(), at, &[99; 65_536]);
        pair.write(FUA, MIRROR, 0, 7).expect("durable on the other one");
        pair.write(PLAIN, MIRROR, 0, 8).expect("in its cache");
        pair.engine.queue_mut().faults_mut(last.into()).flush_errors = (0..4096).collect();
        pair.engine.checkpoint();
        pair.until(last, DiskState::Missing);
        pair.engine.attach(back);
        pair.until(back, DiskState::Online);
        pair.engine.queue_mut().drop_cache(last.into(), Survivors::None);
        pair.engine.attach(last);
        pair.until(last, DiskState::Online);
        pair.until_up_to_date();
        assert!(pair.heard().contains(&"unrecoverable"), "the second write is told as lost");
        assert_eq!(pair.value(MIRROR, 0), None, "and not read as anything else before a start");
        let mut pair = pair.restart(&[last.into()]).expect("one copy is enough");
        match pair.value(MIRROR, 0) {
            Some(7) => Ok(()),
            other => Err(format!("{other:?} where 7 was durable")),
        }
    });
}

/// A pool with one virtual disk, which was made with it or, if it is `later`, in it: then entries without extents follow it.
fn with_one(shape: &Shape, later: bool) -> Run {
    let mut pool = shape.pool();
    // The next one has pages of its own.
    pool.geometry.tree_bytes *= 2;
    let wanted = pool.vdisks[0].clone();
    pool.vdisks.truncate(usize::from(!later));
    let mut made = queue(shape, vec![Image::new(shape.disk_bytes()); 3], 1, false);
    create(&mut made, shape.plan(), &pool, 1).expect("it fits");
    if later {
        let engine = start_on(shape, made, 1).expect("it starts");
        made = engine.add_virtual_disk(&wanted).expect("it fits");
    }
    let images = (0..3).map(|disk| made.view(disk)).collect();
    let mut run = Run::start(shape, images, &[], oracle(), 1).expect("a new pool starts");
    run.sound = false;
    run
}

/// A second virtual disk is made, and a disk that the first one needs fails a flush of that. It stays: what is being made has
/// nothing to read or write yet. Whether the disk has no vote any more.
fn made_beside_a_flush_that_fails(later: bool, nth: u64) -> Result<bool, String> {
    let shape = shape((3, 0, 1, 0));
    let mut run = with_one(&shape, later);
    fill(&mut run);
    let disk = run.engine.config().vdisks[0].tiers[0].rows[0].slabs[0].0;
    let flushes = run.engine.queue_mut().flushes(disk.into());
    run.engine.queue_mut().faults_mut(disk.into()).flush_errors = vec![flushes + nth];
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let made = run.engine.add_virtual_disk(&NewVirtualDisk {
        name: "made".into(),
        copies: 1,
        columns: 1,
        interleave: 16 << 10,
        tier_bytes: [256 << 10, 0],
        cache_bytes: 0,
    });
    // Where it fails before anything is changed, nothing is made.
    let Ok(mut queue) = made else { return Ok(false) };
    let images = (0..3).map(|disk| queue.view(disk)).collect();
    let again = Run::start(&shape, images, &[], oracle, 2);
    let mut again = again.map_err(|error| error.to_string())?;
    again.sound = false;
    let config = again.engine.config();
    assert!(config.vdisks.iter().any(|own| own.name == "made"));
    let votes = config.voters.contains(&disk);
    again.read_all(Promise::Acknowledged, 0).map_err(|wrong| format!("flush {nth}: {wrong}"))?;
    Ok(!votes)
}

#[test]
fn a_disk_that_all_need_is_not_given_up_for_a_virtual_disk_that_is_being_made() {
    for later in [false, true] {
        needs(Mutation::UnmadeGains, || {
            let made = |nth| made_beside_a_flush_that_fails(later, nth);
            let voteless: Result<Vec<bool>, String> = (0..12).map(made).collect();
            assert!(voteless?.contains(&true), "no flush was one that matters");
            Ok(())
        });
    }
}
