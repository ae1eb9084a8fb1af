//! Who is here: superblocks, the newest generation that can be read, who may take part, and the generation of a new
//! epoch without those that are not (LAY-1, LAY-3).

use std::collections::BTreeMap;

use plumb_io::{FileIndex, FlushQueue};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64};

use crate::chain::UnreadEnd;
use crate::core::Halt;
use crate::events::Event;
use crate::format::superblock::Superblock;
use crate::format::{BLOCK_LEN, Config, DiskConfig, DiskState, Generation, Geometry};
use crate::half::Half;
use crate::io::{Io, SlotPlan};
use crate::log_ahead::FAR_FROM;
use crate::members::{Members, is_half, is_majority, lists_in_force, too_few};
use crate::mutation::{Mutation, active};
use crate::recover::StartError;
use crate::sums_cache::SUMS_BYTES;

/// How many voters a start needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terms {
    /// More than half.
    More,
    /// Any: whoever starts so changes nothing.
    Any,
    /// Any, and all goes on without the others: an operator says that they are lost for good.
    Word,
    /// More than half; and an operator says that what no copy of a journal or log gives at its end was being written when the
    /// power went.
    MoreToUnreadEnd,
}

impl Terms {
    /// How many voters are needed, and what is made of an end that cannot be read.
    pub(crate) fn split(self) -> (Self, UnreadEnd) {
        match self {
            Self::MoreToUnreadEnd => (Self::More, UnreadEnd::Taken),
            other => (other, UnreadEnd::Unknown),
        }
    }
}

/// How a pool is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// Of the identities that are drawn.
    pub(crate) seed: u64,
    pub(crate) terms: Terms,
    /// Open extents are settled before the pool serves for so long; the others are while it serves.
    pub(crate) settle_within: Nanos,
    /// Blocks whose checksums are to be in memory, at most.
    pub(crate) sums_most: u64,
    /// Behind so many bytes a write-back cache's log is a long one.
    pub(crate) log_far_from: u64,
}

impl How {
    pub(crate) fn new(seed: u64, terms: Terms) -> Self {
        // Whoever changes nothing has nobody who settles later.
        let settle_within = if terms == Terms::Any { Nanos::NEVER } else { SETTLE_WITHIN };
        let (sums_most, log_far_from) = (SUMS_BYTES / 4, FAR_FROM);
        Self { seed, terms, settle_within, sums_most, log_far_from }
    }
}

/// Of the 5 s that a start may take (section 25).
const SETTLE_WITHIN: Nanos = Nanos(500_000_000);

/// A device as open found it.
pub(crate) struct Found {
    pub(crate) file: FileIndex,
    pub(crate) block: Superblock,
    /// The generation that it says without the others: that of the newest two of its copies that are alike.
    pub(crate) alone: Option<Generation>,
    /// Which of its copies the next update begins with.
    pub(crate) begin: Half,
    /// Or which, if its newest copies cannot be flushed.
    pub(crate) doubted: Option<Half>,
}

/// A device with copies of a superblock, whosever they are.
struct Candidate {
    file: FileIndex,
    copies: Vec<Superblock>,
    begin: Half,
    doubted: Option<Half>,
}

