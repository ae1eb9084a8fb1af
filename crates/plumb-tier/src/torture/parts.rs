//! Parts of a pool: disks are lost while the others still learn that some were lost before, and whoever goes on is the
//! only part that starts without anybody's word (LAY-3).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use plumb_io::sim::power::{CrashKind, DiskFaults, Event, Image, Replay, Survivors};
use plumb_units::convert::index;

use super::history::{Fault, Shape, Step, sectors, steps};
use super::oracle::{Oracle, Promise};
use super::run::{Run, new_pool, queue};
use super::states::check_left_behind;
use super::unborne::Workload;
use super::witness::{Seen, Witness};
use crate::StartError;
use crate::format::Geometry;
use crate::mutation::{Mutation, set};

/// I/Os of a disk in a start after which it fails, at most.
const IOS: u64 = 24;

/// What is left of a pool that lost some disks, at each of several points while the others learn of it.
fn losing(shape: &Shape, lost: &[u32]) -> Vec<(Vec<Image>, Oracle)> {
    let oracle = Oracle::new(index(sectors()));
    let mut run = Run::start(shape, new_pool(shape), &[], oracle.clone(), 1).expect("it is new");
    run.let_any_fail(BTreeSet::new(), (0..shape.disks).collect());
    let well = Shape { copies: 1, ..shape.clone() };
    let mut history = steps(&well, 6, shape.seed);
    let die = |disk| Step::Fault { disk, fault: Fault::Dies { after: 0 } };
    history.extend(lost.iter().map(|disk| die(*disk)));
    history.push(Step::Poll);
    history.extend(steps(&well, 12, shape.seed + 1));
    run.take(&history).expect("nothing is wrong");
    let voters = &run.engine.config().voters;
    assert!(lost.iter().all(|disk| !voters.iter().any(|own| u32::from(*own) == *disk)));
    let when = |is: fn(&Seen) -> bool| {
        let mut all = run.log.iter().filter(|(_, event)| is(event)).map(|(position, _)| *position);
        all.next_back().expect("some are gone")
    };
    let begin = when(|event| matches!(event, Seen::Gone { .. }));
    let end = when(|event| matches!(event, Seen::Away { .. }));
    left_while_told(shape, &mut run, &oracle, begin.max(1)..=end)
}

/// What a crash leaves of a run at each point in a range of its device events at which a superblock was just written.
fn left_while_told(
    shape: &Shape,
    run: &mut Run,
    oracle: &Oracle,
    range: RangeInclusive<usize>,
) -> Vec<(Vec<Image>, Oracle)> {
    let trace = run.engine.queue_mut().take_trace();
    let places = Geometry::superblocks(shape.disk_bytes());
    let is_told = |point: &usize| {
        let event = point.checked_sub(1).and_then(|nth| trace.events.get(nth));
        matches!(event, Some(Event::Write { offset, .. }) if places.contains(offset))
    };
    let mut replay = Replay::new(&trace, 512);
    let mut left = Vec::new();
    for point in range.filter(is_told) {
        replay.advance_to(point);
        let (images, _) = replay.crash(CrashKind::Power, &[], Survivors::All, 1);
        let mut witness = Witness::new(oracle.clone());
        let seen = run.log.iter().take_while(|(position, _)| *position <= point);
        seen.for_each(|(_, event)| witness.see(event));
        witness.oracle.crash(Promise::Durable);
        left.push((images, witness.oracle));
    }
    left
}

/// Starts with some disks away and one that fails meanwhile; how often it went on, and how often those that are not part
/// of it start as well.
fn parts(shape: &Shape, left: &[(Vec<Image>, Oracle)]) -> (u32, u32) {
    let all = (0..1_u32 << shape.disks).filter(|away| away.count_ones() <= 2);
    parts_without(shape, left, &all.collect::<Vec<_>>())
}

/// The same with each of these sets of disks away, a bit for each disk.
fn parts_without(shape: &Shape, left: &[(Vec<Image>, Oracle)], sets: &[u32]) -> (u32, u32) {
    let (mut on, mut apart) = (0, 0);
    for (images, oracle) in left {
        for &away in sets {
            let failing = (0..shape.disks).filter(|disk| away >> disk & 1 == 0);
            let at = |disk| (0..IOS).step_by(3).map(move |ios| (disk, ios));
            let none = (shape.disks, 0);
            for (disk, ios) in failing.flat_map(at).chain([none]) {
                let mut made = queue(shape, images.clone(), 2, true);
                for absent in (0..shape.disks).filter(|disk| away >> disk & 1 == 1) {
                    made.faults_mut(absent).dead_from = Some(0);
                }
                if disk < shape.disks {
                    *made.faults_mut(disk) =
                        DiskFaults { dead_from: Some(ios), ..DiskFaults::default() };
                }
                let Ok(mut run) = Run::start_on(shape, made, oracle.clone(), 3) else { continue };
                on += 1;
                let voters = run.engine.config().voters.clone();
                let trace = run.engine.queue_mut().take_trace();
                let mut replay = Replay::new(&trace, 512);
                replay.advance_to(trace.events.len());
                let (after, _) = replay.crash(CrashKind::Power, &[], Survivors::All, 1);
                let others: Vec<u32> = (0..shape.disks)
                    .filter(|disk| !voters.iter().any(|own| u32::from(*own) == *disk))
                    .collect();
                if !others.is_empty() {
                    let alone = check_left_behind(shape, &after, &others, oracle.clone());
                    apart += u32::from(alone.is_err());
                }
            }
        }
    }
    (on, apart)
}

