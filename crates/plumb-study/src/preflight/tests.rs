use std::path::Path;

use machine::{Machine, fault, vda};

use super::*;

mod elsewhere;
mod files;
mod machine;
mod programs;

#[test]
fn nothing_is_wrong_with_a_sound_machine() {
    let checks = Machine::sound().checks();
    let odd: Vec<&Check> = checks.iter().filter(|check| check.verdict > Verdict::Note).collect();
    assert!(odd.is_empty(), "{odd:#?}");
    assert_eq!(checks.len(), ids().count());
    assert!(checks.iter().map(|check| check.id).eq(ids()), "each says its own name");
    assert_eq!(worst(&checks, &[]), Verdict::Note);
}

#[test]
fn an_empty_tree_is_unknown_and_never_fine_where_it_matters() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = SystemTree::new(folder.path());
    let target = Target::find(&tree, Path::new("/data/file"), Plan::default()).expect("a target");
    let sample = Sample::take(&tree);
    let checks = check(&tree, &target, (&sample, &sample), &Answers::default());
    // Nothing of what is not there is fine; what is planned, and what Plumb left there, needs no machine.
    for check in &checks {
        let is_planned = ["sched-window", "file-size"].contains(&check.id);
        assert!(is_planned || check.verdict == Verdict::Unknown, "{check:?}");
        assert!(!check.remedy.is_empty(), "{check:?}");
    }
    for id in [
        "klog",
        "load-psi",
        "load-cpu",
        "load-disk",
        "mem",
        "governor",
        "clock",
        "align",
        "privileges",
        "write-cache",
        "scheduler",
        "tasks-running",
    ] {
        let found = checks.iter().find(|check| check.id == id).expect("a check");
        assert_eq!(found.verdict, Verdict::Unknown, "{found:?}");
    }
}

#[test]
fn layers_that_were_not_found_are_not_fine() {
    // A mount whose device the tree does not have, and one whose devices the kernel does not name.
    for line in
        ["25 1 8:99 / /data rw - ext4 /dev/sdz rw\n", "25 1 0:40 / /data rw - overlay o rw\n"]
    {
        let machine = Machine::sound();
        machine.file("/proc/self/mountinfo", line);
        for id in ["smart", "nvme", "md", "lvm", "multipath", "fabric"] {
            machine.says(&format!("health-{id}"), Verdict::Unknown, "was not found");
        }
        for id in ["tier", "numa", "load-net"] {
            machine.says(id, Verdict::Unknown, "was not found");
        }
        machine.says("health-zfs", Verdict::Ok, "not on ZFS");
    }
    // On another machine, and in memory, no device is under it.
    for kind in ["nfs4", "tmpfs"] {
        let mount = format!("25 1 0:40 / /data rw - {kind} server:/export rw\n");
        fault("health-smart", Verdict::Ok, "no ATA", &[("/proc/self/mountinfo", &mount)]);
    }
    // What was found and does not say what it is.
    let mut machine = Machine::sound();
    machine.disk("254:0", "dm-0");
    machine.path = "/dev/dm-0";
    for id in ["health-lvm", "health-multipath", "tier"] {
        machine.says(id, Verdict::Unknown, "what made dm-0 was not read");
    }
    machine.file("/sys/devices/block/dm-0/dm/uuid", "");
    machine.says("health-lvm", Verdict::Ok, "no LVM");
    let mut machine = Machine::sound();
    machine.disk("9:0", "md0");
    machine.path = "/dev/md0";
    machine.says("health-md", Verdict::Unknown, "the state of md0 was not read");
    let machine = Machine::sound();
    machine.made_of("sdb", "8:16");
    machine.file(&vda("dm/uuid"), "mpath-1");
    machine.says("health-multipath", Verdict::Unknown, "the state of sdb was not read");
    std::fs::remove_file(machine.place("/proc/cpuinfo")).expect("it was there");
    machine.says("virt", Verdict::Unknown, "guest");
    std::fs::remove_file(machine.place("/proc/self/status")).expect("it was there");
    machine.says("numa", Verdict::Unknown, "processors we may use");
}

