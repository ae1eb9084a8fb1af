//! What a target asks for and Linux has only here and there (spec 11.1, 11.2, 11.5, 15.6).

use std::os::fd::AsFd;
use std::path::Path;

use plumb_io::block_stack::{BlockStack, DiskFacts, Mount};
use plumb_io::engine::try_poll;
use plumb_io::system_tree::SystemTree;
use rustix::fs::OFlags;

use super::target::{OpenTarget, TargetError};
use crate::profile::model::{BypassIo, CacheMode, Target};

/// Checks what Linux does not have, or not on this file system.
///
/// # Errors
/// `-SY`; `-Sr` unless the mount caches nothing on this machine.
pub fn check(target: &Target, open: &OpenTarget) -> Result<(), TargetError> {
    if target.bypass_io == Some(BypassIo::Full) {
        return Err(TargetError::BypassIo { path: open.path.clone() });
    }
    if target.cache == CacheMode::NoLocalCache && open.descriptor.is_some() {
        check_no_local_cache(&open.path, &open.stack)?;
    }
    Ok(())
}

/// `--poll`: direct I/O, and polled queues of every device under the target.
///
/// # Errors
/// What is missing.
pub fn check_poll(
    target: &Target,
    open: &OpenTarget,
    tree: &SystemTree,
) -> Result<(), TargetError> {
    let refuse = |why: String, remedy| TargetError::Poll { path: open.path.clone(), why, remedy };
    if target.cache != CacheMode::NoOsCache || target.memory_mapped {
        let why = "its I/O goes through the page cache".to_owned();
        return Err(refuse(why, "add -Su or -Sh, or leave out --poll"));
    }
    let remedy = "load the driver with polled queues (nvme.poll_queues=4 on the kernel's command line), or \
                  leave out --poll";
    if open.stack.devices.is_empty() {
        let remedy = "only block devices and files on them can be polled: leave out --poll";
        return Err(refuse("it lies on no block device".to_owned(), remedy));
    }
    for device in &open.stack.devices {
        let switch = format!("/sys/dev/block/{}/queue/io_poll", device.disk);
        if tree.number(&switch) != Some(1) {
            let has_driver = device.name.starts_with("nvme");
            let remedy = if has_driver {
                remedy
            } else {
                "leave out --poll: only drivers with polled queues can"
            };
            return Err(refuse(format!("/dev/{} has no polled queues", device.name), remedy));
        }
    }
    let Some(descriptor) = &open.descriptor else { return Ok(()) };
    // Read through the very file that was checked; who may only write finds out with the first I/O.
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    match super::create::reopen(descriptor.as_fd(), flags) {
        Ok(file) => try_poll(file, target.block_size).map_err(|why| {
            refuse(
                why,
                "use a file system that can (xfs, ext4, or the device itself), or leave out --poll",
            )
        }),
        Err(_) => Ok(()),
    }
}

/// `-Sr` keeps the remote cache and does without the local one. No call says so per file: the mount
/// must. O_DIRECT is not the same, it asks the server to bypass its cache too.
fn check_no_local_cache(path: &Path, stack: &BlockStack) -> Result<(), TargetError> {
    let Some(mount) = stack.mount.as_ref().filter(|mount| mount.is_remote()) else {
        let filesystem = match &stack.mount {
            Some(mount) => format!("{}, a local file system", mount.kind),
            None => "a local device".to_owned(),
        };
        return Err(TargetError::NotRemote { path: path.into(), filesystem });
    };
    if caches_nothing_here(mount) {
        return Ok(());
    }
    let kind = mount.kind.clone();
    let remedy = match kind.as_str() {
        "cifs" | "smb3" => format!("mount {} with cache=none", mount.point.display()),
        "9p" | "virtiofs" => {
            format!("mount {} without a local cache (cache=none)", mount.point.display())
        }
        _ => format!("{kind} has no mount option for it: use -Su to go past the caches"),
    };
    Err(TargetError::LocalCache { path: path.into(), kind, remedy })
}

/// Whether a remote mount's options keep file data out of this machine's page cache.
fn caches_nothing_here(mount: &Mount) -> bool {
    match mount.kind.as_str() {
        "cifs" | "smb3" | "smbfs" => {
            ["cache=none", "forcedirectio"].iter().any(|option| mount.has_option(option))
        }
        "9p" => !mount.super_options.iter().chain(&mount.options).any(|option| {
            option.strip_prefix("cache=").is_some_and(|mode| mode != "none" && mode != "0x0")
        }),
        _ => false,
    }
}

