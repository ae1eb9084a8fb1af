//! One body of tests that every [`IoQueue`] passes, for whoever writes one.
//!
//! [`check`] panics at the first promise of the trait that is not kept, and names it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64};

use crate::clock::Clock;
use crate::{
    BufferPlacement, Done, FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, Opener,
    QueueMode, QueueSpec, QueueUse, RegionSpec, Slot, SourceIndex, TargetFile, WriteSource,
};

/// Bytes per buffer and per file block.
const BLOCK: u32 = 4096;
const BLOCK_64: u64 = 4096;
/// Where reads go, and where writes come from.
const READS: Memory = Memory::Lane(LaneIndex(0));
const WRITES: Memory = Memory::Lane(LaneIndex(1));

/// What is checked, and what may be expected of it.
pub struct Subject<'a, O, C> {
    /// For messages.
    pub name: &'a str,
    /// Opens the queues.
    pub opener: &'a O,
    /// The clock by which timeouts pass.
    pub clock: &'a C,
    /// Makes the file of that index: zeroed, of that many bytes.
    pub file: &'a dyn Fn(u32, FileWish) -> TargetFile,
    /// What [`crate::QueueFacts::engine`] says.
    pub engine: &'a str,
    /// What it is a queue to.
    pub target: TargetKind,
    /// As in [`QueueSpec`].
    pub mode: QueueMode,
    /// As in [`QueueSpec`].
    pub placement: BufferPlacement,
    /// As in [`QueueSpec`].
    pub register_buffers: bool,
    /// As in [`QueueSpec`].
    pub measures_latency: bool,
}

/// A file that a case needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileWish {
    /// Its length.
    pub size: u64,
    /// Whether it can be written to.
    pub writable: bool,
}

/// What may be expected of the target behind a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// None: I/Os succeed and move nothing.
    None,
    /// It holds data, ends somewhere, and refuses what is not allowed.
    Data,
}

/// Runs every case.
///
/// # Panics
/// When the queue breaks a promise of [`IoQueue`].
pub fn check<O: Opener, C: Clock>(subject: &Subject<'_, O, C>) {
    for depth in [1, 2, 8, 33] {
        subject.case("every push completes once", depth, every_push_completes_once);
        subject.case("pop yields what look counted", depth, pop_yields_what_look_counted);
        subject.case("a slot in flight is left alone", depth, a_slot_in_flight_is_left_alone);
        subject.case("what does not exist is refused", depth, what_does_not_exist_is_refused);
        subject.case(
            "a read is as long as asked",
            depth,
            a_transfer_may_be_shorter_than_its_buffer,
        );
        subject.case("buffers keep what is put in", depth, buffers_keep_what_is_put_in);
        subject.case("I/Os in flight survive the drop", depth, leave_in_flight);
        subject.case("facts", depth, |queue| subject.facts(queue));
        subject.case("waits", depth, |queue| subject.waits(queue));
        if subject.target == TargetKind::Data {
            subject.case("reads return what was written", depth, reads_return_what_was_written);
            subject.case("sources are written", depth, sources_are_written);
            subject.case("the end of a file shortens", depth, the_end_of_a_file_shortens);
            subject.case("a failed I/O is a completion", depth, a_failed_io_is_a_completion);
        }
    }
}

/// Blocks in the files of every case; the last one is only an eighth.
const BLOCKS: u64 = 64;
const SIZE: u64 = (BLOCKS - 1) * BLOCK_64 + BLOCK_64 / 8;
/// Files of every case: two to write to, one to read only.
const FILES: u32 = 3;
const READ_ONLY: FileIndex = FileIndex(2);

