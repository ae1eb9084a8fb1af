//! Properties of the small parts against naive models (T5): 10,000 cases each, from a seed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::extents::{ExtentSet, Extents, UNMAPPED, disks_of, locate};
use crate::format::frame::{Link, Record, records};
use crate::format::log::LogRange;
use crate::format::{
    CacheConfig, CacheCopy, Config, DiskConfig, DiskState, Generation, Geometry, MediaType, Moving,
    Row, Tier, VirtualDisk,
};
use crate::log::{LineState, Log};
use crate::mutation::{Mutation, set};
use crate::random::Random;

const CASES: usize = 10_000;

fn geometry() -> Geometry {
    Geometry {
        config_bytes: 64 << 10,
        journal_bytes: 1 << 20,
        tree_bytes: 1 << 20,
        slab_bytes: 1 << 20,
    }
}

fn small(random: &mut Random, bound: u64) -> u32 {
    u32::try_from(random.below(bound)).expect("small")
}

/// A configuration that a pool could have: rows on distinct disks, each slab once.
fn config(random: &mut Random) -> Config {
    let disks = 2 + small(random, 8);
    let mut next = vec![0_u32; usize::try_from(disks).expect("small")];
    let mut slab = |disk: u16| {
        let own = &mut next[usize::from(disk)];
        *own += 1;
        (disk, *own - 1)
    };
    let mut first_extent = 0;
    let mut vdisks = Vec::new();
    for nth in 0..random.below(4) {
        let copies = 1 + u8::try_from(random.below(u64::from(disks.min(3)))).expect("small");
        let most = u64::from(disks) / u64::from(copies);
        let columns = 1 + u8::try_from(random.below(most)).expect("small");
        let width = u32::from(copies) * u32::from(columns);
        let mut row = |random: &mut Random| {
            let start = small(random, u64::from(disks));
            let on = |nth| u16::try_from((start + nth) % disks).expect("small");
            Row { slabs: (0..width).map(|nth| slab(on(nth))).collect() }
        };
        let tiers =
            [MediaType::Ssd, MediaType::Hdd].into_iter().take(1 + usize::from(random.one_in(2)));
        let tiers: Vec<Tier> = tiers
            .map(|media| Tier {
                media,
                rows: (0..1 + random.below(3)).map(|_| row(random)).collect(),
            })
            .collect();
        let cache = random.one_in(3).then(|| CacheConfig {
            bytes: 64 << 10,
            copies: (0..u16::from(copies))
                .map(|disk| CacheCopy { disk, current: disk == 0, slabs: vec![slab(disk).1] })
                .collect(),
        });
        let extents = 1 + small(random, 16);
        vdisks.push(VirtualDisk {
            id: random.id(),
            name: format!("v{nth}"),
            copies,
            columns,
            interleave: 16 << 10 << random.below(3),
            first_extent,
            extents,
            tiers,
            cache,
        });
        first_extent += extents;
    }
    let disk = |random: &mut Random, nth: u32| DiskConfig {
        id: random.id(),
        media: if random.one_in(2) { MediaType::Ssd } else { MediaType::Hdd },
        state: [DiskState::Online, DiskState::Missing, DiskState::Retired]
            [usize::try_from(random.below(3)).expect("small")],
        metadata: nth == 0 || random.one_in(2),
        leaving: random.one_in(4),
        known_epoch: small(random, 100),
        served_epoch: small(random, 3),
        device_bytes: random.next(),
        name: "x".repeat(usize::try_from(random.below(60)).expect("small")),
    };
    let mut config = Config {
        generation: Generation { epoch: small(random, 9), number: random.next(), id: random.id() },
        ancestors: (0..random.below(64)).map(|_| random.id()).collect(),
        pool: random.id(),
        name: "p".to_owned(),
        extent_bytes: 64 << 10,
        disks: (0..disks).map(|nth| disk(random, nth)).collect(),
        voters: vec![0, 1],
        vdisks,
        moving: None,
        lists: Vec::new(),
    };
    let moving = Moving {
        vdisk: 0,
        tier: 0,
        row: 0,
        nth: 0,
        from: (u16::try_from(disks - 1).expect("small"), 99),
    };
    if config.can_move(&moving) {
        config.moving = Some(moving);
    }
    config
}

