//! From disks to a space that serves: who is here, what is in force, what the journal adds, what open
//! extents hold.

use std::ops::RangeInclusive;

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32};

use crate::assembly::{How, assemble, raise};
use crate::chain;
use crate::chain::{Chain, UnreadEnd};
use crate::core::{Core, Counters, Halt};
use crate::deferred::Deferred;
use crate::extents::{ExtentSet, Extents, Sum, TENTATIVE, UNMAPPED, of_word};
use crate::format::checksum::UNVERIFIED;
use crate::format::frame::{self, FrameKind, Record};
use crate::format::page::{Checkpoint, PageName};
use crate::format::{BLOCK_BYTES, BLOCK_LEN};
use crate::io::{Io, SlotPlan};
use crate::journal::{Journal, Room};
use crate::log_ahead::FAR_FROM;
use crate::logs;
use crate::members::Members;
use crate::mutation::{Mutation, active};
use crate::spared::try_without;
use crate::tree::{Sources, Trees};

/// Why a pool could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum StartError {
    /// Nothing was found.
    #[error("none of the {devices} devices holds a pool")]
    #[diagnostic(
        code(plumb::tier::no_pool),
        help("name all disks of the pool, or make one: plumb pool new")
    )]
    NoPool {
        /// How many were looked at.
        devices: usize,
    },
    /// More than one pool was found.
    #[error("the devices belong to different pools")]
    #[diagnostic(code(plumb::tier::foreign), help("name the disks of one pool only"))]
    Foreign,
    /// Two devices say that they are the same disk.
    #[error("two devices say that they are disk {ordinal} of the pool")]
    #[diagnostic(code(plumb::tier::duplicate), help("name the disk itself and not its copy"))]
    Duplicate {
        /// Which disk.
        ordinal: u16,
    },
    /// A feature this version does not know.
    #[error("disk {ordinal} uses features that this version does not know (word {word:#x})")]
    #[diagnostic(code(plumb::tier::feature), help("use a newer version of Plumb"))]
    Feature {
        /// Which disk.
        ordinal: u16,
        /// The unknown bits.
        word: u32,
    },
    /// A feature that this version does not know, and that only who writes has to (LAY-5).
    #[error(
        "disk {ordinal} uses features that this version does not know (word {word:#x}): it reads the pool, and does not write to it"
    )]
    #[diagnostic(
        code(plumb::tier::feature_to_write),
        help("use a newer version of Plumb; with this one loads that only read start")
    )]
    FeatureToWrite {
        /// Which disk.
        ordinal: u16,
        /// The unknown bits.
        word: u32,
    },
    /// LAY-3.
    #[error("{present} of {voters} voting disks of the pool are here; more than half are needed")]
    #[diagnostic(
        code(plumb::tier::quorum),
        help(
            "attach the other disks of the pool; if they are lost for good: \
             plumb space repair POOL --without-quorum POOL"
        )
    )]
    NoQuorum {
        /// Here and usable.
        present: usize,
        /// All.
        voters: usize,
    },
    /// LAY-8: of those that are here, one was put back as it had been before.
    #[error(
        "disk {ordinal} of the pool is an older copy of itself; without it {present} of {voters} voting disks are here, \
         and more than half are needed"
    )]
    #[diagnostic(
        code(plumb::tier::outdated),
        help(
            "attach the disk itself and not an older copy of it; if what was written since is lost for good: \
             plumb space repair POOL --without-quorum POOL"
        )
    )]
    Outdated {
        /// Which disk.
        ordinal: u16,
        /// Here and usable.
        present: usize,
        /// All.
        voters: usize,
    },
    /// Two parts of the pool went on without each other.
    #[error("disk {ordinal} holds a configuration that the others do not descend from")]
    #[diagnostic(code(plumb::tier::split), help("start without that disk, or without the others"))]
    Split {
        /// Which disk.
        ordinal: u16,
    },
    /// No configuration record or journal copy can be read.
    #[error("no current copy of the {what} can be read")]
    #[diagnostic(code(plumb::tier::metadata), help("attach the disks that are missing"))]
    Metadata {
        /// What is gone.
        what: &'static str,
    },
    /// No copy of the journal can be read where it seems to end.
    #[error(
        "no current copy of the journal can be read at its end: whether that was durable cannot be told"
    )]
    #[diagnostic(
        code(plumb::tier::unread_end),
        help(
            "attach the disks that are missing; if all are here, and the power went while the pool was written to: \
             plumb space repair POOL --unread-end POOL"
        )
    )]
    UnreadEnd,
    /// JRN-1: a frame that was durable is damaged on all copies.
    #[error(
        "a part of the journal that was durable is damaged on all copies that are here: what was promised since would be lost"
    )]
    #[diagnostic(
        code(plumb::tier::journal_damaged),
        help(
            "attach the disks that are missing; if all are here, to go on without what was promised since: \
             plumb space repair POOL --unread-end POOL"
        )
    )]
    RottenJournal,
    /// A page of map or checksums is unreadable on all copies.
    #[error("no copy of page {number} of tree {tree} can be read")]
    #[diagnostic(code(plumb::tier::tree), help("attach the disks that are missing"))]
    Tree {
        /// 0 the map, 1 the checksums.
        tree: u8,
        /// Which page of its level.
        number: u32,
    },
    /// A disk is away that has journal and map, and by what the others have there is no room to start in: it may have a newer
    /// checkpoint.
    #[error(
        "the journal, as the disks that are here have it, has no room for a start, and a disk that is away may have it otherwise"
    )]
    #[diagnostic(code(plumb::tier::no_room_to_start), help("attach the disks that are missing"))]
    NoRoom,
    /// It went wrong on the way.
    #[error("the pool stopped while it was being recovered")]
    #[diagnostic(code(plumb::tier::halt), help("attach the disks that were lost and start again"))]
    Halted {
        /// Why.
        source: Halt,
    },
}

