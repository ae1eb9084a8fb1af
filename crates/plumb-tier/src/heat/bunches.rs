//! How many I/Os come to an extent at a time, by what it wins from one hour to the next.
//!
//! I/Os that come in bunches at random times make an hour's count of an extent differ from the next one's by chance, by a variance that is as
//! many times the count as come together. Hours are short: hot spots that wander, and extents that are busy on some
//! days and not on others, hardly change from one to the next. What they say is another matter than what windows say, which see all
//! that goes on for longer than an hour, chance or not; and a load that comes once a day at the same hour looks like bunches here, and like none
//! there. So beyond a certain factor only what both see is believed.

use super::dispersion::WITNESSES;

/// So many extents with I/Os enough tell something.
const TELLING_LEAST: usize = 64;
/// Pairs of hours have won so much at least, each hour being in two of them, in sixteenths of an I/O.
const ENOUGH: f32 = 2.0 * 4.0 * 16.0;
/// Hours one of which was so many times as busy as the other for all are not compared.
const BUSIER_MOST: f32 = 2.0;
/// What hours say counts for half as much after so many.
const HALF_LIFE_H: f32 = 12.0;
/// Scores of up to so many sixteenths, 4,096 I/Os, are exact as long as single I/Os are added to them: steps are of 16 at most (HEAT-1).
const EXACT: f32 = 65_536.0;

/// What an hour won of which that is not known, and what the score was when one began that nobody saw begin.
const UNKNOWN: f32 = -1.0;
const NOT_SEEN: f32 = f32::MAX;

/// What one extent won in the last hours, in sixteenths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hours {
    /// Its score when this hour began.
    pub(super) at: f32,
    /// What it won in the hour before; less than 0 where that is not known.
    pub(super) before: f32,
    /// Of pairs of hours that follow each other, older ones for less: squares of what they differ by, over what there would be of them for
    /// each sixteenth that was won if these came one by one; and sixteenths.
    pub(super) off: f32,
    pub(super) won: f32,
}

impl Hours {
    /// Of an extent of which nothing is known: what it wins counts from the next hour on.
    pub(super) fn new() -> Self {
        Self { at: NOT_SEEN, before: UNKNOWN, off: 0.0, won: 0.0 }
    }

    /// Could have been saved.
    pub(super) fn is_sound(&self) -> bool {
        let sums = [self.off, self.won].iter().all(|sum| (0.0..=f32::MAX).contains(sum));
        sums && self.at.is_finite() && (UNKNOWN..=f32::MAX).contains(&self.before)
    }

    /// Its score was set to one that is so much larger, and the hour goes on.
    pub(super) fn moved_by(self, more: f32) -> Self {
        let at = if self.at < NOT_SEEN { self.at + more } else { NOT_SEEN };
        Self { at, ..self }
    }

    /// Hours that have passed since are no neighbours of this one.
    pub(super) fn forget_before(&mut self) {
        self.before = UNKNOWN;
    }

    /// What an hour won that ends with a score of `now`.
    pub(super) fn won_by(&self, now: f32) -> f32 {
        (now - self.at).max(0.0)
    }

    /// The hour ends with a score of `now`, and the next one begins with one of `at`. `levels` are what all won in the hour before and in this
    /// one, where they can be compared.
    pub(super) fn end(&mut self, now: f32, at: f32, levels: Option<[f32; 2]>) {
        let fade = (-HALF_LIFE_H.recip()).exp2();
        let won = self.won_by(now);
        (self.off, self.won) = (self.off * fade, self.won * fade);
        if let Some([first, second]) = levels.filter(|_| self.before >= 0.0 && now <= EXACT) {
            // By how busy all were in either hour: what both won is halved where that was alike.
            let differ = self.before * second - won * first;
            self.off += differ / first * differ / second;
            self.won += self.before + won;
        }
        self.before = if self.at < NOT_SEEN { won } else { UNKNOWN };
        self.at = at;
    }

    /// How many times as much as single I/Os its own vary; `None` where that has too few.
    fn dispersion(&self) -> Option<f32> {
        (self.won >= ENOUGH).then(|| self.off / self.won / 16.0)
    }
}

/// Two levels of hours that can be compared.
pub(super) fn alike(levels: [f32; 2]) -> Option<[f32; 2]> {
    let [first, second] = levels;
    let is_alike =
        first > 0.0 && second > 0.0 && first.max(second) <= BUSIER_MOST * first.min(second);
    is_alike.then_some(levels)
}

/// How many times as much as single I/Os those of the extent in the middle vary; `None` where too few have I/Os enough. Half of them may
/// have got another load meanwhile, or one of another kind.
pub(super) fn of_hours<'a>(all: impl Iterator<Item = &'a Hours>) -> Option<f32> {
    let mut found: Vec<f32> = all.filter_map(Hours::dispersion).take(WITNESSES).collect();
    if found.len() < TELLING_LEAST {
        return None;
    }
    let middle = found.len() / 2;
    Some(*found.select_nth_unstable_by(middle, f32::total_cmp).1)
}
