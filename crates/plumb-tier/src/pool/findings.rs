//! What was found wrong with a pool and is not resolved yet, beside the list of pools: blocks without a good copy, blocks that
//! had to be healed in the last day, disks that failed writes in the last day, or failed and stayed, a start that was refused. Health is told from it whether or not the pool runs
//! (HLT-1); it is lost with the folder that it is in, and then a scan finds it again. Beside it, how far the pool had come
//! when this machine used it last: disks that are older are not started by an operator's word alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::asks::{Ask, ask};
use super::chronicle::{self, Chronicle};
use super::full::full_below;
use super::live::now_ms;
use super::look::{DiskLook, Look, look};
use super::open::PoolError;
use super::registry::{RegisteredPool, Registry};
use crate::events::Event;
use crate::format::{Config, Generation, VirtualDisk};
use crate::recover::StartError;

const HEADING: &str = "plumb-findings 1";
/// The file's extension.
pub(super) const EXTENSION: &str = "findings";
/// The longest file that is read.
const FILE_MAX: u64 = 16 << 20;
/// Extents that are remembered; beyond it is known that there are some.
const EXTENTS_MAX: usize = 65_536;
/// Healed blocks count for a day (section 7).
const DAY_MS: u64 = 24 * 3600 * 1000;
/// A program that has a pool writes within a second what it found.
const CLEARED_WITHIN: Duration = Duration::from_secs(5);
/// They are kept by the hour.
const HOUR_MS: u64 = 3600 * 1000;

/// Blocks of one extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lost {
    blocks: u32,
    unix_ms: u64,
}

/// A start that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused {
    unix_ms: u64,
    /// Ordinals of the disks that were here: with others it may go well.
    here: Vec<u16>,
    text: String,
}

/// What was found wrong and is not resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    refused: Option<Refused>,
    /// A disk on a file system that had no room, so that the pool was not started, or stopped.
    full: Option<PathBuf>,
    /// By virtual disk and extent within it.
    lost: BTreeMap<(u128, u32), Lost>,
    /// Blocks whose checksums are lost, the same way.
    unverified: BTreeMap<(u128, u32), Lost>,
    /// Blocks by disk and hour.
    healed: BTreeMap<(u128, u64), u64>,
    /// How often a disk was done without for a write that it had answered with an error, by disk and hour.
    erred: BTreeMap<(u128, u64), u64>,
    /// By disk: it failed, and stayed because it holds the last copy of something.
    failed: BTreeMap<u128, Failed>,
    /// Virtual disks that serve nothing: no copy of their write-back cache's log could be read.
    detached: BTreeSet<u128>,
    /// The newest configuration that was in force here.
    newest: Option<Newest>,
}

/// Failures of a disk that stayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Failed {
    times: u32,
    /// The last of them.
    unix_ms: u64,
}

/// A configuration that was in force: its generation, and who had journal and map by it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Newest {
    epoch: u32,
    number: u64,
    unix_ms: u64,
    holders: Vec<u128>,
}

/// How disks stand to what a pool had come to when this machine used it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// They know at least as much as this machine.
    Newest,
    /// The pool went on without them: in milliseconds since 1970, when that was seen.
    Older(u64),
    /// This machine never used the pool.
    Unknown,
}

impl Findings {
    /// Of that pool: nothing where nothing was written down.
    #[must_use]
    pub fn of(registry: &Registry, pool: &str) -> Self {
        let mut text = String::new();
        let read = File::open(path(registry, pool))
            .and_then(|file| file.take(FILE_MAX).read_to_string(&mut text));
        read.ok().and_then(|_| parse(&text)).unwrap_or_default()
    }

    /// The same of one that was started: nothing is refused any more.
    pub(super) fn of_a_started(registry: &Registry, pool: &str) -> Self {
        Self { refused: None, ..Self::of(registry, pool) }
    }

    /// Blocks of a virtual disk without a good copy, as last met.
    #[must_use]
    pub fn lost_of(&self, vdisk: &VirtualDisk) -> u64 {
        blocks_of(&self.lost, vdisk)
    }

    /// Blocks of a virtual disk whose checksums are lost (LAY-7), as last met.
    #[must_use]
    pub fn unverified_of(&self, vdisk: &VirtualDisk) -> u64 {
        blocks_of(&self.unverified, vdisk)
    }

