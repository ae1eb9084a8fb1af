//! Whether what lies under the target is well.

use plumb_io::block_stack::BlockDevice;
use plumb_io::nvme_log::{HealthLog, controller};
use serde_json::Value;

use super::{Check, Scene, Verdict, unseen};

pub(super) fn folder(device: &BlockDevice) -> String {
    format!("/sys/dev/block/{}", device.number)
}

/// What the drive itself says, by smartctl: no file of the kernel tells that.
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
        let absent = || Check::ok(ID, "no ATA or SCSI drive under the target");
        return unseen::devices(scene, ID).unwrap_or_else(absent);
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
    let logs: Vec<(Verdict, String)> = drives
        .iter()
        .map(|name| {
            let log = scene.said.json(&format!("smartctl {name}"));
            match log.as_ref().and_then(judged_smart) {
                Some((verdict, said)) => (verdict, format!("{name}: {said}")),
                None => (Verdict::Unknown, format!("the SMART log of {name} was not read")),
            }
        })
        .collect();
    let verdict = logs.iter().map(|log| log.0).max().unwrap_or(Verdict::Unknown);
    let said: Vec<String> = logs.into_iter().map(|log| log.1).collect();
    let remedy = match verdict {
        Verdict::Block => "replace the drive",
        Verdict::Warn => "plan its replacement, and expect slow reads where sectors were moved",
        Verdict::Unknown => {
            "install smartctl and run as root, or look at `smartctl -H -A` of each drive"
        }
        Verdict::Ok | Verdict::Note => "",
    };
    Check::new(ID, verdict, said.join("; "), remedy)
}

/// What smartctl says of a drive, as its JSON; `None` where the drive did not tell.
fn judged_smart(log: &Value) -> Option<(Verdict, String)> {
    let passed = log["smart_status"]["passed"].as_bool()?;
    let table = log["ata_smart_attributes"]["table"].as_array();
    let raw = |id: u64| {
        let row = table?.iter().find(|row| row["id"] == id)?;
        row["raw"]["value"].as_u64()
    };
    let counts = [
        ("reallocated sectors", raw(5)),
        ("pending sectors", raw(197)),
        ("uncorrectable sectors", raw(198)),
        ("grown defects", log["scsi_grown_defect_list"].as_u64()),
    ];
    let seen: Vec<String> = counts
        .iter()
        .filter_map(|(what, count)| count.filter(|n| *n > 0).map(|n| format!("{n} {what}")))
        .collect();
    // A sector that waits for its replacement is read again and again.
    let fails = counts[1..3].iter().any(|(_, count)| count.is_some_and(|n| n > 0));
    let verdict = match (passed && !fails, seen.is_empty()) {
        (false, _) => Verdict::Block,
        (true, false) => Verdict::Warn,
        (true, true) => Verdict::Ok,
    };
    let health = if passed { "its health test passed" } else { "its health test FAILED" };
    let seen = if seen.is_empty() { "no bad sectors".to_owned() } else { seen.join(", ") };
    Some((verdict, format!("{health}, {seen}")))
}

/// Drives that test themselves now, as smartctl says.
pub(super) fn self_tests(scene: &Scene) -> Vec<String> {
    let runs = |name: &String| {
        let log = scene.said.json(&format!("smartctl {name}"))?;
        let status = &log["ata_smart_data"]["self_test"]["status"];
        let runs = status["remaining_percent"].as_u64().is_some_and(|left| left > 0)
            || status["string"].as_str().is_some_and(|text| text.contains("in progress"));
        runs.then(|| format!("a self-test of {name}"))
    };
    let disks = scene.target.disks(scene.tree).into_iter().map(|disk| disk.name);
    disks.filter_map(|name| runs(&name)).collect()
}

/// State of NVMe controllers; their health log needs a command to the device.
pub(super) fn nvme(scene: &Scene) -> Check {
    const ID: &str = "health-nvme";
    let names = nvme_controllers(scene);
    if names.is_empty() {
        let absent = || Check::ok(ID, "no NVMe device under the target");
        return unseen::devices(scene, ID).unwrap_or_else(absent);
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

pub(super) fn nvme_controllers(scene: &Scene) -> Vec<String> {
    let mut names = Vec::new();
    for disk in scene.target.disks(scene.tree) {
        names.extend(controller(&disk.name).filter(|name| !names.contains(name)));
    }
    names
}
