//! Files, real loop devices, and faked machines with what we do not have.

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use super::*;
use crate::fake_tree::FakeTree;

/// Verdict and findings as text, the folder of the test left out.
fn report(contents: &Contents, folder: &Path) -> String {
    let folder = format!("{}/", folder.display());
    let findings: Vec<String> = contents
        .findings
        .iter()
        .map(|finding| format!("{:?} {finding}", finding.kind).replace(&folder, ""))
        .collect();
    format!("{:?}: {}", contents.verdict, findings.join("; "))
}

/// What is found out about a file; it is opened for writing only, as a target is.
fn file_report(path: &Path) -> String {
    let file = File::options().write(true).open(path).expect("the file");
    let contents = inspect(file.as_fd(), path, &SystemTree::default());
    report(&contents, path.parent().expect("a folder"))
}

#[test]
fn an_empty_file_may_be_written_to_and_a_full_one_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f");
    std::fs::write(&path, "").expect("a file");
    assert_eq!(file_report(&path), "Empty: ");
    std::fs::write(&path, "data").expect("a file");
    assert_eq!(file_report(&path), "Refused: Data f: 4 bytes that Plumb did not write");
    // Zeros and holes are somebody's, too: an image, a database's log.
    File::create(&path).and_then(|file| file.set_len(1 << 20)).expect("a file");
    assert_eq!(file_report(&path), "Refused: Data f: 1048576 bytes that Plumb did not write");
    // What is known is told by its name.
    let mut image = vec![0; 1 << 20];
    image[65_536..65_544].copy_from_slice(b"PLUMBSB1");
    std::fs::write(&path, &image).expect("a file");
    let held = "disk of a Plumb storage pool, 1048576 bytes";
    assert_eq!(file_report(&path), format!("Refused: Data f: {held}"));
}

#[test]
fn what_plumb_made_may_be_written_to_until_somebody_changes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f");
    let tree = SystemTree::default();
    let file = File::create(&path).expect("a file");
    file.set_len(8192).expect("a length");
    mark::begin(file.as_fd(), &path, &tree).expect("marked");
    assert_eq!(file_report(&path), "Ours: ");
    mark::seal(file.as_fd(), &path, &tree).expect("sealed");
    assert_eq!(file_report(&path), "Ours: ");

    file.write_all_at(b"x", 8192).expect("written");
    let report = file_report(&path);
    assert!(
        report.starts_with("Refused: Data f: Plumb made it, but it was changed since"),
        "{report}"
    );
    mark::seal(file.as_fd(), &path, &tree).expect("sealed");

    std::fs::hard_link(&path, folder.path().join("g")).expect("a second name");
    assert_eq!(file_report(&path), "Refused: Data f: it has 2 names (hard links)");
}

#[test]
fn a_locked_file_is_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f");
    std::fs::write(&path, "").expect("a file");
    let mut holder = Command::new("flock");
    let holder = holder.arg(&path).args(["sh", "-c", "echo locked; read line"]);
    let started = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut holder) = started else {
        println!("skipped a_locked_file_is_in_use: there is no flock");
        return;
    };
    let mut line = [0; 7];
    let stdout = holder.stdout.as_mut().expect("its output");
    std::io::Read::read_exact(stdout, &mut line).expect("it is locked");
    let report = file_report(&path);
    drop(holder.stdin.take());
    holder.wait().expect("it ends");
    let want = format!("process {} (flock) has locked it", holder.id());
    // A flock belongs to whoever took it; the shell below it has the descriptor as well.
    assert_eq!(report, format!("Refused: InUse f: {want}"));
    assert_eq!(file_report(&path), "Empty: ");
}

#[test]
fn a_run_that_marks_a_file_meanwhile_is_no_use_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f");
    std::fs::write(&path, "").expect("a file");
    // As long as a mark takes on a slow machine; another process, for one's own locks do not count.
    let mut holder = Command::new("flock");
    let holder = holder.arg(&path).args(["sh", "-c", "echo locked; sleep 0.15"]);
    let Ok(mut holder) = holder.stdout(Stdio::piped()).spawn() else {
        println!("skipped a_run_that_marks_a_file_meanwhile_is_no_use_of_it: there is no flock");
        return;
    };
    let mut line = [0; 7];
    let stdout = holder.stdout.as_mut().expect("its output");
    std::io::Read::read_exact(stdout, &mut line).expect("it is locked");
    assert_eq!(file_report(&path), "Empty: ");
    holder.wait().expect("it ends");
}

