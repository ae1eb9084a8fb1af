//! What a scan reads besides data: every copy of the pages of map and checksums, of superblocks, and of the configuration
//! (RES-8).
//!
//! Nothing that is damaged is written over where it lies, but for superblocks: pages are written anew by the next checkpoint,
//! the configuration as a new generation.

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u64};

use crate::core::{Core, Halt};
use crate::events::Event;
use crate::format::page::{Checkpoint, PageName, Pointer};
use crate::format::superblock::Superblock;
use crate::format::{BLOCK_BYTES, BLOCK_LEN, Geometry};
use crate::half::Half;
use crate::io::{Io, Work};
use crate::members::Members;
use crate::tree::{TREES, Trees};

/// Pages that are read at a time: requests wait meanwhile.
const PAGES: usize = 64;

impl Trees {
    /// Which of some pages a disk has whole; `None` when it does not answer. What does not verify is read once more: a bad
    /// moment of a disk is no rot.
    fn verify<Q: FlushQueue>(
        &self,
        io: &mut Io<Q>,
        (geometry, disk): (&Geometry, u16),
        pages: &[(PageName, Pointer)],
    ) -> Option<Vec<bool>> {
        let at = |nth: usize| geometry.tree() + u64::from(pages[nth].1.page) * BLOCK_BYTES;
        let is_whole = |nth: usize, bytes: &[u8]| self.verifies(pages[nth], bytes);
        let mut order: Vec<usize> = (0..pages.len())
            .filter(|nth| (1..geometry.tree_pages()).contains(&pages[*nth].1.page))
            .collect();
        order.sort_unstable_by_key(|nth| pages[*nth].1.page);
        let follows = |one: &usize, next: &usize| pages[*one].1.page + 1 == pages[*next].1.page;
        let runs: Vec<&[usize]> = order.chunk_by(follows).collect();
        let mut contents: Vec<Vec<u8>> =
            runs.iter().map(|run| vec![0; run.len() * BLOCK_LEN]).collect();
        let reads = runs.iter().zip(&mut contents);
        let work = reads.map(|(run, into)| Work::Read { disk, offset: at(run[0]), into }).collect();
        let read = io.wait_for(work).is_empty();
        let mut whole = vec![false; pages.len()];
        for (run, bytes) in runs.iter().zip(&contents).filter(|_| read) {
            for (nth, bytes) in run.iter().zip(bytes.chunks(BLOCK_LEN)) {
                whole[*nth] = is_whole(*nth, bytes);
            }
        }
        for nth in order {
            if io.was_silent(disk) {
                return None;
            }
            if !whole[nth] {
                let mut bytes = [0; BLOCK_LEN];
                whole[nth] = io.read(disk, at(nth), &mut bytes) && is_whole(nth, &bytes);
            }
        }
        (!io.was_silent(disk)).then_some(whole)
    }
}

impl<Q: FlushQueue> Core<Q> {
    /// Reads every copy of some pages of map and checksums, from a place in their order on, and says where to go on; `None`
    /// when there are no more. A page of which a copy is damaged is written anew by the next checkpoint: what it holds is in
    /// memory, also where no disk has it whole.
    pub(crate) fn scan_pages(&mut self, from: u64) -> Result<Option<u64>, Halt> {
        if from == 0 {
            // What an earlier scan found is found again, if it is not mended.
            self.to_mend = 0;
        }
        let (pages, next) = self.trees.pages_from(from, PAGES);
        let mut asked = Vec::new();
        let mut silent = Vec::new();
        for disk in self.members.metadata() {
            match self.trees.verify(&mut self.io, (&self.members.geometry, disk), &pages) {
                Some(whole) => asked.push((disk, whole)),
                None => silent.push(disk),
            }
        }
        self.counters.metadata_verified += to_u64(asked.len() * pages.len());
        for (nth, (name, _)) in pages.iter().enumerate() {
            let what = TREES[index(name.tree.into())];
            let bad: Vec<u16> = asked.iter().filter(|own| !own.1[nth]).map(|own| own.0).collect();
            for &disk in &bad {
                self.io.events.damaged(disk, what);
            }
            if bad.is_empty() {
                continue;
            }
            if bad.len() == asked.len() {
                self.io.events.note(Event::MetadataLost { what });
            }
            let nowhere = bad.len() == asked.len() && !self.extents.has_page(name);
            if self.trees.is_lost(name) || nowhere {
                continue;
            }
            self.trees.rewrite(*name);
            self.to_mend += to_u64(bad.len());
        }
        self.do_without_silent(silent)?;
        Ok(next)
    }

    /// Whoever did not answer is done without, if it can be spared.
    fn do_without_silent(&mut self, silent: Vec<u16>) -> Result<(), Halt> {
        self.lose_spare(silent)?;
        // A loss must be durable before anything else is acknowledged.
        if self.journal.has_batch() { self.sync() } else { Ok(()) }
    }

    /// A checkpoint has written anew what scans found damaged.
    pub(crate) fn note_mended(&mut self) {
        let copies = std::mem::take(&mut self.to_mend);
        self.note_healed_metadata(copies);
    }

    fn note_healed_metadata(&mut self, copies: u64) {
        if copies > 0 {
            self.io.events.note(Event::MetadataHealed { copies });
        }
    }

