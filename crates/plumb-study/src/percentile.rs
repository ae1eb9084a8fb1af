//! What a percentile rests on (method, 5.4).

pub use plumb_load::result::mark::Mark;
use plumb_units::convert;
use plumb_units::words::number_of;

use crate::stats::describe::{median, sorted};
use crate::stats::distribution::{binomial_below, binomial_quantile};

/// What a percentile of n values rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Support {
    /// Values above it: n·(1−p).
    pub above: f64,
    /// Its mark.
    pub mark: Mark,
    /// Its rank from the smallest, from 1.
    pub rank: u64,
    /// Ranks of the 95 % interval from the smallest, from 1; `None` without an upper end.
    pub interval: Option<(u64, u64)>,
}

/// What the percentile `p`, 0…1, of `count` values rests on [Hahn & Meeker 1991].
#[must_use]
pub fn support(p: f64, count: u64) -> Support {
    let (above, mark) = (count as f64 * (1.0 - p), Mark::of(p, count));
    // 99.99 % of 10 000 is the 9999th, whatever the product's last bit says.
    let rank = convert::floor_u64((p * count as f64 - 1e-9).ceil()).clamp(1, count.max(1));
    Support { above, mark, rank, interval: (mark != Mark::None).then(|| interval(p, count)) }
}

/// Ranks whose values hold the percentile in 95 of 100 cases.
fn interval(p: f64, count: u64) -> (u64, u64) {
    // Of those above: their number is small where p is near 1, and exact.
    let tail = 1.0 - p;
    let fewest = binomial_quantile(0.025, count, tail);
    let most = binomial_quantile(0.975, count, tail);
    ((count - most).max(1), (count - fewest + 1).min(count))
}

/// Values needed before the percentile `p` has a 95 % interval with an upper end.
#[must_use]
pub fn needed(p: f64) -> u64 {
    convert::floor_u64((0.025_f64.ln() / p.ln()).ceil())
}

/// Slow I/Os as events: one stall delays everything in flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Episodes {
    /// I/Os above the percentile.
    pub exceedances: usize,
    /// Times at which the device was slow.
    pub episodes: usize,
}

/// Episodes below which a percentile is marked whatever it rests on.
pub const EPISODES_FEW: usize = 10;
/// From which percentile on I/Os are few enough to be of few episodes.
pub const TAIL: f64 = 99.0;

/// (5.4) What is to be said of the episodes of a percentile beside its mark. `spread` are the intervals of the measurement
/// with an I/O that took as long or longer, and all of them; `None` where latencies were not kept per interval. Nothing is
/// said below the tail, and of many episodes.
#[must_use]
pub fn episodes_told(percent: f64, spread: Option<(usize, usize)>) -> Option<String> {
    if percent < TAIL {
        return None;
    }
    match spread {
        None => Some("episodes not told: latencies were not kept per interval".to_owned()),
        // So few could not hold enough episodes, however they came.
        Some((_, all)) if all < EPISODES_FEW => {
            Some(format!("episodes not told: {}", number_of(convert::to_u64(all), "interval")))
        }
        Some((with, all)) if with < EPISODES_FEW => {
            Some(format!("few episodes: in {with} of {all} intervals"))
        }
        Some(_) => None,
    }
}

/// Of the spreads of several runs that which says least: `None` if any is not known, or there are none.
#[must_use]
pub fn weakest(spreads: impl Iterator<Item = Option<(usize, usize)>>) -> Option<(usize, usize)> {
    let all: Option<Vec<(usize, usize)>> = spreads.collect();
    all?.into_iter().min_by_key(|(with, all)| ((*all).min(EPISODES_FEW), *with))
}

/// A mark, or what follows it, with what is to be said of the episodes.
#[must_use]
pub fn with_episodes(mark: &str, percent: f64, spread: Option<(usize, usize)>) -> String {
    match episodes_told(percent, spread) {
        Some(episodes) => format!("{mark}; {episodes}"),
        None => mark.to_owned(),
    }
}

impl Episodes {
    /// Counts them: `completions_ms` are the times at which I/Os above the percentile completed, in
    /// order; a new episode begins after max(3·L, 10 ms) without one, L being the mean latency.
    #[must_use]
    pub fn of(completions_ms: &[f64], latency_mean_ms: f64) -> Self {
        let gap = (3.0 * latency_mean_ms).max(10.0);
        let breaks = completions_ms.windows(2).filter(|pair| pair[1] - pair[0] > gap).count();
        let episodes = if completions_ms.is_empty() { 0 } else { breaks + 1 };
        Self { exceedances: completions_ms.len(), episodes }
    }

    /// n for an interval that is printed as adjusted.
    #[must_use]
    pub fn effective(self, count: f64) -> f64 {
        if self.exceedances == 0 {
            count
        } else {
            count * self.episodes as f64 / self.exceedances as f64
        }
    }
}

/// A percentile of a setting over its runs: the median with the sign-test interval from six runs on,
/// else the range. Never the mean of percentiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverRuns {
    /// Median of the runs' percentiles.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether low and high are a 95 % interval, not just the range.
    pub is_interval: bool,
}

