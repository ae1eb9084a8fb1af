//! A disk has one opener, and a dead one's late writes are over before the next one has it.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plumb_io::engine::UringQueue;
use plumb_io::exclusive::{self, ExclusiveDisk, ExclusiveError};
use plumb_io::system_tree::SystemTree;
use plumb_io::{
    FileIndex, FlushQueue, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, QueueSpec, RegionSpec,
    Slot,
};
use plumb_units::Nanos;

use crate::drive::{self, BLOCK};

/// Names the disk to a copy of this program that is to be killed.
const VICTIM: &str = "PLUMB_TEST_VICTIM";
/// Names it to a copy that only holds it.
const HELD: &str = "PLUMB_TEST_HELD";

fn open(path: &Path, patience: u64) -> Result<ExclusiveDisk, ExclusiveError> {
    exclusive::open(path, Duration::from_millis(patience), &SystemTree::default())
}

fn disk_file(folder: &Path) -> PathBuf {
    let path = folder.join("disk.img");
    std::fs::write(&path, vec![0; 1 << 20]).expect("room");
    path
}

/// A block of `byte` to the start of the disk; `None` if the ring was not waited for.
fn write_block(queue: &mut UringQueue, byte: u8, wait: bool) -> Option<i32> {
    queue.buffer_mut(Slot(0), LaneIndex(0)).fill(byte);
    let memory = Memory::Lane(LaneIndex(0));
    let (kind, file) = (OpKind::Write, FileIndex(0));
    queue.push(Op { kind, file, slot: Slot(0), len: BLOCK, offset: 0, memory });
    let wanted = u32::from(wait);
    queue.submit_and_wait(wanted, if wait { Nanos::NEVER } else { Nanos::ZERO }).expect("taken");
    queue.look();
    queue.pop().map(|done| done.result)
}

fn ring(disk: ExclusiveDisk) -> UringQueue {
    let lane = LaneSpec { first_slot: 0, slots: 2, bytes: BLOCK };
    let regions = vec![RegionSpec { lanes: vec![lane] }];
    let (file, other_names) = disk.into_target();
    assert!(other_names.is_empty(), "nothing but a queue is kept of it here");
    let files = vec![file];
    let spec = QueueSpec { depth: 2, files, regions, ..QueueSpec::default() };
    UringQueue::open(spec, plumb_io::engine::UringOptions::default()).expect("a ring")
}

