//! Crash states of a history: what the disks may hold, started again, read, written, crashed and started
//! once more (T1).

use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;

use plumb_io::sim::power::{Choice, CrashKind, Event, Image, Replay, Survivors, Trace};
use plumb_units::convert::{index, to_u64, to_usize};

use super::background::Background;
use super::combined::{Combined, LogCopies, Situation};
use super::history::{Shape, Step, is_demanding, sectors, steps};
use super::lives;
use super::lost_sectors::LostSectors;
use super::older;
use super::optimizing;
use super::oracle::{Oracle, Promise};
use super::rot_and_away;
use super::rotting;
use super::run::{Run, Wrong, new_pool};
use super::witness::{Log, Seen, Witness};
use crate::format::Geometry;
use crate::random::Random;
use crate::{RequestKind, StartError};

/// Turns in which a disk that came back takes part again.
const TURNS_TO_RETURN: usize = 12;

/// What was checked so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// States that count: recovered, read in full, written to, crashed and recovered again.
    pub(super) states: u64,
    /// Of these, crashes that came while background work was under way.
    pub(super) background: u64,
    /// Of these, crashes after the first destage of a write-back cache.
    pub(super) cached: u64,
    /// Of these, states of runs in which extents were moved.
    pub(super) moved: u64,
    /// Of these, crashes in the middle of an optimization.
    pub(super) optimized: u64,
    /// Of these, states after a disk had failed, of runs with overwrites and flushes.
    pub(super) demanding: u64,
    /// Of these, crashes after the first places of a retired disk had been given to others.
    pub(super) rebuilt: u64,
    /// Of these, states with a third crash: after a disk had come back, or because nothing was written before.
    pub(super) thrice: u64,
    /// Of these, states with a disk that was put back as it had been before.
    pub(super) outdated: u64,
    /// Of these, states after a disk had failed.
    pub(super) failed_disk: u64,
    /// Of these, states of histories in which more may fail than the space bears.
    pub(super) unborne: u64,
    /// Of these, states after several disks had failed.
    pub(super) several: u64,
    /// Of these, crashes after a disk had lost its vote and gone on.
    pub(super) voteless: u64,
    /// Of these, crashes after something had been moved off a disk that leaves.
    pub(super) emptied: u64,
    /// Of these, of pools whose trees had index pages.
    pub(super) indexed: u64,
    /// Of these, crashes after something had rotted while the pool served.
    pub(super) rotten: u64,
    /// Of these, states in which sectors that were being written when the power went could not be read.
    pub(super) lost_sectors: u64,
    /// Of these, those of each combination.
    pub(super) combined: Combined,
}

/// How a state was checked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Passed {
    /// Crashes that it went through.
    pub(super) crashes: u32,
    /// A disk was put back as it had been before.
    pub(super) outdated: bool,
    /// Sectors that were being written when the power went could not be read.
    pub(super) lost_sectors: bool,
    /// What started after the crash met blocks that were not settled, and destaged.
    pub(super) destaged_unsettled: bool,
    /// It was started with rot in metadata and another disk away, too.
    pub(super) rot_and_away: bool,
}

/// How a history went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    /// What was seen.
    pub(super) wrong: Wrong,
    /// After how many device events the crash came, and what it was drawn from; `None` without one.
    pub(super) crash: Option<(usize, Random)>,
    /// Which state it was, counted in its history.
    pub(super) state: u64,
}

/// One crash: what dies, where, what is left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crash {
    pub(super) kind: CrashKind,
    pub(super) survivors: Survivors,
    pub(super) seed: u64,
}

impl Crash {
    pub(super) fn random(random: &mut Random) -> Self {
        let kind = if random.below(3) == 0 { CrashKind::Engine } else { CrashKind::Power };
        let survivors = match random.below(8) {
            0 => Survivors::None,
            1 => Survivors::All,
            2 => Survivors::Most,
            3 | 4 => Survivors::Few,
            _ => Survivors::Some,
        };
        Self { kind, survivors, seed: random.next() }
    }

