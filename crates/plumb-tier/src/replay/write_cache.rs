//! The rules of the write-back cache (6.1, 6.2) over block numbers: what is admitted, what is destaged, what the tail
//! gives back.

use std::collections::{HashMap, VecDeque};

use plumb_units::convert::{to_u64, to_usize};

/// Bytes of a line.
pub(super) const LINE: u64 = 4096;
/// What the line of a record's header is called instead of a block.
const HEADER: u64 = u64::MAX;
/// Beyond it a destage is not merged further (WBC-3).
const MERGED: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Dirty,
    Destaging,
    Clean,
    /// A newer line has the block.
    Superseded,
}

/// A block of the ring: a line, or the header of a record.
#[derive(Debug, Clone, Copy)]
struct LineEntry {
    block: u64,
    state: State,
}

/// Blocks to be written home: adjacent, within one extent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destage {
    /// First block.
    pub(super) block: u64,
    /// Numbers of their lines.
    pub(super) lines: Vec<u64>,
}

/// The log of a virtual disk.
#[derive(Debug)]
pub(super) struct CacheModel {
    /// Blocks of the ring.
    limit: u64,
    lines: VecDeque<LineEntry>,
    /// Number of the first line.
    tail: u64,
    /// The newest line of each block.
    newest: HashMap<u64, u64>,
    dirty: u64,
    /// Sorted by block, to be destaged next.
    batch: VecDeque<u64>,
    blocks_per_extent: u64,
}

impl CacheModel {
    pub(super) fn new(bytes: u64, extent_bytes: u64) -> Self {
        Self {
            limit: bytes / LINE,
            lines: VecDeque::new(),
            tail: 0,
            newest: HashMap::new(),
            dirty: 0,
            batch: VecDeque::new(),
            blocks_per_extent: extent_bytes / LINE,
        }
    }

    /// Whether all, or any, of these blocks have a live line.
    pub(super) fn has_all(&self, blocks: std::ops::Range<u64>) -> bool {
        !self.newest.is_empty() && { blocks }.all(|block| self.newest.contains_key(&block))
    }

    pub(super) fn has_any(&self, blocks: std::ops::Range<u64>) -> bool {
        !self.newest.is_empty() && { blocks }.any(|block| self.newest.contains_key(&block))
    }

    /// Whether a record of so many lines has room, with its header; 6.25 % of the ring are kept for those over live lines (6.1 rule 2).
    pub(super) fn has_room(&self, count: u64, overlap: bool) -> bool {
        let kept = if overlap { 0 } else { (self.limit / 16).max(2) };
        to_u64(self.lines.len()) + 1 + count + kept <= self.limit
    }

    /// To a record that begins with them, or to the one before.
    pub(super) fn admit(&mut self, blocks: std::ops::Range<u64>, begins: bool) {
        if begins {
            // The tail passes it as it passes lines that were written again.
            self.lines.push_back(LineEntry { block: HEADER, state: State::Superseded });
        }
        for block in blocks {
            let number = self.tail + to_u64(self.lines.len());
            self.lines.push_back(LineEntry { block, state: State::Dirty });
            self.dirty += 1;
            if let Some(before) = self.newest.insert(block, number) {
                let before = self.line(before);
                if before.state == State::Dirty {
                    before.state = State::Superseded;
                    self.dirty -= 1;
                } else if before.state == State::Clean {
                    before.state = State::Superseded;
                }
            }
        }
    }

    fn line(&mut self, number: u64) -> &mut LineEntry {
        &mut self.lines[to_usize(number - self.tail)]
    }

    /// Whether there is a cache at all.
    pub(super) fn has_any_room(&self) -> bool {
        self.limit > 0
    }

    /// Blocks in use as a share of the ring.
    pub(super) fn used(&self) -> f64 {
        match self.limit {
            0 => 0.0,
            limit => self.lines.len() as f64 / limit as f64,
        }
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.dirty > 0
    }

    /// The next destage: of the oldest eighth of the log, in the order of addresses (WBC-3).
    pub(super) fn next_destage(&mut self) -> Option<Destage> {
        if self.batch.is_empty() {
            self.gather();
        }
        let mut found: Option<Destage> = None;
        while let Some(number) = self.batch.front().copied() {
            // Passed by the tail or overwritten meanwhile: nothing is left to destage.
            let is_dirty = number >= self.tail && self.line(number).state == State::Dirty;
            if !is_dirty {
                self.batch.pop_front();
                continue;
            }
            let block = self.line(number).block;
            match &mut found {
                None => found = Some(Destage { block, lines: vec![number] }),
                Some(destage) => {
                    let count = to_u64(destage.lines.len());
                    let same =
                        destage.block / self.blocks_per_extent == block / self.blocks_per_extent;
                    if block != destage.block + count || !same || count * LINE >= MERGED {
                        return found;
                    }
                    destage.lines.push(number);
                }
            }
            self.batch.pop_front();
            self.line(number).state = State::Destaging;
            self.dirty -= 1;
        }
        found
    }

