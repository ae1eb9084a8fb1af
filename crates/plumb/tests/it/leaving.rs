//! Disks that leave pools: which one is meant, and what is left of them.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::spaces::{Place, events, with_disks};

/// Whether a disk says that it belongs to a pool.
fn is_marked(disk: &Path) -> bool {
    let bytes = std::fs::read(disk).expect("it is there");
    bytes.chunks(4096).any(|page| page.starts_with(b"PLUMBSB1"))
}

/// With room for what one of three disks holds.
fn of_two_copies() -> Place {
    let place = Place::new();
    place.plumb("pool new tank --file-size 192M a.img b.img c.img").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 16M --resiliency mirror2").succeeds_quietly();
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 space:tank/two").ends_with(0);
    place
}

/// LAY-8: a disk is what its superblock says. Where two have changed places, a path names the one that is there.
#[test]
fn of_disks_that_changed_places_the_one_that_is_there_leaves() {
    let place = of_two_copies();
    let [a, b, c] = ["a.img", "b.img", "c.img"].map(|name| place.file(name));
    std::fs::rename(&a, place.file("aside")).expect("renamed");
    std::fs::rename(&b, &a).expect("renamed");
    std::fs::rename(place.file("aside"), &b).expect("renamed");
    let shown = place.plumb("pool show tank").ends_with(0).stdout;
    assert_eq!(shown.matches("(now at ").count(), 2, "{shown}");
    place.plumb("pool remove-disk tank a.img").succeeds_quietly();
    assert_eq!([&a, &b, &c].map(|disk| is_marked(disk)), [false, true, true]);
    let pool = place.json("pool show tank");
    let paths: Vec<&str> = pool["disks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|disk| disk["path"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(paths.len(), 2, "{pool}");
    assert!(!paths.iter().any(|path| path.ends_with("a.img")), "{paths:?}");
    assert_eq!(place.json("space scan tank")["mismatches"], 0);
    place.plumb("space status tank").ends_with(0);
}

fn under_load(place: &Place, vdisk: &str) -> Child {
    started(place, &format!("run -b4K -r -w50 -o4 -t1 -d60 -W0 --verify crc32c space:tank/{vdisk}"))
}

fn started(place: &Place, line: &str) -> Child {
    let mut load = place.command(line);
    let load = load.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let began = Instant::now();
    while place.json("space perf tank")["running"] != true {
        assert!(began.elapsed().as_secs() < 60, "it never runs");
    }
    load
}

fn until(place: &Place, word: &str) {
    let began = Instant::now();
    while !events(place).iter().any(|event| event == word) {
        assert!(began.elapsed().as_secs() < 60, "no {word}: {:?}", events(place));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn end(mut load: Child) {
    kill_process(Pid::from_child(&load), Signal::INT).expect("it runs");
    assert!(load.wait().expect("it ends").success());
}

/// A disk that leaves under load is free when the load is over, and nobody looks for it any more.
#[test]
fn a_disk_that_left_under_load_is_blank() {
    let place = of_two_copies();
    let load = under_load(&place, "two");
    let said = place.plumb("pool remove-disk tank c.img --later").ends_with(0).stdout;
    assert!(said.contains("space events tank"), "{said}");
    until(&place, "disk-removed");
    end(load);
    assert!(!is_marked(&place.file("c.img")));
    let listed = std::fs::read_to_string(place.file("pools/tank.pool")).expect("a list");
    assert!(listed.contains("a.img") && !listed.contains("c.img"), "{listed}");
    place.plumb("space status tank").ends_with(0);
    place.plumb("pool new other c.img").succeeds_quietly();
}

/// What a pool wrote to a file goes when that leaves it: who takes it in again is not asked whether that may be lost.
#[test]
fn a_file_that_left_is_taken_again_without_a_word() {
    use std::os::unix::fs::MetadataExt;
    let place = of_two_copies();
    let c = place.file("c.img");
    let before = std::fs::metadata(&c).expect("it is there");
    for _ in 0..2 {
        place.plumb("pool remove-disk tank c.img").succeeds_quietly();
        let after = std::fs::metadata(&c).expect("it is there");
        assert_eq!(after.len(), before.len());
        assert_eq!(after.blocks(), 0, "all of it is a hole");
        place.plumb("pool add-disk tank c.img").succeeds_quietly();
    }
    place.plumb("run -b64K -s -w50 -o4 -t1 -d1 -W0 --verify crc32c space:tank/two").ends_with(0);
    place.plumb("space status tank").ends_with(0);
    // What somebody else puts there is his.
    place.plumb("pool remove-disk tank c.img").succeeds_quietly();
    std::fs::write(&c, vec![7; 1 << 20]).expect("made");
    let refused = place.plumb("pool add-disk tank c.img").ends_with(3).stderr;
    assert!(refused.contains("holds data") && refused.contains("--destroy"), "{refused}");
    assert_eq!(std::fs::read(&c).expect("it is there"), vec![7; 1 << 20]);
}

/// A disk that is to leave can stay after all, also of a pool in use.
#[test]
fn a_disk_may_stay_after_all_under_load() {
    let place = of_two_copies();
    let load = under_load(&place, "two");
    let said = place.plumb("pool remove-disk tank c.img --cancel").ends_with(0).stdout;
    assert!(said.contains("asked to let disk ") && said.contains("c.img stay"), "{said}");
    until(&place, "disk-stays");
    // One that is out by now cannot.
    place.plumb("pool remove-disk tank c.img --later").ends_with(0);
    until(&place, "disk-removed");
    let refused = place.plumb("pool remove-disk tank c.img --cancel").ends_with(1).stderr;
    assert!(refused.contains("c.img"), "{refused}");
    end(load);
}

/// What cannot be is told, and nothing changes.
#[test]
fn a_disk_that_cannot_leave_under_load_is_told() {
    let place = with_disks();
    let load = under_load(&place, "three");
    place.plumb("pool remove-disk tank c.img --later").ends_with(0);
    until(&place, "disk-cannot-leave");
    end(load);
    assert!(is_marked(&place.file("c.img")));
    place.plumb("space status tank").ends_with(0);
}

/// A pool in use is scanned by the program that has it.
#[test]
fn a_pool_in_use_is_scanned_when_asked() {
    let place = of_two_copies();
    let quiet = place.json("space scan tank");
    assert_eq!(quiet["beside_another_program"], false, "{quiet}");
    let disk = place.json("vdisk show tank/two")["tiers"][0]["disks"][0].clone();
    // Reads only: whatever is healed, the scan met it.
    let line = "run -b4K -r -w0 -o1 -t1 -g50 -f64K -d60 -W0 space:tank/two";
    let load = started(&place, line);
    for nth in 0..2 {
        let scan = place.json("space scan tank");
        assert_eq!(scan["beside_another_program"], true, "{scan}");
        let blocks = |scan: &serde_json::Value| scan["blocks_verified"].as_u64().unwrap_or(0);
        assert!(blocks(&scan) >= blocks(&quiet), "all of it: {scan} {quiet}");
        assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
        let told = events(&place).iter().filter(|event| *event == "scanned").count();
        assert_eq!(told, nth + 2, "{:?}", events(&place));
    }
    crate::spaces::rot(Path::new(disk.as_str().expect("a name")));
    let said = place.plumb("scan tank").ends_with(0).stdout;
    assert!(said.contains("the program that has it scanned"), "{said}");
    assert!(!said.contains(" 0 healed") && said.contains(" 0 without a good copy"), "{said}");
    end(load);
    // One that is over before the scan is: said, and not taken for a result.
    let load = started(&place, &line.replace("-d60", "-d10"));
    let mut scan = place.command("space scan tank");
    let scan = scan.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut load = load;
    load.wait().expect("it ends");
    let scan = scan.wait_with_output().expect("it ends");
    assert!([Some(0), Some(1)].contains(&scan.status.code()), "{scan:?}");
    place.plumb("space scan tank").ends_with(0);
}

/// Who has a pool for something else does not scan it for others.
#[test]
fn a_program_that_does_not_scan_for_others_is_told() {
    let place = of_two_copies();
    // The demonstration of a program that has the disks and takes no wishes.
    let disk = std::fs::File::options().write(true).open(place.file("a.img")).expect("it is there");
    rustix::fs::flock(&disk, rustix::fs::FlockOperation::LockExclusive).expect("nobody has it");
    let said = place.plumb("space scan tank");
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.stderr.contains("does not scan when asked"), "{said:?}");
    assert!(!std::fs::exists(place.file("pools/tank.asks")).expect("known"), "taken back");
    drop(disk);
    place.plumb("space scan tank").ends_with(0);
}

/// What cannot be replaced for lack of room is known before the new disk is one of the pool's, or loses anything.
#[test]
fn a_disk_that_is_too_small_to_replace_another_is_left_alone() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 192M a.img b.img").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 96M --resiliency mirror2").succeeds_quietly();
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 space:tank/two").ends_with(0);
    std::fs::write(place.file("d.img"), vec![7; 96 << 20]).expect("somebody's");
    let before = std::fs::read_to_string(place.file("pools/tank.pool")).expect("a list");
    let line = "pool replace-disk tank a.img d.img --destroy d.img";
    let refused = place.plumb(line).ends_with(3).stderr;
    assert!(
        refused.contains("holds 6 slabs") && refused.contains("nothing was changed"),
        "{refused}"
    );
    assert_eq!(std::fs::read(place.file("d.img")).expect("it is there"), vec![7; 96 << 20]);
    let after = std::fs::read_to_string(place.file("pools/tank.pool")).expect("a list");
    assert_eq!(after, before);
    assert_eq!(place.json("pool show tank")["disks"].as_array().map(Vec::len), Some(2));
    std::fs::File::create(place.file("e.img")).expect("made").set_len(192 << 20).expect("sparse");
    // As one that is killed between its two steps leaves it.
    place.plumb("pool add-disk tank e.img").succeeds_quietly();
    place.plumb("pool replace-disk tank a.img e.img").succeeds_quietly();
    assert!(!is_marked(&place.file("a.img")));
    place.plumb("space status tank").ends_with(0);
    assert_eq!(place.json("space scan tank")["unrecoverable"], 0);
}