    pub(super) fn promise(self) -> Promise {
        match self.kind {
            CrashKind::Power => Promise::Durable,
            CrashKind::Engine => Promise::Acknowledged,
        }
    }
}

/// Runs a history and checks up to `states` of its crash states. A panic of the engine is a violation.
pub(super) fn check(
    shape: &Shape,
    history: &[Step],
    states: u64,
    seed: u64,
    tally: &mut Tally,
) -> Result<(), Broken> {
    guarded(|| check_unguarded(shape, history, states, seed, tally))
}

pub(super) fn guarded(work: impl FnOnce() -> Result<(), Broken>) -> Result<(), Broken> {
    let work = std::panic::AssertUnwindSafe(work);
    std::panic::catch_unwind(work).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        Err(Broken { wrong: format!("the engine panicked: {text}"), crash: None, state: 0 })
    })
}

/// Points of a history, by device events.
#[derive(Debug, Clone)]
pub(super) enum Points {
    /// Counted from its beginning.
    FromStart(RangeInclusive<usize>),
    /// Counted from its end.
    FromEnd(RangeInclusive<usize>),
}

impl Points {
    fn of(&self, events: usize) -> RangeInclusive<usize> {
        match self {
            Self::FromStart(points) => *points.start()..=(*points.end()).min(events),
            Self::FromEnd(points) => {
                let from_end = |count: &usize| events.saturating_sub(*count);
                from_end(points.end())..=from_end(points.start())
            }
        }
    }
}

/// Runs a history and checks, at each of these points, the crash that is drawn from each of `draws`.
pub(super) fn check_again(
    shape: &Shape,
    history: &[Step],
    seed: u64,
    (points, draws): (&Points, &[Random]),
) -> Result<(), Broken> {
    guarded(|| {
        let course = Course::of(shape, history, seed)?;
        let optimizes = optimizing::are_in(history);
        let mut replay = Replay::new(&course.trace, 512);
        let mut witness = Witness::new(course.oracle.clone());
        let mut seen = course.log.iter().peekable();
        for point in points.of(course.trace.events.len()) {
            replay.advance_to(point);
            while let Some((_, event)) = seen.next_if(|(position, _)| *position <= point) {
                witness.see(event);
            }
            let here = Here { shape, witness: &witness, point, nth: 0, optimizes };
            for drawn in draws {
                here.check(&mut replay, &mut Known::default(), &mut drawn.clone())?;
            }
        }
        Ok(())
    })
}

/// How many device events a history takes; `None` when it does not get to its end.
pub(super) fn events(shape: &Shape, history: &[Step], seed: u64) -> Option<usize> {
    let mut count = None;
    let run = guarded(|| {
        count = Some(Course::of(shape, history, seed)?.trace.events.len());
        Ok(())
    });
    run.ok().and(count)
}

/// What came of a history.
pub(super) struct Course {
    pub(super) trace: Trace,
    pub(super) log: Log,
    background: Background,
    /// Where the log of the cache lies.
    logs: LogCopies,
    /// As it was before.
    pub(super) oracle: Oracle,
}

impl Course {
    pub(super) fn of(shape: &Shape, history: &[Step], seed: u64) -> Result<Self, Broken> {
        let oracle = Oracle::new(index(sectors()));
        let broken = |wrong| Broken { wrong, crash: None, state: 0 };
        let mut run = Run::start(shape, new_pool(shape), &[], oracle.clone(), seed)
            .map_err(|error| broken(format!("a new pool does not start: {error}")))?;
        if !shape.workload.is_borne() {
            run.let_any_fail(BTreeSet::new(), (0..shape.disks).collect());
        }
        let logs = LogCopies::of(shape, &run.engine);
        run.write_hidden().and_then(|()| run.take(history)).map_err(broken)?;
        let background = std::mem::take(&mut run.background);
        let trace = run.engine.queue_mut().take_trace();
        Ok(Self { trace, log: run.log, background, logs, oracle })
    }
}

