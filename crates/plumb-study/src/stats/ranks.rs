//! Shifts between two samples by ranks: Hodges–Lehmann with the Mann–Whitney interval.

use plumb_units::convert;

use super::describe::{median, sorted};
use super::distribution::normal_quantile;

/// Pairs of values up to which differences are listed.
const PAIRS_MOST: usize = 1_000_000;
/// Values up to which orders are counted.
const EXACT_MOST: usize = 100;

/// A shift of location and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Hodges–Lehmann: the median of all differences b − a.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The shift from `a` to `b` [Hodges & Lehmann 1963]; `None` where either sample is too small for a
/// 95 % interval, or both are so large (a million pairs) that means do as well.
#[must_use]
pub fn hodges_lehmann(a: &[f64], b: &[f64]) -> Option<Shift> {
    if a.len().saturating_mul(b.len()) > PAIRS_MOST {
        return None;
    }
    let differences: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    let ordered = sorted(&differences);
    let cut = critical_rank(a.len(), b.len())?;
    Some(Shift {
        estimate: median(&ordered),
        low: ordered[cut],
        high: ordered[ordered.len() - 1 - cut],
    })
}

/// How many of the ordered differences lie below the interval: the largest c with
/// P(U ≤ c − 1) ≤ 0.025, U being Mann–Whitney's count without a difference.
fn critical_rank(a: usize, b: usize) -> Option<usize> {
    if a + b > EXACT_MOST {
        // Normal from here on: the counts of orders would not fit a float much further.
        let (m, n) = (a as f64, b as f64);
        let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
        let rank = m * n / 2.0 - normal_quantile(0.975) * deviation;
        return Some(convert::to_usize(convert::floor_u64(rank)));
    }
    let counts = arrangements(a, b);
    let total: f64 = counts.iter().sum();
    let mut below = 0.0;
    let mut cut = 0;
    for (rank, count) in counts.iter().enumerate() {
        below += count / total;
        if below > 0.025 {
            break;
        }
        cut = rank + 1;
    }
    (cut > 0).then(|| cut - 1)
}

/// In how many orders of a + b values U comes out as 0, 1, 2 …
fn arrangements(a: usize, b: usize) -> Vec<f64> {
    // The coefficients of the Gaussian binomial: product of (1 − q^(b+i)) / (1 − q^i), i = 1…a.
    let length = a * b + 1;
    let mut counts = vec![0.0; length];
    counts[0] = 1.0;
    for i in 1..=a {
        for rank in (b + i..length).rev() {
            counts[rank] -= counts[rank - b - i];
        }
        for rank in i..length {
            counts[rank] += counts[rank - i];
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_counted() {
        assert_eq!(arrangements(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(arrangements(3, 3).iter().sum::<f64>(), 20.0);
    }

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // Tables of the two-sided 5 % test: U ≤ 2 for 5 and 5, ≤ 5 for 6 and 6, none for 3 and 3.
        assert_eq!(critical_rank(5, 5), Some(2));
        assert_eq!(critical_rank(6, 6), Some(5));
        assert_eq!(critical_rank(8, 10), Some(17));
        assert_eq!(critical_rank(3, 3), None);
        // The normal approximation goes on where counting ends.
        let (exact, normal) = (critical_rank(50, 50), critical_rank(50, 51));
        let (exact, normal) = (exact.expect("many"), normal.expect("many"));
        assert!((exact..exact + 30).contains(&normal), "{exact} {normal}");
        let many: Vec<f64> = (0..700_u32).map(f64::from).collect();
        assert!(hodges_lehmann(&many, &many).is_some_and(|shift| shift.estimate == 0.0));
        let more: Vec<f64> = (0..2000_u32).map(f64::from).collect();
        assert_eq!(hodges_lehmann(&more, &more), None);
    }

    #[test]
    fn the_worked_shift_is_3300() {
        let a = [58071.31, 55232.28, 56800.0, 57250.0, 56100.0];
        let b = [60100.0, 59200.0, 60550.0, 58900.0, 61000.0];
        let shift = hodges_lehmann(&a, &b).expect("five are enough");
        assert_eq!(shift.estimate, 3300.0);
        assert!(shift.low > 0.0 && shift.high < 6000.0);
    }
}
