//! Faults that only programs tell of.

use super::machine::{Machine, fault, vda};
use super::*;

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
        ("ONLINE\t80\t40\n", "scan: none requested", "8192", Verdict::Warn, "80 % fragmented"),
        ("ONLINE\t-\t40\n", "scan: none requested", "8192", Verdict::Unknown, "- % fragmented"),
        (
            "ONLINE\t1\t3\n",
            "scan: none requested\nerrors: No known data errors\n",
            "8192",
            Verdict::Ok,
            "3 % full",
        ),
        (
            "ONLINE\t1\t3\n",
            "scan: none requested\nerrors: 5 data errors, use '-v' for a list\n",
            "8192",
            Verdict::Block,
            "5 data errors",
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
    let machine = Machine::sound();
    machine.file(mount, &btrfs);
    machine.btrfs_is_well();
    machine.file("/said/btrfs scrub", &done);
    machine.says("health-btrfs", Verdict::Ok, "nothing");

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
