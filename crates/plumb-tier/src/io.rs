//! The engine's hold on its queue: slots by purpose, what each completion means, and I/O that waits.

mod busy;
mod late;
mod pace;
mod waiting;

use std::collections::VecDeque;

use plumb_io::{Done, Errno, FileIndex, FlushQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, Slot};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_u64};

use crate::engine::DiskUse;
use crate::events::{Event, Events};
use crate::mutation::{Mutation, active};
use busy::Class;
use busy::HostsUnderWay;
pub(crate) use busy::{BusyTimes, measure_of};
use pace::Lines;

/// Buffers and slots of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotPlan {
    /// Device I/Os of data in flight, at most.
    pub data_slots: u32,
    /// Bytes of each: a power of two, a block at least; no request goes to a device in larger parts.
    pub data_bytes: u32,
    /// Bytes of a buffer for metadata, hence of a journal frame: a multiple of 4 KiB.
    pub control_bytes: u32,
    /// Devices.
    pub files: u32,
    /// How long a device may take for one I/O before it counts as missing (section 18): [`TIME_OUT`], or what the pool is set to.
    pub time_out: Nanos,
}

/// Slots for metadata: frames of three copies, their flushes, and room for those that hang.
const CONTROL_SLOTS: u32 = 24;
/// Of these, as many as one disk may have of a set that is waited for: a disk that hangs keeps them.
const CONTROL_PER_DISK: usize = 3;
/// Slots for records of write-back caches, of all virtual disks: three copies, and room for those that hang.
const LOG_SLOTS: u32 = 12;
/// Of these, as many as one disk may have: a disk that hangs keeps them.
const LOG_PER_DISK: usize = 3;
const DATA: LaneIndex = LaneIndex(0);
const CONTROL: LaneIndex = LaneIndex(1);
const LOG: LaneIndex = LaneIndex(2);
/// No disk.
const NOBODY: u16 = u16::MAX;
const EIO: Errno = Errno(5);
/// Answers of a device that is not there, or did not answer its driver: ENXIO, ENODEV, ESHUTDOWN, ETIMEDOUT, ENOMEDIUM.
const NOT_HERE: [Errno; 5] = [Errno(6), Errno(19), Errno(108), Errno(110), Errno(123)];
/// How long a device may take for one I/O before it counts as missing, unless a pool is set to another time.
pub const TIME_OUT: Nanos = Nanos(30_000_000_000);

impl SlotPlan {
    /// How many slots the queue must have.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.first_log_slot() + LOG_SLOTS
    }

    fn first_log_slot(&self) -> u32 {
        self.all_data_slots() + CONTROL_SLOTS + 2 * self.files
    }

    /// Those for data, and half as many that take the place of those a device does not answer: without them one that hangs would
    /// keep all, in the time before it counts as missing.
    fn all_data_slots(&self) -> u32 {
        self.data_slots + self.data_slots / 2
    }

    /// Bytes of a record of a write-back cache, at most.
    pub(crate) fn log_bytes(&self) -> u32 {
        (2 * self.data_bytes).clamp(16 << 10, 1 << 20) + 4096
    }

    /// The queue's buffers.
    #[must_use]
    pub fn lanes(&self) -> Vec<LaneSpec> {
        vec![
            LaneSpec { first_slot: 0, slots: self.all_data_slots(), bytes: self.data_bytes },
            LaneSpec {
                first_slot: self.all_data_slots(),
                slots: CONTROL_SLOTS,
                bytes: self.control_bytes,
            },
            LaneSpec {
                first_slot: self.first_log_slot(),
                slots: LOG_SLOTS,
                bytes: self.log_bytes(),
            },
        ]
    }
}

/// What a slot's I/O is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// Nothing is in flight.
    Idle,
    /// It missed its time-out; whatever it says is of no interest.
    Abandoned,
    /// A copy's share of a part.
    Part { part: u32, copy: u8 },
    /// A copy of a record of a virtual disk's log.
    Log { vdisk: u16, copy: u8, disk: u16 },
    /// A journal frame.
    Frame { disk: u16 },
    /// The flush behind journal frames.
    FrameFlush { disk: u16 },
    /// A data flush of a round.
    RoundFlush { disk: u16 },
    /// A flush of a log's copies.
    LogFlush { disk: u16 },
    /// A read or write of a move.
    Move { nth: u32, disk: u16 },
    /// A flush of one.
    MoveFlush { nth: u32, disk: u16 },
    /// Somebody stands and waits for it.
    Waited { nth: u32, disk: u16 },
}

