//! From disks to a space that serves: who is here, what is in force, what the journal adds, what open
//! extents hold.

use std::collections::BTreeMap;

use plumb_io::{FileIndex, FlushQueue};
use plumb_units::convert::{index, to_u32, to_usize};

use crate::core::{Core, Counters, Halt};
use crate::events::Event;
use crate::extents::{Extents, TENTATIVE, UNMAPPED};
use crate::format::frame::{self, Frame, FrameKind, Link, Record};
use crate::format::page::{Checkpoint, PageName};
use crate::format::superblock::Superblock;
use crate::format::{BLOCK_BYTES, BLOCK_LEN, Config, DiskState, Generation, Geometry};
use crate::io::{Io, SlotPlan};
use crate::journal::{Journal, Room};
use crate::logs;
use crate::members::{Half, Members};
use crate::mutation::{Mutation, active};
use crate::tree::Trees;

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
    /// LAY-3.
    #[error("{present} of {voters} voting disks of the pool are here; more than half are needed")]
    #[diagnostic(code(plumb::tier::quorum), help("attach the other disks of the pool"))]
    NoQuorum {
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
    /// A page of map or checksums is unreadable on all copies.
    #[error("no copy of page {number} of tree {tree} can be read")]
    #[diagnostic(code(plumb::tier::tree), help("attach the disks that are missing"))]
    Tree {
        /// 0 the map, 1 the checksums.
        tree: u8,
        /// Which page of its level.
        number: u32,
    },
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

/// How many voters a start needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terms {
    /// More than half.
    More,
    /// Any: whoever starts so changes nothing.
    Any,
}

/// A device as open found it.
pub(crate) struct Found {
    pub(crate) file: FileIndex,
    pub(crate) block: Superblock,
    /// Which of its copies the next update begins with.
    pub(crate) begin: Half,
}

/// Starts the pool on the queue's files. Disks that the configuration calls missing and that are here are
/// returned beside it: they may be attached.
pub(crate) fn start<Q: FlushQueue>(
    queue: Q,
    plan: SlotPlan,
    (seed, terms): (u64, Terms),
) -> Result<(Core<Q>, Vec<u16>), StartError> {
    let mut io = Io::new(queue, plan);
    let (mut members, returning) = assemble(&mut io, plan, (seed, terms))?;
    raise(&mut io, &mut members, terms)?;
    // What a cache shows must not decide what is durable.
    let online = members.online();
    let failed = io.flush(&online);
    if !failed.is_empty() {
        members.expel(&mut io, failed).map_err(|_| Halt::Voters)?;
    }
    let checkpoint = newest_checkpoint(&mut io, &members)?;
    let mut extents = Extents::new(&members.config, &members.geometry);
    let mut trees = Trees::new(&extents, &members.geometry, members.pool_seed);
    let metadata = members.metadata();
    trees.load(&mut io, &members.geometry, &metadata, &checkpoint.roots, &mut extents)?;
    let (frames, link, again) = read_chain(&mut io, &members, checkpoint.link);
    let geometry = members.geometry;
    let journal = Journal::new(
        link,
        checkpoint.link.position,
        checkpoint.sequence,
        &geometry,
        io.control_bytes(),
    );
    let vdisk_of = vdisk_of(&members.config);
    let vdisks = members.config.vdisks.len();
    let logs = logs::new_logs(&members.config, &geometry, &members.data_seeds);
    let mut core = Core {
        io,
        members,
        extents,
        trees,
        journal,
        logs,
        vdisk_of,
        freeing: Vec::new(),
        pending: Vec::new(),
        open_list: Vec::new(),
        unsettled: Vec::new(),
        rounds: 0,
        counters: Counters::default(),
        lost_blocks: vec![0; vdisks],
    };
    let mut lost = vec![false; core.members.online.len()];
    for body in &frames {
        for record in frame::records(body) {
            core.replay(record, &mut lost);
        }
    }
    core.drop_kept();
    core.claim_slots();
    let open: Vec<u32> =
        (0..).zip(&core.extents.list).filter(|own| own.1.open).map(|own| own.0).collect();
    for &extent in &open {
        core.opened(extent);
    }
    core.recover_logs()?;
    core.begin_epoch(&lost)?;
    if again {
        // A start that dies over and over must not fill the ring: what it replayed is put away first,
        // undecided as it is.
        core.checkpoint(false)?;
    }
    if !active(Mutation::NoSettle) {
        core.settle(&open)?;
    }
    core.checkpoint(true)?;
    Ok((core, returning))
}

