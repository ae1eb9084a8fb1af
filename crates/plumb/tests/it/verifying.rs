//! Verified runs on real files: what is damaged behind the program's back is found and named, and a
//! run that is killed leaves no false alarm.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, can, count, document};

const VERIFY: &str = "--verify=crc32c --verify-state run.state";

/// Two verified runs that write all of a file of 1 MiB; what it held in between.
fn written_twice(place: &Place) -> Vec<u8> {
    let line = format!("{VERIFY} -b4K -w100 -o8 -d1 -W0 f.dat");
    place.run(&format!("-c1M {line}")).ends_with(0);
    let between = place.read("f.dat");
    place.run(&line).ends_with(0);
    between
}

/// The verification of a run that only reads, and how it ended.
fn looked(place: &Place, more: &str) -> (Value, i32) {
    let outcome = place.run(&format!("{VERIFY} --json -b4K -r -o4 -d1 -W0 {more} f.dat"));
    let status = outcome.status;
    (document(&outcome.stdout)["time_spans"][0]["verify"].clone(), status)
}

#[test]
fn a_sound_file_passes_on_every_engine() {
    let place = Place::new();
    Place::each(&["uring", "aio", "threads", "sync"], |engine| {
        let file = format!("{engine}.dat");
        let line = format!(
            "--verify=crc32c --engine={engine} --json -c4M -b8K -r4K -w50 -o8 -t2 -L -d1 -W0 {file}"
        );
        if !can("a_sound_file_passes_on_every_engine", &line) {
            return;
        }
        let result = document(&place.run(&line).ends_with(0).stdout);
        let verify = &result["time_spans"][0]["verify"];
        assert_eq!(count(verify, "/mismatches"), 0, "{verify:#}");
        assert_eq!(verify["after"]["complete"], true);
        assert_eq!(count(verify, "/after/bytes"), count(verify, "/after/of_bytes"));
        assert_eq!(verify["targets"][0]["block_bytes"], 4096);
        assert!(count(verify, "/targets/0/written_bytes") >= count(&result, "/write/bytes"));
        let engine = result["engine"].as_str().expect("a name");
        assert!(engine.ends_with("+verify"), "{engine}");
    });
}

#[test]
fn what_was_damaged_is_found_with_kind_and_place() {
    let place = Place::new();
    let old = written_twice(&place);
    let (verify, status) = looked(&place, "");
    assert_eq!((status, count(&verify, "/mismatches")), (0, 0), "{verify:#}");
    assert_eq!(count(&verify, "/before/bytes"), 1 << 20);
    let now = place.read("f.dat");
    let file = std::fs::OpenOptions::new().write(true).open(place.path("f.dat")).expect("it");
    let put = |bytes: &[u8], at: u64| file.write_all_at(bytes, at).expect("written");
    // A block as it was, half a block as it was, a block from elsewhere, a bit, and zeros.
    put(&old[4096..8192], 4096);
    put(&old[5 * 4096 + 2048..6 * 4096], 5 * 4096 + 2048);
    put(&now[0..4096], 9 * 4096);
    put(&[now[13 * 4096 + 700] ^ 1], 13 * 4096 + 700);
    put(&[0; 512], 17 * 4096 + 1024);
    let (verify, status) = looked(&place, "--on-error=continue");
    assert_eq!(status, 1);
    let found = verify["first_mismatches"].as_array().expect("a list");
    let found: Vec<(&str, u64, &str)> = found
        .iter()
        .map(|found| {
            let word = |key: &str| found[key].as_str().expect("a word");
            (word("kind"), count(found, "/offset_bytes"), word("pass"))
        })
        .collect();
    let want = [
        ("stale", 4096, "before"),
        ("torn", 5 * 4096 + 2048, "before"),
        ("misplaced", 9 * 4096, "before"),
        ("torn", 13 * 4096 + 512, "before"),
        ("foreign", 17 * 4096 + 1024, "before"),
    ];
    assert_eq!(found, want, "{verify:#}");
    assert_eq!(verify["first_mismatches"][2]["found"]["offset_bytes"], 0);
    // Reads of the load saw them as well: 256 blocks, thousands of reads.
    assert!(count(&verify, "/mismatches") > 5);

    // Without that wish nothing is read further.
    let line = format!("{VERIFY} -b4K -r -o4 -d60 -W0 f.dat");
    let outcome = place.run(&line).ends_with(1);
    for word in [
        "error: verification found 5 mismatches (1 stale, 1 misplaced, 2 torn, 1 foreign)",
        "first 'f.dat' at 4096: stale: expected generation ",
        "help: --on-error continue",
    ] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    for word in ["\nVerification (CRC-32C)\n", "'f.dat' at 36864: misplaced", "'run.state'"] {
        assert!(outcome.stdout.contains(word), "{word}: {}", outcome.stdout);
    }
    let outcome = place.run(&format!("-Rxml {line}")).ends_with(1);
    for word in ["<Verification Algorithm=\"crc32c\"", "<Mismatches Kind=\"torn\" Count=\"2\"/>"] {
        assert!(outcome.stdout.contains(word), "{word}: {}", outcome.stdout);
    }
}

