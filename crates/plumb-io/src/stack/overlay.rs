//! A queue around a queue that changes nothing: what is written is kept in memory, and shown to whoever reads it.

use std::collections::{HashMap, VecDeque};

use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_u64};

use crate::{
    Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, Memory, Op, OpKind, QueueFacts, Slot,
};

/// Bytes of the smallest write.
const SECTOR: u64 = 512;
const SECTOR_LEN: usize = 512;

/// A queue whose files stay as they are. Offsets and lengths are multiples of 512 bytes.
#[derive(Debug)]
pub struct OverlayQueue<Q> {
    inner: Q,
    /// By file and sector.
    written: HashMap<(u32, u64), Box<[u8; SECTOR_LEN]>>,
    /// Reads that the queue within has under way, by slot.
    reads: Vec<Option<Op>>,
    /// Over, and not popped.
    ended: VecDeque<Done>,
    counted: usize,
    /// How many of those counted are the queue's within.
    counted_inner: u32,
}

impl<Q: FlushQueue> OverlayQueue<Q> {
    /// Around a queue of `depth` slots.
    pub fn new(inner: Q, depth: u32) -> Self {
        Self {
            inner,
            written: HashMap::new(),
            reads: vec![None; index(depth)],
            ended: VecDeque::with_capacity(index(depth)),
            counted: 0,
            counted_inner: 0,
        }
    }

    /// Bytes that are kept in memory.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        to_u64(self.written.len()) * SECTOR
    }

    fn keep(&mut self, op: Op, lane: LaneIndex) {
        assert!(
            op.offset.is_multiple_of(SECTOR) && op.len.is_multiple_of(to_u32(SECTOR_LEN)),
            "a write of whole sectors"
        );
        let bytes = &self.inner.buffer_mut(op.slot, lane)[..index(op.len)];
        for (sector, part) in (op.offset / SECTOR..).zip(bytes.as_chunks::<SECTOR_LEN>().0) {
            self.written.insert((op.file.0, sector), Box::new(*part));
        }
    }

    /// Puts what was written over what was read.
    fn show(&mut self, op: Op, done: Done) {
        let Memory::Lane(lane) = op.memory else { return };
        let Ok(len) = usize::try_from(done.result) else { return };
        if self.written.is_empty() {
            return;
        }
        let bytes = &mut self.inner.buffer_mut(op.slot, lane)[..len];
        let (parts, _) = bytes.as_chunks_mut::<SECTOR_LEN>();
        for (sector, part) in (op.offset / SECTOR..).zip(parts) {
            if let Some(kept) = self.written.get(&(op.file.0, sector)) {
                *part = **kept;
            }
        }
    }
}

impl<Q: FlushQueue> IoQueue for OverlayQueue<Q> {
    fn push(&mut self, op: Op) {
        match (op.kind, op.memory) {
            (OpKind::Write, Memory::Lane(lane)) => {
                self.keep(op, lane);
                let result = op.len.cast_signed();
                self.ended.push_back(Done { slot: op.slot, result });
            }
            (OpKind::Write, _) => panic!("this queue knows lanes only"),
            (OpKind::Read, _) => {
                self.reads[index(op.slot.0)] = Some(op);
                self.inner.push(op);
            }
        }
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        let wanted = wanted.saturating_sub(to_u32(self.ended.len()));
        let timeout = if wanted == 0 { Nanos::ZERO } else { timeout };
        self.inner.submit_and_wait(wanted, timeout)
    }

    fn look(&mut self) -> u32 {
        self.counted = self.ended.len();
        self.counted_inner = self.inner.look();
        to_u32(self.counted) + self.counted_inner
    }

    fn pop(&mut self) -> Option<Done> {
        if self.counted > 0 {
            self.counted -= 1;
            return self.ended.pop_front();
        }
        self.counted_inner = self.counted_inner.checked_sub(1)?;
        let done = self.inner.pop()?;
        if let Some(op) = self.reads[index(done.slot.0)].take() {
            self.show(op, done);
        }
        Some(done)
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.inner.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        let facts = self.inner.facts();
        QueueFacts { engine: format!("unchanging+{}", facts.engine), ..facts }
    }
}

impl<Q: FlushQueue> FlushQueue for OverlayQueue<Q> {
    fn push_flush(&mut self, _: FileIndex, slot: Slot) {
        self.ended.push_back(Done { slot, result: 0 });
    }

    fn bell(&self) -> Option<crate::Bell> {
        self.inner.bell()
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        self.inner.file_bytes(file)
    }

    fn leads_there(&self, file: FileIndex) -> bool {
        self.inner.leads_there(file)
    }

    fn time(&self) -> Nanos {
        self.inner.time()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LaneSpec;
    use crate::sim::power::{Image, PowerQueue, PowerSpec};

    const LANE: LaneIndex = LaneIndex(0);

    fn perform(queue: &mut OverlayQueue<PowerQueue>, kind: OpKind, offset: u64, len: u32) -> i32 {
        let (file, slot, memory) = (FileIndex(0), Slot(0), Memory::Lane(LANE));
        queue.push(Op { kind, file, slot, len, offset, memory });
        queue.submit_and_wait(1, Nanos::NEVER).expect("taken");
        assert_eq!(queue.look(), 1);
        queue.pop().expect("it was counted").result
    }

    #[test]
    fn what_is_written_is_read_back_and_the_disk_stays_as_it_is() {
        let mut image = Image::new(1 << 20);
        image.write(0, &[7; 8192]);
        let spec = PowerSpec {
            seed: 1,
            depth: 2,
            lanes: vec![LaneSpec { first_slot: 0, slots: 2, bytes: 8192 }],
            sector: 512,
            service: (Nanos(1), Nanos(2)),
            record: false,
        };
        let mut queue = OverlayQueue::new(PowerQueue::new(&spec, vec![image]), 2);
        queue.buffer_mut(Slot(0), LANE)[..1024].fill(9);
        assert_eq!(perform(&mut queue, OpKind::Write, 512, 1024), 1024);
        queue.push_flush(FileIndex(0), Slot(1));
        queue.submit_and_wait(1, Nanos::NEVER).expect("taken");
        assert_eq!((queue.look(), queue.pop()), (1, Some(Done { slot: Slot(1), result: 0 })));
        assert_eq!(perform(&mut queue, OpKind::Read, 0, 8192), 8192);
        let read = queue.buffer_mut(Slot(0), LANE).to_vec();
        assert!(read[..512].iter().chain(&read[1536..]).all(|byte| *byte == 7));
        assert!(read[512..1536].iter().all(|byte| *byte == 9));
        assert_eq!(queue.kept_bytes(), 1024);
        let mut disk = [0; 8192];
        queue.inner.view(0).read(0, &mut disk);
        assert_eq!(disk, [7; 8192]);
        // What the queue within refuses stays refused.
        assert!(perform(&mut queue, OpKind::Read, 2 << 20, 512) < 0);
    }
}
