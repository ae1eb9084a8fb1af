//! Volumes, pools and paths under the target: the kernel's files, and what the programs of each layer say.

use serde_json::Value;

use super::health::folder;
use super::{Check, Scene, Verdict, unseen};

/// Percent of a pool from which on it is nearly full, and full.
const NEARLY_FULL: f64 = 80.0;
const FULL: f64 = 95.0;

/// What was found, the worst first known.
#[derive(Default)]
struct Found(Vec<(Verdict, String)>);

impl Found {
    fn add(&mut self, verdict: Verdict, what: String) {
        self.0.push((verdict, what));
    }

    /// The heaviest, with all that weigh as much.
    fn worst(&self) -> Option<(Verdict, String)> {
        let verdict = self.0.iter().map(|found| found.0).max()?;
        let said: Vec<&str> = self
            .0
            .iter()
            .filter(|found| found.0 == verdict)
            .map(|found| found.1.as_str())
            .collect();
        Some((verdict, said.join("; ")))
    }
}

/// Volumes of LVM: what `lvs` says; without it what the kernel's names tell.
pub(super) fn lvm(scene: &Scene) -> Check {
    const ID: &str = "health-lvm";
    let devices = scene.target.devices(scene.tree);
    let of = |file: &str| -> Vec<String> {
        devices
            .iter()
            .filter_map(|device| scene.tree.text(format!("{}/dm/{file}", folder(device))))
            .collect()
    };
    let uuids: Vec<String> =
        of("uuid").into_iter().filter(|uuid| uuid.starts_with("LVM-")).collect();
    if uuids.is_empty() {
        let absent = || Check::ok(ID, "no LVM under the target");
        return unseen::mapped(scene, ID).unwrap_or_else(absent);
    }
    let has_snapshots = uuids.iter().any(|uuid| uuid.ends_with("-real") || uuid.ends_with("-cow"));
    let (mut found, is_told) = match scene.said.json("lvs") {
        Some(report) => {
            let volumes = report["report"][0]["lv"].as_array().cloned().unwrap_or_default();
            judged_volumes(&volumes, &of("name"))
        }
        None => (Found::default(), false),
    };
    if has_snapshots {
        found.add(Verdict::Warn, "the volume has snapshots".to_owned());
    }
    match found.worst() {
        Some((verdict @ Verdict::Block, said)) => Check::new(
            ID,
            verdict,
            said,
            "repair or extend it first: `lvs -a -o +lv_health_status`",
        ),
        Some((verdict, said)) => {
            let remedy =
                "remove snapshots, extend the pool: each write is copied, or waits for room";
            Check::new(ID, verdict, said, remedy)
        }
        None if is_told => Check::ok(ID, "no volume lacks a part, syncs, or is nearly full"),
        None => {
            let evidence = "the state of the volume was not read";
            let remedy = "run as root, or look at `lvs -a -o +lv_health_status,data_percent`";
            Check::new(ID, Verdict::Unknown, evidence, remedy)
        }
    }
}

