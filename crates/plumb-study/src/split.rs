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

/// Rates of two pairs of which the larger is not taken to be more, relative.
const GAIN_LEAST: f64 = 0.02;

/// The pair to measure next in the search of the fewest threads that give all there is; `None` when they are found. `pairs` are
/// ascending by threads, `rates` has what was measured of each; `start` is where the search begins, and what is lower than the
/// highest by `loss` (relative) gives less.
///
/// Throughput over threads is taken to rise, be flat and fall, in this order: its peak may lie anywhere, and be one pair wide.
/// So the search goes down by halves as long as that gives no less, and up by doublings where it gave less at once; then it
/// splits the gap below the fewest that give all, and unless all give the same, the gap above, too.
#[must_use]
pub fn next_pair(pairs: &[Pair], rates: &[Option<f64>], start: usize, loss: f64) -> Option<usize> {
    let rate = |index: usize| rates.get(index).copied().flatten();
    let Some(first) = rate(start) else { return Some(start) };
    let top = rates.iter().flatten().copied().fold(first, f64::max);
    let gives_all = |rate: f64| rate >= top * (1.0 - loss);
    let half =
        |of: usize| (0..of).rev().find(|index| 2 * pairs[*index].threads <= pairs[of].threads);
    let mut low = start;
    while let Some(index) = half(low) {
        let Some(found) = rate(index) else { return Some(index) };
        // A slope that rises towards fewer threads goes on, however far the best is.
        if !gives_all(found) && found <= rate(low)? {
            break;
        }
        low = index;
    }
    if half(start).and_then(rate).is_none_or(|found| found < first * (1.0 - loss)) {
        let mut high = start;
        let double = |of: usize| {
            (of + 1..pairs.len()).find(|index| pairs[*index].threads >= 2 * pairs[of].threads)
        };
        while let Some(index) = double(high) {
            let Some(found) = rate(index) else { return Some(index) };
            if found <= rate(high)? * (1.0 + GAIN_LEAST) {
                break;
            }
            high = index;
        }
    }
    let chosen = (0..pairs.len()).find(|index| rate(*index).is_some_and(gives_all))?;
    let below = (0..chosen).rev().find(|index| rate(*index).is_some());
    let above = (chosen + 1..pairs.len()).find(|index| rate(*index).is_some());
    let from = below.map_or(0, |index| index + 1);
    let lower = (from < chosen).then(|| usize::midpoint(from, chosen));
    let is_flat = rates.iter().flatten().all(|rate| gives_all(*rate));
    let higher = above.filter(|above| !is_flat && *above > chosen + 1);
    let higher = higher.map(|above| usize::midpoint(chosen, above));
    // A peak is likelier on the side that falls less.
    let side = |index: Option<usize>| index.and_then(rate).unwrap_or(f64::INFINITY);
    match side(above) > side(below) && !gives_all(side(above)) {
        true => higher.or(lower),
        false => lower.or(higher),
    }
}

/// The pair with most threads, where of those measured so far the one with most gives all there is: nothing says that more
/// would not give more, however far, even where fewer do as well. Asked when [`next_pair`] has found what it looks for;
/// what is measured there may open that search again.
#[must_use]
pub fn far_corner(rates: &[Option<f64>], loss: f64) -> Option<usize> {
    let top = rates.iter().flatten().copied().fold(0.0, f64::max);
    let most = rates.iter().rposition(Option::is_some)?;
    let is_open = most + 1 < rates.len() && rates[most]? >= top * (1.0 - loss);
    is_open.then(|| rates.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches rates over threads: threads that were measured beside the 8 to begin with, in order, and those chosen.
    fn searched(outstanding: u64, rate: impl Fn(u64) -> f64) -> (Vec<u64>, u64) {
        searched_with(outstanding, rate, |_, _| None)
    }

    /// The same, with what is looked at where that search ends.
    fn searched_with(
        outstanding: u64,
        rate: impl Fn(u64) -> f64,
        more: fn(&[Option<f64>], f64) -> Option<usize>,
    ) -> (Vec<u64>, u64) {
        let pairs = pairs(outstanding, 1, 64, outstanding);
        let start = pairs.iter().position(|pair| pair.threads == 8).expect("a divisor");
        let mut rates: Vec<Option<f64>> = vec![None; pairs.len()];
        let mut order = Vec::new();
        let next = |rates: &[Option<f64>]| {
            next_pair(&pairs, rates, start, 0.02).or_else(|| more(rates, 0.02))
        };
        while let Some(index) = next(&rates) {
            assert_eq!(rates[index], None, "measured again");
            rates[index] = Some(rate(pairs[index].threads));
            order.push(pairs[index].threads);
        }
        let top = rates.iter().flatten().copied().fold(0.0, f64::max);
        let chosen = rates.iter().position(|rate| rate.is_some_and(|rate| rate >= 0.98 * top));
        (order.split_off(1), pairs[chosen.expect("some were measured")].threads)
    }

    #[test]
    fn a_peak_over_threads_is_found_wherever_it_is() {
        // As many threads as there may be cost nothing.
        assert_eq!(searched(120, |_| 1.0), (vec![4, 2, 1], 1));
        // As in table 4: two stand out, and one gives what all the others give.
        let table_4 = |threads| match threads {
            1 => 57_499.0,
            2 => 62_619.0,
            3 => 57_425.0,
            _ => 56_500.0,
        };
        assert_eq!(searched(120, table_4), (vec![4, 2, 1, 3], 2));
        // So many threads are needed, or best; each one more costs more or less.
        for loss in [0.0, 0.04, 0.15] {
            for best in [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20] {
                let rate = |threads: u64| {
                    let more = i32::try_from(threads.saturating_sub(best)).expect("few");
                    (threads.min(best) as f64 / best as f64) * f64::powi(1.0 - loss, more)
                };
                let (order, found) = searched(120, rate);
                assert_eq!(found, best, "loss {loss}: {order:?}");
                assert!(order.len() <= 6, "best {best}, loss {loss}: {order:?}");
            }
        }
    }

    #[test]
    fn more_threads_are_looked_at_where_nothing_was_lost() {
        // Each doubling beyond eight brings 4 %, which no number below tells.
        let growing = |threads: u64| f64::powf(1.04, (threads.max(8) as f64 / 8.0).log2());
        assert_eq!(searched(120, growing).1, 1);
        let (order, found) = searched_with(120, growing, far_corner);
        assert_eq!((order, found), (vec![4, 2, 1, 60, 20, 30, 40], 60));
        // One run more where threads cost nothing, and none where as many as were run cost something.
        assert_eq!(searched_with(120, |_| 1.0, far_corner), (vec![4, 2, 1, 60], 1));
        let costly = |threads: u64| if threads > 4 { 0.9 } else { 1.0 };
        assert_eq!(searched_with(120, costly, far_corner), searched(120, costly));
        // All there are were run.
        assert_eq!(searched_with(8, |_| 1.0, far_corner), (vec![4, 2, 1], 1));
    }

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
