//! An extent of two blocks that moves from slot 0 to slot 1 while a host writes it in place and through the log, lines
//! are destaged, somebody reads, and another extent takes the slot that it leaves (10.4). A checksum is the content
//! itself. Slots have one copy, and a second one where that matters: of what is harmed.

use std::collections::BTreeMap;

use super::explore::Model;

/// Rules that can be left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// The new place is flushed before the move is committed.
    pub(super) flush_new: bool,
    /// What a request writes meanwhile is copied again.
    pub(super) write_dirties: bool,
    /// What a destage writes meanwhile is copied again (WBC-5).
    pub(super) destage_dirties: bool,
    /// Writes and destages are held, and those under way are waited for, while the last blocks are copied.
    pub(super) hold: bool,
    /// Writes are held until the commit is durable.
    pub(super) hold_until_durable: bool,
    /// The old slot is free only when the commit is durable.
    pub(super) free_durable: bool,
    /// The old slot is free only when those who read it have ended.
    pub(super) readers_end: bool,
    /// Checksums do not come from the old slot's page, which may be its next owner's (MOV-1).
    pub(super) sums_stay: bool,
    /// A hold that cannot go on is given up (MOV-2).
    pub(super) deadline: bool,
    /// A hold does not wait for requests that wait for room in the log (MOV-2).
    pub(super) leaves_waiters: bool,
    /// Only what is settled and verifies is copied (MOV-3).
    pub(super) verified: bool,
    /// A move of which a copy missed a write is given up (MOV-4).
    pub(super) all_copies: bool,
}

/// What goes wrong beside the crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    Nothing,
    /// The first copy of block 0 has rotted in the old slot; the second is good.
    Rot,
    /// A first write of block 0 was lost in a crash before: what the slot holds there is a former owner's.
    Tentative,
    /// A write to the old slot does not end.
    Hangs,
    /// A copy of the new slot misses a write.
    CopyFails,
}

/// Each of them.
pub(super) const HARMS: [Harm; 5] =
    [Harm::Nothing, Harm::Rot, Harm::Tentative, Harm::Hangs, Harm::CopyFails];

pub(super) const ALL: Rules = Rules {
    flush_new: true,
    write_dirties: true,
    destage_dirties: true,
    hold: true,
    hold_until_durable: true,
    free_durable: true,
    readers_end: true,
    sums_stay: true,
    deadline: true,
    leaves_waiters: true,
    verified: true,
    all_copies: true,
};

/// What the host does, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// In place.
    Write(usize),
    /// Durable in the log, destaged later.
    Log(usize),
    Flush,
}

/// Each of them.
pub(super) const OPS: [Op; 4] = [Op::Write(0), Op::Write(1), Op::Log(0), Op::Flush];

