//! Whether what a disk holds has room on others, by the configuration alone.

use plumb_units::convert::index;

use crate::engine::ChangeError;
use crate::format::{Config, Geometry, MediaType};

/// Gives each slab of a disk another one on `others`, one after the other, as emptying it will.
///
/// # Errors
/// [`ChangeError::NoRoom`].
pub(crate) fn has_room_for(
    config: &Config,
    geometry: &Geometry,
    (disk, others): (u16, &[u16]),
) -> Result<(), ChangeError> {
    let slabs = |other: u16| {
        let all = geometry.slabs(config.disks[usize::from(other)].device_bytes);
        index(all).saturating_sub(config.used_slabs(other).len())
    };
    let mut free: Vec<(u16, usize)> = others.iter().map(|other| (*other, slabs(*other))).collect();
    let mut take = |media: MediaType, taken: &[u16], count: usize| {
        let fits = |one: &&mut (u16, usize)| {
            config.disks[usize::from(one.0)].media == media
                && !taken.contains(&one.0)
                && one.1 >= count
        };
        let best = free.iter_mut().filter(fits).max_by_key(|one| one.1);
        best.map(|one| one.1 -= count).is_some()
    };
    let (mut needed, mut missing) = (0, 0);
    let mut want = |fits: bool, count: usize| {
        needed += count;
        missing += if fits { 0 } else { count };
    };
    for (vdisk, own) in config.vdisks.iter().enumerate() {
        for (tier, rows) in own.tiers.iter().enumerate() {
            for (row, slabs) in rows.rows.iter().enumerate() {
                let here = slabs.slabs.iter().filter(|slab| slab.0 == disk).count();
                let taken = config.disks_of_row((vdisk, tier, row));
                (0..here).for_each(|_| want(take(rows.media, &taken, 1), 1));
            }
        }
    }
    for cache in config.vdisks.iter().filter_map(|vdisk| vdisk.cache.as_ref()) {
        let taken: Vec<u16> = cache.copies.iter().map(|copy| copy.disk).collect();
        for copy in cache.copies.iter().filter(|copy| copy.disk == disk) {
            want(take(MediaType::Ssd, &taken, copy.slabs.len()), copy.slabs.len());
        }
    }
    if missing == 0 {
        return Ok(());
    }
    let name = config.disks[usize::from(disk)].name.clone();
    Err(ChangeError::NoRoom { name, needed, missing, slab_bytes: geometry.slab_bytes })
}
