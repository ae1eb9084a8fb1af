//! Virtual disks beside each other, and pools whose files are gone: met by the commands.

use crate::spaces::{Place, events};

/// How `space status` says that a virtual disk is.
fn standing(place: &Place, name: &str) -> String {
    let status = place.plumb("space status tank --json");
    let status: serde_json::Value = serde_json::from_str(&status.stdout).expect("JSON");
    let vdisks = status["vdisks"].as_array().expect("a list");
    let own = vdisks.iter().find(|vdisk| vdisk["name"] == name).expect("it has it");
    own["operational_status"].as_str().expect("text").to_owned()
}

/// The disk with the only log of a cache is lost: that virtual disk alone is detached, says so, and is given up by its name.
#[test]
fn a_lost_log_is_given_up_by_its_virtual_disks_name() {
    let place = Place::new();
    let disks = "--ssd a.img --ssd b.img --ssd c.img --hdd d.img";
    place.plumb(&format!("pool new tank --file-size 160M {disks}")).succeeds_quietly();
    place.plumb("vdisk new tank/m --size 16M --resiliency mirror2").succeeds_quietly();
    let two = "vdisk new tank/s --ssd-tier 16M --hdd-tier 16M --resiliency simple --write-cache 4M";
    place.plumb(two).succeeds_quietly();
    let away = |name: &str| place.file(&format!("{name}.away"));
    let lost = ["a.img", "b.img", "c.img"].into_iter().find(|name| {
        std::fs::rename(place.file(name), away(name)).expect("pulled");
        let found = standing(&place, "s") == "Detached (Incomplete)";
        if !found {
            std::fs::rename(away(name), place.file(name)).expect("back");
        }
        found
    });
    let lost = lost.expect("one of them has the log");
    let status = place.plumb("space status tank").ends_with(3);
    assert!(status.stdout.contains("--without-cache"), "{status:?}");
    place.plumb("run -b4K -r -w50 -o4 -t1 -d1 -W0 --verify crc32c space:tank/m").ends_with(0);
    let refused = place.plumb("run -b4K -r -w50 -o4 -t1 -d1 -W0 space:tank/s");
    assert!(refused.status > 0 && refused.stderr.contains("--without-cache tank/s"), "{refused:?}");
    // It is back, and all is well.
    std::fs::rename(away(lost), place.file(lost)).expect("back");
    place.plumb("space job tank --wait").succeeds_quietly();
    assert_eq!(standing(&place, "s"), "OK");
    let refused = place.plumb("space repair tank --without-cache tank/s");
    assert!(refused.status == 1 && refused.stderr.contains("is not lost"), "{refused:?}");
    // Lost for good.
    std::fs::remove_file(place.file(lost)).expect("gone");
    for (word, says) in [
        ("other/s", "the pool is tank"),
        ("tank/x", "no virtual disk named"),
        ("tank/m", "is not lost"),
    ] {
        let refused = place.plumb(&format!("space repair tank --without-cache {word}"));
        assert!(refused.status > 0 && refused.stderr.contains(says), "{word}: {refused:?}");
        assert_eq!(standing(&place, "s"), "Detached (Incomplete)");
    }
    let told = place.plumb("space repair tank --without-cache tank/s");
    assert!([0, 5].contains(&told.status), "{told:?}");
    let names = events(&place);
    assert!(names.iter().any(|name| name == "cache-given-up"), "{names:?}");
    assert_ne!(standing(&place, "s"), "Detached (Incomplete)");
    let shown = place.json("vdisk show tank/s");
    assert_eq!(shown["write_cache_bytes"], 0, "{shown}");
}

/// Where records of a write-back cache's log begin on a disk.
fn log_records(disk: &std::path::Path) -> Vec<u64> {
    let bytes = std::fs::read(disk).expect("it is there");
    let blocks = (0_u64..).step_by(4096).zip(bytes.chunks(4096));
    blocks.filter(|(_, block)| block.starts_with(b"PLWL")).map(|(at, _)| at).collect()
}

/// Every copy of a cache's log is here, and none can be read: its virtual disk serves nothing, and who asks afterwards is told so.
#[test]
fn a_log_that_nobody_can_read_is_told_until_it_can_be() {
    use std::os::unix::fs::FileExt;
    let place = Place::new();
    let disks = "--ssd a.img --ssd b.img --hdd c.img --hdd d.img";
    place.plumb(&format!("pool new tank --file-size 160M {disks}")).succeeds_quietly();
    let two = "vdisk new tank/m --ssd-tier 16M --hdd-tier 32M --resiliency mirror2 --columns 1 --write-cache 4M";
    place.plumb(two).succeeds_quietly();
    place.plumb("run -b64K -s -w100 -o4 -t1 -d1 -W0 space:tank/m").ends_with(0);
    let mut load = place.command("run -b4K -r -w100 -o2 -t1 -d60 -W0 -Sw space:tank/m");
    let mut load = load.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    std::thread::sleep(std::time::Duration::from_secs(2));
    load.kill().expect("it runs");
    load.wait().expect("it ends");
    let mut spoilt = Vec::new();
    for name in ["a.img", "b.img"] {
        let path = place.file(name);
        let file = std::fs::File::options().read(true).write(true).open(&path).expect("a disk");
        for at in log_records(&path) {
            let mut before = [0; 300];
            file.read_exact_at(&mut before, at + 100).expect("read");
            file.write_all_at(&[0xee; 300], at + 100).expect("written");
            spoilt.push((name, at + 100, before));
        }
    }
    assert!(!spoilt.is_empty(), "nothing was in the log");
    let scan = place.plumb("space scan tank").ends_with(2);
    assert!(scan.stdout.contains("m serves nothing"), "{scan:?}");
    for _ in 0..2 {
        assert_eq!(standing(&place, "m"), "Detached (Incomplete)");
        assert_eq!(place.plumb("space status tank").status, 3);
        assert!(place.plumb("run -b4K -r -o4 -t1 -d1 -W0 space:tank/m").status > 0);
    }
    for (name, at, before) in spoilt {
        let file = std::fs::File::options().write(true).open(place.file(name)).expect("a disk");
        file.write_all_at(&before, at).expect("written");
    }
    place.plumb("space job tank --wait").succeeds_quietly();
    assert_eq!(standing(&place, "m"), "OK");
    place.plumb("space scan tank").ends_with(0);
}

#[test]
fn a_pool_whose_files_are_gone_is_removed_by_its_name() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 96M a.img b.img").succeeds_quietly();
    for name in ["a.img", "b.img"] {
        std::fs::remove_file(place.file(name)).expect("gone");
    }
    let refused = place.plumb("pool remove tank");
    assert!(refused.status == 1 && refused.stderr.contains("--destroy tank"), "{refused:?}");
    place.plumb("pool remove tank --destroy tank").ends_with(0);
    assert!(place.json("pool list")["pools"].as_array().expect("a list").is_empty());
}
