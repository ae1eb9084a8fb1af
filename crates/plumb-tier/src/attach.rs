//! Disks that leave the metadata, and disks that come back (RES-4).

use plumb_io::FlushQueue;

use crate::assembly::is_unserved;
use crate::core::{Core, Halt};
use crate::create::VOTERS;
use crate::events::Event;
use crate::extents::UNMAPPED;
use crate::format::frame::Record;
use crate::format::superblock::Superblock;
use crate::format::{BLOCK_LEN, DiskState, Geometry};
use crate::half::Half;
use crate::members::Members;
use crate::mutation::{Mutation, active};

impl<Q: FlushQueue> Core<Q> {
    /// A disk that holds the last copy of data failed: it keeps that, and leaves journal, tree and voters.
    pub(crate) fn drop_metadata(&mut self, disk: u16) -> Result<(), Halt> {
        self.members.config.voters.retain(|voter| *voter != disk);
        self.members.config.disks[usize::from(disk)].metadata = false;
        self.note_failing(disk);
        self.members.leave_logs(disk);
        self.members.declined.push(disk);
        if !self.members.are_enough() || self.members.metadata().is_empty() {
            return Err(Halt::Voters);
        }
        self.members.succeed();
        let voters = self.members.config.voters.clone();
        let failed = self.members.publish(&mut self.io, &voters);
        self.do_without(failed)
    }

    /// A disk failed, and stays for what only it holds.
    pub(crate) fn note_failing(&mut self, disk: u16) {
        self.io.uses[usize::from(disk)].stayed += 1;
        self.io.events.note(Event::DiskFailing(disk));
    }

    /// Brings a missing disk back: it gets journal and tree if they lack a copy, the configuration, and
    /// from then on every write. What it missed stays stale until it is brought up to date. A disk that
    /// cannot be read, is another one or has features that this version does not know stays missing.
    pub(crate) fn attach(&mut self, disk: u16) -> Result<(), Halt> {
        let nth = usize::from(disk);
        let all = self.members.online.len();
        if nth >= all || self.members.is_online(disk) || self.members.gone[nth] {
            return Ok(());
        }
        if !self.io.leads_there(disk) {
            // What is written to it would be gone with this program (RES-10).
            self.io.events.note(Event::DiskElsewhere(disk));
            return Ok(());
        }
        self.sync()?;
        let Some((block, begin)) = self.read_superblock(disk) else { return Ok(()) };
        if block.incompat | block.ro_compat != 0 {
            // A newer version had it (LAY-5).
            return Ok(());
        }
        let descends = self.members.config.descends_from(block.generation);
        let apart =
            !descends && block.generation.epoch > self.members.config.disks[nth].known_epoch;
        if apart && !self.is_unserved(disk, &block) {
            // It went on without the others: nothing of it is taken before somebody says so (LAY-3).
            return Ok(());
        }
        // An older copy of the disk lacks what no mark tells of (LAY-8).
        let whole = block.reached() >= self.members.config.disks[nth].served_epoch;
        let knows = descends && (whole || active(Mutation::OldCopyTaken));
        if !knows {
            self.mark_all_stale(disk, whole)?;
        }
        if !whole && !active(Mutation::OldCopyTaken) {
            self.members.distrust_logs(disk);
        }
        let reached = self.members.reached.max(self.members.epoch);
        self.members.superblocks[nth] = Some(Superblock { epoch_started: reached, ..block });
        self.members.begin[nth] = begin;
        // The pool names it as one that takes part before it knows itself: by then it has reached what the others have.
        if !self.members.write_superblocks(&mut self.io, &[disk]).is_empty() {
            return Ok(());
        }
        // Sixteen disks vote at most, and journal and tree lie on those (LAY-3).
        let votes = self.members.config.voters.len() < VOTERS;
        let metadata = votes
            && self.lacks_metadata(disk)
            && !self.members.config.disks[nth].leaving
            && self.copy_metadata(disk)?;
        let logs = self.copy_logs(disk);
        let (old, epoch) = (self.members.config.voters.clone(), self.members.epoch);
        self.members.make_current(disk, &logs);
        let config = &mut self.members.config;
        config.disks[nth].state = DiskState::Online;
        if apart {
            // Until it has this generation, a start meets the other one again.
            config.disks[nth].known_epoch = epoch;
        }
        config.disks[nth].metadata = metadata;
        if votes {
            config.voters.push(disk);
            config.voters.sort_unstable();
        }
        self.members.succeed();
        // Durable on the whole list before, then on the new disk (LAY-3): whether it votes or not, so that it is known
        // when it was away again.
        let failed = self.members.publish(&mut self.io, &old);
        self.do_without(failed)?;
        let failed = self.members.publish(&mut self.io, &[disk]);
        self.members.online[nth] = true;
        if !failed.is_empty() {
            self.lose(failed)?;
            return self.sync();
        }
        self.members.agree();
        // What nobody could help, it may.
        self.members.try_stuck();
        self.journal.append(Record::DiskBack { disk });
        self.note_disk_back(disk);
        self.io.events.note(Event::DiskBack(disk));
        if active(Mutation::ReturnUnsynced) {
            self.members.stale[nth].clear();
        }
        self.read_returned_logs()?;
        self.sync()
    }

