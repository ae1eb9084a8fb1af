//! What a user without privileges can do: everything that is about files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::place::{Place, count, document, words};
use crate::program::{Outcome, outcome};
use crate::rights::{as_somebody_else, is_root};

/// A place where anybody may do anything.
fn open_place() -> Place {
    let place = Place::at(&std::env::temp_dir());
    fs::set_permissions(place.folder(), Permissions::from_mode(0o777)).expect("a new mode");
    place
}

/// Runs as somebody who is not root; `None` when such a user cannot reach the program.
fn run(place: &Place, line: &str) -> Option<Outcome> {
    let mut command = place.command(line);
    if is_root() && !as_somebody_else(&mut command) {
        return None;
    }
    // Events are kept below a user's own folders.
    command.env_remove("XDG_RUNTIME_DIR").env("HOME", place.folder());
    Some(outcome(&mut command))
}

#[test]
fn a_user_without_privileges_runs_everything_on_own_files() {
    let place = open_place();
    for line in [
        "-c4M -b4K -r -o8 -t2 -w50 -L -D100 -d1 -W0 f.dat",
        // Made by the same user before: may be written to again.
        "-b4K -r -o8 -w100 -d1 -W0 f.dat",
        "-b4K -r -o8 -w100 -x -d1 -W0 f.dat",
        "-b4K -r -o1 -w30 -Sm -d1 -W0 f.dat",
        "-b4K -r -o8 -I1 -d1 -W0 f.dat",
        "-b4K -r -o8 -Sw -w50 -ysplumb-test-plain -d1 -W0 f.dat",
    ] {
        let Some(outcome) = run(&place, &format!("--json {line}")) else {
            let test = "a_user_without_privileges_runs_everything_on_own_files";
            println!("skipped {test}: another user cannot reach the program");
            return;
        };
        let result = document(&outcome.ends_with(0).stdout);
        assert!(count(&result, "/total/io_count") > 10, "{line}");
        assert_eq!(count(&result, "/total/errors"), 0, "{line}");
    }
}

#[test]
fn registered_buffers_need_no_privilege_as_far_as_the_limit_goes() {
    let place = open_place();
    let name = "registered_buffers_need_no_privilege_as_far_as_the_limit_goes";
    let Some(outcome) = run(&place, "--json -c4M -b4K -r -o8 -u -d1 -W0 f.dat") else {
        println!("skipped {name}: another user cannot reach the program");
        return;
    };
    if outcome.status == 0 {
        let flags = document(&outcome.stdout);
        assert!(words(&flags, "/time_spans/0/queues/0/flags").contains(&"fixed_buffers"));
    } else {
        // Refused to users (kernel.io_uring_disabled), or the limit is tiny: told which.
        let told = ["io_uring", "RLIMIT_MEMLOCK"].iter().any(|word| outcome.stderr.contains(word));
        assert!(told && outcome.stderr.contains("\nhelp: "), "{}", outcome.stderr);
    }
    // 64 MiB of buffers are above the usual limit of 8 MiB, which only -u insists on.
    let line = "--json -c4M -b1M -o32 -d1 -W0 f.dat";
    let result = run(&place, line).expect("as above").ends_with(0);
    assert!(count(&document(&result.stdout), "/total/io_count") > 0);
}