/// What only a start knows stands against it: the new disk is not brought in.
#[test]
fn a_disk_that_cannot_be_replaced_leaves_the_new_one_out() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img c.img").succeeds_quietly();
    place.plumb("vdisk new tank/one --size 48M --resiliency simple --columns 3").succeeds_quietly();
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 space:tank/one").ends_with(0);
    std::fs::rename(place.file("a.img"), place.file("a.away")).expect("pulled");
    std::fs::File::create(place.file("d.img")).expect("made").set_len(96 << 20).expect("sparse");
    let refused = place.plumb("pool replace-disk tank a.img d.img").ends_with(3).stderr;
    assert!(refused.contains("no other copy") && refused.contains("connect it first"), "{refused}");
    assert_eq!(place.json("pool show tank")["disks"].as_array().map(Vec::len), Some(3));
    assert!(!is_marked(&place.file("d.img")));
    let listed = std::fs::read_to_string(place.file("pools/tank.pool")).expect("a list");
    assert!(!listed.contains("d.img"), "{listed}");
    std::fs::rename(place.file("a.away"), place.file("a.img")).expect("back");
    place.plumb("space job tank --wait").ends_with(0);
    place.plumb("run -b64K -s -w0 -o4 -t1 -d1 -W0 space:tank/one").ends_with(0);
    place.plumb("pool new other d.img").succeeds_quietly();
}

