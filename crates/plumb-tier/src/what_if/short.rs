//! Short reuse distances, from all keys for a while instead of from some keys all the time.
//!
//! What a small cache serves are references to few hot keys. Of these a sample has some and not others: one that follows
//! a twelfth of 100,000 keys is off by 0.03 there, in the mean. So from time to time all keys are followed until they are
//! too many, and distances below [`SHORT`] are counted. Each such burst stands for the time since the one before.

use plumb_units::convert::to_u64;

use super::order::Order;
use crate::log_buckets;

/// Distances below are short.
pub(super) const SHORT: u64 = 1024;
/// Buckets of these; `SHORT` is the first value of the next one.
pub(super) const BUCKETS: usize = 320;
/// Keys of a burst. What is not among the first `SHORT` of them is not short, so from there on references are counted.
pub(super) const KEYS: usize = 2048;
/// Or so many references: then those that are not among them have not been referred to for long.
const WARM: u32 = 1 << 14;
/// And then a burst ends, however few keys there are.
pub(super) const END: u32 = 1 << 15;
/// Bursts fall into so many groups, each an estimate of its own.
pub(super) const GROUPS: usize = 8;
/// From one burst to the next pass so many references at most for each of the burst's, and no more than one of so many of all before:
/// what comes early counts as much as what comes late.
const PAUSE: u64 = 64;
const PAUSE_PART: u64 = 8;
/// So it is never longer.
pub(super) const PAUSE_MAX: u64 = PAUSE * END as u64;

/// References that are accounted for, and what is known of those before the first burst.
#[derive(Debug)]
pub(super) struct Short {
    pub(super) order: Order,
    pub(super) under_way: bool,
    /// Of the burst under way: references, those that were counted, and of these by distance.
    pub(super) references: u32,
    pub(super) counted: u32,
    pub(super) depths: Box<[u32; BUCKETS]>,
    /// The next burst begins with this reference; `None`: the sketch follows all keys, and knows it better.
    pub(super) next: Option<u64>,
    /// Up to which reference bursts stand for all.
    pub(super) told: u64,
    pub(super) groups: [ShortGroup; GROUPS],
    /// The group of the next burst.
    pub(super) nth: usize,
}

/// What bursts of a group stand for.
#[derive(Debug)]
pub(super) struct ShortGroup {
    pub(super) all: f64,
    pub(super) depths: Box<[f64; BUCKETS]>,
}

impl ShortGroup {
    fn new() -> Self {
        Self { all: 0.0, depths: Box::new([0.0; BUCKETS]) }
    }

    fn served(&self, size: u64) -> f64 {
        log_buckets::sum_to(self.depths.as_slice(), size)
    }
}

