//! What became of extents that looked hot or cold: what they won in a day, from half a day later on.
//!
//! Who looks hottest below and who looks coldest above are chosen for what they had of late. Where that is more than their usual share for whatever reason,
//! chance, a session of some hours, a day of their own, it does not last. How much of it does is seen by those that are followed: from time to time the
//! score of each is marked, with the tier on which it lies, and what it wins later is held against those that looked alike.

use super::chances::Lies;
use crate::format::bytes::{Reader, Writer};

/// What an extent wins in the first hours after it was marked may be the rest of what it was marked for.
const LATER_H: u32 = 12;
/// It is told what it won in so many hours at least, which come to a day with windows of most lengths.
const OVER_H: u32 = 21;
/// Classes of extents by score: four to each doubling.
const PER_DOUBLING: f32 = 4.0;
const CLASSES: usize = 96;
/// Classes that come to a doubling.
const WITHIN: usize = 4;
/// Where fewer than so many had about as much, and it is so many deviations off what those had that tell of it, nothing is known.
const FEW: f32 = 16.0;
const FAR: f32 = 10.0;
/// What is saved of all of them.
#[cfg(test)]
pub(super) const SAVED: usize = 4 + 2 * CLASSES * size_of::<Sums>();
/// What is left of what was known of a class after another time.
const FADE: f32 = 0.75;
/// So many tell what becomes of an extent that looks like them; fewer than the least tell nothing.
const ENOUGH: f32 = 384.0;
const LEAST: f32 = 48.0;
/// So many times what an extent's score says, or that of the one in the middle of the Performance tier, counts at most: a single one that has become the hottest of
/// all tells nothing of the others.
const MOST: f32 = 4.0;
/// What all won over what their scores said. Where that is off what it was before by such a factor, what was known is forgotten: scores were of a few hours then, or
/// the load was another one.
const BUSIER_MOST: f32 = 1.25;
/// Those that were marked when all were so many times as quiet, or as busy, tell nothing.
const LEVEL_MOST: f32 = 16.0;

/// An extent that is followed, when it was marked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mark {
    /// Its score then, in sixteenths; negative if it lay on the Capacity tier.
    score: f32,
    /// What it has won since the time began that counts; less than 0 where it was not marked.
    won: f32,
}

impl Mark {
    /// Of an extent that is followed since later than that.
    pub(super) const NONE: Self = Self { score: 0.0, won: -1.0 };

    pub(super) fn new(score: f32, lies: Lies) -> Self {
        let score = if lies == Lies::Fast { score } else { -score };
        Self { score, won: 0.0 }
    }

    /// Where it lay, if it was marked.
    #[cfg(test)]
    pub(super) fn marked(self) -> Option<Lies> {
        self.is_marked().then(|| self.lies())
    }

    fn lies(self) -> Lies {
        if self.score.is_sign_negative() { Lies::Slow } else { Lies::Fast }
    }

    fn is_marked(self) -> bool {
        self.won >= 0.0
    }

    /// After a window that counts, in which it won so much and which leaves so much of a score.
    pub(super) fn after(self, won: f32, keep: f32) -> Self {
        let won = if self.is_marked() { self.won * keep + won } else { self.won };
        Self { won, ..self }
    }

    pub(super) fn save(self, bytes: &mut Writer) {
        [self.score, self.won].iter().for_each(|value| bytes.u32(value.to_bits()));
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Option<Self> {
        let mark = Self { score: f32::from_bits(from.u32()?), won: f32::from_bits(from.u32()?) };
        (mark.score.is_finite() && (-1.0..=f32::MAX).contains(&mark.won)).then_some(mark)
    }
}

/// How far extents that are marked have come.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Course {
    /// Hours since they were marked, and those of them that count.
    since: u32,
    over: u32,
}

impl Course {
    /// Whether the window that ends now counts.
    pub(super) fn counts(self) -> bool {
        self.since >= LATER_H
    }