#[test]
fn other_kinds_of_files_are_never_written_to() {
    let tree = SystemTree::default();
    let null = File::options().write(true).open("/dev/null").expect("a device");
    let contents = inspect(null.as_fd(), Path::new("/dev/null"), &tree);
    assert_eq!(
        report(&contents, Path::new("/")),
        "Refused: Unknown /dev/null: it is neither file nor disk: CharacterDevice"
    );
}

#[test]
fn the_override_is_named_as_a_shell_takes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("it's data");
    std::fs::write(&path, "data").expect("a file");
    let file = File::open(&path).expect("the file");
    let contents = inspect(file.as_fd(), &path, &SystemTree::default());
    let error = contents.check().expect_err("refused");
    let help = miette::Diagnostic::help(&error).expect("a help text").to_string();
    let name = folder.path().display();
    assert!(help.ends_with(&format!(r"--destroy '{name}/it'\''s data'")), "{help}");
    assert!(error.to_string().contains("which holds what Plumb did not make\n  - "), "{error}");
}

#[test]
fn one_file_is_the_same_by_any_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    std::fs::write(&one, "").and_then(|()| std::fs::write(&two, "")).expect("files");
    std::os::unix::fs::symlink(&one, folder.path().join("link")).expect("a link");
    let file = File::open(&one).expect("the file");
    assert!(is_same(file.as_fd(), &folder.path().join("link")));
    assert!(!is_same(file.as_fd(), &two));
    assert!(!is_same(file.as_fd(), &folder.path().join("none")));
}

/// Runs a command; false when it fails or does not exist.
fn run(command: &str, args: &[&str]) -> bool {
    let search = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(command);
    command.args(args).env("PATH", search).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A loop device on a file of its own; detached at the end.
struct LoopDevice {
    folder: tempfile::TempDir,
    node: PathBuf,
}

impl LoopDevice {
    /// Prints why a test is skipped where there is none.
    fn attach(test: &str, image: &[u8]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("image");
        std::fs::write(&path, image).expect("an image");
        let output = Command::new("/usr/sbin/losetup")
            .args(["--find", "--show", "--partscan"])
            .arg(&path)
            .output();
        let node = output
            .ok()
            .filter(|output| output.status.success())
            .map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim().to_owned()));
        if node.is_none() {
            println!("skipped {test}: no loop device can be attached");
        }
        node.map(|node| Self { folder, node })
    }

    /// What is found out about it, once nobody else's losetup tries whether it is free.
    fn report(&self) -> String {
        loop {
            let report = self.report_of(&self.node);
            if !report.contains("(losetup) has it open") {
                return report;
            }
        }
    }

    fn report_of(&self, node: &Path) -> String {
        // Opened as a target with direct I/O that is only written to.
        let flags = OFlags::WRONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let device = rustix::fs::open(node, flags, Mode::empty()).expect("the device");
        // A command that another test starts has this device open between fork and exec.
        let own =
            format!("({})", std::fs::read_to_string("/proc/self/comm").unwrap_or_default().trim());
        let is_forked = |contents: &Contents| {
            contents.findings.iter().any(|finding| {
                let what = &finding.what;
                what.contains(&own) || what.contains("(contents::tests)")
            })
        };
        let mut contents = inspect(device.as_fd(), node, &SystemTree::default());
        for _ in 0..20 {
            if !is_forked(&contents) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
            contents = inspect(device.as_fd(), node, &SystemTree::default());
        }
        let name = self.node.file_name().expect("a name").to_string_lossy().into_owned();
        let folder = format!("{}/", self.folder.path().display());
        report(&contents, Path::new("/dev")).replace(&name, "LOOP").replace(&folder, "")
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let node = self.node.display().to_string();
        if PathBuf::from(format!("{node}p1")).exists() {
            run("delpart", &[&node, "1"]);
        }
        if !run("losetup", &["-d", &node]) {
            println!("{node} could not be detached");
        }
    }
}

const IMAGE: usize = 16 << 20;

#[test]
fn a_blank_device_may_be_written_to_and_any_byte_at_its_ends_refuses_it() {
    let test = "a_blank_device_may_be_written_to_and_any_byte_at_its_ends_refuses_it";
    let mut image = vec![0; IMAGE];
    // Out of sight, in the middle.
    image[8 << 20] = 1;
    let Some(device) = LoopDevice::attach(test, &image) else { return };
    assert_eq!(device.report(), "Empty: ");
    drop(device);
    for place in [0, (1 << 20) - 1, IMAGE - (1 << 20), IMAGE - 1] {
        let mut image = vec![0; IMAGE];
        image[place] = 1;
        let Some(device) = LoopDevice::attach(test, &image) else { return };
        let want = "data of a kind that Plumb does not know (an earlier run of Plumb may have left it: \
                    a device carries no mark)";
        assert_eq!(device.report(), format!("Refused: Data LOOP, byte {place}: {want}"));
    }
}

