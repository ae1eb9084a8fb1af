//! Medians, ratios of medians, and whether a ratio may be shown.
//!
//! Repeats are interleaved, so the n-th of two tools ran in the same minute: their quotients are free of
//! what the machine did meanwhile. The interval that holds the median of the quotients in 95 of 100 cases
//! comes from their order alone (for 7 repeats: the smallest to the largest).

use std::fmt;

/// How often an interval may miss the median.
const CHANCE: f64 = 0.05;
/// Two tools are called equal when the interval is this narrow, either side of the ratio.
const EQUAL_WITHIN: f64 = 0.05;
/// The rule, for reports.
pub(super) const RULE: &str = "a ratio of medians is printed with the interval of the median of the \
    interleaved quotients (95 % by order statistics; with 7 repeats smallest to largest), and only if \
    that interval leaves out 1.00 or lies within 5 % of the ratio; otherwise the spread hides it";

/// The middle of some figures, and their ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    /// `None` without figures; NaN is none.
    pub(super) fn of(figures: &[f64]) -> Option<Self> {
        let mut sorted = sorted(figures);
        sorted.retain(|figure| figure.is_finite());
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Self { median: median(&sorted), min, max })
    }
}

/// Ratio of two medians with what it may really be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Ratio {
    /// `ours` over `theirs`, taken in turn; `None` unless there are as many of both, all finite, and some: a repeat
    /// that one of them lacks (NaN) has no quotient, and the others alone would be fewer than was said.
    pub(super) fn of(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        let is_whole = ours.iter().chain(theirs).all(|figure| figure.is_finite());
        if ours.len() != theirs.len() || !is_whole {
            return None;
        }
        let quotients = quotients(ours, theirs);
        let aside = outside(quotients.len(), CHANCE);
        let value = Spread::of(ours)?.median / Spread::of(theirs)?.median;
        // The ratio of medians can lie outside of all quotients.
        let low = quotients[aside].min(value);
        let high = quotients[quotients.len() - 1 - aside].max(value);
        Some(Self { value, low, high })
    }

    /// The median of the quotients of pairs, with the interval that misses it with `chance` at most; `None` as for
    /// [`Ratio::of`].
    pub(super) fn of_pairs(ours: &[f64], theirs: &[f64], chance: f64) -> Option<Self> {
        let is_whole = ours.iter().chain(theirs).all(|figure| figure.is_finite());
        if ours.len() != theirs.len() || ours.is_empty() || !is_whole {
            return None;
        }
        let quotients = quotients(ours, theirs);
        let aside = outside(quotients.len(), chance);
        let (low, high) = (quotients[aside], quotients[quotients.len() - 1 - aside]);
        Some(Self { value: median(&quotients), low, high })
    }

    /// Theirs over ours.
    pub(super) fn inverse(self) -> Self {
        Self { value: 1.0 / self.value, low: 1.0 / self.high, high: 1.0 / self.low }
    }

    /// Whether the spread leaves something to be said.
    pub(super) fn is_visible(&self) -> bool {
        let Self { value, low, high } = self;
        let is_equal = high - value <= value * EQUAL_WITHIN && value - low <= value * EQUAL_WITHIN;
        *high < 1.0 || *low > 1.0 || is_equal
    }

    /// Whether a goal (not above) is met, if that can be said.
    pub(super) fn verdict(&self, goal: f64) -> &'static str {
        if self.high <= goal {
            "met"
        } else if self.low > goal {
            "MISSED"
        } else {
            "undecided: the spread covers it"
        }
    }
}

impl Ratio {
    /// The same with a word for what the medians say where the spread covers the goal: goals are of medians, and a spread
    /// that is wide is no excuse for one that misses.
    pub(super) fn verdict_by_medians(&self, goal: f64) -> &'static str {
        match self.verdict(goal) {
            verdict @ ("met" | "MISSED") => verdict,
            _ if self.value <= goal => "met by the medians; the spread covers it",
            _ => "missed by the medians; the spread covers it",
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, low, high } = self;
        if self.is_visible() {
            write!(f, "{value:.2} ({low:.2} to {high:.2})")
        } else {
            write!(f, "hidden by the spread ({low:.2} to {high:.2})")
        }
    }
}

/// In order.
fn quotients(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    let quotients: Vec<f64> = ours.iter().zip(theirs).map(|(our, their)| our / their).collect();
    sorted(&quotients)
}

fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// How many of `count` sorted figures lie outside on either side of an interval that misses the median with the chance
/// `missed` at most: the median is above the k-th with the chance of at least k heads in `count` throws.
fn outside(count: usize, missed: f64) -> usize {
    let mut chance = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for aside in 0..count / 2 {
        below += chance;
        if 2.0 * below > missed {
            return aside.saturating_sub(1);
        }
        chance *= f64::from(u32::try_from(count - aside).unwrap_or(u32::MAX))
            / f64::from(u32::try_from(aside + 1).unwrap_or(u32::MAX));
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ours: &[f64], theirs: &[f64], want: &str) {
        let ratio = Ratio::of(ours, theirs).expect("as many figures");
        assert_eq!(ratio.to_string(), want);
    }

    #[test]
    fn a_ratio_is_shown_only_when_the_spread_lets_it_be_seen() {
        check(&[1.0, 1.1, 0.9], &[2.0, 2.0, 2.0], "0.50 (0.45 to 0.55)");
        check(&[1.0, 1.02, 0.98], &[1.0, 1.0, 1.0], "1.00 (0.98 to 1.02)");
        check(&[1.0, 1.4, 0.8], &[1.0, 1.0, 1.0], "hidden by the spread (0.80 to 1.40)");
        // The same minute slows both.
        check(&[1.0, 3.0, 2.0], &[2.0, 6.0, 4.0], "0.50 (0.50 to 0.50)");
    }

    #[test]
    fn the_interval_holds_the_median_in_95_of_100_cases() {
        // Tables of the sign test, two-sided.
        for (count, aside) in [(5, 0), (6, 0), (7, 0), (8, 0), (9, 1), (12, 2), (15, 3), (20, 5)] {
            assert_eq!(outside(count, CHANCE), aside, "{count}");
        }
        // 2 / 2⁹ is 0.0039, 2 · 13 / 2¹² is 0.0063, 2 · 14 / 2¹³ is 0.0034.
        for (count, aside) in [(9, 0), (12, 0), (13, 1), (20, 3)] {
            assert_eq!(outside(count, 0.005), aside, "{count}");
        }
    }

    #[test]
    fn pairs_have_the_median_of_their_quotients() {
        let (ours, theirs) = ([1.0, 3.0, 2.2, 5.0, 1.0], [2.0, 6.0, 2.0, 10.0, 2.5]);
        let ratio = Ratio::of_pairs(&ours, &theirs, 0.05).expect("pairs");
        assert_eq!(ratio, Ratio { value: 0.5, low: 0.4, high: 1.1 });
        let inverse = ratio.inverse();
        assert_eq!((inverse.value, inverse.high), (2.0, 2.5));
        assert_eq!(Ratio::of_pairs(&[], &[], 0.05), None);
        assert_eq!(Ratio::of_pairs(&[1.0, f64::NAN], &[1.0, 1.0], 0.05), None);
    }

    #[test]
    fn goals_are_judged_by_the_interval() {
        let ratio = Ratio { value: 0.40, low: 0.38, high: 0.45 };
        assert_eq!(ratio.verdict(0.45), "met");
        assert_eq!(ratio.verdict(0.42), "undecided: the spread covers it");
        assert_eq!(ratio.verdict(0.37), "MISSED");
        assert_eq!(ratio.verdict_by_medians(0.37), "MISSED");
        let word = "the medians; the spread covers it";
        assert_eq!(ratio.verdict_by_medians(0.42), format!("met by {word}"));
        assert_eq!(ratio.verdict_by_medians(0.39), format!("missed by {word}"));
        // The word is there where the ratio is too uncertain to be shown, too.
        let hidden = Ratio { value: 1.18, low: 0.80, high: 1.30 };
        assert!(!hidden.is_visible());
        assert_eq!(hidden.verdict_by_medians(1.08), format!("missed by {word}"));
        assert_eq!(hidden.verdict_by_medians(1.20), format!("met by {word}"));
        assert_eq!(hidden.verdict_by_medians(1.40), "met");
    }

    #[test]
    fn medians_are_in_the_middle() {
        let spread = Spread { median: 2.5, min: 1.0, max: 9.0 };
        assert_eq!(Spread::of(&[9.0, 2.0, 1.0, 3.0]), Some(spread));
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Ratio::of(&[], &[]), None);
        assert_eq!(Ratio::of(&[1.0], &[]), None);
        assert_eq!(Ratio::of(&[1.0, f64::NAN], &[1.0, 1.0]), None);
    }
}