#[test]
fn arrays() {
    let [state, degraded, action, mismatches, level] =
        ["array_state", "degraded", "sync_action", "mismatch_cnt", "level"]
            .map(|name| vda(&format!("md/{name}")));
    let well = [
        (state.as_str(), "clean"),
        (degraded.as_str(), "0"),
        (action.as_str(), "idle"),
        (mismatches.as_str(), "0"),
    ];
    let with = |path: &str, text: &str, verdict: Verdict, part: &str| {
        let mut files = well.to_vec();
        files.push((path, text));
        fault("health-md", verdict, part, &files);
    };
    fault("health-md", Verdict::Ok, "1 md arrays", &well);
    with(&state, "inactive", Verdict::Block, "vda is inactive");
    with(&state, "read-auto", Verdict::Ok, "1 md arrays");
    with(&degraded, "1", Verdict::Block, "lacks 1");
    with(&action, "resync", Verdict::Block, "resync");
    with(&mismatches, "8", Verdict::Warn, "8 mismatches");
    // What is not there is not fine.
    for (index, what) in
        [(1, "whether it lacks devices"), (2, "whether it is busy"), (3, "how many mismatches")]
    {
        let mut files = well.to_vec();
        files.remove(index);
        fault("health-md", Verdict::Unknown, what, &files);
    }
    fault("health-md", Verdict::Unknown, "whether it lacks devices", &well[..1]);
    // Nothing of an array without copies can be missing and it go on.
    for name in ["raid0", "linear"] {
        fault("health-md", Verdict::Ok, "1 md arrays", &[well[0], (&level, name)]);
    }
}

#[test]
fn arrays_that_only_mdstat_tells_of() {
    let says = |mdstat: &str, verdict: Verdict, part: &str| {
        let mut machine = Machine::sound();
        machine.disk("9:0", "md0");
        machine.path = "/dev/md0";
        machine.file("/proc/mdstat", mdstat);
        machine.says("health-md", verdict, part);
    };
    let of = |first: &str, second: &str, third: &str| {
        format!(
            "Personalities : [raid1] [raid0]\nmd1 : active raid1 sdd1[1] sdc1[0]\n      100 blocks [2/1] [U_]\n\n\
             md0 : {first}\n      100 blocks {second}\n{third}\nunused devices: <none>\n"
        )
    };
    let mirror = "active raid1 sdb1[1] sda1[0]";
    let recovery =
        "      [==>....]  recovery = 12.6% (246/1953) finish=127.5min speed=33440K/sec\n";
    let degraded = of(mirror, "super 1.2 [2/1] [U_]", recovery);
    says(&degraded, Verdict::Block, "md0 lacks 1 devices; md0 is doing a recovery");
    for (third, what) in [
        ("      [>....]  check =  0.4% (8/1953) finish=9min speed=200K/sec\n", "doing a check"),
        ("        resync=DELAYED\n", "doing a resync"),
        ("        resync=PENDING\n", "doing a resync"),
        ("      [>....]  reshape = 1.0% (8/1953)\n", "doing a reshape"),
    ] {
        says(&of(mirror, "[2/2] [UU]", third), Verdict::Block, what);
    }
    says(&of("inactive sdb1[1](S)", "", ""), Verdict::Block, "md0 is inactive");
    // The number of mismatches is in no line of it, and none of md0 tells nothing.
    says(&of(mirror, "[2/2] [UU]", ""), Verdict::Unknown, "how many mismatches md0 had");
    says(&of("active raid0 sdb1[1] sda1[0]", "512k chunks", ""), Verdict::Ok, "1 md arrays");
    says("Personalities : [raid1]\n", Verdict::Unknown, "the state of md0 was not read");
}

