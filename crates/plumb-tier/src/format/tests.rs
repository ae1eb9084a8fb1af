use super::frame::{self, FrameKind, Link, Record};
use super::fuzz::{self, Reached, fuzz_format};
use super::log::{self, LogRange};
use super::page::{self, Checkpoint, PageName, Pointer, Root};
use super::superblock::{RecordName, Superblock};
use super::*;
use crate::mutation::{self, Mutation};
use crate::random::Random;

const SEED: u32 = 77;

pub(crate) fn sample_config() -> Config {
    let disk = |id| DiskConfig {
        id,
        media: MediaType::Ssd,
        state: DiskState::Online,
        metadata: true,
        leaving: id == 2,
        known_epoch: 3,
        served_epoch: u32::from(id == 1) * 2,
        device_bytes: 1 << 30,
        name: format!("disk {id}"),
    };
    Config {
        generation: Generation { epoch: 3, number: 9, id: 1234 },
        ancestors: vec![5, 6, 7],
        pool: 42,
        name: "sample".into(),
        extent_bytes: 1 << 20,
        disks: vec![disk(1), disk(2), disk(3)],
        voters: vec![0, 1],
        vdisks: vec![VirtualDisk {
            id: 8,
            name: "space".into(),
            copies: 2,
            columns: 1,
            interleave: 256 << 10,
            first_extent: 0,
            extents: 16,
            tiers: vec![Tier {
                media: MediaType::Ssd,
                rows: vec![Row { slabs: vec![(0, 0), (1, 0)] }],
            }],
            cache: Some(CacheConfig {
                bytes: 1 << 20,
                copies: vec![
                    CacheCopy { disk: 0, current: true, slabs: vec![1] },
                    CacheCopy { disk: 1, current: false, slabs: vec![2] },
                ],
            }),
        }],
        moving: Some(Moving { vdisk: 0, tier: 0, row: 0, nth: 1, from: (2, 3) }),
        lists: vec![vec![0, 1], vec![1]],
    }
}

pub(crate) fn sample_superblock() -> Superblock {
    Superblock {
        incompat: 0,
        ro_compat: 0,
        pool: 42,
        device: 1,
        ordinal: 0,
        sector: 512,
        device_bytes: 1 << 30,
        geometry: Geometry::standard(16 << 20, 1 << 30),
        created: 0,
        version: 17,
        generation: Generation { epoch: 3, number: 9, id: 1234 },
        epoch_started: 3,
        epoch_served: 2,
        area: 1,
        records: [RecordName { len: 100, digest: 5 }, RecordName { len: 200, digest: 6 }],
    }
}

fn sample_frame(link: &Link, kind: FrameKind, records: &[Record]) -> (Vec<u8>, u32) {
    let mut body = Vec::new();
    records.iter().for_each(|record| record.encode(&mut body));
    let span = frame::span(body.len());
    let mut bytes = vec![0; usize::try_from(span).expect("small")];
    let crc = frame::encode(&mut bytes, SEED, kind, (link, 0), &body, span);
    (bytes, crc)
}

