//! Too few descriptors: what a program cannot open for lack of them is not lost.

use crate::program::{Outcome, outcome};
use crate::spaces::{Place, events};

/// With such a limit, hard (`-n`) or soft (`-Sn`).
fn limited(place: &Place, limit: &str, line: &str) -> Outcome {
    let program = crate::program::path().display();
    let script = format!("ulimit {limit}; exec {program} {line}");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(place.file("."));
    outcome(command.env("PLUMB_POOLS", place.file("pools")))
}

fn with_many_disks() -> Place {
    let place = Place::new();
    let names: Vec<String> = (0..12).map(|nth| format!("{nth}.img")).collect();
    place.plumb(&format!("pool new tank --file-size 64M {}", names.join(" "))).succeeds_quietly();
    place.plumb("vdisk new tank/two --size 16M --resiliency mirror2").succeeds_quietly();
    place
}

/// Healthy disks are never taken for lost, whichever descriptor is the first that is missing; least of all given up.
#[test]
fn disks_that_cannot_be_opened_for_lack_of_descriptors_are_not_lost() {
    let place = with_many_disks();
    let before = place.json("pool show tank");
    assert_eq!(before["health"], "Healthy", "{before}");
    let list = std::fs::read_to_string(place.file("pools/tank.pool")).expect("a list");
    let mut refused = 0;
    for limit in (8..64).step_by(2) {
        for line in
            ["space status tank", "space repair tank --give-up-missing", "pool import 0.img 1.img"]
        {
            let said = limited(&place, &format!("-n {limit}"), line);
            if said.status == 0 {
                continue;
            }
            assert!(said.stderr.contains("ulimit -n"), "{limit}: {line}: {said:?}");
            assert!(!said.stdout.contains("Lost Communication"), "{limit}: {line}: {said:?}");
            refused += 1;
        }
    }
    assert!(refused > 20, "{refused}: nothing was tried");
    let told = events(&place);
    assert!(!told.iter().any(|event| event == "disk-lost" || event == "disk-retired"), "{told:?}");
    assert_eq!(std::fs::read_to_string(place.file("pools/tank.pool")).expect("a list"), list);
    let after = place.json("pool show tank");
    assert_eq!((&after["health"], &after["disks"]), (&"Healthy".into(), &before["disks"]));
    // The limit's figure, what is needed, and the remedy.
    let said = limited(&place, "-n 24", "space repair tank --give-up-missing").ends_with(3).stderr;
    for word in ["12 disks need", "may have 24", "ulimit -n"] {
        assert!(said.contains(word), "{said}");
    }
    // All of a pool goes, or nothing.
    let said = limited(&place, "-n 24", "pool remove tank --destroy tank").ends_with(3).stderr;
    assert!(said.contains("ulimit -n"), "{said}");
    assert_eq!(place.json("pool show tank")["health"], "Healthy");
}

/// As far as a program may, it raises its own limit.
#[test]
fn a_soft_limit_is_raised_where_it_may_be() {
    let place = with_many_disks();
    for line in ["space status tank", "run -b4K -r -w50 -o4 -t1 -d1 -W0 space:tank/two"] {
        limited(&place, "-Sn 20", line).ends_with(0);
    }
}
