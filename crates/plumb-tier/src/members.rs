//! The disks of a pool: who takes part, what each says of itself, and how all learn of a new generation.

use plumb_io::FlushQueue;
use plumb_units::convert::{to_u32, to_usize};

use crate::extents::{Copies, ExtentSet};
use crate::format::superblock::{RecordName, Superblock};
use crate::format::{Config, DiskState, Generation, Geometry, Moving, checksum, config};
use crate::io::{Io, Work};
use crate::mutation::{Mutation, active};
use crate::random::Random;

/// The configuration in force and the superblocks that name it.
#[derive(Debug)]
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

/// Two of a disk's four superblock copies: those that an update writes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Half([usize; 2]);

impl Default for Half {
    fn default() -> Self {
        HALVES[0]
    }
}

/// All of them, those first that an update rather spoils: a head copy and a tail copy.
const HALVES: [Half; 6] =
    [Half([0, 2]), Half([1, 3]), Half([0, 1]), Half([2, 3]), Half([0, 3]), Half([1, 2])];

impl Half {
    /// The half that an update may spoil, given the copies that can be read: the one beside the newest two that are
    /// alike. So two copies of one version are whole at every instant, however often starts are cut short, and
    /// whatever became of the others (LAY-2).
    pub(crate) fn to_begin_with(copies: &[Option<Superblock>; 4]) -> Self {
        let mut best = Self::default();
        for half in HALVES {
            // Nothing is less than any version.
            if best.kept(copies) < half.kept(copies) {
                best = half;
            }
        }
        best
    }

    /// The same where no two may be left that are alike: the half without the one that is what it should be. Two that are alike
    /// are kept, though they be older: an update that failed leaves one newer one, which nobody went by (LAY-1).
    pub(crate) fn beside(copies: &[Option<Superblock>; 4], right: &Superblock) -> Self {
        let best = Self::to_begin_with(copies);
        let one = copies.iter().position(|copy| copy.as_ref() == Some(right));
        match one.filter(|_| best.kept(copies).is_none() || active(Mutation::LoneCopyKept)) {
            Some(one) => HALVES.into_iter().find(|half| !half.0.contains(&one)).unwrap_or_default(),
            None => best,
        }
    }

    /// The half that the next update begins with instead, where the two newer copies are not known to be on the medium: a flush
    /// behind them may have failed, and what was read of them may lie in the disk's cache alone. The two older ones were flushed
    /// before these were written. `None` where there are no two such pairs.
    pub(crate) fn in_doubt(self, copies: &[Option<Superblock>; 4]) -> Option<Self> {
        let (newer, older) = (self.kept(copies)?, self.other().kept(copies)?);
        (older < newer && !active(Mutation::UnflushedPairKept)).then(|| self.other())
    }

    /// The version of the two copies beside it, if they are alike.
    fn kept(self, copies: &[Option<Superblock>; 4]) -> Option<u64> {
        let [one, other] = self.other().0.map(|copy| copies[copy].as_ref());
        one.filter(|_| one == other).map(|copy| copy.version)
    }

    /// The half that the next update may spoil after one that began with this half and failed, in its second half or before:
    /// the one that it failed in. The disk may take part all the same, for what only it holds, and nobody reads its copies again.
    fn after_failure(self, in_second: bool) -> Self {
        match in_second && !active(Mutation::SpoiltHalfKept) {
            true => self.other(),
            false => self,
        }
    }

    fn copies(self) -> [usize; 2] {
        self.0
    }

    fn other(self) -> Self {
        let [one, other] = self.0;
        let mut left = (0..4).filter(|copy| *copy != one && *copy != other);
        Self([left.next().unwrap_or(0), left.next().unwrap_or(0)])
    }
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

