//! Extents that are followed from when they were cold.
//!
//! Who is followed for what it has begins to be so at the end of the window in which it had something: the bunch that made it hot is over by then, and nobody saw
//! how long it took. So of extents that get a bunch in some days nothing would be known. Of those that lie cold some thousand are followed as well, chosen by
//! their numbers, and go on to be when they are no longer: what wakes them is seen by the hour.

use super::bunches::{Hours, UNKNOWN};
use crate::format::bytes::{Reader, Writer};

/// Extents that are followed so.
pub(super) const SLEEPERS: usize = 4096;
/// What each takes in a snapshot.
#[cfg(test)]
pub(super) const SAVED: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Sleeper {
    extent: u32,
    hours: Hours,
}

/// Those that are followed so, by extent.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Sleepers(Vec<Sleeper>);

impl Sleepers {
    /// What is known by the hour of an extent that is followed so.
    pub(super) fn get(&self, extent: u32) -> Option<&Hours> {
        let nth = self.0.binary_search_by_key(&extent, |one| one.extent).ok()?;
        Some(&self.0[nth].hours)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Hours)> {
        self.0.iter().map(|one| (one.extent, &one.hours))
    }

    /// Extents, with where they are strewn to, that had something in the hour that ends or before it; of those that are not followed yet each won so much in the hours before.
    pub(super) fn wake(
        &mut self,
        touched: impl Iterator<Item = (u32, u32)>,
        before: f32,
        strewn: impl Fn(u32) -> u32,
    ) {
        let mut noted = Noted::default();
        for one in &self.0 {
            noted.note((strewn(one.extent), one.extent), Some(&one.hours), 0.0);
        }
        let woken = Hours { at: 0.0, before: [before; 2], ..Hours::new() };
        for (place, extent) in touched.filter(|(_, extent)| self.get(*extent).is_none()) {
            noted.note((place, extent), Some(&woken), 0.0);
        }
        *self = noted.sleepers();
    }

    /// What all of them won in three hours, of which one has ended with these scores.
    pub(super) fn levels(&self, score: impl Fn(u32) -> f32) -> [f32; 3] {
        let mut levels = [0.0; 3];
        for one in &self.0 {
            let three = one.hours.three(score(one.extent)).unwrap_or_default();
            levels.iter_mut().zip(three).for_each(|(level, won)| *level += won);
        }
        levels
    }

    /// The hour has ended, of which so much of a score is left at the beginning of the next; `levels` are what all won in three of them. `follows`: the next one
    /// follows it.
    pub(super) fn end_hour(
        &mut self,
        (keep, follows): (f32, bool),
        levels: Option<[f32; 3]>,
        score: impl Fn(u32) -> f32,
    ) {
        for one in &mut self.0 {
            let now = score(one.extent);
            one.hours.end(now, now * keep, levels);
            if !follows {
                one.hours.forget_before();
            }
        }
    }

    pub(super) fn save(&self, bytes: &mut Writer) {
        bytes.u32(u32::try_from(self.0.len()).unwrap_or(0));
        for one in &self.0 {
            bytes.u32(one.extent);
            let Hours { at, before: [last, first], off, won } = one.hours;
            [at, last, first, off, won].iter().for_each(|value| bytes.u32(value.to_bits()));
        }
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Option<Self> {
        let mut list: Vec<Sleeper> = Vec::new();
        for _ in 0..from.u32()? {
            let extent = from.u32()?;
            let mut next = || from.u32().map(f32::from_bits);
            let (at, before) = (next()?, [next()?, next()?]);
            let hours = Hours { at, before, off: next()?, won: next()? };
            let follows = list.last().is_none_or(|last| last.extent < extent);
            if !follows || !hours.is_sound() || list.len() == SLEEPERS {
                return None;
            }
            list.push(Sleeper { extent, hours });
        }
        Some(Self(list))
    }
}

/// Who is followed so from a new window on: those whose numbers are strewn lowest.
#[derive(Debug, Default)]
pub(super) struct Noted {
    found: Vec<(u32, Sleeper)>,
}

impl Noted {
    /// An extent that is cold, or was followed so before; it is strewn to that place, and its score was set to one that is so much larger.
    pub(super) fn note(&mut self, (place, extent): (u32, u32), known: Option<&Hours>, more: f32) {
        let cold = Hours { at: 0.0, before: [UNKNOWN; 2], ..Hours::new() };
        let hours = known.map_or(cold, |hours| hours.moved_by(more));
        self.found.push((place, Sleeper { extent, hours }));
        if self.found.len() >= 2 * SLEEPERS {
            self.keep_lowest();
        }
    }

