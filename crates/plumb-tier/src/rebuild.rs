//! Rebuilding what a retired disk held on spare slabs of other disks (RES-4, RES-6, RES-7).
//!
//! A row's place moves first: every extent that lies there is stale on the new disk, durably, before a
//! generation names it. What then brings the places up to date is what does so for a disk that returns.

use plumb_io::FlushQueue;

use crate::core::{Core, Halt};
use crate::extents::{UNMAPPED, row_of};
use crate::format::frame::Record;
use crate::format::{Config, DiskState, MediaType};
use crate::members::METADATA_COPIES;
use crate::mutation::{Mutation, active};

/// A slab of a row on a retired disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    vdisk: usize,
    tier: usize,
    row: usize,
    nth: usize,
}

impl Config {
    /// Slabs of a disk that hold something.
    fn used_slabs(&self, disk: u16) -> Vec<u32> {
        let rows = self.vdisks.iter().flat_map(|vdisk| &vdisk.tiers).flat_map(|tier| &tier.rows);
        let of_rows = rows.flat_map(|row| &row.slabs).filter(|slab| slab.0 == disk).map(|s| s.1);
        let caches = self.vdisks.iter().filter_map(|vdisk| vdisk.cache.as_ref());
        let copies = caches.flat_map(|cache| &cache.copies).filter(|copy| copy.disk == disk);
        of_rows.chain(copies.flat_map(|copy| copy.slabs.iter().copied())).collect()
    }

    fn is_retired(&self, disk: u16) -> bool {
        self.disks[usize::from(disk)].state == DiskState::Retired
    }

    /// Whether a retired disk still holds something that belongs elsewhere.
    #[must_use]
    pub fn holds_retired(&self) -> bool {
        let all = 0..u16::try_from(self.disks.len()).unwrap_or(u16::MAX);
        all.filter(|disk| self.is_retired(*disk)).any(|disk| !self.used_slabs(disk).is_empty())
    }
}

impl<Q: FlushQueue> Core<Q> {
    /// A missing disk is given up: what it held is rebuilt elsewhere.
    pub(crate) fn retire(&mut self, disk: u16) -> Result<(), Halt> {
        let Some(own) = self.members.config.disks.get_mut(usize::from(disk)) else { return Ok(()) };
        if own.state != DiskState::Missing {
            return Ok(());
        }
        own.state = DiskState::Retired;
        self.publish()
    }

    /// Writes the configuration as a new generation to all voters.
    fn publish(&mut self) -> Result<(), Halt> {
        let id = self.members.random.id();
        self.members.config.succeed(self.members.epoch, id);
        let voters = self.members.config.voters.clone();
        let failed = self.members.publish(&mut self.io, &voters);
        self.lose(failed)?;
        self.sync()
    }

    /// Gives one thing that a retired disk held a new place; `false` when there is nothing left that could
    /// have one.
    pub(crate) fn rebuild(&mut self) -> Result<bool, Halt> {
        for place in self.endangered() {
            let row = &self.members.config.vdisks[place.vdisk].tiers[place.tier].rows[place.row];
            let media = self.members.config.vdisks[place.vdisk].tiers[place.tier].media;
            let taken: Vec<u16> = row.slabs.iter().map(|slab| slab.0).collect();
            let Some((disk, slabs)) = self.spare(media, &taken, 1) else { continue };
            self.move_place(place, disk, slabs[0])?;
            return Ok(true);
        }
        if self.move_log()? {
            return Ok(true);
        }
        self.spread_metadata()
    }

    /// Places on retired disks that another copy could fill, those with fewest live copies first.
    fn endangered(&self) -> Vec<Place> {
        let config = &self.members.config;
        let mut found = Vec::new();
        for (vdisk, own) in config.vdisks.iter().enumerate() {
            let copies = usize::from(own.copies);
            for (tier, rows) in own.tiers.iter().enumerate() {
                for (row, slabs) in rows.rows.iter().enumerate() {
                    for (nth, slab) in slabs.slabs.iter().enumerate() {
                        let column = nth / copies * copies;
                        let others = &slabs.slabs[column..column + copies];
                        let live = others.iter().filter(|s| self.members.is_online(s.0)).count();
                        if config.is_retired(slab.0) && live > 0 {
                            found.push((live, Place { vdisk, tier, row, nth }));
                        }
                    }
                }
            }
        }
        found.sort_by_key(|(live, place)| (*live, place.vdisk, place.tier, place.row, place.nth));
        found.into_iter().map(|(_, place)| place).collect()
    }

