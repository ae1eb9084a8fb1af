//! Pools are made, grow by disks, and are destroyed. No disk with recognisable data is taken without the
//! user's word (HLT-3).

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use plumb_io::contents::{self, FindingKind, Verdict};
use plumb_io::exclusive::{self, ExclusiveDisk, OtherNames};
use plumb_io::system_tree::SystemTree;
use plumb_io::{FileIndex, TargetFile};
use plumb_units::convert::{to_u32, to_u64};
use rustix::fs::{FallocateFlags, fallocate};

use super::chronicle::Chronicle;
use super::devices::DeviceQueue;
use super::emulation::Emulated;
use super::look::{look, open_to_read, superblocks};
use super::open::{
    FILES_BESIDE, PATIENCE, PoolError, descriptor_path, fresh_seed, make_room, of_the_disk, open,
    slot_plan,
};
use super::registry::{RegisteredPool, Registry, RegistryError};
use super::replace::takes_its_place;
use super::settings::PoolSettings;
use crate::create::{NewDisk, NewPool, create};
use crate::engine::ChangeError;
use crate::events::Event;
use crate::format::{Config, Geometry, MediaType};
use crate::recover::StartError;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The largest logical sector that 4 KiB blocks can be written in.
const SECTOR_MAX: u32 = 4096;

/// A disk that is to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskWish {
    /// Where it is.
    pub path: PathBuf,
    /// What it is, if not what the kernel says. Files count as solid state.
    pub media: Option<MediaType>,
    /// Whether the user said that all it holds may be lost.
    pub destroy: bool,
}

/// A pool that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolWish {
    /// Its name.
    pub name: String,
    /// Its disks.
    pub disks: Vec<DiskWish>,
    /// Bytes of a slab: a power of two from 16 MiB to 1 GiB; `None` for what suits the smallest disk.
    pub slab_bytes: Option<u64>,
    /// Models that its disks are slowed down to, by their media.
    pub emulated: Vec<Emulated>,
}

/// Bytes of an extent (section 2).
const EXTENT_BYTES: u32 = 1 << 20;

/// Makes a pool and writes down where it is.
///
/// # Errors
/// When a disk is not taken, has no room, or cannot be written; before anything is written if it can be known
/// then.
pub fn make(registry: &Registry, wish: &PoolWish) -> Result<RegisteredPool, PoolError> {
    let _claim = registry.claim(&wish.name)?;
    if registry.has(&wish.name)? {
        return Err(RegistryError::Exists { name: wish.name.clone() }.into());
    }
    if let Some(slab) = wish.slab_bytes
        && !(slab.is_power_of_two() && (16 * MIB..=GIB).contains(&slab))
    {
        return Err(crate::CreateError::Layout {
            reason: format!("slabs of {slab} bytes"),
            remedy: "use a power of two from 16M to 1G".to_owned(),
        }
        .into());
    }
    registry.is_ready()?;
    make_room(wish.disks.len(), FILES_BESIDE)?;
    let mut disks = Vec::new();
    for (nth, disk) in wish.disks.iter().enumerate() {
        let same = |other: &DiskWish| is_same(&other.path, &disk.path);
        if wish.disks[..nth].iter().any(same) {
            return Err(PoolError::Twice { path: disk.path.clone() });
        }
        disks.push(take(disk)?);
    }
    let geometry = geometry(wish.slab_bytes, &disks.iter().map(|d| d.size).collect::<Vec<_>>());
    for disk in &disks {
        has_room(disk, &geometry)?;
    }
    let paths = disks.iter().map(|disk| absolute(&disk.path)).collect::<Result<Vec<_>, _>>()?;
    let new = wish.disks.iter().zip(&disks).zip(&paths);
    let new = new.map(|((wish, disk), path)| new_disk(wish, disk, path)).collect();
    disks.iter().try_for_each(wipe_ends)?;
    let plan = slot_plan(to_u32(disks.len()), &PoolSettings::default());
    // Kept until it is made.
    let (files, _names): (Vec<TargetFile>, Vec<OtherNames>) =
        disks.into_iter().map(ExclusiveDisk::into_target).unzip();
    let pool = NewPool {
        name: wish.name.clone(),
        extent_bytes: EXTENT_BYTES,
        geometry,
        disks: new,
        vdisks: Vec::new(),
    };
    let config = create(DeviceQueue::open(&plan, files)?, plan, &pool, fresh_seed())?;
    let made = RegisteredPool {
        name: wish.name.clone(),
        id: config.pool,
        disks: paths,
        emulated: wish.emulated.clone(),
        settings: PoolSettings::default(),
    };
    registry.put(&made)?;
    Ok(made)
}

