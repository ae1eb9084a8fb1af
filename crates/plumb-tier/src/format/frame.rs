//! Journal frames: what one group commit writes, and the records inside.

use super::bytes::{Fields, Reader};
use super::checksum;
use super::{BLOCK_BYTES, BLOCK_LEN};
use crate::mutation::{Mutation, active};
use plumb_units::convert::{index, to_u64};

const MAGIC: u32 = u32::from_le_bytes(*b"PLJF");
/// Bytes before the records.
pub(crate) const HEADER: usize = 48;

/// A place in the chain of frames: all that a frame must fit to be its next link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// LSN of the next frame.
    pub(crate) lsn: u64,
    /// Virtual position of the next frame in the ring; real is modulo the ring's length.
    pub(crate) position: u64,
    /// Checksum of the frame before.
    pub(crate) chain: u32,
    /// Epoch of the frame before.
    pub(crate) epoch: u32,
}

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Records.
    Records,
    /// Nothing: the ring goes on at its start.
    Pad,
    /// The records of a new epoch: the only kind that may raise it.
    EpochStart,
}

impl FrameKind {
    fn code(self) -> u32 {
        match self {
            Self::Records => 0,
            Self::Pad => 1,
            Self::EpochStart => 2,
        }
    }
}

/// A frame that was read and is whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: FrameKind,
    pub(crate) epoch: u32,
    pub(crate) body: &'a [u8],
    /// Bytes in the ring, padding included.
    pub(crate) span: u64,
    /// Its checksum: the chain of the next.
    pub(crate) crc: u32,
}

/// Bytes in the ring of a frame with a body of `len` bytes.
pub(crate) fn span(len: usize) -> u64 {
    to_u64(len + HEADER).next_multiple_of(BLOCK_BYTES)
}

/// Bits of a frame's word of kind that are the kind. The others are one more than how many of the frames right before it were not known
/// to be durable when it was made; 0 where nothing is said of that.
const KIND_BITS: u32 = 8;

/// Writes a frame to the start of `out`, padding included; its checksum. `span` is at least what the
/// body takes; what is more is skipped when it is read, and not written here. Frames up to `proven` are durable on all copies.
pub(crate) fn encode(
    out: &mut [u8],
    pool_seed: u32,
    kind: FrameKind,
    (link, proven): (&Link, u64),
    body: &[u8],
    span: u64,
) -> u32 {
    let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let unproven = u32::try_from(link.lsn.saturating_sub(1).saturating_sub(proven));
    let said = unproven.ok().map(|count| count.saturating_add(1)).filter(|said| *said < 1 << 24);
    let code = kind.code() | said.unwrap_or(0) << KIND_BITS;
    let mut head = Fields::new(&mut out[8..HEADER]);
    head.u32(link.epoch).u32(len).u64(link.lsn).u64(link.position);
    head.u32(link.chain).u32(code).u64(span);
    out[HEADER..HEADER + body.len()].copy_from_slice(body);
    let end = (HEADER + body.len()).next_multiple_of(BLOCK_LEN);
    out[HEADER + body.len()..end].fill(0);
    let crc = checksum::crc(pool_seed, &out[8..HEADER + body.len()]);
    out[..4].copy_from_slice(&MAGIC.to_le_bytes());
    out[4..8].copy_from_slice(&crc.to_le_bytes());
    crc
}

/// How many bytes the frame at the start of `block` claims to need for [`decode`]; `None` if it is no
/// frame, or longer than `limit`.
pub(crate) fn claimed(block: &[u8], limit: u64) -> Option<u64> {
    let mut from = Reader(block);
    if from.u32()? != MAGIC {
        return None;
    }
    let (_crc, _epoch, len) = (from.u32()?, from.u32()?, from.u32()?);
    let bytes = span(index(len));
    (bytes <= limit).then_some(bytes)
}

/// A whole frame of this pool that was written after the next link of a chain.
pub(crate) struct Later<'a> {
    body: &'a [u8],
    /// The last frame that was known to be durable when it was made, if it says so.
    pub(crate) proven: Option<u64>,
}

impl<'a> Later<'a> {
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> + 'a {
        records(self.body)
    }
}

/// The frame that lies `behind` bytes after the place of the next link and was written after that, whatever lies between.
pub(crate) fn later<'a>(
    bytes: &'a [u8],
    pool_seed: u32,
    link: &Link,
    behind: u64,
) -> Option<Later<'a>> {
    let mut from = Reader(bytes);
    let (magic, crc, epoch, len) = (from.u32()?, from.u32()?, from.u32()?, from.u32()?);
    let (lsn, position, _chain, word) = (from.u64()?, from.u64()?, from.u32()?, from.u32()?);
    let whole = bytes.get(8..HEADER.checked_add(index(len))?)?;
    let is_later = magic == MAGIC
        && epoch >= link.epoch
        && lsn > link.lsn
        && position == link.position + behind
        && checksum::crc(pool_seed, whole) == crc;
    let said = word >> KIND_BITS;
    let proven = (said > 0).then(|| lsn.saturating_sub(u64::from(said)));
    is_later.then(|| Later { body: &bytes[HEADER..HEADER + index(len)], proven })
}

