//! Runs histories: an engine on simulated disks, and the host that drives it and writes down what it saw.

use plumb_io::FlushQueue;
use plumb_io::sim::power::{DiskFaults, Image, PowerQueue, PowerSpec, Survivors};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_usize};

use super::background::Background;
use super::history::{CLIENT_BYTES, CLIENTS, Fault, PATIENT, Shape, Step, sectors};
use super::lost_sectors::LostSectors;
use super::oracle::{Oracle, Promise, UNIT_BYTES, WriteId, content};
use super::short_of_memory;
use super::sick::Sick;
use super::witness::{Log, Seen, Witness};
use crate::assembly::{How, Terms};
use crate::events::Event;
use crate::format::DiskState;
use crate::log_ahead::FAR_FROM;
use crate::optimizer::TierName;
use crate::{Engine, Request, RequestKind, SlotPlan, StartError, create};

/// What a client waits for.
#[derive(Debug, Clone)]
enum Waiting {
    Nothing,
    Write { id: WriteId, fua: bool },
    Flush,
    Read { first: u32, since: u64, then: Vec<Vec<WriteId>> },
}

/// A violation of the contract, in words.
pub(super) type Wrong = String;

/// Every so many polls all counters are held against each other.
const SNAPSHOT_EVERY: u64 = 64;

/// An engine under way, with its witness.
pub(super) struct Run {
    pub(super) engine: Engine<PowerQueue>,
    pub(super) witness: Witness,
    pub(super) log: Log,
    pub(super) shape: Shape,
    waiting: Vec<Waiting>,
    requests: Vec<Request>,
    pub(super) unwell: Option<u32>,
    /// The disk of which something rotted, and the units of the history that are in those blocks.
    pub(super) rotten: Option<u32>,
    pub(super) spoilt: Vec<std::ops::Range<u32>>,
    /// Device events of the start.
    pub(super) recovery: usize,
    /// The disk that was not well is back.
    returned: bool,
    /// What background work was done, and when.
    pub(super) background: Background,
    polls: u64,
    /// Every disk holds what was written to it: a copy that does not verify is the engine's fault then, unless its
    /// disk is a suspect.
    pub(super) sound: bool,
    /// Copies of metadata that the start found damaged: a crash may leave some behind.
    damaged: u64,
    /// Disks that were not well at some time.
    pub(super) suspects: Vec<u32>,
    /// Where any disk may fail.
    pub(super) sick: Option<Sick>,
    pub(super) wrong: Option<Wrong>,
}

/// A queue to disks that hold `images`.
pub(super) fn queue(shape: &Shape, images: Vec<Image>, seed: u64, record: bool) -> PowerQueue {
    queue_of(shape.plan(), images, seed, record)
}

/// The same for an engine with such slots.
pub(super) fn queue_of(plan: SlotPlan, images: Vec<Image>, seed: u64, record: bool) -> PowerQueue {
    let spec = PowerSpec {
        seed,
        depth: plan.depth(),
        lanes: plan.lanes(),
        sector: 512,
        service: (Nanos(2_000), Nanos(90_000)),
        record,
    };
    PowerQueue::new(&spec, images)
}

/// New disks with the shape's pool on them.
pub(super) fn new_pool(shape: &Shape) -> Vec<Image> {
    let images = vec![Image::new(shape.disk_bytes()); index(shape.disks)];
    let mut made = queue(shape, images, shape.seed, false);
    // The disks are not new: what somebody else left there must never be seen.
    let dirt = dirt();
    for disk in 0..shape.disks {
        let start = shape.geometry().slab(0);
        for nth in 0..12 {
            made.tamper(disk, start + nth * to_units(dirt.len()), &dirt);
        }
    }
    create(&mut made, shape.plan(), &shape.pool(), shape.seed).expect("the shapes fit their disks");
    (0..shape.disks).map(|disk| made.view(disk)).collect()
}

fn to_units(len: usize) -> u64 {
    plumb_units::convert::to_u64(len)
}

