//! Runs in which any disk may fail at any time, whatever it holds.

use std::collections::BTreeSet;

use plumb_io::sim::power::{DiskFaults, PowerQueue, Survivors};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::history::{CLIENTS, Fault, Shape, sectors};
use super::oracle::{Promise, UNIT_BYTES, WriteId};
use super::run::{Run, Wrong};
use super::witness::Seen;
use crate::format::DiskState;
use crate::{Request, RequestKind, StartError};

/// Units that are read at a time; of what cannot be read, units of a block.
const STEP: u32 = 32;
const BLOCK: u32 = 8;
/// Turns in which disks that are here take part again, and all is in sync.
const TURNS_TO_HEAL: u32 = 600;

/// What is not well in such a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Sick {
    /// Disks that failed, and are not known to be up to date again.
    pub(super) gone: BTreeSet<u32>,
    /// Disks that the others went on without.
    away: BTreeSet<u32>,
    /// Disks that were away and are here again, until they take part.
    coming: BTreeSet<u32>,
    /// More were gone at a time than the space bears: from here on requests may fail.
    pub(super) unborne: bool,
    /// The same of a virtual disk without copies beside: any disk was gone.
    pub(super) alone_lost: bool,
    /// Which file each disk is.
    files: Vec<u32>,
    /// How many disks may be gone at a time.
    bears: usize,
}

impl Shape {
    /// How many disks may be gone at a time without a request that fails: others have copies of what they hold, and half
    /// of those that vote are left.
    pub(super) fn bears(&self) -> usize {
        index(u32::from(self.copies) - 1).min(index(self.disks / 2))
    }

    /// Whether a start may be refused without so many: no more than half of the disks are left, or what they hold is
    /// nowhere else.
    ///
    /// Those that lost their vote in the life before take part without it: fewer are half of the voters then.
    pub(super) fn may_be_refused(&self, gone: usize, error: &StartError) -> bool {
        let votes = match error {
            StartError::NoQuorum { present, voters } => {
                2 * present <= *voters && voters - present <= gone
            }
            _ => false,
        };
        votes || gone > self.bears() || 2 * gone >= index(self.disks)
    }

    /// Both areas of a disk's configuration.
    fn configuration(&self) -> (u64, u64) {
        let geometry = self.geometry();
        (geometry.config(0), geometry.config(0) + 2 * geometry.config_bytes)
    }

    /// What a fault is to a disk that has begun so many I/Os, and so many of them flushes.
    pub(super) fn faults(&self, fault: Fault, (ios, flushes): (u64, u64)) -> DiskFaults {
        let none = DiskFaults::default();
        match fault {
            Fault::Dies { after } => DiskFaults { dead_from: Some(ios + after), ..none },
            Fault::Hangs { after } => DiskFaults { hangs_from: Some(ios + after), ..none },
            Fault::WriteError { after } if after % 3 == 2 => {
                DiskFaults { short_writes: vec![ios + after], ..none }
            }
            Fault::WriteError { after } => DiskFaults { write_errors: vec![ios + after], ..none },
            Fault::FlushError { after, count } => {
                let failing: Vec<u64> = (flushes + after..flushes + after + count).collect();
                match after % 2 {
                    0 => DiskFaults { flush_errors: failing, ..none },
                    _ => DiskFaults { refused_flushes: failing, ..none },
                }
            }
            Fault::Flickers { after, count } => {
                let from = ios + after;
                DiskFaults { dead_from: Some(from), dead_to: Some(from + count), ..none }
            }
            Fault::Stuck { after, count } => {
                let from = ios + after;
                DiskFaults { hangs_from: Some(from), hangs_to: Some(from + count), ..none }
            }
            Fault::NoGeneration => DiskFaults { unwritable: vec![self.configuration()], ..none },
            Fault::Unreadable { at, len } => {
                DiskFaults { unreadable: vec![(at, at + len)], ..none }
            }
            Fault::NoMetadata => {
                DiskFaults { unwritable: vec![(0, self.geometry().slab(0))], ..none }
            }
        }
    }
}

impl Run {
    /// From here on any disk may fail: `gone` are not well already, and disk n is that file.
    pub(super) fn let_any_fail(&mut self, gone: BTreeSet<u32>, files: Vec<u32>) {
        let bears = self.shape.bears();
        let (unborne, alone_lost) = (gone.len() > bears, !gone.is_empty());
        self.witness.gone.clone_from(&gone);
        self.sick = Some(Sick { gone, unborne, alone_lost, files, bears, ..Sick::default() });
        self.sound = false;
    }

