//! The disks of a pool: who takes part, what each says of itself, and how all learn of a new generation.

use plumb_io::FlushQueue;
use plumb_units::convert::{to_u32, to_usize};

use crate::extents::{Copies, ExtentSet};
use crate::format::superblock::{RecordName, Superblock};
use crate::format::{Config, DiskState, Generation, Geometry, Moving, checksum, config};
use crate::half::Half;
use crate::io::{Io, Work};
use crate::mutation::{Mutation, active};
use crate::random::Random;

/// The configuration in force and the superblocks that name it.
#[derive(Debug, Clone)]
pub(crate) struct Members {
    pub(crate) config: Config,
    pub(crate) geometry: Geometry,
    pub(crate) pool_seed: u32,
    /// Seeds of the data checksums, by virtual disk.
    pub(crate) data_seeds: Vec<u32>,
    /// By ordinal; `None` for a disk that is not here.
    pub(crate) superblocks: Vec<Option<Superblock>>,
    /// Which copies of it the next update begins with, by ordinal.
    pub(crate) begin: Vec<Half>,
    /// Takes part in I/O now.
    pub(crate) online: Vec<bool>,
    /// The places of these extents on a disk are stale, by ordinal.
    pub(crate) stale: Vec<ExtentSet>,
    /// Of these, what should be there still lies where it lay before their row named that disk.
    pub(crate) kept: Vec<ExtentSet>,
    /// Of the stale ones, those that no copy here can bring up to date: not tried again until a disk returns.
    pub(crate) stuck: Vec<ExtentSet>,
    /// Left for good: nothing of it matters, by ordinal.
    pub(crate) gone: Vec<bool>,
    /// Of this start.
    pub(crate) epoch: u32,
    /// The last epoch that is known to have been served: all voters of then had reached it.
    pub(crate) served: u32,
    /// What all voters have reached: the epoch of this start, and one more with each mark since.
    pub(crate) reached: u32,
    /// Lists of voters that somebody may go by: the last one that all on it have, and those that were written since.
    pub(crate) lists: Vec<Vec<u16>>,
    /// Disks that lost their vote in this life of the pool, although they take part.
    pub(crate) declined: Vec<u16>,
    pub(crate) random: Random,
}

/// Too few disks have the new generation: nothing may be acknowledged any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspended;

impl Members {
    pub(crate) fn new(
        config: Config,
        (superblocks, alone): (Vec<Option<Superblock>>, &[Option<Generation>]),
        seed: u64,
    ) -> Option<Self> {
        let geometry = superblocks.iter().flatten().next()?.geometry;
        let pool = config.pool;
        let online = config
            .disks
            .iter()
            .zip(&superblocks)
            .map(|(disk, here)| disk.state == DiskState::Online && here.is_some())
            .collect();
        let gone = (0..config.disks.len()).map(|nth| is_gone(&config, nth)).collect();
        let lists = lists_in_force(&config, alone);
        Some(Self {
            geometry,
            gone,
            pool_seed: checksum::seed(pool),
            data_seeds: config.vdisks.iter().map(|v| checksum::data_seed(pool, v.id)).collect(),
            stale: vec![ExtentSet::default(); config.disks.len()],
            kept: vec![ExtentSet::default(); config.disks.len()],
            stuck: vec![ExtentSet::default(); config.disks.len()],
            begin: vec![Half::default(); superblocks.len()],
            superblocks,
            online,
            epoch: config.generation.epoch,
            served: 0,
            reached: 0,
            lists,
            declined: Vec::new(),
            random: Random::new(seed),
            config,
        })
    }

    #[inline]
    pub(crate) fn is_online(&self, disk: u16) -> bool {
        self.online[usize::from(disk)]
    }

    /// Whether something new may come onto a disk.
    pub(crate) fn takes_more(&self, disk: u16) -> bool {
        self.is_online(disk) && !self.config.disks[usize::from(disk)].leaving
    }

