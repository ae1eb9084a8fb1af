//! What people and machines do to the disks of a pool (T15, HLT-3, LAY-1), met by the commands.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::rights::{Loop, Tmpfs};
use crate::spaces::{Place, events, with_disks};

const MIB: u64 = 1 << 20;

/// Overwrites bytes of a file or device.
fn spoil(disk: &Path, at: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(disk).expect("it is there");
    file.write_all_at(bytes, at).expect("written");
    file.sync_all().expect("written");
}

fn head(disk: &Path) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    File::open(disk).expect("it is there").read_exact_at(&mut bytes, 0).expect("read");
    bytes
}

fn size(disk: &Path) -> u64 {
    use std::io::{Seek, SeekFrom};
    File::open(disk).expect("it is there").seek(SeekFrom::End(0)).expect("it has an end")
}

/// LAY-1, LAY-2: superblock copies at both ends. The heads of all disks are overwritten: the ends say whose they are,
/// the next start writes the heads anew, and then the ends may go.
fn heads_then_ends_are_lost(place: &Place, disks: &[PathBuf]) {
    let load = "run -b4K -r -w50 -o8 -t1 -d1 -W0 --verify crc32c space:tank/two";
    place.plumb(load).ends_with(0);
    let garbage = vec![0xa5; 1 << 20];
    let all_is_well = |what: &str| {
        let pool = place.json("pool show tank");
        assert_eq!(pool["health"], "Healthy", "{what}: {pool}");
        let scan = place.json("space scan tank");
        assert_eq!(
            (&scan["mismatches"], &scan["unrecoverable"]),
            (&0.into(), &0.into()),
            "{what}: {scan}"
        );
        assert!(scan["blocks_verified"].as_u64().is_some_and(|blocks| blocks > 10), "{scan}");
        place.plumb(load).ends_with(0);
        place.plumb("space status tank").ends_with(0);
    };
    disks.iter().for_each(|disk| spoil(disk, 0, &garbage));
    all_is_well("without heads");
    assert!(events(place).iter().any(|event| event == "metadata-damaged"), "{:?}", events(place));
    disks.iter().for_each(|disk| spoil(disk, size(disk) - MIB, &garbage));
    all_is_well("without ends");
    // The list of pools is lost as well.
    disks.iter().for_each(|disk| spoil(disk, 0, &garbage));
    std::fs::remove_dir_all(place.file("pools")).expect("forgotten");
    let names: Vec<String> = disks.iter().map(|disk| disk.display().to_string()).collect();
    place.plumb(&format!("pool import {}", names.join(" "))).succeeds_quietly();
    all_is_well("found again");
}

#[test]
fn files_without_heads_are_known_by_their_ends() {
    let place = with_disks();
    place.plumb("vdisk rm tank/one").succeeds_quietly();
    let disks = ["a.img", "b.img", "c.img"].map(|name| place.file(name));
    heads_then_ends_are_lost(&place, &disks);
    // Who made something else of a disk keeps it: it is left out, and nothing is written to it.
    spoil(&disks[2], 0, &[0xa5; 1 << 20]);
    spoil(&disks[2], 0, b"XFSB");
    let made = head(&disks[2]);
    let status = place.plumb("space status tank").ends_with(1);
    assert!(status.stdout.contains("XFS file system"), "{status:?}");
    place.plumb("run -b4K -r -w50 -o8 -t1 -d1 -W0 --verify crc32c space:tank/two").ends_with(0);
    let told = place.plumb("pool remove tank --destroy tank").ends_with(0);
    assert!(told.stderr.contains("c.img") || told.stdout.contains("c.img"), "{told:?}");
    assert!(head(&disks[2]) == made, "it was overwritten");
}

/// A link to another disk of the pool is a disk that is away: the pool goes on as without it, and takes it back when it is there.
#[test]
fn a_link_to_another_disk_is_a_disk_that_is_away() {
    let place = with_disks();
    let (one, other) = (place.file("b.img"), place.file("c.img"));
    std::fs::rename(&other, place.file("c.away")).expect("away");
    std::os::unix::fs::symlink(&one, &other).expect("a link");
    let line = "run -b4K -r -w50 -o8 -t1 -d1 -W0 --verify crc32c space:tank/two";
    place.plumb(line).ends_with(0);
    // What lies on that disk alone is not here.
    let status = place.plumb("space status tank").ends_with(2);
    assert!(status.stdout.contains("it leads to"), "{status:?}");
    assert!(status.stdout.contains("c.img: ssd, 64MiB usable: Warning, Lost Comm"), "{status:?}");
    std::fs::remove_file(&other).expect("the link");
    std::fs::rename(place.file("c.away"), &other).expect("back");
    place.plumb("space job tank --wait").ends_with(0);
    place.plumb("space status tank").ends_with(0);
}

