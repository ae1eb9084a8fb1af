//! How much the score of each extent may vary by chance, as a plan is told.
//!
//! Extents of one virtual disk may get their I/Os in different ways: a minority in bunches, the others one by one. An extent that is followed has a figure of
//! its own. Of the others is known how hot they are and on which tier they lie, and those that are followed and look like them tell how much of that may be
//! chance: among the hottest below are those that just had a bunch, however few of all extents have any.

use super::dispersion::{Dispersion, MOST, MOST_OF_SURE};

/// What one followed extent tells, in sixteenths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) extent: u32,
    pub(super) score: f32,
    /// Squares of what its hours are off by, as far as they are believed, and what they won.
    pub(super) off: f32,
    pub(super) won: f32,
    /// Its load looks as if it had ended or begun, if chance is that of single I/Os.
    pub(super) looks_changed: bool,
}

/// So many above and below tell about an extent that is not followed.
const NEAR: usize = 32;
/// They have won so much together at least, in sixteenths. Little is enough: what both sums are counts half after some hours, over each
/// other they stay what they were.
const ENOUGH: f32 = 16.0;
/// What those tell that look alike counts as so many sixteenths of an extent's own.
const ALIKE: f32 = 8.0 * 16.0;

/// Where an extent lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lies {
    Fast,
    Slow,
}

impl Lies {
    pub(crate) fn on(is_fast: bool) -> Self {
        if is_fast { Self::Fast } else { Self::Slow }
    }

    pub(super) fn nth(self) -> usize {
        match self {
            Self::Fast => 0,
            Self::Slow => 1,
        }
    }
}

/// A score, and how many times as much as single I/Os that of an extent like it varies.
type Class = (f32, f32);

/// What hours have told of an extent counts half after half a day and its score after a day, so of a load that goes on half of the score has been told of. With less than this, most of it
/// came in the last hours.
const NEW: f32 = 0.25;
/// So many are followed that have about as much as an extent, or those on the other tier tell of it as well.
const ALIKE_LEAST: usize = 16;

/// The figures of a map's extents.
#[derive(Debug)]
pub(crate) struct Chances {
    /// By what is known of those that are followed for what they have.
    near: Figures,
    /// The same with those that were cold when they began to be followed, those of the other tier, and bunches of any size.
    wide: Figures,
}

/// The figures of a map's extents, by some of those that are followed.
#[derive(Debug)]
struct Figures {
    /// No extent's is less.
    least: f32,
    /// Nor more.
    most: f32,
    /// That of extents of which nothing else is known.
    usual: f32,
    /// Of extents that are followed, by number.
    own: Vec<(u32, f32)>,
    /// Of extents on the Performance tier and elsewhere, by score.
    alike: [Vec<Class>; 2],
    /// Of all of them, where few on a tier have about as much.
    anywhere: Vec<Class>,
    /// Of extents whose load looks as if it had ended or begun.
    changed: f32,
}

impl Chances {
    /// By what those tell that are followed, by number, without those that were cold and with them; `is_fast`: whether one lies on the Performance tier.
    pub(super) fn new(
        found: &Dispersion,
        (told, with_sleepers): (&[Told], &[Told]),
        is_fast: impl Fn(u32) -> bool,
    ) -> Self {
        let near =
            Figures::new((found.least(), found.believed()), (told, MOST), Vec::new(), &is_fast);
        let anywhere = classes(&mut with_sleepers.to_vec(), found.believed());
        let wide = Figures::new(
            (1.0, found.believed()),
            (with_sleepers, MOST_OF_SURE),
            anywhere,
            &is_fast,
        );
        Self { near, wide }
    }

    /// The figure of an extent with such a score.
    pub(crate) fn of(&self, extent: u32, score: f32, lies: Lies) -> f32 {
        self.near.of(extent, score, lies)
    }

    /// The same by all that speaks for chance: what is to be sure has to be so by this.
    pub(crate) fn at_most(&self, extent: u32, score: f32, lies: Lies) -> f32 {
        self.near.of(extent, score, lies).max(self.wide.of(extent, score, lies))
    }

    /// The figure by hours alone, however large bunches are.
    pub(crate) fn by_hours(&self, extent: u32, score: f32, lies: Lies) -> f32 {
        self.wide.of(extent, score, lies)
    }

    /// The figure of an extent whose load looks as if it had ended or begun.
    pub(super) fn of_changed(&self, extent: u32) -> f32 {
        let own = self.near.own(extent);
        own.unwrap_or(self.near.changed)
    }

    /// No extent has less.
    pub(crate) fn least(&self) -> f32 {
        self.near.least
    }
}

