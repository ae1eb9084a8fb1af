//! What health commands say of pools that lost something, and for how long (section 15, section 7 of the tiering
//! specification).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::spaces::{Place, events, rot, with_disks};

/// A pool of three disks and one mirror with something in it.
fn mirrored() -> Place {
    let place = with_disks();
    for vdisk in ["one", "three"] {
        place.plumb(&format!("vdisk rm tank/{vdisk}")).succeeds_quietly();
    }
    fill(&place);
    place
}

fn fill(place: &Place) {
    fill_whole(place, "tank/two");
}

/// Writes all of a virtual disk, however long a busy machine takes for that.
pub(crate) fn fill_whole(place: &Place, vdisk: &str) {
    let bytes = place.json(&format!("vdisk show {vdisk}"))["bytes"].as_u64().expect("its size");
    let written = |seconds: u32| {
        let line = format!("run -b64K -s -w100 -o4 -t1 -d{seconds} -W0 --json space:{vdisk}");
        place.plumb(&line).ends_with(0).stdout
    };
    let is_whole = |seconds: &u32| {
        let result: serde_json::Value = serde_json::from_str(&written(*seconds)).expect("JSON");
        result["total"]["bytes"].as_u64() >= Some(bytes)
    };
    assert!([1, 5, 20].iter().any(is_whole), "{bytes} bytes were not written in 20 s");
}

/// Spoils both copies.
fn rot_both(place: &Place) {
    let disks = place.json("vdisk show tank/two")["tiers"][0]["disks"].clone();
    for disk in disks.as_array().expect("two") {
        rot(Path::new(disk.as_str().expect("a name")));
    }
}

/// Spoils every page of a disk from `from` on for which `spoils` says so; how many.
fn spoil(disk: &Path, (from, to): (u64, u64), spoils: impl Fn(&[u8]) -> bool) -> u32 {
    let file = File::options().read(true).write(true).open(disk).expect("it is there");
    let (mut spoilt, mut page) = (0, vec![0; 4096]);
    for at in (from..to).step_by(4096) {
        file.read_exact_at(&mut page, at).expect("read");
        if page.iter().any(|byte| *byte != 0) && spoils(&page) {
            page.iter_mut().for_each(|byte| *byte ^= 0x55);
            file.write_all_at(&page, at).expect("written");
            spoilt += 1;
        }
    }
    spoilt
}

const HEAD: (u64, u64) = (0, 24 << 20);

fn is_checkpoint(page: &[u8]) -> bool {
    page.starts_with(b"PLUMBCP1")
}

/// HLT-1, C8: blocks without a good copy are told until they are written anew and a scan has seen it, whatever
/// commands come in between.
#[test]
fn blocks_that_were_lost_are_told_until_a_scan_finds_them_well() {
    let place = mirrored();
    place.plumb("space status tank").ends_with(0);
    rot_both(&place);
    let said = place.plumb("space scan tank").ends_with(2).stdout;
    assert!(said.contains("two: of bytes ") && said.contains(" have no good copy"), "{said}");
    // Which disks had them is told of each.
    let events = place.plumb("space events tank").ends_with(0).stdout;
    let bad = events.lines().filter_map(|line| line.split_once("a bad copy on "));
    let disks: std::collections::BTreeSet<&str> = bad.map(|(_, disk)| disk.trim()).collect();
    assert_eq!(disks.len(), 2, "{events}");
    let scan: serde_json::Value =
        serde_json::from_str(&place.plumb("space scan tank --json").ends_with(2).stdout)
            .expect("a document");
    let ranges = scan["lost_ranges"].as_array().expect("a list");
    let listed: u64 = ranges.iter().filter_map(|range| range["bytes"].as_u64()).sum();
    let lost = scan["unrecoverable"].as_u64().expect("a number") * 4096;
    assert!(lost > 0 && listed >= lost && ranges[0]["vdisk"] == "two", "{scan}");
    for _ in 0..2 {
        let said = place.plumb("space status tank").ends_with(2).stdout;
        assert!(said.contains("No Redundancy") && said.contains("no good copy"), "{said}");
        assert_eq!(place.json("vdisk show tank/two")["health"], "Unhealthy");
        assert_eq!(place.json("pool show tank")["operational_status"], "Degraded");
        // A program that reads nothing of it learns nothing of it.
        place.plumb("space job tank --wait").succeeds_quietly();
    }
    fill(&place);
    place.plumb("space status tank").ends_with(2);
    let scan = place.json("space scan tank");
    assert_eq!((&scan["unrecoverable"], &scan["lost_ranges"]), (&0.into(), &serde_json::json!([])));
    place.plumb("space scan tank").ends_with(0);
    place.plumb("space status tank").ends_with(0);
    // A virtual disk that is gone has nothing that could be lost.
    rot_both(&place);
    place.plumb("space scan tank").ends_with(2);
    place.plumb("vdisk rm tank/two --destroy tank/two").ends_with(0);
    place.plumb("space status tank").ends_with(0);
}

