//! The state of a space and what is done to it while no request is under way: commits that are waited
//! for, the loss of disks, checkpoints.

use plumb_io::FlushQueue;
use plumb_units::convert::index;

use crate::deferred::Deferred;
use crate::events::Event;
use crate::extents::{
    COMMITTING, ExtentSet, Extents, PENDING, SEALED, Sum, TENTATIVE, UNMAPPED, UNSETTLED, disks_of,
    of_word, share_of,
};
use crate::format::BLOCK_BYTES;
use crate::format::frame::{FrameKind, Record};
use crate::format::page::Checkpoint;
use crate::io::Io;
use crate::journal::{Journal, Room};
use crate::log::Log;
use crate::members::Members;
use crate::mutation::{Mutation, active};
use crate::tree::Trees;
use crate::vacated::Vacated;

/// Rounds without a write after which an extent is closed, if it had none for as long as is set either.
const CLOSE_AFTER: u64 = 5;

/// Extents that may be open at a time (section 4): 256 GiB with extents of 1 MiB.
pub(crate) const OPEN_LIMIT: usize = 262_144;
/// When there are as many, so many are closed behind a flush of the devices at least, those first that were written last
/// longest ago.
const CLOSED_AT_ONCE: usize = 1024;

/// Why the space stands still until it is started again: nothing is acknowledged any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// Fewer than half of the voters are left, or no copy of the journal.
    #[error("too many disks were lost at once to go on safely")]
    Voters,
    /// The journal or the tree has no room for what a checkpoint must write.
    #[error("the metadata area is too small for this pool")]
    MetadataFull,
    /// The last copy of something could not be flushed.
    #[error("a disk that holds the last copy of data could not be flushed")]
    Unflushed,
    /// The engine turned and nothing went on.
    #[error(
        "the engine stood still, which is a defect of Plumb and none of the disks: please report it"
    )]
    NoProgress,
}

/// What happened to data, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Blocks whose checksum was compared on a read.
    pub blocks_verified: u64,
    /// Blocks that did not match on one copy.
    pub mismatches: u64,
    /// Blocks rewritten from a good copy.
    pub healed: u64,
    /// Blocks without a good copy.
    pub unrecoverable: u64,
    /// Blocks that scans could not read, for a disk that is away has what is good of them.
    pub away: u64,
    /// Blocks that a scan met whose checksums are lost (LAY-7).
    pub unverified: u64,
    /// Of these, blocks whose copies differ or cannot be read.
    pub unverified_differ: u64,
    /// Of these, blocks that were accepted as they are.
    pub accepted: u64,
    /// Copies of metadata that scans read: pages of map and checksums, superblocks, configurations.
    pub metadata_verified: u64,
    /// Copies of metadata that starts and scans found damaged.
    pub metadata_damaged: u64,
    /// Of these, copies that a scan could not have written anew.
    pub metadata_unhealed: u64,
    /// Blocks taken for interrupted writes after an unclean stop (CRC-3).
    pub interrupted: u64,
    /// Blocks whose copies were made equal after an unclean stop.
    pub equalised: u64,
    /// Disks that were expelled.
    pub disks_lost: u64,
    /// Places of extents that were given a new disk, to be rebuilt there.
    pub rebuilt: u64,
    /// Bytes of these places.
    pub rebuilt_bytes: u64,
    /// Places of extents moved off a disk that works.
    pub moved: u64,
    /// Places of extents brought up to date on a returned disk.
    pub resynced: u64,
    /// Bytes of these places.
    pub resynced_bytes: u64,
    /// Bytes of extents that a start left open for later and that were settled since.
    pub settled_bytes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Records written to logs of write-back caches.
    pub cache_records: u64,
    /// Blocks of data in them.
    pub cache_blocks: u64,
    /// Blocks copied home from them.
    pub destaged: u64,
}

