//! Which two of a disk's four superblock copies an update writes first (LAY-1, LAY-2).

use crate::format::superblock::Superblock;
use crate::mutation::{Mutation, active};

/// Two of a disk's four superblock copies: those that an update writes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Half([usize; 2]);

impl Default for Half {
    fn default() -> Self {
        HALVES[0]
    }
}

/// All of them, those first that an update rather spoils: a head copy and a tail copy.
const HALVES: [Half; 6] =
    [Half([0, 2]), Half([1, 3]), Half([0, 1]), Half([2, 3]), Half([0, 3]), Half([1, 2])];

/// How many these are.
const COUNT: u64 = 6;

/// Both copies at the end of the disk.
const TAIL: Half = Half([2, 3]);

impl Half {
    /// The half that an update may spoil, given the copies that can be read: the one beside the newest two that are
    /// alike. So two copies of one version are whole at every instant, however often starts are cut short, and
    /// whatever became of the others (LAY-2). Where more than two are, those stay that the update before began with: they were
    /// flushed before it went on, and the flush behind the others may have failed.
    pub(crate) fn to_begin_with(copies: &[Option<Superblock>; 4]) -> Self {
        let newest = copies.iter().flatten().map(|copy| copy.version).max();
        let last = newest.and_then(Self::of_version).map(Self::other);
        if let Some(last) = last.filter(|last| last.kept(copies) == newest) {
            return last;
        }
        let mut best = Self::default();
        for half in HALVES {
            // Nothing is less than any version.
            if best.kept(copies) < half.kept(copies) {
                best = half;
            }
        }
        best
    }

    /// The same where no two may be left that are alike: the half without the one that is what it should be. Two that are alike
    /// are kept, though they be older: an update that failed leaves one newer one, which nobody went by (LAY-1).
    pub(crate) fn beside(copies: &[Option<Superblock>; 4], right: &Superblock) -> Self {
        let best = Self::to_begin_with(copies);
        let one = copies.iter().position(|copy| copy.as_ref() == Some(right));
        match one.filter(|_| best.kept(copies).is_none() || active(Mutation::LoneCopyKept)) {
            Some(one) => HALVES.into_iter().find(|half| !half.0.contains(&one)).unwrap_or_default(),
            None => best,
        }
    }

    /// The half that the next update begins with instead, where the two newer copies are not known to be on the medium: a flush
    /// behind them may have failed, and what was read of them may lie in the disk's cache alone. The two older ones were flushed
    /// before these were written. `None` where there are no two such pairs.
    pub(crate) fn in_doubt(self, copies: &[Option<Superblock>; 4]) -> Option<Self> {
        let (newer, older) = (self.kept(copies)?, self.other().kept(copies)?);
        (older < newer && !active(Mutation::UnflushedPairKept)).then(|| self.other())
    }

    /// The version of the two copies beside it, if they are alike.
    fn kept(self, copies: &[Option<Superblock>; 4]) -> Option<u64> {
        let [one, other] = self.other().0.map(|copy| copies[copy].as_ref());
        one.filter(|_| one == other).map(|copy| copy.version)
    }

    /// The half that the next update may spoil after one that began with this half and failed, in its second half or before:
    /// the one that it failed in. The disk may take part all the same, for what only it holds, and nobody reads its copies again.
    pub(crate) fn after_failure(self, in_second: bool) -> Self {
        match in_second && !active(Mutation::SpoiltHalfKept) {
            true => self.other(),
            false => self,
        }
    }

    pub(crate) fn copies(self) -> [usize; 2] {
        self.0
    }

    /// The next version behind this one that says of itself that its update began with this half.
    pub(crate) fn next_version(self, version: u64) -> u64 {
        let nth = (0..).zip(HALVES).find(|(_, half)| *half == self).map_or(0, |(nth, _)| nth);
        let ahead = (nth + COUNT - 1 - version % COUNT) % COUNT;
        version.saturating_add(1 + ahead)
    }

    /// The half that the update to a version began with: its remainder says which. `None` where that is both tail copies: the next
    /// one would begin with both head copies, by which the tail is found.
    fn of_version(version: u64) -> Option<Self> {
        let half = (0..).zip(HALVES).find(|(nth, _)| *nth == version % COUNT)?.1;
        (half != TAIL && !active(Mutation::AlikeAreSure)).then_some(half)
    }

