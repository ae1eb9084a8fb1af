//! Disks leave a pool: emptied first while they work, rebuilt elsewhere if they do not.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_io::exclusive;
use plumb_io::system_tree::SystemTree;

use super::findings::note_start;
use super::look::{DiskStanding, Look, look, superblocks};
use super::make::{DiskWish, absolute, add_disk_for, is_same, make_blank};
use super::open::{OpenPool, PATIENCE, PoolError, open};
use super::registry::{RegisteredPool, Registry};
use crate::create::NewDisk;
use crate::engine::{Engine, JobState};
use crate::format::DiskConfig;
use crate::room::has_room_for;

/// How often progress is told.
const TOLD_EVERY: Duration = Duration::from_millis(500);

/// What became of the removal of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The disk's name in the pool.
    pub name: String,
    /// It holds nothing any more, and the pool does without it.
    pub is_gone: bool,
    /// Its superblocks were taken off: it can be used for anything.
    pub is_blank: bool,
    /// What is left to do.
    pub jobs: Vec<JobState>,
    /// Extents that were moved or made anew.
    pub extents: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// What to do about a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// Empty it now, and take it out.
    Now,
    /// Remember that it is to go: it is emptied whenever the pool is started.
    Later,
    /// Let it stay after all, with what it has.
    Never,
}

/// Ordinal of the disk that `path` names: the one that is there now, else by its name in the pool, which is where it was
/// when it joined. Where disks have changed places, what is there now counts.
///
/// # Errors
/// When it is none of the pool's.
pub fn find_disk(found: &Look, path: &Path) -> Result<u16, PoolError> {
    let full = absolute(path)?;
    let text = full.display().to_string();
    let config = &found.config;
    let disks = (0_u16..).zip(config.disks.iter().zip(&found.disks));
    let here = |look: &super::DiskLook| look.path.as_ref().is_some_and(|own| is_same(own, &full));
    let own = disks.filter(|(nth, _)| !config.is_gone(*nth));
    let is_there = |(_, (_, look)): &(u16, (&crate::DiskConfig, &super::DiskLook))| here(look);
    let is_named = |(_, (disk, _)): &(u16, (&crate::DiskConfig, &super::DiskLook))| {
        disk.name == text || Path::new(&disk.name) == path
    };
    let found = own.clone().find(is_there).or_else(|| own.clone().find(is_named));
    found.map(|(nth, _)| nth).ok_or_else(|| PoolError::NoDisk {
        pool: config.name.clone(),
        path: path.to_owned(),
        known: (0_u16..)
            .zip(&config.disks)
            .filter(|(nth, _)| !config.is_gone(*nth))
            .map(|(_, disk)| disk.name.clone())
            .collect(),
    })
}

/// Brings a disk into a pool and takes another one out, which may have been in the same place. Where what that one holds would have no
/// room then, nothing is done.
///
/// # Errors
/// When a disk is none of the pool's, the new one is not taken, or the old one cannot leave.
pub fn replace_disk(
    registry: &Registry,
    pool: &RegisteredPool,
    (old, new): (&Path, &DiskWish),
    progress: &mut dyn FnMut(&[JobState]),
) -> Result<Removal, PoolError> {
    // Known before anything is changed.
    let found = look(Some(pool.id), &pool.disks)?;
    let mut leaves = find_disk(&found, old)?;
    // One that was cut short: who is in the place is the new one already, and the one that was there is not here.
    let former = is_same(old, &new.path).then(|| former(&found, pool, leaves)).flatten();
    leaves = former.unwrap_or(leaves);
    // A name alone is where one was that is not here.
    let is_here = |nth: &u16| found.disks[usize::from(*nth)].path.is_some();
    let there = find_disk(&found, &new.path).ok().filter(|nth| *nth != leaves && is_here(nth));
    let leaving = found.config.disks[usize::from(leaves)].leaving;
    // One that was cut short is ended: the new disk holds nothing, or what the old one held.
    let is_begun = former.is_some() || leaving;
    if !there.is_some_and(|nth| is_begun || found.config.used_slabs(nth).is_empty()) {
        add_disk_for(registry, pool, new, Some(leaves))?;
    }
    remove(registry, &registry.find(&pool.name)?, leaves, Leaving::Now, progress)
}

/// Of a disk that is in its place, the one that was there before and is gone.
fn former(found: &Look, pool: &RegisteredPool, disk: u16) -> Option<u16> {
    let config = &found.config;
    let is_away = |nth: u16| found.disks[usize::from(nth)].path.is_none();
    let is_listed = |nth: &u16| {
        let name = &config.disks[usize::from(*nth)].name;
        pool.disks.iter().any(|path| path == Path::new(name))
    };
    let mut formers = config.formers_of(disk).filter(|nth| is_away(*nth) && !is_listed(nth));
    formers.next().filter(|_| !is_away(disk))
}

/// Whether what a disk holds would have room with a new one beside the others that take more.
pub(super) fn takes_its_place(found: &Look, (old, new): (u16, &NewDisk)) -> Result<(), PoolError> {
    let mut config = found.config.clone();
    config.disks.push(DiskConfig {
        media: new.media,
        device_bytes: new.bytes,
        name: new.name.clone(),
        ..DiskConfig::default()
    });
    let takes = |nth: &u16| {
        let own = found.disks.get(usize::from(*nth)).map(|disk| disk.standing);
        let here = matches!(own, None | Some(DiskStanding::Present | DiskStanding::Returning));
        *nth != old && here
    };
    let others: Vec<u16> = (0_u16..).take(config.disks.len()).filter(takes).collect();
    Ok(has_room_for(&config, &found.geometry, (old, &others))?)
}

