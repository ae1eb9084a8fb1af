//! Remainders without a division: an exact reciprocal of a divisor known before the clock starts.

/// A divisor with its reciprocal; [`Modulus::of`] equals `%` for every operand.
///
/// Method: the round-up multiplier of Granlund and Montgomery 1994, "Division by invariant integers
/// using multiplication", figure 4.1 (exact for all 64-bit operands and divisors).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modulus {
    divisor: u64,
    multiplier: u64,
    first_shift: u32,
    second_shift: u32,
}

impl Modulus {
    /// Prepares a divisor.
    ///
    /// # Panics
    /// When it is 0.
    #[must_use]
    pub fn new(divisor: u64) -> Self {
        assert!(divisor > 0, "a divisor is not 0");
        let bits = u64::BITS - (divisor - 1).leading_zeros();
        let excess = (1_u128 << bits) - u128::from(divisor);
        let multiplier = (excess << 64) / u128::from(divisor) + 1;
        Self {
            divisor,
            multiplier: u64::try_from(multiplier).expect("below 2^64 by construction"),
            first_shift: bits.min(1),
            second_shift: bits.saturating_sub(1),
        }
    }

    /// The divisor.
    #[inline(always)]
    #[must_use]
    pub fn divisor(self) -> u64 {
        self.divisor
    }

    /// `value % divisor`.
    #[inline(always)]
    #[must_use]
    pub fn of(self, value: u64) -> u64 {
        let high = ((u128::from(self.multiplier) * u128::from(value)) >> 64) as u64;
        let quotient = (high + ((value - high) >> self.first_shift)) >> self.second_shift;
        value - quotient * self.divisor
    }
}

/// A divisor with its reciprocal for values that are, as the divisor is, multiples of a power of two, 2 or more: one bit
/// less to tell apart, so that one multiplication and one shift are enough.
///
/// Method: with 2^s < d ≤ 2^(s+1) and m = ⌈2^(64+s) / d⌉, which is below 2^64, let e = m·d − 2^(64+s) < d. Then
/// ⌊v·m / 2^(64+s)⌋ = ⌊v/d + v·e / (d·2^(64+s))⌋; the fraction of v/d is at most 1 − 2/d, and v·e < 2^64·2^(s+1), so what is
/// added is below 2/d (Granlund and Montgomery 1994, theorem 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvenModulus {
    divisor: u64,
    multiplier: u64,
    shift: u32,
}

impl EvenModulus {
    /// Prepares a divisor; `None` of an odd one or 0.
    #[must_use]
    pub fn new(divisor: u64) -> Option<Self> {
        if divisor == 0 || divisor % 2 == 1 {
            return None;
        }
        let shift = (divisor - 1).ilog2();
        let multiplier = (1_u128 << (64 + shift)).div_ceil(u128::from(divisor));
        Some(Self { divisor, multiplier: u64::try_from(multiplier).ok()?, shift })
    }

    /// `value % divisor`, of an even value.
    #[inline(always)]
    #[must_use]
    pub fn of(self, value: u64) -> u64 {
        debug_assert!(value.is_multiple_of(2), "{value} is odd");
        let high = ((u128::from(self.multiplier) * u128::from(value)) >> 64) as u64;
        value - (high >> self.shift) * self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn equals_the_division_everywhere() {
        let edges =
            [0, 1, 2, 3, 7, 255, 4096, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX - 1, u64::MAX];
        let mut rng = Rng::new(1);
        for round in 0..20_000_u32 {
            let shift = rng.next32() % 64;
            let divisor = match edges.get(round as usize) {
                Some(edge) => (*edge).max(1),
                None => (rng.next64() >> shift).max(1),
            };
            let modulus = Modulus::new(divisor);
            let near = (rng.next64() / divisor).wrapping_mul(divisor);
            for value in edges.into_iter().chain([
                rng.next64(),
                near,
                near.wrapping_sub(1),
                divisor - 1,
                divisor,
            ]) {
                assert_eq!(modulus.of(value), value % divisor, "{value} mod {divisor}");
            }
        }
    }

    #[test]
    fn of_even_values_it_equals_the_division_everywhere() {
        assert_eq!((EvenModulus::new(0), EvenModulus::new(4097)), (None, None));
        let edges = [2, 4, 6, 4096, 1 << 63, u64::MAX / 2 + 1, (1 << 63) + 2, u64::MAX - 1];
        let mut rng = Rng::new(1);
        for round in 0..40_000_u32 {
            let shift = rng.next32() % 64;
            let divisor = match edges.get(round as usize) {
                Some(edge) => *edge,
                None => (rng.next64() >> shift & !1).max(2),
            };
            let modulus = EvenModulus::new(divisor).expect("even");
            let near = (rng.next64() / divisor).wrapping_mul(divisor);
            let most = u64::MAX / divisor * divisor;
            for value in edges.into_iter().chain([
                0,
                rng.next64() & !1,
                near,
                near.wrapping_sub(2),
                most,
                most - 2,
                divisor - 2,
                divisor,
            ]) {
                assert_eq!(modulus.of(value), value % divisor, "{value} mod {divisor}");
            }
        }
    }
}
