//! Pools, virtual disks and load on them, as their users meet them.

use std::path::Path;
use std::process::Command;

use plumb_units::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Outcome, outcome, path};

/// A folder with pools of its own.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        Self(folder)
    }

    pub(crate) fn plumb(&self, line: &str) -> Outcome {
        outcome(&mut self.command(line))
    }

    fn plumb_in(&self, folder: &str, line: &str) -> Outcome {
        outcome(self.command(line).current_dir(self.file(folder)))
    }

    /// The program, ready to be started here.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(path());
        command.args(line.split_whitespace());
        self.at_home(&mut command);
        command
    }

    /// A command runs here, with the pools of this place.
    pub(crate) fn at_home(&self, command: &mut Command) {
        command.current_dir(self.0.path()).env("PLUMB_POOLS", self.0.path().join("pools"));
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        let said = self.plumb(&format!("{line} --json"));
        serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{line}: {said:?}"))
    }

    pub(crate) fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }
}

/// A pool of three disks with a virtual disk of each resiliency.
pub(crate) fn with_disks() -> Place {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img c.img").succeeds_quietly();
    for (name, resiliency) in [("one", "simple"), ("two", "mirror2"), ("three", "mirror3")] {
        let line = format!("vdisk new tank/{name} --size 16M --resiliency {resiliency}");
        place.plumb(&line).succeeds_quietly();
    }
    place
}

#[test]
fn a_pool_is_made_shown_extended_and_removed() {
    let place = with_disks();
    let pool = place.json("pool show tank");
    assert_eq!((&pool["health"], &pool["name"]), (&"Healthy".into(), &"tank".into()), "{pool}");
    assert_eq!(pool["disks"].as_array().map(Vec::len), Some(3));
    let vdisks = place.json("vdisk list tank");
    let kinds: Vec<&str> = vdisks["vdisks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|vdisk| vdisk["resiliency"].as_str())
        .collect();
    assert_eq!(kinds, ["simple", "mirror2", "mirror3"]);
    assert_eq!(place.json("vdisk show tank/two")["columns"], 1);
    // Commands that runbooks know by other names.
    assert_eq!(place.json("Get-StoragePool tank"), pool);
    assert_eq!(place.json("get-virtualdisk tank"), vdisks);
    for (cmdlet, command) in [
        ("Get-PhysicalDisk tank", "pool show tank"),
        ("Get-StorageTier tank/two", "tier show tank/two"),
        ("Get-FileStorageTier tank/two", "tier pins tank/two"),
        ("Set-FileStorageTier tank/two", "tier pin tank/two"),
        ("Clear-FileStorageTier tank/two --pin 7", "tier unpin tank/two --pin 7"),
        ("Get-StorageReliabilityCounter tonk", "space perf tonk"),
        ("perf tonk", "space perf tonk"),
        ("scan tonk", "space scan tonk"),
    ] {
        let [one, other] = [cmdlet, command].map(|line| place.plumb(line));
        assert_eq!(
            (one.status, &one.stdout, &one.stderr),
            (other.status, &other.stdout, &other.stderr)
        );
        assert!(!one.stderr.contains("unrecognized subcommand"), "{cmdlet}: {one:?}");
    }
    std::fs::File::create(place.file("d.img")).expect("made").set_len(96 << 20).expect("sparse");
    place.plumb("pool add-disk tank d.img").succeeds_quietly();
    assert_eq!(place.json("pool show tank")["voters"]["all"], 4);
    assert_eq!(place.json("tier show tank/two")["tiers"][0]["used_bytes"], 0);
    place.plumb("vdisk rm tank/one").succeeds_quietly();
    place.plumb("vdisk show tank/one").ends_with(1);
    let refused = place.plumb("pool remove tank").ends_with(3).stderr;
    assert!(refused.contains("two, three") && refused.contains("--destroy tank"), "{refused}");
    place.plumb("pool remove tank --destroy tank").succeeds_quietly();
    assert_eq!(place.json("pool list")["pools"], Value::Array(Vec::new()));
    // No pool is left on the disks, but what somebody wrote there is.
    let refused = place.plumb("pool import a.img b.img").ends_with(1).stderr;
    assert!(refused.contains("none of the 2 devices"), "{refused}");
    let refused = place.plumb("pool new other a.img b.img").ends_with(3).stderr;
    assert!(refused.contains("what Plumb wrote for a pool"), "{refused}");
    assert!(refused.contains("--destroy a.img") && !refused.contains("did not write"), "{refused}");
    place.plumb("pool new other a.img b.img --destroy a.img --destroy b.img").succeeds_quietly();
    std::fs::remove_dir_all(place.file("pools")).expect("forgotten");
    place.plumb("pool import a.img b.img").succeeds_quietly();
    assert_eq!(place.json("pool show other")["health"], "Healthy");
}

#[test]
fn a_verified_load_runs_on_every_resiliency() {
    let place = with_disks();
    for vdisk in ["one", "two", "three"] {
        let line = format!(
            "run -b4K -r -w50 -o8 -t2 -d1 -W0 -L --verify crc32c --json space:tank/{vdisk}"
        );
        let said = place.plumb(&line).ends_with(0);
        let result: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert!(result["total"]["io_count"].as_u64().is_some_and(|count| count > 50), "{line}");
        assert!(result["engine"].as_str().is_some_and(|name| name.starts_with("space+")));
        let space = &result["spaces"][0];
        assert_eq!(space["pool"], "tank");
        assert_eq!((&space["mismatches"], &space["unrecoverable"]), (&0.into(), &0.into()));
        assert!(space["forwarded_requests"].as_u64().is_some_and(|count| count > 50), "{space}");
    }
    // What was written is there in the next process, with write-through and without.
    place.plumb("run -b4K -s -w100 -Sw -c1M -o1 -t1 -d1 -W0 space:tank/two").ends_with(0);
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()));
    assert!(scan["blocks_verified"].as_u64().is_some_and(|count| count > 10), "{scan}");
}

