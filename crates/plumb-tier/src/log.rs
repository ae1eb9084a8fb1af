//! A write-back cache's log in memory: which blocks it holds, where, and how far its tail may move.
//!
//! A line is the newest record of a block. It lives until the tail has passed it, durably: as long as it
//! does, reads take it from the log and writes to its block go to the log (6.1 rule 2).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use plumb_units::convert::{index, to_u32, to_u64, to_usize};

use crate::extents::Copies;
use crate::format::frame::{Link, Record};
use crate::format::log::LogRange;
use crate::format::{BLOCK_BYTES, CacheConfig, Geometry};
use crate::mutation::{Mutation, active};

/// How far a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineState {
    /// Its home has an older value.
    Dirty,
    /// Somebody is to copy it home.
    Destaging,
    /// Its home was written, and is not known to be durable.
    Home,
    /// Its home is durable, and its checksum committed.
    Clean,
}

/// The newest record of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) lsn: u64,
    /// Of its data in the ring, virtual.
    pub(crate) position: u64,
    /// Its checksum; 0 when the block is unwritten.
    pub(crate) crc: u32,
    pub(crate) state: LineState,
}

/// A record between tail and head.
#[derive(Debug, Default)]
pub(crate) struct LogRecord {
    /// What it follows: its LSN and position, and the chain before it.
    pub(crate) link: Option<Link>,
    pub(crate) ranges: Vec<LogRange>,
    /// Its lines that are not clean.
    pub(crate) dirty: u32,
    /// Reads from it under way: they hold its space.
    pub(crate) readers: u32,
    /// The tail has passed it.
    pub(crate) passed: bool,
}

/// What the running round makes durable.
#[derive(Debug, Clone, Copy)]
struct Sealed {
    flushed: u64,
    tail: Link,
    /// So many of the lines at home.
    home: usize,
}

/// Block numbers need no more than one multiplication to be strewn.
#[derive(Debug, Default, Clone)]
pub(crate) struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// The log of one virtual disk's cache.
#[derive(Debug)]
pub(crate) struct Log {
    /// Of the header's checksum: the virtual disk's identity.
    pub(crate) seed: u32,
    pub(crate) ring_bytes: u64,
    slab_bytes: u64,
    /// Where the next record goes.
    pub(crate) link: Link,
    /// Durable: a start reads from here.
    pub(crate) tail: Link,
    /// Durable on all live copies up to this record.
    pub(crate) flushed: u64,
    /// Records from that position on have that epoch at least.
    pub(crate) head: (u64, u32),
    /// It was not read yet, or an append failed on every copy: nothing is added until the next start.
    pub(crate) closed: bool,
    /// No current copy of it is here: what it holds is not known.
    pub(crate) is_away: bool,
    pub(crate) records: VecDeque<LogRecord>,
    lines: HashMap<u64, Line, BuildHasherDefault<BlockHasher>>,
    /// Written to their homes since the last round began, or before: block and LSN.
    home: Vec<(u64, u64)>,
    sealed: Option<Sealed>,
    /// Up to which record its copies alone are being flushed.
    through: Option<u64>,
    /// Up to which record the journal was told that it is durable.
    told: u64,
    spare: Vec<Vec<LogRange>>,
    /// Lines that are not clean.
    pub(crate) dirty: u64,
    /// Lines that were cleaned since the start: copied home, and written over before that.
    pub(crate) evicted: [u64; 2],
    /// How often the tail moved since the start.
    pub(crate) advances: u64,
    /// How often the journal took down how far its records are durable.
    pub(crate) checkpoints: u64,
}

impl Log {
    pub(crate) fn new(config: &CacheConfig, geometry: &Geometry, seed: u32) -> Self {
        let start = Link { lsn: 1, position: 0, chain: 0, epoch: 0 };
        let slabs = to_u64(config.copies.first().map_or(0, |copy| copy.slabs.len()));
        let ring_bytes = config.bytes.min(slabs * geometry.slab_bytes);
        let lines = to_usize(ring_bytes / BLOCK_BYTES);
        Self {
            seed,
            ring_bytes,
            slab_bytes: geometry.slab_bytes,
            link: start,
            tail: start,
            flushed: 0,
            head: (0, 0),
            closed: !active(Mutation::LogClosedUnread),
            is_away: false,
            records: VecDeque::new(),
            lines: HashMap::with_capacity_and_hasher(lines, BuildHasherDefault::default()),
            home: Vec::new(),
            sealed: None,
            through: None,
            told: 0,
            spare: Vec::new(),
            dirty: 0,
            evicted: [0; 2],
            advances: 0,
            checkpoints: 0,
        }
    }

    #[inline]
    pub(crate) fn line(&self, block: u64) -> Option<&Line> {
        if self.lines.is_empty() {
            return None;
        }
        self.lines.get(&block)
    }