/// The volumes under the target by the names of their devices, their pools and snapshots; whether any is listed.
fn judged_volumes(volumes: &[Value], names: &[String]) -> (Found, bool) {
    let text = |volume: &Value, field: &str| -> String {
        volume[field].as_str().unwrap_or_default().trim_matches(['[', ']']).to_owned()
    };
    let is_own = |volume: &&Value| {
        let path = text(volume, "lv_dm_path");
        names.iter().any(|name| path.rsplit('/').next() == Some(name.as_str()))
    };
    let own: Vec<&Value> = volumes.iter().filter(is_own).collect();
    let belongs = |volume: &Value| {
        own.iter().any(|other| {
            *other == volume
                || (text(other, "vg_name") == text(volume, "vg_name")
                    && !text(other, "pool_lv").is_empty()
                    && text(other, "pool_lv") == text(volume, "lv_name"))
        })
    };
    let mut found = Found::default();
    for volume in volumes.iter().filter(|volume| belongs(volume)) {
        let name = format!("{}/{}", text(volume, "vg_name"), text(volume, "lv_name"));
        let percent = |field: &str| text(volume, field).parse::<f64>().ok();
        let kind = text(volume, "lv_attr").chars().next().unwrap_or('-');
        match text(volume, "lv_attr").chars().nth(8) {
            Some('p') => {
                found.add(Verdict::Block, format!("{name} is partial: a device is missing"));
            }
            Some('r') => {
                found.add(Verdict::Block, format!("{name} needs a refresh"));
            }
            Some('F' | 'D' | 'M') => {
                found.add(Verdict::Block, format!("{name}: {}", text(volume, "lv_health_status")));
            }
            Some('m') => {
                found.add(Verdict::Warn, format!("{name} has mismatches"));
            }
            _ => {}
        }
        if matches!(kind, 'r' | 'R' | 'm' | 'M')
            && let Some(synced) = percent("copy_percent").filter(|percent| *percent < 100.0)
        {
            found.add(Verdict::Block, format!("{name} is synced to {synced} %"));
        }
        if kind == 't' {
            for (field, what) in [("data_percent", "data"), ("metadata_percent", "metadata")] {
                let Some(full) = percent(field).filter(|percent| *percent >= NEARLY_FULL) else {
                    continue;
                };
                let verdict = if full >= FULL { Verdict::Block } else { Verdict::Warn };
                found.add(verdict, format!("the {what} of the thin pool {name} are {full} % full"));
            }
        }
    }
    for volume in volumes {
        let of = own.iter().find(|other| {
            !text(volume, "origin").is_empty()
                && text(volume, "origin") == text(other, "lv_name")
                && text(volume, "vg_name") == text(other, "vg_name")
        });
        if let Some(origin) = of {
            let snapshot = text(volume, "lv_name");
            found.add(
                Verdict::Warn,
                format!("{snapshot} is a snapshot of {}", text(origin, "lv_name")),
            );
        }
    }
    (found, !own.is_empty())
}

