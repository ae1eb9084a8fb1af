//! When the Performance tier will be full.

/// Samples of the last so many seconds tell the present rate.
const PRESENT_S: u64 = 24 * 3600;
/// They must be so many seconds apart at least.
const SPAN_S: u64 = 600;

/// How full a Performance tier was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// In seconds.
    pub at_s: u64,
    /// Extents in use.
    pub used: u64,
    /// Extents that moves had brought by then, less those that they had taken, since some beginning: they are no data that comes.
    pub brought: i64,
}

impl Sample {
    /// Extents that data took since an earlier one.
    fn gained(&self, before: &Self) -> f64 {
        let used = self.used as f64 - before.used as f64;
        used - self.brought.saturating_sub(before.brought) as f64
    }

    /// What moves had brought until now, if this is what was kept last and the tier holds so many extents now. Of a program that was killed is not
    /// known what it moved since; all that came or went meanwhile counts as moved. One that ended by itself kept what there was.
    #[must_use]
    pub fn brought_until(&self, used: u64) -> i64 {
        let more = i128::from(used) - i128::from(self.used);
        self.brought.saturating_add(i64::try_from(more).unwrap_or(0))
    }
}

/// How a Performance tier fills.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Filling {
    /// Extents in use.
    pub used: u64,
    /// Extents that data may use.
    pub slots: u64,
    /// Extents that new data takes of it per hour, since the last sample that is ten minutes old or older, or over the last day, whichever is
    /// more; `None` while samples are too near to each other.
    pub per_hour: Option<f64>,
    /// Whether that is the mean of the last day, for it fills more slowly at present, or not at all.
    pub by_day: bool,
    /// Seconds of which that is the mean: of a pool that is younger than a day, as long as there are samples.
    pub over_s: Option<u64>,
    /// When that was counted, in seconds since 1970.
    pub at_s: u64,
}

impl Filling {
    /// By samples, the oldest first; `None` without any.
    #[must_use]
    pub fn of(samples: &[Sample], slots: u64) -> Option<Self> {
        let newest = samples.last()?;
        let (now, used) = (newest.at_s, newest.used);
        let span = |of: &Sample| now.saturating_sub(of.at_s);
        let first = samples.iter().find(|one| span(one) <= PRESENT_S);
        let last = samples.iter().rev().find(|one| span(one) >= SPAN_S);
        let rate = |of: Option<&Sample>| {
            of.filter(|one| span(one) >= SPAN_S)
                .map(|one| (newest.gained(one) / (span(one) as f64 / 3600.0), span(one)))
        };
        // After a quiet night the day's mean says nothing of what fills it now.
        let (day, present) = (rate(first), rate(last.filter(|one| span(one) <= PRESENT_S)));
        let by_day = day.zip(present).is_some_and(|(day, present)| day.0 > present.0);
        let found = if by_day { day } else { present.or(day) };
        let (per_hour, over_s) = (found.map(|rate| rate.0), found.map(|rate| rate.1));
        Some(Self { used, slots, per_hour, by_day, over_s, at_s: now })
    }

    /// Whether no extent is left.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.used >= self.slots
    }

    /// Hours until it is full at that rate: none when it is full, whatever the rate; `None` if it does not fill, or the rate
    /// is not known.
    #[must_use]
    pub fn hours_left(&self) -> Option<f64> {
        if self.is_full() {
            return Some(0.0);
        }
        let left = (self.slots - self.used) as f64;
        self.per_hour.filter(|rate| *rate > 0.0).map(|rate| left / rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_day() {
        let at = |at_s: u64, used: u64| Sample { at_s, used, brought: 0 };
        let hours = |list: &[(u64, u64)]| -> Vec<Sample> {
            list.iter().map(|(hour, used)| at(hour * 3600, *used)).collect()
        };
        let of = |list: &[(u64, u64)]| Filling::of(&hours(list), 100).expect("samples");
        // 50 a day before, 10 in the last 20 hours.
        let found = of(&[(0, 0), (24, 50), (30, 60), (50, 70)]);
        assert_eq!((found.per_hour, found.hours_left()), (Some(0.5), Some(60.0)));
        // A quiet day, and then 8 in an hour.
        let found = of(&[(0, 40), (22, 40), (23, 48)]);
        assert_eq!((found.hours_left(), found.by_day), (Some(6.5), false));
        // It filled all day, and does not this hour: the day counts.
        let found = of(&[(0, 40), (20, 80), (21, 80)]);
        assert_eq!((found.per_hour, found.by_day), (Some(40.0 / 21.0), true));
        assert_eq!(found.over_s, Some(21 * 3600), "it is not older");
        assert_eq!(of(&[(0, 70), (5, 60)]).hours_left(), None, "it empties");
        assert_eq!(of(&[(0, 60), (5, 60)]).hours_left(), None, "it stands still");
        let full = of(&[(0, 90), (5, 100)]);
        assert_eq!((full.is_full(), full.hours_left()), (true, Some(0.0)));
        let full = of(&[(0, 100)]);
        assert_eq!((full.per_hour, full.hours_left()), (None, Some(0.0)), "at whatever rate");
        assert_eq!(Filling::of(&[], 100), None);
        let near = Filling::of(&[at(0, 10), at(599, 90)], 100).expect("samples");
        assert_eq!((near.per_hour, near.hours_left()), (None, None));
        assert!(
            Filling::of(&[at(0, 10), at(600, 90)], 100)
                .is_some_and(|found| found.per_hour == Some(480.0))
        );
    }

    /// What moves bring up is no data that comes, and what they take down leaves it room, not a rate.
    #[test]
    fn extents_that_move_are_no_rate() {
        let rate = |list: [(u64, u64, i64); 3]| {
            let sample = |(hour, used, brought)| Sample { at_s: 3600 * hour, used, brought };
            let found = Filling::of(&list.map(sample), 100).expect("samples");
            (found.per_hour, found.hours_left())
        };
        assert_eq!(rate([(0, 40, 0), (9, 40, 0), (10, 60, 20)]), (Some(0.0), None));
        assert_eq!(rate([(0, 40, 7), (9, 40, 7), (10, 30, -13)]), (Some(10.0), Some(7.0)));
    }

    /// A program that brings 20 extents up and is killed before that is kept: they are no data that comes, whoever counts next.
    #[test]
    fn what_moves_brought_before_a_kill_is_no_data() {
        let kept = Sample { at_s: 0, used: 100, brought: 7 };
        for (used, comes) in [(120, 0), (100, 0), (90, 0), (120, 6)] {
            let brought = kept.brought_until(used);
            let later = Sample { at_s: 3600, used: used + comes, brought };
            let found = Filling::of(&[kept, later], 1000).expect("samples");
            assert_eq!(found.per_hour, Some(comes as f64), "{used}, {comes}");
        }
        assert_eq!(kept.brought_until(100), 7, "one that ended by itself");
    }
}
