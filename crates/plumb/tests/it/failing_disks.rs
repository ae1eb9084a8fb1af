//! A disk that answers writes with errors (section 18: write error, one copy).

use crate::rights::{Loop, Tmpfs};
use crate::spaces::{Place, events};

/// The pool goes on without it, and says what it is: not that it is away, for it is here.
#[test]
fn a_disk_that_fails_writes_is_told_as_io_error_until_it_takes_them() {
    let place = Place::new();
    let name = "a_disk_that_fails_writes_is_told_as_io_error_until_it_takes_them";
    // A device that has room for little of what it says.
    let Some(below) = Tmpfs::mount(&place.file("below"), 8 << 20) else {
        println!("skipped {name}: only root mounts");
        return;
    };
    let file = place.file("below/x");
    std::fs::File::create(&file).and_then(|file| file.set_len(160 << 20)).expect("sparse");
    let Some(disk) = Loop::attach(&file) else {
        println!("skipped {name}: no loop device");
        return;
    };
    let disks = format!("--ssd a.img --ssd {} --ssd c.img", disk.path());
    place.plumb(&format!("pool new tank --file-size 160M --slab 16M {disks}")).succeeds_quietly();
    place.plumb("vdisk new tank/two --size 96M --resiliency mirror2").succeeds_quietly();
    let load = "run -b64K -s -w100 -o4 -d3 -W0 --verify crc32c space:tank/two";
    place.plumb(load).ends_with(0);
    let told = events(&place);
    let at = |kind: &str| told.iter().position(|other| other == kind);
    assert!(at("disk-error").is_some() && at("disk-error") < at("disk-lost"), "{told:?}");
    let status = place.plumb("space status tank").ends_with(1).stdout;
    let said = status.lines().filter(|line| line.contains(&disk.path())).collect::<String>();
    assert!(said.contains("IO Error") && !status.contains("Lost Communication"), "{status}");
    assert!(status.contains("replace-disk"), "{status}");
    // It has room now.
    below.resize(400 << 20);
    place.plumb("space job tank --wait").succeeds_quietly();
    place.plumb("space status tank").ends_with(0);
    place.plumb("run -b64K -s -w0 -o4 -d1 -W0 --verify crc32c space:tank/two").ends_with(0);
}
