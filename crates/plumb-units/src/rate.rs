//! Exact rates.

/// Bytes per time as an exact fraction: never rounded to "no limit".
///
/// A limit of `n` IOPS at block size `b` is `n·b` bytes per 1000 ms; `n` bytes per millisecond is `n`
/// per 1 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    bytes: u128,
    per_nanos: u128,
}

impl Rate {
    /// `None` for a rate of zero.
    #[must_use]
    pub fn bytes_per_milli(bytes: u64) -> Option<Self> {
        (bytes > 0).then(|| Self { bytes: bytes.into(), per_nanos: 1_000_000 })
    }

    /// `None` for a rate of zero.
    #[must_use]
    pub fn iops(iops: u64, block: u32) -> Option<Self> {
        let bytes = u128::from(iops) * u128::from(block);
        (bytes > 0).then_some(Self { bytes, per_nanos: 1_000_000_000 })
    }

    /// Whether `issued` bytes may have been issued `elapsed_nanos` after the start.
    #[inline]
    #[must_use]
    pub fn allows(self, elapsed_nanos: u64, issued: u64) -> bool {
        u128::from(elapsed_nanos) * self.bytes >= u128::from(issued) * self.per_nanos
    }

    /// The first nanosecond at which `issued` bytes may have been issued.
    #[must_use]
    pub fn due_nanos(self, issued: u64) -> u64 {
        let due = (u128::from(issued) * self.per_nanos).div_ceil(self.bytes);
        u64::try_from(due).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tiny_rate_is_still_a_limit() {
        // 512-byte blocks at 1 IOPS: 0.512 bytes per millisecond, 0 in whole bytes (D-04).
        let rate = Rate::iops(1, 512).expect("not zero");
        assert!(!rate.allows(999_999_999, 512));
        assert!(rate.allows(1_000_000_000, 512));
        assert_eq!(rate.due_nanos(512), 1_000_000_000);
    }
}
