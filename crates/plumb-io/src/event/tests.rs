//! Events within a process, between two, and after one that was killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::*;

fn folder() -> (tempfile::TempDir, EventFolder) {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = EventFolder::at(parent.path().join("events"));
    (parent, folder)
}

fn files(folder: &EventFolder) -> Vec<String> {
    let entries = std::fs::read_dir(&folder.0).expect("the folder");
    entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn an_event_is_unsignalled_at_first_and_signalled_for_good() {
    let (_parent, folder) = folder();
    let event = Event::create(&folder, "start").expect("created");
    assert!(!event.is_signalled().expect("readable"));
    let other = Event::open(&folder, "start").expect("opened");
    other.signal().expect("signalled");
    drop(other);
    assert_eq!(event.wait(|| false).expect("waited"), Wait::Signalled);
    assert_eq!(event.wait(|| true).expect("waited"), Wait::Signalled);
    // A second one of the same name sees the same state.
    assert!(Event::create(&folder, "start").expect("opened").is_signalled().expect("readable"));
}

#[test]
fn the_last_one_removes_it() {
    let (_parent, folder) = folder();
    let one = Event::create(&folder, "a").expect("created");
    let two = Event::create(&folder, "a").expect("opened");
    one.signal().expect("signalled");
    drop(one);
    assert!(two.is_signalled().expect("readable"));
    assert_eq!(files(&folder), ["a.event"]);
    drop(two);
    assert!(files(&folder).is_empty());
    assert!(matches!(Event::open(&folder, "a"), Err(EventError::NotFound { .. })));
    assert!(!Event::create(&folder, "a").expect("created").is_signalled().expect("readable"));
}

#[test]
fn a_leftover_of_a_crash_is_made_anew() {
    let (_parent, folder) = folder();
    folder.make().expect("made");
    std::fs::write(folder.0.join("stop.event"), "1").expect("a leftover");
    assert!(!Event::create(&folder, "stop").expect("created").is_signalled().expect("readable"));

    std::fs::write(folder.0.join("stop.event"), "1").expect("a leftover");
    assert!(matches!(Event::open(&folder, "stop"), Err(EventError::NotFound { .. })));
    assert!(files(&folder).is_empty());
}

#[test]
fn names_that_cannot_be_are_refused() {
    let (_parent, folder) = folder();
    for name in ["", "a/b", "a\0b", &"x".repeat(NAME_MAX + 1)] {
        assert!(matches!(Event::create(&folder, name), Err(EventError::Name { .. })), "{name:?}");
        assert!(matches!(Event::open(&folder, name), Err(EventError::Name { .. })), "{name:?}");
    }
    for name in ["..", ".", "Global\\stop", "ä", &"x".repeat(NAME_MAX)] {
        Event::create(&folder, name).expect(name);
    }
}

#[test]
fn a_folder_that_others_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (parent, folder) = folder();
    folder.make().expect("made");
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o777)).expect("opened up");
    assert!(matches!(Event::create(&folder, "a"), Err(EventError::Folder { .. })));

    let link = parent.path().join("link");
    std::os::unix::fs::symlink(parent.path(), &link).expect("a link");
    assert!(matches!(Event::create(&EventFolder::at(link), "a"), Err(EventError::Folder { .. })));
}

#[test]
fn a_wait_stops_when_asked() {
    let (_parent, folder) = folder();
    let event = Event::create(&folder, "never").expect("created");
    let mut asked = 0;
    let outcome = event.wait(|| {
        asked += 1;
        asked > 2
    });
    assert_eq!(outcome.expect("waited"), Wait::Stopped);
}

#[test]
fn many_openers_and_closers_leave_nothing_behind() {
    let (_parent, folder) = folder();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let event = Event::create(&folder, "busy").expect("created");
                    assert!(event.is_in_place(), "what is open is never removed");
                }
            });
        }
    });
    assert!(files(&folder).is_empty());
}

/// The test below, run in a process of its own: it obeys one word per line.
struct Other(Child, BufReader<std::process::ChildStdout>);

const ROLE: &str = "PLUMB_TEST_EVENT_FOLDER";

impl Other {
    fn start(folder: &EventFolder) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "event::tests::two_processes_meet", "--nocapture"])
            .env(ROLE, &folder.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a second process");
        let stdout = child.stdout.take().expect("its output");
        Self(child, BufReader::new(stdout))
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.0.stdin.as_ref().expect("its input"), "{word}").expect("told");
    }

    /// Tells and waits for the answer, past what the test harness prints.
    fn ask(&mut self, word: &str, answer: &str) {
        self.tell(word);
        let mut line = String::new();
        while !line.trim_end().ends_with(answer) {
            line.clear();
            assert_ne!(self.1.read_line(&mut line).expect("an answer"), 0, "no {answer}");
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What the second process does.
fn obey(folder: &EventFolder) {
    let mut event = None;
    for line in std::io::stdin().lines() {
        let answer = match line.expect("a line").as_str() {
            "create" => {
                event = Some(Event::create(folder, "meet").expect("created"));
                "did-create"
            }
            "wait" => {
                let event = event.as_ref().expect("created before");
                event.wait(|| false).expect("waited");
                "did-wait"
            }
            "signal" => {
                Event::open(folder, "meet").expect("opened").signal().expect("signalled");
                "did-signal"
            }
            other => panic!("what is {other}?"),
        };
        println!("{answer}");
    }
}

#[test]
fn two_processes_meet() {
    if let Some(folder) = std::env::var_os(ROLE) {
        return obey(&EventFolder::at(PathBuf::from(folder)));
    }
    let (_parent, folder) = folder();
    let mut other = Other::start(&folder);
    other.ask("create", "did-create");

    // We signal, it waits; the event survives our closing it.
    other.tell("wait");
    Event::open(&folder, "meet").expect("it exists").signal().expect("signalled");
    other.ask("signal", "did-signal");
    assert!(Event::open(&folder, "meet").expect("it exists").is_signalled().expect("readable"));

    // It is killed: the event is no more, although its file is.
    other.0.kill().expect("killed");
    other.0.wait().expect("ended");
    assert_eq!(files(&folder), ["meet.event"]);
    assert!(matches!(Event::open(&folder, "meet"), Err(EventError::NotFound { .. })));

    // It signals while we wait.
    let event = Event::create(&folder, "meet").expect("created");
    let mut second = Other::start(&folder);
    second.tell("signal");
    let start = Instant::now();
    let outcome = event.wait(|| start.elapsed() > Duration::from_secs(30));
    assert_eq!(outcome.expect("waited"), Wait::Signalled);
    drop(second);
    drop(event);
    assert!(files(&folder).is_empty());
}
