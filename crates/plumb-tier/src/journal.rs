//! The journal while the engine runs: records gather in a batch; one frame at a time carries a batch to
//! every copy; a flush makes what was written durable.

use std::collections::VecDeque;

use plumb_units::convert::{index, to_usize};

use crate::format::Geometry;
use crate::format::frame::{self, FrameKind, HEADER, Link, Record};
use crate::mutation::{Mutation, active};

/// One of so many parts of the ring is kept for checkpoints and for the loss of disks.
const KEPT: u64 = 5;
/// Of that, one of so many parts of the ring is kept for checkpoints and starts alone: what filled the ring otherwise would
/// leave a pool that cannot start.
const LAST: u64 = 10;

/// A frame under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    pub(crate) lsn: u64,
    /// Copies that have yet to answer.
    pub(crate) left: u32,
    /// Copies that have it.
    pub(crate) done: u32,
    /// Whether it is a pad, after which the ring starts over.
    pub(crate) next: Link,
}

/// A flush under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flushing {
    pub(crate) covers: u64,
    pub(crate) left: u32,
    pub(crate) done: u32,
}

/// Batches, LSNs, and the ring's two ends.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) link: Link,
    /// The first frame that is still needed: where the checkpoint in force begins.
    pub(crate) tail: Link,
    /// The checkpoint page before this one's sequence.
    pub(crate) sequence: u64,
    /// Full batches, oldest first, then the one that records are added to.
    batches: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    body_max: usize,
    /// Frames up to this one are written on every live copy.
    pub(crate) appended: u64,
    /// Frames up to this one are durable there.
    pub(crate) durable: u64,
    /// The same without those that were flushed to a disk of which any flush failed: what frames say of those before them.
    pub(crate) proven: u64,
    /// Somebody waits for this one to be durable.
    pub(crate) wanted: u64,
    pub(crate) frame: Option<InFlight>,
    pub(crate) flush: Option<Flushing>,
    ring_bytes: u64,
    scratch: Vec<u8>,
    /// A checkpoint or a start is under way: it may use all that is left.
    pub(crate) to_the_last: bool,
}

/// What comes next for the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// There is room.
    Enough,
    /// A checkpoint must free some first.
    Full,
}

impl Journal {
    /// A journal that goes on at `link`, whose frames since `tail` are needed; a start is under way.
    pub(crate) fn new(
        link: Link,
        tail: Link,
        sequence: u64,
        geometry: &Geometry,
        frame_bytes: u64,
    ) -> Self {
        let quarter = geometry.ring_bytes() / 8 / 4096 * 4096;
        let frame = frame_bytes.min(quarter.max(4096));
        let body_max = index(u32::try_from(frame).unwrap_or(1 << 20)) - HEADER;
        let before = link.lsn - 1;
        Self {
            link,
            tail,
            sequence,
            batches: VecDeque::from([Vec::with_capacity(body_max)]),
            spare: Vec::new(),
            body_max,
            appended: before,
            durable: before,
            proven: before,
            wanted: before,
            frame: None,
            flush: None,
            ring_bytes: geometry.ring_bytes(),
            scratch: vec![0; body_max + HEADER],
            to_the_last: true,
        }
    }

    /// Adds a record; the LSN of the frame that will carry it. Pads take an LSN as well, so a frame may
    /// come later than said, and then whoever waits for this number waits for less than the record:
    /// therefore a pad is followed by its frame before either is reported.
    #[inline]
    pub(crate) fn append(&mut self, record: Record) -> u64 {
        let full =
            self.batches.back().is_none_or(|batch| batch.len() + Record::LEN_MAX > self.body_max);
        if full {
            let batch = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.body_max));
            self.batches.push_back(batch);
        }
        if let Some(batch) = self.batches.back_mut() {
            record.encode(batch);
        }
        self.last_lsn()
    }

    /// The LSN of the frame that the newest record goes, or went, into.
    pub(crate) fn last_lsn(&self) -> u64 {
        let waiting = self.batches.iter().filter(|batch| !batch.is_empty()).count() as u64;
        self.link.lsn - 1 + waiting
    }

    /// Somebody waits until that frame is durable.
    pub(crate) fn want(&mut self, lsn: u64) {
        self.wanted = self.wanted.max(lsn);
    }

    /// Whether records wait for a frame.
    pub(crate) fn has_batch(&self) -> bool {
        self.batches.front().is_some_and(|batch| !batch.is_empty())
    }

    /// Bytes in use.
    fn used(&self) -> u64 {
        self.link.position - self.tail.position
    }

    /// Whether a checkpoint should free space: 3/4 are used (JRN-2).
    pub(crate) fn is_crowded(&self) -> bool {
        self.used() > self.ring_bytes / 4 * 3 && !active(Mutation::RingOverrun)
    }

    /// Blocks whose checksums may wait to be committed: a checkpoint commits them all, in a quarter of the space that is
    /// kept for it, for others come meanwhile.
    pub(crate) fn commits_max(&self) -> usize {
        to_usize(self.ring_bytes / KEPT / 4) / Record::LEN_MAX
    }

    /// Whether the next frame fits. `reserve`: whether it may use the space kept for checkpoints and for
    /// the loss of disks.
    pub(crate) fn room(&self, reserve: bool) -> Room {
        let batch = self.batches.front().map_or(0, Vec::len);
        // The batch may need a pad before it.
        let needed = 2 * frame::span(batch);
        if active(Mutation::RingOverrun) {
            return Room::Enough;
        }
        let all = self.to_the_last || active(Mutation::LastRoomUsed);
        let kept = match reserve {
            false => self.ring_bytes / KEPT,
            true if all => 0,
            true => self.ring_bytes / LAST,
        };
        if self.used() + needed + kept <= self.ring_bytes { Room::Enough } else { Room::Full }
    }

    /// Makes the next frame, `next_lsn` of the link it goes by; its bytes and where in the ring they go.
    /// Calls for a pad are answered by the pad. The pad does not take an LSN of its own.
    pub(crate) fn make(
        &mut self,
        pool_seed: u32,
        kind: FrameKind,
        epoch: u32,
    ) -> (&[u8], u64, InFlight) {
        let at = self.link.position % self.ring_bytes;
        let batch_len = self.batches.front().map_or(0, Vec::len);
        let left = self.ring_bytes - at;
        let mut link = self.link;
        if frame::span(batch_len) > left {
            let crc = frame::encode(
                &mut self.scratch,
                pool_seed,
                FrameKind::Pad,
                (&link, self.proven),
                &[],
                left,
            );
            let next = Link { position: link.position + left, chain: crc, ..link };
            let in_flight = InFlight { lsn: link.lsn - 1, left: 0, done: 0, next };
            return (&self.scratch[..4096], link.position, in_flight);
        }
        let mut batch = self.batches.pop_front().unwrap_or_default();
        if self.batches.is_empty() {
            let next = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.body_max));
            self.batches.push_back(next);
        }
        link.epoch = epoch;
        let span = frame::span(batch.len());
        let crc =
            frame::encode(&mut self.scratch, pool_seed, kind, (&link, self.proven), &batch, span);
        batch.clear();
        self.spare.push(batch);
        let next = Link { lsn: link.lsn + 1, position: link.position + span, chain: crc, epoch };
        let in_flight = InFlight { lsn: link.lsn, left: 0, done: 0, next };
        let bytes = &self.scratch[..index(u32::try_from(span).unwrap_or(0))];
        (bytes, self.link.position, in_flight)
    }
}
