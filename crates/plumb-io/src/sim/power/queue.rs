//! The queue to simulated disks whose power can be cut.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_u64};

use super::image::{Image, PAGE_BYTES, Payload};
use super::media::{CrashKind, Media, Survivors, put_sectors};
use super::trace::{Event, Trace, WriteId};
use crate::sim::random::Random;
use crate::{
    Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind,
    QueueFacts, Slot,
};

const EIO: i32 = 5;
/// What a disk that is dead answers.
const ENODEV: i32 = 19;

/// How such a queue is made.
#[derive(Debug, Clone)]
pub struct PowerSpec {
    /// Determines service times, hence the order of completion, and what torn writes leave.
    pub seed: u64,
    /// Slots.
    pub depth: u32,
    /// Buffers.
    pub lanes: Vec<LaneSpec>,
    /// Bytes that are never torn.
    pub sector: u64,
    /// Shortest and longest service time.
    pub service: (Nanos, Nanos),
    /// Whether to record a [`Trace`].
    pub record: bool,
}

/// What goes wrong with one disk. Numbers count its I/Os (or flushes) from 0.
#[derive(Debug, Clone, Default)]
pub struct DiskFaults {
    /// From this I/O on, everything fails: the device is not there.
    pub dead_from: Option<u64>,
    /// From this one on it works again.
    pub dead_to: Option<u64>,
    /// From this I/O on, nothing completes.
    pub hangs_from: Option<u64>,
    /// From this one on they complete again; what hung stays so.
    pub hangs_to: Option<u64>,
    /// These I/Os fail if they are writes.
    pub write_errors: Vec<u64>,
    /// These I/Os, if they are writes, end without error before all is written: what their results say is there, and more may be.
    pub short_writes: Vec<u64>,
    /// Writes that touch one of these byte ranges fail.
    pub unwritable: Vec<(u64, u64)>,
    /// Reads that begin at the first of each give what is at the second.
    pub misread: Vec<(u64, u64)>,
    /// These flushes fail: the disk forgets some of what each was for, and does not say so again.
    pub flush_errors: Vec<u64>,
    /// So do these, and the disk keeps in its cache what they were for.
    pub refused_flushes: Vec<u64>,
    /// Reads that touch one of these byte ranges fail until the range is written.
    pub unreadable: Vec<(u64, u64)>,
    /// Reads that begin take so much longer: they give what is there at their end.
    pub slow_reads: Nanos,
}

impl DiskFaults {
    fn is_dead(&self, io: u64) -> bool {
        self.dead_from.is_some_and(|from| from <= io) && self.dead_to.is_none_or(|to| io < to)
    }

    fn hangs(&self, io: u64) -> bool {
        self.hangs_from.is_some_and(|from| from <= io) && self.hangs_to.is_none_or(|to| io < to)
    }
}

#[derive(Debug)]
struct Disk {
    view: Image,
    media: Media,
    faults: DiskFaults,
    ios: u64,
    flushes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Io(Op),
    Flush(FileIndex, Slot),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Serving {
    end: u64,
    nth: u32,
    disk: u32,
    slot: u32,
    what: What,
}

/// How a write ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Landing {
    Whole,
    Short,
    Failed,
}

/// How a flush ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Flushing {
    Done,
    /// It fails, and the cache keeps what it was for.
    Refused,
    /// It fails, and the cache forgets some of that.
    Forgets,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Read { lane: u32, offset: u64, len: u32, ok: bool },
    Write { offset: u64, payload: Payload, how: Landing },
    Flush { started: u64, how: Flushing },
}

/// A queue to simulated disks: file n is disk n. Time passes only while an issuer waits.
#[derive(Debug)]
pub struct PowerQueue {
    disks: Vec<Disk>,
    sector: u64,
    /// A buffer of each slot of a lane, empty until somebody touches it: most slots of a short run never are.
    buffers: Vec<(LaneSpec, Vec<Vec<u8>>)>,
    busy: Vec<bool>,
    line: Vec<Request>,
    serving: BinaryHeap<Reverse<Serving>>,
    /// Handed to a disk that hangs.
    hung: Vec<Serving>,
    done: VecDeque<Done>,
    counted: usize,
    now: u64,
    random: Random,
    service: (u64, u64),
    issued: u32,
    /// Writes that went beyond the end of their disk.
    beyond: u64,
    trace: Option<Trace>,
    /// After how many events a disk forgot what a flush was for that failed.
    forgotten: Vec<usize>,
    /// In how many waits from now on who waits stands still, and for how long.
    stall: Option<(u32, Nanos)>,
    /// Who waits has not asked since.
    stood: bool,
}