#[test]
fn a_ring_flushes() {
    if let Some(held) = std::env::var_os(HELD) {
        let disk = open(Path::new(&held), 0).expect("nobody has it");
        println!("held");
        std::io::stdin().lock().read_line(&mut String::new()).expect("it waits");
        drop(disk);
        return;
    }
    if let Err(why) = plumb_io::engine::probe_ring() {
        println!("skipped a_ring_flushes: {why}");
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    // Run with a disk's name, this is the process that is killed below.
    let victim = std::env::var_os(VICTIM).map(PathBuf::from);
    let path = victim.clone().unwrap_or_else(|| disk_file(folder.path()));
    let mut queue = ring(open(&path, 0).expect("nobody has it"));
    if victim.is_some() {
        println!("ready");
        std::io::stdin().lock().read_line(&mut String::new()).expect("told to go on");
        write_block(&mut queue, 0xab, false);
        println!("submitted");
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    assert_eq!(write_block(&mut queue, 7, true), Some(BLOCK.cast_signed()));
    queue.push_flush(FileIndex(0), Slot(1));
    queue.submit_and_wait(1, Nanos::NEVER).expect("taken");
    queue.look();
    let done = queue.pop().expect("it is over");
    assert_eq!((done.slot, done.result), (Slot(1), 0), "a flush moves nothing");
    drop(queue);
    assert_eq!(std::fs::read(&path).expect("it is there")[..4096], [7; 4096]);
    assert!(
        std::panic::catch_unwind(move || {
            let mut queue = ring(open(&path, 1000).expect("free again"));
            queue.push_flush(FileIndex(1), Slot(1));
        })
        .is_err()
    );
}

#[test]
fn the_second_opener_is_told_who_is_first() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = disk_file(folder.path());
    let first = open(&path, 0).expect("nobody has it");
    assert_eq!((first.size, first.is_device), (1 << 20, false));
    match open(&path, 0) {
        Err(ExclusiveError::InUse { owner, .. }) => {
            assert!(owner.contains("this program"), "{owner}");
        }
        other => panic!("{other:?}"),
    }
    drop(first);
    let held = Holder::of(&path);
    let message = match open(&path, 0) {
        Err(error @ ExclusiveError::InUse { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(message.contains(&format!("process {}", held.0.id())), "{message}");
    drop(held);
    open(&path, 5000).expect("its holder is gone");
    assert!(matches!(open(folder.path(), 0), Err(ExclusiveError::Kind { .. })));
    assert!(matches!(open(&folder.path().join("none"), 0), Err(ExclusiveError::Open { .. })));
}

/// Another program that has locked a file.
struct Holder(Child);

impl Holder {
    fn of(path: &Path) -> Self {
        let mut command = Command::new("flock");
        command.arg("--no-fork").arg(path).args(["sleep", "60"]);
        let child = command.spawn().expect("flock is part of every system");
        while rustix::fs::flock(
            std::fs::File::open(path).expect("it is there"),
            rustix::fs::FlockOperation::NonBlockingLockShared,
        )
        .is_ok()
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A device whose I/O stands still when it is told to: a loop device on a file system that can be frozen.
struct Slow {
    folder: tempfile::TempDir,
    loops: Vec<String>,
    mounts: Vec<PathBuf>,
}

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain")
}

impl Slow {
    /// `None` where loop devices and mounts are not to be had.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok()?;
        let mut slow = Self { folder, loops: Vec::new(), mounts: Vec::new() };
        let below = slow.folder.path().join("below.img");
        slow.attach(&below, 96 << 20)?;
        let mount = slow.mount(0)?;
        slow.attach(&mount.join("above.img"), 48 << 20)?;
        Some(slow)
    }

    fn attach(&mut self, file: &Path, bytes: u64) -> Option<()> {
        std::fs::File::create(file).ok()?.set_len(bytes).ok()?;
        let device = run("losetup", &["--find", "--show", text(file)])?;
        self.loops.push(device);
        Some(())
    }

    fn mount(&mut self, nth: usize) -> Option<PathBuf> {
        let at = self.folder.path().join(format!("mount{nth}"));
        std::fs::create_dir(&at).ok()?;
        run("mkfs.ext4", &["-q", &self.loops[nth]])?;
        run("mount", &[&self.loops[nth], text(&at)])?;
        self.mounts.push(at.clone());
        Some(at)
    }

    fn freeze(&self) {
        run("fsfreeze", &["--freeze", text(&self.mounts[0])]).expect("ext4 can be frozen");
    }

    fn thaw(&self) {
        let _ = run("fsfreeze", &["--unfreeze", text(&self.mounts[0])]);
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.thaw();
        for nth in (0..self.loops.len()).rev() {
            if let Some(mount) = self.mounts.get(nth) {
                let _ =
                    run("umount", &[text(mount)]).or_else(|| run("umount", &["-l", text(mount)]));
            }
            let _ = run("losetup", &["--detach", &self.loops[nth]]);
        }
    }
}

fn read_block(disk: &ExclusiveDisk) -> Vec<u8> {
    let flags = rustix::fs::OFlags::RDONLY;
    let link =
        format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&disk.descriptor.as_fd()));
    let looker = rustix::fs::open(link, flags, rustix::fs::Mode::empty()).expect("it is open");
    let mut bytes = vec![0; 4096];
    rustix::io::pread(looker, &mut bytes[..], 0).expect("it can be read");
    bytes
}

/// The engine is killed while a write of its is under way. Nobody else gets the disk before that is over.
fn check_late_write(test: &str, slow: &Slow, disk: &Path) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "exclusive::a_ring_flushes", "--nocapture"]).env(VICTIM, disk);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it can be started");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut expect = |word: &str| {
        let found = lines.by_ref().map_while(Result::ok).any(|line| line.ends_with(word));
        assert!(found, "{test}: the other process never said {word}");
    };
    expect("ready");
    assert!(matches!(open(disk, 0), Err(ExclusiveError::InUse { .. })), "{test}: it is alive");
    slow.freeze();
    child.stdin.as_mut().expect("piped").write_all(b"go\n").expect("it waits");
    expect("submitted");
    child.kill().expect("it can be killed");
    let refused = open(disk, 700);
    assert!(refused.is_err(), "{test}: opened while a dead engine's write is under way");
    slow.thaw();
    let ours = open(disk, 20_000).unwrap_or_else(|error| panic!("{test}: {error:?}"));
    assert!(
        read_block(&ours).iter().all(|byte| *byte == 0xab),
        "{test}: the late write has landed"
    );
    child.wait().expect("it is over");
    let mut queue = ring(ours);
    assert_eq!(write_block(&mut queue, 0xcd, true), Some(BLOCK.cast_signed()));
    drop(queue);
    std::thread::sleep(Duration::from_millis(100));
    let ours = open(disk, 5000).expect("nobody has it");
    assert!(read_block(&ours).iter().all(|byte| *byte == 0xcd), "{test}: nothing came later");
}