/// Bytes of a former owner: never zero, never of this pool.
fn dirt() -> Vec<u8> {
    (0..65_536_u32).map(|nth| u8::try_from(nth % 251).unwrap_or(0) | 1).collect()
}

impl Shape {
    /// How many blocks have their checksums in memory, at most.
    fn sums_most(&self) -> u64 {
        short_of_memory::sums_most(self)
    }

    /// Some take every log for a long one, or from its second record on.
    fn log_far_from(&self) -> u64 {
        match self.seed % 16 {
            _ if self.seed < 16 => FAR_FROM,
            3 => 0,
            9 => 1,
            _ => FAR_FROM,
        }
    }

    /// Some starts leave all open extents for later, some those that they do not come to in a few I/Os; most settle all of them.
    fn settle_within(&self) -> Nanos {
        match self.seed % 16 {
            // Cases that are made by hand.
            _ if self.seed < 16 => Nanos::NEVER,
            5 => Nanos::ZERO,
            13 => Nanos(self.seed / 16 % 2_000_000),
            _ => Nanos::NEVER,
        }
    }
}

/// Starts an engine on the disks of a queue.
pub(super) fn start_engine<Q: FlushQueue>(
    shape: &Shape,
    made: Q,
    seed: u64,
) -> Result<Engine<Q>, StartError> {
    let clients = (CLIENTS + 1, CLIENT_BYTES);
    let (settle_within, sums_most) = (shape.settle_within(), shape.sums_most());
    let log_far_from = shape.log_far_from();
    let how = How { settle_within, sums_most, log_far_from, ..How::new(seed ^ 0x1d, Terms::More) };
    Engine::start_settling(made, shape.plan(), clients, how).map(closing_at_once)
}

/// The same by an operator's word on what cannot be read at the end of its journal.
fn start_to_unread_end(
    shape: &Shape,
    made: PowerQueue,
    seed: u64,
) -> Result<Engine<PowerQueue>, StartError> {
    let clients = (CLIENTS + 1, CLIENT_BYTES);
    Engine::start_to_unread_end(made, shape.plan(), clients, seed ^ 0x1d).map(closing_at_once)
}

/// Extents close and open again all the time: a history is over within seconds.
fn closing_at_once<Q: FlushQueue>(mut engine: Engine<Q>) -> Engine<Q> {
    engine.set_close_after(Nanos::ZERO);
    engine
}

impl Run {
    /// Starts the pool. `absent` disks answer nothing.
    pub(super) fn start(
        shape: &Shape,
        images: Vec<Image>,
        absent: &[u32],
        oracle: Oracle,
        seed: u64,
    ) -> Result<Self, StartError> {
        Self::start_without(shape, images, (absent, None), oracle, seed)
    }

    /// The same where some sectors cannot be read either.
    pub(super) fn start_without(
        shape: &Shape,
        images: Vec<Image>,
        (absent, lost): (&[u32], Option<&LostSectors>),
        oracle: Oracle,
        seed: u64,
    ) -> Result<Self, StartError> {
        let everywhere = lost.filter(|lost| lost.is_everywhere());
        let again = everywhere.map(|lost| (lost, images.clone(), oracle.clone()));
        let mut made = queue(shape, images, seed, true);
        for &disk in absent {
            made.faults_mut(disk).dead_from = Some(0);
        }
        if let Some(lost) = lost {
            lost.lose(&mut made);
        }
        let mut run = match (Self::start_on(shape, made, oracle, seed), again) {
            (Err(StartError::UnreadEnd), Some((lost, images, oracle))) => {
                let mut made = queue(shape, images, seed, true);
                lost.lose(&mut made);
                Self::go_on_with(shape, start_to_unread_end(shape, made, seed)?, oracle)
            }
            (outcome, _) => outcome?,
        };
        let returning = || run.engine.returning().first().map(|disk| u32::from(*disk));
        run.unwell = absent.first().copied().or_else(returning);
        if run.unwell.is_some() {
            run.note(Seen::Unwell { disk: run.unwell });
        }
        Ok(run)
    }