/// Reads the superblocks of all devices, finds the newest generation and judges who may take part.
pub(crate) fn assemble<Q: FlushQueue>(
    io: &mut Io<Q>,
    plan: SlotPlan,
    (seed, terms): (u64, Terms),
) -> Result<(Members, Vec<u16>), StartError> {
    let mut found = discover(io, plan, terms)?;
    for one in found.iter_mut().filter(|_| terms != Terms::Any) {
        // An engine that was killed may have seen a flush fail.
        if let Some(older) = one.doubted
            && !io.flush(&[to_disk(one.file)]).is_empty()
        {
            one.begin = older;
        }
    }
    let config = newest_config(io, &mut found, terms)?;
    let mut files = vec![None; config.disks.len()];
    let mut blocks = vec![None; config.disks.len()];
    let mut alone = vec![None; config.disks.len()];
    let mut begin = vec![Half::default(); config.disks.len()];
    let (mut returning, mut left) = (Vec::new(), Vec::new());
    let served = served(&config, &found);
    let unserved = unserved(io, &config, &found, served);
    let mut outdated = None;
    for one in found {
        let ordinal = usize::from(one.block.ordinal);
        let known = config.disks.get(ordinal).filter(|disk| disk.id == one.block.device);
        let Some(known) = known else { continue };
        if known.device_bytes != one.block.device_bytes {
            // One of the two is wrong: what lies where is not to be told.
            return Err(StartError::Metadata { what: "superblock" });
        }
        if files[ordinal].is_some() {
            return Err(StartError::Duplicate { ordinal: one.block.ordinal });
        }
        if config.is_gone(one.block.ordinal) {
            // It was removed, and stays so; but no part of an older list goes on without what it knows.
            if !active(Mutation::LeaverUnseen) {
                alone[ordinal] = one.alone;
                left.push(one.block.ordinal);
            }
            continue;
        }
        if known.state != DiskState::Online {
            if is_split(&config, known, &one.block) && !unserved.contains(&one.block.ordinal) {
                return Err(StartError::Split { ordinal: one.block.ordinal });
            }
            returning.push(one.block.ordinal);
        } else if is_fork(&config, known, &one.block) {
            // Before it is asked how far it came: what a part of its own served is nobody's to write over unasked.
            return Err(StartError::Split { ordinal: one.block.ordinal });
        } else if is_outdated(&config, &one.block, served) {
            // What it holds is read by nobody before it is brought up to date (LAY-8).
            io.events.note(Event::DiskOutdated(one.block.ordinal));
            outdated = Some(one.block.ordinal);
            returning.push(one.block.ordinal);
            files[ordinal] = Some(one.file);
            continue;
        } else if is_apart(&config, known, &one.block) {
            return Err(StartError::Split { ordinal: one.block.ordinal });
        }
        files[ordinal] = Some(one.file);
        begin[ordinal] = one.begin;
        alone[ordinal] = one.alone;
        blocks[ordinal] = Some(one.block);
    }
    io.name_files(files);
    let here: Vec<u16> = config
        .voters
        .iter()
        .copied()
        .filter(|voter| blocks[usize::from(*voter)].is_some())
        .collect();
    let (present, voters) = (here.len(), config.voters.len());
    let enough = 2 * present > voters
        || terms != Terms::More && present > 0
        || active(Mutation::HalfStarts) && 2 * present == voters;
    if !enough {
        return Err(match outdated {
            Some(ordinal) => StartError::Outdated { ordinal, present, voters },
            None => StartError::NoQuorum { present, voters },
        });
    }
    if terms == Terms::More
        && let Some((present, voters)) = short_list(&config, (&blocks, &left), &alone, &here)
        && !active(Mutation::HalfStarts)
    {
        return Err(StartError::NoQuorum { present, voters });
    }
    let members = Members::new(config, (blocks, &alone), seed);
    let mut members = members.ok_or(StartError::Metadata { what: "superblock" })?;
    members.begin = begin;
    members.served = served;
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
        io.events.damaged(disk, "configuration");
    }
    let block = &names().next()?.block;
    let others = found.iter().flat_map(|one| [0, 1].map(|area| (to_disk(one.file), area)));
    others.into_iter().find_map(|place| Members::read_config(io, place, block))
}

/// Whether a disk that was away was part of a pool meanwhile: it has a generation that this one does not come from,
/// of an epoch in which it was away already. A generation that a crash left on it alone is of an earlier one.
pub(crate) fn is_split(config: &Config, known: &DiskConfig, block: &Superblock) -> bool {
    let own = block.generation;
    !config.descends_from(own) && own.epoch > known.known_epoch
}

