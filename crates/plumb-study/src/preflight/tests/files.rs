//! How the file is kept, what room there is beside bytes, and what hangs on the device.

use std::path::Path;

use super::super::file_facts::FileFacts;
use super::machine::{Machine, fault, vda};
use super::*;

fn kept(facts: FileFacts) -> Machine {
    let mut machine = Machine::sound();
    machine.facts = facts;
    machine
}

#[test]
fn what_the_file_system_does_to_the_file() {
    let plain =
        FileFacts { direct_bytes: Some(512), pieces: Some((3, 20 << 30)), ..FileFacts::default() };
    kept(plain).says("fs", Verdict::Ok, "direct I/O in multiples of 512 bytes; extents: 3");
    for (facts, part) in [
        (FileFacts { is_compressed: true, ..plain }, "compressed"),
        (FileFacts { is_encrypted: true, ..plain }, "encrypted"),
        (FileFacts { is_verified: true, ..plain }, "fs-verity"),
        (FileFacts { direct_bytes: Some(0), ..plain }, "no direct I/O"),
        (FileFacts { direct_bytes: Some(16384), ..plain }, "16384 bytes, and I/Os of 8192"),
        (FileFacts { pieces: Some((5000, 1 << 30)), ..plain }, "5000 pieces of 209 KiB"),
    ] {
        kept(facts).says("fs", Verdict::Warn, part);
    }
    // Few pieces are no harm, and neither are many large ones.
    for pieces in [(10, 1 << 20), (5000, 5000 << 30)] {
        kept(FileFacts { pieces: Some(pieces), ..plain }).says("fs", Verdict::Ok, "extents");
    }
    let btrfs =
        |options: &str| format!("25 1 253:0 / /data rw,noatime - btrfs /dev/vda {options}\n");
    for (is_in_place, options, verdict, part) in [
        (Some(false), "rw", Verdict::Warn, "CoW"),
        (Some(true), "rw", Verdict::Ok, "no errors"),
        (Some(false), "rw,nodatacow", Verdict::Ok, "no errors"),
    ] {
        let machine = kept(FileFacts { is_in_place, ..plain });
        machine.file("/proc/self/mountinfo", &btrfs(options));
        machine.btrfs_is_well();
        machine.says("health-btrfs", verdict, part);
    }
}

#[test]
fn a_real_file_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, vec![7; 1 << 20]).expect("a file");
    let target = Target::find(&SystemTree::new("/"), Path::new(&path), Plan::default());
    let target = target.expect("a target");
    assert!(!target.facts.is_compressed && !target.facts.is_verified, "{:?}", target.facts);
    if let Some((count, bytes)) = target.facts.pieces {
        assert!(count >= 1 && bytes >= 1 << 20, "{:?}", target.facts);
    }
    // A power of two where the kernel tells it.
    assert!(target.facts.direct_bytes.is_none_or(|least| least == 0 || least.is_power_of_two()));
}

#[test]
fn inodes_and_quotas() {
    let mut machine = Machine::sound();
    machine.free_files = Some(0);
    machine.says("capacity", Verdict::Block, "no inode");
    machine.free_files = None;
    machine.says("capacity", Verdict::Ok, "20.0 GiB");
    let mount = "/proc/self/mountinfo";
    for option in ["usrquota", "usrjquota=aquota.user", "uquota"] {
        let text = format!("25 1 253:0 / /data rw,noatime - xfs /dev/vda rw,{option}\n");
        let user = ("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n");
        fault("capacity", Verdict::Unknown, "quotas are in force", &[(mount, &text), user]);
        fault("capacity", Verdict::Ok, "20.0 GiB", &[(mount, &text)]);
    }
}

#[test]
fn volumes_of_zfs_are_not_taken_for_disks() {
    let mut machine = Machine::sound();
    machine.disk("230:0", "zd0");
    machine.path = "/dev/zd0";
    machine.says("health-zfs", Verdict::Unknown, "zd0 is a volume of ZFS");
}

#[test]
fn interrupts_threads_and_cost_models() {
    let mut machine = Machine::sound();
    let function = "/sys/devices/pci0000:00/0000:01:00.0";
    machine.disk_at("259:0", &format!("{function}/nvme/nvme0/nvme0n1"));
    machine.path = "/dev/nvme0n1";
    machine.says("numa", Verdict::Ok, "no device is on a node");
    for vector in ["40", "41", "42"] {
        machine.file(&format!("{function}/msi_irqs/{vector}"), "msix");
    }
    machine.says("numa", Verdict::Ok, "nvme0n1: 3 interrupts, where they are served is not told");
    machine.file("/proc/irq/40/smp_affinity_list", "0-3");
    machine.says("numa", Verdict::Ok, "3 interrupts, served by 4 processors");
    for (vector, processor) in [("40", "0"), ("41", "1"), ("42", "1")] {
        machine.file(&format!("/proc/irq/{vector}/effective_affinity_list"), processor);
    }
    machine.says("numa", Verdict::Ok, "3 interrupts, served by 2 processors");
    machine.file("/sys/devices/system/cpu/smt/active", "1");
    machine.says("numa", Verdict::Ok, "SMT on");
    // The node is that of the controller, wherever it is above the disk; with one node alone nobody need tell.
    for (node, list) in [("node0", "0-7"), ("node1", "8-15")] {
        machine.file(&format!("/sys/devices/system/node/{node}/cpulist"), list);
    }
    machine.says("numa", Verdict::Unknown, "the node of nvme0n1 was not read");
    let node = format!("{function}/numa_node");
    machine.file(&node, "1");
    machine.says("numa", Verdict::Warn, "nvme0n1 is on node 1");
    machine.file(&node, "-1");
    machine.says("numa", Verdict::Ok, "no device is on a node");

    let qos = "/sys/fs/cgroup/io.cost.qos";
    let on = "253:0 enable=1 ctrl=user rpct=95.00 rlat=5000";
    fault("scheduler", Verdict::Warn, "io.cost.qos: 253:0 enable=1", &[(qos, on)]);
    fault("scheduler", Verdict::Ok, "nr_requests", &[(qos, "253:0 enable=0 ctrl=auto")]);
    fault("scheduler", Verdict::Ok, "nr_requests", &[(qos, "8:0 enable=1 ctrl=auto")]);
    fault("scheduler", Verdict::Ok, "io_poll 1", &[(&vda("queue/io_poll"), "1")]);
}

#[test]
fn drives_that_slow_themselves_down() {
    let mut machine = Machine::sound();
    machine.disk("259:0", "nvme0n1");
    machine.path = "/dev/nvme0n1";
    machine.says("thermal", Verdict::Ok, "1 sensors, all below");
    let log = |warning: u8| {
        let mut log = vec![0_u8; 512];
        // 0x0141 K are 48 °C; 5 and 1 minutes too warm; slowed down 3 and 4 times.
        (log[0], log[1], log[2]) = (warning, 0x41, 1);
        (log[192], log[196], log[216], log[220]) = (5, 1, 3, 4);
        String::from_utf8(log).expect("ASCII")
    };
    machine.file("/dev/nvme0", &log(0));
    machine.says("thermal", Verdict::Ok, "nvme0 48 °C, slowed itself down 7 times and was 6 min");
    machine.file("/dev/nvme0", &log(2));
    machine.says("thermal", Verdict::Warn, "nvme0 48 °C");
    std::fs::remove_dir_all(machine.place("/sys/class/hwmon")).expect("it is there");
    machine.file("/dev/nvme0", &log(0));
    machine.says("thermal", Verdict::Ok, "no sensor of the kernel's is visible; nvme0 48 °C");
}
