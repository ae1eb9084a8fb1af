//! One simulated space on its disks, in virtual time: host I/O, write-back cache, destage, moves.

use std::collections::VecDeque;
use std::ops::Range;

use plumb_io::stack::{Access, AccessKind};
use plumb_units::Nanos;
use plumb_units::convert::{floor_u64, index, to_u64};

use super::devices::Devices;
use super::histogram::Histogram;
use super::runs::{Run, RunRecord};
use super::space::{Place, Stripes};
use super::tierer::{Served, Tierer};
use super::write_cache::{CacheModel, Destage, LINE};
use super::{HostPart, Layout, Policy, ReplayError};
use crate::engine::TRICKLE_WINDOW_H;
use crate::heat::HostIoKind;
use crate::optimizer::{Move, PlanLimits, TierName};
use crate::tier_report::{MoveStop, TierReport, WindowBytes};

/// Longer writes do not go to the cache (6.1 rule 5).
const CACHED_LONGEST: u64 = 256 << 10;
/// The longest piece that the engine cuts requests into.
pub(super) const PIECE: u64 = 128 << 10;
/// Destages under way on each disk of the Capacity tier (WBC-3).
const DESTAGES: f64 = 8.0;
/// A cache that was full is full no more when less of it is used: 14 sixteenths, as in the engine.
const FULL_UNTIL: f64 = 0.875;
/// So long nobody asks for anything before the cache is emptied below a quarter (WBC-3), as in the engine.
const IDLE: Nanos = Nanos(1_000_000_000);
/// Host I/Os under way; beyond it the trace waits, and its latencies count from when they were due.
const OUTSTANDING: u32 = 1024;
/// Moves under way (10.5).
pub(super) const MOVERS: u32 = 8;
/// Between two runs of the continuous mode.
const CONTINUOUS: Nanos = Nanos(900_000_000_000);
/// Share of device time that the continuous mode may take (10.6).
const TRICKLE: f64 = 0.05;

/// Whose an access is.
#[derive(Debug, Clone, Copy)]
enum Owner {
    Host(u32),
    Destage(u32),
    Move(u32),
}

/// A host I/O under way.
#[derive(Debug, Clone, Copy)]
struct Request {
    due: Nanos,
    left: u32,
    kind: HostIoKind,
}

/// What is cut off a write next: whole blocks that lie on one disk, or a part of a block.
pub(super) fn piece(at: u64, left: u64, step: u64) -> u64 {
    let (left, skew) = (left.min(step - at % step), at % LINE);
    if skew == 0 && left >= LINE { left / LINE * LINE } else { left.min(LINE - skew) }
}

/// Things with numbers that are used again.
#[derive(Debug)]
struct Numbered<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Numbered<T> {
    fn new() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }

    fn put(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.items[index(number)] = Some(item);
                number
            }
            None => {
                self.items.push(Some(item));
                u32::try_from(self.items.len() - 1).expect("few are under way")
            }
        }
    }

    fn get(&mut self, number: u32) -> &mut T {
        self.items[index(number)].as_mut().expect("it is under way")
    }

    fn take(&mut self, number: u32) -> T {
        self.free.push(number);
        self.items[index(number)].take().expect("it is under way")
    }
}

/// A move under way.
#[derive(Debug, Clone, Copy)]
struct Moving {
    planned: Move,
    to: Place,
    left: u32,
    writes: bool,
}

/// What is counted beside the devices' own figures.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) served: Served,
    pub(super) reads: Histogram,
    pub(super) writes: Histogram,
    pub(super) all: Histogram,
    pub(super) cache_written: u64,
    pub(super) moves_written: u64,
    pub(super) bypassed: u64,
    pub(super) delayed: u64,
    /// Of host I/O, as the engine counts it.
    pub(super) bytes: WindowBytes,
}

/// One space.
#[derive(Debug)]
pub(super) struct Course {
    layout: Layout,
    policy: Policy,
    fast: Stripes,
    slow: Stripes,
    pub(super) tierer: Tierer,
    pub(super) devices: Devices,
    pub(super) cache: CacheModel,
    accesses: Numbered<Owner>,
    requests: Numbered<Request>,
    outstanding: u32,
    destages: Numbered<(Destage, u32)>,
    destaging: u32,
    idle_mode: bool,
    last_request: Nanos,
    ring_at: u64,
    moves: Numbered<Moving>,
    run: Option<Run>,
    next_run: Option<Nanos>,
    window: (Nanos, Served, WindowBytes),
    /// A write that the cache would have taken found no room, and there has not been much since.
    full: bool,
    /// Served when the last run began.
    ran: Served,
    pub(super) now: Nanos,
    pub(super) tally: Tally,
    pub(super) records: Vec<RunRecord>,
    pub(super) report: Option<TierReport>,
}