impl Short {
    pub(super) fn new() -> Self {
        Self {
            order: Order::with_room(KEYS + 1),
            under_way: false,
            references: 0,
            counted: 0,
            depths: Box::new([0; BUCKETS]),
            next: None,
            told: 0,
            groups: std::array::from_fn(|_| ShortGroup::new()),
            nth: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.end();
        (self.next, self.told, self.nth) = (None, 0, 0);
        for group in &mut self.groups {
            group.all = 0.0;
            group.depths.fill(0.0);
        }
    }

    pub(super) fn bytes() -> usize {
        Order::bytes(KEYS + 1)
            + BUCKETS * (size_of::<u32>() + GROUPS * size_of::<f64>())
            + size_of::<Self>()
    }

    /// Bursts begin: up to that reference all keys were followed, and these are the distances.
    pub(super) fn begin(&mut self, references: u64, depths: &[f64]) {
        let part = 1.0 / GROUPS as f64;
        for group in &mut self.groups {
            group.all = part * references as f64;
            let both = group.depths.iter_mut().zip(depths);
            both.for_each(|(own, depth)| *own = part * depth);
        }
        (self.next, self.told) = (Some(references), references);
    }

    /// Whether the reference of that number, and those behind it, are to be followed.
    #[inline]
    pub(super) fn is_due(&self, nth: u64) -> bool {
        self.next.is_some_and(|next| next <= nth)
    }

    /// Follows a reference to a key by its hash; the number of the last one that was made.
    #[inline]
    pub(super) fn follow(&mut self, hash: u64, nth: u64) {
        if !self.under_way {
            if !self.is_due(nth) {
                return;
            }
            self.under_way = true;
        }
        let warm = to_u64(self.order.len()) >= SHORT || self.references >= WARM;
        self.references += 1;
        let since = self.order.refer(hash);
        if warm {
            self.counted += 1;
            if let Some(depth) = since.map(|since| 1 + u64::from(since)).filter(|at| *at < SHORT) {
                self.depths[log_buckets::bucket(depth)] += 1;
            }
        }
        if self.order.len() >= KEYS || self.references >= END {
            self.tell(nth);
            let pause = (nth / PAUSE_PART).min(PAUSE * u64::from(self.references));
            self.end();
            self.next = Some(nth + pause);
        }
    }

    /// A burst stands for all references since the one before.
    fn tell(&mut self, nth: u64) {
        let weight = nth.saturating_sub(self.told) as f64;
        let group = &mut self.groups[self.nth % GROUPS];
        group.all += weight;
        let each = weight / f64::from(self.counted.max(1));
        let both = group.depths.iter_mut().zip(self.depths.iter());
        both.for_each(|(own, count)| *own += each * f64::from(*count));
        (self.told, self.nth) = (nth, self.nth + 1);
    }

    /// Nothing of a burst is under way.
    fn end(&mut self) {
        self.order.clear();
        self.depths.fill(0);
        (self.under_way, self.references, self.counted) = (false, 0, 0);
    }

    /// The share of references that so many keys would serve, below [`SHORT`], and its standard error; `None` before there are
    /// bursts.
    pub(super) fn share(&self, size: u64) -> Option<(f64, f64)> {
        let all: f64 = self.groups.iter().map(|group| group.all).sum();
        if self.next.is_none() || all == 0.0 {
            return None;
        }
        let served = |group: &ShortGroup| group.served(size.min(SHORT - 1));
        let share = self.groups.iter().map(served).sum::<f64>() / all;
        let off = |group: &ShortGroup| (served(group) - share * group.all).powi(2);
        let known = self.groups.iter().filter(|group| group.all > 0.0).count();
        let of = known as f64 / known.saturating_sub(1).max(1) as f64;
        let error = (of * self.groups.iter().map(off).sum::<f64>()).sqrt() / all;
        Some((share, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buckets_are_those_of_short_distances() {
        assert_eq!(log_buckets::bucket(SHORT), BUCKETS);
        assert_eq!(log_buckets::range(BUCKETS).0, SHORT);
    }

    /// Round robin over 1,000 keys, and over 3,000: with fewer places than that nothing is served, with as many all. (Distances of 1,000 to
    /// 1,007 are in one bucket.)
    #[test]
    fn a_burst_counts_distances_as_they_are() {
        for (keys, wanted) in [(1000, [0.0, 1.0]), (3000, [0.0, 0.0])] {
            let mut short = Short::new();
            short.begin(0, &[]);
            (1..=300_000).for_each(|nth| short.follow(super::super::hash(nth % keys), nth));
            assert!(short.nth > 1, "{} bursts", short.nth);
            let found = [999, 1007].map(|size| short.share(size).expect("bursts").0);
            let off = found.iter().zip(wanted).any(|(found, wanted)| (found - wanted).abs() > 0.02);
            assert!(!off, "{keys} keys: {found:?}");
        }
    }

    /// Of many references few are followed.
    #[test]
    fn bursts_are_rare() {
        let (mut short, mut followed) = (Short::new(), 0_u64);
        short.begin(0, &[]);
        for nth in 1..=3_000_000_u64 {
            short.follow(super::super::hash(nth), nth);
            followed += u64::from(short.under_way && nth > 2_000_000);
        }
        assert!(followed * 50 < 1_000_000, "{followed} of the last million");
        short.clear();
        assert!(short.share(100).is_none() && !short.is_due(u64::MAX));
    }
}
