//! What an extent's score is going to be, where the window since the last optimization shows that its load is another one now.
//!
//! A score is halved in a day, so an extent that was hot for long goes on to look hot for a day or two after it has cooled. The
//! window has no such memory. It is believed alone where it differs from what was before by more than chance, and by
//! much more than most extents do: where all of them vary from day to day, the mean of several days tells more.

use std::sync::LazyLock;

use super::counter::FloatingCounter;
use super::page::Entry;

/// A window is long enough to be compared when no more of the score before is left than this: with the usual half-life
/// after 21 hours.
const LEFT_MOST: f32 = 0.55;
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
        let plain = Self { keep, level: 1.0, factor: 1.0 };
        let mut all = Spread { buckets: [0; BUCKETS] };
        for (entry, now) in entries {
            let (won, usual) = plain.won(entry, now);
            if usual >= ENOUGH {
                all.note(won.max(1.0) / usual);
            }
        }
        let (level, median) = all.level_and_spread()?;
        let factor = (DEVIATIONS * OF_MEDIAN * median).exp2().max(FACTOR_LEAST);
        Some(Self { keep, level, factor })
    }

    /// What an extent whose score is `now` won in the window, and what it would have won if its load had gone on as it was: what
    /// decays in it.
    fn won(self, entry: Entry, now: f32) -> (f32, f32) {
        let before = BEFORE[usize::from(entry.before)];
        ((now - before * self.keep).max(0.0), before * (1.0 - self.keep))
    }

    /// The score to expect of an extent whose score is `now`, in sixteenths.
    pub(super) fn expected(self, entry: Entry, now: f32) -> f32 {
        let (won, usual) = self.won(entry, now);
        let usual = usual * self.level;
        let is_off = won * self.factor < usual || won > usual * self.factor;
        let chance = DEVIATIONS * (16.0 * won.max(usual)).sqrt();
        match is_off && (won - usual).abs() > chance {
            // As if it had always been so, beside those that have come as far as they have.
            true => won * (1.0 + self.keep / (1.0 - self.keep) / self.level),
            false => now,
        }
    }
}

/// How many extents won so many times what is usual, by logarithm.
struct Spread {
    buckets: [u64; BUCKETS],
}

impl Spread {
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

    fn entry(before: f32) -> Entry {
        Entry { before: remembered(before), ..Entry::default() }
    }

    /// After a day: half is left, and half of what was before comes again.
    fn day(scores: &[(f32, f32)]) -> Option<Trend> {
        let entries = scores.iter().map(|(before, now)| (entry(*before), *now));
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
            assert_eq!(trend.expected(entry(163_840.0), now), now);
        }
    }

    #[test]
    fn where_a_load_ended_or_began_the_window_alone_is_believed() {
        let trend = day(&[(163_840.0, 163_840.0); 100]).expect("a day of a hundred extents");
        // It ended right after the window began; in its middle it would be 40,000 more.
        assert!(trend.expected(entry(163_840.0), 83_000.0) < 4000.0);
        // It began in the middle of it.
        assert!((95_000.0..105_000.0).contains(&trend.expected(entry(0.0), 50_000.0)));
        // Of so few I/Os it may be chance.
        assert_eq!(trend.expected(entry(0.0), 15.0 * 16.0), 15.0 * 16.0);
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
            assert_eq!(trend.expected(entry(before), now), now);
        }
    }

    /// In the second day of a pool, or when everything is busier than before, all have won more than is usual.
    #[test]
    fn those_are_off_that_are_off_the_others() {
        // Twice as much as before.
        let trend = day(&[(163_840.0, 245_760.0); 100]).expect("a day of a hundred extents");
        assert!((1.95..2.05).contains(&trend.level) && trend.factor == FACTOR_LEAST, "{trend:?}");
        assert_eq!(trend.expected(entry(163_840.0), 245_760.0), 245_760.0);
        // A new one that wins as much is as hot as they are, beside them.
        let new = trend.expected(entry(0.0), 163_840.0);
        assert!((238_000.0..254_000.0).contains(&new), "{new}");
        // One that wins what it did is cooler than they are.
        let left_behind = trend.expected(entry(163_840.0), 110_000.0);
        assert!(left_behind < 60_000.0, "{left_behind}");
    }

    #[test]
    fn short_windows_and_few_extents_tell_nothing() {
        let same = (entry(163_840.0), 160_000.0);
        let over = |hours, half_life, count| {
            Trend::over(hours, half_life, std::iter::repeat_n(same, count)).is_some()
        };
        assert!(over(24, 24.0, 32) && over(23, 24.0, 32) && over(6, 6.0, 32));
        assert!(!over(6, 24.0, 32) && !over(20, 24.0, 32) && !over(24, 24.0, 31));
        // Nobody was hot before.
        assert!(Trend::over(24, 24.0, std::iter::repeat_n((entry(0.0), 9e9), 500)).is_none());
    }
}
