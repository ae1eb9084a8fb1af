//! The copy-on-write trees of map and checksums on disk.
//!
//! A checkpoint writes changed leaves to free pages, then the index pages above them, flushes, and only
//! then writes the page that names the new roots. Pages of the trees before are free after that.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32, to_u64, to_usize};

use crate::extents::{Extent, ExtentSet, Extents, Sums, UNMAPPED};
use crate::format::checksum::UNVERIFIED;
use crate::format::page::{self, INDEX_ENTRIES, LEAF_ENTRIES, PageName, Pointer, Root};
use crate::format::{BLOCK_BYTES, BLOCK_LEN, Geometry};
use crate::io::{Io, Work};
use crate::mutation::{Mutation, active};

use level::Level;

pub(crate) use leaves::{Sources, unknown_leaf};

mod leaves;
mod level;

/// Pages that are made at a time, at most.
const AT_ONCE: u64 = 4096;

/// The map's tree and the checksums' tree.
pub(crate) const MAP: usize = 0;
pub(crate) const SUMS: usize = 1;

/// One tree: pointers to the pages of each level, leaves first.
#[derive(Debug, Default)]
struct Tree {
    levels: Vec<Level>,
    dirty: Vec<bool>,
}

impl Tree {
    fn new(leaves: usize) -> Self {
        let mut levels = vec![Level::new(leaves)];
        let mut len = leaves;
        while len > 1 {
            len = len.div_ceil(INDEX_ENTRIES);
            levels.push(Level::new(len));
        }
        Self { levels, dirty: vec![false; leaves] }
    }

    /// The leaves that lie below a page of it.
    fn leaves_below(&self, page: &PageName) -> Range<usize> {
        let each = INDEX_ENTRIES.pow(page.level.into());
        let from = index(page.number) * each;
        from..(from + each).min(self.levels[0].len())
    }

    fn root(&self) -> Root {
        let pointer = self.levels.last().and_then(|level| level.get(0));
        Root { leaves: to_u32(self.levels[0].len()), pointer: pointer.unwrap_or_default() }
    }
}

/// Both trees and the pages they use.
#[derive(Debug)]
pub(crate) struct Trees {
    trees: [Tree; 2],
    used: Vec<bool>,
    /// No page before it is free.
    hint: usize,
    /// Pages that the next checkpoint will free.
    replaced: Vec<u32>,
    /// They are larger than those on the disks, whose index pages are none of theirs.
    pub(crate) have_grown: bool,
    /// Leaves of checksums whose pages nobody here has. They are named on until a block of theirs changes.
    lost_sums: BTreeSet<u32>,
    pool_seed: u32,
}

/// Pages to write: those that lie behind each other are one run, up to so many bytes.
struct Runs {
    most: usize,
    /// The first page of each, and its bytes.
    list: Vec<(u32, Vec<u8>)>,
}

impl Runs {
    fn add(&mut self, page: u32, bytes: &[u8; BLOCK_LEN]) {
        if let Some((first, run)) = self.list.last_mut()
            && *first + to_u32(run.len() / BLOCK_LEN) == page
            && run.len() + BLOCK_LEN <= self.most
        {
            run.extend_from_slice(bytes);
        } else {
            self.list.push((page, bytes.to_vec()));
        }
    }
}

impl Runs {
    fn pages(&self) -> usize {
        self.list.iter().map(|run| run.1.len() / BLOCK_LEN).sum()
    }

    /// Writes all to each disk; the disks that failed.
    fn write_out<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        geometry: &Geometry,
        disks: &[u16],
    ) -> Vec<u16> {
        let at = |page: u32| geometry.tree() + u64::from(page) * BLOCK_BYTES;
        let each = self.list.iter().flat_map(|(page, bytes)| {
            disks.iter().map(|&disk| Work::Write { disk, offset: at(*page), bytes })
        });
        let failed = io.wait_for(each.collect());
        self.list.clear();
        failed
    }
}

/// The area for tree pages is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeFull;

fn leaves(extents: &Extents) -> [usize; 2] {
    let count = extents.list.len();
    let blocks = count * index(extents.blocks);
    [count.div_ceil(LEAF_ENTRIES).max(1), blocks.div_ceil(LEAF_ENTRIES).max(1)]
}

