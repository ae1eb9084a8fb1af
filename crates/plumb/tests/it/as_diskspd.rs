//! Runs under the name diskspd: its rules for existing files, its report and nothing else.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use plumb_load::convert::{read_text, read_xml};

use crate::place::{Place, noise};
use crate::program::{Outcome, outcome, path};
use crate::rights::Loop;

/// A place with a link to the program, and a file that somebody else wrote.
fn place() -> (Place, PathBuf) {
    let place = Place::new();
    let link = place.path("diskspd");
    symlink(path(), &link).expect("a link");
    place.write("f.dat", noise(1 << 20));
    (place, link)
}

impl Place {
    fn diskspd(&self, line: &str) -> Outcome {
        outcome(&mut self.program(&self.path("diskspd"), line))
    }
}

#[test]
fn the_report_is_diskspds_and_plumbs_part_is_on_standard_error() {
    let (place, link) = place();
    let line = "-b4K -r -o4 -t2 -d1 -W0 -L -D100 f.dat";
    let outcome = place.diskspd(line).ends_with(0);
    let text = outcome.stdout;
    assert!(text.starts_with(&format!("\nCommand Line: {} {line}\n", link.display())), "{text}");
    assert!(text.ends_with('\n'), "{text}");
    let last = text.lines().last().expect("a report");
    assert!(last.starts_with("    max | "), "the table of latencies is the last: {last}");
    for word in ["lausib", "engine", "uring (", "plumb", "Plumb", "[!!]"] {
        let shown = text.replace(&link.display().to_string(), "");
        assert!(!shown.contains(word), "{word}: {text}");
    }
    assert!(read_text(&text).expect("a report").time_spans[0].reads().1 > 0);
    assert!(outcome.stderr.contains("engine: "), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("time span 1/1"), "no progress unless asked");
}

#[test]
fn an_xml_result_has_nothing_of_plumbs_either() {
    let (place, _) = place();
    let line = "-b4K -r -o4 -t2 -d1 -W0 -L -Rxml f.dat";
    let outcome = place.diskspd(line).ends_with(0);
    let xml = outcome.stdout;
    assert!(xml.starts_with("<Results>\n") && xml.ends_with("</Results>"), "{xml}");
    assert!(!xml.contains("lausib"), "{xml}");
    assert!(read_xml(&xml).expect("a result").time_spans[0].reads().1 > 0);
    assert!(outcome.stderr.contains("Plausibility"), "{}", outcome.stderr);
    assert!(place.run(line).ends_with(0).stdout.contains("<Plausibility "));
}

/// DISKSPD's rule is about files: what a device holds is as safe as ever.
#[test]
fn devices_keep_the_gate() {
    let name = "devices_keep_the_gate";
    let (place, _) = place();
    place.write("disk.dat", vec![0; 16 << 20]);
    let file = place.path("disk.dat");
    let made = std::process::Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&file).output();
    if !made.is_ok_and(|made| made.status.success()) {
        println!("skipped {name}: mkfs.ext4 is not there");
        return;
    }
    let Some(device) = Loop::attach(&file) else {
        println!("skipped {name}: no loop device");
        return;
    };
    let before = place.read("disk.dat");
    let line = format!("-b4K -w100 -d1 -W0 {}", device.path());
    let refused = place.diskspd(&line).ends_with(3).stderr;
    assert!(refused.contains("ext4") && refused.contains("--destroy"), "{refused}");
    assert!(place.read("disk.dat") == before, "nothing was written");
}

#[test]
fn beside_errors_for_programs_everything_is_an_object() {
    let (place, _) = place();
    for outcome in [
        place.diskspd("--error-format=json -L -b4K -p -o1 -d1 -W0 f.dat"),
        place.run("--error-format=json -L -b4K -p -o1 -d1 -W0 f.dat"),
    ] {
        let outcome = outcome.ends_with(0);
        assert!(outcome.stderr.contains("-p has no effect"), "{outcome:?}");
        for line in outcome.stderr.lines() {
            let object: serde_json::Value = serde_json::from_str(line).expect(line);
            assert!(object["severity"].is_string() && object["message"].is_string(), "{line}");
        }
    }
    let said = place.diskspd("--error-format=json -b4K -d0 -W0 f.dat").ends_with(0).stderr;
    assert!(said.contains("Plausibility"), "{said}");
}

#[test]
fn its_help_calls_it_by_its_name() {
    let (place, program) = place();
    let usage = place.diskspd("-?").ends_with(0).stdout;
    let name = program.display();
    assert!(usage.starts_with(&format!("Usage: {name} [options] target...\n")), "{usage}");
    assert!(!usage.contains("  plumb run "), "{usage}");
    let usage = place.run("-?").ends_with(0).stdout;
    assert!(usage.starts_with("Usage: plumb run [options] target...\n"), "{usage}");
}

#[test]
fn regular_files_are_overwritten_without_a_question() {
    let (place, _) = place();
    let before = place.read("f.dat");
    let outcome = place.diskspd("-b4K -w100 -d1 -W0 f.dat").ends_with(0);
    assert!(!outcome.stderr.contains("warning"), "{}", outcome.stderr);
    assert_ne!(place.read("f.dat"), before);
    place.diskspd("-c64K -b4K -d0 -W0 f.dat").ends_with(0);
    assert_eq!(place.read("f.dat").len(), 64 << 10);
    // By the name plumb the same file is another's, until Plumb makes it itself.
    place.write("g.dat", noise(1 << 20));
    place.run("-b4K -w100 -d1 -W0 g.dat").ends_with(3);
    outcome_of_subcommand(&place).ends_with(0);
}

/// `plumb diskspd` has the same rules.
fn outcome_of_subcommand(place: &Place) -> Outcome {
    outcome(&mut place.program(path(), "diskspd -b4K -w100 -d0 -W0 g.dat"))
}

#[test]
fn documents_and_interruptions_are_as_with_diskspd() {
    let (place, link) = place();
    let outcome = place.diskspd("-b4K -r -o4 -d1 -W0 -Rxml f.dat").ends_with(0);
    assert!(outcome.stdout.starts_with("<Results>\n") && outcome.stdout.ends_with("\n</Results>"));
    assert!(read_xml(&outcome.stdout).expect("a result").time_spans[0].reads().1 > 0);

    let line = "--progress-style=json -b4K -r -o4 -d60 -W0 f.dat";
    let run = crate::place::Running::new(place.program(&link, line));
    let ended = run.phase("measuring").interrupt().with(0);
    let told = "\n*** Interrupted by Ctrl-C. Stopping I/O Request Generator. ***\n\nCommand Line: ";
    assert!(ended.stdout.starts_with(told), "{}", ended.stdout);
    assert!(!ended.stdout.contains("[!!]"), "{}", ended.stdout);
    assert!(ended.stderr.contains("[!!] The run was interrupted"), "{}", ended.stderr);
}

#[test]
fn failures_are_as_with_diskspd() {
    let (place, _) = place();
    let outcome = place.diskspd("-b4K -d1 -W0 none.dat").ends_with(1);
    assert!(outcome.stderr.contains("'none.dat'"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("\nError generating I/O requests\n"), "{}", outcome.stderr);
    assert!(!outcome.stdout.contains("[!!]"), "{}", outcome.stdout);
    let outcome = place.diskspd("-b4K -q f.dat").ends_with(3);
    assert!(outcome.stderr.contains("incorrectly provided option: '-q'"), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "");
}
