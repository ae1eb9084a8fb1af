//! Room for the file, what it lies on, and whether it suits the caches.

use super::machine::effective_user;
use super::target::Target;
use super::{Check, Scene, Verdict, unseen};
use crate::findings::bytes_short;

const GIB: f64 = (1_u64 << 30) as f64;

/// Room for all copies.
pub(super) fn capacity(scene: &Scene) -> Check {
    const ID: &str = "capacity";
    let target = scene.target;
    let Some(mount) = target.stack.mount.as_ref() else {
        let device = || Check::ok(ID, "a device: nothing is allocated");
        return unseen::file_system(scene, ID).unwrap_or_else(device);
    };
    let Some(free) = target.free_bytes else {
        let evidence = format!("the free space of {} is not known", mount.point.display());
        return Check::new(ID, Verdict::Unknown, evidence, "look at `df`");
    };
    let Some(planned) = target.plan.file_bytes else {
        let evidence = format!("{:.1} GiB free; no size was planned", free as f64 / GIB);
        return Check::new(ID, Verdict::Note, evidence, "give --size to have it checked");
    };
    let copies = target.plan.copies.unwrap_or(1);
    // What the file has already need not be found again; holes it has not.
    let existing = target.allocated_bytes.or(target.size_bytes).unwrap_or(0).min(planned);
    let beside = target.plan.beside_bytes;
    let to_make = (planned - existing).saturating_add(beside);
    let short = bytes_short(to_make, copies, free, false);
    let short_alone = bytes_short(to_make, copies, free, true);
    let others = match beside {
        0 => String::new(),
        _ => format!(" and {:.1} GiB more in files beside it", beside as f64 / GIB),
    };
    let evidence = format!(
        "{:.1} GiB{others} in {copies} copies and a margin; {:.1} GiB free",
        planned as f64 / GIB,
        free as f64 / GIB
    );
    // A file that is there needs no further one.
    let is_full = target.free_files == Some(0) && target.size_bytes.is_none();
    if short == 0 && is_full {
        let evidence =
            format!("{evidence}, but the file system has no inode left for another file");
        return Check::new(ID, Verdict::Block, evidence, "remove files: `df -i`");
    }
    if short == 0 && to_make > 0 && is_bound_by_quota(scene) {
        let evidence =
            format!("{evidence}; quotas are in force, and what is left of ours was not read");
        return Check::new(ID, Verdict::Unknown, evidence, "look at `quota -s`");
    }
    if short == 0 {
        return Check::ok(ID, evidence);
    }
    let told = |bytes: u64| format!("{bytes} bytes ({:.2} GiB)", bytes as f64 / GIB);
    let what = match (short_alone, copies) {
        (0, 1) => "the file fits, but without its margin: ".to_owned(),
        (0, _) => "the copies fit, but without their margin: ".to_owned(),
        (_, 1) if beside > 0 => format!("the files alone are short by {}; ", told(short_alone)),
        (_, 1) => format!("the file alone is short by {}; ", told(short_alone)),
        _ => format!("the copies alone are short by {}; ", told(short_alone)),
    };
    let evidence = format!("{evidence}: {what}with the margin short by {}", told(short));
    Check::new(ID, Verdict::Block, evidence, "plan a smaller file, or free space")
}

/// Whether the file system keeps quotas, and we are not root, whom they do not bind. Those of ZFS and btrfs, and of projects, are in the free space.
fn is_bound_by_quota(scene: &Scene) -> bool {
    const QUOTAS: [&str; 7] =
        ["quota", "usrquota", "grpquota", "uquota", "gquota", "uqenforce", "gqenforce"];
    let Some(mount) = scene.target.stack.mount.as_ref() else { return false };
    let options = mount.options.iter().chain(&mount.super_options);
    let has = options.into_iter().any(|option| {
        QUOTAS.contains(&option.as_str())
            || option.starts_with("usrjquota=")
            || option.starts_with("grpjquota=")
    });
    has && effective_user(scene).is_none_or(|user| user != "0")
}

