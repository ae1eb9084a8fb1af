//! How much hotter an extent must be to be worth a move (10.3).

use plumb_units::Nanos;

use super::lines::{HostLine, LineTimes};
use crate::heat::HeatMap;

/// What a move and an I/O take, as measured on the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveTimes {
    /// An extent read from or written to the Capacity tier.
    pub move_capacity: Nanos,
    /// An extent read from or written to the Performance tier.
    pub move_performance: Nanos,
    /// A random I/O on the Capacity tier.
    pub io_capacity: Nanos,
    /// A random I/O on the Performance tier.
    pub io_performance: Nanos,
}

impl MoveTimes {
    /// A 10K rpm disk and a SATA or SAS SSD: `sas-10k-300` and `sas-ssd-200` of spec 19.1, an extent of 1 MiB. The disk
    /// takes 3.5 ms to get there, 3 ms to turn and 8.7 ms for the data; the SSD 2.1 ms at 500 MB/s; 412 random I/Os per
    /// second against 30,107.
    #[must_use]
    pub fn reference() -> Self {
        Self {
            move_capacity: Nanos(15_200_000),
            move_performance: Nanos(2_100_000),
            io_capacity: Nanos(2_427_000),
            io_performance: Nanos(33_000),
        }
    }

    /// Random I/Os that have to follow until a move has paid for itself; without end where the Capacity tier is no
    /// slower (10.3).
    #[must_use]
    pub fn break_even(&self) -> f32 {
        let saved = self.io_capacity.since(self.io_performance).0;
        if saved == 0 {
            return f32::INFINITY;
        }
        (self.move_capacity.0.saturating_add(self.move_performance.0)) as f32 / saved as f32
    }
}

/// Random I/Os of a tier from which on their time counts as measured.
const IOS_ENOUGH: u64 = 1000;
/// The same of bytes of moves.
const BYTES_ENOUGH: u64 = 64 << 20;
/// A random I/O takes so many times as long on the Capacity tier at least. Where it does not, either tier is not what it is
/// called, or the load was such that its times say nothing about the disks.
const SLOWER: u64 = 2;
/// What any bar lies between, in I/Os.
const LEAST: f32 = 1.0;
const MOST: f32 = 10_000.0;

/// What the disks of one tier were measured to be busy with, each for itself and added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierMeasure {
    /// Random I/Os, of at most 64 KiB.
    pub ios: u64,
    /// Nanoseconds that they took.
    pub io_ns: u64,
    /// Bytes read or written by moves.
    pub moved_bytes: u64,
    /// Nanoseconds that these took.
    pub move_ns: u64,
    /// The random I/Os by how many were in line.
    pub lines: LineTimes,
}

impl TierMeasure {
    /// What a random I/O takes of a disk's time; `None` while there were too few.
    #[must_use]
    pub fn io(&self) -> Option<Nanos> {
        let each = self.io_ns / self.ios.max(1);
        (self.ios >= IOS_ENOUGH && each > 0).then_some(Nanos(each))
    }

    /// What an extent that moves takes of the disks' time, once; `None` while too few did.
    #[must_use]
    pub fn moved(&self, extent_bytes: u64) -> Option<Nanos> {
        let all = u128::from(self.move_ns) * u128::from(extent_bytes);
        let each = u64::try_from(all / u128::from(self.moved_bytes.max(1))).unwrap_or(u64::MAX);
        (self.moved_bytes >= BYTES_ENOUGH && each > 0).then_some(Nanos(each))
    }

    /// What of this is not enough, from what was measured before.
    fn or(&self, before: &Self) -> Self {
        let ios = if self.io().is_some() { self } else { before };
        let moves = if self.moved(1 << 20).is_some() { self } else { before };
        Self {
            ios: ios.ios,
            io_ns: ios.io_ns,
            lines: ios.lines,
            moved_bytes: moves.moved_bytes,
            move_ns: moves.move_ns,
        }
    }
}

/// What a pool's own disks were measured to take, for one of its virtual disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// Those of the Performance tier.
    pub performance: TierMeasure,
    /// Those of the Capacity tier.
    pub capacity: TierMeasure,
    /// How many I/Os hosts have under way.
    pub hosts: HostLine,
}

