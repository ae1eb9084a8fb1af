//! Every parser of bytes on a pool's disks, for any bytes.

use super::checksum;
use super::config::{self, Config};
use super::frame::{self, Link};
use super::log;
use super::page::{self, Checkpoint, PageName, Pointer};
use super::superblock::Superblock;
use super::{BLOCK_LEN, Geometry};

const SEED: u32 = 77;
const RING: u64 = 1 << 20;

/// Reads any bytes as each structure of the format, and writes down anew what could be read; for fuzzing.
pub fn fuzz_format(bytes: &[u8]) {
    parse(bytes);
    // A checksum that fits lets the fields behind it be judged.
    let mut sealed = bytes.to_vec();
    for pool in [42, pool_of(bytes)] {
        if let Some((body, sum)) =
            sealed.get_mut(..BLOCK_LEN).and_then(<[u8]>::split_last_chunk_mut::<4>)
        {
            *sum = checksum::crc(checksum::seed(pool), body).to_le_bytes();
            parse(&sealed);
        }
    }
}

/// Where a superblock has the id that its checksum is seeded with.
fn pool_of(bytes: &[u8]) -> u128 {
    let id = bytes.get(24..40).and_then(|part| part.first_chunk::<16>());
    id.map_or(0, |id| u128::from_le_bytes(*id))
}

fn parse(bytes: &[u8]) {
    if let Some(block) = Superblock::decode(bytes) {
        assert!(block.geometry.is_sane(), "{:?}", block.geometry);
        assert_eq!(Superblock::decode(&block.encode()), Some(block), "what was read is written");
    }
    if let Some(config) = Config::decode(bytes) {
        assert_eq!(Config::decode(&config.encode()).as_ref(), Some(&config));
        let _ = config.fits(&Geometry::standard(16 << 20, 1 << 30));
    }
    if let Some(checkpoint) = Checkpoint::decode(42, bytes) {
        assert_eq!(Checkpoint::decode(42, &checkpoint.encode(42)), Some(checkpoint));
    }
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    for len in [100, len, len / BLOCK_LEN_U32 * 4092] {
        let record = config::record(42, len, bytes);
        assert!(record.is_none_or(|record| record.len() <= bytes.len()), "no bytes out of nothing");
    }
    let _ = frame::claimed(bytes, RING);
    let link = Link { lsn: 1, position: 0, chain: 0, epoch: 0 };
    if let Some(frame) = frame::decode(bytes, SEED, &link, RING) {
        assert!(frame.span <= RING, "a frame never leaves the ring");
    }
    for behind in [0, 4096, RING] {
        let later =
            frame::later(bytes, SEED, &link, behind).map_or(0, |later| later.records().count());
        assert!(later <= bytes.len());
    }
    assert!(frame::records(bytes).count() <= bytes.len());
    let name = PageName { tree: 0, level: 0, number: 0 };
    let _ = log::decode(bytes, SEED, &link, 0);
    let _ = page::verifies(SEED, name, Pointer { page: 1, crc: 0 }, bytes);
}

const BLOCK_LEN_U32: u32 = 4096;