const BASE: u8 = 200;
const FOREIGN: u8 = 250;
const OTHER: u8 = 251;
const ROTTEN: u8 = 252;
/// What a block is that was never written; a start that finds its first write lost writes it so.
const UNWRITTEN: u8 = 0;
/// What was lost in the crash before.
const LOST: u8 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Record {
    Moved,
    Commit([u8; 2]),
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Phase {
    Before,
    Copying,
    Held,
    /// Switched; the record is written.
    Switched,
    /// Writes go on.
    Released,
    /// The old slot is another extent's.
    Reused,
    GivenUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reader {
    No,
    Reads(usize),
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// By slot and block: durable, and written since.
    media: [[(u8, Vec<u8>); 2]; 2],
    sums: [u8; 2],
    journal: Vec<Record>,
    /// So many records are on the device, so many of them durable; the others are in memory.
    written: usize,
    durable: usize,
    place: usize,
    phase: Phase,
    copied: [bool; 2],
    dirty: [bool; 2],
    at: usize,
    /// A write in place under way: slot, block.
    writes: Option<(usize, usize)>,
    /// A line of the log: block, value, slot that it is being destaged to.
    line: Option<(usize, u8, Option<usize>)>,
    reader: Reader,
    read_foreign: bool,
    open: bool,
    values: [Vec<u8>; 2],
    acked: [usize; 2],
    safe: [usize; 2],
    /// A request waits for room in the log.
    waits: bool,
    /// The first write of block 0 has yet to be settled.
    tentative: bool,
    rotten: bool,
    hung: bool,
    /// Of the new slot's second copy.
    missed: [bool; 2],
    /// A hold was given up although no device hung.
    late: bool,
}

pub(super) struct Moves {
    pub(super) rules: Rules,
    pub(super) harm: Harm,
    pub(super) script: Vec<Op>,
}

impl State {
    fn content(&self, slot: usize, block: usize) -> u8 {
        let (durable, cached) = &self.media[slot][block];
        cached.last().copied().unwrap_or(*durable)
    }

    fn put(&mut self, slot: usize, block: usize, value: u8) {
        self.media[slot][block].1.push(value);
        match slot {
            0 => self.rotten &= block != 0,
            _ => self.missed[block] = false,
        }
    }

    fn flush(&mut self, slot: usize) {
        for (durable, cached) in &mut self.media[slot] {
            if let Some(last) = cached.drain(..).next_back() {
                *durable = last;
            }
        }
    }

    fn append(&mut self, record: Record, durable: bool) {
        self.journal.push(record);
        if durable {
            self.written = self.journal.len();
            self.durable = self.journal.len();
        }
    }

    fn open(&mut self) {
        if !self.open {
            self.open = true;
            self.append(Record::Open, true);
        }
    }

    fn newest(&self, block: usize) -> u8 {
        self.values[block].last().copied().unwrap_or(0)
    }
}

impl Moves {
    fn is_held(&self, state: &State) -> bool {
        self.rules.hold && matches!(state.phase, Phase::Held | Phase::Switched)
    }

    fn host(&self, state: &State, into: &mut Vec<State>) {
        let Some(&op) = self.script.get(state.at) else { return };
        // A start settles blocks before requests are served.
        if state.writes.is_some() || state.tentative {
            return;
        }
        let mut next = state.clone();
        let value = u8::try_from(state.at + 1).unwrap_or(u8::MAX);
        match op {
            Op::Flush => {
                // The old slot is flushed with all disks; whose it is then does not matter.
                (0..2).for_each(|slot| next.flush(slot));
                next.append(Record::Commit(state.sums), true);
                (next.safe, next.at) = (state.acked, state.at + 1);
            }
            Op::Write(block) if !self.is_held(state) && state.line.is_none_or(|l| l.0 != block) => {
                next.open();
                next.values[block].push(value);
                next.writes = Some((state.place, block));
            }
            Op::Log(block) if !self.is_held(state) && state.line.is_none() => {
                next.values[block].push(value);
                (next.line, next.waits) = (Some((block, value, None)), false);
                next.acked[block] = next.values[block].len() - 1;
                (next.safe[block], next.at) = (next.acked[block], state.at + 1);
            }
            Op::Log(_) if !self.is_held(state) && !state.waits => next.waits = true,
            Op::Write(_) | Op::Log(_) => return,
        }
        into.push(next);
    }

    /// Writes and destages end.
    fn devices(&self, state: &State, into: &mut Vec<State>) {
        let copying = matches!(state.phase, Phase::Copying | Phase::Held);
        if state.tentative && state.place == 0 {
            let mut next = state.clone();
            (next.tentative, next.sums[0], next.values[0]) = (false, UNWRITTEN, vec![UNWRITTEN]);
            next.put(0, 0, UNWRITTEN);
            next.flush(0);
            next.dirty[0] |= copying && self.rules.write_dirties;
            next.append(Record::Commit(next.sums), true);
            into.push(next);
        }
        if let Some((slot, block)) = state.writes.filter(|_| !state.hung) {
            if self.harm == Harm::Hangs && slot == 0 {
                into.push(State { hung: true, ..state.clone() });
            }
            let mut next = state.clone();
            let value = state.newest(block);
            next.put(slot, block, value);
            next.sums[block] = value;
            (next.writes, next.at) = (None, state.at + 1);
            next.acked[block] = next.values[block].len() - 1;
            next.dirty[block] |= copying && self.rules.write_dirties;
            into.push(next);
        }
        match state.line {
            Some((block, value, None)) if !self.is_held(state) => {
                let mut next = state.clone();
                next.open();
                next.line = Some((block, value, Some(state.place)));
                into.push(next);
            }
            Some((block, value, Some(slot))) => {
                let mut next = state.clone();
                next.put(slot, block, value);
                next.flush(slot);
                next.sums[block] = value;
                next.append(Record::Commit(next.sums), true);
                next.line = None;
                next.dirty[block] |= copying && self.rules.destage_dirties;
                into.push(next);
            }
            _ => {}
        }
    }

    /// A block is copied to the new slot.
    fn copy(&self, state: &State, block: usize) -> Option<State> {
        let mut next = state.clone();
        (next.copied[block], next.dirty[block]) = (true, false);
        let content = match block {
            // It is settled first.
            0 if state.tentative && self.rules.verified => return None,
            // The second copy verifies.
            0 if state.rotten && !self.rules.verified => ROTTEN,
            _ => state.content(0, block),
        };
        next.put(1, block, content);
        if self.harm == Harm::CopyFails {
            match self.rules.all_copies {
                true => next.phase = Phase::GivenUp,
                false => next.missed[block] = true,
            }
        }
        Some(next)
    }

    fn mover(&self, state: &State, into: &mut Vec<State>) {
        let mut next = state.clone();
        let nobody = state.writes.is_none()
            && state.line.is_none_or(|line| line.2.is_none())
            && (self.rules.leaves_waiters || !state.waits);
        match state.phase {
            Phase::Before => next.phase = Phase::Copying,
            Phase::Copying if state.copied == [true; 2] => next.phase = Phase::Held,
            Phase::Copying | Phase::Held
                if self.rules.hold && state.phase == Phase::Held && !nobody =>
            {
                return;
            }
            Phase::Copying | Phase::Held => {
                let wanted = |block: &usize| match state.phase {
                    Phase::Copying => !state.copied[*block],
                    _ => state.dirty[*block],
                };
                for block in (0..2).filter(wanted) {
                    if let Some(next) = self.copy(state, block) {
                        into.push(next);
                    }
                }
                if state.phase == Phase::Copying || state.dirty != [false; 2] {
                    return;
                }
                if self.rules.flush_new {
                    next.flush(1);
                }
                next.tentative = false;
                next.append(Record::Moved, false);
                (next.place, next.phase) = (1, Phase::Switched);
            }
            Phase::Switched if state.durable < state.journal.len() => {
                match state.written < state.journal.len() {
                    true => next.written = state.journal.len(),
                    false => next.durable = state.journal.len(),
                }
                if !self.rules.hold_until_durable {
                    let mut early = state.clone();
                    early.phase = Phase::Released;
                    into.push(early);
                }
            }
            Phase::Switched => next.phase = Phase::Released,
            Phase::Released if state.written < state.journal.len() => {
                next.written = state.journal.len();
            }
            Phase::Released => {
                let reads = matches!(state.reader, Reader::Reads(0)) && self.rules.readers_end;
                let early = state.durable < state.journal.len() && self.rules.free_durable;
                if reads || early {
                    return;
                }
                next.phase = Phase::Reused;
                (0..2).for_each(|block| next.put(0, block, OTHER));
            }
            Phase::Reused | Phase::GivenUp => return,
        }
        into.push(next);
        if state.phase == Phase::Switched && !self.rules.free_durable {
            let mut early = state.clone();
            early.phase = Phase::Reused;
            (0..2).for_each(|block| early.put(0, block, OTHER));
            into.push(early);
        }
    }

    fn reads(state: &State, into: &mut Vec<State>) {
        let mut next = state.clone();
        next.reader = match state.reader {
            Reader::No => Reader::Reads(state.place),
            Reader::Reads(slot) => {
                let foreign = |block| state.content(slot, block) == OTHER;
                next.read_foreign = (0..2).any(foreign);
                Reader::Ended
            }
            Reader::Ended => return,
        };
        into.push(next);
    }

    /// What a start makes of a journal: place, checksums, whether it is open, whether block 0 is tentative.
    fn replay(&self, state: &State, journal: &[Record]) -> (usize, [u8; 2], bool, bool) {
        let start = self.start();
        let mut found = (0, start.sums, start.open, start.tentative);
        for record in journal {
            match *record {
                Record::Open => found.2 = true,
                Record::Commit(sums) => (found.1, found.3) = (sums, false),
                Record::Moved => {
                    (found.0, found.3) = (1, false);
                    if !self.rules.sums_stay && state.phase == Phase::Reused {
                        found.1 = [OTHER; 2];
                    }
                }
            }
        }
        found
    }
}

impl Model for Moves {
    type State = State;

    fn start(&self) -> State {
        let slot = |value: u8| [(value, Vec::new()), (value, Vec::new())];
        let tentative = self.harm == Harm::Tentative;
        let mut media = [slot(BASE), slot(FOREIGN)];
        let (mut sums, mut values) = ([BASE; 2], [vec![BASE], vec![BASE]]);
        if tentative {
            (media[0][0].0, sums[0], values[0]) = (FOREIGN, LOST, vec![UNWRITTEN, LOST]);
        }
        State {
            media,
            sums,
            journal: Vec::new(),
            written: 0,
            durable: 0,
            place: 0,
            phase: Phase::Before,
            copied: [false; 2],
            dirty: [false; 2],
            at: 0,
            writes: None,
            line: None,
            reader: Reader::No,
            read_foreign: false,
            open: tentative,
            values,
            acked: [0; 2],
            safe: [0; 2],
            waits: false,
            tentative,
            rotten: self.harm == Harm::Rot,
            hung: false,
            missed: [false; 2],
            late: false,
        }
    }

    fn next(&self, state: &State, into: &mut Vec<State>) {
        self.host(state, into);
        self.devices(state, into);
        self.mover(state, into);
        Self::reads(state, into);
        // Time passes when nothing else happens.
        if into.is_empty() && state.phase == Phase::Held && self.rules.deadline {
            into.push(State { phase: Phase::GivenUp, late: !state.hung, ..state.clone() });
        }
    }

    fn crash(&self, state: &State, wrong: &mut BTreeMap<&'static str, u64>) -> u64 {
        if state.read_foreign {
            *wrong.entry("a read sees the slot's next owner").or_default() += 1;
        }
        if state.late {
            *wrong.entry("a hold is given up though devices answer").or_default() += 1;
        }
        let mut next = Vec::new();
        if state.phase == Phase::Held {
            self.next(state, &mut next);
            if next.is_empty() {
                *wrong.entry("a hold never ends").or_default() += 1;
            }
        }
        let mut count = 0;
        for power in [true, false] {
            let least = if power { state.safe } else { state.acked };
            let from = if power { state.durable } else { state.written };
            for end in from..=state.written {
                let (place, sums, open, tentative) = self.replay(state, &state.journal[..end]);
                for block in 0..2 {
                    let (durable, cached) = &state.media[place][block];
                    let all = std::iter::once(durable).chain(cached).copied();
                    let mut left: Vec<u8> = match power {
                        true => all.collect(),
                        false => all.last().into_iter().collect(),
                    };
                    // What is on its way to the device may be there.
                    if state.writes == Some((place, block)) {
                        left.push(state.newest(block));
                    }
                    if let Some((own, value, Some(slot))) = state.line
                        && (own, slot) == (block, place)
                    {
                        left.push(value);
                    }
                    if place == 1 && state.missed[block] {
                        left.push(FOREIGN);
                    }
                    for content in left {
                        count += 1;
                        let line = state.line.filter(|line| line.0 == block);
                        let value = match line {
                            Some(line) => line.1,
                            None if content != sums[block] && tentative && block == 0 => UNWRITTEN,
                            None if content == sums[block] || open => content,
                            None => {
                                *wrong.entry("an error without rot").or_default() += 1;
                                continue;
                            }
                        };
                        if !state.values[block][least[block]..].contains(&value) {
                            *wrong.entry("older than promised, or foreign").or_default() += 1;
                        }
                    }
                }
            }
        }
        count
    }
}
