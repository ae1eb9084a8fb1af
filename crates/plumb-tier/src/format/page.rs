//! Pages of the metadata tree, and the checkpoint page that names its roots.

use super::BLOCK_LEN;
use super::bytes::{Reader, Writer};
use super::checksum;
use super::frame::Link;

/// Entries of 4 bytes in a leaf.
pub(crate) const LEAF_ENTRIES: usize = 1020;
/// Pointers in an index page.
pub(crate) const INDEX_ENTRIES: usize = 510;
const HEADER: usize = 16;
const CHECKPOINT: u64 = u64::from_le_bytes(*b"PLUMBCP1");

/// Whether a page says that it is a checkpoint page, whole or not.
pub(crate) fn is_checkpoint(page: &[u8]) -> bool {
    page.starts_with(&CHECKPOINT.to_le_bytes())
}

/// Names a page of the tree and what it must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pointer {
    /// Page of the tree area, from 1; 0 for none.
    pub(crate) page: u32,
    /// The page's checksum, so that a page that was never written is not taken for it.
    pub(crate) crc: u32,
}

/// What a page is: part of its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageName {
    /// 0 the map, 1 the checksums.
    pub(crate) tree: u8,
    /// 0 for leaves.
    pub(crate) level: u8,
    /// Counted over the level.
    pub(crate) number: u32,
}

/// Completes a page whose entries are in place; its checksum.
pub(crate) fn seal(pool_seed: u32, name: PageName, page: &mut [u8; BLOCK_LEN]) -> u32 {
    page[4..8].copy_from_slice(&[name.tree, name.level, 0, 0]);
    page[8..12].copy_from_slice(&name.number.to_le_bytes());
    page[12..16].fill(0);
    let crc = checksum::crc(pool_seed, &page[4..]);
    page[..4].copy_from_slice(&crc.to_le_bytes());
    crc
}

/// Whether a page is the one that a pointer means.
pub(crate) fn verifies(pool_seed: u32, name: PageName, pointer: Pointer, page: &[u8]) -> bool {
    let Some((crc, rest)) = page.split_first_chunk::<4>() else { return false };
    let mut from = Reader(rest);
    page.len() == BLOCK_LEN
        && u32::from_le_bytes(*crc) == pointer.crc
        && checksum::crc(pool_seed, rest) == pointer.crc
        && (from.u8(), from.u8()) == (Some(name.tree), Some(name.level))
        && from.u16() == Some(0)
        && from.u32() == Some(name.number)
}

/// An entry of a leaf.
pub(crate) fn entry(page: &[u8], nth: usize) -> u32 {
    let at = HEADER + nth * 4;
    page.get(at..).and_then(|rest| Reader(rest).u32()).unwrap_or(0)
}

/// Sets an entry of a leaf.
pub(crate) fn set_entry(page: &mut [u8; BLOCK_LEN], nth: usize, value: u32) {
    let at = HEADER + nth * 4;
    page[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// A pointer of an index page.
pub(crate) fn pointer(page: &[u8], nth: usize) -> Pointer {
    Pointer { page: entry(page, 2 * nth), crc: entry(page, 2 * nth + 1) }
}

/// Sets a pointer of an index page.
pub(crate) fn set_pointer(page: &mut [u8; BLOCK_LEN], nth: usize, value: Pointer) {
    set_entry(page, 2 * nth, value.page);
    set_entry(page, 2 * nth + 1, value.crc);
}

/// Root of a tree, and how many leaves it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Root {
    pub(crate) leaves: u32,
    pub(crate) pointer: Pointer,
}

/// Frames, bytes of journal and checkpoints are fewer.
const COUNT_MAX: u64 = 1 << 62;

/// From where to replay, and the trees as they were then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// Raised by every checkpoint; its parity is its slot.
    pub(crate) sequence: u64,
    /// The first frame to replay.
    pub(crate) link: Link,
    /// Map, checksums.
    pub(crate) roots: [Root; 2],
}

impl Checkpoint {
    pub(crate) fn encode(&self, pool: u128) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(BLOCK_LEN));
        out.u64(CHECKPOINT);
        out.u128(pool);
        out.u64(self.sequence);
        out.u64(self.link.lsn);
        out.u64(self.link.position);
        out.u32(self.link.chain);
        out.u32(self.link.epoch);
        for root in &self.roots {
            out.u32(root.leaves);
            out.u32(root.pointer.page);
            out.u32(root.pointer.crc);
        }
        out.0.resize(BLOCK_LEN - 4, 0);
        let crc = checksum::crc(checksum::seed(pool), &out.0);
        out.u32(crc);
        out.0
    }

    pub(crate) fn decode(pool: u128, bytes: &[u8]) -> Option<Self> {
        let body = bytes.get(..BLOCK_LEN - 4)?;
        let stored = Reader(bytes.get(BLOCK_LEN - 4..)?).u32()?;
        let mut from = Reader(body);
        let ours = from.u64()? == CHECKPOINT && from.u128()? == pool;
        if !ours || checksum::crc(checksum::seed(pool), body) != stored {
            return None;
        }
        let sequence = from.u64()?;
        let link = Link {
            lsn: from.u64()?,
            position: from.u64()?,
            chain: from.u32()?,
            epoch: from.u32()?,
        };
        let mut roots = [Root::default(); 2];
        for root in &mut roots {
            let leaves = from.u32()?;
            *root = Root { leaves, pointer: Pointer { page: from.u32()?, crc: from.u32()? } };
        }
        // Numbers count from one, and no device lives long enough for these to be used up.
        let sane = (1..COUNT_MAX).contains(&link.lsn) && link.position < COUNT_MAX;
        if !sane || sequence >= COUNT_MAX {
            return None;
        }
        Some(Self { sequence, link, roots })
    }
}
