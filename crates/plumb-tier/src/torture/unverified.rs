//! Pages of checksums that are lost on all copies (LAY-7): what lay there is neither lost nor taken for good.

use plumb_io::sim::power::{DiskFaults, Image, Survivors};
use plumb_units::Nanos;

use super::faults::{
    MIRROR, done, fill, first_block, flush, health, heard, images, oracle, reads_well, rest,
    restart, shape, start, write,
};
use super::history::{CLIENTS, Shape, Step, sectors};
use super::leaving;
use super::left_out::{FIVE, content, needs};
use super::oracle::Promise;
use super::run::{Run, new_pool, queue, start_engine};
use super::sick::set_faults;
use super::situations;
use crate::mutation::Mutation;
use crate::pool::HealthStatus;
use crate::{Request, RequestKind, UnverifiedRun};

/// Spoils all pages of checksums of a level on one disk; how many.
pub(super) fn spoil_sums(image: &mut Image, shape: &Shape, level: Option<u8>) -> usize {
    let geometry = shape.geometry();
    let (from, to) = (geometry.tree(), geometry.slab(0));
    let pages: Vec<u64> =
        image.written().into_iter().filter(|at| (from..to).contains(at)).collect();
    let is_sums = |at: &u64| {
        let bytes = content(image, *at);
        let (tree, own) = (usize::from(bytes[4]), bytes[5]);
        tree == crate::tree::SUMS && level.is_none_or(|level| level == own)
    };
    let pages: Vec<u64> = pages.into_iter().filter(is_sums).collect();
    pages.iter().for_each(|at| image.write(*at, &[0x5a; 4096]));
    pages.len()
}

pub(super) fn block(kind: RequestKind, nth: u64) -> Request {
    Request { kind, vdisk: 0, offset: nth * 4096, len: 4096 }
}

pub(super) fn reads(run: &mut Run, nth: u64) -> bool {
    run.ask(0, block(RequestKind::Read, nth)).expect("it is answered")
}

/// A pool at rest, started again without any of its checksums.
fn without_sums(of: (u32, u32, u8, u64), mut changed: impl FnMut(&Run, &mut [Image])) -> Run {
    let mut run = start(of);
    fill(&mut run);
    run.engine.checkpoint();
    rest(&mut run, 8);
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut images = images(&mut run, of.0);
    let spoilt: usize = images.iter_mut().map(|image| spoil_sums(image, &shape(of), None)).sum();
    assert!(spoilt > 0, "there are such pages");
    changed(&run, &mut images);
    let mut again = Run::start(&shape(of), images, &[], oracle, 2).expect("it starts");
    again.sound = false;
    again
}

/// The eight extents that [`fill`] maps, written or not.
const MAPPED: u64 = 8 * 16;

