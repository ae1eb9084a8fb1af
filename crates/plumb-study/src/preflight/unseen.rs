//! What could not be read of the layers under the target. That something is not there says only a tree in which it was looked
//! for; where there was nothing to look at it is not known.

use super::health::folder;
use super::{Check, Scene, Verdict};

/// Kinds of file systems that are on no device.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

const REMEDY: &str = "let /sys and /proc/self/mountinfo be read (from the host, if this is a container), or see what lies \
                      below: `findmnt -T` of the file, `lsblk -s`";

/// `unknown` where the devices under the target were not found, though it must be on some.
pub(super) fn devices(scene: &Scene, id: &'static str) -> Option<Check> {
    let stack = &scene.target.stack;
    let is_on_none =
        |kind: &str| IN_MEMORY.contains(&kind) || plumb_io::block_stack::is_remote_kind(kind);
    let evidence = match &stack.mount {
        _ if !stack.devices.is_empty() => return None,
        Some(mount) if is_on_none(&mount.kind) => return None,
        Some(mount) => {
            let (kind, point) = (&mount.kind, mount.point.display());
            format!("which devices the {kind} on {point} is on was not found")
        }
        None => "neither a mount nor a device was found for the target".to_owned(),
    };
    Some(Check::new(id, Verdict::Unknown, evidence, REMEDY))
}

/// `unknown` where neither the file system nor the device of the target was found.
pub(super) fn file_system(scene: &Scene, id: &'static str) -> Option<Check> {
    scene.target.stack.mount.is_none().then(|| devices(scene, id)).flatten()
}

/// The same as of [`devices`], or where what a device of the device mapper is for was not read.
pub(super) fn mapped(scene: &Scene, id: &'static str) -> Option<Check> {
    let is_unread = |name: &str, folder: String| {
        name.starts_with("dm-") && scene.tree.text(format!("{folder}/dm/uuid")).is_none()
    };
    let all = scene.target.devices(scene.tree);
    let unread = all.iter().find(|device| is_unread(&device.name, folder(device)));
    devices(scene, id).or_else(|| {
        let evidence = format!("what made {} was not read: dm/uuid", unread?.name);
        Some(Check::new(id, Verdict::Unknown, evidence, REMEDY))
    })
}
