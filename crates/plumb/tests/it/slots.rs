//! Disks in the place of others: one that was in the slot before is gone, or is in another one now (HLT-3, RES-4).

use serde_json::Value;

use crate::spaces::{Place, events, with_disks};

const LOAD: &str = "run -b64K -s -w100 -o4 -t1 -d1 -W0 --verify crc32c space:tank/two";

/// A pool of three disks with a mirror that was written.
fn loaded() -> Place {
    let place = with_disks();
    for vdisk in ["one", "three"] {
        place.plumb(&format!("vdisk rm tank/{vdisk}")).succeeds_quietly();
    }
    place.plumb(LOAD).ends_with(0);
    place
}

/// A blank disk in the place of one that is taken out.
fn another(place: &Place, name: &str, old: Option<&str>) {
    let own = place.file(name);
    match old {
        Some(old) => std::fs::rename(&own, place.file(old)).expect("taken out"),
        None => std::fs::remove_file(&own).expect("gone"),
    }
    std::fs::File::create(&own).expect("made").set_len(96 << 20).expect("sparse");
}

fn disks(pool: &Value) -> Vec<(String, String)> {
    let text = |disk: &Value, key: &str| disk[key].as_str().expect("a word").to_owned();
    let name = |disk: &Value| text(disk, "name").rsplit('/').next().expect("a name").to_owned();
    let all = pool["disks"].as_array().expect("disks").iter();
    all.map(|disk| (name(disk), text(disk, "standing"))).collect()
}

fn is_sound(place: &Place) {
    let pool = place.json("pool show tank");
    assert_eq!(pool["health"], "Healthy", "{pool}");
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
    assert!(scan["blocks_verified"].as_u64().is_some_and(|blocks| blocks > 100), "{scan}");
    place.plumb("run -b64K -s -w0 -o4 -t1 -d1 -W0 space:tank/two").ends_with(0);
    place.plumb("space status tank").ends_with(0);
}

#[test]
fn a_disk_is_replaced_by_one_in_its_own_place() {
    let place = loaded();
    another(&place, "b.img", None);
    let told = place.json("pool replace-disk tank b.img b.img");
    assert_eq!((&told["removed"], &told["blank"]), (&true.into(), &false.into()), "{told}");
    let present = |name: &str| (name.to_owned(), "present".to_owned());
    let all = ["a.img", "c.img", "b.img"].map(present);
    let mut found = disks(&place.json("pool show tank"));
    found.retain(|(_, standing)| standing != "removed");
    assert_eq!(found, all);
    is_sound(&place);
    // Every other disk is spared by now, and the pool's list has each place once.
    let list = std::fs::read_to_string(place.file("pools/tank.pool")).expect("the list");
    assert_eq!(list.matches("b.img").count(), 1, "{list}");
    let said = place.plumb("pool replace-disk tank b.img b.img").ends_with(3).stderr;
    assert!(said.contains("is a disk of the pool already"), "{said}");
}

#[test]
fn a_disk_in_the_place_of_another_is_added_and_the_old_one_is_told_apart() {
    let place = loaded();
    another(&place, "b.img", None);
    place.plumb("pool add-disk tank b.img").succeeds_quietly();
    let found = disks(&place.json("pool show tank"));
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a.img", "b.img#1", "c.img", "b.img"], "{found:?}");
    assert_eq!((found[1].1.as_str(), found[3].1.as_str()), ("missing", "present"), "{found:?}");
    // An interrupted replacement is ended by the same words.
    let told = place.json("pool replace-disk tank b.img b.img");
    assert_eq!(told["removed"], true, "{told}");
    let told = events(&place);
    assert!(told.iter().any(|event| event == "disk-removed"), "{told:?}");
    is_sound(&place);
}

#[test]
fn nothing_is_replaced_in_its_place_that_nobody_else_has() {
    let place = with_disks();
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 --verify crc32c space:tank/one").ends_with(0);
    place.plumb(LOAD).ends_with(0);
    another(&place, "b.img", Some("away.img"));
    let said = place.plumb("pool replace-disk tank b.img b.img").ends_with(3).stderr;
    assert!(said.contains("no other copy") && said.contains("plumb vdisk rm"), "{said}");
    // The old one is put back, and is what it was.
    std::fs::rename(place.file("away.img"), place.file("b.img")).expect("put back");
    place.plumb("space job tank --wait").succeeds_quietly();
    let found = disks(&place.json("pool show tank"));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|(_, standing)| standing == "present"), "{found:?}");
    is_sound(&place);
    place.plumb("run -b64K -s -w0 -o4 -t1 -d1 -W0 space:tank/one").ends_with(0);
}

/// `/dev/sdb` today may be what was `/dev/sdc` yesterday.
#[test]
fn a_new_disk_may_have_the_name_of_one_that_is_elsewhere_now() {
    let place = loaded();
    another(&place, "b.img", Some("moved.img"));
    place.plumb("pool import a.img moved.img c.img").ends_with(0);
    place.plumb("pool add-disk tank b.img").succeeds_quietly();
    let found = disks(&place.json("pool show tank"));
    assert!(found.iter().all(|(_, standing)| standing == "present"), "{found:?}");
    assert!(found.iter().any(|(name, _)| name == "b.img#1"), "{found:?}");
    is_sound(&place);
    let told = place.json("pool remove-disk tank moved.img");
    assert_eq!((&told["removed"], &told["blank"]), (&true.into(), &true.into()), "{told}");
    is_sound(&place);
}

/// The disk that was in a slot before is elsewhere and well; its successor there dies, and another one comes.
#[test]
fn only_what_is_gone_is_replaced_in_its_place() {
    let place = loaded();
    another(&place, "b.img", Some("moved.img"));
    place.plumb("pool import a.img moved.img c.img").ends_with(0);
    place.plumb("pool add-disk tank b.img").succeeds_quietly();
    another(&place, "b.img", None);
    let told = place.json("pool replace-disk tank b.img b.img");
    assert_eq!((&told["removed"], &told["blank"]), (&true.into(), &false.into()), "{told}");
    let found = disks(&place.json("pool show tank"));
    let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a.img", "b.img", "b.img#1", "c.img"], "{found:?}");
    assert!(found.iter().all(|(_, standing)| standing == "present"), "{found:?}");
    assert!(place.file("moved.img").exists());
    is_sound(&place);
}

/// The name of a disk that is gone is no disk: what lies there by now joins the pool before the other one leaves it.
#[test]
fn a_disk_is_replaced_by_a_blank_one_in_the_place_of_one_that_is_gone() {
    let place = loaded();
    std::fs::File::create(place.file("d.img")).expect("made").set_len(96 << 20).expect("sparse");
    place.plumb("pool add-disk tank d.img").succeeds_quietly();
    another(&place, "d.img", None);
    let told = place.json("pool replace-disk tank a.img d.img");
    assert_eq!((&told["removed"], &told["blank"]), (&true.into(), &true.into()), "{told}");
    let found = disks(&place.json("pool show tank"));
    let present = found.iter().filter(|(_, standing)| standing == "present");
    let names: Vec<&str> = present.map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["b.img", "c.img", "d.img"], "{found:?}");
    // The one that is gone held nothing, and is told until somebody gives it up.
    let gone =
        found.iter().find(|(_, standing)| !["present", "removed"].contains(&standing.as_str()));
    let (name, _) = gone.expect("it is told");
    place.plumb(&format!("pool remove-disk tank {}", place.file(name).display())).ends_with(0);
    is_sound(&place);
}