/// The file system and its mount options.
pub(super) fn file_system(scene: &Scene) -> Check {
    const ID: &str = "fs";
    let Some(mount) = scene.target.stack.mount.as_ref() else {
        return unseen::file_system(scene, ID).unwrap_or_else(|| device_contents(ID, scene.target));
    };
    let options: Vec<&String> = mount.options.iter().chain(&mount.super_options).collect();
    let has = |names: &[&str]| options.iter().find(|given| names.contains(&given.as_str()));
    let mut wrong = Vec::new();
    if let Some(option) = has(&["nobarrier", "barrier=0"]) {
        wrong.push(format!("{option}: completed writes may be lost"));
    }
    if has(&["discard"]).is_some() {
        wrong.push("discard: deleting files makes the device work".to_owned());
    }
    if has(&["sync", "dirsync"]).is_some() {
        wrong.push("sync: every write waits for the medium".to_owned());
    }
    if has(&["ro"]).is_some() {
        wrong.push("ro: nothing can be written".to_owned());
    }
    if mount.kind.starts_with("ext") && has(&["data=journal"]).is_some() {
        wrong.push(
            "data=journal: all data is written twice, and direct I/O is not direct".to_owned(),
        );
    }
    if mount.kind == "f2fs" {
        wrong.push(
            "f2fs: writes in place become writes to a log, which is cleaned in the background"
                .to_owned(),
        );
    }
    let keeps_times =
        ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"].contains(&mount.kind.as_str());
    if has(&["strictatime"]).is_some() || (keeps_times && has(&["relatime", "noatime"]).is_none()) {
        wrong.push("strictatime: reads write the time of the last access".to_owned());
    }
    if ["overlay", "tmpfs", "ramfs"].contains(&mount.kind.as_str()) {
        wrong.push(format!("{}: no disk of its own is measured", mount.kind));
    }
    wrong.extend(scene.target.facts.wrong(scene.target.plan.block_bytes));
    let evidence =
        format!("{} on {}{}", mount.kind, mount.point.display(), scene.target.facts.said());
    if let Some(share) = unwritten(scene) {
        let evidence = format!(
            "{evidence}; {:.1} % of the file was never written: reads there never reach the device",
            share * 100.0
        );
        let remedy = "remove the file, so that it is made in full, or write all of it first";
        return Check::new(ID, Verdict::Block, evidence, remedy);
    }
    if wrong.is_empty() {
        return Check::ok(ID, evidence);
    }
    let remedy = "mount it as it will be used, and say so with the result";
    Check::new(ID, Verdict::Warn, format!("{evidence}; {}", wrong.join("; ")), remedy)
}

/// A device instead of a file: who uses it, and what is on it.
fn device_contents(id: &'static str, target: &Target) -> Check {
    if !target.used_by.is_empty() {
        let evidence = format!("a device in use: {}", target.used_by.join("; "));
        let remedy = "stop what uses it, or name a file on its file system: nothing is written to a device in use";
        return Check::new(id, Verdict::Block, evidence, remedy);
    }
    match target.holds.as_deref() {
        None => Check::new(
            id,
            Verdict::Unknown,
            "a device; what it holds cannot be read",
            "run as root to have it looked at",
        ),
        Some([]) => {
            Check::ok(id, "a device that holds no file system and nothing else that is known")
        }
        Some(found) => Check::new(
            id,
            Verdict::Note,
            format!("a device that holds data: {}", found.join("; ")),
            "a test that writes there is refused without --destroy, and destroys it with that",
        ),
    }
}

/// Share of a file above which it counts as not written (method, 2.3).
pub const UNWRITTEN_MUCH: f64 = 0.01;

/// Share of the file that was never written, where that is much and the file is measured as it is: one of another size
/// is made anew.
fn unwritten(scene: &Scene) -> Option<f64> {
    let target = scene.target;
    let is_made = target.plan.file_bytes.is_some_and(|bytes| target.size_bytes != Some(bytes));
    target.never_written.filter(|share| *share > UNWRITTEN_MUCH && !is_made)
}

