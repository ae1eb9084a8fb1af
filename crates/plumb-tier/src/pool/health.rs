//! Health (section 15): a pure function of recorded facts.

use plumb_io::FlushQueue;

use super::behind::{Behind, behind};
use super::findings::Findings;
use super::look::{DiskStanding, Look};
use super::registry::{RegisteredPool, Registry};
use crate::engine::Engine;
use crate::format::DiskState;

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
    /// Extents whose place on it is not up to date.
    pub stale: u32,
    /// Blocks of it that had to be healed, if the pool was started.
    pub healed: u64,
    /// How often it failed and stayed because it holds the last copy of something, since an operator cleared that last.
    pub failures: u64,
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
    /// Nobody can tell which copies are up to date.
    pub untold: bool,
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
        let disk = |(nth, (config, found)): (usize, (&crate::DiskConfig, &super::DiskLook))| {
            let (name, standing) = (config.name.clone(), found.standing);
            let (stale, healed) =
                (stale(|behind| &behind.disks, nth), findings.healed_of(config.id));
            let failures = findings.failures_of(config.id).into();
            DiskFacts { name, standing, stale, healed, failures }
        };
        let disks = both.enumerate().map(disk).collect();
        let vdisk = |(nth, vdisk): (usize, &crate::VirtualDisk)| VirtualDiskFacts {
            unrecoverable: findings.lost_of(vdisk),
            unverified: findings.unverified_of(vdisk),
            stale: stale(|behind| &behind.vdisks, nth),
            ..virtual_disk(vdisk, |disk| look.disks[usize::from(disk)].standing)
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
            untold: behind.is_none(),
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
                DiskState::Missing if engine.returning().contains(&disk) => DiskStanding::Returning,
                DiskState::Missing => DiskStanding::Missing,
                DiskState::Retired if config.is_gone(disk) => DiskStanding::Removed,
                DiskState::Retired => DiskStanding::Retired,
            }
        };
        let stale = engine.stale_by_disk();
        let disk = |(nth, own): (u16, &crate::DiskConfig)| DiskFacts {
            name: own.name.clone(),
            standing: standing(nth),
            stale: stale[usize::from(nth)],
            healed: engine.disk_use(nth).healed,
            failures: engine.disk_use(nth).stayed,
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
            ..virtual_disk(own, standing)
        };
        let here = || (0_u16..).zip(&config.disks).filter(|own| standing(own.0).takes_part());
        Self {
            metadata: (here().filter(|own| own.1.metadata).count(), here().count()),
            voters: (config.voters.iter().filter(takes_part).count(), config.voters.len()),
            refused: engine.halted().map(|halt| {
                let why = format!("the pool has stopped: {halt}");
                (why, "attach the disks that were lost and start it again")
            }),
            untold: false,
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
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let logs = vdisk.cache.iter().flat_map(|cache| &cache.copies);
    let has_log = |copy: &crate::CacheCopy| copy.current && standing_of(copy.disk).takes_part();
    let log_away = vdisk.cache.as_ref().is_some_and(|cache| !cache.copies.iter().any(has_log));
    let behind = logs.filter(|copy| !copy.current && standing_of(copy.disk).takes_part());
    VirtualDiskFacts {
        name: vdisk.name.clone(),
        copies: small(copies),
        live: small(live),
        current: small(current),
        log_behind: small(behind.count()),
        log_away,
        unrecoverable: 0,
        unverified: 0,
        stale: 0,
    }
}

/// The health of a pool that is not started for it.
#[must_use]
pub fn health(registry: &Registry, pool: &RegisteredPool, look: &Look) -> Health {
    let findings = Findings::of(registry, &pool.name);
    judge(&Facts::of(look, &findings, behind(registry, pool, look).as_ref()))
}

/// Blocks healed on a disk after which it is expected to fail (section 7).
const HEALED_MAX: u64 = 10;

