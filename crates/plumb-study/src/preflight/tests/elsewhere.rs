//! Data on other machines, and work that waits for its time.

use super::machine::{Machine, fault};
use super::*;

/// A machine whose target is this disk.
fn with_disk(name: &'static str, node: &'static str, place: &str) -> Machine {
    let mut machine = Machine::sound();
    machine.disk_at("8:0", &format!("{place}/{name}"));
    machine.path = node;
    machine
}

#[test]
fn remote_devices() {
    let place = "/sys/devices/platform/host2/session1/target2:0:0/2:0:0:0/block";
    let machine = with_disk("sda", "/dev/sda", place);
    machine.says(
        "health-fabric",
        Verdict::Note,
        "sda is session1 over iSCSI, session1, 0 connections",
    );
    let session = "/sys/class/iscsi_session/session1";
    machine.file(&format!("{session}/targetname"), "iqn.2026-11.example:disk");
    machine.file(&format!("{session}/state"), "LOGGED_IN");
    machine.file("/sys/class/iscsi_connection/connection1:0/address", "10.0.0.1");
    machine.file("/sys/class/iscsi_connection/connection11:0/address", "10.0.0.2");
    machine.says(
        "health-fabric",
        Verdict::Note,
        "iqn.2026-11.example:disk over iSCSI, session1, 1 connections",
    );
    machine.file("/dev/kmsg", "3,9,9,-; connection11:0: detected conn error (1011)\n");
    machine.says("health-fabric", Verdict::Note, "iSCSI");
    machine.file("/dev/kmsg", "3,9,9,-; connection1:0: detected conn error (1011)\n");
    machine.says("health-fabric", Verdict::Warn, "detected conn error");
    machine.file("/dev/kmsg", "6,1,0,-;all is well\n");
    machine.file(&format!("{session}/state"), "FAILED");
    machine.says("health-fabric", Verdict::Warn, "session1 is FAILED");

    let machine = with_disk("nbd0", "/dev/nbd0", "/sys/devices/virtual/block");
    machine.says("health-fabric", Verdict::Warn, "nbd0 is not connected");
    machine.file("/sys/devices/virtual/block/nbd0/pid", "77");
    machine.says("health-fabric", Verdict::Note, "nbd0 is a network block device");

    let nvme = "/sys/devices/virtual/nvme-fabrics/ctl/nvme0";
    let machine = with_disk("nvme0n1", "/dev/nvme0n1", nvme);
    machine.file("/sys/class/nvme/nvme0/transport", "tcp");
    machine.file("/sys/class/nvme/nvme0/address", "traddr=10.0.0.1,trsvcid=4420");
    machine.file("/sys/class/nvme/nvme0/state", "live");
    machine.says("health-fabric", Verdict::Note, "nvme0 is attached by tcp (traddr=10.0.0.1");
    machine.file("/sys/class/nvme/nvme0/state", "connecting");
    machine.says("health-fabric", Verdict::Warn, "nvme0 is connecting");

    let port = "/sys/devices/pci0000:00/0000:00:01.0/host3/rport-3:0-1/target3:0:0/3:0:0:0/block";
    let machine = with_disk("sda", "/dev/sda", port);
    machine.says("health-fabric", Verdict::Note, "Fibre Channel, rport-3:0-1");
    machine.file("/sys/class/fc_remote_ports/rport-3:0-1/port_state", "Blocked");
    machine.says("health-fabric", Verdict::Warn, "rport-3:0-1 is Blocked");

    let mount = "/proc/self/mountinfo";
    let nfs = "25 1 0:40 / /data rw - nfs4 server:/export rw,vers=4.2,proto=tcp,nconnect=4,addr=10.0.0.1\n";
    fault("health-fabric", Verdict::Note, "(vers=4.2, proto=tcp, nconnect=4)", &[(mount, nfs)]);
    let silent = ("/dev/kmsg", "4,9,9,-;nfs: server server not responding, still trying\n");
    fault("health-fabric", Verdict::Warn, "not responding", &[(mount, nfs), silent]);
    let other = ("/dev/kmsg", "4,9,9,-;nfs: server another not responding, still trying\n");
    fault("health-fabric", Verdict::Note, "server:/export", &[(mount, nfs), other]);
}

