//! Which extents moved in the last runs (10.3): 4 bits each, in pages that come with the first move in them.

use plumb_units::convert::{index, to_u64};

use super::gains::Gains;
use super::turns::Turns;
use super::{Move, MoveReason, Plan, Ration, TierName};
use crate::format::bytes::{Reader, Writer};
use crate::format::checksum::crc;
use crate::heat::HeatMap;

const MAGIC: u64 = u64::from_le_bytes(*b"PLUMMOV5");
/// Without how what swaps gained came, as it was before that was looked at.
const MAGIC_4: u64 = u64::from_le_bytes(*b"PLUMMOV4");
/// Without what swaps went on to gain, as it was before that was looked at.
const MAGIC_3: u64 = u64::from_le_bytes(*b"PLUMMOV3");
/// Without those that take turns, too.
const MAGIC_2: u64 = u64::from_le_bytes(*b"PLUMMOV2");
/// Without a ration, too.
const MAGIC_1: u64 = u64::from_le_bytes(*b"PLUMMOVE");

/// Runs that are remembered.
const RUNS: u8 = 3;
/// Extents per page.
const PAGE: u32 = 8192;
/// Pages at most, of all that anybody reads: extents of 128 TiB at 1 MiB each.
const PAGES: u32 = 16_384;
/// Share of promoted extents that were demoted again at which the bar is raised.
const TOO_MANY: f64 = 0.20;
/// Below this share it is lowered again.
const FEW: f64 = 0.10;

/// Promotions and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thrash {
    /// Extents promoted in the last 3 runs, but for pins.
    pub promoted: u64,
    /// How many of them were demoted again within 3 runs, but for pins.
    pub demoted_again: u64,
    /// Whether the bar is doubled for that.
    pub guarded: bool,
}

impl Thrash {
    /// Demoted again, as a share of the promoted.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.promoted {
            0 => 0.0,
            promoted => self.demoted_again as f64 / promoted as f64,
        }
    }
}

/// One run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Run {
    moved: u64,
    promoted: u64,
    demoted_again: u64,
}

/// The last runs' moves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MoveHistory {
    /// Two extents in a byte: bits 0 and 1 runs since its move, from 1; 0 for none; bit 2 set if it was promoted, but
    /// not for a pin.
    pages: Vec<Option<Box<[u8]>>>,
    /// The last runs, the newest first.
    runs: [Run; 3],
    guarded: bool,
    ration: Ration,
    turns: Turns,
    gains: Gains,
}