impl Measured {
    /// What of this is not enough, from what was measured before.
    #[must_use]
    pub fn or(&self, before: &Self) -> Self {
        Self {
            performance: self.performance.or(&before.performance),
            capacity: self.capacity.or(&before.capacity),
            hosts: if self.hosts.mean().is_some() { self.hosts } else { before.hosts },
        }
    }

    /// The bar for extents of so many bytes, and what it comes from.
    #[must_use]
    pub fn worth(&self, extent_bytes: u64) -> Worth {
        let mut times = MoveTimes::reference();
        let reference = |basis| Worth { times: MoveTimes::reference(), basis };
        let (Some(fast), Some(slow)) = (self.performance.io(), self.capacity.io()) else {
            return reference(Basis::Reference);
        };
        if slow.0 < fast.0.saturating_mul(SLOWER) {
            return reference(Basis::Alike { performance: fast, capacity: slow });
        }
        (times.io_performance, times.io_capacity) = (fast, slow);
        let moved = [&self.performance, &self.capacity].map(|tier| tier.moved(extent_bytes));
        times.move_performance = moved[0].unwrap_or(times.move_performance);
        times.move_capacity = moved[1].unwrap_or(times.move_capacity);
        let basis = match moved.iter().all(Option::is_some) {
            true => Basis::Measured,
            false => Basis::MeasuredIos,
        };
        Worth { times, basis }
    }
}

/// Where the times behind a bar come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// All from the pool's disks.
    Measured,
    /// Those of I/Os from the pool's disks; too few extents have moved to tell what that takes.
    MeasuredIos,
    /// None: too little was measured.
    Reference,
    /// None: by what was measured an I/O takes about as long on either tier.
    Alike {
        /// On this one.
        performance: Nanos,
        /// And on that.
        capacity: Nanos,
    },
}

impl Basis {
    /// As reports call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured devices",
            Self::MeasuredIos => "measured devices, moves as of reference devices",
            Self::Reference | Self::Alike { .. } => "reference devices",
        }
    }
}

/// What makes a move worth it, and how that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worth {
    /// Device times.
    pub times: MoveTimes,
    /// Whose.
    pub basis: Basis,
}

impl Worth {
    /// That of reference devices.
    #[must_use]
    pub fn reference() -> Self {
        Self { times: MoveTimes::reference(), basis: Basis::Reference }
    }

    /// `A`, between 1 and 10,000 I/Os whatever was measured.
    #[must_use]
    pub fn break_even(&self) -> f32 {
        self.times.break_even().clamp(LEAST, MOST)
    }
}

/// So many standard deviations of what chance makes of two scores a gain has to be: with ten thousands of extents some pairs are
/// four apart on any day, though none is hotter than another.
const DEVIATIONS: f32 = 5.0;
/// While what lies on the Performance tier came there first, and not for its heat, half as many do.
const DEVIATIONS_AT_FIRST: f32 = DEVIATIONS / 2.0;
/// A gain of so many times as many is no chance on any day.
pub(super) const SURELY: f32 = 2.0;
/// The variance of a score over its mean: I/Os by chance, those of each hour counted with a weight that is halved in a day or so,
/// come to 1 / (1 + weight of an hour ago) of it.
const VARIANCE: f32 = 0.5;

/// A score, and how many times as much as that of single I/Os it varies by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sure {
    /// I/Os of score.
    pub score: f32,
    /// 1 or more.
    pub dispersion: f32,
}

/// How much two scores vary by chance, in I/Os that come one by one. If the extents are alike in the long run, each is off by as much as that of
/// both is which is known better: an extent that gets bunches may have had none of late. And by as much as its own score says: it may
/// have had the few that there were.
fn vary(hot: Sure, victim: Sure) -> f32 {
    let alike = hot.score * victim.dispersion + victim.score * hot.dispersion;
    let own = hot.score * hot.dispersion + victim.score * victim.dispersion;
    alike.max(own)
}

