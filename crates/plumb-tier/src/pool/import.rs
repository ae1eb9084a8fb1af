//! A pool on disks that came from elsewhere, or are found in other places than before.

use std::path::{Path, PathBuf};

use super::look::{DiskStanding, look, superblocks};
use super::make::{is_listable, is_same};
use super::open::{PoolError, of_the_disk};
use super::registry::{RegisteredPool, Registry, RegistryError};
use super::settings::PoolSettings;

/// Takes note of the pool that these disks belong to. Of one that is known already, what is known besides stays: its other
/// disks, where they are still or may come back, and what its disks are slowed down to.
///
/// # Errors
/// When no pool can be read from them, when one of them is not that pool's, or when another pool has its name; nothing is
/// changed then. So it is when two of them say that they are the same disk, in whatever order they are named: nobody can
/// tell which of them is the copy.
pub fn import(registry: &Registry, disks: Vec<PathBuf>) -> Result<RegisteredPool, PoolError> {
    disks.iter().try_for_each(|path| is_listable(path))?;
    one_each(&disks)?;
    let given = look(None, &disks)?;
    let name = given.config.name.clone();
    let _claim = registry.claim(&name)?;
    let id = given.config.pool;
    if let Some((path, why)) = given.strays.into_iter().next() {
        return Err(PoolError::Stray { path, name, why });
    }
    // Each may be some pool's, and not all the same one's.
    for path in &disks {
        let said = of_the_disk(path, superblocks(path))?.is_ok_and(|said| said.is_of(id));
        if !said {
            let why = format!("it belongs to another pool than {id:032x}");
            return Err(PoolError::Stray { path: path.clone(), name, why });
        }
    }
    let known = if registry.has(&name)? { Some(registry.find(&name)?) } else { None };
    let Some(known) = known else {
        let found = RegisteredPool {
            name,
            id,
            disks,
            emulated: Vec::new(),
            settings: PoolSettings::default(),
        };
        registry.put(&found)?;
        return Ok(found);
    };
    if known.id != id {
        return Err(RegistryError::Exists { name }.into());
    }
    let mut all = disks;
    for path in &known.disks {
        if !all.iter().any(|given| is_same(given, path)) {
            all.push(path.clone());
        }
    }
    one_each(&all)?;
    let whole = look(Some(id), &all)?;
    let is_here = |path: &PathBuf| whole.disks.iter().any(|disk| disk.path.as_ref() == Some(path));
    let lacks =
        |standing: DiskStanding| !standing.takes_part() && standing != DiskStanding::Removed;
    let some_lack = whole.disks.iter().any(|disk| lacks(disk.standing));
    // Where nothing of the pool is any more, a disk of it may come back as long as one is missing.
    all.retain(|path| is_here(path) || some_lack);
    let found = RegisteredPool { disks: all, ..known };
    registry.put(&found)?;
    Ok(found)
}

/// Refuses what is named twice, and a disk beside a copy of it.
fn one_each(disks: &[PathBuf]) -> Result<(), PoolError> {
    let mut seen: Vec<((u128, u128), &Path)> = Vec::new();
    for path in disks {
        let Ok(said) = of_the_disk(path, superblocks(path))? else { continue };
        let Some(first) = said.copies.first() else { continue };
        let own = (first.pool, first.device);
        let Some((_, other)) = seen.iter().find(|(known, _)| *known == own) else {
            seen.push((own, path));
            continue;
        };
        if is_same(other, path) {
            return Err(PoolError::Twice { path: path.clone() });
        }
        let (one, other) =
            if *other < path.as_path() { (*other, &**path) } else { (&**path, *other) };
        let ordinal = first.ordinal;
        return Err(PoolError::SameDisk { one: one.into(), other: other.into(), ordinal });
    }
    Ok(())
}
