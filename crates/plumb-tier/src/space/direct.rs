//! Requests from the thread that owns the engine.

use plumb_io::clock::Clock;
use plumb_io::{
    Done, Errno, FlushQueue, IoQueue, LaneIndex, Memory, Op, OpKind, OpenQueueError, QueueFacts,
    QueueSpec, Slot, SlotMemory,
};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::{Asked, SpaceFile};
use crate::engine::Engine;

/// Longest wait for devices at a time: what goes by the clock is looked after in between.
const TICK: Nanos = Nanos(10_000_000);
/// Sleep while only time can bring anything about.
const NAP: Nanos = Nanos(200_000);

/// A queue whose files are virtual disks of one engine, on the engine's own thread.
#[derive(Debug)]
pub struct SpaceQueue<Q, C> {
    engine: Engine<Q>,
    files: Vec<SpaceFile>,
    memory: SlotMemory,
    /// What each slot in flight does, and how many bytes it moves.
    under_way: Vec<Option<(OpKind, Memory, u32)>>,
    outstanding: u32,
    clock: C,
}

impl<Q: FlushQueue, C: Clock> SpaceQueue<Q, C> {
    /// Slots and buffers as `spec` says, over an engine with as many clients at least; `spec`'s own files are
    /// not looked at.
    ///
    /// # Errors
    /// When memory is refused.
    ///
    /// # Panics
    /// When the engine has fewer clients than the queue slots.
    pub fn open(
        engine: Engine<Q>,
        files: Vec<SpaceFile>,
        spec: &QueueSpec,
        clock: C,
    ) -> Result<Self, OpenQueueError> {
        let memory = SlotMemory::open(spec)?;
        assert!(engine.clients() >= memory.depth(), "a client per slot");
        let under_way = vec![None; index(memory.depth())];
        Ok(Self { engine, files, memory, under_way, outstanding: 0, clock })
    }

    /// The engine beneath.
    pub fn engine_mut(&mut self) -> &mut Engine<Q> {
        &mut self.engine
    }

    /// The engine back.
    pub fn into_engine(self) -> Engine<Q> {
        self.engine
    }

    /// Takes what the engine has finished.
    #[inline]
    fn collect(&mut self) {
        while let Some((client, outcome)) = self.engine.pop() {
            let Some((kind, memory, len)) = self.under_way[index(client)].take() else { continue };
            self.outstanding -= 1;
            let result = match outcome {
                Ok(()) => len.cast_signed(),
                Err(errno) => -errno.0,
            };
            if let (OpKind::Read, Memory::Lane(lane), 0..) = (kind, memory, result) {
                let bytes = &self.engine.buffer_mut(client)[..index(len)];
                self.memory.fill(Slot(client), lane, bytes);
            }
            self.memory.finish(Slot(client), result);
        }
    }
}

impl<Q: FlushQueue, C: Clock> IoQueue for SpaceQueue<Q, C> {
    #[inline]
    fn push(&mut self, op: Op) {
        let file = self.files[index(op.file.0)];
        self.memory.check(&op);
        match file.ask(&op) {
            Asked::Answer(result) => {
                self.memory.begin(op.slot);
                self.memory.finish(op.slot, result);
            }
            Asked::Request(request) => {
                let (slot, len) = (op.slot.0, request.len);
                if op.kind == OpKind::Write {
                    let bytes = &self.memory.bytes_of(&op)[..index(len)];
                    self.engine.roomy_buffer(slot, bytes.len())[..bytes.len()]
                        .copy_from_slice(bytes);
                }
                self.memory.begin(op.slot);
                if op.kind == OpKind::Read {
                    self.engine.roomy_buffer(slot, index(len));
                }
                self.under_way[index(slot)] = Some((op.kind, op.memory, len));
                self.outstanding += 1;
                self.engine.submit(slot, request);
            }
        }
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        let start = self.clock.now();
        let limit = match timeout {
            Nanos::NEVER => wanted.min(self.memory.waiting() + self.outstanding),
            _ => wanted,
        };
        let mut now = start;
        loop {
            let left = match timeout {
                Nanos::NEVER => TICK,
                _ => Nanos(timeout.0.saturating_sub(now.since(start).0)),
            };
            let enough = self.memory.waiting() >= limit;
            self.engine.poll(now, if enough { Nanos::ZERO } else { left.min(TICK) });
            self.collect();
            if self.memory.waiting() >= limit {
                return Ok(());
            }
            now = self.clock.now();
            if timeout != Nanos::NEVER && now.since(start) >= timeout {
                return Ok(());
            }
            if self.engine.in_flight() == 0 {
                std::thread::sleep(left.min(NAP).into());
                now = self.clock.now();
            }
        }
    }

    #[inline]
    fn look(&mut self) -> u32 {
        self.memory.look()
    }

    #[inline]
    fn pop(&mut self) -> Option<Done> {
        self.memory.pop()
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.memory.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        let below = self.engine.facts();
        let own = self.memory.facts("space");
        QueueFacts {
            engine: format!("space+{}", below.engine),
            buffer_separation: own.buffer_separation,
            dropped: own.dropped.into_iter().chain(below.dropped).collect(),
            ..below
        }
    }
}
