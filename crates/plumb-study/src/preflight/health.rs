//! Whether what lies under the target is well.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use plumb_io::block_stack::BlockDevice;

use super::{Check, HealthLog, Scene, Verdict};

fn folder(device: &BlockDevice) -> String {
    format!("/sys/dev/block/{}", device.number)
}

/// What the drive itself says; no file of the kernel tells that.
pub(super) fn smart(scene: &Scene) -> Check {
    const ID: &str = "health-smart";
    let drives: Vec<String> = scene
        .target
        .disks(scene.tree)
        .into_iter()
        .filter(|disk| disk.name.starts_with("sd") || disk.name.starts_with("hd"))
        .map(|disk| disk.name)
        .collect();
    if drives.is_empty() {
        return Check::ok(ID, "no ATA or SCSI drive under the target");
    }
    let states: Vec<String> = drives
        .iter()
        .filter_map(|name| {
            let state = scene.tree.text(format!("/sys/class/block/{name}/device/state"))?;
            (state != "running").then(|| format!("{name} is {state}"))
        })
        .collect();
    if !states.is_empty() {
        return Check::new(ID, Verdict::Block, states.join("; "), "replace or reconnect the drive");
    }
    let evidence = format!("the SMART log of {} was not read", drives.join(", "));
    Check::new(ID, Verdict::Unknown, evidence, "look at `smartctl -H -A` of each drive, as root")
}

/// State of NVMe controllers; their health log needs a command to the device.
pub(super) fn nvme(scene: &Scene) -> Check {
    const ID: &str = "health-nvme";
    let names = nvme_controllers(scene);
    if names.is_empty() {
        return Check::ok(ID, "no NVMe device under the target");
    }
    let states: Vec<String> = names
        .iter()
        .filter_map(|name| Some((name, scene.tree.text(format!("/sys/class/nvme/{name}/state"))?)))
        .filter(|(_, state)| state != "live")
        .map(|(name, state)| format!("{name} is {state}"))
        .collect();
    if !states.is_empty() {
        let remedy = "wait until the controller is live again";
        return Check::new(ID, Verdict::Block, states.join("; "), remedy);
    }
    let logs: Vec<(&String, Option<HealthLog>)> =
        names.iter().map(|name| (name, HealthLog::read(scene.tree, name))).collect();
    let verdict = logs.iter().map(|(_, log)| log.map_or(Verdict::Unknown, judged)).max();
    let verdict = verdict.unwrap_or(Verdict::Unknown);
    let said = logs.iter().map(|(name, log)| match log {
        None => format!("{name} is live; its health log was not read"),
        Some(log) => format!(
            "{name} is live; critical warnings {:#04x}, {} % spare (alarm below {} %), {} % of its endurance used, {} \
             media errors",
            log.critical_warning, log.spare.0, log.spare.1, log.used_percent, log.media_errors
        ),
    });
    let evidence = said.collect::<Vec<_>>().join("; ");
    let remedy = match verdict {
        Verdict::Block => "replace the drive",
        Verdict::Warn => "expect other figures than of a new drive, and plan its replacement",
        Verdict::Unknown => "look at `nvme smart-log`, as root",
        Verdict::Ok | Verdict::Note => "",
    };
    Check::new(ID, verdict, evidence, remedy)
}

/// What a health log means for a measurement (2.1).
fn judged(log: HealthLog) -> Verdict {
    if log.critical_warning != 0 || log.spare.0 < log.spare.1 {
        Verdict::Block
    } else if log.used_percent >= 100 || log.media_errors > 0 {
        Verdict::Warn
    } else {
        Verdict::Ok
    }
}

fn nvme_controllers(scene: &Scene) -> Vec<String> {
    let mut names = Vec::new();
    for disk in scene.target.disks(scene.tree) {
        names.extend(controller(&disk.name).filter(|name| !names.contains(name)));
    }
    names
}

/// The controller of an NVMe disk: `nvme0` of `nvme0n1`.
pub(crate) fn controller(disk: &str) -> Option<String> {
    let digits = disk.strip_prefix("nvme")?.split('n').next().unwrap_or_default();
    Some(format!("nvme{digits}"))
}

