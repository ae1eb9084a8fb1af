//! `plumb check`.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::plumb;

#[test]
fn every_check_has_a_verdict_within_two_seconds() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("new.dat");
    let line = format!("check {} --size 1M --json", file.display());
    let start = Instant::now();
    let outcome = plumb(&line);
    let took = start.elapsed();
    assert!([0, 3].contains(&outcome.status), "{outcome:#?}");
    assert!(took < Duration::from_secs(10), "{took:?}: it watches for one second");
    let answer: Value = serde_json::from_str(&outcome.stdout).expect("one object");
    let checks = answer["checks"].as_array().expect("a list");
    assert_eq!(checks.len(), 32);
    for check in checks {
        let verdict = check["verdict"].as_str().expect("a word");
        assert!(["ok", "note", "warn", "block", "unknown"].contains(&verdict), "{check}");
        assert!(check["evidence"].as_str().is_some_and(|text| !text.is_empty()), "{check}");
        assert_eq!(check["remedy"].is_null(), verdict == "ok", "{check}");
    }
    let blocks = checks.iter().any(|check| check["verdict"] == "block");
    assert_eq!(outcome.status == 3, blocks);
    assert!(!file.exists(), "it only looks");
}

#[test]
fn what_blocks_ends_with_3_unless_it_is_accepted() {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(root.path().join("proc/7")).expect("folders");
    fs::write(root.path().join("proc/7/comm"), "fstrim\n").expect("a file");
    let line = format!("check /data/file --system-root {}", root.path().display());
    let outcome = plumb(&line).ends_with(3);
    assert!(outcome.stdout.starts_with("/data/file: block\nblock   tasks-running"), "{outcome:#?}");
    assert!(outcome.stdout.contains("do: wait for it to end"), "{outcome:#?}");
    let outcome = plumb(&format!("{line} --accept tasks-running")).ends_with(0);
    assert!(outcome.stdout.contains("(accepted)"), "{outcome:#?}");
    plumb(&format!("{line} --accept everything")).ends_with(2);
    plumb("check").ends_with(2);
    plumb("check f --size 0").ends_with(2);
    let outcome = plumb("check /no/such/folder/file").ends_with(1);
    assert!(outcome.stderr.contains("/no/such/folder/file"), "{outcome:#?}");
}
