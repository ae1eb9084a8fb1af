//! Which generations each block of a target may hold, while many requests read and write it.
//!
//! A block's generations count its writes in the order in which they are issued. Writes to one block that
//! are in flight together may reach the medium in either order, so a block holds *one of* a range of
//! generations. Its lower end, the floor, is what verification rests on:
//!
//! - when a write is issued, `oldest` is the oldest generation of that block in flight, itself included;
//! - when it is acknowledged, everything before `oldest` had been completed before it was issued, so
//!   nothing older may be read any more: the floor rises to `oldest`;
//! - a read remembers the floor when it is issued: what it returns must not be older.
//!
//! A write that failed, or that a crash cut off, raises no floor: old and new content are both right until
//! a later write is acknowledged. Nothing waits for anything: verified I/O overlaps as unverified I/O does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plumb_units::convert::{self, index, low_u32};

use super::findings::{KINDS, Kind};
use super::sector::Identity;
use super::state::StateTarget;

/// Blocks per region: what one lock covers, and what is allocated at a time.
const REGION: u32 = 1024;
const REGION_LEN: usize = index(REGION);

/// Blocks whose floors are recorded in one call.
const RECORDED_AT_ONCE: usize = 256;

/// A target under verification, shared by all threads that work on it.
#[derive(Debug)]
pub struct Space {
    path: String,
    history: u64,
    number: u64,
    block: u32,
    blocks: u64,
    size: u64,
    /// The first generation of this session.
    first: u32,
    regions: Box<[Mutex<Region>]>,
    state: Option<StateTarget>,
    record_failed: AtomicBool,
    exhausted: AtomicBool,
    acknowledged: AtomicU64,
    checked: AtomicU64,
    mismatches: [AtomicU64; KINDS],
}

/// Where a space stands, beside its blocks.
#[derive(Debug)]
pub(super) struct SpaceSpec {
    pub(super) path: String,
    pub(super) history: u64,
    pub(super) number: u64,
    pub(super) block: u32,
    pub(super) blocks: u64,
    pub(super) size: u64,
    pub(super) first: u32,
    pub(super) state: Option<StateTarget>,
}

#[derive(Debug, Default)]
struct Region {
    /// `None` before the first write.
    blocks: Option<Box<Blocks>>,
    /// Writes in flight, by block of the region.
    active: Vec<(u32, u32)>,
    /// The newest failed write of a block that was not written successfully since.
    failed: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct Blocks {
    /// 0: nothing is known.
    floors: [u32; REGION_LEN],
    /// The last generation issued in this session, 0 for none.
    issued: [u32; REGION_LEN],
}

/// What an I/O remembers of one block that it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ticket {
    /// A write: its generation. A read: the floor when it was issued.
    pub(super) generation: u32,
    /// A write: the oldest in flight. A read: the last generation issued before it.
    pub(super) other: u32,
    /// A read: whether a write to the block was in flight at any time during it.
    pub(super) overlapped: bool,
    /// A read: whether a failed write may have left a damaged sector.
    pub(super) unsettled: bool,
}

impl Space {
    pub(super) fn new(spec: SpaceSpec) -> Self {
        let blocks = spec.blocks;
        let regions = (0..blocks.div_ceil(REGION.into())).map(|_| Mutex::default());
        Self {
            path: spec.path,
            history: spec.history,
            number: spec.number,
            block: spec.block,
            blocks,
            size: spec.size,
            first: spec.first,
            regions: regions.collect(),
            state: spec.state,
            record_failed: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            checked: AtomicU64::new(0),
            mismatches: Default::default(),
        }
    }

    /// Most bytes of memory that a target takes of which `used` bytes are used, when all of them are written: 8 per block,
    /// and a lock for every 1024 blocks.
    #[must_use]
    pub fn memory(used: u64, block: u32) -> u64 {
        let blocks = used / u64::from(block.max(1));
        let lock = convert::to_u64(size_of::<Mutex<Region>>());
        blocks.saturating_mul(8).saturating_add(blocks.div_ceil(REGION.into()).saturating_mul(lock))
    }

    /// As the target was named.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its number in the history, as sectors carry it.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of a block: writes cover whole ones, and each has a generation.
    #[must_use]
    pub fn block(&self) -> u32 {
        self.block
    }