/// What was acknowledged is known in the next run, from whichever folder, and what is lost is found there.
#[test]
fn a_state_file_knows_virtual_disks_by_their_name() {
    let place = with_disks();
    let run = |folder: &str, share: u32| {
        std::fs::create_dir_all(place.file(folder)).expect("a folder");
        let state = place.file("run.state");
        let state = format!("--verify crc32c --verify-state {}", state.display());
        let line = format!("run {state} --json -b64K -s -w{share} -o4 -t1 -d1 -W0 space:tank/two");
        place.plumb_in(folder, &line)
    };
    run("here", 100).ends_with(0);
    let second = run("here", 0).ends_with(0);
    // A folder of that name is not the virtual disk.
    std::fs::create_dir_all(place.file("there/space:tank/two")).expect("a folder");
    let third = run("there", 0).ends_with(0);
    for outcome in [second, third] {
        let result: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let verify = &result["time_spans"][0]["verify"];
        assert!(verify["before"]["bytes"].as_u64() > Some(1 << 20), "{verify:#}");
    }
    // As empty as one whose writes were lost.
    place.plumb("vdisk rm tank/two --destroy tank/two").ends_with(0);
    place.plumb("vdisk new tank/two --size 16M --resiliency mirror2").ends_with(0);
    let lost = run("there", 0).ends_with(1);
    assert!(lost.stderr.contains("verification found"), "{}", lost.stderr);
}

#[test]
fn rot_is_found_and_healed_and_a_pulled_disk_comes_back() {
    let place = with_disks();
    // Without copies it would be out of service while the disk is away.
    place.plumb("vdisk rm tank/one").succeeds_quietly();
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 space:tank/two").ends_with(0);
    let pool = place.json("pool show tank");
    let disks = place.json("vdisk show tank/two")["tiers"][0]["disks"].clone();
    let disk = disks[0].as_str().expect("a name").to_owned();
    rot(Path::new(&disk));
    let scan = place.json("space scan tank");
    let healed = scan["healed"].as_u64().unwrap_or(0);
    assert!(healed > 0 && scan["mismatches"] == scan["healed"], "{scan}");
    assert_eq!(place.json("space scan tank")["mismatches"], 0, "once is enough");
    // A disk is pulled, the load goes on, the disk returns.
    std::fs::rename(&disk, place.file("away")).expect("pulled");
    let status = place.plumb("space status tank --json").ends_with(1);
    assert!(status.stdout.contains("Incomplete"), "{}", status.stdout);
    place.plumb("run -b4K -r -w50 -o8 -t1 -d1 -W0 --verify crc32c space:tank/two").ends_with(0);
    let status = place.plumb("space status tank").ends_with(1).stdout;
    assert!(status.contains("Degraded") && status.contains("Lost Communication"), "{status}");
    std::fs::rename(place.file("away"), &disk).expect("put back");
    let job = place.json("space job tank --wait");
    assert!(job["bytes_done"].as_u64().is_some_and(|bytes| bytes > 0), "{job}");
    assert_eq!(job["bytes_left"], 0);
    // All is there again, and much had to be healed on that disk.
    let status = place.plumb("space status tank").ends_with(1).stdout;
    assert!(!status.contains("Degraded:") && status.contains("Predictive Failure"), "{status}");
    assert_eq!(place.json("space scan tank")["mismatches"], 0);
    assert_eq!(place.json("pool show tank")["id"], pool["id"]);
}

