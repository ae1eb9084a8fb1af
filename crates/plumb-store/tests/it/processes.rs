//! Several processes at one store, one of them killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use plumb_store::Store;

use crate::runs::run;

/// In the environment of a test that is to be a writer: the store's folder, a label, how many runs.
const WRITER: &str = "PLUMB_TEST_STORE_WRITER";

/// This test again, as a process that writes.
fn writer(folder: &Path, label: &str, runs: u32) -> Child {
    let program = std::env::current_exe().expect("this test has a path");
    Command::new(program)
        .args(["--exact", "processes::a_writer", "--nocapture"])
        .env(WRITER, format!("{}|{label}|{runs}", folder.display()))
        .stdout(Stdio::null())
        .spawn()
        .expect("it can be started")
}

/// Does nothing unless it is called as a writer.
#[test]
fn a_writer() {
    let Ok(words) = std::env::var(WRITER) else { return };
    let words: Vec<&str> = words.split('|').collect();
    let store = Store::open(Path::new(words[0])).expect("a store");
    for number in 0..words[2].parse::<u32>().expect("a number") {
        store.add(run(words[1], f64::from(number))).expect("kept");
    }
}

#[test]
fn several_processes_keep_runs_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writers: Vec<Child> =
        ["a", "b", "c", "d"].iter().map(|label| writer(folder.path(), label, 12)).collect();
    let store = Store::open(folder.path()).expect("a store");
    for writer in &mut writers {
        assert!(writer.wait().expect("it ends").success());
    }
    for label in ["a", "b", "c", "d"] {
        assert_eq!(store.list(Some(label)).expect("a list").len(), 12, "{label}");
    }
    for entry in store.list(None).expect("a list") {
        assert_eq!(store.read(&entry.id).expect("a document").id, entry.id);
    }
}

#[test]
fn a_writer_that_is_killed_leaves_whole_runs_only() {
    let folder = tempfile::tempdir().expect("a folder");
    for millis in [30, 45, 70, 110, 160] {
        let mut victim = writer(folder.path(), "victim", 100_000);
        let mut other = writer(folder.path(), "other", 4);
        thread::sleep(Duration::from_millis(millis));
        // SIGKILL: nothing can be tidied up.
        victim.kill().expect("killed");
        victim.wait().expect("it ended");
        assert!(other.wait().expect("it ends").success(), "killing one hurts no other");
        let store = Store::open(folder.path()).expect("a store");
        assert!(store.damaged().is_empty(), "{:?}", store.damaged());
        for entry in store.list(None).expect("a list") {
            let run = store.read(&entry.id).expect("a whole document");
            assert_eq!(run.result["big"].as_array().map(Vec::len), Some(2000));
        }
    }
    let store = Store::open(folder.path()).expect("a store");
    assert_eq!(store.list(Some("other")).expect("a list").len(), 20);
    assert!(
        !store.list(Some("victim")).expect("a list").is_empty(),
        "it was killed while it wrote"
    );
    let documents =
        std::fs::read_dir(folder.path().join("runs")).expect("a folder").filter(|entry| {
            let name = entry.as_ref().expect("an entry").file_name();
            !name.to_string_lossy().starts_with('.')
        });
    assert_eq!(documents.count(), store.list(None).expect("a list").len());
}
