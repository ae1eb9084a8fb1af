//! What cannot be run: refused with a message that names the object, the value and a way out, and
//! nothing is left behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use plumb_load::convert::{ImportedSpan, read_text, read_xml};

use crate::place::{Place, can, noise};
use crate::program::{Outcome, outcome, path};
use crate::rights::as_somebody_else;

/// A run that must fail so; what it said on standard error.
#[track_caller]
fn check(outcome: Outcome, status: i32, words: &[&str]) {
    let Outcome { stdout, stderr, .. } = outcome.ends_with(status);
    for word in words {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    assert!(stderr.contains("error: ") && stderr.contains("\nhelp: "), "{stderr}");
    if status == 3 {
        assert_eq!(stdout, "", "nothing was run, nothing is reported");
    } else {
        let report = read_text(&stdout).expect("a report that says that nothing was measured");
        assert!(report.time_spans.iter().all(ImportedSpan::is_interrupted), "{stdout}");
        assert!(stderr.ends_with("\nError generating I/O requests\n"), "{stderr}");
    }
}

#[test]
fn wrong_lines_end_with_3() {
    let place = Place::new();
    for (line, words) in [
        ("-g100 -x f", &["-g", "-x"][..]),
        ("-u -x f", &["-u", "-x"]),
        ("-Sm -u f", &["-u", "-Sm"]),
        ("-Sb -Su f", &["-Su"]),
        ("-Sh -Sw f", &["-Sw"]),
        ("-Smu f", &["-Smu"]),
        ("-n -a0 f", &["-n", "-a"]),
        ("-r -T4K -t2 f", &["-T"]),
        ("-F2 -t2 f", &["-F", "-t"]),
        ("-i5 f", &["-i", "-j"]),
        ("-Nv f", &["-N", "-Sm"]),
        ("-b8K -Z4K -w100 f", &["-Z", "8"]),
        ("-B8K -f4K f", &["-f"]),
        ("-w101 f", &["-w101"]),
        ("-b0 f", &["-b0"]),
        ("-o0 f", &["-o0"]),
        ("-d-1 f", &["-d-1"]),
        ("--engine=warp f", &["warp"]),
        ("--batch=0 f", &["--batch"]),
        ("--output=yaml=r f", &["yaml"]),
        ("*1", &["*1"]),
        ("f -b4K", &["-b4K"]),
        ("-b 4K -d1 f", &["'4K'", "same token: -b4K"]),
        ("-i10 f", &["  plumb run --progress-style=none -i10 f\n", "^^^^"]),
        ("-a63 f", &["CPU 63", "online"]),
        ("-ag9 f", &["group 9"]),
        ("-b4K", &["target"]),
    ] {
        check(place.run(line), 3, words);
    }
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn what_is_no_target_is_named() {
    let place = Place::new();
    place.write("empty", "");
    fs::create_dir(place.path("folder")).expect("a folder");
    symlink("nowhere", place.path("dangling")).expect("a link");
    place.pipe("pipe");
    let before = place.names();
    for (line, words) in [
        ("none.dat", &["'none.dat'", "No such file", "-c"][..]),
        ("none/none.dat", &["'none/none.dat'", "No such file"]),
        ("dangling", &["'dangling'", "No such file"]),
        ("empty/x", &["'empty/x'", "Not a directory"]),
        ("folder", &["'folder' is a directory", "folder/testfile.dat"]),
        ("-w100 folder", &["'folder' is a directory"]),
        ("-c1M folder", &["'folder' is a directory"]),
        ("empty", &["'empty' is empty", "0 bytes", "-c"]),
        ("-w100 empty", &["'empty' is empty", "0 bytes", "-c"]),
        ("/dev/null", &["'/dev/null' is a character device"]),
        ("-c1M /dev/null", &["'/dev/null' is a character device"]),
        ("pipe", &["'pipe' is a named pipe"]),
        ("#1", &["'#1'", "/dev/disk/by-id", "PLUMB_DRIVE_1", "./#1"]),
        ("d:", &["'d:'", "/dev/disk/by-id", "PLUMB_DRIVE_D", "./d:"]),
        ("-c1M d:", &["'d:'", "/dev/disk/by-id"]),
    ] {
        check(place.run(&format!("-d1 -W0 {line}")), 1, words);
    }
    assert_eq!(place.names(), before);
}

#[test]
fn a_drive_letter_can_be_given_a_meaning() {
    let place = Place::new();
    place.write("disk.dat", noise(1 << 20));
    let mut command = place.command("-d0 -W0 #7 q:");
    command.env("PLUMB_DRIVE_7", "disk.dat").env("PLUMB_DRIVE_Q", "disk.dat");
    outcome(&mut command).succeeds_quietly();
}

#[test]
fn a_target_without_room_is_told_with_its_numbers() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    for (line, words) in [
        ("-b2M f.dat", &["'f.dat'", "1048576", "2097152", "-b"][..]),
        ("-b4K -B1M f.dat", &["'f.dat'", "base offset 1048576"]),
        ("-b4K -B1023K f.dat", &["'f.dat'", "base offset 1047552"]),
        ("-b64K -f32K f.dat", &["'f.dat'", "65536"]),
        ("-b4K -s4K -t3 -T512K f.dat", &["relative thread 2", "thread stride 524288"]),
        ("-b4K -r -B2M f.dat", &["'f.dat'", "base offset 2097152"]),
        // Before a file is made that would be of no use.
        ("-c64K -b1M new.dat", &["'new.dat'", "65536", "1048576"]),
    ] {
        check(place.run(&format!("-d1 -W0 {line}")), 1, words);
    }
    assert_eq!(place.names(), ["f.dat"]);
}

#[test]
fn unaligned_direct_io_is_told_before_the_first_one() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    if !can("unaligned_direct_io_is_told_before_the_first_one", "-Su") {
        return;
    }
    for (line, what, value) in [
        ("-Su -b1000 f.dat", "block size (-b)", "1000 bytes"),
        ("-Sh -b4K -s1000 f.dat", "(-r, -s)", "1000 bytes"),
        ("-Suw -b4K -r100 f.dat", "(-r, -s)", "100 bytes"),
        ("-Su -b4K -B100 f.dat", "base offset (-B)", "100 bytes"),
        ("-Su -b4K -t2 -T1000 f.dat", "thread stride (-T)", "1000 bytes"),
        // A file that could not be used is not made.
        ("-Su -b1000 -c1M new.dat", "block size (-b)", "1000 bytes"),
    ] {
        let words = ["'", ".dat'", what, value, "multiple", "-Sb"];
        check(place.run(&format!("-d1 -W0 {line}")), 1, &words);
    }
    place.run("-b1000 -d0 -W0 f.dat").ends_with(0);
    assert_eq!(place.names(), ["f.dat"]);
}