/// Takes a disk out of a pool: what it holds is moved to others first, or made anew there if it is not here.
/// `progress` is told now and then what is left.
///
/// # Errors
/// When it is none of the pool's, or the others cannot hold what it holds: then nothing was changed.
pub fn remove_disk(
    registry: &Registry,
    pool: &RegisteredPool,
    path: &Path,
    how: Leaving,
    progress: &mut dyn FnMut(&[JobState]),
) -> Result<Removal, PoolError> {
    let found = look(Some(pool.id), &pool.disks)?;
    remove(registry, pool, find_disk(&found, path)?, how, progress)
}

/// The same, by its ordinal.
fn remove(
    registry: &Registry,
    pool: &RegisteredPool,
    ordinal: u16,
    how: Leaving,
    progress: &mut dyn FnMut(&[JobState]),
) -> Result<Removal, PoolError> {
    let found = look(Some(pool.id), &pool.disks)?;
    let nth = usize::from(ordinal);
    let name = found.config.disks[nth].name.clone();
    let open = open(pool, Vec::new(), (1, 4096));
    let mut open = note_start(registry, pool, open)?.chronicled(registry);
    // One that came back takes part before it leaves: what it alone has is not lost so.
    open.work_until(|engine| engine.returning().is_empty() && engine.is_quiet());
    let began = Instant::now();
    let before = open.engine.counters();
    match how {
        Leaving::Never => open.engine.stay(ordinal),
        Leaving::Now | Leaving::Later => {
            if let Err(error) = open.engine.leave(ordinal) {
                // Nothing was changed; a clean end leaves the next start less to do.
                let _ = open.end();
                return Err(error.into());
            }
        }
    }
    match how {
        Leaving::Now => work(&mut open, progress, &|| false),
        Leaving::Later | Leaving::Never => open.work_until(Engine::is_quiet),
    }
    let counters = open.engine.counters();
    let jobs = open.engine.jobs();
    let is_gone = open.engine.config().is_gone(ordinal);
    open.end()?;
    let place = found.disks[nth].path.clone();
    let mut is_blank = false;
    if is_gone {
        // The end took its marks off, if it could.
        forget(registry, &registry.find(&pool.name)?, place.as_deref(), &name)?;
        let is_free = |path: &PathBuf| superblocks(path).is_ok_and(|said| !said.is_of(pool.id));
        is_blank = place.as_ref().is_some_and(is_free);
    }
    let extents = (counters.moved - before.moved) + (counters.rebuilt - before.rebuilt);
    Ok(Removal { name, is_gone, is_blank, jobs, extents, elapsed: began.elapsed() })
}

/// Lets a pool do all that waits, and tells how far it is; what it has not come to when `stops` says so is left.
pub fn work(open: &mut OpenPool, progress: &mut dyn FnMut(&[JobState]), stops: &dyn Fn() -> bool) {
    let mut told = Instant::now();
    open.work_until(|engine| {
        if told.elapsed() >= TOLD_EVERY {
            told = Instant::now();
            progress(&engine.jobs());
        }
        stops() || !engine.has_work()
    });
}

/// Takes the pool's marks off disks that were removed while another program had the pool, and off the list of its disks.
/// To be called when nobody has it.
///
/// # Errors
/// When the list cannot be written.
pub fn forget_removed(registry: &Registry, pool: &str) -> Result<(), PoolError> {
    let pool = registry.find(pool)?;
    let found = look(Some(pool.id), &pool.disks)?;
    let is_removed = |path: &&PathBuf| {
        let Ok(said) = superblocks(path) else { return false };
        let ours = said.is_of(pool.id);
        let id = said.copies.iter().find(|copy| copy.pool == pool.id).map(|copy| copy.device);
        let nth = found.config.disks.iter().position(|disk| Some(disk.id) == id);
        let nth = nth.and_then(|nth| u16::try_from(nth).ok());
        ours && nth.is_some_and(|nth| found.config.is_gone(nth))
    };
    let removed: Vec<PathBuf> = pool.disks.iter().filter(is_removed).cloned().collect();
    for path in removed {
        // Each leaves the list by itself.
        let now = registry.find(&pool.name)?;
        forget(registry, &now, Some(&path), &path.display().to_string())?;
    }
    Ok(())
}

/// Takes the pool's marks off a disk that is not part of it any more, if it is here.
fn forget(
    registry: &Registry,
    pool: &RegisteredPool,
    place: Option<&Path>,
    name: &str,
) -> Result<(), PoolError> {
    // Its name may be where another one is by now.
    let is_it = |path: &PathBuf| match place {
        Some(place) => is_same(place, path),
        None => path.display().to_string() == name,
    };
    let claim = registry.claim(&pool.name)?;
    let mut left = registry.find(&pool.name)?;
    left.disks.retain(|path| !is_it(path));
    registry.put(&left)?;
    drop(claim);
    let Some(place) = place else { return Ok(()) };
    let ours = superblocks(place).is_ok_and(|said| said.is_of(pool.id));
    if ours && let Ok(disk) = exclusive::open(place, PATIENCE, &SystemTree::default()) {
        // If it fails, or somebody has it: the pool ignores it for ever, with its marks or without.
        let _ = make_blank(&disk);
    }
    Ok(())
}