#[test]
fn devices_without_heads_are_known_by_their_ends() {
    let place = Place::new();
    let mut loops = Vec::new();
    for name in ["a.img", "b.img", "c.img"] {
        File::create(place.file(name)).expect("made").set_len(96 * MIB).expect("sparse");
        let Some(device) = Loop::attach(&place.file(name)) else {
            println!("skipped devices_without_heads_are_known_by_their_ends: no loop device");
            return;
        };
        loops.push(device);
    }
    let disks: Vec<PathBuf> = loops.iter().map(|device| device.path().into()).collect();
    let names: Vec<String> = loops.iter().map(Loop::path).collect();
    place.plumb(&format!("pool new tank {}", names.join(" "))).succeeds_quietly();
    place.plumb("vdisk new tank/two --size 16M --resiliency mirror2").succeeds_quietly();
    heads_then_ends_are_lost(&place, &disks);
}

fn says(place: &Place, line: &str, status: i32, words: &[&str]) {
    let said = place.plumb(line).ends_with(status).stderr;
    for word in words {
        assert!(said.contains(word), "{line}: {said}");
    }
}

/// T15, HLT-3: what cannot be a pool's disk is refused by name, with a remedy, and stays as it is.
#[test]
fn what_cannot_be_a_disk_is_refused_and_nothing_is_left_behind() {
    let place = Place::new();
    std::fs::create_dir(place.file("folder")).expect("made");
    std::fs::write(place.file("empty"), []).expect("made");
    std::fs::write(place.file("tiny"), vec![0; 8 << 20]).expect("made");
    for path in ["folder", "/dev/null"] {
        let words = [path, "neither a file nor a block device", "--file-size"];
        says(&place, &format!("pool new t {path}"), 3, &words);
        says(&place, &format!("pool new t {path} --destroy {path}"), 3, &words);
    }
    says(&place, "pool new t empty", 3, &["empty", "truncate -s"]);
    says(
        &place,
        "pool new t --file-size 4M x.img",
        3,
        &["Insufficient Capacity", "x.img", "bytes or more"],
    );
    says(&place, "pool new t --file-size 96M x.img ./x.img", 3, &["named twice"]);
    says(&place, "pool new t --file-size 96M none/x.img", 1, &["none/x.img"]);
    // The second file cannot be made: the first one goes.
    says(&place, "pool new t --file-size 96M x.img none/y.img", 1, &["none/y.img"]);
    says(&place, "pool new t --file-size 96M --slab 5M x.img", 1, &["power of two from 16M to 1G"]);
    says(&place, "pool new ../t --file-size 96M x.img", 2, &["letters"]);
    says(&place, "pool new a/b --file-size 96M x.img", 2, &["letters"]);
    says(&place, "pool new t", 1, &["disk"]);
    let mut odd = place.command("pool new t --file-size 96M");
    let said = crate::program::outcome(odd.arg("two\nlines.img")).ends_with(3).stderr;
    assert!(said.contains("line end"), "{said}");
    // No list of pools can be kept there: nothing is written to a disk that was given up.
    std::fs::write(place.file("old.img"), vec![7; 96 << 20]).expect("made");
    let before = head(&place.file("old.img"));
    let mut nowhere = place.command("pool new t old.img --destroy old.img");
    let said = crate::program::outcome(nowhere.env("PLUMB_POOLS", place.file("tiny/pools")));
    assert!(said.ends_with(1).stderr.contains("PLUMB_POOLS"));
    assert!(head(&place.file("old.img")) == before, "it was written to");
    let mut left: Vec<String> = std::fs::read_dir(place.file("."))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name != "pools")
        .collect();
    left.sort();
    assert_eq!(left, ["empty", "folder", "old.img", "tiny"]);
    assert_eq!(place.json("pool list")["pools"], serde_json::json!([]));
}

