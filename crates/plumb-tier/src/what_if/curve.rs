//! Reads a sketch: which share of all references a cache of so many keys serves.
//!
//! Bursts know all keys some of the time, the followed keys some of the keys all the time: what is chance in one of them is not in the
//! other. Each says how far it may be off, and counts the more the less that is (docs/decisions/0324-bursts-and-sample-by-their-errors.md).

use plumb_units::convert::floor_u64;

use super::short::{Bursts, SHORT};
use super::{GROUPS, Sketch};
use crate::log_buckets::{self, Sums};

/// Of the longest short distance so many followed keys are needed to know which references have a longer one.
const FOLLOWED_WITHIN: f64 = 8.0;
/// No share is known better than this, squared.
const LEAST: f64 = 1e-8;
/// Of these many buckets one is looked at for what smaller caches serve.
const STEP: usize = 8;

/// A share and its variance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    pub(super) share: f64,
    pub(super) variance: f64,
}

impl Estimate {
    /// Of two that know nothing of each other.
    fn and(self, other: Self) -> Self {
        let (one, two) = (1.0 / self.variance.max(LEAST), 1.0 / other.variance.max(LEAST));
        let share = (self.share * one + other.share * two) / (one + two);
        Self { share, variance: 1.0 / (one + two) }
    }
}

/// The curve of a sketch as it is now.
#[derive(Debug)]
pub(super) struct Curve {
    /// References of an equal part of the keys.
    part: f64,
    weight: f64,
    rate: f64,
    /// All keys are followed.
    is_whole: bool,
    groups: Vec<Group>,
    bursts: Option<Bursts>,
    /// Of a cache just below [`SHORT`].
    short: Option<Estimate>,
}

/// References to the followed keys of one group: all, and those that are served, by the cache.
#[derive(Debug)]
struct Group {
    all: f64,
    served: Sums,
}

impl Group {
    fn missed(&self, size: u64) -> f64 {
        self.all - self.served.to(size)
    }
}

impl Curve {
    pub(super) fn of(sketch: &Sketch) -> Self {
        let group =
            |group: &super::Group| Group { all: group.all, served: Sums::of(&group.depths) };
        let mut curve = Self {
            part: sketch.references as f64 / GROUPS as f64,
            weight: sketch.weight,
            rate: sketch.rate(),
            is_whole: sketch.threshold == u64::MAX,
            groups: sketch.groups.iter().map(group).collect(),
            bursts: sketch.short.bursts(&sketch.sampled(), sketch.references),
            short: None,
        };
        curve.short = curve.bursts.as_ref().map(|bursts| curve.short_at(SHORT - 1, bursts));
        curve
    }

    /// The share that a cache of so many keys serves, and its standard error; where the curve has a step, how far it is from what smaller
    /// and larger caches serve.
    pub(super) fn point(&self, size: u64) -> (f64, f64) {
        let Estimate { share, variance } = self.at(size);
        // What a smaller cache serves a larger one serves, too, whatever chance says of one and not of the other.
        let least = match self.is_whole {
            true => 0.0,
            false => self.ends_before(size).map(|end| self.at(end).share).fold(0.0, f64::max),
        };
        (share.max(least), variance.sqrt().max(self.between(size)))
    }

    /// The greatest values of some buckets before its own.
    fn ends_before(&self, size: u64) -> impl Iterator<Item = u64> {
        let longest = self.groups.iter().map(|group| group.served.count()).max();
        let buckets = (STEP - 1..log_buckets::bucket(size).min(longest.unwrap_or(0))).step_by(STEP);
        buckets.map(|bucket| {
            let (first, width) = log_buckets::range(bucket);
            first + width - 1
        })
    }

    /// How far the shares of caches are from its own that are smaller and larger by as much as a distance is not known. Where a step of the
    /// curve is, as that of a loop as large as the cache, groups agree and are wrong together.
    fn between(&self, size: u64) -> f64 {
        // Within a bucket, too, no distance is known.
        let unknown = match log_buckets::range(log_buckets::bucket(size)) {
            (_, 1) => return 0.0,
            _ if self.is_whole => 2.0 * log_buckets::HALF,
            _ if size < SHORT => return 0.0,
            _ => self.blur(size) + log_buckets::HALF,
        };
        let at = |factor: f64| self.at(floor_u64(size as f64 * factor)).share;
        let own = at(1.0);
        (at(1.0 + unknown) - own).abs().max((own - at((1.0 - unknown).max(0.0))).abs())
    }

