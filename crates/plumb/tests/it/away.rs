//! Disks that are away: what scans, status, jobs and repairs say of what only these have, and that it can be done something
//! about (RES-8, section 15, section 18 of the tiering specification).

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::health::fill_whole;
use crate::spaces::{Place, events};

/// Five disks, so that two may be away, and a virtual disk that is written.
fn written(vdisk: &str) -> Place {
    let place = Place::new();
    let disks = "a.img b.img c.img d.img e.img";
    place.plumb(&format!("pool new tank --file-size 96M {disks}")).succeeds_quietly();
    place.plumb(&format!("vdisk new tank/v {vdisk}")).succeeds_quietly();
    fill_whole(&place, "tank/v");
    place
}

const MIRROR: &str = "--size 16M --resiliency mirror2 --columns 1";

/// The disks of its first tier.
fn disks_of(place: &Place) -> Vec<PathBuf> {
    let shown = place.json("vdisk show tank/v");
    let disks = shown["tiers"][0]["disks"].as_array().expect("a list").clone();
    disks.iter().map(|disk| disk.as_str().expect("a name").into()).collect()
}

fn pull(disk: &Path) {
    std::fs::rename(disk, disk.with_extension("away")).expect("pulled");
}

fn put_back(disk: &Path) {
    std::fs::rename(disk.with_extension("away"), disk).expect("put back");
}

/// What status says of the virtual disk.
fn vdisk(place: &Place) -> Value {
    place.json("space status tank")["vdisks"][0].clone()
}

/// Status and scan agree that so many bytes cannot be read now, that these are not lost, and on what to do.
fn cannot_read(place: &Place, bytes: u64) {
    for _ in 0..2 {
        let said = place.plumb("space status tank").ends_with(2).stdout;
        assert!(said.contains("No Redundancy") && said.contains("no copy"), "{said}");
        assert!(said.contains("connect the missing disks"), "{said}");
        assert!(!said.contains("write what they held anew"), "{said}");
        let own = vdisk(place);
        assert_eq!(own["unreadable_bytes"], bytes, "{own}");
        let ranges = own["unreadable_ranges"].as_array().expect("a list");
        let listed: u64 = ranges.iter().filter_map(|range| range["bytes"].as_u64()).sum();
        assert_eq!(listed, bytes, "{own}");
        let first = ranges[0]["offset_bytes"].as_u64().expect("a number");
        assert!(said.contains(&format!("bytes {first} to ")), "{said}");
        let scan = place.json("space scan tank");
        assert_eq!(
            (&scan["unreadable"], &scan["unrecoverable"]),
            (&(bytes / 4096).into(), &0.into()),
            "{scan}"
        );
        let scan = place.plumb("space scan tank").ends_with(2).stdout;
        assert!(scan.contains("cannot be read while disks are away"), "{scan}");
        for command in ["space job tank --wait", "space repair tank"] {
            let said = place.plumb(command).ends_with(5).stdout;
            assert!(said.contains("cannot be read, for disks are away: connect them"), "{said}");
            let told = place.plumb(&format!("{command} --json")).ends_with(5).stdout;
            let told: Value = serde_json::from_str(&told).expect("a document");
            assert_eq!(told["unreadable"][0]["bytes"], bytes, "{told}");
        }
    }
    let told = events(place);
    assert_eq!(told.iter().filter(|event| *event == "scanned-in-part").count(), 4, "{told:?}");
    assert!(!told.iter().any(|event| event == "scanned"), "{told:?}");
}

/// All is there, and a scan has read it.
fn is_well(place: &Place) {
    place.plumb("space job tank --wait").ends_with(0);
    place.plumb("space scan tank").ends_with(0);
    place.plumb("space status tank").ends_with(0);
    assert_eq!(vdisk(place)["unreadable_bytes"], 0);
    assert!(events(place).iter().any(|event| event == "scanned"));
}

/// RES-8, HLT-5, section 18: a disk of a simple space is away.
#[test]
fn what_only_a_disk_that_is_away_has_is_neither_good_nor_lost() {
    let place = written("--size 32M --resiliency simple --columns 1");
    let disk = disks_of(&place)[0].clone();
    pull(&disk);
    cannot_read(&place, 16 << 20);
    put_back(&disk);
    is_well(&place);
}

/// The same of a mirror, both disks of a row away at once.
#[test]
fn what_only_disks_that_are_away_have_is_neither_good_nor_lost() {
    let place = written(MIRROR);
    let disks = disks_of(&place);
    disks.iter().for_each(|disk| pull(disk));
    cannot_read(&place, 16 << 20);
    disks.iter().for_each(|disk| put_back(disk));
    is_well(&place);
}

