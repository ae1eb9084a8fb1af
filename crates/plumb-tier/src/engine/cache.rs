//! The write-back cache: small writes that are aimed at the second tier go to its log (6.1, 6.2).
//!
//! One record is in flight per log; writes that come meanwhile share the next. So records end in the order
//! of their LSNs, and what is acknowledged never lies behind a hole (WBC-1).

use std::collections::VecDeque;

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_u64};

use super::part::{NONE, PartKind, Step};
use super::streams::Streams;
use super::{Account, EIO, Engine};
use crate::extents::is_second_tier;
use crate::format::checksum;
use crate::format::frame::Link;
use crate::format::log::{self, LogRange};
use crate::format::{BLOCK_BYTES, BLOCK_LEN};
use crate::log::Log;
use crate::mutation::{Mutation, active};

/// Longer requests go home (6.1 rule 5).
const REQUEST_MAX: u32 = 256 << 10;
/// Ranges of a part that zeroes, at most; if there are more they are taken for one.
const ZERO_RANGES: usize = 64;
/// A cache that was full is full no more when less of it is used, in sixteenths.
const FULL_UNTIL: u32 = 14;
/// Writes over live lines that find no room for so long fail (WBC-4). A disk that hangs is waited for first, and once more at a flush
/// where it holds the last copy of something; then the log goes on without it.
const ROOM_TIME_OUTS: u64 = 3;

/// A record on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    link: Link,
    next: Link,
    /// It only fills the rest of a slab.
    pad: bool,
    pub(super) left: u32,
    /// Copies that have it.
    pub(super) ok: u8,
}

/// The requests' side of a log.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Parts for the next records, in order.
    pub(super) line: VecDeque<u32>,
    /// Parts that must go to the log and find no room.
    pub(super) room_wait: VecDeque<u32>,
    /// Clients whose writes are in the log and must be durable, by the record that has to be.
    pub(super) through: VecDeque<(u64, u32)>,
    pub(super) flight: Option<Flight>,
    /// Of the record in flight.
    parts: Vec<u32>,
    ranges: Vec<LogRange>,
    sums: Vec<u32>,
    buffer: Vec<u8>,
    /// Blocks to copy home, in order of their homes.
    pub(super) queue: VecDeque<u64>,
    /// Room to put it in order: blocks, and where their homes are.
    pub(super) oldest: Vec<u64>,
    pub(super) order: Vec<(u32, u64)>,
    /// Parts that copy home.
    pub(super) destaging: u32,
    /// After an error: when to try again.
    pub(super) retry: Nanos,
    pub(super) streams: Streams,
    /// Where the tail was seen last, and since when.
    tail_seen: (u64, Nanos),
    /// A write found no room, and since then it has not been empty enough to speak of.
    is_full: bool,
    /// How often it became so.
    pub(super) times_full: u64,
}