impl PowerQueue {
    /// Disks that hold `images`, all of it durable.
    #[must_use]
    pub fn new(spec: &PowerSpec, mut images: Vec<Image>) -> Self {
        let start = images.iter_mut().map(Image::fork).collect();
        let disk = |mut image: Image| Disk {
            media: Media::new(image.fork(), spec.sector),
            view: image,
            faults: DiskFaults::default(),
            ios: 0,
            flushes: 0,
        };
        Self {
            disks: images.into_iter().map(disk).collect(),
            sector: spec.sector,
            buffers: spec
                .lanes
                .iter()
                .map(|lane| (*lane, vec![Vec::new(); index(lane.slots)]))
                .collect(),
            busy: vec![false; index(spec.depth)],
            line: Vec::new(),
            serving: BinaryHeap::new(),
            hung: Vec::new(),
            done: VecDeque::new(),
            counted: 0,
            now: 0,
            random: Random::new(spec.seed),
            service: (spec.service.0.0, spec.service.1.0.max(spec.service.0.0)),
            issued: 0,
            beyond: 0,
            trace: spec.record.then(|| Trace { start, events: Vec::new() }),
            forgotten: Vec::new(),
            stall: None,
            stood: false,
        }
    }

    /// Whoever waits stands still for that long, as a process that is stopped and goes on, in the wait behind so many others: disks answer
    /// meanwhile, and the wait ends without a word of it.
    pub fn stall(&mut self, after: u32, time: Nanos) {
        self.stall = Some((after, time));
    }

    /// Writes so far that went beyond the end of their disk: they fail, and should not be asked for.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The virtual time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    /// Lets time pass without I/O.
    pub fn advance(&mut self, time: Nanos) {
        self.now += time.0;
    }

    /// What goes wrong with a disk from now on.
    pub fn faults_mut(&mut self, disk: u32) -> &mut DiskFaults {
        &mut self.disks[index(disk)].faults
    }

    /// How many I/Os a disk has begun.
    #[must_use]
    pub fn ios(&self, disk: u32) -> u64 {
        self.disks[index(disk)].ios
    }

    /// How many flushes a disk has begun.
    #[must_use]
    pub fn flushes(&self, disk: u32) -> u64 {
        self.disks[index(disk)].flushes
    }

    /// What a disk shows now, cache included.
    pub fn view(&mut self, disk: u32) -> Image {
        self.disks[index(disk)].view.fork()
    }

    /// How many events were recorded.
    #[must_use]
    pub fn events(&self) -> usize {
        self.trace.as_ref().map_or(0, |trace| trace.events.len())
    }