impl Counters {
    /// Bytes brought up to date, made anew, or settled in the background.
    #[must_use]
    pub fn background_bytes(&self) -> u64 {
        self.resynced_bytes + self.settled_bytes
    }
}

/// Everything but the requests.
#[derive(Debug)]
pub(crate) struct Core<Q> {
    pub(crate) io: Io<Q>,
    pub(crate) members: Members,
    pub(crate) extents: Extents,
    pub(crate) trees: Trees,
    pub(crate) journal: Journal,
    /// Logs of the write-back caches, by virtual disk.
    pub(crate) logs: Vec<Option<Log>>,
    /// Behind so many bytes one of them is a long one.
    pub(crate) log_far_from: u64,
    /// The first extent of each virtual disk.
    pub(crate) vdisks_from: Vec<u32>,
    /// Slots that are free once that frame is durable.
    pub(crate) freeing: Vec<(u64, usize, u32)>,
    /// Places that extents left before they were up to date, in the order of their records.
    pub(crate) vacated: Vec<Vacated>,
    /// The newest record by which an extent left a place that is being emptied: until it is durable that place is not given up.
    pub(crate) kept_until: u64,
    /// Blocks that the next round has to commit: extent and block within it.
    pub(crate) pending: Vec<(u32, u32)>,
    /// Extents that are open, and some that were.
    pub(crate) open_list: Vec<u32>,
    /// How many may be at a time.
    pub(crate) open_limit: usize,
    /// Blocks that could not be settled, or that a write that failed left unsettled: extent and block within it. Their extents
    /// stay open, until they are settled or written anew.
    pub(crate) unsettled: Vec<(u32, u32)>,
    /// Open extents that the start left for later.
    pub(crate) deferred: Deferred,
    /// Extents with blocks whose checksum is lost (LAY-7), and some that have none any more.
    pub(crate) unverified: ExtentSet,
    /// Rounds sealed so far.
    pub(crate) rounds: u64,
    /// Extents that were written before that round have had no write for long enough to be closed.
    pub(crate) close_before: u64,
    pub(crate) counters: Counters,
    /// Blocks without a good copy that were met, by virtual disk.
    pub(crate) lost_blocks: Vec<u64>,
    /// Extents that those are in that were met since the start, or since the last scan began.
    pub(crate) lost_extents: ExtentSet,
    /// Extents of which the scan that is under way, or was last, could not read all blocks: disks are away that have them.
    pub(crate) unread: ExtentSet,
    /// Disks of which the journal says that they are away, by ordinal.
    pub(crate) lost: Vec<bool>,
    /// A last copy of something of these virtual disks could not be flushed, and others do without its disk: nothing of
    /// theirs is taken for durable any more (C10).
    pub(crate) unflushable: Vec<bool>,
    /// The last copy of something could not be flushed: there are no checkpoints any more, and every FLUSH fails (C10).
    pub(crate) flush_broken: bool,
    /// Copies of pages that scans found damaged: the next checkpoint writes these pages anew.
    pub(crate) to_mend: u64,
}

impl<Q: FlushQueue> Core<Q> {
    /// The virtual disk that an extent belongs to.
    #[inline]
    pub(crate) fn vdisk(&self, extent: u32) -> usize {
        self.vdisks_from.partition_point(|first| *first <= extent) - 1
    }

    /// Bytes of an extent that lie on a disk, or are to; 0 of one that has no place.
    pub(crate) fn share_on(&self, disk: u16, extent: u32) -> u64 {
        let place = self.extents.place(extent);
        let config = &self.members.config;
        match place {
            UNMAPPED => 0,
            place => {
                let vdisk = &config.vdisks[self.vdisk(extent)];
                share_of(vdisk, &self.members.geometry, config.extent_bytes, (place, disk))
            }
        }
    }

