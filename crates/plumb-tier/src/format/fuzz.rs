//! Every parser of bytes on a pool's disks, for any bytes.

use plumb_units::convert::{index, to_u64};

use super::bytes::Reader;
use super::checksum;
use super::config::{self, Config};
use super::frame::{self, Link};
use super::log;
use super::page::{self, Checkpoint, PageName, Pointer};
use super::superblock::Superblock;
use super::{BLOCK_LEN, Geometry};

const SEED: u32 = 77;
const RING: u64 = 1 << 20;
/// As where no position or number is any more that an engine gets to.
const COUNT_MAX: u64 = 1 << 62;

/// What was read for whole, so that the fields behind its checksum were judged and taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reached {
    pub(super) superblocks: u64,
    pub(super) configs: u64,
    pub(super) config_pages: u64,
    pub(super) checkpoints: u64,
    pub(super) frames: u64,
    pub(super) later: u64,
    pub(super) logs: u64,
    pub(super) pages: u64,
}

impl std::ops::AddAssign for Reached {
    fn add_assign(&mut self, more: Self) {
        self.superblocks += more.superblocks;
        self.configs += more.configs;
        self.config_pages += more.config_pages;
        self.checkpoints += more.checkpoints;
        self.frames += more.frames;
        self.later += more.later;
        self.logs += more.logs;
        self.pages += more.pages;
    }
}

/// Reads any bytes as each structure of the format, and writes down anew what could be read; for fuzzing.
pub fn fuzz_format(bytes: &[u8]) {
    parse(bytes);
    sealed(bytes);
}

/// The same bytes with checksums that fit, which let the fields behind them be judged; what was reached.
pub(super) fn sealed(bytes: &[u8]) -> Reached {
    let mut found = Reached::default();
    for seal in [seal_superblock, seal_pages, seal_head_of_block, seal_frame] {
        let mut sealed = bytes.to_vec();
        if seal(&mut sealed).is_some() {
            found += parse(&sealed);
        }
    }
    found
}

/// Where a superblock has the id that its checksum is seeded with.
fn pool_of(bytes: &[u8]) -> u128 {
    let id = bytes.get(24..40).and_then(|part| part.first_chunk::<16>());
    id.map_or(0, |id| u128::from_le_bytes(*id))
}

fn seal_superblock(bytes: &mut [u8]) -> Option<()> {
    let pool = pool_of(bytes);
    let (body, sum) = bytes.get_mut(..BLOCK_LEN)?.split_last_chunk_mut::<4>()?;
    *sum = checksum::crc(checksum::seed(pool), body).to_le_bytes();
    Some(())
}

/// Checkpoints, and all pages of a configuration.
fn seal_pages(bytes: &mut [u8]) -> Option<()> {
    let pages = bytes.chunks_exact_mut(BLOCK_LEN);
    let sums = pages.filter_map(|page| page.split_last_chunk_mut::<4>());
    let sealed =
        sums.map(|(body, sum)| *sum = checksum::crc(checksum::seed(42), body).to_le_bytes());
    (sealed.count() > 0).then_some(())
}

/// Records of a log.
fn seal_head_of_block(bytes: &mut [u8]) -> Option<()> {
    let sum = checksum::crc(SEED, bytes.get(8..BLOCK_LEN)?);
    bytes.get_mut(4..8)?.copy_from_slice(&sum.to_le_bytes());
    Some(())
}

/// Frames, as long as they say that they are.
fn seal_frame(bytes: &mut [u8]) -> Option<()> {
    let len = Reader(bytes.get(12..16)?).u32()?;
    let sum = checksum::crc(SEED, bytes.get(8..frame::HEADER.checked_add(index(len))?)?);
    bytes.get_mut(4..8)?.copy_from_slice(&sum.to_le_bytes());
    Some(())
}

/// The link of the chain that a frame or a record of a log says it is the next one of.
fn link_of(bytes: &[u8]) -> Option<(u32, Link)> {
    let mut epoch = Reader(bytes.get(8..12)?);
    let mut rest = Reader(bytes.get(16..36)?);
    let epoch = epoch.u32()?;
    let link = Link { lsn: rest.u64()?, position: rest.u64()?, chain: rest.u32()?, epoch };
    (link.lsn < COUNT_MAX && link.position < COUNT_MAX).then_some((epoch, link))
}