/// Virtual disk of each extent.
fn vdisk_of(config: &Config) -> Vec<u16> {
    let own = |(nth, vdisk): (u16, &crate::format::VirtualDisk)| vec![nth; index(vdisk.extents)];
    (0..).zip(&config.vdisks).flat_map(own).collect()
}

/// Reads the superblocks of all devices, finds the newest generation and judges who may take part.
fn assemble<Q: FlushQueue>(
    io: &mut Io<Q>,
    plan: SlotPlan,
    (seed, terms): (u64, Terms),
) -> Result<(Members, Vec<u16>), StartError> {
    let mut found = discover(io, plan)?;
    let config = newest_config(io, &mut found, terms)?;
    let mut files = vec![None; config.disks.len()];
    let mut blocks = vec![None; config.disks.len()];
    let mut begin = vec![Half::default(); config.disks.len()];
    let mut returning = Vec::new();
    for one in found {
        let ordinal = usize::from(one.block.ordinal);
        let known = config.disks.get(ordinal).filter(|disk| disk.id == one.block.device);
        let Some(known) = known else { continue };
        if files[ordinal].is_some() {
            return Err(StartError::Duplicate { ordinal: one.block.ordinal });
        }
        if config.is_gone(one.block.ordinal) {
            // It was removed, and stays so.
            continue;
        }
        if known.state != DiskState::Online {
            if is_split(&config, known, &one.block) {
                return Err(StartError::Split { ordinal: one.block.ordinal });
            }
            returning.push(one.block.ordinal);
        } else if !config.descends_from(one.block.generation) {
            return Err(StartError::Split { ordinal: one.block.ordinal });
        }
        files[ordinal] = Some(one.file);
        begin[ordinal] = one.begin;
        blocks[ordinal] = Some(one.block);
    }
    io.name_files(files);
    let present =
        config.voters.iter().filter(|voter| blocks[usize::from(**voter)].is_some()).count();
    let voters = config.voters.len();
    let enough = 2 * present > voters
        || terms == Terms::Any && present > 0
        || active(Mutation::HalfStarts) && 2 * present == voters;
    if !enough {
        return Err(StartError::NoQuorum { present, voters });
    }
    if !config.logs_here(|disk| is_here(&config, &blocks, disk)) {
        return Err(StartError::Metadata { what: "write cache" });
    }
    let members = Members::new(config, blocks, seed);
    let mut members = members.ok_or(StartError::Metadata { what: "superblock" })?;
    members.begin = begin;
    Ok((members, returning))
}

/// The newest configuration that can be read. Disks that name a newer one, which none of them has whole, are left out:
/// if those that are left are more than half of the older one's voters, nobody ever served under the newer one, for
/// whoever goes on without others is at least half (LAY-3).
pub(crate) fn newest_config<Q: FlushQueue>(
    io: &mut Io<Q>,
    found: &mut Vec<Found>,
    terms: Terms,
) -> Result<Config, StartError> {
    let mut behind = false;
    loop {
        let newest = found.iter().map(|one| one.block.generation).max();
        let what = if behind { "configuration" } else { "superblock" };
        let newest = newest.ok_or(StartError::Metadata { what })?;
        if let Some(config) = config_of(io, found, newest) {
            // Whoever needs no majority must not look at what may be old.
            let usable = !behind || terms == Terms::More;
            return usable.then_some(config).ok_or(StartError::Metadata { what });
        }
        found.retain(|one| one.block.generation != newest);
        behind = true;
    }
}

/// The record of a generation, from the disks that name it; else from one that got it and does not name it yet.
fn config_of<Q: FlushQueue>(
    io: &mut Io<Q>,
    found: &[Found],
    generation: Generation,
) -> Option<Config> {
    let names = || found.iter().filter(|one| one.block.generation == generation);
    for one in names() {
        let own = (to_disk(one.file), one.block.area);
        let config = Members::read_config(io, own, &one.block);
        if config.is_some() {
            return config;
        }
        let disk = one.block.ordinal;
        io.events.note(Event::MetadataDamaged { disk, what: "configuration" });
    }
    let block = &names().next()?.block;
    let others = found.iter().flat_map(|one| [0, 1].map(|area| (to_disk(one.file), area)));
    others.into_iter().find_map(|place| Members::read_config(io, place, block))
}