/// A page of the tree of checksums, as its header says.
fn is_checksums(page: &[u8]) -> bool {
    page[4] == 1 && page[5] <= 2 && page[6..8] == [0, 0] && page[12..16] == [0; 4]
}

/// LAY-7: pages of checksums that are lost on all disks make blocks unverified: told, listed, not read, and accepted by
/// word.
#[test]
fn blocks_whose_checksums_are_lost_wait_for_an_operators_word() {
    let place = mirrored();
    let disks = ["a.img", "b.img", "c.img"].map(|disk| place.file(disk));
    let at = |disk: &Path| {
        let bytes = std::fs::read(disk).expect("read");
        let page = bytes.chunks(4096).position(is_checkpoint);
        u64::try_from(page.expect("each has one") * 4096).expect("small") + 8192
    };
    let spoilt: u32 = disks.iter().map(|disk| spoil(disk, (at(disk), HEAD.1), is_checksums)).sum();
    assert!(spoilt > 0);
    let load = "run -b4K -r -w0 -o8 -t1 -d1 -W0 space:tank/two";
    place.plumb(load).ends_with(1);
    let said = place.plumb("space status tank").ends_with(2).stdout;
    assert!(said.contains("Unverified") && said.contains("--accept-unverified"), "{said}");
    let listed = place.plumb("space scan tank").ends_with(2).stdout;
    assert!(listed.contains("0 mismatches") && listed.contains("cannot be read"), "{listed}");
    let scan = place.json("space scan tank");
    let lost: u64 = scan["unverified"].as_u64().expect("a number");
    let ranges = scan["unverified_ranges"].as_array().expect("a list");
    let listed: u64 = ranges.iter().filter_map(|range| range["bytes"].as_u64()).sum();
    assert!(lost > 0 && listed == lost * 4096, "{scan}");
    assert_eq!((&scan["accepted"], &ranges[0]["vdisk"]), (&0.into(), &"two".into()), "{scan}");
    let scan = place.json("space scan tank --accept-unverified");
    assert_eq!((&scan["accepted"], &scan["unverified"]), (&lost.into(), &lost.into()), "{scan}");
    place.plumb("space status tank").ends_with(0);
    place.plumb(load).ends_with(0);
    let scan = place.json("space scan tank");
    assert_eq!((&scan["unverified"], &scan["mismatches"]), (&0.into(), &0.into()), "{scan}");
}

/// Section 7: more than ten healed blocks in a day are a warning.
#[test]
fn a_disk_of_which_much_was_healed_is_expected_to_fail() {
    let place = mirrored();
    let disks = place.json("vdisk show tank/two")["tiers"][0]["disks"].clone();
    rot(Path::new(disks[0].as_str().expect("a name")));
    let scan = place.json("space scan tank");
    assert!(scan["healed"].as_u64() > Some(10), "{scan}");
    let said = place.plumb("space status tank").ends_with(1).stdout;
    assert!(said.contains("Predictive Failure") && said.contains("replace it"), "{said}");
    assert_eq!(said.matches("Predictive Failure").count(), 1, "{said}");
    // Until an operator says that it is well.
    let disk = disks[0].as_str().expect("a name");
    let told = place.plumb(&format!("space clear tank {disk}")).ends_with(0).stdout;
    assert!(told.contains("nothing is noted"), "{told}");
    place.plumb("space status tank").ends_with(0);
}