    /// Blocks without a good copy were met.
    pub(crate) fn note_lost(&mut self, extent: u32, blocks: u32) {
        let vdisk = self.vdisk(extent);
        self.counters.unrecoverable += u64::from(blocks);
        self.lost_blocks[vdisk] += u64::from(blocks);
        if blocks > 0 {
            self.lost_extents.insert(extent);
        }
        self.io.events.note(Event::Unrecoverable { extent, blocks });
    }

    /// Writes all records that wait, and flushes. Disks that fail are expelled; what is durable then is
    /// durable on all that are left.
    pub(crate) fn sync(&mut self) -> Result<(), Halt> {
        loop {
            let mut failed = Vec::new();
            while self.journal.has_batch() {
                if self.journal.room(true) == Room::Full {
                    return Err(Halt::MetadataFull);
                }
                failed.extend(self.write_frame(FrameKind::Records));
            }
            if !active(Mutation::CommitUnflushed) {
                failed.extend(self.flush_metadata());
            }
            failed.retain(|disk| self.members.is_online(*disk));
            if failed.is_empty() {
                self.journal.appended = self.journal.link.lsn - 1;
                self.journal.durable = self.journal.appended;
                self.prove();
                self.release_slots();
                return Ok(());
            }
            self.do_without(failed)?;
        }
    }

    /// What is taken for durable is known to be, unless a flush of a disk that takes part failed, which may have forgotten what that was
    /// for (C10): a start that misses a frame which later ones call durable does not take it for the journal's end.
    pub(crate) fn prove(&mut self) {
        let members = &self.members;
        let failed = self.io.unflushed.iter().any(|disk| members.is_online(*disk));
        if !failed && !self.flush_broken {
            self.journal.proven = self.journal.durable;
        }
    }

    /// Writes the next frame, and the pad before it if the ring ends; the disks that failed.
    pub(crate) fn write_frame(&mut self, kind: FrameKind) -> Vec<u16> {
        let disks = self.members.metadata();
        let mut failed = Vec::new();
        loop {
            let (epoch, before) = (self.members.epoch, self.journal.link.lsn);
            let (bytes, position, made) = self.journal.make(self.members.pool_seed, kind, epoch);
            let bytes = bytes.to_vec();
            self.journal.link = made.next;
            failed.extend(self.io.write(&disks, self.members.geometry.ring(position), &bytes));
            // A pad takes no LSN.
            if made.next.lsn > before || active(Mutation::PadIsFrame) {
                return failed;
            }
        }
    }

    /// Takes disks out: a new generation without them, and all their places that may have missed a
    /// write are stale (RES-4). The records are durable after the next commit.
    pub(crate) fn lose(&mut self, mut disks: Vec<u16>) -> Result<(), Halt> {
        disks.retain(|disk| self.members.is_online(*disk));
        disks.dedup();
        if disks.is_empty() {
            return Ok(());
        }
        if active(Mutation::LossUnrecorded) {
            for disk in disks {
                self.members.online[usize::from(disk)] = false;
            }
            return if self.members.metadata().is_empty() { Err(Halt::Voters) } else { Ok(()) };
        }
        let failed = self.members.expel(&mut self.io, &disks).map_err(|_| Halt::Voters)?;
        for disk in disks {
            self.counters.disks_lost += 1;
            self.io.blame(disk);
            self.io.events.note(Event::DiskLost(disk));
            self.mark_lost(disk);
        }
        self.do_without(failed)
    }

    /// A disk is away: marks the places of all open extents on it, and says so in the journal.
    pub(crate) fn mark_lost(&mut self, disk: u16) {
        self.journal.append(Record::DiskLost { disk });
        self.note_lost_disk(disk);
    }

    /// What the record of that means, now and when it is replayed.
    pub(crate) fn note_lost_disk(&mut self, disk: u16) {
        let nth = usize::from(disk);
        for extent in self.extents.list.with_state() {
            let misses = self.extents.get(extent).open
                && self.has_copies(extent)
                && !self.members.gone[nth]
                && !self.is_last(disk, extent);
            if misses && !active(Mutation::LossMarksOne) {
                self.members.stale[nth].insert(extent);
            }
        }
        if let Some(lost) = self.lost.get_mut(nth) {
            *lost = true;
        }
    }

