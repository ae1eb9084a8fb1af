//! A queue around a queue: writes get their stamps, reads are compared with what was acknowledged.

use std::sync::Arc;

use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64};

use super::Verification;
use super::findings::{Kind, Mismatch, Pass};
use super::sector::{self, Content, SECTOR, WriteStamp};
use super::space::{Space, Ticket};
use crate::{Done, Errno, IoQueue, LaneIndex, Memory, Op, OpKind, QueueFacts, Slot};

/// Verifies all I/O that goes through it.
///
/// Writes must come from a lane, whose buffer gets new content: they cover whole blocks of their target's
/// [`Space`]. Reads may be any whole sectors. A read that overlaps a write to the same block may find
/// either; a sector that it finds half changed is no mismatch.
pub struct VerifyQueue<'a, Q: ?Sized> {
    inner: &'a mut Q,
    verification: &'a Verification,
    /// By file.
    spaces: Vec<Arc<Space>>,
    slots: Vec<InFlight>,
    pass: Pass,
    /// Called for each read that found something.
    on_mismatch: &'a dyn Fn(),
}

#[derive(Default)]
struct InFlight {
    op: Option<Op>,
    /// By block that it touches.
    tickets: Vec<Ticket>,
}

impl<'a, Q: IoQueue + ?Sized> VerifyQueue<'a, Q> {
    /// Around `inner`, which has `depth` slots. `spaces` are those of the queue's files, in the order of
    /// [`crate::FileIndex`]; several files may have one. `on_mismatch` is called after each read
    /// that found any.
    pub fn new(
        inner: &'a mut Q,
        verification: &'a Verification,
        spaces: Vec<Arc<Space>>,
        (depth, io_max): (u32, u32),
        pass: Pass,
        on_mismatch: &'a dyn Fn(),
    ) -> Self {
        // Nothing is allocated while I/O runs.
        let blocks =
            spaces.iter().map(|space| index(io_max / space.block()) + 2).max().unwrap_or(0);
        let slot = |_| InFlight { op: None, tickets: Vec::with_capacity(blocks) };
        Self {
            inner,
            verification,
            spaces,
            slots: (0..depth).map(slot).collect(),
            pass,
            on_mismatch,
        }
    }

    /// The writer's part, before the performer sees the write.
    fn begin_write(&mut self, op: Op) {
        let space = &self.spaces[index(op.file.0)];
        let tickets = &mut self.slots[index(op.slot.0)].tickets;
        space.begin_write(op.offset, op.len, tickets);
        let Memory::Lane(lane) = op.memory else {
            panic!("a verified write takes its content from a buffer of its own");
        };
        let write = self.verification.next_write();
        let buffer = self.inner.buffer_mut(op.slot, lane);
        let sectors = buffer[..index(op.len)].chunks_exact_mut(index(SECTOR));
        let per_block = index(space.block() / SECTOR);
        for (nth, sector) in sectors.enumerate() {
            let place = space.identity(op.offset + to_u64(nth) * u64::from(SECTOR));
            let generation = tickets[nth / per_block].generation;
            let stamp = WriteStamp { generation, write, block: op.offset, len: op.len };
            sector::stamp(sector, place, &stamp);
        }
    }

    /// The reader's part, after the performer is done.
    fn end_read(&mut self, op: Op, moved: u32) {
        let space = &self.spaces[index(op.file.0)];
        let tickets = &mut self.slots[index(op.slot.0)].tickets;
        let moved = moved / SECTOR * SECTOR;
        space.end_read(op.offset, op.len, tickets);
        let Memory::Lane(lane) = op.memory else { return };
        let bytes = &self.inner.buffer_mut(op.slot, lane)[..index(moved)];
        let check = SectorCheck { space, bytes, from: op.offset };
        let mut is_wrong = false;
        let block = u64::from(space.block());
        let mut verified = 0;
        for (nth, ticket) in tickets.iter().enumerate() {
            let start = (op.offset / block + to_u64(nth)) * block;
            let end = (start + block).min(op.offset + u64::from(moved));
            let from = start.max(op.offset);
            if from >= end {
                break;
            }
            match check.block(from, end, ticket) {
                Ok(oldest) => {
                    let whole = from == start && end == start + block;
                    if let (Pass::Before, Some(oldest), true) = (self.pass, oldest, whole) {
                        space.seen(start, oldest);
                    }
                }
                Err(fault) => {
                    is_wrong = true;
                    space.count_mismatch(fault.kind);
                    self.verification.findings.add(Mismatch {
                        target: space.number(),
                        path: space.path().to_owned(),
                        offset: fault.offset,
                        kind: fault.kind,
                        pass: self.pass,
                        expected: ticket.generation,
                        found: fault.found,
                    });
                }
            }
            verified += if ticket.generation > 0 { end - from } else { 0 };
        }
        space.count_checked(verified);
        if is_wrong {
            (self.on_mismatch)();
        }
    }
}