/// What was checked of a history.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// A state is checked once for where the crash came, what was drawn to be left, whether power was cut, and which disks
    /// were away.
    drawn: HashSet<(usize, u64, bool, Vec<u32>)>,
    /// And counted once for where the crash came and which sectors were left.
    subsets: HashSet<(usize, u64)>,
}

/// A state that counts.
pub(super) struct Counted {
    passed: Passed,
    choice: Choice,
    absent: Vec<u32>,
}

/// A history at a point where it may crash.
pub(super) struct Here<'a> {
    pub(super) shape: &'a Shape,
    pub(super) witness: &'a Witness,
    pub(super) point: usize,
    pub(super) nth: u64,
    /// Optimizations are in its history.
    pub(super) optimizes: bool,
}

impl Here<'_> {
    /// Draws a crash and checks what it leaves; `None` when that does not count, or the same was counted before.
    fn check(
        &self,
        replay: &mut Replay<'_>,
        known: &mut Known,
        random: &mut Random,
    ) -> Result<Option<Counted>, Broken> {
        let drawn = Some((self.point, random.clone()));
        let crash = Crash::random(random);
        self.check_crash(replay, known, (crash, drawn), random)
    }

    /// Checks what a crash leaves, drawn from what is said, if it was drawn.
    pub(super) fn check_crash(
        &self,
        replay: &mut Replay<'_>,
        known: &mut Known,
        (crash, drawn): (Crash, Option<(usize, Random)>),
        random: &mut Random,
    ) -> Result<Option<Counted>, Broken> {
        let &Self { shape, witness, point, nth, optimizes } = self;
        let borne = shape.workload.is_borne();
        let absent = if borne { absent(shape, witness, random) } else { Vec::new() };
        let (images, choice) =
            replay.crash(crash.kind, &witness.unplugged(), crash.survivors, crash.seed);
        let power = crash.kind == CrashKind::Power;
        if !known.drawn.insert((point, choice.drawn, power, absent.clone())) {
            return Ok(None);
        }
        let (unwell, expelled) = (witness.unwell, witness.expelled);
        let context = format!(
            "{:?} crash, {:?} of the unflushed kept, disk away {absent:?}, unwell {unwell:?}, expelled {expelled:?}, gone {:?}, done without {:?}",
            crash.kind, crash.survivors, witness.gone, witness.away
        );
        let broken = |wrong| Broken { wrong, crash: drawn.clone(), state: nth };
        let left = witness.unplugged();
        if !left.is_empty() {
            check_left_behind(shape, &images, &left, witness.oracle.clone()).map_err(broken)?;
        }
        let checked = match shape.workload.is_borne() {
            true => {
                check_state(shape, images, (&absent, optimizes), witness, (crash, &choice), random)
            }
            false => lives::check(shape, images, witness, crash, random),
        };
        let passed = checked.map_err(|wrong| broken(format!("{wrong} ({context})")))?;
        let passed = passed.filter(|_| known.subsets.insert((point, choice.subset)));
        Ok(passed.map(|passed| Counted { passed, choice, absent }))
    }
}

