//! The tail that a distribution gets when it does not give out all I/O (spec 6.6).

use super::model::{DistributionKind, DistributionRange};

/// The ranges as kept: with one more at the end when less than 100 % of the I/O was given out.
///
/// The tail takes the rest of the I/O and, of a percent distribution, the rest of the target. Its size
/// is 0 where nothing of the target is left (refused by the rules of spec 3.7) and in an absolute
/// distribution, where that means "to the end of the target".
#[must_use]
pub fn with_tail(
    kind: DistributionKind,
    mut ranges: Vec<DistributionRange>,
) -> Vec<DistributionRange> {
    let given: u64 = ranges.iter().map(|range| u64::from(range.io)).sum();
    let Some(rest) = 100_u64.checked_sub(given).filter(|rest| *rest > 0) else { return ranges };
    let covered = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.size));
    let size = match kind {
        DistributionKind::Percent => 100_u64.saturating_sub(covered),
        DistributionKind::Absolute => 0,
    };
    let io = u32::try_from(rest).expect("at most 100");
    ranges.push(DistributionRange { io, size });
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: DistributionKind, given: &[(u32, u64)], want: &[(u32, u64)]) {
        let ranges = given.iter().map(|&(io, size)| DistributionRange { io, size }).collect();
        let got: Vec<_> = with_tail(kind, ranges).iter().map(|r| (r.io, r.size)).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn what_is_left_goes_to_the_tail() {
        check(DistributionKind::Percent, &[(95, 5), (4, 10)], &[(95, 5), (4, 10), (1, 85)]);
        check(DistributionKind::Absolute, &[(10, 4096)], &[(10, 4096), (90, 0)]);
    }

    #[test]
    fn a_covered_target_leaves_a_tail_of_no_size() {
        check(DistributionKind::Percent, &[(10, 50), (10, 60)], &[(10, 50), (10, 60), (80, 0)]);
    }

    #[test]
    fn nothing_is_added_once_all_io_is_given_out() {
        check(DistributionKind::Percent, &[(50, 10), (50, 10)], &[(50, 10), (50, 10)]);
        check(DistributionKind::Absolute, &[(60, 1), (60, u64::MAX)], &[(60, 1), (60, u64::MAX)]);
    }
}
