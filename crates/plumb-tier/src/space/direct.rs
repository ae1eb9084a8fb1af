//! Requests from the thread that owns the engine.

use plumb_io::clock::Clock;
use plumb_io::{
    Done, Errno, FlushQueue, IoQueue, LaneIndex, Op, OpenQueueError, QueueFacts, QueueSpec, Slot,
    SlotMemory,
};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::{Asked, SpaceFile};
use crate::engine::{ClientMemory, Engine};

/// Longest wait for devices at a time: what goes by the clock is looked after in between.
const TICK: Nanos = Nanos(10_000_000);
/// Sleep while only time can bring anything about.
const NAP: Nanos = Nanos(200_000);

/// A queue whose files are virtual disks of one engine, on the engine's own thread. Its slots are the engine's
/// clients: nothing is copied between the two.
#[derive(Debug)]
pub struct SpaceQueue<Q, C> {
    /// It holds the memory of the slots.
    engine: Engine<Q>,
    /// The buffers that its clients had before.
    buffers: ClientMemory,
    files: Vec<SpaceFile>,
    /// How many bytes each slot in flight moves.
    under_way: Vec<Option<u32>>,
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
        mut engine: Engine<Q>,
        files: Vec<SpaceFile>,
        spec: &QueueSpec,
        clock: C,
    ) -> Result<Self, OpenQueueError> {
        let memory = SlotMemory::open(spec)?;
        assert!(engine.clients() >= memory.depth(), "a client per slot");
        let under_way = vec![None; index(memory.depth())];
        let buffers = engine.use_slots(memory);
        Ok(Self { engine, buffers, files, under_way, outstanding: 0, clock })
    }

    /// The engine beneath.
    pub fn engine_mut(&mut self) -> &mut Engine<Q> {
        &mut self.engine
    }

    /// The engine back.
    pub fn into_engine(mut self) -> Engine<Q> {
        self.engine.leave_slots(self.buffers);
        self.engine
    }

    /// Takes what the engine has finished.
    #[inline]
    fn collect(&mut self) {
        while let Some((client, outcome)) = self.engine.pop() {
            let Some(len) = self.under_way[index(client)].take() else { continue };
            self.outstanding -= 1;
            let result = match outcome {
                Ok(()) => len.cast_signed(),
                Err(errno) => -errno.0,
            };
            self.engine.slots_mut().finish(Slot(client), result);
        }
    }
}

impl<Q: FlushQueue, C: Clock> IoQueue for SpaceQueue<Q, C> {
    #[inline]
    fn push(&mut self, op: Op) {
        let file = self.files[index(op.file.0)];
        let memory = self.engine.slots_mut();
        memory.check(&op);
        memory.begin(op.slot);
        match file.ask(&op) {
            Asked::Answer(result) => memory.finish(op.slot, result),
            Asked::Request(request) => {
                self.under_way[index(op.slot.0)] = Some(request.len);
                self.outstanding += 1;
                self.engine.submit_op(op, request);
            }
        }
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        let start = self.clock.now();
        let limit = match timeout {
            Nanos::NEVER => wanted.min(self.engine.slots().waiting() + self.outstanding),
            _ => wanted,
        };
        let mut now = start;
        loop {
            let left = match timeout {
                Nanos::NEVER => TICK,
                _ => Nanos(timeout.0.saturating_sub(now.since(start).0)),
            };
            let enough = self.engine.slots().waiting() >= limit;
            self.engine.poll(now, if enough { Nanos::ZERO } else { left.min(TICK) });
            self.collect();
            if self.engine.slots().waiting() >= limit {
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
        self.engine.slots_mut().look()
    }

    #[inline]
    fn pop(&mut self) -> Option<Done> {
        self.engine.slots_mut().pop()
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.engine.slots_mut().buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        let below = self.engine.facts();
        let own = self.engine.slots().facts("space");
        QueueFacts {
            engine: format!("space+{}", below.engine),
            buffer_separation: own.buffer_separation,
            dropped: own.dropped.into_iter().chain(below.dropped).collect(),
            ..below
        }
    }
}
