//! The memory of one queue: a buffer per slot and lane, shared write sources, and which slots are in
//! flight.
//!
//! ```text
//! region 0   | lane 0: slot 0, slot 1, … | lane 1: slot 0, slot 1, … |      one block each
//! region 1   | lane 2: slot 4, … | lane 3: slot 4, … |
//! ```
//!
//! A slot in flight belongs to whoever performs its I/O, all its lanes included; an idle one to the
//! issuer. Everything here that reaches a buffer asks first.

use std::ptr::NonNull;
use std::sync::Arc;

use plumb_units::convert::{index, to_u64, to_usize};
use rustix::io::Errno;

use crate::memory::{Block, BufferPlacement};

/// One allocation, cut into lanes that follow each other without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionSpec {
    /// Its lanes, in address order.
    pub lanes: Vec<LaneSpec>,
}

impl RegionSpec {
    /// Bytes of all its lanes; `None` above 2^64 - 1.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let lanes = self.lanes.iter().map(|lane| u64::from(lane.slots) * u64::from(lane.bytes));
        lanes.into_iter().try_fold(0_u64, u64::checked_add)
    }
}

/// Buffers of `bytes` each for the slots `first_slot .. first_slot + slots`, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneSpec {
    /// First slot covered.
    pub first_slot: u32,
    /// How many slots.
    pub slots: u32,
    /// Bytes per slot.
    pub bytes: u32,
}

/// Bytes that writes are taken from, shared read-only between slots (and threads, unless separated).
#[derive(Debug)]
pub struct WriteSource {
    block: Block,
}

impl WriteSource {
    /// Page-aligned memory of `len` bytes, zeroed, then filled by `fill`.
    ///
    /// # Errors
    /// When the memory is refused.
    pub fn new(len: u64, fill: impl FnOnce(&mut [u8])) -> Result<Self, Errno> {
        let mut block = Block::new(len, BufferPlacement::System)?;
        fill(block.bytes_mut());
        Ok(Self { block })
    }

    /// The content.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.block.bytes()
    }
}

/// One I/O, in plain numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Memory to file, instead of file to memory.
    pub write: bool,
    /// Index of the file.
    pub file: u32,
    /// Which request it belongs to.
    pub slot: u32,
    /// Bytes to move.
    pub len: u32,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Where in memory.
    pub memory: Place,
}

/// Where the bytes of a transfer lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The start of the slot's buffer in this lane.
    Lane(u32),
    /// In a shared source; writes only.
    Source {
        /// Index of the source.
        source: u32,
        /// Bytes from its start.
        offset: u64,
    },
}

/// Memory was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaError {
    /// Bytes of the block that could not be had.
    pub bytes: u64,
    /// What the kernel said.
    pub errno: Errno,
    /// Whether large pages were asked for.
    pub large_pages: bool,
}

/// Registered buffers with the kernel hold no more than this.
pub(crate) const PIECE_MAX: u64 = 1 << 30;
/// Sources above [`PIECE_MAX`] are registered in overlapping pieces, one every so many bytes, so that
/// every I/O up to this long lies within one.
const SOURCE_STRIDE: u64 = PIECE_MAX / 2;
/// Not registered.
const NO_PIECE: u32 = u32::MAX;

/// The memory of one queue.
#[derive(Debug)]
pub struct Arena {
    lanes: Box<[Lane]>,
    sources: Box<[Source]>,
    in_flight: Box<[bool]>,
    /// Alignment in force, 0 for none.
    separation: u64,
    /// Why separation was given up.
    unseparated: Option<Errno>,
    /// What the addresses point into; nothing else refers to it while the arena lives.
    _blocks: Vec<Block>,
    _shared: Vec<Arc<WriteSource>>,
}

/// A lane in address form.
#[derive(Debug, Clone, Copy)]
struct Lane {
    base: NonNull<u8>,
    first_slot: u32,
    slots: u32,
    bytes: u32,
    /// Registered buffer of its first slot, or [`NO_PIECE`].
    first_piece: u32,
    /// log2 of the slots per registered buffer.
    piece_shift: u32,
}

