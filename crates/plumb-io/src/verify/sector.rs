//! What every sector of a verified run holds: who wrote it, where it belongs, and a sum over all of it.
//!
//! ```text
//! byte    0        8     12    16        24        32        40        48         56     60     64 … 512
//!         +--------+-----+-----+---------+---------+---------+---------+----------+------+------+--------+
//!         | magic  | sum | gen | history | target  | offset  | write   | block    | len  | form | filler |
//!         +--------+-----+-----+---------+---------+---------+---------+----------+------+------+--------+
//! ```
//!
//! All numbers are little-endian. `sum` is CRC-32C (Castagnoli) of the sector's identity (history, target,
//! offset, as they should be) followed by bytes 12 to 511: content that is whole but lies elsewhere has a
//! sum that holds for the place in its own header only. The filler follows from the header, so that no
//! layer below can compress or deduplicate sectors away.

/// Bytes of the smallest unit that is verified: what devices write whole or not at all.
pub const SECTOR: u32 = 512;

const MAGIC: [u8; 8] = *b"PlumbVfy";
/// Raised when the layout changes.
const FORM: u32 = 1;
const HEADER: usize = 64;

/// Where a sector belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Which verified history wrote it: drawn at random when one begins.
    pub history: u64,
    /// Number of the target in its history.
    pub target: u64,
    /// Bytes from the start of the target.
    pub offset: u64,
}

/// Which write a sector comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteStamp {
    /// Counts the writes to this place, from 1.
    pub generation: u32,
    /// One number per write, the same in all of its sectors.
    pub write: u64,
    /// Where the write began, in bytes.
    pub block: u64,
    /// How long it was, in bytes.
    pub len: u32,
}

impl WriteStamp {
    /// Whether the write covered the byte at `offset`.
    #[must_use]
    pub fn covers(&self, offset: u64) -> bool {
        self.block <= offset && offset - self.block < u64::from(self.len)
    }
}

/// What a sector turned out to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A whole sector that belongs here.
    Here(WriteStamp),
    /// A whole sector of the same history that belongs elsewhere.
    Elsewhere(Identity, WriteStamp),
    /// A header of the same history, and content that does not go with it.
    Damaged(WriteStamp),
    /// Written by another history.
    OtherHistory(u64),
    /// Nothing that a verified run wrote.
    Unknown,
}

/// Fills `sector` for its place.
///
/// # Panics
/// When it is not [`SECTOR`] bytes long.
pub fn stamp(sector: &mut [u8], place: Identity, write: &WriteStamp) {
    assert!(sector.len() == plumb_units::convert::index(SECTOR), "a sector has {SECTOR} bytes");
    sector[0..8].copy_from_slice(&MAGIC);
    sector[12..16].copy_from_slice(&write.generation.to_le_bytes());
    sector[16..24].copy_from_slice(&place.history.to_le_bytes());
    sector[24..32].copy_from_slice(&place.target.to_le_bytes());
    sector[32..40].copy_from_slice(&place.offset.to_le_bytes());
    sector[40..48].copy_from_slice(&write.write.to_le_bytes());
    sector[48..56].copy_from_slice(&write.block.to_le_bytes());
    sector[56..60].copy_from_slice(&write.len.to_le_bytes());
    sector[60..64].copy_from_slice(&FORM.to_le_bytes());
    // An odd multiplier keeps neighbours apart; steps as in Steele, Lea, Flood: SplitMix64.
    let mut state = (place.history ^ place.offset).wrapping_mul(0xd1b5_4a32_d192_ed03)
        ^ write.write.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for word in sector[HEADER..].chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        word.copy_from_slice(
            &((state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)).to_le_bytes(),
        );
    }
    let sum = sum(sector, place);
    sector[8..12].copy_from_slice(&sum.to_le_bytes());
}

