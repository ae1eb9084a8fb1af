//! How many I/Os come to an extent at a time, by what it wins from one hour to the next.
//!
//! I/Os that come in bunches at random times make an hour's count of an extent differ from the next one's by chance, by a variance that is as
//! many times the count as come together. By how much an hour is off both of its neighbours tells it: a hot spot that has come or gone, and an extent that is
//! busy today and not tomorrow, is like one of the two. What hours say is another matter than what windows say, which see all
//! that goes on for longer than an hour, chance or not; and a load that comes once a day at the same hour looks like bunches here, and like none
//! there. So beyond a certain factor only what both see is believed.

use super::dispersion::WITNESSES;

/// So many extents with I/Os enough tell something.
const TELLING_LEAST: usize = 64;
/// Hours have won so much at least, in sixteenths of an I/O.
const ENOUGH: f32 = 4.0 * 16.0;
/// Hours one of which was so many times as busy as the other for all are not compared.
const BUSIER_MOST: f32 = 2.0;
/// What hours say counts for half as much after so many.
const HALF_LIFE_H: f32 = 12.0;
/// What an hour is off one neighbour counts so many times as much as it is off the other at most: when a hot spot comes it is far off the hour
/// before and by chance off the next one.
const CLIP: f32 = 8.0;
/// Scores of up to so many sixteenths, 4,096 I/Os, are exact as long as single I/Os are added to them: steps are of 16 at most (HEAT-1).
pub(super) const EXACT: f32 = 65_536.0;

/// What an hour won of which that is not known, and what the score was when one began that nobody saw begin.
pub(super) const UNKNOWN: f32 = -1.0;
const NOT_SEEN: f32 = f32::MAX;

/// What one extent won in the last hours, in sixteenths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hours {
    /// Its score when this hour began.
    pub(super) at: f32,
    /// What it won in the hour before, and in the one before that; less than 0 where that is not known.
    pub(super) before: [f32; 2],
    /// Of hours between two others, older ones for less: by how much they are off both, as a product, which is the square of what chance makes
    /// of one that comes alone; and sixteenths.
    pub(super) off: f32,
    pub(super) won: f32,
}

impl Hours {
    /// Of an extent of which nothing is known: what it wins counts from the next hour on.
    pub(super) fn new() -> Self {
        Self { at: NOT_SEEN, before: [UNKNOWN; 2], off: 0.0, won: 0.0 }
    }

    /// Could have been saved.
    pub(super) fn is_sound(&self) -> bool {
        let known = self.before.iter().all(|won| (UNKNOWN..=f32::MAX).contains(won));
        let sums = self.off.is_finite() && (0.0..=f32::MAX).contains(&self.won);
        sums && known && self.at.is_finite()
    }

    /// Its score was set to one that is so much larger, and the hour goes on.
    pub(super) fn moved_by(self, more: f32) -> Self {
        let at = if self.at < NOT_SEEN { self.at + more } else { NOT_SEEN };
        Self { at, ..self }
    }

    /// Hours that have passed since are no neighbours of this one.
    pub(super) fn forget_before(&mut self) {
        self.before = [UNKNOWN; 2];
    }

    /// What an hour won that ends with a score of `now`, and the two before it; `None` where these are not known.
    pub(super) fn three(&self, now: f32) -> Option<[f32; 3]> {
        let [middle, first] = self.before;
        (first >= 0.0 && middle >= 0.0).then(|| [first, middle, self.won_by(now)])
    }

    fn won_by(&self, now: f32) -> f32 {
        (now - self.at).max(0.0)
    }

    /// The hour ends with a score of `now`, and the next one begins with one of `at`. `levels` are what all won in the two hours before and in
    /// this one, where they can be compared.
    pub(super) fn end(&mut self, now: f32, at: f32, levels: Option<[f32; 3]>) {
        let fade = (-HALF_LIFE_H.recip()).exp2();
        (self.off, self.won) = (self.off * fade, self.won * fade);
        let three = self.three(now).zip(levels);
        if let Some(([first, middle, last], level)) = three {
            // By how busy all were in the middle one.
            let off = [middle - first / level[0] * level[1], middle - last / level[2] * level[1]];
            let least = off[0].abs().min(off[1].abs());
            let most = CLIP * least * least;
            self.off += (off[0] * off[1]).clamp(-most, most);
            self.won += middle;
        }
        let won = if self.at < NOT_SEEN { self.won_by(now) } else { UNKNOWN };
        self.before = [won, self.before[0]];
        self.at = at;
    }

    /// How many times as much as single I/Os its own vary; `None` where that has too few.
    pub(super) fn dispersion(&self) -> Option<f32> {
        (self.won >= ENOUGH).then(|| self.off / self.won / 16.0)
    }
}

/// Levels of three hours that can be compared.
pub(super) fn alike(levels: [f32; 3]) -> Option<[f32; 3]> {
    let least = levels.iter().copied().fold(f32::MAX, f32::min);
    let most = levels.iter().copied().fold(0.0, f32::max);
    (least > 0.0 && most <= BUSIER_MOST * least).then_some(levels)
}

/// How many times as much as single I/Os those of the extent in the middle vary; `None` where too few have I/Os enough. Half of them may
/// have got another load meanwhile, or one of another kind.
pub(super) fn of_hours<'a>(all: impl Iterator<Item = &'a Hours>) -> Option<f32> {
    let mut found: Vec<f32> = all.filter_map(Hours::dispersion).take(WITNESSES).collect();
    if found.len() < TELLING_LEAST {
        return None;
    }
    let middle = found.len() / 2;
    Some(found.select_nth_unstable_by(middle, f32::total_cmp).1.max(1.0))
}
