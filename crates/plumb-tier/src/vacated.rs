//! Places that were out of date when their extent left them. Until the record that says so is durable, a crash brings the extent
//! back there: so long such a place counts as out of date, and the disk that has what it lacks is needed.

use plumb_io::FlushQueue;
use plumb_units::convert::to_u32;

use crate::core::Core;
use crate::events::Event;
use crate::format::frame::Record;
use crate::members::Members;
use crate::mutation::{Mutation, active};

/// A place that an extent left.
#[derive(Debug)]
pub(crate) struct Vacated {
    /// Of the record that says so.
    lsn: u64,
    pub(crate) vdisk: usize,
    /// The disks on which it was out of date.
    stale: Vec<u16>,
    /// By part of the extent: the disks that had what was to be there.
    current: Vec<Vec<u16>>,
}

impl Vacated {
    /// Whether what lay there can be read without that disk.
    pub(crate) fn spares(&self, disk: u16, members: &Members) -> bool {
        let other = |own: &Vec<u16>| own.iter().any(|own| *own != disk && members.is_online(*own));
        self.current.iter().all(|own| !own.contains(&disk) || other(own))
    }
}

impl<Q: FlushQueue> Core<Q> {
    /// An extent is to leave its place: the record of that, on its way, and its position in the journal.
    pub(crate) fn vacate(&mut self, extent: u32, record: Record) -> u64 {
        let lsn = self.journal.append(record);
        let members = &self.members;
        let behind = |disk: &u16| members.stale[usize::from(*disk)].has(extent);
        let stale: Vec<u16> = members.each_online().filter(behind).collect();
        if !stale.is_empty() && !active(Mutation::VacatedUpToDate) {
            let (vdisk, bytes) = (self.vdisk(extent), members.config.extent_bytes);
            let step = members.config.vdisks[vdisk].interleave.min(bytes);
            let has_it = |within: u32| {
                let at = self.copies_at(extent, within);
                let disks = at.iter().map(|copy| copy.1);
                disks.filter(|disk| members.in_sync(*disk, extent)).collect()
            };
            let mut current: Vec<Vec<u16>> =
                (0..bytes / step).map(|nth| has_it(nth * step)).collect();
            current.dedup();
            self.vacated.push(Vacated { lsn, vdisk, stale, current });
            self.journal.want(lsn);
        }
        if self.members.kept.iter().any(|kept| kept.has(extent)) {
            self.kept_until = lsn;
        }
        self.members.forget(extent);
        lsn
    }

    /// How many such places there are on a disk: of one virtual disk, or of all.
    pub(crate) fn vacated_on(&self, disk: u16, vdisk: Option<usize>) -> u32 {
        let there = self.vacated.iter().filter(|own| own.stale.contains(&disk));
        to_u32(there.filter(|own| vdisk.is_none_or(|vdisk| own.vdisk == vdisk)).count())
    }

    /// No crash brings back what left a place durably.
    pub(crate) fn settle_vacated(&mut self) {
        if self.vacated.first().is_none_or(|own| own.lsn > self.journal.durable) {
            return;
        }
        let durable = self.journal.durable;
        let settled: Vec<Vacated> = self.vacated.extract_if(.., |own| own.lsn <= durable).collect();
        let mut disks: Vec<u16> = settled.into_iter().flat_map(|own| own.stale).collect();
        disks.sort_unstable();
        disks.dedup();
        for disk in disks {
            if self.members.is_online(disk) && self.is_up_to_date(disk) {
                self.io.events.note(Event::DiskUpToDate(disk));
            }
        }
    }

    /// Whether nothing on a disk is out of date, and no crash makes it so.
    pub(crate) fn is_up_to_date(&self, disk: u16) -> bool {
        self.members.stale[usize::from(disk)].len() == 0 && self.vacated_on(disk, None) == 0
    }
}
