//! Cache modes: what the kernel was really asked for, seen on the open descriptors of a run.

use std::fs;

use rustix::fs::OFlags;

use crate::place::{Place, can, count, noise, words};

const DIRECT: OFlags = OFlags::DIRECT;
/// O_DSYNC by its bits (asm-generic/fcntl.h), and those of O_SYNC, which is more.
const SYNCHRONOUS: OFlags = OFlags::from_bits_retain(0o10_000);
const ALL_OF_IT: OFlags = OFlags::from_bits_retain(0o4_010_000);

#[test]
fn each_mode_opens_its_target_as_it_says() {
    let place = Place::new();
    Place::each(
        &[
            ("-fr", OFlags::empty()),
            ("-Sb", OFlags::empty()),
            ("-S", DIRECT),
            ("-Su", DIRECT),
            ("-Sw", SYNCHRONOUS),
            ("-Sbw", SYNCHRONOUS),
            ("-Suw", DIRECT | SYNCHRONOUS),
            ("-Sh", DIRECT | SYNCHRONOUS),
            ("-h", DIRECT | SYNCHRONOUS),
            ("-Su -o1", DIRECT),
            ("-Su -x", DIRECT),
            ("-Su -u", DIRECT),
            ("-Sh --engine=aio", DIRECT | SYNCHRONOUS),
            ("-Sh --engine=threads", DIRECT | SYNCHRONOUS),
        ],
        |(option, want)| {
            if !can("each_mode_opens_its_target_as_it_says", option) {
                return;
            }
            // A few writes of a file of its own, so that the flags hold for both.
            let name = format!("{}.dat", option.replace([' ', '-', '='], "_"));
            // Completion routines know no limit.
            let limit = if option.contains("-x") { "" } else { "-g200i" };
            let line = format!("--json -c1M -b4K -r -o4 -w50 {limit} -d60 -W0 {option} {name}");
            let run = place.start(&line).phase("measuring");
            let flags = run.open_flags(&place.path(&name));
            let ended = run.interrupt().with(0);
            // One descriptor is for the checks, the others for the I/O.
            let held = flags.iter().any(|flags| *flags & (DIRECT | ALL_OF_IT) == *want);
            let wrong =
                want.is_empty() && flags.iter().any(|flags| flags.intersects(DIRECT | SYNCHRONOUS));
            assert!(held && !wrong, "{option}: {flags:?}");
            // The file is ours, and its reads are not noted in it.
            let unnoted = flags.iter().filter(|flags| flags.contains(OFlags::NOATIME)).count();
            assert!(unnoted > 0, "{option}: {flags:?}");
            let result = ended.json();
            assert!(count(&result, "/write/io_count") > 0, "{option}");
            assert_eq!(count(&result, "/total/errors"), 0, "{option}");
        },
    );
}

#[test]
fn mapped_targets_are_mapped() {
    let place = Place::new();
    Place::each(
        &[
            ("-Sm", None),
            ("-Smw", Some("non_temporal")),
            ("-Smb", None),
            ("-Sm -Nv", Some("msync")),
        ],
        |(option, flag)| {
            let name = format!("{}.dat", option.replace([' ', '-'], "_"));
            let line = format!("--json -c1M -b4K -r -o4 -w50 -g200i -d60 -W0 {option} {name}");
            let run = place.start(&line).phase("measuring");
            let maps = fs::read_to_string(format!("/proc/{}/maps", run.id())).expect("its maps");
            let ended = run.interrupt().with(0);
            let mapped = maps.lines().find(|line| line.ends_with(&format!("/{name}")));
            let access = mapped.and_then(|line| line.split(' ').nth(1));
            assert_eq!(access, Some("rw-s"), "{option}: {maps}");
            let result = ended.json();
            assert_eq!(result["engine"], "mmap", "{option}");
            assert!(count(&result, "/write/io_count") > 0, "{option}");
            let flags = words(&result, "/time_spans/0/queues/0/flags");
            assert_eq!(flags, flag.iter().copied().collect::<Vec<_>>(), "{option}");
        },
    );
}

