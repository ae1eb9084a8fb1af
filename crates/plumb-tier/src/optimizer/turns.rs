//! Extents that take turns (10.3): each looks hottest when it is moved up, and is not asked for on the day after.
//!
//! Of those that are to be moved up for their heat is seen what they win in the day after, over what their scores say. Who has won too little twice
//! within some days has to show first that it goes on for a day: then it is tried out where it lies.

use plumb_units::convert::to_u64;

use super::gains::hourly;
use super::{Move, MoveReason, TierName};
use crate::format::bytes::{Reader, Writer};
use crate::heat::HeatMap;

/// Hours over which it is seen what an extent wins: a day, and a run may take 3.75 hours (10.5) before it begins.
pub(super) const DAY_H: u64 = 20;
/// It has won too little if it is less than this part of what its score says.
const LITTLE: f32 = 0.5;
/// What looks as if it would have so much of what was expected of it before looks as hot again.
const AS_HOT: f32 = 0.75;
/// What a day on which it won too little counts, and what one on which it did not takes back: who does as often as not takes turns.
const FAILED: u8 = 2;
const HELD: u8 = 1;
/// From so much on it takes turns, and so much it comes to at most.
const TURNS: u8 = 3;
const MOST: u8 = 4;
/// So long is known what became of who is not tried out again: a week and a day.
const KNOWN_H: u64 = 8 * 24;
/// So many extents are followed at most.
const ENTRIES: usize = 1 << 20;

/// An extent that was to be moved up.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tried {
    extent: u32,
    /// By the clock of the heat map, in hours: since then it is tried out, or nothing was seen of it.
    since: u64,
    /// It is expected to have so many host I/Os in an hour.
    hourly: f32,
    /// Host I/Os from then on, less those that its window had before.
    won: f32,
    fails: u8,
    is_tried: bool,
}

impl Tried {
    /// It looks hot: what becomes of it is seen from now on. `ends`: with it a window ends, whose counts are there yet.
    fn begin(&mut self, heat: &HeatMap, ends: bool) {
        (self.since, self.hourly, self.is_tried) = (heat.epoch(), self.hourly_now(heat), true);
        self.won = if ends { 0.0 } else { -(heat.extent(self.extent).ios() as f32) };
    }

    /// Host I/Os in an hour that it looks as if it would have.
    fn hourly_now(&self, heat: &HeatMap) -> f32 {
        hourly(heat, self.extent)
    }

    /// A window ends, whose counts are there yet.
    fn window_ends(&mut self, heat: &HeatMap) {
        self.won += heat.extent(self.extent).ios() as f32;
        let hours = heat.epoch().saturating_sub(self.since);
        if hours < DAY_H {
            return;
        }
        let is_little = self.won < LITTLE * self.hourly * hours as f32;
        self.fails = match is_little {
            true => (self.fails + FAILED).min(MOST),
            false => self.fails.saturating_sub(HELD),
        };
        (self.since, self.is_tried) = (heat.epoch(), false);
    }

    fn takes_turns(&self) -> bool {
        self.fails >= TURNS
    }
}

/// All of a virtual disk, by their numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Turns(Vec<Tried>);

impl Turns {
    /// Whether an extent has to show that it goes on for a day before it is moved up.
    pub(super) fn has(&self, extent: u32) -> bool {
        let found = self.0.binary_search_by_key(&extent, |tried| tried.extent);
        found.is_ok_and(|nth| self.0[nth].takes_turns())
    }

