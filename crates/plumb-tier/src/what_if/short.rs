//! Short reuse distances, from all keys for a while instead of from some keys all the time.
//!
//! What a small cache serves are references to few hot keys. Of these a sample has some and not others: one that follows
//! a twelfth of 100,000 keys is off by 0.03 there, in the mean. So from time to time all keys are followed until they are
//! too many, and distances below [`SHORT`] are counted. Each such burst stands for the time since the one before.
//!
//! What changes between bursts they do not see; the sample does, which sees the whole time. What it says of the times of bursts
//! alone is known as well: where that differs by more than chance from what it says of all, bursts are off by as much.

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

/// A sample's word against that of bursts counts from so many standard errors on: what it says of all the time is chance, too.
const CHANCE: f64 = 3.0 * std::f64::consts::SQRT_2;

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
    pub(super) sampled: Sampled,
}

/// What the sample says of the times of bursts.
#[derive(Debug)]
pub(super) struct Sampled {
    /// References that these stand for.
    pub(super) all: f64,
    /// Of these, those that the sample takes for served, by distance.
    pub(super) depths: Box<[f64; BUCKETS]>,
    /// And their variance, if one reference told nothing of the next.
    pub(super) variance: Box<[f64; BUCKETS]>,
    /// The same references as those of bursts, by group: one key may be most of a burst, and is followed or not.
    pub(super) groups: [ShortGroup; GROUPS],
    /// When the burst under way began to count: references, and those that were served by the sample.
    pub(super) since: u64,
    pub(super) before: Box<[f64; BUCKETS]>,
}

/// What the sample says of all references so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample<'a> {
    pub(super) references: u64,
    /// References that each that is followed stands for.
    pub(super) weight: f64,
    /// References that are served, by distance.
    pub(super) depths: &'a [f64; BUCKETS],
}

impl Sampled {
    fn new() -> Self {
        let none = || Box::new([0.0; BUCKETS]);
        let groups = std::array::from_fn(|_| ShortGroup::new());
        Self { all: 0.0, depths: none(), variance: none(), groups, since: 0, before: none() }
    }

    fn clear(&mut self) {
        (self.all, self.since) = (0.0, 0);
        for weights in [&mut self.depths, &mut self.variance, &mut self.before] {
            weights.fill(0.0);
        }
        for group in &mut self.groups {
            group.clear();
        }
    }

    /// A burst begins to count.
    fn begin(&mut self, sample: Sample<'_>) {
        self.since = sample.references;
        self.before.copy_from_slice(sample.depths);
    }

    /// And ends; it is of that group, and stands for so many references.
    fn end(&mut self, sample: Sample<'_>, (nth, stands_for): (usize, f64)) {
        let references = sample.references.saturating_sub(self.since) as f64;
        if references == 0.0 {
            return;
        }
        let each = stands_for / references;
        self.all += stands_for;
        let group = &mut self.groups[nth % GROUPS];
        group.all += stands_for;
        for bucket in 0..BUCKETS {
            let served = (sample.depths[bucket] - self.before[bucket]).max(0.0);
            self.depths[bucket] += each * served;
            group.depths[bucket] += each * served;
            // A count of references that stand for `weight` each.
            self.variance[bucket] += each * each * sample.weight * served;
        }
    }
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

    fn clear(&mut self) {
        self.all = 0.0;
        self.depths.fill(0.0);
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
            sampled: Sampled::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.end();
        (self.next, self.told, self.nth) = (None, 0, 0);
        for group in &mut self.groups {
            group.clear();
        }
        self.sampled.clear();
    }

    pub(super) fn bytes() -> usize {
        Order::bytes(KEYS + 1)
            + BUCKETS * (size_of::<u32>() + (2 * GROUPS + 3) * size_of::<f64>())
            + size_of::<Self>()
    }