impl MoveHistory {
    /// Nothing has moved.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn get(&self, extent: u32) -> u8 {
        let page = self.pages.get(index(extent / PAGE)).and_then(Option::as_ref);
        let byte = page.map_or(0, |page| page[index(extent % PAGE / 2)]);
        byte >> (extent % 2 * 4) & 0xf
    }

    fn set(&mut self, extent: u32, value: u8) {
        let nth = index(extent / PAGE);
        if self.pages.len() <= nth {
            self.pages.resize_with(nth + 1, || None);
        }
        let page = self.pages[nth].get_or_insert_with(|| vec![0; index(PAGE / 2)].into());
        let byte = &mut page[index(extent % PAGE / 2)];
        let shift = extent % 2 * 4;
        *byte = *byte & !(0xf << shift) | value << shift;
    }

    /// It knows of swaps that gained what was expected, for tests of plans.
    #[cfg(test)]
    pub(super) fn with_gains(self) -> Self {
        Self { gains: Gains::as_expected(), ..self }
    }

    /// Some extents that moved, for tests of what is read of it.
    #[cfg(test)]
    pub(crate) fn sample() -> Self {
        let mut history = Self::new();
        history.runs[0] = Run { moved: 3, promoted: 2, demoted_again: 1 };
        history.turns = Turns::sample();
        history.gains = Gains::sample();
        [(0, 5), (9, 2), (3 * PAGE, 3)]
            .into_iter()
            .for_each(|(extent, value)| history.set(extent, value));
        history
    }

    /// As bytes: magic, runs, whether the bar is raised, what is used up of the ration, who may take turns, what swaps went on to gain, extent and runs since its move of each, and
    /// a checksum.
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.u64(MAGIC);
        for run in &self.runs {
            out.u64(run.moved);
            out.u64(run.promoted);
            out.u64(run.demoted_again);
        }
        out.u8(u8::from(self.guarded));
        self.ration.save(&mut out);
        self.turns.save(&mut out);
        self.gains.save(&mut out);
        let pages = (0..).zip(&self.pages).filter_map(|(nth, page)| Some((nth, page.as_ref()?)));
        for (nth, _) in pages {
            for extent in nth * PAGE..=nth * PAGE + (PAGE - 1) {
                let value = self.get(extent);
                if value != 0 {
                    out.u32(extent);
                    out.u8(value);
                }
            }
        }
        let sum = crc(0, &out.0);
        out.u32(sum);
        out.0
    }

    /// Reads it back; `None` if the bytes are none, or damaged.
    #[must_use]
    pub fn restore(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        if Reader(sum).u32()? != crc(0, body) {
            return None;
        }
        let mut from = Reader(body);
        let magic = from.u64()?;
        if ![MAGIC, MAGIC_4, MAGIC_3, MAGIC_2, MAGIC_1].contains(&magic) {
            return None;
        }
        let mut history = Self::new();
        for run in &mut history.runs {
            *run = Run { moved: from.u64()?, promoted: from.u64()?, demoted_again: from.u64()? };
            // No more extents move than there can be.
            let most = run.moved.max(run.promoted).max(run.demoted_again);
            if most > u64::from(u32::MAX) {
                return None;
            }
        }
        history.guarded = from.u8()? != 0;
        if magic != MAGIC_1 {
            history.ration = Ration::restore(&mut from)?;
        }
        if [MAGIC, MAGIC_4, MAGIC_3].contains(&magic) {
            history.turns = Turns::restore(&mut from)?;
        }
        if magic == MAGIC {
            history.gains = Gains::restore(&mut from)?;
        }
        if magic == MAGIC_4 {
            Gains::skip_old(&mut from)?;
        }
        while let Some(extent) = from.u32() {
            let value = from.u8()?;
            // What did not move is left out, and where none can lie no page is made.
            if value == 0 || value > 7 || extent / PAGE >= PAGES {
                return None;
            }
            history.set(extent, value);
        }
        Some(history)
    }

    /// Whether an extent moved in the last 2 runs.
    #[must_use]
    pub fn is_recent(&self, extent: u32) -> bool {
        (1..=2).contains(&(self.get(extent) & 3))
    }

    /// Takes a run's moves, those really made. A run without moves is a run. What pins move is somebody's wish: it takes no
    /// part in what goes back and forth.
    pub fn run_ended(&mut self, moves: &[Move]) {
        self.note(moves, false);
    }

    /// The same of a run that is one of many in a window, as continuous mode makes them every quarter of an hour: all of a window,
    /// which are those of six hours, count as one.
    pub fn run_went_on(&mut self, moves: &[Move]) {
        self.note(moves, true);
    }

    fn note(&mut self, moves: &[Move], goes_on: bool) {
        let own = |made: &&Move| made.reason != MoveReason::Pin;
        let promotes = |made: &Move| made.to == TierName::Performance && own(&made);
        let demoted = moves.iter().filter(own).filter(|made| made.to == TierName::Capacity);
        // Of 1 to 3 runs ago, before this one makes everything older.
        let again = demoted.filter(|made| self.get(made.extent) & 4 != 0).count();
        if !goes_on {
            self.age();
            self.runs = [Run::default(), self.runs[0], self.runs[1]];
        }
        for made in moves {
            let up = if promotes(made) { 4 } else { 0 };
            self.set(made.extent, up | 1);
        }
        let promoted = moves.iter().filter(|made| promotes(made)).count();
        let run = &mut self.runs[0];
        run.moved += to_u64(moves.len());
        run.promoted += to_u64(promoted);
        run.demoted_again += to_u64(again);
        let share = self.thrash().share();
        self.guarded = if self.guarded { share >= FEW } else { share > TOO_MANY };
    }

    /// One run later: a move of 3 runs ago is still known as such, an older one is forgotten.
    fn age(&mut self) {
        for page in &mut self.pages {
            let Some(bytes) = page else { continue };
            let mut used = 0;
            for byte in bytes.iter_mut() {
                *byte = aged(*byte & 0xf) | aged(*byte >> 4) << 4;
                used |= *byte;
            }
            if used == 0 {
                *page = None;
            }
        }
    }

    /// Takes what a run's moves, those really made, use up of the ration of a tier with so many slots.
    pub fn spend(&mut self, made: &[Move], heat: &HeatMap, slots: u64) {
        self.ration.spend(made, heat, slots);
    }

    /// Takes what a plan is to move, before anything moves: what those win that go up is seen from now on. `ends`: with it the window of the
    /// heat map ends, whose counts are there yet, and they tell of those that went up before.
    pub fn planned(&mut self, plan: &Plan, heat: &HeatMap, ends: bool) {
        self.turns.planned(&plan.moves, heat, ends);
        self.gains.planned(&plan.sure, heat, ends);
    }

    /// What swaps that looked sure have gained of late of what they were to gain, 0 or more, where that is too little: then none is made beyond the ration.
    pub(super) fn little_gains(&self, heat: &HeatMap) -> Option<f64> {
        self.gains.little(heat)
    }

    /// Whether an extent takes turns with others: it was hot when it moved up, and not on the day after.
    #[must_use]
    pub fn takes_turns(&self, extent: u32) -> bool {
        self.turns.has(extent)
    }

    /// What swaps are given that chance may be the reason of.
    #[must_use]
    pub fn ration(&self) -> Ration {
        self.ration
    }

    /// How many moves the last 2 runs made: at least as many as extents are recent.
    pub(super) fn recent_moves(&self) -> u64 {
        self.runs[0].moved + self.runs[1].moved
    }

    /// How much goes back and forth.
    #[must_use]
    pub fn thrash(&self) -> Thrash {
        let sum = |of: fn(&Run) -> u64| self.runs.iter().map(of).sum();
        Thrash {
            promoted: sum(|run| run.promoted),
            demoted_again: sum(|run| run.demoted_again),
            guarded: self.guarded,
        }
    }

    /// How many times the bar is raised: 2 while the guard is on.
    #[must_use]
    pub fn raised(&self) -> f32 {
        if self.guarded { 2.0 } else { 1.0 }
    }
}

