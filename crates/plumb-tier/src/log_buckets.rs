//! Buckets that grow with what they hold, so many to each doubling: 64 where nothing else is said, exact to 127.

use plumb_units::convert::{to_u64, to_usize};

/// A power of two: 64 buckets of a doubling, each within 1.6 % of what it holds.
pub(crate) const COARSE: u32 = 6;
/// How far from the middle of its bucket a value is at most, as a part of it, with so many.
pub(crate) const HALF: f64 = 0.5 / (1 << COARSE) as f64;
/// 1,024 of them, within 0.1 %: three digits.
pub(crate) const FINE: u32 = 10;
/// A power of two: values from it on share the last bucket.
const END: u32 = 46;

/// How many buckets there are.
pub(crate) const COUNT: usize = count(COARSE);

/// How many there are with `1 << bits` to a doubling.
pub(crate) const fn count(bits: u32) -> usize {
    (2 << bits) + ((END - bits - 1) as usize) * (1 << bits) + 1
}

/// The bucket of a value.
#[inline]
pub(crate) fn bucket(value: u64) -> usize {
    bucket_of::<COARSE>(value)
}

/// The same with `1 << BITS` to a doubling.
#[inline]
pub(crate) fn bucket_of<const BITS: u32>(value: u64) -> usize {
    // Up to here a bucket is one value.
    if value < 2 << BITS {
        return to_usize(value);
    }
    let value = value.min(1 << END);
    let doubling = u64::from(value.ilog2() - BITS - 1);
    to_usize((1 << BITS) + (doubling << BITS) + (value >> (doubling + 1)))
}

/// The least value of a bucket, and how many values it holds.
pub(crate) fn range(bucket: usize) -> (u64, u64) {
    range_of::<COARSE>(bucket)
}

/// The same with `1 << BITS` to a doubling.
pub(crate) fn range_of<const BITS: u32>(bucket: usize) -> (u64, u64) {
    let nth = to_u64(bucket);
    let Some(over) = nth.checked_sub(2 << BITS) else { return (nth, 1) };
    let (doubling, within) = (over >> BITS, over & ((1 << BITS) - 1));
    (((1 << BITS) + within) << (doubling + 1), 2 << doubling)
}

/// Of weights by bucket, those of values up to one; of its own bucket the part. Buckets that are not there have none.
pub(crate) fn sum_to(weights: &[f64], value: u64) -> f64 {
    let end = bucket(value);
    let (first, width) = range(end);
    let within = (value - first + 1).min(width) as f64 / width as f64;
    let before = &weights[..end.min(weights.len())];
    before.iter().sum::<f64>() + weights.get(end).map_or(0.0, |own| own * within)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers<const BITS: u32>() {
        let mut next = 0;
        for nth in 0..count(BITS) - 1 {
            let (first, width) = range_of::<BITS>(nth);
            assert_eq!(first, next, "bucket {nth}");
            let ends = (bucket_of::<BITS>(first), bucket_of::<BITS>(first + width - 1));
            assert_eq!(ends, (nth, nth));
            assert!(nth < 2 << BITS || width << BITS <= first);
            next = first + width;
        }
        assert_eq!((next, bucket_of::<BITS>(u64::MAX)), (1 << END, count(BITS) - 1));
    }

    #[test]
    fn buckets_cover_every_value_in_order() {
        covers::<COARSE>();
        covers::<FINE>();
        assert_eq!((COUNT, bucket(300), range(bucket(300))), (2625, bucket_of::<6>(300), (300, 4)));
    }
}