    /// How far off a distance is in the sample, as a part of it: it is a count of those among its keys that are followed.
    fn blur(&self, size: u64) -> f64 {
        let counted = size as f64 / self.weight;
        ((1.0 - self.rate) / counted).sqrt()
    }

    fn at(&self, size: u64) -> Estimate {
        if size == 0 {
            return Estimate { share: 0.0, variance: 0.0 };
        }
        let Some((bursts, short)) = self.bursts.as_ref().zip(self.short) else {
            return self.by_sample(size);
        };
        if size < SHORT {
            return self.short_at(size, bursts);
        }
        let sampled = self.by_sample(size);
        if self.weight * FOLLOWED_WITHIN > SHORT as f64 {
            return Estimate { share: sampled.share.max(short.share), ..sampled };
        }
        self.beyond(size, bursts.at(SHORT - 1)).and(sampled)
    }

    /// Below [`SHORT`], where the sample knows distances less well than bursts.
    fn short_at(&self, size: u64, bursts: &Bursts) -> Estimate {
        let mut sampled = self.by_sample(size);
        let blur = self.blur(size);
        let at = |factor: f64| match floor_u64(size as f64 * factor) {
            0 => 0.0,
            size => self.by_sample(size).share,
        };
        let off = (at(1.0 + blur) - at((1.0 - blur).max(0.0))) / 2.0;
        sampled.variance += off.powi(2);
        bursts.at(size).and(sampled)
    }

    /// By the followed keys alone. Each group stands for an equal part of all references. What it has too few or too many of may be
    /// references to few very hot keys, which any cache serves (SHARDS-adj), or to some more or fewer of many that are alike, which are served
    /// as all are: how groups with more of them differ from the others tells, and is itself uncertain.
    fn by_sample(&self, size: u64) -> Estimate {
        let count = GROUPS as f64;
        let of = |group: &Group| (group.all / self.part, group.missed(size) / self.part);
        let groups: Vec<(f64, f64)> = self.groups.iter().map(of).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| groups.iter().map(of).sum::<f64>() / count;
        let (all, missed) = (mean(|group| group.0), mean(|group| group.1));
        let varies = groups.iter().map(|group| (group.0 - all).powi(2)).sum::<f64>();
        let together = groups.iter().map(|group| (group.0 - all) * (group.1 - missed)).sum::<f64>();
        let steepest = if all > 0.0 { missed / all } else { 0.0 };
        let slope = if varies > 0.0 { (together / varies).min(steepest).max(0.0) } else { 0.0 };
        let off = |group: &(f64, f64)| group.1 - missed - slope * (group.0 - all);
        let spread = groups.iter().map(|group| off(group).powi(2)).sum::<f64>();
        let share = (1.0 - missed - slope * (1.0 - all)).clamp(0.0, 1.0);
        if self.is_whole {
            return Estimate { share, variance: 0.0 };
        }
        // It may be any slope up to the steepest.
        let slopes = steepest.powi(2) / 12.0 + (slope - steepest / 2.0).powi(2);
        let open = (1.0 - all).powi(2) * slopes;
        Estimate { share, variance: spread / (count * (count - 1.0)) + open }
    }

    /// Of the references whose distance is not short, how many those are is known from bursts, and which of them are served from
    /// the followed keys.
    fn beyond(&self, size: u64, short: Estimate) -> Estimate {
        let sum = |size: u64| self.groups.iter().map(|group| group.missed(size)).sum::<f64>();
        let long = sum(SHORT - 1);
        if long <= 0.0 {
            return short;
        }
        let left = sum(size) / long;
        let off = |group: &Group| (group.missed(size) - left * group.missed(SHORT - 1)).powi(2);
        let spread = self.groups.iter().map(off).sum::<f64>();
        let of_groups = GROUPS as f64 / (GROUPS - 1) as f64;
        let own = (1.0 - short.share).powi(2) * of_groups * spread / long.powi(2);
        let share = (1.0 - (1.0 - short.share) * left).clamp(0.0, 1.0);
        Estimate { share, variance: own + left.powi(2) * short.variance }
    }
}