#[test]
fn drives_and_volumes() {
    let machine = Machine::sound();
    machine.made_of("sda", "8:0");
    machine.says("health-smart", Verdict::Unknown, "sda");
    machine.file("/sys/devices/block/sda/device/state", "offline");
    machine.says("health-smart", Verdict::Block, "sda is offline");

    let machine = Machine::sound();
    machine.made_of("nvme0n1", "259:0");
    machine.file("/sys/class/nvme/nvme0/state", "live");
    machine.file("/sys/class/nvme/nvme0/transport", "pcie");
    machine.says("health-nvme", Verdict::Unknown, "nvme0");
    // Critical warnings, spare and its threshold, endurance used, media errors; the log is bytes, here all ASCII.
    for (warning, spare, least, used, errors, verdict, says) in [
        (0, 100, 10, 7, 0, Verdict::Ok, "7 % of its endurance"),
        (0, 100, 10, 101, 0, Verdict::Warn, "101 % of its endurance"),
        (0, 100, 10, 7, 3, Verdict::Warn, "3 media errors"),
        (0, 9, 10, 7, 0, Verdict::Block, "9 % spare"),
        (4, 100, 10, 7, 0, Verdict::Block, "0x04"),
    ] {
        let mut log = vec![0_u8; 512];
        log[0] = warning;
        log[3..6].copy_from_slice(&[spare, least, used]);
        log[160] = errors;
        machine.file("/dev/nvme0", std::str::from_utf8(&log).expect("ASCII"));
        machine.says("health-nvme", verdict, says);
    }
    machine.says("health-fabric", Verdict::Ok, "remote");
    machine.file("/sys/class/nvme/nvme0/state", "resetting");
    machine.file("/sys/class/nvme/nvme0/transport", "tcp");
    machine.says("health-nvme", Verdict::Block, "resetting");
    machine.says("health-fabric", Verdict::Warn, "tcp");

    fault("health-lvm", Verdict::Unknown, "not read", &[(&vda("dm/uuid"), "LVM-abc")]);
    fault("health-lvm", Verdict::Warn, "snapshots", &[(&vda("dm/uuid"), "LVM-abc-real")]);

    let machine = Machine::sound();
    machine.made_of("sdb", "8:16");
    machine.file(&vda("dm/uuid"), "mpath-1");
    machine.file("/sys/devices/block/sdb/device/state", "running");
    machine.says("health-multipath", Verdict::Ok, "1 paths");
    machine.file("/sys/devices/block/sdb/device/state", "offline");
    machine.says("health-multipath", Verdict::Warn, "sdb is offline");
}

#[test]
fn file_systems() {
    let mounted = |kind: &str, source: &str, options: &str| {
        format!("25 1 253:0 / /data rw - {kind} {source} {options}\n")
    };
    let mount = "/proc/self/mountinfo";
    for (options, part) in
        [("rw,nobarrier", "lost"), ("rw,discard", "discard"), ("rw,sync", "sync"), ("ro", "ro")]
    {
        fault("fs", Verdict::Warn, part, &[(mount, &mounted("ext4", "/dev/vda", options))]);
    }
    let journalled = mounted("ext4", "/dev/vda", "rw,data=journal");
    fault("fs", Verdict::Warn, "all data is written twice", &[(mount, &journalled)]);
    fault("fs", Verdict::Warn, "f2fs: writes", &[(mount, &mounted("f2fs", "/dev/vda", "rw"))]);
    fault("fs", Verdict::Warn, "strictatime", &[(mount, &mounted("xfs", "/dev/vda", "rw"))]);
    let calm = "25 1 253:0 / /data rw,noatime - xfs /dev/vda rw\n";
    fault("fs", Verdict::Ok, "xfs on /data", &[(mount, calm)]);
    fault("fs", Verdict::Warn, "no disk", &[(mount, &mounted("tmpfs", "tmpfs", "rw"))]);
    // The device itself: under a file system in use, and with nobody on it.
    let mut device = Machine::sound();
    device.path = "/dev/vda";
    device.says("fs", Verdict::Block, "mounted");
    device.says("fs", Verdict::Block, "/data");
    device.file(mount, "25 1 253:9 / / rw - ext4 /dev/vdb rw\n");
    device.says("fs", Verdict::Ok, "no file system");
    let btrfs = mounted("btrfs", "/dev/vda", "rw");
    let root = "/sys/fs/btrfs/1-2";
    let quiet = format!("{root}/exclusive_operation");
    let well = Machine::sound();
    well.file(mount, &btrfs);
    well.btrfs_is_well();
    well.says("health-btrfs", Verdict::Ok, "no errors");
    let unread = "not read: the counters of its devices' errors, whether a scrub is running";
    fault("health-btrfs", Verdict::Unknown, unread, &[(mount, &btrfs), (&quiet, "none")]);
    fault("health-btrfs", Verdict::Block, "balance", &[(mount, &btrfs), (&quiet, "balance")]);
    let errors = format!("{root}/devinfo/1/error_stats");
    let stats = "write_errs 2\nread_errs 0\n";
    fault("health-btrfs", Verdict::Block, "2 errors", &[(mount, &btrfs), (&errors, stats)]);
    let packed = mounted("btrfs", "/dev/vda", "rw,compress=zstd:3");
    fault("health-btrfs", Verdict::Warn, "zstd", &[(mount, &packed)]);
    let zfs = mounted("zfs", "tank/data", "rw");
    let state = "/proc/spl/kstat/zfs/tank/state";
    fault("health-zfs", Verdict::Block, "DEGRADED", &[(mount, &zfs), (state, "DEGRADED")]);
    fault("health-zfs", Verdict::Unknown, "ONLINE", &[(mount, &zfs), (state, "ONLINE")]);
    let nfs = mounted("nfs4", "server:/export", "rw");
    fault("health-fabric", Verdict::Note, "server:/export", &[(mount, &nfs)]);
    fault("load-net", Verdict::Unknown, "remote", &[(mount, &nfs)]);
}