fn check_unguarded(
    shape: &Shape,
    history: &[Step],
    states: u64,
    seed: u64,
    tally: &mut Tally,
) -> Result<(), Broken> {
    let mut random = Random::new(seed ^ 0xc7a5);
    let Course { trace, log, background, logs, oracle } = Course::of(shape, history, seed)?;
    let (demanding, optimizes) = (is_demanding(history), optimizing::are_in(history));
    let mut points: Vec<usize> =
        (0..states).map(|_| crash_point(&background, trace.events.len(), &mut random)).collect();
    points.sort_unstable();
    let mut replay = Replay::new(&trace, 512);
    let mut witness = Witness::new(oracle);
    let mut seen = log.iter().peekable();
    let mut known = Known::default();
    let (mut had_fault, mut had_several) = (false, false);
    for (nth, point) in (0..).zip(points) {
        replay.advance_to(point);
        while let Some((_, event)) = seen.next_if(|(position, _)| *position <= point) {
            witness.see(event);
            had_fault |= witness.unwell.is_some() || !witness.gone.is_empty();
            had_several |= witness.gone.len() > 1;
        }
        let here = Here { shape, witness: &witness, point, nth, optimizes };
        if let Some(Counted { passed, choice, absent }) =
            here.check(&mut replay, &mut known, &mut random)?
        {
            let Passed { crashes, outdated, lost_sectors, destaged_unsettled, rot_and_away } =
                passed;
            let after = |first: Option<usize>| u64::from(first.is_some_and(|first| first <= point));
            tally.states += 1;
            tally.background += u64::from(background.is_on(point));
            tally.demanding += u64::from(had_fault && demanding);
            tally.rebuilt += after(background.rebuilt);
            tally.cached += after(background.destaged);
            tally.moved += after(background.moved);
            tally.optimized += u64::from(background.is_optimizing(point));
            tally.failed_disk += u64::from(had_fault);
            tally.thrice += u64::from(crashes > 2);
            tally.outdated += u64::from(outdated);
            tally.emptied += after(background.emptied);
            tally.unborne += u64::from(!shape.workload.is_borne());
            tally.several += u64::from(had_several);
            tally.voteless += after(background.voteless);
            tally.indexed += after(background.indexed);
            tally.rotten += u64::from(witness.rotten);
            tally.lost_sectors += u64::from(lost_sectors);
            let (background, logs, witness) = (&background, &logs, &witness);
            let (choice, absent) = (&choice, &absent[..]);
            let situation = Situation {
                shape,
                background,
                logs,
                witness,
                point,
                choice,
                absent,
                destaged_unsettled,
                rot_and_away,
            };
            tally.combined.count(|combination| situation.has(combination));
        }
    }
    Ok(())
}

/// After how many of `events` a crash comes: mostly while background work is under way, and of that in some of
/// the steps that are short and rare as often as in the long ones.
fn crash_point(background: &Background, events: usize, random: &mut Random) -> usize {
    let windows = &background.windows;
    let mut below = |count: usize| to_usize(random.below(to_u64(count)));
    if windows.is_empty() || below(6) == 0 {
        return below(events + 1);
    }
    let (from, to) = if below(2) == 0 {
        windows[below(windows.len())]
    } else {
        let mut nth = below(windows.iter().map(|(from, to)| to - from).sum());
        let holds = |(from, to): &&(usize, usize)| {
            let len = to - from;
            let here = nth < len;
            nth = nth.wrapping_sub(if here { 0 } else { len });
            here
        };
        *windows.iter().find(holds).unwrap_or(&windows[0])
    };
    from + 1 + below(to - from)
}

/// Which disks are away after the crash: one that was not well, or any other, or two of them, within the tolerance.
fn absent(shape: &Shape, witness: &Witness, random: &mut Random) -> Vec<u32> {
    let lost = random.one_in(3);
    let any = |random: &mut Random| u32::try_from(random.below(shape.disks.into())).unwrap_or(0);
    let first = match (witness.unwell, witness.leaving) {
        // Of two disks one alone may not start, unless the other was expelled before; and how many there are
        // while one leaves is not known.
        (Some(disk), leaving) => {
            (lost && shape.disks > 2 + u32::from(leaving.is_some())).then_some(disk)
        }
        (None, Some(disk)) if shape.tolerates_loss() && lost => match shape.disks {
            0..=2 => None,
            3 => Some(disk),
            _ => Some(any(random)),
        },
        (None, None) if shape.tolerates_loss() && shape.disks > 2 && lost => Some(any(random)),
        (None, _) => None,
    };
    let Some(first) = first else { return Vec::new() };
    // Three copies bear the loss of two, and three of five disks are more than half.
    let two = shape.copies > 2 && shape.disks > 4 && witness.leaving.is_none() && random.one_in(2);
    let second = two.then(|| any(random)).filter(|second| *second != first);
    std::iter::once(first).chain(second).collect()
}