/// Pools of ZFS: what `zpool` and `zfs` say, and the kernel of its state.
pub(super) fn zfs(scene: &Scene) -> Check {
    const ID: &str = "health-zfs";
    let Some(mount) = scene.target.stack.mount.as_ref().filter(|mount| mount.kind == "zfs") else {
        let devices = scene.target.devices(scene.tree);
        let is_volume = |name: &str| {
            name.strip_prefix("zd")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        return match devices.iter().find(|device| is_volume(&device.name)) {
            None => {
                let absent = || Check::ok(ID, "the target is not on ZFS");
                unseen::file_system(scene, ID).unwrap_or_else(absent)
            }
            Some(volume) => {
                let evidence =
                    format!("{} is a volume of ZFS: which pool it is in was not read", volume.name);
                Check::new(
                    ID,
                    Verdict::Unknown,
                    evidence,
                    "look at `zpool status` and `zfs get volblocksize`",
                )
            }
        };
    };
    let pool = mount.source.split('/').next().unwrap_or_default();
    let listed: Vec<&str> =
        scene.said.of("zpool list").unwrap_or_default().split_whitespace().collect();
    let by_kernel = scene.tree.text(format!("/proc/spl/kstat/zfs/{pool}/state"));
    let state = listed.first().map(|word| (*word).to_owned()).or(by_kernel);
    let Some(state) = state else {
        let evidence = format!("the state of pool {pool} cannot be read");
        return Check::new(ID, Verdict::Unknown, evidence, "look at `zpool status`");
    };
    if state != "ONLINE" {
        let evidence = format!("pool {pool} is {state}");
        return Check::new(ID, Verdict::Block, evidence, "repair the pool: `zpool status -x`");
    }
    let status = scene.said.of("zpool status");
    let is_busy = |what: &&str| {
        status.is_some_and(|text| text.contains(&format!("scan: {what} in progress")))
    };
    if let Some(busy) = ["scrub", "resilver"].into_iter().find(is_busy) {
        let evidence = format!("a {busy} of pool {pool} is running");
        return Check::new(ID, Verdict::Block, evidence, "wait until it ends: `zpool status`");
    }
    let damaged = status.unwrap_or_default().lines().find_map(|line| {
        let errors = line.trim().strip_prefix("errors:")?.trim();
        (errors != "No known data errors").then(|| errors.to_owned())
    });
    if let Some(errors) = damaged {
        let evidence = format!("pool {pool} is ONLINE with errors: {errors}");
        let remedy = "find what is damaged, and restore it: `zpool status -v`";
        return Check::new(ID, Verdict::Block, evidence, remedy);
    }
    let (true, Some(_)) = (listed.len() >= 3, status) else {
        let evidence = format!("pool {pool} is ONLINE; scrubs and fill were not read");
        return Check::new(
            ID,
            Verdict::Unknown,
            evidence,
            "look at `zpool status` and `zpool list`",
        );
    };
    let number = |word: &str| word.trim_end_matches('%').parse::<f64>().ok();
    let (full, fragmented) = (number(listed[2]), number(listed[1]));
    let mut said = format!(
        "pool {pool} is ONLINE, {} % full, {} % fragmented, nothing running",
        listed[2].trim_end_matches('%'),
        listed[1].trim_end_matches('%')
    );
    let cached = scene.tree.text("/proc/spl/kstat/zfs/arcstats").and_then(|text| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some("size"))?;
        line.split_whitespace().last()?.parse::<u64>().ok()
    });
    if let Some(bytes) = cached {
        said.push_str(&format!("; the ARC holds {} MiB", bytes >> 20));
    }
    if full.is_some_and(|full| full >= NEARLY_FULL) {
        let remedy = "make room: a pool that full searches for free blocks";
        return Check::new(ID, Verdict::Warn, said, remedy);
    }
    if fragmented.is_some_and(|fragmented| fragmented >= NEARLY_FULL) {
        let remedy =
            "free space lies in small pieces: move data off the pool and back, or add room";
        return Check::new(ID, Verdict::Warn, said, remedy);
    }
    let record = scene.said.of("zfs recordsize").and_then(|text| text.trim().parse::<u64>().ok());
    let planned = scene.target.plan.block_bytes;
    if let (Some(record), Some(block)) = (record, planned)
        && block < record
    {
        let evidence =
            format!("records of {record} bytes are read and written for I/Os of {block}; {said}");
        let remedy = "set recordsize to the size of the I/Os before the file is made";
        return Check::new(ID, Verdict::Warn, evidence, remedy);
    }
    if full.is_none() || fragmented.is_none() {
        return Check::new(ID, Verdict::Unknown, said, "look at `zpool list`");
    }
    Check::ok(ID, said)
}