    /// What the record of a disk that is back means: of what only it and others had that are still away, these miss what
    /// is written from now on.
    pub(crate) fn note_disk_back(&mut self, disk: u16) {
        if let Some(lost) = self.lost.get_mut(usize::from(disk)) {
            *lost = false;
        }
        for extent in self.extents.list.with_state() {
            if self.extents.get(extent).open {
                self.mark_missing(extent);
            }
        }
    }

    /// An open extent is stale on disks that are away.
    pub(crate) fn mark_missing(&mut self, extent: u32) {
        if !self.has_copies(extent) || active(Mutation::LossMarksOne) {
            return;
        }
        for nth in 0..self.lost.len() {
            let disk = u16::try_from(nth).unwrap_or(u16::MAX);
            if self.lost[nth] && !self.members.gone[nth] && !self.is_last(disk, extent) {
                self.members.stale[nth].insert(extent);
            }
        }
    }

    /// Whether no other disk that is here has what a disk has of an extent. Nothing can be written there without it then,
    /// so it misses nothing while it is away: marked, it would never be read again, and nothing would be left (RES-2).
    pub(crate) fn is_last(&self, disk: u16, extent: u32) -> bool {
        let config = &self.members.config;
        let stale = |disk: u16| self.members.stale[usize::from(disk)].has(extent);
        if self.extents.place(extent) == UNMAPPED || stale(disk) || active(Mutation::LastCopyMarked)
        {
            return false;
        }
        let here = |disk: u16| self.lost.get(usize::from(disk)) == Some(&false);
        let vdisk = &config.vdisks[self.vdisk(extent)];
        let step = vdisk.interleave.min(config.extent_bytes);
        (0..config.extent_bytes / step).any(|nth| {
            let at = self.copies_at(extent, nth * step);
            let others = || at.iter().filter(|copy| copy.1 != disk);
            at.iter().any(|copy| copy.1 == disk)
                && !others().any(|copy| here(copy.1) && !stale(copy.1))
        })
    }

    /// Whether an extent has several copies: of one that is alone a disk misses nothing while it is away.
    pub(crate) fn has_copies(&self, extent: u32) -> bool {
        self.members.config.vdisks[self.vdisk(extent)].copies > 1
    }

    /// An extent opens: on missing disks that makes its places stale (RES-4).
    pub(crate) fn opened(&mut self, extent: u32) {
        let own = self.extents.get_mut(extent);
        own.open = true;
        if !own.listed {
            own.listed = true;
            self.open_list.push(extent);
        }
        self.mark_missing(extent);
    }

    /// Slots whose freeing is durable can be used again.
    pub(crate) fn release_slots(&mut self) {
        self.settle_vacated();
        let durable = self.journal.durable;
        let early = active(Mutation::SlotReusedEarly);
        let extents = &mut self.extents;
        self.freeing.retain(|(lsn, vdisk, place)| {
            let free = early || *lsn <= durable;
            if free {
                extents.release(*vdisk, *place);
            }
            !free
        });
    }

    /// Whether every mapped extent keeps a copy in sync without that disk, and every log a current one.
    pub(crate) fn can_spare(&self, disk: u16) -> bool {
        let mut extents = self.extents.list.mapped();
        (0..self.logs.len()).all(|vdisk| self.members.log_spares(vdisk, disk))
            && extents.all(|own| self.extent_spares(own.0, disk))
            && self.vacated.iter().all(|left| left.spares(disk, &self.members))
    }