#[test]
fn the_log() {
    let log = "/dev/kmsg";
    fault("klog", Verdict::Warn, "I/O error", &[(log, "3,9,9,-;I/O error, dev vda, sector 7\n")]);
    fault("klog", Verdict::Ok, "no errors", &[(log, "3,9,9,-;I/O error, dev vdab, sector 7\n")]);
    fault("klog", Verdict::Warn, "medium", &[(log, "3,9,9,-;critical medium error, dev vda\n")]);

    // What controllers and ports say of themselves concerns what hangs on them, and nothing else.
    let ata = "/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda";
    let nvme = "/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1";
    for (node, path, number, line, verdict) in [
        ("/dev/nvme0n1", nvme, "259:0", "nvme nvme0: I/O 12 QID 4 timeout, reset controller", true),
        ("/dev/nvme0n1", nvme, "259:0", "nvme 0000:01:00.0: I/O 3 QID 0 timeout", true),
        (
            "/dev/nvme0n1",
            nvme,
            "259:0",
            "nvme nvme1: I/O 12 QID 4 timeout, reset controller",
            false,
        ),
        ("/dev/nvme0n1", nvme, "259:0", "nvme nvme0: Shutdown timeout set to 8 seconds", false),
        ("/dev/sda", ata, "8:0", "ata1: hard resetting link", true),
        ("/dev/sda", ata, "8:0", "ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6", true),
        ("/dev/sda", ata, "8:0", "ata11: hard resetting link", false),
        ("/dev/sda", ata, "8:0", "critical medium error, dev sda, sector 8", true),
        ("/dev/sda", ata, "8:0", "sd 0:0:0:0: device reset", true),
        ("/dev/sda", ata, "8:0", "EXT4-fs (sda): re-mounted. Opts: errors=remount-ro", false),
        (
            "/dev/sda",
            ata,
            "8:0",
            "EXT4-fs (sda): mounted filesystem 8f1c ro with ordered data mode",
            false,
        ),
        ("/dev/sda", ata, "8:0", "EXT4-fs (sda): Remounting filesystem read-only", true),
        (
            "/dev/sda",
            ata,
            "8:0",
            "XFS (sda): Corruption detected. Unmount and run xfs_repair",
            true,
        ),
        ("/dev/sda", ata, "8:0", "BTRFS warning (device sda): csum failed root 5 ino 257", true),
        (
            "/dev/sda",
            ata,
            "8:0",
            "sd 0:0:0:0: [sda] tag#1 FAILED Result: hostbyte=DID_BAD_TARGET",
            true,
        ),
        (
            "/dev/sda",
            ata,
            "8:0",
            "sd 0:0:0:0: [sda] tag#1 UNKNOWN(0x2003) Result: hostbyte=0x07",
            true,
        ),
        ("/dev/sda", ata, "8:0", "ata1: SATA link down (SStatus 0 SControl 300)", true),
        ("/dev/sda", ata, "8:0", "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)", false),
        ("/dev/sda", ata, "8:0", "ata1.00: disable device", true),
    ] {
        let mut machine = Machine::sound();
        machine.path = node;
        machine.disk_at(number, path);
        machine.file(log, &format!("3,9,9,-;{line}\n"));
        let verdict = if verdict { Verdict::Warn } else { Verdict::Ok };
        machine.says("klog", verdict, if verdict == Verdict::Ok { "no errors" } else { line });
    }
    let mut unplaced = Machine::sound();
    unplaced.disk("8:0", "sda");
    unplaced.path = "/dev/sda";
    unplaced.file(log, "3,9,9,-;ata1: hard resetting link\n");
    unplaced.says("klog", Verdict::Unknown, "may be the target's");
    let nfs = "25 1 0:40 / /data rw - nfs4 server:/export rw\n";
    fault("klog", Verdict::Unknown, "no device", &[("/proc/self/mountinfo", nfs)]);
}

