//! Means, spreads and medians.

/// The arithmetic mean; NaN without values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sum of the squared distances from the mean.
#[must_use]
pub fn squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

/// The variance with n − 1; 0 for fewer than two values.
#[must_use]
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 { 0.0 } else { squares(values) / (values.len() as f64 - 1.0) }
}

/// The standard deviation with n − 1; 0 for fewer than two values.
#[must_use]
pub fn deviation(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

/// The values in ascending order; NaN last.
#[must_use]
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The median, the mean of the middle two for an even number; NaN without values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// The median absolute deviation from `centre`, unscaled; NaN without values.
#[must_use]
pub fn absolute_deviation(values: &[f64], centre: f64) -> f64 {
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&distances)
}

/// What a median absolute deviation is multiplied with to estimate the SD of a normal sample.
pub const MAD_TO_SD: f64 = 1.4826;

/// The correlation of neighbours (lag 1); 0 where nothing varies.
#[must_use]
pub fn neighbour_correlation(values: &[f64]) -> f64 {
    let squares = squares(values);
    if values.len() < 2 || squares <= 0.0 {
        return 0.0;
    }
    let centre = mean(values);
    let products: f64 = values.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum();
    products / squares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(variance(&[1.0, 3.0]), 2.0);
        assert_eq!(deviation(&[5.0]), 0.0);
        assert_eq!(absolute_deviation(&[1.0, 2.0, 9.0], 2.0), 1.0);
    }

    #[test]
    fn the_published_batches_alternate() {
        let batches = [
            57800.0, 58210.0, 58040.0, 57650.0, 58330.0, 58120.0, 57910.0, 58260.0, 57990.0,
            58100.0,
        ];
        assert_eq!(mean(&batches), 58041.0);
        assert!((deviation(&batches) - 210.9).abs() < 0.05);
        assert!((neighbour_correlation(&batches) + 0.46).abs() < 0.005);
        assert_eq!(neighbour_correlation(&[2.0, 2.0]), 0.0);
    }
}