    /// Blocks of a disk that were healed in the last 24 hours.
    #[must_use]
    pub fn healed_of(&self, disk: u128) -> u64 {
        of_the_day(&self.healed, disk)
    }

    /// How often a disk was done without in the last 24 hours for a write or flush that it had answered with an error.
    #[must_use]
    pub fn errors_of(&self, disk: u128) -> u64 {
        of_the_day(&self.erred, disk)
    }

    /// Whether a virtual disk served nothing when the pool was used last: no copy of its write-back cache's log could be read.
    #[must_use]
    pub fn is_detached(&self, vdisk: &VirtualDisk) -> bool {
        vdisk.cache.is_some() && self.detached.contains(&vdisk.id)
    }

    /// How often a disk failed and stayed because it holds the last copy of something, until an operator clears that.
    #[must_use]
    pub fn failures_of(&self, disk: u128) -> u32 {
        self.failed.get(&disk).map_or(0, |failed| failed.times)
    }

    /// By an operator's word: failures, errors and healed blocks; whether there was anything.
    fn clear(&mut self, disk: u128) -> bool {
        let before = self.healed.len() + self.erred.len();
        for all in [&mut self.healed, &mut self.erred] {
            all.retain(|(of, _), _| *of != disk);
        }
        self.failed.remove(&disk).is_some() || self.healed.len() + self.erred.len() < before
    }

    /// Why the last start was refused, if the same disks are here now.
    #[must_use]
    pub fn refused(&self, disks: &[DiskLook]) -> Option<&str> {
        let refused = self.refused.as_ref()?;
        (refused.here == here(disks)).then_some(refused.text.as_str())
    }

    /// A disk on a file system that has no room, for which the pool was not started last, or stopped.
    #[must_use]
    pub fn full(&self) -> Option<&Path> {
        let path = self.full.as_ref()?;
        (!full_below([path]).is_empty()).then_some(path)
    }

    /// What the last start or its end said of that, as it is written down: who has the pool writes it anew with the rest.
    pub(super) fn take_full_of(&mut self, written: Self) {
        self.full = written.full;
    }

    /// How a configuration that was found on disks stands to the newest one that was in force here.
    #[must_use]
    pub fn age_of(&self, found: Generation) -> Age {
        match &self.newest {
            None => Age::Unknown,
            Some(newest) if (found.epoch, found.number) < (newest.epoch, newest.number) => {
                Age::Older(newest.unix_ms)
            }
            Some(_) => Age::Newest,
        }
    }

    /// Ids of the disks that had journal and map when this machine used the pool last.
    #[must_use]
    pub fn holders(&self) -> &[u128] {
        self.newest.as_ref().map_or(&[], |newest| &newest.holders)
    }

    /// A configuration is in force; whether that changes anything.
    pub(super) fn note_config(&mut self, config: &Config) -> bool {
        let Generation { epoch, number, .. } = config.generation;
        if self.newest.as_ref().is_some_and(|known| (known.epoch, known.number) == (epoch, number))
        {
            return false;
        }
        self.failed.retain(|id, _| config.disks.iter().any(|disk| disk.id == *id));
        let holders = config.disks.iter().filter(|disk| disk.metadata).map(|disk| disk.id);
        let (unix_ms, holders) = (now_ms(), holders.collect());
        self.newest = Some(Newest { epoch, number, unix_ms, holders });
        true
    }

