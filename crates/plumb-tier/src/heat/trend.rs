//! What an extent's score is going to be, where the window since the last optimization shows that its load is another one now.
//!
//! A score is halved in a day, so an extent that was hot for long goes on to look hot for a day or two after it has cooled. The
//! window has no such memory. It is believed alone where it differs from what was before by more than chance, and by
//! much more than most extents do: where all of them vary from day to day, the mean of several days tells more.
//!
//! What a window won is the score now less what is left of the one before, which is known within a sixteenth. Of a short window that is
//! less than what is not known: so it lies between two bounds, and no extent's score wins more than the window's I/Os, which are
//! counted. Only what is off by either bound has changed.

use std::sync::LazyLock;

use super::counter::FloatingCounter;
use super::page::Entry;

/// A window is long enough to be compared when no more of the score before is left than this: with the usual half-life
/// after two hours.
pub(super) const LEFT_MOST: f32 = 0.95;
/// A score is rounded by so much of it, by chance (HEAT-1).
const ROUNDED: f32 = 0.02;
/// What is remembered of a score is off by so much of it, and by so many sixteenths, at most.
const REMEMBERED: f32 = 1.0 / 16.0;
const REMEMBERED_LEAST: f32 = 128.0;
/// What is off by less than this factor has not changed.
const FACTOR_LEAST: f32 = 2.0;
/// Nor what is off by less than so many standard deviations, be it of extents among each other or of chance.
const DEVIATIONS: f32 = 4.0;
/// The standard deviation of a normal law over the median of what is off.
const OF_MEDIAN: f32 = 1.4826;
/// Extents whose window would have so many I/Os at least, in sixteenths, tell how much extents vary.
const ENOUGH: f32 = 256.0 * 16.0;
/// So many of them at least.
const EXTENTS_LEAST: u64 = 32;
/// Buckets to each doubling, and all of them: a factor of 16 either way.
const STEPS: f32 = 32.0;
const BUCKETS: usize = 256;

/// Scores by what an entry remembers of them.
static BEFORE: LazyLock<[f32; 256]> = LazyLock::new(|| {
    let value =
        |code: usize| FloatingCounter(u16::try_from(code << 8).unwrap_or(u16::MAX)).value() as f32;
    std::array::from_fn(value)
});

/// What an entry remembers of a score in sixteenths.
pub(super) fn remembered(score: f32) -> u8 {
    let score = FloatingCounter::nearest(score);
    u8::try_from(score.0.saturating_add(128) >> 8).unwrap_or(u8::MAX)
}

/// The score with which an entry's window began, as far as that is remembered.
pub(super) fn of_remembered(entry: Entry) -> f32 {
    BEFORE[usize::from(entry.before)]
}

/// How a window of some length compares with the time before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trend {
    /// What is left of a score after the window.
    keep: f32,
    /// What the extents in the middle won, over what they would have won if their loads had gone on as they were: 1, or more where
    /// everything has become busier.
    level: f32,
    /// The factor by which an extent has to be off that.
    factor: f32,
}

impl Trend {
    /// Of a window of so many hours, with the entries of all extents and their scores now; `None` while it is too short for the
    /// half-life, or too few extents were hot before it.
    pub(super) fn over(
        hours: u64,
        half_life: f32,
        entries: impl Iterator<Item = (Entry, f32)>,
    ) -> Option<Self> {
        let keep = (-(hours as f32) / half_life).exp2();
        if keep > LEFT_MOST {
            return None;
        }
        let (mut scores, mut counts) = (Spread::new(), Spread::new());
        for (entry, now) in entries {
            let before = of_remembered(entry);
            let usual = before * (1.0 - keep);
            if usual >= ENOUGH {
                scores.note((now - before * keep).max(1.0) / usual);
                // How much they differ is seen better where nothing is rounded.
                counts.note(counted(entry).max(1.0) / usual);
            }
        }
        let ((level, _), (_, spread)) = (scores.level_and_spread()?, counts.level_and_spread()?);
        let factor = (DEVIATIONS * OF_MEDIAN * spread).exp2().max(FACTOR_LEAST);
        Some(Self { keep, level, factor })
    }

