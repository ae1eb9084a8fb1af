//! Straight lines through points: least squares and Theil–Sen.

use super::describe::{mean, median};

/// y = intercept + slope·x by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Value at x = 0.
    pub intercept: f64,
    /// Change per unit of x; 0 where x does not vary.
    pub slope: f64,
    /// Standard error of the slope; infinite with fewer than three points.
    pub slope_error: f64,
    /// Residual standard deviation, n − 2.
    pub deviation: f64,
}

impl Line {
    /// The line of least squares.
    #[must_use]
    pub fn through(points: &[(f64, f64)]) -> Self {
        let xs: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
        let ys: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
        let (x_mean, y_mean) = (mean(&xs), mean(&ys));
        let spread = spread(&xs);
        let products: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
        let slope = if spread > 0.0 { products / spread } else { 0.0 };
        let intercept = y_mean - slope * x_mean;
        let squares: f64 = points.iter().map(|(x, y)| (y - intercept - slope * x).powi(2)).sum();
        let freedom = points.len() as f64 - 2.0;
        let deviation = if freedom > 0.0 { (squares / freedom).sqrt() } else { f64::INFINITY };
        let slope_error = if spread > 0.0 { deviation / spread.sqrt() } else { f64::INFINITY };
        Self { intercept, slope, slope_error, deviation }
    }

    /// Intercept and slope where each point counts by its weight; slope 0 where x does not vary.
    #[must_use]
    pub fn weighted(points: &[(f64, f64)], weights: &[f64]) -> (f64, f64) {
        let total: f64 = weights.iter().sum();
        let mean = |value: &dyn Fn(f64, f64) -> f64| {
            points.iter().zip(weights).map(|((x, y), w)| value(*x, *y) * w).sum::<f64>() / total
        };
        let (x_mean, y_mean) = (mean(&|x, _| x), mean(&|_, y| y));
        let spread = mean(&|x, _| (x - x_mean).powi(2));
        let product = mean(&|x, y| (x - x_mean) * (y - y_mean));
        let slope = if spread > 0.0 { product / spread } else { 0.0 };
        (y_mean - slope * x_mean, slope)
    }

    /// The value at `x`.
    #[must_use]
    pub fn at(self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// Sum of squared distances of the x from their mean.
#[must_use]
pub fn spread(xs: &[f64]) -> f64 {
    let centre = mean(xs);
    xs.iter().map(|x| (x - centre).powi(2)).sum()
}

/// The median of the slopes of all pairs of points [Theil 1950, Sen 1968]; NaN with fewer than two
/// different x.
#[must_use]
pub fn theil_sen(points: &[(f64, f64)]) -> f64 {
    let mut slopes = Vec::new();
    for (index, (x, y)) in points.iter().enumerate() {
        for (x2, y2) in &points[index + 1..] {
            if x2 != x {
                slopes.push((y2 - y) / (x2 - x));
            }
        }
    }
    median(&slopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_one_bad_point_does_not_move_theil_sen() {
        let exact: Vec<(f64, f64)> = [0.0, 1.0, 2.0, 5.0].map(|x| (x, 1.0 + 2.0 * x)).into();
        let line = Line::through(&exact);
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.at(3.0) - 7.0).abs() < 1e-12);
        assert!(line.slope_error < 1e-9);
        let (intercept, slope) = Line::weighted(&exact, &[1.0, 2.0, 0.0, 3.0]);
        assert!((intercept - 1.0).abs() < 1e-12 && (slope - 2.0).abs() < 1e-12);
        let mut bad = exact;
        bad[3].1 = 100.0;
        assert!(Line::through(&bad).slope > 10.0);
        bad.push((6.0, 13.0));
        bad.push((7.0, 15.0));
        assert!((theil_sen(&bad) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_rounds_of_the_example_slope_by_0_30() {
        let rounds = [100.0, 104.0, 98.0, 101.0, 103.0];
        let points: Vec<(f64, f64)> = (0..5_u32).map(f64::from).zip(rounds).collect();
        assert!((Line::through(&points).slope - 0.30).abs() < 1e-12);
    }
}