/// What a tree holds at a key; `old` is its leaf as it was, where some of it is not in memory.
fn value(extents: &Extents, tree: usize, key: usize, old: Option<&[u8]>) -> u32 {
    let per = index(extents.blocks);
    if tree == MAP {
        return extents.list.place_of(key).unwrap_or(UNMAPPED);
    }
    match extents.list.get(key / per).map(|own| &own.sums) {
        None => 0,
        Some(Sums::Away) => old.map_or(0, |old| page::entry(old, key % LEAF_ENTRIES)),
        Some(sums) => sums.get(key % per).map_or(0, |sum| sum.committed),
    }
}

/// A page that no disk gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Missing {
    pub(crate) name: PageName,
    /// A disk that holds a copy cannot be read at all now.
    pub(crate) may_be_there: bool,
}

/// How often each disk is asked for a page that does not verify.
const ASKED: usize = 3;

/// Runs of pages that are read at a time.
const RUNS: usize = 4;

/// What the trees are called, by their number.
pub(crate) const TREES: [&str; 2] = ["map", "checksums"];

impl Trees {
    /// Empty trees for that many extents.
    pub(crate) fn new(extents: &Extents, geometry: &Geometry, pool_seed: u32) -> Self {
        let [map, sums] = leaves(extents);
        let mut used = vec![false; index(geometry.tree_pages())];
        // Page 0 stands for none.
        used[0] = true;
        Self {
            trees: [Tree::new(map), Tree::new(sums)],
            used,
            hint: 1,
            replaced: Vec::new(),
            have_grown: false,
            lost_sums: BTreeSet::new(),
            pool_seed,
        }
    }

    /// The map entry of an extent changed.
    pub(crate) fn touch_map(&mut self, extent: u32) {
        self.trees[MAP].dirty[index(extent) / LEAF_ENTRIES] = true;
    }

    /// A committed checksum changed.
    #[inline]
    pub(crate) fn touch_sum(&mut self, block: u64) {
        self.trees[SUMS].dirty[to_usize(block) / LEAF_ENTRIES] = true;
    }

    /// All checksums of an extent changed.
    pub(crate) fn touch_sums(&mut self, extent: u32, blocks: u32) {
        let first = u64::from(extent) * u64::from(blocks);
        let (from, to) = (to_usize(first), to_usize(first) + index(blocks) - 1);
        self.trees[SUMS].dirty[from / LEAF_ENTRIES..=to / LEAF_ENTRIES].fill(true);
    }

    pub(crate) fn roots(&self) -> [Root; 2] {
        [self.trees[MAP].root(), self.trees[SUMS].root()]
    }

    /// Pages of both trees, so many at most, from a place in their order on, and where to go on; `None` behind the last.
    pub(crate) fn pages_from(
        &self,
        from: u64,
        most: usize,
    ) -> (Vec<(PageName, Pointer)>, Option<u64>) {
        let levels = (0..).zip(&self.trees).flat_map(|(tree, own)| {
            (0..).zip(&own.levels).map(move |(level, pointers)| (tree, level, pointers))
        });
        let (mut pages, mut before) = (Vec::new(), 0);
        for (tree, level, pointers) in levels {
            let first = to_usize(from.saturating_sub(before)).min(pointers.len());
            for (number, pointer) in pointers.set_from(first) {
                if pages.len() == most {
                    return (pages, Some(before + to_u64(number)));
                }
                pages.push((name(tree, level, number), pointer));
            }
            before += to_u64(pointers.len());
        }
        (pages, None)
    }

    /// How many there are from a place in their order on.
    pub(crate) fn pages_left(&self, from: u64) -> u64 {
        let (mut pages, mut before) = (0, 0);
        for level in self.trees.iter().flat_map(|own| &own.levels) {
            pages += level.set_from(to_usize(from.saturating_sub(before))).count();
            before += to_u64(level.len());
        }
        to_u64(pages)
    }

    /// Whether these bytes are a page as it is in force.
    pub(crate) fn verifies(&self, (name, pointer): (PageName, Pointer), bytes: &[u8]) -> bool {
        page::verifies(self.pool_seed, name, pointer, bytes)
    }

    /// The next checkpoint writes a page anew, elsewhere, and all above it.
    pub(crate) fn rewrite(&mut self, name: PageName) {
        let own = &mut self.trees[index(name.tree.into())];
        let leaf = own.leaves_below(&name).start;
        if let Some(dirty) = own.dirty.get_mut(leaf) {
            *dirty = true;
        }
    }

    fn allocate(&mut self) -> Result<u32, TreeFull> {
        let len = self.used.len();
        // The first free one: so the trees stay at the start of their area, however long a pool lives.
        let page = (self.hint..len).find(|page| !self.used[*page]).ok_or(TreeFull)?;
        self.used[page] = true;
        self.hint = page + 1;
        Ok(to_u32(page))
    }

