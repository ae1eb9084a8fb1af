//! Health (section 15): a pure function of recorded facts.

use plumb_io::FlushQueue;
use plumb_units::Bytes;
use plumb_units::convert::index;

use super::behind::{Behind, behind};
use super::findings::{Age, Findings};
use super::look::{DiskStanding, Look};
use super::registry::{RegisteredPool, Registry};
use crate::engine::Engine;
use crate::format::DiskState;
use crate::mutation::{Mutation, active};
use crate::unread::Unreadable;
use crate::waits::{Wait, Waits};

/// How well something is; the worse, the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthStatus {
    /// Nothing to do.
    Healthy,
    /// It works, with less than it should have.
    Warning,
    /// Something is lost or cannot be used.
    Unhealthy,
    /// It cannot be told.
    Unknown,
}

impl HealthStatus {
    /// As it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Warning => "Warning",
            Self::Unhealthy => "Unhealthy",
            Self::Unknown => "Unknown",
        }
    }

    /// Exit status (HLT-5).
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Healthy => 0,
            Self::Warning => 1,
            Self::Unhealthy => 2,
            Self::Unknown => 3,
        }
    }
}

/// The health of one object. Whatever is not Healthy has a cause and something to do about it (HLT-1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How well it is.
    pub status: HealthStatus,
    /// In the words of section 15.
    pub operational: &'static str,
    /// Why, and what to do.
    pub cause: Option<(String, &'static str)>,
}

impl Verdict {
    fn ok() -> Self {
        Self { status: HealthStatus::Healthy, operational: "OK", cause: None }
    }

    /// Whether something is lost, or it cannot be used.
    fn is_ill(&self) -> bool {
        self.status >= HealthStatus::Unhealthy
    }

    fn of(
        status: HealthStatus,
        operational: &'static str,
        cause: impl Into<String>,
        action: &'static str,
    ) -> Self {
        Self { status, operational, cause: Some((cause.into(), action)) }
    }
}

/// What is known of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFacts {
    /// For messages.
    pub name: String,
    /// How it stands to its pool.
    pub standing: DiskStanding,
    /// A disk of another pool is where it was added.
    pub foreign: bool,
    /// Extents whose place on it is not up to date.
    pub stale: u32,
    /// Blocks of it that had to be healed, if the pool was started.
    pub healed: u64,
    /// How often it failed and stayed because it holds the last copy of something, since an operator cleared that last.
    pub failures: u64,
    /// How often it was done without, in the last 24 hours or since the pool started, for a write or flush that it had answered with an
    /// error; 0 where it is not here, as far as that can be told.
    pub errors: u64,
    /// What it waits for that is to leave, or was given up, if that does not go on by itself.
    pub waits: Option<Wait>,
}

/// What brings the copies of a virtual disk back that are not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// None: its disks are here, and what they should hold is gone.
    Backup,
    /// Disks that were given up are rebuilt on others.
    Wait,
    /// Its disks are here, and the next start takes them back.
    Start,
    /// Disks were given up, and no other one has room for what they held.
    AddDisk,
    /// Its disks are here, and cannot be used as they are.
    SeeDisks,
    /// Its disks are not here.
    Connect,
}

/// What is known of a virtual disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualDiskFacts {
    /// Its name.
    pub name: String,
    /// Copies that it should have.
    pub copies: u32,
    /// Copies on disks that take part, of the place that has fewest.
    pub live: u32,
    /// Copies on disks that are here or whose content is still current, of the place that has fewest.
    pub current: u32,
    /// What has no copy here that is up to date, if that can be told; asked for only where there may be such.
    pub unreadable: Option<Unreadable>,
    /// What brings the copies back that are not here.
    pub remedy: Remedy,
    /// Copies of its write-back cache's log that are not up to date, on disks that take part.
    pub log_behind: u32,
    /// Whether no copy of its write-back cache's log is here: it serves nothing.
    pub log_away: bool,
    /// Blocks without a good copy that were met.
    pub unrecoverable: u64,
    /// Blocks whose checksums are lost.
    pub unverified: u64,
    /// Places of its extents that are not up to date, on disks that take part.
    pub stale: u32,
}