#[test]
fn lost_checksums_leave_blocks_unverified_until_they_are_accepted() {
    let mut run = without_sums(MIRROR, |_, _| {});
    assert!(heard(&mut run).contains(&"unverified"));
    assert_eq!(health(&run), (HealthStatus::Unhealthy, "Unverified"));
    assert_eq!(
        run.engine.unverified(),
        [UnverifiedRun { vdisk: 0, offset: 0, len: MAPPED * 4096 }]
    );
    assert!(!reads(&mut run, 0) && !reads(&mut run, 17), "written and unwritten ones alike");
    let part = Request { len: 512, ..block(RequestKind::Write { fua: true }, 0) };
    assert_eq!(run.ask(1, part), Ok(false), "the rest of it is not known");
    let before = run.engine.counters();
    assert_eq!((before.mismatches, before.unrecoverable), (0, 0), "no disk is to blame");
    // A whole block is known again once it is written.
    done(&mut run, &[write(16), flush()]).expect("written");
    assert!(reads(&mut run, 16) && !reads(&mut run, 17));
    // It stays so over starts, after a clean end and after a crash.
    for clean in [true, false] {
        if clean {
            run.engine.checkpoint();
            rest(&mut run, 4);
        }
        run = restart(&mut run, MIRROR, &[]).expect("it starts again");
        assert!(reads(&mut run, 16) && !reads(&mut run, 17) && !reads(&mut run, 0));
    }
    run.engine.scan();
    rest(&mut run, 4);
    let met = run.engine.counters();
    assert_eq!((met.unverified, met.accepted), (MAPPED - 1, 0));
    // Copies of what was written agree; of the rest each disk has what it had before.
    assert!((1..=MAPPED - 8).contains(&met.unverified_differ), "{met:?}");
    assert_eq!((met.mismatches, met.unrecoverable), (0, 0));
    assert!(!reads(&mut run, 0), "to look at them is not to accept them");
    run.engine.scan_accepting_unverified();
    rest(&mut run, 4);
    assert_eq!(run.engine.counters().accepted, MAPPED - 1);
    assert!(heard(&mut run).contains(&"accepted-unverified"));
    assert_eq!((run.engine.unverified(), health(&run).0), (Vec::new(), HealthStatus::Healthy));
    run = restart(&mut run, MIRROR, &[]).expect("it starts once more");
    assert!(!heard(&mut run).contains(&"unverified"));
    for extent in 0..8 {
        assert!(reads(&mut run, extent * 16));
        let bytes = run.engine.buffer_mut(0)[..4096].to_vec();
        for (unit, bytes) in (0..).zip(bytes.chunks(512)) {
            let unit = u32::try_from(extent * 16 * 8).expect("small") + unit;
            run.witness.oracle.judge(unit, bytes, Promise::Acknowledged).expect("the old content");
        }
    }
}

#[test]
fn what_is_unverified_cannot_be_read() {
    needs(Mutation::UnverifiedRead, || {
        let mut run = without_sums(MIRROR, |_, _| {});
        match reads(&mut run, 0) {
            false => Ok(()),
            true => Err("nobody knows whether that is right".to_owned()),
        }
    });
}

/// A write over such a block is under way when the power goes: the journal has its checksum, no copy its data.
#[test]
fn a_write_that_did_not_come_about_leaves_a_block_unverified() {
    needs(Mutation::UnverifiedZeroed, || {
        let mut run = without_sums(MIRROR, |_, _| {});
        let copies = first_block(MIRROR, &run);
        let of = |run: &mut Run| images(run, MIRROR.0);
        let before = of(&mut run);
        run.ask(1, block(RequestKind::Write { fua: false }, 0)).expect("answered");
        let mut after = of(&mut run);
        for (disk, at) in copies {
            let nth = usize::try_from(disk).expect("small");
            let old = content(&before[nth], at);
            assert_ne!(content(&after[nth], at), old, "it was written");
            after[nth].write(at, &old);
        }
        let again = Run::start(&shape(MIRROR), after, &[], oracle(), 3);
        let mut again = again.map_err(|error| error.to_string())?;
        again.sound = false;
        match reads(&mut again, 0) {
            false => Ok(()),
            true => Err(format!("it reads as {:?}", &again.engine.buffer_mut(0)[..4])),
        }
    });
}

/// Copies that differ are made equal before either is taken.
#[test]
fn what_is_accepted_is_on_all_copies_first() {
    needs(Mutation::AcceptedUnflushed, || {
        // The second copy lies on a disk that no flush of the journal reaches.
        let place = |run: &Run| {
            let config = run.engine.config();
            let vdisk = &config.vdisks[0];
            let extents = (0_u64..).zip(vdisk.tiers[0].rows.iter());
            let found = extents
                .map(|(row, own)| (row, own.slabs[1]))
                .find(|(_, slab)| !config.disks[usize::from(slab.0)].metadata);
            found.expect("a disk of five")
        };
        let mut run = without_sums(FIVE, |run, images| {
            let (_, (disk, slab)) = place(run);
            let at = shape(FIVE).geometry().slab(slab);
            images[usize::from(disk)].write(at, &[0x77; 4096]);
        });
        run.engine.scan_accepting_unverified();
        for _ in 0..4000 {
            run.engine.queue_mut().advance(Nanos::from_millis(1));
            run.poll();
            // At its end a scan makes a checkpoint, which flushes all disks.
            if run.engine.counters().accepted == MAPPED || !run.engine.is_scanning() {
                break;
            }
        }
        if run.engine.counters().unverified_differ == 0 {
            return Err("no copies differed".to_owned());
        }
        let all = |run: &mut Run| -> Vec<Vec<u8>> {
            let block = |nth| {
                let good = reads(run, nth);
                run.engine.buffer_mut(0)[..if good { 4096 } else { 0 }].to_vec()
            };
            (0..MAPPED).map(block).collect()
        };
        let whole = images(&mut run, FIVE.0);
        let whole = Run::start(&shape(FIVE), whole, &[], oracle(), 3);
        let accepted = all(&mut whole.map_err(|error| error.to_string())?);
        let left = (0..FIVE.0).map(|disk| {
            run.engine.queue_mut().drop_cache(disk, Survivors::None);
            run.engine.queue_mut().view(disk)
        });
        let left: Vec<Image> = left.collect();
        // Whichever disk the power took for good.
        for disk in 0..FIVE.0 {
            let again = Run::start(&shape(FIVE), left.clone(), &[disk], oracle(), 3);
            let mut again = again.map_err(|error| error.to_string())?;
            again.sound = false;
            if all(&mut again) != accepted {
                return Err(format!("without disk {disk} it is something else"));
            }
        }
        Ok(())
    });
}