    /// A plan has been made. `ends`: with it the window of the heat map ends, whose counts are there yet. What is planned and not made is seen as
    /// well: what an extent wins does not depend on where it lies.
    pub(super) fn planned(&mut self, moves: &[Move], heat: &HeatMap, ends: bool) {
        if ends {
            let tried = self.0.iter_mut().filter(|tried| tried.is_tried);
            tried.for_each(|tried| tried.window_ends(heat));
        }
        // What is of another clock tells nothing.
        let now = heat.epoch();
        self.0.retain(|tried| {
            let age = now.checked_sub(tried.since);
            age.is_some_and(|age| tried.is_tried || tried.fails > 0 && age <= KNOWN_H)
        });
        // Who takes turns and looks as hot as when that was seen is tried out where it lies.
        for tried in self.0.iter_mut().filter(|tried| tried.takes_turns() && !tried.is_tried) {
            if tried.hourly_now(heat) >= tried.hourly * AS_HOT {
                tried.begin(heat, ends);
            }
        }
        let known = self.0.len();
        let is_up =
            |made: &&Move| made.to == TierName::Performance && made.reason == MoveReason::Heat;
        for planned in moves.iter().filter(is_up) {
            let extent = planned.extent;
            match self.0[..known].binary_search_by_key(&extent, |tried| tried.extent) {
                Ok(nth) if self.0[nth].is_tried => {}
                Ok(nth) => self.0[nth].begin(heat, ends),
                Err(_) if self.0.len() < ENTRIES => {
                    let (since, hourly, won) = (now, 0.0, 0.0);
                    let mut new = Tried { extent, since, hourly, won, fails: 0, is_tried: true };
                    new.begin(heat, ends);
                    self.0.push(new);
                }
                Err(_) => {}
            }
        }
        self.0.sort_unstable_by_key(|tried| tried.extent);
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.u64(to_u64(self.0.len()));
        for tried in &self.0 {
            out.u32(tried.extent);
            out.u64(tried.since);
            out.u32(tried.hourly.to_bits());
            out.u32(tried.won.to_bits());
            out.u8(tried.fails << 1 | u8::from(tried.is_tried));
        }
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Option<Self> {
        let count = from.u64().filter(|count| *count <= to_u64(ENTRIES))?;
        let mut turns = Self::default();
        for _ in 0..count {
            let (extent, since) = (from.u32()?, from.u64()?);
            let mut figure = || Some(f32::from_bits(from.u32()?));
            let (hourly, won) = (figure()?, figure()?);
            let state = from.u8()?;
            let (fails, is_tried) = (state >> 1, state & 1 == 1);
            let rises = turns.0.last().is_none_or(|last| last.extent < extent);
            if !rises || fails > MOST || !hourly.is_finite() || !won.is_finite() {
                return None;
            }
            turns.0.push(Tried { extent, since, hourly, won, fails, is_tried });
        }
        Some(turns)
    }

    /// Some, for tests of what is read of it.
    #[cfg(test)]
    pub(super) fn sample() -> Self {
        let of = |extent, fails| {
            let (since, hourly, won) = (7, 0.25, -2.0);
            Tried { extent, since, hourly, won, fails, is_tried: fails == 0 }
        };
        Self(vec![of(3, 4), of(70_000, 0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::{HeatSettings, HostIoKind};

    /// What an extent had on a day on which it was moved up, and in the hours after; whether it takes turns then.
    struct Course {
        heat: HeatMap,
        turns: Turns,
    }

    impl Course {
        fn new() -> Self {
            let mut heat = HeatMap::new(HeatSettings::new(100));
            heat.begin_window();
            Self { heat, turns: Turns::default() }
        }

        /// A day passes on which the extent has so many I/Os; then a run moves it up or leaves it.
        fn day(&mut self, ios: u64, is_moved: bool) -> bool {
            let hour = self.heat.epoch();
            self.heat.advance(hour + 12);
            self.heat.record_many(7, HostIoKind::Read, ios);
            self.heat.advance(hour + 24);
            self.run(is_moved)
        }

        fn run(&mut self, is_moved: bool) -> bool {
            let (to, reason) = (TierName::Performance, MoveReason::Heat);
            let up = Move { extent: 7, score: 0.0, to, reason };
            let moves = if is_moved { std::slice::from_ref(&up) } else { &[] };
            self.turns.planned(moves, &self.heat, true);
            self.heat.begin_window();
            self.turns.has(7)
        }
    }

    #[test]
    fn who_is_moved_up_twice_and_not_asked_for_takes_turns() {
        let mut course = Course::new();
        assert!(!course.day(1000, true) && !course.day(0, false), "once is no turn");
        assert!(!course.day(1000, true));
        assert!(course.day(0, false), "twice is");
        // As long as it goes on so, whether it is moved or not.
        for _ in 0..20 {
            assert!(course.day(1000, false) && course.day(0, false));
        }
        // Until it goes on for two days.
        assert!(course.day(1000, false) && course.day(1000, false) && !course.day(1000, false));
    }

    #[test]
    fn who_goes_on_takes_none_and_nothing_is_known_for_ever() {
        let mut course = Course::new();
        course.day(1000, true);
        assert!((0..20).all(|_| !course.day(1000, true)), "it is moved up and stays hot");
        // 400 of some 700 a day are more than half, and 200 are less.
        for (ios, turns) in [(400, false), (200, true)] {
            let mut course = Course::new();
            for _ in 0..2 {
                course.day(1000, true);
                course.day(ios, false);
                for _ in 0..3 {
                    course.day(0, false);
                }
            }
            assert_eq!(course.turns.has(7), turns, "{ios}");
        }
        // One of groups that take turns by the weekday; and two days that are farther apart.
        for (days, turns) in [(7, true), (12, false)] {
            let mut course = Course::new();
            for _ in 0..2 {
                course.day(1000, true);
                for _ in 1..days {
                    course.day(0, false);
                }
            }
            assert_eq!((course.turns.has(7), course.turns.0.is_empty()), (turns, !turns), "{days}");
        }
    }

    /// What was counted before the move is not what it wins; a part of a day tells nothing; and what pins move is no guess.
    #[test]
    fn a_day_counts_from_the_move_on() {
        let mut course = Course::new();
        course.heat.record_many(7, HostIoKind::Read, 1000);
        let (to, reason) = (TierName::Performance, MoveReason::Heat);
        let up = Move { extent: 7, score: 0.0, to, reason };
        course.turns.planned(&[up], &course.heat, false);
        course.heat.advance(6);
        course.run(false);
        assert_eq!((course.turns.0[0].won, course.turns.0[0].fails), (0.0, 0));
        course.heat.advance(24);
        course.run(false);
        assert_eq!(course.turns.0[0].fails, FAILED);
        let mut pinned = Course::new();
        pinned.turns.planned(&[Move { reason: MoveReason::Pin, ..up }], &pinned.heat, false);
        assert_eq!(pinned.turns, Turns::default());
    }

    #[test]
    fn what_is_saved_is_read_and_what_cannot_be_is_not() {
        let read = |turns: &Turns| {
            let mut out = Writer(Vec::new());
            turns.save(&mut out);
            Turns::restore(&mut Reader(&out.0))
        };
        let sample = Turns::sample();
        assert_eq!(read(&sample), Some(sample.clone()));
        let [one, other] = [sample.0[0], sample.0[1]];
        for wrong in [
            vec![other, one],
            vec![one, one],
            vec![Tried { fails: MOST + 1, ..one }],
            vec![Tried { hourly: f32::NAN, ..one }],
            vec![Tried { won: f32::INFINITY, ..one }],
        ] {
            assert_eq!(read(&Turns(wrong)), None);
        }
        // A map that was lost begins with another hour.
        let mut turns = Turns::sample();
        turns.planned(&[], &HeatMap::new(HeatSettings::new(100)), false);
        assert_eq!(turns, Turns::default());
    }
}