    /// Bytes of the target.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of it that may be written: its first ones.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.blocks * u64::from(self.block)
    }

    /// Bytes of acknowledged writes in this session.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Bytes that were read and compared with what had been written.
    #[must_use]
    pub fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    /// Mismatches found so far, by kind.
    #[must_use]
    pub fn mismatches(&self, kind: Kind) -> u64 {
        self.mismatches[kind.place()].load(Ordering::Relaxed)
    }

    /// Whether a block has been written more often than generations can count: verification of that block
    /// no longer tells its last writes apart.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// Whether an acknowledgement could not be recorded in the state file.
    #[must_use]
    pub fn record_failed(&self) -> bool {
        self.record_failed.load(Ordering::Relaxed)
    }

    pub(super) fn count_checked(&self, bytes: u64) {
        self.checked.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn count_mismatch(&self, kind: Kind) {
        self.mismatches[kind.place()].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn identity(&self, offset: u64) -> Identity {
        Identity { history: self.history, target: self.number, offset }
    }

    /// The newest generation that can have been issued.
    pub(super) fn newest(&self) -> u32 {
        self.state.as_ref().map_or(u32::MAX, StateTarget::lease)
    }

    /// Writes that cover blocks of `offset..offset + len` begin; a ticket for each of them.
    ///
    /// # Panics
    /// When the write does not cover whole blocks of the target: the caller promised it does.
    pub(super) fn begin_write(&self, offset: u64, len: u32, tickets: &mut Vec<Ticket>) {
        let (from, to) = self.blocks_of(offset, len);
        let block = u64::from(self.block);
        let whole = offset.is_multiple_of(block) && u64::from(len).is_multiple_of(block);
        assert!(
            whole && to <= self.blocks,
            "a verified write covers whole blocks of {block} bytes"
        );
        tickets.clear();
        self.by_region(from, to, |region, _, within| {
            let Region { blocks, active, .. } = &mut *region;
            let blocks = blocks.get_or_insert_with(Blocks::unwritten);
            for place in within {
                let last = blocks.issued[index(place)];
                let generation = last.saturating_add(1).max(self.first);
                if last == u32::MAX {
                    self.exhausted.store(true, Ordering::Relaxed);
                }
                blocks.issued[index(place)] = generation;
                let of_block = active.iter().filter(|(at, _)| *at == place);
                let oldest = of_block.map(|(_, active)| *active).min();
                let oldest = oldest.map_or(generation, |oldest| oldest.min(generation));
                active.push((place, generation));
                tickets.push(Ticket { generation, other: oldest, ..Ticket::default() });
            }
        });
        let last = tickets.iter().map(|ticket| ticket.generation).max();
        if let (Some(state), Some(last)) = (&self.state, last)
            && state.extend_lease(last).is_err()
        {
            self.record_failed.store(true, Ordering::Relaxed);
        }
    }

    /// The write whose tickets these are has ended; its first `moved` bytes are on the target.
    pub(super) fn end_write(&self, offset: u64, len: u32, moved: u32, tickets: &[Ticket]) {
        let (from, to) = self.blocks_of(offset, len);
        let whole = u64::from(moved / self.block);
        let mut tickets = tickets.iter();
        self.by_region(from, to, |region, base, within| {
            let Region { blocks, active, failed } = &mut *region;
            let blocks = blocks.get_or_insert_with(Blocks::unwritten);
            let first = within.start;
            let mut raised = 0;
            for place in within {
                let ticket = tickets.next().expect("a ticket for every block");
                let this = (place, ticket.generation);
                if let Some(at) = active.iter().position(|active| *active == this) {
                    active.swap_remove(at);
                }
                if base + u64::from(place) < from + whole {
                    let floor = &mut blocks.floors[index(place)];
                    *floor = (*floor).max(ticket.other);
                    failed.retain(|(at, newest)| *at != place || *newest >= ticket.other);
                    raised += 1;
                } else {
                    failed.retain(|(at, newest)| *at != place || *newest > ticket.generation);
                    failed.push(this);
                }
            }
            // Under the lock: floors are recorded in the order in which they rise.
            let floors = &blocks.floors[index(first)..index(first) + raised];
            self.record(base + u64::from(first), floors);
        });
        self.acknowledged.fetch_add(whole * u64::from(self.block), Ordering::Relaxed);
    }

    fn record(&self, first: u64, floors: &[u32]) {
        let Some(state) = &self.state else { return };
        let mut bytes = [0; 4 * RECORDED_AT_ONCE];
        let mut at = first;
        for some in floors.chunks(RECORDED_AT_ONCE) {
            for (to, floor) in bytes.chunks_exact_mut(4).zip(some) {
                to.copy_from_slice(&floor.to_le_bytes());
            }
            if state.record(at, &bytes[..4 * some.len()]).is_err() {
                self.record_failed.store(true, Ordering::Relaxed);
            }
            at += convert::to_u64(some.len());
        }
    }

    /// A read begins: what may be read from the blocks that it touches.
    pub(super) fn begin_read(&self, offset: u64, len: u32, tickets: &mut Vec<Ticket>) {
        let (from, to) = self.blocks_of(offset, len);
        tickets.clear();
        self.by_region(from, to, |region, _, within| {
            for place in within {
                tickets.push(match &region.blocks {
                    None => Ticket::default(),
                    Some(blocks) => Ticket {
                        generation: blocks.floors[index(place)],
                        other: blocks.issued[index(place)],
                        overlapped: region.active.iter().any(|(at, _)| *at == place),
                        unsettled: region.failed.iter().any(|(at, _)| *at == place),
                    },
                });
            }
        });
    }

    /// The read has ended: completes its tickets with what happened meanwhile.
    pub(super) fn end_read(&self, offset: u64, len: u32, tickets: &mut [Ticket]) {
        let (from, to) = self.blocks_of(offset, len);
        let mut tickets = tickets.iter_mut();
        self.by_region(from, to, |region, _, within| {
            for place in within {
                let ticket = tickets.next().expect("a ticket for every block");
                if let Some(blocks) = &region.blocks {
                    ticket.overlapped |= blocks.issued[index(place)] != ticket.other;
                    ticket.unsettled |= region.failed.iter().any(|(at, _)| *at == place);
                }
            }
        });
    }

    /// A quiet block was read whole and holds nothing older than `generation`: nor may it later in this
    /// session.
    pub(super) fn seen(&self, offset: u64, generation: u32) {
        let (from, to) = self.blocks_of(offset, self.block);
        self.by_region(from, to, |region, _, within| {
            if let Some(blocks) = &mut region.blocks {
                let floor = &mut blocks.floors[index(within.start)];
                *floor = (*floor).max(generation);
            }
        });
    }

    /// Takes over floors of an earlier session, from block `first` on.
    pub(super) fn remember(&self, first: u64, floors: &[u32]) {
        let count = convert::to_u64(floors.len());
        let mut floors = floors.iter();
        self.by_region(first, first + count, |region, _, within| {
            let own = index(within.end - within.start);
            let some = &floors.as_slice()[..own];
            if some.iter().any(|floor| *floor > 0) {
                let blocks = region.blocks.get_or_insert_with(Blocks::unwritten);
                blocks.floors[index(within.start)..index(within.end)].copy_from_slice(some);
            }
            floors = floors.as_slice()[own..].iter();
        });
    }

    /// The target was made anew: nothing that was acknowledged is expected any more. Nothing may be in
    /// flight.
    pub fn forget(&self) {
        self.by_region(0, self.blocks, |region, base, within| {
            region.failed.clear();
            if let Some(blocks) = &mut region.blocks {
                blocks.floors.fill(0);
                self.record(base, &blocks.floors[..index(within.end)]);
            }
        });
    }

    /// Blocks that hold something acknowledged.
    #[must_use]
    pub fn written_blocks(&self) -> u64 {
        let known = |region: &Mutex<Region>| {
            lock(region).blocks.as_ref().map_or(0, |blocks| {
                convert::to_u64(blocks.floors.iter().filter(|floor| **floor > 0).count())
            })
        };
        self.regions.iter().map(known).sum()
    }

    /// The first run of acknowledged blocks at or behind `from`, `most` of them at most, as
    /// (first, end).
    pub(super) fn next_written(&self, from: u64, most: u64) -> Option<(u64, u64)> {
        let mut start = None;
        let region_size = u64::from(REGION);
        let mut at = from;
        while at < self.blocks {
            let region = lock(&self.regions[convert::to_usize(at / region_size)]);
            let region_end = (at / region_size + 1) * region_size;
            match &region.blocks {
                None => {
                    if let Some(start) = start {
                        return Some((start, at));
                    }
                    at = region_end;
                }
                Some(blocks) => {
                    for place in at..region_end.min(self.blocks) {
                        let is_written = blocks.floors[convert::to_usize(place % region_size)] > 0;
                        match start {
                            None if is_written => start = Some(place),
                            Some(start) if !is_written || place - start >= most => {
                                return Some((start, place));
                            }
                            _ => {}
                        }
                    }
                    at = region_end;
                }
            }
        }
        start.map(|start| (start, self.blocks))
    }

    /// Blocks that the bytes touch, as far as the target has whole ones.
    fn blocks_of(&self, offset: u64, len: u32) -> (u64, u64) {
        let block = u64::from(self.block);
        let to = offset.saturating_add(len.into()).div_ceil(block);
        (offset / block, to)
    }

    /// Goes through the regions of blocks `from..to`: the region, its first block, and which of its
    /// blocks. Blocks behind the end of the target have no region; there are none.
    fn by_region(
        &self,
        from: u64,
        to: u64,
        mut each: impl FnMut(&mut Region, u64, std::ops::Range<u32>),
    ) {
        let size = u64::from(REGION);
        let (mut at, to) = (from, to.min(self.blocks));
        while at < to {
            let base = at / size * size;
            let end = to.min(base + size);
            let mut region = lock(&self.regions[convert::to_usize(base / size)]);
            each(&mut region, base, low_u32(at - base)..low_u32(end - base));
            at = end;
        }
    }
}

impl Blocks {
    fn unwritten() -> Box<Self> {
        Box::new(Self { floors: [0; REGION_LEN], issued: [0; REGION_LEN] })
    }
}

fn lock(region: &Mutex<Region>) -> MutexGuard<'_, Region> {
    region.lock().unwrap_or_else(PoisonError::into_inner)
}
