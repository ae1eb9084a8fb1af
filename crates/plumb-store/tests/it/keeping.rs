//! Keeping, finding and removing runs.

use std::fs;

use plumb_store::{Store, StoreError, StudyEntry};

use crate::runs::run;

#[test]
fn what_is_kept_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let first = store.add(run("nightly", 1000.0)).expect("kept");
    let second = store.add(run("", 2000.0)).expect("kept");
    let kept = store.read(&first).expect("a document");
    assert_eq!((kept.label.as_deref(), kept.summary.iops), (Some("nightly"), Some(1000.0)));
    assert_eq!(kept.result["big"][1999], 1);
    assert_eq!(kept.arguments.as_deref().map(<[String]>::len), Some(2));

    let again = Store::open(folder.path()).expect("a store");
    let ids: Vec<String> =
        again.list(None).expect("a list").into_iter().map(|run| run.id).collect();
    let mut wanted = vec![first.clone(), second.clone()];
    wanted.sort();
    assert_eq!(ids, wanted);
    assert_eq!(again.resolve("latest").expect("the newest"), wanted[1]);
    assert_eq!(again.resolve("latest~1").expect("the one before"), wanted[0]);
    assert_eq!(again.resolve("nightly").expect("by label"), first);
    assert_eq!(again.resolve(&second).expect("by id"), second);
    assert_eq!(again.resolve(&second[..second.len() - 1]).expect("by its beginning"), second);
    assert!(matches!(again.resolve("2"), Err(StoreError::Ambiguous { .. })));
    for name in ["weekly", "latest~7", "nightly~1", "", "latest~x"] {
        assert!(matches!(again.resolve(name), Err(StoreError::Unknown { .. })), "{name}");
    }

    again.remove(&first).expect("removed");
    assert!(matches!(again.remove(&first), Err(StoreError::Files { .. })));
    assert!(matches!(store.read(&first), Err(StoreError::Unknown { .. })));
    assert_eq!(store.list(Some("nightly")).expect("a list"), []);
}

#[test]
fn studies_are_entered_replaced_and_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let entry = |id: &str, stamp: &str, created: &str| StudyEntry {
        id: id.into(),
        stamp: stamp.into(),
        created: created.into(),
        summary: serde_json::json!({ "kind": "baseline", "stamp": stamp }),
    };
    store.enter_study(&entry("b", "1", "2026-02-01")).expect("entered");
    store.enter_study(&entry("a", "1", "2026-03-01")).expect("entered");
    store.enter_study(&entry("b", "2", "2026-02-01")).expect("entered");
    let again = Store::open(folder.path()).expect("a store");
    let found = again.studies().expect("a list");
    assert_eq!(found, [entry("b", "2", "2026-02-01"), entry("a", "1", "2026-03-01")]);
    again.forget_study("b").expect("forgotten");
    assert_eq!(store.studies().expect("a list").len(), 1);
    assert_eq!(store.list(None).expect("a list"), []);
}

#[test]
fn the_catalogue_is_made_anew_from_the_documents() {
    let folder = tempfile::tempdir().expect("a folder");
    let id = Store::open(folder.path()).expect("a store").add(run("a", 1.0)).expect("kept");
    let catalogue = folder.path().join("catalogue.sqlite");
    for damage in [&b"this is no database, however long one looks at it"[..], b""] {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(folder.path().join(format!("catalogue.sqlite{suffix}")));
        }
        fs::write(&catalogue, damage).expect("damaged");
        let store = Store::open(folder.path()).expect("a store");
        assert_eq!(store.resolve("a").expect("found"), id);
    }
    fs::remove_file(&catalogue).expect("removed");
    fs::write(folder.path().join("runs/zz.json"), "{ half").expect("a file");
    let store = Store::open(folder.path()).expect("a store");
    assert_eq!(store.list(None).expect("a list").len(), 1);
    assert_eq!(store.damaged(), [folder.path().join("runs/zz.json")]);

    fs::remove_file(store.path(&id)).expect("removed by hand");
    let store = Store::open(folder.path()).expect("a store");
    assert_eq!(store.list(None).expect("a list"), []);
}

/// Each page but the first: rows, the index by label, and what says where rows are.
#[test]
fn a_catalogue_with_a_rotten_page_is_made_anew() {
    const PAGE: usize = 4096;
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    for n in 0..40 {
        store.add(run(["lab", "field"][n % 2], n as f64)).expect("kept");
    }
    let listed = |store: &Store, label| store.list(label).expect("a list");
    let (all, lab) = (listed(&store, None), listed(&store, Some("lab")));
    drop(store);
    let catalogue = folder.path().join("catalogue.sqlite");
    let whole = fs::read(&catalogue).expect("a catalogue");
    assert!(whole.len() >= 4 * PAGE, "{} bytes", whole.len());
    for start in (PAGE..whole.len()).step_by(PAGE) {
        let mut rotten = whole.clone();
        rotten[start..start + PAGE].fill(0xA5);
        fs::write(&catalogue, rotten).expect("damaged");
        let store = Store::open(folder.path()).expect("a store");
        assert_eq!(listed(&store, None), all, "page at {start}");
        assert_eq!(listed(&store, Some("lab")), lab, "page at {start}");
        assert_eq!(store.resolve("lab~19").expect("the oldest"), lab[0].id);
    }
}

#[test]
fn documents_of_later_versions_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let id = store.add(run("", 1.0)).expect("kept");
    let path = store.path(&id);
    let text = fs::read_to_string(&path).expect("a document");
    let member = "\"store_version\":1";
    assert!(text.contains(member));
    fs::write(&path, text.replace(member, "\"store_version\":99")).expect("written");
    assert!(matches!(store.read(&id), Err(StoreError::TooNew { .. })));

    // What a later version of the same shape adds stays when it is read.
    fs::write(&path, text.replace(member, "\"store_version\":1,\"mood\":\"good\""))
        .expect("written");
    assert_eq!(store.read(&id).expect("a document").more["mood"], "good");
}