/// Brings a disk into a pool.
///
/// # Errors
/// When it is not taken, or the pool cannot be started.
pub fn add_disk(
    registry: &Registry,
    pool: &RegisteredPool,
    wish: &DiskWish,
) -> Result<(), PoolError> {
    add_disk_for(registry, pool, wish, None)
}

/// The same, for a disk that is to go then: where what that one holds would have no room, nothing is written.
pub(super) fn add_disk_for(
    registry: &Registry,
    pool: &RegisteredPool,
    wish: &DiskWish,
    leaves: Option<u16>,
) -> Result<(), PoolError> {
    let _claim = registry.claim(&pool.name)?;
    // Another one may have been added since it was found.
    let pool = &registry.find(&pool.name)?;
    let count = pool.disks.len() + 1;
    make_room(count, FILES_BESIDE + to_u64(count))?;
    let found = look(Some(pool.id), &pool.disks)?;
    // Where the list is to be as it was, if nothing comes of it.
    let mut kept = pool.clone();
    let mut before = pool.clone();
    if let Some(nth) = pool.disks.iter().position(|disk| is_same(disk, &wish.path)) {
        if belongs(&found.config, &pool.disks[nth]) {
            let name = wish.path.display().to_string();
            return Err(ChangeError::HasDisk { name }.into());
        }
        before.disks.remove(nth);
        // One that was there is gone, and another one has come to its place. Else it was to be added before, and whoever did
        // that was killed.
        if found.config.disk_named(&pool.disks[nth].display().to_string()).is_none() {
            kept = before.clone();
        }
    }
    let disk = take(wish)?;
    let path = absolute(&disk.path)?;
    let new = new_disk(wish, &disk, &path);
    has_room(&disk, &found.geometry)?;
    let (present, voters) = found.voters();
    if 2 * present <= voters {
        // No start goes well, and the disk keeps what it holds.
        return Err(StartError::NoQuorum { present, voters }.into());
    }
    if let Some(old) = leaves {
        takes_its_place(&found, (old, &new))?;
    }
    wipe_ends(&disk)?;
    // Known before it is one of the pool's, so that no start misses it.
    let mut pool = before.clone();
    pool.disks.push(path);
    registry.put(&pool)?;
    let started = open(&before, vec![disk], (1, 4096));
    let added = started.and_then(|started| {
        let started = started.with_start_noted(registry);
        let file = FileIndex(started.present - 1);
        let mut config = started.engine.config().clone();
        let spared = leaves.map_or(Ok(()), |old| started.engine.can_spare(old));
        if let Err(error) = spared {
            // Nothing was changed; a clean end leaves the next start less to do.
            let _ = started.end();
            return Err(error.into());
        }
        started.engine.add_disk(file, &new)?;
        let ordinal = u16::try_from(config.disks.len()).unwrap_or(u16::MAX);
        config
            .disks
            .push(crate::DiskConfig { name: new.name.clone(), ..crate::DiskConfig::default() });
        Chronicle::of(registry, &before.name).note(&Event::DiskAdded(ordinal), &config);
        Ok(())
    });
    match added {
        Ok(()) => Ok(()),
        Err(error) => {
            registry.put(&kept)?;
            Err(error)
        }
    }
}

/// Whether a place that is known as a pool's holds one of its disks, by what is there. One that cannot be read may.
fn belongs(config: &Config, place: &Path) -> bool {
    let Ok(said) = superblocks(place) else { return true };
    let ids = said.ids_of(config.pool);
    let own = (0_u16..).zip(&config.disks).filter(|(ordinal, _)| !config.is_gone(*ordinal));
    own.into_iter().any(|(_, disk)| ids.contains(&disk.id))
}

