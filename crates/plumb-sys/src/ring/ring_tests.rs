use std::io::Write as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::drain::DRAIN_LIMIT;
use super::*;
use crate::arena::{LaneSpec, Place, RegionSpec};
use crate::memory::BufferPlacement;

fn arena(depth: u32) -> Arena {
    let lane = LaneSpec { first_slot: 0, slots: depth, bytes: 4096 };
    let region = RegionSpec { lanes: vec![lane] };
    Arena::new(depth, &[region], &[], BufferPlacement::System).expect("a little memory")
}

fn transfer(slot: u32) -> Transfer {
    Transfer { write: false, file: 0, slot, len: 4096, offset: 0, memory: Place::Lane(0) }
}

/// `None` (and a note) where there is no io_uring.
fn ring(test: &str, depth: u32, files: Vec<OwnedFd>, setup: RingSetup) -> Option<Ring> {
    match Ring::open(arena(depth), files, setup) {
        Ok(ring) => Some(ring),
        Err(error) => {
            println!("skipped {test}: no io_uring here: {error:?}");
            None
        }
    }
}

/// Slots completed by `count` operations, in order.
fn pop_all(ring: &mut Ring) -> Vec<u32> {
    ring.look();
    std::iter::from_fn(|| ring.pop().map(|finished| finished.slot)).collect()
}

#[test]
fn every_nop_completes_once() {
    for (defer_taskrun, taskrun_flag) in [(false, false), (true, false), (true, true)] {
        let setup = RingSetup { defer_taskrun, taskrun_flag, ..RingSetup::default() };
        let Some(mut ring) = ring("every_nop_completes_once", 8, vec![], setup) else { return };
        for _ in 0..100 {
            (0..8).for_each(|slot| ring.push_nop(&transfer(slot)));
            ring.submit_and_wait(8, Nanos::NEVER).expect("memory for 8 requests");
            let mut slots = pop_all(&mut ring);
            slots.sort_unstable();
            assert_eq!(slots, (0..8).collect::<Vec<_>>());
        }
    }
}

/// What makes an I/O cheap is asked for, and in force or told as refused: a ring that does without, and says nothing, is
/// a slower instrument.
#[test]
fn what_is_registered_is_in_force_or_told() {
    let test = "what_is_registered_is_in_force_or_told";
    let null = std::fs::File::open("/dev/null").expect("/dev/null").into();
    let setup = RingSetup { defer_taskrun: true, ..RingSetup::default() };
    let Some(mut ring) = ring(test, 6, vec![null], setup) else { return };
    // Where memory may not be locked it is refused, and told.
    let _ = ring.register_buffers();
    let asked = [
        "fixed_files",
        "registered_ring",
        "fixed_buffers",
        "no_sqarray",
        "single_issuer",
        "defer_taskrun",
    ];
    for name in asked {
        let refused = ring.dropped().iter().any(|(dropped, _)| *dropped == name);
        assert!(ring.flags().contains(&name) != refused, "{name}: {:?}", ring.flags());
    }
}

/// The kernel reads `ioprio` of each entry (linux/io_uring.h: bytes 2 and 3), so two files on one ring
/// have one each.
#[test]
fn files_on_one_ring_have_priorities_of_their_own() {
    let test = "files_on_one_ring_have_priorities_of_their_own";
    let null = || std::fs::File::open("/dev/null").expect("/dev/null").into();
    let files = vec![null(), null(), null()];
    let Some(mut ring) = ring(test, 6, files, RingSetup::default()) else { return };
    ring.set_priority(1, IoPriority::BestEffort(7));
    ring.set_priority(2, IoPriority::Idle);
    ring.set_priority(2, IoPriority::BestEffort(1));
    let reads = (0..3).map(|file| Transfer { file, ..transfer(file) });
    let writes = (3..6).map(|slot| Transfer { file: slot - 3, write: true, ..transfer(slot) });
    reads.chain(writes).for_each(|transfer| ring.push(&transfer));
    let priorities = (0..6).map(|place| {
        // SAFETY: the ring has room for six entries.
        let entry = unsafe { ring.shared.entries.add(place) };
        // SAFETY: valid and aligned, and just written.
        let entry = unsafe { entry.cast::<Entry>().read() };
        let bytes = entry.head.to_le_bytes();
        u16::from_le_bytes([bytes[2], bytes[3]])
    });
    let (normal, low, high) = (0, 2 << 13 | 7, 2 << 13 | 1);
    assert_eq!(priorities.collect::<Vec<_>>(), [normal, low, high, normal, low, high]);
    ring.submit_and_wait(6, Nanos::NEVER).expect("memory for 6 requests");
    assert_eq!(pop_all(&mut ring).len(), 6);
}