    pub(crate) fn other(self) -> Self {
        let [one, other] = self.0;
        let mut left = (0..4).filter(|copy| *copy != one && *copy != other);
        Self([left.next().unwrap_or(0), left.next().unwrap_or(0)])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::format::tests::sample_superblock;

    /// Versions of the four copies; 0 where a copy is torn.
    type Disk = [u64; 4];

    fn read(disk: Disk) -> [Option<Superblock>; 4] {
        disk.map(|version| (version > 0).then(|| Superblock { version, ..sample_superblock() }))
    }

    /// What a crash may leave of an update of what the one before left as `disk`.
    fn crashes(disk: Disk) -> Vec<Disk> {
        let mut left = Vec::new();
        let begin = Half::to_begin_with(&read(disk));
        let version = begin.next_version(disk.into_iter().max().unwrap_or(0));
        let mut before = disk;
        for half in [begin, begin.other()] {
            let [one, other] = half.copies();
            for first in [before[one], 0, version] {
                for second in [before[other], 0, version] {
                    let mut after = before;
                    (after[one], after[other]) = (first, second);
                    left.push(after);
                }
            }
            (before[one], before[other]) = (version, version);
        }
        left
    }

    /// A scan writes what a failed update left anew: whichever copies that one got to, and whichever the scan's own gets to, two
    /// are alike and the next update keeps them. Where no two are, it keeps the one that is right.
    #[test]
    fn what_a_failed_update_left_is_mended_beside_two_copies_that_are_alike() {
        let spoilt = |disk: Disk, begin: Half, version: u64| {
            let [one, other] = begin.copies();
            let firsts = [disk[one], 0, version];
            let each = firsts.map(|first| [disk[other], 0, version].map(|second| (first, second)));
            each.concat().into_iter().map(move |(first, second)| {
                let mut after = disk;
                (after[one], after[other]) = (first, second);
                after
            })
        };
        let failed = Half::to_begin_with(&read([9; 4]));
        let right = Superblock { version: 10, ..sample_superblock() };
        let without_a_pair = || {
            let after = |disk: Disk| spoilt(disk, Half::beside(&read(disk), &right), 11);
            spoilt([9; 4], failed, 10).flat_map(after).find(|left| !has_a_pair(left))
        };
        assert_eq!(without_a_pair(), None);
        crate::mutation::set(Some(Mutation::LoneCopyKept));
        let broken = without_a_pair();
        crate::mutation::set(None);
        assert!(broken.is_some(), "that it is kept before two that are alike is not noticed");
        let lone = [0, 8, 10, 9];
        assert!(!Half::beside(&read(lone), &right).copies().contains(&2));
    }

    /// An update whose flush failed reads back from the disk's cache as two copies of a new version. Whatever of them reached the
    /// medium, and whatever the next update leaves there, two copies are alike: the older ones are kept (LAY-2).
    #[test]
    fn what_could_not_be_flushed_is_not_kept_in_place_of_what_was() {
        let without_a_pair = || {
            let seen: Disk = [9, 8, 9, 8];
            let newest = Half::to_begin_with(&read(seen));
            let begin = newest.in_doubt(&read(seen)).unwrap_or(newest);
            let [one, other] = begin.copies();
            let states = || {
                [8, 0, 9].into_iter().flat_map(|first| [8, 0, 9].map(|last| [first, 8, last, 8]))
            };
            let written = |before: u64| [before, 0, 10];
            states().find_map(|on_disk: Disk| {
                let firsts = written(on_disk[one]).map(|first| {
                    written(on_disk[other]).map(|second| {
                        let mut left = on_disk;
                        (left[one], left[other]) = (first, second);
                        left
                    })
                });
                firsts.concat().into_iter().find(|left| !has_a_pair(left))
            })
        };
        assert_eq!(without_a_pair(), None);
        crate::mutation::set(Some(Mutation::UnflushedPairKept));
        let broken = without_a_pair();
        crate::mutation::set(None);
        assert!(broken.is_some(), "that the newer pair is kept is not noticed");
        // Where all are alike nobody needs a flush to know which to keep, and where only one pair is there is none below.
        for sure in [[9, 9, 9, 9], [9, 8, 9, 0], [0, 8, 10, 9]] {
            let copies = read(sure);
            assert_eq!(Half::to_begin_with(&copies).in_doubt(&copies), None, "{sure:?}");
        }
    }

    /// What an update may leave that fails, and the half that the next one begins with: the disk takes part all the same, and
    /// its copies are not read again.
    fn failures((disk, begin): (Disk, Half), version: u64) -> Vec<(Disk, Half)> {
        let mut left = Vec::new();
        let mut before = disk;
        for (half, in_second) in [(begin, false), (begin.other(), true)] {
            let [one, other] = half.copies();
            for first in [before[one], 0, version] {
                for second in [before[other], 0, version] {
                    let mut after = before;
                    (after[one], after[other]) = (first, second);
                    left.push((after, begin.after_failure(in_second)));
                }
            }
            (before[one], before[other]) = (version, version);
        }
        left
    }

    /// LAY-2 of a disk that takes part though its updates fail, and of one that a crash then meets.
    #[test]
    fn updates_that_fail_in_a_row_leave_two_copies_of_one_version() {
        let without_a_pair = || {
            let mut disks = BTreeSet::from([([9; 4], 0)]);
            for version in 10..14 {
                let each =
                    |(disk, begin): ([u64; 4], usize)| failures((disk, HALVES[begin]), version);
                let nth = |half: Half| HALVES.iter().position(|one| *one == half).unwrap_or(0);
                disks = disks
                    .into_iter()
                    .flat_map(each)
                    .map(|(disk, begin)| (disk, nth(begin)))
                    .collect();
                if let Some((disk, _)) = disks.iter().find(|(disk, _)| !has_a_pair(disk)) {
                    return Some(*disk);
                }
            }
            None
        };
        assert_eq!(without_a_pair(), None);
        crate::mutation::set(Some(Mutation::SpoiltHalfKept));
        let broken = without_a_pair();
        crate::mutation::set(None);
        assert!(broken.is_some(), "that the next one begins with the other half is not noticed");
    }

    /// A disk with a cache: what its copies show, and what is known to be on the medium.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Cached {
        shown: Disk,
        sure: Disk,
        /// What the program knows of the last update, by the half that the next one begins with; `None` when it was killed since.
        known: Option<usize>,
    }