#[test]
fn a_source_of_writes_that_cannot_be_read_is_named_before_files_are_made() {
    let place = Place::new();
    place.write("empty", "");
    place.pipe("pipe");
    fs::create_dir(place.path("folder")).expect("a folder");
    for (source, reason) in [
        ("none", "No such file"),
        ("empty", "end of file"),
        ("folder", "Is a directory"),
        ("pipe", "it is a pipe"),
    ] {
        let line = format!("-w100 -b4K -Z64K,{source} -c1M -d1 -W0 new.dat");
        let named = format!("'{source}'");
        check(place.run(&line), 1, &[&named, reason, "-Z"]);
    }
    assert_eq!(place.names(), ["empty", "folder", "pipe"]);
}

#[test]
fn a_run_that_cannot_begin_makes_no_file() {
    let place = Place::new();
    place.write("f.dat", "somebody's");
    fs::create_dir(place.path("folder")).expect("a folder");
    for (line, named, words) in [
        ("-SY -Su new.dat", "new.dat", ["BypassIO", "-Sy"]),
        ("-Sr new.dat", "new.dat", ["-Sr", "file system"]),
        ("new.dat folder", "folder", ["directory", "name a file"]),
        ("new.dat /dev/null", "/dev/null", ["character device", "block device"]),
    ] {
        let line = format!("-c1M -b4K -d1 -W0 {line}");
        let [first, second] = words;
        check(place.run(&line), 1, &[&format!("'{named}'"), first, second]);
    }
    let mut command = place.program(path(), "run -c1M -b4K -d1 -W0 -D -L new.dat");
    let told = outcome(command.env("TMPDIR", place.path("nowhere")));
    check(told, 1, &["scratch file", "nowhere", "TMPDIR"]);
    // Nor is the file of another program given up, which its name allows.
    let mut command = place.program(path(), "diskspd -c1M -b4K -d1 -W0 -Sr f.dat");
    check(outcome(&mut command), 1, &["'f.dat'", "-Sr"]);
    assert_eq!(place.read("f.dat"), b"somebody's");
    assert_eq!(place.names(), ["f.dat", "folder"]);
}

