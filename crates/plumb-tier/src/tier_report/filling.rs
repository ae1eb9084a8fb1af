//! When the Performance tier will be full, and what to expect then.

use crate::optimizer::Measured;

/// Samples of the last so many seconds tell the present rate.
const PRESENT_S: u64 = 24 * 3600;
/// They must be so many seconds apart at least.
const SPAN_S: u64 = 600;
/// Random 4 KiB I/Os per second of a rotating disk with 10,000 turns a minute (spec 19.1).
const DISK_IOPS: u64 = 412;

/// How a Performance tier fills.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Filling {
    /// Extents in use.
    pub used: u64,
    /// Extents that data may use.
    pub slots: u64,
    /// Extents that it gains per hour, since the last sample that is ten minutes old or older, or over the last day, whichever is
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
    /// By samples of when (in seconds) and how many extents were in use, the oldest first; `None` without any.
    #[must_use]
    pub fn of(samples: &[(u64, u64)], slots: u64) -> Option<Self> {
        let (now, used) = *samples.last()?;
        let span = |at: u64| now.saturating_sub(at);
        let first = samples.iter().find(|(at, _)| span(*at) <= PRESENT_S);
        let last = samples.iter().rev().find(|(at, _)| span(*at) >= SPAN_S);
        let rate = |of: Option<&(u64, u64)>| {
            of.filter(|(at, _)| span(*at) >= SPAN_S).map(|(at, before)| {
                let gained = used as f64 - *before as f64;
                (gained / (span(*at) as f64 / 3600.0), span(*at))
            })
        };
        // After a quiet night the day's mean says nothing of what fills it now.
        let (day, present) = (rate(first), rate(last.filter(|(at, _)| span(*at) <= PRESENT_S)));
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

/// Random 4 KiB writes per second to expect of a Capacity tier of so many disks, with so many copies, and whether they were
/// measured: as they served random I/Os so far, or as the reference disks would.
#[must_use]
pub fn expected_iops(measured: &Measured, disks: u64, copies: u8) -> (u64, bool) {
    match measured.capacity_iops(disks, copies) {
        Some(iops) => (iops, true),
        None => (disks * DISK_IOPS / u64::from(copies.max(1)), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::TierMeasure;

    #[test]
    fn the_rate_is_that_of_the_last_day() {
        let hours = |list: &[(u64, u64)]| -> Vec<(u64, u64)> {
            list.iter().map(|(hour, used)| (hour * 3600, *used)).collect()
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
        let near = Filling::of(&[(0, 10), (599, 90)], 100).expect("samples");
        assert_eq!((near.per_hour, near.hours_left()), (None, None));
        assert!(
            Filling::of(&[(0, 10), (600, 90)], 100)
                .is_some_and(|found| found.per_hour == Some(480.0))
        );
    }

    #[test]
    fn what_to_expect_is_as_the_disks_were_measured_or_the_reference() {
        let mut measured = Measured::default();
        let of = |measured: &Measured| [1, 2].map(|copies| expected_iops(measured, 4, copies));
        assert_eq!(of(&measured), [(1648, false), (824, false)]);
        measured.capacity = TierMeasure { ios: 999, io_ns: 999 * 10_000_000, ..measured.capacity };
        assert_eq!(of(&measured), [(1648, false), (824, false)], "too few");
        measured.capacity = TierMeasure { ios: 1000, io_ns: 10_000_000_000, ..measured.capacity };
        assert_eq!(of(&measured), [(400, true), (200, true)]);
    }
}
