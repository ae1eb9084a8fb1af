//! Pools of 100 TiB, and machines with little memory (T13, section 18).

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::spaces::{Place, events};

/// A line run where the machine says that so much memory is available; `None` without root.
fn with_memory(place: &Place, kib: u64, line: &str) -> Option<crate::program::Outcome> {
    let text = std::fs::read_to_string("/proc/meminfo").expect("it is there");
    let less = |line: &str| match line.starts_with("MemAvailable:") {
        true => format!("MemAvailable: {kib} kB\n"),
        false => format!("{line}\n"),
    };
    std::fs::write(place.file("meminfo"), text.lines().map(less).collect::<String>())
        .expect("written");
    let program = crate::program::path().display();
    let script = format!("mount --bind meminfo /proc/meminfo || exit 99; exec {program} {line}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    command.current_dir(place.file(".")).env("PLUMB_POOLS", place.file("pools"));
    let outcome = crate::program::outcome(&mut command);
    (outcome.status != 99 && !outcome.stderr.starts_with("unshare: ")).then_some(outcome)
}

/// Section 18, "out of memory": a pool that could not be served when all of it is mapped is refused before a byte of it is, with the
/// figures, and stays what it is.
#[test]
fn a_pool_that_needs_more_memory_than_there_is_is_not_started() {
    let place = Place::new();
    let test = "a_pool_that_needs_more_memory_than_there_is_is_not_started";
    place.plumb("pool new tank --file-size 8T a.img b.img").succeeds_quietly();
    place.plumb("vdisk new tank/v --size 15T --resiliency simple --columns 1").succeeds_quietly();
    let written = || {
        let look = |name: &str| {
            let found = place.file(name).metadata().expect("it is there");
            (found.modified().expect("it is told"), std::os::unix::fs::MetadataExt::blocks(&found))
        };
        ["a.img", "b.img"].map(look)
    };
    let before = written();
    // Section 25: of 15 TiB 60 MiB for places, 256 for checksums, 110 for heat.
    for line in ["run -b4K -r -w0 -o4 -t1 -d1 -W0 space:tank/v", "space scan tank"] {
        let Some(said) = with_memory(&place, 500 << 10, line) else {
            println!("skipped {test}: no mount namespace here");
            return;
        };
        let said = said.ends_with(1).stderr;
        assert!(said.contains("GiB of memory; 500MiB are available"), "{line}: {said}");
        assert!(said.contains("help: "), "{line}: {said}");
        assert_eq!(written(), before, "{line}: a disk was written to");
    }
    let told = events(&place);
    assert!(told.contains(&"start-refused".to_owned()), "{told:?}");
    assert!(!told.iter().any(|event| event == "disk-lost" || event == "halted"), "{told:?}");
    assert_eq!(place.json("pool show tank")["health"], "Healthy");
    place.plumb("space status tank").ends_with(0);
    let more = with_memory(&place, 2 << 20, "run -b4K -r -w0 -o4 -t1 -d1 -W0 space:tank/v");
    more.expect("as before").ends_with(0);
}

/// The most memory that a program took so far, in MiB.
fn most_memory(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? >> 10)
}

/// T13: a virtual disk of 100 TiB is made, written to, killed and recovered within the memory and the time of section 25: what lies
/// in it is what takes memory.
#[test]
fn a_space_of_100_tib_starts_within_its_time_and_memory() {
    let place = Place::new();
    let names: Vec<String> = (0..10).map(|nth| format!("{nth}.img")).collect();
    place.plumb(&format!("pool new tank --file-size 12T {}", names.join(" "))).succeeds_quietly();
    let vdisk = "vdisk new tank/v --size 100T --resiliency simple --columns 8";
    place.plumb(vdisk).succeeds_quietly();
    let line = "run -b4K -r -w100 -o8 -t1 -d60 -W0 space:tank/v";
    let mut load =
        place.command(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    std::thread::sleep(Duration::from_secs(8));
    let took = most_memory(load.id()).expect("it runs still");
    kill_process(Pid::from_child(&load), Signal::KILL).expect("it was there");
    load.wait().expect("it is gone");
    let began = Instant::now();
    place.plumb("run -b4K -r -w0 -o8 -t1 -d1 -W0 space:tank/v").ends_with(0);
    let recovered = began.elapsed().saturating_sub(Duration::from_secs(1));
    println!(
        "100 TiB: {took} MiB while it was written to; recovered, read and ended in {recovered:?}"
    );
    // Checksums of what was written are in memory, and 400 MiB are for the map alone.
    assert!(took < 2048, "{took} MiB");
    // To serve: 5 s. This is until it had ended, and not optimized.
    let most = if cfg!(debug_assertions) { 60 } else { 10 };
    assert!(recovered < Duration::from_secs(most), "{recovered:?}");
    assert_eq!(place.json("pool show tank")["health"], "Healthy");
}
