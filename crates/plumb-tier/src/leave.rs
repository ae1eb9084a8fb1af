//! Emptying a disk that works, and doing without it.
//!
//! A row's place moves to another disk while the extents stay where they are: each is marked as kept, durably,
//! before a generation names the new disk and the old slab beside it. A kept extent lies in the old slab for reads
//! and writes alike. One by one extents are copied, in a standstill each few; the record that takes the mark back
//! is the moment at which one lies in the new place. So at every instant each copy of an extent is in one place,
//! and a crash finds it there.

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32};

use crate::core::{Core, Halt};
use crate::engine::ChangeError;
use crate::events::Event;
use crate::format::frame::Record;
use crate::format::{DiskState, Moving};
use crate::mutation::{Mutation, active};
use crate::rebuild::Place;
use crate::room::has_room_for;

impl<Q: FlushQueue> Core<Q> {
    /// Whether a disk may be removed: everything on it has room elsewhere, and a copy elsewhere if it is not here.
    pub(crate) fn may_leave(&self, disk: u16) -> Result<(), ChangeError> {
        let config = &self.members.config;
        let Some(own) = config.disks.get(usize::from(disk)).filter(|_| !config.is_gone(disk))
        else {
            return Err(ChangeError::NoDisk { name: format!("number {disk}") });
        };
        let name = own.name.clone();
        let stays = |other: &u16| *other != disk && self.members.takes_more(*other);
        let others: Vec<u16> = self.members.online().into_iter().filter(stays).collect();
        if others.is_empty() {
            return Err(ChangeError::LastDisk { name });
        }
        self.is_spared(disk)?;
        has_room_for(config, &self.members.geometry, (disk, &others))
    }

    /// Whether a disk is here, or what it holds elsewhere.
    pub(crate) fn is_spared(&self, disk: u16) -> Result<(), ChangeError> {
        let extents = if self.members.is_online(disk) { 0 } else { self.only_on(disk) };
        let name = || self.members.config.disks[usize::from(disk)].name.clone();
        if extents > 0 { Err(ChangeError::OnlyCopy { name: name(), extents }) } else { Ok(()) }
    }

    /// Extents of which no other disk here has a copy that may be read.
    fn only_on(&self, disk: u16) -> u32 {
        let config = &self.members.config;
        let lost = |extent: &u32| {
            if !self.disks_of(*extent).contains(&disk) {
                return false;
            }
            let vdisk = &config.vdisks[self.vdisk(*extent)];
            let step = vdisk.interleave.min(config.extent_bytes);
            let mut steps = 0..config.extent_bytes / step;
            steps.any(|nth| {
                let copies = self.copies_at(*extent, nth * step);
                copies.iter().any(|copy| copy.1 == disk)
                    && !copies.iter().any(|copy| self.members.in_sync(copy.1, *extent))
            })
        };
        to_u32(self.extents.list.mapped().map(|own| own.0).filter(lost).count())
    }

    /// A disk is to be removed, or is to stay after all.
    pub(crate) fn leave(&mut self, disk: u16, leaves: bool) -> Result<(), Halt> {
        if self.members.gone.get(usize::from(disk)) != Some(&false) {
            return Ok(());
        }
        let own = &mut self.members.config.disks[usize::from(disk)];
        own.leaving = leaves;
        self.io.events.note(match leaves {
            true => Event::DiskLeaving(disk),
            false => Event::DiskStays(disk),
        });
        if leaves && own.state == DiskState::Missing {
            own.state = DiskState::Retired;
        }
        self.publish()
    }

    /// Slabs of rows on disks that `is` says yes to.
    fn places_on(&self, is: impl Fn(u16) -> bool) -> Vec<Place> {
        let mut found = Vec::new();
        for (vdisk, own) in self.members.config.vdisks.iter().enumerate() {
            for (tier, rows) in own.tiers.iter().enumerate() {
                for (row, slabs) in rows.rows.iter().enumerate() {
                    let slabs = slabs.slabs.iter().enumerate().filter(|(_, slab)| is(slab.0));
                    found.extend(slabs.map(|(nth, _)| Place { vdisk, tier, row, nth }));
                }
            }
        }
        found
    }