    /// Bursts begin: up to that reference all keys were followed, and these are the distances.
    pub(super) fn begin(&mut self, references: u64, depths: &[f64]) {
        self.sampled.all = references as f64;
        self.sampled.depths.iter_mut().zip(depths).for_each(|(own, depth)| *own = *depth);
        let part = 1.0 / GROUPS as f64;
        for group in self.groups.iter_mut().chain(&mut self.sampled.groups) {
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

    /// Follows a reference to a key by its hash and its number; whether it is the first one of a burst that counts, or the last.
    #[inline]
    pub(super) fn follow(&mut self, hash: u64, nth: u64) -> Edge {
        let mut edge = Edge::None;
        if !self.under_way {
            if !self.is_due(nth) {
                return edge;
            }
            self.under_way = true;
        }
        let warm = to_u64(self.order.len()) >= SHORT || self.references >= WARM;
        if warm && self.counted == 0 {
            edge = Edge::Counts;
        }
        self.references += 1;
        let since = self.order.refer(hash);
        if warm {
            self.counted += 1;
            if let Some(depth) = since.map(|since| 1 + u64::from(since)).filter(|at| *at < SHORT) {
                self.depths[log_buckets::bucket(depth)] += 1;
            }
        }
        if self.order.len() >= KEYS || self.references >= END {
            let stands_for = self.tell(nth);
            let pause = (nth / PAUSE_PART).min(PAUSE * u64::from(self.references));
            self.end();
            self.next = Some(nth + pause);
            edge = Edge::Ended(stands_for);
        }
        edge
    }

    /// What the sample said when a burst began to count, or says at its end.
    pub(super) fn compare(&mut self, edge: Edge, sample: Sample<'_>) {
        match edge {
            Edge::None => {}
            Edge::Counts => self.sampled.begin(sample),
            // The next one is of the next group.
            Edge::Ended(stands_for) => self.sampled.end(sample, (self.nth - 1, stands_for)),
        }
    }

    /// A burst stands for all references since the one before; how many those are.
    fn tell(&mut self, nth: u64) -> f64 {
        let weight = nth.saturating_sub(self.told) as f64;
        let group = &mut self.groups[self.nth % GROUPS];
        group.all += weight;
        let each = weight / f64::from(self.counted.max(1));
        let both = group.depths.iter_mut().zip(self.depths.iter());
        both.for_each(|(own, count)| *own += each * f64::from(*count));
        (self.told, self.nth) = (nth, self.nth + 1);
        weight
    }

    /// Nothing of a burst is under way.
    fn end(&mut self) {
        self.order.clear();
        self.depths.fill(0);
        (self.under_way, self.references, self.counted) = (false, 0, 0);
    }

    /// The share of references that so many keys would serve, below [`SHORT`], and its standard error; `None` before there are
    /// bursts.
    pub(super) fn share(&self, size: u64, sample: Sample<'_>) -> Option<(f64, f64)> {
        let all: f64 = self.groups.iter().map(|group| group.all).sum();
        if self.next.is_none() || all == 0.0 {
            return None;
        }
        let size = size.min(SHORT - 1);
        // What a smaller cache serves a larger one serves, too, whatever chance says of one and not of the other.
        let ends = (0..log_buckets::bucket(size)).map(|bucket| {
            let (first, width) = log_buckets::range(bucket);
            first + width - 1
        });
        let least = ends.map(|end| self.corrected(end, all, sample).0).fold(0.0, f64::max);
        let (share, missed) = self.corrected(size, all, sample);
        let plain = self.by_bursts(size, all);
        let off = |group: &ShortGroup| (group.served(size) - plain * group.all).powi(2);
        let known = self.groups.iter().filter(|group| group.all > 0.0).count();
        let of = known as f64 / known.saturating_sub(1).max(1) as f64;
        let error = (of * self.groups.iter().map(off).sum::<f64>()).sqrt() / all;
        Some((share.max(least).min(1.0), (error.powi(2) + missed).sqrt()))
    }

    fn by_bursts(&self, size: u64, all: f64) -> f64 {
        self.groups.iter().map(|group| group.served(size)).sum::<f64>() / all
    }

    /// The squared standard error of how far the sample is off in bursts, `off` in the mean, by how that differs from one group to the
    /// next (docs/decisions/0291-one-key-may-be-most-of-a-burst.md).
    fn scatter(&self, size: u64, off: f64) -> f64 {
        let both = self.groups.iter().zip(&self.sampled.groups);
        let each = both
            .filter(|(group, _)| group.all > 0.0)
            .map(|(group, sampled)| sampled.served(size) - group.served(size) - off * group.all);
        let (known, squares) =
            each.fold((0_u32, 0.0), |(known, squares), each| (known + 1, squares + each * each));
        let of = f64::from(known) / f64::from(known.saturating_sub(1).max(1));
        of * squares / self.sampled.all.powi(2)
    }

    /// The share by bursts, and what the sample has beyond that of the times between them; and the variance of the latter.
    fn corrected(&self, size: u64, all: f64, sample: Sample<'_>) -> (f64, f64) {
        let (share, sampled) = (self.by_bursts(size, all), &self.sampled);
        if sampled.all == 0.0 || sample.references == 0 {
            return (share, 0.0);
        }
        let in_bursts = log_buckets::sum_to(sampled.depths.as_slice(), size) / sampled.all;
        let at_all = log_buckets::sum_to(sample.depths, size) / sample.references as f64;
        let counted = log_buckets::sum_to(sampled.variance.as_slice(), size) / sampled.all.powi(2);
        let variance = counted.max(self.scatter(size, in_bursts - share));
        let differs = at_all - in_bursts;
        let chance = CHANCE.powi(2) * variance;
        let part = match differs.powi(2) {
            square if square > chance => 1.0 - chance / square,
            _ => 0.0,
        };
        (share + part * differs, variance.min(differs.powi(2)))
    }
}

/// Whether a burst begins to count or ends with a reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Edge {
    None,
    /// From here on.
    Counts,
    /// It stands for so many references.
    Ended(f64),
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
            (1..=300_000).for_each(|nth| {
                short.follow(super::super::hash(nth % keys), nth);
            });
            assert!(short.nth > 1, "{} bursts", short.nth);
            let sample = Sample { references: 0, weight: 1.0, depths: &[0.0; BUCKETS] };
            let found = [999, 1007].map(|size| short.share(size, sample).expect("bursts").0);
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
        let sample = Sample { references: 0, weight: 1.0, depths: &[0.0; BUCKETS] };
        assert!(short.share(100, sample).is_none() && !short.is_due(u64::MAX));
    }
}