/// Spoils one copy of everything that is not metadata: single bytes, far apart.
pub(crate) fn rot(disk: &Path) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().read(true).write(true).open(disk).expect("it is there");
    let mut found = 0;
    for offset in ((24 << 20)..(90 << 20)).step_by(64 << 10) {
        // Written blocks count up from 0.
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset + 1).expect("read");
        if byte[0] != 0 {
            file.write_all_at(&[byte[0] ^ 0x55], offset + 1).expect("written");
            found += 1;
        }
    }
    assert!(found > 0, "nothing was written there");
}

/// Whether somebody has locked the file; a lock of our own, tried on it, would stand in their way.
fn is_locked(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{} ", file.metadata().expect("it is there").ino());
    std::fs::read_to_string("/proc/locks").expect("a list").contains(&inode)
}

#[test]
fn mistakes_are_refused_with_a_word() {
    let place = with_disks();
    let says = |line: &str, status: i32, words: &[&str]| {
        let said = place.plumb(line).ends_with(status).stderr;
        for word in words {
            assert!(said.contains(word), "{line}: {said}");
        }
    };
    says("pool new tank x.img", 3, &["already"]);
    says("pool new other a.img", 3, &["In a Pool", "--destroy a.img"]);
    says("run -w100 -d1 a.img", 3, &["disk of a Plumb storage pool", "--destroy"]);
    says("pool new other nothing.img", 1, &["cannot open disk", "nothing.img"]);
    says("pool show none", 1, &["no pool named 'none'", "tank"]);
    // HLT-5: whoever watches health takes 1 for a Warning and 2 for Unhealthy.
    says("space status none", 3, &["no pool named 'none'", "tank"]);
    says("space status none --json", 3, &["no pool named 'none'"]);
    for line in ["space status", "space status tank x", "space status --none tank"] {
        says(line, 3, &["error: "]);
    }
    says("Get-HealthStatus", 3, &["POOL"]);
    says("space scan", 2, &["POOL"]);
    place.plumb("space status --help").succeeds_quietly();
    says("vdisk new tank/two --size 16M", 1, &["named two already"]);
    says("vdisk new tank/huge --size 1T", 1, &["free slab"]);
    says("vdisk new tank --size 1M", 1, &["POOL/VDISK"]);
    let long = "v".repeat(65);
    let words = ["the name of the virtual disk has 65 characters", "may have 64", &long];
    for line in [format!("vdisk new tank/{long} --size 1M"), format!("run -d1 space:tank/{long}")] {
        says(&line, 1, &words);
    }
    let words = ["the name of the pool has 65 characters", "may have 64", &long];
    says(&format!("vdisk show {long}/two"), 1, &words);
    says(&format!("vdisk show tank/{}", &long[1..]), 1, &["no virtual disk named"]);
    // Section 17: what a crash leaves old or new as a whole.
    let shown = place.json("vdisk show tank/two");
    let unit = shown["atomic_unit_bytes"].as_u64().map(plumb_units::Bytes).expect("it is known");
    let text = place.plumb("vdisk show tank/two").ends_with(0).stdout;
    assert!(text.contains(&format!(", atomic writes of {unit}: ")), "{text}");
    says("vdisk new tank/v", 1, &["no size"]);
    says("vdisk new tank/v --size 1M --resiliency mirror9", 2, &["mirror2"]);
    says("vdisk new tank/v --size 16M --columns 3 --resiliency mirror2", 1, &["needs 6"]);
    says("run -d1 space:tank/none", 1, &["no virtual disk named 'none'"]);
    says("run -d1 space:tank", 1, &["POOL/VDISK"]);
    says("run -d1 space:none/v", 1, &["no pool named 'none'"]);
    says("run -d1 -b1000 space:tank/two", 1, &["512"]);
    std::fs::write(place.file("letters"), vec![7; 96 << 20]).expect("written");
    says("pool add-disk tank letters", 3, &["holds data", "--destroy letters"]);
    place.plumb("pool add-disk tank letters --destroy letters").succeeds_quietly();
    // Two engines on one pool.
    let mut first = Command::new(path());
    first.args("run -b4K -r -w0 -d30 -W0 space:tank/two".split(' '));
    first.current_dir(place.0.path()).env("PLUMB_POOLS", place.file("pools"));
    let quiet = std::process::Stdio::null;
    let mut first = first.stdout(quiet()).stderr(quiet()).spawn().expect("it starts");
    let began = std::time::Instant::now();
    while !is_locked(&place.file("a.img")) {
        assert!(began.elapsed().as_secs() < 20, "it never opens its disks");
    }
    for line in ["run -d1 space:tank/two", "vdisk new tank/more --size 16M"] {
        let refused = place.plumb(line).ends_with(3).stderr;
        assert!(refused.contains("in use: process ") && refused.contains("plumb"), "{refused}");
    }
    // It can be looked at meanwhile.
    assert_eq!(place.json("pool show tank")["health"], "Healthy");
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    place.plumb("space scan tank").ends_with(0);
    // The name of a file is not that of a space.
    std::fs::write(place.file("space:tank"), vec![0; 1 << 20]).expect("written");
    place.plumb("run -d1 -W0 -b4K ./space:tank").ends_with(0);
}