/// The bar that a gain has to clear.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// `A`: the least gain, in I/Os of score.
    pub break_even: f32,
    /// `H`: the least gain as a share of the victim's score.
    pub hysteresis: f32,
    /// The least gain over a victim, in standard deviations of what chance makes of both scores.
    pub deviations: f32,
    /// Times which the bar is raised: 1, or 2 while the thrash guard is on or in continuous mode.
    pub raised: f32,
}

impl Bar {
    /// `A` of these devices, `H` = 0.25, and what chance makes of this heat: half as many deviations until plans by it have put extents
    /// where they are.
    #[must_use]
    pub fn of(worth: &Worth, heat: &HeatMap) -> Self {
        let deviations = if heat.is_settled() { DEVIATIONS } else { DEVIATIONS_AT_FIRST };
        let break_even = worth.break_even();
        Self { break_even, hysteresis: 0.25, deviations, raised: 1.0 }
    }

    /// `A` of the reference devices.
    #[must_use]
    pub fn reference(heat: &HeatMap) -> Self {
        Self::of(&Worth::reference(), heat)
    }

    /// No gain is too small.
    #[must_use]
    pub fn none() -> Self {
        Self { break_even: 0.0, hysteresis: 0.0, deviations: 0.0, raised: 1.0 }
    }

    /// The least score for a place that nobody holds.
    #[must_use]
    pub fn for_free(&self) -> f32 {
        self.break_even * self.raised
    }

    /// The least gain of an extent over a victim. With figures of chance that are alike, whoever is colder than one that does not clear it
    /// does not, either, nor does whoever would displace a warmer one.
    #[must_use]
    pub fn over(&self, hot: Sure, victim: Sure) -> f32 {
        let pays = self.break_even.max(self.hysteresis * victim.score) * self.raised;
        // Twice as sure of it is twice as many I/Os, not twice as many deviations.
        let vary = VARIANCE * self.raised * vary(hot, victim);
        let chance = self.deviations * vary.sqrt();
        pays.max(chance)
    }

    /// Whether a gain is so many times as many deviations as [`Bar::over`] asks for.
    #[must_use]
    pub(super) fn is_beyond(&self, hot: Sure, victim: Sure, times: f32) -> bool {
        let vary = VARIANCE * self.raised * vary(hot, victim);
        hot.score - victim.score >= times * self.deviations * vary.sqrt()
    }