/// The file against the memory that may cache it.
pub(super) fn file_size(scene: &Scene) -> Check {
    const ID: &str = "file-size";
    let Some(size) = scene.target.file_bytes() else {
        let evidence = "the size of the file is not known";
        return Check::new(ID, Verdict::Note, evidence, "give --size to have it checked");
    };
    let text = scene.tree.text("/proc/meminfo").unwrap_or_default();
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kib| kib << 10);
    let Some(total) = total else {
        return Check::new(ID, Verdict::Unknown, "the memory size cannot be read", "mount /proc");
    };
    let evidence = format!("{:.1} GiB, memory {:.1} GiB", size as f64 / GIB, total as f64 / GIB);
    if size <= total {
        let remedy = "bypass the page cache (-Su, -Sh), or use a file larger than memory";
        return Check::new(
            ID,
            Verdict::Warn,
            format!("{evidence}: it fits into the page cache"),
            remedy,
        );
    }
    let cache = scene.target.plan.device_cache_bytes.filter(|cache| *cache > 0);
    if let Some(cache) = cache.filter(|cache| size / 2 <= *cache || size.is_multiple_of(*cache)) {
        let evidence = format!(
            "{evidence}: {:.2} times the cache of {:.1} GiB",
            size as f64 / cache as f64,
            cache as f64 / GIB
        );
        let remedy = "use a file of more than twice the cache, and no multiple of it";
        return Check::new(ID, Verdict::Warn, evidence, remedy);
    }
    Check::ok(ID, evidence)
}

/// Names that Plumb's own test files begin with; a baseline also leaves parts `NAME.KofN` of its target.
const OWN: &[&str] = &["plumb-test", "testfile.dat", "plumb.dat"];

/// Whether a name ends as that of a part of several files: `.2of4`.
fn is_part(end: &str) -> bool {
    let numbers = end.strip_prefix('.').and_then(|end| end.split_once("of"));
    let number = |text: &str| {
        let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| is_plain)
    };
    let numbers = numbers.and_then(|(which, count)| Some((number(which)?, number(count)?)));
    numbers.is_some_and(|(which, count)| count > 1 && (1..=count).contains(&which))
}

/// Test files of earlier runs.
pub(super) fn leftovers(scene: &Scene) -> Check {
    const ID: &str = "space-old";
    let path = &scene.target.path;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let base = path.file_name().unwrap_or_default().to_string_lossy();
    let is_own = |name: &str| {
        OWN.iter().any(|own| name.starts_with(own))
            || name.strip_prefix(&*base).is_some_and(is_part)
    };
    if scene.target.stack.mount.is_none() {
        let device = || Check::ok(ID, "a device: no files");
        return unseen::file_system(scene, ID).unwrap_or_else(device);
    }
    let place = if scene.tree.is_real() && path.is_relative() {
        std::env::current_dir().unwrap_or_default().join(folder.unwrap_or(std::path::Path::new("")))
    } else {
        folder.unwrap_or(std::path::Path::new("/")).to_owned()
    };
    if std::fs::read_dir(scene.tree.path(&place)).is_err() {
        let evidence = format!("{} cannot be read", place.display());
        return Check::new(
            ID,
            Verdict::Unknown,
            evidence,
            "look there for test files of earlier runs",
        );
    }
    let mut found = Vec::new();
    for name in scene.tree.names(&place) {
        let name = name.to_string_lossy().into_owned();
        let is_target = path.file_name().is_some_and(|own| own.to_string_lossy() == name);
        if is_target || !is_own(&name) {
            continue;
        }
        let length = std::fs::metadata(scene.tree.path(place.join(&name))).map_or(0, |m| m.len());
        found.push(format!("{name} ({:.2} GiB)", length as f64 / GIB));
    }
    if found.is_empty() {
        return Check::ok(ID, "no test files of earlier runs beside it");
    }
    Check::new(ID, Verdict::Note, found.join(", "), "delete what is not needed any more")
}