    /// An event came; whether that changes anything.
    pub(super) fn note(&mut self, event: &Event, config: &Config) -> bool {
        let id = |disk: u16| config.disks.get(usize::from(disk)).map(|disk| disk.id);
        match *event {
            Event::DiskFailing(disk) => {
                let failed = id(disk).map(|id| self.failed.entry(id).or_default());
                return failed.is_some_and(|failed| {
                    *failed = Failed { times: failed.times.saturating_add(1), unix_ms: now_ms() };
                    true
                });
            }
            Event::DiskErred(disk) => {
                let id = id(disk);
                return id.is_some_and(|id| {
                    count(&mut self.erred, id, 1);
                    true
                });
            }
            Event::DiskCleared(disk) => return id(disk).is_some_and(|id| self.clear(id)),
            _ => {}
        }
        let is_lost = matches!(event, Event::Unrecoverable { .. });
        let (all, extent, blocks) = match *event {
            Event::Unrecoverable { extent, blocks } => (&mut self.lost, extent, blocks),
            // Those that were written since count no more.
            Event::Unverified { extent, blocks } => (&mut self.unverified, extent, blocks),
            // Those that are left are told behind it.
            Event::Accepted { extent, .. } => (&mut self.unverified, extent, 0),
            _ => return false,
        };
        let holds = |vdisk: &&VirtualDisk| {
            (vdisk.first_extent..vdisk.first_extent + vdisk.extents).contains(&extent)
        };
        let Some(vdisk) = config.vdisks.iter().find(holds) else { return false };
        let key = (vdisk.id, extent - vdisk.first_extent);
        if blocks == 0 {
            return all.remove(&key).is_some();
        }
        let known = all.get(&key).map_or(0, |lost| lost.blocks);
        if all.len() >= EXTENTS_MAX && known == 0 {
            return false;
        }
        let blocks = if is_lost { blocks.max(known) } else { blocks };
        all.insert(key, Lost { blocks, unix_ms: now_ms() });
        true
    }

    /// A scan that began at `began_ms` came to its end: what it did not meet of virtual disks' extents that it could read is
    /// resolved. Whether that changes anything.
    pub(super) fn scanned(&mut self, began_ms: u64, read: impl Fn(u128, u32) -> bool) -> bool {
        let before = self.lost.len() + self.unverified.len();
        for all in [&mut self.lost, &mut self.unverified] {
            all.retain(|(vdisk, extent), lost| lost.unix_ms >= began_ms || !read(*vdisk, *extent));
        }
        self.lost.len() + self.unverified.len() != before
    }

    /// These virtual disks serve nothing, and no others; whether that changes anything.
    pub(super) fn note_detached(&mut self, detached: BTreeSet<u128>) -> bool {
        let before = std::mem::replace(&mut self.detached, detached);
        before != self.detached
    }

    /// Blocks of a disk were healed.
    pub(super) fn note_healed(&mut self, disk: u128, blocks: u64) {
        count(&mut self.healed, disk, blocks);
    }

    /// Writes it down, durably, in place of what was there.
    pub(super) fn write(&self, registry_folder: &Path, pool: &str) -> std::io::Result<()> {
        let place = registry_folder.join(format!("{pool}.{EXTENSION}"));
        let beside = registry_folder.join(format!(".{pool}.{EXTENSION}.{}", std::process::id()));
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(self.text().as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&beside, &place)?;
            File::open(registry_folder)?.sync_all()
        });
        if written.is_err() {
            // Best effort: the error that led here is the one to report.
            let _ = std::fs::remove_file(&beside);
        }
        written
    }

    fn text(&self) -> String {
        let mut text = format!("{HEADING}\n");
        if let Some(Refused { unix_ms, here, text: why }) = &self.refused {
            let here: Vec<String> = here.iter().map(u16::to_string).collect();
            text.push_str(&format!("refused\t{unix_ms}\t{}\t{why}\n", here.join(",")));
        }
        // Only a list that is damaged has a name with one of these in it, and then nothing is told of it.
        if let Some(path) = self.full.as_ref().and_then(|path| path.to_str())
            && !path.contains(['\t', '\n', '\r'])
        {
            text.push_str(&format!("full\t{path}\n"));
        }
        for (word, all) in [("lost", &self.lost), ("unverified", &self.unverified)] {
            for ((vdisk, extent), Lost { blocks, unix_ms }) in all {
                text.push_str(&format!("{word}\t{vdisk:032x}\t{extent}\t{blocks}\t{unix_ms}\n"));
            }
        }
        if let Some(Newest { epoch, number, unix_ms, holders }) = &self.newest {
            let holders: Vec<String> = holders.iter().map(|id| format!("{id:032x}")).collect();
            let holders = holders.join(",");
            text.push_str(&format!("newest\t{epoch}\t{number}\t{unix_ms}\t{holders}\n"));
        }
        for vdisk in &self.detached {
            text.push_str(&format!("detached\t{vdisk:032x}\n"));
        }
        for (disk, Failed { times, unix_ms }) in &self.failed {
            text.push_str(&format!("failed\t{disk:032x}\t{times}\t{unix_ms}\n"));
        }
        for (word, all) in [("healed", &self.healed), ("erred", &self.erred)] {
            for ((disk, hour), count) in all {
                text.push_str(&format!("{word}\t{disk:032x}\t{hour}\t{count}\n"));
            }
        }
        text
    }
}

