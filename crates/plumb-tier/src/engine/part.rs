//! A part of a request: within one extent, on one disk per copy.

use plumb_io::{Errno, FlushQueue};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::{EIO, Engine};
use crate::extents::Copies;
use crate::mutation::{Mutation, active};

/// No slot, no part.
pub(super) const NONE: u32 = u32::MAX;

/// What a part does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum PartKind {
    #[default]
    Read,
    /// From the client's buffer.
    Write,
    /// Less than a block of zeros, as a write.
    WriteZeros,
    /// Whole blocks to unwritten.
    Zero,
    /// From the log of the write-back cache home.
    Destage,
    /// The same, of lines that say: unwritten.
    DestageZero,
    /// Holds the writes to an extent that moves.
    Move,
    /// Waits for those who read where an extent lay.
    Leave,
}

impl PartKind {
    pub(super) fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::Move | Self::Leave)
    }

    pub(super) fn moves(self) -> bool {
        matches!(self, Self::Move | Self::Leave)
    }

    pub(super) fn destages(self) -> bool {
        matches!(self, Self::Destage | Self::DestageZero)
    }

    /// Whether a part must wait for another one that came before it and touches the same block (WR-1). A destage
    /// changes nothing that a read could see: while it runs, reads of its blocks go to the log. Neither does a move.
    pub(super) fn excludes(self, other: Self) -> bool {
        if active(Mutation::DestageUnlocked) && (self.destages() || other.destages()) {
            return false;
        }
        match (self, other) {
            (Self::Leave, other) => other == Self::Read && !active(Mutation::MovedReadersIgnored),
            (_, Self::Leave) => false,
            (Self::Move, other) | (other, Self::Move) => {
                other.writes() && !active(Mutation::MoveUnheld)
            }
            (Self::Read, other) | (other, Self::Read) => other.writes() && !other.destages(),
            _ => true,
        }
    }
}

/// How far a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Step {
    #[default]
    Free,
    /// Waits for those before it that touch the same blocks.
    Lock,
    /// May begin, or begin again.
    Begin,
    /// Reads checksums of its extent.
    Sums,
    /// Reads the old content around what it writes.
    OldRead,
    /// Reads for the client.
    Reading,
    /// Writes to all live copies.
    Writing,
    /// Is in line for the log.
    Logging,
    /// Its record must be written.
    Appended,
    /// Of a move: it is its turn.
    Held,
}

/// A part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) client: u32,
    pub(super) kind: PartKind,
    pub(super) step: Step,
    pub(super) extent: u32,
    /// Bytes from the extent's start.
    pub(super) start: u32,
    pub(super) len: u32,
    /// Bytes from the start of the client's buffer.
    pub(super) buffer: u32,
    /// The frame it waits for.
    pub(super) lsn: u64,
    /// Device I/Os under way.
    pub(super) left: u8,
    /// By copy: succeeded, failed, was tried and is no good.
    pub(super) ok: u8,
    pub(super) failed: u8,
    pub(super) tried: u8,
    /// The old content is in the first slot's buffer.
    pub(super) has_old: bool,
    /// The next block to read, of its extent; up to which the run under way goes.
    pub(super) cursor: u32,
    pub(super) run_end: u32,
    /// Up to which block of its extent what was read was put to an account: a part that begins anew reads some again.
    pub(super) counted: u32,
    /// The record of the log that the run is read from; 0: its home.
    pub(super) source: u64,
    /// Which of the slots the run is read into.
    pub(super) reads_into: u8,
    /// The write-back cache has a share in it.
    pub(super) cached: bool,
    /// When it joined the log's record, blocks of it were in the log already.
    pub(super) overlaps: bool,
    /// When it was cut from its request.
    pub(super) begun: Nanos,
    pub(super) slots: [u32; 3],
    pub(super) copies: Copies,
    /// Blocks of it were settled for it, or could not be.
    pub(super) settled: bool,
    /// The checksums of its extent cannot be read now.
    pub(super) no_sums: bool,
    /// No copy gave a run as a whole: its blocks are read one by one, each from whichever copy has it.
    pub(super) one_by_one: bool,
    /// That block of its extent is read from home, for no copy of the log has it; or [`NONE`].
    pub(super) at_home: u32,
    /// Waits for its lock and is in line to try.
    pub(super) queued: bool,
    /// Neighbours in the line for locks.
    pub(super) before: u32,
    pub(super) after: u32,
}