/// Arrays of md: degraded, or busy with themselves.
pub(super) fn md(scene: &Scene) -> Check {
    const ID: &str = "health-md";
    let mut arrays = 0;
    let (mut bad, mut notable) = (Vec::new(), Vec::new());
    for device in scene.target.devices(scene.tree) {
        let md = format!("{}/md", folder(&device));
        let Some(state) = scene.tree.text(format!("{md}/array_state")) else { continue };
        arrays += 1;
        let name = &device.name;
        if !["clean", "active", "active-idle", "write-pending"].contains(&state.as_str()) {
            bad.push(format!("{name} is {state}"));
        }
        if let Some(missing) = scene.tree.number(format!("{md}/degraded")).filter(|n| *n > 0) {
            bad.push(format!("{name} lacks {missing} devices"));
        }
        let action = scene.tree.text(format!("{md}/sync_action"));
        if let Some(action) = action.filter(|action| !["idle", "frozen"].contains(&action.as_str()))
        {
            bad.push(format!("{name} is doing a {action}"));
        }
        let mismatches = scene.tree.number(format!("{md}/mismatch_cnt")).filter(|n| *n > 0);
        notable.extend(mismatches.map(|count| format!("{name} had {count} mismatches")));
    }
    if !bad.is_empty() {
        let remedy = "wait for the array, or stop the check: echo idle > md/sync_action";
        return Check::new(ID, Verdict::Block, bad.join("; "), remedy);
    }
    if !notable.is_empty() {
        return Check::new(ID, Verdict::Warn, notable.join("; "), "repair the array first");
    }
    Check::ok(ID, format!("{arrays} md arrays under the target"))
}

/// Volumes of LVM: what the kernel's names tell.
pub(super) fn lvm(scene: &Scene) -> Check {
    const ID: &str = "health-lvm";
    let uuids: Vec<String> = scene
        .target
        .devices(scene.tree)
        .iter()
        .filter_map(|device| scene.tree.text(format!("{}/dm/uuid", folder(device))))
        .filter(|uuid| uuid.starts_with("LVM-"))
        .collect();
    if uuids.is_empty() {
        return Check::ok(ID, "no LVM under the target");
    }
    if uuids.iter().any(|uuid| uuid.ends_with("-real") || uuid.ends_with("-cow")) {
        let remedy = "remove the snapshots: each write is copied for them";
        return Check::new(ID, Verdict::Warn, "the volume has snapshots", remedy);
    }
    let evidence = "the state of the volume was not read";
    Check::new(
        ID,
        Verdict::Unknown,
        evidence,
        "look at `lvs -a -o +lv_health_status,data_percent`, as root",
    )
}

/// Pools of ZFS.
pub(super) fn zfs(scene: &Scene) -> Check {
    const ID: &str = "health-zfs";
    let Some(mount) = scene.target.stack.mount.as_ref().filter(|mount| mount.kind == "zfs") else {
        return Check::ok(ID, "the target is not on ZFS");
    };
    let pool = mount.source.split('/').next().unwrap_or_default();
    match scene.tree.text(format!("/proc/spl/kstat/zfs/{pool}/state")) {
        Some(state) if state == "ONLINE" => {
            let evidence = format!("pool {pool} is ONLINE; scrubs and fill were not read");
            Check::new(ID, Verdict::Unknown, evidence, "look at `zpool status` and `zpool list`")
        }
        Some(state) => {
            let evidence = format!("pool {pool} is {state}");
            Check::new(ID, Verdict::Block, evidence, "repair the pool: `zpool status -x`")
        }
        None => {
            let evidence = format!("the state of pool {pool} cannot be read");
            Check::new(ID, Verdict::Unknown, evidence, "look at `zpool status`")
        }
    }
}

