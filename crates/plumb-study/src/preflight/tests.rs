use std::path::Path;
use std::time::{Duration, Instant};

use super::*;

/// A made-up machine with a disk under an ext4 file system, and nothing wrong with it.
struct Machine {
    folder: tempfile::TempDir,
    plan: Plan,
    free_bytes: Option<u64>,
    /// Files of the second look.
    later: Vec<(&'static str, String)>,
    path: &'static str,
}

const STAT: &str =
    "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 50 0 50 400 0 0 0 0\ncpu1 50 0 50 400 0 0 0 0\n";
const STAT_LATER: &str =
    "cpu  102 0 102 996 0 0 0 0 0 0\ncpu0 51 0 51 498 0 0 0 0\ncpu1 51 0 51 498 0 0 0 0\n";

impl Machine {
    fn sound() -> Self {
        let machine = Self {
            folder: tempfile::tempdir().expect("a folder"),
            plan: Plan {
                file_bytes: Some(20 << 30),
                copies: Some(1),
                block_bytes: Some(8192),
                seconds: Some(600),
                device_cache_bytes: None,
            },
            free_bytes: Some(100 << 30),
            later: Vec::new(),
            path: "/data/file",
        };
        machine.disk("253:0", "vda");
        for (file, text) in [
            ("queue/scheduler", "[none] mq-deadline"),
            ("queue/nr_requests", "256"),
            ("queue/write_cache", "write through"),
            ("queue/physical_block_size", "4096"),
            ("queue/logical_block_size", "512"),
        ] {
            machine.file(&format!("/sys/devices/block/vda/{file}"), text);
        }
        for (file, text) in [
            ("/proc/self/mountinfo", "25 1 253:0 / /data rw,relatime - ext4 /dev/vda rw\n"),
            ("/proc/self/status", "Name:\tplumb\nUid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-1\n"),
            ("/proc/self/cgroup", "0::/user.slice\n"),
            ("/proc/pressure/io", "some avg10=0.10 avg60=0.09 avg300=0.65 total=36\n"),
            ("/proc/pressure/cpu", "some avg10=0.50 avg60=0.09 avg300=0.65 total=36\n"),
            (
                "/proc/pressure/memory",
                "some avg10=0.0 avg60=0\nfull avg10=0.00 avg60=0.0 total=0\n",
            ),
            (
                "/proc/meminfo",
                "MemTotal: 8388608 kB\nMemAvailable: 4000000 kB\nDirty: 100 kB\nWriteback: 0 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
            ),
            ("/proc/stat", STAT),
            ("/proc/diskstats", " 253 0 vda 1000 0 8000 50 1000 0 8000 50 0 100 100\n"),
            ("/proc/cpuinfo", "flags\t\t: fpu tsc\n"),
            ("/proc/1/comm", "systemd\n"),
            ("/proc/77/comm", "bash\n"),
            ("/dev/kmsg", "6,1,0,-;vda: 1000 sectors\n"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
            ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
            ("/sys/class/hwmon/hwmon0/temp1_input", "40000"),
            ("/sys/class/hwmon/hwmon0/temp1_max", "80000"),
            ("/sys/class/hwmon/hwmon0/name", "nvme"),
            ("/etc/systemd/system/timers.target.wants/other.timer", ""),
            ("/data/other", ""),
        ] {
            machine.file(file, text);
        }
        machine
    }

    fn tree(&self) -> SystemTree {
        SystemTree::new(self.folder.path())
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.tree().path(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("folders");
        std::fs::write(path, text).expect("a file");
    }

    fn disk(&self, number: &str, name: &str) {
        let real = self.tree().path(format!("/sys/devices/block/{name}"));
        self.file(&format!("/sys/devices/block/{name}/dev"), number);
        for link in [format!("/sys/dev/block/{number}"), format!("/sys/class/block/{name}")] {
            let link = self.tree().path(link);
            std::fs::create_dir_all(link.parent().expect("below the root")).expect("folders");
            std::os::unix::fs::symlink(&real, link).expect("a link");
        }
    }

    /// The target's device is made of a disk of its own.
    fn made_of(&self, lower: &str, number: &str) {
        self.disk(number, lower);
        let folder = self.tree().path("/sys/devices/block/vda/slaves");
        std::fs::create_dir_all(&folder).expect("folders");
        let real = self.tree().path(format!("/sys/devices/block/{lower}"));
        std::os::unix::fs::symlink(real, folder.join(lower)).expect("a link");
    }

    fn checks(&self) -> Vec<Check> {
        let tree = self.tree();
        let start = Instant::now();
        let before = Sample::taken(&tree, start);
        self.file("/proc/stat", STAT_LATER);
        for (file, text) in &self.later {
            self.file(file, text);
        }
        let after = Sample::taken(&tree, start + Duration::from_secs(1));
        let mut target = Target::find(&tree, Path::new(self.path), self.plan).expect("a target");
        target.free_bytes = self.free_bytes;
        let said = Asked::about(&tree, &target).until(Instant::now());
        check(&tree, &target, (&before, &after), &said)
    }

    #[track_caller]
    fn says(&self, id: &str, verdict: Verdict, part: &str) {
        let checks = self.checks();
        let found = checks.iter().find(|check| check.id == id).expect("a check of this name");
        assert_eq!(found.verdict, verdict, "{found:?}");
        assert!(found.evidence.contains(part), "{found:?} lacks {part}");
        let needs_remedy = !matches!(verdict, Verdict::Ok);
        assert_eq!(!found.remedy.is_empty(), needs_remedy, "{found:?}");
    }
}

/// A machine with something wrong: files that replace those of the sound one.
#[track_caller]
fn fault(id: &str, verdict: Verdict, part: &str, files: &[(&str, &str)]) {
    let machine = Machine::sound();
    for (path, text) in files {
        machine.file(path, text);
    }
    machine.says(id, verdict, part);
}

const VDA: &str = "/sys/devices/block/vda";

fn vda(file: &str) -> String {
    format!("{VDA}/{file}")
}

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
fn arrays() {
    let state = vda("md/array_state");
    let clean = (state.as_str(), "clean");
    fault("health-md", Verdict::Ok, "1 md arrays", &[clean]);
    fault("health-md", Verdict::Block, "vda is inactive", &[(&state, "inactive")]);
    fault("health-md", Verdict::Block, "lacks 1", &[clean, (&vda("md/degraded"), "1")]);
    fault("health-md", Verdict::Block, "resync", &[clean, (&vda("md/sync_action"), "resync")]);
    fault("health-md", Verdict::Warn, "8 mismatches", &[clean, (&vda("md/mismatch_cnt"), "8")]);
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
    machine.says("health-fabric", Verdict::Note, "tcp");

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

/// What smartctl prints, cut down to what is read.
fn smart(passed: bool, pending: u64, reallocated: u64, test_left: u64) -> String {
    json!({
        "smart_status": { "passed": passed },
        "ata_smart_attributes": { "table": [
            { "id": 5, "raw": { "value": reallocated } },
            { "id": 197, "raw": { "value": pending } },
            { "id": 198, "raw": { "value": 0 } },
        ] },
        "ata_smart_data": { "self_test": { "status": { "remaining_percent": test_left } } },
    })
    .to_string()
}

#[test]
fn drives_by_smartctl() {
    for (said, verdict, part) in [
        (smart(true, 0, 0, 0), Verdict::Ok, "passed, no bad sectors"),
        (smart(true, 0, 7, 0), Verdict::Warn, "7 reallocated"),
        (smart(true, 3, 0, 0), Verdict::Block, "3 pending"),
        (smart(false, 0, 0, 0), Verdict::Block, "FAILED"),
        (
            "{\"smart_status\":{\"passed\":true},\"scsi_grown_defect_list\":4}".to_owned(),
            Verdict::Warn,
            "4 grown",
        ),
        // It sleeps, or nobody may ask.
        ("{\"smartctl\":{\"exit_status\":2}}".to_owned(), Verdict::Unknown, "not read"),
        ("no JSON".to_owned(), Verdict::Unknown, "not read"),
    ] {
        let machine = Machine::sound();
        machine.made_of("sda", "8:0");
        machine.file("/said/smartctl sda", &said);
        machine.says("health-smart", verdict, part);
        machine.says("tasks-running", Verdict::Ok, "none");
    }
    let machine = Machine::sound();
    machine.made_of("sda", "8:0");
    machine.file("/said/smartctl sda", &smart(true, 0, 0, 60));
    machine.says("tasks-running", Verdict::Block, "a self-test of sda");
}

#[test]
fn volumes_by_lvs() {
    let volume = |name: &str,
                  attributes: &str,
                  pool: &str,
                  origin: &str,
                  synced: &str,
                  full: &str| {
        let health = if attributes.contains('p') { "partial" } else { "" };
        json!({
            "lv_dm_path": format!("/dev/mapper/vg-{name}"), "lv_name": name, "vg_name": "vg", "pool_lv": pool,
            "origin": origin, "lv_attr": attributes, "lv_health_status": health, "copy_percent": synced,
            "data_percent": full, "metadata_percent": "10.00",
        })
    };
    let plain = volume("data", "-wi-ao----", "", "", "", "");
    for (volumes, verdict, part) in [
        (vec![plain.clone()], Verdict::Ok, "no volume"),
        (vec![volume("data", "rwi-aor-p-", "", "", "100.00", "")], Verdict::Block, "partial"),
        (vec![volume("data", "rwi-aor-r-", "", "", "100.00", "")], Verdict::Block, "refresh"),
        (vec![volume("data", "rwi-aor-m-", "", "", "100.00", "")], Verdict::Warn, "mismatches"),
        (
            vec![volume("data", "rwi-aor---", "", "", "42.50", "")],
            Verdict::Block,
            "synced to 42.5 %",
        ),
        (vec![volume("data", "rwi-aor---", "", "", "100.00", "")], Verdict::Ok, "no volume"),
        (
            vec![plain.clone(), volume("snap", "swi-a-s---", "", "data", "", "3.00")],
            Verdict::Warn,
            "snap is a snapshot of data",
        ),
        // That of another volume is nothing to us.
        (
            vec![plain.clone(), volume("snap", "swi-a-s---", "", "other", "", "")],
            Verdict::Ok,
            "no volume",
        ),
        (
            vec![
                volume("data", "Vwi-aotz--", "pool", "", "", "9"),
                volume("pool", "twi-aotz--", "", "", "", "83.1"),
            ],
            Verdict::Warn,
            "83.1 % full",
        ),
        (
            vec![
                volume("data", "Vwi-aotz--", "pool", "", "", "9"),
                volume("[pool]", "twi-aotz--", "", "", "", "96"),
            ],
            Verdict::Block,
            "thin pool vg/pool are 96 % full",
        ),
        // None of them is ours: nothing was told.
        (vec![volume("other", "-wi-ao----", "", "", "", "")], Verdict::Unknown, "not read"),
    ] {
        let machine = Machine::sound();
        machine.file(&vda("dm/uuid"), "LVM-abc");
        machine.file(&vda("dm/name"), "vg-data");
        machine.file("/said/lvs", &json!({ "report": [{ "lv": volumes }] }).to_string());
        machine.says("health-lvm", verdict, part);
    }
}

#[test]
fn pools_paths_and_scrubs_by_their_programs() {
    let mounted =
        |kind: &str, source: &str| format!("25 1 253:0 / /data rw - {kind} {source} rw\n");
    let mount = "/proc/self/mountinfo";
    for (listed, status, record, verdict, part) in [
        (
            "ONLINE\t12\t40\n",
            "scan: none requested",
            "8192",
            Verdict::Ok,
            "40 % full, 12 % fragmented",
        ),
        ("ONLINE\t12\t83\n", "scan: none requested", "8192", Verdict::Warn, "83 % full"),
        ("ONLINE\t1\t3\n", "  scan: scrub in progress since", "8192", Verdict::Block, "a scrub"),
        (
            "ONLINE\t1\t3\n",
            "  scan: resilver in progress since",
            "8192",
            Verdict::Block,
            "a resilver",
        ),
        ("SUSPENDED\t1\t3\n", "", "8192", Verdict::Block, "SUSPENDED"),
        ("ONLINE\t1\t3\n", "scan: none requested", "131072", Verdict::Warn, "records of 131072"),
        ("ONLINE\t1\t3\n", "", "8192", Verdict::Unknown, "not read"),
    ] {
        let machine = Machine::sound();
        machine.file(mount, &mounted("zfs", "tank/data"));
        machine.file("/said/zpool list", listed);
        machine.file("/said/zpool status", status);
        machine.file("/said/zfs recordsize", record);
        machine.file("/proc/spl/kstat/zfs/arcstats", "name type data\nsize 4 2097152\n");
        machine.says("health-zfs", verdict, part);
        if verdict == Verdict::Ok {
            machine.says("health-zfs", verdict, "the ARC holds 2 MiB");
        }
    }
    let scrub = "UUID: 1-2\nStatus:           running\nDuration: 0:00:05\n";
    let btrfs = mounted("btrfs", "/dev/vda");
    fault(
        "health-btrfs",
        Verdict::Block,
        "scrub",
        &[(mount, &btrfs), ("/said/btrfs scrub", scrub)],
    );
    let done = scrub.replace("running", "finished");
    fault("health-btrfs", Verdict::Ok, "nothing", &[(mount, &btrfs), ("/said/btrfs scrub", &done)]);

    let machine = Machine::sound();
    machine.made_of("sdb", "8:16");
    machine.file(&vda("dm/uuid"), "mpath-1");
    machine.file("/sys/devices/block/sdb/device/state", "running");
    let listed = "mpatha (36001) dm-0 X,Y\n|-+- policy='service-time 0' prio=50 status=active\n| `- 1:0:0:1 sdb 8:16 \
                  active ready running\n`-+- policy='service-time 0' prio=10 status=enabled\n";
    machine.file("/said/multipath", listed);
    machine.says("health-multipath", Verdict::Ok, "2 priority groups");
    machine.file("/said/multipath", &listed.replace("ready", "ghost"));
    machine.says("health-multipath", Verdict::Warn, "sdb is ghost");
}

#[test]
fn timers_by_when_they_are_due() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("later");
    let timer = |unit: &str, minutes: u64| json!({ "unit": unit, "next": (now.as_secs() + 60 * minutes) * 1_000_000, "activates": "x" });
    for (timers, verdict, part) in [
        (vec![timer("fstrim.timer", 5)], Verdict::Block, "trims the file systems in"),
        // 600 s are planned.
        (vec![timer("fstrim.timer", 15)], Verdict::Note, "none that makes the disks work"),
        (vec![timer("logrotate.timer", 5)], Verdict::Note, "of 1 timers"),
        (vec![json!({ "unit": "fstrim.timer", "next": null })], Verdict::Note, "of 0 timers"),
    ] {
        let machine = Machine::sound();
        machine.file("/etc/systemd/system/timers.target.wants/fstrim.timer", "");
        machine.file("/said/systemctl timers", &Value::from(timers).to_string());
        machine.says("tasks-timers", verdict, part);
    }
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
    fault("fs", Verdict::Warn, "no disk", &[(mount, &mounted("tmpfs", "tmpfs", "rw"))]);
    let btrfs = mounted("btrfs", "/dev/vda", "rw");
    let root = "/sys/fs/btrfs/1-2";
    let quiet = format!("{root}/exclusive_operation");
    fault("health-btrfs", Verdict::Ok, "no errors", &[(mount, &btrfs), (&quiet, "none")]);
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
    machine.says("capacity", Verdict::Block, "short by 5368709120 bytes (5.00 GiB)");
    machine.plan.file_bytes = None;
    machine.says("capacity", Verdict::Note, "no size");
    machine.free_bytes = None;
    machine.says("capacity", Verdict::Unknown, "not known");
    fault("space-old", Verdict::Note, "plumb-test-1", &[("/data/plumb-test-1", "x")]);
}

#[test]
fn tiers() {
    let mut machine = Machine::sound();
    machine.disk("252:0", "bcache0");
    machine.file("/sys/devices/block/bcache0/bcache/state", "dirty");
    machine.path = "/dev/bcache0";
    machine.says("tier", Verdict::Warn, "state dirty");
    fault("tier", Verdict::Warn, "cache of the device mapper", &[(&vda("dm/uuid"), "LVM-x-cdata")]);
}

#[test]
fn queues() {
    fault("write-cache", Verdict::Note, "loses it", &[(&vda("queue/write_cache"), "write back")]);
    let group = "/sys/fs/cgroup/user.slice";
    let limit = "253:0 rbps=max wbps=max riops=500 wiops=max";
    fault("scheduler", Verdict::Warn, "riops=500", &[(&format!("{group}/io.max"), limit)]);
    let none = "253:0 rbps=max wbps=max riops=max wiops=max";
    fault("scheduler", Verdict::Ok, "nr_requests 256", &[(&format!("{group}/io.max"), none)]);
    fault("scheduler", Verdict::Warn, "50000", &[(&format!("{group}/cpu.max"), "50000 100000")]);
    fault("scheduler", Verdict::Ok, "none", &[(&format!("{group}/cpu.max"), "max 100000")]);
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
    let node = "/sys/devices/system/node/node1/cpulist";
    let far = [(vda("device/numa_node"), "1".to_owned()), (node.to_owned(), "8-15".to_owned())];
    let far: Vec<(&str, &str)> = far.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    fault("numa", Verdict::Warn, "vda is on node 1", &far);
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fault("clock", Verdict::Warn, "hpet", &[(clock, "hpet")]);
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