#[test]
fn processors_that_cannot_be_used_are_told_before_files_are_made() {
    let place = Place::new();
    check(place.run("-a255 -c1M -d1 -W0 new.dat"), 3, &["CPU 255", "online"]);
    check(place.run("-ag900 -c1M -d1 -W0 new.dat"), 3, &["group 900"]);

    let status = fs::read_to_string("/proc/self/status").expect("its own status");
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed = allowed.expect("a list").trim();
    let numbers: Vec<&str> = allowed.split([',', '-']).collect();
    // With one processor there is none to keep away.
    let [first, .., last] = numbers[..] else { return };
    let mut command = Command::new("taskset");
    let plumb = path().to_str().expect("a path in UTF-8");
    let words = ["-c", first, plumb, "run", "-c1M", "-d1", "-W0", &format!("-a{last}"), "new.dat"];
    let outcome = outcome(command.args(words).current_dir(place.folder()));
    check(outcome, 3, &[&format!("CPU {last}"), "may only run on", "Cpus_allowed_list"]);
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn buffers_beyond_memory_are_refused_before_they_are_touched() {
    let place = Place::new();
    for (line, wanted) in [
        ("-b16M -o65536 -t2", "2TiB"),
        ("-b16M -o65536 -w50", "2TiB"),
        ("-b4K -w100 -Z3000G", "TiB"),
    ] {
        // With addresses for a fraction of it, in case that it is not refused.
        let plumb = path().display();
        let script = format!("ulimit -v 8000000; exec {plumb} run -c32M -d1 -W0 {line} f.dat");
        let mut command = place.program(Path::new("bash"), "-c");
        let words = ["I/O buffers", wanted, "of memory are available", "-o", "-Z"];
        check(outcome(command.arg(script)), 1, &words);
    }
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn who_has_no_right_to_a_target_is_told() {
    let place = Place::for_everybody();
    place.write("secret.dat", noise(1 << 20));
    place.write("fixed.dat", noise(1 << 20));
    fs::create_dir(place.path("closed")).expect("a folder");
    let mode = |name: &str, mode| {
        fs::set_permissions(place.path(name), Permissions::from_mode(mode)).expect("a new mode");
    };
    mode("secret.dat", 0o000);
    mode("fixed.dat", 0o444);
    mode("closed", 0o555);
    for (line, words) in [
        ("secret.dat", &["'secret.dat'", "Permission denied"][..]),
        ("-w50 --destroy=fixed.dat fixed.dat", &["'fixed.dat'", "Permission denied"]),
        ("-c1M closed/new.dat", &["'closed/new.dat'", "Permission denied"]),
        ("-c1M closed/deeper/new.dat", &["'closed/deeper/new.dat'", "Permission denied"]),
    ] {
        let mut command = place.command(&format!("-d1 -W0 {line}"));
        as_somebody_else(&mut command);
        check(outcome(&mut command), 1, words);
    }
    assert_eq!(fs::read_dir(place.path("closed")).expect("a folder").count(), 0);
    // Reading needs no more than the right to read.
    let mut command = place.command("-d0 -W0 fixed.dat");
    as_somebody_else(&mut command);
    outcome(&mut command).succeeds_quietly();
}

#[test]
fn what_somebody_else_wrote_is_not_overwritten() {
    let place = Place::new();
    let bytes = noise(1 << 20);
    place.write("theirs.dat", &bytes);
    for line in [
        "-w1 theirs.dat",
        "-c2M theirs.dat",
        "-w100 -Rxml ./theirs.dat",
        "-w100 -Sm theirs.dat",
        // The first target is as it was although the second one is the reason.
        "-c1M -w100 new.dat theirs.dat",
    ] {
        let line = format!("-d1 -W0 {line}");
        check(place.run(&line), 3, &["theirs.dat", "1048576 bytes", "--destroy"]);
        assert_eq!(place.read("theirs.dat"), bytes, "{line}");
    }
    assert_eq!(place.names(), ["theirs.dat"]);
    place.run("-d0 -W0 theirs.dat").ends_with(0);
    place.run("-d1 -W0 -b4K -w100 --destroy=theirs.dat theirs.dat").ends_with(0);
    assert_ne!(place.read("theirs.dat"), bytes);
}

#[test]
fn a_file_system_with_no_room_or_no_right_to_write_is_told() {
    let name = "a_file_system_with_no_room_or_no_right_to_write_is_told";
    let place = Place::new();
    let Some(mount) = crate::rights::Tmpfs::mount(&place.path("small"), 4 << 20) else {
        println!("skipped {name}: only root mounts file systems");
        return;
    };
    let inside = |line: &str| place.run(&format!("-d1 -W0 {line}"));
    place.write("small/there.dat", noise(1 << 20));
    check(inside("-c16M small/new.dat"), 1, &["'small/new.dat'", "16MiB", "free", "-c"]);
    check(inside("-c1P small/new.dat"), 3, &["-c1P"]);
    check(inside("-c9000T small/new.dat"), 1, &["'small/new.dat'", "9000TiB"]);
    assert!(!place.path("small/new.dat").exists());

    mount.make_read_only();
    check(
        inside("-w100 --destroy=small/there.dat small/there.dat"),
        1,
        &["'small/there.dat'", "Read-only file system", "-w0"],
    );
    check(inside("-c1M small/new.dat"), 1, &["'small/new.dat'", "Read-only file system"]);
    inside("-b4K small/there.dat").succeeds_quietly();
}

#[test]
fn a_failed_run_leaves_a_whole_document() {
    let place = Place::new();
    let outcome = place.run("-Rxml -d1 -W0 none.dat").ends_with(1);
    assert!(outcome.stderr.ends_with("\n\nError generating I/O requests\n"), "{}", outcome.stderr);
    assert!(read_xml(&outcome.stdout).expect("a document").time_spans[0].is_interrupted());

    let outcome = place.run("--json --output xml=r.xml -d1 -W0 none.dat").ends_with(1);
    let result = crate::place::document(&outcome.stdout);
    assert_eq!(result["time_spans"][0]["state"], "failed");
    let failure = result["time_spans"][0]["failures"][0].as_str().expect("a reason");
    assert!(failure.contains("none.dat"), "{failure}");
    assert_eq!(place.names(), ["r.xml"]);
}

#[test]
fn a_program_that_asks_for_objects_gets_nothing_else() {
    let place = Place::new();
    let outcome = place.run("--error-format=json -ft -d1 -W0 none.dat").ends_with(1);
    for line in outcome.stderr.lines() {
        crate::place::document(line);
    }
    assert!(outcome.stderr.contains("none.dat"), "{}", outcome.stderr);
}

#[test]
fn the_first_bad_time_span_ends_the_run_and_the_rest_is_not_run() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    let span = |path: &str| {
        format!(
            "<TimeSpan><Duration>1</Duration><Warmup>0</Warmup><Targets><Target><Path>{path}</Path>\
             </Target></Targets></TimeSpan>"
        )
    };
    let spans = ["f.dat", "none.dat", "f.dat"].map(span).concat();
    place.write("p.xml", format!("<Profile><TimeSpans>{spans}</TimeSpans></Profile>"));
    let outcome = place.run("--json -Xp.xml").ends_with(1);
    let result = crate::place::document(&outcome.stdout);
    let states: Vec<_> = (0..3).map(|span| result["time_spans"][span]["state"].clone()).collect();
    assert_eq!(states, ["measured", "failed", "not_run"]);
    assert!(outcome.stderr.contains("'none.dat'"), "{}", outcome.stderr);
}

#[test]
fn a_file_that_an_earlier_time_span_makes_is_known_however_it_is_spelled() {
    let place = Place::new();
    let span = |path: &str, size: &str| {
        format!(
            "<TimeSpan><Duration>1</Duration><Warmup>0</Warmup><Targets><Target><Path>{path}</Path>{size}\
             </Target></Targets></TimeSpan>"
        )
    };
    let size = "<FileSize>1048576</FileSize>";
    let spans = [span("./new.dat", size), span("new.dat", "")].concat();
    place.write("p.xml", format!("<Profile><TimeSpans>{spans}</TimeSpans></Profile>"));
    let result = place.json("-Xp.xml");
    let states = [0, 1].map(|span| result["time_spans"][span]["state"].clone());
    assert_eq!(states, ["measured", "measured"]);
}

#[test]
fn an_override_leaves_a_mark_that_held_before() {
    let place = Place::new();
    place.run("-c1M -d0 -W0 -b4K f.dat").ends_with(0);
    fs::hard_link(place.path("f.dat"), place.path("g.dat")).expect("a second name");
    check(place.run("-d1 -W0 -b4K -w50 g.dat"), 3, &["2 names", "--destroy"]);
    let told = place.run("-d1 -W0 -b4K -w50 --destroy=f.dat g.dat").ends_with(0).stderr;
    assert!(told.contains("writing to g.dat as --destroy says"), "{told}");
    assert!(!told.contains("no target of this run"), "{told}");
    fs::remove_file(place.path("g.dat")).expect("a name");
    place.run("-d1 -W0 -b4K -w50 f.dat").ends_with(0);
}

#[test]
fn standard_output_that_takes_nothing_is_a_failure() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    let script = format!("{} run -d0 -W0 f.dat > /dev/full", path().display());
    let mut command = place.program(Path::new("sh"), "");
    let outcome = outcome(command.args(["-c", &script])).ends_with(1);
    assert!(outcome.stderr.contains("No space left on device"), "{}", outcome.stderr);
}

