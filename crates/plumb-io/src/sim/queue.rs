//! The queue to a simulated disk.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_sys::arena::Arena;
use plumb_sys::completions::{Completions, Finished, moved};
use plumb_units::Nanos;
use plumb_units::convert::index;
use rustix::fs::{OFlags, fcntl_getfl};

use super::device::{self, Content, DiskSpec, Files, Server, SharedBytes};
use super::faults::{Fate, Faults};
use crate::clock::{Clock, ManualClock};
use crate::engine::{arena, facts};
use crate::{
    Done, Errno, IoQueue, LaneIndex, Memory, Op, OpKind, OpenQueueError, Opener, QueueFacts,
    QueueSpec, QueueUse, Slot,
};

/// Opens queues to simulated disks. Descriptors are not used, but for one thing: whether they are open
/// for writing.
///
/// The queues share the clock and, by path, the content of the files; the n-th queue draws from the
/// n-th sequence of the seed. What one thread does is the same in every run; several threads that move
/// one clock race as threads do.
#[derive(Debug)]
pub struct SimOpener {
    spec: DiskSpec,
    clock: ManualClock,
    files: Files,
    opened: AtomicU64,
}

impl SimOpener {
    /// Disks of that kind, under `clock`.
    #[must_use]
    pub fn new(spec: DiskSpec, clock: ManualClock) -> Self {
        Self { spec, clock, files: Files::default(), opened: AtomicU64::new(0) }
    }
}

impl Opener for SimOpener {
    fn open<U: QueueUse>(&self, spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError> {
        let nth = self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(user.with(SimQueue::open(&spec, &self.spec, nth, &self.clock, &self.files)?))
    }
}

/// A queue to a simulated disk: I/Os begin when they are submitted, and finish when the clock has come
/// to their time.
#[derive(Debug)]
pub struct SimQueue {
    clock: ManualClock,
    arena: Arena,
    files: Vec<SimFile>,
    server: Server,
    faults: Faults,
    /// Pushed and not submitted.
    line: Vec<Op>,
    /// Being served, by the time they finish; then by number, so that equal times keep their order.
    serving: BinaryHeap<Reverse<Serving>>,
    done: Completions,
    submitted: u64,
}

#[derive(Debug)]
struct SimFile {
    size: u64,
    writable: bool,
    readable: bool,
    content: Option<SharedBytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Serving {
    end: Nanos,
    nth: u64,
    slot: u32,
    result: i32,
}

impl SimQueue {
    fn open(
        spec: &QueueSpec,
        disk: &DiskSpec,
        nth: u64,
        clock: &ManualClock,
        files: &Files,
    ) -> Result<Self, OpenQueueError> {
        let arena = arena(spec)?;
        let depth = index(arena.depth());
        // Far apart, so that queues do not draw each other's numbers.
        let seed = disk.seed.wrapping_add(nth.wrapping_mul(0xd1b5_4a32_d192_ed03));
        let open = |file: &crate::TargetFile| {
            let access = fcntl_getfl(&file.descriptor).unwrap_or(OFlags::RDWR) & OFlags::RWMODE;
            SimFile {
                size: file.size,
                writable: access != OFlags::RDONLY,
                readable: access != OFlags::WRONLY,
                content: (disk.content == Content::Kept).then(|| files.open(&file.path, file.size)),
            }
        };
        Ok(Self {
            clock: clock.clone(),
            files: spec.files.iter().map(open).collect(),
            server: Server::new(disk, seed),
            faults: Faults::new(disk.faults.clone(), disk.random_faults, seed ^ 0xfa),
            line: Vec::with_capacity(depth),
            serving: BinaryHeap::with_capacity(depth),
            done: Completions::new(arena.depth()),
            arena,
            submitted: 0,
        })
    }

