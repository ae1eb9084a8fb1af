//! Changes of the configuration: virtual disks come and go, disks are added. Each is made while nothing is
//! under way and ends the engine: the next start works with the new configuration.

use std::collections::BTreeSet;

use plumb_io::{FileIndex, FlushQueue};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32, to_u64, to_usize};

use super::Engine;
use super::ranges::number_extents;
use crate::core::{Core, Halt};
use crate::create::{CACHE_MIN, CreateError, NewDisk, NewVirtualDisk, no_space, to_ask};
use crate::extents::{UNMAPPED, move_reserve, slots_of_tier};
use crate::format::config::DISKS_MAX;
use crate::format::frame::Record;
use crate::format::page::LEAF_ENTRIES;
use crate::format::superblock::{RecordName, Superblock};
use crate::format::{
    BLOCK_BYTES, CacheConfig, CacheCopy, Config, DiskConfig, DiskState, Geometry, MediaType, Row,
    Tier, VirtualDisk,
};
use crate::half::Half;

/// Time that passes per look while everything under way comes to its end.
const STEP: Nanos = Nanos(10_000_000);
/// Records of a removal between two checkpoints.
const FREED_AT_ONCE: usize = 100_000;

/// Why a change was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum ChangeError {
    /// What is asked for does not fit.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Layout(#[from] CreateError),
    /// There is one of that name.
    #[error("the pool has a virtual disk named {name} already")]
    #[diagnostic(code(plumb::tier::vdisk_exists), help("choose another name, or remove it first"))]
    Exists {
        /// Its name.
        name: String,
    },
    /// There is none of that name.
    #[error("the pool has no virtual disk named {name}")]
    #[diagnostic(code(plumb::tier::no_vdisk), help("see `plumb vdisk list`"))]
    Unknown {
        /// The name.
        name: String,
    },
    /// Nothing of it is lost.
    #[error("the write cache of virtual disk {name} is not lost")]
    #[diagnostic(
        code(plumb::tier::cache_here),
        help("nothing was changed, and nothing is needed: see `plumb space status`")
    )]
    CacheHere {
        /// The virtual disk.
        name: String,
    },
    /// It is on it already.
    #[error("{name} is a disk of the pool already")]
    #[diagnostic(
        code(plumb::tier::disk_exists),
        help("nothing was changed; see `plumb pool show`")
    )]
    HasDisk {
        /// The disk's path.
        name: String,
    },
    /// It is not one of the pool's.
    #[error("the pool has no disk {name}")]
    #[diagnostic(code(plumb::tier::no_disk), help("see `plumb pool show`"))]
    NoDisk {
        /// The disk's path.
        name: String,
    },
    /// Nothing would be left.
    #[error("{name} is the last disk of the pool that takes part")]
    #[diagnostic(
        code(plumb::tier::last_disk),
        help("add a disk first: plumb pool add-disk; or destroy the pool: plumb pool remove")
    )]
    LastDisk {
        /// The disk's path.
        name: String,
    },
    /// It is not here, and what is on it is nowhere else.
    #[error("disk {name} is not here, and {extents} extents have no other copy that is up to date")]
    #[diagnostic(
        code(plumb::tier::only_copy),
        help("connect it first; or remove the virtual disks that lie on it alone: plumb vdisk rm")
    )]
    OnlyCopy {
        /// The disk's path.
        name: String,
        /// How many.
        extents: u32,
    },
    /// The others are too small.
    #[error(
        "disk {name} holds {needed} slabs of {slab_bytes} bytes, and for {missing} of them no other disk has \
         room: a row's slabs lie on different disks of its kind"
    )]
    #[diagnostic(
        code(plumb::tier::no_room),
        help("nothing was changed; add a disk first: plumb pool add-disk")
    )]
    NoRoom {
        /// The disk's path.
        name: String,
        /// Slabs in use on it.
        needed: usize,
        /// Of these, without room elsewhere.
        missing: usize,
        /// Bytes of a slab.
        slab_bytes: u64,
    },
    /// Its configuration names as many disks as it can, removed ones included.
    #[error("pool {name} has had {DISKS_MAX} disks, and can have no more")]
    #[diagnostic(code(plumb::tier::disks), help("make another pool"))]
    TooMany {
        /// The pool.
        name: String,
    },
    /// The disk did not take what was written.
    #[error("disk {name} cannot be brought into the pool: it does not take what is written")]
    #[diagnostic(code(plumb::tier::add_io), help("see the kernel's log, or name another disk"))]
    DiskFailed {
        /// The disk's path.
        name: String,
    },
    /// The pool stopped meanwhile.
    #[error("the pool stopped while it was being changed")]
    #[diagnostic(code(plumb::tier::change_halt), help("start it again, then see what is there"))]
    Halted {
        /// Why.
        source: Halt,
    },
}

