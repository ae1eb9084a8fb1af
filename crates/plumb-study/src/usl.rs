//! The universal scalability law, reported beside the knee but deciding nothing (method, 3.4) [Gunther 2007].

use crate::stats::distribution::t_95;
use crate::stats::nonnegative::{self, dot};

/// `X = γN/(1 + α(N−1) + βN(N−1))`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usl {
    /// γ: I/Os per second of one outstanding I/O.
    pub gamma: f64,
    /// α: what queueing costs, 0 or more.
    pub alpha: f64,
    /// β: what coherence costs, 0 or more.
    pub beta: f64,
    /// `sqrt((1−α)/β)`: where throughput peaks; `None` where β is 0. A peak, not a knee.
    pub peak: Option<f64>,
    /// Whether the peak may be told: the 95 % interval of β excludes 0, and the peak is within twice the range.
    pub is_told: bool,
}

/// Rounds of weighting.
const ROUNDS: u32 = 50;

/// Fits it to (N, X) by least squares of X with α, β ≥ 0; `None` with fewer than four points, or where it does
/// not fit at all.
///
/// N/X is linear in 1/γ, α/γ and β/γ; weights X²/N, taken from the fit before, make residuals of N/X ones of X.
#[must_use]
pub fn fit(points: &[(f64, f64)]) -> Option<Usl> {
    let is_fine = |(n, x): &(f64, f64)| *n >= 1.0 && *x > 0.0 && x.is_finite();
    if points.len() < 4 || !points.iter().all(is_fine) {
        return None;
    }
    let (full, squares) = solve(points, true)?;
    let (_, without) = solve(points, false)?;
    let [a, b, c] = full;
    let (gamma, alpha, beta) = (1.0 / a, b / a, c / a);
    let peak = (beta > 0.0 && alpha < 1.0).then(|| ((1.0 - alpha) / beta).sqrt());
    let freedom = points.len() as f64 - 3.0;
    // β is one coefficient: its t² is the F of leaving it out.
    let f = (without - squares).max(0.0) / (squares / freedom).max(f64::MIN_POSITIVE);
    let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let is_told = f.sqrt() > t_95(freedom) && peak.is_some_and(|peak| peak <= 2.0 * most);
    Some(Usl { gamma, alpha, beta, peak, is_told })
}

/// 1/γ, α/γ, β/γ and the sum of squares of X, with or without β.
fn solve(points: &[(f64, f64)], with_beta: bool) -> Option<([f64; 3], f64)> {
    let terms = |n: f64| [1.0, n - 1.0, n * (n - 1.0)];
    let used = if with_beta { 3 } else { 2 };
    let mut fitted: Vec<f64> = points.iter().map(|(_, x)| *x).collect();
    let mut found = [0.0; 3];
    for _ in 0..ROUNDS {
        let weights: Vec<f64> =
            points.iter().zip(&fitted).map(|((n, x), fitted)| x * fitted / n).collect();
        let columns: Vec<Vec<f64>> = (0..used)
            .map(|term| {
                points.iter().zip(&weights).map(|((n, _), w)| terms(*n)[term] * w).collect()
            })
            .collect();
        let y: Vec<f64> = points.iter().zip(&weights).map(|((n, x), w)| n / x * w).collect();
        let solution = nonnegative::solve(&columns, &y);
        found = [0.0; 3];
        found[..used].copy_from_slice(&solution);
        if found[0] <= 0.0 {
            return None;
        }
        fitted = points.iter().map(|(n, _)| n / dot(&terms(*n), &found)).collect();
    }
    let squares = points.iter().zip(&fitted).map(|((_, x), fitted)| (x - fitted).powi(2)).sum();
    Some((found, squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision;
    use crate::findings::Layout;
    use crate::knee::{self, Options, Row};
    use crate::table;

    fn points(csv: &str, per_o: f64) -> Vec<(f64, f64)> {
        let rows = table::read(csv, None).expect("a table").rows;
        rows.iter().map(|row| (row.o as f64 * per_o, row.iops)).collect()
    }

    #[test]
    fn published_tables() {
        let reads = fit(&points(include_str!("../tests/data/sequential-reads.csv"), 1.0));
        let reads = reads.expect("it fits");
        assert!((reads.gamma - 275.0).abs() < 3.0, "{reads:?}");
        assert!((reads.alpha - 0.045).abs() < 0.003, "{reads:?}");
        assert!((reads.beta - 7.2e-4).abs() < 0.3e-4, "{reads:?}");
        assert!((reads.peak.expect("a peak") - 36.0).abs() < 1.0, "{reads:?}");
        let random = fit(&points(include_str!("../tests/data/random-test-1.csv"), 8.0));
        let random = random.expect("it fits");
        assert!(random.beta < 1e-6 && !random.is_told, "{random:?}");
    }

    #[test]
    fn a_curve_of_its_own_kind_is_found_again() {
        let law = |n: f64| 300.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.001 * n * (n - 1.0));
        let points: Vec<(f64, f64)> = (1..=40_u32).map(|n| (n.into(), law(n.into()))).collect();
        let found = fit(&points).expect("it fits");
        assert!(
            (found.gamma - 300.0).abs() < 1e-3 && (found.beta - 0.001).abs() < 1e-6,
            "{found:?}"
        );
        assert!(found.is_told);
        // Told beside the knee, of this curve and not of one that only rises.
        let told = |rows: &[(f64, f64)]| {
            let rows: Vec<Row> = rows
                .iter()
                .map(|(n, iops)| Row {
                    o: format!("{n}").parse().expect("whole"),
                    iops: *iops,
                    latency_ms: None,
                    latency_half_unit_ms: 0.0,
                    law: None,
                })
                .collect();
            let options = Options::default();
            let decided =
                decision::of_knee(&knee::find(&rows, &options), &options, &Layout::default());
            (decided["usl"]["peak_n"].as_f64(), decided["notes"].to_string())
        };
        let (peak, notes) = told(&points);
        assert!(peak.is_some_and(|peak| (peak - 31.3).abs() < 0.1), "{peak:?}");
        assert!(notes.contains("peaks at N = 31: a peak, which decides nothing"), "{notes}");
        let rising: Vec<(f64, f64)> = points.iter().map(|(n, _)| (*n, 100.0 * n.sqrt())).collect();
        assert_eq!(told(&rising).0, None);
        assert_eq!(fit(&points[..3]), None);
        assert_eq!(fit(&[(1.0, 0.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)]), None);
    }
}
