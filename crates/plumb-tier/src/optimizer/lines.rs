//! What random I/Os take of a disk that has so many of them to choose from, and what disks give that are asked so.
//!
//! A rotating disk with six I/Os in line serves each in half of the time that it takes for one alone. So what a tier's disks will give depends on how
//! many will be in line at each, and that is how many hosts have under way, wherever these are served now.

use plumb_units::convert::floor_u64;

/// Lines of 1, 2 and 3, 4 to 7, 8 to 15, 16 to 31, and 32 or more.
pub const LINES: usize = 6;
/// So long the line is that stands for them.
const LENGTHS: [f64; LINES] = [1.0, 2.5, 5.5, 11.0, 22.0, 44.0];
/// Microseconds of a random 4 KiB write on a reference disk with 1, 2, ... I/Os to choose from (`sas-10k-300` of spec 19.1, 8.3 % of its stroke).
const REFERENCE_US: [f64; 6] = [4500.0, 3460.0, 3010.0, 2730.0, 2560.0, 2427.0];
/// So many of a line's I/Os tell what they take.
const ENOUGH: u64 = 500;
/// I/Os under way count as known when there were some for so long.
const LINE_NS_LEAST: u64 = 100_000_000;

/// Random I/Os that ended with lines of each length, and the time that they took of the disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineTimes {
    /// How many.
    pub ios: [u64; LINES],
    /// Nanoseconds.
    pub ns: [u64; LINES],
}

/// Which lines have so many.
#[must_use]
pub(crate) fn line_of(under_way: u32) -> usize {
    plumb_units::convert::index(under_way.max(1).ilog2()).min(LINES - 1)
}

/// What a reference disk takes for an I/O with so many to choose from.
fn reference_ns(line: f64) -> f64 {
    let at = (line - 1.0).clamp(0.0, 5.0);
    let first = plumb_units::convert::to_usize(floor_u64(at)).min(4);
    let part = at - first as f64;
    1000.0 * (REFERENCE_US[first] * (1.0 - part) + REFERENCE_US[first + 1] * part)
}

impl LineTimes {
    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |one: [u64; LINES], two: [u64; LINES]| {
            std::array::from_fn(|line| one[line].saturating_add(two[line]))
        };
        Self { ios: sum(self.ios, other.ios), ns: sum(self.ns, other.ns) }
    }

    /// Counts half from now on.
    pub(crate) fn halve(&mut self) {
        self.ios.iter_mut().chain(&mut self.ns).for_each(|count| *count /= 2);
    }

    /// What an I/O of these lines takes; `None` if too few were seen.
    pub(crate) fn mean(&self, line: usize) -> Option<f64> {
        (self.ios[line] >= ENOUGH).then(|| self.ns[line] as f64 / self.ios[line] as f64)
    }

    /// What an I/O takes with so many in line, and whether just that was seen; else as far from the nearest lines that were as a reference
    /// disk's are. `None` if none were.
    fn at(&self, line: f64) -> Option<(f64, bool)> {
        let wanted = line_of(u32::try_from(floor_u64(line)).unwrap_or(u32::MAX));
        let known = (0..LINES).filter(|nth| self.mean(*nth).is_some_and(|each| each > 0.0));
        // Of two that are as near the longer one: its disks had less time to rest.
        let nearest = known.min_by_key(|nth| (nth.abs_diff(wanted), LINES - nth))?;
        let each = self.mean(nearest)?;
        Some((each * reference_ns(line) / reference_ns(LENGTHS[nearest]), nearest == wanted))
    }
}

/// How many I/Os for hosts are under way, on all disks of a pool together, copies counted each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostLine {
    /// Nanoseconds with any.
    pub busy_ns: u64,
    /// The sum of the times of all.
    pub line_ns: u64,
}

impl HostLine {
    /// How many there are, when there are any; `None` while that is not known.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.busy_ns >= LINE_NS_LEAST).then(|| self.line_ns as f64 / self.busy_ns as f64)
    }
}

/// Disks that will be asked for random writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// How many disks.
    pub disks: u64,
    /// Of which so many are written for each block.
    pub copies: u8,
    /// So many I/Os wait for each of them whatever hosts do: those of a write-back cache that is emptied.
    pub least: f64,
}

/// Where a forecast of I/Os per second comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IopsBasis {
    /// These disks, asked so.
    Measured,
    /// These disks with another number of I/Os in line.
    MeasuredOtherwise,
    /// Reference disks.
    Reference,
}

impl IopsBasis {
    /// As programs are told.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured disks",
            Self::MeasuredOtherwise => "measured disks, with other lines",
            Self::Reference => "reference disks",
        }
    }
}

/// Whose I/Os are in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineBasis {
    /// Those of hosts, as measured.
    Hosts,
    /// Those of a write-back cache that is emptied, which are more than hosts have under way.
    Cache,
}

impl LineBasis {
    /// As programs are told.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::Cache => "write-back cache",
        }
    }
}