    /// Writes all that changed to free pages of `disks`, pages that lie behind each other together; the disks that failed.
    /// Nothing is flushed, and the trees on disk stay as they are until a checkpoint page names the new roots.
    pub(crate) fn write<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        geometry: &Geometry,
        disks: &[u16],
        extents: &Extents,
    ) -> Result<Vec<u16>, TreeFull> {
        let mut runs = Runs { most: to_usize(io.control_bytes()).max(BLOCK_LEN), list: Vec::new() };
        // No more than checksums may be in memory.
        let at_once = to_usize((extents.most / to_u64(LEAF_ENTRIES)).clamp(2, AT_ONCE));
        let mut failed = Vec::new();
        for tree in [MAP, SUMS] {
            let dirty = self.trees[tree].dirty.iter().enumerate().filter(|leaf| *leaf.1);
            let dirty: Vec<usize> = dirty.map(|leaf| leaf.0).collect();
            // Not all are in memory at a time: there may be as many as the journal has records.
            for some in dirty.chunks(at_once) {
                let Ok(old) = self.leaves_in_part(io, (geometry, disks), extents, (tree, some))
                else {
                    // Nobody gives what is there still: no disk is one to go on with.
                    return Ok(disks.to_vec());
                };
                self.place_leaves((tree, some), (extents, &old), &mut runs)?;
                if runs.pages() >= at_once {
                    failed.extend(runs.write_out(io, geometry, disks));
                }
            }
            self.place_index(tree, dirty, &mut runs)?;
        }
        failed.extend(runs.write_out(io, geometry, disks));
        failed.sort_unstable();
        failed.dedup();
        Ok(failed)
    }

    /// Leaves that changed, on free pages.
    fn place_leaves(
        &mut self,
        (tree, leaves): (usize, &[usize]),
        (extents, old): (&Extents, &BTreeMap<usize, [u8; BLOCK_LEN]>),
        runs: &mut Runs,
    ) -> Result<(), TreeFull> {
        for &leaf in leaves {
            self.trees[tree].dirty[leaf] = false;
            if tree == SUMS {
                self.lost_sums.remove(&to_u32(leaf));
            }
            let mut bytes = Box::new([0; BLOCK_LEN]);
            let old = old.get(&leaf).map(|old| &old[..]);
            for nth in 0..LEAF_ENTRIES {
                let key = leaf * LEAF_ENTRIES + nth;
                page::set_entry(&mut bytes, nth, value(extents, tree, key, old));
            }
            self.place(tree, 0, leaf, bytes, runs)?;
        }
        Ok(())
    }

    /// The index pages above leaves that changed.
    fn place_index(
        &mut self,
        tree: usize,
        mut changed: Vec<usize>,
        runs: &mut Runs,
    ) -> Result<(), TreeFull> {
        if self.have_grown {
            changed = (0..self.trees[tree].levels[0].len()).collect();
        }
        for level in 1..self.trees[tree].levels.len() {
            changed = changed.iter().map(|number| number / INDEX_ENTRIES).collect();
            changed.dedup();
            for &number in &changed {
                let mut bytes = Box::new([0; BLOCK_LEN]);
                let below = &self.trees[tree].levels[level - 1];
                for nth in 0..INDEX_ENTRIES {
                    let Some(pointer) = below.get(number * INDEX_ENTRIES + nth) else { break };
                    page::set_pointer(&mut bytes, nth, pointer);
                }
                self.place(tree, level, number, bytes, runs)?;
            }
        }
        Ok(())
    }

    fn place(
        &mut self,
        tree: usize,
        level: usize,
        number: usize,
        mut bytes: Box<[u8; BLOCK_LEN]>,
        runs: &mut Runs,
    ) -> Result<(), TreeFull> {
        let crc = page::seal(self.pool_seed, name(tree, level, number), &mut bytes);
        let page = self.allocate()?;
        let old = self.trees[tree].levels[level].set(number, Pointer { page, crc });
        if old.page != 0 {
            self.replaced.push(old.page);
        }
        if level > 0 && active(Mutation::IndexInPlace) {
            self.release();
        }
        runs.add(page, &bytes);
        Ok(())
    }

    /// The checkpoint page that names these trees is durable: the pages before are free.
    pub(crate) fn release(&mut self) {
        for page in self.replaced.drain(..) {
            // A damaged pointer may have named a page that there is not.
            if let Some(used) = self.used.get_mut(index(page)) {
                *used = false;
                self.hint = self.hint.min(index(page));
            }
        }
    }

    /// Reads the trees that `roots` name into `extents`. Of a page of checksums that no disk holds the blocks are *unverified*
    /// from now on (LAY-7): the extents with such blocks are returned. Where it is a leaf, its page is named on, until a block
    /// of it changes: a disk that is away may have it.
    ///
    /// # Errors
    ///
    /// A page of the map that no disk holds: where extents lie is not known. Of the checksums, one that a disk may hold that
    /// cannot be read at all now.
    pub(crate) fn load<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        geometry: &Geometry,
        sources: &Sources,
        roots: &[Root],
        extents: &mut Extents,
    ) -> Result<ExtentSet, PageName> {
        let mut unverified = ExtentSet::default();
        extents.loading = true;
        for (tree, root) in roots.iter().enumerate() {
            // Checksums that have no room are read when they are needed.
            let leaves = tree == MAP || extents.has_room_for_all();
            let mut old = Tree::new(index(root.leaves).clamp(1, self.trees[tree].levels[0].len()));
            let top = old.levels.len() - 1;
            old.levels[top].set(0, root.pointer);
            let mut lost: Vec<PageName> = Vec::new();
            for level in (usize::from(!leaves)..=top).rev() {
                let pointers = std::mem::take(&mut old.levels[level]);
                let missing = self.read_level(
                    io,
                    (geometry, sources),
                    (tree, level),
                    &pointers,
                    |number, bytes| {
                        if level > 0 {
                            for nth in 0..INDEX_ENTRIES {
                                let pointer = page::pointer(bytes, nth);
                                old.levels[level - 1].set(number * INDEX_ENTRIES + nth, pointer);
                            }
                        } else {
                            take_leaf((extents, &mut unverified), tree, number, bytes);
                        }
                    },
                );
                old.levels[level] = pointers;
                let refuses = |page: &&Missing| tree == MAP || page.may_be_there;
                if let Some(page) = missing.iter().find(refuses) {
                    return Err(page.name);
                }
                lost.extend(missing.iter().map(|page| page.name));
            }
            let lost: Vec<(PageName, Range<usize>)> =
                lost.into_iter().map(|page| (page, old.leaves_below(&page))).collect();
            self.adopt(tree, old);
            for (page, leaves) in lost {
                if page.level == 0 && !active(Mutation::LostSumsDropped) {
                    self.lost_sums.insert(page.number);
                } else {
                    // They are written anew by the next checkpoint, whatever their pages hold.
                    self.trees[tree].dirty[leaves.clone()].fill(true);
                }
                if extents.is_short {
                    self.lost_sums.extend(leaves.clone().map(to_u32));
                }
                forget_sums(extents, leaves, &mut unverified);
            }
        }
        Ok(unverified)
    }

    /// Gives every page of a level to `take`; those that no disk has are returned. Pages that lie behind each other are read
    /// together, a few such runs at a time, from the first disk; those that it does not have are asked for one by one.
    fn read_level<Q: FlushQueue>(
        &self,
        io: &mut Io<Q>,
        (geometry, sources): (&Geometry, &Sources),
        (tree, level): (usize, usize),
        pointers: &Level,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Vec<Missing> {
        let mut wanted: Vec<(u32, usize)> = pointers
            .set_from(0)
            .filter(|(_, pointer)| pointer.page < geometry.tree_pages())
            .map(|(number, pointer)| (pointer.page, number))
            .collect();
        wanted.sort_unstable();
        let most = (to_usize(io.control_bytes()) / BLOCK_LEN).max(1);
        let follows = |before: &(u32, usize), after: &(u32, usize)| before.0 + 1 == after.0;
        let runs: Vec<&[(u32, usize)]> =
            wanted.chunk_by(follows).flat_map(|run| run.chunks(most)).collect();
        let mut done = vec![false; pointers.len()];
        for some in runs.chunks(RUNS) {
            let mut contents: Vec<Vec<u8>> =
                some.iter().map(|run| vec![0; run.len() * BLOCK_LEN]).collect();
            let work = some.iter().zip(&mut contents).flat_map(|(run, into)| {
                let offset = geometry.tree() + u64::from(run[0].0) * BLOCK_BYTES;
                sources.members.first().map(|&disk| Work::Read { disk, offset, into })
            });
            if !io.wait_for(work.collect()).is_empty() {
                continue;
            }
            let pages = some.iter().zip(&contents).flat_map(|(run, bytes)| {
                run.iter().map(|page| page.1).zip(bytes.chunks(BLOCK_LEN))
            });
            for (number, bytes) in pages {
                let name = name(tree, level, number);
                if page::verifies(self.pool_seed, name, pointers.at(number), bytes) {
                    take(number, bytes);
                    done[number] = true;
                }
            }
        }
        let mut missing = Vec::new();
        for (number, pointer) in pointers.set_from(0).filter(|own| !done[own.0]) {
            let name = name(tree, level, number);
            match self.find_page(io, geometry, sources, (name, pointer)) {
                Ok(bytes) => take(number, &bytes),
                Err(page) => missing.push(page),
            }
        }
        missing
    }

    /// Takes over pointers of a tree that had fewer leaves or as many.
    fn adopt(&mut self, tree: usize, old: Tree) {
        for level in &old.levels {
            for (_, pointer) in level.set_from(0) {
                if let Some(used) = self.used.get_mut(index(pointer.page)) {
                    *used = true;
                }
            }
        }
        let own = &mut self.trees[tree];
        if own.levels.len() == old.levels.len() && own.levels[0].len() == old.levels[0].len() {
            own.levels = old.levels;
        } else {
            // It has grown: all index pages are made anew.
            self.have_grown = true;
            own.levels[0].take_over(&old.levels[0]);
            for (_, pointer) in old.levels[1..].iter().flat_map(|level| level.set_from(0)) {
                self.replaced.push(pointer.page);
            }
        }
    }

    fn read_page<Q: FlushQueue>(
        &self,
        io: &mut Io<Q>,
        geometry: &Geometry,
        disks: &[u16],
        name: PageName,
        pointer: Pointer,
    ) -> Result<[u8; BLOCK_LEN], Missing> {
        if pointer.page >= geometry.tree_pages() {
            return Err(Missing { name, may_be_there: false });
        }
        let offset = geometry.tree() + u64::from(pointer.page) * BLOCK_BYTES;
        let mut bad = Vec::new();
        let mut failing = Vec::new();
        // A bad moment of a disk is no lost page: each is asked again before it is given up.
        for &disk in disks.iter().cycle().take(disks.len() * ASKED) {
            if failing.contains(&disk) {
                continue;
            }
            let mut bytes = [0; BLOCK_LEN];
            let read = io.read(disk, offset, &mut bytes);
            if read && page::verifies(self.pool_seed, name, pointer, &bytes) {
                for &disk in &bad {
                    io.events.damaged(disk, TREES[index(name.tree.into())]);
                }
                if !bad.is_empty() {
                    // Rot is healed at once; a disk that cannot be written is noticed when it matters.
                    io.write(&bad, offset, &bytes);
                }
                return Ok(bytes);
            }
            // Where nothing else can be read, it is the disk and not the page.
            let elsewhere = &mut [0; BLOCK_LEN];
            if !read && !io.read(disk, geometry.journal(), elsewhere) {
                failing.push(disk);
            }
            if !bad.contains(&disk) {
                bad.push(disk);
            }
        }
        Err(Missing { name, may_be_there: !failing.is_empty() })
    }
}