    /// A window of so many hours has ended.
    pub(super) fn end(&mut self, hours: u64) {
        let hours = u32::try_from(hours).unwrap_or(u32::MAX);
        if self.counts() {
            self.over = self.over.saturating_add(hours);
        }
        self.since = self.since.saturating_add(hours);
    }

    pub(super) fn save(self, bytes: &mut Writer) {
        bytes.u32(self.since);
        bytes.u32(self.over);
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { since: from.u32()?, over: from.u32()? })
    }

    /// The hours that count, if those are enough.
    pub(super) fn ended(self) -> Option<u64> {
        (self.over >= OVER_H).then_some(self.over.into())
    }
}

/// What is known of a class: how many were marked, their scores and what they won, as scores to which that leads; squares and products of these.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Sums([f32; 6]);

impl Sums {
    fn of(score: f32, won: f32) -> Self {
        Self([1.0, score, won, score * score, score * won, won * won])
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

/// What became of extents, by where they lay and how hot they were.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcomes {
    classes: [[Sums; CLASSES]; 2],
    /// What all won over what their scores said, the last time.
    level: f32,
}

impl Default for Outcomes {
    fn default() -> Self {
        Self { classes: [[Sums::default(); CLASSES]; 2], level: 0.0 }
    }
}

/// The class of a score in sixteenths.
fn class(score: f32) -> usize {
    let nth = PER_DOUBLING * (1.0 + score / 16.0).log2();
    plumb_units::convert::to_usize(plumb_units::convert::floor_u64(nth.into())).min(CLASSES - 1)
}

impl Outcomes {
    /// Marked extents have come to their end, over a time that leaves so much of a score.
    pub(super) fn learn(&mut self, marks: impl Iterator<Item = Mark> + Clone, keep: f32) {
        let marks = marks.filter(|mark| mark.is_marked());
        let fast = marks.clone().filter(|mark| mark.lies() == Lies::Fast);
        let mut fast: Vec<f32> = fast.map(|mark| mark.score).collect();
        if fast.is_empty() {
            return;
        }
        let middle = fast.len() / 2;
        let middle = *fast.select_nth_unstable_by(middle, f32::total_cmp).1;
        let pair = |mark: Mark| {
            let score = mark.score.abs();
            let most = MOST * score.max(middle);
            (score, (mark.won / (1.0 - keep)).min(most))
        };
        let add = |sums: (f32, f32), one: (f32, f32)| (sums.0 + one.0, sums.1 + one.1);
        let sums = marks.clone().map(pair).fold((0.0, 0.0), add);
        let level = sums.1 / sums.0;
        if !(LEVEL_MOST.recip()..=LEVEL_MOST).contains(&level) {
            return;
        }
        let alike = BUSIER_MOST.recip()..=BUSIER_MOST;
        let fade = if alike.contains(&(level / self.level)) { FADE } else { 0.0 };
        self.level = level;
        self.classes.iter_mut().flatten().flat_map(|sums| &mut sums.0).for_each(|sum| *sum *= fade);
        for mark in marks {
            let (score, won) = pair(mark);
            self.classes[mark.lies().nth()][class(score)].add(&Sums::of(score, won / level));
        }
    }
}

impl Outcomes {
    pub(super) fn save(&self, bytes: &mut Writer) {
        bytes.u32(self.level.to_bits());
        let sums = self.classes.iter().flatten().flat_map(|sums| sums.0);
        sums.for_each(|sum| bytes.u32(sum.to_bits()));
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Option<Self> {
        let mut known = Self::default();
        let sums = known.classes.iter_mut().flatten().flat_map(|sums| &mut sums.0);
        for sum in std::iter::once(&mut known.level).chain(sums) {
            *sum = f32::from_bits(from.u32()?);
            if !(0.0..=f32::MAX).contains(sum) {
                return None;
            }
        }
        Some(known)
    }
}

/// A score, and by how much what is known of it is off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outcome {
    /// In I/Os.
    pub(crate) score: f32,
    /// The square of a standard deviation.
    pub(crate) variance: f32,
    /// How many were marked that had about as much.
    alike: f32,
}

impl Outcome {
    /// Whether those that tell it had about as much, and it is not the line through others.
    pub(crate) fn is_of_its_like(&self) -> bool {
        self.alike >= FEW
    }
}

/// What is to be expected of extents by their scores.
#[derive(Debug)]
pub(crate) struct Later {
    near: [Vec<Option<Sums>>; 2],
    /// How many were marked that had about as much.
    alike: [Vec<f32>; 2],
}

impl Later {
    pub(super) fn new(known: &Outcomes) -> Self {
        let near = |classes: &[Sums; CLASSES]| (0..CLASSES).map(|nth| near(classes, nth)).collect();
        let alike =
            |classes: &[Sums; CLASSES]| (0..CLASSES).map(|nth| alike(classes, nth)).collect();
        let (near, alike) =
            (known.classes.each_ref().map(near), known.classes.each_ref().map(alike));
        Self { near, alike }
    }