    /// Begins what is in line.
    fn submit(&mut self) {
        let now = self.clock.now();
        for nth in 0..self.line.len() {
            let op = self.line[nth];
            let number = self.submitted;
            self.submitted += 1;
            let fate = self.faults.fate(number, op.len);
            let result = match fate.error {
                Some(errno) => -errno.0,
                None => self.transfer(op, &fate),
            };
            let end = self.server.finish_at(now, fate.delay);
            self.serving.push(Reverse(Serving { end, nth: number, slot: op.slot.0, result }));
        }
        self.line.clear();
    }

    /// Moves the bytes, as many as its fate allows; the result is a [`Done`]'s. The disk takes them when
    /// the I/O begins: what overlaps is served in order of submission.
    fn transfer(&mut self, op: Op, fate: &Fate) -> i32 {
        let file = &self.files[index(op.file.0)];
        let allowed = match op.kind {
            OpKind::Read => file.readable,
            OpKind::Write => file.writable,
        };
        if !allowed {
            return -rustix::io::Errno::BADF.raw_os_error();
        }
        let len = device::within(file.size, op.offset, op.len);
        let len = len.min(fate.len_max.unwrap_or(u32::MAX));
        if let Some(content) = &file.content {
            let offset = fate.astray.unwrap_or(op.offset);
            let kept = device::within(file.size, offset, len).min(fate.kept.unwrap_or(u32::MAX));
            // The slot is lent back for the copy.
            self.arena.end(op.slot.0);
            match (op.kind, op.memory) {
                (OpKind::Read, Memory::Lane(lane)) => {
                    let buffer = &mut self.arena.buffer_mut(op.slot.0, lane.0)[..index(kept)];
                    device::read(content, offset, buffer);
                    if fate.garbled {
                        buffer.iter_mut().step_by(512).for_each(|byte| *byte ^= 0x55);
                    }
                }
                (OpKind::Read | OpKind::Write, _) => {
                    let bytes = &self.arena.bytes_of(&op.into())[..index(kept)];
                    if fate.garbled {
                        let mut bytes = bytes.to_vec();
                        bytes.iter_mut().step_by(512).for_each(|byte| *byte ^= 0x55);
                        device::write(content, offset, &bytes);
                    } else {
                        device::write(content, offset, bytes);
                    }
                }
            }
            self.arena.begin(op.slot.0);
        }
        moved(len)
    }

    /// Lets time pass until `wanted` completions are there, but not beyond `limit`.
    fn pass_time(&mut self, wanted: u32, limit: Nanos) {
        while self.done.waiting() < wanted {
            let Some(Reverse(next)) = self.serving.peek() else {
                if limit != Nanos::NEVER {
                    self.clock.advance_to(limit);
                }
                return;
            };
            if next.end > limit {
                self.clock.advance_to(limit);
                return;
            }
            self.clock.advance_to(next.end);
            self.collect();
        }
    }

    /// Takes what has finished by now.
    fn collect(&mut self) {
        let now = self.clock.now();
        while let Some(Reverse(next)) = self.serving.peek().filter(|next| next.0.end <= now) {
            self.done.push(Finished { slot: next.slot, result: next.result });
            self.serving.pop();
        }
    }
}

impl IoQueue for SimQueue {
    fn push(&mut self, op: Op) {
        self.arena.check(&op.into());
        assert!(index(op.file.0) < self.files.len(), "file {} does not exist", op.file.0);
        self.arena.begin(op.slot.0);
        self.line.push(op);
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.submit();
        self.collect();
        // Saturates: without a limit it stays never.
        self.pass_time(wanted, self.clock.now() + timeout);
        Ok(())
    }

    fn look(&mut self) -> u32 {
        self.collect();
        self.done.look()
    }

    fn pop(&mut self) -> Option<Done> {
        let done = self.done.pop()?;
        self.arena.end(done.slot);
        Some(done.into())
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.arena.buffer_mut(slot.0, lane.0)
    }

    fn facts(&self) -> QueueFacts {
        facts("sim", &self.arena)
    }
}
