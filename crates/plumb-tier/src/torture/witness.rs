//! What the host saw of a run, in its order, and what follows from it.

use std::collections::BTreeSet;

use plumb_units::convert::index;

use super::history::CLIENTS;
use super::oracle::{Oracle, WriteId};

/// What the host saw, for going through it again.
#[derive(Debug, Clone)]
pub(super) enum Seen {
    /// A write was handed in.
    Issue { first: u32, end: u32, zeros: bool },
    /// A write was answered.
    Answer { id: WriteId, good: bool, durable: bool },
    /// A flush was handed in by that client.
    Flush { client: u32 },
    /// That client's flush was acknowledged, of those units.
    FlushDone { client: u32, first: u32, end: u32 },
    /// What of these units is not durable may be gone.
    Forgotten { first: u32, end: u32 },
    /// A disk forgot what a flush was for: the same of these, until they are flushed.
    Forgetful { first: u32, end: u32 },
    /// Every unit was read.
    Observe { values: Vec<WriteId> },
    /// A disk is not well from here on, or all are again.
    Unwell { disk: Option<u32> },
    /// A bit of a disk rots: it is not well from here on, and may fail as well.
    Rotten { disk: u32 },
    /// The space goes on without that disk: whatever it forgets now was seen.
    Expelled { disk: u32 },
    /// It is to be removed: from here on the space may do without it.
    Leaving { disk: u32 },
    /// It is back with what it kept, and takes part as soon as the space wants it.
    Back,
    /// What of every unit could be read, where any disk may fail.
    Found { values: Vec<(u32, WriteId)> },
    /// A disk failed, among others perhaps.
    Gone { disk: u32 },
    /// The space goes on without that one of them.
    Away { disk: u32 },
    /// It is back with what it kept.
    Here { disk: u32 },
    /// All disks are well, and up to date.
    Whole,
}

/// An event and how many device events came before it.
pub(super) type Log = Vec<(usize, Seen)>;

/// Applies what the host saw to an oracle.
#[derive(Debug, Clone)]
pub(super) struct Witness {
    pub(super) oracle: Oracle,
    flushes: Vec<u64>,
    pub(super) unwell: Option<u32>,
    pub(super) expelled: Option<u32>,
    pub(super) leaving: Option<u32>,
    /// Some of what a disk holds rotted.
    pub(super) rotten: bool,
    /// Where any may fail: those that are not well, and those of them that the space goes on without.
    pub(super) gone: BTreeSet<u32>,
    pub(super) away: BTreeSet<u32>,
}

impl Witness {
    pub(super) fn new(oracle: Oracle) -> Self {
        Self {
            oracle,
            flushes: vec![0; index(CLIENTS + 1)],
            unwell: None,
            expelled: None,
            leaving: None,
            rotten: false,
            gone: BTreeSet::new(),
            away: BTreeSet::new(),
        }
    }

    pub(super) fn see(&mut self, seen: &Seen) {
        match seen {
            Seen::Issue { first, end, zeros } => {
                self.oracle.issue(*first, *end, *zeros);
            }
            Seen::Answer { id, good, durable } => self.oracle.answer(*id, *good, *durable),
            Seen::Flush { client } => self.flushes[index(*client)] = self.oracle.flush_issued(),
            Seen::FlushDone { client, first, end } => {
                self.oracle.flush_acknowledged(self.flushes[index(*client)], *first..*end);
            }
            Seen::Forgotten { first, end } => self.oracle.forget(*first..*end),
            Seen::Forgetful { first, end } => self.oracle.forget_until_flushed(*first..*end),
            Seen::Observe { values } => {
                for (unit, id) in (0..).zip(values) {
                    self.oracle.observe(unit, *id);
                }
            }
            Seen::Unwell { disk } => {
                self.unwell = *disk;
                self.expelled = None;
            }
            Seen::Rotten { disk } => {
                self.unwell = Some(*disk);
                self.rotten = true;
            }
            Seen::Expelled { disk } => self.expelled = Some(*disk),
            Seen::Leaving { disk } => self.leaving = Some(*disk),
            Seen::Back => self.expelled = None,
            Seen::Found { values } => {
                values.iter().for_each(|(unit, id)| self.oracle.observe(*unit, *id));
            }
            Seen::Gone { disk } => {
                self.gone.insert(*disk);
            }
            Seen::Away { disk } => {
                self.away.insert(*disk);
            }
            Seen::Here { disk } => {
                self.away.remove(disk);
            }
            Seen::Whole => self.gone.clear(),
        }
    }

    /// Disks that the space goes on without: what they had not flushed is gone with their power.
    pub(super) fn unplugged(&self) -> Vec<u32> {
        self.expelled.iter().chain(&self.away).copied().collect()
    }
}
