//! Every combination of facts has its verdict (HLT-1).

use super::*;

const STANDINGS: [(DiskStanding, HealthStatus, &str); 11] = [
    (DiskStanding::Present, HealthStatus::Healthy, "OK"),
    (DiskStanding::Away, HealthStatus::Warning, "Lost Communication"),
    (DiskStanding::Missing, HealthStatus::Warning, "Lost Communication"),
    (DiskStanding::Returning, HealthStatus::Warning, "Lost Communication"),
    (DiskStanding::Outdated, HealthStatus::Unhealthy, "Stale Metadata"),
    (DiskStanding::TooSmall, HealthStatus::Unhealthy, "Not Usable"),
    (DiskStanding::ReadOnly, HealthStatus::Unhealthy, "Not Usable"),
    (DiskStanding::Split, HealthStatus::Unhealthy, "Split"),
    (DiskStanding::Retired, HealthStatus::Warning, "Removing From Pool"),
    (DiskStanding::Leaving, HealthStatus::Warning, "Removing From Pool"),
    (DiskStanding::Removed, HealthStatus::Healthy, "OK"),
];

/// Copies that there should be, that are here, and that are here or still current.
fn combinations() -> impl Iterator<Item = (u32, u32, u32)> {
    let live = |copies: u32| (0..=copies).map(move |live| (copies, live));
    let current = |(copies, live)| (live..=copies).map(move |current| (copies, live, current));
    (1..=3).flat_map(live).flat_map(current)
}

#[test]
fn every_combination_has_its_verdict() {
    for (standing, status, words) in STANDINGS {
        for voters in [(3, 3), (2, 3), (1, 3), (1, 2), (0, 0)] {
            for (copies, live, current) in combinations() {
                for older in [false, true] {
                    // What this machine knows to be older is told where the others cannot make it up to date.
                    let (status, words) = match older && 2 * voters.0 <= voters.1 {
                        true if standing == DiskStanding::Present => {
                            (HealthStatus::Warning, "Stale Metadata")
                        }
                        _ => (status, words),
                    };
                    let is = (copies, live, current);
                    check((voters, older), (standing, false, status, words), is);
                    let away = matches!(standing, DiskStanding::Away | DiskStanding::Missing);
                    let (status, words) = match away {
                        true => (HealthStatus::Unhealthy, "Unrecognized Metadata"),
                        false => (status, words),
                    };
                    check((voters, older), (standing, true, status, words), is);
                }
            }
        }
    }
}

