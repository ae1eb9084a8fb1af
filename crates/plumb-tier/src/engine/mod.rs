//! The engine: requests come in, are cut into parts, and each part goes its way as a state machine.
//!
//! One thread owns it. [`Engine::poll`] moves everything as far as it goes; between polls nothing
//! happens. A part never spans two disks of one copy, so each is one device I/O per copy.

mod began;
mod cache;
mod change;
mod clients;
mod copying;
mod destage;
mod fetch;
mod heat;
mod jobs;
mod kept;
mod locks;
mod log_line;
mod memory;
mod moved;
mod moves;
mod moving;
mod optimize;
mod part;
mod perf;
mod pump;
mod ranges;
mod read;
mod round;
mod scanning;
mod share;
mod slabs;
mod snapshot;
mod standstill;
mod state;
pub(crate) mod streams;
mod throttle;
mod through;
mod times;
mod unchanging;
mod view;
mod write;
mod zero;

use std::collections::{BTreeMap, VecDeque};

use plumb_io::{Errno, FlushQueue};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_usize};

use crate::assembly::{How, Terms};
use crate::core::{Core, Counters, Halt};
use crate::extents::Copies;
use crate::format::config::Generation;
use crate::io::SlotPlan;
use crate::mutation::{Mutation, active};
use crate::recover::{self, StartError};
use began::BeganSince;
use cache::Cache;
pub use change::ChangeError;
pub use heat::Served;
pub use jobs::{JobKind, JobState};
pub use kept::{KeepWith, Kept};
use locks::Locks;
use log_line::LogLine;
pub(crate) use memory::ClientMemory;
pub use moved::{MoveCounters, MoveDone, MoveOutcome};
use moves::Moves;
pub(crate) use optimize::TRICKLE_WINDOW_H;
pub use optimize::{Optimization, OptimizeSettings, Tiering};
use part::{NONE, Part, Step};
pub use perf::{Account, DiskUse, RequestUse, VirtualDiskUse};
use round::Round;
pub use snapshot::{Counter, identities};
use through::LogFlush;
pub use view::{Placed, Published, TierView};

const EIO: Errno = Errno(5);
/// How often to look for I/Os whose time is over.
const OVERDUE_CHECK: Nanos = Nanos(1_000_000_000);
/// How long a disk may be away before it is given up (RES-4).
const RETIRE_AFTER: Nanos = Nanos(300_000_000_000);
const EINVAL: Errno = Errno(22);

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Virtual disk to the client's buffer.
    Read,
    /// The client's buffer to the virtual disk; durable when done if `fua`.
    Write {
        /// Whether it must be durable when it is acknowledged.
        fua: bool,
    },
    /// Whole blocks read as zero from now on; partial blocks at the edges are left alone.
    Discard,
    /// The range reads as zero from now on: a write in every respect.
    WriteZeroes,
    /// All that was acknowledged before is durable when this is.
    Flush,
}

/// A request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What.
    pub kind: RequestKind,
    /// On which virtual disk, in the configuration's order.
    pub vdisk: u32,
    /// Bytes from its start: a multiple of 512.
    pub offset: u64,
    /// Bytes: a multiple of 512.
    pub len: u32,
}

#[derive(Debug)]
struct Client {
    request: Request,
    busy: bool,
    /// Bytes cut into parts so far.
    cut: u32,
    parts: u32,
    /// It writes, and is part of a sequential stream.
    sequential: bool,
    error: Option<Errno>,
    /// Something of it was written home, and not to a log.
    home: bool,
    begun: Nanos,
    served: perf::Served,
}