    impl Cached {
        /// What a power cut may leave: of each copy that no flush was behind the old one, a torn one, or the new one.
        fn after_a_power_cut(self) -> Vec<Disk> {
            (0..4).fold(vec![self.sure], |left, copy| {
                let each = [self.sure[copy], 0, self.shown[copy]];
                let choices = if self.sure[copy] == self.shown[copy] { 1 } else { 3 };
                let with = |disk: Disk| {
                    each[..choices].iter().map(move |version| {
                        let mut disk = disk;
                        disk[copy] = *version;
                        disk
                    })
                };
                left.into_iter().flat_map(with).collect()
            })
        }

        fn flushed(self) -> Self {
            Self { sure: self.shown, ..self }
        }

        /// The disk forgot those of these copies that a failed flush was for.
        fn forgets(mut self, copies: &[usize]) -> Self {
            copies.iter().for_each(|copy| self.shown[*copy] = self.sure[*copy]);
            self
        }

        fn writes(mut self, copies: &[usize], version: u64) -> Self {
            copies.iter().for_each(|copy| self.shown[*copy] = version);
            self
        }

        /// All that an update that begins with this half may leave, whoever is killed and whatever fails within it.
        fn updated(self, begin: Half) -> Vec<Self> {
            let version = begin.next_version(self.shown.into_iter().max().unwrap_or(0));
            let nth = |half: Half| HALVES.iter().position(|one| *one == half);
            let (mut left, mut now) = (Vec::new(), self);
            for (half, in_second) in [(begin, false), (begin.other(), true)] {
                let [one, other] = half.copies();
                let parts: [&[usize]; 4] = [&[], &[one], &[other], &[one, other]];
                for part in parts {
                    left.push(Self { known: None, ..now.writes(part, version) });
                }
                now = now.writes(&[one, other], version);
                for part in parts {
                    let known = nth(begin.after_failure(in_second));
                    left.push(Self { known, ..now.forgets(part) });
                }
                now = now.flushed();
            }
            left.push(Self { known: nth(Half::default()), ..now });
            left
        }

