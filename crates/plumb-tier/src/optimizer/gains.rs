//! What swaps go on to gain (section 25): whether what looks sure is a load that changes, or what comes to one extent after the other and is gone.
//!
//! Swaps that would be made without a place in the ration are followed in pairs, made or not: what the hotter one wins over the other in the day
//! after, over what their scores said. Where those of late gained less than a third of it, none is made without such a place.

use std::collections::{BTreeMap, BTreeSet};

use plumb_units::convert::to_u64;

use super::turns::DAY_H;
use crate::format::bytes::{Reader, Writer};
use crate::heat::HeatMap;

/// What an extent wins in the first hours may be the rest of what it was chosen for: a window that begins before counts only if it is a day.
const LATER_H: u64 = 6;
/// Plans of windows of less than a day, in the first hours of which scores are those of less, and what they say is too little.
const EARLY_H: u64 = 12;
/// They have gained too little if it is less than this part of what their scores said.
const LITTLE: f64 = 1.0 / 3.0;
/// What is lost is not worse than nothing, and what is won counts so many times as much as was expected at most: that a load has turned should be known as soon.
const MOST: f64 = 2.0;
/// So many standard deviations of how far that is known count against them: of what those of several times won, and of what was won in one window and the next.
const DEVIATIONS: f64 = 1.5;
const DEVIATIONS_WITHIN: f64 = 2.0;
/// What was won in one window alone, that of a day, is taken to be known to this part of it.
const OF_A_DAY: f64 = 1.0 / 3.0;
/// What is known stays until so many newer swaps are, however long that takes, and half of it for so many hours, however many there are: what comes to
/// many extents together comes to them once more by chance.
const NEWEST: f64 = 4.0;
const HALF_H: f64 = 24.0;
/// Of what daily runs know so many of the newest count by themselves, too.
const DAYS: usize = 3;
/// So many pairs are followed at most, and so many that one plan has.
const PAIRS: usize = 8192;
const PER_PLAN: usize = 1024;

/// Two extents that were to change places.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    up: u32,
    down: u32,
    /// By the clock of the heat map, in hours: when they were chosen.
    since: u64,
    /// Hours that count.
    hours: u32,
    /// Host I/Os that the hotter one is expected to have in an hour beyond those of the other.
    hourly: f32,
    /// Those that it had.
    won: f32,
}

impl Pair {
    /// A window of so many hours ends, whose counts are there yet: what was won in it, if it counts.
    fn window_ends(&mut self, heat: &HeatMap, hours: u64) -> Option<f32> {
        let began = heat.epoch().saturating_sub(hours);
        let counts = match began.checked_sub(self.since) {
            Some(0..LATER_H) => hours >= DAY_H,
            Some(_) => true,
            None => false,
        };
        counts.then(|| {
            let ios = |extent| heat.extent(extent).ios() as f32;
            let won = ios(self.up) - ios(self.down);
            self.won += won;
            self.hours = self.hours.saturating_add(u32::try_from(hours).unwrap_or(u32::MAX));
            won
        })
    }

    fn has_ended(&self) -> bool {
        u64::from(self.hours) >= DAY_H
    }
}

/// Pairs that were chosen in one window, as they are followed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Time {
    /// As theirs.
    since: u64,
    /// Windows that counted, and the sum of the squares of what all of them won in each.
    windows: u32,
    squares: f64,
}

impl Time {
    /// How far what they won in all is known by how it came, as a variance. One window alone, that of a day, tells nothing of it.
    fn variance(&self, won: f64) -> f64 {
        let windows = f64::from(self.windows);
        match self.windows {
            0 | 1 => (OF_A_DAY * won).powi(2),
            _ => (windows * self.squares - won * won).max(0.0) / (windows - 1.0),
        }
    }
}

