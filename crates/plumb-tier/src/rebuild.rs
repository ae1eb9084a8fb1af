//! Rebuilding what a retired disk held on spare slabs of other disks (RES-4, RES-6, RES-7).
//!
//! A row's place moves first: every extent that lies there is stale on the new disk, durably, before a
//! generation names it. What then brings the places up to date is what does so for a disk that returns. Disks
//! that still work are emptied otherwise: see `leave.rs`.

use plumb_io::FlushQueue;
use plumb_units::convert::index;

use crate::core::{Core, Halt};
use crate::events::Event;
use crate::extents::{UNMAPPED, row_of};
use crate::format::frame::Record;
use crate::format::{CacheCopy, DiskState, MediaType, Moving};
use crate::mutation::{Mutation, active};
use crate::waits::Waits;

/// A slab of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) vdisk: usize,
    pub(crate) tier: usize,
    pub(crate) row: usize,
    pub(crate) nth: usize,
}

/// Copies of a log, at most.
const COPIES_MAX: usize = 3;

/// Whether what moves is of that place's row.
fn is_of_row(moving: &Moving, place: Place) -> bool {
    let row = (index(moving.vdisk.into()), index(moving.tier.into()), index(moving.row));
    row == (place.vdisk, place.tier, place.row)
}

impl<Q: FlushQueue> Core<Q> {
    /// A missing disk is given up: what it held is rebuilt elsewhere.
    pub(crate) fn retire(&mut self, disk: u16) -> Result<(), Halt> {
        let Some(own) = self.members.config.disks.get_mut(usize::from(disk)) else { return Ok(()) };
        if own.state != DiskState::Missing {
            return Ok(());
        }
        own.state = DiskState::Retired;
        let (members, is_told) = (&self.members, !active(Mutation::NoRoomUntold));
        let found = Waits::of(&members.config, &members.geometry, |disk| members.is_online(disk));
        let waits = found.of_any(disk).filter(|_| is_told);
        self.io.events.note(Event::DiskRetired { disk, waits });
        self.publish()
    }

    /// Writes the configuration as a new generation to all voters.
    pub(crate) fn publish(&mut self) -> Result<(), Halt> {
        self.members.succeed();
        let voters = self.members.config.voters.clone();
        let failed = self.members.publish(&mut self.io, &voters);
        for disk in self.members.note_gone() {
            self.io.events.note(Event::DiskRemoved(disk));
        }
        self.do_without(failed)?;
        self.sync()
    }

    /// Takes the next step of giving what retired and leaving disks hold new places; `false` when there is nothing
    /// left that could have one.
    pub(crate) fn rebuild(&mut self) -> Result<bool, Halt> {
        // Rows of the same disks find the same, and a disk that was given up may leave ten thousand of them.
        let mut in_vain: Vec<(MediaType, Vec<u16>)> = Vec::new();
        for place in self.endangered() {
            let taken = self.disks_of_row(place);
            let media = self.members.config.vdisks[place.vdisk].tiers[place.tier].media;
            if in_vain.iter().any(|(of, disks)| *of == media && *disks == taken) {
                continue;
            }
            let Some((disk, slabs)) = self.spare(media, &taken, 1) else {
                in_vain.push((media, taken));
                continue;
            };
            self.move_place(place, disk, slabs[0])?;
            return Ok(true);
        }
        let votes = self.move_log()? || self.empty()? || self.readmit()?;
        Ok(votes || self.spread_metadata()? || self.spread_logs()? || self.release()?)
    }

    /// Places on retired disks that another copy could fill, those with fewest live copies first. Where such a disk has what no other
    /// disk here has, it keeps the place until it is back. One pass over the extents, however many places there are.
    fn endangered(&self) -> Vec<Place> {
        let config = &self.members.config;
        let mut found = Vec::new();
        for (vdisk, own) in config.vdisks.iter().enumerate() {
            let retired = |slab: &(u16, u32)| config.is_retired(slab.0);
            let mut rows = own.tiers.iter().flat_map(|tier| &tier.rows);
            if !rows.any(|row| row.slabs.iter().any(retired)) {
                continue;
            }
            let copies = usize::from(own.copies);
            let uses = self.uses_of(vdisk);
            for (tier, rows) in own.tiers.iter().enumerate() {
                for (row, slabs) in rows.rows.iter().enumerate() {
                    let (used, needed) = &uses[tier][row];
                    for (nth, slab) in slabs.slabs.iter().enumerate() {
                        let column = nth / copies * copies;
                        let others = &slabs.slabs[column..column + copies];
                        let live = others.iter().filter(|s| self.members.is_online(s.0)).count();
                        let place = Place { vdisk, tier, row, nth };
                        // Where nothing lies there is nothing to copy.
                        if retired(slab) && (live > 0 || !used) && !needed.contains(&slab.0) {
                            found.push((live, place));
                        }
                    }
                }
            }
        }
        found.sort_by_key(|(live, place)| (*live, place.vdisk, place.tier, place.row, place.nth));
        found.into_iter().map(|(_, place)| place).collect()
    }