    /// Whether a request may fail.
    pub(super) fn may_fail(&self) -> bool {
        self.sick.as_ref().is_some_and(|sick| sick.unborne)
    }

    fn file(&self, disk: u32) -> u32 {
        self.sick.as_ref().map_or(disk, |sick| sick.files[index(disk)])
    }

    fn disk_state(&self, disk: u32) -> DiskState {
        self.engine.config().disks[index(disk)].state
    }

    fn note_gone(&mut self, disk: u32) {
        let Some(sick) = &mut self.sick else { return };
        sick.gone.insert(disk);
        sick.unborne |= sick.gone.len() > sick.bears;
        sick.alone_lost = true;
        self.note(Seen::Gone { disk });
    }

    pub(super) fn fall_sick(&mut self, disk: u32, fault: Fault) {
        if self.disk_state(disk) != DiskState::Online {
            return;
        }
        self.note_gone(disk);
        let file = self.file(disk);
        let queue = self.engine.queue_mut();
        // What it has not answered stays so.
        let faults = self.shape.faults(fault, (queue.ios(file), queue.flushes(file)));
        *queue.faults_mut(file) = faults;
    }

    /// The space is told to do without a disk for now, if it can.
    pub(super) fn take_offline(&mut self, disk: u32) {
        let Ok(ordinal) = u16::try_from(disk) else { return };
        if self.disk_state(disk) == DiskState::Online {
            self.note_gone(disk);
            self.engine.take_offline(ordinal);
        }
    }

    /// A disk works again. One that the others went on without lost what its cache had not kept; it comes back.
    pub(super) fn come_back(&mut self, disk: u32) {
        let Ok(ordinal) = u16::try_from(disk) else { return };
        let file = self.file(disk);
        let was_away = self.sick.as_mut().is_some_and(|sick| sick.away.remove(&disk));
        // One that takes part was not unplugged: what it has taken is there.
        if was_away && self.disk_state(disk) != DiskState::Online {
            let survivors = if disk.is_multiple_of(2) { Survivors::Some } else { Survivors::None };
            self.engine.queue_mut().drop_cache(file, survivors);
            self.note(Seen::Here { disk });
        } else {
            self.engine.queue_mut().repair(file);
        }
        if self.disk_state(disk) != DiskState::Online {
            if let Some(sick) = &mut self.sick {
                sick.coming.insert(disk);
            }
            self.engine.attach(ordinal);
        }
    }

    /// Who is away by now, and whether all are well again.
    pub(super) fn look_at_the_sick(&mut self) {
        if self.engine.halted().is_some() {
            return;
        }
        let disks = self.shape.disks;
        for disk in 0..disks {
            let online = self.disk_state(disk) == DiskState::Online;
            let Some(sick) = &mut self.sick else { return };
            if online {
                sick.coming.remove(&disk);
            }
            if online || sick.away.contains(&disk) || sick.coming.contains(&disk) {
                continue;
            }
            if !sick.gone.contains(&disk) {
                self.wrong = Some(format!("disk {disk}, which is well, is done without"));
                return;
            }
            sick.away.insert(disk);
            self.note(Seen::Away { disk });
            // What has no copies and was not durable may be gone with it, though the engine died alone.
            let alone = self.shape.alone();
            self.note(Seen::Forgotten { first: alone.start, end: alone.end });
            if self.shape.has_two() && self.engine.is_unflushable(0) {
                // Nor is the mirror's, of which the last copy went for the sake of the other one.
                self.note(Seen::Forgotten { first: 0, end: alone.start });
            }
        }
        let well = |run: &mut Self, disk: u32| {
            let file = run.file(disk);
            run.disk_state(disk) == DiskState::Online
                && is_well(run.engine.queue_mut().faults_mut(file))
        };
        let any = self.sick.as_ref().is_some_and(|sick| !sick.gone.is_empty());
        if any && (0..disks).all(|disk| well(self, disk)) && self.has_all_copies() {
            if let Some(sick) = &mut self.sick {
                sick.gone.clear();
            }
            self.note(Seen::Whole);
        }
    }

