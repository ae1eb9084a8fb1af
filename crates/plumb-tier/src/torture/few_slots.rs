//! More requests than there are slots for, on disks that hang.

use std::panic::{AssertUnwindSafe, catch_unwind};

use plumb_io::sim::power::PowerQueue;
use plumb_units::Nanos;

use super::faults::shape;
use super::left_out::needs;
use super::run::{new_pool, queue};
use crate::format::DiskState;
use crate::mutation::Mutation;
use crate::{Engine, Request, RequestKind};

/// So many writes are under way at a time: each needs two slots or three, and there are 24.
const WRITERS: u32 = 40;
const OLD: u8 = 0xa1;
const NEW: u8 = 0xb2;

/// Lets the engine work until all requests are answered.
fn all_answered(engine: &mut Engine<PowerQueue>, mut left: u32) -> Result<(), String> {
    for _ in 0..4000 {
        let now = engine.queue_mut().now();
        engine.poll(now, Nanos(60_000));
        while let Some((client, outcome)) = engine.pop() {
            outcome.map_err(|error| format!("the request of client {client} failed: {error:?}"))?;
            left -= 1;
        }
        if left == 0 {
            return Ok(());
        }
        engine.queue_mut().advance(Nanos::from_millis(50));
    }
    Err(format!("{left} requests are never answered"))
}

/// Each client has a block of its own.
fn ask_all(
    engine: &mut Engine<PowerQueue>,
    kind: RequestKind,
    (at, len): (u64, u32),
) -> Result<(), String> {
    for client in 0..WRITERS {
        let offset = u64::from(client) * 4096 + at;
        engine.submit(client, Request { kind, vdisk: 0, offset, len });
    }
    all_answered(engine, WRITERS)
}

/// Writes of less than a block while one disk of a mirror hangs: it keeps the slots that old content was to be read into.
fn parts_of_blocks_beside_a_disk_that_hangs(copies: u8) -> Result<(), String> {
    let shape = shape((4, 0, copies, 0));
    let made = queue(&shape, new_pool(&shape), 1, false);
    let mut engine = Engine::start(made, shape.plan(), WRITERS, 4096, 1).expect("it starts");
    (0..WRITERS).for_each(|client| engine.buffer_mut(client).fill(OLD));
    ask_all(&mut engine, RequestKind::Write { fua: true }, (0, 4096))?;
    let disk = engine.config().vdisks[0].tiers[0].rows[0].slabs[0].0;
    let ios = engine.queue_mut().ios(disk.into());
    engine.queue_mut().faults_mut(disk.into()).hangs_from = Some(ios);
    (0..WRITERS).for_each(|client| engine.buffer_mut(client).fill(NEW));
    ask_all(&mut engine, RequestKind::Write { fua: false }, (512, 512))?;
    assert_eq!(engine.config().disks[usize::from(disk)].state, DiskState::Missing);
    ask_all(&mut engine, RequestKind::Read, (0, 4096))?;
    for client in 0..WRITERS {
        let block = engine.buffer_mut(client);
        let is = |bytes: &[u8], byte: u8| bytes.iter().all(|other| *other == byte);
        if !is(&block[..512], OLD) || !is(&block[512..1024], NEW) || !is(&block[1024..], OLD) {
            return Err(format!("block {client} is not what was written"));
        }
    }
    Ok(())
}

/// Whoever lost a slot to the disk, and holds another one, waits until there are as many as it needs.
#[test]
fn writes_of_parts_of_blocks_outlive_a_disk_that_keeps_their_slots() {
    for copies in [2, 3] {
        needs(Mutation::SlotsMiscounted, || {
            let case = || parts_of_blocks_beside_a_disk_that_hangs(copies);
            let panicked = |_| Err("the engine panicked".to_owned());
            catch_unwind(AssertUnwindSafe(case)).unwrap_or_else(panicked)
        });
    }
}