/// What every user of a target should hear once, before the run.
#[must_use]
pub fn warnings(target: &Target, open: &OpenTarget, tree: &SystemTree) -> Vec<String> {
    let mut warnings = Vec::new();
    let path = &target.path;
    if open.size < target.max_file_size {
        warnings.push(format!(
            "target '{path}' ends at {} bytes, below the maximum offset of {} bytes (-f, -B): its end \
             is used",
            open.size, target.max_file_size
        ));
    }
    if target.cache == CacheMode::NoOsCache && (target.random_access || target.sequential_scan) {
        warnings.push(format!(
            "target '{path}': -fr and -fs have no effect past the page cache (-Su, -Sh)"
        ));
    }
    if target.temporary_file {
        warnings.push(format!("target '{path}': -ft has no equivalent on Linux and no effect"));
    }
    if target.bypass_io == Some(BypassIo::Partial) {
        warnings.push(format!("target '{path}': BypassIO not available, running without (D-29)"));
    }
    if open.is_device && target.file_size.is_some() {
        warnings.push(format!("target '{path}' is a device: -c does not create it (D-18)"));
    }
    if target.io_priority != 3 && open.descriptor.is_some() {
        let honoured =
            open.stack.leaves.iter().any(|device| DiskFacts::read(tree, device).honours_priority());
        if !honoured {
            warnings.push(format!(
                "target '{path}': -I{} has no effect, its I/O scheduler does not look at priorities \
                 (bfq and mq-deadline do)",
                target.io_priority
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use plumb_io::block_stack::DeviceNumber;

    use super::*;

    fn mount(kind: &str, options: &str) -> BlockStack {
        let mount = Mount {
            number: 1,
            device: DeviceNumber::from_raw(0),
            point: "/mnt/far".into(),
            kind: kind.into(),
            source: "far:/x".into(),
            options: Vec::new(),
            super_options: options.split(',').map(str::to_owned).collect(),
        };
        BlockStack { mount: Some(mount), ..BlockStack::default() }
    }

    #[test]
    fn no_local_cache_is_for_remote_mounts_without_one() {
        let check = |stack: &BlockStack| check_no_local_cache(Path::new("/mnt/far/f"), stack);
        assert!(check(&mount("cifs", "rw,cache=none")).is_ok());
        assert!(check(&mount("9p", "rw,trans=virtio")).is_ok());
        for (kind, options, says) in [
            ("cifs", "rw,cache=strict", "cache=none"),
            ("9p", "rw,cache=loose", "cache=none"),
            ("nfs4", "rw,vers=4.2,noac", "-Su"),
        ] {
            let error = check(&mount(kind, options)).expect_err("it caches here");
            let help = miette::Diagnostic::help(&error).expect("a remedy").to_string();
            assert!(help.contains(says), "{kind}: {help}");
        }
        let error = check(&mount("ext4", "rw")).expect_err("it is local").to_string();
        assert!(error.contains("ext4"), "{error}");
    }

    #[test]
    fn polling_needs_direct_io_and_polled_queues() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = SystemTree::new(folder.path());
        let disk = DeviceNumber { major: 259, minor: 0 };
        let queue = folder.path().join("sys/dev/block/259:0/queue");
        std::fs::create_dir_all(&queue).expect("a folder");
        let device =
            plumb_io::block_stack::BlockDevice { number: disk, name: "nvme0n1".into(), disk };
        let open = |devices| OpenTarget {
            path: "/dev/nvme0n1".into(),
            descriptor: None,
            size: 1 << 30,
            is_device: true,
            stack: BlockStack { devices, ..BlockStack::default() },
            is_own: false,
        };
        let direct = Target { cache: CacheMode::NoOsCache, ..Target::default() };
        let says = |target: &Target, devices| {
            let outcome = check_poll(target, &open(devices), &tree);
            outcome.map_err(|error| error.to_string()).err().unwrap_or_default()
        };
        // Only where a driver could have such queues it is to be loaded with them.
        let helps = |devices| {
            let error = check_poll(&direct, &open(devices), &tree).expect_err("it is refused");
            miette::Diagnostic::help(&error).expect("a remedy").to_string()
        };
        let loop_device =
            plumb_io::block_stack::BlockDevice { name: "loop0".into(), ..device.clone() };
        assert!(!helps(Vec::new()).contains("driver"));
        assert!(!helps(vec![loop_device]).contains("load the driver"));
        assert!(helps(vec![device.clone()]).contains("nvme.poll_queues"));
        assert!(says(&Target::default(), vec![device.clone()]).contains("page cache"));
        assert!(says(&direct, Vec::new()).contains("no block device"));
        assert!(says(&direct, vec![device.clone()]).contains("no polled queues"));
        std::fs::write(queue.join("io_poll"), "0\n").expect("written");
        assert!(says(&direct, vec![device.clone()]).contains("no polled queues"));
        std::fs::write(queue.join("io_poll"), "1\n").expect("written");
        assert_eq!(says(&direct, vec![device]), "");
    }
}
