//! What a crash left of a space of which any disks may be gone, in further lives: some with whoever is here, then one with
//! all disks, in which everything that was acknowledged in any of them is there.

use std::collections::BTreeSet;

use plumb_io::sim::power::{DiskFaults, Image, Replay, Trace};
use plumb_units::convert::{index, to_u64, to_usize};

use super::history::{Shape, Step, steps};
use super::oracle::{Oracle, Promise};
use super::run::{Run, Wrong, queue, start_engine};
use super::sick::set_faults;
use super::states::{
    Crash, Passed, WRITTEN, check_left_behind, is_written_to, one_write, while_told, write_some,
    written_point,
};
use super::unborne::{fault, shuffled};
use super::witness::Witness;
use crate::core::Halt;
use crate::random::Random;
use crate::recover::StartError;

/// Requests of a life.
const REQUESTS: usize = 10;

/// What earlier lives left.
struct Past {
    images: Vec<Image>,
    oracle: Oracle,
    promise: Promise,
    /// Disks that are not known to be up to date.
    gone: BTreeSet<u32>,
    /// A write was acknowledged in one of them.
    written: bool,
}

impl Past {
    /// What a crash leaves of a run after so many of its events.
    fn of(
        (run, trace): (&Run, &Trace),
        before: Witness,
        ((point, files), written): ((usize, &[u32]), bool),
        random: &mut Random,
    ) -> (Self, Vec<u32>) {
        let mut replay = Replay::new(trace, 512);
        replay.advance_to(point);
        let mut witness = before;
        let seen = run.log.iter().filter(|(position, _)| *position <= point);
        seen.for_each(|(_, event)| witness.see(event));
        let crash = Crash::random(random);
        let away = witness.unplugged();
        let unplugged: Vec<u32> = away.iter().map(|disk| files[index(*disk)]).collect();
        let (left, _) = replay.crash(crash.kind, &unplugged, crash.survivors, crash.seed);
        witness.oracle.crash(crash.promise());
        let images = in_order(&left, files);
        let promise = crash.promise();
        let written = written || is_written_to(&run.log, point);
        (Self { images, oracle: witness.oracle, promise, gone: witness.gone, written }, away)
    }
}

/// Images of files, by the disks that they are.
fn in_order(images: &[Image], files: &[u32]) -> Vec<Image> {
    files.iter().map(|file| images[index(*file)].clone()).collect()
}

/// Images of disks, by the files that they are.
fn as_files(images: &[Image], files: &[u32]) -> Vec<Image> {
    let disk = |file: u32| files.iter().position(|own| *own == file).unwrap_or(0);
    (0..).zip(images).map(|(file, _)| images[disk(file)].clone()).collect()
}

/// Goes on from what a crash left. How that was; `None` when no life took a write: the state does not count.
pub(super) fn check(
    shape: &Shape,
    images: Vec<Image>,
    witness: &Witness,
    crash: Crash,
    random: &mut Random,
) -> Result<Option<Passed>, Wrong> {
    let mut oracle = witness.oracle.clone();
    oracle.crash(crash.promise());
    let (promise, gone) = (crash.promise(), witness.gone.clone());
    let mut past = Past { images, oracle, promise, gone, written: false };
    let lives = random.below(3);
    for nth in 0..lives {
        past = with_some(shape, &past, random)
            .map_err(|wrong| format!("in life {} after the crash: {wrong}", nth + 1))?;
    }
    past = with_all(shape, &past, random)
        .map_err(|wrong| format!("with all disks, after {lives} lives with some: {wrong}"))?;
    let wrong = |wrong| format!("after the last crash: {wrong}");
    let run = again(shape, &past, random).map_err(wrong)?;
    let mut crashes = u32::try_from(lives).unwrap_or(0) + 2;
    if !past.written {
        crashes += 1;
        past = with_a_write(shape, run, past, crash)?;
    }
    Ok(past.written.then_some(Passed { crashes, ..Passed::default() }))
}