/// HLT-1: a disk that failed and stayed for what only it holds is told until an operator clears it, also where a program has
/// the pool.
#[test]
fn a_disk_that_failed_and_stayed_is_told_until_it_is_cleared() {
    let place = mirrored();
    let disk = disk_of(&place, "tank/two");
    // Its id, as its superblock has it.
    let mut id = [0; 16];
    let file = File::open(&disk).expect("it is there");
    file.read_exact_at(&mut id, (64 << 10) + 40).expect("read");
    let id = format!("{:032x}", u128::from_le_bytes(id));
    let findings = place.file("pools/tank.findings");
    let note = || {
        let noted = std::fs::read_to_string(&findings).expect("there is one");
        std::fs::write(&findings, format!("{noted}failed\t{id}\t2\t5\n")).expect("written");
    };
    note();
    for _ in 0..2 {
        let said = place.plumb("space status tank").ends_with(1).stdout;
        assert!(said.contains("IO Error") && said.contains("failed 2 times"), "{said}");
        assert!(said.contains("plumb space clear"), "{said}");
        // Whoever has it in between forgets nothing.
        place.plumb("space job tank --wait").succeeds_quietly();
    }
    let clear = format!("space clear tank {}", disk.display());
    place.plumb(&clear).ends_with(0);
    place.plumb("space status tank").ends_with(0);
    assert_eq!(events(&place).iter().filter(|event| *event == "disk-cleared").count(), 1);
    // Nothing is left to forget.
    assert_eq!(place.json(&clear)["cleared"], true);
    note();
    let mut load = place.command("run -b64K -r -w50 -o4 -t1 -d400 -W0 space:tank/two");
    load.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut load = load.spawn().expect("it starts");
    let began = std::time::Instant::now();
    while place.json("space perf tank")["running"] != true {
        assert!(began.elapsed().as_secs() < 100, "it does not begin");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    place.plumb("space status tank").ends_with(1);
    place.plumb(&clear).ends_with(0);
    place.plumb("space status tank").ends_with(0);
    load.kill().expect("it is ours");
    load.wait().expect("it ends");
    place.plumb("space status tank").ends_with(0);
}

/// 6.3: flushes that fail until the next start are no secret of the program that has the pool.
#[test]
fn flushes_that_fail_are_told_while_the_program_runs() {
    let place = mirrored();
    let perf = place.file("pools/tank.perf");
    let said = std::fs::read_to_string(&perf).expect("the load wrote it");
    let (_, counters) = said.split_once('\n').expect("lines");
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_millis();
    let process = std::process::id();
    for (status, exit) in [(1, 0), (2, 1)] {
        // As a program that is there writes it, every second.
        let counters =
            counters.replace("\tStatus\tcode\t1\n", &format!("\tStatus\tcode\t{status}\n"));
        let text = format!("plumb-perf 1\t{now}\t5\t{process}\ttrue\n{counters}");
        assert_eq!(text.contains("\tStatus\tcode\t2\n"), status == 2);
        std::fs::write(&perf, text).expect("written");
        let told = place.plumb("space status tank").ends_with(exit).stdout;
        assert_eq!(told.contains("could not be flushed"), status == 2, "{told}");
    }
}

/// What a start looks at first is looked at by status, too, which starts nothing.
#[test]
fn a_pool_that_no_start_accepts_is_not_healthy() {
    let place = mirrored();
    let disks = ["a.img", "b.img", "c.img"].map(|disk| place.file(disk));
    let kept: Vec<Vec<u8>> = disks.iter().map(|disk| std::fs::read(disk).expect("read")).collect();
    let put_back = || {
        disks.iter().zip(&kept).for_each(|(disk, bytes)| std::fs::write(disk, bytes).expect("put"));
    };
    // Without a checkpoint.
    let spoilt: u32 = disks.iter().map(|disk| spoil(disk, HEAD, is_checkpoint)).sum();
    assert!(spoilt > 0);
    let said = place.plumb("space status tank").ends_with(3).stdout;
    assert!(said.contains("Read-only (Starting)") && said.contains("checkpoint"), "{said}");
    put_back();
    place.plumb("space status tank").ends_with(0);
    // One disk's copy in another one's place.
    std::fs::copy(&disks[0], &disks[1]).expect("a copy");
    let said = place.plumb("space status tank").ends_with(3).stdout;
    assert!(
        said.contains("Read-only (Starting)") && said.contains("b.img say that they are disk 0"),
        "{said}"
    );
    place.plumb("space job tank").ends_with(1);
    let told = place.json("space events tank --last 1");
    assert_eq!(told["events"][0]["event"], "start-refused", "{told}");
    put_back();
    // What only a start reads: it is remembered how that went, until one goes well.
    let at = |disk: &Path| {
        let bytes = std::fs::read(disk).expect("read");
        let page = bytes.chunks(4096).position(is_checkpoint);
        page.map(|page| u64::try_from(page * 4096).expect("small"))
    };
    let is_page = |page: &[u8]| !is_checkpoint(page) && !page.starts_with(b"PLJF");
    let spoilt: u32 =
        disks.iter().filter_map(|disk| Some(spoil(disk, (at(disk)?, HEAD.1), is_page))).sum();
    assert!(spoilt > 0);
    let refused = place.plumb("space scan tank").ends_with(1).stderr;
    assert!(refused.contains("tree") || refused.contains("journal"), "{refused}");
    let said = place.plumb("space status tank").ends_with(3).stdout;
    assert!(said.contains("the last start was refused"), "{said}");
    put_back();
    place.plumb("space scan tank").ends_with(0);
    place.plumb("space status tank").ends_with(0);
}

/// A disk that holds a copy of that mirror.
fn disk_of(place: &Place, vdisk: &str) -> std::path::PathBuf {
    let shown = place.json(&format!("vdisk show {vdisk}"));
    shown["tiers"][0]["disks"][0].as_str().expect("a name").into()
}

/// What status says of copies that are out of date.
fn says_behind(place: &Place) -> bool {
    let said = place.plumb("space status tank");
    let behind = said.stdout.contains("not up to date yet");
    let wanted = if behind { 1 } else { said.status };
    assert_eq!(said.status, wanted, "{said:?}");
    assert_eq!(behind, said.stdout.contains("In Service"), "{said:?}");
    behind
}

/// HLT-1: copies that are out of date are told by whoever starts nothing, until they are not.
#[test]
fn copies_that_are_out_of_date_are_told_without_a_start() {
    let place = mirrored();
    let disk = disk_of(&place, "tank/two");
    let away = disk.with_extension("away");
    std::fs::rename(&disk, &away).expect("pulled");
    fill(&place);
    std::fs::rename(&away, &disk).expect("back");
    // It takes part again, and the command ends before the disk has what it missed.
    let job = place.json("space job tank");
    assert!(job["bytes_left"].as_u64() > Some(0), "{job}");
    for _ in 0..2 {
        assert!(says_behind(&place));
        let pool = place.json("pool show tank");
        assert_eq!(
            (&pool["health"], &pool["operational_status"]),
            (&"Warning".into(), &"Degraded".into()),
            "{pool}"
        );
        let behind: Vec<&serde_json::Value> = pool["disks"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|disk| disk["operational_status"] == "In Service")
            .collect();
        assert_eq!(behind.len(), 1, "{pool}");
        assert_eq!(behind[0]["name"].as_str().map(Path::new), Some(disk.as_path()), "{pool}");
        assert_eq!(place.json("vdisk show tank/two")["operational_status"], "In Service");
    }
    // The list of pools and what was noted beside it are lost: the journal has it.
    std::fs::remove_dir_all(place.file("pools")).expect("forgotten");
    place.plumb("pool import a.img b.img c.img").succeeds_quietly();
    assert!(says_behind(&place));
    place.plumb("space job tank --wait").succeeds_quietly();
    assert!(!says_behind(&place));
    place.plumb("space status tank").ends_with(0);
    assert_eq!(place.json("vdisk show tank/two")["health"], "Healthy");
}

/// Whether a process has a handler for SIGINT, the second bit of the mask.
fn catches_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 2 != 0)
}