fn shape(disks: u32, copies: u8) -> Shape {
    let workload = Workload::OutOfOrder;
    Shape { disks, rotating: 0, copies, columns: 1, cache: 0, seed: 1, workload }
}

#[test]
fn of_the_parts_of_a_pool_one_starts_at_most() {
    for (disks, copies) in [(4, 2), (5, 3)] {
        let (shape, lost) = (shape(disks, copies), [3, 1]);
        let left = losing(&shape, &lost);
        let (on, apart) = parts(&shape, &left);
        println!("{disks} disks, {lost:?} lost: {on} starts go on");
        assert!(on > 100, "{on}");
        assert_eq!(apart, 0, "{disks} disks, {lost:?} lost: two parts start");
        set(Some(Mutation::ListsForgotten));
        let (_, apart) = parts(&shape, &left);
        set(None);
        assert!(apart > 0, "{disks} disks, {lost:?} lost: the rule makes no difference");
    }
}

/// A crash left a generation on a disk in one copy of its superblock: where others confirm it the disk has it, and by itself it says
/// the one before. Who goes on without it is half of that one's voters, too (LAY-1, LAY-3).
#[test]
fn a_generation_in_one_copy_is_no_reason_to_go_on_without_that_disk() {
    let sum = |(on, apart): (u32, u32), (more, others): (u32, u32)| (on + more, apart + others);
    let all = || {
        let of = |seed| {
            let (shape, oracle) = (shape(5, 3), Oracle::new(index(sectors())));
            let away = Run::start(&shape, new_pool(&shape), &[1, 3], oracle.clone(), seed);
            let mut run = away.expect("three of five are more than half");
            let told = 1..=run.recovery;
            parts_without(&shape, &left_while_told(&shape, &mut run, &oracle, told), &[0b0_1010])
        };
        (1..=4).map(of).fold((0, 0), sum)
    };
    let (on, apart) = all();
    println!("{on} starts go on");
    assert_eq!(apart, 0, "two parts start");
    set(Some(Mutation::LoneCopyHasIt));
    let (_, apart) = all();
    set(None);
    println!("without the rule {apart}");
    assert!(on > 100 && apart > 0, "{on} {apart}");
}

/// What a crash leaves while a disk comes back on which an earlier crash left a generation that no other disk has.
fn taking_back(shape: &Shape) -> Vec<(Vec<Image>, Oracle)> {
    let mut left = Vec::new();
    for (images, oracle) in losing(shape, &[2]) {
        // Where the others have that generation, they are too few without this one.
        let Ok(mut run) = Run::start(shape, images, &[0], oracle.clone(), 3) else { continue };
        let well = Shape { copies: 1, ..shape.clone() };
        run.take(&steps(&well, 6, shape.seed)).and_then(|()| run.settle()).expect("it goes on");
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Acknowledged);
        let images = (0..shape.disks).map(|disk| run.engine.queue_mut().view(disk)).collect();
        let mut run = Run::start(shape, images, &[], oracle.clone(), 4).expect("all are here");
        run.attach_returning();
        run.take(&[Step::Poll; 20]).and_then(|()| run.settle()).expect("nothing is wrong");
        assert!(run.engine.config().voters.contains(&0), "it is back");
        let range = run.recovery + 1..=run.engine.queue_mut().events();
        left.extend(left_while_told(shape, &mut run, &oracle, range));
    }
    left
}

/// The others have the generation that takes a disk back before it has, and it still has the one that a crash left on it
/// alone: that is no part of its own.
#[test]
fn what_a_crash_left_on_a_disk_that_comes_back_is_no_part_of_its_own() {
    let shape = shape(3, 2);
    let left = taking_back(&shape);
    let split = || {
        let start = |(images, oracle): &(Vec<Image>, Oracle)| match Run::start(
            &shape,
            images.clone(),
            &[],
            oracle.clone(),
            5,
        ) {
            Ok(mut run) => {
                run.read_all(Promise::Durable, 0).expect("it is all there");
                false
            }
            Err(StartError::Split { ordinal: 0 }) => true,
            Err(error) => panic!("{error:?}"),
        };
        left.iter().filter(|state| start(state)).count()
    };
    println!("{} states", left.len());
    assert!(left.len() > 20, "{}", left.len());
    assert_eq!(split(), 0);
    set(Some(Mutation::LeftoverIsFork));
    let split = split();
    set(None);
    assert!(split > 0, "the rule makes no difference");
}
