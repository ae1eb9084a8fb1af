//! File systems below a pool's files that have no room (T15, sections 15 and 18).

use crate::rights::Tmpfs;
use crate::spaces::{Place, events};

/// A pool whose disks all lie on a file system that is full can be read, says why it is not written to, and goes on once there is
/// room. Whether it stopped while it was used or was not started, it is read-only to status.
#[test]
fn a_pool_on_full_file_systems_is_read_and_told_as_read_only() {
    let place = Place::new();
    let Some(mount) = Tmpfs::mount(&place.file("small"), 40 << 20) else {
        println!(
            "skipped a_pool_on_full_file_systems_is_read_and_told_as_read_only: only root mounts"
        );
        return;
    };
    let load = |share: u32, more: &str| {
        let state = place.file("run.state");
        format!(
            "run --verify crc32c --verify-state {} -b64K -s -o4 -t1 -W0 -f4M {more} -w{share} space:tank/two",
            state.display()
        )
    };
    place.plumb("pool new tank --file-size 96M small/a.img small/b.img").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 32M --resiliency mirror2").succeeds_quietly();
    place.plumb(&load(100, "-d1")).ends_with(0);
    let is_read_only = |when: &str| {
        let told = place.plumb("space status tank").ends_with(3).stdout;
        let shown = place.plumb("pool show tank").stdout;
        for text in [told, shown] {
            let line = text.lines().next().unwrap_or_default();
            for words in ["Unhealthy", "Read-only (Starting)", "small/", "is full", "make room"] {
                assert!(line.contains(words), "{when}, {words}: {text}");
            }
        }
    };
    // It stops for lack of room.
    let full = place.plumb("run -b64K -s -w100 -o4 -t1 -d5 -W0 -B8M space:tank/two");
    assert!(full.status != 0 && full.stderr.contains("error"), "{full:?}");
    assert!(events(&place).iter().any(|event| event == "halted"), "{:?}", events(&place));
    is_read_only("stopped");
    // Nothing that would write starts; what was acknowledged is read.
    let refused = place.plumb(&load(50, "-d1")).ends_with(1).stderr;
    for words in ["is full", "are free, and a start takes 1", "make room there"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    for _ in 0..2 {
        let read = place.plumb(&load(0, "-d1")).ends_with(0).stderr;
        for words in
            ["pool tank is read as it is", "nothing is written to it", "is full", "Make room"]
        {
            assert!(read.contains(words), "{words}: {read}");
        }
        assert!(!read.contains("verification found"), "{read}");
        is_read_only("read");
    }
    // With room it is told so no more, and goes on.
    mount.resize(300 << 20);
    let told = place.plumb("space status tank").stdout;
    assert!(!told.contains("Read-only") && !told.contains("is full"), "{told}");
    place.plumb("space job tank --wait").ends_with(0);
    let read = place.plumb(&load(50, "-d1")).ends_with(0).stderr;
    assert!(!read.contains("verification found") && !read.contains("read as it is"), "{read}");
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
}