/// What is known of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Disks that vote and are here; all that vote.
    pub voters: (usize, usize),
    /// Copies of journal and map on disks that take part; all disks that do.
    pub metadata: (usize, usize),
    /// Why no start accepts it, and what to do.
    pub refused: Option<(String, &'static str)>,
    /// A disk on a file system that has no room: for that it was not started, or stopped, and can only be read.
    pub full: Option<String>,
    /// Nobody can tell which copies are up to date.
    pub untold: bool,
    /// The pool went on without the disks that are here when this machine used it last.
    pub older: bool,
    /// What a last copy was given could not be flushed: every FLUSH fails, of some or all (6.3).
    pub unflushed: bool,
    /// By ordinal.
    pub disks: Vec<DiskFacts>,
    /// In the configuration's order.
    pub vdisks: Vec<VirtualDiskFacts>,
}

/// The health of a pool and all in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The pool's own.
    pub pool: Verdict,
    /// By ordinal.
    pub disks: Vec<Verdict>,
    /// In the configuration's order.
    pub vdisks: Vec<Verdict>,
    /// What of each cannot be read for no copy of it that is up to date is here, where that can be told.
    pub unreadable: Vec<Option<Unreadable>>,
}

impl Health {
    /// The worst of all (HLT-2).
    #[must_use]
    pub fn worst(&self) -> HealthStatus {
        let parts = self.disks.iter().chain(&self.vdisks).chain([&self.pool]);
        parts.map(|part| part.status).max().unwrap_or(HealthStatus::Unknown)
    }
}

impl Facts {
    /// What the disks alone say, without a start, what was found wrong with the pool while it ran, and what of it is out of
    /// date, if anybody can tell.
    #[must_use]
    pub fn of(look: &Look, findings: &Findings, behind: Option<&Behind>) -> Self {
        let stale = |of: fn(&Behind) -> &Vec<u32>, nth: usize| {
            behind.and_then(|behind| of(behind).get(nth)).copied().unwrap_or(0)
        };
        let both = look.config.disks.iter().zip(&look.disks);
        let standing = |disk: u16| look.disks[usize::from(disk)].standing;
        let waits = Waits::of(&look.config, &look.geometry, |disk| standing(disk).takes_part());
        let waits_of = |nth: usize| waits.of_disk(u16::try_from(nth).unwrap_or(u16::MAX));
        let disk = |(nth, (config, found)): (usize, (&crate::DiskConfig, &super::DiskLook))| {
            let (name, standing) = (config.name.clone(), found.standing);
            let (stale, healed) =
                (stale(|behind| &behind.disks, nth), findings.healed_of(config.id));
            let failures = findings.failures_of(config.id).into();
            let foreign = found.foreign;
            let errors = found.path.as_ref().map_or(0, |_| findings.errors_of(config.id));
            let waits = waits_of(nth);
            DiskFacts { name, standing, foreign, stale, healed, failures, errors, waits }
        };
        let disks = both.enumerate().map(disk).collect();
        let vdisk = |(nth, vdisk): (usize, &crate::VirtualDisk)| {
            let placed = virtual_disk(vdisk, standing, waits.of_vdisk(nth));
            VirtualDiskFacts {
                unrecoverable: findings.lost_of(vdisk),
                unverified: findings.unverified_of(vdisk),
                stale: stale(|behind| &behind.vdisks, nth),
                unreadable: behind
                    .and_then(|behind| behind.unreadable.as_ref())
                    .and_then(|all| all.get(nth).cloned()),
                // Copies that are here may be of no use.
                log_away: placed.log_away || findings.is_detached(vdisk),
                ..placed
            }
        };
        let vdisks = look.config.vdisks.iter().enumerate().filter(|own| !own.1.is_removed());
        let told = findings.refused(&look.disks).map(|why| {
            let why = format!("the last start was refused: {why}");
            (why, "see what a start says: plumb space scan")
        });
        let here =
            || look.config.disks.iter().zip(&look.disks).filter(|one| one.1.standing.takes_part());
        Self {
            voters: look.voters(),
            metadata: (here().filter(|one| one.0.metadata).count(), here().count()),
            refused: look.refusal.clone().or(told),
            full: findings.full().map(|path| path.display().to_string()),
            untold: behind.is_none(),
            older: matches!(findings.age_of(look.config.generation), Age::Older(_)),
            unflushed: behind.is_some_and(|behind| behind.flushes_fail),
            disks,
            vdisks: vdisks.map(vdisk).collect(),
        }
    }