/// What is known of the newest swaps. Those that were chosen at about the same time are counted together: what comes to a file comes to all of it, wherever that
/// lies, and it comes once more to all of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Known {
    /// So many times.
    count: f64,
    /// Host I/Os that they were expected to gain, and those that they gained.
    expected: f64,
    won: f64,
    /// Squares of both, and products.
    squares: [f64; 3],
    /// How far what they gained is known by how it came, as a variance.
    within: f64,
}

impl Known {
    /// One time.
    fn of(expected: f64, won: f64, within: f64) -> Self {
        let squares = [expected * expected, expected * won, won * won];
        Self { count: 1.0, expected, won, squares, within }
    }

    fn save(&self, out: &mut Writer) {
        let sums = [self.count, self.expected, self.won, self.within];
        sums.iter().chain(&self.squares).for_each(|sum| out.u64(sum.to_bits()));
    }

    fn restore(from: &mut Reader<'_>) -> Option<Self> {
        let mut sum = || Some(f64::from_bits(from.u64()?)).filter(|sum| sum.is_finite());
        let (count, expected, won, within) = (sum()?, sum()?, sum()?, sum()?);
        let squares = [sum()?, sum()?, sum()?];
        let is_fine = count >= 0.0 && expected >= 0.0 && within >= 0.0;
        is_fine.then_some(Self { count, expected, won, squares, within })
    }

    /// What all of them won is no less than nothing and no more than so many times what was expected. Of each by itself that would take luck for gain.
    fn within_bounds(self) -> Self {
        let of = match self.won > 0.0 {
            true => (MOST * self.expected / self.won).min(1.0),
            false => 0.0,
        };
        let [squares, products, won_squares] = self.squares;
        let squares = [squares, products * of, won_squares * of * of];
        Self { won: self.won * of, squares, within: self.within * of * of, ..self }
    }

    /// So much of it stays, and more comes.
    fn and(&self, stays: f64, more: &Self) -> Self {
        let sum = |old: f64, new: f64| old * stays + new;
        let [squares, products, won_squares] = self.squares;
        let [more_squares, more_products, more_won_squares] = more.squares;
        Self {
            count: sum(self.count, more.count),
            expected: sum(self.expected, more.expected),
            won: sum(self.won, more.won),
            squares: [
                sum(squares, more_squares),
                sum(products, more_products),
                sum(won_squares, more_won_squares),
            ],
            within: sum(self.within, more.within),
        }
    }

    /// What was gained, as a part of what was expected, and as much of it as is known. `None` where nothing is.
    fn part(&self) -> Option<(f64, f64)> {
        let (part, off) = self.between()?;
        let within = DEVIATIONS_WITHIN * self.within.sqrt();
        Some((part, part - off.min(within / self.expected)))
    }

    /// The same part, and how far it may be off by what those of several times gained: that of a ratio of sums of independent ones. What two times tell is nothing, as
    /// both may be luck.
    fn between(&self) -> Option<(f64, f64)> {
        if self.expected <= 0.0 {
            return None;
        }
        let part = self.won / self.expected;
        let [squares, products, won_squares] = self.squares;
        let rest = (won_squares - 2.0 * part * products + part * part * squares).max(0.0);
        let off = match self.count > 2.0 {
            true => DEVIATIONS * (rest * self.count / (self.count - 2.0)).sqrt(),
            false => self.won,
        };
        Some((part, off / self.expected))
    }
}

/// Those of a virtual disk.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Gains {
    known: Known,
    /// When the first plan was made, and when something was learned last, by the clock of the heat map.
    began: Option<u64>,
    learned: u64,
    /// The newest by themselves, the oldest first, where they are known of one window each, that of a day.
    days: Vec<Known>,
    /// By the extents that were to move up.
    pairs: Vec<Pair>,
    /// When these were chosen, the oldest first.
    times: Vec<Time>,
}

