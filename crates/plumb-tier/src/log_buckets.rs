//! Buckets that grow with what they hold: exact to 127, then 64 to each doubling.

use plumb_units::convert::{to_u64, to_usize};

/// Up to here a bucket is one value.
const EXACT: u64 = 128;
/// Buckets of a doubling.
const PER_DOUBLING: u64 = 64;
/// Values from here on share the last bucket.
const END: u64 = 1 << 46;

/// How many buckets there are.
pub(crate) const COUNT: usize = 128 + 39 * 64 + 1;

/// The bucket of a value.
#[inline]
pub(crate) fn bucket(value: u64) -> usize {
    if value < EXACT {
        return to_usize(value);
    }
    let value = value.min(END);
    let doubling = u64::from(value.ilog2()) - 7;
    to_usize(EXACT + doubling * PER_DOUBLING + (value >> (doubling + 1)) - PER_DOUBLING)
}

/// The least value of a bucket, and how many values it holds.
pub(crate) fn range(bucket: usize) -> (u64, u64) {
    let nth = to_u64(bucket);
    if nth < EXACT {
        return (nth, 1);
    }
    let (doubling, within) = ((nth - EXACT) / PER_DOUBLING, (nth - EXACT) % PER_DOUBLING);
    ((PER_DOUBLING + within) << (doubling + 1), 2 << doubling)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_every_value_in_order() {
        let mut next = 0;
        for nth in 0..COUNT - 1 {
            let (first, width) = range(nth);
            assert_eq!(first, next, "bucket {nth}");
            assert_eq!((bucket(first), bucket(first + width - 1)), (nth, nth));
            assert!(nth < 128 || width as f64 / first as f64 <= 1.0 / 64.0);
            next = first + width;
        }
        assert_eq!((next, bucket(u64::MAX)), (END, COUNT - 1));
    }
}
