//! Recovery of a full journal (JRN-3).

use std::time::{Duration, Instant};

use plumb_io::sim::power::{Image, PowerQueue, PowerSpec};
use plumb_units::Nanos;
use plumb_units::convert::to_usize;

use crate::format::frame::{self, FrameKind, Link, Record};
use crate::format::{Geometry, MediaType, checksum};
use crate::{Engine, NewDisk, NewPool, NewVirtualDisk, SlotPlan, create};

const EXTENTS: u32 = 256;

/// `PLUMB_JOURNAL_MIB` makes it larger; 256 are what pools of real disks have.
#[test]
fn a_full_journal_is_recovered_in_time() {
    let named = std::env::var("PLUMB_JOURNAL_MIB").ok().and_then(|text| text.parse::<u64>().ok());
    let mib = named.unwrap_or(16);
    let geometry = Geometry {
        config_bytes: 1 << 20,
        journal_bytes: mib << 20,
        tree_bytes: 8 << 20,
        slab_bytes: 64 << 20,
    };
    let bytes = geometry.slab(5) + (1 << 20);
    let plan = SlotPlan { data_slots: 8, data_bytes: 64 << 10, control_bytes: 256 << 10, files: 1 };
    let spec = PowerSpec {
        seed: 1,
        depth: plan.depth(),
        lanes: plan.lanes(),
        sector: 512,
        service: (Nanos(1), Nanos(2)),
        record: false,
    };
    let mut queue = PowerQueue::new(&spec, vec![Image::new(bytes)]);
    let pool = NewPool {
        name: "full".into(),
        extent_bytes: 1 << 20,
        geometry,
        disks: vec![NewDisk { media: MediaType::Ssd, bytes, name: "one".into() }],
        vdisks: vec![NewVirtualDisk {
            name: "space".into(),
            copies: 1,
            columns: 1,
            interleave: 256 << 10,
            tier_bytes: [u64::from(EXTENTS) << 20, 0],
            cache_bytes: 0,
        }],
    };
    let config = create(&mut queue, plan, &pool, 3).expect("it fits");
    let seed = checksum::seed(config.pool);
    let mut link = Link { lsn: 1, position: 0, chain: 0, epoch: 0 };
    let mut records = 0_u64;
    // A checkpoint is forced at three quarters.
    while link.position < geometry.ring_bytes() / 4 * 3 {
        let first = link.lsn == 1;
        let kind = if first { FrameKind::EpochStart } else { FrameKind::Records };
        let mut body = Vec::new();
        for extent in (0..EXTENTS).filter(|_| first) {
            Record::MapSet { extent, place: extent }.encode(&mut body);
            Record::Close { extent }.encode(&mut body);
        }
        while body.len() + Record::LEN_MAX < 64 << 10 {
            // Commits of checksums are what fills a journal.
            let block = records * 7919 % (u64::from(EXTENTS) * 256);
            Record::CrcCommit { block, crc: 1 + u32::try_from(records % 1000).unwrap_or(0) }
                .encode(&mut body);
            records += 1;
        }
        let span = frame::span(body.len());
        if link.position % geometry.ring_bytes() + span > geometry.ring_bytes() {
            break;
        }
        link.epoch = 1;
        let mut out = vec![0; to_usize(span)];
        let chain = frame::encode(&mut out, seed, kind, &link, &body, span);
        queue.tamper(0, geometry.ring(link.position), &out);
        link = Link { lsn: link.lsn + 1, position: link.position + span, chain, epoch: 1 };
    }
    let start = Instant::now();
    let engine = Engine::start(queue, plan, 1, 4096, 7).expect("it starts");
    let took = start.elapsed();
    println!("{mib} MiB of journal, {records} records: {took:?}");
    assert!(engine.counters().checkpoints >= 1);
    assert!(took <= Duration::from_secs(5), "{took:?} for {mib} MiB");
}
