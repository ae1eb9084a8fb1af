//! One simulated space on its disks, in virtual time: host I/O, write-back cache, destage, moves.

use std::collections::VecDeque;

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
/// Destages under way on each disk of the Capacity tier (WBC-3).
const DESTAGES: f64 = 8.0;
/// A cache that was full is full no more when less of it is used: 14 sixteenths, as in the engine.
const FULL_UNTIL: f64 = 0.875;
/// So long the disks are idle before the cache is emptied below a quarter (WBC-3).
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
    bytes: WindowBytes,
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
    cache: CacheModel,
    accesses: Numbered<Owner>,
    requests: Numbered<Request>,
    outstanding: u32,
    destages: Numbered<(Destage, u32)>,
    destaging: u32,
    idle_mode: bool,
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
        let request = self.requests.put(Request { due: at, left: 0, kind: first.kind });
        self.outstanding += 1;
        for part in parts {
            self.part(request, part)?;
        }
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
        let is_write = part.kind == HostIoKind::Write;
        match is_write {
            true => self.tally.bytes.written += part.len,
            false => self.tally.bytes.read += part.len,
        }
        if is_write && self.is_cached(place, part, blocks.clone()) {
            self.tally.served.cache += 1;
            self.tally.bytes.cache_written += part.len;
            let bytes = (blocks.end - blocks.start + 1) * LINE;
            self.cache.admit(blocks);
            self.append(owner, bytes);
            return Ok(());
        }
        if !is_write && self.cache.has_all(blocks) {
            self.tally.served.cache += 1;
            self.tally.bytes.cache_read += part.len;
            let column = self.ring_column();
            let disk = self.devices.idlest(self.fast.disks(column));
            self.access(disk, owner, AccessKind::Read, part.offset, part.len);
            return Ok(());
        }
        match place.tier {
            TierName::Performance => self.tally.served.performance += 1,
            TierName::Capacity => {
                self.tally.served.capacity += 1;
                self.idle_mode = false;
                let bypassed = if is_write { part.len } else { 0 };
                self.tally.bypassed += bypassed;
                self.tally.bytes.bypassed += bypassed;
            }
        }
        let kind = if is_write { AccessKind::Write } else { AccessKind::Read };
        self.transfer(owner, place, kind, part.offset, part.len);
        Ok(())
    }

    /// Whether a write goes to the write-back cache (6.1).
    fn is_cached(&mut self, place: Place, part: &HostPart, blocks: std::ops::Range<u64>) -> bool {
        let count = blocks.end - blocks.start;
        if self.cache.has_any(blocks) {
            return self.cache.has_room(count, true);
        }
        let wanted = place.tier == TierName::Capacity
            && part.len <= CACHED_LONGEST
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
    fn run_until(&mut self, end: Nanos) {
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
            true => self.devices.idle_since(self.layout.slow_disks()).map(|since| since + IDLE),
            false => None,
        };
        [self.next_run, moves, idle].into_iter().flatten().min()
    }

    fn on_timer(&mut self) {
        if self.next_run.is_some_and(|at| at <= self.now) {
            self.start_run();
        }
        let idle = self.devices.idle_since(self.layout.slow_disks());
        if idle.is_some_and(|since| since + IDLE <= self.now) && self.cache.is_dirty() {
            self.idle_mode = true;
            self.pump_destages();
        }
        self.pump_moves();
    }

    fn ended(&mut self, slot: u32) {
        match self.accesses.take(slot) {
            Owner::Host(number) => {
                let request = self.requests.get(number);
                request.left -= 1;
                if request.left == 0 {
                    let request = self.requests.take(number);
                    self.outstanding -= 1;
                    self.answered(&request);
                }
            }
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
        if self.tierer.begin_window(least) {
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