#[derive(Debug, Clone, Copy)]
struct Source {
    base: NonNull<u8>,
    len: u64,
    first_piece: u32,
}

/// A range of memory to register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) address: NonNull<u8>,
    pub(crate) len: u64,
}

/// Where a transfer's bytes are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Located {
    pub(crate) address: NonNull<u8>,
    /// The registered buffer that holds them, if one does.
    pub(crate) piece: Option<u16>,
}

// SAFETY: the pointers lead into blocks that the arena owns or shares read-only; nothing is bound to
// a thread.
unsafe impl Send for Arena {}

impl Arena {
    /// Allocates and touches everything, from the calling thread. When the address space for
    /// separated buffers is refused they are put anywhere, and [`Arena::unseparated`] says so.
    ///
    /// # Errors
    /// When memory is refused.
    ///
    /// # Panics
    /// When a lane covers a slot that does not exist.
    pub fn new(
        depth: u32,
        regions: &[RegionSpec],
        sources: &[Arc<WriteSource>],
        placement: BufferPlacement,
    ) -> Result<Self, ArenaError> {
        match Self::placed(depth, regions, sources, placement) {
            Err(error) if matches!(placement, BufferPlacement::Separated(_)) => {
                let plain = Self::placed(depth, regions, sources, BufferPlacement::System)?;
                Ok(Self { unseparated: Some(error.errno), ..plain })
            }
            other => other,
        }
    }

    fn placed(
        depth: u32,
        regions: &[RegionSpec],
        sources: &[Arc<WriteSource>],
        placement: BufferPlacement,
    ) -> Result<Self, ArenaError> {
        let large_pages = placement == BufferPlacement::LargePages;
        let mut blocks = Vec::new();
        let block = |bytes: Option<u64>| {
            let bytes = bytes.unwrap_or(u64::MAX);
            let mut block = Block::new(bytes, placement).map_err(|errno| ArenaError {
                bytes,
                errno,
                large_pages,
            })?;
            block.touch();
            Ok(block)
        };
        let mut lanes = Vec::new();
        for region in regions {
            let memory = block(region.bytes())?;
            lay_lanes(&memory, region, depth, &mut lanes);
            blocks.push(memory);
        }
        let mut views = Vec::with_capacity(sources.len());
        for source in sources {
            let len = to_u64(source.bytes().len());
            let base = if matches!(placement, BufferPlacement::Separated(_)) {
                let mut copy = block(Some(len))?;
                copy.bytes_mut().copy_from_slice(source.bytes());
                let base = copy.base();
                blocks.push(copy);
                base
            } else {
                source.block.base()
            };
            views.push(Source { base, len, first_piece: NO_PIECE });
        }
        let separation = match placement {
            BufferPlacement::Separated(alignment) => alignment,
            BufferPlacement::System | BufferPlacement::LargePages => 0,
        };
        Ok(Self {
            lanes: lanes.into(),
            sources: views.into(),
            in_flight: vec![false; index(depth)].into(),
            separation,
            unseparated: None,
            _blocks: blocks,
            _shared: sources.to_vec(),
        })
    }

    /// Slots.
    #[must_use]
    pub fn depth(&self) -> u32 {
        plumb_units::convert::to_u32(self.in_flight.len())
    }

    /// The alignment of its blocks in force (spec 15.4), 0 for none.
    #[must_use]
    pub fn separation(&self) -> u64 {
        self.separation
    }

    /// Why the alignment asked for was given up, if it was.
    #[must_use]
    pub fn unseparated(&self) -> Option<Errno> {
        self.unseparated
    }

    /// Hands an idle slot to whoever performs its I/O.
    ///
    /// # Panics
    /// When it is in flight already, or does not exist.
    #[inline(always)]
    pub fn begin(&mut self, slot: u32) {
        match self.in_flight.get_mut(index(slot)) {
            Some(flag) if !*flag => *flag = true,
            other => refuse_slot(slot, other.is_some()),
        }
    }