    /// A disk of that kind with `count` free slabs, the one with most: none of `taken`.
    fn spare(&self, media: MediaType, taken: &[u16], count: usize) -> Option<(u16, Vec<u32>)> {
        let config = &self.members.config;
        let geometry = &self.members.geometry;
        let free = |disk: u16| {
            let used = config.used_slabs(disk);
            let slabs = geometry.slabs(config.disks[usize::from(disk)].device_bytes);
            (0..slabs).filter(|slab| !used.contains(slab)).collect::<Vec<u32>>()
        };
        let fits =
            |disk: &u16| config.disks[usize::from(*disk)].media == media && !taken.contains(disk);
        let able = self.members.online().into_iter().filter(fits).map(|disk| (disk, free(disk)));
        let (disk, mut slabs) = able
            .filter(|(_, slabs)| slabs.len() >= count.max(1))
            .max_by_key(|(disk, slabs)| (slabs.len(), std::cmp::Reverse(*disk)))?;
        slabs.truncate(count);
        Some((disk, slabs))
    }

    fn move_place(&mut self, place: Place, disk: u16, slab: u32) -> Result<(), Halt> {
        let config = &self.members.config;
        let vdisk = &config.vdisks[place.vdisk];
        let (first, end) = (vdisk.first_extent, vdisk.first_extent + vdisk.extents);
        for extent in first..end {
            let lies = self.extents.get(extent).place;
            let here = lies != UNMAPPED
                && row_of(vdisk, &self.members.geometry, config.extent_bytes, lies)
                    == (place.tier, place.row);
            if here && !active(Mutation::RebuiltUnmarked) {
                self.members.stale[usize::from(disk)].insert(extent);
                self.journal.append(Record::StaleSet { disk, extent });
                self.counters.rebuilt += 1;
            }
        }
        if !active(Mutation::RebuildMarksLate) {
            self.sync()?;
        }
        if !self.members.is_online(disk) {
            return Ok(());
        }
        let tier = &mut self.members.config.vdisks[place.vdisk].tiers[place.tier];
        tier.rows[place.row].slabs[place.nth] = (disk, slab);
        self.publish()
    }

    /// Gives the copy of a log on a retired disk to another solid-state disk.
    fn move_log(&mut self) -> Result<bool, Halt> {
        for vdisk in 0..self.logs.len() {
            let config = &self.members.config;
            let Some(cache) = &config.vdisks[vdisk].cache else { continue };
            let retired = |copy: &crate::format::CacheCopy| config.is_retired(copy.disk);
            let Some(nth) = cache.copies.iter().position(retired) else { continue };
            let taken: Vec<u16> = cache.copies.iter().map(|copy| copy.disk).collect();
            let count = cache.copies[nth].slabs.len();
            let Some((disk, slabs)) = self.spare(MediaType::Ssd, &taken, count) else { continue };
            let before = self.members.config.vdisks[vdisk].cache.clone();
            if let Some(cache) = &mut self.members.config.vdisks[vdisk].cache {
                cache.copies[nth] = crate::format::CacheCopy { disk, current: false, slabs };
            }
            if !self.copy_logs(disk).contains(&vdisk) {
                // It does not take it: it will be noticed where that matters.
                self.members.config.vdisks[vdisk].cache = before;
                continue;
            }
            if let Some(cache) = &mut self.members.config.vdisks[vdisk].cache {
                cache.copies[nth].current = true;
            }
            self.publish()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Journal and tree get back the copies that they lost, on disks that take part.
    fn spread_metadata(&mut self) -> Result<bool, Halt> {
        if self.members.metadata().len() >= METADATA_COPIES {
            return Ok(false);
        }
        let config = &self.members.config;
        let lacks =
            |disk: &u16| !config.disks[usize::from(*disk)].metadata && config.voters.contains(disk);
        let Some(disk) = self.members.online().into_iter().find(lacks) else { return Ok(false) };
        if !self.copy_metadata(disk) {
            return Ok(false);
        }
        self.members.config.disks[usize::from(disk)].metadata = true;
        self.publish()?;
        Ok(true)
    }
}