    /// Starts the pool on the disks of a queue.
    pub(super) fn start_on(
        shape: &Shape,
        made: PowerQueue,
        oracle: Oracle,
        seed: u64,
    ) -> Result<Self, StartError> {
        Ok(Self::go_on_with(shape, start_engine(shape, made, seed)?, oracle))
    }

    /// With an engine that was started.
    pub(super) fn go_on_with(
        shape: &Shape,
        mut engine: Engine<PowerQueue>,
        oracle: Oracle,
    ) -> Self {
        // Some moves hold writes at once, some wait for a moment without any.
        let patience = if shape.seed.is_multiple_of(3) { Nanos(300_000) } else { Nanos::ZERO };
        engine.set_move_patience(patience);
        if shape.seed / 3 % 4 == 2 {
            // Requests stand in line in front of their disks while frames are due.
            engine.give_disks_at_most(1 + u32::from(shape.seed / 12 % 2 == 1));
        }
        if shape.seed % 16 == 2 {
            // Disks are marked again and again, at any moment.
            engine.set_marking(Nanos(20_000_000));
        }
        let request = Request { kind: RequestKind::Flush, vdisk: 0, offset: 0, len: 0 };
        let mut run = Self {
            engine,
            witness: Witness::new(oracle),
            log: Vec::new(),
            shape: shape.clone(),
            waiting: vec![Waiting::Nothing; index(CLIENTS + 1)],
            requests: vec![request; index(CLIENTS + 1)],
            unwell: None,
            rotten: None,
            spoilt: Vec::new(),
            recovery: 0,
            returned: false,
            background: Background::default(),
            polls: 0,
            sound: true,
            damaged: 0,
            suspects: Vec::new(),
            sick: None,
            wrong: None,
        };
        run.recovery = run.engine.queue_mut().events();
        run.damaged = run.engine.counters().metadata_damaged;
        run
    }

    pub(super) fn note(&mut self, seen: Seen) {
        self.witness.see(&seen);
        let position = self.engine.queue_mut().events();
        self.log.push((position, seen));
    }

    /// A disk forgot what a flush was for that failed: of what nobody has made durable it is as if its power had failed then.
    fn note_forgotten(&mut self) {
        for position in self.engine.queue_mut().take_forgotten() {
            let alone = self.shape.alone();
            // Each virtual disk is flushed by itself.
            let shared = 0..if alone.is_empty() { sectors() } else { alone.start };
            for of in [shared, alone].into_iter().filter(|of| !of.is_empty()) {
                let seen = Seen::Forgetful { first: of.start, end: of.end };
                self.witness.see(&seen);
                let at = self.log.partition_point(|(other, _)| *other <= position);
                self.log.insert(at, (position, seen));
            }
        }
    }

