//! The write-back cache as this engine does it: two blocks, a log of records on two disks, homes, a journal;
//! crashes with any subset of what was not flushed, an expelled and a returning log copy, and after a first
//! crash a start, more writes, and a second one.
//!
//! A round flushes everything at one instant here; the tail moves by itself, with a flush of the log only.

use std::collections::BTreeMap;

use super::explore::Model;

/// Rules that can be left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// FUA of a record is a flush of all that the copies of the log have, not a write-through (WBC-1).
    pub(super) fua_flushes_log: bool,
    /// A write is acknowledged when all live copies have its record.
    pub(super) all_copies: bool,
    /// The tail passes records only after the log was flushed (WBC-2).
    pub(super) flush_before_tail: bool,
    /// The tail stops at lines that are not clean (WBC-2).
    pub(super) tail_waits: bool,
    /// A line that is not clean sends writes to the log (6.1 rule 2).
    pub(super) live_to_log: bool,
    /// A clean line still does.
    pub(super) clean_to_log: bool,
    /// A block has one destage at a time, and no write meanwhile (WBC-2, RES-9).
    pub(super) one_destage: bool,
    /// Finishing a destage cleans its own line only.
    pub(super) cleans_own: bool,
    /// A line is clean after its home was flushed.
    pub(super) home_flushed: bool,
    /// A log copy that missed a record is not read.
    pub(super) expel_durable: bool,
    /// A returning copy gets what it missed before it counts.
    pub(super) return_copies: bool,
    /// A start makes the copies equal.
    pub(super) copies_equal: bool,
    /// A start says that all records behind what it found are of its own epoch (JRN-1).
    pub(super) epoch_raised: bool,
}

pub(super) const ALL: Rules = Rules {
    fua_flushes_log: true,
    all_copies: true,
    flush_before_tail: true,
    tail_waits: true,
    live_to_log: true,
    clean_to_log: true,
    one_destage: true,
    cleans_own: true,
    home_flushed: true,
    expel_durable: true,
    return_copies: true,
    copies_equal: true,
    epoch_raised: true,
};

/// What the host does, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// Small: to the log if it has room.
    Small(usize),
    /// The same with FUA.
    Fua(usize),
    /// Large: home, unless the block has a line.
    Large(usize),
    Flush,
}

pub(super) const OPS: [Op; 7] =
    [Op::Small(0), Op::Small(1), Op::Fua(0), Op::Fua(1), Op::Large(0), Op::Large(1), Op::Flush];

const RING: usize = 3;
const BLOCKS: usize = 2;
/// Destages under way, at most.
const DESTAGES: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Rec {
    lsn: u8,
    epoch: u8,
    block: u8,
    value: u8,
}

impl Rec {
    fn slot(self) -> usize {
        usize::from(self.lsn) % RING
    }
}

type Slots = [Option<Rec>; RING];

/// A log copy: what is durable in each slot, and what is not yet, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Disk {
    durable: Slots,
    cached: Vec<Rec>,
}

impl Disk {
    fn flush(&mut self) {
        for rec in self.cached.drain(..) {
            self.durable[rec.slot()] = Some(rec);
        }
    }

    fn after(&self, kept: u32) -> Slots {
        let mut slots = self.durable;
        for (nth, rec) in self.cached.iter().enumerate() {
            if kept >> nth & 1 == 1 {
                slots[rec.slot()] = Some(*rec);
            }
        }
        slots
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Line {
    None,
    Dirty(u8, u8),
    Home(u8, u8),
    Clean(u8, u8),
}

/// Copying a record's value home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Destage {
    block: usize,
    lsn: u8,
    value: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    at: usize,
    logs: [Disk; 2],
    /// Which copies are live, as the engine knows.
    live: [bool; 2],
    /// The same, durable.
    durable_live: [bool; 2],
    /// Per block: durable, and values since in order.
    homes: [(u8, Vec<u8>); BLOCKS],
    lines: [Line; BLOCKS],
    destages: Vec<Destage>,
    head: u8,
    tail: u8,
    /// Of the running start; and from which record on the log has that of the last one, at least.
    epoch: u8,
    raised: (u8, u8),
    starts_left: u8,
    /// Per block: all values, the last acknowledged, the last durable.
    values: [Vec<u8>; BLOCKS],
    acked: [usize; BLOCKS],
    durable: [usize; BLOCKS],
    faults: u8,
    /// Blocks whose home was written since the last round.
    written: [bool; BLOCKS],
}

pub(super) struct Cache {
    pub(super) rules: Rules,
    pub(super) script: Vec<Op>,
    /// Crashes after which it goes on.
    pub(super) starts: u8,
}

impl State {
    fn write_log(&mut self, block: usize, value: u8, all: bool) {
        let block_number = u8::try_from(block).unwrap_or(0);
        let rec = Rec { lsn: self.head, epoch: self.epoch, block: block_number, value };
        let live = self.logs.iter_mut().zip(self.live).filter(|(_, live)| *live);
        let count = if all { 2 } else { 1 };
        live.take(count).for_each(|(disk, _)| disk.cached.push(rec));
        self.lines[block] = Line::Dirty(self.head, value);
        self.head += 1;
    }