/// The one disk is here and out of date, the other one away: none of its blocks has two copies, nor one.
#[test]
fn what_is_out_of_date_here_and_good_on_a_disk_that_is_away_is_told_as_such() {
    let place = written(MIRROR);
    let [one, other]: [PathBuf; 2] = disks_of(&place).try_into().expect("two");
    pull(&one);
    fill_whole(&place, "tank/v");
    put_back(&one);
    pull(&other);
    let said = place.plumb("space status tank").ends_with(2).stdout;
    assert!(said.contains("No Redundancy"), "before any start: {said}");
    let read = "run -b64K -s -w0 -o1 -t1 -d1 -W0 --on-error continue space:tank/v";
    let told = place.plumb(read).stderr;
    assert!(told.contains("failed"), "{told}");
    cannot_read(&place, 16 << 20);
    assert!(!events(&place).iter().any(|event| event == "unrecoverable"));
    put_back(&other);
    is_well(&place);
    place.plumb("run -b64K -s -w0 -o1 -t1 -d1 -W0 space:tank/v").ends_with(0);
}

/// What a disk that is away lacks is left to do, and waits for it.
#[test]
fn work_that_waits_for_a_disk_is_told_and_is_not_done() {
    let place = written(MIRROR);
    let disk = disks_of(&place)[0].clone();
    pull(&disk);
    fill_whole(&place, "tank/v");
    for line in ["space job tank --wait", "space repair tank"] {
        let said = place.plumb(line).ends_with(5).stdout;
        assert!(said.contains("waits for that disk: connect it"), "{said}");
        let job = place.json(line);
        assert_eq!(job["bytes_left"], 16 << 20, "{job}");
        assert_eq!(
            (&job["jobs"][0]["kind"], &job["jobs"][0]["waits_for"], &job["expected_s"]),
            (&"resync".into(), &"disk".into(), &Value::Null),
            "{job}"
        );
    }
    put_back(&disk);
    is_well(&place);
}

/// What was given up without room for it elsewhere: everybody says so, and that a disk is to be added.
#[test]
fn work_that_waits_for_room_is_told_from_what_waits_for_a_disk() {
    let place = Place::new();
    let disks = "--ssd a.img --ssd b.img --hdd c.img --hdd d.img";
    place.plumb(&format!("pool new tank --file-size 96M {disks}")).succeeds_quietly();
    let two = "--ssd-tier 16M --hdd-tier 16M --resiliency mirror2 --write-cache 0";
    place.plumb(&format!("vdisk new tank/v {two}")).succeeds_quietly();
    fill_whole(&place, "tank/v");
    std::fs::remove_file(place.file("a.img")).expect("gone");
    let said = place.plumb("space repair tank --give-up-missing").ends_with(5).stdout;
    assert!(said.contains("waits for room") && said.contains("plumb pool add-disk"), "{said}");
    let job = place.json("space job tank");
    assert_eq!(job["jobs"][0]["waits_for"], "room", "{job}");
    let said = place.plumb("space status tank").ends_with(1).stdout;
    let lines: Vec<&str> =
        said.lines().filter(|line| line.contains("plumb pool add-disk")).collect();
    assert_eq!(lines.len(), 2, "the disk and the virtual disk: {said}");
    assert!(!said.contains("connect"), "{said}");
    std::fs::File::create(place.file("e.img")).expect("made").set_len(96 << 20).expect("sparse");
    place.plumb("pool add-disk tank e.img --media ssd").succeeds_quietly();
    place.plumb("space job tank --wait").ends_with(0);
    assert_eq!(vdisk(&place)["health"], "Healthy");
    place.plumb("space scan tank").ends_with(0);
}

/// LAY-8: without a majority of disks that are what they were, status says which are not, and what it says works.
#[test]
fn older_copies_of_disks_are_told_as_such_and_a_word_goes_on_without_them() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img c.img d.img").succeeds_quietly();
    place.plumb("vdisk new tank/v --size 16M --resiliency mirror2 --columns 1").succeeds_quietly();
    let older = ["c.img", "d.img"].map(|name| place.file(name));
    let kept = older.clone().map(|disk| std::fs::read(disk).expect("read"));
    fill_whole(&place, "tank/v");
    older
        .iter()
        .zip(&kept)
        .for_each(|(disk, bytes)| std::fs::write(disk, bytes).expect("put back"));
    let refused = place.plumb("space job tank").ends_with(1).stderr;
    assert!(refused.contains("older copy"), "{refused}");
    let told = place.json("space events tank --last 1");
    assert_eq!(told["events"][0]["event"], "start-refused", "{told}");
    let said = place.plumb("space status tank").ends_with(3).stdout;
    assert_eq!(said.matches("Stale Metadata").count(), 2, "{said}");
    assert!(!said.contains("Lost Communication"), "{said}");
    assert!(said.contains("plumb space repair --without-quorum"), "{said}");
    let standing = place.json("pool show tank")["disks"][2]["standing"].clone();
    assert_eq!(standing, "outdated");
    place.plumb("space repair tank --without-quorum tank").ends_with(0);
    place.plumb("space status tank").ends_with(0);
}