#[test]
fn configurations_are_read_back_as_they_were_written() {
    let mut random = Random::new(1);
    let mut moved = 0;
    for _ in 0..CASES {
        let config = config(&mut random);
        moved += u32::from(config.moving.is_some());
        let bytes = config.encode();
        assert_eq!(Config::decode(&bytes), Some(config), "{bytes:?}");
        let cut = usize::try_from(random.below(bytes.len() as u64)).expect("small");
        assert_eq!(Config::decode(&bytes[..cut]), None, "a part of one is none");
    }
    assert!(moved > 1000, "{moved}");
}

#[test]
fn records_are_read_back_as_they_were_written() {
    let mut random = Random::new(2);
    for _ in 0..CASES {
        let one = |random: &mut Random| {
            let (extent, place) = (small(random, 1 << 32), small(random, 1 << 32));
            let (block, crc) = (random.next(), small(random, 1 << 32));
            let disk = u16::try_from(random.below(1 << 16)).expect("small");
            let link =
                Link { lsn: random.next(), position: random.next(), chain: crc, epoch: place };
            match random.below(19) {
                0 => Record::MapSet { extent, place },
                1 => Record::MapFree { extent },
                2 => Record::Open { extent },
                3 => Record::Close { extent },
                4 => Record::CrcFirst { block, crc },
                5 => Record::CrcCommit { block, crc },
                6 => Record::Zero { block, count: place },
                7 => Record::DiskLost { disk },
                8 => Record::DiskBack { disk },
                9 => Record::AllStale { disk },
                10 => Record::StaleSet { disk, extent },
                11 => Record::StaleClear { disk, extent },
                12 => Record::CheckpointBegin,
                13 => Record::CheckpointEnd,
                14 => Record::LogTail { vdisk: disk, link },
                15 => Record::LogHead { vdisk: disk, position: block, epoch: place },
                16 => Record::LogFlushed { vdisk: disk, lsn: block },
                17 => Record::StaleWord { disk, word: place, bits: random.next() },
                _ => Record::PlaceKept { disk, extent },
            }
        };
        let all: Vec<Record> = (0..random.below(6)).map(|_| one(&mut random)).collect();
        let mut bytes = Vec::new();
        all.iter().for_each(|record| record.encode(&mut bytes));
        assert!(records(&bytes).eq(all.iter().copied()), "{all:?}");
    }
}

/// One virtual disk of two tiers, as many extents as it has usable slots.
fn tiered() -> (Config, Geometry) {
    let row = |disks: [u16; 2], slab| Row { slabs: disks.map(|disk| (disk, slab)).into() };
    let vdisk = VirtualDisk {
        id: 1,
        name: "v".to_owned(),
        copies: 2,
        columns: 1,
        interleave: 64 << 10,
        first_extent: 0,
        extents: 40,
        tiers: vec![
            Tier { media: MediaType::Ssd, rows: vec![row([0, 1], 0)] },
            Tier { media: MediaType::Hdd, rows: vec![row([2, 3], 0), row([2, 3], 1)] },
        ],
        cache: None,
    };
    let config = Config {
        extent_bytes: 64 << 10,
        disks: vec![DiskConfig::default(); 4],
        vdisks: vec![vdisk],
        ..Config::default()
    };
    (config, geometry())
}

/// The allocator gives no slot twice, keeps the reserve of each tier, and the map holds what a hash map holds.
#[test]
fn no_slot_is_given_twice_and_the_map_is_a_map() {
    let (config, geometry) = tiered();
    let mut random = Random::new(3);
    let mut extents = Extents::new(&config, &geometry);
    let mut model: HashMap<u32, u32> = HashMap::new();
    let mut full = 0;
    for _ in 0..CASES {
        let extent = small(&mut random, 40);
        match model.get(&extent).copied() {
            None => match extents.allocate(0) {
                Some(place) => {
                    assert!(model.values().all(|other| *other != place), "{place} twice");
                    extents.map(extent, place);
                    model.insert(extent, place);
                }
                None => full += 1,
            },
            Some(place) if random.one_in(2) => {
                extents.unmap(extent);
                extents.release(0, place);
                model.remove(&extent);
            }
            Some(place) => assert!(extents.exists(0, place) && !extents.claim(0, place)),
        }
        for extent in 0..40 {
            let expected = model.get(&extent).copied().unwrap_or(UNMAPPED);
            assert_eq!(extents.place(extent), expected);
        }
    }
    assert_eq!(full, 0, "there is a slot for every extent");
    // 16 and 32 slots, an eighth of each kept free: 14 and 28 may be taken.
    for tier in [0, 1] {
        let used = model.values().filter(|place| (**place >> 31) == tier).count();
        assert!(used <= [14, 28][usize::try_from(tier).expect("small")], "{used} in tier {tier}");
    }
}

