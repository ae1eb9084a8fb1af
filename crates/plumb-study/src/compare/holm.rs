//! Many comparisons at once (method, 6.3).

use super::{Comparison, Verdict};

/// How many comparisons came out how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Headline {
    /// Better ones.
    pub better: usize,
    /// Worse ones.
    pub worse: usize,
    /// Ones without a relevant change.
    pub same: usize,
    /// Ones that cannot be told.
    pub unclear: usize,
    /// Whether anything changed at all, at 5 % over all of them.
    pub something_changed: bool,
}

impl Headline {
    /// The count of some comparisons.
    #[must_use]
    pub fn of(comparisons: &[Comparison]) -> Self {
        let count = |verdict| comparisons.iter().filter(|c| c.verdict == verdict).count();
        let p: Vec<f64> = comparisons.iter().map(|comparison| comparison.p).collect();
        Self {
            better: count(Verdict::Better),
            worse: count(Verdict::Worse),
            same: count(Verdict::Same),
            unclear: count(Verdict::Unclear),
            something_changed: holm(&p, 0.05).contains(&true),
        }
    }
}

/// Which p-values are significant together at level `alpha` [Holm 1979].
#[must_use]
pub fn holm(p: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut significant = vec![false; p.len()];
    for (rank, index) in order.into_iter().enumerate() {
        if p[index] > alpha / (p.len() - rank) as f64 {
            break;
        }
        significant[index] = true;
    }
    significant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_are_tested_most_strictly() {
        assert_eq!(holm(&[0.01, 0.04, 0.03], 0.05), [true, false, false]);
        assert_eq!(holm(&[0.001, 0.04, 0.02], 0.05), [true, true, true]);
        assert_eq!(holm(&[0.02, 0.06], 0.05), [true, false]);
        assert!(holm(&[], 0.05).is_empty());
    }
}