    fn flush_logs(&mut self) {
        let live = self.live;
        self.logs.iter_mut().zip(live).filter(|(_, live)| *live).for_each(|(disk, _)| disk.flush());
    }

    /// Flushes everything: lines at home are clean. Without `own` whatever line a block has by now.
    fn round(&mut self, own: bool) {
        self.flush_logs();
        for (durable, cached) in &mut self.homes {
            if let Some(last) = cached.drain(..).next_back() {
                *durable = last;
            }
        }
        for (line, written) in self.lines.iter_mut().zip(&mut self.written) {
            let written = std::mem::take(written) && !own;
            match *line {
                Line::Home(lsn, value) => *line = Line::Clean(lsn, value),
                Line::Dirty(lsn, value) if written => *line = Line::Clean(lsn, value),
                _ => {}
            }
        }
        self.durable = self.acked;
    }

    fn acknowledge(&mut self, block: usize, value: u8) {
        self.values[block].push(value);
        self.acked[block] = self.values[block].len() - 1;
    }

    fn lsn(line: Line) -> Option<u8> {
        match line {
            Line::None => None,
            Line::Dirty(lsn, _) | Line::Home(lsn, _) | Line::Clean(lsn, _) => Some(lsn),
        }
    }

    /// What a home may hold after a power cut.
    fn home_options(&self, block: usize) -> Vec<u8> {
        let (durable, cached) = &self.homes[block];
        let landing = self.destages.iter().filter(|one| one.block == block).map(|one| one.value);
        let mut all: Vec<u8> =
            std::iter::once(*durable).chain(cached.iter().copied()).chain(landing).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Every way in which a power cut may leave logs and homes, and which log copy may be lost with it.
    fn cuts(&self) -> impl Iterator<Item = ([Slots; 2], [u8; BLOCKS], Option<usize>)> + '_ {
        let bits = |copy: usize| 1_u32 << self.logs[copy].cached.len().min(16);
        // Only if the other copy is believed to be current.
        let both = self.durable_live == [true; 2];
        let away: &'static [Option<usize>] = if both { &[None, Some(0), Some(1)] } else { &[None] };
        let (homes_a, homes_b) = (self.home_options(0), self.home_options(1));
        let homes: Vec<[u8; BLOCKS]> =
            homes_a.iter().flat_map(|a| homes_b.iter().map(|b| [*a, *b])).collect();
        (0..bits(0)).flat_map(move |kept_a| {
            let homes = homes.clone();
            (0..bits(1)).flat_map(move |kept_b| {
                let copies = [self.logs[0].after(kept_a), self.logs[1].after(kept_b)];
                let homes = homes.clone();
                away.iter().flat_map(move |away| {
                    homes.clone().into_iter().map(move |homes| (copies, homes, *away))
                })
            })
        })
    }
}

impl Cache {
    fn host(&self, state: &State, into: &mut Vec<State>) {
        let Some(&op) = self.script.get(state.at) else { return };
        let mut next = state.clone();
        next.at += 1;
        let value = u8::try_from(state.at + 1).unwrap_or(u8::MAX);
        let (block, small, fua) = match op {
            Op::Flush => {
                next.round(self.rules.cleans_own);
                into.push(next);
                return;
            }
            Op::Small(block) => (block, true, false),
            Op::Fua(block) => (block, true, true),
            Op::Large(block) => (block, false, false),
        };
        // The range lock: a destage of the block goes first.
        if self.rules.one_destage && state.destages.iter().any(|one| one.block == block) {
            return;
        }
        let live = match state.lines[block] {
            Line::None => false,
            Line::Clean(..) => self.rules.clean_to_log,
            Line::Dirty(..) | Line::Home(..) => self.rules.live_to_log,
        };
        let room = usize::from(state.head - state.tail) < RING;
        if live && !room {
            return;
        }
        let logged = live || small && room;
        if logged {
            next.write_log(block, value, self.rules.all_copies);
        } else {
            next.homes[block].1.push(value);
            if let Line::Clean(..) = next.lines[block] {
                next.lines[block] = Line::None;
            }
        }
        next.acknowledge(block, value);
        if fua && !logged {
            next.round(self.rules.cleans_own);
        } else if fua && self.rules.fua_flushes_log {
            next.flush_logs();
            next.durable[block] = next.acked[block];
        } else if fua {
            // Only this record goes through the caches.
            for disk in &mut next.logs {
                if let Some(rec) = disk.cached.pop_if(|rec| rec.lsn + 1 == next.head) {
                    disk.durable[rec.slot()] = Some(rec);
                }
            }
            next.durable[block] = next.acked[block];
        }
        into.push(next);
    }

