//! Reading everything back.

use plumb_units::Nanos;
use plumb_units::convert::{index, low_u32};

use super::queue::VerifyQueue;
use super::space::Space;
use crate::{Errno, FileIndex, IoQueue, LaneIndex, Memory, Op, OpKind, Slot};

/// Bytes that a check reads at a time, as far as blocks are no larger.
const CHUNK: u32 = 256 << 10;
/// Bytes of each buffer of a check.
pub const BUFFER: u32 = CHUNK + (8 << 10);
/// Reads that a check keeps in flight.
pub const DEPTH: u32 = 8;
/// Offsets and ends of its reads are multiples of this: devices of every kind take them.
const ALIGN: u64 = 4096;

/// What a check did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checked {
    /// Acknowledged bytes that were read.
    pub bytes: u64,
    /// Acknowledged bytes that there are.
    pub of_bytes: u64,
    /// Whether all of them were gone through: nobody ended it.
    pub complete: bool,
    /// Acknowledged bytes that could not be read.
    pub unreadable_bytes: u64,
    /// The first of them.
    pub unreadable: Option<Unreadable>,
}

/// What could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable {
    /// In bytes from the start of the target.
    pub offset: u64,
    /// Why; `None`: the target ends before.
    pub errno: Option<Errno>,
}

impl Checked {
    /// Both.
    pub fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.of_bytes += other.of_bytes;
        self.complete &= other.complete;
        self.unreadable_bytes += other.unreadable_bytes;
        self.unreadable = self.unreadable.or(other.unreadable);
    }
}

/// Reads every block of `space` that holds something acknowledged, through `queue`: slots
/// `0..`[`DEPTH`], each with a buffer of [`BUFFER`] bytes in lane 0. `go_on` hears of every read how many
/// bytes are done and how many there are; false ends the check.
///
/// # Errors
/// When a submission itself failed. A block that cannot be read is counted.
pub fn check<Q: IoQueue + ?Sized>(
    queue: &mut VerifyQueue<'_, Q>,
    file: FileIndex,
    space: &Space,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Checked, Errno> {
    let block = u64::from(space.block());
    let most = (u64::from(CHUNK) / block).max(1);
    let mut checked =
        Checked { of_bytes: space.written_blocks() * block, complete: true, ..Checked::default() };
    let mut next = 0;
    // A part of a block that is larger than a read, or what is to be read again piece by piece.
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    let mut slots: Vec<Option<(u64, u64)>> = vec![None; index(DEPTH)];
    loop {
        for slot in 0..DEPTH {
            if slots[index(slot)].is_some() || !checked.complete {
                continue;
            }
            if pieces.is_empty()
                && let Some((first, end)) = space.next_written(next, most)
            {
                next = end;
                cut(first * block, end * block, CHUNK.into(), &mut pieces);
            }
            let Some((from, to)) = pieces.pop() else { break };
            let (start, end) = (from / ALIGN * ALIGN, to.next_multiple_of(ALIGN));
            slots[index(slot)] = Some((from, to));
            queue.push(Op {
                kind: OpKind::Read,
                file,
                slot: Slot(slot),
                len: low_u32(end - start),
                offset: start,
                memory: Memory::Lane(LaneIndex(0)),
            });
        }
        if slots.iter().all(Option::is_none) {
            return Ok(checked);
        }
        queue.submit_and_wait(1, Nanos::NEVER)?;
        for _ in 0..queue.look() {
            let Some(done) = queue.pop() else { break };
            let (from, to) = slots[index(done.slot.0)].take().expect("it was pushed");
            let start = from / ALIGN * ALIGN;
            let got = match done.outcome() {
                Ok(moved) => (start + u64::from(moved)).clamp(from, to),
                Err(_) => from,
            };
            checked.bytes += got - from;
            if got < to {
                if to - got > ALIGN {
                    // Smaller reads tell which part is to blame.
                    cut(got, to, ALIGN, &mut pieces);
                } else {
                    checked.unreadable_bytes += to - got;
                    let errno = done.outcome().err();
                    checked.unreadable.get_or_insert(Unreadable { offset: got, errno });
                }
            }
            if !go_on(checked.bytes + checked.unreadable_bytes, checked.of_bytes) {
                checked.complete = false;
            }
        }
    }
}

/// Puts `from..to` into `pieces`, in reads of `most` bytes at most that begin at multiples of [`ALIGN`]
/// where they can; the first one last.
fn cut(from: u64, to: u64, most: u64, pieces: &mut Vec<(u64, u64)>) {
    let begun = pieces.len();
    let mut at = from;
    while at < to {
        let end = (at / ALIGN * ALIGN + most.max(ALIGN)).min(to);
        pieces.push((at, end));
        at = end;
    }
    pieces[begun..].reverse();
}