impl Gains {
    /// What swaps that looked sure have gained of late of what they were to gain, where that is too little, as far as it is known. Where nothing is, nothing is believed
    /// yet by runs that are less than a day apart, which will know it when their first swaps have been followed, nor on the first days of a load.
    pub(super) fn little(&self, heat: &HeatMap) -> Option<f64> {
        let Some((part, known)) = self.known.part() else {
            let is_daily = heat.window_hours().is_some_and(|hours| hours >= DAY_H);
            return (!is_daily || heat.is_new()).then_some(0.0);
        };
        let is_little = known < LITTLE && self.newest_days().is_none_or(|known| known < LITTLE);
        is_little.then_some(part)
    }

    /// As much as is known of what the newest days' gained of what they were to gain: where all of them did, another load has begun since.
    fn newest_days(&self) -> Option<f64> {
        let all = (self.days.len() == DAYS)
            .then(|| self.days.iter().fold(Known::default(), |sum, one| sum.and(1.0, one)))?;
        let (part, off) = all.between()?;
        Some(part - off)
    }

    /// A plan has been made, with these swaps that look sure. `ends`: with it the window of the heat map ends, whose counts are there yet.
    pub(super) fn planned(&mut self, sure: &[(u32, u32)], heat: &HeatMap, ends: bool) {
        if ends {
            self.window_ends(heat);
            self.learn(heat.epoch());
        }
        // What is of another clock tells nothing.
        self.pairs.retain(|pair| pair.since <= heat.epoch());
        self.times.retain(|time| time.since <= heat.epoch());
        let known = self.pairs.len();
        let room = PER_PLAN.min(PAIRS - known);
        let began = *self.began.get_or_insert(heat.epoch());
        let is_early = heat.epoch().saturating_sub(began) < EARLY_H;
        if is_early && heat.window_hours().is_some_and(|hours| hours < DAY_H) {
            return;
        }
        // Some of all, if they are many, and not the hottest alone.
        let step = sure.len().div_ceil(room.max(1)).max(1);
        // Those of a window are one, from the first on.
        let window = heat.epoch() - heat.window_hours().unwrap_or(0);
        let since = self.times.last().map(|time| time.since).filter(|since| *since > window);
        let since = since.unwrap_or(heat.epoch());
        for (down, up) in sure.iter().copied().step_by(step).take(room) {
            if self.pairs[..known].binary_search_by_key(&up, |pair| pair.up).is_err() {
                let hourly = hourly(heat, up) - hourly(heat, down);
                let (hours, won) = (0, 0.0);
                self.pairs.push(Pair { up, down, since, hours, hourly, won });
            }
        }
        let is_more = self.times.last().is_none_or(|last| last.since < since);
        if is_more && self.pairs.len() > known {
            self.times.push(Time { since, windows: 0, squares: 0.0 });
        }
        self.pairs.sort_unstable_by_key(|pair| pair.up);
    }

