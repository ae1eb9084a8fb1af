//! A disk that answers writes with errors (section 18: write error, one copy).

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::rights::{Loop, Tmpfs, is_root};
use crate::spaces::{Place, events, with_disks};

/// The pool goes on without it, and says what it is: not that it is away, for it is here.
#[test]
fn a_disk_that_fails_writes_is_told_as_io_error_until_it_takes_them() {
    let place = Place::new();
    let name = "a_disk_that_fails_writes_is_told_as_io_error_until_it_takes_them";
    // A device that has room for little of what it says.
    let Some(below) = Tmpfs::mount(&place.file("below"), 8 << 20) else {
        println!("skipped {name}: only root mounts");
        return;
    };
    let file = place.file("below/x");
    std::fs::File::create(&file).and_then(|file| file.set_len(160 << 20)).expect("sparse");
    let Some(disk) = Loop::attach(&file) else {
        println!("skipped {name}: no loop device");
        return;
    };
    let disks = format!("--ssd a.img --ssd {} --ssd c.img", disk.path());
    place.plumb(&format!("pool new tank --file-size 160M --slab 16M {disks}")).succeeds_quietly();
    place.plumb("vdisk new tank/two --size 96M --resiliency mirror2").succeeds_quietly();
    let load = "run -b64K -s -w100 -o4 -d3 -W0 --verify crc32c space:tank/two";
    place.plumb(load).ends_with(0);
    let told = events(&place);
    let at = |kind: &str| told.iter().position(|other| other == kind);
    assert!(at("disk-error").is_some() && at("disk-error") < at("disk-lost"), "{told:?}");
    let status = place.plumb("space status tank").ends_with(1).stdout;
    let said = status.lines().filter(|line| line.contains(&disk.path())).collect::<String>();
    assert!(said.contains("IO Error") && !status.contains("Lost Communication"), "{status}");
    assert!(status.contains("replace-disk"), "{status}");
    // It has room now.
    below.resize(400 << 20);
    place.plumb("space job tank --wait").succeeds_quietly();
    place.plumb("space status tank").ends_with(0);
    place.plumb("run -b64K -s -w0 -o4 -d1 -W0 --verify crc32c space:tank/two").ends_with(0);
}

/// A block device that is read-only until this goes: devices stay so when their file is taken off.
struct Sealed(String);

impl Drop for Sealed {
    fn drop(&mut self) {
        let _ = Command::new("blockdev").args(["--setrw", &self.0]).status();
    }
}

/// Disks that went read-only, as file systems do after errors, are named as such, and nobody is told to give up what they hold.
#[test]
fn disks_that_are_read_only_are_told_as_such() {
    let place = Place::new();
    let name = "disks_that_are_read_only_are_told_as_such";
    let mut disks = Vec::new();
    for file in ["a", "b", "c"] {
        let file = place.file(file);
        std::fs::File::create(&file).and_then(|file| file.set_len(96 << 20)).expect("sparse");
        disks.extend(Loop::attach(&file).filter(|_| is_root()));
    }
    let [a, b, c] = &disks[..] else {
        println!("skipped {name}: no loop devices");
        return;
    };
    let seal = |disk: &Loop| {
        let set = Command::new("blockdev").args(["--setro", &disk.path()]).status();
        assert!(set.is_ok_and(|status| status.success()), "blockdev is where losetup is");
        Sealed(disk.path())
    };
    let line = format!("pool new tank {} {} {}", a.path(), b.path(), c.path());
    place.plumb(&line).succeeds_quietly();
    place.plumb("vdisk new tank/two --size 32M --resiliency mirror2").succeeds_quietly();
    let load = "run -b4K -r -w50 -o4 -d1 -W0 --verify crc32c space:tank/two";
    place.plumb(load).ends_with(0);
    let one = seal(a);
    let status = place.plumb("space status tank").ends_with(2).stdout;
    let told = |status: &str, disk: &Loop| {
        let line = status.lines().find(|line| line.contains(&disk.path())).map(str::to_owned);
        line.expect("each disk has its line")
    };
    assert!(told(&status, a).contains("Not Usable (it is read-only"), "{status}");
    place.plumb(load).ends_with(0);
    let other = seal(b);
    let refused = place.plumb(load).ends_with(1).stderr;
    assert!(refused.contains(&format!("{} cannot be written", b.path())), "{refused}");
    assert!(refused.contains("--setrw") && !refused.contains("--without-quorum"), "{refused}");
    let status = place.plumb("space status tank").stdout;
    assert!(status.contains("Read-only (Incomplete)"), "{status}");
    assert!(told(&status, b).contains("it is read-only"), "{status}");
    // A word for disks that are lost is none for these.
    let refused = place.plumb("space repair tank --without-quorum tank").ends_with(1).stderr;
    assert!(refused.contains("cannot be written"), "{refused}");
    // The pool went on without the one that can be written again: that others know better, and could be looked at, makes it no newer
    // (0348).
    let third = seal(c);
    drop(one);
    let read = load.replace("-w50", "-w0");
    let refused = place.plumb(&read).ends_with(3).stderr;
    for words in ["went on without the disks that are here", "cannot be written", "Connect"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    let said = place.plumb(&read.replace("-W0", "-W0 --accept-older")).ends_with(0).stderr;
    assert!(said.contains("is older than what it took since"), "{said}");
    drop((other, third));
    place.plumb("space job tank --wait").succeeds_quietly();
    place.plumb("space status tank").ends_with(0);
    place.plumb(load).ends_with(0);
}

/// A program does not go on with a file that was removed or replaced while the disk was offline, though it has it open: what it wrote there would
/// be gone with it (RES-10).
#[test]
fn a_disk_that_was_replaced_while_it_was_offline_waits_for_the_next_start() {
    let place = with_disks();
    for vdisk in ["one", "three"] {
        place.plumb(&format!("vdisk rm tank/{vdisk}")).succeeds_quietly();
    }
    let line = "run -b4K -r -w70 -o8 -d12 -W0 -Sh --verify crc32c --verify-state=vs space:tank/two";
    let mut command = place.command(line);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut load = command.spawn().expect("it starts");
    let began = Instant::now();
    while place.json("space perf tank")["running"] != true {
        assert!(began.elapsed().as_secs() < 60, "it never began");
        std::thread::sleep(Duration::from_millis(50));
    }
    let told = place.json("vdisk show tank/two")["tiers"][0]["disks"].clone();
    let disk = told[0].as_str().expect("a name").to_owned();
    place.plumb(&format!("space offline tank {disk}")).succeeds_quietly();
    let copy = place.file("copy");
    std::fs::copy(&disk, &copy).and_then(|_| std::fs::rename(&copy, &disk)).expect("replaced");
    let refused = place.plumb(&format!("space online tank {disk}")).ends_with(3).stderr;
    assert!(refused.contains("replaced or removed while the pool had it open"), "{refused}");
    assert!(load.try_wait().expect("asked").is_none(), "the load goes on without it");
    assert!(load.wait().expect("it ends").success());
    let told = events(&place);
    assert!(!told.iter().any(|event| event == "disk-back"), "{told:?}");
    place.plumb("space job tank --wait").succeeds_quietly();
    place.plumb("space status tank").ends_with(0);
    let line = "run -b4K -r -w0 -o8 -d1 -W0 --verify crc32c --verify-state=vs space:tank/two";
    place.plumb(line).ends_with(0);
}
