//! Counters of 16 bits that count far, not exactly (HEAT-1).

use plumb_units::convert::low_u32;

use crate::random::Random;

/// Significand bits that are stored.
const STORED: u32 = 11;
/// Up to here a counter is exact: the bits are the value.
const EXACT: u64 = (2 << STORED) - 1;
/// The largest exponent.
const SHIFT_MAX: u32 = 30;

/// A floating counter: 11 stored significand bits with an implicit leading one, exponent of 5 bits.
///
/// ```text
///  15    11 10           0
/// +--------+--------------+   exponent 0: the significand itself, without the leading one
/// | expon. | significand  |   exponent e: (2048 + significand) x 2^(e-1)
/// +--------+--------------+
/// ```
///
/// Exact to 4,095. Above that one more counts with the probability that keeps the mean right: a standard error of
/// 1.3 %. It ends at 4095 x 2^30 and stays there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct FloatingCounter(pub(crate) u16);

impl FloatingCounter {
    /// What it has counted.
    #[inline]
    pub(crate) fn value(self) -> u64 {
        let bits = u64::from(self.0);
        match bits >> STORED {
            0 => bits,
            exponent => ((bits & 0x7ff) | 0x800) << (exponent - 1),
        }
    }

    /// The counter of a value: the nearest below or above, by chance, so that the mean is the value.
    #[inline]
    pub(crate) fn of(value: u64, random: &mut Random) -> Self {
        if value <= EXACT {
            return Self::from_bits(value);
        }
        let shift = 63 - STORED - value.leading_zeros();
        if shift > SHIFT_MAX {
            return Self(u16::MAX);
        }
        let rest = value & ((1 << shift) - 1);
        let up = u64::from(random.next() & ((1 << shift) - 1) < rest);
        // The significand's leading one carries into the exponent, as does a significand that is full.
        Self::from_bits((u64::from(shift) << STORED) + (value >> shift) + up)
    }

    /// The counter below a value, or at it.
    pub(crate) fn nearest(value: f32) -> Self {
        let value = plumb_units::convert::floor_u64(value.into());
        match value <= EXACT {
            true => Self::from_bits(value),
            false => {
                let shift = u64::from((63 - STORED - value.leading_zeros()).min(SHIFT_MAX));
                Self::from_bits((shift << STORED) + (value >> shift))
            }
        }
    }

    fn from_bits(bits: u64) -> Self {
        Self(u16::try_from(bits).unwrap_or(u16::MAX))
    }

    /// With `count` more.
    #[inline]
    pub(crate) fn plus(self, count: u64, random: &mut Random) -> Self {
        Self::of(self.value().saturating_add(count), random)
    }

    /// Times `factor` / 2^32.
    #[inline]
    pub(crate) fn scaled(self, factor: u32, random: &mut Random) -> Self {
        let product = u128::from(self.value()) * u128::from(factor);
        let whole = u64::try_from(product >> 32).unwrap_or(u64::MAX);
        let part = u32::try_from(product & u128::from(u32::MAX)).unwrap_or(0);
        Self::of(whole + u64::from(low_u32(random.next()) < part), random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_of_bits_is_a_value_and_values_rise() {
        let mut random = Random::new(1);
        let mut before = None;
        for bits in 0..=u16::MAX {
            let value = FloatingCounter(bits).value();
            assert!(before.is_none_or(|before| before < value), "{bits}");
            assert_eq!(FloatingCounter::of(value, &mut random), FloatingCounter(bits));
            before = Some(value);
        }
        assert_eq!(before, Some(4095 << 30));
        assert_eq!(FloatingCounter::of(u64::MAX, &mut random).value(), 4095 << 30);
        let full = FloatingCounter(u16::MAX);
        assert_eq!(full.plus(u64::MAX, &mut random), full, "it stays at its end");
    }

    #[test]
    fn it_is_exact_to_4095() {
        let mut random = Random::new(2);
        let mut counter = FloatingCounter::default();
        for count in 1..=4095 {
            counter = counter.plus(1, &mut random);
            assert_eq!(counter.value(), count);
        }
    }

    /// Relative mean and standard deviation of many counters that counted to `end` in steps.
    fn spread(end: u64, step: u64) -> (f64, f64) {
        let mut random = Random::new(end ^ step);
        let ratios: Vec<f64> = (0..200)
            .map(|_| {
                let mut counter = FloatingCounter::default();
                for _ in 0..end / step {
                    counter = counter.plus(step, &mut random);
                }
                counter.value() as f64 / (end / step * step) as f64
            })
            .collect();
        let mean = ratios.iter().sum::<f64>() / 200.0;
        let square = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / 199.0;
        (mean, square.sqrt())
    }

    #[test]
    fn the_standard_error_is_below_two_percent() {
        for (end, step) in [(10_000, 1), (100_000, 1), (100_000, 16), (10_000_000, 1999)] {
            let (mean, error) = spread(end, step);
            assert!((mean - 1.0).abs() < 0.004, "{end} by {step}: mean {mean}");
            assert!(error <= 0.02, "{end} by {step}: error {error}");
        }
        let (_, error) = spread(100_000, 1);
        assert!(error >= 0.004, "it counts by chance: {error}");
    }

    #[test]
    fn what_is_scaled_keeps_its_mean() {
        let mut random = Random::new(5);
        for value in [1, 3, 16, 5000, 1 << 33] {
            let start = FloatingCounter::of(value, &mut random);
            let factor = u32::MAX / 10 * 9;
            let sum: u64 = (0..20_000).map(|_| start.scaled(factor, &mut random).value()).sum();
            let mean = sum as f64 / 20_000.0;
            let wanted = start.value() as f64 * 0.9;
            assert!((mean / wanted - 1.0).abs() < 0.02, "{value}: {mean}, not {wanted}");
        }
    }
}