    /// What a started pool knows of itself.
    #[must_use]
    pub fn running<Q: FlushQueue>(engine: &Engine<Q>) -> Self {
        let config = engine.config();
        let standing = |disk: u16| {
            let own = &config.disks[usize::from(disk)];
            match own.state {
                DiskState::Online if own.leaving => DiskStanding::Leaving,
                DiskState::Online => DiskStanding::Present,
                DiskState::Retired if config.is_gone(disk) => DiskStanding::Removed,
                _ if engine.returning().contains(&disk) => DiskStanding::Returning,
                DiskState::Missing => DiskStanding::Missing,
                DiskState::Retired => DiskStanding::Retired,
            }
        };
        let stale = engine.stale_by_disk();
        let waits = Waits::of(config, engine.geometry(), |disk| standing(disk).takes_part());
        let disk = |(nth, own): (u16, &crate::DiskConfig)| DiskFacts {
            name: own.name.clone(),
            standing: standing(nth),
            foreign: false,
            stale: stale[usize::from(nth)],
            healed: engine.disk_use(nth).healed,
            failures: engine.disk_use(nth).stayed,
            errors: engine.disk_use(nth).erred,
            waits: waits.of_disk(nth),
        };
        let takes_part = |voter: &&u16| standing(**voter).takes_part();
        let unverified = engine.unverified();
        let vdisk = |(nth, own): (u32, &crate::VirtualDisk)| VirtualDiskFacts {
            unrecoverable: engine.use_of(nth).unrecoverable,
            unverified: unverified
                .iter()
                .filter(|run| run.vdisk == nth)
                .map(|run| run.len / 4096)
                .sum(),
            log_away: engine.is_detached(nth),
            stale: engine.stale_of(nth),
            unreadable: Some(engine.unreadable_of(nth)),
            ..virtual_disk(own, standing, waits.of_vdisk(index(nth)))
        };
        let here = || (0_u16..).zip(&config.disks).filter(|own| standing(own.0).takes_part());
        Self {
            metadata: (here().filter(|own| own.1.metadata).count(), here().count()),
            voters: (config.voters.iter().filter(takes_part).count(), config.voters.len()),
            refused: engine.halted().map(|halt| {
                let why = format!("the pool has stopped: {halt}");
                (why, "attach the disks that were lost and start it again")
            }),
            full: None,
            untold: false,
            older: false,
            unflushed: engine.fails_flushes(),
            disks: (0_u16..).zip(&config.disks).map(disk).collect(),
            vdisks: (0_u32..)
                .zip(&config.vdisks)
                .filter(|(_, vdisk)| !vdisk.is_removed())
                .map(vdisk)
                .collect(),
        }
    }
}