    /// Hands a slot back to the issuer.
    ///
    /// # Panics
    /// When it does not exist.
    #[inline(always)]
    pub fn end(&mut self, slot: u32) {
        self.in_flight[index(slot)] = false;
    }

    /// Asserts that nobody performs an I/O of the slot.
    ///
    /// # Panics
    /// When it is in flight, or does not exist.
    #[inline(always)]
    pub fn assert_idle(&self, slot: u32) {
        match self.in_flight.get(index(slot)) {
            Some(false) => {}
            other => refuse_slot(slot, other.is_some()),
        }
    }

    /// The whole buffer of an idle slot.
    ///
    /// # Panics
    /// When the slot is in flight, or the lane does not cover it.
    #[inline]
    #[must_use]
    pub fn buffer_mut(&mut self, slot: u32, lane: u32) -> &mut [u8] {
        self.assert_idle(slot);
        let bytes = self.lanes.get(index(lane)).map_or(0, |lane| lane.bytes);
        let (address, _) = self.lane_address(slot, lane, bytes);
        // SAFETY: lane_address gave a range of `bytes` initialised bytes within a block of ours; the
        // slot is idle (asserted above), so neither kernel nor threads touch its buffers, lanes do not
        // overlap, and the borrow of self keeps the slot idle.
        unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), index(bytes)) }
    }

    /// The bytes that a write by an idle slot would take.
    ///
    /// # Panics
    /// When the slot is in flight or the transfer's memory lies elsewhere.
    #[inline]
    #[must_use]
    pub fn bytes_of(&self, transfer: &Transfer) -> &[u8] {
        self.assert_idle(transfer.slot);
        let located = self.locate(transfer);
        // SAFETY: locate gave a range of `len` initialised bytes of a block or source of ours; nobody
        // writes to it: sources are read-only and the slot is idle (asserted above).
        unsafe { std::slice::from_raw_parts(located.address.as_ptr(), index(transfer.len)) }
    }

    /// Asserts that the transfer's memory is the slot's own or a source's.
    ///
    /// # Panics
    /// When it is not.
    #[inline(always)]
    pub fn check(&self, transfer: &Transfer) {
        self.locate(transfer);
    }

    /// Where the transfer's bytes are.
    #[inline(always)]
    pub(crate) fn locate(&self, transfer: &Transfer) -> Located {
        match transfer.memory {
            Place::Lane(lane) => {
                let (address, piece) = self.lane_address(transfer.slot, lane, transfer.len);
                Located { address, piece }
            }
            Place::Source { source, offset } => {
                self.source_address(transfer.write, source, offset, transfer.len)
            }
        }
    }

    #[inline(always)]
    fn lane_address(&self, slot: u32, number: u32, len: u32) -> (NonNull<u8>, Option<u16>) {
        let Some(lane) = self.lanes.get(index(number)) else { refuse_lane(slot, number, len) };
        let nth = slot.wrapping_sub(lane.first_slot);
        if nth >= lane.slots || len > lane.bytes {
            refuse_lane(slot, number, len);
        }
        let piece = lane.first_piece.saturating_add(nth >> lane.piece_shift);
        // SAFETY: nth < slots (checked above) and the block holds slots · bytes bytes from base on.
        let address = unsafe { lane.base.add(index(nth) * index(lane.bytes)) };
        (address, u16::try_from(piece).ok())
    }

    #[inline(always)]
    fn source_address(&self, write: bool, number: u32, offset: u64, len: u32) -> Located {
        let bytes = u64::from(len);
        let source = match self.sources.get(index(number)) {
            Some(source) if source.holds(offset, bytes) && write => source,
            _ => refuse_source(write, number, offset, len),
        };
        // SAFETY: offset + len <= the source's length (checked above).
        let address = unsafe { source.base.add(to_usize(offset)) };
        Located { address, piece: source.piece(offset, bytes) }
    }

    /// Cuts all memory into pieces of at most [`PIECE_MAX`] bytes to be registered, and remembers their
    /// numbers: the pieces' order. Buffers longer than that stay unregistered.
    pub(crate) fn cut_pieces(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for lane in &mut self.lanes {
            let bytes = u64::from(lane.bytes);
            if bytes == 0 || bytes > PIECE_MAX || lane.slots == 0 {
                continue;
            }
            lane.first_piece = plumb_units::convert::to_u32(pieces.len());
            lane.piece_shift = (PIECE_MAX / bytes).ilog2().min(31);
            let step = 1_u64 << lane.piece_shift;
            let mut nth = 0;
            while nth < u64::from(lane.slots) {
                let slots = step.min(u64::from(lane.slots) - nth);
                // SAFETY: nth < slots, and the block holds slots · bytes bytes from base on.
                let address = unsafe { lane.base.add(to_usize(nth * bytes)) };
                pieces.push(Piece { address, len: slots * bytes });
                nth += step;
            }
        }
        for source in &mut self.sources {
            if source.len == 0 {
                continue;
            }
            source.first_piece = plumb_units::convert::to_u32(pieces.len());
            let mut start = 0;
            loop {
                let len = PIECE_MAX.min(source.len - start);
                // SAFETY: start < len of the source.
                let address = unsafe { source.base.add(to_usize(start)) };
                pieces.push(Piece { address, len });
                if start + len == source.len {
                    break;
                }
                start += SOURCE_STRIDE;
            }
        }
        pieces
    }

    /// Forgets all pieces: nothing is registered.
    pub(crate) fn forget_pieces(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.first_piece = NO_PIECE);
        self.sources.iter_mut().for_each(|source| source.first_piece = NO_PIECE);
    }
}

