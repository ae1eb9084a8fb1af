//! A mark's life, two writers at once, and texts that are no mark.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::*;

struct Fixture {
    folder: tempfile::TempDir,
    tree: SystemTree,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, tree: SystemTree::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("target")
    }

    fn create(&self) -> File {
        let file = File::create(self.path()).expect("a file");
        file.set_len(8192).expect("a length");
        file
    }

    fn standing(&self) -> Standing {
        let file = File::open(self.path()).expect("the file");
        verify(file.as_fd(), &self.path(), &self.tree).expect("readable")
    }
}

fn check_life(fixture: &Fixture) {
    let path = fixture.path();
    let file = fixture.create();
    assert_eq!(fixture.standing(), Standing::Unmarked);

    begin(file.as_fd(), &path, &fixture.tree).expect("marked");
    let process = std::process::id();
    assert_eq!(fixture.standing(), Standing::BeingWritten { process });
    file.write_all_at(b"plumb", 0).expect("written");
    seal(file.as_fd(), &path, &fixture.tree).expect("sealed");
    assert_eq!(fixture.standing(), Standing::Intact);

    // The same length, other bytes, another time.
    let before = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
    file.write_all_at(b"other", 0).expect("written");
    file.set_modified(before + std::time::Duration::from_nanos(1)).expect("a time");
    assert!(matches!(fixture.standing(), Standing::Changed(why) if why.contains("written to")));

    seal(file.as_fd(), &path, &fixture.tree).expect("sealed");
    assert_eq!(fixture.standing(), Standing::Intact);
    let before = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
    file.set_len(4096).expect("a length");
    file.set_modified(before).expect("a time");
    assert!(matches!(fixture.standing(), Standing::Changed(why) if why.contains("8192 bytes")));

    remove(file.as_fd(), &path).expect("removed");
    remove(file.as_fd(), &path).expect("removed");
    assert_eq!(fixture.standing(), Standing::Unmarked);
}

#[test]
fn a_mark_lives_and_dies_with_what_plumb_left() {
    check_life(&Fixture::new());
}

/// Mounts that undo themselves.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(std::process::Command::new("umount").arg(&self.0).status());
    }
}

#[test]
fn without_attributes_the_mark_lies_beside() {
    let fixture = Fixture::new();
    // ramfs has no user attributes.
    let mounted = std::process::Command::new("mount")
        .args(["-t", "ramfs", "ramfs"])
        .arg(fixture.folder.path())
        .stderr(std::process::Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!("skipped without_attributes_the_mark_lies_beside: mounting needs root");
        return;
    }
    let _mounted = Mounted(fixture.folder.path().to_owned());
    check_life(&fixture);

    // Another file under the same name is not the one that was marked.
    let file = fixture.create();
    seal(file.as_fd(), &fixture.path(), &fixture.tree).expect("sealed");
    assert!(beside(&fixture.path()).exists());
    assert_eq!(fixture.standing(), Standing::Intact);
    let keep = fixture.folder.path().join("keep");
    fs::rename(fixture.path(), keep).expect("renamed");
    fixture.create();
    assert_eq!(fixture.standing(), Standing::Unmarked);
}

/// Stores a text as the mark.
fn store_text(fixture: &Fixture, text: &str) {
    let file = File::open(fixture.path()).expect("the file");
    let stored = rustix::fs::fsetxattr(&file, ATTRIBUTE, text.as_bytes(), XattrFlags::empty());
    if stored == Err(Errno::OPNOTSUPP) {
        let about = identity(file.as_fd()).expect("its identity");
        fs::write(beside(&fixture.path()), format!("{text} {about}\n")).expect("a mark beside");
    } else {
        stored.expect("a mark");
    }
}

#[test]
fn a_writer_that_is_gone_leaves_it_unfinished() {
    let fixture = Fixture::new();
    let file = fixture.create();
    let gone = Writer { started: 1, ..Writer::this_process(&fixture.tree) };
    for mark in [
        Mark::Writing(vec![gone]),
        Mark::Writing(vec![Writer { boot: "x".into(), ..Writer::this_process(&fixture.tree) }]),
    ] {
        store_text(&fixture, &mark.text());
        assert_eq!(fixture.standing(), Standing::Unfinished);
    }
    // A later run that was told to destroy it makes it good again.
    seal(file.as_fd(), &fixture.path(), &fixture.tree).expect("sealed");
    assert_eq!(fixture.standing(), Standing::Intact);
}

#[test]
fn what_was_never_whole_says_so_once_its_maker_is_gone() {
    let fixture = Fixture::new();
    let file = fixture.create();
    begin_making(file.as_fd(), &fixture.path(), &fixture.tree).expect("marked");
    let process = std::process::id();
    assert_eq!(fixture.standing(), Standing::BeingWritten { process });
    let gone = Writer { started: 1, ..Writer::this_process(&fixture.tree) };
    store_text(&fixture, &Mark::Making(gone).text());
    assert_eq!(fixture.standing(), Standing::HalfMade);
}

/// Our parent: a live process that is not this one.
fn another(tree: &SystemTree) -> Writer {
    let process = std::os::unix::process::parent_id();
    let started = started(tree, &process.to_string()).expect("our parent is alive");
    Writer { process, started, boot: boot(tree) }
}

#[test]
fn the_last_of_two_writers_seals_whichever_came_first() {
    let fixture = Fixture::new();
    let (path, tree) = (fixture.path(), &fixture.tree);
    let pair = [Writer::this_process(tree), another(tree)];
    for [first, second] in [pair.clone(), [pair[1].clone(), pair[0].clone()]] {
        for [sooner, later] in [[&first, &second], [&second, &first]] {
            let file = fixture.create();
            enter(file.as_fd(), &path, tree, first.clone()).expect("entered");
            enter(file.as_fd(), &path, tree, second.clone()).expect("entered");
            leave(file.as_fd(), &path, tree, sooner).expect("struck out");
            let process = later.process;
            assert_eq!(fixture.standing(), Standing::BeingWritten { process });
            // What the other one still writes is Plumb's doing.
            file.write_all_at(b"plumb", 4096).expect("written");
            leave(file.as_fd(), &path, tree, later).expect("sealed");
            assert_eq!(fixture.standing(), Standing::Intact);
        }
    }
}

#[test]
fn as_many_runs_as_are_entered_fit_into_a_mark() {
    let boot = "0123abcd-0123-4567-89ab-0123456789ab".to_owned();
    let writer = Writer { boot, process: u32::MAX, started: u64::MAX };
    let mark = Mark::Writing(vec![writer; WRITERS_MAX]);
    assert!(mark.text().len() <= LENGTH_MAX, "{}", mark.text().len());
    assert_eq!(Mark::parse(&mark.text()), Some(mark));
}

#[test]
fn what_is_no_mark_is_not_understood() {
    let fixture = Fixture::new();
    fixture.create();
    let long = "1".repeat(LENGTH_MAX + 1);
    for text in
        ["", "2 size=1 changed=1.0", "1 size=x changed=1.0", "1 writer=a/b/c", "1 writer=", &long]
    {
        store_text(&fixture, text);
        assert_eq!(fixture.standing(), Standing::Unreadable, "{text:?}");
    }
}

#[test]
fn marks_round_trip() {
    let writer = Writer { boot: "8e-1".into(), process: 7, started: 99 };
    let state = |changed| Mark::Made(State { size: u64::MAX, changed });
    for mark in [Mark::Writing(vec![writer]), state((1_700_000_000, 5)), state((-1, 999_999_999))] {
        assert_eq!(Mark::parse(&mark.text()).as_ref(), Some(&mark), "{}", mark.text());
    }
}