/// A percentile over runs; `None` without any.
#[must_use]
pub fn over_runs(values: &[f64]) -> Option<OverRuns> {
    let ordered = sorted(values);
    let (first, last) = (*ordered.first()?, *ordered.last()?);
    let count = convert::to_u64(ordered.len());
    if count < 6 {
        return Some(OverRuns {
            median: median(values),
            low: first,
            high: last,
            is_interval: false,
        });
    }
    // Sign test: the largest c with P(Bin(n, ½) ≤ c) ≤ 2.5 %.
    let cut =
        (0..count).take_while(|k| binomial_below(*k, count, 0.5) <= 0.025).last().unwrap_or(0);
    let cut = convert::to_usize(cut);
    Some(OverRuns {
        median: median(values),
        low: ordered[cut],
        high: ordered[ordered.len() - 1 - cut],
        is_interval: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nines(count: i32) -> f64 {
        1.0 - 10_f64.powi(-count)
    }

    #[test]
    fn values_needed_for_a_bound() {
        for (digits, wanted) in
            [(2, 368), (3, 3688), (4, 36_887), (5, 368_887), (6, 3_688_878), (7, 36_888_793)]
        {
            assert_eq!(needed(nines(digits)), wanted, "{digits} nines");
        }
    }

    #[test]
    fn marks_of_published_results() {
        for (count, digits, mark, above) in [
            (234_408, 2, Mark::Good, 2344.1),
            (234_408, 4, Mark::Fair, 23.4),
            (234_408, 5, Mark::None, 2.34),
            (2_469_840, 5, Mark::Fair, 24.7),
            (2_469_840, 6, Mark::None, 2.5),
            (34_843_094, 6, Mark::Fair, 34.8),
            (34_843_094, 7, Mark::None, 3.5),
            (400, 2, Mark::Weak, 4.0),
            (0, 2, Mark::None, 0.0),
        ] {
            let support = support(nines(digits), count);
            assert_eq!(support.mark, mark, "{digits} nines of {count}");
            assert!((support.above - above).abs() < 0.06, "{support:?}");
            assert_eq!(support.interval.is_none(), mark == Mark::None);
        }
    }

    #[test]
    fn intervals_as_ranks_from_the_top() {
        for (count, digits, wanted) in [(234_408, 4, (14, 34)), (34_843_094, 6, (24, 48))] {
            let support = support(nines(digits), count);
            let (low, high) = support.interval.expect("an upper end");
            assert_eq!((count - high + 1, count - low + 1), wanted);
            assert!(low <= support.rank && support.rank <= high);
        }
        assert_eq!(support(0.9999, 10_000).rank, 9_999);
        assert_eq!(support(0.5, 11).rank, 6);
    }

    #[test]
    fn a_stall_is_one_episode() {
        let mut completions: Vec<f64> = (0..64).map(|i| 1000.0 + f64::from(i) * 0.1).collect();
        completions.extend([5000.0, 5000.5, 9000.0]);
        let episodes = Episodes::of(&completions, 3.0);
        assert_eq!(episodes, Episodes { exceedances: 67, episodes: 3 });
        assert!((episodes.effective(6700.0) - 300.0).abs() < 1e-9);
        assert_eq!(Episodes::of(&[], 1.0).episodes, 0);
        // 3·L is more than 10 ms here.
        assert_eq!(Episodes::of(&[0.0, 25.0, 60.0], 10.0).episodes, 2);
    }

    #[test]
    fn episodes_are_told_where_they_are_few_or_not_known() {
        let told = |percent, spread| episodes_told(percent, spread);
        assert_eq!(told(95.0, None), None);
        assert_eq!(told(99.0, Some((10, 10))), None);
        assert_eq!(
            told(99.9, Some((9, 60))).as_deref(),
            Some("few episodes: in 9 of 60 intervals")
        );
        assert_eq!(told(99.0, Some((8, 8))).as_deref(), Some("episodes not told: 8 intervals"));
        assert_eq!(told(99.0, Some((1, 1))).as_deref(), Some("episodes not told: 1 interval"));
        let none = "good; episodes not told: latencies were not kept per interval";
        assert_eq!(with_episodes("good", 99.0, None), none);
        assert_eq!(with_episodes("good", 99.0, Some((30, 60))), "good");
    }

    #[test]
    fn percentiles_over_runs() {
        let six = over_runs(&[6.0, 1.0, 2.0, 5.0, 3.0, 4.0]).expect("six");
        assert_eq!(six, OverRuns { median: 3.5, low: 1.0, high: 6.0, is_interval: true });
        let nine: Vec<f64> = (1..10).map(f64::from).collect();
        let nine = over_runs(&nine).expect("nine");
        assert_eq!((nine.low, nine.high), (2.0, 8.0));
        assert!(!over_runs(&[1.0, 2.0]).expect("two").is_interval);
        assert_eq!(over_runs(&[]), None);
    }
}
