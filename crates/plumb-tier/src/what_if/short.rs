//! Short reuse distances, from all keys for a while instead of from some keys all the time.
//!
//! What a small cache serves are references to few hot keys. Of these a sample has some and not others: one that follows
//! a twelfth of 100,000 keys is off by 0.03 there, in the mean. So from time to time all keys are followed until they are
//! too many, and distances below [`SHORT`] are counted. Each such burst stands for the time since the one before.
//!
//! What changes between bursts they do not see; the sample does, which sees the whole time. What it says of the times of bursts
//! alone is known as well: where that differs by more than chance from what it says of all, bursts are off by as much.

use plumb_units::convert::to_u64;

use super::curve::Estimate;
use super::order::Order;
use crate::log_buckets::{self, Sums};

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

    /// What they say so far, when the sample says that of all so many references; `None` before there are any.
    pub(super) fn bursts(&self, depths: &[f64; BUCKETS], references: u64) -> Option<Bursts> {
        let all: f64 = self.groups.iter().map(|group| group.all).sum();
        if self.next.is_none() || all == 0.0 {
            return None;
        }
        let sums = |group: &ShortGroup| (group.all, Sums::of(group.depths.as_slice()));
        let sampled = (self.sampled.all > 0.0 && references > 0).then(|| SampledSums {
            all: self.sampled.all,
            served: Sums::of(self.sampled.depths.as_slice()),
            variance: Sums::of(self.sampled.variance.as_slice()),
            groups: self.sampled.groups.iter().map(|group| sums(group).1).collect(),
            references: references as f64,
            at_all: Sums::of(depths),
        });
        Some(Bursts { all, groups: self.groups.iter().map(sums).collect(), sampled })
    }
}

/// What bursts say of short distances.
#[derive(Debug)]
pub(super) struct Bursts {
    all: f64,
    /// References, and those that are served.
    groups: Vec<(f64, Sums)>,
    sampled: Option<SampledSums>,
}

/// What the sample says of the same references, and of all.
#[derive(Debug)]
struct SampledSums {
    all: f64,
    served: Sums,
    variance: Sums,
    groups: Vec<Sums>,
    references: f64,
    at_all: Sums,
}

impl Bursts {
    /// The share of references that so many keys would serve, below [`SHORT`]. Bursts that are alike may have missed a part of the load:
    /// they are off by as much as the sample says another thing of their times than of all, beyond what is chance in that.
    pub(super) fn at(&self, size: u64) -> Estimate {
        let share = self.groups.iter().map(|(_, served)| served.to(size)).sum::<f64>() / self.all;
        let spread = self.scatter(|(all, served), _| served.to(size) - share * all);
        let own = spread / self.all.powi(2);
        let Some(sampled) = &self.sampled else { return Estimate { share, variance: own } };
        let in_bursts = sampled.served.to(size) / sampled.all;
        let differs = sampled.at_all.to(size) / sampled.references - in_bursts;
        let counted = sampled.variance.to(size) / sampled.all.powi(2);
        // One key may be most of a burst, and is followed or not (docs/decisions/0291-one-key-may-be-most-of-a-burst.md).
        let off = in_bursts - share;
        let spread = self.scatter(|(all, served), nth| {
            sampled.groups[nth].to(size) - served.to(size) - off * all
        });
        let chance = counted.max(spread / sampled.all.powi(2));
        Estimate { share, variance: own.max(differs.powi(2) - chance) }
    }

    /// The variance of a sum over the groups by how far each is off, and which one it is.
    fn scatter(&self, off: impl Fn(&(f64, Sums), usize) -> f64) -> f64 {
        let known = self.groups.iter().zip(0..).filter(|((all, _), _)| *all > 0.0);
        let (known, squares) = known.fold((0_u32, 0.0), |(known, squares), (group, nth)| {
            (known + 1, squares + off(group, nth).powi(2))
        });
        squares * f64::from(known) / f64::from(known.saturating_sub(1).max(1))
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
            let bursts = short.bursts(&[0.0; BUCKETS], 0).expect("bursts");
            let found = [999, 1007].map(|size| bursts.at(size).share);
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
        assert!(short.bursts(&[0.0; BUCKETS], 0).is_none() && !short.is_due(u64::MAX));
    }
}