/// Starts what a crash left, reads everything against the oracle, twice; writes, crashes again, starts
/// again and reads again; now and then once more, when a disk has come back, or with one as it was before, and always
/// where the second crash came before anything was written. How that was; `None` when the state does not count: the
/// pool waits for its disks.
fn check_state(
    shape: &Shape,
    mut images: Vec<Image>,
    (absent, optimizes): (&[u32], bool),
    witness: &Witness,
    (crash, choice): (Crash, &Choice),
    random: &mut Random,
) -> Result<Option<Passed>, Wrong> {
    let mut oracle = witness.oracle.clone();
    oracle.crash(crash.promise());
    let all_well = absent.is_empty() && witness.unwell.is_none() && witness.leaving.is_none();
    let healthy = all_well && shape.tolerates_loss();
    let drawn = (crash.promise(), crash.seed);
    let rot_and_away =
        healthy && !witness.rotten && rot_and_away::check(shape, &images, &witness.oracle, drawn)?;
    let kept = older::keeps_an_image(shape, healthy, crash, &images);
    let mut rotten = healthy && random.one_in(4);
    if rotten {
        rot(shape, &mut images, &oracle, random);
    }
    rotten |= witness.rotten;
    let may_be = all_well && !rotten && kept.is_none();
    let lost = LostSectors::draw(shape, may_be, (crash, choice), None);
    // One copy is damaged: no other is, or away.
    rotten |= lost.is_some();
    let lost_sectors = lost.is_some();
    let start = (absent, lost.as_ref());
    let told = LostSectors::told(lost.as_ref());
    let mut run = match Run::start_without(shape, images, start, oracle.clone(), random.next()) {
        Ok(run) => run,
        Err(StartError::NoQuorum { .. }) if !absent.is_empty() && shape.disks <= 2 => {
            return Ok(None);
        }
        // Two that are away beside one that was given up for good leave too few to go on unattended.
        Err(StartError::NoQuorum { present, voters }) if voters - present > 1 => return Ok(None),
        Err(error) => return Err(format!("does not start after the crash{told}: {error:?}")),
    };
    run.sound = !rotten;
    run.read_all(crash.promise(), 0).map_err(|wrong| format!("after the crash{told}: {wrong}"))?;
    run.read_all(Promise::Durable, 1).map_err(|wrong| format!("read again{told}: {wrong}"))?;
    if rotten && shape.copies > 2 {
        // From every copy: what has rotted where nobody looked is not told from what a write tears on all copies at once.
        run.read_all(Promise::Durable, 2).map_err(|wrong| format!("read again{told}: {wrong}"))?;
    }
    if random.one_in(2) {
        run.attach_returning();
    }
    let mut more = steps(&Shape { copies: 1, ..shape.clone() }, 10, random.next());
    let alive = older::copied_alive(shape, healthy && !rotten && kept.is_none(), crash, &mut run);
    if alive.is_some() {
        more.extend(older::writes_and_marks(crash));
    }
    more.push(one_write(random));
    if optimizes {
        optimizing::once_more(&mut more, crash.seed);
    }
    run.take(&more)
        .and_then(|()| run.settle())
        .map_err(|wrong| format!("after recovery{told}: {wrong}"))?;
    let counters = run.engine.counters();
    let destaged_unsettled = counters.interrupted + counters.equalised > 0 && counters.destaged > 0;
    let trace = run.engine.queue_mut().take_trace();
    // While it recovers, then now and then while it tells its disks who takes part; or after it was written to.
    let point = match random.below(12) {
        0..=1 => to_usize(random.below(to_u64(run.recovery) + 1)),
        2..=4 => while_told(shape, &trace, run.recovery, random),
        _ => run.recovery + to_usize(random.below(to_u64(trace.events.len() - run.recovery) + 1)),
    };
    let mut replay = Replay::new(&trace, 512);
    replay.advance_to(point);
    let mut second = Witness::new(oracle);
    second.unwell = absent.first().copied().or(witness.unwell);
    run.log
        .iter()
        .filter(|(position, _)| *position <= point)
        .for_each(|(_, seen)| second.see(seen));
    let written = is_written_to(&run.log, point);
    let again = Crash::random(random);
    let (mut images, choice) =
        replay.crash(again.kind, &absent[..absent.len().min(1)], again.survivors, again.seed);
    let still = lost.and_then(|lost| lost.after(&trace, point));
    let still =
        still.and_then(|still| LostSectors::draw(shape, true, (again, &choice), Some(&still)));
    second.oracle.crash(again.promise());
    let kept = kept.filter(|_| !rotten && point >= run.recovery);
    let kept = kept.or(alive.filter(|old| older::is_told(shape, &images, old)));
    if let Some((disk, image)) = &kept {
        images[*disk] = image.clone();
    }
    let mut stays_away: Vec<u32> = absent.iter().copied().filter(|_| random.one_in(2)).collect();
    // A copy lost beside a rotten one is more than a mirror can bear.
    if healthy && !rotten && kept.is_none() && shape.disks > 2 && random.one_in(2) {
        stays_away.extend(u32::try_from(random.below(u64::from(shape.disks))));
    }
    let old = kept
        .as_ref()
        .map_or_else(String::new, |(disk, _)| format!(", with disk {disk} as it had been before"));
    let old = old + &LostSectors::told(still.as_ref());
    let in_words = |wrong| format!("after the second crash, {point} events later{old}: {wrong}");
    let start = (&stays_away[..], still.as_ref());
    let mut run = Run::start_without(shape, images, start, second.oracle, random.next())
        .map_err(|error| format!("does not start after the second crash{old}: {error:?}"))?;
    run.sound = !rotten;
    run.read_all(again.promise(), 2).map_err(in_words)?;
    let returns = !run.engine.returning().is_empty() && random.one_in(3);
    let outdated = kept.is_some();
    let mut crashes = 2;
    if returns || !stays_away.is_empty() {
        run = check_returned(shape, run, random).map_err(in_words)?;
        crashes += 1;
    }
    if !written {
        check_written(shape, run, again).map_err(in_words)?;
        crashes += 1;
    }
    Ok(Some(Passed { crashes, outdated, lost_sectors, destaged_unsettled, rot_and_away }))
}

