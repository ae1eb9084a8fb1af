//! Many write-back caches in one pool: they share the slots for records, and no disk is blamed where there are none.

use plumb_io::sim::power::{Image, PowerQueue, Survivors};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::left_out::needs;
use super::run::queue_of;
use crate::format::{DiskState, Geometry, MediaType};
use crate::io::TIME_OUT;
use crate::mutation::Mutation;
use crate::{Engine, NewDisk, NewPool, NewVirtualDisk, Request, RequestKind, SlotPlan, create};

const EXTENT: u64 = 64 << 10;
/// Clients of each virtual disk: something is in line whenever a record ends.
const CLIENTS: u32 = 3;

/// Solid-state disks and rotating ones, and so many virtual disks of so many copies, each with a cache.
#[derive(Debug, Clone, Copy)]
struct Of {
    fast: u32,
    slow: u32,
    copies: u8,
    caches: u32,
}

/// An engine, and how often each client was answered.
struct Load {
    engine: Engine<PowerQueue>,
    answered: Vec<u32>,
    failed: Vec<u32>,
}

impl Load {
    /// A new pool whose virtual disks have written all their extents: the last one is on the second tier.
    fn start(of: Of) -> Self {
        let geometry = Geometry {
            config_bytes: 256 << 10,
            journal_bytes: 1 << 20,
            tree_bytes: 512 << 10,
            slab_bytes: 128 << 10,
        };
        let files = of.fast + of.slow;
        let plan = SlotPlan {
            data_slots: 24,
            data_bytes: 16 << 10,
            control_bytes: 16 << 10,
            files,
            time_out: TIME_OUT,
        };
        let bytes = geometry.slab(9 * of.caches * u32::from(of.copies)) + (1 << 20);
        let media = |nth| if nth < of.fast { MediaType::Ssd } else { MediaType::Hdd };
        let disk = |nth| NewDisk { media: media(nth), bytes, name: format!("disk {nth}") };
        let vdisk = |nth| NewVirtualDisk {
            name: format!("space {nth}"),
            copies: of.copies,
            columns: 1,
            interleave: 16 << 10,
            tier_bytes: [128 << 10, 256 << 10],
            // Room for all that is written: nobody waits for that.
            cache_bytes: 1 << 20,
        };
        let pool = NewPool {
            name: "torture".into(),
            extent_bytes: 64 << 10,
            geometry,
            disks: (0..files).map(disk).collect(),
            vdisks: (0..of.caches).map(vdisk).collect(),
        };
        let mut made = queue_of(plan, vec![Image::new(bytes); index(files)], 1, false);
        create(&mut made, plan, &pool, 1).expect("it fits");
        let clients = CLIENTS * of.caches;
        let engine = Engine::start(made, plan, clients, 4096, 2).expect("it starts");
        let none = vec![0; index(clients)];
        let mut load = Self { engine, answered: none.clone(), failed: none };
        for extent in 0..=load.last_extent() {
            (0..of.caches).for_each(|vdisk| load.write(vdisk * CLIENTS, extent * EXTENT));
            load.run(of.caches, false);
        }
        load.answered.fill(0);
        load
    }

    fn last_extent(&self) -> u64 {
        u64::from(self.engine.config().vdisks[0].extents) - 1
    }

    fn write(&mut self, client: u32, offset: u64) {
        let kind = RequestKind::Write { fua: false };
        let vdisk = client / CLIENTS;
        self.engine.submit(client, Request { kind, vdisk, offset, len: 4096 });
    }

    /// A client writes a block of its own, on the second tier.
    fn write_own(&mut self, client: u32) {
        let block = u64::from(client % CLIENTS) * 3;
        self.write(client, self.last_extent() * EXTENT + block * 4096);
    }

    /// Until so many requests are answered, or the engine halts or never answers; with `again` each client goes on.
    fn run(&mut self, wanted: u32, again: bool) -> u32 {
        let mut got = 0;
        for turn in 0..20_000 {
            let now = self.engine.queue_mut().now();
            self.engine.poll(now, Nanos(60_000));
            while let Some((client, outcome)) = self.engine.pop() {
                got += 1;
                self.answered[index(client)] += u32::from(outcome.is_ok());
                self.failed[index(client)] += u32::from(outcome.is_err());
                if again && outcome.is_ok() {
                    self.write_own(client);
                }
            }
            if got >= wanted || self.engine.halted().is_some() {
                break;
            }
            if turn % 8 == 7 {
                self.engine.queue_mut().advance(Nanos::from_secs(5));
            }
        }
        got
    }

    /// All clients write to their caches, so often on average.
    fn all_write(&mut self, times: u32) -> Result<(), String> {
        let clients = u32::try_from(self.answered.len()).expect("a few");
        (0..clients).for_each(|client| self.write_own(client));
        let got = self.run(times * clients, true);
        match self.engine.halted() {
            None if got < times * clients => Err(format!("{got} answers")),
            None => Ok(()),
            Some(halt) => Err(format!("halted: {halt:?}")),
        }
    }

