//! A made-up machine that faults are put into.

use std::path::Path;
use std::time::{Duration, Instant};

use super::super::file_facts::FileFacts;
use super::*;

/// A made-up machine with a disk under an ext4 file system, and nothing wrong with it.
pub(super) struct Machine {
    folder: tempfile::TempDir,
    pub(super) plan: Plan,
    pub(super) free_bytes: Option<u64>,
    pub(super) free_files: Option<u64>,
    pub(super) facts: FileFacts,
    /// Files of the second look.
    pub(super) later: Vec<(&'static str, String)>,
    pub(super) path: &'static str,
}

const STAT: &str =
    "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 50 0 50 400 0 0 0 0\ncpu1 50 0 50 400 0 0 0 0\n";
const STAT_LATER: &str =
    "cpu  102 0 102 996 0 0 0 0 0 0\ncpu0 51 0 51 498 0 0 0 0\ncpu1 51 0 51 498 0 0 0 0\n";

impl Machine {
    pub(super) fn sound() -> Self {
        let machine = Self {
            folder: tempfile::tempdir().expect("a folder"),
            plan: Plan {
                file_bytes: Some(20 << 30),
                beside_bytes: 0,
                copies: Some(1),
                block_bytes: Some(8192),
                seconds: Some(600),
                device_cache_bytes: None,
            },
            free_bytes: Some(100 << 30),
            free_files: Some(1000),
            facts: FileFacts::default(),
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

    /// Where a file of it really lies.
    pub(super) fn place(&self, path: &str) -> std::path::PathBuf {
        self.tree().path(path)
    }

    fn tree(&self) -> SystemTree {
        SystemTree::new(self.folder.path())
    }

    pub(super) fn file(&self, path: &str, text: &str) {
        let path = self.tree().path(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("folders");
        std::fs::write(path, text).expect("a file");
    }

    pub(super) fn disk(&self, number: &str, name: &str) {
        self.disk_at(number, &format!("/sys/devices/block/{name}"));
    }

    /// A disk by its place among the devices, which says what it hangs on.
    pub(super) fn disk_at(&self, number: &str, path: &str) {
        let real = self.tree().path(path);
        let (_, name) = path.rsplit_once('/').expect("a path");
        self.file(&format!("{path}/dev"), number);
        for link in [format!("/sys/dev/block/{number}"), format!("/sys/class/block/{name}")] {
            let link = self.tree().path(link);
            std::fs::create_dir_all(link.parent().expect("below the root")).expect("folders");
            std::os::unix::fs::symlink(&real, link).expect("a link");
        }
    }

    /// A file system of btrfs that tells all of itself, and nothing bad.
    pub(super) fn btrfs_is_well(&self) {
        self.file("/sys/fs/btrfs/1-2/exclusive_operation", "none");
        self.file("/sys/fs/btrfs/1-2/devinfo/1/error_stats", "write_errs 0\nread_errs 0\n");
        self.file("/said/btrfs scrub", "UUID: 1-2\nStatus:           finished\n");
    }

    /// The target's device is made of a disk of its own.
    pub(super) fn made_of(&self, lower: &str, number: &str) {
        self.disk(number, lower);
        let folder = self.tree().path("/sys/devices/block/vda/slaves");
        std::fs::create_dir_all(&folder).expect("folders");
        let real = self.tree().path(format!("/sys/devices/block/{lower}"));
        std::os::unix::fs::symlink(real, folder.join(lower)).expect("a link");
    }

    pub(super) fn checks(&self) -> Vec<Check> {
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
        target.free_files = self.free_files;
        target.facts = self.facts;
        let said = Asked::about(&tree, &target).until(Instant::now());
        check(&tree, &target, (&before, &after), &said)
    }

    #[track_caller]
    pub(super) fn says(&self, id: &str, verdict: Verdict, part: &str) {
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
pub(super) fn fault(id: &str, verdict: Verdict, part: &str, files: &[(&str, &str)]) {
    let machine = Machine::sound();
    for (path, text) in files {
        machine.file(path, text);
    }
    machine.says(id, verdict, part);
}

const VDA: &str = "/sys/devices/block/vda";

pub(super) fn vda(file: &str) -> String {
    format!("{VDA}/{file}")
}