/// File systems of btrfs: error counters, and what they are doing.
pub(super) fn btrfs(scene: &Scene) -> Check {
    const ID: &str = "health-btrfs";
    let Some(mount) = scene.target.stack.mount.as_ref().filter(|mount| mount.kind == "btrfs")
    else {
        let absent = || Check::ok(ID, "the target is not on btrfs");
        return unseen::file_system(scene, ID).unwrap_or_else(absent);
    };
    let mut bad = Vec::new();
    let (mut counted, mut is_told) = (0, false);
    for uuid in scene.tree.names("/sys/fs/btrfs").iter().filter_map(|name| name.to_str()) {
        let root = format!("/sys/fs/btrfs/{uuid}");
        let running = scene.tree.text(format!("{root}/exclusive_operation"));
        is_told |= running.is_some();
        bad.extend(
            running.filter(|what| what != "none").map(|what| format!("a {what} is running")),
        );
        for device in scene.tree.names(format!("{root}/devinfo")) {
            let path = format!("{root}/devinfo/{}/error_stats", device.to_string_lossy());
            let Some(text) = scene.tree.text(path) else { continue };
            counted += 1;
            let errors: u64 =
                text.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
            if errors > 0 {
                bad.push(format!("device {} counts {errors} errors", device.to_string_lossy()));
            }
        }
    }
    let scrub = scene.said.of("btrfs scrub");
    let runs = |line: &str| line.starts_with("Status:") && line.ends_with("running");
    if scrub.unwrap_or_default().lines().any(|line| runs(line.trim())) {
        bad.push("a scrub is running".to_owned());
    }
    if !bad.is_empty() {
        let remedy = "wait for it to end; repair what has errors: `btrfs device stats`";
        return Check::new(ID, Verdict::Block, bad.join("; "), remedy);
    }
    let packed = mount.super_options.iter().find(|option| option.starts_with("compress"));
    if let Some(option) = packed {
        let evidence = format!("mounted with {option}");
        return Check::new(
            ID,
            Verdict::Warn,
            evidence,
            "use a folder without compression and CoW (chattr +C)",
        );
    }
    // With this option nothing is copied; of a file, or the folder it will be made in, a mark says it.
    let is_in_place = mount.super_options.iter().any(|option| option == "nodatacow");
    if !is_in_place && scene.target.facts.is_in_place == Some(false) {
        return Check::new(
            ID,
            Verdict::Warn,
            "each write is copied to another place (CoW), and its checksum is written",
            "measure as it will be used, or mark the folder before the file is made: `chattr +C`",
        );
    }
    let unread: Vec<&str> = [
        ("the counters of its devices' errors", counted > 0),
        ("whether a balance is running", is_told),
        ("whether a scrub is running", scrub.is_some()),
    ]
    .into_iter()
    .filter_map(|(what, is_read)| (!is_read).then_some(what))
    .collect();
    if !unread.is_empty() {
        let evidence = format!("not read: {}", unread.join(", "));
        let remedy = "run as root, or look at `btrfs device stats`, `btrfs balance status`, `btrfs scrub status`";
        return Check::new(ID, Verdict::Unknown, evidence, remedy);
    }
    Check::ok(ID, "no errors counted, nothing running")
}

/// Paths of multipath devices: the kernel's state of each, and what `multipath` makes of it.
pub(super) fn multipath(scene: &Scene) -> Check {
    const ID: &str = "health-multipath";
    let listed = scene.said.of("multipath").unwrap_or_default();
    let (mut paths, mut failed, mut unread) = (0_usize, Vec::new(), Vec::new());
    for device in scene.target.devices(scene.tree) {
        let uuid = scene.tree.text(format!("{}/dm/uuid", folder(&device)));
        if !uuid.is_some_and(|uuid| uuid.starts_with("mpath-")) {
            continue;
        }
        for path in device.slaves(scene.tree) {
            paths += 1;
            let state = scene.tree.text(format!("{}/device/state", folder(&path)));
            unread.extend(state.is_none().then(|| path.name.clone()));
            let state = state.filter(|state| !["running", "live"].contains(&state.as_str()));
            // `|- 1:0:0:1 sdb 8:16 active ghost running`
            let line =
                listed.lines().find(|line| line.split_whitespace().any(|word| word == path.name));
            let checked = ["ghost", "faulty", "failed", "shaky"].into_iter().find(|bad| {
                line.is_some_and(|line| line.split_whitespace().any(|word| word == *bad))
            });
            if let Some(state) = state.or(checked.map(str::to_owned)) {
                failed.push(format!("{} is {state}", path.name));
            }
        }
    }
    let groups = listed.lines().filter(|line| line.contains("policy=")).count();
    let groups = if groups > 0 { format!(", {groups} priority groups") } else { String::new() };
    if failed.is_empty() && !unread.is_empty() {
        let evidence = format!("the state of {} was not read", unread.join(", "));
        return Check::new(ID, Verdict::Unknown, evidence, "look at `multipath -ll`, as root");
    }
    if failed.is_empty() {
        if let Some(unseen) = unseen::mapped(scene, ID) {
            return unseen;
        }
        return Check::ok(ID, format!("{paths} paths of multipath devices, none failed{groups}"));
    }
    let evidence = format!("{}{groups}", failed.join("; "));
    Check::new(ID, Verdict::Warn, evidence, "repair the paths: `multipath -ll`")
}