    /// Whether a disk votes, or keeps metadata or a current copy of a log.
    pub(crate) fn is_named(&self, disk: u16) -> bool {
        let caches = self.config.vdisks.iter().filter_map(|vdisk| vdisk.cache.as_ref());
        let mut copies = caches.flat_map(|cache| &cache.copies);
        self.config.disks[usize::from(disk)].metadata
            || self.config.voters.contains(&disk)
            || copies.any(|copy| copy.disk == disk && copy.current)
    }

    /// Ordinals of all disks that take part.
    pub(crate) fn online(&self) -> Vec<u16> {
        self.each_online().collect()
    }

    /// The same, one after the other.
    pub(crate) fn each_online(&self) -> impl Iterator<Item = u16> + '_ {
        let all = 0..u16::try_from(self.online.len()).unwrap_or(u16::MAX);
        all.filter(|disk| self.is_online(*disk))
    }

    /// Whether a copy on that disk may be read.
    #[inline]
    pub(crate) fn in_sync(&self, disk: u16, extent: u32) -> bool {
        let disk = usize::from(disk);
        self.online[disk] && (!self.stale[disk].has(extent) || active(Mutation::ReadStale))
    }

    /// Notes which disks have left for good since, and returns them: no place on them can be stale.
    pub(crate) fn note_gone(&mut self) -> Vec<u16> {
        let mut left = Vec::new();
        for (disk, nth) in (0_u16..).zip(0..self.gone.len()) {
            if !self.gone[nth] && is_gone(&self.config, nth) {
                self.gone[nth] = true;
                self.stale[nth].clear();
                left.push(disk);
            }
        }
        left
    }

    /// An extent lies nowhere any more: no place of it can be stale.
    pub(crate) fn forget(&mut self, extent: u32) {
        for set in self.stale.iter_mut().chain(&mut self.kept).chain(&mut self.stuck) {
            set.remove(extent);
        }
    }

    /// What no copy here could bring up to date may be tried again.
    pub(crate) fn try_stuck(&mut self) {
        self.stuck.iter_mut().for_each(ExtentSet::clear);
    }

    /// So many extents whose places on a disk are to be brought up to date next.
    pub(crate) fn due(&self, disk: u16, count: usize) -> Vec<u32> {
        let nth = usize::from(disk);
        self.stale[nth].iter().filter(|extent| !self.stuck[nth].has(*extent)).take(count).collect()
    }

    /// The place of an extent on a disk is up to date, and is where the extent lies.
    pub(crate) fn settle_place(&mut self, disk: u16, extent: u32) {
        for sets in [&mut self.stale, &mut self.kept, &mut self.stuck] {
            if let Some(set) = sets.get_mut(usize::from(disk)) {
                set.remove(extent);
            }
        }
    }

    /// The place of an extent on a disk is not up to date; what it should hold lies where it lay before.
    pub(crate) fn keep_place(&mut self, disk: u16, extent: u32) {
        for sets in [&mut self.stale, &mut self.kept] {
            if let Some(set) = sets.get_mut(usize::from(disk)) {
                set.insert(extent);
            }
        }
    }

    /// Where an extent's copies are, given where its row says that they are: what is on its way to another disk
    /// and has not arrived is where it was.
    #[inline]
    pub(crate) fn as_it_lies(&self, extent: u32, copies: Copies) -> Copies {
        match &self.config.moving {
            None => copies,
            Some(moving) => self.before_it_moved(moving, extent, copies),
        }
    }

    fn before_it_moved(&self, moving: &Moving, extent: u32, mut copies: Copies) -> Copies {
        let Some((to, slab)) = self.config.moving_to() else { return copies };
        if !self.kept[usize::from(to)].has(extent) {
            return copies;
        }
        let (new, old) = (self.geometry.slab(slab), self.geometry.slab(moving.from.1));
        for place in copies.at.iter_mut().take(usize::from(copies.count)) {
            if place.0 == to {
                *place = (moving.from.0, place.1 - new + old);
            }
        }
        copies
    }

    /// Writes a superblock of each disk as it is in memory: one half of its copies, flush, the other, flush
    /// (LAY-2); the disks that failed.
    pub(crate) fn write_superblocks<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        disks: &[u16],
    ) -> Vec<u16> {
        let mut failed = Vec::new();
        let blocks: Vec<(u16, Vec<u8>, [u64; 4])> = disks
            .iter()
            .filter_map(|&disk| {
                let block = self.superblocks[usize::from(disk)].as_mut()?;
                block.version = self.begin[usize::from(disk)].next_version(block.version);
                Some((disk, block.encode(), Geometry::superblocks(block.device_bytes)))
            })
            .collect();
        for then in [false, true] {
            let write = |(disk, bytes, places): &(u16, Vec<u8>, [u64; 4])| {
                let begin = self.begin[usize::from(*disk)];
                let half = if then { begin.other() } else { begin };
                half.copies().map(|copy| (*disk, places[copy], bytes.clone()))
            };
            let writes: Vec<_> = blocks.iter().flat_map(write).collect();
            let work = writes
                .iter()
                .filter(|write| !failed.contains(&write.0))
                .map(|(disk, offset, bytes)| Work::Write { disk: *disk, offset: *offset, bytes })
                .collect();
            let before = failed.len();
            let bad = io.wait_for(work);
            failed.extend(bad);
            let rest: Vec<u16> = disks.iter().copied().filter(|d| !failed.contains(d)).collect();
            failed.extend(io.flush(&rest));
            for disk in &failed[before..] {
                let begin = &mut self.begin[usize::from(*disk)];
                *begin = begin.after_failure(then);
            }
        }
        for (disk, ..) in blocks.iter().filter(|block| !failed.contains(&block.0)) {
            // All four are alike.
            self.begin[usize::from(*disk)] = Half::default();
        }
        failed
    }

    /// Makes a higher epoch durable on those disks; the ones that failed.
    pub(crate) fn raise_epoch<Q: FlushQueue>(&mut self, io: &mut Io<Q>, disks: &[u16]) -> Vec<u16> {
        if active(Mutation::EpochKept) {
            self.epoch = self.epoch.max(1);
            return Vec::new();
        }
        let started =
            self.superblocks.iter().flatten().map(|b| b.epoch_started.max(b.generation.epoch));
        // Damage may say any number.
        let newest = started.max().unwrap_or(0).max(self.config.generation.epoch);
        self.epoch = newest.saturating_add(1);
        for &disk in disks {
            if let Some(block) = &mut self.superblocks[usize::from(disk)] {
                block.epoch_started = self.epoch;
            }
        }
        self.write_superblocks(io, disks)
    }

    /// Says on all voters that this epoch is served: each of them has reached it, durably. The disks that failed.
    pub(crate) fn mark_served<Q: FlushQueue>(&mut self, io: &mut Io<Q>) -> Vec<u16> {
        let voters = self.config.voters.clone();
        for &voter in &voters {
            if let Some(block) = &mut self.superblocks[usize::from(voter)] {
                block.epoch_served = self.epoch;
            }
        }
        self.served = self.epoch;
        self.reached = self.epoch;
        self.write_superblocks(io, &voters)
    }

    /// Says on all voters what each of them has reached, durably, and that it has reached one more: an older copy of one
    /// has not reached what was said after it was made, once that is said again (LAY-8). The disks that failed.
    pub(crate) fn mark_on<Q: FlushQueue>(&mut self, io: &mut Io<Q>) -> Vec<u16> {
        let voters = self.config.voters.clone();
        self.served = self.reached;
        self.reached += 1;
        for &voter in &voters {
            if let Some(block) = &mut self.superblocks[usize::from(voter)] {
                (block.epoch_started, block.epoch_served) = (self.reached, self.served);
            }
        }
        self.write_superblocks(io, &voters)
    }

    /// Writes the record in force again where a disk that names it has lost it; the disks that failed. Where a crash left
    /// disks that name different generations, the next one is written over the only other copy of it.
    pub(crate) fn mend_records<Q: FlushQueue>(&self, io: &mut Io<Q>, disks: &[u16]) -> Vec<u16> {
        let record = self.config.encode();
        let name = RecordName { len: to_u32(record.len()), digest: checksum::digest(&record) };
        let pages = config::pages(self.config.pool, &record);
        let mut failed = Vec::new();
        for &disk in disks {
            let Some(block) = &self.superblocks[usize::from(disk)] else { continue };
            let names_it = block.generation == self.config.generation
                && block.records[usize::from(block.area)] == name;
            if !names_it || Self::read_config(io, (disk, block.area), block).is_some() {
                continue;
            }
            let offset = self.geometry.config(block.area);
            let mut bad = io.wait_for(vec![Work::Write { disk, offset, bytes: &pages }]);
            if bad.is_empty() {
                bad = io.flush(&[disk]);
            }
            failed.extend(bad);
        }
        failed
    }

    /// Whether those that vote are at least half of every list that somebody may go by: a larger lost part of one could
    /// start elsewhere as more than half of it (LAY-3).
    pub(crate) fn are_enough(&self) -> bool {
        !self.config.voters.is_empty()
            && too_few(&self.lists, &self.config.voters, is_half).is_none()
    }

    /// The configuration as it is in memory is to be a new generation, which names the other lists that somebody may go by
    /// until all its voters have it.
    pub(crate) fn succeed(&mut self) {
        if self.lists.last() != Some(&self.config.voters) {
            self.lists.push(self.config.voters.clone());
        }
        let others = self.lists.split_last().map_or(&[][..], |(_, others)| others);
        self.config.lists = others.to_vec();
        let id = self.random.id();
        self.config.succeed(self.epoch, id);
    }

    /// All voters have the list that they are on.
    pub(crate) fn agree(&mut self) {
        self.lists = vec![self.config.voters.clone()];
    }

    /// Writes the configuration as it is in memory, as a new generation, to `disks` (LAY-3): the record to
    /// the area not in use, flush, then the superblocks. The disks that failed.
    pub(crate) fn publish<Q: FlushQueue>(&mut self, io: &mut Io<Q>, disks: &[u16]) -> Vec<u16> {
        let record = self.config.encode();
        let name = RecordName { len: to_u32(record.len()), digest: checksum::digest(&record) };
        let pages = config::pages(self.config.pool, &record);
        assert!(
            config::pages_len(name.len) <= self.geometry.config_bytes,
            "the configuration outgrew its area"
        );
        let area = |block: &Superblock| block.area ^ 1;
        let work = disks
            .iter()
            .filter_map(|&disk| {
                let block = self.superblocks[usize::from(disk)].as_ref()?;
                let offset = self.geometry.config(area(block));
                Some(Work::Write { disk, offset, bytes: &pages })
            })
            .collect();
        let mut failed = io.wait_for(work);
        let rest: Vec<u16> = disks.iter().copied().filter(|disk| !failed.contains(disk)).collect();
        failed.extend(io.flush(&rest));
        let rest: Vec<u16> = disks.iter().copied().filter(|disk| !failed.contains(disk)).collect();
        for &disk in &rest {
            if let Some(block) = &mut self.superblocks[usize::from(disk)] {
                block.area = area(block);
                block.records[usize::from(block.area)] = name;
                block.generation = self.config.generation;
                block.epoch_started = block.epoch_started.max(self.epoch);
            }
        }
        failed.extend(self.write_superblocks(io, &rest));
        let told = |voter: &u16| disks.contains(voter) && !failed.contains(voter);
        if self.config.voters.iter().all(told) {
            self.agree();
        } else if !active(Mutation::ToldListsKept) {
            // Where half of an older list have this generation, no part that is more than half of that list lacks it.
            let own = self.config.voters.clone();
            let few =
                |list: &Vec<u16>| 2 * list.iter().filter(|one| told(one)).count() < list.len();
            self.lists.retain(|list| *list == own || few(list));
        }
        failed
    }

    /// Takes disks out of the configuration: a new generation, for the survivors (LAY-3). Those of them that failed to
    /// take it.
    pub(crate) fn expel<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        lost: &[u16],
    ) -> Result<Vec<u16>, Suspended> {
        for &disk in lost {
            self.online[usize::from(disk)] = false;
            let voted = self.config.voters.contains(&disk);
            let own = &mut self.config.disks[usize::from(disk)];
            own.state = DiskState::Missing;
            own.metadata = false;
            own.known_epoch = self.epoch;
            if voted {
                own.served_epoch = self.served;
            }
        }
        self.config.voters.retain(|voter| !lost.contains(voter));
        let online = self.online.clone();
        self.config.expire_log_copies(|disk| online[usize::from(disk)]);
        if !self.are_enough() || self.metadata().is_empty() {
            return Err(Suspended);
        }
        self.succeed();
        let voters = self.config.voters.clone();
        Ok(self.publish(io, &voters))
    }

    /// The same at a start: disks that fail meanwhile go with them.
    pub(crate) fn expel_all<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        mut lost: Vec<u16>,
    ) -> Result<(), Suspended> {
        while !lost.is_empty() {
            lost = self.expel(io, &lost)?;
        }
        Ok(())
    }

    /// Reads the configuration record that a superblock names from an area of a disk: its own, or another disk's that
    /// may have it, for all get it before one names it.
    pub(crate) fn read_config<Q: FlushQueue>(
        io: &mut Io<Q>,
        (disk, area): (u16, u8),
        block: &Superblock,
    ) -> Option<Config> {
        let name = block.records[usize::from(block.area)];
        let len = config::pages_len(name.len);
        if name.len == 0 || len > block.geometry.config_bytes {
            return None;
        }
        let mut pages = vec![0; to_usize(len)];
        if !io.read(disk, block.geometry.config(area), &mut pages) {
            return None;
        }
        let record = config::record(block.pool, name.len, &pages)?;
        if checksum::digest(&record) != name.digest {
            return None;
        }
        let fits = |config: &Config| config.pool == block.pool && config.fits(&block.geometry);
        Config::decode(&record).filter(fits)
    }
}