/// Destroys a pool: its disks are free again, and what it held is lost. Disks that are not here are returned:
/// they still say that they belong to it.
///
/// # Errors
/// When it holds virtual disks and `sure` is false, or a disk is in use.
pub fn destroy(
    registry: &Registry,
    pool: &RegisteredPool,
    sure: bool,
) -> Result<Vec<PathBuf>, PoolError> {
    let tree = SystemTree::default();
    // A pool that cannot be read is one of which nobody knows what it holds.
    let names: Vec<String> = match look(Some(pool.id), &pool.disks) {
        Ok(found) => {
            let vdisks = found.config.vdisks.iter().filter(|vdisk| !vdisk.is_removed());
            vdisks.map(|vdisk| vdisk.name.clone()).collect()
        }
        Err(_) if sure => Vec::new(),
        Err(source) => {
            return Err(PoolError::Unread { name: pool.name.clone(), source: Box::new(source) });
        }
    };
    if !names.is_empty() && !sure {
        let (name, count) = (pool.name.clone(), names.len());
        return Err(PoolError::HoldsData { name, count, list: names.join(", ") });
    }
    make_room(pool.disks.len(), FILES_BESIDE)?;
    let (mut disks, mut away) = (Vec::new(), Vec::new());
    for path in &pool.disks {
        let ours = of_the_disk(path, superblocks(path))?.is_ok_and(|said| said.is_of(pool.id));
        if ours {
            disks.push(exclusive::open(path, PATIENCE, &tree)?);
        } else {
            away.push(path.clone());
        }
    }
    disks.iter().try_for_each(wipe_ends)?;
    registry.forget(&pool.name)?;
    Ok(away)
}

fn new_disk(wish: &DiskWish, disk: &ExclusiveDisk, path: &Path) -> NewDisk {
    let found = if disk.rotational == Some(true) { MediaType::Hdd } else { MediaType::Ssd };
    NewDisk {
        media: wish.media.unwrap_or(found),
        bytes: disk.size,
        name: path.display().to_string(),
    }
}

/// The area for pages of map and checksums is at most one in so many of the smallest disk's bytes.
const TREE_SHARE: u64 = 16;

/// Sizes of the areas: those of the format for disks of 16 GiB or more, smaller ones below.
fn geometry(slab: Option<u64>, disks: &[u64]) -> Geometry {
    let smallest = disks.iter().copied().min().unwrap_or(0);
    let total: u64 = disks.iter().sum();
    let slab = slab.unwrap_or(match smallest {
        bytes if bytes >= 16 * GIB => 256 * MIB,
        bytes if bytes >= 4 * GIB => 64 * MIB,
        _ => 16 * MIB,
    });
    // What is here, were all of it mapped once. The area is on every disk, so it takes no more than a share of the smallest one: where
    // that maps less, virtual disks beyond it are refused.
    let standard = Geometry::standard(slab, total);
    let most = (smallest / TREE_SHARE).next_multiple_of(MIB).max(4 * MIB);
    let standard = Geometry { tree_bytes: standard.tree_bytes.min(most), ..standard };
    if smallest >= 16 * GIB {
        return standard;
    }
    let journal = (smallest / 32).next_multiple_of(MIB).clamp(8 * MIB, 64 * MIB);
    Geometry { config_bytes: MIB, journal_bytes: journal, ..standard }
}

fn has_room(disk: &ExclusiveDisk, geometry: &Geometry) -> Result<(), PoolError> {
    if geometry.slabs(disk.size) > 0 {
        return Ok(());
    }
    let needed = geometry.slab(1) + 2 * MIB;
    Err(PoolError::CannotPool {
        path: disk.path.clone(),
        reason: format!(
            "has {} bytes: too few for one slab beside the metadata (Insufficient Capacity)",
            disk.size
        ),
        remedy: format!("name a disk of {needed} bytes or more, or use smaller slabs"),
    })
}

