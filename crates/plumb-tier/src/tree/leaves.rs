//! Pages from whoever has them, and leaves of checksums that are not in memory.

use std::collections::BTreeMap;

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32};

use super::{Missing, SUMS, TREES, Trees, name};
use crate::extents::Extents;
use crate::format::checksum::UNVERIFIED;
use crate::format::page::{self, LEAF_ENTRIES, PageName, Pointer};
use crate::format::{BLOCK_BYTES, BLOCK_LEN, Geometry};
use crate::io::{Io, Work};
use crate::members::Members;
use crate::mutation::{Mutation, active};

/// How far apart pages may lie that are read with one I/O: what lies between takes no longer than another I/O does.
const GAP: u32 = 6;
/// Such I/Os at a time.
const RUNS_READ: usize = 64;

/// Who is asked for pages.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Disks that have the trees.
    pub(crate) members: Vec<u16>,
    /// Others that are here and may have had them. A page that a pointer names is that page wherever it is found.
    pub(super) others: Vec<u16>,
}

impl Sources {
    pub(crate) fn of<Q: FlushQueue>(io: &Io<Q>, members: &Members) -> Self {
        let has = members.metadata();
        let all = 0..u16::try_from(members.online.len()).unwrap_or(u16::MAX);
        let others = all.filter(|disk| !has.contains(disk) && io.file(*disk).is_some());
        let others = if active(Mutation::OthersUnasked) { Vec::new() } else { others.collect() };
        Self { members: has, others }
    }
}

/// A leaf of checksums of which nobody knows any.
pub(crate) fn unknown_leaf() -> [u8; BLOCK_LEN] {
    let mut bytes = [0; BLOCK_LEN];
    (0..LEAF_ENTRIES).for_each(|nth| page::set_entry(&mut bytes, nth, UNVERIFIED));
    bytes
}

impl Trees {
    /// Leaves of checksums that are to be written and are not in memory as a whole, as they are on the disks.
    pub(super) fn leaves_in_part<Q: FlushQueue>(
        &self,
        io: &mut Io<Q>,
        (geometry, disks): (&Geometry, &[u16]),
        extents: &Extents,
        (tree, leaves): (usize, &[usize]),
    ) -> Result<BTreeMap<usize, [u8; BLOCK_LEN]>, Missing> {
        let mut old = BTreeMap::new();
        if tree != SUMS || !extents.is_short || active(Mutation::RestOfLeafForgotten) {
            return Ok(old);
        }
        let in_part = leaves.iter().copied().filter(|leaf| !extents.has_leaf(*leaf));
        let mut wanted = Vec::new();
        for leaf in in_part {
            if let Some(page) = self.sums_page(to_u32(leaf)) {
                wanted.push((leaf, page));
            } else if self.is_unknown(to_u32(leaf)) {
                old.insert(leaf, unknown_leaf());
            }
        }
        let pages: Vec<_> = wanted.iter().map(|own| own.1).collect();
        let mut read = self.read_leaves(io, (geometry, disks), &pages);
        for (leaf, page) in wanted {
            let bytes = match read.remove(&page.0.number) {
                Some(bytes) => bytes,
                None => match self.read_page(io, geometry, disks, page.0, page.1) {
                    Ok(bytes) => bytes,
                    Err(missing) if missing.may_be_there => return Err(missing),
                    Err(_) => unknown_leaf(),
                },
            };
            old.insert(leaf, bytes);
        }
        Ok(old)
    }