impl From<Halt> for StartError {
    fn from(source: Halt) -> Self {
        Self::Halted { source }
    }
}

impl From<PageName> for StartError {
    fn from(name: PageName) -> Self {
        Self::Tree { tree: name.tree, number: name.number }
    }
}

/// Starts the pool on the queue's files. Disks that the configuration calls missing and that are here are
/// returned beside it: they may be attached.
pub(crate) fn start<Q: FlushQueue>(
    queue: Q,
    plan: SlotPlan,
    how: How,
) -> Result<(Core<Q>, Vec<u16>), StartError> {
    let mut io = Io::new(queue, plan);
    let (mut members, returning) = assemble(&mut io, plan, (how.seed, how.terms.split().0))?;
    let leaves_out = members.leaves_metadata_out();
    if leaves_out {
        (io, members) = try_without(io, members, how)?;
    }
    let Begun { mut core, open } = begin(io, members, how, leaves_out)?;
    if !active(Mutation::NoSettle) {
        core.settle_within(&open, how.settle_within)?;
    }
    if !core.checkpoint(true)? && !active(Mutation::ConfirmedInMemory) {
        // A last copy cannot be flushed: there is no checkpoint, and what was confirmed is written over from here on.
        core.sync()?;
    }
    core.leave_unflushed()?;
    core.tell_unverified();
    core.journal.to_the_last = false;
    Ok((core, returning))
}

/// A start as far as open extents are to be settled.
pub(crate) struct Begun<Q> {
    pub(crate) core: Core<Q>,
    /// Extents that were open.
    open: Vec<u32>,
}