/// Refuses a path that the list of pools cannot hold: it is text, a disk to a line.
pub(super) fn is_listable(path: &Path) -> Result<(), PoolError> {
    if path.to_str().is_some_and(|text| !text.chars().any(char::is_control)) {
        return Ok(());
    }
    Err(PoolError::CannotPool {
        path: path.to_owned(),
        reason: "has a name with a line end, another control character, or bytes that are no UTF-8"
            .to_owned(),
        remedy: "nothing was written. Rename it, or name it by a link".to_owned(),
    })
}

/// A path as a shell reads it as one word.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Opens a disk that may be taken.
fn take(wish: &DiskWish) -> Result<ExclusiveDisk, PoolError> {
    let tree = SystemTree::default();
    is_listable(&wish.path)?;
    let refused = |reason: String, remedy: String| PoolError::CannotPool {
        path: wish.path.clone(),
        reason,
        remedy,
    };
    if let Ok(found) = std::fs::metadata(&wish.path)
        && !found.is_file()
        && !found.file_type().is_block_device()
    {
        return Err(refused(
            "is neither a file nor a block device".to_owned(),
            "name a block device, or a file; --file-size makes files".to_owned(),
        ));
    }
    let quoted = shell_word(&wish.path);
    let override_with = format!(
        "nothing was written. Name another disk, or, if all of this may be lost for good, add: --destroy {quoted}"
    );
    // Looked at first: once it is claimed, the claim itself would be found.
    if let Ok(file) = of_the_disk(&wish.path, open_to_read(&wish.path))?
        && !wish.destroy
    {
        if let Ok(said) = of_the_disk(&wish.path, superblocks(&wish.path))?
            && let Some(copy) = said.copies.first()
        {
            let reason =
                format!("is disk {} of a pool (In a Pool, id {:032x})", copy.ordinal, copy.pool);
            return Err(refused(reason, override_with));
        }
        let found = contents::inspect(file.as_fd(), &wish.path, &tree);
        let data: Vec<String> = found
            .findings
            .iter()
            .filter(|finding| finding.kind != FindingKind::InUse)
            .map(|finding| format!("\n  - {finding}"))
            .collect();
        let held = if found.verdict == Verdict::Refused && !data.is_empty() {
            held(file)
        } else {
            Held::Nothing
        };
        match held {
            Held::Nothing => {}
            Held::Begun => {
                let reason = "holds what Plumb wrote for a pool: one that was removed, or that a command which was cut \
                              short had begun";
                return Err(refused(reason.to_owned(), override_with));
            }
            Held::Data => {
                return Err(refused(format!("holds data:{}", data.concat()), override_with));
            }
        }
    }
    let disk = exclusive::open(&wish.path, PATIENCE, &tree)?;
    if disk.logical_sector > SECTOR_MAX {
        return Err(refused(
            format!("has sectors of {} bytes (Wrong Sector Size)", disk.logical_sector),
            "name a disk with sectors of 512 or 4096 bytes".to_owned(),
        ));
    }
    if disk.size == 0 {
        return Err(refused(
            "is empty (0 bytes)".to_owned(),
            "give it a size first: truncate -s 4G FILE".to_owned(),
        ));
    }
    Ok(disk)
}

/// What a file holds that nobody vouches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// No byte that was ever written, or zeros: what a command that was cut short leaves of a file for a disk.
    Nothing,
    /// What a pool begins with, without a superblock.
    Begun,
    /// Anything else.
    Data,
}

/// Bytes of a file that are read for that, at most: those that are written of a disk before it has a superblock.
const HELD_MAX: u64 = 16 * MIB;

fn held(mut file: File) -> Held {
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Held::Data;
    }
    // Where holes cannot be told the whole file is data.
    let found = held_in(&file).unwrap_or(Held::Data);
    if file.seek(SeekFrom::Start(0)).is_ok() { found } else { Held::Data }
}