impl<O: Opener, C: Clock> Subject<'_, O, C> {
    /// Opens a queue of `depth` and runs `body` on it.
    fn case(&self, what: &str, depth: u32, body: impl FnOnce(&mut Bench<'_>)) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let opened = self.opener.open(self.spec(depth), Run { depth, body });
            opened.unwrap_or_else(|error| panic!("cannot be opened: {error:?}"));
        }));
        assert!(outcome.is_ok(), "{} at depth {depth}: {what}: see the panic above", self.name);
    }

    fn spec(&self, depth: u32) -> QueueSpec {
        let lane = LaneSpec { first_slot: 0, slots: depth, bytes: BLOCK };
        let file = |nth| {
            let writable = FileIndex(nth) != READ_ONLY;
            (self.file)(nth, FileWish { size: SIZE, writable })
        };
        let source = WriteSource::new(4 * BLOCK_64, |bytes| {
            for (block, bytes) in (0..).zip(bytes.chunks_mut(512)) {
                bytes.fill(block);
            }
        });
        QueueSpec {
            depth,
            files: (0..FILES).map(file).collect(),
            regions: vec![RegionSpec { lanes: vec![lane, lane] }],
            sources: vec![Arc::new(source.expect("a few pages"))],
            placement: self.placement,
            mode: self.mode,
            register_buffers: self.register_buffers,
            measures_latency: self.measures_latency,
        }
    }

    fn facts(&self, bench: &mut Bench<'_>) {
        let facts = bench.queue.facts();
        assert_eq!(facts.engine, self.engine, "{facts:?}");
        assert_eq!(facts.no_target, self.target == TargetKind::None, "{facts:?}");
        let separation = match self.placement {
            BufferPlacement::Separated(alignment) => alignment,
            BufferPlacement::System | BufferPlacement::LargePages => 0,
        };
        assert_eq!(facts.buffer_separation, separation, "{facts:?}");
        if separation > 0 {
            let buffer = bench.queue.buffer_mut(Slot(0), LaneIndex(0));
            assert!(to_u64(buffer.as_ptr().addr()).is_multiple_of(separation));
        }
    }

    fn waits(&self, bench: &mut Bench<'_>) {
        let queue = &mut *bench.queue;
        // Nothing in flight: a wait with a limit lasts as long, one without ends.
        let start = self.clock.now();
        queue.submit_and_wait(1, Nanos::from_millis(3)).expect("a time-out is no error");
        let passed = self.clock.now() - start;
        assert!(passed >= Nanos::from_millis(3), "waited {passed:?}");
        queue.submit_and_wait(1, Nanos::NEVER).expect("nothing to submit");
        queue.submit_and_wait(0, Nanos::ZERO).expect("nothing to submit");
        assert_eq!(queue.look(), 0);
        // What is there already counts.
        bench.push(0, OpKind::Read, 0);
        bench.wait(1);
        let start = self.clock.now();
        bench.queue.submit_and_wait(1, Nanos::from_secs(3600)).expect("nothing to submit");
        assert!(self.clock.now() - start < Nanos::from_secs(1800));
        // More than is in flight, for a while.
        if bench.depth == 1 {
            return;
        }
        let start = self.clock.now();
        bench.queue.submit_and_wait(2, Nanos::from_millis(3)).expect("a time-out is no error");
        assert!(self.clock.now() - start >= Nanos::from_millis(3));
        assert_eq!(bench.queue.look(), 1);
    }
}

/// Hands a queue to a closure, whatever its type.
struct Run<F> {
    depth: u32,
    body: F,
}

impl<F: FnOnce(&mut Bench<'_>)> QueueUse for Run<F> {
    type Output = ();

    fn with<Q: IoQueue>(self, mut queue: Q) {
        (self.body)(&mut Bench { queue: &mut queue, depth: self.depth });
    }
}

/// A queue under test.
struct Bench<'a> {
    queue: &'a mut dyn IoQueue,
    depth: u32,
}

impl Bench<'_> {
    /// Pushes a block of file 0.
    fn push(&mut self, slot: u32, kind: OpKind, block: u64) {
        self.queue.push(op(slot, kind, block));
    }

    /// Waits for `wanted` completions to be there, and counts them.
    fn wait(&mut self, wanted: u32) {
        // Signals may end a wait early; not for ever.
        for _ in 0..1000 {
            self.queue.submit_and_wait(wanted, Nanos::NEVER).expect("submissions are taken");
            if self.queue.look() >= wanted {
                break;
            }
        }
        assert_eq!(self.queue.look(), wanted, "completions after a wait without limit");
    }

    /// Waits for `wanted` completions and pops them.
    fn finish(&mut self, wanted: u32) -> Vec<Done> {
        self.wait(wanted);
        let done: Vec<_> = (0..wanted).map_while(|_| self.queue.pop()).collect();
        assert_eq!(done.len(), index(wanted), "what look counted can be popped");
        assert_eq!(self.queue.pop(), None);
        done
    }

    /// Performs one I/O.
    fn perform(&mut self, op: Op) -> i32 {
        self.queue.push(op);
        let done = self.finish(1);
        assert_eq!(done[0].slot, op.slot);
        done[0].result
    }
}

fn op(slot: u32, kind: OpKind, block: u64) -> Op {
    let memory = match kind {
        OpKind::Read => READS,
        OpKind::Write => WRITES,
    };
    let offset = block * BLOCK_64;
    Op { kind, file: FileIndex(0), slot: Slot(slot), len: BLOCK, offset, memory }
}

fn panics(what: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(what)).is_err()
}

fn every_push_completes_once(bench: &mut Bench<'_>) {
    let depth = bench.depth;
    for round in 0..50 {
        // A different number in flight every round.
        let count = round * 7 % depth + 1;
        for slot in 0..count {
            let kind = if (slot + round) % 3 == 0 { OpKind::Write } else { OpKind::Read };
            bench.push(slot, kind, u64::from(slot));
        }
        let mut done = bench.finish(count);
        done.sort_by_key(|done| done.slot);
        for (slot, done) in (0..count).zip(done) {
            assert_eq!(done.slot, Slot(slot));
            assert_eq!(done.outcome(), Ok(BLOCK));
        }
    }
    assert_eq!(bench.queue.look(), 0);
}