    /// Whether any block of a run has a line: then it must not be written but through the log.
    pub(crate) fn overlaps(&self, mut blocks: std::ops::Range<u64>) -> bool {
        let live = |block| {
            self.line(block).is_some_and(|line| {
                !active(Mutation::CleanWrittenDirectly) || line.state != LineState::Clean
            })
        };
        !self.lines.is_empty() && blocks.any(live)
    }

    /// Blocks with lines.
    pub(crate) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Bytes from the durable tail, or from an older record that is being read, to the head.
    pub(crate) fn used(&self) -> u64 {
        let oldest = self.records.front().and_then(|record| record.link);
        let start = oldest.map_or(self.tail.position, |link| link.position.min(self.tail.position));
        self.link.position - start
    }

    /// Bytes from a position on that lie beside each other.
    pub(crate) fn contiguous(&self, position: u64) -> u64 {
        let at = position % self.ring_bytes;
        (self.slab_bytes - at % self.slab_bytes).min(self.ring_bytes - at)
    }

    /// Bytes left before the ring goes on elsewhere: records lie in one slab.
    fn left(&self) -> u64 {
        self.contiguous(self.link.position)
    }

    /// Bytes of a pad before a record of `span` bytes, 0 for none.
    pub(crate) fn pad(&self, span: u64) -> u64 {
        if span > self.left() { self.left() } else { 0 }
    }

    /// Whether a record of `span` bytes fits. With `reserve` it may use what is kept for writes over live
    /// lines: 6.25 %.
    pub(crate) fn has_room(&self, span: u64, reserve: bool) -> bool {
        let kept = if reserve { 0 } else { (self.ring_bytes / 16).max(BLOCK_BYTES * 2) };
        let fits = self.used() + self.pad(span) + span + kept <= self.ring_bytes;
        !self.closed && (fits || active(Mutation::LogOverrun))
    }

    /// Where the byte at that virtual position lies: slab of a copy, and offset in it.
    fn place(&self, position: u64) -> (usize, u64) {
        let at = position % self.ring_bytes;
        (to_usize(at / self.slab_bytes), at % self.slab_bytes)
    }

    /// Bytes that are contiguous on its disks from a position on.
    pub(crate) fn room(&self, position: u64) -> u64 {
        self.slab_bytes - self.place(position).1
    }

    /// Where the copies of a position lie, whether current or not.
    pub(crate) fn locate(
        &self,
        config: &CacheConfig,
        geometry: &Geometry,
        position: u64,
    ) -> Copies {
        let (slab, offset) = self.place(position);
        let mut at = [(0, 0); 3];
        for (place, copy) in at.iter_mut().zip(&config.copies) {
            *place = (copy.disk, geometry.slab(copy.slabs[slab]) + offset);
        }
        Copies { at, count: u8::try_from(config.copies.len().min(3)).unwrap_or(3) }
    }

    /// A record is on all live copies: its blocks' lines are its own. `positions` of its data follow its
    /// header.
    pub(crate) fn admit(&mut self, link: Link, ranges: &[LogRange], sums: &[u32]) {
        let mut own = self.spare.pop().unwrap_or_default();
        own.clear();
        own.extend_from_slice(ranges);
        self.records.push_back(LogRecord {
            link: Some(link),
            ranges: own,
            dirty: 0,
            readers: 0,
            passed: false,
        });
        let mut position = link.position + BLOCK_BYTES;
        let mut sums = sums.iter();
        for range in ranges {
            for block in range.block..range.block + u64::from(range.count) {
                let crc = if range.zeros { 0 } else { sums.next().copied().unwrap_or(0) };
                let line = Line { lsn: link.lsn, position, crc, state: LineState::Dirty };
                let old = self.lines.insert(block, line);
                if let Some(old) = old.filter(|old| old.state != LineState::Clean) {
                    self.evicted[1] += 1;
                    self.cleaned(old.lsn);
                }
                self.dirty += 1;
                if let Some(record) = self.records.back_mut() {
                    record.dirty += 1;
                }
                position += if range.zeros { 0 } else { BLOCK_BYTES };
            }
        }
    }

    fn record_mut(&mut self, lsn: u64) -> Option<&mut LogRecord> {
        let first = self.records.front()?.link?.lsn;
        self.records.get_mut(to_usize(lsn.checked_sub(first)?))
    }

    fn cleaned(&mut self, lsn: u64) {
        self.dirty = self.dirty.saturating_sub(1);
        if let Some(record) = self.record_mut(lsn) {
            record.dirty = record.dirty.saturating_sub(1);
        }
    }

    /// A read of that record begins, or ends.
    pub(crate) fn pin(&mut self, lsn: u64) {
        if let Some(record) = self.record_mut(lsn) {
            record.readers += 1;
        }
    }