impl<Q: IoQueue + ?Sized> IoQueue for VerifyQueue<'_, Q> {
    fn push(&mut self, op: Op) {
        match op.kind {
            OpKind::Write => self.begin_write(op),
            OpKind::Read => {
                let tickets = &mut self.slots[index(op.slot.0)].tickets;
                self.spaces[index(op.file.0)].begin_read(op.offset, op.len, tickets);
            }
        }
        self.slots[index(op.slot.0)].op = Some(op);
        self.inner.push(op);
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.inner.submit_and_wait(wanted, timeout)
    }

    fn look(&mut self) -> u32 {
        self.inner.look()
    }

    fn pop(&mut self) -> Option<Done> {
        let done = self.inner.pop()?;
        let slot = &mut self.slots[index(done.slot.0)];
        let op = slot.op.take().expect("what completes was pushed");
        // A failed write moved nothing that could be counted on.
        let moved = done.outcome().unwrap_or(0).min(op.len);
        match op.kind {
            OpKind::Write => {
                let space = &self.spaces[index(op.file.0)];
                space.end_write(op.offset, op.len, moved, &slot.tickets);
            }
            OpKind::Read if moved > 0 => self.end_read(op, moved),
            OpKind::Read => {}
        }
        Some(done)
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.inner.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        let mut facts = self.inner.facts();
        facts.engine.push_str("+verify");
        facts
    }
}

/// What is wrong in a block.
struct Fault {
    kind: Kind,
    offset: u64,
    found: Content,
}

/// The bytes of a read, and where they come from.
struct SectorCheck<'a> {
    space: &'a Space,
    bytes: &'a [u8],
    from: u64,
}

impl SectorCheck<'_> {
    /// Compares the sectors of `from..end`, all of one block, with its ticket. Returns the oldest
    /// generation found where every sector belongs here.
    fn block(&self, from: u64, end: u64, ticket: &Ticket) -> Result<Option<u32>, Fault> {
        let mut oldest = Some(u32::MAX);
        for offset in (from..end).step_by(index(SECTOR)) {
            let place = self.space.identity(offset);
            let bytes = self.sector(offset);
            // Where nothing is acknowledged, only what strayed there is wrong: most such sectors need
            // no sum.
            if ticket.generation == 0 && sector::claims(bytes, place) {
                oldest = None;
                continue;
            }
            let found = sector::read(bytes, place);
            let fault = |kind| Err(Fault { kind, offset, found });
            match found {
                Content::Here(write) if write.generation > self.space.newest() => {
                    return fault(Kind::Foreign);
                }
                Content::Here(write) if write.generation < ticket.generation => {
                    let torn = self.was_cut(offset, &write);
                    return fault(if torn { Kind::Torn } else { Kind::Stale });
                }
                Content::Here(write) => {
                    oldest = oldest.map(|oldest| oldest.min(write.generation));
                }
                Content::Elsewhere(..) => return fault(Kind::Misplaced),
                _ if ticket.generation == 0 => oldest = None,
                Content::Damaged(_) if ticket.overlapped || ticket.unsettled => oldest = None,
                Content::Damaged(_) => return fault(Kind::Torn),
                Content::OtherHistory(_) | Content::Unknown => return fault(Kind::Foreign),
            }
        }
        Ok(oldest.filter(|_| !ticket.overlapped))
    }

    /// Whether a stale sector is the rest of a write that arrived in part: another sector of the same
    /// read comes from a write that should have covered this one.
    #[cold]
    fn was_cut(&self, stale: u64, old: &WriteStamp) -> bool {
        let end = self.from + to_u64(self.bytes.len());
        (self.from..end).step_by(index(SECTOR)).any(|offset| {
            let found = sector::read(self.sector(offset), self.space.identity(offset));
            // Numbers of writes rise in the order in which they are issued.
            matches!(found, Content::Here(write) if write.write > old.write && write.covers(stale))
        })
    }

    fn sector(&self, offset: u64) -> &[u8] {
        let at = plumb_units::convert::to_usize(offset - self.from);
        &self.bytes[at..at + index(SECTOR)]
    }
}