/// File systems of btrfs: error counters, and what they are doing.
pub(super) fn btrfs(scene: &Scene) -> Check {
    const ID: &str = "health-btrfs";
    let Some(mount) = scene.target.stack.mount.as_ref().filter(|mount| mount.kind == "btrfs")
    else {
        return Check::ok(ID, "the target is not on btrfs");
    };
    let mut bad = Vec::new();
    for uuid in scene.tree.names("/sys/fs/btrfs").iter().filter_map(|name| name.to_str()) {
        let root = format!("/sys/fs/btrfs/{uuid}");
        let running = scene.tree.text(format!("{root}/exclusive_operation"));
        bad.extend(
            running.filter(|what| what != "none").map(|what| format!("a {what} is running")),
        );
        for device in scene.tree.names(format!("{root}/devinfo")) {
            let path = format!("{root}/devinfo/{}/error_stats", device.to_string_lossy());
            let text = scene.tree.text(path).unwrap_or_default();
            let errors: u64 =
                text.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
            if errors > 0 {
                bad.push(format!("device {} counts {errors} errors", device.to_string_lossy()));
            }
        }
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
    Check::ok(ID, "no errors counted, nothing running")
}

/// Paths of multipath devices.
pub(super) fn multipath(scene: &Scene) -> Check {
    const ID: &str = "health-multipath";
    let (mut paths, mut failed) = (0_usize, Vec::new());
    for device in scene.target.devices(scene.tree) {
        let uuid = scene.tree.text(format!("{}/dm/uuid", folder(&device)));
        if !uuid.is_some_and(|uuid| uuid.starts_with("mpath-")) {
            continue;
        }
        for path in device.slaves(scene.tree) {
            paths += 1;
            let state = scene.tree.text(format!("{}/device/state", folder(&path)));
            if let Some(state) =
                state.filter(|state| !["running", "live"].contains(&state.as_str()))
            {
                failed.push(format!("{} is {state}", path.name));
            }
        }
    }
    if failed.is_empty() {
        return Check::ok(ID, format!("{paths} paths of multipath devices, none failed"));
    }
    Check::new(ID, Verdict::Warn, failed.join("; "), "repair the paths: `multipath -ll`")
}

/// Whether the data is on another machine.
pub(super) fn fabric(scene: &Scene) -> Check {
    const ID: &str = "health-fabric";
    if let Some(mount) = scene.target.stack.mount.as_ref().filter(|mount| mount.is_remote()) {
        let evidence =
            format!("{} from {}: the network is part of every I/O", mount.kind, mount.source);
        return Check::new(
            ID,
            Verdict::Note,
            evidence,
            "record sessions and link speed with the result",
        );
    }
    let remote: Vec<String> = nvme_controllers(scene)
        .into_iter()
        .filter_map(|name| {
            let transport = scene.tree.text(format!("/sys/class/nvme/{name}/transport"))?;
            (transport != "pcie").then(|| format!("{name} is attached by {transport}"))
        })
        .collect();
    if remote.is_empty() {
        return Check::ok(ID, "nothing under the target is remote, as far as the kernel shows");
    }
    Check::new(ID, Verdict::Note, remote.join("; "), "record paths and link speed with the result")
}

/// Trouble of the devices in the kernel's log.
pub(super) fn kernel_log(scene: &Scene) -> Check {
    const ID: &str = "klog";
    let Some(log) = read_log(scene) else {
        let evidence = "the kernel's log cannot be read";
        return Check::new(ID, Verdict::Unknown, evidence, "run as root, or look at `dmesg`");
    };
    let names: Vec<String> =
        scene.target.devices(scene.tree).into_iter().map(|device| device.name).collect();
    let is_trouble = |line: &&str| {
        let lower = line.to_lowercase();
        ["i/o error", "timeout", "timed out", "reset", "abort"]
            .iter()
            .any(|word| lower.contains(word))
            && names.iter().any(|name| mentions(line, name))
    };
    let found: Vec<&str> = log.lines().filter(is_trouble).collect();
    match found.last() {
        None => Check::ok(ID, "no errors, timeouts or resets of these devices"),
        Some(last) => {
            let evidence = format!("{} lines, the last: {}", found.len(), last.trim());
            Check::new(ID, Verdict::Warn, evidence, "find the cause before measuring: `dmesg`")
        }
    }
}

/// Whether a line names a device, and not one whose name only begins so.
fn mentions(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let after = line[at + name.len()..].chars().next();
        let before = line[..at].chars().next_back();
        let inside = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        !inside(after) && !inside(before)
    })
}

/// All records of the log so far; the device would wait for the next one, so it is not asked to.
fn read_log(scene: &Scene) -> Option<String> {
    const RECORDS: usize = 100_000;
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).ok()?;
    let path = scene.tree.path("/dev/kmsg");
    let mut file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let mut log = String::new();
    let mut record = vec![0; 64 << 10];
    for _ in 0..RECORDS {
        match file.read(&mut record) {
            Ok(0) | Err(_) => break,
            Ok(length) => log.push_str(&String::from_utf8_lossy(&record[..length])),
        }
    }
    Some(log)
}