#[test]
fn links_on_the_way() {
    let dev = |received: u64, sent: u64| {
        format!(
            "Inter-| Receive\n face |bytes\n    lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n  eth0: {received} 9 0 0 0 0 0 0 {sent} 9 0 0 0 0 0 0\n"
        )
    };
    let snmp = |again: u64| {
        format!(
            "Tcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 {again} 0\nUdp: InDatagrams\nUdp: 3\n"
        )
    };
    let busy = |received: u64, sent: u64, again: u64, speed: &str, verdict, part: &str| {
        let mut machine = Machine::sound();
        machine.file("/proc/self/mountinfo", "25 1 0:40 / /data rw - nfs4 server:/export rw\n");
        machine.file("/sys/class/net/lo/operstate", "up");
        machine.file("/sys/class/net/eth0/operstate", "up");
        machine.file("/sys/class/net/eth0/speed", speed);
        machine.file("/proc/net/dev", &dev(1000, 1000));
        machine.file("/proc/net/snmp", &snmp(7));
        machine.later.push(("/proc/net/dev", dev(1000 + received, 1000 + sent)));
        machine.later.push(("/proc/net/snmp", snmp(7 + again)));
        machine.says("load-net", verdict, part);
        machine.says("health-fabric", Verdict::Note, "eth0");
    };
    // 1 Gbit/s is 125 MB/s.
    busy(1_250_000, 0, 0, "1000", Verdict::Ok, "eth0 1.0 % busy");
    busy(0, 12_500_000, 0, "1000", Verdict::Warn, "eth0 10.0 % busy");
    busy(0, 0, 3, "1000", Verdict::Warn, "3 segments");
    busy(0, 1 << 20, 0, "-1", Verdict::Unknown, "eth0 1.0 MiB/s of an unknown speed");
    fault("load-net", Verdict::Ok, "no network", &[]);
}

#[test]
fn jobs_of_cron_and_at() {
    const ID: &str = "tasks-timers";
    // Each minute, and never: there is no 30th of February.
    let (always, never) = ("* * * * *", "0 0 30 2 *");
    for (path, user) in [
        ("/etc/crontab", "root "),
        ("/etc/cron.d/own", "root "),
        ("/var/spool/cron/crontabs/root", ""),
        ("/var/spool/cron/root", ""),
    ] {
        let table = |times: &str, command: &str| format!("MAILTO=x\n{times} {user}{command}\n");
        fault(ID, Verdict::Block, "trims", &[(path, &table(always, "/sbin/fstrim -a"))]);
        fault(
            ID,
            Verdict::Block,
            "makes backups in 0 min",
            &[(path, &table(always, "restic backup /"))],
        );
        fault(
            ID,
            Verdict::Note,
            "not due before the end",
            &[(path, &table(never, "restic backup /"))],
        );
        fault(ID, Verdict::Warn, "was not read", &[(path, &table("@reboot", "rsync -a / /b"))]);
        fault(ID, Verdict::Note, "1 timers or jobs", &[(path, &table(always, "echo hello"))]);
        fault(ID, Verdict::Ok, "none known", &[(path, &table(never, "echo hello"))]);
    }
    // Debian's line that leaves the work to systemd.
    let line = format!("{always} root test -e /run/systemd/system || e2scrub_all -A\n");
    let table = ("/etc/cron.d/e2scrub_all", line.as_str());
    fault(ID, Verdict::Block, "scrubs ext4", &[table]);
    fault(ID, Verdict::Ok, "none known", &[table, ("/run/systemd/system/x", "")]);
    // A folder's programs are due when the line that runs them is.
    let daily = ("/etc/cron.daily/backup-home", "#!/bin/sh\n");
    let runs = |times: &str| format!("{times} root cd / && run-parts --report /etc/cron.daily\n");
    fault(ID, Verdict::Warn, "cron.daily/backup-home", &[daily]);
    fault(ID, Verdict::Block, "cron.daily/backup-home", &[daily, ("/etc/crontab", &runs(always))]);
    fault(ID, Verdict::Note, "not due before", &[daily, ("/etc/crontab", &runs(never))]);
    // Anacron runs them when a day has passed since the last time.
    let anacron =
        ("/etc/anacrontab", "1 5 cron.daily run-parts /etc/cron.daily\n7 9 own borg create x\n");
    let (long_ago, to_come) = ("20200101", "29991231");
    let stamps = |daily: &'static str, own: &'static str| {
        [("/var/spool/anacron/cron.daily", daily), ("/var/spool/anacron/own", own)]
    };
    let all = |stamps: [(&'static str, &'static str); 2]| {
        [vec![daily, anacron], stamps.to_vec()].concat()
    };
    fault(ID, Verdict::Block, "cron.daily/backup-home", &all(stamps(long_ago, to_come)));
    fault(ID, Verdict::Block, "anacrontab own makes backups", &all(stamps(to_come, long_ago)));
    fault(ID, Verdict::Note, "not due before", &all(stamps(to_come, to_come)));
    // The name of a job of at is its time in minutes; one that is late runs at once.
    for folder in ["/var/spool/cron/atjobs", "/var/spool/at"] {
        let (late, far) = (format!("{folder}/a0000101000000"), format!("{folder}/a000017fffffff"));
        let script = "#!/bin/sh\nHOME=/root; export HOME\ncd /root || exit 1\nxfs_scrub /data\n";
        fault(ID, Verdict::Block, "scrubs XFS", &[(&late, script)]);
        fault(ID, Verdict::Note, "not due before", &[(&far, script)]);
        fault(ID, Verdict::Note, "1 timers or jobs", &[(&late, "echo hello\n")]);
    }
}