fn pop_yields_what_look_counted(bench: &mut Bench<'_>) {
    let depth = bench.depth;
    assert_eq!(bench.queue.pop(), None, "before any look");
    (0..depth).for_each(|slot| bench.push(slot, OpKind::Read, u64::from(slot)));
    bench.wait(depth);
    let first = bench.queue.pop().expect("one was counted");
    assert_eq!(bench.queue.look(), depth - 1, "what was not popped is counted again");
    // The slot that is idle again goes round once more; the last look did not count it.
    bench.push(first.slot.0, OpKind::Read, 0);
    bench.queue.submit_and_wait(depth, Nanos::NEVER).expect("submissions are taken");
    let popped = std::iter::from_fn(|| bench.queue.pop()).count();
    assert_eq!(popped, index(depth - 1), "pop yields what the look counted, no more");
    let done = bench.finish(1);
    assert_eq!(done[0].slot, first.slot);
}

fn a_slot_in_flight_is_left_alone(bench: &mut Bench<'_>) {
    let last = bench.depth - 1;
    let write = op(last, OpKind::Write, 0);
    bench.queue.push(write);
    let queue = &mut *bench.queue;
    assert!(panics(|| queue.push(write)), "a second push");
    assert!(panics(|| queue.buffer_mut(Slot(last), LaneIndex(0)).fill(0)), "its read buffer");
    assert!(panics(|| queue.buffer_mut(Slot(last), LaneIndex(1)).fill(0)), "its write buffer");
    bench.wait(1);
    let queue = &mut *bench.queue;
    assert!(panics(|| queue.push(write)), "complete, but not popped");
    assert!(panics(|| queue.buffer_mut(Slot(last), LaneIndex(0)).fill(0)));
    assert!(queue.pop().is_some());
    queue.buffer_mut(Slot(last), LaneIndex(0)).fill(0);
    assert_eq!(bench.perform(write), BLOCK.cast_signed());
}

fn what_does_not_exist_is_refused(bench: &mut Bench<'_>) {
    let good = op(0, OpKind::Write, 0);
    let no_target = bench.queue.facts().no_target;
    let source = |source, offset| Memory::Source { source: SourceIndex(source), offset };
    let bad = [
        Op { slot: Slot(bench.depth), ..good },
        Op { slot: Slot(u32::MAX), ..good },
        Op { len: BLOCK + 1, ..good },
        Op { memory: Memory::Lane(LaneIndex(2)), ..good },
        Op { memory: source(1, 0), ..good },
        Op { memory: source(0, 3 * BLOCK_64 + 1), ..good },
        Op { memory: source(0, u64::MAX), ..good },
        Op { kind: OpKind::Read, memory: source(0, 0), ..good },
        Op { file: FileIndex(FILES), ..good },
    ];
    for bad in bad {
        let only_file = bad.file != good.file;
        assert!(panics(|| bench.queue.push(bad)) || only_file && no_target, "{bad:?}");
        if only_file && no_target {
            bench.finish(1);
        }
    }
    assert!(panics(|| bench.queue.buffer_mut(Slot(0), LaneIndex(2)).fill(0)));
    assert!(panics(|| bench.queue.buffer_mut(Slot(bench.depth), LaneIndex(0)).fill(0)));
    assert_eq!(bench.perform(good), BLOCK.cast_signed(), "a refused push leaves no trace");
}

fn a_transfer_may_be_shorter_than_its_buffer(bench: &mut Bench<'_>) {
    for kind in [OpKind::Write, OpKind::Read] {
        let short = Op { len: 512, ..op(0, kind, 1) };
        assert_eq!(bench.perform(short), 512);
    }
}

fn buffers_keep_what_is_put_in(bench: &mut Bench<'_>) {
    let buffers = (0..bench.depth).flat_map(|slot| [(slot, 0), (slot, 1)]);
    for (mark, (slot, lane)) in (1_u64..).zip(buffers.clone()) {
        let buffer = bench.queue.buffer_mut(Slot(slot), LaneIndex(lane));
        assert_eq!(buffer.len(), index(BLOCK));
        assert!(buffer.iter().all(|&byte| byte == 0), "a fresh buffer is zeroed");
        tag(buffer, mark);
    }
    for (mark, (slot, lane)) in (1_u64..).zip(buffers) {
        assert_tag(bench.queue.buffer_mut(Slot(slot), LaneIndex(lane)), mark);
    }
}

