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

/// What lies on each disk, and when it was last written to.
fn disks_of(place: &Place) -> Vec<(std::time::SystemTime, Vec<u8>)> {
    let of = |nth: u32| {
        let path = place.file(&format!("{nth}.img"));
        let when = path.metadata().and_then(|found| found.modified()).expect("it is there");
        (when, std::fs::read(&path).expect("it is ours"))
    };
    (0..12).map(of).collect()
}

/// Section 18, "out of file descriptors at the start": whatever would start the pool is refused with what is needed, and nothing is
/// written to any disk or told of it, whichever descriptor is the first that is missing.
#[test]
fn a_start_that_lacks_descriptors_is_refused_and_writes_nothing() {
    let place = with_many_disks();
    place.plumb("run -b64K -s -w100 -o2 -t1 -d1 -W0 space:tank/two").ends_with(0);
    let before = disks_of(&place);
    let told = events(&place);
    let mut refused = 0;
    for limit in (8..52).step_by(4) {
        for line in [
            "run -b4K -r -w100 -o2 -t1 -d1 -W0 space:tank/two",
            "space scan tank",
            "space job tank --wait",
            "vdisk new tank/more --size 16M --resiliency mirror2",
        ] {
            let said = limited(&place, &format!("-n {limit}"), line);
            if said.status == 0 {
                continue;
            }
            let about_it = said.stderr.contains("ulimit -n");
            assert!(about_it && said.stderr.contains("help: "), "{limit}: {line}: {said:?}");
            if limit <= 32 {
                // Less than twelve disks need, so that it is refused before any was opened.
                let now = disks_of(&place);
                assert!(now == before, "{limit}: {line}: a disk was written to: {said:?}");
            }
            refused += 1;
        }
    }
    // That is told, and of the disks nothing.
    let now = events(&place);
    let more = &now[told.len()..];
    assert!(now.starts_with(&told) && more.contains(&"start-refused".to_owned()), "{now:?}");
    let about_disks = |event: &String| event.starts_with("disk-") || event == "halted";
    assert!(!more.iter().any(about_disks), "{more:?}");
    assert!(refused >= 28, "{refused}: nothing was tried");
    let said = limited(&place, "-n 24", "space scan tank").stderr;
    for word in ["12 disks need", "may have 24", "ulimit -n"] {
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(place.json("pool show tank")["health"], "Healthy");
    place.plumb("space scan tank").ends_with(0);
}

/// The same, "never at run time on the I/O path": a pool that is served goes on when its program may open nothing more.
#[test]
fn a_pool_that_is_served_goes_on_without_descriptors() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let place = with_many_disks();
    let line = "run -b4K -r -w50 -o4 -t1 -d10 -W0 --verify crc32c --json space:tank/two";
    let mut load = place.command(line);
    let piped = std::process::Stdio::piped;
    let load = load.stdout(piped()).stderr(piped()).spawn().expect("it starts");
    let began = std::time::Instant::now();
    // Until it is served.
    let served = || {
        let perf = place.json("space perf tank");
        let count = perf["counters"]["Heat"]["two"]["Host I/Os [n]"].as_u64().unwrap_or(0);
        if perf["running"] == true { count } else { 0 }
    };
    while served() == 0 {
        assert!(began.elapsed().as_secs() < 60, "it never runs");
    }
    // For two seconds it may open none but those that it has; then it verifies what it wrote, for which it needs some.
    let pid = Pid::from_raw(i32::try_from(load.id()).expect("a process")).expect("a process");
    let before = served();
    let few = Rlimit { current: Some(3), maximum: getrlimit(Resource::Nofile).maximum };
    let usual = prlimit(Some(pid), Resource::Nofile, few).expect("it is ours");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let stood = place.json("space perf tank");
    assert!(
        stood["age_s"].as_f64() > Some(1.0),
        "it cannot open the file of its counters: {stood}"
    );
    prlimit(Some(pid), Resource::Nofile, usual).expect("it is ours");
    while served() <= before {
        assert!(began.elapsed().as_secs() < 60, "it goes on");
    }
    let done = load.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{said}");
    let result: serde_json::Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{said}"));
    let space = &result["spaces"][0];
    assert_eq!((&space["disks_lost"], &space["unrecoverable"]), (&0.into(), &0.into()), "{space}");
    let told = events(&place);
    let bad =
        ["disk-lost", "disk-failing", "disk-timeout", "disk-retired", "halted", "flush-failed"];
    assert!(!told.iter().any(|event| bad.contains(&event.as_str())), "{told:?}");
    assert_eq!(place.json("pool show tank")["health"], "Healthy");
    place.plumb("space scan tank").ends_with(0);
}