/// Lists of voters that a part may go by that knows nothing of the newest generation, and that one's own. Once half of an
/// older list have it, no part that is more than half of that list lacks it. Whoever has it in one copy, which others have to
/// confirm, lacks it where those are not (LAY-1): `alone` is the generation that each disk says by itself.
pub(crate) fn lists_in_force(config: &Config, alone: &[Option<Generation>]) -> Vec<Vec<u16>> {
    let has_it = |disk: &&u16| alone.get(usize::from(**disk)) == Some(&Some(config.generation));
    let is_in_force = |list: &&Vec<u16>| {
        2 * list.iter().filter(has_it).count() < list.len() && !active(Mutation::ListsForgotten)
    };
    config.lists.iter().filter(is_in_force).chain([&config.voters]).cloned().collect()
}

/// A list of which these voters are too few: how many of it they are, and how long it is.
pub(crate) fn too_few(
    lists: &[Vec<u16>],
    voters: &[u16],
    enough: impl Fn(usize, usize) -> bool,
) -> Option<(usize, usize)> {
    let left = |list: &Vec<u16>| list.iter().filter(|one| voters.contains(one)).count();
    let mut all = lists.iter().map(|list| (left(list), list.len()));
    all.find(|(left, all)| !enough(*left, *all))
}

/// What those that go on are of each list.
pub(crate) fn is_half(left: usize, all: usize) -> bool {
    2 * left >= all
}

/// What a start sees of each list.
pub(crate) fn is_majority(left: usize, all: usize) -> bool {
    2 * left > all
}

fn is_gone(config: &Config, nth: usize) -> bool {
    u16::try_from(nth).is_ok_and(|disk| config.is_gone(disk))
}