/// Random writes per second that disks are expected to give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedIops {
    /// How many.
    pub iops: u64,
    /// With so many I/Os in line at a disk that has any; `None` where it is not known how many hosts have under way.
    pub line: Option<f64>,
    /// Whose these are.
    pub line_basis: LineBasis,
    /// How that is known.
    pub basis: IopsBasis,
}

impl ExpectedIops {
    /// Of disks of which that was measured, when hosts have so many I/Os under way.
    #[must_use]
    pub fn of(times: &LineTimes, hosts: &HostLine, asked: Asked) -> Self {
        let disks = asked.disks.max(1) as f64;
        let all = hosts.mean().map(|mean| mean.max(asked.least * disks).max(1.0));
        let line_basis = match hosts.mean() {
            Some(mean) if mean < asked.least * disks => LineBasis::Cache,
            _ => LineBasis::Hosts,
        };
        // Where I/Os go to disks by chance and each that ends is followed by another one, a disk has so many when it has any, and has any for so
        // much of the time. Of what is not known, as many as the reference has.
        let line = all.map(|all| (all + disks - 1.0) / disks);
        let busy = all.map_or(1.0, |all| all / (all + disks - 1.0));
        let length = line.unwrap_or(6.0);
        let (each, basis) = match times.at(length) {
            Some((each, true)) => (each, IopsBasis::Measured),
            Some((each, false)) => (each, IopsBasis::MeasuredOtherwise),
            None => (reference_ns(length), IopsBasis::Reference),
        };
        let writes = disks * busy * 1e9 / each / f64::from(asked.copies.max(1));
        let iops = if asked.disks == 0 { 0 } else { floor_u64(writes + 0.5) };
        Self { iops, line, line_basis, basis }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn hosts(mean: u64) -> HostLine {
        HostLine { busy_ns: 2_000 * MS, line_ns: 2_000 * MS * mean }
    }

    fn seen(line: usize, ms_each: u64) -> LineTimes {
        let mut times = LineTimes::default();
        (times.ios[line], times.ns[line]) = (ENOUGH, ENOUGH * ms_each * MS);
        times
    }

    fn expect(times: &LineTimes, mean: u64, copies: u8) -> (u64, IopsBasis) {
        let asked = Asked { disks: 4, copies, least: 0.0 };
        let found = ExpectedIops::of(times, &hosts(mean), asked);
        (found.iops, found.basis)
    }

    #[test]
    fn lines_are_told_apart_by_doublings() {
        let lines = [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, u32::MAX].map(line_of);
        assert_eq!(lines, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5]);
    }

    #[test]
    fn one_at_a_time_asks_one_disk_and_many_ask_all() {
        // One I/O after the other, each of 5 ms, on whichever disk; two copies of each write take two disks at once.
        assert_eq!(expect(&seen(0, 5), 1, 1), (200, IopsBasis::Measured));
        // 320 on four disks: each has 80 in line, and some thousandth of the time none.
        assert_eq!(expect(&seen(5, 2), 320, 1), (1981, IopsBasis::Measured));
        assert_eq!(expect(&seen(5, 2), 320, 2), (991, IopsBasis::Measured));
    }

    #[test]
    fn disks_that_were_asked_otherwise_differ_as_reference_disks_do() {
        // 4.5 ms alone, and 2.427 where there are six to choose from.
        let (iops, basis) = expect(&seen(0, 9), 320, 1);
        assert_eq!((iops, basis), (816, IopsBasis::MeasuredOtherwise));
        let (iops, basis) = expect(&seen(5, 2), 1, 1);
        assert_eq!((iops, basis), (270, IopsBasis::MeasuredOtherwise));
        // The nearest of several, and never one of which there are few.
        let mut both = seen(0, 9).plus(&seen(4, 3));
        assert_eq!(expect(&both, 320, 1).0, 1321);
        both.ios[4] -= 1;
        assert_eq!(expect(&both, 320, 1).0, 816);
    }

    #[test]
    fn what_was_not_measured_is_the_reference() {
        let none = LineTimes::default();
        assert_eq!(expect(&none, 320, 1), (1633, IopsBasis::Reference));
        assert_eq!(expect(&none, 1, 1), (222, IopsBasis::Reference));
        let asked = Asked { disks: 4, copies: 2, least: 0.0 };
        let found = ExpectedIops::of(&none, &HostLine::default(), asked);
        assert_eq!((found.iops, found.line), (824, None), "by the rate of 19.1");
        let none = ExpectedIops::of(&none, &hosts(9), Asked { disks: 0, ..asked });
        assert_eq!(none.iops, 0);
    }

    /// Whoever writes one block at a time, a write-back cache writes home several.
    #[test]
    fn a_cache_that_is_emptied_asks_for_more_than_hosts_do() {
        let asked = Asked { disks: 4, copies: 1, least: 8.0 };
        let of = |mean| ExpectedIops::of(&LineTimes::default(), &hosts(mean), asked);
        let found = of(1);
        assert_eq!((found.iops, found.line), (1507, Some(8.75)));
        assert_eq!([1, 31, 32, 64].map(|mean| of(mean).line_basis), {
            use LineBasis::{Cache, Hosts};
            [Cache, Cache, Hosts, Hosts]
        });
    }
}