/// Whether a disk that was away was part of a pool meanwhile: it has a generation that this one does not come from,
/// of an epoch in which it was away already. A generation that a crash left on it alone is of an earlier one.
fn is_split(config: &Config, known: &crate::format::DiskConfig, block: &Superblock) -> bool {
    let own = block.generation;
    !config.descends_from(own) && own.epoch > known.known_epoch
}

/// Whether a disk takes part and is here.
fn is_here(config: &Config, blocks: &[Option<Superblock>], disk: u16) -> bool {
    let state = config.disks.get(usize::from(disk)).map(|disk| disk.state);
    state == Some(DiskState::Online) && blocks.get(usize::from(disk)).is_some_and(Option::is_some)
}

/// Copies of a superblock on a disk.
const SUPERBLOCKS: usize = 4;

pub(crate) fn to_disk(file: FileIndex) -> u16 {
    u16::try_from(file.0).unwrap_or(u16::MAX)
}

/// Reads all copies on all devices; of each device the newest version that two copies, or a copy and
/// another device, confirm (LAY-1).
pub(crate) fn discover<Q: FlushQueue>(
    io: &mut Io<Q>,
    plan: SlotPlan,
) -> Result<Vec<Found>, StartError> {
    let mut candidates: Vec<(FileIndex, Vec<Superblock>, Half)> = Vec::new();
    for file in 0..plan.files {
        let disk = to_disk(FileIndex(file));
        let mut bytes = vec![0; BLOCK_LEN];
        let mut copy_at = |offset| {
            let read = io.read(disk, offset, &mut bytes);
            read.then(|| Superblock::decode(&bytes)).flatten()
        };
        // The tail copies lie where a head copy says that the device ends.
        let [head_a, head_b, ..] = Geometry::superblocks(u64::MAX);
        let heads = [head_a, head_b].map(&mut copy_at);
        let size = heads.iter().flatten().map(|copy| copy.device_bytes).max();
        let Some(size) = size else { continue };
        let [_, _, tail_a, tail_b] = Geometry::superblocks(size);
        let [third, fourth] = [tail_a, tail_b].map(copy_at);
        let [first, second] = heads;
        let all = [first, second, third, fourth];
        let begin = Half::to_begin_with(&all);
        candidates.push((FileIndex(file), all.into_iter().flatten().collect(), begin));
    }
    let pools: BTreeMap<u128, ()> =
        candidates.iter().flat_map(|(_, copies, _)| copies).map(|copy| (copy.pool, ())).collect();
    match pools.len() {
        0 => return Err(StartError::NoPool { devices: index(plan.files) }),
        1 => {}
        _ => return Err(StartError::Foreign),
    }
    let mut found = Vec::new();
    for (file, copies, begin) in &candidates {
        let confirmed = |copy: &&Superblock| {
            let here = copies.iter().filter(|other| *other == *copy).count();
            let elsewhere = candidates
                .iter()
                .filter(|(other, ..)| other != file)
                .flat_map(|(_, copies, _)| copies)
                .any(|other| other.generation == copy.generation);
            here >= 2 || elsewhere
        };
        let Some(best) = copies.iter().filter(confirmed).max_by_key(|copy| copy.version) else {
            continue;
        };
        let unknown = best.incompat | best.ro_compat;
        if unknown != 0 {
            return Err(StartError::Feature { ordinal: best.ordinal, word: unknown });
        }
        let count = copies.iter().filter(|other| *other == best).count();
        if count < SUPERBLOCKS {
            let disk = best.ordinal;
            io.events.note(Event::MetadataDamaged { disk, what: "superblock" });
        }
        let mut block = best.clone();
        // Updates outnumber every copy seen, trusted or not.
        block.version = copies.iter().map(|copy| copy.version).max().unwrap_or(block.version);
        block.epoch_started = copies.iter().map(|copy| copy.epoch_started).max().unwrap_or(0);
        found.push(Found { file: *file, block, begin: *begin });
    }
    Ok(found)
}