    /// By tier and row of a virtual disk: whether an extent lies there, and which retired disks have what no other disk here has.
    fn uses_of(&self, vdisk: usize) -> Vec<Vec<(bool, Vec<u16>)>> {
        let config = &self.members.config;
        let own = &config.vdisks[vdisk];
        let mut uses: Vec<Vec<(bool, Vec<u16>)>> =
            own.tiers.iter().map(|tier| vec![(false, Vec::new()); tier.rows.len()]).collect();
        for extent in own.first_extent..own.first_extent + own.extents {
            let lies = self.extents.place(extent);
            if lies == UNMAPPED {
                continue;
            }
            let (tier, row) = row_of(own, &self.members.geometry, config.extent_bytes, lies);
            let Some((used, needed)) = uses.get_mut(tier).and_then(|rows| rows.get_mut(row)) else {
                continue;
            };
            *used = true;
            let disks = || own.tiers[tier].rows[row].slabs.iter().map(|slab| slab.0);
            for disk in disks().filter(|disk| config.is_retired(*disk)) {
                // Mostly all others have it.
                let mut others = disks().filter(|other| *other != disk);
                let elsewhere =
                    own.copies > 1 && others.all(|one| self.members.in_sync(one, extent));
                if !elsewhere && !needed.contains(&disk) && self.is_last(disk, extent) {
                    needed.push(disk);
                }
            }
        }
        uses
    }

    /// Disks that a row's places lie on, or lay on until all of it has moved.
    pub(crate) fn disks_of_row(&self, place: Place) -> Vec<u16> {
        self.members.config.disks_of_row((place.vdisk, place.tier, place.row))
    }

    /// A disk of that kind with `count` free slabs, the one with most: none of `taken`, and none that leaves.
    pub(crate) fn spare(
        &self,
        media: MediaType,
        taken: &[u16],
        count: usize,
    ) -> Option<(u16, Vec<u32>)> {
        let config = &self.members.config;
        let geometry = &self.members.geometry;
        let free = |disk: u16| {
            let slabs = geometry.slabs(config.disks[usize::from(disk)].device_bytes);
            let mut free = vec![true; index(slabs)];
            for slab in config.used_slabs(disk) {
                if let Some(slab) = free.get_mut(index(slab)) {
                    *slab = false;
                }
            }
            (0..slabs).filter(|slab| free[index(*slab)]).collect::<Vec<u32>>()
        };
        let fits = |disk: &u16| {
            self.members.takes_more(*disk)
                && config.disks[usize::from(*disk)].media == media
                && !taken.contains(disk)
        };
        let able = self.members.online().into_iter().filter(fits).map(|disk| (disk, free(disk)));
        let (disk, mut slabs) = able
            .filter(|(_, slabs)| slabs.len() >= count.max(1))
            .max_by_key(|(disk, slabs)| (slabs.len(), std::cmp::Reverse(*disk)))?;
        slabs.truncate(count);
        Some((disk, slabs))
    }

    /// Mapped extents of a place's row.
    pub(crate) fn extents_of_row(&self, place: Place) -> Vec<u32> {
        let config = &self.members.config;
        let vdisk = &config.vdisks[place.vdisk];
        let here = |extent: &u32| {
            let lies = self.extents.place(*extent);
            lies != UNMAPPED
                && row_of(vdisk, &self.members.geometry, config.extent_bytes, lies)
                    == (place.tier, place.row)
        };
        (vdisk.first_extent..vdisk.first_extent + vdisk.extents).filter(here).collect()
    }

    /// Gives a place on a disk that was given up to another disk, where all of it is stale at first. What had not
    /// yet moved to the disk that was given up still lies where it lay.
    fn move_place(&mut self, place: Place, disk: u16, slab: u32) -> Result<(), Halt> {
        let config = &self.members.config;
        let moves = config
            .moving
            .filter(|moving| is_of_row(moving, place) && usize::from(moving.nth) == place.nth);
        let before = config.vdisks[place.vdisk].tiers[place.tier].rows[place.row].slabs[place.nth];
        let extents = self.extents_of_row(place);
        self.tell_marks(place, &extents);
        for &extent in &extents {
            if active(Mutation::RebuiltUnmarked) {
                break;
            }
            self.counters.rebuilt += 1;
            self.counters.rebuilt_bytes += self.share_on(before.0, extent);
            if moves.is_some() && self.members.kept[usize::from(before.0)].has(extent) {
                self.members.keep_place(disk, extent);
                self.journal.append(Record::PlaceKept { disk, extent });
                continue;
            }
            if self.members.kept[usize::from(disk)].has(extent) {
                // What an earlier move left says nothing of this one.
                self.members.settle_place(disk, extent);
                self.journal.append(Record::StaleClear { disk, extent });
            }
            self.members.stale[usize::from(disk)].insert(extent);
            self.journal.append(Record::StaleSet { disk, extent });
        }
        if !active(Mutation::RebuildMarksLate) {
            self.sync()?;
        }
        if !self.members.is_online(disk) {
            return Ok(());
        }
        let vdisk = u16::try_from(place.vdisk).unwrap_or(u16::MAX);
        self.io.events.note(Event::SlabMoves { vdisk, from: before.0, to: disk });
        let tier = &mut self.members.config.vdisks[place.vdisk].tiers[place.tier];
        tier.rows[place.row].slabs[place.nth] = (disk, slab);
        self.publish()?;
        if moves.is_some() {
            for extent in extents {
                self.members.settle_place(before.0, extent);
                self.journal.append(Record::StaleClear { disk: before.0, extent });
            }
        }
        Ok(())
    }

