use std::collections::HashMap;

use plumb_units::Nanos;

use super::*;
use crate::{FileIndex, FlushQueue, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, Slot};

fn queue(seed: u64) -> PowerQueue {
    let spec = PowerSpec {
        seed,
        depth: 4,
        lanes: vec![LaneSpec { first_slot: 0, slots: 4, bytes: 4096 }],
        sector: 512,
        service: (Nanos(10), Nanos(1000)),
        record: true,
    };
    PowerQueue::new(&spec, vec![Image::new(1 << 20)])
}

fn write(queue: &mut PowerQueue, slot: u32, offset: u64, value: u8) {
    write_to(queue, slot, (0, offset), value);
}

fn write_to(queue: &mut PowerQueue, slot: u32, (file, offset): (u32, u64), value: u8) {
    queue.buffer_mut(Slot(slot), LaneIndex(0)).fill(value);
    let memory = Memory::Lane(LaneIndex(0));
    let (kind, file) = (OpKind::Write, FileIndex(file));
    queue.push(Op { kind, file, slot: Slot(slot), len: 4096, offset, memory });
}

fn wait(queue: &mut PowerQueue) -> Vec<i32> {
    queue.submit_and_wait(4, Nanos::NEVER).expect("never fails");
    queue.look();
    std::iter::from_fn(|| queue.pop()).map(|done| done.result).collect()
}