/// Section 3: tiers are made of whole slabs. What is larger than was asked for is told, as by LVM.
#[test]
fn a_tier_that_is_rounded_up_says_so() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
    let bytes = |shown: &Value| shown["tiers"][0]["bytes"].as_u64().expect("it has a tier");
    let made = place.plumb("vdisk new tank/odd --size 5000001 --resiliency simple").ends_with(0);
    let slabs = bytes(&place.json("vdisk show tank/odd"));
    assert!(slabs > 5_000_001, "{slabs}");
    let note = format!(
        "note: its ssd tier has {} where {} were asked for",
        Bytes(slabs),
        Bytes(5_000_001)
    );
    assert!(made.stdout.contains(&note) && made.stdout.contains("in 2 column(s)"), "{made:?}");
    let made = place
        .plumb(&format!("vdisk new tank/whole --size {slabs} --resiliency simple"))
        .ends_with(0);
    assert!(!made.stdout.contains("note:"), "{made:?}");
    assert_eq!(bytes(&place.json("vdisk show tank/whole")), slabs);
    place.plumb("pool rm tank --destroy tank").succeeds_quietly();
}

/// Names of the events of a pool that were written down.
pub(crate) fn events(place: &Place) -> Vec<String> {
    let told = place.json("space events tank --last 1000");
    let events = told["events"].as_array().expect("a list");
    events.iter().filter_map(|event| Some(event["event"].as_str()?.to_owned())).collect()
}

