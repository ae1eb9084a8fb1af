//! Stacks of machines that we do not have, and of this one.

use std::os::fd::AsFd;

use super::*;
use crate::fake_tree::FakeTree;

fn names(devices: &[BlockDevice]) -> String {
    devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(" ")
}

fn number(text: &str) -> DeviceNumber {
    text.parse().expect("a device number")
}

/// Leaves of the device with that number.
fn check(fake: &FakeTree, device: &str, leaves: &str) {
    assert_eq!(names(&of_device(&fake.tree(), number(device)).leaves), leaves);
}

#[test]
fn volumes_lead_down_to_their_disks() {
    // A logical volume on two crypted partitions, one of them on a mirror.
    let fake = FakeTree::new();
    fake.disk("8:0", "sda").partition("8:1", "sda", "sda1").disk("8:16", "sdb").disk("8:32", "sdc");
    fake.disk("9:0", "md0").made_of("md0", "sdb").made_of("md0", "sdc");
    fake.partition("259:0", "md0", "md0p1");
    fake.disk("253:0", "dm-0")
        .made_of("dm-0", "sda1")
        .disk("253:1", "dm-1")
        .made_of("dm-1", "md0p1");
    fake.disk("253:2", "dm-2").made_of("dm-2", "dm-0").made_of("dm-2", "dm-1");
    check(&fake, "253:2", "sda1 sdb sdc");
    check(&fake, "259:0", "sdb sdc");
    check(&fake, "8:1", "sda1");
    check(&fake, "8:0", "sda");
    check(&fake, "8:99", "");
}

#[test]
fn a_ring_of_devices_ends() {
    let fake = FakeTree::new();
    fake.disk("253:0", "dm-0")
        .disk("253:1", "dm-1")
        .made_of("dm-0", "dm-1")
        .made_of("dm-1", "dm-0");
    check(&fake, "253:0", "");
}

#[test]
fn a_loop_device_leads_to_the_disk_of_its_file() {
    let fake = FakeTree::new();
    fake.disk("7:0", "loop0").disk("8:0", "sda").partition("8:2", "sda", "sda2");
    fake.file("/sys/devices/block/loop0/loop/backing_file", "/srv/images/disk.img\n");
    fake.file(
        "/proc/self/mountinfo",
        "21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
         22 21 8:2 / /srv rw,noatime shared:1 - xfs /dev/sda2 rw,attr2\n",
    );
    check(&fake, "7:0", "sda2");
}

#[test]
fn btrfs_has_all_its_devices() {
    let fake = FakeTree::new();
    fake.disk("8:0", "sda").disk("8:16", "sdb").disk("8:32", "sdc");
    for (name, device) in [("sda", "8:0"), ("sdc", "8:32")] {
        fake.file(&format!("/sys/fs/btrfs/1f2e/devices/{name}/dev"), device);
    }
    fake.file("/sys/fs/btrfs/features/raid56", "1");
    fake.file(
        "/proc/self/mountinfo",
        "30 1 0:40 /home /home rw - btrfs /dev/sda rw,subvol=/home\n31 1 0:41 / /net rw - nfs4 server:/x rw\n",
    );
    let mounts = Mounts::read(&fake.tree());
    let on = |number_of_mount| {
        let mount = mounts.by_number(number_of_mount).expect("a mount");
        names(&devices_of(&fake.tree(), mount.device, Some(mount)))
    };
    assert_eq!(on(30), "sda sdc");
    assert_eq!(on(31), "");
    assert_eq!(btrfs_file_systems(&fake.tree()).len(), 1);
}

#[test]
fn mounts_are_read_with_blanks_and_options() {
    let fake = FakeTree::new();
    fake.file(
        "/proc/self/mountinfo",
        "36 35 98:0 /m /mnt\\040two rw,noatime master:1 propagate_from:2 - nfs4 srv:/a\\011b rw,vers=4.2\n\
         37 35 98:1 / / rw - ext4 /dev/sda1 rw\n\
         38 35 98:2 / / rw - fuse.sshfs host: rw\n\
         not a mount\n",
    );
    let mounts = Mounts::read(&fake.tree());
    assert_eq!(mounts.iter().count(), 3);
    let mount = mounts.holding(Path::new("/mnt two/file")).expect("a mount");
    assert_eq!(
        (mount.number, mount.device, mount.source.as_str()),
        (36, number("98:0"), "srv:/a\tb")
    );
    assert!(mount.is_remote() && mount.has_option("noatime") && mount.has_option("vers=4.2"));
    assert!(!mount.has_option("ro"));
    // The later of two mounts on one point hides the other.
    let mount = mounts.holding(Path::new("/mnt twofold")).expect("a mount");
    assert!(mount.number == 38 && mount.is_remote());
    assert_eq!(mounts.of_device(number("98:1")).count(), 1);
}

