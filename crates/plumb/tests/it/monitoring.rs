//! Counters: `plumb monitor`, and beside a run.

use std::fs;

use serde_json::Value;

use crate::program::plumb;

#[test]
fn counters_are_shown_and_recorded_without_a_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    for (path, text) in [
        ("sys/devices/block/sda/dev", "8:0\n"),
        ("sys/devices/block/sda/size", "2048\n"),
        ("proc/diskstats", "8 0 sda 5 0 40 0 0 0 0 0 0 7 9\n"),
        ("proc/stat", "cpu0 10 0 0 30\n"),
        ("proc/meminfo", "Dirty: 2048 kB\n"),
        ("proc/pressure/io", "some avg10=0 avg60=0 avg300=0 total=5\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }
    for place in ["sys/dev/block/8:0", "sys/class/block/sda", "sys/block/sda"] {
        fs::create_dir_all(root.join(place).parent().expect("a folder")).expect("folders");
        std::os::unix::fs::symlink(root.join("sys/devices/block/sda"), root.join(place))
            .expect("a link");
    }
    let record = root.join("out.ndjson");
    let line = format!("monitor --for 1 --system-root {} -o {}", root.display(), record.display());
    let shown = plumb(&line).succeeds_quietly().stdout;
    assert!(shown.contains("dirty 2.0 MiB") && shown.contains("waiting for I/O 0.0 %"), "{shown}");
    let recorded = fs::read_to_string(&record).expect("a record");
    let second: Value = serde_json::from_str(recorded.trim()).expect("an object");
    assert_eq!(
        (&second["devices"][0]["name"], &second["devices"][0]["reads_per_s"]),
        (&"sda".into(), &0.0.into())
    );
    assert_eq!(second["memory"]["dirty_bytes"], 2 << 20);
    let refused = plumb(&line).ends_with(1).stderr;
    assert!(refused.contains("cannot record into"), "{refused}");
    plumb("monitor --for never").ends_with(2);
    let line = format!("monitor /data/file --for 1 --system-root {}", root.display());
    let bare = plumb(&line).ends_with(0).stderr;
    assert!(bare.contains("no disk is known under"), "{bare}");
    for absent in ["/nonexist", "/no/such/folder/file"] {
        let refused = plumb(&format!("monitor {absent} --for 1")).ends_with(2);
        assert!(refused.stderr.contains(absent) && refused.stdout.is_empty(), "{refused:#?}");
    }
}

#[test]
fn a_json_result_has_counters_beside_each_measurement() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data");
    fs::write(&file, vec![7; 1 << 20]).expect("a file");
    let line = format!("run --engine=sync -b4K -r -d2 -W0 --json {}", file.display());
    let result: Value = serde_json::from_str(&plumb(&line).ends_with(0).stdout).expect("JSON");
    let counters = &result["time_spans"][0]["counters"];
    assert!(counters["cost_ns"].as_u64().is_some_and(|cost| cost > 0), "{counters}");
    let series = counters["series"].as_array().expect("a series");
    assert!((1..=3).contains(&series.len()), "{counters}");
    let cores = counters["processors"].as_array().map(Vec::len);
    for second in series {
        assert_eq!(second["processors_percent"].as_array().map(Vec::len), cores);
        assert!(second["memory"]["dirty_bytes"].is_u64(), "{second}");
    }
}