/// The bytes as they are; what was reached.
pub(super) fn parse(bytes: &[u8]) -> Reached {
    let mut found = Reached::default();
    if let Some(block) = Superblock::decode(bytes) {
        assert!(block.geometry.is_sane(), "{:?}", block.geometry);
        assert_eq!(Superblock::decode(&block.encode()), Some(block), "what was read is written");
        found.superblocks += 1;
    }
    if let Some(config) = Config::decode(bytes) {
        assert_eq!(Config::decode(&config.encode()).as_ref(), Some(&config));
        let _ = config.fits(&Geometry::standard(16 << 20, 1 << 30));
        found.configs += 1;
    }
    if let Some(checkpoint) = Checkpoint::decode(42, bytes) {
        assert_eq!(Checkpoint::decode(42, &checkpoint.encode(42)), Some(checkpoint));
        found.checkpoints += 1;
    }
    let _ = config::begins_a_record(bytes);
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    for len in [100, len, len / BLOCK_LEN_U32 * 4092] {
        if let Some(record) = config::record(42, len, bytes) {
            assert!(record.len() <= bytes.len(), "no bytes out of nothing");
            found.config_pages += u64::from(len > 0);
            if let Some(config) = Config::decode(&record) {
                assert_eq!(Config::decode(&config.encode()).as_ref(), Some(&config));
                found.configs += 1;
            }
        }
    }
    let _ = frame::claimed(bytes, RING);
    assert!(frame::records(bytes).count() <= bytes.len());
    let mut links = vec![Link { lsn: 1, position: 0, chain: 0, epoch: 0 }];
    if let Some((epoch, link)) = link_of(bytes) {
        // Only the first frame of an epoch has a higher one.
        links.extend([link, Link { epoch: epoch.saturating_sub(1), ..link }]);
    }
    for link in &links {
        read_frame(bytes, link, &mut found);
        read_log(bytes, link, &mut found);
    }
    read_page(bytes, &mut found);
    found
}

fn read_frame(bytes: &[u8], link: &Link, found: &mut Reached) {
    if let Some(frame) = frame::decode(bytes, SEED, link, RING) {
        let left = RING - link.position % RING;
        assert!(frame.span <= left, "a frame never leaves the ring");
        assert!(frame.span >= frame::span(frame.body.len()));
        let records: Vec<frame::Record> = frame::records(frame.body).collect();
        let mut body = Vec::new();
        records.iter().for_each(|record| record.encode(&mut body));
        assert!(frame::records(&body).eq(records), "what was read is written");
        found.frames += 1;
    }
    // Frames that were written later than the one that is wanted.
    let before = Link { lsn: link.lsn.saturating_sub(1), ..*link };
    for link in [link, &before] {
        for behind in [0, 4096, RING] {
            if let Some(later) = frame::later(bytes, SEED, link, behind) {
                assert!(later.records().count() <= bytes.len());
                found.later += 1;
            }
        }
    }
}

fn read_log(bytes: &[u8], link: &Link, found: &mut Reached) {
    let Some(read) = log::decode(bytes, SEED, link, 0) else { return };
    let blocks =
        read.ranges.iter().filter(|range| !range.zeros).map(|range| u64::from(range.count));
    assert_eq!(blocks.sum::<u64>(), to_u64(read.sums.len()), "each block has its checksum");
    assert!(read.pad || read.span == (1 + to_u64(read.sums.len())) * to_u64(BLOCK_LEN));
    let mut again = vec![0; BLOCK_LEN];
    let (own, kind) = (Link { epoch: read.epoch, ..*link }, (read.pad, read.span));
    let crc = log::encode_kind(&mut again, SEED, (&own, kind.0, kind.1), &read.ranges, &read.sums);
    let expected = log::LogHeader { crc, ..read };
    assert_eq!(log::decode(&again, SEED, link, 0), Some(expected), "what was read is written");
    found.logs += 1;
}

/// A page of the metadata tree, whichever it says that it is; its checksum stands in who points to it as well.
fn read_page(bytes: &[u8], found: &mut Reached) {
    let Some(mut page) = bytes.first_chunk::<BLOCK_LEN>().copied() else { return };
    let zero = PageName { tree: 0, level: 0, number: 0 };
    let _ = page::verifies(SEED, zero, Pointer { page: 1, crc: 0 }, bytes);
    let number = page[8..12].first_chunk::<4>().map_or(0, |part| u32::from_le_bytes(*part));
    let name = PageName { tree: page[4], level: page[5], number };
    let crc = checksum::crc(SEED, &page[4..]);
    page[..4].copy_from_slice(&crc.to_le_bytes());
    if !page::verifies(SEED, name, Pointer { page: 1, crc }, &page) {
        return;
    }
    let other = PageName { number: number ^ 1, ..name };
    assert!(!page::verifies(SEED, other, Pointer { page: 1, crc }, &page), "of another place");
    if page[6..8] == [0; 2] && page[12..16] == [0; 4] {
        assert_eq!(page::seal(SEED, name, &mut page), crc, "what was read is written");
    }
    found.pages += 1;
}

const BLOCK_LEN_U32: u32 = 4096;