    /// Leaves of checksums by their number, many at a time and from all of `disks`, each page from one of them; what could not be read
    /// there, or does not verify, is left out. Pages that lie near each other are read together.
    pub(crate) fn read_leaves<Q: FlushQueue>(
        &self,
        io: &mut Io<Q>,
        (geometry, disks): (&Geometry, &[u16]),
        pages: &[(PageName, Pointer)],
    ) -> BTreeMap<u32, [u8; BLOCK_LEN]> {
        let mut wanted: Vec<_> =
            pages.iter().filter(|own| own.1.page < geometry.tree_pages()).copied().collect();
        wanted.sort_unstable_by_key(|own| own.1.page);
        let most = (io.control_bytes() / BLOCK_BYTES).max(1);
        let mut runs: Vec<Vec<(PageName, Pointer)>> = Vec::new();
        for own in wanted {
            match runs.last_mut() {
                Some(run)
                    if run.last().is_some_and(|last| own.1.page - last.1.page <= GAP)
                        && u64::from(own.1.page - run[0].1.page) < most =>
                {
                    run.push(own);
                }
                _ => runs.push(vec![own]),
            }
        }
        let span = |run: &[(PageName, Pointer)]| {
            let last = run.last().map_or(0, |last| last.1.page - run[0].1.page);
            index(last + 1) * BLOCK_LEN
        };
        let mut found = BTreeMap::new();
        for some in runs.chunks(RUNS_READ) {
            let mut contents: Vec<_> = some.iter().map(|run| vec![0; span(run)]).collect();
            let work = some.iter().zip(&mut contents).zip(disks.iter().cycle());
            let work = work.map(|((run, into), &disk)| {
                let offset = geometry.tree() + u64::from(run[0].1.page) * BLOCK_BYTES;
                Work::Read { disk, offset, into }
            });
            // Whatever a disk did not give does not verify.
            io.wait_for(work.collect());
            for (run, bytes) in some.iter().zip(&contents) {
                for page in run {
                    let at = index(page.1.page - run[0].1.page) * BLOCK_LEN;
                    let Some(bytes) = bytes[at..].first_chunk::<BLOCK_LEN>() else { continue };
                    if self.verifies(*page, bytes) {
                        found.insert(page.0.number, *bytes);
                    }
                }
            }
        }
        found
    }

    /// The page of a leaf of checksums; `None` when none of its blocks was ever written.
    pub(crate) fn sums_page(&self, leaf: u32) -> Option<(PageName, Pointer)> {
        let pointer = self.trees[SUMS].levels[0].get(index(leaf))?;
        (pointer.page != 0).then(|| (name(SUMS, 0, index(leaf)), pointer))
    }

    /// Whether nobody knows where a leaf of checksums lies, as an index page is lost.
    pub(crate) fn is_unknown(&self, leaf: u32) -> bool {
        self.lost_sums.contains(&leaf) && self.sums_page(leaf).is_none()
    }

    /// Whether the next checkpoint writes a leaf of checksums.
    pub(crate) fn is_dirty_sums(&self, leaf: u32) -> bool {
        self.trees[SUMS].dirty.get(index(leaf)).is_some_and(|dirty| *dirty)
    }

    /// Nobody here has the page of a leaf of checksums.
    pub(crate) fn note_lost(&mut self, leaf: u32) {
        self.lost_sums.insert(leaf);
    }

    /// A page from whoever is here and has it.
    pub(crate) fn find_page<Q: FlushQueue>(
        &self,
        io: &mut Io<Q>,
        geometry: &Geometry,
        sources: &Sources,
        (name, pointer): (PageName, Pointer),
    ) -> Result<[u8; BLOCK_LEN], Missing> {
        let found = self.read_page(io, geometry, &sources.members, name, pointer);
        found.or_else(|missing| {
            self.page_of_other(io, geometry, sources, (name, pointer)).ok_or(missing)
        })
    }

    /// A page that no disk has of those that are to, from another one; they get it.
    fn page_of_other<Q: FlushQueue>(
        &self,
        io: &mut Io<Q>,
        geometry: &Geometry,
        sources: &Sources,
        (name, pointer): (PageName, Pointer),
    ) -> Option<[u8; BLOCK_LEN]> {
        let bytes = self.read_page(io, geometry, &sources.others, name, pointer).ok()?;
        for &disk in &sources.members {
            io.events.damaged(disk, TREES[index(name.tree.into())]);
        }
        io.write(&sources.members, geometry.tree() + u64::from(pointer.page) * BLOCK_BYTES, &bytes);
        Some(bytes)
    }

    /// Whether a page is of checksums that nobody here has: memory has nothing to write anew, and a disk that is away may
    /// have it.
    pub(crate) fn is_lost(&self, page: &PageName) -> bool {
        usize::from(page.tree) == SUMS && page.level == 0 && self.lost_sums.contains(&page.number)
    }
}