impl Course {
    pub(super) fn new(layout: Layout, performance_slots: u32, policy: Policy) -> Self {
        let (fast, slow) = layout.stripes();
        let quarter = u64::from(performance_slots) * layout.extent_bytes / 4;
        let mut course = Self {
            policy,
            fast,
            slow,
            tierer: Tierer::new(layout.tierer(performance_slots)),
            devices: Devices::new(layout.models()),
            cache: CacheModel::new(layout.write_cache_bytes.min(quarter), layout.extent_bytes),
            accesses: Numbered::new(),
            requests: Numbered::new(),
            outstanding: 0,
            destages: Numbered::new(),
            destaging: 0,
            idle_mode: false,
            last_request: Nanos::ZERO,
            ring_at: 0,
            moves: Numbered::new(),
            run: None,
            next_run: None,
            window: (Nanos::ZERO, Served::default(), WindowBytes::default()),
            full: false,
            ran: Served::default(),
            now: Nanos::ZERO,
            tally: Tally {
                served: Served::default(),
                reads: Histogram::new(),
                writes: Histogram::new(),
                all: Histogram::new(),
                cache_written: 0,
                moves_written: 0,
                bypassed: 0,
                delayed: 0,
                bytes: WindowBytes::default(),
            },
            records: Vec::new(),
            report: None,
            layout,
        };
        course.next_run = course.interval();
        course
    }

    fn interval(&self) -> Option<Nanos> {
        match self.policy {
            Policy::Every { hours } => Some(Nanos(floor_u64(hours * 3.6e12))),
            Policy::Continuous => Some(CONTINUOUS),
            Policy::Never | Policy::Clairvoyant | Policy::Lru => None,
        }
    }

    /// A host I/O that is due at `at`, in the parts that extents make of it.
    pub(super) fn feed(&mut self, at: Nanos, parts: &[HostPart]) -> Result<(), ReplayError> {
        self.run_until(at);
        let mut waited = false;
        while self.outstanding >= OUTSTANDING && self.step(Nanos::NEVER) {
            waited = true;
        }
        self.tally.delayed += u64::from(waited || self.now > at);
        self.tierer.heat.advance(at.0 / 3_600_000_000_000);
        let Some(first) = parts.first() else { return Ok(()) };
        (self.last_request, self.idle_mode) = (self.now, false);
        // One more than its accesses: while a part waits, those before it may end.
        let request = self.requests.put(Request { due: at, left: 1, kind: first.kind });
        self.outstanding += 1;
        for part in parts {
            self.part(request, part)?;
        }
        self.part_ended(request);
        self.pump_destages();
        Ok(())
    }

    fn part(&mut self, request: u32, part: &HostPart) -> Result<(), ReplayError> {
        let place = self.tierer.touch(part.extent, part.kind, part.weight);
        let Some(place) = place else {
            return Err(self.layout.full(self.tierer.space.mapped()));
        };
        let owner = Owner::Host(request);
        let start = u64::from(part.extent) * self.layout.extent_bytes + part.offset;
        let blocks = start / LINE..(start + part.len).div_ceil(LINE);
        if part.kind == HostIoKind::Write {
            self.write(owner, place, part);
            return Ok(());
        }
        self.tally.bytes.read += part.len;
        if self.cache.has_all(blocks) {
            self.tally.served.cache += 1;
            self.tally.bytes.cache_read += part.len;
            let column = self.ring_column();
            let disk = self.devices.idlest(self.fast.disks(column));
            self.access(disk, owner, AccessKind::Read, part.offset, part.len);
            return Ok(());
        }
        self.serve(place);
        self.transfer(owner, place, AccessKind::Read, part.offset, part.len);
        Ok(())
    }

    /// A tier answers.
    fn serve(&mut self, place: Place) {
        match place.tier {
            TierName::Performance => self.tally.served.performance += 1,
            TierName::Capacity => self.tally.served.capacity += 1,
        }
    }