/// Reads the frame at the start of `bytes` if it is the next link of the chain (JRN-1).
pub(crate) fn decode<'a>(
    bytes: &'a [u8],
    pool_seed: u32,
    link: &Link,
    ring_bytes: u64,
) -> Option<Frame<'a>> {
    let mut from = Reader(bytes);
    if from.u32()? != MAGIC {
        return None;
    }
    let crc = from.u32()?;
    let (epoch, len) = (from.u32()?, from.u32()?);
    let (lsn, position, chain) = (from.u64()?, from.u64()?, from.u32()?);
    let kind = match from.u32()? & ((1 << KIND_BITS) - 1) {
        0 => FrameKind::Records,
        1 => FrameKind::Pad,
        2 => FrameKind::EpochStart,
        _ => return None,
    };
    let stated = from.u64()?;
    let body = from.0.get(..index(len))?;
    let whole = bytes.get(8..HEADER + body.len())?;
    let epoch_fits = match kind {
        FrameKind::EpochStart => epoch > link.epoch,
        FrameKind::Records | FrameKind::Pad => epoch == link.epoch,
    };
    let fits = checksum::crc(pool_seed, whole) == crc
        && lsn == link.lsn
        && position == link.position
        && (chain == link.chain && epoch_fits || active(Mutation::RemainsAccepted))
        && stated >= span(body.len())
        && stated.is_multiple_of(BLOCK_BYTES)
        && stated <= ring_bytes - position % ring_bytes;
    fits.then_some(Frame { kind, epoch, body, span: stated, crc })
}

/// A change of the pool's state. Values, not operations: replaying one twice changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// The extent lies in that place, is open, and all its blocks are unwritten.
    MapSet { extent: u32, place: u32 },
    /// The extent lies in that place from now on; its blocks are what they were (10.4).
    Moved { extent: u32, place: u32 },
    /// The extent lies nowhere; all its blocks are unwritten.
    MapFree { extent: u32 },
    /// In-place writes may be under way.
    Open { extent: u32 },
    /// No in-place write is under way, and all are durable.
    Close { extent: u32 },
    /// The first checksum of a block whose data may not be durable.
    CrcFirst { block: u64, crc: u32 },
    /// The checksum of a block whose data is durable.
    CrcCommit { block: u64, crc: u32 },
    /// Blocks are unwritten.
    Zero { block: u64, count: u32 },
    /// The disk is missing: its places of all open extents, and of all opened later, are stale.
    DiskLost { disk: u16 },
    /// The disk takes part again; what is stale on it stays so.
    DiskBack { disk: u16 },
    /// All of the disk is stale.
    AllStale { disk: u16 },
    /// The place of the extent on that disk is stale.
    StaleSet { disk: u16, extent: u32 },
    /// The places of these of 64 extents on that disk are stale: bit n of `bits` is the extent 64 · `word` + n.
    StaleWord { disk: u16, word: u32, bits: u64 },
    /// It is in sync.
    StaleClear { disk: u16, extent: u32 },
    /// The extent's place on that disk is not up to date, and what it should hold still lies where it lay before
    /// its row named that disk.
    PlaceKept { disk: u16, extent: u32 },
    /// From here on the log of a virtual disk's cache is read (WBC-2): what lies before is at home.
    LogTail { vdisk: u16, link: Link },
    /// Records of the log from that position on are remains if their epoch is lower; the highest epoch: the
    /// log ends before it (WBC-1).
    LogHead { vdisk: u16, position: u64, epoch: u32 },
    /// Records of the log up to that LSN are durable on all its live copies.
    LogFlushed { vdisk: u16, lsn: u64 },
    /// What follows up to the end mark is the whole state beside the tree.
    CheckpointBegin,
    /// The state is complete.
    CheckpointEnd,
}

impl Record {
    /// Bytes of the longest record.
    pub(crate) const LEN_MAX: usize = 27;