/// Leaves out who is not here, reads what is there, and begins a new epoch. `leaves_out`: whether a disk that has journal and
/// map is not here.
pub(crate) fn begin<Q: FlushQueue>(
    mut io: Io<Q>,
    mut members: Members,
    how: How,
    leaves_out: bool,
) -> Result<Begun<Q>, StartError> {
    let (terms, unread_end) = how.terms.split();
    raise(&mut io, &mut members, terms)?;
    // What a cache shows must not decide what is durable.
    let online = members.online();
    let failed = io.flush(&online);
    if !failed.is_empty() {
        members.expel_all(&mut io, failed).map_err(|_| Halt::Voters)?;
    }
    let newest = newest_checkpoint(&mut io, &mut members)?;
    let (mut core, again) = load(io, members, &newest, What::All(unread_end, how.sums_most))?;
    core.log_far_from = how.log_far_from;
    let open: Vec<u32> =
        core.extents.list.states().filter(|own| own.1.open).map(|own| own.0).collect();
    for &extent in &open {
        core.opened(extent);
    }
    // Not whoever has a disk flush does without one that fails it.
    let failed = core.io.unflushed.clone();
    core.do_without(failed)?;
    core.recover_logs(unread_end)?;
    core.begin_epoch()?;
    // A start that dies over and over must not fill the ring: what it replayed is put away first, undecided as it is. So it is
    // where little is left of the ring and a disk is left out: whether there is room was tried so.
    let is_crowded = core.journal.is_crowded() && !active(Mutation::CrowdedSettled);
    if again || leaves_out && is_crowded {
        if !active(Mutation::UndecidedClosed) {
            core.deferred.hold(&open);
        }
        core.checkpoint(false)?;
    }
    Ok(Begun { core, open })
}

/// What is read of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// All that a start needs, with checksums of so many blocks in memory at most.
    All(UnreadEnd, u64),
    /// Where extents are, and which copies are up to date: no checksums.
    Places,
}

/// What map, checksums and journal say, as they are on the disks: nothing is decided, and nothing written. Whether the start
/// before did not come to its end.
pub(crate) fn load<Q: FlushQueue>(
    mut io: Io<Q>,
    members: Members,
    newest: &NewestPage,
    what: What,
) -> Result<(Core<Q>, bool), StartError> {
    let checkpoint = &newest.page;
    let mut extents = Extents::new(&members.config, &members.geometry);
    extents.places_only = what == What::Places;
    if let What::All(_, most) = what {
        extents.most = most;
    }
    let roots = &checkpoint.roots[..if extents.places_only { 1 } else { 2 }];
    let mut trees = Trees::new(&extents, &members.geometry, members.pool_seed);
    let sources = Sources::of(&io, &members);
    let unverified = trees.load(&mut io, &members.geometry, &sources, roots, &mut extents)?;
    let unread_end = match what {
        What::All(unread_end, _) => unread_end,
        What::Places => UnreadEnd::Unknown,
    };
    let chain = chain::read(&mut io, &members, (checkpoint.link, unread_end));
    is_whole(&chain)?;
    if !newest.leads_to(&chain) {
        return Err(StartError::Metadata { what: "checkpoint" });
    }
    let geometry = members.geometry;
    let journal = Journal::new(
        chain.link,
        checkpoint.link,
        checkpoint.sequence,
        &geometry,
        io.control_bytes(),
    );
    let vdisks_from = members.config.vdisks.iter().map(|own| own.first_extent).collect();
    let vdisks = members.config.vdisks.len();
    let logs = logs::new_logs(&members.config, &geometry, &members.data_seeds);
    let lost = vec![false; members.online.len()];
    let mut core = Core {
        log_far_from: FAR_FROM,
        io,
        members,
        extents,
        trees,
        journal,
        logs,
        vdisks_from,
        freeing: Vec::new(),
        vacated: Vec::new(),
        kept_until: 0,
        pending: Vec::new(),
        open_list: Vec::new(),
        open_limit: open_limit(),
        unsettled: Vec::new(),
        deferred: Deferred::default(),
        unverified,
        rounds: 0,
        close_before: 0,
        counters: Counters::default(),
        lost_blocks: vec![0; vdisks],
        lost_extents: ExtentSet::default(),
        unread: ExtentSet::default(),
        lost,
        unflushable: vec![false; vdisks],
        flush_broken: false,
        to_mend: 0,
    };
    if core.extents.is_short {
        let mut named = ExtentSet::default();
        for record in chain.bodies().flat_map(frame::records) {
            core.extents_of(&record).for_each(|extent| named.insert(extent));
        }
        core.fetch_ahead(&named);
    }
    for body in chain.bodies() {
        for record in frame::records(body) {
            core.fetch_for(&record)?;
            core.replay(record);
        }
    }
    #[cfg(test)]
    crate::marks::tests::tell_of_all(&core.members, chain.bodies().flat_map(frame::records));
    core.drop_kept();
    core.claim_slots();
    Ok((core, chain.again))
}