#[test]
fn what_finds_the_ring_full_waits_in_line() {
    let setup = RingSetup { entries_max: 4, ..RingSetup::default() };
    let Some(mut ring) = ring("what_finds_the_ring_full_waits_in_line", 18, vec![], setup) else {
        return;
    };
    for _ in 0..10 {
        (0..18).for_each(|slot| ring.push_nop(&transfer(slot)));
        ring.submit_and_wait(18, Nanos::NEVER).expect("memory for 18 requests");
        assert_eq!(pop_all(&mut ring).len(), 18);
    }
}

#[test]
fn a_wait_ends_with_its_timeout() {
    let Some(mut ring) = ring("a_wait_ends_with_its_timeout", 2, vec![], RingSetup::default())
    else {
        return;
    };
    let start = Instant::now();
    ring.submit_and_wait(1, Nanos::from_millis(30)).expect("a time-out is no error");
    assert!(start.elapsed() >= Duration::from_millis(30));
    ring.submit_and_wait(1, Nanos::NEVER).expect("nothing is in flight, so nothing to wait for");
    assert_eq!(ring.look(), 0);
}

#[test]
fn a_dropped_ring_cancels_what_would_never_end() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let files = vec![reader.into()];
    let test = "a_dropped_ring_cancels_what_would_never_end";
    let Some(mut ring) = ring(test, 4, files, RingSetup::default()) else { return };
    ring.push(&transfer(0));
    ring.push(&transfer(1));
    ring.submit_and_wait(0, Nanos::ZERO).expect("memory for 2 requests");
    ring.push(&transfer(2));
    let start = Instant::now();
    drop(ring);
    assert!(start.elapsed() < DRAIN_LIMIT);
    drop(writer);
}

#[test]
fn a_ring_waits_for_what_is_in_flight() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let (sender, receiver) = mpsc::channel();
    let test = "a_ring_waits_for_what_is_in_flight";
    let Some(mut ring) = ring(test, 1, vec![reader.into()], RingSetup::default()) else { return };
    let other = std::thread::spawn(move || {
        let () = receiver.recv().expect("the ring's thread says when");
        writer.write_all(b"plumb").expect("the reader is open");
    });
    ring.push(&transfer(0));
    ring.submit_and_wait(1, Nanos::from_millis(5)).expect("a time-out is no error");
    assert_eq!(ring.look(), 0);
    sender.send(()).expect("the other thread waits");
    ring.submit_and_wait(1, Nanos::NEVER).expect("nothing to submit");
    ring.look();
    assert_eq!(ring.pop(), Some(Finished { slot: 0, result: 5 }));
    assert_eq!(ring.buffer_mut(0, 0)[..5], *b"plumb");
    other.join().expect("it only writes");
}