#[test]
fn other_work() {
    let io = "/proc/pressure/io";
    fault("load-psi", Verdict::Warn, "io some 2.00", &[(io, "some avg10=2.00 avg60=0\n")]);
    fault("load-psi", Verdict::Block, "io some 9.00", &[(io, "some avg10=9.00 avg60=0\n")]);
    let cpu = "/proc/pressure/cpu";
    fault("load-psi", Verdict::Warn, "cpu some 6.00", &[(cpu, "some avg10=6.00 avg60=0\n")]);
    let memory = "/proc/pressure/memory";
    fault("load-psi", Verdict::Warn, "full 0.10", &[(memory, "full avg10=0.10 avg60=0\n")]);
    // Load that comes and goes shows in the longer average; what cannot be read hides no block.
    fault("load-psi", Verdict::Warn, "40.00 % over", &[(io, "some avg10=0.00 avg60=40.00\n")]);
    for damaged in
        ["some avg10=-3 avg60=0\n", "some avg10=nan avg60=0\n", "some avg10=101 avg60=0\n"]
    {
        fault("load-psi", Verdict::Unknown, "pressure/io cannot be read", &[(io, damaged)]);
    }
    let blind = [(io, "some avg10=60.00 avg60=60.00\n"), (memory, "")];
    fault("load-psi", Verdict::Block, "memory cannot be read", &blind);
    fault("load-psi", Verdict::Unknown, "memory cannot be read", &[(memory, "")]);

    let later = |file, text: &str| {
        let mut machine = Machine::sound();
        machine.later.push((file, text.to_owned()));
        machine
    };
    let busy =
        "cpu  300 0 300 800 0 0 0 0\ncpu0 150 0 150 400 0 0 0 0\ncpu1 150 0 150 400 0 0 0 0\n";
    later("/proc/stat", busy).says("load-cpu", Verdict::Warn, "0 % idle");
    let one = "cpu  150 0 100 1500 0 0 0 0\ncpu0 100 0 50 400 0 0 0 0\ncpu1 50 0 50 1100 0 0 0 0\n";
    later("/proc/stat", one).says("load-cpu", Verdict::Warn, "busiest processor 0 %");
    let stolen =
        "cpu  100 0 100 990 0 0 0 10\ncpu0 50 0 50 495 0 0 0 5\ncpu1 50 0 50 495 0 0 0 5\n";
    later("/proc/stat", stolen).says("load-cpu", Verdict::Warn, "5.0 % stolen");
    let stats = "/proc/diskstats";
    later(stats, " 253 0 vda 1020 0 8000 50 1000 0 8000 50 0 105 100\n").says(
        "load-disk",
        Verdict::Warn,
        "20 I/Os",
    );
    later(stats, " 253 0 vda 9000 0 8000 50 1000 0 8000 50 0 900 100\n").says(
        "load-disk",
        Verdict::Block,
        "80 % busy",
    );
    fault("tasks-running", Verdict::Block, "fstrim", &[("/proc/99/comm", "fstrim\n")]);
    for job in ["updatedb.plocat", "e2scrub_all", "logrotate", "dpkg", "mkfs.ext4"] {
        fault("tasks-running", Verdict::Block, job, &[("/proc/99/comm", job)]);
    }
    fault("tasks-running", Verdict::Ok, "none of", &[("/proc/99/comm", "dpkg-like\n")]);
    fault("backup", Verdict::Warn, "restic", &[("/proc/99/comm", "restic\n")]);
    let wants = "/etc/systemd/system/timers.target.wants";
    fault("tasks-timers", Verdict::Warn, "trims", &[(&format!("{wants}/fstrim.timer"), "")]);
    fault("tasks-timers", Verdict::Warn, "cron.d/mdadm", &[("/etc/cron.d/mdadm", "57 0 * * 0\n")]);
    fault(
        "tasks-timers",
        Verdict::Note,
        "1 timers or jobs",
        &[(&format!("{wants}/logrotate.timer"), "")],
    );
}