    /// Appends the record.
    #[inline]
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let mut raw = [0_u8; Self::LEN_MAX];
        let (code, len) = match self {
            Self::MapSet { extent, place } => {
                raw[1..5].copy_from_slice(&extent.to_le_bytes());
                raw[5..9].copy_from_slice(&place.to_le_bytes());
                (1, 9)
            }
            Self::Moved { extent, place } => {
                raw[1..5].copy_from_slice(&extent.to_le_bytes());
                raw[5..9].copy_from_slice(&place.to_le_bytes());
                (20, 9)
            }
            Self::MapFree { extent } => (2, put_u32(&mut raw, extent)),
            Self::Open { extent } => (3, put_u32(&mut raw, extent)),
            Self::Close { extent } => (4, put_u32(&mut raw, extent)),
            Self::CrcFirst { block, crc } => (5, put_block(&mut raw, block, crc)),
            Self::CrcCommit { block, crc } => (6, put_block(&mut raw, block, crc)),
            Self::Zero { block, count } => (7, put_block(&mut raw, block, count)),
            Self::DiskLost { disk } => (8, put_u32(&mut raw, disk.into())),
            Self::DiskBack { disk } => (9, put_u32(&mut raw, disk.into())),
            Self::AllStale { disk } => (10, put_u32(&mut raw, disk.into())),
            Self::StaleSet { disk, extent } => (11, put_block(&mut raw, disk.into(), extent)),
            Self::StaleWord { disk, word, bits } => {
                raw[1..3].copy_from_slice(&disk.to_le_bytes());
                raw[3..7].copy_from_slice(&word.to_le_bytes());
                raw[7..15].copy_from_slice(&bits.to_le_bytes());
                (19, 15)
            }
            Self::StaleClear { disk, extent } => (12, put_block(&mut raw, disk.into(), extent)),
            Self::PlaceKept { disk, extent } => (18, put_block(&mut raw, disk.into(), extent)),
            Self::CheckpointBegin => (13, 1),
            Self::CheckpointEnd => (14, 1),
            Self::LogTail { vdisk, link } => {
                put_log(&mut raw, vdisk, link.lsn);
                raw[11..19].copy_from_slice(&link.position.to_le_bytes());
                raw[19..23].copy_from_slice(&link.chain.to_le_bytes());
                raw[23..27].copy_from_slice(&link.epoch.to_le_bytes());
                (15, 27)
            }
            Self::LogHead { vdisk, position, epoch } => {
                put_log(&mut raw, vdisk, position);
                raw[11..15].copy_from_slice(&epoch.to_le_bytes());
                (16, 15)
            }
            Self::LogFlushed { vdisk, lsn } => {
                put_log(&mut raw, vdisk, lsn);
                (17, 11)
            }
        };
        raw[0] = code;
        out.extend_from_slice(&raw[..len]);
    }

    fn decode(from: &mut Reader) -> Option<Self> {
        let disk = |value: u64| u16::try_from(value).ok();
        Some(match from.u8()? {
            1 => Self::MapSet { extent: from.u32()?, place: from.u32()? },
            20 => Self::Moved { extent: from.u32()?, place: from.u32()? },
            2 => Self::MapFree { extent: from.u32()? },
            3 => Self::Open { extent: from.u32()? },
            4 => Self::Close { extent: from.u32()? },
            5 => Self::CrcFirst { block: from.u64()?, crc: from.u32()? },
            6 => Self::CrcCommit { block: from.u64()?, crc: from.u32()? },
            7 => Self::Zero { block: from.u64()?, count: from.u32()? },
            8 => Self::DiskLost { disk: disk(from.u32()?.into())? },
            9 => Self::DiskBack { disk: disk(from.u32()?.into())? },
            10 => Self::AllStale { disk: disk(from.u32()?.into())? },
            11 => Self::StaleSet { disk: disk(from.u64()?)?, extent: from.u32()? },
            12 => Self::StaleClear { disk: disk(from.u64()?)?, extent: from.u32()? },
            13 => Self::CheckpointBegin,
            14 => Self::CheckpointEnd,
            15 => {
                let (vdisk, lsn, position) = (from.u16()?, from.u64()?, from.u64()?);
                let (chain, epoch) = (from.u32()?, from.u32()?);
                Self::LogTail { vdisk, link: Link { lsn, position, chain, epoch } }
            }
            16 => Self::LogHead { vdisk: from.u16()?, position: from.u64()?, epoch: from.u32()? },
            17 => Self::LogFlushed { vdisk: from.u16()?, lsn: from.u64()? },
            19 => Self::StaleWord { disk: from.u16()?, word: from.u32()?, bits: from.u64()? },
            18 => Self::PlaceKept { disk: disk(from.u64()?)?, extent: from.u32()? },
            _ => return None,
        })
    }
}

type Raw = [u8; Record::LEN_MAX];

fn put_log(raw: &mut Raw, vdisk: u16, lsn: u64) {
    raw[1..3].copy_from_slice(&vdisk.to_le_bytes());
    raw[3..11].copy_from_slice(&lsn.to_le_bytes());
}

fn put_u32(raw: &mut Raw, value: u32) -> usize {
    raw[1..5].copy_from_slice(&value.to_le_bytes());
    5
}

fn put_block(raw: &mut Raw, block: u64, value: u32) -> usize {
    raw[1..9].copy_from_slice(&block.to_le_bytes());
    raw[9..13].copy_from_slice(&value.to_le_bytes());
    13
}

/// The records of a body, until its end or the first that is none.
pub(crate) fn records(body: &[u8]) -> impl Iterator<Item = Record> {
    let mut from = Reader(body);
    std::iter::from_fn(move || Record::decode(&mut from))
}
