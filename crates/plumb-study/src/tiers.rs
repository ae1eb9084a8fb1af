//! What a tier of fast devices did (method, section 7): cases told apart by figures alone.

/// What throughput says of where a file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierCase {
    /// As in the baseline, within 2 %: the file is in the fast tier.
    Fast,
    /// More than 80 % below the baseline, with the file off the fast tier: no fault of a device.
    Miss,
    /// Below the baseline, with a cause that figures alone do not tell.
    Slower,
    /// Above the baseline.
    Faster,
}

/// A drop beyond this is a tier miss.
const MISS: f64 = 0.80;
/// What counts as the same.
const SAME: f64 = 0.02;

/// The case of a result against a baseline, both in I/Os per second. `is_off` says whether the file, or a part of
/// it, is known to be off the fast tier.
#[must_use]
pub fn tier_case(baseline: f64, now: f64, is_off: bool) -> TierCase {
    let change = now / baseline - 1.0;
    if change < -MISS && is_off {
        TierCase::Miss
    } else if change < -SAME {
        TierCase::Slower
    } else if change > SAME {
        TierCase::Faster
    } else {
        TierCase::Fast
    }
}

/// Whether a file of that size cannot be made wholly on the fast tier: to be told before it is made.
#[must_use]
pub fn spills(file_bytes: u64, copies: u64, free_on_fast: u64) -> bool {
    file_bytes.saturating_mul(copies) > free_on_fast
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identities::per_device;

    #[test]
    fn the_published_cases() {
        // A new space, all in the fast tier: 120 429 on four devices.
        assert_eq!(per_device(120_429.0, 1.0, 4.0).round(), 30_107.0);
        // The fast tier is full: 1 628, 98.6 % less.
        assert_eq!(tier_case(120_429.0, 1628.0, true), TierCase::Miss);
        assert_eq!(tier_case(120_429.0, 1628.0, false), TierCase::Slower);
        assert_eq!((1628.0_f64 / 120_429.0 - 1.0).mul_add(1000.0, 0.0).round(), -986.0);
        // After promotion: 115 870 over all, 120 000 without the first 30 s, within 0.4 %.
        assert_eq!(tier_case(120_429.0, 120_000.0, false), TierCase::Fast);
        assert!((120_000.0_f64 / 120_429.0 - 1.0).abs() < 0.004);
        assert_eq!(tier_case(120_429.0, 115_870.0, false), TierCase::Slower);
        assert_eq!(tier_case(100.0, 103.0, false), TierCase::Faster);
        assert!(spills(64 << 30, 2, 133_143_986_176) && !spills(32 << 30, 2, 133_143_986_176));
    }
}