    pub(super) fn save(&self, out: &mut Writer) {
        self.known.save(out);
        out.u8(u8::from(self.began.is_some()));
        out.u64(self.began.unwrap_or(0));
        out.u64(self.learned);
        out.u64(to_u64(self.pairs.len()));
        for pair in &self.pairs {
            out.u32(pair.up);
            out.u32(pair.down);
            out.u64(pair.since);
            out.u32(pair.hours);
            out.u32(pair.hourly.to_bits());
            out.u32(pair.won.to_bits());
        }
        for time in &self.times {
            out.u32(time.windows);
            out.u64(time.squares.to_bits());
        }
        out.u64(to_u64(self.days.len()));
        self.days.iter().for_each(|day| day.save(out));
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Option<Self> {
        let known = Known::restore(from)?;
        let has_begun = from.u8()? != 0;
        let (began, learned) = (has_begun.then_some(from.u64()?), from.u64()?);
        let count = from.u64().filter(|count| *count <= to_u64(PAIRS))?;
        let mut gains = Self { known, began, learned, ..Self::default() };
        for _ in 0..count {
            let (up, down, since, hours) = (from.u32()?, from.u32()?, from.u64()?, from.u32()?);
            let mut figure = || Some(f32::from_bits(from.u32()?)).filter(|it| it.is_finite());
            let (hourly, won) = (figure()?, figure()?);
            if gains.pairs.last().is_some_and(|last| last.up >= up) {
                return None;
            }
            gains.pairs.push(Pair { up, down, since, hours, hourly, won });
        }
        let times: BTreeSet<u64> = gains.pairs.iter().map(|pair| pair.since).collect();
        for since in times {
            let (windows, squares) = (from.u32()?, f64::from_bits(from.u64()?));
            gains.times.push(Time { since, windows, squares });
        }
        for _ in 0..from.u64().filter(|days| *days <= to_u64(DAYS))? {
            gains.days.push(Known::restore(from)?);
        }
        let is_fine = |time: &Time| time.squares.is_finite() && time.squares >= 0.0;
        gains.times.iter().all(is_fine).then_some(gains)
    }

    /// Of a file as it was before it was known how gains came: what it says is left out.
    pub(super) fn skip_old(from: &mut Reader<'_>) -> Option<()> {
        (0..6).try_for_each(|_| from.u64().map(drop))?;
        from.u8()?;
        (0..2).try_for_each(|_| from.u64().map(drop))?;
        let count = from.u64().filter(|count| *count <= to_u64(PAIRS))?;
        (0..7 * count).try_for_each(|_| from.u32().map(drop))
    }

    /// Of swaps that gained what was expected, for tests of plans.
    #[cfg(test)]
    pub(super) fn as_expected() -> Self {
        Self { known: Known::of(100.0, 100.0, 0.0), ..Self::default() }
    }

    /// Some, for tests of what is read of it.
    #[cfg(test)]
    pub(super) fn sample() -> Self {
        let of = |up, hours| {
            let (since, hourly, won) = (7, 0.25, -2.0);
            Pair { up, down: 5, since, hours, hourly, won }
        };
        let known = Known::of(60.0, 7.0, 3.0);
        let pairs = vec![of(3, 6), of(70_000, 0)];
        let times = vec![Time { since: 7, windows: 1, squares: 4.0 }];
        Self { known, began: Some(1), learned: 7, days: vec![known; 2], pairs, times }
    }

    /// The window ends, whose counts are there yet.
    fn window_ends(&mut self, heat: &HeatMap) {
        let hours = heat.window_hours().unwrap_or(0);
        let mut won: BTreeMap<u64, f64> = BTreeMap::new();
        for pair in &mut self.pairs {
            if let Some(more) = pair.window_ends(heat, hours) {
                *won.entry(pair.since).or_default() += f64::from(more);
            }
        }
        for time in &mut self.times {
            if let Some(won) = won.get(&time.since) {
                time.windows = time.windows.saturating_add(1);
                time.squares += won * won;
            }
        }
    }

    /// Those that have been followed for a day are known, and take the place of older ones.
    fn learn(&mut self, now: u64) {
        let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for pair in self.pairs.extract_if(.., |pair| pair.has_ended()) {
            let (expected, won) = sums.entry(pair.since).or_default();
            *expected += f64::from(pair.hourly.max(0.0)) * f64::from(pair.hours);
            *won += f64::from(pair.won);
        }
        if sums.is_empty() {
            return;
        }
        let mut new = Known::default();
        for time in self.times.extract_if(.., |time| sums.contains_key(&time.since)) {
            let (expected, won) = sums[&time.since];
            let one = Known::of(expected, won, time.variance(won));
            if time.windows == 1 {
                self.days.push(one.within_bounds());
            } else {
                self.days.clear();
            }
            new = new.and(1.0, &one);
        }
        self.days.drain(..self.days.len().saturating_sub(DAYS));
        let new = new.within_bounds();
        let hours = now.saturating_sub(self.learned);
        let by_count = (NEWEST - new.count).max(0.0) / self.known.count.max(1.0);
        let by_time = 0.5_f64.powf(hours as f64 / HALF_H);
        self.known = self.known.and(by_count.max(by_time).min(1.0), &new);
        self.learned = now;
    }
}

/// Host I/Os in an hour that an extent looks as if it would have.
pub(super) fn hourly(heat: &HeatMap, extent: u32) -> f32 {
    let seen = heat.extent(extent);
    // A score that stays as it is wins as much as decays of it; and no more is asked for than a whole day has had.
    let hourly = seen.score * std::f32::consts::LN_2 / heat.settings().half_life_hours;
    let hours = heat.window_hours().filter(|hours| *hours >= DAY_H);
    hours.map_or(hourly, |hours| hourly.min(seen.ios() as f32 / hours as f32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::{HeatSettings, HostIoKind};

    /// A map in which time goes on, and swaps for the extents from 1,000 on.
    struct Course {
        heat: HeatMap,
        gains: Gains,
    }

    impl Course {
        fn new() -> Self {
            let mut heat = HeatMap::new(HeatSettings::new(4000));
            heat.begin_window();
            Self { heat, gains: Gains::default() }
        }

        /// So many hours pass, at the end of which each of these extents has so many I/Os.
        fn hours(&mut self, hours: u64, extents: &[u32], ios: u64) -> &mut Self {
            self.heat.advance(self.heat.epoch() + hours);
            extents.iter().for_each(|extent| {
                self.heat.record_many(*extent, HostIoKind::Read, ios);
            });
            self
        }

        /// A run that would swap these for the cold extents with the same number less 1,000, and ends the window.
        fn run(&mut self, extents: &[u32]) -> &mut Self {
            self.plan(extents, true);
            self.heat.begin_window();
            self
        }

        fn plan(&mut self, extents: &[u32], ends: bool) {
            let sure: Vec<(u32, u32)> = extents.iter().map(|up| (up - 1000, *up)).collect();
            self.gains.planned(&sure, &self.heat, ends);
        }

        fn little(&self) -> Option<f64> {
            self.gains.little(&self.heat)
        }

        fn part(&self) -> Option<f64> {
            self.gains.known.part().map(|(part, _)| part)
        }
    }

    /// Far from one another.
    fn strewn(count: u32) -> Vec<u32> {
        (0..count).map(|nth| 1000 + 20 * nth).collect()
    }

    #[test]
    fn what_is_not_asked_for_again_gains_little_and_what_is_does_not() {
        let some = strewn(12);
        let mut once = Course::new();
        once.hours(24, &some, 500).run(&some).hours(24, &[], 0).run(&[]);
        assert_eq!((once.part(), once.little()), (Some(0.0), Some(0.0)));
        assert!(once.gains.pairs.is_empty() && once.gains.times.is_empty(), "they have ended");
        // Of daily runs three have to tell it.
        let mut again = Course::new();
        again.hours(24, &some, 500).run(&some);
        for known in [true; 3] {
            again.hours(24, &some, 500).run(&some);
            assert!((1.0..=MOST).contains(&again.part().expect("known")), "{:?}", again.part());
            assert_eq!(again.little().is_none(), known);
        }
        // What the others win as well is no gain.
        let mut both = Course::new();
        let all: Vec<u32> = some.iter().flat_map(|up| [*up, up - 1000]).collect();
        both.hours(24, &some, 500).run(&some);
        (0..4).for_each(|_| {
            both.hours(24, &all, 500).run(&some);
        });
        assert_eq!(both.little(), Some(0.0));
    }

    /// Extents that are alike, of which some have had a bunch, and others will: half of the pairs win by it and half lose, and none of them gains.
    #[test]
    fn luck_is_no_gain() {
        let some = strewn(100);
        let lucky: Vec<u32> = (0..).zip(&some).map(|(nth, up)| up - nth % 2 * 1000).collect();
        let mut course = Course::new();
        course.hours(24, &some, 500).run(&some).hours(24, &lucky, 500).run(&[]);
        assert_eq!(course.little(), Some(0.0));
        // Nor is what those win that were chosen a loss for ever: as many that gain make up for what was lost.
        let others: Vec<u32> = some.iter().map(|up| up - 1000).collect();
        course.hours(24, &some, 500).run(&some).hours(24, &others, 5000).run(&some);
        (0..4).for_each(|_| {
            course.hours(24, &some, 500).run(&some);
        });
        assert_eq!(course.little(), None);
    }

    /// Where the newest days all gained, what was before tells nothing of it.
    #[test]
    fn three_days_on_end_are_enough() {
        let some = strewn(40);
        let half: Vec<u32> = some.iter().copied().step_by(2).collect();
        let mut course = Course::new();
        (0..8).for_each(|_| {
            course.hours(24, &some, 500).run(&some).hours(24, &[], 0).run(&[]);
        });
        course.hours(24, &some, 500).run(&some);
        for known in [false, false, true] {
            assert!(course.little().is_some(), "{:?}", course.gains);
            course.hours(24, &half, 500).hours(0, &some, 20).run(&some);
            assert_eq!(course.little().is_none(), known, "{:?}", course.gains.days);
        }
        // One that does not ends it.
        course.hours(24, &[], 0).run(&[]);
        assert!(course.little().is_some());
    }

    /// What is chosen at one time is one thing, however many extents it is and wherever they lie: a file that comes once more by chance tells nothing of the others.
    #[test]
    fn what_comes_together_counts_together() {
        let (file, others) = (strewn(80), strewn(60));
        let mut course = Course::new();
        for _ in 0..3 {
            course.hours(24, &others, 500).run(&others).hours(24, &[], 0).run(&[]);
        }
        let known = course.gains.known;
        assert!((2.9..=3.0).contains(&known.count), "{known:?}");
        course.hours(24, &file, 500).run(&file).hours(24, &file, 500).run(&[]);
        let (known, part) = (course.gains.known, course.part().expect("known"));
        assert!((3.5..=4.0).contains(&known.count), "{known:?}");
        assert!(part > LITTLE && course.little() == Some(part), "{part}: one of four");
        // Until it goes on.
        for _ in 0..3 {
            course.hours(24, &file, 500).run(&file).hours(24, &file, 500).run(&[]);
        }
        assert_eq!(course.little(), None, "{:?}", course.gains.known);
    }

    /// Nothing is believed of which nothing is known. What comes in each window is known when its first pairs have been followed; what came in one of them, or in two,
    /// may be luck.
    #[test]
    fn what_comes_in_each_window_is_known_at_once() {
        let some = strewn(12);
        let told = |ios: [u64; 4]| {
            let mut course = Course::new();
            assert_eq!(course.little(), Some(0.0));
            course.hours(6, &[], 0).run(&[]).hours(6, &[], 0).run(&[]);
            course.hours(6, &some, 100).plan(&some, false);
            course.run(&some).hours(6, &some, 100).run(&some);
            ios.into_iter().for_each(|ios| {
                course.hours(6, &some, ios).run(&some);
            });
            course
        };
        let steady = told([100; 4]);
        let known = steady.gains.known;
        assert_eq!((known.count, steady.little()), (1.0, None), "{known:?}");
        for luck in [[0, 900, 0, 0], [400, 0, 0, 400], [0; 4]] {
            let found = told(luck);
            let known = found.gains.known;
            assert_eq!(known.count, 1.0);
            assert!(found.little().is_some(), "{luck:?}: {known:?}");
        }
    }

    /// What comes in the first hours is the rest of what they were chosen for, in windows that are less than a day.
    #[test]
    fn hours_count_from_a_while_later_on() {
        let some = strewn(12);
        let mut course = Course::new();
        course.hours(24, &some, 500).run(&some).hours(5, &some, 500).run(&[]);
        assert!(course.gains.pairs.iter().all(|pair| (pair.hours, pair.won) == (0, 0.0)));
        // That one begins five hours after.
        course.hours(6, &some, 500).run(&[]);
        assert!(course.gains.pairs.iter().all(|pair| pair.hours == 0));
        course.hours(6, &some, 500).run(&[]).hours(6, &[], 0).run(&[]).hours(6, &[], 0).run(&[]);
        assert!(course.gains.pairs.iter().all(|pair| (pair.hours, pair.won) == (18, 500.0)));
        // One who is chosen once more meanwhile is followed as before.
        course.hours(6, &[], 0).run(&some);
        assert_eq!((course.gains.known.count, course.gains.known.won), (1.0, 6000.0));
        assert_eq!(course.gains.pairs.len(), 12);
        // In the middle of a window: what it has had by then is no gain.
        let mut trickle = Course::new();
        trickle.hours(24, &[], 0).run(&[]).hours(20, &some, 500).plan(&some, false);
        trickle.hours(2, &[], 0).run(&[]);
        assert!(trickle.gains.pairs.iter().all(|pair| (pair.hours, pair.won) == (0, 0.0)));
    }

    /// In the first hours of runs that are less than a day apart scores say too little.
    #[test]
    fn the_first_hours_of_a_trickle_tell_nothing() {
        let some = strewn(12);
        let mut course = Course::new();
        course.hours(1, &some, 500).run(&[]);
        for followed in [false, true] {
            course.hours(6, &some, 500).run(&some);
            assert_eq!(!course.gains.pairs.is_empty(), followed);
        }
    }

    #[test]
    fn what_is_known_stays_until_there_is_newer_and_a_part_of_many_is_followed() {
        let some = strewn(12);
        let mut course = Course::new();
        course.hours(24, &some, 500).run(&some).hours(24, &[], 0).run(&[]);
        // However long nothing looks hot.
        course.hours(2400, &[], 0).run(&[]);
        assert_eq!(course.little(), Some(0.0));
        let many: Vec<u32> = (1000..3900).collect();
        course.hours(24, &many, 500).plan(&many, true);
        let pairs = &course.gains.pairs;
        assert!((PER_PLAN / 2..=PER_PLAN).contains(&pairs.len()), "{}", pairs.len());
        assert!(pairs.last().expect("some").up > 3800, "of all of them");
    }

    #[test]
    fn what_is_saved_is_read_and_what_cannot_be_is_not() {
        let some = strewn(3);
        let mut course = Course::new();
        course.hours(24, &some, 500).run(&some).hours(24, &[], 0).run(&some);
        let read = |gains: &Gains| {
            let mut out = Writer(Vec::new());
            gains.save(&mut out);
            Gains::restore(&mut Reader(&out.0))
        };
        let gains = course.gains;
        assert_eq!(gains.pairs.len(), 3);
        assert_eq!(read(&gains), Some(gains.clone()));
        let [one, other] = [gains.pairs[0], gains.pairs[1]];
        for wrong in [
            vec![other, one],
            vec![one, one],
            vec![Pair { hourly: f32::NAN, ..one }],
            vec![Pair { won: f32::INFINITY, ..one }],
        ] {
            assert_eq!(read(&Gains { pairs: wrong, ..gains.clone() }), None);
        }
        for expected in [-1.0, f64::NAN] {
            let known = Known { expected, ..gains.known };
            assert_eq!(read(&Gains { known, ..gains.clone() }), None);
            assert_eq!(read(&Gains { days: vec![known], ..gains.clone() }), None);
        }
        assert_eq!(read(&Gains { days: vec![gains.known; DAYS + 1], ..gains.clone() }), None);
        let [time] = [gains.times[0]];
        let times = vec![Time { squares: f64::NAN, ..time }];
        assert_eq!(read(&Gains { times, ..gains.clone() }), None);
        // A map that was lost begins with another hour.
        let mut lost = gains;
        lost.planned(&[], &HeatMap::new(HeatSettings::new(100)), false);
        assert!(lost.pairs.is_empty());
    }
}