/// How far a rebuild is can be asked while a load has the pool, and waited for.
#[test]
fn work_under_load_is_told_and_waited_for() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 192M a.img b.img c.img").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 96M --resiliency mirror2").succeeds_quietly();
    place.plumb("run -b64K -s -w100 -o4 -t1 -d2 -W0 space:tank/two").ends_with(0);
    let load = under_load(&place, "two");
    let idle = place.json("space job tank");
    assert_eq!((&idle["beside_another_program"], &idle["bytes_left"]), (&true.into(), &0.into()));
    let said = place.plumb("space job tank").ends_with(0).stdout;
    assert!(said.contains("pool tank: in use; "), "{said}");
    place.plumb("pool remove-disk tank c.img --later").ends_with(0);
    let began = Instant::now();
    // It is told from the moment that it has begun.
    let told = loop {
        let told = place.json("space job tank");
        let gone = events(&place).iter().any(|event| event == "disk-removed");
        // With its last extent on the way nothing may be left of it.
        let begun = told["jobs"].as_array().is_some_and(|jobs| !jobs.is_empty());
        if gone || begun && told["bytes_left"] != 0 {
            break (!gone).then_some(told);
        }
        assert!(began.elapsed().as_secs() < 60, "{told}");
    };
    if let Some(told) = told {
        assert_eq!(
            (&told["jobs"][0]["kind"], &told["jobs"][0]["disk"]),
            (&"empty".into(), &2.into())
        );
        assert!(told["bytes_left"].as_u64() > Some(0) && told["goes_on"] == true, "{told}");
    }
    let done = place.plumb("space job tank --wait").ends_with(0).stdout;
    assert!(done.contains(" 0 to go"), "{done}");
    // What waits for a disk is not waited for.
    place.plumb("space offline tank a.img").ends_with(0);
    until(&place, "disk-lost");
    std::thread::sleep(Duration::from_millis(500));
    let waits = place.plumb("space job tank --wait").ends_with(5).stdout;
    assert!(waits.contains("waits for that disk"), "{waits}");
    place.plumb("space online tank a.img").ends_with(0);
    until(&place, "disk-back");
    place.plumb("space job tank --wait").ends_with(0);
    end(load);
    let after = place.json("space job tank");
    assert_eq!(after["beside_another_program"], false, "{after}");
}

/// A pool that no start accepts takes no disk, and what that held is still there.
#[test]
fn a_disk_for_a_pool_that_does_not_start_keeps_what_it_holds() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
    std::fs::rename(place.file("a.img"), place.file("a.away")).expect("pulled");
    std::fs::write(place.file("my d.img"), vec![7; 96 << 20]).expect("somebody's");
    let add = |words: &[&str]| {
        let mut command = place.command("pool add-disk tank");
        crate::program::outcome(command.arg("my d.img").args(words))
    };
    let refused = add(&["--destroy", "my d.img"]).ends_with(1).stderr;
    assert!(refused.contains("1 of 2 voting disks"), "{refused}");
    assert_eq!(std::fs::read(place.file("my d.img")).expect("it is there"), vec![7; 96 << 20]);
    let listed = std::fs::read_to_string(place.file("pools/tank.pool")).expect("a list");
    assert!(!listed.contains("d.img"), "{listed}");
    std::fs::rename(place.file("a.away"), place.file("a.img")).expect("back");
    // What is to be typed is one word for a shell.
    let refused = add(&[]).ends_with(3).stderr;
    assert!(refused.contains("--destroy 'my d.img'"), "{refused}");
    add(&["--destroy", "my d.img"]).succeeds_quietly();
}