fn aged(nibble: u8) -> u8 {
    match nibble & 3 {
        0 | RUNS => 0,
        runs => nibble & 4 | (runs + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of an earlier format with this, up to where its extents begin.
    fn earlier(magic: u64, history: &MoveHistory, more: impl Fn(&mut Writer)) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.u64(magic);
        for run in &history.runs {
            [run.moved, run.promoted, run.demoted_again].iter().for_each(|count| out.u64(*count));
        }
        out.u8(u8::from(history.guarded));
        more(&mut out);
        for (extent, value) in [(0, 5), (9, 2), (3 * PAGE, 3)] {
            out.u32(extent);
            out.u8(value);
        }
        let sum = crc(0, &out.0);
        out.u32(sum);
        out.0
    }

    /// What an update finds is read: an earlier format knows less, and nothing else of it is lost.
    #[test]
    fn histories_of_earlier_formats_are_read() {
        let sample = MoveHistory::sample();
        let with_turns = MoveHistory { gains: Gains::default(), ..sample.clone() };
        let fourth = earlier(MAGIC_4, &sample, |out| {
            sample.ration.save(out);
            sample.turns.save(out);
            // Sums, when it began and was learned, and two pairs of 28 bytes.
            (0..6_u32).for_each(|sum| out.u64(f64::from(sum).to_bits()));
            out.u8(1);
            [3, 9, 2].iter().for_each(|value| out.u64(*value));
            (0..14).for_each(|value| out.u32(value));
        });
        assert_eq!(MoveHistory::restore(&fourth), Some(with_turns.clone()));
        let third = earlier(MAGIC_3, &sample, |out| {
            sample.ration.save(out);
            sample.turns.save(out);
        });
        assert_eq!(MoveHistory::restore(&third), Some(with_turns.clone()));
        let without = MoveHistory { turns: Turns::default(), ..with_turns };
        let second = earlier(MAGIC_2, &sample, |out| sample.ration.save(out));
        assert_eq!(MoveHistory::restore(&second), Some(without.clone()));
        let first = earlier(MAGIC_1, &sample, |_| {});
        assert_eq!(MoveHistory::restore(&first), Some(without));
        assert_eq!(MoveHistory::restore(&sample.save()), Some(sample));
    }
}