impl Cache {
    /// Whether a record can begin: parts are in line, and none is in flight.
    pub(super) fn has_work(&self) -> bool {
        self.flight.is_none() && !self.line.is_empty()
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// Blocks that the write-back cache of a virtual disk holds, destaged or not.
    #[must_use]
    pub fn cached_blocks(&self, vdisk: u32) -> usize {
        self.core.logs.get(index(vdisk)).and_then(Option::as_ref).map_or(0, Log::lines)
    }

    /// One of the blocks whose data a write-back cache holds, counted over its virtual disk: which one `nth` says.
    pub(crate) fn cached_block(&self, vdisk: u32, nth: u32) -> Option<u64> {
        self.core.logs.get(index(vdisk))?.as_ref()?.block_with_data(index(nth))
    }

    pub(super) fn new_caches(core: &crate::core::Core<Q>) -> Vec<Option<Cache>> {
        let bytes = index(core.io.plan().log_bytes());
        let own = |log: &Option<Log>| {
            log.as_ref().map(|_| Cache { buffer: vec![0; bytes], ..Cache::default() })
        };
        core.logs.iter().map(own).collect()
    }

    #[inline]
    pub(super) fn log_of(&self, extent: u32) -> Option<&Log> {
        self.core.logs[self.core.vdisk(extent)].as_ref()
    }

    pub(super) fn cache_mut(&mut self, extent: u32) -> Option<&mut Cache> {
        let vdisk = self.core.vdisk(extent);
        self.caches[vdisk].as_mut()
    }

    /// Whether a block of the part has a live line: then it must go to the log (6.1 rule 2).
    pub(super) fn overlaps_lines(&self, part: u32) -> bool {
        let own = &self.parts[index(part)];
        let Some(log) = self.log_of(own.extent) else { return false };
        let (first, end) = own.blocks();
        let base = self.block_of_vdisk(own.extent, 0);
        log.overlaps(base + u64::from(first)..base + u64::from(end))
            && !active(Mutation::LinesIgnored)
    }

    /// Whether a write that need not go to the log does (6.1 rule 5).
    pub(super) fn admits(&mut self, part: u32) -> bool {
        let own = self.parts[index(part)];
        let client = &self.clients[index(own.client)];
        is_second_tier(self.core.extents.place(own.extent))
            && client.request.len <= REQUEST_MAX
            && !client.sequential
            && self.finds_room(own.extent, own.log_span(), false)
    }

    /// Whether a record of `span` bytes fits, and notes when none does any more.
    fn finds_room(&mut self, extent: u32, span: u64, reserve: bool) -> bool {
        let vdisk = self.core.vdisk(extent);
        let (Some(cache), Some(log)) = (&mut self.caches[vdisk], &self.core.logs[vdisk]) else {
            return false;
        };
        let fits = log.has_room(span, reserve);
        if !fits && !cache.is_full {
            cache.times_full += 1;
        }
        // One write's worth of room comes and goes while it is destaged.
        cache.is_full = !fits || cache.is_full && log.fill() >= FULL_UNTIL;
        fits
    }

    /// Puts a part in line for the log, with the old content around it if it needs that.
    pub(super) fn begin_logging(&mut self, part: u32) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let span = own.log_span();
        let Some(log) = self.log_of(own.extent) else { return };
        if log.closed {
            self.drop_slots(part);
            self.end_part(part, Some(EIO));
            return;
        }
        if !self.finds_room(own.extent, span, true) {
            self.wait_for_room(part);
            return;
        }
        if own.kind != PartKind::Zero && !own.has_old && self.needs_old(part) {
            if self.waits_for_settling(part) {
                return;
            }
            if own.slots[0] == NONE {
                let Some(slot) = self.core.io.take_data_slot() else {
                    // All or none: it may hold another one.
                    self.drop_slots(part);
                    self.wait_for_slots(part, 1);
                    return;
                };
                self.parts[index(part)].slots[0] = slot;
            }
            self.aim(part, first, end);
            self.read_copy(part, Step::OldRead);
            return;
        }
        self.parts[index(part)].step = Step::Logging;
        self.parts[index(part)].cached = true;
        if let Some(cache) = self.cache_mut(own.extent) {
            cache.line.push_back(part);
        }
    }

    /// Whether a part writes less than its block, and there is something in the rest of it.
    pub(super) fn needs_old(&self, part: u32) -> bool {
        let own = &self.parts[index(part)];
        let (first, _) = own.blocks();
        if own.covers(first) {
            return false;
        }
        let base = self.block_of_vdisk(own.extent, first);
        let line = self.log_of(own.extent).and_then(|log| log.line(base));
        let home = self.core.extents.get(own.extent).sums.get(index(first));
        match line.filter(|_| !active(Mutation::LinesIgnored)) {
            Some(line) => line.crc != 0,
            None => home.is_some_and(|sum| sum.newest != 0),
        }
    }

    /// Without its lock: what must be destaged to make room may be the very blocks that it writes.
    fn wait_for_room(&mut self, part: u32) {
        self.forget_old(part);
        let now = self.now;
        let extent = self.parts[index(part)].extent;
        self.locks.leave(part, &mut self.parts, &mut self.ready);
        self.parts[index(part)].step = Step::Lock;
        if let Some(cache) = self.cache_mut(extent) {
            if cache.room_wait.is_empty() {
                cache.tail_seen.1 = now;
            }
            cache.room_wait.push_back(part);
        }
    }

    /// A copy of a record was written, or was not.
    pub(super) fn record_written(&mut self, vdisk: u16, copy: u8, disk: u16, good: bool) {
        if !good {
            self.trouble.push(disk);
        }
        let cache = self.caches[usize::from(vdisk)].as_mut();
        if let Some(flight) = cache.and_then(|cache| cache.flight.as_mut()) {
            flight.left = flight.left.saturating_sub(1);
            flight.ok |= u8::from(good) << copy;
        }
    }

    /// Whether a copy that takes part has the record in flight.
    fn has_record(&self, vdisk: usize, flight: Flight) -> bool {
        self.core.members.log_copies(vdisk).any(|(copy, _)| flight.ok >> copy & 1 == 1)
    }