#[test]
fn disks_are_replaced_while_they_work_and_when_they_are_gone() {
    let place = with_disks();
    place.plumb("vdisk rm tank/three").succeeds_quietly();
    for vdisk in ["one", "two"] {
        let line = format!("run -b64K -s -w100 -o4 -t1 -d1 -W0 --verify crc32c space:tank/{vdisk}");
        place.plumb(&line).ends_with(0);
    }
    let sparse = |name: &str| {
        std::fs::File::create(place.file(name)).expect("made").set_len(96 << 20).expect("sparse");
    };
    // One that works: nothing is lost, a simple virtual disk included, and it is blank then.
    sparse("d.img");
    let told = place.json("pool replace-disk tank a.img d.img");
    assert_eq!((&told["removed"], &told["blank"]), (&true.into(), &true.into()), "{told}");
    assert!(told["extents_moved"].as_u64().is_some_and(|extents| extents > 0), "{told}");
    let pool = place.json("pool show tank");
    assert_eq!(
        (&pool["health"], pool["disks"].as_array().map(Vec::len)),
        (&"Healthy".into(), Some(3))
    );
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()));
    assert!(scan["blocks_verified"].as_u64().is_some_and(|blocks| blocks > 500), "{scan}");
    place.plumb("pool import a.img").ends_with(1);
    // The same disk again is a new one.
    place.plumb("pool add-disk tank a.img").succeeds_quietly();
    // One that is gone: mirrors are made anew, and what was there alone keeps it in the list.
    std::fs::remove_file(place.file("d.img")).expect("gone");
    let refused = place.plumb("pool remove-disk tank d.img").ends_with(3).stderr;
    assert!(refused.contains("no other copy") && refused.contains("plumb vdisk rm"), "{refused}");
    place.plumb("vdisk rm tank/one --destroy tank/one").succeeds_quietly();
    let told = place.json("pool remove-disk tank d.img");
    assert_eq!((&told["removed"], &told["blank"]), (&true.into(), &false.into()), "{told}");
    place.plumb("space status tank").ends_with(0);
    assert_eq!(place.json("space scan tank")["unrecoverable"], 0);
    for (line, status, word) in [
        ("pool remove-disk tank x.img", 1, "has no disk x.img"),
        ("pool replace-disk tank a.img b.img", 3, "is a disk of the pool already"),
        ("space offline tank a.img", 3, "not in use"),
    ] {
        let said = place.plumb(line).ends_with(status).stderr;
        assert!(said.contains(word), "{line}: {said}");
    }
    let told = events(&place);
    for word in ["disk-added", "disk-leaving", "slab-moves", "disk-removed", "disk-lost", "scanned"]
    {
        assert!(told.iter().any(|event| event == word), "{word}: {told:?}");
    }
}

/// RES-4: a disk that is missing is given up when the pool is set to, and not before.
#[test]
fn missing_disks_are_given_up_as_the_pool_is_set_to() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img c.img d.img").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 16M --resiliency mirror2").succeeds_quietly();
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 space:tank/two").ends_with(0);
    let shown = place.json("pool show tank");
    assert_eq!((&shown["time_out_s"], &shown["retire_after_s"]), (&30.into(), &300.into()));
    let set = place.json("pool set tank --time-out 5 --retire-after never");
    assert_eq!((&set["time_out_s"], &set["retire_after_s"]), (&5.into(), &Value::Null));
    std::fs::rename(place.file("b.img"), place.file("away.img")).expect("renamed");
    let load = "run -b4K -r -w50 -o4 -t1 -d2 -W0 space:tank/two";
    let retired = |place: &Place| {
        place.plumb(load).ends_with(0);
        events(place).iter().any(|event| event == "disk-retired")
    };
    assert!(!retired(&place), "it was to stay");
    let said = place.plumb("Set-StoragePool tank --retire-after always").succeeds_quietly();
    assert!(
        said.stdout.contains("time-out: 5 s\n  missing disks are given up: at once"),
        "{said:?}"
    );
    assert!(retired(&place), "{:?}", events(&place));
    for (line, word) in [
        ("pool set tank", "--time-out"),
        ("pool set tank --time-out 0", "0 is not in 1..=3600"),
        ("pool set tank --retire-after 5m", "'always' or 'never'"),
    ] {
        let said = place.plumb(line).ends_with(2).stderr;
        assert!(said.contains(word), "{line}: {said}");
    }
    place.plumb("pool set nobody --time-out 5").ends_with(1);
}

