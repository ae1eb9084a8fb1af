//! One block of two sectors on two copies, as this engine writes it in place: intent, first checksums, rounds,
//! a copy that fails or drops its cache and later returns, what a start makes of what a crash left, a copy lost
//! with it, and a second crash while copies are made equal. A checksum is the content itself.

use std::collections::BTreeMap;

use super::explore::Model;

/// Rules that can be left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// CRC-2: a first write is tentative until a round, and not overwritten before.
    pub(super) tentative: bool,
    /// RES-4: the loss of a disk makes all its open places stale, not only one whose write failed.
    pub(super) stale_open: bool,
    /// CRC-4: what is decided is durable before a copy is rewritten.
    pub(super) decide_first: bool,
    /// In-place writes begin when the intent is durable.
    pub(super) intent: bool,
    /// Checksums are committed after the devices were flushed.
    pub(super) flush_first: bool,
    /// RES-2: a failed copy is durably stale before the acknowledgement.
    pub(super) stale_durable: bool,
    /// RES-2: a stale copy is not read.
    pub(super) stale_unread: bool,
    /// RES-4: a copy that returns gets what it missed before it is in sync.
    pub(super) resync_copies: bool,
    /// RES-4: and its disk is flushed before.
    pub(super) resync_flushes: bool,
    /// RES-2: a write is acknowledged when all live copies have it.
    pub(super) all_copies: bool,
    /// 6.3: a FLUSH flushes every disk.
    pub(super) flush_all: bool,
}

pub(super) const ALL: Rules = Rules {
    tentative: true,
    stale_open: true,
    decide_first: true,
    intent: true,
    flush_first: true,
    stale_durable: true,
    stale_unread: true,
    resync_copies: true,
    resync_flushes: true,
    all_copies: true,
    flush_all: true,
};

/// What the host does, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// Which sectors, and whether with FUA.
    Write([bool; 2], bool),
    Flush,
}

/// Whole and half writes, each with and without FUA, and a flush.
pub(super) const OPS: [Op; 5] = [
    Op::Write([true, true], false),
    Op::Write([true, true], true),
    Op::Write([true, false], false),
    Op::Write([true, false], true),
    Op::Flush,
];