/// A started space.
#[derive(Debug)]
pub struct Engine<Q> {
    core: Core<Q>,
    /// When this poll began, and what it stood still for.
    now: Nanos,
    /// When the devices' last answers were seen.
    seen: Nanos,
    began_since: BeganSince,
    polling: bool,
    clients: Vec<Client>,
    memory: ClientMemory,
    finished: VecDeque<(u32, Result<(), Errno>)>,
    parts: Vec<Part>,
    free_parts: Vec<u32>,
    /// Parts for destage: clients cannot take them.
    free_background: Vec<u32>,
    /// Destages under way at a time, at most, and the parts of those that are with where they write.
    destages_most: u32,
    destages: Vec<(u32, Copies)>,
    /// By virtual disk.
    caches: Vec<Option<Cache>>,
    log_line: LogLine,
    /// What each did, by virtual disk.
    uses: Vec<VirtualDiskUse>,
    tier_times: Vec<[perf::TierTimes; 2]>,
    /// How long its requests took.
    request_times: Vec<perf::RequestTimes>,
    /// The time of the first poll.
    started: Option<Nanos>,
    /// When the last request came in.
    last_request: Nanos,
    /// New checksums of the parts that write, a part's beside each other.
    sums: Vec<u32>,
    part_blocks: usize,
    locks: Locks,
    ready: VecDeque<u32>,
    /// The same of parts that were cut while a round was under way: what the round needs next goes first.
    fresh: VecDeque<u32>,
    /// Parts that wait for the standstill to end.
    held: VecDeque<u32>,
    durable_wait: VecDeque<u32>,
    appended_wait: VecDeque<u32>,
    slot_wait: VecDeque<u32>,
    tentative_wait: VecDeque<u32>,
    /// Clients whose request is not wholly cut.
    cutting: VecDeque<u32>,
    round: Round,
    log_flush: LogFlush,
    frozen: bool,
    /// Disks that failed since the last standstill.
    trouble: Vec<u16>,
    jobs: VecDeque<standstill::Job>,
    heal: Vec<u32>,
    /// Records of logs with a copy that does not verify, by virtual disk and LSN.
    heal_logs: Vec<(usize, u64)>,
    /// Extents with blocks that a start could not settle and that somebody waits for.
    to_settle: Vec<u32>,
    /// Extents whose checksums are to be read while the engine stands.
    to_fetch: Vec<u32>,
    /// Of these, those that could not be settled when that was tried last, and when.
    in_vain: BTreeMap<u32, Nanos>,
    halted: Option<Halt>,
    last_resync: Nanos,
    /// How long the next step waits for requests.
    resync_pause: Nanos,
    /// When the last step of a scan ended, and how long requests have the disks to themselves then.
    last_scan: Nanos,
    scan_pause: Nanos,
    /// The running step is one.
    scanned: bool,
    /// Nothing reaches the disks: what writes is refused, and no work is begun.
    unchanging: bool,
    /// Something may be left to rebuild.
    rebuilding: bool,
    /// The generation whose copies of journal and tree were looked at last, and when.
    spread: Option<(Generation, Nanos)>,
    retire_after: Option<Nanos>,
    missing_since: Vec<Option<Nanos>>,
    /// Since when no other disk lost its vote, and how many have.
    probation: Option<(Nanos, usize)>,
    last_missing: Nanos,
    last_overdue: Nanos,
    /// A disk had writes to do that were given up, when that was looked at last.
    owed: bool,
    /// How often disks are marked, when that was last, and the journal's next frame of then.
    mark_every: Nanos,
    last_mark: Nanos,
    marked: u64,
    returning: Vec<u16>,
    /// The journal has no room for a frame.
    crowded: bool,
    /// It comes to rest: nothing of its own begins any more.
    ending: bool,
    /// Disks that failed were taken out since the last poll, which may have taken long.
    expelled: bool,
    /// Parts that ended, and pieces of background work that were taken.
    steps: u64,
    heats: heat::Heats,
    moves: Moves,
    optimizer: optimize::Optimizer,
    keeper: Option<KeepWith>,
}

impl<Q: FlushQueue> Engine<Q> {
    /// Starts the pool on the queue's files: recovers it, and serves `clients` requests at a time, each
    /// with a buffer of `client_bytes`.
    ///
    /// # Errors
    /// When the pool cannot be started; nothing was changed then that a later start would miss.
    pub fn start(
        queue: Q,
        plan: SlotPlan,
        clients: u32,
        client_bytes: u32,
        seed: u64,
    ) -> Result<Self, StartError> {
        Self::start_on(queue, plan, (clients, client_bytes), How::new(seed, Terms::More))
    }