impl Source {
    #[inline(always)]
    fn holds(&self, offset: u64, len: u64) -> bool {
        offset <= self.len && len <= self.len - offset
    }

    /// The registered piece that holds the range, if one does.
    #[inline(always)]
    fn piece(&self, offset: u64, len: u64) -> Option<u16> {
        if self.first_piece == NO_PIECE {
            return None;
        }
        // The last piece reaches the end of the source, and there may be no further one.
        let last = self.len.saturating_sub(PIECE_MAX).div_ceil(SOURCE_STRIDE);
        let nth = (offset / SOURCE_STRIDE).min(last);
        let fits = offset + len <= nth * SOURCE_STRIDE + PIECE_MAX;
        let piece = u64::from(self.first_piece) + nth;
        u16::try_from(piece).ok().filter(|_| fits)
    }
}

/// Appends the lanes of `region`, whose memory is `block`.
fn lay_lanes(block: &Block, region: &RegionSpec, depth: u32, lanes: &mut Vec<Lane>) {
    let mut offset = 0;
    for lane in &region.lanes {
        let end = lane.first_slot.checked_add(lane.slots);
        assert!(
            end.is_some_and(|end| end <= depth),
            "a lane covers slots {}..{:?} of {depth}",
            lane.first_slot,
            end
        );
        // SAFETY: the block holds the sum of all lanes' bytes; offset is the sum of those before.
        let base = unsafe { block.base().add(to_usize(offset)) };
        offset += u64::from(lane.slots) * u64::from(lane.bytes);
        assert!(offset <= to_u64(block.bytes().len()), "the lanes fill their region");
        lanes.push(Lane {
            base,
            first_slot: lane.first_slot,
            slots: lane.slots,
            bytes: lane.bytes,
            first_piece: NO_PIECE,
            piece_shift: 31,
        });
    }
}

#[cold]
#[inline(never)]
fn refuse_slot(slot: u32, exists: bool) -> ! {
    assert!(exists, "slot {slot} does not exist");
    panic!("slot {slot} has an I/O in flight");
}

#[cold]
#[inline(never)]
fn refuse_lane(slot: u32, lane: u32, len: u32) -> ! {
    panic!("lane {lane} has no buffer of {len} bytes for slot {slot}");
}

#[cold]
#[inline(never)]
fn refuse_source(write: bool, source: u32, offset: u64, len: u32) -> ! {
    assert!(write, "a read cannot go to write source {source}");
    panic!("write source {source} has no {len} bytes at offset {offset}");
}

#[cfg(test)]
#[path = "arena_tests.rs"]
mod tests;