    /// Writes, cut as the engine cuts: each piece goes to the cache or home by itself, and those that follow each other together.
    fn write(&mut self, owner: Owner, place: Place, part: &HostPart) {
        self.tally.bytes.written += part.len;
        let step = PIECE.min(self.layout.interleave);
        let base = u64::from(part.extent) * self.layout.extent_bytes;
        let (mut at, end) = (part.offset, part.offset + part.len);
        let mut run: Option<(bool, u64)> = None;
        while at < end {
            let len = piece(at, end - at, step);
            let blocks = (base + at) / LINE..(base + at + len).div_ceil(LINE);
            let cached = self.is_cached(place, part, blocks.clone());
            // The first one says who answers.
            match cached {
                _ if at > part.offset => {}
                true => self.tally.served.cache += 1,
                false => self.serve(self.place_now(part, place)),
            }
            if let Some((before, from)) = run.take_if(|run| run.0 != cached) {
                self.write_out(owner, (place, part), before, from..at);
            }
            if cached {
                self.cache.admit(blocks, run.is_none());
            }
            run.get_or_insert((cached, at));
            at += len;
        }
        if let Some((cached, from)) = run {
            self.write_out(owner, (place, part), cached, from..end);
        }
    }

    /// Writes a range of an extent to the log, in one record, or home.
    fn write_out(
        &mut self,
        owner: Owner,
        (place, part): (Place, &HostPart),
        cached: bool,
        range: Range<u64>,
    ) {
        let len = range.end - range.start;
        if cached {
            self.tally.bytes.cache_written += len;
            let blocks = range.end.div_ceil(LINE) - range.start / LINE;
            return self.append(owner, (blocks + 1) * LINE);
        }
        let place = self.place_now(part, place);
        if place.tier == TierName::Capacity {
            self.tally.bypassed += len;
            self.tally.bytes.bypassed += len;
        }
        self.transfer(owner, place, AccessKind::Write, range.start, len);
    }

    /// Whether a piece of a write goes to the write-back cache (6.1).
    fn is_cached(&mut self, place: Place, part: &HostPart, blocks: Range<u64>) -> bool {
        let count = blocks.end - blocks.start;
        // Past a live line nobody may write: who finds no room waits for some, or until the line is gone (6.1 rule 2). So does the
        // trace, which is rare.
        while self.cache.has_any(blocks.clone()) {
            if self.cache.has_room(count, true) {
                return true;
            }
            if !self.makes_room() {
                return false;
            }
        }
        let wanted = self.place_now(part, place).tier == TierName::Capacity
            && part.request_len <= CACHED_LONGEST
            && !part.sequential
            && self.cache.has_any_room();
        if !wanted {
            return false;
        }
        let fits = self.cache.has_room(count, false);
        self.tally.bytes.times_full += u64::from(!fits && !self.full);
        self.full = !fits || self.full && self.cache.used() >= FULL_UNTIL;
        fits
    }

    /// Where an extent is that may have moved while a write to it waited.
    fn place_now(&self, part: &HostPart, before: Place) -> Place {
        self.tierer.space.place(part.extent).unwrap_or(before)
    }

    /// Waits for the next event while the cache is on its way to being emptied; `false` when it is not.
    fn makes_room(&mut self) -> bool {
        self.pump_destages();
        self.destaging > 0 && self.step(Nanos::NEVER)
    }

    fn ring_column(&self) -> usize {
        let columns = to_u64(self.fast.columns);
        plumb_units::convert::to_usize(self.ring_at / self.layout.interleave % columns)
    }

    /// Writes a record to all copies of the log.
    fn append(&mut self, owner: Owner, bytes: u64) {
        let column = self.ring_column();
        for disk in self.fast.disks(column) {
            self.access(disk, owner, AccessKind::Write, self.ring_at, bytes);
            self.tally.cache_written += bytes;
        }
        self.ring_at += bytes;
    }

    /// Reads from one copy or writes to all.
    fn transfer(&mut self, owner: Owner, place: Place, kind: AccessKind, offset: u64, len: u64) {
        let stripes = match place.tier {
            TierName::Performance => self.fast,
            TierName::Capacity => self.slow,
        };
        for piece in stripes.pieces(place.slot, offset, len) {
            let (at, len) = (piece.offset, u64::from(piece.len));
            if kind == AccessKind::Read {
                let disk = self.devices.idlest(stripes.disks(piece.column));
                self.access(disk, owner, kind, at, len);
                continue;
            }
            for disk in stripes.disks(piece.column) {
                self.access(disk, owner, kind, at, len);
            }
        }
    }

