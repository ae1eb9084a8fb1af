//! Bytes on disk, drawn in `docs/internals/pool-format.md`. Whatever is read here may be damaged or
//! foreign: parsers return `None`, never panic, and allocate no more than the bytes they were given.

pub(crate) mod bytes;
pub(crate) mod checksum;
pub(crate) mod config;
pub(crate) mod frame;
mod fuzz;
pub(crate) mod geometry;
pub(crate) mod log;
pub(crate) mod moving;
pub(crate) mod page;
pub(crate) mod superblock;
#[cfg(test)]
pub(crate) mod tests;

pub use config::{
    CacheConfig, CacheCopy, Config, DiskConfig, DiskState, Generation, MediaType, Row, Tier,
    VirtualDisk,
};
pub use fuzz::fuzz_format;
pub use geometry::Geometry;
pub use moving::Moving;

/// Bytes per block: the unit of checksums, and of all metadata.
pub const BLOCK_BYTES: u64 = 4096;
pub(crate) const BLOCK_LEN: usize = 4096;

/// Whether a page is one that a disk has before it has superblocks: a checkpoint page, or the first one of a configuration.
pub(crate) fn begins_a_pool(page: &[u8]) -> bool {
    page::is_checkpoint(page) || config::begins_a_record(page)
}