impl Default for Part {
    fn default() -> Self {
        Self {
            client: 0,
            kind: PartKind::Read,
            step: Step::Free,
            extent: 0,
            start: 0,
            len: 0,
            buffer: 0,
            lsn: 0,
            left: 0,
            ok: 0,
            failed: 0,
            tried: 0,
            has_old: false,
            cursor: 0,
            counted: 0,
            run_end: 0,
            source: 0,
            reads_into: 0,
            cached: false,
            overlaps: false,
            begun: Nanos::ZERO,
            slots: [NONE; 3],
            copies: Copies { at: [(0, 0); 3], count: 0 },
            settled: false,
            no_sums: false,
            one_by_one: false,
            at_home: NONE,
            queued: false,
            before: NONE,
            after: NONE,
        }
    }
}

impl Part {
    /// Bytes of a record of a log that holds only this part.
    pub(super) fn log_span(&self) -> u64 {
        let (first, end) = self.blocks();
        let blocks = if self.kind == PartKind::Zero { 0 } else { end - first };
        4096 * u64::from(1 + blocks)
    }

    /// Whether nobody waits for it.
    pub(super) fn is_background(&self) -> bool {
        self.client == NONE
    }

    /// The blocks it touches: first, and one behind the last.
    pub(super) fn blocks(&self) -> (u32, u32) {
        (self.start / 4096, (self.start + self.len).div_ceil(4096))
    }

    /// Bytes before its first byte in its first block.
    pub(super) fn skew(&self) -> u32 {
        self.start % 4096
    }

    /// Whether it covers a block of its extent wholly.
    pub(super) fn covers(&self, block: u32) -> bool {
        self.start <= block * 4096 && (block + 1) * 4096 <= self.start + self.len
    }
}

/// What is cut off a request next; without a kind nothing has to be done for it.
pub(super) struct Piece {
    pub(super) kind: Option<PartKind>,
    pub(super) len: u32,
}

impl Piece {
    pub(super) fn data(read: bool, len: u32) -> Self {
        Self { kind: Some(if read { PartKind::Read } else { PartKind::Write }), len }
    }

    /// Of a write at `start` of its extent: whole blocks, or a part of one.
    pub(super) fn write(start: u32, left: u32) -> Self {
        let skew = start % 4096;
        let len =
            if skew == 0 && left >= 4096 { left / 4096 * 4096 } else { left.min(4096 - skew) };
        Self::data(false, len)
    }

