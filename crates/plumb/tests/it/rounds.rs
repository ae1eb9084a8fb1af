//! Virtual disks that come and go, many times: a pool that holds nothing takes what a new one takes.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::spaces::Place;

fn removed_at_last(place: &Place, name: &str) {
    let line = format!("vdisk rm tank/{name} --destroy tank/{name}");
    if place.plumb(&format!("vdisk show tank/{name}")).status == 0 {
        place.plumb(&line).succeeds_quietly();
    }
}

/// Commands that are killed on the way cost nothing of it either.
#[test]
fn after_many_virtual_disks_one_of_full_size_is_made_and_loaded() {
    let place = Place::new();
    place.plumb("pool new tank --file-size 1G a.img b.img").succeeds_quietly();
    let full = "vdisk new tank/full --size 1952M --resiliency simple";
    place.plumb("vdisk new tank/more --size 1953M --resiliency simple").ends_with(1);
    for round in 0..10_u64 {
        let sizes = [336 + 16 * round, 640 - 48 * round];
        for (nth, size) in sizes.iter().enumerate() {
            let line = format!("vdisk new tank/v{nth} --size {size}M --resiliency simple");
            place.plumb(&line).succeeds_quietly();
        }
        let mut command = place.command("vdisk rm tank/v0 --destroy tank/v0");
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(8 * round));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        removed_at_last(&place, "v0");
        removed_at_last(&place, "v1");
    }
    place.plumb(full).succeeds_quietly();
    let load = "run -b64K -r -w60 -o8 -t2 -d2 -W0 -L --verify crc32c --json space:tank/full";
    let said = place.plumb(load).ends_with(0);
    let result: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(result["spaces"][0]["mismatches"], 0);
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()), "{scan}");
    assert_eq!(place.json("vdisk list tank")["vdisks"].as_array().map(Vec::len), Some(1));
}