fn held_in(file: &File) -> std::io::Result<Held> {
    use rustix::fs::SeekFrom::{Data, Hole};
    let Some(mut at) = exclusive::first_data(file)? else { return Ok(Held::Nothing) };
    let (mut read, mut is_zero) = (0, true);
    loop {
        let begins = match rustix::fs::seek(file, Data(at)) {
            Err(rustix::io::Errno::NXIO) => break,
            other => other?,
        };
        at = rustix::fs::seek(file, Hole(begins))?;
        let mut page = vec![0; 4096];
        // A page that is cut off by the end of the file is no disk's.
        for offset in (begins / 4096 * 4096..at).step_by(page.len()) {
            read += 4096;
            if read > HELD_MAX {
                return Ok(Held::Data);
            }
            file.read_exact_at(&mut page, offset)?;
            if crate::format::begins_a_pool(&page) {
                return Ok(Held::Begun);
            }
            is_zero &= page.iter().all(|byte| *byte == 0);
        }
    }
    Ok(if is_zero { Held::Nothing } else { Held::Data })
}

/// Takes a pool off a disk that has left it: a device loses its marks, and of a file all goes, so that it is as empty as one that
/// was just made. The marks go last: who is killed before that finds a disk that was removed, and begins anew.
pub(super) fn make_blank(disk: &ExclusiveDisk) -> Result<(), PoolError> {
    let empty = |start: u64, end: u64| {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if !disk.is_device && start < end {
            // Where a file system makes no holes, what the pool wrote stays there.
            let _ = fallocate(&disk.descriptor, flags, start, end - start);
        }
    };
    empty(MIB, disk.size.saturating_sub(MIB));
    wipe_ends(disk)?;
    empty(0, disk.size);
    Ok(())
}

pub(super) fn wipe_ends(disk: &ExclusiveDisk) -> Result<(), PoolError> {
    let zeros = vec![0; usize::try_from(MIB).unwrap_or(1 << 20)];
    let wipe = || {
        let file = OpenOptions::new().write(true).open(descriptor_path(disk))?;
        file.write_all_at(&zeros, 0)?;
        file.write_all_at(&zeros, disk.size.saturating_sub(MIB))?;
        file.sync_all()
    };
    wipe().map_err(|source| PoolError::Write { path: disk.path.clone(), source })
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, PoolError> {
    // A link stays one: /dev/disk/by-id/… names the disk wherever it turns up.
    std::path::absolute(path).map_err(|source| PoolError::Write { path: path.to_owned(), source })
}

pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        let device = found.file_type().is_block_device();
        Some(if device { (u64::MAX, found.rdev()) } else { (found.dev(), found.ino()) })
    };
    match (identity(one), identity(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_suit_the_smallest_disk() {
        for (disks, slab, journal) in [
            (vec![64 * MIB, GIB], 16 * MIB, 8 * MIB),
            (vec![GIB; 2], 16 * MIB, 32 * MIB),
            (vec![8 * GIB; 2], 64 * MIB, 64 * MIB),
            (vec![400 * GIB; 4], 256 * MIB, 256 * MIB),
        ] {
            let found = geometry(None, &disks);
            assert!(found.is_sane(), "{found:?}");
            assert_eq!((found.slab_bytes, found.journal_bytes), (slab, journal), "{disks:?}");
            assert!(found.slabs(disks[0]) > 0, "{disks:?}");
        }
        assert_eq!(geometry(Some(GIB), &[64 * GIB]).slab_bytes, GIB);
    }

    /// What a large pool needs to find its blocks leaves small disks in it their room.
    #[test]
    fn the_area_for_pages_leaves_small_disks_their_room() {
        let tib = 1024 * GIB;
        for disks in [
            [vec![200 * GIB; 2], vec![12 * tib; 4]].concat(),
            [vec![tib; 2], vec![16 * tib; 8]].concat(),
            vec![4 * tib; 1024],
        ] {
            let found = geometry(None, &disks);
            let room = u64::from(found.slabs(disks[0])) * found.slab_bytes;
            assert!(found.is_sane() && room * 10 > disks[0] * 9, "{found:?}: {room}");
        }
        // Twelve equal disks can map all that they have.
        let mapped = geometry(None, &[4 * tib; 12]).tree_bytes / 9 * 4 * 1000;
        assert!(mapped + GIB >= 48 * tib, "{mapped}");
    }
}
