//! A disk that hangs takes slots for data until it is given up, and for longer: others have theirs all the same (section 18, C5).

use plumb_io::sim::power::{Image, PowerQueue};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::faults::{MIRROR, shape};
use super::history::{EXTENT_BYTES, Shape};
use super::left_out::needs;
use super::run::queue_of;
use crate::format::DiskState;
use crate::mutation::Mutation;
use crate::{Engine, NewVirtualDisk, Request, RequestKind, SlotPlan, create};

const CLIENTS: u32 = 12;
const MIRRORED: u32 = 0;
const ALONE: u32 = 1;
const WRITE: RequestKind = RequestKind::Write { fua: false };

/// Fewer slots than there are clients.
fn plan(shape: &Shape) -> SlotPlan {
    SlotPlan { data_slots: 6, ..shape.plan() }
}

fn queue(shape: &Shape, images: Vec<Image>, seed: u64) -> PowerQueue {
    queue_of(plan(shape), images, seed, false)
}

/// A mirror and a virtual disk without copies, all of it written.
struct Pool {
    engine: Engine<PowerQueue>,
    /// Requests that were answered, and those of them that failed, by virtual disk.
    answers: [(u32, u32); 2],
    asked: Vec<Option<u32>>,
}

impl Pool {
    fn new() -> Self {
        let shape = shape(MIRROR);
        let mut pool = shape.pool();
        pool.vdisks[0].tier_bytes = [512 << 10, 0];
        pool.vdisks.push(NewVirtualDisk {
            name: "alone".into(),
            copies: 1,
            columns: 1,
            interleave: 16 << 10,
            tier_bytes: [512 << 10, 0],
            cache_bytes: 0,
        });
        let images = vec![Image::new(shape.disk_bytes()); index(shape.disks)];
        let mut made = queue(&shape, images, 1);
        create(&mut made, plan(&shape), &pool, 1).expect("it fits");
        let images = (0..shape.disks).map(|disk| made.view(disk)).collect();
        let made = queue(&shape, images, 2);
        let engine = Engine::start(made, plan(&shape), CLIENTS, EXTENT_BYTES, 3).expect("a start");
        let asked = vec![None; index(CLIENTS)];
        let mut own = Self { engine, answers: [(0, 0); 2], asked };
        for vdisk in [MIRRORED, ALONE] {
            own.keep_asking(WRITE, vdisk, |done| done < 200);
        }
        assert_eq!(own.answers.map(|(_, failed)| failed), [0, 0]);
        own
    }

    /// All clients ask again and again, of one block each per extent, as long as that is wanted of how many were answered since.
    fn keep_asking(&mut self, kind: RequestKind, vdisk: u32, wanted: impl Fn(u32) -> bool) {
        let before = self.answers[index(vdisk)].0;
        let mut next = 0_u64;
        for turn in 0..40_000 {
            let done = self.answers[index(vdisk)].0 - before;
            for client in 0..CLIENTS {
                if wanted(done) && self.asked[index(client)].is_none() {
                    next += 1;
                    let offset = next % 8 * u64::from(EXTENT_BYTES) + u64::from(client) * 4096;
                    self.engine.submit(client, Request { kind, vdisk, offset, len: 4096 });
                    self.asked[index(client)] = Some(vdisk);
                }
            }
            let now = self.engine.queue_mut().now();
            self.engine.poll(now, Nanos(60_000));
            while let Some((client, outcome)) = self.engine.pop() {
                let of = self.asked[index(client)].take().expect("it was asked");
                let answers = &mut self.answers[index(of)];
                *answers = (answers.0 + 1, answers.1 + u32::from(outcome.is_err()));
            }
            if !wanted(done) && self.asked.iter().all(Option::is_none) {
                return;
            }
            if turn % 64 == 63 {
                self.engine.queue_mut().advance(Nanos::from_secs(1));
            }
        }
        panic!("never answered: {:?}, halted {:?}", self.answers, self.engine.halted());
    }

    fn hang(&mut self, disk: u16) {
        let ios = self.engine.queue_mut().ios(disk.into());
        self.engine.queue_mut().faults_mut(disk.into()).hangs_from = Some(ios);
    }

    /// How many requests of a virtual disk fail while some more are made.
    fn failed(&mut self, kind: RequestKind, vdisk: u32) -> u32 {
        let before = self.answers[index(vdisk)].1;
        self.keep_asking(kind, vdisk, |done| done < 100);
        self.answers[index(vdisk)].1 - before
    }
}

#[test]
fn writes_that_wait_for_slots_of_a_disk_that_hangs_do_not_fail_with_it() {
    needs(Mutation::HungNotReplaced, || {
        for disk in 0..3 {
            let mut pool = Pool::new();
            pool.hang(disk);
            match pool.failed(WRITE, MIRRORED) {
                0 => {}
                failed => return Err(format!("disk {disk}: {failed} writes of a mirror failed")),
            }
        }
        Ok(())
    });
}

/// Reads of what has no copies are all under way to the disk that hangs.
#[test]
fn a_disk_that_hangs_under_another_virtual_disk_leaves_slots_to_a_mirror() {
    needs(Mutation::HungNotReplaced, || {
        for disk in 0..3 {
            let mut pool = Pool::new();
            pool.hang(disk);
            // They fail once it is given up.
            pool.failed(RequestKind::Read, ALONE);
            for kind in [RequestKind::Read, WRITE, RequestKind::Write { fua: true }] {
                match pool.failed(kind, MIRRORED) {
                    0 => {}
                    failed => return Err(format!("disk {disk}: {failed} of a mirror, {kind:?}")),
                }
            }
            let own = pool.engine.config().disks[usize::from(disk)].state;
            println!("disk {disk}: {own:?}, failed {:?}", pool.answers);
            assert!(own == DiskState::Missing || pool.answers[0].1 == 0);
        }
        Ok(())
    });
}