/// Reads a sector that is expected at `place`.
///
/// # Panics
/// When it is not [`SECTOR`] bytes long.
#[must_use]
pub fn read(sector: &[u8], place: Identity) -> Content {
    assert!(sector.len() == plumb_units::convert::index(SECTOR), "a sector has {SECTOR} bytes");
    if sector[0..8] != MAGIC || word(sector, 60) != FORM {
        return Content::Unknown;
    }
    let history = long(sector, 16);
    if history != place.history {
        return Content::OtherHistory(history);
    }
    let stamped = word(sector, 8);
    let claimed = Identity { history, target: long(sector, 24), offset: long(sector, 32) };
    let write = WriteStamp {
        generation: word(sector, 12),
        write: long(sector, 40),
        block: long(sector, 48),
        len: word(sector, 56),
    };
    if sum(sector, claimed) != stamped {
        return Content::Damaged(write);
    }
    if claimed == place { Content::Here(write) } else { Content::Elsewhere(claimed, write) }
}

/// Whether a sector has the header of `history` for `place`, its sum not looked at.
pub(super) fn claims(sector: &[u8], place: Identity) -> bool {
    sector[0..8] == MAGIC
        && long(sector, 16) == place.history
        && long(sector, 24) == place.target
        && long(sector, 32) == place.offset
}

fn sum(sector: &[u8], place: Identity) -> u32 {
    let mut identity = [0; 24];
    identity[0..8].copy_from_slice(&place.history.to_le_bytes());
    identity[8..16].copy_from_slice(&place.target.to_le_bytes());
    identity[16..24].copy_from_slice(&place.offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&identity), &sector[12..])
}

fn word(sector: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&sector[at..at + 4]);
    u32::from_le_bytes(bytes)
}

fn long(sector: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&sector[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Identity = Identity { history: 7, target: 2, offset: 4096 };
    const WRITE: WriteStamp = WriteStamp { generation: 9, write: 77, block: 4096, len: 1024 };

    fn stamped() -> [u8; 512] {
        let mut sector = [0xee; 512];
        stamp(&mut sector, PLACE, &WRITE);
        sector
    }

    #[test]
    fn the_sum_is_crc_32c() {
        // RFC 3720, B.4.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn a_sector_says_where_it_belongs() {
        let sector = stamped();
        assert_eq!(read(&sector, PLACE), Content::Here(WRITE));
        for other in [Identity { target: 3, ..PLACE }, Identity { offset: 4608, ..PLACE }] {
            assert_eq!(read(&sector, other), Content::Elsewhere(PLACE, WRITE));
        }
        assert_eq!(read(&sector, Identity { history: 8, ..PLACE }), Content::OtherHistory(7));
        assert_eq!(read(&[0; 512], PLACE), Content::Unknown);
        assert!(WRITE.covers(5119) && !WRITE.covers(5120) && !WRITE.covers(4095));
    }

    #[test]
    fn no_single_damaged_byte_passes() {
        let sector = stamped();
        for at in 0..512 {
            let mut damaged = sector;
            damaged[at] ^= 0x10;
            let found = read(&damaged, PLACE);
            let expected = match at {
                0..8 | 60..64 => matches!(found, Content::Unknown),
                16..24 => matches!(found, Content::OtherHistory(_)),
                _ => matches!(found, Content::Damaged(_)),
            };
            assert!(expected, "byte {at}: {found:?}");
        }
    }

    #[test]
    fn the_identity_is_part_of_the_sum() {
        // A layer that rewrites the header's offset and nothing else does not make it belong there.
        let mut moved = stamped();
        moved[32..40].copy_from_slice(&8192_u64.to_le_bytes());
        let there = Identity { offset: 8192, ..PLACE };
        assert_eq!(read(&moved, there), Content::Damaged(WRITE));
    }

    #[test]
    fn fillers_differ_by_place_and_write() {
        let mut fillers = std::collections::HashSet::new();
        for offset in (0..8).map(|n| n * 512) {
            for write in 0..8 {
                let mut sector = [0; 512];
                stamp(&mut sector, Identity { offset, ..PLACE }, &WriteStamp { write, ..WRITE });
                fillers.insert(sector[HEADER..].to_vec());
            }
        }
        assert_eq!(fillers.len(), 64);
    }
}
