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

/// Sums of weights that go by bucket.
#[derive(Debug)]
pub(crate) struct Sums(Vec<f64>);

impl Sums {
    /// Of these; buckets that are not there have none.
    pub(crate) fn of(weights: &[f64]) -> Self {
        let mut sum = 0.0;
        let upto = weights.iter().map(|weight| {
            sum += weight;
            sum
        });
        Self(upto.collect())
    }

    /// How many buckets there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Those of values up to one; of its own bucket the part.
    pub(crate) fn to(&self, value: u64) -> f64 {
        let end = bucket(value);
        let Some(last) = self.0.get(end) else { return self.0.last().copied().unwrap_or(0.0) };
        let before = end.checked_sub(1).map_or(0.0, |before| self.0[before]);
        let (first, width) = range(end);
        let within = (value - first + 1).min(width) as f64 / width as f64;
        before + (last - before) * within
    }
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

    #[test]
    fn sums_are_those_of_what_lies_before() {
        let weights: Vec<f64> = (0..200_u32).map(f64::from).collect();
        let sums = Sums::of(&weights);
        for value in 0..500 {
            let end = bucket(value);
            let whole: f64 = weights[..end.min(200)].iter().sum();
            let (first, width) = range(end);
            let own =
                weights.get(end).map_or(0.0, |own| own * (value - first + 1) as f64 / width as f64);
            assert!((sums.to(value) - whole - own).abs() < 1e-6, "{value}");
        }
        assert_eq!((sums.count(), sums.to(u64::MAX), Sums::of(&[]).to(7)), (200, 19_900.0, 0.0));
    }
}