impl Trees {
    /// Copies all pages of both trees to `disk`, each from whichever of `sources` has it, or as the disk itself has it: only
    /// what verifies is written. Where no copy does, the next checkpoint writes it anew: what it holds is in memory.
    pub(crate) fn copy_to<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        geometry: &Geometry,
        (sources, disk): (&[u16], u16),
        in_memory: impl Fn(&PageName) -> bool,
    ) -> Copied {
        let (mut wanted, _) = self.pages_from(0, usize::MAX);
        wanted.retain(|(_, at)| (1..geometry.tree_pages()).contains(&at.page));
        wanted.sort_unstable_by_key(|page| page.1.page);
        let at = |page: u32| geometry.tree() + u64::from(page) * BLOCK_BYTES;
        let most = (to_usize(io.control_bytes()) / BLOCK_LEN).max(1);
        let runs: Vec<_> = wanted
            .chunk_by(|before, after| before.1.page + 1 == after.1.page)
            .flat_map(|run| run.chunks(most))
            .collect();
        let mut missing = Vec::new();
        for some in runs.chunks(RUNS) {
            let mut contents: Vec<Vec<u8>> =
                some.iter().map(|run| vec![0; run.len() * BLOCK_LEN]).collect();
            let mut read = |source: &u16| {
                let work = some.iter().zip(&mut contents);
                let work = work.map(|(run, into)| Work::Read {
                    disk: *source,
                    offset: at(run[0].1.page),
                    into,
                });
                io.wait_for(work.collect()).is_empty()
            };
            let whole = sources.iter().any(&mut read);
            let mut writes = Vec::new();
            for (run, bytes) in some.iter().zip(&mut contents) {
                let before = missing.len();
                for (page, bytes) in run.iter().zip(bytes.chunks_mut(BLOCK_LEN)) {
                    if whole && (self.verifies(*page, bytes) || active(Mutation::RotCopied)) {
                        continue;
                    }
                    match self.page_of_any(io, geometry, (sources, disk), *page) {
                        Some(found) => bytes.copy_from_slice(&found),
                        None => missing.push(page.0),
                    }
                }
                if missing.len() == before {
                    writes.push((at(run[0].1.page), &bytes[..]));
                    continue;
                }
                let found = run.iter().zip(bytes.chunks(BLOCK_LEN));
                let found = found.filter(|(page, _)| !missing[before..].contains(&page.0));
                writes.extend(found.map(|(page, bytes)| (at(page.1.page), bytes)));
            }
            let writes =
                writes.iter().map(|(offset, bytes)| Work::Write { disk, offset: *offset, bytes });
            if !io.wait_for(writes.collect()).is_empty() {
                return Copied::Failed;
            }
        }
        missing.retain(|page| !self.is_lost(page) && in_memory(page));
        missing.iter().for_each(|page| self.rewrite(*page));
        if missing.is_empty() { Copied::Whole } else { Copied::Damaged }
    }

    /// A page from whichever copy has it, that of the disk which lacks metadata last; it is written to those that do not.
    fn page_of_any<Q: FlushQueue>(
        &self,
        io: &mut Io<Q>,
        geometry: &Geometry,
        (sources, disk): (&[u16], u16),
        (name, pointer): (PageName, Pointer),
    ) -> Option<[u8; BLOCK_LEN]> {
        if let Ok(bytes) = self.read_page(io, geometry, sources, name, pointer) {
            return Some(bytes);
        }
        for &disk in sources {
            io.events.damaged(disk, TREES[index(name.tree.into())]);
        }
        let bytes = self.read_page(io, geometry, &[disk], name, pointer).ok()?;
        // Who does not take it is noticed when it matters.
        io.write(sources, geometry.tree() + u64::from(pointer.page) * BLOCK_BYTES, &bytes);
        Some(bytes)
    }
}

