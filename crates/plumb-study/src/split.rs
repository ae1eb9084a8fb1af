//! The same number of outstanding I/Os, split between threads in different ways (method, 2.7).

/// Threads and outstanding I/Os per thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Threads per file.
    pub threads: u64,
    /// Outstanding I/Os per thread.
    pub o: u64,
}

/// All pairs with `F·t·o = N` within the limits, threads ascending.
#[must_use]
pub fn pairs(outstanding: u64, files: u64, threads_most: u64, o_most: u64) -> Vec<Pair> {
    if files == 0 || !outstanding.is_multiple_of(files) {
        return Vec::new();
    }
    let each = outstanding / files;
    (1..=each.min(threads_most))
        .filter(|threads| each.is_multiple_of(*threads))
        .map(|threads| Pair { threads, o: each / threads })
        .filter(|pair| pair.o <= o_most)
        .collect()
}

/// N itself, or where it has fewer than four pairs within the limits, the number within ±5 % that has
/// most; the nearest of several.
#[must_use]
pub fn divisible(outstanding: u64, files: u64, threads_most: u64, o_most: u64) -> u64 {
    let count = |n: u64| pairs(n, files, threads_most, o_most).len();
    if count(outstanding) >= 4 {
        return outstanding;
    }
    let reach = outstanding / 20;
    let range = outstanding.saturating_sub(reach).max(1)..=outstanding + reach;
    let key = |n: &u64| (count(*n), std::cmp::Reverse(n.abs_diff(outstanding)));
    range.max_by_key(key).unwrap_or(outstanding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_120() {
        assert_eq!(pairs(120, 1, 120, 120).len(), 16);
        let run: Vec<u64> = pairs(120, 1, 24, 120).iter().map(|pair| pair.threads).collect();
        assert_eq!(run, [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 24]);
        assert_eq!(pairs(120, 2, 4, 20), [Pair { threads: 3, o: 20 }, Pair { threads: 4, o: 15 }]);
        assert!(pairs(5, 2, 8, 8).is_empty());
        assert_eq!(divisible(120, 1, 24, 120), 120);
        assert_eq!(divisible(127, 1, 64, 128), 126);
        assert_eq!(divisible(3, 1, 64, 128), 3);
    }
}