    fn access(&mut self, disk: usize, owner: Owner, kind: AccessKind, offset: u64, len: u64) {
        match owner {
            Owner::Host(request) => self.requests.get(request).left += 1,
            Owner::Destage(destage) => self.destages.get(destage).1 += 1,
            Owner::Move(moving) => self.moves.get(moving).left += 1,
        }
        let slot = self.accesses.put(owner);
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        self.devices.submit(disk, self.now, Access { slot, kind, offset, len });
    }

    /// All that happens until `end`.
    pub(super) fn run_until(&mut self, end: Nanos) {
        while self.step(end) {}
        self.now = self.now.max(end);
    }

    /// The next event, unless it is after `end`; whether there was one.
    fn step(&mut self, end: Nanos) -> bool {
        let (device, timer) = (self.devices.next_end(), self.timer());
        match (device, timer) {
            (Some((at, disk)), timer) if timer.is_none_or(|timer| at <= timer) => {
                if at > end {
                    return false;
                }
                self.now = self.now.max(at);
                if let Some(slot) = self.devices.finish(disk, self.now) {
                    self.ended(slot);
                }
            }
            (_, Some(timer)) => {
                if timer > end {
                    return false;
                }
                self.now = self.now.max(timer);
                self.on_timer();
            }
            (_, None) => return false,
        }
        true
    }

    /// When something is due that no device tells.
    fn timer(&self) -> Option<Nanos> {
        let moves = self.run.as_ref().and_then(Run::timer);
        let idle = match self.cache.is_dirty() && self.destaging == 0 {
            true => Some(self.last_request + IDLE),
            false => None,
        };
        [self.next_run, moves, idle].into_iter().flatten().min()
    }

    fn on_timer(&mut self) {
        if self.next_run.is_some_and(|at| at <= self.now) {
            self.start_run();
        }
        if self.last_request + IDLE <= self.now && self.cache.is_dirty() {
            self.idle_mode = true;
            self.pump_destages();
        }
        self.pump_moves();
    }

    fn ended(&mut self, slot: u32) {
        match self.accesses.take(slot) {
            Owner::Host(number) => self.part_ended(number),
            Owner::Destage(number) => {
                let left = &mut self.destages.get(number).1;
                *left -= 1;
                if *left == 0 {
                    let (destage, _) = self.destages.take(number);
                    self.cache.destaged(&destage);
                    self.destaging -= 1;
                    self.pump_destages();
                }
            }
            Owner::Move(number) => self.move_ended(number),
        }
    }

    fn part_ended(&mut self, number: u32) {
        let request = self.requests.get(number);
        request.left -= 1;
        if request.left == 0 {
            let request = self.requests.take(number);
            self.outstanding -= 1;
            self.answered(&request);
        }
    }

    fn answered(&mut self, request: &Request) {
        let latency = self.now.since(request.due).0;
        self.tally.all.add(latency);
        match request.kind {
            HostIoKind::Read => self.tally.reads.add(latency),
            HostIoKind::Write => self.tally.writes.add(latency),
        }
    }

    /// As many destages as the cache's fill asks for (WBC-3).
    fn pump_destages(&mut self) {
        let disks = to_u64(self.layout.slow_disks().len()) as f64;
        let used = self.cache.used();
        let share = if self.idle_mode { 1.0 } else { ((used - 0.25) / 0.25).clamp(0.0, 1.0) };
        let most = floor_u64((share * DESTAGES * disks).ceil());
        while u64::from(self.destaging) < most {
            let Some(destage) = self.cache.next_destage() else { return };
            let (start, len) = (destage.block * LINE, to_u64(destage.lines.len()) * LINE);
            let extent = u32::try_from(start / self.layout.extent_bytes).unwrap_or(u32::MAX);
            let Some(place) = self.tierer.space.place(extent) else { return };
            let number = self.destages.put((destage, 0));
            self.destaging += 1;
            let offset = start % self.layout.extent_bytes;
            self.transfer(Owner::Destage(number), place, AccessKind::Write, offset, len);
        }
    }