    pub(crate) fn unpin(&mut self, lsn: u64) {
        if let Some(record) = self.record_mut(lsn) {
            record.readers = record.readers.saturating_sub(1);
        }
        self.drop_passed();
    }

    /// Sets how far a line is, short of home.
    pub(crate) fn set_state(&mut self, block: u64, state: LineState) {
        if let Some(line) = self.lines.get_mut(&block) {
            line.state = state;
        }
    }

    /// A block's home has what its line says.
    pub(crate) fn set_home(&mut self, block: u64) {
        if let Some(line) = self.lines.get_mut(&block) {
            line.state = LineState::Home;
            self.home.push((block, line.lsn));
        }
    }

    /// Lines at home that wait for a round, and whether the tail could move.
    pub(crate) fn wants_round(&self) -> (usize, bool) {
        let passable =
            self.records.front().is_some_and(|record| record.dirty == 0 && !record.passed);
        (self.home.len(), passable)
    }

    /// The tail may go that far once all copies are flushed: up to the first record with a line that is not
    /// clean. Superseded lines count as clean, for the flush makes what superseded them durable (WBC-2).
    fn passable(&self) -> Link {
        let stays = |record: &&LogRecord| {
            let limit = u32::from(active(Mutation::TailPassesDirty));
            !record.passed && record.dirty > limit
        };
        self.records.iter().find(stays).and_then(|record| record.link).unwrap_or(self.link)
    }

    /// A round begins: devices will be flushed, and all that is on them now is durable then.
    pub(crate) fn seal(&mut self) {
        let flushed = self.link.lsn - 1;
        self.sealed = Some(Sealed { flushed, tail: self.passable(), home: self.home.len() });
    }

    /// The devices were flushed: what has to be in the journal.
    pub(crate) fn records_of_round(&mut self, vdisk: u16) -> impl Iterator<Item = Record> + use<> {
        let sealed = self.sealed;
        let known = self.flushed.max(self.told);
        let flushed = sealed.map(|sealed| sealed.flushed).filter(|lsn| *lsn > known);
        self.told = flushed.unwrap_or(self.told);
        let tail = match active(Mutation::TailUnsealed) {
            true => sealed.map(|_| self.passable()),
            false => sealed.map(|sealed| sealed.tail),
        };
        let tail = tail.filter(|link| link.lsn > self.tail.lsn);
        let flushed = flushed.map(|lsn| Record::LogFlushed { vdisk, lsn });
        let tail = tail.map(|link| Record::LogTail { vdisk, link });
        flushed.into_iter().chain(tail)
    }

    /// The journal is durable: lines at home are clean, the tail has moved.
    pub(crate) fn end_round(&mut self) {
        let Some(sealed) = self.sealed.take() else { return };
        self.checkpoints += u64::from(sealed.flushed > self.flushed);
        self.flushed = self.flushed.max(sealed.flushed);
        let mut home = std::mem::take(&mut self.home);
        for (block, lsn) in home.drain(..sealed.home.min(home.len())) {
            let newest = active(Mutation::NewLineCleaned);
            let same =
                |line: &&mut Line| line.lsn == lsn && line.state == LineState::Home || newest;
            let line = self.lines.get_mut(&block).filter(same);
            if let Some(line) = line.filter(|line| line.state != LineState::Clean) {
                line.state = LineState::Clean;
                let lsn = line.lsn;
                self.evicted[0] += 1;
                self.cleaned(lsn);
            }
        }
        self.home = home;
        if sealed.tail.lsn > self.tail.lsn {
            self.tail = sealed.tail;
            self.advances += 1;
            self.pass();
        }
    }

    /// Forgets the lines of the records before the tail, and frees their space.
    fn pass(&mut self) {
        for nth in 0..self.records.len() {
            let record = &mut self.records[nth];
            let Some(link) = record.link.filter(|link| link.lsn < self.tail.lsn) else { break };
            if std::mem::replace(&mut record.passed, true) {
                continue;
            }
            let ranges = std::mem::take(&mut record.ranges);
            for range in &ranges {
                for block in range.block..range.block + u64::from(range.count) {
                    if self.lines.get(&block).is_some_and(|line| line.lsn == link.lsn) {
                        self.lines.remove(&block);
                    }
                }
            }
            self.spare.push(ranges);
        }
        self.drop_passed();
    }

    fn drop_passed(&mut self) {
        let gone = |record: &LogRecord| {
            record.passed && (record.readers == 0 || active(Mutation::ReadUnpinned))
        };
        while self.records.front().is_some_and(gone) {
            self.records.pop_front();
        }
    }

