//! Where the areas of a device lie.

use super::BLOCK_BYTES;

const MIB: u64 = 1 << 20;
/// Head and tail reserve.
const RESERVE: u64 = MIB;

/// Sizes of the areas of a device, the same for every device of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of one of the two configuration areas.
    pub config_bytes: u64,
    /// Bytes of the journal area.
    pub journal_bytes: u64,
    /// Bytes of the area for pages of the metadata tree.
    pub tree_bytes: u64,
    /// Bytes of user data of a slab.
    pub slab_bytes: u64,
}

impl Geometry {
    /// Sizes for real disks; `tree_bytes` for `capacity` bytes of mapped space: 2.25 times what map and
    /// checksums take (4 bytes per MiB, 4 bytes per 4 KiB), 4 MiB at least.
    #[must_use]
    pub fn standard(slab_bytes: u64, capacity: u64) -> Self {
        let tree = (capacity / 1000).saturating_mul(9) / 4;
        Self {
            config_bytes: 64 * MIB,
            journal_bytes: 256 * MIB,
            tree_bytes: tree.next_multiple_of(MIB).max(4 * MIB),
            slab_bytes,
        }
    }

    /// Whether every size is one that this version can work with.
    #[must_use]
    pub fn is_sane(&self) -> bool {
        let blocks = |bytes: u64, least: u64| {
            bytes.is_multiple_of(BLOCK_BYTES) && (least..=1 << 44).contains(&bytes)
        };
        blocks(self.config_bytes, 2 * BLOCK_BYTES)
            && blocks(self.journal_bytes, 16 * BLOCK_BYTES)
            && blocks(self.tree_bytes, 8 * BLOCK_BYTES)
            && self.slab_bytes.is_power_of_two()
            && (MIB / 8..=1 << 30).contains(&self.slab_bytes)
    }

    /// Where the four superblock copies of a device of that size lie.
    #[must_use]
    pub fn superblocks(device_bytes: u64) -> [u64; 4] {
        let tail = device_bytes.saturating_sub(RESERVE) / BLOCK_BYTES * BLOCK_BYTES;
        [64 << 10, 128 << 10, tail + (64 << 10), tail + (128 << 10)]
    }

    /// Start of a configuration area, 0 or 1.
    #[must_use]
    pub fn config(&self, area: u8) -> u64 {
        RESERVE + u64::from(area & 1) * self.config_bytes
    }

    /// Start of the journal area: two checkpoint pages, then the ring.
    #[must_use]
    pub fn journal(&self) -> u64 {
        RESERVE + 2 * self.config_bytes
    }

    /// Bytes of the ring.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        self.journal_bytes - 2 * BLOCK_BYTES
    }

    /// Where the byte at that virtual position of the ring lies.
    #[must_use]
    pub fn ring(&self, position: u64) -> u64 {
        self.journal() + 2 * BLOCK_BYTES + position % self.ring_bytes()
    }

    /// Start of the area for tree pages.
    #[must_use]
    pub fn tree(&self) -> u64 {
        self.journal() + self.journal_bytes
    }

    /// How many tree pages there is room for.
    #[must_use]
    pub fn tree_pages(&self) -> u32 {
        u32::try_from(self.tree_bytes / BLOCK_BYTES).unwrap_or(u32::MAX)
    }

    /// Start of the data of a slab. Each is followed by 1/256 of its size for its own metadata.
    #[must_use]
    pub fn slab(&self, slab: u32) -> u64 {
        self.tree() + self.tree_bytes + u64::from(slab) * self.envelope_bytes()
    }

    /// Bytes of a slab and its metadata (LAY-4).
    #[must_use]
    pub fn envelope_bytes(&self) -> u64 {
        self.slab_bytes + (self.slab_bytes / 256).next_multiple_of(BLOCK_BYTES)
    }

    /// How many slabs a device of that size has.
    #[must_use]
    pub fn slabs(&self, device_bytes: u64) -> u32 {
        let room = device_bytes.saturating_sub(self.slab(0) + RESERVE);
        u32::try_from(room / self.envelope_bytes()).unwrap_or(u32::MAX)
    }
}