/// What was counted of a disk in the last 24 hours.
fn of_the_day(all: &BTreeMap<(u128, u64), u64>, disk: u128) -> u64 {
    let since = now_ms().saturating_sub(DAY_MS) / HOUR_MS;
    all.range((disk, since)..=(disk, u64::MAX)).map(|(_, count)| count).sum()
}

/// Counts so many more of a disk in this hour, and forgets what is older than a day.
fn count(all: &mut BTreeMap<(u128, u64), u64>, disk: u128, more: u64) {
    let hour = now_ms() / HOUR_MS;
    all.retain(|(_, at), _| at.saturating_add(DAY_MS / HOUR_MS) >= hour);
    *all.entry((disk, hour)).or_default() += more;
}

fn blocks_of(all: &BTreeMap<(u128, u32), Lost>, vdisk: &VirtualDisk) -> u64 {
    let own = all.range((vdisk.id, 0)..=(vdisk.id, u32::MAX));
    let own = own.filter(|((_, extent), _)| *extent < vdisk.extents);
    own.map(|(_, lost)| u64::from(lost.blocks)).sum()
}

fn path(registry: &Registry, pool: &str) -> PathBuf {
    registry.folder().join(format!("{pool}.{EXTENSION}"))
}

fn here(disks: &[DiskLook]) -> Vec<u16> {
    let takes_part = |(_, disk): &(u16, &DiskLook)| disk.standing.takes_part();
    (0..).zip(disks).filter(takes_part).map(|(nth, _)| nth).collect()
}

/// Lines that are none are left out; a file of another kind says nothing.
fn parse(text: &str) -> Option<Findings> {
    let mut lines = text.lines();
    if lines.next()? != HEADING {
        return None;
    }
    let mut found = Findings::default();
    for line in lines {
        let fields: Vec<&str> = line.splitn(5, '\t').collect();
        let id = |field: &str| u128::from_str_radix(field, 16).ok();
        match fields[..] {
            ["refused", at, disks, why] => {
                let here: Option<Vec<u16>> = match disks {
                    "" => Some(Vec::new()),
                    some => some.split(',').map(|one| one.parse().ok()).collect(),
                };
                if let (Ok(unix_ms), Some(here)) = (at.parse(), here) {
                    found.refused = Some(Refused { unix_ms, here, text: why.to_owned() });
                }
            }
            [word @ ("lost" | "unverified"), vdisk, extent, blocks, at] => {
                let all = if word == "lost" { &mut found.lost } else { &mut found.unverified };
                let numbers = (id(vdisk), extent.parse(), blocks.parse(), at.parse());
                if let (Some(vdisk), Ok(extent), Ok(blocks), Ok(unix_ms)) = numbers {
                    all.insert((vdisk, extent), Lost { blocks, unix_ms });
                }
            }
            ["newest", epoch, number, at, holders] => {
                let ids: Option<Vec<u128>> = match holders {
                    "" => Some(Vec::new()),
                    some => some.split(',').map(id).collect(),
                };
                if let (Ok(epoch), Ok(number), Ok(unix_ms), Some(holders)) =
                    (epoch.parse(), number.parse(), at.parse(), ids)
                {
                    found.newest = Some(Newest { epoch, number, unix_ms, holders });
                }
            }
            ["full", path] => found.full = Some(path.into()),
            ["detached", vdisk] => found.detached.extend(id(vdisk)),
            ["failed", disk, times, at] => {
                if let (Some(disk), Ok(times), Ok(unix_ms)) = (id(disk), times.parse(), at.parse())
                {
                    found.failed.insert(disk, Failed { times, unix_ms });
                }
            }
            [word @ ("healed" | "erred"), disk, hour, count] => {
                let all = if word == "healed" { &mut found.healed } else { &mut found.erred };
                if let (Some(disk), Ok(hour), Ok(count)) =
                    (id(disk), hour.parse(), count.parse::<u32>())
                {
                    all.insert((disk, hour), count.into());
                }
            }
            _ => {}
        }
    }
    Some(found)
}

