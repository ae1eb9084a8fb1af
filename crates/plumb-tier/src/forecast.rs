//! How much memory a pool takes: section 18 wants a start refused with the figure, and nothing on the way of an I/O.

use plumb_units::convert::to_u64;

use crate::core::OPEN_LIMIT;
use crate::extents::{Extent, Sum, TOGETHER, slots_of_tier};
use crate::format::{BLOCK_BYTES, Config, Geometry};

/// Buffers of a queue and of clients, and what is small.
const AT_LEAST: u64 = 48 << 20;
/// Of an extent, wherever it lies: its place, and where its state would be.
const PER_EXTENT: u64 = 5;
/// Of a page of map or checksums: its pointer, whether it is dirty, and whether it is in use.
const PER_PAGE: u64 = 10;
/// Of one that is read at the start: where it lies, which come together, whether it was read.
const PER_PAGE_READ: u64 = 34;
/// Entries of a page.
const ENTRIES: u64 = 1020;
/// Of a block in a write cache: its line and the record's share.
const PER_LINE: u64 = 64;
/// Heat is bounded by itself (HEAT-4).
const HEAT_MOST: u64 = 128 << 20;
const HEAT_PER_EXTENT: u64 = 8;

/// Bytes, were every extent mapped and every block written, with so many bytes of checksums in memory at most.
pub(crate) fn needed(config: &Config, geometry: &Geometry, sums: u64) -> u64 {
    let blocks_of_extent = u64::from(config.extent_bytes) / BLOCK_BYTES;
    let extents: u64 = config.vdisks.iter().map(|vdisk| u64::from(vdisk.extents)).sum();
    let blocks = extents.saturating_mul(blocks_of_extent);
    // Of extents that are open the newest checksums stand beside those that are committed.
    let open = extents.min(to_u64(OPEN_LIMIT));
    let slots: u64 = config
        .vdisks
        .iter()
        .flat_map(|vdisk| {
            let slots = |tier: &crate::format::Tier| {
                slots_of_tier(vdisk, tier.rows.len(), geometry, config.extent_bytes)
            };
            vdisk.tiers.iter().map(move |tier| u64::from(slots(tier)))
        })
        .sum();
    let (map, leaves) = (extents.div_ceil(ENTRIES), blocks.div_ceil(ENTRIES));
    let all_sums = blocks.saturating_mul(to_u64(size_of::<u32>()));
    // Those that have no room are read when they are needed, and lie anywhere.
    let is_short = all_sums > sums;
    let resident = all_sums.min(sums) / to_u64(size_of::<u32>()) / blocks_of_extent.max(1);
    let states = if is_short { resident } else { extents.div_ceil(to_u64(TOGETHER)) };
    let read = if is_short { map } else { map + leaves };
    let lines: u64 = config
        .vdisks
        .iter()
        .filter_map(|vdisk| vdisk.cache.as_ref())
        .map(|cache| cache.bytes / BLOCK_BYTES)
        .sum();
    // Stale, kept and stuck marks: a bit per extent and disk each.
    let marks = 3 * extents.div_ceil(8) * to_u64(config.disks.len());
    let parts = [
        extents.saturating_mul(PER_EXTENT),
        states.saturating_mul(to_u64(size_of::<[Extent; TOGETHER]>())),
        all_sums.min(sums),
        open.saturating_mul(blocks_of_extent).saturating_mul(to_u64(size_of::<Sum>())),
        slots,
        (map + leaves).saturating_mul(PER_PAGE),
        read.saturating_mul(PER_PAGE_READ),
        lines.saturating_mul(PER_LINE),
        marks,
        extents.saturating_mul(HEAT_PER_EXTENT).min(HEAT_MOST),
    ];
    parts.into_iter().fold(AT_LEAST, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_all_blocks_are_most_of_it() {
        let mut config = Config { extent_bytes: 1 << 20, ..Config::default() };
        let geometry = Geometry::standard(256 << 20, 1 << 40);
        let nothing = needed(&config, &geometry, u64::MAX);
        assert_eq!(nothing, AT_LEAST);
        config.vdisks.push(crate::VirtualDisk {
            extents: 1 << 20,
            columns: 1,
            copies: 2,
            id: 1,
            name: "v".to_owned(),
            interleave: 256 << 10,
            first_extent: 0,
            tiers: Vec::new(),
            cache: None,
        });
        // 1 TiB: 2^28 blocks of 4 bytes each, and of those in 262,144 extents 12 more.
        let more = needed(&config, &geometry, u64::MAX) - nothing;
        let sums = (1_u64 << 28) * 4 + (1_u64 << 26) * 12;
        assert!((sums..sums + sums / 8).contains(&more), "{more} for {sums}");
        // Of the checksums that have no room nothing is in memory; those that have it lie anywhere, each with its group's states.
        let short = needed(&config, &geometry, 1 << 28) - nothing;
        let (saved, spread) =
            ((1_u64 << 30) - (1 << 28), (1_u64 << 18) * to_u64(size_of::<[Extent; TOGETHER]>()));
        assert!(
            (saved - spread..saved).contains(&(more - short)),
            "{} for {saved}: the others are on the disks",
            more - short
        );
        // Section 25: of 100 TiB the map 400 MiB, heat 128, checksums 256; the pages' pointers and what is open come to that.
        config.vdisks[0].extents = 100 << 20;
        let large = needed(&config, &geometry, 256 << 20);
        assert!((1 << 31..3 << 30).contains(&large), "{large} for 100 TiB");
        config.vdisks[0].extents = u32::MAX;
        assert!(needed(&config, &geometry, u64::MAX) > more, "no figure wraps");
    }
}