/// No life before took a write: this one does, and is recovered once more.
fn with_a_write(shape: &Shape, mut run: Run, past: Past, crash: Crash) -> Result<Past, Wrong> {
    let mut random = Random::new(crash.seed ^ WRITTEN);
    let wrong = |wrong| format!("with a write behind it: {wrong}");
    write_some(&mut run, &mut random).map_err(wrong)?;
    let point = written_point(&mut run, 0, &mut random);
    let trace = run.engine.queue_mut().take_trace();
    let mut before = Witness::new(past.oracle);
    before.gone.clone_from(&run.witness.gone);
    let order: Vec<u32> = (0..shape.disks).collect();
    let next = Past::of((&run, &trace), before, ((point, &order), false), &mut random).0;
    again(shape, &next, &mut random).map_err(wrong)?;
    Ok(next)
}

/// Some disks are away, or fail while the space starts or later.
fn troubles(shape: &Shape, random: &mut Random) -> Vec<(u32, DiskFaults)> {
    let most = if random.one_in(3) { shape.disks } else { 2 };
    let count = to_usize(1 + random.below(most.into()));
    let disks = shuffled(shape, random);
    let away = DiskFaults { dead_from: Some(0), ..DiskFaults::default() };
    let wrong = |random: &mut Random| match random.below(2) {
        0 => away.clone(),
        _ if shape.has_two() => {
            shape.faults(super::beside::wrong(shape, random), (random.below(60), 0))
        }
        _ => shape.faults(fault(random), (random.below(60), 0)),
    };
    disks.into_iter().take(count).map(|disk| (disk, wrong(random))).collect()
}

/// Which file each disk is: mostly in their order.
fn files(shape: &Shape, random: &mut Random) -> Vec<u32> {
    if random.one_in(4) { shuffled(shape, random) } else { (0..shape.disks).collect() }
}

/// A life with whoever is here. What can be read is right; whatever is acknowledged is kept for later.
fn with_some(shape: &Shape, past: &Past, random: &mut Random) -> Result<Past, Wrong> {
    let wrong = troubles(shape, random);
    let files = files(shape, random);
    let mut gone = past.gone.clone();
    gone.extend(wrong.iter().map(|(disk, _)| *disk));
    let seed = random.next();
    let made_with = |wrong: &[(u32, DiskFaults)]| {
        let mut made = queue(shape, as_files(&past.images, &files), seed, true);
        set_faults(&mut made, &files, wrong);
        made
    };
    let made = || made_with(&wrong);
    // Who fails within a start takes no more votes along than who is not there at all: where that is refused for its votes, so may this be.
    let votes_are_too_few = || {
        let away = DiskFaults { dead_from: Some(0), ..DiskFaults::default() };
        let away: Vec<_> = wrong.iter().map(|(disk, _)| (*disk, away.clone())).collect();
        let mut made = made_with(&away);
        let started = start_engine(shape, &mut made, seed);
        started.is_err_and(|error| {
            matches!(error, StartError::NoQuorum { .. }) && shape.may_be_refused(gone.len(), &error)
        })
    };
    let mut before = Witness::new(past.oracle.clone());
    before.gone.clone_from(&gone);
    let mut run = match Run::start_on(shape, made(), past.oracle.clone(), seed) {
        Ok(run) => run,
        Err(error)
            if shape.may_be_refused(gone.len(), &error)
                || matches!(error, StartError::Halted { source: Halt::Voters })
                    && votes_are_too_few() =>
        {
            // Once more, for what it did before that.
            let mut made = made();
            if start_engine(shape, &mut made, seed).is_ok() {
                return Err(format!("a start is refused, {error:?}, and is not"));
            }
            let left = refused(shape, (made.take_trace(), before), &files, random);
            return Ok(Past { written: past.written, ..left });
        }
        Err(error) => return Err(format!("does not start without {gone:?}: {error:?}")),
    };
    run.let_any_fail(gone, files.clone());
    let in_words = |wrong| format!("{wrong} (with trouble {:?})", before.gone);
    run.read_what_is_there(past.promise, 0).map_err(in_words)?;
    run.read_what_is_there(Promise::Durable, 1).map_err(in_words)?;
    let mut more = steps(&Shape { copies: 1, ..shape.clone() }, REQUESTS, random.next());
    for (disk, _) in &wrong {
        if !random.one_in(3) {
            let at = to_usize(random.below(to_u64(more.len())));
            more.insert(at, Step::Back { disk: *disk });
        }
    }
    more.push(one_write(random));
    run.take(&more).and_then(|()| run.settle()).map_err(in_words)?;
    let trace = run.engine.queue_mut().take_trace();
    let point = point(shape, &trace, run.recovery, random);
    let point = ((point, &files[..]), past.written);
    let (past, away) = Past::of((&run, &trace), before, point, random);
    if !away.is_empty() {
        check_left_behind(shape, &past.images, &away, past.oracle.clone())?;
    }
    Ok(past)
}

