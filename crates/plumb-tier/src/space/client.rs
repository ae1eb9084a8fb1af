//! Requests from threads that do not own the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use plumb_io::{
    Done, Errno, IoQueue, LaneIndex, Memory, Op, OpKind, OpenQueueError, QueueFacts, QueueSpec,
    Slot, SlotMemory,
};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::server::{Answer, Ask, Doorbell, Message};
use super::{Asked, EIO, SpaceFile};

/// A queue whose files are virtual disks of an engine on another thread.
#[derive(Debug)]
pub struct SpaceClient {
    pub(super) session: u32,
    pub(super) asks: SyncSender<Message>,
    doorbell: Arc<Doorbell>,
    pub(super) answers: Receiver<Answer>,
    pub(super) forwarded: Arc<AtomicU64>,
    files: Vec<SpaceFile>,
    memory: SlotMemory,
    /// What travels with each slot's request, and comes back with its answer.
    buffers: Vec<Vec<u8>>,
    under_way: Vec<Option<(OpKind, Memory)>>,
    outstanding: u32,
    engine: String,
}

/// The two ends of a client's connection.
pub(super) struct Ends {
    pub(super) session: u32,
    pub(super) asks: SyncSender<Message>,
    pub(super) doorbell: Arc<Doorbell>,
    pub(super) answers: Receiver<Answer>,
    pub(super) forwarded: Arc<AtomicU64>,
    pub(super) engine: String,
}

impl SpaceClient {
    pub(super) fn open(
        ends: Ends,
        files: Vec<SpaceFile>,
        spec: &QueueSpec,
    ) -> Result<Self, OpenQueueError> {
        let memory = SlotMemory::open(spec)?;
        let lanes = spec.regions.iter().flat_map(|region| &region.lanes);
        let largest = lanes.map(|lane| index(lane.bytes)).max().unwrap_or(0);
        let depth = index(memory.depth());
        let Ends { session, asks, doorbell, answers, forwarded, engine } = ends;
        Ok(Self {
            session,
            asks,
            doorbell,
            answers,
            forwarded,
            files,
            memory,
            buffers: (0..depth).map(|_| vec![0; largest]).collect(),
            under_way: vec![None; depth],
            outstanding: 0,
            engine,
        })
    }

    fn take(&mut self, answer: Answer) {
        let Answer { slot, result, buffer } = answer;
        let Some((kind, memory)) = self.under_way[index(slot)].take() else { return };
        self.outstanding -= 1;
        if let (OpKind::Read, Memory::Lane(lane), Ok(len)) = (kind, memory, usize::try_from(result))
        {
            self.memory.fill(Slot(slot), lane, &buffer[..len]);
        }
        self.buffers[index(slot)] = buffer;
        self.memory.finish(Slot(slot), result);
    }

    /// The owner is gone: nothing of what is under way will be answered.
    fn fail_all(&mut self) {
        for slot in 0..self.memory.depth() {
            if self.under_way[index(slot)].take().is_some() {
                self.outstanding -= 1;
                self.memory.finish(Slot(slot), -EIO);
            }
        }
    }

    /// Takes all answers that are there; `false` when there will be none any more.
    fn collect(&mut self) -> bool {
        loop {
            match self.answers.try_recv() {
                Ok(answer) => self.take(answer),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => {
                    self.fail_all();
                    return false;
                }
            }
        }
    }
}

impl IoQueue for SpaceClient {
    fn push(&mut self, op: Op) {
        let file = self.files[index(op.file.0)];
        self.memory.check(&op);
        let request = match file.ask(&op) {
            Asked::Answer(result) => {
                self.memory.begin(op.slot);
                self.memory.finish(op.slot, result);
                return;
            }
            Asked::Request(request) => request,
        };
        let len = index(request.len);
        let slot = op.slot.0;
        if op.kind == OpKind::Write {
            let bytes = &self.memory.bytes_of(&op)[..len];
            let buffer = &mut self.buffers[index(slot)];
            buffer.resize(buffer.len().max(len), 0);
            buffer[..len].copy_from_slice(bytes);
        }
        self.memory.begin(op.slot);
        let mut buffer = std::mem::take(&mut self.buffers[index(slot)]);
        buffer.resize(buffer.len().max(len), 0);
        self.under_way[index(slot)] = Some((op.kind, op.memory));
        self.outstanding += 1;
        self.forwarded.fetch_add(1, Ordering::Relaxed);
        let ask = Ask { session: self.session, slot, request, buffer };
        match self.asks.send(Message::Ask(ask)) {
            Ok(()) => self.doorbell.ring(),
            Err(_) => self.fail_all(),
        }
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        let limit = match timeout {
            Nanos::NEVER => wanted.min(self.memory.waiting() + self.outstanding),
            _ => wanted,
        };
        let mut alive = self.collect();
        let end = (timeout != Nanos::NEVER).then(|| Instant::now() + Duration::from(timeout));
        while self.memory.waiting() < limit {
            let received = match end {
                None if !alive => return Ok(()),
                None => self.answers.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if !alive {
                        std::thread::sleep(left);
                        return Ok(());
                    }
                    self.answers.recv_timeout(left)
                }
            };
            match received {
                Ok(answer) => {
                    self.take(answer);
                    alive = self.collect();
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    self.fail_all();
                    alive = false;
                }
            }
        }
        Ok(())
    }

    fn look(&mut self) -> u32 {
        self.collect();
        self.memory.look()
    }

    fn pop(&mut self) -> Option<Done> {
        self.memory.pop()
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.memory.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts { flags: vec!["forwarded".to_owned()], ..self.memory.facts(&self.engine) }
    }
}

impl Drop for SpaceClient {
    fn drop(&mut self) {
        // The owner may be gone already.
        let _ = self.asks.send(Message::Leave { session: self.session });
        self.doorbell.ring();
    }
}
