//! What lengths and offsets I/O past the page cache must be multiples of.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::StatxFlags;

use super::target::{OpenTarget, TargetError};
use crate::pattern::{Bounds, distribution};
use crate::profile::model::{CacheMode, Distribution, DistributionKind, Target};

/// Checks everything that O_DIRECT needs up front, instead of an EINVAL per I/O (spec 11.1).
///
/// # Errors
/// The first length or offset that is not a multiple of the logical block.
pub(super) fn check_alignment(
    target: &Target,
    descriptor: BorrowedFd<'_>,
    path: &Path,
    is_device: bool,
) -> Result<(), TargetError> {
    if target.cache != CacheMode::NoOsCache || target.memory_mapped {
        return Ok(());
    }
    let granule = direct_granule(descriptor, is_device);
    let absolute = target
        .distribution
        .iter()
        .filter(|distribution| distribution.kind == DistributionKind::Absolute)
        .flat_map(|distribution| &distribution.ranges)
        .map(|range| ("range of the distribution (-rdabs)", range.size));
    let figures = [
        ("block size (-b)", u64::from(target.block_size)),
        ("alignment or stride (-r, -s)", target.alignment),
        ("base offset (-B)", target.base_file_offset),
        ("thread stride (-T)", target.thread_stride),
    ];
    for (what, value) in figures.into_iter().chain(absolute) {
        if !value.is_multiple_of(granule) {
            return Err(TargetError::Unaligned { path: path.into(), what, value, granule });
        }
    }
    Ok(())
}

/// Checks what the size of an open target adds to that: absolute ranges that end with the target, or with
/// `-f`, draw offsets from what is left of them (spec 6.6).
///
/// # Errors
/// When that is no multiple of the logical block.
pub(super) fn check_ranges(target: &Target, open: &OpenTarget) -> Result<(), TargetError> {
    if target.cache != CacheMode::NoOsCache || target.memory_mapped {
        return Ok(());
    }
    let Some(descriptor) = &open.descriptor else { return Ok(()) };
    let absolute = |distribution: &&Distribution| distribution.kind == DistributionKind::Absolute;
    let Some(distribution) = target.distribution.as_ref().filter(absolute) else { return Ok(()) };
    let Some(bounds) = Bounds::new(target, open.size) else { return Ok(()) };
    let granule = direct_granule(descriptor.as_fd(), open.is_device);
    let ranges = distribution::effective(distribution, &bounds).ranges;
    let unaligned = ranges.iter().find(|range| !range.length.is_multiple_of(granule));
    match unaligned {
        None => Ok(()),
        Some(range) => Err(TargetError::Unaligned {
            path: open.path.clone(),
            what: "range of the distribution (-rdabs), cut off where the target or -f ends,",
            value: range.length,
            granule,
        }),
    }
}

/// What offsets and lengths of O_DIRECT must be multiples of: statx where it knows, else the
/// device's logical block, else 512.
fn direct_granule(descriptor: BorrowedFd<'_>, is_device: bool) -> u64 {
    if is_device && let Ok(size) = rustix::fs::ioctl_blksszget(descriptor) {
        return u64::from(size).max(1);
    }
    let empty = rustix::fs::AtFlags::EMPTY_PATH;
    match rustix::fs::statx(descriptor, "", empty, StatxFlags::DIOALIGN) {
        Ok(status) if status.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            match status.stx_dio_offset_align {
                0 => 512,
                align => u64::from(align),
            }
        }
        _ => 512,
    }
}

#[cfg(test)]
mod tests {
    use plumb_io::block_stack::BlockStack;

    use super::*;
    use crate::profile::model::DistributionRange;

    /// Half of the I/Os below 64 KiB, half in what is left of a file of `size` bytes.
    fn check(size: u64, max_file_size: u64) -> Result<(), TargetError> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let ranges = [(50, 64 << 10), (50, 0)].map(|(io, size)| DistributionRange { io, size });
        let target = Target {
            random_ratio: 100,
            alignment: 4096,
            block_size: 4096,
            cache: CacheMode::NoOsCache,
            max_file_size,
            distribution: Some(Distribution {
                kind: DistributionKind::Absolute,
                ranges: ranges.to_vec(),
            }),
            ..Target::default()
        };
        let path = file.path().to_owned();
        let descriptor = Some(file.into_file().into());
        let (is_device, stack, is_own) = (false, BlockStack::default(), false);
        check_ranges(&target, &OpenTarget { path, descriptor, size, is_device, stack, is_own })
    }

    #[test]
    fn a_last_range_that_ends_inside_a_block_is_refused_before_the_run() {
        check(1 << 20, 0).expect("whole blocks");
        for (size, end) in [(1_000_001, 0), (1 << 20, 1_000_001)] {
            match check(size, end).expect_err("offsets would be drawn from an odd length") {
                TargetError::Unaligned { value, granule, .. } => {
                    assert_eq!(value, 1_000_001 - (64 << 10));
                    assert!(granule >= 512);
                }
                other => panic!("{other}"),
            }
        }
        check(1_000_001, 1_000_448).expect_err("-f behind the end changes nothing");
        check(1_000_448 + 77, 1_000_448).expect("-f cuts at a whole block");
    }
}