    fn gather(&mut self) {
        // What was written again lies in nobody's way.
        self.advance();
        let count = (self.limit / 8).max(1);
        let numbers = self.tail..self.tail + count.min(to_u64(self.lines.len()));
        let mut dirty: Vec<(u64, u64)> = numbers
            .map(|number| (*self.line(number), number))
            .filter(|(line, _)| line.state == State::Dirty)
            .map(|(line, number)| (line.block, number))
            .collect();
        dirty.sort_unstable();
        self.batch = dirty.into_iter().map(|(_, number)| number).collect();
    }

    /// A destage is durable: its lines are clean, and the tail moves over what it may.
    pub(super) fn destaged(&mut self, destage: &Destage) {
        for number in &destage.lines {
            let block = self.line(*number).block;
            let is_newest = self.newest.get(&block) == Some(number);
            self.line(*number).state = if is_newest { State::Clean } else { State::Superseded };
        }
        self.advance();
    }

    /// The tail moves over what it may.
    fn advance(&mut self) {
        while let Some(line) = self.lines.front().copied() {
            if matches!(line.state, State::Dirty | State::Destaging) {
                return;
            }
            if line.state == State::Clean {
                self.newest.remove(&line.block);
            }
            self.lines.pop_front();
            self.tail += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn lines_are_admitted_merged_destaged_and_given_back_in_order() {
        let mut cache = CacheModel::new(96 * LINE, 1 << 20);
        // A header, and a sixteenth that is kept.
        assert!(
            cache.has_room(89, false) && !cache.has_room(90, false) && cache.has_room(95, true)
        );
        assert!(!cache.has_room(96, true));
        cache.admit(10..12, true);
        cache.admit(500..501, true);
        cache.admit(12..13, true);
        cache.admit(254..258, true);
        assert!(cache.has_all(10..13) && !cache.has_all(10..14) && cache.has_any(13..255));
        // The oldest eighth, 4 headers and 8 lines: by address, adjacent ones together, no extent's end crossed.
        let first = cache.next_destage().expect("dirty");
        assert_eq!((first.block, first.lines.clone()), (10, vec![1, 2, 6]));
        let second = cache.next_destage().expect("dirty");
        assert_eq!((second.block, second.lines.len()), (254, 2));
        let third = cache.next_destage().expect("dirty");
        assert_eq!((third.block, third.lines.len()), (256, 2));
        cache.admit(10..11, true);
        // The line of block 500 is in the way of the tail.
        cache.destaged(&first);
        assert!(
            (cache.used() - 10.0 / 96.0).abs() < 1e-9 && cache.has_all(12..13),
            "{}",
            cache.used()
        );
        let last = cache.next_destage().expect("dirty");
        assert_eq!(last.block, 500);
        [third, second, last].iter().for_each(|destage| cache.destaged(destage));
        assert!(
            (cache.used() - 1.0 / 96.0).abs() < 1e-9 && cache.has_all(10..11) && cache.is_dirty()
        );
        assert!(!cache.has_any(11..600));
    }

    #[test]
    fn it_never_overflows_and_empties_itself() {
        let mut cache = CacheModel::new(256 * LINE, 1 << 20);
        let mut random = Random::new(12);
        let mut under_way = Vec::new();
        for _ in 0..50_000 {
            let block = random.below(1000);
            let overlap = cache.has_any(block..block + 1);
            if cache.has_room(1, overlap) {
                cache.admit(block..block + 1, true);
                assert!(cache.has_all(block..block + 1));
            }
            assert!(cache.lines.len() <= 256);
            if cache.used() > 0.25 || random.one_in(9) {
                under_way.extend(cache.next_destage());
            }
            if under_way.len() > 8 || random.one_in(3) && !under_way.is_empty() {
                let nth = to_usize(random.below(to_u64(under_way.len())));
                cache.destaged(&under_way.swap_remove(nth));
            }
            let dirty = cache.lines.iter().filter(|line| line.state == State::Dirty).count();
            assert_eq!(cache.dirty, to_u64(dirty));
        }
        while let Some(destage) = under_way.pop().or_else(|| cache.next_destage()) {
            cache.destaged(&destage);
        }
        assert!(cache.lines.is_empty() && cache.newest.is_empty() && !cache.is_dirty());
    }
}
