//! Disks leave a pool: emptied first while they work, rebuilt elsewhere if they do not.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_io::exclusive;
use plumb_io::system_tree::SystemTree;

use super::look::{Look, look, superblocks};
use super::make::{absolute, is_same, wipe_ends};
use super::open::{OpenPool, PATIENCE, PoolError, open};
use super::registry::{RegisteredPool, Registry};
use crate::engine::{Engine, JobState};

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

/// Ordinal of the disk that `path` names, by where it is or by its name in the pool.
///
/// # Errors
/// When it is none of the pool's.
pub fn find_disk(found: &Look, path: &Path) -> Result<u16, PoolError> {
    let full = absolute(path)?;
    let text = full.display().to_string();
    let config = &found.config;
    let disks = (0_u16..).zip(config.disks.iter().zip(&found.disks));
    let here = |look: &super::DiskLook| look.path.as_ref().is_some_and(|own| is_same(own, &full));
    let is_it = |(nth, (disk, look)): &(u16, (&crate::DiskConfig, &super::DiskLook))| {
        !config.is_gone(*nth) && (here(look) || disk.name == text || Path::new(&disk.name) == path)
    };
    disks.into_iter().find(is_it).map(|(nth, _)| nth).ok_or_else(|| PoolError::NoDisk {
        pool: config.name.clone(),
        path: path.to_owned(),
        known: (0_u16..)
            .zip(&config.disks)
            .filter(|(nth, _)| !config.is_gone(*nth))
            .map(|(_, disk)| disk.name.clone())
            .collect(),
    })
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
    let ordinal = find_disk(&found, path)?;
    let nth = usize::from(ordinal);
    let name = found.config.disks[nth].name.clone();
    let mut open = open(pool, Vec::new(), (1, 4096))?.chronicled(registry);
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
        Leaving::Now => work(&mut open, progress),
        Leaving::Later | Leaving::Never => open.work_until(Engine::is_quiet),
    }
    let counters = open.engine.counters();
    let jobs = open.engine.jobs();
    let is_gone = open.engine.config().is_gone(ordinal);
    open.end()?;
    let place = found.disks[nth].path.clone();
    let is_blank = is_gone && forget(registry, pool, place.as_deref(), &name)?;
    let extents = (counters.moved - before.moved) + (counters.rebuilt - before.rebuilt);
    Ok(Removal { name, is_gone, is_blank, jobs, extents, elapsed: began.elapsed() })
}

/// Lets a pool do all that waits, and tells how far it is.
pub fn work(open: &mut OpenPool, progress: &mut dyn FnMut(&[JobState])) {
    let mut told = Instant::now();
    open.work_until(|engine| {
        if told.elapsed() >= TOLD_EVERY {
            told = Instant::now();
            progress(&engine.jobs());
        }
        !engine.has_work()
    });
}

/// Takes the pool's marks off a disk that is not part of it any more, if it is here; whether they are off.
fn forget(
    registry: &Registry,
    pool: &RegisteredPool,
    place: Option<&Path>,
    name: &str,
) -> Result<bool, PoolError> {
    let is_it = |path: &PathBuf| {
        place.is_some_and(|place| is_same(place, path)) || path.display().to_string() == name
    };
    let mut left = pool.clone();
    left.disks.retain(|path| !is_it(path));
    registry.put(&left)?;
    let Some(place) = place else { return Ok(false) };
    let ours = superblocks(place).is_ok_and(|said| said.is_of(pool.id));
    if !ours {
        return Ok(false);
    }
    let Ok(disk) = exclusive::open(place, PATIENCE, &SystemTree::default()) else {
        // It failed, or somebody has it: the pool ignores it for ever, with its marks or without.
        return Ok(false);
    };
    Ok(wipe_ends(&disk).is_ok())
}