    /// Nothing is in flight: logs whose record no copy has are closed (WBC-1).
    pub(super) fn close_logs(&mut self) {
        for vdisk in 0..self.caches.len() {
            let flight = self.caches[vdisk].as_ref().and_then(|cache| cache.flight);
            if flight.is_some_and(|flight| !self.has_record(vdisk, flight)) {
                self.core.close_log(vdisk);
            }
        }
    }

    /// Moves all logs on.
    pub(super) fn pump_logs(&mut self) {
        self.begin_waiting_records();
        for vdisk in 0..self.caches.len() {
            if self.caches[vdisk].is_none() {
                continue;
            }
            self.finish_record(vdisk);
            if self.frozen || self.halted.is_some() {
                continue;
            }
            self.wake_for_room(vdisk);
            if self.may_begin_record(vdisk) {
                self.start_record(vdisk);
            }
            self.destage(vdisk);
        }
    }

    /// A record has ended on all its copies, and disks that failed are out.
    fn finish_record(&mut self, vdisk: usize) {
        let Some(cache) = &mut self.caches[vdisk] else { return };
        let Some(flight) = cache.flight else { return };
        let early = active(Mutation::LogFirstCopy) && flight.ok != 0;
        if !early && (flight.left > 0 || !self.trouble.is_empty()) {
            return;
        }
        cache.flight = None;
        let good = self.has_record(vdisk, flight);
        let Some(cache) = &mut self.caches[vdisk] else { return };
        if let Some(log) = self.core.logs[vdisk].as_mut().filter(|_| good) {
            if !flight.pad {
                log.admit(flight.link, &cache.ranges, &cache.sums);
                self.core.counters.cache_records += 1;
                self.core.counters.cache_blocks += to_u64(cache.sums.len());
            }
            log.link = flight.next;
        }
        let mut parts = std::mem::take(&mut cache.parts);
        for part in parts.drain(..) {
            if good {
                self.logged(part);
            } else {
                self.parts[index(part)].step = Step::Begin;
                self.ready.push_back(part);
            }
        }
        if let Some(cache) = &mut self.caches[vdisk] {
            // The list is used again.
            cache.parts = parts;
        }
    }

    /// The log has what a part writes.
    fn logged(&mut self, part: u32) {
        let own = &mut self.parts[index(part)];
        own.step = Step::Appended;
        if !own.is_background() {
            let (client, len, overlaps) = (own.client, own.len, own.overlaps);
            let time = self.seen.since(own.begun);
            let served = &mut self.clients[index(client)].served;
            served.add(Account::CacheWrite, len, time);
            if overlaps {
                served.add_overlapping(len);
            }
        }
        self.ready.push_back(part);
    }

    /// Puts together what waits, and writes it to all copies.
    pub(super) fn start_record(&mut self, vdisk: usize) {
        let Some(mut cache) = self.caches[vdisk].take_if(|cache| cache.has_work()) else { return };
        cache.ranges.clear();
        cache.sums.clear();
        if self.write_pad(vdisk, &mut cache) {
            self.caches[vdisk] = Some(cache);
            return;
        }
        let most = self.core.logs[vdisk]
            .as_ref()
            .map_or(0, |log| log.blocks_max(self.core.io.plan().log_bytes()));
        while let Some(&part) = cache.line.front() {
            if !self.take_part(vdisk, part, most, &mut cache) {
                break;
            }
        }
        if !cache.parts.is_empty() {
            self.write_record(vdisk, &mut cache);
        } else {
            self.write_pad(vdisk, &mut cache);
        }
        self.caches[vdisk] = Some(cache);
    }

    /// Takes the part that is first in line, into the record or out of line; `false` when the record is full.
    fn take_part(&mut self, vdisk: usize, part: u32, most: usize, cache: &mut Cache) -> bool {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let overlap = self.overlaps_lines(part);
        self.parts[index(part)].overlaps = overlap;
        let blocks = if own.kind == PartKind::Zero { 0 } else { index(end - first) };
        let span = BLOCK_BYTES * to_u64(1 + cache.sums.len() + blocks);
        let Some(log) = &self.core.logs[vdisk] else { return false };
        let fits = log.has_room(span, overlap);
        let ranges = if own.kind == PartKind::Zero { ZERO_RANGES } else { 1 };
        let small = cache.sums.len() + blocks <= most
            && log.pad(span) == 0
            && log::fits(cache.ranges.len() + ranges, cache.sums.len() + blocks);
        if (!small || !fits) && !cache.parts.is_empty() || fits && log.pad(span) > 0 {
            return false;
        }
        cache.line.pop_front();
        if !fits || (own.kind == PartKind::Zero && !overlap) {
            // It begins again: without room it goes home or waits, without lines it is zeroed there.
            self.forget_old(part);
            self.begin_again(part);
            return true;
        }
        if own.kind == PartKind::Zero {
            self.take_zeros(part, cache);
        } else {
            self.take_data(part, cache);
        }
        cache.parts.push(part);
        true
    }