    /// Whether a disk takes part that lost its vote: all of these pools' disks have one.
    pub(super) fn has_voteless(&self) -> bool {
        let config = self.engine.config();
        let online = config.disks.iter().filter(|disk| disk.state == DiskState::Online).count();
        online > config.voters.len()
    }

    /// Nothing lacks a copy that it had, of data or of the log of a cache, and nothing is left to do about any.
    fn has_all_copies(&self) -> bool {
        let caches = self.engine.config().vdisks.iter().filter_map(|own| own.cache.as_ref());
        let mut copies = caches.flat_map(|cache| &cache.copies);
        self.engine.stale_places() == 0 && !self.engine.has_work() && copies.all(|one| one.current)
    }

    /// All disks are here: the missing ones come back in that order, and all of it is in sync in time.
    pub(super) fn heal(&mut self, order: &[u32]) -> Result<(), Wrong> {
        for disk in order {
            if self.disk_state(*disk) != DiskState::Online {
                self.come_back(*disk);
                self.poll();
            }
        }
        for _ in 0..TURNS_TO_HEAL {
            self.poll();
            self.look_at_the_sick();
            let all = (0..self.shape.disks).all(|disk| self.disk_state(disk) == DiskState::Online);
            if all && self.has_all_copies() {
                return self.wrong.take().map_or(Ok(()), Err);
            }
            self.engine.queue_mut().advance(Nanos::from_millis(5));
        }
        let states: Vec<DiskState> =
            (0..self.shape.disks).map(|disk| self.disk_state(disk)).collect();
        let (stale, stuck) = (self.engine.stale_places(), self.engine.stuck_places());
        let (work, halted) = (self.engine.has_work(), self.engine.halted());
        Err(format!(
            "not in sync although all disks are back: {states:?}, {stale} places stale, {stuck} of them stuck, work left {work}, halted {halted:?}"
        ))
    }

    /// Reads everything that can be read and judges it: it must stay so from now on. How many units cannot be read.
    pub(super) fn read_what_is_there(&mut self, promise: Promise, turn: u32) -> Result<u32, Wrong> {
        let mut found = Vec::new();
        let mut lost = 0;
        for first in (0..sectors()).step_by(usize::try_from(STEP).unwrap_or(1)) {
            let client = (first / STEP + turn) % CLIENTS;
            if self.read_some((first, STEP), client, promise, &mut found)? {
                continue;
            }
            for block in (first..first + STEP).step_by(usize::try_from(BLOCK).unwrap_or(1)) {
                if !self.read_some((block, BLOCK), client, promise, &mut found)? {
                    lost += BLOCK;
                }
            }
        }
        // What a start could not flush is not settled for good: the next one may decide otherwise (C10).
        if !self.engine.fails_flushes() {
            self.note(Seen::Found { values: found });
        }
        Ok(lost)
    }

    /// `false` when it fails, which it may.
    fn read_some(
        &mut self,
        (first, count): (u32, u32),
        client: u32,
        promise: Promise,
        found: &mut Vec<(u32, WriteId)>,
    ) -> Result<bool, Wrong> {
        let (kind, offset) = (RequestKind::Read, u64::from(first) * 512);
        let request = Request { kind, vdisk: 0, offset, len: count * 512 };
        if !self.ask_history(client, request)? {
            let failed = format!("{request:?} failed, though no more is gone than the space bears");
            return self.may_fail_at(client, &request).then_some(false).ok_or(failed);
        }
        let buffer = self.engine.buffer_mut(client);
        for (unit, bytes) in (first..first + count).zip(buffer.chunks(UNIT_BYTES)) {
            found.push((unit, self.witness.oracle.judge(unit, bytes, promise)?));
        }
        Ok(true)
    }
}

fn is_well(faults: &DiskFaults) -> bool {
    faults.dead_from.is_none()
        && faults.hangs_from.is_none()
        && faults.flush_errors.is_empty()
        && faults.refused_flushes.is_empty()
        && faults.write_errors.is_empty()
        && faults.short_writes.is_empty()
        && faults.unwritable.is_empty()
        && faults.unreadable.is_empty()
}

/// Applies what is wrong with some disks to the files that they are.
pub(super) fn set_faults(queue: &mut PowerQueue, files: &[u32], wrong: &[(u32, DiskFaults)]) {
    for (disk, faults) in wrong {
        *queue.faults_mut(files[index(*disk)]) = faults.clone();
    }
}