    /// Whether nobody served under the generation of a disk that comes back, which those that take part never had.
    fn is_unserved(&mut self, disk: u16, block: &Superblock) -> bool {
        let record = Members::read_config(&mut self.io, (disk, block.area), block);
        let members = &self.members;
        let takes_part = |ordinal: u16, id: u128| {
            let known = members.config.disks.get(usize::from(ordinal));
            known.is_some_and(|disk| disk.id == id)
                && members.config.voters.contains(&ordinal)
                && members.is_online(ordinal)
        };
        record.is_some_and(|record| is_unserved((&members.config, &record), block, takes_part))
    }

    /// A disk that takes part and lost its vote gets it back, in the next life of the pool or once it is on probation no more,
    /// with journal and map where these lack a copy; `false` when there is none.
    pub(crate) fn readmit(&mut self) -> Result<bool, Halt> {
        let members = &self.members;
        let able = |disk: &u16| {
            members.takes_more(*disk)
                && !members.config.voters.contains(disk)
                && !members.declined.contains(disk)
                && members.superblocks[usize::from(*disk)].is_some()
        };
        let Some(disk) = members.online().into_iter().find(able) else { return Ok(false) };
        if members.config.voters.len() >= VOTERS {
            return Ok(false);
        }
        let reached = members.reached.max(members.epoch);
        if let Some(block) = &mut self.members.superblocks[usize::from(disk)] {
            block.epoch_started = reached;
        }
        // As one that comes back: it has reached what the others have before a generation names it.
        if !self.members.write_superblocks(&mut self.io, &[disk]).is_empty() {
            self.members.declined.push(disk);
            return Ok(true);
        }
        // A vote without journal and map would count for a start that then has neither.
        let lacks =
            self.lacks_metadata(disk) && !self.members.config.disks[usize::from(disk)].metadata;
        if lacks && !active(Mutation::VoteFirst) {
            if !self.copy_metadata(disk)? {
                self.members.declined.push(disk);
                return Ok(true);
            }
            self.members.config.disks[usize::from(disk)].metadata = true;
        }
        let old = self.members.config.voters.clone();
        self.members.config.voters.push(disk);
        self.members.config.voters.sort_unstable();
        self.members.succeed();
        let failed = self.members.publish(&mut self.io, &old);
        self.do_without(failed)?;
        let failed = self.members.publish(&mut self.io, &[disk]);
        match failed.is_empty() {
            true => self.members.agree(),
            false => self.do_without(failed)?,
        }
        self.sync()?;
        Ok(true)
    }

    /// No place on a disk that comes back is up to date: durable before it says of itself that it takes part. One that is
    /// no older copy of itself, and has a generation that no other came to know, misses nothing of what only it has in sync:
    /// nobody served under that generation, and nobody else could write there.
    fn mark_all_stale(&mut self, disk: u16, whole: bool) -> Result<(), Halt> {
        if !whole {
            self.journal.append(Record::AllStale { disk });
        }
        for extent in self.extents.list.numbers() {
            let place = self.extents.place(extent);
            if place == UNMAPPED || !self.disks_of(extent).contains(&disk) {
                continue;
            }
            if whole && self.is_last(disk, extent) {
                continue;
            }
            self.members.stale[usize::from(disk)].insert(extent);
            if whole {
                self.journal.append(Record::StaleSet { disk, extent });
            }
        }
        self.sync()
    }

    /// What a disk that comes back says of itself, and which copies the next update begins with.
    fn read_superblock(&mut self, disk: u16) -> Option<(Superblock, Half)> {
        let own = &self.members.config.disks[usize::from(disk)];
        let (id, pool, size) = (own.id, self.members.config.pool, own.device_bytes);
        let all = Geometry::superblocks(size).map(|offset| {
            let mut bytes = vec![0; BLOCK_LEN];
            let read = self.io.read(disk, offset, &mut bytes);
            read.then(|| Superblock::decode(&bytes)).flatten()
        });
        let mut begin = Half::to_begin_with(&all);
        if let Some(older) = begin.in_doubt(&all) {
            let newest = all.iter().flatten().map(|copy| copy.version).max();
            let own = self.members.superblocks[usize::from(disk)].as_ref();
            // What this engine left: it knows where its last update failed.
            let ours = own.map(|block| block.version) == newest
                && self.members.begin[usize::from(disk)] == older;
            if ours || !self.io.flush(&[disk]).is_empty() {
                begin = older;
            }
        }
        let copies: Vec<Superblock> = all.into_iter().flatten().collect();
        let ours = |copy: &&Superblock| copy.pool == pool && copy.device == id;
        let count = |copy: &Superblock| copies.iter().filter(|other| *other == copy).count();
        let best = copies
            .iter()
            .filter(ours)
            .filter(|copy| count(copy) >= 2)
            .max_by_key(|copy| copy.version);
        let mut block = best.or_else(|| copies.iter().find(ours)).cloned()?;
        block.version = copies.iter().map(|copy| copy.version).max().unwrap_or(block.version);
        let started = copies.iter().filter(ours).map(|copy| copy.epoch_started).max();
        block.epoch_started = started.unwrap_or(block.epoch_started);
        Some((block, begin))
    }
}