fn virtual_disk(
    vdisk: &crate::VirtualDisk,
    standing_of: impl Fn(u16) -> DiskStanding,
    waits: Option<Wait>,
) -> VirtualDiskFacts {
    let copies = usize::from(vdisk.copies);
    let (mut live, mut current) = (copies, copies);
    for row in vdisk.tiers.iter().flat_map(|tier| &tier.rows) {
        for column in row.slabs.chunks(copies.max(1)) {
            let standing = |slab: &(u16, u32)| standing_of(slab.0);
            let count = |is: &dyn Fn(DiskStanding) -> bool| {
                column.iter().filter(|slab| is(standing(slab))).count()
            };
            live = live.min(count(&DiskStanding::takes_part));
            let keeps = |s: DiskStanding| s.takes_part() || s == DiskStanding::Away;
            current = current.min(count(&keeps));
        }
    }
    let logs = vdisk.cache.iter().flat_map(|cache| &cache.copies);
    // A log has as many copies as all else, and what is written goes there first (RES-7). What a disk that is here did not take of
    // its copy is told apart.
    if let Some(cache) = &vdisk.cache
        && !active(Mutation::LostLogUntold)
    {
        let takes_part = |copy: &&crate::CacheCopy| standing_of(copy.disk).takes_part();
        let keeps = |c: &&crate::CacheCopy| c.current && standing_of(c.disk) == DiskStanding::Away;
        let never = copies.saturating_sub(cache.copies.len());
        live = live.min(never + logs.clone().filter(takes_part).count());
        current = current.min(never + logs.clone().filter(|c| takes_part(c) || keeps(c)).count());
    }
    let slabs = vdisk.tiers.iter().flat_map(|tier| &tier.rows).flat_map(|row| &row.slabs);
    let disks = slabs.map(|slab| slab.0).chain(logs.clone().map(|copy| copy.disk));
    let remedies = disks.filter_map(|disk| remedy(standing_of(disk), waits));
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let has_log = |copy: &crate::CacheCopy| copy.current && standing_of(copy.disk).takes_part();
    let log_away = vdisk.cache.as_ref().is_some_and(|cache| !cache.copies.iter().any(has_log));
    let behind = logs.filter(|copy| !copy.current && standing_of(copy.disk).takes_part());
    VirtualDiskFacts {
        name: vdisk.name.clone(),
        copies: small(copies),
        live: small(live),
        current: small(current),
        unreadable: None,
        remedy: remedies.max().unwrap_or(Remedy::Backup),
        log_behind: small(behind.count()),
        log_away,
        unrecoverable: 0,
        unverified: 0,
        stale: 0,
    }
}

/// What brings back what is on a disk that does not take part.
fn remedy(standing: DiskStanding, waits: Option<Wait>) -> Option<Remedy> {
    match standing {
        DiskStanding::Present | DiskStanding::Leaving | DiskStanding::Removed => None,
        DiskStanding::Away | DiskStanding::Missing => Some(Remedy::Connect),
        DiskStanding::Returning | DiskStanding::Outdated => Some(Remedy::Start),
        DiskStanding::TooSmall | DiskStanding::ReadOnly | DiskStanding::Split => {
            Some(Remedy::SeeDisks)
        }
        DiskStanding::Retired => Some(match waits {
            None => Remedy::Wait,
            Some(Wait::Room) => Remedy::AddDisk,
            Some(Wait::Disk) => Remedy::Connect,
        }),
    }
}

/// The health of a pool that is not started for it.
#[must_use]
pub fn health(registry: &Registry, pool: &RegisteredPool, look: &Look) -> Health {
    let findings = Findings::of(registry, &pool.name);
    judge(&Facts::of(look, &findings, behind(registry, pool, look).as_ref()))
}

/// Writes of a disk that failed within a day, as many as failed rewrites that retire one (section 18).
const ERRORS_MAX: u64 = 3;

/// Blocks healed on a disk after which it is expected to fail (section 7).
const HEALED_MAX: u64 = 10;

/// What to do about disks that are here and do not take part.
const BRING_BACK: &str = "plumb space job --wait starts the pool, which takes its disks back; where a program has the pool, plumb space online does";

/// What to do about older copies of disks without which no start goes well.
const PUT_BACK: &str = "put the disk itself back; if what the pool took since is lost for good: plumb space repair --without-quorum";

