//! Queues opened and kept busy.

use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::{
    FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, OpenQueueError, Opener, QueueMode,
    QueueSpec, QueueUse, RegionSpec, Slot, TargetFile,
};
use plumb_units::Nanos;

pub(crate) const BLOCK: u32 = 4096;

/// Opens a queue and hands it to `body`, whatever its type.
pub(crate) fn with<R>(
    opener: &impl Opener,
    spec: QueueSpec,
    body: impl FnOnce(&mut dyn IoQueue) -> R,
) -> Result<R, OpenQueueError> {
    struct Body<F>(F);
    impl<R, F: FnOnce(&mut dyn IoQueue) -> R> QueueUse for Body<F> {
        type Output = R;
        fn with<Q: IoQueue>(self, mut queue: Q) -> R {
            (self.0)(&mut queue)
        }
    }
    opener.open(spec, Body(body))
}

pub(crate) fn ladder(choice: Choice) -> Ladder {
    Ladder::new(choice, LadderOptions::default())
}

/// Why that engine cannot be had here, as `spec` wants it.
pub(crate) fn obstacle(engine: Choice, spec: QueueSpec) -> Option<OpenQueueError> {
    with(&ladder(engine), spec, |_| ()).err()
}

/// Prints that `test` is skipped on that engine where it cannot be had.
pub(crate) fn is_skipped(test: &str, engine: Choice, mode: QueueMode) -> bool {
    let obstacle = obstacle(engine, spec(1, mode, vec![]));
    if let Some(why) = &obstacle {
        println!("skipped {test} on {engine}: {why}");
    }
    obstacle.is_some()
}

/// Read buffers in lane 0, write buffers in lane 1.
pub(crate) fn spec(depth: u32, mode: QueueMode, files: Vec<TargetFile>) -> QueueSpec {
    let lane = LaneSpec { first_slot: 0, slots: depth, bytes: BLOCK };
    let regions = vec![RegionSpec { lanes: vec![lane, lane] }];
    QueueSpec { depth, files, regions, mode, measures_latency: true, ..QueueSpec::default() }
}

/// Reads and writes block `nth` of file 0 in turn.
pub(crate) fn op(slot: u32, nth: u64) -> Op {
    let (kind, lane) = if nth.is_multiple_of(2) { (OpKind::Read, 0) } else { (OpKind::Write, 1) };
    let (file, memory) = (FileIndex(0), Memory::Lane(LaneIndex(lane)));
    let offset = nth % 16 * u64::from(BLOCK);
    Op { kind, file, slot: Slot(slot), len: BLOCK, offset, memory }
}

/// Keeps `depth` I/Os in flight until `total` were issued, in batches of eight; panics if one fails.
pub(crate) fn keep_busy(queue: &mut dyn IoQueue, depth: u32, total: u64) {
    let mut issued = 0;
    let mut in_flight = 0;
    for slot in 0..depth {
        queue.push(op(slot, issued));
        issued += 1;
        in_flight += 1;
    }
    while in_flight > 0 {
        queue.submit_and_wait(in_flight.min(8), Nanos::NEVER).expect("submissions are taken");
        queue.look();
        while let Some(done) = queue.pop() {
            assert_eq!(done.outcome(), Ok(BLOCK));
            if issued < total {
                queue.push(op(done.slot.0, issued));
                issued += 1;
            } else {
                in_flight -= 1;
            }
        }
    }
}