#[test]
fn late_writes_of_a_killed_engine_end_before_the_next_one_opens() {
    let name = "late_writes_of_a_killed_engine_end_before_the_next_one_opens";
    if drive::is_skipped(name, plumb_io::engine::Choice::Uring, plumb_io::QueueMode::Asynchronous) {
        return;
    }
    let Some(mut slow) = Slow::new() else {
        println!("skipped {name}: no loop devices and mounts");
        return;
    };
    let device = PathBuf::from(&slow.loops[1]);
    check_late_write("block device", &slow, &device);
    let mount = slow.mount(1).expect("the first one went well");
    let file = disk_file(&mount);
    check_late_write("file", &slow, &file);
    // A file behind a loop device is the same disk under another name.
    let behind = slow.mounts[0].join("above.img");
    assert!(matches!(open(&behind, 0), Err(ExclusiveError::InUse { .. })));
}

/// A part of a file as a block device, detached after the test.
pub(crate) struct Part(pub(crate) String);

impl Part {
    /// `None` where there are no loop devices.
    pub(crate) fn attach(file: &Path, offset: u64, bytes: u64) -> Option<Self> {
        let (offset, bytes) = (offset.to_string(), bytes.to_string());
        let line = ["--find", "--show", "--offset", &offset, "--sizelimit", &bytes, text(file)];
        run("losetup", &line).filter(|device| !device.is_empty()).map(Self)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = run("losetup", &["--detach", &self.0]);
    }
}

#[track_caller]
fn refuses(disk: &str, words: &[&str]) {
    // A process that another test starts has what this one has open until it is another program.
    let told = || match open(Path::new(disk), 300) {
        Err(ExclusiveError::InUse { owner, .. }) => owner,
        other => panic!("{other:?}"),
    };
    let says = |owner: &String| words.iter().all(|word| owner.contains(word));
    let mut owners = vec![told()];
    while !owners.iter().any(says) {
        assert!(owners.len() < 10, "{owners:?}");
        owners.push(told());
    }
}

/// C11: a second opener is refused by whatever name, in this process and in another one.
#[test]
fn storage_with_two_names_has_one_opener() {
    const MIB: u64 = 1 << 20;
    let name = "storage_with_two_names_has_one_opener";
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().join("disk.img");
    std::fs::File::create(&path).expect("made").set_len(8 * MIB).expect("sparse");
    let parts = [(0, 4 * MIB), (0, 8 * MIB), (2 * MIB, 4 * MIB), (4 * MIB, 4 * MIB)];
    let parts = parts.map(|(offset, bytes)| Part::attach(&path, offset, bytes));
    let [Some(low), Some(all), Some(middle), Some(high)] = parts else {
        println!("skipped {name}: no loop devices");
        return;
    };
    // The kernel knows nothing of it: both can be claimed.
    let device = |part: &Part| open(Path::new(&part.0), 300);
    let first = device(&low).expect("nobody has it");
    refuses(&all.0, &["this program", &low.0]);
    refuses(&middle.0, &["this program", &low.0]);
    let beside = device(&high).expect("it is another part of that file");
    drop(first);
    refuses(&middle.0, &["this program", &high.0]);
    refuses(&all.0, &[&high.0]);
    drop(beside);
    drop(device(&all).expect("nobody has a part of it"));
    // Another program.
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "exclusive::a_ring_flushes", "--nocapture"]).env(HELD, &low.0);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("it can be started");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(lines.by_ref().map_while(Result::ok).any(|line| line.ends_with("held")));
    let process = format!("process {}", child.id());
    refuses(&all.0, &[&process, &low.0]);
    refuses(&middle.0, &[&process, "the same storage"]);
    drop(device(&high).expect("it is another part of that file"));
    child.kill().expect("it can be killed");
    child.wait().expect("it is over");
    drop(open(Path::new(&all.0), 5000).expect("its holder is gone"));
    // A mount is no opener that can be seen.
    let is_mounted = run("mkfs.ext4", &["-q", &low.0]).and_then(|_| {
        let at = folder.path().join("mount");
        std::fs::create_dir(&at).ok()?;
        run("mount", &[&low.0, text(&at)]).map(|_| at)
    });
    if let Some(at) = is_mounted {
        let refused = open(Path::new(&all.0), 300);
        run("umount", &[text(&at)]).expect("nobody is in there");
        let owner = match refused {
            Err(ExclusiveError::InUse { owner, .. }) => owner,
            other => panic!("{other:?}"),
        };
        assert!(owner.contains("mounted") && owner.contains(&low.0), "{owner}");
    }
    // The file itself, and who has it by its own name.
    refuses(text(&path), &["behind the loop device"]);
    drop([low, all, middle, high]);
    let file = open(&path, 5000).expect("nobody has it");
    let Some(late) = Part::attach(&path, MIB, MIB) else { return };
    refuses(&late.0, &["the file behind it", text(&path)]);
    if let Some(upon) = run("losetup", &["--find", "--show", &late.0]).map(Part) {
        refuses(&upon.0, &["the file behind it", text(&path)]);
        drop(file);
        let below = device(&late);
        assert!(below.is_err(), "it is behind the other one: {below:?}");
        drop(device(&upon).expect("nobody has it"));
    }
}