/// What a crash leaves of a start that was refused.
fn refused(
    shape: &Shape,
    (trace, mut before): (Trace, Witness),
    files: &[u32],
    random: &mut Random,
) -> Past {
    let mut replay = Replay::new(&trace, 512);
    replay.advance_to(while_told(shape, &trace, trace.events.len(), random));
    let crash = Crash::random(random);
    let (left, _) = replay.crash(crash.kind, &[], crash.survivors, crash.seed);
    before.oracle.crash(crash.promise());
    let images = in_order(&left, files);
    let promise = crash.promise();
    Past { images, oracle: before.oracle, promise, gone: before.gone, written: false }
}

/// While it recovers, while it tells its disks who takes part, or later.
fn point(shape: &Shape, trace: &Trace, recovery: usize, random: &mut Random) -> usize {
    match random.below(8) {
        0 => to_usize(random.below(to_u64(recovery) + 1)),
        1 | 2 => while_told(shape, trace, recovery, random),
        _ => recovery + to_usize(random.below(to_u64(trace.events.len() - recovery) + 1)),
    }
}

/// A life with all disks: it starts; once they have come back, everything is there, and all is in sync.
fn with_all(shape: &Shape, past: &Past, random: &mut Random) -> Result<Past, Wrong> {
    let files = files(shape, random);
    let made = queue(shape, as_files(&past.images, &files), random.next(), true);
    let mut run = Run::start_on(shape, made, past.oracle.clone(), random.next())
        .map_err(|error| format!("does not start: {error:?}"))?;
    let mut before = Witness::new(past.oracle.clone());
    before.gone.clone_from(&past.gone);
    run.let_any_fail(past.gone.clone(), files.clone());
    run.read_what_is_there(past.promise, 0)?;
    run.heal(&shuffled(shape, random))?;
    run.read_all(past.promise, 1).map_err(|wrong| format!("when all are back: {wrong}"))?;
    run.read_all(Promise::Durable, 2).map_err(|wrong| format!("read again: {wrong}"))?;
    if let Some(sick) = &mut run.sick {
        // From here on it bears what it is made for.
        sick.unborne = false;
    }
    let flush = Step::Request { client: 0, kind: crate::RequestKind::Flush, offset: 0, len: 0 };
    let mut more = vec![flush];
    more.extend(steps(&Shape { copies: 1, ..shape.clone() }, REQUESTS, random.next()));
    more.push(one_write(random));
    run.take(&more)
        .and_then(|()| run.settle())
        .map_err(|wrong| format!("when all are back: {wrong}"))?;
    let trace = run.engine.queue_mut().take_trace();
    let point = point(shape, &trace, run.recovery, random);
    let point = ((point, &files[..]), past.written);
    Ok(Past::of((&run, &trace), before, point, random).0)
}

/// One more start, with one disk less where that is borne, or with all of them.
fn again(shape: &Shape, past: &Past, random: &mut Random) -> Result<Run, Wrong> {
    let lost = shape.disks > 2 && random.one_in(2);
    let disk = u32::try_from(random.below(shape.disks.into())).unwrap_or(0);
    let mut gone = past.gone.clone();
    let absent: Vec<u32> = lost.then_some(disk).into_iter().collect();
    gone.extend(&absent);
    let seed = random.next();
    let start =
        |absent: &[u32]| Run::start(shape, past.images.clone(), absent, past.oracle.clone(), seed);
    let started = match start(&absent) {
        Err(error) if lost && shape.may_be_refused(gone.len(), &error) => start(&[]),
        other => other,
    };
    let mut run =
        started.map_err(|error| format!("does not start without {absent:?}: {error:?}"))?;
    run.let_any_fail(gone, (0..shape.disks).collect());
    run.read_what_is_there(past.promise, 0)?;
    Ok(run)
}