#[test]
fn memory_and_room() {
    let info = "/proc/meminfo";
    let memory = |dirty: u32, swapped: u32| {
        format!(
            "MemTotal: 8388608 kB\nDirty: {dirty} kB\nSwapTotal: 1000 kB\nSwapFree: {} kB\n",
            1000 - swapped
        )
    };
    fault("mem", Verdict::Warn, "97 MiB to be written", &[(info, &memory(100_000, 0))]);
    fault("mem", Verdict::Unknown, "MemTotal", &[(info, "Nothing: 1 kB\n")]);
    fault("mem", Verdict::Unknown, "Writeback", &[(info, &memory(0, 0))]);
    fault("mem", Verdict::Warn, "in swap", &[(info, &memory(0, 900))]);
    fault("file-size", Verdict::Warn, "page cache", &[(info, "MemTotal: 99999999 kB\n")]);
    for (cache, verdict) in [(11, Verdict::Warn), (4, Verdict::Warn), (3, Verdict::Ok)] {
        let mut machine = Machine::sound();
        machine.plan.device_cache_bytes = Some(cache << 30);
        machine.says("file-size", verdict, "20.0 GiB");
    }

    let mut machine = Machine::sound();
    machine.says("capacity", Verdict::Ok, "20.0 GiB");
    machine.plan.copies = Some(5);
    let margin = "the copies fit, but without their margin: with the margin short by 5368709120 bytes (5.00 GiB)";
    machine.says("capacity", Verdict::Block, margin);
    machine.plan.copies = Some(1);
    machine.plan.beside_bytes = 70 << 30;
    machine.says("capacity", Verdict::Ok, "20.0 GiB and 70.0 GiB more in files beside it");
    // 120 GiB and 5 % of them, where 100 are free.
    machine.plan.beside_bytes = 100 << 30;
    let alone = "the files alone are short by 21474836480 bytes (20.00 GiB)";
    machine.says("capacity", Verdict::Block, alone);
    machine.says("capacity", Verdict::Block, "margin short by 27917287424 bytes (26.00 GiB)");
    // The published fast tier: two copies of 64 GiB are short by exactly 4 GiB, whatever margin is wanted beside them.
    let mut published = Machine::sound();
    published.plan.file_bytes = Some(64 << 30);
    published.plan.copies = Some(2);
    published.free_bytes = Some(133_143_986_176);
    let alone = "the copies alone are short by 4294967296 bytes (4.00 GiB); with the margin short by 11166914969 bytes";
    published.says("capacity", Verdict::Block, alone);
    machine.plan.file_bytes = None;
    machine.says("capacity", Verdict::Note, "no size");
    machine.free_bytes = None;
    machine.says("capacity", Verdict::Unknown, "not known");
    fault("space-old", Verdict::Note, "plumb-test-1", &[("/data/plumb-test-1", "x")]);
    fault("space-old", Verdict::Note, "file.2of4 (", &[("/data/file.2of4", "x")]);
    for other in ["file.5of4", "file.0of4", "file.1of1", "file.1of", "file.+1of2", "other.1of2"] {
        let other = format!("/data/{other}");
        fault("space-old", Verdict::Ok, "no test files", &[(&other, "x")]);
    }
}