    /// Reads a disk's copies of superblock and checkpoint page. Copies of the superblock that differ from what it is known to
    /// be are written anew if another copy on that disk is just that: else nobody knows what the disk may say of itself.
    pub(crate) fn scan_superblock(&mut self, disk: u16) -> Result<(), Halt> {
        let nth = usize::from(disk);
        if !self.members.is_online(disk) {
            return Ok(());
        }
        let Some(known) = self.members.superblocks[nth].clone() else { return Ok(()) };
        if !self.scan_checkpoint(disk) {
            return self.do_without_silent(vec![disk]);
        }
        let mut copies: [Option<Superblock>; 4] = Default::default();
        for (copy, offset) in copies.iter_mut().zip(Geometry::superblocks(known.device_bytes)) {
            let mut bytes = [0; BLOCK_LEN];
            let whole = |copy: &Superblock| copy.pool == known.pool && copy.device == known.device;
            for _ in 0..2 {
                let read = copy.is_none() && self.io.read(disk, offset, &mut bytes);
                if read {
                    *copy = Superblock::decode(&bytes).filter(whole);
                }
                if self.io.was_silent(disk) {
                    return self.do_without_silent(vec![disk]);
                }
            }
        }
        self.counters.metadata_verified += to_u64(copies.len());
        // What is in memory is what the disk was given last, unless it failed to take it.
        let newest = copies.iter().flatten().max_by_key(|copy| copy.version).cloned();
        let is_known = copies.iter().flatten().any(|copy| *copy == known);
        let right = if is_known { Some(known) } else { newest };
        let bad = copies.iter().filter(|copy| right.is_none() || **copy != right).count();
        for _ in 0..bad {
            self.io.events.damaged(disk, "superblock");
        }
        if bad == 0 {
            return Ok(());
        }
        let Some(mut known) = right.filter(|_| is_known) else {
            self.counters.metadata_unhealed += to_u64(bad);
            return Ok(());
        };
        let begin = Half::beside(&copies, &known);
        let ours = begin.in_doubt(&copies).filter(|older| *older == self.members.begin[nth]);
        self.members.begin[nth] = ours.unwrap_or(begin);
        // Updates outnumber every copy seen, trusted or not (LAY-2).
        let versions = copies.iter().flatten().map(|copy| copy.version);
        known.version = versions.max().unwrap_or(0).max(known.version);
        self.members.superblocks[nth] = Some(known);
        let failed = self.members.write_superblocks(&mut self.io, &[disk]);
        if failed.is_empty() {
            self.note_healed_metadata(to_u64(bad));
            return Ok(());
        }
        self.counters.metadata_unhealed += to_u64(bad);
        self.do_without(failed)?;
        self.sync()
    }

    /// The next checkpoint writes its page beside the one in force. `false` when the disk does not answer.
    fn scan_checkpoint(&mut self, disk: u16) -> bool {
        if !self.members.metadata().contains(&disk) {
            return true;
        }
        let (pool, sequence) = (self.members.config.pool, self.journal.sequence);
        let offset = self.members.geometry.journal() + sequence % 2 * BLOCK_BYTES;
        let mut bytes = [0; BLOCK_LEN];
        let whole = self.is_whole(disk, |io| {
            let page = io.read(disk, offset, &mut bytes);
            let page = page.then(|| Checkpoint::decode(pool, &bytes)).flatten();
            page.is_some_and(|page| page.sequence == sequence)
        });
        let Some(whole) = whole else { return false };
        self.counters.metadata_verified += 1;
        if !whole {
            self.io.events.damaged(disk, "checkpoint");
            self.to_mend += 1;
        }
        true
    }

    /// Whether something on a disk is whole, at the second look at last; `None` when it does not answer.
    fn is_whole(&mut self, disk: u16, mut look: impl FnMut(&mut Io<Q>) -> bool) -> Option<bool> {
        for _ in 0..2 {
            let whole = look(&mut self.io);
            if self.io.was_silent(disk) {
                return None;
            }
            if whole {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Reads a disk's copy of the configuration that it names. Where it is damaged all get a new generation, in the area that
    /// is not in force.
    pub(crate) fn scan_record(&mut self, disk: u16) -> Result<(), Halt> {
        let nth = usize::from(disk);
        if !self.members.is_online(disk) {
            return Ok(());
        }
        let Some(block) = self.members.superblocks[nth].clone() else { return Ok(()) };
        let own = (disk, block.area);
        let whole = self.is_whole(disk, |io| Members::read_config(io, own, &block).is_some());
        let Some(whole) = whole else { return self.do_without_silent(vec![disk]) };
        self.counters.metadata_verified += 1;
        if whole {
            return Ok(());
        }
        self.io.events.damaged(disk, "configuration");
        self.members.succeed();
        let voters = self.members.config.voters.clone();
        let failed = self.members.publish(&mut self.io, &voters);
        self.do_without(failed)?;
        if self.members.is_online(disk) && !voters.contains(&disk) {
            let failed = self.members.publish(&mut self.io, &[disk]);
            self.do_without(failed)?;
        }
        self.sync()?;
        self.note_healed_metadata(1);
        Ok(())
    }
}