/// Unmounts at the end.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        if !run("umount", &[&self.0.display().to_string()]) {
            println!("{} could not be unmounted", self.0.display());
        }
    }
}

#[test]
fn a_mounted_device_is_in_use_and_so_is_what_lies_in_it() {
    let test = "a_mounted_device_is_in_use_and_so_is_what_lies_in_it";
    let Some(device) = LoopDevice::attach(test, &vec![0; IMAGE]) else { return };
    let node = device.node.display().to_string();
    if !run("mkfs.ext4", &["-q", "-L", "precious", &node]) {
        println!("skipped {test}: there is no mkfs.ext4");
        return;
    }
    let holds = "Data LOOP, byte 1080: ext4 file system \"precious\"";
    assert_eq!(device.report(), format!("Refused: {holds}"));

    let point = device.folder.path().join("point");
    std::fs::create_dir(&point).expect("a folder");
    let point_text = point.display().to_string();
    if !run("mount", &[&node, &point_text]) {
        println!("skipped {test}: mounting needs root");
        return;
    }
    let mounted = Mounted(point.clone());
    let used = "InUse LOOP: it is mounted on point (ext4)";
    assert_eq!(device.report(), format!("Refused: {used}; {holds}"));
    // Nobody can claim it while it is mounted, and nobody mount it while it is claimed.
    let claim = || Claim::take(File::open(&device.node).expect("the device").as_fd());
    assert_eq!(claim().err(), Some(Errno::BUSY));
    // The file behind the loop device is in use as well.
    let image = device.folder.path().join("image");
    let report = file_report(&image);
    let used = format!("InUse image: it is behind the loop device {node}");
    assert!(report.contains(&used), "{report}");
    // And so is what has another name.
    let flags = ["--find", "--show", &image.display().to_string()];
    let other = Command::new("losetup").args(flags).output().expect("it ran before");
    let other = PathBuf::from(String::from_utf8_lossy(&other.stdout).trim());
    let found = inspect(File::open(&other).expect("it").as_fd(), &other, &SystemTree::default());
    run("losetup", &["--detach", &other.display().to_string()]);
    let told = found.findings.iter().any(|finding| {
        finding.kind == FindingKind::InUse
            && finding.what.starts_with("it is the same storage as")
            && finding.what.contains("it is mounted on")
    });
    assert!(told, "{:?}", found.findings);
    drop(mounted);
    let claim = claim().expect("free now");
    assert!(!run("mount", &[&node, &point_text]));
    drop(claim);
}

/// A file that another program has locked is in use by the name of a loop device over it, too.
#[test]
fn a_locked_file_is_in_use_by_the_loop_device_over_it() {
    let test = "a_locked_file_is_in_use_by_the_loop_device_over_it";
    let Some(device) = LoopDevice::attach(test, &vec![0; IMAGE]) else { return };
    assert_eq!(device.report(), "Empty: ");
    let image = device.folder.path().join("image");
    let mut holder = Command::new("flock");
    let holder = holder.arg(&image).args(["sh", "-c", "echo locked; read line"]);
    let started = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut holder) = started else {
        println!("skipped {test}: there is no flock");
        return;
    };
    let mut line = [0; 7];
    let stdout = holder.stdout.as_mut().expect("its output");
    std::io::Read::read_exact(stdout, &mut line).expect("it is locked");
    let report = device.report();
    drop(holder.stdin.take());
    holder.wait().expect("it ends");
    assert!(report.contains("InUse LOOP: the file behind it, "), "{report}");
    assert!(report.contains("has locked it"), "{report}");
    assert_eq!(device.report(), "Empty: ");
}