/// Whether a start can go by that journal.
fn is_whole(chain: &Chain) -> Result<(), StartError> {
    if chain.is_cut {
        return Err(StartError::UnreadEnd);
    }
    if !chain.has_state() {
        return Err(StartError::Metadata { what: "journal" });
    }
    if chain.is_rotten {
        return Err(StartError::RottenJournal);
    }
    Ok(())
}

/// How many extents may be open.
fn open_limit() -> usize {
    let few = active(Mutation::UndecidedClosed) || active(Mutation::FewAreOpen);
    if few { 2 } else { crate::core::OPEN_LIMIT }
}

/// The newest checkpoint page that was read.
pub(crate) struct NewestPage {
    pub(crate) page: Checkpoint,
    bytes: Vec<u8>,
    /// Which disk has which: disk and sequence.
    seen: Vec<(u16, u64)>,
    /// A copy gave both its places, and what lies there is a page or was never written: there is no newer one.
    is_sure: bool,
}

impl NewestPage {
    /// Whether a start can go by it and the frames that were found behind it. Where a newer one may have been, those must be all
    /// there are since: of an older page they are written over, and a disk that got a copy never had them.
    pub(crate) fn leads_to(&self, chain: &Chain) -> bool {
        self.is_sure || chain.is_end_known && chain.bodies().next().is_some()
    }
}

/// Finds the newest checkpoint page on any copy.
pub(crate) fn read_checkpoint<Q: FlushQueue>(
    io: &mut Io<Q>,
    members: &Members,
) -> Result<NewestPage, StartError> {
    let pool = members.config.pool;
    let base = members.geometry.journal();
    let mut best: Option<(Checkpoint, Vec<u8>)> = None;
    let mut seen: Vec<(u16, u64)> = Vec::new();
    let mut is_sure = false;
    for disk in members.metadata() {
        let mut read = 0;
        for slot in [0, BLOCK_BYTES] {
            let mut bytes = vec![0; BLOCK_LEN];
            if !io.read(disk, base + slot, &mut bytes) {
                continue;
            }
            let page = Checkpoint::decode(pool, &bytes);
            read += u32::from(page.is_some() || bytes.iter().all(|byte| *byte == 0));
            let Some(page) = page else { continue };
            seen.push((disk, page.sequence));
            if best.as_ref().is_none_or(|(other, _)| other.sequence < page.sequence) {
                best = Some((page, bytes));
            }
        }
        is_sure |= read == 2;
    }
    let (page, bytes) = best.ok_or(StartError::Metadata { what: "checkpoint" })?;
    Ok(NewestPage { page, bytes, seen, is_sure })
}

/// The same, and writes it to the copies that lack it: then none can lead to frames that are overwritten later. Where it is, it stays
/// as it is: what is being written when the power goes may be lost, and it may be all there is.
fn newest_checkpoint<Q: FlushQueue>(
    io: &mut Io<Q>,
    members: &mut Members,
) -> Result<NewestPage, StartError> {
    let base = members.geometry.journal();
    let newest = read_checkpoint(io, members)?;
    let NewestPage { page, bytes, seen, .. } = &newest;
    let mut lacking = members.metadata();
    lacking.retain(|disk| !seen.contains(&(*disk, page.sequence)));
    for &disk in &lacking {
        io.events.damaged(disk, "checkpoint");
    }
    // A disk that cannot be written fails again, where it is expelled; one that cannot be flushed need not.
    io.write(&lacking, base + page.sequence % 2 * BLOCK_BYTES, bytes);
    let failed = io.flush(&lacking);
    members.expel_all(io, failed).map_err(|_| Halt::Voters)?;
    Ok(newest)
}