    fn take_data(&mut self, part: u32, cache: &mut Cache) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let len = index(end - first) * BLOCK_LEN;
        let at = BLOCK_LEN * (1 + cache.sums.len());
        let target = &mut cache.buffer[at..at + len];
        if own.has_old {
            target.copy_from_slice(&self.core.io.data(own.slots[0])[..len]);
        } else if own.skew() != 0 || index(own.len) != len {
            target.fill(0);
        }
        let inner = &mut target[index(own.skew())..][..index(own.len)];
        if own.kind == PartKind::WriteZeros {
            inner.fill(0);
        } else {
            self.memory.read(own.client, own.buffer, inner);
        }
        let seed = self.core.members.data_seeds[self.core.vdisk(own.extent)];
        let block = self.block_of_vdisk(own.extent, first);
        let numbered = (block..).zip(target.chunks(BLOCK_LEN));
        cache.sums.extend(numbered.map(|(block, bytes)| checksum::block(seed, block, bytes)));
        cache.ranges.push(LogRange { block, count: end - first, zeros: false });
        self.drop_slots(part);
    }

    /// Of a range that is zeroed the blocks with lines go to the log (WBC-8), the others are zeroed at home.
    fn take_zeros(&mut self, part: u32, cache: &mut Cache) {
        let own = self.parts[index(part)];
        let (first, end) = own.blocks();
        let base = self.block_of_vdisk(own.extent, 0);
        let before = cache.ranges.len();
        let mut block = first;
        while block < end {
            let live = |block: u32| {
                self.log_of(own.extent)
                    .is_some_and(|log| log.line(base + u64::from(block)).is_some())
            };
            let is_live = live(block);
            let to = (block..end).find(|other| live(*other) != is_live).unwrap_or(end);
            if is_live {
                let range = base + u64::from(block);
                cache.ranges.push(LogRange { block: range, count: to - block, zeros: true });
            } else {
                let lsn = self.zero_home(own.extent, block, to);
                self.parts[index(part)].lsn = lsn.max(self.parts[index(part)].lsn);
            }
            block = to;
        }
        if cache.ranges.len() - before > ZERO_RANGES {
            let (low, high) = (cache.ranges[before], cache.ranges[cache.ranges.len() - 1]);
            let count = high.block + u64::from(high.count) - low.block;
            cache.ranges.truncate(before);
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            cache.ranges.push(LogRange { block: low.block, count, zeros: true });
        }
    }

    /// Fills the rest of a slab if the part that is first in line does not fit there.
    fn write_pad(&mut self, vdisk: usize, cache: &mut Cache) -> bool {
        let (Some(&part), Some(log)) = (cache.line.front(), &self.core.logs[vdisk]) else {
            return false;
        };
        let span = self.parts[index(part)].log_span();
        let pad = log.pad(span);
        if pad == 0 || !log.has_room(span, true) {
            return false;
        }
        let link = self.next_link(log);
        let crc = log::encode_pad(&mut cache.buffer, log.seed, &link, pad);
        let next = Link { position: link.position + pad, chain: crc, ..link };
        self.push_record(vdisk, cache, (next, true, BLOCK_LEN));
        true
    }

    /// What the next record follows, with the epoch that it has.
    fn next_link(&self, log: &Log) -> Link {
        Link { epoch: self.core.members.epoch.max(log.link.epoch), ..log.link }
    }

    fn write_record(&mut self, vdisk: usize, cache: &mut Cache) {
        let Some(log) = &self.core.logs[vdisk] else { return };
        let len = BLOCK_LEN * (1 + cache.sums.len());
        let link = self.next_link(log);
        let buffer = &mut cache.buffer;
        let crc = log::encode(buffer, log.seed, &link, &cache.ranges, &cache.sums);
        let position = link.position + to_u64(len);
        let next = Link { lsn: link.lsn + 1, position, chain: crc, ..link };
        self.push_record(vdisk, cache, (next, false, len));
        if active(Mutation::AckBeforeLog) {
            cache.parts.drain(..).for_each(|part| self.logged(part));
        }
    }

    /// Begins to write the first `len` bytes of the buffer to all copies that take part.
    fn push_record(&mut self, vdisk: usize, cache: &mut Cache, record: (Link, bool, usize)) {
        let (next, pad, len) = record;
        let members = &self.core.members;
        let (Some(log), Some(config)) =
            (&self.core.logs[vdisk], &members.config.vdisks[vdisk].cache)
        else {
            return;
        };
        let mut flight = Flight { link: log.link, next, pad, left: 0, ok: 0 };
        let places = log.locate(config, &members.geometry, log.link.position);
        let takes_part = |place: &(u8, u16, u64)| {
            members.log_copies(vdisk).any(|live| live == (place.0, place.1))
        };
        for (copy, disk, offset) in places.iter().filter(takes_part) {
            let tag = (u16::try_from(vdisk).unwrap_or(u16::MAX), copy, disk);
            if self.core.io.push_log(tag, offset, &cache.buffer[..len]) {
                flight.left += 1;
            } else {
                self.trouble.push(disk);
            }
        }
        cache.flight = Some(flight);
    }

    /// Disks are out that kept logs from moving: those who wait for room get all their time once more.
    pub(super) fn wait_for_room_anew(&mut self) {
        let now = self.now;
        if !active(Mutation::RoomGivenUpEarly) {
            self.caches.iter_mut().flatten().for_each(|cache| cache.tail_seen.1 = now);
        }
    }

    /// The engine stood for so long: nobody could make room meanwhile.
    pub(super) fn stood(&mut self, took: Nanos) {
        if !active(Mutation::RoomGivenUpEarly) {
            let since = self.caches.iter_mut().flatten().map(|cache| &mut cache.tail_seen.1);
            since.for_each(|since| *since = Nanos(since.0.saturating_add(took.0)));
        }
    }

    /// Lets parts try again for which there is room now; those that waited too long fail.
    fn wake_for_room(&mut self, vdisk: usize) {
        let now = self.now;
        let (Some(cache), Some(log)) = (&mut self.caches[vdisk], &self.core.logs[vdisk]) else {
            return;
        };
        let Some(&first) = cache.room_wait.front() else { return };
        if cache.tail_seen.0 != log.tail.lsn {
            cache.tail_seen = (log.tail.lsn, now);
        }
        let span = self.parts[index(first)].log_span();
        let early = active(Mutation::RoomGivenUpEarly);
        let time_out = self.core.io.plan().time_out;
        let most = if early { time_out } else { Nanos(ROOM_TIME_OUTS * time_out.0) };
        let late = now.since(cache.tail_seen.1) >= most;
        if log.closed || late || log.has_room(span, true) {
            // Each once: none of them waits again before its turn comes.
            for _ in 0..cache.room_wait.len() {
                let cache = self.caches[vdisk].as_mut();
                let Some(part) = cache.and_then(|cache| cache.room_wait.pop_front()) else { break };
                if late {
                    self.locks.enter(part, &mut self.parts);
                    self.end_part(part, Some(EIO));
                } else {
                    self.enter_again(part);
                }
            }
        }
    }

    /// A part that waited for room queues for its lock again.
    fn enter_again(&mut self, part: u32) {
        self.locks.enter(part, &mut self.parts);
        self.parts[index(part)].queued = true;
        self.ready.push_back(part);
    }

    /// Nothing goes on: parts in line are to be told.
    pub(super) fn fail_lines(&mut self) {
        let mut waits = Vec::new();
        for cache in self.caches.iter_mut().flatten() {
            for part in cache.line.drain(..) {
                self.parts[index(part)].step = Step::Begin;
                self.ready.push_back(part);
            }
            waits.extend(cache.room_wait.drain(..));
        }
        waits.into_iter().for_each(|part| self.enter_again(part));
    }

    /// Notes a request that writes, for what is sequential.
    pub(super) fn note_stream(&mut self, client: u32) {
        let own = &mut self.clients[index(client)];
        let request = own.request;
        let cache = self.caches[index(request.vdisk)].as_mut();
        own.sequential =
            cache.is_some_and(|cache| cache.streams.note(request.offset, u64::from(request.len)));
    }

    /// Bytes of a part of a write, at most: a record of the log must hold it.
    pub(super) fn part_max(&self, vdisk: usize) -> u32 {
        let data = self.core.io.plan().data_bytes;
        let log = self.core.logs[vdisk].as_ref();
        let most = log.map(|log| to_u32(log.blocks_max(self.core.io.plan().log_bytes())));
        most.map_or(data, |blocks| data.min(blocks.max(1) * 4096))
    }
}