    /// The same, with so many bytes of checksums in memory, at most and about: 4 for each block of 4 KiB. Those of other blocks are read
    /// when a request needs them.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_with(
        queue: Q,
        plan: SlotPlan,
        (clients, client_bytes): (u32, u32),
        (seed, sums_bytes): (u64, u64),
    ) -> Result<Self, StartError> {
        let how = How { sums_most: sums_bytes / 4, ..How::new(seed, Terms::More) };
        Self::start_on(queue, plan, (clients, client_bytes), how)
    }

    /// The same, with so much time for open extents before it serves: those that it does not come to are settled while it does.
    pub(crate) fn start_settling(
        queue: Q,
        plan: SlotPlan,
        (clients, client_bytes): (u32, u32),
        how: How,
    ) -> Result<Self, StartError> {
        Self::start_on(queue, plan, (clients, client_bytes), how)
    }

    /// The same on those terms.
    fn start_on(
        queue: Q,
        plan: SlotPlan,
        (clients, client_bytes): (u32, u32),
        how: How,
    ) -> Result<Self, StartError> {
        let (core, returning) = recover::start(queue, plan, how)?;
        let unchanging = how.terms == Terms::Any;
        let part_blocks = index((plan.data_bytes / 4096).max(1));
        let caches = Self::new_caches(&core);
        let uses = vec![VirtualDiskUse::default(); core.members.config.vdisks.len()];
        let for_clients = plan.data_slots.max(clients).max(8);
        let background = destage::parts(&core.members.config, plan.data_slots);
        let parts = for_clients + background + moves::MOVERS;
        let request = Request { kind: RequestKind::Flush, vdisk: 0, offset: 0, len: 0 };
        let client = |_| Client {
            request,
            busy: false,
            cut: 0,
            parts: 0,
            sequential: false,
            error: None,
            home: false,
            begun: Nanos::ZERO,
            served: perf::Served::default(),
        };
        let room = || VecDeque::with_capacity(index(parts));
        let marked = core.journal.link.lsn;
        let mut engine = Self {
            heats: heat::Heats::new(&core.members.config),
            optimizer: optimize::Optimizer::new(&core.members.config),
            keeper: None,
            core,
            now: Nanos::ZERO,
            seen: Nanos::ZERO,
            began_since: BeganSince::with_room(clients, parts),
            polling: false,
            clients: (0..clients).map(client).collect(),
            memory: ClientMemory::new(clients, client_bytes),
            finished: VecDeque::with_capacity(index(clients)),
            parts: vec![Part::default(); index(parts)],
            free_parts: (0..for_clients).rev().collect(),
            free_background: (for_clients..for_clients + background).rev().collect(),
            destages_most: background,
            destages: Vec::with_capacity(index(background)),
            moves: Moves::new(for_clients + background),
            caches,
            log_line: LogLine::default(),
            request_times: uses.iter().map(|_| perf::RequestTimes::new()).collect(),
            tier_times: uses.iter().map(|_| perf::TierTimes::both()).collect(),
            started: None,
            uses,
            last_request: Nanos::ZERO,
            sums: vec![0; part_blocks * index(parts)],
            part_blocks,
            locks: Locks::new(index(parts)),
            ready: room(),
            fresh: room(),
            held: room(),
            durable_wait: room(),
            appended_wait: room(),
            slot_wait: room(),
            tentative_wait: room(),
            cutting: VecDeque::with_capacity(index(clients)),
            round: Round::new(),
            log_flush: LogFlush::default(),
            frozen: false,
            trouble: Vec::new(),
            jobs: VecDeque::new(),
            heal: Vec::new(),
            heal_logs: Vec::new(),
            to_settle: Vec::new(),
            to_fetch: Vec::new(),
            in_vain: BTreeMap::new(),
            halted: None,
            last_resync: Nanos::ZERO,
            resync_pause: Nanos::ZERO,
            last_scan: Nanos::ZERO,
            scan_pause: Nanos::ZERO,
            scanned: false,
            unchanging,
            ending: false,
            rebuilding: !unchanging,
            spread: None,
            retire_after: (!unchanging).then_some(RETIRE_AFTER),
            missing_since: Vec::new(),
            probation: None,
            last_missing: Nanos::ZERO,
            last_overdue: Nanos::ZERO,
            owed: false,
            mark_every: standstill::MARK_EVERY,
            last_mark: Nanos::ZERO,
            marked,
            returning,
            crowded: false,
            expelled: false,
            steps: 0,
        };
        engine.judge_unflushed();
        Ok(engine)
    }

    /// The queue beneath, for whoever made it.
    pub fn queue_mut(&mut self) -> &mut Q {
        &mut self.core.io.queue
    }

    /// The queue back, whatever is under way.
    #[must_use]
    pub fn into_queue(self) -> Q {
        self.core.io.queue
    }

    /// The buffer of a client that has no request under way.
    ///
    /// # Panics
    /// When it has one.
    pub fn buffer_mut(&mut self, client: u32) -> &mut [u8] {
        assert!(!self.clients[index(client)].busy, "the client's buffer is in use");
        self.memory.own_mut(client)
    }

    /// Hands in a request of an idle client.
    ///
    /// # Panics
    /// When the client has a request under way.
    pub fn submit(&mut self, client: u32, request: Request) {
        let own = &mut self.clients[index(client)];
        assert!(!own.busy, "client {client} has a request under way");
        own.busy = true;
        own.request = request;
        own.cut = 0;
        own.parts = 0;
        own.error = None;
        own.home = false;
        own.begun = self.seen;
        self.began_since.note_client(client);
        own.served = perf::Served::default();
        if request.kind == RequestKind::Flush {
            self.join_round(client);
            return;
        }
        let through = u32::from(request.kind == RequestKind::Write { fua: true });
        self.round.through += through;
        let fits = self.memory.fits(client, request.len)
            || matches!(request.kind, RequestKind::Discard | RequestKind::WriteZeroes);
        let inside = index(request.vdisk) < self.core.members.config.vdisks.len()
            && request
                .offset
                .checked_add(request.len.into())
                .is_some_and(|end| end <= self.size(request.vdisk));
        let aligned = request.offset.is_multiple_of(512) && request.len.is_multiple_of(512);
        if !fits || !inside || !aligned || request.len == 0 {
            self.clients[index(client)].error = (!fits || !inside || !aligned).then_some(EINVAL);
            self.end_client(client);
            return;
        }
        if self.is_detached(request.vdisk) {
            self.round.through -= through;
            self.clients[index(client)].error = Some(EIO);
            self.answer(client);
            return;
        }
        if self.unchanging && request.kind != RequestKind::Read {
            self.refuse(client);
            return;
        }
        self.last_request = self.now;
        self.note_heat(&request);
        if matches!(request.kind, RequestKind::Write { .. })
            && self.core.logs[index(request.vdisk)].is_some()
        {
            self.note_stream(client);
        }
        self.cutting.push_back(client);
        self.cut();
    }

    /// Moves everything on, waiting for devices until `timeout` if nothing is finished yet. `now` never
    /// goes back.
    pub fn poll(&mut self, now: Nanos, timeout: Nanos) {
        self.now = self.now.max(now);
        self.seen = self.seen.max(self.now);
        self.core.io.set_time(self.seen);
        if self.started.is_none() {
            (self.started, self.last_mark) = (Some(self.now), self.now);
        }
        self.begin_times();
        self.pace_requests();
        self.polling = true;
        self.tend_heat(false);
        self.hand_out(false);
        if std::mem::take(&mut self.expelled) {
            self.wait_for_room_anew();
        }
        self.reap();
        let stood = self.advance_all();
        let wanted = u32::from(self.finished.is_empty() && self.core.io.in_flight() > 0);
        // Whoever rang while the engine stood and waited would be heard late.
        let heard = stood || !self.finished.is_empty() || self.core.io.has_refused();
        let timeout = if heard { Nanos::ZERO } else { timeout };
        self.submit_and_wait(wanted, timeout);
        self.reap();
        self.advance_all();
        let _ = self.core.io.queue.submit_and_wait(0, Nanos::ZERO);
        self.polling = false;
    }

    /// A finished request: its client is idle.
    pub fn pop(&mut self) -> Option<(u32, Result<(), Errno>)> {
        self.finished.pop_front()
    }

    /// Whether nothing is under way, beside what waits for time to pass.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let free = self.free_parts.len() + self.free_background.len() + self.moves.free_parts();
        let quiet = self.core.io.in_flight() == 0 && free == self.parts.len();
        quiet
            && !self.frozen
            && self.trouble.is_empty()
            && self.jobs.is_empty()
            && self.round.is_idle()
            && self.log_flush.is_idle()
            && self.moves.is_idle()
    }

    /// Moves everything on; whether it stood still meanwhile.
    fn advance_all(&mut self) -> bool {
        self.give_up_overdue();
        let mut stood = false;
        let mut turns = 0;
        let mut before = self.progress();
        loop {
            while let Some(part) = self.ready.pop_front() {
                self.advance(part);
                self.note_turn(&mut turns, &mut before);
            }
            self.pump_log_flush();
            self.pump_journal();
            while self.pump_round() {
                self.pump_journal();
            }
            if !self.fresh.is_empty() {
                self.ready.append(&mut self.fresh);
                continue;
            }
            self.pump_logs();
            self.pump_moves();
            if self.stand_still() {
                stood = true;
                self.note_turn(&mut turns, &mut before);
                continue;
            }
            if self.ready.is_empty() && self.fresh.is_empty() {
                return stood;
            }
        }
    }

    /// Takes completions from the devices.
    fn reap(&mut self) {
        self.core.io.queue.look();
        while let Some((tag, slot, outcome)) = self.core.io.pop() {
            self.finish_io(tag, slot, outcome);
        }
    }

    /// Cuts waiting requests into parts as long as there are free ones.
    fn cut(&mut self) {
        while let Some(&client) = self.cutting.front() {
            let request = self.clients[index(client)].request;
            while self.clients[index(client)].cut < request.len {
                if !self.cut_next(client, request) {
                    return;
                }
            }
            self.cutting.pop_front();
            if self.clients[index(client)].parts == 0 {
                self.end_client(client);
            }
        }
    }

    /// Cuts the next part off; `false` when no part is free.
    fn cut_next(&mut self, client: u32, request: Request) -> bool {
        let done = self.clients[index(client)].cut;
        let config = &self.core.members.config;
        let vdisk = &config.vdisks[index(request.vdisk)];
        let extent_bytes = config.extent_bytes;
        let at = request.offset + u64::from(done);
        let extent = vdisk.first_extent + to_u32(to_usize(at / u64::from(extent_bytes)));
        let start = to_u32(to_usize(at % u64::from(extent_bytes)));
        let left = (request.len - done).min(extent_bytes - start);
        let piece = match request.kind {
            RequestKind::Read | RequestKind::Write { .. } | RequestKind::Flush => {
                let step = self.core.io.plan().data_bytes.min(vdisk.interleave);
                let left = left.min(step - start % step);
                if request.kind == RequestKind::Read {
                    part::Piece::data(true, left)
                } else {
                    part::Piece::write(start, left.min(self.part_max(index(request.vdisk))))
                }
            }
            RequestKind::Discard | RequestKind::WriteZeroes => {
                part::Piece::zero(request.kind == RequestKind::WriteZeroes, start, left)
            }
        };
        let Some(kind) = piece.kind else {
            self.clients[index(client)].cut += piece.len;
            return true;
        };
        let Some(part) = self.free_parts.pop() else { return false };
        // By the time that the part begins its checksums are here.
        let own = self.core.extents.get_mut(extent);
        own.used = true;
        own.sums.prefetch(index(start / 4096));
        self.parts[index(part)] = Part {
            client,
            kind,
            extent,
            start,
            len: piece.len,
            begun: self.seen,
            buffer: done,
            step: Step::Lock,
            queued: true,
            ..Part::default()
        };
        if !self.polling {
            self.began_since.note_part(part);
        }
        let own = &mut self.clients[index(client)];
        own.cut += piece.len;
        own.parts += 1;
        self.locks.enter(part, &mut self.parts);
        if kind.writes() {
            self.core.extents.get_mut(extent).writers += 1;
        }
        let line = if self.round.is_idle() { &mut self.ready } else { &mut self.fresh };
        line.push_back(part);
        true
    }

    /// A part has ended.
    fn end_part(&mut self, part: u32, error: Option<Errno>) {
        let own = self.parts[index(part)];
        debug_assert!(own.slots == [NONE; 3], "a part ends with slots");
        self.steps += 1;
        self.release_source(part);
        if own.kind.destages() {
            self.destage_ended(part, error.is_none());
        }
        if own.kind.writes() {
            self.core.extents.get_mut(own.extent).writers -= 1;
        }
        self.locks.leave(part, &mut self.parts, &mut self.ready);
        self.pass_on_slots();
        self.parts[index(part)].step = Step::Free;
        if own.is_background() {
            self.free_background.push(part);
            return;
        }
        self.free_parts.push(part);
        self.note_served(&own);
        let client = &mut self.clients[index(own.client)];
        client.error = client.error.or(error);
        client.parts -= 1;
        if client.parts == 0 && client.cut == client.request.len {
            self.end_client(own.client);
        }
        if !self.cutting.is_empty() {
            self.cut();
        }
    }

    fn end_client(&mut self, client: u32) {
        let own = &self.clients[index(client)];
        let fua = own.request.kind == RequestKind::Write { fua: true };
        self.round.through -= u32::from(fua);
        let durable = fua && own.error.is_none() && !active(Mutation::FuaIgnored);
        if durable && !own.home {
            self.wait_for_log(client);
        } else if durable {
            self.join_round(client);
        } else {
            self.answer(client);
        }
    }

    fn answer(&mut self, client: u32) {
        let own = &mut self.clients[index(client)];
        own.busy = false;
        if let Some(kind) = own.served.kind() {
            self.moves.throttle.note(kind, self.seen.since(own.begun));
        }
        if let Some(used) = self.uses.get_mut(index(own.request.vdisk)) {
            let (request, time) = (own.request, self.seen.since(own.begun));
            let asked = (request.offset, request.len, time);
            used.note(request.kind, asked, own.error.is_none(), &own.served);
            self.request_times[index(request.vdisk)].note(request.kind, time);
        }
        let outcome = own.error.map_or(Ok(()), Err);
        self.finished.push_back((client, outcome));
    }
}