/// Judges everything.
#[must_use]
pub fn judge(facts: &Facts) -> Health {
    let (present, voters) = facts.voters;
    let quorum = 2 * present > voters;
    let disks: Vec<Verdict> = facts.disks.iter().map(disk).collect();
    let starts = quorum && facts.refused.is_none();
    let vdisks: Vec<Verdict> = facts.vdisks.iter().map(|one| vdisk(one, starts)).collect();
    let ill_vdisks = vdisks.iter().filter(|one| one.is_ill()).count();
    let warned = vdisks.iter().filter(|one| one.status != HealthStatus::Healthy).count();
    let ill = disks.iter().filter(|disk| disk.status != HealthStatus::Healthy).count();
    // The worst child wins upward (HLT-2); the pool itself can be told.
    let parts = || disks.iter().chain(vdisks.iter().filter(|one| one.is_ill()));
    let worst = parts().map(|part| part.status).max().unwrap_or(HealthStatus::Healthy);
    let worst = worst.min(HealthStatus::Unhealthy);
    let pool = if !quorum {
        Verdict::of(
            HealthStatus::Unhealthy,
            "Read-only (Incomplete)",
            format!("{present} of {voters} voting disks are here; more than half are needed"),
            "connect the missing disks; if they are lost for good: plumb space repair --without-quorum",
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
            format!("{ill} of {} disks need attention", disks.len()),
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
    Health { pool, disks, vdisks }
}

fn disk(facts: &DiskFacts) -> Verdict {
    use HealthStatus::{Healthy, Unhealthy, Warning};
    match facts.standing {
        DiskStanding::Away | DiskStanding::Missing => Verdict::of(
            Warning,
            "Lost Communication",
            "it is not here, or did not answer",
            "connect it, or add another disk",
        ),
        DiskStanding::Returning => Verdict::of(
            Warning,
            "Lost Communication",
            "it was lost and is here again",
            "start the pool: plumb space job --wait brings it up to date",
        ),
        DiskStanding::TooSmall => Verdict::of(
            Unhealthy,
            "Not Usable",
            "it is smaller than when it joined the pool; nothing is written to it",
            "restore its size, or replace it",
        ),
        DiskStanding::Split => Verdict::of(
            Unhealthy,
            "Split",
            "it went on without the others",
            "start without it, or without the others",
        ),
        DiskStanding::Retired => Verdict::of(
            Warning,
            "Removing From Pool",
            "it was given up; what it held is rebuilt on other disks",
            "wait: plumb space job --wait; then take it off the list: plumb pool remove-disk",
        ),
        DiskStanding::Leaving => Verdict::of(
            Warning,
            "Removing From Pool",
            "what it holds moves to other disks",
            "wait: plumb space job --wait",
        ),
        DiskStanding::Removed => Verdict::ok(),
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
        DiskStanding::Present if facts.healed > HEALED_MAX => Verdict::of(
            Warning,
            "Predictive Failure",
            format!("{} blocks of it had to be healed", facts.healed),
            "replace it",
        ),
        DiskStanding::Present => Verdict::ok(),
    }
}

fn vdisk(facts: &VirtualDiskFacts, starts: bool) -> Verdict {
    use HealthStatus::{Unhealthy, Unknown, Warning};
    let copies = facts.copies;
    if !starts {
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
            "connect the missing disks; if they are lost for good: plumb space repair --without-cache",
        );
    }
    if facts.current == 0 {
        let cause = "a part of it has no copy that is up to date";
        return Verdict::of(Unhealthy, "No Redundancy", cause, "connect the missing disks");
    }
    if facts.unrecoverable > 0 {
        return Verdict::of(
            Unhealthy,
            "No Redundancy",
            format!("{} blocks of it have no good copy", facts.unrecoverable),
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
            "connect the missing disks",
        );
    }
    if facts.live < copies {
        return Verdict::of(
            Warning,
            "Degraded",
            format!("{} of {copies} copies are up to date and here", facts.live),
            "connect the missing disks, then plumb space job --wait",
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

#[cfg(test)]
mod tests {
    use super::*;

    const STANDINGS: [(DiskStanding, HealthStatus, &str); 9] = [
        (DiskStanding::Present, HealthStatus::Healthy, "OK"),
        (DiskStanding::Away, HealthStatus::Warning, "Lost Communication"),
        (DiskStanding::Missing, HealthStatus::Warning, "Lost Communication"),
        (DiskStanding::Returning, HealthStatus::Warning, "Lost Communication"),
        (DiskStanding::TooSmall, HealthStatus::Unhealthy, "Not Usable"),
        (DiskStanding::Split, HealthStatus::Unhealthy, "Split"),
        (DiskStanding::Retired, HealthStatus::Warning, "Removing From Pool"),
        (DiskStanding::Leaving, HealthStatus::Warning, "Removing From Pool"),
        (DiskStanding::Removed, HealthStatus::Healthy, "OK"),
    ];

    #[test]
    fn every_combination_has_its_verdict() {
        for (standing, status, words) in STANDINGS {
            for voters in [(3, 3), (2, 3), (1, 3), (1, 2), (0, 0)] {
                for (copies, live, current) in
                    [(1, 1, 1), (1, 0, 0), (2, 2, 2), (2, 1, 2), (2, 1, 1), (2, 0, 0), (3, 1, 2)]
                {
                    check(voters, (standing, status, words), (copies, live, current));
                }
            }
        }
    }

    fn check(
        voters: (usize, usize),
        (standing, status, words): (DiskStanding, HealthStatus, &str),
        (copies, live, current): (u32, u32, u32),
    ) {
        let disk = DiskFacts { name: "d".to_owned(), standing, stale: 0, healed: 0, failures: 0 };
        let name = "v".to_owned();
        let vdisk = VirtualDiskFacts {
            name,
            copies,
            live,
            current,
            log_behind: 0,
            log_away: false,
            unrecoverable: 0,
            unverified: 0,
            stale: 0,
        };
        let health = judge(&Facts {
            voters,
            metadata: (1, 1),
            refused: None,
            untold: false,
            unflushed: false,
            disks: vec![disk],
            vdisks: vec![vdisk],
        });
        let text = format!("{voters:?} {standing:?} {copies} {live} {current}: {health:?}");
        assert_eq!(
            (health.disks[0].status, health.disks[0].operational),
            (status, words),
            "{text}"
        );
        let quorum = 2 * voters.0 > voters.1;
        let expected = match (quorum, current, live == copies) {
            (false, ..) => HealthStatus::Unknown,
            (true, 0, _) => HealthStatus::Unhealthy,
            (true, _, true) => HealthStatus::Healthy,
            (true, _, false) => HealthStatus::Warning,
        };
        assert_eq!(health.vdisks[0].status, expected, "{text}");
        let pool = match (quorum, status) {
            (false, _) => HealthStatus::Unhealthy,
            // The worst child wins upward (HLT-2).
            (true, status) => status.max(expected),
        };
        assert_eq!(health.pool.status, pool, "{text}");
        let worst = [status, expected, pool].into_iter().max().expect("three");
        assert_eq!(health.worst(), worst, "{text}");
        for verdict in [&health.pool, &health.disks[0], &health.vdisks[0]] {
            let healthy = verdict.status == HealthStatus::Healthy;
            assert_eq!(verdict.cause.is_none(), healthy, "a cause and an action: {text}");
        }
    }

    #[test]
    fn what_was_met_while_it_ran_counts() {
        let facts = |stale, healed, unrecoverable| Facts {
            voters: (1, 1),
            metadata: (1, 1),
            refused: None,
            untold: false,
            unflushed: false,
            disks: vec![DiskFacts {
                name: "d".to_owned(),
                standing: DiskStanding::Present,
                stale,
                healed,
                failures: 0,
            }],
            vdisks: vec![VirtualDiskFacts {
                name: "v".to_owned(),
                copies: 2,
                live: 2,
                current: 2,
                log_behind: 0,
                log_away: false,
                unrecoverable,
                unverified: 0,
                stale,
            }],
        };
        let repaired = judge(&facts(3, 0, 0));
        assert_eq!(repaired.disks[0].operational, "In Service");
        assert_eq!(repaired.vdisks[0].operational, "In Service");
        assert_eq!(repaired.worst(), HealthStatus::Warning);
        assert_eq!(repaired.pool.status, HealthStatus::Warning, "HLT-2");
        let untold = judge(&Facts { untold: true, ..facts(0, 0, 0) });
        assert_eq!(
            (untold.pool.status, untold.worst()),
            (HealthStatus::Warning, HealthStatus::Warning)
        );
        assert_eq!(judge(&facts(0, 10, 0)).disks[0].operational, "OK");
        assert_eq!(judge(&facts(0, 11, 0)).disks[0].operational, "Predictive Failure");
        for (stale, healed) in [(0, 0), (3, 0), (0, 11)] {
            let mut failed = facts(stale, healed, 0);
            failed.disks[0].failures = 1;
            let failed = judge(&failed);
            assert_eq!(failed.disks[0].operational, "IO Error");
            assert_eq!(
                (failed.pool.status, failed.worst()),
                (HealthStatus::Warning, HealthStatus::Warning)
            );
        }
        let unflushed = judge(&Facts { unflushed: true, ..facts(0, 0, 0) }).pool;
        assert_eq!((unflushed.status, unflushed.operational), (HealthStatus::Warning, "Degraded"));
        assert!(unflushed.cause.is_some_and(|cause| cause.0.contains("flushed")));
        let lost = judge(&facts(0, 0, 1));
        assert_eq!(lost.vdisks[0].operational, "No Redundancy");
        let unhealthy = HealthStatus::Unhealthy;
        assert_eq!((lost.pool.operational, lost.pool.status), ("Degraded", unhealthy));
        let one = judge(&Facts { metadata: (1, 2), ..facts(0, 0, 0) });
        assert_eq!((one.pool.operational, one.worst()), ("Degraded", HealthStatus::Warning));
        assert_eq!(
            judge(&Facts { metadata: (2, 3), ..facts(0, 0, 0) }).worst(),
            HealthStatus::Healthy
        );
        let mut away = facts(0, 0, 0);
        away.vdisks[0].log_away = true;
        let away = judge(&away);
        assert_eq!(away.vdisks[0].operational, "Detached (Incomplete)");
        assert_eq!((away.pool.status, away.worst()), (unhealthy, HealthStatus::Unknown));
        // Whatever its parts say, no start accepts it.
        let refused = Some(("no copy of the checkpoint".to_owned(), "attach them"));
        let refused = judge(&Facts { refused, ..facts(0, 0, 0) });
        assert_eq!(refused.pool.operational, "Read-only (Starting)");
        assert_eq!(refused.pool.status, HealthStatus::Unhealthy);
        assert_eq!(refused.vdisks[0].status, HealthStatus::Unknown);
    }
}