impl From<Halt> for ChangeError {
    fn from(source: Halt) -> Self {
        Self::Halted { source }
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// Ends cleanly: everything acknowledged is durable, and the next start has nothing to examine but what this one left for later.
    /// What lies in write-back caches stays there (WBC-7).
    ///
    /// # Errors
    /// When that could not be; nothing that was flushed is lost, the next start recovers.
    ///
    /// # Panics
    /// When a request is under way.
    pub fn shut_down(mut self) -> Result<Q, Halt> {
        self.hand_out(true);
        self.come_to_rest()?;
        if self.core.unflushable.contains(&true) {
            return Err(Halt::Unflushed);
        }
        // What was made of a disk before has not reached the second of these (LAY-8). One that does not take it is the
        // next start's.
        for _ in 0..2 {
            if !self.core.members.mark_on(&mut self.core.io).is_empty() {
                break;
            }
        }
        Ok(self.into_queue())
    }

    /// Adds a virtual disk.
    ///
    /// # Errors
    /// When it does not fit, or the pool stopped.
    ///
    /// # Panics
    /// When a request is under way.
    pub fn add_virtual_disk(mut self, wanted: &NewVirtualDisk) -> Result<Q, ChangeError> {
        let geometry = self.core.members.geometry;
        let id = self.core.members.random.id();
        let mut config = self.core.members.config.clone();
        let able: Vec<bool> = (0_u16..)
            .take(config.disks.len())
            .map(|disk| self.core.members.takes_more(disk))
            .collect();
        place_virtual_disk(&mut config, &geometry, wanted, id, &able)?;
        self.come_to_rest()?;
        self.core.members.config.vdisks = config.vdisks;
        self.core.announce()?;
        // Journal and tree get as many copies as its data before anything is written to it (RES-7). What a disk does not take now is
        // tried again when the pool is next in use.
        while self.core.spread_metadata()? {}
        Ok(self.into_queue())
    }

    /// Removes a virtual disk and all that it holds.
    ///
    /// # Errors
    /// When there is none of that name, or the pool stopped.
    ///
    /// # Panics
    /// When a request is under way.
    pub fn remove_virtual_disk(mut self, name: &str) -> Result<Q, ChangeError> {
        let vdisks = &self.core.members.config.vdisks;
        let Some(nth) = vdisks.iter().position(|vdisk| vdisk.name == name && !vdisk.is_removed())
        else {
            return Err(ChangeError::Unknown { name: name.to_owned() });
        };
        self.come_to_rest()?;
        self.core.free_extents(nth)?;
        let config = &mut self.core.members.config;
        config.vdisks[nth].remove();
        config.moving = config.moving.filter(|moving| usize::from(moving.vdisk) != nth);
        self.core.announce()?;
        Ok(self.into_queue())
    }

    /// Gives up the write cache of a virtual disk that is detached because no copy of its log is here: an operator says that
    /// what only the log held is lost. What lies in its tiers is served from then on, which may be older in any block; it
    /// has no write cache any more, and a log that comes back is nobody's.
    ///
    /// # Errors
    /// When there is none of that name, its log is here, or the pool stopped.
    ///
    /// # Panics
    /// When a request is under way.
    pub fn give_up_cache(mut self, name: &str) -> Result<Q, ChangeError> {
        let vdisks = &self.core.members.config.vdisks;
        let Some(nth) = vdisks.iter().position(|vdisk| vdisk.name == name && !vdisk.is_removed())
        else {
            return Err(ChangeError::Unknown { name: name.to_owned() });
        };
        if !self.core.is_detached(nth) {
            return Err(ChangeError::CacheHere { name: name.to_owned() });
        }
        self.come_to_rest()?;
        self.core.members.config.vdisks[nth].cache = None;
        self.core.announce()?;
        Ok(self.into_queue())
    }

    /// Brings a disk into the pool: the queue's file is overwritten without a question. Another one of its name, which was in its
    /// place before, has its [`Config::former_name`] from then on.
    ///
    /// # Errors
    /// When it has no room for a slab, cannot be written, or the pool stopped.
    ///
    /// # Panics
    /// When a request is under way.
    pub fn add_disk(mut self, file: FileIndex, new: &NewDisk) -> Result<Q, ChangeError> {
        let members = &self.core.members;
        let config = &members.config;
        if config.disks.len() >= DISKS_MAX {
            return Err(ChangeError::TooMany { name: config.name.clone() });
        }
        if members.geometry.slabs(new.bytes) == 0 {
            return Err(too_small(new, &members.geometry).into());
        }
        self.come_to_rest()?;
        let ordinal = self.core.enlist(file, new)?;
        self.core.attach(ordinal)?;
        if !self.core.members.is_online(ordinal) {
            return Err(ChangeError::DiskFailed { name: new.name.clone() });
        }
        Ok(self.into_queue())
    }

    /// Lets everything end, begins nothing new, and writes a checkpoint that leaves no extent open but those that the start left
    /// for later.
    fn come_to_rest(&mut self) -> Result<(), Halt> {
        assert!(self.clients.iter().all(|client| !client.busy), "a request is under way");
        self.cancel_moves();
        self.ending = true;
        loop {
            if let Some(halt) = self.halted {
                return Err(halt);
            }
            if self.core.io.in_flight() == 0 && self.trouble.is_empty() {
                break;
            }
            self.poll(Nanos(self.now.0.saturating_add(STEP.0)), STEP);
        }
        self.core.journal.frame = None;
        self.core.journal.flush = None;
        if self.core.flush_broken || !self.core.checkpoint(true)? {
            return Err(Halt::Unflushed);
        }
        Ok(())
    }
}

impl<Q: FlushQueue> Core<Q> {
    /// The configuration in memory becomes the pool's next generation.
    fn announce(&mut self) -> Result<(), Halt> {
        self.members.succeed();
        let voters = self.members.config.voters.clone();
        let failed = self.members.publish(&mut self.io, &voters);
        self.do_without(failed)?;
        self.sync()
    }