/// Disks that were away and have a generation beside those that led to this one, of which it can be told that nobody served under
/// it. A crash left it there: for longer than the epoch in which they were lost, where starts without the others came between.
pub(crate) fn unserved<Q: FlushQueue>(
    io: &mut Io<Q>,
    config: &Config,
    found: &[Found],
    served: u32,
) -> Vec<u16> {
    // In the line of this generation, and no older copy.
    let takes_part = |ordinal: u16, id: u128| {
        let is_it = |one: &&Found| one.block.ordinal == ordinal && one.block.device == id;
        let of_ours = |one: &Found| {
            config.descends_from(one.block.generation) && !is_outdated(config, &one.block, served)
        };
        config.voters.contains(&ordinal) && found.iter().find(is_it).is_some_and(of_ours)
    };
    let mut none = Vec::new();
    for one in found {
        let known = config.disks.get(usize::from(one.block.ordinal));
        let Some(known) = known.filter(|disk| disk.id == one.block.device) else { continue };
        if known.state == DiskState::Online || !is_split(config, known, &one.block) {
            continue;
        }
        let record = Members::read_config(io, (to_disk(one.file), one.block.area), &one.block);
        if record.is_some_and(|record| is_unserved((config, &record), &one.block, takes_part)) {
            none.push(one.block.ordinal);
        }
    }
    none
}

/// Whether nobody served under the generation that a disk has, given its record: it comes right behind one that led to this one,
/// and another one of its voters is one of those that take part here, and never had it. Whoever serves under a generation
/// has all its voters have it first (LAY-3), and who had it goes on from it, or waits.
pub(crate) fn is_unserved(
    (config, record): (&Config, &Config),
    block: &Superblock,
    takes_part: impl Fn(u16, u128) -> bool,
) -> bool {
    let before = record.ancestors.first();
    let branches =
        before.is_some_and(|id| config.generation.id == *id || config.ancestors.contains(id));
    let others = record.voters.iter().filter(|voter| **voter != block.ordinal);
    let mut known =
        others.filter_map(|voter| Some((*voter, record.disks.get(usize::from(*voter))?.id)));
    record.generation == block.generation
        && branches
        && known.any(|(voter, id)| takes_part(voter, id))
        && !active(Mutation::UnservedIsSplit)
}

/// Whether a disk that takes part has a generation beside those that led to this one: it is not older than the oldest
/// that this one names, and is none of them. What a crash left on it alone before it was away last stays on it until it
/// has the generation that took it back, and the others may have that before it has.
pub(crate) fn is_fork(config: &Config, known: &DiskConfig, block: &Superblock) -> bool {
    let oldest = config.generation.number.saturating_sub(to_u64(config.ancestors.len()));
    let apart = match active(Mutation::LeftoverIsFork) {
        true => !config.descends_from(block.generation),
        false => is_split(config, known, block),
    };
    block.generation.number >= oldest && apart
}

/// Whether a disk that takes part has a generation that this one does not come from. A disk that does not vote is told of
/// none: its own may be from before the oldest that this one names.
pub(crate) fn is_apart(config: &Config, known: &DiskConfig, block: &Superblock) -> bool {
    let votes = config.voters.contains(&block.ordinal);
    is_fork(config, known, block) || votes && is_split(config, known, block)
}

/// The last epoch that was served, as far as the disks that are here can prove. Before one of them says so, every voter
/// had reached that epoch, durably; before anything is done in it, they all say so.
pub(crate) fn served(config: &Config, found: &[Found]) -> u32 {
    let known = found.iter().filter(|one| config.descends_from(one.block.generation));
    known.map(|one| one.block.epoch_served).max().unwrap_or(0)
}

/// Whether a disk that votes has not reached what it was part of: it is an older copy of itself, put back while the pool
/// was closed (LAY-8). A start that was cut short leaves no disk so.
pub(crate) fn is_outdated(config: &Config, block: &Superblock, served: u32) -> bool {
    config.voters.contains(&block.ordinal)
        && block.reached() < served
        && !active(Mutation::OldCopyTaken)
}