/// Judges everything.
#[must_use]
pub fn judge(facts: &Facts) -> Health {
    let (present, voters) = facts.voters;
    let quorum = 2 * present > voters;
    let starts = quorum && facts.refused.is_none() && facts.full.is_none();
    let older = facts.older && !quorum;
    let disks: Vec<Verdict> = facts.disks.iter().map(|one| disk(one, starts, older)).collect();
    let full = facts.full.as_deref().filter(|_| quorum);
    let vdisks: Vec<Verdict> = facts.vdisks.iter().map(|one| vdisk(one, starts, full)).collect();
    let ill_vdisks = vdisks.iter().filter(|one| one.is_ill()).count();
    let warned = vdisks.iter().filter(|one| one.status != HealthStatus::Healthy).count();
    let ill = disks.iter().filter(|disk| disk.status != HealthStatus::Healthy).count();
    let removed = facts.disks.iter().filter(|disk| disk.standing == DiskStanding::Removed).count();
    // The worst child wins upward (HLT-2); the pool itself can be told.
    let parts = || disks.iter().chain(vdisks.iter().filter(|one| one.is_ill()));
    let worst = parts().map(|part| part.status).max().unwrap_or(HealthStatus::Healthy);
    let worst = worst.min(HealthStatus::Unhealthy);
    let outdated =
        facts.disks.iter().filter(|disk| disk.standing == DiskStanding::Outdated).count();
    let pool = if !quorum && outdated > 0 {
        Verdict::of(
            HealthStatus::Unhealthy,
            "Read-only (Incomplete)",
            format!(
                "{present} of {voters} voting disks are here as the pool left them, and {outdated} as older copies of \
                 themselves; more than half are needed"
            ),
            PUT_BACK,
        )
    } else if !quorum {
        let (told, action) = match older {
            true => (
                ", and the pool went on without those that are here: no copy is known to be current",
                "connect the missing disks; to read what is here all the same: plumb run --accept-older; if they are lost for good: plumb space repair --without-quorum",
            ),
            false => (
                "",
                "connect the missing disks; if they are lost for good: plumb space repair --without-quorum",
            ),
        };
        Verdict::of(
            HealthStatus::Unhealthy,
            "Read-only (Incomplete)",
            format!("{present} of {voters} voting disks are here; more than half are needed{told}"),
            action,
        )
    } else if let Some(path) = full {
        Verdict::of(
            HealthStatus::Unhealthy,
            "Read-only (Starting)",
            format!(
                "the file system below {path} is full: nothing can be written there, and a start fails"
            ),
            "make room there, then: plumb space job --wait; until then loads that only read start",
        )
    } else if let Some((why, action)) = &facts.refused {
        Verdict::of(HealthStatus::Unhealthy, "Read-only (Starting)", why, action)
    } else if facts.unflushed {
        Verdict::of(
            worst.max(HealthStatus::Warning),
            "Degraded",
            "a last copy could not be flushed: flushes fail until the pool is started again",
            "end what has it; plumb space scan starts it and says what is there",
        )
    } else if ill_vdisks > 0 {
        Verdict::of(
            worst,
            "Degraded",
            format!("{ill_vdisks} of {} virtual disks have lost something", vdisks.len()),
            "see the virtual disks",
        )
    } else if let (..=1, 2..) = facts.metadata {
        Verdict::of(
            worst.max(HealthStatus::Warning),
            "Degraded",
            "journal and map have one copy, for other disks failed and are needed",
            "replace disks that failed; plumb space scan gives those that work a copy again",
        )
    } else if ill > 0 {
        Verdict::of(
            worst,
            "Degraded",
            format!("{ill} of {} disks need attention", disks.len() - removed),
            "see the disks",
        )
    } else if facts.untold {
        Verdict::of(
            HealthStatus::Warning,
            "Degraded",
            "its journal cannot be read: nobody can tell which copies are up to date",
            "start it: plumb space job",
        )
    } else if warned > 0 {
        Verdict::of(
            HealthStatus::Warning,
            "Degraded",
            format!("{warned} of {} virtual disks need attention", vdisks.len()),
            "see the virtual disks",
        )
    } else {
        Verdict::ok()
    };
    let unreadable = facts.vdisks.iter().map(|one| one.unreadable.clone()).collect();
    Health { pool, disks, vdisks, unreadable }
}