/// Whether a write was acknowledged before that many device events.
pub(super) fn is_written_to(log: &[(usize, Seen)], point: usize) -> bool {
    log.iter().any(|(position, seen)| {
        *position <= point && matches!(seen, Seen::Answer { good: true, .. })
    })
}

/// Writes to what was recovered and crashes once more, at once or with the write behind it; then it is recovered again.
/// What is drawn is drawn apart.
fn check_written(shape: &Shape, mut run: Run, crash: Crash) -> Result<Run, Wrong> {
    let mut random = Random::new(crash.seed ^ WRITTEN);
    let (mut witness, seen) = (Witness::new(run.witness.oracle.clone()), run.log.len());
    write_some(&mut run, &mut random)?;
    let point = written_point(&mut run, seen, &mut random);
    let before = run.log[seen..].iter().filter(|(position, _)| *position <= point);
    before.for_each(|(_, event)| witness.see(event));
    crash_again(shape, run, (point, witness.oracle), &mut random)
}

/// After how many device events a crash comes that is to find something written: behind the first write that was acknowledged,
/// of what the host saw from there on.
pub(super) fn written_point(run: &mut Run, seen: usize, random: &mut Random) -> usize {
    let end = run.engine.queue_mut().events();
    let good = |(_, seen): &&(usize, Seen)| matches!(seen, Seen::Answer { good: true, .. });
    let first = run.log[seen..].iter().find(good).map_or(end, |(position, _)| *position);
    first + to_usize(random.below(to_u64(end - first) + 1))
}