/// LAY-3: raises the epoch on the voters, then writes a generation of that epoch without those that are
/// not here.
fn raise<Q: FlushQueue>(
    io: &mut Io<Q>,
    members: &mut Members,
    terms: Terms,
) -> Result<(), StartError> {
    let before = members.config.voters.len();
    let here: Vec<u16> =
        members.config.voters.iter().copied().filter(|voter| members.is_online(*voter)).collect();
    let failed = members.raise_epoch(io, &here);
    for &disk in &failed {
        members.online[usize::from(disk)] = false;
    }
    let present = here.len() - failed.len();
    let half = active(Mutation::HalfStarts) && 2 * present == before;
    if 2 * present <= before && !half && terms == Terms::More {
        return Err(StartError::NoQuorum { present, voters: before });
    }
    for (disk, own) in members.config.disks.iter_mut().enumerate() {
        if !members.online[disk] {
            if own.state == DiskState::Online {
                io.events.note(Event::DiskLost(u16::try_from(disk).unwrap_or(u16::MAX)));
                own.state = DiskState::Missing;
                own.known_epoch = members.epoch - 1;
            }
            own.metadata = false;
        }
    }
    let online = members.online.clone();
    members.config.voters.retain(|voter| online[usize::from(*voter)]);
    if members.metadata().is_empty() {
        return Err(StartError::Metadata { what: "journal" });
    }
    if !members.config.expire_log_copies(|disk| online[usize::from(disk)]) {
        return Err(StartError::Metadata { what: "write cache" });
    }
    let id = members.random.id();
    members.config.succeed(members.epoch, id);
    let voters = members.config.voters.clone();
    let failed = members.publish(io, &voters);
    if !failed.is_empty() {
        members.expel(io, failed).map_err(|_| Halt::Voters)?;
    }
    Ok(())
}

/// Finds the newest checkpoint page on any copy and writes it to all: then none can lead to frames that
/// are overwritten later.
fn newest_checkpoint<Q: FlushQueue>(
    io: &mut Io<Q>,
    members: &Members,
) -> Result<Checkpoint, StartError> {
    let pool = members.config.pool;
    let base = members.geometry.journal();
    let disks = members.metadata();
    let mut best: Option<(Checkpoint, Vec<u8>)> = None;
    let mut seen: Vec<(u16, u64)> = Vec::new();
    for &disk in &disks {
        for slot in [0, BLOCK_BYTES] {
            let mut bytes = vec![0; BLOCK_LEN];
            if !io.read(disk, base + slot, &mut bytes) {
                continue;
            }
            let Some(page) = Checkpoint::decode(pool, &bytes) else { continue };
            seen.push((disk, page.sequence));
            if best.as_ref().is_none_or(|(other, _)| other.sequence < page.sequence) {
                best = Some((page, bytes));
            }
        }
    }
    let (page, bytes) = best.ok_or(StartError::Metadata { what: "checkpoint" })?;
    for &disk in disks.iter().filter(|disk| !seen.contains(&(**disk, page.sequence))) {
        io.events.note(Event::MetadataDamaged { disk, what: "checkpoint" });
    }
    // A disk that fails here fails again, where it is expelled.
    io.write(&disks, base + page.sequence % 2 * BLOCK_BYTES, &bytes);
    io.flush(&disks);
    Ok(page)
}

/// Follows the chain of frames from `link` over all copies (JRN-1), writes each frame to the copies that
/// lack it, flushes; the bodies, the end of the chain, and whether an earlier start died before its
/// checkpoint.
fn read_chain<Q: FlushQueue>(
    io: &mut Io<Q>,
    members: &Members,
    start: Link,
) -> (Vec<Vec<u8>>, Link, bool) {
    let ring = members.geometry.ring_bytes();
    let disks = members.metadata();
    let mut link = start;
    let mut bodies = Vec::new();
    let mut again = false;
    let mut repaired = Vec::new();
    while link.position - start.position < ring {
        let offset = members.geometry.ring(link.position);
        let left = ring - link.position % ring;
        let mut best: Option<(Vec<u8>, FrameKind, u64, u32, u32)> = None;
        let mut have = Vec::new();
        for &disk in &disks {
            let Some(bytes) = read_frame(io, disk, offset, left) else { continue };
            let Some(frame) = frame::decode(&bytes, members.pool_seed, &link, ring) else {
                continue;
            };
            have.push((disk, frame.crc));
            let Frame { kind, span, crc, epoch, .. } = frame;
            if best.as_ref().is_none_or(|other| epoch > other.4) {
                best = Some((bytes, kind, span, crc, epoch));
            }
        }
        let Some((bytes, kind, span, crc, epoch)) = best else { break };
        let lack = |disk: &u16| !have.contains(&(*disk, crc));
        let lacking: Vec<u16> = disks.iter().copied().filter(lack).collect();
        if !lacking.is_empty() && !active(Mutation::JournalCopiesDiffer) {
            io.write(&lacking, offset, &bytes);
            for &disk in &lacking {
                io.events.note(Event::MetadataDamaged { disk, what: "journal" });
            }
            repaired.extend(lacking);
        }
        again |= kind == FrameKind::EpochStart;
        let lsn = link.lsn + u64::from(kind != FrameKind::Pad);
        if let Some(frame) = frame::decode(&bytes, members.pool_seed, &link, ring) {
            bodies.push(frame.body.to_vec());
        }
        link = Link { lsn, position: link.position + span, chain: crc, epoch };
    }
    if !repaired.is_empty() {
        // A disk that fails here fails again with the first frame of the new epoch, and is expelled.
        io.flush(&disks);
    }
    (bodies, link, again)
}