#[test]
fn tiers() {
    let mut machine = Machine::sound();
    machine.disk("252:0", "bcache0");
    machine.file("/sys/devices/block/bcache0/bcache/state", "dirty");
    machine.path = "/dev/bcache0";
    machine.says("tier", Verdict::Warn, "state dirty");
    machine.file("/sys/devices/block/bcache0/bcache/stats_five_minute/cache_hit_ratio", "93");
    machine.says("tier", Verdict::Warn, "93 % hits");
    fault("tier", Verdict::Warn, "cache of the device mapper", &[(&vda("dm/uuid"), "LVM-x-cdata")]);
    // Nobody's uuid tells; dmsetup does.
    let name = vda("dm/name");
    let mapped = (name.as_str(), "fast");
    let said = "/said/dmsetup status";
    fault("tier", Verdict::Unknown, "fast has a cache was not read", &[mapped]);
    fault(
        "tier",
        Verdict::Ok,
        "no cache of",
        &[mapped, (said, "fast: 0 2048 linear\nother: 0 8 cache 8 1/2 8 1/2 1 1 1 1 0 0 0")],
    );
    fault("tier", Verdict::Ok, "no bcache", &[mapped, (&vda("dm/uuid"), "CRYPT-LUKS2-x")]);
    let cache =
        "fast: 0 2048 cache 8 27/1024 128 10/64 60 20 30 10 0 5 3 1 writeback 2 x 0 smq 0 rw -";
    fault("tier", Verdict::Warn, "10/64 blocks used, 75 % hits, 3 dirty", &[mapped, (said, cache)]);
    // 54 blocks of 64 KiB are free, and the file of 20 GiB is to be made.
    let spills =
        "the file of 20.0 GiB is larger than the 0.003 GiB that are free on the fast tier of fast";
    fault("tier", Verdict::Warn, spills, &[mapped, (said, cache)]);
    let wide =
        "fast: 0 2048 cache 8 27/1024 2097152 10/64 60 20 30 10 0 5 3 1 writeback 2 x 0 smq 0 rw -";
    fault("tier", Verdict::Warn, "3 dirty; whether the file is on", &[mapped, (said, wide)]);
    let cache = "fast: 0 2048 writecache 0 1000 400 0";
    fault("tier", Verdict::Warn, "400 of 1000 blocks free", &[mapped, (said, cache)]);
    let zfs = ("/proc/self/mountinfo", "25 1 253:0 / /data rw,noatime - zfs tank/data rw\n");
    let pool = "  pool: tank\nconfig:\n\n\tNAME STATE\n\ttank ONLINE\n\t  sda ONLINE\n";
    let status = "/said/zpool status";
    fault("tier", Verdict::Unknown, "pool tank", &[zfs]);
    fault("tier", Verdict::Ok, "none of ZFS", &[zfs, (status, pool)]);
    for (section, says) in [("special", "metadata"), ("cache", "L2ARC"), ("logs", "synchronous")] {
        let text = format!("{pool}\t{section}\n\t  nvme0n1 ONLINE\n");
        fault("tier", Verdict::Warn, says, &[zfs, (status, &text)]);
    }
}

/// 2.1: what cannot be seen is never silently fine.
#[test]
fn queues_and_groups_that_cannot_be_seen_are_unknown() {
    let scheduler = |machine: &Machine| {
        let found = machine.checks().into_iter().find(|check| check.id == "scheduler");
        found.expect("it is always there")
    };
    assert_eq!(scheduler(&Machine::sound()).verdict, Verdict::Ok);
    let machine = Machine::sound();
    std::fs::remove_file(machine.place("/proc/self/cgroup")).expect("it was there");
    let found = scheduler(&machine);
    assert_eq!(found.verdict, Verdict::Unknown);
    assert!(found.evidence.contains("which cgroup limits this process"), "{}", found.evidence);
    let machine = Machine::sound();
    std::fs::remove_dir_all(machine.place("/sys/devices/block/vda/queue")).expect("it was there");
    let found = scheduler(&machine);
    assert_eq!(found.verdict, Verdict::Unknown);
    assert!(found.evidence.contains("the queue of vda cannot be seen"), "{}", found.evidence);
}