    /// Takes the steps; what is wrong with what was read, if anything.
    pub(super) fn take(&mut self, steps: &[Step]) -> Result<(), Wrong> {
        for step in steps {
            self.step(self.spares_what_rotted(*step));
            if let Some(wrong) = self.wrong.take() {
                return Err(wrong);
            }
        }
        Ok(())
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Request { client, kind, offset, len } => {
                self.idle(client);
                if self.wrong.is_none() {
                    self.submit(client, Request { kind, vdisk: 0, offset, len });
                    if len % 3 == 0 {
                        self.poll();
                    }
                }
            }
            Step::Poll => (0..4).for_each(|_| self.poll()),
            Step::Sleep { millis } => {
                self.engine.queue_mut().advance(Nanos::from_millis(millis));
                self.poll();
            }
            Step::Rot { disk, seed } => self.rot(disk, seed),
            Step::Fault { disk, fault } if self.sick.is_some() => self.fall_sick(disk, fault),
            Step::Fault { disk, fault } => self.fault(disk, fault),
            Step::Back { disk } => self.come_back(disk),
            Step::Offline { disk } => self.take_offline(disk),
            Step::GiveUp => self.engine.retire_missing(),
            Step::Return => self.bring_back(),
            Step::Retire => self.retire(),
            Step::Leave { disk } => self.leave(disk),
            Step::Checkpoint => self.engine.checkpoint(),
            Step::Scan => self.engine.scan(),
            Step::Move { which, fast } => {
                for extent in (0..8).filter(|extent| which >> extent & 1 == 1) {
                    let to = match fast >> extent & 1 {
                        1 => TierName::Performance,
                        _ => TierName::Capacity,
                    };
                    self.move_one(extent, to);
                }
                self.poll();
            }
            Step::Optimize { reserve, movers, rate, millis } => {
                self.optimize((reserve, movers), rate, millis);
                self.poll();
            }
            Step::CallOff { wait } => self.call_off(wait),
            Step::SlowRead { nth, millis } => self.read_slowly(nth, millis),
            Step::WriteOver { client, nth } => self.write_over(client, nth),
        }
        self.look_at_health();
    }

    /// The patient client reads a block from the log of the cache, and the disks take their time.
    fn read_slowly(&mut self, nth: u32, millis: u64) {
        if !matches!(self.waiting[index(PATIENT)], Waiting::Nothing) {
            return;
        }
        let Some(offset) = self.cached(nth) else { return };
        self.slow_reads(Nanos::from_millis(millis));
        let read = RequestKind::Read;
        self.submit(PATIENT, Request { kind: read, vdisk: 0, offset, len: 4096 });
        self.poll();
        self.slow_reads(Nanos::ZERO);
    }

    /// The history's address of a block that the cache holds.
    fn cached(&self, nth: u32) -> Option<u64> {
        let block = self.engine.cached_block(0, nth)?;
        self.shape.known_as(block * 4096)
    }

    fn slow_reads(&mut self, time: Nanos) {
        for disk in 0..self.shape.disks {
            self.engine.queue_mut().faults_mut(disk).slow_reads = time;
        }
    }

    /// Writes over a block that the cache holds, but not over one that the patient client still reads.
    fn write_over(&mut self, client: u32, nth: u32) {
        self.idle(client);
        let reads = !matches!(self.waiting[index(PATIENT)], Waiting::Nothing);
        let read = reads.then(|| self.requests[index(PATIENT)].offset);
        let may = |own: &u64| Some(*own) != read && !self.is_spoilt(*own, 4096);
        let other = |nth: u32| self.cached(nth).filter(may);
        let Some(offset) = (nth..nth + 4).find_map(other) else { return };
        if self.wrong.is_none() {
            let kind = RequestKind::Write { fua: false };
            self.submit(client, Request { kind, vdisk: 0, offset, len: 4096 });
            self.poll();
        }
    }

    /// Lets the engine work a little.
    pub(super) fn poll(&mut self) {
        let queue = self.engine.queue_mut();
        let (now, from) = (queue.now(), queue.events());
        let (on, before) = (self.engine.works_in_background(), self.engine.counters());
        let optimized = self.optimizes();
        let writing = self.waiting.iter().any(|one| matches!(one, Waiting::Write { .. }));
        self.engine.poll(now, Nanos(60_000));
        self.note_forgotten();
        let (on, after) = (on || self.engine.works_in_background(), self.engine.counters());
        let to = self.engine.queue_mut().events();
        self.background.note((from, to), on, (&before, &after));
        if writing && after.rebuilt > 0 && self.engine.stale_places() > 0 {
            self.background.note_rebuilding((from, to));
        }
        if optimized {
            self.background.note_optimizing((from, to));
        }
        let moves = self.engine.move_counters();
        if self.background.moved.is_none() && moves.up + moves.down > 0 {
            self.background.moved = Some(to);
        }
        if self.shape.is_wide() && self.background.indexed.is_none() && after.checkpoints > 0 {
            self.background.indexed = Some(to);
        }
        if self.sick.is_some() && self.background.voteless.is_none() && self.has_voteless() {
            self.background.voteless = Some(to);
        }
        while let Some((client, outcome)) = self.engine.pop() {
            self.ended(client, outcome);
        }
        if let (Err(wrong), None) = (self.blames_none(), &self.wrong) {
            self.wrong = Some(wrong);
        }
        if self.wrong.is_none() {
            self.wrong = self.adds_up().and_then(|()| self.judge_optimizations()).err();
        }
        self.polls += 1;
        if self.polls.is_multiple_of(SNAPSHOT_EVERY) && self.wrong.is_none() {
            let stale = self.engine.stale_is_right(0);
            self.wrong = crate::identities(&self.engine.perf()).and(stale).err();
        }
    }

    /// Of disks that are sound every copy that takes part verifies, whichever is asked (RES-3, C4).
    pub(super) fn blames_none(&mut self) -> Result<(), Wrong> {
        if !self.sound {
            return Ok(());
        }
        if self.suspects.is_empty() {
            let counters = self.engine.counters();
            let damaged = counters.metadata_damaged - self.damaged + counters.metadata_unhealed;
            return match counters.mismatches + counters.unrecoverable + damaged {
                0 => Ok(()),
                _ => Err(format!("a copy on a sound disk does not verify: {counters:?}")),
            };
        }
        while let Some(event) = self.engine.next_event() {
            let Event::BadCopy { disk, extent } = event else { continue };
            if !self.suspects.contains(&u32::from(disk)) {
                return Err(format!(
                    "extent {extent} does not verify on disk {disk}, which is well"
                ));
            }
        }
        Ok(())
    }

    /// Waits until a client is idle.
    fn idle(&mut self, client: u32) {
        let busy = |run: &Self| !matches!(run.waiting[index(client)], Waiting::Nothing);
        // Of several disks each may be waited for.
        let turns = if self.sick.is_some() { 16_000 } else { 4000 };
        for turn in 0..turns {
            if !busy(self) || self.wrong.is_some() {
                return;
            }
            self.poll();
            if turn % 64 == 63 {
                // Whoever waits for time to pass: a device that hangs.
                self.engine.queue_mut().advance(Nanos::from_secs(2));
            }
        }
        let request = self.requests[index(client)];
        self.wrong = Some(format!("{request:?} is never answered"));
    }

    /// Waits until all clients are idle.
    pub(super) fn settle(&mut self) -> Result<(), Wrong> {
        (0..=PATIENT).for_each(|client| self.idle(client));
        self.wrong.take().map_or(Ok(()), Err)
    }

    fn submit(&mut self, client: u32, request: Request) {
        let (first, end) = units(&request);
        self.requests[index(client)] = request;
        match request.kind {
            RequestKind::Flush => {
                self.waiting[index(client)] = Waiting::Flush;
                self.note(Seen::Flush { client });
            }
            RequestKind::Read => {
                let since = self.witness.oracle.now();
                let then = (first..end).map(|unit| self.witness.oracle.values(unit)).collect();
                self.waiting[index(client)] = Waiting::Read { first, since, then };
            }
            RequestKind::Write { .. } | RequestKind::Discard | RequestKind::WriteZeroes => {
                let zeros = !matches!(request.kind, RequestKind::Write { .. });
                self.note(Seen::Issue { first, end, zeros });
                let id = self.witness.oracle.newest();
                let fua = request.kind == RequestKind::Write { fua: true };
                self.waiting[index(client)] = Waiting::Write { id, fua };
                if !zeros {
                    let buffer = self.engine.buffer_mut(client);
                    for (unit, bytes) in (first..end).zip(buffer.chunks_mut(UNIT_BYTES)) {
                        content(id, unit, bytes);
                    }
                }
            }
        }
        self.hand_in(client, request);
    }

    fn ended(&mut self, client: u32, outcome: Result<(), plumb_io::Errno>) {
        let good = outcome.is_ok();
        let request = self.requests[index(client)];
        let waiting = std::mem::replace(&mut self.waiting[index(client)], Waiting::Nothing);
        if !good && !self.may_fail_at(client, &request) && self.wrong.is_none() {
            let halted = self.engine.halted();
            self.wrong = Some(format!("{request:?} failed: {outcome:?}, halted {halted:?}"));
        }
        match waiting {
            Waiting::Nothing => {}
            Waiting::Write { id, fua } => self.note(Seen::Answer { id, good, durable: fua }),
            Waiting::Flush if good => {
                let units = self.shape.flushed_by(client).1;
                self.note(Seen::FlushDone { client, first: units.start, end: units.end });
            }
            Waiting::Flush => {}
            Waiting::Read { first, since, then } if good => {
                let buffer = self.engine.buffer_mut(client);
                let oracle = &self.witness.oracle;
                for ((unit, bytes), then) in
                    (first..).zip(buffer[..index(request.len)].chunks(UNIT_BYTES)).zip(&then)
                {
                    let judged =
                        oracle.judge_since(unit, bytes, Promise::Acknowledged, since, then);
                    if let Err(wrong) = judged {
                        self.wrong = Some(format!("a read while it ran: {wrong}"));
                        return;
                    }
                }
            }
            Waiting::Read { .. } => {}
        }
    }

    fn fault(&mut self, disk: u32, fault: Fault) {
        // Where something rotted, it is that disk.
        let disk = self.rotten.unwrap_or(disk);
        let fails = match self.rotten {
            Some(own) => !is_harmless(self.engine.queue_mut().faults_mut(own)),
            None => self.unwell.is_some(),
        };
        if fails || !self.shape.tolerates_loss() || self.engine.stale_places() > 0 {
            return;
        }
        if self.engine.config().disks[index(disk)].state != DiskState::Online {
            return;
        }
        self.unwell = Some(disk);
        self.suspects.push(disk);
        self.note(Seen::Unwell { disk: Some(disk) });
        let queue = self.engine.queue_mut();
        let faults = self.shape.faults(fault, (queue.ios(disk), queue.flushes(disk)));
        *queue.faults_mut(disk) = faults;
    }

    /// The disk is given up, if the engine has noticed that it is away and it did not come back.
    fn retire(&mut self) {
        let Some(disk) = self.unwell.filter(|_| !self.returned) else { return };
        if let Ok(ordinal) = u16::try_from(disk) {
            self.engine.retire(ordinal);
        }
    }

    /// A disk is to be removed, if the others have room for it and no other one is.
    fn leave(&mut self, disk: u32) {
        let Ok(ordinal) = u16::try_from(disk) else { return };
        if self.witness.leaving.is_none() && self.engine.leave(ordinal).is_ok() {
            self.note(Seen::Leaving { disk });
        }
    }

    /// Whether all that a retired disk held is elsewhere, and another disk may be lost.
    fn is_rebuilt(&self, disk: u32) -> bool {
        let config = self.engine.config();
        let online = config.disks.iter().filter(|disk| disk.state == DiskState::Online).count();
        config.disks[index(disk)].state == DiskState::Retired
            && !config.holds_retired()
            && online > 2
            && self.engine.stale_places() == 0
            && self.engine.is_quiet()
    }

    /// The disk comes back with what its cache kept, if the engine has noticed that it was away.
    fn bring_back(&mut self) {
        let Some(disk) = self.unwell else { return };
        let state = self.engine.config().disks[index(disk)].state;
        if state == DiskState::Online {
            self.engine.queue_mut().repair(disk);
            return;
        }
        let survivors = if disk % 2 == 0 { Survivors::Some } else { Survivors::None };
        self.engine.queue_mut().drop_cache(disk, survivors);
        self.returned = true;
        self.note(Seen::Back);
        if let Ok(ordinal) = u16::try_from(disk) {
            self.engine.attach(ordinal);
        }
    }

    /// All disks are well again when all take part and nothing is stale.
    fn look_at_health(&mut self) {
        if self.sick.is_some() {
            return self.look_at_the_sick();
        }
        let Some(disk) = self.unwell else { return };
        let missing = self.engine.config().disks[index(disk)].state != DiskState::Online;
        if missing && !self.returned && self.witness.expelled.is_none() {
            self.note(Seen::Expelled { disk });
        }
        if self.is_rebuilt(disk) {
            self.unwell = None;
            self.rotten = None;
            self.note(Seen::Unwell { disk: None });
            return;
        }
        let online = self.engine.config().disks[index(disk)].state == DiskState::Online;
        let harmless = is_harmless(self.engine.queue_mut().faults_mut(disk));
        let ios = self.engine.queue_mut().ios(disk);
        let faults = self.engine.queue_mut().faults_mut(disk);
        let mut of_writes = faults.write_errors.iter().chain(&faults.short_writes);
        let passed = of_writes.all(|at| *at < ios);
        if online && harmless && passed && self.engine.stale_places() == 0 && self.engine.is_quiet()
        {
            // Nobody knows whether all that rotted was seen and mended.
            self.unwell = self.rotten;
            if self.rotten.is_none() || self.returned {
                self.note(Seen::Unwell { disk: self.rotten });
            }
            self.returned = false;
        }
    }

    /// Brings back, with what it holds, a disk that was missing at the start.
    pub(super) fn attach_returning(&mut self) {
        for disk in self.engine.returning().to_vec() {
            self.engine.attach(disk);
        }
    }

    /// Reads everything and judges it; with `observe` it must stay so from now on.
    pub(super) fn read_all(&mut self, promise: Promise, turn: u32) -> Result<(), Wrong> {
        let mut values = vec![0; index(sectors())];
        let step = 32_u32;
        for first in (0..sectors()).step_by(to_usize(step.into())) {
            // The client decides which copy is asked first.
            let client = (first / step + turn) % CLIENTS;
            let request = Request {
                kind: RequestKind::Read,
                vdisk: 0,
                offset: u64::from(first) * 512,
                len: step * 512,
            };
            if !self.ask_history(client, request)? {
                return Err(format!("{request:?} failed"));
            }
            let buffer = self.engine.buffer_mut(client);
            for (unit, bytes) in (first..first + step).zip(buffer.chunks(UNIT_BYTES)) {
                values[index(unit)] = self.witness.oracle.judge(unit, bytes, promise)?;
            }
        }
        self.note(Seen::Observe { values });
        self.blames_none()
    }

    /// Asks on behalf of a client that has nothing under way; whether it was done.
    pub(super) fn ask(&mut self, client: u32, request: Request) -> Result<bool, Wrong> {
        self.requests[index(client)] = request;
        self.engine.submit(client, request);
        self.wait_for(client).ok_or_else(|| format!("{request:?} is never answered"))
    }

    /// The same of a request of the history.
    pub(super) fn ask_history(&mut self, client: u32, request: Request) -> Result<bool, Wrong> {
        let (vdisk, offset) = self.shape.place(request.offset);
        self.ask(client, Request { vdisk, offset, ..request })
    }

    fn wait_for(&mut self, client: u32) -> Option<bool> {
        let turns = if self.sick.is_some() { 16_000 } else { 4000 };
        for turn in 0..turns {
            let now = self.engine.queue_mut().now();
            self.engine.poll(now, Nanos(60_000));
            self.note_forgotten();
            while let Some((ended, outcome)) = self.engine.pop() {
                if ended == client {
                    return Some(outcome.is_ok());
                }
            }
            if turn % 64 == 63 {
                self.engine.queue_mut().advance(Nanos::from_secs(2));
            }
        }
        None
    }
}

/// Whether a disk works, but for writes that it may have failed.
fn is_harmless(faults: &DiskFaults) -> bool {
    faults.dead_from.is_none()
        && faults.hangs_from.is_none()
        && faults.flush_errors.is_empty()
        && faults.refused_flushes.is_empty()
}

/// The units that a request touches: of a discard only whole blocks.
fn units(request: &Request) -> (u32, u32) {
    let (mut from, mut to) = (request.offset, request.offset + u64::from(request.len));
    if request.kind == RequestKind::Discard {
        from = from.next_multiple_of(4096);
        to = (to / 4096 * 4096).max(from);
    }
    (to_u32(to_usize(from / 512)), to_u32(to_usize(to / 512)))
}