    /// Notes which disks have left for good since: no place on them can be stale.
    pub(crate) fn note_gone(&mut self) {
        for nth in 0..self.gone.len() {
            if !self.gone[nth] && is_gone(&self.config, nth) {
                self.gone[nth] = true;
                self.stale[nth].clear();
            }
        }
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
                block.version += 1;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::format::tests::sample_superblock;

    /// Versions of the four copies; 0 where a copy is torn.
    type Disk = [u64; 4];

    fn read(disk: Disk) -> [Option<Superblock>; 4] {
        disk.map(|version| (version > 0).then(|| Superblock { version, ..sample_superblock() }))
    }

    /// What a crash may leave of an update to `version`, which the one before left as `disk`.
    fn crashes(disk: Disk, version: u64) -> Vec<Disk> {
        let mut left = Vec::new();
        let begin = Half::to_begin_with(&read(disk));
        let mut before = disk;
        for half in [begin, begin.other()] {
            let [one, other] = half.copies();
            for first in [before[one], 0, version] {
                for second in [before[other], 0, version] {
                    let mut after = before;
                    (after[one], after[other]) = (first, second);
                    left.push(after);
                }
            }
            (before[one], before[other]) = (version, version);
        }
        left
    }

    /// A scan writes what a failed update left anew: whichever copies that one got to, and whichever the scan's own gets to, two
    /// are alike and the next update keeps them. Where no two are, it keeps the one that is right.
    #[test]
    fn what_a_failed_update_left_is_mended_beside_two_copies_that_are_alike() {
        let spoilt = |disk: Disk, begin: Half, version: u64| {
            let [one, other] = begin.copies();
            let firsts = [disk[one], 0, version];
            let each = firsts.map(|first| [disk[other], 0, version].map(|second| (first, second)));
            each.concat().into_iter().map(move |(first, second)| {
                let mut after = disk;
                (after[one], after[other]) = (first, second);
                after
            })
        };
        let failed = Half::to_begin_with(&read([9; 4]));
        let right = Superblock { version: 10, ..sample_superblock() };
        let without_a_pair = || {
            let after = |disk: Disk| spoilt(disk, Half::beside(&read(disk), &right), 11);
            spoilt([9; 4], failed, 10).flat_map(after).find(|left| !has_a_pair(left))
        };
        assert_eq!(without_a_pair(), None);
        crate::mutation::set(Some(Mutation::LoneCopyKept));
        let broken = without_a_pair();
        crate::mutation::set(None);
        assert!(broken.is_some(), "that it is kept before two that are alike is not noticed");
        let lone = [0, 8, 10, 9];
        assert!(!Half::beside(&read(lone), &right).copies().contains(&2));
    }

    /// An update whose flush failed reads back from the disk's cache as two copies of a new version. Whatever of them reached the
    /// medium, and whatever the next update leaves there, two copies are alike: the older ones are kept (LAY-2).
    #[test]
    fn what_could_not_be_flushed_is_not_kept_in_place_of_what_was() {
        let without_a_pair = || {
            let seen: Disk = [9, 8, 9, 8];
            let newest = Half::to_begin_with(&read(seen));
            let begin = newest.in_doubt(&read(seen)).unwrap_or(newest);
            let [one, other] = begin.copies();
            let states = || {
                [8, 0, 9].into_iter().flat_map(|first| [8, 0, 9].map(|last| [first, 8, last, 8]))
            };
            let written = |before: u64| [before, 0, 10];
            states().find_map(|on_disk: Disk| {
                let firsts = written(on_disk[one]).map(|first| {
                    written(on_disk[other]).map(|second| {
                        let mut left = on_disk;
                        (left[one], left[other]) = (first, second);
                        left
                    })
                });
                firsts.concat().into_iter().find(|left| !has_a_pair(left))
            })
        };
        assert_eq!(without_a_pair(), None);
        crate::mutation::set(Some(Mutation::UnflushedPairKept));
        let broken = without_a_pair();
        crate::mutation::set(None);
        assert!(broken.is_some(), "that the newer pair is kept is not noticed");
        // Where all are alike, or only one pair is, nothing is in doubt.
        for sure in [[9, 9, 9, 9], [9, 8, 9, 0], [0, 8, 10, 9]] {
            let copies = read(sure);
            assert_eq!(Half::to_begin_with(&copies).in_doubt(&copies), None, "{sure:?}");
        }
    }

    /// What an update may leave that fails, and the half that the next one begins with: the disk takes part all the same, and
    /// its copies are not read again.
    fn failures((disk, begin): (Disk, Half), version: u64) -> Vec<(Disk, Half)> {
        let mut left = Vec::new();
        let mut before = disk;
        for (half, in_second) in [(begin, false), (begin.other(), true)] {
            let [one, other] = half.copies();
            for first in [before[one], 0, version] {
                for second in [before[other], 0, version] {
                    let mut after = before;
                    (after[one], after[other]) = (first, second);
                    left.push((after, begin.after_failure(in_second)));
                }
            }
            (before[one], before[other]) = (version, version);
        }
        left
    }

    /// LAY-2 of a disk that takes part though its updates fail, and of one that a crash then meets.
    #[test]
    fn updates_that_fail_in_a_row_leave_two_copies_of_one_version() {
        let without_a_pair = || {
            let mut disks = BTreeSet::from([([9; 4], 0)]);
            for version in 10..14 {
                let each =
                    |(disk, begin): ([u64; 4], usize)| failures((disk, HALVES[begin]), version);
                let nth = |half: Half| HALVES.iter().position(|one| *one == half).unwrap_or(0);
                disks = disks
                    .into_iter()
                    .flat_map(each)
                    .map(|(disk, begin)| (disk, nth(begin)))
                    .collect();
                if let Some((disk, _)) = disks.iter().find(|(disk, _)| !has_a_pair(disk)) {
                    return Some(*disk);
                }
            }
            None
        };
        assert_eq!(without_a_pair(), None);
        crate::mutation::set(Some(Mutation::SpoiltHalfKept));
        let broken = without_a_pair();
        crate::mutation::set(None);
        assert!(broken.is_some(), "that the next one begins with the other half is not noticed");
    }

    /// Two copies of one version.
    fn has_a_pair(disk: &Disk) -> bool {
        HALVES.iter().any(|half| {
            let [one, other] = half.copies().map(|copy| disk[copy]);
            one == other && one > 0
        })
    }

    #[test]
    fn updates_that_are_cut_short_in_a_row_leave_two_copies_of_one_version_and_a_head() {
        let mut disks = BTreeSet::from([[1; 4]]);
        for version in 2..6 {
            disks = disks.into_iter().flat_map(|disk| crashes(disk, version)).collect();
            for disk in &disks {
                assert!(has_a_pair(disk), "LAY-2: {disk:?}");
                // Where the size of the disk is not known, tail copies are found by a head.
                assert!(disk[0] > 0 || disk[1] > 0, "{disk:?}");
            }
        }
        assert!(disks.len() > 100, "{}", disks.len());
    }

    /// LAY-1, LAY-2: whichever two copies are left, be it those at one end of the disk, updates that are cut short do
    /// not take the last two that are alike.
    #[test]
    fn updates_keep_the_two_copies_that_are_left() {
        for lost in HALVES {
            let mut disk = [7; 4];
            lost.copies().into_iter().for_each(|copy| disk[copy] = 0);
            let mut disks = BTreeSet::from([disk]);
            for version in 8..11 {
                disks = disks.into_iter().flat_map(|disk| crashes(disk, version)).collect();
                for left in &disks {
                    assert!(has_a_pair(left), "{lost:?} lost, then {left:?}");
                }
            }
        }
    }
}