/// Ctrl-C ends a scan, which says what it has read, and how much it has not.
#[test]
fn a_scan_that_is_interrupted_says_how_far_it_came() {
    let place = Place::new();
    let disks = "--hdd a.img --hdd b.img --emulate sas-10k-300";
    place.plumb(&format!("pool new tank --file-size 256M {disks}")).succeeds_quietly();
    place.plumb("vdisk new tank/two --size 128M --resiliency mirror2").succeeds_quietly();
    place.plumb("run -b1M -s -w100 -o8 -t1 -d4 -W0 space:tank/two").ends_with(0);
    let interrupted = |after: u64| {
        let mut scan = place.command("space scan tank --json");
        scan.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let mut scan = scan.spawn().expect("it starts");
        // Before it has its pool, a signal ends it as any other program.
        while !catches_interrupts(scan.id()) {
            assert!(scan.try_wait().expect("it is ours").is_none(), "it ended too early");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(std::time::Duration::from_millis(after));
        // It may have ended by then.
        let _ = kill_process(Pid::from_child(&scan), Signal::INT);
        let ended = scan.wait_with_output().expect("it ends");
        let told = serde_json::from_slice::<serde_json::Value>(&ended.stdout).ok();
        (ended.status.code(), told)
    };
    let mut found = [200, 100, 50, 0].into_iter().map(interrupted);
    let found = found.find(|found| found.0 == Some(5));
    let told = found.and_then(|found| found.1).expect("one of them is in time");
    assert_eq!(told["interrupted"], true, "{told}");
    assert!(told["bytes_unread"].as_u64() > Some(0), "{told}");
    let whole = place.json("space scan tank");
    assert_eq!((&whole["interrupted"], &whole["bytes_unread"]), (&false.into(), &0.into()));
    assert!(whole["blocks_verified"].as_u64() > told["blocks_verified"].as_u64(), "{whole} {told}");
}

/// The same while a program has the pool, and after that was killed.
#[test]
fn copies_that_are_out_of_date_are_told_under_load_and_after_a_kill() {
    let place = Place::new();
    let disks = "--hdd a.img --hdd b.img --hdd c.img --emulate sas-10k-300";
    place.plumb(&format!("pool new tank --file-size 192M {disks}")).succeeds_quietly();
    place.plumb("vdisk new tank/two --size 32M --resiliency mirror2").succeeds_quietly();
    place.plumb("run -b1M -s -w100 -o8 -t1 -d2 -W0 space:tank/two").ends_with(0);
    let disk = disk_of(&place, "tank/two");
    let mut load = place.command("run -b64K -r -w50 -o4 -t1 -d400 -W0 space:tank/two");
    load.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut load = load.spawn().expect("it starts");
    let began = std::time::Instant::now();
    let count = |word: &str| events(&place).iter().filter(|event| *event == word).count();
    let until = |is: &dyn Fn() -> bool| {
        while !is() {
            assert!(began.elapsed().as_secs() < 300, "{:?}", events(&place));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    until(&|| place.json("space perf tank")["running"] == true);
    let turn = |times: usize| {
        place.plumb(&format!("space offline tank {}", disk.display())).succeeds_quietly();
        until(&|| count("disk-lost") == times);
        std::thread::sleep(std::time::Duration::from_secs(2));
        place.plumb(&format!("space online tank {}", disk.display())).succeeds_quietly();
        until(&|| count("disk-back") == times);
    };
    turn(1);
    until(&|| says_behind(&place));
    until(&|| count("disk-up-to-date") == 1);
    // Counters are written once a second.
    until(&|| !says_behind(&place));
    place.plumb("space status tank").ends_with(0);
    turn(2);
    load.kill().expect("it is ours");
    load.wait().expect("it ends");
    assert!(count("disk-up-to-date") == 1, "killed too late to show anything");
    assert!(says_behind(&place));
    place.plumb("space job tank --wait").succeeds_quietly();
    place.plumb("space status tank").ends_with(0);
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
}