#[test]
fn counters_are_bytes_of_one_device() {
    let fake = FakeTree::new();
    let stats = |text: &str| {
        fake.file("/proc/diskstats", text);
        DiskStats::read(&fake.tree())
    };
    let earlier = stats(
        "   8  0 sda 10 1 100 5 20 2 200 7 0 9 12 0 0 0 0\n 8 1 sda1 1 0 8 0 1 0 8 0 0 0 0\n",
    );
    let later = stats(
        "   8  0 sda 12 1 116 5 21 2 208 7 0 9 12 0 0 0 0\n 8 1 sda1 1 0 8 0 1 0 8 0 0 0 0\n",
    );
    let counters = later.since(&earlier, number("8:0"));
    let want = DiskCounters { reads: 2, read_bytes: 16 * 512, writes: 1, written_bytes: 8 * 512 };
    assert_eq!(counters, Some(want));
    assert_eq!(later.since(&earlier, number("8:1")), Some(DiskCounters::default()));
    assert_eq!(later.since(&earlier, number("8:2")), None);
}

#[test]
fn a_partition_has_the_facts_of_its_disk() {
    let fake = FakeTree::new();
    fake.disk("8:0", "sda").partition("8:1", "sda", "sda1");
    for (file, text) in [
        ("logical_block_size", "512"),
        ("physical_block_size", "4096"),
        ("rotational", "1"),
        ("io_poll", "0"),
        ("scheduler", "none [mq-deadline] bfq"),
        ("write_cache", "write back"),
        ("max_sectors_kb", "1280"),
    ] {
        fake.file(&format!("/sys/devices/block/sda/queue/{file}"), format!("{text}\n"));
    }
    fake.file("/sys/devices/block/sda/device/model", "Disk 9000   \n");
    let device = BlockDevice::find(&fake.tree(), number("8:1")).expect("sda1");
    assert!(device.is_partition());
    let facts = DiskFacts::read(&fake.tree(), &device);
    let want = DiskFacts {
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(4096),
        is_rotational: Some(true),
        can_poll: Some(false),
        scheduler: Some("mq-deadline".to_owned()),
        write_cache: Some(WriteCache::WriteBack),
        has_fua: None,
        requests: None,
        transfer_bytes_max: Some(1280 * 1024),
        model: Some("Disk 9000".to_owned()),
        loop_is_direct: None,
    };
    assert_eq!(facts, want);
    assert!(facts.honours_priority());
    assert!(!DiskFacts::default().honours_priority());
}

#[test]
fn the_stable_path_is_the_name_on_the_label() {
    let fake = FakeTree::new();
    fake.disk("259:0", "nvme0n1");
    let stable = || {
        let device = BlockDevice::find(&fake.tree(), number("259:0")).expect("nvme0n1");
        device.stable_path(&fake.tree())
    };
    assert_eq!(stable(), Path::new("/dev/nvme0n1"));
    fake.link("/dev/disk/by-id/nvme-eui.0025", "../../nvme0n1");
    assert_eq!(stable(), Path::new("/dev/disk/by-id/nvme-eui.0025"));
    fake.link("/dev/disk/by-id/nvme-Maker_Model_S123_1", "../../nvme0n1");
    fake.link("/dev/disk/by-id/nvme-Maker_Model_S123", "../../nvme0n1");
    fake.link("/dev/disk/by-id/nvme-Maker_Model_S123-part1", "../../nvme0n1p1");
    assert_eq!(stable(), Path::new("/dev/disk/by-id/nvme-Maker_Model_S123"));
}

#[test]
fn this_machines_folders_have_mounts() {
    let tree = SystemTree::default();
    let file = tempfile::tempfile().expect("a file");
    let stack = underlying(file.as_fd(), &tree).expect("its layers");
    let Some(mount) = stack.mount else {
        println!("skipped this_machines_folders_have_mounts: statx gives no mount number");
        return;
    };
    // Where the file system is on block devices, they count what is done.
    let stats = DiskStats::read(&tree);
    for device in &stack.devices {
        assert!(stats.since(&stats, device.number).is_some(), "{device:?}");
    }
    assert!(!mount.kind.is_empty());
    let proc = std::fs::File::open("/proc/self/status").expect("proc");
    let stack = underlying(proc.as_fd(), &tree).expect("its layers");
    assert_eq!(stack.mount.map(|mount| mount.kind).as_deref(), Some("proc"));
    assert!(stack.devices.is_empty() && stack.leaves.is_empty());
}
