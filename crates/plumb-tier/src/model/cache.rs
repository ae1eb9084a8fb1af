//! The write-back cache as this engine does it: one block pair, a log of records on two disks, homes, a
//! journal; crashes with any subset of what was not flushed, an expelled and a returning log copy.
//!
//! A round flushes everything at one instant here; the tail moves by itself, with a flush of the log only.

use std::collections::BTreeMap;

use super::explore::Model;

/// Rules that can be left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// FUA of a record is a round, not a write-through (WBC-1).
    pub(super) fua_by_round: bool,
    /// The tail passes records only after the log was flushed (WBC-2).
    pub(super) flush_before_tail: bool,
    /// A clean line still sends writes to the log (6.1 rule 2).
    pub(super) clean_to_log: bool,
    /// Finishing a destage cleans its own line only.
    pub(super) cleans_own: bool,
    /// A line is clean after its home was flushed.
    pub(super) home_flushed: bool,
    /// A log copy that missed a record is not read.
    pub(super) expel_durable: bool,
    /// A returning copy gets what it missed before it counts.
    pub(super) return_copies: bool,
}

pub(super) const ALL: Rules = Rules {
    fua_by_round: true,
    flush_before_tail: true,
    clean_to_log: true,
    cleans_own: true,
    home_flushed: true,
    expel_durable: true,
    return_copies: true,
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

const RING: usize = 3;
const BLOCKS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Rec {
    lsn: u8,
    block: u8,
    value: u8,
}

/// A log copy: what is durable in each slot, and what is not yet, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Disk {
    durable: [Option<Rec>; RING],
    cached: Vec<Rec>,
}

