//! What runs, or will run, beside the measurement.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Zoned;
use serde_json::Value;

use super::cron::{self, Due, Job};
use super::{Check, Scene, Verdict};

/// When it would end.
pub(super) fn window(scene: &Scene) -> Check {
    let evidence = match scene.target.plan.seconds {
        Some(seconds) => format!("{} min are planned from now on", seconds.div_ceil(60)),
        None => "no duration is planned".to_owned(),
    };
    Check::new("sched-window", Verdict::Note, evidence, "tell those who share the device")
}

/// Timers that make the disks work when they are due: unit, and what it does.
const HEAVY: &[(&str, &str)] = &[
    ("fstrim", "trims the file systems"),
    ("e2scrub", "scrubs ext4"),
    ("xfs_scrub", "scrubs XFS"),
    ("mdcheck", "checks md arrays"),
    ("mdadm", "checks md arrays"),
    ("raid-check", "checks md arrays"),
    ("btrfs-scrub", "scrubs btrfs"),
    ("btrfs-balance", "balances btrfs"),
    ("zfs-scrub", "scrubs ZFS"),
    ("zfsutils", "scrubs ZFS"),
    ("restic", "makes backups"),
    ("borg", "makes backups"),
    ("backup", "makes backups"),
    ("rsync", "copies files"),
    ("duplicity", "makes backups"),
    ("zpool scrub", "scrubs ZFS"),
    ("zpool trim", "trims a pool of ZFS"),
    ("btrfs scrub", "scrubs btrfs"),
    ("btrfs balance", "balances btrfs"),
    ("checkarray", "checks md arrays"),
];

/// What a job does to the disks, by its name or command.
pub(super) fn does(name: &str) -> Option<&'static str> {
    // It copies a small file of dpkg's.
    let is_small = name.contains("dpkg-db-backup");
    HEAVY.iter().find(|(unit, _)| name.contains(unit) && !is_small).map(|(_, does)| *does)
}

/// Timers that merely do something.
const LIGHT: &[&str] =
    &["logrotate", "updatedb", "plocate", "mlocate", "apt-daily", "dnf-", "smartd", "man-db"];

/// Folders that list the timers that are enabled.
const WANTED: &[&str] = &[
    "/etc/systemd/system/timers.target.wants",
    "/usr/lib/systemd/system/timers.target.wants",
    "/lib/systemd/system/timers.target.wants",
];

/// Timers that are enabled and jobs of cron, anacron and at, and when they are due.
pub(super) fn timers(scene: &Scene) -> Check {
    const ID: &str = "tasks-timers";
    let minutes = i64::try_from(window_s(scene).div_ceil(60)).unwrap_or(i64::MAX);
    let cron::Jobs { mut jobs, unread } = cron::jobs(scene, &Zoned::now(), minutes);
    let listed = due(scene);
    let told = listed.as_ref().map(|due| judged_timers(scene, due));
    if told.is_none() {
        jobs.extend(enabled(scene));
    }
    let heavy = |is: fn(Due) -> bool| -> Vec<String> {
        let of = jobs.iter().filter(|job| is(job.due));
        let mut said: Vec<String> =
            of.filter_map(|job| Some(format!("{} {}", job.place, job.does?))).collect();
        said.sort();
        said.dedup();
        said
    };
    let soon = jobs.iter().filter_map(|job| match job.due {
        Due::In(minutes) => Some(format!("{} {} in {minutes} min", job.place, job.does?)),
        Due::Later | Due::Unknown => None,
    });
    let mut soon: Vec<String> = soon.collect();
    let (unknown, later) = (heavy(|due| due == Due::Unknown), heavy(|due| due == Due::Later));
    let light = jobs.iter().filter(|job| is_light(job)).count();
    let remedy = "see when they are due: `systemctl list-timers`, `crontab -l`; stop them for the time of the test";
    if let Some((Verdict::Block, said)) = &told {
        soon.push(said.clone());
    }
    if !soon.is_empty() {
        return Check::new(ID, Verdict::Block, soon.join("; "), remedy);
    }
    if !unknown.is_empty() {
        let evidence = format!(
            "enabled: {}; and {light} lighter ones. When they are due was not read",
            unknown.join(", ")
        );
        return Check::new(ID, Verdict::Warn, evidence, remedy);
    }
    let mut seen: Vec<String> = told.map(|(_, said)| said).into_iter().collect();
    if !later.is_empty() {
        seen.push(format!("not due before the end: {}", later.join(", ")));
    }
    if !unread.is_empty() {
        let evidence = format!(
            "{}tables in {} cannot be read",
            seen.iter().map(|said| format!("{said}; ")).collect::<String>(),
            unread.join(", ")
        );
        return Check::new(
            ID,
            Verdict::Unknown,
            evidence,
            "run as root, or look at `crontab -l` of each user",
        );
    }
    if light > 0 || !seen.is_empty() {
        seen.push(format!("{light} timers or jobs of cron that do little"));
        return Check::new(ID, Verdict::Note, seen.join("; "), remedy);
    }
    if jobs.is_empty() && WANTED.iter().all(|folder| !scene.tree.path(folder).exists()) {
        let evidence = "no list of timers and no jobs of cron are there";
        return Check::new(
            ID,
            Verdict::Unknown,
            evidence,
            "look at crontabs: `crontab -l`, /etc/cron.*",
        );
    }
    Check::ok(
        ID,
        format!("{} timers and jobs of cron, none known to make the disks work", jobs.len()),
    )
}