    fn background(&self, state: &State, into: &mut Vec<State>) {
        for block in 0..BLOCKS {
            let Line::Dirty(lsn, value) = state.lines[block] else { continue };
            let under_way =
                |one: &Destage| one.lsn == lsn || self.rules.one_destage && one.block == block;
            if state.destages.len() < DESTAGES && !state.destages.iter().any(under_way) {
                let mut next = state.clone();
                next.destages.push(Destage { block, lsn, value });
                next.destages.sort_unstable_by_key(|one| one.lsn);
                into.push(next);
            }
        }
        for nth in 0..state.destages.len() {
            let mut next = state.clone();
            let Destage { block, lsn, value } = next.destages.remove(nth);
            next.homes[block].1.push(value);
            next.written[block] = true;
            if State::lsn(next.lines[block]) == Some(lsn) {
                next.lines[block] = if self.rules.home_flushed {
                    Line::Home(lsn, value)
                } else {
                    Line::Clean(lsn, value)
                };
            }
            into.push(next);
        }
        // A round without a FLUSH: lines become clean.
        if state.lines.iter().any(|line| matches!(line, Line::Home(..))) {
            let mut next = state.clone();
            next.round(self.rules.cleans_own);
            into.push(next);
        }
        self.move_tail(state, into);
    }

    /// The tail passes what it can.
    fn move_tail(&self, state: &State, into: &mut Vec<State>) {
        let dirty = |lsn: u8| {
            let own = |line: &Line| matches!(line, Line::Dirty(own, _) | Line::Home(own, _) if *own == lsn);
            state.lines.iter().any(own) || state.destages.iter().any(|one| one.lsn == lsn)
        };
        let needed = |lsn: &u8| self.rules.tail_waits && dirty(*lsn);
        let tail = (state.tail..state.head).find(needed).unwrap_or(state.head);
        if tail == state.tail {
            return;
        }
        let mut next = state.clone();
        if self.rules.flush_before_tail {
            next.flush_logs();
        }
        next.tail = tail;
        for line in &mut next.lines {
            if State::lsn(*line).is_some_and(|lsn| lsn < tail) {
                *line = Line::None;
            }
        }
        into.push(next);
    }

    /// A log copy is lost, with any part of its cache; later it returns.
    fn faults(&self, state: &State, into: &mut Vec<State>) {
        if state.faults < 2 && state.live == [true; 2] {
            for lost in 0..2 {
                let mut next = state.clone();
                next.faults += 1;
                next.live[lost] = false;
                next.durable_live[lost] = !self.rules.expel_durable;
                next.logs[lost].cached.clear();
                into.push(next);
            }
        }
        if let (Some(back), 1) = (state.live.iter().position(|live| !live), state.faults) {
            let mut next = state.clone();
            next.faults += 1;
            if self.rules.return_copies {
                // Everything between tail and head, durably; behind the head it keeps what it had.
                let source = next.logs[1 - back].after(u32::MAX);
                for lsn in state.tail..state.head {
                    let slot = usize::from(lsn) % RING;
                    next.logs[back].durable[slot] = source[slot];
                }
            }
            next.live[back] = true;
            next.durable_live[back] = true;
            into.push(next);
        }
    }

    /// The records that a start finds, from the tail on.
    fn found(&self, state: &State, copies: &[Slots]) -> Vec<Rec> {
        let mut found: Vec<Rec> = Vec::new();
        for lsn in state.tail.. {
            // The chain of checksums: none of an earlier epoch follows one of a later.
            let last = found.last().map_or(0, |rec| rec.epoch);
            let (from, raised) = state.raised;
            let follows = |rec: &Rec| {
                rec.lsn == lsn && rec.epoch >= last && (lsn < from || rec.epoch >= raised)
            };
            let next = copies.iter().filter_map(|copy| copy[usize::from(lsn) % RING]).find(follows);
            let Some(next) = next else { break };
            found.push(next);
        }
        found
    }