    /// Of a range to be zeroed, `start` and `left` in its extent: whole blocks, or the edge before them.
    pub(super) fn zero(edges: bool, start: u32, left: u32) -> Self {
        let skew = start % 4096;
        if skew == 0 && left >= 4096 {
            return Self { kind: Some(PartKind::Zero), len: left / 4096 * 4096 };
        }
        let len = left.min(4096 - skew);
        Self { kind: edges.then_some(PartKind::WriteZeros), len }
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// Moves a part as far as it goes.
    pub(super) fn advance(&mut self, part: u32) {
        let own = self.parts[index(part)];
        match own.step {
            Step::Free => {}
            Step::Lock => {
                self.parts[index(part)].queued = false;
                if !self.locks.conflicts(part, &self.parts) {
                    self.parts[index(part)].step = Step::Begin;
                    self.begin(part);
                }
            }
            Step::Begin => self.begin(part),
            // What devices said can be judged while all stands still, but not before disks that failed
            // are out.
            Step::Sums | Step::OldRead | Step::Reading | Step::Writing
                if !self.trouble.is_empty() =>
            {
                self.held.push_back(part);
            }
            Step::Sums => self.sums_read(part),
            Step::OldRead => self.old_read_done(part),
            Step::Reading => self.read_done(part),
            Step::Writing => self.write_done(part),
            // Its record is under way, or it is in line; or it is held by a move.
            Step::Logging | Step::Held => {}
            Step::Appended => {
                if self.halted.is_some() {
                    self.end_part(part, Some(EIO));
                } else if own.lsn <= self.core.journal.appended {
                    self.end_part(part, None);
                } else {
                    self.appended_wait.push_back(part);
                }
            }
        }
    }

    pub(super) fn begin(&mut self, part: u32) {
        if self.parts[index(part)].kind.moves() {
            self.parts[index(part)].step = Step::Held;
            return;
        }
        if self.halted.is_some() {
            self.drop_slots(part);
            self.end_part(part, Some(EIO));
            return;
        }
        if self.frozen {
            self.held.push_back(part);
            return;
        }
        if self.waits_for_sums(part) {
            return;
        }
        match self.parts[index(part)].kind {
            PartKind::Read => self.begin_read(part),
            PartKind::Write | PartKind::WriteZeros => self.begin_write(part),
            PartKind::Zero => self.begin_zero(part),
            PartKind::Destage | PartKind::DestageZero => self.begin_destage(part),
            PartKind::Move | PartKind::Leave => {}
        }
    }

    /// A device I/O of a part has ended.
    pub(super) fn part_done(
        &mut self,
        part: u32,
        copy: u8,
        slot: u32,
        outcome: Result<u32, Errno>,
    ) {
        let own = &mut self.parts[index(part)];
        own.left -= 1;
        if outcome.is_ok() {
            own.ok |= 1 << copy;
        } else {
            own.failed |= 1 << copy;
        }
        let (step, left, disk) = (own.step, own.left, own.copies.at[usize::from(copy)].0);
        let alone = own.copies.count == 1;
        if step == Step::Writing {
            own.slots[usize::from(copy)] = NONE;
            self.core.io.give_data_slot(slot);
            self.slot_freed();
            // Of a disk that owes answers it is known already, and what it alone was to take is on nobody else.
            let known = alone && self.core.io.owes_write(disk);
            if outcome.is_err() && !known {
                self.trouble.push(disk);
            }
        }
        if step != Step::Writing && self.core.io.is_abandoned(slot) {
            let own = &mut self.parts[index(part)];
            own.slots.iter_mut().filter(|own| **own == slot).for_each(|own| *own = NONE);
        }
        if left == 0 {
            self.ready.push_back(part);
        }
    }

    /// Gives back the slots that a part holds without I/O.
    pub(super) fn drop_slots(&mut self, part: u32) {
        for copy in 0..3 {
            let slot = std::mem::replace(&mut self.parts[index(part)].slots[copy], NONE);
            if slot != NONE {
                self.core.io.give_data_slot(slot);
                self.slot_freed();
            }
        }
    }

    /// Waits for so many slots; if disks that hang keep all of them, it fails, once these are done without: it may need fewer then.
    pub(super) fn wait_for_slots(&mut self, part: u32, count: usize) {
        if self.core.io.may_have(count) {
            self.slot_wait.push_back(part);
        } else if !self.trouble.is_empty() && !active(Mutation::HungNotReplaced) {
            self.held.push_back(part);
        } else {
            self.end_part(part, Some(EIO));
        }
    }

    pub(super) fn slot_freed(&mut self) {
        self.ready.extend(self.slot_wait.pop_front());
    }

    /// Who was woken for a slot may have ended without one: the next may have it.
    pub(super) fn pass_on_slots(&mut self) {
        if !self.slot_wait.is_empty() && self.core.io.data_slots_free() > 0 {
            self.slot_freed();
        }
    }
}
