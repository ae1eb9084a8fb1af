//! What a start confirmed of first writes, where it can make no checkpoint (CRC-2).

use plumb_io::sim::power::{CrashKind, Replay, Survivors};

use super::faults::{fill, images, oracle, shape};
use super::oracle::Promise;
use super::run::{Run, new_pool, queue};
use crate::mutation::{Mutation, set};
use crate::{Request, RequestKind};

/// Five disks and no copies: each disk that has something has the last of it. Two of them have no journal, and one of these has extents.
const FIVE: (u32, u32, u8, u64) = (5, 0, 1, 0);
/// One on it, behind those of the history.
const WITHOUT_JOURNAL: u64 = 12;
const WRITE: RequestKind = RequestKind::Write { fua: false };

fn ask(run: &mut Run, kind: RequestKind, (offset, len): (u64, u32), byte: u8) -> Option<Vec<u8>> {
    run.engine.buffer_mut(0).fill(byte);
    let done = run.ask(0, Request { kind, vdisk: 0, offset, len }).ok()?;
    done.then(|| run.engine.buffer_mut(0)[..4096].to_vec())
}

/// A first write is acknowledged, and the engine dies. The next start confirms it, and can make no checkpoint, for another disk does not
/// flush from an I/O on. The block is written over, and the power goes at any moment: how often it has some of what was written last, and
/// whether anything else is ever there. By `seed` the disks are quick or slow.
fn written_over(other: u32, from: u64, seed: u64) -> (u32, bool) {
    let (shape, block) = (shape(FIVE), (WITHOUT_JOURNAL << 16) + 4096);
    let mut run = Run::start(&shape, new_pool(&shape), &[], oracle(), 1).expect("it starts");
    run.sound = false;
    fill(&mut run);
    for extent in 8..16 {
        ask(&mut run, RequestKind::Write { fua: true }, (extent << 16, 4096), 1).expect("room");
    }
    ask(&mut run, WRITE, (block, 4096), 0xa1).expect("it is written");
    let mut known = run.witness.oracle.clone();
    known.crash(Promise::Acknowledged);
    let mut made = queue(&shape, images(&mut run, shape.disks), seed, true);
    made.faults_mut(other).flush_errors = (from..10_000).collect();
    let Ok(mut run) = Run::start_on(&shape, made, known.clone(), 2) else { return (0, false) };
    let from = run.engine.queue_mut().events();
    run.engine.buffer_mut(0).fill(0xb2);
    run.engine.submit(0, Request { kind: WRITE, vdisk: 0, offset: block, len: 4096 });
    (0..8).for_each(|_| run.poll());
    let trace = run.engine.queue_mut().take_trace();
    let mut replay = Replay::new(&trace, 512);
    let (mut over, mut lost) = (0, false);
    for (nth, point) in (0..).zip(from..trace.events.len().min(from + 40)) {
        replay.advance_to(point);
        for (draw, survivors) in
            (0..).zip([Survivors::Few, Survivors::Some, Survivors::Most, Survivors::All])
        {
            let (left, _) = replay.crash(CrashKind::Power, &[], survivors, nth << 3 | draw);
            let Ok(mut again) = Run::start(&shape, left, &[], known.clone(), 3) else { continue };
            let read = ask(&mut again, RequestKind::Read, (block, 4096), 0);
            let Some(read) = read else { continue };
            over += u32::from(read.starts_with(&[0xb2; 512]));
            lost |= read.iter().any(|byte| ![0xa1, 0xb2].contains(byte));
        }
    }
    (over, lost)
}

/// It is durable before anybody writes over it: a write over it alone asks for nothing else to be durable, and what a crash leaves
/// of it would be unwritten.
#[test]
fn what_a_start_confirmed_is_durable_without_a_checkpoint() {
    let counts = || {
        let others = (0..2).flat_map(|other| (9..12).map(move |from| (other, from)));
        let all = others.flat_map(|(other, from)| (7..9).map(move |seed| (other, from, seed)));
        let all: Vec<(u32, bool)> =
            all.map(|(other, from, seed)| written_over(other, from, seed)).collect();
        (all.iter().map(|own| own.0).sum::<u32>(), all.iter().filter(|own| own.1).count())
    };
    let (over, lost) = counts();
    assert!(over > 0 && lost == 0, "written over {over} times, lost in {lost}");
    set(Some(Mutation::ConfirmedInMemory));
    let (_, broken) = counts();
    set(None);
    assert!(broken > 0, "the rule is not tested");
}
