//! Recording a made-up machine, and comparing such records.

use std::fs;
use std::path::Path;

use super::*;

fn tool() -> Tool {
    Tool {
        name: "plumb".into(),
        version: "1.0".into(),
        version_date: "2026/1/1".into(),
        epoch: Some(3),
    }
}

fn file(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(path, text).expect("a file");
}

fn machine() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    file(root, "proc/sys/kernel/osrelease", "6.12.1\n");
    file(root, "proc/cmdline", "quiet\n");
    file(
        root,
        "proc/cpuinfo",
        "processor : 0\nmodel name : Model T\nmicrocode : 0x1\nflags : fpu\n",
    );
    file(root, "proc/meminfo", "MemTotal: 1024 kB\n");
    file(root, "sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
    let disk = "sys/devices/block/sda";
    for (name, text) in [
        ("dev", "8:0"),
        ("size", "2048"),
        ("queue/scheduler", "[none] bfq"),
        ("queue/nr_requests", "64"),
        ("device/model", "Disk One"),
        ("device/rev", "A1"),
    ] {
        file(root, &format!("{disk}/{name}"), text);
    }
    for place in ["sys/dev/block/8:0", "sys/class/block/sda"] {
        fs::create_dir_all(root.join(place).parent().expect("a folder")).expect("folders");
        std::os::unix::fs::symlink(root.join(disk), root.join(place)).expect("a link");
    }
    folder
}

fn recorded(root: &Path, at: &str) -> Value {
    record(&SystemTree::new(root), &tool(), &["/dev/sda".into()], at)
}

fn texts(a: &Value, b: &Value) -> Vec<(Level, String)> {
    differences(a, b).into_iter().map(|found| (found.level, found.text)).collect()
}

#[test]
fn the_record_says_what_there_is() {
    let machine = machine();
    let a = recorded(machine.path(), "2026-01-01T00:00:00Z");
    let device = &a["groups"]["device"][0];
    assert_eq!((&device["model"], &device["firmware"]), (&"Disk One".into(), &"A1".into()));
    assert_eq!(device["size_bytes"], 1 << 20);
    assert_eq!(a["groups"]["queue"][0]["scheduler"], "none");
    assert_eq!(a["groups"]["stack"], json!(["disk"]));
    assert_eq!(a["groups"]["kernel"]["mitigations"]["meltdown"], "Mitigation: PTI");
    assert_eq!(a["groups"]["virt"]["guest"], false);
    assert_eq!(a["stamps"]["device"].as_str().map(str::len), Some(16));
    assert_eq!(a["stamps"], recorded(machine.path(), "2026-01-02T00:00:00Z")["stamps"]);
    assert_eq!(texts(&a, &a), []);
}

#[test]
fn what_differs_has_the_level_of_the_method() {
    let first = machine();
    let a = recorded(first.path(), "2026-01-01T00:00:00Z");
    let changed = |path: &str, text: &str| {
        let other = machine();
        file(other.path(), path, text);
        texts(&a, &recorded(other.path(), "2026-01-02T00:00:00Z"))
    };
    let disk = |name: &str| format!("sys/devices/block/sda/{name}");
    for (path, text, level, says) in [
        (disk("device/model"), "Disk Two", Level::Hardware, "device: model Disk One and Disk Two"),
        (disk("device/rev"), "B2", Level::Hardware, "device: firmware A1 and B2"),
        (
            disk("queue/scheduler"),
            "none [bfq]",
            Level::Label,
            "queue settings: scheduler none and bfq",
        ),
        ("proc/sys/kernel/osrelease".into(), "6.13", Level::Label, "kernel: 6.12.1 and 6.13"),
        (
            "proc/cpuinfo".into(),
            "model name : Model A\nmicrocode : 0x1\n",
            Level::Hardware,
            "processor: Model T and Model A",
        ),
    ] {
        assert_eq!(changed(&path, text), [(level, says.to_owned())], "{path}");
    }
    let late = recorded(first.path(), "2026-08-01T00:00:00Z");
    assert_eq!(
        texts(&a, &late),
        [(Level::Remind, "the baseline is 212 days older: measure it again".to_owned())]
    );
    // What one side does not know is no difference.
    assert_eq!(texts(&a, &json!({ "groups": {} })), []);
}