/// Reads any text as findings.
pub(super) fn fuzz(text: &str) {
    if let Some(found) = parse(text) {
        assert_eq!(parse(&found.text()).as_ref(), Some(&found));
    }
}

/// Writes down how a start of that pool went: one that is refused for what its disks hold is remembered until one
/// goes well. That disks are away, or in use, is seen without it.
///
/// # Errors
/// What went wrong.
pub fn note_start<T>(
    registry: &Registry,
    pool: &RegisteredPool,
    went: Result<T, PoolError>,
) -> Result<T, PoolError> {
    keep_start(registry, pool, went.as_ref().err());
    went
}

/// Writes down that the file system below one of a pool's disks has no room, and that the pool was not started for that, or stopped.
pub fn note_full(registry: &Registry, pool: &str, disk: &Path) {
    let mut findings = Findings::of(registry, pool);
    findings.full = Some(disk.to_owned());
    // Best effort: whoever starts it is told anyway.
    let _ = findings.write(registry.folder(), pool);
}

/// Writes down that a pool was started to be read only, and why.
pub fn note_read_only(registry: &Registry, pool: &RegisteredPool, why: &str) {
    chronicle::note_read_only(registry, &pool.name, why);
}

/// Writes down that a pool was not started, not even to be read only, and why.
pub fn note_refused(registry: &Registry, pool: &RegisteredPool, why: &str) {
    chronicle::note_refused(registry, &pool.name, why);
}

/// By an operator's word it is told no more that a disk failed before, or that blocks of it were healed: a program that has the
/// pool is asked to forget it, too. Whether it is forgotten by now.
///
/// # Errors
/// When that cannot be written down.
pub fn clear_failures(
    registry: &Registry,
    pool: &RegisteredPool,
    (config, disk): (&Config, u16),
) -> Result<bool, PoolError> {
    let Some(id) = config.disks.get(usize::from(disk)).map(|disk| disk.id) else {
        return Ok(true);
    };
    let clear = || -> Result<(), PoolError> {
        let mut findings = Findings::of(registry, &pool.name);
        if findings.clear(id) {
            let path = path(registry, &pool.name);
            let written = findings.write(registry.folder(), &pool.name);
            written.map_err(|source| PoolError::Write { path, source })?;
            Chronicle::of(registry, &pool.name).note(&Event::DiskCleared(disk), config);
        }
        Ok(())
    };
    let counts = |found: &Findings| [found.healed_of(id), found.errors_of(id)];
    let before = counts(&Findings::of(registry, &pool.name));
    match ask(registry, pool, Ask::Clear(disk)) {
        // It ended a moment ago, or there is none.
        Err(PoolError::NotInUse { .. }) => clear()?,
        asked => asked?,
    }
    let began = Instant::now();
    let is_cleared = || {
        let now = Findings::of(registry, &pool.name);
        // What came since counts anew.
        let fewer = |(now, before): (u64, u64)| before == 0 || now < before;
        now.failures_of(id) == 0 && counts(&now).into_iter().zip(before).all(fewer)
    };
    while !is_cleared() && began.elapsed() < CLEARED_WITHIN {
        std::thread::sleep(CLEARED_WITHIN / 100);
    }
    Ok(is_cleared())
}