    /// After how many events disks have forgotten writes since this was asked last: each time what a flush was for that failed.
    pub fn take_forgotten(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.forgotten)
    }

    /// The record so far, and no more of it.
    pub fn take_trace(&mut self) -> Trace {
        self.trace.take().unwrap_or_default()
    }

    /// The disk works from now on; what it did not answer ends with errors, whether it was done or not.
    pub fn repair(&mut self, disk: u32) {
        self.disks[index(disk)].faults = DiskFaults::default();
        for serving in self.hung.extract_if(.., |one| one.disk == disk).collect::<Vec<_>>() {
            if let What::Write { offset, payload, .. } = &serving.what {
                self.land(disk, WriteId(serving.nth), (*offset, payload), Landing::Whole);
            }
            self.done.push_back(Done { slot: Slot(serving.slot), result: -EIO });
        }
    }

    /// The disk loses its cache, as when it was unplugged and plugged in again, and works from now on.
    pub fn drop_cache(&mut self, disk: u32, survivors: Survivors) {
        self.repair(disk);
        let seed = self.random.next();
        let own = &mut self.disks[index(disk)];
        let (mut image, _) = own.media.after_crash(CrashKind::Power, survivors, seed);
        own.media.replace(image.fork());
        own.view = image.fork();
        self.note(Event::Replaced { disk, image });
    }

    /// Writes behind the engine's back, durably: rot, or an operator's mistake.
    pub fn tamper(&mut self, disk: u32, offset: u64, bytes: &[u8]) {
        let own = &mut self.disks[index(disk)];
        own.view.write(offset, bytes);
        let mut image = own.view.fork();
        own.media.replace(image.fork());
        self.note(Event::Replaced { disk, image });
    }

    /// A bit of a page rots on a disk, behind the engine's back and whatever is under way. `false`, and nothing is done, where
    /// something that is not durable yet lies over that page.
    pub fn rot(&mut self, disk: u32, offset: u64, bit: u8) -> bool {
        let own = &mut self.disks[index(disk)];
        let page = offset / PAGE_BYTES * PAGE_BYTES;
        if !own.media.is_durable(page, PAGE_BYTES) {
            return false;
        }
        own.view.flip(offset, bit);
        own.media.rot(offset, bit);
        self.note(Event::Rotten { disk, offset, bit });
        true
    }

    fn note(&mut self, event: Event) {
        if let Some(trace) = &mut self.trace {
            trace.events.push(event);
        }
    }

    fn buffer(&mut self, slot: u32, lane: u32) -> &mut [u8] {
        let (spec, buffers) = &mut self.buffers[index(lane)];
        assert!(
            slot >= spec.first_slot && slot < spec.first_slot + spec.slots,
            "lane {lane} does not cover slot {slot}"
        );
        let buffer = &mut buffers[index(slot - spec.first_slot)];
        if buffer.is_empty() {
            buffer.resize(index(spec.bytes), 0);
        }
        buffer
    }

    fn submit(&mut self) {
        for request in std::mem::take(&mut self.line) {
            let (disk, slot) = match request {
                Request::Io(op) => (op.file.0, op.slot.0),
                Request::Flush(file, slot) => (file.0, slot.0),
            };
            let nth = self.issued;
            self.issued += 1;
            let what = match request {
                Request::Io(op) => self.begin(op, nth),
                Request::Flush(file, _) => self.begin_flush(file.0, nth),
            };
            let own = &self.disks[index(disk)];
            if own.ios.checked_sub(1).is_some_and(|io| own.faults.hangs(io)) {
                self.hung.push(Serving { end: 0, nth, disk, slot, what });
                continue;
            }
            let span = self.service.1 - self.service.0 + 1;
            let late = if matches!(what, What::Read { .. }) { own.faults.slow_reads.0 } else { 0 };
            let end = self.now + self.service.0 + self.random.next() % span + late;
            self.serving.push(Reverse(Serving { end, nth, disk, slot, what }));
        }
    }

    fn begin(&mut self, op: Op, nth: u32) -> What {
        let own = &mut self.disks[index(op.file.0)];
        let count = own.ios;
        own.ios += 1;
        let dead = own.faults.is_dead(count);
        let beyond = op.offset.saturating_add(op.len.into()) > own.view.size();
        self.beyond += u64::from(beyond && op.kind == OpKind::Write);
        let Memory::Lane(lane) = op.memory else { panic!("these disks know lanes only") };
        match op.kind {
            OpKind::Read => {
                let end = op.offset + u64::from(op.len);
                let bad = |&(from, to): &(u64, u64)| from < end && op.offset < to;
                let ok = !dead && !beyond && !own.faults.unreadable.iter().any(bad);
                let astray = own.faults.misread.iter().find(|read| read.0 == op.offset);
                let offset = astray.map_or(op.offset, |read| read.1);
                What::Read { lane: lane.0, offset, len: op.len, ok }
            }
            OpKind::Write => {
                let end = op.offset + u64::from(op.len);
                let bad = |&(from, to): &(u64, u64)| from < end && op.offset < to;
                let ok = !dead
                    && !beyond
                    && !own.faults.write_errors.contains(&count)
                    && !own.faults.unwritable.iter().any(bad);
                let bytes = &self.buffer(op.slot.0, lane.0)[..index(op.len)];
                let payload = Payload::new(op.offset, bytes);
                if !beyond {
                    let id = WriteId(nth);
                    let (disk, offset) = (op.file.0, op.offset);
                    self.disks[index(disk)].media.submit(id, offset, payload.clone());
                    self.note(Event::Write { disk, id, offset, payload: payload.clone() });
                }
                let short = self.disks[index(op.file.0)].faults.short_writes.contains(&count);
                let how = match (ok, short) {
                    (false, _) => Landing::Failed,
                    (true, true) => Landing::Short,
                    (true, false) => Landing::Whole,
                };
                What::Write { offset: op.offset, payload, how }
            }
        }
    }

    fn begin_flush(&mut self, disk: u32, nth: u32) -> What {
        let own = &mut self.disks[index(disk)];
        let count = own.ios;
        own.ios += 1;
        let dead = own.faults.is_dead(count);
        let forgets = own.faults.flush_errors.contains(&own.flushes);
        let refused = own.faults.refused_flushes.contains(&own.flushes);
        own.flushes += 1;
        let started = own.media.flush_started();
        let how = match (dead, forgets, refused) {
            (true, ..) if self.random.one_in(2) => Flushing::Forgets,
            (false, true, _) => Flushing::Forgets,
            (true, ..) | (false, _, true) => Flushing::Refused,
            (false, false, false) => Flushing::Done,
        };
        self.note(Event::Flush { disk, id: WriteId(nth) });
        What::Flush { started, how }
    }

    fn finish(&mut self, serving: Serving) {
        let Serving { nth, disk, slot, what, .. } = serving;
        let id = WriteId(nth);
        let result = match what {
            What::Read { lane, offset, len, ok } => {
                if ok {
                    let (spec, buffers) = &mut self.buffers[index(lane)];
                    let buffer = &mut buffers[index(slot - spec.first_slot)];
                    buffer.resize(index(spec.bytes), 0);
                    self.disks[index(disk)].view.read(offset, &mut buffer[..index(len)]);
                    i32::try_from(len).expect("lengths fit")
                } else {
                    -EIO
                }
            }
            What::Write { offset, payload, how } => self.land(disk, id, (offset, &payload), how),
            What::Flush { started, how: Flushing::Done } => {
                self.disks[index(disk)].media.flush_done(started);
                self.note(Event::Flushed { disk, id });
                0
            }
            What::Flush { how: Flushing::Refused, .. } => -EIO,
            What::Flush { started, how: Flushing::Forgets } => {
                let seed = self.random.next();
                self.note(Event::FlushFailed { disk, id, seed });
                let own = &mut self.disks[index(disk)];
                if own.media.flush_failed(started, seed) {
                    own.view = own.media.shown();
                    self.forgotten.push(self.events());
                }
                -EIO
            }
        };
        let own = &self.disks[index(disk)];
        let gone = own.faults.is_dead(own.ios.saturating_sub(1));
        let result = if gone && result < 0 { -ENODEV } else { result };
        self.done.push_back(Done { slot: Slot(slot), result });
    }

    fn land(
        &mut self,
        disk: u32,
        id: WriteId,
        (offset, payload): (u64, &Payload),
        how: Landing,
    ) -> i32 {
        let sector = self.sector;
        let len = to_u64(payload.bytes());
        let (mask, moved) = match how {
            Landing::Whole => (u64::MAX, Some(len)),
            Landing::Failed => (self.random.next() & self.random.next(), None),
            Landing::Short => {
                let left = self.random.next() % (len / sector).clamp(1, 63);
                ((1 << left) - 1, Some(left * sector))
            }
        };
        let own = &mut self.disks[index(disk)];
        if offset + len > own.view.size() {
            return -EIO;
        }
        if how == Landing::Whole {
            own.view.put(offset, payload);
            own.faults.unreadable.retain(|&(from, to)| from < offset || to > offset + len);
        } else {
            put_sectors(&mut own.view, offset, payload, (sector, mask));
        }
        own.media.complete(id, mask);
        self.note(Event::Written { disk, id, landed: mask });
        moved.map_or(-EIO, |moved| i32::try_from(moved).expect("lengths fit"))
    }

    /// Lets the next I/O end, if that is not after `limit`.
    fn step(&mut self, limit: u64) -> bool {
        match self.serving.peek() {
            Some(Reverse(next)) if next.end <= limit => {
                let Some(Reverse(next)) = self.serving.pop() else { return false };
                self.now = self.now.max(next.end);
                self.finish(next);
                true
            }
            _ => {
                if limit != u64::MAX {
                    self.now = self.now.max(limit);
                }
                false
            }
        }
    }
}