    /// What became of extents that lay there and had such a score; `None` where too few did.
    pub(crate) fn of(&self, score: f32, lies: Lies) -> Option<Outcome> {
        let class = class(16.0 * score);
        let alike = self.alike[lies.nth()][class];
        let Sums([count, scores, won, squares, products, won_squares]) =
            self.near[lies.nth()][class]?;
        let (mean, mean_won) = (scores / count, won / count);
        let spread = (squares / count - mean * mean).max(0.0);
        let both = products / count - mean * mean_won;
        // How much of what one is hotter than they were lasts: at most as much as of all of it.
        let most = if mean > 0.0 { mean_won / mean } else { 0.0 };
        let slope = if spread > 0.0 { (both / spread).clamp(0.0, most) } else { 0.0 };
        let off = 16.0 * score - mean;
        let rest = (won_squares / count - mean_won * mean_won - 2.0 * slope * both
            + slope * slope * spread)
            .max(0.0);
        let far = if spread > 0.0 { off * off / spread } else { 0.0 };
        // A line through many that are cold says nothing of what is hot where nothing was before.
        if alike < FEW && off * off > FAR * FAR * spread {
            return None;
        }
        let variance = rest / count * (1.0 + far);
        let mean_won = (mean_won + slope * off).max(0.0);
        Some(Outcome { score: mean_won / 16.0, variance: variance / 256.0, alike })
    }
}

/// Those of a class together with as many above and below as are enough.
fn near(classes: &[Sums; CLASSES], nth: usize) -> Option<Sums> {
    let mut all = classes[nth];
    for off in 1..CLASSES {
        if all.0[0] >= ENOUGH {
            break;
        }
        nth.checked_sub(off).iter().for_each(|below| all.add(&classes[*below]));
        classes.get(nth + off).iter().for_each(|above| all.add(above));
    }
    (all.0[0] >= LEAST).then_some(all)
}

/// Those of a class and of the ones within a doubling either way.
fn alike(classes: &[Sums; CLASSES], nth: usize) -> f32 {
    let within = nth.saturating_sub(WITHIN)..(nth + WITHIN + 1).min(CLASSES);
    classes[within].iter().map(|sums| sums.0[0]).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{HeatMap, HeatSettings, HostIoKind};
    use super::*;
    use crate::random::Random;

    const EXTENTS: u32 = 4000;

    /// Ten days of a map with a plan each day, a tenth of it on the Performance tier, and what a law makes of extents and hours: I/Os of each.
    fn after(mut law: impl FnMut(u32, u64, &mut Random) -> u64) -> HeatMap {
        let mut map = HeatMap::new(HeatSettings::new(EXTENTS));
        let mut random = Random::new(3);
        for hour in 0..240 {
            map.advance(hour);
            if hour > 0 && hour % 24 == 0 {
                map.begin_window_of(|extent| Some(extent % 10 == 0));
            }
            for extent in 0..EXTENTS {
                let count = law(extent, hour, &mut random);
                map.record_many(extent, HostIoKind::Read, count);
            }
        }
        map.advance(240);
        map
    }

    fn both(map: &HeatMap, hot: f32, cold: f32) -> [Outcome; 2] {
        let forecast = map.forecast(|extent| extent % 10 == 0);
        let of = |score, lies| forecast.later().of(score, lies).expect("ten days of them");
        [of(hot, Lies::Slow), of(cold, Lies::Fast)]
    }

    /// Sessions of 64 I/Os in four hours, one a day: what looks three times as hot as the other had three of them, and the next comes to either.
    #[test]
    fn what_came_in_sessions_does_not_last() {
        let mut until = vec![0; 4000];
        let map = after(|extent, hour, random| {
            let until = &mut until[plumb_units::convert::index(extent)];
            if random.one_in(24) {
                *until = hour + 4;
            }
            if hour < *until { 16 } else { 0 }
        });
        let [hot, cold] = both(&map, 200.0, 40.0);
        let off = 3.0 * (hot.variance + cold.variance).sqrt();
        assert!((hot.score - cold.score).abs() < off.max(20.0), "{hot:?} {cold:?}");
        assert!(off < 60.0, "{hot:?} {cold:?}");
    }

    /// Where some are hotter than others they are so later on, by as much.
    #[test]
    fn what_is_hot_for_good_lasts() {
        let map = after(|extent, _, random| {
            let mean = if extent % 20 < 10 { 2 } else { 12 };
            (0..mean).map(|_| u64::from(random.one_in(2))).sum()
        });
        // I/Os of a day and a half: 35 and 208.
        let [hot, cold] = both(&map, 205.0, 35.0);
        let off = 3.0 * (hot.variance + cold.variance).sqrt();
        assert!(
            (140.0..200.0).contains(&(hot.score - cold.score)) && off < 30.0,
            "{hot:?} {cold:?}"
        );
    }

    /// A line through many cold ones goes on to where nobody was: a load that begins is no extent that had luck.
    #[test]
    fn of_what_is_unlike_any_nothing_is_known() {
        let cold = |nth: u8| Mark { score: -16.0 - f32::from(nth % 5), won: 9.0 };
        let hot = |nth: u8| Mark { score: -1600.0 - f32::from(nth), won: 810.0 };
        let fast = std::iter::once(Mark { score: 1600.0, won: 800.0 });
        let slow = |hot_ones: u8| {
            let mut known = Outcomes::default();
            known.learn((0..=255).map(cold).chain((0..hot_ones).map(hot)).chain(fast.clone()), 0.5);
            let later = Later::new(&known);
            [1.1, 100.0].map(|score| later.of(score, Lies::Slow))
        };
        let [cold, none] = slow(0);
        assert!(cold.is_some_and(|cold| cold.is_of_its_like()) && none.is_none());
        let [_, few] = slow(15);
        let [_, many] = slow(16);
        assert!(few.is_none_or(|few| !few.is_of_its_like()), "{few:?}");
        let many = many.expect("many were as hot");
        assert!(many.is_of_its_like() && many.score > 90.0, "{many:?}");
    }

    #[test]
    fn of_few_nothing_is_known() {
        let marks = |count: usize| std::iter::repeat_n(Mark { score: -160.0, won: 80.0 }, count);
        let fast = std::iter::once(Mark { score: 160.0, won: 80.0 });
        let mut known = Outcomes::default();
        known.learn(marks(47).chain(fast.clone()), 0.5);
        assert_eq!(Later::new(&known).of(10.0, Lies::Slow), None);
        let mut known = Outcomes::default();
        known.learn(marks(48).chain(fast).chain([Mark::NONE]), 0.5);
        let later = Later::new(&known);
        assert_eq!(
            later.of(10.0, Lies::Slow),
            Some(Outcome { score: 10.0, variance: 0.0, alike: 48.0 })
        );
        assert_eq!(later.of(10.0, Lies::Fast), None);
        // Nobody lies on the tier, or all were asleep.
        let mut none = Outcomes::default();
        none.learn(marks(100), 0.5);
        none.learn([Mark { score: 160.0, won: 0.0 }; 100].into_iter(), 0.5);
        assert_eq!(none, Outcomes::default());
    }
}