/// T15: two of three disks are pulled, and one is put back: nothing is lost, and every command says what it lacks.
#[test]
fn two_pulled_disks_stop_a_pool_until_one_is_back() {
    let place = with_disks();
    place.plumb("vdisk rm tank/one").succeeds_quietly();
    let load = "run -b4K -r -w50 -o8 -t1 -d1 -W0 --verify crc32c space:tank/three";
    place.plumb(load).ends_with(0);
    for name in ["a.img", "b.img"] {
        std::fs::rename(place.file(name), place.file(&format!("{name}.away"))).expect("pulled");
    }
    says(&place, load, 1, &["1 of 3 voting disks", "--without-quorum"]);
    says(&place, "vdisk new tank/more --size 16M", 1, &["1 of 3 voting disks"]);
    says(&place, "vdisk rm tank/three --destroy tank/three", 1, &["1 of 3 voting disks"]);
    place.plumb("space status tank").ends_with(3);
    // A disk of another pool under the name of one that is away is not taken for it.
    place.plumb("pool new other --file-size 96M b.img").succeeds_quietly();
    let foreign = std::fs::read(place.file("b.img")).expect("it is there");
    says(&place, load, 1, &["1 of 3 voting disks"]);
    assert!(std::fs::read(place.file("b.img")).expect("it is there") == foreign, "written to");
    let said = place.plumb("space status tank").ends_with(3).stdout;
    assert_eq!(said.matches("Unrecognized Metadata").count(), 1, "{said}");
    assert_eq!(said.matches("Lost Communication").count(), 1, "{said}");
    place.plumb("pool remove other").succeeds_quietly();
    std::fs::rename(place.file("b.img.away"), place.file("b.img")).expect("put back");
    place.plumb(load).ends_with(0);
    std::fs::rename(place.file("a.img.away"), place.file("a.img")).expect("put back");
    place.plumb("space job tank --wait").succeeds_quietly();
    place.plumb("space status tank").ends_with(0);
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
}

/// T15: commands that change a pool, killed at any moment, leave one of two states, and can be given again.
#[test]
fn commands_that_are_killed_leave_a_pool_or_none() {
    let killed = |place: &Place, line: &str, after: u64| {
        let mut command = place.command(line);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_micros(after));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
    };
    for after in [500, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000, 120_000] {
        let place = Place::new();
        killed(&place, "pool new tank --file-size 96M a.img b.img", after);
        if place.plumb("pool show tank").status != 0 {
            // Nothing is known of it: it is made, over what is left of the first try if need be.
            let again = "pool new tank --file-size 96M a.img b.img";
            let said = place.plumb(again);
            if said.status != 0 {
                assert!(said.stderr.contains("--destroy"), "{said:?}");
                place.plumb(&format!("{again} --destroy a.img --destroy b.img")).succeeds_quietly();
            }
        }
        place.plumb("vdisk new tank/kept --size 16M --resiliency mirror2").succeeds_quietly();
        let load = "run -b64K -s -w100 -o4 -t1 -d1 -W0 --verify crc32c space:tank/kept";
        place.plumb(load).ends_with(0);
        killed(&place, "vdisk new tank/v --size 16M --resiliency mirror2", after);
        let made = place.plumb("vdisk show tank/v").status == 0;
        if !made {
            place.plumb("vdisk new tank/v --size 16M --resiliency mirror2").succeeds_quietly();
        }
        killed(&place, "vdisk rm tank/v --destroy tank/v", after);
        if place.plumb("vdisk show tank/v").status == 0 {
            place.plumb("vdisk rm tank/v --destroy tank/v").succeeds_quietly();
        }
        std::fs::File::create(place.file("c.img"))
            .expect("made")
            .set_len(96 << 20)
            .expect("sparse");
        let add = "pool add-disk tank c.img";
        killed(&place, add, after * 2);
        let is_added = |pool: &serde_json::Value| pool["disks"].as_array().map(Vec::len) == Some(3);
        // The pool has it and it does not know it yet: it is missing, and goes as such a disk does.
        if place.json("pool show tank")["disks"][2]["standing"] == "missing" {
            place.plumb("pool remove-disk tank c.img").ends_with(0);
        }
        if !is_added(&place.json("pool show tank")) {
            let said = place.plumb(add);
            if said.status != 0 {
                assert!(said.stderr.contains("--destroy"), "{after} us: {said:?}");
                place.plumb(&format!("{add} --destroy c.img")).succeeds_quietly();
            }
        }
        // One that was killed between the two generations that say so has a disk that is to come back.
        place.plumb("space job tank --wait").succeeds_quietly();
        let pool = place.json("pool show tank");
        assert!(is_added(&pool), "{after} us: {pool}");
        assert_eq!(pool["health"], "Healthy", "{after} us: {pool}");
        let twice = place.plumb(add);
        assert!(
            twice.status != 0 && twice.stderr.contains("is a disk of the pool already"),
            "{twice:?}"
        );
        let scan = place.json("space scan tank");
        assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
        assert!(scan["blocks_verified"].as_u64().is_some_and(|blocks| blocks > 100), "{scan}");
        killed(&place, "pool remove tank --destroy tank", after);
        if place.plumb("pool list").stdout.contains("tank") {
            place.plumb("pool remove tank --destroy tank").ends_with(0);
        }
        assert_eq!(place.json("pool list")["pools"], serde_json::json!([]), "{after} us");
    }
}