    /// The score to expect of an extent whose score is `now`, in sixteenths, and varies by chance so many times as much as one by single I/Os. That
    /// is asked of the few only who are off by more than these are.
    pub(super) fn expected(self, entry: Entry, now: f32, dispersion: impl Fn() -> f32) -> f32 {
        let before = of_remembered(entry);
        let won = now - before * self.keep;
        let off = (before * REMEMBERED).max(REMEMBERED_LEAST) * self.keep + now * ROUNDED;
        let (least, most) = ((won - off).max(0.0), (won + off).clamp(0.0, counted(entry)));
        // What it would have won if its load had gone on as it was, beside the others: what decays.
        let usual = before * (1.0 - self.keep) * self.level;
        let is_chance = |more: f32, off: f32| {
            let varies = |dispersion: f32| DEVIATIONS * (16.0 * dispersion * more).sqrt();
            off <= varies(1.0) || off <= varies(dispersion())
        };
        let has_cooled = most * self.factor < usual && !is_chance(usual, usual - most);
        let has_warmed = least > usual * self.factor && !is_chance(least, least - usual);
        let won = match (has_cooled, has_warmed) {
            (true, _) => most,
            (_, true) => least,
            _ => return now,
        };
        // As if it had always been so, beside those that have come as far as they have.
        won * (1.0 + self.keep / (1.0 - self.keep) / self.level)
    }
}

/// The most that an extent's score won in the window, in sixteenths: every I/O that was counted as a random one.
fn counted(entry: Entry) -> f32 {
    16.0 * (entry.reads.value() as f32 + entry.writes.value() as f32)
}

/// How many extents won so many times what is usual, by logarithm.
struct Spread {
    buckets: [u64; BUCKETS],
}

impl Spread {
    fn new() -> Self {
        Self { buckets: [0; BUCKETS] }
    }

    fn note(&mut self, ratio: f32) {
        let bucket =
            plumb_units::convert::floor_u64((ratio.log2() * STEPS + 128.0).max(0.0).into());
        self.buckets[plumb_units::convert::to_usize(bucket).min(BUCKETS - 1)] += 1;
    }