    /// Says of each copy of a row that is about to change whether it is up to date. Other records imply that, by the row that
    /// an extent lies in when they are replayed: that row will be another one.
    pub(crate) fn tell_marks(&mut self, place: Place, extents: &[u32]) {
        if active(Mutation::MarksImplied) {
            return;
        }
        let tiers = &self.members.config.vdisks[place.vdisk].tiers;
        let mut disks: Vec<u16> =
            tiers[place.tier].rows[place.row].slabs.iter().map(|slab| slab.0).collect();
        disks.sort_unstable();
        disks.dedup();
        for (disk, &extent) in disks.iter().flat_map(|disk| extents.iter().map(|of| (*disk, of))) {
            let nth = usize::from(disk);
            self.journal.append(if self.members.kept[nth].has(extent) {
                Record::PlaceKept { disk, extent }
            } else if self.members.stale[nth].has(extent) {
                Record::StaleSet { disk, extent }
            } else {
                Record::StaleClear { disk, extent }
            });
        }
    }

    /// Gives the copy of a log on a retired or leaving disk to another solid-state disk.
    fn move_log(&mut self) -> Result<bool, Halt> {
        for vdisk in 0..self.logs.len() {
            let config = &self.members.config;
            let Some(cache) = &config.vdisks[vdisk].cache else { continue };
            let leaves = |copy: &CacheCopy| {
                let own = &config.disks[usize::from(copy.disk)];
                own.state == DiskState::Retired || own.leaving && self.members.is_online(copy.disk)
            };
            let Some(nth) = cache.copies.iter().position(leaves) else { continue };
            let taken: Vec<u16> = cache.copies.iter().map(|copy| copy.disk).collect();
            let count = cache.copies[nth].slabs.len();
            let Some((disk, slabs)) = self.spare(MediaType::Ssd, &taken, count) else { continue };
            let before = self.members.config.vdisks[vdisk].cache.clone();
            let own = self.members.log_copies(vdisk).any(|copy| usize::from(copy.0) == nth);
            let alone = own && self.members.log_copies(vdisk).count() == 1;
            let made = CacheCopy { disk, current: false, slabs };
            if let Some(cache) = &mut self.members.config.vdisks[vdisk].cache {
                // The only copy is copied beside itself; one of several gives its place away first.
                match alone && cache.copies.len() < COPIES_MAX {
                    true => cache.copies.push(made),
                    false => cache.copies[nth] = made,
                }
            }
            if !self.copy_logs(disk).contains(&vdisk) {
                // It does not take it: it will be noticed where that matters.
                self.members.config.vdisks[vdisk].cache = before;
                continue;
            }
            if let Some(cache) = &mut self.members.config.vdisks[vdisk].cache {
                if cache.copies.len() > taken.len() {
                    cache.copies.swap_remove(nth);
                }
                cache.copies[nth].current = true;
            }
            self.publish()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Logs get back the copies that they lost, on disks that take part: one that failed and kept its data has a copy that
    /// ends before others do. Not in the life of the pool in which it failed.
    fn spread_logs(&mut self) -> Result<bool, Halt> {
        for disk in self.members.online() {
            let able = self.members.takes_more(disk) && !self.members.declined.contains(&disk);
            let logs = match able && !active(Mutation::LogCopyForgotten) {
                true => self.copy_logs(disk),
                false => Vec::new(),
            };
            if logs.is_empty() {
                // None lacks one, or it cannot be read or written now.
                continue;
            }
            self.members.make_current(disk, &logs);
            if !active(Mutation::LogCurrentUnpublished) {
                self.publish()?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Journal and tree get back a copy that they lost, on a disk that takes part; or one goes from a rotating disk to a solid-state
    /// one, or is taken off a rotating one that is one too many. `false` when all is as it is to be, or cannot be now.
    pub(crate) fn spread_metadata(&mut self) -> Result<bool, Halt> {
        let mut failed = Vec::new();
        let (gets, gives) = loop {
            let Some((gets, gives)) = self.members.metadata_step(&failed) else { return Ok(false) };
            let Some(disk) = gets else { break (gets, gives) };
            if active(Mutation::CopyNamedFirst) || self.copy_metadata(disk)? {
                break (gets, gives);
            }
            if self.io.unflushed.contains(&disk) {
                // It has data, too (C10).
                self.do_without(vec![disk])?;
                self.sync()?;
            }
            failed.push(disk);
        };
        // In one generation: there are never more than three.
        let mut name = |disk: Option<u16>, metadata: bool| {
            if let Some(disk) = disk {
                self.members.config.disks[usize::from(disk)].metadata = metadata;
            }
        };
        name(gets, true);
        name(gives, false);
        self.publish()?;
        Ok(true)
    }
}