#[test]
fn errors_of_a_run_are_objects_with_a_class() {
    let place = Place::new();
    place.write("f.dat", noise(8192));
    for (line, class, status) in [
        ("none.dat", "open", 1),
        ("-Su -b1000 f.dat", "unaligned", 1),
        ("-w50 f.dat", "contents", 3),
        ("-t0 f.dat", "bad-number", 3),
    ] {
        let outcome = place.run(&format!("--error-format json -d0 -W0 {line}")).ends_with(status);
        let error: serde_json::Value = serde_json::from_str(&outcome.stderr).expect("one object");
        let keys: Vec<&String> = error.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["error_class", "help", "message", "token"], "{line}");
        assert_eq!(error["error_class"], class, "{line}: {error}");
        assert!(error["help"].as_str().is_some_and(|help| !help.is_empty()), "{line}: {error}");
    }
}

#[test]
fn what_the_kernel_makes_up_is_not_to_be_created() {
    let place = Place::new();
    let said = place.run("-d0 -W0 /proc/meminfo").ends_with(1).stderr;
    assert!(said.contains("'/proc/meminfo' is empty (0 bytes)"), "{said}");
    assert!(said.contains("help: the kernel makes up") && !said.contains("-c1G"), "{said}");
    place.write("f.dat", "");
    let said = place.run("-d0 -W0 f.dat").ends_with(1).stderr;
    assert!(said.contains("help: create it with -c<size>"), "{said}");
}

