//! What runs, or will run, beside the measurement.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

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
];
/// Timers that merely do something.
const LIGHT: &[&str] =
    &["logrotate", "updatedb", "plocate", "mlocate", "apt-daily", "dnf-", "smartd", "man-db"];

/// Folders that list the timers that are enabled.
const WANTED: &[&str] = &[
    "/etc/systemd/system/timers.target.wants",
    "/usr/lib/systemd/system/timers.target.wants",
    "/lib/systemd/system/timers.target.wants",
];

/// Folders of cron's jobs.
const CRON: &[&str] = &[
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
];

/// Timers that are enabled, and when they are due where the kernel's files tell.
pub(super) fn timers(scene: &Scene) -> Check {
    const ID: &str = "tasks-timers";
    let mut names: Vec<String> = WANTED
        .iter()
        .flat_map(|folder| scene.tree.names(folder))
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".timer"))
        .collect();
    let cron = CRON.iter().flat_map(|folder| {
        let names = scene.tree.names(folder).into_iter();
        names.map(move |name| format!("{folder}/{}", name.to_string_lossy()))
    });
    names.extend(cron.filter(|name| !name.contains("/.")));
    // It copies a small file of dpkg's.
    names.retain(|name| !name.contains("dpkg-db-backup"));
    names.sort();
    names.dedup();
    let listed = due(scene);
    let told = listed.as_ref().map(|due| judged_timers(scene, due));
    if told.is_some() {
        // Timers are told by when they are due; of jobs of cron that is not known.
        names.retain(|name| !name.ends_with(".timer"));
    }
    let does =
        |name: &String| HEAVY.iter().find(|(unit, _)| name.contains(unit)).map(|(_, does)| *does);
    let heavy: Vec<String> =
        names.iter().filter_map(|name| Some(format!("{name} {}", does(name)?))).collect();
    let light = names.iter().filter(|name| LIGHT.iter().any(|unit| name.contains(unit))).count();
    let remedy =
        "see when they are due: `systemctl list-timers`; stop them for the time of the test";
    if let Some((verdict @ Verdict::Block, said)) = told {
        return Check::new(ID, verdict, said, remedy);
    }
    if !heavy.is_empty() {
        let evidence = format!(
            "enabled: {}; and {light} lighter ones. When they are due was not read",
            heavy.join(", ")
        );
        return Check::new(ID, Verdict::Warn, evidence, remedy);
    }
    if let Some((verdict, said)) = told {
        return Check::new(ID, verdict, format!("{said}; {light} light jobs of cron"), remedy);
    }
    if light > 0 {
        return Check::new(
            ID,
            Verdict::Note,
            format!("{light} timers or jobs of cron that do little"),
            remedy,
        );
    }
    if names.is_empty() && WANTED.iter().all(|folder| !scene.tree.path(folder).exists()) {
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
        format!("{} timers and jobs of cron, none known to make the disks work", names.len()),
    )
}

/// Seconds from now within which a timer is due, where nobody said how long the measurement takes.
const WINDOW_S: u64 = 3600;

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
    let window = scene.target.plan.seconds.unwrap_or(WINDOW_S) as f64;
    let soon: Vec<String> = due
        .iter()
        .filter(|(_, seconds)| *seconds <= window)
        .filter_map(|(name, seconds)| {
            let (_, does) = HEAVY.iter().find(|(unit, _)| name.contains(unit))?;
            Some(format!("{name} {does} in {:.0} min", (seconds / 60.0).max(0.0)))
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