#[test]
fn a_disk_without_room_elsewhere_stays() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 16M --resiliency mirror2").succeeds_quietly();
    let refused = place.plumb("pool remove-disk tank a.img").ends_with(3).stderr;
    assert!(
        refused.contains("no other disk has room") && refused.contains("add-disk"),
        "{refused}"
    );
    place.plumb("space status tank").ends_with(0);
    // Asked for later, and taken back.
    std::fs::File::create(place.file("c.img")).expect("made").set_len(96 << 20).expect("sparse");
    place.plumb("pool add-disk tank c.img").succeeds_quietly();
    place.plumb("pool remove-disk tank a.img --later").succeeds_quietly();
    let status = place.plumb("space status tank").ends_with(1).stdout;
    assert!(status.contains("Removing From Pool"), "{status}");
    place.plumb("pool remove-disk tank a.img --cancel").succeeds_quietly();
    place.plumb("space status tank").ends_with(0);
    place.plumb("pool remove-disk tank a.img --later").succeeds_quietly();
    place.plumb("space job tank --wait").succeeds_quietly();
    assert_eq!(place.json("pool show tank")["disks"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_disk_goes_and_comes_under_load_and_counters_add_up() {
    let place = with_disks();
    let mut load = Command::new(path());
    load.args(
        "run -b4K -r -w50 -o4 -t1 -d60 -W0 --verify crc32c --json space:tank/three".split(' '),
    );
    load.current_dir(place.0.path()).env("PLUMB_POOLS", place.file("pools"));
    let (piped, quiet) = (std::process::Stdio::piped(), std::process::Stdio::null());
    let load = load.stdout(piped).stderr(quiet).spawn().expect("it starts");
    let began = std::time::Instant::now();
    let until = |word: &str| {
        while !events(&place).iter().any(|event| event == word) {
            assert!(began.elapsed().as_secs() < 60, "no {word}: {:?}", events(&place));
            std::thread::yield_now();
        }
    };
    while place.json("space perf tank")["running"] != true {
        assert!(began.elapsed().as_secs() < 60, "it never runs");
    }
    place.plumb("space offline tank c.img").succeeds_quietly();
    until("disk-lost");
    place.plumb("space online tank c.img").succeeds_quietly();
    until("disk-back");
    add_up(&place.json("space perf tank"));
    // Enough: it ends as by Ctrl-C, with its results.
    kill_process(Pid::from_child(&load), Signal::INT).expect("it runs");
    let output = load.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let space = &result["spaces"][0];
    assert_eq!((&space["disks_lost"], &space["unrecoverable"]), (&1.into(), &0.into()), "{space}");
    place.plumb("space job tank --wait").succeeds_quietly();
    place.plumb("space status tank").ends_with(0);
    let perf = place.json("space perf tank");
    assert_eq!(perf["running"], false, "{perf}");
    add_up(&perf);
}

/// T15: who has the last copy of something, or the only journal, does not go by a command, and whoever asked is told.
#[test]
fn a_disk_that_is_needed_is_not_taken_offline() {
    for (load, why) in [("-w50", "last copy"), ("-w0", "journal and map")] {
        let place = Place::new();
        place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
        place.plumb("vdisk new tank/two --size 16M --resiliency mirror2").succeeds_quietly();
        let mut load =
            place.command(&format!("run -b4K -r {load} -o4 -t1 -d300 -W0 space:tank/two"));
        load.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut load = load.spawn().expect("it starts");
        let began = std::time::Instant::now();
        let until = |is: &dyn Fn() -> bool| {
            while !is() {
                assert!(began.elapsed().as_secs() < 100, "{:?}", events(&place));
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        };
        let count = |word: &str| events(&place).iter().filter(|event| *event == word).count();
        until(&|| place.json("space perf tank")["running"] == true);
        let told = place.plumb("space offline tank a.img").ends_with(0).stdout;
        assert!(told.contains("goes on without disk"), "{told}");
        until(&|| count("disk-lost") == 1);
        let refused = place.plumb("space offline tank b.img").ends_with(3).stderr;
        assert!(refused.contains("b.img") && refused.contains(why), "{refused}");
        until(&|| count("disk-needed") == 1);
        assert_eq!(count("disk-lost"), 1);
        // Who is away already is not asked twice for anything.
        place.plumb("space offline tank a.img").ends_with(0);
        place.plumb("space online tank a.img").ends_with(0);
        until(&|| count("disk-back") == 1);
        load.kill().expect("it is ours");
        load.wait().expect("it ends");
        let scan = place.json("space scan tank");
        assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
    }
}

/// CNT-1: what is counted of disks, tiers and virtual disks is the sum of its parts, and something was counted.
fn add_up(perf: &Value) {
    let sets = &perf["counters"];
    let check = |set: &str, all: &str, parts: &[&str]| -> u64 {
        let instances = sets[set].as_object().expect("counters of it");
        let sums = instances.iter().map(|(name, own)| {
            let value =
                |name: &&str| own[*name].as_u64().unwrap_or_else(|| panic!("{name}: {own}"));
            let sum: u64 = parts.iter().map(value).sum();
            assert_eq!(value(&all), sum, "{all} of {set} {name}: {own}");
            sum
        });
        sums.sum()
    };
    let counted = [
        check("Tier", "Tier Transfers [n]", &["Tier Reads [n]", "Tier Writes [n]"]),
        check("Tier", "Tier Transfer Bytes [B]", &["Tier Read Bytes [B]", "Tier Write Bytes [B]"]),
        check("Virtual Disk", "Transfers [n]", &["Reads [n]", "Writes [n]"]),
        check("Physical Disk", "Reads [n]", &["Data Reads [n]", "Metadata Reads [n]"]),
        check(
            "Physical Disk",
            "Write Bytes [B]",
            &["Data Write Bytes [B]", "Cache Log Write Bytes [B]", "Metadata Write Bytes [B]"],
        ),
    ];
    assert!(counted[4] > 0, "{counted:?}");
}

/// 0110: most disks are gone for good. Without the operator's word nothing is changed, nor by a wrong one; with it the
/// pool goes on with what is here, and a part that went on alone is never merged.
#[test]
fn a_pool_goes_on_without_a_quorum_only_by_its_name() {
    let place = with_disks();
    place.plumb("vdisk rm tank/one").succeeds_quietly();
    place.plumb("vdisk rm tank/two").succeeds_quietly();
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 space:tank/three").ends_with(0);
    let away = |names: &[&str]| {
        for name in names {
            std::fs::rename(place.file(name), place.file(&format!("{name}.away"))).expect("pulled");
        }
    };
    let back = |names: &[&str]| {
        for name in names {
            std::fs::rename(place.file(&format!("{name}.away")), place.file(name)).expect("back");
        }
    };
    away(&["b.img", "c.img"]);
    let before = std::fs::read(place.file("a.img")).expect("it is there");
    for (line, word) in [
        ("space repair tank", "--without-quorum"),
        ("space repair tank --give-up-missing", "--without-quorum"),
        ("space repair tank --without-quorum tonk", "--without-quorum tank"),
        ("space job tank --wait", "--without-quorum"),
        ("space scan tank", "--without-quorum"),
    ] {
        let refused = place.plumb(line);
        assert!(refused.status > 0 && refused.stderr.contains(word), "{line}: {refused:?}");
    }
    let same = std::fs::read(place.file("a.img")).expect("it is there") == before;
    assert!(same, "a pool that was refused is as it was");
    let said = place.plumb("space status tank").ends_with(3).stdout;
    assert!(said.contains("Incomplete"), "{said}");
    place.plumb("run -b4K -o1 -t1 -d1 -W0 space:tank/three").ends_with(0);
    let told = events(&place);
    assert!(told.contains(&"start-refused".to_owned()), "{told:?}");
    assert!(told.contains(&"read-only".to_owned()), "{told:?}");
    place.plumb("space repair tank --without-quorum tank").ends_with(0);
    assert_eq!(place.json("pool show tank")["voters"]["all"], 1);
    assert!(events(&place).iter().any(|event| event == "without-quorum"), "{:?}", events(&place));
    place.plumb("run -b4K -r -w50 -o4 -t1 -d1 -W0 --verify crc32c space:tank/three").ends_with(0);
    // A disk that only waited is brought up to date; another one is still away.
    std::fs::copy(place.file("b.img.away"), place.file("b.img")).expect("room");
    let job = place.json("space job tank --wait");
    assert_eq!(job["jobs"].as_array().map(Vec::len), Some(1), "{job}");
    assert_eq!(job["jobs"][0]["waits_for"], "disk", "{job}");
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
    assert!(scan["blocks_verified"].as_u64().is_some_and(|blocks| blocks > 100), "{scan}");
    // The others go on without this part, as two of three may: on reunion nothing is merged.
    std::fs::remove_file(place.file("b.img")).expect("gone");
    away(&["a.img"]);
    back(&["b.img", "c.img"]);
    place.plumb("run -b4K -r -w100 -o1 -t1 -d1 -W0 space:tank/three").ends_with(0);
    back(&["a.img"]);
    for line in ["space scan tank", "space repair tank --without-quorum tank"] {
        let refused = place.plumb(line);
        assert!(refused.status == 1 && refused.stderr.contains("descend"), "{line}: {refused:?}");
    }
    let said = place.plumb("space status tank").ends_with(3).stdout;
    assert!(said.contains("Split"), "{said}");
    let told = place.json("space events tank --last 1");
    assert_eq!(told["events"][0]["event"], "start-refused", "{told}");
    let what = told["events"][0]["text"].as_str().expect("words");
    assert!(what.contains("descend"), "{what}");
}