#[test]
fn active_swap_is_in_use() {
    let test = "active_swap_is_in_use";
    /// Switches the swap space off at the end.
    struct Swapping(String);
    impl Drop for Swapping {
        fn drop(&mut self) {
            if !run("swapoff", &[&self.0]) {
                println!("{} could not be switched off", self.0);
            }
        }
    }
    let Some(device) = LoopDevice::attach(test, &vec![0; IMAGE]) else { return };
    let node = device.node.display().to_string();
    if !run("mkswap", &["-q", &node]) || !run("swapon", &["-p", "0", &node]) {
        println!("skipped {test}: no swap space can be switched on");
        return;
    }
    let swapping = Swapping(node);
    let found = device.report();
    drop(swapping);
    let want = "InUse LOOP: it is active swap space; Data LOOP, byte 4086: swap space";
    assert_eq!(found, format!("Refused: {want}"));

    let path = device.folder.path().join("swapfile");
    std::fs::write(&path, vec![0; 1 << 20]).expect("a file");
    let name = path.display().to_string();
    if !run("mkswap", &["-q", &name]) || !run("swapon", &["-p", "0", &name]) {
        println!("skipped {test}: no swap file can be switched on");
        return;
    }
    let swapping = Swapping(name);
    // The kernel lets nobody open it for writing; a descriptor from before would do.
    let file = File::open(&path).expect("the file");
    let contents = inspect(file.as_fd(), &path, &SystemTree::default());
    drop(swapping);
    let found = report(&contents, device.folder.path());
    assert!(found.starts_with("Refused: InUse swapfile: it is active swap space; "), "{found}");
}