    /// Whether an extent keeps a copy in sync without that disk, if it is mapped.
    pub(crate) fn extent_spares(&self, extent: u32, disk: u16) -> bool {
        if self.extents.place(extent) == UNMAPPED {
            return true;
        }
        let config = &self.members.config;
        let vdisk = &config.vdisks[self.vdisk(extent)];
        let step = vdisk.interleave.min(config.extent_bytes);
        (0..config.extent_bytes / step).all(|nth| {
            let at = self.copies_at(extent, nth * step);
            let in_sync = |other: u16| self.members.in_sync(other, extent);
            !at.iter().any(|(_, other, _)| other == disk)
                || at.iter().any(|(_, other, _)| other != disk && in_sync(other))
        })
    }

    /// Flushes every disk that takes part; those that fail and can be spared are expelled. `false` when
    /// one that holds the last copy of something failed.
    pub(crate) fn flush_data(&mut self) -> Result<bool, Halt> {
        let disks = self.members.online();
        self.flush_some(&disks)
    }

    /// Flushes these; `false` when one that stays failed, now or before in the same step. What it had not kept may be gone, whatever it
    /// says later, and frames of the journal with that (C10).
    pub(crate) fn flush_some(&mut self, disks: &[u16]) -> Result<bool, Halt> {
        let failed = self.io.flush(disks);
        let kept = self.lose_spare(failed)?;
        let kept = self.lose_for_others(kept)?;
        for &disk in &kept {
            let holes = self.journal.durable < self.journal.link.lsn - 1;
            if holes && self.members.is_online(disk) && self.members.is_named(disk) {
                self.drop_metadata(disk)?;
            }
        }
        let forgot = |disk: &u16| self.members.is_online(*disk) && self.io.unflushed.contains(disk);
        Ok(kept.is_empty() && !disks.iter().any(forgot))
    }

    /// Flushes the disks that keep metadata; those that failed.
    fn flush_metadata(&mut self) -> Vec<u16> {
        self.io.flush(&self.members.metadata())
    }

    /// Disks did not take metadata: those that hold the last copy of something keep that, and lose the metadata and
    /// their vote; the others are expelled.
    pub(crate) fn do_without(&mut self, failed: Vec<u16>) -> Result<(), Halt> {
        for disk in self.lose_spare(failed)? {
            if self.io.unflushed.contains(&disk) && self.lose_for_others(vec![disk])?.is_empty() {
                continue;
            }
            if self.members.is_online(disk) && self.members.is_named(disk) {
                self.drop_metadata(disk)?;
            }
        }
        Ok(())
    }

    /// Marks the disks that vote; those that do not take it are done without.
    pub(crate) fn mark_on(&mut self) -> Result<(), Halt> {
        let failed = self.members.mark_on(&mut self.io);
        if failed.is_empty() {
            return Ok(());
        }
        self.do_without(failed)?;
        self.sync()
    }

    /// Expels those of the disks that can be spared, one after the other: of two that hold the same the second is
    /// needed then. Returns those that stay.
    pub(crate) fn lose_spare(&mut self, failed: Vec<u16>) -> Result<Vec<u16>, Halt> {
        let mut kept = Vec::new();
        for disk in failed {
            if !self.members.is_online(disk) || self.can_spare(disk) {
                self.lose(vec![disk])?;
            } else {
                kept.push(disk);
            }
        }
        Ok(kept)
    }

    /// Commits the checksums of all blocks. Their data must be durable.
    pub(crate) fn commit_all(&mut self) {
        self.pending.clear();
        for extent in self.extents.list.with_state() {
            if self.extents.get(extent).pending == 0 || self.is_unflushable(extent) {
                continue;
            }
            for within in 0..self.extents.blocks {
                let block = self.extents.block(extent, within);
                let own = self.extents.get_mut(extent);
                let sum = own.sums.at_mut(index(within));
                // What is not settled stays so; if it is tentative, it stays that as well.
                let stays = sum.flags & (UNSETTLED | TENTATIVE) == UNSETTLED | TENTATIVE;
                if sum.flags & (PENDING | SEALED | TENTATIVE) != 0 && !stays {
                    sum.flags &= UNSETTLED;
                    sum.committed = sum.newest;
                    let crc = sum.newest;
                    self.journal.append(Record::CrcCommit { block, crc });
                    self.trees.touch_sum(block);
                }
            }
            self.extents.get_mut(extent).pending = 0;
        }
    }