/// Every byte of every extent has a place of its own on each copy, and copies of one lie on different disks.
#[test]
fn no_two_blocks_share_a_place() {
    let mut random = Random::new(4);
    let geometry = geometry();
    for _ in 0..60 {
        let config = config(&mut random);
        let mut taken: BTreeMap<(u16, u64), (usize, u32, u32)> = BTreeMap::new();
        for (nth, vdisk) in config.vdisks.iter().enumerate() {
            for (tier, own) in vdisk.tiers.iter().enumerate() {
                let per_row =
                    geometry.slab_bytes / u64::from(config.extent_bytes) * u64::from(vdisk.columns);
                let slots = u32::try_from(per_row * own.rows.len() as u64).expect("small");
                for slot in 0..slots {
                    let place = slot | if tier > 0 { 1 << 31 } else { 0 };
                    let mut disks = BTreeSet::new();
                    for within in (0..config.extent_bytes).step_by(4096) {
                        let copies = locate(vdisk, &geometry, config.extent_bytes, place, within);
                        let own: BTreeSet<u16> = copies.iter().map(|copy| copy.1).collect();
                        assert_eq!(
                            own.len(),
                            usize::from(vdisk.copies),
                            "copies on different disks"
                        );
                        disks.extend(own);
                        for (_, disk, offset) in copies.iter() {
                            let before = taken.insert((disk, offset), (nth, place, within));
                            assert_eq!(before, None, "{nth} {place} {within}");
                        }
                    }
                    let said = disks_of(vdisk, &geometry, config.extent_bytes, place);
                    assert!(disks.iter().eq(said.iter()));
                }
            }
        }
    }
}

#[test]
fn a_set_of_extents_is_a_set() {
    let mut random = Random::new(5);
    let (mut set, mut model) = (ExtentSet::default(), BTreeSet::new());
    for _ in 0..CASES {
        let extent = small(&mut random, 300);
        match random.below(20) {
            0..=9 => {
                set.insert(extent);
                model.insert(extent);
            }
            10..=18 => {
                set.remove(extent);
                model.remove(&extent);
            }
            _ if random.one_in(20) => {
                set.clear();
                model.clear();
            }
            _ => assert!(set.iter().eq(model.iter().copied())),
        }
        assert_eq!((set.has(extent), set.len() as usize), (model.contains(&extent), model.len()));
    }
}

/// WBC-2: the tail moves over a record that was superseded once what superseded it was flushed, and no round before.
#[test]
fn a_log_keeps_what_is_superseded_by_what_is_not_flushed() {
    let cache = CacheConfig {
        bytes: 256 << 10,
        copies: vec![CacheCopy { disk: 0, current: true, slabs: vec![0] }],
    };
    let tails = || {
        let mut log = Log::new(&cache, &geometry(), 7);
        let write = |log: &mut Log| {
            let link = log.link;
            log.admit(link, &[LogRange { block: 3, count: 1, zeros: false }], &[9]);
            log.link = Link { lsn: link.lsn + 1, position: link.position + 8192, ..link };
        };
        write(&mut log);
        let round = |log: &mut Log, meanwhile: bool| {
            log.seal();
            if meanwhile {
                write(log);
            }
            let tail = log.records_of_round(0).find_map(|record| match record {
                Record::LogTail { link, .. } => Some(link.lsn),
                _ => None,
            });
            log.end_round();
            tail
        };
        [round(&mut log, true), round(&mut log, false)]
    };
    assert_eq!(tails(), [None, Some(2)]);
    set(Some(Mutation::TailUnsealed));
    let without = tails();
    set(None);
    assert_eq!(without[0], Some(2));
}

