//! Records of a write-back cache's log: a header block, then whole blocks of data (section 6.2).

use plumb_units::convert::{index, to_u32, to_u64};

use super::bytes::{Fields, Reader};
use super::checksum;
use super::frame::Link;
use super::{BLOCK_BYTES, BLOCK_LEN};
use crate::mutation::{Mutation, active};

const MAGIC: u32 = u32::from_le_bytes(*b"PLWL");
/// Bytes of a header before its ranges.
const HEADER: usize = 48;
/// Bytes of a range without its checksums.
const RANGE: usize = 12;
/// The bit of a range's count that says: these blocks become unwritten, and have no data.
const ZEROS: u32 = 1 << 31;

/// Blocks of a virtual disk that a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogRange {
    /// Block of the virtual disk.
    pub(crate) block: u64,
    pub(crate) count: u32,
    /// They become unwritten (WBC-8).
    pub(crate) zeros: bool,
}

/// A header that was read and is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogHeader {
    pub(crate) epoch: u32,
    /// Nothing: the ring goes on at its next slab, no LSN is used.
    pub(crate) pad: bool,
    /// Bytes in the ring, header included.
    pub(crate) span: u64,
    pub(crate) ranges: Vec<LogRange>,
    /// Of the data blocks, in order.
    pub(crate) sums: Vec<u32>,
    /// The header's own: the chain of the next.
    pub(crate) crc: u32,
}

/// Whether a header has room for one more range, beside `ranges` with `blocks` of data.
pub(crate) fn fits(ranges: usize, blocks: usize) -> bool {
    HEADER + ranges * RANGE + blocks * 4 <= BLOCK_LEN
}

/// Writes the header block to the start of `out`; its checksum.
pub(crate) fn encode(
    out: &mut [u8],
    seed: u32,
    link: &Link,
    ranges: &[LogRange],
    sums: &[u32],
) -> u32 {
    let span = BLOCK_BYTES * (1 + to_u64(sums.len()));
    encode_kind(out, seed, (link, false, span), ranges, sums)
}

/// Writes the header block of a pad that takes `span` bytes.
pub(crate) fn encode_pad(out: &mut [u8], seed: u32, link: &Link, span: u64) -> u32 {
    encode_kind(out, seed, (link, true, span), &[], &[])
}

/// Writes the header block of any record.
pub(super) fn encode_kind(
    out: &mut [u8],
    seed: u32,
    (link, pad, span): (&Link, bool, u64),
    ranges: &[LogRange],
    sums: &[u32],
) -> u32 {
    let out = &mut out[..BLOCK_LEN];
    let mut head = Fields::new(out);
    head.u32(MAGIC).u32(0).u32(link.epoch).u32(to_u32(ranges.len()));
    head.u64(link.lsn).u64(link.position).u32(link.chain).u32(u32::from(pad)).u64(span);
    for range in ranges {
        head.u64(range.block).u32(range.count | if range.zeros { ZEROS } else { 0 });
    }
    for sum in sums {
        head.u32(*sum);
    }
    head.zeros();
    let crc = checksum::crc(seed, &out[8..]);
    out[4..8].copy_from_slice(&crc.to_le_bytes());
    crc
}

