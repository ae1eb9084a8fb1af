//! Zipf's law over a number of ranks: rank r is drawn in proportion to 1 / r^theta.

use plumb_units::convert::{floor_u64, index, low_u32};

use crate::random::Random;

/// Draws ranks in constant time (Walker's alias method, tables after Vose).
#[derive(Debug, Clone)]
pub struct Zipf {
    /// Of 2^32: below it the rank itself, else its alias.
    own: Vec<u32>,
    alias: Vec<u32>,
    theta: f64,
    sum: f64,
}

impl Zipf {
    /// Over `ranks`.
    ///
    /// # Panics
    /// Without ranks, or with a theta that is no number from 0 up.
    #[must_use]
    pub fn new(ranks: u32, theta: f64) -> Self {
        assert!(ranks > 0 && theta >= 0.0 && theta.is_finite(), "a law over something");
        let weights: Vec<f64> = (1..=ranks).map(|rank| f64::from(rank).powf(-theta)).collect();
        let sum: f64 = weights.iter().sum();
        let scale = f64::from(ranks) / sum;
        let mut left: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..ranks).partition(|rank| left[index(*rank)] < 1.0);
        let (mut own, mut alias) = (vec![u32::MAX; index(ranks)], (0..ranks).collect::<Vec<u32>>());
        while let (Some(low), Some(high)) = (small.pop(), large.last().copied()) {
            let share = left[index(low)];
            own[index(low)] = u32::try_from(floor_u64(share * 4_294_967_296.0)).unwrap_or(u32::MAX);
            alias[index(low)] = high;
            left[index(high)] -= 1.0 - share;
            if left[index(high)] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Self { own, alias, theta, sum }
    }

    /// A rank from 0 on.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        let number = random.next();
        let count = u64::try_from(self.own.len()).unwrap_or(u64::MAX);
        let rank = low_u32(((number >> 32) * count) >> 32);
        match low_u32(number) < self.own[index(rank)] {
            true => rank,
            false => self.alias[index(rank)],
        }
    }

    /// The share of all draws that a rank, from 0 on, takes.
    #[must_use]
    pub fn share(&self, rank: u32) -> f64 {
        (f64::from(rank) + 1.0).powf(-self.theta) / self.sum
    }
}

/// The sums of the weights of the first so many ranks, for each of several numbers of ranks, ascending.
pub(super) fn power_sums(upto: &[u32], theta: f64) -> Vec<f64> {
    let (mut sum, mut rank) = (0.0, 0);
    let mut sum_to = |to: &u32| {
        while rank < *to {
            rank += 1;
            sum += f64::from(rank).powf(-theta);
        }
        sum
    };
    upto.iter().map(&mut sum_to).collect()
}

/// The theta at which the first so many of `ranks` take such shares of all draws: how published shares become a generator's
/// parameter. Of several, ascending, each with its share, it is that at which they are too high and too low by as much, added up.
/// `None` when none from 0 to 3 does.
#[must_use]
pub fn fit_theta(ranks: u32, tops: &[(u32, f64)]) -> Option<f64> {
    let upto: Vec<u32> = tops.iter().map(|(top, _)| *top).chain([ranks]).collect();
    let share: f64 = tops.iter().map(|(_, share)| share).sum();
    let reached = |theta: f64| {
        let sums = power_sums(&upto, theta);
        let (whole, tops) = sums.split_last().expect("that of all ranks");
        tops.iter().map(|top| top / whole).sum::<f64>()
    };
    let (mut low, mut high) = (0.0, 3.0);
    let are_some = tops.iter().all(|(top, _)| (1..ranks).contains(top));
    if !are_some || tops.is_empty() || !(reached(low)..=reached(high)).contains(&share) {
        return None;
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        match reached(middle) < share {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_drawn_as_the_law_says() {
        for theta in [0.0, 0.6, 0.99, 1.2] {
            let (zipf, mut random) = (Zipf::new(1000, theta), Random::new(6));
            let mut seen = vec![0_u32; 1000];
            for _ in 0..400_000 {
                seen[index(zipf.draw(&mut random))] += 1;
            }
            let mut chi = 0.0;
            for (rank, count) in (0..).zip(seen) {
                let wanted = zipf.share(rank) * 400_000.0;
                chi += (f64::from(count) - wanted).powi(2) / wanted;
            }
            // 999 degrees of freedom: 99.99 % are below 1171.
            assert!(chi < 1180.0, "theta {theta}: chi-squared {chi}");
        }
    }

    #[test]
    fn a_theta_is_found_for_published_shares() {
        for theta in [0.6, 0.99, 1.2] {
            let zipf = Zipf::new(10_000, theta);
            let share = |top: u32| (0..top).map(|rank| zipf.share(rank)).sum::<f64>();
            let tops = [(100, share(100)), (1000, share(1000))];
            for tops in [&tops[..1], &tops[1..], &tops] {
                let found = fit_theta(10_000, tops).expect("there is one");
                assert!((found - theta).abs() < 1e-6, "{found}, not {theta}");
            }
            // Shares that no law has both: one is as much too high as the other is too low.
            let off = [(100, tops[0].1 + 0.01), (1000, tops[1].1 - 0.01)];
            let found = fit_theta(10_000, &off).expect("there is one");
            assert!((found - theta).abs() < 1e-6, "{found}, not {theta}");
        }
        assert_eq!(fit_theta(10_000, &[(100, 0.001)]), None, "less than an equal share");
        assert_eq!((fit_theta(10, &[(10, 1.0)]), fit_theta(10, &[])), (None, None));
    }
}