    /// Unmaps everything of a virtual disk, durably.
    fn free_extents(&mut self, vdisk: usize) -> Result<(), Halt> {
        let own = &self.members.config.vdisks[vdisk];
        let range = own.first_extent..own.first_extent + own.extents;
        let mapped: Vec<u32> =
            range.filter(|extent| self.extents.place(*extent) != UNMAPPED).collect();
        for some in mapped.chunks(FREED_AT_ONCE) {
            for &extent in some {
                self.vacate(extent, Record::MapFree { extent });
                self.extents.unmap(extent);
                self.trees.touch_map(extent);
                self.trees.touch_sums(extent, self.extents.blocks);
            }
            if !self.checkpoint(true)? {
                return Err(Halt::Unflushed);
            }
        }
        Ok(())
    }

    /// Names a new disk in the configuration, as one that is missing, and writes it a superblock: then it can
    /// come back like any other. Its ordinal.
    fn enlist(&mut self, file: FileIndex, new: &NewDisk) -> Result<u16, ChangeError> {
        let members = &mut self.members;
        let ordinal = u16::try_from(members.config.disks.len()).unwrap_or(u16::MAX);
        let id = members.random.id();
        let epoch = members.epoch;
        if let Some(nth) = members.config.disk_named(&new.name) {
            members.config.disks[usize::from(nth)].name = members.config.former_name(nth);
        }
        members.config.disks.push(DiskConfig {
            id,
            media: new.media,
            state: DiskState::Missing,
            metadata: false,
            leaving: false,
            known_epoch: epoch,
            served_epoch: 0,
            device_bytes: new.bytes,
            name: new.name.clone(),
        });
        members.superblocks.push(Some(Superblock {
            incompat: 0,
            ro_compat: 0,
            pool: members.config.pool,
            device: id,
            ordinal,
            sector: 512,
            device_bytes: new.bytes,
            geometry: members.geometry,
            created: 0,
            version: 0,
            generation: members.config.generation,
            epoch_started: 0,
            epoch_served: 0,
            area: 1,
            records: [RecordName::default(); 2],
        }));
        members.begin.push(Half::default());
        members.online.push(false);
        self.lost.push(true);
        members.stale.push(crate::extents::ExtentSet::default());
        members.gone.push(false);
        members.kept.push(crate::extents::ExtentSet::default());
        members.stuck.push(crate::extents::ExtentSet::default());
        self.io.add_file(file);
        self.announce()?;
        let cleared = self.clear_journal(ordinal);
        let failed = self.members.publish(&mut self.io, &[ordinal]);
        match cleared && failed.is_empty() {
            true => Ok(ordinal),
            false => Err(ChangeError::DiskFailed { name: new.name.clone() }),
        }
    }

