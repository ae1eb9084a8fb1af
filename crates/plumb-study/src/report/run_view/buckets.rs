//! Latencies as counts of values that lie close together.

/// (lowest value in ns, values in the bucket, count), ascending.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Buckets(Vec<(f64, f64, u64)>);

impl Buckets {
    /// Buckets in any order; those of one place are joined.
    #[must_use]
    pub fn new(mut buckets: Vec<(f64, f64, u64)>) -> Self {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut joined: Vec<(f64, f64, u64)> = Vec::with_capacity(buckets.len());
        for (low, width, count) in buckets {
            match joined.last_mut() {
                #[expect(clippy::float_cmp, reason = "places of buckets are whole numbers")]
                Some(last) if last.0 == low => last.2 += count,
                _ => joined.push((low, width, count)),
            }
        }
        Self(joined)
    }

    /// These and others.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).copied().collect())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(.., count)| count).sum()
    }

    /// (milliseconds, count) of each bucket, its middle.
    pub fn middles(&self) -> impl Iterator<Item = (f64, u64)> {
        self.0.iter().map(|(low, width, count)| (middle(*low, *width), *count))
    }

    /// Mean of the `count` largest values in milliseconds, of all where there are fewer; `None` without any.
    #[must_use]
    pub fn mean_of_largest(&self, count: u64) -> Option<f64> {
        let wanted = count.min(self.count());
        let (mut left, mut sum) = (wanted, 0.0);
        for (low, width, held) in self.0.iter().rev() {
            let taken = left.min(*held);
            sum += taken as f64 * middle(*low, *width);
            left -= taken;
        }
        (wanted > 0).then(|| sum / wanted as f64)
    }

    /// The value of a rank from the smallest, from 1, in milliseconds; `None` beyond the last.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<f64> {
        let mut below = 0;
        self.0.iter().find_map(|(low, width, count)| {
            below += count;
            (below >= rank && rank > 0).then(|| middle(*low, *width))
        })
    }
}

/// The middle of a bucket in milliseconds.
fn middle(low: f64, width: f64) -> f64 {
    (low + (width - 1.0).max(0.0) / 2.0) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_found_across_buckets() {
        let buckets = Buckets::new(vec![(3e6, 1.0, 2), (1e6, 0.0, 5), (3e6, 1.0, 1)]);
        assert_eq!(buckets.count(), 8);
        for (rank, value) in
            [(1, Some(1.0)), (5, Some(1.0)), (6, Some(3.0)), (8, Some(3.0)), (9, None), (0, None)]
        {
            assert_eq!(buckets.at_rank(rank), value, "{rank}");
        }
        assert_eq!(buckets.and(&buckets).count(), 16);
        for (count, wanted) in [(1, Some(3.0)), (4, Some(2.5)), (99, Some(1.75)), (0, None)] {
            assert_eq!(buckets.mean_of_largest(count), wanted, "{count}");
        }
        assert_eq!(Buckets::new(Vec::new()).mean_of_largest(3), None);
    }
}