fn check(
    (voters, older): ((usize, usize), bool),
    (standing, foreign, status, words): (DiskStanding, bool, HealthStatus, &str),
    (copies, live, current): (u32, u32, u32),
) {
    let name = "d".to_owned();
    let disk = DiskFacts {
        name,
        standing,
        foreign,
        stale: 0,
        healed: 0,
        failures: 0,
        errors: 0,
        waits: None,
    };
    let name = "v".to_owned();
    let vdisk = VirtualDiskFacts {
        name,
        copies,
        live,
        current,
        unreadable: None,
        remedy: Remedy::Connect,
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
        full: None,
        untold: false,
        older,
        unflushed: false,
        disks: vec![disk],
        vdisks: vec![vdisk],
    });
    let text = format!("{voters:?} {older} {standing:?} {copies} {live} {current}: {health:?}");
    assert_eq!((health.disks[0].status, health.disks[0].operational), (status, words), "{text}");
    let quorum = 2 * voters.0 > voters.1;
    let expected = match (quorum, live, live == copies) {
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

/// Whatever the rows say, data without a copy here that is up to date is Unhealthy; and each cause has the action that helps.
#[test]
fn data_without_a_copy_here_is_unhealthy_and_its_disks_are_asked_for() {
    for (copies, live, current) in combinations() {
        for bytes in [None, Some(0), Some(3 << 20)] {
            for remedy in [
                Remedy::Backup,
                Remedy::Wait,
                Remedy::Start,
                Remedy::AddDisk,
                Remedy::SeeDisks,
                Remedy::Connect,
            ] {
                for unrecoverable in [0, 9] {
                    let facts = VirtualDiskFacts {
                        name: "v".to_owned(),
                        copies,
                        live,
                        current,
                        unreadable: bytes.map(|bytes| Unreadable { bytes, ranges: Vec::new() }),
                        remedy,
                        log_behind: 0,
                        log_away: false,
                        unrecoverable,
                        unverified: 0,
                        stale: 0,
                    };
                    let found = vdisk(&facts, true, None);
                    let away = live == 0 || bytes > Some(0);
                    assert_eq!(found.is_ill(), away || unrecoverable > 0, "{facts:?}: {found:?}");
                    let Some((cause, action)) = found.cause else { continue };
                    assert_eq!(
                        action.contains("backup"),
                        found.status == HealthStatus::Unhealthy
                            && !matches!((away, remedy), (true, Remedy::Start | Remedy::SeeDisks)),
                        "{facts:?}: {action}"
                    );
                    if away {
                        assert!(cause.contains("copy here"), "{cause}");
                        assert!(!action.contains("write what they held anew"), "{action}");
                    } else if unrecoverable == 0 {
                        let adds = action.contains("add-disk");
                        assert_eq!(adds, remedy == Remedy::AddDisk, "{action}");
                        assert_eq!(
                            action.starts_with("connect"),
                            remedy == Remedy::Connect,
                            "{action}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn what_was_met_while_it_ran_counts() {
    let facts = |stale, healed, unrecoverable| Facts {
        voters: (1, 1),
        metadata: (1, 1),
        refused: None,
        full: None,
        untold: false,
        older: false,
        unflushed: false,
        disks: vec![DiskFacts {
            name: "d".to_owned(),
            standing: DiskStanding::Present,
            foreign: false,
            stale,
            healed,
            failures: 0,
            errors: 0,
            waits: None,
        }],
        vdisks: vec![VirtualDiskFacts {
            name: "v".to_owned(),
            copies: 2,
            live: 2,
            current: 2,
            unreadable: None,
            remedy: Remedy::Connect,
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
    // Whoever does not take part for its errors is not told as being away, and who fails again and again is not trusted.
    let erring = |standing: DiskStanding, errors: u64| {
        let mut facts = facts(0, 0, 0);
        (facts.disks[0].standing, facts.disks[0].errors) = (standing, errors);
        let judged = judge(&facts);
        (judged.disks[0].status, judged.disks[0].operational)
    };
    for out in [DiskStanding::Away, DiskStanding::Missing, DiskStanding::Returning] {
        assert_eq!(erring(out, 1), (HealthStatus::Warning, "IO Error"));
    }
    assert_eq!(erring(DiskStanding::Outdated, 1).1, "Stale Metadata");
    assert_eq!(erring(DiskStanding::Present, 2), (HealthStatus::Healthy, "OK"));
    assert_eq!(erring(DiskStanding::Present, 3), (HealthStatus::Warning, "Predictive Failure"));
    let unflushed = judge(&Facts { unflushed: true, ..facts(0, 0, 0) }).pool;
    assert_eq!((unflushed.status, unflushed.operational), (HealthStatus::Warning, "Degraded"));
    assert!(unflushed.cause.is_some_and(|cause| cause.0.contains("flushed")));
    let lost = judge(&facts(0, 0, 1));
    assert_eq!(lost.vdisks[0].operational, "No Redundancy");
    let unhealthy = HealthStatus::Unhealthy;
    assert_eq!((lost.pool.operational, lost.pool.status), ("Degraded", unhealthy));
    let one = judge(&Facts { metadata: (1, 2), ..facts(0, 0, 0) });
    assert_eq!((one.pool.operational, one.worst()), ("Degraded", HealthStatus::Warning));
    assert_eq!(judge(&Facts { metadata: (2, 3), ..facts(0, 0, 0) }).worst(), HealthStatus::Healthy);
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
    // Nor where nothing can be written, and that is the reason that is told.
    let refused = Some(("the pool has stopped".to_owned(), "start it"));
    for refused in [None, refused] {
        let full = Some("/small/a.img".to_owned());
        let full = judge(&Facts { refused, full, ..facts(0, 0, 1) });
        assert_eq!((full.pool.operational, full.pool.status), ("Read-only (Starting)", unhealthy));
        let (cause, action) = full.pool.cause.expect("it has one");
        assert!(cause.contains("/small/a.img") && cause.contains("full"), "{cause}");
        assert!(action.contains("make room"), "{action}");
        assert_eq!(full.vdisks[0].status, HealthStatus::Unknown);
        assert_eq!(full.vdisks[0].operational, "Detached (By Policy)");
    }
}
