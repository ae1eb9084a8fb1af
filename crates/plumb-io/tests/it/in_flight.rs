//! The whole depth is really in flight.

use std::io::Write;

use plumb_io::engine::Choice;
use plumb_io::{FileIndex, LaneIndex, Memory, Op, OpKind, QueueMode, Slot, TargetFile};
use plumb_units::Nanos;

use crate::drive::{ladder, spec, with};

const DEPTH: u32 = 16;

/// One pipe per slot, read by all slots at once and then filled from the last to the first: a queue
/// that held one read back would wait for it for ever.
#[test]
fn a_ring_has_its_depth_in_flight() {
    let pipes = (0..DEPTH).map(|_| std::io::pipe().expect("a pipe"));
    let (readers, mut writers): (Vec<_>, Vec<_>) = pipes.unzip();
    let file = |reader: std::io::PipeReader| {
        let (path, size, mapping) = ("pipe".into(), 0, None);
        TargetFile { descriptor: reader.into(), path, size, priority: None, mapping }
    };
    let files: Vec<_> = readers.into_iter().map(file).collect();
    for mode in [QueueMode::Asynchronous, QueueMode::Ring] {
        let clone = |file: &TargetFile| {
            let descriptor = file.descriptor.try_clone().expect("a descriptor");
            TargetFile {
                descriptor,
                path: file.path.clone(),
                size: 0,
                priority: None,
                mapping: None,
            }
        };
        let spec = spec(DEPTH, mode, files.iter().map(clone).collect());
        let opened = with(&ladder(Choice::Uring), spec, |queue| {
            for slot in 0..DEPTH {
                let (file, memory) = (FileIndex(slot), Memory::Lane(LaneIndex(0)));
                let slot = Slot(slot);
                queue.push(Op { kind: OpKind::Read, file, slot, len: 8, offset: 0, memory });
            }
            queue.submit_and_wait(0, Nanos::ZERO).expect("submissions are taken");
            assert_eq!(queue.look(), 0);
            for (slot, writer) in (0..DEPTH).zip(&mut writers).rev() {
                writer.write_all(&[7; 8]).expect("the reader is open");
                queue.submit_and_wait(1, Nanos::from_secs(60)).expect("nothing to submit");
                assert_eq!(queue.look(), 1, "slot {slot}");
                let done = queue.pop().expect("one was counted");
                assert_eq!((done.slot, done.outcome()), (Slot(slot), Ok(8)));
            }
        });
        if let Err(error) = opened {
            println!("skipped a_ring_has_its_depth_in_flight: {error}");
            return;
        }
    }
}

/// A queue that is dropped cancels reads that would never end, and frees the descriptor.
#[test]
fn a_dropped_queue_does_not_wait_for_what_never_comes() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let (path, mapping) = ("pipe".into(), None);
    let file = TargetFile { descriptor: reader.into(), path, size: 0, priority: None, mapping };
    let spec = spec(2, QueueMode::Asynchronous, vec![file]);
    let opened = with(&ladder(Choice::Uring), spec, |queue| {
        let (kind, memory) = (OpKind::Read, Memory::Lane(LaneIndex(0)));
        for slot in [Slot(0), Slot(1)] {
            queue.push(Op { kind, file: FileIndex(0), slot, len: 8, offset: 0, memory });
        }
        queue.submit_and_wait(0, Nanos::ZERO).expect("submissions are taken");
    });
    match opened {
        // Nobody reads any more, at once or when the kernel has let go of the ring.
        Ok(()) => while writer.write_all(&[0; 4096]).is_ok() {},
        Err(error) => {
            println!("skipped a_dropped_queue_does_not_wait_for_what_never_comes: {error}");
        }
    }
}