/// What is drawn for states that were not written to before.
pub(super) const WRITTEN: u64 = 0x0033_17e4;

/// Two writes, one after the other.
pub(super) fn write_some(run: &mut Run, random: &mut Random) -> Result<(), Wrong> {
    run.take(&[one_write(random), one_write(random)])?;
    run.settle()
}

/// A point within a start: while superblocks are written, and some disks have the new generation, some have not.
pub(super) fn while_told(
    shape: &Shape,
    trace: &Trace,
    recovery: usize,
    random: &mut Random,
) -> usize {
    let places = Geometry::superblocks(shape.disk_bytes());
    let tells =
        |event: &Event| matches!(event, Event::Write { offset, .. } if places.contains(offset));
    let events = trace.events.iter().take(recovery);
    let told: Vec<usize> =
        (1..).zip(events).filter(|(_, event)| tells(event)).map(|(nth, _)| nth).collect();
    match told.len() {
        0 => 0,
        count => {
            let begun = told[to_usize(random.below(to_u64(count)))];
            recovery.min(begun + to_usize(random.below(8)))
        }
    }
}

/// So that each state is written to.
pub(super) fn one_write(random: &mut Random) -> Step {
    let kind = RequestKind::Write { fua: random.one_in(3) };
    let offset = random.below(u64::from(sectors()) / 8) * 4096;
    Step::Request { client: 0, kind, offset, len: 4096 }
}

/// A disk that was away comes back, now or at the next start; the power fails once more, and all is read: what the
/// disk had kept of the past must not be taken for the present.
fn check_returned(shape: &Shape, mut run: Run, random: &mut Random) -> Result<Run, Wrong> {
    run.attach_returning();
    for _ in 0..TURNS_TO_RETURN {
        run.poll();
    }
    run.settle()?;
    let end = (run.engine.queue_mut().events(), run.witness.oracle.clone());
    crash_again(shape, run, end, random)
}

/// One more crash, after so many device events, when that was known; and the start behind it.
fn crash_again(
    shape: &Shape,
    mut run: Run,
    (point, mut oracle): (usize, Oracle),
    random: &mut Random,
) -> Result<Run, Wrong> {
    let trace = run.engine.queue_mut().take_trace();
    let mut replay = Replay::new(&trace, 512);
    replay.advance_to(point);
    let third = Crash::random(random);
    let (images, _) = replay.crash(third.kind, &[], third.survivors, third.seed);
    oracle.crash(third.promise());
    let sound = run.sound;
    let mut run = Run::start(shape, images, &[], oracle, random.next())
        .map_err(|error| format!("does not start after one more crash: {error:?}"))?;
    run.sound = sound;
    run.read_all(third.promise(), 0).map_err(|wrong| format!("after one more crash: {wrong}"))?;
    Ok(run)
}

/// Disks that the others went on without must not start alone (LAY-3).
pub(super) fn check_left_behind(
    shape: &Shape,
    images: &[Image],
    left: &[u32],
    oracle: Oracle,
) -> Result<(), Wrong> {
    let others: Vec<u32> = (0..shape.disks).filter(|disk| !left.contains(disk)).collect();
    match Run::start(shape, images.to_vec(), &others, oracle, 0) {
        Err(_) => Ok(()),
        Ok(_) => Err(format!("disks {left:?}, which were left behind, start alone")),
    }
}

/// Spoils one page of one disk.
fn rot(shape: &Shape, images: &mut [Image], oracle: &Oracle, random: &mut Random) {
    let disk = to_usize(random.below(to_u64(images.len())));
    if let Some(drawn) = rotting::draw(shape, &images[disk], oracle, random) {
        images[disk].flip(drawn.offset, drawn.bit);
    }
}