fn leave_in_flight(bench: &mut Bench<'_>) {
    let depth = bench.depth;
    (0..depth).for_each(|slot| bench.push(slot, OpKind::Read, u64::from(slot)));
    bench.queue.submit_and_wait(0, Nanos::ZERO).expect("submissions are taken");
    // One is in line, not submitted, if one came back already.
    if bench.queue.look() > 0
        && let Some(done) = bench.queue.pop()
    {
        bench.push(done.slot.0, OpKind::Write, 0);
    }
}

fn reads_return_what_was_written(bench: &mut Bench<'_>) {
    let depth = bench.depth;
    let blocks: Vec<u64> = (0..BLOCKS - 1).collect();
    for file in [0, 1] {
        let mark = |block: u64| block * 1000 + u64::from(file) + 7;
        for batch in blocks.chunks(index(depth)) {
            for (slot, &block) in (0..).zip(batch) {
                tag(bench.queue.buffer_mut(Slot(slot), LaneIndex(1)), mark(block));
                let write = op(slot, OpKind::Write, block);
                bench.queue.push(Op { file: FileIndex(file), ..write });
            }
            let count = plumb_units::convert::to_u32(batch.len());
            assert!(bench.finish(count).iter().all(|done| done.outcome() == Ok(BLOCK)));
        }
    }
    // Back to front, both files in flight at once where the depth allows.
    let backwards: Vec<u64> = blocks.into_iter().rev().collect();
    for batch in backwards.chunks(index(depth)) {
        let file =
            |slot: u32, block: u64| if (u64::from(slot) + block).is_multiple_of(2) { 0 } else { 1 };
        for (slot, &block) in (0..).zip(batch) {
            bench.queue.buffer_mut(Slot(slot), LaneIndex(0)).fill(0xee);
            let read = op(slot, OpKind::Read, block);
            bench.queue.push(Op { file: FileIndex(file(slot, block)), ..read });
        }
        let count = plumb_units::convert::to_u32(batch.len());
        assert!(bench.finish(count).iter().all(|done| done.outcome() == Ok(BLOCK)));
        for (slot, &block) in (0..).zip(batch) {
            let buffer = bench.queue.buffer_mut(Slot(slot), LaneIndex(0));
            assert_tag(buffer, block * 1000 + u64::from(file(slot, block)) + 7);
        }
    }
}

fn sources_are_written(bench: &mut Bench<'_>) {
    let last = bench.depth - 1;
    for (block, offset) in [(3, 0), (4, 512), (5, 3 * BLOCK_64)] {
        let memory = Memory::Source { source: SourceIndex(0), offset };
        let write = Op { memory, ..op(last, OpKind::Write, block) };
        assert_eq!(bench.perform(write), BLOCK.cast_signed());
        assert_eq!(bench.perform(op(last, OpKind::Read, block)), BLOCK.cast_signed());
        let buffer = bench.queue.buffer_mut(Slot(last), LaneIndex(0));
        for (nth, sector) in (offset / 512..).zip(buffer.chunks(512)) {
            assert!(sector.iter().all(|&byte| u64::from(byte) == nth), "sector {nth}");
        }
    }
}

fn the_end_of_a_file_shortens(bench: &mut Bench<'_>) {
    assert_eq!(bench.perform(op(0, OpKind::Read, BLOCKS - 1)), BLOCK.cast_signed() / 8);
    assert_eq!(bench.perform(op(0, OpKind::Read, BLOCKS)), 0);
    assert_eq!(bench.perform(op(0, OpKind::Read, BLOCKS + 1000)), 0);
}

fn a_failed_io_is_a_completion(bench: &mut Bench<'_>) {
    let depth = bench.depth;
    // Among I/Os that succeed, before and after.
    for slot in 0..depth {
        let write = op(slot, OpKind::Write, u64::from(slot));
        let file = if slot % 2 == 0 { READ_ONLY } else { write.file };
        bench.queue.push(Op { file, ..write });
    }
    for done in bench.finish(depth) {
        let refused = done.slot.0 % 2 == 0;
        let expected =
            if refused { Err(crate::Errno::from(rustix::io::Errno::BADF)) } else { Ok(BLOCK) };
        assert_eq!(done.outcome(), expected, "{done:?}");
    }
}

/// Fills a buffer with words made of `mark` and their place.
fn tag(buffer: &mut [u8], mark: u64) {
    for (nth, word) in (0_u64..).zip(buffer.chunks_exact_mut(8)) {
        word.copy_from_slice(&(mark << 16 | nth).to_le_bytes());
    }
}

fn assert_tag(buffer: &[u8], mark: u64) {
    for (nth, word) in (0_u64..).zip(buffer.chunks_exact(8)) {
        assert_eq!(word, (mark << 16 | nth).to_le_bytes(), "word {nth} of block {mark}");
    }
}
