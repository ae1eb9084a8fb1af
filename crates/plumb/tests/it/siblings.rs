//! The same storage under two names: its second opener is refused, whichever of them it takes (C11).

use std::fs::File;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Outcome, outcome};
use crate::rights::Loop;
use crate::spaces::Place;

const MIB: u64 = 1 << 20;

/// A file, and two block devices that show it.
fn with_two_names(test: &str) -> Option<(Place, Loop, Loop)> {
    let place = Place::new();
    File::create(place.file("a.img")).expect("made").set_len(96 * MIB).expect("sparse");
    let attach = || Loop::attach(&place.file("a.img"));
    let Some((one, other)) = attach().and_then(|one| Some((one, attach()?))) else {
        println!("skipped {test}: no loop device");
        return None;
    };
    Some((place, one, other))
}

/// Somebody else's list of pools.
fn elsewhere(place: &Place, line: &str) -> Outcome {
    outcome(place.command(line).env("PLUMB_POOLS", place.file("elsewhere")))
}

#[test]
fn one_command_does_not_take_a_disk_by_two_names() {
    let name = "one_command_does_not_take_a_disk_by_two_names";
    let Some((place, one, other)) = with_two_names(name) else { return };
    let line = format!("pool new tank {} {}", one.path(), other.path());
    let said = place.plumb(&line).ends_with(3).stderr;
    for word in ["in use", "this program has it open already", &one.path(), &other.path()] {
        assert!(said.contains(word), "{said}");
    }
    let line = format!("pool new tank {} a.img", one.path());
    let said = place.plumb(&line).ends_with(3).stderr;
    assert!(said.contains("a.img is in use") && said.contains(&one.path()), "{said}");
    place.plumb(&format!("pool new tank {}", other.path())).succeeds_quietly();
}

#[test]
fn a_disk_in_use_is_refused_by_its_other_name() {
    let name = "a_disk_in_use_is_refused_by_its_other_name";
    let Some((place, one, other)) = with_two_names(name) else { return };
    place.plumb(&format!("pool new tank {}", one.path())).succeeds_quietly();
    place.plumb("vdisk new tank/v --size 16M --resiliency simple").succeeds_quietly();
    elsewhere(&place, &format!("pool import {}", other.path())).succeeds_quietly();
    let mut load = place.command("run -b4K -r -w50 -o4 -t1 -d60 -W0 --verify crc32c space:tank/v");
    let load = load.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut load = load.expect("it starts");
    let began = std::time::Instant::now();
    while place.json("space perf tank")["running"] != true {
        assert!(began.elapsed().as_secs() < 60, "it never runs");
    }
    let short = "run -b4K -r -w100 -o4 -t1 -d1 -W0 space:tank/v";
    let destroyed = format!("pool new t {0} --destroy {0}", other.path());
    for line in [short, "space repair tank", "pool remove tank --destroy tank", &destroyed] {
        let said = elsewhere(&place, line).ends_with(3).stderr;
        for word in ["in use", &one.path(), &format!("process {}", load.id())] {
            assert!(said.contains(word), "{line}: {said}");
        }
    }
    kill_process(Pid::from_child(&load), Signal::INT).expect("it runs");
    assert!(load.wait().expect("it ends").success(), "nobody wrote to it meanwhile");
    elsewhere(&place, short).ends_with(0);
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
}