/// A list in force by which another part goes on, or could: how many of it are here, and how long it is. Another may have begun as
/// more than half of it, gone down to half, and be seen by whoever sees more than half; and what does not go on with these must
/// not be more than half. One that `left` with the newest generation, and is here, is in no such part.
fn short_list(
    config: &Config,
    (blocks, left): (&[Option<Superblock>], &[u16]),
    alone: &[Option<Generation>],
    voters: &[u16],
) -> Option<(usize, usize)> {
    let lists = lists_in_force(config, alone);
    let here = blocks.iter().flatten().map(|block| block.ordinal);
    let seen: Vec<u16> = here.chain(left.iter().copied()).collect();
    too_few(&lists, &seen, is_majority).or_else(|| too_few(&lists, voters, is_half))
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
    terms: Terms,
) -> Result<Vec<Found>, StartError> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for file in 0..plan.files {
        let disk = to_disk(FileIndex(file));
        let ends = io.bytes_of(disk);
        let mut bytes = vec![0; BLOCK_LEN];
        let mut copy_at = |offset| {
            let read = io.read(disk, offset, &mut bytes);
            read.then(|| Superblock::decode(&bytes)).flatten()
        };
        // The tail copies lie where a head copy says that the device ends, or where it does (LAY-1).
        let [head_a, head_b, ..] = Geometry::superblocks(u64::MAX);
        let heads = [head_a, head_b].map(&mut copy_at);
        let size = heads.iter().flatten().map(|copy| copy.device_bytes).max();
        let Some(size) = size.or(ends) else { continue };
        let [_, _, tail_a, tail_b] = Geometry::superblocks(size);
        let here = |copy: Option<Superblock>| copy.filter(|copy| copy.device_bytes == size);
        let [third, fourth] = [tail_a, tail_b].map(copy_at).map(here);
        let [first, second] = heads;
        let all = [first, second, third, fourth];
        let begin = Half::to_begin_with(&all);
        let doubted = begin.in_doubt(&all);
        let copies = all.into_iter().flatten().collect();
        candidates.push(Candidate { file: FileIndex(file), copies, begin, doubted });
    }
    let pools: BTreeMap<u128, ()> =
        candidates.iter().flat_map(|one| &one.copies).map(|copy| (copy.pool, ())).collect();
    match pools.len() {
        0 => return Err(StartError::NoPool { devices: index(plan.files) }),
        1 => {}
        _ => return Err(StartError::Foreign),
    }
    let mut found = Vec::new();
    for Candidate { file, copies, begin, doubted } in &candidates {
        let confirmed = |copy: &&Superblock| {
            let here = copies.iter().filter(|other| *other == *copy).count();
            let elsewhere = candidates
                .iter()
                .filter(|other| other.file != *file)
                .flat_map(|other| &other.copies)
                .any(|other| other.generation == copy.generation);
            here >= 2 || elsewhere
        };
        let Some(best) = copies.iter().filter(confirmed).max_by_key(|copy| copy.version) else {
            continue;
        };
        // LAY-5: who does not know some features cannot tell what is there, who does not know others must not write.
        let ordinal = best.ordinal;
        if best.incompat != 0 {
            return Err(StartError::Feature { ordinal, word: best.incompat });
        }
        if best.ro_compat != 0 && terms != Terms::Any {
            return Err(StartError::FeatureToWrite { ordinal, word: best.ro_compat });
        }
        let alike = |copy: &Superblock| copies.iter().filter(|other| *other == copy).count();
        let twice = copies.iter().filter(|copy| alike(copy) >= 2);
        let alone = twice.max_by_key(|copy| copy.version).map(|copy| copy.generation);
        let alone = if active(Mutation::LoneCopyHasIt) { Some(best.generation) } else { alone };
        let count = alike(best);
        for _ in count..SUPERBLOCKS {
            io.events.damaged(best.ordinal, "superblock");
        }
        let mut block = best.clone();
        // Updates outnumber every copy seen, trusted or not.
        block.version = copies.iter().map(|copy| copy.version).max().unwrap_or(block.version);
        block.epoch_started = copies.iter().map(|copy| copy.epoch_started).max().unwrap_or(0);
        let own = copies.iter().filter(|copy| copy.device == best.device);
        block.epoch_served = own.map(|copy| copy.epoch_served).max().unwrap_or(0);
        found.push(Found { file: *file, block, alone, begin: *begin, doubted: *doubted });
    }
    Ok(found)
}

