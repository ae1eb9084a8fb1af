//! Waits that end before their time and without a completion, as by signals and bells, and disks that do not
//! flush: the engine goes on, or says why not.

use std::collections::VecDeque;

use plumb_io::engine::MemoryQueue;
use plumb_io::{Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, Op, QueueFacts, Slot};
use plumb_tier::{Engine, Request, RequestKind, create};
use plumb_units::Nanos;

use crate::disks::{self, MIB};

/// Disks in memory.
#[derive(Debug)]
struct Odd {
    inner: MemoryQueue,
    line: Vec<Waiting>,
    waits: u32,
    /// Of so many waits only the last one lasts.
    early: u32,
    /// Flushes of the first disk fail.
    unflushable: bool,
    failed: VecDeque<Done>,
}

impl Odd {
    fn new(disks: u32, early: u32) -> Self {
        let (inner, line) = (disks::queue(disks), Vec::new());
        Self { inner, line, waits: 0, early, unflushable: false, failed: VecDeque::new() }
    }
}

#[derive(Debug)]
enum Waiting {
    Io(Op),
    Flush(FileIndex, Slot),
}

impl IoQueue for Odd {
    fn push(&mut self, op: Op) {
        self.line.push(Waiting::Io(op));
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.waits += 1;
        if !self.waits.is_multiple_of(self.early) {
            return Ok(());
        }
        for waiting in self.line.drain(..) {
            match waiting {
                Waiting::Io(op) => self.inner.push(op),
                Waiting::Flush(file, slot) if self.unflushable && file == FileIndex(0) => {
                    self.failed.push_back(Done { slot, result: -5 });
                }
                Waiting::Flush(file, slot) => self.inner.push_flush(file, slot),
            }
        }
        self.inner.submit_and_wait(wanted, timeout)
    }

    fn look(&mut self) -> u32 {
        self.inner.look() + u32::try_from(self.failed.len()).expect("few")
    }

    fn pop(&mut self) -> Option<Done> {
        self.failed.pop_front().or_else(|| self.inner.pop())
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.inner.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        self.inner.facts()
    }
}

impl FlushQueue for Odd {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        self.line.push(Waiting::Flush(file, slot));
    }
}

/// Lets the engine work until so many requests are answered.
fn answers(engine: &mut Engine<Odd>, now: &mut Nanos, count: usize) -> Vec<Result<(), Errno>> {
    let mut answers = Vec::new();
    for _ in 0..10_000 {
        *now += Nanos::from_millis(1);
        engine.poll(*now, Nanos::ZERO);
        answers.extend(std::iter::from_fn(|| engine.pop()).map(|answer| answer.1));
        if answers.len() == count {
            return answers;
        }
    }
    panic!("of {count} requests {} were answered; halted: {:?}", answers.len(), engine.halted());
}

fn started(mut queue: Odd, disks: u32, vdisks: Vec<plumb_tier::NewVirtualDisk>) -> Engine<Odd> {
    let plan = disks::plan(disks);
    create(&mut queue, plan, &disks::pool(disks, vdisks), 1).expect("it fits");
    Engine::start(queue, plan, 4, 4096, 2).expect("a new pool starts")
}

#[test]
fn a_wait_that_ends_early_fails_no_disk() {
    let vdisks = vec![disks::vdisk("one", 1, 2 * MIB), disks::vdisk("two", 2, MIB)];
    let mut engine = started(Odd::new(2, 3), 2, vdisks);
    let mut now = Nanos::ZERO;
    for turn in 0..20_u32 {
        for client in 0..4 {
            let write = RequestKind::Write { fua: false };
            let kind = if client == 3 { RequestKind::Flush } else { write };
            let offset = 4096 * u64::from(turn * 4 + client);
            engine.submit(client, Request { kind, vdisk: client % 2, offset, len: 4096 });
        }
        engine.checkpoint();
        engine.scan();
        assert_eq!(answers(&mut engine, &mut now, 4), [Ok(()); 4], "turn {turn}");
    }
    let counters = engine.counters();
    assert_eq!((engine.halted(), counters.disks_lost), (None, 0));
    assert!(counters.checkpoints >= 10, "it stood still and waited: {counters:?}");
    engine.shut_down().expect("it ends cleanly");
}

#[test]
fn a_full_journal_without_checkpoints_ends_in_a_halt_that_says_why() {
    let columns = disks::vdisk("one", 1, 8 * MIB);
    let mut engine =
        started(Odd::new(2, 1), 2, vec![plumb_tier::NewVirtualDisk { columns: 2, ..columns }]);
    let mut now = Nanos::ZERO;
    engine.queue_mut().unflushable = true;
    let mut outcomes = Vec::new();
    for nth in 0..2000_u32 {
        let kind = if nth == 2 { RequestKind::Flush } else { RequestKind::Write { fua: false } };
        let offset = 4096 * u64::from(nth % 2048) * 17 % (8 * MIB);
        engine.submit(0, Request { kind, vdisk: 0, offset, len: 4096 });
        outcomes.extend(answers(&mut engine, &mut now, 1));
        if engine.halted().is_some() {
            break;
        }
    }
    assert!(outcomes[..2].iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(outcomes[2], Err(Errno(5)), "the last copy could not be flushed");
    assert!(outcomes.iter().filter(|outcome| outcome.is_ok()).count() > 100, "{outcomes:?}");
    assert_eq!(engine.halted(), Some(plumb_tier::Halt::MetadataFull));
}