/// Completions that wait for a call are seen by looks alone where the kernel says so, however many there are
/// (it posts some twenty in a call); without its word no look ever sees them.
#[test]
fn a_look_has_announced_completions_posted() {
    const DEPTH: u32 = 64;
    let test = "a_look_has_announced_completions_posted";
    for taskrun_flag in [true, false] {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let setup = RingSetup { defer_taskrun: true, taskrun_flag, ..RingSetup::default() };
        let Some(mut ring) = ring(test, DEPTH, vec![reader.into()], setup) else { return };
        if !ring.dropped().is_empty() {
            println!("skipped {test}: this kernel refuses {:?}", ring.dropped());
            return;
        }
        (0..DEPTH).for_each(|slot| ring.push(&transfer(slot)));
        ring.submit_and_wait(0, Nanos::ZERO).expect("memory for 64 requests");
        assert_eq!(ring.look(), 0);
        // The first read takes what is written; the end of the pipe ends the others.
        writer.write_all(b"plumb").expect("the reader is open");
        drop(writer);
        let expected = if taskrun_flag { DEPTH } else { 0 };
        let patience = if taskrun_flag { 10_000 } else { 50 };
        let end = Instant::now() + Duration::from_millis(patience);
        let mut found = 0;
        while (found < expected || expected == 0) && Instant::now() < end {
            ring.look();
            while ring.pop().is_some() {
                found += 1;
            }
        }
        assert_eq!(found, expected, "flag {taskrun_flag}");
    }
}

/// A call that only submits has deferred completions posted while looks lately found some, and not before.
#[test]
fn calls_that_only_submit_ask_where_looks_had_to() {
    let test = "calls_that_only_submit_ask_where_looks_had_to";
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let setup = RingSetup { defer_taskrun: true, taskrun_flag: true, ..RingSetup::default() };
    let Some(mut ring) = ring(test, 3, vec![reader.into()], setup) else { return };
    if !ring.dropped().is_empty() {
        println!("skipped {test}: this kernel refuses {:?}", ring.dropped());
        return;
    }
    let until_unposted = |ring: &Ring| {
        let end = Instant::now() + Duration::from_secs(10);
        while !ring.shared.has_unposted() && Instant::now() < end {}
        assert!(ring.shared.has_unposted(), "the read is over");
    };
    ring.push(&transfer(0));
    ring.submit_and_wait(0, Nanos::ZERO).expect("memory for a request");
    writer.write_all(b"1").expect("the reader is open");
    until_unposted(&ring);
    ring.push_nop(&transfer(1));
    ring.submit_and_wait(0, Nanos::ZERO).expect("memory for a request");
    assert!(ring.shared.has_unposted(), "nobody asked for it yet");
    assert_eq!(pop_all(&mut ring), [1, 0]);
    // That look had to ask: the next call does by itself.
    ring.push(&transfer(0));
    ring.submit_and_wait(0, Nanos::ZERO).expect("memory for a request");
    writer.write_all(b"2").expect("the reader is open");
    until_unposted(&ring);
    ring.push_nop(&transfer(1));
    ring.submit_and_wait(0, Nanos::ZERO).expect("memory for a request");
    assert!(!ring.shared.has_unposted(), "it was asked for");
    assert_eq!(pop_all(&mut ring).len(), 2);
    // Where looks find nothing for a while, it is given up.
    for _ in 0..ASKS {
        ring.push_nop(&transfer(2));
        ring.submit_and_wait(0, Nanos::ZERO).expect("memory for a request");
        assert_eq!(pop_all(&mut ring), [2]);
    }
    assert_eq!(ring.asks, 0);
}

#[test]
fn registered_buffers_are_used() {
    let file = rustix::fs::memfd_create("registered", rustix::fs::MemfdFlags::CLOEXEC);
    let file = file.expect("a file in memory");
    assert_eq!(rustix::io::write(&file, &[7; 4096]), Ok(4096));
    let files = vec![file];
    let Some(mut ring) = ring("registered_buffers_are_used", 2, files, RingSetup::default()) else {
        return;
    };
    if let Err(errno) = ring.register_buffers() {
        println!("skipped registered_buffers_are_used: {errno}");
        return;
    }
    assert!(ring.flags().contains(&"fixed_buffers"));
    ring.push(&transfer(1));
    ring.submit_and_wait(1, Nanos::NEVER).expect("memory for a request");
    ring.look();
    assert_eq!(ring.pop(), Some(Finished { slot: 1, result: 4096 }));
    assert_eq!(ring.buffer_mut(1, 0), [7; 4096]);
}