    /// Closes extents that rest, `all` of them or those without writes for some rounds. Everything must
    /// be durable.
    pub(crate) fn close_idle(&mut self, all: bool) {
        self.forget_settled();
        let mut unsettled = ExtentSet::default();
        self.unsettled.iter().for_each(|one| unsettled.insert(one.0));
        let mut list = std::mem::take(&mut self.open_list);
        let crowded = self.oldest_to_close(&list);
        list.retain(|&extent| {
            let deferred = self.deferred.has(extent) && !active(Mutation::DeferredClosed);
            let unsettled = unsettled.has(extent) || deferred || self.is_unflushable(extent);
            let own = self.extents.get_mut(extent);
            let rests = own.writers == 0 && own.pending == 0 && !unsettled;
            let early = active(Mutation::CloseEarly) && own.open;
            let old =
                self.rounds >= own.written_in + CLOSE_AFTER && own.written_in < self.close_before;
            let crowded = crowded.is_some_and(|round| own.written_in <= round);
            let close = early || rests && (all || old || crowded);
            if own.open && close {
                // The bit first: a write that comes now opens the extent anew.
                own.open = false;
                own.sums.close();
                self.journal.append(Record::Close { extent });
            }
            own.listed = own.open;
            own.open
        });
        self.open_list = list;
    }

    /// Whether no further extent is to be opened before others are closed. Those that cannot be closed do not count.
    pub(crate) fn opens_too_many(&self) -> bool {
        self.open_list.len() >= self.open_limit
            && self.unsettled.len() + index(self.deferred.len()) < self.open_limit
            && !self.unflushable.contains(&true)
            && !active(Mutation::OpenWithoutLimit)
    }

    /// Of extents that are open and may be closed, where there are too many: up to which round those were written that go.
    fn oldest_to_close(&self, list: &[u32]) -> Option<u64> {
        if list.len() < self.open_limit {
            return None;
        }
        let resting = list.iter().map(|extent| self.extents.get(*extent));
        let resting = resting.filter(|own| own.open && own.writers == 0 && own.pending == 0);
        let mut rounds: Vec<u64> = resting.map(|own| own.written_in).collect();
        let count = CLOSED_AT_ONCE.max(list.len() - self.open_limit + 1).min(rounds.len());
        let last = count.checked_sub(1)?;
        Some(*rounds.select_nth_unstable(last).1)
    }

    /// Writes a checkpoint: afterwards the journal before it is free. No request is under way.
    /// `false` when a disk could not be flushed that holds the last copy of something: then nothing was
    /// committed.
    pub(crate) fn checkpoint(&mut self, close_all: bool) -> Result<bool, Halt> {
        let before = std::mem::replace(&mut self.journal.to_the_last, true);
        let written = self.checkpoint_with_all_room(close_all);
        self.journal.to_the_last = before;
        written
    }

    fn checkpoint_with_all_room(&mut self, close_all: bool) -> Result<bool, Halt> {
        self.seal_logs();
        if !self.flush_data()? {
            return Ok(false);
        }
        self.commit_all();
        self.commit_logs();
        self.close_idle(close_all);
        self.sync()?;
        self.end_logs();
        let link = self.journal.link;
        self.append_snapshot();
        self.sync()?;
        let disks = self.members.metadata();
        let written = self.trees.write(&mut self.io, &self.members.geometry, &disks, &self.extents);
        let mut failed = written.map_err(|_| Halt::MetadataFull)?;
        if active(Mutation::CheckpointEarly) {
            self.write_checkpoint_page(link);
        }
        loop {
            if !failed.is_empty() {
                self.do_without(failed)?;
                self.sync()?;
            }
            if !active(Mutation::CheckpointEarly) {
                failed = self.flush_metadata();
                if !failed.is_empty() {
                    continue;
                }
                failed = self.write_checkpoint_page(link);
                if !failed.is_empty() {
                    continue;
                }
            }
            failed = self.flush_metadata();
            if failed.is_empty() {
                break;
            }
        }
        self.journal.sequence += 1;
        self.journal.tail = link;
        self.trees.release();
        self.trees.have_grown = false;
        self.note_mended();
        self.counters.checkpoints += 1;
        Ok(true)
    }

