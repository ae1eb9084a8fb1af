//! Commands that change one pool at the same time, and what the first of several to meet something tells (T15, MOD-4).

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;

use crate::program::outcome;
use crate::spaces::{Place, events, with_disks};

/// Each disk that a command says it added is one of the pool's afterwards, however many commands add at once.
#[test]
fn disks_that_are_added_at_the_same_time_are_all_there() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
    let new = ["c", "d", "e", "f"].map(|name| format!("{name}.img"));
    for name in &new {
        File::create(place.file(name)).expect("made").set_len(96 << 20).expect("sparse");
    }
    let added: Vec<bool> = std::thread::scope(|scope| {
        let add = |name: &String| {
            let line = format!("pool add-disk tank {name}");
            let place = &place;
            scope.spawn(move || place.plumb(&line).status == 0)
        };
        let running: Vec<_> = new.iter().map(add).collect();
        running.into_iter().map(|one| one.join().expect("it ends")).collect()
    });
    let pool = place.json("pool show tank");
    let listed = pool.to_string();
    for (name, added) in new.iter().zip(&added) {
        assert!(listed.contains(name.as_str()) || !added, "{name} was added: {pool}");
    }
    assert!(added.contains(&true), "{added:?}");
    assert_eq!(pool["health"], "Healthy", "{pool}");
    assert_eq!(
        pool["disks"].as_array().map_or(0, Vec::len),
        2 + added.iter().filter(|it| **it).count()
    );
}

/// What a start meets is written down, whatever it is made for.
#[test]
fn what_the_first_start_meets_is_told_by_its_events() {
    for line in ["tier show tank/two", "vdisk new tank/four --size 16M", "vdisk rm tank/one"] {
        let place = with_disks();
        std::fs::rename(place.file("c.img"), place.file("away.img")).expect("taken away");
        place.plumb(line).ends_with(0);
        let told = events(&place);
        assert!(told.iter().any(|event| event == "disk-lost"), "{line}: {told:?}");
    }
}

/// The list of pools is text, a disk to a line: what it cannot hold is refused, and the list stays what it is.
#[test]
fn a_disk_with_a_line_end_in_its_name_is_not_imported() {
    let place = with_disks();
    for name in [&b"a\nb.img"[..], b"a\xff.img"] {
        let odd = place.file("").join(OsStr::from_bytes(name));
        std::os::unix::fs::symlink(place.file("a.img"), &odd).expect("linked");
        let mut command = place.command("pool import b.img c.img");
        let said = outcome(command.arg(&odd)).ends_with(3).stderr;
        assert!(said.contains("line end"), "{said}");
        assert_eq!(place.json("pool show tank")["health"], "Healthy");
    }
}