#[test]
fn queues() {
    fault("write-cache", Verdict::Note, "loses it", &[(&vda("queue/write_cache"), "write back")]);
    let group = "/sys/fs/cgroup/user.slice";
    let limit = "253:0 rbps=max wbps=max riops=500 wiops=max";
    fault("scheduler", Verdict::Warn, "riops=500", &[(&format!("{group}/io.max"), limit)]);
    let other = "8:99 rbps=max wbps=max riops=500 wiops=max";
    fault("scheduler", Verdict::Ok, "nr_requests 256", &[(&format!("{group}/io.max"), other)]);
    let none = "253:0 rbps=max wbps=max riops=max wiops=max";
    fault("scheduler", Verdict::Ok, "nr_requests 256", &[(&format!("{group}/io.max"), none)]);
    fault("scheduler", Verdict::Warn, "50000", &[(&format!("{group}/cpu.max"), "50000 100000")]);
    fault("scheduler", Verdict::Ok, "none", &[(&format!("{group}/cpu.max"), "max 100000")]);
    // The first version of cgroups has a tree for each controller.
    let first = ("/proc/self/cgroup", "4:blkio:/a/b\n3:cpu,cpuacct:/a\n");
    let throttled =
        |folder: &str| format!("/sys/fs/cgroup/blkio{folder}/blkio.throttle.write_iops_device");
    for folder in ["/a/b", "/a", ""] {
        let file = throttled(folder);
        let own = [first, (&file, "8:99 100\n253:0 500\n")];
        fault("scheduler", Verdict::Warn, "write_iops_device: 253:0 500", &own);
        fault("scheduler", Verdict::Ok, "nr_requests 256", &[first, (&file, "8:99 100\n")]);
    }
    let quota = "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us";
    fault("scheduler", Verdict::Warn, "cfs_quota_us: 50000", &[first, (quota, "50000")]);
    fault("scheduler", Verdict::Ok, "nr_requests 256", &[first, (quota, "-1")]);
    fault(
        "align",
        Verdict::Warn,
        "8192 bytes are no multiple",
        &[(&vda("queue/physical_block_size"), "16384")],
    );
    fault("align", Verdict::Warn, "sector 63", &[(&vda("start"), "63")]);
}

#[test]
fn processors_and_clocks() {
    let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    fault("governor", Verdict::Warn, "powersave", &[(governor, "powersave")]);
    let cpu = "/sys/devices/system/cpu";
    let preference = format!("{cpu}/cpu0/cpufreq/energy_performance_preference");
    fault("governor", Verdict::Warn, "balance_power", &[(&preference, "balance_power")]);
    fault("governor", Verdict::Ok, "preference performance", &[(&preference, "performance")]);
    let no_turbo = format!("{cpu}/intel_pstate/no_turbo");
    let boost = format!("{cpu}/cpufreq/boost");
    fault("governor", Verdict::Ok, "turbo on", &[(&no_turbo, "0")]);
    fault("governor", Verdict::Ok, "turbo off", &[(&no_turbo, "1")]);
    fault("governor", Verdict::Ok, "turbo off", &[(&boost, "0")]);
    let [light, deep, off] = [1, 2, 3].map(|state| format!("{cpu}/cpu0/cpuidle/state{state}"));
    let states = [
        ("latency", &light, "2"),
        ("latency", &deep, "170"),
        ("latency", &off, "900"),
        ("disable", &off, "1"),
    ];
    let states = states.map(|(file, state, text)| (format!("{state}/{file}"), text));
    let states: Vec<(&str, &str)> =
        states.iter().map(|(file, text)| (file.as_str(), *text)).collect();
    fault("governor", Verdict::Ok, "170 µs", &states);
    let node = "/sys/devices/system/node/node1/cpulist";
    let far = [(vda("device/numa_node"), "1".to_owned()), (node.to_owned(), "8-15".to_owned())];
    let far: Vec<(&str, &str)> = far.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    fault("numa", Verdict::Warn, "vda is on node 1", &far);
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fault("clock", Verdict::Warn, "hpet", &[(clock, "hpet")]);
    for source in ["kvm-clock", "hyperv_clocksource_tsc_page"] {
        fault("clock", Verdict::Warn, "25 to 50 ns", &[(clock, source)]);
    }
    fault("clock", Verdict::Ok, "arch_sys_counter", &[(clock, "arch_sys_counter")]);
    fault(
        "thermal",
        Verdict::Warn,
        "90 °C of 80 °C",
        &[("/sys/class/hwmon/hwmon0/temp1_input", "90000")],
    );
    fault("virt", Verdict::Note, "a guest", &[("/proc/cpuinfo", "flags : fpu hypervisor\n")]);
    fault("virt", Verdict::Note, "container", &[("/.dockerenv", "")]);
    fault(
        "privileges",
        Verdict::Note,
        "user 1000",
        &[("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n")],
    );
}

#[test]
fn what_is_accepted_does_not_block() {
    let checks = [
        Check::new("capacity", Verdict::Block, "x", "y"),
        Check::new("mem", Verdict::Warn, "x", "y"),
    ];
    assert_eq!(worst(&checks, &[]), Verdict::Block);
    assert_eq!(worst(&checks, &["capacity".to_owned()]), Verdict::Warn);
    assert_eq!(checks[0].to_json()["verdict"], "block");
}