impl IoQueue for PowerQueue {
    fn push(&mut self, op: Op) {
        assert!(index(op.file.0) < self.disks.len(), "file {} does not exist", op.file.0);
        let busy = &mut self.busy[index(op.slot.0)];
        assert!(!*busy, "slot {} has an I/O in flight", op.slot.0);
        *busy = true;
        self.line.push(Request::Io(op));
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.submit();
        // Who wants nothing is told nothing.
        self.stood &= wanted == 0;
        if self.stood {
            return Ok(());
        }
        if let Some((left, time)) = self.stall.take() {
            if left == 0 {
                self.now += time.0;
                self.stood = true;
                return Ok(());
            }
            self.stall = Some((left - 1, time));
        }
        let limit = self.now.saturating_add(timeout.0);
        while self.done.len() < index(wanted) && self.step(limit) {}
        Ok(())
    }

    fn look(&mut self) -> u32 {
        while !self.stood && self.serving.peek().is_some_and(|next| next.0.end <= self.now) {
            let now = self.now;
            self.step(now);
        }
        self.counted = self.done.len();
        to_u32(self.counted)
    }

    fn pop(&mut self) -> Option<Done> {
        self.counted = self.counted.checked_sub(1)?;
        let done = self.done.pop_front()?;
        self.busy[index(done.slot.0)] = false;
        Some(done)
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        assert!(!self.busy[index(slot.0)], "slot {} has an I/O in flight", slot.0);
        self.buffer(slot.0, lane.0)
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts { engine: "sim".to_owned(), ..QueueFacts::default() }
    }
}

impl FlushQueue for PowerQueue {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        assert!(index(file.0) < self.disks.len(), "file {} does not exist", file.0);
        let busy = &mut self.busy[index(slot.0)];
        assert!(!*busy, "slot {} has an I/O in flight", slot.0);
        *busy = true;
        self.line.push(Request::Flush(file, slot));
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        self.disks.get(index(file.0)).map(|disk| disk.view.size())
    }

    fn time(&self) -> Nanos {
        self.now()
    }
}