impl Figures {
    fn new(
        (least, usual): (f32, f32),
        (told, most): (&[Told], f32),
        anywhere: Vec<Class>,
        is_fast: impl Fn(u32) -> bool,
    ) -> Self {
        let lies: Vec<Lies> = told.iter().map(|one| Lies::on(is_fast(one.extent))).collect();
        let mut tiers = [Vec::new(), Vec::new()];
        for (one, lies) in told.iter().zip(&lies) {
            tiers[lies.nth()].push(*one);
        }
        let alike = tiers.each_mut().map(|tier| classes(tier, usual));
        let changed = told.iter().filter(|one| one.looks_changed);
        let sums = changed.fold((0.0, 0.0), |sums, one| (sums.0 + one.off, sums.1 + one.won));
        let changed = if sums.1 >= ENOUGH { sums.0 / sums.1 / 16.0 } else { usual };
        let changed = changed.clamp(least, most);
        let mut figures = Self { least, most, usual, own: Vec::new(), alike, anywhere, changed };
        let own = |(one, lies): (&Told, &Lies)| {
            let like = match one.looks_changed {
                true => changed,
                false => figures.like(one.score / 16.0, *lies),
            };
            let own = (one.off + like * 16.0 * ALIKE) / (one.won + ALIKE) / 16.0;
            // Most of what it has is so new that no hour after it has told of it.
            let is_new = !figures.anywhere.is_empty() && one.won < NEW * one.score;
            let own = if is_new { own.max(like) } else { own };
            (one.extent, own.clamp(least, most))
        };
        figures.own = told.iter().zip(&lies).map(own).collect();
        figures
    }

    fn of(&self, extent: u32, score: f32, lies: Lies) -> f32 {
        self.own(extent).unwrap_or_else(|| self.like(score, lies))
    }

    fn own(&self, extent: u32) -> Option<f32> {
        let nth = self.own.binary_search_by_key(&extent, |own| own.0).ok()?;
        Some(self.own[nth].1)
    }

    fn like(&self, score: f32, lies: Lies) -> f32 {
        let classes = &self.alike[lies.nth()];
        let to = |score: f32| classes.partition_point(|class| class.0 < score);
        let are_few = to(2.0 * score) - to(score / 2.0) < ALIKE_LEAST;
        let classes = if are_few && !self.anywhere.is_empty() { &self.anywhere } else { classes };
        let above = classes.partition_point(|class| class.0 < score);
        let found = classes.get(above).or(classes.last()).map_or(self.usual, |class| class.1);
        found.clamp(self.least, self.most)
    }
}