    /// So many times as high.
    #[must_use]
    pub fn times(&self, times: f32) -> Self {
        Self { raised: self.raised * times, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_devices_break_even_after_some_seven_ios() {
        let count = MoveTimes::reference().break_even();
        assert!((4.0..8.0).contains(&count), "{count}");
        let same = MoveTimes { io_capacity: Nanos(33_000), ..MoveTimes::reference() };
        assert_eq!(same.break_even(), f32::INFINITY, "nothing is worth a move to a tier as slow");
    }

    #[test]
    fn the_bar_is_the_higher_of_both() {
        let bar = Bar { break_even: 5.0, hysteresis: 0.25, ..Bar::none() };
        let one_by_one = |score| Sure { score, dispersion: 1.0 };
        let of = |bar: Bar, hot, victim| bar.over(one_by_one(hot), one_by_one(victim));
        let over = |bar: Bar| [0.0, 20.0, 100.0].map(|victim| of(bar, 2.0 * victim, victim));
        assert_eq!((bar.for_free(), over(bar)), (5.0, [5.0, 5.0, 25.0]));
        assert_eq!((bar.times(2.0).for_free(), over(bar.times(2.0))), (10.0, [10.0, 10.0, 50.0]));
        // Chance: 2 deviations of half of what both have counted. A free place takes nothing from anybody.
        let sure = Bar { deviations: 2.0, ..bar };
        assert_eq!(
            (sure.for_free(), of(sure, 72.0, 0.0), of(sure, 128.0, 72.0)),
            (5.0, 12.0, 20.0)
        );
        assert_eq!(of(sure.times(4.0), 128.0, 72.0), 72.0, "by a quarter, four times");
        assert_eq!(of(sure.times(4.0), 72.0, 0.0), 24.0);
        // What comes nine at a time varies three times as far.
        let bunched = |score| Sure { score, dispersion: 9.0 };
        assert_eq!(sure.over(bunched(72.0), bunched(0.0)), 36.0);
        // One of both does: it may have had those few bunches, or none of late.
        assert_eq!(sure.over(bunched(72.0), one_by_one(0.0)), 36.0);
        assert_eq!(sure.over(one_by_one(72.0), bunched(0.0)), 36.0);
    }

    /// So many I/Os of so many microseconds, and 100 extents that moved within so many.
    fn tier(io_us: u64, move_us: u64) -> TierMeasure {
        TierMeasure {
            ios: 2000,
            io_ns: 2000 * io_us * 1000,
            moved_bytes: 100 << 20,
            move_ns: 100 * move_us * 1000,
            ..TierMeasure::default()
        }
    }

    fn both(performance: TierMeasure, capacity: TierMeasure) -> Measured {
        Measured { performance, capacity, ..Measured::default() }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_bar_is_that_of_the_disks_that_were_measured() {
        let disks = |performance, capacity| both(performance, capacity);
        let of = |measured: Measured| {
            let worth = measured.worth(MIB);
            (worth.break_even().round(), worth.basis)
        };
        let ssd = tier(33, 2000);
        // 7,200 turns a minute; 15,000 turns; a Capacity tier of SSDs.
        assert_eq!(of(disks(ssd, tier(8033, 30_000))), (4.0, Basis::Measured));
        assert_eq!(of(disks(ssd, tier(1633, 14_000))), (10.0, Basis::Measured));
        assert_eq!(of(disks(ssd, tier(133, 3000))), (50.0, Basis::Measured));
        // Extents of twice the size.
        assert_eq!(disks(ssd, tier(8033, 30_000)).worth(2 * MIB).break_even(), 8.0);
        let rested = TierMeasure { moved_bytes: MIB, ..tier(8033, 1) };
        assert_eq!(of(disks(ssd, rested)), (2.0, Basis::MeasuredIos));
        assert_eq!(
            disks(ssd, rested).worth(MIB).times.move_capacity,
            MoveTimes::reference().move_capacity
        );
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        let reference = Worth::reference().break_even();
        let few = TierMeasure { ios: 999, io_ns: 999, ..tier(9000, 1) };
        let none = TierMeasure::default();
        for (performance, capacity) in
            [(none, none), (tier(33, 2000), none), (none, tier(8000, 1)), (tier(33, 1), few)]
        {
            let worth = both(performance, capacity).worth(MIB);
            assert_eq!((worth.break_even(), worth.basis), (reference, Basis::Reference));
        }
        // The tiers are alike, or the wrong way round.
        for capacity_us in [99, 50, 10] {
            let worth = both(tier(50, 2000), tier(capacity_us, 2000)).worth(MIB);
            let times = (Nanos(50_000), Nanos(capacity_us * 1000));
            assert_eq!(worth.break_even(), reference);
            assert_eq!(worth.basis, Basis::Alike { performance: times.0, capacity: times.1 });
        }
        // Virtual disks whose I/Os take no time, and moves without end.
        let still = TierMeasure { io_ns: 5, ..tier(0, 0) };
        assert_eq!(still.io(), None);
        let endless = TierMeasure { move_ns: u64::MAX, ..tier(100, 1) };
        let worth = both(tier(33, 2000), endless).worth(MIB);
        assert_eq!(worth.break_even(), MOST);
        let quick = both(tier(33, 1), tier(8000, 1)).worth(MIB);
        assert_eq!(quick.break_even(), LEAST);
    }

    #[test]
    fn what_is_not_measured_yet_is_as_it_was_before() {
        let before = both(tier(33, 2000), tier(8000, 30_000));
        assert_eq!(Measured::default().or(&before), before);
        let ios = TierMeasure { ios: 5000, io_ns: 5000 * 2_000_000, ..TierMeasure::default() };
        let now = Measured { capacity: ios, ..Measured::default() };
        let both = now.or(&before);
        assert_eq!(both.capacity.io(), Some(Nanos(2_000_000)));
        assert_eq!(both.capacity.moved(MIB), Some(Nanos(30_000_000)));
        assert_eq!(both.performance, before.performance);
    }
}
