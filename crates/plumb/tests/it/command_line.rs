//! `plumb run`: what is read, refused and printed without running anything.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::program::{call, outcome, path, plumb, repository};

#[test]
fn a_wrong_option_is_pointed_at() {
    let outcome = plumb("run -b4K -q f").ends_with(3);
    assert_eq!(outcome.stdout, "");
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert!(lines[0].starts_with("error: "), "{}", outcome.stderr);
    assert!(lines.contains(&"incorrectly provided option: '-q'"), "{}", outcome.stderr);
    let shown = lines.iter().position(|line| *line == "  plumb run -b4K -q f").expect("the line");
    let mark = lines[shown + 1].find('^').expect("a mark");
    assert_eq!(&lines[shown][mark..=mark + 1], "-q");
    assert!(lines.iter().any(|line| line.starts_with("help: ")), "{}", outcome.stderr);
}

#[test]
fn broken_rules_and_missing_targets_are_refused() {
    for (line, word) in [
        ("run -b4K", "target"),
        ("run -i5 f", "-j"),
        ("run -Rp -F2 -t2 f", "thread"),
        ("run f -b4K", "-b4K"),
        ("run --bogus f", "--bogus"),
        ("run -Xno-such-profile.xml", "no-such-profile.xml"),
    ] {
        let outcome = plumb(line).ends_with(3);
        assert_eq!(outcome.stdout, "", "{line}");
        assert!(outcome.stderr.contains(word), "{line}: {}", outcome.stderr);
    }
}

#[test]
fn a_program_gets_errors_as_objects() {
    for (line, class, token) in [
        ("run --error-format=json -b0 f", "block-size", "-b0"),
        ("run -b4K -q --error-format=json f", "unknown-option", "-q"),
    ] {
        let outcome = plumb(line).ends_with(3);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        let error: Value = serde_json::from_str(&outcome.stderr).expect("an object");
        assert_eq!(error["error_class"], class, "{line}");
        assert_eq!(error["token"], token, "{line}");
        for key in ["message", "help"] {
            assert!(error[key].as_str().is_some_and(|text| !text.is_empty()), "{line}: {error}");
        }
    }
}

#[test]
fn warnings_go_to_standard_error_and_stop_nothing() {
    // Characters that are left over after a number (D-17).
    let outcome = plumb("run -Rp -t4x f").ends_with(0);
    assert!(outcome.stderr.starts_with("warning: "), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("threads per file: 4\n"), "{}", outcome.stdout);
    let outcome = plumb("run --error-format=json -Rp -t4x f").ends_with(0);
    assert!(!outcome.stderr.is_empty());
    for line in outcome.stderr.lines() {
        let warning: Value = serde_json::from_str(line).expect("an object");
        assert_eq!(warning["severity"], "warning");
    }
}

#[test]
fn colours_need_a_terminal() {
    // Standard error is a pipe here, whatever TERM says.
    let mut command = Command::new(path());
    let outcome = outcome(command.args(["run", "-q", "f"]).env("TERM", "xterm-256color"));
    assert!(!outcome.stderr.contains('\x1b'), "{}", outcome.stderr);
}

#[test]
fn profiles_are_printed_as_text_xml_and_json() {
    let text = plumb("run -Rptext -b8K -r -w30 -t2 -o8 f.dat").succeeds_quietly().stdout;
    assert!(text.contains("\t\tusing random I/O (alignment: 8KiB)\n"), "{text}");

    let xml = plumb("run -Rpxml -b8K -r -w30 -t2 -o8 f.dat").succeeds_quietly().stdout;
    assert!(xml.starts_with("<Profile>\n") && xml.ends_with("</Profile>\n"), "{xml}");
    assert!(xml.contains("<WriteRatio>30</WriteRatio>\n"), "{xml}");

    let json = plumb("run --profile-json -b8K -r -w30 -t2 -o8 f.dat").succeeds_quietly().stdout;
    let json: Value = serde_json::from_str(&json).expect("an object");
    assert_eq!(json["TimeSpans"][0]["Targets"][0]["BlockSize"], 8192);
}

#[test]
fn an_output_of_nothing_is_said_to_have_no_effect() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("result.json");
    for print in ["-Rp", "--profile-json"] {
        let line = format!("run {print} --output json={} -b8K f.dat", file.display());
        let outcome = plumb(&line).ends_with(0);
        assert!(outcome.stderr.contains("--output has no effect"), "{print}: {}", outcome.stderr);
        assert!(!file.exists(), "{print}");
    }
}

#[test]
fn a_profile_that_was_printed_says_the_same_when_it_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.xml");
    let options = "-b8K -r4K -rs70 -rdpct90/10 -w30 -t2 -o8 -d3 -W1 -L -D250 -Sh -z7 -Z1M";
    let written = plumb(&format!("run -Rpxml {options} f.dat")).succeeds_quietly().stdout;
    fs::write(&file, &written).expect("the profile is written");
    let read = plumb(&format!("run -Rpxml -X{}", file.display())).succeeds_quietly().stdout;
    assert_eq!(read, written);
}

#[test]
fn every_example_profile_takes_its_target_from_the_command_line() {
    let folder = repository().join("examples/profiles");
    for entry in fs::read_dir(folder).expect("examples/profiles is there") {
        let profile = entry.expect("an entry").path();
        let option = format!("-X{}", profile.display());
        let outcome = call(path(), &["run", "-Rptext", &option, "d a t a"]).succeeds_quietly();
        assert!(outcome.stdout.contains("\tpath: 'd a t a'\n"), "{}", outcome.stdout);
        call(path(), &["run", &option]).ends_with(3);
    }
}

#[test]
fn events_that_do_not_exist_cannot_be_signalled() {
    let name = format!("plumb-test-{}", std::process::id());
    let outcome = plumb(&format!("run -ye{name}")).ends_with(1);
    assert!(outcome.stderr.contains(&name), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn an_event_is_signalled_and_the_program_ends_with_1() {
    use plumb_io::event::{Event, EventFolder};

    let name = format!("plumb-test-signal-{}", std::process::id());
    let event = Event::create(&EventFolder::of_user(), &name).expect("an event");
    let outcome = plumb(&format!("run -ye{name}")).ends_with(1);
    // The spelling is upstream's (spec 3.6).
    assert_eq!(outcome.stdout, format!("Succesfully set event: '{name}'\nNow exiting...\n"));
    assert!(event.is_signalled().expect("it can be asked"));
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let script = format!("{} help | head -1; exit ${{PIPESTATUS[0]}}", path().display());
    let outcome = outcome(Command::new("bash").args(["-c", &script])).succeeds_quietly();
    assert_eq!(outcome.stdout.lines().count(), 1);
}

#[test]
fn a_full_disk_is_a_failure() {
    let script = format!("{} help > /dev/full", path().display());
    let outcome = outcome(Command::new("sh").args(["-c", &script])).ends_with(1);
    assert!(outcome.stderr.starts_with("error: cannot write to standard output\n"));
}