/// What extents tell of those like them, by score.
fn classes(told: &mut [Told], usual: f32) -> Vec<Class> {
    told.sort_unstable_by(|one, other| one.score.total_cmp(&other.score));
    let near = |nth: usize| {
        let near = told[nth.saturating_sub(NEAR)..(nth + NEAR + 1).min(told.len())].iter();
        let (off, won) = near.fold((0.0, 0.0), |sums, one| (sums.0 + one.off, sums.1 + one.won));
        (won >= ENOUGH).then_some(off / won / 16.0)
    };
    let class = |(nth, one): (usize, &Told)| (one.score / 16.0, near(nth).unwrap_or(usual));
    told.iter().enumerate().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{HeatMap, HeatSettings, HostIoKind};
    use super::*;
    use crate::random::Random;

    /// Days of a map of so many extents, every fifth of which gets its 64 I/Os a day 64 at a time, the others one by one.
    fn mixed(days: u64, extents: u32) -> HeatMap {
        let mut map = HeatMap::new(HeatSettings::new(extents));
        let mut random = Random::new(5);
        for hour in 0..24 * days {
            if hour > 0 && hour % 24 == 0 {
                map.begin_window();
            }
            map.advance(hour);
            for extent in 0..extents {
                let count = match extent % 5 {
                    0 => 64 * u64::from(random.one_in(24)),
                    _ => (0..8).map(|_| u64::from(random.one_in(3))).sum(),
                };
                map.record_many(extent, HostIoKind::Read, count);
            }
        }
        map.advance(24 * days);
        map
    }

    /// Of the extents with a score of so much, those that get bunches and the others: the mean of their figures.
    fn means(map: &HeatMap, scores: std::ops::Range<f32>) -> [f32; 2] {
        let forecast = map.forecast(|_| false);
        let mut sums = [(0.0, 0.0); 2];
        for (extent, heat) in map.touched().filter(|one| scores.contains(&one.1.score)) {
            let (sum, count) = &mut sums[usize::from(extent % 5 > 0)];
            *sum += forecast.chances().of(extent, heat.score, Lies::Slow);
            *count += 1.0;
        }
        sums.map(|(sum, count)| sum / count)
    }

    #[test]
    fn extents_that_are_followed_have_figures_of_their_own() {
        let map = mixed(6, 4000);
        assert!(map.dispersion() < 2.0, "the majority's: {}", map.dispersion());
        let [bunched, others] = means(&map, 0.0..1000.0);
        assert!((30.0..70.0).contains(&bunched) && others < 4.0, "{bunched}, {others}");
    }

    /// Of a third of them something is known; they tell that who is hot of late had bunches, and who is as hot as most did not.
    #[test]
    fn who_is_not_followed_is_like_those_that_are_as_hot() {
        let map = mixed(6, 12_000);
        let [hot, _] = means(&map, 200.0..1000.0);
        let [_, usual] = means(&map, 80.0..100.0);
        assert!((40.0..70.0).contains(&hot) && usual < 8.0, "{hot}, {usual}");
    }

    /// Half of the extents are cold but for a bunch of 500 in sixteen days, the others get their I/Os one by one.
    fn woken(days: u64) -> HeatMap {
        let mut map = HeatMap::new(HeatSettings::new(8000));
        let mut random = Random::new(7);
        for hour in 0..24 * days {
            map.advance(hour);
            if hour > 0 && hour % 6 == 0 {
                map.begin_window();
            }
            for extent in 0..8000 {
                let count = match extent % 2 {
                    0 => 500 * u64::from(random.one_in(384)),
                    _ => (0..8).map(|_| u64::from(random.one_in(3))).sum(),
                };
                map.record_many(extent, HostIoKind::Read, count);
            }
        }
        map.advance(24 * days);
        map
    }

    /// Of the extents that had one bunch, the means of both figures.
    fn of_woken(map: &HeatMap) -> [f32; 2] {
        let forecast = map.forecast(|_| false);
        let is_woken = |one: &(u32, _)| one.0 % 2 == 0;
        let (mut sums, mut count) = ([0.0; 2], 0.0);
        for (extent, heat) in map.touched().filter(is_woken) {
            let (chances, score) = (forecast.chances(), heat.score);
            sums[0] += chances.of(extent, score, Lies::Slow);
            sums[1] += chances.at_most(extent, score, Lies::Slow);
            count += 1.0;
        }
        assert!(count > 300.0, "{count}");
        sums.map(|sum| sum / count)
    }

    /// Who is followed for what it had was seen by nobody when it had it; those that were followed when they were cold tell that it was a bunch.
    #[test]
    fn what_wakes_an_extent_is_seen() {
        let map = woken(3);
        let [had, woke] = of_woken(&map);
        assert!(had < 200.0 && (300.0..600.0).contains(&woke), "{had}, {woke}");
        // It is saved.
        let restored = HeatMap::restore(&map.save(9), 9, HeatSettings::new(8000));
        let restored = restored.expect("a snapshot").map;
        assert_eq!(restored.witnesses, map.witnesses);
        assert_eq!(of_woken(&restored), [had, woke]);
    }

    /// On a map's first day, too, though its window is compared with none.
    #[test]
    fn what_wakes_an_extent_is_seen_on_the_first_day() {
        let mut map = HeatMap::new(HeatSettings::new(4000));
        let mut random = Random::new(7);
        for hour in 0..24 {
            map.advance(hour);
            for extent in 0..4000 {
                let count = match extent % 2 {
                    0 => 500 * u64::from(random.one_in(240)),
                    _ => (0..8).map(|_| u64::from(random.one_in(3))).sum(),
                };
                map.record_many(extent, HostIoKind::Read, count);
            }
        }
        map.advance(24);
        let forecast = map.forecast(|_| false);
        let mean = |nth: u32| {
            let all = map.touched().filter(|one| one.0 % 2 == nth);
            let figures = all
                .map(|(extent, heat)| forecast.chances().by_hours(extent, heat.score, Lies::Slow));
            let figures: Vec<f32> = figures.collect();
            (figures.iter().sum::<f32>() / figures.len() as f32, figures.len())
        };
        let ((bunched, count), (single, _)) = (mean(0), mean(1));
        assert!((100..300).contains(&count), "{count}");
        assert!((350.0..650.0).contains(&bunched) && single < 2.0, "{bunched}, {single}");
    }

    /// Where all that is hot on a tier got there lately, those on the other tell of it.
    #[test]
    fn where_few_on_a_tier_are_as_hot_those_on_the_other_tell_of_it() {
        let map = woken(3);
        let hot = |extent: u32| map.extent(extent).score > 100.0;
        let told = map.forecast(hot);
        let alone = told.chances().at_most(u32::MAX, 400.0, Lies::Slow);
        assert!((300.0..600.0).contains(&alone), "{alone}");
        assert!(told.chances().of(u32::MAX, 400.0, Lies::Slow) < 10.0);
    }

    #[test]
    fn where_nobody_is_followed_all_are_alike() {
        let mut map = HeatMap::new(HeatSettings::new(100));
        map.record_many(7, HostIoKind::Read, 90);
        assert_eq!(map.forecast(|_| true).chances().of(7, 90.0, Lies::Fast), 1.0);
    }
}