    /// The ratio in the middle, and how far off it half of them are at most, in doublings; `None` of too few.
    fn level_and_spread(&self) -> Option<(f32, f32)> {
        let count: u64 = self.buckets.iter().sum();
        let half = count.div_ceil(2);
        let mut seen = 0;
        let middle = self.buckets.iter().position(|bucket| {
            seen += bucket;
            seen >= half
        });
        let middle = middle.filter(|_| count >= EXTENTS_LEAST)?;
        let within = |off: usize| -> u64 {
            let last = (middle + off).min(BUCKETS - 1);
            self.buckets[middle.saturating_sub(off)..=last].iter().sum()
        };
        let off = (0..BUCKETS).find(|off| within(*off) >= half)?;
        let steps = |steps: usize| u16::try_from(steps).map_or(f32::INFINITY, f32::from) / STEPS;
        Some(((steps(middle) - 4.0 + 0.5 / STEPS).exp2(), steps(off) + 0.5 / STEPS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An extent whose score was that when the window began, and which took so many random I/Os in it.
    fn entry(before: f32, ios: f32) -> Entry {
        let reads = FloatingCounter::nearest(ios);
        Entry { before: remembered(before), reads, ..Entry::default() }
    }

    /// After a day of random I/O at its end: half is left, and all that it has more came in the window.
    fn of_day(before: f32, now: f32) -> Entry {
        entry(before, (now - before / 2.0).max(0.0) / 16.0)
    }

    /// By chance that is of I/Os one by one.
    fn expected(trend: Trend, entry: Entry, now: f32) -> f32 {
        trend.expected(entry, now, || 1.0)
    }

    fn day(scores: &[(f32, f32)]) -> Option<Trend> {
        let entries = scores.iter().map(|(before, now)| (of_day(*before, *now), *now));
        Trend::over(24, 24.0, entries)
    }

    #[test]
    fn what_is_remembered_is_the_score_within_a_sixteenth() {
        assert_eq!(BEFORE[0], 0.0);
        for score in [4096.0_f32, 5000.0, 70_000.0, 123_456_789.0] {
            let found = BEFORE[usize::from(remembered(score))];
            assert!((found / score - 1.0).abs() <= 1.0 / 16.0, "{score}: {found}");
        }
        let small = BEFORE[usize::from(remembered(1000.0))];
        assert!((small - 1000.0).abs() <= 128.0, "{small}");
        assert_eq!(remembered(f32::MAX), 255);
    }

    #[test]
    fn a_load_that_goes_on_is_as_its_score_says() {
        let trend = day(&[(163_840.0, 163_840.0); 100]).expect("a day of a hundred extents");
        assert_eq!(trend.factor, FACTOR_LEAST);
        assert!((0.97..1.03).contains(&trend.level), "{trend:?}");
        for now in [163_840.0, 150_000.0, 190_000.0] {
            assert_eq!(expected(trend, of_day(163_840.0, now), now), now);
        }
    }

    #[test]
    fn where_a_load_ended_or_began_the_window_alone_is_believed() {
        let trend = day(&[(163_840.0, 163_840.0); 100]).expect("a day of a hundred extents");
        // It ended right after the window began; in its middle it would be 40,000 more.
        assert!(expected(trend, of_day(163_840.0, 83_000.0), 83_000.0) < 4000.0);
        // It began in the middle of it.
        assert!((95_000.0..105_000.0).contains(&expected(trend, of_day(0.0, 50_000.0), 50_000.0)));
        // Of so few I/Os it may be chance.
        assert_eq!(expected(trend, entry(0.0, 15.0), 15.0 * 16.0), 15.0 * 16.0);
    }

    /// Of an extent that gets 64 at a time four times as much, or nothing, is no change of its load.
    #[test]
    fn what_comes_in_bunches_has_not_changed_as_soon() {
        let trend = day(&[(163_840.0, 163_840.0); 100]).expect("a day of a hundred extents");
        let often = |before: f32, now: f32| trend.expected(of_day(before, now), now, || 64.0);
        for (before, now) in [(2048.0, 1024.0 + 4096.0), (4096.0, 2048.0)] {
            assert_eq!(often(before, now), now);
            assert_ne!(expected(trend, of_day(before, now), now), now);
        }
        assert!(often(0.0, 50_000.0) > 95_000.0, "that is more than chance makes of bunches");
    }

    #[test]
    fn where_all_vary_none_has_changed() {
        let vary = |nth: u16| {
            // From an eighth of what is usual to eight times as much.
            let won = 80_000.0 * (f32::from(nth % 25) / 4.0 - 3.0).exp2();
            (160_000.0, 80_000.0 + won)
        };
        let scores: Vec<(f32, f32)> = (0..500).map(vary).collect();
        let trend = day(&scores).expect("a day of many extents");
        assert!(trend.factor > 100.0, "{trend:?}");
        for (before, now) in scores {
            assert_eq!(expected(trend, of_day(before, now), now), now);
        }
    }

    /// In the second day of a pool, or when everything is busier than before, all have won more than is usual.
    #[test]
    fn those_are_off_that_are_off_the_others() {
        // Twice as much as before.
        let trend = day(&[(163_840.0, 245_760.0); 100]).expect("a day of a hundred extents");
        assert!((1.95..2.05).contains(&trend.level) && trend.factor == FACTOR_LEAST, "{trend:?}");
        assert_eq!(expected(trend, of_day(163_840.0, 245_760.0), 245_760.0), 245_760.0);
        // A new one that wins as much is as hot as they are, beside them.
        let new = expected(trend, of_day(0.0, 163_840.0), 163_840.0);
        assert!((230_000.0..254_000.0).contains(&new), "{new}");
        // One that wins what it did is cooler than they are.
        let left_behind = expected(trend, of_day(163_840.0, 110_000.0), 110_000.0);
        assert!(left_behind < 60_000.0, "{left_behind}");
    }

    /// Of a few hours: what is not known of the score before hides small changes, and no large ones.
    #[test]
    fn short_windows_show_what_is_gone_and_what_is_new() {
        let (keep, score) = ((-0.25_f32).exp2(), 1_638_400.0);
        let usual = score * (1.0 - keep) / 16.0;
        // What is remembered of each is off by another bit.
        let some = |nth: u16| 1.0 + f32::from(nth) / 100.0;
        let same =
            (0..100).map(|nth| (entry(some(nth) * score, some(nth) * usual), some(nth) * score));
        let trend = Trend::over(6, 24.0, same).expect("six hours of a hundred extents");
        assert_eq!(trend.factor, FACTOR_LEAST);
        let of = |before: f32, ios: f32| {
            let now = before * keep + 16.0 * ios;
            expected(trend, entry(before, ios), now) / now
        };
        assert_eq!([1.0, 0.7, 1.3].map(|part| of(score, part * usual)), [1.0; 3]);
        assert!(of(score, 0.0) < 0.01 && of(score, 0.2 * usual) < 0.4);
        // What began in its middle would have six times as much in the long run.
        assert!((5.0..6.6).contains(&of(0.0, 20_000.0)), "{}", of(0.0, 20_000.0));
        assert!(of(score, 5.0 * usual) > 1.8);
        // Of a stream each I/O counts a sixteenth: what is counted is no loss.
        let stream = expected(trend, entry(score, 16.0 * usual), score);
        assert_eq!(stream, score);
    }

    #[test]
    fn windows_that_are_too_short_and_few_extents_tell_nothing() {
        let same = (of_day(163_840.0, 160_000.0), 160_000.0);
        let over = |hours, half_life, count| {
            Trend::over(hours, half_life, std::iter::repeat_n(same, count)).is_some()
        };
        assert!(over(24, 24.0, 32) && over(23, 24.0, 32) && over(6, 6.0, 32));
        assert!(!over(0, 24.0, 320) && !over(1, 24.0, 320) && !over(24, 24.0, 31));
        // Nobody was hot before.
        let new = (entry(0.0, 9e8), 9e9);
        assert!(Trend::over(24, 24.0, std::iter::repeat_n(new, 500)).is_none());
    }
}