/// What an add-disk leaves that is killed between its two writes: the pool's list has a disk that the pool does not have.
#[test]
fn a_disk_that_was_only_listed_is_added_or_forgotten() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
    std::fs::File::create(place.file("c.img")).expect("made").set_len(96 << 20).expect("sparse");
    let list = place.file("pools/tank.pool");
    let known = std::fs::read_to_string(&list).expect("the list");
    let disk = known.lines().find(|line| line.contains("a.img")).expect("a disk").to_owned();
    let more = format!("{known}{}\n", disk.replace("a.img", "c.img"));
    std::fs::write(&list, &more).expect("as a kill leaves it");
    place.plumb("pool add-disk tank c.img").succeeds_quietly();
    let pool = place.json("pool show tank");
    assert_eq!(pool["disks"].as_array().map(Vec::len), Some(3), "{pool}");
    assert_eq!(std::fs::read_to_string(&list).expect("the list"), more);
    // One of its own is never taken for such.
    std::fs::hard_link(place.file("a.img"), place.file("other.img")).expect("a second name");
    let twice = place.plumb("pool add-disk tank other.img --destroy other.img");
    assert!(
        twice.status != 0 && twice.stderr.contains("is a disk of the pool already"),
        "{twice:?}"
    );
    assert_eq!(place.json("pool show tank")["health"], "Healthy");
}

/// What is known of a pool besides the disks that are named stays known.
#[test]
fn a_pool_that_is_imported_again_keeps_what_is_known_of_it() {
    let place = Place::new();
    place
        .plumb("pool new tank --file-size 96M --emulate sas-10k-300 a.img b.img")
        .succeeds_quietly();
    place.plumb("pool new other --file-size 96M c.img").succeeds_quietly();
    let list = place.file("pools/tank.pool");
    let known = std::fs::read_to_string(&list).expect("the list");
    let lines =
        |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    for disks in ["a.img", "b.img", "b.img a.img"] {
        place.plumb(&format!("pool import {disks}")).succeeds_quietly();
        let now = std::fs::read_to_string(&list).expect("the list");
        assert_eq!(lines(&now), lines(&known), "{disks}");
    }
    // What is not its own is named, and nothing is changed.
    std::fs::File::create(place.file("blank.img"))
        .expect("made")
        .set_len(96 << 20)
        .expect("sparse");
    for (stray, why) in [("blank.img", "not one of pool"), ("c.img", "different pools")] {
        let refused = place.plumb(&format!("pool import a.img {stray}")).ends_with(1).stderr;
        assert!(refused.contains(why), "{refused}");
        assert_eq!(lines(&std::fs::read_to_string(&list).expect("the list")), lines(&known));
    }
    // A disk that was moved takes the place of where it was; one that is away may come back.
    std::fs::rename(place.file("b.img"), place.file("moved.img")).expect("moved");
    place.plumb("pool import a.img moved.img").succeeds_quietly();
    let now = std::fs::read_to_string(&list).expect("the list");
    assert_eq!(now, known.replace("b.img", "moved.img"));
    std::fs::rename(place.file("moved.img"), place.file("away.img")).expect("moved");
    place.plumb("pool import a.img").succeeds_quietly();
    assert_eq!(lines(&std::fs::read_to_string(&list).expect("the list")), lines(&now));
}