    /// Lines to copy home next: those of so many bytes of the ring, from the oldest that is not under way on.
    pub(crate) fn oldest(&self, into: &mut Vec<u64>, bytes: u64) {
        let mut reach = u64::MAX;
        for record in self.records.iter().filter(|record| record.dirty > 0 && !record.passed) {
            let Some(link) = record.link else { continue };
            if link.position > reach {
                return;
            }
            for range in &record.ranges {
                into.extend((range.block..range.block + u64::from(range.count)).filter(|block| {
                    let line = self.lines.get(block);
                    line.is_some_and(|l| l.lsn == link.lsn && l.state == LineState::Dirty)
                }));
            }
            if !into.is_empty() {
                reach = reach.min(link.position + bytes);
            }
        }
    }

    /// A record that a start found: like [`Log::admit`], and the log goes on behind it.
    pub(crate) fn recovered(&mut self, link: Link, ranges: &[LogRange], sums: &[u32], next: Link) {
        self.admit(link, ranges, sums);
        self.link = next;
    }

    /// The first record from that one on that the tail has not passed: what it follows, and those of its blocks with data whose newest
    /// record it is.
    pub(crate) fn record_from(&self, lsn: u64) -> Option<(Link, Vec<(u64, Line)>)> {
        // They have the numbers one after the other.
        let first = self.records.front()?.link?.lsn;
        let from = to_usize(lsn.saturating_sub(first)).min(self.records.len());
        let record = self.records.range(from..).find(|own| !own.passed)?;
        let link = record.link?;
        let blocks = record.ranges.iter().filter(|range| !range.zeros);
        let blocks = blocks.flat_map(|range| range.block..range.block + u64::from(range.count));
        let newest = |block: u64| {
            let line = self.lines.get(&block).filter(|line| line.lsn == link.lsn)?;
            (line.crc != 0).then_some((block, *line))
        };
        Some((link, blocks.filter_map(newest).collect()))
    }

    /// One of the blocks with data in the log, the oldest first: which one `nth` says.
    pub(crate) fn block_with_data(&self, nth: usize) -> Option<u64> {
        let newest = |block: &u64, lsn: u64| {
            self.lines.get(block).is_some_and(|line| line.lsn == lsn && line.crc != 0)
        };
        let blocks = || {
            let records = self.records.iter().filter_map(|own| Some((own, own.link?.lsn)));
            records.flat_map(move |(own, lsn)| {
                let all = own.ranges.iter();
                let all = all.flat_map(|range| range.block..range.block + u64::from(range.count));
                all.filter(move |block| newest(block, lsn))
            })
        };
        let count = blocks().count();
        (count > 0).then(|| blocks().nth(nth % count)).flatten()
    }

    /// What is flushed now is not taken for durable.
    pub(crate) fn unseal(&mut self) {
        self.sealed = None;
        self.through = None;
    }

    /// Its copies will be flushed, beside rounds; `false` if it has nothing that is not durable.
    pub(crate) fn seal_through(&mut self) -> bool {
        let last = self.link.lsn - 1;
        self.through = (last > self.flushed).then_some(last);
        self.through.is_some()
    }

    /// They were flushed: what has to be in the journal.
    pub(crate) fn record_through(&mut self, vdisk: u16) -> Option<Record> {
        let lsn = self.through.filter(|lsn| *lsn > self.told.max(self.flushed))?;
        self.told = lsn;
        Some(Record::LogFlushed { vdisk, lsn })
    }

    /// The journal is durable.
    pub(crate) fn end_through(&mut self) {
        let Some(lsn) = self.through.take() else { return };
        self.checkpoints += u64::from(lsn > self.flushed);
        self.flushed = self.flushed.max(lsn);
    }

    /// Whatever a start found of it is not known any more.
    pub(crate) fn forget(&mut self) {
        self.records.clear();
        self.lines.clear();
        (self.dirty, self.link) = (0, self.tail);
        (self.is_away, self.closed) = (true, true);
        (self.through, self.told) = (None, 0);
    }

    /// The state that a checkpoint carries. It stands for all records of the journal so far, and what one of these says is so already,
    /// whether it is durable or not: copies are flushed before.
    pub(crate) fn snapshot(&self, vdisk: u16) -> [Record; 3] {
        let (position, epoch) = self.head;
        let lsn = self.flushed.max(self.told);
        [
            Record::LogTail { vdisk, link: self.tail },
            Record::LogHead { vdisk, position, epoch },
            Record::LogFlushed { vdisk, lsn },
        ]
    }

    /// How full it is, in sixteenths.
    pub(crate) fn fill(&self) -> u32 {
        to_u32(to_usize(self.used() * 16 / self.ring_bytes.max(1)))
    }

    /// Blocks that fit one record.
    pub(crate) fn blocks_max(&self, buffer: u32) -> usize {
        let ring = to_usize(self.ring_bytes.min(self.slab_bytes) / BLOCK_BYTES / 2);
        (index(buffer) / 4096).min(ring).saturating_sub(1)
    }
}