impl Disk {
    fn write(&mut self, rec: Rec) {
        self.cached.push(rec);
    }
    fn flush(&mut self) {
        for rec in self.cached.drain(..) {
            self.durable[usize::from(rec.lsn) % RING] = Some(rec);
        }
    }
    fn after(&self, kept: u32) -> [Option<Rec>; RING] {
        let mut slots = self.durable;
        for (nth, rec) in self.cached.iter().enumerate() {
            if kept >> nth & 1 == 1 {
                slots[usize::from(rec.lsn) % RING] = Some(*rec);
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
    /// Destage under way: block, LSN, value.
    destage: Option<(usize, u8, u8)>,
    head: u8,
    tail: u8,
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
}

impl State {
    fn write_log(&mut self, block: usize, value: u8) {
        let rec = Rec { lsn: self.head, block: u8::try_from(block).unwrap_or(0), value };
        for (disk, live) in self.logs.iter_mut().zip(self.live) {
            if live {
                disk.write(rec);
            }
        }
        self.lines[block] = Line::Dirty(self.head, value);
        self.head += 1;
    }

    fn flush_logs(&mut self) {
        let live = self.live;
        self.logs.iter_mut().zip(live).filter(|(_, live)| *live).for_each(|(disk, _)| disk.flush());
    }

    fn flush_homes(&mut self) {
        for (durable, cached) in &mut self.homes {
            if let Some(last) = cached.drain(..).next_back() {
                *durable = last;
            }
        }
    }

    fn acknowledge(&mut self, block: usize, value: u8) {
        self.values[block].push(value);
        self.acked[block] = self.values[block].len() - 1;
    }

    /// A round has flushed it all: lines at home are clean. Without `own` whatever line a block has by now.
    fn clean_lines(&mut self, own: bool) {
        for (line, written) in self.lines.iter_mut().zip(&mut self.written) {
            let written = std::mem::take(written) && !own;
            match *line {
                Line::Home(lsn, value) => *line = Line::Clean(lsn, value),
                Line::Dirty(lsn, value) if written => *line = Line::Clean(lsn, value),
                _ => {}
            }
        }
    }

    fn lsn(line: Line) -> Option<u8> {
        match line {
            Line::None => None,
            Line::Dirty(lsn, _) | Line::Home(lsn, _) | Line::Clean(lsn, _) => Some(lsn),
        }
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
                next.flush_logs();
                next.flush_homes();
                next.clean_lines(self.rules.cleans_own);
                next.durable = next.acked;
                into.push(next);
                return;
            }
            Op::Small(block) => (block, true, false),
            Op::Fua(block) => (block, true, true),
            Op::Large(block) => (block, false, false),
        };
        // The range lock: a destage of the block goes first.
        if state.destage.is_some_and(|one| one.0 == block) {
            return;
        }
        let live = match state.lines[block] {
            Line::None => false,
            Line::Clean(..) => self.rules.clean_to_log,
            Line::Dirty(..) | Line::Home(..) => true,
        };
        let room = usize::from(state.head - state.tail) < RING;
        if live && !room {
            return;
        }
        if live || small && room {
            next.write_log(block, value);
        } else {
            next.homes[block].1.push(value);
            if let Line::Clean(..) = next.lines[block] {
                next.lines[block] = Line::None;
            }
        }
        next.acknowledge(block, value);
        if fua {
            if self.rules.fua_by_round {
                next.flush_logs();
                next.flush_homes();
                next.clean_lines(self.rules.cleans_own);
                next.durable = next.acked;
            } else {
                // Only this record goes through the caches.
                for disk in &mut next.logs {
                    if let Some(rec) = disk.cached.pop_if(|rec| rec.lsn + 1 == next.head) {
                        disk.durable[usize::from(rec.lsn) % RING] = Some(rec);
                    }
                }
                next.durable[block] = next.acked[block];
            }
        }
        into.push(next);
    }

    fn background(&self, state: &State, into: &mut Vec<State>) {
        for block in 0..BLOCKS {
            if let (Line::Dirty(lsn, value), None) = (state.lines[block], state.destage) {
                let mut next = state.clone();
                next.destage = Some((block, lsn, value));
                into.push(next);
            }
        }
        if let Some((block, lsn, value)) = state.destage {
            let mut next = state.clone();
            next.destage = None;
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
            next.flush_logs();
            next.flush_homes();
            next.clean_lines(self.rules.cleans_own);
            next.durable = next.acked;
            into.push(next);
        }
        // The tail passes what it can.
        let needed =
            |lsn: u8| {
                state.lines.iter().any(
                    |line| matches!(line, Line::Dirty(own, _) | Line::Home(own, _) if *own == lsn),
                ) || state.destage.is_some_and(|one| one.1 == lsn)
            };
        let tail = (state.tail..state.head).find(|lsn| needed(*lsn)).unwrap_or(state.head);
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
        if tail > state.tail {
            into.push(next);
        }
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
                // Everything between tail and head, durably.
                let source = next.logs[1 - back].after(u32::MAX);
                next.logs[back] = Disk { durable: source, cached: Vec::new() };
            }
            next.live[back] = true;
            next.durable_live[back] = true;
            into.push(next);
        }
    }

    fn recover(state: &State, slots: &[[Option<Rec>; RING]], homes: [u8; BLOCKS]) -> [u8; BLOCKS] {
        let mut values = homes;
        let mut lsn = state.tail;
        loop {
            let find = |copy: &[Option<Rec>; RING]| copy[usize::from(lsn) % RING];
            let rec = slots.iter().filter_map(find).find(|rec| rec.lsn == lsn);
            let Some(rec) = rec else { return values };
            values[usize::from(rec.block)] = rec.value;
            lsn += 1;
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
            destage: None,
            head: 1,
            tail: 1,
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
    }

    fn crash(&self, state: &State, wrong: &mut BTreeMap<&'static str, u64>) -> u64 {
        let mut count = 0;
        let bits = |copy: usize| 1_u32 << state.logs[copy].cached.len().min(16);
        let home = |block: usize| {
            let (durable, cached) = &state.homes[block];
            let landing = state.destage.filter(|one| one.0 == block).map(|one| one.2);
            let mut all = vec![*durable];
            all.extend(cached);
            all.extend(landing);
            all
        };
        let (homes_a, homes_b) = (home(0), home(1));
        // One copy may be lost together with the crash, if the other is believed to be current.
        let both = state.durable_live == [true; 2];
        let away = if both { &[None, Some(0), Some(1)][..] } else { &[None] };
        for kept_a in 0..bits(0) {
            for kept_b in 0..bits(1) {
                let copies = [state.logs[0].after(kept_a), state.logs[1].after(kept_b)];
                for away in away {
                    let here = |nth: &usize| state.durable_live[*nth] && *away != Some(*nth);
                    let slots: Vec<_> = (0..2).filter(here).map(|nth| copies[nth]).collect();
                    for homes in homes_a.iter().flat_map(|a| homes_b.iter().map(|b| [*a, *b])) {
                        count += 1;
                        let read = Self::recover(state, &slots, homes);
                        for (block, value) in read.iter().enumerate() {
                            let allowed = &state.values[block][state.durable[block]..];
                            if !allowed.contains(value) {
                                *wrong.entry("C1: a durable write is lost").or_default() += 1;
                            }
                        }
                    }
                }
            }
        }
        // The engine dies, the devices keep power.
        count += 1;
        let all = [state.logs[0].after(u32::MAX), state.logs[1].after(u32::MAX)];
        let here = all.iter().zip(state.durable_live).filter(|(_, live)| *live);
        let slots: Vec<_> = here.map(|(copy, _)| *copy).collect();
        let now = |block: usize| *state.homes[block].1.last().unwrap_or(&state.homes[block].0);
        let read = Self::recover(state, &slots, [now(0), now(1)]);
        for (block, value) in read.iter().enumerate() {
            if !state.values[block][state.acked[block]..].contains(value) {
                *wrong.entry("C3: an acknowledged write is lost").or_default() += 1;
            }
        }
        count
    }
}