#[test]
fn a_partition_is_judged_by_its_disk_and_its_own_contents() {
    let test = "a_partition_is_judged_by_its_disk_and_its_own_contents";
    // An MBR with one partition from sector 2048 to the end.
    let mut image = vec![0; IMAGE];
    let sectors = u32::try_from(IMAGE / 512 - 2048).expect("few sectors");
    image[446 + 4] = 0x83;
    image[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    image[446 + 12..446 + 16].copy_from_slice(&sectors.to_le_bytes());
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    let Some(device) = LoopDevice::attach(test, &image) else { return };
    let table = "Refused: Data LOOP, byte 510: MBR partition table with 1 partition";
    assert_eq!(device.report(), table);
    // Kernels without support for this table are told by hand.
    let partition = PathBuf::from(format!("{}p1", device.node.display()));
    let node = device.node.display().to_string();
    if !partition.exists() {
        run("addpart", &[&node, "1", "2048", &sectors.to_string()]);
    }
    if !partition.exists() {
        println!("skipped {test}: the kernel makes no partitions of loop devices");
        return;
    }
    assert_eq!(device.report_of(&partition), "Empty: ");

    let partition_text = partition.display().to_string();
    let point = device.folder.path().join("point");
    std::fs::create_dir(&point).expect("a folder");
    let mounted = run("mkfs.ext4", &["-q", &partition_text])
        && run("mount", &[&partition_text, &point.display().to_string()]);
    if !mounted {
        println!("skipped {test}: no partition can be mounted");
        return;
    }
    let _mounted = Mounted(point);
    let used = "InUse LOOPp1: it is mounted on point (ext4)";
    assert_eq!(device.report(), table.replace("Data", &format!("{used}; Data")));
    let holds = "Data LOOPp1, byte 1080: ext4 file system";
    assert_eq!(device.report_of(&partition), format!("Refused: {used}; {holds}"));
}

#[test]
fn a_program_that_writes_to_the_device_is_named() {
    let test = "a_program_that_writes_to_the_device_is_named";
    let Some(device) = LoopDevice::attach(test, &vec![0; IMAGE]) else { return };
    let mut writer = Command::new("sh")
        .args(["-c", "exec 3<>\"$1\"; echo open; read line", "sh"])
        .arg(&device.node)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = [0; 5];
    let stdout = writer.stdout.as_mut().expect("its output");
    std::io::Read::read_exact(stdout, &mut line).expect("it is open");
    let report = device.report();
    drop(writer.stdin.take());
    writer.wait().expect("it ends");
    let what = format!("process {} (sh) has it open for writing", writer.id());
    assert_eq!(report, format!("Refused: InUse LOOP: {what}"));
    assert_eq!(device.report(), "Empty: ");
}

/// Uses of a device of a made-up machine.
fn check(fake: &FakeTree, number: &str, want: &[&str]) {
    let tree = fake.tree();
    let number = number.parse().expect("a device number");
    let device = BlockDevice::find(&tree, number).expect("a device");
    let findings: Vec<String> =
        users::of_device(&tree, &device).iter().map(ToString::to_string).collect();
    assert_eq!(findings, want);
}

#[test]
fn what_is_made_of_a_device_is_followed_through_any_depth() {
    let fake = FakeTree::new();
    fake.disk("8:0", "sda").partition("8:1", "sda", "sda1").partition("8:2", "sda", "sda2");
    fake.disk("8:16", "sdb").disk("9:0", "md0").made_of("md0", "sda1").made_of("md0", "sdb");
    fake.file("/sys/devices/block/md0/md/level", "raid1\n");
    fake.disk("253:0", "dm-0").made_of("dm-0", "md0");
    fake.file("/sys/devices/block/dm-0/dm/uuid", "CRYPT-LUKS2-77-safe\n");
    fake.file("/sys/devices/block/dm-0/dm/name", "safe\n");
    fake.disk("253:1", "dm-1").made_of("dm-1", "dm-0");
    fake.file("/sys/devices/block/dm-1/dm/uuid", "LVM-abc\n");
    fake.file("/sys/devices/block/dm-1/dm/name", "vg-home\n");
    fake.file(
        "/proc/self/mountinfo",
        "21 1 8:2 / /boot rw - vfat /dev/sda2 rw\n22 1 253:1 / /home rw - xfs /dev/mapper/vg-home rw\n",
    );
    let home = "/dev/dm-1 (vg-home): it is mounted on /home (xfs)";
    let chain = [
        "/dev/md0: it is part of CRYPT device /dev/dm-0 (safe)",
        "/dev/dm-0 (safe): it is part of LVM device /dev/dm-1 (vg-home)",
        home,
    ];
    let md = "it is part of md raid1 device /dev/md0";
    check(&fake, "8:16", &[&[format!("/dev/sdb: {md}").as_str()], chain.as_slice()].concat());
    check(&fake, "8:1", &[&[format!("/dev/sda1: {md}").as_str()], chain.as_slice()].concat());
    check(&fake, "8:2", &["/dev/sda2: it is mounted on /boot (vfat)"]);
    check(&fake, "253:1", &[home]);
    let boot = "/dev/sda2: it is mounted on /boot (vfat)";
    let of_sda1 = format!("/dev/sda1: {md}");
    let all = [&[of_sda1.as_str()], &chain[..2], &[boot, home]].concat();
    check(&fake, "8:0", &all);
}

#[test]
fn a_partition_is_used_when_its_whole_disk_is() {
    // A path of a multipath device: the partition's own entries show nothing.
    let fake = FakeTree::new();
    fake.disk("8:0", "sda").partition("8:1", "sda", "sda1").disk("253:0", "dm-0");
    fake.made_of("dm-0", "sda").file("/sys/devices/block/dm-0/dm/uuid", "mpath-3600\n");
    check(&fake, "8:1", &["/dev/sda: it is part of mpath device /dev/dm-0"]);
}

#[test]
fn file_systems_on_several_devices_use_all_of_them() {
    let fake = FakeTree::new();
    fake.disk("8:0", "sda").disk("8:16", "sdb").disk("8:32", "sdc");
    fake.file("/sys/fs/btrfs/1f2e/devices/sda/dev", "8:0")
        .file("/sys/fs/btrfs/1f2e/devices/sdb/dev", "8:16");
    fake.file("/sys/fs/bcachefs/aa01/dev-0/block/dev", "8:32");
    fake.file("/proc/self/mountinfo", "21 1 0:30 / /pool rw - btrfs /dev/sda rw\n");
    check(&fake, "8:16", &["/dev/sdb: it is part of the mounted file system btrfs 1f2e"]);
    check(&fake, "8:32", &["/dev/sdc: it is part of the mounted file system bcachefs aa01"]);
}

#[test]
fn swap_loops_and_writers_are_uses() {
    let fake = FakeTree::new();
    fake.disk("8:0", "sda").partition("8:1", "sda", "sda1").disk("7:3", "loop3");
    fake.file("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda1 partition 8 0 -2\n/swap\\040file file 8 0 -3\n");
    fake.file("/sys/devices/block/loop3/loop/backing_file", "/dev/sda\n");
    fake.link("/proc/77/fd/5", "/dev/sda1")
        .file("/proc/77/fdinfo/5", "pos:\t0\nflags:\t02100002\n");
    fake.file("/proc/77/comm", "dd\n");
    fake.link("/proc/78/fd/5", "/dev/sda").file("/proc/78/fdinfo/5", "pos:\t0\nflags:\t02100000\n");
    check(
        &fake,
        "8:0",
        &[
            "/dev/sda1: it is active swap space",
            "/dev/sda: it is behind the loop device /dev/loop3",
            "/dev/sda1: process 77 (dd) has it open for writing",
        ],
    );
}