/// One I/O of a set that is waited for.
#[derive(Debug)]
pub(crate) enum Work<'a> {
    Read { disk: u16, offset: u64, into: &'a mut [u8] },
    Write { disk: u16, offset: u64, bytes: &'a [u8] },
    Flush { disk: u16 },
}

/// Queue, slots and files.
#[derive(Debug)]
pub(crate) struct Io<Q> {
    pub(crate) queue: Q,
    plan: SlotPlan,
    tags: Vec<Tag>,
    /// When an I/O was first seen under way; NEVER until then.
    begun: Vec<Nanos>,
    /// On which disk a slot's I/O is, or was; `NOBODY`: on a file that is no disk's.
    disks: Vec<u16>,
    /// Whether a slot's I/O writes.
    writes: Vec<bool>,
    /// Bytes that a slot's I/O is to move.
    lens: Vec<u32>,
    /// How many writes were given up and not answered, of all disks.
    owed: u32,
    /// How many I/Os were given up and not answered, of all disks.
    hung: u32,
    /// What was not begun: it failed.
    refused: VecDeque<u32>,
    data_free: Vec<u32>,
    /// Such as take the place of those that are given up.
    data_spare: Vec<u32>,
    control_free: Vec<u32>,
    log_free: Vec<u32>,
    /// File of each disk, by ordinal.
    files: Vec<Option<FileIndex>>,
    in_flight: u32,
    /// I/Os that each disk has to answer, those given up and those in line for it among them, by ordinal.
    queued: Vec<u32>,
    /// I/Os that were begun.
    pushed: u64,
    scratch: Vec<u8>,
    /// Disks that failed a flush, whatever it was for, and were not judged for it yet: what they hold may not be durable (C10).
    pub(crate) unflushed: Vec<u16>,
    /// What each disk was asked, by ordinal.
    pub(crate) uses: Vec<DiskUse>,
    /// Where each disk's last read of data ended, and its last write of any kind, by ordinal.
    read_ends: Vec<u64>,
    write_ends: Vec<u64>,
    /// When this is, by the engine's time.
    time: Nanos,
    /// What each slot's I/O counts as.
    classes: Vec<Class>,
    /// Whether it is one of a host's requests, or of what the write-back cache copies home for them.
    hosts: Vec<bool>,
    /// How long each disk was busy, by ordinal.
    busy: Vec<BusyTimes>,
    /// How many I/Os for hosts are under way.
    hosts_under_way: HostsUnderWay,
    /// Whether the last write or flush that a disk failed was answered, with an error of I/O, by ordinal.
    answered_badly: Vec<bool>,
    /// What happened that somebody should know.
    pub(crate) events: Events,
    /// Disks that did not answer in time when somebody waited last, each once.
    silent: Vec<u16>,
    /// Disks are numbered as in the configuration: before that, as files.
    named: bool,
    /// What is waited for is only tried: nothing is written or flushed.
    pub(crate) tries: bool,
    /// Requests that wait until their disk has answered others.
    lines: Lines,
}

impl<Q: FlushQueue> Io<Q> {
    pub(crate) fn new(queue: Q, plan: SlotPlan) -> Self {
        let first = plan.all_data_slots();
        Self {
            queue,
            plan,
            tags: vec![Tag::Idle; index(plan.depth())],
            disks: vec![0; index(plan.depth())],
            writes: vec![false; index(plan.depth())],
            lens: vec![0; index(plan.depth())],
            owed: 0,
            hung: 0,
            refused: VecDeque::new(),
            begun: vec![Nanos::NEVER; index(plan.depth())],
            data_free: (0..plan.data_slots).rev().collect(),
            data_spare: (plan.data_slots..first).collect(),
            control_free: (first..first + CONTROL_SLOTS).rev().collect(),
            log_free: (plan.first_log_slot()..plan.depth()).rev().collect(),
            files: (0..plan.files).map(|file| Some(FileIndex(file))).collect(),
            in_flight: 0,
            queued: vec![0; index(plan.files)],
            pushed: 0,
            scratch: vec![0; index(plan.data_bytes)],
            unflushed: Vec::new(),
            uses: vec![DiskUse::default(); index(plan.files)],
            read_ends: vec![u64::MAX; index(plan.files)],
            write_ends: vec![u64::MAX; index(plan.files)],
            time: Nanos::ZERO,
            classes: vec![Class::Nothing; index(plan.depth())],
            hosts: vec![false; index(plan.depth())],
            busy: vec![BusyTimes::default(); index(plan.files)],
            hosts_under_way: HostsUnderWay::default(),
            answered_badly: vec![false; index(plan.files)],
            events: Events::default(),
            silent: Vec::new(),
            named: false,
            tries: false,
            lines: Lines::new(index(plan.files)),
        }
    }

    pub(crate) fn plan(&self) -> SlotPlan {
        self.plan
    }

    /// From now on disks are numbered by these files.
    pub(crate) fn name_files(&mut self, files: Vec<Option<FileIndex>>) {
        // What was asked of a file so far was asked of its disk.
        let used = |file: &Option<FileIndex>| {
            file.and_then(|file| self.uses.get(index(file.0)).copied()).unwrap_or_default()
        };
        self.uses = files.iter().map(used).collect();
        // What hangs hangs on the file that it was asked of.
        let named = |disk: u16| {
            let file = self.file(disk);
            let nth = files.iter().position(|other| other.is_some() && *other == file);
            nth.and_then(|nth| u16::try_from(nth).ok()).unwrap_or(NOBODY)
        };
        let disks: Vec<u16> = self.disks.iter().map(|disk| named(*disk)).collect();
        self.disks = disks;
        self.files = files;
        // By file until now; whoever asked for these has seen to what they mean.
        self.unflushed.clear();
        self.named = true;
        self.queued = Vec::new();
        self.make_room();
        for slot in 0..self.plan.depth() {
            self.count_queued(slot, (self.tags[index(slot)] != Tag::Idle).into());
        }
    }

    /// One disk more.
    pub(crate) fn add_file(&mut self, file: FileIndex) {
        self.files.push(Some(file));
        self.make_room();
    }

    fn make_room(&mut self) {
        let disks = self.files.len().max(self.uses.len());
        self.uses.resize(disks, DiskUse::default());
        self.read_ends.resize(disks, u64::MAX);
        self.write_ends.resize(disks, u64::MAX);
        self.busy.resize(disks, BusyTimes::default());
        self.queued.resize(disks, 0);
        self.answered_badly.resize(disks, false);
        self.lines.make_room(disks);
    }

    /// A slot's I/O is asked of its disk, or was answered.
    #[inline]
    fn count_queued(&mut self, slot: u32, by: i32) {
        if let Some(queued) = self.queued.get_mut(usize::from(self.disks[index(slot)])) {
            *queued = queued.wrapping_add_signed(by);
        }
    }

    /// A slot's I/O failed: its disk said so, or nothing.
    fn count_failed(&mut self, slot: u32, answer: Option<Errno>) {
        let disk = usize::from(self.disks[index(slot)]);
        if let Some(own) = self.uses.get_mut(disk) {
            own.failed += 1;
        }
        let is_read = !self.writes[index(slot)] && self.lens[index(slot)] > 0;
        if let Some(badly) = self.answered_badly.get_mut(disk).filter(|_| !is_read) {
            *badly = answer.is_some_and(|errno| !NOT_HERE.contains(&errno));
        }
    }

    /// A disk is done without: whether that is for a write or a flush that it answered with an error, which is told.
    pub(crate) fn blame(&mut self, disk: u16) {
        let badly = self.answered_badly.get_mut(usize::from(disk)).map(std::mem::take);
        if badly == Some(true) {
            self.uses[usize::from(disk)].erred += 1;
            self.events.note(Event::DiskErred(disk));
        }
    }

    /// Whether the path of a disk that is open still leads to it.
    pub(crate) fn leads_there(&self, disk: u16) -> bool {
        self.file(disk).is_none_or(|file| self.queue.leads_there(file))
    }

    /// Bytes of a disk's file, as far as they are known.
    pub(crate) fn bytes_of(&self, disk: u16) -> Option<u64> {
        self.queue.file_bytes(self.file(disk)?)
    }

    /// I/Os that a disk has to answer.
    #[inline]
    pub(crate) fn queued(&self, disk: u16) -> u32 {
        self.queued[usize::from(disk)]
    }

    /// Whether a read of data there goes on where the disk's last one ended.
    #[inline]
    pub(crate) fn goes_on(&self, disk: u16, offset: u64) -> bool {
        self.read_ends[usize::from(disk)] == offset
    }

    pub(crate) fn file(&self, disk: u16) -> Option<FileIndex> {
        self.files.get(usize::from(disk)).copied().flatten()
    }

    /// I/Os under way, those given up excepted.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// I/Os that were begun so far.
    pub(crate) fn begun(&self) -> u64 {
        self.pushed
    }

    pub(crate) fn data_slots_free(&self) -> usize {
        self.data_free.len()
    }

    pub(crate) fn take_data_slot(&mut self) -> Option<u32> {
        self.data_free.pop()
    }

    /// Gives a slot back that has no I/O in flight. One that was given up comes back by itself.
    pub(crate) fn give_data_slot(&mut self, slot: u32) {
        if self.tags[index(slot)] == Tag::Idle {
            self.data_free.push(slot);
        }
    }

    #[inline]
    pub(crate) fn data(&mut self, slot: u32) -> &mut [u8] {
        self.queue.buffer_mut(Slot(slot), DATA)
    }

    /// Copies between the buffers of two slots.
    pub(crate) fn copy_data(&mut self, from: u32, to: u32, len: usize) {
        self.copy_data_to(from, to, (0, len));
    }

    /// Copies the first `len` bytes of a slot's buffer to byte `at` of another's.
    pub(crate) fn copy_data_to(&mut self, from: u32, to: u32, (at, len): (usize, usize)) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch[..len].copy_from_slice(&self.data(from)[..len]);
        self.data(to)[at..at + len].copy_from_slice(&scratch[..len]);
        self.scratch = scratch;
    }

    /// Whether writes were not begun, and nobody has heard yet that they failed.
    pub(crate) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// On which disk a slot's I/O is, or was.
    pub(crate) fn disk_of(&self, slot: u32) -> u16 {
        self.disks[index(slot)]
    }

    /// Whether the slot's I/O was given up and has not come back.
    pub(crate) fn is_abandoned(&self, slot: u32) -> bool {
        self.tags[index(slot)] == Tag::Abandoned
    }

    /// Begins an I/O of a part. Tagged as abandoned, nobody waits for it.
    #[inline]
    pub(crate) fn push_part(&mut self, kind: OpKind, disk: u16, place: (u32, u64, u32), tag: Tag) {
        let (slot, offset, len) = place;
        let Some(file) = self.file(disk) else { return };
        self.mark(slot, disk, tag);
        let memory = Memory::Lane(DATA);
        if !self.hand_in(disk, Op { kind, file, slot: Slot(slot), len, offset, memory }) {
            return;
        }
        let own = &mut self.uses[usize::from(disk)];
        match kind {
            OpKind::Read => {
                own.reads += 1;
                own.read_bytes += u64::from(len);
            }
            OpKind::Write => {
                own.writes += 1;
                own.write_bytes += u64::from(len);
            }
        }
    }

    /// Reads a page of metadata into a slot for data.
    pub(crate) fn push_page(&mut self, disk: u16, place: (u32, u64, u32), tag: Tag) {
        let (slot, offset, len) = place;
        let Some(file) = self.file(disk) else { return };
        self.mark(slot, disk, tag);
        let (kind, memory) = (OpKind::Read, Memory::Lane(DATA));
        if self.hand_in(disk, Op { kind, file, slot: Slot(slot), len, offset, memory }) {
            let own = &mut self.uses[usize::from(disk)];
            own.metadata_reads += 1;
            own.metadata_read_bytes += u64::from(len);
        }
    }

    /// Hands an I/O to the queue; what is counted here is all that a disk is asked. `false` for a write that must wait
    /// until the disk has answered earlier ones, or for data where too many of its I/Os hang: it fails (RES-10).
    #[inline]
    fn hand_in(&mut self, disk: u16, op: Op) -> bool {
        let writes = op.kind == OpKind::Write;
        debug_assert!(!writes || !self.tries, "a start that is tried does not write");
        self.writes[index(op.slot.0)] = writes;
        self.lens[index(op.slot.0)] = op.len;
        if self.owed > 0 && writes && self.owes_write(disk) {
            self.refused.push_back(op.slot.0);
            return false;
        }
        let tag = self.tags[index(op.slot.0)];
        if self.hung > 0 && matches!(tag, Tag::Part { .. }) && self.owes_many(disk) {
            self.refused.push_back(op.slot.0);
            return false;
        }
        let waited = matches!(tag, Tag::Waited { .. });
        let own = &mut self.uses[usize::from(disk)];
        let (start, end) = (op.offset, op.offset + u64::from(op.len));
        let goes_on = match op.kind {
            OpKind::Read => {
                own.all_reads += 1;
                own.all_read_bytes += u64::from(op.len);
                let last = &mut self.read_ends[usize::from(disk)];
                let goes_on = *last == start;
                // Of metadata are only those that are waited for.
                *last = if waited { *last } else { end };
                goes_on
            }
            OpKind::Write => {
                own.all_writes += 1;
                own.all_write_bytes += u64::from(op.len);
                std::mem::replace(&mut self.write_ends[usize::from(disk)], end) == start
            }
        };
        let class = match tag {
            Tag::Waited { .. } => Class::Other,
            Tag::Move { .. } => Class::of_move(op.len, goes_on),
            _ => Class::of(op.len, goes_on),
        };
        self.note_busy(op.slot.0, disk, class);
        let request = matches!(tag, Tag::Part { .. });
        let queued = self.queued[usize::from(disk)];
        if !request || !self.lines.takes(disk, &op, queued, self.time) {
            self.queue.push(op);
        }
        true
    }

    #[inline]
    fn note_busy(&mut self, slot: u32, disk: u16, class: Class) {
        self.classes[index(slot)] = class;
        let busy = &mut self.busy[usize::from(disk)];
        if matches!(self.tags[index(slot)], Tag::Part { .. }) {
            self.hosts[index(slot)] = true;
            busy.begin_host(self.time);
            self.hosts_under_way.begin(self.time);
        }
        busy.begin(class, self.time);
    }

    /// A slot's I/O has ended, or nobody waits for it any more.
    #[inline]
    fn end_busy(&mut self, slot: u32, bytes: Option<u32>) {
        let class = std::mem::replace(&mut self.classes[index(slot)], Class::Nothing);
        let host = std::mem::take(&mut self.hosts[index(slot)]);
        if let Some(busy) = self.busy.get_mut(usize::from(self.disks[index(slot)])) {
            busy.end(class, self.time, bytes);
            if host {
                busy.end_host(self.time);
                self.hosts_under_way.end(self.time);
            }
        }
    }

    fn hand_in_flush(&mut self, disk: u16, file: FileIndex, slot: u32) {
        self.uses[usize::from(disk)].flushes += 1;
        self.writes[index(slot)] = false;
        self.lens[index(slot)] = 0;
        self.note_busy(slot, disk, Class::Other);
        self.queue.push_flush(file, Slot(slot));
    }

    fn count_metadata(&mut self, disk: u16, kind: OpKind, len: u32) {
        let own = &mut self.uses[usize::from(disk)];
        let (count, bytes) = match kind {
            OpKind::Read => (&mut own.metadata_reads, &mut own.metadata_read_bytes),
            OpKind::Write => (&mut own.metadata_writes, &mut own.metadata_write_bytes),
        };
        *count += 1;
        *bytes += u64::from(len);
    }

    /// Begins to flush a disk by a data slot; `false` without that disk.
    pub(crate) fn push_slot_flush(&mut self, disk: u16, slot: u32, tag: Tag) -> bool {
        let Some(file) = self.file(disk) else { return false };
        self.mark(slot, disk, tag);
        self.hand_in_flush(disk, file, slot);
        true
    }

    /// Begins to write a frame that `fill` puts into a buffer; `false` when no slot is free.
    pub(crate) fn push_frame(&mut self, disk: u16, offset: u64, frame: &[u8]) -> bool {
        let (Some(file), Some(slot)) = (self.file(disk), self.control_free.pop()) else {
            return false;
        };
        self.queue.buffer_mut(Slot(slot), CONTROL)[..frame.len()].copy_from_slice(frame);
        self.mark(slot, disk, Tag::Frame { disk });
        let (kind, len, memory) = (OpKind::Write, to_u32(frame.len()), Memory::Lane(CONTROL));
        if self.hand_in(disk, Op { kind, file, slot: Slot(slot), len, offset, memory }) {
            self.count_metadata(disk, kind, len);
        }
        true
    }

    /// Begins to write a record of a log; `false` without that disk, or when no slot is free.
    pub(crate) fn push_log(&mut self, tag: (u16, u8, u16), offset: u64, record: &[u8]) -> bool {
        let (vdisk, copy, disk) = tag;
        let (Some(file), Some(slot)) = (self.file(disk), self.log_free.pop()) else {
            return false;
        };
        self.queue.buffer_mut(Slot(slot), LOG)[..record.len()].copy_from_slice(record);
        self.mark(slot, disk, Tag::Log { vdisk, copy, disk });
        let (kind, len, memory) = (OpKind::Write, to_u32(record.len()), Memory::Lane(LOG));
        if self.hand_in(disk, Op { kind, file, slot: Slot(slot), len, offset, memory }) {
            let own = &mut self.uses[usize::from(disk)];
            own.log_writes += 1;
            own.log_write_bytes += u64::from(len);
        }
        true
    }

    /// Begins to flush the disk for the journal; `false` when no slot is free.
    pub(crate) fn push_frame_flush(&mut self, disk: u16) -> bool {
        let (Some(file), Some(slot)) = (self.file(disk), self.control_free.pop()) else {
            return false;
        };
        self.mark(slot, disk, Tag::FrameFlush { disk });
        self.hand_in_flush(disk, file, slot);
        true
    }

    /// Begins to flush the disk for a round; `false` when its last one is still under way.
    pub(crate) fn push_round_flush(&mut self, disk: u16) -> bool {
        self.push_own_flush(disk, 0, Tag::RoundFlush { disk })
    }

    /// The same for logs.
    pub(crate) fn push_log_flush(&mut self, disk: u16) -> bool {
        self.push_own_flush(disk, self.plan.files, Tag::LogFlush { disk })
    }

    /// By the disk's own slot, of those that begin there.
    fn push_own_flush(&mut self, disk: u16, first: u32, tag: Tag) -> bool {
        let Some(file) = self.file(disk) else { return false };
        let slot = self.plan.all_data_slots() + CONTROL_SLOTS + first + file.0;
        if self.tags[index(slot)] != Tag::Idle {
            return false;
        }
        self.mark(slot, disk, tag);
        self.hand_in_flush(disk, file, slot);
        true
    }

    fn mark(&mut self, slot: u32, disk: u16, tag: Tag) {
        self.disks[index(slot)] = disk;
        self.tags[index(slot)] = tag;
        self.begun[index(slot)] = Nanos::NEVER;
        self.in_flight += u32::from(tag != Tag::Abandoned);
        self.queued[usize::from(disk)] += 1;
        self.pushed += 1;
    }

    /// The next completion: what it was for, its slot, and what came of it. One that moved fewer bytes than it was to is an
    /// error: nobody goes on with the rest, and who wrote must not take it for written.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Tag, u32, Result<u32, Errno>)> {
        loop {
            let (slot, outcome, is_answer) = match self.queue.pop() {
                Some(done) => (done.slot.0, self.whole(done), true),
                None => (self.refused.pop_front()?, Err(EIO), false),
            };
            let tag = std::mem::replace(&mut self.tags[index(slot)], Tag::Idle);
            self.count_queued(slot, -1);
            if !self.lines.is_empty() {
                self.answered(slot);
            }
            self.end_busy(slot, outcome.ok());
            if tag == Tag::Abandoned {
                self.owed = self.owed.saturating_sub(self.writes[index(slot)].into());
                self.hung = self.hung.saturating_sub(1);
                if slot < self.plan.all_data_slots() {
                    self.take_back(slot);
                } else {
                    self.free_control(slot);
                }
                continue;
            }
            self.in_flight -= 1;
            self.free_control(slot);
            if let Err(errno) = outcome {
                self.count_failed(slot, is_answer.then_some(errno));
            }
            return Some((tag, slot, outcome));
        }
    }

    #[inline]
    fn whole(&self, done: Done) -> Result<u32, Errno> {
        match done.outcome() {
            Ok(moved)
                if moved != self.lens[index(done.slot.0)] && !active(Mutation::ShortTaken) =>
            {
                Err(EIO)
            }
            outcome => outcome,
        }
    }

    fn free_control(&mut self, slot: u32) {
        let first = self.plan.all_data_slots();
        if (first..first + CONTROL_SLOTS).contains(&slot) {
            self.control_free.push(slot);
        } else if slot >= self.plan.first_log_slot() {
            self.log_free.push(slot);
        }
    }

    /// It is `now`: what is handed in begins now, what is taken next ended now.
    #[inline]
    pub(crate) fn set_time(&mut self, now: Nanos) {
        self.time = now;
    }

    /// How many disks there are, those that are away among them.
    pub(crate) fn disks(&self) -> usize {
        self.busy.len()
    }

    /// How long a disk was busy with what.
    pub(crate) fn busy(&self, disk: u16) -> &BusyTimes {
        &self.busy[usize::from(disk)]
    }

    /// How many I/Os for hosts there were under way, copies counted each.
    pub(crate) fn host_line(&self) -> crate::optimizer::HostLine {
        self.hosts_under_way.line
    }

    /// Bytes of metadata that one I/O can move.
    pub(crate) fn control_bytes(&self) -> u64 {
        to_u64(index(self.plan.control_bytes))
    }
}