/// Whether a job merely does something, or is due and nobody knows what it does.
fn is_light(job: &Job) -> bool {
    let is_known = LIGHT.iter().any(|unit| job.place.contains(unit));
    job.does.is_none() && (is_known || matches!(job.due, Due::In(_)))
}

/// Timers that are enabled, where systemd does not say when they are due.
fn enabled(scene: &Scene) -> Vec<Job> {
    let names = WANTED.iter().flat_map(|folder| scene.tree.names(folder));
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".timer"));
    names.sort();
    names.dedup();
    let of = |name: String| Job { does: does(&name), place: name, due: Due::Unknown };
    names.into_iter().map(of).collect()
}

/// Seconds from now within which a timer is due, where nobody said how long the measurement takes.
const WINDOW_S: u64 = 3600;

fn window_s(scene: &Scene) -> u64 {
    scene.target.plan.seconds.unwrap_or(WINDOW_S)
}

/// Timers and when they are due, in seconds from now, as systemd says; `None` where it does not.
fn due(scene: &Scene) -> Option<Vec<(String, f64)>> {
    let listed = scene.said.json("systemctl timers")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    let of = |timer: &Value| {
        let next = timer["next"].as_f64().filter(|next| *next > 0.0)?;
        Some((timer["unit"].as_str()?.to_owned(), next / 1e6 - now))
    };
    Some(listed.as_array()?.iter().filter_map(of).collect())
}

/// Whether a timer that makes the disks work is due before the planned end.
fn judged_timers(scene: &Scene, due: &[(String, f64)]) -> (Verdict, String) {
    let window = window_s(scene) as f64;
    let soon: Vec<String> = due
        .iter()
        .filter(|(_, seconds)| *seconds <= window)
        .filter_map(|(name, seconds)| {
            Some(format!("{name} {} in {:.0} min", does(name)?, (seconds / 60.0).max(0.0)))
        })
        .collect();
    if soon.is_empty() {
        let said = format!(
            "of {} timers none that makes the disks work is due within {:.0} min",
            due.len(),
            window / 60.0
        );
        return (Verdict::Note, said);
    }
    (Verdict::Block, soon.join("; "))
}

/// Programs that make the disks work.
const JOBS: &[&str] = &[
    "fstrim",
    "e2scrub",
    "e2scrub_all",
    "e2fsck",
    "fsck",
    "xfs_scrub",
    "xfs_scrub_all",
    "xfs_repair",
    "xfs_fsr",
    "mdcheck",
    "checkarray",
    "raid-check",
    "btrfs",
    "btrfs-balance",
    "updatedb",
    "dd",
    "fio",
    "rsync",
    "pvmove",
    "lvconvert",
    "badblocks",
    "mkfs",
    "logrotate",
    "apt",
    "apt-get",
    "dpkg",
    "dnf",
    "dnf-automatic",
    "yum",
    "rpm",
    "zypper",
];
/// Programs that make backups.
const BACKUPS: &[&str] = &[
    "restic",
    "borg",
    "duplicity",
    "bacula-fd",
    "bareos-fd",
    "veeamagent",
    "veeamservice",
    "dsmc",
    "duply",
    "rsnapshot",
    "amandad",
    "urbackupclientb",
    "nsrexecd",
    "bpbkar",
    "kopia",
    "cbagent",
    "rdiff-backup",
];

/// Names of the running programs, this one left out.
fn programs(scene: &Scene) -> Vec<String> {
    let own = std::process::id().to_string();
    scene
        .tree
        .names("/proc")
        .iter()
        .filter_map(|name| name.to_str())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|name| !scene.tree.is_real() || **name != own)
        .filter_map(|name| scene.tree.text(format!("/proc/{name}/comm")))
        .collect()
}

fn running_of(scene: &Scene, wanted: &[&str]) -> (usize, Vec<String>) {
    let all = programs(scene);
    // `mkfs.ext4` is a `mkfs`, and what the kernel cuts to 15 bytes is known by its beginning: `updatedb.plocat`.
    let is_wanted = |name: &&String| {
        let first = name.split('.').next().unwrap_or_default();
        wanted.iter().any(|wanted| *wanted == name.as_str() || *wanted == first)
    };
    let mut found: Vec<String> = all.iter().filter(is_wanted).cloned().collect();
    found.sort();
    found.dedup();
    (all.len(), found)
}

/// Jobs that are running now.
pub(super) fn running(scene: &Scene) -> Check {
    const ID: &str = "tasks-running";
    let tests = super::health::self_tests(scene);
    if !tests.is_empty() {
        let evidence = format!("running: {}", tests.join(", "));
        return Check::new(ID, Verdict::Block, evidence, "wait for it to end: `smartctl -c`");
    }
    match running_of(scene, JOBS) {
        (0, _) => Check::new(ID, Verdict::Unknown, "no process is visible", "mount /proc"),
        (count, jobs) if jobs.is_empty() => {
            Check::ok(ID, format!("none of the {count} processes is known to make the disks work"))
        }
        (_, jobs) => {
            let evidence = format!("running: {}", jobs.join(", "));
            Check::new(ID, Verdict::Block, evidence, "wait for it to end")
        }
    }
}

/// Backup agents.
pub(super) fn backup(scene: &Scene) -> Check {
    const ID: &str = "backup";
    match running_of(scene, BACKUPS) {
        (0, _) => Check::new(ID, Verdict::Unknown, "no process is visible", "mount /proc"),
        (_, agents) if agents.is_empty() => Check::ok(ID, "no known backup agent is running"),
        (_, agents) => {
            let evidence = format!("running: {}", agents.join(", "));
            Check::new(ID, Verdict::Warn, evidence, "see that no backup begins during the test")
        }
    }
}
