//! File systems below a pool's files that are full.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

/// Fewer bytes than that are none: a checkpoint may not fit.
pub(super) const ROOM_LEAST: u64 = 1 << 20;

/// Bytes that are free in the file system that a file is in.
pub(super) fn room_below(path: &Path) -> Option<u64> {
    let below = statvfs(path).ok()?;
    Some(below.f_bavail.saturating_mul(below.f_frsize))
}

/// Files with holes on file systems that have no room to fill them: what is written there fails.
#[must_use]
pub fn full_below<'a>(disks: impl IntoIterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let is_full = |path: &&PathBuf| {
        let Ok(found) = std::fs::metadata(path) else { return false };
        let has_holes = found.is_file() && found.blocks().saturating_mul(512) < found.len();
        has_holes && room_below(path).is_some_and(|room| room < ROOM_LEAST)
    };
    disks.into_iter().filter(is_full).cloned().collect()
}