impl<Q: FlushQueue> Core<Q> {
    /// Applies a record. Records are values: applying one twice, or one that the trees already hold,
    /// changes nothing in the end. What cannot be is left out: a damaged journal does not verify.
    fn replay(&mut self, record: Record) {
        let known = |extent: u32| index(extent) < self.extents.list.len();
        match record {
            Record::MapSet { extent, place } => {
                if known(extent) && self.extents.exists(self.vdisk(extent), place) {
                    self.extents.map(extent, place);
                    self.begins_up_to_date(extent);
                    self.replay_open(extent);
                    self.trees.touch_map(extent);
                    self.trees.touch_sums(extent, self.extents.blocks);
                }
            }
            Record::Moved { extent, place } => {
                if known(extent) && self.extents.exists(self.vdisk(extent), place) {
                    self.replay_moved(extent, place);
                }
            }
            Record::MapFree { extent } => {
                if known(extent) {
                    self.extents.unmap(extent);
                    self.members.forget(extent);
                    self.trees.touch_map(extent);
                    self.trees.touch_sums(extent, self.extents.blocks);
                }
            }
            Record::Open { extent } => {
                if known(extent) {
                    self.replay_open(extent);
                }
            }
            Record::Close { extent } => {
                if known(extent) {
                    let own = self.extents.get_mut(extent);
                    own.open = false;
                    own.sums.close();
                }
            }
            Record::CrcFirst { block, crc } => self.replay_sum(block, crc, TENTATIVE),
            Record::CrcCommit { block, crc } => self.replay_sum(block, crc, 0),
            Record::Zero { block, count } => {
                let end = block.saturating_add(u64::from(count.min(self.extents.blocks)));
                (block..end).for_each(|block| self.replay_sum(block, 0, 0));
            }
            Record::DiskLost { disk } if usize::from(disk) < self.lost.len() => {
                self.note_lost_disk(disk);
            }
            Record::DiskBack { disk } => self.note_disk_back(disk),
            Record::DiskLost { .. } => {}
            Record::AllStale { disk } => {
                if let Some(stale) = self.members.stale.get_mut(usize::from(disk)) {
                    (0..to_u32(self.extents.list.len())).for_each(|extent| stale.insert(extent));
                }
            }
            Record::StaleSet { disk, extent } => {
                if let Some(stale) =
                    self.members.stale.get_mut(usize::from(disk)).filter(|_| known(extent))
                {
                    stale.insert(extent);
                }
            }
            Record::StaleWord { disk, word, bits } => {
                let marked: Vec<u32> =
                    of_word(word, bits).filter(|extent| known(*extent)).collect();
                if let Some(stale) = self.members.stale.get_mut(usize::from(disk)) {
                    marked.into_iter().for_each(|extent| stale.insert(extent));
                }
            }
            Record::StaleClear { disk, extent } => self.members.settle_place(disk, extent),
            Record::PlaceKept { disk, extent } => {
                if known(extent) {
                    self.members.keep_place(disk, extent);
                }
            }
            Record::LogTail { .. } | Record::LogHead { .. } | Record::LogFlushed { .. } => {
                self.replay_log(record);
            }
            Record::CheckpointBegin | Record::CheckpointEnd => {}
        }
    }

    /// Checksums that a record goes on from are in memory.
    fn fetch_for(&mut self, record: &Record) -> Result<(), StartError> {
        for extent in self.extents_of(record) {
            self.fetch_sums(extent)?;
        }
        Ok(())
    }

    /// Extents whose checksums a record goes on from.
    fn extents_of(&self, record: &Record) -> RangeInclusive<u32> {
        const NONE: RangeInclusive<u32> = RangeInclusive::new(1, 0);
        let blocks = match *record {
            Record::Open { extent } => {
                let first = self.extents.block(extent, 0);
                first..first + 1
            }
            Record::CrcFirst { block, .. } | Record::CrcCommit { block, .. } => block..block + 1,
            Record::Zero { block, count } => block..block.saturating_add(count.into()),
            _ => return NONE,
        };
        let last = blocks.end.saturating_sub(1).max(blocks.start);
        let ends = [blocks.start, last].map(|block| self.extents.split(block));
        let [Some((first, _)), Some((last, _))] = ends else { return NONE };
        first..=last.min(first + 1)
    }