/// Reads a header block if it is the next link of the chain; `least` is the lowest epoch that it may have.
pub(crate) fn decode(bytes: &[u8], seed: u32, link: &Link, least: u32) -> Option<LogHeader> {
    let mut from = Reader(bytes.get(..BLOCK_LEN)?);
    if from.u32()? != MAGIC {
        return None;
    }
    let crc = from.u32()?;
    let (epoch, count) = (from.u32()?, from.u32()?);
    let (lsn, position, chain) = (from.u64()?, from.u64()?, from.u32()?);
    let pad = match from.u32()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let span = from.u64()?;
    let follows = chain == link.chain && epoch >= link.epoch.max(least)
        || active(Mutation::LogRemainsAccepted);
    let fits = checksum::crc(seed, &bytes[8..BLOCK_LEN]) == crc
        && (lsn, position) == (link.lsn, link.position)
        && follows
        && span >= BLOCK_BYTES
        && span.is_multiple_of(BLOCK_BYTES);
    if !fits || index(count) * RANGE > BLOCK_LEN - HEADER {
        return None;
    }
    let mut ranges = Vec::with_capacity(index(count));
    let mut blocks = 0_u64;
    for _ in 0..count {
        let (block, word) = (from.u64()?, from.u32()?);
        let range = LogRange { block, count: word & !ZEROS, zeros: word & ZEROS != 0 };
        range.block.checked_add(range.count.into())?;
        blocks += if range.zeros { 0 } else { u64::from(range.count) };
        ranges.push(range);
    }
    if blocks > to_u64(from.0.len() / 4) || !pad && span != BLOCK_BYTES * (1 + blocks) {
        return None;
    }
    let sums = (0..blocks).map(|_| from.u32()).collect::<Option<Vec<_>>>()?;
    Some(LogHeader { epoch, pad, span, ranges, sums, crc })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link { lsn: 7, position: 8192, chain: 5, epoch: 3 };
    const RANGES: [LogRange; 2] = [
        LogRange { block: 9, count: 2, zeros: false },
        LogRange { block: 1 << 40, count: 3, zeros: true },
    ];

    fn sample(link: &Link) -> Vec<u8> {
        let mut bytes = vec![1; BLOCK_LEN];
        encode(&mut bytes, 77, link, &RANGES, &[10, 11]);
        bytes
    }

    #[test]
    fn a_record_is_read_back_and_only_as_the_next_one() {
        let bytes = sample(&LINK);
        let read = decode(&bytes, 77, &LINK, 0).expect("it was just written");
        assert_eq!((read.ranges.as_slice(), read.sums.as_slice()), (&RANGES[..], &[10, 11][..]));
        assert_eq!((read.span, read.epoch, read.pad), (3 * BLOCK_BYTES, 3, false));
        assert_eq!(decode(&bytes, 78, &LINK, 0), None, "another virtual disk's");
        assert_eq!(decode(&bytes, 77, &LINK, 4), None, "remains of an earlier start");
        for wrong in [
            Link { lsn: 8, ..LINK },
            Link { position: 4096, ..LINK },
            Link { chain: 6, ..LINK },
            Link { epoch: 4, ..LINK },
        ] {
            assert_eq!(decode(&bytes, 77, &wrong, 0), None, "{wrong:?}");
        }
        crate::mutation::set(Some(Mutation::LogRemainsAccepted));
        let accepted = decode(&bytes, 77, &Link { chain: 6, ..LINK }, 0).is_some();
        crate::mutation::set(None);
        assert!(accepted, "the mutation breaks what this test guards");
        let later = sample(&Link { epoch: 4, ..LINK });
        assert!(decode(&later, 77, &LINK, 4).is_some(), "a later start goes on");
        let mut pad = vec![0; BLOCK_LEN];
        encode_pad(&mut pad, 77, &LINK, 16384);
        let read = decode(&pad, 77, &LINK, 0).expect("it was just written");
        assert!(read.pad && read.span == 16384 && read.ranges.is_empty());
    }

    /// Any bytes: refused, or read within bounds.
    #[test]
    fn damaged_records_are_read_or_refused() {
        let mut random = crate::random::Random::new(5);
        for _ in 0..20_000 {
            let mut bytes = sample(&LINK);
            for _ in 0..=random.below(4) {
                let at = usize::try_from(random.below(80)).expect("small");
                bytes[at] = u8::try_from(random.below(256)).expect("a byte");
            }
            if random.one_in(2) {
                // A checksum that fits lets the fields behind it be judged.
                let crc = checksum::crc(77, &bytes[8..]);
                bytes[4..8].copy_from_slice(&crc.to_le_bytes());
            }
            if let Some(read) = decode(&bytes, 77, &LINK, 0) {
                assert!(read.sums.len() <= 1024 && read.ranges.len() <= 340);
            }
        }
    }
}