#[test]
fn damaged_metadata_is_read_or_refused() {
    let link = Link { lsn: 1, position: 0, chain: 0, epoch: 0 };
    let checkpoint = Checkpoint { sequence: 1, link, roots: [Root::default(); 2] };
    let ranges = [(7, 2, false), (1 << 40, 3, true)];
    let ranges = ranges.map(|(block, count, zeros)| LogRange { block, count, zeros });
    let (mut record, mut pad) = (vec![0; BLOCK_LEN], vec![0; BLOCK_LEN]);
    log::encode(&mut record, SEED, &link, &ranges, &[3, 4]);
    log::encode_pad(&mut pad, SEED, &link, 8192);
    let records = [Record::MapSet { extent: 1, place: 2 }, Record::LogTail { vdisk: 1, link }];
    let mut leaf = [0; BLOCK_LEN];
    (0..9).for_each(|nth| page::set_entry(&mut leaf, nth, 5));
    page::seal(SEED, PageName { tree: 1, level: 0, number: 3 }, &mut leaf);
    let corpus = [
        sample_superblock().encode(),
        sample_config().encode(),
        config::pages(42, &sample_config().encode()),
        checkpoint.encode(42),
        sample_frame(&link, FrameKind::Records, &records).0,
        sample_frame(&link, FrameKind::EpochStart, &records).0,
        record,
        pad,
        leaf.to_vec(),
    ];
    corpus.iter().for_each(|whole| fuzz_format(whole));
    let mut random = Random::new(1);
    let (mut as_they_are, mut sealed) = (Reached::default(), Reached::default());
    for nth in 0..45_000 {
        let mut bytes = corpus[nth % corpus.len()].clone();
        let before = bytes.clone();
        // Most of a block is zeros; what is said is in front.
        let within = if random.one_in(2) { 128.min(bytes.len()) } else { bytes.len() };
        for _ in 0..=random.below(6) {
            let end = within.min(bytes.len()) as u64;
            let at = usize::try_from(random.below(end)).expect("small");
            match random.below(4) {
                0 => bytes[at] = 0xff,
                1 => bytes[at] ^= 1 << random.below(8),
                2 if random.one_in(4) => bytes.truncate(at.max(1)),
                _ => bytes[at] = 0,
            }
        }
        if bytes == before {
            continue;
        }
        let (mut plain, mut fitting) = (fuzz::parse(&bytes), fuzz::sealed(&bytes));
        if bytes.get(..84) == before.get(..84) {
            // No checksum of a frame is of what lies behind what it says.
            (plain.frames, plain.later, fitting.frames, fitting.later) = (0, 0, 0, 0);
        }
        as_they_are += plain;
        sealed += fitting;
    }
    println!("as they are: {as_they_are:?}; sealed: {sealed:?}");
    // A configuration is no page yet and a leaf's checksum is the pointer's, so what those say is judged as it is.
    let behind = |found: Reached| {
        let Reached { superblocks, config_pages, checkpoints, frames, later, logs, .. } = found;
        [superblocks, config_pages, checkpoints, frames, later, logs]
    };
    assert!(behind(sealed).iter().all(|count| *count > 1000), "{sealed:?}");
    assert!(as_they_are.configs > 1000 && as_they_are.pages > 1000, "{as_they_are:?}");
    let seldom = |(without, with): (u64, u64)| without * 20 < with;
    let both = behind(as_they_are).into_iter().zip(behind(sealed));
    assert!(both.into_iter().all(seldom), "checksums hide most: {as_they_are:?} {sealed:?}");
}

/// A frame that claims more than the ring has left is none, however much it claims.
#[test]
fn no_frame_leaves_the_ring() {
    let link = Link { lsn: 5, position: 8192, chain: 9, epoch: 2 };
    let reads = |span: u64| {
        let mut bytes = vec![0; BLOCK_LEN];
        frame::encode(&mut bytes, SEED, FrameKind::Pad, (&link, 0), &[], span);
        frame::decode(&bytes, SEED, &link, 1 << 20).is_some()
    };
    assert!(reads((1 << 20) - 8192));
    assert!(!reads(1 << 20) && !reads(u64::MAX - 4095), "it ends behind the ring");
}