    /// The state beside the trees, as records: values, so that replaying them from any checkpoint leads
    /// to the same.
    fn append_snapshot(&mut self) {
        self.journal.append(Record::CheckpointBegin);
        for disk in 0..self.members.stale.len() {
            let ordinal = u16::try_from(disk).unwrap_or(u16::MAX);
            // A disk that is away for long may miss millions: the ring has room for their words, and not for each by itself.
            let kept = &self.members.kept[disk];
            for (word, bits) in self.members.stale[disk].words() {
                let plain = bits & !kept.word(word);
                if plain.count_ones() > 1 && !active(Mutation::MarksOneByOne) {
                    self.journal.append(Record::StaleWord { disk: ordinal, word, bits: plain });
                } else {
                    of_word(word, plain).for_each(|extent| {
                        self.journal.append(Record::StaleSet { disk: ordinal, extent });
                    });
                }
                of_word(word, bits & !plain).for_each(|extent| {
                    self.journal.append(Record::PlaceKept { disk: ordinal, extent });
                });
            }
            if !self.members.online[disk] && !active(Mutation::CheckpointForgetsLost) {
                self.journal.append(Record::DiskLost { disk: ordinal });
            }
        }
        for (vdisk, log) in (0..).zip(&self.logs) {
            let records = log.as_ref().map(|log| log.snapshot(vdisk));
            for record in records.into_iter().flatten() {
                if !active(Mutation::CheckpointForgetsTail) {
                    self.journal.append(record);
                }
            }
        }
        for (extent, own) in self.extents.list.states() {
            if own.open && !active(Mutation::CheckpointForgetsOpen) {
                self.journal.append(Record::Open { extent });
            }
            // Only those that are not settled: a checkpoint commits all other blocks first.
            let tentative = |sum: Sum| {
                sum.flags & (TENTATIVE | COMMITTING) == TENTATIVE
                    && !active(Mutation::CheckpointForgetsFirst)
            };
            for (within, sum) in (0..).zip(own.sums.under_way()).filter(|(_, sum)| tentative(**sum))
            {
                let block = self.extents.block(extent, within);
                self.journal.append(Record::CrcFirst { block, crc: sum.newest });
            }
        }
        self.journal.append(Record::CheckpointEnd);
    }

    fn write_checkpoint_page(&mut self, link: crate::format::frame::Link) -> Vec<u16> {
        let sequence = self.journal.sequence + 1;
        let page = Checkpoint { sequence, link, roots: self.trees.roots() };
        let bytes = page.encode(self.members.config.pool);
        let offset = self.members.geometry.journal() + sequence % 2 * BLOCK_BYTES;
        self.io.write(&self.members.metadata(), offset, &bytes)
    }

    /// Disks that hold a part of a mapped extent.
    pub(crate) fn disks_of(&self, extent: u32) -> Vec<u16> {
        let place = self.extents.place(extent);
        if place == UNMAPPED {
            return Vec::new();
        }
        let config = &self.members.config;
        let vdisk = &config.vdisks[self.vdisk(extent)];
        let mut disks = disks_of(vdisk, &self.members.geometry, config.extent_bytes, place);
        if let (Some(moving), Some((to, _))) = (&config.moving, config.moving_to())
            && self.members.kept[usize::from(to)].has(extent)
        {
            disks.push(moving.from.0);
        }
        disks
    }
}
