//! The targets, and the layers down to the devices.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plumb_io::block_stack::{BlockDevice, DiskFacts, WriteCache};
use plumb_io::nvme_log::{HealthLog, controller};
use plumb_io::system_tree::SystemTree;
use plumb_sys::device as node;
use serde_json::{Map, Value, json};

use crate::preflight::{Plan, Target};

/// Adds the groups `target`, `fs`, `stack`, `device` and `queue`; what changes by itself goes to `volatile`.
pub(super) fn add(
    tree: &SystemTree,
    paths: &[PathBuf],
    groups: &mut Map<String, Value>,
    volatile: &mut Map<String, Value>,
) {
    let (mut targets, mut systems, mut stack) = (Vec::new(), Vec::new(), Vec::new());
    let (mut devices, mut queues, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let (mut free, mut placed, mut wear) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        placed.push(if tree.is_real() { placement(path) } else { Value::Null });
        let Ok(target) = Target::find(tree, path, Plan::default()) else {
            targets.push(Value::Null);
            continue;
        };
        targets.push(json!({ "size_bytes": target.size_bytes }));
        systems.push(target.stack.mount.as_ref().map_or(Value::Null, |mount| {
            json!({ "kind": mount.kind, "options": mount.options, "super_options": mount.super_options })
        }));
        free.push(target.free_bytes);
        for device in &target.stack.devices {
            layers(tree, device, 0, &mut stack);
        }
        for leaf in &target.stack.leaves {
            let disk = BlockDevice::find(tree, leaf.disk).unwrap_or_else(|| leaf.clone());
            if names.contains(&disk.name) {
                continue;
            }
            devices.push(device(tree, &disk));
            queues.push(queue(tree, &disk));
            let log = controller(&disk.name).and_then(|name| HealthLog::read(tree, &name));
            wear.push(log.map(|log| log.used_percent));
            names.push(disk.name);
        }
    }
    groups.insert("target".to_owned(), targets.into());
    groups.insert("fs".to_owned(), systems.into());
    groups.insert("stack".to_owned(), stack.into());
    groups.insert("device".to_owned(), devices.into());
    groups.insert("queue".to_owned(), queues.into());
    volatile.insert("device_names".to_owned(), names.into());
    volatile.insert("free_bytes".to_owned(), free.into());
    volatile.insert("placement".to_owned(), placed.into());
    volatile.insert("wear_percent".to_owned(), json!(wear));
}

/// How a file lies on its file system: it may move by itself, so it makes nothing incomparable. Null for what is no
/// file.
fn placement(path: &Path) -> Value {
    let Some(found) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else {
        return Value::Null;
    };
    let mut extents = 0_u64;
    let mut unwritten_bytes = 0_u64;
    let counted = File::open(path).ok().and_then(|file| {
        let count = |extent: node::Extent| {
            extents += 1;
            unwritten_bytes += if extent.is_unwritten { extent.len } else { 0 };
            true
        };
        node::extents(&file, count).ok()
    });
    json!({
        "allocated_bytes": found.blocks().saturating_mul(512),
        "extents": counted.map(|()| extents),
        "unwritten_bytes": counted.map(|()| unwritten_bytes),
    })
}

/// No stack of devices is deeper.
const DEPTH_MAX: usize = 8;

/// The makers of a device from the top down, e.g. `LVM`, ` md raid1`, `  disk`.
fn layers(tree: &SystemTree, device: &BlockDevice, depth: usize, found: &mut Vec<Value>) {
    let kind = match device.maker(tree) {
        Some(maker) => maker,
        None if device.is_partition() => "partition".to_owned(),
        None if device.name.starts_with("loop") => "loop".to_owned(),
        None => "disk".to_owned(),
    };
    found.push(format!("{:depth$}{kind}", "").into());
    if depth < DEPTH_MAX {
        for below in device.slaves(tree) {
            layers(tree, &below, depth + 1, found);
        }
    }
}

fn device(tree: &SystemTree, disk: &BlockDevice) -> Value {
    let facts = DiskFacts::read(tree, disk);
    let folder = format!("/sys/class/block/{}", disk.name.replace('/', "!"));
    let text = |file: &str| tree.text(format!("{folder}/{file}")).filter(|text| !text.is_empty());
    json!({
        "model": facts.model,
        "firmware": text("device/firmware_rev").or_else(|| text("device/rev")),
        "size_bytes": tree.number(format!("{folder}/size")).map(|sectors| sectors.saturating_mul(512)),
        "logical_block_bytes": facts.logical_block_bytes,
        "physical_block_bytes": facts.physical_block_bytes,
        "rotational": facts.is_rotational,
        "link_speed": text("device/device/current_link_speed"),
        "link_width": text("device/device/current_link_width"),
    })
}

fn queue(tree: &SystemTree, disk: &BlockDevice) -> Value {
    let facts = DiskFacts::read(tree, disk);
    json!({
        "scheduler": facts.scheduler,
        "requests": facts.requests,
        "transfer_bytes_max": facts.transfer_bytes_max,
        "write_cache": facts.write_cache.map(|cache| match cache {
            WriteCache::WriteBack => "write back",
            WriteCache::WriteThrough => "write through",
        }),
    })
}