/// A disk that is away while something is accepted has not what it was accepted as.
#[test]
fn a_disk_that_is_away_misses_what_is_accepted() {
    needs(Mutation::AcceptedUnopened, || {
        let mut away = 0;
        let mut run = without_sums(MIRROR, |run, images| {
            let (disk, at) = first_block(MIRROR, run)[1];
            away = u16::try_from(disk).expect("small");
            images[usize::from(away)].write(at, &[0x77; 4096]);
        });
        run.engine.take_offline(away);
        rest(&mut run, 1);
        run.engine.scan_accepting_unverified();
        rest(&mut run, 2);
        assert_eq!(run.engine.unverified(), []);
        run.engine.attach(away);
        rest(&mut run, 8);
        run.engine.scan();
        rest(&mut run, 4);
        match run.engine.counters().mismatches {
            0 => Ok(()),
            bad => Err(format!("{bad} copies do not verify")),
        }
    });
}

/// A heal beside such blocks, and a write to one of them while it goes on: what was acknowledged is there after a crash.
#[test]
fn a_heal_beside_unverified_blocks_forgets_no_write() {
    let mut healed = 0;
    for turns in 0..48 {
        let mut run = without_sums(MIRROR, |_, _| {});
        done(&mut run, &[write(20), flush()]).expect("written");
        rest(&mut run, 8);
        let (disk, at) = first_block(MIRROR, &run)[0];
        // The second extent lies behind the first.
        let place = at + 20 * 4096;
        run.engine.queue_mut().tamper(disk, place, &[0x5a; 4096]);
        run.engine.scan();
        for _ in 0..turns {
            run.engine.queue_mut().advance(Nanos::from_millis(20));
            run.poll();
        }
        done(&mut run, &[write(16)]).expect("written");
        let mut again = restart(&mut run, MIRROR, &[]).expect("it starts");
        assert!(reads(&mut again, 16), "after {turns} turns");
        healed += run.engine.counters().healed;
    }
    assert!(healed > 0, "the copy was healed");
}