    /// Where the first copy of a log is.
    fn log_disk(&self, vdisk: usize) -> Option<u16> {
        self.engine.config().vdisks[vdisk].cache.as_ref().map(|own| own.copies[0].disk)
    }

    fn states(&self) -> Vec<DiskState> {
        self.engine.config().disks.iter().map(|disk| disk.state).collect()
    }
}

/// Eight logs of two copies have a record to write at once.
#[test]
fn many_caches_beside_each_other_cost_no_disk() {
    needs(Mutation::LogSlotsUnasked, || {
        let of = Of { fast: 2, slow: 2, copies: 2, caches: 8 };
        let mut load = Load::start(of);
        load.all_write(20)?;
        let cached = (0..of.caches).all(|vdisk| load.engine.cached_blocks(vdisk) > 0);
        assert!(cached, "all went to the caches");
        let failed: u32 = load.failed.iter().sum();
        let states = load.states();
        if failed > 0 || states.iter().any(|state| *state != DiskState::Online) {
            return Err(format!("{failed} writes failed, {states:?}"));
        }
        // None of them has to wait for ever, whoever else writes.
        let (least, most) = (load.answered.iter().min(), load.answered.iter().max());
        println!("{least:?} to {most:?} writes of each client");
        match least.is_some_and(|least| *least >= 10) {
            true => Ok(()),
            false => Err(format!("{:?} writes", load.answered)),
        }
    });
}

/// One of the disks that have all the logs hangs: the other one goes on with them.
#[test]
fn many_caches_go_on_without_a_disk_that_hangs() {
    for copies in [2, 3] {
        let of = Of { fast: copies.into(), slow: 3, copies, caches: 8 };
        let mut load = Load::start(of);
        let ios = load.engine.queue_mut().ios(1);
        load.engine.queue_mut().faults_mut(1).hangs_from = Some(ios + 20);
        assert_eq!(load.all_write(20), Ok(()));
        assert_eq!(load.failed.iter().sum::<u32>(), 0);
        let away = |nth| if nth == 1 { DiskState::Missing } else { DiskState::Online };
        let states: Vec<DiskState> = (0..of.fast + of.slow).map(away).collect();
        assert_eq!(load.states(), states);
    }
}

/// It has the only copy of many logs: it keeps few of the slots, and the others have theirs.
#[test]
fn a_disk_that_hangs_costs_no_cache_on_other_disks() {
    let of = Of { fast: 3, slow: 2, copies: 1, caches: 45 };
    let mut load = Load::start(of);
    let hung = (0..45).filter(|vdisk| load.log_disk(*vdisk) == Some(2)).count();
    assert!(hung > 12, "{hung} logs on it");
    let ios = load.engine.queue_mut().ios(2);
    load.engine.queue_mut().faults_mut(2).hangs_from = Some(ios);
    assert_eq!(load.all_write(20), Ok(()));
    for (client, failed) in load.failed.iter().enumerate() {
        let vdisk = client / index(CLIENTS);
        let (answered, disk) = (load.answered[client], load.log_disk(vdisk));
        match disk {
            Some(2) => assert_eq!(*failed, 1, "client {client}"),
            _ => assert!(*failed == 0 && answered > 5, "client {client}: {failed}, {answered}"),
        }
    }
}

/// Four disks hang and keep all slots: who writes to another one's caches is told so, until they answer.
#[test]
fn caches_fail_while_disks_that_hang_keep_all_slots() {
    let of = Of { fast: 6, slow: 2, copies: 1, caches: 30 };
    let mut load = Load::start(of);
    let clients = of.caches * CLIENTS;
    let all_write = |load: &mut Load| {
        load.failed.fill(0);
        (0..clients).for_each(|client| load.write_own(client));
        assert_eq!(load.run(clients, false), clients);
        assert_eq!(load.engine.halted(), None);
        load.failed.iter().sum::<u32>()
    };
    assert_eq!(all_write(&mut load), 0);
    for disk in 2..6 {
        let ios = load.engine.queue_mut().ios(disk);
        load.engine.queue_mut().faults_mut(disk).hangs_from = Some(ios);
    }
    let failed = all_write(&mut load);
    assert!(
        (clients / 6 * 4..clients).contains(&failed),
        "{failed}: whose logs hang, and some more"
    );
    assert_eq!(all_write(&mut load), clients, "all");
    let states = load.states();
    for disk in [0, 1, 6, 7] {
        assert_eq!(states[disk], DiskState::Online, "disk {disk} is well");
    }
    for disk in 2..6 {
        load.engine.queue_mut().repair(disk);
        load.engine.queue_mut().drop_cache(disk, Survivors::All);
    }
    all_write(&mut load);
    let mut well = 0;
    for (client, failed) in load.failed.iter().enumerate() {
        if load.log_disk(client / index(CLIENTS)).is_some_and(|disk| disk < 2) {
            assert_eq!(*failed, 0, "client {client}");
            well += 1;
        }
    }
    assert_eq!(well, clients / 6 * 2);
}