/// T15: a disk and its copy: both are refused by name, in whatever order they are named, until one of them is off.
#[test]
fn a_disk_beside_its_copy_is_refused_in_any_order() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img c.img").succeeds_quietly();
    let list = place.file("pools/tank.pool");
    let known = std::fs::read_to_string(&list).expect("the list");
    std::fs::copy(place.file("b.img"), place.file("copy.img")).expect("room");
    let refused = |disks: &str| {
        let said = place.plumb(&format!("pool import {disks}")).ends_with(3).stderr;
        for word in ["b.img", "copy.img", "disk 1", "nothing was changed"] {
            assert!(said.contains(word), "{disks}: {said}");
        }
        assert_eq!(std::fs::read_to_string(&list).ok().as_ref(), Some(&known), "{disks}");
    };
    for disks in
        ["a.img b.img copy.img c.img", "copy.img a.img b.img", "copy.img", "a.img copy.img"]
    {
        refused(disks);
    }
    says(&place, "pool import a.img b.img a.img", 3, &["a.img is named twice"]);
    // What a list has that somebody made is told by its status.
    let disk = known.lines().find(|line| line.contains("b.img")).expect("a disk");
    let both = format!("{known}{}\n", disk.replace("b.img", "copy.img"));
    std::fs::write(&list, both).expect("as somebody made it");
    let status = place.plumb("space status tank").stdout;
    assert!(status.contains("copy.img say") && status.contains("b.img and"), "{status}");
    std::fs::write(&list, &known).expect("as it was");
    // One of them goes, whichever it is.
    std::fs::rename(place.file("b.img"), place.file("away")).expect("off");
    place.plumb("pool import a.img copy.img").succeeds_quietly();
    assert_eq!(place.json("pool show tank")["health"], "Healthy");
}

/// A disk that hangs keeps nobody from hearing of the others. A pipe that nobody writes to stands for it: opening it never ends.
#[test]
fn the_status_does_not_wait_for_a_disk_that_hangs() {
    let place = with_disks();
    place.plumb("pool set tank --time-out 2").ends_with(0);
    std::fs::rename(place.file("c.img"), place.file("away")).expect("pulled");
    let made = std::process::Command::new("mkfifo").arg(place.file("c.img")).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is part of every system");
    // One of the virtual disks has no copies.
    let status = place.plumb("space status tank").ends_with(2).stdout;
    let line = status.lines().find(|line| line.contains("does not answer")).expect("it is told");
    assert!(line.contains("c.img") && line.contains("kernel's log"), "{status}");
    assert!(status.contains("Lost Communication") && status.contains("two: "), "{status}");
    let silent = &place.json("space status tank")["do_not_answer"];
    assert_eq!(silent.as_array().map(Vec::len), Some(1), "{silent}");
    // Who waits for disks does not wait for what is none.
    let shown = place.plumb("pool show tank");
    assert!(shown.stdout.contains("c.img") && shown.stdout.contains("a.img"), "{shown:?}");
    std::fs::rename(place.file("away"), place.file("c.img")).expect("put back");
    place.plumb("space status tank").ends_with(0);
}

/// T15: the file system below a pool's files is full. Requests fail with a word, nothing that was acknowledged is lost,
/// and with room again the pool goes on.
#[test]
fn a_full_file_system_below_a_pool_fails_requests_and_loses_nothing() {
    let place = Place::new();
    let Some(_mount) = Tmpfs::mount(&place.file("small"), 40 << 20) else {
        println!(
            "skipped a_full_file_system_below_a_pool_fails_requests_and_loses_nothing: only root mounts"
        );
        return;
    };
    place.plumb("pool new tank --file-size 96M small/a.img small/b.img").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 32M --resiliency mirror2").succeeds_quietly();
    // A part fits.
    place
        .plumb("run -b64K -s -w100 -f4M -o4 -t1 -d1 -W0 --verify crc32c space:tank/two")
        .ends_with(0);
    let full = place.plumb("run -b64K -s -w100 -o4 -t1 -d5 -W0 space:tank/two");
    assert!(full.status != 0 && full.stderr.contains("error"), "{full:?}");
    let status = place.plumb("space status tank").stdout;
    assert!(status.contains("is full: what is written there fails"), "{status}");
    let made = place.plumb("vdisk new tank/more --size 16M");
    assert!(made.status == 1 && made.stderr.contains("is full"), "{made:?}");
    assert!(made.stderr.contains("make room there"), "{made:?}");
    // Room again, by whatever means.
    let remount = std::process::Command::new("mount")
        .args(["-o", "remount,size=300M"])
        .arg(place.file("small"))
        .status();
    assert!(remount.is_ok_and(|status| status.success()), "root may");
    place.plumb("space job tank --wait").ends_with(0);
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 --verify crc32c space:tank/two").ends_with(0);
    // The disk that was needed did not take writes: that is told until somebody says that it does (0205).
    let status = place.plumb("space status tank").ends_with(1).stdout;
    let failed: Vec<&str> = status.lines().filter(|line| line.contains("IO Error")).collect();
    assert!(
        !failed.is_empty() && failed.iter().all(|line| line.contains("space clear")),
        "{status}"
    );
    for disk in ["small/a.img", "small/b.img"] {
        place.plumb(&format!("space clear tank {disk}")).ends_with(0);
    }
    place.plumb("space status tank").ends_with(0);
}