/// Whatever happened before: what reads is right, what is written reads, and what is accepted reads.
#[test]
fn histories_without_checksums_read_right_or_not_at_all() {
    let (mut refused, mut read) = (0, 0);
    for seed in 0..60 {
        let shape = Shape::new(seed);
        let history: Vec<Step> = situations::with(&shape, leaving::of(&shape, 60, seed), seed);
        let Ok(mut run) = Run::start(&shape, new_pool(&shape), &[], oracle(), seed) else {
            continue;
        };
        run.take(&history).expect("the history itself goes well");
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Acknowledged);
        let mut images = images(&mut run, shape.disks);
        images.iter_mut().for_each(|image| {
            spoil_sums(image, &shape, None);
        });
        let Ok(mut run) = Run::start(&shape, images, &[], oracle, seed ^ 1) else { continue };
        run.sound = false;
        let blocks = u64::from(sectors() / 8);
        let look = |run: &mut Run, nth: u64| {
            let client = u32::try_from(nth).expect("small") % CLIENTS;
            let good = run.ask_history(client, block(RequestKind::Read, nth)).expect("answered");
            let bytes = run.engine.buffer_mut(client)[..4096].to_vec();
            for (unit, bytes) in (0..8).zip(bytes.chunks(512)).filter(|_| good) {
                let unit = u32::try_from(nth).expect("small") * 8 + unit;
                let judged = run.witness.oracle.judge(unit, bytes, Promise::Acknowledged);
                judged.unwrap_or_else(|wrong| panic!("seed {seed}, block {nth}: {wrong}"));
            }
            good
        };
        for nth in 0..blocks {
            match look(&mut run, nth) {
                true => read += 1,
                false => refused += 1,
            }
        }
        // Those with an even number are written anew; then all can be had.
        let anew: Vec<Step> = (0..blocks).step_by(2).map(write).chain([flush()]).collect();
        done(&mut run, &anew).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        for nth in (0..blocks).step_by(2) {
            assert!(look(&mut run, nth), "seed {seed}: block {nth} was written");
        }
        run.engine.scan_accepting_unverified();
        rest(&mut run, 8);
        assert_eq!(run.engine.unverified(), [], "seed {seed}");
        // What was unwritten may hold anything now: what had been written is what it was.
        for nth in 0..blocks {
            let request = block(RequestKind::Read, nth);
            assert_eq!(run.ask_history(0, request), Ok(true), "seed {seed}: block {nth}");
        }
    }
    assert!(refused > 1000 && read > 1000, "{refused} refused, {read} read");
}

/// Disks that fail or hang for a while in a start have their checksums still.
#[test]
fn disks_that_cannot_be_read_for_a_while_lose_no_checksums() {
    let mut run = start(MIRROR);
    fill(&mut run);
    run.engine.checkpoint();
    rest(&mut run, 8);
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let shape = shape(MIRROR);
    let files: Vec<u32> = (0..MIRROR.0).collect();
    let images = images(&mut run, MIRROR.0);
    let mut refused = 0;
    for (nth, count) in (0..120).step_by(3).flat_map(|nth| [(nth, 12), (nth, 1000)]) {
        for hangs in [false, true] {
            let faults = match hangs {
                false => DiskFaults {
                    dead_from: Some(nth),
                    dead_to: Some(nth + count),
                    ..DiskFaults::default()
                },
                true => DiskFaults {
                    hangs_from: Some(nth),
                    hangs_to: Some(nth + count),
                    ..DiskFaults::default()
                },
            };
            let trouble: Vec<(u32, DiskFaults)> =
                files.iter().map(|disk| (*disk, faults.clone())).collect();
            let mut made = queue(&shape, images.clone(), 7, true);
            set_faults(&mut made, &files, &trouble);
            match start_engine(&shape, &mut made, 8) {
                Ok(engine) => assert_eq!(engine.unverified(), [], "{nth}, {count}, {hangs}"),
                Err(_) => refused += 1,
            }
            let left = files.iter().map(|disk| made.view(*disk)).collect();
            let again = Run::start(&shape, left, &[], oracle.clone(), 9);
            let mut again = again.unwrap_or_else(|why| panic!("{nth}, {count}, {hangs}: {why}"));
            assert_eq!(again.engine.unverified(), [], "{nth}, {count}, {hangs}");
            again.sound = false;
            again.read_all(Promise::Acknowledged, 0).expect("all is there");
        }
    }
    assert!(refused > 20, "{refused} starts were refused");
}

/// A pool whose copies of one page are lost on some disks only loses nothing.
#[test]
fn one_copy_of_the_checksums_is_enough() {
    let mut run = start(MIRROR);
    fill(&mut run);
    run.engine.checkpoint();
    rest(&mut run, 8);
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut images = images(&mut run, 3);
    images.iter_mut().take(2).for_each(|image| {
        spoil_sums(image, &shape(MIRROR), Some(0));
    });
    let mut run = Run::start(&shape(MIRROR), images, &[], oracle, 2).expect("it starts");
    assert_eq!(run.engine.unverified(), []);
    reads_well(&mut run);
}
