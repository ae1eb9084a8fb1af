//! What the kernel's log says of the devices under the target.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use plumb_io::block_stack::BlockDevice;
use plumb_io::nvme_log::controller;

use super::health::folder;
use super::{Check, Scene, Verdict};

/// Trouble of the devices in the kernel's log.
pub(super) fn kernel_log(scene: &Scene) -> Check {
    const ID: &str = "klog";
    let Some(log) = read_log(scene) else {
        let evidence = "the kernel's log cannot be read";
        return Check::new(ID, Verdict::Unknown, evidence, "run as root, or look at `dmesg`");
    };
    let names = names(scene);
    if names.is_empty() {
        let evidence = "no device under the target is known that the log could name";
        return Check::new(ID, Verdict::Unknown, evidence, "look at `dmesg` where the disks are");
    }
    let trouble: Vec<&str> = log.lines().filter(|line| is_trouble(line)).collect();
    let is_own = |line: &&&str| names.iter().any(|name| mentions(line, name));
    let found: Vec<&str> = trouble.iter().filter(is_own).copied().collect();
    let of_ports = trouble.iter().rfind(|line| names_port(line));
    if let (true, Some(last)) = (found.is_empty(), of_ports)
        && hangs_unknown(scene)
    {
        let evidence = format!("of a port that may be the target's: {}", last.trim());
        let remedy = "see which disks hang on it: `ls -l /sys/block`, `dmesg`";
        return Check::new(ID, Verdict::Unknown, evidence, remedy);
    }
    match found.last() {
        None => Check::ok(ID, "no errors, timeouts or resets of these devices"),
        Some(last) => {
            let evidence = format!("{} lines, the last: {}", found.len(), last.trim());
            Check::new(ID, Verdict::Warn, evidence, "find the cause before measuring: `dmesg`")
        }
    }
}

/// Whether a line is of a port of ATA or a host of SCSI.
fn names_port(line: &str) -> bool {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric());
    words.into_iter().any(|word| numbered(word, "ata") || numbered(word, "host"))
}

/// Whether a disk under the target hangs on a port that is not known.
fn hangs_unknown(scene: &Scene) -> bool {
    let drives = scene.target.disks(scene.tree).into_iter();
    let mut drives =
        drives.filter(|disk| disk.name.starts_with("sd") || disk.name.starts_with("hd"));
    drives.any(|disk| places(&disk).iter().all(|place| carriers(scene, place).is_empty()))
}

/// What begins words of trouble in the log.
const TROUBLE: &[&str] = &[
    "timeout",
    "timed out",
    "timing out",
    "reset",
    "abort",
    "failed",
    "failure",
    "exception emask",
    "uncorrect",
    "offline",
    "not responding",
    // What a SCSI command ended with that did not end well, whatever its code is called.
    "hostbyte=",
    "link down",
    "disable device",
    "disabling device",
    "rescheduling sector",
    "corrupt",
    "remounting filesystem read-only",
    "forced readonly",
];

/// Whether a line tells of an error, a reset or a timeout.
pub(super) fn is_trouble(line: &str) -> bool {
    let lower = line.to_lowercase();
    // A setting that each start of a controller tells: `Shutdown timeout set to 8 seconds`.
    let is_setting = lower.contains("timeout set to");
    // `I/O error`, `critical medium error`, and no `errors=remount-ro`.
    !is_setting && (mentions(&lower, "error") || TROUBLE.iter().any(|word| lower.contains(word)))
}

/// What the log calls the devices under the target, and what they hang on: controllers (`nvme0`), ports (`ata1`), hosts
/// (`host0`), addresses of SCSI (`0:0:0:0`) and of the controller's own PCI function.
fn names(scene: &Scene) -> Vec<String> {
    let mut names = Vec::new();
    for device in scene.target.devices(scene.tree) {
        names.extend(controller(&device.name));
        names.extend(places(&device).iter().flat_map(|place| carriers(scene, place)));
        names.push(device.name);
    }
    names.sort();
    names.dedup();
    names
}

/// Where the kernel says what a device is part of.
fn places(device: &BlockDevice) -> [String; 3] {
    let sys = folder(device);
    [format!("{sys}/device"), format!("/sys/class/block/{}", device.name), sys]
}

/// Whether a word is a prefix and a number.
fn numbered(word: &str, prefix: &str) -> bool {
    let rest = word.strip_prefix(prefix).unwrap_or_default();
    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
}

/// The parts of a device's place among all devices that the log may name.
fn carriers(scene: &Scene, place: &str) -> Vec<String> {
    let root = scene.tree.path("/").canonicalize().unwrap_or_default();
    let Ok(path) = scene.tree.path(place).canonicalize() else { return Vec::new() };
    let path = path.strip_prefix(&root).unwrap_or(&path).to_owned();
    let parts = path.iter().filter_map(|part| part.to_str());
    let (mut found, mut function) = (Vec::new(), None);
    for part in parts {
        let numbers = part.split(':').count();
        let is_address =
            numbers == 4 && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        if ["ata", "host", "nvme"].iter().any(|prefix| numbered(part, prefix)) || is_address {
            found.push(part.to_owned());
        } else if numbers == 3 && part.contains('.') {
            // `0000:01:00.0`: what lies above it, such as a bridge, carries others as well.
            function = Some(part.to_owned());
        }
    }
    found.extend(function);
    found
}

/// Whether a line names a device, and not one whose name only begins so.
pub(super) fn mentions(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let after = line[at + name.len()..].chars().next();
        let before = line[..at].chars().next_back();
        let inside = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        !inside(after) && !inside(before)
    })
}

/// All records of the log so far; the device would wait for the next one, so it is not asked to.
pub(super) fn read_log(scene: &Scene) -> Option<String> {
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