    fn start_run(&mut self) {
        self.end_run(MoveStop::Time);
        self.tierer.heat.advance(self.now.0 / 3_600_000_000_000);
        let (limits, raised) = match self.policy {
            Policy::Continuous => {
                let time = CONTINUOUS.as_secs_f64() * TRICKLE / self.layout.move_seconds();
                (PlanLimits { moved: floor_u64(time), ..PlanLimits::none() }, 2.0)
            }
            _ => (PlanLimits::none(), 1.0),
        };
        let plan = self.tierer.plan(limits, raised);
        let served = self.tally.served.since(&self.window.1);
        let hours = |at: Nanos| at.as_secs_f64() / 3600.0;
        let window = (hours(self.window.0), hours(self.now));
        let bytes = self.tally.bytes.less(self.window.2);
        if let Some(last) = self.records.last_mut() {
            last.measured_share = self.tally.served.since(&self.ran).share();
        }
        self.ran = self.tally.served;
        let run = Run::new(&plan, &self.tierer.heat, self.now, &self.layout);
        let figures = run.figures(self.layout.extent_bytes);
        self.report = Some(self.tierer.report(&plan, &served, figures, (window, bytes)));
        self.run = Some(run);
        let least = if self.policy == Policy::Continuous { TRICKLE_WINDOW_H } else { 0 };
        if self.tierer.begin_window(least, &plan) {
            self.window = (self.now, self.tally.served, self.tally.bytes);
        }
        self.next_run = self.interval().map(|interval| self.now + interval);
        self.pump_moves();
    }

    /// Begins moves that are due.
    fn pump_moves(&mut self) {
        loop {
            let Some(run) = &mut self.run else { return };
            let planned = run.next(self.now);
            if planned.is_none() && run.is_over() {
                return self.end_run(MoveStop::Done);
            }
            let Some(planned) = planned else { return };
            let from = self.tierer.space.place(planned.extent);
            let to = self.tierer.space.reserve(planned.to);
            let (Some(from), Some(to)) = (from, to) else {
                run.put_back(planned);
                continue;
            };
            run.begun(self.now);
            let number = self.moves.put(Moving { planned, to, left: 0, writes: false });
            let len = self.layout.extent_bytes;
            self.transfer(Owner::Move(number), from, AccessKind::Read, 0, len);
        }
    }

    fn move_ended(&mut self, number: u32) {
        let moving = self.moves.get(number);
        moving.left -= 1;
        if moving.left > 0 {
            return;
        }
        if !moving.writes {
            moving.writes = true;
            let to = moving.to;
            if to.tier == TierName::Performance {
                self.tally.moves_written += self.layout.extent_bytes * to_u64(self.fast.copies);
            }
            self.transfer(Owner::Move(number), to, AccessKind::Write, 0, self.layout.extent_bytes);
            return;
        }
        let moved = self.moves.take(number);
        self.tierer.space.switch(moved.planned.extent, moved.to);
        if let Some(run) = &mut self.run {
            run.made(moved.planned, self.now);
        }
        self.pump_moves();
    }

    /// Moves that are under way end; none begins any more.
    fn end_run(&mut self, stop: MoveStop) {
        let Some(run) = &mut self.run else { return };
        run.stop(stop);
        // What is under way ends; then `pump_moves` may have ended the run before us.
        while self.run.as_ref().is_some_and(|run| run.under_way() > 0) {
            let Some((at, disk)) = self.devices.next_end() else { break };
            self.now = self.now.max(at);
            if let Some(slot) = self.devices.finish(disk, self.now) {
                self.ended(slot);
            }
        }
        let Some(run) = self.run.take() else { return };
        self.tierer.run_ended(run.all_made());
        let figures = run.figures(self.layout.extent_bytes);
        if let Some(report) = &mut self.report {
            report.facts.moves = figures;
            report.facts.expected_share = run.expected_share();
            report.facts.thrash = self.tierer.thrash();
        }
        self.records.push(run.record(figures));
    }

    /// The trace is over: what was asked for is answered.
    pub(super) fn end(&mut self) {
        while self.outstanding > 0 && self.step(Nanos::NEVER) {}
        self.end_run(MoveStop::Cancelled);
        if let Some(last) = self.records.last_mut() {
            let served = self.tally.served.since(&self.ran);
            last.measured_share = served.share();
        }
    }
}

/// Moves that wait, in their order.
pub(super) type MoveQueue = VecDeque<Move>;