        /// All that the next update may leave: of this program, or of one that reads the disk, whose flush may fail as well.
        fn next(self) -> Vec<Self> {
            let of_this = self.known.into_iter().flat_map(|known| self.updated(HALVES[known]));
            let copies = read(self.shown);
            let begin = Half::to_begin_with(&copies);
            let older = begin.in_doubt(&copies);
            let flushed = older.map_or(self, |_| self.flushed()).updated(begin);
            let failed = older.into_iter().flat_map(|older| self.updated(older));
            of_this.chain(flushed).chain(failed).collect()
        }
    }

    /// LAY-2 of a disk with a cache: whichever flush behind an update fails, whatever is forgotten then, and whoever reads the disk
    /// between, a power cut leaves two copies of one version.
    #[test]
    fn updates_whose_flushes_fail_leave_two_copies_of_one_version() {
        let without_a_pair = || {
            let fresh = Cached { shown: [1; 4], sure: [1; 4], known: None };
            let mut disks = BTreeSet::from([fresh]);
            let mut seen = 0;
            for _ in 0..5 {
                disks = disks.into_iter().flat_map(Cached::next).collect();
                seen += disks.len();
                let broken = |disk: &Cached| {
                    disk.after_a_power_cut().into_iter().any(|left| !has_a_pair(&left))
                };
                if let Some(disk) = disks.iter().find(|disk| broken(disk)) {
                    return (Some(*disk), seen);
                }
            }
            (None, seen)
        };
        let (broken, seen) = without_a_pair();
        assert_eq!(broken, None);
        assert!(seen > 1_000, "{seen}");
        for rule in [Mutation::AlikeAreSure, Mutation::UnflushedPairKept, Mutation::SpoiltHalfKept]
        {
            crate::mutation::set(Some(rule));
            let (broken, _) = without_a_pair();
            crate::mutation::set(None);
            assert!(broken.is_some(), "{rule:?} is not noticed");
        }
    }

    /// Which half an update began with is told by its version, and versions only grow.
    #[test]
    fn versions_tell_the_half_that_was_written_first() {
        for version in 0..20 {
            for half in HALVES {
                let next = half.next_version(version);
                assert!(next > version && next <= version + COUNT, "{version} {half:?}: {next}");
                let wanted = Some(half).filter(|half| *half != TAIL);
                assert_eq!(Half::of_version(next), wanted, "{version} {half:?}: {next}");
            }
        }
    }

    /// Two copies of one version.
    fn has_a_pair(disk: &Disk) -> bool {
        HALVES.iter().any(|half| {
            let [one, other] = half.copies().map(|copy| disk[copy]);
            one == other && one > 0
        })
    }

    #[test]
    fn updates_that_are_cut_short_in_a_row_leave_two_copies_of_one_version_and_a_head() {
        let mut disks = BTreeSet::from([[1; 4]]);
        for _ in 0..4 {
            disks = disks.into_iter().flat_map(crashes).collect();
            for disk in &disks {
                assert!(has_a_pair(disk), "LAY-2: {disk:?}");
                // Where the size of the disk is not known, tail copies are found by a head.
                assert!(disk[0] > 0 || disk[1] > 0, "{disk:?}");
            }
        }
        assert!(disks.len() > 100, "{}", disks.len());
    }

    /// LAY-1, LAY-2: whichever two copies are left, be it those at one end of the disk, updates that are cut short do
    /// not take the last two that are alike.
    #[test]
    fn updates_keep_the_two_copies_that_are_left() {
        for lost in HALVES {
            let mut disk = [7; 4];
            lost.copies().into_iter().for_each(|copy| disk[copy] = 0);
            let mut disks = BTreeSet::from([disk]);
            for _ in 0..3 {
                disks = disks.into_iter().flat_map(crashes).collect();
                for left in &disks {
                    assert!(has_a_pair(left), "{lost:?} lost, then {left:?}");
                }
            }
        }
    }
}