/// What became of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copied {
    /// It has all.
    Whole,
    /// It was not taken, or could not be read.
    Failed,
    /// No copy of some of it is as it should be.
    Damaged,
}

fn name(tree: usize, level: usize, number: usize) -> PageName {
    let small = |value: usize| u8::try_from(value).unwrap_or(u8::MAX);
    PageName { tree: small(tree), level: small(level), number: to_u32(number) }
}

/// Nobody knows the checksums of these leaves any more.
fn forget_sums(extents: &mut Extents, leaves: Range<usize>, unverified: &mut ExtentSet) {
    let per = index(extents.blocks);
    for key in leaves.start * LEAF_ENTRIES..leaves.end * LEAF_ENTRIES {
        let extent = extents.list.state_mut(key / per);
        let is_here = |extent: &&mut Extent| {
            !matches!(extent.sums, Sums::Away) && extent.sums.get(key % per).is_some()
        };
        if let Some(extent) = extent.filter(is_here) {
            extent.sums.set(key % per, UNVERIFIED);
            unverified.insert(to_u32(key / per));
        }
    }
}

/// Puts the entries of a leaf where they belong. The map is read before the checksums.
fn take_leaf(
    (extents, unverified): (&mut Extents, &mut ExtentSet),
    tree: usize,
    leaf: usize,
    bytes: &[u8],
) {
    let per = index(extents.blocks);
    for nth in 0..LEAF_ENTRIES {
        let key = leaf * LEAF_ENTRIES + nth;
        let value = page::entry(bytes, nth);
        if tree == MAP {
            if key < extents.list.len() && value != UNMAPPED {
                extents.map(to_u32(key), value);
            }
        } else if let Some(own) =
            extents.list.state_mut(key / per).filter(|own| own.sums.get(key % per).is_some())
        {
            own.sums.set(key % per, value);
            if value == UNVERIFIED {
                unverified.insert(to_u32(key / per));
            }
        }
    }
}