#[test]
fn what_is_written_is_read_back() {
    let config = sample_config();
    assert_eq!(Config::decode(&config.encode()).as_ref(), Some(&config));
    let record = config.encode();
    let pages = config::pages(42, &record);
    let len = u32::try_from(record.len()).expect("small");
    assert_eq!(config::record(42, len, &pages).as_deref(), Some(record.as_slice()));
    assert_eq!(config::record(43, len, &pages), None, "another pool's");
    let block = sample_superblock();
    assert_eq!(block.encode().len(), BLOCK_LEN);
    assert_eq!(Superblock::decode(&block.encode()), Some(block));
    let link = Link { lsn: 5, position: 8192, chain: 9, epoch: 2 };
    let root = Root { leaves: 3, pointer: Pointer { page: 4, crc: 5 } };
    let checkpoint = Checkpoint { sequence: 3, link, roots: [root; 2] };
    assert_eq!(Checkpoint::decode(42, &checkpoint.encode(42)), Some(checkpoint));
    let records = [
        Record::MapSet { extent: 1, place: 2 },
        Record::MapFree { extent: 3 },
        Record::Moved { extent: 24, place: 25 },
        Record::Open { extent: 4 },
        Record::Close { extent: 5 },
        Record::CrcFirst { block: 1 << 40, crc: 6 },
        Record::CrcCommit { block: 7, crc: 8 },
        Record::Zero { block: 9, count: 10 },
        Record::DiskLost { disk: 11 },
        Record::DiskBack { disk: 12 },
        Record::AllStale { disk: 13 },
        Record::StaleSet { disk: 14, extent: 15 },
        Record::StaleWord { disk: 26, word: 27, bits: 0x8000_0000_0000_0001 },
        Record::StaleClear { disk: 16, extent: 17 },
        Record::CheckpointBegin,
        Record::CheckpointEnd,
        Record::LogTail { vdisk: 18, link },
        Record::LogHead { vdisk: 19, position: 20, epoch: 21 },
        Record::LogFlushed { vdisk: 22, lsn: 23 },
        Record::PlaceKept { disk: 24, extent: 25 },
    ];
    let (bytes, crc) = sample_frame(&link, FrameKind::Records, &records);
    let read = frame::decode(&bytes, SEED, &link, 1 << 20);
    // Records know their epoch from the frame's.
    let read = read.expect("it was just written");
    assert_eq!((read.crc, read.span), (crc, 4096));
    assert!(frame::records(read.body).eq(records));
}

/// JRN-1: each condition of the chain by itself.
#[test]
fn remains_of_an_earlier_run_are_not_read_on() {
    let link = Link { lsn: 5, position: 8192, chain: 9, epoch: 2 };
    let record = [Record::Open { extent: 1 }];
    let reads = |written: &Link, kind| {
        let (bytes, _) = sample_frame(written, kind, &record);
        frame::decode(&bytes, SEED, &link, 1 << 20).is_some()
    };
    assert!(reads(&link, FrameKind::Records));
    assert!(reads(&Link { epoch: 3, ..link }, FrameKind::EpochStart));
    let wrong = [
        (Link { epoch: 3, ..link }, FrameKind::Records),
        (Link { epoch: 1, ..link }, FrameKind::Records),
        (Link { epoch: 2, ..link }, FrameKind::EpochStart),
        (Link { chain: 8, ..link }, FrameKind::Records),
        (Link { lsn: 6, ..link }, FrameKind::Records),
        (Link { position: 4096, ..link }, FrameKind::Records),
    ];
    for (written, kind) in wrong {
        assert!(!reads(&written, kind), "{written:?} {kind:?}");
    }
    mutation::set(Some(Mutation::RemainsAccepted));
    let accepted = reads(&Link { chain: 8, ..link }, FrameKind::Records);
    mutation::set(None);
    assert!(accepted, "the mutation breaks what this test guards");
}

#[test]
fn a_page_is_taken_only_for_itself() {
    let name = PageName { tree: 1, level: 0, number: 7 };
    let mut bytes = [0; BLOCK_LEN];
    page::set_entry(&mut bytes, 1019, 5);
    let crc = page::seal(SEED, name, &mut bytes);
    let pointer = Pointer { page: 3, crc };
    assert!(page::verifies(SEED, name, pointer, &bytes));
    assert_eq!(page::entry(&bytes, 1019), 5);
    assert!(!page::verifies(SEED, PageName { number: 8, ..name }, pointer, &bytes));
    assert!(!page::verifies(SEED, name, Pointer { crc: crc ^ 1, ..pointer }, &bytes));
    assert!(!page::verifies(SEED + 1, name, pointer, &bytes));
}