fn disk(facts: &DiskFacts, starts: bool, older: bool) -> Verdict {
    use HealthStatus::{Healthy, Unhealthy, Warning};
    match facts.standing {
        DiskStanding::Away | DiskStanding::Missing if facts.foreign => Verdict::of(
            Unhealthy,
            "Unrecognized Metadata",
            "a disk of another pool is in its place; nothing is written to that",
            "put the disk itself back, or replace it",
        ),
        DiskStanding::Away | DiskStanding::Missing | DiskStanding::Returning
            if facts.errors > 0 =>
        {
            Verdict::of(
                Warning,
                "IO Error",
                "it answered a write with an error, and the pool goes on without it",
                "replace it: plumb pool replace-disk; if it is well again, plumb space job --wait takes it back, or plumb space online \
                 where a program has the pool",
            )
        }
        DiskStanding::Away | DiskStanding::Missing => Verdict::of(
            Warning,
            "Lost Communication",
            "it is not here, or did not answer",
            "connect it, or add another disk",
        ),
        DiskStanding::Returning => {
            Verdict::of(Warning, "Lost Communication", "it was lost and is here again", BRING_BACK)
        }
        DiskStanding::Outdated => Verdict::of(
            Unhealthy,
            "Stale Metadata",
            "it is an older copy of itself: the pool went on since",
            match starts {
                true => {
                    "put the disk itself back, or start the pool, which makes all of it anew: plumb space job --wait"
                }
                false => PUT_BACK,
            },
        ),
        DiskStanding::TooSmall => Verdict::of(
            Unhealthy,
            "Not Usable",
            "it is smaller than when it joined the pool; nothing is written to it",
            "restore its size, or replace it",
        ),
        DiskStanding::ReadOnly => Verdict::of(
            Unhealthy,
            "Not Usable",
            "it is read-only: nothing can be written to it",
            "see the kernel's log; make it writable (blockdev --setrw, mount -o remount,rw, chattr -i), or replace it: plumb pool replace-disk",
        ),
        DiskStanding::Split => Verdict::of(
            Unhealthy,
            "Split",
            "it went on without the others",
            "start without it, or without the others",
        ),
        DiskStanding::Retired => {
            let (cause, action) = match facts.waits {
                None => (
                    "it was given up; what it held is rebuilt on other disks",
                    "wait: plumb space job --wait; then take it off the list: plumb pool remove-disk",
                ),
                Some(Wait::Room) => (
                    "it was given up; what it held waits for room: no other disk of its kind has any that is free",
                    "add a disk of its kind: plumb pool add-disk; then plumb space job --wait",
                ),
                Some(Wait::Disk) => (
                    "it was given up; what it held waits for a disk that has it: none is here",
                    "connect it, or another one that has a copy, then plumb space job --wait",
                ),
            };
            Verdict::of(Warning, "Removing From Pool", cause, action)
        }
        DiskStanding::Leaving => {
            let (cause, action) = match facts.waits {
                Some(Wait::Room) => (
                    "what it holds waits for room: no other disk of its kind has any that is free",
                    "add a disk of its kind: plumb pool add-disk; then plumb space job --wait",
                ),
                _ => ("what it holds moves to other disks", "wait: plumb space job --wait"),
            };
            Verdict::of(Warning, "Removing From Pool", cause, action)
        }
        DiskStanding::Removed => Verdict::ok(),
        DiskStanding::Present if older => Verdict::of(
            Warning,
            "Stale Metadata",
            "the pool went on without it, as this machine knows: what is on it may be older",
            "connect the disks that are not here",
        ),
        // Whether it votes and works again or not: what only it holds has no other copy.
        DiskStanding::Present if facts.failures > 0 => Verdict::of(
            Warning,
            "IO Error",
            format!(
                "it failed {} times, and stayed because it holds the last copy of something",
                facts.failures
            ),
            "replace it: plumb pool remove-disk; if it is well again: plumb space clear",
        ),
        DiskStanding::Present if facts.stale > 0 => Verdict {
            status: Healthy,
            operational: "In Service",
            cause: Some((
                format!("{} extents on it are not up to date yet", facts.stale),
                "wait: plumb space job --wait",
            )),
        },
        DiskStanding::Present if facts.errors >= ERRORS_MAX => Verdict::of(
            Warning,
            "Predictive Failure",
            format!("{} times in a day it answered a write with an error", facts.errors),
            "replace it: plumb pool replace-disk; if it is well again: plumb space clear",
        ),
        DiskStanding::Present if facts.healed > HEALED_MAX => Verdict::of(
            Warning,
            "Predictive Failure",
            format!("{} blocks of it had to be healed", facts.healed),
            "replace it: plumb pool replace-disk; if it is well again: plumb space clear",
        ),
        DiskStanding::Present => Verdict::ok(),
    }
}