/// What a command that was killed leaves of a file for a disk is taken again; what a pool began on it is called that.
#[test]
fn a_file_that_a_killed_command_had_wiped_is_taken_again() {
    let place = Place::new();
    for name in ["a.img", "b.img"] {
        let file = std::fs::File::create(place.file(name)).expect("made");
        file.set_len(96 << 20).expect("sparse");
        for at in [0, 95 << 20] {
            file.write_all_at(&vec![0; 1 << 20], at).expect("as a disk is wiped");
        }
    }
    place.plumb("pool new tank --file-size 96M a.img b.img c.img d.img").succeeds_quietly();
    place.plumb("pool remove tank --destroy tank").succeeds_quietly();
    // The last one has a configuration, and neither journal nor map.
    for name in ["a.img", "d.img"] {
        let refused = place.plumb(&format!("pool new other {name}")).ends_with(3).stderr;
        assert!(refused.contains("what Plumb wrote for a pool"), "{refused}");
        assert!(refused.contains(&format!("--destroy {name}")), "{refused}");
    }
    std::fs::write(place.file("x.img"), vec![7; 1 << 20]).expect("somebody's");
    let refused = place.plumb("pool new other x.img").ends_with(3).stderr;
    assert!(refused.contains("did not write") && refused.contains("--destroy x.img"), "{refused}");
    let refused = place.plumb("pool import a.img d.img x.img").ends_with(1).stderr;
    assert!(refused.contains("none of the 3 devices"), "{refused}");
}

/// A list that lacks one of its pools is no success, and says what can be said of the others.
#[test]
fn lists_tell_of_a_pool_that_cannot_be_told_and_of_all_others() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
    place.plumb("vdisk new tank/v --size 16M").succeeds_quietly();
    let lines = ["pool list", "pool show", "vdisk list"];
    lines.iter().for_each(|line| drop(place.plumb(line).ends_with(0)));
    // One whose entry is damaged, and one whose disks are not there.
    std::fs::write(place.file("pools/atorn.pool"), "plumb-po").expect("written");
    place.plumb("pool new blank --file-size 96M c.img").succeeds_quietly();
    std::fs::rename(place.file("c.img"), place.file("c.away")).expect("pulled");
    for line in lines {
        let said = place.plumb(line).ends_with(3).stdout;
        assert!(said.contains("atorn: Unknown: ") && said.contains("blank: Unknown: "), "{said}");
        assert!(said.contains("tank"), "{line}: {said}");
        let all = place.plumb(&format!("{line} --json")).ends_with(3).stdout;
        let all: Value = serde_json::from_str(&all).expect("JSON");
        let key = if line == "vdisk list" { "untold_pools" } else { "pools" };
        let why: Vec<&str> = all[key]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|pool| pool["health"] == "Unknown")
            .filter_map(|pool| pool["error"].as_str())
            .collect();
        assert_eq!(why.len(), 2, "{all}");
    }
    let vdisks = place.plumb("vdisk list --json").stdout;
    let vdisks: Value = serde_json::from_str(&vdisks).expect("JSON");
    assert_eq!(vdisks["vdisks"][0]["name"], "v");
    place.plumb("vdisk list tank").ends_with(0);
    place.plumb("vdisk list atorn").ends_with(1);
}

/// A disk that was given up and is here again is taken back by the next start: what is said of it is that, and it helps.
#[test]
fn a_disk_that_was_given_up_and_is_back_is_told_as_such() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img c.img").succeeds_quietly();
    place.plumb("vdisk new tank/v --size 48M --resiliency mirror3 --columns 1").succeeds_quietly();
    fill_whole(&place, "tank/v");
    let disk = place.file("a.img");
    pull(&disk);
    place.plumb("space repair tank --give-up-missing").ends_with(5);
    let said = place.plumb("space status tank").ends_with(1).stdout;
    assert!(said.contains("it was given up") && said.contains("plumb pool add-disk"), "{said}");
    put_back(&disk);
    let said = place.plumb("space status tank").ends_with(1).stdout;
    assert!(!said.contains("given up") && !said.contains("add-disk"), "{said}");
    assert!(said.contains("is here again") && said.contains("space job --wait"), "{said}");
    let pool = place.json("space status tank");
    assert_eq!(pool["disks"][0]["standing"], "returning", "{pool}");
    place.plumb("space job tank --wait").ends_with(0);
    place.plumb("space status tank").ends_with(0);
    place.plumb("space scan tank").ends_with(0);
}
