//! Virtual disks beside each other: what one of them lost costs no other one.
//!
//! A log of which no current copy is here holds newer data than what lies at home. Its virtual disk is detached: nothing of
//! it is read or written until a disk with that log is back, or an operator gives the cache up. A disk that fails a flush,
//! and that only some virtual disks need, is done without: theirs is what they lose, and the others go on.

use plumb_io::FlushQueue;

use crate::core::{Core, Halt};
use crate::events::Event;
use crate::mutation::{Mutation, active};

impl<Q: FlushQueue> Core<Q> {
    /// Whether no current copy of a virtual disk's log is here.
    pub(crate) fn is_detached(&self, vdisk: usize) -> bool {
        self.logs.get(vdisk).and_then(Option::as_ref).is_some_and(|log| log.is_away)
    }

    /// Whether nothing of an extent's virtual disk is taken for durable any more (C10).
    #[inline]
    pub(crate) fn is_unflushable(&self, extent: u32) -> bool {
        self.unflushable[self.vdisk(extent)]
    }

    /// By virtual disk, whether a disk holds the last copy of something of it, and whether there is one that does not need
    /// it: be it one that holds nothing yet, for what is written to it is to become durable.
    fn who_needs(&self, disk: u16) -> (Vec<bool>, bool) {
        let logs = 0..self.logs.len();
        let mut needs: Vec<bool> =
            logs.map(|vdisk| !self.members.log_spares(vdisk, disk)).collect();
        for (extent, _) in self.extents.list.mapped() {
            let vdisk = self.vdisk(extent);
            needs[vdisk] = needs[vdisk] || !self.extent_spares(extent, disk);
        }
        for left in &self.vacated {
            needs[left.vdisk] = needs[left.vdisk] || !left.spares(disk, &self.members);
        }
        // Nobody who gains nothing by it: of whom nothing can be made durable anyway, whose log is away, or who is only being made, and
        // has no slots here.
        let gains = |(vdisk, own): (usize, &crate::VirtualDisk)| {
            if self.extents.room(vdisk, 0).0 == 0 {
                return active(Mutation::UnmadeGains) && !own.is_removed();
            }
            let lost = self.unflushable[vdisk] || self.is_detached(vdisk) || self.flush_broken;
            !needs[vdisk] && !own.is_removed() && !lost
        };
        let spared = self.members.config.vdisks.iter().enumerate().any(gains);
        (needs, spared)
    }

    /// Disks that hold the last copy of something could not be flushed. Those that another virtual disk can spare are
    /// expelled for its sake: of those that cannot nothing is taken for durable any more, until the next start has examined their open
    /// extents. Returns the disks that stay, for all need them.
    pub(crate) fn lose_for_others(&mut self, failed: Vec<u16>) -> Result<Vec<u16>, Halt> {
        let mut kept = Vec::new();
        for disk in failed {
            if !self.members.is_online(disk) {
                continue;
            }
            let (needs, spared) = self.who_needs(disk);
            if !spared || active(Mutation::LastCopyHoldsAll) {
                kept.push(disk);
                continue;
            }
            for (vdisk, _) in needs.iter().enumerate().filter(|own| *own.1) {
                self.give_up_flushing(vdisk, disk);
            }
            self.lose(vec![disk])?;
        }
        Ok(kept)
    }

    /// Disks of which a flush failed that was made for something else, and that take part still: those that others can spare go, as after a
    /// flush of theirs. Of the rest nothing is taken for durable by whoever asks next.
    pub(crate) fn leave_unflushed(&mut self) -> Result<(), Halt> {
        let mut kept: Vec<u16> = Vec::new();
        loop {
            let left = |disk: &u16| self.members.is_online(*disk) && !kept.contains(disk);
            let mut failed: Vec<u16> = self.io.unflushed.iter().copied().filter(left).collect();
            failed.sort_unstable();
            failed.dedup();
            if failed.is_empty() || active(Mutation::UnflushedStays) {
                return Ok(());
            }
            let asked = failed.len();
            let needed = self.lose_spare(failed)?;
            let needed = self.lose_for_others(needed)?;
            if needed.len() < asked {
                self.sync()?;
            }
            kept.extend(needed);
        }
    }

    /// Nothing of a virtual disk is durable from now on; its log ends where the last copy of it is lost.
    fn give_up_flushing(&mut self, vdisk: usize, disk: u16) {
        let number = u16::try_from(vdisk).unwrap_or(u16::MAX);
        if !std::mem::replace(&mut self.unflushable[vdisk], true) {
            self.io.events.note(Event::FlushFailedOf(number));
        }
        let lost = !self.members.log_spares(vdisk, disk);
        let Some(log) = &mut self.logs[vdisk] else { return };
        log.unseal();
        if lost && !log.closed {
            self.close_log(vdisk);
        }
    }

    /// A disk is back: logs of which it has a current copy are read, and their virtual disks serve.
    pub(crate) fn read_returned_logs(&mut self) -> Result<(), Halt> {
        for vdisk in 0..self.logs.len() {
            if !self.is_detached(vdisk) || self.members.log_copies(vdisk).next().is_none() {
                continue;
            }
            if self.read_returned_log(vdisk)? {
                self.io.events.note(Event::CacheBack(u16::try_from(vdisk).unwrap_or(u16::MAX)));
            }
        }
        Ok(())
    }
}