#[test]
fn a_killed_run_leaves_no_false_alarm() {
    let place = Place::new();
    let name = "a_killed_run_leaves_no_false_alarm";
    place.run(&format!("{VERIFY} -c8M -b4K -w100 -o8 -d1 -W0 f.dat")).ends_with(0);
    for (nth, options) in
        ["-b4K -r -w70 -o16 -t2 -Su", "-b16K -r4K -w90 -o8 -t3", "-b64K -w50 -o2 -Sh"]
            .into_iter()
            .enumerate()
    {
        if !can(name, options) {
            return;
        }
        // The mark of a file that is being written is that of a dead process.
        let line = format!("{VERIFY} {options} -d60 -W0 --destroy f.dat f.dat");
        let run = place.start(&line).phase("measuring");
        std::thread::sleep(Duration::from_millis(300));
        run.signal(Signal::KILL);
        let ended = run.end();
        assert!(!ended.status.success());
        let (verify, status) = looked(&place, "");
        assert_eq!((status, count(&verify, "/mismatches")), (0, 0), "{nth}: {verify:#}");
        assert_eq!(verify["follows_a_cut"], true);
        assert_eq!(count(&verify, "/before/bytes"), 8 << 20, "{nth}");
    }
    // Nobody knows what else was written since, and the state file helps on.
    let line = format!("{VERIFY} -b4K -w100 -o8 -d1 -W0");
    let outcome = place.run(&format!("{line} f.dat")).ends_with(3);
    for word in
        ["not writing to f.dat, which may have been changed", "a run with -w0 reads all of it"]
    {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    place.run(&format!("{line} --destroy f.dat f.dat")).ends_with(0);
    // It is Plumb's file again.
    place.run(&format!("{line} f.dat")).ends_with(0);
    // All of that was looked at: a block set back is seen.
    let file = std::fs::OpenOptions::new().write(true).open(place.path("f.dat")).expect("it");
    file.write_all_at(&[0; 4096], 1 << 20).expect("written");
    let (verify, status) = looked(&place, "");
    assert_eq!((status, count(&verify, "/mismatches")), (1, 1), "{verify:#}");
}

/// Writes that were acknowledged are not forgotten because their file is gone, nor made up for by a new one.
#[test]
fn a_target_that_is_gone_is_refused_and_stays_known() {
    let place = Place::new();
    let old = written_twice(&place);
    std::fs::remove_file(place.path("f.dat")).expect("it was there");
    for more in ["-c1M -w100", "-c1M -w0", "-w0"] {
        let outcome = place.run(&format!("{VERIFY} -b4K -r -o4 -d1 -W0 {more} f.dat")).ends_with(1);
        assert!(outcome.stderr.contains("'f.dat' is gone"), "{more}: {}", outcome.stderr);
        assert!(!place.path("f.dat").exists(), "{more}: nothing is made");
    }
    place.write("f.dat", old);
    // An older state came back: what was acknowledged is still known.
    let (verify, status) = looked(&place, "");
    assert_eq!(status, 1, "{verify:#}");
    assert!(count(&verify, "/mismatches") > 0, "{verify:#}");
}

#[test]
fn a_state_file_in_use_or_of_another_kind_is_refused() {
    let place = Place::new();
    let line = format!("{VERIFY} -b4K -w100 -o2 -d30 -W0");
    let run = place.start(&format!("-c1M {line} f.dat")).phase("measuring");
    let outcome = place.run(&format!("-c1M {line} g.dat")).ends_with(1);
    assert!(outcome.stderr.contains("in use by another run"), "{}", outcome.stderr);
    assert!(!place.path("g.dat").exists(), "nothing was made");
    run.interrupt().with(0);
    place.write("run.state", "something else");
    let outcome = place.run(&format!("{line} f.dat")).ends_with(1);
    assert!(outcome.stderr.contains("is no state file"), "{}", outcome.stderr);
    assert_eq!(place.read("run.state"), b"something else");
    let outcome = place.run("--verify=crc32c --engine=null -d1 -W0 f.dat");
    assert!(outcome.status != 0 && outcome.stderr.contains("null, nop"), "{}", outcome.stderr);
}

/// The state would be overwritten by what it is to tell of, and is then no state any more.
#[test]
fn a_state_file_is_nothing_else_of_its_run() {
    let place = Place::new();
    place.write("e.dat", "");
    place.write("f.dat", vec![7; 1 << 20]);
    std::os::unix::fs::symlink("f.dat", place.path("link")).expect("a link");
    std::os::unix::fs::symlink("new.dat", place.path("nowhere")).expect("a link");
    let profile = place.run("-Rpxml -b4K -d0 -W0 f.dat").ends_with(0).stdout;
    place.write("p.xml", &profile);
    let before = place.names();
    let (target, state) = ("(--verify-state) is a target", "the state file (--verify-state)");
    for (line, said) in [
        ("--verify-state=e.dat --destroy e.dat -r -w100 -b4K -d1 -W0 e.dat", target),
        ("--verify-state=./f.dat -b4K -d1 -W0 f.dat", target),
        ("--verify-state=link -b4K -d1 -W0 f.dat", target),
        ("--verify-state=new.dat -c1M -w100 -b4K -d1 -W0 f.dat ./new.dat", target),
        ("--verify-state=nowhere -c1M -w100 -b4K -d1 -W0 new.dat", target),
        ("--verify-state=new.dat -c1M -w100 -b4K -d1 -W0 nowhere", target),
        ("--verify-state=./p.xml -Xp.xml", "is the profile (-X) of this run"),
        ("--verify-state=st --output=json=st -b4K -d1 -W0 f.dat", state),
        ("--verify-state=./st --output=xml=st -b4K -d1 -W0 f.dat", state),
        ("--verify-state=new.dat --output=text=nowhere -b4K -d1 -W0 f.dat", state),
    ] {
        let outcome = place.run(&format!("--verify=crc32c {line}")).ends_with(3);
        assert_eq!(outcome.stdout, "", "{line}");
        for word in [said, "help: name another file for --"] {
            assert!(outcome.stderr.contains(word), "{line}: {}", outcome.stderr);
        }
        assert_eq!(place.names(), before, "{line}");
    }
    assert_eq!(place.read("f.dat"), vec![7; 1 << 20]);
    assert_eq!(place.read("p.xml"), profile.as_bytes());
    assert_eq!(place.read("e.dat"), b"");
}

/// A result that is sent there takes the place of the state at once.
#[test]
fn a_state_file_is_not_standard_output() {
    let place = Place::new();
    place.write("f.dat", vec![7; 1 << 20]);
    let mut command = place.command("--verify=crc32c --verify-state=st --json -b4K -d1 -W0 f.dat");
    let into = std::fs::File::create(place.path("st")).expect("a file");
    let outcome = command.stdout(into).output().expect("it runs");
    let told = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.status.code(), Some(3), "{told}");
    assert!(told.contains("is standard output of this run"), "{told}");
    assert_eq!(place.read("st"), b"");
}