fn keep_start(registry: &Registry, pool: &RegisteredPool, went: Option<&PoolError>) {
    let is_told = |error: &&PoolError| {
        use PoolError::{Files, FullBelow, Limit, Memory, Start};
        matches!(error, Start(_) | FullBelow { .. } | Memory { .. } | Limit(_) | Files { .. })
    };
    if let Some(error) = went.filter(is_told) {
        chronicle::note_refused(registry, &pool.name, &error.to_string());
    }
    let mut findings = Findings::of(registry, &pool.name);
    let refused = match went {
        None => None,
        Some(PoolError::FullBelow { path, .. }) => return note_full(registry, &pool.name, path),
        Some(PoolError::Start(StartError::NoQuorum { .. } | StartError::Outdated { .. })) => return,
        Some(PoolError::Start(error)) => {
            let Ok(Look { disks, .. }) = look(Some(pool.id), &pool.disks) else { return };
            let text = error.to_string().replace(['\t', '\n', '\r'], " ");
            Some(Refused { unix_ms: now_ms(), here: here(&disks), text })
        }
        Some(_) => return,
    };
    if findings.refused.is_none() && findings.full.is_none() && refused.is_none() {
        return;
    }
    (findings.refused, findings.full) = (refused, None);
    // Best effort: whoever starts it is told anyway.
    let _ = findings.write(registry.folder(), &pool.name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::DiskConfig;
    use crate::pool::DiskStanding;

    fn config() -> Config {
        let vdisk = |id: u128, first_extent: u32| VirtualDisk {
            id,
            first_extent,
            extents: 8,
            name: format!("v{id}"),
            copies: 2,
            columns: 1,
            interleave: 64 << 10,
            tiers: Vec::new(),
            cache: None,
        };
        Config { vdisks: vec![vdisk(1, 0), vdisk(2, 8)], ..Config::default() }
    }

    #[test]
    fn what_is_lost_stays_until_a_scan_does_not_meet_it() {
        let config = config();
        let mut found = Findings::default();
        for (extent, blocks) in [(9, 1), (9, 3), (9, 2), (7, 5)] {
            assert!(found.note(&Event::Unrecoverable { extent, blocks }, &config));
        }
        assert!(!found.note(&Event::Unrecoverable { extent: 99, blocks: 1 }, &config));
        assert!(!found.note(&Event::Scanned, &config));
        let lost = |found: &Findings| [0, 1].map(|nth| found.lost_of(&config.vdisks[nth]));
        assert_eq!(lost(&found), [5, 3]);
        assert!(!found.scanned(0, |_, _| true), "a scan that met all of it");
        // The next one meets what is in one of them.
        let began = now_ms() + 10;
        found.lost.get_mut(&(2, 1)).expect("noted").unix_ms = began;
        assert!(!found.clone().scanned(began, |_, _| false), "it read none of it");
        let other = |vdisk, extent| (vdisk, extent) != (1, 7);
        assert!(!found.clone().scanned(began, other), "nor of that one");
        assert!(found.scanned(began, |_, _| true));
        assert_eq!(lost(&found), [0, 3]);
    }

    #[test]
    fn a_disk_that_failed_and_stayed_is_told_until_it_is_cleared() {
        let disk = |id| DiskConfig { id, ..DiskConfig::default() };
        let config = Config { disks: vec![disk(7), disk(8)], ..config() };
        let mut found = Findings::default();
        for _ in 0..2 {
            assert!(found.note(&Event::DiskFailing(1), &config));
        }
        assert!(!found.note(&Event::DiskFailing(2), &config), "there is no such disk");
        // It votes again, and works.
        assert!(!found.note(&Event::DiskBack(1), &config) && !found.scanned(u64::MAX, |_, _| true));
        assert_eq!([7, 8].map(|id| found.failures_of(id)), [0, 2]);
        assert!(!found.note(&Event::DiskCleared(0), &config));
        assert!(found.note(&Event::DiskCleared(1), &config));
        assert_eq!(found, Findings::default());
    }

    #[test]
    fn what_was_healed_or_failed_is_told_until_it_is_cleared() {
        let disk = |id| DiskConfig { id, ..DiskConfig::default() };
        let config = Config { disks: vec![disk(7), disk(8)], ..config() };
        let mut found = Findings::default();
        found.note_healed(7, 11);
        found.note_healed(8, 12);
        for disk in [0, 1, 1] {
            assert!(found.note(&Event::DiskErred(disk), &config));
        }
        assert!(!found.note(&Event::DiskErred(2), &config), "there is no such disk");
        assert_eq!([7, 8].map(|id| found.errors_of(id)), [1, 2]);
        assert!(found.note(&Event::DiskCleared(1), &config));
        assert_eq!([7, 8].map(|id| found.healed_of(id)), [11, 0]);
        assert_eq!([7, 8].map(|id| found.errors_of(id)), [1, 0]);
        assert!(!found.note(&Event::DiskCleared(1), &config), "nothing is left");
    }

    #[test]
    fn healed_blocks_count_for_a_day() {
        let mut found = Findings::default();
        found.note_healed(7, 4);
        found.note_healed(7, 8);
        found.note_healed(8, 1);
        assert_eq!((found.healed_of(7), found.healed_of(8), found.healed_of(9)), (12, 1, 0));
        let hour = now_ms() / HOUR_MS;
        found.healed.insert((9, hour - 26), 50);
        found.healed.insert((9, hour - 20), 2);
        assert_eq!(found.healed_of(9), 2);
        found.note_healed(9, 1);
        assert_eq!(found.healed.len(), 4, "older ones are forgotten");
    }

    #[test]
    fn what_is_written_down_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::at(folder.path());
        assert_eq!(Findings::of(&registry, "p"), Findings::default());
        let mut found = Findings::default();
        found.note(&Event::Unrecoverable { extent: 9, blocks: 2 }, &config());
        for blocks in [7, 4] {
            found.note(&Event::Unverified { extent: 8, blocks }, &config());
        }
        assert_eq!([0, 1].map(|nth| found.unverified_of(&config().vdisks[nth])), [0, 4]);
        found.note(&Event::Unverified { extent: 9, blocks: 2 }, &config());
        assert!(found.note(&Event::Accepted { extent: 9, blocks: 2 }, &config()));
        assert_eq!(found.unverified_of(&config().vdisks[1]), 4);
        found.note_healed(3, 11);
        count(&mut found.erred, 3, 2);
        found.failed.insert(4, Failed { times: 2, unix_ms: 9 });
        found.failed.insert(5, Failed { times: 3, unix_ms: 9 });
        let generation = |epoch, number| Generation { epoch, number, id: 7 };
        assert_eq!(found.age_of(generation(1, 1)), Age::Unknown);
        let mut newest = config();
        newest.generation = generation(3, 12);
        newest.disks = [(5, true), (6, false), (u128::MAX, true)]
            .map(|(id, metadata)| DiskConfig { id, metadata, ..DiskConfig::default() })
            .into();
        assert!(found.note_config(&newest) && !found.note_config(&newest));
        assert_eq!(found.holders(), [5, u128::MAX]);
        assert_eq!(
            [4, 5].map(|disk| found.failures_of(disk)),
            [0, 3],
            "one is no disk of it any more"
        );
        for older in [generation(3, 11), generation(2, 90)] {
            assert!(matches!(found.age_of(older), Age::Older(at) if at > 0));
        }
        for newer in [generation(3, 12), generation(3, 13), generation(4, 1)] {
            assert_eq!(found.age_of(newer), Age::Newest);
        }
        let text = "no copy of page 7".to_owned();
        found.refused = Some(Refused { unix_ms: 5, here: vec![0, 2], text });
        found.full = Some("/a b/c.img".into());
        found.write(registry.folder(), "p").expect("written");
        let read = Findings::of(&registry, "p");
        assert_eq!(read, found);
        let disk = |standing| DiskLook { path: None, standing, foreign: false };
        let (present, away) = (DiskStanding::Present, DiskStanding::Away);
        assert_eq!(read.refused(&[present, away, present].map(disk)), Some("no copy of page 7"));
        assert_eq!(read.refused(&[present; 3].map(disk)), None, "it may go well with that one");
        registry.forget("p").expect("forgotten");
        assert_eq!(Findings::of(&registry, "p"), Findings::default());
    }

    #[test]
    fn damaged_files_are_read_or_left_out() {
        let whole = "plumb-findings 1\nrefused\t5\t0,2\twhy\nfull\t/a/b\nlost\t01\t3\t4\t5\nunverified\t01\t3\t4\t5\nfailed\t02\t1\t5\nhealed\t02\t7\t8\nerred\t02\t7\t8\nnewest\t3\t12\t5\t01,02\n";
        let mut random = crate::random::Random::new(4);
        for _ in 0..20_000 {
            let mut bytes = whole.as_bytes().to_vec();
            for _ in 0..=random.below(4) {
                let at = usize::try_from(random.below(bytes.len() as u64)).expect("small");
                bytes[at] = b"\t\n 9x,\xff"[usize::try_from(random.below(7)).expect("small")];
            }
            fuzz(&String::from_utf8_lossy(&bytes));
        }
    }
}