fn read_frame<Q: FlushQueue>(io: &mut Io<Q>, disk: u16, offset: u64, left: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; BLOCK_LEN];
    if !io.read(disk, offset, &mut bytes) {
        return None;
    }
    let claimed = frame::claimed(&bytes, left.min(1 << 24))?;
    if claimed > BLOCK_BYTES {
        bytes.resize(to_usize(claimed), 0);
        if !io.read(disk, offset + BLOCK_BYTES, &mut bytes[BLOCK_LEN..]) {
            return None;
        }
    }
    Some(bytes)
}

impl<Q: FlushQueue> Core<Q> {
    /// Applies a record. Records are values: applying one twice, or one that the trees already hold,
    /// changes nothing in the end. What cannot be is left out: a damaged journal does not verify.
    fn replay(&mut self, record: Record, lost: &mut [bool]) {
        let known = |extent: u32| index(extent) < self.extents.list.len();
        match record {
            Record::MapSet { extent, place } => {
                if known(extent) && self.extents.exists(self.vdisk(extent), place) {
                    self.extents.map(extent, place);
                    self.replay_open(extent, lost);
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
                    self.replay_open(extent, lost);
                }
            }
            Record::Close { extent } => {
                if known(extent) {
                    self.extents.get_mut(extent).open = false;
                }
            }
            Record::CrcFirst { block, crc } => self.replay_sum(block, crc, TENTATIVE),
            Record::CrcCommit { block, crc } => self.replay_sum(block, crc, 0),
            Record::Zero { block, count } => {
                let end = block.saturating_add(u64::from(count.min(self.extents.blocks)));
                (block..end).for_each(|block| self.replay_sum(block, 0, 0));
            }
            Record::DiskLost { disk } => {
                if let Some(lost) = lost.get_mut(usize::from(disk)) {
                    *lost = true;
                    for (extent, own) in (0..).zip(&self.extents.list) {
                        if own.open {
                            self.members.stale[usize::from(disk)].insert(extent);
                        }
                    }
                }
            }
            Record::DiskBack { disk } => {
                if let Some(lost) = lost.get_mut(usize::from(disk)) {
                    *lost = false;
                }
            }
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

    fn replay_moved(&mut self, extent: u32, place: u32) {
        if self.extents.get(extent).place == UNMAPPED || active(Mutation::MovedSumsForgotten) {
            self.extents.map(extent, place);
        }
        self.extents.get_mut(extent).place = place;
        self.members.forget(extent);
        self.trees.touch_map(extent);
    }

    fn replay_open(&mut self, extent: u32, lost: &[bool]) {
        self.extents.get_mut(extent).open = true;
        for (stale, lost) in self.members.stale.iter_mut().zip(lost) {
            if *lost {
                stale.insert(extent);
            }
        }
    }

    fn replay_sum(&mut self, block: u64, crc: u32, flags: u8) {
        let Some((extent, within)) = self.extents.split(block) else { return };
        if let Some(sum) = self.extents.get_mut(extent).sums.get_mut(within) {
            sum.newest = crc;
            sum.committed = crc;
            sum.flags = flags;
            self.trees.touch_sum(block);
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
        for extent in 0..to_u32(self.extents.list.len()) {
            let place = self.extents.get(extent).place;
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
    fn begin_epoch(&mut self, lost: &[bool]) -> Result<(), Halt> {
        for (disk, lost) in (0_u16..).zip(lost) {
            match (self.members.is_online(disk), lost) {
                (false, false) => self.mark_lost(disk),
                (true, true) => {
                    self.journal.append(Record::DiskBack { disk });
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
        self.lose(failed)?;
        self.sync()
    }
}