    /// What another pool left on a disk, or a part of this one that went on alone, must not be read as its journal: checkpoint pages and
    /// frames, those that lie behind its end included (JRN-1). What is zero already stays unwritten. `false` when the disk failed.
    fn clear_journal(&mut self, disk: u16) -> bool {
        let geometry = self.members.geometry;
        let (from, to) = (geometry.journal(), geometry.tree());
        let most = self.io.control_bytes();
        let mut bytes = vec![0; to_usize(most)];
        let mut offset = from;
        while offset < to {
            let some = &mut bytes[..to_usize(most.min(to - offset))];
            let is_clear = self.io.read(disk, offset, some) && some.iter().all(|byte| *byte == 0);
            some.fill(0);
            if !is_clear && !self.io.write(&[disk], offset, some).is_empty() {
                return false;
            }
            offset += to_u64(some.len());
        }
        true
    }
}

fn too_small(disk: &NewDisk, geometry: &Geometry) -> CreateError {
    let needed = geometry.slab(1) + (2 << 20);
    CreateError::Layout {
        reason: format!(
            "{} has {} bytes, and a disk with one slab takes {needed}",
            disk.name, disk.bytes
        ),
        remedy: "name a larger disk, or make the pool with smaller slabs".to_owned(),
    }
}

/// Slabs that nobody has, ascending, by disk.
fn free_slabs(config: &Config, geometry: &Geometry, able: &[bool]) -> Vec<Vec<u32>> {
    let taken: BTreeSet<(u16, u32)> = config.taken_slabs().collect();
    let of_disk = |(ordinal, disk): (u16, &DiskConfig)| {
        if !able[usize::from(ordinal)] {
            return Vec::new();
        }
        let all = 0..geometry.slabs(disk.device_bytes);
        all.filter(|slab| !taken.contains(&(ordinal, *slab))).rev().collect()
    };
    (0_u16..).zip(&config.disks).map(of_disk).collect()
}

/// Gives a virtual disk its slabs and its extents.
fn place_virtual_disk(
    config: &mut Config,
    geometry: &Geometry,
    wanted: &NewVirtualDisk,
    id: u128,
    able: &[bool],
) -> Result<(), ChangeError> {
    if config.vdisks.iter().any(|vdisk| vdisk.name == wanted.name) {
        return Err(ChangeError::Exists { name: wanted.name.clone() });
    }
    let mut free = free_slabs(config, geometry, able);
    let mut vdisk = VirtualDisk {
        id,
        name: wanted.name.clone(),
        copies: wanted.copies,
        columns: wanted.columns,
        interleave: wanted.interleave,
        first_extent: 0,
        extents: 0,
        tiers: Vec::new(),
        cache: None,
    };
    let tiers = wanted.tier_bytes.iter().filter(|bytes| **bytes > 0).count();
    for (media, bytes) in [MediaType::Ssd, MediaType::Hdd].into_iter().zip(wanted.tier_bytes) {
        if bytes == 0 {
            continue;
        }
        let rows = rows(config, geometry, wanted, (media, bytes), &mut free)?;
        let slots = slots_of_tier(&vdisk, rows.len(), geometry, config.extent_bytes);
        let usable = slots - move_reserve(slots, tiers);
        vdisk.extents = vdisk.extents.saturating_add(usable);
        vdisk.tiers.push(Tier { media, rows });
    }
    if vdisk.tiers.is_empty() {
        return Err(CreateError::Layout {
            reason: format!("virtual disk {} has no tier", wanted.name),
            remedy: "give it a size".to_owned(),
        }
        .into());
    }
    if wanted.cache_bytes > 0 {
        vdisk.cache = Some(cache(config, geometry, wanted, &mut free)?);
    }
    let before = config.clone();
    let extents = vdisk.extents;
    number_extents(config, vdisk.clone());
    let needed = tree_pages(config);
    if needed <= u64::from(geometry.tree_pages()) {
        return Ok(());
    }
    // What is there keeps its extents, so less may fit between than there are slabs.
    let fits = |extents: u32| {
        let mut config = before.clone();
        number_extents(&mut config, VirtualDisk { extents, ..vdisk.clone() });
        tree_pages(&config) <= u64::from(geometry.tree_pages())
    };
    let (mut most, mut too_many) = (0, extents);
    while too_many - most > 1 {
        let middle = most.midpoint(too_many);
        *(if fits(middle) { &mut most } else { &mut too_many }) = middle;
    }
    // Space is given out in whole rows.
    let row_bytes = geometry.slab_bytes * u64::from(vdisk.columns);
    let most = u64::from(most) * u64::from(config.extent_bytes) / row_bytes * row_bytes;
    Err(CreateError::Layout {
        reason: format!(
            "the pool's area for map and checksums has {} pages, and {needed} would be needed",
            geometry.tree_pages()
        ),
        remedy: format!(
            "{}: the area is fixed when a pool is made, and virtual disks that are there keep their parts of it",
            match most {
                0 => "remove another virtual disk first".to_owned(),
                most => format!("ask for {} or less", to_ask(most)),
            }
        ),
    }
    .into())
}

/// Pages for both trees when everything is mapped: a checkpoint writes anew what has changed, beside what was there.
fn tree_pages(config: &Config) -> u64 {
    let extents = u64::from(config.extents());
    let leaf = to_u64(LEAF_ENTRIES);
    let leaves =
        extents.div_ceil(leaf) + (extents * u64::from(config.extent_blocks())).div_ceil(leaf);
    2 * (leaves + leaves / 256 + 4) + 16
}

/// A log with a copy on each of as many solid-state disks as the virtual disk has copies (RES-7).
fn cache(
    config: &Config,
    geometry: &Geometry,
    wanted: &NewVirtualDisk,
    free: &mut [Vec<u32>],
) -> Result<CacheConfig, CreateError> {
    let slabs = to_usize(wanted.cache_bytes.div_ceil(geometry.slab_bytes));
    let whole = wanted.cache_bytes.is_multiple_of(BLOCK_BYTES) && wanted.cache_bytes >= CACHE_MIN;
    if !whole || wanted.tier_bytes.contains(&0) {
        return Err(CreateError::Layout {
            reason: format!(
                "virtual disk {} has a write-back cache of {} bytes and tiers of {:?} bytes",
                wanted.name, wanted.cache_bytes, wanted.tier_bytes
            ),
            remedy: format!("give it two tiers and a cache of {CACHE_MIN} bytes or more, or none"),
        });
    }
    let copies = usize::from(wanted.copies);
    let mut able: Vec<usize> = (0..free.len())
        .filter(|&disk| config.disks[disk].media == MediaType::Ssd && free[disk].len() >= slabs)
        .collect();
    if able.len() < copies || copies == 0 {
        return Err(CreateError::Cache {
            name: wanted.name.clone(),
            needed: copies,
            found: able.len(),
            slabs: to_u32(slabs),
        });
    }
    able.sort_by_key(|&disk| (std::cmp::Reverse(free[disk].len()), disk));
    let copy = |&disk: &usize| {
        let left = free[disk].len() - slabs;
        let slabs = free[disk].drain(left..).rev().collect();
        CacheCopy { disk: u16::try_from(disk).unwrap_or(u16::MAX), current: true, slabs }
    };
    Ok(CacheConfig { bytes: wanted.cache_bytes, copies: able[..copies].iter().map(copy).collect() })
}

/// Rows for at least `bytes`, each on the disks with most free slabs (RES-1).
fn rows(
    config: &Config,
    geometry: &Geometry,
    wanted: &NewVirtualDisk,
    (media, bytes): (MediaType, u64),
    free: &mut [Vec<u32>],
) -> Result<Vec<Row>, CreateError> {
    let width = usize::from(wanted.copies) * usize::from(wanted.columns);
    let row_bytes = geometry.slab_bytes * u64::from(wanted.columns);
    let mut rows = Vec::new();
    for _ in 0..bytes.div_ceil(row_bytes.max(1)) {
        let mut able: Vec<usize> = (0..free.len())
            .filter(|&disk| config.disks[disk].media == media && !free[disk].is_empty())
            .collect();
        if able.len() < width || width == 0 {
            return Err(no_space(wanted, (media, able.len()), row_bytes * to_u64(rows.len())));
        }
        able.sort_by_key(|&disk| (std::cmp::Reverse(free[disk].len()), disk));
        let slab = |&disk: &usize| {
            free[disk].pop().map(|slab| (u16::try_from(disk).unwrap_or(u16::MAX), slab))
        };
        rows.push(Row { slabs: able[..width].iter().filter_map(slab).collect() });
    }
    debug_assert!(index(to_u32(rows.len())) == rows.len());
    Ok(rows)
}