#[test]
fn folders_of_a_file_that_does_not_fit_do_not_stay() {
    let place = Place::new();
    let said = place.run("-c900T -d0 -W0 a/b/c/f.dat").ends_with(1).stderr;
    assert!(said.contains("f.dat'"), "{said}");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn processors_that_are_not_there_are_marked_on_the_line() {
    let place = Place::new();
    let line = "-c1M -d0 -a0 -a255 new.dat";
    let outcome = place.run(line).ends_with(3).stderr;
    assert!(
        outcome.contains("CPU 255") && outcome.contains("provided option: '-a255'"),
        "{outcome}"
    );
    let mark = outcome.lines().position(|line| line.trim() == "^^^^^").expect(&outcome);
    let (shown, mark) = outcome.lines().nth(mark - 1).zip(outcome.lines().nth(mark)).expect("two");
    assert_eq!(shown.find("-a255"), mark.find('^'), "{outcome}");
    let outcome = place.run(&format!("--error-format=json {line}")).ends_with(3);
    let error: serde_json::Value = serde_json::from_str(&outcome.stderr).expect("one object");
    assert_eq!((&error["error_class"], &error["token"]), (&"not-online".into(), &"-a255".into()));
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn an_engine_that_cannot_do_it_says_so_and_one_that_can_is_obeyed() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    check(place.run("-d1 -W0 --engine=threads -Sm f.dat"), 1, &["threads", "-Sm", "--engine"]);
    // It is found before a file is made or written.
    for line in ["--engine=threads -Sm", "--engine=aio -Sm -o4", "--engine=uring -Sm -o4"] {
        check(place.run(&format!("-c1M -d1 -W0 {line} new.dat")), 1, &["--engine"]);
    }
    assert_eq!(place.names(), ["f.dat"]);
    let sync = place.run("-d1 -W0 -L -b4K -o32 --engine=sync f.dat").ends_with(0).stdout;
    assert!(sync.contains("not in force: 32 outstanding I/Os"), "{sync}");
    assert!(sync.contains("submission: one I/O at a time"), "{sync}");
    let law = sync.lines().find(|line| line.contains("Little's law")).expect("a sentence");
    assert!(law.contains("--engine auto") && !law.contains("--batch"), "{law}");
    for engine in ["uring", "aio", "threads", "sync"] {
        let line = format!("--engine={engine} -o1 -d0 -W0 -b4K f.dat");
        if can("an_engine_that_cannot_do_it_says_so_and_one_that_can_is_obeyed", &line) {
            let result = place.json(&format!("--engine={engine} -o1 -d1 -W0 -b4K f.dat"));
            assert_eq!(result["engine"], engine, "{result:#}");
        }
    }
}

#[test]
fn more_threads_than_the_system_maps_are_refused() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    let limit = fs::read_to_string("/proc/sys/vm/max_map_count").expect("a limit");
    let limit: u64 = limit.trim().parse().expect("a number");
    let line = format!("-t{} -d1 -W0 -b4K f.dat", limit / 8);
    check(place.run(&line), 1, &["threads", "vm.max_map_count", "-t"]);
}