#[test]
fn what_is_written_through_a_mapping_is_in_the_file() {
    let place = Place::new();
    Place::each(&["-Sm", "-Smw", "-Sm -Nv"], |option| {
        let name = format!("{}.dat", option.replace([' ', '-'], "_"));
        let line = format!("-c256K -b4K -s -w100 -Z -d1 -W0 {option} {name}");
        place.run(&line).succeeds_quietly();
        // Made of zeroes, by -Z; written over with another content.
        let line = format!("--json -b4K -s -w100 -d1 -W0 {option} {name}");
        let result = crate::place::document(&place.run(&line).ends_with(0).stdout);
        assert!(count(&result, "/total/io_count") >= 64, "{option}");
        let bytes = place.read(&name);
        assert_eq!(bytes.len(), 256 << 10);
        let pattern: Vec<u8> = (0..=255).collect();
        assert!(bytes.chunks(256).all(|chunk| chunk == pattern), "{option}");
    });
}

/// The touch of what is gone ends the run (docs/decisions/0023); what it says is as of any other end.
#[test]
fn a_mapping_that_is_lost_ends_the_run_as_any_failure_does() {
    let place = Place::new();
    Place::each(&["json", "text"], |format| {
        let name = format!("lost-{format}.dat");
        let line = format!(
            "--error-format {format} --json --output xml={format}.xml --output text={format}.txt -c8M \
             -b4K -r -t4 -g2000i -d60 -W0 -Sm {name}"
        );
        let run = place.start(&line).phase("measuring");
        fs::File::options()
            .write(true)
            .open(place.path(&name))
            .and_then(|file| file.set_len(4096))
            .expect("it can be truncated");
        let ended = run.end().with(1);
        assert_eq!(ended.stdout, "");
        let said: Vec<&str> =
            ended.stderr.lines().filter(|line| !line.contains("\"phase\":")).collect();
        match *format {
            "json" => {
                let object: serde_json::Value =
                    serde_json::from_str(&said.concat()).expect("one object");
                let keys: Vec<&String> = object.as_object().expect("an object").keys().collect();
                assert_eq!(keys, ["error_class", "help", "message", "token"]);
                assert_eq!(object["error_class"], "mapping-lost");
                assert!(object["message"].as_str().is_some_and(|text| text.contains(&name)));
            }
            _ => {
                assert!(said[0].starts_with("error: a memory mapped target"), "{said:?}");
                assert!(said[1].starts_with("help: ") && said.len() == 2, "{said:?}");
            }
        }
    });
    assert_eq!(place.names(), ["lost-json.dat", "lost-text.dat"], "nothing half-made");
}

#[test]
fn modes_that_this_file_system_has_not_are_errors() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    for (option, words) in [
        ("-Sr", &["'f.dat'", "-Sr", "-Su"][..]),
        ("-SY -Su", &["'f.dat'", "-SY", "-Sy"]),
        // The tests' folder is on no memory that keeps its content.
        ("-Sm -Nn -w100 --destroy=f.dat", &["f.dat", "MAP_SYNC", "-Nv"]),
        ("-Sm -Ni -w100 --destroy=f.dat", &["f.dat", "MAP_SYNC", "-Nv"]),
    ] {
        let outcome = place.run(&format!("-b4K -d1 -W0 {option} f.dat")).ends_with(1);
        for word in words {
            assert!(outcome.stderr.contains(word), "{option}: {word}: {}", outcome.stderr);
        }
    }
    if !can("modes_that_this_file_system_has_not_are_errors", "-Su") {
        return;
    }
    let outcome = place.run("--json -b4K -d0 -W0 -Su -Sy f.dat").ends_with(0);
    assert!(outcome.stderr.contains("'f.dat': BypassIO not available"), "{}", outcome.stderr);
    let result = crate::place::document(&outcome.stdout);
    assert_eq!(words(&result, "/time_spans/0/mode/bypass_io_missing"), ["f.dat"]);
    let outcome = place.run("-b4K -d0 -W0 -Su -fr -ft f.dat").ends_with(0);
    assert!(outcome.stderr.contains("-fr and -fs have no effect"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("-ft has no equivalent"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("using FILE_FLAG_RANDOM_ACCESS hint\n"));
}