/// Bytes of a former owner; the content before all.
const FOREIGN: u8 = 250;
const BASE: u8 = 200;
type Block = [u8; 2];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Record {
    Open,
    Close,
    First(Block),
    Commit(Block),
    Stale(usize),
    InSync(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sum {
    Unwritten,
    Tentative(Block),
    Committed(Block),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    /// Sectors to land, by copy, and whether the first checksum is to be written.
    Writing([[bool; 2]; 2], bool),
    /// The devices were flushed, with this newest content; then the commit is durable.
    Round(Block, bool),
    /// A copy that returned was written; then it counts.
    Resync(usize),
}

/// Durable content, and what was written since, in order.
type Sector = (u8, Vec<u8>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    media: [[Sector; 2]; 2],
    journal: Vec<Record>,
    durable: usize,
    at: usize,
    phase: Phase,
    content: Block,
    sum: Sum,
    open: bool,
    stale: [bool; 2],
    /// Stale, and takes part in every write.
    back: [bool; 2],
    /// One while it runs, one together with a crash.
    faults_left: u8,
    /// Per sector: all values; the last acknowledged and the last durable one.
    values: [Vec<u8>; 2],
    acked: [usize; 2],
    safe: [usize; 2],
}

pub(super) struct Mirror {
    pub(super) rules: Rules,
    pub(super) script: Vec<Op>,
    /// The block was never written, and its slot holds somebody else's data.
    pub(super) fresh: bool,
}

/// What was written is durable.
fn settle((durable, cached): &mut Sector) {
    if let Some(last) = cached.drain(..).next_back() {
        *durable = last;
    }
}

impl State {
    /// Copies that take part in writes.
    fn live(&self) -> Vec<usize> {
        (0..2).filter(|copy| !self.stale[*copy] || self.back[*copy]).collect()
    }

    fn may_fail(&self) -> bool {
        self.faults_left == 2 && self.stale == [false; 2]
    }

    fn flush(&mut self, all: bool) {
        for copy in self.live().into_iter().take(if all { 2 } else { 1 }) {
            self.media[copy].iter_mut().for_each(settle);
        }
    }

    fn append(&mut self, record: Record, durable: bool) {
        self.journal.push(record);
        if durable {
            self.durable = self.journal.len();
        }
    }
}

impl Mirror {
    fn idle(&self, state: &State, into: &mut Vec<State>) {
        let idle_commit = matches!(state.journal.last(), Some(Record::Commit(_)));
        if state.open && state.sum != Sum::Unwritten && !idle_commit {
            into.push(self.begin_round(state, false));
        }
        // Once: opened and closed over and over it would never end.
        let closes = !state.journal.contains(&Record::Close);
        if closes && state.open && idle_commit && state.durable == state.journal.len() {
            let mut next = state.clone();
            let clean = next.live().iter().all(|c| next.media[*c].iter().all(|s| s.1.is_empty()));
            if clean {
                next.open = false;
                next.append(Record::Close, false);
                into.push(next);
            }
        }
        let Some(&op) = self.script.get(state.at) else { return };
        let Op::Write(sectors, _) = op else {
            into.push(self.begin_round(state, true));
            return;
        };
        if !state.open {
            let mut next = state.clone();
            next.open = true;
            next.append(Record::Open, self.rules.intent);
            into.push(next);
            return;
        }
        if matches!(state.sum, Sum::Tentative(_)) && self.rules.tentative {
            into.push(self.begin_round(state, false));
            return;
        }
        let mut next = state.clone();
        let value = u8::try_from(state.at + 1).unwrap_or(u8::MAX);
        let mut todo = [[false; 2]; 2];
        for sector in 0..2 {
            if sectors[sector] {
                next.content[sector] = value;
                next.values[sector].push(value);
            }
            for copy in next.live() {
                todo[copy][sector] = true;
            }
        }
        next.phase = Phase::Writing(todo, state.sum == Sum::Unwritten);
        into.push(next);
    }

    fn begin_round(&self, state: &State, host: bool) -> State {
        let mut next = state.clone();
        if self.rules.flush_first {
            next.flush(self.rules.flush_all);
        }
        next.phase = Phase::Round(next.content, host);
        next
    }

    fn writing(&self, state: &State, todo: [[bool; 2]; 2], first: bool, into: &mut Vec<State>) {
        for copy in 0..2 {
            for sector in (0..2).filter(|sector| todo[copy][*sector]) {
                let mut next = state.clone();
                next.media[copy][sector].1.push(state.content[sector]);
                let mut left = todo;
                left[copy][sector] = false;
                next.phase = Phase::Writing(left, first);
                into.push(next);
            }
        }
        if first {
            let mut next = state.clone();
            let record = if self.rules.tentative { Record::First } else { Record::Commit };
            next.append(record(state.content), false);
            next.phase = Phase::Writing(todo, false);
            into.push(next);
        }
        if state.may_fail() {
            for copy in 0..2 {
                let mut next = state.clone();
                next.stale[copy] = true;
                next.faults_left -= 1;
                if self.rules.stale_durable {
                    next.append(Record::Stale(copy), true);
                }
                let mut left = todo;
                left[copy] = [false; 2];
                next.phase = Phase::Writing(left, first);
                into.push(next);
            }
        }
        let done = todo.iter().filter(|copy| **copy == [false; 2]).count();
        if !first && (done == 2 || done == 1 && !self.rules.all_copies) {
            let mut next = state.clone();
            let Some(Op::Write(sectors, fua)) = self.script.get(state.at) else { return };
            next.at += 1;
            for sector in (0..2).filter(|sector| sectors[*sector]) {
                next.acked[sector] = next.values[sector].len() - 1;
            }
            if state.sum == Sum::Unwritten && self.rules.tentative {
                next.sum = Sum::Tentative(state.content);
            } else if state.sum == Sum::Unwritten {
                next.sum = Sum::Committed(state.content);
            }
            next.phase = Phase::Idle;
            if *fua {
                next = self.begin_round(&next, false);
                next.phase = Phase::Round(next.content, true);
                next.at -= 1;
            }
            into.push(next);
        }
    }

    fn round(&self, state: &State, content: Block, host: bool, into: &mut Vec<State>) {
        let mut next = state.clone();
        if state.sum != Sum::Unwritten {
            next.append(Record::Commit(content), true);
            next.sum = Sum::Committed(content);
        }
        next.durable = next.journal.len();
        if !self.rules.flush_first {
            // The flush comes only now.
            let mut between = next.clone();
            between.phase = Phase::Idle;
            between.at += usize::from(host);
            into.push(between);
            next.flush(self.rules.flush_all);
        }
        next.phase = Phase::Idle;
        next.at += usize::from(host);
        if host {
            next.safe = next.acked;
        }
        into.push(next);
    }

    /// A disk drops its cache and returns; a request to another extent notices.
    fn drops(&self, state: &State, into: &mut Vec<State>) {
        if state.phase != Phase::Idle || !state.may_fail() {
            return;
        }
        for copy in 0..2 {
            let mut next = state.clone();
            next.faults_left -= 1;
            next.media[copy].iter_mut().for_each(|sector| sector.1.clear());
            if self.rules.stale_open && state.open {
                next.stale[copy] = true;
                next.append(Record::Stale(copy), true);
            }
            into.push(next);
        }
    }

    /// A stale copy returns; then it is brought up to date. All else stands still meanwhile.
    fn returns(&self, state: &State, into: &mut Vec<State>) {
        let Some(copy) = (0..2).find(|copy| state.stale[*copy]) else { return };
        let mut next = state.clone();
        if state.phase == Phase::Resync(copy) {
            if self.rules.resync_flushes {
                next.media[copy].iter_mut().for_each(settle);
            }
            next.append(Record::InSync(copy), !self.rules.resync_flushes);
            next.stale[copy] = false;
            next.back[copy] = false;
            next.phase = Phase::Idle;
            into.push(next);
        } else if state.phase == Phase::Idle && state.back[copy] {
            if self.rules.resync_copies && state.sum != Sum::Unwritten {
                for (sector, value) in next.media[copy].iter_mut().zip(state.content) {
                    sector.1.push(value);
                }
            }
            next.phase = Phase::Resync(copy);
            into.push(next);
        } else if state.phase == Phase::Idle {
            next.back[copy] = true;
            into.push(next);
        }
    }

    fn replay(&self, journal: &[Record]) -> (Sum, bool, [bool; 2]) {
        let sum = if self.fresh { Sum::Unwritten } else { Sum::Committed([BASE; 2]) };
        let mut found = (sum, self.fresh, [false; 2]);
        for record in journal {
            match *record {
                Record::Open => found.1 = true,
                Record::Close => found.1 = false,
                Record::First(content) => found.0 = Sum::Tentative(content),
                Record::Commit(content) => found.0 = Sum::Committed(content),
                Record::Stale(copy) => found.2[copy] = true,
                Record::InSync(copy) => found.2[copy] = false,
            }
        }
        found
    }

    /// CRC-3; `None`: an error.
    fn choose(copies: &[Block], sum: Sum, open: bool) -> Option<Block> {
        let (Sum::Tentative(wanted) | Sum::Committed(wanted)) = sum else { return Some([0; 2]) };
        if copies.contains(&wanted) {
            return Some(wanted);
        }
        match sum {
            Sum::Tentative(_) => Some([0; 2]),
            _ if !open => None,
            _ => copies.first().copied(),
        }
    }

    fn judge(
        &self,
        state: &State,
        (copies, journal): (&[Block], &[Record]),
        least: [usize; 2],
        wrong: &mut BTreeMap<&'static str, u64>,
    ) {
        let (sum, open, _) = self.replay(journal);
        let Some(chosen) = Self::choose(copies, sum, open) else {
            *wrong.entry("an error without rot").or_default() += 1;
            return;
        };
        for sector in 0..2 {
            if !state.values[sector][least[sector]..].contains(&chosen[sector]) {
                *wrong.entry("older than promised, or foreign").or_default() += 1;
            }
        }
        if !open || sum == Sum::Unwritten || copies.len() < 2 {
            return;
        }
        // A second crash while the others are made equal.
        for (nth, own) in copies.iter().enumerate().filter(|(_, own)| **own != chosen) {
            for mixed in [[own[0], chosen[1]], [chosen[0], own[1]], chosen] {
                let mut again = copies.to_vec();
                again[nth] = mixed;
                let stays = matches!(sum, Sum::Tentative(_));
                let decided = self.rules.decide_first && !stays;
                let sum = if decided { Sum::Committed(chosen) } else { sum };
                let zero = stays && chosen == [0; 2];
                if !zero && Self::choose(&again, sum, open) != Some(chosen) {
                    *wrong.entry("flips over a second crash").or_default() += 1;
                }
            }
        }
    }
}

impl Model for Mirror {
    type State = State;

    fn start(&self) -> State {
        let media = if self.fresh { FOREIGN } else { BASE };
        let content = if self.fresh { 0 } else { BASE };
        let sector = || (media, Vec::new());
        State {
            media: [[sector(), sector()], [sector(), sector()]],
            journal: Vec::new(),
            durable: 0,
            at: 0,
            phase: Phase::Idle,
            content: [content; 2],
            sum: if self.fresh { Sum::Unwritten } else { Sum::Committed([BASE; 2]) },
            open: self.fresh,
            stale: [false; 2],
            back: [false; 2],
            faults_left: 2,
            values: [vec![content], vec![content]],
            acked: [0; 2],
            safe: [0; 2],
        }
    }

    fn next(&self, state: &State, into: &mut Vec<State>) {
        self.drops(state, into);
        self.returns(state, into);
        match state.phase {
            Phase::Idle => self.idle(state, into),
            Phase::Writing(todo, first) => self.writing(state, todo, first, into),
            Phase::Round(content, host) => self.round(state, content, host, into),
            Phase::Resync(_) => {}
        }
    }

    fn crash(&self, state: &State, wrong: &mut BTreeMap<&'static str, u64>) -> u64 {
        let mut count = 0;
        for power in [true, false] {
            let least = if power { state.safe } else { state.acked };
            let options = |copy: usize| -> Vec<Block> {
                let sector = |nth: usize| -> Vec<u8> {
                    let (durable, cached) = &state.media[copy][nth];
                    let all = std::iter::once(durable).chain(cached).copied();
                    if power { all.collect() } else { all.last().into_iter().collect() }
                };
                let (low, high) = (sector(0), sector(1));
                low.iter().flat_map(|a| high.iter().map(|b| [*a, *b])).collect()
            };
            let from = if power { state.durable } else { state.journal.len() };
            for end in from..=state.journal.len() {
                let journal = &state.journal[..end];
                let (_, _, stale) = self.replay(journal);
                for one in options(0) {
                    for other in options(1) {
                        let both = [one, other];
                        let in_sync = |copy: &usize| !stale[*copy];
                        let read = |copy: &usize| in_sync(copy) || !self.rules.stale_unread;
                        let live: Vec<usize> = (0..2).filter(read).collect();
                        let spare = stale == [false; 2] && state.faults_left > 0;
                        let lost = live.iter().copied().map(Some).filter(|_| spare);
                        for lost in std::iter::once(None).chain(lost) {
                            count += 1;
                            let here = live.iter().filter(|copy| Some(**copy) != lost);
                            let copies: Vec<Block> = here.map(|copy| both[*copy]).collect();
                            self.judge(state, (&copies, journal), least, wrong);
                        }
                    }
                }
            }
        }
        count
    }
}