/// Rounds, flushes of the log beside them and checkpoints, in any order: how far the journal says that a log is durable never goes back,
/// for a start believes the last one, and is never more than was flushed.
#[test]
fn how_far_a_log_is_durable_never_goes_back() {
    let cache = CacheConfig {
        bytes: 256 << 10,
        copies: vec![CacheCopy { disk: 0, current: true, slabs: vec![0] }],
    };
    let mut random = Random::new(16);
    let mut log = Log::new(&cache, &geometry(), 7);
    log.closed = false;
    // What was in the log when devices began to be flushed for a round and beside it, and how much of it is durable.
    let (mut round, mut through) = ((0_u64, 0_u8), (0_u64, 0_u8));
    let (mut durable, mut said, mut told) = (0, 0, 0);
    for _ in 0..20 * CASES {
        let mut records: Vec<Record> = Vec::new();
        let last = log.link.lsn - 1;
        match random.below(16) {
            0..6 if log.has_room(8192, false) => {
                let block = random.below(40);
                log.link.position += log.pad(8192);
                let link = log.link;
                log.admit(link, &[LogRange { block, count: 1, zeros: false }], &[9]);
                log.link = Link { lsn: link.lsn + 1, position: link.position + 8192, ..link };
                log.set_home(block);
            }
            0..10 => match round.1 {
                0 => {
                    log.seal();
                    round = (last, 1);
                }
                1 => {
                    durable = durable.max(round.0);
                    records.extend(log.records_of_round(0));
                    round.1 = 2;
                }
                _ => {
                    log.end_round();
                    round.1 = 0;
                }
            },
            10..14 => match through.1 {
                0 if !log.seal_through() => assert_eq!(log.flushed, last),
                0 => through = (last, 1),
                1 => {
                    durable = durable.max(through.0);
                    records.extend(log.record_through(0));
                    through.1 = 2;
                }
                _ => {
                    log.end_through();
                    through.1 = 0;
                }
            },
            14 => records.extend(log.snapshot(0)),
            _ if random.one_in(8) => {
                // A flush failed: nothing is made of it.
                log.unseal();
                (round.1, through.1) = (0, 0);
            }
            _ => {}
        }
        for record in records {
            let Record::LogFlushed { lsn, .. } = record else { continue };
            assert!(lsn >= said, "{lsn} behind {said}");
            assert!(lsn <= durable, "{lsn}, and {durable} is durable");
            told += usize::from(lsn > said);
            said = lsn;
        }
        assert!(log.flushed <= said, "more is taken for durable than a start would know of");
    }
    assert!(told > CASES / 8, "{told}");
}

/// The index of a write-back cache against a list of all that was ever written: the newest record of a block is its
/// line until the tail has passed it, and the tail passes nothing whose home is not durable.
#[test]
fn a_cache_holds_the_newest_of_each_block_until_it_is_at_home() {
    let cache = CacheConfig {
        bytes: 256 << 10,
        copies: vec![CacheCopy { disk: 0, current: true, slabs: vec![0] }],
    };
    let mut random = Random::new(6);
    let mut log = Log::new(&cache, &geometry(), 7);
    log.closed = false;
    // By block: LSN and checksum of the newest record; which of them are durable at home.
    let mut newest: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
    let mut at_home: BTreeMap<u64, u64> = BTreeMap::new();
    let mut waiting: Vec<(u64, u64)> = Vec::new();
    let (mut admitted, mut passed) = (0, 0);
    for _ in 0..CASES {
        match random.below(4) {
            0 | 1 => {
                let count = 1 + small(&mut random, 3);
                let range = LogRange { block: random.below(40), count, zeros: random.one_in(8) };
                let blocks = if range.zeros { 0 } else { u64::from(count) };
                let span = 4096 * (1 + blocks);
                if !log.has_room(span, false) {
                    continue;
                }
                let pad = log.pad(span);
                log.link.position += pad;
                let link = log.link;
                let sums: Vec<u32> = (0..blocks).map(|_| 1 + small(&mut random, 1 << 20)).collect();
                log.admit(link, &[range], &sums);
                log.link = Link { lsn: link.lsn + 1, position: link.position + span, ..link };
                for (nth, block) in (range.block..range.block + u64::from(count)).enumerate() {
                    newest.insert(block, (link.lsn, sums.get(nth).copied().unwrap_or(0)));
                }
                admitted += 1;
            }
            2 => {
                let block = random.below(43);
                if log.line(block).is_some_and(|line| line.state == LineState::Dirty) {
                    log.set_home(block);
                    waiting.push((block, newest[&block].0));
                }
            }
            _ => {
                log.seal();
                log.end_round();
                for (block, lsn) in waiting.drain(..) {
                    if newest[&block].0 == lsn {
                        at_home.insert(block, lsn);
                    }
                }
                passed = passed.max(log.tail.lsn);
            }
        }
        assert!(log.used() <= log.ring_bytes, "it never runs over itself");
        for (block, (lsn, crc)) in &newest {
            match log.line(*block) {
                Some(line) => assert_eq!((line.lsn, line.crc), (*lsn, *crc), "block {block}"),
                None => {
                    assert_eq!(at_home.get(block), Some(lsn), "block {block} is nowhere");
                    assert!(*lsn < log.tail.lsn);
                }
            }
        }
    }
    assert!(admitted > 500 && passed > 200, "{admitted} records, tail at {passed}");
}