    fn keep_lowest(&mut self) {
        if self.found.len() > SLEEPERS {
            self.found.select_nth_unstable_by_key(SLEEPERS - 1, |one| one.0);
            self.found.truncate(SLEEPERS);
        }
    }

    pub(super) fn sleepers(mut self) -> Sleepers {
        self.keep_lowest();
        let mut list: Vec<Sleeper> = self.found.into_iter().map(|one| one.1).collect();
        list.sort_unstable_by_key(|one| one.extent);
        Sleepers(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That many, cold, by their numbers.
    fn followed(count: u32) -> Sleepers {
        let mut noted = Noted::default();
        (0..count).for_each(|extent| noted.note((extent, extent), None, 0.0));
        noted.sleepers()
    }

    fn read(sleepers: &Sleepers) -> Option<Sleepers> {
        let mut out = Writer(Vec::new());
        sleepers.save(&mut out);
        Sleepers::restore(&mut Reader(&out.0))
    }

    /// The hour that comes after an idle one is no neighbour of the one before: what it won says nothing of bunches.
    #[test]
    fn hours_that_do_not_follow_are_no_neighbours() {
        let hours = |follows| {
            let mut sleepers = followed(1);
            for score in [160.0, 320.0] {
                sleepers.end_hour((1.0, follows), None, |_| score);
            }
            sleepers.get(0).expect("it is followed").before
        };
        assert_eq!((hours(true), hours(false)), ([160.0, 160.0], [UNKNOWN; 2]));
    }

    /// A window that has shown a load to have begun sets the score to a larger one, which nobody won in that hour.
    #[test]
    fn a_score_that_was_set_is_not_won() {
        let mut noted = Noted::default();
        let known = Hours { at: 32.0, ..Hours::new() };
        noted.note((0, 7), Some(&known), 640.0);
        let mut sleepers = noted.sleepers();
        sleepers.end_hour((1.0, true), None, |_| 32.0 + 640.0 + 48.0);
        assert_eq!(sleepers.get(7).expect("it is followed").before, [48.0, UNKNOWN]);
    }

    /// Who has something for the first time is followed from that hour on; who is followed already goes on to be as it was.
    #[test]
    fn who_wakes_had_nothing_before() {
        let place = |extent: u32| 7 - extent;
        let mut sleepers = Sleepers::default();
        sleepers.wake([(place(3), 3)].into_iter(), UNKNOWN, place);
        sleepers.end_hour((1.0, true), None, |_| 80.0);
        sleepers.wake([(place(3), 3), (place(5), 5)].into_iter(), 0.0, place);
        sleepers.end_hour((1.0, true), None, |_| 96.0);
        let before = |extent| sleepers.get(extent).map(|hours| hours.before);
        assert_eq!(before(3), Some([16.0, 80.0]));
        assert_eq!(before(5), Some([96.0, 0.0]));
        // All of it was won in the hour that has ended, between two in which nothing was.
        assert_eq!(sleepers.levels(|_| 96.0), [80.0, 16.0 + 96.0, 0.0]);
    }

    /// Of more those that are strewn lowest are followed, and a file with more than there can be is none.
    #[test]
    fn so_many_are_followed_and_no_more_are_read() {
        let most = u32::try_from(SLEEPERS).expect("few");
        let all = followed(3 * most);
        let extents: Vec<u32> = all.iter().map(|(extent, _)| extent).collect();
        assert_eq!(extents, (0..most).collect::<Vec<u32>>());
        assert_eq!(read(&all), Some(all.clone()));
        let mut more = all;
        more.0.push(Sleeper { extent: most, ..more.0[0] });
        assert_eq!(read(&more), None);
    }
}