    fn replay_moved(&mut self, extent: u32, place: u32) {
        if self.extents.place(extent) == UNMAPPED || active(Mutation::MovedSumsForgotten) {
            self.extents.map(extent, place);
        }
        self.extents.list.set_place(extent, place);
        self.members.forget(extent);
        self.trees.touch_map(extent);
    }

    /// What lay nowhere is out of date nowhere, whatever was said of all that a disk has (RES-4).
    pub(crate) fn begins_up_to_date(&mut self, extent: u32) {
        if !active(Mutation::UnmappedStayStale) {
            self.members.forget(extent);
        }
    }

    fn replay_open(&mut self, extent: u32) {
        self.extents.get_mut(extent).open = true;
        if !active(Mutation::ReplayedOpenUnmarked) {
            self.mark_missing(extent);
        }
    }

    fn replay_sum(&mut self, block: u64, crc: u32, flags: u8) {
        let Some((extent, within)) = self.extents.split(block) else { return };
        let sums = &mut self.extents.get_mut(extent).sums;
        if let Some(before) = sums.get(within) {
            // Until its first write is known to be durable, what lay there before is all that is known (CRC-2).
            let doubted = flags == TENTATIVE && before.committed == UNVERIFIED;
            if flags == 0 {
                sums.set(within, crc);
            } else {
                let committed = if doubted { UNVERIFIED } else { crc };
                *sums.at_mut(within) = Sum { newest: crc, committed, flags };
            }
            self.trees.touch_sum(block);
            if doubted || crc == UNVERIFIED {
                self.unverified.insert(extent);
            }
        }
    }

    /// Only what is on its way now can still lie where it was: other marks are of moves that ended, or that no
    /// generation came to name.
    fn drop_kept(&mut self) {
        let to = self.members.config.moving_to().map(|to| usize::from(to.0));
        for (disk, kept) in self.members.kept.iter_mut().enumerate() {
            if Some(disk) != to {
                kept.clear();
            }
        }
        for (stale, gone) in self.members.stale.iter_mut().zip(&self.members.gone) {
            if *gone {
                stale.clear();
            }
        }
    }

    /// Takes the slots of all mapped extents. A place that two extents claim cannot come from this
    /// engine: the second one is left unmapped rather than shared.
    fn claim_slots(&mut self) {
        for extent in self.extents.list.numbers() {
            let place = self.extents.place(extent);
            if place == UNMAPPED {
                continue;
            }
            let vdisk = self.vdisk(extent);
            if !self.extents.exists(vdisk, place) || !self.extents.claim(vdisk, place) {
                self.extents.unmap(extent);
            }
        }
    }

    /// Makes the start of the new epoch durable, and with it the loss of disks that the configuration
    /// knows of and the journal does not.
    fn begin_epoch(&mut self) -> Result<(), Halt> {
        for disk in 0..u16::try_from(self.lost.len()).unwrap_or(u16::MAX) {
            match (self.members.is_online(disk), self.lost[usize::from(disk)]) {
                (false, false) => self.mark_lost(disk),
                (true, true) => {
                    if !active(Mutation::DiskBackUnrecorded) {
                        self.journal.append(Record::DiskBack { disk });
                    }
                    self.note_disk_back(disk);
                }
                _ => {}
            }
        }
        self.begin_log_epoch();
        if self.journal.room(true) == Room::Full {
            return Err(Halt::MetadataFull);
        }
        let kind =
            if active(Mutation::EpochKept) { FrameKind::Records } else { FrameKind::EpochStart };
        let failed = self.write_frame(kind);
        self.do_without(failed)?;
        self.sync()
    }
}