fn sectors(image: &Image, offset: u64) -> Vec<u8> {
    let mut page = [0; 4096];
    image.read(offset, &mut page);
    assert!(page.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
    page.chunks(512).map(|sector| sector[0]).collect()
}

/// After a flushed 1, an unflushed 2 and a 3 in flight at the same place: what a crash may leave.
#[test]
fn a_crash_keeps_what_was_flushed_and_any_of_the_rest() {
    let mut queue = queue(1);
    write(&mut queue, 0, 0, 1);
    assert_eq!(wait(&mut queue), [4096]);
    queue.push_flush(FileIndex(0), Slot(0));
    assert_eq!(wait(&mut queue), [0]);
    write(&mut queue, 0, 0, 2);
    assert_eq!(wait(&mut queue), [4096]);
    write(&mut queue, 1, 0, 3);
    queue.submit_and_wait(0, Nanos::ZERO).expect("never fails");
    let trace = queue.take_trace();
    let mut replay = Replay::new(&trace, 512);
    replay.advance_to(trace.events.len());
    assert_eq!(replay.uncertain(), 2);
    let (mut power, mut engine) = ([false; 4], [false; 4]);
    let (mut torn, mut subsets) = (false, HashMap::new());
    for seed in 0..400 {
        let (images, choice) = replay.crash(CrashKind::Power, &[], Survivors::Some, seed);
        let seen = sectors(&images[0], 0);
        seen.iter().for_each(|value| power[usize::from(*value)] = true);
        torn |= seen.iter().any(|value| *value != seen[0]);
        let left = subsets.entry(choice.subset).or_insert_with(|| seen.clone());
        assert_eq!(*left, seen, "the same sectors survived");
        let (images, _) = replay.crash(CrashKind::Engine, &[], Survivors::Some, seed);
        sectors(&images[0], 0).iter().for_each(|value| engine[usize::from(*value)] = true);
    }
    assert_eq!(power, [false, true, true, true], "flushed 1 is the oldest that may be seen");
    assert_eq!(
        engine,
        [false, false, true, true],
        "completed 2 is the oldest after the engine's end"
    );
    assert!(torn && subsets.len() > 20, "{} subsets", subsets.len());
}

#[test]
fn a_flush_covers_only_what_had_completed_before_it() {
    let mut queue = queue(2);
    write(&mut queue, 0, 0, 1);
    queue.submit_and_wait(0, Nanos::ZERO).expect("never fails");
    queue.push_flush(FileIndex(0), Slot(1));
    assert_eq!(wait(&mut queue).len(), 2);
    let trace = queue.take_trace();
    let mut replay = Replay::new(&trace, 512);
    replay.advance_to(trace.events.len());
    let (images, _) = replay.crash(CrashKind::Power, &[], Survivors::None, 0);
    assert_eq!(sectors(&images[0], 0), [0; 8]);
}

/// What a failed flush was for may be lost although a later one succeeds; what is written after it is not.
#[test]
fn a_later_flush_does_not_bring_back_what_a_failed_one_was_for() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..32 {
        let mut queue = queue(seed);
        write(&mut queue, 0, 0, 1);
        write(&mut queue, 1, 8192, 1);
        assert_eq!(wait(&mut queue), [4096; 2]);
        queue.faults_mut(0).flush_errors = vec![0];
        queue.push_flush(FileIndex(0), Slot(0));
        assert_eq!(wait(&mut queue), [-5]);
        write(&mut queue, 0, 16384, 2);
        assert_eq!(wait(&mut queue), [4096]);
        queue.push_flush(FileIndex(0), Slot(0));
        assert_eq!(wait(&mut queue), [0]);
        let shown = queue.view(0);
        let shown = [0, 8192, 16384].map(|at| sectors(&shown, at)[0]);
        let trace = queue.take_trace();
        let mut replay = Replay::new(&trace, 512);
        replay.advance_to(trace.events.len());
        assert_eq!(replay.uncertain(), 0);
        for kind in [CrashKind::Power, CrashKind::Engine] {
            let (images, _) = replay.crash(kind, &[], Survivors::All, seed);
            let left = [0, 8192, 16384].map(|at| sectors(&images[0], at)[0]);
            assert_eq!((left, left[2]), (shown, 2));
            seen.insert((left[0], left[1]));
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// A flush that is refused costs nothing: the next one makes the same durable.
#[test]
fn a_refused_flush_leaves_all_to_the_next_one() {
    for seed in 0..8 {
        let mut queue = queue(seed);
        write(&mut queue, 0, 0, 1);
        assert_eq!(wait(&mut queue), [4096]);
        queue.faults_mut(0).refused_flushes = vec![0];
        for result in [-5, 0] {
            queue.push_flush(FileIndex(0), Slot(0));
            assert_eq!(wait(&mut queue), [result]);
        }
        assert_eq!(queue.take_forgotten(), []);
        let trace = queue.take_trace();
        let mut replay = Replay::new(&trace, 512);
        replay.advance_to(trace.events.len());
        let (images, _) = replay.crash(CrashKind::Power, &[], Survivors::None, seed);
        assert_eq!(sectors(&images[0], 0), [1; 8]);
    }
}

#[test]
fn disks_fail_hang_and_forget_as_told() {
    let mut queue = queue(3);
    queue.faults_mut(0).write_errors = vec![0];
    write(&mut queue, 0, 0, 1);
    assert_eq!(wait(&mut queue), [-5]);
    queue.faults_mut(0).flush_errors = vec![0];
    queue.push_flush(FileIndex(0), Slot(0));
    assert_eq!(wait(&mut queue), [-5]);
    write(&mut queue, 0, 0, 2);
    assert_eq!(wait(&mut queue), [4096]);
    queue.drop_cache(0, Survivors::None);
    assert_eq!(sectors(&queue.view(0), 0), [0; 8]);
    queue.faults_mut(0).hangs_from = Some(0);
    write(&mut queue, 0, 0, 3);
    queue.submit_and_wait(1, Nanos(5000)).expect("never fails");
    assert_eq!(queue.look(), 0);
}

#[test]
fn images_share_pages_and_do_not_share_changes() {
    let mut one = Image::new(1 << 20);
    one.write(100, b"abc");
    let mut two = one.fork();
    two.write(101, b"X");
    one.write(102, b"Y");
    let text = |image: &Image| {
        let mut bytes = [0; 5];
        image.read(99, &mut bytes);
        bytes
    };
    assert_eq!((&text(&one), &text(&two)), (b"\0abY\0", b"\0aXc\0"));
    assert_eq!(one.written(), [0]);
}

/// What a write that failed left is what the disk shows, and stays it: nothing more of it comes with a flush or a crash.
#[test]
fn what_a_failed_write_left_stays_as_it_is_shown() {
    let mut torn = 0;
    for seed in 0..40 {
        let mut queue = queue(seed);
        queue.faults_mut(0).write_errors = vec![2];
        for value in [1, 2] {
            write(&mut queue, 0, 0, value);
            let result = wait(&mut queue)[0];
            assert_eq!(result, if value == 1 { 4096 } else { -5 });
            if value == 1 {
                queue.push_flush(FileIndex(0), Slot(0));
                assert_eq!(wait(&mut queue), [0]);
            }
        }
        let shown = sectors(&queue.view(0), 0);
        torn += u32::from(shown.contains(&1) && shown.contains(&2));
        let before = queue.events();
        queue.push_flush(FileIndex(0), Slot(0));
        assert_eq!(wait(&mut queue), [0]);
        let trace = queue.take_trace();
        let mut replay = Replay::new(&trace, 512);
        let mut left = |position: usize, kind: CrashKind, survivors: Survivors| {
            replay.advance_to(position);
            sectors(&replay.crash(kind, &[], survivors, seed).0[0], 0)
        };
        assert_eq!(left(before, CrashKind::Engine, Survivors::None), shown, "not flushed");
        assert_eq!(left(before, CrashKind::Power, Survivors::All), shown, "not flushed, kept");
        for kind in [CrashKind::Engine, CrashKind::Power] {
            assert_eq!(left(trace.events.len(), kind, Survivors::None), shown, "{kind:?}, flushed");
        }
    }
    assert!(torn > 20, "{torn} were torn");
}

/// A bit that rots while others are written is rotten from there on, whatever a crash leaves; and heals when it is written over.
#[test]
fn a_rotten_bit_stays_until_it_is_written_over() {
    let mut queue = queue(6);
    write(&mut queue, 0, 0, 1);
    write(&mut queue, 1, 4096, 1);
    assert_eq!(wait(&mut queue).len(), 2);
    assert!(!queue.rot(0, 7, 1), "nothing there is durable");
    queue.push_flush(FileIndex(0), Slot(0));
    assert_eq!(wait(&mut queue), [0]);
    write(&mut queue, 1, 4096, 2);
    queue.submit_and_wait(0, Nanos::ZERO).expect("never fails");
    let before = queue.events();
    assert!(queue.rot(0, 7, 1));
    assert!(!queue.rot(0, 4100, 1), "a write lies over it");
    let byte = |image: &Image| {
        let mut byte = [0];
        image.read(7, &mut byte);
        byte[0]
    };
    assert_eq!(byte(&queue.view(0)), 3);
    assert_eq!(wait(&mut queue), [4096], "what was under way ends as ever");
    let rotten = queue.events();
    write(&mut queue, 0, 0, 1);
    assert_eq!(wait(&mut queue), [4096]);
    assert_eq!(byte(&queue.view(0)), 1);
    queue.push_flush(FileIndex(0), Slot(0));
    assert_eq!(wait(&mut queue), [0]);
    let trace = queue.take_trace();
    let mut replay = Replay::new(&trace, 512);
    let mut left = |position: usize| {
        replay.advance_to(position);
        let left = |kind: CrashKind| byte(&replay.crash(kind, &[], Survivors::None, 1).0[0]);
        [CrashKind::Power, CrashKind::Engine].map(left)
    };
    assert_eq!(left(before), [1, 1]);
    assert_eq!(left(rotten), [3, 3]);
    assert_eq!(left(trace.events.len()), [1, 1]);
}

/// A crash that is told what survives loses the other writes, over all disks, and nothing that it cannot lose.
#[test]
fn a_named_subset_survives_as_whole_writes() {
    let spec = PowerSpec {
        seed: 8,
        depth: 4,
        lanes: vec![LaneSpec { first_slot: 0, slots: 4, bytes: 4096 }],
        sector: 512,
        service: (Nanos(10), Nanos(1000)),
        record: true,
    };
    let mut queue = PowerQueue::new(&spec, vec![Image::new(1 << 20), Image::new(1 << 20)]);
    write_to(&mut queue, 0, (0, 0), 9);
    write_to(&mut queue, 1, (1, 4096), 9);
    assert_eq!(wait(&mut queue), [4096, 4096]);
    write_to(&mut queue, 2, (0, 8192), 9);
    write_to(&mut queue, 3, (1, 12288), 9);
    queue.submit_and_wait(0, Nanos::ZERO).expect("never fails");
    let trace = queue.take_trace();
    let mut replay = Replay::new(&trace, 512);
    replay.advance_to(trace.events.len());
    // In turn: the first disk's, as they were handed in, then the second's.
    let places = [(0, 0), (0, 8192), (1, 4096), (1, 12288)];
    let mut left = |kind: CrashKind, unplugged: &[u32], mask: u64| {
        let (images, choice) = replay.crash(kind, unplugged, Survivors::Exactly(mask), 1);
        assert!(choice.torn.is_empty());
        places.map(|(disk, offset)| sectors(&images[disk], offset)[0] == 9)
    };
    for mask in 0..16_u64 {
        let kept = [0, 1, 2, 3].map(|nth| mask >> nth & 1 == 1);
        assert_eq!(left(CrashKind::Power, &[], mask), kept, "{mask:b}");
    }
    for mask in 0..4_u64 {
        let [first, second] = [0, 1].map(|nth| mask >> nth & 1 == 1);
        assert_eq!(left(CrashKind::Engine, &[], mask), [true, first, true, second], "{mask:b}");
    }
    for mask in 0..8_u64 {
        let [first, second, third] = [0, 1, 2].map(|nth| mask >> nth & 1 == 1);
        let kept = [first, second, true, third];
        assert_eq!(left(CrashKind::Engine, &[0], mask), kept, "{mask:b}: the first lost its power");
    }
    let open =
        [(CrashKind::Power, vec![]), (CrashKind::Engine, vec![]), (CrashKind::Engine, vec![0])];
    assert_eq!(open.map(|(kind, unplugged)| replay.open(kind, &unplugged)), [4, 2, 3]);
}