    fn recover(&self, state: &State, copies: &[Slots], homes: [u8; BLOCKS]) -> [u8; BLOCKS] {
        let mut values = homes;
        for rec in self.found(state, copies) {
            values[usize::from(rec.block)] = rec.value;
        }
        values
    }

    /// The power fails, and it starts again on what that left.
    fn restart(&self, state: &State, into: &mut Vec<State>) {
        if state.starts_left == 0 {
            return;
        }
        for (copies, homes, away) in state.cuts() {
            let here = |nth: usize| state.durable_live[nth] && away != Some(nth);
            let live = [here(0), here(1)];
            let read: Vec<Slots> = (0..2).filter(|nth| live[*nth]).map(|nth| copies[nth]).collect();
            let found = self.found(state, &read);
            let mut next = State {
                starts_left: state.starts_left - 1,
                logs: copies.map(|durable| Disk { durable, cached: Vec::new() }),
                homes: homes.map(|value| (value, Vec::new())),
                lines: [Line::None; BLOCKS],
                destages: Vec::new(),
                written: [false; BLOCKS],
                live,
                durable_live: live,
                head: state.tail + u8::try_from(found.len()).unwrap_or(0),
                epoch: state.epoch + 1,
                faults: if away.is_some() { 1 } else { state.faults },
                ..state.clone()
            };
            if self.rules.epoch_raised {
                next.raised = (next.head, next.epoch);
            }
            let mut values = homes;
            for rec in found {
                values[usize::from(rec.block)] = rec.value;
                next.lines[usize::from(rec.block)] = Line::Dirty(rec.lsn, rec.value);
                for nth in (0..2).filter(|nth| live[*nth] && self.rules.copies_equal) {
                    next.logs[nth].durable[rec.slot()] = Some(rec);
                }
            }
            // What was read then stays.
            next.values = values.map(|value| vec![value]);
            (next.acked, next.durable) = ([0; BLOCKS], [0; BLOCKS]);
            into.push(next);
        }
    }
}

impl Model for Cache {
    type State = State;

    fn start(&self) -> State {
        State {
            at: 0,
            logs: Default::default(),
            live: [true; 2],
            durable_live: [true; 2],
            homes: Default::default(),
            lines: [Line::None; BLOCKS],
            destages: Vec::new(),
            head: 1,
            tail: 1,
            epoch: 1,
            raised: (1, 1),
            starts_left: self.starts,
            values: [vec![0], vec![0]],
            acked: [0; BLOCKS],
            durable: [0; BLOCKS],
            faults: 0,
            written: [false; BLOCKS],
        }
    }

    fn next(&self, state: &State, into: &mut Vec<State>) {
        self.host(state, into);
        self.background(state, into);
        self.faults(state, into);
        self.restart(state, into);
    }

    fn crash(&self, state: &State, wrong: &mut BTreeMap<&'static str, u64>) -> u64 {
        let mut count = 1;
        for (copies, homes, away) in state.cuts() {
            count += 1;
            let here = |nth: &usize| state.durable_live[*nth] && away != Some(*nth);
            let copies: Vec<Slots> = (0..2).filter(here).map(|nth| copies[nth]).collect();
            let read = self.recover(state, &copies, homes);
            for (block, value) in read.iter().enumerate() {
                if !state.values[block][state.durable[block]..].contains(value) {
                    *wrong.entry("C1: a durable write is lost").or_default() += 1;
                }
            }
        }
        // The engine dies, the devices keep power.
        let all = [state.logs[0].after(u32::MAX), state.logs[1].after(u32::MAX)];
        let here = all.iter().zip(state.durable_live).filter(|(_, live)| *live);
        let copies: Vec<Slots> = here.map(|(copy, _)| *copy).collect();
        let now = |block: usize| *state.homes[block].1.last().unwrap_or(&state.homes[block].0);
        let read = self.recover(state, &copies, [now(0), now(1)]);
        for (block, value) in read.iter().enumerate() {
            if !state.values[block][state.acked[block]..].contains(value) {
                *wrong.entry("C3: an acknowledged write is lost").or_default() += 1;
            }
        }
        count
    }
}
