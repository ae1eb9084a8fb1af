//! Checksums: CRC-32C seeded with an identity, and the digest of a configuration record.

use plumb_sys::crc32c;

/// Stands where a checksum would, of a block whose checksum is lost on all copies: what lies there cannot be judged (LAY-7).
pub(crate) const UNVERIFIED: u32 = u32::MAX;

/// The seed of all checksums of a pool's metadata.
#[must_use]
pub(crate) fn seed(pool: u128) -> u32 {
    crc32c::checksum(&pool.to_le_bytes())
}

/// CRC-32C of `bytes`, continued from `seed`.
#[inline]
#[must_use]
pub(crate) fn crc(seed: u32, bytes: &[u8]) -> u32 {
    crc32c::append(seed, bytes)
}

/// The seed of the data checksums of a virtual disk.
#[must_use]
pub(crate) fn data_seed(pool: u128, vdisk: u128) -> u32 {
    crc32c::append(seed(pool), &vdisk.to_le_bytes())
}

/// Checksum of one 4 KiB block of data (LAY-6): seeded with pool, virtual disk and logical block, so a
/// block delivered from the wrong place never verifies. Never 0, which means *unwritten* (LAY-7), nor [`UNVERIFIED`].
#[inline]
#[must_use]
pub(crate) fn block(data_seed: u32, block: u64, bytes: &[u8]) -> u32 {
    let start = crc32c::append(data_seed, &block.to_le_bytes());
    crc32c::append(start, bytes).clamp(1, UNVERIFIED - 1)
}

/// 128-bit FNV-1a: tells which configuration record a superblock names. Rot is caught by each page's
/// CRC; the digest only has to differ between records.
#[must_use]
pub(crate) fn digest(bytes: &[u8]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let start = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    bytes.iter().fold(start, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}