    /// The next step of emptying a disk: what has arrived is named as such, then the next place begins to move.
    /// `false` when nothing can be done.
    pub(crate) fn empty(&mut self) -> Result<bool, Halt> {
        let config = &self.members.config;
        if let (Some(moving), Some((to, _))) = (config.moving, config.moving_to()) {
            if self.members.kept[usize::from(to)].len() > 0 {
                return Ok(false);
            }
            // A replay goes by that generation: for it all of the row lay in the new slab when disks were lost and extents opened.
            let place = Place {
                vdisk: moving.vdisk.into(),
                tier: moving.tier.into(),
                row: index(moving.row),
                nth: moving.nth.into(),
            };
            let implied = config.vdisks[place.vdisk].copies > 1;
            let told = match implied && !active(Mutation::PlaceGivenUpUntold) {
                true => self.extents_of_row(place),
                false => Vec::new(),
            };
            self.tell_marks(place, &told);
            // Until the record by which an extent left is durable, a crash brings it back there.
            let on_its_way = self.kept_until > self.journal.durable;
            if !told.is_empty() || on_its_way && !active(Mutation::PlaceGivenUpEarly) {
                self.sync()?;
            }
            self.members.config.moving = None;
            self.publish()?;
            return Ok(true);
        }
        let members = &self.members;
        let leaves =
            |disk: u16| members.is_online(disk) && members.config.disks[usize::from(disk)].leaving;
        for place in self.places_on(leaves) {
            let media = self.members.config.vdisks[place.vdisk].tiers[place.tier].media;
            let taken = self.disks_of_row(place);
            let Some((disk, slabs)) = self.spare(media, &taken, 1) else { continue };
            self.begin_move(place, (disk, slabs[0]))?;
            return Ok(true);
        }
        Ok(false)
    }

    fn begin_move(&mut self, place: Place, to: (u16, u32)) -> Result<(), Halt> {
        let extents = self.extents_of_row(place);
        self.tell_marks(place, &extents);
        for extent in extents {
            if active(Mutation::MoveUnmarked) {
                break;
            }
            self.members.keep_place(to.0, extent);
            self.journal.append(Record::PlaceKept { disk: to.0, extent });
        }
        self.sync()?;
        if !self.members.is_online(to.0) {
            return Ok(());
        }
        let small = |nth: usize| u16::try_from(nth).unwrap_or(u16::MAX);
        let config = &mut self.members.config;
        let slabs = &mut config.vdisks[place.vdisk].tiers[place.tier].rows[place.row].slabs;
        let from = std::mem::replace(&mut slabs[place.nth], to);
        self.io.events.note(Event::SlabMoves { vdisk: small(place.vdisk), from: from.0, to: to.0 });
        config.moving = Some(Moving {
            vdisk: small(place.vdisk),
            tier: u8::from(place.tier > 0),
            row: to_u32(place.row),
            nth: small(place.nth),
            from,
        });
        self.publish()
    }

    /// Does without a disk that was to be removed and holds nothing any more; `false` when there is none.
    pub(crate) fn release(&mut self) -> Result<bool, Halt> {
        let members = &self.members;
        let empty = |disk: &u16| {
            members.config.disks[usize::from(*disk)].leaving
                && members.config.used_slabs(*disk).is_empty()
        };
        let Some(disk) = members.online().into_iter().find(empty) else { return Ok(false) };
        let votes = |other: &u16| members.takes_more(*other) && *other != disk;
        if !members.config.voters.iter().any(votes) {
            return Ok(false);
        }
        if !self.hand_on_metadata(disk)? {
            return Ok(false);
        }
        // Whoever knows the list before, the disk itself included, learns of the new one.
        let knew = self.members.config.voters.clone();
        let config = &mut self.members.config;
        config.voters.retain(|voter| *voter != disk);
        config.disks[usize::from(disk)].state = DiskState::Retired;
        self.members.succeed();
        let mut failed = self.members.publish(&mut self.io, &knew);
        failed.retain(|other| *other != disk);
        self.members.online[usize::from(disk)] = false;
        for disk in self.members.note_gone() {
            self.io.events.note(Event::DiskRemoved(disk));
        }
        self.do_without(failed)?;
        self.sync()?;
        Ok(true)
    }

    /// Takes journal and tree off a disk, after another one has them; `false` when nobody could.
    fn hand_on_metadata(&mut self, disk: u16) -> Result<bool, Halt> {
        if !self.members.config.disks[usize::from(disk)].metadata {
            return Ok(true);
        }
        let members = &self.members;
        let lacks = |other: &u16| {
            members.takes_more(*other)
                && !members.config.disks[usize::from(*other)].metadata
                && members.config.voters.contains(other)
        };
        let lost = usize::from(members.is_online(disk));
        let few = members.metadata().len() < members.metadata_wanted(None) + lost;
        if few && let Some(other) = members.for_metadata(lacks) {
            if !self.copy_metadata(other)? {
                return Ok(false);
            }
            self.members.config.disks[usize::from(other)].metadata = true;
        } else if self.members.metadata().len() < 2 {
            return Ok(false);
        }
        self.members.config.disks[usize::from(disk)].metadata = false;
        Ok(true)
    }
}