/// Under a verified load a disk fails, returns, fails again and is given up: what it held is made anew on another one,
/// and the load goes on all the time.
#[test]
fn a_disk_fails_returns_and_is_rebuilt_under_load() {
    let place = with_disks();
    place.plumb("vdisk rm tank/one").succeeds_quietly();
    place.plumb("vdisk rm tank/three").succeeds_quietly();
    let line = "run -b4K -r -w50 -o4 -t1 -d120 -W0 -D500 --verify crc32c --json space:tank/two";
    let mut load = place.command(line);
    load.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let load = load.spawn().expect("it starts");
    let began = std::time::Instant::now();
    let until = |word: &str, times: usize| {
        while events(&place).iter().filter(|event| *event == word).count() < times {
            assert!(began.elapsed().as_secs() < 100, "no {word}: {:?}", events(&place));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    while place.json("space perf tank")["running"] != true {
        assert!(began.elapsed().as_secs() < 60, "it never runs");
    }
    // One that holds a copy.
    let disk = place.json("vdisk show tank/two")["tiers"][0]["disks"][0].clone();
    let disk = disk.as_str().expect("a path");
    place.plumb(&format!("space offline tank {disk}")).succeeds_quietly();
    until("disk-lost", 1);
    place.plumb(&format!("space online tank {disk}")).succeeds_quietly();
    until("disk-back", 1);
    place.plumb(&format!("space offline tank {disk}")).succeeds_quietly();
    until("disk-lost", 2);
    place.plumb(&format!("pool remove-disk tank {disk} --later")).succeeds_quietly();
    until("slab-moves", 1);
    until("disk-up-to-date", 1);
    std::thread::sleep(std::time::Duration::from_millis(1200));
    kill_process(Pid::from_child(&load), Signal::INT).expect("it runs");
    let output = load.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let space = &result["spaces"][0];
    assert_eq!((&space["mismatches"], &space["unrecoverable"]), (&0.into(), &0.into()), "{space}");
    assert_eq!(space["disks_lost"], 2, "{space}");
    let series = result["time_spans"][0]["intervals"]["series"].as_array().expect("intervals");
    let ios = |one: &serde_json::Value| one["total"]["io_count"].as_u64().unwrap_or(0);
    assert!(series.len() > 2 && series.iter().rev().take(2).any(|one| ios(one) > 0), "{series:?}");
    place.plumb("space job tank --wait").ends_with(0);
    place.plumb("space status tank").ends_with(0);
    assert_eq!(place.json("pool show tank")["disks"].as_array().map(Vec::len), Some(2));
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
}

/// 0270: the word on an end that cannot be read names its pool, and costs one that can be read nothing.
#[test]
fn a_word_on_an_end_that_cannot_be_read_names_its_pool() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 16M --resiliency mirror2").succeeds_quietly();
    let load = |writes: &str| {
        format!(
            "run --verify=crc32c --verify-state state -b64K -s -o4 -t1 -d1 -W0 {writes} space:tank/two"
        )
    };
    place.plumb(&load("-w100")).ends_with(0);
    let before = head(&place.file("a.img"));
    let words = ["--unread-end names other, and the pool is tank", "--unread-end tank"];
    says(&place, "space repair tank --unread-end other", 3, &words);
    let both = "space repair tank --unread-end tank --without-quorum tank";
    says(&place, both, 2, &["--unread-end", "--without-quorum"]);
    assert!(head(&place.file("a.img")) == before, "it was written to");
    place.plumb("space repair tank --unread-end tank").ends_with(0);
    place.plumb(&load("-w0")).ends_with(0);
}

/// 0195: disks that the pool went on without are older than it: the operator's name for the pool is not word enough.
#[test]
fn disks_that_the_pool_went_on_without_need_a_second_word() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 16M --resiliency mirror2").succeeds_quietly();
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 space:tank/two").ends_with(0);
    let [one, other] = ["a.img", "b.img"].map(|name| place.file(name));
    let kept = place.file("kept");
    std::fs::copy(&other, &kept).expect("room");
    // Both had all of it: one of them is started by its name.
    std::fs::rename(&one, place.file("a.away")).expect("lost");
    place.plumb("space repair tank --without-quorum tank").ends_with(0);
    std::fs::rename(place.file("a.away"), &one).expect("back");
    std::fs::rename(&kept, &other).expect("as it was");
    std::fs::remove_file(place.file("pools/tank.findings")).expect("noted");
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 space:tank/two").ends_with(0);
    // One of them fails, and the pool goes on without it.
    let mut load = place.command("run -b4K -r -w100 -o4 -t1 -d60 -W0 space:tank/two");
    load.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut load = load.spawn().expect("it starts");
    let began = std::time::Instant::now();
    while place.json("space perf tank")["running"] != true {
        assert!(began.elapsed().as_secs() < 60, "it never runs");
    }
    place.plumb("space offline tank b.img").succeeds_quietly();
    while !events(&place).iter().any(|event| event == "disk-lost") {
        assert!(began.elapsed().as_secs() < 60, "{:?}", events(&place));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    load.kill().expect("it is ours");
    load.wait().expect("it ends");
    // The one that has everything is lost.
    std::fs::rename(&one, place.file("a.away")).expect("lost");
    let before = head(&other);
    says(&place, "space repair tank --accept-older", 2, &["--without-quorum"]);
    let words = ["went on without", "zeros", "a.img, which had the journal last", "--accept-older"];
    says(&place, "space repair tank --without-quorum tank", 3, &words);
    // What is here is told to be older, and no load reads it unasked (section 18, 0348).
    let status = place.json("space status tank");
    assert_eq!(status["disks"][1]["operational_status"], "Stale Metadata", "{status}");
    let cause = status["cause"].as_str().unwrap_or_default();
    assert!(cause.contains("went on without") && cause.contains("current"), "{status}");
    let action = status["action"].as_str().unwrap_or_default();
    assert!(action.contains("plumb run --accept-older"), "{status}");
    let read = "run -b4K -r -w0 -o4 -t1 -d1 -W0 space:tank/two";
    let words = [
        "pool tank went on without the disks that are here, on 20",
        "no copy that is here is known to be current",
        "1 of 2 voting disks",
        "a.img, which had the journal last",
        "--accept-older",
    ];
    says(&place, read, 3, &words);
    assert_eq!(events(&place).last().map(String::as_str), Some("start-refused"));
    // By the operator's word it is, and stays as it is; nobody writes to it by that word.
    let accepted = read.replace("-W0", "-W0 --accept-older");
    let said = place.plumb(&accepted).ends_with(0).stderr;
    assert!(said.contains("is older than what it took since"), "{said}");
    assert!(events(&place).iter().any(|event| event == "read-only"), "{:?}", events(&place));
    let write = "run -b4K -r -w50 -o4 -t1 -d1 -W0 --accept-older space:tank/two";
    says(&place, write, 1, &["1 of 2 voting disks"]);
    assert!(head(&other) == before, "it was written to");
    // A machine that does not know it does not know how old it is.
    let noted = place.file("pools/tank.findings");
    std::fs::rename(&noted, place.file("noted")).expect("forgotten");
    let words = ["nobody can tell", "--accept-older"];
    says(&place, "space repair tank --without-quorum tank", 3, &words);
    // Without a note of anything newer it is read as it is.
    says(&place, read, 0, &["it is read as they hold it"]);
    std::fs::rename(place.file("noted"), &noted).expect("found");
    // Who is lost and lacks what is written from now on is waited for.
    place.plumb("space repair tank --without-quorum tank --accept-older").ends_with(5);
    place.plumb("run -b4K -r -w50 -o4 -t1 -d1 -W0 --verify crc32c space:tank/two").ends_with(0);
}