/// Judges a virtual disk of a pool that `starts`, or else does not for the file system below `full`, or for its disks.
fn vdisk(facts: &VirtualDiskFacts, starts: bool, full: Option<&str>) -> Verdict {
    use HealthStatus::{Unhealthy, Unknown, Warning};
    let copies = facts.copies;
    if !starts {
        if let Some(path) = full {
            return Verdict::of(
                Unknown,
                "Detached (By Policy)",
                format!("its pool is only read while the file system below {path} is full"),
                "make room there, then: plumb space job --wait",
            );
        }
        return Verdict::of(
            Unknown,
            "Detached (Majority Disks Unhealthy)",
            "its pool cannot be started",
            "see the pool",
        );
    }
    if facts.log_away {
        return Verdict::of(
            Unknown,
            "Detached (Incomplete)",
            "no copy of its write cache's log is here, which holds newer data than its tiers",
            "connect the missing disks; if all are here and the power went: plumb space repair --unread-end; if the log is lost for \
             good: plumb space repair --without-cache",
        );
    }
    let unreadable = facts.unreadable.as_ref().map(|found| found.bytes);
    if facts.live == 0 || unreadable > Some(0) {
        let cause = match unreadable {
            Some(0) => {
                "a part of it that holds nothing has no copy here: it cannot be written".to_owned()
            }
            Some(bytes) => format!("{} of it have no copy here that is up to date", Bytes(bytes)),
            None => "a part of it has no copy here that is up to date".to_owned(),
        };
        let action = match facts.remedy {
            Remedy::Start => BRING_BACK,
            Remedy::SeeDisks => "see its disks",
            Remedy::Backup => {
                "no disk that is missing has that: make the virtual disk anew, from a backup"
            }
            Remedy::Connect | Remedy::Wait | Remedy::AddDisk => {
                "connect the missing disks, then plumb space job --wait; without them only a backup has that"
            }
        };
        return Verdict::of(Unhealthy, "No Redundancy", cause, action);
    }
    if facts.unrecoverable > 0 {
        return Verdict::of(
            Unhealthy,
            "No Redundancy",
            format!("blocks of it have no good copy: {} were met so far", facts.unrecoverable),
            "write what they held anew, from a backup, and then: plumb space scan",
        );
    }
    if facts.unverified > 0 {
        return Verdict::of(
            Unhealthy,
            "Unverified",
            format!(
                "the checksums of {} blocks of it are lost: reads of them fail",
                facts.unverified
            ),
            "write what they held anew, from a backup, or accept what lies there: plumb space scan --accept-unverified",
        );
    }
    if facts.live < copies && facts.current == copies {
        return Verdict::of(
            Warning,
            "Incomplete",
            format!("{} of {copies} copies are here; the others are still current", facts.live),
            to_whole(facts.remedy),
        );
    }
    if facts.live < copies {
        return Verdict::of(
            Warning,
            "Degraded",
            format!("{} of {copies} copies are up to date and here", facts.live),
            to_whole(facts.remedy),
        );
    }
    if facts.log_behind > 0 {
        return Verdict::of(
            Warning,
            "Degraded",
            "a copy of its write cache ends where its disk failed to take it",
            "close the pool and start it again, which makes that copy anew",
        );
    }
    if facts.stale > 0 {
        return Verdict::of(
            Warning,
            "In Service",
            format!("{} copies of its extents are not up to date yet", facts.stale),
            "wait: plumb space job --wait",
        );
    }
    Verdict::ok()
}

/// What makes copies whole again where each place has one that is good.
fn to_whole(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::Backup | Remedy::Wait => "wait: plumb space job --wait",
        Remedy::Start => BRING_BACK,
        Remedy::AddDisk => {
            "add a disk, for there is no room: plumb pool add-disk; then plumb space job --wait"
        }
        Remedy::SeeDisks => "see its disks",
        Remedy::Connect => "connect the missing disks, then plumb space job --wait",
    }
}

#[cfg(test)]
mod tests;
