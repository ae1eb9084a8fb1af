//! `--conditioning` on a real file and a real device (method, 2.3).

use std::fs::File;

use serde_json::Value;

use crate::rights::Loop;
use crate::sweeps::Bench;

const FILL_BYTES: u64 = 128 << 10;

/// Bytes that the runs before the first one wrote from end to end, and the note of the findings about it.
fn filled(bench: &Bench, id: &str) -> (u64, String) {
    let journal = bench.journal(id);
    let of_fill = |line: &&Value| {
        line["step"] == "conditioning" && line["setting"]["block_bytes"] == FILL_BYTES
    };
    let ios =
        journal.iter().filter(of_fill).filter_map(|line| line["summary"]["io_count"].as_u64());
    let findings = bench.findings(id);
    let notes = findings["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let note = notes.filter(|note| note.starts_with("conditioning: ")).collect();
    (ios.sum::<u64>() * FILL_BYTES, note)
}

const BYTES: u64 = 8 << 20;
const SWEEP: &str = "--vary o=1,2 --set w=0 --repetitions 1 --warmup 0 --duration 1 --no-anchors";

#[test]
fn a_file_is_filled_before_it_is_measured() {
    let bench = Bench::with("");
    let line = format!("sweep f.dat {SWEEP} --set size=8M --conditioning pts-file --id s");
    bench.call(&line).ends_with(0);
    let (bytes, note) = filled(&bench, "s");
    assert!(bytes >= 2 * BYTES, "{bytes}");
    assert!(note.contains("the file was written 2.0 times"), "{note}");
}

/// Of a device that must be said by its name, though nothing is on it.
#[test]
fn a_whole_device_is_filled_by_its_name_only() {
    let bench = Bench::with("");
    let below = bench.path("below");
    File::create(&below).and_then(|file| file.set_len(BYTES)).expect("a sparse file");
    let line =
        format!("sweep f.dat {SWEEP} --set size=8M --conditioning pts-device --destroy f.dat");
    let refused = bench.call(&line).ends_with(2).stderr;
    assert!(refused.contains("there is no f.dat") && refused.contains("pts-file"), "{refused}");
    let Some(device) = Loop::attach(&below) else {
        println!("skipped a_whole_device_is_filled_by_its_name_only: no loop device");
        return;
    };
    let at = device.path();
    for command in [format!("sweep {at} {SWEEP}"), format!("baseline {at}")] {
        let refused =
            bench.call(&format!("{command} --conditioning pts-device")).ends_with(3).stderr;
        assert!(refused.contains(&format!("--destroy {at}")), "{refused}");
    }
    let nothing = vec![0; usize::try_from(BYTES).expect("small")];
    assert!(std::fs::read(&below).expect("it is there") == nothing, "written to");
    bench
        .call(&format!("sweep {at} {SWEEP} --conditioning pts-device --destroy {at} --id s"))
        .ends_with(0);
    let (bytes, note) = filled(&bench, "s");
    assert!(bytes >= 2 * BYTES, "{bytes}");
    assert!(note.contains("the whole device was written 2.0 times"), "{note}");
    let now = std::fs::read(&below).expect("it is there");
    assert!(now.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)), "every block");
}
