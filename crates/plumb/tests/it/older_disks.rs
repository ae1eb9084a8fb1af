//! A disk that is put back as it had been before, while its pool is closed (LAY-8, section 18 of the tiering specification).

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::spaces::{Place, events, with_disks};

fn load(place: &Place, share: u32, seconds: u32) -> String {
    let state = place.file("run.state");
    format!(
        "run --verify crc32c --verify-state {} --json -b4K -r -w{share} -o8 -t1 -d{seconds} -W0 space:tank/two",
        state.display()
    )
}

/// Puts the copy in the disk's place: status tells it, and all that was acknowledged is read.
fn put_back(place: &Place) {
    std::fs::rename(place.file("a.old"), place.file("a.img")).expect("put back");
    let status = place.plumb("space status tank").ends_with(2).stdout;
    let line = status.lines().find(|line| line.contains("a.img")).unwrap_or_default();
    assert!(line.contains("Stale Metadata") && line.contains("job --wait"), "{status}");
    // The first start makes copies equal, and reads everything that was acknowledged.
    let read = place.plumb(&load(place, 0, 2)).ends_with(0);
    assert!(!read.stderr.contains("verification found"), "{}", read.stderr);
    let told = events(place);
    assert!(told.iter().any(|event| event == "disk-outdated"), "{told:?}");
}

/// Of three disks one is copied, the pool is written to and dies, and the copy comes in the disk's place: what was
/// acknowledged since is there, no good copy is made like an old one, and status says that something is not as it was.
#[test]
fn an_older_copy_of_a_disk_costs_nothing_that_was_acknowledged() {
    let place = with_disks();
    place.plumb("vdisk rm tank/one").succeeds_quietly();
    place.plumb("vdisk rm tank/three").succeeds_quietly();
    place.plumb(&load(&place, 100, 1)).ends_with(0);
    std::fs::copy(place.file("a.img"), place.file("a.old")).expect("a copy");
    place.plumb(&load(&place, 100, 1)).ends_with(0);
    let mut command = place.command(&load(&place, 100, 60));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    // Until it has written for a while: the copy is far behind by then.
    let (began, before) = (Instant::now(), std::fs::read(place.file("b.img")).expect("a disk"));
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now = std::fs::read(place.file("b.img")).expect("a disk");
        let differs = before.iter().zip(&now).filter(|(was, is)| was != is).count();
        if differs > 1 << 20 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(50), "only {differs} bytes were written");
    }
    child.kill().expect("it ran");
    child.wait().expect("it is dead");
    put_back(&place);
    // It is brought up to date, and then the pool is whole again.
    place.plumb("space job tank --wait").succeeds_quietly();
    let status = place.plumb("space status tank").ends_with(0).stdout;
    assert!(status.contains("Healthy"), "{status}");
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
    place.plumb(&load(&place, 0, 1)).ends_with(0);
}

/// A copy that is made of one disk while the pool serves, and put in its place after a clean end: it had reached the same
/// epoch as the disk, and is told all the same.
#[test]
fn a_copy_of_a_disk_that_was_made_while_the_pool_served_is_told() {
    let place = with_disks();
    place.plumb("vdisk rm tank/one").succeeds_quietly();
    place.plumb("vdisk rm tank/three").succeeds_quietly();
    place.plumb(&load(&place, 100, 1)).ends_with(0);
    let began = std::fs::read(place.file("b.img")).expect("a disk");
    let mut command = place.command(&load(&place, 100, 6));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    // It serves, and writes.
    let since = Instant::now();
    while std::fs::read(place.file("b.img")).expect("a disk") == began {
        std::thread::sleep(Duration::from_millis(100));
        assert!(since.elapsed() < Duration::from_secs(5), "nothing was written");
    }
    std::fs::copy(place.file("a.img"), place.file("a.old")).expect("a copy");
    assert!(child.try_wait().expect("it ran").is_none(), "it serves still");
    assert!(child.wait().expect("it ends").success());
    put_back(&place);
    place.plumb("space job tank --wait").succeeds_quietly();
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
}

/// Of two disks one is put back as it had been: nobody decides unasked, and an operator's word goes on with the other one.
#[test]
fn of_two_disks_an_older_copy_needs_a_word_and_is_brought_up_to_date() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 16M --resiliency mirror2").succeeds_quietly();
    place.plumb(&load(&place, 100, 1)).ends_with(0);
    std::fs::copy(place.file("a.img"), place.file("a.old")).expect("a copy");
    place.plumb(&load(&place, 100, 1)).ends_with(0);
    std::fs::rename(place.file("a.old"), place.file("a.img")).expect("put back");
    let refused = place.plumb(&load(&place, 0, 1)).ends_with(1).stderr;
    assert!(refused.contains("older copy") && refused.contains("--without-quorum"), "{refused}");
    place.plumb("space repair tank --without-quorum tank").ends_with(0);
    let read = place.plumb(&load(&place, 0, 1)).ends_with(0);
    assert!(!read.stderr.contains("verification found"), "{}", read.stderr);
    place.plumb("space job tank --wait").ends_with(0);
    place.plumb("space status tank").ends_with(0);
}