/// LAY-3: raises the epoch on the voters, then writes a generation of that epoch without those that are
/// not here.
pub(crate) fn raise<Q: FlushQueue>(
    io: &mut Io<Q>,
    members: &mut Members,
    terms: Terms,
) -> Result<(), StartError> {
    let before = members.config.voters.len();
    let here: Vec<u16> =
        members.config.voters.iter().copied().filter(|voter| members.is_online(*voter)).collect();
    let mut failed = members.mend_records(io, &here);
    let rest: Vec<u16> = here.iter().copied().filter(|disk| !failed.contains(disk)).collect();
    failed.extend(members.raise_epoch(io, &rest));
    for &disk in &failed {
        members.online[usize::from(disk)] = false;
    }
    let present = here.len() - failed.len();
    let half = active(Mutation::HalfStarts) && 2 * present == before;
    if 2 * present <= before && !half && terms == Terms::More {
        return Err(StartError::NoQuorum { present, voters: before });
    }
    if terms == Terms::Word && 2 * present <= before {
        io.events.note(Event::WithoutQuorum { present, voters: before });
    }
    for (disk, own) in members.config.disks.iter_mut().enumerate() {
        if !members.online[disk] {
            if own.state == DiskState::Online {
                io.events.note(Event::DiskLost(u16::try_from(disk).unwrap_or(u16::MAX)));
                own.state = DiskState::Missing;
                own.known_epoch = members.epoch - 1;
                let voted = members.config.voters.iter().any(|voter| usize::from(*voter) == disk);
                if voted {
                    own.served_epoch = members.served;
                }
            }
            if terms == Terms::Word {
                // Whoever is away may have gone on, in any epoch: what these do not know is a part of its own.
                own.known_epoch = 0;
            }
            own.metadata = false;
        }
    }
    let online = members.online.clone();
    members.config.voters.retain(|voter| online[usize::from(*voter)]);
    if terms == Terms::More
        && let Some((present, voters)) = too_few(&members.lists, &members.config.voters, is_half)
        && !half
    {
        return Err(StartError::NoQuorum { present, voters });
    }
    if terms != Terms::More || half {
        // Whoever confirms says that no other part goes on.
        members.agree();
    }
    if members.metadata().is_empty() {
        return Err(StartError::Metadata { what: "journal" });
    }
    // A log of which no current copy is here costs its own virtual disk, and no other.
    members.config.expire_log_copies(|disk| online[usize::from(disk)]);
    members.succeed();
    let voters = members.config.voters.clone();
    let failed = members.publish(io, &voters);
    if !failed.is_empty() {
        members.expel_all(io, failed).map_err(|_| Halt::Voters)?;
    }
    let failed = members.mark_served(io);
    if !failed.is_empty() {
        members.expel_all(io, failed).map_err(|_| Halt::Voters)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{sample_config, sample_superblock};

    /// What a crash left on a disk alone is no part of its own, before it was away and when it takes part again.
    #[test]
    fn a_generation_from_before_a_disk_was_away_is_no_fork() {
        let mut config = sample_config();
        config.generation = Generation { epoch: 4, number: 5, id: 1 };
        config.ancestors = vec![2, 3, 4, 5];
        let block = |epoch, number| Superblock {
            ordinal: 0,
            generation: Generation { epoch, number, id: 99 },
            ..sample_superblock()
        };
        for (known_epoch, epoch, number, fork, apart) in [
            (2, 2, 3, false, false),
            (2, 3, 3, true, true),
            // It was never away, or those that went on without it know nothing of it.
            (0, 2, 3, true, true),
            // From before the oldest that is named: only a voter is told of each.
            (0, 2, 0, false, true),
            (2, 2, 0, false, false),
        ] {
            let known = DiskConfig { known_epoch, ..config.disks[0].clone() };
            let block = block(epoch, number);
            let found = (is_fork(&config, &known, &block), is_apart(&config, &known, &block));
            assert_eq!(found, (fork, apart), "{known_epoch} {epoch} {number}");
        }
        let known = DiskConfig { known_epoch: 0, ..config.disks[0].clone() };
        let heir =
            Superblock { generation: Generation { epoch: 2, number: 3, id: 4 }, ..block(0, 0) };
        assert!(!is_apart(&config, &known, &heir));
    }
}
